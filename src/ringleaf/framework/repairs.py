"""Faulty pods, jobs that are being repaired, and the limit of deletions for faults.

The eviction rate limit keeps a storm of reports from emptying the cluster: deletions
beyond it wait.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from math import inf
from typing import Final

from ringleaf.framework.fault_log import FaultLog
from ringleaf.framework.repair import Repair
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Cause, Deletion, PodFault
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.model.settings import RepairSettings

EVERYTHING: Final = 100
"""Percent that may be deleted where there is no limit."""


class EvictionRateLimit:
    """Counts deletions in a window of time that ends now."""

    def __init__(self) -> None:
        self.deletions: deque[Deletion] = deque()
        """Those of the window, and maybe older ones, the oldest first.

        A deletion without a job is a sum of all deletions until then.
        """
        self.waiting: dict[str, None] = {}
        """Jobs with faulty pods that wait for the limit."""
        self.n_pods: int | None = None
        """How many pods there are, once that was asked in a cycle."""

    def count(self, at: float, job: str, pods: int) -> None:
        """*pods* of *job* were deleted."""
        self.deletions.append(Deletion(at, job, pods))

    def restore(self, deletions: Iterable[Deletion], now: float) -> None:
        """Adopt deletions that were written down; idempotent.

        That is the number, whatever the record of a repair may have made believe.
        """
        written = [Deletion(min(d.at, now), d.job, d.pods) for d in deletions]
        same = {(each.at, each.job) for each in written}
        summed = _summed_until(written)
        others = [
            d
            for d in self.deletions
            if d.job and d.at > summed and (d.at, d.job) not in same
        ]
        self.deletions = deque(sorted([*others, *written]))

    def count_once(self, at: float, job: str, pods: int) -> None:
        """The record of a repair says that so many were; it may be known already."""
        known = any((each.at, each.job) == (at, job) for each in self.deletions)
        if not known and at > _summed_until(self.deletions):
            self.deletions = deque(sorted([*self.deletions, Deletion(at, job, pods)]))

    def recent(self, now: float, rules: RepairSettings) -> int:
        """Pods that were deleted within the window."""
        while self.deletions and self.deletions[0].at <= now - rules.brake_s:
            self.deletions.popleft()
        return sum(each.pods for each in self.deletions)

    def allows(self, pods: int, of: int, now: float, rules: RepairSettings) -> bool:
        """Whether *pods* more may be deleted, of the pods that there are.

        The first job in a window always may: one that is larger than the limit would
        never be repaired. With a limit of 100 % nothing is refused: more pods than
        exist can be deleted within the window.
        """
        recent = self.recent(now, rules)
        if not pods or not recent or rules.brake_percent >= EVERYTHING:
            return True
        return 100 * (recent + pods) <= rules.brake_percent * of

    def next_at(self, rules: RepairSettings) -> float:
        """When the first of those deletions is forgotten; only while there are any."""
        return self.deletions[0].at + rules.brake_s


def _summed_until(deletions: Iterable[Deletion]) -> float:
    """Until when deletions are a sum, and not listed one by one."""
    return max((each.at for each in deletions if not each.job), default=-inf)


ORDER = tuple(Cause)


class Repairs:
    """All that is known of faulty pods and of jobs that are repaired."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        """The nodes as they were last reported."""
        self.fault_log = FaultLog()
        """Every fault with its life."""
        self.reconciled_generation = 0
        """Which change of repairs was last looked at."""
        self.open: dict[str, Repair] = {}
        """By the name of the job."""
        self.pod_faults: dict[str, dict[int, PodFault]] = {}
        """Job -> what is wrong with pods themselves."""
        self.lost_with_node: dict[str, dict[int, PodFault]] = {}
        """Of those, what is wrong with pods that vanished with their nodes."""
        self.last_places: dict[str, dict[int, Placement]] = {}
        """Job -> where the pods were with which something is wrong themselves."""
        self.handled: set[tuple[str, int]] = set()
        """Pods with something wrong of their own that was dealt with."""
        self.suspects: dict[str, None] = {}
        """Jobs of which pods may have become faulty."""
        self.retries_used: dict[str, int] = {}
        """How often pods of a job failed by themselves and were tried again."""
        self.reported_faulty: dict[str, tuple[PodFault, ...]] = {}
        """What was reported of jobs whose pods others delete."""
        self.rate_limit = EvictionRateLimit()

    def drop_hold(self, name: str, statement: Statement) -> None:
        """Hold nothing for the repair of a job, if it is repaired."""
        if name in self.open:
            statement.drop(self.open[name].held.owner)

    def may_concern(self, name: str) -> bool:
        """Whether anything is repaired, or pods of a job may be faulty."""
        if self.open or self.lost_with_node:
            return True
        return (
            name in self.pod_faults
            or name in self.reported_faulty
            or name in self.rate_limit.waiting
        )

    def job_changed(self, job: Job) -> None:
        """A job is there, or another than it was."""
        self.suspects[job.name] = None
        repair = self.open.get(job.name)
        if repair is not None and not repair.has_pods_missing_in(job):
            repair.job = job

    def forget(self, name: str) -> None:
        """A job is gone for good."""
        self.retries_used.pop(name, None)
        self.reported_faulty.pop(name, None)
        self.clear_lost_with_node(name, self.lost_with_node.get(name, {}))
        self.report_pod_faults(name, (), {})
        self.suspects.pop(name, None)
        self.rate_limit.waiting.pop(name, None)

    def report_pod_faults(
        self,
        name: str,
        pod_faults: Iterable[PodFault],
        placements: Mapping[int, Placement],
    ) -> None:
        """What is wrong with the pods of a job themselves, all of it.

        Pods that were lost with their nodes are added: they are reported only once.
        """
        before, places = self.pod_faults.get(name, {}), self.last_places.get(name, {})
        faults = [*pod_faults, *self.lost_with_node.get(name, {}).values()]
        found: dict[int, PodFault] = {}
        for each in sorted(faults, key=lambda each: ORDER.index(each.cause)):
            found.setdefault(each.replica, each)
        gone = before.keys() - found.keys()
        self.handled -= {(name, replica) for replica in gone}
        known = {
            n: place
            for n in found
            if (place := placements.get(n, places.get(n))) is not None
        }
        self.pod_faults.pop(name, None)
        self.last_places.pop(name, None)
        if found:
            self.pod_faults[name], self.last_places[name] = found, known
        self.suspects[name] = None

    def note_lost_with_node(
        self, name: str, placements: Mapping[int, Placement]
    ) -> None:
        """The nodes of some pods are gone, and the pods with them."""
        new = {n: PodFault(n, Cause.NODE, p.node) for n, p in placements.items()}
        self.lost_with_node[name] = self.lost_with_node.get(name, {}) | new
        self.handled -= {(name, replica) for replica in new}
        self.report_pod_faults(name, self.pod_faults.get(name, {}).values(), placements)

    def confirm_gone(self, name: str, replicas: Iterable[int]) -> bool:
        """Pods are known to be gone; whether their job waited for that."""
        repair = self.open.get(name)
        if repair is None:
            return False
        self.suspects[name] = None
        before = len(repair.deletion.deletion_unobserved)
        repair.deletion.deletion_unobserved -= {*replicas}
        return len(repair.deletion.deletion_unobserved) < before

    def clear_replaced(self, name: str, replicas: Iterable[int]) -> None:
        """Pods have a place: what was wrong was wrong with those before them."""
        new = {*replicas}
        if new & self.pod_faults.get(name, {}).keys():
            left = [a for n, a in self.pod_faults[name].items() if n not in new]
            self.clear_lost_with_node(name, new)
            self.report_pod_faults(name, left, {})

    def clear_lost_with_node(self, name: str, replicas: Iterable[int]) -> None:
        """Pods are on nodes that are there."""
        known = self.lost_with_node.pop(name, {})
        left = {n: each for n, each in known.items() if n not in {*replicas}}
        if left:
            self.lost_with_node[name] = left
        if len(left) < len(known):
            ails = self.pod_faults[name].items()
            rest = [each for n, each in ails if known.get(n) is not each]
            self.report_pod_faults(name, rest, {})
