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

from ringleaf.framework.plugin import Plugin, Victim, Vote, occupied
from ringleaf.framework.standing import Standing
from ringleaf.model.job import Job, Role

_NONE: Final[frozenset[int]] = frozenset()


class Gang(Plugin):
    """Votes by ``Job.least`` and ``Role.least``."""

    per_job: ClassVar[frozenset[str]] = frozenset({"Preemptable", "Reclaimable"})
    by_rank: ClassVar[frozenset[str]] = per_job

    def job_valid(self, standing: Standing) -> str | None:
        """Why there are too few pods, of a role or in all."""
        job, needed = standing.job, _needed(standing.job)
        for role, own in _bound_roles(standing):
            if len(own) < (role.least or 0):
                return f"role {role.name!r} has {len(own)} pods, needs {role.least}"
        if needed > job.n_pods:
            return f"the job has {job.n_pods} pods, needs {needed}"
        return None

    def job_order(self, standing: Standing) -> bool:
        """Jobs that lack pods before jobs that have enough."""
        return self.job_ready(standing)

    def job_ready(self, standing: Standing) -> bool:
        """As many pods have a place as must start together, in all and by role."""
        return _has_enough(standing, _NONE)

    def job_pipelined(self, standing: Standing) -> Vote:
        """The same with the pods that await a place."""
        enough = _has_enough(standing, standing.promised)
        return Vote.PERMIT if enough else Vote.REJECT

    def job_starving(self, standing: Standing) -> bool:
        """Fewer pods have or await a place than must start together."""
        return occupied(standing) < _needed(standing.job)

    def preemptable(self, evictor: Standing, victims: Sequence[Victim]) -> list[Victim]:
        """Pods beyond those that must run together, and jobs that go as a whole."""
        del evictor
        named: dict[str, set[int]] = {}
        for victim in victims:
            named.setdefault(victim.job, set()).add(victim.replica)
        standings = self.view.standings
        spare = {job: _spare(standings[job], own) for job, own in named.items()}
        chosen = []
        for victim in victims:
            if spare[victim.job]:
                spare[victim.job] -= 1
                chosen.append(victim)
        return chosen

    def reclaimable(self, evictor: Standing, victims: Sequence[Victim]) -> list[Victim]:
        """Pods beyond those that must run together, and jobs that go as a whole."""
        return self.preemptable(evictor, victims)


def _needed(job: Job) -> int:
    """Pods that must start together, also where there are not that many."""
    return job.n_pods if job.least is None else job.least


def _bound_roles(standing: Standing) -> Iterable[tuple[Role, tuple[int, ...]]]:
    """The roles whose minimums count, with their pods."""
    job = standing.job
    if _needed(job) < sum(role.least or 0 for role in job.roles):
        return ()
    return standing.crew if job.roles else ()


def _has_enough(standing: Standing, promised: AbstractSet[int]) -> bool:
    """Whether pods that have a place and those *promised* one are a whole gang."""
    if not (standing.job.roles or standing.asks_nothing or promised):
        return standing.ready >= standing.min_pods
    placed = standing.placements.keys() - standing.terminating
    counted = {*placed, *standing.finished, *promised, *_undemanding(standing)}
    return len(counted) >= standing.min_pods and all(
        len(counted.intersection(own)) >= (role.least or 0)
        for role, own in _bound_roles(standing)
    )


def _undemanding(standing: Standing) -> Iterator[int]:
    """Pods without a place that ask for nothing."""
    for role, own in standing.crew:
        if not role.chips and not role.demand.resources:
            yield from (n for n in own if n not in standing.placements)


def _spare(standing: Standing, named: AbstractSet[int]) -> int:
    """How many of the pods *named* may go; all of them if nobody stays behind."""
    if standing.placements.keys() - standing.terminating <= named:
        return len(named)
    return standing.surplus
