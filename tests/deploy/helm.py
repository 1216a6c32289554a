"""The chart as it is rendered, without a cluster."""

import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from ringleaf_testbed import build
from ringleaf_testbed.cluster import Testbed

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "deploy" / "chart" / "ringleaf"
MANIFESTS: Final = ROOT / "deploy" / "manifests"
NAME: Final = "ringleaf"
NAMESPACE: Final = "ringleaf-system"
READER: Final = f"{NAMESPACE}-{NAME}-reader"
"""The role of people, which no account of the chart has."""
EXEMPT: Final = "chipGuard.users={admin,limited}"
"""As the admin, tests play the device plugin, and tenants with bad objects; as limited,
a scheduler with too few rights."""
ACCOUNT: Final = f"system:serviceaccount:{NAMESPACE}:{NAME}"

Object = dict[str, Any]


class Refused(Exception):  # noqa: N818 - it reads as what happened
    """Helm does not render these values: what it says."""


def helm(*arguments: str) -> str:
    """What Helm prints; raises ``Refused`` when it fails."""
    done = subprocess.run(  # noqa: S603 - our own command
        [build.command("helm"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode:
        raise Refused(done.stderr.strip())
    return done.stdout


@cache
def rendered(*values: str) -> str:
    """The manifests of the chart with *values*, each ``key=value`` or a flag."""
    flags = [each if each.startswith("--") else f"--set={each}" for each in values]
    return helm("template", NAME, str(CHART), f"--namespace={NAMESPACE}", *flags)


def objects(*values: str) -> list[Object]:
    """The objects of the chart with *values*."""
    return [each for each in yaml.safe_load_all(rendered(*values)) if each]


def of_kind(kind: str, *values: str) -> list[Object]:
    """Those of one kind."""
    return [each for each in objects(*values) if each["kind"] == kind]


def flags(*values: str) -> list[str]:
    """What the scheduler is called with."""
    return container("scheduler", *values)["args"]  # type: ignore[no-any-return]


def container(name: str, *values: str) -> Object:
    """A container of the chart by its name."""
    found: Object
    (found,) = [
        each
        for deployment in of_kind("Deployment", *values)
        for each in deployment["spec"]["template"]["spec"]["containers"]
        if each["name"] == name
    ]
    return found


def rules(*values: str) -> Iterator[tuple[str, Object]]:
    """Namespace (empty: all) and rule, of every role but that of people."""
    for role in objects(*values):
        if role["metadata"]["name"].endswith("-reader"):
            continue
        if role["kind"] in ("Role", "ClusterRole"):
            for rule in role["rules"]:
                yield role["metadata"].get("namespace", ""), rule


def install_rights(bed: Testbed, *values: str, namespace: str = NAMESPACE) -> Path:
    """Apply the chart but its pods; a kubeconfig of the scheduler's account."""
    words = objects(*values, EXEMPT, f"--namespace={namespace}")
    folder = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    parts = [folder, *(each for each in words if each["kind"] != "Deployment")]
    bed.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(parts))
    return bed.kubeconfig_of_account(namespace, NAME)
