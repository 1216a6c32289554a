"""The fence: only the holder of the Lease binds, on the real API server."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml

from ringleaf.kube.binder import FENCED
from ringleaf_testbed.client import Client
from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.source import TestbedError
from tests.deploy.helm import NAMESPACE, install_rights

LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
CREATED, FORBIDDEN = 201, 403


class Fence:
    """Who may bind what, with a Lease that changes hands."""

    def __init__(self, bed: Testbed, scheduler: Client, namespace: str) -> None:
        self.bed, self.scheduler, self.namespace = bed, scheduler, namespace
        self._n_pods = 0

    def lease(self, holder: str | None) -> None:
        """Let *holder* have the Lease; nobody: it is given up."""
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 5}
        lease = {"metadata": {"name": "ringleaf"}, "spec": spec}
        if self.bed.request("POST", LEASES, lease)[0] != CREATED:
            self.bed.client.ask("PATCH", f"{LEASES}/ringleaf", {"spec": spec})

    def path(self) -> str:
        """The bindings of a new pod that nobody has bound."""
        self._n_pods += 1
        name = f"pod-{self._n_pods}"
        container = {"name": "main", "image": "none"}
        pod = {"metadata": {"name": name}, "spec": {"containers": [container]}}
        where = f"/api/v1/namespaces/{self.namespace}/pods"
        self.bed.client.ask("POST", where, pod)
        return f"{where}/{name}/binding"

    def bind(self, path: str, sender: str | None) -> tuple[int, Any]:
        """The answer to a Binding of the scheduler's account."""
        return self.scheduler.request("POST", path, binding(path, sender))

    def wait_until(self, status: int, sender: str | None) -> str:
        """Until Bindings by *sender* are answered so: policies and Leases are watched.

        What the answer says; nothing is bound, for they are dry runs.
        """
        path = self.path()
        told: Any = None

        def is_so() -> bool:
            nonlocal told
            found, told = self.bind(f"{path}?dryRun=All", sender)
            return found == status

        try:
            self.bed.wait_for(is_so, f"{status} to a Binding by {sender}")
        except TestbedError as error:
            pytest.fail(f"{error}: {told}", pytrace=False)
        return str(told.get("message", ""))


def binding(path: str, sender: str | None) -> dict[str, object]:
    name = path.split("/")[-2]
    notes = {} if sender is None else {"annotations": {"ringleaf.io/leader": sender}}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **notes},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "somewhere"},
    }


@pytest.fixture(scope="module")
def scheduler(testbed: Testbed) -> Iterator[Client]:
    """Requests with the token of the scheduler's account."""
    account = yaml.safe_load(install_rights(testbed).read_text(encoding="utf-8"))
    token = account["users"][0]["user"]["token"]
    made = Client(testbed.url, token, testbed.ca)
    yield made
    made.close()


@pytest.fixture
def fence(testbed: Testbed, scheduler: Client, namespace: str) -> Iterator[Fence]:
    made = Fence(testbed, scheduler, namespace)
    made.lease("first")
    made.wait_until(FORBIDDEN, "nobody-in-particular")
    made.wait_until(CREATED, "first")
    yield made
    testbed.request("DELETE", f"{LEASES}/ringleaf")


def test_a_binding_by_the_leader_is_taken(fence: Fence) -> None:
    path = fence.path()

    assert fence.bind(path, "first")[0] == CREATED

    pod = fence.bed.client.ask("GET", path.removesuffix("/binding"))
    assert pod["spec"]["nodeName"] == "somewhere"
    assert pod["metadata"]["annotations"]["ringleaf.io/leader"] == "first"


@pytest.mark.parametrize("sender", ["second", "", "firs", "First", None])
def test_a_binding_by_anybody_else_is_refused(fence: Fence, sender: str | None) -> None:
    path = fence.path()

    status, told = fence.bind(path, sender)

    assert status == FORBIDDEN
    assert FENCED.decode() in told["message"]
    assert (
        f"the leader is first, this Binding is by {sender or 'no replica'}"
        in (told["message"])
    )
    pod = fence.bed.client.ask("GET", path.removesuffix("/binding"))
    assert "nodeName" not in pod["spec"]


def test_who_was_the_leader_is_refused_and_who_is_now_is_taken(fence: Fence) -> None:
    fence.lease("second")

    fence.wait_until(FORBIDDEN, "first")

    assert fence.bind(fence.path(), "second")[0] == CREATED
    assert fence.bind(fence.path(), "first")[0] == FORBIDDEN


@pytest.mark.parametrize("holder", [None, ""])
def test_a_lease_that_was_given_up_lets_nobody_bind(
    fence: Fence, holder: str | None
) -> None:
    fence.lease(holder)

    told = fence.wait_until(FORBIDDEN, "first")

    assert "the leader is none" in told
    assert fence.bind(fence.path(), "")[0] == FORBIDDEN


@pytest.mark.parametrize("has_lease", [True, False])
def test_bindings_by_other_schedulers_are_untouched(
    fence: Fence, *, has_lease: bool
) -> None:
    """Whether there is a Lease or not; kube-scheduler is known by its user name."""
    if not has_lease:
        fence.bed.client.ask("DELETE", f"{LEASES}/ringleaf")
        fence.wait_until(CREATED, "anybody")
    path = fence.path()
    text = json.dumps(binding(path, None))

    fence.bed.kubectl(
        "create", "--raw", path, "--as=system:kube-scheduler", "-f", "-", input=text
    )

    pod = fence.bed.client.ask("GET", path.removesuffix("/binding"))
    assert pod["spec"]["nodeName"] == "somewhere"
