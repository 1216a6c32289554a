"""What must hold for every network and every job, against the oracle."""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as replace_struct

from ringleaf.framework.statement import Statement
from ringleaf.model.decision import Decision, Placed, Waiting
from ringleaf.model.job import Schema
from ringleaf.simulator.answer import answer
from ringleaf.simulator.format import read_entry
from ringleaf.simulator.scenario import build
from tests.network_oracle import (
    EXCLUSIVE,
    IDLE,
    LEGAL,
    SHARED,
    NetJob,
    Note,
    World,
    crossers,
    is_even,
    leaf_states,
    place_1,
    place_2,
    place_single,
    place_superpods,
    shape_of,
    superpod_nodes,
)
from tests.oracle import choose, legal_choices, place
from tests.properties.network_cases import (
    Case,
    document,
    leaf_cases,
    placement,
    superpod_cases,
)
from tests.properties.play import (
    Play,
    arrays,
    play,
    pods_of,
    spine_from_scratch,
    spine_of,
)

EXAMPLES = 120
MODES = ("1.0", "2.0", "single")


# The answer is the oracle's


Answer = list[tuple[str, tuple[int, ...], int | None, bool]]


def wanted(world: World, job: NetJob) -> Answer | None:
    """Node, chips, and what is written of the leaf, for every rank."""
    if job.kind is None:
        anywhere = place([spot.node for spot in world.spots], job.pod)
        if anywhere is None:
            return None
        return [(name, chips, None, True) for name, chips in anywhere]
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


@pytest.mark.parametrize("mode", MODES)
def test_the_nodes_under_the_leaves_are_the_oracles(mode: str) -> None:
    @settings(max_examples=EXAMPLES)
    @given(leaf_cases(mode))
    def compare(case: Case) -> None:
        game = play(case)
        for job, ending in case.steps:
            expected = wanted(game.world, job)
            decision = game.decide(job)
            assert found(job, decision) == expected
            assert isinstance(decision, Placed | Waiting)
            game.end(ending)

    compare()


@settings(max_examples=EXAMPLES)
@given(superpod_cases())
def test_the_nodes_in_superpods_are_the_oracles(case: Case) -> None:
    game = play(case)
    for job, ending in case.steps:
        expected = in_superpods(game.world, job)

        decision = game.decide(job)

        assert isinstance(decision, Placed | Waiting)
        got = None
        if isinstance(decision, Placed):
            got = [(p.node, p.block, p.chips) for p in decision.placements]
        assert got == expected
        game.end(ending)


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


@settings(max_examples=EXAMPLES // 2)
@given(superpod_cases(max_jobs=2), st.randoms(use_true_random=False))
def test_the_answer_ignores_the_order_of_superpods(case: Case, random: Random) -> None:
    spots = list(case.world.spots)
    random.shuffle(spots)
    shuffled = replace(case, world=replace(case.world, spots=tuple(spots)))

    one, two = play(case), play(shuffled)

    assert [one.decide(job) for job in case.jobs] == [
        two.decide(job) for job in case.jobs
    ]


# Rules that any answer must obey, whatever the steps that led to it


@settings(max_examples=2 * EXAMPLES)
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
@given(leaf_cases("1.0", labelled=True))
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
@given(leaf_cases("1.0", labelled=True))
def test_a_foundation_job_loads_the_slots_evenly(case: Case) -> None:
    game = play(case)
    for job in case.jobs:
        decision = game.decide(job)
        if isinstance(decision, Placed) and job.kind == "foundation":
            spots = [game.world.spot(p.node) for p in decision.placements]
            inside = len({spot.leaf for spot in spots}) == 1
            assert inside or is_even(game.world, spots)


@settings(max_examples=EXAMPLES)
@given(leaf_cases("2.0", labelled=True))
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
            if hint == "as normal-schema it would be placed now":
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
    told = answer(game.session.cluster, placed)
    pods = zip(pods_of(job, placed), told["annotations"], strict=True)
    (entry,) = document(Case(game.world, (job,)))["jobs"]
    return {
        **entry,
        "placements": [
            placement(pod) | {"annotations": annotations} for pod, annotations in pods
        ],
    }
