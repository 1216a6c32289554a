"""What an operator may set; names and defaults as in the scheduler's init-params."""

from enum import StrEnum

from msgspec import Struct


class JobRequests(StrEnum):
    """How strictly ``atlas-800-9000`` reads the multi-node rule (decision D1)."""

    STRICT = "strict"
    PER_POD = "per-pod"


class SwitchMode(StrEnum):
    """Which of the three switch affinities is in force."""

    SPINE_LEAF_1 = "1.0"
    SPINE_LEAF_2 = "2.0"
    SINGLE_LAYER = "single-layer"


class Settings(Struct, frozen=True):
    """The settings that decisions depend on.

    Args:
        job_requests: See ``JobRequests``.
        switch_mode: ``nslb-version``, unless ``tor-level`` says single-layer.
        shared_leaves: Shared leaves one foundation job may use (``shared-tor-num``).
        nodes_per_leaf: M; without it the size of the largest leaf.
        share_common_leaves: Common jobs may cross leaves of common jobs (D12).
        superpod_size: Nodes of a SuperPoD (``super-pod-size``).
        reserve_nodes: Nodes of a SuperPoD kept back for repairs.

    """

    job_requests: JobRequests = JobRequests.STRICT
    switch_mode: SwitchMode = SwitchMode.SPINE_LEAF_1
    shared_leaves: int = 2
    nodes_per_leaf: int | None = None
    share_common_leaves: bool = False
    superpod_size: int = 48
    reserve_nodes: int = 2
