"""Parts fail and are repaired, at the rates that were given and by the seed."""

from itertools import islice, takewhile

import pytest

from ringleaf.engine.event import NodesChanged
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Down, FaultMode, Recovery
from ringleaf.simulator import clock
from ringleaf.simulator.clock import play
from ringleaf.simulator.failures import (
    HOUR_S,
    NEVER,
    USUAL,
    FailureGenerator,
    Rates,
    read_rates,
)
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import TimedEvent
from tests.simulator.trials import engine, site, spec, trial

YEAR_S = 365 * 24 * HOUR_S
ONLY = {
    kind: read_rates(f"{kind}=1000,{kind}-repair=10")
    for kind in ("chip", "node", "leaf")
}


def within_a_year(rates: Rates, seed: int = 1, n_nodes: int = 16) -> list[TimedEvent]:
    timed_events = FailureGenerator(site(n_nodes), rates, seed)
    return list(takewhile(lambda each: each.at < YEAR_S, timed_events))


def nodes(happening: TimedEvent) -> tuple[Node, ...]:
    assert isinstance(happening.event, NodesChanged)
    return happening.event.nodes


@pytest.mark.parametrize(("kind", "parts"), [("chip", 128), ("node", 16), ("leaf", 4)])
def test_parts_fail_as_often_as_was_given(kind: str, parts: int) -> None:
    """Each part of 8760 h a year is well for 1000 h, and broken for 10."""
    wanted = parts * 8760 / 1010

    failures = len(within_a_year(ONLY[kind])) / 2  # and as many repairs

    assert failures == pytest.approx(wanted, rel=4 / wanted**0.5)


def test_happenings_come_in_the_order_of_time() -> None:
    rates = Rates(2000, 500, 500)

    times = [each.at for each in within_a_year(rates)]

    assert times == sorted(times)
    assert len(times) > 100


def test_a_chip_that_fails_is_faulty_and_makes_pods_faulty() -> None:
    (happening,) = islice(FailureGenerator(site(4), ONLY["chip"], 1), 1)

    (node,) = nodes(happening)

    assert node.ready
    assert node.faulty == node.unhealthy != 0
    assert node.unhealthy.bit_count() == 1


def test_a_leaf_that_fails_takes_all_nodes_under_it_down() -> None:
    (happening,) = islice(FailureGenerator(site(8), ONLY["leaf"], 1), 1)

    found = nodes(happening)

    assert len(found) == 4
    assert len({node.leaf for node in found}) == 1
    assert {node.down for node in found} == {Down.SWITCH}
    assert not any(node.ready for node in found)


def test_what_is_repaired_is_as_it_was() -> None:
    """With one of each, every other happening of a kind is a repair."""
    whole = {node.name: node for node in site(16).nodes}
    last: dict[str, Node] = {}
    rates = Rates(9000, 9000, 9000, chip_repair=1, node_repair=1, leaf_repair=1)
    for happening in within_a_year(rates):
        last |= {node.name: node for node in nodes(happening)}

    well = sum(whole[name] == node for name, node in last.items())

    assert well >= len(last) - 1
    assert len(last) > 8


def test_a_node_is_down_until_its_leaf_is_repaired_too() -> None:
    rates = Rates(0, 50, 50, node_repair=40, leaf_repair=40)
    down: set[str] = set()
    seen = 0
    for happening in within_a_year(rates, n_nodes=4):
        found = nodes(happening)
        if len(found) == 1 and found[0].name in down:
            seen += found[0].down is Down.SWITCH
        down -= {node.name for node in found}
        down |= {node.name for node in found if node.down is Down.SWITCH}

    assert seen > 10


def test_the_same_seed_fails_the_same_parts_at_the_same_times() -> None:
    rates = Rates(2000, 500, 500)

    assert within_a_year(rates, 3) == within_a_year(rates, 3)
    assert within_a_year(rates, 3) != within_a_year(rates, 4)


def test_one_kind_fails_as_it_does_without_the_others() -> None:
    alone = [each.at for each in within_a_year(ONLY["chip"])]
    among = {each.at for each in within_a_year(Rates(1000, 500, 0, 10, 4, 2))}

    assert among.issuperset(alone)


def test_parts_of_which_nothing_is_said_never_fail() -> None:
    assert not within_a_year(NEVER)


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("usual", USUAL),
        ("none", NEVER),
        ("node=5", Rates(0, 5, 0)),
        ("usual, leaf=0, leaf-repair=1", Rates(leaf=0, leaf_repair=1)),
    ],
)
def test_rates_are_written_in_words(text: str, rates: Rates) -> None:
    assert read_rates(text) == rates


@pytest.mark.parametrize("text", ["often", "chip", "chip=-1", "chip=inf", "disk=3", ""])
def test_what_is_no_rate_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput, match=r"^.* is no rate, want .*chip=80000"):
        read_rates(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("chip=0.001", "12 hours, as long as a repair takes, or more"),
        ("usual,leaf=3", "4 hours or more"),
        ("node=5,node-repair=6", "6 hours, as long as a repair takes, or more"),
    ],
)
def test_faults_so_often_that_no_work_gets_done_are_refused(
    text: str, wanted: str
) -> None:
    with pytest.raises(BadInput, match=f"is too often .* want {wanted} .*=0 is never"):
        read_rates(text)


def test_parts_that_nobody_repairs_fail_once_each_and_then_no_more() -> None:
    rates = read_rates("chip=10,chip-repair=0,node=10,node-repair=0")
    place = site(4)

    happened = list(FailureGenerator(place, rates, 1))

    assert len(happened) == place.chips + len(place.nodes)


def test_a_run_counts_what_broke_also_where_nobody_was_hit() -> None:
    rates = read_rates("node=100,node-repair=2")
    played = trial(
        16,
        [spec("late", 500_000.0, 60)],
        timed_events=FailureGenerator(site(16), rates, 1),
    )
    before = sum(
        any(not node.ready for node in each.event.nodes)
        for each in takewhile(lambda each: each.at < 500_060, played.timed_events)
        if isinstance(each.event, NodesChanged)
    )

    tally = play(played, engine(played))

    assert (tally.over, tally.stops) == (1, 0)
    assert tally.faults == before > 0


def test_a_job_that_never_gets_any_further_ends_the_run_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "MAX_IN_VAIN", 20)
    rates = read_rates("node=4,node-repair=1")
    moves = Recovery(FaultMode.FORCE, pods_only=True)
    job_specs = [spec("big", 0.0, 400_000, replicas=12, recovery=moves)]
    played = trial(
        *(16, job_specs),
        timed_events=FailureGenerator(site(16), rates, 1),
        checkpoint_s=40_000.0,
    )

    with pytest.raises(BadInput, match=r"'big' of .* stopped 20 times before it had"):
        play(played, engine(played))


def test_failures_drive_the_rescheduling_of_the_engine() -> None:
    """Gangs on nodes that fail often get done, with work lost and pods moved."""
    moves = Recovery(FaultMode.FORCE, pods_only=True)
    job_specs = [
        spec(f"j{n}", n * 600.0, 20_000, replicas=4, recovery=moves) for n in range(40)
    ]
    rates = read_rates("node=100,node-repair=2,chip=2000,chip-repair=2")
    played = trial(16, job_specs, timed_events=FailureGenerator(site(16), rates, 1))

    tally = play(played, engine(played))

    assert tally.over == 40
    assert tally.stops > 10
    assert tally.lost_chip_s > 0
