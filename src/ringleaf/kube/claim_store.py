"""PersistentVolumeClaims: a pod waits until its claims are bound."""

from collections.abc import Iterable

from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.objects import VolumeClaim
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.watch import Gone
from ringleaf.model.topology import quoted


class ClaimStore:
    """The claims that are bound, and the pods that have claims."""

    def __init__(self, state: CacheState) -> None:
        self._state = state
        self._bound: set[str] = set()
        self._pods: dict[str, set[str]] = {}
        """Claim -> uids of the pods that have it."""

    def on_update(self, claims: Iterable[VolumeClaim]) -> None:
        """Store claims that are new or changed."""
        for each in claims:
            key = each.metadata.key
            if each.status.phase == "Bound":
                self._bound.add(key)
            else:
                self._bound.discard(key)
            self._state.mark_pods(self._pods.get(key, ()))

    def on_delete(self, gone: Iterable[Gone]) -> None:
        """Forget claims that are gone."""
        for each in gone:
            self._bound.discard(each.key)
            self._state.mark_pods(self._pods.get(each.key, ()))

    def add(self, pod: PodState) -> None:
        """A pod is new."""
        for claim in pod.claims:
            self._pods.setdefault(claim, set()).add(pod.uid)

    def remove(self, pod: PodState) -> None:
        """A pod is gone."""
        for claim in pod.claims:
            others = self._pods.get(claim, set()) - {pod.uid}
            if others:
                self._pods[claim] = others
            else:
                self._pods.pop(claim, None)

    def check(self, pod: PodState) -> None:
        """Note on a pending pod which of its claims it waits for."""
        if not pod.claims or not pod.is_pending:
            return
        told = f"pod {quoted(pod.name)} has unbound volume claims: "
        if pod.problem and not pod.problem.startswith(told):
            return  # it would stay, were they bound
        unbound = [claim for claim in pod.claims if claim not in self._bound]
        pod.problem = f"{told}{', '.join(unbound[:3])}" if unbound else ""
