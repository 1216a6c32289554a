"""Manifests as the pods and groups that the scheduler would see, were they submitted.

What the API server fills in is filled in here: namespace, priority, the name of the
scheduler. What controllers make of a Volcano Job, a Job, a Deployment or a StatefulSet
is made here too, as far as it matters for scheduling. How it is understood then is the
business of the cache, as always.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from ringleaf.kube import names
from ringleaf.kube.demand import BadPod, requests_of
from ringleaf.kube.objects import Pod, PodGroup, PriorityClass, QueueObject
from ringleaf.kube.pod_store import PODGROUP_WAIT_S, VOLCANO
from ringleaf.kube.quantity import BadQuantity, resources, whole_number
from ringleaf.kube.queues import read_queue
from ringleaf.model.topology import quoted

Plain = dict[str, Any]

DEFAULT_SCHEDULER: Final = "default-scheduler"
GROUP_MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"
MAX_PODS: Final = 100_000
MAX_DOCUMENTS: Final = 10_000
QUEUE: Final = "scheduling.volcano.sh/v1beta1"
LISTS: Final = frozenset({"List", "PodList", "PodGroupList", "JobList"})

PATHS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("v1", "Pod"): "/api/v1/namespaces/{}/pods",
        ("scheduling.volcano.sh/v1beta1", "PodGroup"): (
            "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"
        ),
        ("batch.volcano.sh/v1alpha1", "Job"): (
            "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"
        ),
        ("batch/v1", "Job"): "/apis/batch/v1/namespaces/{}/jobs",
        ("apps/v1", "Deployment"): "/apis/apps/v1/namespaces/{}/deployments",
        ("apps/v1", "StatefulSet"): "/apis/apps/v1/namespaces/{}/statefulsets",
        ("apps/v1", "ReplicaSet"): "/apis/apps/v1/namespaces/{}/replicasets",
        (QUEUE, "Queue"): "/apis/scheduling.volcano.sh/v1beta1/queues",
        ("scheduling.k8s.io/v1", "PriorityClass"): (
            "/apis/scheduling.k8s.io/v1/priorityclasses"
        ),
    }
)
"""What is understood, and where the API server takes it."""
HARMLESS: Final = frozenset(
    {
        *("ConfigMap", "Secret", "Service", "ServiceAccount", "Namespace", "Role"),
        *("RoleBinding", "ClusterRole", "ClusterRoleBinding", "Ingress"),
        *("PersistentVolumeClaim", "PersistentVolume", "PodDisruptionBudget"),
        *("NetworkPolicy", "LimitRange", "ResourceQuota"),
    }
)
"""Kinds that bring no pods."""


PASSED_ON: Final = frozenset(
    {names.SP_BLOCK, names.QUEUE_NAME, names.ESTIMATE, names.POLICY}
)
"""Annotations of a Volcano Job that its pods get too."""


class BadManifest(ValueError):  # noqa: N818 - it reads as what happened
    """A manifest that cannot be understood: one line."""


class Submitted(Struct):
    """What a manifest comes to."""

    pods: list[Pod] = field(default_factory=list)
    groups: list[PodGroup] = field(default_factory=list)
    queues: list[QueueObject] = field(default_factory=list)
    classes: list[PriorityClass] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What of it makes no difference, one line each."""
    jobs: dict[str, None] = field(default_factory=dict)
    """What the scheduler calls the jobs, in the order of the manifest."""


def documents_of(given: Iterable[object]) -> Iterator[tuple[str, Plain]]:
    """The objects of a file with their paths, lists among them opened."""
    for number, each in enumerate(given, 1):
        path = f"document {number}"
        if not isinstance(each, dict) or not isinstance(each.get("kind"), str):
            raise BadManifest(
                f"{path} has no kind, want a manifest such as kind: Pod; "
                "hint: a scenario goes without -f"
            )
        if each["kind"] in LISTS and isinstance(each.get("items"), list):
            for i, item in enumerate(each["items"]):
                if not isinstance(item, dict):
                    raise BadManifest(f"{path}: items[{i}] is no object, want one")
                yield f"{path}: items[{i}]", item
        else:
            yield path, each


class Reader:
    """Reads manifests.

    Args:
        namespace: Where objects are that do not say.
        schedulers: The scheduler names of pods that are ours.
        classes: PriorityClasses by name.
        now: Seconds since 1970.

    """

    def __init__(
        self,
        namespace: str,
        schedulers: Iterable[str],
        classes: Mapping[str, PriorityClass],
        now: float,
    ) -> None:
        self._namespace, self._now = namespace, now
        self._schedulers = list(schedulers)
        self._classes = dict(classes)
        self.found = Submitted()

    def read(self, documents: Iterable[tuple[str, Plain]]) -> Submitted:
        """Everything that the documents come to. Raises ``BadManifest``."""
        listed = list(documents)
        forms: Mapping[tuple[str, str], Callable[[str, Plain], None]] = {
            ("v1", "Pod"): self._pod,
            (QUEUE, "PodGroup"): self._group,
            (QUEUE, "Queue"): self._queue,
            ("scheduling.k8s.io/v1", "PriorityClass"): self._class,
            ("batch.volcano.sh/v1alpha1", "Job"): self._volcano_job,
            ("batch/v1", "Job"): self._batch_job,
            ("apps/v1", "Deployment"): self._replicated,
            ("apps/v1", "ReplicaSet"): self._replicated,
            ("apps/v1", "StatefulSet"): self._replicated,
        }
        listed.sort(key=lambda one: one[1].get("kind") != "PriorityClass")
        for path, plain in listed:
            key = str(plain.get("apiVersion", "")), str(plain.get("kind", ""))
            if key in forms:
                forms[key](f"{path}: {_title(plain)}", plain)
            elif key[1] in HARMLESS:
                self.found.notes.append(f"{_title(plain)} has no effect here")
            else:
                raise _unknown(path, *key)
        return self.found

    def _meta(self, path: str, plain: Plain, *, spaced: bool = True) -> Plain:
        meta = plain.get("metadata") or {}
        if not isinstance(meta, dict):
            raise BadManifest(f"{path}: metadata is no mapping, want one")
        name = meta.get("name") or (
            f"{meta['generateName']}new" if meta.get("generateName") else ""
        )
        if not name:
            raise BadManifest(f"{path}: metadata.name is missing, want a name")
        space = {"namespace": meta.get("namespace") or self._namespace}
        return {
            **meta,
            **(space if spaced else {}),
            "name": name,
            "uid": f"submitted-{len(self.found.pods)}-{name}",
            "creationTimestamp": _written(self._now),
        }

    def _queue(self, path: str, plain: Plain) -> None:
        given = {**plain, "metadata": self._meta(path, plain, spaced=False)}
        found = _read(path, given, QueueObject)
        try:
            read_queue(found)
        except BadQuantity as error:
            raise BadManifest(f"{path}: {error}") from None
        self.found.queues.append(found)

    def _class(self, path: str, plain: Plain) -> None:
        given = {**plain, "metadata": self._meta(path, plain, spaced=False)}
        found = _read(path, given, PriorityClass)
        self._classes[found.metadata.name] = found
        self.found.classes.append(found)

    def _group(self, path: str, plain: Plain) -> None:
        given = {**plain, "metadata": self._meta(path, plain)}
        given["status"] = {"phase": "Pending"}
        found = _read(path, given, PodGroup)
        try:
            resources(found.spec.min_resources)
        except BadQuantity as error:
            raise BadManifest(f"{path}: spec.minResources: {error}") from None
        self.found.groups.append(found)
        self.found.jobs[found.metadata.key] = None

    def _pod(self, path: str, plain: Plain) -> None:
        meta, spec = self._meta(path, plain), plain.get("spec")
        if not isinstance(spec, dict):
            raise BadManifest(f"{path}: spec is missing, want what the pod asks")
        name = meta["name"]
        spec = {**spec, "schedulerName": spec.get("schedulerName") or DEFAULT_SCHEDULER}
        if spec["schedulerName"] not in self._schedulers:
            want = " or ".join(self._schedulers)
            raise BadManifest(
                f"{path}: spec.schedulerName is {quoted(str(spec['schedulerName']))}, "
                f"want {want}; hint: --scheduler-name"
            )
        if spec.get("nodeName"):
            raise BadManifest(
                f"{path}: spec.nodeName is {quoted(str(spec['nodeName']))}, "
                "want none: no scheduler decides on such a pod"
            )
        spec |= self._priority(path, spec)
        said = meta.get("annotations") or {}
        grouped = said.get(names.GROUP_NAMES[0]) or said.get(names.GROUP_NAMES[1])
        if spec["schedulerName"] == VOLCANO and not grouped:
            # By then Volcano's controller would have made a group of it.
            meta["creationTimestamp"] = _written(self._now - PODGROUP_WAIT_S)
        if len(self.found.pods) >= MAX_PODS:
            raise BadManifest(f"{path}: more than {MAX_PODS} pods, want fewer")
        meta["uid"] = f"submitted-{len(self.found.pods)}-{name}"
        given = {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
        found = _read(path, given, Pod)
        try:
            requests_of(found.spec)
        except BadPod as error:
            raise BadManifest(f"{path}: {error}") from None
        self.found.pods.append(found)
        space = found.metadata.namespace
        job = f"{space}/{grouped}" if grouped else f"pod {found.metadata.key}"
        self.found.jobs[job] = None

    def _priority(self, path: str, spec: Plain) -> Plain:
        """What the API server makes of the name of a PriorityClass."""
        name = spec.get("priorityClassName") or ""
        if not name:
            default = [c for c in self._classes.values() if c.global_default]
            if not default or spec.get("priority") is not None:
                return {}
            found = max(default, key=lambda each: each.value)
        elif name in self._classes:
            found = self._classes[name]
        elif name in names.CRITICAL_CLASSES:
            return {}
        else:
            raise BadManifest(
                f"{path}: priorityClassName is {quoted(str(name))}, want a "
                "PriorityClass of the cluster"
            )
        policy = found.preemption_policy or "PreemptLowerPriority"
        own = spec.get("preemptionPolicy") or policy
        return {"priority": found.value, "preemptionPolicy": own}

    def _volcano_job(self, path: str, plain: Plain) -> None:
        """What Volcano's job controller makes: a PodGroup, and pods task by task."""
        meta, spec = self._meta(path, plain), plain.get("spec") or {}
        tasks = spec.get("tasks") or []
        if not tasks or not all(isinstance(task, dict) for task in tasks):
            raise BadManifest(f"{path}: spec.tasks is empty, want a task")
        sizes = [_count(path, task, "replicas", 1) for task in tasks]
        named = [task.get("name") or f"default{i}" for i, task in enumerate(tasks)]
        least = [
            _count(path, task, "minAvailable", size)
            for task, size in zip(tasks, sizes, strict=True)
        ]
        annotations = meta.get("annotations") or {}
        group = {
            "apiVersion": QUEUE,
            "kind": "PodGroup",
            "metadata": meta,
            "spec": {
                "minMember": _count(path, spec, "minAvailable", sum(sizes)),
                "minTaskMember": dict(zip(named, least, strict=True)),
                "queue": spec.get("queue") or "default",
                "priorityClassName": spec.get("priorityClassName") or "",
            },
        }
        self._group(path, group)
        for task, size, name in zip(tasks, sizes, named, strict=True):
            for i in range(size):
                pod = _from_template(path, task, f"{meta['name']}-{name}-{i}", meta)
                own = pod["metadata"]
                own["annotations"] = own["annotations"] | {
                    names.GROUP_NAMES[0]: meta["name"],
                    names.TASK: name,
                    **{k: v for k, v in annotations.items() if k in PASSED_ON},
                }
                own["labels"] |= {names.TASK: name, names.TASK_INDEX: str(i)}
                given = pod["spec"]
                given["schedulerName"] = spec.get("schedulerName") or VOLCANO
                if spec.get("priorityClassName") and "priorityClassName" not in given:
                    given["priorityClassName"] = spec["priorityClassName"]
                self._pod(path, pod)

    def _batch_job(self, path: str, plain: Plain) -> None:
        """Pods that run at a time, as the job controller makes them."""
        spec = plain.get("spec") or {}
        at_once = _count(path, spec, "parallelism", 1)
        if spec.get("completions") is not None:
            at_once = min(at_once, _count(path, spec, "completions", 1))
        indexed = spec.get("completionMode") == "Indexed"
        self._owned(path, plain, at_once, names.COMPLETION_INDEX if indexed else "")

    def _replicated(self, path: str, plain: Plain) -> None:
        """Pods of a Deployment, a ReplicaSet or a StatefulSet."""
        replicas = _count(path, plain.get("spec") or {}, "replicas", 1)
        stateful = plain["kind"] == "StatefulSet"
        self._owned(path, plain, replicas, names.STATEFUL_POD if stateful else "")

    def _owned(self, path: str, plain: Plain, pods: int, index: str) -> None:
        """*pods* of one template; together a gang only if the owner says so."""
        meta, spec = self._meta(path, plain), plain.get("spec") or {}
        own = meta.get("annotations") or {}
        least = own.get(GROUP_MIN_MEMBER)
        if least is not None:
            fewest = whole_number(str(least))
            if fewest is None:
                raise BadManifest(
                    f"{path}: annotation {GROUP_MIN_MEMBER} is {quoted(str(least))}, "
                    "want a whole number"
                )
            group = {
                "metadata": meta,
                "spec": {
                    "minMember": fewest,
                    "queue": own.get(names.QUEUE_NAME) or "default",
                },
            }
            self._group(path, group)
        for i in range(pods):
            name = f"{meta['name']}-{i}"
            pod = _from_template(path, spec, name, meta)
            if least is not None:
                pod["metadata"]["annotations"] |= {names.GROUP_NAMES[0]: meta["name"]}
            if index:
                value = str(i) if index == names.COMPLETION_INDEX else name
                pod["metadata"]["labels"] |= {index: value}
            self._pod(path, pod)


def _unknown(path: str, version: str, kind: str) -> BadManifest:
    """What is wrong with an object that is not understood."""
    versions = [own for own, known in PATHS if known == kind]
    if versions:
        found = f"is {quoted(version)}" if version else "is missing"
        want = " or ".join(versions)
        return BadManifest(f"{path}: apiVersion of the {kind} {found}, want {want}")
    known = ", ".join(dict.fromkeys(own for _version, own in PATHS))
    return BadManifest(
        f"{path} is a {kind} of {version or 'no apiVersion'}, want one of {known}; "
        "hint: ask with the pods that it would make"
    )


def _from_template(path: str, owner: Plain, name: str, meta: Plain) -> Plain:
    template = owner.get("template")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        raise BadManifest(f"{path}: the template has no spec, want that of a pod")
    own = template.get("metadata") or {}
    return {
        "metadata": {
            "name": name,
            "namespace": meta["namespace"],
            "labels": dict(own.get("labels") or {}),
            "annotations": dict(own.get("annotations") or {}),
        },
        "spec": dict(template["spec"]),
    }


def _count(path: str, given: Plain, key: str, default: int) -> int:
    value = given.get(key, default)
    value = default if value is None else value
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadManifest(
            f"{path}: {key} is {quoted(str(value)[:40])}, want a whole number from 0"
        )
    if value > MAX_PODS:
        raise BadManifest(f"{path}: {key} is {value}, want at most {MAX_PODS}")
    return value


def _title(plain: Plain) -> str:
    meta = plain.get("metadata")
    name = meta.get("name", "") if isinstance(meta, dict) else ""
    return f"{plain.get('kind')} {quoted(str(name))}"


def _written(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _read(path: str, plain: Plain, kind: type[Any]) -> Any:  # noqa: ANN401
    try:
        return msgspec.convert(plain, kind, strict=True)
    except msgspec.ValidationError as error:
        raise BadManifest(f"{path}: {error}") from None
