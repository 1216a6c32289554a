"""The testbed as fixtures, for every folder of tests.

A test that needs it asks for ``testbed``, ``new_testbed`` or ``namespace``. Where it is
not built such a test fails; ``RINGLEAF_TESTBED=off`` leaves it out, and says so;
``RINGLEAF_TESTBED=only`` leaves out all others.
"""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringleaf.testbed import debian, source
from ringleaf.testbed.cluster import Testbed

_LEFT_OUT = pytest.StashKey[list[pytest.Item]]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out what needs the testbed (off), or whatever does not (only)."""
    said = os.environ.get("RINGLEAF_TESTBED", "")
    if not said:
        return
    if said not in ("off", "only"):
        raise pytest.UsageError(
            f"RINGLEAF_TESTBED is {said!r}, want off, only or nothing"
        )
    config.stash[_LEFT_OUT] = [i for i in items if _needs_testbed(i) == (said == "off")]
    config.hook.pytest_deselected(items=left_out(config))
    items[:] = [item for item in items if _needs_testbed(item) != (said == "off")]


def left_out(config: pytest.Config) -> list[pytest.Item]:
    """The tests that ``RINGLEAF_TESTBED`` has left out."""
    return config.stash.get(_LEFT_OUT, [])


def _needs_testbed(item: pytest.Item) -> bool:
    return "binaries" in getattr(item, "fixturenames", ())


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if n_left_out := len(left_out(config)):
        said = os.environ.get("RINGLEAF_TESTBED")
        words = f"RINGLEAF_TESTBED={said} left out {n_left_out} tests"
        terminalreporter.write_line(words, yellow=True)


@pytest.fixture(scope="session")
def binaries() -> None:
    """An API server is built; else the one line that says what is missing."""
    if problem := _missing():
        pytest.fail(f"testbed: {problem}", pytrace=False)


def _missing() -> str | None:
    try:
        for name in ("etcd", "kube-apiserver", "kubectl"):
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
        return debian.program("promtool")
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
