"""The plugin of ``examples/plugin``: installed, configured, and heard."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml

from ringleaf.cli.conf import check_file
from ringleaf.cli.plan import plan_file
from ringleaf.cli.plugins import installed_plugins
from ringleaf.cli.replay import replay_file
from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.framework.session import Session
from ringleaf.framework.state import SchedulerState
from ringleaf.framework.votes import Votes
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed
from ringleaf.model.job import Job
from ringleaf.model.queue import Queue
from ringleaf.model.settings import Settings
from ringleaf.plugins import PLUGINS
from tests.plugins.stage import A2

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "plugin"
PIP: Final = (
    sys.executable,
    *("-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
    *("--no-deps", "--no-index", "--no-build-isolation"),
)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example is installed."""
    target = tmp_path_factory.mktemp("packages")
    subprocess.run([*PIP, "--target", target, EXAMPLE], check=True)  # noqa: S603
    return target


@pytest.fixture
def _installed(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(packages)


def test_without_the_package_the_name_is_unknown() -> None:
    assert "night" not in installed_plugins()


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("queue", "with_plugin", "node"),
    [
        pytest.param(
            "default", False, "a-dark", id="without it the first node is best"
        ),
        pytest.param("default", True, "b-light", id="others stay out of the zone"),
        pytest.param("night", True, "a-dark", id="jobs of the queue stay in it"),
    ],
)
def test_its_vote_changes_where_a_job_goes(
    queue: str,
    with_plugin: bool,  # noqa: FBT001
    node: str,
) -> None:
    others = installed_plugins()
    document = yaml.safe_load((EXAMPLE / "night.conf").read_text())
    if not with_plugin:
        document["tiers"][1]["plugins"].pop()
    conf = read_conf(document, others)
    assert isinstance(conf, Conf), conf
    cluster = Cluster(
        Node(name, A2, 8, 0xFF, labels={"zone": name[2:]})
        for name in ("a-dark", "b-light")
    )
    view = SchedulerState(cluster, Settings(), [Queue("night")])
    votes = Votes(conf.tiers, view, {**PLUGINS, **others})

    decision = Session(cluster, node_filter=votes.predicate).decide(
        Job("train", A2, 8, queue=queue)
    )
    assert isinstance(decision, Placed)
    assert [placement.node for placement in decision.placements] == [node]


@pytest.mark.usefixtures("_installed")
def test_the_check_of_a_configuration_knows_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")

    assert check_file(str(EXAMPLE / "night.conf"), as_json=False) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    at = next(i for i, line in enumerate(lines) if line.startswith("night"))
    assert lines[at : at + 4] == [
        "night       Keeps the nodes of one zone for jobs of one queue.",
        "votes: Predicate",
        "zone: dark (default night). Label zone of the nodes.",
        "by default: queue night",
    ]


RUN: Final = """
nodes:
  - {name: a-dark, product: atlas-800t-a2, labels: {zone: dark}}
  - {name: b-light, product: atlas-800t-a2, labels: {zone: light}}
queues: [{name: night}]
configuration: CONF
jobs:
  - {name: day, chips: 8}
  - {name: late, chips: 8, queue: night}
then:
  - {at: 60, configuration: CONF}
"""


@pytest.mark.usefixtures("_installed")
def test_a_scenario_and_its_log_run_by_it(tmp_path: Path) -> None:
    conf = yaml.safe_load((EXAMPLE / "night.conf").read_text())
    scenario, log = tmp_path / "run.yaml", tmp_path / "run.log"
    scenario.write_text(RUN.replace("CONF", json.dumps(conf)))

    assert plan_file(str(scenario), as_json=True, record=str(log)) == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    bound = {
        instruction["bind"]["job"]: instruction["bind"]["placements"][0]["node"]
        for line in lines[1:]
        for instruction in line["instructions"]
        if "bind" in instruction
    }
    assert bound == {"day": "b-light", "late": "a-dark"}
    assert replay_file(str(log), as_json=True) == 0
