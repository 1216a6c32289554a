"""PodDisruptionBudgets: pods that must not be disturbed are not evicted.

A job may be evicted only if every budget over some of its pods allows all of them to go
now. That is stricter than need be for a job that could give away a few pods; it never
asks for an eviction that the API server would refuse: that of a pod under two budgets,
for one, whatever they allow.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from ringleaf.kube.demand import MAX_REQUIREMENTS, BadPod, read_selector
from ringleaf.kube.isolation import Isolation
from ringleaf.kube.label_store import LabelStore
from ringleaf.kube.objects import Budget
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.watch import Gone
from ringleaf.model.demand import Operator, Selector, selects
from ringleaf.model.job import Job

MOST_WORK: Final = 100_000
"""Requirements and values that are held against the pods of one job.

A job under budgets that take more is not evicted.
"""


class _Known(NamedTuple):
    """A budget: the pods that it means, and how many of them may go now."""

    selector: Selector
    allowed: int

    @property
    def weight(self) -> int:
        """What it costs to hold it against one pod."""
        return 1 + sum(1 + len(each.values) for each in self.selector or ())


class _Namespace:
    """The budgets of one namespace, by the labels that they ask for."""

    def __init__(self) -> None:
        self.known: dict[str, _Known] = {}
        self._by_label: dict[tuple[str, str], dict[str, None]] = {}
        self._others: dict[str, None] = {}
        """Budgets that ask for no value of a label."""

    def put(self, key: str, budget: _Known) -> None:
        """A budget is new or changed."""
        self.drop(key)
        self.known[key] = budget
        for label in _labels(budget.selector):
            self._by_label.setdefault(label, {})[key] = None
        if not _labels(budget.selector):
            self._others[key] = None

    def drop(self, key: str) -> _Known | None:
        """A budget is gone; what it was."""
        budget = self.known.pop(key, None)
        self._others.pop(key, None)
        for label in () if budget is None else _labels(budget.selector):
            there = self._by_label[label]
            there.pop(key, None)
            if not there:
                del self._by_label[label]
        return budget

    def about(self, labels: Mapping[str, str]) -> Iterator[str]:
        """The budgets that may mean a pod with *labels*."""
        yield from self._others
        for label in labels.items():
            yield from self._by_label.get(label, ())


def _labels(selector: Selector) -> list[tuple[str, str]]:
    """Labels of which a pod must have one; none where another may do as well."""
    for each in selector or ():
        if each.operator is Operator.IN:
            return [(each.key, value) for value in dict.fromkeys(each.values)]
    return []


class Budgets:
    """The budgets of all namespaces."""

    def __init__(self) -> None:
        self._spaces: dict[str, _Namespace] = {}

    def put(self, budget: Budget) -> list[Selector]:
        """Add or replace a budget; the selectors of affected pods, if it differs."""
        metadata = budget.metadata
        space = self._spaces.setdefault(metadata.namespace, _Namespace())
        found = _Known(_selector(budget), budget.status.disruptions_allowed)
        before = space.known.get(metadata.key)
        if before == found:
            return []
        space.put(metadata.key, found)
        if before is None:
            return [found.selector]
        return list({before.selector, found.selector})

    def drop(self, key: str) -> list[Selector]:
        """Remove a budget; the selector of the pods it covered."""
        namespace = key.partition("/")[0]
        space = self._spaces.get(namespace)
        before = None if space is None else space.drop(key)
        if space is not None and not space.known:
            del self._spaces[namespace]
        return [] if before is None else [before.selector]

    def heeded(self, job: Job, pods: Iterable[PodState]) -> Job:
        """*job*, not to be evicted if that would break a budget."""
        listed = [pod for pod in pods if not pod.deleting]
        if not job.preemptable or not listed:
            return job
        space = self._spaces.get(listed[0].namespace)
        if space is None or _may_go(space, [pod.labels for pod in listed]):
            return job
        return replace(job, preemptable=False)


class BudgetStore:
    """Stores budgets as reflectors tell of them.

    Args:
        budgets: The budgets of all namespaces.
        labels: Pods by namespace.
        isolation: Quarantines budgets that fail to be stored.

    """

    def __init__(
        self, budgets: Budgets, labels: LabelStore, isolation: Isolation
    ) -> None:
        self._budgets, self._labels, self._isolation = budgets, labels, isolation

    def on_update(self, budgets: Iterable[Budget]) -> None:
        """Store budgets that are new or changed."""
        self._isolation.store_each("PodDisruptionBudget", budgets, self._store)

    def on_delete(self, gone: Iterable[Gone]) -> None:
        """Forget budgets that are gone."""
        for each in gone:
            self._isolation.forget("PodDisruptionBudget", each)
            self._labels.mark_selected(each.namespace, self._budgets.drop(each.key))

    def _store(self, budget: Budget) -> None:
        namespace = budget.metadata.namespace
        self._labels.mark_selected(namespace, self._budgets.put(budget))


def _selector(budget: Budget) -> Selector:
    """The pods that a budget means; all of them where it says too much, or nonsense."""
    try:
        found = read_selector("spec.selector", budget.spec.selector)
    except BadPod:
        return ()
    n_values = sum(len(each.values) for each in found or ())
    return () if n_values > MAX_REQUIREMENTS else found


def _may_go(space: _Namespace, pods: Iterable[Mapping[str, str]]) -> bool:
    """Whether pods with these labels may all go at once."""
    work, over = 0, Counter[str]()
    for labels in pods:
        n_budgets = 0
        for key in space.about(labels):
            budget = space.known[key]
            work += budget.weight
            if work > MOST_WORK:
                return False
            if selects(budget.selector, labels):
                n_budgets += 1
                over[key] += 1
                if n_budgets > 1 or over[key] > budget.allowed:
                    return False
    return True
