"""How many examples a run draws, which tests it leaves out, and what it refuses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import EFFORT, assert_reached, examples


@pytest.mark.parametrize(
    ("effort", "of_400", "of_40", "of_3"),
    [("quick", 20, 5, 3), ("test", 100, 10, 3), ("", 100, 10, 3), ("long", 400, 40, 3)],
)
def test_a_run_draws_its_share_of_the_examples_and_five_at_least(
    monkeypatch: pytest.MonkeyPatch, effort: str, of_400: int, of_40: int, of_3: int
) -> None:
    monkeypatch.setenv(EFFORT, effort)

    assert [examples(n) for n in (400, 40, 3)] == [of_400, of_40, of_3]


def test_a_run_asserts_what_its_properties_reach_unless_it_is_quick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(EFFORT, "quick")
    assert_reached({}, "placed")
    monkeypatch.setenv(EFFORT, "test")
    assert_reached({"placed": 2}, "placed", times=2)
    with pytest.raises(AssertionError, match=r"\{'placed': 1\} below 2"):
        assert_reached({"placed": 1, "waiting": 9}, "placed", "waiting", times=2)


TESTS = """
import pytest
def test_plain(): pass
@pytest.mark.slow
def test_slow(): pass
@pytest.mark.long
def test_long(): pass
"""


def collected(effort: str, folder: Path) -> subprocess.CompletedProcess[str]:
    names = "pytest_configure, pytest_collection_modifyitems, pytest_terminal_summary"
    (folder / "conftest.py").write_text(f"from tests.conftest import {names}\n")
    (folder / "test_some.py").write_text(TESTS)
    marks = "--override-ini=markers=slow\nlong"
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "pytest", "-v", marks, f"--rootdir={folder}", folder],
        env={**os.environ, EFFORT: effort, "RINGLEAF_TESTBED": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("effort", "run", "n_left_out"),
    [
        ("quick", {"plain"}, 2),
        ("test", {"plain", "slow"}, 1),
        ("long", {"plain", "slow", "long"}, 0),
    ],
)
def test_a_run_leaves_out_what_takes_too_long_for_it_and_says_so(
    tmp_path: Path, effort: str, run: set[str], n_left_out: int
) -> None:
    out = collected(effort, tmp_path).stdout

    found = {name for name in ("plain", "slow", "long") if f"::test_{name} PASS" in out}
    assert found == run
    line = f"RINGLEAF_EFFORT={effort} left out {n_left_out} tests"
    assert (line in out.splitlines()) == (n_left_out > 0)


def test_an_unknown_effort_is_refused_in_one_line(tmp_path: Path) -> None:
    done = collected("fast", tmp_path)

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "RINGLEAF_EFFORT is 'fast', want quick, test or long" in done.stderr


BROWSER = """
def test_plain(): pass
def test_page(browser): assert not browser.errors
"""


def test_without_chromium_its_tests_are_left_out_and_counted(tmp_path: Path) -> None:
    names = "pytest_configure, pytest_collection_modifyitems, pytest_terminal_summary"
    (tmp_path / "conftest.py").write_text(
        f"from tests.conftest import browser, chromium, {names}\n"
    )
    (tmp_path / "test_some.py").write_text(BROWSER)
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "pytest", "-v", f"--rootdir={tmp_path}", tmp_path],
        env={**os.environ, "PATH": str(tmp_path), "RINGLEAF_TESTBED": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "::test_plain PASS" in done.stdout
    assert "::test_page" not in done.stdout
    line = "no Chromium (hint: apt-get install chromium) left out 1 tests"
    assert line in done.stdout.splitlines()
