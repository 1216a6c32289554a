"""What is recorded is played again: the same, or the first difference is told."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringleaf.engine.engine import Engine
from ringleaf.engine.event import (
    JobArrived,
    JobGone,
    NodesChanged,
    PodFaultsReported,
    RepairKnown,
)
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Cause, PodFault, Record
from ringleaf.model.job import Job
from ringleaf.policies.products import PRODUCTS
from ringleaf.simulator.log import Recorder, replay
from ringleaf.simulator.run import run
from ringleaf.simulator.scenario import load
from ringleaf.simulator.source import BadInput
from tests.scenarios.case import Case, cases

ROOT = Path(__file__).parents[2]
A2 = PRODUCTS["atlas-800t-a2"]
RUNS = [
    case for case in cases() if {"queues", "then", "configuration"} & {*case.scenario}
]
EXAMPLES = [
    path
    for path in sorted((ROOT / "examples").glob("*.yaml"))
    if load(path.read_bytes())[0].is_run
]


def recorded(text: str) -> bytes:
    """The log of a scenario."""
    (scenario,) = load(text.encode())
    out = io.BytesIO()
    run(scenario, lambda engine: Recorder(engine, out))
    return out.getvalue()


def changed(log: bytes, line: int, change: Callable[[Any], object]) -> bytes:
    """*log* with one line changed, counted from 1."""
    lines = log.splitlines()
    plain = json.loads(lines[line - 1])
    change(plain)
    lines[line - 1] = json.dumps(plain).encode()
    return b"\n".join([*lines, b""])


WAITING = """
nodes: [{name: n, product: atlas-800t-a2}]
jobs: [{name: first, chips: 8}, {name: second, chips: 8}]
then: [{at: 60, ends: first}]
"""


@pytest.mark.parametrize("case", RUNS, ids=str)
def test_a_golden_scenario_is_played_again_as_it_was(case: Case) -> None:
    log = recorded(json.dumps(dict(case.scenario)))

    found = replay(io.BytesIO(log))

    assert (found.difference, found.warnings) == (None, ())
    assert found.steps == len(log.splitlines()) - 1


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_played_again_as_it_was(path: Path) -> None:
    log = recorded(path.read_text())

    assert replay(io.BytesIO(log)).difference is None


def test_the_first_line_is_a_scenario_without_jobs() -> None:
    head = json.loads(recorded(WAITING).splitlines()[0])

    assert head.pop("ringleaf-log") == 1
    assert head.pop("version")
    (scenario,) = load(json.dumps(head).encode())
    assert [node.name for node in scenario.nodes] == ["n"]
    assert scenario.is_run


def test_a_line_has_what_happened_and_what_was_said() -> None:
    _head, first, second = map(json.loads, recorded(WAITING).splitlines())

    assert (first["at"], second["at"]) == (0, 60)
    assert [event["arrives"]["name"] for event in first["events"]] == [
        "first",
        "second",
    ]
    assert second["events"] == [{"ends": "first"}]
    assert [*second["instructions"][0]] == ["bind"]


def test_a_live_engine_is_recorded_as_well() -> None:
    """At any clock, event by event; also what a scenario would refuse."""
    node = Node("n", A2, 8, 255, leaf="L", slot=9)
    out = io.BytesIO()
    recorder = Recorder(Engine([node]), out)
    start = 1_700_000_000.25

    recorder.handle(JobArrived(Job("j", A2, 8)), start)
    recorder.handle(JobGone("nobody"), start + 1)
    recorder.handle_all([NodesChanged((node,)), JobGone("j")], start + 2)

    assert recorder.view.job_states == {}
    out.seek(0)
    found = replay(out)
    assert (found.steps, found.difference) == (3, None)


def test_an_engine_that_follows_another_is_played_again() -> None:
    """As after a failure: the second hears what there is, and goes on."""
    node, out = Node("n", A2, 8, 255), io.BytesIO()
    first = Recorder(Engine([node]), out)
    first.handle(JobArrived(Job("j", A2, 8)), 1.0)
    second = Recorder(Engine([]), out)
    second.handle_all([NodesChanged((node,)), JobArrived(Job("k", A2, 8))], 2.0)

    out.seek(0)
    found = replay(out)
    assert (found.steps, found.instructions, found.difference) == (2, 2, None)


@pytest.mark.parametrize("cause", Cause)
def test_whatever_an_engine_heard_of_causes_is_played_again(cause: Cause) -> None:
    """Somebody may have written anything into what is remembered of a repair."""
    out, ailing = io.BytesIO(), (PodFault(0, cause, "n"),)
    recorder = Recorder(Engine([Node("n", A2, 8, 255)]), out)

    recorder.handle(RepairKnown("j", Record(0.0, pod_faults=ailing, deleted=(0,))), 1)
    recorder.handle(PodFaultsReported("j", ailing), 2)

    out.seek(0)
    assert replay(out).difference is None


def test_an_instruction_that_is_another_is_a_difference() -> None:
    def elsewhere(step: Any) -> None:  # noqa: ANN401
        step["instructions"][0]["bind"]["placements"][0]["node"] = "m"

    found = replay(io.BytesIO(changed(recorded(WAITING), 3, elsewhere))).difference

    assert found is not None
    assert (found.line, found.at, found.events) == (3, 60, [{"ends": "first"}])
    assert found.recorded is not None
    assert found.now is not None
    assert found.recorded["bind"]["placements"][0]["node"] == "m"
    assert found.now["bind"]["placements"][0]["node"] == "n"


def test_one_instruction_more_or_less_is_a_difference() -> None:
    log = recorded(WAITING)
    less = changed(log, 3, lambda step: step["instructions"].clear())
    more = changed(log, 3, lambda step: step["instructions"].append({"wake-at": 9}))

    one, other = (replay(io.BytesIO(each)).difference for each in (less, more))

    assert one is not None
    assert other is not None
    assert one.recorded is None
    assert other.now is None
    assert other.recorded == {"wake-at": 9}


def test_a_last_line_that_is_cut_off_is_left_out() -> None:
    log = recorded(WAITING)

    found = replay(io.BytesIO(log[:-9]))

    assert (found.steps, found.difference) == (1, None)
    assert found.warnings == ("line 3 is cut off and left out",)


def test_a_last_line_without_its_end_is_whole() -> None:
    found = replay(io.BytesIO(recorded(WAITING)[:-1]))

    assert (found.steps, found.warnings) == (2, ())


HEAD = {
    "ringleaf-log": 1,
    "version": "0",
    "nodes": [{"name": "n", "product": "atlas-800t-a2"}],
    "configuration": {},
}
PER_POD = "a mapping with at, events and instructions"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param([], "line 1: the document is null, want a mapping", id="empty"),
        pytest.param(["x"], "line 1: no JSON, want a line of a log", id="no JSON"),
        pytest.param([[]], "line 1: the document is [], want a mapping", id="a list"),
        pytest.param(
            [{"nodes": []}], "line 1: ringleaf-log is missing, want 1", id="a scenario"
        ),
        pytest.param(
            [HEAD | {"ringleaf-log": 2}],
            "line 1: ringleaf-log is 2, want 1",
            id="another form",
        ),
        pytest.param(
            [HEAD | {"jobs": []}], "line 1: the document has the unknown key", id="jobs"
        ),
        pytest.param(
            [HEAD | {"configuration": {"actions": 1}}],
            "line 1: configuration.actions is 1",
            id="bad configuration",
        ),
        pytest.param(
            [HEAD, {"at": 0}], "line 2: events is missing, want a list", id="no events"
        ),
        pytest.param(
            [HEAD, {"at": 0, "events": [{"end": "x"}], "instructions": []}],
            "line 2: events[0] has the unknown key 'end'; hint: did you mean 'ends'?",
            id="unknown event",
        ),
        pytest.param(
            [HEAD, {"at": 0, "events": [{}], "instructions": []}],
            "line 2: events[0] has nothing that happens, want one thing",
            id="no event",
        ),
        pytest.param(
            [
                HEAD,
                {"at": 5, "events": [], "instructions": []},
                {"at": 4, "events": [], "instructions": []},
            ],
            "line 3: at is 4, want 5 or later",
            id="backwards",
        ),
        pytest.param([HEAD, "{", "{}"], "line 2: no JSON", id="broken in between"),
    ],
)
def test_a_bad_log_is_one_line(lines: list[Any], message: str) -> None:
    text = "".join(
        (line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines
    )

    with pytest.raises(BadInput) as caught:
        replay(io.BytesIO(text.encode()))

    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
