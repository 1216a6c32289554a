"""Baselines in virtual time: with faults, and put away and taken up again."""

from pathlib import Path

import pytest

from ringleaf.baselines.order import ORDERS
from ringleaf.baselines.registry import BASELINES, baseline
from ringleaf.engine.event import NodesChanged
from ringleaf.model.fault import Mode, Recovery
from ringleaf.simulator.bookmark import load, save
from ringleaf.simulator.clock import Clock
from ringleaf.simulator.trial import Happening, Trial
from tests.simulator.trials import Diary, node, trial, work

PAIRS = [
    *((name, "fifo-skip") for name in BASELINES),
    *(("best-fit", order) for order in ORDERS),
    *(("ringleaf", order) for order in ORDERS),
    ("best-fit", None),
]


def busy() -> Trial:
    """Ninety jobs on eight nodes, of which one is broken for a while."""
    works = [
        work(
            f"j{n:02}",
            n * 3.0,
            40 + n * 7 % 50,
            chips=(1, 2, 4, 8)[n % 4],
            replicas=1 + n % 5 * (n % 4 == 3),
            priority=n % 3,
            estimate_s=100.0 if n % 2 else None,
            recovery=Recovery(Mode.GRACE),
        )
        for n in range(90)
    ]
    chip = node(1, faulty=3, unhealthy=3)
    happenings = [
        Happening(60, NodesChanged((chip,))),
        Happening(160, NodesChanged((node(1),))),
    ]
    return trial(8, works, happenings=happenings, grace_s=5.0)


def clock_of(played: Trial, name: str, order: str | None) -> Clock:
    site = played.site
    make = baseline(name, order=order, seed=3)
    scheduler = make(site.nodes, site.leaves, site.queues, played.conf)
    return Clock(played, scheduler, [Diary()])


def lines(clock: Clock) -> list[str]:
    while clock.step():
        pass
    clock.finish()
    (diary,) = clock.observers
    assert isinstance(diary, Diary)
    return diary.lines


@pytest.mark.parametrize(("name", "order"), PAIRS)
def test_a_run_goes_on_with_the_same_words(
    name: str, order: str | None, tmp_path: Path
) -> None:
    whole = clock_of(busy(), name, order)
    told = lines(whole)
    before, path = clock_of(busy(), name, order), tmp_path / "run"
    for _ in range(70):
        before.step()
    save(path, before, "1.0", {})

    assert lines(load(path, busy(), "1.0", {})) == told
    assert whole.tally.over == 90
