"""Arguments of actions and plugins: what each wants, its default, what it does."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

Value = bool | int | float | str | tuple[Any, ...] | None
"""What an argument can be once it is read."""


MAX_NUMBER: Final = 1_000_000
"""The greatest number that any argument takes."""


class ArgumentKind(StrEnum):
    """What an argument wants; the value is the words for people."""

    WHOLE = "a whole number"
    NUMBER = "a number"
    SWITCH = "true or false"
    CHOICE = "one of"
    TEXT = "text"
    NAMES = "names, separated by commas"
    POINTS = "a list of {utilization, score}"


class Argument(Struct, frozen=True):
    """One argument; a key that ends in ``<resource>`` stands for any resource.

    Args:
        key: As it is written.
        kind: What it wants.
        default: What counts without it.
        meaning: One sentence.
        low: The least legal number.
        high: The greatest legal number.
        choices: The legal texts.
        without: What counts without it, in words, where the default is None.
        idle: Why Ringleaf does not heed it, if so; setting it is then a warning.

    """

    key: str
    kind: ArgumentKind
    default: Value
    meaning: str
    low: int = 0
    high: int = MAX_NUMBER
    choices: tuple[str, ...] = ()
    without: str = "none"
    idle: str = ""

    @property
    def has_effect(self) -> bool:
        """Whether Ringleaf heeds it."""
        return not self.idle

    @property
    def wanted(self) -> str:
        """What it wants, for messages.

        >>> from ringleaf.config.vocabulary import ACTIONS
        >>> ACTIONS["preempt"].arguments["minCandidateNodesPercentage"].wanted
        'a whole number from 0 to 100'
        """
        if self.choices:
            return " or ".join(f'"{choice}"' for choice in self.choices)
        if self.kind in (ArgumentKind.WHOLE, ArgumentKind.NUMBER):
            return f"{self.kind} from {self.low} to {self.high}"
        return self.kind


class Action(Struct, frozen=True):
    """One verb of the cycle."""

    name: str
    meaning: str
    arguments: Mapping[str, Argument]


class Question(Struct, frozen=True):
    """What plugins vote on, and how their answers combine."""

    name: str
    meaning: str
    combined: str


class Flag(Struct, frozen=True):
    """A switch of a plugin's votes; Volcano spells some *enable* and some *enabled*."""

    key: str
    default: bool
    votes: tuple[str, ...]


class Voter(Struct, frozen=True):
    """A plugin as it is described: where it votes, which arguments it takes."""

    name: str
    meaning: str
    votes: tuple[str, ...]
    arguments: Mapping[str, Argument]


_Row = TypeVar("_Row", Action, Question, Voter)


def keyed(*arguments: Argument) -> Mapping[str, Argument]:
    """Arguments by their keys."""
    return MappingProxyType({argument.key: argument for argument in arguments})


def named(*rows: _Row) -> Mapping[str, _Row]:
    """Rows by their names."""
    return MappingProxyType({row.name: row for row in rows})


def whole(
    key: str, default: int | None, meaning: str, low: int = 0, high: int = MAX_NUMBER
) -> Argument:
    """An argument that takes a whole number."""
    return Argument(key, ArgumentKind.WHOLE, default, meaning, low, high)


def switch(key: str, meaning: str, *, default: bool) -> Argument:
    """An argument that takes true or false."""
    return Argument(key, ArgumentKind.SWITCH, default, meaning)


def idle(why: str, *arguments: Argument) -> Iterator[Argument]:
    """The same arguments, accepted without effect."""
    return (replace(argument, idle=why) for argument in arguments)


ANY_RESOURCE: Final = "<resource>"
"""How the key of an argument ends that stands for any resource."""


def by_resource(arguments: Mapping[str, Value], prefix: str) -> dict[str, Any]:
    """The arguments that begin with *prefix*, by the resource that they end with.

    >>> by_resource({"factor": 1, "factor.cpu": 2}, "factor.")
    {'cpu': 2}
    """
    found = arguments.items()
    return {k.removeprefix(prefix): v for k, v in found if k.startswith(prefix)}


def find_argument(known: Mapping[str, Argument], key: object) -> Argument | None:
    """The row for *key*, also where one row stands for any resource.

    >>> from ringleaf.config.vocabulary import KNOWN_PLUGINS
    >>> listed = KNOWN_PLUGINS["binpack"].arguments
    >>> find_argument(listed, "binpack.resources.a/b").meaning
    'Weight of one of these resources.'
    """
    if not isinstance(key, str) or not key.isprintable():
        return None
    if key.endswith((ANY_RESOURCE, ".")):
        return None
    of_any = (
        argument
        for pattern, argument in known.items()
        if pattern.endswith(ANY_RESOURCE)
        and key.startswith(pattern.removesuffix(ANY_RESOURCE))
    )
    return known.get(key) or next(of_any, None)
