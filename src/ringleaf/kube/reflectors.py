"""Everything that is watched in the API server: a reflector for each kind.

The handlers are those of ``ClusterCache``, or of an event buffer before one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ringleaf.kube import names, topology
from ringleaf.kube.api import Api
from ringleaf.kube.event_handler import Handlers
from ringleaf.kube.objects import (
    Budget,
    ConfigMap,
    NodeObject,
    Pod,
    PodGroup,
    PriorityClass,
    QueueObject,
    VolumeClaim,
)
from ringleaf.kube.status_writer import VOLCANO
from ringleaf.kube.watch import Reflector

Heed = Callable[[Sequence[Any]], None]


def reflectors(
    api: Api,
    handlers: Handlers,
    wake: Callable[[], None],
    trouble: Callable[[str], None],
) -> Iterator[Reflector[Any]]:
    """Reflectors for every kind, which call *handlers*, and *wake* whenever they do."""
    kinds: list[tuple[str, Any, str, str, bool]] = [
        ("/api/v1/nodes", NodeObject, "nodes", "", False),
        ("/api/v1/pods", Pod, "pods", "", False),
        (f"{VOLCANO}/podgroups", PodGroup, "podgroups", "", True),
        (f"{VOLCANO}/queues", QueueObject, "queues", "", True),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            PriorityClass,
            "priorityclasses",
            "",
            True,
        ),
        ("/apis/policy/v1/poddisruptionbudgets", Budget, "budgets", "", True),
        ("/api/v1/persistentvolumeclaims", VolumeClaim, "claims", "", True),
    ]
    called: dict[tuple[str, str], str] = {}
    name = f"fieldSelector=metadata.name%3D{topology.NAME}"
    maps = f"/api/v1/namespaces/{topology.NAMESPACE}/configmaps"
    kinds.append((maps, ConfigMap, "configmaps", name, False))
    called[maps, name] = f"configmaps/{topology.NAME}"
    for namespace, label in names.REPORTS:
        maps = f"/api/v1/namespaces/{namespace}/configmaps"
        query = f"labelSelector={label.replace('=', '%3D')}"
        kinds.append((maps, ConfigMap, "configmaps", query, False))
        called[maps, query] = f"configmaps/{namespace}/{label.partition('=')[0]}"
    for path, kind, what, query, optional in kinds:
        handler = handlers[what]
        yield Reflector(
            api,
            path,
            kind,
            query=query,
            put=_waking(handler.on_update, wake),
            drop=_waking(handler.on_delete, wake),
            listed=wake,
            optional=optional,
            name=called.get((path, query), ""),
            trouble=trouble,
            unread=handler.on_unreadable,
        )


def _waking(heed: Heed, wake: Callable[[], None]) -> Heed:
    def heard(objects: Sequence[Any]) -> None:
        heed(objects)
        wake()

    return heard
