"""What is wrong in a cluster, what it means for whom, and what is done about it.

Plain values, from the books of an engine and the book of faults; ``faults`` shows them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, to_builtins

from ringleaf.cli.chronicle import Chronicle, looked_at
from ringleaf.cli.output import so_many
from ringleaf.engine.event import RepairKnown
from ringleaf.framework.faultbook import FaultBook
from ringleaf.framework.standing import Standing
from ringleaf.framework.view import View
from ringleaf.kube.jobs import OUTSIDE
from ringleaf.kube.look import Look
from ringleaf.model.fault import (
    Ailment,
    Cause,
    Fault,
    Mode,
    Reach,
    Record,
    SubHealth,
)
from ringleaf.model.job import Network
from ringleaf.model.mask import runs_of
from ringleaf.model.placement import Placement
from ringleaf.simulator.encode import whole

Plain = dict[str, Any]

_NODE_PARTS: Final = {
    "": "not ready",
    "daemon": "its daemon reports it unhealthy",
    "switch": "its switch is unhealthy",
}
_PART_WORDS: Final[Mapping[Cause, str]] = {
    Cause.CHIP: "{} unhealthy",
    Cause.NETWORK: "network of {} unhealthy",
    Cause.SUB_HEALTH: "{} not well",
    Cause.POD: "{} failed",
    Cause.RELATION: "{} to be separated",
}
_REACH_WORDS: Final[Mapping[Reach, str]] = {
    Reach.PODS: "faulty pods",
    Reach.BLOCK: "logical SuperPoDs",
    Reach.JOB: "the whole job",
}


class Mending(Struct, frozen=True):
    """The repair of one job, as far as is known of it.

    Args:
        since: When its fault was found.
        reach: How much of it was deleted.
        ailments: The pods that were faulty, and why.
        placements: Where its pods were.
        deleted: The pods that were deleted.
        deleted_at: When the last of them were, if that is known.
        stuck_at: Since when pods that came back find no place.
        braked: Whether the brake holds it back.
        hold_until: Until when its places are held.

    """

    since: float
    reach: Reach = Reach.PODS
    ailments: tuple[Ailment, ...] = ()
    placements: tuple[Placement, ...] = ()
    deleted: tuple[int, ...] = ()
    deleted_at: float | None = None
    stuck_at: float | None = None
    braked: bool = False
    hold_until: float | None = None


def mending_of(record: Record, hold_s: float, *, braked: bool = False) -> Mending:
    """The same as it was written down."""
    held = None if record.deleted_at is None else record.deleted_at + hold_s
    return Mending(
        since=record.since,
        reach=record.reach,
        ailments=record.ailments,
        placements=record.placements,
        deleted=record.deleted,
        deleted_at=record.deleted_at,
        stuck_at=record.stuck_at,
        braked=braked,
        hold_until=held,
    )


class Damage:
    """What is wrong in a cluster.

    Args:
        view: Its nodes and jobs.
        book: The faults.
        repairs: The jobs that are repaired.
        used: Job -> how often its pods failed by themselves and were tried again.
        now: The time.
        has_history: Whether lives were written down; else nobody knows since when.

    """

    def __init__(
        self,
        view: View,
        book: FaultBook,
        repairs: Mapping[str, Mending],
        used: Mapping[str, int],
        now: float,
        *,
        has_history: bool = True,
    ) -> None:
        self._view, self._book, self._now = view, book, now
        self._repairs, self._used = repairs, used
        self._has_history = has_history
        self._rules = view.settings.repairs
        self._on = self._pods_on({fault.where for fault in book.open.values()})

    def _pods_on(self, nodes: Iterable[str]) -> Mapping[str, list[tuple[str, Any]]]:
        """Node -> the jobs and holdings on it, of the nodes that are asked for."""
        index = self._view.cluster.index
        wanted = {index[name]: name for name in nodes if name in index}
        found: defaultdict[str, list[tuple[str, Any]]] = defaultdict(list)
        if wanted:
            for job, holdings in sorted(self._view.cluster.holdings.items()):
                for holding in holdings:
                    if holding.node in wanted and job in self._view.standings:
                        found[wanted[holding.node]].append((job, holding))
        return found

    def plain(self) -> Plain:
        """All of it."""
        faults = [self._fault(each) for each in self._book.everything]
        repairs = [self._repair(*each) for each in sorted(self._repairs.items())]
        return {
            "at": whole(self._now),
            "history": self._has_history,
            "faults": faults,
            "repairs": repairs,
            "set-aside": [*self._aside()],
            "brake": self._brake(repairs),
        }

    # Faults.

    def _fault(self, fault: Fault) -> Plain:
        pods = {} if fault.recovered is not None else self.pods_of(fault)
        told: Plain = {
            "where": fault.where,
            "cause": fault.cause.value,
            "part": fault.part,
            "words": words_of(fault),
            "seen": whole(fault.seen) if self._knows(fault) else None,
            "acted": fault.acted,
            "recovered": fault.recovered,
            "jobs": list(fault.jobs),
            "pods": pods,
            "means": list(self._means(fault, pods)),
        }
        told |= {"why": fault.why} if fault.why else {}
        return told

    def _knows(self, fault: Fault) -> bool:
        return self._has_history or fault.recovered is not None

    def pods_of(self, fault: Fault) -> dict[str, list[int]]:
        """Job -> its pods that are on it."""
        if fault.part.startswith("pod "):
            number = int(fault.part.removeprefix("pod "))
            return {fault.where: [number]}
        chip = int(fault.part[5:]) if fault.part.startswith("chip ") else None
        found: dict[str, list[int]] = {}
        for job, holding in self._on.get(fault.where, ()):
            if chip is None or holding.chips >> chip & 1:
                found.setdefault(job, []).append(holding.replica)
        return {job: sorted(own) for job, own in found.items()}

    def _means(self, fault: Fault, pods: Mapping[str, list[int]]) -> Iterator[str]:
        """What it means for whom, line by line."""
        if fault.recovered is not None:
            return
        if fault.cause is Cause.REFUSAL:
            yield f"set aside: {fault.why}" if fault.why else "set aside"
        elif not pods:
            yield "no pod is on it"
        for job, own in pods.items():
            yield f"{pod_words(own)} of {job}: {self._lot(fault, job)}"

    def _lot(self, fault: Fault, job: str) -> str:
        """What becomes of the pods of a job that are on a fault."""
        standing = self._view.standings.get(job)
        if standing is None:
            return "the job is not there"
        if fault.cause is Cause.NETWORK:
            return "stays, nobody is moved for the network of a chip"
        if fault.cause is Cause.REFUSAL:
            return "stays, it was there before"
        if standing.job.queue == OUTSIDE:
            return "is another scheduler's"
        if job in self._repairs:
            mending = self._repairs[job]
            return "waits for the brake" if mending.braked else "is repaired"
        return self._lot_by_labels(fault, standing)

    def _lot_by_labels(self, fault: Fault, standing: Standing) -> str:
        wants = standing.job.recovery
        if fault.cause is Cause.SUB_HEALTH and wants.sub_health is SubHealth.IGNORE:
            return "stays, subHealthyStrategy is ignore"
        if wants.mode is Mode.OFF:
            return "stays, fault-scheduling is off"
        if fault.cause is Cause.POD:
            left = max(0, wants.retries - self._used.get(standing.job.name, 0))
            if not left:
                return f"stays, all {so_many(wants.retries, 'retry', 'retries')} used"
            return f"to be tried again, {so_many(left, 'retry', 'retries')} left"
        if wants.mode.is_external:
            return f"left to others, fault-scheduling is {wants.mode}"
        return f"to be deleted, fault-scheduling is {wants.mode}"

    def _aside(self) -> Iterator[Plain]:
        for fault in self._book.open.values():
            if fault.cause is Cause.REFUSAL:
                until = fault.until
                if until is None:
                    until = fault.seen + self._rules.aside_s
                yield {
                    "node": fault.where,
                    "since": whole(fault.seen),
                    "until": whole(until),
                    "why": fault.why,
                }

    # Repairs.

    def _repair(self, job: str, mending: Mending) -> Plain:
        standing = self._view.standings.get(job)
        back = [] if standing is None else self._back(standing, mending)
        ending = [] if standing is None else sorted(standing.terminating)
        stage, waits = self._stage(standing, mending, back)
        return {
            "job": job,
            "since": whole(mending.since),
            "reach": mending.reach.value,
            "ailments": [to_builtins(each) for each in mending.ailments],
            "deleted": list(mending.deleted),
            "back": back,
            "ending": ending,
            "held": len(mending.placements),
            "hold-until": mending.hold_until,
            "braked": mending.braked,
            "stage": stage,
            "waits-for": waits,
        }

    @staticmethod
    def _back(standing: Standing, mending: Mending) -> list[int]:
        alive = standing.placements.keys() - standing.terminating
        return [n for n in sorted(mending.deleted) if n in alive]

    def _stage(
        self, standing: Standing | None, mending: Mending, back: list[int]
    ) -> tuple[str, str]:
        """How far it is, and what it waits for."""
        if mending.braked or not mending.deleted:
            stage = "braked" if mending.braked else "found"
            return stage, "the brake" if mending.braked else "its pods to be deleted"
        if standing is not None and standing.terminating:
            return "ending", self._ending_words(standing, mending)
        if mending.stuck_at is not None:
            return "stuck", self._stuck_words(standing, mending)
        missing = len(mending.deleted) - len(back)
        if not missing:
            return "placed", ""
        if standing is None:
            return "gone", "its pods to be made again"
        return "placing", f"places for {so_many(missing, 'pod')}"

    def _ending_words(self, standing: Standing, mending: Mending) -> str:
        told = f"{so_many(len(standing.terminating), 'pod')} to end"
        if standing.job.recovery.mode is not Mode.GRACE:
            return told
        left = mending.since + self._rules.grace_s - self._now
        return f"{told}, by force {_until_words(left)}"

    def _stuck_words(self, standing: Standing | None, mending: Mending) -> str:
        assert mending.stuck_at is not None
        ago = self._now - mending.stuck_at
        told = f"a place for its pods, for {ago:.0f} s"
        if standing is None or not standing.job.recovery.escalates:
            return told
        in_blocks = standing.job.network is Network.SUPERPODS
        if mending.reach is Reach.PODS and in_blocks:
            left, more = self._rules.block_after_s - ago, "its logical SuperPoD"
        elif mending.reach is not Reach.JOB:
            left, more = self._rules.job_after_s - ago, "all of it"
        else:
            return told
        return f"{told}; then {more} is deleted, {_until_words(left)}"

    def _brake(self, repairs: Iterable[Plain]) -> Plain:
        """How many pods may be deleted now, and who is held back."""
        rules, since = self._rules, self._now - self._rules.brake_s
        deleted = sum(
            len(each.deleted)
            for each in self._repairs.values()
            if each.deleted_at is not None and each.deleted_at > since
        )
        pods = sum(len(each.placements) for each in self._view.standings.values())
        held = sorted(each["job"] for each in repairs if each["braked"])
        return {
            "engaged": bool(held),
            "held": held,
            "deleted": deleted,
            "pods": pods,
            "percent": rules.brake_percent,
            "seconds": rules.brake_s,
        }


def words_of(fault: Fault) -> str:
    """What is wrong, for people.

    >>> words_of(Fault("n1", Cause.CHIP, "chip 3")), words_of(Fault("n1", Cause.NODE))
    ('chip 3 unhealthy', 'not ready')
    """
    if fault.cause is Cause.NODE:
        return _NODE_PARTS.get(fault.part, fault.part)
    if fault.cause is Cause.REFUSAL:
        return "refuses pods"
    return _PART_WORDS[fault.cause].format(fault.part or "something of it")


def numbers_words(numbers: Iterable[int]) -> str:
    """Numbers, those that follow each other together.

    >>> numbers_words([0, 1, 2, 5])
    '0-2, 5'
    """
    runs = runs_of(sorted(numbers))
    return ", ".join(
        str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs
    )


def pod_words(numbers: list[int]) -> str:
    """Pods by their numbers.

    >>> pod_words([3]), pod_words([0, 1])
    ('pod 3', 'pods 0-1')
    """
    return f"pod{'s' if len(numbers) > 1 else ''} {numbers_words(numbers)}"


def reach_words(reach: str) -> str:
    """How much of a job is replaced, for people."""
    return _REACH_WORDS[Reach(reach)]


def _until_words(seconds: float) -> str:
    return f"in {seconds:.0f} s" if seconds >= 1 else "now"


def damage_of(
    view: View, told: Chronicle, now: float, *, has_history: bool = True
) -> Damage:
    """What is wrong in a cluster, by what was told of it."""
    hold_s = view.settings.repairs.hold_s
    repairs = {
        job: mending_of(record, hold_s, braked=job in told.braked)
        for job, record in told.records.items()
        if not record.is_over
    }
    return Damage(view, told.book, repairs, told.used, now, has_history=has_history)


def repair_of(look: Look, job: str) -> Plain | None:
    """How far the repair of a job is, as it was looked at; None if it needs none."""
    for event in look.events:
        if isinstance(event, RepairKnown) and event.job == job:
            told = Chronicle()
            told.hear([event], look.now)
            found = damage_of(look.engine.view, told, look.now).plain()["repairs"]
            return found[0] if found else None
    return None


def repair_words(repair: Plain) -> str:
    """How far a repair is, in one line."""
    deleted = repair["deleted"]
    words = f"it is being repaired ({reach_words(repair['reach'])})"
    if deleted:
        words += f": {pod_words(deleted)} deleted, {len(repair['back'])} back"
    if repair["waits-for"]:
        words += f"; waits for {repair['waits-for']}"
    if repair["hold-until"] is not None:
        words += f"; {so_many(repair['held'], 'place')} held for it"
    return words


def summary_of(look: Look) -> Plain:
    """How many faults a cluster has as it was looked at, and how many repairs."""
    told = looked_at(look.events, (), look.now)
    found = damage_of(look.engine.view, told, look.now).plain()
    return {
        "open": len(found["faults"]),
        "nodes": len(
            {each["where"] for each in found["faults"] if not is_of_pod(each)}
        ),
        "repairs": len(found["repairs"]),
    }


def is_of_pod(fault: Plain) -> bool:
    """Whether a pod has it, and not its node."""
    part: str = fault["part"]
    return part.startswith("pod ")
