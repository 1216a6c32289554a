"""Signs of life: on a terminal only, and only where the work is slow."""

import sys
import time
from io import StringIO

import pytest

from ringleaf.cli import output
from ringleaf.cli.output import counted, progress
from tests.cli.conftest import Ringleaf


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch, patience_s: float) -> Terminal:
    """A terminal as standard error. No fixture: pytest would take it back."""
    shown = Terminal()
    monkeypatch.setattr(output, "PATIENCE_S", patience_s)
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return shown


def wait_for(terminal: Terminal, text: str) -> None:
    end = time.monotonic() + 20
    while text not in terminal.getvalue() and time.monotonic() < end:
        time.sleep(0.01)


def test_slow_work_shows_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch, 0.0)
    with progress(what="reading [/b]"):
        wait_for(terminal, "reading [/b]")

    assert "reading [/b]" in terminal.getvalue()


def test_slow_work_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch, 0.0)
    for number in counted(range(3), "deciding"):
        if number == 2:
            wait_for(terminal, "2 of 3")

    assert "2 of 3" in terminal.getvalue()


def test_quick_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch, 60.0)

    assert list(counted(range(3), "deciding")) == [0, 1, 2]
    assert terminal.getvalue() == ""


def test_nothing_is_shown_where_nobody_looks(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "PATIENCE_S", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress(what="reading"):
        time.sleep(0.05)

    assert capfd.readouterr() == ("", "")


def test_what_goes_wrong_goes_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch, 60.0)
    with pytest.raises(ValueError, match="bad"), progress(what="reading"):
        raise ValueError("bad")

    assert terminal.getvalue() == ""


@pytest.mark.parametrize("command", ["products", "policies", "workloads"])
def test_lines_of_a_table_end_without_blanks(ringleaf: Ringleaf, command: str) -> None:
    lines = ringleaf(command).lines

    assert len(lines) > 5
    assert [line for line in lines if line != line.rstrip()] == []
