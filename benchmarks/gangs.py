"""How fast a whole gang is placed by each network rule.

Run by ``make bench``. A gang of whole nodes is decided, timed and released, over and
over; the cluster sizes take turns, so that noise hits all alike. Every decision must
place the gang, or there is no figure.
"""

import sys
from collections.abc import Callable, Sequence
from itertools import product as combinations
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from ringleaf import Cluster, Job, Node, Placed, Session, Settings, Statement
from ringleaf.model.job_labels import Firmness, Schema
from ringleaf.model.settings import SwitchMode
from ringleaf.policies.products import PRODUCTS

SIZES = (1_000, 10_000, 100_000)
GANGS = (16, 128, 1_024)
ROUNDS = 21
LEAF, SUPERPOD, BLOCK = 10, 48, 8
GOAL_MS, GOAL_GROWTH = 50, 12
SEED = 910

A2, A3 = PRODUCTS["atlas-800t-a2"], PRODUCTS["atlas-900-a3"]


class Mode(NamedTuple):
    """A network rule, the cluster it is tried on and the gang it places."""

    name: str
    settings: Settings
    build: Callable[[int, int], Cluster]
    gang: Callable[[int], Job]


def leaves(n_nodes: int, _gang: int) -> Cluster:
    """Leaves of ten: half of them free, of the others any nodes taken."""
    random = np.random.default_rng(SEED)
    taken = random.random(n_nodes) < random.random(n_nodes // LEAF).repeat(LEAF)
    whole = random.random(n_nodes // LEAF).repeat(LEAF) < 1 / 2
    return under_leaves(np.where(taken & ~whole, 0, 0xFF), LEAF)


def broken_leaves(n_nodes: int, _gang: int) -> Cluster:
    """One node of every leaf is taken, at a slot that goes round."""
    at = np.arange(n_nodes)
    return under_leaves(np.where(at % LEAF == at // LEAF % LEAF, 0, 0xFF), LEAF)


def large_leaves(n_nodes: int, gang: int) -> Cluster:
    """A third of the nodes taken, under leaves that hold twice the gang."""
    taken = np.random.default_rng(SEED).random(n_nodes) < 1 / 3
    return under_leaves(np.where(taken, 0, 0xFF), min(n_nodes, 2 * gang))


def under_leaves(free: np.ndarray, leaf: int) -> Cluster:
    """Nodes with *free* chips, *leaf* of them under each leaf."""
    return Cluster(
        Node(f"n{i:06}", A2, 8, chips, leaf=f"L{i // leaf}", slot=i % leaf)
        for i, chips in enumerate(free.tolist())
    )


def superpods(n_nodes: int, _gang: int) -> Cluster:
    """SuperPoDs of 48, half of their nodes taken at random."""
    taken = np.random.default_rng(SEED).random(n_nodes) < 1 / 2
    free = np.where(taken, 0, 0xFFFF).tolist()
    return Cluster(
        Node(f"n{i:06}", A3, 16, chips, superpod=i // SUPERPOD)
        for i, chips in enumerate(free)
    )


def labelled(schema: Schema) -> Callable[[int], Job]:
    """Gangs with the label *schema*."""
    return lambda nodes: Job("gang", A2, 8, nodes, tor_affinity=schema)


def blocks(firmness: Firmness) -> Callable[[int], Job]:
    """Gangs in blocks of eight nodes."""
    return lambda nodes: Job(
        "gang", A3, 16, nodes, sp_block=16 * BLOCK, superpod_affinity=firmness
    )


def unlabelled(nodes: int) -> Job:
    """A gang without a label: chip ranks, and one leaf where they tie."""
    return Job("gang", A2, 8, nodes)


LARGE, NORMAL = labelled(Schema.LARGE_MODEL), labelled(Schema.NORMAL)
ONE = Settings(nodes_per_leaf=LEAF)
TWO = Settings(nodes_per_leaf=LEAF, switch_mode=SwitchMode.SPINE_LEAF_2)
SINGLE = Settings(switch_mode=SwitchMode.SINGLE_LAYER)
MODES = (
    Mode("1.0, whole leaves", ONE, leaves, LARGE),
    Mode("1.0, logical leaves", ONE, broken_leaves, LARGE),
    Mode("1.0, common", ONE, leaves, NORMAL),
    Mode("2.0, foundation", TWO, leaves, LARGE),
    Mode("2.0, common", TWO, broken_leaves, NORMAL),
    Mode("single-layer", SINGLE, large_leaves, NORMAL),
    Mode("no label, no leaf holds it", ONE, leaves, unlabelled),
    Mode("no label, one leaf", ONE, large_leaves, unlabelled),
    Mode("SuperPoDs, hard", Settings(), superpods, blocks(Firmness.HARD)),
    Mode("SuperPoDs, soft", Settings(), superpods, blocks(Firmness.SOFT)),
)


def seconds(sessions: Sequence[Session], gang: Job) -> list[float]:
    """The median time of one decision in each session."""
    times: list[list[float]] = [[] for _session in sessions]
    for _round in range(ROUNDS):
        for session, spent in zip(sessions, times, strict=True):
            start = perf_counter()
            decision = session.decide(gang)
            spent.append(perf_counter() - start)
            assert isinstance(decision, Placed)
            with Statement(session.cluster) as statement:
                statement.release(gang.name)
                statement.commit()
    return [median(spent) for spent in times]


def main() -> int:
    """Print a row a rule and gang, then whether the goals are met."""
    console = Console(highlight=False, width=88)
    table = Table("rule", "gang", *(f"{n:,} nodes" for n in SIZES), "growth")
    worst = growth = 0.0
    for mode, nodes in combinations(MODES, GANGS):
        sizes = [size for size in SIZES if size >= 4 * nodes]
        sessions = [Session(mode.build(n, nodes), mode.settings) for n in sizes]
        spent = seconds(sessions, mode.gang(nodes))
        cells = [""] * (len(SIZES) - len(sizes)) + [f"{s * 1e3:.1f} ms" for s in spent]
        grown = spent[-1] / spent[-2]
        table.add_row(mode.name, f"{nodes:,}", *cells, f"{grown:.1f}x")
        worst, growth = max(worst, spent[-1]), max(growth, grown)
    console.print(table)
    met = {
        f"under {GOAL_MS} ms for every gang and rule": worst * 1e3 < GOAL_MS,
        f"growth of at most {GOAL_GROWTH}x from {SIZES[1] // LEAF:,} to "
        f"{SIZES[2] // LEAF:,} leaves": growth <= GOAL_GROWTH,
    }
    for goal, good in met.items():
        console.print(f"{'met   ' if good else 'MISSED'} {goal}")
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
