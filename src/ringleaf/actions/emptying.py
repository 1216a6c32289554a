"""Which nodes, leaves or SuperPoDs are emptied first, so that a pending job fits.

Those with the fewest jobs for the nodes that they yield: nodes that fit a pod of the
pending job once all movable jobs have left them.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ringleaf.actions.moves import Mover
from ringleaf.framework.statement import Statement
from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Network
from ringleaf.model.uplinks import NOWHERE
from ringleaf.policies.chips import NEVER
from ringleaf.policies.fit import node_ranks, request_of


class Emptying:
    """Units of nodes that are emptied one after the other, the best first.

    Args:
        cluster: As it is.
        job: The pending job: nodes count that fit one pod of it.
        movers: The jobs that may go.
        unit: The unit of every node; ``NOWHERE`` for none.

    """

    def __init__(
        self, cluster: Cluster, job: Job, movers: Sequence[Mover], unit: Ints
    ) -> None:
        self._movers, self._unit = movers, unit
        request = request_of(job)
        self._open = node_ranks(cluster, request) != NEVER
        with Statement(cluster) as statement:
            for mover in movers:
                statement.drop(mover.job.name)
            self._able = node_ranks(cluster, request) != NEVER
        index = cluster.index
        pairs = [
            (index[node], i)
            for i, mover in enumerate(movers)
            for node in dict.fromkeys(p.node for p in mover.placements)
        ]
        both = np.array(pairs, np.int64).reshape(-1, 2)
        self._node, self._mover = both[:, 0], both[:, 1]
        self._cost = np.array([mover.cost for mover in movers], np.float64)
        self._gone = np.zeros(len(movers), np.bool_)
        self._n_units = int(unit.max(initial=-1)) + 1
        at = unit[self._node]
        inside = at != NOWHERE
        once = np.unique(
            np.stack([at[inside], self._mover[inside]]), axis=1
        )  # a job counts once in a unit
        self._at, self._job_at = once[0], once[1]

    @property
    def chosen(self) -> list[Mover]:
        """The jobs that go so far."""
        return [self._movers[i] for i in np.flatnonzero(self._gone).tolist()]

    @property
    def n_open(self) -> int:
        """The nodes that fit a pod then."""
        return int(self._open.sum())

    def advance(self) -> bool:
        """Empty one more unit; whether one was left that yields nodes."""
        left = ~self._gone[self._job_at]
        at, job_index = self._at[left], self._job_at[left]
        jobs = np.bincount(at, minlength=self._n_units)
        cost = np.bincount(at, self._cost[job_index], self._n_units)
        yields = self._able & ~self._open & (self._unit != NOWHERE)
        gained = np.bincount(self._unit[yields], minlength=self._n_units)
        (able,) = np.nonzero((gained > 0) & (jobs > 0))
        if not len(able):
            return False
        ratio = jobs[able] / gained[able]
        best = able[np.lexsort((able, cost[able], ratio))[0]]
        self._gone[job_index[at == best]] = True
        stays = np.bincount(
            self._node[~self._gone[self._mover]], minlength=len(self._open)
        )
        self._open |= self._able & (stays == 0)
        return True


def units_to_empty(cluster: Cluster, job: Job) -> Iterator[Ints]:
    """What may be emptied, the widest first where the network of *job* asks for it."""
    nodes = np.arange(len(cluster))
    if job.network is Network.SUPERPODS:
        yield numbered(cluster.superpod)
    elif job.replicas > 1 and cluster.leaves:
        yield cluster.leaf
    yield nodes


def numbered(given: Ints) -> Ints:
    """The same units, numbered from 0."""
    found = np.full(len(given), NOWHERE, np.int64)
    known = given != NOWHERE
    found[known] = np.unique(given[known], return_inverse=True)[1]
    return found
