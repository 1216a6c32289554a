"""Every test, in two lanes side by side: ``python -m tests.suite``.

Tests on the testbed mostly wait, for servers and for clocks; all others compute. One
lane waits while the other one computes. The one that computes gives way, so that
servers do not starve. What it says is shown at once; what is said on the testbed is
printed after it. Both together have to cover the core.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, NoReturn

LOG: Final = Path("build/testbed-tests.log")
MEASURED: Final = Path("build/coverage")
"""The folder for what each lane has covered."""

GRACE_S: Final = 30.0
LOOK_S: Final = 0.2
_KEPT: Final = {"PYTHONDONTWRITEBYTECODE": ""}
"""Compiled modules are kept, for tests start Ringleaf again and again."""


class Part(NamedTuple):
    """A command, and what its environment has besides ours."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = MappingProxyType({})


def _tests(name: str, testbed: str, *before: str) -> Part:
    measured = MEASURED / f".coverage.{testbed}"
    return Part(
        name,
        (*before, *_COVERAGE, "run", "-m", "pytest", "--durations=25"),
        {"RINGLEAF_TESTBED": testbed, "COVERAGE_FILE": str(measured)},
    )


_COVERAGE: Final = (sys.executable, "-m", "coverage")
COMPUTING: Final = _tests("tests without the testbed", "off", "nice", "-n", "5")
WAITING: Final = _tests("tests on the testbed", "only")
COVERED: Final = (
    Part("coverage of each lane", (*_COVERAGE, "combine", "--quiet", str(MEASURED))),
    Part("coverage of the core", (*_COVERAGE, "report")),
)

Statuses = dict[str, int]
"""Part -> its exit status."""


def run_in_turn(parts: Sequence[Part]) -> Statuses:
    """Run one after another, whatever becomes of each."""
    statuses = {}
    for part in parts:
        say(f"\n{part.name}:")
        with running(part) as process:
            statuses[part.name] = process.wait()
    return statuses


def run_beside(shown: Sequence[Part], told: Part, log: Path) -> Statuses:
    """Run *told* beside *shown*; what it prints comes last, and is kept in *log*."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output, running(told, output.fileno()) as process:
        statuses = run_in_turn(shown)
        say(f"\n{told.name}, which run beside these; {log} has this too:")
        _print_while_running(process, log)
        return statuses | {told.name: process.wait()}


@contextmanager
def running(part: Part, output: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """The process of *part*, which has ended afterwards.

    Where we have to leave early it is interrupted, so that pytest takes down what
    tests have set up. Ctrl-C interrupts it as well as us.
    """
    process = subprocess.Popen(  # noqa: S603 - our own command
        part.command,
        env={**os.environ, **_KEPT, **part.environment},
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
    )
    try:
        yield process
    except KeyboardInterrupt:
        raise
    except BaseException:
        process.send_signal(signal.SIGINT)
        raise
    finally:
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _print_while_running(process: subprocess.Popen[bytes], log: Path) -> None:
    with log.open("rb") as file:
        while True:
            has_ended = process.poll() is not None
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.flush()
            if has_ended:
                return
            time.sleep(LOOK_S)


def say(line: str) -> None:
    """Print *line* before whatever a child prints next."""
    print(line, flush=True)  # noqa: T201


def run(testbed: str) -> int:
    """The status of the tests that *testbed* asks for: off, only, or all."""
    if testbed not in ("", "off", "only"):
        say(f"RINGLEAF_TESTBED is {testbed!r}, want off, only or nothing")
        return 2
    shutil.rmtree(MEASURED, ignore_errors=True)
    MEASURED.mkdir(parents=True)
    match testbed:
        case "off":
            statuses = run_in_turn([COMPUTING, *COVERED])
        case "only":
            statuses = run_in_turn([WAITING])
        case _:
            statuses = run_beside([COMPUTING], WAITING, LOG) | run_in_turn(COVERED)
    say("")
    for name, status in statuses.items():
        say(f"{name}: {f'failed, status {status}' if status else 'passed'}")
    return next((status for status in statuses.values() if status), 0)


def leave(number: int, _frame: object) -> NoReturn:
    """End with the status of a process that a signal has ended."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, leave)
    try:
        sys.exit(run(os.environ.get("RINGLEAF_TESTBED", "")))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
