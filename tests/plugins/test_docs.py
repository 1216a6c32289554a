"""docs/plugins.md tells of every hook and of every plugin."""

import re
from typing import Final

import pytest

from ringleaf.config.vocabulary import AFFINITY_ALIAS, KNOWN_PLUGINS
from ringleaf.framework.plugin import EVENTS, HOOKS, Plugin
from ringleaf.plugins import PLUGINS
from tests.docs.pages import ROOT, section, table_rows, text_of

PAGE: Final = "docs/plugins.md"
ROWS: Final = {
    row[1].strip("`").partition("(")[0]: row
    for row in table_rows(section(PAGE, "Every hook"))
}


@pytest.mark.parametrize("hook", [*HOOKS.values(), *EVENTS])
def test_every_hook_is_documented(hook: str) -> None:
    vote = next((vote for vote, method in HOOKS.items() if method == hook), "")

    assert ROWS[hook][0] == vote
    assert ROWS[hook][2].endswith(".")


@pytest.mark.parametrize("name", PLUGINS)
def test_every_plugin_of_ringleafs_own_has_a_section(name: str) -> None:
    headings = re.findall(r"^### (.+)$", text_of(PAGE), re.MULTILINE)

    assert name in ", ".join(headings).split(", ")


def test_every_plugin_that_a_configuration_may_name_is_registered() -> None:
    """Each with a class of its own; the page says where."""
    page = section(PAGE, "How plugins are registered")

    assert {*PLUGINS} == {*KNOWN_PLUGINS}
    assert len({*PLUGINS.values()}) == len(PLUGINS)
    assert all(issubclass(each, Plugin) for each in PLUGINS.values())
    assert "`PLUGINS` in `src/ringleaf/plugins/__init__.py`" in page
    assert AFFINITY_ALIAS.fullmatch("topology910")
    assert "`affinity`" in page
    assert "`topology910`" in page


@pytest.mark.parametrize(
    "function",
    ["validJobFn", "AddPredicateFn", "AddBatchNodeOrderFn", "AddEventHandler"],
)
def test_the_hooks_of_the_guide_are_named(function: str) -> None:
    rows = table_rows(section(PAGE, "The guide's four hooks"))
    hooks = next(row[1] for row in rows if row[0] == function)

    assert set(re.findall(r"`(\w+)`", hooks)) <= {*HOOKS.values(), *EVENTS}


def test_the_class_shown_is_that_of_the_example() -> None:
    """Line by line, but for types and docstrings."""
    code = re.search(r"```python\n(.*?)```", text_of(PAGE), re.DOTALL)
    assert code is not None
    shown = [line.strip() for line in code[1].splitlines() if line.strip()]
    example = ROOT / "examples" / "plugin" / "ringleaf_night" / "__init__.py"
    typed = r": ClassVar\[.*\](?= =)|: (Job|Role)\b| -> Flags \| None"
    text = re.sub(typed, "", example.read_text())
    there = {line.strip() for line in text.splitlines()}

    assert [line for line in shown if line not in there] == []
