"""Which functions of the package a golden scenario calls."""

import sys
from types import CodeType, FrameType

from tests.scenarios.case import Case, answers, scenario_of


def functions_called(case: Case) -> set[CodeType]:
    """The code of every Python function that is called while *case* is played."""
    scenario = scenario_of(case)
    called: set[CodeType] = set()

    def hear(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(hear)
    try:
        answers(scenario)
    finally:
        sys.setprofile(before)
    return called
