"""Every command by its name, in the groups of the help; names of earlier releases."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from ringleaf.cli.command import Command
from ringleaf.cli.failure import BadUse, program
from ringleaf.cli.parameter import close_to

TRY, ASK, RUN, STUDY, TOOLS = GROUPS = (
    *("Try", "Ask a live cluster", "Run", "Study", "Tools"),
)
COMMANDS: Final[dict[str, Command]] = {}
"""The commands by name, in the order of the help."""

PARENTS: Final[Mapping[str, str]] = {
    "topology": "Check, draw or convert a list of leaf switches."
}
"""Words that several commands begin with, and what these do."""

OLD_NAMES: Final[Mapping[str, str]] = {
    "conf check": "check-conf",
    "conf": "check-conf",
    "shadow report": "shadow-report",
    "shadow": "shadow-report",
    "dev up": "dev",
    "summary": "summary-controller",
    "demo": "compare --demo",
    "fill": "compare --fill",
}
"""Names of earlier releases, which still work, and what they stand for."""

_F = TypeVar("_F", bound=Callable[..., int])


def command(
    group: str,
    *examples: str,
    name: str = "",
    forms: Sequence[tuple[str, str, str]] = (),
) -> Callable[[_F], _F]:
    """Make a function a command of *group*; *forms* are listed besides."""

    def register(function: _F) -> _F:
        own = name or function.__name__.replace("_", "-")
        COMMANDS[own] = Command(own, group, function, examples, forms)
        return function

    return register


def listed() -> dict[str, list[tuple[str, str]]]:
    """The rows of the help by group: what is typed, and what it does."""
    rows: dict[str, dict[str, str]] = {group: {} for group in GROUPS}
    for each in COMMANDS.values():
        for group, words, title in each.forms:
            rows[group][words] = title
    for each in COMMANDS.values():
        first = each.name.partition(" ")[0]
        rows[each.group][first] = PARENTS.get(first, each.title)
    return {group: [*titles.items()] for group, titles in rows.items()}


def without_old_names(words: Sequence[str]) -> list[str]:
    """The words of a call, by the names of today.

    >>> without_old_names(["conf", "check", "FILE"])
    ['check-conf', 'FILE']
    >>> without_old_names(["demo", "--json"])
    ['compare', '--demo', '--json']
    """
    for length in (2, 1):
        old = " ".join(words[:length])
        if len(words) >= length and old in OLD_NAMES:
            return [*OLD_NAMES[old].split(), *words[length:]]
    return [*words]


def find(words: Sequence[str]) -> tuple[Command | str, list[str]]:
    """The command that is called, or the word that several begin with; the rest.

    Raises:
        BadUse: There is no such command.

    """
    words = without_old_names(words)
    for length in (2, 1):
        name = " ".join(words[:length])
        if name in COMMANDS:
            return COMMANDS[name], words[length:]
    first = words[0]
    if first not in PARENTS:
        raise BadUse(_unknown(first, [*COMMANDS, *PARENTS, *OLD_NAMES]))
    if words[1:] and not words[1].startswith("-"):
        children = [each.name.split()[1] for each in children_of(first)]
        raise BadUse(_unknown(words[1], children, f"{first} "))
    return first, words[1:]


def children_of(parent: str) -> list[Command]:
    """The commands that begin with a word."""
    return [c for c in COMMANDS.values() if c.name.startswith(f"{parent} ")]


def _unknown(word: str, known: Sequence[str], before: str = "") -> str:
    guess = close_to(word, known)
    hint = f"did you mean {before + guess!r}?" if guess else ""
    hint = hint or f"{program()} {before}--help lists the commands"
    return f"unknown command {before + word!r}; hint: {hint}"
