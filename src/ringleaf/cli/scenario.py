"""Reading a scenario for a command."""

import sys
from pathlib import Path

from ringleaf.cli.failure import BadUse, warn
from ringleaf.cli.output import progress
from ringleaf.simulator.scenario import Scenario, load
from ringleaf.simulator.source import MAX_BYTES, BadInput

STDIN = "-"


def read_scenarios(file: str) -> list[Scenario]:
    """The scenarios of *file*, or one line that says what is wrong with it."""
    shown = "standard input" if file == STDIN else file or "''"
    try:
        with progress(what=f"reading {shown}"):
            scenarios = load(_bytes(file))
    except BadInput as error:
        raise BadUse(f"{shown}: {error}") from None
    except OSError as error:
        raise BadUse(f"{shown}: {error.strerror or error}") from None
    except ValueError as error:  # a path with a NUL byte
        raise BadUse(f"{shown!r}: {error}") from None
    for scenario in scenarios:
        for line in scenario.warnings:
            warn(f"{shown}: {line}")
    return scenarios


def _bytes(file: str) -> bytes:
    if file == STDIN:
        if sys.stdin is None:
            raise BadUse("standard input is closed, want a scenario")
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with Path(file).open("rb") as stream:
        return stream.read(MAX_BYTES + 1)
