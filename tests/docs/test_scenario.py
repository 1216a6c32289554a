"""docs/scenario.md describes every key of the format, and every key of the answer."""

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
from msgspec import NODEFAULT, Struct

from ringleaf.engine.event import Event
from ringleaf.framework.instruction import (
    AskToExit,
    Delete,
    PersistRepair,
    Repaired,
    ReportFaultyPods,
    Verdict,
)
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed, Reason
from ringleaf.model.fault import Cause, PodFault, Record, RestartScope
from ringleaf.model.placement import LeafAnnotation, Placement
from ringleaf.model.settings import Settings
from ringleaf.policies.products import PRODUCTS
from ringleaf.simulator import format as form
from ringleaf.simulator.answer import decide_all, encode, instruction_plain
from ringleaf.simulator.encode_rules import settings
from ringleaf.simulator.events import FORMS
from ringleaf.simulator.outcome import Ended, fates, plain
from ringleaf.simulator.run import run
from ringleaf.simulator.scenario import load
from tests.docs.pages import ROOT, Block, blocks, section, table_rows

PAGE = "docs/scenario.md"

# The heading under which each mapping of the format is described.
HEADINGS: dict[str, type[Struct]] = {
    "The document": form.ScenarioEntry,
    "settings": form.SettingsEntry,
    "nodes": form.NodeEntry,
    "taints": form.TaintEntry,
    "leaves": form.LeafEntry,
    "jobs": form.JobEntry,
    "roles": form.RoleEntry,
    "node-affinity": form.TermEntry,
    "preferred-node-affinity": form.PreferredTermEntry,
    "match-expressions": form.RequirementEntry,
    "tolerations": form.TolerationEntry,
    "pod-affinity": form.PodTermEntry,
    "preferred-pod-affinity": form.PreferredPodTermEntry,
    "selector": form.SelectorEntry,
    "spread": form.SpreadEntry,
    "running": form.RunningEntry,
    "placements": form.PlacementEntry,
    "previous": form.PreviousEntry,
    "run-time": form.RunTimeEntry,
    "queues": form.QueueEntry,
    "then": form.ThenEntry,
    "arrives": form.ArrivalEntry,
    "pods-end": form.PodsEndEntry,
    "pods-ending": form.PodsEntry,
    "ends": form.JobEndEntry,
    "pods-ail": form.PodsAilEntry,
    "ailments": form.AilmentEntry,
    "pods-refused": form.PodsRefusedEntry,
    "pods-run": form.PodsRunEntry,
    "repair-known": form.RepairEntry,
    "record": form.RecordEntry,
    "faults-known": form.FaultEntry,
    "run-times-known": form.RunSeriesEntry,
    "idle-time-known": form.IdleTimeEntry,
    "kept-idle": form.KeptIdleEntry,
    "reservations": form.EndedReservationEntry,
    "deletions-known": form.DeletionEntry,
    "First line of a log": form.LogEntry,
    "Steps of a log": form.StepEntry,
}

# "The keys of a job, and two more": these are described elsewhere.
ELSEWHERE: dict[type[Struct], type[Struct]] = {
    form.RunningEntry: form.JobEntry,
    form.ArrivalEntry: form.JobEntry,
    form.RoleEntry: form.PodEntry,
}


def described(heading: str) -> dict[str, str]:
    """Key -> default, as the table under *heading* says."""
    rows = table_rows(section(PAGE, heading))
    return {row[0].strip("`"): row[1] for row in rows if row[0].startswith("`")}


def fields(entry: type[Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    inherited: set[str] = set()
    if entry in ELSEWHERE:
        inherited = {f.name for f in msgspec.structs.fields(ELSEWHERE[entry])}
    return {
        field.encode_name: field
        for field in msgspec.structs.fields(entry)
        if field.name not in inherited
    }


def test_every_mapping_of_the_format_has_a_heading() -> None:
    entries = {
        value
        for name, value in vars(form).items()
        if name.endswith("Entry") and name != "_Entry"
    }

    of_others = {form.PodEntry, form.EventEntry}
    assert set(HEADINGS.values()) == entries - of_others


def test_the_described_settings_are_the_defaults() -> None:
    told = described("settings")

    for key, default in settings(Settings()).items():
        if default is not None:
            assert told[key] == f"`{default}`".replace("False", "false"), key


@pytest.mark.parametrize("heading", HEADINGS)
def test_exactly_the_keys_of_the_format_are_described(heading: str) -> None:
    assert set(described(heading)) == set(fields(HEADINGS[heading]))


@pytest.mark.parametrize("heading", HEADINGS)
def test_the_described_defaults_are_the_defaults(heading: str) -> None:
    told = described(heading)

    for key, field in fields(HEADINGS[heading]).items():
        default = field.default
        required = default is NODEFAULT and field.default_factory is NODEFAULT
        assert (told[key] == "required") is required, key
        if isinstance(default, bool | int | float | str) and default != "":
            assert told[key] == f"`{default}`".replace("True", "true").replace(
                "False", "false"
            ), key


@pytest.mark.parametrize(
    "block", [b for b in blocks("yaml") if b.page == PAGE], ids=lambda each: each.page
)
def test_a_scenario_in_a_page_is_decided(block: Block) -> None:
    (example,) = load(block.body.encode())

    if example.is_run:
        assert [type(fate) for fate in fates(run(example))] == [Ended, Placed]
        return
    _cluster, decisions = decide_all(example)
    assert [type(decision) for decision in decisions] == [Placed, Placed]


def answers() -> list[dict[str, Any]]:
    """Answers that between them have every key."""
    tour = (ROOT / "examples/tour.yaml").read_bytes()
    warned = (
        b"nodes: [{name: a, product: atlas-800t-a2, leaf: L}]\n"
        b"jobs: [{name: j, chips: 1, strategy: card}]"
    )
    shared = (
        b"settings: {nslb-version: '2.0', nodes-per-leaf: 2}\n"
        b"nodes: [{name: 'a{i}', count: 2, product: atlas-800t-a2, leaf: A},"
        b"{name: 'b{i}', count: 2, product: atlas-800t-a2, leaf: B}]\n"
        b"leaves: {B: {address: 10.0.0.1}}\n"
        b"jobs: [{name: j, chips: 8, replicas: 3, tor-affinity: normal-schema}]"
    )
    large = (
        b"nodes: [{name: a, product: atlas-800t-a2}]\n"
        b"jobs: [{name: j, chips: 8, replicas: 2}]"
    )
    return [
        json.loads(encode(*decide_all(scenario)))
        for data in (tour, warned, shared, large)
        for scenario in load(data)
        if not scenario.is_run
    ]


def run_answers() -> list[dict[str, Any]]:
    """Answers of runs that between them have every key."""
    ending = (
        b"grace-seconds: 60\n"
        b"nodes: [{name: a, product: atlas-900-a3, superpod: 0, leaf: A}]\n"
        b"running: [{name: r, chips: 16, estimate-seconds: 1000,"
        b"placements: [{replica: 0, node: a, chips: [0, 1]}]}]\n"
        b"jobs: [{name: j, chips: 16}]\n"
        b"until: 400\n"
        b"then: [{at: 300, pods-ending: {job: r, replicas: [0]}}]"
    )
    predicted = (
        b"nodes: [{name: a, product: atlas-800t-a2}]\n"
        b"running: [{name: r, chips: 8, started: -9,"
        b"run-time: {median-seconds: 900, most-seconds: 1000, runs: 9, by: chips},"
        b"placements: [{replica: 0, node: a, chips: [0, 1, 2, 3, 4, 5, 6, 7]}]}]\n"
        b"jobs: [{name: j, chips: 8}]\n"
        b"configuration: {actions: allocate, configurations: ["
        b"{name: allocate, arguments: {learn-run-times: true}}]}\n"
        b"until: 400"
    )
    elastic = (
        b"nodes: [{name: a, product: atlas-800t-a2}]\n"
        b"jobs: [{name: j, chips: 8, replicas: 2, min-member: 1}]\n"
        b"queues: []\n"
    )
    examples = [path.read_bytes() for path in (ROOT / "examples").glob("*.yaml")]
    return [
        json.loads(msgspec.json.encode(plain(run(scenario))))
        for data in (*examples, ending, predicted, elastic)
        for scenario in load(data)
        if scenario.is_run
    ]


def said_of_faults() -> list[dict[str, Any]]:
    """What the engine says of faults, with every key."""
    ailments = (PodFault(0, Cause.CHIP, "a"),)
    where = (Placement(0, "a", (0,), mark=LeafAnnotation()),)
    record = Record(1, RestartScope.JOB, ailments, where, (0,), 2, 3, 1, is_over=True)
    said = (
        Delete("j", (0,), Cause.CHIP, "chip 0 is unhealthy", force=True),
        ReportFaultyPods("j", ailments),
        PersistRepair("j", record),
        AskToExit("j", exits=False),
        Repaired("j", record),
    )
    cluster = Cluster([Node("a", PRODUCTS["atlas-800t-a2"], 8, 0)])
    return [instruction_plain(cluster, each) for each in said]


def keys_of(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield key
            if key not in ("reasons", "record"):
                yield from keys_of(below)
    elif isinstance(value, list):
        for below in value:
            yield from keys_of(below)


def told_in(text: str) -> set[str]:
    """The keys in the first column of tables."""
    return {
        key.strip(" `")
        for row in table_rows(text)
        if row[0].startswith("`")
        for key in row[0].replace(" or ", ",").split(",")
    }


def test_exactly_the_keys_of_the_answer_are_described() -> None:
    resources = {product.resource for product in PRODUCTS.values()}
    of_a_run = section(PAGE, "Output of a run")
    told = told_in(section(PAGE, "Output").replace(of_a_run, ""))

    assert resources <= told
    assert told - resources - set(Reason) - {"0", "1", "2"} == (
        set(keys_of(answers())) - resources
    )


def test_exactly_the_keys_of_a_run_are_described() -> None:
    of_a_run = section(PAGE, "Output of a run")
    told = set(re.findall(r"`([a-z-]+)`", of_a_run))
    resources = {product.resource for product in PRODUCTS.values()}

    found = set(keys_of([run_answers(), said_of_faults()])) - resources
    assert found - told <= set(keys_of(answers()))
    assert told_in(of_a_run) <= found


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_of_a_report_is_described(verdict: Verdict) -> None:
    assert f"`{verdict}`" in section(PAGE, "Output of a run")


def test_every_event_has_a_form() -> None:
    assert set(FORMS.values()) == set(get_args(Event))
    assert set(FORMS) == set(described("then")) - {"at", "settings"}


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_described(reason: Reason) -> None:
    rows = table_rows(section(PAGE, "Reasons"))

    (row,) = [row for row in rows if row[0] == f"`{reason}`"]
    assert row[1] == reason.words
    assert row[2]


def test_the_tutorial_shows_the_file_that_it_names() -> None:
    (block,) = [b for b in blocks("yaml") if b.page == "docs/first-scenario.md"]

    assert block.body == (ROOT / "examples/first.yaml").read_text(encoding="utf-8")
