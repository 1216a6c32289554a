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
    QUARANTINED = "quarantined"
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
    Reason.QUARANTINED: "quarantined because they refused pods",
    Reason.NOT_WELL: "sub-healthy, which the job avoids",
    Reason.NOT_SELECTED: "without the labels the job selects",
    Reason.TAINTED: "with a taint the job does not tolerate",
    Reason.REFUSED: "refused by a plugin",
    Reason.NO_SUPERPOD: "outside every SuperPoD",
    Reason.NO_TOPOLOGY: "under no known leaf switch",
    Reason.FAILED_BEFORE: "on which this job failed",
    Reason.OWN_POD: "with a pod of this job already",
    Reason.TOO_SMALL: "too small even when empty",
    Reason.FAULTY_CHIPS: "with too few healthy chips",
    Reason.NETWORK_FAULTY: "with too few chips whose network is healthy",
    Reason.TOO_FEW_CHIPS: "with too few free chips",
    Reason.NOT_WIRED_TOGETHER: "with enough free chips, but not wired together",
    Reason.TOO_FEW_RESOURCES: "with enough chips, but too few other resources",
    Reason.LEAF_CLOSED: "under a leaf that is closed to this job",
}


class Placed(Struct, frozen=True):
    """Every replica has its node and chips, and they are held."""

    job: Job
    placements: tuple[Placement, ...]
    warnings: tuple[str, ...] = ()


class Waiting(Struct, frozen=True):
    """Not now. *missing* replicas found no node; looked at again when chips change.

    ``because`` names the rule of the network that holds the job back, if one does;
    ``impossible`` why the job could not start if the cluster were empty, if it could
    not.
    """

    job: Job
    missing: int
    fitting: int
    reasons: Mapping[Reason, int]
    hint: str
    because: str = ""
    warnings: tuple[str, ...] = ()
    impossible: str = ""

    @property
    def message(self) -> str:
        """The job, its verdict, wanted and found, nodes by reason."""
        return f"job {self.job.name!r} waits: {'; '.join(self.parts)}"

    @property
    def parts(self) -> list[str]:
        """What is wanted and found, whether that is impossible, the rule, the nodes.

        The reason of most nodes comes first, equal ones in the order of the table.
        """
        causes = [f"{self.fitting} fitting"] * (self.fitting > 0)
        most_first = sorted(self.reasons.items(), key=lambda each: -each[1])
        causes += [f"{count} {reason.words}" for reason, count in most_first]
        parts = [f"needs {self.job.wanted}{self._short}"]
        rules = [*filter(None, (self.impossible, self.because))]
        parts += rules
        if causes or not rules:
            parts.append(f"nodes: {', '.join(causes) or 'none'}")
        return parts

    @property
    def _short(self) -> str:
        """How many pods have no node; nothing where a rule binds, not their number."""
        if self.impossible:
            return ""
        if self.because and self.fitting >= self.job.min_chip_pods:
            return ""
        one = self.missing == 1
        return f", {self.missing} pod{' has' if one else 's have'} no node"


class Invalid(Struct, frozen=True):
    """Never. The request contradicts the hardware; waiting cannot help."""

    job: Job
    problem: str
    hint: str
    warnings: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The job, its verdict, what is wrong."""
        return f"job {self.job.name!r} is invalid: {self.problem}"


Decision = Placed | Waiting | Invalid
