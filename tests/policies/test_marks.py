"""What pods say of their leaf when it is not written on them."""

import pytest

from ringleaf.model.placement import LeafAnnotation, LeafState
from ringleaf.model.settings import Settings, SwitchMode
from ringleaf.policies.marks import implied_marks

ALONE = LeafAnnotation(state=LeafState.EXCLUSIVE)
SHARED = LeafAnnotation(state=LeafState.SHARED)
SICK = LeafAnnotation(state=LeafState.SHARED, healthy=False)


@pytest.mark.parametrize(
    ("crossing", "most", "marks"),
    [
        pytest.param([], 2, {}, id="no job crosses a leaf"),
        pytest.param(["AB"], 2, {"A": ALONE, "B": ALONE}, id="one job alone"),
        pytest.param(
            ["AB", "BC"], 2, {"A": ALONE, "B": SHARED, "C": ALONE}, id="two share one"
        ),
        pytest.param(
            ["AB", "AB"], 2, {"A": SHARED, "B": SHARED}, id="as many as a job may share"
        ),
        pytest.param(
            ["AB", "AB"], 1, {"A": SICK, "B": SICK}, id="more than a job may share"
        ),
        pytest.param(
            ["ABX", "AC", "BD", "CD"],
            2,
            {"A": SHARED, "B": SHARED, "C": SHARED, "D": SHARED, "X": ALONE},
            id="a leaf of its own is not counted",
        ),
        pytest.param(
            ["ABCX", "AD", "BD", "CD"],
            2,
            {"A": SICK, "B": SICK, "C": SICK, "D": SHARED, "X": ALONE},
            id="only what that job shares is unhealthy",
        ),
    ],
)
def test_a_shared_leaf_is_unhealthy_when_one_of_its_jobs_shares_too_many(
    crossing: list[str], most: int, marks: dict[str, LeafAnnotation]
) -> None:
    """Jobs by the leaves they cross, one letter each."""
    settings = Settings(switch_mode=SwitchMode.SPINE_LEAF_2, shared_leaves=most)
    jobs = {f"j{i}": frozenset(leaves) for i, leaves in enumerate(crossing)}

    assert implied_marks(jobs, settings) == marks


def test_in_1_0_a_job_has_every_leaf_it_crosses_for_itself() -> None:
    jobs = {"one": frozenset("AB"), "two": frozenset("BC")}

    marks = implied_marks(jobs, Settings(switch_mode=SwitchMode.SPINE_LEAF_1))

    assert marks == {"A": ALONE, "B": ALONE, "C": ALONE}
