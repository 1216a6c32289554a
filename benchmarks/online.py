"""What the best choice of leaves could reach without knowing what comes.

Gangs of whole nodes come and go as in the churn of docs/results.md: every size asks for
as many nodes, all together 1.1 times what there is, times are exponential, and a gang
that finds no place is gone. On a small cluster that is a Markov decision process, and
value iteration finds its best policy: no scheduler that does not know the future
allocates more.

A state is a sorted tuple of *parts*. A part is a job that crosses leaves with these
leaves, or one leaf that no job crosses. A leaf is the number of nodes that the crossing
job has there, and the sizes of the jobs inside. No leaf is in two parts, because rule
1.0 lets at most one job cross a leaf; so states that differ in names only are equal.

Slots are ignored here, as if any set of nodes loaded them alike: the best choice is at
least what it would be with slots. ``benchmarks.slots`` has them, on smaller clusters.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringleaf.model.job_labels import FOUNDATION_FROM
from ringleaf.simulator.saturation import LOAD

Leaf = tuple[int, tuple[int, ...]]
Part = tuple[Leaf, ...]
State = tuple[Part, ...]
Places = Callable[["Small", State, int], set[State]]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CLOSE: Final = 1e-5
"""Bounds of the mean that are so near to each other, in nodes, are the mean."""


class Small(NamedTuple):
    """A small cluster, and the sizes of the gangs that come."""

    mix: str
    leaves: int
    leaf: int
    widest: int

    @property
    def nodes(self) -> int:
        """Nodes of the cluster."""
        return self.leaves * self.leaf

    @property
    def sizes(self) -> list[int]:
        """Sizes of gangs."""
        every = range(1, self.widest + 1)
        return [n for n in every if self.mix == "any size" or n & (n - 1) == 0]

    @property
    def rates(self) -> Floats:
        """How many gangs of each size come while a job runs its time."""
        share = LOAD * self.nodes / len(self.sizes)
        return np.array([share / size for size in self.sizes])

    @property
    def empty(self) -> State:
        """Nothing runs."""
        return (((0, ()),),) * self.leaves

    def free(self, leaf: Leaf) -> int:
        """Free nodes of a leaf."""
        return self.leaf - leaf[0] - sum(leaf[1])


CLUSTERS: Final = (
    Small("any size", 4, 4, 8),
    Small("any size", 2, 8, 16),
    Small("doublings", 5, 4, 16),
)
WITH_SLOTS: Final = (Small("doublings", 3, 4, 8),)
"""Slots make many more states."""


# Where a gang may go.


def inside(state: State, part: int, leaf: int, n: int) -> State:
    """A gang of *n* goes inside one leaf."""
    leaves = list(state[part])
    crossing, jobs = leaves[leaf]
    leaves[leaf] = crossing, tuple(sorted((*jobs, n)))
    return _with(state, {part}, [tuple(sorted(leaves))])


def across(state: State, takes: Mapping[int, int]) -> State:
    """A gang takes so many nodes of each of these leaves, which no job crosses."""
    own = tuple(sorted((count, state[part][0][1]) for part, count in takes.items()))
    return _with(state, takes.keys(), [own])


def _with(state: State, gone: Container[int], new: Sequence[Part]) -> State:
    left = [part for at, part in enumerate(state) if at not in gone]
    return tuple(sorted([*left, *new]))


def uncrossed(state: State) -> list[int]:
    """The leaves that no job crosses, as places in *state*."""
    return [at for at, part in enumerate(state) if not part[0][0]]


def any_split(cluster: Small, state: State, n: int) -> Iterator[State]:
    """A gang across two leaves or more, cut in any way."""
    leaves = uncrossed(state)
    room = [cluster.free(state[at][0]) for at in leaves]
    for counts in splits(room, n) if sum(room) >= n else ():
        takes = {at: count for at, count in zip(leaves, counts, strict=True) if count}
        if len(takes) > 1:
            yield across(state, takes)


def splits(room: Sequence[int], n: int) -> Iterator[tuple[int, ...]]:
    """Every way to cut *n* into parts that are no larger than *room*.

    >>> list(splits([1, 2], 2))
    [(0, 2), (1, 1)]
    """
    if not room:
        if not n:
            yield ()
        return
    for first in range(min(room[0], n) + 1):
        for others in splits(room[1:], n - first):
            yield first, *others


def legal(cluster: Small, state: State, n: int) -> set[State]:
    """All that rule 1.0 allows: one leaf, or leaves that no other job crosses."""
    found = {
        inside(state, at, which, n)
        for at, part in enumerate(state)
        for which, leaf in enumerate(part)
        if cluster.free(leaf) >= n
    }
    if n >= FOUNDATION_FROM:
        found.update(any_split(cluster, state, n))
    return found


def compact(cluster: Small, state: State, n: int) -> set[State]:
    """All that ``leaf-choice: compact`` calls equal (D36)."""
    found = compact_places(cluster, state, n)
    return set(any_split(cluster, state, n)) if found is None else found


def most_free_first(cluster: Small, state: State, n: int) -> set[State]:
    """The same; a gang on logical leaves takes those with the most free nodes."""
    found = compact_places(cluster, state, n)
    if found is not None:
        return found
    takes: dict[int, int] = {}
    for at in sorted(uncrossed(state), key=lambda at: -cluster.free(state[at][0])):
        if count := min(n, cluster.free(state[at][0])):
            takes[at] = count
            n -= count
    return set() if n else {across(state, takes)}


def compact_places(cluster: Small, state: State, n: int) -> set[State] | None:
    """One leaf or whole leaves; None: only logical leaves are left."""
    enough = [
        ((cluster.free(leaf), not leaf[0]), at, which)
        for at, part in enumerate(state)
        for which, leaf in enumerate(part)
        if cluster.free(leaf) >= n
    ]
    if enough:
        first = min(enough)[0]
        return {inside(state, at, x, n) for key, at, x in enough if key == first}
    return across_compact(cluster, state, n) if n >= FOUNDATION_FROM else set()


def across_compact(cluster: Small, state: State, n: int) -> set[State] | None:
    """Complete leaves, and the rest under the tightest one."""
    leaves = uncrossed(state)
    complete = [at for at in leaves if not state[at][0][1]][: n // cluster.leaf]
    whole = dict.fromkeys(complete, cluster.leaf)
    rest = n - sum(whole.values())
    if not rest:
        return {across(state, whole)}
    room = {at: cluster.free(state[at][0]) for at in leaves if at not in whole}
    tightest = min((free for free in room.values() if free >= rest), default=None)
    if tightest is None:
        return None
    last = [at for at, free in room.items() if free == tightest]
    return {across(state, {**whole, at: rest}) for at in last}


def ends(state: State) -> Counter[State]:
    """What is there after the end of one job, and how many jobs lead to it."""
    found: Counter[State] = Counter()
    for at, part in enumerate(state):
        for which, (crossing, jobs) in enumerate(part):
            for n, count in Counter(jobs).items():
                left = list(jobs)
                left.remove(n)
                leaves = list(part)
                leaves[which] = crossing, tuple(left)
                found[_with(state, {at}, [tuple(sorted(leaves))])] += count
        if part[0][0]:
            found[_with(state, {at}, [((0, jobs),) for _n, jobs in part])] += 1
    return found


def jobs_of(state: State) -> tuple[int, ...]:
    """The sizes of all jobs, wherever they are."""
    across_ = [sum(n for n, _jobs in part) for part in state]
    under = [n for part in state for _crossing, jobs in part for n in jobs]
    return tuple(sorted([*under, *(n for n in across_ if n)]))


# The process.


class Process(NamedTuple):
    """Busy nodes of every state, where each gang may lead, and where ends lead.

    Successors stand one after the other; ``starts`` says where those of each state
    begin. ``weights`` are the jobs whose end leads there.
    """

    busy: Floats
    comes: list[tuple[Ints, Ints]]
    ends: tuple[Ints, Ints]
    weights: Floats
    states: int


def process(
    start: Any,  # noqa: ANN401 - states of any sort
    sizes: Sequence[int],
    places: Callable[[Any, int], Any],
    ends_of: Callable[[Any], Mapping[Any, int]],
    busy_of: Callable[[Any], int],
) -> Process:
    """All states that can be reached, and what leads from one to another."""
    known, listed = {start: 0}, [start]

    def number(state: Any) -> int:  # noqa: ANN401
        if state not in known:
            known[state] = len(listed)
            listed.append(state)
        return known[state]

    comes: list[list[list[int]]] = [[] for _size in sizes]
    leads: list[list[int]] = []
    weights: list[int] = []
    at = 0
    while at < len(listed):
        state = listed[at]
        for size, own in zip(sizes, comes, strict=True):
            own.append([number(each) for each in places(state, size)] or [at])
        after = ends_of(state) or {state: 0}
        leads.append([number(each) for each in after])
        weights += after.values()
        at += 1
    return Process(
        busy=np.array([busy_of(state) for state in listed], np.float64),
        comes=[_flat(own) for own in comes],
        ends=_flat(leads),
        weights=np.array(weights, np.float64),
        states=len(listed),
    )


def _flat(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    sizes = [len(each) for each in lists]
    flat = np.array([n for each in lists for n in each])
    return flat, np.cumsum([0, *sizes[:-1]])


def best(values: Floats, starts: Ints) -> Floats:
    """The best successor."""
    found: Floats = np.maximum.reduceat(values, starts)
    return found


def drawn(values: Floats, starts: Ints) -> Floats:
    """Any successor, each as likely as the others."""
    found: Floats = np.add.reduceat(values, starts)
    return found / np.diff(starts, append=len(values))


def mean_busy(
    found: Process, rates: Floats, choose: Callable[[Floats, Ints], Floats] = best
) -> float:
    """Busy nodes on average if *choose* chooses, by relative value iteration.

    In every step the mean is between the least and the most that a state gains.
    """
    leads, starts = found.ends
    n_jobs = np.add.reduceat(found.weights, starts)
    speed = float(rates.sum() + n_jobs.max())
    values = np.zeros(found.states)
    while True:
        gains = found.busy - n_jobs * values
        gains += np.add.reduceat(found.weights * values[leads], starts)
        for rate, (flat, firsts) in zip(rates.tolist(), found.comes, strict=True):
            gains += rate * (choose(values[flat], firsts) - values)
        low, high = float(gains.min()), float(gains.max())
        if high - low < CLOSE:
            return (low + high) / 2
        values += gains / speed
        values -= values[0]


# What comes of it.


def solve(cluster: Small) -> dict[str, float]:
    """The part of all nodes that is allocated on average, by who chooses."""

    def under(places: Places) -> Process:
        return process(
            cluster.empty,
            cluster.sizes,
            lambda state, n: places(cluster, state, n),
            ends,
            lambda state: sum(jobs_of(state)),
        )

    every, equal = under(legal), under(compact)
    ways = {
        "moved": (sets(cluster, packs(cluster)), best),
        "best": (every, best),
        "best compact": (equal, best),
        "compact": (under(most_free_first), drawn),
    }
    return {
        "free": free_packing(cluster),
        **{
            name: mean_busy(found, cluster.rates, choose) / cluster.nodes
            for name, (found, choose) in ways.items()
        },
        "states": every.states,
    }


def free_packing(cluster: Small) -> float:
    """The part of all nodes that is allocated where any nodes will do."""
    found = sets(cluster, lambda jobs: sum(jobs) <= cluster.nodes)
    return mean_busy(found, cluster.rates) / cluster.nodes


def sets(cluster: Small, allowed: Callable[[tuple[int, ...]], bool]) -> Process:
    """The process where only what runs matters, and not where."""

    def places(jobs: tuple[int, ...], n: int) -> list[tuple[int, ...]]:
        more = tuple(sorted((*jobs, n)))
        return [more] if allowed(more) else []

    def after(jobs: tuple[int, ...]) -> dict[tuple[int, ...], int]:
        return {
            jobs[: jobs.index(n)] + jobs[jobs.index(n) + 1 :]: count
            for n, count in Counter(jobs).items()
        }

    return process((), cluster.sizes, places, after, sum)


def packs(cluster: Small) -> Callable[[tuple[int, ...]], bool]:
    """Whether jobs can stand together under the rule, if all are placed anew."""
    known: dict[tuple[int, ...], set[State]] = {(): {cluster.empty}}

    def states(jobs: tuple[int, ...]) -> set[State]:
        if jobs not in known:
            # The order does not matter: what stands together stands without the last.
            known[jobs] = {
                after
                for before in states(jobs[:-1])
                for after in legal(cluster, before, jobs[-1])
            }
        return known[jobs]

    return lambda jobs: sum(jobs) <= cluster.nodes and bool(states(jobs))
