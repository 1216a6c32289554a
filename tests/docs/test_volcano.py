"""The page on Volcano's rules: every line has tests that hold it."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import yaml

from tests.docs.pages import ROOT, text_of

KNOWN = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))
}


class Rule(NamedTuple):
    """A line of the page, by its first words, and the tests named for it."""

    words: str
    tests: tuple[str, ...]


def listed() -> list[Rule]:
    """What ``volcano.yaml`` has."""
    file = ROOT / "tests" / "docs" / "volcano.yaml"
    entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    return [Rule(each["rule"], tuple(each["tests"])) for each in entries]


def shown() -> Iterator[str]:
    """The first words of every rule on the page."""
    for row in text_of("docs/volcano.md").splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if row.startswith("|") and not cells[0].startswith(("---", "Volcano")):
            yield next(filter(None, cells))
        elif row.startswith("- "):
            yield row.removeprefix("- ")


def test_every_line_of_the_page_has_its_tests() -> None:
    assert [rule.words for rule in listed()] == list(shown())


@pytest.mark.parametrize("rule", listed(), ids=lambda rule: rule.words)
def test_the_tests_of_a_line_exist(rule: Rule) -> None:
    assert rule.tests
    assert KNOWN.issuperset(rule.tests), {*rule.tests} - KNOWN
