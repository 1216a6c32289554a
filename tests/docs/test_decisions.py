"""Every decision that is listed has a test named after it."""

import re

import pytest

from tests.docs.pages import ROOT, table_rows, text_of


def decisions() -> list[str]:
    """The decisions in the order of docs/decisions.md."""
    rows = table_rows(text_of("docs/decisions.md"))
    anchored = re.compile(r'<a id="d(\d+)"></a>(D\1)')
    return [found[2] for row in rows if (found := anchored.fullmatch(row[0]))]


def test_the_decisions_so_far_are_listed() -> None:
    assert decisions() == [f"D{number}" for number in range(1, 44)]


@pytest.mark.parametrize("number", decisions())
def test_a_test_is_named_after_the_decision(number: str) -> None:
    name = re.compile(rf"def test_{number.lower()}_\w+\(")
    files = sorted((ROOT / "tests").rglob("test_*.py"))

    found = [file for file in files if name.search(file.read_text(encoding="utf-8"))]

    assert found, f"no test function is named test_{number.lower()}_…"
