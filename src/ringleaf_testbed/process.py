"""One command of the testbed as a child process, with a log and a bounded wait."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ringleaf_testbed.source import TestbedError

LAUNCH: Final = Path(__file__).with_name("launch.py")
PORTS: Final = range(20_000, 32_000)
"""Below the ports that the kernel gives to outgoing connections (from 32,768)."""

PATIENCE_S: Final = 60.0
GRACE_S: Final = 5.0
LOG_TAIL: Final = 5
SHORTEST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 0.25


class Child:
    """A running command.

    It is ended by its process id, and the kernel kills it when the thread that started
    it ends: start children from a thread that lives as long as they shall.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.command = [str(word) for word in command]
        self.log = log
        launch = [sys.executable, "-I", "-S", str(LAUNCH), str(os.getpid())]
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [*launch, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,  # Ctrl-C is for us; we end our children
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def status(self) -> int | None:
        """Its exit status, once it has ended."""
        return self._process.poll()

    def wait_until(
        self, ready: Callable[[], bool], patience_s: float = PATIENCE_S
    ) -> None:
        """Wait until it is *ready*; raises ``TestbedError`` when it ends or is slow."""
        deadline = time.monotonic() + patience_s
        pauses = growing_pauses()
        while not ready():
            if not self.is_running:
                raise TestbedError(
                    f"{self.name} ended with status {self.status}: {self.last_words()}"
                )
            if time.monotonic() > deadline:
                raise TestbedError(
                    f"{self.name} is not ready after {patience_s:.0f} s: "
                    f"{self.last_words()}"
                )
            time.sleep(next(pauses))

    def last_words(self) -> str:
        """The end of its log in one line, and where the log is."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        tail = [line.strip() for line in text.splitlines() if line.strip()][-LOG_TAIL:]
        return f"{' | '.join(tail)[-1000:] or 'it said nothing'} (log: {self.log})"

    def says(self, words: str) -> bool:
        """Whether its log has *words*."""
        return words in self.log.read_text(encoding="utf-8", errors="replace")

    def stop(self, grace_s: float = GRACE_S) -> None:
        """End it: ask, then kill. Nothing happens when it has ended."""
        if self.is_running:
            self._process.terminate()
            try:
                self._process.wait(grace_s)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self.is_running:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def growing_pauses() -> Iterator[float]:
    """Seconds between two looks: short at first, then an eighth of the time so far.

    A condition that takes long to become true is not asked for all the time, and what
    soon becomes true is soon seen.
    """
    began = time.monotonic()
    while True:
        waited = time.monotonic() - began
        yield min(max(waited / 8, SHORTEST_PAUSE_S), LONGEST_PAUSE_S)


def free_port() -> int:
    """A loopback port that no process listens on right now.

    Outgoing connections never take it; another process that looks for one at the same
    time may, so a caller that starts a server tries again with another one.
    """
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise TestbedError(f"no free port from {PORTS.start} to {PORTS.stop - 1}")


def is_listening(port: int) -> bool:
    """Whether a process answers on the loopback *port*."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
