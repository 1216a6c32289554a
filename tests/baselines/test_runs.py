"""Baselines in virtual time: with faults, and put away and taken up again."""

from pathlib import Path

import pytest

from ringleaf.baselines.order import ORDERS
from ringleaf.baselines.registry import BASELINES, DEPLOYED, baseline
from ringleaf.simulator.checkpoint import load, save
from ringleaf.simulator.clock import Clock
from ringleaf.simulator.trial import Trial
from tests.simulator.trials import Diary, busy, lines

PAIRS = [
    *((name, "fifo-skip") for name in BASELINES if name not in DEPLOYED),
    *((name, None) for name in DEPLOYED),
    *(("best-fit", order) for order in ORDERS),
    *(("ringleaf", order) for order in ORDERS),
    ("best-fit", None),
]


def clock_of(played: Trial, name: str, order: str | None) -> Clock:
    site = played.site
    make = baseline(name, order=order, seed=3)
    scheduler = make(site.nodes, site.leaves, site.queues, played.conf)
    return Clock(played, scheduler, [Diary()])


@pytest.mark.parametrize(("name", "order"), PAIRS)
def test_a_run_goes_on_with_the_same_words(
    name: str, order: str | None, tmp_path: Path
) -> None:
    whole = clock_of(busy(8, 5), name, order)
    told = lines(whole)
    before, path = clock_of(busy(8, 5), name, order), tmp_path / "run"
    for _ in range(70):
        before.step()
    save(path, before, "1.0", {})

    assert lines(load(path, busy(8, 5), "1.0", {})) == told
    assert whole.tally.over == 90
