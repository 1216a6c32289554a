"""The cluster over time as a film: the job that holds each node, still after still.

A still is taken at whole multiples of an interval. When there are as many as a film
holds, every second one is dropped and the interval doubles, so that a film takes the
same room however long the run is, and depends on nothing but the run. It ends when more
than twice the time has gone by in which jobs arrive: what is left then is a long tail.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from enum import IntEnum
from math import inf
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ringleaf.framework.instruction import Instruction, Report, Verdict
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.placement import Placement
from ringleaf.simulator.job_run import chips_of_job
from ringleaf.simulator.trial import JobSpec, SchedulingEngine, Trial

MOST_STILLS: Final = 240
"""Stills that a film holds at most."""
OF_ARRIVALS: Final = 3 / 4
"""Part of a film that is for the time in which jobs arrive; the rest is for after."""
NO_JOB: Final = -1

Grid = NDArray[np.integer[Any]]
"""A number for every still and node."""


class FilmNodeState(IntEnum):
    """How a node is."""

    WELL = 0
    PARTLY = 1
    """Some of its chips do not work."""
    OUT = 2
    """It is not ready, or gone."""


class Stills:
    """A film that can be looked at: rows are stills, columns are nodes.

    Args:
        owner: The job that has most chips of a node, by its place in the list of jobs
            and from 1; 0 is no job.
        used: Chips of it that jobs hold.
        health: How it is.

    """

    def __init__(self, owner: Grid, used: Grid, health: Grid) -> None:
        self.owner, self.used, self.health = owner, used, health

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def halved(self) -> "Stills":
        """Every second still."""
        return Stills(self.owner[::2], self.used[::2], self.health[::2])


class _Role:
    """A job while it is there."""

    __slots__ = ("chips", "name", "nodes", "number", "places")

    def __init__(self, spec: JobSpec, number: int) -> None:
        self.name, self.number = spec.job.name, number
        self.chips = chips_of_job(spec.job)
        self.nodes = 0
        """Nodes that it has had at once, at most."""
        self.places: dict[int, tuple[int, int]] = {}
        """Pod -> its node, and how many chips of it."""


class Film:
    """An observer that takes stills; ``plain`` gives them in few bytes.

    Args:
        most: Stills at most; even, 2 to 254.

    """

    def __init__(self, most: int = MOST_STILLS) -> None:
        assert most in range(2, 256, 2)  # runs are told in a byte
        self._most = most

    def begin(self, trial: Trial, scheduler: SchedulingEngine) -> None:
        """A run begins."""
        nodes, span = trial.site.nodes, trial.workload.span_s
        self._scheduler = scheduler
        self._nodes = nodes
        self._index = {node.name: i for i, node in enumerate(nodes)}
        self.interval_s = span / (self._most * OF_ARRIVALS) if span > 0 else 1.0
        self._end = 2 * self.interval_s * (self._most - 1) if span > 0 else inf
        self._next = 0.0
        self._taken: list[Stills] = []
        self._arrived = 0
        self._numbers: dict[str, int] = {}
        self._roles: dict[int, _Role] = {}
        self._seen: dict[int, _Role] = {}
        """The jobs of the stills."""
        self._holds: list[dict[int, int]] = [{} for _node in nodes]
        """Of every node, the jobs that hold chips of it, and how many."""
        self._changed: set[int] = set()
        self._owner = np.full(len(nodes), NO_JOB, np.int32)
        self._used = np.zeros(len(nodes), np.uint8)

    # Time.

    def passes(self, since: float, now: float) -> None:
        """From *since* to *now* everything was as it still is."""
        del since
        now = min(now, self._end)
        if self._next >= now:
            return
        still, before = self._still(), self.interval_s
        while self._next < now:
            self._taken.append(still)
            if len(self._taken) == self._most:
                self._taken = self._taken[::2]
                self.interval_s *= 2
            self._next = self.interval_s * len(self._taken)
        if self.interval_s != before:
            self._forget()

    def _still(self) -> Stills:
        for node in self._changed:
            holds = self._holds[node]
            self._owner[node] = min(
                holds, key=lambda job: (-holds[job], job), default=NO_JOB
            )
            self._used[node] = sum(holds.values())
        self._changed.clear()
        present = np.unique(self._owner[self._owner != NO_JOB]).tolist()
        self._seen |= {number: self._roles[number] for number in present}
        health = _health_of(self._nodes, self._scheduler.view.cluster)
        return Stills(self._owner[None].copy(), self._used[None].copy(), health[None])

    def _forget(self) -> None:
        """Drop the jobs that are on no still any more."""
        kept = {*np.unique([still.owner for still in self._taken]).tolist()}
        self._seen = {n: role for n, role in self._seen.items() if n in kept}

    def finish(self, now: float) -> None:
        """Nothing more happens."""

    # Jobs.

    def arrives(self, spec: JobSpec, now: float) -> None:
        """A job is submitted."""
        del now
        number = self._arrived
        self._arrived += 1
        self._numbers[spec.job.name] = number
        self._roles[number] = _Role(spec, number)

    def starts(
        self, spec: JobSpec, placements: Sequence[Placement], now: float
    ) -> None:
        """Pods of a job are placed."""
        del now
        role = self._roles[self._numbers[spec.job.name]]
        for each in placements:
            node = self._index.get(each.node)
            if node is not None:
                self._leave(role, each.replica)
                self._hold(role.number, node, len(each.chips))
                role.places[each.replica] = node, len(each.chips)
        role.nodes = max(role.nodes, len({node for node, _ in role.places.values()}))

    def stops(self, spec: JobSpec, pods: Sequence[int], why: str, now: float) -> None:
        """Pods of a job are gone before its end."""
        del why, now
        role = self._roles[self._numbers[spec.job.name]]
        for pod in pods:
            self._leave(role, pod)

    def loses(self, spec: JobSpec, seconds: float, now: float) -> None:
        """Work of a job is lost."""

    def ends(self, spec: JobSpec, now: float) -> None:
        """A job is over, and all its pods are gone."""
        del now
        self._drop(spec.job.name)

    def says(self, said: Instruction, now: float) -> None:
        """The scheduler has said something."""
        del now
        if isinstance(said, Report) and said.verdict is Verdict.INVALID:
            self._drop(said.job)

    def _drop(self, name: str) -> None:
        number = self._numbers.pop(name, None)
        if number is not None:
            role = self._roles.pop(number)
            for pod in [*role.places]:
                self._leave(role, pod)

    def _leave(self, role: _Role, pod: int) -> None:
        place = role.places.pop(pod, None)
        if place is not None:
            self._hold(role.number, place[0], -place[1])

    def _hold(self, number: int, node: int, by: int) -> None:
        holds = self._holds[node]
        left = holds.get(number, 0) + by
        if left:
            holds[number] = left
        else:
            holds.pop(number, None)
        self._changed.add(node)

    # What it comes to.

    def plain(self) -> dict[str, Any]:
        """The film as plain values; ``docs/report.md`` describes them."""
        groups = [_group_of(node) for node in self._nodes]
        named = {group: i for i, group in enumerate(dict.fromkeys(groups))}
        seen = sorted(self._seen)
        stills = _joined(self._taken, len(self._nodes))
        known = np.array([NO_JOB, *seen])
        owner = np.searchsorted(known, stills.owner).astype(np.uint32)
        return {
            "interval_s": self.interval_s,
            "nodes": [node.name for node in self._nodes],
            "chips": [node.chips for node in self._nodes],
            "groups": [[kind, name] for kind, name in named],
            "group": [named[group] for group in groups],
            "jobs": [
                [role.number, role.name, role.chips, role.nodes]
                for role in map(self._seen.__getitem__, seen)
            ],
            **packed(Stills(owner, stills.used, stills.health)),
        }


def _joined(taken: Sequence[Stills], n_nodes: int) -> Stills:
    none = np.zeros((0, n_nodes), np.int32)
    return Stills(
        np.concatenate([none, *(still.owner for still in taken)]),
        np.concatenate([none, *(still.used for still in taken)]),
        np.concatenate([none, *(still.health for still in taken)]),
    )


def _group_of(node: Node) -> tuple[str, str]:
    """What a node stands under, and its name; nothing, where nothing is known."""
    if node.leaf is not None:
        return "leaf", node.leaf
    return ("", "") if node.superpod is None else ("SuperPoD", str(node.superpod))


def _health_of(nodes: Sequence[Node], cluster: Cluster) -> Grid:
    """How every node is."""
    whole = np.bitwise_count(cluster.healthy) >= cluster.size
    found = np.where(
        cluster.ready,
        np.where(whole, FilmNodeState.WELL, FilmNodeState.PARTLY),
        FilmNodeState.OUT,
    )
    if [*cluster.index] == [node.name for node in nodes]:
        return found.astype(np.uint8)
    at = cluster.index
    listed = [found[at[n.name]] if n.name in at else FilmNodeState.OUT for n in nodes]
    return np.array(listed, np.uint8)


def packed(stills: Stills) -> dict[str, Any]:
    """Stills as runs, node by node: for how many stills it was as it was.

    ``runs``, ``used`` and ``health`` are bytes, ``owner`` are numbers of four bytes,
    the lowest first; all in base64.

    >>> still = np.array([[0, 7]])
    >>> packed(Stills(still, still, 0 * still))["owner"]
    'AAAAAAcAAAA='
    """
    n_stills, n_nodes = stills.owner.shape
    flat = [grid.T.ravel() for grid in (stills.owner, stills.used, stills.health)]
    new = np.zeros(n_stills * n_nodes, bool)
    new[:: n_stills or 1] = True
    for grid in flat:
        new[1:] |= grid[1:] != grid[:-1]
    (starts,) = new.nonzero()
    runs = np.diff([*starts.tolist(), len(new)])
    owner, used, health = (grid[starts] for grid in flat)
    return {
        "stills": n_stills,
        "runs": _text(runs, "u1"),
        "owner": _text(owner, "<u4"),
        "used": _text(used, "u1"),
        "health": _text(health, "u1"),
    }


def unpacked(film: Mapping[str, Any]) -> Stills:
    """The stills of what ``Film.plain`` gave.

    >>> still = np.array([[0, 7], [0, 8]])
    >>> film = {"nodes": ["a", "b"], **packed(Stills(still, still, 0 * still))}
    >>> unpacked(film).owner.tolist()
    [[0, 7], [0, 8]]
    """
    shape = len(film["nodes"]), film["stills"]
    runs = _array(film["runs"], "u1")
    owner, used, health = (
        np.repeat(_array(film[key], kind), runs).reshape(shape).T
        for key, kind in (("owner", "<u4"), ("used", "u1"), ("health", "u1"))
    )
    return Stills(owner, used, health)


def _text(values: Grid, kind: str) -> str:
    return b64encode(values.astype(kind).tobytes()).decode()


def _array(text: str, kind: str) -> Grid:
    return np.frombuffer(b64decode(text), kind)
