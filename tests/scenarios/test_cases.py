"""Every golden scenario comes out as it is written down."""

import re
from typing import Any

import pytest
import yaml

from tests.scenarios.accept import accepted
from tests.scenarios.case import Case, cases, files, happened, outcomes, stem

EVERY_CASE = cases()
FILES = files()


@pytest.mark.parametrize("case", EVERY_CASE, ids=str)
def test_a_scenario_comes_out_as_written(case: Case) -> None:
    assert outcomes(case) == case.expect


@pytest.mark.parametrize("case", [case for case in EVERY_CASE if case.never], ids=str)
def test_what_must_never_happen_does_not(case: Case) -> None:
    found = outcomes(case)

    for never in case.never:
        assert not happened(never, found[never["job"]]), never


@pytest.mark.parametrize("case", EVERY_CASE, ids=str)
def test_a_scenario_names_its_source(case: Case) -> None:
    sources = r"seed 00\d|D\d+|vendor behaviour|Ringleaf's own"

    assert re.search(rf"\((.*\b({sources})\b.*)\)", case.about)


@pytest.mark.parametrize("path", FILES, ids=stem)
def test_accept_would_write_a_file_as_it_stands(path: Any) -> None:  # noqa: ANN401
    text = path.read_text()

    assert accepted(text) == text


def test_accept_writes_only_what_is_under_expect() -> None:
    text = """\
# Why it is here.
about: A story (seed 004).
nodes:
  - {name: a,   product: atlas-800-9000, free: [0]}   # one chip
expect:
  one: {verdict: waiting}
never:
  - {job: one, node: b}   # there is none
jobs:
  - {name: one, chips: 1}
  - {name: "no", chips: 3}
"""

    after = accepted(text)

    assert after.splitlines()[:6] == [
        *text.splitlines()[:5],
        "  one: {verdict: placed, placements: {a: [0]}}",
    ]
    assert after.splitlines()[6] == '  "no":'
    assert after.splitlines()[-5:] == text.splitlines()[-5:]
    assert accepted(after) == after
    assert [*yaml.safe_load(after)["expect"]] == ["one", "no"]


def test_accept_adds_expect_where_there_is_none() -> None:
    text = """\
about: A story.
nodes: [{name: a, product: atlas-300t}]
jobs: [{name: j, chips: 1}]
"""

    after = accepted(text + "---\n" + text)

    block = "expect:\n  j: {verdict: placed, placements: {a: [0]}}\n"
    assert after == text + block + "---\n" + text + block


def test_expect_may_be_told_in_short() -> None:
    text = """\
about: A story.
nodes:
  - {name: "p{i}", count: 3, product: atlas-9000-a3, superpod: 5}
  - {name: q, product: atlas-9000-a3, superpod: 6}
jobs:
  - {name: two, replicas: 2, chips: 8}
  - {name: soft, replicas: 2, chips: 8, super-pod-affinity: soft}
expect:
  two: {verdict: placed, nodes: [], annotations: {hccl/rankIndex: "", isHealthy: ""}}
  soft: {verdict: placed, superpods: [], logical: []}
"""

    after = accepted(text)

    assert after.splitlines()[-5:] == [
        "  two:",
        "    verdict: placed",
        "    nodes: [p0, p1]",
        '    annotations: {hccl/rankIndex: ["0", "1"], isHealthy: null}',
        "  soft: {verdict: placed, superpods: [5, 6], logical: [0, 1]}",
    ]
    assert accepted(after) == after


@pytest.mark.parametrize(
    ("never", "found", "forbidden"),
    [
        pytest.param(
            {"job": "j", "node": "a"},
            {"verdict": "placed", "placements": {"a": [0]}},
            True,
            id="the job is on the node",
        ),
        pytest.param(
            {"job": "j", "node": "a", "chips": [1, 2]},
            {"verdict": "placed", "placements": {"a": [0]}},
            False,
            id="the job is on the node, on other chips",
        ),
        pytest.param(
            {"job": "j", "node": "a", "chips": [1, 2]},
            {"verdict": "placed", "placements": [{"b": [1]}, {"a": [2, 3]}]},
            True,
            id="one pod of several is on one of the chips",
        ),
        pytest.param(
            {"job": "j", "node": "a"},
            {"verdict": "placed", "nodes": ["b", "a"]},
            True,
            id="one pod of several is on the node",
        ),
        pytest.param(
            {"job": "j", "node": "a"},
            {"verdict": "waiting", "missing": 1},
            False,
            id="the job waits",
        ),
        pytest.param(
            {"job": "j", "verdict": "waiting"},
            {"verdict": "waiting", "missing": 1},
            True,
            id="the job must not wait",
        ),
    ],
)
def test_never_is_read_as_documented(
    never: dict[str, Any],
    found: dict[str, Any],
    forbidden: bool,  # noqa: FBT001
) -> None:
    assert happened(never, found) is forbidden
