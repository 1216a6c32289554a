"""Names of jobs as people know them: without the uids that Volcano adds."""

from ringleaf.kube.names import NAMED, OF_PODS, UID
from ringleaf.kube.world import World


def known_as(world: World, name: str) -> str:
    """What people call a group.

    Volcano calls the PodGroup of a job by its name and its uid, and that of a pod, or
    of the pods of one owner, ``podgroup`` and a uid: those are called by their pods.
    """
    bare, group = UID.sub("", name), world.groups.get(name)
    if bare == name or group is None or not bare.endswith(OF_PODS):
        return bare
    keys = sorted(pod.key for pod in group.pods.values())
    if not keys:
        return name
    more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
    return f"pod {keys[0]}{more}"


def spoken(world: World, text: str) -> str:
    """*text* with the names that people know instead of those with a uid."""
    return NAMED.sub(lambda found: known_as(world, found[0]), text)
