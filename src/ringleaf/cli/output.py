"""What commands share when they print."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import Any, Final, TypeVar

import msgspec
from rich.console import Console, RenderableType
from rich.progress import (
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

PATIENCE_S: Final = 1.0
"""Work that takes longer says on a terminal that it is under way."""

_T = TypeVar("_T")
_BLANKS: Final = re.compile(r" +\n")


def print_json(*values: object) -> None:
    """One line of JSON per value."""
    for value in values:
        sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


class TrimmedConsole(Console):
    """A console that leaves no blanks at the ends of lines where it is no terminal."""

    def __init__(self) -> None:
        super().__init__(highlight=False)

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401 - as rich does
        """Print *objects*."""
        if self.is_terminal:
            super().print(*objects, **options)
            return
        with self.capture() as captured:
            super().print(*objects, **options)
        self.file.write(_BLANKS.sub("\n", captured.get()))


def print_trimmed(console: Console, what: RenderableType) -> None:
    """Print *what*; where it is no terminal, without blanks at the ends of lines."""
    if console.is_terminal:
        console.print(what)
        return
    with console.capture() as captured:
        console.print(what)
    lines = captured.get().splitlines()
    console.file.write("".join(f"{line.rstrip()}\n" for line in lines))


@contextmanager
def progress(total: int | None = None, *, what: str) -> Iterator[Progress]:
    """Show on a terminal's standard error that *what* is under way, once it is slow."""
    shown = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TextColumn("" if total is None else "{task.completed:.0f} of {task.total:.0f}"),
        TimeElapsedColumn(),
        *([] if total is None else [TextColumn("left"), TimeRemainingColumn()]),
        console=Console(stderr=True),
        transient=True,
    )
    shown.add_task(what, total=total)
    if not sys.stderr.isatty():
        yield shown
        return
    timer = Timer(PATIENCE_S, shown.start)
    timer.start()
    try:
        yield shown
    finally:
        timer.cancel()
        timer.join()  # it started to show, or never will
        if shown.live.is_started:
            shown.stop()


def counted(items: Sequence[_T], what: str) -> Iterable[_T]:
    """The items one by one, counted on a terminal once that is slow."""
    with progress(len(items), what=what) as shown:
        for item in items:
            yield item
            shown.advance(shown.task_ids[0])


def shortened(items: Sequence[str], most: int, joint: str = ", ") -> str:
    """The first *most* of *items*, and how many more there are.

    >>> shortened("abc", 2), shortened([], 2)
    ('a, b, … 1 more', 'none')
    """
    more = len(items) - most
    shown = joint.join(items[:most]) or "none"
    return f"{shown}{joint}… {more} more" if more > 0 else shown


def print_line(console: Console, text: Text) -> None:
    """Print one line: where it goes to a file or a pipe it is never broken."""
    console.print(text, soft_wrap=not console.is_terminal)


CHIPS: Final = "huawei.com/"
"""What stands before the names of chips."""
_UNITS: Final = {"cpu": "CPU", "pods": "pod"}
_BYTES: Final = ("memory", "ephemeral-storage")
_POWERS: Final = ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"))


def resource_words(resource: str, amount: int | str) -> str:
    """So much of a resource, with its unit.

    >>> resource_words("huawei.com/Ascend910", 8), resource_words("cpu", "500m")
    ('8 Ascend910 chips', '500m CPUs')
    >>> resource_words("memory", 3 << 30), resource_words("pods", 1)
    ('3 GiB memory', '1 pod')
    """
    told = plain_amount(resource, amount)
    if resource.startswith(CHIPS):
        unit = f"{resource.removeprefix(CHIPS)} chip"
    else:
        unit = _UNITS.get(resource, "")
    if not unit:
        return f"{told} {resource}"
    return f"{told} {unit}{'s' * (amount != 1)}"


def plain_amount(resource: str, amount: int | str) -> str:
    """An amount of a resource; bytes in the largest unit that leaves no long fraction.

    >>> plain_amount("memory", 5 << 29), plain_amount("memory", 100)
    ('2.5 GiB', '100 B')
    """
    if resource not in _BYTES or isinstance(amount, str):
        return str(amount)
    for power, unit in _POWERS:
        if amount >= 1 << power:
            return f"{round(amount / (1 << power), 1):g} {unit}"
    return f"{amount} B"


def so_many(n: int, what: str, several: str | None = None) -> str:
    """A count with its noun, in the singular or the plural.

    >>> so_many(1, "leaf", "leaves"), so_many(2, "leaf", "leaves"), so_many(0, "node")
    ('1 leaf', '2 leaves', '0 nodes')
    """
    return f"{n} {what if n == 1 else several or what + 's'}"
