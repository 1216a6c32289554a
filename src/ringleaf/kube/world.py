"""What the API server says, turned into what the engine hears.

Reflectors put objects in and take them out, in any order and as often as they like;
``events`` tells what is new since it was last asked. All of it follows from the objects
that are there, so after a restart the engine hears the same again. The one thing the
world knows better is where pods were sent that the API server has not confirmed yet.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.event import (
    ConfChanged,
    DeletionsKnown,
    Event,
    FaultsKnown,
    JobArrived,
    JobGone,
    LeavesChanged,
    NodesChanged,
    NodesGone,
    PodFaultsReported,
    PodsEnding,
    PodsGone,
    PodsRefused,
    PodsRun,
    QueueChanged,
    QueueGone,
    RepairKnown,
)
from ringleaf.framework.job_state import NO_NAMES, NONE_OF_THEM, Phase, with_pods
from ringleaf.framework.state import SchedulerState
from ringleaf.kube import names, records, topology
from ringleaf.kube.budgets import Budgets
from ringleaf.kube.canary import Canary
from ringleaf.kube.demand import BadPod
from ringleaf.kube.depth import decoded
from ringleaf.kube.jobs import (
    Facts,
    Group,
    failed_job,
    held_job,
    job_of,
    lead_of,
    members_of,
    namespace_of,
    number,
    place_of,
    placement_of,
    podless_job,
    queue_of,
    uids_of,
)
from ringleaf.kube.labels import Selected, selects_pods
from ringleaf.kube.nodes import NodeFacts, leaves_of, node_of
from ringleaf.kube.objects import (
    Budget,
    Claim,
    ConfigMap,
    Metadata,
    NodeObject,
    Pod,
    PodGroup,
    PriorityClass,
    QueueObject,
)
from ringleaf.kube.pods import WELL, PodRecord, State
from ringleaf.kube.quantity import BadQuantity
from ringleaf.kube.quarantine import Culprit, Quarantine, told, trace_of
from ringleaf.kube.queues import read_queue
from ringleaf.kube.recordstore import Stored
from ringleaf.kube.recovery import (
    MAX_RETRIES,
    ailments_of,
    misread,
    misread_of,
    words_of,
)
from ringleaf.kube.reported import Reported
from ringleaf.kube.reports import is_report, read
from ringleaf.kube.watch import Gone
from ringleaf.model.demand import ANY_NAMESPACE, Selector, selects
from ringleaf.model.fault import NO_RECOVERY, Deletion, Fault, FaultMode, Record
from ringleaf.model.job import Job
from ringleaf.model.job_labels import FAULT_SCHEDULING, TOR_AFFINITY
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import Placement
from ringleaf.model.queue import DEFAULT_QUEUE, Queue
from ringleaf.model.settings import SwitchMode
from ringleaf.model.topology import Topology, quoted
from ringleaf.policies.defaults import has_defaults, with_defaults

ROOT: Final = "root"
"""The queue above all others; no job waits in it."""
FIRST_BACKOFF_S: Final = 0.5
MOST_BACKOFF_S: Final = 30.0
VOLCANO: Final = "volcano"
GROUP_WAIT_S: Final = 3.0
"""How old a pod of Volcano's is before it counts as one without a PodGroup.

Volcano's controller makes PodGroups for pods that come without, and says so on them.
"""
NODE_HEARD_S: Final = 30.0
"""A node of which nothing is heard so long after a pod of it was made is gone."""
SPARE_S: Final = 60.0
"""How long pods are left alone that could not be evicted."""

SEVERAL: Final = ""
"""In place of the uid of a pod: there is more than one."""
MOST_DELETED: Final = 4096
"""Pods of which it is believed that they were deleted, beside those that are there."""
OVER: Final = Record(since=0.0, is_over=True)
"""What there is to know of a repair whose record is gone."""


RELABELLED: Final = 1_000
"""Groups that the engine hears of again in one turn because their labels matter now."""

_T = TypeVar("_T")


class _BoundPod(Struct, rename="camel"):
    """What must be known of a pod of which nothing else can be read."""

    class Spec(Struct, rename="camel"):
        """Where it is."""

        node_name: str = ""

    metadata: Metadata = field(default_factory=Metadata)
    spec: Spec = field(default_factory=Spec)


_bound_pod: Final = msgspec.json.Decoder(_BoundPod).decode


class Failure(NamedTuple):
    """Something failed inside; the culprit is set aside."""

    culprit: Culprit
    why: str
    trace: str


class RetriesLeft(NamedTuple):
    """How often pods of a job may still fail; *uid* says of which job of its name."""

    uid: str
    times: int


class Problem(NamedTuple):
    """A problem that a user should fix: the object, and a message."""

    kind: str
    namespace: str
    name: str
    uid: str
    message: str

    @property
    def key(self) -> tuple[str, str]:
        """Which object it is about."""
        return self.kind, f"{self.namespace}/{self.name}"


class World:
    """The objects of a cluster, and what the engine knows of them.

    Args:
        schedulers: The scheduler names of pods that are ours.
        conf: The configuration of the engine.
        canary: The jobs that are placed, where not all of them are.

    """

    def __init__(  # noqa: PLR0915 - one by one
        self,
        schedulers: Iterable[str] = (names.SCHEDULER,),
        conf: Conf = DEFAULT,
        canary: Canary | None = None,
    ) -> None:
        self.schedulers = frozenset(schedulers)
        self._conf, self._canary = conf, canary
        self.pods: dict[str, PodRecord] = {}
        """By uid."""
        self.groups: dict[str, Group] = {}
        self.nodes: dict[str, NodeFacts] = {}
        """What the engine knows of nodes, with what is written on pods there."""
        self.problems: list[Problem] = []
        """Problems to report; the reporter empties the list."""
        self.topology: Topology | None = None
        self._facts = Facts()
        self._budgets = Budgets()
        self._objects: dict[str, NodeObject] = {}
        self._uids: dict[str, str] = {}
        self._in_namespace: dict[str, dict[str, PodRecord]] = {}
        """Namespace -> its pods by uid."""
        self._selected = Selected()
        self._label_news: set[str] = set()
        """Namespaces where more labels of pods count than before."""
        self._to_relabel: dict[str, None] = {}
        """Uids of pods whose labels are to be counted anew."""
        self._on_node: dict[str, set[str]] = {}
        self._moved: dict[str, dict[int, str]] = {}
        """Nodes of which pods named chips, or gave chips up -> chip -> which pod."""
        self._reports = Reported()
        self._heed_conf()
        self._queues: dict[str, Queue] = {}
        self._queue_uids: dict[str, str] = {}
        self.allocated: dict[str, tuple[str, ...]] = {}
        """Queue -> the resources of which its status says that they are used."""
        self._classes: dict[str, PriorityClass] = {}
        self._claims: set[str] = set()
        self._claimants: dict[str, set[str]] = {}
        self._dirty: dict[str, None] = {}
        self._dirty_nodes: dict[str, None] = {}
        self._dirty_queues: dict[str, None] = {}
        self._leaves_changed = self._conf_changed = False
        self._started: dict[str, None] = {}
        """Groups of which pods were sent, or began to run."""
        self._gone: set[str] = set()
        """Nodes that were there, and are no more."""
        self._unread: set[str] = set()
        """Nodes whose objects cannot be read."""
        self._late: dict[str, float] = {}
        self._repairs: dict[str, None] = {}
        """Groups whose records were read and not yet reported to the engine."""
        self._stored: dict[tuple[str, str], str] = {}
        """Job and uid of its PodGroup -> the record of its repair, while that PodGroup
        was not heard of yet."""
        self.old_records: list[Stored] = []
        """Records that are on PodGroups, as they were written before, to be moved."""
        self.without_job: list[Stored] = []
        """Records whose PodGroup is gone; the leader removes them."""
        self._faults: tuple[Fault, ...] = ()
        self._deletions: tuple[Deletion, ...] = ()
        self._faults_changed = False
        self._notes: dict[type[Event], Event] = {}
        """What the previous leader wrote down of running times and reservations."""
        self._notes_unheard: dict[type[Event], None] = {}
        self._retries: dict[str, RetriesLeft] = {}
        """Job -> how often its pods may still fail, as the previous leader wrote it.

        It counts against the budget of that time, so it is read once.
        """
        self._changed: dict[str, None] = {}
        self._told: dict[tuple[str, str], dict[str, str]] = {}
        """Kind and key of an object -> what about it -> what was told."""
        self.unready: dict[str, None] = {}
        """Groups of which pods wait for something else than room."""
        self.mismatches = 0
        """Reports that came and did not fit their check code."""
        self.quarantine = Quarantine()
        self.failures: list[Failure] = []
        """Failures to report; the reporter empties the list."""
        self._now = 0.0
        self._again: dict[Culprit, float] = {}
        """What is set aside -> when it is tried again."""
        self._untaken: dict[Culprit, tuple[Callable[[Any], None], Any]] = {}
        """Objects that failed when they were put, and how they are put."""
        self._shut: dict[str, tuple[str, str]] = {}
        """Pods that may hold any chips of their nodes: key -> uid and node."""

    # What reflectors say.

    def put_pods(self, pods: Iterable[Pod]) -> None:
        """Pods are new or changed."""
        self._each("Pod", pods, self._put_pod)

    def _put_pod(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        record = self.pods.get(uid)
        if self._shut:
            self._open(pod.metadata.key)
        if record is not None:
            self._pod_changed(record, pod)
        elif pod.spec.scheduler_name in self.schedulers or pod.spec.node_name:
            self._pod_came(pod)

    def unread_pods(self, key: str, raw: bytes) -> None:
        """A pod is there that cannot be read: where it is, it may hold any chips."""
        try:
            found = decoded(_bound_pod, raw)
        except (msgspec.MsgspecError, UnicodeError):
            return
        known = self.pods.get(found.metadata.uid)
        if known is None or known.node != found.spec.node_name:
            self._close(key, found.metadata.uid, found.spec.node_name)

    def drop_pods(self, gone: Iterable[Gone]) -> None:
        """Pods are gone."""
        for each in gone:
            self._lost("Pod", each)
            record = self.pods.pop(each.uid, None)
            if record is None:
                continue
            if self._uids.get(record.key) == record.uid:
                del self._uids[record.key]
            self._told.pop(("Pod", record.key), None)
            self._forget(record)

    def put_nodes(self, nodes: Iterable[NodeObject]) -> None:
        """Nodes are new or changed."""
        for node in nodes:
            self._objects[node.metadata.name] = node
            self._dirty_nodes[node.metadata.name] = None
            self._gone.discard(node.metadata.name)
            self._unread.discard(node.metadata.name)

    def drop_nodes(self, gone: Iterable[Gone]) -> None:
        """Nodes are gone."""
        for each in gone:
            self._lost("Node", each)
            if self._objects.pop(each.name, None) is not None:
                self._dirty_nodes[each.name] = None
                self._gone.add(each.name)
            elif each.name in self._unread:  # its pods are all that is known of it
                self._gone.add(each.name)
                self._touch(self._on_node.get(each.name, ()))
            self._unread.discard(each.name)
            self._told.pop(("Node", f"/{each.name}"), None)

    def unread_nodes(self, key: str, _raw: bytes) -> None:
        """A node is there that cannot be read: its pods are not stranded."""
        self._unread.add(key.rpartition("/")[2])

    def put_groups(self, podgroups: Iterable[PodGroup]) -> None:
        """PodGroups are new or changed."""
        self._each("PodGroup", podgroups, self._put_group)

    def _put_group(self, podgroup: PodGroup) -> None:
        group = self._group(podgroup.metadata.key)
        before, group.podgroup = group.podgroup, podgroup
        changed = before is None or not group.pods or _differ(before, podgroup)
        if not changed and group.told is None and before is not None:
            # A job that ran, and of which Volcano has made some pods again, is admitted
            # anew once its phase says that it is pending: then come the others.
            changed = before.status.phase != podgroup.status.phase
        if changed:
            self._dirty[group.name] = None
            self._changes(Culprit("Job", group.name))
        self._find_record(group, podgroup)

    def drop_groups(self, gone: Iterable[Gone]) -> None:
        """PodGroups are gone."""
        for each in gone:
            self._lost("PodGroup", each)
            group = self.groups.get(each.key)
            if group is not None:
                if group.record is not None:
                    self.without_job.append(Stored(each.key, each.uid, ""))
                group.podgroup = group.record = None
                group.doomed = NO_NAMES
                self._dirty[group.name] = None
            self._told.pop(("PodGroup", each.key), None)

    def put_queues(self, queues: Iterable[QueueObject]) -> None:
        """Queues are new or changed."""
        self._each("Queue", queues, self._put_queue)

    def _put_queue(self, queue: QueueObject) -> None:
        name = queue.metadata.name
        self.allocated[name] = tuple(queue.status.allocated or ())
        self._queue_uids[name] = queue.metadata.uid
        if name == ROOT:
            return
        try:
            found = read_queue(queue)
        except BadQuantity as error:
            self.tell("Queue", "", name, queue.metadata.uid, str(error))
            return
        if self._queues.get(name) != found:
            self._queues[name] = found
            self._dirty_queues[name] = None
            self._changes(Culprit("Queue", name))

    def drop_queues(self, gone: Iterable[Gone]) -> None:
        """Queues are gone."""
        for each in gone:
            self._lost("Queue", each)
            if self._queues.pop(each.name, None) is not None:
                self._dirty_queues[each.name] = None
            self.allocated.pop(each.name, None)
            self._queue_uids.pop(each.name, None)
            self._told.pop(("Queue", f"/{each.name}"), None)

    def put_classes(self, classes: Iterable[PriorityClass]) -> None:
        """PriorityClasses are new or changed."""
        for each in classes:
            self._classes[each.metadata.name] = each
        self._classes_changed()

    def drop_classes(self, gone: Iterable[Gone]) -> None:
        """PriorityClasses are gone."""
        for each in gone:
            self._classes.pop(each.name, None)
        self._classes_changed()

    def put_budgets(self, budgets: Iterable[Budget]) -> None:
        """PodDisruptionBudgets are new or changed."""
        self._each("PodDisruptionBudget", budgets, self._put_budget)

    def _put_budget(self, budget: Budget) -> None:
        self._disturb(budget.metadata.namespace, self._budgets.put(budget))

    def drop_budgets(self, gone: Iterable[Gone]) -> None:
        """PodDisruptionBudgets are gone."""
        for each in gone:
            self._lost("PodDisruptionBudget", each)
            self._disturb(each.namespace, self._budgets.drop(each.key))

    def put_claims(self, claims: Iterable[Claim]) -> None:
        """PersistentVolumeClaims are new or changed."""
        for each in claims:
            key = each.metadata.key
            if each.status.phase == "Bound":
                self._claims.add(key)
            else:
                self._claims.discard(key)
            self._touch(self._claimants.get(key, ()))

    def drop_claims(self, gone: Iterable[Gone]) -> None:
        """PersistentVolumeClaims are gone."""
        for each in gone:
            self._claims.discard(each.key)
            self._touch(self._claimants.get(each.key, ()))

    def put_maps(self, maps: Iterable[ConfigMap]) -> None:
        """ConfigMaps with reports or with the topology are new or changed."""
        self._each("ConfigMap", maps, self._put_map)

    def _put_map(self, given: ConfigMap) -> None:
        metadata = given.metadata
        if metadata.name == topology.NAME:
            self._put_topology(given)
        elif is_report(metadata.name):
            found = read(given)
            self.mismatches += found.mismatches
            self._dirty_nodes |= self._reports.put(metadata.key, found)
            line = "; ".join(found.problems[:3])
            own = metadata.namespace, metadata.name, metadata.uid
            self.tell("ConfigMap", *own, line)

    def drop_maps(self, gone: Iterable[Gone]) -> None:
        """ConfigMaps are gone."""
        for each in gone:
            self._lost("ConfigMap", each)
            self._told.pop(("ConfigMap", f"{each.namespace}/{each.name}"), None)
            if each.name == topology.NAME:
                self.topology = None
                self._topology_changed()
            else:
                self._dirty_nodes |= self._reports.drop(each.key)

    def put_conf(self, conf: Conf) -> None:
        """The configuration is another one."""
        self._conf = conf
        for pod in self.pods.values():
            if pod.refused_told:  # the previous leader may not have handled it
                pod.refused_told = False
                self._dirty[pod.job] = None
        before = self._reports.collected_first
        had_defaults = self._facts.has_defaults
        self._heed_conf()
        self._conf_changed = True
        if had_defaults != self._facts.has_defaults:
            self._dirty |= dict.fromkeys(self.groups)
        if before != self._reports.collected_first:
            self._dirty_nodes |= dict.fromkeys(self._objects)

    def put_records(self, found: Iterable[Stored], *, moves: bool = False) -> None:
        """Replace what is known of repairs by all records that a leader has written.

        If it *moves*, records that are on PodGroups count as well.
        """
        self._stored = {(each.job, each.uid): each.text for each in found}
        self.old_records = list(self._records_on_groups()) if moves else []
        self._stored |= {(old.job, old.uid): old.text for old in self.old_records}
        for group in self.groups.values():
            podgroup, known = group.podgroup, group.record
            if podgroup is None or self._has_record(group, podgroup):
                continue
            if known is not None and not known.is_over:
                group.record, group.doomed = None, frozenset()
                self._repairs[group.name] = self._dirty[group.name] = None

    def _has_record(self, group: Group, podgroup: PodGroup) -> bool:
        """Like ``_find_record``; a record that fails to be read sets its job aside."""
        try:
            return self._find_record(group, podgroup)
        except Exception as error:  # noqa: BLE001 - one bad record stops no other
            self.set_aside([Culprit("Job", group.name)], error)
            return True

    def _records_on_groups(self) -> Iterator[Stored]:
        """Records that are on PodGroups of which there is no other record."""
        for group in self.groups.values():
            if group.podgroup is not None:
                meta = group.podgroup.metadata
                text = (meta.annotations or {}).get(names.REPAIR, "")
                is_ours = records.writer_of(text) in ("", *self.schedulers)
                if text and is_ours and (group.name, meta.uid) not in self._stored:
                    yield Stored(group.name, meta.uid, text)

    def stand_by(self, view: SchedulerState, repairs: Container[str]) -> None:
        """Others lead from now on: know what one knows that has never led.

        Of pods that were sent and not confirmed, the API server says where they are.
        The engine, which knows *view* and of open *repairs*, hears anew of every job
        of which it has decided something: that may never be done.
        """
        sent = set[str]()
        for pod in self.pods.values():
            pod.said = ""
            if pod.assumed is not None:
                sent.add(pod.job)
                self._off(pod, pod.assumed.node)
                pod.assumed = None
                if pod.holds:
                    self._on_node.setdefault(pod.node, set()).add(pod.uid)
        for group in self.groups.values():
            group.said = group.waits = ""
            group.sent_at = group.backoff = group.spared_until = 0.0
            open_now = group.name in repairs
            self._forget_repair(group, is_open=open_now)
            in_doubt = open_now or group.name in sent or bool(group.evicting)
            group.evicting = NO_NAMES
            if in_doubt or not _is_settled(group, view):
                group.is_stale = group.told is not None
                self._dirty[group.name] = None

    def _forget_repair(self, group: Group, *, is_open: bool) -> None:
        """Forget a repair: records are read again before we lead."""
        if is_open or group.record is not None:
            group.record, group.doomed = None, NO_NAMES
            self._repairs[group.name] = None

    def put_faults(
        self,
        faults: Iterable[Fault],
        retries: Mapping[str, RetriesLeft],
        deletions: Iterable[Deletion] = (),
    ) -> None:
        """Take over the fault history that the previous leader wrote."""
        self._faults, self._retries = tuple(faults), dict(retries)
        self._deletions = tuple(deletions)
        self._faults_changed = bool(self._faults or self._deletions)

    def put_note(self, note: Event) -> None:
        """Take over what the previous leader wrote down, as the engine hears it."""
        self._notes[type(note)] = note
        self._notes_unheard[type(note)] = None

    def is_unheard(self, kind: type[Event]) -> bool:
        """Whether the engine has not heard yet what was read of a *kind*."""
        return kind in self._notes_unheard

    def carry_over(
        self,
        faults: Iterable[Fault],
        deletions: Iterable[Deletion],
        notes: Iterable[Event] = (),
    ) -> None:
        """What an engine knew, besides objects, that is followed by a new one."""
        self._faults, self._deletions = tuple(faults), tuple(deletions)
        self._notes |= {type(note): note for note in notes}

    def _heed_conf(self) -> None:
        """Which reports count, and which labels are filled in."""
        collected = self._conf.parameters.get("useClusterInfoManager")
        self._reports.collected_first = collected is not False
        self._facts.has_defaults = has_defaults(self._conf.settings)

    # What the engine hears.

    def events(self, now: float) -> list[Event]:
        """What is new since the last time."""
        self._now = now
        self._try_again(now)
        self._relabel()
        self._settle()
        for name, at in list(self._late.items()):
            if at <= now:
                del self._late[name]
                self._dirty[name] = None
                group = self.groups.get(name)
                if group is not None and group.spared_until > now:
                    self._late[name] = group.spared_until
        if not self.has_news:
            return []
        out: list[Event] = []
        self._tell_queues(out)
        self._tell_conf(out, now)
        self._tell_notes(out)
        if self._leaves_changed:
            self._leaves_changed = False
            out.append(LeavesChanged(leaves_of(self.topology)))
        vanished = self._tell_nodes(out)
        dirty, self._dirty = self._dirty, {}
        begins: list[Event] = []
        for name in dirty:
            group = self.groups.get(name)
            if group is None:
                continue
            if self._to_relabel and _starts_beside_others(group):
                self._dirty[name] = None  # until the labels of all others are counted
                continue
            self._changed[name] = None
            # Pods may have swapped their chips: first all that ends is told.
            ends, others = self._heard_of(group, now)
            out += ends
            begins += others
        self._tell_faults(out)
        self._tell_repairs(out, now)
        out += begins
        self._tell_runs(out)
        if vanished:
            out.append(NodesGone(tuple(vanished)))
        return out

    def _tell_conf(self, out: list[Event], now: float) -> None:
        """Tell of another configuration.

        An engine that leads knows its repairs better than what it is told of them:
        before it begins to lead it hears of those that others began.
        """
        if self._conf_changed:
            self._conf_changed = False
            if self._conf.actions:
                self._tell_repairs(out, now)
            out.append(ConfChanged(self._effective_conf()))

    @property
    def has_news(self) -> bool:
        """Whether there is something that the engine has not heard."""
        return self.has_changes or bool(self._started)

    @property
    def has_changes(self) -> bool:
        """Whether there is news besides pods that were sent, or run, where they are."""
        return bool(
            self._dirty
            or self._to_relabel
            or self._dirty_nodes
            or self._dirty_queues
            or self._leaves_changed
            or self._conf_changed
            or self._faults_changed
            or self._notes_unheard
            or self._repairs
        )

    def everything(self, now: float) -> list[Event]:
        """All there is, as an engine hears it that knows nothing yet."""
        self.events(now)
        out: list[Event] = [
            QueueChanged(queue)
            for name, queue in self._queues.items()
            if self.quarantine.of(Culprit("Queue", name), now) is None
        ]
        out.append(ConfChanged(self._effective_conf()))
        out += self._notes.values()
        out.append(LeavesChanged(leaves_of(self.topology)))
        out.append(NodesChanged(tuple(facts.node for facts in self.nodes.values())))
        out += self._known_of_faults()
        arrivals, others = list[Event](), list[Event]()
        for group in self.groups.values():
            if group.record is not None and self._may_be_repaired(group, now):
                out.append(_repair_known(group, group.record, now))
            if group.told is None:
                continue
            starts = [p.started for p in group.pods.values() if p.holds and p.started]
            listed = tuple(group.placed[n] for n in sorted(group.placed))
            since = _waiting_since(group, group.told)
            start = min(starts, default=None)
            arrivals.append(JobArrived(group.told, listed, start, since))
            if group.ailing:
                others.append(PodFaultsReported(group.name, group.ailing))
            if group.ending:
                others.append(PodsEnding(group.name, tuple(sorted(group.ending))))
            if group.is_watched:
                ran = tuple(sorted(group.running))
                others.append(PodsRun(group.name, ran, _last_bound(group)))
        # Jobs that arrive one after the other cost less than one by one.
        return [*out, *arrivals, *others]

    @property
    def name(self) -> str:
        """One of the names by which pods are ours."""
        return min(self.schedulers)

    @property
    def conf(self) -> Conf:
        """The configuration, as it was given."""
        return self._conf

    def bad_objects(self) -> Counter[str]:
        """Kind -> objects of it with something wrong that was told."""
        return Counter(kind for kind, _key in self._told)

    @property
    def n_nodes(self) -> int:
        """Nodes that there are."""
        return len(self._objects)

    def uid_of_node(self, name: str) -> str:
        """The uid of a node, or its name: events of nodes are looked up by either."""
        given = self._objects.get(name)
        return name if given is None else given.metadata.uid

    @property
    def known_problems(self) -> list[tuple[str, str, str]]:
        """Kind, key and what is wrong, of every object with which something is now."""
        return [
            (*key, message)
            for key, told in sorted(self._told.items())
            for message in told.values()
        ]

    @property
    def priority_classes(self) -> Mapping[str, PriorityClass]:
        """PriorityClasses by name."""
        return self._classes

    def forget_solved(self) -> None:
        """Of what is to be told, leave what is still so."""
        left = {
            (key, p.message): p
            for p in self.problems
            if p.message in self._told.get(key := p.key, {}).values()
        }
        self.problems[:] = left.values()

    def take_changed(self) -> list[Group]:
        """The groups that changed since the last time."""
        changed, self._changed = self._changed, {}
        groups = [g for g in map(self.groups.get, changed) if g is not None]
        for group in groups:
            group.note_whole()
        return groups

    @property
    def next_at(self) -> float | None:
        """When something is to be looked at again, if anything is."""
        return min((*self._late.values(), *self._again.values()), default=None)

    # What fails inside.

    def set_aside(self, culprits: Iterable[Culprit], error: BaseException) -> None:
        """Jobs, nodes or queues that the engine failed at are told to it no more.

        For a while: see ``Quarantine``. Pods of such a job hold what they hold; where
        that fails as well, their nodes give no chips. With a queue that fails again its
        jobs are set aside, too.
        """
        for culprit in culprits:
            group = self.groups.get(culprit.key) if culprit.kind == "Job" else None
            if culprit.kind == "Job" and group is None:
                continue
            again = self.quarantine.of(culprit, self._now) is not None
            self._set_aside(culprit, error)
            if group is not None and again:
                self._close_all(group)
            if culprit.kind == "Queue" and again:
                self.set_aside(self._jobs_in(culprit.key), error)
            self._look_at(culprit)

    def engine_began(self, cost_s: float, now: float) -> None:
        """Another engine took so long to begin; what it was for is left alone."""
        self._again |= self.quarantine.begun(cost_s, now)

    def _jobs_in(self, queue: str) -> list[Culprit]:
        """The jobs of a queue that the engine knows."""
        return [
            Culprit("Job", group.name)
            for group in self.groups.values()
            if group.told is not None and group.told.queue == queue
        ]

    def _set_aside(self, culprit: Culprit, error: BaseException) -> None:
        """Set something aside, tell it, and try it again later."""
        aside = self.quarantine.put(culprit, told(error), self._now)
        self._again[culprit] = aside.until
        self.failures.append(Failure(culprit, aside.why, trace_of(error)))
        self._tell_culprit(culprit, aside.why)

    def _tell_culprit(self, culprit: Culprit, why: str) -> None:
        """Report on its object why a job, node or queue is set aside; empty if not."""
        match culprit.kind:
            case "Job":
                self._tell_job_aside(culprit.key, why)
            case "Node" if culprit.key in self._objects:
                self._tell_aside(culprit, self.uid_of_node(culprit.key), why)
            case "Queue" if culprit.key in self._queue_uids:
                self._tell_aside(culprit, self._queue_uids[culprit.key], why)

    def _tell_job_aside(self, name: str, why: str) -> None:
        """Report it on the PodGroup of a job, or on the pod that has none."""
        group = self.groups.get(name)
        if group is None:
            return
        if group.podgroup is not None:
            meta: Metadata = group.podgroup.metadata
            self._tell_aside(Culprit("PodGroup", meta.key), meta.uid, why)
        elif group.pods:
            pod = min(group.pods.values(), key=lambda pod: pod.order)
            self._tell_aside(Culprit("Pod", pod.key), pod.uid, why)

    def _each(
        self, kind: str, objects: Iterable[_T], put: Callable[[_T], None]
    ) -> None:
        """Put one object after the other; one that fails stops no other."""
        for each in objects:
            try:
                put(each)
            except Exception as error:  # noqa: BLE001 - whatever it is
                self._not_taken(kind, each, put, error)
            else:
                if self._untaken:
                    self._taken(kind, each)

    def _not_taken(
        self,
        kind: str,
        given: Any,  # noqa: ANN401 - any kind of object
        put: Callable[[Any], None],
        error: Exception,
    ) -> None:
        meta: Metadata = given.metadata
        culprit = Culprit(kind, meta.key)
        self._set_aside(culprit, error)
        self._untaken[culprit] = put, given
        self._tell_aside(culprit, meta.uid, told(error))
        if isinstance(given, Pod):
            self._expel(meta.uid)
            self._close(meta.key, meta.uid, given.spec.node_name)

    def _taken(self, kind: str, given: Any) -> None:  # noqa: ANN401 - any kind
        culprit = Culprit(kind, given.metadata.key)
        if self._untaken.pop(culprit, None) is not None:
            self._again.pop(culprit, None)
            self._tell_aside(culprit, given.metadata.uid, "")

    def _lost(self, kind: str, gone: Gone) -> None:
        """An object is gone: nothing of it is tried again."""
        if kind == "Pod" and self._shut.get(gone.key, ("",))[0] == gone.uid:
            self._open(gone.key)
        if self._untaken or self._again:
            for culprit in (Culprit(kind, gone.key), Culprit(kind, gone.name)):
                self._untaken.pop(culprit, None)
                self._again.pop(culprit, None)
                self.quarantine.forget(culprit)

    def _tell_aside(self, culprit: Culprit, uid: str, why: str) -> None:
        namespace, _slash, name = culprit.key.rpartition("/")
        line = (
            f"{culprit.kind} {quoted(culprit.key)} is quarantined for a while, because "
            f"it makes the scheduler fail ({why}); everything else goes on; hint: "
            "change or delete it, and report the trace in the scheduler's log"
        )
        told_now = line if why else ""
        self.tell(culprit.kind, namespace, name, uid, told_now, about="quarantine")

    def _changes(self, culprit: Culprit) -> None:
        """Something has changed: if it is set aside, it is tried again soon."""
        if self._again and culprit in self._again:
            at = self.quarantine.changed(culprit, self._now)
            self._again[culprit] = self._now if at is None else at

    def _try_again(self, now: float) -> None:
        due = [culprit for culprit, at in self._again.items() if at <= now]
        for culprit in due:
            del self._again[culprit]
            put, given = self._untaken.get(culprit, (None, None))
            if put is not None:
                self._each(culprit.kind, [given], put)
            else:
                self._tell_culprit(culprit, "")
                self._look_at(culprit)
        if due:
            self.quarantine.tidy(now)

    def _look_at(self, culprit: Culprit) -> None:
        match culprit.kind:
            case "Job" if culprit.key in self.groups:
                self._tell_anew(culprit.key)
                if self.groups[culprit.key].record is not None:
                    self._repairs[culprit.key] = None
            case "Namespace":
                for group in self.groups.values():
                    if namespace_of(group.name) == culprit.key:
                        self._tell_anew(group.name)
            case "Node" if culprit.key in self._objects:
                self._dirty_nodes[culprit.key] = None
                self._unread.discard(culprit.key)
            case "Queue":
                self._dirty_queues[culprit.key] = None

    def _close(self, key: str, uid: str, node: str) -> None:
        """No chips are given of the node of a pod of which nothing else is known."""
        if node:
            self._shut[key] = uid, node
            self._dirty_nodes[node] = None

    def _open(self, key: str) -> None:
        _uid, node = self._shut.pop(key, ("", ""))
        if node:
            self._dirty_nodes[node] = None

    def _close_all(self, group: Group) -> None:
        """Nothing of a group is told; what its pods hold is not known to be free."""
        for pod in group.pods.values():
            if _is_held(pod):
                self._close(pod.key, pod.uid, _nodes_of(pod)[0])

    def _open_all(self, group: Group) -> None:
        for pod in group.pods.values() if self._shut else ():
            if self._shut.get(pod.key) == (pod.uid, _nodes_of(pod)[0]):
                self._open(pod.key)

    def _expel(self, uid: str) -> None:
        """Forget a pod that could not be read to the end."""
        record = self.pods.pop(uid, None)
        if record is None:
            return
        if self._uids.get(record.key) == uid:
            del self._uids[record.key]
        self._in_namespace.get(record.namespace, {}).pop(uid, None)
        group = self.groups.get(record.job)
        if group is not None:
            group.pods.pop(uid, None)
            self._dirty[group.name] = None
        for there in _nodes_of(record):
            self._on_node.get(there, set()).discard(uid)
        for claim in record.claims:
            self._claimants.get(claim, set()).discard(uid)

    def _heard_of(self, group: Group, now: float) -> tuple[list[Event], list[Event]]:
        """What the engine hears of a group: what ends, and then everything else.

        Of one that fails it hears as little as possible.
        """
        try:
            pod = self._found_bound(group, now)
            if pod is not None:
                return [], self._arrival(group, pod, now)
            found = list(self._refresh(group, now))
            ends = list(takewhile(_is_of_the_end, found))
            return ends, found[len(ends) :]
        except Exception as error:  # noqa: BLE001 - one bad job stops no other
            again = self.quarantine.of(Culprit("Job", group.name), now) is not None
            self._set_aside(Culprit("Job", group.name), error)
            gone: list[Event] = [*self._withdraw(group, told_anew=True)]
            if not again:
                ends, others = self._heard_of(group, now)
                return [*gone, *ends], others
            self._close_all(group)
            group.reason = f"it is quarantined: {told(error)}"
            return gone, []

    def _found_bound(self, group: Group, now: float) -> PodRecord | None:
        """The pod of a group that is one bound pod, well, and news to the engine.

        After a start nearly all groups are, so what cannot be of them is not looked at.
        """
        is_new = group.is_alone and group.told is None and len(group.pods) == 1
        if not is_new or group.podgroup is not None or now < group.spared_until:
            return None
        if group.reason or self._shut or self._canary or self.quarantine.asides:
            return None
        (pod,) = group.pods.values()
        is_bound = pod.assumed is None and pod.holds and pod.node in self.nodes
        is_well = pod.signs is WELL and not (pod.is_stranded or group.is_ending(pod))
        return pod if is_bound and is_well else None

    def _arrival(self, group: Group, pod: PodRecord, now: float) -> list[Event]:
        """What ``_refresh`` tells of a group as ``_found_bound`` finds it."""
        job, pods = self._job_with(group, [pod], now)
        if job is None or group.reason:
            return list(self._refresh(group, now))
        placement = placement_of(pod, job)
        group.told, group.placed = job, {placement.replica: placement}
        if pod.ours:
            self._started[group.name] = None
            if self._told or words_of(pod):
                self._tell_misread(group, pods)
        return [JobArrived(job, (placement,), pod.started or None)]

    def _aside(self, group: Group, now: float) -> str | None:
        """What makes the scheduler fail, if a group is set aside for it, and why."""
        if not self.quarantine.asides:
            return None
        own = self.quarantine.of(Culprit("Job", group.name), now)
        if own is not None:
            return f"it makes the scheduler fail ({own.why}) and"
        all_of_it = Culprit("Namespace", namespace_of(group.name))
        others = self.quarantine.of(all_of_it, now)
        if others is None:
            return None
        return f"jobs of its namespace make the scheduler fail ({others.why}), so it"

    def _job_aside(
        self, group: Group, pods: list[PodRecord], aside: str
    ) -> tuple[Job | None, list[PodRecord]]:
        """A group that is set aside: its pods hold what they hold, and that is all."""
        group.reason = (
            f"{aside} is quarantined for a while; "
            "hint: change or delete it, and report the trace in the scheduler's log"
        )
        held = [pod for pod in pods if _is_held(pod) and pod.key not in self._shut]
        if not held:
            return None, []
        node = self.nodes[place_of(held[0])].node
        return held_job(group, held, node.product), held

    # What becomes of instructions.

    def sent(self, job: str, placements: Iterable[Placement]) -> list[PodRecord]:
        """Pods are sent to their places; they hold them from now on."""
        group = self.groups[job]
        pods = group.by_number()
        self._started[job] = None
        found = []
        for placement in placements:
            pod = pods[placement.replica]
            pod.assumed = placement
            group.placed[placement.replica] = placement
            self._on_node.setdefault(placement.node, set()).add(pod.uid)
            found.append(pod)
        return found

    def bound(self, uid: str) -> None:
        """The API server has bound a pod as it was told."""
        pod = self.pods.get(uid)
        if pod is not None:
            self.groups[pod.job].backoff = 0.0

    def failed(self, uid: str, now: float, why: str = "") -> None:
        """A pod was not bound, and why; it is tried again a little later."""
        pod = self.pods.get(uid)
        if pod is None or pod.assumed is None:
            return
        group = self.groups[pod.job]
        held = _claim(pod)
        self._off(pod, pod.assumed.node)
        pod.assumed = None
        self._give_up(pod, held, _claim(pod))
        if pod.holds:
            self._on_node.setdefault(pod.node, set()).add(uid)
        if group.backoff == 0.0 or now >= self._late.get(group.name, 0.0):
            doubled = min(MOST_BACKOFF_S, 2 * group.backoff)
            group.backoff = doubled or FIRST_BACKOFF_S
        pod.not_before, pod.refusal = now + group.backoff, why
        self._late[group.name] = pod.not_before
        self._dirty[group.name] = None

    def evicted(self, job: str, replicas: Iterable[int]) -> list[PodRecord]:
        """Pods are asked to end for others; until they do, they count as ending."""
        group = self.groups.get(job)
        if group is None:
            return []
        numbered = group.by_number()
        pods = {n: numbered[n] for n in replicas if n in numbered}
        group.ending |= pods.keys()
        before = group.evicting.intersection(group.pods)
        group.evicting = before | {pod.uid for pod in pods.values()}
        return list(pods.values())

    def stayed(self, job: str, uid: str, now: float) -> None:
        """A pod of *job* could not be asked to end: the job is told anew as it is.

        For a while none of its pods is asked again.
        """
        group = self.groups.get(job)
        if group is not None:
            group.evicting -= {uid}
            group.spared_until = now + SPARE_S
            self._late.setdefault(job, group.spared_until)
            self._tell_anew(job)

    def _tell_anew(self, job: str) -> None:
        """The engine hears of a job as if it had never heard of it."""
        self.groups[job].is_stale = True
        self._dirty[job] = None

    def let_in(self, job: str) -> None:
        """A job is let in."""
        group = self.groups.get(job)
        if group is not None:
            group.let_in = True

    def tell(
        self,
        kind: str,
        namespace: str,
        name: str,
        uid: str,
        message: str,
        *,
        about: str = "",
    ) -> None:
        """Something is wrong with an object, or no longer; told once.

        *about* parts what can be wrong with one object at the same time.
        """
        if not (message or self._told):
            return
        problem = Problem(kind, namespace, name, uid, message)
        known = self._told.get(problem.key, {})
        if known.get(about, "") == message:
            return
        if message:
            self._told[problem.key] = known | {about: message}
            self.problems.append(problem)
        elif len(known) == 1:
            del self._told[problem.key]
        else:
            del known[about]

    # Pods.

    def _pod_came(self, pod: Pod) -> None:
        record = PodRecord(pod, self.schedulers)
        if not record.ours and not record.holds:
            return
        before = self.pods.pop(self._uids.get(record.key, ""), None)
        if before is not None:
            self._forget(before)
        self._uids[record.key] = record.uid
        self.pods[record.uid] = record
        self._in_namespace.setdefault(record.namespace, {})[record.uid] = record
        self._label_news |= self._selected.add(record.base)
        self._count_labels(record)
        if pod.spec.scheduler_name == VOLCANO and not (record.group or record.node):
            record.not_before = record.created + GROUP_WAIT_S
            self._late[f"pod {record.key}"] = record.not_before
        self._enter(record)

    def _forget(self, record: PodRecord) -> None:
        """A pod is gone."""
        self._selected.drop(record.base)
        there = self._in_namespace[record.namespace]
        there.pop(record.uid, None)
        if not there:
            del self._in_namespace[record.namespace]
        self._leave(record)

    def _pod_changed(self, record: PodRecord, pod: Pod) -> None:
        before = record.seen
        held, ran, said = _claim(record), record.runs, words_of(record)
        record.update(pod)
        if words_of(record) != said:
            self._dirty[record.job] = None
        if record.runs and not ran:
            self._started[record.job] = None
        sent = record.assumed is not None and record.state is not State.WAITING
        moved = record.group != before[3]
        after = record.seen
        ails = after[6] != before[6]
        if sent and self._confirm(record) and not (record.deleting or moved or ails):
            self._changed[record.job] = None
            return
        if self._count_labels(record):
            self._dirty[record.job] = None
        if before == after:
            return
        self._give_up(record, held, _claim(record))
        if before[3] != after[3]:
            record.not_before = 0.0
            self._leave(record)
            self._enter(record)
            return
        if before[1] != after[1]:
            self._off(record, before[1])
            self._on_node.setdefault(record.node, set()).add(record.uid)
        self._check_chips(record)
        self._dirty[record.job] = None

    def _confirm(self, record: PodRecord) -> bool:
        """The API server says where a pod is; whether it was sent there."""
        assert record.assumed is not None
        assumed, record.assumed = record.assumed, None
        if assumed.node != record.node:
            self._off(record, assumed.node)
            self._on_node.setdefault(record.node, set()).add(record.uid)
            return False
        return record.holds and {*assumed.chips} == {*(record.chips or ())}

    def _enter(self, record: PodRecord) -> None:
        """A pod joins its group."""
        known = record.ours and record.group
        name = f"{record.namespace}/{record.group}" if known else f"pod {record.key}"
        node = self._objects.get(record.node)
        if node is not None:
            record.node = node.metadata.name  # one text for all pods of a node
        group = self._group(name)
        group.pods[record.uid] = record
        record.job = name
        self._dirty[name] = None
        if place := place_of(record):
            self._on_node.setdefault(place, set()).add(record.uid)
        for claim in record.claims:
            self._claimants.setdefault(claim, set()).add(record.uid)
        self._check_chips(record)

    def _leave(self, record: PodRecord) -> None:
        """A pod leaves its group."""
        group = self.groups[record.job]
        group.pods.pop(record.uid, None)
        self._dirty[group.name] = None
        self._give_up(record, _claim(record), ("", ()))
        record.number = None
        for node in {record.node, place_of(record)}:
            self._off(record, node)
        for claim in record.claims:
            others = self._claimants.get(claim, set()) - {record.uid}
            if others:
                self._claimants[claim] = others
            else:
                self._claimants.pop(claim, None)

    def _give_up(
        self,
        record: PodRecord,
        before: tuple[str, tuple[int, ...]],
        after: tuple[str, tuple[int, ...]],
    ) -> None:
        """Chips are no longer a pod's: another that names them too has them now."""
        if before == after:
            return
        node, chips = before
        lost = {*chips} if node != after[0] else {*chips} - {*after[1]}
        if lost:
            losers = self._moved.setdefault(node, {})
            for chip in lost:
                losers[chip] = SEVERAL if chip in losers else record.uid

    def _settle(self) -> None:
        """Look once at the pods of every node where chips were given up or named.

        The engine lets the first of two pods hold a chip and knows nothing of the
        other, which is told anew once the first gives the chip up. Until then the node
        is read anew: which of them holds another chip is unknown.
        """
        moved, self._moved = self._moved, {}
        for node, losers in moved.items():
            named = set[int]()
            for uid in sorted(self._on_node.get(node, ())):
                pod = self.pods.get(uid)
                place, own = ("", ()) if pod is None else _claim(pod)
                if pod is None or place != node:
                    continue
                if any(losers.get(chip, uid) != uid for chip in own):
                    self._tell_anew(pod.job)
                if not named.isdisjoint(own):
                    self._dirty_nodes[node] = None
                named.update(own)

    def _off(self, record: PodRecord, node: str) -> None:
        """A pod is no longer on *node*."""
        there = self._on_node.get(node)
        if there is not None:
            there.discard(record.uid)
            if not there:
                del self._on_node[node]
            facts = self.nodes.get(node)
            known = facts is None or facts.is_short or facts.is_unclear
            if known or record.asked != len(record.chips or ()):
                self._dirty_nodes[node] = None

    def _check_chips(self, record: PodRecord) -> None:
        """Report a pod whose chips are not known."""
        if not record.node or not (record.asked or record.chip_text):
            return
        facts = self.nodes.get(record.node)
        unclear = record.is_unclear or (facts is not None and _is_astray(record, facts))
        known = facts is not None and (unclear or facts.is_unclear or facts.is_short)
        place, own = _claim(record)
        if known:
            self._dirty_nodes[record.node] = None
        elif own:
            self._moved.setdefault(place, {})
        said, found = "", quoted(record.chip_text[:60])
        if unclear:
            said = (
                f"Pod {quoted(record.key)} holds {record.asked} "
                f"{record.resource or 'parts of chips'} of node "
                f"{quoted(record.node)}, its annotation says {found}, want the "
                "names of the chips; no chips of that node are given until it does"
            )
        elif record.holds and not record.asked:
            said = (
                f"Pod {quoted(record.key)} asks for no chips, its annotation says "
                f"{found}, want none; it holds none; hint: take the annotation off"
            )
        self.tell("Pod", record.namespace, record.name, record.uid, said)

    def _count_labels(self, record: PodRecord) -> bool:
        """Whether other labels of a pod count than before."""
        if not (self._selected or record.demand.labels):
            return False
        kept = self._selected.of(record.namespace, record.labels)
        return record.count_labels(kept)

    def _relabel(self) -> None:
        """Count the labels of pods anew in namespaces where more of them matter.

        The engine hears again of at most ``RELABELLED`` groups in a turn for this.
        """
        news, self._label_news = self._label_news, set()
        if ANY_NAMESPACE in news:
            news = {*self._in_namespace}
        for namespace in sorted(news):
            self._to_relabel |= dict.fromkeys(self._in_namespace.get(namespace, ()))
        if not self._to_relabel:
            return
        n_told_again = 0
        left = iter(self._to_relabel)
        for uid in left:
            record = self.pods.get(uid)
            if record is None or not record.labels or not self._count_labels(record):
                continue
            n_told_again += record.job not in self._dirty
            self._dirty[record.job] = None
            if n_told_again == RELABELLED:
                break
        self._to_relabel = dict.fromkeys(left)

    def _touch(self, uids: Iterable[str]) -> None:
        for uid in sorted(uids):
            if uid in self.pods:
                self._dirty[self.pods[uid].job] = None

    # Groups.

    def _group(self, name: str) -> Group:
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = Group(name)
        return group

    def _refresh(self, group: Group, now: float) -> Iterator[Event]:
        """What the engine hears of a group that has changed."""
        job, pods = self._job(group, now)
        self._spare(group, job, pods)
        self._note_reason(group)
        yield from self._tell_refused(group)
        if group.told is not None:
            yield from self._tell_ailments(group, job or group.told)
        if job is None:
            yield from self._withdraw(group)
            yield from _forgotten(group)
            if not group.pods and group.podgroup is None:
                del self.groups[group.name]
                self.unready.pop(group.name, None)
            return
        known = {
            placement.replica: placement
            for placement in (placement_of(pod, job) for pod in pods if _is_held(pod))
        }
        if group.told is not None and self._is_to_be_told_anew(group, job, known):
            yield from self._withdraw(group, told_anew=True)
        if len(pods) > len(known):
            group.complete_at = group.complete_at or now
        elif not pods:
            group.complete_at = 0.0
        if gone := group.placed.keys() - known.keys():
            ends_run = _has_run(group)
            yield PodsGone(group.name, tuple(sorted(gone)), ends_run=ends_run)
            group.ending -= gone
            group.running -= gone
        if job != group.told:
            starts = [pod.started for pod in pods if pod.started]
            listed = tuple(known[n] for n in sorted(known))
            since = _waiting_since(group, job)
            yield JobArrived(job, listed, min(starts, default=None), since)
            yield from self._tell_retries(group, job)
        group.told, group.placed = job, known
        self._tell_misread(group, pods)
        self._note_watched(group)
        yield from self._tell_ailments(group, job)
        ends = {pod.number for pod in pods if group.is_ending(pod)}
        new = tuple(n for n in sorted(known) if n in ends and n not in group.ending)
        if new:
            yield PodsEnding(group.name, new)
            group.ending |= {*new}

    def _tell_misread(self, group: Group, pods: list[PodRecord]) -> None:
        """Tell what is said of faults that means nothing, of jobs that are ours.

        Of what pods said, nothing is known while there are none.
        """
        if group.is_outside or (pods and not pods[0].ours):
            return
        podgroup, lead = group.podgroup, lead_of(pods) if pods else None
        if podgroup is not None:
            self._tell_of_group(podgroup, misread(podgroup), "faults")
        if lead is None:
            return
        found = misread_of(lead, pods, podgroup)
        if podgroup is not None:
            self._tell_of_group(podgroup, found, "faults of pods")
        else:
            told = f"Pod {quoted(lead.key)}: {found}" if found else ""
            own = lead.namespace, lead.name, lead.uid
            self.tell("Pod", *own, told, about="faults")

    def _tell_of_group(self, podgroup: PodGroup, found: str, about: str) -> None:
        meta = podgroup.metadata
        told = f"PodGroup {quoted(meta.key)}: {found}" if found else ""
        self.tell("PodGroup", meta.namespace, meta.name, meta.uid, told, about=about)

    def _note_reason(self, group: Group) -> None:
        if group.reason:
            self.unready[group.name] = None
        else:
            self.unready.pop(group.name, None)

    def _is_to_be_told_anew(
        self, group: Group, job: Job, known: Mapping[int, Placement]
    ) -> bool:
        """Whether pods are elsewhere, or something else, than the engine knows."""
        assert group.told is not None
        return (
            group.is_stale
            or any(
                n not in group.placed or not _same_place(group.placed[n], place)
                for n, place in known.items()
            )
            or (bool(known) and _asks_otherwise(group.told, job))
        )

    def _find_record(self, group: Group, podgroup: PodGroup) -> bool:
        """Whether there is a record of the repair of a job that was not read yet."""
        text = self._stored.pop((group.name, podgroup.metadata.uid), None)
        if text is None:
            return False
        found = ""
        if records.writer_of(text) in ("", *self.schedulers):
            try:
                group.record = records.read(text)
            except records.BadRecord as error:
                found = f"the record of its repair {error}"
            else:
                group.doomed = records.doomed_in(text)
                group.is_finished = False
                self._repairs[group.name] = self._dirty[group.name] = None
        self._tell_of_group(podgroup, found, "repair")
        return True

    def _spare(self, group: Group, job: Job | None, pods: list[PodRecord]) -> None:
        """Drop pending deletions of a job that no longer lets us delete its pods."""
        wants = job is not None and self.mode_of(job).is_ours
        if pods and not wants:
            group.doomed = NO_NAMES

    def mode_of(self, job: Job) -> FaultMode:
        """How pods of a faulty job are deleted, by its label or the configuration."""
        return with_defaults(job, self._conf.settings).recovery.mode

    def remembered(self, job: str, record: Record | None) -> None:
        """What is remembered of the repair of *job*, which we write down ourselves."""
        group = self.groups.get(job)
        if group is not None:
            group.record, group.doomed = record, NO_NAMES

    def _tell_notes(self, out: list[Event]) -> None:
        """Report what was read of running times and reservations."""
        out += [self._notes[kind] for kind in self._notes_unheard]
        self._notes_unheard.clear()

    def _tell_faults(self, out: list[Event]) -> None:
        """Report the faults that were read."""
        if self._faults_changed:
            self._faults_changed = False
            out += self._known_of_faults()

    def _tell_repairs(self, out: list[Event], now: float) -> None:
        """Report the records that were read."""
        repairs, self._repairs = self._repairs, {}
        out += (
            _repair_known(group, group.record or OVER, now)
            for group in filter(None, map(self.groups.get, repairs))
            if self._may_be_repaired(group, now)
        )

    def _may_be_repaired(self, group: Group, now: float) -> bool:
        """Whether the engine hears of a repair: not of that of a job set aside."""
        return self._aside(group, now) is None and not group.is_outside

    def _known_of_faults(self) -> Iterator[Event]:
        if self._faults:
            yield FaultsKnown(self._faults)
        if self._deletions:
            yield DeletionsKnown(self._deletions)

    def _tell_retries(self, group: Group, job: Job) -> Iterator[Event]:
        """Report once the retries that the previous leader counted as used."""
        left = self._retries.get(group.name)
        if left is None or not job.recovery.retries or group.record is not None:
            return
        if group.podgroup is None or left.uid not in uids_of(group.podgroup):
            return
        del self._retries[group.name]
        used = max(0, job.recovery.retries - max(0, left.times))
        if used:
            group.record = Record(since=0.0, retries_used=used, is_over=True)
            yield RepairKnown(group.name, group.record)

    def _tell_refused(self, group: Group) -> Iterator[Event]:
        """Which pods their nodes refused, and why; said while it is known where."""
        pods = [p for p in group.pods.values() if p.refused and not p.refused_told]
        if not pods or group.is_outside or not pods[0].ours:
            return
        number(group, pods)
        for pod in pods:
            assert pod.number is not None
            pod.refused_told = True
            if not pod.deleting:
                group.is_remembered = True
                yield PodsRefused(group.name, (pod.number,), pod.refused)

    def _note_watched(self, group: Group) -> None:
        """Queue a job with placed pods for a report of its running pods."""
        group.is_watched = group.is_watched and bool(group.placed)
        if group.placed and not group.is_watched:
            self._started[group.name] = None

    def _tell_runs(self, out: list[Event]) -> None:
        """Which pods run, of jobs of ours; others are left alone."""
        started, self._started = self._started, {}
        for group in filter(None, map(self.groups.get, started)):
            if group.told is None or not group.placed or not _is_own(group):
                continue
            new = _begun(group)
            if new or not group.is_watched:
                since = None if group.is_watched else _last_bound(group)
                out.append(PodsRun(group.name, new, since))
                group.running = with_pods(group.running, new)
                group.is_watched = True

    def _tell_ailments(self, group: Group, job: Job) -> Iterator[Event]:
        """What is wrong with pods themselves, if that is news."""
        pods = group.pods.values()
        if not group.ailing and all(_is_well(pod) for pod in pods):
            return
        number(
            group,
            [p for p in pods if (p.state is State.FAILED and p.node) or p.is_stranded],
        )
        # The previous leader has counted the pods that it was about to delete.
        left = (pod for pod in pods if not group.is_doomed(pod))
        found = ailments_of(left, job.recovery)
        if found != group.ailing:
            group.ailing = found
            yield PodFaultsReported(group.name, found)

    def _withdraw(self, group: Group, *, told_anew: bool = False) -> Iterator[Event]:
        """The job of a group is gone, or is about to be *told_anew*."""
        if group.told is not None:
            returns, ends_run = True, False
            if not told_anew:  # else nothing is read: the job may be one that fails
                returns, ends_run = _may_return(group), _has_run(group)
            group.is_remembered = returns
            yield JobGone(group.name, returns, ends_run)
        group.told, group.placed, group.ending = None, {}, NONE_OF_THEM
        group.ailing = ()
        group.running, group.is_watched = NONE_OF_THEM, False
        group.complete_at = 0.0
        group.let_in = False
        group.is_stale = False

    def _job(self, group: Group, now: float) -> tuple[Job | None, list[PodRecord]]:
        """The job of a group as it is now, and the pods that it has."""
        for pod in group.pods.values():
            self._bar(pod)
            self._strand(pod, now)
        pods, group.reason = members_of(group, self.nodes, now)
        group.unreadable = ""
        aside = self._aside(group, now)
        if aside is not None:
            return self._job_aside(group, pods, aside)
        self._open_all(group)
        refused = self._refusal(group)
        group.is_outside = bool(refused)
        if refused:
            pods = [pod for pod in pods if _is_held(pod)]
            group.reason = refused if group.pods else ""
        return self._job_with(group, pods, now)

    def _job_with(
        self, group: Group, pods: list[PodRecord], now: float
    ) -> tuple[Job | None, list[PodRecord]]:
        """The job of a group; of pods that cannot be read, what they hold."""
        refused = group.is_outside
        try:
            if pods and not pods[0].ours:
                node = self.nodes[place_of(pods[0])].node
                return held_job(group, pods, node.product), pods
            if pods:
                job = job_of(group, pods, self._facts)
                if refused:
                    both = (TOR_AFFINITY, FAULT_SCHEDULING)
                    declined = both if self._facts.has_defaults else ()
                    job = replace(job, recovery=NO_RECOVERY, declined=declined)
                if now < group.spared_until:
                    return replace(job, preemptable=False), pods
                return self._budgets.heeded(job, pods), pods
            return None if refused else _empty_job(group, self._facts), []
        except BadPod as error:
            group.reason = group.unreadable = str(error)
            held = [pod for pod in pods if _is_held(pod)]
            if held:
                node = self.nodes[place_of(held[0])].node
                return held_job(group, held, node.product), held
        return None, []

    def _refusal(self, group: Group) -> str:
        """Why a group of ours is not placed, if there is a canary without it."""
        others = any(not pod.ours for pod in group.pods.values())
        if self._canary is None or others:
            return ""
        where = namespace_of(group.name), queue_of(group)
        return "" if self._canary.admits(*where) else self._canary.refusal(*where)

    def _bar(self, pod: PodRecord) -> None:
        """A pod whose claims are not bound waits for them."""
        if not pod.claims or pod.state not in (State.WAITING, State.BARRED):
            return
        told = f"pod {quoted(pod.name)} has unbound volume claims: "
        if pod.problem and not pod.problem.startswith(told):
            return  # it would stay, were they bound
        unbound = [claim for claim in pod.claims if claim not in self._claims]
        pod.problem = f"{told}{', '.join(unbound[:3])}" if unbound else ""

    def _strand(self, pod: PodRecord, now: float) -> None:
        """A pod whose node is gone is stranded; a node may be heard of after it."""
        pod.is_stranded = False
        there = pod.node in self._objects or pod.node in self._unread
        if there or not (pod.holds and pod.ours):
            return
        settled = pod.created + NODE_HEARD_S
        pod.is_stranded = pod.node in self._gone or now >= settled
        if not pod.is_stranded:
            self._late.setdefault(pod.job, settled)

    def _disturb(self, namespace: str, selectors: list[Selector]) -> None:
        """Budgets of *namespace* changed, over the pods that *selectors* mean."""
        pods = self._in_namespace.get(namespace, {}) if selectors else {}
        for pod in pods.values():
            if pod.ours and any(selects(each, pod.labels) for each in selectors):
                self._dirty[pod.job] = None

    def _classes_changed(self) -> None:
        values = {name: each.value for name, each in self._classes.items()}
        default = max(
            (each.value for each in self._classes.values() if each.global_default),
            default=0,
        )
        facts = self._facts
        if (values, default) != (facts.priorities, facts.default_priority):
            facts.priorities, facts.default_priority = values, default
            self._dirty |= {n: None for n, g in self.groups.items() if g.podgroup}

    # Nodes, queues, topology.

    def _tell_nodes(self, out: list[Event]) -> list[str]:
        """Tell of nodes that changed; those that vanished are told of last."""
        dirty, self._dirty_nodes = self._dirty_nodes, {}
        changed, vanished = [], []
        for name in dirty:
            given = self._objects.get(name)
            before = self.nodes.get(name)
            if given is None:
                if before is not None:
                    del self.nodes[name]
                    vanished.append(name)
                    self._touch(self._on_node.get(name, ()))
                continue
            found = self._read_node(name, given)
            if found is None:
                if before is not None:
                    del self.nodes[name]
                    vanished.append(name)
                    self._touch(self._on_node.get(name, ()))
                continue
            self.nodes[name] = found
            if before is None or before.node != found.node:
                changed.append(found.node)
            if before is None or before.node.product != found.node.product:
                self._touch(self._on_node.get(name, ()))
            uid, told = given.metadata.uid, "; ".join(found.problems[:3])
            self.tell("Node", "", name, uid, told)
        if changed:
            out.append(NodesChanged(tuple(changed)))
        return vanished

    def _read_node(self, name: str, given: NodeObject) -> NodeFacts | None:
        """What is known of a node; None where it is set aside."""
        culprit = Culprit("Node", name)
        if self.quarantine.of(culprit, self._now) is not None:
            self._unread.add(name)
            return None
        try:
            return self._facts_of(name, given)
        except Exception as error:  # noqa: BLE001 - one bad node stops no other
            self._set_aside(culprit, error)
            self._unread.add(name)
            return None

    def _facts_of(self, name: str, given: NodeObject) -> NodeFacts:
        pods = [self.pods[uid] for uid in self._on_node.get(name, ())]
        shut = any(node == name for _uid, node in self._shut.values())
        claims = (_claim(pod) for pod in pods)
        named = [chip for node, own in claims if node == name for chip in own]
        held = mask_of(named)
        # Of two pods that name the same chip, one holds another: which one is unknown.
        twice = held.bit_count() < len(named)
        return node_of(
            given,
            self._reports.of(name),
            self.topology,
            is_unclear=shut or twice or any(pod.is_unclear for pod in pods),
            held=held,
        )

    def _put_topology(self, given: ConfigMap) -> None:
        metadata = given.metadata
        try:
            found, warnings = topology.read_topology({"data": given.data or {}})
        except topology.BadTopology as error:
            warnings = [str(error)]
            found = None
        own = metadata.namespace, metadata.name, metadata.uid
        self.tell("ConfigMap", *own, "; ".join(warnings[:3]))
        if found is not None and found != self.topology:
            self.topology = found
            self._topology_changed()

    def _topology_changed(self) -> None:
        self._leaves_changed = self._conf_changed = True
        self._dirty_nodes |= dict.fromkeys(self._objects)

    def _effective_conf(self) -> Conf:
        """The configuration, with what the topology says of the switches."""
        if self.topology is None:
            return self._conf
        settings = replace(self._conf.settings, nodes_per_leaf=self.topology.leaf_size)
        if self.topology.single_layer:
            settings = replace(settings, switch_mode=SwitchMode.SINGLE_LAYER)
        return replace(self._conf, settings=settings)

    def _tell_queues(self, out: list[Event]) -> None:
        dirty, self._dirty_queues = self._dirty_queues, {}
        for name in dirty:
            found = self._queues.get(name)
            if self.quarantine.of(Culprit("Queue", name), self._now) is not None:
                continue
            if found is not None:
                out.append(QueueChanged(found))
            elif name == DEFAULT_QUEUE:
                out.append(QueueChanged(Queue(DEFAULT_QUEUE)))
            else:
                out.append(QueueGone(name))


def _forgotten(group: Group) -> Iterator[Event]:
    """A job that is not there, and of which the engine knows something, is over."""
    if group.is_remembered and not _may_return(group):
        group.is_remembered = False
        yield JobGone(group.name, ends_run=False)


def _repair_known(group: Group, record: Record, now: float) -> RepairKnown:
    """What the engine hears of the repair of a group, and remembers."""
    group.is_remembered = True
    return RepairKnown(group.name, _sound(record, now, len(group.pods)))


def _sound(record: Record, now: float, n_pods: int) -> Record:
    """*record* as the engine takes it, which another version may have written.

    Nothing lies in the future, and nothing before 1970: clocks differ. What was deleted
    was deleted sometime. Of more pods than a job may have had, the first count: all
    that is remembered is looked at in every cycle.
    """
    since, deleted_at = _past(record.since, now), record.deleted_at
    if record.deleted and deleted_at is None:
        deleted_at = since
    most = MOST_DELETED + n_pods
    deleted, placements = record.deleted[:most], record.placements
    if len(placements) > most:  # successors return to where those were
        gone = {*deleted}
        placements = (*sorted(placements, key=lambda p: p.replica not in gone)[:most],)
    return replace(
        record,
        since=since,
        ailments=record.ailments[:most],
        placements=placements,
        deleted=deleted,
        deleted_at=None if deleted_at is None else _past(deleted_at, now),
        stuck_at=None if record.stuck_at is None else _past(record.stuck_at, now),
        retries_used=min(max(0, record.retries_used), MAX_RETRIES),
    )


def _past(moment: float, now: float) -> float:
    return max(0.0, min(moment, now))


def _is_astray(record: PodRecord, facts: NodeFacts) -> bool:
    """Whether a pod says that it holds chips which its node does not have."""
    return record.holds and max(record.chips or (0,)) >= facts.node.chips


def _claim(pod: PodRecord) -> tuple[str, tuple[int, ...]]:
    """The node of a pod and the chips that it names there; nothing without a node."""
    if pod.assumed is not None:
        return pod.assumed.node, tuple(pod.assumed.chips)
    return (pod.node, pod.chips or ()) if pod.holds else ("", ())


def _nodes_of(pod: PodRecord) -> list[str]:
    """The node where a pod is or is about to be, and the one that it is bound to."""
    return [*([] if pod.assumed is None else [pod.assumed.node]), pod.node]


def _empty_job(group: Group, facts: Facts) -> Job | None:
    """The job of a group without pods that hold or want something, if it is one."""
    failed = failed_job(group, has_defaults=facts.has_defaults)
    return failed or podless_job(group, facts)


def _is_of_the_end(event: Event) -> bool:
    """Whether something is over, or is about to be and why."""
    return isinstance(event, JobGone | PodsGone | PodFaultsReported | PodsRefused)


def _is_own(group: Group) -> bool:
    """Whether it is on us to see that its pods run."""
    pods = group.pods.values()
    return not (group.is_outside or group.unreadable) and all(p.ours for p in pods)


def _begun(group: Group) -> tuple[int, ...]:
    """The pods of a group that run, and of which the engine does not know it."""
    numbers = [
        pod.number
        for pod in group.pods.values()
        if pod.runs and pod.assumed is None and pod.number in group.placed
    ]
    return tuple(sorted(n for n in numbers if n is not None and n not in group.running))


def _last_bound(group: Group) -> float | None:
    """When the last pod that does not run yet was bound; None if unknown."""
    late = (p.bound_at for p in group.pods.values() if p.holds and not p.runs)
    return max(late, default=0.0) or None


def _is_well(pod: PodRecord) -> bool:
    return pod.signs is WELL and pod.state is not State.FAILED and not pod.is_stranded


def _has_run(group: Group) -> bool:
    """Whether pods of a group run, or ran until now."""
    pods = group.pods.values()
    return bool(group.running) or any(p.runs or (p.has_ended and p.node) for p in pods)


def _may_return(group: Group) -> bool:
    """Whether a job without pods is expected to have some again."""
    if group.podgroup is None:
        return False
    if group.pods:
        return not all(pod.succeeded for pod in group.pods.values())
    return group.podgroup.status.phase != "Completed"


def _waiting_since(group: Group, job: Job) -> float | None:
    """When the last pod was made of a job that waits; a restart changes nothing."""
    pods = [pod for pod in group.pods.values() if not pod.has_ended]
    if any(map(_is_held, pods)):
        return None
    return max((pod.created for pod in pods), default=job.created) or None


def _is_settled(group: Group, view: SchedulerState) -> bool:
    """Whether the engine knows of a group what its objects say, and no more."""
    job_state = view.job_states.get(group.name)
    if job_state is None or group.told is None:
        return job_state is None and group.told is None
    return (
        job_state.phase is Phase.RUNNING
        and job_state.placements.keys() == group.placed.keys()
        and job_state.terminating == group.ending
        and len(group.placed) == len(group.pods)
    )


def _is_held(pod: PodRecord) -> bool:
    """Whether a pod holds something, or is about to."""
    return pod.assumed is not None or pod.holds


def _starts_beside_others(group: Group) -> bool:
    """Whether a group holds nothing yet, and has requirements on other pods."""
    pods = group.pods.values()
    return any(selects_pods(pod.base) for pod in pods) and not any(map(_is_held, pods))


def _same_place(one: Placement, other: Placement) -> bool:
    return one.node == other.node and {*one.chips} == {*other.chips}


def _asks_otherwise(one: Job, other: Job) -> bool:
    """Whether pods are something else to their nodes."""
    if one.demand is other.demand and one.roles == other.roles:
        return False
    known = {n: role.demand for role, own in one.role_ranks for n in own}
    return any(
        not known.get(n, role.demand).is_like(role.demand)
        for role, own in other.role_ranks
        for n in own
    )


def _differ(one: PodGroup, other: PodGroup) -> bool:
    """Whether more than the status is another."""
    a, b = one.metadata, other.metadata
    same = a.labels == b.labels and a.annotations == b.annotations
    return not same or one.spec != other.spec
