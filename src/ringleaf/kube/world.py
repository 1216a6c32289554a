"""What the API server says, turned into what the engine hears.

Reflectors put objects in and take them out, in any order and as often as they like;
``events`` tells what is new since it was last asked. All of it follows from the objects
that are there, so after a restart the engine hears the same again. The one thing the
world knows better is where pods were sent that the API server has not confirmed yet.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Final, NamedTuple

from msgspec.structs import replace

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
    PodsAil,
    PodsEnding,
    PodsGone,
    PodsRefused,
    PodsRun,
    QueueChanged,
    QueueGone,
    RepairKnown,
)
from ringleaf.framework.conf import DEFAULT, Conf
from ringleaf.kube import names, records, topology
from ringleaf.kube.budgets import Budgets
from ringleaf.kube.canary import Canary
from ringleaf.kube.demand import BadPod
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
from ringleaf.kube.nodes import NodeFacts, leaves_of, node_of
from ringleaf.kube.objects import (
    Budget,
    Claim,
    ConfigMap,
    NodeObject,
    Pod,
    PodGroup,
    PriorityClass,
    QueueObject,
)
from ringleaf.kube.pods import WELL, PodRecord, State, selected_keys
from ringleaf.kube.quantity import BadQuantity
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
from ringleaf.model.demand import Selector, selects
from ringleaf.model.fault import NO_RECOVERY, Deletion, Fault, Mode, Record
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.model.queue import DEFAULT_QUEUE, Queue
from ringleaf.model.settings import SwitchMode
from ringleaf.model.topology import Topology, quoted

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

MOST_DELETED: Final = 4096
"""Pods of which it is believed that they were deleted, beside those that are there."""
OVER: Final = Record(since=0.0, is_over=True)
"""What there is to know of a repair whose record is gone."""


class RetriesLeft(NamedTuple):
    """How often pods of a job may still fail; *uid* says of which job of its name."""

    uid: str
    times: int


class Problem(NamedTuple):
    """Something that somebody should mend: on which object, and what."""

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
        """What is to be told; whoever tells it empties the list."""
        self.topology: Topology | None = None
        self._facts = Facts()
        self._budgets = Budgets()
        self._objects: dict[str, NodeObject] = {}
        self._uids: dict[str, str] = {}
        self._on_node: dict[str, set[str]] = {}
        self._reports = Reported()
        self._heed_conf()
        self._queues: dict[str, Queue] = {}
        self.allocated: dict[str, tuple[str, ...]] = {}
        """Queue -> the resources of which its status says that they are used."""
        self._classes: dict[str, PriorityClass] = {}
        self._claims: set[str] = set()
        self._claimants: dict[str, set[str]] = {}
        self._dirty: dict[str, None] = {}
        self._dirty_nodes: dict[str, None] = {}
        self._dirty_queues: dict[str, None] = {}
        self._leaves_changed = self._conf_changed = False
        self._counted = {"cpu", "memory", "pods"}
        """Resources that some pod asks; a node that does not name one has none."""
        self._started: dict[str, None] = {}
        """Groups of which pods were sent, or began to run."""
        self._gone: set[str] = set()
        """Nodes that were there, and are no more."""
        self._unread: set[str] = set()
        """Nodes that are there, and of which nobody can read what they are."""
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
        self._retries: dict[str, RetriesLeft] = {}
        """Job -> how often its pods may still fail, by whoever scheduled before.

        It counts by the budget of then, so it is looked at once.
        """
        self._changed: dict[str, None] = {}
        self._told: dict[tuple[str, str], dict[str, str]] = {}
        """Kind and key of an object -> what about it -> what was told."""
        self.unready: dict[str, None] = {}
        """Groups of which pods wait for something else than room."""
        self.mismatches = 0
        """Reports that came and did not fit their check code."""

    # What reflectors say.

    def put_pods(self, pods: Iterable[Pod]) -> None:
        """Pods are new or changed."""
        for pod in pods:
            uid = pod.metadata.uid
            record = self.pods.get(uid)
            if record is not None:
                self._pod_changed(record, pod)
            elif pod.spec.scheduler_name in self.schedulers or pod.spec.node_name:
                self._pod_came(pod)

    def drop_pods(self, gone: Iterable[Gone]) -> None:
        """Pods are gone."""
        for each in gone:
            record = self.pods.pop(each.uid, None)
            if record is None:
                continue
            if self._uids.get(record.key) == record.uid:
                del self._uids[record.key]
            self._told.pop(("Pod", record.key), None)
            self._leave(record)

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
            if self._objects.pop(each.name, None) is not None:
                self._dirty_nodes[each.name] = None
                self._gone.add(each.name)
            self._told.pop(("Node", f"/{each.name}"), None)

    def unread_nodes(self, key: str) -> None:
        """A node is there that cannot be read: its pods are not stranded."""
        self._unread.add(key.rpartition("/")[2])

    def put_groups(self, podgroups: Iterable[PodGroup]) -> None:
        """PodGroups are new or changed."""
        for each in podgroups:
            group = self._group(each.metadata.key)
            before, group.podgroup = group.podgroup, each
            self._find_record(group, each)
            if before is None or not group.pods or _differ(before, each):
                self._dirty[group.name] = None

    def drop_groups(self, gone: Iterable[Gone]) -> None:
        """PodGroups are gone."""
        for each in gone:
            group = self.groups.get(each.key)
            if group is not None:
                if group.record is not None:
                    self.without_job.append(Stored(each.key, each.uid, ""))
                group.podgroup = group.record = None
                group.doomed = frozenset()
                self._dirty[group.name] = None
            self._told.pop(("PodGroup", each.key), None)

    def put_queues(self, queues: Iterable[QueueObject]) -> None:
        """Queues are new or changed."""
        for each in queues:
            name = each.metadata.name
            self.allocated[name] = tuple(each.status.allocated or ())
            if name == ROOT:
                continue
            try:
                found = read_queue(each)
            except BadQuantity as error:
                self.tell("Queue", "", name, each.metadata.uid, str(error))
                continue
            if self._queues.get(name) != found:
                self._queues[name] = found
                self._dirty_queues[name] = None

    def drop_queues(self, gone: Iterable[Gone]) -> None:
        """Queues are gone."""
        for each in gone:
            if self._queues.pop(each.name, None) is not None:
                self._dirty_queues[each.name] = None
            self.allocated.pop(each.name, None)
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
        for each in budgets:
            self._disturb(each.metadata.namespace, self._budgets.put(each))

    def drop_budgets(self, gone: Iterable[Gone]) -> None:
        """PodDisruptionBudgets are gone."""
        for each in gone:
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
        for each in maps:
            metadata = each.metadata
            if metadata.name == topology.NAME:
                self._put_topology(each)
            elif is_report(metadata.name):
                found = read(each)
                self.mismatches += found.mismatches
                self._dirty_nodes |= self._reports.put(metadata.key, found)
                told = "; ".join(found.problems[:3])
                self.tell(
                    "ConfigMap", metadata.namespace, metadata.name, metadata.uid, told
                )

    def drop_maps(self, gone: Iterable[Gone]) -> None:
        """ConfigMaps are gone."""
        for each in gone:
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
            if pod.refused_told:  # whoever led may not have got to it
                pod.refused_told = False
                self._dirty[pod.job] = None
        before = self._reports.collected_first
        self._heed_conf()
        self._conf_changed = True
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
            if podgroup is None or self._find_record(group, podgroup):
                continue
            if known is not None and not known.is_over:
                group.record, group.doomed = None, frozenset()
                self._repairs[group.name] = self._dirty[group.name] = None

    def _records_on_groups(self) -> Iterator[Stored]:
        """Records that are on PodGroups of which there is no other record."""
        for group in self.groups.values():
            if group.podgroup is not None:
                meta = group.podgroup.metadata
                text = (meta.annotations or {}).get(names.REPAIR, "")
                is_ours = records.writer_of(text) in ("", *self.schedulers)
                if text and is_ours and (group.name, meta.uid) not in self._stored:
                    yield Stored(group.name, meta.uid, text)

    def put_faults(
        self,
        faults: Iterable[Fault],
        retries: Mapping[str, RetriesLeft],
        deletions: Iterable[Deletion] = (),
    ) -> None:
        """What whoever scheduled before has written down of faults."""
        self._faults, self._retries = tuple(faults), dict(retries)
        self._deletions = tuple(deletions)
        self._faults_changed = bool(self._faults or self._deletions)

    def _heed_conf(self) -> None:
        """Which reports count is a matter of configuration."""
        collected = self._conf.parameters.get("useClusterInfoManager")
        self._reports.collected_first = collected is not False

    # What the engine hears.

    def events(self, now: float) -> list[Event]:
        """What is new since the last time."""
        for name, at in list(self._late.items()):
            if at <= now:
                del self._late[name]
                self._dirty[name] = None
                group = self.groups.get(name)
                if group is not None and group.spared_until > now:
                    self._late[name] = group.spared_until
        if not (
            self._dirty
            or self._dirty_nodes
            or self._dirty_queues
            or self._leaves_changed
            or self._conf_changed
            or self._faults_changed
            or self._repairs
            or self._started
        ):
            return []
        out: list[Event] = []
        self._tell_queues(out)
        if self._conf_changed:
            self._conf_changed = False
            # An engine that leads knows its repairs better than what it is told.
            self._tell_repairs(out, now)
            out.append(ConfChanged(self._effective_conf()))
        if self._leaves_changed:
            self._leaves_changed = False
            out.append(LeavesChanged(leaves_of(self.topology)))
        vanished = self._tell_nodes(out)
        dirty, self._dirty = self._dirty, {}
        begins: list[Event] = []
        for name in dirty:
            group = self.groups.get(name)
            if group is not None:
                self._changed[name] = None
                found = list(self._refresh(group, now))
                # Pods may have swapped their chips: first all that ends is told.
                ends = list(takewhile(_is_of_the_end, found))
                out += ends
                begins += found[len(ends) :]
        self._tell_faults(out)
        self._tell_repairs(out, now)
        out += begins
        self._tell_runs(out)
        if vanished:
            out.append(NodesGone(tuple(vanished)))
        return out

    def everything(self, now: float) -> list[Event]:
        """All there is, as an engine hears it that knows nothing yet."""
        self.events(now)
        out: list[Event] = [QueueChanged(each) for each in self._queues.values()]
        out.append(ConfChanged(self._effective_conf()))
        out.append(LeavesChanged(leaves_of(self.topology)))
        out.append(NodesChanged(tuple(facts.node for facts in self.nodes.values())))
        out += self._known_of_faults()
        for group in self.groups.values():
            if group.record is not None and not group.is_outside:
                known = _sound(group.record, now, len(group.pods))
                out.append(RepairKnown(group.name, known))
            if group.told is None:
                continue
            starts = [p.started for p in group.pods.values() if p.holds and p.started]
            listed = tuple(group.placed[n] for n in sorted(group.placed))
            since = _waiting_since(group, group.told)
            out.append(JobArrived(group.told, listed, min(starts, default=None), since))
            if group.ailing:
                out.append(PodsAil(group.name, group.ailing))
            if group.ending:
                out.append(PodsEnding(group.name, tuple(sorted(group.ending))))
            if group.is_watched:
                ran = tuple(sorted(group.running))
                out.append(PodsRun(group.name, ran, _last_bound(group)))
        return out

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
        return [g for g in map(self.groups.get, changed) if g is not None]

    @property
    def next_at(self) -> float | None:
        """When something is to be looked at again, if anything is."""
        return min(self._late.values(), default=None)

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

    def stayed(self, job: str, now: float) -> None:
        """Pods of *job* could not be asked to end: it is told anew as it is.

        For a while nobody asks them again.
        """
        group = self.groups.get(job)
        if group is not None:
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
            self._leave(before)
        self._uids[record.key] = record.uid
        self.pods[record.uid] = record
        keys = selected_keys(record.base)
        if not keys <= self._facts.keys:
            self._facts.keys |= keys
            self._watch_labels()
        if self._facts.keys:
            record.watched(self._facts.keys)
        if pod.spec.scheduler_name == VOLCANO and not (record.group or record.node):
            record.not_before = record.created + GROUP_WAIT_S
            self._late[f"pod {record.key}"] = record.not_before
        asks = {name for name, _amount in record.base.resources}
        if not asks <= self._counted:
            self._counted |= asks
            self._dirty_nodes |= dict.fromkeys(self._objects)
        self._enter(record)

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
        if self._facts.keys:
            known = record.demand
            record.watched(self._facts.keys)
            if known is not record.demand:
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
        """Chips are no longer a pod's: another that names them too has them now.

        The engine lets the first of two pods hold a chip and knows nothing of the
        other, which is told anew.
        """
        if before == after:
            return
        node, chips = before
        lost = {*chips} if node != after[0] else {*chips} - {*after[1]}
        for uid in sorted(self._on_node.get(node, ())) if lost else ():
            other = self.pods.get(uid)
            if other is not None and other is not record:
                place, own = _claim(other)
                if place == node and not lost.isdisjoint(own):
                    self._tell_anew(other.job)

    def _off(self, record: PodRecord, node: str) -> None:
        """A pod is no longer on *node*."""
        there = self._on_node.get(node)
        if there is not None:
            there.discard(record.uid)
            if not there:
                del self._on_node[node]
            if record.asked > len(record.chips or ()):
                self._dirty_nodes[node] = None

    def _check_chips(self, record: PodRecord) -> None:
        """Tell of a pod that holds chips, and nobody knows which."""
        if not (record.node and record.asked):
            return
        unclear = record.is_unclear
        facts = self.nodes.get(record.node)
        if facts is not None and (unclear or facts.is_unclear):
            self._dirty_nodes[record.node] = None
        said = ""
        if unclear:
            found = quoted(record.chip_text[:60])
            said = (
                f"Pod {quoted(record.key)} holds {record.asked} {record.resource} of "
                f"node {quoted(record.node)}, its annotation says {found}, want the "
                "names of the chips; no chips of that node are given until it does"
            )
        self.tell("Pod", record.namespace, record.name, record.uid, said)

    def _watch_labels(self) -> None:
        """More labels count than before: every pod is looked at again."""
        for record in self.pods.values():
            known = record.demand
            record.watched(self._facts.keys)
            if known is not record.demand:
                self._dirty[record.job] = None

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
            if not group.pods and group.podgroup is None:
                del self.groups[group.name]
                self.unready.pop(group.name, None)
            return
        known = {
            placement.replica: placement
            for placement in (placement_of(pod, job) for pod in pods if _is_held(pod))
        }
        if group.told is not None and self._is_to_be_told_anew(group, job, known):
            yield from self._withdraw(group, returns=True)
        if len(pods) > len(known):
            group.complete_at = group.complete_at or now
        elif not pods:
            group.complete_at = 0.0
        if gone := group.placed.keys() - known.keys():
            yield PodsGone(group.name, tuple(sorted(gone)))
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
        ends = {pod.number for pod in pods if pod.deleting or group.is_doomed(pod)}
        new = tuple(n for n in sorted(known) if n in ends and n not in group.ending)
        if new:
            yield PodsEnding(group.name, new)
            group.ending.update(new)

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
        """Who says since that we are to delete nobody loses nobody else."""
        wants = job is not None and job.recovery.mode in (Mode.GRACE, Mode.FORCE)
        if pods and not wants:
            group.doomed = frozenset()

    def remembered(self, job: str, record: Record | None) -> None:
        """What is remembered of the repair of *job*, which we write down ourselves."""
        group = self.groups.get(job)
        if group is not None:
            group.record, group.doomed = record, frozenset()

    def _tell_faults(self, out: list[Event]) -> None:
        """Report the faults that were read."""
        if self._faults_changed:
            self._faults_changed = False
            out += self._known_of_faults()

    def _tell_repairs(self, out: list[Event], now: float) -> None:
        """Report the records that were read."""
        repairs, self._repairs = self._repairs, {}
        out += (
            RepairKnown(group.name, _sound(group.record or OVER, now, len(group.pods)))
            for group in filter(None, map(self.groups.get, repairs))
            if not group.is_outside
        )

    def _known_of_faults(self) -> Iterator[Event]:
        if self._faults:
            yield FaultsKnown(self._faults)
        if self._deletions:
            yield DeletionsKnown(self._deletions)

    def _tell_retries(self, group: Group, job: Job) -> Iterator[Event]:
        """How often pods have failed, by whoever scheduled before; said once."""
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
                yield PodsRefused(group.name, (pod.number,), pod.refused)

    def _note_watched(self, group: Group) -> None:
        """A job that has pods is one of which it is said who runs."""
        group.is_watched = group.is_watched and bool(group.placed)
        if group.placed and not group.is_watched:
            self._started[group.name] = None

    def _tell_runs(self, out: list[Event]) -> None:
        """Which pods run, of jobs of ours; others are left alone."""
        started, self._started = self._started, {}
        for group in filter(None, map(self.groups.get, started)):
            if group.told is None or not group.placed or not _is_own(group):
                continue
            ran = {
                pod.number
                for pod in group.pods.values()
                if pod.runs and pod.number in group.placed and pod.assumed is None
            }
            new = tuple(sorted(n for n in ran - group.running if n is not None))
            if new or not group.is_watched:
                since = None if group.is_watched else _last_bound(group)
                out.append(PodsRun(group.name, new, since))
                group.running.update(new)
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
        # Whoever scheduled before has counted what it was about to delete.
        left = (pod for pod in pods if not group.is_doomed(pod))
        found = ailments_of(left, job.recovery)
        if found != group.ailing:
            group.ailing = found
            yield PodsAil(group.name, found)

    def _withdraw(self, group: Group, *, returns: bool = False) -> Iterator[Event]:
        if group.told is not None:
            yield JobGone(group.name, returns or _may_return(group))
        group.told, group.placed, group.ending = None, {}, set()
        group.ailing = ()
        group.running, group.is_watched = set(), False
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
        refused = self._refusal(group)
        group.is_outside = bool(refused)
        if refused:
            pods = [pod for pod in pods if _is_held(pod)]
            group.reason = refused if group.pods else ""
        try:
            if pods and not pods[0].ours:
                node = self.nodes[place_of(pods[0])].node
                return held_job(group, pods, node.product), pods
            if pods:
                job = job_of(group, pods, self._facts)
                if refused:
                    job = replace(job, recovery=NO_RECOVERY)
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
        where = namespace_of(group), queue_of(group)
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
        for pod in self.pods.values() if selectors else ():
            own = pod.namespace == namespace and pod.ours
            if own and any(selects(each, pod.labels) for each in selectors):
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
            found = self._facts_of(name, given)
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

    def _facts_of(self, name: str, given: NodeObject) -> NodeFacts:
        unclear = any(self.pods[uid].is_unclear for uid in self._on_node.get(name, ()))
        return node_of(
            given,
            self._reports.of(name),
            self.topology,
            is_unclear=unclear,
            counted=self._counted,
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
            if found is not None:
                out.append(QueueChanged(found))
            elif name == DEFAULT_QUEUE:
                out.append(QueueChanged(Queue(DEFAULT_QUEUE)))
            else:
                out.append(QueueGone(name))


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


def _claim(pod: PodRecord) -> tuple[str, tuple[int, ...]]:
    """The node of a pod and the chips that it names there; nothing without a node."""
    if pod.assumed is not None:
        return pod.assumed.node, tuple(pod.assumed.chips)
    return (pod.node, pod.chips or ()) if pod.holds else ("", ())


def _empty_job(group: Group, facts: Facts) -> Job | None:
    """The job of a group without pods that hold or want something, if it is one."""
    return failed_job(group) or podless_job(group, facts)


def _is_of_the_end(event: Event) -> bool:
    """Whether something is over, or is about to be and why."""
    return isinstance(event, JobGone | PodsGone | PodsAil | PodsRefused)


def _is_own(group: Group) -> bool:
    """Whether it is on us to see that its pods run."""
    pods = group.pods.values()
    return not (group.is_outside or group.unreadable) and all(p.ours for p in pods)


def _last_bound(group: Group) -> float | None:
    """When the last of its pods was bound that do not run; None if nobody knows."""
    late = (p.bound_at for p in group.pods.values() if p.holds and not p.runs)
    return max(late, default=0.0) or None


def _is_well(pod: PodRecord) -> bool:
    return pod.signs is WELL and pod.state is not State.FAILED and not pod.is_stranded


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


def _is_held(pod: PodRecord) -> bool:
    """Whether a pod holds something, or is about to."""
    return pod.assumed is not None or pod.holds


def _same_place(one: Placement, other: Placement) -> bool:
    return one.node == other.node and {*one.chips} == {*other.chips}


def _asks_otherwise(one: Job, other: Job) -> bool:
    """Whether pods are something else to their nodes and to other pods."""
    if one.demand is other.demand and one.roles == other.roles:
        return False
    known = {n: role.demand for role, own in one.crew for n in own}
    return any(
        known.get(n, role.demand) != role.demand
        for role, own in other.crew
        for n in own
    )


def _differ(one: PodGroup, other: PodGroup) -> bool:
    """Whether more than the status is another."""
    a, b = one.metadata, other.metadata
    same = a.labels == b.labels and a.annotations == b.annotations
    return not same or one.spec != other.spec
