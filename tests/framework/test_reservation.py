"""Reservations: what is held of them, which jobs block them, which may use them."""

from math import inf

import pytest
from msgspec.structs import replace
from tests.leaves import A2, A3, leaves, superpods

from ringleaf.framework.job_state import JobState
from ringleaf.framework.reservation import (
    Reservation,
    ReservedSums,
    ends_at,
    place_words,
)
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Schema
from ringleaf.model.mask import full_mask
from ringleaf.model.placement import Placement
from ringleaf.model.run_time import RunTime
from ringleaf.policies.products import PRODUCTS

WHOLE = tuple(range(8))
BIG = Job("big", A2, 8, 2)
PLACES = (Placement(0, "A0", WHOLE), Placement(1, "A1", WHOLE))


def a_reservation(*, aged: bool = True, job: Job = BIG) -> Reservation:
    return Reservation(job, PLACES, since=3.0, why="", aged=aged)


def runs(
    name: str, *places: Placement, estimate: float | None = None, started: float = 0.0
) -> JobState:
    job_state = JobState(Job(name, A2, 8, len(places), estimate_s=estimate))
    job_state.placements = {p.replica: p for p in places}
    job_state.started = started
    return job_state


def test_what_is_free_of_it_is_held_and_more_when_more_is() -> None:
    cluster = leaves("A ##")
    statement = Statement(cluster)
    statement.hold("other", 0, 0b1111)
    statement.commit()
    reservation = a_reservation()

    reservation.hold(cluster)
    assert cluster.free.tolist() == [0, 0]
    assert [h.chips for h in cluster.holdings[reservation.owner]] == [0xF0, 0xFF]
    statement.release("other")
    statement.commit()
    reservation.hold(cluster)
    assert [h.chips for h in cluster.holdings[reservation.owner]] == [0xFF, 0xFF]


def test_how_many_pods_its_nodes_would_hold_at_most() -> None:
    cluster = leaves("A ##", "B #")
    statement = Statement(cluster)
    statement.hold("other", 0, 0b1111)
    statement.commit()
    reservation = a_reservation()

    assert reservation.room(cluster, 8) == 0
    reservation.hold(cluster)
    assert [reservation.room(cluster, asked) for asked in (8, 4, 1)] == [1, 3, 12]
    statement.release("other")
    assert reservation.room(cluster, 8) == 2


def test_letting_go_twice_is_letting_go_once() -> None:
    cluster = leaves("A ##")
    reservation = a_reservation()
    reservation.hold(cluster)
    with Statement(cluster) as statement:
        statement.drop(reservation.owner)
        statement.drop(reservation.owner)
        assert cluster.free.tolist() == [0xFF, 0xFF]

    assert cluster.free.tolist() == [0, 0]


def test_a_job_that_holds_chips_of_the_reservation_blocks_it() -> None:
    reservation = a_reservation()
    inside, outside = (
        runs("inside", Placement(0, "A1", (7,))),
        runs("outside", Placement(0, "B0", (0,))),
    )

    reservation.blocked_by([inside, outside])
    assert [*reservation.blockers] == ["inside"]
    inside.placements = {}
    reservation.unblock()
    assert not reservation.blockers


def test_a_blocker_on_other_nodes_blocks_until_all_its_pods_are_gone() -> None:
    reservation = a_reservation()
    other = runs("other", Placement(0, "B0", (0,)))
    reservation.elsewhere.add("other")
    reservation.blockers["other"] = other

    reservation.unblock()
    assert [*reservation.blockers] == ["other"]
    other.placements = {}
    reservation.unblock()
    assert not reservation.blockers


def test_chips_freed_on_other_nodes_unblock_only_blockers_on_other_nodes() -> None:
    reservation = a_reservation()
    inside = runs("inside", Placement(0, "A1", (7,)))
    other = runs("other", Placement(0, "B0", (0,)))
    reservation.blocked_by([inside])
    reservation.blocked_elsewhere(other)

    reservation.unblock({"B0"})
    assert [*reservation.blockers] == ["inside", "other"]
    other.placements = {}
    reservation.unblock({"B0"})
    assert [*reservation.blockers] == ["inside"]
    inside.placements = {}
    reservation.unblock({"A1"})
    assert not reservation.blockers


@pytest.mark.parametrize("uses_more", [False, True])
def test_pods_without_chips_are_in_the_way_of_a_job_that_uses_more(
    uses_more: bool,  # noqa: FBT001 - a row
) -> None:
    demand = Demand(resources=(("cpu", 1),)) if uses_more else Demand()
    reservation = a_reservation(job=Job("big", A2, 8, 2, demand=demand))

    helper = runs("helper", Placement(0, "A0", ()))
    helper.job = Job("helper", A2, 0, demand=Demand(resources=(("cpu", 1),)))
    reservation.blocked_by([helper])

    assert bool(reservation.blockers) == uses_more


ENDS = [
    pytest.param(10.0, 5.0, 15.0, id="when it started and how long it lasts"),
    pytest.param(10.0, None, inf, id="never, if it does not say"),
]


@pytest.mark.parametrize(("started", "estimate", "want"), ENDS)
def test_when_a_job_is_sure_to_have_ended(
    started: float, estimate: float | None, want: float
) -> None:
    place = Placement(0, "A0", WHOLE)

    assert ends_at(runs("j", place, estimate=estimate, started=started), 4.0) == want


def test_jobs_that_are_asked_to_end_do_so_at_once() -> None:
    job_state = runs("j", Placement(0, "A0", WHOLE))
    job_state.terminating |= {0}

    assert ends_at(job_state, 4.0) == 0.0


def test_it_is_ready_when_the_last_one_in_its_way_has_ended() -> None:
    reservation = a_reservation()
    assert reservation.ready_at(4.0) == 3.0

    place = Placement(0, "A0", WHOLE)
    reservation.blocked_by(
        [runs("x", place, estimate=5.0), runs("y", place, estimate=9.0)]
    )

    assert reservation.ready_at(4.0) == 9.0


def predicted(name: str, node: str, median_s: int, most_s: int) -> JobState:
    job_state = runs(name, Placement(0, node, WHOLE))
    job_state.become(replace(job_state.job, run_time=RunTime(median_s, most_s)))
    return job_state


def test_it_begins_later_when_the_last_job_in_its_way_runs_longer() -> None:
    reservation = a_reservation()
    reservation.blocked_by([predicted("x", "A0", 2, 4), predicted("y", "A1", 8, 32)])

    looks = [(t, reservation.begins_later(t), reservation.check_at) for t in (0, 2, 4)]

    assert looks == [(0, False, 2.0), (2, False, 4.0), (4, False, 8.0)]
    assert reservation.begins_later(8.0)
    assert not reservation.begins_later(9.0)
    reservation.blockers["z"] = runs("z", Placement(0, "A0", WHOLE))
    assert not reservation.begins_later(32.0), "it is not known when it begins"


def test_a_job_that_comes_into_its_way_hides_no_step() -> None:
    reservation = a_reservation()
    reservation.blocked_by([predicted("x", "A0", 8, 32)])
    assert not reservation.begins_later(4.0)

    reservation.blocked_by([predicted("y", "A1", 4, 4)])

    assert reservation.begins_later(8.0)


def test_only_another_spec_of_a_job_in_its_way_is_a_reason_to_look() -> None:
    reservation = a_reservation()
    inside = predicted("x", "A0", 8, 32)
    reservation.blocked_by([inside])
    reservation.begins_later(4.0)

    reservation.job_changed(predicted("y", "B0", 8, 32))
    assert reservation.check_at == 8.0
    reservation.job_changed(inside)
    assert reservation.check_at == -inf


def test_stated_times_alone_move_no_begin() -> None:
    reservation = a_reservation()
    place = Placement(0, "A0", WHOLE)
    reservation.blocked_by([runs("x", place, estimate=5.0)])
    assert not reservation.begins_later(4.0)

    reservation.blocked_by([runs("y", place, estimate=9.0)])

    assert not reservation.begins_later(6.0)
    assert reservation.check_at == inf


YIELDS = [
    pytest.param(4.0, 9.0, True, False, True, id="to a job that ends in time"),
    pytest.param(5.0, 9.0, True, False, True, id="also on the dot"),
    pytest.param(6.0, 9.0, True, False, False, id="not to a job that ends too late"),
    pytest.param(None, 9.0, True, False, False, id="not to a job without an estimate"),
    pytest.param(4.0, 9.0, False, False, False, id="not where others end for it"),
    pytest.param(4.0, None, True, False, False, id="not while its start is unknown"),
    pytest.param(4.0, None, True, True, False, id="strictly not either"),
]


@pytest.mark.parametrize(("estimate", "ready", "aged", "strict", "want"), YIELDS)
def test_it_yields(
    estimate: float | None,
    ready: float | None,
    *,
    aged: bool,
    strict: bool,
    want: bool,
) -> None:
    reservation = a_reservation(aged=aged)
    reservation.blocked_by([runs("x", Placement(0, "A0", WHOLE), estimate=ready)])
    small = JobState(Job("small", A2, 1, estimate_s=estimate))

    assert reservation.may_backfill(small, 4.0, strict=strict) == want


@pytest.mark.parametrize("aged", [True, False])
@pytest.mark.parametrize(
    ("pods", "where", "strict", "want"),
    [
        pytest.param(2, "B0", False, True, id="a job that lacks a pod"),
        pytest.param(2, "B0", True, False, id="strictly not"),
        pytest.param(2, "A0", True, True, id="strictly, if it is in the way"),
        pytest.param(1, "A0", False, False, id="not a job that has all its pods"),
    ],
)
def test_a_reservation_yields_to_a_job_that_cannot_do_without_a_pod_it_lost(
    pods: int, where: str, *, strict: bool, aged: bool, want: bool
) -> None:
    reservation = a_reservation(aged=aged)
    other = runs("other", Placement(0, where, WHOLE))
    other.become(Job("other", A2, 8, pods))
    reservation.blocked_by([other])

    assert reservation.may_backfill(other, 4.0, strict=strict) == want


def test_a_place_is_described_in_the_shape_of_the_topology() -> None:
    cluster = leaves("A ##", "B #")
    plain = place_words(cluster, BIG, PLACES)
    switched = Job("big", A2, 8, 2, tor_affinity=Schema.NORMAL)

    assert plain == "A0, A1"
    assert place_words(cluster, switched, PLACES) == "leaf 'A' (2 pods)"


def test_nodes_without_a_leaf_are_not_described_as_a_leaf() -> None:
    cluster = Cluster([Node("n", A2, 8, full_mask(8))])
    switched = Job("big", A2, 8, tor_affinity=Schema.NORMAL)

    assert place_words(cluster, switched, [Placement(0, "n", WHOLE)]) == ""


def test_superpods_are_described_by_their_number() -> None:
    places = [Placement(i, f"p{i % 2}-00", tuple(range(16))) for i in range(2)]

    said = place_words(superpods(1, 1), Job("big", A3, 16, 2), places)

    assert said == "SuperPoD 0, SuperPoD 1"


def test_many_places_are_counted() -> None:
    cluster = leaves("A ######")
    places = [Placement(i, f"A{i}", WHOLE) for i in range(6)]

    assert place_words(cluster, BIG, places) == "A0, A1, A2, A3 and 2 more"


def test_what_pods_of_every_role_ask_is_held() -> None:
    cpu = Demand(resources=(("cpu", 300),))
    roles = (Role("driver", 0, demand=cpu), Role("worker", 8))
    job = Job("big", A2, 8, 1, roles=roles)
    cluster = Cluster([Node("A0", A2, 8, 0xFF, resources={"cpu": 1000})])
    places = (Placement(0, "A0", WHOLE), Placement(1, "A0", ()))

    Reservation(job, places, since=0, why="", aged=True).hold(cluster)

    assert cluster.node_table.resources.room_of(0, "cpu") == 700


def test_other_products_have_reservations_too() -> None:
    duo = PRODUCTS["atlas-300i-duo"]
    cluster = Cluster([Node("A0", duo, 4, 0b1111)])
    reservation = Reservation(
        Job("j", duo, 2), (Placement(0, "A0", (0, 1)),), since=0, why="", aged=True
    )

    reservation.hold(cluster)

    assert reservation.nodes == {"A0"}
    assert cluster.free.tolist() == [0b1100]


def test_what_reservations_lack_is_added_up_while_their_blockers_go() -> None:
    """Two wait for the same job, of their queue; what it uses it leaves to both."""
    job = Job("j", PRODUCTS["atlas-800t-a2"], 8)
    places = (Placement(0, "n", tuple(range(8))),)
    blocker = JobState(replace(job, name="blocker"))
    blocker.allocated = {job.product.resource: 2000}
    first, second = (
        Reservation(replace(job, name=name), places, since=0.0, why="", aged=False)
        for name in "ab"
    )
    reserved = ReservedSums()
    for reservation in (first, second):
        reservation.blockers["blocker"] = blocker
        reserved.add(reservation)

    def promised(but: Reservation | None = None) -> int:
        found = reserved.promised("default", but)
        return found.get(job.product.resource, 0)

    assert (promised(), promised(first)) == (12_000, 6_000)
    reserved.remove(first)
    assert (promised(), promised(second)) == (6_000, 0)
    blocker.allocated = {}
    reserved.job_changed(blocker)
    assert promised() == 8_000
    reserved.remove(second)
    reserved.job_changed(blocker)
    assert promised() == 0
