"""Engine traces: events in, exact instructions out."""

import gc
import weakref

import pytest
from msgspec.structs import replace

from ringleaf.engine.event import (
    BindFailed,
    ConfChanged,
    Event,
    JobArrived,
    JobGone,
    LeavesChanged,
    NodesChanged,
    NodesGone,
    PodsEnding,
    PodsGone,
    QueueChanged,
    QueueGone,
    TimerFired,
)
from ringleaf.framework.changes import Change
from ringleaf.framework.instruction import Bind, WakeAt
from ringleaf.framework.job_state import Phase
from ringleaf.model.decision import Invalid, Placed, Waiting
from ringleaf.model.demand import Demand, Effect, Operator, PodTerm, Requirement, Taint
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Schema
from ringleaf.model.placement import JobType
from ringleaf.model.queue import Queue
from ringleaf.model.uplinks import Leaf
from tests.engine.memos import drop_memos
from tests.engine.story import (
    NPU,
    PLAIN,
    PREEMPT,
    TIERS,
    Story,
    at,
    conf,
    job,
    node,
    queue,
)

X2 = Demand(required=(Requirement("x", Operator.IN, ("2",)),))


# Jobs


def test_a_job_that_fits_is_bound_at_once() -> None:
    story = Story("a b")

    assert story.arrives(job("j", 8, 2)) == ["bind j: 0 on a 01234567, 1 on b 01234567"]


def test_what_is_written_on_a_pod_comes_with_its_place() -> None:
    story = Story("a")
    story.arrives(job("j", 2))

    (said,) = story.said
    assert isinstance(said, Bind)
    (written,) = said.annotations
    assert written[NPU] == "Ascend910-0,Ascend910-1"


def test_a_job_that_does_not_fit_waits_until_another_is_gone() -> None:
    story = Story("a")

    assert story.arrives(job("one")) == ["bind one: 0 on a 01234567"]
    assert story.arrives(job("two")) == ["waiting two", "wake 300"]
    assert story.hears(JobGone("one"), now=7) == ["bind two: 0 on a 01234567"]


def test_events_that_happen_together_are_answered_together() -> None:
    story = Story("a")
    story.arrives(job("old"))

    said = story.hears(JobGone("old"), JobArrived(job("new")))

    assert said == ["bind new: 0 on a 01234567"]


def test_a_job_that_can_never_run_is_reported_once_and_holds_nothing() -> None:
    story = Story("a", queues=[queue("default", 8)])

    assert story.arrives(job("nine", 9)) == ["invalid nine"]
    assert story.arrives(job("nine", 9)) == []
    assert isinstance(story.engine.explain("nine"), Invalid)
    assert story.arrives(job("eight", 8)) == ["bind eight: 0 on a 01234567"]
    assert story.hears(JobGone("nine")) == []
    assert "nine" not in story.engine.view.job_states


def test_an_invalid_job_that_is_mended_is_placed() -> None:
    story = Story("a")
    story.arrives(job("j", 9))

    story.ledger.invalid.clear()
    assert story.arrives(job("j", 8)) == ["bind j: 0 on a 01234567"]


def test_a_rejected_job_that_becomes_invalid_is_reported() -> None:
    story = Story("a")
    story.arrives(job("one"), job("two"))

    assert story.arrives(job("two", 9), now=1) == ["invalid two"]


def test_a_pending_job_that_becomes_invalid_is_reported() -> None:
    story = Story("a", conf=conf("allocate", (("gang",),)))
    story.arrives(job("one"), job("two"))

    assert "invalid two" in story.arrives(job("two", 9), now=1)


def test_pods_that_run_already_hold_what_they_hold() -> None:
    story = Story("a")

    assert story.hears(JobArrived(job("old", 4), at("a 0123"))) == []
    assert story.arrives(job("new", 4)) == ["bind new: 0 on a 4567"]
    assert story.hears(PodsGone("old", (0,))) == ["bind old: 0 on a 0123"]


def test_pods_that_run_on_unknown_nodes_hold_nothing_here() -> None:
    story = Story("a")

    said = story.hears(
        JobArrived(job("old", 4, 2, min_available=1), at("x 0123", "a 0123"))
    )

    assert said == ["bind old: 0 on a 4567"]


def test_a_job_that_runs_already_started_when_it_says() -> None:
    story = Story("a")

    story.hears(JobArrived(job("old"), at("a 01234567"), started=-50.0), now=9)

    assert story.engine.view.job_states["old"].started == -50.0


def test_an_elastic_job_starts_with_what_fits_and_gets_more_later() -> None:
    story = Story("a b")
    story.arrives(job("other"))

    said = story.arrives(job("j", 8, 2, min_available=1))
    assert said[0] == "bind j: 0 on b 01234567"
    assert story.hears(JobGone("other"), now=5) == ["bind j: 1 on a 01234567"]
    assert story.running == {"j": [0, 1]}


def test_a_gang_starts_whole_or_not_at_all() -> None:
    story = Story("a b")
    story.arrives(job("other"))

    assert story.arrives(job("j", 8, 2)) == ["waiting j", "wake 300"]
    assert story.running == {"other": [0]}


def test_a_job_that_asks_for_more_pods_gets_them() -> None:
    story = Story("a b")
    story.arrives(job("j", 8, 1))

    assert story.arrives(job("j", 8, 2)) == ["bind j: 1 on b 01234567"]


def test_a_job_that_asks_for_fewer_pods_keeps_the_others_until_they_are_gone() -> None:
    story = Story("a b")
    story.arrives(job("j", 8, 2))
    story.arrives(job("next"))

    assert story.arrives(job("j", 8, 1), now=1) == []
    said = story.hears(PodsGone("j", (1,)), now=2)
    assert said == ["bind next: 0 on b 01234567"]


def test_a_running_job_that_could_use_more_pods_sets_no_timer() -> None:
    story = Story("a b")
    story.arrives(job("other"))

    said = story.arrives(job("j", 8, 2, min_available=1))

    assert not any(line.startswith("wake") for line in said)


def test_a_running_job_that_could_use_more_pods_is_not_behind_others() -> None:
    story = Story("a b")
    story.arrives(job("other"))
    story.arrives(job("j", 8, 2, min_available=1))

    assert not any("others before it" in message for message in story.messages)


def test_a_job_that_changes_its_queue_counts_there() -> None:
    story = Story("a b", queues=[queue("p"), queue("q")])
    story.arrives(job("j", queue="p"))

    assert story.arrives(job("j", queue="q")) == []
    assert story.engine.view.queue_usage["q"].allocated[NPU] == 8000


def test_a_waiting_job_that_asks_for_less_is_placed() -> None:
    story = Story("a")
    story.arrives(job("half", 4), job("j", 8))

    assert story.arrives(job("j", 4), now=3) == ["bind j: 0 on a 4567"]


def test_unknown_jobs_are_no_news() -> None:
    story = Story("a")

    said = story.hears(
        JobGone("x"),
        PodsGone("x", (0,)),
        PodsEnding("x", (0,)),
        BindFailed("x", (0,)),
        NodesGone(("x",)),
        QueueGone("x"),
    )

    assert said == []


def test_a_job_of_an_unknown_queue_waits_for_it() -> None:
    story = Story("a")

    assert story.arrives(job("j", queue="q")) == ["waiting j", "wake 300"]
    assert story.messages == [
        "job 'j' waits: needs 1 x 8 chips; queue 'q' does not exist"
    ]
    assert story.hears(QueueChanged(queue("q"))) == ["bind j: 0 on a 01234567"]


def test_the_first_come_is_served_first_among_equals() -> None:
    story = Story("a")
    story.arrives(job("old"))
    story.arrives(job("z"), job("b"))
    story.arrives(job("a"))

    story.hears(JobGone("old"), now=1)

    assert story.running == {"z": [0]}


def test_the_older_job_is_served_first_whenever_it_came() -> None:
    story = Story("a")
    story.arrives(job("old"))
    story.arrives(job("late", created=9.0))
    story.arrives(job("early", created=1.0))

    story.hears(JobGone("old"), now=1)

    assert story.running == {"early": [0]}


TWICE = [
    pytest.param([], JobArrived(job("j")), id="a job that runs"),
    pytest.param([job("k")], JobArrived(job("j")), id="a job that waits"),
    pytest.param([], JobArrived(job("j"), at("a 01234567")), id="pods that run"),
    pytest.param([job("j")], JobGone("j"), id="a job is gone"),
    pytest.param(
        [job("j", 4, 2), job("k")],
        PodsGone("j", (0,), succeeded=True),
        id="a pod ended",
    ),
    pytest.param([job("j", 4, 2)], PodsEnding("j", (0,)), id="a pod is ending"),
    pytest.param([job("j")], NodesChanged((node("a"),)), id="a node as it is"),
    pytest.param([job("j")], NodesChanged((node("b"),)), id="a node that is new"),
    pytest.param(
        [job("j")], NodesChanged((node("a", cordoned=True),)), id="a node changed"
    ),
    pytest.param([job("j"), job("k")], NodesGone(("a",)), id="a node is gone"),
    pytest.param([job("j")], LeavesChanged((Leaf("L"),)), id="leaves"),
    pytest.param([job("j"), job("k")], QueueChanged(queue("default")), id="a queue"),
    pytest.param([job("j", queue="q")], QueueGone("q"), id="a queue is gone"),
    pytest.param([job("j"), job("k")], ConfChanged(conf()), id="a configuration"),
    pytest.param([job("j"), job("k")], TimerFired(), id="time"),
]


@pytest.mark.parametrize(("jobs", "event"), TWICE)
def test_hearing_twice_is_hearing_once(jobs: list[object], event: Event) -> None:
    story = Story("a", conf=conf())
    story.arrives(*jobs)  # type: ignore[arg-type]
    story.hears(event, now=1)
    running = story.running

    assert story.hears(event, now=1) == []
    assert story.running == running


# Pods


def test_a_pod_that_ended_well_is_not_placed_again() -> None:
    story = Story("a b")
    story.arrives(job("j", 8, 2), job("next"))

    said = story.hears(PodsGone("j", (0,), succeeded=True), now=1)

    assert said == ["bind next: 0 on a 01234567"]
    assert story.engine.view.queue_usage["default"].requested[NPU] == 16000


def test_a_job_whose_pods_all_ended_well_waits_for_nothing() -> None:
    story = Story("a b")
    story.arrives(job("j", 8, 2))

    story.hears(PodsGone("j", (0,), succeeded=True), now=1)
    said = story.hears(PodsGone("j", (1,), succeeded=True), now=2)

    assert said == []
    assert not story.engine.context.pending.admitted
    assert not story.engine.context.pending.unadmitted


def test_a_pod_that_was_lost_is_placed_again_beside_the_others() -> None:
    story = Story("a b c")
    story.arrives(job("j", 8, 2))

    said = story.hears(PodsGone("j", (1,)), NodesChanged((node("b", faulty=1),)), now=1)

    assert said == ["bind j: 1 on c 01234567"]


def test_a_running_job_that_lacks_pods_says_how_many_run() -> None:
    story = Story("a b")
    story.arrives(job("j", 8, 2))
    story.hears(NodesChanged((node("b", cordoned=True),)))

    said = story.hears(PodsGone("j", (1,)), now=1)

    assert said[0] == "waiting j"
    (message,) = story.messages
    assert "1 pod of it runs" in message


def test_a_running_job_that_could_never_be_placed_says_how_many_run() -> None:
    story = Story("a b c")
    odd = job("j", 9, 2)

    story.hears(JobArrived(odd, at("a 01")))

    assert story.messages == [
        "job 'j' waits: needs 2 x 9 chips, 1 pod has no node; 1 pod of it runs"
    ]


def test_chips_of_a_pod_that_is_ending_are_held_until_it_is_gone() -> None:
    """D20."""
    story = Story("a b", conf=conf("allocate"))
    story.arrives(job("old"), job("half", 4))
    story.hears(PodsEnding("old", (0,)))

    assert story.arrives(job("new"), now=1) == ["waiting new", "reserved new"]
    assert (
        story.messages[1] == "job 'new' has a reservation: a; it waits for 'old' to end"
    )
    assert story.hears(JobGone("old"), now=2) == ["bind new: 0 on a 01234567"]


def test_chips_of_ending_pods_are_kept_for_the_first_job_that_fits() -> None:
    story = Story("a b", conf=conf("allocate"))
    story.arrives(job("old"), job("half", 4))
    story.hears(PodsEnding("old", (0,)))
    story.arrives(job("first"), now=1)

    assert story.arrives(job("second", priority=9), now=2) == [
        "waiting second",
        "wake 302",
    ]
    assert story.hears(JobGone("old"), now=3)[0] == "bind first: 0 on a 01234567"


def test_chips_of_ending_pods_are_not_kept_for_a_job_that_does_not_fit() -> None:
    story = Story("a b")
    story.arrives(job("old"), job("other"))
    story.hears(PodsEnding("old", (0,)))

    assert story.arrives(job("big", 8, 2), now=1) == ["waiting big", "wake 301"]


def test_a_job_waits_for_no_pods_while_some_of_its_own_are_ending() -> None:
    story = Story("a b")
    story.arrives(job("j", 8, 3, min_available=1))
    assert "j" in story.engine.context.pending.admitted

    story.hears(PodsEnding("j", (1,)), now=1)
    assert "j" not in story.engine.context.pending.admitted

    assert story.hears(PodsGone("j", (1,)), now=2)[0] == "bind j: 1 on b 01234567"


def test_pods_that_could_not_be_bound_are_placed_again() -> None:
    story = Story("a b")
    story.arrives(job("j", 8, 2))

    assert story.hears(BindFailed("j", (0,)), now=1) == ["bind j: 0 on a 01234567"]


def test_a_job_that_could_not_be_bound_at_all_waits_from_the_beginning() -> None:
    story = Story("a", conf=conf("allocate"))
    story.arrives(job("j"))
    story.hears(BindFailed("j", (0,)), NodesChanged((node("a", ready=False),)), now=9)

    job_state = story.engine.view.job_states["j"]
    assert job_state.started is None
    assert job_state.waiting_since == 9
    assert story.phase("j") is Phase.INQUEUE


def test_pods_end_one_by_one_and_each_makes_room() -> None:
    story = Story("a")
    story.arrives(job("j", 4, 2))
    story.arrives(job("one", 4), job("two", 4))

    said = story.hears(PodsGone("j", (1,), succeeded=True), now=1)
    assert said == ["bind one: 0 on a 4567"]
    said = story.hears(PodsGone("j", (0,), succeeded=True), now=2)
    assert said == ["bind two: 0 on a 0123"]


def test_a_job_that_joins_a_closed_equivalence_class_gets_a_reason() -> None:
    story = Story("a")
    story.arrives(job("one"))
    story.arrives(job("two"))

    assert story.arrives(job("three"), now=1) == ["waiting three"]


def test_a_waiting_job_keeps_its_age_when_a_pod_of_it_is_gone_once_more() -> None:
    story = Story("a")
    story.arrives(job("one"), job("two"))

    story.hears(PodsGone("two", (0,)), now=200)

    assert story.engine.view.job_states["two"].waiting_since == 0


def test_a_waiting_job_keeps_its_age_when_it_changes() -> None:
    story = Story("a")
    story.arrives(job("one"), job("two"))

    story.arrives(job("two", priority=3), now=200)

    assert story.engine.view.job_states["two"].waiting_since == 0


def test_the_rest_of_a_job_of_which_some_ended_well_is_placed_again() -> None:
    story = Story("a b")
    story.arrives(job("j", 8, 2))
    story.hears(PodsGone("j", (0,), succeeded=True))

    assert story.hears(PodsGone("j", (1,)), now=1) == ["bind j: 1 on a 01234567"]


def test_pods_that_ended_well_are_never_bound_again() -> None:
    story = Story("a b c")
    story.arrives(job("j", 8, 3, min_available=1))
    story.hears(PodsGone("j", (0,), succeeded=True))

    said = story.hears(PodsGone("j", (1, 2)), now=1)

    assert said == ["bind j: 1 on a 01234567, 2 on b 01234567"]


def test_a_pod_that_the_job_does_not_have_cannot_end_well() -> None:
    story = Story("a")
    story.arrives(job("j"))

    story.hears(PodsGone("j", (7,), succeeded=True))

    assert story.engine.view.job_states["j"].ready == 1


# Nodes


def test_a_node_that_falls_ill_gets_no_new_pods_and_keeps_its_old_ones() -> None:
    story = Story("a")
    story.arrives(job("old", 4))

    assert story.hears(NodesChanged((node("a", ready=False),)), now=1) == []
    assert story.arrives(job("new", 4), now=2)[0] == "waiting new"
    assert story.running == {"old": [0]}
    assert story.hears(NodesChanged((node("a"),)), now=3) == ["bind new: 0 on a 4567"]


def test_faulty_chips_are_not_given() -> None:
    story = Story("a")
    story.hears(NodesChanged((node("a", faulty=0b1),)))

    assert story.arrives(job("j", 2)) == ["bind j: 0 on a 12"]
    assert story.arrives(job("k", 8)) == ["waiting k", "wake 300"]
    said = story.hears(JobGone("j"), NodesChanged((node("a"),)), now=1)
    assert said == ["bind k: 0 on a 01234567"]


def test_a_cordoned_node_gets_no_new_pods_until_it_is_open_again() -> None:
    story = Story([node("a", cordoned=True)])

    assert story.arrives(job("j"))[0] == "waiting j"
    assert story.hears(NodesChanged((node("a"),))) == ["bind j: 0 on a 01234567"]


def test_a_node_label_that_changes_starts_a_pending_job() -> None:
    story = Story([node("a", labels={"x": "1"})])

    assert story.arrives(job("j", demand=X2))[0] == "waiting j"
    said = story.hears(NodesChanged((node("a", labels={"x": "2"}),)))
    assert said == ["bind j: 0 on a 01234567"]


def test_a_taint_that_is_removed_starts_a_pending_job() -> None:
    taint = Taint("t", Effect.NO_SCHEDULE)
    story = Story([node("a", taints=(taint,))])

    assert story.arrives(job("j"))[0] == "waiting j"
    assert story.hears(NodesChanged((node("a"),))) == ["bind j: 0 on a 01234567"]


def test_resources_that_are_added_start_a_pending_job() -> None:
    asks = Demand(resources=(("cpu", 4000),))
    story = Story([node("a", resources={"cpu": 2000})])

    assert story.arrives(job("j", demand=asks))[0] == "waiting j"
    said = story.hears(NodesChanged((node("a", resources={"cpu": 4000}),)))
    assert said == ["bind j: 0 on a 01234567"]


def test_a_node_that_comes_is_used() -> None:
    story = Story("a")
    story.arrives(job("j", 8, 2))

    said = story.hears(NodesChanged((node("b"),)), now=1)

    assert said == ["bind j: 0 on a 01234567, 1 on b 01234567"]


def test_pods_on_a_node_that_goes_are_placed_again() -> None:
    story = Story("a b c")
    story.arrives(job("j", 8, 2))

    assert story.hears(NodesGone(("a",)), now=1) == ["bind j: 0 on c 01234567"]


def test_a_job_on_a_node_that_goes_waits_from_then_on() -> None:
    story = Story("a b")
    story.arrives(job("j", 8), job("k", 4))

    assert story.hears(NodesGone(("a",)), now=5) == ["waiting j", "wake 305"]


def test_a_node_that_moves_takes_its_pods_along() -> None:
    nodes = [node(f"{leaf}{i}", leaf=leaf, slot=i) for leaf in "AB" for i in range(2)]
    story = Story(nodes)
    story.arrives(job("j", 8, 2, tor_affinity=Schema.NORMAL))
    assert story.running == {"j": [0, 1]}
    before = dict(story.ledger.pods)

    moved = node(before["j", 0].node, leaf="C")
    assert story.hears(NodesChanged((moved,)), now=1) == []
    assert story.ledger.pods == before
    cluster = story.engine.view.cluster
    leaf = cluster.leaf_of(cluster.index[moved.name])
    assert leaf is not None
    assert leaf.name == "C"


def test_a_node_that_grows_is_another_node_with_the_same_pods() -> None:
    story = Story([replace(node("a"), chips=4, free=0b1111)])
    story.arrives(job("j", 4))
    assert story.arrives(job("k", 4), now=1)[0] == "waiting k"

    assert story.hears(NodesChanged((node("a"),)), now=2) == ["bind k: 0 on a 4567"]


def test_chips_that_strangers_hold_are_not_given_until_they_say_so() -> None:
    story = Story([node("a", range(4))])

    assert story.arrives(job("j", 8))[0] == "waiting j"
    assert story.hears(NodesChanged((node("a"),)), now=1) == ["bind j: 0 on a 01234567"]


def test_a_cluster_without_nodes_places_no_job_and_reports_it() -> None:
    story = Story([])

    assert story.arrives(job("j"))[0] == "waiting j"
    assert story.hears(NodesChanged((node("a"),)), now=1) == ["bind j: 0 on a 01234567"]


# Leaves


def under(*leaves: str) -> list[object]:
    return [node(f"{leaf}{i}", leaf=leaf, slot=i) for leaf in leaves for i in range(2)]


def test_what_is_learnt_of_leaves_counts_from_then_on() -> None:
    crossed = Leaf("A", crossed_by=(JobType.COMMON,))
    story = Story(under("A", "B"))  # type: ignore[arg-type]
    story.hears(LeavesChanged((crossed, Leaf("B", crossed_by=(JobType.COMMON,)))))
    big = job("j", 8, 4, tor_affinity=Schema.NORMAL)

    assert story.arrives(big)[0] == "waiting j"
    said = story.hears(LeavesChanged(()), now=1)
    assert said == [
        "bind j: 0 on A0 01234567, 1 on A1 01234567, 2 on B0 01234567, 3 on B1 01234567"
    ]


def test_a_pod_may_move_to_a_slot_that_no_full_leaf_has() -> None:
    nodes = [node("A0", leaf="A", slot=0), node("A1", leaf="A", slot=1)]
    story = Story([*nodes, node("B1", leaf="B", slot=1)])
    story.arrives(job("j", 8, 2, tor_affinity=Schema.NORMAL))

    story.hears(NodesGone(("A1",)), now=1)

    assert story.running["j"][0] == 0


def test_pods_keep_their_marks_when_leaves_change() -> None:
    story = Story(under("A", "B"))  # type: ignore[arg-type]
    story.arrives(job("j", 8, 3, tor_affinity=Schema.NORMAL))
    crossing = story.engine.view.cluster.uplinks.crossing.tolist()
    assert crossing == [1, 1]

    story.hears(LeavesChanged((Leaf("A", address="1.1.1.1"),)))

    assert story.engine.view.cluster.uplinks.crossing.tolist() == crossing


# Queues


def test_a_closed_queue_starts_no_job_until_it_is_open() -> None:
    story = Story("a", queues=[queue("q", is_open=False)])

    assert story.arrives(job("j", queue="q"))[0] == "waiting j"
    assert story.hears(QueueChanged(queue("q"))) == ["bind j: 0 on a 01234567"]


def test_a_closed_queue_starts_no_job_without_enqueue() -> None:
    story = Story("a", queues=[queue("q", is_open=False)], conf=conf("allocate"))

    assert story.arrives(job("j", queue="q"))[0] == "waiting j"
    assert story.messages == ["job 'j' waits: needs 1 x 8 chips; queue 'q' is closed"]


def test_a_queue_that_does_not_exist_starts_no_job_without_enqueue() -> None:
    story = Story("a", conf=conf("allocate"))

    assert story.arrives(job("j", queue="q"))[0] == "waiting j"
    assert story.messages == [
        "job 'j' waits: needs 1 x 8 chips; queue 'q' does not exist"
    ]


def test_jobs_of_a_queue_that_is_gone_run_on_and_start_no_more() -> None:
    story = Story("a b", queues=[queue("q")])
    story.arrives(job("old", queue="q"))
    story.hears(QueueGone("q"))

    assert story.arrives(job("new", queue="q"), now=1)[0] == "waiting new"
    assert story.running == {"old": [0]}


def test_a_capability_that_grows_lets_more_jobs_start() -> None:
    story = Story("a b", queues=[queue("q", 8)])
    story.arrives(job("one", queue="q"))

    assert story.arrives(job("two", queue="q"))[0] == "waiting two"
    said = story.hears(QueueChanged(queue("q", 16)), now=1)
    assert said == ["bind two: 0 on b 01234567"]


def test_a_capability_that_shrinks_evicts_no_pod() -> None:
    story = Story("a b", queues=[queue("q", 16)])
    story.arrives(job("one", queue="q"), job("two", queue="q"))

    assert story.hears(QueueChanged(queue("q", 8)), now=1) == []
    assert story.running == {"one": [0], "two": [0]}


def test_an_elastic_job_takes_no_more_than_its_queue_may_use() -> None:
    story = Story("a b c", queues=[queue("q", 16)])

    said = story.arrives(job("j", 8, 3, min_available=1, queue="q"))

    assert said[0] == "bind j: 0 on a 01234567, 1 on b 01234567"
    said = story.hears(QueueChanged(queue("q", 24)), now=1)
    assert said == ["bind j: 2 on c 01234567"]


# Configuration


def test_a_pending_job_is_retried_with_the_new_configuration() -> None:
    story = Story("a", queues=[queue("q", 4)], conf=conf())

    assert story.arrives(job("j", queue="q"))[0] == "waiting j"
    without = conf(tiers=(("gang",), ("predicates",)))
    assert story.hears(ConfChanged(without), now=1) == ["bind j: 0 on a 01234567"]


def test_a_running_job_stays_under_the_new_configuration() -> None:
    story = Story("a b", conf=conf())
    story.arrives(job("j", 8, 2))

    assert story.hears(ConfChanged(conf("allocate, preempt")), now=1) == []
    assert story.running == {"j": [0, 1]}


def test_a_reservation_is_made_anew_under_the_new_configuration() -> None:
    story = Story("a", conf=conf(allocate={"reservation-after-seconds": 10}))
    story.arrives(job("one"), job("two"))
    assert story.wakes(10) == ["reserved two"]

    off = conf(allocate={"reservation": "off"})
    said = story.hears(ConfChanged(off), now=11)

    assert said == ["waiting two"]
    assert not story.engine.reservations
    assert story.engine.view.job_states["two"].waiting_since == 0


def test_an_invalid_job_is_reported_again_only_if_the_message_changes() -> None:
    story = Story("a", conf=conf())
    story.arrives(job("j", 9))

    assert story.hears(ConfChanged(conf("allocate"))) == []


def test_without_enqueue_every_job_is_admitted() -> None:
    story = Story("a", conf=conf("allocate"))
    story.arrives(job("one"), job("two"))

    assert story.phase("two") is Phase.INQUEUE
    story.hears(ConfChanged(conf()), now=1)
    assert story.hears(JobGone("one"), now=2) == ["bind two: 0 on a 01234567"]


def test_without_predicates_labels_do_not_count() -> None:
    story = Story(
        [node("a", labels={"x": "1"})], conf=conf(tiers=(("gang",), ("proportion",)))
    )

    assert story.arrives(job("j", demand=X2)) == ["bind j: 0 on a 01234567"]


def test_without_predicates_labels_do_not_count_for_pods_of_roles_either() -> None:
    roles = Role("driver", 0, demand=X2), Role("worker", 8, demand=X2)
    story = Story(
        [node("a", labels={"x": "1"})], conf=conf(tiers=(("gang",), ("proportion",)))
    )

    (said,) = story.arrives(job("j", roles=roles))

    assert said == "bind j: 0 on a 01234567, 1 on a"


def test_a_complete_job_is_left_alone_where_only_the_actions_change() -> None:
    story = Story("a b", conf=conf())
    story.arrives(job("runs"), job("short", 8, 2, min_available=1))
    before = story.engine.view.job_states["runs"].job

    story.hears(ConfChanged(conf("allocate")), now=1)

    assert story.engine.view.job_states["runs"].job is before
    assert story.hears(JobGone("runs"), now=2) == ["bind short: 1 on a 01234567"]


def test_what_counts_of_a_demand_is_seen_anew_by_a_new_configuration() -> None:
    story = Story([node("a", labels={"x": "1"})], conf=conf())
    story.arrives(job("j", demand=X2))

    said = story.hears(ConfChanged(conf(tiers=(("gang",), ("proportion",)))))

    assert said == ["bind j: 0 on a 01234567"]


def test_scores_count_or_not_as_configured() -> None:
    nodes = [node("a", range(4)), node("b", range(4), labels={"x": "2"})]
    summed = ({"name": "affinity", "arguments": {"sum-scores": True}},)
    for tiers in (PLAIN, (*PLAIN, ("nodeorder", "binpack")), (*PLAIN, summed)):
        story = Story(nodes, conf=conf(tiers=tiers))
        assert story.arrives(job("j", 4)) == ["bind j: 0 on a 0123"]


# Time, and what is asked of the engine


def test_an_idle_engine_that_wakes_says_nothing() -> None:
    story = Story("a")
    assert story.wakes(10) == []
    story.arrives(job("j"))
    assert story.wakes(20) == []


def test_the_same_hour_is_asked_for_once() -> None:
    story = Story("a")
    story.arrives(job("one"))

    assert story.arrives(job("two"), now=1) == ["waiting two", "wake 301"]
    assert story.arrives(job("three", 4), now=2) == ["waiting three"]


def test_a_wake_up_that_is_early_changes_nothing() -> None:
    story = Story("a")
    story.arrives(job("one"), job("two"))

    assert story.wakes(299) == []
    assert story.wakes(300) == ["reserved two"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("runs", Placed), ("waits", Waiting), ("never", Invalid), ("reserved", Waiting)],
)
def test_any_job_can_be_explained(name: str, kind: type[object]) -> None:
    story = Story("a")
    story.arrives(job("runs"), job("never", 9))
    story.arrives(job("reserved", priority=1))
    story.wakes(300)
    story.arrives(job("waits", 4), now=301)
    assert "reserved" in story.engine.reservations
    free = story.engine.view.cluster.free.tolist()

    assert isinstance(story.engine.explain(name), kind)
    assert story.engine.view.cluster.free.tolist() == free


def test_an_explanation_says_what_the_queue_said() -> None:
    story = Story("a", queues=[queue("q", 4)])
    story.arrives(job("j", queue="q"))

    found = story.engine.explain("j")

    assert isinstance(found, Waiting)
    assert (
        found.because
        == "not admitted: queue 'q' has no room: 0 of 4 chips used, job wants 8"
    )


@pytest.mark.parametrize("node_is_free", [True, False])
@pytest.mark.parametrize(
    ("queues", "hint"),
    [
        pytest.param(
            [],
            "create queue 'q', or use one that exists: default",
            id="the queue is missing",
        ),
        pytest.param(
            [queue(name) for name in "fedcba"],
            "create queue 'q', or use one that exists: a, b, c, d and 3 more",
            id="the queue is missing among many",
        ),
        pytest.param(
            [queue("q", is_open=False)],
            "open queue 'q', or use another one",
            id="the queue is closed",
        ),
        pytest.param(
            [queue("q", 4)],
            "admitted jobs of queue 'q' must end first",
            id="the queue is full",
        ),
    ],
)
def test_a_job_that_its_queue_holds_back_gets_a_hint_about_the_queue(
    queues: list[Queue],
    hint: str,
    node_is_free: bool,  # noqa: FBT001 - a row
) -> None:
    story = Story("a", queues=queues)
    if not node_is_free:
        story.arrives(job("old"))
    story.arrives(job("j", queue="q"))

    found = story.engine.explain("j")

    assert isinstance(found, Waiting)
    assert found.hint == hint


def test_a_job_with_a_reservation_that_asks_for_less_is_placed() -> None:
    story = Story("a b")
    story.arrives(job("x"))
    story.arrives(job("big", 8, 2))
    assert story.wakes(300) == ["reserved big", "wake 8940"]

    assert story.arrives(job("big"), now=301) == ["bind big: 0 on b 01234567"]


def test_pods_without_chips_are_placed_with_the_job() -> None:
    roles = (Role("driver", 0), Role("worker", 8))
    story = Story("a")

    assert story.arrives(job("j", 8, roles=roles)) == [
        "bind j: 0 on a 01234567, 1 on a"
    ]


def near(number: int) -> Demand:
    """A pod that must have the one with the number before near it."""
    before = Requirement("app", Operator.IN, (f"{number - 1}",))
    terms = (PodTerm("zone", (before,)),) if number else ()
    return Demand(labels=(("app", f"{number}"),), near=terms)


def test_nothing_is_left_undone_when_rounds_run_out() -> None:
    story = Story([node("a", labels={"zone": "z"})])
    for number in range(7, 0, -1):
        story.arrives(job(f"j{number}", 1, demand=near(number)))

    story.arrives(job("j0", 1, demand=near(0)), now=1)

    assert len(story.running) == 8 or any(isinstance(s, WakeAt) for s in story.said)


def test_a_job_of_which_some_pods_are_ending_still_waits_for_none() -> None:
    story = Story("a b c", conf=conf())
    story.arrives(job("j", 8, 3, min_available=1))
    story.hears(PodsEnding("j", (0, 1)), now=1)

    assert story.hears(PodsGone("j", (0,)), now=2) == []
    assert "j" not in story.engine.context.pending.admitted
    assert story.hears(PodsGone("j", (1,)), now=3) == [
        "bind j: 0 on a 01234567, 1 on b 01234567"
    ]


def test_a_waiting_job_has_no_pods_that_end() -> None:
    story = Story("a", conf=conf())
    story.arrives(job("one"), job("two"))

    assert story.hears(PodsEnding("two", (0,)), now=1) == []
    assert not story.engine.context.victim_search.ending


def test_a_helper_is_placed_again_when_all_others_ended_well() -> None:
    roles = (Role("driver", 0), Role("worker", 8, 2))
    story = Story(under("A", "B"))  # type: ignore[arg-type]
    story.arrives(job("j", 8, 2, roles=roles, tor_affinity=Schema.LARGE_MODEL))
    story.hears(PodsGone("j", (0, 1), succeeded=True), now=1)

    assert story.hears(PodsGone("j", (2,)), now=2) == ["bind j: 2 on A0"]


# Pods that are not made yet, and cycles that are cut short


def podless(name: str, chips: int, **changes: object) -> Job:
    """A job of which nothing is known but how much it will ask."""
    asks = Demand(resources=((NPU, 1000 * chips),))
    return job(name, 0, 1, podless=True, roles=(Role("", 0, demand=asks),), **changes)


def test_a_job_without_pods_is_admitted_and_placed_when_they_are_there() -> None:
    story = Story("a")

    assert story.arrives(podless("j", 8)) == []
    assert story.engine.admitted == ["j"]
    assert story.phase("j") is Phase.INQUEUE
    assert story.arrives(job("j")) == ["bind j: 0 on a 01234567"]


def test_a_job_without_pods_waits_at_the_door_of_a_full_queue() -> None:
    story = Story("a b", queues=[queue("q", 8)], conf=conf())
    story.arrives(job("one", queue="q"))

    assert story.arrives(podless("two", 8, queue="q")) == ["waiting two", "wake 300"]
    assert story.phase("two") is Phase.PENDING
    assert story.wakes(10_000) == []
    story.hears(JobGone("one"))
    assert story.engine.admitted == ["two"]


def test_no_pod_is_evicted_for_a_job_without_pods() -> None:
    story = Story("a", queues=[queue("q", 8)], conf=conf(PREEMPT))
    story.arrives(job("low", queue="q"))

    said = story.arrives(podless("high", 8, queue="q", priority=9), now=10)
    assert said == ["waiting high", "wake 310"]


def test_without_enqueue_a_job_without_pods_is_admitted() -> None:
    story = Story("a", conf=conf("allocate"))
    story.arrives(podless("j", 8))

    assert story.engine.admitted == ["j"]


def test_a_cycle_that_is_cut_short_goes_on_in_the_next() -> None:
    story = Story("a b c")
    jobs = [JobArrived(job(name)) for name in "xyz"]

    first = story.engine.handle_all(jobs, 0.0, 2)
    assert (len(first), story.engine.has_more) == (2, True)
    rest = story.engine.handle_all([], 0.0, 2)
    assert [each.job for each in (*first, *rest) if isinstance(each, Bind)] == [*"xyz"]
    assert not story.engine.has_more


def test_labels_that_come_to_count_are_those_of_pods_that_run() -> None:
    web = (Requirement("app", Operator.IN, ("web",)),)
    apart = Demand(apart=(PodTerm("kubernetes.io/hostname", web),))
    story = Story("a b")
    story.hears(JobArrived(job("j", 1), at("a 0")))
    labelled = job("j", 1, demand=Demand(labels=(("app", "web"),)))

    assert story.hears(JobArrived(labelled, at("a 0"))) == []
    assert story.arrives(job("k", 1, demand=apart)) == ["bind k: 0 on b 0"]

    story.hears(JobArrived(job("j", 1), at("a 0")))
    assert story.arrives(job("l", 1, demand=apart)) == ["bind l: 0 on a 1"]


def test_a_job_with_pod_affinity_starts_when_a_running_pod_gets_labels() -> None:
    web = (Requirement("app", Operator.IN, ("web",)),)
    near = Demand(near=(PodTerm("kubernetes.io/hostname", web),))
    story = Story("a b")
    story.hears(JobArrived(job("j", 1), at("b 0")))
    assert story.arrives(job("k", 1, demand=near))[0] == "waiting k"

    labelled = job("j", 1, demand=Demand(labels=(("app", "web"),)))

    assert story.hears(JobArrived(labelled, at("b 0"))) == ["bind k: 0 on b 1"]


def test_d38_a_default_label_is_for_jobs_that_come_and_for_those_that_wait() -> None:
    """A job that runs without the rule goes on without it."""
    nodes = [node(f"{leaf}{i}", leaf=leaf, slot=i) for leaf in "AB" for i in range(3)]
    plain = conf()
    story = Story(nodes, conf=plain)
    story.arrives(job("runs", 8, 2), job("waits", 8, 6))
    job_states = story.engine.view.job_states

    default = {"default-tor-affinity": "large-model-schema"}
    actions = "enqueue, allocate, backfill"
    story.hears(ConfChanged(conf(actions, PLAIN, **{"init-params": default})))

    assert job_states["runs"].job.tor_affinity is None
    assert job_states["waits"].job.tor_affinity is Schema.LARGE_MODEL
    assert job_states["waits"].job.assumed == ("tor-affinity",)

    story.arrives(job("comes", 8, 3))

    assert story.running["comes"] == [0, 1, 2]
    assert job_states["comes"].job.tor_affinity is Schema.LARGE_MODEL
    marks = [each.mark for each in job_states["comes"].placements.values()]
    assert {mark and mark.job_type for mark in marks} == {JobType.PADDING}

    story.hears(ConfChanged(plain))

    assert job_states["waits"].job.tor_affinity is None
    assert job_states["waits"].job.assumed == ()


def test_it_is_known_which_jobs_are_invalid_and_when_others_arrived() -> None:
    story = Story("a")
    story.arrives(job("never", 9), job("now"), now=7)

    assert [*story.engine.invalid] == ["never"]
    assert story.engine.view.job_states["now"].arrived == 7


def test_queues_that_had_their_share_can_be_forgotten() -> None:
    story = Story("a", conf=conf("allocate", (("proportion",),)))
    story.arrives(job("one"))
    story.arrives(job("two"), now=1)
    pending = story.engine.context.pending
    pending.pass_over("default")
    assert pending.is_satisfied("default")

    drop_memos(story.engine)

    assert not pending.is_satisfied("default")


def test_a_queue_that_uses_its_share_is_skipped_again() -> None:
    """Its first job may still find victims, although the queue may start none."""
    story = Story("a", conf=conf("allocate", (("proportion",),)))
    story.arrives(job("one"))
    story.arrives(job("two"), now=1)
    ctx = story.engine.context
    (line,) = ctx.pending.admitted.classes
    ctx.pending.pass_over("default")
    ctx.victim_search.begin(resumes=False)

    assert ctx.pending.is_satisfied("default")

    assert [*ctx.victim_search.failed] == [line]
    ctx.wakeups.note(Change.RULES_CHANGED)
    assert not ctx.pending.is_satisfied("default")


def test_a_queue_that_has_its_share_is_not_satisfied_while_a_job_lacks_pods() -> None:
    story = Story("a b", conf=conf("allocate", (("proportion",),)))
    story.arrives(job("gang", 8, 2))
    story.arrives(job("two"), now=1)
    story.hears(NodesGone(("b",)), now=2)
    pending = story.engine.context.pending
    assert pending.goes_first(story.engine.view.job_states["gang"])
    pending.admitted.everything_changed()

    pending.pass_over("default")

    assert not pending.is_satisfied("default")


def test_clusters_that_were_replaced_are_not_kept() -> None:
    """Another takes the place of all that is known of nodes when one comes or goes."""
    story = Story("a b", conf=conf("allocate", TIERS))
    seen = []
    gc.disable()
    try:
        for i in range(10):
            seen.append(weakref.ref(story.engine.view.cluster))
            asks = Demand(resources=(("cpu", 1000 + i),))
            story.arrives(job(f"j{i}", 1, demand=asks))
            story.hears(NodesChanged((node(f"n{i}"),)))
        kept = [cluster for cluster in seen if cluster() is not None]
    finally:
        gc.enable()

    assert len(kept) <= 1


@pytest.mark.parametrize("others", [0, 1])
def test_a_job_that_no_empty_cluster_fits_is_told_so_until_nodes_come(
    others: int,
) -> None:
    """Tried or rejected, its report and its explanation say the same."""
    story = Story("a")
    story.arrives(*[job("old")] * others)
    story.arrives(job("big", pods=2))
    never = (
        "cannot start on this cluster, however empty: its 1 node of atlas-800t-a2 has "
        "room for 1 of 2 pods"
    )

    (message,) = story.messages
    found = story.engine.explain("big")

    assert never in message
    assert isinstance(found, Waiting)
    assert found.impossible == never
    assert found.because == ""
    assert found.hint.startswith("add nodes of atlas-800t-a2, or request at most 1 pod")

    told = story.hears(NodesChanged((node("b"),)))

    now = story.engine.explain("big")
    assert never not in "".join(told)
    assert isinstance(now, Waiting if others else Placed)
    assert not (isinstance(now, Waiting) and now.impossible)


def test_a_job_that_no_empty_cluster_fits_is_explained_by_its_closed_queue() -> None:
    story = Story("a", queues=[queue("q", is_open=False)])
    story.arrives(job("big", pods=2, queue="q"))

    found = story.engine.explain("big")

    assert isinstance(found, Waiting)
    assert found.because == "queue 'q' is closed"
    assert found.hint == "open queue 'q', or use another one"
