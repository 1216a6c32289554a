"""A trial is played in virtual time: work is done, slowed down, lost and done again."""

from collections import Counter
from collections.abc import Iterator
from itertools import count, pairwise
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.engine.event import NodesChanged, NodesGone
from ringleaf.framework.instruction import Instruction, WakeAt
from ringleaf.model.fault import Cause, Down, FaultMode, Recovery
from ringleaf.model.job import Role
from ringleaf.model.moving import Moving
from ringleaf.simulator import clock as module
from ringleaf.simulator.clock import Clock, play
from ringleaf.simulator.job_run import RunProgress
from ringleaf.simulator.movable import movable
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import JobSpec, TimedEvent, Trial, Workload
from tests.effort import assert_reached, examples
from tests.simulator.trials import (
    PREEMPT,
    Diary,
    engine,
    node,
    site,
    spec,
    trial,
    workload,
)

MOVES = Recovery(FaultMode.FORCE)


def told(played: Trial, until: float = inf) -> tuple[list[str], RunProgress]:
    diary = Diary()
    tally = play(played, engine(played), [diary], until=until)
    return diary.story, tally


def test_a_job_runs_its_time_and_the_next_one_waits_for_it() -> None:
    story, tally = told(trial(1, [spec("a", 0, 10), spec("b", 1, 10)]))

    assert story == [
        "0 a arrives",
        "0 a starts n000",
        "1 b arrives",
        "10 a ends",
        "10 b starts n000",
        "20 b ends",
    ]
    assert (tally.arrived, tally.over, tally.waiting) == (2, 2, 0)
    assert tally.done_chip_s == 160


def test_the_run_begins_with_the_cluster_and_finishes_with_the_last_end() -> None:
    diary = Diary()
    played = trial(2, [spec("a", 5, 10)])

    play(played, engine(played), [diary])

    assert diary.lines[0] == "0 begins small 2"
    assert diary.lines[-1] == "15 finishes"


def test_a_gang_starts_when_all_its_pods_find_room() -> None:
    job_specs = [spec("a", 0, 10), spec("gang", 1, 10, replicas=2)]

    story, _ = told(trial(2, job_specs))

    assert story[3:] == ["10 a ends", "10 gang starts n000,n001", "20 gang ends"]


def test_jobs_that_arrive_together_are_decided_together() -> None:
    played = trial(1, [spec("low", 0, 10), spec("high", 0, 10, priority=9)])

    story, _ = told(replace(played, conf=PREEMPT))

    assert story[2] == "0 high starts n000"


def test_jobs_are_taken_one_at_a_time_as_they_come() -> None:
    taken: list[float] = []

    def job_specs() -> Iterator[JobSpec]:
        for second in count():
            taken.append(second)
            yield spec(f"j{second}", second, 0.5)

    endless = Workload("endless", "", job_specs, 0, inf)
    played = Trial(site(1), endless)

    play(played, engine(played), until=100)

    assert len(taken) == 102


def test_time_passes_without_a_gap_and_without_overlap() -> None:
    class Watch(Diary):
        def passes(self, since: float, now: float) -> None:
            self.times.append((since, now))

        times: list[tuple[float, float]] = []  # noqa: RUF012 - one watch

    watch = Watch()
    played = trial(1, [spec("a", 2, 10), spec("b", 3, 10)])

    play(played, engine(played), [watch])

    assert watch.times == [*pairwise([0, 2, 3, 12, 22])]


def test_a_job_that_can_never_be_placed_is_refused_and_forgotten() -> None:
    played = trial(1, [spec("bad", 0, 10, chips=9), spec("a", 1, 10)])
    scheduler = engine(played)

    tally = play(played, scheduler)

    assert (tally.refused, tally.over, tally.waiting) == (1, 1, 0)
    assert not scheduler.view.job_states


def test_jobs_for_which_there_is_never_room_are_left_when_all_else_is_over() -> None:
    played = trial(1, [spec("big", 0, 10, replicas=3), spec("a", 1, 10)])
    clock = Clock(played, engine(played))

    while clock.step():
        pass

    assert clock.left == ["big"]
    assert clock.tally.over == 1


# Work that is lost.


def evicting(checkpoint_s: float) -> Trial:
    low, high = spec("low", 0, 200), spec("high", 100, 50, priority=9)
    job_specs = [low, high]
    return trial(1, job_specs, conf=PREEMPT, checkpoint_s=checkpoint_s, grace_s=20)


def test_an_evicted_job_does_again_what_it_did_since_its_last_checkpoint() -> None:
    story, tally = told(evicting(60))

    assert story == [
        "0 low arrives",
        "0 low starts n000",
        "100 high arrives",
        "100 low loses 40",
        "120 low stops 0 preempt",
        "120 high starts n000",
        "170 high ends",
        "170 low starts n000",
        "310 low ends",
    ]
    assert (tally.stops, tally.lost_chip_s) == (1, 320)


@pytest.mark.parametrize(
    ("every", "lost"), [(0.0, 0.0), (inf, 100.0), (100.0, 0.0), (90.0, 10.0)]
)
def test_what_is_lost_depends_on_how_often_work_is_saved(
    every: float, lost: float
) -> None:
    story, _ = told(evicting(every))

    assert story[3] == f"100 low loses {lost:g}"
    assert story[-1] == f"{270 + lost:g} low ends"


# Nodes and chips that break.


def broken(at: float, number: int = 0, until: float | None = None) -> list[TimedEvent]:
    """A node is down from a time on, until a time."""
    down = node(number, ready=False, down=Down.NOT_READY)
    found = [TimedEvent(at, NodesChanged((down,)))]
    if until is not None:
        found.append(TimedEvent(until, NodesChanged((node(number),))))
    return found


def test_nobody_works_on_a_broken_node_and_the_work_goes_on_when_it_is_back() -> None:
    played = trial(1, [spec("a", 0, 100)], checkpoint_s=30)

    story, tally = told(replace(played, timed_events=broken(40, until=1000)))

    assert story[2:] == ["40 a loses 10", "1070 a ends"]
    assert tally.stops == 1


def test_a_job_that_wants_to_is_moved_away_from_a_broken_node() -> None:
    played = trial(2, [spec("a", 0, 100, recovery=MOVES)], checkpoint_s=30)

    story, _ = told(replace(played, timed_events=broken(40)))

    assert story[2:] == [
        "40 a loses 10",
        f"40 a stops 0 {Cause.NODE}",
        "40 a starts n001",
        "110 a ends",
    ]


def test_who_does_not_hold_a_chip_that_breaks_works_on() -> None:
    chip = node(0, faulty=1 << 7, unhealthy=1 << 7)
    played = trial(1, [spec("a", 0, 100, chips=1)])

    story, _ = told(
        replace(played, timed_events=[TimedEvent(4, NodesChanged((chip,)))])
    )

    assert story[2:] == ["100 a ends"]


def test_pods_are_gone_with_their_node_and_come_back_elsewhere() -> None:
    played = trial(2, [spec("a", 0, 100)], checkpoint_s=0)

    story, _ = told(
        replace(played, timed_events=[TimedEvent(40, NodesGone(("n000",)))])
    )

    assert story[2:] == [
        f"40 a stops 0 {Cause.NODE}",
        "40 a loses 0",
        "40 a starts n001",
        "100 a ends",
    ]


def test_a_node_that_comes_later_is_used() -> None:
    played = trial(1, [spec("a", 0, 100, replicas=2)])
    comes = TimedEvent(50, NodesChanged((node(1),)))

    story, _ = told(replace(played, timed_events=[comes]))

    assert story[-1] == "150 a ends"


def test_happenings_may_go_on_for_ever() -> None:
    class Flicker:
        def __iter__(self) -> Iterator[TimedEvent]:
            for hour in count(1):
                yield from broken(hour * 3600, 1, hour * 3600 + 60)

    played = trial(2, [spec("big", 0, 1, replicas=3), spec("a", 0, 1)])
    clock = Clock(replace(played, timed_events=Flicker()), engine(played))

    while clock.step():
        pass

    assert clock.left == ["big"]
    assert module.PATIENCE_S - 3600 <= clock.now <= module.PATIENCE_S + 3600


# Jobs that may do with fewer pods.


def test_a_job_works_while_the_pods_are_there_that_it_must_have() -> None:
    played = trial(2, [spec("a", 0, 100, replicas=2, min_available=1)])

    story, _ = told(
        replace(played, timed_events=[TimedEvent(40, NodesGone(("n001",)))])
    )

    assert story[2:] == [f"40 a stops 1 {Cause.NODE}", "100 a ends"]


def test_a_job_does_not_work_without_a_role_that_it_must_have() -> None:
    roles = Role("driver", 8, min_available=1), Role("worker", 8, 2)
    played = trial(3, [spec("a", 0, 100, replicas=3, roles=roles, min_available=1)])

    for number, rest in ((0, "140 a ends"), (1, "100 a ends")):
        happen = broken(40, number, until=80)
        story, _ = told(replace(played, timed_events=happen, checkpoint_s=0))
        assert story[-1] == rest


# Jobs that slow each other down.


def test_jobs_that_share_a_leaf_across_leaves_slow_each_other_down() -> None:
    """Three leaves of two nodes: a on 0, 1, 2; b on 3, 4, 5; they share leaf-1.

    From 10 on both need 1.5 s for a second. a has 90 s left then: 135 s, ends at 145.
    b did 90 of its 100 s by then and ends at 155.
    """
    job_specs = [spec("a", 0, 100, replicas=3), spec("b", 10, 100, replicas=3)]

    story, _ = told(trial(6, job_specs, under=2, contention=0.5))

    assert story[-2:] == ["145 a ends", "155 b ends"]


def test_a_job_that_crosses_no_longer_works_at_its_own_speed() -> None:
    """As above, but a loses the pod under leaf-1 at 40, and does without it.

    From 10 to 40 both did 20 s of work. a has 70 s left, b 80 s.
    """
    job_specs = [
        spec("a", 0, 100, replicas=3, min_available=2),
        spec("b", 10, 100, replicas=3),
    ]
    played = trial(6, job_specs, under=2, contention=0.5)

    story, _ = told(
        replace(played, timed_events=[TimedEvent(40, NodesGone(("n002",)))])
    )

    assert story[-2:] == ["110 a ends", "120 b ends"]


def test_jobs_under_one_leaf_slow_nobody_down() -> None:
    job_specs = [spec("a", 0, 100, replicas=2), spec("b", 0, 100, replicas=2)]

    story, _ = told(trial(4, job_specs, under=2, contention=0.5))

    assert story[-2:] == ["100 a ends", "100 b ends"]


def test_how_much_links_are_shared_can_be_measured_otherwise() -> None:
    played = trial(4, [spec("a", 0, 100, replicas=4)], under=2, contention=0.3)
    diary = Diary()

    def degrees(jobs: object, leaf_of: object) -> dict[str, float]:
        assert list(jobs) == ["a"]  # type: ignore[call-overload]
        assert leaf_of["n003"] == "leaf-1"  # type: ignore[index]
        return {"a": 3.0}

    play(played, engine(played), [diary], degrees=degrees)

    assert diary.story[-1] == "160 a ends"


# A run that does not come to rest.


class Restless:
    """A scheduler that asks to be woken again every hour, and places nobody."""

    def __init__(self, played: Trial) -> None:
        self.view = engine(played).view

    def handle_all(self, events: object, now: float) -> list[Instruction]:
        assert events
        return [WakeAt(now + 3600), WakeAt(now)]


def test_a_run_that_does_not_come_to_rest_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    low, high = spec("low", 0, 0), spec("high", 0, 0)
    monkeypatch.setattr(module, "MAX_AT_ONCE", 0)
    played = trial(1, [low, high])

    with pytest.raises(BadInput, match="has not come to rest after 0 steps at 0 s"):
        play(played, engine(played))


def test_a_scheduler_that_wakes_for_nothing_is_left_to_itself() -> None:
    played = trial(1, [spec("a", 0, 10)])
    clock = Clock(played, Restless(played))

    while clock.step():
        pass

    assert clock.left == ["a"]


# What must hold of every run.


class Ledger(Diary):
    """Works out by itself how long each job worked with all its pods."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived: dict[str, float] = {}
        self.held: dict[str, set[int]] = {}
        self.since: dict[str, float] = {}
        self.worked: dict[str, float] = {}
        self.lost: dict[str, float] = {}
        self.over: dict[str, JobSpec] = {}

    def arrives(self, spec: JobSpec, now: float) -> None:
        assert now == spec.arrives
        self.arrived[spec.job.name] = now
        super().arrives(spec, now)

    def starts(self, spec: JobSpec, placements: object, now: float) -> None:
        name = spec.job.name
        assert now >= self.arrived[name]
        held = self.held.setdefault(name, set())
        held |= {p.replica for p in placements}  # type: ignore[attr-defined]
        if len(held) == spec.job.n_pods:
            self.since[name] = now
        super().starts(spec, placements, now)  # type: ignore[arg-type]

    def stops(self, spec: JobSpec, pods: object, why: str, now: float) -> None:
        self.held[spec.job.name] -= {*pods}  # type: ignore[misc]
        super().stops(spec, pods, why, now)  # type: ignore[arg-type]

    def loses(self, spec: JobSpec, seconds: float, now: float) -> None:
        name = spec.job.name
        self.worked[name] = self.worked.get(name, 0) + now - self.since.pop(name)
        self.lost[name] = self.lost.get(name, 0) + seconds
        super().loses(spec, seconds, now)

    def ends(self, spec: JobSpec, now: float) -> None:
        name = spec.job.name
        self.worked[name] = self.worked.get(name, 0) + now - self.since.pop(name)
        self.over[name] = spec
        super().ends(spec, now)


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    n_nodes = draw(st.integers(1, 6))
    times = st.integers(0, 400).map(float)
    gangs = st.integers(1, n_nodes)
    arrivals = sorted(draw(st.lists(times, min_size=1, max_size=12)))
    job_specs = [
        spec(
            f"j{number}",
            at,
            draw(st.integers(1, 300)),
            chips=8 if (replicas := draw(gangs)) > 1 else draw(st.sampled_from([1, 8])),
            replicas=replicas,
            priority=draw(st.integers(0, 2)),
            recovery=MOVES,
        )
        for number, at in enumerate(arrivals)
    ]
    timed_events = []
    for at in sorted(draw(st.lists(times, max_size=3))):
        number = draw(st.integers(0, n_nodes - 1))
        timed_events.append(TimedEvent(at, NodesGone((f"n{number:03}",))))
        timed_events.append(TimedEvent(at, NodesChanged((node(number),))))
    return trial(
        n_nodes,
        job_specs,
        conf=PREEMPT,
        checkpoint_s=draw(st.sampled_from([0.0, 7.0, 60.0, inf])),
        grace_s=draw(st.sampled_from([0.0, 30.0])),
        timed_events=timed_events,
    )


def test_chip_seconds_done_are_chip_seconds_asked_and_lost() -> None:
    """In runs of which some lose work."""
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(160))
    @given(trials())
    def check(played: Trial) -> None:
        ledger = Ledger()

        tally = play(played, engine(played), [ledger])

        assert tally.over == len(ledger.over) == played.workload.n_jobs
        for name, each in ledger.over.items():
            lost = ledger.lost.get(name, 0)
            assert ledger.worked[name] == pytest.approx(each.runs_s + lost)
            seen["lost"] += lost > 0
        seen["over"] += tally.over
        chips = {n: w.job.chips * w.job.replicas for n, w in ledger.over.items()}
        asked = sum(chips[n] * w.runs_s for n, w in ledger.over.items())
        lost_chip_s = sum(chips[n] * s for n, s in ledger.lost.items())
        assert tally.done_chip_s == pytest.approx(asked)
        assert tally.lost_chip_s == pytest.approx(lost_chip_s)

    check()
    assert_reached(seen, "over", times=100)
    assert_reached(seen, "lost", times=5)


@settings(max_examples=examples(10))
@given(trials())
def test_the_same_trial_is_told_in_the_same_words(played: Trial) -> None:
    assert told(played) == told(played)


def test_a_moved_job_does_again_what_it_had_not_saved_and_restarts_first() -> None:
    quick = [{"name": "rearrange", "arguments": {"wait-seconds": 60}}]
    actions = "enqueue, allocate, backfill, rearrange"
    conf = read_conf({"actions": actions, "configurations": quick})
    assert isinstance(conf, Conf)
    moving = Moving(60.0, checkpoint_s=600.0)
    job_specs = [
        spec("a", 0, 100_000, 4, moving=moving),
        spec("b", 0, 1000, 4),
        spec("c", 0, 100_000, 4),
        spec("d", 0, 1000, 4),
        spec("big", 2000, 10),
    ]

    story, tally = told(trial(2, job_specs, conf=conf, checkpoint_s=600.0))

    assert story[-8:] == [
        "2000 big arrives",
        "2060 a loses 320",
        "2090 a stops 0 rearrange",
        "2090 big starts n000",
        "2090 a starts n001",
        "2100 big ends",
        "100000 c ends",
        "100350 a ends",
    ]
    assert tally.lost_chip_s == 4 * (260 + 60)


def test_a_share_of_the_jobs_of_a_workload_is_movable() -> None:
    jobs = workload([spec(f"j{n}", n, 10) for n in range(1000)])
    moving = Moving(60.0)

    for share, low, high in ((0.0, 0, 0), (0.3, 250, 350), (1.0, 1000, 1000)):
        found = [each.job.moving for each in movable(jobs, share, moving).job_specs()]
        assert low <= found.count(moving) <= high
        assert found == [w.job.moving for w in movable(jobs, share, moving).job_specs()]
