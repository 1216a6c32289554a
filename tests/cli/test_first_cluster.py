"""The commands of docs/first-cluster.md, one after the other, show what it says."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringleaf_testbed import build
from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.device_plugin import REAL
from tests.docs.pages import ROOT, blocks, joined, text_of

PAGE = "docs/first-cluster.md"
GUIDE = "docs/kubernetes.md"
OMITTED = "…"
UP = [sys.executable, "-m", "ringleaf", "dev", "up"]


def steps() -> list[tuple[str, list[str]]]:
    """Every command of the page, and the lines that its output has to have."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```text\n(\$ .*?)```", text_of(PAGE), re.DOTALL):
        for line in joined(block).splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line != OMITTED:
                found[-1][1].append(line)
    return found


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a terminal beside a cluster that is up."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(  # noqa: S603 - our own
        UP,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as cluster:
        try:
            assert cluster.stdout is not None
            first = cluster.stdout.readline().strip()
            built = [build.command(name).parent for name in ("kubectl", "helm")]
            tools = [*built, Path(sys.executable).parent]
            path = os.pathsep.join([*map(str, tools), os.environ["PATH"]])
            kubeconfig = first.removeprefix("export KUBECONFIG=")
            yield {**environment, "PATH": path, "KUBECONFIG": kubeconfig}
        finally:
            cluster.terminate()


@pytest.mark.usefixtures("binaries")
def test_the_page_can_be_followed(shell: dict[str, str]) -> None:
    typed = steps()

    assert len(typed) >= 10
    for command, expected in typed:
        wanted = [plain(line) for line in expected]

        def is_shown(command: str = command, wanted: list[str] = wanted) -> bool:
            done = subprocess.run(  # noqa: S603 - a command of the page
                ["bash", "-c", command],  # noqa: S607
                cwd=ROOT,
                env={**shell, "COLUMNS": "200"},
                capture_output=True,
                text=True,
                check=False,
            )
            lines = [plain(line) for line in done.stdout.splitlines()]
            return all(any(fits(want, line) for line in lines) for want in wanted)

        changes = command.startswith(("kubectl create", "kubectl delete"))
        if changes:
            assert is_shown(), command
        else:
            Testbed.wait_for(is_shown, command, patience_s=90.0)
    _must_run_the_manifests(shell)


def _must_run_the_manifests(shell: dict[str, str]) -> None:
    """Of docs/kubernetes.md, beside the chart with its chip guard."""
    kubectl = [str(build.command("kubectl")), f"--kubeconfig={shell['KUBECONFIG']}"]

    def run(*words: str, text: str | None = None) -> str:
        done = subprocess.run(  # noqa: S603 - our own
            [*kubectl, *words], input=text, capture_output=True, text=True, check=True
        )
        return done.stdout

    manifests = [
        block.body
        for block in blocks("text")
        if block.page == GUIDE and block.body.startswith("apiVersion: ")
    ]
    run("delete", "job.batch.volcano.sh", "big")
    run("create", "namespace", "later")
    for manifest in manifests:
        run("create", "--namespace=later", "-f", "-", text=manifest)

    def shown() -> list[list[str]]:
        told = run("get", "pods", "--namespace=later", "--output=json")
        return sorted(
            [
                pod["metadata"]["name"],
                pod["spec"]["schedulerName"],
                pod["status"]["phase"],
                *pod["metadata"].get("annotations", {}).get(REAL, "").split(","),
            ]
            for pod in json.loads(told)["items"]
        )

    pods = ["infer", *(f"train-worker-{i}" for i in range(4))]
    chips = {"infer": 2}
    wanted = [[pod, "ringleaf", "Running", chips.get(pod, 8)] for pod in pods]
    Testbed.wait_for(
        lambda: [[*pod[:3], len(pod) - 3] for pod in shown()] == wanted, "its pods"
    )


def fits(want: str, line: str) -> bool:
    """An ellipsis at an end of *want* stands for the rest of the line."""
    return want.strip(OMITTED).strip() in line


def plain(line: str) -> str:
    """A line without the width of its columns."""
    return " ".join(line.split())
