"""What every baseline keeps to, in stories that nobody wrote."""

from collections.abc import Iterable

import numpy as np
import pytest

from ringleaf.baselines.order import ORDERS
from ringleaf.baselines.registry import BASELINES
from ringleaf.framework.instruction import Bind, Instruction
from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Schema
from ringleaf.model.mask import full_mask
from tests.baselines.stage import A3, OLD, Stage

SEEDS = range(3)
STEPS = 60
LEAVES, LEAF = 4, 4
RINGS = {
    *("ringleaf", "fgd", "hived", "jigsaw", "whole-leaves"),
    *("vendor-1.0", "vendor-2.0", "cp-sat"),
    *("volcano-vendor-1.0", "volcano-vendor-2.0"),
}
ALONE = {"jigsaw", "whole-leaves"}
"""Those that put one pod of a job on a node."""


def cluster() -> list[Node]:
    """Sixteen nodes of two rings under four leaves, some chips of them faulty."""
    return [
        Node(
            f"n{leaf}{slot}",
            OLD,
            8,
            0xFF,
            faulty=0b1 if (leaf, slot) == (1, 2) else 0,
            leaf=f"L{leaf}",
            slot=slot,
        )
        for leaf in range(LEAVES)
        for slot in range(LEAF)
    ]


def drawn_job(draw: np.random.Generator, number: int) -> Job:
    """A job of some size, with or without a label for leaves."""
    labels = [None, Schema.NORMAL, Schema.LARGE_MODEL]
    chips = int(draw.choice([1, 2, 4, 8, 8, 8]))
    pods = int(draw.integers(1, 8)) if chips == 8 else 1
    return Job(
        f"j{number:03}",
        OLD,
        chips,
        pods,
        tor_affinity=labels[int(draw.integers(3))],
        estimate_s=float(draw.integers(1, 30)) if draw.random() < 0.5 else None,
        priority=int(draw.integers(3)),
    )


class Ledger:
    """Who holds which chip, from what was said; it knows nothing of clusters."""

    def __init__(self, *, by_pods: bool) -> None:
        self._by_pods = by_pods
        self.held: dict[tuple[str, int], str] = {}
        self.jobs: dict[str, Job] = {}
        self.starts = 0
        self.waits = 0

    def hears(self, said: Iterable[Instruction], rings: bool) -> None:  # noqa: FBT001
        for each in said:
            if isinstance(each, Bind):
                self._bound(each, rings=rings)

    def _bound(self, bind: Bind, *, rings: bool) -> None:
        job = self.jobs[bind.job]
        if not self._by_pods:
            assert len(bind.placements) == job.replicas, "all pods or none"
        self.starts += 1
        for pod in bind.placements:
            assert len(pod.chips) == job.chips
            for chip in pod.chips:
                assert (pod.node, chip) not in self.held, "a chip is held twice"
                assert (pod.node, chip) != ("n12", 0), "a faulty chip was given"
                self.held[pod.node, chip] = job.name
            if rings and job.chips <= 4:
                assert len({chip // 4 for chip in pod.chips}) == 1, "a ring is left"

    def forgets(self, name: str) -> None:
        self.held = {k: job for k, job in self.held.items() if job != name}
        del self.jobs[name]


def story(name: str, seed: int, order: str) -> tuple[Ledger, list[Instruction]]:
    """Jobs come and go."""
    draw = np.random.default_rng(seed)
    stage = Stage(name, cluster(), order=order, seed=seed)
    ledger = Ledger(by_pods=BASELINES[name].by_pods)
    for step in range(STEPS):
        if ledger.jobs and draw.random() < 0.4:
            gone = sorted(ledger.jobs)[int(draw.integers(len(ledger.jobs)))]
            ledger.forgets(gone)
            before = len(stage.said)
            stage.goes(gone, now=float(step))
        else:
            job = drawn_job(draw, step)
            ledger.jobs[job.name] = job
            before = len(stage.said)
            ledger.waits += stage.comes(job, now=float(step)) is None
        ledger.hears(stage.said[before:], name in RINGS)
    return ledger, stage.said


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", BASELINES)
def test_no_chip_is_held_twice_and_gangs_start_whole(name: str, seed: int) -> None:
    ledger, _said = story(name, seed, "fifo-skip")

    assert ledger.starts > STEPS // 4
    assert ledger.waits > 0


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["ringleaf", "best-fit", "whole-leaves"])
def test_the_same_in_every_order(name: str, order: str) -> None:
    ledger, _said = story(name, 7, order)

    assert ledger.starts > STEPS // 8
    assert ledger.waits > 0


@pytest.mark.parametrize("name", BASELINES)
def test_the_same_story_is_told_the_same_way_again(name: str) -> None:
    assert story(name, 1, "fifo-skip")[1] == story(name, 1, "fifo-skip")[1]


@pytest.mark.parametrize("name", sorted(ALONE))
def test_a_job_that_crosses_leaves_has_slots_that_are_its_own(name: str) -> None:
    """Under each leaf but one the same slots; that one has some of them."""
    stage = Stage(name, cluster())

    found = stage.comes(Job("j", OLD, 8, 7))

    assert found is not None
    slots = {leaf: {n[2] for n in found if n[1] == leaf} for leaf in "0123"}
    sets = sorted((own for own in slots.values() if own), key=len)
    assert all(own == sets[-1] for own in sets[1:])
    assert sets[0] <= sets[-1]


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_serves_superpods(name: str) -> None:
    nodes = [
        Node(f"n{i:02}", A3, 16, full_mask(16), superpod=i // 4, leaf=f"L{i // 4}")
        for i in range(12)
    ]
    stage = Stage(name, nodes)

    found = stage.comes(Job("j", A3, 16, 4, sp_block=32))

    assert found is not None
    assert len(set(found)) == 4
