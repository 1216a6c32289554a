"""PodDisruptionBudgets: pods that must not be disturbed are not evicted.

A job may be evicted only if every budget over some of its pods allows all of them to go
now. That is stricter than need be for a job that could give away a few pods; it never
asks for an eviction that the API server would refuse: that of a pod under two budgets,
for one, whatever they allow.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from ringleaf.kube.demand import BadPod, read_selector
from ringleaf.kube.objects import Budget
from ringleaf.kube.pods import PodRecord
from ringleaf.model.demand import Selector, selects
from ringleaf.model.job import Job


class Budgets:
    """The budgets of all namespaces."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, tuple[Selector, int]]] = {}

    def put(self, budget: Budget) -> list[Selector]:
        """A budget is new or changed; whom it concerns, if it says something new."""
        metadata = budget.metadata
        own = self._known.setdefault(metadata.namespace, {})
        try:
            selector = read_selector("spec.selector", budget.spec.selector)
        except BadPod:
            selector = ()  # nobody knows whom it means: everybody
        found = selector, budget.status.disruptions_allowed
        before = own.get(metadata.key)
        if before == found:
            return []
        own[metadata.key] = found
        return [selector] if before is None else list({before[0], selector})

    def drop(self, key: str) -> list[Selector]:
        """A budget is gone; whom it concerned."""
        namespace = key.partition("/")[0]
        before = self._known.get(namespace, {}).pop(key, None)
        return [] if before is None else [before[0]]

    def heeded(self, job: Job, pods: Iterable[PodRecord]) -> Job:
        """*job*, not to be evicted if that would break a budget."""
        listed = [pod for pod in pods if not pod.deleting]
        if not job.preemptable or not listed:
            return job
        budgets = [*self._known.get(listed[0].namespace, {}).values()]
        over = [
            [selects(selector, pod.labels) for pod in listed]
            for selector, _allowed in budgets
        ]
        is_broken = any(
            sum(own) > allowed
            for own, (_selector, allowed) in zip(over, budgets, strict=True)
        )
        if is_broken or any(sum(own) > 1 for own in zip(*over, strict=True)):
            return replace(job, preemptable=False)
        return job
