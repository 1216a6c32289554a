"""Jobs for a cluster that is treated badly: there is room for all of them in the end.

A job that does not end keeps its chips; those together leave half of every kind of node
free. All others run for seconds. Jobs with wishes about switches have nodes of their
own, for any other job that crosses their leaves would keep them from running.

Waves of evictions: fillers of a low priority take what is free; then urgent jobs of the
same queue, or jobs of a second queue, need whole nodes and have to evict.
"""

import random
from collections.abc import Iterator
from itertools import count
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field

from ringleaf_testbed.hardware import Machine, fleet

NAMESPACE: Final = "default"
RESOURCE: Final = "huawei.com/Ascend910"
RUN: Final = "ringleaf.io/run-seconds"
PREEMPTABLE: Final = "volcano.sh/preemptable"
LEAF: Final = 4

PRIORITIES: Final = MappingProxyType({"filler": -10, "urgent": 1000})
"""PriorityClass -> its value; other jobs have none, so 0."""
WEIGHTS: Final = MappingProxyType({"default": 1, "research": 1})
"""Queue -> its weight."""

MESH, RING, POD = "module-910b-8", "module", "module-a3-16-super-pod"


class Shape(Struct, frozen=True):
    """A kind of job.

    Args:
        name: What its jobs are called.
        pods: Pods of one job.
        chips: Chips of one pod.
        kind: The nodes that it wants.
        share: Of a hundred pods, those in jobs of this kind.
        keeps: How many of its jobs do not end.
        elastic: Pods that may be missing.
        wishes: Labels of its pods.
        notes: Annotations of its pods.
        run_s: The shortest and the longest time that a job of it runs, if it ends.
        queue: The queue of its jobs.
        priority: Their PriorityClass.
        guarded: Whether those that do not end must not be evicted.

    """

    name: str
    pods: int
    chips: int
    kind: str
    share: int
    keeps: int
    elastic: int = 0
    wishes: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    run_s: tuple[int, int] = (2, 9)
    queue: str = "default"
    priority: str = ""
    guarded: bool = False


LARGE: Final = {"tor-affinity": "large-model-schema"}
COMMON: Final = {"tor-affinity": "normal-schema"}
BLOCKS: Final = {"sp-block": "32"}
ANY: Final = {"huawei.com/schedule_policy": "chip2-node16-sp"}

SHAPES: Final = (
    Shape("whole", 8, 8, MESH, share=16, keeps=3, guarded=True),
    Shape("quad", 4, 2, MESH, share=24, keeps=12),
    Shape("elastic", 6, 4, MESH, share=8, keeps=2, elastic=3),
    Shape("wide", 48, 1, MESH, share=16, keeps=1),
    Shape("solo", 1, 1, MESH, share=10, keeps=20),
    Shape("ring", 1, 4, RING, share=4, keeps=4),
    Shape("common", 5, 8, RING, share=4, keeps=1, wishes=COMMON),
    Shape("padding", 2, 8, RING, share=6, keeps=1, wishes=LARGE),
    Shape("foundation", 4, 8, RING, share=4, keeps=1, wishes=LARGE),
    Shape("superpod", 4, 16, POD, share=4, keeps=1, notes=BLOCKS),
    Shape("module", 1, 4, POD, share=4, keeps=3, notes=ANY),
)
BIG: Final = Shape("big", 96, 1, MESH, share=0, keeps=0, notes={RUN: "25"})
"""A gang whose binding takes long enough to be interrupted."""

FILLERS: Final = (
    *(Shape("batch", 8, 2, MESH, 0, 0, run_s=(100, 200), priority="filler"),) * 5,
    *(Shape("spot", 12, 1, MESH, 0, 0, 10, run_s=(100, 200), priority="filler"),) * 2,
)
"""Gangs, and jobs that can spare most of their pods."""
N_FILLERS: Final = 28
"""So many hold 416 chips, almost all of those that jobs which stay leave free."""
URGENT: Final = Shape("urgent", 12, 8, MESH, 0, 0, run_s=(4, 8), priority="urgent")
N_URGENT: Final = 2
RESEARCH: Final = Shape("research", 32, 2, MESH, 0, 0, run_s=(4, 8), queue="research")
N_RESEARCH: Final = 12
"""So many ask for more than half of the cluster, which is what their queue deserves.
Their pods fit where those of fillers were: a queue gives up its last jobs first, so few
whole nodes."""


class Piece(Struct, frozen=True):
    """One job, or one pod without a job."""

    name: str
    shape: Shape
    body: dict[str, Any]

    @property
    def path(self) -> str:
        """Where it is made."""
        if self.body["kind"] == "Pod":
            return f"/api/v1/namespaces/{NAMESPACE}/pods"
        return f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs"

    @property
    def least(self) -> int:
        """Pods that must start together."""
        return self.shape.pods - self.shape.elastic


def machines() -> list[Machine]:
    """160 nodes of three kinds."""
    mesh = fleet("atlas-800t-a2", 112)
    ring = fleet("atlas-800-9000", 32, first=112)
    return mesh + ring + fleet("atlas-900-a3", 16, first=144, superpod_size=8)


def pieces(dice: random.Random, n_pods: int) -> list[Piece]:
    """Jobs of *n_pods* pods or a few more, in an order that *dice* decides."""
    found = [
        piece(shape, f"{shape.name}-{i}", dice, keeps=i < shape.keeps)
        for shape in SHAPES
        for i in range(-(-n_pods * shape.share // 100 // shape.pods))
    ]
    dice.shuffle(found)
    return found


def passing(dice: random.Random) -> Iterator[Piece]:
    """Jobs that end, without an end."""
    shares = [shape.share / shape.pods for shape in SHAPES]
    for number in count():
        (shape,) = dice.choices(SHAPES, shares)
        yield piece(shape, f"{shape.name}-passing-{number}", dice, keeps=False)


def piece(shape: Shape, name: str, dice: random.Random, *, keeps: bool) -> Piece:
    """A job of that shape; pods alone are made without one now and then."""
    pod = _pod(shape, {} if keeps else {RUN: str(dice.randint(*shape.run_s))})
    if keeps and shape.guarded:
        pod["metadata"]["labels"] = {**shape.wishes, PREEMPTABLE: "false"}
    if shape.pods == 1 and dice.random() < 0.5:
        head = {"apiVersion": "v1", "kind": "Pod", "spec": pod["spec"]}
        metadata = {"name": name, **pod["metadata"]}
        return Piece(name, shape, {**head, "metadata": metadata})
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    if dice.random() < 0.3:
        policies.append({"event": "PodEvicted", "action": "RestartJob"})
    body = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "labels": shape.wishes, "annotations": shape.notes},
        "spec": {
            "schedulerName": "ringleaf",
            "minAvailable": shape.pods - shape.elastic,
            "maxRetry": 1000,
            "ttlSecondsAfterFinished": 20,
            "queue": shape.queue,
            **_priority(shape),
            "policies": policies,
            "tasks": [{"name": "w", "replicas": shape.pods, "template": pod}],
        },
    }
    return Piece(name, shape, body)


def _priority(shape: Shape) -> dict[str, str]:
    return {"priorityClassName": shape.priority} if shape.priority else {}


def cluster_objects() -> list[tuple[str, dict[str, Any]]]:
    """The queues and PriorityClasses that the jobs name: where each is made, and it."""
    queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    found: list[tuple[str, dict[str, Any]]] = []
    for name, weight in WEIGHTS.items():
        head = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
        spec = {"weight": weight, "reclaimable": True}
        found.append((queues, {**head, "metadata": {"name": name}, "spec": spec}))
    for name, value in PRIORITIES.items():
        head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        found.append((classes, {**head, "metadata": {"name": name}, "value": value}))
    return found


def _pod(shape: Shape, notes: dict[str, str]) -> dict[str, Any]:
    amounts = {RESOURCE: str(shape.chips), "cpu": "1", "memory": "1Gi"}
    container = {"name": "c", "image": "none", "resources": {"limits": amounts}}
    return {
        "metadata": {"labels": shape.wishes, "annotations": {**shape.notes, **notes}},
        "spec": {
            "schedulerName": "ringleaf",
            "restartPolicy": "Never",
            "nodeSelector": {"accelerator-type": shape.kind},
            **_priority(shape),
            "containers": [container],
        },
    }


def batches(given: list[Piece], n: int) -> Iterator[list[Piece]]:
    """*given* in *n* parts, all but equally long."""
    for i in range(n):
        yield given[len(given) * i // n : len(given) * (i + 1) // n]
