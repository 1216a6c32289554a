"""Jobs that run already when the engine first hears of them, many at once.

An engine that begins hears of every pod that is bound, and most are jobs of their own.
What all of them need is looked up once, and the arrays of the cluster are written once.
"""

from ringleaf.engine.event import JobArrived
from ringleaf.framework.job_state import JobState
from ringleaf.framework.state import charged
from ringleaf.model.cluster import Cluster, Holding
from ringleaf.model.mask import mask_of
from ringleaf.model.owner import Owner
from ringleaf.model.placement import NO_MARK


class FoundJobs:
    """Jobs that were found running, and what their pods hold.

    Args:
        cluster: Where they run; it does not change while jobs are added.

    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.events: dict[str, JobArrived] = {}
        """By the name of the job."""
        self.held: list[tuple[Owner, Holding]] = []
        """Every job with what one of its pods holds."""
        self._taken: dict[int, int] = {}
        """Node -> its chips that pods hold, those of *events* among them."""

    def add(self, event: JobArrived) -> bool:
        """Whether a new job is one of them.

        It is not if its node is unknown, or another pod holds one of its chips.
        """
        if event.job.name in self.events:
            return False
        index, taken = self._cluster.index, self._taken
        new: dict[int, int] = {}
        for placement in event.placements:
            node = index.get(placement.node)
            if node is None:
                return False
            held = new.get(node, taken.get(node))
            held = self._cluster.taken.item(node) if held is None else held
            chips = mask_of(placement.chips)
            if chips & held:
                return False
            new[node] = held | chips
        taken |= new
        self.events[event.job.name] = event
        return True

    def hold(self, job_state: JobState, event: JobArrived) -> None:
        """The pods of a job hold what *event* says."""
        cluster, job, roles = self._cluster, job_state.job, job_state.facts.role_by_pod
        for placement in event.placements:
            asked = roles.get(placement.replica, job)
            node, chips = cluster.index[placement.node], mask_of(placement.chips)
            holding = Holding(
                node,
                chips,
                placement.replica,
                placement.mark or NO_MARK,
                asked.demand,
                charged(cluster, node, chips, asked),
            )
            self.held.append((job.name, holding))
            job_state.placements[placement.replica] = placement
