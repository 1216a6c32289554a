"""What observers remember of a job while it is there."""

from typing import Self

from msgspec import Struct, field

from ringleaf.model.job import Job
from ringleaf.simulator.metrics.wiring import chips_by_pod
from ringleaf.simulator.trial import JobSpec


class JobRecord(Struct, kw_only=True, eq=False):
    """A job from its arrival to its end.

    Args:
        spec: The job.
        number: How many arrived before it.
        counted: Whether it is among those that statistics of jobs are made of.
        arrived: When it arrived.
        chips: Chips of all its pods: n of the formulas.
        started: When its pods were first placed.
        held: Chips that its pods hold now.
        places: Replica -> node and chips, of pods that are placed.
        away: Replicas that were placed, are gone and not back.
        leaves: Leaves it crosses -> nodes under each; none while it crosses none.
        crossed: Whether it ever crossed leaves.
        at_risk: Whether it ever crossed a leaf together with another.
        blame: What holds it back, while it waits.
        report_number: How many reports there were when the scheduler last said that.
        waits: Whether it is pending.
        ended_by: Why pods of it end that were last asked to.
        lost: Replica -> its node, of pods that a fault took.
        out_since: Since when it has not been whole because of a fault.

    """

    spec: JobSpec
    number: int
    counted: bool
    arrived: float
    chips: int
    started: float | None = None
    held: int = 0
    places: dict[int, tuple[int, int]] = field(default_factory=dict)
    away: set[int] = field(default_factory=set)
    leaves: dict[int, int] = field(default_factory=dict)
    crossed: bool = False
    at_risk: bool = False
    blame: str = ""
    report_number: int = 0
    waits: bool = False
    ended_by: str = ""
    lost: dict[int, int] = field(default_factory=dict)
    out_since: float | None = None

    @classmethod
    def of(cls, spec: JobSpec, number: int, now: float, *, counted: bool) -> Self:
        """The record of a job that arrives."""
        chips = sum(chips * pods for chips, pods in chips_by_pod(spec))
        return cls(spec=spec, number=number, counted=counted, arrived=now, chips=chips)

    @property
    def job(self) -> Job:
        """What the scheduler knows of it."""
        return self.spec.job

    @property
    def name(self) -> str:
        """Its name."""
        return self.spec.job.name

    @property
    def nodes(self) -> list[int]:
        """Its nodes in the order of ranks, each once."""
        places = self.places
        return list(dict.fromkeys([places[n][0] for n in sorted(places)]))
