"""What an operator may set; names and defaults as in the scheduler's init-params."""

from enum import StrEnum

from msgspec import Struct

from ringleaf.model.fault import FaultMode


class JobRequests(StrEnum):
    """How strictly ``atlas-800-9000`` reads the multi-node rule (decision D1)."""

    STRICT = "strict"
    PER_POD = "per-pod"


class LeafChoice(StrEnum):
    """Which leaves a job takes in 1.0 (decision D36).

    In 2.0 it says whether a job of as many pods as a leaf has nodes may go under a leaf
    that other jobs cross.
    """

    COMPACT = "compact"
    """Complete leaves of any size, and what is left where it fits most tightly."""
    GUIDE = "guide"
    """The vendor's choice, with one size for all leaves; in 2.0 such a job may not."""


class SwitchMode(StrEnum):
    """Which of the three switch affinities is in force."""

    SPINE_LEAF_1 = "1.0"
    SPINE_LEAF_2 = "2.0"
    SINGLE_LAYER = "single-layer"


class DefaultAffinity(StrEnum):
    """What a job of several nodes without ``tor-affinity`` counts as (D38)."""

    NONE = "none"
    NORMAL = "normal-schema"
    LARGE_MODEL = "large-model-schema"


class RepairSettings(Struct, frozen=True):
    """How faults are dealt with, in seconds; names as in the init-params.

    Args:
        grace_s: How long pods may take to end by themselves (``grace-over-time``).
        block_after_s: How long the faulty pods of a logical SuperPoD may find no place
            before all of it is deleted (``superpod-escalation-seconds``).
        job_after_s: How long before all of the job is (``job-escalation-seconds``).
        hold_s: How long its places are held for a job whose pods were deleted.
        brake_percent: Of the pods of the cluster, how many may be deleted because of
            faults within ``brake_s``; 100 is all of them.
        brake_s: See there.
        run_within_s: How long the pods of a job may take to run; 0 is for ever.
        aside_s: How long a node is quarantined that refused a pod; 0 is not at all.

    """

    grace_s: int = 900
    block_after_s: int = 6
    job_after_s: int = 12
    hold_s: int = 300
    brake_percent: int = 5
    brake_s: int = 60
    run_within_s: int = 600
    aside_s: int = 300


class Settings(Struct, frozen=True):
    """The settings that decisions depend on.

    Args:
        job_requests: See ``JobRequests``.
        switch_mode: ``nslb-version``, unless ``tor-level`` says single-layer.
        shared_leaves: Shared leaves one foundation job may use (``shared-tor-num``).
        nodes_per_leaf: M; without it the size of the largest leaf.
        leaf_choice: See ``LeafChoice``.
        share_common_leaves: Common jobs may cross leaves of common jobs (D12).
        superpod_size: Nodes of a SuperPoD (``super-pod-size``).
        reserve_nodes: Nodes of a SuperPoD kept back for repairs.
        repairs: How faults are dealt with.
        default_tor_affinity: For jobs of several nodes without the label (D38).
        default_fault_scheduling: For jobs without the label: off, grace or force (D39).

    """

    job_requests: JobRequests = JobRequests.STRICT
    switch_mode: SwitchMode = SwitchMode.SPINE_LEAF_1
    shared_leaves: int = 2
    nodes_per_leaf: int | None = None
    leaf_choice: LeafChoice = LeafChoice.COMPACT
    share_common_leaves: bool = False
    superpod_size: int = 48
    reserve_nodes: int = 2
    repairs: RepairSettings = RepairSettings()
    default_tor_affinity: DefaultAffinity = DefaultAffinity.NONE
    default_fault_scheduling: FaultMode = FaultMode.OFF
