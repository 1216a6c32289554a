"""Becomes the command it is given, and ends when the process that asked for it ends.

Run as a script, ``python -I -S launch.py PARENT COMMAND...``: between fork and exec of
a process with threads no Python may run, so this is one of its own for a moment.
"""

import ctypes
import os
import signal
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1


def main(parent: int, command: list[str]) -> None:
    """Ask the kernel for the signal, see that it is not too late, become *command*."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
