"""Checkpoints of a run: saves it to a file, and resumes it with the same results.

The file begins with two readable lines: what it is, and by which version
of what, with which arguments, it was written. Then comes the run, as Python pickles it:
take up only files that you wrote yourself. What follows from the arguments (the
cluster, the jobs) is not in it.
"""

import json
import os
import pickle
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ringleaf.policies.fit import NO_CHIPS
from ringleaf.policies.products import PRODUCTS
from ringleaf.simulator.clock import Clock
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import Trial

MAGIC: Final = b"ringleaf: a run that is not over\n"

Arguments = Mapping[str, Any]
"""What a run depends on, as plain values."""


def save(path: Path, clock: Clock, version: str, arguments: Arguments) -> None:
    """Put *clock* away in *path*; it is there as a whole, or as it was before."""
    body = BytesIO()
    _Pickler(body, clock.trial).dump(clock)
    head = json.dumps(_head(version, arguments), sort_keys=True).encode()
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    with new.open("wb") as file:
        file.write(MAGIC + head + b"\n")
        file.write(body.getbuffer())
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def load(path: Path, trial: Trial, version: str, arguments: Arguments) -> Clock:
    """The run in *path*, ready to go on with *trial*, from which it began.

    Raises:
        BadInput: It is no such file, or one of another version or other arguments.

    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", HINT) from error
    magic, head, body = _split(text)
    if magic != MAGIC:
        raise BadInput(f"{path}: no interrupted run, want DIR/unfinished.run", HINT)
    _same(path, head, _head(version, arguments))
    try:
        clock = _Unpickler(BytesIO(body), trial).load()
    except (EOFError, pickle.UnpicklingError) as error:
        raise BadInput(f"{path}: the file is damaged: {error}", HINT) from error
    assert isinstance(clock, Clock)
    clock.resume(trial)
    return clock


HINT: Final = "start again without --resume"


def _split(text: bytes) -> tuple[bytes, dict[str, Any], bytes]:
    magic, _, rest = text.partition(b"\n")
    head, _, body = rest.partition(b"\n")
    try:
        found = json.loads(head)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return b"", {}, b""
    return magic + b"\n", found, body


def _head(version: str, arguments: Arguments) -> dict[str, Any]:
    python = ".".join(map(str, sys.version_info[:2]))
    found = {"ringleaf": version, "python": python, "numpy": np.__version__}
    return {**found, "arguments": dict(arguments)}


def _same(path: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse a file of another version, or of other arguments."""
    for what in ("ringleaf", "python", "numpy"):
        if found.get(what) != wanted[what]:
            told = f"{path}: the run was started with {what} {found.get(what)}"
            raise BadInput(f"{told}, this is {wanted[what]}", HINT)
    before, now = found.get("arguments", {}), wanted["arguments"]
    for key in sorted({*before, *now}):
        if before.get(key) != now.get(key):
            told = f"{path}: the run was started with {key} {before.get(key)!r}"
            hint = f"give {key} as it was, or start again without --resume"
            raise BadInput(f"{told}, not {now.get(key)!r}", hint)


def _common(trial: Trial) -> dict[str, Any]:
    """What both sides have, and what is therefore only named in the file."""
    found = {"trial": trial, "site": trial.site, "workload": trial.workload}
    found |= {f"product {key}": product for key, product in PRODUCTS.items()}
    return found | {"no chips": NO_CHIPS}


def _proxy(found: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(found)


@lru_cache
def _cached() -> None:
    """Any function that remembers what it found."""


def _emptied(function: Callable[..., Any]) -> object:
    """*function*, remembering what it finds from now on."""
    return lru_cache(maxsize=1024)(function)


class _Pickler(pickle.Pickler):
    def __init__(self, file: BytesIO, trial: Trial) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.dispatch_table = {
            MappingProxyType: lambda each: (_proxy, (dict(each),)),
            type(_cached): lambda each: (_emptied, (each.__wrapped__,)),
        }
        self._common = _common(trial)  # keeps what it names alive
        self._name = {id(each): name for name, each in self._common.items()}

    def persistent_id(self, obj: object) -> str | None:
        return self._name.get(id(obj))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BytesIO, trial: Trial) -> None:
        super().__init__(file)
        self._common = _common(trial)

    def persistent_load(self, pid: str) -> object:
        return self._common[pid]
