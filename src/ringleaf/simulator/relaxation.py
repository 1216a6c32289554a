"""Upper bounds on what gangs can take at once, also where exact answers take too long.

Two things are dropped, one after the other. Without the rule for leaves any free nodes
will do, and what is left is capacity. With the rule, but with parts of gangs and of
nodes allowed, it is a linear program, which is solved in no time however large the
cluster: leaves that have as much free are alike, and so are gangs of one size.

Source: the relaxations of docs/measures.md. The solver is GLOP of OR-Tools (extra
``optimum``).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Final

from msgspec import Struct

from ringleaf.simulator.gang_model import LeafCapacity, WholeNodeGang

EXACT: Final = 1e-6
"""What the solver's numbers may be off by."""


class _Leaves(Struct, frozen=True):
    """Leaves that are alike: free nodes, gangs that may still cross, how many."""

    free: int
    open: int
    n: int


def most_by_capacity(capacity: LeafCapacity, asks: Iterable[WholeNodeGang]) -> int:
    """The most nodes that some of the gangs make up, wherever nodes are free.

    >>> most_by_capacity(LeafCapacity((4, 3)), [WholeNodeGang(4), WholeNodeGang(4)])
    4
    """
    return largest_sum((ask.nodes for ask in asks), sum(capacity.free))


def largest_sum(sizes: Iterable[int], room: int) -> int:
    """The largest sum of some of *sizes* that is at most *room*.

    >>> largest_sum([5, 4, 3], room=8), largest_sum([5, 4, 3], room=2)
    (8, 0)
    """
    sums, most = 1, (1 << room + 1) - 1
    for size in sizes:
        sums |= sums << size & most
    return sums.bit_length() - 1


def most_by_rule(
    capacity: LeafCapacity, asks: Sequence[WholeNodeGang], loose: float = 0.0
) -> float:
    """More nodes than this no choice of gangs takes under the rule for leaves.

    *loose* nodes' worth of smaller jobs may stand anywhere besides.

    >>> three = [WholeNodeGang(2, inside=True)] * 3
    >>> ground = LeafCapacity((3, 3))
    >>> most_by_rule(ground, three), most_by_capacity(ground, three)
    (4.0, 6)
    """
    program = _Program(capacity, Counter(asks), loose)
    return program.most()


class _Program:
    """The linear program: how many gangs of each sort stand where."""

    def __init__(
        self, capacity: LeafCapacity, asks: Counter[WholeNodeGang], loose: float
    ) -> None:
        solvers: Any = import_module("ortools.linear_solver.pywraplp")  # an extra
        self._lp = solvers.Solver.CreateSolver("GLOP")
        every = range(len(capacity.free))
        alike = Counter(
            (capacity.free[at], capacity.may_still_cross(at)) for at in every
        )
        self._leaves = [_Leaves(*like, n) for like, n in sorted(alike.items())]
        self._taken: list[Any] = [0] * len(self._leaves)
        """Nodes taken under leaves of each sort."""
        self._crossed: list[Any] = [0] * len(self._leaves)
        self._total: Any = self._scatter(loose)
        for ask, n in sorted(asks.items(), key=lambda item: item[0].nodes):
            self._total += ask.nodes * self._add(ask, n)
        for at, leaves in enumerate(self._leaves):
            self._lp.Add(self._taken[at] <= leaves.free * leaves.n)
            self._lp.Add(self._crossed[at] <= leaves.open * leaves.n)

    def most(self) -> float:
        """The largest total, never too small."""
        self._lp.Maximize(self._total)
        status = self._lp.Solve()
        assert status == self._lp.OPTIMAL, "nothing at all is always a solution"
        found = float(self._lp.Objective().Value())
        near = float(round(found))
        return near if abs(found - near) < EXACT else found

    def _some(self, most: float) -> Any:  # noqa: ANN401 - a variable
        return self._lp.NumVar(0.0, most, "")

    def _scatter(self, loose: float) -> Any:  # noqa: ANN401 - an expression
        """Jobs below a node: as much of them as there is room for, under any leaf."""
        parts = [self._some(loose) for _leaves in self._leaves]
        self._lp.Add(sum(parts) <= loose)
        for at, part in enumerate(parts):
            self._taken[at] += part
        return sum(parts)

    def _add(self, ask: WholeNodeGang, n: int) -> Any:  # noqa: ANN401 - an expression
        """Gangs of one sort that are placed: under one leaf, or across several."""
        nodes, inside, across = ask.nodes, [], self._some(0 if ask.inside else n)
        parts, uses = [], []
        for at, leaves in enumerate(self._leaves):
            here = self._some(leaves.free // nodes * leaves.n)
            part = self._some(nodes * n)
            use = self._some(n * leaves.n)
            # A gang across leaves has a part of itself under each, at least a node.
            self._lp.Add(part <= min(nodes - 1, leaves.free) * use)
            self._lp.Add(part >= use)
            self._lp.Add(use <= leaves.n * across)
            self._taken[at] += nodes * here + part
            self._crossed[at] += use
            inside.append(here)
            parts.append(part)
            uses.append(use)
        self._lp.Add(sum(parts) == nodes * across)
        self._lp.Add(sum(uses) >= 2 * across)
        self._lp.Add(sum(inside) + across <= n)
        return sum(inside) + across
