"""The scheduler is killed at random moments, and nothing is lost."""

import pytest

from ringleaf_testbed.cluster import Testbed
from tests.soak.run import Plan, Soak, markdown


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(Plan(kills=4, restarts=1, pods=120, aimed=2), id="4 kills"),
        pytest.param(Plan(), id="20 kills", marks=pytest.mark.long),
        pytest.param(
            Plan(kills=12, pods=700, starved=0, tenant=True, waves=2, steady_s=60),
            id="12 kills, a tenant and evictions",
            marks=pytest.mark.long,
        ),
    ],
)
def test_nothing_is_lost_when_the_scheduler_is_killed(
    plan: Plan, new_testbed: type[Testbed]
) -> None:
    said: list[str] = []

    report = Soak(plan, said.append, new_testbed).run()

    told = "\n".join([*said, markdown(report)])
    assert report.violations == [], told
    assert (report.kills, report.restarts) == (plan.kills, plan.restarts), told
    assert report.half_bound > 0, told
    assert report.completed + report.released == report.half_bound, told
    assert (report.evicted > 0) == (plan.waves > 0), told
    assert bool(report.memory) == (plan.steady_s > 0), told
