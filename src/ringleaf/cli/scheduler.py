"""``ringleaf scheduler``: the scheduler on a real cluster."""

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec
import structlog
from msgspec import Struct

from ringleaf.cli.conf import read_file
from ringleaf.cli.failure import BadUse
from ringleaf.engine.engine import Engine
from ringleaf.framework.conf import DEFAULT, Conf
from ringleaf.kube.api import Api
from ringleaf.kube.credentials import BadCredentials, load
from ringleaf.kube.health import BadAddress, Health
from ringleaf.kube.scheduler import Mind, Options, Say, Scheduler
from ringleaf.simulator.log import Recorder


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
    conf, warnings = read_file(file)
    for line in warnings:
        say("warning", file=file, message=line)
    return conf


@contextmanager
def _recording(file: str) -> Iterator[BinaryIO]:
    try:
        with Path(file).open("wb") as out:
            yield out
    except OSError as error:
        raise BadUse(f"{file}: {error.strerror or error}") from None


def _log() -> Say:
    """Lines of JSON on standard error, or of words where that is a terminal."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    shown: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer()
        if terminal
        else structlog.processors.JSONRenderer(serializer=_json)
    )
    # Bound once: a logger that is bound anew for every line costs more than a bind.
    logger = structlog.wrap_logger(
        structlog.WriteLogger(sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        processors=[
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _without_nothing,
            shown,
        ],
    )
    return logger.bind().info  # type: ignore[no-any-return]


def _json(line: structlog.typing.EventDict, **_how: object) -> str:
    return msgspec.json.encode(line, enc_hook=str).decode()


def _without_nothing(
    _logger: object, _method: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """A line without what is empty, and with words for errors."""
    return {
        key: str(value) if isinstance(value, BaseException) else value
        for key, value in line.items()
        if value not in ("", None)
    }
