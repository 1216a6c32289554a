"""Queues share the cluster: parts, and what follows from them."""

from collections.abc import Mapping
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.framework.job_state import Phase
from ringleaf.model.queue import Queue
from ringleaf.plugins.proportion import Claim, Proportion, filled, queue_shares
from tests.plugins.stage import CHIPS, Stage, as_text, asks, pods

TOTAL: Final = {"cpu": 12}


def deserved(
    queues: list[Queue], asked: list[int], total: Mapping[str, int] = TOTAL
) -> list[int]:
    """What queues deserve of the CPU when their jobs ask so much."""
    by_name = {queue.name: queue for queue in queues}
    asking = {q.name: {"cpu": n} for q, n in zip(queues, asked, strict=True)}
    parts = queue_shares(total, by_name, asking)
    return [parts[queue.name].deserved["cpu"] for queue in queues]


def queue(name: str, weight: int = 1, least: int = 0, most: int | None = None) -> Queue:
    """A queue with a guarantee and a capability of CPU."""
    capability = {} if most is None else {"cpu": most}
    return Queue(name, weight, capability, {"cpu": least} if least else {})


@pytest.mark.parametrize(
    ("queues", "asked", "want"),
    [
        pytest.param([queue("a")], [99], [12], id="one queue deserves the cluster"),
        pytest.param([queue("a")], [5], [5], id="but no more than its jobs ask"),
        pytest.param(
            [queue("a", 2), queue("b")], [99, 99], [8, 4], id="by weight: 2:1"
        ),
        pytest.param(
            [queue("a", 2), queue("b"), queue("c")],
            [2, 99, 99],
            [2, 5, 5],
            id="what one does not ask falls to the others",
        ),
        pytest.param(
            [queue("a", 2, most=3), queue("b"), queue("c", 2)],
            [99, 99, 99],
            [3, 3, 6],
            id="a capability clips, and the rest is shared by weight",
        ),
        pytest.param(
            [queue("a", least=6), queue("b"), queue("c")],
            [99, 99, 99],
            [6, 3, 3],
            id="a guarantee raises, and the others share what is left",
        ),
        pytest.param(
            [queue("a", least=6), queue("b")],
            [0, 99],
            [6, 6],
            id="a guarantee is kept where no job asks for it",
        ),
        pytest.param(
            [queue("a", least=10), queue("b"), queue("c")],
            [99, 1, 99],
            [10, 1, 1],
            id="ours: guarantees never lead beyond the cluster",
        ),
        pytest.param(
            [queue("a", least=12), queue("b", least=24)],
            [99, 99],
            [4, 8],
            id="ours: guarantees beyond the cluster shrink alike",
        ),
        pytest.param(
            [queue("a"), queue("b"), queue("c")],
            [4, 4, 4],
            [4, 4, 4],
            id="all fits: every queue gets what it asks",
        ),
        pytest.param(
            [queue(name) for name in "abcde"],
            [99] * 5,
            [2] * 5,
            id="what does not divide stays over",
        ),
        pytest.param(
            [queue("a", 0), queue("b")], [99, 99], [0, 12], id="no weight, no part"
        ),
    ],
)
def test_what_queues_deserve(
    queues: list[Queue], asked: list[int], want: list[int]
) -> None:
    assert deserved(queues, asked) == want


@pytest.mark.parametrize(
    ("queues", "want"),
    [
        pytest.param([queue("a"), queue("b")], [12, 12], id="the cluster"),
        pytest.param([queue("a", most=5), queue("b")], [5, 12], id="or its capability"),
        pytest.param(
            [queue("a", least=4), queue("b", least=2)],
            [10, 8],
            id="less what is guaranteed to others",
        ),
        pytest.param(
            [queue("a", least=20), queue("b")],
            [20, 0],
            id="nothing where others are guaranteed all",
        ),
    ],
)
def test_the_real_capability(queues: list[Queue], want: list[int]) -> None:
    parts = queue_shares(TOTAL, {each.name: each for each in queues}, {})

    assert [parts[each.name].capability["cpu"] for each in queues] == want


def test_resources_are_shared_one_by_one() -> None:
    queues = {"a": Queue("a", 3), "b": Queue("b")}
    asked = {"a": {"cpu": 99, "chips": 1}, "b": {"cpu": 99, "chips": 99}}
    parts = queue_shares({"cpu": 12, "chips": 8}, queues, asked)

    assert parts["a"].deserved == {"cpu": 9, "chips": 1}
    assert parts["b"].deserved == {"cpu": 3, "chips": 7}


def test_a_resource_that_the_cluster_does_not_count_is_limited_by_the_capability() -> (
    None
):
    queues = {"a": Queue("a", capability={"disk": 5}), "b": Queue("b")}
    parts = queue_shares(TOTAL, queues, {})

    assert parts["a"].deserved["disk"] == parts["a"].capability["disk"] == 5
    assert "disk" not in parts["b"].deserved


def test_a_queue_that_is_gone_deserves_nothing() -> None:
    assert queue_shares(TOTAL, {}, {"gone": {"cpu": 5}})["gone"].deserved == {"cpu": 0}


def test_queues_that_are_gone_share_one_part() -> None:
    """Jobs may name any number of queues, and the parts are found often."""
    queues = {"a": queue("a", least=5), "b": queue("b")}
    asked = {f"made up {i}": {"cpu": 9} for i in range(10)}

    parts = queue_shares(TOTAL, queues, asked | {"b": {"cpu": 99}})

    (gone,) = {id(parts[name]): parts[name] for name in asked}.values()
    assert gone.capability["cpu"] == TOTAL["cpu"] - 5
    assert gone.deserved == {"cpu": 0}
    assert parts["b"].deserved["cpu"] == TOTAL["cpu"] - 5


claims = st.builds(
    lambda weight, low, more: Claim(weight, low, low + more),
    st.integers(0, 7),
    st.integers(0, 9),
    st.integers(0, 30),
)


@given(st.lists(claims, min_size=1, max_size=8), st.integers(0, 40))
def test_filling_gives_away_all_there_is_and_no_more(
    listed: list[Claim], more: int
) -> None:
    total = sum(claim.low for claim in listed) + more
    parts = filled(total, listed)
    asked = sum(claim.high if claim.weight else claim.low for claim in listed)

    assert all(
        claim.low <= part <= claim.high
        for claim, part in zip(listed, parts, strict=True)
    )
    assert min(asked, total) - len(listed) < sum(parts) <= total
    # No queue below its request has less for its weight than one above its low.
    for one, part in zip(listed, parts, strict=True):
        for other, larger in zip(listed, parts, strict=True):
            if part < one.high and larger > other.low:
                assert (part + 1) * other.weight > (larger - 1) * one.weight


def test_the_share_is_what_is_used_of_what_is_deserved() -> None:
    stage = Stage(queues=[Queue("p"), Queue("q")])
    stage.runs("a", "0 1 2", chips=4, queue="p", replicas=8)
    stage.waits("b", queue="q", replicas=4)
    plugin = stage.votes("proportion").plugins["proportion"]
    assert isinstance(plugin, Proportion)

    assert plugin.part("p").deserved == {CHIPS: 16_000}
    assert plugin.share(stage.view.queues["p"]) == 12 / 16
    assert plugin.share(stage.view.queues["q"]) == 0.0
    assert plugin.share(Queue("unknown")) == 0.0


def test_a_queue_that_deserves_nothing_and_uses_something_has_a_full_share() -> None:
    stage = Stage(queues=[Queue("p", 0), Queue("q")])
    stage.runs("a", "0", queue="p")
    plugin = stage.votes("proportion").plugins["proportion"]
    assert isinstance(plugin, Proportion)

    assert plugin.share(stage.view.queues["p"]) == 1.0


@pytest.mark.parametrize(
    ("priority", "want"),
    [
        pytest.param(0, ["q", "p"], id="the smaller share first"),
        pytest.param(1, ["p", "q"], id="but priority before that"),
    ],
)
def test_the_order_of_queues(priority: int, want: list[str]) -> None:
    stage = Stage(queues=[Queue("p", priority=priority), Queue("q")])
    stage.runs("a", "0 1", queue="p", replicas=4)
    stage.waits("b", queue="q", replicas=4)
    votes = stage.votes("proportion")
    queues = [stage.view.queues[name] for name in "pq"]

    assert [each.name for each in sorted(queues, key=votes.queue_key)] == want


@pytest.mark.parametrize(
    ("chips", "want"),
    [
        pytest.param(15, False, id="15 of 16 deserved"),
        pytest.param(16, True, id="all that it deserves"),
        pytest.param(17, True, id="more than it deserves"),
    ],
)
def test_a_queue_is_overused_that_uses_what_it_deserves(
    chips: int,
    want: bool,  # noqa: FBT001
) -> None:
    stage = Stage(queues=[Queue("p"), Queue("q")])
    nodes = " ".join(str(i // 8) for i in range(chips))
    stage.runs("a", nodes, chips=1, queue="p", replicas=32)
    stage.waits("b", chips=1, queue="q", replicas=32)

    assert stage.votes("proportion").overused(stage.view.queues["p"]) is want


def test_overused_means_all_resources_that_its_jobs_ask() -> None:
    stage = Stage(nodes=1, resources={"cpu": 1000})
    stage.runs("a", "0", chips=8, demand=asks(cpu=100))
    votes, own = stage.votes("proportion"), stage.view.queues["default"]
    assert votes.overused(own)

    stage.waits("b", chips=0, demand=asks(cpu=100))
    assert not votes.overused(own)


def test_what_the_cluster_does_not_count_never_makes_a_queue_overused() -> None:
    stage = Stage(nodes=1)
    stage.runs("a", "0", demand=asks(cpu=100))

    assert not stage.votes("proportion").overused(stage.view.queues["default"])


def test_a_queue_that_asks_for_nothing_is_not_overused() -> None:
    stage = Stage()

    assert not stage.votes("proportion").overused(stage.view.queues["default"])


@pytest.mark.parametrize(
    ("amounts", "is_open", "want"),
    [
        pytest.param({CHIPS: 8000}, True, True, id="8 used + 8 of 16 deserved"),
        pytest.param({CHIPS: 9000}, True, False, id="8 used + 9 are more"),
        pytest.param({CHIPS: 0}, True, True, id="what is not asked does not count"),
        pytest.param({"cpu": 10**9}, True, True, id="nor what is not limited"),
        pytest.param({CHIPS: 1000}, False, False, id="nothing while it is closed"),
    ],
)
@pytest.mark.parametrize("vote", ["allocatable", "preemptive"])
def test_a_queue_takes_and_evicts_within_what_it_deserves(
    vote: str,
    amounts: dict[str, int],
    is_open: bool,  # noqa: FBT001
    want: bool,  # noqa: FBT001
) -> None:
    stage = Stage(queues=[Queue("p", is_open=is_open), Queue("q")])
    stage.runs("a", "0", queue="p", replicas=4)
    stage.waits("b", queue="q", replicas=4)
    votes = stage.votes("proportion")

    assert getattr(votes, vote)(stage.view.queues["p"], amounts) is want


@pytest.mark.parametrize(
    ("least", "want"),
    [
        pytest.param(12, True, id="12 + 16 used + 8 admitted - 4 to spare = 32 of 32"),
        pytest.param(13, False, id="33 are more than 32"),
    ],
)
def test_jobs_are_admitted_within_the_real_capability(
    least: int,
    want: bool,  # noqa: FBT001
) -> None:
    """Job a runs 16 pods of a chip and needs 12; job b was admitted and needs 8."""
    stage = Stage()
    stage.runs("a", "0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1", chips=1, min_available=12)
    stage.view.set_phase(stage.waits("b"), Phase.INQUEUE)
    job_state = stage.waits("j", chips=1, replicas=99, min_available=least)

    assert stage.votes("proportion").job_enqueueable(job_state) is want


def test_only_resources_that_the_job_needs_count_when_it_is_admitted() -> None:
    stage = Stage(nodes=1, resources={"cpu": 1000})
    stage.view.set_phase(
        stage.waits("in", chips=1, demand=asks(cpu=5000)), Phase.INQUEUE
    )
    votes = stage.votes("proportion")

    assert votes.job_enqueueable(stage.waits("j", chips=1, demand=asks(cpu=0)))
    assert votes.job_enqueueable(stage.waits("k", chips=1, demand=asks(disk=9)))
    assert not votes.job_enqueueable(stage.waits("l", chips=1, demand=asks(cpu=1)))


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("open", True, id="an open queue"),
        pytest.param("closed", False, id="a closed queue"),
        pytest.param("none", False, id="no such queue"),
    ],
)
def test_only_open_queues_admit_jobs(name: str, want: bool) -> None:  # noqa: FBT001
    stage = Stage(queues=[Queue("open"), Queue("closed", is_open=False)])
    job_state = stage.waits("j", queue=name)

    assert stage.votes("proportion").job_enqueueable(job_state) is want


def test_victims_go_while_their_queue_uses_more_than_it_deserves() -> None:
    """P uses 3 nodes and deserves 2: one pod goes, the next would be of its own."""
    stage = Stage(queues=[Queue("p"), Queue("q")])
    stage.runs("a", "0 1 2", queue="p", replicas=4, min_available=1)
    evictor = stage.waits("b", queue="q", replicas=4)

    found = stage.votes("proportion").reclaimable(evictor, pods("a2 a1 a0"))
    assert as_text(found) == "a2"


@pytest.mark.parametrize(
    ("least", "want"),
    [
        pytest.param(3, "a2 a1 a0", id="a gang that needs all its pods goes whole"),
        pytest.param(2, "a2", id="a gang with a pod too many gives up that one"),
    ],
)
def test_a_gang_goes_whole_when_it_cannot_spare_a_pod(least: int, want: str) -> None:
    stage = Stage(queues=[Queue("p"), Queue("q")])
    stage.runs("a", "0 1 2", queue="p", replicas=3, min_available=least)
    evictor = stage.waits("b", queue="q", replicas=4)

    found = stage.votes("proportion").reclaimable(evictor, pods("a2 a1 a0"))
    assert as_text(found) == want


def test_a_gang_goes_whole_once_its_surplus_is_not_enough() -> None:
    """P uses 4 nodes and deserves 2; the gang spares one pod and needs three."""
    stage = Stage(queues=[Queue("p"), Queue("q")])
    stage.runs("a", "0 1 2 3", queue="p", replicas=4, min_available=3)
    evictor = stage.waits("b", queue="q", replicas=4)

    found = stage.votes("proportion").reclaimable(evictor, pods("a3 a2 a1 a0"))
    assert as_text(found) == "a3 a2 a1 a0"


def test_victims_use_something_of_which_their_queue_has_too_much() -> None:
    stage = Stage(queues=[Queue("p"), Queue("q")], resources={"cpu": 1000})
    stage.runs("a", "0 1 2", queue="p", replicas=4)
    stage.runs("h", "0", chips=0, queue="p", demand=asks(cpu=100))
    evictor = stage.waits("b", queue="q", replicas=4)

    found = stage.votes("proportion").reclaimable(evictor, pods("h0 a2"))
    assert as_text(found) == "a2"


@pytest.mark.parametrize(
    ("victims", "gone", "want"),
    [
        pytest.param("a0", "b0", True, id="its queue had too much for both"),
        pytest.param("b0", "a0", False, id="it may have had too much for one only"),
        pytest.param("c0", "", False, id="a pod that was not named"),
        pytest.param("a0", "c0", False, id="after a pod that was not named"),
    ],
)
def test_which_victims_are_still_agreed_on_after_others_are_gone(
    victims: str, gone: str, *, want: bool
) -> None:
    """P uses 4 nodes and deserves 2: a and b go, in this order."""
    stage = Stage(queues=[Queue("p"), Queue("q")])
    for node, name in enumerate("abcd"):
        stage.runs(name, str(node), queue="p")
    votes = stage.votes("gang | proportion")
    named = votes.reclaimable(stage.waits("e", queue="q", replicas=4), pods("a0 b0 c0"))
    assert as_text(named) == "a0 b0"

    assert votes.reclaimable.still_agreed(pods(victims), pods(gone)) is want


def test_what_is_gone_is_counted_once() -> None:
    """P uses 8 nodes and deserves 4: a, b, c and d go, in this order."""
    stage = Stage(8, queues=[Queue("p"), Queue("q")])
    for node, name in enumerate("abcdefgh"):
        stage.runs(name, str(node), queue="p")
    votes = stage.votes("gang | proportion")
    evictor = stage.waits("i", queue="q", replicas=8)
    votes.reclaimable(evictor, pods("a0 b0 c0 d0 e0"))

    for gone, want in (("c0", True), ("c0 d0", True), ("c0 d0 a0", False)):
        assert votes.reclaimable.still_agreed(pods("b0"), pods(gone)) is want


def test_victims_of_a_queue_that_is_gone_go() -> None:
    stage = Stage(queues=[Queue("q")])
    stage.runs("a", "0 1", queue="gone")
    evictor = stage.waits("b", queue="q", replicas=4)

    found = stage.votes("proportion").reclaimable(evictor, pods("a1 a0"))
    assert as_text(found) == "a1 a0"


def test_parts_follow_jobs_queues_and_nodes() -> None:
    stage = Stage(queues=[Queue("p"), Queue("q")])
    stage.waits("a", queue="p", replicas=4)
    plugin = stage.votes("proportion").plugins["proportion"]
    assert isinstance(plugin, Proportion)
    seen = [plugin.part("p").deserved[CHIPS]]

    stage.waits("b", queue="q", replicas=4)
    seen.append(plugin.part("p").deserved[CHIPS])
    stage.view.put_queue(Queue("p", 3))
    seen.append(plugin.part("p").deserved[CHIPS])
    stage.view.total = {CHIPS: 16_000}
    stage.view.demand_version += 1
    seen.append(plugin.part("p").deserved[CHIPS])

    assert seen == [32_000, 16_000, 24_000, 12_000]


def test_parts_are_not_worked_out_again_for_pods_that_come_and_go() -> None:
    stage = Stage()
    stage.waits("a", replicas=4)
    plugin = stage.votes("proportion").plugins["proportion"]
    assert isinstance(plugin, Proportion)
    before = plugin.part("default")
    stage.view.version += 1

    assert plugin.part("default") is before


@pytest.mark.parametrize("lists_all", [True, False])
def test_what_no_node_names_is_nothing_where_nodes_list_all(
    lists_all: bool,  # noqa: FBT001
) -> None:
    stage = Stage(lists_all=lists_all, queues=[Queue("q")])
    wants = stage.waits("j", chips=0, demand=asks(made_up=1))
    stage.runs("h", "0", chips=0, queue="q", demand=asks(other=1))
    votes, own = stage.votes("proportion"), stage.view.queues["default"]

    podless = stage.waits("k", chips=0, podless=True, demand=asks(quota=1))
    assert votes.job_enqueueable(podless)
    stage.view.leave(podless)
    assert votes.job_enqueueable(wants) is not lists_all
    assert votes.allocatable(own, {"made_up": 1}) is not lists_all
    assert votes.overused(own) is lists_all
    assert as_text(votes.reclaimable(wants, pods("h0"))) == ("h0" if lists_all else "")
