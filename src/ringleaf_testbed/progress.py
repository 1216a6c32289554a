"""What is shown while the testbed is built."""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from ringleaf_testbed.source import TestbedError

WIDTH: Final = 79

MEMORY: Final = "400"
"""GOGC of the compiler: it collects garbage less often, for a tenth of its time."""

LINE_EVERY_S: Final = 30.0
"""Without a terminal, how often a step that is under way gets a line."""

ENOUGH_PACKAGES: Final = 100
"""Packages that must be compiled before their rate predicts anything."""


class Progress:
    """Shows the step under way, what is done and what is left.

    On a terminal one line is rewritten every second; elsewhere lines are added.

    Args:
        stream: Where it is shown.
        steps: The names of the steps, in order.
        packages: Go packages that all steps compile, at most.

    """

    def __init__(self, stream: TextIO, steps: Sequence[str], packages: int = 0) -> None:
        self.stream = stream
        self.packages = packages
        self._steps = list(steps)
        self._done = 0
        self._compiled = 0
        self._compiling_s = 0.0
        self._is_terminal = stream.isatty()

    def run(
        self,
        command: list[str],
        folder: Path,
        log: Path,
        packages: int = 0,
    ) -> None:
        """Run *command* as the next step; raises ``TestbedError`` when it fails."""
        log.parent.mkdir(parents=True, exist_ok=True)
        step, began = self._step, time.monotonic()
        next_line = began + LINE_EVERY_S
        if not self._is_terminal:
            self._write(f"{step} ...\n")
        with log.open("wb") as output, _running(command, folder, output) as child:
            while True:
                try:
                    status = child.wait(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    now = time.monotonic()
                    line = f"{step}, {self._state(log, packages, now - began)}"
                    if self._is_terminal:
                        self._write(f"\r{line:<{WIDTH}}")
                    elif now > next_line:
                        next_line = now + LINE_EVERY_S
                        self._write(f"{line}\n")
        if status:
            name = self._steps[self._done]
            raise TestbedError(f"{name}: {last_line(log)} (log: {log})")
        self._finish(f"{step}: done in {time.monotonic() - began:.0f} s{self._left()}")
        if packages:
            self._compiled += packages
            self._compiling_s += time.monotonic() - began

    def skip(self, packages: int = 0) -> None:
        """The next step was done by another process."""
        self._finish(f"{self._step}: built by another process{self._left()}")
        self.packages -= packages

    @property
    def _step(self) -> str:
        """The step that is next, or under way: its number and its name."""
        number, name = self._done + 1, self._steps[self._done]
        return f"testbed: {number} of {len(self._steps)}, {name}"

    def _state(self, log: Path, packages: int, running_s: float) -> str:
        """How far a step is: its packages and the time left, or else its seconds."""
        if not packages:
            return f"{running_s:.0f} s"
        compiled = min(log.read_bytes().count(b"\n"), packages)
        total_s, total = self._compiling_s + running_s, self._compiled + compiled
        told = f"{compiled:,} of {packages:,} packages"
        if total < ENOUGH_PACKAGES:
            return told
        left_s = total_s * (self.packages - total) / total
        return f"{told}, {max(left_s / 60, 1):.0f} min left in all"

    def _left(self) -> str:
        left = [each.partition(" v")[0] for each in self._steps[self._done + 1 :]]
        return f"; left: {', '.join(left)}" if left else ""

    def _finish(self, line: str) -> None:
        self._done += 1
        self._write(f"\r{line:<{WIDTH}}\n" if self._is_terminal else f"{line}\n")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


@contextmanager
def _running(
    command: list[str], folder: Path, output: object
) -> Iterator["subprocess.Popen[bytes]"]:
    environment = {"GOGC": MEMORY, **os.environ, "CGO_ENABLED": "0"}
    child = subprocess.Popen(  # noqa: S603 - our own command
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,  # type: ignore[call-overload]
        stderr=subprocess.STDOUT,
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()


def last_line(log: Path) -> str:
    """The last line of a *log*: what went wrong."""
    """The last line of a *log*: what went wrong."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "failed without a message"
