"""``ringleaf init``: a commented file to start from."""

import sys
from itertools import pairwise
from pathlib import Path
from typing import Final

from ringleaf.cli.failure import BadUse, typed
from ringleaf.cli.output import print_json
from ringleaf.simulator.workloads import SUITS

FOLDER: Final = Path(__file__).with_name("starters")


def _options(workload: str) -> str:
    """The options of a first run of a workload."""
    suits = SUITS[workload]
    return f"--workload {workload} --load {suits.load} --jobs {suits.jobs}"


COMPARED: Final = (
    f"compare {_options('kalos')} --contention 0.3 --seeds 5 "
    "--policies ringleaf,volcano-vendor-1.0 --report report.html --cluster"
)
SMALLER: Final = "hint: put in your own leaves and nodes first; " + ", ".join(
    f"fewer than {SUITS[larger].chips:,} chips: {_options(workload)}"
    for larger, workload in pairwise(SUITS)
)
"""What to say of the options of the command, which suit the file as written."""
STARTERS: Final = {
    "scenario": ("scenario.yaml", "plan"),
    "cluster": ("cluster.yaml", COMPARED),
    "conf": ("volcano-scheduler.conf", "check-conf"),
}
"""What can be written: its file, and the command that reads it."""


def write_starter(what: str, output: str | None, *, as_json: bool) -> int:
    """Print a starter file or write it to *output*, a new file; the exit status."""
    file, reader = STARTERS[what]
    text = (FOLDER / file).read_text(encoding="utf-8")
    if output is not None:
        _write_new(output, text)
    if as_json:
        where = {"text": text} if output is None else {"output": output}
        print_json({"what": what, **where})
    elif output is None:
        sys.stdout.write(text)
    else:
        sys.stdout.write(f"wrote {output}; next: {typed()} {reader} {output}\n")
        if what == "cluster":
            sys.stdout.write(f"{SMALLER}\n")
    return 0


def _write_new(output: str, text: str) -> None:
    try:
        with Path(output).open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise BadUse(
            f"--output is {output!r}, which exists, want a new file; "
            "hint: another name, or remove it first"
        ) from None
    except OSError as error:
        why = error.strerror or error
        raise BadUse(f"--output is {output!r}: {why}, want a new file") from None
    except ValueError as error:  # a path with a NUL byte
        raise BadUse(f"--output is {output!r}: {error}, want a new file") from None
