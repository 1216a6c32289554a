"""The file that a command reads: its name for people, its bytes, how reading fails."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from ringleaf.cli.failure import BadUse
from ringleaf.model.spelling import closest
from ringleaf.simulator.source import MAX_BYTES

STDIN: Final = "-"
MAX_LISTED: Final = 3
"""Files of a folder that a hint names."""


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
def one_line(name: str, *bad: type[Exception], starter: str = "") -> Iterator[None]:
    """What goes wrong with the file *name* inside becomes one line.

    *starter* says how to get such a file where there is none.
    """
    try:
        yield
    except bad as error:
        raise BadUse(f"{name}: {error}") from None
    except OSError as error:
        why = error.strerror or error
        raise BadUse(f"{name}: {why}{_hint_for(error, starter)}") from None
    except ValueError as error:  # a path with a NUL byte
        raise BadUse(f"{name!r}: {error}") from None


def _hint_for(error: OSError, starter: str) -> str:
    """A hint that names files like the one that cannot be read."""
    if not isinstance(error.filename, str) or error.filename == str(Path()):
        return ""
    if isinstance(error, IsADirectoryError):
        return _listed(Path(error.filename), "")
    if isinstance(error, FileNotFoundError):
        return missing_hint(error.filename, starter)
    return ""


def missing_hint(file: str, starter: str = "") -> str:
    """A hint for a *file* that is not there: one like it, or what its folder has."""
    path = Path(file)
    if path.parent.is_dir():
        close = _closest(path)
        if close is not None:
            return f"; hint: did you mean {str(close)!r}?"
        listed = _listed(path.parent, path.suffix) if path.suffix else ""
        return listed or _none_like(path, starter)
    absent = next(each for each in reversed(path.parents) if not each.is_dir())
    close = _closest(absent)
    if close is None:
        return f"; hint: there is no folder {str(absent)!r}"
    there = close / path.relative_to(absent)
    return f"; hint: did you mean {str(there if there.exists() else close)!r}?"


def like_file(given: str) -> str:
    """A hint for a file that is not there, where *given* looks like one."""
    try:
        return missing_hint(given) if Path(given).suffix or "/" in given else ""
    except (OSError, ValueError):  # too long, or with a NUL byte
        return ""


def _closest(path: Path) -> Path | None:
    """What the folder of *path* has that is called most like it.

    Endings do not count: every scenario ends alike.
    """
    try:
        names = sorted(each.name for each in path.parent.iterdir())
    except OSError:
        return None
    same = {Path(name).stem: name for name in names if name.endswith(path.suffix)}
    for stems in (same, {Path(name).stem: name for name in names}):
        if (stem := closest(path.stem, stems)) is not None:
            return path.with_name(stems[stem])
    return None


def _none_like(path: Path, starter: str) -> str:
    """A hint where the folder of *path* has no file of its kind."""
    what = f"{path.suffix} file" if path.suffix else f"file {path.name!r}"
    none = f"; hint: {_called(path.parent)} has no {what}"
    return f"{none}; {starter}" if starter else none


def _called(folder: Path) -> str:
    return "this folder" if folder == Path() else str(folder)


def _listed(folder: Path, suffix: str) -> str:
    """A hint that names files of *folder*, those that end like the one asked for."""
    try:
        found = sorted(
            each.name
            for each in folder.iterdir()
            if each.is_file() and each.suffix and suffix in ("", each.suffix)
        )
    except OSError:
        return ""
    more = f" and {len(found) - MAX_LISTED} more" if len(found) > MAX_LISTED else ""
    where = _called(folder) if suffix else "it"
    named = ", ".join(found[:MAX_LISTED])
    return f"; hint: {where} has {named}{more}" if found else ""


def check_folder(option: str, folder: str | None) -> None:
    """Make the folder that *option* names, unless nothing can be written there.

    Raises:
        BadUse: It is a file, or it cannot be made or written to.

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


def _absent(path: Path) -> str:
    """The first folder on the way to *path* that does not exist; empty of none."""
    return next((str(p) for p in reversed(path.parents) if not p.exists()), "")


def check_file(option: str, file: str | None) -> None:
    """Make nothing, but see that the file that *option* names can be written.

    Raises:
        BadUse: It is a folder, or it cannot be written.

    """
    if file is None:
        return
    path, hint = Path(file), f"hint: {option} FILE, in a folder of your own"
    try:
        if absent := _absent(path):
            raise BadUse(f"{option}: {file}: there is no folder {absent!r}; {hint}")
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
