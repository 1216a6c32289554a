"""The faults of a cluster for people."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.text import Text

from ringleaf.cli.explain_node import indented
from ringleaf.cli.fault_view import is_of_pod
from ringleaf.cli.fault_words import numbers_words, pod_words, reach_words
from ringleaf.cli.live import moment
from ringleaf.cli.output import shortened, so_many
from ringleaf.cli.plan import new_table
from ringleaf.kube.fault_history import NAME, NAMESPACE
from ringleaf.report.duration import format_duration

Plain = dict[str, Any]

MAX_ROWS: Final = 40
"""Rows of a table, and lines of a list; the JSON has all of them."""
MAX_NAMES: Final = 3


def _ago(at: float, now: float) -> str:
    return f"{format_duration(max(0.0, now - at))} ago"


# The screen.


class FaultScreen:
    """Faults for people.

    Args:
        found: What there is to show.
        when: A time in words, with the time it is now.
        rows: Rows of a table at most.
        now: The time; else that of what was found.

    """

    def __init__(
        self,
        found: Plain,
        when: Callable[[float, float], str] = _ago,
        rows: int = MAX_ROWS,
        now: float | None = None,
    ) -> None:
        self._found, self._rows = found, rows
        self._now: float = found["at"] if now is None else now
        self._is_run = when is not _ago
        self._when = when

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        del console, options
        yield Group(*self._parts())

    def _parts(self) -> Iterator[Any]:
        at = f"{self._now:g} s" if self._is_run else moment(self._now)
        yield Text.assemble((at, "bold"), f"  {self._summary()}")
        yield from self._remarks()
        faults = rows_of(self._found["faults"])
        if faults:
            yield Text()
            yield self._table(faults)
            yield from self._more(faults)
            yield from self._meanings(faults)
        yield from self._repairs()
        yield from self._aside()

    def _summary(self) -> str:
        found = self._found
        there = [each for each in found["faults"] if each["recovered"] is None]
        nodes = {each["where"] for each in there if not is_of_pod(each["part"])}
        words = [so_many(len(there), "fault") if there else "no faults"]
        if nodes:
            words[0] += f" on {so_many(len(nodes), 'node')}"
        past = len(found["faults"]) - len(there)
        words += [f"{past} recovered"] * bool(past)
        jobs = len(found["repairs"])
        words += [f"{so_many(jobs, 'job')} being repaired"] * bool(jobs)
        aside = len(found["quarantined"])
        words += [f"{so_many(aside, 'node')} quarantined"] * bool(aside)
        return ", ".join(words)

    def _remarks(self) -> Iterator[Text]:
        found = self._found
        if "trouble" in found:
            yield Text(f"not up to date: {found['trouble']}", style="red")
        if "unread" in found:
            told = f"the history of faults is not known: {found['unread']}"
            yield Text(told, style="yellow")
        elif found["faults"] and not found["history"]:
            yield Text(
                f"the history of faults is not known: no scheduler has written "
                f"ConfigMap {NAMESPACE}/{NAME} yet",
                style="yellow",
            )
        limit = found["rate-limit"]
        if limit["engaged"]:
            held = shortened([self._name(job) for job in limit["held"]], MAX_NAMES)
            yield Text(
                f"eviction rate limit: {_limit_words(limit)} in "
                f"{limit['seconds']} s; held back: {held}",
                style="red",
            )
        elif limit["deleted"]:
            n_pods = so_many(limit["deleted"], "pod")
            yield Text(
                f"{n_pods} deleted in the last {limit['seconds']} s; "
                f"rate limit: {_limit_words(limit)}"
            )

    def _table(self, faults: Sequence[Plain]) -> Any:  # noqa: ANN401 - a table
        past = any(each["recovered"] is not None for each in faults)
        columns = ["where", "what", "seen", "acted on"] + ["recovered"] * past
        table = new_table(*columns, "jobs")
        for each in faults[: self._rows]:
            seen = each["seen"]
            row = [
                Text(self._name(each["where"])),
                Text(each["words"], style="dim" if each["recovered"] else "red"),
                Text("" if seen is None else self._when(seen, self._now)),
                Text(self._later(each, "acted")),
            ]
            row += [Text(self._later(each, "recovered"))] * past
            jobs = shortened([self._name(job) for job in each["jobs"]], MAX_NAMES)
            table.add_row(*row, Text(jobs if each["jobs"] else ""))
        return table

    def _later(self, fault: Plain, key: str) -> str:
        """When something happened, relative to when the fault was seen."""
        at = fault[key]
        if at is None:
            return ""
        if self._is_run or fault["seen"] is None:
            return self._when(at, self._now)
        return f"{format_duration(max(0.0, at - fault['seen']))} later"

    def _more(self, listed: Sequence[Plain]) -> Iterator[Text]:
        if len(listed) > self._rows:
            more = len(listed) - self._rows
            yield Text(f"… and {more} more; --json has all", style="dim")

    def _meanings(self, faults: Sequence[Plain]) -> Iterator[Any]:
        """What becomes of pods that are on faults."""
        told = [
            (each, line) for each in faults for line in each["means"] if each["pods"]
        ]
        if not told:
            return
        yield Text()
        yield Text("Affected pods:")
        for each, line in told[: self._rows]:
            where = "" if is_of_pod(each["part"]) else f", on {each['where']}"
            pods, _colon, lot = line.partition(": ")
            yield indented(f"{pods}{where}: {lot}")
        yield from self._more(told)  # type: ignore[arg-type]

    def _repairs(self) -> Iterator[Any]:
        listed = self._found["repairs"]
        if not listed:
            return
        yield Text()
        yield Text("Jobs being repaired:")
        for each in listed[: self._rows]:
            since = self._when(each["since"], self._now)
            style = "red" if each["stage"] in ("rate-limited", "stuck") else ""
            deleted = each["deleted"]
            what = f"{pod_words(deleted)} deleted" if deleted else "no pod deleted"
            name = self._name(each["job"])
            yield indented(
                f"{name}: {reach_words(each['reach'])}, found {since}; {what}",
                style=style,
            )
            if each["waits-for"]:
                yield indented(f"  waits for: {each['waits-for']}")
            if each["held"] and each["hold-until"] is not None:
                left = format_duration(max(0.0, each["hold-until"] - self._now))
                places = so_many(each["held"], "place")
                yield indented(f"  {places} held for it, for {left} more")
        yield from self._more(listed)

    def _aside(self) -> Iterator[Any]:
        listed = self._found["quarantined"]
        if not listed:
            return
        yield Text()
        yield Text("Quarantined nodes:")
        for each in listed[: self._rows]:
            left = f"for {format_duration(max(0.0, each['until'] - self._now))} more"
            why = f": {each['why']}" if each["why"] else ""
            yield indented(f"{each['node']}, {left}{why}")
        yield from self._more(listed)

    def _name(self, job: str) -> str:
        name: str = self._found["names"].get(job, job)
        return name


def rows_of(faults: Iterable[Plain]) -> list[Plain]:
    """Faults that differ in their chip or pod only, together; the oldest first."""
    found: dict[tuple[Any, ...], list[Plain]] = {}
    for each in faults:
        kind, _blank, number = each["part"].partition(" ")
        same = (
            each["where"],
            each["cause"],
            kind if number else each["part"],
            *(each[key] for key in ("seen", "acted", "recovered")),
            tuple(each["jobs"]),
        )
        found.setdefault(same, []).append(each)
    rows = [_together(own) for own in found.values()]
    return sorted(
        rows, key=lambda row: (row["recovered"] is not None, row["seen"] or 0)
    )


def _together(faults: Sequence[Plain]) -> Plain:
    first = faults[0]
    if len(faults) == 1:
        return first
    kind = first["part"].partition(" ")[0]
    numbers = [int(each["part"].partition(" ")[2]) for each in faults]
    several = f"{kind}s {numbers_words(numbers)}"
    pods: dict[str, list[int]] = {}
    for each in faults:
        for job, own in each["pods"].items():
            pods[job] = sorted({*pods.get(job, ()), *own})
    means = dict.fromkeys(line for each in faults for line in each["means"])
    return first | {
        "words": first["words"].replace(first["part"], several),
        "pods": pods,
        "means": _joined(means, pods),
    }


def _joined(lines: Iterable[str], pods: Mapping[str, Sequence[int]]) -> list[str]:
    """Lines about single pods as lines about all pods of their jobs."""
    lots: dict[tuple[str, str], None] = {}
    for line in lines:
        pod, colon, lot = line.partition(": ")
        job = pod.partition(" of ")[2]
        lots[job, lot if colon else line] = None
    return [
        f"{pod_words([*pods[job]])} of {job}: {lot}" if job in pods else lot
        for job, lot in lots
    ]


def _limit_words(limit: Plain) -> str:
    """How many pods may be deleted, for people.

    >>> _limit_words({"percent": 5, "pods": 40})
    '2 pods (5 % of 40)'
    >>> _limit_words({"percent": 5, "pods": 9})
    'one job (5 % of 9 is below 1)'
    """
    percent, pods = limit["percent"], limit["pods"]
    if (most := percent * pods // 100) > 0:
        return f"{so_many(most, 'pod')} ({percent} % of {pods})"
    return f"one job ({percent} % of {pods} is below 1)"
