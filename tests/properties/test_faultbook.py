"""Whatever events the fault log gets, the lives of faults are well formed."""

from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ringleaf.framework.fault_log import FaultLog
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Cause, Down, Fault, PodFault
from ringleaf.policies.products import PRODUCTS
from tests.effort import assert_reached, examples

A2 = PRODUCTS["atlas-800t-a2"]
Told = Callable[[FaultLog, float], None]

names = st.sampled_from(["n0", "n1", "job"])
masks = st.integers(0, 3)
nodes = st.builds(
    lambda name, unhealthy, network, weak, down: Node(
        name,
        A2,
        8,
        0xFF,
        faulty=unhealthy,
        unhealthy=unhealthy,
        network_faulty=network,
        weak=weak,
        sub_healthy=bool(weak),
        down=down,
        ready=down is None,
    ),
    names,
    masks,
    masks,
    masks,
    st.none() | st.sampled_from(Down),
)
ailments = st.lists(
    st.builds(PodFault, st.integers(0, 2), st.sampled_from(Cause), names), max_size=3
)


@st.composite
def lives(draw: st.DrawFn) -> Fault:
    fault = Fault(
        draw(names),
        draw(st.sampled_from(Cause)),
        draw(st.sampled_from(["", "chip 0", "switch", "pod 1"])),
        seen=draw(st.integers(0, 5)),
    )
    if draw(st.booleans()):
        fault = replace(fault, acted=fault.seen + 1, jobs=("a",))
    if draw(st.booleans()):
        fault = replace(fault, recovered=fault.seen + 2)
    return fault


events: st.SearchStrategy[Told] = st.one_of(
    nodes.map(lambda node: lambda book, now: book.nodes_changed(None, node, now)),
    nodes.map(lambda node: lambda book, now: book.nodes_changed(node, None, now)),
    st.tuples(names, ailments).map(
        lambda case: lambda book, now: book.report_pod_faults(*case, now)
    ),
    names.map(lambda job: lambda book, now: book.job_gone(job, now)),
    names.map(
        lambda node: lambda book, now: book.node_quarantined(node, "no", now, 9.0)
    ),
    names.map(lambda node: lambda book, now: book.quarantine_ended(node, now)),
    names.map(
        lambda job: lambda book, now: book.mark_acted([*book.open][:2], job, now)
    ),
    st.lists(lives(), max_size=4).map(
        lambda faults: lambda book, now: book.restore(faults, now)
    ),
)
steps = st.lists(
    st.tuples(events, st.sampled_from([0.0, 1.0, 2.0, 50_000.0])), max_size=25
)
reached: Counter[str] = Counter()


@settings(max_examples=examples(400))
@given(steps)
def check_lives(told: list[tuple[Told, float]]) -> None:
    book, now = FaultLog(), 10.0
    for event, later in told:
        now += later
        version, news = book.version, [*book.everything]
        event(book, now)
        if book.version == version:
            assert [f for f in news if f in book.everything] == [*book.everything]
        reached["changed"] += book.version != version

        after = book.version, book.everything
        event(book, now)
        assert (book.version, book.everything) == after

        for key, fault in book.open.items():
            assert key == fault.key
            assert fault.recovered is None
            assert fault in book.of(fault.where)
        for fault in book.recent:
            assert fault.recovered is not None
            assert fault.seen <= fault.recovered
            assert fault.acted is None or fault.acted <= fault.recovered
            reached["acted and recovered"] += fault.acted is not None
        for fault in book.everything:
            assert fault.acted is None or fault.seen <= fault.acted
            assert (fault.acted is None) == (not fault.jobs)
        assert sum(len(book.of(where)) for where in ("n0", "n1", "job")) == len(
            book.open
        )


def test_lives_are_well_formed_and_what_is_said_twice_changes_nothing() -> None:
    reached.clear()

    check_lives()

    assert_reached(reached, "changed", times=101)
    assert_reached(reached, "acted and recovered", times=21)
