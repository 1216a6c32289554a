"""Every decision that is listed as done has a test named after it."""

import re

import pytest

from tests.docs.pages import ROOT, table_rows, text_of

NOT_YET = "not yet"
STATES = {"done", "in part", NOT_YET}


def decisions() -> dict[str, str]:
    """Decision -> its state, as docs/decisions.md lists them."""
    rows = table_rows(text_of("docs/decisions.md"))
    return {
        row[0]: row[3] for row in rows if len(row) == 4 and re.match(r"D\d+$", row[0])
    }


def test_the_decisions_so_far_are_listed() -> None:
    listed = {int(number[1:]) for number in decisions()}

    assert listed == {*range(1, 44)}


def test_every_decision_has_a_known_state() -> None:
    assert set(decisions().values()) <= STATES


def test_every_listed_decision_is_done_at_least_in_part() -> None:
    assert [n for n, state in decisions().items() if state == NOT_YET] == []


@pytest.mark.parametrize("number", [n for n, s in decisions().items() if s != NOT_YET])
def test_a_test_is_named_after_the_decision(number: str) -> None:
    name = re.compile(rf"def test_{number.lower()}_\w+\(")
    files = sorted((ROOT / "tests").rglob("test_*.py"))

    found = [file for file in files if name.search(file.read_text(encoding="utf-8"))]

    assert found, f"no test function is named test_{number.lower()}_…"
