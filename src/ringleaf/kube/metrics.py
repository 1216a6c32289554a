"""What is counted as it happens, in plain numbers; ``page`` serves it.

Counting costs less than a microsecond: no locks, because there is one thread, and no
labels to look up. Whatever can be read off the state of the scheduler is not counted
here but read when the page is scraped.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from ringleaf.engine.event import Event, JobGone
from ringleaf.framework.instruction import Bind, Evict, Instruction, Report, Verdict
from ringleaf.framework.job_state import JobState
from ringleaf.model.decision import Reason

LANES: Final = ("bind", "lead", "read", "tell")
"""Pools of connections to the API server, without watches."""
NO_ANSWER: Final = 0
"""In place of a status."""
PREEMPT: Final = "preempt"


def powers(first: float, times: float, count: int) -> tuple[float, ...]:
    """Bounds of a histogram that grow by a factor.

    >>> powers(5, 2, 4)
    (5, 10, 20, 40)
    """
    return tuple(first * times**n for n in range(count))


FAST: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
"""Seconds of thinking."""
SLOW: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Seconds of requests and writes."""
LONG: Final = (
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    15.0,
    60.0,
    300.0,
    3600,
)
"""Seconds of waiting."""
CYCLE_MS: Final = powers(5, 2, 15)
JOB_MS: Final = powers(32, 2, 10)


class Histogram:
    """How many values lie below each of some bounds.

    >>> seen = Histogram((1, 2))
    >>> for value in (0.5, 1, 1.5, 9):
    ...     seen.observe(value)
    >>> list(seen.buckets()), seen.total
    ([(1, 2), (2, 3), (inf, 4)], 12.0)
    """

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """A value was seen, so many times."""
        self._counts[bisect_left(self._bounds, value)] += times
        self.total += value * times

    def copy(self) -> "Histogram":
        """Return a copy that later observations do not change."""
        found = Histogram(self._bounds)
        found._counts, found.total = [*self._counts], self.total
        return found

    def buckets(self) -> Iterator[tuple[float, int]]:
        """Each bound, and how many values are not above it."""
        bounds = (*self._bounds, float("inf"))
        return zip(bounds, accumulate(self._counts), strict=True)


class Metrics:
    """What has happened since the start."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int, str]] = Counter()
        """Verb, status, lane -> requests."""
        self.request_s = {lane: Histogram(SLOW) for lane in LANES}
        self.decision_s = Histogram(FAST)
        self.job_decision_s = Histogram(FAST)
        self.cycle_ms = Histogram(CYCLE_MS)
        self.bind_s = Histogram(SLOW)
        self.time_to_bind_s = Histogram(LONG)
        self.job_ms = Histogram(JOB_MS)
        self.task_ms = Histogram(CYCLE_MS)
        self.attempts: Counter[str] = Counter()
        self.evicted: Counter[str] = Counter()
        """Action -> pods that were asked to end."""
        self.refused: Counter[str] = Counter()
        """Action -> pods that were not granted."""
        self.preemptions = 0
        self.victims = 0
        self.conflicts = 0
        self.releases = 0
        self.problems: Counter[str] = Counter()
        self.failures = 0
        """Failures inside, whose culprits are set aside."""
        self.differences = 0
        """Times that the engine's state was not as the objects are."""
        self.rebuilds = 0
        """Times that the engine began anew from the objects."""
        self.n_heard = 0
        """Events that the engine has heard."""
        self.told: dict[str, str] = {}
        """Job -> what it was last told to wait for; some may wait no longer."""
        self.reloads: Counter[str] = Counter({"good": 0, "bad": 0})
        """Times the configuration was read again, by what came of it."""

    # The API server.

    def answered(self, verb: str, lane: str, status: int, seconds: float) -> None:
        """The API server has answered, or has not (``NO_ANSWER``)."""
        self.requests[verb, status, lane] += 1
        known = self.request_s.get(lane)
        if known is not None:
            known.observe(seconds)

    # Decisions.

    def heard(self, events: Iterable[Event]) -> None:
        """Something has happened: jobs that are gone wait for nothing."""
        for event in events:
            self.n_heard += 1
            if isinstance(event, JobGone):
                self.told.pop(event.job, None)

    def decided(
        self,
        said: Iterable[Instruction],
        job_states: Mapping[str, JobState],
        n_nodes: int,
        seconds: float,
    ) -> None:
        """The engine has thought for so long, and this is what it *said*."""
        self.decision_s.observe(seconds)
        decisions = 0
        for each in said:
            match each:
                case Bind():
                    decisions += 1
                    self.told.pop(each.job, None)
                case Evict():
                    self._evicts(each)
                case Report():
                    decisions += 1
                    self._reports(each, job_states.get(each.job), n_nodes)
        if decisions:
            self.job_decision_s.observe(seconds / decisions, decisions)

    def _evicts(self, each: Evict) -> None:
        self.evicted[each.action] += len(each.replicas)
        if each.action == PREEMPT:
            self.preemptions += 1
            self.victims = len(each.replicas)

    def _reports(self, each: Report, job_state: JobState | None, n_nodes: int) -> None:
        match each.verdict:
            case Verdict.CONFLICT:
                self.conflicts += 1
            case Verdict.INVALID:
                self.told[each.job] = "invalid"
            case Verdict.RESERVED:
                self.told[each.job] = "reserved"
            case Verdict.EVICTS:
                self.told[each.job] = "evicting"
            case Verdict.WAITING if job_state is not None:
                lacking = job_state.facts.effective_min - job_state.ready
                self.attempts["unschedulable"] += max(0, lacking)
                self.told[each.job] = cause_of(each.reasons, n_nodes, lacking)

    def waits(
        self, job: str, reasons: Mapping[Reason, int], n_nodes: int, lacking: int
    ) -> None:
        """A job was looked at again, and waits."""
        self.told[job] = cause_of(reasons, n_nodes, lacking)

    # What becomes of decisions.

    def sent(self, waited_s: float) -> None:
        """A job was decided, so long after it was made."""
        self.job_ms.observe(1000 * max(0.0, waited_s))

    def bound(self, since_made_s: float, since_sent_s: float) -> None:
        """A pod was bound, so long after it was made and after it was decided."""
        self.attempts["scheduled"] += 1
        self.task_ms.observe(1000 * max(0.0, since_made_s))
        self.bind_s.observe(since_sent_s)


def cause_of(reasons: Mapping[Reason, int], n_nodes: int, lacking: int) -> str:
    """What a job waits for, by why nodes were ruled out: the reason of most of them.

    Nodes of other products never count while there are others; of equal reasons the
    one that is nearer to fitting does. Where enough nodes fit, it is the network.

    >>> few, other = Reason.TOO_FEW_CHIPS, Reason.OTHER_PRODUCT
    >>> cause_of({other: 9, few: 2}, n_nodes=12, lacking=2)
    'too-few-chips'
    >>> cause_of({other: 9, few: 2}, n_nodes=16, lacking=2)
    'network'
    >>> cause_of({other: 9}, 9, 1), cause_of({}, 0, 1)
    ('other-product', 'other-product')
    """
    if n_nodes - sum(reasons.values()) >= max(1, lacking):
        return "network"
    counted = {r: n for r, n in reasons.items() if r is not Reason.OTHER_PRODUCT}
    order = list(Reason)
    found = max(counted, key=lambda r: (counted[r], order.index(r)), default=None)
    return (found or Reason.OTHER_PRODUCT).value
