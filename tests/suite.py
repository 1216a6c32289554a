"""Runs every test: ``python -m tests.suite [quick|test|long]``.

The suite is cut into parts, each a process with a log of its own. Two parts that
compute run at a time, one a core. Parts on the testbed mostly wait for servers and
clocks, so they run beside those, and come first where the machine is busy. While the
testbed is being built, the parts that compute are run already.

A part that passes gets one line; of a part that fails the log is printed.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, NoReturn, Self, TextIO
from xml.etree import ElementTree as ET

import pytest

from ringleaf_testbed import build
from tests.effort import EFFORT, Effort, effort
from tests.testbed.fixtures import LANES, TESTBED, read_testbed

LOGS: Final = Path("build/tests")
COVERAGE: Final = LOGS / ".coverage"
CORE: Final = (
    *("model", "policies", "config", "framework", "plugins", "actions", "engine"),
    "explain",
)
"""The layers whose own tests have to take every branch of them."""

RECORDED: Final = (
    "tests/policies/test_vectors.py",
    "tests/policies/test_network_vectors.py",
)
"""Recorded answers: the core is covered without them, for they may not be there."""

_OTHERS: Final = (
    *("tests/deploy", "tests/scenarios", "tests/shadow", "tests/soak", "tests/summary"),
    *("tests/testbed", "tests/test_effort.py", "tests/test_suite.py"),
    *(f"src/ringleaf/{each}" for each in ("baselines", "cli", "kube", "report")),
    *("src/ringleaf/simulator", "src/ringleaf/study", "src/ringleaf_testbed"),
)
COMPUTING: Final = 2
"""Parts that compute at the same time: one a core."""

GRACE_S: Final = 30.0
LOOK_S: Final = 0.1
N_SLOWEST: Final = 10
_PYTHON: Final = (sys.executable, "-m")
_PYTEST: Final = ("pytest", "-q", "-p", "no:cacheprovider")
_COVERAGE: Final = (*_PYTHON, "coverage")
_CHEAPER: Final = {"PYTHONDONTWRITEBYTECODE": "", "GOGC": "800"}
"""Compiled modules are kept, for tests start Ringleaf again and again; servers of the
testbed collect garbage less often, which saves a third of what it costs to start one.
"""

BUILDING, YIELDING, WAITING = 5, 15, 0
"""How nice processes are: the testbed's servers first, then its build, then others."""


class Part(NamedTuple):
    """A command, how nice it is, and what its environment has besides ours."""

    name: str
    command: Sequence[str]
    niceness: int = YIELDING
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def log(self) -> Path:
        """What it printed."""
        return LOGS / f"{self.name.replace(' ', '-')}.log"

    @property
    def results(self) -> Path:
        """Its tests one by one, where it runs pytest."""
        return self.log.with_suffix(".xml")


def without_testbed(name: str, *paths: str, runner: Sequence[str] = _PYTHON) -> Part:
    """The tests below *paths* that need no testbed; *runner* runs pytest."""
    part = Part(name, ())
    command = (*runner, *_PYTEST, f"--junitxml={part.results}", *paths)
    return part._replace(command=command, environment=((TESTBED, "off"),))


def on_testbed(name: str, *paths: str) -> Part:
    """The tests below *paths* that need the testbed."""
    part = without_testbed(name, *paths)
    return part._replace(niceness=WAITING, environment=((TESTBED, "only"),))


BUILDER: Final = Part(
    "building the testbed", (*_PYTHON, "ringleaf_testbed.build"), BUILDING
)
CHECKS: Final = Part(
    "checks", ("make", "--no-print-directory", "check", f"VENV={sys.prefix}")
)
COVERED: Final = Part(
    "coverage of the core", (*_COVERAGE, "report", f"--data-file={COVERAGE}")
)
MUTANTS: Final = Part("mutants of tables", (*_PYTHON, "tests.mutate"))


class Result(NamedTuple):
    """What came of a part."""

    part: Part
    status: int
    seconds: float
    cpu_s: float = 0.0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    slowest: Sequence[tuple[float, str]] = ()

    def __str__(self) -> str:
        """One line: counts where there are tests, and the time."""
        counts = f"{self.passed} passed, {self.failed} failed"
        if self.skipped:
            counts += f", {self.skipped} skipped"
        if not self.passed + self.failed + self.skipped:
            counts = "passed" if not self.status else f"failed, status {self.status}"
        elif self.status and not self.failed:
            counts += f", status {self.status}"
        took = f"{clock(self.seconds)}, processor {clock(self.cpu_s)}"
        return f"{self.part.name}: {counts} in {took}"


def read_result(part: Part, status: int, seconds: float, cpu_s: float = 0.0) -> Result:
    """The result of *part*, with its tests where it ran pytest."""
    found = Result(part, status, seconds, cpu_s)
    if not part.results.exists():
        return found
    times = []
    for case in ET.parse(part.results).getroot().iter("testcase"):  # noqa: S314 - ours
        kinds = {child.tag for child in case}
        name = f"{case.get('classname')}::{case.get('name')}"
        times.append((float(case.get("time", 0)), name))
        found = found._replace(
            passed=found.passed + (not kinds & {"failure", "error", "skipped"}),
            failed=found.failed + bool(kinds & {"failure", "error"}),
            skipped=found.skipped + ("skipped" in kinds),
        )
    return found._replace(slowest=sorted(times, reverse=True)[:N_SLOWEST])


class Processes:
    """The parts under way; those that are left at the end are interrupted.

    An interrupt lets pytest take down what its tests have set up.
    """

    def __init__(self) -> None:
        self._running: dict[Part, tuple[subprocess.Popen[bytes], float]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        if kind is not KeyboardInterrupt:  # Ctrl-C is for the children as well
            for process, _began in self._running.values():
                process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + GRACE_S
        for process, _began in self._running.values():
            try:
                process.wait(max(deadline - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @property
    def parts(self) -> list[Part]:
        """The parts under way, the oldest first."""
        return [*self._running]

    def start(self, part: Part) -> None:
        """Start *part*; what it prints goes into its log."""
        part.log.parent.mkdir(parents=True, exist_ok=True)
        part.results.unlink(missing_ok=True)
        with part.log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - our own command
                ("nice", "-n", str(part.niceness), *part.command),  # noqa: S607
                env={**os.environ, **_CHEAPER, **dict(part.environment)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._running[part] = process, time.monotonic()

    def ended(self) -> list[Result]:
        """The results of parts that have ended since the last call."""
        found = []
        for part, (process, began) in list(self._running.items()):
            pid, told, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(told)
                del self._running[part]
                seconds, cpu_s = time.monotonic() - began, used.ru_utime + used.ru_stime
                found.append(read_result(part, process.returncode, seconds, cpu_s))
        return found


class Screen:
    """Lines as things happen; on a terminal, below them, what is under way."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._began = time.monotonic()
        self._is_terminal = self._stream.isatty()
        self._read: dict[Path, int] = {}

    def say(self, line: str) -> None:
        """Print *line*, in place of what is under way."""
        erase = "\r\x1b[K" if self._is_terminal else ""
        print(f"{erase}{line}", file=self._stream, flush=True)

    def show(self, parts: Sequence[Part], n_left: int) -> None:
        """On a terminal, show which parts run, and how far each is."""
        if self._is_terminal and parts:
            names = ", ".join(f"{part.name} {percent(part.log)}" for part in parts)
            since = clock(time.monotonic() - self._began)
            line = f"{since}  {names}" + (f"; {n_left} to come" if n_left else "")
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{line[:width]}")
            self._stream.flush()

    def follow(self, log: Path) -> None:
        """Print the lines that were added to *log* since the last call."""
        with log.open("rb") as file:
            file.seek(self._read.get(log, 0))
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read[log] = self._read.get(log, 0) + len(whole)
        for line in whole.decode(errors="replace").splitlines():
            self.say(line)


def percent(log: Path) -> str:
    """How far pytest is, as it says itself."""
    with log.open("rb") as file:
        file.seek(max(log.stat().st_size - 200, 0))
        found = re.findall(rb"\[ *(\d+)%\]", file.read())
    return f"{int(found[-1])} %" if found else "..."


def clock(seconds: float) -> str:
    """Minutes and seconds.

    >>> clock(75.2)
    '1:15 min'
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d} min"


def run_parts(
    computing: Iterable[Part],
    waiting: Iterable[Part] = (),
    builder: Part | None = None,
    is_ready: Callable[[], bool] = build.is_ready,
) -> list[Result]:
    """Run every part, whatever becomes of the others; gives their results.

    Those that are *waiting* begin when the testbed *is_ready*, or has been built in
    vain: their tests say what is missing.
    """
    to_compute, to_wait = list(computing), list(waiting)
    results: list[Result] = []
    screen = Screen()
    with Processes() as processes:
        if builder is not None:
            processes.start(builder)
        while to_compute or to_wait or processes.parts:
            at_work = sum(part.niceness == YIELDING for part in processes.parts)
            for part in to_compute[: COMPUTING - at_work]:
                processes.start(part)
                to_compute.remove(part)
            if to_wait and (builder not in processes.parts or is_ready()):
                processes.start(to_wait.pop(0))
            if builder is not None:
                screen.follow(builder.log)
            for result in processes.ended():
                results.append(result)
                report(screen, result)
            screen.show(processes.parts, len(to_compute) + len(to_wait))
            time.sleep(LOOK_S)
    return results


def report(screen: Screen, result: Result) -> None:
    """Print what came of a part: its line, and its log where it failed."""
    if result.status:
        screen.say(f"\n{result.part.name} ({result.part.log}):")
        screen.follow(result.part.log)
    screen.say(str(result))


def summarize(results: Sequence[Result]) -> list[str]:
    """The slowest tests, and the counts of all of them."""
    slowest = sorted((each for r in results for each in r.slowest), reverse=True)
    lines = ["", f"the {N_SLOWEST} slowest tests:"]
    lines += [f"{seconds:7.1f} s  {name}" for seconds, name in slowest[:N_SLOWEST]]
    failed = [str(r) for r in results if r.status]
    lines += ["", *failed] if failed else [""]
    passed = sum(result.passed for result in results)
    n_failed = sum(result.failed for result in results)
    skipped = sum(result.skipped for result in results)
    return [*lines, f"{passed} passed, {n_failed} failed, {skipped} skipped"]


def computing_parts(asked: Effort) -> list[Part]:
    """The parts that need no testbed; those that take longest begin first."""
    measured = (*_COVERAGE, "run", f"--data-file={COVERAGE}", "-m")
    core = without_testbed(
        "core",
        *(f"tests/{layer}" for layer in CORE),
        *(f"src/ringleaf/{layer}" for layer in CORE),
        *(f"--ignore={path}" for path in RECORDED),
        runner=_PYTHON if asked is Effort.QUICK else measured,
    )
    commands = ("tests/cli", "tests/docs", "tests/study", "tests/report")
    checks = [] if asked is Effort.QUICK else [CHECKS]
    return [
        without_testbed("commands", *commands),
        without_testbed("edges", "tests/kube", *_OTHERS),
        without_testbed("properties", "tests/properties", *RECORDED),
        without_testbed("simulator", "tests/simulator", "tests/baselines"),
        core,
        *checks,
    ]


def testbed_parts() -> list[Part]:
    """The parts on the testbed; they run beside each other."""
    return [on_testbed(f"{name} on the testbed", *LANES[name]) for name in LANES]


def run(asked: Effort, testbed: str) -> int:
    """The exit status of the tests that are *asked* for, and of those by *testbed*."""
    began = time.monotonic()
    shutil.rmtree(LOGS, ignore_errors=True)
    on_it = asked is not Effort.QUICK and testbed != "off"
    results = run_parts(
        computing_parts(asked) if testbed != "only" else (),
        testbed_parts() if on_it else (),
        BUILDER if on_it else None,
    )
    if COVERAGE.exists():
        results += run_parts([COVERED])
    if asked is Effort.LONG:
        results += run_parts([MUTANTS])
    screen = Screen()
    for line in summarize(results):
        screen.say(line)
    cpu_s = sum(each.cpu_s for each in results)
    screen.say(f"in {clock(time.monotonic() - began)}, processor {clock(cpu_s)}")
    return next((each.status for each in results if each.status), 0)


def leave(number: int, _frame: object) -> NoReturn:
    """End with the status of a process that a signal has ended."""
    sys.exit(128 + number)


def main() -> int:
    """Run what the command line and the environment ask for."""
    try:
        os.environ[EFFORT] = sys.argv[1] if len(sys.argv) > 1 else Effort.TEST
        asked, testbed = effort(), read_testbed()
    except (ValueError, pytest.UsageError) as error:
        print(f"tests: {error}", file=sys.stderr)  # noqa: T201
        return 2
    signal.signal(signal.SIGTERM, leave)
    try:
        return run(asked, testbed)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
