"""What was heard of the cluster and not read yet, in order."""

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from ringleaf.kube.event_handler import KINDS, Handler
from ringleaf.kube.objects import Pod
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.watch import Gone


class BufferedEvent(NamedTuple):
    """An object that was updated or deleted, and when."""

    at: float
    kind: str
    object: Any
    is_deleted: bool = False


class EventBuffer:
    """What was heard and not read yet; reflectors call its handlers."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.events: deque[BufferedEvent] = deque()
        self.chips: dict[str, str] = {}
        """Pod uid -> the annotation that names its chips, as soon as it was heard."""
        self.gone: set[str] = set()
        """Pods that are deleted somewhere in the buffer."""
        self.handlers = {
            kind: Handler(
                partial(self._on_update, kind), partial(self._on_delete, kind)
            )
            for kind in KINDS
        }

    def _on_update(self, kind: str, objects: Iterable[Any]) -> None:
        at = self._now()
        for each in objects:
            self.events.append(BufferedEvent(at, kind, each))
            if kind == "pods" and (text := _chips_text(each)) is not None:
                self.chips[each.metadata.uid] = text

    def _on_delete(self, kind: str, gone: Iterable[Gone]) -> None:
        at = self._now()
        for each in gone:
            self.events.append(BufferedEvent(at, kind, each, is_deleted=True))
            if kind == "pods":
                self.gone.add(each.uid)

    def forget(self, uid: str) -> None:
        """A pod is no more."""
        self.gone.discard(uid)
        self.chips.pop(uid, None)


def _chips_text(pod: Pod) -> str | None:
    """The annotation of a bound pod that names all its chips, if there is one."""
    if not pod.spec.node_name or not pod.metadata.annotations:
        return None
    with suppress(Exception):  # it is told where the pod is read
        record = PodState(pod, frozenset())
        return record.chip_text if record.requested and not record.is_unclear else None
    return None
