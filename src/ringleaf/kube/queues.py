"""Volcano's Queue as the core's."""

from collections.abc import Mapping
from typing import Final

from ringleaf.kube import names
from ringleaf.kube.objects import Quantities, QueueObject
from ringleaf.kube.quantity import BadQuantity, resources
from ringleaf.model.queue import Queue
from ringleaf.model.topology import quoted

MOST_WEIGHT: Final = 65535
OPEN_STATES: Final = ("", "Open")
"""Without an admission webhook the state of a new queue is empty."""


def read_queue(queue: QueueObject) -> Queue:
    """The queue. Raises ``BadQuantity`` in one line."""
    name, spec = queue.metadata.name, queue.spec
    written = queue.metadata.annotations or {}
    guarantee = None if spec.guarantee is None else spec.guarantee.resource
    return Queue(
        name=name,
        weight=min(max(1, spec.weight), MOST_WEIGHT),
        capability=_amounts(name, "capability", spec.capability),
        guarantee=_amounts(name, "guarantee.resource", guarantee),
        reclaimable=spec.reclaimable is not False,
        priority=spec.priority,
        is_open=queue.status.state in OPEN_STATES,
        hierarchy=written.get(names.HIERARCHY, ""),
        hierarchy_weights=written.get(names.HIERARCHY_WEIGHTS, ""),
    )


def _amounts(queue: str, key: str, given: Quantities | None) -> Mapping[str, int]:
    try:
        found = resources(given)
    except BadQuantity as error:
        raise BadQuantity(f"Queue {quoted(queue)}: spec.{key}: {error}") from None
    low = [name for name, amount in found.items() if amount < 0]
    if low:
        what = f"spec.{key}[{quoted(low[0])}]"
        raise BadQuantity(f"Queue {quoted(queue)}: {what} is below 0, want 0 or more")
    return found
