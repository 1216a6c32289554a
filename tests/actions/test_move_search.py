"""The search for moves: what stays, how nodes are divided, and where it ends early."""

import pytest

from ringleaf.actions import move_search
from ringleaf.actions.moves import MovePlan, NoMoves, WhyNot
from ringleaf.actions.propose import propose
from tests.properties.moves import Fragmented, Tenant

COMPETING = Fragmented(
    4,
    3,
    (
        Tenant(chips=3, nodes=(0, 2), movable=True, restart_s=7),
        Tenant(chips=2, nodes=(1, 2), movable=True, restart_s=5),
        Tenant(chips=2, nodes=(3,), movable=True, restart_s=4),
    ),
    chips=8,
    pods=2,
    labelled=True,
)
"""Neither the gang placed first nor the moved jobs placed first leave room."""


def plan_of(case: Fragmented) -> MovePlan | NoMoves:
    engine = case.engine
    return propose(engine.context, engine.view.job_states["gang"], 9, ratio=0)


def moved(case: Fragmented) -> list[str]:
    """The jobs that are moved."""
    plan = plan_of(case)
    assert isinstance(plan, MovePlan)
    return [move.job for move in plan.moves]


def test_of_jobs_on_an_emptied_node_those_stay_that_are_not_in_the_way() -> None:
    """Both nodes have two chips free, and the gang needs three."""
    tenants = (
        Tenant(chips=4, nodes=(1, 0), movable=True, restart_s=4),
        Tenant(chips=2, nodes=(0, 1), movable=True, restart_s=5),
    )
    case = Fragmented(2, 8, tenants, chips=3, pods=1, labelled=False)

    found = plan_of(case)

    assert isinstance(found, NoMoves)
    assert found.why is WhyNot.NO_ROOM


def test_the_dearest_job_stays_where_one_move_is_enough() -> None:
    tenants = (
        Tenant(chips=1, nodes=(1,), movable=True, restart_s=7),
        Tenant(chips=3, nodes=(0,), movable=True, restart_s=4),
    )

    assert moved(Fragmented(3, 8, tenants, chips=8, pods=2, labelled=False)) == ["j0"]


def test_free_nodes_are_divided_where_places_compete() -> None:
    assert sorted(moved(COMPETING)) == ["j0", "j1"]


def test_a_gang_that_does_not_fit_without_any_of_them_needs_no_search() -> None:
    tenants = (
        Tenant(chips=2, nodes=(0,), movable=True, restart_s=1),
        Tenant(chips=5, nodes=(0,), movable=False, restart_s=1),
        Tenant(chips=1, nodes=(1,), movable=False, restart_s=1),
    )

    found = plan_of(Fragmented(2, 8, tenants, chips=8, pods=1, labelled=False))

    assert isinstance(found, NoMoves)
    assert found.why is WhyNot.NO_ROOM


@pytest.mark.parametrize(
    "limit", ["MOST_CHOICES", "MAX_DIVIDED", "MAX_WORK", "MAX_ORDERS"]
)
def test_a_search_ends_at_its_limits(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(move_search, limit, 0)

    found = plan_of(COMPETING)

    if limit == "MAX_ORDERS":
        assert isinstance(found, MovePlan), "one order is enough here"
        return
    assert isinstance(found, NoMoves)
    assert found.why is WhyNot.NO_ROOM
