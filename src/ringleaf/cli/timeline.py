"""A scenario that is run through time, for people: what became of jobs, and when."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ringleaf.cli.draw import chip_words, draw
from ringleaf.cli.marks import marks
from ringleaf.cli.netdraw import Focus, draw_network, superpods_by_node
from ringleaf.cli.output import progress, shortened
from ringleaf.cli.plan import (
    MAX_PLACES,
    VERDICT_STYLES,
    is_short,
    new_table,
    print_about,
    print_reasons,
    verdict,
    where,
)
from ringleaf.kube.names import NAMED, bare_name
from ringleaf.model.decision import Invalid, Placed, Waiting
from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.policies.validation import is_legal
from ringleaf.simulator.log import Recorder
from ringleaf.simulator.outcome import (
    Ended,
    Fate,
    Wait,
    fates,
    network_of,
    reservation_plain,
    timed_events,
    waits_of,
)
from ringleaf.simulator.outcome import plain as plain_of
from ringleaf.simulator.run import ScenarioRun, run
from ringleaf.simulator.scenario import Scenario
from ringleaf.simulator.words import event_words, instruction_words, of_job

MAX_LINES: Final = 60
"""Lines of the timeline; the JSON has all of them."""

_STYLES: Final = {
    "bind": "green",
    "evict": "red",
    "delete": "red",
    "repaired": "green",
    "report": "yellow",
    "point": "dim",
    "remember": "dim",
    "ask-to-exit": "dim",
}


def run_scenario(scenario: Scenario, log: BinaryIO | None = None) -> ScenarioRun:
    """Run *scenario*, and record events and instructions in *log*."""
    with progress(what="running"):
        if log is None:
            return run(scenario)
        return run(scenario, lambda engine: Recorder(engine, log))


class TimedScenario:
    """A scenario that was run."""

    def __init__(self, scenario: Scenario, log: BinaryIO | None = None) -> None:
        self._run = run_scenario(scenario, log)
        self._fates = fates(self._run)

    @property
    def satisfied(self) -> bool:
        """Whether every job was placed, or is over."""
        return all(isinstance(fate, Placed | Ended) for fate in self._fates)

    def plain(self) -> dict[str, Any]:
        """The run as plain values."""
        return plain_of(self._run)

    def print(self, console: Console) -> None:
        """How jobs stand at the end, what happened until then, and the nodes."""
        run = self._run
        print_about(console, run.scenario.about)
        if self._fates:
            console.print(_table(run, self._fates))
            for fate in self._fates:
                if isinstance(fate, Waiting | Invalid):
                    print_reasons(console, fate)
                if isinstance(fate, Waiting):
                    _print_network(console, run, fate)
            console.print()
        _print_timeline(console, run)
        placed = [fate for fate in self._fates if isinstance(fate, Placed)]
        draw(console, run.engine.view.cluster, placed, dict(_reserved(run)))


def _print_network(console: Console, run: ScenarioRun, fate: Waiting) -> None:
    """The leaves or SuperPoDs that a waiting job finds, where there are few."""
    cluster = run.engine.view.cluster
    if is_short(cluster, fate.job) and is_legal(fate.job, run.engine.view.settings):
        view = network_of(run, fate.job)
        draw_network(console, view, Focus(), superpods_by_node(cluster))


def _table(run: ScenarioRun, found: Iterable[Fate]) -> Table:
    """How every job stands at the end."""
    facts = list(found)
    given = marks(fate for fate in facts if isinstance(fate, Placed))
    queues = {fate.job.queue for fate in facts} != {DEFAULT_QUEUE}
    products = len({fate.job.product for fate in facts}) > 1
    optional = ["product"] * products + ["queue"] * queues
    table = new_table("", "job", *optional, "wanted", "verdict", "waited", "where")
    waits = waits_of(run)
    for fate in facts:
        letter, style = given.get(fate.job.name, ("", ""))
        word = verdict(fate)
        row = [Text(letter, style=style), Text(bare_name(fate.job.name))]
        row += [Text(fate.job.product.key)] * products
        row += [Text(fate.job.queue)] * queues
        row += [
            Text(fate.job.wanted),
            Text(word, style=VERDICT_STYLES[word]),
            Text(_waited(waits.get(fate.job.name))),
            Text(NAMED.sub(_bare, _where(run, fate))),
        ]
        table.add_row(*row)
    return table


def _bare(found: re.Match[str]) -> str:
    return bare_name(found[0])


def _waited(wait: Wait | None) -> str:
    """How long a job waited, or waits now."""
    if wait is None:
        return ""
    return f"{wait.seconds:g} s{'' if wait.is_over else ' so far'}"


def _where(run: ScenarioRun, fate: Fate) -> str:
    """Where a job is, what it lacks, and what is reserved for it."""
    if isinstance(fate, Ended):
        return ""
    engine, name = run.engine, fate.job.name
    facts = [where(engine.view.cluster, fate)]
    if name in engine.reservations:
        facts = [
            reservation_words(reservation_plain(engine.view, engine.reservations[name]))
        ]
    job_state = engine.view.job_states.get(name)
    if isinstance(fate, Placed) and job_state is not None:
        if job_state.missing:
            facts.append(f"{len(job_state.missing)} of {fate.job.n_pods} pods short")
        if job_state.terminating:
            facts.append(f"{len(job_state.terminating)} pods ending")
    return "; ".join(facts)


def reservation_words(
    facts: dict[str, Any], clock: Callable[[float], str] = lambda at: f"{at} s"
) -> str:
    """A reservation in short: where, and from when, by the *clock*."""
    places = [
        f"{each['node']} [{chip_words(each['chips'])}]"
        if each["chips"]
        else each["node"]
        for each in facts["nodes"]
    ]
    when = f", from {clock(facts['ready-at'])}" if "ready-at" in facts else ""
    if facts.get("held-by"):
        jobs = shortened(facts["held-by"], MAX_PLACES)
        by = f" (by {clock(facts['ready-at'])})" if "ready-at" in facts else ""
        when = f", waits for {jobs} to end{by}"
    return f"reserved: {shortened(places, MAX_PLACES, '; ')}{when}"


def _reserved(run: ScenarioRun) -> Iterator[tuple[tuple[int, int], str]]:
    """Node and chip -> the job for which it is reserved, for chips that are held."""
    cluster = run.engine.view.cluster
    for name, reservation in run.engine.reservations.items():
        for placement in reservation.placements:
            node = cluster.index[placement.node]
            yield from (((node, chip), name) for chip in placement.chips)


def _print_timeline(console: Console, run: ScenarioRun) -> None:
    """What happened, in its order."""
    lines = [line for line in timed_events(run) if not _is_quiet(line[2])]
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    before = None
    for at, said, plain in lines[:MAX_LINES]:
        time = "" if at == before else f"{at:g} s"
        before = at
        words = instruction_words(plain) if said else event_words(plain)
        style = _STYLES.get(next(iter(plain)), "") if said else "dim"
        words = NAMED.sub(_bare, words)
        name = bare_name(of_job(plain))
        table.add_row(Text(time), Text(name), Text(words, style=style))
    if not lines:
        return
    console.print(table)
    if len(lines) > MAX_LINES:
        more = len(lines) - MAX_LINES
        console.print(Text(f"  … and {more} more lines; --json has all", style="dim"))
    console.print()


def _is_quiet(plain: dict[str, Any]) -> bool:
    """Whether a line is about timers or records only, and not for people."""
    return not {"wake-at", "wakes", "remember"}.isdisjoint(plain)
