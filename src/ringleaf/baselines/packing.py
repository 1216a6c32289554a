"""Packers that look at one node at a time and count chips.

They know neither rings nor leaves: a pod gets the lowest free chips of its node. Gangs
are placed pod by pod, all or none by the engine.
"""

from zlib import crc32

import numpy as np

from ringleaf.baselines.fitting import (
    LOOSE,
    Costs,
    FittingNodes,
    Spot,
    Spots,
    Wiring,
    cheapest,
)
from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Masks
from ringleaf.model.job import Job

FULL = 100
"""The highest score of one node, in kube-scheduler and in Volcano."""


def dice(seed: int, purpose: str, job: Job) -> np.random.Generator:
    """Dice for one decision: the same for the same seed, purpose and job."""
    words = (crc32(purpose.encode()), crc32(job.name.encode()))
    return np.random.default_rng(np.random.SeedSequence((seed, *words)))


class Packer:
    """One pod after the other on the node that costs least, then by name."""

    wiring: Wiring = LOOSE
    shape = ""

    def choose(self, fitting: FittingNodes, job: Job, pods: int) -> Spots | None:
        """Places for so many pods of *job*."""
        del job
        capacity = fitting.healthy
        return cheapest(
            fitting,
            pods,
            lambda at, usable: self.costs(fitting.asked, capacity[at], counts(usable)),
        )

    def costs(self, asked: int, capacity: Ints, free: Ints) -> Costs:
        """What nodes cost that have, and have free, so many chips."""
        raise NotImplementedError


def counts(usable: Masks) -> Ints:
    """How many chips each mask has."""
    return np.bitwise_count(usable).astype(np.int64)


class FirstFit(Packer):
    """The first node by name that has enough free chips."""

    def costs(self, asked: int, capacity: Ints, free: Ints) -> Costs:
        """All nodes alike."""
        del asked, capacity
        return np.zeros(len(free))


class BestFit(Packer):
    """The node with the fewest free chips that are enough."""

    def costs(self, asked: int, capacity: Ints, free: Ints) -> Costs:
        """Free chips."""
        del asked, capacity
        return free.astype(np.float64)


class WorstFit(Packer):
    """The node with the most free chips."""

    def costs(self, asked: int, capacity: Ints, free: Ints) -> Costs:
        """Free chips, upside down."""
        del asked, capacity
        return -free.astype(np.float64)


class Tied(Packer):
    """A packer that draws among nodes with the same score, as its model does."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def choose(self, fitting: FittingNodes, job: Job, pods: int) -> Spots | None:
        """Places for so many pods of *job*, the nodes shuffled before."""
        shuffled = dice(self._seed, type(self).__name__, job).permutation(
            len(fitting.nodes)
        )
        return super().choose(fitting.only(shuffled), job, pods)


class LeastAllocated(Tied):
    """The node of which the smallest share is in use: kube-scheduler's default."""

    def costs(self, asked: int, capacity: Ints, free: Ints) -> Costs:
        """The score upside down: what is free after the pod, of what there is.

        >>> LeastAllocated().costs(2, np.array([8, 8]), np.array([8, 4]))
        array([-75., -25.])
        """
        return -((free - asked) * FULL // capacity).astype(np.float64)


class MostAllocated(Tied):
    """The node of which the largest share is in use: kube-scheduler's bin packing."""

    def costs(self, asked: int, capacity: Ints, free: Ints) -> Costs:
        """The score upside down: what is used with the pod, of what there is.

        >>> MostAllocated().costs(2, np.array([8, 8]), np.array([8, 4]))
        array([-25., -75.])
        """
        return -((capacity - free + asked) * FULL // capacity).astype(np.float64)


class VolcanoBinpack(Tied):
    """Volcano's binpack with a weight on chips alone: the fullest node that fits."""

    def costs(self, asked: int, capacity: Ints, free: Ints) -> Costs:
        """The score upside down; it is not rounded, unlike kube-scheduler's."""
        return -(capacity - free + asked) * FULL / capacity


class Random:
    """Any node with enough free chips, each as likely as the others."""

    wiring: Wiring = LOOSE
    shape = ""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def choose(self, fitting: FittingNodes, job: Job, pods: int) -> Spots | None:
        """Places for so many pods of *job*, drawn pod by pod."""
        if fitting.room.sum() < pods:
            return None
        draw = dice(self._seed, "Random", job)
        usable, room = fitting.usable.copy(), fitting.room.copy()
        open_ = np.arange(len(room))
        found = []
        for _pod in range(pods):
            at = int(open_[draw.integers(len(open_))])
            taken = fitting.wiring.taken(fitting.request, usable.item(at))
            found.append(Spot(fitting.nodes.item(at), taken))
            usable[at] = usable.item(at) & ~taken
            room[at] -= 1
            if not room[at]:
                open_ = open_[open_ != at]
        return found
