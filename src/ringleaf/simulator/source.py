"""Text to plain values: YAML or JSON, one or several documents, bounded.

Whatever the bytes are, the outcome is a list of documents or one ``BadInput``: depth,
size and the expansion of YAML aliases are limited before anything walks the values.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

MAX_BYTES: Final = 64 << 20
MAX_VALUES: Final = 4_000_000
MAX_DEPTH: Final = 64

_SPACE: Final = re.compile(r"\s*")
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class BadInput(Exception):  # noqa: N818 - it reads as what happened
    """Input that cannot be used: one line for people, exit status 2."""

    def __init__(self, line: str, hint: str | None = None) -> None:
        super().__init__(f"{line}; hint: {hint}" if hint else line)


def documents(data: bytes) -> list[Any]:
    """The documents of *data*; raises ``BadInput`` when there are none to be had."""
    if len(data) > MAX_BYTES:
        raise BadInput(f"{len(data)} bytes of text, want at most {MAX_BYTES}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"byte {error.start} is {data[error.start]:#04x}, want UTF-8 text",
            "a scenario is a YAML or JSON file",
        ) from None
    found = _json(text) if text.lstrip()[:1] in ("{", "[") else None
    if found is None:
        found = _yaml(text)
    found = [document for document in found if document is not None]
    if not found:
        raise BadInput(
            "no document found, want a scenario",
            "a scenario has at least the key 'nodes'",
        )
    _measure(found)
    return found


def _json(text: str) -> list[Any] | None:
    """The JSON values of *text*, or None when it is not JSON (it may be YAML)."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique)
    found: list[Any] = []
    at = 0
    try:
        while (at := _SPACE.match(text, at).end()) < len(text):  # type: ignore[union-attr]
            value, at = decoder.raw_decode(text, at)
            found.append(value)
    except RecursionError:
        raise BadInput(f"nested too deeply, want at most {MAX_DEPTH} levels") from None
    except ValueError:
        return None
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) != len(pairs):
        keys = [key for key, _value in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BadInput(f"the key {brief(twice)} stands twice in one mapping")
    return seen


class _UniqueLoader(_Loader):  # type: ignore[misc, valid-type]
    """The safe loader, but a key that stands twice in one mapping is an error."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002
        if isinstance(node, yaml.MappingNode):
            seen = set()
            for key, _value in node.value:
                if isinstance(key.value, str) and (key.tag, key.value) in seen:
                    raise BadInput(
                        f"line {key.start_mark.line + 1}: the key {brief(key.value)} "
                        "stands twice in one mapping"
                    )
                if isinstance(key.value, str):
                    seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep=deep)


def _yaml(text: str) -> list[Any]:
    try:
        return list(yaml.load_all(text, Loader=_UniqueLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = " ".join(filter(None, [error.context, error.problem]))
        raise BadInput(f"{where}not YAML: {problem}") from None
    except yaml.YAMLError as error:
        raise BadInput(
            f"not YAML: {brief_text(' '.join(str(error).split()))}"
        ) from None
    except RecursionError:
        raise BadInput(f"nested too deeply, want at most {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise BadInput(f"not YAML: {brief_text(str(error))}") from None


def _measure(values: list[Any]) -> None:
    """Raise when the values, aliases written out, are too deep or too many."""
    weights: dict[int, int] = {}
    pending: list[tuple[Any, int]] = [(values, 0)]
    open_: set[int] = set()
    while pending:
        value, depth = pending[-1]
        key = id(value)
        if key in weights:
            pending.pop()
            continue
        children = list(_children(value))
        if key in open_ or not children:
            pending.pop()
            open_.discard(key)
            weights[key] = 1 + sum(weights.get(id(child), 1) for child in children)
            if weights[key] > MAX_VALUES:
                raise BadInput(
                    f"more than {MAX_VALUES} values once aliases are written out"
                )
            continue
        if depth > MAX_DEPTH:
            raise BadInput(f"nested too deeply, want at most {MAX_DEPTH} levels")
        open_.add(key)
        for child in children:
            if id(child) in open_:
                raise BadInput("an alias refers to the value it stands in")
            if id(child) not in weights:
                pending.append((child, depth + 1))


def _children(value: object) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list | tuple | set):
        yield from value


def brief(value: object) -> str:
    """The value as people recognise it, in at most 60 characters."""
    return brief_text(repr(value))


def brief_text(text: str) -> str:
    """*text*, cut in the middle of a word rather than of a screen."""
    limit = 60
    return text if len(text) <= limit else text[: limit - 1] + "…"
