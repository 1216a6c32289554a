"""Repairs the indentation of configurations.

Guides print ``volcano-scheduler.conf`` inside Go source or a ConfigMap, and lines slip
a few columns on the way. The words are good, only YAML cannot read them. Three kinds of
lines say where they belong: keys of the whole file stand where the first of them does,
tiers (``- plugins:``) where the first tier does, and no line stands further left than
the first one. A line that slipped takes those below with it, up to the next such line.

Nothing but columns is changed, and Go around the text is taken out.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

GO: Final = re.compile(r"\s*(var |const )?\w+\s*:?=\s*`")
"""How Go source begins that has a configuration between backquotes."""
_BACKQUOTE: Final = "`"
_TOP: Final = re.compile(r"\s*(actions|tiers|configurations|metrics)\s*:")
_TIER: Final = re.compile(r"\s*-\s+plugins\s*:")
_OTHER_KEY: Final = re.compile(r"\s*(?!-)[^\s#:][^:]*:(\s|$)")
_LITERAL: Final = re.compile(
    r"(\s*)[\"']?volcano-scheduler(?:-ci)?\.conf[\"']?\s*:\s*\|[-+0-9]*\s*$"
)


class Mended(Struct, frozen=True):
    """A repaired text, and the repairs with their lines in the original."""

    text: str
    notes: tuple[str, ...]


class _Line(Struct):
    number: int
    text: str

    @property
    def says_something(self) -> bool:
        return bool(self.text.strip()) and not self.text.lstrip().startswith("#")

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())


def mended(text: str) -> Mended:
    """*text* with its Go taken out and its lines where they belong."""
    lines = [_Line(i, line) for i, line in enumerate(text.splitlines(), 1)]
    notes: list[str] = []
    if GO.match(text):
        lines = _without_go(lines, notes)
        _align(lines, notes)
        _to_the_margin(lines)
    elif not _literals(lines):
        _align(lines, notes)
    for block in _literals(lines):
        _align(block, notes)
    notes.sort(key=_number_in)
    return Mended("".join(f"{line.text}\n" for line in lines), tuple(notes))


def _number_in(note: str) -> int:
    return int(note.removeprefix("line ").partition(":")[0])


def _without_go(lines: list[_Line], notes: list[str]) -> list[_Line]:
    """The lines between the backquotes."""
    begins = next(i for i, line in enumerate(lines) if _BACKQUOTE in line.text)
    head, *inside = lines[begins:]
    notes.append(f"line {head.number}: took out the Go before the backquote")
    head.text = head.text.partition(_BACKQUOTE)[2]
    kept = [head] if head.text.strip() else []
    for line in inside:
        before, quote, _after = line.text.partition(_BACKQUOTE)
        line.text = before
        if before.strip() or not quote:
            kept.append(line)
        if quote:
            notes.append(f"line {line.number}: took out the backquote and what follows")
            break
    return kept


def _literals(lines: list[_Line]) -> list[list[_Line]]:
    """The lines of every configuration that stands below a ``|`` of a ConfigMap."""
    blocks = []
    for i, line in enumerate(lines):
        found = _LITERAL.match(line.text)
        if found:
            own = len(found[1])
            rest = lines[i + 1 :]
            end = next(
                (k for k, each in enumerate(rest) if _ends(each, own)), len(rest)
            )
            blocks.append(rest[:end])
    return blocks


def _ends(line: _Line, key: int) -> bool:
    """Whether a line is the next key of the ConfigMap, or the next document."""
    if line.text.startswith("---"):
        return True
    top = _TOP.match(line.text) or _TIER.match(line.text)
    another = _OTHER_KEY.match(line.text) and not top
    return bool(another) and line.indent <= key


def _align(lines: list[_Line], notes: list[str]) -> None:
    """Move lines that slipped, and those below them."""
    spoken = [line for line in lines if line.says_something]
    if not spoken:
        return
    margin = spoken[0].indent
    tier = next((line.indent for line in spoken if _TIER.match(line.text)), margin)
    by = 0
    for line in spoken:
        place = _place(line, margin, tier)
        if place is not None:
            by = place - line.indent
        elif line.indent < margin:
            by = margin - line.indent
        if by:
            way = "right" if by > 0 else "left"
            plural = "s" * (abs(by) > 1)
            notes.append(f"line {line.number}: moved {abs(by)} column{plural} {way}")
            line.text = " " * max(0, line.indent + by) + line.text.lstrip()


def _place(line: _Line, margin: int, tier: int) -> int | None:
    """Where a line belongs that says so itself."""
    if _TOP.match(line.text) and line.indent <= tier:
        return margin
    return max(tier, margin) if _TIER.match(line.text) else None


def _to_the_margin(lines: list[_Line]) -> None:
    """Take out the columns that all lines begin with."""
    spare = min((line.indent for line in lines if line.text.strip()), default=0)
    for line in lines:
        line.text = line.text[spare:]


def compact(notes: tuple[str, ...]) -> Iterator[str]:
    """The notes, those of lines in a row that say the same as one.

    >>> list(compact(("line 8: moved 1 column right", "line 9: moved 1 column right")))
    ['lines 8 to 9: moved 1 column right']
    """
    rows: list[list[str]] = []
    for note in notes:
        where, said = note.removeprefix("line ").split(": ", 1)
        last = rows[-1] if rows else ["", "", ""]
        if last[2] == said and int(where) == int(last[1]) + 1:
            last[1] = where
        else:
            rows.append([where, where, said])
    for first, last_line, said in rows:
        lines = (
            f"line {first}" if first == last_line else f"lines {first} to {last_line}"
        )
        yield f"{lines}: {said}"
