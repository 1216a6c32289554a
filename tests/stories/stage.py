"""A cluster on which stories are played: its parts, and the people who use it."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest

from ringleaf_testbed.actor import Actor
from ringleaf_testbed.client import OK
from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.hardware import Machine, fleet, leaves_config_map
from ringleaf_testbed.process import Child
from ringleaf_testbed.source import TestbedError
from tests.deploy.helm import NAMESPACE

VOLCANO: Final = "/apis/scheduling.volcano.sh/v1beta1"
JOBS: Final = "/apis/batch.volcano.sh/v1alpha1"
R910: Final = "huawei.com/Ascend910"
A2: Final = {"accelerator-type": "module-910b-8"}
A3: Final = {"accelerator-type": "module-a3-16-super-pod"}
RECORDS: Final = "ringleaf.io/record"
"""The label of records of repairs."""
LIMITED: Final = "somebody-who-may-not-bind"
PATIENCE_S: Final = 60.0
GRACE_S: Final = 30.0
PATIENT: Final = "20"
"""Seconds of a Lease: longer than a busy machine may forget a scheduler."""

Object = dict[str, Any]


class Stage:
    """A testbed with controllers, machines of several products, and one scheduler.

    Args:
        bed: The control plane.
        actor: Plays the daemons of nodes.
        account: A kubeconfig of the scheduler's service account.

    """

    def __init__(self, bed: Testbed, actor: Actor, account: Path) -> None:
        self.bed, self.actor, self.account = bed, actor, account
        self.leaf_machines: list[Machine] = []
        self.namespace = "default"
        self._scheduler: Child | None = None
        self._asked: object = None
        self._n_started = 0
        self._started: list[Child] = []

    def set_up(self) -> None:
        """Twelve A2 under three leaves, eight A3 in two SuperPoDs, some others."""
        self.leaf_machines = fleet("atlas-800t-a2", 12, first=10, prefix="a2")
        self.actor.add_machines(self.leaf_machines, leaf_size=4)
        others = [
            *fleet("atlas-900-a3", 8, first=22, prefix="a3", superpod_size=4),
            *fleet("atlas-800-9000", 2, first=30, prefix="pro"),
            *fleet("atlas-300i", 1, first=32, prefix="i300"),
            *fleet("atlas-300i-duo", 1, first=33, prefix="duo"),
            *fleet("atlas-310p", 1, first=34, prefix="p310"),
            *fleet("atlas-350-4p-8", 1, first=35, prefix="a350"),
        ]
        self.actor.add_machines(others)
        self.actor.add_plain_node("plain")

    # The scheduler.

    def schedule(self, conf: str | None = None, *options: str) -> Child:
        """The scheduler with *conf* and *options*; the one that runs, if it is so."""
        asked = conf, options
        if self._scheduler is not None and self._scheduler.is_running:
            if asked == self._asked:
                return self._scheduler
            self.stop_scheduler()
        self._asked = asked
        self._scheduler = self.start_scheduler(conf, *options)
        return self._scheduler

    def start_scheduler(
        self,
        conf: str | None,
        *options: str,
        environment: Mapping[str, str] | None = None,
        kubeconfig: bool = True,
    ) -> Child:
        """A new scheduler, once it knows the cluster."""
        child = self.launch_scheduler(
            conf, *options, environment=environment, kubeconfig=kubeconfig
        )
        child.wait_until(lambda: has_told(child, "synced"))
        return child

    def launch_scheduler(
        self,
        conf: str | None,
        *options: str,
        environment: Mapping[str, str] | None = None,
        kubeconfig: bool = True,
    ) -> Child:
        """A new scheduler; nothing is waited for."""
        self._n_started += 1
        name = f"ringleaf-{self._n_started}"
        words = [sys.executable, "-m", "ringleaf", "scheduler"]
        words += ["--healthz-address", "127.0.0.1:0"]
        if kubeconfig:
            words += ["--kubeconfig", str(self.account)]
            words += ["--leader-elect-resource-namespace", NAMESPACE]
            words += ["--leader-elect-lease-duration", PATIENT]
        if "--scheduler-name" not in options:
            words += ["--scheduler-name", "ringleaf", "--scheduler-name", "volcano"]
        if conf is not None:
            file = self.bed.folder / f"{name}.conf"
            file.write_text(conf, encoding="utf-8")
            words += ["--scheduler-conf", str(file)]
        log = self.bed.folder / f"{name}.log"
        child = Child(name, [*words, *options], log, environment)
        self.bed.children.append(child)
        self._started.append(child)
        return child

    def stop_scheduler(self) -> None:
        """End the scheduler, and see that it ends well."""
        child, self._scheduler = self._scheduler, None
        if child is not None:
            child.stop(GRACE_S)
            assert child.status == 0, child.last_words()

    def stop_others(self) -> None:
        """End the schedulers that a story which failed has left running.

        One of them would lead, and every later story would wait for its own in vain.
        """
        for child in self._started:
            if child is not self._scheduler:
                child.kill()
        self._started = [self._scheduler] if self._scheduler else []

    @property
    def log(self) -> list[Object]:
        """What the scheduler has said."""
        assert self._scheduler is not None
        return lines_of(self._scheduler.log)

    # Objects.

    def apply(self, *manifests: Object) -> None:
        """Submit objects with kubectl, into the namespace of this story."""
        text = "\n---\n".join(json.dumps(each) for each in manifests)
        self.bed.kubectl("apply", "-n", self.namespace, "-f", "-", input=text)

    def create(self, manifest: Object) -> Object:
        """Make an object of the namespace of this story."""
        path = f"{self._path(manifest)}"
        made: Object = self.bed.client.ask("POST", path, manifest)
        return made

    def _path(self, manifest: Object) -> str:
        kinds = {
            "Pod": f"/api/v1/namespaces/{self.namespace}/pods",
            "PodGroup": f"{VOLCANO}/namespaces/{self.namespace}/podgroups",
            "PodDisruptionBudget": f"/apis/policy/v1/namespaces/{self.namespace}"
            "/poddisruptionbudgets",
            "PersistentVolumeClaim": f"/api/v1/namespaces/{self.namespace}"
            "/persistentvolumeclaims",
        }
        return kinds[manifest["kind"]]

    def pod(self, name: str) -> Object:
        """A pod of this story."""
        found: Object = self.bed.client.ask("GET", self.pod_path(name))
        return found

    def pod_path(self, name: str) -> str:
        """Where a pod of this story is."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{name}"

    def pods(self, job: str | None = None) -> list[Object]:
        """The pods of this story, or of one Volcano Job of it, by name."""
        query = {"labelSelector": f"volcano.sh/job-name={job}"} if job else {}
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        found, _version = self.bed.client.list_all(path, **query)
        return sorted(found, key=_by_index)

    def groups(self) -> list[Object]:
        """The PodGroups of this story."""
        path = f"{VOLCANO}/namespaces/{self.namespace}/podgroups"
        return self.bed.client.list_all(path)[0]

    def group_of(self, job: str) -> Object:
        """The PodGroup that Volcano's controller made for a job; empty without one."""
        named = [g for g in self.groups() if g["metadata"]["name"].startswith(job)]
        return named[0] if named else {}

    def record_of(self, job: str) -> str:
        """The record of the repair of a job; empty without one."""
        group = self.group_of(job)
        if not group:
            return ""
        meta, path = group["metadata"], f"/api/v1/namespaces/{NAMESPACE}/configmaps"
        found, _version = self.bed.client.list_all(path, labelSelector=RECORDS)
        own = [each["data"] for each in found if "record" in each.get("data", {})]
        name, uid = f"{meta['namespace']}/{meta['name']}", meta["uid"]
        said = [
            each["record"]
            for each in own
            if (each["job"], each["podgroup-uid"]) == (name, uid)
        ]
        return said[0] if said else ""

    def events(self, name: str | None = None, reason: str | None = None) -> list[str]:
        """What events of the scheduler say, of this story and of cluster objects."""
        found: list[Object] = []
        for namespace in {self.namespace, "default", "kube-system", "mindx-dl"}:
            path = f"/api/v1/namespaces/{namespace}/events"
            found += self.bed.client.list_all(path)[0]
        return [
            event["message"]
            for event in found
            if event["source"].get("component") == "ringleaf"
            and name in (None, event["involvedObject"]["name"])
            and reason in (None, event["reason"])
        ]

    # Waiting.

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Wait for something, not for ever."""
        self.bed.wait_for(condition, what, PATIENCE_S)

    def wait_until_running(self, job: str, n_pods: int) -> list[Object]:
        """The pods of a job, once as many run."""
        self.wait(
            lambda: self.phases(job) == ["Running"] * n_pods,
            f"{n_pods} running pods of {job}",
        )
        return self.pods(job)

    def phases(self, job: str | None = None) -> list[str]:
        """The phases of the pods of a job."""
        return [pod["status"]["phase"] for pod in self.pods(job)]

    def wait_until_runs(self, *names: str) -> list[Object]:
        """Pods by name, once they run."""
        for name in names:
            self.wait(
                lambda name=name: self.pod(name)["status"]["phase"] == "Running",  # type: ignore[misc]
                f"pod {name} to run",
            )
        return [self.pod(name) for name in names]

    def wait_for_event(self, name: str, reason: str) -> str:
        """The one event of a kind on an object, once there is one."""
        self.wait(lambda: self.events(name, reason), f"an event {reason} on {name}")
        (said,) = self.events(name, reason)
        return said

    def wait_for_condition(self, name: str, words: str) -> Object:
        """The condition PodScheduled of a pod, once its message has *words*."""
        found: Object = {}

        def says() -> bool:
            nonlocal found
            found = scheduled(self.pod(name))
            return words in found.get("message", "")

        try:
            self.wait(says, f"pod {name} to say {words!r}")
        except TestbedError as error:
            pytest.fail(f"{error}, it says {found.get('message')!r}", pytrace=False)
        return found

    # The end of a story.

    def swapped(self) -> list[str]:
        """Pods that were handed other chips than they were promised."""
        return [
            each["metadata"]["name"]
            for each in self.pods()
            if each["status"]["phase"] == "Running"
            and (real := notes_of(each).get("huawei.com/AscendReal"))
            and sorted(real.split(",")) not in _promised(each)
        ]

    def clear(self) -> None:
        """Delete all that a story has left."""
        where = f"/namespaces/{self.namespace}"
        delete = self.bed.client.request
        delete("DELETE", f"{JOBS}{where}/jobs")
        delete("DELETE", f"{VOLCANO}{where}/podgroups")
        delete("DELETE", f"/apis/policy/v1{where}/poddisruptionbudgets")
        now = {"gracePeriodSeconds": 0}

        def is_empty() -> bool:
            left = self.pods()
            if not left:
                return True
            for each in left:
                if each["metadata"].get("finalizers"):
                    path = self.pod_path(each["metadata"]["name"])
                    delete("PATCH", path, {"metadata": {"finalizers": None}})
            delete("DELETE", f"/api/v1{where}/pods", now)
            return False

        self.wait(is_empty, "the pods of a story to go")

    def set_leaves(self, *, single_layer: bool = False) -> None:
        """Write the list of leaf switches."""
        self.put_map(
            leaves_config_map(self.leaf_machines, 4, single_layer=single_layer)
        )

    def put_map(self, manifest: Object) -> None:
        """Write a ConfigMap, whether it is there or not."""
        meta = manifest["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/configmaps"
        status, _told = self.bed.request("PUT", f"{path}/{meta['name']}", manifest)
        if status not in OK:
            self.bed.client.ask("POST", path, manifest)


def lines_of(log: Path) -> list[Object]:
    """The lines of a scheduler's log."""
    text = log.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1].splitlines()
    return [json.loads(line) for line in whole if line.startswith("{")]


def has_told(child: Child, event: str) -> bool:
    """Whether a scheduler has said that something happened."""
    return any(line["event"] == event for line in lines_of(child.log))


def answer_of(child: Child, probe: str) -> tuple[int, Object]:
    """What a scheduler says to a probe."""
    (started,) = [line for line in lines_of(child.log) if line["event"] == "started"]
    url = f"http://127.0.0.1:{started['health']}/{probe}"
    with urlopen(url, timeout=PATIENCE_S) as answer:
        return answer.status, json.load(answer)


def vcjob(
    name: str,
    replicas: int,
    chips: int,
    *,
    selector: Mapping[str, str] = A2,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    resource: str = R910,
    least: int | None = None,
    **spec: object,
) -> Object:
    """A Volcano Job of one task, as users of Ascend clusters write it."""
    asks = {resource: str(chips), "cpu": "1"} if chips else {"cpu": "1"}
    own = {"ring-controller.atlas": "ascend-910b", **(labels or {})}
    container = {
        "name": "main",
        "image": "none",
        "resources": {"requests": asks, "limits": asks},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "labels": own, "annotations": annotations or {}},
        "spec": {
            "schedulerName": "volcano",
            "queue": "default",
            "minAvailable": replicas if least is None else least,
            "tasks": [
                {
                    "name": "worker",
                    "replicas": replicas,
                    "template": {
                        "metadata": {"labels": own, "annotations": annotations or {}},
                        "spec": {
                            "restartPolicy": "Never",
                            "nodeSelector": dict(selector),
                            "containers": [container],
                        },
                    },
                }
            ],
            **spec,
        },
    }


def pod(
    name: str,
    chips: int | str = 0,
    *,
    selector: Mapping[str, str] = A2,
    group: str | None = None,
    resource: str = R910,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    scheduler: str = "ringleaf",
    cpu: str = "1",
    **spec: object,
) -> Object:
    """A pod that is not made by a controller."""
    asks = {"cpu": cpu} | ({resource: str(chips)} if chips else {})
    notes = dict(annotations or {})
    if group is not None:
        notes["scheduling.k8s.io/group-name"] = group
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}, "annotations": notes},
        "spec": {
            "schedulerName": scheduler,
            "restartPolicy": "Never",
            "nodeSelector": dict(selector),
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "resources": {"requests": asks, "limits": asks},
                }
            ],
            **spec,
        },
    }


def podgroup(name: str, members: int, **spec: object) -> Object:
    """A PodGroup that is not made by a controller."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": members, "queue": "default", **spec},
    }


def notes_of(found: Object) -> dict[str, str]:
    """The annotations of an object."""
    return found["metadata"].get("annotations") or {}


def node_of(found: Object) -> str:
    """Where a pod is; empty where it is nowhere."""
    return str(found["spec"].get("nodeName", ""))


def nodes_of(pods: Iterable[Object]) -> list[str]:
    """Where pods are."""
    return [node_of(each) for each in pods]


def chips_of(found: Object, resource: str = R910) -> list[int]:
    """The chips that a pod was given."""
    named = notes_of(found).get(resource, "")
    return sorted(int(name.rpartition("-")[2]) for name in named.split(",") if name)


def scheduled(found: Object) -> Object:
    """The condition PodScheduled of a pod; empty without one."""
    return condition(found, "PodScheduled")


def condition(found: Object, kind: str) -> Object:
    """A condition of an object; empty without one."""
    told: Sequence[Object] = found.get("status", {}).get("conditions") or ()
    return next((each for each in told if each["type"] == kind), {})


def leaf_of(node: str) -> int:
    """The leaf of an A2 node, four to a leaf, from a2-10 on."""
    return (int(node.rpartition("-")[2]) - 10) // 4


def _promised(found: Object) -> list[list[str]]:
    """The lists of chips on a pod, whatever their resource."""
    kinds = ("Ascend910", "Ascend310", "Ascend310P", "npu")
    notes = notes_of(found)
    named = (notes.get(f"huawei.com/{kind}", "") for kind in kinds)
    return [sorted(each.split(",")) for each in named if each]


def _by_index(found: Object) -> tuple[str, int]:
    name = found["metadata"]["name"]
    number = re.search(r"(\d+)$", name)
    return name.rstrip("0123456789"), int(number[1]) if number else -1
