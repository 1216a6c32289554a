"""``ringleaf plan``."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ringleaf.cli.draw import chip_words, draw, unit_of
from ringleaf.cli.failure import BadUse
from ringleaf.cli.file import one_line
from ringleaf.cli.marks import marks
from ringleaf.cli.naming import PeopleConsole
from ringleaf.cli.netdraw import Focus, draw_network, superpods_by_node
from ringleaf.cli.output import counted, print_json, shortened
from ringleaf.cli.scenario import read_scenarios
from ringleaf.explain.survey import NetworkView, network_view
from ringleaf.kube.names import bare_name
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Decision, Invalid, Placed, Waiting
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Network
from ringleaf.model.uplinks import NOWHERE
from ringleaf.simulator.answer import plain
from ringleaf.simulator.scenario import Scenario

MAX_PLACES: Final = 4
"""Places told in one cell of the table."""
MAX_UNITS: Final = 8
"""Leaves or SuperPoDs that are drawn for a waiting job; explain draws more."""

PENDING: Final = "pending"
VERDICT_STYLES: Final = {
    "placed": "green",
    PENDING: "yellow",
    "invalid": "red",
    "ended": "dim",
}


class PlanResult(Protocol):
    """What came of a scenario."""

    @property
    def satisfied(self) -> bool:
        """Whether every job was placed."""

    def plain(self) -> dict[str, Any]:
        """The result as plain values."""

    def print(self, console: Console) -> None:
        """Print the result for people."""


def plan_file(file: str, *, as_json: bool, record: str | None = None) -> int:
    """Decide and print every document of *file*; the exit status."""
    scenarios = read_scenarios(file)
    if record is None:
        return _show(scenarios, as_json=as_json)
    if len(scenarios) != 1 or not scenarios[0].is_run:
        raise BadUse(
            "--record needs one scenario in virtual time; "
            "hint: one with queues, configuration or then"
        )
    with one_line(record), Path(record).open("wb") as log:
        return _show(scenarios, as_json=as_json, log=log)


def _show(
    scenarios: Sequence[Scenario], *, as_json: bool, log: BinaryIO | None = None
) -> int:
    answers = [_shown(scenario, log) for scenario in scenarios]
    if as_json:
        print_json(*(answer.plain() for answer in answers))
    else:
        console = PeopleConsole()
        for number, answer in enumerate(answers):
            if number:
                console.print()
            answer.print(console)
    return 0 if all(answer.satisfied for answer in answers) else 1


def _shown(scenario: Scenario, log: BinaryIO | None) -> PlanResult:
    if not scenario.is_run:
        return Decided(scenario)
    from ringleaf.cli.timeline import TimedScenario  # noqa: PLC0415 - the engine comes with it

    return TimedScenario(scenario, log)


class Decided:
    """A scenario whose jobs are decided in the order of the file."""

    def __init__(self, scenario: Scenario) -> None:
        self._about = scenario.about
        session = scenario.open()
        self._cluster = session.cluster
        self._decisions: list[Decision] = []
        self._views: dict[str, NetworkView] = {}
        for job in counted(scenario.jobs, "deciding"):
            decision = session.decide(job)
            self._decisions.append(decision)
            if isinstance(decision, Waiting) and is_short(session.cluster, job):
                self._views[job.name] = network_view(session, job)

    @property
    def satisfied(self) -> bool:
        """Whether every job was placed."""
        return all(isinstance(decision, Placed) for decision in self._decisions)

    def plain(self) -> dict[str, Any]:
        """The decisions as plain values."""
        return plain(self._cluster, self._decisions)

    def print(self, console: Console) -> None:
        """The table, the reasons and the drawing."""
        print_about(console, self._about)
        if self._decisions:
            console.print(_table(self._cluster, self._decisions))
            for decision in self._decisions:
                print_reasons(console, decision)
                if decision.job.name in self._views:
                    view = self._views[decision.job.name]
                    draw_network(
                        console, view, Focus(), superpods_by_node(self._cluster)
                    )
            console.print()
        draw(console, self._cluster, self._decisions)


def is_short(cluster: Cluster, job: Job) -> bool:
    """Whether the network of *job* is drawn in a few lines."""
    if job.network is Network.SWITCHES:
        return 0 < len(cluster.leaves) <= MAX_UNITS
    units = {*cluster.superpod.tolist()} - {NOWHERE}
    return job.network is Network.SUPERPODS and 0 < len(units) <= MAX_UNITS


def print_about(console: Console, about: str | None) -> None:
    """What the scenario is about, as one paragraph."""
    if about:
        console.print(Text(_plain(about)), style="italic")
        console.print()


def _plain(text: str) -> str:
    """*text* as one paragraph; nothing in it speaks to the terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def verdict(decision: object) -> str:
    """The verdict as one word, for people: a job that waits is pending."""
    if isinstance(decision, Waiting):
        return PENDING
    return type(decision).__name__.lower()


def _table(cluster: Cluster, decisions: list[Decision]) -> Table:
    given = marks(decisions)
    table = new_table("", "job", "product", "wanted", "verdict", "where")
    for decision in decisions:
        letter, style = given.get(decision.job.name, ("", ""))
        word = verdict(decision)
        table.add_row(
            Text(letter, style=style),
            Text(bare_name(decision.job.name)),
            Text(decision.job.product.key),
            decision.job.wanted,
            Text(word, style=VERDICT_STYLES[word]),
            Text(where(cluster, decision)),
        )
    return table


def new_table(*columns: str) -> Table:
    """A table without lines."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def where(cluster: Cluster, decision: Decision) -> str:
    """Where a job is, or how much of it is nowhere."""
    if isinstance(decision, Invalid):
        return "never"
    if isinstance(decision, Waiting):
        if decision.impossible:
            return "not on this cluster"
        if decision.because and decision.fitting >= decision.job.min_chip_pods:
            return ""
        return f"no node for {decision.missing} of {decision.job.n_pods} pods"
    network = decision.job.network is not Network.NONE
    if network and len(decision.placements) > MAX_PLACES:
        nodes = (cluster.index[p.node] for p in decision.placements)
        blocks = decision.job.network is Network.SUPERPODS
        units = Counter(unit_of(cluster, node, superpod=blocks) for node in nodes)
        told = [f"{count} in {unit}" for unit, count in units.items()]
        return shortened(told, MAX_PLACES, "; ")
    places = [
        f"{p.node} [{chip_words(p.chips)}]" if p.chips else p.node
        for p in decision.placements
    ]
    return shortened(places, MAX_PLACES, "; ")


def print_reasons(console: Console, decision: Decision) -> None:
    """Why a job was not placed, and what of it has no effect."""
    lines = []
    if not isinstance(decision, Placed):
        lines = [Text(decision.message)]
        if decision.hint:
            lines.append(Text(f"hint: {decision.hint}", style="bold"))
    lines += [
        Text(f"warning: job {decision.job.name!r}: {w}") for w in decision.warnings
    ]
    if lines:
        console.print()
    for line in lines:
        console.print(line)
