"""Nodes that are quarantined because they refused pods, and how long.

A node whose kubelet or device plugin refuses a pod is likely to refuse the next one, so
it takes none for a while: longer each time it refuses again soon after it was taken
back. Where many nodes refuse, the nodes are not what is wrong: of more than a part of
them, the ones that have been quarantined longest take pods again.
"""

from math import inf
from typing import Final

from msgspec import Struct

MOST_S: Final = 3600.0
"""How long a node is quarantined at most, unless the first time is longer already."""
MAX_SHARE: Final = 5
"""One of so many nodes may be quarantined at a time, at least one."""


class QuarantinedNode(Struct, frozen=True):
    """One node that is quarantined.

    Args:
        since: Since when.
        until: Until when, unless a pod runs there before.
        lasts_s: How long that was from the last refusal on.
        why: What was said of the pod that was refused.
        chips: Whether that pod asked for chips.

    """

    since: float
    until: float
    lasts_s: float
    why: str = ""
    chips: bool = True


class Quarantine:
    """The nodes that are quarantined, in the order in which they were."""

    def __init__(self) -> None:
        self.nodes: dict[str, QuarantinedNode] = {}
        """Those that are quarantined now."""
        self._before: dict[str, QuarantinedNode] = {}
        """Those that were taken back a while ago, by their last time."""

    @property
    def next_at(self) -> float:
        """When the next one is released; never, if none is quarantined."""
        return min((each.until for each in self.nodes.values()), default=inf)

    def refused(
        self, node: str, why: str, now: float, first_s: float, *, chips: bool
    ) -> QuarantinedNode:
        """*node* refused a pod: quarantined, if it is not yet, and for how long.

        Pods that were on their way when it was quarantined do not count again.
        """
        known = self.nodes.get(node)
        lasts_s = self._lasts_s(node, now, first_s) if known is None else known.lasts_s
        since = now if known is None else known.since
        chips = chips and (known is None or known.chips)
        found = self.nodes[node] = QuarantinedNode(
            since, now + lasts_s, lasts_s, why, chips
        )
        return found

    def adopt(self, node: str, why: str, since: float, until: float) -> None:
        """*node* was quarantined by the scheduler before."""
        self.nodes[node] = QuarantinedNode(since, until, until - since, why)

    def _lasts_s(self, node: str, now: float, first_s: float) -> float:
        last = self._before.get(node)
        if last is None or now - last.until > last.lasts_s:
            return first_s
        return max(first_s, min(2 * last.lasts_s, MOST_S))

    def surplus(self, n_nodes: int) -> list[str]:
        """Those that have been quarantined longest, of more than may be at a time."""
        most = max(1, n_nodes // MAX_SHARE)
        return list(self.nodes)[: max(0, len(self.nodes) - most)]

    def due(self, now: float) -> list[str]:
        """Those whose time is over."""
        return [node for node, each in self.nodes.items() if each.until <= now]

    def release(self, node: str, now: float) -> None:
        """*node* takes pods again; should it refuse soon, it is for longer."""
        last = self.nodes.pop(node)
        self._before = {
            name: each
            for name, each in self._before.items()
            if now - each.until <= each.lasts_s
        }
        until = min(now, last.until)
        self._before[node] = QuarantinedNode(last.since, until, last.lasts_s, last.why)

    def forget(self, node: str) -> bool:
        """*node* has taken a pod, or is gone; whether it was quarantined."""
        self._before.pop(node, None)
        return self.nodes.pop(node, None) is not None

    def cleared_by(self, node: str, *, chips: bool) -> bool:
        """Whether a pod that runs on *node* shows that it takes pods again.

        One without chips says nothing of the chips.
        """
        known = self.nodes.get(node)
        return known is not None and (chips or not known.chips)
