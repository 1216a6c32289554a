"""How a command fails: one line on standard error."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

MAX_LINE: Final = 1000
"""Characters of the line; names can be longer than is readable."""


class BadUse(Exception):  # noqa: N818 - it reads as what happened
    """The command was called with something that cannot be used."""


class Interrupted(Exception):  # noqa: N818 - it reads as what happened
    """Ctrl-C ended the command; the text is one line about what is kept."""


def program() -> str:
    """How the command is called: as ``ringleaf``, or as a plugin of kubectl."""
    own = Path(sys.argv[0]).name if sys.argv else ""
    return "kubectl ringleaf" if own.startswith("kubectl-ringleaf") else "ringleaf"


def typed() -> str:
    """What to type to call the command: with its path where the shell needs that."""
    own = sys.argv[0] if sys.argv else ""
    needs_path = Path(own).name == "ringleaf" and os.sep in own
    return (
        shlex.quote(own) if needs_path and not shutil.which("ringleaf") else program()
    )


def report(line: str) -> None:
    """Print one line; nothing in it breaks it or speaks to the terminal."""
    shown = line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"
    escaped = (c if c.isprintable() else ascii(c)[1:-1] for c in shown)
    print(f"ringleaf: {''.join(escaped)}", file=sys.stderr)  # noqa: T201


def warn(line: str) -> None:
    """Print a warning in the same way."""
    report(f"warning: {line}")
