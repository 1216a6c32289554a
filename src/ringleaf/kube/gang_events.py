"""What the engine hears of a gang: the difference to what it was told last."""

from collections.abc import Iterable, Iterator
from itertools import takewhile

from msgspec.structs import replace

from ringleaf.engine.event import (
    Event,
    JobArrived,
    JobGone,
    PodFaultsReported,
    PodsEnding,
    PodsGone,
    PodsRefused,
    PodsRun,
)
from ringleaf.framework.job_state import with_pods
from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.gang_differences import must_be_reported_anew
from ringleaf.kube.gang_members import assign_numbers, is_held, lead_of
from ringleaf.kube.gang_state import GangState, ReportedJob, set_status
from ringleaf.kube.handover import Handover
from ringleaf.kube.isolation import Isolation
from ringleaf.kube.job_reader import JobReader
from ringleaf.kube.job_traits import traits_of
from ringleaf.kube.jobs import placement_of
from ringleaf.kube.moving import misread as moving_misread
from ringleaf.kube.pod_state import HEALTHY, PodPhase, PodState
from ringleaf.kube.quarantine import told
from ringleaf.kube.recovery import (
    ailments_of,
    fault_mode,
    misread,
    misread_of,
    words_of,
)
from ringleaf.kube.repair_checkpoints import RepairCheckpoints
from ringleaf.model.job import Job
from ringleaf.model.topology import quoted


class GangEvents:
    """Reports gangs to the engine.

    Args:
        state: What the stores of the cache share.
        reader: Makes the jobs of gangs.
        handover: What the previous leader wrote.
        checkpoints: What is remembered of repairs.
        isolation: Quarantines jobs that fail to be read.

    """

    def __init__(
        self,
        state: CacheState,
        reader: JobReader,
        handover: Handover,
        checkpoints: RepairCheckpoints,
        isolation: Isolation,
    ) -> None:
        self._state, self._reader, self._handover = state, reader, handover
        self._checkpoints = checkpoints
        self._isolation, self._closed = isolation, isolation.closed
        self.not_ready: dict[str, None] = {}
        """Gangs of which pods wait for something else than room."""

    def changes(self, gang: GangState, now: float) -> tuple[list[Event], list[Event]]:
        """What the engine hears of a gang: what ends, and then everything else.

        Of one that fails it hears as little as possible.
        """
        try:
            pod = self.found_bound(gang, now)
            if pod is not None:
                return [], self._arrival(gang, pod, now)
            found = list(self._difference(gang, now))
            ends = list(takewhile(_is_of_the_end, found))
            return ends, found[len(ends) :]
        except Exception as error:  # noqa: BLE001 - one bad job stops no other
            again = self._isolation.quarantine_job(gang, error)
            gone: list[Event] = [*self._withdraw(gang, told_anew=True)]
            if not again:
                ends, others = self.changes(gang, now)
                return [*gone, *ends], others
            self._closed.close_all(gang)
            set_status(gang, not_ready=f"it is quarantined: {told(error)}")
            return gone, []

    def found_bound(self, gang: GangState, now: float) -> PodState | None:
        """The pod of a gang that is one bound pod, well, and news to the engine.

        After a start nearly all gangs are, so what cannot be of them is not looked at.
        """
        is_new = gang.is_alone and gang.reported.job is None and len(gang.pods) == 1
        if not is_new or gang.podgroup is not None:
            return None
        if now < gang.binding.protected_until or gang.status.not_ready:
            return None
        if self._closed or self._reader.canary or self._isolation.quarantine.asides:
            return None
        (pod,) = gang.pods.values()
        is_bound = pod.assumed is None and pod.holds and pod.node in self._state.nodes
        is_well = pod.health is HEALTHY and not (pod.is_stranded or gang.is_ending(pod))
        return pod if is_bound and is_well else None

    def _arrival(self, gang: GangState, pod: PodState, now: float) -> list[Event]:
        """Like ``_difference``, of a gang as ``found_bound`` finds it."""
        job, pods = self._reader.with_members(gang, [pod], now)
        if job is None or gang.status.not_ready:
            return list(self._difference(gang, now))
        placement, reported = placement_of(pod, job), gang.reported
        reported.job, reported.placed = job, {placement.replica: placement}
        if pod.ours:
            self._state.deltas.runs[gang.name] = None
            if self._state.problems or words_of(pod):
                self._note_misread(gang, pods)
        return [JobArrived(job, (placement,), pod.started or None)]

    def _difference(self, gang: GangState, now: float) -> Iterator[Event]:
        """What the engine hears of a gang that has changed."""
        job, pods = self._reader.read(gang, now)
        reported = gang.reported
        self._drop_deletions(gang, job, pods)
        self._note_not_ready(gang)
        yield from _refused(gang)
        if reported.job is not None:
            yield from _pod_faults(gang, job or reported.job)
        if job is None:
            yield from self._withdraw(gang)
            yield from _forgotten(gang)
            if not gang.pods and gang.podgroup is None:
                del self._state.gangs[gang.name]
                self.not_ready.pop(gang.name, None)
            return
        known = {
            placement.replica: placement
            for placement in (placement_of(pod, job) for pod in pods if is_held(pod))
        }
        if reported.job is not None and must_be_reported_anew(reported, job, known):
            yield from self._withdraw(gang, told_anew=True)
            reported = gang.reported
        _note_complete(gang, len(pods), len(known), now)
        if gone := reported.placed.keys() - known.keys():
            ends_run = _has_run(gang)
            yield PodsGone(gang.name, tuple(sorted(gone)), ends_run=ends_run)
            reported.ending -= gone
            reported.running -= gone
        if job != reported.job:
            starts = [pod.started for pod in pods if pod.started]
            listed = tuple(known[n] for n in sorted(known))
            since = waiting_since(gang, job)
            yield JobArrived(job, listed, min(starts, default=None), since)
            for known_retries in self._handover.retries(gang, job):
                self._checkpoints.set_retries(gang, known_retries.record)
                yield known_retries
        reported.job, reported.placed = job, known
        self._note_misread(gang, pods)
        self._note_runs(gang)
        yield from _pod_faults(gang, job)
        ends = {pod.number for pod in pods if gang.is_ending(pod)}
        new = tuple(n for n in sorted(known) if n in ends and n not in reported.ending)
        if new:
            yield PodsEnding(gang.name, new)
            reported.ending |= {*new}

    def _withdraw(
        self, gang: GangState, *, told_anew: bool = False
    ) -> Iterator[JobGone]:
        """The job of a gang is gone, or is about to be *told_anew*."""
        reported = gang.reported
        if reported.job is not None:
            returns, ends_run = True, False
            if not told_anew:  # else nothing is read: the job may be one that fails
                returns, ends_run = _may_return(gang), _has_run(gang)
            reported.is_retained = returns
            yield JobGone(gang.name, returns, ends_run)
        gang.reported = ReportedJob(is_retained=reported.is_retained)
        gang.binding = replace(gang.binding, complete_since=0.0)

    def runs(self) -> Iterator[PodsRun]:
        """Which pods run, of jobs of ours; others are left alone."""
        deltas = self._state.deltas
        marked, deltas.runs = deltas.runs, {}
        for gang in filter(None, map(self._state.gangs.get, marked)):
            reported = gang.reported
            if reported.job is None or not reported.placed or not _is_own(gang):
                continue
            new = _begun(gang)
            if new or not reported.runs_known:
                since = None if reported.runs_known else last_bound(gang)
                yield PodsRun(gang.name, new, since)
                reported.running = with_pods(reported.running, new)
                reported.runs_known = True

    def _note_runs(self, gang: GangState) -> None:
        """Have it reported which pods of a job run that has placed pods."""
        reported = gang.reported
        reported.runs_known = reported.runs_known and bool(reported.placed)
        if reported.placed and not reported.runs_known:
            self._state.deltas.runs[gang.name] = None

    def _note_not_ready(self, gang: GangState) -> None:
        if gang.status.not_ready:
            self.not_ready[gang.name] = None
        else:
            self.not_ready.pop(gang.name, None)

    def _drop_deletions(
        self, gang: GangState, job: Job | None, pods: list[PodState]
    ) -> None:
        """Drop pending deletions of a job that no longer lets us delete its pods."""
        if job is None:
            lets = False
        elif gang.repair.record is not None and gang.repair.record.moved_for:
            lets = job.moving is not None
        else:
            lets = fault_mode(job, self._state.conf).scheduler_deletes
        if pods and not lets:
            self._checkpoints.drop_deletions(gang)

    def _note_misread(self, gang: GangState, pods: list[PodState]) -> None:
        """Note what is said of faults that means nothing, of jobs that are ours.

        Of what pods said, nothing is known while there are none.
        """
        if gang.status.outside_canary or (pods and not pods[0].ours):
            return
        problems = self._state.problems
        podgroup, lead = gang.podgroup, lead_of(pods) if pods else None
        if podgroup is not None:
            problems.note_podgroup(podgroup, misread(podgroup), "faults")
            traits = {} if lead is None else traits_of(lead, podgroup)
            problems.note_podgroup(podgroup, moving_misread(traits), "moves")
        if lead is None:
            return
        found = misread_of(lead, pods, podgroup)
        if podgroup is not None:
            problems.note_podgroup(podgroup, found, "faults of pods")
        else:
            message = f"Pod {quoted(lead.key)}: {found}" if found else ""
            own = lead.namespace, lead.name, lead.uid
            problems.note("Pod", *own, message, about="faults")


def _refused(gang: GangState) -> Iterator[PodsRefused]:
    """Which pods their nodes refused, and why; said while it is known where."""
    pods = [p for p in gang.pods.values() if p.refused and not p.refusal_reported]
    if not pods or gang.status.outside_canary or not pods[0].ours:
        return
    assign_numbers(gang, pods)
    for pod in pods:
        assert pod.number is not None
        pod.refusal_reported = True
        if not pod.deleting:
            gang.reported.is_retained = True
            yield PodsRefused(gang.name, (pod.number,), pod.refused)


def _pod_faults(gang: GangState, job: Job) -> Iterator[PodFaultsReported]:
    """What is wrong with pods themselves, if that is news."""
    pods, reported = gang.pods.values(), gang.reported
    if not reported.pod_faults and all(_is_well(pod) for pod in pods):
        return
    assign_numbers(
        gang,
        [p for p in pods if (p.phase is PodPhase.FAILED and p.node) or p.is_stranded],
    )
    # The previous leader has counted the pods that it was about to delete.
    left = (pod for pod in pods if not gang.was_deleting(pod))
    found = ailments_of(left, job.recovery)
    if found != reported.pod_faults:
        reported.pod_faults = found
        yield PodFaultsReported(gang.name, found)


def _forgotten(gang: GangState) -> Iterator[JobGone]:
    """A job that is not there, and of which the engine knows something, is over."""
    if gang.reported.is_retained and not _may_return(gang):
        gang.reported.is_retained = False
        yield JobGone(gang.name, ends_run=False)


def _note_complete(gang: GangState, n_pods: int, n_held: int, now: float) -> None:
    """Note since when the engine knows of pods that wait."""
    since = gang.binding.complete_since
    if n_pods > n_held:
        since = since or now
    elif not n_pods:
        since = 0.0
    if since != gang.binding.complete_since:
        gang.binding = replace(gang.binding, complete_since=since)


def _is_of_the_end(event: Event) -> bool:
    """Whether something is over, or is about to be and why."""
    return isinstance(event, JobGone | PodsGone | PodFaultsReported | PodsRefused)


def _is_own(gang: GangState) -> bool:
    """Whether it is on us to see that its pods run."""
    pods, status = gang.pods.values(), gang.status
    return not (status.outside_canary or status.invalid) and all(p.ours for p in pods)


def _begun(gang: GangState) -> tuple[int, ...]:
    """The pods of a gang that run, and of which the engine does not know it."""
    reported = gang.reported
    numbers = [
        pod.number
        for pod in gang.pods.values()
        if pod.runs and pod.assumed is None and pod.number in reported.placed
    ]
    running = reported.running
    return tuple(sorted(n for n in numbers if n is not None and n not in running))


def last_bound(gang: GangState) -> float | None:
    """When the last pod that does not run yet was bound; None if unknown."""
    late = (p.bound_at for p in gang.pods.values() if p.holds and not p.runs)
    return max(late, default=0.0) or None


def _is_well(pod: PodState) -> bool:
    is_well = pod.health is HEALTHY and pod.phase is not PodPhase.FAILED
    return is_well and not pod.is_stranded


def _has_run(gang: GangState) -> bool:
    """Whether pods of a gang run, or ran until now."""
    pods, running = gang.pods.values(), gang.reported.running
    return bool(running) or any(p.runs or (p.has_ended and p.node) for p in pods)


def _may_return(gang: GangState) -> bool:
    """Whether a job without pods is expected to have some again."""
    if gang.podgroup is None:
        return False
    if gang.pods:
        return not all(pod.succeeded for pod in gang.pods.values())
    return gang.podgroup.status.phase != "Completed"


def waiting_since(gang: GangState, job: Job) -> float | None:
    """When the last pod was made of a job that waits; a restart changes nothing."""
    pods = [pod for pod in gang.pods.values() if not pod.has_ended]
    if any(map(is_held, pods)):
        return None
    return max((pod.created for pod in pods), default=job.created) or None


def everything_of(gangs: Iterable[GangState]) -> Iterator[Event]:
    """All jobs that were reported, as an engine hears of them that knows nothing."""
    arrivals, others = list[Event](), list[Event]()
    for gang in gangs:
        reported = gang.reported
        if reported.job is None:
            continue
        starts = [p.started for p in gang.pods.values() if p.holds and p.started]
        listed = tuple(reported.placed[n] for n in sorted(reported.placed))
        since = waiting_since(gang, reported.job)
        start = min(starts, default=None)
        arrivals.append(JobArrived(reported.job, listed, start, since))
        if reported.pod_faults:
            others.append(PodFaultsReported(gang.name, reported.pod_faults))
        if reported.ending:
            others.append(PodsEnding(gang.name, tuple(sorted(reported.ending))))
        if reported.runs_known:
            ran = tuple(sorted(reported.running))
            others.append(PodsRun(gang.name, ran, last_bound(gang)))
    # Jobs that arrive one after the other cost less than one by one.
    yield from arrivals
    yield from others
