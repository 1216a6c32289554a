"""Golden scenarios of rule 1.0 are decided in the way that they tell of.

Leaves that lack no node of their own are complete, however few they have (D36): a
scenario about logical leaves or free choice needs leaves that are not.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import pytest

from ringleaf.model.settings import SwitchMode
from ringleaf.policies.switches import anything, logical_leaves
from tests.scenarios.calls import functions_called
from tests.scenarios.case import Case, cases, scenario_of

WAYS: Final[tuple[tuple[str, Callable[..., Any]], ...]] = (
    (r"[Ll]ogical lea(f|ves)|[Rr]ows (of|with|cannot)|whole row", logical_leaves),
    (
        r"at random\b|leaf by leaf|[Ff]ree choice (goes|is)|back to free choice",
        anything,
    ),
)
"""Words of a story, and the function that takes the nodes."""


def stories() -> list[Any]:
    """Every case of 1.0 with such words, and what it must come to."""
    found = [
        pytest.param(case, way, id=f"{case}: {way.__name__}")
        for case in cases()
        for words, way in WAYS
        if re.search(words, case.about)
        and scenario_of(case).settings.switch_mode is SwitchMode.SPINE_LEAF_1
    ]
    assert len(found) > 15
    return found


@pytest.mark.parametrize(("case", "way"), stories())
def test_a_scenario_is_decided_as_it_tells(
    case: Case, way: Callable[..., object]
) -> None:
    assert way.__code__ in functions_called(case)
