"""Values of a configuration: read by kind, and what is wrong with them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from ringleaf.config.arguments import (
    ANY_RESOURCE,
    Argument,
    ArgumentKind,
    Value,
    find_argument,
)
from ringleaf.config.conf import Path, Remark
from ringleaf.config.parameters import ELSEWHERE, PARAMETERS
from ringleaf.model.spelling import did_you_mean
from ringleaf.model.topology import quoted


def unquoted(found: object, kind: ArgumentKind) -> str | None:
    """A number or a switch in quotes counts; Volcano skips it."""
    number = kind in (ArgumentKind.WHOLE, ArgumentKind.NUMBER)
    pattern = r"-?[0-9]{1,18}(\.[0-9]{1,18})?" if number else r"(?i:true|false)"
    if kind in (ArgumentKind.TEXT, ArgumentKind.NAMES) or not isinstance(found, str):
        return None
    if not re.fullmatch(pattern, found):
        return None
    return f"write {found} without quotes; Volcano would ignore it"


def _as_whole(argument: Argument, found: object) -> Value:
    if isinstance(found, bool) or not isinstance(found, int):
        return None
    return found if argument.low <= found <= argument.high else None


def _as_number(argument: Argument, found: object) -> Value:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if argument.low <= found <= argument.high else None


def _as_switch(_argument: Argument, found: object) -> Value:
    if isinstance(found, str):
        return {"true": True, "false": False}.get(found.lower())
    return found if isinstance(found, bool) else None


def _as_choice(argument: Argument, found: object) -> Value:
    # nslb-version is often written as a number, 2.0 without quotes; YAML reads a bare
    # off as false.
    text = "off" if found is False else str(found)
    return text if text in argument.choices else None


def _as_text(_argument: Argument, found: object) -> Value:
    return found if isinstance(found, str) else None


def _as_names(_argument: Argument, found: object) -> Value:
    if not isinstance(found, str) or not found.isprintable():
        return None
    return tuple(name.strip() for name in found.split(",") if name.strip())


def _as_points(_argument: Argument, found: object) -> Value:
    if not isinstance(found, list):
        return None
    points = [_point(each) for each in found]
    return None if None in points else tuple(points)


def _point(found: object) -> tuple[int, int] | None:
    if not isinstance(found, dict) or set(found) != {"utilization", "score"}:
        return None
    utilization, score = found["utilization"], found["score"]
    if type(utilization) is not int or type(score) is not int:
        return None
    return (utilization, score)


READERS: Final[Mapping[ArgumentKind, Callable[[Argument, Any], Value]]] = {
    ArgumentKind.WHOLE: _as_whole,
    ArgumentKind.NUMBER: _as_number,
    ArgumentKind.SWITCH: _as_switch,
    ArgumentKind.CHOICE: _as_choice,
    ArgumentKind.TEXT: _as_text,
    ArgumentKind.NAMES: _as_names,
    ArgumentKind.POINTS: _as_points,
}
"""Each gives the value, or None for what the argument does not want."""


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """A question that names the most similar of *known*; None if none is similar."""
    return did_you_mean(name, known) or None


def path_words(path: Path) -> str:
    """*path* as people write it.

    >>> path_words(("tiers", 0, "plugins", 1, "name"))
    'tiers[0].plugins[1].name'
    """
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def value_words(value: object) -> str:
    """What was found, as people recognise it.

    >>> value_words(True), value_words([1]), value_words("5"), value_words({})
    ('true', 'a list', "'5'", 'a mapping')
    """
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return quoted(value)
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return str(value)[:60]


class Notes(Struct, frozen=True):
    """What is found on the way."""

    problems: list[Remark]
    warnings: list[Remark]

    def refuse(self, path: Path, text: str, hint: str | None = None) -> None:
        """What stands at *path* is wrong."""
        self.problems.append(Remark(path, text, hint))

    def warn(self, path: Path, text: str, hint: str | None = None) -> None:
        """What stands at *path* is odd."""
        self.warnings.append(Remark(path, text, hint))


class ConfEntry(Struct, frozen=True):
    """One of ``configurations``: where its arguments stand, and what they are."""

    path: Path
    arguments: object


def checked_mapping(
    notes: Notes, path: Path, found: object, keys: Sequence[str]
) -> Mapping[str, Any] | None:
    """*found* with its known keys, or None; everything else is a problem."""
    place = path_words(path) or "the configuration"
    if found is None:
        return {}
    if not isinstance(found, dict):
        first = ", ".join(keys[:2])
        notes.refuse(
            path, f"{place} is {value_words(found)}, want a mapping with {first}"
        )
        return None
    for key in found:
        if key not in keys:
            flag = "flag" if str(key).startswith("enable") else "key"
            hint = suggestion(str(key), keys) or f"it may have {', '.join(keys)}"
            text = f"{place} has the unknown {flag} {value_words(key)}"
            notes.refuse((*path, key), text, hint)
    return {key: found[key] for key in found if key in keys}


def checked_list(notes: Notes, path: Path, found: object, wanted: str) -> list[Any]:
    """*found* if it is a list; anything else is a problem."""
    if not isinstance(found, list | None):
        notes.refuse(path, f"{path_words(path)} is {value_words(found)}, want {wanted}")
        return []
    return found or []


def checked_arguments(
    notes: Notes, entry: ConfEntry, known: Mapping[str, Argument], owner: str
) -> Mapping[str, Value]:
    """Every argument in *known* with its value, read or by default."""
    values = {
        key: argument.default
        for key, argument in known.items()
        if not key.endswith(ANY_RESOURCE)
    }
    if not isinstance(entry.arguments, dict | None):
        text = f"{owner}: arguments is {value_words(entry.arguments)}, want a mapping"
        notes.refuse(entry.path, text)
        return values
    for key, found in (entry.arguments or {}).items():
        argument = find_argument(known, key)
        if argument is None:
            text = f"{owner}: unknown argument {value_words(key)}"
            notes.refuse((*entry.path, key), text, _argument_hint(known, key, owner))
            continue
        value = READERS[argument.kind](argument, found)
        if value is None:
            is_, want = value_words(found), argument.wanted
            text = f"{owner}: argument {quoted(key)} is {is_}, want {want}"
            notes.refuse((*entry.path, key), text, unquoted(found, argument.kind))
            continue
        values[key] = value
        if argument.idle:
            text = f"{owner}: argument {quoted(key)} has no effect: {argument.idle}"
            notes.warn((*entry.path, key), text)
    return values


def _argument_hint(known: Mapping[str, Argument], key: object, owner: str) -> str:
    if known is PARAMETERS and key in ELSEWHERE:
        return ELSEWHERE[str(key)]
    takes = f"takes {', '.join(known)}" if known else "takes no arguments"
    return suggestion(str(key), known) or f"{owner} {takes}"
