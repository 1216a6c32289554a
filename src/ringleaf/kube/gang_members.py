"""The pods of a gang: which count as members now, and their numbers."""

from collections import Counter
from collections.abc import Container, Iterable
from itertools import chain, count
from typing import Final

from ringleaf.kube.gang_state import GangState
from ringleaf.kube.pod_state import PodPhase, PodState
from ringleaf.model.topology import quoted

NOT_BOUND: Final = " was not bound"
"""What is said of a pod that the API server refused to bind, after its name."""
MAX_NAMES: Final = 1 << 14
"""Names of pods whose numbers a gang remembers."""


class GangMembers:
    """The pods of a gang, sorted by what they are to it now."""

    def __init__(self, gang: GangState, nodes: Container[str], now: float) -> None:
        self.bound: list[PodState] = []
        """Pods that hold something, or are about to."""
        self.waiting: list[PodState] = []
        """Pods that can be placed."""
        self.lost = 0
        """Pods that are bound to nodes that are not there."""
        self.done = 0
        self.excluded = ""
        """Why some pod cannot be placed."""
        for pod in gang.pods.values():
            if pod.assumed is not None or pod.holds:
                if place_of(pod) in nodes:
                    self.bound.append(pod)
                else:
                    self.lost += 1
            elif pod.phase is PodPhase.DONE:
                self.done += 1
            elif pod.phase is not PodPhase.FAILED and not pod.deleting:
                self._sort(pod, now)

    def _sort(self, pod: PodState, now: float) -> None:
        if pod.phase is PodPhase.GATED:
            self.excluded = f"pod {quoted(pod.name)} has scheduling gates"
        elif pod.problem:
            self.excluded = pod.problem
        elif pod.not_before > now:
            why = f": {pod.bind_error}" if pod.bind_error else ""
            self.excluded = self.excluded or f"pod {quoted(pod.name)}{NOT_BOUND}{why}"
        else:
            self.waiting.append(pod)

    @property
    def there(self) -> int:
        """Pods that count as members."""
        return len(self.bound) + len(self.waiting) + self.lost + self.done


def members_of(
    gang: GangState, nodes: Container[str], now: float
) -> tuple[list[PodState], str]:
    """The pods that the engine is told of, and why not of others that wait."""
    if gang.is_alone and len(gang.pods) == 1:
        (pod,) = gang.pods.values()
        if pod.holds or pod.assumed is not None:
            return ([pod] if place_of(pod) in nodes else []), ""
    found = GangMembers(gang, nodes, now)
    bound, waits = found.bound, bool(found.waiting or found.excluded)
    if gang.podgroup is None and not gang.is_alone:
        told = f"there is no PodGroup {quoted(gang.name)}"
        return bound, told if waits else ""
    if found.there < gang.need and (waits or bound):
        there = f"{found.there} of {gang.need} pods are there (minMember)"
        return bound, found.excluded or f"pod group is not ready, {there}"
    if waits and (lacks := _lacking_task(gang, found.waiting)):
        return bound, found.excluded or f"pod group is not ready, {lacks}"
    return bound + found.waiting, found.excluded


def _lacking_task(gang: GangState, waiting: Iterable[PodState]) -> str:
    """The task that has too few pods to start with; none if all have enough.

    As in Volcano, tasks that need more than all of the group do not count.
    """
    least = gang.podgroup and gang.podgroup.spec.min_task_member
    if not least or sum(least.values()) > gang.need:
        return ""
    held = (p for p in gang.pods.values() if p.assumed or p.holds or p.succeeded)
    there = Counter(pod.role for pod in chain(held, waiting))
    for task, need in sorted(least.items()):
        if there[task] < need:
            told = f"{there[task]} of {need} pods of task {quoted(task)} are there"
            return f"{told} (minTaskMember)"
    return ""


def place_of(pod: PodState) -> str:
    """The node where a pod is, or is about to be."""
    return pod.node if pod.assumed is None else pod.assumed.node


def assign_numbers(gang: GangState, pods: Iterable[PodState]) -> None:
    """Give every pod its number: its rank, the one its name had, or a free one."""
    new = [pod for pod in pods if pod.number is None]
    if not new:
        return
    taken = {pod.number for pod in gang.pods.values() if pod.number is not None}
    for pod in new:
        if pod.rank is not None and pod.rank not in taken:
            pod.number = pod.rank
            taken.add(pod.rank)
    left = sorted(
        (pod for pod in new if pod.number is None),
        key=lambda pod: (pod.requested == 0, pod.order),
    )
    for pod in left:
        known = gang.numbers.get(pod.name)
        if known is not None and known not in taken:
            pod.number = known
            taken.add(known)
    free = (n for n in count() if n not in taken)
    for pod in left:
        if pod.number is None:
            pod.number = next(free)
    for pod in new:
        assert pod.number is not None
        gang.numbers.pop(pod.name, None)
        gang.numbers[pod.name] = pod.number
    while len(gang.numbers) > MAX_NAMES:  # some controllers make up new ones for ever
        del gang.numbers[next(iter(gang.numbers))]


def lead_of(pods: Iterable[PodState]) -> PodState:
    """The pod that speaks for all: the first, of those with chips if there are any."""
    return min(pods, key=lambda pod: (pod.requested == 0, pod.order))


def is_held(pod: PodState) -> bool:
    """Whether a pod holds something, or is about to."""
    return pod.assumed is not None or pod.holds


def nodes_of(pod: PodState) -> list[str]:
    """The node where a pod is or is about to be, and the one that it is bound to."""
    return [*([] if pod.assumed is None else [pod.assumed.node]), pod.node]


def named_chips(pod: PodState) -> tuple[str, tuple[int, ...]]:
    """The node of a pod and the chips that it names there; nothing without a node."""
    if pod.assumed is not None:
        return pod.assumed.node, tuple(pod.assumed.chips)
    return (pod.node, pod.chips or ()) if pod.holds else ("", ())
