"""Which pods are on a node or on their way there, and which chips they name.

The engine lets the first of two pods hold a chip that both name. It hears of the other
again once the first gives the chip up.
"""

from typing import Final

from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.gang_members import named_chips
from ringleaf.kube.node_info import NodeInfo
from ringleaf.kube.pod_state import PodState
from ringleaf.model.topology import quoted

SEVERAL: Final = ""
"""In place of the uid of a pod: there is more than one."""


class NodePods:
    """The pods of every node."""

    def __init__(self, state: CacheState) -> None:
        self._state, self._on_node = state, state.on_node
        self._given_up: dict[str, dict[int, str]] = {}
        """Nodes of which pods named chips, or gave chips up -> chip -> which pod."""

    def of(self, node: str) -> list[PodState]:
        """The pods of a node."""
        return [self._state.pods[uid] for uid in self._on_node.get(node, ())]

    def add(self, pod: PodState, node: str) -> None:
        """A pod is on *node*, or on its way there."""
        self._on_node.setdefault(node, set()).add(pod.uid)

    def remove(self, pod: PodState, node: str) -> None:
        """A pod is no longer on *node*."""
        there = self._on_node.get(node)
        if there is not None:
            there.discard(pod.uid)
            if not there:
                del self._on_node[node]
            known = self._state.nodes.get(node)
            unclear = known is None or known.is_short or known.is_unclear
            if unclear or pod.requested != len(pod.chips or ()):
                self._state.deltas.nodes[node] = None

    def give_up(
        self,
        pod: PodState,
        before: tuple[str, tuple[int, ...]],
        after: tuple[str, tuple[int, ...]],
    ) -> None:
        """Chips are no longer a pod's: another that names them too has them now."""
        if before == after:
            return
        node, chips = before
        lost = {*chips} if node != after[0] else {*chips} - {*after[1]}
        if lost:
            losers = self._given_up.setdefault(node, {})
            for chip in lost:
                losers[chip] = SEVERAL if chip in losers else pod.uid

    def settle(self) -> None:
        """Look once at the pods of every node where chips were given up or named.

        Where two pods name one chip, the node is read anew: which of them holds another
        chip is unknown.
        """
        given_up, self._given_up = self._given_up, {}
        for node, losers in given_up.items():
            named = set[int]()
            for uid in sorted(self._on_node.get(node, ())):
                pod = self._state.pods.get(uid)
                place, own = ("", ()) if pod is None else named_chips(pod)
                if pod is None or place != node:
                    continue
                if any(losers.get(chip, uid) != uid for chip in own):
                    self._state.report_again(pod.job)
                if not named.isdisjoint(own):
                    self._state.deltas.nodes[node] = None
                named.update(own)

    def check_chips(self, pod: PodState) -> None:
        """Report a pod whose chips are not known."""
        if not pod.node or not (pod.requested or pod.chip_text):
            return
        node = self._state.nodes.get(pod.node)
        unclear = pod.is_unclear or (node is not None and _is_astray(pod, node))
        known = node is not None and (unclear or node.is_unclear or node.is_short)
        place, own = named_chips(pod)
        if known:
            self._state.deltas.nodes[pod.node] = None
        elif own:
            self._given_up.setdefault(place, {})
        message, found = "", quoted(pod.chip_text[:60])
        if unclear:
            message = (
                f"Pod {quoted(pod.key)} holds {pod.requested} "
                f"{pod.resource or 'parts of chips'} of node "
                f"{quoted(pod.node)}, its annotation says {found}, want the "
                "names of the chips; no chips of that node are given until it does"
            )
        elif pod.holds and not pod.requested:
            message = (
                f"Pod {quoted(pod.key)} asks for no chips, its annotation says "
                f"{found}, want none; it holds none; hint: take the annotation off"
            )
        self._state.problems.note("Pod", pod.namespace, pod.name, pod.uid, message)


def _is_astray(pod: PodState, node: NodeInfo) -> bool:
    """Whether a pod says that it holds chips which its node does not have."""
    return pod.holds and max(pod.chips or (0,)) >= node.node.chips
