"""What must hold for every network and every job, against the oracle."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as replace_struct

from ringleaf.framework.statement import Statement
from ringleaf.model.decision import Decision, Placed, Waiting
from ringleaf.model.job_labels import Schema
from ringleaf.simulator.answer import answer
from ringleaf.simulator.scenario import build
from ringleaf.simulator.wanted import read_entry
from tests.effort import assert_reached, examples
from tests.network_oracle import (
    EXCLUSIVE,
    IDLE,
    LEGAL,
    SHARED,
    Cost,
    NetJob,
    Note,
    Spot,
    World,
    cost,
    crossers,
    exists_legal,
    fits,
    in_one_leaf_or_anywhere,
    is_crossed,
    is_even,
    leaf_states,
    over_capacity,
    place_1,
    place_2,
    place_single,
    place_superpods,
    shape_of,
    superpod_nodes,
    way_1,
)
from tests.oracle import OracleJob, OracleNode, choose, legal_choices
from tests.properties.equal_choices import equal_choices
from tests.properties.network_cases import (
    A2,
    A3,
    EVERY,
    Case,
    beyond_cases,
    calm_cases,
    document,
    fragment_cases,
    leaf_cases,
    placement,
    remainder_cases,
    scattered_cases,
    sharing_cases,
    shifted_cases,
    superpod_cases,
    tied_cases,
)
from tests.properties.play import (
    Play,
    arrays,
    play,
    pods_of,
    spine_from_scratch,
    spine_of,
)

cp_model: Any = pytest.importorskip("ortools.sat.python.cp_model")

EXAMPLES = examples(100)
MODES = ("1.0", "2.0", "single")


# The answer is the oracle's


Answer = list[tuple[str, tuple[int, ...], int | None, bool]]


def wanted(world: World, job: NetJob) -> Answer | None:
    """Node, chips, and what is written of the leaf, for every rank."""
    if job.kind is None:
        unlabelled = in_one_leaf_or_anywhere(world, job)
        if unlabelled is None:
            return None
        return [(name, chips, None, True) for name, chips in unlabelled]
    written = place_2(world, job) if world.mode == "2.0" else by_name(world, job)
    if written is None:
        return None
    return [(name, chips_on(world, job, name), *mark) for name, mark in written.items()]


def by_name(world: World, job: NetJob) -> dict[str, tuple[int, bool]] | None:
    """1.0 and single layer: 0 inside one leaf, 2 for a job that crosses (D13)."""
    names = (place_1 if world.mode == "1.0" else place_single)(world, job)
    if names is None:
        return None
    inside = len({world.spot(name).leaf for name in names}) == 1
    return dict.fromkeys(names, (IDLE if inside else EXCLUSIVE, True))


def chips_on(world: World, job: NetJob, name: str) -> tuple[int, ...]:
    choice = choose(world.spot(name).node, job.pod)
    assert choice is not None
    return choice[1]


def found(job: NetJob, decision: Decision) -> Answer | None:
    if not isinstance(decision, Placed):
        return None
    pods = pods_of(job, decision)
    return [(pod.node, pod.chips, pod.state, pod.healthy) for pod in pods]


def kinds_of(mode: str) -> Iterator[tuple[int, st.SearchStrategy[Case]]]:
    """The kinds of cases that there are under leaves, and how many of them."""
    yield 320, leaf_cases(mode)
    yield 80 if mode == "single" else 200, scattered_cases(mode)
    yield 120, calm_cases(mode)
    if mode == "1.0":
        yield 80, shifted_cases()


@pytest.mark.parametrize("mode", MODES)
def test_the_nodes_under_the_leaves_are_the_oracles(mode: str) -> None:
    """Every step of every rule decides often enough to mean something."""
    seen: Counter[str] = Counter()

    def compare(case: Case) -> None:
        game = play(case)
        for job, ending in case.steps:
            before, expected = game.world, wanted(game.world, job)
            decision = game.decide(job)
            assert found(job, decision) == expected
            assert isinstance(decision, Placed | Waiting)
            seen[type(decision).__name__] += 1
            if isinstance(decision, Placed) and job.kind:
                spots = [before.spot(p.node) for p in decision.placements]
                seen.update(leaf_circumstances(before, job, spots))
            game.end(ending)

    for n_examples, cases in kinds_of(mode):
        settings(max_examples=examples(n_examples))(given(cases)(compare))()
    assert_reached(seen, *REACHED[mode], times=3)
    assert_reached(seen, "Placed", times=50)
    assert_reached(seen, "Waiting", times=20)


def test_the_nodes_in_superpods_are_the_oracles() -> None:
    """Jobs are placed whole, in blocks, in fragments, and into the reserve."""
    seen: Counter[str] = Counter()

    def compare(case: Case) -> None:
        game = play(case)
        for job, ending in case.steps:
            before, expected = game.world, in_superpods(game.world, job)

            decision = game.decide(job)

            assert isinstance(decision, Placed | Waiting)
            got = None
            if isinstance(decision, Placed):
                got = [(p.node, p.block, p.chips) for p in decision.placements]
                seen.update(superpod_circumstances(before, job, decision))
            assert got == expected
            seen[type(decision).__name__] += 1
            game.end(ending)

    for n_examples, cases in ((240, superpod_cases()), (80, fragment_cases())):
        settings(max_examples=examples(n_examples))(given(cases)(compare))()
    assert_reached(seen, *REACHED["superpods"], times=3)
    assert_reached(seen, "Placed", times=50)
    assert_reached(seen, "Waiting", times=20)


REACHED = {
    "1.0": (
        "padding inside",
        "common inside",
        "foundation inside",
        "foundation on whole leaves",
        "foundation on logical leaves",
        "foundation on one logical leaf",
        "common on logical leaves",
        "common anywhere",
        "beside a leaf that is crossed",
        "a part of a node",
    ),
    "2.0": (
        "padding inside",
        "common inside",
        "foundation inside",
        "foundation on idle leaves",
        "foundation on one shared leaf",
        "foundation on two shared leaves",
        "common on two shared leaves",
        "common over its budget",
        "beside an unhealthy leaf",
        "a part of a node",
    ),
    "single": ("padding inside", "common inside", "a part of a node"),
    "superpods": (
        "whole job",
        "hard over several",
        "into the reserve",
        "fragments",
        "one pod",
    ),
}
"""What sorts of placements there are, by the rule of the network."""


def leaf_circumstances(world: World, job: NetJob, spots: list[Spot]) -> list[str]:
    """What sort of placement this is."""
    leaves = {str(spot.leaf) for spot in spots}
    found = ["a part of a node"] * (job.pod.chips < 8)
    states = leaf_states(world)
    if world.mode == "1.0" and any(is_crossed(world, leaf) for leaf in world.leaves):
        found.append("beside a leaf that is crossed")
    if world.mode == "2.0" and not all(well for _, well in states.values()):
        found.append("beside an unhealthy leaf")
    if len(leaves) == 1:
        return [*found, f"{job.kind} inside"]
    if world.mode == "1.0":
        return [*found, f"{job.kind} {crossing_1(world, job, spots)}"]
    busy = [states[leaf] for leaf in leaves if states[leaf] != (IDLE, True)]
    if any(state != (SHARED, True) for state in busy) or len(busy) > world.budget:
        return [*found, f"{job.kind} over its budget"]
    words = ("idle leaves", "one shared leaf", "two shared leaves")[len(busy)]
    return [*found, f"{job.kind} on {words}"]


def crossing_1(world: World, job: NetJob, spots: list[Spot]) -> str:
    under = Counter(spot.leaf for spot in spots)
    if sorted(under.values())[1:] == [world.m] * (len(under) - 1):
        return "on whole leaves"
    if not is_even(world, spots):
        return "anywhere"
    return "on one logical leaf" if job.replicas < world.m else "on logical leaves"


def superpod_circumstances(world: World, job: NetJob, placed: Placed) -> list[str]:
    rooms = {s: len(spots) for s, spots in superpod_nodes(world, job).items()}
    given_ = Counter(world.spot(p.node).node.superpod for p in placed.placements)
    if job.replicas == 1:
        return ["one pod"]
    eaten = any(rooms[s] - given_[s] < world.reserve for s in rooms if given_[s])
    found = ["into the reserve"] * eaten
    if len(given_) == 1 and shape_of(job).blocks > 1:
        found.append("whole job")
    if len(given_) > 1:
        sizes = Counter(p.block for p in placed.placements).values()
        whole = min(sizes) == shape_of(job).block
        found.append("hard over several" if whole else "fragments")
    return found


def in_superpods(
    world: World, job: NetJob
) -> list[tuple[str, int, tuple[int, ...]]] | None:
    """Node, block and chips of every rank."""
    listed = superpod_nodes(world, job).values()
    seen = replace(world, spots=tuple(spot for spots in listed for spot in spots))
    ranks = place_superpods(world, job)
    if ranks is None:
        return None
    return [(name, block, chips_on(seen, job, name)) for name, block in ranks]


@settings(max_examples=examples(50))
@given(superpod_cases(max_jobs=2), st.randoms(use_true_random=False))
def test_the_answer_ignores_the_order_of_superpods(case: Case, random: Random) -> None:
    spots = list(case.world.spots)
    random.shuffle(spots)
    shuffled = replace(case, world=replace(case.world, spots=tuple(spots)))

    one, two = play(case), play(shuffled)

    assert [one.decide(job) for job in case.jobs] == [
        two.decide(job) for job in case.jobs
    ]


# Ties between leaves and between SuperPoDs


def any_order(world: World) -> Iterator[World]:
    """The world with its leaves or SuperPoDs in every order; all else is the same."""
    if world.mode == "superpods":
        ids = sorted(
            {s.node.superpod for s in world.spots if s.node.superpod is not None}
        )
        for order in permutations(ids):
            new = dict(zip(ids, order, strict=True))
            yield replace(
                world,
                spots=tuple(
                    replace(s, node=replace(s.node, superpod=new[s.node.superpod or 0]))
                    for s in world.spots
                ),
            )
        return
    for leaves in permutations(world.leaves):
        spots = sorted(world.spots, key=lambda s: leaves.index(str(s.leaf)))
        yield replace(world, spots=tuple(spots))


def nodes_by_the_rule(world: World, job: NetJob) -> list[str] | None:
    """The nodes of every rank, as the oracle places them."""
    match world.mode:
        case "1.0":
            return place_1(world, job)
        case "single":
            return place_single(world, job)
        case "2.0":
            written = place_2(world, job)
            return None if written is None else [*written]
    ranks = place_superpods(world, job)
    return None if ranks is None else [name for name, _block in ranks]


@pytest.mark.parametrize("mode", [*MODES, "superpods"])
def test_d35_no_choice_that_the_rule_calls_equal_is_better(mode: str) -> None:
    """By brute force: every set of nodes that the rule calls equal to the chosen one.

    Besides, the steps of the rule alone, with leaves or SuperPoDs in any order.
    """
    seen: Counter[str] = Counter()

    def check(case: Case) -> None:
        world, (job,) = case.world, case.jobs
        careless = replace(job, careless=True)
        decision = play(case).decide(job)
        ordered = [nodes_by_the_rule(other, careless) for other in any_order(world)]
        if not isinstance(decision, Placed):
            assert ordered == [None] * len(ordered)
            return
        chosen = [world.spot(p.node) for p in decision.placements]
        mine, price = cost(chosen, job), prices(world, job)
        others = {price([world.spot(n) for n in found or ()]) for found in ordered}
        assert mine <= min(others)
        equal = {price(spots) for spots in equal_choices(world, job, chosen)}
        assert mine in equal
        assert mine == min(equal), (mine, min(equal))
        way = way_of(world, job, chosen)
        seen[what_decides(equal)] += 1
        seen[f"a choice: {way}"] += len(equal) > 1
        seen["no order of leaves reaches it"] += mine < min(others)
        if world.mode != "superpods":
            looks = {len(world.own(str(spot.leaf))) for spot in chosen}
            unequal = {len(world.own(leaf)) for leaf in world.leaves} > looks
            seen["a choice: uneven leaves"] += unequal and len(equal) > 1
            seen["a choice: shared leaves"] += len(equal) > 1 and shares(world, chosen)
            seen["a choice: what is left"] += len(equal) > 1 and in_part(world, chosen)

    kinds = [(1200, tied_cases(mode))]
    if mode == "1.0":
        kinds += [(160, tied_cases(mode, slots)) for slots in ("row", "rows", "none")]
        kinds += [(240, remainder_cases()), (240, sharing_cases())]
    if mode == "2.0":
        kinds += [(240, beyond_cases())]
    for n_examples, cases in kinds:
        settings(max_examples=examples(n_examples))(given(cases)(check))()
    wanted = ["sub-health decides", "faulty chips decide", "fragments decide"]
    assert_reached(seen, *wanted, *TIED[mode], times=5)


TIED = {
    "1.0": (
        "a choice: inside",
        "a choice: whole",
        "a choice: logical",
        "a choice: one logical",
        "a choice: any",
        "a choice: uneven leaves",
        "a choice: shared leaves",
        "a choice: what is left",
        "no order of leaves reaches it",
    ),
    "2.0": (
        "a choice: inside",
        "a choice: across",
        "a choice: over capacity",
        "a choice: uneven leaves",
    ),
    "single": ("a choice: inside", "a choice: uneven leaves"),
    "superpods": ("a choice: one pod", "a choice: several pods"),
}
"""Where the rules leave choices, by the rule of the network."""


def shares(world: World, spots: list[Spot]) -> bool:
    """1.0: whether nodes of several leaves cross one that another job crosses."""
    leaves = {str(spot.leaf) for spot in spots}
    return len(leaves) > 1 and any(is_crossed(world, leaf) for leaf in leaves)


def in_part(world: World, spots: list[Spot]) -> bool:
    """Whether leaves are filled, but for one of which some nodes are left."""
    leaves = Counter(str(spot.leaf) for spot in spots)
    whole = sum(count == len(world.own(leaf)) for leaf, count in leaves.items())
    return 0 < whole == len(leaves) - 1


def way_of(world: World, job: NetJob, spots: list[Spot]) -> str:
    """What sort of placement this is, by what the rule leaves open."""
    if world.mode == "superpods":
        return "one pod" if job.replicas == 1 else "several pods"
    if len({spot.leaf for spot in spots}) == 1:
        return "inside"
    if world.mode == "1.0":
        way = way_1(world, job)
        return "one logical" if way == "logical" and len(spots) < world.m else way
    return "over capacity" if over_capacity(world, job) else "across"


def what_decides(costs: set[Cost]) -> str:
    """Which part of the cost tells the best of equal choices from others."""
    sub_healthy, faulty, fragments = (
        len({*part}) > 1 for part in zip(*costs, strict=True)
    )
    if sub_healthy:
        return "sub-health decides"
    if faulty:
        return "faulty chips decide"
    return "fragments decide" if fragments else "nothing decides"


def prices(world: World, job: NetJob) -> Callable[[Sequence[Spot]], Cost]:
    """What sets of nodes cost; each node is looked at once."""
    each = {s.name: cost([s], job) for s in world.spots if fits(s, job)}

    def price(spots: Sequence[Spot]) -> Cost:
        sub_healthy, faulty, fragments = (
            sum(part) for part in zip(*(each[s.name] for s in spots), strict=True)
        )
        return sub_healthy, faulty, fragments

    return price


# Rules that any answer must obey, whatever the steps that led to it


@settings(max_examples=examples(200))
@given(st.one_of(leaf_cases(), superpod_cases()))
def test_every_placement_is_whole_legal_and_on_free_healthy_chips(case: Case) -> None:
    game = play(case)
    for job, ending in case.steps:
        before = game.world
        decision = game.decide(job)
        if isinstance(decision, Placed):
            places = decision.placements
            assert [p.replica for p in places] == list(range(job.replicas))
            spots = [before.spot(p.node) for p in places]
            if job.kind or before.mode == "superpods":
                assert len({spot.name for spot in spots}) == job.replicas
                assert LEGAL[before.mode](before, job, spots)
                for spot, p in zip(spots, places, strict=True):
                    chips = frozenset(p.chips)
                    assert chips in set(legal_choices(spot.node, job.pod))
        game.end(ending)


@settings(max_examples=EXAMPLES)
@given(st.one_of(leaf_cases("1.0", labelled=True), scattered_cases("1.0")))
def test_no_leaf_carries_two_labelled_jobs_that_cross_it(case: Case) -> None:
    game = play(case)
    tenants = {pod.job.name for pod in case.world.pods}
    for job, ending in case.steps:
        game.decide(job)
        for leaf in game.world.leaves:
            over = crossers(game.world, leaf)
            new = [other for other in over if other.name not in tenants]
            if not new:
                continue
            if case.world.share_common and {other.kind for other in over} == {"common"}:
                continue
            assert len(over) == 1
        game.end(ending)


@settings(max_examples=EXAMPLES)
@given(st.one_of(leaf_cases("1.0", labelled=True), scattered_cases("1.0")))
def test_a_foundation_job_loads_the_slots_evenly(case: Case) -> None:
    game = play(case)
    for job in case.jobs:
        decision = game.decide(job)
        if isinstance(decision, Placed) and job.kind == "foundation":
            spots = [game.world.spot(p.node) for p in decision.placements]
            inside = len({spot.leaf for spot in spots}) == 1
            assert inside or is_even(game.world, spots)


@settings(max_examples=EXAMPLES)
@given(st.one_of(leaf_cases("2.0", labelled=True), scattered_cases("2.0")))
def test_a_foundation_job_keeps_its_budget_of_shared_leaves(case: Case) -> None:
    """And the pods under idle leaves say what those leaves have become."""
    game = play(case)
    for job, ending in case.steps:
        states = leaf_states(game.world)
        decision = game.decide(job)
        if isinstance(decision, Placed):
            check_budget(game, job, decision, states)
        game.end(ending)


def check_budget(
    game: Play, job: NetJob, placed: Placed, before: dict[str, tuple[int, bool]]
) -> None:
    used = {str(game.world.spot(p.node).leaf) for p in placed.placements}
    after = leaf_states(game.world)
    if len(used) == 1:
        assert after == before
        return
    assert job.kind != "padding"
    assert all(after[leaf][0] != IDLE for leaf in used)
    assert all(after[leaf] == before[leaf] for leaf in before if leaf not in used)
    busy = [leaf for leaf in used if before[leaf] != (IDLE, True)]
    ill = [leaf for leaf in busy if not after[leaf][1]]
    if job.kind == "foundation":
        assert all(before[leaf] == (SHARED, True) for leaf in busy)
        assert len(busy) <= game.world.budget
        assert not ill
    else:
        assert ill in ([], busy)


@settings(max_examples=EXAMPLES)
@given(superpod_cases())
def test_blocks_are_whole_and_the_reserve_goes_last(case: Case) -> None:
    """Decision D15, as a statement about the outcome.

    A hard job has blocks of its size, each inside one SuperPoD. Let a SuperPoD with c
    free nodes afford floor((c - R) / B) blocks. If all of them together afford the job,
    none falls below its reserve by it. If not, every one gives at least what it
    affords before any reserve is eaten.
    """
    game = play(case)
    for job, ending in case.steps:
        rooms = {s: len(spots) for s, spots in superpod_nodes(game.world, job).items()}
        decision = game.decide(job)
        if isinstance(decision, Placed) and job.replicas > 1:
            check_blocks(game.world, job, decision, rooms)
        game.end(ending)


def check_blocks(
    world: World, job: NetJob, placed: Placed, rooms: dict[int, int]
) -> None:
    shape = shape_of(job)
    home = {p.replica: world.spot(p.node).node.superpod for p in placed.placements}
    blocks: dict[int | None, list[int]] = {}
    for p in placed.placements:
        blocks.setdefault(p.block, []).append(p.replica)
    assert all(len({home[r] for r in block}) == 1 for block in blocks.values())
    sizes = [len(block) for block in blocks.values()]
    assert max(sizes) <= shape.block
    if not job.soft:
        assert sizes == [shape.block] * shape.blocks
        assert [p.block for p in placed.placements] == [
            replica // shape.block for replica in range(job.replicas)
        ]
    given_ = Counter(home.values())
    affords = {s: max(0, c - world.reserve) // shape.block for s, c in rooms.items()}
    if sum(affords.values()) >= shape.blocks:
        assert all(rooms[s] - given_[s] >= world.reserve for s in rooms if given_[s])
    else:
        assert all(given_[s] >= affords[s] * shape.block for s in rooms)


@settings(max_examples=EXAMPLES)
@given(st.one_of(leaf_cases(max_jobs=3), superpod_cases(max_jobs=2)))
def test_a_waiting_job_accounts_for_every_node(case: Case) -> None:
    game = play(case)
    for job in case.jobs:
        decision = game.decide(job)
        if isinstance(decision, Waiting):
            n_nodes = len(case.world.spots)
            assert decision.fitting + sum(decision.reasons.values()) == n_nodes
            assert 1 <= decision.missing <= job.replicas


@settings(max_examples=EXAMPLES)
@given(st.one_of(leaf_cases(max_jobs=3), superpod_cases(max_jobs=3)))
def test_a_hint_names_a_job_that_would_be_placed(case: Case) -> None:
    game = play(case)
    for job in case.jobs:
        decision = game.decide(job)
        if not isinstance(decision, Waiting):
            continue
        for hint in decision.hint.split("; "):
            words = hint.removesuffix(" would be placed now").split()
            if hint == "with tor-affinity: normal-schema it would be placed now":
                other = replace_struct(decision.job, tor_affinity=Schema.NORMAL)
            elif words[1:2] + words[3:] == ["x", "chips"] and "would" in hint:
                other = replace_struct(
                    decision.job,
                    replicas=int(words[0]),
                    chips=int(words[2]),
                    sp_block=None,
                )
            else:
                continue
            assert game.session.fits_now(other), hint


# What the cluster remembers


@settings(max_examples=EXAMPLES)
@given(leaf_cases())
def test_what_is_kept_of_the_leaves_is_what_the_pods_say(case: Case) -> None:
    """Kept step by step, and the same when it is counted from scratch."""
    game = play(case)
    assert spine_of(game.session.cluster) == spine_from_scratch(game.world)
    for job, ending in case.steps:
        game.decide(job)
        assert spine_of(game.session.cluster) == spine_from_scratch(game.world)
        game.end(ending)
        assert spine_of(game.session.cluster) == spine_from_scratch(game.world)


@settings(max_examples=EXAMPLES)
@given(st.one_of(leaf_cases(), superpod_cases()))
def test_jobs_that_have_ended_leave_no_trace(case: Case) -> None:
    game = play(case)
    cluster = game.session.cluster
    before, decisions = arrays(cluster), []
    for job in case.jobs:
        now = arrays(cluster)
        decisions.append(game.decide(job))
        if not isinstance(decisions[-1], Placed):
            assert arrays(cluster) == now
    after = arrays(cluster)

    with Statement(cluster) as statement:
        for job in case.jobs:
            if job.name in cluster.holdings:
                statement.release(job.name)
        assert arrays(cluster) == before

    assert arrays(cluster) == after
    for job in case.jobs:
        game.end(job)
    assert arrays(cluster) == before
    assert [game.decide(job) for job in case.jobs] == decisions


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_the_state_of_the_leaves_survives_a_restart(data: st.DataObject) -> None:
    """Everything is read back from the pods: placements and annotations."""
    case = data.draw(leaf_cases(labelled=True))
    case = replace(case, world=without_tenants(case.world))
    first = play(case)
    written = []
    early, late = case.jobs[:-1], case.jobs[-1:]
    for job in early:
        decision = first.decide(job)
        if isinstance(decision, Placed):
            written.append(on_record(first, job, decision))

    entry = document(replace(case, jobs=late))
    entry["running"] = written
    again = build(read_entry(entry)).open()

    cluster = first.session.cluster
    assert spine_of(again.cluster) == spine_of(cluster)
    assert again.cluster.free.tolist() == cluster.free.tolist()
    for job in late:
        assert again.decide(first.jobs[job.name]) == first.decide(job)


def without_tenants(world: World) -> World:
    """The world without the jobs that run, and without notes of what they said."""
    notes = {leaf: Note(crossed_by=n.crossed_by) for leaf, n in world.notes.items()}
    return replace(world, pods=(), notes=notes)


def on_record(game: Play, job: NetJob, placed: Placed) -> dict[str, Any]:
    """The job as it would be found again: its pods with their annotations."""
    answered = answer(game.session.cluster, placed)
    pods = zip(pods_of(job, placed), answered["annotations"], strict=True)
    (entry,) = document(Case(game.world, (job,)))["jobs"]
    return {
        **entry,
        "placements": [
            placement(pod) | {"annotations": annotations} for pod, annotations in pods
        ],
    }


# Nothing legal is overlooked


@pytest.mark.parametrize("mode", MODES)
def test_a_job_waits_only_where_no_legal_placement_exists(mode: str) -> None:
    """By brute force; in 2.0, as the vendor chooses, but for `is_shut_out`."""

    @settings(max_examples=EXAMPLES)
    @given(leaf_cases(mode, max_jobs=2, max_nodes=12, labelled=True))
    def check(case: Case) -> None:
        game = play(case)
        for job in case.jobs:
            before = game.world
            placed = isinstance(game.decide(job), Placed)
            if not is_shut_out(before, job):
                assert placed == exists_legal(before, job)

    check()


def is_shut_out(world: World, job: NetJob) -> bool:
    """2.0, `guide`: a job of exactly M that only a single busy leaf would hold."""
    if world.mode != "2.0" or world.choice == "compact" or job.replicas != world.m:
        return False
    return job.kind != "padding"


@pytest.mark.parametrize("replicas", [3, 4])
@pytest.mark.parametrize(
    "note", [Note(state=EXCLUSIVE), Note(state=SHARED, healthy=False)]
)
def test_m_pods_are_offered_one_leaf_that_another_job_crosses(
    replicas: int, note: Note
) -> None:
    """2.0: inside a leaf a job uses no spine, also where it fills the leaf.

    With `guide` it waits: so say the answers that were recorded.
    """
    spots = tuple(Spot(OracleNode(f"n{i}", A2, 8, EVERY), "L0", i) for i in range(4))
    world = World(spots, mode="2.0", notes={"L0": note})
    job = NetJob("job", OracleJob(A2, 8, replicas), "large-model-schema")

    decision = play(Case(world, (job,))).decide(job)
    guided = play(Case(replace(world, choice="guide"), (job,))).decide(job)

    assert isinstance(decision, Placed)
    assert isinstance(guided, Placed if replicas < world.m else Waiting)


@settings(max_examples=EXAMPLES)
@given(superpod_cases(max_jobs=3))
def test_a_job_in_superpods_waits_only_where_no_blocks_fit(case: Case) -> None:
    game = play(case)
    for job in case.jobs:
        before = game.world
        placed = isinstance(game.decide(job), Placed)
        assert placed == exists_legal(before, job)


# Larger clusters, against a solver


def solved(model: Any) -> Any:  # noqa: ANN401
    """The solver after its answer, or None where there is no solution."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 5.0
    status = solver.solve(model)
    assert status != cp_model.UNKNOWN
    return None if status == cp_model.INFEASIBLE else solver


@st.composite
def wide_cases(draw: st.DrawFn) -> Case:
    """Eight to fourteen leaves of eight, whole nodes, some leaves crossed."""
    m, n_leaves = 8, draw(st.integers(8, 14))
    gaps = st.sampled_from([0, 0, 0, 1, 2, 4])
    spots, notes = [], {}
    for number in range(n_leaves):
        leaf = f"L{number:02}"
        n_taken = draw(gaps)
        taken = draw(st.sets(st.integers(0, m - 1), min_size=n_taken, max_size=n_taken))
        for slot in range(m):
            free = frozenset[int]() if slot in taken else EVERY
            node = OracleNode(f"{leaf}-{slot}", A2, 8, free)
            spots.append(Spot(node, leaf, slot))
        if draw(st.sampled_from([False, False, True])):
            notes[leaf] = Note(crossed_by=("large-model-schema",))
    world = World(tuple(spots), notes=notes)
    room = sum(len(open_) for open_ in candidates_uncrossed(world).values())
    most = max(4, room + 2)
    replicas = draw(
        st.one_of(st.integers(4, most), st.integers(max(4, most - 9), most))
    )
    return Case(
        world, (NetJob("job", OracleJob(A2, 8, replicas), "large-model-schema"),)
    )


def candidates_uncrossed(world: World) -> dict[str, list[Spot]]:
    """Leaf -> its free nodes, of leaves that no job crosses."""
    return {
        leaf: [s for s in world.spots if s.leaf == leaf and s.node.free]
        for leaf in world.leaves
        if not world.note(leaf).crossed_by
    }


@settings(max_examples=examples(40))
@given(wide_cases())
def test_the_solver_places_no_foundation_job_that_waits(case: Case) -> None:
    """1.0: leaves no job crosses, the slots' load within one; or one leaf."""
    world, (job,) = case.world, case.jobs
    model = cp_model.CpModel()
    spots = [spot for under in candidates_uncrossed(world).values() for spot in under]
    takes = [model.new_bool_var(spot.name) for spot in spots]
    model.add(sum(takes) == job.replicas)
    low = model.new_int_var(0, len(world.leaves), "low")
    for slot in range(world.m):
        load = sum(
            take for take, spot in zip(takes, spots, strict=True) if spot.slot == slot
        )
        model.add(load >= low)
        model.add(load <= low + 1)
    free = Counter(spot.leaf for spot in world.spots if spot.node.free)
    inside = max(free.values(), default=0) >= job.replicas

    decision = play(case).decide(job)

    assert isinstance(decision, Placed) == (inside or solved(model) is not None)


@settings(max_examples=examples(60))
@given(st.data())
def test_the_solver_spares_no_more_of_the_reserve(data: st.DataObject) -> None:
    """Hard jobs: as many blocks beside the reserve as any choice has."""
    sizes = data.draw(st.lists(st.integers(0, 20), min_size=3, max_size=10))
    block, blocks = data.draw(st.integers(1, 6)), data.draw(st.integers(2, 14))
    reserve = data.draw(st.integers(0, 4))
    spots = tuple(
        Spot(OracleNode(f"n{s}-{i:02}", A3, 16, frozenset(range(16)), superpod=s))
        for s, size in enumerate(sizes)
        for i in range(size)
    )
    pod = OracleJob(A3, 16, block * blocks)
    job = NetJob("job", pod, block=16 * block)
    model = cp_model.CpModel()
    gives = [model.new_int_var(0, size // block, "") for size in sizes]
    eaten = [model.new_int_var(0, size // block, "") for size in sizes]
    affords = [max(0, size - reserve) // block for size in sizes]
    model.add(sum(gives) == blocks)
    for give, eats, most in zip(gives, eaten, affords, strict=True):
        model.add(eats >= give - most)
    model.minimize(sum(eaten))
    best = solved(model)

    decision = play(
        Case(World(spots, mode="superpods", reserve=reserve), (job,))
    ).decide(job)

    assert isinstance(decision, Placed) == (best is not None)
    if isinstance(decision, Placed):
        given_ = Counter(int(p.node[1:].split("-")[0]) for p in decision.placements)
        over = [given_[s] // block - most for s, most in enumerate(affords)]
        assert sum(max(0, eats) for eats in over) == best.objective_value
