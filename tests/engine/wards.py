"""Which pods may be deleted because of faults, by the rules alone.

Written from the vendor's fault handling and the decisions, not from the engine: causes
in their order, the pods deleted for them, the budget of retries, the rate limit.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ringleaf.engine.event import (
    BindFailed,
    Event,
    JobArrived,
    JobGone,
    NodesGone,
    PodFaultsReported,
    PodsGone,
)
from ringleaf.framework.instruction import AskToExit, Bind, Delete, PersistRepair
from ringleaf.model.fault import Cause, Down, FaultMode, Recovery, SubHealth

if TYPE_CHECKING:
    from tests.engine.ledger import Ledger

Pod = tuple[str, int]
ITS_OWN = (Cause.POD, Cause.RELATION, Cause.SUB_HEALTH)


class Wards:
    """What is wrong with pods, and what was done about it; restarts do not matter."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ails: dict[Pod, Cause] = {}
        self.lost: dict[Pod, str] = {}
        """Pods that vanished with their nodes."""
        self.deleted: dict[Pod, float] = {}
        """Pods that were deleted and have not been placed again, and when."""
        self.forced: set[Pod] = set()
        self.gone: dict[Pod, float] = {}
        """Of those, since when they are gone."""
        self.block: dict[Pod, int | None] = {}
        self.node: dict[Pod, str] = {}
        """Where pods were placed last."""
        self.asked: dict[str, float] = {}
        self.unsure: set[str] = set()
        """Jobs of which it is unknown since a restart whether they were asked."""
        self.parted: set[str] = set()
        """Jobs that wanted only faulty pods deleted when some were."""
        self.retries: dict[str, int] = {}
        self.deletions: list[tuple[float, str, int]] = []
        self.episodes: dict[str, dict[int, Cause]] = {}
        """Job -> its faulty pods when some were deleted in this cycle."""
        self.tried: dict[str, None] = {}
        """Jobs of which pods that failed were deleted in this cycle."""
        self.claims: dict[str, PersistRepair] = {}
        """Job -> what was remembered of it in this cycle, and is to be seen."""
        self.written: dict[str, set[int]] = {}
        """Job -> the deleted pods of its last record."""

    # What happens.

    def hear(self, event: Event, ledger: "Ledger") -> None:
        """Write *event* down, before the ledger does."""
        self.episodes, self.tried = {}, {}
        match event:
            case PodFaultsReported():
                self._ail(event, ledger)
            case NodesGone():
                self._nodes_gone(event, ledger)
            case PodsGone() | BindFailed():
                self._went((event.job, replica) for replica in event.replicas)
            case JobGone():
                self._went(pod for pod in ledger.pods if pod[0] == event.job)
                if not event.returns:
                    self._forget(event.job)
            case JobArrived():
                for place in event.placements:
                    self.node[event.job.name, place.replica] = place.node
                    if place.node not in ledger.nodes:
                        self.lost[event.job.name, place.replica] = place.node
            case _:
                pass

    def _ail(self, event: PodFaultsReported, ledger: "Ledger") -> None:
        """A pod that is asked to end may well end badly; that is no further fault."""
        for pod in [pod for pod in self.ails if pod[0] == event.job]:
            del self.ails[pod]
        for cause in reversed(ITS_OWN):
            for ailment in event.pod_faults:
                pod = (event.job, ailment.replica)
                if ailment.cause is cause and pod not in ledger.ending:
                    self.ails[event.job, ailment.replica] = cause

    def _nodes_gone(self, event: NodesGone, ledger: "Ledger") -> None:
        for pod, use in ledger.pods.items():
            if use.node in event.names:
                self._went([pod])
                if pod not in ledger.ending or pod in self.deleted:
                    self.lost[pod] = use.node

    def _went(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            if pod in self.deleted:
                self.gone.setdefault(pod, self.now)

    def _forget(self, name: str) -> None:
        for book in (self.ails, self.lost, self.deleted, self.gone, self.block):
            for pod in [pod for pod in book if pod[0] == name]:
                del book[pod]
        for other in (self.asked, self.retries, self.written):
            other.pop(name, None)
        self.parted.discard(name)

    # What is to be done.

    def bind(self, said: Bind) -> None:
        """Pods have a place again."""
        for placement in said.placements:
            pod = (said.job, placement.replica)
            for book in (self.ails, self.lost, self.deleted, self.gone):
                book.pop(pod, None)
            self.forced.discard(pod)
            self.block[pod], self.node[pod] = placement.block, placement.node
        if all(name != said.job for name, _n in self.deleted):
            self.parted.discard(said.job)

    def remember(self, said: PersistRepair, ledger: "Ledger") -> None:
        """What was deleted is known to the engine after a restart."""
        record = said.record
        self.written[said.job] = set() if record is None else {*record.deleted}
        if record is None or record.is_over or not record.deleted:
            used = 0 if record is None else record.retries_used
            assert used == self.retries.get(said.job, 0), f"a retry forgotten: {said}"
            return
        self._episode(said.job, ledger)
        self.claims[said.job] = said

    def settle(self) -> None:
        """What was remembered of retries is what was deleted of pods that failed."""
        for name, said in self.claims.items():
            used = self.retries.get(name, 0)
            assert said.record is not None
            assert said.record.retries_used == used, f"not {used} retries: {said}"
        self.claims = {}

    def ask(self, said: AskToExit, ledger: "Ledger") -> None:
        """Processes are asked to end, or no longer."""
        if not said.exits:
            known = said.job in self.asked or said.job in self.unsure
            assert known, f"never asked: {said}"
            self.asked.pop(said.job, None)
            return
        recovery = ledger.recovery(said.job)
        assert recovery.sub_health is SubHealth.GRACE_EXIT, said
        assert {*self.faulty(said.job, ledger).values()} == {Cause.SUB_HEALTH}, said
        self.asked[said.job] = self.now

    def delete(self, said: Delete, ledger: "Ledger") -> None:
        """Pods are deleted: complain unless the rules say so."""
        pods = {(said.job, n) for n in said.replicas}
        assert pods, f"no pod to delete: {said}"
        assert pods <= {*ledger.pods, *self.lost, *self.ails}, f"no pods: {said}"
        if pods <= self.deleted.keys() and not pods & self.lost.keys():
            self._press(said, pods, ledger)
            return
        recovery = ledger.recovery(said.job)
        assert recovery.mode in (FaultMode.GRACE, FaultMode.FORCE), f"not ours: {said}"
        assert {*said.replicas} <= self.written.get(said.job, set()), (
            f"deleted before it was written down: {said}"
        )
        faulty = self._episode(said.job, ledger)
        failed = [n for n in said.replicas if faulty.get(n) is Cause.POD]
        if failed and said.job not in self.tried:
            self.tried[said.job] = None
            self.retries[said.job] = self.retries.get(said.job, 0) + 1
            assert self.retries[said.job] <= recovery.retries, f"no try left: {said}"
        if not faulty and said.job in self.asked:
            held = sum(pod[0] == said.job for pod in ledger.pods)
            assert held < ledger.jobs[said.job].n_pods, f"no pod ended: {said}"
        elif not faulty:
            self._is_escalation(said, recovery, ledger)
        else:
            self._is_right(said, recovery, faulty)
            first = min(faulty.values(), key=[*Cause].index)
            assert said.cause == first, (said, faulty)
            self._in_the_way_asked_for(said, recovery, faulty, ledger)
        self._within_rate_limit(said, ledger)
        if recovery.pods_only or recovery.process:
            self.parted.add(said.job)
        for pod in pods:
            self.deleted[pod] = self.now
            self.ails.pop(pod, None)
            self.lost.pop(pod, None)
            if pod not in ledger.pods:
                self.gone[pod] = self.now
        if said.force:
            self.forced |= pods

    def _episode(self, name: str, ledger: "Ledger") -> dict[int, Cause]:
        """The faulty pods when pods of a job are deleted, maybe in two parts."""
        if name not in self.episodes:
            self.episodes[name] = self.faulty(name, ledger)
        return self.episodes[name]

    def _press(self, said: Delete, pods: set[Pod], ledger: "Ledger") -> None:
        """Pods that were deleted before do not end, or no node can end them now."""
        grace = ledger.conf.settings.repairs.grace_s
        assert said.force, f"deleted twice: {said}"
        assert not pods & self.forced, f"forced twice: {said}"
        since = min(self.deleted[pod] for pod in pods)
        is_node_gone = not {self.node[pod] for pod in pods} & ledger.nodes.keys()
        assert is_node_gone or self.now >= since + grace, f"too early: {said}"
        self.forced |= pods

    def _is_right(
        self, said: Delete, recovery: Recovery, faulty: dict[int, Cause]
    ) -> None:
        """All of the job, the faulty pods, or all because one of them leads it."""
        if recovery.pods_only or recovery.process or not recovery.escalates:
            master = recovery.escalates and recovery.master in faulty
            more = {*said.replicas} - faulty.keys()
            assert master or not more, f"healthy pods: {said}"

    def _is_escalation(
        self, said: Delete, recovery: Recovery, ledger: "Ledger"
    ) -> None:
        """Pods came back and have found no place for long enough."""
        rules = ledger.conf.settings.repairs
        assert recovery.escalates, f"nothing is wrong: {said}"
        parted = recovery.pods_only or recovery.process or said.job in self.parted
        assert parted, f"nothing is wrong: {said}"
        since = {p: at for p, at in self.gone.items() if p[0] == said.job}
        assert since, f"nothing is wrong: {said}"
        waited = self.now - min(since.values())
        blocks = {self.block.get(pod) for pod in since}
        inside = all(self.block.get((said.job, n)) in blocks for n in said.replicas)
        if inside and None not in blocks:
            assert waited >= min(rules.block_after_s, rules.job_after_s), said
        else:
            assert waited >= rules.job_after_s, f"too early: {said}"

    def _in_the_way_asked_for(
        self,
        said: Delete,
        recovery: Recovery,
        faulty: dict[int, Cause],
        ledger: "Ledger",
    ) -> None:
        if {*faulty.values()} == {Cause.SUB_HEALTH}:
            repaired = any(pod[0] == said.job for pod in self.deleted)
            if recovery.sub_health is SubHealth.GRACE_EXIT and not repaired:
                since = self.asked.get(said.job)
                assert since is not None, f"never asked to end: {said}"
                waited = self.now - since >= ledger.conf.settings.repairs.grace_s
                held = sum(pod[0] == said.job for pod in ledger.pods)
                assert waited or held < ledger.jobs[said.job].n_pods, said
            grace = recovery.sub_health is SubHealth.GRACE_EXIT and repaired
            assert said.force or grace, f"sub-health is dealt with at once: {said}"
            return
        lost = [n for n in said.replicas if self._is_lost((said.job, n), ledger)]
        if said.force:
            all_lost = len(lost) == len(said.replicas)
            assert recovery.mode is FaultMode.FORCE or all_lost, f"no grace: {said}"
        else:
            assert recovery.mode is FaultMode.GRACE, f"not forced: {said}"
            assert not lost, f"grace for lost pods: {said}"

    def _is_lost(self, pod: Pod, ledger: "Ledger") -> bool:
        """Whether no node is there that could end the pod."""
        held = ledger.pods.get(pod)
        name = self.lost.get(pod, self.node[pod]) if held is None else held.node
        node = ledger.nodes.get(name)
        if node is None:
            return True
        return not node.ready and node.down not in (Down.DAEMON, Down.SWITCH)

    def _within_rate_limit(self, said: Delete, ledger: "Ledger") -> None:
        """Not too many in a while; the first job of a while always may."""
        rules = ledger.conf.settings.repairs
        new = len({*said.replicas})
        while self.deletions and self.deletions[0][0] <= self.now - rules.brake_s:
            self.deletions.pop(0)
        part = self.deletions and self.deletions[-1][:2] == (self.now, said.job)
        others = sum(
            n for _at, _job, n in (self.deletions[:-1] if part else self.deletions)
        )
        recent = sum(n for _at, _job, n in self.deletions)
        if others:
            back = {(name, n) for name, pods in self.written.items() for n in pods}
            back |= self.gone.keys()
            there = ledger.pods.keys() | back - ledger.done
            most = rules.brake_percent * len(there)
            fast = rules.brake_percent == 100
            assert fast or 100 * (recent + new) <= most, f"the rate limit: {said}"
        if part:
            new += self.deletions.pop()[2]
        self.deletions.append((self.now, said.job, new))

    # Causes.

    def faulty(self, name: str, ledger: "Ledger") -> dict[int, Cause]:
        """The pods of a job that are faulty now, and the first cause of each."""
        return dict(self._faulty(name, ledger))

    def _faulty(self, name: str, ledger: "Ledger") -> Iterator[tuple[int, Cause]]:
        recovery = ledger.recovery(name)
        for pod in {*ledger.pods, *self.lost, *self.ails}:
            dealt = pod in ledger.ending or pod in self.deleted
            if pod[0] == name and (not dealt or pod in self.lost):
                cause = self._cause(pod, recovery, ledger)
                if cause is not None:
                    yield pod[1], cause

    def _cause(self, pod: Pod, recovery: Recovery, ledger: "Ledger") -> Cause | None:
        own = self.ails.get(pod)
        if own is Cause.POD and self.retries.get(pod[0], 0) >= recovery.retries:
            own = None
        if own is Cause.SUB_HEALTH and recovery.sub_health is SubHealth.IGNORE:
            own = None
        use = ledger.pods.get(pod)
        if use is None:
            return Cause.NODE if pod in self.lost else own
        node = ledger.nodes[use.node]
        if not node.ready and node.down in (Down.DAEMON, Down.SWITCH):
            return Cause.NODE
        if any(node.unhealthy >> chip & 1 for chip in use.chips):
            return Cause.CHIP
        if not node.ready:
            return Cause.NODE
        if own in (Cause.POD, Cause.RELATION):
            return own
        weak = node.weak_switch or any(node.weak >> chip & 1 for chip in use.chips)
        minds = recovery.sub_health in (SubHealth.GRACE_EXIT, SubHealth.FORCE_EXIT)
        return Cause.SUB_HEALTH if own or (weak and minds) else None
