"""How long nobody decides when the leader of two schedulers ends.

    python -m benchmarks.handover          in a small cluster, and in a large one
    python -m benchmarks.handover --small

A pod is submitted at the moment at which the leader is asked to end, or is killed; the
clock runs until it is bound. The large cluster has 5,000 nodes and 40,000 running pods.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.race import BIN, PATIENCE_S, PODS, PRODUCT, STARTS, Stable, pod, usage
from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.process import Child

ROUNDS: Final = 3
SETTLE_S: Final = 6.0


def start(bed: Testbed, number: int) -> Child:
    """A scheduler that stands by, or leads."""
    where = ["--kubeconfig", str(bed.kubeconfig), "--healthz-address", "127.0.0.1:0"]
    return bed.run(f"ringleaf-{number}", [BIN / "ringleaf", "scheduler", *where])


def wait(child: Child, word: str) -> None:
    """Until *child* says so in its log."""
    child.wait_until(lambda: child.says(f'"event":"{word}"'), PATIENCE_S)


def bound_after(bed: Testbed, name: str) -> float:
    """Seconds until a pod that is submitted now is bound."""
    began = time.monotonic()
    bed.client.ask("POST", PODS, pod(name, "ringleaf", None, 1))
    while time.monotonic() - began < PATIENCE_S:
        found = bed.client.ask("GET", f"{PODS}/{name}")
        if found["spec"].get("nodeName"):
            return time.monotonic() - began
        time.sleep(0.005)
    raise RuntimeError(f"pod {name} is not bound after {PATIENCE_S:.0f} s")


def rounds(bed: Testbed) -> Iterator[tuple[str, float]]:
    """How a leader ended, and for how long nobody decided."""
    leader, number = start(bed, 0), 1
    wait(leader, "leads")
    yield "a leader that is there", bound_after(bed, "warm-up")
    for turn in range(ROUNDS):
        for way in (signal.SIGTERM, signal.SIGKILL):
            standby = start(bed, number)
            wait(standby, "synced")
            time.sleep(SETTLE_S)  # what there is to tell is told
            with suppress(ProcessLookupError):
                os.kill(leader.pid, way)
            name = f"new-{turn}-{way.name.lower()}"
            yield f"after {way.name}", bound_after(bed, name)
            leader, number = standby, number + 1
    print(f"  memory of a leader: {usage(leader.pid).rss_mib:.0f} MiB")
    leader.stop()


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="the small cluster alone")
    asked = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with TemporaryDirectory() as folder:
        stable = Stable(Path(folder))
        sizes = (100, 0), (5_000, STARTS["start"].n_running)
        for n_nodes, running in sizes[:1] if asked.small else sizes:
            print(f"{n_nodes} nodes of {PRODUCT}, {running} pods:")
            found: dict[str, list[float]] = {}
            with stable.bed(n_nodes, running=running) as bed:
                for way, took in rounds(bed):
                    found.setdefault(way, []).append(took)
            for way, times in found.items():
                told = ", ".join(f"{took:.2f}" for took in times)
                print(f"  {way}: bound after {told} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
