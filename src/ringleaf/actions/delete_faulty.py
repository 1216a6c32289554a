"""Which pods of a job are faulty, and which are deleted for it."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from ringleaf.actions.end_pods import end_pods_for_repair
from ringleaf.framework.context import Context
from ringleaf.framework.instruction import (
    AskToExit,
    Delete,
    PersistRepair,
    ReportFaultyPods,
    Verdict,
)
from ringleaf.framework.job_state import JobState
from ringleaf.framework.repair import Repair
from ringleaf.model.fault import (
    Cause,
    Down,
    FaultKey,
    PodFault,
    Record,
    RestartScope,
    SubHealth,
)
from ringleaf.model.placement import Placement
from ringleaf.policies.faults import (
    cause_of,
    first_cause,
    first_scope,
    is_forced,
    next_scope,
    pods_to_delete,
    requests_exit_first,
)
from ringleaf.policies.words import counted, some_of

SCOPES: Final = tuple(RestartScope)
"""How much is deleted, the least first."""


MAX_LISTED: Final = 3


def eviction_rate_allows(ctx: Context, pods: int) -> bool:
    """Whether *pods* more may be deleted now."""
    rules, rate_limit = ctx.state.settings.repairs, ctx.repairs.rate_limit
    return rate_limit.allows(pods, _n_pods(ctx), ctx.state.now, rules)


def _n_pods(ctx: Context) -> int:
    """The pods there are, counted once in a cycle."""
    rate_limit = ctx.repairs.rate_limit
    if rate_limit.n_pods is None:
        rate_limit.n_pods = count_pods(ctx)
    return rate_limit.n_pods


def count_pods(ctx: Context) -> int:
    """The pods there are, with those that were deleted and are to come back."""
    held = sum(len(each.placements) for each in ctx.state.job_states.values())
    away = 0
    for repair in ctx.repairs.open.values():
        job_state = ctx.state.job_states.get(repair.name)
        held_still = () if job_state is None else job_state.placements
        away += len(repair.missing_pods(job_state) - {*held_still})
    return held + away


def faulty_pods(ctx: Context, job_state: JobState) -> dict[int, PodFault]:
    """The pods of a job that are faulty, and were not dealt with."""
    repairs, recovery = ctx.repairs, job_state.job.recovery
    own = _own_pod_faults(ctx, job_state)
    found = {n: each for n, each in own.items() if n not in job_state.placements}
    for replica, placement in job_state.placements.items():
        if replica in job_state.terminating:
            continue
        causes = {own[replica].cause} if replica in own else ()
        node = repairs.nodes.get(placement.node)
        cause = cause_of(node, placement, causes, recovery)
        if cause is not None:
            found[replica] = PodFault(replica, cause, placement.node)
    return found


def _own_pod_faults(ctx: Context, job_state: JobState) -> dict[int, PodFault]:
    """What is wrong with pods themselves, as far as that counts and is new."""
    repairs, job = ctx.repairs, job_state.job
    name, recovery = job.name, job.recovery
    own = repairs.pod_faults.get(name)
    if not own:
        return {}
    # A pod that is asked to end may well end badly; that is no further fault.
    repairs.handled |= {(name, n) for n in own if n in job_state.terminating}
    ignored = set()
    if repairs.retries_used.get(name, 0) >= recovery.retries:
        ignored.add(Cause.POD)
    if recovery.sub_health is SubHealth.IGNORE:
        ignored.add(Cause.SUB_HEALTH)
    return {
        replica: each
        for replica, each in own.items()
        if each.cause not in ignored
        and (name, replica) not in repairs.handled
        and replica not in job_state.finished
    }


def inspect_job(ctx: Context, job_state: JobState) -> None:
    """Look at a job of which pods may have become faulty."""
    repairs, name = ctx.repairs, job_state.job.name
    mode, repair = job_state.job.recovery.mode, repairs.open.get(name)
    repairs.rate_limit.waiting.pop(name, None)
    faulty = faulty_pods(ctx, job_state)
    if mode.is_external:
        _report_faulty(ctx, name, tuple(faulty[n] for n in sorted(faulty)))
    if repair is not None and not faulty and _exit_is_incomplete(job_state, repair):
        faulty = repair.pod_faults
    if not mode.scheduler_deletes or not faulty:
        if repair is not None:
            repair.rate_limited &= can_escalate(job_state, repair)
            if not repair.deletion.deleted:
                close_repair(ctx, job_state, repair)  # nothing was deleted
        return
    if repair is None:
        repair = repairs.open[name] = Repair(name, ctx.state.now, job_state.job)
        repair.retries_used = repairs.retries_used.get(name, 0)
    if not repair.deletion.deleted:
        repair.pod_faults = {}
    repair.pod_faults |= faulty
    scope = first_scope(job_state.job.recovery, faulty)
    delete_pods(ctx, job_state, repair, faulty, scope)


def _report_faulty(ctx: Context, name: str, told: tuple[PodFault, ...]) -> None:
    """Report which pods are faulty, for others to delete, if that is news."""
    reported_faulty = ctx.repairs.reported_faulty
    if reported_faulty.get(name, ()) != told:
        ctx.reports.emit(ReportFaultyPods(name, told))
    reported_faulty.pop(name, None)
    if told:
        reported_faulty[name] = told


def _exit_is_incomplete(job_state: JobState, repair: Repair) -> bool:
    """Whether a job that was asked to exit has lost some pods and kept others."""
    asked = repair.exit_requested_at is not None and not repair.deletion.deleted
    return bool(asked and job_state.missing and job_state.placements)


def delete_pods(
    ctx: Context,
    job_state: JobState,
    repair: Repair,
    faulty: Mapping[int, PodFault],
    scope: RestartScope,
    *,
    because: str = "",
) -> None:
    """Delete as much of a job as *scope* says, unless it is too early or too much."""
    name, recovery = repair.name, job_state.job.recovery
    repairs = ctx.repairs
    causes = {each.cause for each in faulty.values()}
    force = is_forced(recovery, causes)
    if requests_exit_first(recovery, causes) and not repair.deletion.deleted:
        if _request_exit(ctx, job_state, repair):
            return
        force = True
    alive = job_state.placements.keys() - job_state.terminating
    here = {n: job_state.placements[n] for n in alive}
    places = repair.placements | repairs.last_places.get(name, {}) | here
    new = _unhandled(ctx, name, faulty)
    victims = pods_to_delete(scope, faulty, places) & alive | new.keys()
    if not eviction_rate_allows(ctx, len(victims)):
        _wait_for_rate_limit(ctx, job_state, repair, len(victims))
        return
    repair.scope = _widest(job_state, repair, scope, whole=victims >= alive)
    repair.placements = places
    _note_deleted(ctx, repair, victims, alive)
    _use_retry(ctx, repair, faulty, new)
    repairs.fault_log.mark_acted(_fault_keys(ctx, repair, faulty), name, ctx.state.now)
    ctx.reports.emit(PersistRepair(name, repair.record))
    had = len(job_state.placements.keys() | repair.deletion.awaiting_replacement)
    why = f"{because or _faulty_words(faulty)}; {_deleted_words(scope, victims, had)}"
    _emit_deletes(ctx, repair, faulty, victims, why, force=force)
    end_pods_for_repair(ctx, job_state, victims, repair)
    ctx.reports.report(
        job_state, Verdict.REPAIRING, f"job {name!r} is being repaired: {why}"
    )


def _unhandled(
    ctx: Context, name: str, faulty: Mapping[int, PodFault]
) -> dict[int, PodFault]:
    """The faulty pods with something wrong of their own that was not dealt with."""
    repairs = ctx.repairs
    own, handled = repairs.pod_faults.get(name, {}), repairs.handled
    return {
        n: each for n, each in faulty.items() if n in own and (name, n) not in handled
    }


def _widest(
    job_state: JobState, repair: Repair, scope: RestartScope, *, whole: bool
) -> RestartScope:
    """How much of a job is deleted: *scope*, the *whole* of it, or what was before."""
    wide = RestartScope.JOB if whole and job_state.job.recovery.escalates else scope
    before = repair.scope if repair.deletion.deleted else scope
    return max(wide, before, key=SCOPES.index)


def _note_deleted(
    ctx: Context, repair: Repair, victims: set[int], alive: Collection[int]
) -> None:
    """Record the deletion; from when its pods are gone is counted anew."""
    repair.deletion.awaiting_replacement |= victims
    repair.deletion.deleted |= victims
    repair.deletion.deletion_unobserved |= victims.difference(alive)
    repair.deletion.at = ctx.state.now
    repair.deletion.gone_at = repair.deletion.unschedulable_since = None
    repair.rate_limited = False
    ctx.repairs.rate_limit.count(ctx.state.now, repair.name, len(victims))


def _use_retry(
    ctx: Context,
    repair: Repair,
    faulty: Mapping[int, PodFault],
    new: Mapping[int, PodFault],
) -> None:
    """What is wrong with pods themselves is dealt with; a failure uses one try up."""
    repairs, name = ctx.repairs, repair.name
    own = repairs.pod_faults.get(name, {}).keys() & faulty.keys()
    repairs.handled |= {(name, n) for n in own}
    if any(each.cause is Cause.POD for each in new.values()):
        used = repairs.retries_used.get(name, 0) + 1
        repair.retries_used = repairs.retries_used[name] = used


def _emit_deletes(
    ctx: Context,
    repair: Repair,
    faulty: Mapping[int, PodFault],
    victims: set[int],
    why: str,
    *,
    force: bool,
) -> None:
    """Have pods deleted; at once if that is wanted, or no kubelet ends them."""
    places = repair.placements
    at_once = {
        n
        for n in victims
        if force
        or _has_no_kubelet(ctx, places.get(n))
        or _is_on_unknown_node(ctx, faulty.get(n))
    }
    repair.deletion.forced |= at_once
    cause = str(first_cause({each.cause for each in faulty.values()}))
    for replicas, forced in ((at_once, True), (victims - at_once, False)):
        if replicas:
            listed = tuple(sorted(replicas))
            ctx.reports.emit(Delete(repair.name, listed, cause, why, forced))


def _request_exit(ctx: Context, job_state: JobState, repair: Repair) -> bool:
    """Whether processes are asked to end by themselves and still have time for it."""
    rules = ctx.state.settings.repairs
    if repair.exit_requested_at is None:
        repair.exit_requested_at = ctx.state.now
        ctx.reports.emit(PersistRepair(repair.name, repair.record))
        ctx.reports.emit(AskToExit(repair.name, exits=True))
        until = f"within {rules.grace_s} s"
        why = _faulty_words(repair.pod_faults)
        told = f"job {repair.name!r} is asked to exit {until}; {why}"
        ctx.reports.report(job_state, Verdict.REPAIRING, told)
    ended = job_state.ready < job_state.facts.effective_min or job_state.missing
    due = repair.exit_requested_at + rules.grace_s
    ctx.wake_at(due)
    return ctx.state.now < due and not ended


def _wait_for_rate_limit(
    ctx: Context, job_state: JobState, repair: Repair, pods: int
) -> None:
    """Too many pods were deleted in a short time: say so, and try again later."""
    rules, rate_limit = ctx.state.settings.repairs, ctx.repairs.rate_limit
    known, repair.rate_limited = repair.rate_limited, True
    ctx.repairs.rate_limit.waiting[repair.name] = None
    recent = rate_limit.recent(ctx.state.now, rules)
    told = (
        f"job {repair.name!r} is faulty and waits for the eviction rate limit: "
        f"{counted(pods, 'pod')} to be deleted, {recent} of {_n_pods(ctx)} were "
        f"deleted in the last {rules.brake_s} s, "
        f"the limit is {rules.brake_percent} %"
    )
    hint = "fault-brake-percent and fault-brake-seconds set the limit"
    if not known:
        ctx.reports.report(job_state, Verdict.RATE_LIMITED, told, hint)


def _has_no_kubelet(ctx: Context, placement: Placement | None) -> bool:
    """Whether no kubelet could end the pod: its node is gone or not ready."""
    nodes = ctx.repairs.nodes
    node = None if placement is None else nodes.get(placement.node)
    if node is None:
        return placement is not None
    return not node.ready and node.down not in (Down.DAEMON, Down.SWITCH)


def _is_on_unknown_node(ctx: Context, pod_fault: PodFault | None) -> bool:
    """Whether a pod is known to be on a node that is not."""
    found = pod_fault is not None and pod_fault.cause is Cause.NODE and pod_fault.node
    return bool(found) and found not in ctx.repairs.nodes


def _faulty_words(faulty: Mapping[int, PodFault]) -> str:
    """Which pods are faulty and why, for people."""
    told = [
        f"pod {n} on {a.node} ({a.cause})" if a.node else f"pod {n} ({a.cause})"
        for n, a in sorted(faulty.items())
    ]
    return f"faulty: {some_of(told, MAX_LISTED)}"


def _deleted_words(scope: RestartScope, victims: Collection[int], had: int) -> str:
    """How much is deleted of a job that *had* so many pods, for people."""
    pods = len(victims)
    one, be = counted(pods, "pod"), "is" if pods == 1 else "are"
    if scope is RestartScope.BLOCK:
        return f"the rest of its logical SuperPoD is deleted too, {one}"
    if pods == had:
        return (
            f"all its {pods} pods are deleted" if pods > 1 else f"its {one} is deleted"
        )
    if scope is RestartScope.JOB:
        return f"the rest of it is deleted too, {one}"
    return f"{pods} of {had} pods {be} deleted"


def outcome_words(ctx: Context, job_state: JobState, repair: Repair) -> str:
    """Where the pods of a job that was repaired are now, for people."""
    now, moved, back = job_state.placements, [], 0
    after = f"{ctx.state.now - repair.since:.0f} s"
    if repair.moved_for:
        nodes = some_of(dict.fromkeys(now[n].node for n in sorted(now)), MAX_LISTED)
        return f"it was moved for job {repair.moved_for!r} within {after}: on {nodes}"
    for n in sorted(repair.deletion.deleted & now.keys()):
        before = repair.placements.get(n)
        if before is None or (before.node, before.chips) != (now[n].node, now[n].chips):
            gone = "" if before is None else f" from {before.node}"
            moved.append(f"pod {n} moved{gone} to {now[n].node}")
        else:
            back += 1
    told = [f"{counted(back, 'pod')} returned"] if back else []
    told += [some_of(moved, MAX_LISTED)] if moved else []
    return f"all its pods are placed again after {after}: {', '.join(told)}"


def _fault_keys(
    ctx: Context, repair: Repair, faulty: Mapping[int, PodFault]
) -> Iterator[FaultKey]:
    """The faults because of which pods are deleted, as the fault log knows them."""
    for replica, pod_fault in sorted(faulty.items()):
        place = repair.placements.get(replica)
        chips = None if place is None else place.chips
        fault_log = ctx.repairs.fault_log
        yield from fault_log.keys_about(repair.name, pod_fault, chips)


def can_escalate(job_state: JobState, repair: Repair) -> bool:
    """Whether pods that came back find no place, and more may be deleted for them."""
    stuck = repair.deletion.unschedulable_since is not None and job_state.missing
    if not stuck or not job_state.job.recovery.mode.scheduler_deletes:
        return False
    return next_scope(job_state.job, repair.scope) is not None


def close_repair(ctx: Context, job_state: JobState | None, repair: Repair) -> None:
    """Forget a repair; how often pods failed by themselves is not forgotten."""
    del ctx.repairs.open[repair.name]
    if job_state is None:
        ctx.repairs.rate_limit.waiting.pop(repair.name, None)
    if nodes := repair.held.nodes:
        repair.release_places(ctx.state.cluster)
        ctx.wakeups.capacity_freed(ctx.state.cluster.products, nodes)
    if repair.exit_requested:
        ctx.reports.emit(AskToExit(repair.name, exits=False))
    if repair.deletion.at is not None or repair.exit_requested_at is not None:
        used = repair.retries_used
        over = Record(repair.since, retries_used=used, is_over=True) if used else None
        ctx.reports.emit(PersistRepair(repair.name, over))
    if job_state is not None and job_state.job.previous is not None:
        ctx.wakeups.replace_spec(job_state, replace(job_state.job, previous=None))
