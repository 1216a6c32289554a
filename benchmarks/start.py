"""Processor time of commands, from start to end: python benchmarks/start.py."""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Final

ROUNDS: Final = 11
ROOT: Final = Path(__file__).parents[1]
CALLS: Final = (
    "--help",
    "plan --help",
    "products",
    "plan examples/node-a-or-b.yaml",
    "check-conf examples/conf/vendor.yaml",
)


def processor_s(program: str, call: str) -> float:
    """User and system time of one run."""
    before = os.times()
    subprocess.run(  # noqa: S603
        [program, *call.split()], cwd=ROOT, stdout=subprocess.DEVNULL, check=True
    )
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system


def main() -> None:
    """Print the median of every command; the program may be another one's."""
    program = sys.argv[1] if sys.argv[1:] else str(Path(sys.executable).parent)
    runs = [
        {call: processor_s(f"{program}/ringleaf", call) for call in CALLS}
        for _ in range(ROUNDS)
    ]
    for call in CALLS:
        times = sorted(run[call] for run in runs)
        print(f"{call:40} {median(times):5.2f} s   ({times[0]:.2f} to {times[-1]:.2f})")


if __name__ == "__main__":
    main()
