"""How long a search for victims takes: a full cluster, and jobs that outrank it.

Run by ``make bench``. Every node is full, and more jobs arrive than there are nodes:
of a higher priority (``preempt``), or of a queue that has nothing (``reclaim``). The
engine is called as the scheduler calls it, in slices, until everything is decided; then
all pods end that were asked to. Where every job has another request, a pod without
chips arrives in every call as well, of which the first are there before the others
come. Each figure is preceded by a check of what was decided.
"""

import gc
import sys
from collections.abc import Iterator, Sequence
from time import process_time
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from ringleaf import PRODUCTS, Job, Node
from ringleaf.cli.main import COLLECT_AFTER
from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event, JobArrived, PodsGone
from ringleaf.framework.instruction import Bind, Evict, Instruction
from ringleaf.kube.decision_loop import SLICE
from ringleaf.model.demand import Demand
from ringleaf.model.job import Role
from ringleaf.model.queue import Queue
from ringleaf.policies.products import NO_NPU

SIZES = (500, 2_000)
PER_NODE = 2.5
AT_ONCE = 250
"""Events that the engine hears in one call at most, as they come from a watch."""
DISTINCT = 100_000
"""More kinds than jobs: each has another request."""
RESOURCES = {"cpu": 192_000}
N_PLAIN = 200
"""Pods without chips that run before the search begins."""
GOAL_CALL_S, GOAL_FIRST_S, GOAL_WHOLE_S, GOAL_GROWTH = 0.2, 1.0, 60.0, 2.0
GOAL_PLAIN_S = 1.0
A2 = PRODUCTS["atlas-800t-a2"]
TIERS = (
    ("priority", "gang", "conformance", "affinity"),
    ("drf", "predicates", "proportion", "nodeorder", "binpack"),
)


def configured() -> Conf:
    """Volcano's usual plugins, and both actions."""
    tiers = [{"plugins": [{"name": name} for name in tier]} for tier in TIERS]
    actions = "enqueue, allocate, preempt, reclaim, backfill"
    found = read_conf({"actions": actions, "tiers": tiers})
    assert isinstance(found, Conf)
    return found


class Run(NamedTuple):
    """What one search cost, in seconds of processor time."""

    n_evictors: int
    calls: int
    longest_s: float
    first_s: float
    whole_s: float
    ends_s: float
    """The longest call while the victims end."""
    plain_s: float
    """The longest time until a pod without chips was bound; 0 without any."""

    @property
    def each_ms(self) -> float:
        """What an evictor cost."""
        return 1e3 * self.whole_s / self.n_evictors


def batches(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """A few events at a time."""
    for first in range(0, len(events), AT_ONCE):
        yield events[first : first + AT_ONCE]


class Player:
    """An engine that is called in slices, with a watch on its calls."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.calls: list[float] = []
        self.spent = 0.0
        self.first: float | None = None
        """When the first eviction came."""
        self.arrived: dict[str, float] = {}
        """When a pod without chips arrived, in seconds of processor time."""
        self.bound: dict[str, float] = {}
        """How long after that it was bound."""

    def hears(
        self, events: Sequence[Event], now: float, *, plain: bool = False
    ) -> list[Instruction]:
        """What is decided after *events*, which come a few at a time.

        A pod without chips comes with each of them where *plain* is true.
        """
        said = []
        for batch in batches(events):
            said += self._call([*batch, *self._plain(plain)], now)
        while self._engine.has_more:
            said += self._call(self._plain(plain), now)
        return said

    def _plain(self, comes: bool) -> list[Event]:  # noqa: FBT001 - its only argument
        if not comes:
            return []
        job = plain_job(f"late{len(self.arrived)}")
        self.arrived[job.name] = self.spent
        return [JobArrived(job)]

    def _call(self, events: Sequence[Event], now: float) -> list[Instruction]:
        start = process_time()
        said = self._engine.handle_all(events, now, SLICE)
        self.calls.append(process_time() - start)
        self.spent += self.calls[-1]
        if self.first is None and any(isinstance(each, Evict) for each in said):
            self.first = self.spent
        for each in said:
            if isinstance(each, Bind) and each.job in self.arrived:
                self.bound[each.job] = self.spent - self.arrived[each.job]
        return said


def plain_job(name: str) -> Job:
    """One pod that asks for a processor, and for no chips."""
    role = Role("", 0, demand=Demand(resources=(("cpu", 1000),)))
    return Job(name, NO_NPU, 0, 0, roles=(role,), queue="a")


def run(n_nodes: int, action: str, kinds: int = 1) -> Run:
    """Fill the nodes, let others arrive that outrank all, and let their victims end.

    The jobs that come are of so many *kinds*.
    """
    gc.collect()  # what the run before left is not this one's to pay
    nodes = [
        Node(f"node-{i:06}", A2, 8, 0xFF, resources=RESOURCES) for i in range(n_nodes)
    ]
    engine = Engine(nodes, queues=[Queue("a"), Queue("b")], conf=configured())
    low = [Job(f"low{i}", A2, 8, queue="a") for i in range(n_nodes)]
    player = Player(engine)
    said = player.hears([JobArrived(job) for job in low], 0.0)
    assert sum(isinstance(each, Bind) for each in said) == n_nodes
    plain = kinds == DISTINCT
    n_plain = N_PLAIN if plain else 0
    player.hears([JobArrived(plain_job(f"plain{i}")) for i in range(n_plain)], 1.0)

    queue, priority = ("a", 9) if action == "preempt" else ("b", 0)
    high = [
        Job(
            f"high{i}",
            A2,
            8,
            queue=queue,
            priority=priority,
            estimate_s=1e6 + i % kinds,
            demand=Demand(resources=(("cpu", 1000 + i % kinds),)),
        )
        for i in range(int(PER_NODE * n_nodes))
    ]
    player = Player(engine)
    said = player.hears([JobArrived(job) for job in high], 60.0, plain=plain)
    gone = [PodsGone(e.job, e.replicas) for e in said if isinstance(e, Evict)]
    want = n_nodes if action == "preempt" else n_nodes // 2
    assert len({event.job for event in gone}) == len(gone) == want
    assert player.first is not None
    assert player.bound.keys() == player.arrived.keys()

    ending = Player(engine)
    said = ending.hears(gone, 90.0)
    assert sum(isinstance(each, Bind) for each in said) == want
    return Run(
        n_evictors=want,
        calls=len(player.calls),
        longest_s=max(player.calls),
        first_s=player.first,
        whole_s=player.spent,
        ends_s=max(ending.calls),
        plain_s=max(player.bound.values(), default=0.0),
    )


def main() -> int:
    """Print the table, then whether the goals are met."""
    console = Console(highlight=False, width=100)
    gc.set_threshold(COLLECT_AFTER)  # as the commands do
    table = Table(
        "action",
        "kinds",
        "nodes",
        "evictors",
        "calls",
        "longest",
        "first",
        "all",
        "each",
        "victims end",
    )
    met: dict[str, bool] = {}
    for action, kinds in (
        ("preempt", 1),
        ("reclaim", 1),
        ("preempt", 100),
        ("reclaim", 100),
        ("preempt", DISTINCT),
        ("reclaim", DISTINCT),
    ):
        runs = [run(n_nodes, action, kinds) for n_nodes in SIZES]
        for n_nodes, found in zip(SIZES, runs, strict=True):
            table.add_row(
                action,
                "distinct" if kinds == DISTINCT else f"{kinds:,}",
                f"{n_nodes:,}",
                f"{found.n_evictors:,}",
                f"{found.calls:,}",
                f"{1e3 * found.longest_s:.0f} ms",
                f"{1e3 * found.first_s:.0f} ms",
                f"{found.whole_s:.1f} s",
                f"{found.each_ms:.2f} ms",
                f"{1e3 * found.ends_s:.0f} ms",
            )
        small, large = runs
        growth = large.each_ms / small.each_ms
        what = f"{action}, {kinds} {'kind' if kinds == 1 else 'kinds'}"
        if kinds == DISTINCT:
            what = f"{action}, distinct requests"
            took = f"{large.plain_s:.2f} s found"
            told = f"{what}: a pod without chips bound in {GOAL_PLAIN_S:g} s, {took}"
            met[told] = large.plain_s < GOAL_PLAIN_S
        met |= {
            f"{what}: no call beyond {GOAL_CALL_S} s": large.longest_s < GOAL_CALL_S,
            f"{what}: first eviction in {GOAL_FIRST_S} s": large.first_s < GOAL_FIRST_S,
            f"{what}: all in {GOAL_WHOLE_S} s": large.whole_s < GOAL_WHOLE_S,
            f"{what}: an evictor costs at most {GOAL_GROWTH:g} times as much on "
            f"{SIZES[1]:,} nodes, {growth:.2f} found": growth < GOAL_GROWTH,
        }
    console.print(table)
    for goal, good in met.items():
        console.print(f"{'met   ' if good else 'MISSED'} {goal}")
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
