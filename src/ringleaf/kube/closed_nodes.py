"""Nodes of which no chips are given: nothing but a name is known of a pod there."""

from ringleaf.kube.cache_state import Deltas
from ringleaf.kube.gang_members import is_held, nodes_of
from ringleaf.kube.gang_state import GangState


class ClosedNodes:
    """Pods that may hold any chips of their nodes."""

    def __init__(self, deltas: Deltas) -> None:
        self._deltas = deltas
        self._pods: dict[str, tuple[str, str]] = {}
        """Key of a pod -> its uid and its node."""

    def __bool__(self) -> bool:
        return bool(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def has(self, node: str) -> bool:
        """Whether no chips of a node are given."""
        return any(closed == node for _uid, closed in self._pods.values())

    def close(self, key: str, uid: str, node: str) -> None:
        """Give no chips of the node of a pod of which nothing else is known."""
        if node:
            self._pods[key] = uid, node
            self._deltas.nodes[node] = None

    def open(self, key: str) -> None:
        """A pod can be read, or is gone."""
        _uid, node = self._pods.pop(key, ("", ""))
        if node:
            self._deltas.nodes[node] = None

    def drop(self, key: str, uid: str) -> None:
        """A pod is gone."""
        if self._pods.get(key, ("",))[0] == uid:
            self.open(key)

    def close_all(self, gang: GangState) -> None:
        """What the pods of a gang hold is not known to be free."""
        for pod in gang.pods.values():
            if is_held(pod):
                self.close(pod.key, pod.uid, nodes_of(pod)[0])

    def open_all(self, gang: GangState) -> None:
        """The pods of a gang can be read again."""
        for pod in gang.pods.values() if self._pods else ():
            if self._pods.get(pod.key) == (pod.uid, nodes_of(pod)[0]):
                self.open(pod.key)
