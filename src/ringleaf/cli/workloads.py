"""``ringleaf workloads``: the clusters and jobs that can be simulated."""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ringleaf.cli.failure import BadUse
from ringleaf.cli.file import like_file
from ringleaf.cli.output import (
    TrimmedConsole,
    print_json,
    print_line,
    progress,
    so_many,
)
from ringleaf.cli.site import simulated_cluster
from ringleaf.model.spelling import did_you_mean
from ringleaf.report.duration import format_duration
from ringleaf.simulator.mix import Figures, figures, is_made_up
from ringleaf.simulator.sites import SITES
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.traces import DETECT, read_trace
from ringleaf.simulator.trial import JobSpec, Site, Workload
from ringleaf.simulator.workloads import USUAL_LOAD, WORKLOADS, workload

USUAL_CLUSTER: Final = "leaf-spine-512"

Told = Mapping[str, tuple[float, float]]
"""What was published: of what -> percent of jobs, percent of chip-time."""


class WorkloadQuery(Struct, frozen=True):
    """A workload, as a user asked for it."""

    name: str
    cluster: str | None
    columns: str | None
    load: float | None
    jobs: int | None
    seed: int
    chips_each: int = 1
    queues: bool = False
    skip_bad: bool = False

    @property
    def of_trace(self) -> str | None:
        """An option that was given and goes with a trace only."""
        given = {
            "--columns": self.columns is not None,
            "--chips-each": self.chips_each != 1,
            "--queues": self.queues,
            "--skip-bad": self.skip_bad,
        }
        return next((option for option in given if given[option]), None)


class Share:
    """Jobs of one sort, counted."""

    def __init__(self) -> None:
        self.runs_s = array("d")
        self.chip_s = 0.0

    def add(self, spec: JobSpec, chips: int) -> None:
        """One more."""
        self.runs_s.append(spec.runs_s)
        self.chip_s += chips * spec.runs_s


class Census:
    """The jobs of a workload, counted by kind, size and ending."""

    def __init__(self, job_specs: Iterable[JobSpec]) -> None:
        self.kinds: dict[str, Share] = {}
        self.sizes: dict[str, Share] = {}
        self.endings: dict[str, Share] = {}
        self.n_jobs, self.chips, self.chip_s = 0, 0, 0.0
        for spec in job_specs:
            chips = spec.job.chips * spec.job.replicas
            self.n_jobs += 1
            self.chips += chips
            self.chip_s += chips * spec.runs_s
            for shares, key in (
                (self.kinds, spec.kind),
                (self.sizes, str(chips)),
                (self.endings, spec.ending.value),
            ):
                shares.setdefault(key, Share()).add(spec, chips)
        by_size = sorted(self.sizes.items(), key=lambda item: int(item[0]))
        self.sizes = dict(by_size)

    def rows(self, shares: Mapping[str, Share], facts: Told) -> list[dict[str, Any]]:
        """Plain values of *shares*, with what was published of them."""
        return [
            {
                "of": key,
                "jobs": len(share.runs_s),
                "jobs-percent": round(100 * len(share.runs_s) / self.n_jobs, 3),
                "chip-time-percent": round(100 * share.chip_s / self.chip_s, 3),
                "median-seconds": median(share.runs_s),
                "longest-seconds": max(share.runs_s),
                **_published(facts.get(key)),
            }
            for key, share in shares.items()
        ]


def _published(facts: tuple[float, float] | None) -> dict[str, float]:
    if facts is None:
        return {}
    return {
        "published-jobs-percent": round(facts[0], 3),
        "published-chip-time-percent": round(facts[1], 3),
    }


def show_workloads(asked: WorkloadQuery | None, *, as_json: bool) -> int:
    """Print what can be simulated, or one workload in full; the exit status."""
    console = TrimmedConsole()
    if asked is None:
        listed = {
            "clusters": [
                {"name": p.name, "title": p.title, "options": dict(p.options)}
                for p in SITES.values()
            ],
            "workloads": [
                {"name": p.name, "title": p.title, "jobs": p.jobs}
                for p in WORKLOADS.values()
            ],
        }
        if as_json:
            print_json(listed)
        else:
            _print_lists(console, listed)
        return 0
    site = simulated_cluster(asked.cluster or _home(asked.name)).site
    found = _found(asked, site)
    with progress(what="counting the jobs"):
        facts = _summary_plain(found, site, asked.name)
    if as_json:
        print_json(facts)
    else:
        _print_one(console, facts)
    return 0


def _home(name: str) -> str:
    """The default cluster of a workload."""
    return "superpod-48x8" if name == "llm-superpod" else USUAL_CLUSTER


def _found(asked: WorkloadQuery, site: Site) -> Workload:
    """The preset, or the trace if there is a file of that name."""
    if asked.name in WORKLOADS:
        if (option := asked.of_trace) is not None:
            raise BadUse(f"{option} goes with a trace; hint: give the name of its file")
        load = USUAL_LOAD if asked.load is None else asked.load
        with plain(BadInput), progress(what="drawing the jobs"):
            return workload(
                asked.name, site, seed=asked.seed, load=load, jobs=asked.jobs
            )
    if not _is_file(asked.name):
        meant = did_you_mean(asked.name, WORKLOADS)
        hint = f"; hint: {meant}" if meant else like_file(asked.name)
        known = ", ".join(WORKLOADS)
        raise BadUse(f"NAME is {asked.name!r}, want a file or one of {known}{hint}")
    with plain(BadInput), progress(what=f"reading {asked.name}"):
        return read_trace(
            asked.name,
            site,
            asked.columns or DETECT,
            load=asked.load,
            jobs=asked.jobs,
            times=asked.chips_each,
            seed=asked.seed,
            queues=asked.queues,
            skip_bad=asked.skip_bad,
        )


@contextmanager
def plain(*bad: type[Exception]) -> Iterator[None]:
    """Turn errors inside into ``BadUse`` with their own message."""
    try:
        yield
    except bad as error:
        raise BadUse(str(error)) from None


def _is_file(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # too long, or with a NUL byte
        return False


def _summary_plain(found: Workload, site: Site, name: str) -> dict[str, Any]:
    """The workload as plain values."""
    census = Census(found.job_specs())
    own = _figures(name)
    kinds, sizes, endings = _shares(own)
    return {
        "name": found.name,
        "cluster": site.name,
        "about": found.about,
        "jobs": found.n_jobs,
        "span-seconds": found.span_s,
        "load": found.load,
        "notes": list(found.notes),
        "queues": list(found.queues),
        "mean-chips": round(census.chips / census.n_jobs, 3),
        **({} if own is None else {"published-mean-chips": own.mean_chips}),
        "kinds": census.rows(census.kinds, kinds),
        "sizes": census.rows(census.sizes, sizes),
        "endings": census.rows(census.endings, endings),
    }


def _figures(name: str) -> Figures | None:
    """What was published of a workload, if all of it is drawn."""
    preset = WORKLOADS.get(name)
    whole = preset is not None and preset.figures == name and not is_made_up(name)
    return figures(name) if whole else None


def _shares(own: Figures | None) -> tuple[Told, Told, Told]:
    """By kind, size and ending: what was published."""
    if own is None:
        return {}, {}, {}
    kinds = {k: (v.jobs_percent, v.chip_time_percent) for k, v in own.types.items()}
    sizes = {str(chips): (jobs, time) for chips, jobs, time in own.sizes}
    endings = {k: (100 * jobs, 100 * time) for k, (jobs, time) in own.endings.items()}
    return kinds, sizes, endings


def _print_lists(console: Console, listed: Mapping[str, Any]) -> None:
    for word, entries in listed.items():
        table = Table(
            box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0)
        )
        table.add_column(word.removesuffix("s"), no_wrap=True, min_width=17)
        table.add_column("what it is", overflow="fold")
        for entry in entries:
            options = ",".join(f"{k}={v}" for k, v in entry.get("options", {}).items())
            more = f" [{options}]" if options else ""
            name = Text(entry["name"], style="bold")
            table.add_row(name, Text(entry["title"] + more))
        console.print(table)
        console.print()
    more = "ringleaf workloads NAME counts the jobs of one, or of a cluster's log."
    print_line(console, Text(more))


def _print_one(console: Console, facts: Mapping[str, Any]) -> None:
    head = (
        f"{facts['name']} on {facts['cluster']}: {so_many(facts['jobs'], 'job')} in "
        f"{format_duration(facts['span-seconds'])}, offered load {facts['load']:.2f}, "
        f"{facts['mean-chips']:.2f} chips a job"
    )
    if "published-mean-chips" in facts:
        head += f" (published: {facts['published-mean-chips']:.2f})"
    print_line(console, Text(head, style="bold"))
    print_line(console, Text(facts["about"], style="dim"))
    for note in facts["notes"]:
        print_line(console, Text(f"note: {note}", style="yellow"))
    for key, word in (("kinds", "kind"), ("sizes", "chips"), ("endings", "ending")):
        console.print()
        console.print(_table(word, facts[key]))
    if "published-mean-chips" in facts:
        console.print()
        print_line(console, Text("In brackets: what was published.", style="dim"))


def _plain_table() -> Table:
    return Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))


def _table(word: str, rows: list[dict[str, Any]]) -> Table:
    table = _plain_table()
    table.add_column(word, no_wrap=True, min_width=9)
    for name in ("jobs", "% of jobs", "% of chip-time", "median", "longest"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            Text(row["of"], style="bold"),
            str(row["jobs"]),
            _percent(row, "jobs-percent"),
            _percent(row, "chip-time-percent"),
            format_duration(row["median-seconds"]),
            format_duration(row["longest-seconds"]),
        )
    return table


def _percent(row: Mapping[str, Any], key: str) -> str:
    facts = row.get(f"published-{key}")
    return f"{row[key]:.2f}" + ("" if facts is None else f" ({facts:.2f})")
