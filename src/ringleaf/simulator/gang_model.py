"""Gangs of whole nodes under leaves, as CP-SAT sees them (extra ``optimum``).

A gang stands under one leaf, or crosses several; a leaf is crossed by so many gangs at
most. Slots are not looked at, so that an optimum under switch affinity 1.0 is an upper
bound of what that rule allows.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from ringleaf.model.job_labels import FOUNDATION_FROM


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


class WholeNodeGang(Struct, frozen=True):
    """A gang: how many nodes it takes, and whether it must stay under one leaf."""

    nodes: int
    inside: bool = False


def gangs_of(capacity: LeafCapacity, sizes: Iterable[int]) -> list[WholeNodeGang]:
    """Gangs of so many nodes; small ones stay under one leaf, as *capacity* says."""
    return [WholeNodeGang(nodes, nodes < capacity.inside) for nodes in sizes]


class GangModel:
    """The gangs and the leaves as variables and constraints of a solver.

    Args:
        capacity: The leaves.
        gangs: The gangs.
        bound: More nodes cannot be taken, as far as that is known.
        in_time: Gangs run one after the other: the caller limits what leaves hold.

    """

    def __init__(
        self,
        capacity: LeafCapacity,
        gangs: Sequence[WholeNodeGang],
        *,
        bound: int | None = None,
        in_time: bool = False,
    ) -> None:
        from ortools.sat.python import cp_model  # noqa: PLC0415 - an extra

        self._cp: Any = cp_model
        self.cp: Any = cp_model.CpModel()
        self.plans = [GangPlan(self.cp, capacity, gang) for gang in gangs]
        self.nodes: Any = sum(plan.nodes for plan in self.plans)
        self.spans: Any = sum(plan.spans for plan in self.plans)
        if in_time:
            return
        for leaf, free in enumerate(capacity.free):
            if free:
                here = [plan.nodes_under(leaf) for plan in self.plans]
                self.cp.add(sum(here) <= free)
                self._limit_crossing(leaf, capacity.may_still_cross(leaf))
        if bound is not None:
            self.cp.add(self.nodes <= bound)

    def _limit_crossing(self, leaf: int, most: int) -> None:
        crossing = [p.crosses[leaf] for p in self.plans if leaf in p.crosses]
        if most > 1:
            self.cp.add(sum(crossing) <= most)
        else:
            self.cp.add_at_most_one(crossing)

    def solved(self, *, maximize: Any, limit: float) -> Any | None:  # noqa: ANN401
        """The solver after it found something; None if it found nothing.

        One worker, and a limit that the solver counts in its own steps, which are about
        seconds: the same case gives the same answer.
        """
        self.cp.maximize(maximize)
        solver = self._cp.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = limit
        status = solver.solve(self.cp)
        return solver if status in {self._cp.OPTIMAL, self._cp.FEASIBLE} else None


class GangPlan:
    """The variables of one gang: under which leaf it is, or how much under which."""

    def __init__(self, model: Any, capacity: LeafCapacity, gang: WholeNodeGang) -> None:  # noqa: ANN401
        n = self._n = gang.nodes
        self.inside: dict[int, Any] = {}
        self.crosses: dict[int, Any] = {}
        self.parts: dict[int, Any] = {}
        for leaf, free in enumerate(capacity.free):
            if free >= n:
                self.inside[leaf] = model.new_bool_var("")
            if free and capacity.may_still_cross(leaf) and not gang.inside and n > 1:
                uses = self.crosses[leaf] = model.new_bool_var("")
                part = self.parts[leaf] = model.new_int_var(0, min(n - 1, free), "")
                model.add(part >= uses)
                model.add(part <= min(n - 1, free) * uses)
        self.over = model.new_bool_var("")
        model.add(sum(self.parts.values()) == n * self.over)
        model.add_at_most_one([*self.inside.values(), self.over])
        self.placed: Any = sum(self.inside.values()) + self.over
        self.nodes: Any = n * self.placed
        self.spans: Any = sum(self.crosses.values())

    def nodes_under(self, leaf: int) -> Any:  # noqa: ANN401 - an expression
        """How many nodes it takes under *leaf*."""
        return self._n * self.inside.get(leaf, 0) + self.parts.get(leaf, 0)

    def hint(self, model: Any, taken: Sequence[tuple[int, int]]) -> None:  # noqa: ANN401
        """Begin with what was *taken*: leaves and their nodes."""
        counts = dict(taken)
        over = len(taken) > 1
        for leaf, on in self.inside.items():
            model.add_hint(on, not over and leaf in counts)
        for leaf, uses in self.crosses.items():
            model.add_hint(uses, over and leaf in counts)
            model.add_hint(self.parts[leaf], counts.get(leaf, 0) if over else 0)
        model.add_hint(self.over, over)

    def taken(self, solver: Any) -> list[tuple[int, int]] | None:  # noqa: ANN401
        """Leaves and their nodes, as the solver gave them."""
        for leaf, on in self.inside.items():
            if solver.value(on):
                return [(leaf, self._n)]
        parts = {leaf: int(solver.value(part)) for leaf, part in self.parts.items()}
        return [(leaf, count) for leaf, count in parts.items() if count] or None
