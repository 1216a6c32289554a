"""Text to plain values: YAML or JSON, one or several documents, bounded.

Whatever the bytes are, the outcome is a list of documents or one ``BadInput``. YAML is
built straight from the parser's events, so that depth, size, tags and aliases meet
their limits before there is anything to walk.
"""

import json
import re
import reprlib
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import yaml

MAX_BYTES: Final = 16 << 20
MAX_VALUES: Final = 3_000_000
"""Values of one file; a mapping counts as ``MAPPING`` of them."""
MAX_ALIASED: Final = 500_000
"""Values that the aliases of one file stand for."""
MAX_DEPTH: Final = 64
MAX_NUMBER: Final = 1000
"""Characters of a number; reading one takes time that grows with their square."""

MAPPING: Final = 6
"""A mapping takes as much room as this many numbers."""

_SPACE: Final = re.compile(r"\s*")
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class BadInput(Exception):  # noqa: N818 - it reads as what happened
    """Input that cannot be used: one line for people, exit status 2."""

    def __init__(self, line: str, hint: str | None = None) -> None:
        super().__init__(f"{line}; hint: {hint}" if hint else line)


def documents(
    data: bytes,
    wanted: str = "a scenario",
    hint: str = "a scenario has at least the key 'nodes'",
) -> list[Any]:
    """The documents of *data*; raises ``BadInput`` when there are none to be had."""
    text = decoded(data, f"{wanted} is a YAML or JSON file")
    found = _json(text) if text.lstrip()[:1] in ("{", "[") else None
    if found is None:
        found = _yaml(text)
    found = [document for document in found if document is not None]
    if not found:
        raise BadInput(f"no document found, want {wanted}", hint)
    return found


def decoded(data: bytes, hint: str | None = None) -> str:
    """The text of *data*, within limits; *hint* is for bytes that are no text."""
    if len(data) > MAX_BYTES:
        raise BadInput(f"more than {MAX_BYTES} bytes of text, want fewer")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"byte {error.start} is {data[error.start]:#04x}, want UTF-8 text", hint
        ) from None


def _json(text: str) -> list[Any] | None:
    """The JSON values of *text*, or None when it is not JSON (it may be YAML)."""
    _bound(text.count(",") + text.count("[") + MAPPING * text.count("{"))
    decoder = json.JSONDecoder(object_pairs_hook=_unique)
    found: list[Any] = []
    at = 0
    try:
        while (at := _SPACE.match(text, at).end()) < len(text):  # type: ignore[union-attr]
            value, at = decoder.raw_decode(text, at)
            found.append(value)
        if _SURROGATE.search(text):
            json.dumps(found, ensure_ascii=False).encode()  # half a pair is no text
    except RecursionError:
        _too_deep()
    except ValueError:
        return None
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        seen: set[str] = set()
        for key, _value in pairs:
            if key in seen:
                raise BadInput(f"the key {brief(key)} is twice in one mapping")
            seen.add(key)
    return unique


def _bound(values: int) -> None:
    if values > MAX_VALUES:
        raise BadInput(
            f"more than {MAX_VALUES} values, want fewer",
            "with 'count', one entry of nodes makes many nodes",
        )


def _too_deep() -> NoReturn:
    raise BadInput(f"nested too deeply, want at most {MAX_DEPTH} levels") from None


def _yaml(text: str) -> list[Any]:
    try:
        return list(_Reader(text).documents())
    except yaml.MarkedYAMLError as error:
        problem = " ".join(filter(None, [error.context, error.problem]))
        mark = error.problem_mark or error.context_mark
        where = _at(mark, text) if mark else ""
        raise BadInput(f"{where}{_NEITHER}: {problem}", _tab_hint(text, mark)) from None
    except yaml.reader.ReaderError as error:
        character = f"the character {error.character:#04x}"
        raise BadInput(f"{_NEITHER}: {character}, {error.reason}") from None


_NEITHER: Final = "neither YAML nor JSON"


def _tab_hint(text: str, mark: Any) -> str | None:  # noqa: ANN401
    """A hint where the line at fault has a tab."""
    lines = text.splitlines()[mark.line :][:1] if mark else []
    tabbed = any("\t" in line for line in lines)
    return "indent with spaces, not tabs" if tabbed else None


def _at(mark: Any, text: str = "") -> str:  # noqa: ANN401 - it differs between parsers
    """Where a mark is; one behind the last line of *text* is at the end of that."""
    lines = text.splitlines()
    if lines and mark.line >= len(lines):
        return f"line {len(lines)}, column {len(lines[-1]) + 1}: "
    return f"line {mark.line + 1}, column {mark.column + 1}: "


_TAG: Final = "tag:yaml.org,2002:"
_PLAIN: Final = {
    f"{_TAG}{kind}": yaml.SafeLoader.yaml_constructors[f"{_TAG}{kind}"]
    for kind in ("null", "bool", "int", "float", "str")
}
_TEXT: Final = f"{_TAG}str"


class _Reader(_Loader):  # type: ignore[misc, valid-type]
    """Plain values from YAML events, by recursive descent.

    Dates and the like stay text, a key may stand once in a mapping, and an alias
    weighs as much as what it stands for.
    """

    def documents(self) -> Iterator[Any]:
        """The values of all documents, one after the other."""
        self._values = self._aliased = 0
        self._known: dict[str, Any] = {}
        self.get_event()  # the stream starts
        while not self.check_event(yaml.StreamEndEvent):
            self.get_event()  # a document starts
            # Anchor -> the value and its weight; None while it is being read.
            self._anchors: dict[str, tuple[Any, int] | None] = {}
            yield self._value(self.get_event(), 0)
            self.get_event()  # it ends

    def _value(self, event: Any, depth: int) -> Any:  # noqa: ANN401
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if event.anchor is None:
            return self._plain(event, depth)
        before = self._values
        self._anchors[event.anchor] = None
        value = self._plain(event, depth)
        self._anchors[event.anchor] = value, self._values - before
        return value

    def _plain(self, event: Any, depth: int) -> Any:  # noqa: ANN401
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if depth == MAX_DEPTH:
            _too_deep()
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event, depth)
        return self._mapping(event, depth)

    def _count(self, values: int) -> None:
        self._values += values
        _bound(self._values)

    def _alias(self, event: yaml.AliasEvent) -> Any:  # noqa: ANN401
        if event.anchor not in self._anchors:
            _refuse(event, f"the alias {brief(event.anchor)} is not defined")
        target = self._anchors[event.anchor]
        if target is None:
            _refuse(event, "an alias refers to the value that contains it")
        value, weight = target
        self._aliased += weight
        if self._aliased > MAX_ALIASED:
            _refuse(event, f"the aliases expand to more than {MAX_ALIASED} values")
        self._count(weight)
        return value

    def _scalar(self, event: yaml.ScalarEvent) -> Any:  # noqa: ANN401
        self._count(1)
        if not event.implicit[0]:
            return self._tagged(event, event.tag or _TEXT)
        text = event.value
        if text in self._known:
            return self._known[text]
        tag = self.resolve(yaml.ScalarNode, text, event.implicit)
        value = self._tagged(event, tag if tag in _PLAIN else _TEXT)
        if value is not text:
            self._known[text] = value
        return value

    def _tagged(self, event: yaml.ScalarEvent, tag: str) -> Any:  # noqa: ANN401
        text = event.value
        if tag in (_TEXT, "!"):
            return text
        if tag not in _PLAIN:
            _unknown_tag(event)
        if len(text) > MAX_NUMBER:
            _refuse(event, f"{len(text)} digits, want at most {MAX_NUMBER}")
        try:
            return _PLAIN[tag](self, yaml.ScalarNode(tag, text))
        except (ValueError, LookupError):
            _refuse(event, f"{brief(text)} is no {tag.removeprefix(_TAG)}")

    def _sequence(self, event: yaml.SequenceStartEvent, depth: int) -> list[Any]:
        self._count(1)
        if event.tag not in (None, "!", f"{_TAG}seq"):
            _unknown_tag(event)
        values = []
        while not isinstance(event := self.get_event(), yaml.SequenceEndEvent):
            values.append(self._value(event, depth + 1))
        return values

    def _mapping(self, event: yaml.MappingStartEvent, depth: int) -> dict[Any, Any]:
        self._count(MAPPING)
        if event.tag not in (None, "!", f"{_TAG}map"):
            _unknown_tag(event)
        own: dict[Any, Any] = {}
        merged: dict[Any, Any] = {}
        while not isinstance(event := self.get_event(), yaml.MappingEndEvent):
            if _is_merge(event):
                self._merge(merged, depth)
                continue
            key = self._value(event, depth + 1)
            if isinstance(key, list | dict):
                _refuse(event, "a key is a list or a mapping, want text")
            if key in own:
                _refuse(event, f"the key {brief(key)} is twice in one mapping")
            own[key] = self._value(self.get_event(), depth + 1)
        return {**merged, **own} if merged else own

    def _merge(self, merged: dict[Any, Any], depth: int) -> None:
        """Read what stands after ``<<``; what comes first wins."""
        start = self.get_event()
        value = self._value(start, depth + 1)
        for mapping in value if isinstance(value, list) else [value]:
            if not isinstance(mapping, dict):
                _refuse(start, "'<<' merges no mapping")
            for key, each in mapping.items():
                merged.setdefault(key, each)


def _is_merge(event: Any) -> bool:  # noqa: ANN401
    scalar = isinstance(event, yaml.ScalarEvent)
    return scalar and event.value == "<<" and event.implicit[0]


def _refuse(event: Any, problem: str) -> NoReturn:  # noqa: ANN401
    raise BadInput(f"{_at(event.start_mark)}{problem}") from None


def _unknown_tag(event: Any) -> NoReturn:  # noqa: ANN401
    tag = event.tag.replace(_TAG, "!!")
    _refuse(event, f"the tag {brief(tag)}, want values without tags")


_WORDS: Final = {None: "null", True: "true", False: "false"}
_REPR: Final = reprlib.Repr()
_REPR.maxlevel = 3
_REPR.maxstring = _REPR.maxlong = _REPR.maxother = MAX_NUMBER


def brief(value: object) -> str:
    """The value as people recognise it, in at most 60 characters."""
    word = _WORDS.get(value) if value is None or isinstance(value, bool) else None
    return word or brief_text(_REPR.repr(value))


def brief_text(text: str) -> str:
    """*text*, cut in the middle of a word rather than of a screen."""
    limit = 60
    return text if len(text) <= limit else text[: limit - 1] + "…"
