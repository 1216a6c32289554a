"""A rearrangement has the fewest moves that there can be, and of these the cheapest."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleaf.actions import move_search
from ringleaf.actions.moves import MovePlan, NoMoves
from ringleaf.actions.propose import propose
from ringleaf.model.mask import mask_of
from tests.effort import assert_reached, examples
from tests.properties.moves import Fragmented, Tenant, fewest_moves, fragmented

MOST = 99


def planned(case: Fragmented) -> MovePlan | None:
    """The plan for the gang of *case*, whatever it gains."""
    engine = case.engine
    cluster = engine.view.cluster
    before = cluster.free.copy(), dict(cluster.holdings), cluster.version
    found = propose(engine.context, engine.view.job_states["gang"], MOST, ratio=0)
    assert (cluster.free == before[0]).all()
    assert (cluster.holdings, cluster.version) == before[1:]
    plan = found.plan if isinstance(found, NoMoves) else found
    if plan is not None:
        _check_places(case, plan)
    return plan


def _check_places(case: Fragmented, plan: MovePlan) -> None:
    """All places are legal: those of moved jobs are free before any of them stops."""
    free = [case.free(node) for node in range(case.n_nodes)]
    taken: Counter[tuple[str, int]] = Counter()
    for move in plan.moves:
        tenant = case.tenants[int(move.job[1:])]
        assert tenant.movable
        assert [len(p.chips) for p in move.after] == [tenant.chips] * len(tenant.nodes)
        for place in move.after:
            free[int(place.node[1:])] -= tenant.chips
            taken.update((place.node, chip) for chip in place.chips)
    assert min(free) >= 0, "a place that was not free before"
    for move in plan.moves:
        tenant = case.tenants[int(move.job[1:])]
        for node in tenant.nodes:
            free[node] += tenant.chips
    for place in plan.places:
        assert mask_of(place.chips).bit_count() == case.chips
        free[int(place.node[1:])] -= case.chips
        taken.update((place.node, chip) for chip in place.chips)
    assert min(free) >= 0
    assert len(plan.places) == case.pods
    assert max(taken.values()) == 1, "a chip twice"
    if case.labelled:
        assert len({case.leaf(int(p.node[1:])) for p in plan.places}) == 1
        assert len({p.node for p in plan.places}) == case.pods


def test_moves_are_the_fewest_and_the_cheapest_that_a_solver_finds() -> None:
    seen: Counter[str] = Counter()

    @settings(
        max_examples=examples(800),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(fragmented())
    def compare(case: Fragmented) -> None:
        if case.engine.view.job_states["gang"].placements:
            return
        plan, best = planned(case), fewest_moves(case)
        if best is None:
            assert plan is None
            seen["none"] += 1
            return
        assert plan is not None, best
        assert (len(plan.moves), round(plan.cost)) == best
        seen[f"{min(best[0], 3)} moves"] += 1
        seen["under one leaf"] += case.labelled and case.pods > 1

    compare()
    assert_reached(seen, "3 moves")
    assert_reached(seen, "none", "1 moves", "2 moves", "under one leaf", times=3)


def test_free_nodes_are_divided_where_places_compete() -> None:
    """Neither the gang placed first nor the moved jobs placed first leave room."""
    tenants = (
        Tenant(chips=3, nodes=(0, 2), movable=True, restart_s=7),
        Tenant(chips=2, nodes=(1, 2), movable=True, restart_s=5),
        Tenant(chips=2, nodes=(3,), movable=True, restart_s=4),
    )
    case = Fragmented(4, 3, tenants, chips=8, pods=2, labelled=True)

    plan = planned(case)

    assert plan is not None
    assert (len(plan.moves), round(plan.cost)) == fewest_moves(case)


LIMITS = ("MOST_CHOICES", "MAX_DIVIDED", "MAX_ORDERS", "MAX_WORK", "MAX_BANNED")


def test_limits_of_the_search_lose_plans_and_make_none_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: Counter[str] = Counter()

    @settings(
        max_examples=examples(160),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(
        fragmented(),
        st.lists(st.sampled_from(LIMITS), min_size=1, unique=True),
        st.sampled_from([0, 1, 2, 40, 100, 200, 400]),
    )
    def compare(case: Fragmented, limits: list[str], most: int) -> None:
        if case.engine.view.job_states["gang"].placements:
            return
        whole = planned(case)
        with monkeypatch.context() as patched:
            for limit in limits:
                patched.setattr(move_search, limit, most)
            found = planned(case)
            assert found == planned(case), "not the same answer twice"
        if found is None:
            seen["no plan"] += whole is not None
            return
        assert whole is not None
        assert (len(whole.moves), whole.cost) <= (len(found.moves), found.cost)
        seen["kept"] += 1

    compare()
    assert_reached(seen, "no plan", "kept")
