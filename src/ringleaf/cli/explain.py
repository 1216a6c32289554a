"""``ringleaf explain``."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ringleaf.cli.failure import BadUse
from ringleaf.cli.output import counted, print_json, shortened
from ringleaf.cli.plan import VERDICT_STYLES, verdict
from ringleaf.cli.scenario import read_scenarios
from ringleaf.framework.explain import (
    Candidate,
    Refused,
    Survey,
    enough_to_end,
    look_at,
    survey,
)
from ringleaf.framework.session import Session
from ringleaf.kube.names import UID
from ringleaf.model.decision import Decision, Placed, Waiting
from ringleaf.model.job import Job
from ringleaf.policies.admission import is_legal
from ringleaf.simulator.answer import answer
from ringleaf.simulator.scenario import Scenario

MAX_NAMES = 8


def explain_job(
    file: str, name: str, node: str | None, top: int, *, as_json: bool
) -> int:
    """Explain one job, or what it finds on one node; the exit status."""
    scenario = _holding(read_scenarios(file), file, name)
    if scenario.is_run:
        from ringleaf.cli.outlook import explain_run  # noqa: PLC0415 - with the engine

        return explain_run(scenario, name, node, top, as_json=as_json)
    session = scenario.open()
    if node is not None and node not in session.cluster.index:
        raise BadUse(f"--node is {node!r}, want the name of a node of the scenario")
    job = next(job for job in scenario.jobs if job.name == name)
    for earlier in counted(scenario.jobs[: scenario.jobs.index(job)], "deciding"):
        session.decide(earlier)
    if node is not None and is_legal(job, session.settings):
        return explain_node(session, job, node, as_json=as_json)
    found = survey(session, job, top) if is_legal(job, session.settings) else None
    decision = session.decide(job)
    if found is not None and isinstance(decision, Waiting):
        found = replace(found, enough_to_end=enough_to_end(session, job))
    if as_json:
        print_json(_plain(session, decision, found))
    else:
        _print(Console(highlight=False), session, decision, found, top)
    return 0 if isinstance(decision, Placed) else 1


def _holding(scenarios: Sequence[Scenario], file: str, name: str) -> Scenario:
    """The first document that has the job."""
    for scenario in scenarios:
        if name in scenario.known_jobs:
            return scenario
    names = [job for scenario in scenarios for job in scenario.known_jobs]
    like = [job for job in names if UID.sub("", job) == name]
    if len(like) == 1:
        raise BadUse(f"--job is {name!r}, want a job of {file}; hint: --job {like[0]}")
    has = shortened(names, MAX_NAMES)
    raise BadUse(f"--job is {name!r}, want a job of {file}; hint: it has {has}")


def explain_node(session: Session, job: Job, node: str, *, as_json: bool) -> int:
    """What the job finds on one node; the exit status."""
    found = look_at(session, job, node)
    fits = isinstance(found, Candidate)
    if as_json:
        print_json({"job": job.name, "fits": fits, **msgspec.to_builtins(found)})
    elif isinstance(found, Refused):
        _say(f"node {node!r} refuses job {job.name!r}: {found.reason}", found.rule)
    else:
        _say(
            f"node {node!r} fits job {job.name!r}: choice {found.place}",
            f"rank: {'; '.join(found.rank)}",
            f"chips: {', '.join(map(str, found.chips))}",
        )
    return 0 if fits else 1


def _say(head: str, *lines: str) -> None:
    console = Console(highlight=False)
    console.print(Text(head))
    for line in lines:
        console.print(indented(line))


def indented(line: str, style: str = "") -> Padding:
    """*line* two columns in, also where it is broken."""
    return Padding(Text(line, style=style), (0, 0, 0, 2), expand=False)


def _plain(
    session: Session, decision: Decision, found: Survey | None
) -> dict[str, Any]:
    return {"decision": answer(session.cluster, decision), **survey_told(found)}


def survey_told(found: Survey | None) -> dict[str, Any]:
    """A survey as plain values."""
    told = msgspec.to_builtins(found) if found is not None else {}
    for key in ("leaves", "superpods"):
        if not told.get(key):
            told.pop(key, None)
    return told


def _print(
    console: Console,
    session: Session,
    decision: Decision,
    found: Survey | None,
    top: int,
) -> None:
    print_decision(console, decision)
    if found is not None:
        print_network(console, session, decision, found, top)
        print_survey(console, found, waits=isinstance(decision, Waiting))


def print_decision(console: Console, decision: Decision) -> None:
    """What became of the job, and why."""
    word = verdict(decision)
    head = Text.assemble(
        f"job {decision.job.name!r} ({decision.job.product.key}, "
        f"{decision.job.wanted}): ",
        (word, VERDICT_STYLES[word]),
    )
    console.print(head)
    if isinstance(decision, Placed):
        for placement in decision.placements[:MAX_NAMES]:
            chips = ", ".join(map(str, placement.chips)) or ""
            which = f", chips {chips}" if chips else ""
            console.print(indented(f"pod {placement.replica}: {placement.node}{which}"))
        more = len(decision.placements) - MAX_NAMES
        if more > 0:
            console.print(f"  … and {more} more pods")
    else:
        console.print(indented(decision.message))
        if decision.hint:
            console.print(indented(f"hint: {decision.hint}", style="bold"))
    for warning in decision.warnings:
        console.print(indented(f"warning: {warning}"))


def print_network(
    console: Console, session: Session, decision: Decision, found: Survey, top: int
) -> None:
    """The leaves or SuperPoDs the network rule chose among."""
    cluster, taken = session.cluster, Counter[str | int]()
    placements = decision.placements if isinstance(decision, Placed) else ()
    for placement in placements:
        node = cluster.index[placement.node]
        leaf = cluster.leaf_of(node) if found.leaves else None
        taken[leaf.name if leaf else cluster.superpod.item(node)] += 1
    if found.leaves:
        views = sorted(found.leaves, key=lambda v: (-taken[v.leaf], -v.fitting))
        rows = [
            (
                view.leaf,
                str(view.fitting),
                view.state,
                shortened(view.crossed_by, MAX_NAMES) if view.crossed_by else "",
                "closed" if view.closed else f"{taken[view.leaf] or ''}",
            )
            for view in views
        ]
        columns = ("leaf", "fitting", "state", "crossed by", "taken")
        _network_table(console, "Leaves", columns, rows, top)
    if found.superpods:
        rows = [
            (
                str(view.visited or ""),
                str(view.superpod),
                str(view.fitting),
                str(view.queue),
                f"{taken[view.superpod] or ''}",
            )
            for view in found.superpods
        ]
        columns = ("visit", "SuperPoD", "fitting", "queue", "taken")
        _network_table(console, "SuperPoDs", columns, rows, top)


def _network_table(
    console: Console,
    what: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    top: int,
) -> None:
    shown = rows[:top]
    of = f"{len(shown)} of {len(rows)}" if len(rows) > len(shown) else str(len(rows))
    console.print(f"\n{what} with their fitting nodes: {of}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in shown:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def print_survey(console: Console, found: Survey, *, waits: bool) -> None:
    """The best nodes, the refused ones, and whose end would be enough."""
    if found.best:
        by = "by chip rank" if found.leaves or found.superpods else "in rank order"
        console.print(
            f"\nNodes that fit one pod: {found.fitting}; the best {len(found.best)} "
            f"{by}, earlier terms weigh more:"
        )
        console.print(_candidates(found.best))
    if found.refused:
        console.print("\nRefused nodes:")
    for reason, names in found.refused.items():
        console.print(
            indented(
                f"{len(names)} {reason.words} ({reason}): {shortened(names, MAX_NAMES)}"
            )
        )
    if found.enough_to_end:
        enough = shortened(found.enough_to_end, MAX_NAMES)
        console.print(
            Text(f"\nThe end of any one of these jobs would be enough: {enough}")
        )
    elif waits:
        console.print("\nThe end of no single job known here would be enough.")


def _candidates(best: Sequence[Candidate]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("#", justify="right")
    for column in ("node", "chips", "rank"):
        table.add_column(column, overflow="fold")
    for candidate in best:
        table.add_row(
            str(candidate.place),
            Text(candidate.node),
            ",".join(map(str, candidate.chips)),
            Text("; ".join(candidate.rank)),
        )
    return table
