"""Why a job is pending for another reason than nodes: closed values, with figures.

Words are made here and nowhere else; no other module looks into them.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.model.demand import amount_words
from ringleaf.model.worded import Worded


class PendingCause(Worded):
    """What keeps a job from being tried, or from starting."""

    NO_QUEUE = "no-queue", "queue {queue!r} does not exist"
    QUEUE_CLOSED = "queue-closed", "queue {queue!r} is closed"
    NO_ROOM = "no-room", "queue {queue!r} has no room"
    """It needs more than its queue may use now."""
    SHARE_USED = "share-used", "queue {queue!r} uses its share"
    NOT_ADMITTED = "not-admitted", "not admitted: queue {queue!r} has no room"
    """It needs more than its queue may admit."""
    CLUSTER_FULL = (
        "cluster-full",
        "not admitted: running and admitted jobs fill the cluster",
    )
    IMPOSSIBLE = "impossible", "{detail}"
    """It could not start if the cluster were empty."""
    BACKOFF = "backoff", "its pods did not run, it is retried in {retry_s} s"
    BEHIND = "behind", "other jobs of queue {queue!r} are ahead of it"
    REFUSED = "refused", "{detail}"
    """A plugin refuses it."""


NOT_ADMITTED: Final = frozenset({PendingCause.NOT_ADMITTED, PendingCause.CLUSTER_FULL})
"""Causes after which admitted jobs must end first."""

PASSING: Final = NOT_ADMITTED | {
    PendingCause.NO_ROOM,
    PendingCause.SHARE_USED,
    PendingCause.BEHIND,
}
"""Causes that end as other jobs end."""


class Shortage(Struct, frozen=True):
    """A resource of which a queue, or the cluster, has too little, in thousandths.

    Args:
        resource: Its name, as people read it.
        used: What its jobs use.
        kept: What is kept for others of its jobs: admitted, reserved or repaired.
        limit: What the queue may use, or the cluster has.
        wanted: What the job needs.

    """

    resource: str
    used: int
    kept: int
    limit: int
    wanted: int

    @property
    def words(self) -> str:
        """The figures.

        >>> Shortage("chips", 96_000, 0, 128_000, 64_000).words
        '96 of 128 chips used, job wants 64'
        >>> Shortage("cpu", 500, 1000, 2000, 4000).words
        '500m of 2 cpu used, 1 kept for other jobs, job wants 4'
        """
        more = self.kept > 0  # admitted jobs may use less than they could spare
        kept = f", {amount_words(self.kept)} kept for other jobs" * more
        return (
            f"{amount_words(self.used)} of {amount_words(self.limit)} {self.resource} "
            f"used{kept}, job wants {amount_words(self.wanted)}"
        )


class QueueReason(Struct, frozen=True):
    """Why a job is pending, whatever the nodes have free.

    Args:
        cause: What it is.
        queue: Its queue.
        shortage: What the queue has too little of, as far as that is known.
        detail: What a plugin said.
        retry_s: Seconds after which the job is tried again.

    """

    cause: PendingCause
    queue: str = ""
    shortage: Shortage | None = None
    detail: str = ""
    retry_s: int = 0

    @property
    def words(self) -> str:
        """The reason for people.

        >>> QueueReason(PendingCause.NO_ROOM, "a").words
        "queue 'a' has no room"
        >>> few = Shortage("chips", 96_000, 0, 128_000, 64_000)
        >>> QueueReason(PendingCause.NO_ROOM, "a", few).words
        "queue 'a' has no room: 96 of 128 chips used, job wants 64"
        """
        said = self.cause.words.format(
            queue=self.queue, detail=self.detail, retry_s=self.retry_s
        )
        return said if self.shortage is None else f"{said}: {self.shortage.words}"

    def is_like(self, other: "QueueReason | None") -> bool:
        """Whether both say the same, but for a shortage: then it is no news."""
        return other is not None and self.plain == other.plain

    @property
    def plain(self) -> "QueueReason":
        """The reason without the figures of its shortage."""
        return self if self.shortage is None else replace(self, shortage=None)
