"""Jobs as they come and go on a real API server, and a writer that runs beside."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from ringleaf.kube.api import Api
from ringleaf.kube.credentials import load
from ringleaf.kube.metrics import Metrics
from ringleaf.kube.summary import SummaryWriter
from ringleaf_testbed.cluster import Testbed
from tests.summary.fabric import CONFIGURATION

VOLCANO: Final = "/apis/scheduling.volcano.sh/v1beta1"
PATIENCE_S: Final = 60.0
CHIPS: Final = 2

Object = dict[str, Any]


def address_of(node: int) -> str:
    """The address of a node by its number."""
    return f"10.9.{node // 250}.{node % 250}"


def leaf_of(node: int) -> str:
    """The leaf of a node by its number: four nodes each."""
    return f"10.8.0.{node // 4}"


class Cast:
    """One namespace of a testbed, and what happens in it."""

    def __init__(self, bed: Testbed, namespace: str) -> None:
        self.bed, self.namespace = bed, namespace
        self._ask = bed.client.ask
        self.pods_path = f"/api/v1/namespaces/{namespace}/pods"
        self.groups_path = f"{VOLCANO}/namespaces/{namespace}/podgroups"

    def group(
        self,
        job: str,
        members: int,
        *,
        name: str = "",
        job_id: str = "",
        kind: str = "Job",
        owned: bool = True,
        labels: Mapping[str, str] | None = None,
    ) -> str:
        """Make the PodGroup of a job; the id of the job."""
        job_id = job_id or f"id-{job}"
        owner = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": kind,
            "name": job,
            "uid": job_id,
            "controller": True,
        }
        metadata: Object = {"name": name or job, "labels": dict(labels or {})}
        if owned:
            metadata["ownerReferences"] = [owner]
        made = self._ask(
            "POST",
            self.groups_path,
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "metadata": metadata,
                "spec": {"minMember": members},
            },
        )
        return job_id if owned else made["metadata"]["uid"]

    def pod(
        self,
        job: str,
        rank: int,
        *,
        group: str = "",
        chips: bool = True,
        labels: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        job_id: str = "",
    ) -> str:
        """Make a pod of a job, nowhere yet; its name."""
        name = f"{job}-worker-{rank}"
        asks = {"huawei.com/Ascend910": str(CHIPS)} if chips else {}
        container = {
            "name": "ascend",
            "image": "none",
            "env": [{"name": k, "value": v} for k, v in (env or {}).items()],
            "resources": {"limits": asks, "requests": asks},
        }
        owner = {"apiVersion": "v1", "kind": "Job", "name": job, "controller": True}
        metadata = {
            "name": name,
            "labels": dict(labels or {}),
            "annotations": {"scheduling.k8s.io/group-name": group or job},
            "ownerReferences": [{**owner, "uid": job_id or f"id-{job}"}],
        }
        spec = {"schedulerName": "nobody", "containers": [container]}
        self._ask("POST", self.pods_path, {"metadata": metadata, "spec": spec})
        return name

    def seat(self, name: str, node: int, *, shared: str = "", **notes: str) -> None:
        """Bind a pod to a node, with what the scheduler and the device plugin write."""
        rank = name.rpartition("-")[2]
        said = {"hccl/rankIndex": rank, CONFIGURATION: part(name, node)}
        if shared:
            said |= {"isSharedTor": shared, "isHealthy": "0"}
        if shared == "1":
            said["sharedTorIp"] = leaf_of(node)
        said |= notes
        metadata = {
            "name": name,
            "annotations": {k: v for k, v in said.items() if v},
        }
        body = {"metadata": metadata, "target": {"kind": "Node", "name": f"n{node}"}}
        self._ask("POST", f"{self.pods_path}/{name}/binding", body)

    def become(self, name: str, phase: str = "Running") -> None:
        """Let a pod be in another phase; its container has been started."""
        status = {"name": "ascend", "containerID": f"containerd://{name}"}
        more = {"image": "none", "imageID": "", "ready": True, "restartCount": 0}
        body = {"status": {"phase": phase, "containerStatuses": [{**status, **more}]}}
        self._ask("PATCH", f"{self.pods_path}/{name}/status", body)

    def annotate(self, name: str, **notes: str | None) -> None:
        """Write annotations on a pod."""
        body = {"metadata": {"annotations": notes}}
        self._ask("PATCH", f"{self.pods_path}/{name}", body)

    def remove(self, name: str) -> None:
        """Delete a pod, at once."""
        path = f"{self.pods_path}/{name}?gracePeriodSeconds=0"
        self._ask("DELETE", path)

    def remove_group(self, name: str) -> None:
        """Delete a PodGroup."""
        self._ask("DELETE", f"{self.groups_path}/{name}")

    def clear(self) -> None:
        """Delete all pods, PodGroups and ConfigMaps."""
        self._ask("DELETE", self.pods_path, {"gracePeriodSeconds": 0})
        self._ask("DELETE", self.groups_path)
        self._ask("DELETE", f"/api/v1/namespaces/{self.namespace}/configmaps")

    def job(
        self,
        name: str,
        nodes: list[int],
        *,
        shared: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """A job with a running pod on each of some nodes."""
        self.group(name, len(nodes), labels=labels)
        for rank, node in enumerate(nodes):
            pod = self.pod(name, rank)
            self.seat(pod, node, shared=shared)
            self.become(pod)

    def pods(self, job: str) -> list[Object]:
        """The pods of a job."""
        found, _version = self.bed.client.list_all(self.pods_path)
        prefix = f"{job}-worker-"
        return [p for p in found if p["metadata"]["name"].startswith(prefix)]

    def maps(self) -> dict[str, Object]:
        """The summaries that are there, by name."""
        path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        found, _version = self.bed.client.list_all(
            path, labelSelector="outside-job-info=true"
        )
        return {each["metadata"]["name"]: each for each in found}

    def said(self, job: str) -> dict[str, str]:
        """The data of the first ConfigMap of a job; empty without one."""
        found = self.maps().get(f"job-summary-{job}")
        return {} if found is None else dict(found["data"])

    def wait_for(self, job: str, **said: str) -> dict[str, str]:
        """What the summary of a job says, once it says this."""
        found: dict[str, str] = {}

        def says() -> bool:
            nonlocal found
            found = self.said(job)
            return bool(found) and said.items() <= found.items()

        self.wait(says, f"{said} of {job}")
        return found

    def wait(self, condition: Any, what: str) -> None:  # noqa: ANN401
        """Wait for something, not for ever."""
        self.bed.wait_for(condition, what, PATIENCE_S)

    def wait_for_table(self, job: str, hosts: list[int]) -> Object:
        """The rank table of a job, once it is whole and on these nodes."""
        wanted = sorted(address_of(node) for node in hosts)
        table: Object = {}

        def is_so() -> bool:
            nonlocal table
            table = json.loads(self.said(job).get("hccl.json", "{}"))
            servers = table.get("server_list", [])
            return (
                table.get("status") == "complete"
                and sorted(server["host_ip"] for server in servers) == wanted
            )

        self.wait(is_so, f"{job} on {hosts}")
        return table


def part(pod: str, node: int, chips: int = CHIPS) -> str:
    """A pod's part of the rank table, as the device plugin writes it."""
    devices = [
        {
            "device_id": str(chip),
            "device_ip": f"10.7.{node}.{chip}",
            "super_device_id": str(node * 8 + chip),
        }
        for chip in range(chips)
    ]
    plain = {
        "pod_name": pod,
        "server_id": f"uid-{pod}",
        "server_ip": address_of(node),
        "host_ip": address_of(node),
        "super_pod_id": -1,
        "rack_id": 0,
        "devices": devices,
        "server_index": "0",
    }
    return json.dumps(plain)


class Beside:
    """A writer of summaries on a thread of its own, while it is entered."""

    def __init__(
        self,
        kubeconfig: Path,
        *,
        once: bool = False,
        ahead_s: float = 0.0,
        **options: Any,  # noqa: ANN401
    ) -> None:
        self._kubeconfig, self._once, self._options = kubeconfig, once, options
        self._epoch = time.time() - time.monotonic() + ahead_s
        self.log: list[Object] = []
        self.metrics = Metrics()
        self.writer: SummaryWriter | None = None
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """End it, and see that it ended well."""
        with suppress(RuntimeError):
            if self.writer is not None and self._thread.is_alive():
                self._loop.call_soon_threadsafe(self.writer.stop)
        self._thread.join(timeout=PATIENCE_S)
        assert not self._thread.is_alive()
        assert self._error is None, self._error

    def call(self, work: Callable[[], object]) -> None:
        """Have something done on its loop."""
        self._loop.call_soon_threadsafe(work)

    def skip(self, seconds: float) -> None:
        """Let *seconds* go by for it, and wait until it has done what is due then."""
        asyncio.run_coroutine_threadsafe(self._skip(seconds), self._loop).result(
            PATIENCE_S
        )

    async def _skip(self, seconds: float) -> None:
        writer = self.writer
        assert writer is not None
        self._epoch += seconds
        then = writer.now()
        writer._wake.set()  # noqa: SLF001 - its timer reads another clock
        while writer._last_turn < then or not writer.is_done:  # noqa: ASYNC110, SLF001
            await asyncio.sleep(0.005)

    def wait(self) -> None:
        """Until it ends by itself."""
        self._thread.join(timeout=PATIENCE_S)
        self.end()

    @property
    def n_requests(self) -> int:
        """Requests that it has made."""
        return sum(self.metrics.requests.values())

    def lines(self, event: str) -> list[Object]:
        """What it has said of one kind."""
        return [line for line in self.log if line["event"] == event]

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - told when it ends
            self._error = error

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        credentials = await load(str(self._kubeconfig), None)
        async with Api(credentials, 4, answered=self.metrics.answered) as api:
            clock = self._now
            writer = SummaryWriter(api, self._say, clock=clock, **self._options)
            self.writer = writer
            await writer.run(once=self._once)
        if writer.failure is not None:
            raise writer.failure

    def _now(self) -> float:
        return self._epoch + time.monotonic()

    def _say(self, event: str, **facts: object) -> None:
        self.log.append({"event": event, **facts})
