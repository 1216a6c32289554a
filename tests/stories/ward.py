"""Jobs on what breaks, and a witness who sees every pod come and go."""

import json
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPException
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from ringleaf_testbed.client import Client
from ringleaf_testbed.process import Child
from ringleaf_testbed.report import ChipFault
from tests.deploy.helm import ACCOUNT
from tests.soak.audit import written
from tests.stories.stage import (
    A2,
    GRACE_S,
    R910,
    Object,
    Stage,
    chips_of,
    node_of,
    vcjob,
)

PARAMETERS: Final = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: affinity}}]
- plugins: [{{name: predicates}}, {{name: proportion}}, {{name: nodeorder}}]
configurations:
- name: init-params
  arguments: {{{}}}
"""
QUICK: Final = (
    "fault-brake-percent: 100, grace-over-time: 2, superpod-escalation-seconds: 1,"
    " job-escalation-seconds: 8, set-aside-seconds: 0"
)
COLLECTED: Final = PARAMETERS.format(QUICK)
"""Reports of the cluster daemon count."""
COLLECTED_2: Final = PARAMETERS.format(f"{QUICK}, nslb-version: '2.0'")
"""The same; switches as in 2.0."""
DIRECT: Final = PARAMETERS.format(
    f"{QUICK}, nslb-version: '2.0', useClusterInfoManager: false"
)
"""Reports of the nodes themselves count; switches as in 2.0."""

WHOLE: Final = {"fault-scheduling": "force"}
SINGLE: Final = WHOLE | {"pod-rescheduling": "on"}

FINALIZER: Final = "ringleaf.io/story"
FAULTS: Final = "volcano-system", "vcjob-fault-npu-cm"
REASONS: Final = "mindx-dl", "job-reschedule-reason"
OVER: Final = ("Succeeded", "Failed")

Place = tuple[str, tuple[int, ...]]


class Witness:
    """Sees every change of the pods of a namespace, in the API server's order."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._client = client
        _items, version = client.list_all(self._path)
        self._watch = client.watch(self._path, version)
        self._seen: list[tuple[str, Object]] = []
        self._thread = threading.Thread(target=self._keep_looking, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.close()
        self._thread.join(timeout=10)

    def _keep_looking(self) -> None:
        with suppress(OSError, HTTPException):  # at the end, in the middle of a line
            for line in self._watch:
                told = msgspec.json.decode(line)
                is_pod = told["object"]["kind"] == "Pod"
                if is_pod and told["type"] != "BOOKMARK":
                    self._seen.append((told["type"], told["object"]))

    def has_seen(self, pods: Iterable[Object]) -> bool:
        """Whether it knows what was listed."""
        return live(self._seen).keys() == {uid(each) for each in pods}

    def nodes(self) -> set[str]:
        """Where pods were, at any time."""
        return {node_of(each) for _kind, each in self._seen if node_of(each)}

    def shared_chips(self) -> list[str]:
        """Chips that two pods had at once, at any time."""
        found: set[str] = set()
        for n, (kind, each) in enumerate(self._seen):
            if kind == "MODIFIED" and node_of(each):
                found.update(shared(live(self._seen[: n + 1]).values()))
        return sorted(found)


def live(seen: Iterable[tuple[str, Object]]) -> dict[str, Object]:
    """The pods that there are, after all this was seen."""
    pods: dict[str, Object] = {}
    for kind, each in seen:
        pods[uid(each)] = each
        if kind == "DELETED":
            del pods[uid(each)]
    return pods


def shared(pods: Iterable[Object]) -> Iterator[str]:
    """Chips that two of these pods have."""
    owners = Counter(
        (node_of(each), chip)
        for each in pods
        if node_of(each) and each["status"]["phase"] not in OVER
        for chip in chips_of(each)
    )
    for (node, chip), n_pods in owners.items():
        if n_pods > 1:
            yield f"{node}: chip {chip} had {n_pods} owners"


class Ward:
    """A stage on which things break, and are mended at the end."""

    def __init__(self, stage: Stage, witness: Witness) -> None:
        self.stage, self.actor, self.witness = stage, stage.actor, witness
        self._broken: set[str] = set()
        self._unready: set[str] = set()
        self._held: list[str] = []
        self._sizes: dict[str, int] = {}
        self._children: list[Child] = []

    def start(self, conf: str, *options: str, **more: Any) -> Child:  # noqa: ANN401 - as it is
        """A scheduler of the story's own, which ends with it."""
        self.stage.stop_scheduler()
        self._children.append(self.stage.start_scheduler(conf, *options, **more))
        return self._children[-1]

    def stop(self) -> None:
        """End the scheduler of the story, and see that it ends well."""
        child = self._children.pop()
        child.stop(GRACE_S)
        assert child.status == 0, child.last_words()

    # What breaks.

    def fail_chips(
        self, node: str, chips: Iterable[int], fault: ChipFault | None = None
    ) -> None:
        """Break chips, and report it."""
        self._broken.add(node)
        self.actor.fail_chips(node, chips, fault)

    def fail_pod(self, found: Object) -> None:
        """Let a pod end with an error."""
        path = f"{self.stage.pod_path(found['metadata']['name'])}/status"
        self.stage.bed.client.ask("PATCH", path, {"status": {"phase": "Failed"}})

    def fail_node(self, node: str) -> None:
        """Let the daemon of a node say that it is broken."""
        self._broken.add(node)
        self.actor.fail_node(node)

    def fail_nodes_at_once(self, nodes: Collection[str]) -> None:
        """Let the cluster daemon say of all of them that they are broken."""
        self._broken.update(nodes)
        self.actor.fail_nodes_at_once(nodes)

    def fail_switch(self, node: str) -> None:
        """Let the switches of a node be reported as broken."""
        self._broken.add(node)
        self.actor.fail_switch(node)

    def lose_node(self, node: str) -> None:
        """Let nothing be heard of a node."""
        self._unready.add(node)
        self.actor.set_ready(node, ready=False)

    def hold(self, found: Object) -> None:
        """Let a pod take its time to end."""
        name = found["metadata"]["name"]
        self._held.append(name)
        self._finalize(name, [FINALIZER])

    def drop_hold(self) -> None:
        """Let pods end that took their time."""
        for name in self._held:
            self._finalize(name, None)
        self._held.clear()

    def _finalize(self, name: str, finalizers: list[str] | None) -> None:
        body = {"metadata": {"finalizers": finalizers}}
        self.stage.bed.client.request("PATCH", self.stage.pod_path(name), body)

    def mend(self) -> None:
        """Let everything be well again."""
        for child in self._children:
            child.kill()
        self.drop_hold()
        for node in sorted(self._broken):
            self.actor.recover_chips(node)
            self.actor.recover_node(node)
            self.actor.recover_switch(node)
        for node in sorted(self._unready):
            self.actor.set_ready(node, ready=True)
            self.stage.wait(lambda n=node: self._is_open(n), f"{node} to take pods")  # type: ignore[misc]

    def _is_open(self, node: str) -> bool:
        found = self.stage.bed.client.ask("GET", f"/api/v1/nodes/{node}")
        return not found["spec"].get("taints")

    # Jobs.

    def run(
        self,
        name: str,
        n_pods: int,
        chips: int,
        says: Mapping[str, str],
        *,
        selector: Mapping[str, str] = A2,
        **more: Any,  # noqa: ANN401 - whatever a Volcano Job has
    ) -> list[Object]:
        """The pods of a new job with labels, once they run."""
        self._sizes[name] = n_pods
        made = vcjob(name, n_pods, chips, selector=selector, labels=says, **more)
        self.stage.apply(made)
        return self.stage.wait_until_running(name, n_pods)

    def wait_for_others(self, job: str, before: list[Object]) -> list[Object]:
        """The pods of a job, once all of *before* are others, all run, all is over."""
        old = {uid(each) for each in before}

        def are_others() -> bool:
            now = self.stage.pods(job)
            phases = [each["status"]["phase"] for each in now]
            same = old & {uid(each) for each in now}
            return not same and phases == ["Running"] * self._sizes[job]

        self.stage.wait(are_others, f"{len(old)} other pods of {job} to run")
        self.wait_until_over(job)
        return self.stage.pods(job)

    def wait_until_over(self, job: str) -> None:
        """Nobody repairs the job any more."""
        self.stage.wait(lambda: not self.is_repaired(job), f"{job} to be whole")

    def is_repaired(self, job: str) -> bool:
        """Whether a record says that a job is being repaired."""
        said = self.stage.record_of(job)
        return bool(said) and not json.loads(said).get("is_over")

    def told(self, job: str, reason: str) -> list[str]:
        """What was told of a job, once something was."""
        self.stage.wait(lambda: self.stage.group_of(job), f"the PodGroup of {job}")
        name = self.stage.group_of(job)["metadata"]["name"]
        self.stage.wait(lambda: self.stage.events(name, reason), f"{reason} of {job}")
        return self.stage.events(name, reason)

    # What is kept.

    def kept(self, where: tuple[str, str], key: str) -> Any:  # noqa: ANN401 - JSON
        """What a ConfigMap has under *key*; None where it has nothing."""
        namespace, name = where
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        _status, found = self.stage.bed.client.request("GET", path)
        text = (found.get("data") or {}).get(key)
        return json.loads(text) if text else None

    def forget(self) -> None:
        """Let nothing be known of earlier faults, of which schedulers would know."""
        self.stage.stop_scheduler()
        namespace, name = FAULTS
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        self.stage.bed.client.request("DELETE", path)

    def wait_for_kept(self, where: tuple[str, str], key: str, words: str) -> Any:  # noqa: ANN401 - JSON
        """What a ConfigMap has under *key*, once it has *words*."""
        self.stage.wait(
            lambda: words in json.dumps(self.kept(where, key)), f"{key} to have {words}"
        )
        return self.kept(where, key)

    def deleted(self) -> list[str]:
        """The pods that the scheduler has deleted, each as often as it was there.

        By the API server's audit log: pods may be deleted by others too.
        """
        found = []
        here = f'"namespace":"{self.stage.namespace}"'
        for told in written(self.stage.bed.audit_log, here):
            about = told["objectRef"]
            mine = told["user"]["username"] == ACCOUNT and told["verb"] == "delete"
            if mine and about["resource"] == "pods":
                is_done = told["responseStatus"]["code"] == HTTPStatus.OK
                found += [about["name"]] if is_done else []
        return sorted(found)

    def has_seen_all(self) -> None:
        """Wait until the witness knows all that has happened."""
        self.stage.wait(
            lambda: self.witness.has_seen(self.stage.pods()), "the witness to see all"
        )


def uid(found: Object) -> str:
    """Which of the pods of this name it is."""
    return str(found["metadata"]["uid"])


def uids(pods: Iterable[Object]) -> list[str]:
    """Which of the pods of these names they are."""
    return [uid(each) for each in pods]


def place(found: Object) -> Place:
    """The node and the chips of a pod."""
    return node_of(found), tuple(chips_of(found, R910))


def places(pods: Iterable[Object]) -> list[Place]:
    """The nodes and the chips of pods."""
    return [place(each) for each in pods]


def names(job: str, *numbers: int) -> list[str]:
    """The names of the pods of a Volcano Job."""
    return [f"{job}-worker-{number}" for number in numbers]


def on(node: str) -> dict[str, str]:
    """What a pod selects that wants to be on a node."""
    return {"kubernetes.io/hostname": node}
