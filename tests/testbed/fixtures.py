"""The testbed as fixtures, for every folder of tests.

A test that needs it asks for ``testbed``, ``new_testbed`` or ``namespace``, and stands
below one of the paths of ``LANES``. Where the testbed is not built such a test fails;
``RINGLEAF_TESTBED=off`` leaves it out, and says so; ``RINGLEAF_TESTBED=only`` leaves
out all others.
"""

import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from ringleaf_testbed import build, source
from ringleaf_testbed.cluster import Testbed

TESTBED: Final = "RINGLEAF_TESTBED"
LANES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "stories": ("tests/stories",),
        "installing": ("tests/soak", "tests/deploy", "tests/shadow"),
        "asking": (
            "tests/summary",
            "tests/cli/test_dev.py",
            "tests/cli/test_first_cluster.py",
            "tests/cli/test_live_cluster.py",
            "tests/kube/test_alerts.py",
            "tests/kube/test_leader.py",
            "tests/kube/test_collector.py",
            "tests/kube/test_real.py",
            "tests/testbed",
        ),
    }
)
"""Where tests on the testbed are; each lane runs beside the others."""

LEFT_OUT: Final = pytest.StashKey[dict[str, list[pytest.Item]]]()
"""Why tests were left out -> these tests."""

_PATHS: Final = tuple(path for paths in LANES.values() for path in paths)


def leave_out_by_testbed(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests of *items* that ``RINGLEAF_TESTBED`` leaves out.

    Those that need the testbed (off), or all others (only).
    """
    said = read_testbed()
    strays = {i.location[0] for i in items if _needs_testbed(i) and not _is_in_lane(i)}
    if strays:
        raise pytest.UsageError(
            f"{min(strays)} has tests on the testbed, want it below a path of LANES "
            "in tests/testbed/fixtures.py"
        )
    if not said:
        return []
    return [item for item in items if _needs_testbed(item) == (said == "off")]


def left_out(config: pytest.Config) -> list[pytest.Item]:
    """The tests that this run has left out."""
    return [item for items in config.stash[LEFT_OUT].values() for item in items]


def read_testbed() -> str:
    """What ``RINGLEAF_TESTBED`` asks for: off, only, or nothing for all tests."""
    said = os.environ.get(TESTBED, "")
    if said not in ("", "off", "only"):
        raise pytest.UsageError(f"{TESTBED} is {said!r}, want off, only or nothing")
    return said


def _is_in_lane(item: pytest.Item) -> bool:
    path = item.location[0]
    return any(path == lane or path.startswith(f"{lane}/") for lane in _PATHS)


def _needs_testbed(item: pytest.Item) -> bool:
    return "binaries" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def binaries() -> None:
    """An API server is built; else the one line that says what is missing."""
    if problem := _missing():
        pytest.fail(f"testbed: {problem}", pytrace=False)


def _missing() -> str | None:
    try:
        for name in source.CONTROL_PLANE:
            source.command(name)
        source.files("crds")
    except source.TestbedError as error:
        return str(error)
    return None


@pytest.fixture(scope="session")
def promtool(binaries: None) -> Path:
    """Prometheus' own checker."""
    del binaries
    try:
        return build.program("promtool")
    except source.TestbedError as error:
        pytest.fail(f"testbed: {error}", pytrace=False)


@pytest.fixture(scope="session")
def new_testbed(binaries: None) -> type[Testbed]:
    """The class, for tests that want a testbed of their own."""
    del binaries
    return Testbed


@pytest.fixture(scope="session")
def testbed(new_testbed: type[Testbed]) -> Iterator[Testbed]:
    """One API server for all tests; its queue is open, nothing else runs."""
    with new_testbed(open_queue=True) as bed:
        yield bed


@pytest.fixture
def namespace(testbed: Testbed) -> Iterator[str]:
    """A namespace of the shared API server; its pods are deleted afterwards."""
    name = f"test-{secrets.token_hex(4)}"
    testbed.client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    path = f"/api/v1/namespaces/{name}/pods"
    testbed.client.ask("DELETE", path, {"gracePeriodSeconds": 0})
