"""The examples work with the commands that the help shows."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from ringleaf.cli.command import Command
from ringleaf.cli.explain_live import target_of
from ringleaf.cli.main import COMMANDS
from ringleaf.cli.registry import find
from ringleaf.simulator.scenario import load
from tests.cli.conftest import Ringleaf

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def decisions(ringleaf: Ringleaf, example: str) -> list[dict[str, Any]]:
    lines = ringleaf("plan", f"examples/{example}", "--json").lines
    return [decision for line in lines for decision in json.loads(line)["decisions"]]


def where(decision: dict[str, Any]) -> list[tuple[str, list[int]]]:
    return [(place["node"], place["chips"]) for place in decision["placements"]]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_can_be_planned_and_explained(
    ringleaf: Ringleaf, example: Path
) -> None:
    scenarios = load(example.read_bytes())
    names = [job.name for scenario in scenarios for job in scenario.jobs]

    assert all(scenario.about for scenario in scenarios)
    assert names
    assert ringleaf("plan", str(example)).status in (0, 1)
    for name in names:
        done = ringleaf("explain", str(example), "--job", name)
        assert done.status in (0, 1)
        assert done.err == ""


def commands_of(help_text: str) -> list[list[str]]:
    """The commands after ``Examples:``, up to a pipe."""
    shown = help_text.partition("Examples:\n")[2].partition("\n\n")[0]
    lines = re.findall(r"^ +(ringleaf .*)$", shown, re.MULTILINE)
    return [shlex.split(line.partition("|")[0])[1:] for line in lines]


def calls(example: str) -> list[list[str]]:
    """The calls of ringleaf in a line of examples, each up to a pipe or a file."""
    found = re.findall(r"ringleaf ([^|>)]+)", example.removeprefix("kubectl "))
    return [shlex.split(words) for words in found if "port-forward" not in words]


SHOWN = [
    (command, words)
    for command in COMMANDS.values()
    for example in command.examples
    if not example.startswith("kubectl")
    for words in calls(example)
]
EXAMPLES_OF_HELP = [
    pytest.param(command, words, id=f"{command.name}: {' '.join(words)}")
    for command, words in SHOWN
]
LIVE = ("status", "faults", "dump", "shadow-report", "scheduler", "summary-controller")
"""Commands that tests/cli/test_live_cluster.py, tests/stories and others run."""
LONG = ("dev", "simulate", "compare")
"""Commands that take a while; tests of their own run them small."""


def is_live(arguments: list[str]) -> bool:
    """Whether a live cluster is asked."""
    if arguments[0] == "faults":
        return "-f" not in arguments
    if arguments[0] == "rearrange":
        return not any(each.endswith(".yaml") for each in arguments)
    wanted = target_of(arguments[1], "") if arguments[1:] else None
    asked = wanted is not None or "-f" in arguments or arguments[0] in LIVE
    return asked or "-" in arguments  # what dump wrote


WRITTEN = ("run.log", "cluster.yaml")
"""Files that examples write: they belong in a folder of the test's own."""
KINDS = (".yaml", ".log", ".conf", ".json")
OFFLINE = [
    words for command, words in SHOWN if not is_live(words) and command.name not in LONG
]


@pytest.mark.parametrize(("command", "words"), EXAMPLES_OF_HELP)
def test_every_example_of_the_help_can_be_called(
    command: Command, words: list[str]
) -> None:
    """Its command and its options exist, and their values are good."""
    found, rest = find(words)

    assert isinstance(found, Command)
    found.values_of(rest)
    assert found is command or command.name in ("replay", "dump")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(name: str) -> None:
    shown = [words for line in COMMANDS[name].examples for words in calls(line)]

    assert any(" ".join(words).startswith(name) for words in shown)


@pytest.mark.slow
@pytest.mark.parametrize("words", OFFLINE, ids=" ".join)
def test_every_example_that_needs_no_cluster_works(
    ringleaf: Ringleaf, words: list[str], tmp_path: Path
) -> None:
    log, before = str(tmp_path / "run.log"), {*ROOT.iterdir()}
    own = [log if word in WRITTEN else word for word in words]
    own = [word if "volcano-scheduler" not in word else log for word in own]
    if words[0] == "replay":
        ringleaf("plan", "examples/big-job-waits.yaml", "--record", log)
    done = ringleaf(*own)

    assert (done.status in (0, 1), done.err) == (True, "") or "fixed:" in done.err
    assert not [path for path in {*ROOT.iterdir()} - before if path.suffix in KINDS]


def test_the_help_names_every_example_once_at_least(ringleaf: Ringleaf) -> None:
    shown = "".join(ringleaf(name, "--help").out for name in ("plan", "explain"))

    assert "examples/node-a-or-b.yaml" in shown
    assert "examples/why-waiting.yaml" in shown


def test_node_a_or_b(ringleaf: Ringleaf) -> None:
    """Seed 000's example: one chip goes where it leaves no fragment."""
    (small,) = decisions(ringleaf, "node-a-or-b.yaml")

    assert where(small) == [("node-a", [3])]


def test_why_waiting(ringleaf: Ringleaf) -> None:
    (big,) = decisions(ringleaf, "why-waiting.yaml")
    explained = ringleaf(
        "explain", "examples/why-waiting.yaml", "--job", "big", "--json"
    )

    assert big["verdict"] == "waiting"
    assert json.loads(explained.out)["refused"]["not-wired-together"] == ["n2"]
    assert json.loads(explained.out)["enough-to-end"] == ["night"]


def test_every_rule_shows_what_it_says(ringleaf: Ringleaf) -> None:
    found = decisions(ringleaf, "every-rule.yaml")
    placed = [(d["job"], *where(d)) for d in found if d["verdict"] == "placed"]
    others = [(d["job"], d["verdict"]) for d in found if d["verdict"] != "placed"]

    assert placed == [
        ("first", ("one", [5])),
        ("second", ("three", [4])),
        ("third", ("three", [5])),
        ("pair", ("a", [4, 5])),
        ("ring", ("n0", [0, 1, 2, 3])),
        ("node", ("n1", [*range(8)])),
        ("whole-nodes", ("n2", [*range(8)]), ("n3", [*range(8)])),
        ("half-nodes", ("n", [0, 1, 2, 3]), ("n", [4, 5, 6, 7])),
        ("resnet", ("six", [1, 2, 3, 4, 6, 7])),
        ("pair", ("healthy", [0, 1])),
        ("gang", ("n", [4, 5]), ("n", [6, 7])),
        ("single", ("n", [0, 1, 2, 3])),
        ("ten", ("box", [0, 8, 1, 9, 3, 11, 4, 12, 5, 13])),
        ("one", ("a3", [0])),
        ("four", ("a3", [2, 3, 4, 5])),
        ("pod", ("inside", [*range(16)])),
        ("one-card", ("cards", [8, 9, 10])),
        ("leftovers", ("cards", [0, 5, 11])),
        ("odd", ("duo", [1, 2, 3])),
        ("helped", ("duo", [5, 7])),
        ("four", ("mesh", [4, 5, 6, 7])),
        ("eight", ("meshes", [*range(8)])),
        ("after", ("n0", [*range(8)]), ("n1", [*range(8)])),
    ]
    assert others == [
        ("three", "invalid"),
        ("half-nodes", "invalid"),
        ("more", "waiting"),
        ("distributed", "waiting"),
        ("gang", "waiting"),
    ]
