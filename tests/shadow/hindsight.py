"""A second look at what a shadow has found, with nothing of the shadow's.

Its own watch tells in which order pods were bound; the oracles tell what is legal and
which of two nodes ranks better.
"""

import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPException
from typing import Any, Final, Self

from ringleaf.kube.shadow_results import Finding
from ringleaf_testbed.client import Client
from ringleaf_testbed.hardware import Machine
from tests.network_oracle import (
    NetJob,
    Pod,
    Spot,
    World,
    is_legal_1,
    is_legal_superpods,
    with_pods,
)
from tests.oracle import OracleJob, OracleNode, legal_choices, node_rank

Object = dict[str, Any]
GROUP: Final = "scheduling.k8s.io/group-name"
REAL: Final = "huawei.com/AscendReal"
PER_LEAF: Final = 4
PLACED_AS_A_WHOLE: Final = ("leaf", "superpod")


class Witness:
    """Sees every pod that is bound, in order, while it is open."""

    def __init__(self, client: Client) -> None:
        self.pods: dict[str, Object] = {}
        """By name, in the order in which they were bound; as they were seen last."""
        _listed, self._version = client.list_all("/api/v1/pods")
        self._client = client
        self._is_closed = False
        self._watch = client.watch("/api/v1/pods", self._version)
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._is_closed:
            with suppress(OSError, HTTPException):  # closed in the middle of a line
                for line in self._watch:
                    self._see(json.loads(line)["object"])
            if not self._is_closed:  # the API server ends one that is slow
                self._watch = self._client.watch("/api/v1/pods", self._version)

    def _see(self, found: Object) -> None:
        assert found["kind"] == "Pod", found
        self._version = found["metadata"]["resourceVersion"]
        if found["spec"].get("nodeName"):
            self.pods[found["metadata"]["name"]] = found

    def has_seen(self, names: Iterable[str]) -> bool:
        """Whether it saw all of these pods being bound and naming their chips."""
        found = [self.pods.get(name) for name in names]
        return all(each and REAL in each["metadata"]["annotations"] for each in found)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """See no more."""
        self._is_closed = True
        self._watch.close()
        self._thread.join()


class Hindsight:
    """The cluster as it was when a job was bound, for any job."""

    def __init__(
        self, leaf_machines: Iterable[Machine], others: Iterable[Machine]
    ) -> None:
        self._spots = {
            machine.name: Spot(_node(machine), f"leaf-{i // PER_LEAF}", i % PER_LEAF)
            for i, machine in enumerate(leaf_machines)
        }
        self._spots |= {machine.name: Spot(_node(machine)) for machine in others}

    def look(
        self, pods: Mapping[str, Object], finding: Finding
    ) -> tuple[World, NetJob, list[Pod]]:
        """The world without the job, the job, and its pods."""
        names = [place.pod for place in finding.theirs]
        order = list(pods)
        last = max(order.index(name) for name in names)
        kinds = Counter(_group(each) for each in pods.values())
        before = [
            self._pod(pods[name], kinds[_group(pods[name])])
            for name in order[:last]
            if name not in names and _group(pods[name]) not in finding.aside
        ]
        own = [self._pod(pods[name], len(names)) for name in names]
        world = with_pods(World(tuple(self._spots.values())), before)
        return world, own[0].job, own

    def _pod(self, found: Object, replicas: int) -> Pod:
        node = found["spec"]["nodeName"]
        notes = found["metadata"]["annotations"]
        labels = found["metadata"].get("labels", {})
        chips = tuple(int(n.rpartition("-")[2]) for n in notes[REAL].split(","))
        limits = found["spec"]["containers"][0]["resources"]["limits"]
        asked = next(int(n) for name, n in limits.items() if name[:6] == "huawei")
        product = self._spots[node].node.product
        strategy = labels.get("npu-310-strategy", "chip")
        block = notes.get("sp-block")
        job = NetJob(
            _group(found),
            OracleJob(product, asked, replicas, strategy),
            labels.get("tor-affinity"),
            None if block is None else int(block),
        )
        return Pod(job, 0, node, chips)

    def is_legal(self, world: World, job: NetJob, own: list[Pod]) -> bool:
        """Whether the oracles allow it: chips pod by pod, nodes as a whole."""
        spots = [world.spot(pod.node) for pod in own]
        if job.block is not None:
            spots.sort(key=lambda spot: spot.node.superpod or 0)
            return is_legal_superpods(world, job, spots)
        if job.label is not None:
            return is_legal_1(_nearby(world, spots), job, spots)
        return all(
            frozenset(pod.chips) in set(legal_choices(node, job.pod))
            for node, pod in _one_after_the_other(world, own)
        )

    def is_best(self, world: World, job: NetJob, own: list[Pod]) -> bool:
        """Whether no node ranks before those that were taken, but for its name."""
        nodes = {spot.name: spot.node for spot in world.spots}
        left = list(own)
        while left:
            ranks = {
                name: rank[:-1]
                for name, node in nodes.items()
                if (rank := node_rank(node, job.pod)) is not None
            }
            best = min(ranks.values())
            taken = next((p for p in left if ranks.get(p.node) == best), None)
            if taken is None:
                return False
            left.remove(taken)
            node = nodes[taken.node]
            nodes[taken.node] = replace(node, free=node.free.difference(taken.chips))
        return True


def same_ranks(
    world: World, job: NetJob, one: Iterable[str], other: Iterable[str]
) -> bool:
    """Whether two sets of nodes have the same ranks, but for their names."""
    ranks = []
    for names in (one, other):
        found = [node_rank(world.spot(name).node, job.pod) for name in names]
        ranks.append(sorted(rank[:-1] for rank in found if rank is not None))
    return ranks[0] == ranks[1]


def _one_after_the_other(
    world: World, own: Iterable[Pod]
) -> Iterator[tuple[OracleNode, Pod]]:
    nodes = {spot.name: spot.node for spot in world.spots}
    for pod in own:
        node = nodes[pod.node]
        yield node, pod
        nodes[pod.node] = replace(node, free=node.free.difference(pod.chips))


def _nearby(world: World, spots: Iterable[Spot]) -> World:
    """Jobs of several pods under the leaves of *spots*: the only ones that count."""
    leaves = {spot.leaf for spot in spots}
    leaf_of = {spot.name: spot.leaf for spot in world.spots}
    near = {p.job.name for p in world.pods if leaf_of[p.node] in leaves}
    pods = [p for p in world.pods if p.job.name in near and p.job.replicas > 1]
    return replace(world, pods=tuple(pods))


def _node(machine: Machine) -> OracleNode:
    every = frozenset(range(machine.chips))
    superpod = machine.superpod if machine.superpod >= 0 else None
    return OracleNode(
        machine.name, machine.product.key, machine.chips, every, superpod=superpod
    )


def _group(found: Object) -> str:
    meta = found["metadata"]
    return f"{meta['namespace']}/{meta['annotations'][GROUP]}"
