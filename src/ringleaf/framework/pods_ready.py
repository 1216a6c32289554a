"""Jobs on their way from bound to running, and nodes that refuse pods.

A job is *whole* once the pods it cannot do without have all run. One that is not whole
in time is released and tried again, later each time. Nothing is supposed of a job of
which no pod was ever reported to run: it may be one of a scenario, where pods run as
soon as they are bound.

A node whose kubelet or device plugin refuses a pod is likely to refuse the next one, so
it is quarantined: longer each time it refuses again soon after its release. Where many
nodes refuse, the nodes are not what is wrong: of more than a share of them, the ones
that have been quarantined longest take pods again.
"""

from collections.abc import Collection, Iterable
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final

from msgspec import Struct

from ringleaf.framework.job_state import NONE_OF_THEM, JobState, with_pods

MAX_QUARANTINE_S: Final = 3600.0
"""How long a node is quarantined at most, unless the first time is longer already."""
MAX_SHARE: Final = 5
"""One of so many nodes may be quarantined at a time, at least one."""


class QuarantinedNode(Struct, frozen=True):
    """One node that is quarantined.

    Args:
        since: Since when.
        until: Until when, unless a pod runs there before.
        lasts_s: How long that was from the last refusal on.
        why: What was said of the pod that was refused.
        chips: Whether that pod asked for chips.

    """

    since: float
    until: float
    lasts_s: float
    why: str = ""
    chips: bool = True


class Quarantine:
    """The nodes that are quarantined, in the order in which they were."""

    def __init__(self) -> None:
        self.nodes: dict[str, QuarantinedNode] = {}
        """Those that are quarantined now."""
        self._before: dict[str, QuarantinedNode] = {}
        """Those that were taken back a while ago, by their last time."""

    @property
    def next_at(self) -> float:
        """When the next one is released; never, if none is quarantined."""
        return min((each.until for each in self.nodes.values()), default=inf)

    def refused(
        self, node: str, why: str, now: float, first_s: float, *, chips: bool
    ) -> QuarantinedNode:
        """*node* refused a pod: quarantined, if it is not yet, and for how long.

        Pods that were on their way when it was quarantined do not count again.
        """
        known = self.nodes.get(node)
        lasts_s = self._lasts_s(node, now, first_s) if known is None else known.lasts_s
        since = now if known is None else known.since
        chips = chips and (known is None or known.chips)
        found = self.nodes[node] = QuarantinedNode(
            since, now + lasts_s, lasts_s, why, chips
        )
        return found

    def adopt(self, node: str, why: str, since: float, until: float) -> None:
        """*node* was quarantined by the scheduler before."""
        self.nodes[node] = QuarantinedNode(since, until, until - since, why)

    def _lasts_s(self, node: str, now: float, first_s: float) -> float:
        last = self._before.get(node)
        if last is None or now - last.until > last.lasts_s:
            return first_s
        return max(first_s, min(2 * last.lasts_s, MAX_QUARANTINE_S))

    def surplus(self, n_nodes: int) -> list[str]:
        """Those that have been quarantined longest, of more than may be at a time."""
        most = max(1, n_nodes // MAX_SHARE)
        return list(self.nodes)[: max(0, len(self.nodes) - most)]

    def due(self, now: float) -> list[str]:
        """Those whose time is over."""
        return [node for node, each in self.nodes.items() if each.until <= now]

    def release(self, node: str, now: float) -> None:
        """*node* takes pods again; should it refuse soon, it is for longer."""
        last = self.nodes.pop(node)
        self._before = {
            name: each
            for name, each in self._before.items()
            if now - each.until <= each.lasts_s
        }
        until = min(now, last.until)
        self._before[node] = QuarantinedNode(last.since, until, last.lasts_s, last.why)

    def forget(self, node: str) -> bool:
        """*node* has taken a pod, or is gone; whether it was quarantined."""
        self._before.pop(node, None)
        return self.nodes.pop(node, None) is not None

    def cleared_by(self, node: str, *, chips: bool) -> bool:
        """Whether a pod that runs on *node* shows that it takes pods again.

        One without chips says nothing of the chips.
        """
        known = self.nodes.get(node)
        return known is not None and (chips or not known.chips)


SPARE_CLOCKS: Final = 64
"""Times of jobs that count no more that are worth no tidying up."""
FIRST_S, MOST_S = 10.0, 600.0
"""How long a job rests after its first release, then twice so long; and at most."""


class Startup(Struct):
    """How far one job has come since it was bound."""

    since: float | None
    """From when on its time is counted; None while that is not known."""
    runs: frozenset[int] = NONE_OF_THEM
    """Pods that have run."""
    is_watched: bool = False
    """Whether it was ever said which pods run."""
    was_whole: bool = False
    again: frozenset[int] = NONE_OF_THEM
    """Pods that were bound and came back: they get no new time."""
    tries: int = 0
    """How often it was released since it was last whole."""
    refusals: int = 0
    """How often pods of it were refused since."""
    not_before: float = 0.0
    """When it may be placed again."""

    def rest(self, now: float, times: int) -> None:
        """It is not placed for a while, the *times*-th time, from 1."""
        self.not_before = now + min(FIRST_S * 2 ** min(times - 1, 30), MOST_S)


class PodsReadyWatch:
    """All jobs that were bound, by name."""

    def __init__(self) -> None:
        self._of: dict[str, Startup] = {}
        self.clocks: list[tuple[float, str]] = []
        """Since when, as a heap; some are whole by now, or have another time."""
        self.backoff: dict[str, JobState] = {}
        """Pending jobs that are not tried before a time."""
        self.quarantine = Quarantine()
        """The nodes that take no pods because they refused some."""

    def __getitem__(self, job: str) -> Startup:
        return self._of[job]

    def runs_of(self, job: str) -> Collection[int]:
        """The pods of *job* that are known to have run."""
        start = self._of.get(job)
        return () if start is None else start.runs

    def begin(self, job: str, now: float) -> None:
        """All pods of *job* are new; how often it was tried is not forgotten."""
        last, new = self._of.get(job), Startup(now)
        if last is not None:
            new.tries, new.refusals = last.tries, last.refusals
            new.not_before = last.not_before
        self._of[job] = new

    def adopt(self, job: str) -> None:
        """Pods of *job* are there that others bound; or it is heard of anew."""
        if job not in self._of:
            self._of[job] = Startup(None)

    def join(self, job: str, replicas: Collection[int], now: float) -> None:
        """Pods are bound to join *job*; they have their time, unless they had it."""
        start = self._of[job]
        fresh = {*replicas} - start.again
        start.again -= {*replicas}
        start.runs -= {*replicas}
        if fresh and start.since is not None:
            self._count_from(job, now)

    def came_back(self, job: str, replicas: Iterable[int]) -> None:
        """Pods of *job* were sent, and not taken."""
        start = self._of.get(job)
        if start is not None:
            start.again |= {*replicas}

    def refused(self, job: str, now: float) -> None:
        """Nodes refused pods of *job*: it goes elsewhere at once, and then rests."""
        start = self._of.setdefault(job, Startup(None))
        start.refusals += 1
        if start.refusals > 1:
            start.rest(now, start.refusals - 1)

    def run(
        self, job: str, replicas: Iterable[int], since: float | None, now: float
    ) -> Startup:
        """Pods of *job* run; since when others are bound, if that is known."""
        start = self._of.setdefault(job, Startup(None))
        start.runs = with_pods(start.runs, replicas)
        if not start.is_watched or start.since is None:
            start.is_watched = True
            if start.since is None:
                start.since = now if since is None else min(since, now)
            self._count_from(job, start.since)
        return start

    def is_whole(self, job_state: JobState) -> bool:
        """Whether all pods have run that a job cannot do without, once they have."""
        start = self[job_state.job.name]
        if not start.was_whole:
            ran = start.runs & job_state.placements.keys() | job_state.finished
            if len(ran) >= job_state.facts.effective_min:
                self.mark_whole(job_state.job.name)
        return start.was_whole

    def mark_whole(self, job: str) -> None:
        """All pods that *job* cannot do without have run; it is as if never tried."""
        start = self._of[job]
        start.was_whole = True
        start.tries = start.refusals = 0
        start.not_before = 0.0

    def forget(self, job: str) -> None:
        """*job* is gone for good."""
        self._of.pop(job, None)

    def not_before(self, job: str) -> float:
        """When *job* may be placed; at any time, unless it was released."""
        start = self._of.get(job)
        return 0.0 if start is None else start.not_before

    def due(self, now: float, within_s: float) -> list[str]:
        """The jobs that are not whole *within_s* after they were bound.

        They have as much time again from now on.
        """
        found = []
        while (first := self._first()) is not None and first[0] + within_s <= now:
            found.append(first[1])
            self._count_from(first[1], now)
        return found

    def next_at(self, within_s: float) -> float:
        """When the next one is due; never, if all are whole."""
        first = self._first()
        return inf if first is None else first[0] + within_s

    def _count_from(self, job: str, since: float) -> None:
        start = self._of[job]
        start.since = since
        if start.is_watched and not start.was_whole:
            heappush(self.clocks, (since, job))
        if len(self.clocks) > 2 * len(self._of) + SPARE_CLOCKS:
            # A standby never asks for the first of them, nor does anything else where
            # there is no limit.
            self.clocks = [each for each in {*self.clocks} if self._counts(*each)]
            heapify(self.clocks)

    def _first(self) -> tuple[float, str] | None:
        """The job whose time is over first, of those that are not whole."""
        while self.clocks and not self._counts(*self.clocks[0]):
            heappop(self.clocks)
        return self.clocks[0] if self.clocks else None

    def _counts(self, since: float, job: str) -> bool:
        start = self._of.get(job)
        watched = start is not None and start.is_watched and not start.was_whole
        return watched and start is not None and start.since == since
