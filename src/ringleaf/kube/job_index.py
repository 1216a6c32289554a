"""Which jobs there are, and which pods are theirs: what summaries are made of.

A job is the controller of a PodGroup; a PodGroup without one stands for itself. Pods
belong to the job of the PodGroup that they name, or to their own controller where that
PodGroup is gone. Pods that name none are passed over.

A user with write access to a namespace can set any owner uid there. So a job is
kept by its namespace and its id together, and nothing of one namespace reaches another.

Nothing is decided or written here: reflectors tell it what there is, and ``changed``
has the jobs whose summaries may be others now.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from ringleaf.kube import topology
from ringleaf.kube.job_objects import JobGroup, JobNode, JobPod, group_of, member_of
from ringleaf.kube.leaf_status_map import STATES, leaf_states
from ringleaf.kube.objects import ConfigMap
from ringleaf.kube.rank_table import (
    MOST_BYTES,
    Group,
    JobSummary,
    Member,
    ServerPart,
    Status,
    part_of,
    summary_of,
)
from ringleaf.kube.watch import Gone
from ringleaf.model.topology import Topology

SERIAL: Final = "product-serial-number"
"""The annotation of a node with its serial number."""
INTERNAL: Final = "InternalIP"
LEAVES: Final = f"{topology.NAMESPACE}/{topology.NAME}"


class SummaryJob:
    """A job: its PodGroups, and its pods with their servers of the rank table."""

    def __init__(self, job_id: str, namespace: str, name: str) -> None:
        self.id, self.namespace, self.name = job_id, namespace, name
        self.groups: dict[str, Group] = {}
        self.last_group: Group | None = None
        """The PodGroup that went last, where none is left."""
        self.pods: dict[str, Member] = {}
        self.parts: dict[str, ServerPart] = {}

    @property
    def key(self) -> str:
        """``namespace/id``, by which it is kept."""
        return f"{self.namespace}/{self.id}"

    @property
    def full_name(self) -> str:
        """``namespace/name``, for people and for the names of ConfigMaps."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_there(self) -> bool:
        """Whether anything is left of it."""
        return bool(self.groups or self.pods)

    @property
    def group(self) -> Group | None:
        """The PodGroup that counts: the oldest."""
        return min(self.groups.values(), key=lambda g: (g.created, g.uid), default=None)

    @property
    def claim(self) -> tuple[bool, bool, bool, str, str]:
        """A sort key for jobs of the same name; the smallest gets the summary.

        A job that stays precedes one that is being deleted, then the older one.
        """
        group = self.group
        if group is None:
            return not self.pods, True, True, "", self.id
        return False, False, group.is_leaving, group.created, self.id

    def summary(
        self, before: Status, serials: Mapping[str, str], most: int = MOST_BYTES
    ) -> JobSummary:
        """What is to be said of it; *before* is what its status was.

        *serials* are those of nodes, and *most* the bytes of a slice.
        """
        pods = [*self.pods.values()]
        for pod in pods:
            if pod.uid not in self.parts:
                self.parts[pod.uid] = part_of(pod, serials.get(pod.node, ""))
        what, group = (self.id, self.namespace, self.name), self.group
        return summary_of(
            what, group or self.last_group, pods, self.parts, before=before, most=most
        )


class JobIndex:
    """Everything that summaries are made of, as it is now.

    Args:
        now: The time, in any seconds.

    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.jobs: dict[str, SummaryJob] = {}
        """Jobs by their keys, as everywhere here."""
        self.changed: dict[str, float] = {}
        """Jobs whose summaries may be others, and since when."""
        self.leaves_changed_at: float | None = None
        """Since when the states of leaves may be others."""
        self.topology: Topology | None = None
        self.bad_topology = ""
        """Why there is no topology, where there should be one."""
        self.serials: dict[str, str] = {}
        self._pods: dict[str, tuple[Member, str]] = {}
        """Pods by their keys, with the job that they count for."""
        self._groups: dict[str, Group] = {}
        self._waiting: defaultdict[str, dict[str, Member]] = defaultdict(dict)
        """Pods of controllers that are no jobs, as far as is known."""
        self._in_group: defaultdict[str, set[str]] = defaultdict(set)
        self._on_node: defaultdict[str, set[str]] = defaultdict(set)
        self._named: defaultdict[str, set[str]] = defaultdict(set)
        self._address: dict[str, str] = {}
        self._marked: dict[str, None] = {}
        """Pods that say something of their leaf."""

    # What the reflectors tell.

    def put_pods(self, pods: Iterable[JobPod]) -> None:
        """Pods are new or have changed."""
        for pod in pods:
            found, key = member_of(pod), pod.metadata.key
            if found is None:
                self._drop_pod(key)
                continue
            known = self._pods.get(key)
            if known is not None and known[0] == found:
                continue
            self._drop_pod(key)
            group = self._groups.get(found.group)
            job_key = group.job_key if group is not None else found.owner_key
            self._in_group[found.group].add(key)
            self._join(key, found, job_key)

    def drop_pods(self, gone: Iterable[Gone]) -> None:
        """Pods are gone."""
        for each in gone:
            self._drop_pod(each.key)

    def put_groups(self, groups: Iterable[JobGroup]) -> None:
        """PodGroups are new or have changed."""
        for each in groups:
            group = group_of(each)
            known = self._groups.get(group.key)
            if known == group:
                continue
            if known is not None and known.job_key != group.job_key:
                self._leave(known)
            self._groups[group.key] = group
            job = self.jobs.get(group.job_key)
            if job is None:
                job = self._found(group.job_id, group.namespace, group.job_name)
            job.groups[group.key] = group
            self.touch(job)
            for key in [*self._in_group[group.key]]:
                pod, job_key = self._pods[key]
                if job_key != group.job_key:
                    self._part(key)
                    self._join(key, pod, group.job_key)

    def drop_groups(self, gone: Iterable[Gone]) -> None:
        """PodGroups are gone; their pods may still be there."""
        for each in gone:
            if (group := self._groups.pop(each.key, None)) is not None:
                self._leave(group)
                if not self._in_group[group.key]:
                    del self._in_group[group.key]

    def put_nodes(self, nodes: Iterable[JobNode]) -> None:
        """Nodes are new or have changed."""
        for node in nodes:
            name = node.metadata.name
            serial = (node.metadata.annotations or {}).get(SERIAL, "")
            self._put_serial(name, serial)
            told = node.status.addresses or ()
            address = next((a.address for a in told if a.type == INTERNAL), "")
            if self._address.get(name) != address:
                self._address[name] = address
                self.touch_leaves()

    def drop_nodes(self, gone: Iterable[Gone]) -> None:
        """Nodes are gone; what pods on them say stays as it is while they are there."""
        for each in gone:
            self.serials.pop(each.name, None)
            if self._address.pop(each.name, None) is not None:
                self.touch_leaves()

    def put_maps(self, maps: Iterable[ConfigMap]) -> None:
        """The list of leaf switches is another."""
        for each in maps:
            if each.metadata.key != LEAVES:
                continue
            content = {"data": dict(each.data or {})}
            try:
                self.topology, _warnings = topology.read_topology(content)
                self.bad_topology = ""
            except topology.BadTopology as error:
                self.topology, self.bad_topology = None, str(error)
            self.touch_leaves()

    def drop_maps(self, gone: Iterable[Gone]) -> None:
        """The list of leaf switches is gone."""
        if any(each.key == LEAVES for each in gone):
            self.topology, self.bad_topology = None, ""
            self.touch_leaves()

    # What follows.

    def job_named(self, namespace: str, name: str) -> SummaryJob | None:
        """The job that a summary of this name tells of."""
        alike = self._named.get(f"{namespace}/{name}", ())
        jobs = (self.jobs[key] for key in alike)
        return min(jobs, key=lambda job: job.claim, default=None)

    def remember(self, job_id: str, namespace: str, name: str) -> SummaryJob:
        """A job of which a summary is there: it may have no PodGroup, or be gone."""
        job = self.jobs.get(f"{namespace}/{job_id}")
        job = job or self._found(job_id, namespace, name)
        self.touch(job)
        return job

    def touch_all(self) -> None:
        """Have every job looked at, and the leaves."""
        for job in self.jobs.values():
            self.touch(job)
        self.touch_leaves()

    def forget(self, job: SummaryJob) -> None:
        """A job of which nothing is left needs no more care."""
        if not job.is_there:
            del self.jobs[job.key]
            self.changed.pop(job.key, None)
            alike = self._named[job.full_name]
            alike.discard(job.key)
            if not alike:
                del self._named[job.full_name]

    def rest(self) -> None:
        """Stand by: keep neither changes nor jobs that are gone.

        A new leader looks at all jobs and at all summaries.
        """
        for key in [*self.changed]:
            self.forget(self.jobs[key])
        self.changed.clear()

    def leaves(self) -> str | None:
        """The states of leaves, as text; None where nothing is to be told of them.

        That is so without leaves below a spine, and while no pod says anything.
        """
        found = self.topology
        if found is None or found.single_layer or not self._marked:
            return None
        return self._leaves(found)

    def idle_leaves(self) -> str | None:
        """The same where pods may say nothing: what was told before is to be mended."""
        found = self.topology
        return None if found is None or found.single_layer else self._leaves(found)

    def _leaves(self, found: Topology) -> str:
        at = {address: name for name, address in sorted(self._address.items())}
        pods = (self._pods[key] for key in self._marked)
        named = (
            (pod, self.jobs[job_key].name if job_key in self.jobs else "")
            for pod, job_key in pods
        )
        return leaf_states(found, at, ((pod, job) for pod, job in named if job))

    # How it is kept.

    def _found(self, job_id: str, namespace: str, name: str) -> SummaryJob:
        """A job that was not known before, with the pods that waited for it."""
        job = SummaryJob(job_id, namespace, name)
        self.jobs[job.key] = job
        self._named[job.full_name].add(job.key)
        job.pods.update(self._waiting.pop(job.key, {}))
        self._touch_neighbours(job)
        return job

    def _join(self, key: str, pod: Member, job_key: str) -> None:
        self._pods[key] = pod, job_key
        self._on_node[pod.node].add(key)
        job = self.jobs.get(job_key)
        if job is None:
            self._waiting[job_key][pod.uid] = pod
        else:
            job.pods[pod.uid] = pod
            job.parts.pop(pod.uid, None)
            self.touch(job)
        if pod.node and pod.shared in STATES and not pod.is_over:
            self._marked[key] = None
            self.touch_leaves()

    def _part(self, key: str) -> None:
        """A pod is no longer its job's."""
        pod, job_key = self._pods.pop(key)
        self._on_node[pod.node].discard(key)
        if not self._on_node[pod.node]:
            del self._on_node[pod.node]
        job = self.jobs.get(job_key)
        if job is not None:
            job.pods.pop(pod.uid, None)
            job.parts.pop(pod.uid, None)
            self.touch(job)
        elif pod.uid in self._waiting[job_key]:
            del self._waiting[job_key][pod.uid]
            if not self._waiting[job_key]:
                del self._waiting[job_key]
        if key in self._marked:
            del self._marked[key]
            self.touch_leaves()

    def _drop_pod(self, key: str) -> None:
        known = self._pods.get(key)
        if known is None:
            return
        self._part(key)
        group = known[0].group
        self._in_group[group].discard(key)
        if not self._in_group[group]:
            del self._in_group[group]

    def _leave(self, group: Group) -> None:
        """A PodGroup is no longer its job's."""
        job = self.jobs[group.job_key]
        job.groups.pop(group.key, None)
        job.last_group = group
        self.touch(job)
        self._touch_neighbours(job)

    def _put_serial(self, node: str, serial: str) -> None:
        if self.serials.get(node, "") == serial:
            return
        self.serials[node] = serial
        for key in sorted(self._on_node.get(node, ())):
            pod, job_key = self._pods[key]
            if (job := self.jobs.get(job_key)) is not None:
                job.parts.pop(pod.uid, None)
                self.touch(job)

    def touch(self, job: SummaryJob) -> None:
        """Have a job looked at."""
        self.changed.setdefault(job.key, self._now())

    def _touch_neighbours(self, job: SummaryJob) -> None:
        """Jobs whose ConfigMaps have names that this one's may have."""
        for each in self.neighbours(job):
            self.touch(each)

    def neighbours(self, job: SummaryJob) -> Iterator[SummaryJob]:
        """Other jobs of its name, and one of which a slice would have its name."""
        found = {job.name}
        head, _dash, tail = job.name.rpartition("-")
        if head and tail.isdecimal():
            found.add(head)
        for name in found:
            for other in self._named.get(f"{job.namespace}/{name}", ()):
                if other != job.key:
                    yield self.jobs[other]

    def touch_leaves(self) -> None:
        """Have the states of leaves looked at."""
        if self.leaves_changed_at is None:
            self.leaves_changed_at = self._now()
