"""Hypothesis on a shared machine: no deadlines; in CI the same examples each time.

The fixtures of the testbed are for every folder.
"""

import os

from hypothesis import HealthCheck, settings

from tests.testbed.fixtures import (
    binaries,
    namespace,
    new_testbed,
    promtool,
    pytest_collection_modifyitems,
    pytest_terminal_summary,
    testbed,
)

__all__ = [
    "binaries",
    "namespace",
    "new_testbed",
    "promtool",
    "pytest_collection_modifyitems",
    "pytest_terminal_summary",
    "testbed",
]

settings.register_profile(
    "ringleaf",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ringleaf")
