"""Sends prepared requests as fast as one process can: the submitter, and the ceiling.

Part of ``race.py``, which starts it as a process of its own. It uses the client of the
scheduler with as many connections, so what it reaches with bindings is what a scheduler
could reach that takes no time to decide.

    python benchmarks/post.py KUBECONFIG FILE

FILE has a request in each line, a JSON array of method, path and body. It connects,
says ``ready``, waits for a line, sends all of them, and says when it began and ended.
"""

import asyncio
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import monotonic, process_time

import msgspec

from ringleaf.kube.api import Api
from ringleaf.kube.credentials import load

CONNECTIONS = 32
STRATEGIC = "application/strategic-merge-patch+json"

Request = tuple[str, str, bytes, str]


class Sent(msgspec.Struct):
    """When the first request was sent and the last one answered, and what it took.

    Times are those of the system's monotonic clock, which all processes share.
    """

    first: float
    last: float
    cpu_s: float
    rss_mib: float
    failed: int
    why: str


def requests(path: Path) -> Iterator[Request]:
    """The requests of a file."""
    for line in path.read_bytes().splitlines():
        method, where, body = msgspec.json.decode(
            line, type=tuple[str, str, msgspec.Raw]
        )
        kind = STRATEGIC if method == "PATCH" else "application/json"
        yield method, where, bytes(body), kind


async def post(kubeconfig: str, todo: list[Request]) -> Sent:
    """Send all requests when told to."""
    failed: list[str] = []
    async with Api(await load(kubeconfig), CONNECTIONS) as api:

        async def work() -> None:
            while todo:
                method, path, body, kind = todo.pop()
                answer = await api.call(method, path, body, kind=kind)
                if not answer.ok:
                    failed.append(f"{path}: {answer.status} {answer.body!r}")

        todo.reverse()
        warm = (api.call("GET", "/version") for _ in range(CONNECTIONS))
        await asyncio.gather(*warm)
        print("ready", flush=True)
        if not sys.stdin.readline():
            sys.exit(1)
        first, before = monotonic(), process_time()
        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
        last, cpu_s = monotonic(), process_time() - before
    rss_mib = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    return Sent(first, last, cpu_s, rss_mib, len(failed), "".join(failed[:1]))


def main() -> None:
    """Read, wait, send, tell."""
    gc.disable()  # it ends soon
    todo = list(requests(Path(sys.argv[2])))
    sent = asyncio.run(post(sys.argv[1], todo))
    print(msgspec.json.encode(sent).decode(), flush=True)


if __name__ == "__main__":
    main()
