"""What came of a run: how every job ended up, what was said, what is reserved."""

from collections.abc import Iterator
from math import inf
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.engine.engine import Engine
from ringleaf.engine.event import JobArrived
from ringleaf.explain.survey import NetworkView, network_view
from ringleaf.framework.instruction import Bind
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.reservation import Reservation, ends_at
from ringleaf.framework.run_times import prediction_words
from ringleaf.framework.state import SchedulerState
from ringleaf.framework.statement import Statement
from ringleaf.model.decision import Decision, Placed
from ringleaf.model.job import Job
from ringleaf.model.uplinks import NOWHERE
from ringleaf.plugins.proportion import Proportion
from ringleaf.simulator import encode
from ringleaf.simulator.answer import answer, placement_plain
from ringleaf.simulator.plain import amounts, whole
from ringleaf.simulator.run import ScenarioRun

Plain = dict[str, Any]


class Ended(Struct, frozen=True):
    """A job that is over, or was taken away."""

    job: Job
    warnings: tuple[str, ...] = ()


class Wait(Struct, frozen=True):
    """How long a job waited before it first started, or waits now."""

    seconds: float
    is_over: bool


Fate = Decision | Ended


def fates(run: ScenarioRun) -> list[Fate]:
    """What became of every job, in the order in which they came up."""
    return [fate_of(run, name) for name in run.jobs]


def fate_of(run: ScenarioRun, name: str) -> Fate:
    """What became of one job."""
    job = run.jobs[name]
    job_state = run.engine.view.job_states.get(name)
    if job_state is not None and is_over(job_state):
        return Ended(job)
    try:
        found = run.engine.explain(name)
    except KeyError:
        return Ended(job)
    if isinstance(found, Placed):
        ranked = sorted(found.placements, key=attrgetter("replica"))
        return replace(found, job=job, placements=tuple(ranked))
    return found


def is_over(job_state: JobState) -> bool:
    """Whether every pod succeeded."""
    return not job_state.placements and not job_state.missing


def plain(run: ScenarioRun) -> Plain:
    """The run as plain values, as ``plan --json`` prints it."""
    reservations = run.engine.reservations.values()
    view = run.engine.view
    waits = waits_of(run)
    return {
        "decisions": [
            fate_plain(run, fate) | _wait_plain(waits.get(fate.job.name))
            for fate in fates(run)
        ],
        "instructions": [
            {"at": whole(step.at)} | said for step in run.steps for said in step.plain
        ],
        "reservations": [reservation_plain(view, each) for each in reservations],
    }


def _wait_plain(wait: Wait | None) -> Plain:
    return {} if wait is None else {"waited-seconds": whole(wait.seconds)}


def fate_plain(run: ScenarioRun, fate: Fate) -> Plain:
    """How one job ended up, as plain values."""
    if isinstance(fate, Ended):
        return {"job": fate.job.name, "verdict": "ended"}
    if not isinstance(fate, Placed):
        return answer(run.engine.view.cluster, fate)
    job_state = run.engine.view.job_states[fate.job.name]
    cluster, name = run.engine.view.cluster, fate.job.name
    found: Plain = {
        "job": name,
        "verdict": "placed",
        "placements": [placement_plain(cluster, each) for each in fate.placements],
        "annotations": [
            dict(run.written.get((name, each.replica), {})) for each in fate.placements
        ],
    }
    if job_state.missing:
        found["missing"] = len(job_state.missing)
    if job_state.terminating:
        found["ending"] = sorted(job_state.terminating)
    if fate.warnings:
        found["warnings"] = list(fate.warnings)
    return found


def drop_hold(engine: Engine, name: str, statement: Statement) -> None:
    """Release what is reserved or held for the job, until *statement* ends."""
    if name in engine.reservations:
        statement.drop(engine.reservations[name].owner)
    engine.context.repairs.drop_hold(name, statement)


def asking(engine: Engine, name: str, job: Job) -> Job:
    """*job* as it looks for nodes: one that lacks pods, beside those that run."""
    job_state = engine.view.job_states.get(name)
    if job_state is None or not job_state.below_min_available:
        return job
    return engine.context.placer.asking(job_state, job)


def network_of(run: ScenarioRun, job: Job) -> NetworkView:
    """The network rule of *job*, and what it finds at the end of the run."""
    engine = run.engine
    with Statement(engine.view.cluster) as statement:
        drop_hold(engine, job.name, statement)
        asks = asking(engine, job.name, job)
        return network_view(engine.context.framework.session, asks)


def end_of(run: ScenarioRun) -> float:
    """The time at which the run was left: its last event, or its ``until``."""
    now, until = run.engine.view.now, run.scenario.until
    return now if until == inf else max(now, until)


def waits_of(run: ScenarioRun) -> dict[str, Wait]:
    """Job -> how long it waited; jobs that ran from the beginning are left out."""
    since: dict[str, float] = {}
    found: dict[str, Wait] = {}
    for step in run.steps:
        for event in step.events:
            if isinstance(event, JobArrived) and not event.placements:
                start = event.waiting_since
                since.setdefault(event.job.name, step.at if start is None else start)
        for each in step.instructions:
            if isinstance(each, Bind) and each.job in since and each.job not in found:
                found[each.job] = Wait(step.at - since[each.job], is_over=True)
    for name, job_state in run.engine.view.job_states.items():
        if job_state.phase is not Phase.RUNNING and not is_over(job_state):
            waited = end_of(run) - job_state.waiting_since
            found[name] = Wait(waited, is_over=False)
    return found


def reservation_plain(view: SchedulerState, reservation: Reservation) -> Plain:
    """A reservation as plain values; without a time while none is known."""
    cluster, ready_at = view.cluster, reservation.ready_at(view.now)
    nodes = [cluster.index[each.node] for each in reservation.placements]
    leaves = [leaf.name for leaf in map(cluster.leaf_of, nodes) if leaf is not None]
    superpods = {cluster.superpod.item(node) for node in nodes} - {NOWHERE}
    found = {
        "job": reservation.job.name,
        "queue": reservation.job.queue,
        "nodes": [
            {"node": each.node, "chips": each.chips} for each in reservation.placements
        ],
        "leaves": list(dict.fromkeys(leaves)),
        "superpods": sorted(superpods),
        "since": whole(reservation.since),
        "ready-at": None if ready_at == inf else whole(ready_at),
        "held-by": sorted(reservation.blockers),
        "predicted": list(_predicted(view, reservation)),
    }
    return {key: value for key, value in found.items() if value not in (None, [], "")}


def _predicted(view: SchedulerState, reservation: Reservation) -> Iterator[Plain]:
    """The jobs in its way whose ends are predicted, the last one first."""
    found = [
        (ends_at(other, view.now), name, other)
        for name, other in reservation.blockers.items()
        if other.job.estimate_s is None and not other.terminating
    ]
    for end, name, other in sorted(found, key=lambda each: (-each[0], each[1])):
        if other.job.run_time is not None and other.started is not None:
            why = prediction_words(other.job, view.now - other.started)
            yield {"job": name, "ends-at": whole(end), "by": why}


def timed_events(run: ScenarioRun) -> Iterator[tuple[float, bool, Plain]]:
    """Everything in its order: the time, whether the engine said it, what it was."""
    for step in run.steps:
        for event in step.events:
            yield step.at, False, encode.event(event)
        for told in step.plain:
            yield step.at, True, told


class QueuePosition(Struct, frozen=True):
    """The place of a job among the jobs of its queue that wait, from 1."""

    place: int
    length: int


def queue_position(run: ScenarioRun, name: str) -> QueuePosition | None:
    """Where a job stands in line; None for one that waits for nothing.

    Jobs that are let in come before those that are not, in the order of the plugins.
    """
    ctx = run.engine.context
    job_state = run.engine.view.job_states.get(name)
    if job_state is None:
        return None
    waiting = [
        (each.phase is Phase.PENDING, ctx.framework.votes.job_key(each), each.number)
        for waitlist in ctx.pending.lists
        for each in waitlist
        if each.job.queue == job_state.job.queue
    ]
    own = (job_state.phase is Phase.PENDING, ctx.framework.votes.job_key(job_state))
    waiting.sort()
    if (*own, job_state.number) not in waiting:
        return None
    return QueuePosition(waiting.index((*own, job_state.number)) + 1, len(waiting))


def queue_plain(engine: Engine, name: str) -> Plain:
    """A queue as plain values: its weight, what it uses, what it deserves now."""
    view = engine.view
    queue, account = view.queues.get(name), view.queue_usage[name]
    if queue is None:
        return {"name": name}
    proportion = engine.context.framework.votes.plugins.get("proportion")
    part = proportion.part(name) if isinstance(proportion, Proportion) else None
    asked = {resource for resource, n in account.requested.items() if n}
    deserved = {} if part is None else part.deserved
    return {
        "name": name,
        "weight": queue.weight,
        "state": "open" if queue.is_open else "closed",
        "uses": amounts({r: n for r, n in account.allocated.items() if n}),
        "asks": amounts({r: account.requested[r] for r in sorted(asked)}),
        "deserves": amounts({r: n for r, n in deserved.items() if r in asked}),
    }
