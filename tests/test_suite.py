"""Every test is in one part, every part is run, and a failure is reported."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ringleaf_testbed.cluster import Testbed
from tests import suite
from tests.effort import Effort
from tests.suite import Part, Result, Screen, computing_parts, run_parts
from tests.testbed.fixtures import LANES

ROOT = Path(__file__).parents[1]
MIXED = "tests/kube/test_collector.py"
"""A file with tests that need the testbed, and tests that do not."""

Python = Callable[..., Part]


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Python:
    """Makes a part that runs Python code; logs go to a folder of the test."""
    monkeypatch.setattr(suite, "LOGS", tmp_path / "logs")

    def part(name: str, code: str, niceness: int = suite.YIELDING) -> Part:
        environment = (("PART", name),)
        return Part(name, (sys.executable, "-c", code), niceness, environment)

    return part


def statuses(results: list[Result]) -> dict[str, int]:
    return {result.part.name: result.status for result in results}


# Parts


def collected(testbed: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *options],
        env={**os.environ, "RINGLEAF_TESTBED": testbed},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_test_needs_the_testbed_or_does_not() -> None:
    whole, without, only = (
        {line for line in collected(each, MIXED).stdout.splitlines() if "::" in line}
        for each in ("", "off", "only")
    )

    assert without | only == whole
    assert without & only == set()
    assert without
    assert only


@pytest.mark.parametrize("effort", Effort)
def test_every_file_with_tests_is_in_one_part(effort: Effort) -> None:
    """A new folder of tests must be added to a part."""
    parts = [
        [word for word in part.command if word.startswith(("tests/", "src/"))]
        for part in computing_parts(effort)
    ]
    ignored = [
        {word.removeprefix("--ignore=") for word in part.command}
        for part in computing_parts(effort)
    ]
    files = {p.relative_to(ROOT).as_posix() for p in ROOT.glob("tests/**/test_*.py")}
    files |= {p.relative_to(ROOT).as_posix() for p in ROOT.glob("src/ringleaf/*/*.py")}
    stories = {file for file in files if file.startswith("tests/stories/")}

    found = {
        file: sum(
            any(file == path or file.startswith(f"{path}/") for path in paths)
            and (file not in left_out or file in paths)
            for paths, left_out in zip(parts, ignored, strict=True)
        )
        for file in files - stories
    }

    assert {file for file, n_parts in found.items() if n_parts != 1} == set()


def test_every_path_of_a_lane_exists() -> None:
    paths = [path for paths in LANES.values() for path in paths]

    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.slow
def test_a_test_on_the_testbed_outside_the_lanes_is_refused(tmp_path: Path) -> None:
    """Otherwise no lane would run it."""
    names = "binaries, new_testbed, testbed, pytest_collection_modifyitems"
    (tmp_path / "conftest.py").write_text(f"from tests.conftest import {names}\n")
    (tmp_path / "test_stray.py").write_text("def test_stray(testbed): pass\n")

    done = collected("", f"--rootdir={tmp_path}", str(tmp_path))

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "test_stray.py has tests on the testbed, want it below" in done.stderr


@pytest.mark.slow
def test_another_word_for_the_testbed_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "RINGLEAF_TESTBED is 'of', want off, only or nothing"
    done = collected("of", MIXED)

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert words in done.stderr
    monkeypatch.setenv("RINGLEAF_TESTBED", "of")
    monkeypatch.setenv("RINGLEAF_EFFORT", "")  # to be put back
    monkeypatch.setattr(sys, "argv", ["suite"])
    assert suite.main() == 2
    assert capsys.readouterr().err == f"tests: {words}\n"


def test_an_unknown_effort_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RINGLEAF_EFFORT", "")  # to be put back
    monkeypatch.setattr(sys, "argv", ["suite", "fast"])

    assert suite.main() == 2
    words = "RINGLEAF_EFFORT is 'fast', want quick, test or long"
    assert capsys.readouterr().err == f"tests: {words}\n"


# Running


@pytest.mark.parametrize("codes", [(0, 0, 0), (3, 0, 0), (0, 4, 0), (0, 0, 5)])
def test_every_part_is_run_whatever_becomes_of_the_others(
    python: Python, codes: tuple[int, int, int]
) -> None:
    one, two, three = (
        python(f"part {number}", f"raise SystemExit({code})")
        for number, code in enumerate(codes)
    )

    found = run_parts([one, two], [three._replace(niceness=suite.WAITING)])

    names = ("part 0", "part 1", "part 2")
    assert statuses(found) == dict(zip(names, codes, strict=True))


def test_of_a_part_that_fails_the_log_is_printed(
    python: Python, capfd: pytest.CaptureFixture[str]
) -> None:
    run_parts([python("good", "print('well')"), python("bad", "print('why'); exit(1)")])

    lines = capfd.readouterr().out.splitlines()
    assert "well" not in lines
    assert lines[lines.index("why") + 1].startswith("bad: failed, status 1 in 0:0")


def test_the_processor_time_of_a_part_is_that_of_its_children_too(
    python: Python,
) -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    (found,) = run_parts([python("burns", child)])

    assert found.cpu_s > 0.3


def test_no_more_parts_compute_at_once_than_there_are_cores(
    python: Python, tmp_path: Path
) -> None:
    code = f"""
import os, pathlib, time
here = pathlib.Path({str(tmp_path)!r})
(here / f"{{os.environ['PART']}}.begun").touch()
n_begun = lambda: len([*here.glob("*.begun")])
n_running = lambda: n_begun() - len([*here.glob("*.done")])
deadline = time.monotonic() + 60
while n_running() < {suite.COMPUTING} and n_begun() < 4 and time.monotonic() < deadline:
    time.sleep(0.01)
time.sleep(0.1)  # a third one would begin
print(n_running())
(here / f"{{os.environ['PART']}}.done").touch()
"""
    parts = [python(f"p{number}", code) for number in range(4)]

    run_parts(parts)

    counts = {int(part.log.read_text()) for part in parts}
    assert max(counts) == suite.COMPUTING


BUILD = """
import pathlib, time
log = pathlib.Path({log!r})
while not (log.exists() and log.read_text()):
    time.sleep(0.01)
pathlib.Path({path!r}).touch()
print("built")
"""


def test_parts_on_the_testbed_begin_when_it_is_built(
    python: Python, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Others begin before; the build prints what it does."""
    built = tmp_path / "built"
    computing = python("computing", f"import os; print(os.path.exists({str(built)!r}))")
    code = BUILD.format(log=str(computing.log), path=str(built))
    builder = python("builder", code, suite.BUILDING)
    check = f"import os; assert os.path.exists({str(built)!r})"
    waiting = python("waiting", check, suite.WAITING)

    found = run_parts([computing], [waiting], builder, built.exists)

    assert statuses(found) == {"computing": 0, "builder": 0, "waiting": 0}
    assert computing.log.read_text() == "False\n"
    assert "built" in capfd.readouterr().out.splitlines()


def test_parts_on_the_testbed_fail_where_it_cannot_be_built(python: Python) -> None:
    """Each of their tests says what is missing."""
    builder = python("builder", "print('no Go'); exit(2)", suite.BUILDING)
    waiting = python("waiting", "exit(1)", suite.WAITING)

    found = run_parts([], [waiting], builder, lambda: False)

    assert statuses(found) == {"builder": 2, "waiting": 1}


def test_counts_and_slowest_tests_are_those_of_all_parts(
    python: Python, tmp_path: Path
) -> None:
    tests = tmp_path / "test_some.py"
    tests.write_text(
        "import pytest, time\n"
        "def test_good(): time.sleep(0.2)\n"
        "def test_bad(): assert False\n"
        "@pytest.fixture\n"
        "def broken(): assert False\n"
        "def test_error(broken): pass\n"
        "@pytest.mark.skip\n"
        "def test_left_out(): pass\n"
    )
    del python  # logs go to a folder of this test
    part = suite.without_testbed("some", f"--rootdir={tmp_path}", str(tests))

    results = run_parts([part])

    assert statuses(results) == {"some": 1}
    lines = suite.summarize(results)
    assert lines[-1] == "1 passed, 2 failed, 1 skipped"
    assert lines[-2].startswith("some: 1 passed, 2 failed, 1 skipped in ")
    assert lines[2].endswith(" s  test_some::test_good")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_parts_under_way_are_shown(
    python: Python, tmp_path: Path
) -> None:
    part = python("core", "")
    part.log.parent.mkdir(parents=True)
    part.log.write_text("..... [ 40%]\n.... [ 45%]\n..")
    terminal = Terminal()

    screen = Screen(terminal)
    screen.show([part], 3)
    screen.say("done")

    assert terminal.getvalue().startswith("\r\x1b[K0:00 min  core 45 %; 3 to come")
    assert terminal.getvalue().endswith("\r\x1b[Kdone\n")
    del tmp_path


# Ending

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
from tests import suite
signal.signal(signal.SIGTERM, suite.leave)
code, logs, one, two = sys.argv[1:]
suite.LOGS = pathlib.Path(logs)
one, two = (
    suite.Part(name, (sys.executable, "-c", code), environment=(("PART", path),))
    for name, path in (("one", one), ("two", two))
)
suite.run_parts([one], [two._replace(niceness=suite.WAITING)])
"""


def test_a_suite_that_is_ended_ends_every_part(tmp_path: Path) -> None:
    """With an interrupt, so that pytest takes down what tests have set up."""
    one, two, logs = (tmp_path / each for each in ("one", "two", "logs"))
    child = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-c", SUITE, PART, logs, one, two], stdout=subprocess.PIPE
    )
    pids = [number_in(one), number_in(two)]

    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)

    assert child.returncode == 128 + signal.SIGTERM
    assert [(logs / f"{each}.log").read_text() for each in ("one", "two")] == [
        "tidy\n",
        "tidy\n",
    ]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def number_in(path: Path) -> int:
    Testbed.wait_for(
        lambda: path.exists() and path.read_text().endswith("\n"), path.name
    )
    return int(path.read_text())
