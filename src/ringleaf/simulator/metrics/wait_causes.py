"""Why jobs wait: from what the scheduler says of them, and from what is free.

Every job that waits is blamed on one thing at a time, in this order:

1. ``capacity``: fewer chips of its product are free than it asks for;
2. ``quota``: the scheduler says that its queue holds it back;
3. ``rule``: enough nodes have the chips, and the rules of rings or of the network
   refuse them;
4. ``order``: others stand before it: it was not looked at, or not let in;
5. ``fragmentation``: enough chips are free, and no places are among them.

What a scheduler has not said is not blamed on rules: the job that came first is blamed
on fragmentation, those behind it on the order.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from heapq import heappop, heappush
from typing import Any, Final

from ringleaf.framework.instruction import Report, Verdict
from ringleaf.framework.job_state import scheduling_key_of
from ringleaf.model.decision import Reason
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Network
from ringleaf.model.product import Product
from ringleaf.simulator.metrics.chip_usage import ChipUsage
from ringleaf.simulator.metrics.job_record import JobRecord


class WaitCause(StrEnum):
    """What holds a job back."""

    CAPACITY = "capacity"
    FRAGMENTATION = "fragmentation"
    RULE = "rule"
    QUOTA = "quota"
    ORDER = "order"


WAIT_CAUSES: Final = tuple(WaitCause)
UNSAID: Final = ""
"""Nothing was said of the job."""
_SAID: Final = (
    WaitCause.FRAGMENTATION,
    WaitCause.RULE,
    WaitCause.QUOTA,
    WaitCause.ORDER,
    UNSAID,
)

RULED_OUT: Final = (Reason.LEAF_CLOSED, Reason.NOT_WIRED_TOGETHER)
"""Nodes that have the chips, and a rule refuses them."""
_OF_CHIPS: Final = (Verdict.RESERVED, Verdict.EVICTS, Verdict.REARRANGES)

Sizes = dict[int, int]
"""Chips of jobs -> how many such jobs wait."""


def wait_cause(said: Report, record: JobRecord, n_nodes: int) -> str:
    """What a report blames, as far as it does: ``UNSAID`` if it says nothing new."""
    if said.verdict in _OF_CHIPS:
        return WaitCause.FRAGMENTATION
    if said.verdict is not Verdict.WAITING:
        return UNSAID
    if said.behind:
        return WaitCause.ORDER
    if not said.reasons and not said.missing:
        return WaitCause.QUOTA
    job = record.job
    refused = sum(said.reasons.get(reason, 0) for reason in RULED_OUT)
    fitting = n_nodes - sum(said.reasons.values())
    if (
        said.reasons
        and job.network is not Network.NONE
        and fitting >= job.min_chip_pods
    ):
        return WaitCause.RULE
    return WaitCause.RULE if refused >= said.missing else WaitCause.FRAGMENTATION


class PendingGroup:
    """The jobs that wait for one product, by what was said of them and by size."""

    def __init__(self) -> None:
        self.sizes: dict[str, Sizes] = {said: {} for said in _SAID}
        self.found: dict[WaitCause, tuple[int, int]] = {}
        """Blame -> jobs and chips, as last counted."""
        self._between = (0, 0)
        """For which numbers of free chips that is right."""

    def add(self, said: str, chips: int, by: int) -> None:
        """A job comes, or goes."""
        sizes = self.sizes[said]
        left = sizes.get(chips, 0) + by
        if left:
            sizes[chips] = left
        else:
            del sizes[chips]
        self._between = (0, 0)

    def blamed(self, idle: int) -> Mapping[WaitCause, tuple[int, int]]:
        """Blame -> jobs and chips, while *idle* chips are free."""
        low, high = self._between
        if not low <= idle < high:
            self._count(idle)
        return self.found

    def _count(self, idle: int) -> None:
        found = {blame: [0, 0] for blame in WAIT_CAUSES}
        low, high = 0, 1 << 62
        for said, sizes in self.sizes.items():
            said_so = WaitCause(said or WaitCause.ORDER)
            for chips, jobs in sizes.items():
                if chips <= idle:
                    low = max(low, chips)
                else:
                    high = min(high, chips)
                blame = said_so if chips <= idle else WaitCause.CAPACITY
                found[blame][0] += jobs
                found[blame][1] += jobs * chips
        self.found = {blame: (jobs, chips) for blame, (jobs, chips) in found.items()}
        self._between = low, high


class WaitCauses:
    """Pending jobs, and what they wait for."""

    def __init__(self, usage: ChipUsage) -> None:
        self._usage = usage
        self._crowds: dict[Product, PendingGroup] = {}
        self._waiting: dict[str, JobRecord] = {}
        self._line: list[tuple[int, str]] = []
        """Jobs by arrival; one that is no longer pending is dropped at the front."""
        self.jobs = 0
        self.chips = 0
        self._n_said = 0
        """Reports until now."""

    def waits(self, record: JobRecord) -> None:
        """A job waits: for all its pods, or for some again."""
        if not record.waits:
            record.waits = True
            record.blame = UNSAID
            self._waiting[record.name] = record
            heappush(self._line, (record.number, record.name))
            self._add(record, 1)

    def stops_waiting(self, record: JobRecord) -> None:
        """A job waits no longer."""
        if record.waits:
            record.waits = False
            del self._waiting[record.name]
            self._add(record, -1)

    def said(self, report: Report, record: JobRecord, n_nodes: int) -> None:
        """The scheduler has said something of a job."""
        blame = wait_cause(report, record, n_nodes)
        self._n_said += 1
        if blame != UNSAID:
            record.report_number = self._n_said
        if record.waits and blame not in (UNSAID, record.blame):
            self._crowd(record).add(record.blame, record.chips, -1)
            self._crowd(record).add(blame, record.chips, 1)
            record.blame = blame

    @property
    def waiting(self) -> Collection[JobRecord]:
        """The jobs that wait."""
        return self._waiting.values()

    @property
    def head(self) -> JobRecord | None:
        """The job that came first of those that wait."""
        line, waiting = self._line, self._waiting
        while line and line[0][1] not in waiting:
            heappop(line)
        return waiting[line[0][1]] if line else None

    def causes(self, records: Iterable[JobRecord]) -> Counter[WaitCause]:
        """What holds these jobs back now: blame -> jobs.

        Of jobs that request the same, a scheduler tries the first and says nothing new
        of the others: the last report of any of them is true of all.
        """
        alike: dict[Job, list[JobRecord]] = {}
        for record in records:
            alike.setdefault(scheduling_key_of(record.job), []).append(record)
        found: Counter[WaitCause] = Counter()
        for own in alike.values():
            last = max(own, key=lambda each: each.report_number)
            for record in own:
                found[self._cause_of(record, last.blame)] += 1
        return found

    def _cause_of(self, record: JobRecord, blame: str) -> WaitCause:
        """What holds a pending job back now, of whose like *blame* was said."""
        stock = self._usage.stocks.get(record.job.product)
        if stock is None or record.chips > stock.idle:
            return WaitCause.CAPACITY
        if blame:
            return WaitCause(blame)
        return WaitCause.FRAGMENTATION if record is self.head else WaitCause.ORDER

    def blamed(self) -> tuple[dict[WaitCause, list[int]], bool]:
        """Blame -> jobs and chips that wait; whether enough is free for the first."""
        found = {blame: [0, 0] for blame in WAIT_CAUSES}
        stocks = self._usage.stocks
        for product, crowd in self._crowds.items():
            stock = stocks.get(product)
            parts = crowd.blamed(0 if stock is None else stock.idle)
            for blame, (jobs, chips) in parts.items():
                found[blame][0] += jobs
                found[blame][1] += chips
        head = self.head
        if head is None or head.blame == WaitCause.QUOTA:
            return found, False
        stock = stocks.get(head.job.product)
        if stock is None or head.chips > stock.idle:
            return found, False
        if head.blame == UNSAID:  # no job is before it
            for at, n in enumerate((1, head.chips)):
                found[WaitCause.ORDER][at] -= n
                found[WaitCause.FRAGMENTATION][at] += n
        return found, True

    def _add(self, record: JobRecord, by: int) -> None:
        self.jobs += by
        self.chips += by * record.chips
        self._crowd(record).add(record.blame, record.chips, by)

    def _crowd(self, record: JobRecord) -> PendingGroup:
        product = record.job.product
        crowd = self._crowds.get(product)
        if crowd is None:
            crowd = self._crowds[product] = PendingGroup()
        return crowd


def shares(seconds: Mapping[str, float]) -> dict[str, Any]:
    """Seconds by blame, and the share of each."""
    total = sum(seconds.values())
    return {
        name: {"seconds": value, "share": value / total if total else None}
        for name, value in seconds.items()
    }
