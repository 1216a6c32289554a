"""Scenes with something evil among others, for tests that let functions fail for it.

What is evil has that in its name. Every scene ends with a gang, the canary, for which
there is room on nodes that nothing evil can use.
"""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.kube import names
from ringleaf.kube.reports import check_code
from tests.kube.stage import NPU, Stage, node
from tests.kube.test_unstarted import refuse
from tests.kube.test_warnings import under_leaves

EVIL: Final = "evil"
EVERY_ACTION: Final = "enqueue, allocate, backfill, preempt, reclaim"
LARGE, NORMAL = "large-model-schema", "normal-schema"
FORCE: Final = {"fault-scheduling": "force"}
PODS_ONLY: Final = {**FORCE, "pod-rescheduling": "on"}
A3: Final = {"accelerator-type": "module-a3-16-super-pod"}
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
TERM: Final = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": {"app": EVIL}},
}


class Scene(NamedTuple):
    """A cluster, and what happens on it then."""

    cluster: Callable[[], Stage]
    act: Callable[[Stage], None]


def conf_of(actions: str, **parameters: str) -> Conf:
    """Every plugin, some actions, and parameters of rules, with ``_`` for ``-``."""
    first = ("priority", "gang", "conformance", "affinity")
    then = ("overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack")
    given = {name.replace("_", "-"): value for name, value in parameters.items()}
    found = read_conf(
        {
            "actions": actions,
            "tiers": [
                {"plugins": [{"name": name} for name in tier]} for tier in (first, then)
            ],
            "configurations": [
                {"name": "init-params", "arguments": given},
                {"name": "rearrange", "arguments": {"wait-seconds": 1}},
            ],
        }
    )
    assert isinstance(found, Conf), found
    return found


CONF: Final = conf_of(EVERY_ACTION)


def canary(stage: Stage) -> None:
    """A gang of two that asks for little, and tolerates taints."""
    stage.group("canary", 2, queue="canary")
    spec = {"tolerations": [{"operator": "Exists"}]}
    for i in range(2):
        stage.pod(f"canary-{i}", 2, "canary", spec=spec)


def put_a_node_for_the_canary(stage: Stage) -> None:
    """A node with a taint, and a queue."""
    stage.queue("canary", weight=1)
    taint = {"key": "canary", "effect": "NoSchedule"}
    stage.put_node(node("y", spec={"taints": [taint]}))


# Queues, priorities, other pods, a node that fails


def full() -> Stage:
    """Nodes, of which two are full, and a gang that is repaired when a node fails."""
    nodes = [node(name) for name in ("a", "b", "c", "d", "evil-node")]
    stage = Stage(nodes, CONF)
    stage.queue("default", weight=1)
    stage.queue("evil-queue", weight=1)
    labels = {"fault-scheduling": "grace"}
    for name, queue in (("low", "default"), ("evil-old", "evil-queue")):
        stage.gang(name, 1, queue=queue, labels=labels)
    stage.endure()
    return stage


def act_where_it_is_full(stage: Stage) -> None:
    """Evil objects come, a node fails, and a gang of two that asks for little."""
    stage.priority_class("high", 1000)
    likes = {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]}}
    spec = {"affinity": likes, "tolerations": [{"operator": "Exists"}]}
    stage.group("evil", 3, queue="evil-queue", priorityClassName="high")
    for i in range(3):
        stage.pod(f"evil-{i}", 8, "evil", spec=spec, labels={"app": "evil"})
    stage.gang("canary", 2, 2)
    stage.put_node(node("a", ready="False"))


# Every action


def crowded() -> Stage:
    """Every node is full: a poor queue waits, and so do jobs of a high priority."""
    conf = conf_of(EVERY_ACTION, fault_brake_percent="100", run_within_seconds="60")
    stage = Stage("a b c d e f g", conf)
    for name, weight in (("default", 1), ("evil-queue", 3)):
        stage.queue(name, weight=weight)
    stage.priority_class("high", 1000)
    for i in range(3):
        stage.gang(f"low-{i}", 1, queue="default")
    stage.gang("evil-victim", 1, queue="default")
    stage.gang("evil-sick", 2, queue="default", labels=FORCE)
    stage.gang("evil-refused", 1, queue="default")
    stage.endure()
    assert len(stage.bound) == 7
    put_a_node_for_the_canary(stage)
    return stage


def act_where_it_is_crowded(stage: Stage) -> None:
    """Jobs evict, wait for hours, are refused, are repaired and do not run in time."""
    stage.gang("evil-urgent", 1, queue="default", priorityClassName="high")
    stage.gang("evil-poor", 2, queue="evil-queue")
    stage.pod("evil-modest", 0, asks={"cpu": "0"})
    stage.group("evil-wide", 9, queue="default", minResources={NPU: "8"})
    stage.gang("evil-late", 3, queue="evil-queue")
    stage.gang("evil-odd", 1, 9)
    stage.endure(1)
    refuse(stage, "evil-refused-0")
    sick = stage.pods["default/evil-sick-0"]["spec"]["nodeName"]
    inner = {"DeviceList": {f"{NPU}-Unhealthy": "Ascend910-3"}, "UpdateTime": 1}
    told = {"DeviceInfo": inner, "CheckCode": check_code(inner)}
    stage.config_map(f"mindx-dl-deviceinfo-{sick}", {"DeviceInfoCfg": json.dumps(told)})
    stage.endure(1)
    stage.endure(600)
    canary(stage)


# Network rules


def lose_pods(stage: Stage, job: str, pods: int) -> None:
    """The node of the second pod fails, and the pods that are deleted are gone."""
    where = stage.bound[f"{job}-1"].split()[0]
    stage.nodes[where]["status"]["conditions"][0]["status"] = "False"
    stage.put_node(stage.nodes[where])
    deleted = [word for word in stage.endure(60) if word.startswith("delete")]
    assert len(deleted) == 1
    numbers = deleted[0].rpartition(" ")[2].split(",")
    assert len(numbers) in (1, pods)
    for number in numbers:
        stage.drop_pod(f"{job}-{number}")
    stage.endure(1)


def pods_return(stage: Stage, job: str, pods: int, chips: int, **spec: Any) -> None:  # noqa: ANN401
    """A controller makes the pods of a job that are gone."""
    for i in range(pods):
        if f"default/{job}-{i}" not in stage.pods:
            stage.pod(f"{job}-{i}", chips, job, spec=spec)


def leaves(version: str, **topology: str) -> Callable[[], Stage]:
    """Gangs across leaves have lost a pod, or all because of one."""
    conf = conf_of("enqueue, allocate", nslb_version=version, fault_brake_percent="100")

    def made() -> Stage:
        stage = under_leaves(conf, "abc def ghi jkl mno pqr", **topology)
        for name, label, repair in (
            ("evil-one", LARGE, PODS_ONLY),
            ("evil-all", NORMAL, FORCE),
        ):
            stage.gang(name, 4, labels={"tor-affinity": label} | repair)
            stage.endure()
            lose_pods(stage, name, 4)
        return stage

    return made


def act_under_leaves(stage: Stage) -> None:
    """The pods come back, and other gangs with them."""
    for name in ("evil-one", "evil-all"):
        pods_return(stage, name, 4, 8)
    stage.endure(1)
    stage.gang("evil-large", 2, labels={"tor-affinity": LARGE})
    stage.gang("evil-normal", 4, labels={"tor-affinity": NORMAL})
    stage.gang("evil-wide", 9, labels={"tor-affinity": LARGE})
    stage.gang("evil-plain", 2, 4)
    put_a_node_for_the_canary(stage)
    canary(stage)


def superpods() -> Stage:
    """In SuperPoDs of four nodes gangs with blocks have lost a pod, or all."""
    conf = conf_of("enqueue, allocate", fault_brake_percent="100", super_pod_size="4")
    stage = Stage([], conf)
    for i in range(16):
        plain = node("abcdefghijklmnop"[i], chips=16, labels=A3)
        plain["metadata"]["annotations"]["superPodID"] = str(i // 4)
        stage.put_node(plain)
    for name, repair in (("evil-one", PODS_ONLY), ("evil-all", FORCE)):
        blocks(stage, name, 4, labels=repair)
        stage.endure()
        lose_pods(stage, name, 4)
    return stage


def blocks(
    stage: Stage,
    name: str,
    pods: int,
    size: int = 2,
    **group: Any,  # noqa: ANN401
) -> None:
    """A gang in blocks of as many nodes."""
    stage.group(name, pods, annotations={"sp-block": f"{16 * size}"}, **group)
    pods_return(stage, name, pods, 16, nodeSelector=A3)


def act_in_superpods(stage: Stage) -> None:
    """The pods come back, then gangs whose blocks fit, or fit nowhere."""
    for name in ("evil-one", "evil-all"):
        pods_return(stage, name, 4, 16, nodeSelector=A3)
    stage.endure(1)
    blocks(stage, "evil-four", 4, size=4)
    stage.endure(1)
    blocks(stage, "evil-hard", 4)
    blocks(stage, "evil-wide", 10)
    blocks(stage, "evil-soft", 4, labels={"super-pod-affinity": "soft"})
    put_a_node_for_the_canary(stage)
    canary(stage)


# Moves


def halves() -> Stage:
    """Half of each of two nodes is free, where jobs run that may be moved."""
    stage = Stage("a b", conf_of("enqueue, allocate, backfill, rearrange"))
    meta = {
        "labels": {names.MOVABLE: "true"},
        "annotations": {names.CHECKPOINT_SECONDS: "1"},
    }
    for name in ("gone", "evil-first", "evil-second"):
        stage.group(name, 1, **meta)
        stage.pod(f"{name}-0", 4, name, owned=True)
        stage.endure(1)
    stage.drop_pod("gone-0")
    stage.drop_group("gone")
    stage.endure(3600)
    put_a_node_for_the_canary(stage)
    return stage


def act_where_jobs_move(stage: Stage) -> None:
    """A job of a whole node comes, for which one of the others is moved."""
    stage.gang("evil-big", 1)
    stage.endure(10)
    stage.endure(10)
    for name in ("evil-first", "evil-second"):
        if stage.cache.gangs[f"default/{name}"].binding.evicting:
            stage.drop_pod(f"{name}-0")
            stage.endure(1)
            stage.pod(f"{name}-0", 4, name, owned=True)
    canary(stage)


SCENES: Final[Mapping[str, Scene]] = MappingProxyType(
    {
        "full": Scene(full, act_where_it_is_full),
        "crowded": Scene(crowded, act_where_it_is_crowded),
        "leaves 1.0": Scene(leaves("1.0"), act_under_leaves),
        "leaves 2.0": Scene(leaves("2.0"), act_under_leaves),
        "SuperPoDs": Scene(superpods, act_in_superpods),
        "moves": Scene(halves, act_where_jobs_move),
    }
)
