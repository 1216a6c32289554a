"""The best there is, by CP-SAT: for small cases, to compare with (extra ``optimum``).

Gangs take whole nodes under leaves. A gang that uses several leaves crosses them, and a
leaf is crossed by at most *cap* gangs. Slots are not looked at, so that the optimum
under switch affinity 1.0 is an upper bound of what that rule allows.

Source: the bounds of docs/measures.md.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from ringleaf.model.job_labels import FOUNDATION_FROM

LIMIT_S: Final = 5.0
MOST_IN_TIME: Final = 12
"""Jobs of which the best order in time is looked for, at most."""


class LeafCapacity(Struct, frozen=True):
    """Leaves, and what is there already.

    Args:
        free: Free nodes under each leaf.
        crossed: Gangs that cross each leaf; empty if no gang does.
        cap: Gangs that may cross one leaf.
        inside: Gangs of fewer nodes than this stay under one leaf.

    """

    free: tuple[int, ...]
    crossed: tuple[int, ...] = ()
    cap: int = 1
    inside: int = FOUNDATION_FROM

    def may_still_cross(self, leaf: int) -> int:
        """Gangs that may cross *leaf* besides those that do."""
        already = self.crossed[leaf] if self.crossed else 0
        return max(0, self.cap - already)


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
    ground: LeafCapacity, gangs: Sequence[int], limit_s: float = LIMIT_S
) -> OptimalPlacement:
    """Which *gangs* to place at once, and where, so that they take the most nodes.

    Among those the one that uses the fewest leaves, and among those the one in which
    the fewest meet where several may cross a leaf; as far as the time allows.
    """
    model = _Model(ground, gangs)
    total = sum(n * on for n, on in zip(gangs, model.placed, strict=True))
    model.cp.maximize(total)
    found = _solve(model.cp, limit_s)
    if found is None:
        return OptimalPlacement(0, sum(gangs), tuple(() for _gang in gangs))
    nodes, bound = round(found.objective_value), int(found.best_objective_bound + 1e-6)
    model.cp.add(total == nodes)
    spans = sum(use for uses in model.uses for use in uses)
    model.cp.minimize(spans)
    found = _solve(model.cp, limit_s) or found
    if ground.cap > 1:
        model.cp.add(spans <= found.value(spans))
        model.cp.minimize(model.conflicts(ground))
        found = _solve(model.cp, limit_s) or found
    return OptimalPlacement(nodes, bound, model.leaves(found))


def best_order(
    ground: LeafCapacity, gangs: Sequence[TimedGang], limit_s: float = LIMIT_S
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
    model = _Model(ground, [gang.nodes for gang in gangs], in_time=True)
    cp = model.cp
    starts = [cp.new_int_var(gang.arrives, horizon, "") for gang in gangs]
    last = cp.new_int_var(0, horizon, "")
    spans = []
    for gang, start, placed in zip(gangs, starts, model.placed, strict=True):
        cp.add(placed == 1)
        spans.append(cp.new_fixed_size_interval_var(start, gang.runs_s, ""))
        cp.add(last >= start + gang.runs_s)
    for leaf, free in enumerate(ground.free):
        cp.add_cumulative(spans, [own[leaf] for own in model.taken], free)
        crossing = [own[leaf] for own in model.crosses]
        cp.add_cumulative(spans, crossing, ground.may_still_cross(leaf))
    cp.minimize(last)
    found = _solve(cp, limit_s)
    if found is None:
        raise ValueError("no order was found in which all of them run")
    makespan = round(found.objective_value)
    proven = makespan <= found.best_objective_bound + 1e-6
    return OptimalSchedule(
        makespan, tuple(found.value(s) for s in starts), is_proven=proven
    )


class _Model:
    """Gangs under leaves: what each takes, uses and crosses."""

    def __init__(
        self, ground: LeafCapacity, gangs: Sequence[int], *, in_time: bool = False
    ) -> None:
        from ortools.sat.python import cp_model  # noqa: PLC0415 - an extra

        self.cp = cp_model.CpModel()
        self.placed = [self.cp.new_bool_var("") for _gang in gangs]
        self.taken: list[list[Any]] = []
        """Nodes of each gang under each leaf."""
        self.uses: list[list[Any]] = []
        self.crosses: list[list[Any]] = []
        for nodes, placed in zip(gangs, self.placed, strict=True):
            self._add(ground, nodes, placed)
        if not in_time:
            for leaf, free in enumerate(ground.free):
                self.cp.add(sum(own[leaf] for own in self.taken) <= free)
                crossing = sum(own[leaf] for own in self.crosses)
                self.cp.add(crossing <= ground.may_still_cross(leaf))

    def _add(self, ground: LeafCapacity, nodes: int, placed: Any) -> None:  # noqa: ANN401
        cp, every = self.cp, range(len(ground.free))
        taken = [cp.new_int_var(0, min(nodes, ground.free[at]), "") for at in every]
        uses = [cp.new_bool_var("") for _leaf in every]
        crosses = [cp.new_bool_var("") for _leaf in every]
        across = cp.new_bool_var("")
        cp.add(sum(taken) == nodes * placed)
        for at in every:
            cp.add(taken[at] <= nodes * uses[at])
            cp.add(taken[at] >= uses[at])
            cp.add(crosses[at] >= uses[at] + across - 1)
        # Inside one leaf it uses one; across them as many as there are.
        cp.add(sum(uses) <= 1 + len(ground.free) * across)
        if nodes < ground.inside:
            cp.add(across == 0)
        self.taken.append(taken)
        self.uses.append(uses)
        self.crosses.append(crosses)

    def conflicts(self, ground: LeafCapacity) -> Any:  # noqa: ANN401 - an expression
        """Over all leaves, the gangs that cross it beyond the first."""
        beyond = []
        for leaf in range(len(ground.free)):
            already = ground.crossed[leaf] if ground.crossed else 0
            over = self.cp.new_int_var(0, ground.cap + already, "")
            self.cp.add(over >= sum(own[leaf] for own in self.crosses) + already - 1)
            beyond.append(over)
        return sum(beyond)

    def leaves(self, found: Any) -> tuple[tuple[int, ...], ...]:  # noqa: ANN401
        """What each gang takes under each leaf; nothing of those left out."""
        pairs = zip(self.taken, self.placed, strict=True)
        return tuple(
            tuple(found.value(each) for each in own) if found.value(on) else ()
            for own, on in pairs
        )


def _solve(model: Any, limit_s: float) -> Any | None:  # noqa: ANN401
    """The solver after it found something; None if it found nothing.

    One worker, a fixed seed and a limit that the solver counts in its own steps, which
    are about seconds: the same case gives the same answer.
    """
    from ortools.sat.python import cp_model  # noqa: PLC0415 - an extra

    solver = cp_model.CpSolver()
    solver.parameters.max_deterministic_time = limit_s
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    status = solver.solve(model)
    return solver if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
