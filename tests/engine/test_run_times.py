"""Running times in the engine: which runs count, which jobs get a prediction."""

from math import inf
from typing import Any

import pytest
from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.engine.event import (
    BindFailed,
    ConfChanged,
    Event,
    JobArrived,
    JobGone,
    PodFaultsReported,
    PodsEnding,
    PodsGone,
    PodsRefused,
    PodsRun,
    RunTimesKnown,
)
from ringleaf.framework.instruction import Delete, Evict
from ringleaf.framework.run_times import FEWEST_RUNS, RunSeries
from ringleaf.model.fault import Cause, FaultMode, PodFault, Recovery
from ringleaf.model.job import Job
from ringleaf.model.run_time import Origin, RunTime, Similarity
from tests.engine.story import PLAIN, PREEMPT, Story, at, conf, job

TRAIN = Origin("ann", "train")


def learns(*, on: bool = True, **changes: Any) -> Conf:  # noqa: ANN401
    own = {"reservation-after-seconds": 10, "reservation-idle-budget": 1}
    return conf(allocate={**own, "learn-run-times": on, **changes})


def ran(story: Story, lasts_s: float = 60.0, n: int = FEWEST_RUNS) -> None:
    """So many jobs of eight chips come, run and end."""
    for k in range(n):
        story.arrives(job(f"past-{k}", origin=TRAIN))
        story.hears(JobGone(f"past-{k}"), now=story.now + lasts_s)


def learnt(story: Story) -> int:
    return story.engine.run_times.learnt


def run_time(story: Story, name: str) -> RunTime | None:
    return story.engine.view.job_states[name].job.run_time


# Predictions.


def test_a_job_gets_a_prediction_when_it_arrives_and_keeps_it() -> None:
    story = Story("a", conf=learns())
    ran(story)
    mine = job("mine", origin=TRAIN)

    story.arrives(mine)
    want = RunTime(64, 64, FEWEST_RUNS, Similarity.NAME)
    assert run_time(story, "mine") == want

    story.engine.run_times.ended(mine, 5000.0)
    story.arrives(mine)
    story.arrives(replace(mine, priority=3))
    assert run_time(story, "mine") == want


def test_a_job_that_states_a_running_time_gets_no_prediction() -> None:
    story = Story("a", conf=learns())
    ran(story)

    story.arrives(job("mine", origin=TRAIN, estimate_s=5.0))

    assert run_time(story, "mine") is None


def test_with_the_setting_off_nothing_is_counted_or_predicted() -> None:
    story = Story("a b", conf=learns())
    ran(story)
    story.arrives(job("old", 8, 1, origin=TRAIN), job("waits", 8, 2, origin=TRAIN))
    assert run_time(story, "old") is not None

    story.hears(ConfChanged(learns(on=False)))

    assert run_time(story, "old") is None
    assert run_time(story, "waits") is None
    story.hears(JobGone("old"), now=story.now + 5)
    assert learnt(story) == FEWEST_RUNS
    story.hears(ConfChanged(learns()))
    assert run_time(story, "waits") is not None


def test_what_was_written_down_is_kept_until_the_setting_is_on() -> None:
    story = Story("a", conf=learns(on=False))
    story.hears(of_eight(), JobArrived(job("j")))
    assert run_time(story, "j") is None

    story.hears(ConfChanged(learns()))

    assert run_time(story, "j") == RunTime(4, 4, FEWEST_RUNS, Similarity.CHIPS)
    story.hears(JobGone("j"), now=60)
    assert len(story.engine.run_times.series[-1].steps) == FEWEST_RUNS + 1


def test_a_configuration_without_the_action_allocate_learns_nothing() -> None:
    story = Story("a", conf=conf("enqueue, backfill"))
    story.hears(JobArrived(job("j"), at("a 01234567"), 0.0))

    story.hears(JobGone("j"), now=9)

    assert learnt(story) == 0


def test_what_was_written_down_is_learnt() -> None:
    story = Story("a", conf=learns())
    series = RunSeries(Similarity.CHIPS, "default", chips=8, steps=(4,) * FEWEST_RUNS)

    story.hears(RunTimesKnown((series,)), JobArrived(job("j")))

    assert run_time(story, "j") == RunTime(4, 4, FEWEST_RUNS, Similarity.CHIPS)


def test_jobs_that_arrived_before_it_was_known_get_a_prediction_then() -> None:
    story = Story("a", conf=learns())
    story.arrives(job("runs"), job("waits"), job("small", 4))
    series = RunSeries(Similarity.CHIPS, "default", chips=8, steps=(4,) * FEWEST_RUNS)

    story.hears(RunTimesKnown((series,)))

    want = RunTime(4, 4, FEWEST_RUNS, Similarity.CHIPS)
    found = [run_time(story, name) for name in ("runs", "waits", "small")]
    assert found == [want, want, None]
    assert story.hears(JobGone("runs"), now=5) == ["bind waits: 0 on a 01234567"]


def of_eight(*steps: int) -> RunTimesKnown:
    """Nine jobs of eight chips or more ran so long, by steps of the grid."""
    listed = steps or (4,) * FEWEST_RUNS
    return RunTimesKnown(
        (RunSeries(Similarity.CHIPS, "default", chips=8, steps=listed),)
    )


def test_a_job_that_backs_off_when_it_gets_a_prediction_is_tried_in_time() -> None:
    story = Story("a", conf=learns())
    story.arrives(job("j"))
    story.hears(PodsRun("j", ()), now=1)
    story.wakes(5000)
    story.carry_out(now=5001)
    assert "j" in story.engine.context.pods_ready.backoff

    story.hears(of_eight())

    assert run_time(story, "j") is not None
    assert "j" in story.engine.context.pods_ready.backoff
    again = story.engine.context.pods_ready.not_before("j")
    assert "bind j: 0 on a 01234567" in story.wakes(again)


def test_a_newcomer_that_gets_a_prediction_is_admitted() -> None:
    story = Story("a", conf=learns())

    said = story.hears(JobArrived(job("j")), of_eight())

    assert said == ["bind j: 0 on a 01234567"]
    assert run_time(story, "j") is not None


# Which runs count.


def test_a_job_that_is_gone_counts_once_from_its_start() -> None:
    story = Story("a", conf=learns())
    story.arrives(job("first"), job("j"))
    story.hears(JobGone("first"), now=40)

    story.hears(JobGone("j"), now=100)
    story.hears(JobGone("j"), now=101)

    assert learnt(story) == 2
    (series,) = story.engine.run_times.series
    assert series.steps == (11, 12), "46 and 64 seconds"


def test_a_job_whose_pods_all_succeeded_counts_once() -> None:
    story = Story("a b", conf=learns())
    story.arrives(job("j", 8, 2))

    story.hears(PodsGone("j", (0,), succeeded=True), now=10)
    assert learnt(story) == 0
    story.hears(PodsGone("j", (1,), succeeded=True), now=20)
    assert learnt(story) == 1
    story.hears(PodsGone("j", (1,), succeeded=True), now=21)
    story.hears(JobGone("j"), now=30)

    assert learnt(story) == 1


def test_a_run_whose_pods_are_gone_counts_once_though_they_are_replaced() -> None:
    story = Story("a b", conf=learns())
    story.arrives(job("j", 8, 2))

    story.hears(PodsGone("j", (0,)), now=10)
    assert learnt(story) == 0
    story.hears(PodsGone("j", (0, 1)), now=46)

    assert learnt(story) == 1
    assert story.engine.run_times.series[-1].steps == (11,), "46 seconds"
    story.hears(JobGone("j", returns=True), now=50)
    assert learnt(story) == 2


def test_a_run_of_a_job_that_is_expected_again_counts() -> None:
    story = Story("a", conf=learns())
    story.arrives(job("j"))

    story.hears(JobGone("j", returns=True), now=46)

    assert learnt(story) == 1


@pytest.mark.parametrize(
    ("recovery", "cause", "want"),
    [
        pytest.param(Recovery(FaultMode.FORCE, retries=1), Cause.POD, 0, id="retried"),
        pytest.param(Recovery(FaultMode.FORCE), Cause.POD, 1, id="not retried"),
        pytest.param(Recovery(FaultMode.FORCE), Cause.NODE, 0, id="of its node"),
    ],
)
def test_a_job_that_fails_counts_unless_it_is_to_be_repaired(
    recovery: Recovery, cause: Cause, want: int
) -> None:
    story = Story("a", conf=learns())
    story.arrives(job("j", recovery=recovery))

    story.hears(
        PodFaultsReported("j", (PodFault(0, cause, "a"),)),
        JobGone("j", returns=True),
        now=46,
    )

    assert learnt(story) == want


def test_a_job_that_was_found_running_counts_from_when_it_started() -> None:
    story = Story("a", conf=learns())
    story.hears(JobArrived(job("j"), at("a 01234567"), 100.0), now=1000)

    story.hears(JobGone("j"), now=1124)

    (series,) = story.engine.run_times.series
    assert series.steps == (20,), "1024 seconds"


NEVER: list[Any] = [
    pytest.param([JobArrived(job("j", 8, 2)), JobGone("j")], id="it never started"),
    pytest.param([JobArrived(job("j", 9)), JobGone("j")], id="it is invalid"),
    pytest.param(
        [JobArrived(job("j")), JobGone("j", ends_run=False)], id="its pods never ran"
    ),
    pytest.param(
        [JobArrived(job("j")), PodsGone("j", (0,), ends_run=False)],
        id="its pods were lost before they ran",
    ),
]


@pytest.mark.parametrize("events", NEVER)
def test_what_did_not_run_does_not_count(events: list[Event]) -> None:
    story = Story("a", conf=learns())

    for now, event in enumerate(events):
        story.hears(event, now=now)

    assert learnt(story) == 0


def test_a_run_begins_anew_when_its_pods_are_placed_again() -> None:
    story = Story("a", conf=learns())
    story.arrives(job("j"))
    assert story.hears(BindFailed("j", (0,)), now=50) == ["bind j: 0 on a 01234567"]

    story.hears(JobGone("j"), now=58)

    (series,) = story.engine.run_times.series
    assert series.steps == (6,), "8 seconds"


def test_pods_that_a_user_deletes_count() -> None:
    story = Story("a", conf=learns())
    story.arrives(job("j"))

    story.hears(PodsEnding("j", (0,)), now=5)
    story.hears(JobGone("j"), now=6)

    assert learnt(story) == 1


def test_a_job_that_is_found_terminating_does_not_count() -> None:
    story = Story("a b", conf=learns())
    found = [JobArrived(job(name), at(f"{name} 01234567"), 0.0) for name in "ab"]
    story.hears(*found, PodsEnding("a", (0,)), now=50)

    story.hears(PodsEnding("b", (0,)), now=60)
    story.hears(JobGone("a"), now=70)
    assert learnt(story) == 0
    story.hears(JobGone("b"), now=71)

    assert learnt(story) == 1


def test_a_job_that_was_evicted_counts_only_once_it_has_started_again() -> None:
    off = {"reservation-after-seconds": 10, "learn-run-times": True}
    story = Story("a", conf=conf(PREEMPT, PLAIN, allocate=off))
    story.arrives(job("low"))
    said = story.arrives(job("high", priority=9), now=5)
    assert "evict low: 0 for high (preempt)" in said

    story.hears(PodsGone("low", (0,)), now=6)
    assert learnt(story) == 0
    story.hears(JobGone("high"), now=10)
    assert learnt(story) == 1
    story.hears(JobGone("low"), now=20)
    assert learnt(story) == 2


def test_a_job_that_ends_because_it_is_evicted_does_not_count() -> None:
    off = {"reservation-after-seconds": 10, "learn-run-times": True}
    story = Story("a", conf=conf(PREEMPT, PLAIN, allocate=off))
    story.arrives(job("low"))
    story.arrives(job("high", priority=9), now=5)

    story.hears(PodsEnding("low", (0,)), now=5)
    story.hears(JobGone("low"), now=6)

    assert learnt(story) == 0


FORCE = Recovery(mode=FaultMode.FORCE, retries=3)


def test_a_job_that_is_repaired_counts_from_its_last_start_or_not_at_all() -> None:
    story = Story("a b", conf=learns())
    story.arrives(job("j", recovery=FORCE))
    story.hears(PodFaultsReported("j", (PodFault(0, Cause.POD, "a"),)), now=5)
    assert any(isinstance(each, Delete) for each in story.said)

    story.hears(JobGone("j"), now=6)

    assert learnt(story) == 0


def test_a_job_that_is_repaired_and_started_again_counts() -> None:
    story = Story("a b", conf=learns())
    story.arrives(job("j", recovery=FORCE))
    story.hears(PodFaultsReported("j", (PodFault(0, Cause.POD, "a"),)), now=5)
    story.hears(PodsGone("j", (0,)), PodFaultsReported("j", ()), now=6)
    assert "j" in story.running
    story.hears(PodsRun("j", (0,)), now=7)

    story.hears(JobGone("j"), now=5000)

    assert learnt(story) == 1


def test_a_job_whose_pods_were_refused_does_not_count() -> None:
    story = Story("a", conf=learns())
    story.arrives(job("j"))

    story.hears(PodsRefused("j", (0,), "no device"), now=5)
    story.hears(JobGone("j"), now=6)

    assert learnt(story) == 0


def test_a_job_whose_pods_did_not_run_in_time_does_not_count() -> None:
    story = Story("a", conf=learns())
    story.arrives(job("j"))
    story.hears(PodsRun("j", ()), now=1)
    story.wakes(5000)
    assert any(isinstance(each, Delete) for each in story.said)

    story.hears(JobGone("j"), now=5001)

    assert learnt(story) == 0


# What predictions are used for.


def predicted(name: str, chips: int, pods: int, lasts_s: int) -> Job:
    """A job that is predicted to run so long; given by its origin."""
    return job(name, chips, pods, origin=Origin(f"{lasts_s}", ""))


def waiting(**changes: Any) -> Story:  # noqa: ANN401
    """Node a is taken for 64 seconds, as predicted; a job of two nodes is overdue."""
    story = Story("a b", conf=learns(**changes))
    steps = {16: 8, 64: 12, 1024: 20}
    series = [
        RunSeries(Similarity.USER, "default", f"{lasts_s}", steps=(step,) * 9)
        for lasts_s, step in steps.items()
    ]
    mixed = (8,) * 8 + (20,)
    series.append(RunSeries(Similarity.USER, "default", "mixed", steps=mixed))
    story.hears(RunTimesKnown(tuple(series)))
    story.arrives(predicted("one", 8, 1, 64), now=0)
    story.arrives(job("big", 8, 2), now=1)
    assert story.wakes(11) == ["reserved big", "wake 64"]
    return story


@pytest.mark.parametrize("mode", ["fair", "strict"])
def test_a_job_that_is_predicted_to_end_in_time_backfills(mode: str) -> None:
    story = waiting(reservation=mode)

    assert story.engine.reservations["big"].ready_at(11) == 64.0
    story.arrives(predicted("long", 8, 1, 1024), now=12)
    assert "long" not in story.running
    story.arrives(job("mixed", origin=Origin("mixed")), now=12)
    assert "mixed" not in story.running, (
        "one in two alike ends in time, not nine in ten"
    )
    story.arrives(predicted("short", 8, 1, 16), now=12)
    assert "short" in story.running


def test_a_reservation_begins_later_when_a_job_runs_longer_than_predicted() -> None:
    story = waiting()
    story.arrives(predicted("next", 8, 1, 64), now=12)
    assert "next" not in story.running

    assert story.wakes(64) == ["bind next: 0 on b 01234567", "wake 128"]

    assert story.engine.reservations["big"].ready_at(64) == 128.0
    assert [story.engine.reservations["big"].ready_at(t) for t in (127, 128, 300)] == [
        128.0,
        256.0,
        512.0,
    ]


def test_a_reservation_for_stated_times_alone_is_not_looked_at_again() -> None:
    story = Story("a b", conf=learns())
    one = job("one", estimate_s=64.0, run_time=RunTime(16, 32))
    story.arrives(one, job("big", 8, 2))

    assert story.wakes(10) == ["reserved big"]
    story.wakes(11)

    assert story.engine.reservations["big"].check_at == inf


def between_two(**changes: Any) -> Story:  # noqa: ANN401
    """Nodes a and b are taken for 16 and 64 seconds; a job of three is overdue."""
    story = Story("a b c", conf=learns(**changes))
    short, long = RunTime(16, 16), RunTime(64, 64)
    story.arrives(job("one", run_time=short), job("two", run_time=long))
    story.arrives(job("big", 8, 3), now=1)
    story.wakes(11)
    return story


def test_only_a_job_that_moves_the_begin_lets_more_jobs_try() -> None:
    story = between_two()
    story.arrives(job("next", run_time=RunTime(64, 64)), now=12)
    opened = story.engine.context.pending.admitted.n_opened

    story.wakes(16)
    story.wakes(32)
    assert story.engine.reservations["big"].check_at == 64.0
    assert story.engine.context.pending.admitted.n_opened == opened

    assert "bind next: 0 on c 01234567" in story.wakes(64)


def test_a_begin_that_came_closer_may_move_away_again() -> None:
    story = between_two()
    story.arrives(job("next", run_time=RunTime(8, 8)), now=12)
    story.arrives(job("other", run_time=RunTime(16, 16)), now=13)
    assert story.running["next"] == [0]
    story.hears(JobGone("two"), JobGone("next"), now=14)
    big = story.engine.reservations["big"]
    assert big.ready_at(14) == 16.0
    assert "other" not in story.running

    assert "bind other: 0 on b 01234567" in story.wakes(16)
    assert big.ready_at(16) == 32.0


def test_a_prediction_that_comes_late_is_heeded() -> None:
    story = Story("a b", conf=learns())
    story.arrives(job("one", estimate_s=64.0), job("big", 8, 2))
    story.wakes(10)
    assert story.engine.reservations["big"].check_at == inf

    story.arrives(job("one", run_time=RunTime(16, 32)), now=12)
    story.wakes(13)

    assert story.engine.reservations["big"].check_at == 16.0


def test_no_job_is_ended_because_it_outlives_its_prediction() -> None:
    story = waiting()
    story.arrives(predicted("short", 8, 1, 16), now=12)

    for now in (28, 64, 128, 256, 1000, 10_000, 100_000):
        story.wakes(now)
        assert not [each for each in story.said if isinstance(each, Evict | Delete)]
    assert story.running == {"one": [0], "short": [0]}
