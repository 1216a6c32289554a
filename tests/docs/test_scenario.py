"""docs/scenario.md describes every key of the format, and every key of the answer."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import NODEFAULT, Struct

from ringleaf.model.decision import Placed, Reason
from ringleaf.policies.products import PRODUCTS
from ringleaf.simulator import format as form
from ringleaf.simulator.answer import decide_all, encode
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
    "node-affinity": form.TermEntry,
    "match-expressions": form.RequirementEntry,
    "tolerations": form.TolerationEntry,
    "running": form.RunningEntry,
    "placements": form.PlacementEntry,
    "previous": form.PreviousEntry,
}


def described(heading: str) -> dict[str, str]:
    """Key -> default, as the table under *heading* says."""
    rows = table_rows(section(PAGE, heading))
    return {row[0].strip("`"): row[1] for row in rows if row[0].startswith("`")}


def fields(entry: type[Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    inherited: set[str] = set()
    if entry is form.RunningEntry:  # "the keys of a job, and one more"
        inherited = {f.name for f in msgspec.structs.fields(form.JobEntry)}
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

    assert set(HEADINGS.values()) == entries


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
        if isinstance(default, bool | int | str):
            assert told[key] == f"`{default}`".replace("True", "true").replace(
                "False", "false"
            ), key


@pytest.mark.parametrize("block", blocks("yaml"), ids=lambda each: each.page)
def test_a_scenario_in_a_page_is_decided(block: Block) -> None:
    (example,) = load(block.body.encode())

    _cluster, decisions = decide_all(example)
    assert [type(decision) for decision in decisions] == [Placed, Placed]


def answers() -> list[dict[str, Any]]:
    """Answers that between them have every key."""
    demo = (ROOT / "src/ringleaf/simulator/demo.yaml").read_bytes()
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
    return [
        json.loads(encode(*decide_all(scenario)))
        for data in (demo, warned, shared)
        for scenario in load(data)
    ]


def keys_of(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield key
            if key != "reasons":
                yield from keys_of(below)
    elif isinstance(value, list):
        for below in value:
            yield from keys_of(below)


def test_exactly_the_keys_of_the_answer_are_described() -> None:
    resources = {product.resource for product in PRODUCTS.values()}
    told = {
        key.strip(" `")
        for row in table_rows(section(PAGE, "Output"))
        if row[0].startswith("`")
        for key in row[0].replace(" or ", ",").split(",")
    }

    assert resources <= told
    assert told - resources - set(Reason) - {"0", "1", "2"} == (
        set(keys_of(answers())) - resources
    )


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_described(reason: Reason) -> None:
    rows = table_rows(section(PAGE, "Reasons"))

    (row,) = [row for row in rows if row[0] == f"`{reason}`"]
    assert row[1] == reason.words
    assert row[2]
