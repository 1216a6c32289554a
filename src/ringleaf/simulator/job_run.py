"""A job while it is simulated, and what has become of all jobs so far."""

from collections.abc import Mapping
from math import floor, isinf

from msgspec import Struct

from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.simulator.trial import JobSpec

Pods = Mapping[int, Placement]


def leaves_of(pods: Pods, leaf_of: Mapping[str, str]) -> set[str]:
    """The leaves under which *pods* stand."""
    return {leaf_of[p.node] for p in pods.values() if p.node in leaf_of}


class RunProgress(Struct):
    """What has become of the jobs so far; chips times seconds are of their work."""

    arrived: int = 0
    over: int = 0
    refused: int = 0
    """Jobs of which the scheduler said that they can never be placed."""
    working: int = 0
    stops: int = 0
    """How often a job stopped working before its end."""
    done_chip_s: float = 0.0
    """Of jobs that are over."""
    lost_chip_s: float = 0.0
    faults: int = 0
    """How often something broke that was well."""

    @property
    def waiting(self) -> int:
        """Jobs that are there and do not work."""
        return self.arrived - self.over - self.refused - self.working


class JobRun:
    """A job from its arrival to its end."""

    __slots__ = (
        "done_s",
        "end",
        "ending",
        "held",
        "in_vain",
        "rigid",
        "saved_s",
        "sick",
        "since",
        "slow",
        "spec",
    )

    def __init__(self, spec: JobSpec) -> None:
        self.spec = spec
        self.held: dict[int, Placement] = {}
        """Its pods that hold something."""
        self.ending: dict[int, int] = {}
        """Pods that are asked to end -> what is planned for them."""
        self.sick: set[int] = set()
        """Pods on what is broken."""
        self.rigid = spec.job.min_available is None
        """Whether it works with all its pods or not at all."""
        self.done_s = 0.0
        """How much it has worked, when it last began or stopped to."""
        self.saved_s = 0.0
        """How much of that it had saved, when it last stopped."""
        self.in_vain = 0
        """How often it stopped since it last saved work."""
        self.since: float | None = None
        """When it began to work, as fast as it does; None while it does not."""
        self.slow = 1.0
        """How many seconds a second of its work takes."""
        self.end = 0
        """What is planned for its end, while it works."""

    @property
    def is_whole(self) -> bool:
        """Whether all required pods are placed on working nodes and chips."""
        job, held = self.spec.job, self.held
        if self.rigid:
            return len(held) == job.n_pods and not self.ending and not self.sick
        well = held.keys() - self.ending.keys() - self.sick
        if len(well) < job.effective_min:
            return False
        return all(
            sum(n in well for n in own) >= job.min_available_of(role)
            for role, own in job.role_ranks
        )

    def worked(self, now: float) -> float:
        """How much it has worked until *now*."""
        if self.since is None:
            return self.done_s
        return min(self.done_s + (now - self.since) / self.slow, self.spec.runs_s)


def chips_of_job(job: Job) -> int:
    """Chips of all pods of *job*."""
    if not job.roles:
        return job.chips * job.replicas
    return sum(role.chips * role.replicas for role in job.roles)


def saved(worked_s: float, checkpoint_s: float) -> float:
    """How much of its work a job has saved that saves it so often.

    >>> [saved(4000.0, every) for every in (1800.0, 0.0, float("inf"))]
    [3600.0, 4000.0, 0.0]
    """
    if not checkpoint_s:
        return worked_s
    if isinf(checkpoint_s):
        return 0.0
    return min(worked_s, checkpoint_s * floor(worked_s / checkpoint_s + 1e-9))
