"""Why jobs are pending, written anew when it may no longer be so.

The engine looks at a pending job again only when that may help it, so what was written
of it grows old.
"""

import time
from typing import Final

from ringleaf.framework.job_state import JobState
from ringleaf.kube.decider import Decider
from ringleaf.kube.metrics import Metrics
from ringleaf.kube.status_writer import StatusWriter
from ringleaf.model.decision import Waiting

REFRESH_S: Final = 5.0
"""How long after a change the reasons of pending jobs are looked at again."""
REFRESH_COST_S: Final = 0.02
"""How long that may take at a time; the rest has its turn later."""


class PendingReasons:
    """The jobs of which it was written why they are pending.

    Args:
        decider: Decides, and explains.
        status_writer: Writes what users are told.
        metrics: Counts reasons.

    """

    def __init__(
        self, decider: Decider, status_writer: StatusWriter, metrics: Metrics
    ) -> None:
        self._decider, self._status_writer, self._metrics = (
            decider,
            status_writer,
            metrics,
        )
        self.jobs: dict[str, None] = {}
        """Jobs whose reasons were written."""
        self._stale: dict[str, None] = {}
        """Of those, the ones whose reasons may no longer be true."""
        self._seen = -1
        """The version of the cluster at which all reasons became stale."""
        self.refresh_at: float | None = None

    def changed(self, now: float) -> None:
        """Something has happened: look at the reasons again a little later."""
        if self.refresh_at is None and self.jobs:
            self.refresh_at = now + REFRESH_S

    def forget_engine(self) -> None:
        """The engine begins anew."""
        self._seen = -1

    def clear(self) -> None:
        """Others lead: what they write is theirs."""
        self.jobs.clear()
        self._stale.clear()
        self.refresh_at = None

    def refresh_if_due(self, now: float) -> None:
        """Write anew why some jobs are pending, if it is time."""
        if self.refresh_at is not None and self.refresh_at <= now:
            self.refresh(now)

    def refresh(self, now: float) -> None:
        """Write anew why some jobs are pending; others have their turn later."""
        version = self._decider.mind.view.cluster.version
        if self._seen != version:
            self._seen = version
            self._stale = dict.fromkeys(self.jobs)
        end = time.monotonic() + REFRESH_COST_S
        for name in list(self._stale):
            if time.monotonic() > end:
                break
            del self._stale[name]
            self._refresh_job(name)
        self.refresh_at = now + REFRESH_S if self._stale else None

    def _refresh_job(self, name: str) -> None:
        mind = self._decider.mind
        job_state = mind.view.job_states.get(name)
        if job_state is None or not _lacks_nodes(job_state):
            self.jobs.pop(name, None)
            return
        if job_state.history.why is not None:
            return  # it waits for its queue, not for nodes
        found = mind.explain(name, hints=False)
        if isinstance(found, Waiting):
            lacking = job_state.facts.effective_min - job_state.ready
            n_nodes = len(mind.view.cluster)
            self._metrics.waits(name, found.reasons, n_nodes, lacking)
            self._status_writer.waits(name, found.message)


def _lacks_nodes(job_state: JobState) -> bool:
    """Whether a job waits for nodes: for all its pods, or for some that it lacks."""
    runs = job_state.placements and not job_state.below_min_available
    return not (runs or job_state.job.podless)
