"""Scenario files: a small cluster, its present state and jobs, written down.

Reading has three steps: text to plain values (``source``), plain values to the structs
of the ``format`` (types and unknown keys), structs to the nouns of the core (names,
products and chips that must exist). Every problem is one ``BadInput`` that names the
document and the path.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ringleaf.config.conf import NO_OTHERS, Conf, Others
from ringleaf.engine.event import JobArrived, PodsEnding, QueueChanged
from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.fault import RestartScope
from ringleaf.model.job import Job
from ringleaf.model.job_labels import TOR_AFFINITY, Schema
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import Placement
from ringleaf.model.product import Product
from ringleaf.model.queue import DEFAULT_QUEUE, Queue
from ringleaf.model.settings import DefaultAffinity, Settings
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.defaults import with_defaults
from ringleaf.policies.repair import survivors
from ringleaf.policies.validation import is_legal
from ringleaf.simulator.changes import completed
from ringleaf.simulator.event_context import EventContext
from ringleaf.simulator.events import read_then
from ringleaf.simulator.format import JobEntry, RoleEntry, RunningEntry, ScenarioEntry
from ringleaf.simulator.jobs import job_of
from ringleaf.simulator.nodes import (
    NodeGroup,
    leaves_of,
    lost_chips,
    node_groups,
    nodes_of,
    slots_of,
)
from ringleaf.simulator.rules import conf_of, queues_of, settings_of
from ringleaf.simulator.running_jobs import Stands, Tenants, read_tenants
from ringleaf.simulator.source import BadInput, brief, documents
from ringleaf.simulator.trial import TimedEvent
from ringleaf.simulator.wanted import read_entry

RUN_ONLY: Final = (
    *("queue", "priority", "estimate-seconds", "preemptable", "preempts"),
    *("user", "program", "run-time"),
    *("critical", "podless", "created", "started", "host-ports", "pod-labels"),
    *("movable", "restart-seconds", "checkpointed-at", "checkpoint-seconds"),
    *("namespace", "waiting-since", "ending"),
    *("pod-affinity", "pod-anti-affinity", "spread", "preferred-node-affinity"),
    *("preferred-pod-affinity", "preferred-pod-anti-affinity"),
)
"""Keys of jobs and roles that only the engine heeds, or the plugins it asks."""

NO_TIMES: Final[Mapping[str, float]] = MappingProxyType({})


class Scenario(Struct, frozen=True):
    """A document that was read and holds together.

    One that *is_run* has queues, a configuration or something that happens later, and
    goes through the engine; else its jobs are decided one after the other.
    """

    about: str | None
    settings: Settings
    nodes: tuple[Node, ...]
    leaves: tuple[Leaf, ...]
    running: Mapping[str, tuple[Placement, ...]]
    jobs: tuple[Job, ...]
    warnings: tuple[str, ...]
    queues: tuple[Queue, ...] = ()
    conf: Conf | None = None
    tenants: tuple[JobArrived, ...] = ()
    ending: tuple[PodsEnding, ...] = ()
    since: Mapping[str, float] = NO_TIMES
    then: tuple[TimedEvent, ...] = ()
    until: float = 0.0
    grace_s: float = 0.0
    is_run: bool = False

    @property
    def known_jobs(self) -> tuple[str, ...]:
        """The names of its jobs, in the order in which they come up."""
        later = (each.event for each in self.then)
        names = [
            *([arrived.job.name for arrived in self.tenants] if self.is_run else ()),
            *(job.name for job in self.jobs),
            *(event.job.name for event in later if isinstance(event, JobArrived)),
        ]
        return tuple(dict.fromkeys(names))

    def open(self) -> Session:
        """A session over a cluster in the state the scenario describes."""
        cluster = Cluster(self.nodes, self.leaves)
        with Statement(cluster) as statement:
            for arrived in self.tenants:
                _hold(statement, arrived.job, arrived.placements)
            for job in self.jobs:
                _hold(statement, job, self.still_running(cluster, job))
            statement.commit()
        return Session(cluster, self.settings)

    def still_running(self, cluster: Cluster, job: Job) -> Iterable[Placement]:
        """The pods of a job of which only the failed ones were deleted."""
        if job.previous is None or job.previous.scope is not RestartScope.POD:
            return ()
        if is_legal(job, self.settings):
            return survivors(cluster, job)
        return job.previous.placements


def _hold(statement: Statement, job: Job, placements: Iterable[Placement]) -> None:
    roles = job.role_by_pod
    for placement in placements:
        asked = roles.get(placement.replica, job)
        statement.hold_placement(job.name, placement, asked.demand)


def load(data: bytes, others: Others = NO_OTHERS) -> list[Scenario]:
    """The scenarios of a file's bytes; all of them, or one ``BadInput``.

    Configurations may name plugins of *others*.
    """
    found = documents(data)
    scenarios = []
    for number, document in enumerate(found, 1):
        where = f"document {number}: " if len(found) > 1 else ""
        try:
            scenarios.append(build(read_entry(completed(document)), others))
        except BadInput as error:
            raise BadInput(f"{where}{error}") from None
    return scenarios


def build(entry: ScenarioEntry, others: Others = NO_OTHERS) -> Scenario:
    """Turn one document into nouns of the core, checking what types cannot."""
    warnings: list[str] = []
    conf, settings = _rules(entry, warnings, others)
    groups = node_groups("nodes", entry.nodes)
    stands = Stands(
        sizes={name: group.chips for group in groups for name in group.names},
        leaf={n: g.entry.leaf for g in groups for n in g.names if g.entry.leaf},
        lost={name: lost_chips(group) for group in groups for name in group.names},
    )
    slots = slots_of(groups, settings.nodes_per_leaf)
    products = {group.product for group in groups}
    stood = {name: group.product for group in groups for name in group.names}
    assumed = _assumed(entry, stood, settings)
    tenants = read_tenants(entry, stands, settings, assumed)
    jobs = []
    for i, job in enumerate(entry.jobs):
        noun = job_of(f"jobs[{i}]", job, products, tenants.previous.get(job.name))
        jobs.append(with_defaults(noun, settings))
    warnings += _network_warnings(entry, groups, settings)
    held: Counter[str] = Counter()
    for placements in tenants.running.values():
        for placement in placements:
            held[placement.node] += mask_of(placement.chips)  # disjoint: joined
    nodes = tuple(node for group in groups for node in nodes_of(group, held, slots))
    scenario = Scenario(
        about=entry.about,
        settings=settings,
        nodes=nodes,
        leaves=tuple(leaves_of(entry.leaves)),
        running=tenants.running,
        jobs=tuple(jobs),
        warnings=(),
    )
    context = EventContext(
        nodes={node.name: node for node in scenario.nodes},
        jobs={job.name: [job] for job in jobs},
        settings=entry.settings,
        others=others,
    )
    return _with_time(scenario, entry, conf, tenants, warnings, context=context)


def _assumed(
    entry: ScenarioEntry, stood: Mapping[str, Product], settings: Settings
) -> dict[str, Schema]:
    """Jobs without ``tor-affinity`` -> what the settings make of them (D38)."""
    if settings.default_tor_affinity is DefaultAffinity.NONE:
        return {}
    found = {}
    for path, each, products in _all_jobs(entry, stood):
        job = with_defaults(job_of(path, each, products), settings)
        if TOR_AFFINITY in job.assumed and job.tor_affinity is not None:
            found[job.name] = job.tor_affinity
    return found


def _all_jobs(
    entry: ScenarioEntry, stood: Mapping[str, Product]
) -> Iterator[tuple[str, JobEntry, Iterable[Product]]]:
    """Every job with its path and the products that it may be of."""
    for i, job in enumerate(entry.running):
        yield f"running[{i}]", job, _products_of(job, stood)
    for i, later in enumerate(entry.jobs):
        yield f"jobs[{i}]", later, {*stood.values()}


def _products_of(job: RunningEntry, stood: Mapping[str, Product]) -> Iterable[Product]:
    """The product of the nodes where a running job is; without pods, all there are."""
    held = [each for each in job.placements if each.chips] or job.placements
    there = [stood[each.node] for each in held[:1] if each.node in stood]
    return (there or {*stood.values()}) if job.product is None else ()


def _rules(
    entry: ScenarioEntry, warnings: list[str], others: Others
) -> tuple[Conf | None, Settings]:
    """The configuration, if there is one, and the settings in force."""
    own = ("settings", entry.settings)
    if entry.configuration is UNSET:
        return None, settings_of(*own, Settings(), warnings)
    conf = conf_of("configuration", entry.configuration, [own], warnings, others)
    return conf, conf.settings


def _with_time(
    scenario: Scenario,
    entry: ScenarioEntry,
    conf: Conf | None,
    tenants: Tenants,
    warnings: list[str],
    *,
    context: EventContext,
) -> Scenario:
    """*scenario* with what only the engine heeds: queues, a configuration, time."""
    queues = () if entry.queues is UNSET else queues_of(entry.queues)
    later = [] if entry.then is UNSET else entry.then
    arrivals = tuple(_arrivals(scenario, entry, tenants))
    for arrival in arrivals:
        context.enter(arrival.job)
    then = tuple(read_then(context, later, warnings))
    last = then[-1].at if then else 0.0
    until = last if entry.until is None else entry.until
    if until < last:
        raise BadInput(f"until is {until:g}, want {last:g} or later, the last of then")
    found = replace(
        scenario,
        queues=queues,
        conf=conf,
        tenants=arrivals,
        ending=tuple(_endings(entry, tenants)),
        since={
            job.name: job.waiting_since
            for job in entry.jobs
            if job.waiting_since is not None
        },
        then=then,
        until=until,
        grace_s=entry.grace_seconds,
        is_run=any(
            each is not UNSET
            for each in (entry.queues, entry.configuration, entry.then)
        ),
    )
    more = _queue_warnings(found) if found.is_run else _idle_warnings(entry)
    return replace(found, warnings=(*warnings, *more))


def _arrivals(
    scenario: Scenario, entry: ScenarioEntry, tenants: Tenants
) -> Iterator[JobArrived]:
    """Running jobs as events for the engine."""
    product = {node.name: node.product for node in scenario.nodes}
    for i, job in enumerate(entry.running):
        known = _products_of(job, product)
        noun = job_of(f"running[{i}]", job, known, at=job.started)
        held_now = tenants.running[job.name]
        yield JobArrived(noun, held_now, job.started, job.waiting_since)


def _endings(entry: ScenarioEntry, tenants: Tenants) -> Iterator[PodsEnding]:
    """Pods of running jobs that are asked to end."""
    for i, job in enumerate(entry.running):
        held = {placement.replica for placement in tenants.running[job.name]}
        for k, replica in enumerate(job.ending):
            if replica not in held:
                raise BadInput(
                    f"running[{i}].ending[{k}] is {replica}, want the replica of one "
                    "of its placements"
                )
        if job.ending:
            yield PodsEnding(job.name, tuple(job.ending))


def _queue_warnings(scenario: Scenario) -> Iterator[str]:
    """Jobs that name a queue which there never is, and have pods to place."""
    events = [each.event for each in scenario.then]
    known = {DEFAULT_QUEUE, *(queue.name for queue in scenario.queues)}
    known |= {event.queue.name for event in events if isinstance(event, QueueChanged)}
    short = [e for e in scenario.tenants if len(e.placements) < e.job.n_pods]
    arrivals = [*short, *(e for e in events if isinstance(e, JobArrived))]
    for job in dict.fromkeys((*scenario.jobs, *(each.job for each in arrivals))):
        if job.queue not in known:
            named = f"job {brief(job.name)} is of queue {brief(job.queue)}"
            yield f"{named}, which does not exist"


def _idle_warnings(entry: ScenarioEntry) -> Iterator[str]:
    """Keys that have no effect without the engine, each once."""
    seen: dict[str, str] = {}
    for part, jobs in (("running", entry.running), ("jobs", entry.jobs)):
        for i, job in enumerate(jobs):
            for key, path in _given(f"{part}[{i}]", job):
                seen.setdefault(key, path)
    named = [*seen.values()]
    named += ["until"] * (entry.until is not None)
    named += ["grace-seconds"] * (entry.grace_seconds > 0)
    for path in named:
        yield f"{path} has no effect without queues, configuration or then"


def _given(path: str, job: JobEntry) -> Iterator[tuple[str, str]]:
    """The keys that only the engine heeds, where they are not as usual."""
    roles = {f"{path}.roles[{i}]": role for i, role in enumerate(job.roles)}
    for where, entry in {path: job, **roles}.items():
        for key, value in _plain_values(entry).items():
            if key in RUN_ONLY and value != _USUAL[type(entry)][key]:
                yield key, f"{where}.{key}"


def _plain_values(entry: Struct) -> dict[str, object]:
    names = zip(entry.__struct_encode_fields__, entry.__struct_fields__, strict=True)
    return {key: getattr(entry, name) for key, name in names}


_USUAL: Final[Mapping[type[Struct], Mapping[str, object]]] = {
    type(each): _plain_values(each)
    for each in (
        JobEntry(name=""),
        RunningEntry(name="", placements=[]),
        RoleEntry(name="", chips=0),
    )
}
"""Every key of jobs and roles at its default."""


def _network_warnings(
    entry: ScenarioEntry, groups: list[NodeGroup], settings: Settings
) -> Iterator[str]:
    sizes: Counter[int] = Counter()
    for group in groups:
        if group.entry.superpod is not None:
            sizes[group.entry.superpod] += len(group.names)
    for superpod, size in sorted(sizes.items()):
        if size > settings.superpod_size:
            yield (
                f"SuperPoD {superpod} has {size} nodes, more than super-pod-size "
                f"{settings.superpod_size}: all of them are used"
            )
    for group in groups:
        if group.entry.leaf is None and group.entry.slot is not None:
            yield f"{group.path}.slot has no effect without a leaf"
    known = {group.entry.leaf for group in groups}
    for name in entry.leaves:
        if name not in known:
            yield f"leaves has {brief(name)}, under which there is no node"
