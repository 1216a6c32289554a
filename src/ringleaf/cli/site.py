"""The cluster that a command simulates: a preset, or what a file describes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from ringleaf.cli.failure import BadUse, program, warn
from ringleaf.cli.file import STDIN, bytes_of, like_file, name_of, one_line
from ringleaf.cli.options import TopologyColumns
from ringleaf.cli.output import progress
from ringleaf.cli.topology import DEFAULT_PRODUCT
from ringleaf.cli.topology_file import BAD, read_bytes
from ringleaf.model.spelling import did_you_mean
from ringleaf.simulator.scenario import Scenario, load
from ringleaf.simulator.sites import SITES, site, site_of_scenario, site_of_topology
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import Site

NO_COLUMNS: Final = TopologyColumns()
SWITCHES: Final = ("PSW", "ASW")
"""Columns of a table of nodes that together name a leaf: an ASW below a PSW."""

_SCENARIO: Final = re.compile(rb"""(?:^|[{,])\s*["']?nodes["']?\s*:""", re.MULTILINE)


class SimulatedCluster(Struct, frozen=True):
    """A cluster, and the scenario it was read from if there is one."""

    site: Site
    scenario: Scenario | None = None


def simulated_cluster(
    given: str, product: str | None = None, columns: TopologyColumns = NO_COLUMNS
) -> SimulatedCluster:
    """The cluster that *given* names: a preset with its options, or a file.

    A file is a topology, in any form that ``ringleaf topology`` reads, or a scenario,
    as ``ringleaf dump`` writes it. A topology does not tell the *product* of its nodes.
    """
    if given.partition(":")[0] in SITES:
        if product is not None:
            raise BadUse(
                f"--product goes with a topology file, {given!r} has a product; "
                f"hint: {given.partition(':')[0]}:product={product}"
            )
        with one_line("--cluster", BadInput):
            return SimulatedCluster(site(given))
    if given != STDIN and not _exists(given):
        raise BadUse(_neither(given))
    shown = name_of(given)
    with one_line(shown, *BAD), progress(what=f"reading {shown}"):
        data = bytes_of(given, "a cluster")
        if _SCENARIO.search(data):
            return _from_scenario(data, shown)
        return _from_topology(data, given, product or DEFAULT_PRODUCT, columns)


def _exists(given: str) -> bool:
    try:
        return Path(given).exists()
    except (OSError, ValueError):  # too long, or with a NUL byte
        return False


def _neither(given: str) -> str:
    meant = did_you_mean(given.partition(":")[0], SITES)
    hint = f"; hint: {meant}" if meant else like_file(given)
    return f"--cluster is {given!r}, want a file or one of {', '.join(SITES)}{hint}"


def _from_scenario(data: bytes, shown: str) -> SimulatedCluster:
    scenarios = load(data)
    if len(scenarios) > 1:
        raise BadInput(f"{len(scenarios)} scenarios, want one")
    return SimulatedCluster(
        site_of_scenario(scenarios[0], Path(shown).name), scenarios[0]
    )


def warn_of_unused(file: str, scenario: Scenario) -> None:
    """Name the keys of a scenario that a simulation has no use for."""
    given = {
        "running": scenario.running,
        "jobs": scenario.jobs,
        "then": scenario.then,
        "until": scenario.until > max((each.at for each in scenario.then), default=0),
        "grace-seconds": scenario.grace_s,
    }
    unused = [key for key, value in given.items() if value]
    if unused:
        *most, last = unused
        listed = f"{', '.join(most)} and {last} are" if most else f"{last} is"
        warn(
            f"{name_of(file)}: {listed} not used, the jobs are those of the workload; "
            f"hint: {program()} plan {file} runs the jobs of the file"
        )


def _from_topology(
    data: bytes, file: str, product: str, columns: TopologyColumns
) -> SimulatedCluster:
    """The cluster of a topology; a table with PSW and ASW has leaves by both."""
    header = {*_words(data)}
    if not columns.given and header.issuperset(SWITCHES):
        columns = TopologyColumns(leaf=",".join(SWITCHES))
    hint = (
        f"{program()} topology convert {file} --leaf {{}} --to scenario > cluster.yaml"
    )
    topology, warnings = read_bytes(data, file, columns, leaf_hint=hint)
    for line in warnings:
        warn(f"{name_of(file)}: {line}")
    return SimulatedCluster(
        site_of_topology(topology, Path(name_of(file)).name, product)
    )


def _words(data: bytes) -> Iterator[str]:
    """The cells of the first line."""
    first = data.lstrip().partition(b"\n")[0].decode(errors="replace")
    return (cell.strip() for cell in first.split(","))
