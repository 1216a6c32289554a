"""The fabric controller's side: which network it would configure for each job.

It watches ConfigMaps by their label, puts slices together, passes over what is not
whole, and takes a network down when a summary says so or is gone. What a job really
has follows from its pods and the list of leaf switches; the two must be the same.
"""

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any, Final, Self

from msgspec import Struct

from ringleaf_testbed.client import Client, Watch

MAPS: Final = "/api/v1/configmaps"
LABEL: Final = "outside-job-info=true"
MARK: Final = "ringleaf.io/summary"
CONFIGURATION: Final = "ascend.kubectl.kubernetes.io/ascend-910-configuration"

Object = dict[str, Any]
Leaves = Mapping[str, str]
"""Address of a node -> that of its leaf."""


class Network(Struct, frozen=True):
    """What is configured for a job: who takes part, and which paths it needs."""

    hosts: frozenset[str]
    chips: frozenset[tuple[str, str]]
    """Rank and address of each."""
    leaves: frozenset[str]
    shared: frozenset[str]
    """Leaves whose spine links other jobs use as well."""
    paths: frozenset[tuple[str, str]]
    """Pairs of leaves between which it needs the spine."""


def network(
    chips: Iterable[tuple[str, str]],
    hosts: Iterable[str],
    shared: Iterable[str],
    leaves: Leaves,
) -> Network:
    """The network of a job with these *chips* on these *hosts*."""
    used = [*hosts]
    crossed = {leaves[host] for host in used if host in leaves}
    return Network(
        frozenset(used),
        frozenset(chips),
        frozenset(crossed),
        frozenset(shared),
        frozenset(combinations(sorted(crossed), 2)),
    )


def real_network(pods: Iterable[Object], leaves: Leaves) -> Network | None:
    """The network that a job has, by what is written on its *pods*."""
    hosts, shared = set[str](), set[str]()
    chips = set[tuple[str, str]]()
    for pod in pods:
        notes = pod["metadata"].get("annotations") or {}
        if CONFIGURATION not in notes:
            continue
        part = json.loads(notes[CONFIGURATION])
        first = int(notes["hccl/rankIndex"]) * len(part["devices"])
        hosts.add(part["host_ip"])
        chips |= {
            (str(first + i), device["device_ip"])
            for i, device in enumerate(part["devices"])
        }
        if notes.get("isSharedTor") == "1":
            shared.add(notes["sharedTorIp"])
    return network(chips, hosts, shared, leaves) if hosts else None


class Fabric:
    """Reads summaries; ``networks`` is what it would have configured now.

    Args:
        leaves: Which node is under which leaf.
        configured: Is told of every network that is configured, with its job.

    """

    def __init__(
        self,
        leaves: Leaves,
        configured: Callable[[str, Network], None] = lambda _job, _network: None,
    ) -> None:
        self._leaves, self._configured = leaves, configured
        self._maps: dict[str, Object] = {}
        self.networks: dict[str, Network] = {}
        """By ``namespace/name`` of the job."""

    def put(self, found: Object) -> None:
        """A summary is new or has changed."""
        meta = found["metadata"]
        self._maps[f"{meta['namespace']}/{meta['name']}"] = found
        self._read(meta["namespace"], found["data"]["job_name"])

    def drop(self, gone: Object) -> None:
        """A summary is gone."""
        meta = gone["metadata"]
        self._maps.pop(f"{meta['namespace']}/{meta['name']}", None)
        self._read(meta["namespace"], gone["data"]["job_name"])

    def _read(self, namespace: str, job: str) -> None:
        key = f"{namespace}/{job}"
        base = self._maps.get(f"{namespace}/job-summary-{job}")
        if base is None or base["data"]["operator"] == "delete":
            self.networks.pop(key, None)
            return
        slices = self._whole(base, namespace, job)
        if slices is None:
            return  # what was configured stays until the rest is there
        tables = [json.loads(each["data"]["hccl.json"]) for each in slices]
        if any(table["status"] != "complete" for table in tables):
            return
        servers = [server for table in tables for server in table["server_list"]]
        assert all(int(t["server_count"]) == len(servers) for t in tables)
        assert all(t["total"] == len(tables) for t in tables)
        shared = json.loads(base["data"].get("sharedTorIp") or "[]")
        chips = [
            (device["rank_id"], device["device_ip"])
            for server in servers
            for device in server["device"]
        ]
        assert len({rank for rank, _address in chips}) == len(chips), "a rank twice"
        hosts = [server["host_ip"] for server in servers]
        found = network(chips, hosts, shared, self._leaves)
        if self.networks.get(key) != found:
            self.networks[key] = found
            self._configured(key, found)

    def _whole(self, base: Object, namespace: str, job: str) -> list[Object] | None:
        """The slices of a summary; None where some are missing or older."""
        found = [base]
        for index in range(1, int(base["data"]["total"])):
            each = self._maps.get(f"{namespace}/job-summary-{job}-{index}")
            if each is None or each["data"]["cm_index"] != str(index):
                return None
            found.append(each)
        versions = {each["metadata"].get("annotations", {}).get(MARK) for each in found}
        ids = {each["data"]["job_id"] for each in found}
        return found if len(versions) == len(ids) == 1 else None


class Watcher:
    """A fabric controller that watches an API server, while it is entered."""

    def __init__(self, client: Client, fabric: Fabric) -> None:
        self._client, self.fabric = client, fabric
        self.failure: BaseException | None = None
        self._watch: Watch | None = None
        self._is_over = False

    def __enter__(self) -> Self:
        found, version = self._client.list_all(MAPS, labelSelector=LABEL)
        for each in found:
            self.fabric.put(each)
        self._watch = self._client.watch(MAPS, version, labelSelector=LABEL)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over = True
        if self._watch is not None:
            self._watch.close()
        self._thread.join(timeout=10)
        assert self.failure is None, self.failure

    def _follow(self) -> None:
        assert self._watch is not None
        try:
            for line in self._watch:
                event = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED"):
                    self.fabric.put(event["object"])
                elif event["type"] == "DELETED":
                    self.fabric.drop(event["object"])
        except Exception as error:  # noqa: BLE001 - it is told when it ends
            if not self._is_over:
                self.failure = error
