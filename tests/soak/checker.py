"""Says what is wrong in a cluster, from what its API server says and nothing else.

It shares no code with the scheduler: objects are plain JSON here, rules are written
down a second time, in a few lines each. Run alone, it prints one line for each fault.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from itertools import combinations
from pathlib import Path
from typing import Any

from msgspec import Struct

from ringleaf_testbed.actor import connect
from ringleaf_testbed.client import Client
from ringleaf_testbed.source import TestbedError

PODGROUPS = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
JOB_NAME = "volcano.sh/job-name"
"""The label of pods that names their Volcano Job."""
JOBS = "/apis/batch.volcano.sh/v1alpha1/jobs"
REAL = "huawei.com/AscendReal"
TIME = "predicate-time"
USED_UP = str(2**64 - 1)
"""The predicate-time of a pod whose chips the device plugin gave to somebody."""
GROUP = "scheduling.k8s.io/group-name"
VENDOR = "huawei.com/"
OVER = ("Succeeded", "Failed")
TENANT = "tenant"
"""The namespace of somebody who writes whatever the API server takes."""
RESTRICTED = ("tor-affinity", "super-pod-affinity", "sp-block")
"""Labels and annotations of jobs that want more of nodes than room."""

# accelerator-type -> chips that are wired together. On rings a pod stays inside one
# unless it takes the node; in modules it takes whole ones unless it asks for one chip.
RINGS = {"module": 4}
MODULES = {"module-a3-16-super-pod": 2}

Object = dict[str, Any]


class Node(Struct, frozen=True):
    """What a node says of itself."""

    name: str
    kind: str
    chips: frozenset[str]
    is_open: bool
    """Whether it is ready and takes pods."""


class Pod(Struct, frozen=True):
    """What a pod asks for, where it is, and which chips it says are its own."""

    name: str
    group: str
    node: str
    phase: str
    asked: int
    chips: tuple[str, ...]
    kind: str
    restricted: bool
    ours: bool
    job: str = ""
    """The Volcano Job that it belongs to."""
    swapped: bool = False
    """Whether another pod of its node was given its chips and it has none yet: device
    plugins take the oldest annotation, whoever asks."""

    @property
    def holds(self) -> bool:
        """Whether what it was given is its own."""
        return bool(self.node) and self.phase not in OVER

    @property
    def waits(self) -> bool:
        """Whether it wants a node."""
        return not self.node and self.phase not in OVER


class Cluster(Struct, frozen=True):
    """What the API server says at one moment, or nearly so."""

    nodes: dict[str, Node]
    pods: list[Pod]
    least: dict[str, int]
    """PodGroup -> its minMember."""
    jobs: dict[str, str]
    """Volcano Job -> its phase."""
    wanted: dict[str, int] = {}
    """Volcano Job -> the pods of all its tasks."""


def read(client: Client, scheduler: str = "ringleaf") -> Cluster:
    """The cluster as it is now; pods come last, so their nodes may be gone already."""
    nodes = [_node(each) for each in client.list_all("/api/v1/nodes")[0]]
    groups = _honest(client.list_all(PODGROUPS)[0])
    jobs = client.list_all(JOBS)[0]
    pods = _honest(client.list_all("/api/v1/pods")[0])
    return Cluster(
        nodes={node.name: node for node in nodes},
        pods=[_pod(each, scheduler) for each in pods],
        least={_key(each): each["spec"].get("minMember", 1) for each in groups},
        jobs={
            _key(each): each.get("status", {}).get("state", {}).get("phase", "")
            for each in jobs
        },
        wanted={
            _key(each): sum(task.get("replicas", 1) for task in each["spec"]["tasks"])
            for each in jobs
        },
    )


def _honest(objects: list[Object]) -> list[Object]:
    """Without what a hostile tenant says; device plugins know what its pods hold."""
    return [each for each in objects if each["metadata"]["namespace"] != TENANT]


def mistakes(cluster: Cluster) -> list[str]:
    """What must never be, not for a moment."""
    return [*_owners(cluster), *_chips(cluster), *_unbound(cluster)]


def losses(cluster: Cluster) -> list[str]:
    """What must not stay: gangs in part, pods on nodes that are gone, idle room."""
    return [*_halves(cluster), *_stranded(cluster), *_left_out(cluster)]


def unrun(cluster: Cluster) -> list[str]:
    """Whatever does not run, where there is room for everything."""
    pods = [
        f"Pod {pod.name}: it is {pod.phase}, all should run"
        for pod in cluster.pods
        if pod.ours and pod.phase not in ("Running", "Succeeded")
    ]
    jobs = [
        f"Job {name}: it is {phase or 'not looked at'}, all should run"
        for name, phase in cluster.jobs.items()
        if phase not in ("Running", "Completed")
    ]
    return pods + jobs


def lost_by_volcano(cluster: Cluster) -> list[str]:
    """Volcano Jobs with fewer pods than they are to have, whatever becomes of these."""
    there = Counter(pod.job for pod in cluster.pods)
    return [
        name
        for name, wanted in sorted(cluster.wanted.items())
        if cluster.jobs[name] != "Completed" and there[name] < wanted
    ]


def _owners(cluster: Cluster) -> Iterator[str]:
    owners: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for pod in cluster.pods:
        for chip in pod.chips if pod.holds and not pod.swapped else ():
            owners[pod.node, chip].append(pod.name)
    for (node, chip), names in sorted(owners.items()):
        if len(names) > 1:
            yield f"Node {node}: {chip} has {len(names)} owners, {', '.join(names)}"


def _chips(cluster: Cluster) -> Iterator[str]:
    for pod in cluster.pods:
        node = cluster.nodes.get(pod.node)
        if node is None or not pod.holds or not (pod.asked or pod.chips):
            continue
        if len(set(pod.chips)) != pod.asked:
            found = ",".join(pod.chips) or "none"
            yield f"Pod {pod.name}: its chips are {found}, it asked for {pod.asked}"
        elif unknown := sorted({*pod.chips} - node.chips):
            yield f"Pod {pod.name}: node {node.name} has no {', '.join(unknown)}"
        elif not _is_wired(node.kind, len(node.chips), pod.chips):
            found = ",".join(pod.chips)
            yield f"Pod {pod.name}: {found} are not wired together on {node.name}"


def _is_wired(kind: str, n_chips: int, chips: tuple[str, ...]) -> bool:
    numbers = [int(chip.rpartition("-")[2]) for chip in chips]
    if kind in RINGS and len(numbers) < n_chips:
        return len({number // RINGS[kind] for number in numbers}) == 1
    if kind in MODULES and len(numbers) > 1:
        size = MODULES[kind]
        touched = Counter(number // size for number in numbers)
        return set(touched.values()) == {size}
    return True


def _unbound(cluster: Cluster) -> Iterator[str]:
    for pod in cluster.pods:
        if pod.waits and pod.chips:
            yield f"Pod {pod.name}: it has no node and {','.join(pod.chips)}"


def _halves(cluster: Cluster) -> Iterator[str]:
    bound, done = Counter[str](), Counter[str]()
    for pod in cluster.pods:
        bound[pod.group] += pod.holds and pod.node in cluster.nodes
        done[pod.group] += pod.phase == "Succeeded"
    for group, least in sorted(cluster.least.items()):
        if 0 < bound[group] < least - done[group]:
            yield f"PodGroup {group}: {bound[group]} pods are bound, {least} must be"


def _stranded(cluster: Cluster) -> Iterator[str]:
    for pod in cluster.pods:
        if pod.holds and pod.node not in cluster.nodes:
            yield f"Pod {pod.name}: it is bound to {pod.node}, which is not there"


def _left_out(cluster: Cluster) -> Iterator[str]:
    """Gangs that wait beside enough free chips; those with further wishes pass."""
    used: defaultdict[str, set[str]] = defaultdict(set)
    waiting: defaultdict[str, list[Pod]] = defaultdict(list)
    members = Counter[str]()
    for pod in cluster.pods:
        used[pod.node].update(pod.chips if pod.holds else ())
        members[pod.group] += pod.phase != "Failed"
        if pod.waits and pod.ours and pod.asked:
            waiting[pod.group or f"pod {pod.name}"].append(pod)
    for group, pods in sorted(waiting.items()):
        lead = pods[0]
        alike = {(pod.asked, pod.kind) for pod in pods} == {(lead.asked, lead.kind)}
        ready = members[group] >= cluster.least.get(group, 1) or not lead.group
        if lead.restricted or not (alike and ready):
            continue
        rooms = (
            _room(node, len(used[node.name]), lead.asked, used[node.name])
            for node in cluster.nodes.values()
            if node.is_open and node.kind == lead.kind
        )
        if sum(rooms) >= len(pods):
            yield f"{group}: {len(pods)} pods wait, and there is room for all"


def _room(node: Node, n_used: int, asked: int, used: set[str]) -> int:
    """Pods of that size that surely fit; on wired chips at most one is counted."""
    if node.kind not in RINGS | MODULES:
        return (len(node.chips) - n_used) // asked
    free = sorted(node.chips - used)
    if len(free) == len(node.chips):
        return len(node.chips) // asked
    return int(any(_is_wired(node.kind, 99, c) for c in combinations(free, asked)))


def _node(given: Object) -> Node:
    meta, status = given["metadata"], given.get("status", {})
    listed = meta.get("annotations", {}).get("baseDeviceInfos", "{}")
    ready = {c["type"]: c["status"] for c in status.get("conditions") or ()}
    spec = given.get("spec", {})
    return Node(
        name=meta["name"],
        kind=meta.get("labels", {}).get("accelerator-type", ""),
        chips=frozenset(json.loads(listed)),
        is_open=ready.get("Ready") == "True"
        and not spec.get("unschedulable")
        and not spec.get("taints"),
    )


def _pod(given: Object, scheduler: str) -> Pod:
    meta, spec = given["metadata"], given["spec"]
    notes: Mapping[str, str] = meta.get("annotations", {})
    wishes = _wishes(spec)
    resource = next(iter(wishes), "")
    named = notes.get(REAL) or notes.get(resource) or ""
    group = notes.get(GROUP)
    return Pod(
        name=_key(given),
        group=f"{meta['namespace']}/{group}" if group else "",
        node=spec.get("nodeName", ""),
        phase=given["status"].get("phase", ""),
        asked=wishes[resource],
        chips=tuple(chip for chip in named.split(",") if chip),
        kind=spec.get("nodeSelector", {}).get("accelerator-type", ""),
        restricted=not {*meta.get("labels", {}), *notes}.isdisjoint(RESTRICTED),
        ours=spec.get("schedulerName") == scheduler,
        job=f"{meta['namespace']}/{meta.get('labels', {}).get(JOB_NAME, '')}",
        swapped=not notes.get(REAL) and notes.get(TIME) == USED_UP,
    )


def chips_asked(spec: Object) -> int:
    """The chips that a pod of that spec asks for."""
    return sum(_wishes(spec).values())


def _wishes(spec: Object) -> Counter[str]:
    wishes: Counter[str] = Counter()
    for container in spec["containers"]:
        limits = container.get("resources", {}).get("limits", {})
        wishes.update({k: int(v) for k, v in limits.items() if k.startswith(VENDOR)})
    return wishes


def _key(given: Object) -> str:
    return f"{given['metadata']['namespace']}/{given['metadata']['name']}"


def main(kubeconfig: str) -> int:
    """Print what is wrong, one line each; the exit status says whether anything is."""
    try:
        cluster = read(connect(Path(kubeconfig)))
    except (OSError, HTTPException, TestbedError) as error:
        sys.stderr.write(f"checker: {kubeconfig}: {error}\n")
        return 2
    found = mistakes(cluster) + losses(cluster)
    for line in found:
        sys.stdout.write(f"{line}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
