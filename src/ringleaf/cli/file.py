"""The file that a command reads: its name for people, its bytes, how reading fails."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ringleaf.cli.failure import BadUse
from ringleaf.simulator.source import MAX_BYTES

STDIN: Final = "-"


def name_of(file: str) -> str:
    """How *file* is called in messages."""
    return "standard input" if file == STDIN else file or "''"


def bytes_of(file: str, wanted: str) -> bytes:
    """The bytes of *file*, one more than may be used at most."""
    if file == STDIN:
        if sys.stdin is None:
            raise BadUse(f"standard input is closed, want {wanted}")
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with Path(file).open("rb") as stream:
        return stream.read(MAX_BYTES + 1)


@contextmanager
def one_line(name: str, *bad: type[Exception]) -> Iterator[None]:
    """What goes wrong with the file *name* inside becomes one line."""
    try:
        yield
    except bad as error:
        raise BadUse(f"{name}: {error}") from None
    except OSError as error:
        raise BadUse(f"{name}: {error.strerror or error}") from None
    except ValueError as error:  # a path with a NUL byte
        raise BadUse(f"{name!r}: {error}") from None
