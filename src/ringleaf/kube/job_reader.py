"""The job of a gang as it is now, and the pods that the engine is told of."""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from ringleaf.kube.budgets import Budgets
from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.canary import Canary
from ringleaf.kube.claim_store import ClaimStore
from ringleaf.kube.demand import BadPod
from ringleaf.kube.gang_members import is_held, members_of, place_of
from ringleaf.kube.gang_state import GangState, set_status
from ringleaf.kube.isolation import Isolation
from ringleaf.kube.job_traits import JobContext, queue_of
from ringleaf.kube.jobs import job_of, namespace_of
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.special_jobs import failed_job, held_job, podless_job
from ringleaf.model.fault import NO_RECOVERY
from ringleaf.model.job import Job
from ringleaf.model.job_labels import FAULT_SCHEDULING, TOR_AFFINITY

NODE_HEARD_S: Final = 30.0
"""A node of which nothing is heard so long after a pod of it was made is gone."""


class JobReader:
    """Makes the jobs of gangs.

    Args:
        state: What the stores of the cache share.
        isolation: Knows which jobs are quarantined.
        claims: The claims of pods.
        budgets: The disruption budgets.
        canary: The jobs that are placed, where not all of them are.

    """

    def __init__(
        self,
        state: CacheState,
        isolation: Isolation,
        claims: ClaimStore,
        budgets: Budgets,
        canary: Canary | None,
    ) -> None:
        self._state, self._isolation, self._closed = state, isolation, isolation.closed
        self._claims, self._budgets, self.canary = claims, budgets, canary

    def read(self, gang: GangState, now: float) -> tuple[Job | None, list[PodState]]:
        """The job of a gang as it is now, and the pods that it has."""
        for pod in gang.pods.values():
            self._claims.check(pod)
            self._note_stranded(pod, now)
        pods, not_ready = members_of(gang, self._state.nodes, now)
        quarantined = self._isolation.reason(gang, now)
        if quarantined is not None:
            return self._held_in_quarantine(gang, pods, quarantined)
        self._closed.open_all(gang)
        refused = self._refusal(gang)
        if refused:
            pods = [pod for pod in pods if is_held(pod)]
            not_ready = refused if gang.pods else ""
        outside = bool(refused)
        set_status(gang, not_ready=not_ready, invalid="", outside_canary=outside)
        return self.with_members(gang, pods, now)

    def with_members(
        self, gang: GangState, pods: list[PodState], now: float
    ) -> tuple[Job | None, list[PodState]]:
        """The job of a gang with *pods*; of pods that cannot be read, what they hold.

        Without pods, it may still be a job.
        """
        refused, context = gang.status.outside_canary, self._state.context
        try:
            if pods and not pods[0].ours:
                return self._held(gang, pods)
            if pods:
                job = job_of(gang, pods, context)
                if refused:
                    both = (TOR_AFFINITY, FAULT_SCHEDULING)
                    declined = both if context.has_defaults else ()
                    job = replace(job, recovery=NO_RECOVERY, declined=declined)
                if now < gang.binding.protected_until:
                    return replace(job, preemptable=False), pods
                return self._budgets.heeded(job, pods), pods
            return None if refused else _empty_job(gang, context), []
        except BadPod as error:
            set_status(gang, not_ready=str(error), invalid=str(error))
            held = [pod for pod in pods if is_held(pod)]
            if held:
                return self._held(gang, held)
        return None, []

    def _held(
        self, gang: GangState, pods: list[PodState]
    ) -> tuple[Job, list[PodState]]:
        """The job of pods that hold what they hold, and nothing more."""
        node = self._state.nodes[place_of(pods[0])].node
        return held_job(gang, pods, node.product), pods

    def _held_in_quarantine(
        self, gang: GangState, pods: Iterable[PodState], why: str
    ) -> tuple[Job | None, list[PodState]]:
        """The same of a gang in quarantine."""
        reason = (
            f"{why} is quarantined for a while; "
            "hint: change or delete it, and report the trace in the scheduler's log"
        )
        set_status(gang, not_ready=reason, invalid="")
        held = [pod for pod in pods if is_held(pod) and pod.key not in self._closed]
        return self._held(gang, held) if held else (None, [])

    def _refusal(self, gang: GangState) -> str:
        """Why a gang of ours is not placed, if there is a canary without it."""
        others = any(not pod.ours for pod in gang.pods.values())
        if self.canary is None or others:
            return ""
        where = namespace_of(gang.name), queue_of(gang)
        return "" if self.canary.admits(*where) else self.canary.refusal(*where)

    def _note_stranded(self, pod: PodState, now: float) -> None:
        """A pod whose node is gone is stranded; a node may be heard of after it."""
        pod.is_stranded, state = False, self._state
        there = pod.node in state.node_objects or pod.node in state.unreadable_nodes
        if there or not (pod.holds and pod.ours):
            return
        settled = pod.created + NODE_HEARD_S
        pod.is_stranded = pod.node in state.lost_nodes or now >= settled
        if not pod.is_stranded:
            state.deltas.retry_at.setdefault(pod.job, settled)


def _empty_job(gang: GangState, context: JobContext) -> Job | None:
    """The job of a gang without pods that hold or want something, if it is one."""
    failed = failed_job(gang, has_defaults=context.has_defaults)
    return failed or podless_job(gang, context)
