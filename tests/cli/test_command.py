"""How the words of a call become the arguments of a function."""

from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import pytest

from ringleaf.cli.command import Command
from ringleaf.cli.failure import BadUse
from ringleaf.cli.parameter import Option, Positional, given
from ringleaf.cli.usage import help_of


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Shared(NamedTuple):
    """Paint.

    The first line is the heading.
    """

    colour: Annotated[Colour, Option("COLOUR", "The colour.")] = Colour.RED
    coats: Annotated[int, Option("N", "Coats.", least=1, most=3)] = 1


PLAIN = Shared()
SEEN: dict[str, Any] = {}


def paint(
    wall: Annotated[str, Positional("WALL", "The wall to paint.")],
    other: Annotated[str | None, Positional("OTHER", "One more.")] = None,
    *,
    width: Annotated[float, Option("M", "Width.", short="-w", least=0)] = 1.5,
    name: Annotated[list[str] | None, Option("NAME", "Painters.")] = None,
    dry: Annotated[bool, Option("", "Let it dry.")] = True,
    wet: Annotated[bool, Option("", "Keep it wet.")] = False,
    shared: Shared = PLAIN,
) -> int:
    """Paint a wall."""
    SEEN.update(locals())
    return 7


COMMAND = Command("paint", "Tools", paint, ["ringleaf paint north"])


def called(words: str) -> dict[str, Any]:
    SEEN.clear()
    assert COMMAND.call(words.split()) == 7
    return {**SEEN}


def test_what_is_not_given_is_at_its_default() -> None:
    assert called("north") == {
        "wall": "north",
        "other": None,
        "width": 1.5,
        "name": None,
        "dry": True,
        "wet": False,
        "shared": PLAIN,
    }


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        ("north --width 2", "width", 2.0),
        ("--width=2 north", "width", 2.0),
        ("north -w 2", "width", 2.0),
        ("north -w2", "width", 2.0),
        ("north -w=2", "width", 2.0),
        ("north --width 2 --width 3", "width", 3.0),
        ("north --name a --name b", "name", ["a", "b"]),
        ("north --no-dry", "dry", False),
        ("north --no-dry --dry", "dry", True),
        ("north --wet", "wet", True),
        ("north south", "other", "south"),
        ("--wet -- --north", "wall", "--north"),
        ("-", "wall", "-"),
        ("north --colour blue", "shared", Shared(Colour.BLUE)),
        ("north --coats 3", "shared", Shared(coats=3)),
        ("north --name=", "name", [""]),
    ],
)
def test_options_are_given_in_many_ways(words: str, key: str, value: object) -> None:
    assert called(words)[key] == value


HINT = "; hint: ringleaf paint --help"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("", f"WALL is missing, want the wall to paint{HINT}"),
        ("a b c", f"paint has the extra word 'c', want WALL OTHER{HINT}"),
        ("a --width", f"--width has no value, want M{HINT}"),
        ("a --width --wet", f"--width has no value, want M{HINT}"),
        ("a --width=x", f"--width is 'x', want a number, at least 0{HINT}"),
        ("a --width=-1", f"--width is -1, want a number, at least 0{HINT}"),
        ("a --width=inf", f"--width is inf, want a number, at least 0{HINT}"),
        ("a --coats=4", f"--coats is 4, want a whole number from 1 to 3{HINT}"),
        ("a --coats=1.5", f"--coats is '1.5', want a whole number from 1 to 3{HINT}"),
        ("a --colour=green", f"--colour is 'green', want red or blue{HINT}"),
        ("a --wet=no", f"--wet is 'no', want no value{HINT}"),
        ("a --color=red", "paint has no option '--color'; hint: did you mean "),
        ("a --qqq", f"paint has no option '--qqq'{HINT}"),
        ("a -q", f"paint has no option '-q'{HINT}"),
    ],
)
def test_what_is_wrong_with_a_call_is_one_line(words: str, line: str) -> None:
    with pytest.raises(BadUse) as raised:
        COMMAND.call(words.split())

    assert str(raised.value).startswith(line)


def test_an_option_is_not_abbreviated() -> None:
    with pytest.raises(BadUse, match="has no option '--wid'"):
        COMMAND.call(["north", "--wid", "2"])


def test_given_are_the_options_that_are_not_at_their_default() -> None:
    assert given(PLAIN) == {}
    assert given(Shared(coats=2)) == {"--coats": 2}


@pytest.mark.parametrize(
    ("words", "asked"), [("a -h", True), ("--help", True), ("a -- -h", False)]
)
def test_help_is_asked_for_before_two_dashes(words: str, *, asked: bool) -> None:
    assert COMMAND.wants_help(words.split()) is asked


def test_the_help_has_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    assert help_of(COMMAND) == (
        "Usage: ringleaf paint WALL [OTHER] [OPTIONS]\n\n"
        "  Paint a wall.\n\n"
        "Examples:\n"
        "  ringleaf paint north\n\n"
        "Arguments:\n"
        "  WALL   The wall to paint.\n"
        "  OTHER  One more.\n\n"
        "Options:\n"
        "  -w, --width M    Width. [default: 1.5]\n"
        "  --name NAME      Painters.\n"
        "  --dry, --no-dry  Let it dry.\n"
        "  --wet            Keep it wet.\n"
        "  -h, --help       Show this help.\n\n"
        "Paint:\n"
        "  --colour COLOUR  The colour. [default: red]\n"
        "  --coats N        Coats. [default: 1]"
    )
