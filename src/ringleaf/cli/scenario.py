"""Reading a scenario for a command."""

from ringleaf.cli.failure import BadUse, program, warn
from ringleaf.cli.file import bytes_of, name_of, one_line
from ringleaf.cli.output import progress
from ringleaf.cli.plugins import installed_plugins
from ringleaf.simulator.scenario import Scenario, load
from ringleaf.simulator.source import BadInput, documents


def read_scenarios(file: str) -> list[Scenario]:
    """The scenarios of *file*, or one line that says what is wrong with it."""
    shown = name_of(file)
    starter = f"{program()} init scenario writes one"
    with one_line(shown, BadInput, starter=starter), progress(what=f"reading {shown}"):
        data = bytes_of(file, "a scenario")
        try:
            scenarios = load(data, installed_plugins())
        except BadInput:
            _refuse_others(file, data)
            raise
    for scenario in scenarios:
        for line in scenario.warnings:
            warn(f"{shown}: {line}")
    return scenarios


def _is_table(file: str, data: bytes) -> bool:
    """Whether *data* looks like CSV."""
    first = data.lstrip().partition(b"\n")[0]
    return file.lower().endswith(".csv") or b"," in first


def _refuse_others(file: str, data: bytes) -> None:
    """Say so if *data* is a topology, or meant for the live cluster."""
    first = documents(data)[0]
    if isinstance(first, str) and _is_table(file, data):
        raise BadUse(
            f"{name_of(file)}: it is a table, want a scenario; hint: a topology: "
            f"{program()} topology draw {file}, or topology convert {file} "
            "--to scenario"
        )
    if isinstance(first, dict) and {"apiVersion", "kind"} <= first.keys():
        raise BadUse(
            f"{name_of(file)}: it is a manifest, want a scenario; "
            f"hint: {program()} plan -f {file}"
        )
