"""Two parts beside each other are all tests, and each has its say."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ringleaf.testbed.cluster import Testbed
from tests.suite import Part, run, run_beside, run_in_turn

MIXED = "tests/kube/test_page.py"
"""A file that has tests of every part."""


def part(name: str, code: str) -> Part:
    return Part(name, (sys.executable, "-c", code), {"PART": name})


def collected(testbed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "pytest", "--collect-only", "-q", MIXED],
        env={**os.environ, "RINGLEAF_TESTBED": testbed},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_test_is_in_one_part() -> None:
    whole, without, only = (
        {line for line in collected(each).stdout.splitlines() if "::" in line}
        for each in ("", "off", "only")
    )

    assert without | only == whole
    assert without & only == set()
    assert without
    assert only


def test_another_word_for_the_testbed_is_refused() -> None:
    done = collected("of")

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "RINGLEAF_TESTBED is 'of', want off, only or nothing" in done.stderr
    assert run("of") == 2


def test_what_runs_beside_is_printed_after_what_is_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Though it has said all there is before the other one begins."""
    log = tmp_path / "deep" / "log"
    begin = f"import pathlib, time; log = pathlib.Path({str(log)!r})"
    wait = "\nwhile 'aside' not in log.read_text(): time.sleep(0.01)\n"
    shown = part("shown", f"{begin}{wait}import os; print(os.environ['PART'])")

    found = run_beside([shown], part("told", "print('aside')"), log)

    assert found == {"shown": 0, "told": 0}
    lines = capfd.readouterr().out.splitlines()
    assert [lines[2], lines[-1]] == ["shown", "aside"]
    assert log.read_text() == "aside\n"


def test_what_is_told_later_than_the_other_ends_is_printed_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flag = tmp_path / "flag"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(flag)!r}).exists(): "
    late = part("late", f"{wait}time.sleep(0.01)\ntime.sleep(0.3); print('late')")

    run_beside([part("soon", f"open({str(flag)!r}, 'w')")], late, tmp_path / "log")

    assert capfd.readouterr().out.endswith("late\n")


@pytest.mark.parametrize("statuses", [(0, 0, 0), (3, 0, 0), (0, 4, 0), (0, 0, 5)])
def test_every_part_is_run_and_its_status_counts(
    tmp_path: Path, statuses: tuple[int, int, int]
) -> None:
    *shown, told = (
        part(f"part {number}", f"raise SystemExit({status})")
        for number, status in enumerate(statuses)
    )

    found = run_beside(shown, told, tmp_path / "log")

    assert found == dict(zip(("part 0", "part 1", "part 2"), statuses, strict=True))
    assert run_in_turn(shown) == {"part 0": statuses[0], "part 1": statuses[1]}


PART = """
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # some shells ignore it
try:
    print(os.getpid(), file=open(os.environ["PART"], "w"), flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("tidy")
"""
SUITE = """
import pathlib, signal, sys
from tests import suite, test_suite
signal.signal(signal.SIGTERM, suite.leave)
one, two, log = sys.argv[1:]
one, two = (test_suite.part(each, test_suite.PART) for each in (one, two))
suite.run_beside([one], two, pathlib.Path(log))
"""


def test_whoever_ends_the_suite_ends_every_part(tmp_path: Path) -> None:
    """With an interrupt, so that they tidy up."""
    one, two, log = (tmp_path / each for each in ("one", "two", "log"))
    suite = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-c", SUITE, one, two, log], stdout=subprocess.PIPE
    )
    pids = [number_in(one), number_in(two)]

    suite.send_signal(signal.SIGTERM)
    said, _nothing = suite.communicate(timeout=60)

    assert suite.returncode == 128 + signal.SIGTERM
    assert said.endswith(b":\ntidy\n")
    assert log.read_text() == "tidy\n"
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def number_in(path: Path) -> int:
    Testbed.wait_for(
        lambda: path.exists() and path.read_text().endswith("\n"), path.name
    )
    return int(path.read_text())
