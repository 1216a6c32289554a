"""Commands, called as a user calls them."""

import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import NamedTuple

import pytest

from ringleaf.cli.main import run


class Done(NamedTuple):
    """What a command did: its exit status, and what it printed where."""

    status: object
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Standard output without the blanks that pad lines."""
        return [line.rstrip() for line in self.out.splitlines()]


Ringleaf = Callable[..., Done]


@pytest.fixture
def ringleaf(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ringleaf:
    """The command line in this process; 80 columns wide, no terminal."""

    def call(*arguments: str, stdin: str | None = "", columns: int = 80) -> Done:
        stream = None if stdin is None else TextIOWrapper(BytesIO(stdin.encode()))
        monkeypatch.setattr(sys, "argv", ["ringleaf", *arguments])
        monkeypatch.setattr(sys, "stdin", stream)
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as left:
            run()
        return Done(left.value.code, *capfd.readouterr())

    return call


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[[str], str]:
    """Writes a scenario file and gives its name."""

    def write(text: str) -> str:
        path = tmp_path / "scenario.yaml"
        path.write_text(text)
        return str(path)

    return write
