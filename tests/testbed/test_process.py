import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest

from ringleaf_testbed.process import Child, free_port, growing_pauses, is_listening
from ringleaf_testbed.source import TestbedError

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"


def python(code: str, folder: Path) -> Child:
    return Child("snake", [sys.executable, "-c", code], folder / "snake.log")


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_child_is_asked_to_end(tmp_path: Path) -> None:
    child = python(SLEEP, tmp_path)
    child.wait_until(lambda: child.says("up"))

    child.stop()

    assert child.status == -signal.SIGTERM
    assert not is_alive(child.pid)


def test_a_stubborn_child_is_killed(tmp_path: Path) -> None:
    child = python(STUBBORN, tmp_path)
    child.wait_until(lambda: child.says("up"))

    child.stop(grace_s=0.1)

    assert child.status == -signal.SIGKILL


def test_a_child_that_ends_early_is_told_with_its_last_words(tmp_path: Path) -> None:
    child = python("import sys; sys.exit('no such flag')", tmp_path)

    with pytest.raises(TestbedError, match=r"snake ended with status 1: no such flag"):
        child.wait_until(lambda: False)


def test_a_slow_child_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    child = python(SLEEP, tmp_path)

    with pytest.raises(TestbedError, match="not ready after 0 s"):
        child.wait_until(lambda: False, patience_s=0.1)

    child.stop()


def test_a_child_dies_with_its_parent(tmp_path: Path) -> None:
    code = f"""
import pathlib, sys, time
from ringleaf_testbed.process import Child
child = Child("orphan", [sys.executable, "-c", {SLEEP!r}], pathlib.Path("orphan.log"))
child.wait_until(lambda: child.says("up"))
print(child.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)

        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()

    deadline = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(pid)


def test_nobody_listens_on_a_free_port() -> None:
    assert not is_listening(free_port())


def test_the_longer_a_condition_is_waited_for_the_longer_are_the_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter([0.0, 0.0, 0.1, 0.8, 60.0])  # the first is when waiting begins
    monkeypatch.setattr(time, "monotonic", lambda: next(times))

    assert list(islice(growing_pauses(), 4)) == [0.02, 0.02, 0.1, 0.25]
