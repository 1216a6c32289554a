"""Every transcript in the pages is what the program prints today."""

import re
import shlex
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.cli.conftest import Ringleaf, ringleaf
from tests.docs.pages import ROOT, blocks, joined

__all__ = ["ringleaf"]

OMITTED = "…"
COLUMNS = 88
DEMO = "ringleaf demo"


class Transcript(NamedTuple):
    """A command as the reader types it, and what is printed below it."""

    where: str
    command: str
    printed: str


def transcripts() -> list[Transcript]:
    found = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
            command, _newline, printed = joined(part).partition("\n")
            where = f"{block.page}:{block.line}"
            found.append(Transcript(where, by_make(command), printed))
    return [each for each in found if each.command.startswith("ringleaf ")]


def by_make(command: str) -> str:
    """What a target of the Makefile calls, where that is one command of ours."""
    target = command.removeprefix("make ")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = rf"^{re.escape(target)}:.*\n\t@\$\(BIN\)/(ringleaf .*)\n(?!\t)"
    called = re.search(recipe, makefile, re.MULTILINE)
    return called[1] if called and target != command else command


def plain(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines())


def pattern(printed: str) -> str:
    """A line with only an ellipsis stands for any lines."""
    return "".join(
        r"(?:.*\n)*?" if line == OMITTED else re.escape(line) + r"\n"
        for line in plain(printed).splitlines()
    )


@pytest.fixture
def printed_by(
    ringleaf: Ringleaf, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], str]:
    """Runs a command at the root of the project; gives what it prints."""
    monkeypatch.chdir(ROOT)

    def run(command: str) -> str:
        done = ringleaf(*shlex.split(command)[1:], columns=COLUMNS)
        return plain(done.out + done.err)

    return run


def cases() -> list[object]:
    """Every transcript; the demo takes half a minute, and has small tests besides."""
    return [
        pytest.param(
            each,
            id=f"{each.where} {each.command}",
            marks=pytest.mark.long if each.command == DEMO else pytest.mark.slow,
        )
        for each in transcripts()
    ]


@pytest.mark.parametrize("transcript", cases())
def test_the_transcript_is_what_the_program_prints(
    transcript: Transcript, printed_by: Callable[[str], str]
) -> None:
    printed = printed_by(transcript.command)

    if OMITTED in transcript.printed.splitlines():
        assert re.fullmatch(pattern(transcript.printed), printed), printed
    else:
        assert printed == plain(transcript.printed)


def test_a_console_block_begins_with_a_command() -> None:
    bad = [b for b in blocks("console") if not b.body.startswith("$ ")]

    assert bad == []


def test_the_readme_shows_the_demo_a_plan_and_an_explanation() -> None:
    commands = [t.command for t in transcripts() if t.where.startswith("README.md")]

    shown = [command.split()[1] for command in commands]
    assert shown == ["demo", "plan", "explain"]


@pytest.mark.parametrize(
    ("printed", "fits"),
    [
        ("a\nb\nc\n", True),
        ("a\n…\nc\n", True),
        ("…\nc\n", True),
        ("a\n…\n", True),
        ("a\n…\nb\n", False),
        ("a\nc\n", False),
    ],
)
def test_an_ellipsis_omits_whole_lines(printed: str, *, fits: bool) -> None:
    assert bool(re.fullmatch(pattern(printed), "a\nb\nc\n")) is fits
