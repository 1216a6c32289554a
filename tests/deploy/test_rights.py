"""What the scheduler's account is refused, by review and by trying."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
import yaml

from ringleaf_testbed.client import Client
from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.source import TestbedError
from tests.deploy.helm import ACCOUNT, NAMESPACE, READER, install_rights, of_kind

REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
OK, FORBIDDEN = 200, 403

REFUSED: Final = [
    # verb, group, resource, namespace (empty: all), name
    ("get", "", "secrets", "", ""),
    ("list", "", "secrets", "kube-system", ""),
    ("list", "", "secrets", NAMESPACE, ""),
    ("delete", "", "nodes", "", "one"),
    ("patch", "", "nodes", "", "one"),
    ("get", "", "nodes/proxy", "", "one"),
    ("create", "", "pods", "default", ""),
    ("update", "", "pods", "default", "one"),
    ("patch", "", "pods", "default", "one"),
    ("create", "", "pods/exec", "default", "one"),
    ("get", "", "pods/log", "default", "one"),
    ("deletecollection", "", "pods", "default", ""),
    ("create", "", "bindings", "default", ""),
    ("list", "", "configmaps", "", ""),
    ("list", "", "configmaps", "default", ""),
    ("get", "", "configmaps", NAMESPACE, "ringleaf"),
    ("update", "", "configmaps", NAMESPACE, "ringleaf"),
    ("watch", "", "configmaps", NAMESPACE, ""),
    ("deletecollection", "", "configmaps", NAMESPACE, ""),
    ("get", "", "configmaps", "kube-public", "cluster-info"),
    ("create", "", "configmaps", "default", ""),
    ("update", "", "configmaps", "kube-system", "basic-tor-node-cm"),
    ("update", "", "configmaps", "mindx-dl", "job-reschedule-reason"),
    ("patch", "", "configmaps", "mindx-dl", "cluster-info-node-cm"),
    ("patch", "", "configmaps", "volcano-system", "volcano-scheduler-configmap"),
    ("patch", "", "configmaps", "default", "reset-config-one"),
    ("delete", "", "configmaps", "volcano-system", "vcjob-fault-npu-cm"),
    ("impersonate", "", "users", "", "admin"),
    ("impersonate", "", "serviceaccounts", "kube-system", "default"),
    ("create", "", "serviceaccounts/token", NAMESPACE, "ringleaf"),
    ("update", "coordination.k8s.io", "leases", NAMESPACE, "other"),
    ("list", "coordination.k8s.io", "leases", NAMESPACE, ""),
    ("create", "coordination.k8s.io", "leases", "kube-system", ""),
    ("delete", "coordination.k8s.io", "leases", NAMESPACE, "ringleaf"),
    ("delete", "scheduling.volcano.sh", "queues", "", "default"),
    ("patch", "scheduling.volcano.sh", "queues", "", "default"),
    ("delete", "scheduling.volcano.sh", "podgroups", "default", "one"),
    ("update", "rbac.authorization.k8s.io", "clusterroles", "", "ringleaf"),
    ("create", "rbac.authorization.k8s.io", "rolebindings", "default", ""),
    ("delete", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", ""),
]


@pytest.fixture(scope="module")
def account(testbed: Testbed) -> Path:
    return install_rights(testbed)


@pytest.fixture
def scheduler(testbed: Testbed, account: Path) -> Client:
    """Requests with the token of the scheduler's account."""
    told = yaml.safe_load(account.read_text(encoding="utf-8"))
    return Client(testbed.url, told["users"][0]["user"]["token"], testbed.ca)


def may(bed: Testbed, *right: str) -> bool:
    """Whether the API server would let the scheduler do it."""
    verb, group, what, where, name = right
    resource, _slash, part = what.partition("/")
    asked = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": part,
        "namespace": where,
        "name": name,
    }
    review = {"spec": {"user": ACCOUNT, "resourceAttributes": asked}}
    allowed: bool = bed.client.ask("POST", REVIEWS, review)["status"]["allowed"]
    return allowed


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("right", REFUSED, ids=lambda right: " ".join(right).strip())
def test_the_account_may_not(
    testbed: Testbed, right: tuple[str, str, str, str, str]
) -> None:
    assert not may(testbed, *right)


@pytest.mark.usefixtures("account")
def test_the_reviews_can_say_yes(testbed: Testbed) -> None:
    assert may(testbed, "create", "", "pods/binding", "default", "one")
    assert may(testbed, "list", "", "configmaps", "mindx-dl", "")
    assert may(
        testbed, "update", "coordination.k8s.io", "leases", NAMESPACE, "ringleaf"
    )


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/v1/secrets", None),
        ("GET", "/api/v1/namespaces/kube-system/secrets", None),
        ("GET", "/api/v1/configmaps", None),
        ("GET", "/api/v1/namespaces/default/configmaps", None),
        ("DELETE", "/api/v1/nodes/one", None),
        ("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "one"}}),
        (
            "POST",
            "/api/v1/namespaces/default/configmaps",
            {"metadata": {"name": "one"}},
        ),
        (
            "PUT",
            "/api/v1/namespaces/kube-system/configmaps/basic-tor-node-cm",
            {"metadata": {"name": "basic-tor-node-cm"}},
        ),
        (
            "POST",
            f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/ringleaf/token",
            {"spec": {"expirationSeconds": 600}},
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_account_is_refused(
    scheduler: Client, method: str, path: str, body: object
) -> None:
    status, told = scheduler.request(method, path, body)
    scheduler.close()

    assert status == FORBIDDEN, told
    assert ACCOUNT in told["message"]


def test_the_account_cannot_be_somebody_else(testbed: Testbed, account: Path) -> None:
    with pytest.raises(TestbedError, match="cannot impersonate"):
        testbed.kubectl(f"--kubeconfig={account}", "--as=admin", "get", "nodes")


def test_a_lease_is_listed_and_watched_by_its_name_only(scheduler: Client) -> None:
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    named = f"{leases}?fieldSelector={quote('metadata.name=ringleaf')}"

    assert scheduler.request("GET", named)[0] == OK
    assert scheduler.request("GET", leases)[0] == FORBIDDEN
    scheduler.close()


@pytest.fixture
def viewer(testbed: Testbed) -> Iterator[Path]:
    """A kubeconfig of an account that may view everything.

    Here the parts of the role view are bound, as no controller puts it together.
    """
    install_rights(testbed)
    path = "/api/v1/namespaces/default/serviceaccounts"
    testbed.client.ask("POST", path, {"metadata": {"name": "viewer"}})
    roles = "system:aggregate-to-view", READER
    for role in roles:
        given = f"--clusterrole={role}", "--serviceaccount=default:viewer"
        testbed.kubectl("create", "clusterrolebinding", f"v-{role}", *given)
    yield testbed.kubeconfig_of_account("default", "viewer")
    for role in roles:
        testbed.kubectl("delete", "clusterrolebinding", f"v-{role}")
    testbed.client.ask("DELETE", f"{path}/viewer", None)


@pytest.mark.parametrize("command", ["status", "faults", "explain job/none"])
def test_an_account_that_may_view_everything_may_ask(
    viewer: Path, command: str
) -> None:
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "ringleaf", *command.split(), f"--kubeconfig={viewer}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    told = done.stdout + done.stderr
    assert "not allowed" not in told
    assert "403" not in told
    assert done.returncode == (2 if "none" in command else 0), told


def test_the_role_of_readers_becomes_a_part_of_the_role_view() -> None:
    (role,) = [r for r in of_kind("ClusterRole") if r["metadata"]["name"] == READER]

    label = "rbac.authorization.k8s.io/aggregate-to-view"
    assert role["metadata"]["labels"][label] == "true"
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {
        *("get", "list", "watch")
    }
