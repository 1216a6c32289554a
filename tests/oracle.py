"""A second opinion on chip placement: slow, plain, and written from the rules alone.

The property tests compare the real code with this module, so it shares nothing with
it: no tables, no bit masks, no imports.  A rule is stated as a test on a finished set
of chips ("is this wired as the product demands?") and as a key ("of two such sets,
which is wanted more?"); the answer is the least of all candidates.

Only the rules inside one node are here, and the choice between nodes that follows from
them.  Leaf switches and the choice of a SuperPoD are not.

Sources: the seeds (000 common node selection, 002 table 1, 004 groups A to D), the
decisions D1 to D34 with their exact readings, and the vendor's behaviour where neither
speaks.  "Free" always means usable by the job at hand.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, combinations

Chips = frozenset[int]
Key = tuple[int, ...]


@dataclass(frozen=True)
class OracleNode:
    """A node as a scenario describes it; `free` may name faulty chips too."""

    name: str
    product: str
    chips: int
    free: Chips
    faulty: Chips = frozenset()
    network_faulty: Chips = frozenset()
    sub_healthy: bool = False
    ready: bool = True
    superpod: int | None = None


@dataclass(frozen=True)
class OracleJob:
    """A job of identical pods; `chips` is what one pod asks for.

    `strategy` is read for the 300I and the 300I Duo, `distributed` for the Duo only;
    "" is a job that names no strategy.
    """

    product: str
    chips: int
    replicas: int = 1
    strategy: str = "chip"
    distributed: bool = False


# Groups of chips


def _by_group(chips: Iterable[int], size: int) -> dict[int, list[int]]:
    """Chips by ring, card, module or mesh: group id = chip id // size, ascending."""
    groups: dict[int, list[int]] = {}
    for chip in sorted(chips):
        groups.setdefault(chip // size, []).append(chip)
    return groups


def _sizes(chips: Iterable[int], size: int) -> Counter[int]:
    """How many of these chips each group has."""
    return Counter(chip // size for chip in chips)


def _count(chips: Iterable[int], size: int, wanted: int) -> int:
    """How many groups have exactly the wanted number of these chips."""
    return sum(1 for found in _sizes(chips, size).values() if found == wanted)


def _room(pool: Chips, chosen: Chips, size: int) -> int:
    """Free chips, before placement, of the one group that the choice lies in."""
    return _sizes(pool, size)[min(chosen) // size]


def _one_group(chosen: Chips, size: int) -> bool:
    return len(_sizes(chosen, size)) == 1


def _whole_groups(chosen: Chips, size: int) -> bool:
    return all(found == size for found in _sizes(chosen, size).values())


# The shape of a rule


@dataclass(frozen=True)
class _Rule:
    """What one kind of node asks of a choice of chips.

    Every function gets the free chips first.  `wired` tells whether a choice obeys the
    hardware, `wanted` orders the choices inside a node (least first, then lowest ids),
    `rank` is the node's affinity once the choice is made, and `candidates` proposes
    choices: enough of them that the best is always among them.
    """

    wired: Callable[[Chips, Chips, OracleJob], bool]
    wanted: Callable[[Chips, Chips, OracleJob], Key]
    rank: Callable[[Chips, Chips, OracleJob], Key]
    candidates: Callable[[Chips, OracleJob], Iterator[Chips]]


def _lowest(pool: Chips, job: OracleJob) -> Iterator[Chips]:
    """The lowest ids: all that is needed where any set will do."""
    yield frozenset(sorted(pool)[: job.chips])


def _spreads(groups: list[list[int]], need: int) -> Iterator[Chips]:
    """Every way to take `need` chips, as so many of the lowest ids of each group."""
    if not groups:
        if need == 0:
            yield frozenset()
        return
    behind = sum(len(group) for group in groups[1:])
    first = groups[0]
    for take in range(max(0, need - behind), min(len(first), need) + 1):
        for rest in _spreads(groups[1:], need - take):
            yield rest.union(first[:take])


def _per_group(size: int, pool: Chips, job: OracleJob) -> Iterator[Chips]:
    """Enough wherever a rule sees how many chips of a group are taken, not which."""
    return _spreads(list(_by_group(pool, size).values()), job.chips)


def _inside_one_group(size: int, pool: Chips, job: OracleJob) -> Iterator[Chips]:
    """The lowest ids of every group with room: enough where a group holds the pod."""
    for group in _by_group(pool, size).values():
        if len(group) >= job.chips:
            yield frozenset(group[: job.chips])


def _no_wish(_pool: Chips, _chosen: Chips, _job: OracleJob) -> Key:
    return ()


def _left(pool: Chips, _chosen: Chips, job: OracleJob) -> Key:
    """Fewer free chips left over (seed 000, D2): affScoreList is free - n (D5)."""
    return (len(pool) - job.chips,)


# No wiring: A2, half, 300T and 310P


def _any_set(_pool: Chips, _chosen: Chips, _job: OracleJob) -> bool:
    """One ring, one mesh or no links at all: every set is as good (seed 002)."""
    return True


_PLAIN = _Rule(_any_set, _no_wish, _left, _lowest)


# Atlas 800 9000: two rings


def _ring_wired(_pool: Chips, chosen: Chips, job: OracleJob) -> bool:
    """Up to 4 chips stay in one HCCS ring; 8 are the node (seed 004, constraints)."""
    return job.chips == 8 or _one_group(chosen, 4)


def _ring_order(need: int) -> list[int]:
    """Ring sizes from best to worst: 1,3,2,4 and 2,4,3 and 4 (seed 004, policy 1).

    D3: that is to leave an even remainder first, and then the smaller one.
    """
    return sorted(range(need, 5), key=lambda size: ((size - need) % 2, size))


def _ring_wanted(pool: Chips, chosen: Chips, job: OracleJob) -> Key:
    """Groups A to D of seed 004; `3~3` for two chips is in group C (D4)."""
    if job.chips == 8:
        return (0,)
    return (_ring_order(job.chips).index(_room(pool, chosen, 4)),)


def _ring_rank(pool: Chips, chosen: Chips, job: OracleJob) -> Key:
    """The group, then what the node has left: `1~[0,1,2,3,4]` (seed 004, note 2)."""
    return _ring_wanted(pool, chosen, job) + _left(pool, chosen, job)


_RINGS = _Rule(_ring_wired, _ring_wanted, _ring_rank, partial(_per_group, 4))


# Box16: two rings of eight


def _aligned(pool: Chips) -> list[tuple[int, int]]:
    """The pairs (i, i+8) of which both chips are free."""
    return [(chip, chip + 8) for chip in range(8) if {chip, chip + 8} <= pool]


def _must_align(pool: Chips, job: OracleJob) -> bool:
    """A single pod takes aligned pairs where they exist for all of it (D6)."""
    return job.replicas == 1 and 2 * len(_aligned(pool)) >= job.chips


def _box_wired(pool: Chips, chosen: Chips, job: OracleJob) -> bool:
    """Up to 8 in one ring, above that evenly over both (seed 002, row 2; D6)."""
    if job.chips <= 8:
        return _one_group(chosen, 8)
    if 2 * _sizes(chosen, 8)[0] != job.chips:
        return False
    return not _must_align(pool, job) or 2 * len(_aligned(chosen)) == job.chips


def _box_wanted(pool: Chips, chosen: Chips, job: OracleJob) -> Key:
    """Best fit of the ring; of equal halves the lowest ids (vendor behaviour)."""
    return (_room(pool, chosen, 8) - job.chips,) if job.chips <= 8 else ()


def _box_rank(pool: Chips, chosen: Chips, job: OracleJob) -> Key:
    """Misfit of the ring; or for halves: alignment (D6), then pairs left over.

    Pods of a job of several are never aligned (vendor behaviour), so for them
    alignment tells no nodes apart.
    """
    if job.chips <= 8:
        return _box_wanted(pool, chosen, job) + _left(pool, chosen, job)
    aligned = _must_align(pool, job)
    rings = _sizes(pool, 8)
    pairs = len(_aligned(pool)) if aligned else min(rings[0], rings[1])
    loose = int(job.replicas == 1 and not aligned)
    return (loose, pairs - job.chips // 2, *_left(pool, chosen, job))


def _box_candidates(pool: Chips, job: OracleJob) -> Iterator[Chips]:
    """So many of each ring, and besides every set of aligned pairs."""
    yield from _per_group(8, pool, job)
    if job.chips > 8:
        for pairs in combinations(_aligned(pool), job.chips // 2):
            yield frozenset(chain.from_iterable(pairs))


_BOX16 = _Rule(_box_wired, _box_wanted, _box_rank, _box_candidates)


# A3: modules of two chips


def _module_wired(_pool: Chips, chosen: Chips, job: OracleJob) -> bool:
    """Even requests take whole modules, 1 takes any chip (seed 002, row 3; D7)."""
    return job.chips == 1 or _whole_groups(chosen, 2)


def _module_wanted(pool: Chips, chosen: Chips, job: OracleJob) -> Key:
    """1 chip: a half-used module first; then the lowest module id (D7)."""
    return (_room(pool, chosen, 2),) if job.chips == 1 else ()


def _module_rank(pool: Chips, chosen: Chips, job: OracleJob) -> Key:
    """D7: half-used first for 1; completely free modules left over; free left."""
    spare = _count(pool - chosen, 2, 2)
    unbroken = (int(_count(pool, 2, 1) == 0),) if job.chips == 1 else ()
    return (*unbroken, spare, *_left(pool, chosen, job))


_MODULES = _Rule(_module_wired, _module_wanted, _module_rank, partial(_per_group, 2))


# 300I: cards of four

# Room on the card from best to worst (vendor behaviour).  For two chips the order is
# not that of the HCCS rings.
_CARD_ORDER = {1: (1, 3, 2, 4), 2: (2, 3, 4), 3: (3, 4), 4: (4,)}


def _card_wired(_pool: Chips, chosen: Chips, _job: OracleJob) -> bool:
    """Strategy card: the pod stays on one card (seed 002, row 4)."""
    return _one_group(chosen, 4)


def _card_wanted(pool: Chips, chosen: Chips, job: OracleJob) -> Key:
    return (_CARD_ORDER[job.chips].index(_room(pool, chosen, 4)),)


def _card_rank(pool: Chips, chosen: Chips, job: OracleJob) -> Key:
    """The card's place in the order, then free chips left (D2)."""
    return _card_wanted(pool, chosen, job) + _left(pool, chosen, job)


_CARDS = _Rule(_card_wired, _card_wanted, _card_rank, partial(_inside_one_group, 4))


def _fragments(pool: Chips, job: OracleJob) -> Iterator[Chips]:
    """Strategy chip: cards with the fewest free chips first, across cards (D32)."""
    room = _sizes(pool, 4)
    queue = sorted(pool, key=lambda chip: (room[chip // 4], chip))
    yield frozenset(queue[: job.chips])


_FRAGMENTS = _Rule(_any_set, _no_wish, _left, _fragments)


def _one_card_wanted(pool: Chips, chosen: Chips, _job: OracleJob) -> Key:
    """No strategy: the card with the least room that holds the pod, if any (D42)."""
    return (0, _room(pool, chosen, 4)) if _one_group(chosen, 4) else (1, 0)


def _one_card_rank(pool: Chips, chosen: Chips, job: OracleJob) -> Key:
    return _one_card_wanted(pool, chosen, job) + _left(pool, chosen, job)


def _one_card_candidates(pool: Chips, job: OracleJob) -> Iterator[Chips]:
    yield from _inside_one_group(4, pool, job)
    yield from _fragments(pool, job)


_ONE_CARD = _Rule(_any_set, _one_card_wanted, _one_card_rank, _one_card_candidates)


# 300I Duo: cards of two


def _duo_card_wired(_pool: Chips, chosen: Chips, _job: OracleJob) -> bool:
    """Strategy card: the pod stays on one Duo card (vendor behaviour, D9)."""
    return _one_group(chosen, 2)


def _duo_card_wanted(pool: Chips, chosen: Chips, job: OracleJob) -> Key:
    """One chip: a half-used card before a whole one (seed 002, row 5)."""
    return (_room(pool, chosen, 2) - job.chips,)


def _duo_card_rank(pool: Chips, chosen: Chips, job: OracleJob) -> Key:
    return _duo_card_wanted(pool, chosen, job) + _left(pool, chosen, job)


_DUO_CARDS = _Rule(
    _duo_card_wired, _duo_card_wanted, _duo_card_rank, partial(_inside_one_group, 2)
)


def _duo_chip_wired(_pool: Chips, chosen: Chips, job: OracleJob) -> bool:
    """Distributed: whole cards, and one single chip if n is odd (seed 002, row 5).

    Without the label the same is only wished for (D8), and any set is allowed.
    """
    return not job.distributed or _count(chosen, 2, 1) == job.chips % 2


def _duo_chip_wanted(pool: Chips, chosen: Chips, _job: OracleJob) -> Key:
    """As few single chips as can be, and those from half-used cards (D8)."""
    room = _sizes(pool, 2)
    single = [card for card, got in _sizes(chosen, 2).items() if got == 1]
    return (len(single), sum(1 for card in single if room[card] == 2))


def _duo_chip_rank(pool: Chips, chosen: Chips, job: OracleJob) -> Key:
    """D8: for odd requests nodes with a half-used card first, then free - n."""
    unbroken = (int(_count(pool, 2, 1) == 0),) if job.chips % 2 else ()
    return (*unbroken, *_left(pool, chosen, job))


def _duo_chip_candidates(pool: Chips, job: OracleJob) -> Iterator[Chips]:
    """All spreads over few cards; over many, the one queue that D8 describes."""
    cards = list(_by_group(pool, 2).values())
    if len(cards) <= 8:
        yield from _spreads(cards, job.chips)
        return
    half = [chip for card in cards if len(card) == 1 for chip in card]
    whole = [chip for card in cards if len(card) == 2 for chip in card]
    odd = half[: job.chips % 2]
    whole = whole[: job.chips - len(odd)]
    help_out = half[len(odd) :]
    yield frozenset([*odd, *whole, *help_out][: job.chips])


_DUO_CHIPS = _Rule(
    _duo_chip_wired, _duo_chip_wanted, _duo_chip_rank, _duo_chip_candidates
)


# Atlas 350: meshes of 4


def _mesh_wired(_pool: Chips, chosen: Chips, job: OracleJob) -> bool:
    """Below 4 one mesh, multiples of 4 whole meshes, else any (vendor behaviour)."""
    if job.chips < 4:
        return _one_group(chosen, 4)
    return job.chips % 4 != 0 or _whole_groups(chosen, 4)


def _mesh_wanted(pool: Chips, chosen: Chips, job: OracleJob) -> Key:
    """Best fit of the mesh; above that the lowest ids (vendor behaviour)."""
    return (_room(pool, chosen, 4),) if job.chips < 4 else ()


def _mesh_rank(pool: Chips, chosen: Chips, job: OracleJob) -> Key:
    """Spare meshes, then free left; without meshes only the latter."""
    left = _left(pool, chosen, job)
    if job.chips < 4:
        fitting = sum(1 for room in _sizes(pool, 4).values() if room >= job.chips)
        return (fitting - 1, *left)
    if job.chips % 4 == 0:
        return (_count(pool, 4, 4) - job.chips // 4, *left)
    return left


def _mesh_candidates(pool: Chips, job: OracleJob) -> Iterator[Chips]:
    if job.chips < 4 or job.chips % 4 == 0:
        return _per_group(4, pool, job)
    return _lowest(pool, job)


_MESHES = _Rule(_mesh_wired, _mesh_wanted, _mesh_rank, _mesh_candidates)


# The products


@dataclass(frozen=True)
class _Product:
    """A product: legal chips of one pod and the rule, both by strategy.

    `heeds_network`: pods of a job of several keep off chips whose network is faulty
    (vendor behaviour, column "net attention").  The SuperPoD products do so only when
    a job spans several logical SuperPoDs, which no job of the oracle does.
    """

    requests: dict[str, Chips]
    rule: dict[str, _Rule]
    heeds_network: bool = False
    superpod: bool = False


def _single(requests: Iterable[int], rule: _Rule, **more: bool) -> _Product:
    """A product that does not read the strategy; the default `chip` stands for all."""
    return _Product({"chip": frozenset(requests)}, {"chip": rule}, **more)


def _a3(chips: int, **more: bool) -> _Product:
    """1, or an even number; odd ones above 1 are invalid (D7)."""
    return _single({1, *range(2, chips + 1, 2)}, _MODULES, **more)


_BOX_REQUESTS = {*range(1, 9), 10, 12, 14, 16}

_PRODUCTS = {
    "atlas-800-9000": _single({1, 2, 4, 8}, _RINGS, heeds_network=True),
    "atlas-800-9000-half": _single({1, 2, 4}, _PLAIN, heeds_network=True),
    "atlas-300t": _single({1, 2}, _PLAIN),
    "atlas-800t-a2": _single(range(1, 9), _PLAIN, heeds_network=True),
    "atlas-800i-a2": _single(range(1, 9), _PLAIN, heeds_network=True),
    "a200i-a2-box": _single(range(1, 9), _PLAIN, heeds_network=True),
    "atlas-200t-a2-box16": _single(_BOX_REQUESTS, _BOX16, heeds_network=True),
    "atlas-800t-a3": _a3(16, heeds_network=True),
    "a200t-a3-box8": _a3(16, heeds_network=True),
    "atlas-900-a3": _a3(16, superpod=True),
    "atlas-9000-a3": _a3(8, superpod=True),
    "atlas-300i": _Product(
        {
            "card": frozenset(range(1, 5)),
            "chip": frozenset(range(1, 65)),
            "": frozenset(range(1, 65)),
        },
        {"card": _CARDS, "chip": _FRAGMENTS, "": _ONE_CARD},
    ),
    "atlas-300i-duo": _Product(
        {"card": frozenset({1, 2}), "chip": frozenset(range(1, 17))},
        {"card": _DUO_CARDS, "chip": _DUO_CHIPS},
    ),
    "atlas-310p": _single(range(1, 65), _PLAIN),
    "atlas-350-4p-8": _single(range(1, 9), _MESHES, heeds_network=True),
    "atlas-350-4p-16": _single(range(1, 17), _MESHES, heeds_network=True),
}


def _strategy(job: OracleJob) -> str:
    return job.strategy if job.strategy in _PRODUCTS[job.product].rule else "chip"


def _rule(job: OracleJob) -> _Rule:
    return _PRODUCTS[job.product].rule[_strategy(job)]


# The jobs


def is_legal(job: OracleJob, job_requests: str = "strict") -> bool:
    """Whether some cluster could ever hold the job.

    The chips of a pod by product (vendor behaviour; D6 and D7 for odd numbers, D9 for
    what no card can hold), then the rule for jobs of several pods.
    """
    if job_requests not in {"strict", "per-pod"}:
        raise ValueError(f"job-requests is strict or per-pod, not {job_requests!r}")
    requests = _PRODUCTS[job.product].requests.get(_strategy(job), frozenset())
    if job.replicas < 1 or job.chips not in requests:
        return False
    return job.replicas == 1 or _several_legal(job, job_requests)


def _several_legal(job: OracleJob, job_requests: str) -> bool:
    """What a job of several pods may ask of each.

    Atlas 800 9000: whole nodes, unless job-requests is per-pod (seed 004, D1).
    SuperPoD: whole nodes.  Other A3: not 1.  Duo: a distributed job has one pod.
    All but the first are vendor behaviour.
    """
    product = _PRODUCTS[job.product]
    if product.superpod:
        return job.chips == max(product.requests["chip"])
    if product.rule.get("chip") is _MODULES:
        return job.chips > 1
    if job.product == "atlas-300i-duo":
        return not job.distributed
    if job.product == "atlas-800-9000" and job_requests == "strict":
        return job.chips == 8
    return True


# One node


def usable(node: OracleNode, job: OracleJob) -> Chips:
    """The chips that "free" means for this job (exact reading of D2)."""
    sound = node.free - node.faulty
    if job.replicas > 1 and _PRODUCTS[job.product].heeds_network:
        return sound - node.network_faulty
    return sound


def _may_hold(node: OracleNode, job: OracleJob) -> bool:
    """Ready, of the job's product, in a SuperPoD if the product asks for one.

    D1's strictness is a matter of the job, not of the node: see `is_legal`.
    """
    placed = node.superpod is not None or not _PRODUCTS[job.product].superpod
    fits = node.ready and node.product == job.product and placed
    return fits and is_legal(job, "per-pod")


def legal_choices(node: OracleNode, job: OracleJob) -> Iterator[Chips]:
    """Every set of chips that one pod may be given here; for at most 16 chips."""
    if not _may_hold(node, job):
        return
    pool = usable(node, job)
    for chips in combinations(sorted(pool), job.chips):
        if _rule(job).wired(pool, frozenset(chips), job):
            yield frozenset(chips)


@lru_cache(maxsize=1024)
def choose(node: OracleNode, job: OracleJob) -> tuple[Key, tuple[int, ...]] | None:
    """The node's affinity rank (lower is better) and the chips one pod would get.

    The rank leaves out health and name and compares only between nodes for the same
    job.  Chips are in the order in which they are written.  None: no room here.
    """
    pool = usable(node, job)
    if not _may_hold(node, job) or len(pool) < job.chips:
        return None
    rule = _rule(job)
    legal = (c for c in rule.candidates(pool, job) if rule.wired(pool, c, job))
    best = min(
        legal, key=lambda c: (rule.wanted(pool, c, job), sorted(c)), default=None
    )
    if best is None:
        return None
    return rule.rank(pool, best, job), _written(best, job)


def _written(chips: Chips, job: OracleJob) -> tuple[int, ...]:
    """Ascending; Box16 with 10, 12 or 14: l0, r0, l1, r1, ... (vendor behaviour)."""
    ascending = tuple(sorted(chips))
    if job.product != "atlas-200t-a2-box16" or job.chips not in {10, 12, 14}:
        return ascending
    half = job.chips // 2
    pairs = zip(ascending[:half], ascending[half:], strict=True)
    return tuple(chain.from_iterable(pairs))


# Many nodes


def node_rank(node: OracleNode, job: OracleJob) -> tuple[int | str, ...] | None:
    """Where the node stands among all; lower is better, None: does not fit.

    Sub-healthy nodes last of all (D16), then D2: fewer faulty chips (D37), affinity,
    fewer free chips left over, name.
    """
    choice = choose(node, job)
    if choice is None:
        return None
    every = range(node.chips)
    faulty = len(node.faulty.intersection(every))
    return (node.sub_healthy, faulty, *choice[0], node.name)


def _best(nodes: Iterable[OracleNode], job: OracleJob) -> OracleNode | None:
    ranked = [(rank, n) for n in nodes if (rank := node_rank(n, job)) is not None]
    return min(ranked, key=lambda pair: pair[0], default=(None, None))[1]


def place(
    nodes: Sequence[OracleNode], job: OracleJob
) -> list[tuple[str, tuple[int, ...]]] | None:
    """Node and chips of every replica, or None if not all of them fit.

    Each replica takes the best node given what the earlier ones took (D18, D21).
    SuperPoD products: one pod only, and between nodes that tie up to the name the
    choice of a SuperPoD (D15) would come first, so keep to one SuperPoD there.
    """
    if job.replicas > 1 and _PRODUCTS[job.product].superpod:
        raise ValueError("several pods in SuperPoDs are beyond the oracle")
    state = {node.name: node for node in nodes}
    placements: list[tuple[str, tuple[int, ...]]] = []
    for _ in range(job.replicas):
        node = _best(state.values(), job)
        choice = choose(node, job) if node is not None else None
        if node is None or choice is None:
            return None
        state[node.name] = replace(node, free=node.free.difference(choice[1]))
        placements.append((node.name, choice[1]))
    return placements
