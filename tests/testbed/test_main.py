"""The actor as a process of its own, as benchmarks run it."""

import subprocess
import sys

import pytest

from ringleaf_testbed.actor import main
from ringleaf_testbed.cluster import Testbed


def test_the_actor_runs_as_a_process(new_testbed: type[Testbed]) -> None:
    with new_testbed(volcano=False) as bed:
        command = [sys.executable, "-m", "ringleaf_testbed.actor"]
        where = ["--kubeconfig", str(bed.kubeconfig), "--leaf-size", "2"]
        machines = ["--machines", "atlas-800t-a2=3", "atlas-900-a3=1"]
        actor = bed.run("actor", [*command, *where, *machines])

        actor.wait_until(lambda: actor.says("actor: 4 machines"))

        nodes, _version = bed.client.list_all("/api/v1/nodes")
        assert [node["metadata"]["name"] for node in nodes] == [
            "atlas-800t-a2-0",
            "atlas-800t-a2-1",
            "atlas-800t-a2-2",
            "atlas-900-a3-3",
        ]
        actor.stop()
        assert actor.status == 0


def test_its_help_names_its_options() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ringleaf_testbed.actor", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )

    for option in ("--kubeconfig", "--machines", "--leaf-size", "--layout"):
        assert option in done.stdout


def test_what_it_cannot_use_is_told() -> None:
    with pytest.raises(SystemExit) as left:
        main(["--machines", "atlas-800t-a2=1"])

    assert left.value.code == 2
