"""The page on Volcano's rules: every line names tests that exist."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "volcano.md"
KNOWN = {
    name
    for path in TESTS.rglob("test_*.py")
    for name in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))
}


class Line(NamedTuple):
    """A row of a table: what Volcano does, and the tests named for it."""

    rule: str
    tests: tuple[str, ...]


def lines() -> Iterator[Line]:
    for row in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if row.startswith("|") and not cells[0].startswith(("---", "Volcano")):
            yield Line(cells[0], tuple(re.findall(r"`(test_\w+)`", cells[-1])))


@pytest.mark.parametrize("line", list(lines()), ids=lambda line: line.rule)
def test_every_line_names_tests_that_exist(line: Line) -> None:
    assert line.tests
    assert KNOWN.issuperset(line.tests), {*line.tests} - KNOWN
