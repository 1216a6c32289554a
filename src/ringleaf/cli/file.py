"""The file that a command reads: its name for people, its bytes, how reading fails."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
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


def check_folder(option: str, folder: str | None) -> None:
    """Make the folder that *option* names, unless nothing can be written there.

    Raises:
        BadUse: It is a file, or nobody may make it or write to it.

    """
    if folder is None:
        return
    path, hint = Path(folder), f"hint: {option} DIR, a folder of your own"
    try:
        if path.exists() and not path.is_dir():
            raise BadUse(f"{option}: {folder} is a file, want a folder; {hint}")
        path.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=path).close()
    except OSError as error:
        why = error.strerror or error
        raise BadUse(f"{option}: {folder}: {why}, want a folder; {hint}") from None
    except ValueError as error:  # a path with a NUL byte
        raise BadUse(f"{option}: {folder!r}: {error}; {hint}") from None


def check_file(option: str, file: str | None) -> None:
    """Make nothing, but see that the file that *option* names can be written.

    Raises:
        BadUse: It is a folder, or nobody may write it.

    """
    if file is None:
        return
    path, hint = Path(file), f"hint: {option} FILE, in a folder of your own"
    try:
        if not file or path.is_dir():
            raise BadUse(f"{option}: {file or repr(file)} is no file; {hint}")
        if path.exists():
            path.open("ab").close()
        else:
            TemporaryFile(dir=path.parent).close()
    except OSError as error:
        why = error.strerror or error
        raise BadUse(f"{option}: {file}: {why}; {hint}") from None
    except ValueError as error:  # a path with a NUL byte
        raise BadUse(f"{option}: {file!r}: {error}; {hint}") from None
