"""``ringleaf summary-controller``: writes job summaries for the fabric controller."""

import asyncio
import socket
from collections.abc import Sequence

from msgspec import Struct
from rich import box
from rich.table import Table

from ringleaf.cli.access import credentials_of
from ringleaf.cli.failure import BadUse, report
from ringleaf.cli.leader_election import Candidacy, new_identity, standing_for_lead
from ringleaf.cli.output import TrimmedConsole, print_json
from ringleaf.cli.scheduler import log_lines
from ringleaf.cli.shadow import ending
from ringleaf.kube.api import Api
from ringleaf.kube.health import BadAddress, Health
from ringleaf.kube.service import Say
from ringleaf.kube.summary import WRITERS, Line, SummaryWriter
from ringleaf.kube.summary_collector import SummaryPage
from ringleaf.model.topology import quoted


class SummaryRun(Struct, frozen=True):
    """What the command was asked to do."""

    kubeconfig: str | None
    context: str | None
    health: str
    lead: Candidacy | None
    once: bool = False
    as_json: bool = False


def run(asked: SummaryRun) -> int:
    """Write summaries until asked to stop, or once; the exit status."""
    return asyncio.run(_serve(asked, log_lines(as_json=asked.as_json)))


async def _serve(asked: SummaryRun, say: Say) -> int:
    credentials = await credentials_of(asked.kubeconfig, asked.context)
    trouble = lambda line: say("trouble", message=line)  # noqa: E731
    identity = new_identity()
    agent = f"ringleaf-summary/{identity}"
    async with (
        Api(credentials, WRITERS, trouble, agent) as api,
        standing_for_lead(asked, identity, agent, say) as (elector, run_aside),
    ):
        name = f"ringleaf-{socket.gethostname()}"
        writer = SummaryWriter(api, say, elector, aside=run_aside, name=name)
        if asked.once:
            with ending(writer.stop):
                await writer.run(once=True)
        else:
            await _run(asked, writer, say, credentials.server)
    if writer.failure is not None:
        raise writer.failure
    if not asked.once:
        return 0
    lease = "" if elector is None else elector.lease
    if problem := _unfinished(writer, lease):
        report(problem)
        return 1
    status = _report(writer.lines(), as_json=asked.as_json)
    if writer.failing_leaves:
        report(f"the states of leaves are not written: {writer.failing_leaves}")
        return 1
    return status


def _unfinished(writer: SummaryWriter, lease: str) -> str:
    """Why a writer that was to write once has not looked at everything, if so."""
    if writer.rival:
        holds = f"{quoted(writer.rival)} holds the Lease {quoted(lease)}"
        hint = "hint: end it first, or --no-leader-elect"
        return f"another writer leads: {holds}; {hint}"
    if writer.in_vain:
        return f"nothing is written: {writer.in_vain}"
    return "" if writer.is_done else "asked to end before everything was looked at"


async def _run(asked: SummaryRun, writer: SummaryWriter, say: Say, server: str) -> None:
    page = SummaryPage(writer).collected
    try:
        async with Health(asked.health, writer.live, writer.ready, page) as health:
            say("started", server=server, health=health.port)
            with ending(writer.stop):
                await writer.run()
    except BadAddress as error:
        raise BadUse(str(error)) from None
    say("stopped", **writer.map_store.done)


def _report(lines: Sequence[Line], *, as_json: bool) -> int:
    """Say how all summaries are; the exit status: 1 where one is not as it should."""
    if as_json:
        print_json(*lines)
    elif lines:
        TrimmedConsole().print(_table(lines))
    else:
        TrimmedConsole().print("no jobs: there is no PodGroup, and no summary")
    amiss = {"not written", "left alone"}
    return int(any(line.outcome in amiss for line in lines))


def _table(lines: Sequence[Line]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("job", "status", "rank table"):
        table.add_column(heading)
    table.add_column("servers", justify="right")
    table.add_column("slices", justify="right")
    table.add_column("summary")
    for line in lines:
        counts = str(line.servers), str(line.slices)
        table.add_row(line.job, line.status, line.table, *counts, line.outcome)
    return table
