"""Which pods of a job are faulty, and which are deleted for it."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from ringleaf.actions.end_pods import end_for_repair
from ringleaf.framework.cycle import Cycle
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
from ringleaf.policies.counting import counted, some_of
from ringleaf.policies.faults import (
    asks_first,
    cause_of,
    first_cause,
    first_scope,
    is_forced,
    next_scope,
    pods_to_delete,
)

Pods = Mapping[int, Placement]


WIDER: Final = tuple(RestartScope)
"""How much is deleted, the least first."""


MAX_TOLD: Final = 3


def limit_allows(cycle: Cycle, pods: int) -> bool:
    """Whether *pods* more may be deleted now."""
    rules, rate_limit = cycle.view.settings.repairs, cycle.failures.repairs.rate_limit
    return rate_limit.allows(pods, _n_pods(cycle), cycle.view.now, rules)


def _n_pods(cycle: Cycle) -> int:
    """The pods there are, counted once in a cycle."""
    rate_limit = cycle.failures.repairs.rate_limit
    if rate_limit.n_pods is None:
        rate_limit.n_pods = count_pods(cycle)
    return rate_limit.n_pods


def count_pods(cycle: Cycle) -> int:
    """The pods there are, with those that were deleted and are to come back."""
    held = sum(len(each.placements) for each in cycle.view.job_states.values())
    away = 0
    for repair in cycle.failures.repairs.open.values():
        job_state = cycle.view.job_states.get(repair.name)
        held_still = () if job_state is None else job_state.placements
        away += len(repair.wanting(job_state) - {*held_still})
    return held + away


def faulty_pods(cycle: Cycle, job_state: JobState) -> dict[int, PodFault]:
    """The pods of a job that are faulty, and were not dealt with."""
    repairs, recovery = cycle.failures.repairs, job_state.job.recovery
    own = _own_pod_faults(cycle, job_state)
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


def _own_pod_faults(cycle: Cycle, job_state: JobState) -> dict[int, PodFault]:
    """What is wrong with pods themselves, as far as that counts and is new."""
    repairs, job = cycle.failures.repairs, job_state.job
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


def inspect_job(cycle: Cycle, job_state: JobState) -> None:
    """Look at a job of which pods may have become faulty."""
    repairs, name = cycle.failures.repairs, job_state.job.name
    mode, repair = job_state.job.recovery.mode, repairs.open.get(name)
    repairs.rate_limit.waiting.pop(name, None)
    faulty = faulty_pods(cycle, job_state)
    if mode.is_external:
        _report_faulty(cycle, name, tuple(faulty[n] for n in sorted(faulty)))
    if repair is not None and not faulty and _ends_by_itself(job_state, repair):
        faulty = repair.ailments
    if not mode.is_ours or not faulty:
        if repair is not None:
            repair.rate_limited &= can_escalate(job_state, repair)
            if not repair.deletion.ever:
                close_repair(cycle, job_state, repair)  # nothing was deleted
        return
    if repair is None:
        repair = repairs.open[name] = Repair(name, cycle.view.now, job_state.job)
        repair.retries_used = repairs.retries_used.get(name, 0)
    if not repair.deletion.ever:
        repair.ailments = {}
    repair.ailments |= faulty
    scope = first_scope(job_state.job.recovery, faulty)
    delete_pods(cycle, job_state, repair, faulty, scope)


def _report_faulty(cycle: Cycle, name: str, told: tuple[PodFault, ...]) -> None:
    """Tell others which pods are faulty, if that is news."""
    reported_faulty = cycle.failures.repairs.reported_faulty
    if reported_faulty.get(name, ()) != told:
        cycle.reports.out.append(ReportFaultyPods(name, told))
    reported_faulty.pop(name, None)
    if told:
        reported_faulty[name] = told


def _ends_by_itself(job_state: JobState, repair: Repair) -> bool:
    """Whether a job that was asked to exit has lost some pods and kept others."""
    asked = repair.asked_at is not None and not repair.deletion.ever
    return bool(asked and job_state.missing and job_state.placements)


def delete_pods(
    cycle: Cycle,
    job_state: JobState,
    repair: Repair,
    faulty: Mapping[int, PodFault],
    scope: RestartScope,
    *,
    because: str = "",
) -> None:
    """Delete as much of a job as *scope* says, unless it is too early or too much."""
    name, recovery = repair.name, job_state.job.recovery
    repairs = cycle.failures.repairs
    causes = {each.cause for each in faulty.values()}
    force = is_forced(recovery, causes)
    if asks_first(recovery, causes) and not repair.deletion.ever:
        if _is_asked(cycle, job_state, repair):
            return
        force = True
    alive = job_state.placements.keys() - job_state.terminating
    here = {n: job_state.placements[n] for n in alive}
    places = repair.placements | repairs.places.get(name, {}) | here
    new = _unhandled(cycle, name, faulty)
    victims = pods_to_delete(scope, faulty, places) & alive | new.keys()
    if not limit_allows(cycle, len(victims)):
        _wait_for_rate_limit(cycle, job_state, repair, len(victims))
        return
    repair.scope = _widest(job_state, repair, scope, whole=victims >= alive)
    repair.placements = places
    _note_deleted(cycle, repair, victims, alive)
    _use_retry(cycle, repair, faulty, new)
    repairs.fault_log.acted(_fault_keys(cycle, repair, faulty), name, cycle.view.now)
    cycle.reports.out.append(PersistRepair(name, repair.record))
    had = len(job_state.placements.keys() | repair.deletion.pods)
    why = f"{because or _faulty_words(faulty)}; {_deleted_words(scope, victims, had)}"
    _emit_deletes(cycle, repair, faulty, victims, why, force=force)
    end_for_repair(cycle, job_state, victims, repair)
    cycle.reports.report(
        job_state, Verdict.REPAIRING, f"job {name!r} is being repaired: {why}"
    )


def _unhandled(
    cycle: Cycle, name: str, faulty: Mapping[int, PodFault]
) -> dict[int, PodFault]:
    """The faulty pods with something wrong of their own that was not dealt with."""
    repairs = cycle.failures.repairs
    own, handled = repairs.pod_faults.get(name, {}), repairs.handled
    return {
        n: each for n, each in faulty.items() if n in own and (name, n) not in handled
    }


def _widest(
    job_state: JobState, repair: Repair, scope: RestartScope, *, whole: bool
) -> RestartScope:
    """How much of a job is deleted: *scope*, the *whole* of it, or what was before."""
    wide = RestartScope.JOB if whole and job_state.job.recovery.escalates else scope
    before = repair.scope if repair.deletion.ever else scope
    return max(wide, before, key=WIDER.index)


def _note_deleted(
    cycle: Cycle, repair: Repair, victims: set[int], alive: Collection[int]
) -> None:
    """Pods are deleted now; what was awaited before no longer counts."""
    repair.deletion.pods |= victims
    repair.deletion.ever |= victims
    repair.deletion.awaited |= victims.difference(alive)
    repair.deletion.at = cycle.view.now
    repair.deletion.gone_at = repair.stuck_at = None
    repair.rate_limited = False
    cycle.failures.repairs.rate_limit.count(cycle.view.now, repair.name, len(victims))


def _use_retry(
    cycle: Cycle,
    repair: Repair,
    faulty: Mapping[int, PodFault],
    new: Mapping[int, PodFault],
) -> None:
    """What is wrong with pods themselves is dealt with; a failure uses one try up."""
    repairs, name = cycle.failures.repairs, repair.name
    own = repairs.pod_faults.get(name, {}).keys() & faulty.keys()
    repairs.handled |= {(name, n) for n in own}
    if any(each.cause is Cause.POD for each in new.values()):
        used = repairs.retries_used.get(name, 0) + 1
        repair.retries_used = repairs.retries_used[name] = used


def _emit_deletes(
    cycle: Cycle,
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
        or _has_no_kubelet(cycle, places.get(n))
        or _is_on_unknown_node(cycle, faulty.get(n))
    }
    repair.deletion.forced |= at_once
    cause = str(first_cause({each.cause for each in faulty.values()}))
    for replicas, forced in ((at_once, True), (victims - at_once, False)):
        if replicas:
            listed = tuple(sorted(replicas))
            cycle.reports.out.append(Delete(repair.name, listed, cause, why, forced))


def _is_asked(cycle: Cycle, job_state: JobState, repair: Repair) -> bool:
    """Whether processes are asked to end by themselves and still have time for it."""
    rules = cycle.view.settings.repairs
    if repair.asked_at is None:
        repair.asked_at = cycle.view.now
        cycle.reports.out.append(PersistRepair(repair.name, repair.record))
        cycle.reports.out.append(AskToExit(repair.name, exits=True))
        until = f"within {rules.grace_s} s"
        why = _faulty_words(repair.ailments)
        told = f"job {repair.name!r} is asked to exit {until}; {why}"
        cycle.reports.report(job_state, Verdict.REPAIRING, told)
    ended = job_state.ready < job_state.facts.min_pods or job_state.missing
    due = repair.asked_at + rules.grace_s
    cycle.wake_at(due)
    return cycle.view.now < due and not ended


def _wait_for_rate_limit(
    cycle: Cycle, job_state: JobState, repair: Repair, pods: int
) -> None:
    """Too many pods were deleted in a short time: say so, and try again later."""
    rules, rate_limit = cycle.view.settings.repairs, cycle.failures.repairs.rate_limit
    known, repair.rate_limited = repair.rate_limited, True
    cycle.failures.repairs.rate_limit.waiting[repair.name] = None
    recent = rate_limit.recent(cycle.view.now, rules)
    told = (
        f"job {repair.name!r} is faulty and waits for the eviction rate limit: "
        f"{counted(pods, 'pod')} to be deleted, {recent} of {_n_pods(cycle)} were "
        f"deleted in the last {rules.brake_s} s, the limit is {rules.brake_percent} %"
    )
    hint = "fault-brake-percent and fault-brake-seconds set the limit"
    if not known:
        cycle.reports.report(job_state, Verdict.RATE_LIMITED, told, hint)


def _has_no_kubelet(cycle: Cycle, placement: Placement | None) -> bool:
    """Whether no kubelet could end the pod: its node is gone or not ready."""
    nodes = cycle.failures.repairs.nodes
    node = None if placement is None else nodes.get(placement.node)
    if node is None:
        return placement is not None
    return not node.ready and node.down not in (Down.DAEMON, Down.SWITCH)


def _is_on_unknown_node(cycle: Cycle, ailment: PodFault | None) -> bool:
    """Whether a pod is known to be on a node that is not."""
    found = ailment is not None and ailment.cause is Cause.NODE and ailment.node
    return bool(found) and found not in cycle.failures.repairs.nodes


def _faulty_words(faulty: Mapping[int, PodFault]) -> str:
    """Which pods are faulty and why, for people."""
    told = [
        f"pod {n} on {a.node} ({a.cause})" if a.node else f"pod {n} ({a.cause})"
        for n, a in sorted(faulty.items())
    ]
    return f"faulty: {some_of(told, MAX_TOLD)}"


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


def outcome_words(cycle: Cycle, job_state: JobState, repair: Repair) -> str:
    """Where the pods of a job that was repaired are now, for people."""
    now, moved, back = job_state.placements, [], 0
    after = f"{cycle.view.now - repair.since:.0f} s"
    if repair.moved_for:
        nodes = some_of(dict.fromkeys(now[n].node for n in sorted(now)), MAX_TOLD)
        return f"it was moved for job {repair.moved_for!r} within {after}: on {nodes}"
    for n in sorted(repair.deletion.ever & now.keys()):
        before = repair.placements.get(n)
        if before is None or (before.node, before.chips) != (now[n].node, now[n].chips):
            gone = "" if before is None else f" from {before.node}"
            moved.append(f"pod {n} moved{gone} to {now[n].node}")
        else:
            back += 1
    told = [f"{counted(back, 'pod')} returned"] if back else []
    told += [some_of(moved, MAX_TOLD)] if moved else []
    return f"all its pods are placed again after {after}: {', '.join(told)}"


def _fault_keys(
    cycle: Cycle, repair: Repair, faulty: Mapping[int, PodFault]
) -> Iterator[FaultKey]:
    """The faults because of which pods are deleted, as the fault log knows them."""
    for replica, ailment in sorted(faulty.items()):
        place = repair.placements.get(replica)
        chips = None if place is None else place.chips
        fault_log = cycle.failures.repairs.fault_log
        yield from fault_log.keys_about(repair.name, ailment, chips)


def can_escalate(job_state: JobState, repair: Repair) -> bool:
    """Whether pods that came back find no place, and more may be deleted for them."""
    stuck = repair.stuck_at is not None and job_state.missing
    if not stuck or not job_state.job.recovery.mode.is_ours:
        return False
    return next_scope(job_state.job, repair.scope) is not None


def close_repair(cycle: Cycle, job_state: JobState | None, repair: Repair) -> None:
    """Forget a repair; how often pods failed by themselves is not forgotten."""
    del cycle.failures.repairs.open[repair.name]
    if job_state is None:
        cycle.failures.repairs.rate_limit.waiting.pop(repair.name, None)
    if nodes := repair.held.nodes:
        repair.release_holds(cycle.view.cluster)
        cycle.wakeups.capacity_freed(cycle.view.cluster.products, nodes)
    if repair.was_asked:
        cycle.reports.out.append(AskToExit(repair.name, exits=False))
    if repair.deletion.at is not None or repair.asked_at is not None:
        used = repair.retries_used
        over = Record(repair.since, retries_used=used, is_over=True) if used else None
        cycle.reports.out.append(PersistRepair(repair.name, over))
    if job_state is not None and job_state.job.previous is not None:
        cycle.wakeups.spec_changed(job_state, replace(job_state.job, previous=None))
