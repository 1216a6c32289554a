"""How far a gang's way is: calls and changes of file from its event to its Bind.

``python -m benchmarks.way`` lets a gang of 4 pods arrive at a cluster of 64 nodes
where every table was made by a gang before it, and counts with ``sys.setprofile``.
Calls are those of functions of Ringleaf; comprehensions and generators are not counted.
"""

import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import FrameType

import ringleaf
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import JobArrived
from ringleaf.framework.instruction import Bind
from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from ringleaf.policies.products import PRODUCTS

ROOT = str(Path(ringleaf.__file__).parent)
A2 = PRODUCTS["atlas-800t-a2"]
MOST_SHOWN = 12


def main() -> None:
    """Count, and print the functions that are called most often."""
    nodes = [
        Node(f"n{i:02}", A2, 8, 0xFF, leaf=f"L{i // 4}", slot=i % 4) for i in range(64)
    ]
    engine = Engine(nodes)
    engine.handle(JobArrived(Job("warm", A2, 8, 4)), 0.0)
    calls: list[tuple[str, str]] = []

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        ours = event == "call" and code.co_filename.startswith(ROOT)
        if ours and not code.co_name.startswith("<"):
            calls.append((code.co_filename.removeprefix(ROOT), code.co_qualname))

    event = JobArrived(Job("gang", A2, 8, 4))
    sys.setprofile(profile)
    said = engine.handle(event, 1.0)
    sys.setprofile(None)
    assert any(isinstance(each, Bind) for each in said), said
    files = [file for file, _name in calls]
    changes = sum(one != other for one, other in pairwise(files))
    print(f"{len(calls)} calls in {len({*files})} files, {changes} changes of file")
    for (file, name), n in Counter(calls).most_common(MOST_SHOWN):
        print(f"{n:4} {file} {name}")


if __name__ == "__main__":
    main()
