"""How many examples properties draw, and which; fixtures of the testbed.

Hypothesis on a shared machine: no deadlines. A run draws the same examples each time,
but for a long one, which draws new ones.
"""

import pytest
from hypothesis import HealthCheck, settings

from tests.browser import NO_BROWSER, browser, chromium, leave_out_without_browser
from tests.effort import EFFORT, Effort, effort, examples
from tests.testbed.fixtures import (
    LEFT_OUT,
    TESTBED,
    binaries,
    leave_out_by_testbed,
    left_out,
    namespace,
    new_testbed,
    promtool,
    read_testbed,
    testbed,
)

__all__ = [
    "binaries",
    "browser",
    "chromium",
    "namespace",
    "new_testbed",
    "promtool",
    "testbed",
]


def pytest_configure() -> None:
    """Load the profile, before any test is imported."""
    try:
        tried = effort()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    settings.register_profile(
        "ringleaf",
        max_examples=examples(100),
        deadline=None,
        derandomize=tried is not Effort.LONG,  # and without a database of failures
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("ringleaf")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out what this run is not for, and count it."""
    config.stash[LEFT_OUT] = {
        f"{EFFORT}={effort()}": leave_out_by_effort(items),
        f"{TESTBED}={read_testbed()}": leave_out_by_testbed(items),
        NO_BROWSER: leave_out_without_browser(items),
    }
    gone = {*left_out(config)}
    if gone:
        config.hook.pytest_deselected(items=[*gone])
        items[:] = [item for item in items if item not in gone]


def leave_out_by_effort(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests of *items* that take too long for the effort of this run."""
    too_long = {Effort.QUICK: ("slow", "long"), Effort.TEST: ("long",)}
    marks = too_long.get(effort(), ())
    return [i for i in items if any(i.get_closest_marker(mark) for mark in marks)]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say how many tests were left out, and why."""
    for why, items in config.stash.get(LEFT_OUT, {}).items():
        if items:
            line = f"{why} left out {len(items)} tests"
            terminalreporter.write_line(line, yellow=True)
