"""``ringleaf scheduler``: the scheduler on a real cluster."""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, TextIO

import msgspec
from msgspec import Struct

from ringleaf.cli.failure import BadUse
from ringleaf.engine.engine import Engine
from ringleaf.framework.conf import DEFAULT, Conf
from ringleaf.kube.api import Api
from ringleaf.kube.credentials import BadCredentials, load
from ringleaf.kube.health import BadAddress, Health
from ringleaf.kube.scheduler import Mind, Options, Say, Scheduler

TROUBLES: Final = frozenset(
    {"trouble", "problem", "bind failed", "eviction refused", "not told", "warning"}
)
"""Lines of the log that somebody should look at."""


class Run(Struct, frozen=True):
    """What the command was asked to do."""

    kubeconfig: str | None
    context: str | None
    schedulers: Sequence[str]
    conf_file: str | None
    health: str
    record: str | None
    release_s: float
    connections: int


def run(asked: Run) -> int:
    """Schedule until asked to stop; the exit status."""
    say = _log()
    conf = _conf(asked.conf_file, say)
    options = Options(
        schedulers=tuple(asked.schedulers),
        conf=conf,
        release_s=asked.release_s,
        workers=asked.connections,
        name=f"ringleaf-{socket.gethostname()}",
    )
    with ExitStack() as stack:
        mind: Callable[[Engine], Mind] = lambda engine: engine  # noqa: E731
        if asked.record is not None:
            from ringleaf.simulator.log import Recorder  # noqa: PLC0415 - rarely used

            out = stack.enter_context(_recording(asked.record))
            mind = lambda engine: Recorder(engine, out)  # noqa: E731
        return asyncio.run(_serve(asked, options, say, mind))


async def _serve(
    asked: Run, options: Options, say: Say, mind: Callable[[Engine], Mind]
) -> int:
    try:
        credentials = await load(asked.kubeconfig, asked.context)
    except BadCredentials as error:
        raise BadUse(str(error)) from None
    trouble = lambda line: say("trouble", message=line)  # noqa: E731
    async with Api(credentials, options.workers, trouble) as api:
        scheduler = Scheduler(api, options, say, mind)
        try:
            async with Health(asked.health, scheduler.live, scheduler.ready) as health:
                say(
                    "started",
                    server=credentials.server,
                    schedulers=list(options.schedulers),
                    health=health.port,
                )
                await scheduler.run()
        except BadAddress as error:
            raise BadUse(str(error)) from None
        if scheduler.failure is not None:
            raise scheduler.failure
    return 0


def _conf(file: str | None, say: Say) -> Conf:
    if file is None:
        return DEFAULT
    from ringleaf.cli.conf import read_file  # noqa: PLC0415 - slow, not always used

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


def _log() -> Say:
    """Lines of JSON on standard error, or of words where that is a terminal."""
    out = sys.stderr
    if not out.isatty():
        return lambda what, **facts: _write(out, _json(what, facts))
    colour = "NO_COLOR" not in os.environ
    return lambda what, **facts: _write(out, _words(what, facts, colour=colour))


def _write(out: TextIO, line: str) -> None:
    """A log that nobody reads any more stops nothing."""
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
