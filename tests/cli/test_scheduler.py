"""The log of ``ringleaf scheduler``, and how it refuses to start."""

import io
import json

import pytest

from ringleaf.cli.scheduler import _log


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_a_line_of_the_log_is_json_without_what_is_empty(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _log()("bind", job="a/b", pods=2, warnings="", why=None)

    line = json.loads(capsys.readouterr().err)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"job": "a/b", "pods": 2, "event": "bind"}


def test_what_is_no_json_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    _log()("trouble", why=ValueError("no such thing"))

    assert json.loads(capsys.readouterr().err)["why"] == "no such thing"


@pytest.mark.parametrize("colour", [True, False])
def test_on_a_terminal_the_log_is_words(
    monkeypatch: pytest.MonkeyPatch, *, colour: bool
) -> None:
    out = Terminal()
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    _log()("bind", job="a/b", pods=2, warnings="")

    said = out.getvalue()
    assert "job=a/b pods=2\n" in said
    assert ("\x1b[" in said) is colour


def test_a_log_that_nobody_reads_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stderr", Broken())

    _log()("bind", job="a/b")
