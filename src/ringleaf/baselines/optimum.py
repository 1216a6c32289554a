"""CP-SAT: of the jobs that wait, those that together hold the most chips.

An oracle to compare with, not a scheduler: at every decision it looks at the first 60
jobs that wait, and an exact solver says which of them to place and under which leaves,
by the rule of switch affinity 1.0: a job stays under one leaf or crosses leaves that
no other job crosses; padding jobs never cross. It does not look ahead in time, and does
not mind slots.

Jobs of whole nodes are its business. Others are placed by the chip rules, after them.
Where one job waits, or all that wait can be placed, no solver is asked. After 2,000
decisions every job is placed by itself, as well as it can be. What the solver finds is
the same every time: it has one worker and a limit of its own time, not of the clock's.

Source: the bounds of docs/measures.md; needs the extra ``optimum``.
"""

from collections.abc import Sequence
from heapq import nsmallest
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.actions.allocate import attempt
from ringleaf.actions.queue_iterator import QueueIterator
from ringleaf.actions.start import start_reserved
from ringleaf.baselines.fitting import (
    TIGHT,
    FittingNodes,
    Spots,
    Wiring,
    fitting_nodes,
    without_network,
)
from ringleaf.baselines.isolation import alone, ground_under, seated
from ringleaf.baselines.tiers import Taken, fewest, smallest
from ringleaf.framework.context import Context
from ringleaf.framework.job_state import JobState
from ringleaf.model.arrays import Flags, Ints
from ringleaf.model.job import Job
from ringleaf.model.placement import JobType
from ringleaf.policies.fit import Request, request_of
from ringleaf.policies.switches import LeafSlice, LeafTable
from ringleaf.simulator.gang_model import GangModel, LeafCapacity, WholeNodeGang
from ringleaf.simulator.relaxation import largest_sum

WINDOW: Final = 60
"""Jobs that are decided together."""
MAX_DECISIONS: Final = 2000
"""How often the solver is asked."""
LIMIT: Final = 0.5
"""The solver's own time for the most nodes; a few seconds of ours."""
LIMIT_SPANS: Final = 0.1
"""The same for the fewest leaves after that."""


class NotInstalled(ValueError):  # noqa: N818 - what is missing
    """An extra of the package is needed."""


class Leaves(Struct, frozen=True):
    """How many nodes are free under each leaf, and which leaves a job crosses."""

    free: Ints
    crossed: Flags

    def after(self, taken: Taken) -> "Leaves":
        """The leaves after a job has taken its nodes."""
        free, crossed = self.free.copy(), self.crossed.copy()
        for leaf, count in taken:
            free[leaf] -= count
            crossed[leaf] |= len(taken) > 1
        return Leaves(free, crossed)


def best_alone(leaves: Leaves, gang: WholeNodeGang) -> Taken | None:
    """Where one job goes: the tightest leaf, else as few as can be."""
    inside = smallest(leaves.free, gang.nodes)
    if inside is not None:
        return [(inside, gang.nodes)]
    open_ = np.where(leaves.crossed, 0, leaves.free)
    if gang.inside or open_.sum() < gang.nodes:
        return None
    return fewest(open_, gang.nodes)


def one_by_one(leaves: Leaves, gangs: Sequence[WholeNodeGang]) -> list[Taken | None]:
    """Where jobs go one after the other; None for those that find no place."""
    found = []
    for gang in gangs:
        taken = best_alone(leaves, gang)
        if taken is not None:
            leaves = leaves.after(taken)
        found.append(taken)
    return found


class Solution(Struct, frozen=True):
    """How many nodes are taken in all, and which by each job."""

    nodes: int
    taken: list[Taken | None]

    @classmethod
    def of(cls, taken: list[Taken | None]) -> "Solution":
        """What was *taken*."""
        nodes = sum(count for each in taken for _leaf, count in each or ())
        return cls(nodes, taken)


def greedy(leaves: Leaves, gangs: Sequence[WholeNodeGang]) -> Solution:
    """The better of two orders: as jobs come, or the largest first."""
    as_they_come = Solution.of(one_by_one(leaves, gangs))
    order = sorted(range(len(gangs)), key=lambda number: -gangs[number].nodes)
    found = one_by_one(leaves, [gangs[number] for number in order])
    sorted_back = dict(zip(order, found, strict=True))
    largest_first = Solution.of([sorted_back[number] for number in range(len(gangs))])
    return max(as_they_come, largest_first, key=lambda each: each.nodes)


def best_together(leaves: Leaves, gangs: Sequence[WholeNodeGang]) -> list[Taken | None]:
    """Where jobs go that together take the most nodes, then cross the fewest leaves.

    The solver need not be asked where jobs one by one take all that any could.
    """
    known = greedy(leaves, gangs)
    bound = largest_sum((gang.nodes for gang in gangs), int(leaves.free.sum()))
    if known.nodes == bound:
        return known.taken
    ground = LeafCapacity(tuple(leaves.free.tolist()), tuple(map(int, leaves.crossed)))
    model = GangModel(ground, gangs, bound=bound)
    most = _solved(model, known, model.nodes, LIMIT)
    if most is None or most.nodes <= known.nodes:
        return known.taken
    model.cp.add(model.nodes >= most.nodes)
    return (_solved(model, most, -model.spans, LIMIT_SPANS) or most).taken


def _solved(
    model: GangModel,
    known: Solution,
    maximize: Any,  # noqa: ANN401 - an expression
    limit: float,
) -> Solution | None:
    """The best that is found within *limit*, from what is *known*."""
    model.cp.clear_hints()
    for plan, taken in zip(model.plans, known.taken, strict=True):
        plan.hint(model.cp, taken or [])
    solver = model.solved(maximize=maximize, limit=limit)
    if solver is None:
        return None
    return Solution.of([plan.taken(solver) for plan in model.plans])


class Optimum:
    """The oracle: a rule for nodes and, in place of turns, a choice of jobs."""

    wiring: Wiring = TIGHT
    shape = "one leaf, or leaves that no other job crosses"

    def __init__(self) -> None:
        if find_spec("ortools") is None:
            raise NotInstalled(
                "policy 'cp-sat' needs the extra optimum; hint: pip install "
                "'ringleaf[optimum]'"
            )
        self.decisions = 0
        """How often the solver was asked."""
        self._plans: dict[str, Taken] = {}

    def choose(self, fitting: FittingNodes, job: Job, pods: int) -> Spots | None:
        """Places for so many pods of *job*: as planned, else the tightest."""
        if not (fitting.cluster.leaves and _is_whole(job)):
            return alone(fitting, pods)
        table = ground_under(fitting)
        taken = self._plans.get(job.name)
        if taken is None:
            taken = best_alone(_leaves_of(table), _gang_of(job, pods))
        if taken is None:
            return None
        rows = [LeafSlice(table.under(leaf, count)) for leaf, count in taken]
        return seated(fitting, table, rows, job)

    def allocate(self, ctx: Context) -> None:
        """Place the jobs that are best together, then any other job that fits."""
        start_reserved(ctx)
        for request, job_states in self._alike(ctx):
            fitting = fitting_nodes(
                ctx.state.cluster, request, TIGHT, ctx.state.settings
            )
            plans = self._together(fitting, job_states)
            for job_state, taken in zip(job_states, plans, strict=True):
                if ctx.budget.stop_binding():
                    return
                if taken is not None:
                    self._start(ctx, job_state, taken)
        turns = QueueIterator(ctx, ctx.pending.admitted)
        while (job_class := turns.next()) is not None:
            if ctx.budget.stop_binding():
                return
            attempt(ctx, job_class, {})

    def _start(self, ctx: Context, job_state: JobState, taken: Taken) -> None:
        """Start the first job of an equivalence class."""
        job_class = ctx.pending.admitted.by_job[job_state.job.name]
        if ctx.pending.admitted.is_open(job_class):
            name = job_class.first_job.job.name
            self._plans[name] = taken
            attempt(ctx, job_class, {})
            del self._plans[name]

    @staticmethod
    def _alike(ctx: Context) -> list[tuple[Request, list[JobState]]]:
        """The first jobs that wait, those that ask for like nodes together.

        Nodes with a faulty network are for none of them, so that all see the same.
        """
        waiting = ctx.pending.admitted
        if not (waiting.queues and ctx.state.cluster.leaves):
            return []
        open_ = (
            s
            for job_class in waiting.classes
            if waiting.is_open(job_class)
            for s in job_class
        )
        able = (s for s in open_ if _is_whole(s.job) and not s.placements)
        alike: dict[Request, list[JobState]] = {}
        for job_state in nsmallest(WINDOW, able, key=ctx.pending.key_of):
            request = without_network(request_of(job_state.job))
            request = replace(
                request, avoids_network_faults=request.product.heeds_network
            )
            alike.setdefault(request, []).append(job_state)
        return list(alike.items())

    def _together(
        self, fitting: FittingNodes, job_states: Sequence[JobState]
    ) -> list[Taken | None]:
        """Where jobs go that ask for like nodes."""
        leaves = _leaves_of(ground_under(fitting))
        gangs = [_gang_of(each.job, each.job.replicas) for each in job_states]
        in_turn = one_by_one(leaves, gangs)
        few = len(gangs) == 1 or in_turn.count(None) in {0, len(gangs)}
        if few or self.decisions == MAX_DECISIONS:
            return in_turn
        self.decisions += 1
        return best_together(leaves, gangs)


def _is_whole(job: Job) -> bool:
    """Whether *job* is a new gang of whole nodes."""
    plain = not job.roles and job.previous is None and not job.is_elastic
    return plain and job.chips == job.product.chips


def _gang_of(job: Job, pods: int) -> WholeNodeGang:
    return WholeNodeGang(pods, inside=job.job_type is JobType.PADDING)


def _leaves_of(table: LeafTable) -> Leaves:
    return Leaves(table.fitting, table.crossed)
