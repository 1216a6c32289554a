"""``ringleaf replay``."""

import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

import ringleaf
from ringleaf.cli.failure import BadUse, warn
from ringleaf.cli.file import STDIN, name_of, one_line
from ringleaf.cli.output import TrimmedConsole, print_json, progress, so_many
from ringleaf.cli.plugins import installed_plugins
from ringleaf.simulator.log import Difference, Plain, Replay, replay
from ringleaf.simulator.plain import whole
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.words import event_words, instruction_words, of_job

MAX_EVENTS = 8
"""Events told of a step that differs."""


def replay_file(file: str, *, as_json: bool) -> int:
    """Play a log again and print where it differs; the exit status."""
    shown = name_of(file)
    with one_line(shown, BadInput), progress(what=f"playing {shown}"):
        found = _replayed(file)
    for line in found.warnings:
        warn(f"{shown}: {line}")
    if as_json:
        print_json(_plain(found))
    else:
        _print(TrimmedConsole(), shown, found)
    return 0 if found.difference is None else 1


def _replayed(file: str) -> Replay:
    if file != STDIN:
        with Path(file).open("rb") as log:
            return replay(log, installed_plugins())
    if sys.stdin is None:
        raise BadUse("standard input is closed, want a log")
    return replay(sys.stdin.buffer, installed_plugins())


def _plain(found: Replay) -> Plain:
    body: Plain = {
        "same": found.difference is None,
        "version": found.version,
        "steps": found.steps,
        "instructions": found.instructions,
    }
    if (other := found.difference) is not None:
        body["difference"] = {
            "line": other.line,
            "at": whole(other.at),
            "events": other.events,
            "recorded": other.recorded,
            "now": other.now,
        }
    if found.warnings:
        body["warnings"] = found.warnings
    return body


def _print(console: Console, shown: str, found: Replay) -> None:
    played = (
        f"{so_many(found.steps, 'step')}, {so_many(found.instructions, 'instruction')}"
    )
    if found.difference is None:
        console.print(Text(f"{shown}: {played}, no difference", style="green"))
        return
    other = found.difference
    head = f"{shown}: line {other.line} differs, at {other.at:g} s"
    if found.version != ringleaf.__version__:
        head += f"; recorded by ringleaf {found.version}"
    console.print(Text(head, style="bold red"))
    for name, lines in _parts(other):
        console.print(Text(f"  {name}"))
        for line in lines:
            console.print(Padding(Text(line), (0, 0, 0, 4), expand=False))


def _parts(other: Difference) -> Iterable[tuple[str, list[str]]]:
    events = [_line(each, event_words(each)) for each in other.events[:MAX_EVENTS]]
    more = len(other.events) - MAX_EVENTS
    yield "happened", events + [f"… {more} more"] * (more > 0)
    yield "recorded", [_said(other.recorded)]
    yield "now", [_said(other.now)]
    same = _said(other.recorded) == _said(other.now)
    if same:
        yield "in full", [f"recorded {other.recorded}", f"now {other.now}"]


def _said(plain: Plain | None) -> str:
    return "nothing" if plain is None else _line(plain, instruction_words(plain))


def _line(plain: Plain, words: str) -> str:
    job = of_job(plain)
    return f"{job}: {words}" if job else words
