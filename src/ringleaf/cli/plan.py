"""``ringleaf plan`` and ``ringleaf demo``."""

from collections import Counter
from collections.abc import Sequence
from importlib.resources import files

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ringleaf.cli.draw import chip_words, draw, marks, unit_of
from ringleaf.cli.output import counted, print_json, shortened
from ringleaf.cli.scenario import read_scenarios
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Decision, Invalid, Placed, Waiting
from ringleaf.model.job import Network
from ringleaf.simulator.answer import decide_all, plain
from ringleaf.simulator.scenario import Scenario, load

MAX_PLACES = 4
"""Places told in one cell of the table."""

VERDICT_STYLES = {"placed": "green", "waiting": "yellow", "invalid": "red"}


def plan_file(file: str, *, as_json: bool) -> int:
    """Decide and print every document of *file*; the exit status."""
    return _show(read_scenarios(file), as_json=as_json)


def show_demo(*, as_json: bool) -> int:
    """Decide and print the scenario that ships with the package."""
    data = files("ringleaf.simulator").joinpath("demo.yaml").read_bytes()
    _show(load(data), as_json=as_json)
    return 0


def _show(scenarios: Sequence[Scenario], *, as_json: bool) -> int:
    answers = [decide_all(s, counted(s.jobs, "deciding")) for s in scenarios]
    if as_json:
        print_json(*(plain(cluster, decisions) for cluster, decisions in answers))
    else:
        console = Console(highlight=False)
        for number, (scenario, answer) in enumerate(
            zip(scenarios, answers, strict=True)
        ):
            if number:
                console.print()
            _print(console, scenario, *answer)
    every = (decision for _cluster, decisions in answers for decision in decisions)
    return 0 if all(isinstance(decision, Placed) for decision in every) else 1


def _print(
    console: Console, scenario: Scenario, cluster: Cluster, decisions: list[Decision]
) -> None:
    if scenario.about:
        console.print(Text(_plain(scenario.about)), style="italic")
        console.print()
    if decisions:
        console.print(_table(cluster, decisions))
        for decision in decisions:
            _reasons(console, decision)
        console.print()
    draw(console, cluster, decisions)


def _plain(text: str) -> str:
    """*text* as one paragraph; nothing in it speaks to the terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def verdict(decision: Decision) -> str:
    """The verdict as one word."""
    return type(decision).__name__.lower()


def _table(cluster: Cluster, decisions: list[Decision]) -> Table:
    given = marks(decisions)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("", "job", "product", "wanted", "verdict", "where"):
        table.add_column(column, overflow="fold")
    for decision in decisions:
        letter, style = given.get(decision.job.name, ("", ""))
        word = verdict(decision)
        table.add_row(
            Text(letter, style=style),
            Text(decision.job.name),
            Text(decision.job.product.key),
            decision.job.wanted,
            Text(word, style=VERDICT_STYLES[word]),
            Text(_where(cluster, decision)),
        )
    return table


def _where(cluster: Cluster, decision: Decision) -> str:
    if isinstance(decision, Invalid):
        return "never"
    if isinstance(decision, Waiting):
        return f"{decision.missing} of {decision.job.replicas} pods short"
    network = decision.job.network is not Network.NONE
    if network and len(decision.placements) > MAX_PLACES:
        nodes = (cluster.index[p.node] for p in decision.placements)
        blocks = decision.job.network is Network.SUPERPODS
        units = Counter(unit_of(cluster, node, superpod=blocks) for node in nodes)
        told = [f"{count} in {unit}" for unit, count in units.items()]
        return shortened(told, MAX_PLACES, "; ")
    places = [f"{p.node} [{chip_words(p.chips)}]" for p in decision.placements]
    return shortened(places, MAX_PLACES, "; ")


def _reasons(console: Console, decision: Decision) -> None:
    if isinstance(decision, Placed):
        lines = []
    else:
        lines = [Text(decision.message), Text(f"hint: {decision.hint}", style="bold")]
    lines += [
        Text(f"warning: job {decision.job.name!r}: {w}") for w in decision.warnings
    ]
    if lines:
        console.print()
    for line in lines:
        console.print(line)
