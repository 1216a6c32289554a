"""A second opinion on the network rules: slow, plain, and written from the rules alone.

The property tests compare the real code with this module, so it shares nothing with
it.  Which chips a pod gets on a node, and which of two nodes it likes more, is asked of
``tests.oracle``; here nodes are put together: under leaf switches (1.0, 2.0, single
layer) and in SuperPoDs.

There are two kinds of functions.  ``place_…`` follow the documented steps and name the
node of every rank.  ``is_legal_…`` look at a finished placement, whoever made it, and
know nothing of the steps; ``exists_legal`` tries every set of nodes against them.

Sources: the seeds (000, 001, 002), the decisions D10 to D17, D27 to D33, D35 and D36
with their exact readings, and the vendor's steps where neither speaks.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby
from typing import TypeVar

from tests.oracle import OracleJob, OracleNode, choose, node_rank, place, usable

IDLE, SHARED, EXCLUSIVE = 0, 1, 2


@dataclass(frozen=True)
class Spot:
    """A node and where it stands."""

    node: OracleNode
    leaf: str | None = None
    slot: int = 0

    @property
    def name(self) -> str:
        return self.node.name


@dataclass(frozen=True)
class Note:
    """What is known of a leaf besides the pods; None: the pods tell."""

    state: int | None = None
    healthy: bool | None = None
    crossed_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class NetJob:
    """A job of identical pods; `label` is its tor-affinity, `block` its sp-block.

    To a `careless` one equal leaves and SuperPoDs are equal, whatever their nodes.
    """

    name: str
    pod: OracleJob
    label: str | None = None
    block: int | None = None
    soft: bool = False
    careless: bool = False

    @property
    def replicas(self) -> int:
        return self.pod.replicas

    @property
    def kind(self) -> str | None:
        """Padding, foundation or common; None without the label."""
        if self.label is None:
            return None
        if self.label == "normal-schema":
            return "common"
        return "foundation" if self.replicas >= 4 else "padding"


@dataclass(frozen=True)
class Pod:
    """A pod that holds chips, and what was written on it of its leaf."""

    job: NetJob
    replica: int
    node: str
    chips: tuple[int, ...]
    state: int | None = None
    healthy: bool = True


@dataclass(frozen=True)
class World:
    """A cluster with its settings and everybody who holds chips in it."""

    spots: tuple[Spot, ...]
    mode: str = "1.0"
    given_m: int | None = None
    choice: str = "compact"
    budget: int = 2
    share_common: bool = False
    reserve: int = 2
    notes: Mapping[str, Note] = field(default_factory=dict)
    pods: tuple[Pod, ...] = ()

    @property
    def leaves(self) -> list[str]:
        """The leaves in the order in which the nodes name them."""
        return list(dict.fromkeys(s.leaf for s in self.spots if s.leaf is not None))

    @property
    def m(self) -> int:
        """M: as set, or the nodes of the largest leaf."""
        sizes = Counter(spot.leaf for spot in self.spots if spot.leaf is not None)
        return self.given_m or max(sizes.values(), default=0)

    def own(self, leaf: str) -> list[Spot]:
        """All nodes of a leaf, whatever they have free."""
        return [spot for spot in self.spots if spot.leaf == leaf]

    def spot(self, name: str) -> Spot:
        return next(spot for spot in self.spots if spot.name == name)

    def note(self, leaf: str) -> Note:
        return self.notes.get(leaf, Note())


def with_pods(world: World, pods: Sequence[Pod]) -> World:
    """The world when these pods have come too."""
    taken: dict[str, frozenset[int]] = {}
    for pod in pods:
        taken[pod.node] = taken.get(pod.node, frozenset()).union(pod.chips)
    spots = tuple(
        replace(s, node=replace(s.node, free=s.node.free - taken[s.name]))
        if s.name in taken
        else s
        for s in world.spots
    )
    return replace(world, spots=spots, pods=(*world.pods, *pods))


def without_job(world: World, name: str) -> World:
    """The world when this job is gone; its chips are free again."""
    gone = [pod for pod in world.pods if pod.job.name == name]
    spots = tuple(
        replace(
            s,
            node=replace(
                s.node,
                free=s.node.free.union(*(p.chips for p in gone if p.node == s.name)),
            ),
        )
        for s in world.spots
    )
    left = tuple(pod for pod in world.pods if pod.job.name != name)
    return replace(world, spots=spots, pods=left)


# Who crosses, and the states of 2.0


def places_of(world: World, job: str) -> set[str | None]:
    """The leaves under which a job holds chips; None: outside every leaf."""
    return {world.spot(pod.node).leaf for pod in world.pods if pod.job.name == job}


def crossers(world: World, leaf: str) -> list[NetJob]:
    """The jobs with a pod under this leaf and a pod elsewhere."""
    found: dict[str, NetJob] = {}
    for pod in world.pods:
        places = places_of(world, pod.job.name)
        if leaf in places and len(places) > 1:
            found[pod.job.name] = pod.job
    return list(found.values())


def crossing_kinds(world: World, leaf: str) -> list[str | None]:
    """What sort of jobs cross a leaf, those only noted among them."""
    noted = ["foundation" if k == "large-model-schema" else "common"
             for k in world.note(leaf).crossed_by]  # fmt: skip
    return [*noted, *(job.kind for job in crossers(world, leaf))]


def is_crossed(world: World, leaf: str) -> bool:
    """1.0: every job that holds chips counts, labelled or not."""
    return bool(crossing_kinds(world, leaf))


def is_common_only(world: World, leaf: str) -> bool:
    """D12: every job on the leaf is a common one."""
    here = [p.job.kind for p in world.pods if world.spot(p.node).leaf == leaf]
    return {*here, *crossing_kinds(world, leaf)} <= {"common"}


def leaf_states(world: World) -> dict[str, tuple[int, bool]]:
    """2.0: state and health of every leaf, from the pods and the notes.

    What is written on pods first; where nothing is written, from who crosses: one
    labelled job makes a leaf exclusive, two make it shared, and unhealthy when one of
    them crosses more than the budget of shared leaves.  A note wins over both.
    """
    labelled = {
        leaf: [job for job in crossers(world, leaf) if job.kind and _silent(world, job)]
        for leaf in world.leaves
    }
    shared = {leaf for leaf, jobs in labelled.items() if len(jobs) > 1}
    over = {
        job.name
        for jobs in labelled.values()
        for job in jobs
        if len(places_of(world, job.name) & shared) > world.budget
    }
    states = {}
    for leaf in world.leaves:
        under = [pod for pod in world.pods if world.spot(pod.node).leaf == leaf]
        written = [pod for pod in under if pod.state is not None]
        said = {pod.state for pod in written}
        if labelled[leaf]:
            said.add(SHARED if leaf in shared else EXCLUSIVE)
        sick = any(not pod.healthy for pod in written)
        sick |= leaf in shared and any(job.name in over for job in labelled[leaf])
        note = world.note(leaf)
        said.add(note.state)
        state = next((s for s in (SHARED, EXCLUSIVE) if s in said), IDLE)
        states[leaf] = (state, not sick and note.healthy is not False)
    return states


def _silent(world: World, job: NetJob) -> bool:
    """Whether nothing is written on the pods of a job."""
    return all(p.state is None for p in world.pods if p.job.name == job.name)


# Preparation


def as_seen(spot: Spot, job: NetJob) -> OracleNode:
    """The node as one pod of this job sees it."""
    return replace(spot.node, free=usable(spot.node, job.pod))


def fits(spot: Spot, job: NetJob) -> bool:
    return choose(spot.node, job.pod) is not None


def candidates(world: World, job: NetJob) -> dict[str, list[Spot]]:
    """Leaf -> its nodes that hold one pod, by slot."""
    return {
        leaf: sorted(
            (s for s in world.spots if s.leaf == leaf and fits(s, job)),
            key=lambda spot: spot.slot,
        )
        for leaf in world.leaves
    }


def chip_rank(spot: Spot, job: NetJob) -> tuple[int | str, ...]:
    """How much a pod wants this node, whatever its name."""
    rank = node_rank(spot.node, job.pod)
    assert rank is not None
    return rank[:-1]


def best_of(spots: Sequence[Spot], n: int, job: NetJob) -> list[Spot]:
    """D31: chip rank first, then slot; ranks are then dealt by slot."""
    wanted = sorted(spots, key=lambda spot: (chip_rank(spot, job), spot.slot))
    return sorted(wanted[:n], key=lambda spot: spot.slot)


def _names(spots: Sequence[Spot]) -> list[str]:
    return [spot.name for spot in spots]


# Jobs without a label (D38)

Placements = list[tuple[str, tuple[int, ...]]]


def in_one_leaf_or_anywhere(world: World, job: NetJob) -> Placements | None:
    """Inside one leaf where no pod gets a worse node there, or pod by pod anywhere.

    Of several leaves the one with the fewest places of the last rank that is needed,
    then the first listed.
    """
    anywhere = place([spot.node for spot in world.spots], job.pod)
    if anywhere is None or len({name for name, _chips in anywhere}) == 1:
        return anywhere
    own = ranks_in_turn(world, job, anywhere)
    last = max(chip_rank(world.spot(name), job) for name, _chips in anywhere)
    good: list[tuple[int, Placements]] = []
    for leaf, spots in candidates(world, job).items():
        inside = place([s.node for s in world.spots if s.leaf == leaf], job.pod)
        if inside is not None and ranks_in_turn(world, job, inside) == own:
            tied = [spot for spot in spots if chip_rank(spot, job) == last]
            good.append((sum(pods_held(spot, job) for spot in tied), inside))
    return min(good, key=lambda each: each[0])[1] if good else anywhere


def ranks_in_turn(world: World, job: NetJob, placed: Placements) -> list[object]:
    """The chip rank of the node of every pod, as each pod finds it."""
    spots, ranks = {spot.name: spot for spot in world.spots}, list[object]()
    for name, chips in placed:
        spot = spots[name]
        ranks.append(chip_rank(spot, job))
        left = replace(spot.node, free=spot.node.free.difference(chips))
        spots[name] = replace(spot, node=left)
    return ranks


def pods_held(spot: Spot, job: NetJob) -> int:
    """How many pods of *job* the node holds, one after the other."""
    node, count = spot.node, 0
    while (choice := choose(node, job.pod)) is not None:
        node, count = replace(node, free=node.free.difference(choice[1])), count + 1
    return count


# Ties between leaves and between SuperPoDs (D35)

Cost = tuple[int, int, int]
_Item = TypeVar("_Item")


def cost(spots: Sequence[Spot], job: NetJob) -> Cost:
    """Sub-healthy nodes, faulty chips, and the sum of chip ranks; lower is better."""
    if job.careless:
        return 0, 0, 0
    faulty = sum(len(spot.node.faulty) for spot in spots)
    fragments = sum(_as_number(choose(spot.node, job.pod)) for spot in spots)
    return sum(spot.node.sub_healthy for spot in spots), faulty, fragments


def _as_number(choice: tuple[tuple[int, ...], object] | None) -> int:
    """A chip rank as one number: a node has up to 64 chips."""
    assert choice is not None
    number = 0
    for term in choice[0]:
        number = 65 * number + term
    return number


def in_cheapest_order(
    tied: Sequence[_Item], each: int, wanted: int, price: Callable[[_Item, int], Cost]
) -> list[_Item]:
    """Equal leaves or SuperPoDs, so that the *wanted* nodes cost least.

    Every one gives *each* nodes, but the last that is needed: it gives what is left.
    """
    whole, rest = divmod(wanted - 1, each)
    if whole >= len(tied):
        return list(tied)
    by_cost = sorted(tied, key=lambda item: price(item, each))

    def beside(last: _Item) -> list[_Item]:
        return [item for item in by_cost if item != last][:whole]

    def total(last: _Item) -> Cost:
        costs = [price(last, rest + 1), *(price(item, each) for item in beside(last))]
        sub_healthy, faulty, fragments = (
            sum(terms) for terms in zip(*costs, strict=True)
        )
        return sub_healthy, faulty, fragments

    last = min(tied, key=lambda item: (total(item), item in by_cost[:whole]))
    chosen = [item for item in tied if item in beside(last)] + [last]
    if rest + 1 == each:
        chosen.sort(key=tied.index)
    return chosen + [item for item in tied if item not in chosen]


def _taken_in_turn(
    leaves: Sequence[str], free: Mapping[str, list[Spot]], n: int, job: NetJob
) -> list[tuple[str, list[Spot]]]:
    """Up to *n* nodes of leaves that come in the order of their size."""
    chosen: list[tuple[str, list[Spot]]] = []
    for size, group in groupby(leaves, key=lambda leaf: len(free[leaf])):
        tied = list(group)
        if n and size:
            tied = in_cheapest_order(tied, size, n, _price(free, job))
        for leaf in tied:
            if count := min(n, size):
                chosen.append((leaf, best_of(free[leaf], count, job)))
                n -= count
    return chosen


def _price(free: Mapping[str, list[Spot]], job: NetJob) -> Callable[[str, int], Cost]:
    return lambda leaf, count: cost(best_of(free[leaf], count, job), job)


def _by_size(
    free: Mapping[str, list[Spot]], leaves: Sequence[str], *, most_first: bool
) -> list[str]:
    return sorted(leaves, key=lambda leaf: len(free[leaf]), reverse=most_first)


def _fewest(
    free: Mapping[str, list[Spot]],
    n: int,
    job: NetJob,
    *,
    last_listed: bool,
    first: Sequence[str] = (),
) -> list[Spot] | None:
    """The leaf with the fewest nodes that still suffice; some *first* among equals."""
    enough = [(len(spots), leaf not in first, _price(free, job)(leaf, n),
               -i if last_listed else i, leaf)
              for i, (leaf, spots) in enumerate(free.items())
              if len(spots) >= n]  # fmt: skip
    return best_of(free[min(enough)[4]], n, job) if enough else None


# Affinity 1.0


def open_nodes(world: World, job: NetJob) -> dict[str, list[Spot]]:
    """Step A: a busy leaf is closed unless it holds the whole job."""
    free = candidates(world, job)
    for leaf, spots in free.items():
        shares = world.share_common and job.kind == "common"
        if shares and is_common_only(world, leaf):
            continue
        if is_crossed(world, leaf) and job.replicas > len(spots):
            free[leaf] = []
    return free


def place_1(world: World, job: NetJob) -> list[str] | None:
    """Steps A to F: one leaf, whole leaves, logical leaves, free choice."""
    n, m = job.replicas, world.m
    free = open_nodes(world, job)
    compact = world.choice == "compact"
    if n < m or job.kind == "padding" or compact:
        crossed = [leaf for leaf in free if compact and is_crossed(world, leaf)]
        inside = _fewest(free, n, job, last_listed=True, first=crossed)
        if inside is not None:
            return _names(inside)
        if job.kind == "padding":
            return None
    queue = _by_size(free, [*free], most_first=True)
    whole = (_compact if compact else _complete)(world, free, n, job)
    logical = whole or _logical(queue, free, n, m, job)
    if logical is not None:
        return _names(logical)
    if job.kind == "common":
        taken = _taken_in_turn(queue, free, n, job)
        chosen = _names([spot for _leaf, spots in taken for spot in spots])
        return chosen if len(chosen) == n else None
    return None


def way_1(world: World, job: NetJob) -> str:
    """On what a job is placed: inside one leaf, whole leaves, logical ones, or any."""
    n, m, free = job.replicas, world.m, open_nodes(world, job)
    compact, anyone = world.choice == "compact", replace(job, careless=True)
    small = n < m or job.kind == "padding" or compact
    if small and max(map(len, free.values()), default=0) >= n:
        return "inside"
    if (_compact if compact else _complete)(world, free, n, anyone) is not None:
        return "whole"
    queue = _by_size(free, [*free], most_first=True)
    return "any" if _logical(queue, free, n, m, anyone) is None else "logical"


def _complete(
    world: World, free: Mapping[str, list[Spot]], n: int, job: NetJob
) -> list[Spot] | None:
    """Step D: complete leaves, the last of them in part."""
    complete = [leaf for leaf in free if len(free[leaf]) == world.m]
    if len(complete) * world.m < n:
        return None
    taken = _taken_in_turn(complete, free, n, job)
    return [spot for _leaf, spots in taken for spot in spots]


def _compact(
    world: World, free: Mapping[str, list[Spot]], n: int, job: NetJob
) -> list[Spot] | None:
    """D36: complete leaves, largest first, while they fit in; the rest tightly."""
    complete = [s for s in free if free[s] and len(free[s]) == len(world.own(s))]
    price, rest = _price(free, job), n
    classes = []
    for size in sorted({len(free[leaf]) for leaf in complete}, reverse=True):
        tied = [leaf for leaf in complete if len(free[leaf]) == size]
        whole = min(len(tied), rest // size)
        rest -= whole * size
        classes.append((size, tied, whole))
    full = [
        leaf for _size, tied, whole in classes if whole == len(tied) for leaf in tied
    ]
    enough = [s for s in free if len(free[s]) >= rest and s not in full]
    if rest and not enough:
        return None
    tight = min((len(free[leaf]) for leaf in enough), default=0)
    last = [leaf for leaf in enough if len(free[leaf]) == tight]

    def chosen(last: Sequence[str]) -> list[Spot]:
        spots: list[Spot] = []
        for size, tied, whole in classes:
            in_part = rest if set(last) & set(tied) else 0
            wanted = whole * size + in_part
            order = in_cheapest_order(tied, size, wanted, price) if wanted else []
            spots += [spot for leaf in order[:whole] for spot in free[leaf]]
            if in_part:
                last = [order[whole]]
        if rest:
            leaf = min(last, key=lambda leaf: price(leaf, rest))
            spots += best_of(free[leaf], rest, job)
        return spots

    # D35: the nodes decide, of equal ones those of a leaf that is not complete.
    others = [leaf for leaf in last if leaf not in complete]
    same = [leaf for leaf in last if leaf in complete]
    ways = [chosen(leaves) for leaves in (others, same) if leaves or not rest]
    return min(ways, key=lambda spots: cost(spots, job))


def _logical(
    queue: Sequence[str], free: Mapping[str, list[Spot]], n: int, m: int, job: NetJob
) -> list[Spot] | None:
    """Step E: one node of each position makes a logical leaf.

    D31: where it has more nodes than are wanted, the best chip rank first. D35: of one
    position, of leaves with as many free nodes, the best chip rank first.
    """
    rows, last = divmod(n - 1, m)
    lists: list[list[Spot]] = [[] for _ in range(m)]
    for leaf in queue:
        for spot in free[leaf]:
            lists[spot.slot].append(spot)
    lists.sort(key=len, reverse=True)
    if len(lists[last]) < rows + 1 or len(lists[-1]) < rows:
        return None

    def size(spot: Spot) -> int:
        return len(free[str(spot.leaf)])

    def best(spots: Sequence[Spot], count: int) -> list[Spot]:
        wanted = sorted(spots, key=lambda spot: chip_rank(spot, job))
        return by_slot(wanted[:count])

    if n < m:
        deep = max(i for i in range(len(lists[0])) if _at(lists, i, n))
        row = []
        for spots in _long(lists, deep):
            own = spots[deep]
            tied = [spot for spot in spots if size(spot) == size(own)]
            row.append(min(tied, key=lambda s: (cost([s], job), s != own)))
        return best(row, n)
    for spots in lists:
        spots.sort(key=lambda spot: (-size(spot), cost([spot], job)))
    whole = [by_slot([spots[i] for spots in _long(lists, i)]) for i in range(rows)]
    final = best([spots[rows] for spots in _long(lists, rows)], last + 1)
    return [spot for row in whole for spot in row] + final


def by_slot(spots: Sequence[Spot]) -> list[Spot]:
    return sorted(spots, key=lambda spot: spot.slot)


def _long(lists: Sequence[list[Spot]], i: int) -> list[list[Spot]]:
    """The positions that have a node at *i*."""
    return [spots for spots in lists if len(spots) > i]


def _at(lists: Sequence[list[Spot]], i: int, n: int) -> bool:
    return len(_long(lists, i)) >= n


# Single layer


def place_single(world: World, job: NetJob) -> list[str] | None:
    """One leaf, the fewest sufficient nodes, for either label."""
    if job.replicas > world.m:
        return None
    inside = _fewest(candidates(world, job), job.replicas, job, last_listed=True)
    return None if inside is None else _names(inside)


# Affinity 2.0


def leaf_groups(world: World) -> dict[str, list[str]]:
    """X, U, S and I: a leaf that is not healthy is U, whatever its state."""
    groups: dict[str, list[str]] = {"X": [], "U": [], "S": [], "I": []}
    for leaf, (state, healthy) in leaf_states(world).items():
        groups["ISX"[state] if healthy else "U"].append(leaf)
    return groups


def place_2(world: World, job: NetJob) -> dict[str, tuple[int, bool]] | None:
    """Steps 1 to 5: node -> state and health written on its pod, in rank order."""
    n, free, groups = job.replicas, candidates(world, job), leaf_groups(world)
    compact = world.choice == "compact"
    if n < world.m or job.kind == "padding" or (compact and n == world.m):
        for name in "XUSI":
            under = {leaf: free[leaf] for leaf in groups[name]}
            inside = _fewest(under, n, job, last_listed=False)
            if inside is not None:
                return _marked([(inside, IDLE, True)])
        if job.kind == "padding":
            return None

    if over_capacity(world, job):
        return _over_capacity(world, job, free) if job.kind == "common" else None
    return _within_capacity(world, job, free)


def over_capacity(world: World, job: NetJob) -> bool:
    """Whether idle leaves and the shared ones of its budget are too few for a job."""
    free, groups = candidates(world, job), leaf_groups(world)
    shared = sorted((len(free[leaf]) for leaf in groups["S"]), reverse=True)
    idle = sum(len(free[leaf]) for leaf in groups["I"])
    return job.replicas > idle + sum(shared[: world.budget])


def _within_capacity(
    world: World, job: NetJob, free: Mapping[str, list[Spot]]
) -> dict[str, tuple[int, bool]]:
    """Steps 3 and 4 with D14: idle leaves whole, the remainder on a leaf or two."""
    groups = leaf_groups(world)

    def room(leaf: str) -> int:
        return len(free[leaf])

    rest = job.replicas
    idle = _by_size(free, [leaf for leaf in groups["I"] if room(leaf)], most_first=True)
    whole = 0
    while whole < len(idle) and rest >= room(idle[whole]):
        rest -= room(idle[whole])
        whole += 1
    later = [leaf for leaf in idle[whole:] if room(leaf) >= rest]
    tight = min(map(room, later), default=0)
    if rest and whole and tight == room(idle[whole - 1]):
        # Which of leaves of one size are taken whole, and which holds the remainder.
        taken = _taken_in_turn(idle, free, job.replicas, job)
        return _marked(
            [(spots, EXCLUSIVE, True) for _leaf, spots in taken[:-1]]
            + [(taken[-1][1], SHARED, True)]
        )
    taken = _taken_in_turn(idle, free, job.replicas - rest, job)
    chosen = [(spots, EXCLUSIVE, True) for _leaf, spots in taken]
    used = [leaf for leaf, _spots in taken]
    if rest and later:
        unused = {leaf: free[leaf] for leaf in groups["I"] if leaf not in used}
        inside = _fewest(unused, rest, job, last_listed=False)
        assert inside is not None
        chosen.append((inside, SHARED, True))
    elif rest:
        shared = {s: free[s] for s in groups["S"] if room(s)}
        shares = _shared_for(shared, rest, world.budget, job)
        chosen += [(spots, SHARED, True) for spots in shares]
    return _marked(chosen)


def _shared_for(
    free: Mapping[str, list[Spot]], rest: int, budget: int, job: NetJob
) -> list[list[Spot]]:
    """D14: one leaf, or the pair with the smallest sufficient sum."""
    if budget == 1 or len(free) == 1:
        inside = _fewest(free, rest, job, last_listed=False)
        assert inside is not None
        return [inside]
    pairs = []
    order = [*free].index
    for pair in combinations(free, 2):
        for one, two in (pair, pair[::-1]):
            a, b = len(free[one]), len(free[two])
            if a > b or a + b < rest:
                continue
            spots = [best_of(free[one], min(a, rest), job)]
            spots += [best_of(free[two], rest - a, job)] * (rest > a)
            price = cost([spot for part in spots for spot in part], job)
            pairs.append(((a + b, a, price, order(one), order(two)), spots))
    return min(pairs, key=lambda pair: pair[0])[1]


def _over_capacity(
    world: World, job: NetJob, free: Mapping[str, list[Spot]]
) -> dict[str, tuple[int, bool]] | None:
    """Step 5: a common job takes idle leaves, then others, which fall ill."""
    groups = leaf_groups(world)

    def spared(name: str) -> list[str]:
        return [
            leaf
            for leaf in groups[name]
            if "foundation" not in crossing_kinds(world, leaf)
        ]

    chosen: list[tuple[list[Spot], int, bool]] = []
    rest = job.replicas
    for group, well in (
        (_by_size(free, groups["I"], most_first=True), True),
        *(
            (_by_size(free, listed, most_first=False), False)
            for listed in (groups["U"], spared("S"), spared("X"))
        ),
    ):
        for _leaf, spots in _taken_in_turn(group, free, rest, job):
            chosen.append((spots, EXCLUSIVE if well else SHARED, well))
            rest -= len(spots)
    return None if rest else _marked(chosen)


def _marked(
    chosen: Sequence[tuple[Sequence[Spot], int, bool]],
) -> dict[str, tuple[int, bool]]:
    """What is written on each pod; a job inside one leaf changes no state."""
    used = [(spots, state, well) for spots, state, well in chosen if spots]
    one = len(used) == 1
    return {
        spot.name: (IDLE if one else state, one or well)
        for spots, state, well in used
        for spot in spots
    }


# SuperPoDs


@dataclass(frozen=True)
class Shape:
    """T nodes in n blocks of B."""

    nodes: int
    block: int

    @property
    def blocks(self) -> int:
        return self.nodes // self.block


def shape_of(job: NetJob) -> Shape:
    total = job.replicas * job.pod.chips
    size = 8 if job.pod.product == "atlas-9000-a3" else 16
    return Shape(job.replicas, max(1, (job.block or total) // size))


def superpod_nodes(
    world: World, job: NetJob, *, split: bool = False
) -> dict[int, list[Spot]]:
    """SuperPoD -> its nodes that hold one pod; best first, then by name (D31).

    A job of several blocks, or of parts of one, talks over RoCE and keeps off
    network-faulty chips.
    """
    over_roce = split or shape_of(job).blocks > 1
    found: dict[int, list[Spot]] = {}
    for spot in world.spots:
        node = spot.node
        if over_roce:
            node = replace(node, free=node.free - node.network_faulty)
        seen = replace(spot, node=node)
        if node.superpod is not None and fits(seen, job):
            found.setdefault(node.superpod, []).append(seen)
    for spots in found.values():
        spots.sort(key=lambda spot: (chip_rank(spot, job), spot.name))
    return dict(sorted(found.items()))


def place_superpods(world: World, job: NetJob) -> list[tuple[str, int]] | None:
    """Node and block of every rank, in rank order."""
    splits = job.soft and job.replicas > 1 and shape_of(job).blocks == 1
    if splits:
        whole_block = place_superpods(world, replace(job, soft=False))
        if whole_block is not None:
            return whole_block
    nodes = superpod_nodes(world, job, split=splits)
    if job.replicas == 1:
        nodes = _tying(nodes, job)
    shape = shape_of(job)
    whole = _whole_job(nodes, shape, world.reserve, job)
    if whole is not None:
        takes = [(whole, shape.block)] * shape.blocks
    else:
        takes = _block_by_block(nodes, shape, world.reserve, job)
        done = sum(size for _, size in takes)
        if job.soft:
            takes += _fragments(nodes, takes, shape.nodes - done, job)
        if sum(size for _, size in takes) < shape.nodes:
            return None
    ranks: list[tuple[str, int]] = []
    left = {superpod: list(spots) for superpod, spots in nodes.items()}
    for block, (superpod, size) in enumerate(takes):
        taken = left[superpod][:size]
        left[superpod] = left[superpod][size:]
        ranks += [(name, block) for name in sorted(_names(taken))]
    return ranks


def _tying(nodes: Mapping[int, list[Spot]], job: NetJob) -> dict[int, list[Spot]]:
    """A single pod: only the nodes that are best for it."""
    everything = [spot for spots in nodes.values() for spot in spots]
    best = min((chip_rank(spot, job) for spot in everything), default=())
    kept = {
        superpod: [spot for spot in spots if chip_rank(spot, job) == best]
        for superpod, spots in nodes.items()
    }
    return {superpod: spots for superpod, spots in kept.items() if spots}


def _whole_job(
    nodes: Mapping[int, list[Spot]], shape: Shape, reserve: int, job: NetJob
) -> int | None:
    """D15: the first SuperPoD, in the seed's order, that holds all and its reserve."""

    def visit(superpod: int) -> tuple[int, int, int, Cost, int]:
        over = len(nodes[superpod]) - shape.nodes - reserve
        column, row = divmod(over, shape.block)
        price = cost(nodes[superpod][: shape.nodes], job)
        if column < shape.blocks:
            return (0, row, column, price, superpod)
        return (1, column, row, price, superpod)

    enough = [s for s in nodes if len(nodes[s]) >= shape.nodes + reserve]
    return min(enough, key=visit, default=None)


def _block_by_block(
    nodes: Mapping[int, list[Spot]], shape: Shape, reserve: int, job: NetJob
) -> list[tuple[int, int]]:
    """Phases 1 to 3: keep the reserve where it can be kept, then eat it."""
    block, wanted = shape.block, shape.blocks
    left = {superpod: len(spots) for superpod, spots in nodes.items()}
    takes: list[tuple[int, int]] = []
    cells = _cells(left, block, reserve)
    columns = max((column for _row, column in cells), default=0)

    def still() -> int:
        return wanted - len(takes)

    def give(tied: Sequence[int], keep: int) -> None:
        each = (left[tied[0]] - keep) // block if tied else 0
        if each < 1 or not still():
            return
        price = _price_of_more(nodes, left, job)
        for superpod in in_cheapest_order(tied, each * block, still() * block, price):
            blocks = min(each, still())
            left[superpod] -= blocks * block
            takes.extend([(superpod, block)] * blocks)

    for row in range(block):
        column = 1
        while column <= still():
            give(cells.get((row, column), []), reserve)
            column += 1
    for column in range(still() + 1, columns + 1):
        for row in range(block):
            give(cells.get((row, column), []), reserve)
    for tied in _most_first(left):
        give(tied, 0)
    return takes


def _price_of_more(
    nodes: Mapping[int, list[Spot]], left: Mapping[int, int], job: NetJob
) -> Callable[[int, int], Cost]:
    """What the next nodes of a SuperPoD cost, where so many are left."""

    def price(superpod: int, count: int) -> Cost:
        start = len(nodes[superpod]) - left[superpod]
        return cost(nodes[superpod][start : start + count], job)

    return price


def _most_first(left: Mapping[int, int]) -> list[list[int]]:
    """SuperPoDs with as many nodes left, most first."""
    order = sorted(left, key=lambda superpod: (-left[superpod], superpod))
    return [list(tied) for _left, tied in groupby(order, key=left.__getitem__)]


def _cells(
    free: Mapping[int, int], block: int, reserve: int
) -> dict[tuple[int, int], list[int]]:
    """Row and column -> the SuperPoDs with so much beyond the reserve."""
    cells: dict[tuple[int, int], list[int]] = {}
    for superpod, count in free.items():
        column, row = divmod(count - reserve, block)
        if count < reserve:
            column, row = 0, count % block
        cells.setdefault((row, column), []).append(superpod)
    return cells


def _fragments(
    nodes: Mapping[int, list[Spot]],
    takes: Sequence[tuple[int, int]],
    need: int,
    job: NetJob,
) -> list[tuple[int, int]]:
    """Phase 4, soft jobs: what is left, the largest first (queue 3)."""
    left = {superpod: len(spots) for superpod, spots in nodes.items()}
    for superpod, size in takes:
        left[superpod] -= size
    pieces = []
    price = _price_of_more(nodes, left, job)
    for tied in _most_first(left):
        each = left[tied[0]]
        ready = in_cheapest_order(tied, each, need, price) if need and each else tied
        for superpod in ready:
            if size := min(each, need):
                pieces.append((superpod, size))
            need -= size
    return pieces


# Legality of a finished placement, whoever made it


def _leaves_of(spots: Sequence[Spot]) -> set[str | None]:
    return {spot.leaf for spot in spots}


def _one_pod_per_node(spots: Sequence[Spot]) -> bool:
    return len(set(_names(spots))) == len(spots)


def position_load(world: World, spots: Sequence[Spot]) -> list[int]:
    """How many nodes of a placement stand at each position."""
    load = Counter(spot.slot for spot in spots)
    return [load[slot] for slot in range(world.m)]


def is_even(world: World, spots: Sequence[Spot]) -> bool:
    """D29: the load of the positions differs by one at most.

    With leaves of different sizes (D36), as often as leaves of the job have a position,
    within one.
    """
    return loads_alike(world, spots) or (
        world.choice == "compact" and loads_as_often_as_there(world, spots)
    )


def loads_alike(world: World, spots: Sequence[Spot]) -> bool:
    load = position_load(world, spots)
    return max(load) - min(load) <= 1


def loads_as_often_as_there(world: World, spots: Sequence[Spot]) -> bool:
    leaves = {spot.leaf for spot in spots}
    there = Counter(spot.slot for spot in world.spots if spot.leaf in leaves)
    load = Counter(spot.slot for spot in spots)
    missing = [there[slot] - load[slot] for slot in there]
    return max(missing) - min(missing) <= 1


def takes_leaves_whole(world: World, spots: Sequence[Spot]) -> bool:
    """All of its leaves but one are the job's alone, with all their nodes."""
    under = Counter(str(spot.leaf) for spot in spots)
    return sum(count < len(world.own(leaf)) for leaf, count in under.items()) <= 1


def is_shaped(world: World, spots: Sequence[Spot]) -> bool:
    """D36: what a foundation job looks for, of all that loads the slots evenly."""
    compact = world.choice == "compact"
    return loads_alike(world, spots) or (compact and takes_leaves_whole(world, spots))


def is_legal_1(
    world: World,
    job: NetJob,
    spots: Sequence[Spot],
    even: Callable[[World, Sequence[Spot]], bool] = is_even,
) -> bool:
    """1.0; *world* is without the job itself."""
    leaves = _leaves_of(spots)
    if None in leaves or not _one_pod_per_node(spots):
        return False
    if len(leaves) == 1:
        return True
    if job.kind == "padding":
        return False
    shares = world.share_common and job.kind == "common"
    for leaf in leaves:
        assert leaf is not None
        if is_crossed(world, leaf) and not (shares and is_common_only(world, leaf)):
            return False
    return job.kind == "common" or even(world, spots)


def is_legal_2(world: World, job: NetJob, spots: Sequence[Spot]) -> bool:
    """2.0: foundation jobs keep to idle leaves and their budget of shared ones."""
    leaves = _leaves_of(spots)
    if None in leaves or not _one_pod_per_node(spots):
        return False
    if len(leaves) == 1:
        return True
    if job.kind == "padding":
        return False
    states = {leaf: s for leaf, s in leaf_states(world).items() if leaf in leaves}
    within = sum(state == SHARED for state, _ in states.values()) <= world.budget
    legal = within and all(
        state != EXCLUSIVE and healthy for state, healthy in states.values()
    )
    if legal or job.kind == "foundation":
        return legal
    return not any(
        states[leaf][1]
        and states[leaf][0] != IDLE
        and "foundation" in crossing_kinds(world, leaf)
        for leaf in states
    )


def is_legal_single(world: World, _job: NetJob, spots: Sequence[Spot]) -> bool:
    """Single layer: one leaf, no more."""
    leaves = _leaves_of(spots)
    small = len(spots) <= world.m
    return (
        small and None not in leaves and len(leaves) == 1 and _one_pod_per_node(spots)
    )


def is_legal_superpods(_world: World, job: NetJob, spots: Sequence[Spot]) -> bool:
    """Hard: rank order cuts the nodes into blocks, each inside one SuperPoD."""
    block = shape_of(job).block
    groups = [spots[i : i + block] for i in range(0, len(spots), block)]
    inside = all(len({spot.node.superpod for spot in group}) == 1 for group in groups)
    placed = all(spot.node.superpod is not None for spot in spots)
    return placed and _one_pod_per_node(spots) and (inside or job.soft)


LEGAL: Mapping[str, Callable[[World, NetJob, Sequence[Spot]], bool]] = {
    "1.0": is_legal_1,
    "2.0": is_legal_2,
    "single": is_legal_single,
    "superpods": is_legal_superpods,
}


def legal_sets(
    world: World, job: NetJob, fixed: Sequence[Spot] = (), excluded: Sequence[str] = ()
) -> Iterator[list[Spot]]:
    """Every legal set of nodes that has the fixed ones; for small clusters only.

    In 1.0 those of the shapes that are looked for; in repairs, by the load of slots.
    """
    held = set(_names(fixed))

    def is_legal(spots: Sequence[Spot]) -> bool:
        if world.mode == "1.0":
            shape = loads_alike if fixed else is_shaped
            return is_legal_1(world, job, spots, shape)
        return LEGAL[world.mode](world, job, spots)

    others = [
        spot
        for spot in world.spots
        if spot.name not in held and spot.name not in excluded and fits(spot, job)
    ]
    for more in combinations(others, job.replicas - len(fixed)):
        spots = [*fixed, *more]
        if is_legal(spots):
            yield spots


def exists_legal(
    world: World, job: NetJob, fixed: Sequence[Spot] = (), excluded: Sequence[str] = ()
) -> bool:
    """Whether any set of nodes is legal: brute force."""
    if world.mode == "superpods":
        return _blocks_exist(world, job)
    return next(legal_sets(world, job, fixed, excluded), None) is not None


def _blocks_exist(world: World, job: NetJob) -> bool:
    """Whether the blocks can be dealt to SuperPoDs, trying every way to deal them."""
    shape = shape_of(job)
    room = [len(spots) for spots in superpod_nodes(world, job).values()]
    if job.soft:
        return sum(room) >= shape.nodes

    def deal(blocks: int, rooms: list[int]) -> bool:
        if not blocks:
            return True
        return any(
            deal(blocks - 1, [r - shape.block * (i == j) for j, r in enumerate(rooms)])
            for i, free in enumerate(rooms)
            if free >= shape.block
        )

    return deal(shape.blocks, room)
