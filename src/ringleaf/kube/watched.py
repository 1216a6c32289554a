"""Everything that is looked at in the API server: a reflector for each kind.

A listener has a ``put_…`` and a ``drop_…`` for every kind, as ``World`` does, and may
have an ``unread_…`` for objects that cannot be read.
"""

from collections.abc import Callable, Iterator
from typing import Any

from ringleaf.kube import names, topology
from ringleaf.kube.api import Api
from ringleaf.kube.objects import (
    Budget,
    Claim,
    ConfigMap,
    NodeObject,
    Pod,
    PodGroup,
    PriorityClass,
    QueueObject,
)
from ringleaf.kube.teller import VOLCANO
from ringleaf.kube.watch import Reflector

Heed = Callable[[list[Any]], None]


def reflectors(
    api: Api,
    listener: object,
    wake: Callable[[], None],
    trouble: Callable[[str], None],
) -> Iterator[Reflector[Any]]:
    """Reflectors that tell *listener* of every kind, and *wake* whenever they do."""
    kinds: list[tuple[str, Any, str, str, bool]] = [
        ("/api/v1/nodes", NodeObject, "nodes", "", False),
        ("/api/v1/pods", Pod, "pods", "", False),
        (f"{VOLCANO}/podgroups", PodGroup, "groups", "", True),
        (f"{VOLCANO}/queues", QueueObject, "queues", "", True),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            PriorityClass,
            "classes",
            "",
            True,
        ),
        ("/apis/policy/v1/poddisruptionbudgets", Budget, "budgets", "", True),
        ("/api/v1/persistentvolumeclaims", Claim, "claims", "", True),
    ]
    called: dict[tuple[str, str], str] = {}
    name = f"fieldSelector=metadata.name%3D{topology.NAME}"
    maps = f"/api/v1/namespaces/{topology.NAMESPACE}/configmaps"
    kinds.append((maps, ConfigMap, "maps", name, False))
    called[maps, name] = f"configmaps/{topology.NAME}"
    for namespace, label in names.REPORTS:
        maps = f"/api/v1/namespaces/{namespace}/configmaps"
        query = f"labelSelector={label.replace('=', '%3D')}"
        kinds.append((maps, ConfigMap, "maps", query, False))
        called[maps, query] = f"configmaps/{namespace}/{label.partition('=')[0]}"
    for path, kind, what, query, optional in kinds:
        put: Heed = getattr(listener, f"put_{what}")
        drop: Heed = getattr(listener, f"drop_{what}")
        yield Reflector(
            api,
            path,
            kind,
            query=query,
            put=_waking(put, wake),
            drop=_waking(drop, wake),
            listed=wake,
            optional=optional,
            name=called.get((path, query), ""),
            trouble=trouble,
            unread=getattr(listener, f"unread_{what}", lambda _key, _raw: None),
        )


def _waking(heed: Heed, wake: Callable[[], None]) -> Heed:
    def heard(objects: list[Any]) -> None:
        heed(objects)
        wake()

    return heard
