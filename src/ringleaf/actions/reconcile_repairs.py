"""Repairs that were begun: pods come back, find no place, or are given up."""

from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from ringleaf.actions.delete_faulty import (
    MAX_TOLD,
    can_escalate,
    close_repair,
    delete_pods,
    faulty_pods,
    inspect_job,
    outcome_words,
)
from ringleaf.framework.changes import Change
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.instruction import Delete, Repaired, Verdict
from ringleaf.framework.job_state import JobState
from ringleaf.framework.repair import Repair
from ringleaf.model.fault import Cause, PodFault, RestartScope
from ringleaf.policies.counting import counted, some_of
from ringleaf.policies.faults import first_cause, next_scope


def reconcile_repairs(cycle: Cycle) -> None:
    """See which repairs are over, and which need more than they got."""
    cycle.failures.repairs.reconciled_at = cycle.changes.tick(Change.REPAIR_MOVED)
    for repair in list(cycle.failures.repairs.open.values()):
        _reconcile(cycle, repair)


def reconcile_if_changed(cycle: Cycle) -> None:
    """The same, if pods of a repair found a place, or none, since the last look."""
    if cycle.failures.repairs.reconciled_at != cycle.changes.tick(Change.REPAIR_MOVED):
        reconcile_repairs(cycle)


def _reconcile(cycle: Cycle, repair: Repair) -> None:
    """See whether a repair is over, or needs more than it got."""
    job_state = cycle.view.job_states.get(repair.name)
    rules = cycle.view.settings.repairs
    if not repair.deletion.ever:
        if job_state is None:
            close_repair(cycle, None, repair)
        elif repair.asked_at is not None:
            cycle.wake_at(repair.asked_at + rules.grace_s)
            if cycle.view.now >= repair.asked_at + rules.grace_s:
                inspect_job(cycle, job_state)
        return
    if job_state is not None and _is_whole(cycle, job_state, repair):
        _finish(cycle, job_state, repair)
        return
    ending = (
        set() if job_state is None else job_state.terminating & repair.deletion.pods
    )
    if job_state is not None and ending:
        _force_late_deletes(cycle, job_state, repair, ending)
        return
    if repair.deletion.gone_at is None:
        repair.deletion.gone_at = cycle.view.now
    if job_state is not None and can_escalate(job_state, repair):
        _escalate(cycle, job_state, repair)
        return
    until = repair.deletion.gone_at + rules.hold_s
    cycle.wake_at(until)
    if cycle.view.now >= until:
        _give_up(cycle, job_state, repair)


def _is_whole(cycle: Cycle, job_state: JobState, repair: Repair) -> bool:
    """Whether all pods that were deleted are back, or are done, and none is faulty.

    What is faulty may still wait for the rate limit.
    """
    back = job_state.placements.keys() - job_state.terminating | job_state.finished
    if not repair.deletion.pods <= back:
        return False
    if not job_state.job.recovery.mode.is_ours:
        return True  # what is faulty stays, or others see to it
    left = faulty_pods(cycle, job_state).values()
    return all(each.cause is Cause.SUB_HEALTH for each in left)


def _finish(cycle: Cycle, job_state: JobState, repair: Repair) -> None:
    """A job is whole again."""
    ever = tuple(sorted(repair.deletion.ever))
    record = replace(repair.record, deleted=ever)
    told = outcome_words(cycle, job_state, repair)
    cycle.reports.out.append(Repaired(repair.name, record, told))
    close_repair(cycle, job_state, repair)


def _force_late_deletes(
    cycle: Cycle, job_state: JobState, repair: Repair, ending: AbstractSet[int]
) -> None:
    """Delete pods at once that had their time to end by themselves."""
    if repair.moved_for:
        return  # it may save its work first, for as long as its pods allow
    assert repair.deletion.at is not None
    due = repair.deletion.at + cycle.view.settings.repairs.grace_s
    late = ending - repair.deletion.forced
    if not late:
        return
    cycle.wake_at(due)
    if cycle.view.now >= due:
        repair.deletion.forced |= late
        cause = str(first_cause(repair.causes))
        waited = cycle.view.settings.repairs.grace_s
        why = f"{counted(len(late), 'pod')} did not end within {waited} s"
        listed = tuple(sorted(late))
        cycle.reports.out.append(Delete(repair.name, listed, cause, why, force=True))
        told = f"job {repair.name!r} is being repaired: {why}, deleted at once"
        cycle.reports.report(job_state, Verdict.REPAIRING, told)


def _give_up(cycle: Cycle, job_state: JobState | None, repair: Repair) -> None:
    """Its time is over: what was held for a job is for any other."""
    close_repair(cycle, job_state, repair)
    if job_state is not None:
        held = cycle.view.settings.repairs.hold_s
        told = f"its nodes were held for {held} s and are free for other jobs now"
        cycle.reports.report(
            job_state, Verdict.WAITING, f"job {repair.name!r} waits: {told}"
        )
        if job_state.missing:
            cycle.pending.remove(repair.name)
            cycle.pending.add(job_state)


def _escalate(cycle: Cycle, job_state: JobState, repair: Repair) -> None:
    """Delete more of a job whose pods came back and find no place."""
    rules, scope = cycle.view.settings.repairs, next_scope(job_state.job, repair.scope)
    assert scope is not None
    assert repair.stuck_at is not None
    after = rules.block_after_s if scope is RestartScope.BLOCK else rules.job_after_s
    if repair.scope is RestartScope.BLOCK:
        after -= rules.block_after_s  # so long they had found no place before
    if cycle.view.now < repair.stuck_at + after:
        cycle.wake_at(repair.stuck_at + after)
        return
    cause = first_cause(repair.causes)
    stranded = {
        n: repair.ailments.get(n, PodFault(n, cause)) for n in job_state.missing
    }
    lacks = some_of([str(n) for n in sorted(stranded)], MAX_TOLD)
    noun = "pod" if len(stranded) == 1 else "pods"
    because = f"no node for {noun} {lacks} within {after} s"
    delete_pods(cycle, job_state, repair, stranded, scope, because=because)
