"""Names of jobs as people know them: without the uids that Volcano adds."""

from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.names import NAMED, OF_PODS, UID


def known_as(cache: ClusterCache, name: str) -> str:
    """What people call a group.

    Volcano calls the PodGroup of a job by its name and its uid, and that of a pod, or
    of the pods of one owner, ``podgroup`` and a uid: those are called by their pods.
    """
    bare, group = UID.sub("", name), cache.gangs.get(name)
    if bare == name or group is None or not bare.endswith(OF_PODS):
        return bare
    keys = sorted(pod.key for pod in group.pods.values())
    if not keys:
        return name
    more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
    return f"pod {keys[0]}{more}"


def spoken(cache: ClusterCache, text: str) -> str:
    """*text* with the names that people know instead of those with a uid."""
    return NAMED.sub(lambda found: known_as(cache, found[0]), text)
