"""Faults: whose pods are deleted, what is held meanwhile, and where they return to.

One test a sentence of the rules. The model beside the engine (``tests.engine.wards``)
knows the rules too, and complains of every deletion that they do not allow.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.engine.event import (
    BindFailed,
    ConfChanged,
    DeletionsKnown,
    Event,
    FaultsKnown,
    JobArrived,
    JobGone,
    LeavesChanged,
    NodesChanged,
    NodesGone,
    PodFaultsReported,
    PodsEnding,
    PodsGone,
    PodsRun,
    RepairKnown,
    TimerFired,
)
from ringleaf.framework.instruction import Bind, Delete, PersistRepair
from ringleaf.model.cluster import Node
from ringleaf.model.decision import Reason, Waiting
from ringleaf.model.demand import Demand
from ringleaf.model.fault import (
    NO_RECOVERY,
    Cause,
    Deletion,
    Down,
    Fault,
    FaultMode,
    PodFault,
    Record,
    Recovery,
    RestartScope,
    SubHealth,
)
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Schema
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import Placement
from ringleaf.model.settings import SwitchMode
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.products import PRODUCTS
from tests.engine.story import PLAIN, PREEMPT, Story, at, conf, job, node, queue, words

A3 = PRODUCTS["atlas-900-a3"]
EIGHT = "01234567"
FAULT_WORDS = (
    "remember",
    "delete",
    "bind",
    "ask",
    "unask",
    "point",
    "repaired",
    "forget",
)


def rules(actions: str = "enqueue, allocate, backfill", **params: object) -> Conf:
    """A configuration without a rate limit, unless *params* say otherwise."""
    given = {"fault-brake-percent": 100} | {
        key.replace("_", "-"): value for key, value in params.items()
    }
    return conf(actions, PLAIN, **{"init-params": given})


def wants(mode: FaultMode = FaultMode.GRACE, **changes: Any) -> Recovery:  # noqa: ANN401
    """What a job wants done that wants its faulty pods deleted."""
    return Recovery(mode, **changes)


PODS_ONLY = wants(pods_only=True)


def ill(name: str, *chips: int, **changes: Any) -> NodesChanged:  # noqa: ANN401
    """A node with unhealthy *chips*, or ill in another way; without, it is well."""
    faulty = {"faulty": mask_of(chips), "unhealthy": mask_of(chips)}
    return NodesChanged((node(name, **(faulty | changes)),))


def weak(name: str, *chips: int) -> NodesChanged:
    """A node of which *chips* work, but not well."""
    return ill(name, weak=mask_of(chips), sub_healthy=bool(chips))


def down(name: str, why: Down | None = Down.NOT_READY) -> NodesChanged:
    """A node that is not ready."""
    return ill(name, ready=False, down=why)


def ails(name: str, *pods: int, cause: Cause = Cause.POD) -> PodFaultsReported:
    """Pods with something wrong of their own."""
    return PodFaultsReported(name, tuple(PodFault(n, cause) for n in pods))


def instructions(story: Story, *kinds: str) -> list[str]:
    """What was just said, without reports and wake-ups; of *kinds*, if given."""
    kinds = kinds or FAULT_WORDS
    return [w for w in map(words, story.said) if w.split()[0] in kinds]


def runs(story: Story, **jobs: Any) -> None:  # noqa: ANN401
    """Jobs by their recoveries, two pods of eight chips each."""
    for name, recovery in jobs.items():
        said = story.arrives(job(name, 8, 2, recovery=recovery))
        assert said[0].startswith(f"bind {name}: 0"), said


# What makes a pod faulty: the first that applies


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (ill("a", 0, ready=False, down=Down.DAEMON), "NodeUnhealthy"),
        (ill("a", 0, ready=False, down=Down.SWITCH), "NodeUnhealthy"),
        (ill("a", 0, ready=False, down=Down.NOT_READY), "CardUnhealthy"),
        (ill("a", ready=False), "NodeUnhealthy"),
        (ill("a", 0, weak=1, sub_healthy=True), "CardUnhealthy"),
        (NodesGone(("a",)), "NodeUnhealthy"),
        (ails("j", 0), "pod-failed"),
        (ails("j", 0, cause=Cause.RELATION), "RelationFaultSeparate"),
        (ails("j", 0, cause=Cause.SUB_HEALTH), "SubHealthFault"),
        (weak("a", 3), "SubHealthFault"),
        (ill("a", weak_switch=True, sub_healthy=True), "SubHealthFault"),
    ],
)
def test_the_first_cause_counts(event: Event, cause: str) -> None:
    story = Story("a b", conf=rules())
    recovery = wants(FaultMode.FORCE, retries=1, sub_health=SubHealth.FORCE_EXIT)
    story.arrives(job("j", recovery=recovery))

    story.hears(event, now=1)

    assert instructions(story, "delete") == [f"delete j: 0 at once ({cause})"]


def test_of_several_causes_of_one_pod_the_first_counts() -> None:
    story = Story("a b", conf=rules())
    story.arrives(job("j", recovery=wants(retries=1, sub_health=SubHealth.FORCE_EXIT)))
    several = (Cause.SUB_HEALTH, Cause.RELATION, Cause.POD)

    story.hears(
        PodFaultsReported("j", tuple(PodFault(0, c) for c in several)), weak("a", 1)
    )

    assert instructions(story, "delete") == ["delete j: 0 (pod-failed)"]


@pytest.mark.parametrize(
    "event",
    [
        ill("a", network_faulty=0xFF),
        ill("a", faulty=0xFF, unhealthy=0),
        ill("a", cordoned=True),
        weak("a", 0),
        ill("a", weak_switch=True, sub_healthy=True),
        ails("j", 0),
        ails("j", 0, cause=Cause.SUB_HEALTH),
    ],
)
def test_an_event_that_is_no_fault_for_the_job_moves_no_pod(event: Event) -> None:
    story = Story("a b", conf=rules())
    story.arrives(job("j", recovery=wants(retries=0)))

    assert story.hears(event, now=1) == []
    assert not story.engine.repairs


def test_a_faulty_chip_makes_only_the_pod_that_holds_it_faulty() -> None:
    story = Story("a b", conf=rules())
    story.arrives(job("j", 4, recovery=wants()), job("k", 4, recovery=wants()))

    story.hears(ill("a", 5), now=1)

    assert instructions(story, "delete") == ["delete k: 0 (CardUnhealthy)"]


# fault-scheduling


@pytest.mark.parametrize("mode", [FaultMode.OFF])
def test_a_job_that_wants_nothing_done_is_left_alone(mode: FaultMode) -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(mode))

    assert story.hears(ill("a", 0), down("b"), now=1) == []
    assert story.hears(ConfChanged(rules("allocate")), now=2) == []


def test_grace_deletes_with_the_grace_period_of_the_pod() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants())

    said = story.hears(ill("a", 3), now=1)

    assert said == [
        "remember j: job 0,1",
        "delete j: 0,1 (CardUnhealthy)",
        "repairing j",
        "wake 901",
    ]
    why = "faulty: pod 0 on a (CardUnhealthy); all its 2 pods are deleted"
    assert story.messages == [f"job 'j' is being repaired: {why}"]


def test_pods_that_vanished_with_their_node_count_among_those_of_the_job() -> None:
    story = Story("a b c", conf=rules())
    story.arrives(job("j", 8, 3, recovery=PODS_ONLY))

    story.hears(NodesGone(("b",)), now=1)

    assert story.messages[0].endswith(
        "pod 1 on b (NodeUnhealthy); 1 of 3 pods is deleted"
    )


def test_pods_that_end_already_count_among_those_of_the_job() -> None:
    story = Story("a b c", conf=rules())
    story.arrives(job("j", 8, 3, recovery=PODS_ONLY))
    story.hears(ill("b", 0), now=1)

    story.hears(ill("c", 0), now=2)

    assert story.messages[0].endswith(
        "pod 2 on c (CardUnhealthy); 1 of 3 pods is deleted"
    )


def test_the_rest_of_a_job_is_deleted_too_where_pods_find_no_place() -> None:
    story = Story("a b c", conf=rules())
    story.arrives(job("j", 8, 3, recovery=PODS_ONLY))
    story.hears(ill("b", 0), now=1)
    story.hears(PodsGone("j", (1,)), now=2)

    story.wakes(14)

    assert story.messages[0].endswith(
        "no node for pod 1 within 12 s; the rest of it is deleted too, 2 pods"
    )


def test_a_job_whose_pod_finds_no_place_gets_reasons_by_node() -> None:
    story = Story("a b c", conf=rules())
    story.arrives(job("j", 8, 3, recovery=PODS_ONLY))
    story.hears(ill("b", 0), now=1)

    story.hears(PodsGone("j", (1,)), now=2)

    why = (
        "job 'j' waits: needs 3 x 8 chips, 1 pod has no node; 1 pod must be replaced, "
        "each needs 8 free chips on one node; 2 pods of it run; nodes: 2 with too few "
        "free chips, 1 with too few healthy chips"
    )
    assert story.messages == [why]
    found = story.engine.explain("j")
    assert isinstance(found, Waiting)
    assert found.message == why
    assert found.hint == "restarting the whole job would not place it now either"


def test_what_is_held_for_a_job_is_no_reason_why_its_pod_finds_no_place() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=PODS_ONLY)
    story.hears(ails("j", 1, cause=Cause.RELATION), now=1)
    story.hears(ill("c", 0), now=2)

    story.hears(PodsGone("j", (1,)), now=3)

    found = story.engine.explain("j")
    assert isinstance(found, Waiting)
    assert found.reasons == {
        Reason.FAILED_BEFORE: 1,
        Reason.FAULTY_CHIPS: 1,
        Reason.TOO_FEW_CHIPS: 1,
    }


def test_a_role_that_lacks_a_pod_is_named() -> None:
    story = Story("a b", conf=rules())
    roles = Role("driver", 0), Role("worker", 8, 2)
    story.arrives(job("j", 8, 2, roles=roles, recovery=PODS_ONLY))
    story.hears(ill("b", 0), now=1)

    story.hears(PodsGone("j", (1,)), now=2)

    assert story.messages == [
        (
            "job 'j' waits: needs 'driver' 1 x 0 and 'worker' 2 x 8 chips, 1 pod has "
            "no node; a pod of role 'worker' finds no node; 2 pods of it run; nodes: 1 "
            "with too few healthy chips, 1 with too few free chips"
        )
    ]


def test_what_has_not_ended_when_the_grace_is_over_is_deleted_at_once() -> None:
    story = Story("a b c", conf=rules(grace_over_time=30))
    runs(story, j=wants())
    story.hears(ill("a", 3), now=1)
    story.hears(PodsGone("j", (1,)), now=5)

    assert story.wakes(30) == []
    assert story.wakes(31) == ["delete j: 0 at once (CardUnhealthy)", "repairing j"]
    assert story.messages[0].endswith("1 pod did not end within 30 s, deleted at once")
    assert story.wakes(99) == []


def test_a_job_that_waited_for_the_rate_limit_has_its_whole_grace() -> None:
    own = rules(grace_over_time=30, fault_brake_percent=5, fault_brake_seconds=60)
    story = Story("a b c d", conf=own)
    runs(story, j=wants(), k=wants())
    story.hears(ill("a", 3), ill("c", 3), now=1)
    story.carry_out(now=2)
    story.wakes(61)
    assert instructions(story, "delete") == ["delete k: 0,1 (CardUnhealthy)"]

    assert story.wakes(90) == []
    story.wakes(91)

    assert instructions(story, "delete") == ["delete k: 0,1 at once (CardUnhealthy)"]


def test_force_deletes_at_once_and_only_once() -> None:
    story = Story("a b c", conf=rules(grace_over_time=30))
    runs(story, j=wants(FaultMode.FORCE))

    story.hears(ill("a", 3), now=1)

    assert instructions(story, "delete") == ["delete j: 0,1 at once (CardUnhealthy)"]
    assert story.wakes(100) == []


@pytest.mark.parametrize("mode", [FaultMode.EXTERNAL_GRACE, FaultMode.EXTERNAL_FORCE])
def test_faulty_pods_that_others_delete_are_reported_once_per_change(
    mode: FaultMode,
) -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(mode))

    assert story.hears(ill("a", 3), now=1) == ["point j: 0 CardUnhealthy"]
    assert story.hears(ill("a", 3, 4), now=2) == []
    assert story.hears(down("b"), now=3) == [
        "point j: 0 CardUnhealthy, 1 NodeUnhealthy"
    ]
    assert story.hears(ill("a"), ill("b"), now=4) == ["point j:"]
    assert story.hears(ill("a", cordoned=True), now=5) == []
    assert not story.engine.repairs


def test_a_job_that_begins_to_want_it_is_repaired() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=Recovery())
    story.hears(ill("a", 3), now=1)

    story.arrives(job("j", 8, 2, recovery=wants()), now=2)

    assert instructions(story, "delete") == ["delete j: 0,1 (CardUnhealthy)"]


def test_a_job_that_no_longer_wants_it_before_anything_was_deleted_is_left() -> None:
    story = Story("a b c d e", conf=rules(fault_brake_percent=5))
    runs(story, j=wants(), k=wants())
    story.hears(ill("a", 3), now=1)
    story.hears(ill("c", 3), now=2)
    assert "k" in story.engine.repairs

    story.arrives(job("k", 8, 2, recovery=Recovery()), now=3)

    assert "k" not in story.engine.repairs
    story.wakes(100)
    assert instructions(story, "delete") == []


@pytest.mark.parametrize(
    "mode", [FaultMode.OFF, FaultMode.EXTERNAL_GRACE, FaultMode.EXTERNAL_FORCE]
)
def test_a_job_that_no_longer_wants_it_keeps_the_pods_that_it_has(
    mode: FaultMode,
) -> None:
    story = Story("a b c", conf=rules())
    story.arrives(job("j", 8, 3, recovery=PODS_ONLY))
    story.hears(ill("b", 0), now=1)
    story.hears(PodsGone("j", (1,)), now=2)

    story.arrives(job("j", 8, 3, recovery=wants(mode, pods_only=True)), now=3)

    assert story.wakes(14) == []
    story.hears(ill("b"), now=20)
    assert instructions(story) == ["bind j: 1 on b 01234567", "repaired j", "forget j"]


@pytest.mark.parametrize("mode", [FaultMode.OFF, FaultMode.EXTERNAL_FORCE])
def test_a_repair_is_over_when_what_is_faulty_is_not_to_be_deleted_any_more(
    mode: FaultMode,
) -> None:
    story = Story("a b c d e f", conf=rules(fault_brake_percent=5))
    story.arrives(job("j", 8, 3, recovery=PODS_ONLY))
    story.hears(ill("b", 0), now=1)
    story.hears(PodsGone("j", (1,)), ill("c", 0), now=2)
    assert story.engine.repairs["j"].rate_limited

    story.arrives(job("j", 8, 3, recovery=wants(mode, pods_only=True)), now=3)

    assert "repaired j" in instructions(story)
    assert not story.engine.repairs


def test_a_repair_that_is_switched_off_does_not_wait_for_the_rate_limit() -> None:
    story = Story("a b c", conf=rules(fault_brake_percent=5))
    story.arrives(job("j", 8, 3, recovery=PODS_ONLY))
    story.hears(ill("b", 0), now=1)
    story.hears(ill("c", 0), now=2)
    assert story.engine.repairs["j"].rate_limited

    story.arrives(job("j", 8, 3, recovery=wants(FaultMode.OFF)), now=3)

    assert not story.engine.repairs["j"].rate_limited


# fault-retry-times


def test_every_failure_of_a_pod_uses_one_retry_and_never_more() -> None:
    story = Story("a b", conf=rules())
    runs(story, j=wants(retries=2))
    for used in (1, 2):
        story.hears(ails("j", 1), now=10 * used)
        assert f"remember j: job 0,1, {used} used" in instructions(story)
        story.hears(ails("j"), PodsGone("j", (0, 1)), now=10 * used + 1)
        assert instructions(story) == [
            f"bind j: 0 on a {EIGHT}, 1 on b {EIGHT}",
            "repaired j",
            f"remember j: over, {used} used",
        ]

    assert story.hears(ails("j", 1), now=50) == []


def test_other_faults_use_no_retry() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(retries=2))

    story.hears(ill("a", 0), now=1)

    assert instructions(story)[0] == "remember j: job 0,1"


def test_a_failure_that_is_reported_again_is_one_failure() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(retries=5))
    story.hears(ails("j", 1), now=1)

    assert story.hears(ails("j", 1), now=2) == []
    assert story.hears(ails("j", 1), PodsGone("j", (1,)), now=3) == []
    assert story.engine.repairs["j"].retries_used == 1


def test_a_pod_that_failed_and_holds_nothing_is_deleted_and_returns() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(pods_only=True, retries=1))

    story.hears(ails("j", 1), PodsGone("j", (1,)), now=1)
    assert instructions(story) == [
        "remember j: pods 1, 1 used",
        "delete j: 1 (pod-failed)",
    ]

    story.carry_out(now=2)
    assert instructions(story)[0] == f"bind j: 1 on b {EIGHT}"


def test_a_pod_that_failed_is_gone_when_nothing_is_wrong_with_it_any_more() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(pods_only=True, retries=1))
    story.hears(ails("j", 1), PodsGone("j", (1,)), now=1)

    story.hears(ails("j"), now=2)

    assert instructions(story)[0] == f"bind j: 1 on b {EIGHT}"


def test_a_pod_that_failed_while_its_job_was_away_is_deleted_when_it_is_back() -> None:
    story = Story("a b", conf=rules())
    one = job("j", recovery=wants(retries=2))
    story.arrives(one)
    story.hears(ails("j", 0), JobGone("j", returns=True), now=1)

    story.arrives(one, now=2)
    assert instructions(story) == [
        "remember j: job 0, 1 used",
        "delete j: 0 (pod-failed)",
    ]

    story.hears(ails("j"), JobGone("j", returns=True), JobArrived(one), now=3)
    assert instructions(story) == [
        f"bind j: 0 on a {EIGHT}",
        "repaired j",
        "remember j: over, 1 used",
    ]


def test_a_pod_that_was_deleted_and_ends_badly_uses_no_retry() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(retries=2))
    story.hears(ill("a", 0), now=1)

    story.hears(ails("j", 0, 1), now=2)
    story.hears(PodsGone("j", (0, 1)), now=3)

    assert instructions(story, "delete", "remember") == []
    assert instructions(story, "bind") == [f"bind j: 0 on c {EIGHT}, 1 on b {EIGHT}"]


def test_an_escalation_uses_no_further_retry() -> None:
    story = Story("a b", conf=rules())
    runs(story, j=wants(pods_only=True, retries=3))
    story.hears(ails("j", 1), now=1)
    story.hears(PodsGone("j", (1,)), ill("b", 0), now=2)

    story.wakes(14)

    assert instructions(story) == [
        "remember j: job 0,1, 1 used",
        "delete j: 0 (pod-failed)",
    ]


# Which pods are deleted


def test_by_default_all_pods_of_the_job_are_deleted() -> None:
    story = Story("a b c d", conf=rules())
    runs(story, j=wants(), k=wants())

    story.hears(ill("b", 0), now=1)

    assert instructions(story, "delete") == ["delete j: 0,1 (CardUnhealthy)"]


@pytest.mark.parametrize("recovery", [PODS_ONLY, wants(process=True)])
def test_a_job_that_wants_it_loses_faulty_pods_only(recovery: Recovery) -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=recovery)

    story.hears(ill("b", 0), now=1)
    assert instructions(story) == ["remember j: pods 1", "delete j: 1 (CardUnhealthy)"]

    story.hears(PodsGone("j", (1,)), now=2)
    assert instructions(story) == [f"bind j: 1 on c {EIGHT}", "repaired j", "forget j"]


@pytest.mark.parametrize("recovery", [PODS_ONLY, wants(process=True)])
def test_without_its_master_no_pod_stays(recovery: Recovery) -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=recovery)

    story.hears(ill("a", 0), now=1)

    assert instructions(story, "delete") == ["delete j: 0,1 (CardUnhealthy)"]


def test_a_job_without_a_master_loses_faulty_pods_only() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(pods_only=True, master=None))

    story.hears(ill("a", 0), now=1)

    assert instructions(story, "delete") == ["delete j: 0 (CardUnhealthy)"]


@pytest.mark.parametrize("pods_only", [True, False])
def test_a_job_that_never_escalates_loses_faulty_pods_only_even_its_master(
    *, pods_only: bool
) -> None:
    story = Story("a b", conf=rules())
    runs(story, j=wants(pods_only=pods_only, escalates=False))

    story.hears(ill("a", 0), now=1)
    assert instructions(story, "delete") == ["delete j: 0 (CardUnhealthy)"]
    story.hears(PodsGone("j", (0,)), now=2)

    for now in (8, 14, 20):
        story.wakes(now)
        assert instructions(story) == []


def test_every_pod_of_a_job_with_roles_is_deleted_and_returns() -> None:
    driver = Role("driver", 0, demand=Demand(resources=(("cpu", 1000),)))
    worker = Role("worker", 8, 2)
    nodes = [node(n, resources={"cpu": 4000}) for n in "abc"]
    story = Story(nodes, conf=rules())
    one = replace(job("j", 8, 2, recovery=wants()), roles=(driver, worker))
    story.arrives(one)
    home = {p.replica: p.node for p in _bound(story)}
    (where,) = {home[n] for n in home} - {home[0], "c"} or {"b"}

    story.hears(ill(where, 0, resources={"cpu": 4000}), now=1)
    assert instructions(story, "delete") == ["delete j: 0,1,2 (CardUnhealthy)"]
    story.carry_out(now=2)

    moved = {p.replica: p.node for p in _bound(story)}
    stays = {n for n, name in home.items() if name != where}
    assert {n: moved[n] for n in stays} == {n: home[n] for n in stays}
    assert "repaired j" in instructions(story, "repaired")


def test_an_elastic_job_runs_on_with_the_pods_it_has() -> None:
    story = Story("a b c", conf=rules())
    story.arrives(job("j", 8, 3, min_available=1, recovery=PODS_ONLY))

    story.hears(ill("c", 0), now=1)
    story.carry_out(now=2)
    assert instructions(story, "delete", "bind") == []
    assert story.running == {"j": [0, 1]}

    assert "remember j: job 0,1,2" in story.wakes(14)


def _bound(story: Story) -> tuple[Placement, ...]:
    (said,) = [each for each in story.said if isinstance(each, Bind)]
    return said.placements


# Nodes that are not ready, or gone


def test_pods_on_a_node_that_is_not_ready_are_deleted_at_once() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants())

    story.hears(down("a"), now=1)

    assert instructions(story, "delete") == [
        "delete j: 0 at once (NodeUnhealthy)",
        "delete j: 1 (NodeUnhealthy)",
    ]


def test_pods_on_a_node_that_a_daemon_calls_unhealthy_have_their_grace() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants())

    story.hears(down("a", Down.DAEMON), now=1)

    assert instructions(story, "delete") == ["delete j: 0,1 (NodeUnhealthy)"]


def test_pods_on_a_node_that_is_gone_are_deleted_and_placed_when_they_are_gone() -> (
    None
):
    story = Story("a b c", conf=rules())
    runs(story, j=PODS_ONLY)

    story.hears(NodesGone(("b",)), now=1)
    assert instructions(story) == [
        "remember j: pods 1",
        "delete j: 1 at once (NodeUnhealthy)",
    ]

    story.carry_out(now=2)
    assert instructions(story, "bind") == [f"bind j: 1 on c {EIGHT}"]


def test_a_report_without_pod_faults_does_not_hide_that_a_node_is_gone() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants())

    story.hears(NodesGone(("b",)), ails("j"), now=1)

    assert instructions(story, "delete") == [
        "delete j: 1 at once (NodeUnhealthy)",
        "delete j: 0 (NodeUnhealthy)",
    ]


def test_pods_of_an_arriving_job_on_unknown_nodes_are_faulty() -> None:
    story = Story("a c", conf=rules())
    places = at(f"a {EIGHT}", f"b {EIGHT}")

    story.hears(JobArrived(job("j", 8, 2, recovery=wants()), places))

    assert instructions(story, "delete") == [
        "delete j: 1 at once (NodeUnhealthy)",
        "delete j: 0 (NodeUnhealthy)",
    ]


def test_pods_that_are_found_running_elsewhere_were_not_lost() -> None:
    story = Story("a b c d e", conf=rules(fault_brake_percent=5))
    runs(story, k=wants(), j=PODS_ONLY)
    story.hears(ill("a", 1), now=1)
    story.hears(NodesGone(("d",)), now=2)
    assert story.engine.repairs["j"].rate_limited

    one = job("j", 8, 2, recovery=PODS_ONLY)
    here = (Placement(1, "e", tuple(range(8))),)
    story.hears(JobGone("j", returns=True), JobArrived(one, here), now=3)

    assert "j" not in story.engine.repairs
    story.wakes(100)
    assert instructions(story, "delete") == []


def test_pods_that_end_by_themselves_and_lose_their_node_are_no_fault() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants())
    story.hears(PodsEnding("j", (0, 1)), now=1)

    story.hears(NodesGone(("b",)), now=2)

    assert instructions(story, "delete", "remember") == []


def test_pods_that_we_deleted_and_that_lose_their_node_are_deleted_at_once() -> None:
    story = Story("a b c d", conf=rules())
    runs(story, j=wants())
    story.hears(ill("a", 0), now=1)

    story.hears(NodesGone(("b",)), now=2)

    assert instructions(story, "delete") == ["delete j: 1 at once (NodeUnhealthy)"]
    story.hears(PodsGone("j", (0,)), now=3)
    assert instructions(story, "bind") == []
    story.hears(PodsGone("j", (1,)), now=4)
    assert instructions(story, "bind") == [f"bind j: 0 on c {EIGHT}, 1 on d {EIGHT}"]


# Sub-health


def test_a_job_is_asked_to_end_first_and_deleted_when_its_time_is_over() -> None:
    story = Story("a b c", conf=rules(grace_over_time=30))
    runs(story, j=wants(sub_health=SubHealth.GRACE_EXIT))

    story.hears(weak("a", 0), now=1)
    assert instructions(story) == ["remember j: pods none", "ask j"]
    assert story.wakes(30) == []
    story.wakes(31)
    assert instructions(story) == [
        "remember j: job 0,1",
        "delete j: 0,1 at once (SubHealthFault)",
    ]

    story.carry_out(now=32)
    assert instructions(story) == [
        f"bind j: 0 on c {EIGHT}, 1 on b {EIGHT}",
        "repaired j",
        "unask j",
        "forget j",
    ]


def test_a_job_that_was_asked_and_of_which_a_pod_ended_loses_the_others() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(sub_health=SubHealth.GRACE_EXIT))
    story.hears(weak("a", 0), now=1)

    story.hears(PodsGone("j", (0,)), now=5)
    assert instructions(story, "delete") == ["delete j: 1 at once (SubHealthFault)"]

    story.hears(PodsGone("j", (1,)), now=6)
    assert instructions(story)[0] == f"bind j: 0 on c {EIGHT}, 1 on b {EIGHT}"
    assert "unask j" in instructions(story)


def test_a_pod_that_ended_when_asked_returns_beside_the_pods_that_stay() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(pods_only=True, sub_health=SubHealth.GRACE_EXIT))
    story.hears(weak("b", 0), now=1)
    assert instructions(story, "ask") == ["ask j"]

    story.hears(PodsGone("j", (1,)), now=5)

    assert instructions(story, "delete") == []
    assert instructions(story, "bind") == [f"bind j: 1 on c {EIGHT}"]


def test_a_job_that_was_asked_and_ended_all_by_itself_is_placed_well() -> None:
    story = Story("a b", conf=rules())
    story.arrives(job("j", recovery=wants(sub_health=SubHealth.GRACE_EXIT)))
    story.hears(weak("a", 0), now=1)

    story.hears(PodsGone("j", (0,)), now=5)

    assert instructions(story) == ["unask j", "forget j", f"bind j: 0 on b {EIGHT}"]


def test_a_job_that_was_asked_is_not_asked_any_more_when_all_is_well_again() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(sub_health=SubHealth.GRACE_EXIT))
    story.hears(weak("a", 0), now=1)

    story.hears(weak("a"), now=5)

    assert instructions(story) == ["unask j", "forget j"]
    assert not story.engine.repairs


def test_a_job_that_was_asked_and_is_gone_is_repaired_no_more() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(sub_health=SubHealth.GRACE_EXIT))
    story.hears(weak("a", 0), now=1)

    story.hears(JobGone("j", returns=True), now=5)

    assert instructions(story) == ["unask j", "forget j"]


def test_a_job_that_was_asked_and_gets_a_real_fault_is_deleted() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(sub_health=SubHealth.GRACE_EXIT))
    story.hears(weak("a", 0), now=1)

    story.hears(ill("b", 0), now=5)

    assert instructions(story, "delete") == ["delete j: 0,1 (CardUnhealthy)"]


def test_forced_exit_deletes_at_once_whatever_the_mode() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(FaultMode.GRACE, sub_health=SubHealth.FORCE_EXIT))

    story.hears(weak("a", 0), now=1)

    assert instructions(story, "delete") == ["delete j: 0,1 at once (SubHealthFault)"]


def test_a_job_that_was_never_asked_to_exit_is_not_asked_to_go_on() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(sub_health=SubHealth.FORCE_EXIT))
    story.hears(weak("a", 3), now=1)
    asks = wants(sub_health=SubHealth.GRACE_EXIT)
    story.arrives(job("j", 8, 2, recovery=asks), now=2)

    story.hears(PodsGone("j", (0, 1)), now=3)

    assert "repaired j" in instructions(story)
    assert instructions(story, "unask") == []


def test_a_hot_switch_comes_only_by_label() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants(pods_only=True, sub_health=SubHealth.HOT_SWITCH))

    assert story.hears(weak("b", 0), now=1) == []
    story.hears(ails("j", 1, cause=Cause.SUB_HEALTH), now=2)

    assert instructions(story, "delete") == ["delete j: 1 at once (SubHealthFault)"]


def test_only_a_job_that_minds_is_not_placed_on_what_does_not_work_well() -> None:
    story = Story([node("a", weak=1, sub_healthy=True)], conf=rules())

    minds = job("j", 4, recovery=wants(sub_health=SubHealth.FORCE_EXIT))
    assert "waiting j" in story.arrives(minds)
    assert story.arrives(job("k", 4)) == ["bind k: 0 on a 0123"]


def test_elsewhere_is_held_for_a_job_that_cannot_return_to_what_is_weak() -> None:
    story = Story("a b", conf=rules())
    one = job("j", recovery=wants(sub_health=SubHealth.FORCE_EXIT))
    story.arrives(one)
    story.hears(weak("a", 1), now=1)
    story.hears(JobGone("j", returns=True), now=2)

    assert "bind k: 0 on a 01234567" in story.arrives(job("k"), now=3)
    assert "waiting l" in story.arrives(job("l"), now=4)
    assert f"bind j: 0 on b {EIGHT}" in story.arrives(one, now=5)


# Escalation


def test_a_stuck_pod_costs_the_job_after_twelve_seconds() -> None:
    story = Story("a b", conf=rules())
    runs(story, j=PODS_ONLY)
    story.hears(ill("b", 0), now=1)
    assert "wake 14" in story.hears(PodsGone("j", (1,)), now=2)

    assert story.wakes(13.9) == ["wake 14"]
    assert "delete j: 0 (CardUnhealthy)" in story.wakes(14)
    assert story.engine.repairs["j"].scope is RestartScope.JOB


def superpods(*sizes: int) -> list[Node]:
    """SuperPoDs of nodes of sixteen chips: ``p0n0``."""
    return [
        Node(f"p{pod}n{n}", A3, 16, 0xFFFF, superpod=pod)
        for pod, size in enumerate(sizes)
        for n in range(size)
    ]


def blocks(name: str, pods: int, block: int, **changes: Any) -> Job:  # noqa: ANN401
    """A job of logical SuperPoDs of *block* pods."""
    return Job(name, A3, 16, pods, sp_block=16 * block, **changes)


BLOCKS = rules(reserve_nodes=0, super_pod_size=4)


def broken(name: str) -> NodesChanged:
    """A node of a SuperPoD with an unhealthy chip."""
    each = Node(name, A3, 16, 0xFFFF, superpod=int(name[1]), faulty=1, unhealthy=1)
    return NodesChanged((each,))


def test_a_broken_block_is_filled_up_in_its_superpod() -> None:
    story = Story(superpods(3, 2), conf=BLOCKS)
    story.arrives(blocks("j", 4, 2, recovery=wants(pods_only=True, master=None)))
    home = {p.node: p.replica for p in _bound(story)}
    (spare,) = {n.name for n in superpods(3, 2)} - home.keys()
    assert spare.startswith("p0")
    lost = next(name for name in home if name.startswith("p0"))

    story.hears(broken(lost), now=1)
    story.carry_out(now=2)

    assert {p.node: p.replica for p in _bound(story)} == {spare: home[lost]}


def test_a_block_without_room_is_deleted_whole_after_six_seconds_and_moves() -> None:
    story = Story(superpods(2, 2, 2), conf=BLOCKS)
    story.arrives(blocks("j", 4, 2, recovery=wants(pods_only=True, master=None)))
    home = {p.replica: p for p in _bound(story)}
    block = [n for n in home if home[n].block == home[3].block]

    story.hears(broken(home[3].node), now=1)
    assert instructions(story, "delete") == ["delete j: 3 (CardUnhealthy)"]
    assert "wake 8" in story.carry_out(now=2)
    story.wakes(8)
    (left,) = {*block} - {3}
    assert instructions(story) == [
        f"remember j: block {left},3",
        f"delete j: {left} (CardUnhealthy)",
    ]

    story.carry_out(now=9)
    assert {p.node for p in _bound(story)} == {"p2n0", "p2n1"}


def test_the_place_of_a_block_that_moves_is_held_while_it_ends() -> None:
    story = Story(superpods(2, 2, 2), conf=BLOCKS)
    story.arrives(blocks("j", 4, 2, recovery=wants(pods_only=True, master=None)))
    home = {p.replica: p for p in _bound(story)}
    story.hears(broken(home[3].node), now=1)
    story.carry_out(now=2)
    story.wakes(8)
    assert instructions(story, "delete")

    said = story.arrives(blocks("k", 2, 2, priority=9), now=8.5)

    assert "waiting k" in said
    story.hears(PodsGone("j", (2,)), now=9)
    assert {p.node for p in _bound(story)} == {"p2n0", "p2n1"}


def test_after_the_block_the_job_is_deleted_twelve_seconds_in_all() -> None:
    story = Story(superpods(2, 2), conf=BLOCKS)
    story.arrives(blocks("j", 4, 2, recovery=wants(pods_only=True, master=None)))
    home = {p.replica: p for p in _bound(story)}
    story.hears(broken(home[3].node), now=1)
    story.carry_out(now=2)
    story.wakes(8)
    assert "remember j: block 2,3" in instructions(story)
    story.wakes(20)
    assert instructions(story) == []

    story.hears(PodsGone("j", (2,)), now=21)
    assert instructions(story, "delete") == []
    assert story.wakes(26.9) == ["wake 27"]
    story.wakes(27)
    assert instructions(story, "delete") == ["delete j: 0,1 (CardUnhealthy)"]


def test_a_job_of_one_block_knows_no_block_to_delete() -> None:
    story = Story(superpods(2), conf=BLOCKS)
    story.arrives(blocks("j", 2, 2, recovery=wants(pods_only=True, master=None)))
    story.hears(broken("p0n1"), now=1)
    story.carry_out(now=2)

    story.wakes(8)
    assert instructions(story) == []
    story.wakes(14)
    assert instructions(story, "remember") == ["remember j: job 0,1"]


def test_an_escalation_waits_for_the_rate_limit_and_not_for_the_hold() -> None:
    own = rules(fault_brake_percent=5, fault_brake_seconds=60, repair_hold_seconds=20)
    story = Story("a b", conf=own)
    runs(story, j=PODS_ONLY)
    story.hears(ill("b", 0), now=1)
    story.carry_out(now=2)

    assert story.wakes(14) == ["rate-limited j", "wake 61"]
    assert story.wakes(40) == []
    story.wakes(61)
    assert instructions(story, "delete") == ["delete j: 0 (CardUnhealthy)"]


# What is held, and where pods return to


def test_healthy_successors_get_the_same_node_and_chips() -> None:
    story = Story("a b c d", conf=rules())
    places = at("a 0246", "b 4567", "c 0123")
    story.hears(JobArrived(job("j", 4, 3, recovery=wants()), places))

    story.hears(ill("b", 5), now=1)
    story.carry_out(now=2)

    assert [p for p in _bound(story) if p.replica != 1] == [places[0], places[2]]


def test_a_pod_returns_to_the_node_of_which_another_chip_failed() -> None:
    story = Story("a b", conf=rules())
    places = at("a 0123", "a 4567")
    story.hears(JobArrived(job("j", 4, 2, recovery=wants()), places))

    story.hears(ill("a", 0), now=1)
    story.carry_out(now=2)

    assert instructions(story, "bind") == ["bind j: 0 on b 0123, 1 on a 4567"]


def test_a_pod_that_had_to_be_separated_does_not_return() -> None:
    story = Story("a b", conf=rules())
    story.arrives(job("j", recovery=wants()))

    story.hears(ails("j", 0, cause=Cause.RELATION), now=1)
    story.carry_out(now=2)

    assert instructions(story, "bind") == [f"bind j: 0 on b {EIGHT}"]


@pytest.mark.parametrize("priority", [0, 9])
def test_places_and_a_spare_are_held_against_every_other_job(priority: int) -> None:
    story = Story("a b c", conf=rules(PREEMPT))
    one = job("j", 8, 2, recovery=wants())
    story.arrives(one)
    story.hears(ill("a", 0), now=1)
    story.hears(JobGone("j", returns=True), now=2)

    said = story.arrives(job("k", priority=priority), now=3)
    assert "waiting k" in said

    story.arrives(one, now=200)
    assert instructions(story, "bind") == [f"bind j: 0 on c {EIGHT}, 1 on b {EIGHT}"]


def test_held_chips_are_free_for_every_job_when_the_time_is_over() -> None:
    story = Story("a b c", conf=rules(repair_hold_seconds=50))
    runs(story, j=wants())
    story.hears(ill("a", 0), now=1)
    story.hears(JobGone("j", returns=True), now=2)
    story.arrives(job("k", 8, 2), now=3)

    assert story.wakes(51.9)[-1] == "wake 52"
    assert f"bind k: 0 on b {EIGHT}, 1 on c {EIGHT}" in story.wakes(52)
    assert not story.engine.repairs


def test_a_job_whose_time_is_over_waits_like_the_others() -> None:
    story = Story("a b", conf=rules(repair_hold_seconds=50))
    runs(story, j=wants())
    story.hears(ill("a", 0), now=1)
    assert "waiting j" in story.carry_out(now=2)

    said = story.wakes(52)
    assert "forget j" in said
    assert story.messages[0].endswith("held for 50 s and are free for other jobs now")
    assert story.hears(ill("a"), now=60)[0].startswith("bind j: 0 on a")


def test_a_job_that_lost_a_pod_for_good_runs_on_when_its_time_is_over() -> None:
    story = Story("a b", conf=rules(repair_hold_seconds=50))
    runs(story, j=wants(pods_only=True, escalates=False))
    story.hears(ill("b", 0), now=1)
    story.carry_out(now=2)

    assert "forget j" in story.wakes(52)
    assert story.hears(ill("b"), now=60) == [f"bind j: 1 on b {EIGHT}"]


def test_what_its_queue_may_use_is_kept_for_a_job_that_is_repaired() -> None:
    own = rules("allocate")
    story = Story("a b c d", conf=own, queues=[queue("default", 16)])
    runs(story, j=wants())
    story.arrives(job("k"), now=1)
    story.hears(ill("a", 1), now=2)
    assert instructions(story, "bind") == []

    story.carry_out(now=3)

    assert instructions(story, "bind") == [f"bind j: 0 on c {EIGHT}, 1 on b {EIGHT}"]


def test_another_queue_uses_what_is_its_own_meanwhile() -> None:
    story = Story("a b c d", conf=rules("allocate"), queues=[queue("q")])
    runs(story, j=wants())
    story.hears(ill("a", 1), now=2)

    story.arrives(job("k", queue="q"), job("l", queue="q"), now=3)

    assert instructions(story, "bind") == [f"bind k: 0 on d {EIGHT}"]


def test_a_spare_that_is_not_needed_is_free_for_others_at_once() -> None:
    story = Story("a b", conf=rules())
    one = job("j", recovery=wants())
    story.arrives(one)
    story.hears(ill("a", 1), now=1)
    story.hears(JobGone("j", returns=True), now=2)
    story.hears(ill("a", 1), JobArrived(job("k")), now=3)
    assert instructions(story, "bind") == []

    story.hears(ill("a"), JobArrived(one), now=4)

    assert instructions(story, "bind") == [
        f"bind j: 0 on a {EIGHT}",
        f"bind k: 0 on b {EIGHT}",
    ]


def test_a_job_that_is_called_like_a_holder_is_none() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants())
    story.hears(ill("a", 1), now=1)
    story.hears(JobGone("j", returns=True), now=2)

    story.arrives(job("j (repair)"), now=3)

    assert instructions(story, "bind") == []
    assert "bind j: 0 on c" in story.arrives(job("j", 8, 2, recovery=wants()), now=4)[0]


def test_pods_that_ended_well_meanwhile_need_no_place() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants())
    story.hears(ill("a", 1), now=1)

    story.hears(PodsGone("j", (1,), succeeded=True), now=2)
    assert "bind k: 0 on b" in story.arrives(job("k"), now=3)[0]

    story.hears(PodsGone("j", (0,)), now=4)
    assert instructions(story) == [f"bind j: 0 on c {EIGHT}", "repaired j", "forget j"]


def test_nodes_that_change_their_place_keep_what_is_held() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants())
    story.hears(ill("a", 1), now=1)
    story.hears(JobGone("j", returns=True), now=2)

    story.hears(ill("z"), ill("a", 1, leaf="L"), now=3)
    story.hears(LeavesChanged((Leaf("L", "1.1.1.1"),)), now=3)
    story.hears(NodesGone(("a",)), now=3)
    story.arrives(job("k", 8, 2), now=4)

    assert instructions(story, "bind") == []
    assert "bind k" in " ".join(story.hears(JobGone("j"), now=5))


def returned(story: Story) -> list[bool]:
    """Of the pods that were just bound, whether it is written that they returned."""
    (said,) = [each for each in story.said if isinstance(each, Bind)]
    return [each.get("reschedule-in-place") == "true" for each in said.annotations]


@pytest.mark.parametrize(
    ("recovery", "event", "found"),
    [
        (wants(pods_only=True, retries=1), ails("j", 1), [True]),
        (PODS_ONLY, ill("b", 3), [False]),
        (wants(retries=1), ails("j", 1), [False, False]),
        (wants(), ill("b", 3), [False, False]),
    ],
    ids=["the same node", "another node", "the whole job", "the job, one elsewhere"],
)
def test_of_pods_that_returned_it_is_written_where_their_job_ran_on(
    recovery: Recovery, event: Event, found: list[bool]
) -> None:
    story = Story("a b c", conf=rules())
    story.arrives(job("j", 8, 2, recovery=recovery))
    assert returned(story) == [False, False]
    story.hears(event, now=1)
    story.carry_out(now=2)

    assert returned(story) == found


def test_a_pending_job_lacks_only_what_is_not_held_for_it() -> None:
    story = Story("a b", conf=rules())
    runs(story, j=wants())
    story.hears(ill("a", 1), now=1)
    story.carry_out(now=2)

    found = story.engine.explain("j")
    assert isinstance(found, Waiting)
    assert found.missing == 1


# More faults, and fewer


def test_a_second_fault_during_the_repair_is_dealt_with() -> None:
    story = Story("a b c d", conf=rules())
    runs(story, j=PODS_ONLY)
    story.arrives(job("j", 8, 2, recovery=wants(pods_only=True, master=None)))
    story.hears(ill("b", 1), now=1)

    story.hears(ill("a", 1), now=2)
    assert instructions(story) == ["remember j: job 0,1", "delete j: 0 (CardUnhealthy)"]

    story.hears(PodsGone("j", (0, 1)), now=3)
    assert instructions(story)[0] == f"bind j: 0 on c {EIGHT}, 1 on d {EIGHT}"


def test_a_spare_that_fails_during_the_repair_is_replaced() -> None:
    story = Story("a b c d", conf=rules())
    runs(story, j=wants())
    story.hears(ill("a", 1), now=1)

    story.hears(ill("c", 1), now=2)
    story.carry_out(now=3)
    story.hears(PodsGone("j", (0, 1)), now=3)

    assert instructions(story)[0] == f"bind j: 0 on d {EIGHT}, 1 on b {EIGHT}"


def test_a_recovery_before_anything_was_deleted_calls_it_off() -> None:
    story = Story("a b c d", conf=rules(fault_brake_percent=5))
    runs(story, j=wants(), k=wants())
    story.hears(ill("a", 1), now=1)
    assert "rate-limited k" in story.hears(ill("c", 1), now=2)

    story.hears(ill("c"), now=3)
    assert instructions(story) == []
    assert [*story.engine.repairs] == ["j"]
    assert not story.engine.context.repairs.rate_limit.waiting
    story.wakes(100)
    assert instructions(story, "delete") == []


def test_a_recovery_after_the_deletion_lets_the_pod_return_home() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants())
    story.hears(ill("a", 1), now=1)
    story.hears(ill("a"), now=2)

    story.hears(PodsGone("j", (0, 1)), now=3)

    assert instructions(story)[0] == f"bind j: 0 on a {EIGHT}, 1 on b {EIGHT}"


def test_home_is_held_again_when_it_recovers() -> None:
    story = Story("a b c", conf=rules())
    one = job("j", recovery=wants())
    story.arrives(one)
    story.hears(ill("a", 1), now=1)
    story.hears(JobGone("j", returns=True), now=2)
    story.arrives(job("k", 8, 3), now=3)

    story.hears(ill("a"), now=4)
    story.arrives(one, now=5)

    assert instructions(story, "bind") == [f"bind j: 0 on a {EIGHT}"]


def test_pods_that_come_back_and_cannot_be_bound_are_placed_again() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants())
    story.hears(ill("a", 1), now=1)
    story.carry_out(now=2)

    story.hears(BindFailed("j", (0,)), now=3)

    assert instructions(story, "bind") == [f"bind j: 0 on c {EIGHT}"]


def test_what_is_wrong_with_other_pods_is_not_forgotten_when_one_is_placed() -> None:
    story = Story("a b c d e", conf=rules(fault_brake_percent=5))
    story.arrives(job("k", 8, 2, recovery=wants()))
    both = wants(pods_only=True, master=None)
    story.arrives(job("j", 8, 2, min_available=1, recovery=both))
    story.hears(ill("a", 1), now=1)
    story.hears(ails("j", 1, cause=Cause.RELATION), PodsGone("j", (0,)), now=2)
    assert "rate-limited j" in [
        f"{r.split()[0]} j" for r in story.hears(TimerFired())
    ] or (story.engine.repairs["j"].rate_limited)

    story.wakes(61)

    assert instructions(story, "delete") == ["delete j: 1 (RelationFaultSeparate)"]


# The rate limit


def test_a_storm_stops_at_the_rate_limit_is_reported_and_goes_on() -> None:
    nodes = [f"n{n:02}" for n in range(40)]
    story = Story(" ".join(nodes), conf=rules(fault_brake_percent=5))
    for n in range(40):
        story.arrives(job(f"j{n:02}", recovery=wants(FaultMode.FORCE)))

    storm = NodesChanged(tuple(node(n, faulty=1, unhealthy=1) for n in nodes[:6]))
    story.hears(storm, now=10)
    assert len(instructions(story, "delete")) == 2
    assert (
        len([t for t in story.messages if "waits for the eviction rate limit" in t])
        == 4
    )
    assert (
        "2 of 40 were deleted in the last 60 s, the limit is 5 %" in story.messages[-1]
    )
    assert story.engine.context.repairs.rate_limit.waiting
    assert story.wakes(69.9)[-1] == "wake 70"

    story.wakes(70)
    assert len(instructions(story, "delete")) == 2
    story.wakes(130)
    assert len(instructions(story, "delete")) == 2
    assert not story.engine.context.repairs.rate_limit.waiting


def test_the_first_job_of_a_while_always_may() -> None:
    story = Story("a b c d", conf=rules(fault_brake_percent=5))
    runs(story, j=wants(), k=wants())

    story.hears(ill("a", 1), ill("c", 1), now=1)

    assert instructions(story, "delete") == ["delete j: 0,1 (CardUnhealthy)"]


def test_succeeded_pods_do_not_count_for_the_percentage_of_the_rate_limit() -> None:
    """Neither for the engine nor for the model beside it."""
    story = Story("a b c d e", conf=rules(fault_brake_percent=60))
    story.arrives(job("j", 8, 4, recovery=wants(pods_only=True, master=None)))
    story.arrives(job("k", 8, recovery=wants()))
    story.hears(ill("a", 0), ill("b", 0), now=1)
    story.hears(PodsGone("j", (0,), succeeded=True), now=2)

    said = story.hears(PodsGone("j", (1,)), ill("e", 0), now=3)

    assert "rate-limited k" in said
    story.ledger.heed(PersistRepair("k", Record(3, deleted=(0,))))
    with pytest.raises(AssertionError, match="the rate limit"):
        story.ledger.heed(Delete("k", (0,), Cause.CHIP, "a chip"))


def test_a_rate_limited_job_that_is_gone_waits_for_nothing() -> None:
    story = Story("a b c d", conf=rules(fault_brake_percent=5))
    runs(story, j=wants(), k=wants())
    story.hears(ill("a", 1), ill("c", 1), now=1)

    story.hears(JobGone("k"), now=2)

    assert not story.engine.context.repairs.rate_limit.waiting
    assert "k" not in story.engine.repairs


def test_a_rate_limited_job_that_returns_is_repaired_then() -> None:
    story = Story("a b c d", conf=rules(fault_brake_percent=5))
    runs(story, j=wants(), k=wants())
    story.hears(ill("a", 1), ill("c", 1), now=1)
    story.hears(JobGone("k", returns=True), now=2)

    places = at(f"c {EIGHT}", f"d {EIGHT}")
    story.hears(JobArrived(job("k", 8, 2, recovery=wants()), places), now=100)

    assert instructions(story, "delete") == ["delete k: 0,1 (CardUnhealthy)"]


def test_a_rate_limit_that_is_lifted_delays_no_job() -> None:
    story = Story("a b c d", conf=rules(fault_brake_percent=5))
    runs(story, j=wants(), k=wants())
    story.hears(ill("a", 1), ill("c", 1), now=1)

    story.hears(ConfChanged(rules()), now=2)

    assert instructions(story, "delete") == ["delete k: 0,1 (CardUnhealthy)"]


# Restarts and standbys


def record_of(story: Story) -> Record:
    (found,) = [
        r for s in story.said if isinstance(s, PersistRepair) and (r := s.record)
    ]
    return found


def after_restart(story: Story, *jobs: Job, **more: Any) -> Story:  # noqa: ANN401
    """An engine that knows what an edge can tell it, and nothing else."""
    ledger = story.ledger
    new = Story([*ledger.nodes.values()], conf=ledger.conf, **more)
    new.now = story.now
    new.ledger.wards = ledger.wards
    for each in jobs:
        held = story.engine.view.job_states.get(each.name)
        places = tuple(held.placements.values()) if held else ()
        ending = tuple(sorted(held.terminating)) if held else ()
        events: list[Event] = [JobArrived(each, places)]
        if ending:
            events.append(PodsEnding(each.name, ending))
        repair = story.engine.repairs.get(each.name)
        if repair is not None and repair.deletion.awaiting_replacement:
            events.insert(0, RepairKnown(each.name, repair.record))
        new.hears(*events)
    return new


def test_an_engine_after_a_restart_decides_as_the_one_before_would() -> None:
    story = Story("a b c d", conf=rules())
    one = job("j", 8, 2, recovery=wants())
    story.arrives(one, job("k"))
    story.hears(ill("b", 1), now=1)
    other = after_restart(story, one, job("k"))

    events = PodsGone("j", (0, 1)), JobArrived(job("l"))
    assert story.hears(*events, now=2) == other.hears(*events, now=2)
    assert "repaired j" in instructions(other, "repaired")


def test_an_engine_after_a_restart_deletes_at_once_pods_past_their_grace() -> None:
    story = Story("a b c", conf=rules(grace_over_time=30))
    one = job("j", 8, 2, recovery=wants())
    story.arrives(one)
    story.hears(ill("a", 1), now=1)
    other = after_restart(story, one)

    assert other.wakes(31)[0] == "delete j: 0,1 at once (CardUnhealthy)"


def test_pods_deleted_at_an_unknown_time_have_their_grace_from_the_fault_on() -> None:
    story = Story("a b c", conf=rules(grace_over_time=30))
    one = job("j", 8, 2, recovery=wants())
    story.arrives(one)
    story.hears(ill("a", 1), now=1)
    story.engine.repairs["j"].deletion.at = None
    other = after_restart(story, one)

    assert other.wakes(31)[0] == "delete j: 0,1 at once (CardUnhealthy)"


def test_a_repair_that_is_known_after_the_job_arrived_holds_too() -> None:
    story = Story("a b c", conf=rules())
    places = at("a 0123", "b 4567")
    known = Record(
        0.0,
        RestartScope.JOB,
        (PodFault(0, Cause.CHIP, "a"),),
        places,
        (0, 1),
        deleted_at=0.0,
    )

    story.hears(
        JobArrived(job("j", 4, 2, recovery=wants())), RepairKnown("j", known), now=1
    )

    assert instructions(story, "bind") == ["bind j: 0 on a 0123, 1 on b 4567"]


def test_a_repair_is_known_before_its_job_is() -> None:
    story = Story("a b", conf=rules())
    places = at(f"a {EIGHT}", f"b {EIGHT}")
    known = Record(
        0.0,
        RestartScope.JOB,
        (PodFault(0, Cause.CHIP, "a"),),
        places,
        (0, 1),
        deleted_at=0.0,
    )
    story.hears(RepairKnown("j", known), now=1)

    story.arrives(job("j", 8, 2, recovery=wants()), job("k", priority=9), now=2)

    assert instructions(story, "bind")[0] == f"bind j: 0 on a {EIGHT}, 1 on b {EIGHT}"


def test_a_job_that_comes_back_with_an_impossible_request_gets_a_reason() -> None:
    story = Story("a b c", conf=rules())
    one = job("j", 8, 2, recovery=wants())
    story.arrives(one)
    story.hears(ill("a", 1), now=1)
    story.hears(PodsGone("j", (0, 1)), JobGone("j", returns=True), now=2)
    assert story.engine.repairs["j"].held.nodes == {"b", "c"}

    story.hears(JobArrived(replace(one, chips=16)), now=3)
    assert "16 chips" in story.messages[0]
    story.hears(NodesChanged((node("d"),)), now=4)
    assert not story.engine.repairs["j"].held.nodes
    story.hears(JobArrived(one), now=5)
    assert story.engine.view.job_states["j"].placements.keys() == {0, 1}


def test_a_pod_that_comes_back_with_an_impossible_request_gets_a_reason() -> None:
    story = Story("a b c", conf=rules())
    one = job("j", 8, 2, recovery=PODS_ONLY)
    story.arrives(one)
    story.hears(ill("b", 1), now=1)
    roles = (Role("small", 8, 1, ranks=(0,)), Role("large", 16, 1, ranks=(1,)))

    story.hears(PodsGone("j", (1,)), JobArrived(replace(one, roles=roles)), now=2)
    assert (
        "'small' 1 x 8 and 'large' 1 x 16 chips, 1 pod has no node" in story.messages[0]
    )
    story.hears(NodesChanged((node("d"),)), now=3)
    story.hears(JobArrived(one), now=5)
    assert story.engine.view.job_states["j"].placements.keys() == {0, 1}


def test_a_repair_is_known_of_a_job_with_an_impossible_request() -> None:
    story = Story("a b", conf=rules())
    places = at(f"a {EIGHT}")
    known = Record(0.0, RestartScope.JOB, (), places, (0,), deleted_at=0.0)
    large = job("j", 16, recovery=wants())

    for events in (
        (RepairKnown("j", known), JobArrived(large)),
        (JobArrived(large), RepairKnown("j", known)),
    ):
        story = Story("a b", conf=rules())
        story.hears(*events, now=1)
        story.hears(NodesChanged((node("c"),)), now=2)
        assert not story.engine.repairs["j"].held.nodes


def test_retries_that_were_used_are_known_after_a_restart() -> None:
    story = Story("a", conf=rules())
    story.ledger.wards.retries["j"] = 2
    over = Record(0.0, retries_used=2, is_over=True)
    story.hears(RepairKnown("j", over), JobArrived(job("j", recovery=wants(retries=2))))

    assert story.hears(ails("j", 0), now=1) == []


def test_a_leading_engine_ignores_a_stale_record() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants())
    story.hears(ill("a", 1), now=1)

    stale = Record(0.0, RestartScope.POD, (PodFault(1, Cause.POD),), (), (1,), 0.5)
    story.hears(RepairKnown("j", stale), now=2)

    assert story.engine.repairs["j"].deletion.awaiting_replacement == {0, 1}


def test_deletions_before_a_restart_count_once_for_the_rate_limit() -> None:
    own = rules(fault_brake_percent=5)
    story = Story("a b c d", conf=own.quiet)
    places = at(f"a {EIGHT}")
    known = Record(
        0.0,
        RestartScope.JOB,
        (PodFault(0, Cause.CHIP, "a"),),
        places,
        (0,),
        deleted_at=0.0,
    )
    story.hears(RepairKnown("j", known), RepairKnown("j", known), now=1)
    rate_limit = story.engine.context.repairs.rate_limit
    assert rate_limit.recent(1.0, own.settings.repairs) == 1

    story.hears(ConfChanged(own), now=2)
    story.arrives(job("k", recovery=wants()), now=3)
    assert story.running == {"k": [0]}
    assert "rate-limited k" in story.hears(ill("b", 1), now=4)


def test_deletions_of_repairs_that_were_over_before_a_restart_count_too() -> None:
    own = rules(fault_brake_percent=5)
    story = Story("a b c d", conf=own)
    story.arrives(job("j", recovery=wants()))
    story.arrives(job("k", recovery=wants()))
    story.hears(ill("a", *range(8)), now=1)
    story.hears(PodsGone("j", (0,)), now=2)
    assert not story.engine.repairs
    deletions = tuple(story.engine.deletions)
    assert deletions == (Deletion(1.0, "j", 1),)

    story = Story("b c d", conf=own)
    story.hears(DeletionsKnown(deletions), now=3)
    story.arrives(job("k", recovery=wants()), now=3)
    assert "rate-limited k" in story.hears(ill("b", *range(8)), now=4)
    assert "delete k: 0 (CardUnhealthy)" in story.wakes(61)


def test_a_job_that_was_asked_to_end_before_a_restart_is_not_asked_again() -> None:
    story = Story("a b c", conf=rules(grace_over_time=30))
    one = job("j", 8, 2, recovery=wants(sub_health=SubHealth.GRACE_EXIT))
    story.arrives(one)
    story.hears(weak("a", 0), now=1)
    known = record_of(story)
    places = tuple(story.engine.view.job_states["j"].placements.values())
    other = Story([*story.ledger.nodes.values()], conf=story.ledger.conf)
    other.ledger.wards = story.ledger.wards

    assert other.hears(RepairKnown("j", known), JobArrived(one, places), now=5) == [
        "wake 31"
    ]
    other.wakes(31)
    assert instructions(other, "delete") == ["delete j: 0,1 at once (SubHealthFault)"]


def test_a_job_that_is_whole_after_a_restart_is_no_longer_asked_to_end() -> None:
    story = Story("a b c", conf=rules(grace_over_time=30))
    one = job("j", 8, 2, recovery=wants(sub_health=SubHealth.GRACE_EXIT))
    story.arrives(one)
    story.hears(weak("a", 0), now=1)
    story.wakes(31)
    other = after_restart(story, one)

    other.hears(PodsGone("j", (0, 1)), now=32)

    assert "unask j" in instructions(other)


def test_a_job_that_returns_keeps_what_is_held_and_one_that_does_not_loses_it() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=wants())
    story.hears(ill("a", 1), now=1)
    story.hears(JobGone("j", returns=True), now=2)
    story.arrives(job("k"), now=3)
    assert instructions(story, "bind") == []

    assert f"bind k: 0 on b {EIGHT}" in story.hears(JobGone("j"), now=4)


def test_a_standby_deletes_nothing_and_takes_over() -> None:
    story = Story("a b c", conf=rules().quiet)
    places = at(f"a {EIGHT}", f"b {EIGHT}")
    story.hears(JobArrived(job("j", 8, 2, recovery=wants()), places))

    assert story.hears(ill("a", 1), now=1) == []
    assert story.wakes(5) == []
    story.hears(ConfChanged(rules()), now=6)
    assert instructions(story, "delete") == ["delete j: 0,1 (CardUnhealthy)"]


def test_a_standby_knows_what_the_leader_repairs() -> None:
    leader = Story("a b c", conf=rules())
    one = job("j", 8, 2, recovery=wants())
    leader.arrives(one)
    leader.hears(ill("a", 1), now=1)
    story = Story([*leader.ledger.nodes.values()], conf=rules().quiet)
    story.ledger.wards = leader.ledger.wards
    places = tuple(leader.engine.view.job_states["j"].placements.values())
    story.hears(JobArrived(one, places), PodsEnding("j", (0, 1)), now=2)
    story.hears(RepairKnown("j", record_of(leader)), now=2)
    story.hears(PodsGone("j", (0, 1)), now=3)

    story.hears(ConfChanged(rules()), now=4)

    assert instructions(story)[0] == f"bind j: 0 on c {EIGHT}, 1 on b {EIGHT}"


def test_a_standby_forgets_what_the_leader_has_repaired() -> None:
    story = Story("a b", conf=rules().quiet)
    known = Record(
        0.0, RestartScope.JOB, (PodFault(0, Cause.CHIP, "a"),), at("a 0"), (0,), 0.0
    )
    story.hears(RepairKnown("j", known), now=1)

    story.hears(RepairKnown("j", Record(0.0, is_over=True)), now=2)

    assert not story.engine.repairs


# Networks


def leaf_nodes(**under: int) -> list[Node]:
    """Nodes under leaves, by their number."""
    return [
        node(f"{leaf}{slot}", leaf=leaf, slot=slot)
        for leaf, size in under.items()
        for slot in range(size)
    ]


def lost_chip(story: Story, name: str) -> NodesChanged:
    """A chip of a node fails; the node stands where it stood."""
    return NodesChanged((replace(story.ledger.nodes[name], faulty=1, unhealthy=1),))


@pytest.mark.parametrize("mode", SwitchMode)
@pytest.mark.parametrize("recovery", [wants(), wants(pods_only=True, master=None)])
def test_a_padding_job_is_repaired_under_its_leaf(
    mode: SwitchMode, recovery: Recovery
) -> None:
    own = rules()
    own = replace(own, settings=replace(own.settings, switch_mode=mode))
    story = Story(leaf_nodes(A=3, B=3), conf=own)
    one = job("j", 8, 2, tor_affinity=Schema.LARGE_MODEL, recovery=recovery)
    story.arrives(one)
    home = {p.replica: p for p in _bound(story)}
    leaf = home[0].node[0]

    story.hears(lost_chip(story, home[1].node), now=1)
    story.carry_out(now=2)

    moved = {p.replica: p for p in _bound(story)}
    assert moved.get(0, home[0]) == home[0]
    assert moved[1].node[0] == leaf
    assert moved[1].node != home[1].node


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_foundation_job_is_repaired_by_the_rule_it_was_placed_by(
    version: str,
) -> None:
    story = Story(leaf_nodes(A=3, B=3), conf=rules(nslb_version=version))
    one = job("j", 8, 4, tor_affinity=Schema.LARGE_MODEL, recovery=wants())
    story.arrives(one)
    home = {p.replica: p for p in _bound(story)}

    story.hears(lost_chip(story, home[3].node), now=1)
    story.carry_out(now=2)

    moved = {p.replica: p for p in _bound(story)}
    assert {n: (p.node, p.chips) for n, p in moved.items() if n != 3} == {
        n: (p.node, p.chips) for n, p in home.items() if n != 3
    }


def test_a_padding_job_below_min_available_is_moved_whole() -> None:
    story = Story(leaf_nodes(A=2, B=2), conf=rules())
    recovery = wants(pods_only=True, master=None)
    story.arrives(job("j", 8, 2, tor_affinity=Schema.LARGE_MODEL, recovery=recovery))
    home = {p.replica: p.node for p in _bound(story)}
    story.hears(lost_chip(story, home[1]), now=1)
    story.carry_out(now=2)
    story.wakes(14)
    story.carry_out(now=15)

    assert {p.node[0] for p in _bound(story)} == {"A", "B"} - {home[0][0]}


# Beside other actions


def test_what_is_reserved_for_a_job_that_lost_pods_is_given_up_for_its_repair() -> None:
    own = conf(PREEMPT, PLAIN, allocate={"reservation-after-seconds": 5})
    own = replace(own, settings=rules().settings)
    story = Story("a b c", conf=own)
    story.arrives(job("j", 8, 2, recovery=wants(retries=3)), job("k"))
    story.hears(PodsGone("j", (1,)), ill("b", cordoned=True), now=1)
    story.wakes(10)
    assert "j" in story.engine.reservations

    story.hears(ill("a", 0), now=11)

    assert instructions(story, "delete") == ["delete j: 0 (CardUnhealthy)"]
    assert "j" not in story.engine.reservations


def test_a_job_that_is_repaired_may_evict_others_for_its_place() -> None:
    story = Story("a b", conf=rules(PREEMPT))
    story.arrives(job("j", recovery=wants(), priority=5), job("k"))
    story.hears(ill("a", 0), now=1)

    said = story.carry_out(now=2)

    assert "evict k: 0 for j (preempt)" in said
    story.carry_out(now=3)
    assert instructions(story, "bind") == [f"bind j: 0 on b {EIGHT}"]


def test_a_job_whose_pods_are_not_made_again_is_given_up_in_the_end() -> None:
    story = Story("a b", conf=rules(repair_hold_seconds=20))
    story.arrives(job("j", recovery=wants(retries=1)))
    story.hears(ails("j", 0), PodsGone("j", (0,)), now=1)

    story.wakes(21)

    assert instructions(story) == [
        "remember j: over, 1 used",
        f"bind j: 0 on a {EIGHT}",
    ]


def test_what_was_deleted_at_once_is_not_deleted_at_once_again() -> None:
    story = Story("a b c", conf=rules(grace_over_time=30))
    runs(story, j=wants())
    story.hears(down("a"), now=1)
    assert instructions(story, "delete")[0] == "delete j: 0 at once (NodeUnhealthy)"

    story.wakes(31)

    assert instructions(story, "delete") == ["delete j: 1 at once (NodeUnhealthy)"]


def test_a_further_fault_of_a_job_that_was_deleted_whole_costs_the_faulty_pod() -> None:
    story = Story("a b c", conf=rules())
    story.arrives(job("j", 8, 3, min_available=1, recovery=PODS_ONLY))
    story.hears(ill("a", 0), now=1)
    assert instructions(story, "delete") == ["delete j: 0,1,2 (CardUnhealthy)"]
    story.carry_out(now=2)
    assert story.running == {"j": [1, 2]}

    story.hears(ill("c", 0), now=3)

    assert instructions(story, "delete") == ["delete j: 2 (CardUnhealthy)"]


def test_a_rate_limited_fault_outlives_the_repair_that_it_came_into() -> None:
    own = rules(fault_brake_percent=5, repair_hold_seconds=20)
    story = Story("a b", conf=own)
    runs(story, j=wants(pods_only=True, escalates=False))
    story.hears(ill("b", 0), now=1)
    story.carry_out(now=2)
    assert "rate-limited j" in story.hears(ill("a", 0), now=3)
    assert "forget j" in story.wakes(22)

    story.wakes(61)

    assert instructions(story, "delete") == ["delete j: 0 (CardUnhealthy)"]


def test_a_job_that_has_all_its_pods_waits_for_none_when_its_time_is_over() -> None:
    own = rules(fault_brake_percent=5, repair_hold_seconds=20)
    story = Story("a b c", conf=own)
    runs(story, j=wants(pods_only=True, master=None))
    story.hears(ill("b", 0), now=1)
    assert "rate-limited j" in story.hears(PodsGone("j", (1,)), ill("a", 0), now=2)

    assert "forget j" in story.wakes(22)

    assert "j" not in story.engine.context.pending.admitted
    story.wakes(61)
    assert instructions(story, "delete") == ["delete j: 0 (CardUnhealthy)"]


def test_the_places_of_pods_that_a_job_has_no_longer_are_held_too() -> None:
    story = Story("a b c", conf=rules())
    story.arrives(job("j", 8, 1, recovery=PODS_ONLY))
    places = at(f"a {EIGHT}", f"b {EIGHT}")

    story.hears(RepairKnown("j", Record(1, placements=places, deleted=(1,))), now=2)

    assert story.engine.repairs["j"].held.nodes == {"b"}


def test_known_faults_and_pods_of_unknown_jobs_change_nothing() -> None:
    story = Story("a")

    assert story.hears(FaultsKnown((Fault("a", Cause.CHIP, "chip 3"),))) == []
    assert story.hears(PodsRun("unknown", (0,))) == []


# What counts for jobs that do not say anything (decision D39).


@pytest.mark.parametrize(
    ("default", "said"),
    [
        ("off", []),
        ("grace", ["delete j: 0,1 (CardUnhealthy)"]),
        ("force", ["delete j: 0,1 at once (CardUnhealthy)"]),
    ],
)
def test_d39_a_default_for_jobs_without_the_label(
    default: str, said: list[str]
) -> None:
    story = Story("a b c", conf=rules(default_fault_scheduling=default))
    runs(story, j=NO_RECOVERY)

    story.hears(ill("a", 0), now=1)

    assert instructions(story, "delete") == said


def test_d39_the_pod_of_a_normal_node_returns_to_it() -> None:
    """Seed 001: pods of faulty nodes go to others, all others back where they were."""
    story = Story("a b c", conf=rules(default_fault_scheduling="grace"))
    runs(story, j=NO_RECOVERY)
    story.hears(ill("b", 0), now=1)

    story.carry_out(now=2)

    assert instructions(story, "bind") == [f"bind j: 0 on a {EIGHT}, 1 on c {EIGHT}"]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"declined": ("fault-scheduling",)}, id="the job says off"),
        pytest.param({"critical": True}, id="pods of the system"),
        pytest.param({"chips": 0}, id="pods without chips"),
    ],
)
def test_d39_jobs_that_a_default_is_not_for(changes: dict[str, Any]) -> None:
    story = Story("a b c", conf=rules(default_fault_scheduling="force"))
    found = replace(job("j", 8, 2), **changes)
    if not found.chips:
        found = replace(found, replicas=0, roles=(Role("helper", 0, 2),))
    story.arrives(found)

    story.hears(down("a"), ill("b", 0), now=1)

    assert story.running["j"] == [0, 1]
    assert instructions(story, "delete") == []


def test_d39_the_label_of_the_job_counts_before_the_default() -> None:
    story = Story("a b c", conf=rules(default_fault_scheduling="force"))
    runs(story, j=wants(FaultMode.GRACE))

    story.hears(ill("a", 0), now=1)

    assert instructions(story, "delete") == ["delete j: 0,1 (CardUnhealthy)"]


def test_d39_a_new_configuration_counts_for_jobs_that_run() -> None:
    story = Story("a b c", conf=rules())
    runs(story, j=NO_RECOVERY)
    story.hears(ill("a", 0), now=1)
    assert instructions(story, "delete") == []

    story.hears(ConfChanged(rules(default_fault_scheduling="grace")), now=2)

    assert instructions(story, "delete") == ["delete j: 0,1 (CardUnhealthy)"]
    assert [*story.engine.view.job_states["j"].job.assumed] == ["fault-scheduling"]

    story.hears(ConfChanged(rules()), now=3)

    assert not story.engine.view.job_states["j"].job.assumed
