"""The chip guard: who writes which chips a pod holds, on the real API server."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from ringleaf.kube import names
from ringleaf_testbed import dev
from ringleaf_testbed.client import Client
from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.source import TestbedError
from tests.deploy.helm import NAME, NAMESPACE, install_rights, of_kind

pytestmark = pytest.mark.usefixtures("binaries")

OK: Final = (200, 201)
FORBIDDEN: Final = 403
PLUGIN: Final = "kube-system", "ascend-device-plugin-sa-910"
CHIPS: Final = "huawei.com/Ascend910"
KLT: Final = "huawei.com/kltDev"
GIVEN: Final = sorted(
    {
        *names.NPU_RESOURCES,
        *(names.REAL, KLT, names.PREDICATE_TIME, names.LEADER),
        *(names.SHARED, names.HEALTHY, "sharedTorIp", names.SUPERPOD_RANK),
        *(names.CONFIGURATION_910, names.CONFIGURATION_NPU),
    }
)
"""What the scheduler and the device plugin alone write."""
SETTLED: Final = [names.RANK, names.SP_BLOCK, "super-pod-id", "distributed-job"]
"""What people may write as well, until a pod is bound."""

Object = dict[str, Any]


class Guarded:
    """A namespace with a tenant who may do anything with its pods."""

    def __init__(self, bed: Testbed, namespace: str) -> None:
        self.bed, self.namespace = bed, namespace
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self._n_pods = 0
        self._clients: list[Client] = []
        self._let("tenant", {"kind": "ServiceAccount", "name": "tenant"})
        self._let("plugin", {"kind": "ServiceAccount", "name": PLUGIN[1]}, PLUGIN[0])
        self._let("nodes", {"kind": "Group", "name": "system:nodes"})
        self.tenant = self._client(namespace, "tenant")
        self.plugin = self._client(*PLUGIN)
        self.scheduler = self._client(NAMESPACE, NAME)

    def _let(self, name: str, subject: Object, where: str = "") -> None:
        """Let somebody do anything with the pods of the namespace."""
        if subject["kind"] == "ServiceAccount":
            subject["namespace"] = where or self.namespace
            account = {"metadata": {"name": subject["name"]}}
            path = f"/api/v1/namespaces/{subject['namespace']}/serviceaccounts"
            self.bed.request("POST", path, account)
        rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.namespace}"
        every = ["pods", "pods/status", "pods/binding", "bindings"]
        rules = [{"apiGroups": [""], "resources": every, "verbs": ["*"]}]
        role = {"metadata": {"name": name}, "rules": rules}
        self.bed.client.ask("POST", f"{rbac}/roles", role)
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        binding = {"metadata": {"name": name}, "roleRef": ref, "subjects": [subject]}
        self.bed.client.ask("POST", f"{rbac}/rolebindings", binding)

    def _client(self, namespace: str, name: str) -> Client:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        asked = {"spec": {"expirationSeconds": 3600}}
        token = self.bed.client.ask("POST", path, asked)["status"]["token"]
        self._clients.append(Client(self.bed.url, token, self.bed.ca))
        return self._clients[-1]

    def close(self) -> None:
        for each in self._clients:
            each.close()

    def manifest(self, notes: dict[str, str], **spec: object) -> Object:
        """A new pod, of ours unless it says otherwise."""
        self._n_pods += 1
        container = {"name": "main", "image": "none"}
        own = {"schedulerName": "ringleaf", "containers": [container], **spec}
        meta = {"name": f"pod-{self._n_pods}", "annotations": notes}
        return {"metadata": meta, "spec": own}

    def create(self, notes: dict[str, str], **spec: object) -> tuple[int, Any]:
        """The answer to a tenant who makes a pod."""
        return self.tenant.request("POST", self.pods, self.manifest(notes, **spec))

    def bound(self) -> str:
        """The path of a pod of the tenant's that the scheduler has bound with chips."""
        path = self.pending()
        notes = {CHIPS: "Ascend910-0", names.PREDICATE_TIME: "1", names.RANK: "0"}
        status, told = self.bind(self.scheduler, path, notes)
        assert status in OK, told
        return path

    def pending(self) -> str:
        """The path of a pod of the tenant's that waits."""
        status, told = self.create({})
        assert status in OK, told
        return f"{self.pods}/{told['metadata']['name']}"

    def bind(self, client: Client, path: str, notes: dict[str, str]) -> tuple[int, Any]:
        """The answer to a Binding with annotations."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": path.rpartition("/")[2], "annotations": notes},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "somewhere"},
        }
        return client.request("POST", f"{path}/binding", binding)

    def notes(self, path: str) -> dict[str, str]:
        """The annotations of a pod."""
        found: Object = self.bed.client.ask("GET", path)
        return found["metadata"].get("annotations") or {}


def change(notes: dict[str, str | None]) -> Object:
    return {"metadata": {"annotations": notes}}


@pytest.fixture(scope="module")
def policies(testbed: Testbed) -> Testbed:
    install_rights(testbed)
    return testbed


@pytest.fixture
def guarded(policies: Testbed, namespace: str) -> Iterator[Guarded]:
    made = Guarded(policies, namespace)
    told: Any = None

    def is_refused() -> bool:
        nonlocal told
        pod = made.manifest({names.REAL: "x"})
        status, told = made.tenant.request("POST", f"{made.pods}?dryRun=All", pod)
        return bool(status == FORBIDDEN and "device plugin alone" in str(told))

    try:
        policies.wait_for(is_refused, "the guard")
        yield made
    except TestbedError as error:
        pytest.fail(f"{error}: {told}", pytrace=False)
    finally:
        made.close()


@pytest.mark.parametrize("key", GIVEN)
def test_a_tenant_makes_no_pod_that_names_its_chips(guarded: Guarded, key: str) -> None:
    status, told = guarded.create({key: "Ascend910-0"})

    assert status == FORBIDDEN
    assert (
        f"annotation {key} is written by the scheduler and the device"
        in (told["message"])
    )
    assert "by system:serviceaccount:" in told["message"]
    assert "hint: leave it out" in told["message"]


def test_a_tenant_makes_no_bound_pod_that_names_its_chips(guarded: Guarded) -> None:
    """Whoever it says that its scheduler is."""
    other = {"schedulerName": "default-scheduler"}

    assert guarded.create({names.REAL: "x"}, nodeName="a", **other)[0] == FORBIDDEN
    assert guarded.create({names.REAL: "x"}, **other)[0] in OK
    assert guarded.create({}, nodeName="a", **other)[0] in OK


def test_what_people_write_too_they_may_write_until_the_pod_is_bound(
    guarded: Guarded,
) -> None:
    status, made = guarded.create(dict.fromkeys(SETTLED, "4"))
    assert status in OK, made
    path = f"{guarded.pods}/{made['metadata']['name']}"
    notes: dict[str, str | None] = {names.SP_BLOCK: "8"}
    assert guarded.tenant.request("PATCH", path, change(notes))[0] in OK

    assert guarded.bind(guarded.scheduler, path, {CHIPS: "Ascend910-0"})[0] in OK

    for key in SETTLED:
        status, told = guarded.tenant.request("PATCH", path, change({key: "5"}))
        assert (status, key in told["message"]) == (FORBIDDEN, True)


def test_a_tenant_names_no_chips_of_a_pod_that_waits(guarded: Guarded) -> None:
    path = guarded.pending()

    status, told = guarded.tenant.request("PATCH", path, change({names.REAL: "x"}))

    assert status == FORBIDDEN, told
    assert names.REAL not in guarded.notes(path)


@pytest.mark.parametrize("part", ["", "/status"])
@pytest.mark.parametrize(
    "notes",
    [
        {names.REAL: "Ascend910-0,Ascend910-1"},
        {CHIPS: "Ascend910-7"},
        {CHIPS: None},
        {names.PREDICATE_TIME: names.CONSUMED},
        {names.RANK: None},
        {"other": "fine", names.REAL: ""},
    ],
    ids=["adds", "changes", "removes", "consumes", "forgets its rank", "hides it"],
)
def test_a_tenant_changes_nothing_of_the_chips_of_a_bound_pod(
    guarded: Guarded, notes: dict[str, str | None], part: str
) -> None:
    path = guarded.bound()
    before = guarded.notes(path)

    status, told = guarded.tenant.request("PATCH", f"{path}{part}", change(notes))

    assert status == FORBIDDEN, told
    assert guarded.notes(path) == before


def test_a_tenant_changes_everything_else(guarded: Guarded) -> None:
    path = guarded.bound()
    more = {"labels": {"a": "b"}, "annotations": {names.ESTIMATE: "60", "mine": "1"}}

    assert guarded.tenant.request("PATCH", path, {"metadata": more})[0] in OK
    assert guarded.tenant.request("DELETE", path)[0] in OK


def test_a_tenant_names_no_chips_in_a_binding(guarded: Guarded) -> None:
    path = guarded.pending()

    status, told = guarded.bind(guarded.tenant, path, {CHIPS: "Ascend910-0"})
    assert status == FORBIDDEN
    assert CHIPS in told["message"]
    legacy = guarded.pods.replace("/pods", "/bindings")
    body = {
        "metadata": {"name": path.rpartition("/")[2], "annotations": {CHIPS: "x"}},
        "target": {"kind": "Node", "name": "somewhere"},
    }
    assert guarded.tenant.request("POST", legacy, body)[0] == FORBIDDEN
    assert guarded.bind(guarded.tenant, path, {})[0] in OK


def test_the_scheduler_binds_with_chips(guarded: Guarded) -> None:
    path = guarded.pending()
    notes = dict.fromkeys([*GIVEN, *SETTLED], "1")

    status, told = guarded.bind(guarded.scheduler, path, notes)

    assert status in OK, told
    assert guarded.notes(path).items() >= notes.items()


def test_the_device_plugin_writes_the_chips_that_it_mounted(guarded: Guarded) -> None:
    path = guarded.bound()
    notes: dict[str, str | None] = {names.REAL: "Ascend910-0", KLT: "Ascend910-3"}

    status, told = guarded.plugin.request("PATCH", path, change(notes))

    assert status in OK, told
    assert guarded.notes(path)[names.REAL] == "Ascend910-0"


def test_a_kubelet_writes_what_it_wants_on_its_pods(guarded: Guarded) -> None:
    path = guarded.bound()
    text = json.dumps(change({names.REAL: "Ascend910-0"}))
    who = ("--as=system:node:somewhere", "--as-group=system:nodes")
    where = ("-n", guarded.namespace, "pod", path.rpartition("/")[2])

    guarded.bed.kubectl("patch", *where, *who, "--type=merge", "-p", text)

    assert guarded.notes(path)[names.REAL] == "Ascend910-0"


def guards(*values: str) -> list[Object]:
    """The policies of the guard that the chart renders."""
    found = of_kind("ValidatingAdmissionPolicy", *values)
    return [each for each in found if each["metadata"]["name"].endswith("-chips")]


def test_the_guard_can_be_left_out_and_a_shadow_has_none() -> None:
    assert len(guards()) == 1
    assert guards("chipGuard.enabled=false") == []
    assert guards("shadow.enabled=true") == []


def test_who_may_is_told_by_values() -> None:
    values = (
        "chipGuard.serviceAccounts={npu/plugin}",
        "chipGuard.groups={system:nodes,npu-admins}",
        "chipGuard.users={npu-agent}",
        "schedulerNames={volcano,ringleaf}",
    )
    (guard,) = guards(*values)

    (condition,) = guard["spec"]["matchConditions"]
    assert (
        f'["system:serviceaccount:{NAMESPACE}:{NAME}",'
        '"system:serviceaccount:npu:plugin","npu-agent"]'
    ) in condition["expression"]
    assert '["system:nodes","npu-admins"]' in condition["expression"]
    (ours,) = [v for v in guard["spec"]["variables"] if v["name"] == "isOurs"]
    assert '["volcano","ringleaf"]' in ours["expression"]


def test_the_chart_may_be_installed_beside_ringleaf_dev() -> None:
    """With its default values: tests/cli/test_first_cluster.py does so."""
    (guard,) = guards()

    (condition,) = guard["spec"]["matchConditions"]
    for user in (dev.SCHEDULER, dev.DAEMONS):
        assert f'"{user}"' in condition["expression"]


def test_the_guard_knows_all_that_is_written_of_chips() -> None:
    (guard,) = guards()
    said = {v["name"]: v["expression"] for v in guard["spec"]["variables"]}

    assert sorted(said["given"].split("'")[1::2]) == GIVEN
    assert said["settled"].split("'")[1::2] == SETTLED
