"""What an operator may set; names and defaults as in the scheduler's init-params."""

from enum import StrEnum

from msgspec import Struct


class JobRequests(StrEnum):
    """How strictly ``atlas-800-9000`` reads the multi-node rule (decision D1)."""

    STRICT = "strict"
    PER_POD = "per-pod"


class Settings(Struct, frozen=True):
    """The settings that decisions depend on."""

    job_requests: JobRequests = JobRequests.STRICT
    reserve_nodes: int = 2
