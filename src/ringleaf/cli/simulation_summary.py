"""What a simulation came to, for people."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ringleaf.cli.output import so_many
from ringleaf.report.duration import format_duration
from ringleaf.report.unstarted import unstarted_words

Plain = dict[str, Any]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def print_summary(
    console: Console, facts: Plain, speed: tuple[float, int], folder: Path | None
) -> None:
    """Print the results in *facts*, the speed of the simulation, and the folder."""
    for line in _head(facts):
        console.print(line, soft_wrap=True)
    console.print()
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", justify="right")
    table.add_column()
    for word, line in _lines(facts):
        table.add_row(word, line)
    console.print(table)
    console.print()
    console.print(_by_size(facts["measures"]))
    if left_out := _left_out(facts["measures"]):
        console.print(left_out, soft_wrap=True)
    console.print()
    if hint := _hint(facts):
        console.print(Text(hint), soft_wrap=True)
    took, steps = speed
    jobs = facts["jobs"]["arrived"]
    console.print(
        Text(f"simulated in {took:.1f} s: {jobs / took:,.0f} jobs a second", "dim")
        if took and steps
        else Text("nothing was left to simulate", "dim")
    )
    if folder is not None:
        names = ("jobs.csv", "series.csv", "summary.json", "cost.json")
        console.print(Text(f"results in {folder}: {', '.join(names)}"), soft_wrap=True)


def _left_out(measures: Plain) -> str:
    """Which jobs never start, and what the mean wait is with them; empty of none."""
    if not (words := unstarted_words([measures])):
        return ""
    longest = format_duration(measures["jobs"]["longest_unstarted_s"])
    pending = measures["pending_s"]["all"]
    facts = (
        f"{words} never started, pending for up to {longest} at the end; "
        "wait times leave them out"
    )
    if not pending["unstarted"]:
        return facts
    return (
        f"{facts}; with them, pending until the last job ended, the mean is "
        f"{format_duration(pending['mean'])} or more"
    )


IDLE, IN_ORDER, LONG_S = 0.5, 0.5, 60.0
"""Where fewer chips are in use, more of the waiting is for the order of jobs, and it
takes longer, there is something to try."""


def _hint(facts: Plain) -> str:
    """What to try where jobs wait for their turn while chips are free; or nothing."""
    options, measures = facts["options"], facts["measures"]
    order = measures["why"]["jobs"]["order"]["share"] or 0.0
    wait_s = measures["wait_s"]["all"]["mean"] or 0.0
    idle = (measures["use"]["utilisation"] or 0.0) < IDLE
    silent = options["trace"] is None and not options["knobs"]["estimate"]
    if not (idle and silent and order > IN_ORDER and wait_s > LONG_S):
        return ""
    return (
        "hint: jobs wait behind reservations (order) while chips are free, because no "
        "job states a running time; try --estimate 1.5"
    )


def _head(facts: Plain) -> Iterator[Text]:
    cluster, workload, options = facts["cluster"], facts["workload"], facts["options"]
    order = f" in order {options['order']}" if options["order"] else ""
    yield Text(
        f"{workload['name']} on {cluster['name']}, {options['policy']}{order}", "bold"
    )
    parts = [so_many(cluster["nodes"], "node"), f"{cluster['chips']:,} chips"]
    if cluster["leaves"]:
        parts.append(so_many(cluster["leaves"], "leaf", "leaves"))
    if cluster["superpods"]:
        parts.append(so_many(cluster["superpods"], "SuperPoD"))
    span = format_duration(workload["span_s"])
    jobs = "job" if workload["jobs"] == 1 else "jobs"
    yield Text(
        f"{', '.join(parts)}; {workload['jobs']:,} {jobs} in {span}, "
        f"offered load {workload['load']:.2f}, seed {options['seed']}"
    )


def _lines(facts: Plain) -> Iterator[tuple[str, Text]]:
    jobs, measures = facts["jobs"], facts["measures"]
    yield "jobs", _jobs(facts)
    use = measures["use"]
    yield "utilization", _joined(_percent(use["utilisation"]), _useful(facts))
    wait = measures["wait_s"]["all"]
    few = ", ".join(
        f"{key} {format_duration(wait[key])}" for key in ("p50", "p95", "p99")
    )
    yield "wait time", _joined(f"mean {format_duration(wait['mean'])}", few)
    if wait["mean"] and (why := _why(measures["why"])):
        yield "causes", Text(why)
    chips = measures["chips"]
    violations = chips["ring_violations"]
    torn = "no pod across rings" if not violations else f"{violations} across rings"
    stranded = f"{_percent(chips['fragmentation'])} of all chips"
    yield "stranded", _joined(stranded, torn)
    leaves = measures["leaves"]
    if facts["cluster"]["leaves"] and leaves["gangs"]:
        yield "leaves", _leaves(leaves)
    superpods = measures["superpods"]
    if superpods["blocks"]:
        split = so_many(superpods["split_blocks"], "block")
        yield "SuperPoDs", Text(f"{split} of {superpods['blocks']} split")
    if (regret := measures.get("regret", {})).get("n"):
        most = f"at most {_percent(regret['max'])}, at {regret['n']:,} moments"
        could = f"{_percent(regret['mean'])} less than the optimum"
        yield "regret", _joined(could, most)
    if facts["options"]["faults"] != "none":
        yield "faults", _faults(jobs)
    if jobs["stops"]:
        yield "lost", _lost(facts)


def _joined(first: str, then: str) -> Text:
    return Text.assemble((first, "bold"), f"   {then}" if then else "")


def _jobs(facts: Plain) -> Text:
    jobs = facts["jobs"]
    waiting = jobs["arrived"] - jobs["over"] - jobs["refused"]
    parts = [f"{jobs['over']:,} ended"]
    if waiting:
        parts.append(f"{waiting:,} still pending, for lack of room")
    if jobs["refused"]:
        parts.append(f"{jobs['refused']:,} invalid: they can never be placed")
    return Text(
        ", ".join(parts) + f"; the last after {format_duration(facts['ends_s'])}"
    )


def _useful(facts: Plain) -> str:
    use = facts["measures"]["use"]
    parts = []
    if use["effective_utilisation"] != use["utilisation"]:
        parts.append(f"effective utilization {_percent(use['effective_utilisation'])}")
    healthy = _percent(use["healthy_utilisation"])
    if healthy != _percent(use["utilisation"]):
        parts.append(f"{healthy} of healthy chips")
    return ", ".join(parts)


def _why(why: Plain) -> str:
    """The reasons for waiting by their share of time, the largest first."""
    shares = [(blame["share"] or 0.0, name) for name, blame in why["jobs"].items()]
    shares.sort(key=lambda each: (-each[0], each[1]))
    return ", ".join(
        f"{name} {100 * share:.0f} %" for share, name in shares if share > 0
    )


def _leaves(leaves: Plain) -> Text:
    crossing = f"{leaves['jobs']:,} of {leaves['gangs']:,} gangs cross leaves"
    conflicts = leaves["conflicts"] or 0.0
    if not conflicts:
        return _joined("no spine conflicts", crossing)
    return _joined(
        f"{conflicts:.2f} spine conflicts at a time",
        f"{crossing}, {leaves['at_risk']:,} share a leaf with another",
    )


def _faults(jobs: Plain) -> Text:
    unhurt = "no job was stopped" if jobs["faults"] and not jobs["stops"] else ""
    return _joined(f"{jobs['faults']:,}" if jobs["faults"] else "none", unhurt)


def _lost(facts: Plain) -> Text:
    jobs, faults = facts["jobs"], facts["measures"]["faults"]
    hours = jobs["lost_chip_s"] / 3600
    parts = [f"{so_many(jobs['stops'], 'time')} a job was stopped"]
    if faults["evictions"]:
        parts.append(f"{so_many(faults['evicted_pods'], 'pod')} evicted")
    if faults["deletions"]:
        recovery = format_duration(faults["recovery_s"]["mean"])
        parts.append(f"{so_many(faults['deleted_pods'], 'pod')} deleted for faults")
        parts.append(f"repaired after {recovery}")
        parts.append(f"{_percent(faults['share_in_place'])} of pods in place")
    return _joined(f"{hours:,.0f} chip-hours", ", ".join(parts))


def _by_size(measures: Plain) -> Table:
    """How long jobs wait, by their size."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("chips", "jobs", "wait mean", "p50", "p95", "p99", "max"):
        table.add_column(name, justify="right")
    for size, wait in measures["wait_s"]["by_size"].items():
        if wait["n"]:
            keys = ("mean", "p50", "p95", "p99", "max")
            table.add_row(
                size, f"{wait['n']:,}", *(format_duration(wait[k]) for k in keys)
            )
    return table
