"""The status of a cluster for people, in as many lines as there is room for."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table
from rich.text import Text

from ringleaf.cli.live import moment
from ringleaf.cli.output import shortened, so_many
from ringleaf.cli.plan import new_table
from ringleaf.framework.idle_budget import Outcome
from ringleaf.report.duration import format_duration

Plain = dict[str, Any]
MAX_ROWS: Final = 12
MAX_NAMES: Final = 3
HELD: Final = "not held"


_OUTCOMES: Final = {
    Outcome.STARTED: "started",
    Outcome.SPENT: "did not start: the idle budget was used up",
    Outcome.RELEASED: "did not use it: it is gone, or nodes or rules changed",
}
_RESERVED: Final = " has a reservation: "
"""What the scheduler says of a job for which nodes are reserved."""
_AWAY: Final = {
    "not-ready": "not ready",
    "cordoned": "cordoned",
    "quarantined": "quarantined",
}


class StatusScreen:
    """A status for people; as many lines as there is room for.

    Args:
        status: What there is to show.
        now: The time; else that of the status.
        rows: Rows of a table at most.

    """

    def __init__(
        self, status: Plain, now: float | None = None, rows: int = MAX_ROWS
    ) -> None:
        self._status, self._rows = status, rows
        self._now = status["at"] if now is None else now

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        del console, options
        yield Group(*self._parts())

    def _parts(self) -> Iterator[Any]:
        status = self._status
        yield Text.assemble(
            (moment(self._now), "bold"),
            f"  {so_many(status['nodes'], 'node')}, {so_many(status['pods'], 'pod')}",
        )
        yield self._leader(status["leader"])
        if "trouble" in status:
            yield Text(f"not up to date: {status['trouble']}", style="red")
        yield Text()
        yield self._products()
        yield Text()
        yield self._queues()
        if status["leaves"]:
            yield Text()
            yield from self._units("leaf", "leaves", status["leaves"])
        if status["superpods"]:
            yield Text()
            yield from self._units("superpod", "SuperPoDs", status["superpods"])
        yield Text()
        yield from self._waits()
        yield from self._reservations()
        yield from self._lines("short", "Gangs with too few pods", self._short_words)
        if any(status["faults"].values()):
            yield Text()
            yield Text(_fault_words(status["faults"]), style="red")
        yield from self._lines("problems", "Problems", _problem_words)

    def _name(self, job: str) -> str:
        name: str = self._status["names"].get(job, job)
        return name

    def _leader(self, facts: Plain) -> Text:
        lease = f"Lease {facts['lease']}"
        if facts["state"] == "leads":
            return Text.assemble("leader: ", (facts["holder"], "green"), f" ({lease})")
        if facts["state"] == HELD:
            ago = format_duration(max(0.0, self._now - facts["renewed"]))
            last = f", last by {facts['holder']} {ago} ago" if facts["holder"] else ""
            return Text(f"leader: none, {lease} is not held{last}", style="red")
        if facts["state"] == "unknown":
            return Text(f"leader: unknown, {facts['why']}", style="yellow")
        return Text(f"leader: none elected, there is no {lease}")

    def _products(self) -> Table:
        columns = ["chips of", "nodes", "chips", "used", "free", "faulty", "free nodes"]
        listed = self._status["products"]
        has_shut = any(each["shut"] for each in listed)
        columns[5:5] = ["shut"] * has_shut
        table = _numbers(*columns)
        for each in listed:
            away = [f"{each[key]} {word}" for key, word in _AWAY.items() if each[key]]
            facts = f" ({', '.join(away)})" if away else ""
            table.add_row(
                Text(each["product"]),
                f"{each['nodes']}{facts}",
                str(each["chips"]),
                str(each["used"]),
                Text(str(each["free"]), style="green" if each["free"] else ""),
                *([Text(str(each["shut"] or ""), style="yellow")] * has_shut),
                Text(str(each["faulty"] or ""), style="red"),
                str(each["free-nodes"]),
            )
        return table

    def _queues(self) -> Table:
        table = new_table("queue", "weight", "jobs", "pending", "uses")
        listed = self._status["queues"]
        for each in listed[: self._rows]:
            name = each["name"] + (" (closed)" if each["state"] == "closed" else "")
            table.add_row(
                Text(name),
                str(each["weight"]),
                str(each["running"]),
                Text(str(each["waiting"]), style="yellow" if each["waiting"] else ""),
                Text(_use_words(each)),
            )
        if len(listed) > self._rows:
            table.add_row(Text(f"… {len(listed) - self._rows} more", style="dim"))
        return table

    def _units(self, key: str, several: str, listed: Sequence[Plain]) -> Iterator[Any]:
        """Leaves or SuperPoDs: those with the most room, and how many there are."""
        free = sum(each["free-nodes"] for each in listed)
        sizes = Counter(each["free-nodes"] for each in listed)
        facts = ", ".join(
            f"{n} with {size}" for size, n in sorted(sizes.items(), reverse=True)[:6]
        )
        words = so_many(len(listed), key.replace("superpod", "SuperPoD"), several)
        yield Text(f"{words}, {so_many(free, 'free node')}: {facts}")
        crossed = [each for each in listed if each["crossed-by"]]
        if crossed:
            table = new_table(key.replace("superpod", "SuperPoD"), "free", "crossed by")
            for each in crossed[: self._rows]:
                by = shortened([*map(self._name, each["crossed-by"])], MAX_NAMES)
                room = f"{each['free-nodes']} of {each['nodes']}"
                table.add_row(Text(str(each[key])), room, Text(by))
            yield table

    def _waits(self) -> Iterator[Any]:
        listed = self._status["waiting"]
        if not listed:
            yield Text("no pending jobs", style="green")
            return
        yield Text(f"{so_many(len(listed), 'job')} pending, the oldest first:")
        table = new_table("job", "for", "queue", "why")
        for each in listed[: self._rows]:
            name = self._name(each["job"])
            why = each["why"].removeprefix(f"job {name!r} ").removeprefix("waits: ")
            why = why or "no reason yet; hint: ringleaf explain"
            age = format_duration(max(0.0, self._now - each["since"]))
            table.add_row(Text(name), age, Text(each["queue"]), Text(why))
        yield table
        if len(listed) > self._rows:
            yield Text(f"… and {len(listed) - self._rows} more", style="dim")
        for each in listed[: self._rows]:
            if _RESERVED in each["why"]:
                name = self._name(each["job"])
                asked = f"'{name}'" if " " in name else name
                yield Text(
                    f"hint: ringleaf explain {asked} says when it could start",
                    style="dim",
                )
                return

    def _reservations(self) -> Iterator[Any]:
        """What reservations kept idle, and what became of them."""
        facts = self._status["reservations"]
        if not (facts["chip-seconds"] or facts["ended"]):
            return
        used = f"{facts['budget-used']:.0%} of their budget"
        if "suspended-until" in facts:
            used += f", none is made until {moment(facts['suspended-until'])}"
        hours = _chip_hours(facts["chip-seconds"])
        yield Text()
        yield Text(f"reservations kept {hours} idle in the last 24 hours: {used}")
        if facts["ended"]:
            table = new_table("reserved for", "ended", "after", "kept idle", "the job")
            for each in reversed(facts["ended"]):
                table.add_row(
                    Text(self._name(each["job"])),
                    f"{format_duration(max(0.0, self._now - each['until']))} ago",
                    format_duration(each["until"] - each["since"]),
                    _chip_hours(each["chip-seconds"]),
                    Text(_OUTCOMES[each["outcome"]]),
                )
            yield table

    def _short_words(self, each: Plain) -> str:
        ending = f", {each['ending']} ending" if each["ending"] else ""
        name = self._name(each["job"])
        return f"{name}: {each['running']} of {each['needs']} pods run{ending}"

    def _lines(
        self, key: str, title: str, words: Callable[[Plain], str]
    ) -> Iterator[Any]:
        listed = self._status[key]
        if listed:
            yield Text()
            yield Text(f"{title}: {len(listed)}", style="red")
        for each in listed[: self._rows]:
            yield Text(f"  {words(each)}")
        if len(listed) > self._rows:
            yield Text(f"  … and {len(listed) - self._rows} more", style="dim")


def _chip_hours(seconds: float) -> str:
    """Chip-seconds for people.

    >>> _chip_hours(41400)
    '11.5 chip-hours'
    """
    return f"{seconds / 3600:,.1f} chip-hours"


def _numbers(first: str, *others: str) -> Table:
    table = new_table(first)
    for column in others:
        table.add_column(column, justify="right")
    return table


def _use_words(queue: Plain) -> str:
    """What a queue uses; its part where it asks for more, and what it has at most."""
    asks, uses, deserves, most = (
        queue["asks"],
        queue["uses"],
        queue["deserves"],
        queue["capability"],
    )
    named = [r for r in {**uses, **deserves, **most} if r != "pods"]
    npu = [r for r in named if r.startswith("huawei.com/")]
    words = []
    for resource in npu or named[:1]:
        part = deserves.get(resource, 0)
        of = f" of {part}" if 0 < part < asks.get(resource, 0) else ""
        limit = f" (at most {most[resource]})" if resource in most else ""
        short = resource.removeprefix("huawei.com/")
        words.append(f"{uses.get(resource, 0)}{of} {short}{limit}")
    return ", ".join(words) or "nothing"


def _fault_words(facts: Plain) -> str:
    """What is wrong in the cluster, and where to read more.

    >>> _fault_words({"open": 3, "nodes": 2, "repairs": 1, "rate-limited": 0})
    '3 faults on 2 nodes, 1 job being repaired; hint: ringleaf faults'
    """
    nodes = f" on {so_many(facts['nodes'], 'node')}" if facts["nodes"] else ""
    words = (
        f"{so_many(facts['open'], 'fault') if facts['open'] else 'no faults'}{nodes}"
    )
    if facts["repairs"]:
        words += f", {so_many(facts['repairs'], 'job')} being repaired"
    if facts["rate-limited"]:
        words += f", {facts['rate-limited']} held back by the rate limit"
    return f"{words}; hint: ringleaf faults"


def _problem_words(each: Plain) -> str:
    return f"{each['kind']} {each['object']}: {each['message']}"
