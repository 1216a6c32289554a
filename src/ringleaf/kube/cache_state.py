"""What the stores of the cache share: the objects by name, and what changed of them.

Each dictionary has one store that writes it; the others read. All of them mark in
``Deltas`` what the engine is to hear of.
"""

from collections.abc import Iterable

from msgspec import Struct, field

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.kube import names
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.job_traits import JobContext
from ringleaf.kube.node_info import NodeInfo
from ringleaf.kube.objects import NodeObject, PriorityClass
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.problems import Problems


class Deltas(Struct):
    """What changed since the engine was last told; the dictionaries are ordered sets.

    Args:
        gangs: Gangs to be compared with what the engine knows.
        nodes: Nodes to be read anew.
        queues: Queues that changed or are gone.
        repairs: Gangs whose records were read and not yet reported.
        runs: Gangs of which pods were sent, or began to run.
        statuses: Gangs whose status may be another, for ``take_changed``.
        retry_at: Name of a gang -> when it is looked at again, whatever happens.
        leaves: Whether the topology is another.
        conf: Whether the configuration is another.

    """

    gangs: dict[str, None] = {}
    nodes: dict[str, None] = {}
    queues: dict[str, None] = {}
    repairs: dict[str, None] = {}
    runs: dict[str, None] = {}
    statuses: dict[str, None] = {}
    retry_at: dict[str, float] = {}
    leaves: bool = False
    conf: bool = False


class CacheState(Struct):
    """Everything that is known, by name.

    Args:
        schedulers: The scheduler names of pods that are ours.
        pods: Uid -> pod; written by ``PodStore``.
        gangs: Name -> gang; written by ``PodStore`` and ``GangStore``.
        nodes: Name -> node as the engine knows it; written by ``NodeStore``.
        node_objects: Name -> the node's object; written by ``NodeStore``.
        on_node: Node -> uids of the pods there, or on their way; by ``NodePods``.
        lost_nodes: Nodes that were there, and are no more; by ``NodeStore``.
        unreadable_nodes: Nodes whose objects cannot be read; by ``NodeStore``.
        priority_classes: PriorityClasses by name; written by ``PriorityStore``.
        queue_uids: Queue -> the uid of its object; written by ``QueueStore``.
        conf: The configuration of the engine, as it was given.
        context: What else jobs are made from: priorities, and the configuration.
        deltas: What changed since the engine was last told.
        problems: What is wrong with objects.
        now: When the engine was last told of changes, in seconds since 1970.

    """

    schedulers: frozenset[str] = frozenset({names.SCHEDULER})
    pods: dict[str, PodState] = {}
    gangs: dict[str, GangState] = {}
    nodes: dict[str, NodeInfo] = {}
    node_objects: dict[str, NodeObject] = {}
    on_node: dict[str, set[str]] = {}
    lost_nodes: set[str] = field(default_factory=set)
    unreadable_nodes: set[str] = field(default_factory=set)
    priority_classes: dict[str, PriorityClass] = {}
    queue_uids: dict[str, str] = {}
    conf: Conf = DEFAULT
    context: JobContext = field(default_factory=JobContext)
    deltas: Deltas = field(default_factory=Deltas)
    problems: Problems = field(default_factory=Problems)
    now: float = 0.0

    def gang(self, name: str) -> GangState:
        """The gang of this name; a new one where there is none."""
        found = self.gangs.get(name)
        if found is None:
            found = self.gangs[name] = GangState(name)
        return found

    def report_again(self, gang: str) -> None:
        """Report a gang to the engine as if the engine had never heard of it."""
        self.gangs[gang].reported.is_stale = True
        self.deltas.gangs[gang] = None

    def mark_pods(self, uids: Iterable[str]) -> None:
        """Mark the gangs of some pods."""
        for uid in sorted(uids):
            if uid in self.pods:
                self.deltas.gangs[self.pods[uid].job] = None
