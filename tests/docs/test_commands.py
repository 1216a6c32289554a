"""docs/commands.md describes every command; its tables come from the commands."""

import re

import pytest

from ringleaf.cli.reference import options_under, reference, shared_headings
from ringleaf.cli.registry import COMMANDS, OLD_NAMES
from tests.docs.pages import section, text_of

PAGE = "docs/commands.md"
WORDS = 7564
"""Of the page when every command had a table of its own for all its options."""


def test_exactly_the_commands_are_described() -> None:
    headings = re.findall(r"^##+ ringleaf (.+)$", text_of(PAGE), re.MULTILINE)

    assert [name for name in headings if name != "topology"] == [*COMMANDS]
    assert len(headings) > 20


@pytest.mark.parametrize("name", COMMANDS)
def test_the_section_is_what_the_command_says_of_itself(name: str) -> None:
    """``make check`` has cog compare them as well."""
    assert "\n".join(reference(name)) in section(PAGE, f"ringleaf {name}")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_in_its_table_or_a_shared_one(name: str) -> None:
    command = COMMANDS[name]
    shared = shared_headings()
    text = section(PAGE, f"ringleaf {name}")
    described = {*re.findall(r"^\| `[^`]*?(--[a-z-]+)", text, re.MULTILINE)}
    for heading in {each.heading for each in command.options} & {*shared}:
        table = section(PAGE, heading)
        assert "\n".join(options_under(heading)) in table
        described |= {*re.findall(r"(--[a-z-]+)", table)}

    assert {option.long for option in command.options} <= described


@pytest.mark.parametrize("old", OLD_NAMES)
def test_every_old_name_is_told_where_the_new_one_is(old: str) -> None:
    new = OLD_NAMES[old].split(maxsplit=1)[0]

    assert f"`ringleaf {old}`" in section(PAGE, f"ringleaf {new}")


def test_the_page_is_shorter_than_it_was() -> None:
    assert len(text_of(PAGE).split()) < WORDS
