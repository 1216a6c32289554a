"""How a command fails: one line on standard error."""

import sys


class BadUse(Exception):  # noqa: N818 - it reads as what happened
    """The command was called with something that cannot be used."""


def report(line: str) -> None:
    """Print one line, whatever the terminal can show."""
    encoding = sys.stderr.encoding or "utf-8"
    safe = line.encode(encoding, "backslashreplace").decode(encoding)
    print(f"ringleaf: {safe}", file=sys.stderr)  # noqa: T201


def warn(line: str) -> None:
    """Print a warning in the same way."""
    report(f"warning: {line}")
