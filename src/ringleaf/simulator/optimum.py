"""The best there is, by CP-SAT: for small cases, to compare with (extra ``optimum``).

Gangs take whole nodes under leaves. A gang that uses several leaves crosses them, and a
leaf is crossed by at most *cap* gangs. Slots are not looked at, so that the optimum
under switch affinity 1.0 is an upper bound of what that rule allows.

Source: the bounds of docs/measures.md.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from ringleaf.simulator.gang_model import GangModel, LeafCapacity, gangs_of

LIMIT_S: Final = 5.0
MOST_IN_TIME: Final = 12
"""Jobs of which the best order in time is looked for, at most."""


class OptimalPlacement(Struct, frozen=True):
    """The most nodes that gangs can take together.

    Args:
        nodes: As many were found.
        bound: More there are not.
        leaves: For each gang the nodes under each leaf; none if it is left out.

    """

    nodes: int
    bound: int
    leaves: tuple[tuple[int, ...], ...]

    @property
    def is_proven(self) -> bool:
        """Whether no better one exists."""
        return self.nodes == self.bound


class OptimalSchedule(Struct, frozen=True):
    """When gangs start so that the last ends as early as can be."""

    makespan_s: int
    starts: tuple[int, ...]
    is_proven: bool


class TimedGang(Struct, frozen=True):
    """A job of whole nodes: when it comes, how long it runs, in whole seconds."""

    nodes: int
    arrives: int
    runs_s: int


def best_placement(
    capacity: LeafCapacity, gangs: Sequence[int], limit_s: float = LIMIT_S
) -> OptimalPlacement:
    """Which *gangs* to place at once, and where, so that they take the most nodes.

    Among those the one that uses the fewest leaves, and among those the one in which
    the fewest meet where several may cross a leaf; as far as the time allows.
    """
    model = GangModel(capacity, gangs_of(capacity, gangs))
    found = model.solved(maximize=model.nodes, limit=limit_s)
    if found is None:
        return OptimalPlacement(0, sum(gangs), tuple(() for _gang in gangs))
    nodes, bound = round(found.objective_value), int(found.best_objective_bound + 1e-6)
    model.cp.add(model.nodes == nodes)
    uses = sum(plan.spans + sum(plan.inside.values()) for plan in model.plans)
    found = model.solved(maximize=-uses, limit=limit_s) or found
    if capacity.cap > 1:
        model.cp.add(uses <= found.value(uses))
        fewest = -_conflicts(model, capacity)
        found = model.solved(maximize=fewest, limit=limit_s) or found
    every = range(len(capacity.free))
    taken = [dict(plan.taken(found) or ()) for plan in model.plans]
    leaves = (tuple(own.get(at, 0) for at in every) if own else () for own in taken)
    return OptimalPlacement(nodes, bound, tuple(leaves))


def best_order(
    capacity: LeafCapacity, gangs: Sequence[TimedGang], limit_s: float = LIMIT_S
) -> OptimalSchedule:
    """When to start each of a few gangs, and where, so that all end the soonest.

    Raises:
        ValueError: They are too many, or one can never be placed.

    """
    if len(gangs) > MOST_IN_TIME:
        raise ValueError(f"{len(gangs)} gangs are too many, at most {MOST_IN_TIME}")
    if not gangs:
        return OptimalSchedule(0, (), is_proven=True)
    horizon = max(g.arrives for g in gangs) + sum(g.runs_s for g in gangs)
    sizes = gangs_of(capacity, [gang.nodes for gang in gangs])
    model = GangModel(capacity, sizes, in_time=True)
    cp = model.cp
    starts = [cp.new_int_var(gang.arrives, horizon, "") for gang in gangs]
    last = cp.new_int_var(0, horizon, "")
    spans = []
    for gang, start, plan in zip(gangs, starts, model.plans, strict=True):
        cp.add(plan.placed == 1)
        spans.append(cp.new_fixed_size_interval_var(start, gang.runs_s, ""))
        cp.add(last >= start + gang.runs_s)
    for leaf, free in enumerate(capacity.free):
        taken = [cp.new_int_var(0, free, "") for _gang in gangs]
        for own, plan in zip(taken, model.plans, strict=True):
            cp.add(own == plan.nodes_under(leaf))
        cp.add_cumulative(spans, taken, free)
        crossing = [plan.crosses.get(leaf, 0) for plan in model.plans]
        cp.add_cumulative(spans, crossing, capacity.may_still_cross(leaf))
    found = model.solved(maximize=-last, limit=limit_s)
    if found is None:
        raise ValueError("no order was found in which all of them run")
    makespan = -round(found.objective_value)
    proven = makespan <= -found.best_objective_bound + 1e-6
    return OptimalSchedule(
        makespan, tuple(found.value(s) for s in starts), is_proven=proven
    )


def _conflicts(model: GangModel, capacity: LeafCapacity) -> Any:  # noqa: ANN401
    """Over all leaves, the gangs that cross it beyond the first: an expression."""
    beyond = []
    for leaf in range(len(capacity.free)):
        already = capacity.crossed[leaf] if capacity.crossed else 0
        over = model.cp.new_int_var(0, capacity.cap + already, "")
        crossing = sum(plan.crosses.get(leaf, 0) for plan in model.plans)
        model.cp.add(over >= crossing + already - 1)
        beyond.append(over)
    return sum(beyond)
