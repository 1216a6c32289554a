"""How votes combine: one table for each sentence of Volcano's rules."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest
from tests.plugins.stage import A2, Stage, as_text, asks, pods

from ringleaf.config.vocabulary import FLAG_OF
from ringleaf.framework.job_state import JobState
from ringleaf.framework.plugin import HOOKS, Nodes, Plugin, Victim, Vote
from ringleaf.framework.statement import Statement
from ringleaf.framework.votes import Votes
from ringleaf.model.job import Job, Role
from ringleaf.model.queue import Queue

PERMIT, ABSTAIN, REJECT = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT
SILENT: Final = object()
"""The plugin has no such hook."""


def saying(hook: str, answer: object) -> type[Plugin]:
    """A plugin that always gives one answer, to one question."""

    def vote(_self: Plugin, *_about: object) -> object:
        return answer

    return type("Saying", (Plugin,), {} if answer is SILENT else {hook: vote})


def votes_of(hook: str, tiers: Sequence[Sequence[object]], stage: Stage) -> Votes:
    """The votes of plugins that each give one answer."""
    names = [[f"p{i}-{k}" for k, _ in enumerate(tier)] for i, tier in enumerate(tiers)]
    others = {
        name: saying(hook, answer)
        for own, tier in zip(names, tiers, strict=True)
        for name, answer in zip(own, tier, strict=True)
    }
    return stage.votes(" | ".join(" ".join(own) for own in names), others)


def asked(hook: str, tiers: Sequence[Sequence[object]], *about: object) -> Any:  # noqa: ANN401
    """What such plugins come to, asked about a job or about *about*."""
    stage = Stage()
    job_state = stage.waits("j")
    return getattr(votes_of(hook, tiers, stage), hook)(*(about or (job_state,)))


@pytest.mark.parametrize(
    ("tiers", "want"),
    [
        pytest.param([], None, id="no plugin: fine"),
        pytest.param([[None], [None]], None, id="no plugin refuses: fine"),
        pytest.param([["no"], [None]], "no", id="one refusal in the first tier counts"),
        pytest.param([[None], ["no"]], "no", id="one refusal in a later tier counts"),
        pytest.param([["one", "two"]], "one", id="the first refusal is reported"),
    ],
)
def test_a_job_is_valid_if_all_plugins_say_so(
    tiers: list[list[object]], want: str | None
) -> None:
    assert asked("job_valid", tiers) == want


@pytest.mark.parametrize(
    ("tiers", "want"),
    [
        pytest.param([], True, id="no plugin: yes"),
        pytest.param([[True, True], [True]], True, id="all agree: yes"),
        pytest.param([[True, False]], False, id="one in the tier disagrees: no"),
        pytest.param([[True], [False]], False, id="one in a later tier disagrees: no"),
        pytest.param(
            [[SILENT], [True]], True, id="a plugin without the hook does not vote"
        ),
    ],
)
@pytest.mark.parametrize("hook", ["job_ready", "allocatable", "preemptive"])
def test_every_plugin_must_agree(
    hook: str,
    tiers: list[list[object]],
    want: bool,  # noqa: FBT001
) -> None:
    about: tuple[object, ...] = () if hook == "job_ready" else (Queue("q"), {})

    assert asked(hook, tiers, *about) is want


@pytest.mark.parametrize(
    ("tiers", "want"),
    [
        pytest.param([], False, id="no plugin: no"),
        pytest.param([[False], [False]], False, id="no plugin says so: no"),
        pytest.param([[False], [True]], True, id="one suffices, in any tier"),
    ],
)
def test_one_plugin_suffices_to_find_a_queue_overused(
    tiers: list[list[object]],
    want: bool,  # noqa: FBT001
) -> None:
    assert asked("overused", tiers, Queue("q")) is want


@pytest.mark.parametrize(
    ("tiers", "want"),
    [
        pytest.param([], True, id="no plugin: yes"),
        pytest.param([[ABSTAIN], [ABSTAIN]], True, id="all abstain: yes"),
        pytest.param([[REJECT]], False, id="one rejects: no"),
        pytest.param(
            [[PERMIT, REJECT]], False, id="a reject beats a permit of its tier"
        ),
        pytest.param([[REJECT, PERMIT]], False, id="in any order"),
        pytest.param([[ABSTAIN], [REJECT]], False, id="a later tier may reject"),
        pytest.param([[PERMIT], [REJECT]], True, id="a permit ends the walk"),
        pytest.param(
            [[PERMIT, ABSTAIN], [REJECT]], True, id="also if another abstains"
        ),
    ],
)
@pytest.mark.parametrize("hook", ["job_pipelined", "job_enqueueable"])
def test_a_reject_refuses_and_a_permit_ends_the_walk_after_its_tier(
    hook: str,
    tiers: list[list[object]],
    want: bool,  # noqa: FBT001
) -> None:
    assert asked(hook, tiers) is want


@pytest.mark.parametrize(
    ("tiers", "want"),
    [
        pytest.param([], False, id="no plugin: no"),
        pytest.param([[SILENT]], False, id="no plugin has an opinion: no"),
        pytest.param([[True, True]], True, id="all of the tier agree: yes"),
        pytest.param([[True, False]], False, id="one of the tier disagrees: no"),
        pytest.param([[True], [False]], True, id="the first tier decides"),
        pytest.param([[SILENT], [False]], False, id="the first that has an opinion"),
    ],
)
def test_the_first_tier_with_an_opinion_says_whether_a_job_starves(
    tiers: list[list[object]],
    want: bool,  # noqa: FBT001
) -> None:
    assert asked("job_starving", tiers) is want


@pytest.mark.parametrize(
    ("tiers", "want"),
    [
        pytest.param([], "", id="no plugin: no victims"),
        pytest.param([["a1 a0"]], "a0 a1", id="in the order of the candidates"),
        pytest.param([["a0 a1", "a1 b0"]], "a1", id="inside a tier they must agree"),
        pytest.param([[None, "a1"]], "a1", id="a plugin that abstains is skipped"),
        pytest.param([["a0"], ["a1"]], "a0", id="the first tier decides"),
        pytest.param([[None], ["a1"]], "a1", id="that does not abstain as a whole"),
        pytest.param(
            [[""], ["a1"]], "", id="a tier that names no victim ends the round"
        ),
        pytest.param([["a0", "b0"], ["a1"]], "", id="so does one that cannot agree"),
        pytest.param(
            [[SILENT], ["b0"]], "b0", id="a plugin without the hook does not vote"
        ),
    ],
)
@pytest.mark.parametrize("hook", ["preemptable", "reclaimable"])
def test_victims_are_the_pods_on_which_the_first_tier_agrees(
    hook: str, tiers: list[list[Any]], want: str
) -> None:
    answers = [
        [pods(each) if isinstance(each, str) else each for each in tier]
        for tier in tiers
    ]
    stage = Stage()
    evictor = stage.waits("j")
    votes = votes_of(hook, answers, stage)

    assert as_text(getattr(votes, hook)(evictor, pods("a0 a1 b0"))) == want


class ByPriority(Plugin):
    """Orders everything by a number of its own."""

    def job_order(self, job_state: JobState) -> int:
        return -job_state.job.priority

    def queue_order(self, queue: Queue) -> int:
        return -queue.priority


class ByName(Plugin):
    """Orders everything by its last letter."""

    def job_order(self, job_state: JobState) -> str:
        return job_state.job.name[-1]

    def queue_order(self, queue: Queue) -> str:
        return queue.name[-1]


ORDERS: Final = {"by-priority": ByPriority, "by-name": ByName}


@pytest.mark.parametrize(
    ("tiers", "want"),
    [
        pytest.param(
            "by-priority by-name", "xa xb xc", id="the first in a tier decides"
        ),
        pytest.param("by-priority | by-name", "xa xb xc", id="the first tier decides"),
        pytest.param("by-name by-priority", "xa xb xc", id="the next decides ties"),
        pytest.param("by-priority", "xa xc xb", id="then the older job"),
        pytest.param("", "xc xb xa", id="without plugins age alone"),
    ],
)
def test_the_first_plugin_with_a_preference_orders_jobs(tiers: str, want: str) -> None:
    stage = Stage()
    jobs = [
        stage.waits("xb", priority=1, created=2.0),
        stage.waits("xc", priority=1, created=1.0),
        stage.waits("xa", priority=2, created=3.0),
    ]
    votes = stage.votes(tiers, ORDERS)

    assert " ".join(each.job.name for each in sorted(jobs, key=votes.job_key)) == want


def test_among_jobs_of_one_age_the_order_of_arrival_counts() -> None:
    stage = Stage()
    jobs = [stage.waits("b"), stage.waits("a")]
    votes = stage.votes("")

    assert sorted(jobs, key=votes.job_key) == jobs


def test_jobs_that_tie_in_everything_else_are_ordered_by_name() -> None:
    stage = Stage()
    jobs = [JobState(Job(name, A2, 8)) for name in "ba"]
    votes = stage.votes("")

    assert [each.job.name for each in sorted(jobs, key=votes.job_key)] == ["a", "b"]


@pytest.mark.parametrize(
    ("tiers", "want"),
    [
        pytest.param("by-priority by-name", "za xb yc", id="the first decides"),
        pytest.param("by-priority", "za xb yc", id="then the name"),
        pytest.param("", "xb yc za", id="without plugins the name alone"),
    ],
)
def test_the_first_plugin_with_a_preference_orders_queues(
    tiers: str, want: str
) -> None:
    stage = Stage()
    queues = [Queue("yc"), Queue("xb"), Queue("za", priority=2)]
    votes = stage.votes(tiers, ORDERS)

    assert " ".join(each.name for each in sorted(queues, key=votes.queue_key)) == want


@pytest.mark.parametrize(
    ("answers", "want"),
    [
        pytest.param([], None, id="no plugin: no opinion"),
        pytest.param([None, None], None, id="no plugin refuses any: no opinion"),
        pytest.param(["110"], "110", id="one has an opinion"),
        pytest.param(["110", None, "011"], "010", id="all must allow a node"),
    ],
)
def test_a_node_must_pass_every_predicate(
    answers: list[str | None], want: str | None
) -> None:
    tiers = [
        [None if each is None else np.array([c == "1" for c in each])]
        for each in answers
    ]
    job = Job("j", A2, 8)
    found = asked("predicate", tiers, job, job.role_ranks[0][0])

    assert (None if found is None else "".join("01"[int(x)] for x in found)) == want


@pytest.mark.parametrize(
    ("answers", "want"),
    [
        pytest.param([], None, id="no plugin: no opinion"),
        pytest.param([None], None, id="no plugin scores: no opinion"),
        pytest.param([[1.0, 2.0], None, [10.0, 5.0]], [11.0, 7.0], id="the sum"),
    ],
)
def test_scores_are_added_up(
    answers: list[list[float] | None], want: list[float] | None
) -> None:
    stage = Stage()
    job = Job("j", A2, 8)
    tiers = [[None if each is None else np.array(each)] for each in answers]
    votes = votes_of("node_order", tiers, stage)
    found = votes.node_scores(job, job.role_ranks[0][0], np.array([0, 1]))

    assert (None if found is None else found.tolist()) == want


def test_affinity_is_not_asked_about_nodes_because_sessions_do_that() -> None:
    stage = Stage()
    job = Job("j", A2, 8)
    votes = stage.votes("affinity")

    assert votes.predicate(job, job.role_ranks[0][0]) is None
    assert votes.node_scores(job, job.role_ranks[0][0], np.array([0])) is None
    assert votes.job_valid(stage.waits("k", chips=9)) is not None


@pytest.mark.parametrize("vote", [each for each in HOOKS if each != "TaskOrder"])
def test_a_flag_takes_a_vote_away(vote: str) -> None:
    hook = HOOKS[vote]
    answer = {"job_valid": "no", "predicate": np.array([False]), "job_order": 1}
    stage = Stage()
    job_state, role = stage.waits("j"), Role("", 8)
    about: dict[str, tuple[object, ...]] = {
        "queue_key": (Queue("q"),),
        "predicate": (job_state.job, role),
        "node_scores": (job_state.job, role, np.array([0])),
        "overused": (Queue("q"),),
        "allocatable": (Queue("q"), {}),
        "preemptive": (Queue("q"), {}),
        "preemptable": (job_state, pods("j0")),
        "reclaimable": (job_state, pods("j0")),
    }
    other = {
        "job_order": "job_key",
        "queue_order": "queue_key",
        "node_order": "node_scores",
    }
    heard: list[str] = []

    def listening(_self: Plugin, *_about: object) -> object:
        heard.append(hook)
        return answer.get(hook)

    ears = {"ears": type("Ears", (Plugin,), {hook: listening})}
    for enabled in (True, False):
        entry: dict[str, object] = {"name": "ears"}
        if vote in FLAG_OF:
            entry[FLAG_OF[vote]] = enabled
        votes = stage.voting(
            {"actions": "allocate", "tiers": [{"plugins": [entry]}]}, ears
        )
        name = other.get(hook, hook)
        getattr(votes, name)(*about.get(name, (job_state,)))

    assert len(heard) == (1 if vote in FLAG_OF else 2)


def test_every_plugin_is_notified_of_an_admitted_job() -> None:
    heard: list[str] = []

    class Ear(Plugin):
        def job_enqueued(self, job_state: JobState) -> None:
            heard.append(job_state.job.name)

    stage = Stage()
    votes = stage.votes("one | two", {"one": Ear, "two": type("Other", (Ear,), {})})
    votes.job_enqueued(stage.waits("j"))

    assert heard == ["j", "j"]


class Tally(Plugin):
    """Counts what pods come and go with."""

    heard: Final[list[str]] = []

    def pod_came(self, job_state: JobState, holding: Any, amounts: Any) -> None:  # noqa: ANN401
        self.heard.append(f"+{job_state.job.name}{holding.replica} {amounts['cpu']}")


class Both(Tally):
    """The same, for both."""

    def pod_went(self, job_state: JobState, holding: Any, amounts: Any) -> None:  # noqa: ANN401
        self.heard.append(f"-{job_state.job.name}{holding.replica} {amounts['cpu']}")


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        pytest.param(Both, ["+j0 5", "-j0 5"], id="of pods that come and go"),
        pytest.param(Tally, ["+j0 5"], id="or of those that come"),
        pytest.param(ByName, [], id="or not at all"),
    ],
)
def test_plugins_hear_of_pods_also_of_those_that_are_tried(
    plugin: type[Plugin], want: list[str]
) -> None:
    Tally.heard.clear()
    stage = Stage()
    stage.waits("j")
    stage.votes("ear", {"ear": plugin})

    with Statement(stage.cluster) as statement:
        statement.allocate("j", 0, 1, demand=asks(cpu=5))

    assert Tally.heard == want


def test_plugins_that_retire_hear_of_nothing() -> None:
    Tally.heard.clear()
    stage = Stage()
    stage.waits("j")
    stage.votes("ear", {"ear": Both}).retire()

    with Statement(stage.cluster) as statement:
        statement.allocate("j", 0, 1, demand=asks(cpu=5))

    assert Tally.heard == []
    assert stage.view.handlers == []


def test_plugins_are_found_by_name() -> None:
    votes = Stage().votes("gang | drf")

    assert list(votes.plugins) == ["gang", "drf"]


def test_victims_that_plugins_were_not_asked_about_do_not_go() -> None:
    stage = Stage()
    evictor = stage.waits("j")
    votes = votes_of("preemptable", [[[Victim("z", 9)]]], stage)

    assert votes.preemptable(evictor, pods("a0")) == []


def test_scores_are_asked_for_the_nodes_that_are_meant() -> None:
    class Echo(Plugin):
        def node_order(self, job: Job, role: Role, nodes: Nodes) -> Any:  # noqa: ANN401
            del job, role
            return nodes * 1.0

    stage = Stage()
    job = Job("j", A2, 8)
    votes = stage.votes("echo", {"echo": Echo})
    found = votes.node_scores(job, job.role_ranks[0][0], np.array([3, 1]))

    assert found is not None
    assert found.tolist() == [3.0, 1.0]
