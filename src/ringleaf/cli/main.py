"""The command line: finds the command, calls it, and turns failures into one line."""

import gc
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Final

import ringleaf
from ringleaf.cli import commands
from ringleaf.cli.command import HELP, Command
from ringleaf.cli.failure import BadUse, Interrupted, program, report
from ringleaf.cli.parameter import close_to
from ringleaf.cli.registry import COMMANDS, PARENTS, children_of, find, listed
from ringleaf.cli.usage import commands_of, help_of, overview

__all__ = ["COLLECT_AFTER", "COMMANDS", "commands", "find", "print_help", "run"]

COLLECT_AFTER: Final = 50_000
"""Objects made before a look for garbage: what jobs and nodes are made of stays."""
BAD_USE, INTERRUPTED = 2, 130

TITLE: Final = (
    "Ringleaf schedules AI jobs on Ascend clusters, on Kubernetes or simulated, and "
    "explains every decision."
)
COMPLETE: Final = "__complete"
"""The word by which the script of a shell asks for words to offer."""
MORE: Final = (
    "{program} COMMAND --help shows the options and examples of a command.",
    "Exit status: 0 success, 1 the answer is no, 2 wrong use or bad input.",
)


def run() -> None:
    """Run the command line; bad input is one line and exit status 2."""
    gc.set_threshold(COLLECT_AFTER)
    _prepare_streams()
    try:
        status = call(sys.argv[1:])
        sys.stdout.flush()
        sys.exit(status)
    except BadUse as error:
        report(str(error))
        sys.exit(BAD_USE)
    except Interrupted as error:
        report(str(error))
        sys.exit(INTERRUPTED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _let_go()  # the reader left; nothing more to say
        sys.exit(0)
    except OSError as error:
        _let_go()
        report(f"standard output: {error.strerror or error}")
        sys.exit(BAD_USE)


def call(words: Sequence[str]) -> int:
    """Do what the *words* ask for; the exit status."""
    first = words[0] if words else ""
    if first == "--version":
        print(f"ringleaf {ringleaf.__version__}")  # noqa: T201
        return 0
    if first in HELP or not words:
        print_help([])
        return 0 if words else BAD_USE
    if first == COMPLETE:
        from ringleaf.cli.completion import answer  # noqa: PLC0415 - for shells alone

        print(answer(words[1:]), end="")  # noqa: T201
        return 0
    if first.startswith("-"):
        hint = f"options follow the command, as in {program()} plan FILE --json"
        if guess := close_to(first, ["--version", *HELP], cutoff=0.8):
            hint = f"did you mean {guess!r}?"
        raise BadUse(f"{program()} has no option {first!r}; hint: {hint}")
    found, rest = find(words)
    if isinstance(found, str):
        print_help([found])
        return 0 if any(word in HELP for word in rest) else BAD_USE
    if found.wants_help(rest):
        print_help(found.name.split())
        return 0
    return found.call(rest)


def print_help(words: Sequence[str]) -> None:
    """Print the help of a command, of a word that several begin with, or of all."""
    print(_help(words))  # noqa: T201


def _help(words: Sequence[str]) -> str:
    if not words:
        more = [line.format(program=program()) for line in MORE]
        return overview(TITLE, listed(), more)
    found, _rest = find(words)
    if isinstance(found, Command):
        return help_of(found)
    return commands_of(PARENTS[found], found, children_of(found))


def _prepare_streams() -> None:
    """A closed stream swallows; what an encoding cannot show is escaped."""
    nowhere = Path(os.devnull)
    sys.stdout = sys.stdout or nowhere.open("w")
    sys.stderr = sys.stderr or nowhere.open("w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _let_go() -> None:
    """Send what is still buffered nowhere, so that leaving does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
