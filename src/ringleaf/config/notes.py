"""What is wrong or odd in a configuration, with the line where it stands."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ringleaf.config.arguments import ANY_RESOURCE, Argument, Value, find_argument
from ringleaf.config.conf import Path, Remark
from ringleaf.config.convert import (
    READERS,
    path_words,
    suggestion,
    unquoted,
    value_words,
)
from ringleaf.config.parameters import ELSEWHERE, PARAMETERS
from ringleaf.model.topology import quoted


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
