"""docs/seeds.md names things and tests that exist, and the check sees it if not."""

import re
from types import FunctionType
from typing import Any

import pytest

from tests.docs.pages import ROOT
from tests.docs.seeds import PAGE, QUOTED, function_at, problems, statements
from tests.scenarios.calls import functions_called
from tests.scenarios.case import cases

SCENARIOS = {f"case {case}": case for case in cases()}
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
TEST = "`tests/policies/test_seed_tables.py::test_policy_1_hccs_affinity`"
LINE = f"| 000-1 | a statement | `policies.rules.RING_OF_4` | {TEST} | holds |"


def test_every_line_names_what_is_there() -> None:
    assert problems(TEXT) == []


def test_all_five_documents_are_there_line_by_line() -> None:
    numbers = [row[0] for row in statements(TEXT)]

    assert len(numbers) > 200
    for seed in range(5):
        own = [int(n.split("-")[1]) for n in numbers if n.startswith(f"00{seed}-")]
        assert own == [*range(1, len(own) + 1)]


def told_by_cases() -> list[Any]:
    """The lines that name functions, and golden scenarios as their only tests."""
    found = []
    for number, _said, where, test, _state in statements(TEXT):
        names = QUOTED.findall(test)
        functions = [*filter(None, map(function_at, QUOTED.findall(where)))]
        if functions and all(name.startswith("case ") for name in names):
            found.append(pytest.param(functions, names, id=number))
    assert len(found) > 50
    return found


@pytest.mark.parametrize(("functions", "names"), told_by_cases())
def test_a_golden_scenario_calls_the_function_of_its_line(
    functions: list[FunctionType], names: list[str]
) -> None:
    """A scenario may come out as it is written for another reason than the line's."""
    called = {code for name in names for code in functions_called(SCENARIOS[name])}

    assert called & {function.__code__ for function in functions}


def test_a_good_line_passes() -> None:
    assert problems(LINE) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("RING_OF_4", "RING_OF_5", "no symbol 'policies.rules.RING_OF_5'"),
        ("`policies.rules.RING_OF_4`", "the rules", "no symbol"),
        ("policies.rules", "policies.roles", "no symbol 'policies.roles.RING_OF_4'"),
        ("_hccs_affinity", "_x", "no test"),
        ("tests/policies", "tests/polices", "no test"),
        (TEST, "", "no test"),
        (TEST, "`case seed-000-switches-99`", "no test 'case seed-000-switches-99'"),
        (TEST, "`test_d999_*`", "no test 'test_d999_*'"),
        ("| holds |", "| maybe |", "state is 'maybe'"),
        ("| holds |", "| D999 |", "no decision D999"),
        ("| a statement |", "| |", "no statement"),
    ],
)
def test_a_wrong_name_is_refused(old: str, new: str, told: str) -> None:
    found = problems(LINE.replace(old, new))

    assert any(line.startswith(f"000-1: {told}") for line in found), found


def test_a_number_stands_once() -> None:
    assert problems(f"{LINE}\n{LINE}") == ["000-1: the number stands twice"]


def test_no_sentence_of_a_seed_is_copied() -> None:
    """Twelve words in a row are nobody's by chance."""
    folder = ROOT.parent / "shared" / "seeds"
    if not folder.is_dir():
        pytest.skip("the documents are not here")
    seeds = " ".join(
        words(path.read_text(errors="replace")) for path in folder.iterdir()
    )
    for number, said, *_rest in statements(TEXT):
        own = words(said).split()
        runs = [" ".join(own[i : i + 12]) for i in range(len(own) - 11)]
        assert not [run for run in runs if run in seeds], number


def words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
