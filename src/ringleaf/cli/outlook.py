"""``ringleaf explain`` of a scenario that is run through time: a job at its end."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from ringleaf.cli.damage import repair_lines, repair_of
from ringleaf.cli.explain import (
    MAX_NAMES,
    endings_words,
    indented,
    node_answer,
    print_decision,
    print_network,
    print_node,
    print_survey,
    survey_told,
)
from ringleaf.cli.failure import BadUse
from ringleaf.cli.output import print_json, shortened
from ringleaf.cli.plan import verdict
from ringleaf.cli.timeline import reservation_words, run_scenario
from ringleaf.framework.explain import Survey, enough_to_end, survey
from ringleaf.framework.standing import Standing
from ringleaf.framework.statement import Statement
from ringleaf.model.decision import Placed, Waiting
from ringleaf.model.job import Job
from ringleaf.policies.admission import is_legal
from ringleaf.simulator.encode import whole
from ringleaf.simulator.outcome import (
    Ended,
    Fate,
    Line,
    asking,
    booking_told,
    end_of,
    fate_of,
    fate_told,
    let_go,
    line_of,
    queue_told,
)
from ringleaf.simulator.run import Run
from ringleaf.simulator.scenario import Scenario

Plain = dict[str, Any]


class Outlook(Struct, frozen=True):
    """How one job stands at the end of a run, and what is around it."""

    fate: Fate
    at: float
    standing: Standing | None
    queue: Plain
    line: Line | None
    reservation: Plain | None
    others: list[Plain]
    found: Survey | None

    def plain(self, run: Run) -> Plain:
        """It as plain values."""
        told: Plain = {"decision": fate_told(run, self.fate), "at": whole(self.at)}
        if self.standing is not None:
            told["phase"] = str(self.standing.phase)
        told["queue"] = self.queue
        if self.line is not None:
            told["place"] = {"place": self.line.place, "of": self.line.length}
        if self.reservation is not None:
            told["reservation"] = self.reservation
        told["other-reservations"] = self.others
        return told | survey_told(self.found)


def explain_run(
    scenario: Scenario, name: str, node: str | None, top: int, *, as_json: bool
) -> int:
    """Explain one job at the end of the run, or what it finds on one node."""
    run = run_scenario(scenario)
    engine = run.engine
    if node is not None and node not in engine.view.cluster.index:
        raise BadUse(f"--node is {node!r}, want the name of a node of the scenario")
    job = run.jobs[name]
    if node is not None and is_legal(job, engine.view.settings):
        return explain_node(run, name, node, top, as_json=as_json)
    outlook = outlook_of(run, name, top)
    repair = repair_of(engine, name, engine.view.now)
    if as_json:
        print_json(outlook.plain(run) | ({"repair": repair} if repair else {}))
    else:
        more = repair_lines(repair, _seconds) if repair else ()
        print_outlook(Console(highlight=False), run, outlook, top, more=more)
    return 0 if isinstance(outlook.fate, Placed | Ended) else 1


def explain_node(run: Run, name: str, node: str, top: int, *, as_json: bool) -> int:
    """What the job finds on one node; the exit status."""
    engine, session = run.engine, run.engine.cycle.session
    fate = fate_of(run, name)
    with Statement(engine.view.cluster) as statement:
        let_go(engine, name, statement)
        asks = asking(engine, name, run.jobs[name])
        known = None if isinstance(fate, Ended) else fate
        answer = node_answer(session, asks, node, known)
    return print_node(session, asks, answer, top, as_json=as_json)


def _seconds(at: float) -> str:
    return f"{at:g} s"


def outlook_of(run: Run, name: str, top: int) -> Outlook:
    """How the job *name* stands, with the *top* best nodes."""
    engine, job = run.engine, run.jobs[name]
    view, cluster = engine.view, engine.view.cluster
    fate = fate_of(run, name)
    told = {
        each: booking_told(cluster, booking)
        for each, booking in engine.bookings.items()
        if booking.job.product is job.product
    }
    return Outlook(
        fate=fate,
        at=end_of(run),
        standing=view.standings.get(name),
        queue=queue_told(engine, job.queue),
        line=line_of(run, name),
        reservation=told.pop(name, None),
        others=list(told.values()),
        found=None if isinstance(fate, Ended) else _survey(run, fate, top),
    )


def _survey(run: Run, fate: Fate, top: int) -> Survey | None:
    engine, job = run.engine, fate.job
    session = engine.cycle.session
    if not is_legal(job, engine.view.settings):
        return None
    with Statement(engine.view.cluster) as statement:
        let_go(engine, job.name, statement)
        job = asking(engine, job.name, job)
        found = survey(session, job, top)
        if isinstance(fate, Waiting) and not _others_first(run, job):
            ends = enough_to_end(session, job)
            known = tuple(name for name in ends if name in engine.view.standings)
            found = replace(found, enough_to_end=known)
    return found


def _others_first(run: Run, job: Job) -> bool:
    """Whether room alone would not help: the queue, or others with a reservation."""
    booked = run.engine.bookings
    others = [b for b in booked.values() if b.job.product is job.product]
    alone = job.name not in booked and run.engine.cycle.session.fits_now(job)
    return alone or any(other.job.name != job.name for other in others)


def print_outlook(
    console: Console,
    run: Run,
    outlook: Outlook,
    top: int,
    *,
    clock: Callable[[float], str] = _seconds,
    more: Iterable[str] = (),
) -> None:
    """How a job stands, for people; times by the *clock*, and what *more* there is."""
    fate = outlook.fate
    if isinstance(fate, Ended):
        console.print(f"job {fate.job.name!r}: {verdict(fate)}", markup=False)
    else:
        print_decision(console, fate)
    for line in (*_lines(outlook, clock), *more):
        console.print(indented(line))
    if outlook.found is not None and not isinstance(fate, Ended):
        session = run.engine.cycle.session
        print_network(console, session, fate, outlook.found.network, top)
        print_survey(console, outlook.found, waits=isinstance(fate, Waiting))
    if isinstance(fate, Waiting) and outlook.found is not None:
        for line in help_lines(outlook, clock, first=_others_first(run, fate.job)):
            console.print(Text(f"{line}"))


def help_lines(
    outlook: Outlook, clock: Callable[[float], str], *, first: bool
) -> Iterator[str]:
    """What would let a waiting job start, and how that meets its reservation.

    Where others are *first*, the end of a job would not be enough.
    """
    assert outlook.found is not None
    if first:
        jobs = [repr(other["job"]) for other in outlook.others]
        if jobs:
            named = shortened(jobs, MAX_NAMES)
            yield ""
            yield f"Nodes that become free go to the reservation of {named} first."
        return
    yield ""
    enough = outlook.found.enough_to_end
    yield endings_words(enough)
    waits_for = (outlook.reservation or {}).get("held-by", [])
    if not waits_for or (len(waits_for) == 1 and list(enough) == waits_for):
        return
    named = shortened(waits_for, MAX_NAMES)
    ready = (outlook.reservation or {}).get("ready-at")
    why = "no estimates tell which jobs end first, so the order of arrival counts"
    if ready is not None:
        why = f"by the estimates that is soonest, at {clock(ready)}"
    yield f"Its reservation waits for {named} to end: {why}."
    if {*enough} - {*waits_for}:
        yield "If another of the jobs above ends before that, the job starts then."


def _lines(outlook: Outlook, clock: Callable[[float], str]) -> Iterator[str]:
    """How the job stands, in sentences."""
    standing = outlook.standing
    if standing is not None:
        since = standing.started
        if since is None:
            since = standing.waiting_since
        yield f"at {clock(outlook.at)}: {standing.phase} since {clock(since)}"
    yield _queue_words(outlook.queue)
    if outlook.line is not None:
        place, length = outlook.line.place, outlook.line.length
        yield f"place {place} of {length} among the waiting jobs of its queue"
    if outlook.reservation is not None:
        yield reservation_words(outlook.reservation, clock)
    if not isinstance(outlook.fate, Ended | Placed):
        for other in outlook.others:
            yield f"for {other['job']!r} {reservation_words(other, clock)}"


def _queue_words(told: Plain) -> str:
    if "weight" not in told:
        return f"queue {told['name']!r}: there is none"
    uses, deserves = told["uses"], told["deserves"]
    parts = [
        f"{uses.get(r, 0)} {r} and deserves {deserves[r]}"
        if deserves.get(r, uses.get(r, 0)) != uses.get(r, 0)
        else f"{uses.get(r, 0)} {r}"
        for r in {**uses, **deserves}
    ]
    words = f"queue {told['name']!r}: weight {told['weight']}, uses "
    words += ", ".join(parts) or "nothing"
    return f"{words}, closed" if told["state"] == "closed" else words
