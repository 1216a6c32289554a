"""What the API server says, turned into what the engine hears.

Reflectors call handlers with objects, in any order and as often as they like;
``events`` returns what is new since it was last called. All of it follows from the
objects that are there, so after a restart the engine hears the same again. The one
thing the cache knows better is where pods were sent that the API server has not
confirmed yet (``AssumedPods``).

Each kind of object has a store that handles it. Stores mark what changed in ``Deltas``;
``GangEvents`` compares marked gangs with what the engine was told of them.
"""

from collections.abc import Container, Iterable, Iterator, Mapping

from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.event import (
    ConfChanged,
    Event,
    LeavesChanged,
    NodesChanged,
    NodesGone,
)
from ringleaf.framework.state import SchedulerState
from ringleaf.kube import names
from ringleaf.kube.assumed_pods import AssumedPods
from ringleaf.kube.budgets import Budgets, BudgetStore
from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.canary import Canary
from ringleaf.kube.claim_store import ClaimStore
from ringleaf.kube.event_handler import Handler
from ringleaf.kube.gang_events import GangEvents, everything_of
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.gang_store import GangStore
from ringleaf.kube.handover import Handover
from ringleaf.kube.isolation import Isolation
from ringleaf.kube.job_reader import JobReader
from ringleaf.kube.label_store import LabelStore
from ringleaf.kube.node_info import NodeInfo, leaves_of
from ringleaf.kube.node_pods import NodePods
from ringleaf.kube.node_store import NodeStore
from ringleaf.kube.objects import PriorityClass
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.pod_store import PodStore
from ringleaf.kube.priority_store import PriorityStore
from ringleaf.kube.problems import Problems
from ringleaf.kube.queue_store import QueueStore
from ringleaf.kube.repair_checkpoints import RepairCheckpoints
from ringleaf.kube.report_store import ReportStore
from ringleaf.model.settings import SwitchMode
from ringleaf.policies.defaults import has_defaults


class ClusterCache:
    """The objects of a cluster, and what the engine knows of them.

    Args:
        schedulers: The scheduler names of pods that are ours.
        conf: The configuration of the engine.
        canary: The jobs that are placed, where not all of them are.

    """

    def __init__(
        self,
        schedulers: Iterable[str] = (names.SCHEDULER,),
        conf: Conf = DEFAULT,
        canary: Canary | None = None,
    ) -> None:
        self.state = state = CacheState(frozenset(schedulers), conf=conf)
        self.isolation = isolation = Isolation(state)
        self.checkpoints = RepairCheckpoints(state, isolation)
        self.handover = Handover()
        self.reports = ReportStore(state, isolation)
        self.queues = QueueStore(state, isolation)
        self.labels = LabelStore(state)
        self.node_pods = NodePods(state)
        self.assumed = AssumedPods(state, self.node_pods)
        self.node_store = NodeStore(state, self.reports, self.node_pods, isolation)
        claims, budgets = ClaimStore(state), Budgets()
        reader = JobReader(state, isolation, claims, budgets, canary)
        self.gang_events = GangEvents(
            state, reader, self.handover, self.checkpoints, isolation
        )
        priorities = PriorityStore(state)
        pods = PodStore(state, self.node_pods, self.labels, claims, isolation)
        gangs = GangStore(state, self.checkpoints, isolation)
        budget_store = BudgetStore(budgets, self.labels, isolation)
        nodes = self.node_store
        self.handlers: Mapping[str, Handler] = {
            "nodes": Handler(nodes.on_update, nodes.on_delete, nodes.on_unreadable),
            "pods": Handler(pods.on_update, pods.on_delete, pods.on_unreadable),
            "podgroups": Handler(gangs.on_update, gangs.on_delete),
            "queues": Handler(self.queues.on_update, self.queues.on_delete),
            "priorityclasses": Handler(priorities.on_update, priorities.on_delete),
            "budgets": Handler(budget_store.on_update, budget_store.on_delete),
            "claims": Handler(claims.on_update, claims.on_delete),
            "configmaps": Handler(self.reports.on_update, self.reports.on_delete),
        }
        self._heed_conf()

    # What there is.

    @property
    def pods(self) -> Mapping[str, PodState]:
        """Pods by uid."""
        return self.state.pods

    @property
    def gangs(self) -> Mapping[str, GangState]:
        """Gangs by name."""
        return self.state.gangs

    @property
    def nodes(self) -> Mapping[str, NodeInfo]:
        """What the engine knows of nodes, with what is written on pods there."""
        return self.state.nodes

    @property
    def priority_classes(self) -> Mapping[str, PriorityClass]:
        """PriorityClasses by name."""
        return self.state.priority_classes

    @property
    def problems(self) -> Problems:
        """What is wrong with objects."""
        return self.state.problems

    @property
    def schedulers(self) -> frozenset[str]:
        """The scheduler names of pods that are ours."""
        return self.state.schedulers

    @property
    def conf(self) -> Conf:
        """The configuration, as it was given."""
        return self.state.conf

    @property
    def n_nodes(self) -> int:
        """Nodes that there are."""
        return len(self.state.node_objects)

    def uid_of_node(self, name: str) -> str:
        """The uid of a node, or its name: events of nodes are looked up by either."""
        given = self.state.node_objects.get(name)
        return name if given is None else given.metadata.uid

    def take_changed(self) -> list[GangState]:
        """The gangs that changed since the last time."""
        deltas, gangs = self.state.deltas, self.state.gangs
        changed, deltas.statuses = deltas.statuses, {}
        found = [g for g in map(gangs.get, changed) if g is not None]
        for gang in found:
            _note_complete(gang)
        return found

    @property
    def next_at(self) -> float | None:
        """When something is to be looked at again, if anything is."""
        times = [*self.state.deltas.retry_at.values()]
        if self.isolation.next_at is not None:
            times.append(self.isolation.next_at)
        return min(times, default=None)

    # The configuration, and the lead.

    def reconfigure(self, conf: Conf) -> None:
        """The configuration is another one."""
        state, reports = self.state, self.reports.reports
        state.conf = conf
        for pod in state.pods.values():
            if pod.refusal_reported:  # the previous leader may not have handled it
                pod.refusal_reported = False
                state.deltas.gangs[pod.job] = None
        before, had_defaults = reports.collected_first, state.context.has_defaults
        self._heed_conf()
        state.deltas.conf = True
        if had_defaults != state.context.has_defaults:
            state.deltas.gangs |= dict.fromkeys(state.gangs)
        if before != reports.collected_first:
            state.deltas.nodes |= dict.fromkeys(state.node_objects)

    def _heed_conf(self) -> None:
        """Which reports count, and which labels are filled in."""
        conf = self.state.conf
        collected = conf.parameters.get("useClusterInfoManager")
        self.reports.reports.collected_first = collected is not False
        self.state.context.has_defaults = has_defaults(conf.settings)

    def stand_by(self, engine: SchedulerState, repairs: Container[str]) -> None:
        """Another scheduler leads from now on: forget what was decided.

        *engine* is what the engine knows, besides open *repairs*.
        """
        self.assumed.forget_all(engine, repairs, self.checkpoints)

    # What the engine hears.

    @property
    def has_news(self) -> bool:
        """Whether there is something that the engine has not heard."""
        return self.has_changes or bool(self.state.deltas.runs)

    @property
    def has_changes(self) -> bool:
        """Whether there is news besides pods that were sent, or run, where they are."""
        deltas = self.state.deltas
        return bool(
            deltas.gangs
            or self.labels
            or deltas.nodes
            or deltas.queues
            or deltas.leaves
            or deltas.conf
            or self.handover.has_news
            or deltas.repairs
        )

    def events(self, now: float) -> list[Event]:
        """What is new since the last time."""
        self.state.now = now
        self.isolation.retry(now)
        self.labels.recount()
        self.node_pods.settle()
        self._mark_due(now)
        if not self.has_news:
            return []
        deltas = self.state.deltas
        out: list[Event] = [*self.queues.changes(), *self._conf_changes(now)]
        out += self.handover.note_changes()
        if deltas.leaves:
            deltas.leaves = False
            out.append(LeavesChanged(leaves_of(self.reports.topology)))
        changed, vanished = self.node_store.changes()
        if changed:
            out.append(NodesChanged(tuple(changed)))
        # Pods may have swapped their chips: first all that ends is reported.
        ends, others = self._gang_changes(now)
        out += ends
        out += self.handover.fault_changes()
        out += self.checkpoints.changes(now)
        out += others
        out += self.gang_events.runs()
        if vanished:
            out.append(NodesGone(tuple(vanished)))
        return out

    def _mark_due(self, now: float) -> None:
        """Mark the gangs that are to be looked at again."""
        deltas = self.state.deltas
        for name, at in list(deltas.retry_at.items()):
            if at <= now:
                del deltas.retry_at[name]
                deltas.gangs[name] = None
                gang = self.state.gangs.get(name)
                if gang is not None and gang.binding.protected_until > now:
                    deltas.retry_at[name] = gang.binding.protected_until

    def _conf_changes(self, now: float) -> Iterator[Event]:
        """Another configuration, if it is another.

        An engine that leads knows its repairs better than what it is told of them:
        before it begins to lead it hears of those that others began.
        """
        deltas = self.state.deltas
        if deltas.conf:
            deltas.conf = False
            if self.conf.actions:
                yield from self.checkpoints.changes(now)
            yield ConfChanged(self._effective_conf())

    def _gang_changes(self, now: float) -> tuple[list[Event], list[Event]]:
        """What the engine hears of gangs: all that ends, and everything else."""
        deltas, gangs = self.state.deltas, self.state.gangs
        marked, deltas.gangs = deltas.gangs, {}
        all_ends, all_others = list[Event](), list[Event]()
        for name in marked:
            gang = gangs.get(name)
            if gang is None:
                continue
            try:
                must_wait = self.labels.must_wait(gang)
            except Exception as error:  # noqa: BLE001 - one bad job stops no other
                must_wait = False
                self.isolation.quarantine_job(gang, error)
            if must_wait:
                deltas.gangs[name] = None
                continue
            deltas.statuses[name] = None
            ends, others = self.gang_events.changes(gang, now)
            all_ends += ends
            all_others += others
        return all_ends, all_others

    def everything(self, now: float) -> list[Event]:
        """All there is, as an engine hears of it that knows nothing yet."""
        self.events(now)
        nodes, gangs = self.nodes.values(), self.gangs.values()
        out = [*self.queues.everything(), ConfChanged(self._effective_conf())]
        out += self.handover.notes()
        out.append(LeavesChanged(leaves_of(self.reports.topology)))
        out.append(NodesChanged(tuple(node.node for node in nodes)))
        out += self.handover.faults()
        for gang in gangs:
            out += self.checkpoints.everything(gang, now)
        out += everything_of(gangs)
        return out

    def _effective_conf(self) -> Conf:
        """The configuration, with what the topology says of the switches."""
        conf, topology = self.conf, self.reports.topology
        if topology is None:
            return conf
        settings = replace(conf.settings, nodes_per_leaf=topology.leaf_size)
        if topology.single_layer:
            settings = replace(settings, switch_mode=SwitchMode.SINGLE_LAYER)
        return replace(conf, settings=settings)


def _note_complete(gang: GangState) -> None:
    """Remember that enough pods are bound, as long as any of them is."""
    if gang.is_alone:
        return  # it is bound, or it is not
    complete = gang.binding.was_complete
    if not any(pod.holds for pod in gang.pods.values()):
        complete = False
    elif gang.has_arrived:
        complete = True
    if complete != gang.binding.was_complete:
        gang.binding = replace(gang.binding, was_complete=complete)
