"""Deciding jobs over the one cluster. Start reading here: ``Session.decide``."""

from msgspec.structs import replace

from ringleaf.framework.preference import Preference
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Decision, Placed, Placement, Waiting
from ringleaf.model.job import Job
from ringleaf.model.product import Mode
from ringleaf.model.settings import Settings
from ringleaf.policies.admission import admit, is_legal
from ringleaf.policies.chips import written_order
from ringleaf.policies.fit import (
    FITS,
    Request,
    capacity,
    need_words,
    node_reasons,
    reach,
    reason_counts,
    request_of,
)


class Session:
    """Decides jobs one after the other; each sees what the earlier ones took."""

    def __init__(self, cluster: Cluster, settings: Settings | None = None) -> None:
        self.cluster = cluster
        self.settings = settings or Settings()
        self._preferences: dict[Request, Preference] = {}

    def decide(self, job: Job) -> Decision:
        """Admit, choose nodes and chips replica by replica, keep all or nothing."""
        if job.name in self.cluster.holdings:
            raise ValueError(f"job {job.name!r} holds chips already")
        if (never := admit(job, self.settings)) is not None:
            return never
        request = request_of(job)
        preference = self._preference(request)
        placements: list[Placement] = []
        with Statement(self.cluster) as statement:
            for replica in range(job.replicas):
                if (node := preference.best()) is None:
                    break
                chips = self._take(statement, job, request, node)
                placements.append(Placement(replica, self.cluster.names[node], chips))
            else:
                statement.commit()
                return Placed(job, tuple(placements), warnings_of(job))
        return self._waiting(job, request, job.replicas - len(placements))

    def _preference(self, request: Request) -> Preference:
        preference = self._preferences.get(request)
        if preference is None:
            preference = Preference(self.cluster, request)
            self._preferences[request] = preference
        return preference

    def _take(
        self, statement: Statement, job: Job, request: Request, node: int
    ) -> tuple[int, ...]:
        """Choose chips of *node* and hold them in the same breath (D18)."""
        cluster = self.cluster
        usable = cluster.free.item(node) & reach(cluster, request).item(node)
        taken = request.table.taken(usable)
        statement.allocate(job.name, node, taken)
        return written_order(request.row, taken)

    def _waiting(self, job: Job, request: Request, missing: int) -> Waiting:
        reasons = node_reasons(self.cluster, request)
        fitting = int((reasons == FITS).sum())
        hint = self._enough(job, request, missing)
        counts = reason_counts(reasons)
        return Waiting(job, missing, fitting, counts, hint, warnings_of(job))

    def _enough(self, job: Job, request: Request, missing: int) -> str:
        """What would have been enough, and what fits now instead."""
        room = f"room for {missing} more pods, each with " if missing > 1 else ""
        hint = f"enough would be {room}{need_words(request)}"
        smaller = (replace(job, chips=n) for n in reversed(range(1, job.chips)))
        fewer = replace(job, replicas=max(1, job.replicas - missing))
        for other in (*smaller, fewer):
            if is_legal(other, self.settings) and self._fits_now(other):
                return f"{hint}; {other.wanted} would be placed now"
        return hint

    def _fits_now(self, job: Job) -> bool:
        return capacity(self.cluster, request_of(job)) >= job.replicas


def warnings_of(job: Job) -> tuple[str, ...]:
    """What of *job* has no effect on its product."""
    cards = Mode.CARD in job.product.rules
    warnings = []
    if job.strategy is not None and not cards:
        warnings.append(f"strategy has no effect on {job.product.key}")
    if job.distributed and not job.product.one_pod_when_distributed:
        warnings.append(f"distributed has no effect on {job.product.key}")
    return tuple(warnings)
