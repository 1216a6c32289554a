"""Which sets of nodes a network rule calls equal to one that it chose, by brute force.

A rule looks at the leaves or SuperPoDs: how many of their nodes fit, and in what state
they are. So a set of nodes is equal to the chosen one if it takes as many nodes from
leaves that look the same, whichever nodes these are; that says nothing of the steps of
the rule. Only where slots decide, for logical leaves and for repairs in 1.0, the steps
are written out again, from the rule and with no code of it: which leaves a slot takes
its nodes from, and in which order. What is wrong in them in both places is not found.

``equal_choices`` is about new jobs, ``equal_repairs`` about replacements.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from tests.network_oracle import (
    NetJob,
    Spot,
    World,
    candidates,
    crossing_kinds,
    is_crossed,
    leaf_groups,
    open_nodes,
    over_capacity,
    superpod_nodes,
    way_1,
)

Spots = Sequence[Spot]
Looks = Mapping[Any, Hashable]
"""Leaf or SuperPoD -> what the rule sees of it."""


def equal_choices(world: World, job: NetJob, mine: Spots) -> Iterator[Spots]:
    """Every set of nodes that the rule calls equal to *mine*, which it chose."""
    if world.mode == "superpods":
        nodes = superpod_nodes(world, job)
        fitting = [spot for spots in nodes.values() for spot in spots]
        if job.replicas == 1:
            return ([spot] for spot in fitting)  # the node comes before the SuperPoD
        looks: Looks = {superpod: len(spots) for superpod, spots in nodes.items()}
        return _of_the_same_shape(fitting, mine, _superpod, looks)
    if world.mode == "1.0":
        return _equal_in_1(world, job, mine)
    free = candidates(world, job)
    fitting = [spot for spots in free.values() for spot in spots]
    return _of_the_same_shape(fitting, mine, _leaf, _looks(world, job, free, mine))


def _equal_in_1(world: World, job: NetJob, mine: Spots) -> Iterator[Spots]:
    """1.0: under the leaves that are open to the job.

    Leaves that it takes whole are complete; of the one that it takes in part only the
    number of fitting nodes counts.
    """
    free, way = open_nodes(world, job), way_1(world, job)
    if way == "logical":
        return _logical(world, free, mine)
    fitting = [spot for spots in free.values() for spot in spots]
    looks: Looks = {leaf: len(spots) for leaf, spots in free.items()}
    if way == "inside" and world.choice == "compact":  # there a crossed leaf goes first
        looks = {leaf: (looks[leaf], is_crossed(world, leaf)) for leaf in free}
    own = {leaf: len(world.own(leaf)) for leaf in free}
    sizes = own if way == "whole" and world.choice == "compact" else {}
    return _of_the_same_shape(fitting, mine, _leaf, looks, sizes)


def _leaf(spot: Spot) -> object:
    return spot.leaf


def _superpod(spot: Spot) -> object:
    return spot.node.superpod


def _of_the_same_shape(
    fitting: Spots,
    mine: Spots,
    where: Callable[[Spot], object],
    looks: Looks,
    sizes: Mapping[Any, int] | None = None,
) -> Iterator[Spots]:
    """The sets that take as many nodes from places that look the same.

    *sizes*: a place from which all of these are taken differs from any other.
    """
    sizes = sizes or {}

    def shape(spots: Spots) -> Counter[Hashable]:
        under = Counter(where(spot) for spot in spots)
        return Counter(
            (looks[place], count, count == sizes.get(place))
            for place, count in under.items()
        )

    wanted = shape(mine)
    for spots in combinations(fitting, len(mine)):
        if shape(spots) == wanted:
            yield spots


def _looks(
    world: World, job: NetJob, free: Mapping[str, list[Spot]], mine: Spots
) -> dict[object, Hashable]:
    """What the rule sees of the leaves, not in 1.0: fitting nodes, state and health."""
    if world.mode == "single":
        return {leaf: len(spots) for leaf, spots in free.items()}
    group = {leaf: name for name, own in leaf_groups(world).items() for leaf in own}
    beyond = over_capacity(world, job) and len({spot.leaf for spot in mine}) > 1
    return {
        leaf: (group[leaf], len(spots), beyond and has_foundation(world, leaf))
        for leaf, spots in free.items()
    }


def has_foundation(world: World, leaf: str) -> bool:
    """Whether a foundation job crosses a leaf, which a common one leaves to it."""
    return "foundation" in crossing_kinds(world, leaf)


def _logical(
    world: World, free: Mapping[str, list[Spot]], mine: Spots
) -> Iterator[Spots]:
    """1.0: sets of nodes of logical leaves; *free* has the open ones.

    At a slot, nodes under leaves with more fitting nodes go first. A job smaller than
    a leaf takes the shortest row that it fits into: the last that has enough slots.
    """
    fitting = [spot for spots in free.values() for spot in spots]
    sizes = {
        slot: sorted(
            (len(free[str(s.leaf)]) for s in fitting if s.slot == slot), reverse=True
        )
        for slot in range(world.m)
    }
    n, m = len(mine), world.m
    if n < m:
        deep = max(
            i
            for i in range(len(free))
            if sum(len(own) > i for own in sizes.values()) >= n
        )
        row = {slot: own[deep] for slot, own in sizes.items() if len(own) > deep}
        own = [s for s in fitting if len(free[str(s.leaf)]) == row.get(s.slot)]
        for spots in combinations(own, n):
            if len({spot.slot for spot in spots}) == n:
                yield spots
        return
    rows = (n - 1) // m
    for spots in combinations(fitting, n):
        taken: dict[int, list[int]] = {slot: [] for slot in range(m)}
        for spot in spots:
            taken[spot.slot].append(len(free[str(spot.leaf)]))
        if all(
            len(own) in {rows, rows + 1}
            and sorted(own, reverse=True) == sizes[slot][: len(own)]
            for slot, own in taken.items()
        ):
            yield spots


# Replacements


def equal_repairs(
    world: World, job: NetJob, stay: Mapping[Spot, int | None], new: Spots
) -> Iterator[Spots]:
    """Under leaves, every set of replacements that the rule calls equal to *new*.

    *stay* is where pods stay, and what they say of their leaves; *world* has nothing
    else of the job, and nothing free on nodes that it may not use.
    """
    free = candidates(world, job)
    said = {spot.leaf: state for spot, state in stay.items()}
    if world.mode == "1.0":
        (first, *others) = said
        if others or len(free[str(first)]) < len(new):
            return _at_slots(world, free, [*stay], new)
    looks: dict[object, Hashable] = {leaf: leaf in said for leaf in free}
    if world.mode == "2.0":
        group = {leaf: name for name, own in leaf_groups(world).items() for leaf in own}
        for leaf, spots in free.items():
            what = group[leaf], len(spots), has_foundation(world, leaf)
            looks[leaf] = (leaf in said, said.get(leaf), *what)
    fitting = [spot for spots in free.values() for spot in spots]
    return _of_the_same_shape(fitting, new, _leaf, looks)


def _at_slots(
    world: World, free: Mapping[str, list[Spot]], stay: Spots, new: Spots
) -> Iterator[Spots]:
    """1.0: sets that load the slots alike, from leaves that look the same there.

    At a slot a replacement goes to leaves of the job first, then to the leaf with the
    fewest fitting nodes.
    """
    home = {spot.leaf for spot in stay}
    load = Counter(spot.slot for spot in stay)
    have = Counter(spot.slot for leaf in home for spot in world.own(str(leaf)))

    def place(spot: Spot) -> tuple[bool, int]:
        return spot.leaf not in home, len(free[str(spot.leaf)])

    fitting = [
        spot
        for leaf, spots in free.items()
        for spot in spots
        if leaf in home or not is_crossed(world, leaf)
    ]
    first = {
        slot: sorted(place(spot) for spot in fitting if spot.slot == slot)
        for slot in range(world.m)
    }

    def shape(spots: Spots) -> Counter[Hashable] | None:
        taken: dict[int, list[tuple[bool, int]]] = {}
        for spot in spots:
            taken.setdefault(spot.slot, []).append(place(spot))
        if any(sorted(own) != first[slot][: len(own)] for slot, own in taken.items()):
            return None
        return Counter(
            (load[slot] + level, have[slot], away)
            for slot, own in taken.items()
            for level, (away, _free) in enumerate(sorted(own))
        )

    wanted = shape(new)
    for spots in combinations(fitting, len(new)):
        if wanted is not None and shape(spots) == wanted:
            yield spots


def equal_fills(
    world: World, job: NetJob, filled: Mapping[int, int], new: Spots
) -> Iterator[Spots]:
    """In SuperPoDs, every set of replacements that the rule calls equal to *new*.

    *filled* is how many of them blocks want in the SuperPoD in which they stay.
    """
    nodes = superpod_nodes(world, job)

    def shape(spots: Spots) -> Counter[tuple[int, int]] | None:
        given = Counter(spot.node.superpod for spot in spots)
        if any(given[s] < count for s, count in filled.items()):
            return None
        left = {s: len(nodes[s]) - filled.get(s, 0) for s in nodes}
        moved = {s: given[s] - filled.get(s, 0) for s in nodes}
        return Counter((left[s], moved[s]) for s in nodes)

    wanted = shape(new)
    for spots in combinations([s for own in nodes.values() for s in own], len(new)):
        if shape(spots) == wanted:
            yield spots
