"""Writes the state of an engine as a scenario that gives the same decisions.

Time is counted from the moment of the dump: what was before is negative. Of nodes,
only labels and resources are written that some job or queue refers to.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.engine.event import (
    ConfChanged,
    Event,
    JobArrived,
    LeavesChanged,
    NodesChanged,
    PodsEnding,
    QueueChanged,
)
from ringleaf.model.cluster import Node
from ringleaf.model.demand import Demand, Operator, Requirement
from ringleaf.model.job import Job
from ringleaf.model.placement import LeafAnnotation, LeafState, Placement
from ringleaf.model.queue import Queue
from ringleaf.model.uplinks import Leaf
from ringleaf.simulator import encode, encode_rules
from ringleaf.simulator.checks import MAX_NAME
from ringleaf.simulator.plain import whole
from ringleaf.simulator.records import placement

Plain = dict[str, Any]

ALWAYS: Final = frozenset({"cpu", "memory", "pods"})
"""Resources that are written even if no pod requests them."""
MOST: Final = 1_000_000
"""The largest number of a block or of a SuperPoD in a scenario."""
GRACE_S: Final = 30
"""Seconds that pods take to end, as usual on Kubernetes: longer than the scenario."""
NO_VALUE: Final = "(none)"
"""A value that no label has."""


NONE_ENDING: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType({})


class EngineState(Struct, frozen=True):
    """The state of an engine, from the events that it handled."""

    conf: Conf
    nodes: tuple[Node, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    queues: tuple[Queue, ...] = ()
    jobs: tuple[JobArrived, ...] = ()
    ending: Mapping[str, tuple[int, ...]] = NONE_ENDING

    @property
    def demands(self) -> Iterator[Demand]:
        """What pods ask, each once."""
        seen = dict.fromkeys(d for each in self.jobs for d in demands_of(each.job))
        return iter(seen)


def demands_of(job: Job) -> Iterator[Demand]:
    """What the pods of one job ask."""
    yield job.demand
    yield from (role.demand for role in job.roles)


def state_of(events: Iterable[Event]) -> EngineState:
    """The state that *events* tell, all of it."""
    listed = list(events)
    nodes: dict[str, Node] = {}
    for event in listed:
        if isinstance(event, NodesChanged):
            nodes |= {node.name: node for node in event.nodes}
    return EngineState(
        conf=[e.conf for e in listed if isinstance(e, ConfChanged)][-1],
        nodes=tuple(nodes.values()),
        leaves=tuple(
            x for e in listed if isinstance(e, LeavesChanged) for x in e.leaves
        ),
        queues=tuple(e.queue for e in listed if isinstance(e, QueueChanged)),
        jobs=tuple(e for e in listed if isinstance(e, JobArrived)),
        ending={e.job: e.replicas for e in listed if isinstance(e, PodsEnding)},
    )


def scenario_of(state: EngineState, now: float, about: str) -> Plain:
    """The scenario in which everything is as it was at *now*."""
    keys, resources = _labels(state), _resources(state)
    asked = ALWAYS | _asked(state)
    holders = _Holders(state)
    running = [
        _running(state, each, holders, now) for each in state.jobs if _runs(each)
    ]
    superpod = _superpods(state.nodes)
    return {
        "about": about,
        "grace-seconds": GRACE_S,
        "settings": encode_rules.settings(state.conf.settings),
        "configuration": encode_rules.configuration(state.conf),
        "queues": [encode_rules.queue(queue) for queue in state.queues],
        "leaves": encode.leaves(_stated(state)),
        "nodes": [
            _node(_with_none(node, asked), keys, resources, superpod)
            for node in state.nodes
        ],
        "running": running,
        "jobs": [_waiting(each, now) for each in state.jobs if not _runs(each)],
    }


def written(scenario: Plain) -> bytes:
    """The scenario as JSON, with a line for every node and job; it is YAML too."""
    parts = []
    for key, value in scenario.items():
        text = msgspec.json.encode(value).decode()
        if isinstance(value, list) and value:
            lines = ",\n".join(msgspec.json.encode(each).decode() for each in value)
            text = f"[\n{lines}\n]"
        parts.append(f"{msgspec.json.encode(key).decode()}: {text}")
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _runs(event: JobArrived) -> bool:
    return bool(event.placements)


def _waiting(event: JobArrived, now: float) -> Plain:
    entry = encode.job(_writable(event.job, now))
    if event.waiting_since is not None:
        entry["waiting-since"] = whole(event.waiting_since - now)
    return entry


def _running(
    state: EngineState, event: JobArrived, holders: "_Holders", now: float
) -> Plain:
    job = _writable(event.job, now)
    if job.critical and not job.preemptable:
        job = _held(job)
    marked = any(each.mark is not None for each in event.placements)
    if not marked and len(event.placements) == job.n_pods:
        job = replace(job, tor_affinity=None)  # its pods say nothing of their leaves
    entry = encode.job(job)
    started = now if event.started is None else event.started
    own = [_placement(each, job, holders) for each in event.placements]
    entry |= {"placements": own, "started": whole(started - now)}
    if event.job.name in state.ending:
        entry["ending"] = list(state.ending[event.job.name])
    return entry


def _held(job: Job) -> Job:
    """Return a job that stays where it is, without its constraints on nodes."""
    return replace(
        job,
        demand=_use(job.demand),
        roles=tuple(replace(role, demand=_use(role.demand)) for role in job.roles),
    )


def _use(demand: Demand) -> Demand:
    return replace(demand, required=(), terms=(), tolerations=(), prefers=(), spread=())


def _placement(given: Placement, job: Job, holders: "_Holders") -> Plain:
    block = given.block if given.block is None or given.block < MOST else None
    mark = given.mark
    if mark is None and job.job_type is not None:
        mark = LeafAnnotation()
    chips = holders.take(given)
    return placement(replace(given, chips=chips, block=block, mark=mark))


class _Holders:
    """The holder of each chip: the first pod that claims it, as in the engine."""

    def __init__(self, state: EngineState) -> None:
        self._sizes = {node.name: node.chips for node in state.nodes}
        self._taken: set[tuple[str, int]] = set()

    def take(self, placement: Placement) -> tuple[int, ...]:
        size = self._sizes[placement.node]
        own = tuple(
            chip
            for chip in placement.chips
            if chip < size and (placement.node, chip) not in self._taken
        )
        self._taken.update((placement.node, chip) for chip in own)
        return own


def _writable(job: Job, now: float) -> Job:
    """*job* with times from *now* on, and requirements that a file can have."""
    return replace(
        job,
        name=_short(job.name),
        created=job.created - now,
        demand=_possible(job.demand),
        roles=tuple(replace(role, demand=_possible(role.demand)) for role in job.roles),
    )


def _short(name: str) -> str:
    """A name that a file can have; ``namespace/name`` may be longer."""
    if len(name) <= MAX_NAME:
        return name
    return f"{name[: MAX_NAME - 9]}…{crc32(name.encode()):08x}"


def _possible(demand: Demand) -> Demand:
    """A requirement of one of no values is one that nothing meets."""
    if not demand.terms and not demand.prefers:
        return demand
    return replace(
        demand,
        terms=tuple(tuple(map(_met, term)) for term in demand.terms),
        prefers=tuple(
            replace(each, term=tuple(map(_met, each.term))) for each in demand.prefers
        ),
    )


def _met(given: Requirement) -> Requirement:
    empty = given.operator is Operator.IN and not given.values
    return replace(given, values=(NO_VALUE,)) if empty else given


# Nodes.


def _node(
    node: Node,
    keys: frozenset[str],
    resources: frozenset[str],
    superpod: Mapping[int, int],
) -> Plain:
    return encode.node(
        replace(
            node,
            labels={k: v for k, v in node.labels.items() if k in keys},
            resources={k: n for k, n in node.resources.items() if k in resources},
            superpod=None if node.superpod is None else superpod[node.superpod],
        )
    )


def _superpods(nodes: Iterable[Node]) -> dict[int, int]:
    """The numbers of SuperPoDs, smaller where they are too large for a file."""
    known = sorted({node.superpod for node in nodes if node.superpod is not None})
    small = all(number <= MOST for number in known)
    return {number: number if small else i for i, number in enumerate(known)}


def _labels(state: EngineState) -> frozenset[str]:
    """The labels of nodes that some pod refers to."""
    return frozenset(key for demand in state.demands for key in node_keys(demand))


def node_keys(demand: Demand) -> Iterator[str]:
    """The labels of nodes that *demand* refers to."""
    for term in (demand.required, *demand.terms, *(p.term for p in demand.prefers)):
        yield from (each.key for each in term)
    yield from (each.key for each in (*demand.near, *demand.apart))
    yield from (each.key for each in demand.spread)
    yield from (p.term.key for p in (*demand.prefers_near, *demand.prefers_apart))


def _resources(state: EngineState) -> frozenset[str]:
    """The resources that some pod asks for, or that a queue is limited in."""
    limited = {n for each in state.queues for n in (*each.capability, *each.guarantee)}
    return ALWAYS | limited | _asked(state)


def _asked(state: EngineState) -> set[str]:
    """The resources that some pod asks for."""
    return {name for demand in state.demands for name, _n in demand.resources}


def _with_none(node: Node, asked: Iterable[str]) -> Node:
    """*node*, saying that it has nothing of what is *asked* and it does not name."""
    if not node.lists_all:
        return node
    none = {name: 0 for name in sorted(asked) if name not in node.resources}
    return replace(node, resources={**node.resources, **none}, lists_all=False)


def _stated(state: EngineState) -> Iterator[Leaf]:
    """The leaves that have nodes.

    What an entry says of the state of a leaf stands instead of what pods there say, so
    it says both.
    """
    leaf_of = {node.name: node.leaf for node in state.nodes}
    shared = {
        leaf_of[placement.node]
        for each in state.jobs
        for placement in each.placements
        if placement.mark is not None and placement.mark.state is LeafState.SHARED
    }
    used = {*leaf_of.values()}
    for leaf in state.leaves:
        if leaf.name in used:
            busy = leaf.state is LeafState.EXCLUSIVE and leaf.name in shared
            yield replace(leaf, state=LeafState.SHARED) if busy else leaf
