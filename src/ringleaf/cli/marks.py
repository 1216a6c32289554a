"""The marks of drawings: letters and signs for jobs, chips and nodes."""

from collections.abc import Iterable, Iterator, Sequence
from string import ascii_letters
from typing import Final

from rich.console import Console
from rich.text import Text

from ringleaf.model.decision import Decision, Placed


def packed(parts: list[Text], room: int) -> Iterator[Text]:
    """*parts* on as few lines as hold them, one space apart."""
    line = parts[0].copy()
    for part in parts[1:]:
        if line.cell_len + 1 + part.cell_len <= room:
            line = line + Text(" ") + part
        else:
            yield line
            line = part.copy()
    yield line


JOB_STYLES: Final = (
    "bold cyan",
    "bold green",
    "bold yellow",
    "bold magenta",
    "bold blue",
    "bold bright_red",
)
HELD, FAULTY, NETWORK_FAULTY, RESERVED = "x", "!", "~", "%"
LETTERS: Final = ascii_letters.swapcase().replace(HELD, "")
LATER: Final = "*"
"""The jobs for which no letter is left."""

FREE, PARTLY, SEVERAL = "·", "-", "+"
CHIP_MARKS: Final = (
    (HELD, "dim", "held"),
    (FAULTY, "bold red", "faulty"),
    (NETWORK_FAULTY, "red", "network-faulty"),
    (RESERVED, "yellow", "reserved"),
)
UNIT_MARKS: Final = (
    (SEVERAL, "bold", "several jobs"),
    (FREE, "", "free node"),
    (PARTLY, "dim", "partly free"),
    (HELD, "dim", "held"),
    (FAULTY, "bold red", "not ready"),
)


def marks(decisions: Iterable[Decision]) -> dict[str, tuple[str, str]]:
    """Placed job -> the letter and style it is drawn with."""
    placed = [d.job.name for d in decisions if isinstance(d, Placed)]
    return {
        name: (
            LETTERS[i] if i < len(LETTERS) else LATER,
            JOB_STYLES[i % len(JOB_STYLES)],
        )
        for i, name in enumerate(placed)
    }


def print_legend(
    console: Console,
    given: dict[str, tuple[str, str]],
    other: Sequence[tuple[str, str, str]],
) -> None:
    """What the marks that were drawn mean, broken between entries only."""
    entries = [
        (letter, style, name)
        for name, (letter, style) in given.items()
        if letter != LATER
    ]
    if len(entries) < len(given):
        entries.append((LATER, "bold", "later jobs"))
    entries += other
    named = [Text.assemble((mark, style), f" {word}") for mark, style, word in entries]
    spaced = [Text(" ") + entry for entry in named]
    for line in packed(spaced, console.width - 1):
        console.print(Text(" ") + line, soft_wrap=True)
