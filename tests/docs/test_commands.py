"""docs/commands.md describes every command and every option."""

import re

import pytest
import typer.main

from ringleaf.cli.main import app
from tests.docs.pages import section, text_of

PAGE = "docs/commands.md"


def options() -> dict[str, set[str]]:
    """Command as it is typed -> its long options."""
    group = typer.main.get_command(app)
    commands = {"ringleaf": group}
    commands |= {f"ringleaf {n}": c for n, c in getattr(group, "commands", {}).items()}
    return {
        name: {
            option
            for p in command.params
            for option in (*p.opts, *p.secondary_opts)
            if option[:2] == "--"
        }
        for name, command in commands.items()
    }


def test_exactly_the_commands_are_described() -> None:
    headings = re.findall(r"^## (.+)$", text_of(PAGE), re.MULTILINE)

    assert headings == list(options())
    assert len(headings) > 8


@pytest.mark.parametrize("command", options())
def test_exactly_the_options_of_the_command_are_described(command: str) -> None:
    rows = re.findall(r"^\| (`--[^|]+)\|", section(PAGE, command), re.MULTILINE)
    described = re.findall(r"`(--[a-z-]+)", " ".join(rows))

    assert set(described) - {"--help"} == options()[command]


@pytest.mark.parametrize("command", options())
def test_the_synopsis_names_every_option(command: str) -> None:
    text = section(PAGE, command)
    synopsis = text[text.index("```text\n") : text.index("\n```\n")]

    assert set(re.findall(r"--[a-z-]+", synopsis)) - {"--help"} == options()[command]
