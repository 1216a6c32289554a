"""Every command of the pages on installing is run, section by section.

Those that need a container are left out.

Pods do not really run: KWOK says that they do.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ringleaf_testbed import build
from ringleaf_testbed.actor import Actor
from ringleaf_testbed.client import OK
from ringleaf_testbed.cluster import Testbed
from tests.deploy.helm import NAMESPACE, ROOT
from tests.docs.pages import section, text_of

INSTALL, MIGRATE = "docs/install.md", "docs/migrate.md"
UPGRADE: Final = "docs/upgrade.md"
BLOCK: Final = re.compile(
    r"^( *)```(?:bash|console)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE
)
COMMAND: Final = ("python3 -m venv", "~/.local/", "export PATH=", "ringleaf --version")
ELSEWHERE: Final = ("DIGEST=", "podman ", "curl ", "ringleaf shadow-report", *COMMAND)
"""Commands that need an engine for containers, pods that run, or package registries."""
INSIDE: Final = (" logs ", " port-forward ")

WAY: Final = (
    (MIGRATE, "At once"),
    (MIGRATE, "Back to Volcano"),
    (MIGRATE, "In steps"),
    (INSTALL, "Job summaries"),
    (UPGRADE, "Upgrade"),
    (UPGRADE, "Change the configuration"),
    (INSTALL, "Permissions"),
    (INSTALL, "Uninstall"),
    (INSTALL, "Without Volcano"),
    (INSTALL, "Verify"),
    (INSTALL, "Without Helm"),
)
"""The sections, in an order in which one cluster can go through them."""

CONF: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}]
"""


def commands(page: str, heading: str) -> list[tuple[str, str | None]]:
    """The command lines of a section, and what the page says that they print."""
    text = section(page, heading)
    found: list[tuple[str, str | None]] = []
    for indent, body in BLOCK.findall(text):
        plain = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        lines = plain.replace("\\\n", " ").splitlines()
        for line in lines:
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif found and found[-1][1] is not None:
                found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
            else:
                found.append((line, None))
    return found


def is_run(line: str) -> bool:
    return not line.startswith(ELSEWHERE) and not any(word in line for word in INSIDE)


@pytest.fixture(scope="module")
def shell(
    new_testbed: type[Testbed], tmp_path_factory: pytest.TempPathFactory
) -> Iterator["Shell"]:
    """A cluster with Volcano's scheduler in it, and a shell beside it."""
    with new_testbed() as bed, Actor(bed.client) as actor:
        for name in ("kube-controller-manager", "kwok", "kube-scheduler"):
            bed.start(name)
        actor.add_plain_node("one")
        actor.add_plain_node("two", "10.250.0.2")
        _volcano(bed)
        yield Shell(bed, tmp_path_factory.mktemp("install"))


def _volcano(bed: Testbed) -> None:
    labels = {"app": "volcano-scheduler"}
    container = {"name": "scheduler", "image": "volcano"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    bed.client.ask(
        "POST",
        "/apis/apps/v1/namespaces/volcano-system/deployments",
        {
            "metadata": {"name": "volcano-scheduler"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": template,
            },
        },
    )
    bed.client.ask(
        "POST",
        "/api/v1/namespaces/volcano-system/configmaps",
        {
            "metadata": {"name": "volcano-scheduler-configmap"},
            "data": {"volcano-scheduler.conf": CONF},
        },
    )


class Shell:
    """Where the commands are typed: a checkout, and kubectl, helm and ringleaf."""

    def __init__(self, bed: Testbed, folder: Path) -> None:
        self.bed, self.folder = bed, folder
        self.told: dict[str, int] = {}
        """Who wrote job summaries, by section."""
        (folder / "deploy").symlink_to(ROOT / "deploy")
        tools = [build.command(name).parent for name in ("kubectl", "helm")]
        self._path = os.pathsep.join(map(str, [*tools, Path(sys.executable).parent]))

    def run(self, line: str) -> str:
        """What a command prints."""
        search = f"{self._path}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(  # noqa: S603 - a command of the page
            ["bash", "-o", "pipefail", "-c", line],  # noqa: S607
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": search,
                "KUBECONFIG": str(self.bed.kubeconfig),
                "HOME": str(self.folder),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
        )
        said_no = done.stdout == "no\n" and " auth can-i " in line
        assert done.returncode == 0 or said_no, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def make_lease(self) -> None:
        """What a scheduler would do, if it ran."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
        lease = {"metadata": {"name": "ringleaf"}, "spec": {"holderIdentity": "one"}}
        self.bed.client.ask("POST", path, lease)

    def replicas(self, namespace: str, name: str) -> int:
        """How many pods of a Deployment are available; none if there is none."""
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
        status, found = self.bed.request("GET", path)
        return found["status"].get("availableReplicas", 0) if status in OK else 0


@pytest.mark.parametrize("page", [INSTALL, MIGRATE, UPGRADE])
def test_every_command_of_a_page_is_in_a_section_of_the_way(page: str) -> None:
    own = [heading for each, heading in WAY if each == page]
    before = ["Before you begin"] if page == INSTALL else []
    found = [len(BLOCK.findall(section(page, name))) for name in (*before, *own)]

    assert sum(found) == len(BLOCK.findall(text_of(page))) > 0
    for name in before:
        assert [line for line, _out in commands(page, name) if is_run(line)] == []


def test_the_way_can_be_gone(shell: Shell) -> None:
    """From Volcano and back, in steps, and without it."""
    found: dict[str, tuple[int, int]] = {}
    for page, heading in WAY:
        if heading == "Verify":
            shell.make_lease()
        if heading == "Without Helm":
            shell.run(f"helm uninstall ringleaf --namespace {NAMESPACE}")
            shell.run(f"kubectl delete namespace {NAMESPACE} --timeout=120s")
        for line, output in commands(page, heading):
            if is_run(line):
                said = shell.run(line)
                assert output is None or said == output, line
        shell.told[heading] = shell.replicas(NAMESPACE, "ringleaf-summary")
        found[heading] = (
            shell.replicas("volcano-system", "volcano-scheduler"),
            shell.replicas(NAMESPACE, "ringleaf"),
        )

    assert found["At once"] == (0, 2)
    assert found["Back to Volcano"][1] == 0
    assert found["In steps"][1] == 2
    assert found["Job summaries"][1] == 2
    assert shell.told["Job summaries"] == 1
    assert found["Upgrade"][1] == 2
    assert found["Uninstall"][1] == 0
    assert found["Without Volcano"][1] == 2
    events, _version = shell.bed.client.list_all("/api/v1/events")
    assert [e["message"] for e in events if e["reason"] == "FailedScheduling"] == []


def test_the_readme_installs_as_the_pages_do() -> None:
    """Every command of its section stands on a page, where it is run."""
    pages = [*WAY, (INSTALL, "Before you begin")]
    known = {re.sub(r"\s+", " ", line) for w in pages for line, _out in commands(*w)}
    found = commands("README.md", "Install")
    own = [re.sub(r"\s+", " ", line) for line, _out in found]

    assert len(own) == 4
    assert [line for line in own if line not in known] == []
