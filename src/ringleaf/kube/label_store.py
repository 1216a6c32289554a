"""The labels of pods that count for others, as pods come, change and go."""

from collections.abc import Iterable
from typing import Final

from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.gang_members import is_held
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.labels import Selected, selects_pods
from ringleaf.kube.pod_state import PodState
from ringleaf.model.demand import ANY_NAMESPACE, Selector, selects

RELABELLED: Final = 1_000
"""Gangs that the engine hears of again in one turn because their labels matter now."""


class LabelStore:
    """Pods by namespace, and which of their labels others select by."""

    def __init__(self, state: CacheState) -> None:
        self._state = state
        self.selected = Selected()
        self.in_namespace: dict[str, dict[str, PodState]] = {}
        """Namespace -> its pods by uid."""
        self._news: set[str] = set()
        """Namespaces where more labels of pods count than before."""
        self._left: dict[str, None] = {}
        """Uids of pods whose labels are to be counted anew."""

    def __bool__(self) -> bool:
        """Whether labels are to be counted anew."""
        return bool(self._left)

    def add(self, pod: PodState) -> None:
        """A pod is new."""
        self.in_namespace.setdefault(pod.namespace, {})[pod.uid] = pod
        self._news |= self.selected.add(pod.base)
        self.count(pod)

    def remove(self, pod: PodState) -> None:
        """A pod is gone."""
        self.selected.drop(pod.base)
        there = self.in_namespace[pod.namespace]
        there.pop(pod.uid, None)
        if not there:
            del self.in_namespace[pod.namespace]

    def expel(self, pod: PodState) -> None:
        """Forget a pod that may have been stored in part."""
        self.in_namespace.get(pod.namespace, {}).pop(pod.uid, None)

    def count(self, pod: PodState) -> bool:
        """Whether other labels of a pod count than before."""
        if not (self.selected or pod.demand.labels):
            return False
        return pod.count_labels(self.selected.of(pod.namespace, pod.labels))

    def recount(self) -> None:
        """Count the labels of pods anew in namespaces where more of them matter.

        The engine hears again of at most ``RELABELLED`` gangs in a turn for this.
        """
        news, self._news = self._news, set()
        if ANY_NAMESPACE in news:
            news = {*self.in_namespace}
        for namespace in sorted(news):
            self._left |= dict.fromkeys(self.in_namespace.get(namespace, ()))
        if not self._left:
            return
        n_again, gangs = 0, self._state.deltas.gangs
        left = iter(self._left)
        for uid in left:
            pod = self._state.pods.get(uid)
            if pod is None or not pod.labels or not self.count(pod):
                continue
            n_again += pod.job not in gangs
            gangs[pod.job] = None
            if n_again == RELABELLED:
                break
        self._left = dict.fromkeys(left)

    def must_wait(self, gang: GangState) -> bool:
        """Whether a gang waits until the labels of all others are counted."""
        return bool(self._left) and _starts_beside_others(gang)

    def mark_selected(self, namespace: str, selectors: list[Selector]) -> None:
        """Mark the gangs of which *selectors* select pods."""
        pods: Iterable[PodState] = ()
        if selectors:
            pods = self.in_namespace.get(namespace, {}).values()
        for pod in pods:
            if pod.ours and any(selects(each, pod.labels) for each in selectors):
                self._state.deltas.gangs[pod.job] = None


def _starts_beside_others(gang: GangState) -> bool:
    """Whether a gang holds nothing yet, and has requirements on other pods."""
    pods = gang.pods.values()
    return any(selects_pods(pod.base) for pod in pods) and not any(map(is_held, pods))
