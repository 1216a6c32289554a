"""What becomes of gangs whose pods were sent to their nodes.

A gang that was bound in part and cannot be completed is released: its pods are deleted
after a while, and it starts anew.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.metrics import Metrics
from ringleaf.kube.quarantine import Culprit
from ringleaf.kube.writers import Writers


class GangProgress:
    """Follows gangs from cycle to cycle.

    Args:
        cache: The objects of the cluster.
        writers: What writes to the API server.
        metrics: Counts what happens.
        say: Writes a line of the log.
        release_s: Seconds after which a gang that was bound in part is released.

    """

    def __init__(
        self,
        cache: ClusterCache,
        writers: Writers,
        metrics: Metrics,
        *,
        say: Callable[..., None],
        release_s: float,
    ) -> None:
        self._cache, self._binder = cache, writers.binder
        self._status_writer, self._repair_executor = (
            writers.status_writer,
            writers.repair_executor,
        )
        self._metrics, self._say = metrics, say
        self._release_s = release_s
        self.half_bound: dict[str, float] = {}
        """Gangs of which too few pods are bound, and since when."""

    def due(self) -> Iterator[float]:
        """When gangs are to be released."""
        return (since + self._release_s for since in self.half_bound.values())

    def follow(self, gang: GangState, now: float) -> None:
        """Report what changed of a gang; one that fails is quarantined."""
        try:
            self._follow(gang, now)
        except Exception as error:  # noqa: BLE001 - whatever it is
            culprit = Culprit("Job", gang.name)
            self._cache.isolation.set_aside([culprit], error)

    def _follow(self, gang: GangState, now: float) -> None:
        if gang.status.not_ready:
            self._status_writer.waits(gang.name, gang.status.not_ready)
        self._status_writer.group_changed(gang.name)
        if gang.is_half_bound:
            self.half_bound.setdefault(gang.name, now)
        else:
            self.half_bound.pop(gang.name, None)
        self._note_arrival(gang, now)
        self._repair_executor.finish(gang)

    def _note_arrival(self, gang: GangState, now: float) -> None:
        """Say when all pods that were sent are known to be on their nodes."""
        binding = gang.binding
        if binding.sent_at and gang.has_arrived:
            seconds = now - (binding.complete_since or binding.sent_at)
            gang.binding = replace(binding, complete_since=0.0, sent_at=0.0)
            self._metrics.time_to_bind_s.observe(seconds)
            pods, seconds = sum(p.holds for p in gang.pods.values()), round(seconds, 3)
            self._say("bound", job=gang.name, pods=pods, seconds=seconds)

    def release_due(self, now: float) -> None:
        """Release gangs that have been bound in part for long."""
        due = now - self._release_s
        for name in [name for name, since in self.half_bound.items() if since <= due]:
            self.release(name, now)

    def release(self, name: str, now: float) -> None:
        """Give up a gang that was bound in part and cannot be completed."""
        gang = self._cache.gangs.get(name)
        if gang is None or not gang.is_half_bound:
            del self.half_bound[name]
            return
        self.half_bound[name] = now  # released again if the deletions fail
        if any(pod.assumed is not None for pod in gang.pods.values()):
            return  # others are on their way, and may make it whole
        pods = [pod for pod in gang.pods.values() if pod.holds and not pod.deleting]
        bound = f"{len(pods)} of {gang.need} pods were bound"
        why = f"{bound}, and there is no node for the others"
        self._say("release", job=name, pods=len(pods), why=why)
        self._metrics.releases += 1
        self._status_writer.on_group(gang, "Released", why)
        self._binder.delete(pods)
