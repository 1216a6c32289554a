"""What becomes of a job: placed, waiting (not now) or invalid (never).

"No" is a value. Every node that cannot hold a replica has exactly one ``Reason``,
and the counts of a waiting job together with the fitting nodes account for every
node of the cluster.
"""

from collections.abc import Mapping

from msgspec import Struct

from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.model.worded import Worded


class Reason(Worded):
    """Why one node cannot hold one replica; the first that applies, in this order.

    The words read after a count of nodes.
    """

    OTHER_PRODUCT = "other-product", "of another product"
    NOT_READY = "not-ready", "not ready"
    CORDONED = "cordoned", "cordoned"
    QUARANTINED = "quarantined", "quarantined because they refused pods"
    NOT_WELL = "not-well", "sub-healthy, which the job avoids"
    NOT_SELECTED = "not-selected", "without the labels the job selects"
    TAINTED = "tainted", "with a taint the job does not tolerate"
    REFUSED = "refused", "refused by a plugin"
    NO_SUPERPOD = "no-superpod", "outside every SuperPoD"
    NO_TOPOLOGY = "no-topology", "under no known leaf switch"
    FAILED_BEFORE = "failed-before", "on which this job failed"
    OWN_POD = "own-pod", "with a pod of this job already"
    TOO_SMALL = "too-small", "too small even when empty"
    FAULTY_CHIPS = "faulty-chips", "with too few healthy chips"
    NETWORK_FAULTY = "network-faulty", "with too few chips whose network is healthy"
    TOO_FEW_CHIPS = "too-few-chips", "with too few free chips"
    NOT_WIRED_TOGETHER = (
        "not-wired-together",
        "with enough free chips, but not wired together",
    )
    TOO_FEW_RESOURCES = (
        "too-few-resources",
        "with enough chips, but too few other resources",
    )
    LEAF_CLOSED = "leaf-closed", "under a leaf that is closed to this job"


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
