"""What holds chips in a cluster: a job, or a hold for one that has no pods there."""

from enum import StrEnum

from msgspec import Struct


class Purpose(StrEnum):
    """What a hold is for."""

    RESERVATION = "reserved"
    """A pending job starts there."""
    REPAIR = "repair"
    """Pods of a job were deleted because of faults, and return there."""
    MOVE = "kept free"
    """No job is moved there while a rearrangement is planned."""


class Hold(Struct, frozen=True, cache_hash=True):
    """What is kept from other jobs for *job*, as the owner of holdings.

    >>> str(Hold("train", Purpose.RESERVATION))
    'train (reserved)'
    """

    job: str
    purpose: Purpose

    def __str__(self) -> str:
        return f"{self.job} ({self.purpose})"


Owner = str | Hold
"""A job by its name, or a hold."""
