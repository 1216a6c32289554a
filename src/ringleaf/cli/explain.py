"""``ringleaf explain``."""

from collections.abc import Container, Iterable, Sequence
from typing import Any, TypeGuard

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ringleaf.cli.explain_node import (
    MAX_NAMES,
    indented,
    known_like,
    named,
    no_node,
    node_answer,
    print_node,
)
from ringleaf.cli.failure import BadUse
from ringleaf.cli.naming import PeopleConsole
from ringleaf.cli.netdraw import Focus, draw_network, superpods_by_node
from ringleaf.cli.output import counted, print_json, shortened
from ringleaf.cli.plan import VERDICT_STYLES, verdict
from ringleaf.cli.scenario import read_scenarios
from ringleaf.engine.event import JobArrived
from ringleaf.explain.survey import (
    Candidate,
    NetworkView,
    Survey,
    enough_to_end,
    survey,
)
from ringleaf.framework.session import Session
from ringleaf.kube.names import bare_name
from ringleaf.model.decision import Decision, Placed, Waiting
from ringleaf.policies.validation import is_legal
from ringleaf.simulator.answer import answer as answer_told
from ringleaf.simulator.scenario import Scenario


def explain_job(
    file: str,
    name: str,
    node: str | None,
    top: int,
    *,
    at: float | None = None,
    as_json: bool,
) -> int:
    """Explain one job, or what it finds on one node; the exit status."""
    scenario, name = _holding(read_scenarios(file), file, name)
    if at is not None:
        scenario = _cut_off(scenario, name, at)
    if scenario.is_run:
        from ringleaf.cli.explain_run import explain_run  # noqa: PLC0415 - with the engine

        return explain_run(scenario, name, node, top, as_json=as_json)
    session = scenario.open()
    if node is not None and node not in session.cluster.index:
        raise BadUse(no_node(node, session.cluster.index))
    job = next(job for job in scenario.jobs if job.name == name)
    for earlier in counted(scenario.jobs[: scenario.jobs.index(job)], "deciding"):
        session.decide(earlier)
    if node is not None and is_legal(job, session.settings):
        answer = node_answer(session, job, node, None)
        answer = replace(answer, fate=session.decide(job))
        return print_node(PeopleConsole(), session, job, answer, top, as_json=as_json)
    found = survey(session, job, top) if is_legal(job, session.settings) else None
    decision = session.decide(job)
    if found is not None and may_start(decision):
        found = replace(found, enough_to_end=enough_to_end(session, job))
    if as_json:
        print_json(_plain(session, decision, found))
    else:
        _print(PeopleConsole(), session, decision, found, top)
    return 0 if isinstance(decision, Placed) else 1


def jobs_of(file: str) -> str:
    """A hint: the jobs of the scenario *file*."""
    names = [name for each in read_scenarios(file) for name in each.known_jobs]
    return (
        f"; hint: it has {shortened(names, MAX_NAMES)}" if names else ", and has none"
    )


def _cut_off(scenario: Scenario, name: str, at: float) -> Scenario:
    """The scenario up to the time *at*, at which the job must have arrived."""
    if not scenario.is_run:
        raise BadUse(
            "--at needs a scenario in virtual time; "
            "hint: one with queues, configuration or then"
        )
    later = (
        each.at
        for each in scenario.then
        if isinstance(each.event, JobArrived) and each.event.job.name == name
    )
    first = min(later, default=0.0)
    if first > at and name not in {job.name for job in scenario.jobs}:
        raise BadUse(f"--at is {at:g}, and job {name!r} arrives at {first:g} s")
    return replace(scenario, until=at)


def _holding(
    scenarios: Sequence[Scenario], file: str, name: str
) -> tuple[Scenario, str]:
    """The first document that has the job, and the name of the job there.

    A job is also known by its name without the uid, where that is one job.
    """
    for scenario in scenarios:
        if name in scenario.known_jobs:
            return scenario, name
    names = [job for scenario in scenarios for job in scenario.known_jobs]
    like = [job for job in names if bare_name(job) == name]
    if len(like) == 1:
        return _holding(scenarios, file, like[0])
    raise BadUse(
        f"--job is {name!r}, want a job of {file}; hint: {known_like(name, names)}"
    )


def _plain(
    session: Session, decision: Decision, found: Survey | None
) -> dict[str, Any]:
    return {"decision": answer_told(session.cluster, decision), **survey_plain(found)}


def survey_plain(found: Survey | None) -> dict[str, Any]:
    """A survey as plain values."""
    told = msgspec.to_builtins(found) if found is not None else {}
    for key in ("network-rule", "leaves", "superpods"):
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
        print_network(console, session, decision, found.network, top)
        waits = isinstance(decision, Waiting)
        print_survey(console, found, waits=waits)
        if may_start(decision):
            console.print(Text(f"\n{endings_words(found.enough_to_end)}"))


def print_decision(
    console: Console, decision: Decision, word: str = "", first: Iterable[str] = ()
) -> None:
    """What became of the job in a *word*, what is *first* to be said, and why."""
    word = word or verdict(decision)
    head = Text.assemble(
        f"{named(decision.job.name)} ({decision.job.product.key}, "
        f"{decision.job.wanted}): ",
        (word, VERDICT_STYLES[word]),
    )
    console.print(head)
    for line in first:
        console.print(indented(line))
    if isinstance(decision, Placed):
        for placement in decision.placements[:MAX_NAMES]:
            chips = ", ".join(map(str, placement.chips)) or ""
            which = f", chips {chips}" if chips else ""
            console.print(indented(f"pod {placement.replica}: {placement.node}{which}"))
        more = len(decision.placements) - MAX_NAMES
        if more > 0:
            console.print(f"  … and {more} more pods")
    else:
        said = [decision.message]
        if isinstance(decision, Waiting):
            said = decision.parts
        for line in said:
            console.print(indented(line))
        if decision.hint:
            console.print(indented(f"hint: {decision.hint}", style="bold"))
    for warning in decision.warnings:
        console.print(indented(f"warning: {warning}"))


def may_start(fate: object) -> TypeGuard[Waiting]:
    """Whether a job is pending for which other jobs could make room."""
    return isinstance(fate, Waiting) and not fate.impossible


def print_network(
    console: Console, session: Session, decision: Decision, view: NetworkView, top: int
) -> None:
    """The leaves or SuperPoDs the network rule chooses among, drawn."""
    placements = decision.placements if isinstance(decision, Placed) else ()
    chosen = {placement.node for placement in placements}
    draw_network(
        console, view, Focus(chosen, most=top), superpods_by_node(session.cluster)
    )


def print_survey(console: Console, found: Survey, *, waits: bool) -> None:
    """The best nodes, and the refused ones.

    Of a job that *waits* for its network rule, the leaves or SuperPoDs say more than
    the order of the nodes.
    """
    if found.best and not (waits and found.network_rule is not None):
        by = "by chip rank" if found.leaves or found.superpods else "in rank order"
        console.print(
            f"\nNodes that fit one pod: {found.fitting}; the best {len(found.best)} "
            f"{by}, earlier terms weigh more:"
        )
        console.print(_candidates(found.best))
    if found.refused:
        console.print("\nRefused nodes:")
    for reason, names in sorted(found.refused.items(), key=lambda each: -len(each[1])):
        console.print(
            indented(
                f"{len(names)} {reason.words} ({reason}): {shortened(names, MAX_NAMES)}"
            )
        )


def endings_words(enough: Sequence[str], unbound: Container[str] = ()) -> str:
    """The jobs of which the end of any one would let a waiting job start.

    Those that are *unbound* run only if they are bound.
    """
    if not enough:
        return "Ending one job alone would not be enough."
    which = "any one of these jobs" if len(enough) > 1 else "this job"
    named = [f"{name} (not bound)" if name in unbound else name for name in enough]
    return f"Would start if {which} ended: {shortened(named, MAX_NAMES)}"


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
