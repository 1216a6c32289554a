"""What must hold after every fault: which pods stay, which move, and where to."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ringleaf.model.decision import Decision, Placed, Waiting
from ringleaf.policies import repair_leaves
from ringleaf.simulator.scenario import build
from ringleaf.simulator.wanted import read_entry
from tests.effort import assert_reached, examples
from tests.network_oracle import (
    EXCLUSIVE,
    IDLE,
    LEGAL,
    SHARED,
    NetJob,
    Pod,
    Spot,
    World,
    cost,
    crossers,
    crossing_kinds,
    exists_legal,
    fits,
    leaf_states,
    legal_sets,
    position_load,
    shape_of,
    superpod_nodes,
    with_pods,
)
from tests.oracle import OracleJob, OracleNode, choose
from tests.properties.equal_choices import equal_fills, equal_repairs
from tests.properties.network_cases import (
    A2,
    EVERY,
    LABEL,
    LABELS,
    Case,
    document,
    leaf_cases,
    placement,
    scattered_cases,
    superpod_cases,
    tied_cases,
)
from tests.properties.play import play, pods_of

MODES = ("1.0", "2.0", "single", "superpods")


@dataclass(frozen=True)
class Fault:
    """A job that ran, what broke, and which other jobs are there by now.

    `world` is without the job and after the fault; `pods` is where the job was.
    """

    world: World
    job: NetJob
    pods: tuple[Pod, ...]
    blocks: tuple[int | None, ...]
    failed: tuple[str, ...]
    keep: str

    def is_healthy(self, pod: Pod) -> bool:
        """Whether a pod may stay: node and chips are well and free."""
        node = self.world.spot(pod.node).node
        bad = node.faulty | (node.network_faulty if self.heeds else frozenset())
        ok = node.ready and pod.node not in self.failed and not bad & set(pod.chips)
        return ok and node.free >= set(pod.chips)

    @property
    def heeds(self) -> bool:
        """Whether the network of its chips matters to the job."""
        if self.world.mode == "superpods":
            return shape_of(self.job).blocks > 1
        return self.job.replicas > 1

    @property
    def staying(self) -> list[Pod]:
        return [pod for pod in self.pods if self.is_healthy(pod)]

    def spots(self, pods: Sequence[Pod]) -> list[Spot]:
        return [self.world.spot(pod.node) for pod in pods]

    @property
    def room(self) -> World:
        """What is left beside the pods that stay."""
        return with_pods(self.world, self.staying)

    def decide(self) -> Decision:
        entry = document(Case(self.world, (self.job,)))
        entry["jobs"][0]["previous"] = {
            "placements": [
                _placement(pod, block)
                for pod, block in zip(self.pods, self.blocks, strict=True)
            ],
            "failed-nodes": list(self.failed),
            "keep": self.keep,
        }
        opened = build(read_entry(entry))
        return opened.open().decide(opened.jobs[0])


def _placement(pod: Pod, block: int | None) -> dict[str, Any]:
    written = placement(pod)
    if block is not None:
        written.setdefault("annotations", {})["super-pod-rank"] = str(block)
    return written


@st.composite
def idle_leaf_cases(draw: st.DrawFn, *, fills: bool) -> Case:
    """Single layer: the first job fills its leaf, or leaves room there for a repair.

    A job that fills its leaf moves to another; one that does not may stay.
    """
    m, n_leaves = draw(st.sampled_from([(3, 3), (4, 3), (5, 2), (6, 2)]))
    spots = tuple(
        Spot(OracleNode(f"n{leaf}{slot}", A2, 8, EVERY), f"L{leaf}", slot)
        for leaf in range(n_leaves)
        for slot in range(m)
    )
    others = st.lists(st.integers(1, m), max_size=n_leaves - 2)
    sizes = [m if fills else max(2, m - 2), *draw(others)]
    jobs = [
        NetJob(f"job-{i}", OracleJob(A2, 8, size), draw(st.sampled_from(LABELS[:2])))
        for i, size in enumerate(sizes)
    ]
    return Case(World(spots, mode="single"), tuple(jobs))


def kinds_of(mode: str) -> list[st.SearchStrategy[Case]]:
    """The kinds of cases that there are for a network."""
    if mode == "superpods":
        return [superpod_cases(max_jobs=4), superpod_cases(max_jobs=2)]
    leaves = leaf_cases(mode, max_jobs=4, max_nodes=12, labelled=True)
    if mode == "single":
        return [leaves, idle_leaf_cases(fills=True), idle_leaf_cases(fills=False)]
    return [leaves, scattered_cases(mode)]


@st.composite
def faults(draw: st.DrawFn, cases: st.SearchStrategy[Case]) -> Fault:
    """Place jobs by the rules, break nodes of the first, let others come meanwhile."""
    case = draw(cases)
    game = play(case)
    queue = list(case.jobs)
    placed = None
    while queue and placed is None:
        job = queue.pop(0)
        decision = game.decide(job)
        if isinstance(decision, Placed) and job.replicas > 1:
            placed = decision
    assume(placed is not None)
    assert placed is not None
    pods = pods_of(job, placed)
    for other in queue[:1]:
        game.decide(other)
    n_bad = min(len(pods), draw(st.sampled_from([1, 1, 1, 2, 3, 8])))
    used = st.sampled_from([pod.node for pod in pods])
    names = draw(st.lists(used, min_size=n_bad, max_size=n_bad, unique=True))
    failed, world = [], without_notes_of(case.world, pods)
    away: set[str] = set()
    broken: dict[str, frozenset[int]] = {}
    for name in names:
        how = draw(st.sampled_from(["failed", "failed", "chips", "away"]))
        if how == "failed":
            failed.append(name)
        elif how == "away":
            away.add(name)
        else:
            chips = next(pod.chips for pod in pods if pod.node == name)
            broken[name] = frozenset(draw(st.sets(st.sampled_from(chips), min_size=1)))
    spots = tuple(
        replace(s, node=replace(s.node, faulty=s.node.faulty | broken[s.name]))
        if s.name in broken
        else s
        for s in world.spots
    )
    world = without_failed(replace(world, spots=spots), sorted(away))
    tenants = {pod.job.name for pod in case.world.pods} | {job.name}
    others = [pod for pod in game.world.pods if pod.job.name not in tenants]
    world = with_pods(world, others)
    fault = Fault(
        world,
        job,
        tuple(pods),
        tuple(p.block for p in placed.placements),
        tuple(failed),
        draw(st.sampled_from(["pods", "job"])),
    )
    return draw(meanwhile(fault, queue[1:]))


def without_notes_of(world: World, pods: Sequence[Pod]) -> World:
    """The world without notes of leaves that the job uses itself."""
    own = {world.spot(pod.node).leaf for pod in pods}
    notes = {leaf: note for leaf, note in world.notes.items() if leaf not in own}
    return replace(world, notes=notes)


@st.composite
def meanwhile(draw: st.DrawFn, fault: Fault, late: Sequence[NetJob]) -> Fault:
    """Others may come before the job is repaired; they see only the pods that run."""
    if not late or draw(st.booleans()):
        return fault
    running = fault.staying if fault.keep == "pods" else []
    world = with_pods(fault.world, running)
    game = play(Case(world, tuple(late)))
    came: list[Pod] = []
    for job in late:
        decision = game.decide(job)
        if isinstance(decision, Placed):
            came += pods_of(job, decision)
    return replace(fault, world=with_pods(fault.world, came))


def blocks_of(fault: Fault) -> dict[int, list[Pod]]:
    """Block -> its pods before the fault."""
    found: dict[int, list[Pod]] = {}
    for pod, block in zip(fault.pods, fault.blocks, strict=True):
        assert block is not None
        found.setdefault(block, []).append(pod)
    return found


def can_stay_whole(fault: Fault) -> bool:
    """Whether some legal answer leaves every pod that may stay where it is."""
    if fault.world.mode == "superpods":
        return can_fill_up(fault)
    fixed = fault.spots(fault.staying)
    sets = legal_sets(fault.world, fault.job, fixed, fault.failed)
    return any(
        keeps_its_states(fault, spots) and spares_foundation(fault, spots)
        for spots in sets
    )


def keeps_its_states(fault: Fault, spots: Sequence[Spot]) -> bool:
    """2.0: what the pods that stay say of their leaves remains true.

    Pods that say 0 stay under their one leaf, and a leaf they call shared counts
    towards the budget, though no other job may be there.
    """
    staying = fault.staying
    if fault.world.mode != "2.0" or not staying:
        return True
    if all(pod.state == IDLE for pod in staying):
        return len({spot.leaf for spot in spots}) == 1
    shared = {fault.world.spot(p.node).leaf for p in staying if p.state == SHARED}
    states = leaf_states(fault.world)
    shared |= {s.leaf for s in spots if s.leaf and states[s.leaf][0] == SHARED}
    return fault.job.kind == "common" or len(shared) <= fault.world.budget


def spares_foundation(fault: Fault, spots: Sequence[Spot]) -> bool:
    """2.0: beyond its budget a common job shares no leaf with a foundation job.

    Leaves that its pods call shared count, even without another job there.
    """
    world = fault.world
    if world.mode != "2.0" or fault.job.kind != "common":
        return True
    said = {world.spot(pod.node).leaf for pod in fault.staying if pod.state == SHARED}
    states = leaf_states(world)
    found = {s.leaf for s in spots if s.leaf and states[s.leaf][0] == SHARED}
    shared = said | found
    beyond = len(shared) > world.budget
    return not beyond or not any(
        "foundation" in crossing_kinds(world, leaf) for leaf in shared if leaf
    )


def without_failed(world: World, failed: Sequence[str]) -> World:
    """The world in which the failed nodes take no pods."""
    spots = tuple(
        replace(s, node=replace(s.node, ready=s.node.ready and s.name not in failed))
        for s in world.spots
    )
    return replace(world, spots=spots)


def can_fill_up(fault: Fault) -> bool:
    """SuperPoDs: blocks that lost some pods in their SuperPoD, the others anywhere."""
    staying = {pod.node for pod in fault.staying}
    usable = without_failed(fault.room, fault.failed)
    free = {s: len(spots) for s, spots in superpod_nodes(usable, fault.job).items()}
    moving: list[int] = []
    for pods in blocks_of(fault).values():
        kept = [pod for pod in pods if pod.node in staying]
        if not kept:
            moving.append(len(pods))
            continue
        home = fault.world.spot(kept[0].node).node.superpod
        assert home is not None
        free[home] = free.get(home, 0) - (len(pods) - len(kept))
        if free[home] < 0:
            return False
    size = shape_of(fault.job).block
    if fault.job.soft:
        return sum(moving) <= sum(free.values())
    return sum(count // size for count in free.values()) >= len(moving)


def is_legal_so_far(fault: Fault) -> bool:
    """Whether the pods that stay break no rule by themselves."""
    staying = fault.spots(fault.staying)
    leaves = {spot.leaf for spot in staying}
    if fault.world.mode == "superpods" or len(leaves) <= 1:
        return True
    common = replace(fault.job, label="normal-schema")
    job = common if fault.world.mode == "1.0" else fault.job
    return LEGAL[fault.world.mode](fault.world, job, staying)


@pytest.mark.parametrize("mode", MODES)
def test_after_a_fault_as_little_moves_as_the_rules_allow(mode: str) -> None:
    """Jobs stay but for faulty pods, move in part or whole, or wait."""
    seen: Counter[str] = Counter()

    def check(fault: Fault) -> None:
        decision = fault.decide()
        seen[outcome(fault, decision)] += 1
        if isinstance(decision, Placed):
            check_moved_pods(fault, decision)
            if is_legal_so_far(fault):
                check_rules(fault, decision)
        else:
            assert isinstance(decision, Waiting)
            check_nothing_was_left(fault)

    bounds = settings(
        max_examples=examples(100), suppress_health_check=list(HealthCheck)
    )
    for cases in kinds_of(mode):
        bounds(given(faults(cases))(check))()
    assert_reached(seen, "pods all stayed", "job all stayed", "pods Waiting")
    if mode == "single":  # the rule is one leaf, so a job often moves whole
        assert_reached(seen, "job some moved", times=3)


def test_d43_a_repair_stays_at_home_while_an_equally_even_node_is_free_there() -> None:
    """1.0: no replacement stands under a leaf that is new to the job without need.

    Every repair is checked, under leaves of one size or of several, with either choice
    of leaves. Half of the examples are repairs: a long run tries more than 2,000. Where
    leaves differ in size, the least used slots alone would lead some of them away.
    """
    seen: Counter[str] = Counter()

    def check(fault: Fault) -> None:
        decision = fault.decide()
        result = outcome(fault, decision)
        if not isinstance(decision, Placed) or not result.endswith("all stayed"):
            return
        after = [fault.world.spot(p.node) for p in decision.placements]
        home = {spot.leaf for spot in fault.spots(fault.staying)}
        held, used = {pod.node for pod in fault.staying}, {s.name for s in after}
        new = [spot for spot in after if spot.name not in held]
        if not new:
            return
        abroad = [spot for spot in new if spot.leaf not in home]
        unused = [
            spot
            for spot in without_failed(fault.room, fault.failed).spots
            if spot.leaf in home and spot.name not in used and fits(spot, fault.job)
        ]
        uneven = differs_in_size(fault.world) and fault.world.choice == "compact"
        where = "uneven leaves" if uneven else "even leaves"
        seen["repairs"] += 1
        seen[f"{where}: {'leaves' if abroad else 'stays at'} home"] += 1
        seen[f"{where}: a choice"] += bool(abroad and unused)
        seen[f"{where}: brought home"] += uneven and decision != by_slots_alone(fault)
        for gone in abroad:
            for instead in unused:
                other = [spot for spot in after if spot != gone] + [instead]
                assert not is_as_even(fault.world, other, after), (gone, instead)

    kinds = (
        (4600, faults(st.one_of(kinds_of("1.0")))),
        (1000, faults(uneven_cases())),
        (2400, uneven_faults()),
    )
    for n_examples, drawn in kinds:
        bounds = settings(
            max_examples=examples(n_examples), suppress_health_check=list(HealthCheck)
        )
        bounds(given(drawn)(check))()
    for where in ("even leaves", "uneven leaves"):
        reached = [f"{where}: {what}" for what in ("stays at home", "leaves home")]
        assert_reached(seen, *reached, times=10)
        assert_reached(seen, f"{where}: a choice", times=3)
    assert_reached(seen, "uneven leaves: brought home", times=3)
    assert_reached(seen, "repairs", times=examples(2000))


def by_slots_alone(fault: Fault) -> Decision:
    """The decision where no replacement is brought home from the least used slot."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repair_leaves, "brought_home", lambda _table, _stay, at, *_: at)
        return fault.decide()


@pytest.mark.parametrize("mode", MODES)
def test_d35_no_replacement_that_the_rule_calls_equal_is_better(mode: str) -> None:
    """By brute force: no other nodes for the pods that move are healthier."""
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(1600), suppress_health_check=list(HealthCheck))
    @given(freed(faults(tied_cases(mode))))
    def check(fault: Fault) -> None:
        decision = fault.decide()
        result = outcome(fault, decision)
        if not isinstance(decision, Placed) or not result.endswith("all stayed"):
            return
        held = {pod.node for pod in fault.staying}
        places = [p for p in decision.placements if p.node not in held]
        if not places:
            return
        barred = {*held, *fault.failed}
        spots = tuple(
            s if s.name not in barred else without(s) for s in fault.world.spots
        )
        world, job = replace(fault.world, spots=spots), fault.job
        new = [world.spot(p.node) for p in places]
        filled: dict[int, int] = {}
        if mode == "superpods":
            filled = filled_by(fault)
            equal = equal_fills(world, job, filled, new)
        else:
            stay = zip(fault.spots(fault.staying), fault.staying, strict=True)
            said = {spot: pod.state for spot, pod in stay}
            equal = equal_repairs(world, job, said, new)
        costs = {cost(spots, job) for spots in equal}
        assert cost(new, job) <= min(costs, default=cost(new, job))
        seen["a choice"] += len(costs) > 1
        seen["several move"] += len(costs) > 1 and len(new) > 1
        own = sum(filled.values()) == len(new)
        seen["a block in its SuperPoD"] += len(costs) > 1 and own
        home = {spot.leaf for spot in fault.spots(fault.staying)}
        seen["a choice abroad"] += len(costs) > 1 and not home & {s.leaf for s in new}

    check()
    assert_reached(seen, "a choice", times=10)
    if mode != "single":
        assert_reached(seen, "several move", times=3)
    if mode in {"1.0", "2.0"}:
        assert_reached(seen, "a choice abroad", times=5)
    if mode == "superpods":
        assert_reached(seen, "a block in its SuperPoD", times=3)


@st.composite
def freed(draw: st.DrawFn, cases: st.SearchStrategy[Fault]) -> Fault:
    """Other jobs have ended since: some nodes that were taken are free."""
    fault = draw(cases)
    held = {pod.node for pod in (*fault.pods, *fault.world.pods)}
    spots = list(fault.world.spots)
    for number, spot in enumerate(spots):
        if not spot.node.free and spot.name not in held and draw(st.booleans()):
            node = replace(spot.node, free=frozenset(range(spot.node.chips)))
            node = replace(node, sub_healthy=draw(st.booleans()))
            spots[number] = replace(spot, node=node)
    return replace(fault, world=replace(fault.world, spots=tuple(spots)))


def without(spot: Spot) -> Spot:
    """The node with nothing free."""
    return replace(spot, node=replace(spot.node, free=frozenset()))


def filled_by(fault: Fault) -> dict[int, int]:
    """SuperPoD -> the pods that blocks lost of which others stay there."""
    staying, filled = {pod.node for pod in fault.staying}, Counter[int]()
    for pods in blocks_of(fault).values():
        kept = [pod for pod in pods if pod.node in staying]
        if kept:
            home = fault.world.spot(kept[0].node).node.superpod
            assert home is not None
            filled[home] += len(pods) - len(kept)
    return dict(filled)


@st.composite
def uneven_cases(draw: st.DrawFn) -> Case:
    """1.0, `compact`: leaves of different sizes, and jobs that cross them."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=3, max_size=5))
    assume(len({*sizes}) > 1)
    spots: list[Spot] = []
    for leaf, size in enumerate(sizes):
        slots = list(range(size))
        if draw(st.booleans()):
            slots = sorted(draw(st.permutations(range(max(sizes))))[:size])
        for slot in slots:
            taken = draw(st.sampled_from([False] * 4 + [True]))
            free = frozenset[int]() if taken else EVERY
            spots.append(
                Spot(OracleNode(f"n{leaf}{slot}", A2, 8, free), f"L{leaf}", slot)
            )
    most = max(2, sum(bool(spot.node.free) for spot in spots))
    replicas = draw(st.integers(min(max(sizes) + 1, most), most))
    chips = draw(st.sampled_from([8, 8, 2]))
    first = NetJob("job-0", OracleJob(A2, chips, replicas), draw(LABEL))
    others = [
        NetJob(f"job-{i}", OracleJob(A2, 8, draw(st.integers(1, 4))), draw(LABEL))
        for i in range(1, draw(st.integers(1, 3)))
    ]
    return Case(World(tuple(spots)), (first, *others))


@st.composite
def uneven_faults(draw: st.DrawFn) -> Fault:
    """1.0, `compact`: a job across leaves of different sizes, evenly over the slots.

    At a slot it holds one or two nodes, or all that its leaves have there, but for none
    or one, or one or two. Other jobs have ended since: some other nodes are free.
    """
    sizes = draw(st.lists(st.integers(1, 6), min_size=4, max_size=7))
    assume(len({*sizes}) > 1)
    n_home, m = draw(st.integers(2, len(sizes) - 1)), max(sizes)
    where = [
        (leaf, slot)
        for leaf, size in enumerate(sizes)
        for slot in sorted(draw(st.permutations(range(m)))[:size])
    ]
    home = draw(st.permutations([at for at in where if at[0] < n_home]))
    fewest, has_so_many = draw(st.sampled_from([(1, True), (0, False), (1, False)]))
    level = [fewest + draw(st.integers(0, 1)) for _slot in range(m)]
    used: set[tuple[int, int]] = set()
    for at in home:
        if (level[at[1]] > 0) == has_so_many:
            used.add(at)
        level[at[1]] -= 1
    free = st.sampled_from([True, True, False])
    spots = [
        Spot(
            OracleNode(
                f"n{leaf}{slot}",
                A2,
                8,
                EVERY if (leaf, slot) in used or draw(free) else frozenset(),
            ),
            f"L{leaf}",
            slot,
        )
        for leaf, slot in where
    ]
    world = World(tuple(spots))
    names = [f"n{leaf}{slot}" for leaf, slot in where if (leaf, slot) in used]
    assume(len({world.spot(name).leaf for name in names}) > 1)
    job = NetJob("job", OracleJob(A2, 8, len(names)), draw(LABEL))
    chips = tuple(sorted(EVERY))
    pods = tuple(Pod(job, i, name, chips, EXCLUSIVE) for i, name in enumerate(names))
    bad = st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)
    failed, keep = tuple(draw(bad)), draw(st.sampled_from(["pods", "job"]))
    return Fault(world, job, pods, (None,) * len(pods), failed, keep)


def is_as_even(world: World, one: Sequence[Spot], other: Sequence[Spot]) -> bool:
    """Whether *one* loads the slots as evenly as *other* (D29, D36).

    Two placements within one are equally even: under leaves of different sizes a slot
    counts by the leaves of the job that have it. Beyond that, equal loads are.
    """
    if is_within_one(world, one):
        return True
    loads = [sorted(position_load(world, spots)) for spots in (one, other)]
    return loads[0] == loads[1] and not is_within_one(world, other)


def is_within_one(world: World, spots: Sequence[Spot]) -> bool:
    """Whether no two slots differ by more than one in their load, or in what they lack.

    What a slot lacks is the number of the job's leaves that have it, less its load.
    """
    load = Counter(spot.slot for spot in spots)
    leaves = {spot.leaf for spot in spots}
    have = Counter(spot.slot for spot in world.spots if spot.leaf in leaves)
    readings = [[load[slot] for slot in range(world.m)]]
    if world.choice == "compact":
        readings.append([have[slot] - load[slot] for slot in have])
    return any(max(values) - min(values) <= 1 for values in readings)


def differs_in_size(world: World) -> bool:
    return len({len(world.own(leaf)) for leaf in world.leaves}) > 1


def outcome(fault: Fault, decision: Decision) -> str:
    """What a job keeps, and whether all pods that may stay do."""
    if not isinstance(decision, Placed):
        return f"{fault.keep} {type(decision).__name__}"
    after = {p.replica: p.node for p in decision.placements}
    stayed = all(after[pod.replica] == pod.node for pod in fault.staying)
    if not fault.staying:
        return f"{fault.keep} none may stay"
    return f"{fault.keep} {'all stayed' if stayed else 'some moved'}"


def check_moved_pods(fault: Fault, placed: Placed) -> None:
    """Healthy pods stay, unless every answer with all of them in place is illegal.

    Nothing goes to a failed node, and no two pods to one.
    """
    after = {p.replica: (p.node, p.chips) for p in placed.placements}
    nodes = {node for node, _ in after.values()}
    assert sorted(after) == list(range(fault.job.replicas))
    assert len(nodes) == fault.job.replicas
    assert not nodes & set(fault.failed)
    stay = {pod.replica: (pod.node, pod.chips) for pod in fault.staying}
    moved = [replica for replica, was in stay.items() if after[replica] != was]
    if fault.keep == "pods":
        assert not moved
        check_annotations(fault, placed)
    elif moved and is_legal_so_far(fault):
        assert not can_stay_whole(fault)
    for replica, (name, chips) in after.items():
        if stay.get(replica) != (name, chips):
            check_chips(fault, name, chips)


def check_annotations(fault: Fault, placed: Placed) -> None:
    """2.0: pods that run go on saying of their leaves what their Bindings said."""
    if fault.world.mode != "2.0":
        return
    said = {pod.replica: (pod.state, pod.healthy) for pod in fault.staying}
    for place in placed.placements:
        if place.replica in said:
            assert place.mark is not None
            now = int(place.mark.state), place.mark.healthy
            assert now == said[place.replica]


def check_chips(fault: Fault, name: str, chips: tuple[int, ...]) -> None:
    """A pod that moved has the chips that any pod would get on its node."""
    node = fault.world.spot(name).node
    if fault.world.mode == "superpods" and fault.heeds:
        node = replace(node, free=node.free - node.network_faulty)
    choice = choose(node, fault.job.pod)
    assert choice is not None
    assert choice[1] == chips


def check_rules(fault: Fault, placed: Placed) -> None:
    """The job as a whole obeys the rule under which it was placed."""
    mode = fault.world.mode
    spots = [fault.world.spot(p.node) for p in placed.placements]
    assert LEGAL[mode](fault.world, fault.job, spots)
    if mode == "superpods":
        homes: dict[int | None, list[int | None]] = {}
        for p, spot in zip(placed.placements, spots, strict=True):
            homes.setdefault(p.block, []).append(spot.node.superpod)
        assert all(len(set(home)) == 1 for home in homes.values())
        assert max(map(len, homes.values())) <= shape_of(fault.job).block
    elif fault.keep == "job" and len({spot.leaf for spot in spots}) == 1:
        marks = [p.mark for p in placed.placements if p.mark is not None]
        assert {(int(m.state), m.healthy) for m in marks} == {(IDLE, True)}


def check_nothing_was_left(fault: Fault) -> None:
    """A job waits only if no legal answer keeps what runs, or none exists at all."""
    if is_legal_so_far(fault):
        assert not can_stay_whole(fault)
    if fault.keep == "job":
        anew = without_failed(fault.world, fault.failed)
        assert shut_out(anew, fault.job) or not exists_legal(anew, fault.job)


def shut_out(world: World, job: NetJob) -> bool:
    """2.0, `guide`: a job of M pods is not offered one busy leaf."""
    guided = world.mode == "2.0" and world.choice == "guide"
    return guided and job.replicas == world.m


# What stays of the exceptions, and why it must


def placed_beside(world: World, job: NetJob) -> World:
    """The world after *job* was placed in it."""
    game = play(Case(world, (job,)))
    assert isinstance(game.decide(job), Placed)
    return game.world


def a_world(leaves: dict[str, int], pods: Sequence[Pod], budget: int) -> World:
    """2.0: leaves of free nodes, and pods that run there."""
    spots = tuple(
        Spot(OracleNode(f"{leaf.lower()}{slot}", A2, 8, EVERY), leaf, slot)
        for leaf, size in leaves.items()
        for slot in range(size)
    )
    return with_pods(World(spots, mode="2.0", given_m=4, budget=budget), pods)


def test_a_leaf_that_pods_call_shared_counts_because_others_may_come_to_it() -> None:
    """2.0: the repair that is refused would let a job share more than it may.

    A job under A (exclusive) and B (shared, with no other job there) has a budget of
    one. Had it moved a pod to C, which another job shares, the next job would come to B
    by the rules, and the first would share two leaves.
    """
    pod = OracleJob(A2, 8, 4)
    train = NetJob("train", pod, "large-model-schema")
    other = NetJob("other", pod, "large-model-schema")
    chips = tuple(range(8))
    repaired = [
        Pod(train, 0, "a0", chips, EXCLUSIVE),
        Pod(train, 1, "a1", chips, EXCLUSIVE),
        Pod(train, 2, "b0", chips, SHARED),
        Pod(train, 3, "c0", chips, SHARED),
        Pod(other, 0, "c1", chips, SHARED),
        Pod(other, 1, "d0", chips, EXCLUSIVE),
    ]
    world = a_world({"A": 2, "B": 2, "C": 2, "D": 1, "E": 3}, repaired, budget=1)
    late = NetJob("late", pod, "large-model-schema")

    after = placed_beside(world, late)

    shared = [
        leaf
        for leaf in after.leaves
        if len({j.name for j in crossers(after, leaf)}) > 1
    ]
    assert {"B", "C"} <= {leaf for leaf in shared if "train" in _names(after, leaf)}


def test_pods_that_say_0_stay_because_others_believe_them() -> None:
    """2.0: the repair that is refused would let two jobs cross one leaf.

    A job inside leaf A says 0 there. Had it moved a pod to B, its pod under A would
    still say that no job crosses A, and the next job would take A for itself.
    """
    train = NetJob("train", OracleJob(A2, 8, 2), "normal-schema")
    chips = tuple(range(8))
    repaired = [Pod(train, 0, "a0", chips, IDLE), Pod(train, 1, "b0", chips, EXCLUSIVE)]
    world = a_world({"A": 4, "B": 1, "C": 3}, repaired, budget=2)
    late = NetJob("late", OracleJob(A2, 8, 6), "large-model-schema")

    after = placed_beside(world, late)

    assert _names(after, "A") == {"train", "late"}


def test_a_replacement_cannot_speak_for_pods_that_say_0() -> None:
    """2.0: the same where one replacement finds room under the job's own leaf.

    While a1 runs, it keeps the next job away from A. When it fails too, the other pods
    of its leaf are asked again, and they say 0.
    """
    train = NetJob("train", OracleJob(A2, 8, 3), "normal-schema")
    chips = tuple(range(8))
    stays = [Pod(train, 0, "a0", chips, IDLE), Pod(train, 1, "b0", chips, EXCLUSIVE)]
    replaced = Pod(train, 2, "a1", chips, EXCLUSIVE)
    late = NetJob("late", OracleJob(A2, 8, 5), "large-model-schema")
    sizes = {"A": 4, "B": 1, "C": 3}

    before = play(Case(a_world(sizes, [*stays, replaced], budget=2), (late,)))
    waits = before.decide(late)
    after = placed_beside(a_world(sizes, stays, budget=2), late)

    assert isinstance(waits, Waiting)
    assert _names(after, "A") == {"train", "late"}


def _names(world: World, leaf: str) -> set[str]:
    return {job.name for job in crossers(world, leaf)}
