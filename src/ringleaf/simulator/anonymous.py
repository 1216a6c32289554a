"""A state in which nothing has its name: nodes, jobs, queues, labels.

The same names become the same words, and names keep their order, since names decide
where everything else is equal. Products, resources, sizes and times stay.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.engine.event import JobArrived
from ringleaf.model.cluster import Node
from ringleaf.model.demand import (
    ANY_NAMESPACE,
    Demand,
    Operator,
    PodTerm,
    Requirement,
    Selector,
)
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.model.queue import DEFAULT_QUEUE, Queue
from ringleaf.model.run_time import NO_ORIGIN
from ringleaf.model.uplinks import Leaf
from ringleaf.simulator.dump import EngineState, node_keys

KNOWN_DOMAINS: Final = ("kubernetes.io", "k8s.io", "volcano.sh", "huawei.com")
KNOWN_KEYS: Final = frozenset(
    {
        *("metadata.name", "accelerator", "accelerator-type", "host-arch"),
        *("masterselector", "workerselector", "infer-card-type", "server-usage"),
    }
)
"""Labels that many clusters have; their keys tell nothing."""
KNOWN_VALUES: Final = frozenset(
    {
        *("accelerator", "accelerator-type", "host-arch", "kubernetes.io/arch"),
        *("kubernetes.io/os", "infer-card-type", "server-usage"),
    }
)
"""Labels whose values tell nothing either."""
ROOT: Final = "root"


class Names(Struct, frozen=True):
    """What everything is called instead."""

    nodes: Mapping[str, str]
    jobs: Mapping[str, str]
    queues: Mapping[str, str]
    namespaces: Mapping[str, str]
    leaves: Mapping[str, str]
    roles: Mapping[str, str]
    keys: Mapping[str, str]
    values: Mapping[str, str]
    steps: Mapping[str, str]
    used: frozenset[str] = frozenset()
    """Labels of nodes that some pod refers to."""
    numbers: frozenset[str] = frozenset()
    """Labels that are compared as numbers."""

    def value(self, key: str, value: str) -> str:
        """The value of a label."""
        if key in KNOWN_VALUES or key in self.numbers or not value:
            return value
        return self.nodes.get(value) or self.values.get(value, value)


def anonymous(state: EngineState) -> tuple[EngineState, Names]:
    """The state without names, and what they became."""
    names = _names(state)
    hidden = _Hidden(names)
    return (
        EngineState(
            conf=state.conf,
            nodes=tuple(map(hidden.node, state.nodes)),
            leaves=tuple(map(hidden.leaf, state.leaves)),
            queues=tuple(map(hidden.queue, state.queues)),
            jobs=tuple(map(hidden.arrived, state.jobs)),
            ending={names.jobs[job]: own for job, own in state.ending.items()},
        ),
        names,
    )


def _names(state: EngineState) -> Names:
    demands = list(state.demands)
    queues = {q.name for q in state.queues} | {e.job.queue for e in state.jobs}
    paths = [queue.hierarchy.split("/") for queue in state.queues]
    own = [n.leaf for n in state.nodes if n.leaf] + [x.name for x in state.leaves]
    pairs = [pair for d in demands for pair in _pairs(d)]
    used = {key for demand in demands for key in node_keys(demand)}
    for node in state.nodes:
        pairs += [(key, value) for key, value in node.labels.items() if key in used]
        pairs += [(taint.key, taint.value) for taint in node.taints]
    spaces = {d.namespace for d in demands}
    spaces |= {
        space for d in demands for term in _terms(d) for space in term.namespaces
    }
    roles = {role.name for each in state.jobs for role in each.job.roles}
    return Names(
        nodes=_table("node", (node.name for node in state.nodes)),
        jobs=_table("job", (each.job.name for each in state.jobs)),
        queues=_queue_names(queues),
        namespaces=_table("ns", spaces - {ANY_NAMESPACE}),
        leaves=_table("leaf", own),
        roles=_table("role", roles - {""}),
        keys=_table("label", {key for key, _v in pairs} | used, _is_known),
        values=_table("value", {value for _k, value in pairs} - {""}),
        steps=_table("group", {step for path in paths for step in path} - {"", ROOT}),
        used=frozenset(used),
        numbers=frozenset(_numbers(demands)),
    )


def _table(kind: str, names: Iterable[str], keep: object = None) -> Mapping[str, str]:
    """New names in the order of the old ones."""
    listed = sorted({*names})
    width = len(str(len(listed)))
    kept = keep if callable(keep) else lambda _name: False
    return MappingProxyType(
        {
            name: name if kept(name) else f"{kind}-{i:0{width}}"
            for i, name in enumerate(listed)
        }
    )


def _queue_names(names: Iterable[str]) -> Mapping[str, str]:
    """The default queue keeps its name; others stay before it, or after."""
    listed = {name for name in names if name != DEFAULT_QUEUE and " " not in name}
    before = _table("a-queue", (name for name in listed if name < DEFAULT_QUEUE))
    after = _table("queue", (name for name in listed if name > DEFAULT_QUEUE))
    return MappingProxyType({**before, **after})


def _is_known(key: str) -> bool:
    domain, slash, _name = key.partition("/")
    known = any(domain == each or domain.endswith(f".{each}") for each in KNOWN_DOMAINS)
    return key in KNOWN_KEYS or bool(slash and known)


def _requirements(demand: Demand) -> Iterable[Requirement]:
    """Everything that is required of a label, of a node or of a pod."""
    for term in (demand.required, *demand.terms, *(p.term for p in demand.prefers)):
        yield from term
    for pods in _terms(demand):
        yield from pods.selector or ()
    for spread in demand.spread:
        yield from spread.selector or ()


def _terms(demand: Demand) -> list[PodTerm]:
    preferred = (*demand.prefers_near, *demand.prefers_apart)
    return [*demand.near, *demand.apart, *(each.term for each in preferred)]


def _pairs(demand: Demand) -> Iterable[tuple[str, str]]:
    """Labels and their values, wherever they stand."""
    yield from demand.labels
    for each in _requirements(demand):
        yield each.key, ""
        yield from ((each.key, value) for value in each.values)
    for toleration in demand.tolerations:
        if toleration.key:
            yield toleration.key, toleration.value


def _numbers(demands: Iterable[Demand]) -> Iterable[str]:
    for demand in demands:
        for each in _requirements(demand):
            if each.operator in (Operator.GREATER, Operator.LESS):
                yield each.key


class _Hidden:
    """Nouns by their new names."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._demands: dict[Demand, Demand] = {}

    def node(self, node: Node) -> Node:
        names = self._names
        return replace(
            node,
            name=names.nodes[node.name],
            leaf=node.leaf and names.leaves[node.leaf],
            labels={
                names.keys[key]: names.value(key, value)
                for key, value in node.labels.items()
                if key in names.used
            },
            taints=tuple(
                replace(
                    taint,
                    key=names.keys[taint.key],
                    value=names.value(taint.key, taint.value),
                )
                for taint in node.taints
            ),
        )

    def leaf(self, leaf: Leaf) -> Leaf:
        name = self._names.leaves[leaf.name]
        return replace(leaf, name=name, address=leaf.address and name)

    def queue(self, queue: Queue) -> Queue:
        steps = self._names.steps
        path = "/".join(steps.get(step, step) for step in queue.hierarchy.split("/"))
        return replace(queue, name=self._queue_name(queue.name), hierarchy=path)

    def _queue_name(self, name: str) -> str:
        return self._names.queues.get(name, name)

    def arrived(self, event: JobArrived) -> JobArrived:
        placements = tuple(map(self._placement, event.placements))
        return replace(event, job=self._job(event.job), placements=placements)

    def _placement(self, given: Placement) -> Placement:
        role = given.role and self._names.roles.get(given.role)
        return replace(given, node=self._names.nodes[given.node], role=role)

    def _job(self, job: Job) -> Job:
        roles = self._names.roles
        return replace(
            job,
            name=self._names.jobs[job.name],
            queue=self._queue_name(job.queue),
            origin=NO_ORIGIN,
            demand=self._demand(job.demand),
            roles=tuple(
                replace(
                    role,
                    name=roles.get(role.name, ""),
                    demand=self._demand(role.demand),
                )
                for role in job.roles
            ),
        )

    def _demand(self, demand: Demand) -> Demand:
        found = self._demands.get(demand)
        if found is None:
            found = self._demands[demand] = self._hidden(demand)
        return found

    def _hidden(self, demand: Demand) -> Demand:
        names = self._names
        labels = {names.keys[k]: names.value(k, v) for k, v in demand.labels}
        return replace(
            demand,
            required=tuple(map(self._requirement, demand.required)),
            terms=tuple(tuple(map(self._requirement, t)) for t in demand.terms),
            tolerations=tuple(
                replace(
                    each,
                    key=each.key and names.keys[each.key],
                    value=names.value(each.key or "", each.value),
                )
                for each in demand.tolerations
            ),
            labels=tuple(sorted(labels.items())),
            namespace=names.namespaces[demand.namespace],
            near=tuple(map(self._pod_term, demand.near)),
            apart=tuple(map(self._pod_term, demand.apart)),
            spread=tuple(
                replace(
                    each,
                    key=names.keys[each.key],
                    selector=self._selector(each.selector),
                )
                for each in demand.spread
            ),
            prefers=tuple(
                replace(each, term=tuple(map(self._requirement, each.term)))
                for each in demand.prefers
            ),
            prefers_near=tuple(
                replace(each, term=self._pod_term(each.term))
                for each in demand.prefers_near
            ),
            prefers_apart=tuple(
                replace(each, term=self._pod_term(each.term))
                for each in demand.prefers_apart
            ),
        )

    def _requirement(self, given: Requirement) -> Requirement:
        names = self._names
        values = tuple(names.value(given.key, value) for value in given.values)
        return replace(given, key=names.keys[given.key], values=values)

    def _selector(self, given: Selector) -> Selector:
        return None if given is None else tuple(map(self._requirement, given))

    def _pod_term(self, given: PodTerm) -> PodTerm:
        names = self._names
        return replace(
            given,
            key=names.keys[given.key],
            selector=self._selector(given.selector),
            namespaces=tuple(names.namespaces.get(s, s) for s in given.namespaces),
        )
