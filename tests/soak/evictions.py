"""Judge evictions: which jobs lost pods to which, and whether the rules allow it.

That an eviction was asked for, for which job and by which action, is in the schedulers'
logs; that it was carried out is in the API server's audit log. Priorities, queues and
chips are those of the pods themselves. No code is shared with the scheduler:

- ``preempt`` evicts in the same queue, and only jobs of a lower priority;
- ``reclaim`` evicts from another queue, and only while that queue holds more chips than
  its weight entitles it to: what others do not ask for may raise what a queue deserves,
  and nothing lowers it;
- a pod that says ``volcano.sh/preemptable: "false"`` is never evicted, and no pod is
  evicted for a job that no node can take;
- a pod is evicted only if a scheduler has said for which job.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

PREEMPT, RECLAIM = "preempt", "reclaim"
LAG_S: Final = 3.0
"""How long what happens may take to be seen by a watch on a busy machine."""


class Eviction(Struct, frozen=True):
    """A scheduler asks pods of one job to end for another."""

    at: float
    job: str
    pods: int
    by: str
    action: str


class Member(Struct, frozen=True):
    """What the pods of a job say of it."""

    priority: int
    queue: str
    chips: int
    """Chips of one pod."""
    guarded: bool
    """Whether its pods must not be evicted."""


class Usage:
    """Chips that queues hold and that nodes offer, over time."""

    def __init__(self) -> None:
        self._times: defaultdict[str, list[float]] = defaultdict(list)
        self._chips: defaultdict[str, list[int]] = defaultdict(list)

    def note(self, name: str, at: float, chips: int) -> None:
        """From *at* on it is *chips*."""
        self._times[name].append(at)
        self._chips[name].append(chips)

    def between(self, name: str, begin: float, end: float) -> list[tuple[float, int]]:
        """What it was at *begin*, and every change until *end*."""
        times, chips = self._times[name], self._chips[name]
        first, last = bisect_right(times, begin), bisect_right(times, end)
        before = [(begin, chips[first - 1] if first else 0)]
        return before + list(zip(times[first:last], chips[first:last], strict=True))


class Shares(Struct, frozen=True):
    """How queues share the chips of the cluster.

    Args:
        held: Queue -> the chips that its pods hold, over time.
        offered: Under ``""``, the chips that open nodes offer, over time.
        weights: Queue -> its weight, of all queues that have jobs.

    """

    held: Usage
    offered: Usage
    weights: Mapping[str, int]

    def entitled(self, queue: str, at: float) -> float:
        """The least that *queue* is entitled to about that time."""
        offered = self.offered.between("", at - LAG_S, at + LAG_S)
        weight = self.weights.get(queue, 0) / sum(self.weights.values())
        return min(chips for _at, chips in offered) * weight

    def held_before(
        self, one: Eviction, earlier: Iterable[Eviction], jobs: Mapping[str, Member]
    ) -> int:
        """The most that the queue of the evicted job held just before.

        What the watch told last, less what was evicted since then: at every moment of
        a few seconds about the eviction, and the largest of these.
        """
        queue = jobs[one.job].queue
        losses = [
            (each.at, each.pods * jobs[each.job].chips)
            for each in earlier
            if each.at >= one.at - LAG_S
            and each.job in jobs
            and jobs[each.job].queue == queue
        ]
        samples = self.held.between(queue, one.at - LAG_S, one.at + LAG_S)
        return max(
            chips - sum(lost for gone, lost in losses if gone > at)
            for at, chips in samples
        )


def violations(
    evictions: Sequence[Eviction],
    jobs: Mapping[str, Member],
    shares: Shares,
    impossible: Collection[str] = (),
) -> list[str]:
    """Evictions that no rule allows; *impossible* are jobs that no node can take."""
    ordered = sorted(evictions, key=lambda each: each.at)
    found = []
    for i, each in enumerate(ordered):
        recent = ordered[bisect_left(ordered, each.at - LAG_S, key=lambda e: e.at) : i]
        unknown = [name for name in (each.job, each.by) if name not in jobs]
        if unknown:
            why = f"{unknown[0]} has no pods"
        elif each.by in impossible:
            why = "no node can take that job"
        elif jobs[each.job].guarded:
            why = "its pods must not be evicted"
        elif each.action == PREEMPT:
            why = _against_preempt(jobs[each.job], jobs[each.by])
        elif each.action == RECLAIM:
            why = _against_reclaim(each, recent, jobs, shares)
        else:
            why = "there is no such action"
        if why:
            found.append(f"{each.action} evicted {each.job} for {each.by}: {why}")
    return found


def _against_preempt(victim: Member, evictor: Member) -> str:
    if victim.queue != evictor.queue:
        return f"the queues are {victim.queue} and {evictor.queue}"
    if victim.priority >= evictor.priority:
        return f"the priorities are {victim.priority} and {evictor.priority}"
    return ""


def _against_reclaim(
    one: Eviction,
    earlier: Sequence[Eviction],
    jobs: Mapping[str, Member],
    shares: Shares,
) -> str:
    queue = jobs[one.job].queue
    if queue == jobs[one.by].queue:
        return f"both are of queue {queue}"
    held = shares.held_before(one, earlier, jobs)
    entitled = shares.entitled(queue, one.at)
    if held > entitled:
        return ""
    return f"queue {queue} held {held} chips, it is entitled to {entitled:.0f}"


def unannounced(
    evicted: Iterable[str], asked: Iterable[Eviction], job_of: Mapping[str, str]
) -> Iterator[str]:
    """Pods that were evicted although no scheduler said for which job.

    Args:
        evicted: Pods whose eviction was carried out, once for each time.
        asked: What the schedulers said.
        job_of: Pod -> its job.

    """
    told = Counter[str]()
    for each in asked:
        told[each.job] += each.pods
    done = Counter(job_of.get(pod, f"pod {pod}") for pod in evicted)
    for job, times in sorted(done.items()):
        if times > told[job]:
            yield f"{times} pods of {job} were evicted, schedulers told of {told[job]}"
