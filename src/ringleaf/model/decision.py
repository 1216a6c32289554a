"""What becomes of a job: placed, waiting (not now) or invalid (never).

"No" is a value. Every node that cannot hold a replica has exactly one ``Reason``,
and the counts of a waiting job together with the fitting nodes account for every
node of the cluster.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from ringleaf.model.job import Job
from ringleaf.model.placement import Placement


class Reason(StrEnum):
    """Why one node cannot hold one replica; the first that applies, in this order."""

    OTHER_PRODUCT = "other-product"
    NOT_READY = "not-ready"
    CORDONED = "cordoned"
    SET_ASIDE = "set-aside"
    NOT_WELL = "not-well"
    NOT_SELECTED = "not-selected"
    TAINTED = "tainted"
    REFUSED = "refused"
    NO_SUPERPOD = "no-superpod"
    NO_TOPOLOGY = "no-topology"
    FAILED_BEFORE = "failed-before"
    OWN_POD = "own-pod"
    TOO_SMALL = "too-small"
    FAULTY_CHIPS = "faulty-chips"
    NETWORK_FAULTY = "network-faulty"
    TOO_FEW_CHIPS = "too-few-chips"
    NOT_WIRED_TOGETHER = "not-wired-together"
    TOO_FEW_RESOURCES = "too-few-resources"
    LEAF_CLOSED = "leaf-closed"

    @property
    def words(self) -> str:
        """The reason as it reads after a count of nodes."""
        return REASON_WORDS[self]


REASON_WORDS: Mapping[Reason, str] = {
    Reason.OTHER_PRODUCT: "of another product",
    Reason.NOT_READY: "not ready",
    Reason.CORDONED: "cordoned",
    Reason.SET_ASIDE: "set aside because they refused pods",
    Reason.NOT_WELL: "that do not work well, which the job avoids",
    Reason.NOT_SELECTED: "without the labels the job selects",
    Reason.TAINTED: "with a taint the job does not tolerate",
    Reason.REFUSED: "refused by a plugin",
    Reason.NO_SUPERPOD: "outside every SuperPoD",
    Reason.NO_TOPOLOGY: "under no known leaf switch",
    Reason.FAILED_BEFORE: "on which this job failed",
    Reason.OWN_POD: "with a pod of this job already",
    Reason.TOO_SMALL: "too small even when empty",
    Reason.FAULTY_CHIPS: "held back by faulty chips even when empty",
    Reason.NETWORK_FAULTY: "held back by network-faulty chips",
    Reason.TOO_FEW_CHIPS: "with too few free chips",
    Reason.NOT_WIRED_TOGETHER: "with enough free chips, but not wired together",
    Reason.TOO_FEW_RESOURCES: "with the chips, but too few other resources",
    Reason.LEAF_CLOSED: "under a leaf that is closed to this job",
}


class Placed(Struct, frozen=True):
    """Every replica has its node and chips, and they are held."""

    job: Job
    placements: tuple[Placement, ...]
    warnings: tuple[str, ...] = ()


class Waiting(Struct, frozen=True):
    """Not now. *missing* replicas found no node; looked at again when chips change.

    ``because`` names the rule of the network that holds the job back, if one does.
    """

    job: Job
    missing: int
    fitting: int
    reasons: Mapping[Reason, int]
    hint: str
    because: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """Who, verdict, wanted against found, causes."""
        causes = [f"{count} {reason.words}" for reason, count in self.reasons.items()]
        causes += [f"{self.fitting} fitting"] * (self.fitting > 0)
        because = [self.because] if self.because else []
        nodes = (
            [f"nodes: {', '.join(causes) or 'none'}"] if causes or not because else []
        )
        found = "; ".join([f"{self.missing} short", *nodes, *because])
        return f"job {self.job.name!r} waits: wants {self.job.wanted}, {found}"


class Invalid(Struct, frozen=True):
    """Never. The request contradicts the hardware; waiting cannot help."""

    job: Job
    problem: str
    hint: str
    warnings: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """Who, verdict, what is wrong."""
        return f"job {self.job.name!r} is invalid: {self.problem}"


Decision = Placed | Waiting | Invalid
