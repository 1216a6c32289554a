"""The examples work with the commands that the help shows."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from ringleaf.cli.standing import target_of
from ringleaf.simulator.scenario import load
from tests.cli.conftest import Ringleaf

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
COMMANDS = ("", "plan", "explain", "faults", "products")


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
    _before, _examples, after = help_text.partition("Examples:")
    shown, _options, _rest = after.partition("Options:")
    lines = re.findall(r"^ +(ringleaf .*)$", shown, re.MULTILINE)
    return [shlex.split(line.partition("|")[0])[1:] for line in lines]


def is_live(arguments: list[str]) -> bool:
    """Whether a live cluster is asked."""
    if arguments[0] == "faults":
        return "-f" not in arguments
    wanted = target_of(arguments[1], "") if arguments[1:] else None
    return wanted is not None or "-f" in arguments or arguments[0] in ("dump", "status")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_examples_that_work(
    ringleaf: Ringleaf, command: str
) -> None:
    shown = commands_of(ringleaf(*command.split(), "--help").out)

    assert shown
    for arguments in shown:
        if is_live(arguments):
            continue  # tests/stories asks a real cluster
        if arguments == ["demo"]:
            continue  # tests/docs does what the README shows
        done = ringleaf(*arguments)
        assert (done.status in (0, 1), done.err) == (True, ""), arguments


def test_the_help_names_every_example_once_at_least(ringleaf: Ringleaf) -> None:
    shown = "".join(ringleaf(*command.split(), "--help").out for command in COMMANDS)

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
