"""``ringleaf explain`` of a scenario that is run through time: a job at its end."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from ringleaf.cli.explain import (
    endings_words,
    may_start,
    print_decision,
    print_network,
    print_survey,
    survey_plain,
)
from ringleaf.cli.explain_node import (
    MAX_NAMES,
    indented,
    named,
    no_node,
    node_answer,
    print_node,
)
from ringleaf.cli.failure import BadUse
from ringleaf.cli.fault_view import repair_of
from ringleaf.cli.fault_words import repair_lines
from ringleaf.cli.naming import PeopleConsole
from ringleaf.cli.output import plain_amount, print_json, resource_words, shortened
from ringleaf.cli.plan import PENDING, verdict
from ringleaf.cli.timeline import reservation_words, run_scenario
from ringleaf.engine.engine import Engine
from ringleaf.explain.survey import Survey, enough_to_end, survey
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.statement import Statement
from ringleaf.model.decision import Placed, Waiting
from ringleaf.model.job import Job
from ringleaf.policies.validation import is_legal
from ringleaf.simulator.outcome import (
    Ended,
    Fate,
    QueuePosition,
    asking,
    drop_hold,
    end_of,
    fate_of,
    fate_plain,
    queue_plain,
    queue_position,
    reservation_plain,
)
from ringleaf.simulator.plain import whole
from ringleaf.simulator.run import ScenarioRun
from ringleaf.simulator.scenario import Scenario

Plain = dict[str, Any]

_STATES: Final = {
    Phase.PENDING: ("pending", ", not admitted yet"),
    Phase.INQUEUE: ("pending", ", admitted (Inqueue)"),
    Phase.RUNNING: ("running", ""),
}
"""The phase of a job, for people, and what follows its time."""


class JobExplanation(Struct, frozen=True):
    """How one job stands at the end of a run, and what is around it."""

    fate: Fate
    at: float
    job_state: JobState | None
    queue: Plain
    line: QueuePosition | None
    reservation: Plain | None
    others: list[Plain]
    found: Survey | None
    suspended_until: float | None = None
    """When reservations are made again, where their budget is used up."""

    def plain(self, run: ScenarioRun) -> Plain:
        """The result as plain values."""
        facts: Plain = {"decision": fate_plain(run, self.fate), "at": whole(self.at)}
        if self.job_state is not None:
            facts["phase"] = str(self.job_state.phase)
        facts["queue"] = self.queue
        if self.line is not None:
            facts["place"] = {"place": self.line.place, "of": self.line.length}
        if self.reservation is not None:
            facts["reservation"] = self.reservation
        facts["other-reservations"] = self.others
        if self.suspended_until is not None:
            facts["reservations-suspended-until"] = whole(self.suspended_until)
        return facts | survey_plain(self.found)


def explain_run(
    scenario: Scenario, name: str, node: str | None, top: int, *, as_json: bool
) -> int:
    """Explain one job at the end of the run, or what it finds on one node."""
    run, console = run_scenario(scenario), PeopleConsole()
    engine = run.engine
    if node is not None and node not in engine.view.cluster.index:
        raise BadUse(no_node(node, engine.view.cluster.index))
    job = run.jobs[name]
    if node is not None and is_legal(job, engine.view.settings):
        return explain_node(console, run, name, node, top, as_json=as_json)
    outlook = job_explanation(run, name, top)
    repair = repair_of(engine, name, engine.view.now)
    if as_json:
        print_json(outlook.plain(run) | ({"repair": repair} if repair else {}))
    else:
        more = repair_lines(repair, _seconds) if repair else ()
        print_explanation(console, run, outlook, top, more=more)
    return 0 if isinstance(outlook.fate, Placed | Ended) else 1


def explain_node(
    console: Console, run: ScenarioRun, name: str, node: str, top: int, *, as_json: bool
) -> int:
    """What the job finds on one node; the exit status."""
    engine, session = run.engine, run.engine.context.framework.session
    fate = fate_of(run, name)
    with Statement(engine.view.cluster) as statement:
        drop_hold(engine, name, statement)
        asks = asking(engine, name, run.jobs[name])
        known = None if isinstance(fate, Ended) else fate
        answer = node_answer(session, asks, node, known)
    return print_node(console, session, asks, answer, top, as_json=as_json)


def _seconds(at: float) -> str:
    return f"{at:g} s"


def job_explanation(run: ScenarioRun, name: str, top: int) -> JobExplanation:
    """How the job *name* stands, with the *top* best nodes."""
    engine, job = run.engine, run.jobs[name]
    view = engine.view
    fate = fate_of(run, name)
    facts = {
        each: reservation_plain(view, reservation)
        for each, reservation in engine.reservations.items()
        if reservation.job.product is job.product
    }
    return JobExplanation(
        fate=fate,
        at=end_of(run),
        job_state=view.job_states.get(name),
        queue=queue_plain(engine, job.queue),
        line=queue_position(run, name),
        reservation=facts.pop(name, None),
        others=list(facts.values()),
        found=None if isinstance(fate, Ended) else _survey(run, fate, top),
        suspended_until=engine.context.reservations.idle.suspended_until,
    )


def _survey(run: ScenarioRun, fate: Fate, top: int) -> Survey | None:
    engine, job = run.engine, fate.job
    session = engine.context.framework.session
    if not is_legal(job, engine.view.settings):
        return None
    with Statement(engine.view.cluster) as statement:
        drop_hold(engine, job.name, statement)
        job = asking(engine, job.name, job)
        found = survey(session, job, top)
        if may_start(fate) and not others_first(engine, job):
            found = replace(found, enough_to_end=endings_of(engine, job))
    return found


def endings_of(engine: Engine, job: Job) -> tuple[str, ...]:
    """The known jobs of which the end of any one would let *job* start."""
    ends = enough_to_end(engine.context.framework.session, job)
    return tuple(name for name in ends if name in engine.view.job_states)


def others_first(engine: Engine, job: Job) -> bool:
    """Whether room alone would not help: the queue, or others with a reservation."""
    booked = engine.reservations
    others = [b for b in booked.values() if b.job.product is job.product]
    alone = job.name not in booked and engine.context.framework.session.fits_now(job)
    return alone or any(other.job.name != job.name for other in others)


def print_explanation(
    console: Console,
    run: ScenarioRun,
    outlook: JobExplanation,
    top: int,
    *,
    clock: Callable[[float], str] = _seconds,
    more: Iterable[str] = (),
    first: Iterable[str] = (),
    unbound: Container[str] = (),
) -> None:
    """How a job stands, for people; times by the *clock*.

    What is said *first* and what *more* there is, and the jobs that are placed and
    *unbound* yet.
    """
    fate, is_unbound = outlook.fate, outlook.fate.job.name in unbound
    if isinstance(fate, Ended):
        console.print(f"{named(fate.job.name)}: {verdict(fate)}", markup=False)
    else:
        print_decision(console, fate, PENDING * is_unbound, first)
    for line in (*_lines(outlook, clock, is_unbound=is_unbound), *more):
        console.print(indented(line))
    if outlook.found is not None and not isinstance(fate, Ended):
        session = run.engine.context.framework.session
        print_network(console, session, fate, outlook.found.network, top)
        print_survey(console, outlook.found, waits=isinstance(fate, Waiting))
    if may_start(fate) and outlook.found is not None:
        if others_first(run.engine, fate.job):
            lines = first_lines([other["job"] for other in outlook.others])
        else:
            enough, reserved = outlook.found.enough_to_end, outlook.reservation
            lines = help_lines(enough, reserved, clock, unbound)
        for line in lines:
            console.print(Text(line))


def first_lines(reserved_for: Sequence[str]) -> Iterator[str]:
    """Lines that say that other jobs come first, so that one end is not enough."""
    if reserved_for:
        named = shortened([*map(repr, reserved_for)], MAX_NAMES)
        yield f"\nNodes that become free go to the reservation of {named} first."


def help_lines(
    enough: Sequence[str],
    reserved: Plain | None,
    clock: Callable[[float], str],
    unbound: Container[str] = (),
) -> Iterator[str]:
    """The jobs of which the end of any one is enough, and what is *reserved*.

    A reservation waits for the jobs that are expected to end first, which may be
    other ones and more of them.
    """
    yield f"\n{endings_words(enough, unbound)}"
    waits_for = (reserved or {}).get("held-by", [])
    if not waits_for or (len(waits_for) == 1 and list(enough) == waits_for):
        return
    others = [name for name in waits_for if name not in enough]
    also = "also " if 0 < len(others) < len(waits_for) else ""
    named = shortened(others if also else waits_for, MAX_NAMES)
    ready = (reserved or {}).get("ready-at")
    predicted = (reserved or {}).get("predicted", [])
    why = "without estimates, the oldest jobs are expected to end first"
    if ready is not None:
        known = "estimates and predictions" if predicted else "estimates"
        why = f"by the {known} this is the earliest start, at {clock(ready)}"
    yield f"Its reservation {also}waits for {named} to end: {why}."
    for last in predicted[:1]:
        end = clock(last["ends-at"])
        yield f"{last['job']} is expected to end by {end}, {last['by']}."
    if {*enough} - {*waits_for}:
        yield "If another of these jobs ends earlier, the job starts then."


def _lines(
    outlook: JobExplanation, clock: Callable[[float], str], *, is_unbound: bool
) -> Iterator[str]:
    """How the job stands, in sentences."""
    job_state = outlook.job_state
    if job_state is not None:
        since = job_state.started
        if since is None or is_unbound:
            since = job_state.waiting_since
        state, then = (PENDING, "") if is_unbound else _STATES[job_state.phase]
        yield f"at {clock(outlook.at)}: {state} since {clock(since)}{then}"
    yield _queue_words(outlook.queue)
    if outlook.line is not None:
        place, length = outlook.line.place, outlook.line.length
        yield f"place {place} of {length} among the pending jobs of its queue"
    if outlook.reservation is not None:
        enough = outlook.found.enough_to_end if outlook.found is not None else ()
        yield reservation_words(_unnamed(outlook.reservation, enough), clock)
    if not isinstance(outlook.fate, Ended | Placed):
        for other in outlook.others:
            words = reservation_words(other, clock).removeprefix("reserved")
            yield f"reserved for {other['job']!r}{words}"
        if outlook.suspended_until is not None:
            until = clock(outlook.suspended_until)
            yield f"reservations have used up their idle budget; the next at {until}"


def _unnamed(reservation: Plain, enough: Sequence[str]) -> Plain:
    """A reservation without the jobs it waits for, if another job's end is enough."""
    waits_for = reservation.get("held-by", [])
    if not enough or (len(waits_for) == 1 and waits_for[0] in enough):
        return reservation
    return {key: value for key, value in reservation.items() if key != "held-by"}


def _queue_words(facts: Plain) -> str:
    if "weight" not in facts:
        return f"queue {facts['name']!r} does not exist"
    uses, fair = facts["uses"], facts["deserves"]
    parts = []
    for resource in {**uses, **fair}:
        used = uses.get(resource, 0)
        due = fair.get(resource, used)
        share = f" (fair share {plain_amount(resource, due)})" * (due != used)
        parts.append(f"{resource_words(resource, used)}{share}")
    words = f"queue {facts['name']!r}: weight {facts['weight']}, uses "
    words += ", ".join(parts) or "nothing"
    return f"{words}, closed" if facts["state"] == "closed" else words
