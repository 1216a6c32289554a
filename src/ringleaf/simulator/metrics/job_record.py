"""What observers remember of a job while it is there."""

from ringleaf.simulator.metrics.wiring import chips_by_pod
from ringleaf.simulator.trial import JobSpec


class JobRecord:
    """A job from its arrival to its end.

    Args:
        spec: The job.
        number: How many arrived before it.
        counted: Whether it is among those that statistics of jobs are made of.

    """

    __slots__ = (
        "arrived",
        "at_risk",
        "away",
        "blame",
        "chips",
        "counted",
        "crossed",
        "ended_by",
        "held",
        "job",
        "leaves",
        "lost",
        "name",
        "number",
        "out_since",
        "places",
        "said_at",
        "spec",
        "started",
        "waits",
    )

    def __init__(
        self, spec: JobSpec, number: int, now: float, *, counted: bool
    ) -> None:
        self.spec = spec
        self.job = spec.job
        self.name = spec.job.name
        self.number = number
        self.counted = counted
        self.arrived = now
        self.started: float | None = None
        self.chips = sum(chips * pods for chips, pods in chips_by_pod(spec))
        """Chips of all its pods: n of the formulas."""
        self.held = 0
        """Chips that its pods hold now."""
        self.places: dict[int, tuple[int, int]] = {}
        """Replica -> node and chips, of pods that are placed."""
        self.away: set[int] = set()
        """Replicas that were placed, are gone and not back."""
        self.leaves: dict[int, int] = {}
        """Leaves it crosses -> nodes under each; none while it crosses none."""
        self.crossed = False
        """Whether it ever crossed leaves."""
        self.at_risk = False
        """Whether it ever crossed a leaf together with another."""
        self.blame = ""
        """What holds it back, while it waits."""
        self.said_at = 0
        """How many reports there were when the scheduler last said that."""
        self.waits = False
        self.ended_by = ""
        """Why pods of it end that were last asked to."""
        self.lost: dict[int, int] = {}
        """Replica -> its node, of pods that a fault took."""
        self.out_since: float | None = None
        """Since when it has not been whole because of a fault."""

    @property
    def nodes(self) -> list[int]:
        """Its nodes in the order of ranks, each once."""
        places = self.places
        return list(dict.fromkeys([places[n][0] for n in sorted(places)]))
