"""Writing ConfigMaps that are there or not."""

from collections.abc import Mapping
from urllib.parse import quote

from ringleaf.kube import encode
from ringleaf.kube.answers import Answer
from ringleaf.kube.api import Api


def config_maps_path(namespace: str) -> str:
    """Where the ConfigMaps of a namespace are.

    >>> config_maps_path("kube-system")
    '/api/v1/namespaces/kube-system/configmaps'
    """
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps"


async def patch_or_create(
    api: Api,
    namespace: str,
    name: str,
    changes: Mapping[str, str],
    everything: Mapping[str, str] | None = None,
) -> Answer:
    """Write *changes* of a ConfigMap, or *everything* where there is none.

    Raises ``Unreachable``.
    """
    path = config_maps_path(namespace)
    body = encode.encode({"data": changes})
    answer = await api.call(
        "PATCH", f"{path}/{name}", body, kind=encode.MERGE, lane="tell"
    )
    if not answer.is_missing:
        return answer
    plain = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": changes if everything is None else everything,
    }
    return await api.call("POST", path, encode.encode(plain), lane="tell")
