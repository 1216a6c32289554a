"""What commands share that ask a live cluster: how it is reached, and what it says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct

from ringleaf.cli.access import credentials_of
from ringleaf.cli.failure import BadUse, warn
from ringleaf.cli.fault_view import hold_back
from ringleaf.cli.output import progress
from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.kube.api import Api
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.fault_history import FaultHistory, read_lives
from ringleaf.kube.snapshot import SCHEDULERS, Snapshot, Trouble, clock, read_cache

_T = TypeVar("_T")


class ClusterAccess(Struct, frozen=True):
    """Which cluster is asked, and by which rules.

    Args:
        kubeconfig: Where the API server is; else as ``ringleaf scheduler`` finds it.
        context: Context of the kubeconfig.
        schedulers: The scheduler names of pods that are ours.
        conf_file: The configuration; else the default.

    """

    kubeconfig: str | None = None
    context: str | None = None
    schedulers: Sequence[str] = SCHEDULERS
    conf_file: str | None = None

    def conf(self) -> Conf:
        """The configuration by which is decided."""
        if self.conf_file is None:
            return DEFAULT
        from ringleaf.cli.conf_file import read_file  # noqa: PLC0415 - slow, rarely used

        conf, warnings = read_file(self.conf_file)
        for line in warnings:
            warn(f"{self.conf_file}: {line}")
        return conf

    @asynccontextmanager
    async def reached(self) -> AsyncIterator[Api]:
        """The API server."""
        credentials = await credentials_of(self.kubeconfig, self.context)
        async with Api(credentials) as api:
            yield api


def look_at(cluster: ClusterAccess) -> tuple[Snapshot, str]:
    """The cluster as it is now, and the namespace that is meant without a word."""

    async def look(api: Api, seen: Callable[[int], None]) -> tuple[Snapshot, str]:
        cache = await read_cache(api, cluster.schedulers, cluster.conf(), seen)
        return Snapshot(cache, clock()), api.credentials.namespace

    return ask(cluster, look)


async def look_with_lives(
    api: Api, cluster: ClusterAccess, seen: Callable[[int], None]
) -> Snapshot:
    """The cluster as it is now, with what its scheduler has written down of faults.

    Nodes that are set aside and jobs that the brake holds back are known by that alone.
    """
    cache = await read_cache(api, cluster.schedulers, cluster.conf(), seen)
    return recalled(cache, await read_lives(api), clock())


def recalled(cache: ClusterCache, lives: FaultHistory, now: float) -> Snapshot:
    """A look at *world*, with what was written down of its faults."""
    if lives.trouble:
        warn(
            "quarantined nodes and jobs that wait for the eviction rate limit are not "
            f"known: {lives.trouble}"
        )
    cache.handover.put_faults(lives.faults, {}, lives.deletions)
    look = Snapshot(cache, now)
    hold_back(look.engine, lives.braked, now)
    return look


def ask(
    cluster: ClusterAccess,
    question: Callable[[Api, Callable[[int], None]], Awaitable[_T]],
) -> _T:
    """The answer to *question*; how many objects were read so far is shown."""

    async def answer(seen: Callable[[int], None]) -> _T:
        async with cluster.reached() as api:
            return await question(api, seen)

    with _counting() as seen:
        try:
            return asyncio.run(answer(seen))
        except Trouble as error:
            raise BadUse(str(error)) from None


@contextmanager
def _counting() -> Iterator[Callable[[int], None]]:
    with progress(what="reading the cluster") as shown:
        (task,) = shown.task_ids
        yield lambda n: shown.update(task, description=f"reading the cluster: {n}")


def moment(seconds: float) -> str:
    """A time for people, in UTC.

    >>> moment(1_763_240_000)
    '2025-11-15 20:53:20 UTC'
    """
    at = datetime.fromtimestamp(seconds, UTC)
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")
