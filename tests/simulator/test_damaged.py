"""Whatever is in a file: one line that says what is wrong, soon and in little room."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.simulator import format as form
from ringleaf.simulator.scenario import load
from ringleaf.simulator.source import BadInput
from tests.effort import Effort, assert_reached, effort, examples
from tests.simulator.damage import (
    FORMS,
    GOOD,
    KINDS,
    RARE,
    Document,
    complaint,
    damaged,
    paths,
    replaced,
)

ROOT = Path(__file__).parents[2]
ENTRIES = (
    form.ScenarioEntry,
    form.SettingsEntry,
    form.NodeEntry,
    form.LeafEntry,
    form.RunningEntry,
    form.PlacementEntry,
    form.PreviousEntry,
    form.JobEntry,
    form.TaintEntry,
    form.TermEntry,
    form.RequirementEntry,
    form.TolerationEntry,
    form.SelectorEntry,
    form.PodTermEntry,
    form.PreferredPodTermEntry,
    form.PreferredTermEntry,
    form.SpreadEntry,
    form.RoleEntry,
    form.ArrivalEntry,
    form.QueueEntry,
    form.PodsEntry,
    form.PodsEndEntry,
    form.JobEndEntry,
    form.AilmentEntry,
    form.PodsAilEntry,
    form.PodsRunEntry,
    form.PodsRefusedEntry,
    form.RecordEntry,
    form.RepairEntry,
    form.FaultEntry,
    form.DeletionEntry,
    form.RunSeriesEntry,
    form.IdleTimeEntry,
    form.KeptIdleEntry,
    form.EndedReservationEntry,
    form.RunTimeEntry,
    form.EventEntry,
    form.ThenEntry,
)


def report_of(*command: str) -> dict[str, Any]:
    """What ``tests.simulator.damage`` saw, in a process of its own."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "tests.simulator.damage", *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        timeout=900,
        check=True,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("good", GOOD)
def test_the_originals_are_good(good: Document, form: Callable[[object], str]) -> None:
    assert len(load(form(good).encode())) == 1


def test_the_originals_use_every_key_of_the_format() -> None:
    used = {step for good in GOOD for path in paths(good) for step in path}
    known = {key for entry in ENTRIES for key in entry.__struct_encode_fields__}

    assert known <= used


def test_one_seed_makes_one_set_of_files() -> None:
    assert list(damaged(300)) == list(damaged(300))
    assert list(damaged(100)) != list(damaged(100, seed=1))


@pytest.mark.slow
def test_damaged_files_are_each_refused_with_one_line() -> None:
    n_files = 10_000 if effort() is Effort.LONG else 1_000
    report = report_of("load", str(n_files))

    assert report["faults"] == []
    assert set(report["kinds"]) == {*KINDS, *RARE}
    assert sum(report["kinds"].values()) == n_files
    assert len(report["shapes"]) > 200, "the damage is hardly varied"
    assert report["grown_mib"] < 200


@pytest.mark.slow
def test_commands_refuse_damaged_files_with_one_line_and_status_2() -> None:
    n_files = 200 if effort() is Effort.LONG else 100
    report = report_of("run", str(n_files))

    assert report["faults"] == []
    assert set(report["kinds"]) == {*KINDS, *RARE}
    assert sum(report["kinds"].values()) == n_files
    assert report["peak_mib"] < 200


def outcome(data: bytes) -> str:
    """``good``, or the message; anything but a ``BadInput`` comes through."""
    try:
        load(data)
    except BadInput as error:
        message = str(error)
    else:
        return "good"
    assert complaint(message) is None
    return message


bounded = settings(max_examples=examples(300))

KEYS = sorted({key for entry in ENTRIES for key in entry.__struct_encode_fields__})
TEXTS = [
    *("a", "A", "n{i}", "atlas-800t-a2", "atlas-300i", "large-model-schema", "null"),
    *("hard", "card", "idle", "1.0", "pods", "strict", "double_layer", "", "\x7f", "é"),
    *("open", "research", "allocate", "TCP/80", "DoNotSchedule"),
]
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 70)
    | st.integers()
    | st.floats()
    | st.sampled_from(TEXTS)
    | st.text(max_size=8)
)
structures = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=5
        )
    ),
    max_leaves=12,
)


@bounded
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    outcome(data)


@bounded
@given(st.text(alphabet="[]{}:,-&*!|>'\"%@`#?<=~. \n\t01nodesé\x00", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    outcome(text.encode())


@bounded
@given(structures)
def test_any_structure_is_read_or_refused(structure: object) -> None:
    outcome(json.dumps(structure).encode())
    outcome(str(yaml.safe_dump(structure)).encode())


def test_a_good_file_with_anything_anywhere_is_read_or_refused() -> None:
    """Some of these files are read, and others refused for many reasons."""
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(800))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        good = data.draw(st.sampled_from(GOOD))
        path = data.draw(st.sampled_from(list(paths(good))))
        file = replaced(good, path, data.draw(structures))

        seen[outcome(json.dumps(file).encode())] += 1

    check()
    assert_reached(seen, "good")
    assert_reached({"reasons": len(seen) - 1}, "reasons", times=21)
