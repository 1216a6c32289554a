"""Deciding jobs over the one cluster. Start reading here: ``Session.decide``."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from ringleaf.framework.preference import Preference
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Decision, Placed, Placement, Reason, Waiting
from ringleaf.model.job import Job
from ringleaf.model.settings import Settings
from ringleaf.policies.admission import admit, is_legal, warnings_of
from ringleaf.policies.chips import written_order
from ringleaf.policies.fit import (
    FITS,
    Request,
    capacity,
    counted,
    need_words,
    node_reasons,
    reach,
    reason_counts,
    request_of,
)
from ringleaf.policies.superpods import best_in_superpods

MANY: Final = 64
"""A gang of this many replicas asks for room before it takes any."""


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
        if job.replicas >= MANY and not self._fits_now(job):
            return self._waiting(job, request)
        placements: list[Placement] = []
        with Statement(self.cluster) as statement:
            for replica in range(job.replicas):
                if (node := self._best(request)) is None:
                    break
                chips = self._take(statement, job, request, node)
                placements.append(Placement(replica, self.cluster.names[node], chips))
            else:
                statement.commit()
                return Placed(job, tuple(placements), warnings_of(job))
        return self._waiting(job, request)

    def _best(self, request: Request) -> int | None:
        """The node for the next replica."""
        if request.product.superpod:
            return best_in_superpods(self.cluster, request, self.settings.reserve_nodes)
        preference = self._preferences.get(request)
        if preference is None:
            preference = Preference(self.cluster, request)
            self._preferences[request] = preference
        return preference.best()

    def _take(
        self, statement: Statement, job: Job, request: Request, node: int
    ) -> tuple[int, ...]:
        """Choose chips of *node* and hold them in the same breath (D18)."""
        cluster = self.cluster
        usable = cluster.free.item(node) & reach(cluster, request).item(node)
        taken = request.table.taken(usable)
        statement.allocate(job.name, node, taken)
        return written_order(request.row, taken)

    def _waiting(self, job: Job, request: Request) -> Waiting:
        reasons = node_reasons(self.cluster, request)
        missing = job.replicas - capacity(self.cluster, request)
        counts = reason_counts(reasons)
        return Waiting(
            job=job,
            missing=missing,
            fitting=int((reasons == FITS).sum()),
            reasons=counts,
            hint="; ".join(self._ways_out(job, request, missing, counts)),
            warnings=warnings_of(job),
        )

    def _ways_out(
        self, job: Job, request: Request, missing: int, reasons: Mapping[Reason, int]
    ) -> Iterator[str]:
        """What would have been enough, and what fits now instead."""
        if reasons.get(Reason.OTHER_PRODUCT, 0) == len(self.cluster):
            yield f"no node is {job.product.key}"
        room = f"room for {counted(missing, 'more pod')}: " if job.replicas > 1 else ""
        network = " with a healthy network" if Reason.NETWORK_FAULTY in reasons else ""
        yield f"enough would be {room}{need_words(request)}{network}"
        smaller = (replace(job, chips=n) for n in reversed(range(1, job.chips)))
        fewer = replace(job, replicas=max(1, job.replicas - missing))
        for other in (*smaller, fewer):
            if is_legal(other, self.settings) and self._fits_now(other):
                yield f"{other.wanted} would be placed now"
                return

    def _fits_now(self, job: Job) -> bool:
        return capacity(self.cluster, request_of(job)) >= job.replicas
