"""What a job says of being moved: stopped, and started again elsewhere at once."""

from msgspec import Struct


class Moving(Struct, frozen=True):
    """What is lost when a job that allows it is moved.

    Args:
        restart_s: Seconds from the start of its pods until it works on.
        checkpointed_at: When it last saved its work, if it tells.
        checkpoint_s: How often it saves its work, if it tells; 0 is all the time.

    """

    restart_s: float = 0.0
    checkpointed_at: float | None = None
    checkpoint_s: float | None = None

    def lost_s(self, started: float, now: float) -> float:
        """Seconds of work since the last checkpoint of a job that runs since *started*.

        A job that tells nothing of its checkpoints has saved nothing since its start.

        >>> Moving().lost_s(100, 5000)
        4900
        >>> Moving(checkpointed_at=4700.0).lost_s(100, 5000)
        300.0
        >>> Moving(checkpointed_at=50.0).lost_s(100, 5000)  # before it was moved last
        4900
        >>> [Moving(checkpoint_s=every).lost_s(100, 5000) for every in (1800.0, 0.0)]
        [1300.0, 0.0]
        """
        ran = max(0, now - started)
        found = ran
        if self.checkpoint_s is not None:
            found = ran % self.checkpoint_s if self.checkpoint_s else 0.0
        if self.checkpointed_at is not None:
            found = min(found, max(0.0, now - self.checkpointed_at))
        return found
