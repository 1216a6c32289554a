"""What happens outside: the engine's only input.

Most events describe the current state and are idempotent; ``PodsRefused`` and
``BindFailed`` describe something that happened and must be sent once.
"""

from msgspec import Struct

from ringleaf.config.conf import Conf
from ringleaf.framework.idle_budget import IdleAccount
from ringleaf.framework.run_times import RunSeries
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Deletion, Fault, PodFault, Record
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.model.queue import Queue
from ringleaf.model.uplinks import Leaf


class JobArrived(Struct, frozen=True):
    """A job is new or changed; *placements* are those of its pods that run already.

    Pods on unknown nodes are gone. A job with the name of a known job replaces it. A
    new job has waited since *waiting_since*, or else from now on.
    """

    job: Job
    placements: tuple[Placement, ...] = ()
    started: float | None = None
    waiting_since: float | None = None


class JobGone(Struct, frozen=True):
    """A job ended or was deleted; what its pods held is free.

    A job that *returns* is expected again: what is known of its repair is kept. It does
    not end a run (*ends_run*) if its pods never ran, or if it arrives again at once
    with running pods.
    """

    job: str
    returns: bool = False
    ends_run: bool = True


class PodsGone(Struct, frozen=True):
    """Pods ended or were deleted; what they held is free.

    A pod that *succeeded* is done; any other is placed again. With the last of them a
    run of their job ends, unless they never ran: then none of them *ends_run*.
    """

    job: str
    replicas: tuple[int, ...]
    succeeded: bool = False
    ends_run: bool = True


class PodsEnding(Struct, frozen=True):
    """Pods are asked to end; they hold what they hold until they are gone (D20)."""

    job: str
    replicas: tuple[int, ...]


class BindFailed(Struct, frozen=True):
    """Pods could not be bound as instructed; they hold nothing."""

    job: str
    replicas: tuple[int, ...]


class PodFaultsReported(Struct, frozen=True):
    """What is wrong with the pods of a job themselves, all of it.

    Of pods that fail it is said before they are gone, so that it is known where they
    were. What is wrong with their nodes and chips follows from the nodes.
    """

    job: str
    pod_faults: tuple[PodFault, ...]


class PodsRun(Struct, frozen=True):
    """Pods started on their nodes.

    The first such event of a job, even without pods, starts the clock for its other
    pods: at *since*, when the last of them was bound, if given, else now. A job without
    such an event counts as running.
    """

    job: str
    replicas: tuple[int, ...]
    since: float | None = None


class PodsRefused(Struct, frozen=True):
    """Pods were refused by the nodes to which they were bound, and why.

    It is said before they are gone, so that it is known where they were.
    """

    job: str
    replicas: tuple[int, ...]
    why: str = ""


class RepairKnown(Struct, frozen=True):
    """What was written down of the repair of a job, by the previous leader."""

    job: str
    record: Record


class FaultsKnown(Struct, frozen=True):
    """The faults that were written down, by the previous leader."""

    faults: tuple[Fault, ...]


class DeletionsKnown(Struct, frozen=True):
    """What was deleted lately because of faults, by the previous leader."""

    deletions: tuple[Deletion, ...]


class RunTimesKnown(Struct, frozen=True):
    """How long jobs ran that have ended, as the previous leader wrote it down."""

    series: tuple[RunSeries, ...]


class IdleAccountKnown(Struct, frozen=True):
    """What reservations kept idle, as the previous leader wrote it down."""

    account: IdleAccount


class NodesChanged(Struct, frozen=True):
    """Nodes are new or changed; ``free`` are the chips that no known pod holds."""

    nodes: tuple[Node, ...]


class NodesGone(Struct, frozen=True):
    """Nodes are no longer there, nor are the pods on them."""

    names: tuple[str, ...]


class LeavesChanged(Struct, frozen=True):
    """What is known of leaf switches besides their pods, all of it."""

    leaves: tuple[Leaf, ...]


class QueueChanged(Struct, frozen=True):
    """A queue is new or changed."""

    queue: Queue


class QueueGone(Struct, frozen=True):
    """A queue is no longer there; its jobs wait."""

    name: str


class ConfChanged(Struct, frozen=True):
    """The configuration is another one."""

    conf: Conf


class TimerFired(Struct, frozen=True):
    """Nothing but time has passed."""


Event = (
    JobArrived
    | JobGone
    | PodsGone
    | PodsEnding
    | BindFailed
    | PodFaultsReported
    | PodsRun
    | PodsRefused
    | RepairKnown
    | FaultsKnown
    | DeletionsKnown
    | RunTimesKnown
    | IdleAccountKnown
    | NodesChanged
    | NodesGone
    | LeavesChanged
    | QueueChanged
    | QueueGone
    | ConfChanged
    | TimerFired
)
