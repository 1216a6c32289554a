"""Growth of a scheduler's memory is seen, and what is no growth is not called so."""

import os
from pathlib import Path

import pytest

from tests.soak.memory import MemorySampler, Sample, memory_of, resident_mib


def samples(first: float, last: float, n: int = 61) -> list[Sample]:
    """A line from *first* to *last*, one sample a second."""
    return [(i, first + (last - first) * i / (n - 1)) for i in range(n)]


@pytest.mark.parametrize(
    ("given", "flat"),
    [
        pytest.param(samples(100, 100), True, id="flat"),
        pytest.param(samples(100, 110), True, id="a twentieth from early to late"),
        pytest.param(samples(100, 140), False, id="a fifth"),
        pytest.param(
            [*samples(50, 100, 10), *((i, 100.0) for i in range(10, 61))],
            True,
            id="it warms up",
        ),
        pytest.param(
            [(at, 300.0 if at % 10 == 0 else mib) for at, mib in samples(100, 100)],
            True,
            id="peaks",
        ),
    ],
)
def test_growth_is_told_from_peaks_and_warming_up(
    given: list[Sample], *, flat: bool
) -> None:
    found = memory_of("s", given)

    assert found is not None
    assert found.is_flat is flat


@pytest.mark.parametrize("given", [[], [(0.0, 1.0)], [(0.0, 1.0), (60.0, 1.0)]])
def test_nothing_is_said_of_too_few_samples(given: list[Sample]) -> None:
    assert memory_of("s", given) is None


def test_only_processes_that_lived_all_the_time_are_judged() -> None:
    sampler = MemorySampler(list)
    sampler.samples = {
        "whole": [(at - 10, mib) for at, mib in samples(100, 100)],
        "late": samples(100, 100)[20:],
        "gone": [(at - 60, mib) for at, mib in samples(900, 900)],
    }

    assert [each.name for each in sampler.since(0.0)] == ["whole"]
    assert sampler.most == 900


def test_resident_memory_is_read_until_the_process_ends(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text("Name:\tz\nState:\tZ (zombie)\n", "ascii")

    own = resident_mib(os.getpid())

    assert own is not None
    assert 5 < own < 5000
    assert resident_mib(7, tmp_path) is None
    assert resident_mib(8, tmp_path) is None
