"""A second opinion on the network rules: slow, plain, and written from the rules alone.

The property tests compare the real code with this module, so it shares nothing with
it.  Which chips a pod gets on a node, and which of two nodes it likes more, is asked of
``tests.oracle``; here nodes are put together: under leaf switches (1.0, 2.0, single
layer) and in SuperPoDs.

There are two kinds of functions.  ``place_…`` follow the documented steps and name the
node of every rank.  ``is_legal_…`` look at a finished placement, whoever made it, and
know nothing of the steps; ``exists_legal`` tries every set of nodes against them.

Sources: the seeds (000, 001, 002), the decisions D10 to D17 and D27 to D33 with their
exact readings, and the vendor's steps where neither speaks.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from tests.oracle import OracleJob, OracleNode, choose, node_rank, usable

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
    """A job of identical pods; `label` is its tor-affinity, `block` its sp-block."""

    name: str
    pod: OracleJob
    label: str | None = None
    block: int | None = None
    soft: bool = False

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


def _fewest(
    free: Mapping[str, list[Spot]], n: int, job: NetJob, *, last_listed: bool
) -> list[Spot] | None:
    """The leaf with the fewest nodes that still suffice."""
    enough = [(len(spots), -i if last_listed else i, leaf)
              for i, (leaf, spots) in enumerate(free.items())
              if len(spots) >= n]  # fmt: skip
    return best_of(free[min(enough)[2]], n, job) if enough else None


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
    if n < m or job.kind == "padding":
        inside = _fewest(free, n, job, last_listed=True)
        if inside is not None:
            return _names(inside)
        if job.kind == "padding":
            return None
    queue = sorted(free.values(), key=len, reverse=True)
    rows, last = divmod(n - 1, m)
    complete = [spots for spots in queue if len(spots) == m]
    if len(complete) >= rows + 1:
        whole = [spot for spots in complete[:rows] for spot in spots]
        return _names(whole + best_of(complete[rows], last + 1, job))
    logical = _logical(queue, n, m, job)
    if logical is not None:
        return _names(logical)
    if job.kind == "common":
        return _anywhere(queue, n, job)
    return None


def _logical(
    queue: Sequence[Sequence[Spot]], n: int, m: int, job: NetJob
) -> list[Spot] | None:
    """Step E: one node of each position makes a logical leaf.

    D31: where it has more nodes than are wanted, the best chip rank first.
    """
    rows, last = divmod(n - 1, m)
    lists: list[list[Spot]] = [[] for _ in range(m)]
    for spots in queue:
        for spot in spots:
            lists[spot.slot].append(spot)
    lists.sort(key=len, reverse=True)
    if len(lists[last]) < rows + 1 or len(lists[-1]) < rows:
        return None

    def row(i: int) -> list[Spot]:
        return [spots[i] for spots in lists if len(spots) > i]

    def by_slot(spots: Sequence[Spot]) -> list[Spot]:
        return sorted(spots, key=lambda spot: spot.slot)

    def best(i: int, count: int) -> list[Spot]:
        wanted = sorted(row(i), key=lambda spot: chip_rank(spot, job))
        return by_slot(wanted[:count])

    if n < m:
        deep = max(i for i in range(len(lists[0])) if len(row(i)) >= n)
        return best(deep, n)
    whole = [spot for i in range(rows) for spot in by_slot(row(i))]
    return whole + best(rows, last + 1)


def _anywhere(queue: Sequence[Sequence[Spot]], n: int, job: NetJob) -> list[str] | None:
    """Step F: a common job takes what is open, emptiest leaf first."""
    chosen: list[Spot] = []
    for spots in queue:
        chosen += best_of(spots, min(len(spots), n - len(chosen)), job)
    return _names(chosen) if len(chosen) == n else None


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
    if n < world.m or job.kind == "padding":
        for name in "XUSI":
            under = {leaf: free[leaf] for leaf in groups[name]}
            inside = _fewest(under, n, job, last_listed=False)
            if inside is not None:
                return _marked([(inside, IDLE, True)])
        if job.kind == "padding":
            return None

    def room(leaf: str) -> int:
        return len(free[leaf])

    best_shared = sorted(map(room, groups["S"]), reverse=True)[: world.budget]
    if n > sum(map(room, groups["I"])) + sum(best_shared):
        return _over_capacity(world, job, free) if job.kind == "common" else None
    return _within_capacity(world, job, free)


def _within_capacity(
    world: World, job: NetJob, free: Mapping[str, list[Spot]]
) -> dict[str, tuple[int, bool]]:
    """Steps 3 and 4 with D14: idle leaves whole, the remainder on a leaf or two."""
    groups = leaf_groups(world)

    def room(leaf: str) -> int:
        return len(free[leaf])

    chosen: list[tuple[list[Spot], int, bool]] = []
    rest = job.replicas
    idle = sorted(groups["I"], key=room, reverse=True)
    while idle and rest >= room(idle[0]):
        leaf = idle.pop(0)
        chosen.append((free[leaf], EXCLUSIVE, True))
        rest -= room(leaf)
    if rest:
        enough = {leaf: free[leaf] for leaf in groups["I"] if leaf in idle}
        inside = _fewest(enough, rest, job, last_listed=False)
        if inside is not None:
            chosen.append((inside, SHARED, True))
        else:
            order = world.leaves.index
            for leaf in _shared_for(
                [(room(s), order(s), s) for s in groups["S"] if room(s)],
                rest,
                world.budget,
            ):
                take = min(rest, room(leaf))
                chosen.append((best_of(free[leaf], take, job), SHARED, True))
                rest -= take
    return _marked(chosen)


def _shared_for(
    leaves: list[tuple[int, int, str]], rest: int, budget: int
) -> list[str]:
    """D14: one leaf, or the pair with the smallest sufficient sum."""
    leaves = sorted(leaves)
    if budget == 1 or len(leaves) == 1:
        return [next(leaf for room, _, leaf in leaves if room >= rest)]
    pairs = [
        (one[0] + two[0], one[0], one[1], two[1], one[2], two[2])
        for one, two in combinations(leaves, 2)
        if one[0] + two[0] >= rest
    ]
    *_, one_leaf, two_leaf = min(pairs)
    return [one_leaf, two_leaf]


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

    idle = sorted(groups["I"], key=lambda leaf: -len(free[leaf]))
    chosen: list[tuple[list[Spot], int, bool]] = []
    rest = job.replicas
    for group, well in (
        (idle, True),
        *(
            (sorted(listed, key=lambda leaf: len(free[leaf])), False)
            for listed in (groups["U"], spared("S"), spared("X"))
        ),
    ):
        for leaf in group:
            taken = best_of(free[leaf], min(rest, len(free[leaf])), job)
            chosen.append((taken, EXCLUSIVE if well else SHARED, well))
            rest -= len(taken)
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
    free = {superpod: len(spots) for superpod, spots in nodes.items()}
    whole = _whole_job(free, shape, world.reserve)
    if whole is not None:
        takes = [(whole, shape.block)] * shape.blocks
    else:
        takes = _block_by_block(free, shape, world.reserve)
        done = sum(size for _, size in takes)
        if job.soft:
            takes += _fragments(free, takes, shape.nodes - done)
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


def _whole_job(free: Mapping[int, int], shape: Shape, reserve: int) -> int | None:
    """D15: the first SuperPoD, in the seed's order, that holds all and its reserve."""

    def visit(superpod: int) -> tuple[int, int, int, int]:
        over = free[superpod] - shape.nodes - reserve
        column, row = divmod(over, shape.block)
        if column < shape.blocks:
            return (0, row, column, superpod)
        return (1, column, row, superpod)

    enough = [s for s in free if free[s] >= shape.nodes + reserve]
    return min(enough, key=visit, default=None)


def _block_by_block(
    free: Mapping[int, int], shape: Shape, reserve: int
) -> list[tuple[int, int]]:
    """Phases 1 to 3: keep the reserve where it can be kept, then eat it."""
    block, wanted = shape.block, shape.blocks
    left = dict(free)
    takes: list[tuple[int, int]] = []
    cells = _cells(free, block, reserve)
    columns = max((column for _row, column in cells), default=0)

    def still() -> int:
        return wanted - len(takes)

    def take(row: int, column: int) -> None:
        for superpod in cells.get((row, column), []):
            while left[superpod] - reserve >= block and still():
                left[superpod] -= block
                takes.append((superpod, block))

    for row in range(block):
        column = 1
        while column <= still():
            take(row, column)
            column += 1
    for column in range(still() + 1, columns + 1):
        for row in range(block):
            take(row, column)
    for superpod in _most_first(left):
        give = min(left[superpod] // block, still())
        takes += [(superpod, block)] * give
    return takes


def _most_first(left: Mapping[int, int]) -> list[int]:
    return sorted(left, key=lambda superpod: (-left[superpod], superpod))


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
    free: Mapping[int, int], takes: Sequence[tuple[int, int]], need: int
) -> list[tuple[int, int]]:
    """Phase 4, soft jobs: what is left, the largest first (queue 3)."""
    left = dict(free)
    for superpod, size in takes:
        left[superpod] -= size
    pieces = []
    for superpod in _most_first(left):
        size = min(left[superpod], need)
        if size:
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
    """D29: the load of the positions differs by one at most."""
    load = position_load(world, spots)
    return max(load) - min(load) <= 1


def is_legal_1(world: World, job: NetJob, spots: Sequence[Spot]) -> bool:
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
    return job.kind == "common" or is_even(world, spots)


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
    world: World, job: NetJob, fixed: Sequence[Spot] = (), barred: Sequence[str] = ()
) -> Iterator[list[Spot]]:
    """Every legal set of nodes that has the fixed ones; for small clusters only."""
    held = set(_names(fixed))
    others = [
        spot
        for spot in world.spots
        if spot.name not in held and spot.name not in barred and fits(spot, job)
    ]
    for more in combinations(others, job.replicas - len(fixed)):
        spots = [*fixed, *more]
        if LEGAL[world.mode](world, job, spots):
            yield spots


def exists_legal(
    world: World, job: NetJob, fixed: Sequence[Spot] = (), barred: Sequence[str] = ()
) -> bool:
    """Whether any set of nodes is legal: brute force."""
    if world.mode == "superpods":
        return _blocks_exist(world, job)
    return next(legal_sets(world, job, fixed, barred), None) is not None


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
