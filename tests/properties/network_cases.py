"""Random small networks: leaves and SuperPoDs, tenants, and jobs that mostly fit.

A case speaks the oracle's language; ``document`` says the same as a scenario file.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hypothesis import strategies as st

from ringleaf.simulator.scenario import Scenario, load
from tests.network_oracle import (
    NetJob,
    Note,
    Pod,
    Spot,
    World,
    candidates,
    crossers,
    is_crossed,
    leaf_groups,
    with_pods,
)
from tests.oracle import OracleJob, OracleNode

A2: Final = "atlas-800t-a2"
RINGS: Final = "atlas-800-9000"
A3: Final = "atlas-900-a3"
EVERY: Final = frozenset(range(8))
STATES: Final = ("idle", "shared", "exclusive")
LABELS: Final = ("large-model-schema", "normal-schema", None)
LABEL: Final = st.sampled_from(LABELS[:2])
ILLS: Final = st.sampled_from([0, 1, 1, 2])
CHOICE: Final = st.sampled_from(["compact", "compact", "guide"])


@dataclass(frozen=True)
class Case:
    """A world, jobs to come, and after each the earlier one that ends, if any."""

    world: World
    jobs: tuple[NetJob, ...]
    ends: tuple[int | None, ...] = ()

    @property
    def steps(self) -> Iterator[tuple[NetJob, NetJob | None]]:
        """Every job that comes, and the one that ends after it."""
        for number, job in enumerate(self.jobs):
            end = self.ends[number] if self.ends else None
            yield job, None if end is None else self.jobs[end]


def document(case: Case) -> dict[str, Any]:
    """The case as a scenario document."""
    world = case.world
    settings: dict[str, Any] = {
        "nslb-version": "2.0" if world.mode == "2.0" else "1.0",
        "tor-level": "single_layer" if world.mode == "single" else "double_layer",
        "shared-tor-num": world.budget,
        "leaf-choice": world.choice,
        "share-common-leaves": world.share_common,
        "reserve-nodes": world.reserve,
        "job-requests": "per-pod",
    }
    if world.given_m is not None:
        settings["nodes-per-leaf"] = world.given_m
    return {
        "settings": settings,
        "nodes": [_node(spot) for spot in world.spots],
        "leaves": {leaf: _note(leaf, note) for leaf, note in world.notes.items()},
        "running": _running(world.pods),
        "jobs": [_job(job) for job in case.jobs],
    }


def scenario(case: Case) -> Scenario:
    (found,) = load(json.dumps(document(case)).encode())
    return found


def _node(spot: Spot) -> dict[str, Any]:
    node = spot.node
    written: dict[str, Any] = {
        "name": node.name,
        "product": node.product,
        "free": sorted(node.free),
        "faulty": sorted(node.faulty),
        "network-faulty": sorted(node.network_faulty),
        "sub-healthy": node.sub_healthy,
        "ready": node.ready,
    }
    if spot.leaf is not None:
        written |= {"leaf": spot.leaf, "slot": spot.slot}
    if node.superpod is not None:
        written["superpod"] = node.superpod
    return written


def _note(leaf: str, note: Note) -> dict[str, Any]:
    written: dict[str, Any] = {"address": f"address of {leaf}"}
    if note.state is not None:
        written["state"] = STATES[note.state]
    if note.healthy is not None:
        written["healthy"] = note.healthy
    if note.crossed_by:
        written["cross-leaf-jobs"] = list(note.crossed_by)
    return written


def _running(pods: Sequence[Pod]) -> list[dict[str, Any]]:
    jobs = {pod.job.name: pod.job for pod in pods}
    return [
        _job(job)
        | {"placements": [placement(p) for p in pods if p.job.name == job.name]}
        for job in jobs.values()
    ]


def placement(pod: Pod) -> dict[str, Any]:
    """A pod as an entry under ``placements``, with what is written on it."""
    written: dict[str, Any] = {
        "replica": pod.replica,
        "node": pod.node,
        "chips": list(pod.chips),
    }
    if pod.state is not None:
        written["annotations"] = {
            "isSharedTor": str(pod.state),
            "isHealthy": str(int(not pod.healthy)),
        }
    return written


def _job(job: NetJob) -> dict[str, Any]:
    written: dict[str, Any] = {
        "name": job.name,
        "product": job.pod.product,
        "replicas": job.replicas,
        "chips": job.pod.chips,
    }
    if job.label is not None:
        written["tor-affinity"] = job.label
    if job.block is not None:
        written["sp-block"] = job.block
    if job.soft:
        written["super-pod-affinity"] = "soft"
    return written


# Nodes under leaves


@st.composite
def leaf_nodes(draw: st.DrawFn, name: str, product: str, texture: str) -> OracleNode:
    """A node of eight chips; the texture says what may be wrong with it.

    Calm: nothing. Holes, sparse: one node in three, one in two is taken whole, so that
    leaves are rarely complete. Mixed: one in four has something else.
    """
    plain = OracleNode(name, product, 8, EVERY)
    odds = {"holes": [False, False, True], "sparse": [False, True]}.get(texture)
    if odds and draw(st.sampled_from(odds)):
        return replace(plain, free=frozenset())
    if texture != "mixed" or draw(st.sampled_from([True, True, True, False])):
        return plain
    if draw(st.sampled_from([False] * 6 + [True])):
        return replace(plain, product=A2 if product == RINGS else RINGS)
    return draw(worn(plain))


@st.composite
def worn(draw: st.DrawFn, plain: OracleNode) -> OracleNode:
    """The node with one thing wrong."""
    chip = st.integers(0, plain.chips - 1)
    few = st.frozensets(chip, max_size=2)
    match draw(st.sampled_from(["taken", "sub", "sub", "faulty", "network", "away"])):
        case "taken":
            return replace(plain, free=plain.free - draw(st.frozensets(chip)))
        case "sub":
            return replace(plain, sub_healthy=True)
        case "faulty":
            return replace(plain, faulty=draw(few))
        case "network":
            return replace(plain, network_faulty=draw(few))
    return replace(plain, ready=False)


@st.composite
def leaf_spots(
    draw: st.DrawFn, product: str, m: int, max_nodes: int
) -> tuple[Spot, ...]:
    """Leaves of up to *m* nodes, and now and then a node under none."""
    most = max(1, min(6, max_nodes // m))
    n_leaves = draw(st.one_of(st.integers(1, most), st.integers(most // 2 + 1, most)))
    texture = draw(st.sampled_from(["calm", "holes", "sparse", "mixed", "mixed"]))
    ragged = draw(st.booleans())
    where: list[tuple[str | None, int]] = []
    for number in range(n_leaves):
        slots = list(range(m))
        if ragged and number:
            slots = sorted(draw(st.sets(st.sampled_from(slots), min_size=1)))
        where += [(f"L{number}", slot) for slot in slots]
    if draw(st.sampled_from([False, False, False, True])):
        where.append((None, 0))
    if draw(st.booleans()):
        where = draw(st.permutations(where))
    names = [f"n{i:02}" for i in range(len(where))]
    if draw(st.booleans()):
        names = draw(st.permutations(names))
    return tuple(
        Spot(draw(leaf_nodes(name, product, texture)), leaf, slot)
        for name, (leaf, slot) in zip(names, where, strict=True)
    )


# Tenants


@st.composite
def tenants(draw: st.DrawFn, world: World, product: str) -> World:
    """Up to three jobs that already run, one pod per node, some across leaves."""
    for number in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3]))):
        chips = draw(st.sampled_from([1, 2, 8, 8]))
        room = [
            spot
            for spot in world.spots
            if spot.node.product == product and len(spot.node.free) >= chips
        ]
        if not room:
            break
        some = draw(
            st.lists(
                st.sampled_from(room),
                min_size=1,
                max_size=4,
                unique_by=lambda s: s.name,
            )
        )
        pod = OracleJob(product, chips, len(some))
        job = NetJob(f"tenant-{number}", pod, draw(st.sampled_from(LABELS)))
        pods = [
            Pod(job, i, spot.name, tuple(sorted(spot.node.free))[:chips])
            for i, spot in enumerate(some)
        ]
        world = with_pods(world, pods)
    return world


@st.composite
def notes(draw: st.DrawFn, world: World) -> World:
    """Entries under ``leaves``; states only where no pods speak of them."""
    found: dict[str, Note] = {}
    for leaf in world.leaves:
        if draw(st.booleans()):
            continue
        note = Note()
        if draw(st.booleans()):
            by = st.lists(st.sampled_from(LABELS[:2]), max_size=2)
            note = replace(note, crossed_by=tuple(str(label) for label in draw(by)))
        if world.mode == "2.0" and not crossers(world, leaf):
            note = replace(
                note,
                state=draw(st.sampled_from([1, 1, 1, 2, 0, None])),
                healthy=draw(st.sampled_from([True, True, True, None, False])),
            )
        found[leaf] = note
    return replace(world, notes=found)


# Jobs and cases


def edge_sizes(world: World, job: NetJob) -> list[int]:
    """Replicas that make a job cross leaves and take almost all that is open."""
    rooms = {leaf: len(spots) for leaf, spots in candidates(world, job).items()}
    if world.mode != "2.0":
        free = [room for leaf, room in rooms.items() if not is_crossed(world, leaf)]
        low, high = max(rooms.values(), default=0) + 1, sum(free)
        rare = range(max(4, low), min(world.m, high + 1))  # one logical leaf
    else:
        groups = leaf_groups(world)
        low = sum(rooms[leaf] for leaf in groups["I"]) + 1
        shared = sorted((rooms[leaf] for leaf in groups["S"]), reverse=True)
        high = low - 1 + sum(shared[: world.budget])
        rare = range(low + sum(shared[:1]), high + 1)  # two shared leaves
    return [*range(low, high + 1), *[*rare] * 3] or [world.m]


@st.composite
def leaf_jobs(
    draw: st.DrawFn, world: World, product: str, name: str, *, labelled: bool = False
) -> NetJob:
    """A job that would often fit: whole nodes mostly, up to the size of the cluster."""
    legal = [1, 2, 4, 8] if product == RINGS else list(range(1, 9))
    chips = draw(st.one_of(st.just(8), st.just(8), st.sampled_from(legal)))
    free = sum(1 for spot in world.spots if len(spot.node.free) >= chips)
    most = max(1, min(free, 3 * world.m))
    small = st.integers(1, world.m + 1)
    four = st.integers(min(4, most), most)
    large = st.integers(min(world.m, most), most)
    edge = st.sampled_from(edge_sizes(world, NetJob("", OracleJob(product, chips, 2))))
    replicas = draw(st.one_of(small, four, large, edge, edge))
    labels = LABELS[:2] if labelled else (*LABELS[:2], *LABELS)
    label = draw(st.sampled_from(labels))
    return NetJob(name, OracleJob(product, chips, replicas), label)


@st.composite
def leaf_worlds(
    draw: st.DrawFn, mode: str | None = None, max_nodes: int = 24
) -> tuple[World, str]:
    product = draw(st.sampled_from([A2, A2, RINGS]))
    m = draw(st.sampled_from([2, 3, 4, 4, 5, 6, 6]))
    world = World(
        spots=draw(leaf_spots(product, m, max_nodes)),
        mode=mode or draw(st.sampled_from(["1.0", "2.0", "single"])),
        given_m=draw(st.sampled_from([None, m])),
        choice=draw(CHOICE),
        budget=draw(st.sampled_from([1, 2, 2])),
        share_common=draw(st.sampled_from([False, False, True])),
    )
    world = draw(tenants(world, product))
    return draw(notes(world)), product


@st.composite
def leaf_cases(
    draw: st.DrawFn,
    mode: str | None = None,
    max_jobs: int = 5,
    max_nodes: int = 24,
    *,
    labelled: bool = False,
) -> Case:
    world, product = draw(leaf_worlds(mode, max_nodes))
    n_jobs = draw(st.integers(1, max_jobs))
    jobs = tuple(
        draw(leaf_jobs(world, product, f"job-{i}", labelled=labelled))
        for i in range(n_jobs)
    )
    return Case(world, jobs, draw(endings(n_jobs)))


@st.composite
def scattered_cases(draw: st.DrawFn, mode: str) -> Case:
    """No leaf is near complete, so that a job that crosses must take from many."""
    m = draw(st.sampled_from([4, 5, 6, 6]))
    spots: list[Spot] = []
    for number in range(draw(st.integers(3, 6))):
        open_ = draw(st.sets(st.integers(0, m - 1), min_size=1, max_size=m - 2))
        for slot in range(m):
            free = EVERY if slot in open_ else frozenset[int]()
            node = OracleNode(f"n{len(spots):02}", A2, 8, free)
            spots.append(Spot(node, f"L{number}", slot))
    world = World(tuple(spots), mode=mode, budget=draw(st.sampled_from([1, 2, 2])))
    world = replace(world, choice=draw(CHOICE))
    if mode == "2.0" or draw(st.booleans()):
        world = draw(notes(world))
    sizes = st.sampled_from(edge_sizes(world, NetJob("", OracleJob(A2, 8, 2))))
    jobs = tuple(
        NetJob(f"job-{i}", OracleJob(A2, 8, draw(sizes)), draw(LABEL)) for i in range(2)
    )
    return Case(world, jobs)


@st.composite
def calm_cases(draw: st.DrawFn, mode: str) -> Case:
    """Every node is free; jobs fill a leaf almost, or whole, or several of them.

    In 2.0 most leaves are shared, and jobs need one of them, or two.
    """
    m = draw(st.sampled_from([4, 5, 6]))
    spots = tuple(
        Spot(OracleNode(f"n{leaf}{slot}", A2, 8, EVERY), f"L{leaf}", slot)
        for leaf in range(draw(st.integers(2, 4)))
        for slot in range(m)
    )
    world = World(spots, mode=mode, choice=draw(CHOICE), budget=2)
    sizes = [m - 1, m, m + 1, 2 * m, 2 * m + 1, 3 * m]
    if mode == "2.0":
        states = {leaf: draw(st.sampled_from([0, 1, 1])) for leaf in world.leaves}
        shared = {leaf: Note(state, healthy=True) for leaf, state in states.items()}
        world = replace(world, notes=shared)
        sizes += edge_sizes(world, NetJob("", OracleJob(A2, 8, 2)))
        sizes += [len(spots) - 1, len(spots)]
    jobs = tuple(
        NetJob(f"job-{i}", OracleJob(A2, 8, draw(st.sampled_from(sizes))), draw(LABEL))
        for i in range(2)
    )
    return Case(world, jobs)


@st.composite
def shifted_cases(draw: st.DrawFn) -> Case:
    """1.0: in each leaf other slots are taken, so that only together they are whole."""
    m = draw(st.sampled_from([4, 5, 6]))
    gap = draw(st.integers(2, m // 2))
    spots: list[Spot] = []
    for leaf in range(draw(st.integers(3, 4))):
        for slot in range(m):
            free = EVERY if (slot - gap * leaf) % m >= gap else frozenset[int]()
            node = OracleNode(f"n{leaf}{slot}", A2, 8, free)
            spots.append(Spot(node, f"L{leaf}", slot))
    sizes = st.sampled_from([m - 1, m - 1, m, m, m + 1, 2 * m - 1])
    jobs = (NetJob("job-0", OracleJob(A2, 8, draw(sizes)), draw(LABEL)),)
    return Case(World(tuple(spots), choice=draw(CHOICE)), jobs)


@st.composite
def endings(draw: st.DrawFn, n_jobs: int) -> tuple[int | None, ...]:
    """After each job, now and then one of those before it ends."""
    return tuple(
        draw(st.one_of(st.none(), st.none(), st.integers(0, i))) for i in range(n_jobs)
    )


@st.composite
def tied_cases(draw: st.DrawFn, mode: str, slots_of: str = "") -> Case:
    """Leaves or SuperPoDs that a rule calls equal, with nodes that differ in worth.

    As many nodes fit under most leaves; their sizes, slots and states may differ. One
    pod of a job fits every node that is not taken. With *slots_of* the slots decide in
    1.0: a job takes a "row", several "rows", or "none", for a slot has no node.
    """
    if mode == "superpods":
        return draw(tied_superpods())
    m = draw(st.sampled_from([2, 3, 4]))
    n_leaves = draw(st.integers(2, 4 if m < 4 else 3))
    uneven = draw(st.booleans())
    fit = draw(st.sampled_from([m, m, m - 1, m - 1, max(1, m - 2)]))
    if slots_of:  # no leaf is complete, so that slots decide
        m, n_leaves, fit, uneven = 3, 4, 2, False
    if slots_of == "row":
        m, n_leaves = 4, 3
    spots: list[Spot] = []
    for number in range(n_leaves):
        size = draw(st.integers(fit, m)) if uneven else m
        slots = sorted(draw(st.permutations(range(m)))[:size])
        fitting = fit if not uneven or draw(st.booleans()) else size
        open_ = draw(st.permutations(slots))[:fitting]
        if slots_of == "none":
            open_ = slots[:fitting]
        for slot in slots:
            node = OracleNode(f"n{number}{slot}", A2, 8, EVERY)
            node = draw(more_or_less_worth(node)) if slot in open_ else taken(node)
            spots.append(Spot(node, f"L{number}", slot))
    world = World(tuple(spots), mode=mode, given_m=m, choice=draw(CHOICE))
    world = replace(world, budget=draw(st.sampled_from([1, 2])))
    if mode == "2.0" or draw(st.sampled_from([False, False, True])):
        world = draw(notes(world))
    room = sum(bool(spot.node.free) for spot in spots)
    across = st.integers(min(m, room), room)
    sizes = st.one_of(st.integers(1, m), across, across)
    replicas = 3 if slots_of == "row" else draw(across if slots_of else sizes)
    pod = OracleJob(A2, draw(st.sampled_from([1, 2])), replicas)
    label = LABELS[1] if slots_of else draw(LABEL)
    return Case(world, (NetJob("job", pod, label),))


@st.composite
def sharing_cases(draw: st.DrawFn) -> Case:
    """1.0: ties for a common job, where common jobs share the leaves that they cross.

    Some leaves are crossed by another common job, some by a foundation job.
    """
    case = draw(tied_cases("1.0"))
    by = st.sampled_from([(), LABELS[1:2], LABELS[1:2], LABELS[:1]])
    known = {leaf: Note(crossed_by=draw(by)) for leaf in case.world.leaves}
    shares = draw(st.sampled_from([True, True, False]))
    world = replace(case.world, share_common=shares, notes=known)
    room = sum(bool(spot.node.free) for spot in world.spots)
    pod = replace(case.jobs[0].pod, replicas=draw(st.integers(2, max(2, room))))
    return Case(world, (NetJob("job", pod, LABELS[1]),))


@st.composite
def beyond_cases(draw: st.DrawFn) -> Case:
    """2.0: ties for a common job that needs more than idle and shared leaves have."""
    case = draw(tied_cases("2.0"))
    states, well = st.sampled_from([0, 1, 1, 2]), st.sampled_from([True, True, False])
    known = {
        leaf: Note(draw(states), draw(well), draw(st.sampled_from([(), LABELS[1:2]])))
        for leaf in case.world.leaves
    }
    world, (job,) = replace(case.world, notes=known), case.jobs
    room = sum(bool(spot.node.free) for spot in world.spots)
    enough = max(edge_sizes(world, job)) + 1  # one more than the rule allows for
    pod = replace(job.pod, replicas=draw(st.integers(min(enough, room), room)))
    return Case(world, (NetJob("job", pod, LABELS[1]),))


@st.composite
def remainder_cases(draw: st.DrawFn) -> Case:
    """1.0: what is left of a job fits as well under leaves that are complete or not."""
    m = draw(st.sampled_from([3, 4]))
    fit = draw(st.integers(1, m - 1))
    free = draw(st.permutations([m, fit, fit, fit][: 4 if m == 3 else 3]))
    ills = draw(ILLS)
    spots: list[Spot] = []
    for number, count in enumerate(free):
        size = draw(st.integers(count, m))
        for slot in range(size):
            node = OracleNode(f"n{number}{slot}", A2, 8, EVERY)
            worth = more_or_less_worth(node, ills)
            node = draw(worth) if slot < count else taken(node)
            spots.append(Spot(node, f"L{number}", slot))
    replicas = draw(st.integers(m + 1, m + fit))
    pod = OracleJob(A2, draw(st.sampled_from([1, 2])), replicas)
    choice = draw(CHOICE)
    return Case(World(tuple(spots), choice=choice), (NetJob("job", pod, draw(LABEL)),))


def taken(node: OracleNode) -> OracleNode:
    return replace(node, free=frozenset())


@st.composite
def more_or_less_worth(draw: st.DrawFn, node: OracleNode, ills: int = 2) -> OracleNode:
    """The node fresh, used, with a faulty chip or sub-healthy; a small pod fits it.

    *ills*: how many of the last two it may be.
    """
    last = node.chips - 1
    kinds = ["fresh", "used", "used", "faulty", "sub"]
    match draw(st.sampled_from(kinds[: 3 + ills])):
        case "used":
            return replace(node, free=frozenset(range(draw(st.integers(2, last)))))
        case "sub":
            return replace(node, sub_healthy=True)
        case "faulty":
            few = draw(st.sampled_from([{last}, {last}, {last - 1, last}]))
            return replace(node, faulty=frozenset(few))
    return node


@st.composite
def tied_superpods(draw: st.DrawFn) -> Case:
    """SuperPoDs with nodes that differ in worth.

    Pods of a job of several take whole nodes, so that only sub-health tells nodes
    apart; a single pod may ask for a part of one.
    """
    m = draw(st.sampled_from([2, 3, 4, 6]))
    single = draw(st.sampled_from([False, False, True]))
    ills = draw(ILLS)
    holes = draw(st.sampled_from([0, 0, 1, 2]))
    spots: list[Spot] = []
    for number in range(draw(st.integers(2, {4: 3, 6: 2}.get(m, 4)))):
        gone = draw(st.sets(st.integers(0, m - 1), min_size=holes, max_size=holes))
        for place in range(m):
            name = f"n{number}{place}"
            node = OracleNode(name, A3, 16, frozenset(range(16)), superpod=number)
            if place in gone and holes < m:
                node = taken(node)
            elif single:
                node = draw(more_or_less_worth(node, ills))
            elif draw(st.sampled_from([False, False, True])):
                node = replace(node, sub_healthy=True)
            spots.append(Spot(node))
    reserve = draw(st.sampled_from([0, 0, 1]))
    world = World(tuple(spots), mode="superpods", reserve=reserve)
    if single:
        pod = OracleJob(A3, draw(st.sampled_from([1, 1, 2, 2, 4])), 1)
        return Case(world, (NetJob("job", pod),))
    block = draw(st.integers(1, m))
    blocks = draw(st.integers(1, max(1, len(spots) // block - 1)))
    job = NetJob("job", OracleJob(A3, 16, block * blocks), block=16 * block)
    job = replace(job, soft=draw(st.booleans()))
    return Case(world, (replace(job, block=None) if job.replicas == 1 else job,))


# SuperPoDs


@st.composite
def superpod_nodes(draw: st.DrawFn, name: str, superpod: int) -> OracleNode:
    plain = OracleNode(name, A3, 16, frozenset(range(16)), superpod=superpod)
    if draw(st.sampled_from([True, True, False])):
        return plain
    if draw(st.sampled_from([False] * 6 + [True])):
        return replace(plain, superpod=None)
    return draw(worn(plain))


@st.composite
def superpod_jobs(draw: st.DrawFn, name: str, room: int) -> NetJob:
    """Blocks of one to four nodes; now and then one pod of a part of a node."""
    if draw(st.sampled_from([False, False, False, False, True])):
        chips = draw(st.sampled_from([1, 1, 2, 4, 8, 16]))
        return NetJob(name, OracleJob(A3, chips, 1))
    block = draw(st.integers(1, 4))
    blocks = draw(st.integers(1, max(1, min(6, room // block))))
    job = NetJob(name, OracleJob(A3, 16, block * blocks), block=16 * block)
    if blocks == 1 and draw(st.booleans()):
        job = replace(job, block=None)
    return replace(job, soft=draw(st.sampled_from([False, True, True])))


@st.composite
def superpod_cases(draw: st.DrawFn, max_jobs: int = 4, max_size: int = 9) -> Case:
    sizes = draw(st.lists(st.integers(1, max_size), min_size=1, max_size=4))
    where = [number for number, size in enumerate(sizes) for _ in range(size)]
    names = [f"n{i:02}" for i in range(len(where))]
    if draw(st.booleans()):
        names = draw(st.permutations(names))
    spots = tuple(
        Spot(draw(superpod_nodes(name, superpod)))
        for name, superpod in zip(names, where, strict=True)
    )
    reserve = draw(st.sampled_from([0, 1, 2, 2, 3]))
    jobs = tuple(
        draw(superpod_jobs(f"job-{i}", len(spots)))
        for i in range(draw(st.integers(1, max_jobs)))
    )
    world = World(spots, mode="superpods", reserve=reserve)
    return Case(world, jobs, draw(endings(len(jobs))))


@st.composite
def fragment_cases(draw: st.DrawFn) -> Case:
    """A soft job takes almost every node, so that few of its blocks stay whole."""
    sizes = draw(st.lists(st.integers(2, 5), min_size=2, max_size=4))
    spots = tuple(
        Spot(OracleNode(f"n{s}{i}", A3, 16, frozenset(range(16)), superpod=s))
        for s, size in enumerate(sizes)
        for i in range(size)
    )
    block = draw(st.integers(2, 4))
    blocks = max(1, len(spots) // block - draw(st.sampled_from([0, 0, 1])))
    pod = OracleJob(A3, 16, block * blocks)
    job = NetJob("job-0", pod, block=16 * block, soft=True)
    world = World(spots, mode="superpods", reserve=draw(st.integers(0, 2)))
    return Case(world, (job, draw(superpod_jobs("job-1", len(spots)))))
