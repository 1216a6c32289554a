"""What becomes of a job: placed, waiting (not now) or invalid (never).

"No" is a value. Every node that cannot hold a replica has exactly one ``Reason``,
and the counts of a waiting job together with the fitting nodes account for every
node of the cluster.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from ringleaf.model.job import Job


class Reason(StrEnum):
    """Why one node cannot hold one replica; the first that applies, in this order."""

    OTHER_PRODUCT = "other-product"
    NOT_READY = "not-ready"
    NO_SUPERPOD = "no-superpod"
    TOO_SMALL = "too-small"
    FAULTY_CHIPS = "faulty-chips"
    NETWORK_FAULTY = "network-faulty"
    TOO_FEW_CHIPS = "too-few-chips"
    NOT_WIRED_TOGETHER = "not-wired-together"

    @property
    def words(self) -> str:
        """The reason as it reads after a count of nodes."""
        return REASON_WORDS[self]


REASON_WORDS: Mapping[Reason, str] = {
    Reason.OTHER_PRODUCT: "of another product",
    Reason.NOT_READY: "not ready",
    Reason.NO_SUPERPOD: "outside every SuperPoD",
    Reason.TOO_SMALL: "too small even when empty",
    Reason.FAULTY_CHIPS: "held back by faulty chips even when empty",
    Reason.NETWORK_FAULTY: "held back by network-faulty chips",
    Reason.TOO_FEW_CHIPS: "with too few free chips",
    Reason.NOT_WIRED_TOGETHER: "with enough free chips, but not wired together",
}


class Placement(Struct, frozen=True):
    """One replica: its node and its chips, in the order they are written down."""

    replica: int
    node: str
    chips: tuple[int, ...]


class Placed(Struct, frozen=True):
    """Every replica has its node and chips, and they are held."""

    job: Job
    placements: tuple[Placement, ...]
    warnings: tuple[str, ...] = ()


class Waiting(Struct, frozen=True):
    """Not now. *missing* replicas found no node; looked at again when chips change."""

    job: Job
    missing: int
    fitting: int
    reasons: Mapping[Reason, int]
    hint: str
    warnings: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """Who, verdict, wanted against found, causes."""
        causes = [f"{count} {reason.words}" for reason, count in self.reasons.items()]
        causes += [f"{self.fitting} fitting"] * (self.fitting > 0)
        return (
            f"job {self.job.name!r} waits: wants {self.job.wanted}, "
            f"{self.missing} short; nodes: {', '.join(causes) or 'none'}"
        )


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
