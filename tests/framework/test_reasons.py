"""The reasons that jobs get about their queues: figures, and each thing once."""

from tests.actions.test_reserve import soon
from tests.engine.story import Story, conf, job, node, queue
from tests.plugins.stage import asks

from ringleaf.engine.event import JobGone, QueueChanged
from ringleaf.framework.instruction import Report
from ringleaf.model.decision import Waiting
from ringleaf.model.queue import Queue

ALLOCATE = conf("allocate")


def reports(story: Story) -> list[str]:
    return [each.message for each in story.said if isinstance(each, Report)]


def because(story: Story, name: str) -> str:
    found = story.engine.explain(name)
    assert isinstance(found, Waiting)
    return found.because


def test_other_figures_are_no_news_and_an_explanation_has_those_of_now() -> None:
    story = Story("A B C", queues=[queue("q", 16)], conf=ALLOCATE)
    story.arrives(job("one", 4, queue="q"), job("two", 4, queue="q"))
    story.arrives(job("big", 8, 2, queue="q"), now=1)
    (message,) = reports(story)
    assert message == (
        "job 'big' waits: needs 2 x 8 chips; queue 'q' has no room: "
        "8 of 16 chips used, job wants 16"
    )

    assert story.hears(JobGone("one"), now=2) == []
    assert because(story, "big") == (
        "queue 'q' has no room: 4 of 16 chips used, job wants 16"
    )


def test_a_reason_that_holds_no_more_is_explained_as_it_was_reported() -> None:
    story = Story("A", queues=[queue("q", 4)], conf=ALLOCATE.quiet)
    story.arrives(job("j", queue="q"))
    job_state = story.engine.view.job_states["j"]
    full = story.engine.context.quota.why_no_room(job_state)
    story.hears(QueueChanged(queue("q", 4, is_open=False)), now=1)

    assert story.engine.context.quota.up_to_date(full, job_state) == full


def test_a_running_job_that_lacks_pods_wants_what_they_request() -> None:
    story = Story("A B C", queues=[queue("q", 24)], conf=ALLOCATE)
    story.arrives(job("j", 8, 2, queue="q"))
    job_state = story.engine.view.job_states["j"]

    found = story.engine.context.quota.why_no_room(job_state)

    assert found.words == "queue 'q' has no room"


def test_a_resource_besides_chips_has_its_name() -> None:
    cores = Queue("q", capability={"cpu": 4000})
    story = Story([node("A", resources={"cpu": 8000})], queues=[cores], conf=ALLOCATE)

    story.arrives(job("j", 8, queue="q", demand=asks(cpu=6000)))

    assert reports(story)[0].endswith("0 of 4 cpu used, job wants 6")


def test_what_others_of_the_queue_reserved_counts_against_its_capability() -> None:
    queues = [queue("p"), queue("q", 16)]
    story = Story("A B C", queues=queues, conf=soon())
    story.arrives(job("p0", 8, 2, queue="p"))
    story.arrives(job("big", 8, 2, queue="q"), now=1)
    assert "reserved big" in story.wakes(11)

    story.arrives(job("small", 8, queue="q"), now=12)

    job_state = story.engine.view.job_states["small"]
    assert story.engine.context.quota.why_no_room(job_state).words == (
        "queue 'q' has no room: 0 of 16 chips used, 16 kept for other jobs, job wants 8"
    )
