"""Reading a scenario for a command."""

from ringleaf.cli.failure import warn
from ringleaf.cli.file import bytes_of, name_of, one_line
from ringleaf.cli.output import progress
from ringleaf.cli.plugins import installed_plugins
from ringleaf.simulator.scenario import Scenario, load
from ringleaf.simulator.source import BadInput


def read_scenarios(file: str) -> list[Scenario]:
    """The scenarios of *file*, or one line that says what is wrong with it."""
    shown = name_of(file)
    with one_line(shown, BadInput), progress(what=f"reading {shown}"):
        scenarios = load(bytes_of(file, "a scenario"), installed_plugins())
    for scenario in scenarios:
        for line in scenario.warnings:
            warn(f"{shown}: {line}")
    return scenarios
