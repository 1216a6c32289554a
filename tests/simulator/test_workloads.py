"""Workloads that have a name."""

from collections import Counter
from functools import lru_cache
from itertools import groupby, pairwise

import pytest

from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import JobArrived, JobGone
from ringleaf.framework.instruction import Bind
from ringleaf.model.job import Job
from ringleaf.simulator.mix import LONGEST_S, figures, is_made_up, synthetic
from ringleaf.simulator.preset import USUAL, Knobs
from ringleaf.simulator.sites import site
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import Ending, JobSpec, Site, Workload
from ringleaf.simulator.workloads import WORKLOADS, workload

LEAVES = site("leaf-spine-512")
PODS = site("superpod-48x8")
MIXED = site("mixed")
PUBLISHED = [name for name, preset in WORKLOADS.items() if preset.figures]


def home(name: str) -> Site:
    """A cluster for the workload *name*."""
    return PODS if name == "llm-superpod" else LEAVES


def chips_of(spec: JobSpec) -> int:
    return spec.job.chips * spec.job.replicas


def chip_s(job_specs: list[JobSpec]) -> float:
    return sum(chips_of(spec) * spec.runs_s for spec in job_specs)


def told(found: Workload) -> list[str]:
    return [repr(spec) for spec in found.job_specs()]


PAIRS = [
    pytest.param(name, where, id=f"{name} on {where.name}")
    for name in WORKLOADS
    for where in (LEAVES, PODS, MIXED)
    if name != "llm-superpod" or where is not LEAVES
]


@pytest.mark.parametrize(("name", "where"), PAIRS)
def test_every_job_is_placed_where_it_is_alone(name: str, where: Site) -> None:
    job_specs = list(workload(name, where, jobs=6500).job_specs())
    engine = Engine(where.nodes, where.leaves, where.queues, DEFAULT)
    unlike = {_asks(spec.job): spec.job for spec in job_specs}

    for job in unlike.values():
        said = engine.handle_all([JobArrived(job)], 0.0)
        engine.handle_all([JobGone(job.name)], 0.0)

        assert [each for each in said if isinstance(each, Bind)], _asks(job)


def _asks(job: Job) -> tuple[object, ...]:
    return job.product.key, job.chips, job.replicas, job.tor_affinity, job.sp_block


def test_blocks_need_superpods() -> None:
    with pytest.raises(BadInput) as caught:
        workload("llm-superpod", LEAVES)

    assert str(caught.value) == (
        "workload 'llm-superpod' wants SuperPoDs, cluster 'leaf-spine-512' has none; "
        "hint: superpod-48x8 has some"
    )


def test_blocks_are_those_of_the_file() -> None:
    jobs = [spec.job for spec in workload("llm-superpod", PODS, jobs=5000).job_specs()]
    blocks = {job.sp_block // 16 for job in jobs if job.sp_block is not None}

    assert blocks == {16, 32, 48}
    assert {job.product.key for job in jobs} == {"atlas-900-a3"}


def test_a_hard_round_fills_rings_and_leaves_and_lets_gangs_come_after() -> None:
    small = site("leaf-spine-512:nodes=16")
    job_specs = list(workload("adversarial", small, jobs=260).job_specs())
    acts = [
        (kind, len(list(group)))
        for kind, group in groupby(job_specs, lambda spec: spec.kind)
        if kind != "gang"
    ]
    long = [spec for spec in job_specs if spec.runs_s > 6 * 3600]

    assert acts[:5] == [
        ("chip", 32), ("node", 4), ("chip", 128), ("node", 16), ("chip", 32),
    ]  # fmt: skip
    assert Counter(spec.kind for spec in long[: 32 + 4 + 32 + 4]) == {
        "chip": 64,
        "node": 8,
    }
    assert {w.job.replicas for w in job_specs if w.kind == "gang"} == {2, 4}


@pytest.mark.parametrize("name", WORKLOADS)
def test_jobs_come_in_order_from_the_beginning_and_have_names(name: str) -> None:
    found = workload(name, home(name), jobs=1000)
    job_specs = list(found.job_specs())

    assert len(job_specs) == found.n_jobs == 1000
    assert len({spec.job.name for spec in job_specs}) == 1000
    assert job_specs[0].arrives == 0.0
    assert job_specs[-1].arrives == found.span_s
    assert all(a.arrives <= b.arrives for a, b in pairwise(job_specs))
    assert all(spec.job.created == spec.arrives for spec in job_specs)
    assert all(1 <= spec.runs_s <= LONGEST_S for spec in job_specs)


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("load", [0.5, 1.3])
def test_the_offered_load_is_the_one_that_was_asked_for(name: str, load: float) -> None:
    found = workload(name, home(name), load=load, jobs=1500)

    area = home(name).chips * found.span_s

    assert chip_s(list(found.job_specs())) / area == pytest.approx(load, rel=1e-9)
    assert found.load == pytest.approx(load, rel=1e-9)


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_same_seed_gives_the_same_jobs_and_another_seed_others(name: str) -> None:
    found = workload(name, home(name), seed=7, jobs=500)

    assert told(found) == told(found)
    assert told(found) == told(workload(name, home(name), seed=7, jobs=500))
    assert told(found) != told(workload(name, home(name), seed=8, jobs=500))


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("at_a_time", [1, 333])
def test_jobs_do_not_depend_on_how_many_are_drawn_together(
    name: str, at_a_time: int
) -> None:
    found = workload(name, home(name), jobs=1000, knobs=Knobs(at_a_time=at_a_time))

    assert told(found) == told(workload(name, home(name), jobs=1000))


@lru_cache
def published(name: str) -> list[JobSpec]:
    """Many jobs as they are drawn: no size is rounded up, and none is cut."""
    big = site("leaf-spine-512:product=atlas-800t-a2")
    return list(workload(name, big, jobs=100_000).job_specs())


def test_the_mean_number_of_chips_is_the_published_one() -> None:
    job_specs = published("kalos")

    mean = sum(map(chips_of, job_specs)) / len(job_specs)

    assert mean == pytest.approx(figures("kalos").mean_chips, rel=0.04)


def test_shares_of_jobs_and_of_chip_time_by_type_are_the_published_ones() -> None:
    job_specs = published("kalos")
    jobs, time = Counter[str](), Counter[str]()
    for spec in job_specs:
        jobs[spec.kind] += 1
        time[spec.kind] += round(chips_of(spec) * spec.runs_s)

    for kind, wanted in figures("kalos").types.items():
        of_jobs = 100 * jobs[kind] / len(job_specs)
        of_time = 100 * time[kind] / time.total()
        assert of_jobs == pytest.approx(wanted.jobs_percent, abs=0.2)
        assert of_time == pytest.approx(wanted.chip_time_percent, abs=1.0)


def test_shares_of_jobs_by_size_are_the_published_ones() -> None:
    job_specs = published("kalos")
    jobs = Counter(map(chips_of, job_specs))

    for chips, percent, _time in figures("kalos").sizes:
        assert 100 * jobs[chips] / len(job_specs) == pytest.approx(percent, abs=0.3)


def test_jobs_end_as_the_published_shares_say() -> None:
    job_specs = published("kalos")
    jobs = Counter(spec.ending for spec in job_specs)

    for ending in Ending:
        of_jobs, _time = figures("kalos").endings[ending]
        assert jobs[ending] / len(job_specs) == pytest.approx(of_jobs, abs=0.01)


def test_jobs_of_whole_nodes_have_a_label_and_others_none() -> None:
    job_specs = list(workload("kalos", LEAVES, knobs=Knobs(common=0.25)).job_specs())
    whole = [spec.job for spec in job_specs if spec.job.chips == 8]
    common = [job for job in whole if job.tor_affinity == "normal-schema"]

    assert all(job.tor_affinity is not None for job in whole)
    assert all(w.job.tor_affinity is None for w in job_specs if w.job.chips < 8)
    assert len(common) / len(whole) == pytest.approx(0.25, abs=0.05)


def test_more_jobs_come_by_day_than_by_night() -> None:
    found = workload("philly", LEAVES, jobs=40_000, knobs=Knobs(burst=1.0))
    half = Counter((w.arrives % 86400) < 43200 for w in found.job_specs())

    assert found.span_s > 5 * 86400
    # The rate is 1 + 0.6 sin: the better half of a day has 1/2 + 0.6/pi of the jobs.
    assert half[True] / 40_000 == pytest.approx(0.5 + 0.6 / 3.1416, abs=0.03)


@pytest.mark.parametrize("burst", [0.5, 1.0, 3.0])
def test_the_time_between_arrivals_varies_as_much_as_is_asked(burst: float) -> None:
    knobs = Knobs(amplitude=0.0, burst=burst)
    job_specs = list(workload("kalos", LEAVES, jobs=20_000, knobs=knobs).job_specs())
    gaps = [b.arrives - a.arrives for a, b in pairwise(job_specs)]

    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5

    assert spread / mean == pytest.approx(burst, rel=0.05)


def test_jobs_tell_how_long_they_run_if_they_are_to() -> None:
    found = workload("kalos", LEAVES, jobs=100, knobs=Knobs(estimate=1.5))

    assert all(w.job.estimate_s == 1.5 * w.runs_s for w in found.job_specs())
    assert all(
        w.job.estimate_s is None for w in workload("kalos", LEAVES, jobs=9).job_specs()
    )


def test_jobs_larger_than_the_cluster_are_cut_with_a_note() -> None:
    small = site("leaf-spine-512:nodes=16")

    found = workload("kalos", small, jobs=2000)

    assert max(map(chips_of, found.job_specs())) == small.chips
    (note,) = found.notes
    assert "cut to fit" in note
    assert note.endswith("up to 1,024: cut to fit")


def test_blocks_in_superpods_are_16_nodes() -> None:
    jobs = [w.job for w in workload("kalos", PODS, jobs=5000).job_specs()]
    large = [job for job in jobs if job.replicas > 16]

    assert large
    assert {job.sp_block for job in large} == {16 * 16}
    assert {job.sp_block for job in jobs if job.replicas <= 16} == {None}


@pytest.mark.parametrize(
    ("name", "given", "line"),
    [
        ("kalso", {}, "did you mean 'kalos'?"),
        ("kalos", {"load": 0.0}, "load is 0.0, want more than 0 and at most 10"),
        ("kalos", {"jobs": 0}, "jobs is 0, want 1 to 10,000,000"),
        ("kalos", {"seed": -1}, "seed is -1, want a whole number, 0 or more"),
        ("kalos", {"knobs": Knobs(amplitude=1.0)}, "amplitude is 1.0, want 0 to below"),
        (
            "kalos",
            {"knobs": Knobs(burst=0.0)},
            "burst is 0.0, want more than 0 and at most 100",
        ),
    ],
)
def test_what_is_no_workload_is_told_in_one_line(
    name: str, given: dict[str, object], line: str
) -> None:
    with pytest.raises(BadInput) as caught:
        workload(name, LEAVES, **given)  # type: ignore[arg-type]

    assert line in str(caught.value)


def test_usual_knobs_are_those_of_the_specification() -> None:
    assert (USUAL.amplitude, USUAL.burst) == (0.6, 2.0)


def test_every_figure_says_where_it_comes_from() -> None:
    for name in PUBLISHED:
        found = workload(name, home(name), jobs=1)
        file = WORKLOADS[name].figures
        own = synthetic(file) if is_made_up(file) else figures(file)

        assert own.licence in found.about
        assert own.cite in found.about
        assert own.source.startswith("https://")
