"""What failed while it was read or decided is set aside, and everything else goes on.

A failure here is a bug of ours, or input that no reader foresaw. Its culprit is tried
again after a pause that doubles, or a moment after it has changed.

After a failure of the engine another one begins, which takes seconds where there are
many pods. So the pause is at least ``REST`` times as long. A namespace for which that
took ``MOST_SPENT_S`` lately is set aside as a whole: any number of its jobs may fail.
"""

import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import starmap
from types import TracebackType
from typing import Any, Final, NamedTuple

from msgspec import Struct

from ringleaf.actions.queue_iterator import QueueIterator
from ringleaf.framework.job_state import JobState
from ringleaf.framework.repair import Repair
from ringleaf.framework.reservation import Reservation
from ringleaf.kube.backoff import backoff_s
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.jobs import namespace_of
from ringleaf.kube.pod_state import PodState
from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from ringleaf.model.queue import Queue

FIRST_S, MOST_S = 0.5, 300.0
"""The first and the longest pause until a culprit is tried again."""
REST: Final = 10
"""How much longer than an engine takes to begin is the pause until the next one may
have to, and the time in which no other does for the same namespace."""
MOST_SPENT_S: Final = 10.0
"""How long new engines may take to begin for the jobs of one namespace, lately."""
LATELY_S: Final = 300.0
LONGEST_S: Final = 3600.0
"""The longest pause of all."""
TOGETHER_S: Final = 30.0
"""Failures that are not longer apart may have the same culprit."""
KINDS: Final = (
    *("Job", "Namespace", "Node", "Queue"),
    *("Pod", "PodGroup", "PodDisruptionBudget", "ConfigMap"),
)
"""Kinds of what is set aside."""
RESTARTS: Final = ("Job", "Namespace", "Node", "Queue")
"""Kinds of which a failure may make another engine begin."""
MOST_TRACE: Final = 4000
"""Characters of a trace that are told: the last ones."""
MOST_LOCALS: Final = 200
"""Names of one function that are looked at."""


class Culprit(NamedTuple):
    """What a failure is about: a kind and a name or key."""

    kind: str
    key: str


class QuarantineEntry(Struct):
    """How long something is set aside, and why."""

    why: str
    failed_at: float
    until: float
    times: int = 1
    rest_s: float = 0.0
    """How long it is not tried again, whatever changes."""


class ObjectQuarantine:
    """What is set aside now."""

    def __init__(self) -> None:
        self._asides: dict[Culprit, QuarantineEntry] = {}
        self._last: tuple[float, frozenset[Culprit]] = 0.0, frozenset()
        self.failures: Counter[str] = Counter()
        """Kind of culprit -> failures so far."""
        self._cost_s = 0.0
        """How long the last engine took to begin."""
        self._spent: dict[str, list[tuple[float, float]]] = {}
        """Namespace -> when engines began because of its jobs, and how long it took."""
        self._blamed: tuple[Culprit, ...] = ()
        """Because of what the next one begins."""

    @property
    def asides(self) -> Mapping[Culprit, QuarantineEntry]:
        """Everything that is set aside, or was and has to show that it is well."""
        return self._asides

    def put(self, culprit: Culprit, why: str, now: float) -> QuarantineEntry:
        """Set something aside, longer each time."""
        self.failures[culprit.kind] += 1
        known = self._asides.get(culprit)
        times = 1 if known is None else known.times + 1
        rest = self._rest_of(culprit, now)
        pause = max(rest, backoff_s(FIRST_S, times - 1, MOST_S))
        found = self._asides[culprit] = QuarantineEntry(
            why, now, now + pause, times, rest
        )
        return found

    def _rest_of(self, culprit: Culprit, now: float) -> float:
        """How long to leave a culprit alone for what it costs if it fails again."""
        if culprit.kind not in RESTARTS:
            return 0.0
        cost = self._cost_s
        if culprit.kind == "Namespace":
            cost += self._spent_on(culprit.key, now)
        return min(REST * cost, LONGEST_S)

    def begun(self, cost_s: float, now: float) -> dict[Culprit, float]:
        """An engine has begun because of what was blamed last; how long it took.

        Returns until when that is left alone now.
        """
        self._cost_s = cost_s
        blamed, self._blamed = self._blamed, ()
        for namespace in _namespaces(blamed):
            self._spent.setdefault(namespace, []).append((now, cost_s))
        for namespace in [*self._spent]:
            if not self._spent_on(namespace, now):
                del self._spent[namespace]
        found = {}
        for culprit in blamed:
            aside = self._asides.get(culprit)
            if aside is not None:
                aside.rest_s = self._rest_of(culprit, now)
                aside.until = max(aside.until, now + aside.rest_s)
                found[culprit] = aside.until
        return found

    def _spent_on(self, namespace: str, now: float) -> float:
        """How long engines took to begin lately because of jobs of a namespace."""
        spent = self._spent.get(namespace, ())
        return sum(cost for at, cost in spent if now - at < LATELY_S)

    def spread(self, culprits: Iterable[Culprit], now: float) -> list[Culprit]:
        """*culprits*, with the namespaces whose jobs have made too many engines begin.

        Because of them the next one begins.
        """
        blamed = [*culprits]
        blamed += [
            Culprit("Namespace", namespace)
            for namespace in _namespaces(blamed)
            if self._spent_on(namespace, now) + self._cost_s > MOST_SPENT_S
        ]
        self._blamed = tuple(blamed)
        return blamed

    def of(self, culprit: Culprit, now: float) -> QuarantineEntry | None:
        """Why something is set aside; None where it is not, or is tried again."""
        found = self._asides.get(culprit)
        return found if found is not None and now < found.until else None

    def changed(self, culprit: Culprit, now: float) -> float | None:
        """Something has changed, and is tried again soon: when, if it is set aside.

        One that fails again and again waits a second more each time.
        """
        found = self._asides.get(culprit)
        if found is None or found.until <= now:
            return None
        pause = max(found.rest_s, found.times - 1)
        found.until = min(found.until, max(now, found.failed_at + pause))
        return found.until

    def n_aside(self, now: float) -> Counter[str]:
        """Kind -> how many of it are set aside now."""
        aside = [kind for (kind, _key), a in self._asides.items() if now < a.until]
        return Counter(aside)

    def forget(self, culprit: Culprit) -> None:
        """Something is gone."""
        self._asides.pop(culprit, None)

    def tidy(self, now: float) -> None:
        """Forget what has been well for long."""
        well = [k for k, each in self._asides.items() if each.until + MOST_S < now]
        for culprit in well:
            del self._asides[culprit]

    def blame(self, error: BaseException, now: float) -> list[Culprit]:
        """What *error* is about: of the innermost function that knows.

        Two failures one soon after the other are blamed on what both have in common,
        if there is such a thing: the first may have been blamed on something that the
        culprit was compared with. That two jobs are of one queue does not count, for
        both may be culprits; a queue is one if the innermost function knows it both
        times. Where that function has the name of a queue and nothing else, it is that
        queue; where no function knows more than the name of a job, it is that job.
        """
        if queue := _queue_by_name(error.__traceback__):
            return [Culprit("Queue", queue)]
        frames = [*_about(error.__traceback__)]
        nearest = next((found for found in reversed(frames) if found), frozenset())
        everything = nearest.union(*map(_jobs, frames))
        at, before = self._last
        self._last = now, everything
        common = everything & before if now - at < TOGETHER_S else frozenset()
        found = common or _jobs(nearest) or nearest
        return sorted(found or _job_by_name(error.__traceback__))


def _jobs(culprits: frozenset[Culprit]) -> frozenset[Culprit]:
    return frozenset(each for each in culprits if each.kind == "Job")


def _namespaces(culprits: Iterable[Culprit]) -> list[str]:
    """The namespaces of the jobs among *culprits*, each once."""
    jobs = (each.key for each in culprits if each.kind == "Job")
    return sorted({*map(namespace_of, jobs)})


def told(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def trace_of(error: BaseException) -> str:
    """Where an error happened, for the log."""
    return "".join(traceback.format_exception(error))[-MOST_TRACE:]


def _about(trace: TracebackType | None) -> Iterator[frozenset[Culprit]]:
    """For every function of a trace, outermost first, what it was busy with."""
    while trace is not None:
        found = [*trace.tb_frame.f_locals.values()][:MOST_LOCALS]
        yield frozenset(each for each in map(_culprit, found) if each and each.key)
        trace = trace.tb_next


def _queue_by_name(trace: TracebackType | None) -> str:
    """The name of a queue in the innermost function that knows any; else empty."""
    found = ""
    while trace is not None:
        known = [*trace.tb_frame.f_locals.items()][:MOST_LOCALS]
        if any(map(_culprit, (each for _name, each in known))):
            found = ""
        else:
            found = next(filter(None, starmap(_queue_name, known)), found)
        trace = trace.tb_next
    return found


def _job_by_name(trace: TracebackType | None) -> Iterator[Culprit]:
    """The job that the innermost function has the name of, that has any."""
    found = None
    while trace is not None:
        name = trace.tb_frame.f_locals.get("job")
        found = name if isinstance(name, str) else found
        trace = trace.tb_next
    if found is not None:
        yield Culprit("Job", found)


def _queue_name(name: str, value: object) -> str:
    if isinstance(value, QueueIterator):
        return value.queue
    return value if name == "queue" and isinstance(value, str) else ""


def _culprit(value: Any) -> Culprit | None:  # noqa: ANN401 - whatever a name stands for
    if isinstance(value, Node):
        return Culprit("Node", value.name)
    if isinstance(value, Queue):
        return Culprit("Queue", value.name)
    if isinstance(value, Job | Repair | GangState):
        return Culprit("Job", value.name)
    if isinstance(value, JobState | Reservation | PodState | Struct):
        job = getattr(value, "job", None)
        name = job.name if isinstance(job, Job) else job
        return Culprit("Job", name) if isinstance(name, str) else None
    return None
