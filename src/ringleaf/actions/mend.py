"""Faults: whose pods are deleted because of them, and when more of them are.

This comes before the actions of a cycle. It looks at jobs of which pods may have become
faulty, and at those that are being repaired; where neither are, it does nothing.
"""

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec.structs import replace

from ringleaf.framework.cycle import Cycle
from ringleaf.framework.faultbook import Key
from ringleaf.framework.instruction import (
    AskToExit,
    Delete,
    Point,
    Remember,
    Repaired,
    Verdict,
)
from ringleaf.framework.repairs import Repair
from ringleaf.framework.standing import Standing
from ringleaf.model.fault import (
    Ailment,
    Cause,
    Down,
    Reach,
    Record,
    SubHealth,
)
from ringleaf.model.placement import Placement
from ringleaf.policies.faults import (
    asks_first,
    cause_of,
    doomed,
    first_cause,
    first_reach,
    is_forced,
    next_reach,
)
from ringleaf.policies.fit import counted, some_of

Pods = Mapping[int, Placement]

WIDER: Final = tuple(Reach)
"""How much is deleted, the least first."""
MAX_TOLD: Final = 3


def mend(cycle: Cycle) -> None:
    """Delete what is to be deleted because of faults, and no more than may be."""
    repairs = cycle.repairs
    repairs.n_pods = None
    if repairs.braked and _allows(cycle, 1):
        repairs.suspects |= repairs.braked
    suspects, repairs.suspects = repairs.suspects, {}
    for name in suspects:
        if name in cycle.view.standings:
            _inspect(cycle, cycle.view.standings[name])
    follow(cycle)
    if repairs.braked:
        rules = cycle.view.settings.repairs
        recent = repairs.brake.recent(cycle.now, rules)
        soon = repairs.brake.next_at(rules) if recent else cycle.now + 1
        cycle.wake_at(soon)


def _allows(cycle: Cycle, pods: int) -> bool:
    """Whether *pods* more may be deleted now."""
    rules, brake = cycle.view.settings.repairs, cycle.repairs.brake
    return brake.allows(pods, _total(cycle), cycle.now, rules)


def _total(cycle: Cycle) -> int:
    """The pods there are, counted once in a cycle."""
    if cycle.repairs.n_pods is None:
        cycle.repairs.n_pods = count_pods(cycle)
    return cycle.repairs.n_pods


def count_pods(cycle: Cycle) -> int:
    """The pods there are, with those that were deleted and are to come back."""
    held = sum(len(each.placements) for each in cycle.view.standings.values())
    away = 0
    for repair in cycle.repairs.open.values():
        standing = cycle.view.standings.get(repair.name)
        held_still = () if standing is None else standing.placements
        away += len(repair.wanting(standing) - {*held_still})
    return held + away


def follow(cycle: Cycle) -> None:
    """See which repairs are over, and which need more than they got."""
    cycle.repairs.is_news = False
    for repair in list(cycle.repairs.open.values()):
        _follow(cycle, repair)


# Faulty pods.


def faulty_pods(cycle: Cycle, standing: Standing) -> dict[int, Ailment]:
    """The pods of a job that are faulty, and were not dealt with."""
    repairs, recovery = cycle.repairs, standing.job.recovery
    own = _own_ailments(cycle, standing)
    found = {n: each for n, each in own.items() if n not in standing.placements}
    for replica, placement in standing.placements.items():
        if replica in standing.terminating:
            continue
        causes = {own[replica].cause} if replica in own else ()
        node = repairs.nodes.get(placement.node)
        cause = cause_of(node, placement, causes, recovery)
        if cause is not None:
            found[replica] = Ailment(replica, cause, placement.node)
    return found


def _own_ailments(cycle: Cycle, standing: Standing) -> dict[int, Ailment]:
    """What is wrong with pods themselves, as far as that counts and is new."""
    repairs, name, recovery = cycle.repairs, standing.job.name, standing.job.recovery
    own = repairs.ails.get(name)
    if not own:
        return {}
    # Who is asked to end may well end badly; that is no further fault.
    repairs.handled |= {(name, n) for n in own if n in standing.terminating}
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
        and replica not in standing.finished
    }


def _inspect(cycle: Cycle, standing: Standing) -> None:
    """Look at a job of which pods may have become faulty."""
    repairs, name = cycle.repairs, standing.job.name
    mode, repair = standing.job.recovery.mode, repairs.get(name)
    repairs.braked.pop(name, None)
    faulty = faulty_pods(cycle, standing)
    if mode.is_external:
        _point(cycle, name, tuple(faulty[n] for n in sorted(faulty)))
    if repair is not None and not faulty and _ends_by_itself(standing, repair):
        faulty = repair.ailments
    if not mode.is_ours or not faulty:
        if repair is not None:
            repair.braked &= _can_escalate(standing, repair)
            if not repair.ever:
                _close(cycle, standing, repair)  # nothing was deleted
        return
    if repair is None:
        repair = repairs.open[name] = Repair(name, cycle.now, standing.job)
        repair.retries_used = repairs.retries_used.get(name, 0)
    if not repair.ever:
        repair.ailments = {}
    repair.ailments |= faulty
    reach = first_reach(standing.job.recovery, faulty)
    _delete(cycle, standing, repair, faulty, reach)


def _point(cycle: Cycle, name: str, told: tuple[Ailment, ...]) -> None:
    """Tell others which pods are faulty, if that is news."""
    pointed = cycle.repairs.pointed
    if pointed.get(name, ()) != told:
        cycle.out.append(Point(name, told))
    pointed.pop(name, None)
    if told:
        pointed[name] = told


def _ends_by_itself(standing: Standing, repair: Repair) -> bool:
    """Whether pods of a job have ended that was asked to end, and others have not."""
    asked = repair.asked_at is not None and not repair.ever
    return bool(asked and standing.missing and standing.placements)


def _delete(
    cycle: Cycle,
    standing: Standing,
    repair: Repair,
    faulty: Mapping[int, Ailment],
    reach: Reach,
    *,
    because: str = "",
) -> None:
    """Delete as much of a job as *reach* says, unless it is too early or too much."""
    name, recovery, repairs = repair.name, standing.job.recovery, cycle.repairs
    causes = {each.cause for each in faulty.values()}
    force = is_forced(recovery, causes)
    if asks_first(recovery, causes) and not repair.ever:
        if _is_asked(cycle, standing, repair):
            return
        force = True
    alive = standing.placements.keys() - standing.terminating
    here = {n: standing.placements[n] for n in alive}
    places = repair.placements | repairs.places.get(name, {}) | here
    new = _unhandled(cycle, name, faulty)
    victims = doomed(reach, faulty, places) & alive | new.keys()
    if not _allows(cycle, len(victims)):
        _wait_for_brake(cycle, standing, repair, len(victims))
        return
    repair.reach = _wider(standing, repair, reach, whole=victims >= alive)
    repair.placements = places
    _note_deleted(cycle, repair, victims, alive)
    _use_retry(cycle, repair, faulty, new)
    repairs.book.acted(_fault_keys(cycle, repair, faulty), name, cycle.now)
    cycle.out.append(Remember(name, repair.record))
    had = len(standing.placements.keys() | repair.deleted)
    why = f"{because or _faulty_words(faulty)}; {_deleted_words(reach, victims, had)}"
    _order(cycle, repair, faulty, victims, why, force=force)
    cycle.end_for_repair(standing, victims, repair)
    cycle.tell(standing, Verdict.REPAIRING, f"job {name!r} is being repaired: {why}")


def _unhandled(
    cycle: Cycle, name: str, faulty: Mapping[int, Ailment]
) -> dict[int, Ailment]:
    """The faulty pods with something wrong of their own that was not dealt with."""
    own, handled = cycle.repairs.ails.get(name, {}), cycle.repairs.handled
    return {
        n: each for n, each in faulty.items() if n in own and (name, n) not in handled
    }


def _wider(standing: Standing, repair: Repair, reach: Reach, *, whole: bool) -> Reach:
    """How much of a job is deleted: *reach*, the *whole* of it, or what was before."""
    wide = Reach.JOB if whole and standing.job.recovery.escalates else reach
    before = repair.reach if repair.ever else reach
    return max(wide, before, key=WIDER.index)


def _note_deleted(
    cycle: Cycle, repair: Repair, victims: set[int], alive: Collection[int]
) -> None:
    """Pods are deleted now; what was awaited before no longer counts."""
    repair.deleted |= victims
    repair.ever |= victims
    repair.awaited |= victims.difference(alive)
    repair.deleted_at, repair.gone_at, repair.stuck_at = cycle.now, None, None
    repair.braked = False
    cycle.repairs.brake.count(cycle.now, repair.name, len(victims))


def _use_retry(
    cycle: Cycle,
    repair: Repair,
    faulty: Mapping[int, Ailment],
    new: Mapping[int, Ailment],
) -> None:
    """What is wrong with pods themselves is dealt with; who failed uses one try up."""
    repairs, name = cycle.repairs, repair.name
    own = repairs.ails.get(name, {}).keys() & faulty.keys()
    repairs.handled |= {(name, n) for n in own}
    if any(each.cause is Cause.POD for each in new.values()):
        used = repairs.retries_used.get(name, 0) + 1
        repair.retries_used = repairs.retries_used[name] = used


def _order(
    cycle: Cycle,
    repair: Repair,
    faulty: Mapping[int, Ailment],
    victims: set[int],
    why: str,
    *,
    force: bool,
) -> None:
    """Have pods deleted; at once where that is wanted, or where nobody ends them."""
    places = repair.placements
    at_once = {
        n
        for n in victims
        if force or _is_lost(cycle, places.get(n)) or _is_stranded(cycle, faulty.get(n))
    }
    repair.forced |= at_once
    cause = str(first_cause({each.cause for each in faulty.values()}))
    for replicas, forced in ((at_once, True), (victims - at_once, False)):
        if replicas:
            listed = tuple(sorted(replicas))
            cycle.out.append(Delete(repair.name, listed, cause, why, forced))


def _is_asked(cycle: Cycle, standing: Standing, repair: Repair) -> bool:
    """Whether processes are asked to end by themselves and still have time for it."""
    rules = cycle.view.settings.repairs
    if repair.asked_at is None:
        repair.asked_at = cycle.now
        cycle.out.append(Remember(repair.name, repair.record))
        cycle.out.append(AskToExit(repair.name, exits=True))
        until = f"within {rules.grace_s} s"
        why = _faulty_words(repair.ailments)
        told = f"job {repair.name!r} is asked to exit {until}; {why}"
        cycle.tell(standing, Verdict.REPAIRING, told)
    ended = standing.ready < standing.min_pods or standing.missing
    due = repair.asked_at + rules.grace_s
    cycle.wake_at(due)
    return cycle.now < due and not ended


def _wait_for_brake(
    cycle: Cycle, standing: Standing, repair: Repair, pods: int
) -> None:
    """Too many pods were deleted in a short time: say so, and try again later."""
    rules, brake = cycle.view.settings.repairs, cycle.repairs.brake
    known, repair.braked = repair.braked, True
    cycle.repairs.braked[repair.name] = None
    recent = brake.recent(cycle.now, rules)
    told = (
        f"job {repair.name!r} is faulty and waits for the eviction rate limit: "
        f"{counted(pods, 'pod')} to be deleted, {recent} of {_total(cycle)} were "
        f"deleted in the last {rules.brake_s} s, the limit is {rules.brake_percent} %"
    )
    hint = "fault-brake-percent and fault-brake-seconds set the limit"
    if not known:
        cycle.tell(standing, Verdict.BRAKED, told, hint)


def _is_lost(cycle: Cycle, placement: Placement | None) -> bool:
    """Whether nobody is there who could end the pod: its node is gone or not ready."""
    node = None if placement is None else cycle.repairs.nodes.get(placement.node)
    if node is None:
        return placement is not None
    return not node.ready and node.down not in (Down.DAEMON, Down.SWITCH)


def _is_stranded(cycle: Cycle, ailment: Ailment | None) -> bool:
    """Whether a pod is known to be on a node that is not."""
    found = ailment is not None and ailment.cause is Cause.NODE and ailment.node
    return bool(found) and found not in cycle.repairs.nodes


def _faulty_words(faulty: Mapping[int, Ailment]) -> str:
    """Which pods are faulty and why, for people."""
    told = [
        f"pod {n} on {a.node} ({a.cause})" if a.node else f"pod {n} ({a.cause})"
        for n, a in sorted(faulty.items())
    ]
    return f"faulty: {some_of(told, MAX_TOLD)}"


def _deleted_words(reach: Reach, victims: Collection[int], had: int) -> str:
    """How much is deleted of a job that *had* so many pods, for people."""
    pods = len(victims)
    one, be = counted(pods, "pod"), "is" if pods == 1 else "are"
    if reach is Reach.BLOCK:
        return f"the rest of its logical SuperPoD is deleted too, {one}"
    if pods == had:
        return (
            f"all its {pods} pods are deleted" if pods > 1 else f"its {one} is deleted"
        )
    if reach is Reach.JOB:
        return f"the rest of it is deleted too, {one}"
    return f"{pods} of {had} pods {be} deleted"


def _outcome_words(cycle: Cycle, standing: Standing, repair: Repair) -> str:
    """Where the pods of a job that was repaired are now, for people."""
    now, moved, back = standing.placements, [], 0
    for n in sorted(repair.ever & now.keys()):
        before = repair.placements.get(n)
        if before is None or (before.node, before.chips) != (now[n].node, now[n].chips):
            gone = "" if before is None else f" from {before.node}"
            moved.append(f"pod {n} moved{gone} to {now[n].node}")
        else:
            back += 1
    told = [f"{counted(back, 'pod')} returned"] if back else []
    told += [some_of(moved, MAX_TOLD)] if moved else []
    after = f"{cycle.now - repair.since:.0f} s"
    return f"all its pods are placed again after {after}: {', '.join(told)}"


def _fault_keys(
    cycle: Cycle, repair: Repair, faulty: Mapping[int, Ailment]
) -> Iterator[Key]:
    """The faults because of which pods are deleted, as the book knows them."""
    for replica, ailment in sorted(faulty.items()):
        place = repair.placements.get(replica)
        chips = None if place is None else place.chips
        yield from cycle.repairs.book.keys_about(repair.name, ailment, chips)


# Jobs that are being repaired.


def _follow(cycle: Cycle, repair: Repair) -> None:
    """See whether a repair is over, or needs more than it got."""
    standing = cycle.view.standings.get(repair.name)
    rules = cycle.view.settings.repairs
    if not repair.ever:
        if standing is None:
            _close(cycle, None, repair)
        elif repair.asked_at is not None:
            cycle.wake_at(repair.asked_at + rules.grace_s)
            if cycle.now >= repair.asked_at + rules.grace_s:
                _inspect(cycle, standing)
        return
    if standing is not None and _is_whole(cycle, standing, repair):
        _finish(cycle, standing, repair)
        return
    ending = set() if standing is None else standing.terminating & repair.deleted
    if standing is not None and ending:
        _press(cycle, standing, repair, ending)
        return
    if repair.gone_at is None:
        repair.gone_at = cycle.now
    if standing is not None and _can_escalate(standing, repair):
        _escalate(cycle, standing, repair)
        return
    until = repair.gone_at + rules.hold_s
    cycle.wake_at(until)
    if cycle.now >= until:
        _give_up(cycle, standing, repair)


def _can_escalate(standing: Standing, repair: Repair) -> bool:
    """Whether pods that came back find no place, and more may be deleted for them."""
    stuck = repair.stuck_at is not None and standing.missing
    if not stuck or not standing.job.recovery.mode.is_ours:
        return False
    return next_reach(standing.job, repair.reach) is not None


def _is_whole(cycle: Cycle, standing: Standing, repair: Repair) -> bool:
    """Whether all pods that were deleted are back, or are done, and none is faulty.

    What is faulty may still wait for the brake.
    """
    back = standing.placements.keys() - standing.terminating | standing.finished
    if not repair.deleted <= back:
        return False
    if not standing.job.recovery.mode.is_ours:
        return True  # what is faulty stays, or others see to it
    left = faulty_pods(cycle, standing).values()
    return all(each.cause is Cause.SUB_HEALTH for each in left)


def _finish(cycle: Cycle, standing: Standing, repair: Repair) -> None:
    """A job is whole again."""
    ever = tuple(sorted(repair.ever))
    record = replace(repair.record, deleted=ever)
    told = _outcome_words(cycle, standing, repair)
    cycle.out.append(Repaired(repair.name, record, told))
    _close(cycle, standing, repair)


def _close(cycle: Cycle, standing: Standing | None, repair: Repair) -> None:
    """Forget a repair; how often pods failed by themselves is not forgotten."""
    del cycle.repairs.open[repair.name]
    if standing is None:
        cycle.repairs.braked.pop(repair.name, None)
    if nodes := repair.nodes:
        repair.drop(cycle.view.cluster)
        cycle.freed(cycle.view.cluster.products, nodes)
    if repair.was_asked:
        cycle.out.append(AskToExit(repair.name, exits=False))
    if repair.deleted_at is not None or repair.asked_at is not None:
        used = repair.retries_used
        over = Record(repair.since, retries_used=used, is_over=True) if used else None
        cycle.out.append(Remember(repair.name, over))
    if standing is not None and standing.job.previous is not None:
        cycle.become(standing, replace(standing.job, previous=None))


def _press(
    cycle: Cycle, standing: Standing, repair: Repair, ending: AbstractSet[int]
) -> None:
    """Delete pods at once that had their time to end by themselves."""
    assert repair.deleted_at is not None
    due = repair.deleted_at + cycle.view.settings.repairs.grace_s
    late = ending - repair.forced
    if not late:
        return
    cycle.wake_at(due)
    if cycle.now >= due:
        repair.forced |= late
        cause = str(first_cause(repair.causes))
        waited = cycle.view.settings.repairs.grace_s
        why = f"{counted(len(late), 'pod')} did not end within {waited} s"
        listed = tuple(sorted(late))
        cycle.out.append(Delete(repair.name, listed, cause, why, force=True))
        told = f"job {repair.name!r} is being repaired: {why}, deleted at once"
        cycle.tell(standing, Verdict.REPAIRING, told)


def _give_up(cycle: Cycle, standing: Standing | None, repair: Repair) -> None:
    """Its time is over: what was held for a job is for everybody."""
    _close(cycle, standing, repair)
    if standing is not None:
        held = cycle.view.settings.repairs.hold_s
        told = f"its nodes were held for {held} s and are free for other jobs now"
        cycle.tell(standing, Verdict.WAITING, f"job {repair.name!r} waits: {told}")
        if standing.missing:
            cycle.stop_waiting(repair.name)
            cycle.wait(standing)


def _escalate(cycle: Cycle, standing: Standing, repair: Repair) -> None:
    """Delete more of a job whose pods came back and find no place."""
    rules, reach = cycle.view.settings.repairs, next_reach(standing.job, repair.reach)
    assert reach is not None
    assert repair.stuck_at is not None
    after = rules.block_after_s if reach is Reach.BLOCK else rules.job_after_s
    if repair.reach is Reach.BLOCK:
        after -= rules.block_after_s  # so long they had found no place before
    if cycle.now < repair.stuck_at + after:
        cycle.wake_at(repair.stuck_at + after)
        return
    cause = first_cause(repair.causes)
    stranded = {n: repair.ailments.get(n, Ailment(n, cause)) for n in standing.missing}
    lacks = some_of([str(n) for n in sorted(stranded)], MAX_TOLD)
    noun = "pod" if len(stranded) == 1 else "pods"
    because = f"no node for {noun} {lacks} within {after} s"
    _delete(cycle, standing, repair, stranded, reach, because=because)
