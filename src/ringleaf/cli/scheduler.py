"""``ringleaf scheduler``: the scheduler on a real cluster."""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, Protocol, TextIO

import msgspec
from msgspec import Struct
from prometheus_client.registry import Collector

import ringleaf
from ringleaf.cli.access import credentials_of
from ringleaf.cli.failure import BadUse
from ringleaf.cli.file import STDIN
from ringleaf.cli.leader_election import (
    Candidacy,
    new_identity,
    own_namespace,
    standing_for_lead,
)
from ringleaf.cli.shadow import PAGE, ShadowRun, beside, ending, running
from ringleaf.cli.with_summary import summing
from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.kube import names
from ringleaf.kube.api import Api
from ringleaf.kube.canary import Canary
from ringleaf.kube.collector import SchedulerCollector
from ringleaf.kube.decider import EngineInterface
from ringleaf.kube.health import BadAddress, Health, Json
from ringleaf.kube.metrics import Metrics
from ringleaf.kube.scheduler import Options, Scheduler
from ringleaf.kube.service import Say
from ringleaf.kube.shadow_collector import ShadowCollector, ShadowPage
from ringleaf.kube.summary_collector import SummaryCollector
from ringleaf.model.topology import quoted

TROUBLES: Final = frozenset(
    {
        "trouble",
        "problem",
        "bind failed",
        "eviction refused",
        "status not written",
        "warning",
        "configuration refused",
        "deposed",
        "not written",
    }
)
"""Lines of the log that an operator should look at."""
LOOK_S: Final = 0.5
"""How often to look whether the configuration has changed."""
SETTLE_S: Final = 0.1
"""How long a file must stay as it is before it is read: it may be half written."""
MOST_LOOKS: Final = 50
"""How often to look for that at most."""
MOST_BYTES: Final = 1 << 20
"""The largest configuration: a ConfigMap has no more, and reading it takes time."""
MISSED: Final = 4
"""How many looks in a row find no file before that is told."""


class SchedulerOptions(Struct, frozen=True):
    """What the command was asked to do."""

    kubeconfig: str | None
    context: str | None
    schedulers: Sequence[str]
    conf_file: str | None
    health: str
    record: str | None
    release_s: float
    connections: int
    lead: Candidacy | None = None
    shadow: ShadowRun | None = None
    canary_queues: Sequence[str] = ()
    canary_namespaces: Sequence[str] = ()
    with_summary: bool = False
    namespace: str | None = None

    @property
    def canary(self) -> Canary | None:
        """The jobs that are bound beside a shadow, if any are."""
        if not (self.canary_queues or self.canary_namespaces):
            return None
        return Canary(frozenset(self.canary_queues), frozenset(self.canary_namespaces))


def run(asked: SchedulerOptions) -> int:
    """Schedule until asked to stop; the exit status."""
    say = log_lines()
    watched = Watched(asked.conf_file)
    conf = _conf(asked.conf_file, say)
    if asked.shadow is not None and asked.canary is None:
        if asked.record is not None:
            raise BadUse(
                "--record goes with a scheduler that decides, and --shadow does not; "
                "hint: --shadow-log FILE"
            )
        if asked.with_summary:
            raise BadUse(
                "--with-summary goes with a scheduler that leads, and --shadow does "
                "not; hint: ringleaf summary-controller"
            )
        if list(asked.schedulers) != [names.SCHEDULER]:
            told = "--scheduler-name has no effect on a shadow without a canary"
            say("warning", message=f"{told}; hint: --shadow-name, --canary-queue")
        return asyncio.run(_look(asked, asked.shadow, conf, say, watched))
    for name in asked.shadow.schedulers if asked.shadow is not None else ():
        if name in asked.schedulers:
            raise BadUse(
                f"--scheduler-name and --shadow-name are both {quoted(name)}, want "
                "different ones; hint: no name has two schedulers"
            )
    options = Options(
        schedulers=tuple(asked.schedulers),
        conf=conf,
        release_s=asked.release_s,
        workers=asked.connections,
        canary=asked.canary,
        name=f"ringleaf-{socket.gethostname()}",
        namespace=own_namespace(asked.namespace),
    )
    with ExitStack() as stack:
        mind: Callable[[Engine], EngineInterface] = lambda engine: engine  # noqa: E731
        if asked.record is not None:
            from ringleaf.simulator.log import Recorder  # noqa: PLC0415 - rarely used

            out = stack.enter_context(_recording(asked.record))
            mind = lambda engine: Recorder(engine, out)  # noqa: E731
        work = _serve(asked, options, say, mind, watched=watched)
        return asyncio.run(work)


async def _look(
    asked: SchedulerOptions, shadow: ShadowRun, conf: Conf, say: Say, watched: "Watched"
) -> int:
    """Be a shadow, and nothing else."""
    credentials = await credentials_of(asked.kubeconfig, asked.context)
    trouble = lambda line: say("trouble", message=line)  # noqa: E731
    async with Api(credentials, asked.connections, trouble) as api:
        with beside(api, shadow, conf, say) as loop:
            try:
                pages = {PAGE: loop.page}
                page = ShadowPage(loop.shadow.findings).collected
                async with Health(
                    asked.health, loop.live, loop.ready, page, pages
                ) as health:
                    say(
                        "started",
                        server=credentials.server,
                        shadows=list(shadow.schedulers),
                        health=health.port,
                    )
                    following = asyncio.create_task(_follow(watched, [loop], say))
                    with ending(loop.stop):
                        await loop.run()
                    following.cancel()
            except BadAddress as error:
                raise BadUse(str(error)) from None
            if loop.failure is not None:
                raise loop.failure
    return 0


async def _serve(
    asked: SchedulerOptions,
    options: Options,
    say: Say,
    mind: Callable[[Engine], EngineInterface],
    *,
    watched: "Watched",
) -> int:
    credentials = await credentials_of(asked.kubeconfig, asked.context)
    trouble = lambda line: say("trouble", message=line)  # noqa: E731
    identity, metrics = new_identity(), Metrics()
    agent = f"ringleaf/{identity}"
    async with (
        Api(credentials, options.workers, trouble, agent, metrics.answered) as api,
        standing_for_lead(asked, identity, agent, say, metrics.answered) as (
            elector,
            run_aside,
        ),
        AsyncExitStack() as on,
    ):
        scheduler = Scheduler(
            api, options, say, mind, elector, aside=run_aside, metrics=metrics
        )
        pages: dict[str, Json] = {}
        ruled: list[Ruled] = [scheduler]
        counts: list[Collector] = []
        if asked.shadow is not None:
            loop = on.enter_context(beside(api, asked.shadow, options.conf, say))
            await on.enter_async_context(running(loop, scheduler.stop))
            pages[PAGE] = loop.page
            ruled.append(loop)
            counts.append(ShadowCollector(loop.shadow.findings))
        if asked.with_summary:
            own = await credentials_of(asked.kubeconfig, asked.context)
            writer = await on.enter_async_context(summing(own, say, scheduler))
            counts.append(SummaryCollector(writer))
        page = SchedulerCollector(scheduler, ringleaf.__version__, *counts).collected
        try:
            async with Health(
                asked.health, scheduler.live, scheduler.ready, page, pages
            ) as health:
                say(
                    "started",
                    server=credentials.server,
                    schedulers=list(options.schedulers),
                    health=health.port,
                    identity=identity if elector is not None else None,
                )
                following = asyncio.create_task(_follow(watched, ruled, say))
                await scheduler.run()
                following.cancel()
        except BadAddress as error:
            raise BadUse(str(error)) from None
        if scheduler.failure is not None:
            raise scheduler.failure
    return 0


class Ruled(Protocol):
    """Follows a configuration that may change."""

    def reconfigure(self, conf: Conf) -> None:
        """Go by *conf* from now on."""

    def refuse_conf(self, why: str) -> None:
        """There is a newer configuration, and it is no good."""


class Watched:
    """The file of the configuration, as it was when it was last read.

    In a pod it is a link to a link, which are changed together; what they lead to is
    looked at. Made before the file is read first: it may change from then on.
    """

    def __init__(self, file: str | None) -> None:
        self.file = None if file == STDIN else file
        self._read = self._stat()
        self._missed = 0

    def is_new(self) -> bool:
        """Whether it is to be read now: it is another, or has been gone for a while."""
        found = self._stat()
        self._missed = self._missed + 1 if found is None else 0
        if found == self._read or (found is None and self._missed < MISSED):
            return False
        self._read = found
        return True

    async def settled(self) -> None:
        """Return when the file has stopped changing, or after ``MOST_LOOKS``."""
        for _look in range(MOST_LOOKS):
            before = self._stat()
            await asyncio.sleep(SETTLE_S)
            if self._stat() == before:
                return

    def _stat(self) -> tuple[int, ...] | None:
        """What identifies the content of a file, and whether it can be read."""
        if self.file is not None:
            with suppress(OSError, ValueError):
                found = Path(self.file).stat()
                told = found.st_mtime_ns, found.st_ctime_ns, found.st_size
                return *told, found.st_ino, found.st_dev
        return None


async def _follow(watched: Watched, ruled: Iterable[Ruled], say: Say) -> None:
    """Read the configuration again when its file changes; a bad one changes nothing.

    It is read beside everything else: a large one takes longer than a Lease lasts.
    """
    file = watched.file
    while file is not None:
        await asyncio.sleep(LOOK_S)
        if not watched.is_new():
            continue
        await watched.settled()
        watched.is_new()
        try:
            conf = await asyncio.to_thread(_conf, file, say)
        except Exception as error:  # noqa: BLE001 - whatever it is, the last one counts
            why = str(error) or type(error).__name__
            say("configuration refused", file=file, message=why)
            for each in ruled:
                each.refuse_conf(why)
            continue
        say("configuration", file=file, actions=", ".join(conf.actions))
        for each in ruled:
            each.reconfigure(conf)


def _conf(file: str | None, say: Say) -> Conf:
    if file is None:
        return DEFAULT
    from ringleaf.cli.conf_file import read_file  # noqa: PLC0415 - slow, rarely used

    with suppress(OSError, ValueError):
        size = Path(file).stat().st_size
        if size > MOST_BYTES:
            raise BadUse(f"{file}: has {size} bytes, want at most {MOST_BYTES}")
    conf, warnings = read_file(file)
    for line in warnings:
        say("warning", file=file, message=line)
    return conf


@contextmanager
def _recording(file: str) -> Iterator[BinaryIO]:
    try:
        if Path(file).is_file() and Path(file).stat().st_size:
            Path(file).replace(f"{file}.old")  # that of the run before
        with Path(file).open("wb") as out:
            yield out
    except OSError as error:
        raise BadUse(f"{file}: {error.strerror or error}") from None


def log_lines(*, as_json: bool = False) -> Say:
    """Lines of JSON on standard error, or of words where that is a terminal."""
    out = sys.stderr
    if as_json or not out.isatty():
        return lambda what, **facts: _write(out, _json(what, facts))
    colour = "NO_COLOR" not in os.environ
    return lambda what, **facts: _write(out, _words(what, facts, colour=colour))


def _write(out: TextIO, line: str) -> None:
    """Write a line; ignore a log that is closed."""
    with suppress(OSError, ValueError):
        out.write(f"{line}\n")
        out.flush()


def _json(what: str, facts: Mapping[str, object]) -> str:
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = _said(facts) | {"event": what, "timestamp": at}
    return msgspec.json.encode(line, enc_hook=str).decode()


def _words(what: str, facts: Mapping[str, object], *, colour: bool) -> str:
    at = datetime.now().astimezone().strftime("%H:%M:%S")
    told = " ".join(f"{key}={value}" for key, value in _said(facts).items())
    if not colour:
        return f"{at} {what:<8} {told}".rstrip()
    style = 31 if what in TROUBLES else 36
    return f"\x1b[2m{at}\x1b[0m \x1b[1;{style}m{what:<8}\x1b[0m {told}".rstrip()


def _said(facts: Mapping[str, object]) -> dict[str, object]:
    """What is not empty."""
    return {key: value for key, value in facts.items() if value not in ("", None)}
