"""The queues, as they are and as their status says that they are used."""

from collections.abc import Iterable, Iterator
from typing import Final

from ringleaf.engine.event import Event, QueueChanged, QueueGone
from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.isolation import Isolation
from ringleaf.kube.objects import QueueObject
from ringleaf.kube.quantity import BadQuantity
from ringleaf.kube.quarantine import Culprit
from ringleaf.kube.queues import read_queue
from ringleaf.kube.watch import Gone
from ringleaf.model.queue import DEFAULT_QUEUE, Queue

ROOT_QUEUE: Final = "root"
"""The queue above all others; no job waits in it."""


class QueueStore:
    """Stores queues as reflectors tell of them.

    Args:
        state: What the stores of the cache share.
        isolation: Quarantines queues that fail to be stored.

    """

    def __init__(self, state: CacheState, isolation: Isolation) -> None:
        self._state, self._isolation = state, isolation
        self._queues: dict[str, Queue] = {}
        self.allocated: dict[str, tuple[str, ...]] = {}
        """Queue -> the resources of which its status says that they are used."""

    def on_update(self, queues: Iterable[QueueObject]) -> None:
        """Store queues that are new or changed."""
        self._isolation.store_each("Queue", queues, self._store)

    def on_delete(self, gone: Iterable[Gone]) -> None:
        """Forget queues that are gone."""
        for each in gone:
            self._isolation.forget("Queue", each)
            if self._queues.pop(each.name, None) is not None:
                self._state.deltas.queues[each.name] = None
            self.allocated.pop(each.name, None)
            self._state.queue_uids.pop(each.name, None)
            self._state.problems.forget("Queue", f"/{each.name}")

    def _store(self, queue: QueueObject) -> None:
        name = queue.metadata.name
        self.allocated[name] = tuple(queue.status.allocated or ())
        self._state.queue_uids[name] = queue.metadata.uid
        if name == ROOT_QUEUE:
            return
        try:
            found = read_queue(queue)
        except BadQuantity as error:
            problems = self._state.problems
            problems.note("Queue", "", name, queue.metadata.uid, str(error))
            return
        if self._queues.get(name) != found:
            self._queues[name] = found
            self._state.deltas.queues[name] = None
            self._isolation.changed(Culprit("Queue", name))

    def changes(self) -> Iterator[Event]:
        """What the engine is to hear of queues."""
        deltas = self._state.deltas
        marked, deltas.queues = deltas.queues, {}
        for name in marked:
            found = self._queues.get(name)
            if self._isolation.is_quarantined(Culprit("Queue", name)):
                continue
            if found is not None:
                yield QueueChanged(found)
            elif name == DEFAULT_QUEUE:
                yield QueueChanged(Queue(DEFAULT_QUEUE))
            else:
                yield QueueGone(name)

    def everything(self) -> Iterator[Event]:
        """All queues, as an engine hears of them that knows nothing."""
        for name, queue in self._queues.items():
            if not self._isolation.is_quarantined(Culprit("Queue", name)):
                yield QueueChanged(queue)
