"""The best choice of nodes on a small cluster, with slots.

As ``benchmarks.online``, and a job that crosses leaves must load the slots within one
of each other. A leaf is a mask of the slots that the crossing job has there, and the
masks of the jobs inside.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, product

from benchmarks.online import Small, best, drawn, free_packing, mean_busy, process
from ringleaf.model.job_labels import FOUNDATION_FROM

Leaf = tuple[int, tuple[int, ...]]
Part = tuple[Leaf, ...]
State = tuple[Part, ...]


def taken(leaf: Leaf) -> int:
    """The slots of a leaf that are taken."""
    found, jobs = leaf
    for mask in jobs:
        found |= mask
    return found


@cache
def subsets(mask: int, n: int) -> tuple[int, ...]:
    """Every choice of *n* of the slots in *mask*, the lowest first.

    >>> subsets(0b1011, 2)
    (3, 9, 10)
    """
    bits = [1 << at for at in range(mask.bit_length()) if mask >> at & 1]
    return tuple(sum(each) for each in combinations(bits, n))


def with_parts(state: State, gone: Sequence[int], new: Sequence[Part]) -> State:
    """Some parts go, others come."""
    left = [part for at, part in enumerate(state) if at not in gone]
    return tuple(sorted([*left, *new]))


class Choice:
    """Where a gang may go.

    ``compact``: only where ``leaf-choice: compact`` puts it. ``lowest``: inside a leaf
    it takes the lowest slots (D31), across logical leaves those of the leaves with the
    most free nodes.
    """

    def __init__(self, cluster: Small, *, compact: bool, lowest: bool) -> None:
        self.full, self.size = (1 << cluster.leaf) - 1, cluster.leaf
        self.compact, self.lowest = compact, lowest

    def free(self, leaf: Leaf) -> int:
        """The free slots of a leaf."""
        return self.full & ~taken(leaf)

    def masks(self, leaf: Leaf, n: int) -> tuple[int, ...]:
        """Which *n* slots of a leaf a gang may take."""
        found = subsets(self.free(leaf), n)
        return found[:1] if self.lowest else found

    def places(self, state: State, n: int) -> set[State]:
        """The states to which a gang of *n* leads."""
        found = {
            self.inside(state, at, which, mask)
            for at, which in self.one_leaf(state, n)
            for mask in self.masks(state[at][which], n)
        }
        if n < FOUNDATION_FROM or (found and self.compact):
            return found
        ways = self.whole_leaves(state, n) if self.compact else []
        takes = ways or self.even(state, n)
        return found | {self.across(state, each) for each in takes}

    def one_leaf(self, state: State, n: int) -> list[tuple[int, int]]:
        """The leaves inside which a gang may go."""
        enough = [
            ((self.free(leaf).bit_count(), not leaf[0]), at, which)
            for at, part in enumerate(state)
            for which, leaf in enumerate(part)
            if self.free(leaf).bit_count() >= n
        ]
        first = min(enough)[0] if enough else None
        return [(at, x) for key, at, x in enough if key == first or not self.compact]

    def whole_leaves(self, state: State, n: int) -> list[dict[int, int]]:
        """Complete leaves, and the rest under the tightest one."""
        leaves = {at: self.free(p[0]) for at, p in enumerate(state) if not p[0][0]}
        complete = [at for at, free in leaves.items() if free == self.full]
        whole = dict.fromkeys(complete[: n // self.size], self.full)
        rest = n - self.size * len(whole)
        if not rest:
            return [whole]
        room = {at: free.bit_count() for at, free in leaves.items() if at not in whole}
        tightest = min((free for free in room.values() if free >= rest), default=None)
        return [
            {**whole, at: mask}
            for at, free in room.items()
            if free == tightest
            for mask in self.masks(state[at][0], rest)
        ]

    def even(self, state: State, n: int) -> Iterator[dict[int, int]]:
        """Nodes under any leaves that no job crosses, which load the slots alike."""
        leaves = {at: self.free(p[0]) for at, p in enumerate(state) if not p[0][0]}
        if sum(free.bit_count() for free in leaves.values()) < n:
            return
        order = sorted(leaves, key=lambda at: -leaves[at].bit_count())
        base, more = divmod(n, self.size)
        under = [[at for at in order if leaves[at] >> s & 1] for s in range(self.size)]
        for loads in product((base, base + 1), repeat=self.size):
            if sum(loads) != base * self.size + more:
                continue
            ways = [
                [own[:load]] * (load <= len(own))
                if self.lowest
                else [*combinations(own, load)]
                for own, load in zip(under, loads, strict=True)
            ]
            for chosen in product(*ways):
                takes: dict[int, int] = {}
                for slot, own in enumerate(chosen):
                    for at in own:
                        takes[at] = takes.get(at, 0) | 1 << slot
                if len(takes) > 1:
                    yield takes

    @staticmethod
    def inside(state: State, part: int, which: int, mask: int) -> State:
        """A gang takes *mask* under one leaf."""
        leaves = list(state[part])
        crossing, jobs = leaves[which]
        leaves[which] = crossing, tuple(sorted((*jobs, mask)))
        return with_parts(state, [part], [tuple(sorted(leaves))])

    @staticmethod
    def across(state: State, takes: dict[int, int]) -> State:
        """A gang takes some slots of each of these leaves."""
        own = tuple(sorted((mask, state[at][0][1]) for at, mask in takes.items()))
        return with_parts(state, [*takes], [own])


def ends(state: State) -> Counter[State]:
    """What is there after the end of one job, and how many jobs lead to it."""
    found: Counter[State] = Counter()
    for at, part in enumerate(state):
        for which, (crossing, jobs) in enumerate(part):
            for mask in jobs:
                leaves = list(part)
                leaves[which] = crossing, tuple(each for each in jobs if each != mask)
                found[with_parts(state, [at], [tuple(sorted(leaves))])] += 1
        if part[0][0]:
            freed = [((0, jobs),) for _mask, jobs in part]
            found[with_parts(state, [at], freed)] += 1
    return found


def busy(state: State) -> int:
    """Nodes that are taken."""
    return sum(taken(leaf).bit_count() for part in state for leaf in part)


def solve(cluster: Small) -> dict[str, float]:
    """The part of all nodes that is allocated on average, by who chooses."""
    empty: State = (((0, ()),),) * cluster.leaves
    ways = {
        "best": (Choice(cluster, compact=False, lowest=False), best),
        "best compact": (Choice(cluster, compact=True, lowest=False), best),
        "compact": (Choice(cluster, compact=True, lowest=True), drawn),
    }
    found, states = {"free": free_packing(cluster)}, 0
    for name, (choice, choose) in ways.items():
        under = process(empty, cluster.sizes, choice.places, ends, busy)
        found[name] = mean_busy(under, cluster.rates, choose) / cluster.nodes
        states = max(states, under.states)
    return found | {"states": states}
