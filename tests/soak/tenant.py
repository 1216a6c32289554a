"""A tenant who writes whatever the API server takes, while others work.

Everything is in one namespace, and none of it lasts: a few pods with chips, whose
annotations are garbled once they run, pods that claim chips, requests that no node can
meet (also with a high priority, for which nothing must be evicted), forged records of
repairs, labels that change, queues that do not exist, long texts, invented names.
"""

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from ringleaf_testbed.client import Client

NAMESPACE: Final = "tenant"
RESOURCE: Final = "huawei.com/Ascend910"
REAL: Final = "huawei.com/AscendReal"
TIME: Final = "predicate-time"
SERVED: Final = str(2**64 - 1)
"""The predicate-time of a pod whose chips the device plugin has handed out."""
MESH: Final = "module-910b-8"
GROUPS: Final = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{NAMESPACE}/podgroups"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
MOST: Final = 40
"""Objects of a kind that are there at a time."""
PAUSE_S: Final = 0.3
FORBIDDEN: Final = 403
IMPOSSIBLE: Final = "huge"
"""How the names of jobs begin that no node can take."""

TOKEN: Final = "token-of-the-tenant"  # noqa: S105 - of a cluster that lives for minutes
CHIP_TEXTS: Final = (
    *("", "zzz", "Ascend910-0000100", "Ascend910-0000" + "9" * 4400),
    *(",".join(f"Ascend910-{i}" for i in range(8)), "Ascend910-63", "x" * 100_000),
)
"""Annotations that name no chips which the pod could hold."""
BLOCKS: Final = ("000000001" + "0" * 4400, "-8", "9" * 12, "eight", "")
AMOUNTS: Final = ("9E", "-1", "1e9", "4", "9" * 80)
RECORDS: Final = (
    '{"since": 0, "deleted": [0, 1, 2], "placements": []}',
    "{",
    "9" * 5000,
    '{"since": 1e300, "reach": "job", "ailments": [{"replica": 999999}]}',
)

LABELS: Final = (
    *(("tor-affinity", "large-model-schema"), ("tor-affinity", "zzz")),
    *(("super-pod-affinity", "hard"), ("fault-scheduling", "grace")),
    *(("fault-scheduling", "zzz"), ("fault-retry-times", "9" * 60)),
    *(("ring-controller.atlas", "zzz"), ("pod-rescheduling", "on")),
    *(("volcano.sh/preemptable", "zzz"), ("process-recover-enable", "on")),
)
QUEUES: Final = ("default", "research", "no-such-queue", "root")

Plain = dict[str, Any]


class Tenant:
    """Writes at random while it is entered; what it made is gone afterwards.

    Most of it is written as the admin, whom no policy of the chart hinders. Which chips
    a pod holds, only the device plugin can say: another answer of the right form would
    be believed, so the chart's chip guard refuses it. That is tried as the tenant.
    """

    def __init__(
        self,
        client: Client,
        account: Client,
        seed: int,
        nodes: list[str],
        priorities: tuple[str, ...],
    ) -> None:
        self._client, self._account = client, account
        self._nodes, self._priorities = nodes, priorities
        self._dice = random.Random(seed)  # noqa: S311 - to be repeated
        self._number = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.done: Counter[str] = Counter()
        """What was tried -> how often the API server has taken it."""
        self.believed: list[str] = []
        """Pods for which the API server accepted other chips from the tenant."""

    def __enter__(self) -> Self:
        space = {"metadata": {"name": NAMESPACE}}
        self._client.request("POST", "/api/v1/namespaces", space)
        group = "rbac.authorization.k8s.io"
        binding = {
            "metadata": {"name": "tenant"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "admin"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": NAMESPACE}],
        }
        path = f"/apis/{group}/v1/namespaces/{NAMESPACE}/rolebindings"
        self._client.request("POST", path, binding)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """Stop, and take everything along."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._thread.join(timeout=60)
        for path in (GROUPS, PODS):
            self._client.request("DELETE", path, {"gracePeriodSeconds": 0})

    def _run(self) -> None:
        acts: list[Callable[[], str]] = [
            *(self._run_a_pod, self._run_a_pod, self._garble, self._garble),
            *(self._lie, self._claim, self._ask_too_much, self._forge),
            *(self._write_much, self._write_many_containers),
            *(self._make_up_names, self._label, self._remove, self._remove_group),
        ]
        while not self._stopping.wait(self._dice.expovariate(1 / PAUSE_S)):
            with contextlib.suppress(Exception):  # the API server may be away
                if what := self._dice.choice(acts)():
                    self.done[what] += 1

    # What it does.

    def _run_a_pod(self) -> str:
        """A pod with a chip or two, and odd wishes now and then."""
        notes = {"ringleaf.io/run-seconds": str(self._dice.randint(5, 60))}
        if self._dice.random() < 0.3:
            notes["sp-block"] = self._dice.choice(BLOCKS)
        return self._pod("pods with chips", self._dice.choice((1, 2)), notes)

    def _garble(self) -> str:
        """Write on a pod that runs what its chips are not, or nothing."""
        pods = [p for p in self._pods() if _notes(p).get(TIME) == SERVED]
        if not pods:
            return ""
        name = self._dice.choice(pods)["metadata"]["name"]
        text = self._dice.choice((None, *CHIP_TEXTS))
        notes = {REAL: text} if text is not None else {REAL: None, RESOURCE: None}
        body = {"metadata": {"annotations": notes}}
        return self._ask("PATCH", f"{PODS}/{name}", body, "annotations of chips")

    def _lie(self) -> str:
        """Write on a pod that runs other chips of its node, as many as it has."""
        pods = [p for p in self._pods() if _notes(p).get(TIME) == SERVED]
        if not pods:
            return ""
        pod = self._dice.choice(pods)
        held = _notes(pod).get(REAL, "").split(",")
        others = [f"Ascend910-{i}" for i in range(8) if f"Ascend910-{i}" not in held]
        chips = ",".join(others[: len(held)])
        name = pod["metadata"]["name"]
        body = {"metadata": {"annotations": {REAL: chips}}}
        status, _answer = self._account.request("PATCH", f"{PODS}/{name}", body)
        if status < 300:
            self.believed.append(f"{name}: {chips}")
        return "other chips, refused by the chip guard" if status == FORBIDDEN else ""

    def _claim(self) -> str:
        """A pod that asks for no chips, and says that it has some."""
        node = self._dice.choice(self._nodes)
        notes = {REAL: self._dice.choice(CHIP_TEXTS)}
        what = "claims of chips"
        return self._pod(what, 0, notes, nodeName=node, schedulerName="other")

    def _ask_too_much(self) -> str:
        """A gang that no node can take."""
        name, chips = self._name(IMPOSSIBLE), self._dice.choice((9, 16, 999_999))
        limits = {"cpu": self._dice.choice(AMOUNTS)}
        chosen = self._dice.choice(("", *self._priorities))
        rank: Plain = {"priorityClassName": chosen} if chosen else {}
        made = self._group(name, {"minMember": 2, "minResources": limits, **rank})
        for _ in range(2):
            self._pod("", chips, {"scheduling.k8s.io/group-name": name}, **rank)
        return made and "impossible gangs"

    def _forge(self) -> str:
        """A record of a repair, on a PodGroup with or without pods."""
        name = self._name("forged")
        notes = {"ringleaf.io/repair": self._dice.choice(RECORDS)}
        labels = {"fault-scheduling": self._dice.choice(("force", "grace"))}
        spec: Plain = {"minMember": self._dice.choice((1, 3, 100_000))}
        spec["queue"] = self._dice.choice(QUEUES)
        made = self._group(name, spec, annotations=notes, labels=labels)
        if self._dice.random() < 0.5:
            # The queue is the PodGroup's; here it is for those who watch pods only.
            own = {"volcano.sh/queue-name": spec["queue"]}
            self._pod("", 1, {"scheduling.k8s.io/group-name": name, **own})
        return made and "forged records"

    def _write_much(self) -> str:
        """A pod of hundreds of kilobytes."""
        notes = {"note": "x" * self._dice.choice((1_000, 200_000))}
        values = [f"v{i}" for i in range(self._dice.choice((10, 5_000)))]
        wants = [{"key": "zone", "operator": "In", "values": values}]
        terms = {"nodeSelectorTerms": [{"matchExpressions": wants}]}
        affinity = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        }
        return self._pod("large pods", 0, notes, affinity=affinity)

    def _write_many_containers(self) -> str:
        """A pod of hundreds or thousands of containers."""
        one = {"image": "none", "resources": {"limits": {"cpu": "1m"}}}
        number = self._dice.choice((100, 4_000))
        many = [{"name": f"c{i}", **one} for i in range(number)]
        return self._pod("pods of many containers", 0, {}, containers=many)

    def _make_up_names(self) -> str:
        """A pod that asks for a resource, and for neighbours, of its own invention."""
        key = f"key-{self._dice.randint(0, 10_000)}"
        selector = {"matchExpressions": [{"key": key, "operator": "Exists"}]}
        term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
        anti = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        asks = {f"example.com/{key}": "1"} if self._dice.random() < 0.5 else {}
        affinity = {"podAntiAffinity": anti}
        return self._pod("made-up names", 0, {}, asks, affinity=affinity)

    def _label(self) -> str:
        """A label on a pod or a PodGroup that is there already."""
        path, found = self._dice.choice(((PODS, self._pods), (GROUPS, self._groups)))
        objects = found()
        if not objects:
            return ""
        name = self._dice.choice(objects)["metadata"]["name"]
        key, text = self._dice.choice(LABELS)
        body = {"metadata": {"labels": {key: self._dice.choice((text, None))}}}
        return self._ask("PATCH", f"{path}/{name}", body, "labels that change")

    def _remove(self) -> str:
        pods = self._pods()
        if not pods:
            return ""
        name = self._dice.choice(pods)["metadata"]["name"]
        body = {"gracePeriodSeconds": self._dice.choice((0, 1))}
        return self._ask("DELETE", f"{PODS}/{name}", body, "deletions")

    def _remove_group(self) -> str:
        groups = self._groups()
        if not groups:
            return ""
        name = self._dice.choice(groups)["metadata"]["name"]
        return self._ask("DELETE", f"{GROUPS}/{name}", None, "deletions")

    # How it does that.

    def _pods(self) -> list[Plain]:
        return self._client.list_all(PODS)[0]

    def _groups(self) -> list[Plain]:
        return self._client.list_all(GROUPS)[0]

    def _name(self, kind: str) -> str:
        self._number += 1
        return f"{kind}-{self._number}"

    def _pod(
        self,
        what: str,
        chips: int,
        notes: dict[str, str],
        asks: dict[str, str] | None = None,
        **spec: Any,  # noqa: ANN401
    ) -> str:
        if len(self._pods()) >= MOST:
            return self._remove()
        limits = {"cpu": "1", **(asks or {})} | (
            {RESOURCE: str(chips)} if chips else {}
        )
        container = {"name": "c", "image": "none", "resources": {"limits": limits}}
        plain = {
            "metadata": {"name": self._name("t"), "annotations": notes},
            "spec": {
                "schedulerName": "ringleaf",
                "restartPolicy": "Never",
                "nodeSelector": {"accelerator-type": MESH} if chips else {},
                "containers": [container],
                **spec,
            },
        }
        return self._ask("POST", PODS, plain, what)

    def _group(self, name: str, spec: Plain, **meta: Any) -> str:  # noqa: ANN401
        if len(self._groups()) >= MOST:
            return self._remove_group()
        plain = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, **meta},
            "spec": spec,
        }
        return self._ask("POST", GROUPS, plain, "PodGroups")

    def _ask(self, method: str, path: str, body: Plain | None, what: str) -> str:
        status, _answer = self._client.request(method, path, body)
        return what if status < 300 else ""


def _notes(pod: Plain) -> dict[str, str]:
    return pod["metadata"].get("annotations") or {}
