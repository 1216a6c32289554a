"""How much work something is, counted: a clock says more of the machine."""

import sys
from collections.abc import Callable
from types import FrameType


def n_calls(work: Callable[[], object]) -> int:
    """Calls of functions during *work*; each element of a generator counts as one."""
    count = 0

    def note(_frame: FrameType, what: str, _argument: object) -> None:
        nonlocal count
        count += what in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
