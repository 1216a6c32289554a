"""Where pods were sent, until the API server confirms it, and pods asked to end.

This is what the cache knows better than the API server; it is lost in a restart, and
then the API server says where the pods are.
"""

from collections.abc import Container, Iterable
from typing import Final

from msgspec.structs import replace

from ringleaf.framework.job_state import Phase
from ringleaf.framework.state import SchedulerState
from ringleaf.kube.backoff import backoff_s
from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.gang_members import named_chips
from ringleaf.kube.gang_state import BindingState, GangState
from ringleaf.kube.node_pods import NodePods
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.repair_checkpoints import RepairCheckpoints
from ringleaf.model.placement import Placement

FIRST_BACKOFF_S: Final = 0.5
MOST_BACKOFF_S: Final = 30.0
PROTECTED_S: Final = 60.0
"""How long pods are left alone that could not be evicted."""


class AssumedPods:
    """Carries over into the cache what becomes of instructions.

    Args:
        state: What the stores of the cache share.
        nodes: The pods of every node.

    """

    def __init__(self, state: CacheState, nodes: NodePods) -> None:
        self._state, self._nodes = state, nodes

    def assume(self, job: str, placements: Iterable[Placement]) -> list[PodState]:
        """Pods are sent to their places; they hold them from now on."""
        gang = self._state.gangs[job]
        pods = gang.by_number()
        self._state.deltas.runs[job] = None
        found = []
        for placement in placements:
            pod = pods[placement.replica]
            pod.assumed = placement
            gang.reported.placed[placement.replica] = placement
            self._nodes.add(pod, placement.node)
            found.append(pod)
        return found

    def bound(self, uid: str) -> None:
        """The API server has bound a pod as it was told."""
        pod = self._state.pods.get(uid)
        if pod is not None:
            gang = self._state.gangs[pod.job]
            if gang.binding.n_failed:
                gang.binding = replace(gang.binding, n_failed=0)

    def forget(self, uid: str, now: float, why: str = "") -> None:
        """A pod was not bound, and why; it is tried again a little later."""
        pod = self._state.pods.get(uid)
        if pod is None or pod.assumed is None:
            return
        gang, deltas = self._state.gangs[pod.job], self._state.deltas
        held = named_chips(pod)
        self._nodes.remove(pod, pod.assumed.node)
        pod.assumed = None
        self._nodes.give_up(pod, held, named_chips(pod))
        if pod.holds:
            self._nodes.add(pod, pod.node)
        times = gang.binding.n_failed
        if times == 0 or now >= deltas.retry_at.get(gang.name, 0.0):
            times += 1
            gang.binding = replace(gang.binding, n_failed=times)
        pause = backoff_s(FIRST_BACKOFF_S, times - 1, MOST_BACKOFF_S)
        pod.not_before, pod.bind_error = now + pause, why
        deltas.retry_at[gang.name] = pod.not_before
        deltas.gangs[gang.name] = None

    def evict(self, job: str, replicas: Iterable[int]) -> list[PodState]:
        """Pods are asked to end for others; until they do, they count as ending."""
        gang = self._state.gangs.get(job)
        if gang is None:
            return []
        numbered = gang.by_number()
        pods = {n: numbered[n] for n in replicas if n in numbered}
        gang.reported.ending |= pods.keys()
        before = gang.binding.evicting.intersection(gang.pods)
        evicting = before | {pod.uid for pod in pods.values()}
        gang.binding = replace(gang.binding, evicting=evicting)
        return list(pods.values())

    def not_evicted(self, job: str, uid: str, now: float) -> None:
        """A pod of *job* could not be asked to end: the job is reported again as it is.

        For a while none of its pods is asked again.
        """
        gang = self._state.gangs.get(job)
        if gang is not None:
            until = now + PROTECTED_S
            evicting = gang.binding.evicting - {uid}
            gang.binding = replace(
                gang.binding, evicting=evicting, protected_until=until
            )
            self._state.deltas.retry_at.setdefault(job, until)
            self._state.report_again(job)

    def admit(self, job: str) -> None:
        """A job is admitted."""
        gang = self._state.gangs.get(job)
        if gang is not None:
            gang.reported.is_admitted = True

    def forget_all(
        self,
        engine: SchedulerState,
        repairs: Container[str],
        checkpoints: RepairCheckpoints,
    ) -> None:
        """Others lead from now on: know what one knows that has never led.

        Of pods that were sent and not confirmed, the API server says where they are.
        The engine, which knows of open *repairs*, hears anew of every job of which it
        has decided something: that may never be done.
        """
        sent = set[str]()
        for pod in self._state.pods.values():
            pod.written_reason = ""
            if pod.assumed is not None:
                sent.add(pod.job)
                self._nodes.remove(pod, pod.assumed.node)
                pod.assumed = None
                if pod.holds:
                    self._nodes.add(pod, pod.node)
        for gang in self._state.gangs.values():
            is_open = gang.name in repairs
            in_doubt = is_open or gang.name in sent or bool(gang.binding.evicting)
            _forget_decisions(gang)
            checkpoints.forget(gang, is_open=is_open)
            if in_doubt or not _is_settled(gang, engine):
                gang.reported.is_stale = gang.reported.job is not None
                self._state.deltas.gangs[gang.name] = None


def _forget_decisions(gang: GangState) -> None:
    """Forget what was written about a gang, and what was sent for it."""
    status, binding = gang.status, gang.binding
    gang.status = replace(status, written_reason="", pending_reason="")
    gang.binding = BindingState(
        complete_since=binding.complete_since, was_complete=binding.was_complete
    )


def _is_settled(gang: GangState, engine: SchedulerState) -> bool:
    """Whether the engine knows of a gang what its objects say, and no more."""
    job_state, reported = engine.job_states.get(gang.name), gang.reported
    if job_state is None or reported.job is None:
        return job_state is None and reported.job is None
    return (
        job_state.phase is Phase.RUNNING
        and job_state.placements.keys() == reported.placed.keys()
        and job_state.terminating == reported.ending
        and len(reported.placed) == len(gang.pods)
    )
