"""Faults: which pods are deleted because of them, and when more of them are.

``handle_faults`` runs before the actions of a cycle: it inspects jobs of which pods may
have become faulty, and reconciles all repairs. ``reconcile_if_changed`` runs after each
round of the actions: pods are placed again, find no place, or lose what is held.
"""

from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from ringleaf.actions.delete_faulty import (
    MAX_LISTED,
    can_escalate,
    close_repair,
    delete_pods,
    eviction_rate_allows,
    faulty_pods,
    inspect_job,
    outcome_words,
)
from ringleaf.framework.changes import Change
from ringleaf.framework.context import Context
from ringleaf.framework.instruction import Delete, Repaired, Verdict
from ringleaf.framework.job_state import JobState
from ringleaf.framework.repair import Repair
from ringleaf.model.fault import Cause, PodFault, RestartScope
from ringleaf.policies.faults import first_cause, next_scope
from ringleaf.policies.words import counted, some_of


def reconcile_repairs(ctx: Context) -> None:
    """See which repairs are over, and which need more than they got."""
    ctx.repairs.reconciled_generation = ctx.wakeups.changes.generation(
        Change.REPAIR_PROGRESSED
    )
    for repair in list(ctx.repairs.open.values()):
        _reconcile(ctx, repair)


def reconcile_if_changed(ctx: Context) -> None:
    """The same, if pods of a repair found a place, or none, since the last look."""
    if ctx.repairs.reconciled_generation != ctx.wakeups.changes.generation(
        Change.REPAIR_PROGRESSED
    ):
        reconcile_repairs(ctx)


def _reconcile(ctx: Context, repair: Repair) -> None:
    """See whether a repair is over, or needs more than it got."""
    job_state = ctx.state.job_states.get(repair.name)
    rules = ctx.state.settings.repairs
    if not repair.deletion.deleted:
        if job_state is None:
            close_repair(ctx, None, repair)
        elif repair.exit_requested_at is not None:
            ctx.wake_at(repair.exit_requested_at + rules.grace_s)
            if ctx.state.now >= repair.exit_requested_at + rules.grace_s:
                inspect_job(ctx, job_state)
        return
    if job_state is not None and _is_whole(ctx, job_state, repair):
        _finish(ctx, job_state, repair)
        return
    ending = (
        set()
        if job_state is None
        else job_state.terminating & repair.deletion.awaiting_replacement
    )
    if job_state is not None and ending:
        _force_late_deletes(ctx, job_state, repair, ending)
        return
    if repair.deletion.gone_at is None:
        repair.deletion.gone_at = ctx.state.now
    if job_state is not None and can_escalate(job_state, repair):
        _escalate(ctx, job_state, repair)
        return
    until = repair.deletion.gone_at + rules.hold_s
    ctx.wake_at(until)
    if ctx.state.now >= until:
        _give_up(ctx, job_state, repair)


def _is_whole(ctx: Context, job_state: JobState, repair: Repair) -> bool:
    """Whether all pods that were deleted are back, or are done, and none is faulty.

    What is faulty may still wait for the rate limit.
    """
    back = job_state.placements.keys() - job_state.terminating | job_state.finished
    if not repair.deletion.awaiting_replacement <= back:
        return False
    if not job_state.job.recovery.mode.scheduler_deletes:
        return True  # what is faulty stays, or others see to it
    left = faulty_pods(ctx, job_state).values()
    return all(each.cause is Cause.SUB_HEALTH for each in left)


def _finish(ctx: Context, job_state: JobState, repair: Repair) -> None:
    """A job is whole again."""
    ever = tuple(sorted(repair.deletion.deleted))
    record = replace(repair.record, deleted=ever)
    message = outcome_words(ctx, job_state, repair)
    ctx.reports.emit(Repaired(repair.name, record, message))
    close_repair(ctx, job_state, repair)


def _force_late_deletes(
    ctx: Context, job_state: JobState, repair: Repair, ending: AbstractSet[int]
) -> None:
    """Delete pods at once that had their time to end by themselves."""
    if repair.moved_for:
        return  # it may save its work first, for as long as its pods allow
    assert repair.deletion.at is not None
    due = repair.deletion.at + ctx.state.settings.repairs.grace_s
    late = ending - repair.deletion.forced
    if not late:
        return
    ctx.wake_at(due)
    if ctx.state.now >= due:
        repair.deletion.forced |= late
        cause = str(first_cause(repair.causes))
        waited = ctx.state.settings.repairs.grace_s
        why = f"{counted(len(late), 'pod')} did not end within {waited} s"
        listed = tuple(sorted(late))
        ctx.reports.emit(Delete(repair.name, listed, cause, why, force=True))
        message = f"job {repair.name!r} is being repaired: {why}, deleted at once"
        ctx.reports.report(job_state, Verdict.REPAIRING, message)


def _give_up(ctx: Context, job_state: JobState | None, repair: Repair) -> None:
    """Its time is over: what was held for a job is for any other."""
    close_repair(ctx, job_state, repair)
    if job_state is not None:
        held = ctx.state.settings.repairs.hold_s
        message = f"its nodes were held for {held} s and are free for other jobs now"
        ctx.reports.report(
            job_state, Verdict.WAITING, f"job {repair.name!r} waits: {message}"
        )
        if job_state.missing:
            ctx.pending.remove(repair.name)
            ctx.pending.add(job_state)


def _escalate(ctx: Context, job_state: JobState, repair: Repair) -> None:
    """Delete more of a job whose pods came back and find no place."""
    rules, scope = ctx.state.settings.repairs, next_scope(job_state.job, repair.scope)
    assert scope is not None
    assert repair.deletion.unschedulable_since is not None
    after = rules.block_after_s if scope is RestartScope.BLOCK else rules.job_after_s
    if repair.scope is RestartScope.BLOCK:
        after -= rules.block_after_s  # so long they had found no place before
    if ctx.state.now < repair.deletion.unschedulable_since + after:
        ctx.wake_at(repair.deletion.unschedulable_since + after)
        return
    cause = first_cause(repair.causes)
    stranded = {
        n: repair.pod_faults.get(n, PodFault(n, cause)) for n in job_state.missing
    }
    lacks = some_of([str(n) for n in sorted(stranded)], MAX_LISTED)
    noun = "pod" if len(stranded) == 1 else "pods"
    because = f"no node for {noun} {lacks} within {after} s"
    delete_pods(ctx, job_state, repair, stranded, scope, because=because)


def handle_faults(ctx: Context) -> None:
    """Delete what is to be deleted because of faults, and no more than may be."""
    repairs = ctx.repairs
    repairs.rate_limit.n_pods = None
    if repairs.rate_limit.waiting and eviction_rate_allows(ctx, 1):
        repairs.suspects |= repairs.rate_limit.waiting
    suspects, repairs.suspects = repairs.suspects, {}
    for name in suspects:
        job_state = ctx.state.job_states.get(name)
        if job_state is not None and (
            job_state.placements or repairs.may_concern(name)
        ):
            inspect_job(ctx, job_state)
    if repairs.open:
        reconcile_repairs(ctx)
    if repairs.rate_limit.waiting:
        rules = ctx.state.settings.repairs
        recent = repairs.rate_limit.recent(ctx.state.now, rules)
        soon = repairs.rate_limit.next_at(rules) if recent else ctx.state.now + 1
        ctx.wake_at(soon)
