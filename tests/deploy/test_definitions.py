"""PodGroup and Queue of our own, on a cluster that has never seen Volcano."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from ringleaf_testbed import source
from ringleaf_testbed.actor import Actor
from ringleaf_testbed.cluster import CRDS, QUEUES, Testbed
from tests.deploy.helm import CHART, NAME, NAMESPACE

GROUPS: Final = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
PODS: Final = "/api/v1/namespaces/default/pods"
NAMES: Final = ("podgroups", "queues")
OK, INVALID = 200, 422


def release(bed: Testbed, verb: str, *more: str) -> str:
    """Install or upgrade the chart, with Helm."""
    where = (f"--namespace={NAMESPACE}", "--create-namespace")
    return bed.helm(
        verb, NAME, str(CHART), *where[: 1 + (verb == "install")], *more,
        "--set=crds.install=true",
    )  # fmt: skip


@pytest.fixture(scope="module")
def bare(new_testbed: type[Testbed]) -> Iterator[Testbed]:
    """A node, the chart, and a scheduler with the rights of its account."""
    with new_testbed(volcano=False) as bed, Actor(bed.client) as actor:
        actor.add_plain_node("plain")
        release(bed, "install")
        account = bed.kubeconfig_of_account(NAMESPACE, NAME)
        ringleaf = (sys.executable, "-m", "ringleaf", "scheduler")
        bed.run(
            "ringleaf",
            [
                *(*ringleaf, "--kubeconfig", str(account)),
                *("--healthz-address", "127.0.0.1:0"),
                *("--leader-elect-resource-namespace", NAMESPACE),
            ],
        )
        yield bed


def gang(bed: Testbed, name: str, members: int, **spec: object) -> None:
    """A PodGroup, and as many pods for it."""
    group = {"metadata": {"name": name}, "spec": {"minMember": members, **spec}}
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    bed.client.ask("POST", GROUPS, {**kind, **group})
    for number in range(members):
        asks = {"requests": {"cpu": "1"}}
        container = {"name": "main", "image": "none", "resources": asks}
        notes = {"scheduling.k8s.io/group-name": name}
        pod = {
            "metadata": {"name": f"{name}-{number}", "annotations": notes},
            "spec": {"schedulerName": "ringleaf", "containers": [container]},
        }
        bed.client.ask("POST", PODS, pod)


def status_of(bed: Testbed, path: str) -> dict[str, Any]:
    code, found = bed.request("GET", path)
    status: dict[str, Any] = found.get("status", {}) if code == OK else {}
    return status


def test_a_gang_is_bound_and_its_podgroup_and_queue_say_so(bare: Testbed) -> None:
    gang(bare, "two", 2, minResources={"cpu": "2"})

    bare.wait_for(
        lambda: status_of(bare, f"{GROUPS}/two").get("phase") == "Running", "a gang"
    )
    bare.wait_for(
        lambda: status_of(bare, f"{QUEUES}/default").get("allocated"), "its queue"
    )

    assert status_of(bare, f"{GROUPS}/two")["running"] == 2
    assert status_of(bare, f"{QUEUES}/default")["allocated"]["cpu"] == "2"
    shown = bare.kubectl("get", "podgroup", "two", "--no-headers").split()
    assert shown[:5] == ["two", "Running", "2", "2", "default"]
    assert bare.request("GET", f"{QUEUES}/root")[0] == OK


def test_a_gang_that_waits_says_why_on_its_podgroup(bare: Testbed) -> None:
    gang(bare, "wide", 2, priorityClassName="no-such-class", queue="nowhere")

    def reasons() -> list[str]:
        found = status_of(bare, f"{GROUPS}/wide").get("conditions") or []
        return [each["message"] for each in found if each["type"] == "Unschedulable"]

    bare.wait_for(
        lambda: any("does not exist" in each for each in reasons()), "the reason"
    )


def test_volcanos_definitions_are_left_alone(testbed: Testbed) -> None:
    where = "--namespace=untouched"  # others have installed it in ours
    told = release(testbed, "install", "--dry-run=server", where)

    assert "kind: Deployment" in told
    assert "CustomResourceDefinition" not in told


@pytest.mark.usefixtures("binaries")
@pytest.mark.parametrize("name", NAMES)
def test_the_definitions_have_the_fields_of_volcanos(name: str) -> None:
    """Else a manifest that works there would lose some here."""
    (theirs,) = [
        path for path in source.files("crds") if path.stem.endswith(f"_{name}")
    ]

    assert _fields(CHART / "definitions" / f"{name}.yaml") >= _fields(theirs)


def _fields(file: Path) -> set[str]:
    """The fields of spec and status, and those below."""
    (version,) = yaml.safe_load(file.read_text("utf-8"))["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    return {
        path
        for part in ("spec", "status")
        for path in _below(schema.get(part, {}), part)
        # Where ours take anything.
        if "labelSelector." not in path and "extendClusters." not in path
    }


def _below(schema: dict[str, Any], path: str) -> Iterator[str]:
    yield path
    for name, part in schema.get("properties", {}).items():
        yield from _below(part, f"{path}.{name}")
    if "items" in schema:
        yield from _below(schema["items"], path)


@pytest.mark.parametrize(
    ("path", "kind", "spec"),
    [
        (GROUPS, "PodGroup", {"minMember": -1}),
        (GROUPS, "PodGroup", {"minMember": "two"}),
        (QUEUES, "Queue", {"weight": 0}),
        (QUEUES, "Queue", {"reclaimable": "yes"}),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(
    bare: Testbed, path: str, kind: str, spec: object
) -> None:
    status, told = bare.request(
        "POST",
        path,
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": kind,
            "metadata": {"name": "odd"},
            "spec": spec,
        },
    )

    assert status == INVALID, told


def test_no_right_is_missing_there(bare: Testbed) -> None:
    log = (bare.folder / "ringleaf.log").read_text(encoding="utf-8")

    assert " 403" not in log


def test_definitions_outlive_the_release_and_belong_to_the_next_one(
    bare: Testbed,
) -> None:
    """The last story here: the scheduler's rights go with the release."""
    gang(bare, "kept", 1)
    release(bare, "upgrade", "--set=podLabels.a=b")
    bare.helm("uninstall", NAME, f"--namespace={NAMESPACE}")

    assert bare.request("GET", f"{GROUPS}/kept")[0] == OK

    release(bare, "install")
    definition = bare.client.ask("GET", f"{CRDS}/podgroups.scheduling.volcano.sh")
    notes = definition["metadata"]["annotations"]
    assert notes["meta.helm.sh/release-name"] == NAME
