"""The job with the smallest dominant share first.

A job's share is its part of the cluster, of the resource of which it has the largest
part. With ``enableHierarchy`` queues are fair among each other too: they form a tree
(``root/science/biology``), and at every fork the branch with less for its weight goes
first.

A branch counts what is below it, with two corrections. Branches that can take no more
are *sated* and go last: of something they have all they ask, or something they ask is
used up. And the branches that are not sated are scaled to the least of them, so that
one that got ahead through another resource does not hide that others go short.

Where we differ from Volcano: the share of a job that evicts is what it will have with
all pods that must start together, not with one pod more; and a queue without a place
in the tree is a branch of its own, of weight 1.

Source: Volcano ``pkg/scheduler/plugins/drf``; Bhattacharya and others, "Hierarchical
scheduling for diverse datacenter workloads", SoCC 2013.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import inf
from typing import ClassVar, Final

from ringleaf.config.arguments import Value
from ringleaf.framework.job_state import JobState, pod_amounts
from ringleaf.framework.plugin import Plugin, Victim
from ringleaf.framework.state import SchedulerState
from ringleaf.model.amounts import NONE, Amounts, add, plus
from ringleaf.model.queue import Queue

EQUAL: Final = 1e-6
"""Shares that differ by less are equal."""

ShareKey = tuple[tuple[bool, float], ...]


def share_of(amounts: Mapping[str, float], total: Amounts) -> float:
    """The largest part of *total* that *amounts* are.

    >>> share_of({"cpu": 2000, "memory": 1000}, {"cpu": 8000, "memory": 2000})
    0.5
    """
    return max(
        (amounts.get(r, 0) / n for r, n in total.items() if n and r in amounts),
        default=0.0,
    )


def is_no_more(one: float, other: float) -> bool:
    """Whether a share is less than another or as good as equal to it."""
    return one < other or abs(one - other) <= EQUAL


class Drf(Plugin):
    """Votes by shares of the cluster."""

    per_job: ClassVar[frozenset[str]] = frozenset({"Preemptable"})

    def __init__(self, view: SchedulerState, arguments: Mapping[str, Value]) -> None:
        super().__init__(view, arguments)
        self._version = -1
        self._keys: dict[str, ShareKey] = {}

    def job_order(self, job_state: JobState) -> float:
        """The smaller share first."""
        used = job_state.allocated
        return share_of(used, self.view.total) if used else 0.0

    def preemptable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """Pods of jobs that have no less without them than the evictor will have."""
        total = self.view.total
        own = share_of(_once_placed(evictor), total)
        left: dict[str, dict[str, int]] = {}
        chosen = []
        for victim, uses in zip(victims, self.uses(victims), strict=True):
            if victim.job not in left:
                left[victim.job] = dict(self.view.job_states[victim.job].allocated)
            add(left[victim.job], uses, -1)
            if is_no_more(own, share_of(left[victim.job], total)):
                chosen.append(victim)
        return chosen

    def queue_order(self, queue: Queue) -> ShareKey:
        """With ``enableHierarchy``: at every fork the branch with less first."""
        if self._version != self.view.version:
            self._version = self.view.version
            self._keys = tree_keys(self.view, {})
        return self._keys[queue.name]

    def reclaimable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """With ``enableHierarchy``: pods of queues that stay behind the evictor's.

        Each is looked at by itself, with the evictor placed and the victim gone.
        """
        view, own = self.view, evictor.job
        gained = {own.name: _once_placed(evictor)}
        chosen = []
        for victim, uses in zip(victims, self.uses(victims), strict=True):
            other = view.job_states[victim.job]
            lost = {own.name: gained[own.name], victim.job: _less(other, uses)}
            keys = tree_keys(view, lost)
            if keys[own.queue] < keys[other.job.queue]:
                chosen.append(victim)
        return chosen


def _less(job_state: JobState, uses: Amounts) -> dict[str, int]:
    """What a job uses once a pod that *uses* this much is gone."""
    left = dict(job_state.allocated)
    add(left, uses, -1)
    return left


def _once_placed(job_state: JobState) -> dict[str, int]:
    """What a job uses once the pods are placed for which it evicts others.

    Those that must start together; where they have a place, the next pod that lacks
    one.
    """
    used, least = job_state.allocated, job_state.facts.min_resources
    if any(used.get(name, 0) < amount for name, amount in least.items()):
        return {r: max(used.get(r, 0), least.get(r, 0)) for r in {**used, **least}}
    lacking = {*job_state.missing}
    for role, own in job_state.facts.role_ranks:
        if not lacking.isdisjoint(own):
            return plus(used, pod_amounts(job_state.job, role))
    return dict(used)


class _Branch:
    """A branch of the tree of queues, with the jobs and branches on it."""

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight
        self.branches: dict[str, _Branch] = {}
        self.jobs: list[_Branch] = []
        self.used: dict[str, float] = {}
        self.share = 0.0
        self.hungry = False
        self.sated = True

    def grow(self, queue: Queue) -> list["_Branch"]:
        """The branches that lead to *queue*, from below the root on."""
        steps = queue.hierarchy.split("/")[1:] or [f"/{queue.name}"]
        weights = queue.hierarchy_weights.split("/")[1:]
        weights += ["1"] * (len(steps) - len(weights))
        path, branch = [], self
        for step, weight in zip(steps, weights, strict=False):
            if step not in branch.branches:
                branch.branches[step] = _Branch(_weight(weight))
            branch = branch.branches[step]
            path.append(branch)
        return path

    def settle(self, total: Amounts) -> None:
        """Count what is on the branch, what is further out first."""
        for branch in self.branches.values():
            branch.settle(total)
        on_it = [*self.branches.values(), *self.jobs]
        hungry = [each.share for each in on_it if each.share and not each.sated]
        least = min(hungry, default=1.0)
        for each in on_it:
            scale = 1.0 if each.sated or not each.share else least / each.share
            for name, amount in each.used.items():
                self.used[name] = self.used.get(name, 0.0) + amount * scale
        self.share = share_of(self.used, total)
        self.sated = not self.hungry and all(each.sated for each in on_it)


def _weight(text: str) -> float:
    """A weight of the tree: at least 1, and 1 for what is no number.

    >>> [_weight(text) for text in ("2.5", "0", "", "heavy", "nan")]
    [2.5, 1.0, 1.0, 1.0, 1.0]
    """
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 1.0 <= weight < inf else 1.0


def _leaf(
    used: Amounts, asked: Amounts, total: Amounts, gone: AbstractSet[str]
) -> _Branch:
    """A job that uses something, on the tree."""
    leaf = _Branch()
    leaf.used = dict(used)
    leaf.share = share_of(used, total)
    leaf.sated = _is_sated(used, asked, gone)
    return leaf


def _is_sated(used: Amounts, asked: Amounts, gone: AbstractSet[str]) -> bool:
    """Whether a job can take no more: it has all of something, or something is gone."""
    return any(
        name in gone or used.get(name, 0) >= amount
        for name, amount in asked.items()
        if amount
    )


def tree_keys(
    view: SchedulerState, instead: Mapping[str, Amounts]
) -> dict[str, ShareKey]:
    """Where every queue stands in the tree; lower goes first.

    *instead* says what some jobs use, in place of what they use now.
    """
    root, total = _Branch(), view.total
    queues = {name: Queue(name) for name in view.queue_usage} | view.queues
    paths = {name: root.grow(queue) for name, queue in queues.items()}
    used = {
        name: amounts
        for name, each in view.job_states.items()
        if (amounts := instead.get(name, each.allocated))
    }
    sum_used: dict[str, int] = {}
    for amounts in used.values():
        add(sum_used, amounts)
    gone = {name for name, most in total.items() if sum_used.get(name, 0) >= most}
    if view.unnamed is not None:
        made = (each for each in view.job_states.values() if not each.job.podless)
        asked = (name for each in made for name in each.facts.total)
        gone |= {name for name in asked if name not in total}
    for name, job_state in view.job_states.items():
        branch = paths[job_state.job.queue][-1]
        if name in used:
            branch.jobs.append(_leaf(used[name], job_state.facts.total, total, gone))
        else:
            # Jobs that use nothing only say whether the branch wants more.
            branch.hungry |= not _is_sated(NONE, job_state.facts.total, gone)
    root.settle(total)
    return {
        name: tuple((each.sated, each.share / each.weight) for each in path)
        for name, path in paths.items()
    }
