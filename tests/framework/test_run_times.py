"""Running times: which jobs are similar, which quantile is predicted, what is kept."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from random import Random

import pytest
from msgspec import json
from msgspec.structs import replace

from ringleaf.framework.job_state import JobState
from ringleaf.framework.run_times import (
    FEWEST_RUNS,
    MOST_BYTES,
    MOST_RUNS,
    RunSeries,
    RunTimes,
    chips_in_all,
    prediction_words,
)
from ringleaf.model.job import Job, Role
from ringleaf.model.run_time import (
    GRID,
    TOP,
    Origin,
    RunTime,
    Similarity,
    base_name,
    step_of,
)
from ringleaf.policies.products import PRODUCTS

A2 = PRODUCTS["atlas-800t-a2"]


def of(
    user: str = "ann",
    name: str = "train",
    queue: str = "research",
    chips: int = 8,
    pods: int = 1,
) -> Job:
    return Job("j", A2, chips, pods, queue=queue, origin=Origin(user, name))


def after(*runs: tuple[Job, float]) -> RunTimes:
    known = RunTimes()
    for job, ran_s in runs:
        known.ended(job, ran_s)
    return known


def nine(job: Job, ran_s: float = 60.0) -> list[tuple[Job, float]]:
    return [(job, ran_s)] * FEWEST_RUNS


# The grid.


def test_the_grid_is_exact_and_its_steps_are_a_factor_of_root_two_apart() -> None:
    assert GRID[:12] == (1, 2, 2, 3, 4, 6, 8, 12, 16, 23, 32, 46)
    assert all((a - 1) ** 2 < 1 << step <= a * a for step, a in enumerate(GRID))
    assert all(after <= 2 * before for before, after in pairwise(GRID))


@pytest.mark.parametrize("seconds", [0.0, 0.3, 1.0, 1.2, 46.0, 46.5, 86400.0, 3e8])
def test_a_running_time_is_rounded_up_and_by_less_than_half(seconds: float) -> None:
    step = step_of(seconds)

    assert GRID[step] >= seconds
    assert step == 0 or GRID[step - 1] < seconds


def test_a_running_time_beyond_the_grid_counts_as_its_end() -> None:
    assert step_of(1e300) == TOP


def test_a_name_of_nothing_but_a_number_is_no_name() -> None:
    assert base_name("0017-3") == ""
    assert base_name("-") == ""
    assert base_name("bcdfg") == "bcdfg"


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("train-1-x7k2p", "train"),
        ("web-5d59d67564-abcde", "web-5d59d67564-abcde"),
        ("web-5d59d67564-x7k2p", "web"),
        ("eval-1b4e28ba-2fa1-11d2-883f-0016d3cca427", "eval"),
        ("resnet50", "resnet"),
        ("llama-7b", "llama-7b"),
    ],
)
def test_a_name_without_its_number(name: str, want: str) -> None:
    assert base_name(name) == want


def test_a_job_is_expected_to_end_later_the_longer_it_has_run() -> None:
    found = RunTime(median_s=8, most_s=32)

    ends = [found.ends_at(100.0, now) for now in (100, 107, 108, 132, 163, 164, 300)]

    assert ends == [108, 108, 132, 164, 164, 228, 356]


# Similarity.

JOB = of()
SIMILAR = [
    pytest.param(JOB, Similarity.NAME, id="all of it"),
    pytest.param(of(name="eval"), Similarity.USER_CHIPS, id="another name"),
    pytest.param(of(name=""), Similarity.USER_CHIPS, id="no name"),
    pytest.param(of(chips=4), Similarity.USER, id="another size"),
    pytest.param(of(chips=4, pods=2), Similarity.NAME, id="as many chips in all"),
    pytest.param(of(user="bob"), Similarity.CHIPS, id="another user"),
    pytest.param(of(user=""), Similarity.CHIPS, id="no user"),
    pytest.param(of(queue="prod"), None, id="another queue"),
    pytest.param(of(user="bob", chips=4), None, id="another user and size"),
]


@pytest.mark.parametrize(("job", "want"), SIMILAR)
def test_by_what_jobs_are_similar(job: Job, want: Similarity | None) -> None:
    found = after(*nine(JOB)).predict(job)

    assert (None if found is None else found.by) == want


def test_the_closest_similarity_with_enough_jobs_decides() -> None:
    known = after(*nine(of(name="eval"), 1000.0), *nine(JOB)[1:])
    found = known.predict(JOB)
    assert found is not None
    assert (found.by, found.n_runs) == (Similarity.USER_CHIPS, 2 * FEWEST_RUNS - 1)

    known.ended(JOB, 60.0)

    assert known.predict(JOB) == RunTime(64, 64, FEWEST_RUNS, Similarity.NAME)


def test_the_name_counts_where_no_user_is_known() -> None:
    job = of(user="")

    found = after(*nine(job)).predict(job)

    assert found is not None
    assert found.by is Similarity.NAME


def test_jobs_without_chips_are_not_counted() -> None:
    known = after(*nine(of(chips=0)))

    assert len(known) == 0
    assert known.predict(of(chips=0)) is None


def test_a_job_of_which_pods_ended_well_has_the_size_that_it_had() -> None:
    left = Job(
        *("j", A2, 8, 1),
        queue="research",
        roles=(Role("", 8, 1, ranks=(1,)),),
        finished=(0,),
        origin=JOB.origin,
    )

    found = after(*nine(of(pods=2))).predict(left)

    assert found is not None
    assert found.by is Similarity.NAME


def test_pods_that_ended_count_with_the_chips_that_they_had() -> None:
    whole = Job("j", A2, 8, 2, roles=(Role("w", 8, 1), Role("eval", 2, 1)))
    left = Job("j", A2, 8, 1, roles=(Role("w", 8, 1, ranks=(0,)),), finished=(1,))
    left = replace(left, origin=Origin(done_chips=2))

    assert chips_in_all(whole) == chips_in_all(left) == 10


# The prediction.


@pytest.mark.parametrize(
    ("n", "median", "most"), [(9, 5, 9), (10, 6, 10), (19, 10, 18), (20, 11, 19)]
)
def test_the_conformal_quantile(n: int, median: int, most: int) -> None:
    known = after(*((JOB, GRID[2 + k]) for k in range(1, n + 1)))

    assert known.predict(JOB) == RunTime(
        GRID[2 + median], GRID[2 + most], n, Similarity.NAME
    )


def test_eight_jobs_are_too_few() -> None:
    assert after(*nine(JOB)[1:]).predict(JOB) is None


def test_only_the_last_jobs_count() -> None:
    known = after(*[(JOB, 1e6)] * MOST_RUNS, *[(JOB, 60.0)] * MOST_RUNS)

    assert known.predict(JOB) == RunTime(64, 64, MOST_RUNS, Similarity.NAME)


@pytest.mark.parametrize("seed", range(4))
def test_nine_in_ten_of_jobs_drawn_alike_run_no_longer_than_predicted(
    seed: int,
) -> None:
    draw, known, within, n = Random(seed), RunTimes(), 0, 4000  # noqa: S311
    for _ in range(n):
        job = replace(JOB, run_time=known.predict(JOB))
        ran_s = draw.lognormvariate(7.0, 2.0)
        known.ended(job, ran_s)
        within += job.run_time is not None and ran_s <= job.run_time.most_s

    noise = 3 * (0.09 * n) ** 0.5
    assert known.learnt == n
    assert known.predicted == n - FEWEST_RUNS
    assert known.within == within
    assert within >= 0.9 * known.predicted - noise
    assert within <= 0.97 * n, "the prediction is as short as it may be"


def test_the_order_in_which_series_are_heard_of_changes_nothing() -> None:
    draw = Random(1)  # noqa: S311
    jobs = [of(user, name) for user in "ab" for name in "xyz"]
    known = after(*((draw.choice(jobs), draw.expovariate(0.01)) for _ in range(300)))
    again = RunTimes()
    again.restore(draw.sample(known.series, len(known.series)))

    assert [again.predict(job) for job in jobs] == [known.predict(job) for job in jobs]


WORDS = [
    pytest.param(
        Similarity.NAME, 0, "median of 9 runs of 'train' of user 'ann' with 8 chips"
    ),
    pytest.param(
        Similarity.USER_CHIPS, 60, "9 in 10 of 9 runs of user 'ann' with 8 chips"
    ),
    pytest.param(Similarity.USER, 90, "longer than 9 in 10 of 9 runs of user 'ann'"),
    pytest.param(
        Similarity.CHIPS, 0, "median of 9 runs with 8 chips in queue 'research'"
    ),
]


@pytest.mark.parametrize(("by", "ran_s", "want"), WORDS)
def test_what_a_prediction_comes_from_in_words(
    by: Similarity, ran_s: float, want: str
) -> None:
    job = replace(JOB, run_time=RunTime(60, 90, 9, by))

    assert prediction_words(job, ran_s) == want


def test_a_job_without_a_prediction_has_no_words() -> None:
    assert not prediction_words(JOB, 0)


# What is kept.


def test_what_was_written_down_is_known_again() -> None:
    known = after(*nine(JOB), (of(user="bob"), 5.0))
    again = RunTimes()

    again.restore(known.series)

    assert again.series == known.series
    assert again.size == known.size


def test_hearing_it_twice_is_hearing_it_once_and_the_longer_series_counts() -> None:
    known = after(*nine(JOB))
    before, old = known.series, after(*nine(JOB, 9.0)[1:]).series

    known.restore(before)
    known.restore(old)
    assert known.series == before
    assert after(*nine(JOB)[1:]).series != before

    known.restore([replace(before[0], steps=(1,) * 10)])
    assert known.series[-1].steps == (1,) * 10


def test_steps_that_the_grid_does_not_have_are_left_out() -> None:
    known = RunTimes()

    known.restore(
        [RunSeries(Similarity.CHIPS, "q", chips=8, steps=(-1, 3, TOP + 1, 300))]
    )

    assert [each.steps for each in known.series] == [(3,)]


def test_without_room_the_oldest_series_goes() -> None:
    known = RunTimes(size=8 * 190)
    for n in range(100):
        known.ended(of("ann", f"name{n}"), 1.0)

    names = [each.name for each in known.series if each.name]
    assert names == [f"name{n}" for n in range(100 - len(names), 100)]
    assert len(names) > 3
    assert known.size == sum(map(_size, known.series)) <= 8 * 190


def test_a_user_with_many_names_displaces_no_other_user() -> None:
    known = after(*nine(of("bob")), *nine(of("bob", queue="prod")))
    for n in range(4000):
        known.ended(of("mallory", f"{n}" * 20), 1.0)

    for queue in ("research", "prod"):
        found = known.predict(of("bob", queue=queue))
        assert found == RunTime(64, 64, FEWEST_RUNS, Similarity.NAME)
    mine = [_size(each) for each in known.series if each.user == "mallory"]
    assert sum(mine) > 0.9 * MOST_BYTES
    assert known.size <= MOST_BYTES


def test_users_with_many_names_share_what_room_there_is() -> None:
    known = RunTimes(size=100_000)
    for user, n_names in (("ann", 600), ("bob", 3000)):
        for n in range(n_names):
            known.ended(of(user, f"{user}{n:04}"), 1.0)

    held = Counter(each.user for each in known.series if each.name)
    assert abs(held["ann"] - held["bob"]) <= 2


def test_a_user_without_any_series_left_begins_anew() -> None:
    known = RunTimes(size=2000)
    users = [f"user{n:02}" for n in range(40)]
    for _time in range(5):
        for user in users:
            known.ended(of(user), 1.0)
            assert known.size == sum(map(_size, known.series)) <= 2000

    assert 4 < len({each.user for each in known.series}) < 40


def test_a_name_takes_the_room_that_it_takes_as_text() -> None:
    known = RunTimes()
    for n in range(5000):
        known.ended(of("ann", "\x00" * 100 + f"{n}x"), 1.0)

    assert sum(len(json.encode(each)) for each in known.series) < MOST_BYTES
    assert known.size == sum(map(_size, known.series))


def _size(each: RunSeries) -> int:
    texts: Iterable[str] = each.queue, each.user, each.name
    return 96 + MOST_RUNS + sum(len(json.encode(text)) for text in texts)


# Classes of jobs.


def test_jobs_of_one_class_have_the_same_longest_time_and_no_more_in_common() -> None:
    jobs = [
        replace(of("ann"), name="a", run_time=RunTime(8, 64, 9, Similarity.NAME)),
        replace(of("bob"), name="b", run_time=RunTime(16, 64, 30, Similarity.USER)),
        replace(of("bob"), name="c", run_time=RunTime(16, 92, 30, Similarity.USER)),
        of(),
    ]
    keys = [JobState(job).facts.scheduling_key for job in jobs]

    assert keys[0] is keys[1]
    assert len({*keys}) == 3
    assert len({JobState(job).facts.key_without_run_time for job in jobs}) == 1
