"""All pods of a job that must start together, or none.

A job may need some pods of every role besides; that counts only where those minimums
together are no more than the job's own. Pods that ask for nothing can start anywhere,
so they count as placed before they are.

Where we differ from Volcano: it spares the pods that must run together, always. Here
they may go when all of them go, because Ringleaf evicts a whole gang at once and never
leaves one behind that cannot run.

Source: Volcano ``pkg/scheduler/plugins/gang`` and ``api/job_info.go``.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar, Final

from ringleaf.framework.job_state import JobState
from ringleaf.framework.plugin import Plugin, Victim, Vote, occupied
from ringleaf.model.job import Job, Role

_NONE: Final[frozenset[int]] = frozenset()


class Gang(Plugin):
    """Votes by ``Job.min_available`` and ``Role.min_available``."""

    per_job: ClassVar[frozenset[str]] = frozenset({"Preemptable", "Reclaimable"})
    by_rank: ClassVar[frozenset[str]] = per_job

    def job_valid(self, job_state: JobState) -> str | None:
        """Why there are too few pods, of a role or in all."""
        job = job_state.job
        if job.min_available is None and not job.roles:
            return None
        needed = _needed(job)
        for role, own in _bound_roles(job_state):
            if len(own) < (role.min_available or 0):
                needs = role.min_available
                return f"role {role.name!r} has {len(own)} pods, needs {needs}"
        if needed > job.n_pods:
            return f"the job has {job.n_pods} pods, needs {needed}"
        return None

    def job_order(self, job_state: JobState) -> bool:
        """Jobs that lack pods before jobs that have enough."""
        return _has_enough(job_state, _NONE)

    def job_ready(self, job_state: JobState) -> bool:
        """As many pods have a place as must start together, in all and by role."""
        return _has_enough(job_state, _NONE)

    def job_pipelined(self, job_state: JobState) -> Vote:
        """The same with the pods that await a place."""
        enough = _has_enough(job_state, job_state.pipelined)
        return Vote.PERMIT if enough else Vote.REJECT

    def job_starving(self, job_state: JobState) -> bool:
        """Fewer pods have or await a place than must start together."""
        return occupied(job_state) < _needed(job_state.job)

    def preemptable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """Pods beyond those that must run together, and jobs that go as a whole."""
        del evictor
        named: dict[str, set[int]] = {}
        for victim in victims:
            named.setdefault(victim.job, set()).add(victim.replica)
        job_states = self.view.job_states
        spare = {job: _spare(job_states[job], own) for job, own in named.items()}
        chosen = []
        for victim in victims:
            if spare[victim.job]:
                spare[victim.job] -= 1
                chosen.append(victim)
        return chosen

    def reclaimable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """Pods beyond those that must run together, and jobs that go as a whole."""
        return self.preemptable(evictor, victims)


def _needed(job: Job) -> int:
    """Pods that must start together, also where there are not that many."""
    return job.n_pods if job.min_available is None else job.min_available


def _bound_roles(job_state: JobState) -> Iterable[tuple[Role, tuple[int, ...]]]:
    """The roles whose minimums count, with their pods."""
    job = job_state.job
    if _needed(job) < sum(role.min_available or 0 for role in job.roles):
        return ()
    return job_state.facts.role_ranks if job.roles else ()


def _has_enough(job_state: JobState, promised: AbstractSet[int]) -> bool:
    """Whether pods that have a place and those *promised* one are a whole gang."""
    if not (job_state.job.roles or not job_state.facts.total or promised):
        return job_state.ready >= job_state.facts.effective_min
    placed = job_state.placements.keys() - job_state.terminating
    counted = {*placed, *job_state.finished, *promised, *_undemanding(job_state)}
    return len(counted) >= job_state.facts.effective_min and all(
        len(counted.intersection(own)) >= (role.min_available or 0)
        for role, own in _bound_roles(job_state)
    )


def _undemanding(job_state: JobState) -> Iterator[int]:
    """Pods without a place that ask for nothing."""
    for role, own in job_state.facts.role_ranks:
        if not role.chips and not role.demand.resources:
            yield from (n for n in own if n not in job_state.placements)


def _spare(job_state: JobState, named: AbstractSet[int]) -> int:
    """How many of the pods *named* may go; all of them if no pod stays behind."""
    if job_state.placements.keys() - job_state.terminating <= named:
        return len(named)
    return job_state.surplus
