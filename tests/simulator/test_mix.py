"""Published figures, made into one table to draw jobs from."""

from typing import Final

import numpy as np
import pytest

from ringleaf.simulator.mix import Mix, figures, mix, synthetic, synthetic_mix

NAMES: Final = ("kalos", "seren", "philly", "helios", "pai")


def shares(table: Mix, of: np.ndarray, weight: np.ndarray) -> dict[int, float]:
    """Percent of *weight* for each value of a column of *table*."""
    weight = table.chance * weight
    percent = 100 / float(weight.sum())
    return {int(n): float(weight[of == n].sum()) * percent for n in np.unique(of)}


def time_of(table: Mix) -> np.ndarray:
    return table.chips * table.mean_s


@pytest.mark.parametrize("name", NAMES)
def test_shares_of_jobs_by_size_are_the_published_ones(name: str) -> None:
    table = mix(name)

    found = shares(table, table.chips, np.ones(len(table.chips)))

    for chips, percent, _time in figures(name).sizes:
        assert found[chips] == pytest.approx(percent, abs=0.15)


@pytest.mark.parametrize("name", NAMES)
def test_shares_of_chip_time_by_size_are_the_published_ones(name: str) -> None:
    table = mix(name)

    found = shares(table, table.chips, time_of(table))

    for chips, _jobs, percent in figures(name).sizes:
        assert found[chips] == pytest.approx(percent, abs=0.15)


@pytest.mark.parametrize("name", NAMES)
def test_shares_by_type_are_the_published_ones(name: str) -> None:
    table = mix(name)

    jobs = shares(table, table.kind, np.ones(len(table.kind)))
    time = shares(table, table.kind, time_of(table))

    for i, kind in enumerate(figures(name).types.values()):
        assert jobs[i] == pytest.approx(kind.jobs_percent, abs=0.1)
        assert time[i] == pytest.approx(kind.chip_time_percent, abs=0.15)


@pytest.mark.parametrize("name", NAMES)
def test_running_times_of_every_type_are_the_published_ones(name: str) -> None:
    table = mix(name)

    for i, kind in enumerate(figures(name).types.values()):
        own = table.kind == i
        for seconds, percent in kind.seconds_cdf_percent[:-1]:
            no_longer = own & (table.high <= seconds * 1.0001)
            share = table.chance[no_longer].sum() / table.chance[own].sum()
            assert 100 * share == pytest.approx(percent, abs=0.01)


@pytest.mark.parametrize(
    ("name", "within"), [("kalos", 0.01), ("philly", 0.01), ("helios", 0.03)]
)
def test_the_mean_number_of_chips_is_near_the_published_one(
    name: str, within: float
) -> None:
    table = mix(name)

    mean = float((table.chance * table.chips).sum())

    assert mean == pytest.approx(figures(name).mean_chips, rel=within)


@pytest.mark.parametrize(
    ("name", "within"), [("kalos", 0.07), ("philly", 0.02), ("helios", 0.06)]
)
def test_the_mean_running_time_is_near_the_published_one(
    name: str, within: float
) -> None:
    table = mix(name)

    mean = float((table.chance * table.mean_s).sum())

    assert mean == pytest.approx(figures(name).mean_s, rel=within)


@pytest.mark.parametrize("name", ["kalos", "seren", "philly", "helios"])
def test_jobs_end_as_the_published_shares_say(name: str) -> None:
    table, told = mix(name), figures(name).endings
    jobs = table.chance
    time = jobs * time_of(table) / (jobs * time_of(table)).sum()

    for ending, chance in (("failed", table.failed), ("cancelled", table.cancelled)):
        of_jobs, of_time = told[ending]
        assert float((jobs * chance).sum()) == pytest.approx(of_jobs, abs=1e-6)
        assert float((time * chance).sum()) == pytest.approx(of_time, abs=1e-6)
        assert 0 <= chance.min() <= chance.max() <= 1


def test_large_jobs_only_are_left_where_only_they_are_wanted() -> None:
    table = mix("helios", 8)

    assert int(table.chips.min()) == 8
    assert float(table.chance.sum()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "blocks"), [("llm-superpod", {0, 16, 32, 48}), ("packing", {0})]
)
def test_a_made_up_mix_is_as_its_file_says(name: str, blocks: set[int]) -> None:
    told, table = synthetic(name), synthetic_mix(name)

    jobs = shares(table, table.kind, np.ones(len(table.kind)))

    assert table.kinds == tuple(told.types)
    for i, wish in enumerate(told.types.values()):
        assert sum(row[2] for row in wish.chips_block_percent) == 100
        assert jobs[i] == pytest.approx(wish.jobs_percent)
    assert set(table.block.tolist()) == blocks
