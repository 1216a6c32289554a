"""All that is known of faulty pods, and of jobs that are being repaired."""

from collections.abc import Iterable, Mapping

from ringleaf.framework.fault_log import FaultLog
from ringleaf.framework.rate_limit import EvictionRateLimit
from ringleaf.framework.repair import Repair
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Cause, PodFault
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement

ORDER = tuple(Cause)


class Repairs:
    """All that is known of faulty pods and of jobs that are repaired."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        """The nodes as they were last reported."""
        self.fault_log = FaultLog()
        """Every fault with its life."""
        self.reconciled_at = 0
        """Which change of repairs was last looked at."""
        self.open: dict[str, Repair] = {}
        """By the name of the job."""
        self.pod_faults: dict[str, dict[int, PodFault]] = {}
        """Job -> what is wrong with pods themselves."""
        self.vanished: dict[str, dict[int, PodFault]] = {}
        """Of those, what is wrong with pods that vanished with their nodes."""
        self.places: dict[str, dict[int, Placement]] = {}
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

    def let_go(self, name: str, statement: Statement) -> None:
        """Hold nothing for the repair of a job, if it is repaired."""
        if name in self.open:
            statement.drop(self.open[name].held.owner)

    def knows(self, name: str) -> bool:
        """Whether anything is repaired, or pods of a job may be faulty."""
        if self.open or self.vanished:
            return True
        return (
            name in self.pod_faults
            or name in self.reported_faulty
            or name in self.rate_limit.waiting
        )

    def heard_of(self, job: Job) -> None:
        """A job is there, or another than it was."""
        self.suspects[job.name] = None
        repair = self.open.get(job.name)
        if repair is not None and not repair.knows_more_than(job):
            repair.job = job

    def forget(self, name: str) -> None:
        """A job is gone for good."""
        self.retries_used.pop(name, None)
        self.reported_faulty.pop(name, None)
        self.running(name, self.vanished.get(name, {}))
        self.report_pod_faults(name, (), {})
        self.suspects.pop(name, None)
        self.rate_limit.waiting.pop(name, None)

    def report_pod_faults(
        self,
        name: str,
        ailments: Iterable[PodFault],
        placements: Mapping[int, Placement],
    ) -> None:
        """What is wrong with the pods of a job themselves, all of it.

        It is not said again of pods that they vanished with their nodes.
        """
        before, places = self.pod_faults.get(name, {}), self.places.get(name, {})
        told = [*ailments, *self.vanished.get(name, {}).values()]
        found: dict[int, PodFault] = {}
        for each in sorted(told, key=lambda each: ORDER.index(each.cause)):
            found.setdefault(each.replica, each)
        gone = before.keys() - found.keys()
        self.handled -= {(name, replica) for replica in gone}
        known = {
            n: place
            for n in found
            if (place := placements.get(n, places.get(n))) is not None
        }
        self.pod_faults.pop(name, None)
        self.places.pop(name, None)
        if found:
            self.pod_faults[name], self.places[name] = found, known
        self.suspects[name] = None

    def pods_vanished(self, name: str, placements: Mapping[int, Placement]) -> None:
        """The nodes of some pods are gone, and the pods with them."""
        new = {n: PodFault(n, Cause.NODE, p.node) for n, p in placements.items()}
        self.vanished[name] = self.vanished.get(name, {}) | new
        self.handled -= {(name, replica) for replica in new}
        self.report_pod_faults(name, self.pod_faults.get(name, {}).values(), placements)

    def gone(self, name: str, replicas: Iterable[int]) -> bool:
        """Pods are known to be gone; whether their job waited for that."""
        repair = self.open.get(name)
        if repair is None:
            return False
        self.suspects[name] = None
        before = len(repair.deletion.awaited)
        repair.deletion.awaited -= {*replicas}
        return len(repair.deletion.awaited) < before

    def placed(self, name: str, replicas: Iterable[int]) -> None:
        """Pods have a place: what was wrong was wrong with those before them."""
        new = {*replicas}
        if new & self.pod_faults.get(name, {}).keys():
            left = [a for n, a in self.pod_faults[name].items() if n not in new]
            self.running(name, new)
            self.report_pod_faults(name, left, {})

    def running(self, name: str, replicas: Iterable[int]) -> None:
        """Pods are on nodes that are there."""
        known = self.vanished.pop(name, {})
        left = {n: each for n, each in known.items() if n not in {*replicas}}
        if left:
            self.vanished[name] = left
        if len(left) < len(known):
            ails = self.pod_faults[name].items()
            rest = [each for n, each in ails if known.get(n) is not each]
            self.report_pod_faults(name, rest, {})
