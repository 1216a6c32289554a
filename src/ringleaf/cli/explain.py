"""``ringleaf explain``."""

import sys
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ringleaf.cli.failure import BadUse
from ringleaf.cli.plan import VERDICT_STYLES, verdict
from ringleaf.cli.scenario import read_scenarios
from ringleaf.framework.explain import Candidate, Refused, Survey, look_at, survey
from ringleaf.framework.session import Session
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
    session = scenario.open()
    job = next(job for job in scenario.jobs if job.name == name)
    for earlier in scenario.jobs[: scenario.jobs.index(job)]:
        session.decide(earlier)
    if node is not None and is_legal(job, session.settings):
        return _explain_node(session, job, node, as_json=as_json)
    found = survey(session, job, top) if is_legal(job, session.settings) else None
    decision = session.decide(job)
    if as_json:
        _print_json(_plain(session, decision, found))
    else:
        _print(Console(highlight=False), decision, found)
    return 0 if isinstance(decision, Placed) else 1


def _holding(scenarios: Sequence[Scenario], file: str, name: str) -> Scenario:
    """The first document that has the job."""
    for scenario in scenarios:
        if any(job.name == name for job in scenario.jobs):
            return scenario
    names = ", ".join(job.name for s in scenarios for job in s.jobs) or "none"
    raise BadUse(f"--job is {name!r}, want a job of {file}; hint: it has {names}")


def _explain_node(session: Session, job: Job, node: str, *, as_json: bool) -> int:
    if node not in session.cluster.index:
        raise BadUse(f"--node is {node!r}, want the name of a node of the scenario")
    found = look_at(session, job, node)
    fits = isinstance(found, Candidate)
    if as_json:
        _print_json({"job": job.name, "fits": fits, **msgspec.to_builtins(found)})
    elif isinstance(found, Refused):
        _say(f"node {node!r} refuses job {job.name!r}: {found.reason}\n  {found.rule}")
    else:
        chips = ", ".join(map(str, found.chips))
        _say(
            f"node {node!r} fits job {job.name!r}: choice {found.place}\n"
            f"  rank: {'; '.join(found.rank)}\n  chips: {chips}"
        )
    return 0 if fits else 1


def _say(text: str) -> None:
    Console(highlight=False).print(Text(text))


def _print_json(value: dict[str, Any]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


def _plain(
    session: Session, decision: Decision, found: Survey | None
) -> dict[str, Any]:
    told = msgspec.to_builtins(found) if found is not None else {}
    return {"decision": answer(session.cluster, decision), **told}


def _print(console: Console, decision: Decision, found: Survey | None) -> None:
    word = verdict(decision)
    head = Text.assemble(
        f"job {decision.job.name!r} ({decision.job.product.key}, "
        f"{decision.job.wanted}): ",
        (word, VERDICT_STYLES[word]),
    )
    console.print(head)
    if isinstance(decision, Placed):
        for placement in decision.placements[:MAX_NAMES]:
            chips = ", ".join(map(str, placement.chips))
            console.print(
                Text(f"  pod {placement.replica}: {placement.node}, chips {chips}")
            )
        more = len(decision.placements) - MAX_NAMES
        if more > 0:
            console.print(f"  … and {more} more pods")
    else:
        console.print(Text(f"  {decision.message}"))
        console.print(Text(f"  hint: {decision.hint}", style="bold"))
    if found is not None:
        _print_survey(console, found, waits=isinstance(decision, Waiting))


def _print_survey(console: Console, found: Survey, *, waits: bool) -> None:
    if found.best:
        console.print(
            f"\n{found.fitting} fitting nodes for one pod, the best {len(found.best)} "
            "in rank order (earlier terms weigh more):"
        )
        console.print(_candidates(found.best))
    if found.refused:
        console.print("\nRefused nodes:")
    for reason, names in found.refused.items():
        more = len(names) - MAX_NAMES
        shown = ", ".join(names[:MAX_NAMES]) + (f", … {more} more" if more > 0 else "")
        console.print(Text(f"  {len(names)} {reason.words} ({reason}): {shown}"))
    if found.enough_to_end:
        names = found.enough_to_end[:MAX_NAMES]
        line = f"The end of any one of these jobs would be enough: {', '.join(names)}"
        console.print(Text(f"\n{line}"))
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
