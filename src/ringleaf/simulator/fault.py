"""What is wrong with plain values, in one line: what, where, found and wanted.

msgspec finds the fault; its message is only read for the place. The caller knows the
format, and says what the place wants.
"""

import re
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Annotated, Any, Final, NoReturn, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from ringleaf.model.spelling import did_you_mean
from ringleaf.simulator.source import BadInput, brief

_AT = re.compile(r" - at `(?:key` in `)?\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.([a-z-]+)|\[(\d+)\]|\[\.\.\.\]")
_MISSING = re.compile(r"Object missing required field `([a-z-]+)`")
_TOO_MANY = re.compile(r"Expected `array` of length <= (\d+)")

MAX_KEYS: Final = 12
"""Keys that a hint names."""

_S = TypeVar("_S", bound=Struct)


class _Named(str):
    """A step of a path that the file names: a leaf, a label, an annotation."""

    __slots__ = ()


_Path = tuple[str | int, ...]
_Type = Any  # a type, or what ``typing`` makes of several

Wanted = Callable[[type[Struct], str, bool], str]
"""What a key of a mapping wants; inside a list or mapping, what one element wants."""


def read(document: object, root: type[_S], whole: str, wanted: Wanted) -> _S:
    """The document as a *root*, or one ``BadInput``; *whole* is what it should be."""
    try:
        return msgspec.convert(document, root)
    except msgspec.ValidationError as error:
        _explain(document, root, str(error), lambda p: _wanted(root, p, whole, wanted))


def _explain(
    document: object, root: type[Struct], message: str, wanted: Callable[[_Path], str]
) -> NoReturn:
    """Turn msgspec's message into what, where, found and wanted."""
    at = _AT.search(message)
    unknown = message.startswith("Object contains unknown field")
    if unknown and _unknown_keys(document, root):
        at = None  # the key is quoted in the message and may look like a place
    path = _path_of(document, root, at["path"]) if at else ()
    found = _value_at(document, path)
    place = written(path) or "the document"
    if isinstance(found, dict) and not all(isinstance(key, str) for key in found):
        raise BadInput(f"{place} has a key that is not text, want text keys")
    if unknown:
        _refuse_key(place, _bare(_type_at(root, path)), found)
    if missing := _MISSING.match(message):
        path = (*path, missing[1])
        raise BadInput(f"{written(path)} is missing, want {wanted(path)}")
    if many := _TOO_MANY.match(message):
        raise BadInput(f"{place} are {len(found)}, want at most {many[1]}")
    raise BadInput(f"{place} is {brief(found)}, want {wanted(path)}")


def _unknown_keys(found: Any, entry: type[Struct]) -> list[str]:  # noqa: ANN401
    known = {f.encode_name for f in msgspec.structs.fields(entry)}
    return [key for key in found if key not in known]


def _refuse_key(place: str, entry: type[Struct], found: object) -> NoReturn:
    own = entry.__annotations__
    fields = sorted(
        msgspec.structs.fields(entry), key=lambda f: (not f.required, f.name not in own)
    )
    keys = [f.encode_name for f in fields]
    key = _unknown_keys(found, entry)[0]
    more = [f"… {len(keys) - MAX_KEYS} more"] * (len(keys) > MAX_KEYS)
    listed = f"it may have {', '.join([*keys[:MAX_KEYS], *more])}"
    hint = did_you_mean(key, keys) or listed
    raise BadInput(f"{place} has the unknown key {brief(key)}", hint)


def _path_of(document: object, root: type[Struct], path: str) -> _Path:
    """The steps of msgspec's path, ``[...]`` replaced by the key that is at fault."""
    steps: _Path = ()
    for key, index in _STEP.findall(path):
        if key:
            steps = (*steps, key)
        elif index:
            steps = (*steps, int(index))
        else:
            value = _type_at(root, (*steps, _Named()))
            steps = (*steps, _key_at_fault(value, _value_at(document, steps)))
    return steps


def _key_at_fault(wanted: _Type, mapping: Mapping[str, object]) -> _Named:
    for key, value in mapping.items():
        try:
            msgspec.convert(value, wanted)
        except msgspec.ValidationError:
            return _Named(key)
    raise AssertionError("every value is as wanted")


def _value_at(document: Any, path: _Path) -> Any:  # noqa: ANN401
    for step in path:
        document = document[step]
    return document


def _type_at(root: _Type, path: _Path) -> _Type:
    """The type that the format has at *path*."""
    kind = root
    for step in path:
        kind = _bare(kind)
        if isinstance(step, int):
            kind = get_args(kind)[0]
        elif isinstance(step, _Named):
            kind = get_args(kind)[1]
        else:
            fields = msgspec.structs.fields(kind)
            kind = next(f.type for f in fields if f.encode_name == step)
    return kind


def _bare(kind: _Type) -> _Type:
    """*kind* without its limits; of several, the one that has something in it."""
    origin: object = get_origin(kind)
    if origin is Annotated:
        return _bare(get_args(kind)[0])
    if origin in (Union, UnionType):
        several = [_bare(each) for each in get_args(kind)]
        return next((each for each in several if _has_parts(each)), several[0])
    return kind


def _has_parts(kind: _Type) -> bool:
    origin: object = get_origin(kind) or kind
    return origin in (list, dict) or (
        isinstance(origin, type) and issubclass(origin, Struct)
    )


def _wanted(root: type[Struct], path: _Path, whole: str, wanted: Wanted) -> str:
    at = [i for i, s in enumerate(path) if isinstance(s, str) and type(s) is str]
    if not at:
        return whole
    last = at[-1]
    key = path[last]
    assert isinstance(key, str)
    return wanted(_bare(_type_at(root, path[:last])), key, last + 1 < len(path))


def written(path: _Path) -> str:
    """*path* as people write it.

    >>> written(("nodes", 0, "labels", "a.b"))
    "nodes[0].labels['a.b']"
    """
    return "".join(map(_step, path)).removeprefix(".")


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    plain = re.fullmatch(r"[A-Za-z0-9_-]{1,60}", step)
    return f".{step}" if plain else f"[{brief(str(step))}]"
