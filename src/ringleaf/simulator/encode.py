"""The core's nouns as the scenario format writes them; reading them gives them back.

What is at its default is left out, except where the default depends on the place.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ringleaf.config.arguments import (
    Argument,
    ArgumentKind,
    Value,
    find_argument,
)
from ringleaf.config.conf import Conf, PluginConf
from ringleaf.config.parameters import INIT_PARAMS, PARAMETERS
from ringleaf.config.vocabulary import ACTIONS
from ringleaf.engine.event import (
    BindFailed,
    ConfChanged,
    DeletionsKnown,
    Event,
    FaultsKnown,
    IdleAccountKnown,
    JobArrived,
    JobGone,
    LeavesChanged,
    NodesChanged,
    NodesGone,
    PodFaultsReported,
    PodsEnding,
    PodsGone,
    PodsRefused,
    PodsRun,
    QueueChanged,
    QueueGone,
    RepairKnown,
    RunTimesKnown,
    TimerFired,
)
from ringleaf.framework.idle_budget import EndedReservation, IdleAccount
from ringleaf.framework.run_times import RunSeries
from ringleaf.model.cluster import Node
from ringleaf.model.demand import (
    Demand,
    PodTerm,
    Requirement,
    Selector,
    Spread,
    Toleration,
)
from ringleaf.model.fault import (
    Deletion,
    Fault,
    FaultMode,
    PodFault,
    Record,
    Recovery,
    RestartScope,
    SubHealth,
)
from ringleaf.model.job import Job, Previous, Role
from ringleaf.model.job_labels import FAULT_SCHEDULING, TOR_AFFINITY
from ringleaf.model.mask import chips_of, full_mask
from ringleaf.model.moving import Moving
from ringleaf.model.placement import JobType, LeafState, Placement
from ringleaf.model.queue import DEFAULT_QUEUE, Queue
from ringleaf.model.run_time import RunTime, base_name
from ringleaf.model.settings import (
    JobRequests,
    LeafChoice,
    RepairSettings,
    Settings,
    SwitchMode,
)
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.defaults import without_defaults
from ringleaf.simulator.running_jobs import BLOCK, CROSSED_BY, HEALTH, STATE

Plain = dict[str, Any]

_SCHEMA: Final[Mapping[JobType, str]] = {kind: s for s, kind in CROSSED_BY.items()}
_NOTHING: Final[tuple[object, ...]] = (None, "", 0, [], {})


def whole(seconds: float) -> int | float:
    """A time, without a point where it needs none.

    >>> whole(60.0), whole(0.5)
    (60, 0.5)
    """
    return int(seconds) if float(seconds).is_integer() else seconds


def _kept(plain: Plain) -> Plain:
    """*plain* without the keys that say nothing."""
    return {key: value for key, value in plain.items() if value not in _NOTHING}


def amount(thousandths: int) -> int | str:
    """An amount as people write it.

    >>> amount(64_000), amount(500), amount(1_500)
    (64, '500m', '1500m')
    """
    whole, rest = divmod(thousandths, 1000)
    if not rest:
        return whole
    return f"{thousandths}m" if whole < 1 << 40 else f"{whole}.{rest:03}"


def amounts(given: Mapping[str, int] | Iterable[tuple[str, int]]) -> Plain:
    """Resource -> amount."""
    return {name: amount(n) for name, n in dict(given).items()}


def node(value: Node) -> Plain:
    """An entry of ``nodes``."""
    return (
        {"name": value.name, "product": value.product.key}
        | _kept(
            {
                "chips": value.chips if value.product.sized else None,
                "free": None
                if value.free == full_mask(value.chips)
                else list(chips_of(value.free)),
                "faulty": list(chips_of(value.faulty)),
                "network-faulty": list(chips_of(value.network_faulty)),
                "weak": list(chips_of(value.weak)),
                "down": value.down and str(value.down),
                "sub-healthy": value.sub_healthy,
                "unschedulable": value.cordoned,
                "labels": dict(value.labels),
                "taints": [
                    {"key": t.key, "effect": str(t.effect)} | _kept({"value": t.value})
                    for t in value.taints
                ],
                "resources": amounts(value.resources),
            }
        )
        | _where(value)
    )


def _where(value: Node) -> Plain:
    """Where a node stands, and whether it is ready; 0 is a place too."""
    found: Plain = {} if value.ready else {"ready": False}
    if value.free == 0:
        found["free"] = []
    if value.lists_all:
        found["lists-all"] = True
    if value.offers is not None:
        found["offers"] = list(chips_of(value.offers))
    if value.allocatable is not None:
        found["allocatable"] = value.allocatable
    if value.unhealthy != value.faulty:
        found["unhealthy"] = list(chips_of(value.unhealthy))
    if value.weak_switch is not (value.sub_healthy and not value.weak):
        found["weak-switch"] = value.weak_switch
    if value.superpod is not None:
        found["superpod"] = value.superpod
    if value.leaf is not None:
        found |= {"leaf": value.leaf, "slot": value.slot}
    return found


def leaves(values: Iterable[Leaf]) -> Plain:
    """The mapping ``leaves``."""
    return {leaf.name: _leaf(leaf) for leaf in values}


def _leaf(value: Leaf) -> Plain:
    state = value.state
    return _kept(
        {
            "state": None if state is LeafState.IDLE else state.name.lower(),
            "address": value.address,
            "cross-leaf-jobs": [str(_SCHEMA[kind]) for kind in value.crossed_by],
        }
    ) | (
        ({} if value.healthy else {"healthy": False})
        | ({} if value.order is None else {"order": value.order})
    )


def queue(value: Queue) -> Plain:
    """An entry of ``queues``."""
    found: Plain = {"name": value.name} | _kept(
        {
            "capability": amounts(value.capability),
            "guarantee": amounts(value.guarantee),
            "priority": value.priority,
            "state": "" if value.is_open else "closed",
            "hierarchy": value.hierarchy,
            "hierarchy-weights": value.hierarchy_weights,
        }
    )
    found |= {} if value.weight == 1 else {"weight": value.weight}
    return found | ({} if value.reclaimable else {"reclaimable": False})


def placement(value: Placement) -> Plain:
    """An entry of ``placements``."""
    said = {} if value.block is None else {BLOCK: str(value.block)}
    if value.mark is not None:
        said[STATE] = str(int(value.mark.state))
        said[HEALTH] = "0" if value.mark.healthy else "1"
    where: Plain = {
        "replica": value.replica,
        "node": value.node,
        "chips": [*value.chips],
    }
    return where | ({"annotations": said} if said else {})


def _previous(value: Previous | None) -> Plain | None:
    if value is None:
        return None
    return _kept(
        {
            "failed-nodes": list(value.failed_nodes),
            "keep": "" if value.scope is RestartScope.POD else str(value.scope),
        }
    ) | {"placements": [placement(each) for each in value.placements]}


def job(value: Job) -> Plain:
    """An entry of ``jobs``; the product and the time are always written."""
    value = without_defaults(value)
    affinity, firmness = value.tor_affinity, value.superpod_affinity
    found: Plain = {"name": value.name, "product": value.product.key} | _pods(value)
    found |= _kept(
        {
            "strategy": value.strategy and str(value.strategy),
            "distributed": value.distributed,
            "tor-affinity": affinity and str(affinity),
            "super-pod-affinity": firmness and str(firmness),
            "vnpu": value.vnpu,
            "framework": value.framework,
            "previous": _previous(value.previous),
            "queue": "" if value.queue == DEFAULT_QUEUE else value.queue,
            "priority": value.priority,
            "estimate-seconds": value.estimate_s and whole(value.estimate_s),
            "critical": value.critical,
            "podless": value.podless,
            "run-time": value.run_time and _run_time(value.run_time),
        }
    )
    found |= _origin(value)
    found |= {} if value.sp_block is None else {"sp-block": value.sp_block}
    found |= {} if value.min_available is None else {"min-member": value.min_available}
    found |= {"finished": [*value.finished]} if value.finished else {}
    found |= {} if value.preemptable else {"preemptable": False}
    found |= {} if value.preempts else {"preempts": False}
    found |= {"tor-affinity": "null"} if TOR_AFFINITY in value.declined else {}
    found |= {"fault-scheduling": "off"} if FAULT_SCHEDULING in value.declined else {}
    found |= recovery(value.recovery) | _moving(value.moving)
    return found | {"created": whole(value.created)}


def _origin(value: Job) -> Plain:
    """The user of a job, and its name without its number where it is another one."""
    user, name = value.origin.user, value.origin.name
    found = {"user": user} if user else {}
    usual = base_name(value.name) if user else ""
    return found | ({} if name == usual else {"program": name})


def _moving(value: Moving | None) -> Plain:
    """What a job says of being moved, as keys of the job."""
    if value is None:
        return {}
    found: Plain = {"movable": True}
    if value.restart_s:
        found["restart-seconds"] = whole(value.restart_s)
    times = {
        "checkpointed-at": value.checkpointed_at,
        "checkpoint-seconds": value.checkpoint_s,
    }
    return found | _times(times)


def _run_time(value: RunTime) -> Plain:
    return {
        "median-seconds": value.median_s,
        "most-seconds": value.most_s,
        "runs": value.n_runs,
        "by": str(value.by),
    }


def run_series(value: RunSeries) -> Plain:
    """One of ``run-times-known``."""
    found: Plain = {"by": str(value.by), "queue": value.queue}
    found |= _kept({"user": value.user, "name": value.name, "chips": value.chips})
    return found | {"steps": [*value.steps]}


def idle_time(value: IdleAccount) -> Plain:
    """``idle-time-known``."""
    kept = [
        {"until": whole(until), "chip-seconds": whole(amount)}
        for until, amount in value.buckets
    ]
    return _kept(
        {
            "kept-idle": kept,
            "budget-spent": value.is_spent,
            "reservations": [*map(ended_reservation, value.ended)],
        }
    )


def ended_reservation(value: EndedReservation) -> Plain:
    """One of ``reservations`` of ``idle-time-known``."""
    return {
        "job": value.job,
        "outcome": str(value.outcome),
        "since": whole(value.since),
        "until": whole(value.until),
        "chip-seconds": whole(value.kept_idle),
    }


def recovery(value: Recovery) -> Plain:
    """What a job wants done when its pods are faulty, as keys of the job."""
    path = "" if value.escalates else "pod"
    weak = "" if value.sub_health is SubHealth.IGNORE else str(value.sub_health)
    return _kept(
        {
            "fault-scheduling": "" if value.mode is FaultMode.OFF else str(value.mode),
            "fault-retry-times": value.retries,
            "pod-rescheduling": value.pods_only and not path,
            "process-recover-enable": value.process,
            "sub-healthy-strategy": weak,
            "recover-policy-path": path,
        }
    ) | ({} if value.master == 0 else {"master": value.master})


def ailment(value: PodFault) -> Plain:
    """One of ``ailments``."""
    found = {"replica": value.replica, "cause": str(value.cause)}
    return found | _kept({"node": value.node})


def record(value: Record) -> Plain:
    """What is written down of the repair of a job."""
    found: Plain = {"since": whole(value.since)} | _kept(
        {
            "reach": "" if value.scope is RestartScope.POD else str(value.scope),
            "ailments": [ailment(each) for each in value.ailments],
            "placements": [placement(each) for each in value.placements],
            "deleted": [*value.deleted],
            "retries-used": value.retries_used,
            "is-over": value.is_over,
            "moved-for": value.moved_for,
        }
    )
    return found | _times({"deleted-at": value.deleted_at, "stuck-at": value.stuck_at})


def _times(given: Mapping[str, float | None]) -> Plain:
    return {key: whole(at) for key, at in given.items() if at is not None}


def deletion(value: Deletion) -> Plain:
    """One of ``deletions-known``."""
    return {"job": value.job, "pods": value.pods, "deleted-at": value.at}


def fault(value: Fault) -> Plain:
    """One of ``faults-known``."""
    found: Plain = {"where": value.where, "cause": str(value.cause)}
    found |= _kept({"part": value.part, "jobs": [*value.jobs], "why": value.why})
    return found | _times(
        {
            "seen": value.seen,
            "acted": value.acted,
            "recovered": value.recovered,
            "until": value.until,
        }
    )


def _pods(value: Job) -> Plain:
    """What the pods of a job are, role by role where they differ."""
    if value.roles and value.roles[0].name:
        return {"roles": [_role(role) for role in value.roles]}
    ranks = [*value.roles[0].ranks] if value.roles else []
    own = {"chips": value.chips, "replicas": value.n_pods}
    return own | _kept({"rank-index": ranks}) | demand(value.demand)


def _role(value: Role) -> Plain:
    found = {"name": value.name, "chips": value.chips, "replicas": value.replicas}
    found |= {} if value.min_available is None else {"min-member": value.min_available}
    return found | _kept({"rank-index": [*value.ranks]}) | demand(value.demand)


def demand(value: Demand) -> Plain:
    """What pods ask besides chips, as keys of a job or of a role."""
    namespace = value.namespace
    return _kept(
        {
            "resources": amounts(value.resources),
            "node-selector": {each.key: each.values[0] for each in value.required},
            "node-affinity": [_term(term) for term in value.terms],
            "tolerations": [_toleration(each) for each in value.tolerations],
            "host-ports": [*value.ports],
            "pod-labels": dict(value.labels),
            "namespace": "" if namespace == Demand().namespace else namespace,
            "pod-affinity": [_pod_term(each) for each in value.near],
            "pod-anti-affinity": [_pod_term(each) for each in value.apart],
            "spread": [_spread(each) for each in value.spread],
            "preferred-node-affinity": [
                {"weight": each.weight} | _term(each.term) for each in value.prefers
            ],
            "preferred-pod-affinity": [
                {"weight": each.weight} | _pod_term(each.term)
                for each in value.prefers_near
            ],
            "preferred-pod-anti-affinity": [
                {"weight": each.weight} | _pod_term(each.term)
                for each in value.prefers_apart
            ],
        }
    )


def _toleration(value: Toleration) -> Plain:
    found = {} if value.key is None else {"key": value.key}
    effect = value.effect and str(value.effect)
    found |= {"operator": str(value.operator)}
    return found | _kept({"value": value.value, "effect": effect})


def _term(requirements: Iterable[Requirement]) -> Plain:
    return {
        "match-expressions": [
            {"key": each.key, "operator": str(each.operator)}
            | _kept({"values": [*each.values]})
            for each in requirements
        ]
    }


def _selector(value: Selector) -> Plain:
    return {} if value is None else {"selector": _term(value)}


def _pod_term(value: PodTerm) -> Plain:
    found = {"topology-key": value.key} | _selector(value.selector)
    return found | _kept({"namespaces": [*value.namespaces]})


def _spread(value: Spread) -> Plain:
    found: Plain = {"topology-key": value.key} | _selector(value.selector)
    found |= {} if value.max_skew == 1 else {"max-skew": value.max_skew}
    found |= {} if value.hard else {"when-unsatisfiable": "ScheduleAnyway"}
    return found | _kept({"min-domains": value.min_domains})


def settings(value: Settings) -> Plain:
    """The mapping ``settings``, all of it."""
    mode, single = value.switch_mode, value.switch_mode is SwitchMode.SINGLE_LAYER
    return {
        "nslb-version": "1.0" if single else str(mode),
        "shared-tor-num": value.shared_leaves,
        "tor-level": "single_layer" if single else "double_layer",
        "super-pod-size": value.superpod_size,
        "reserve-nodes": value.reserve_nodes,
        "nodes-per-leaf": value.nodes_per_leaf,
        "job-requests": str(JobRequests(value.job_requests)),
        "leaf-choice": str(LeafChoice(value.leaf_choice)),
        "share-common-leaves": value.share_common_leaves,
        "default-tor-affinity": str(value.default_tor_affinity),
        "default-fault-scheduling": str(value.default_fault_scheduling),
    } | _repairs(value.repairs)


def _repairs(value: RepairSettings) -> Plain:
    """How faults are dealt with."""
    return {
        "grace-over-time": value.grace_s,
        "superpod-escalation-seconds": value.block_after_s,
        "job-escalation-seconds": value.job_after_s,
        "repair-hold-seconds": value.hold_s,
        "fault-brake-percent": value.brake_percent,
        "fault-brake-seconds": value.brake_s,
        "run-within-seconds": value.run_within_s,
        "set-aside-seconds": value.aside_s,
    }


def configuration(value: Conf) -> Plain:
    """The mapping ``configuration``; what its settings come to is not in it."""
    entries: list[Plain] = [
        {"name": name, "arguments": _arguments(given, ACTIONS[name].arguments)}
        for name, given in value.action_arguments.items()
        if name in value.actions
    ]
    init = _arguments(value.parameters, PARAMETERS)
    entries += [{"name": INIT_PARAMS, "arguments": init}]
    entries += [{"name": n, "arguments": given} for n, given in value.others.items()]
    return {
        "actions": ", ".join(value.actions) if value.actions else [],
        "tiers": [{"plugins": [_plugin(p) for p in tier]} for tier in value.tiers],
        "configurations": [entry for entry in entries if entry["arguments"]],
    }


def _plugin(value: PluginConf) -> Plain:
    given = _arguments(value.arguments, value.about.arguments)
    return {"name": value.written, **value.changed} | _kept({"arguments": given})


def _arguments(given: Mapping[str, Value], known: Mapping[str, Argument]) -> Plain:
    """The arguments that are not at their default, as they are written."""
    found = {}
    for key, value in given.items():
        argument = find_argument(known, key)
        assert argument is not None, "a configuration has only known arguments"
        if key not in known or value != argument.default:
            found[key] = _written(argument, value)
    return found


def _written(argument: Argument, value: Any) -> Any:  # noqa: ANN401
    if argument.kind is ArgumentKind.NAMES:
        return ", ".join(value)
    if argument.kind is ArgumentKind.POINTS:
        return [{"utilization": u, "score": score} for u, score in value]
    return value


def event(value: Event) -> Plain:
    """An entry of ``then``, without its time."""
    return _FORMS[type(value)](value)


def _arrived(value: JobArrived) -> Plain:
    entry = job(value.job)
    if value.placements:
        entry["placements"] = [placement(each) for each in value.placements]
    if value.started is not None:
        entry["started"] = whole(value.started)
    if value.waiting_since is not None:
        entry["waiting-since"] = whole(value.waiting_since)
    return {"arrives": entry}


def _job_end(value: JobGone) -> Plain | str:
    more = _kept({"returns": value.returns}) | _end_of_run(value)
    return {"job": value.job} | more if more else value.job


def _end_of_run(value: JobGone | PodsGone) -> Plain:
    return {} if value.ends_run else {"ends-run": False}


def _pods_of(
    value: PodsEnding | BindFailed | PodsGone | PodsRun | PodsRefused,
) -> Plain:
    return {"job": value.job, "replicas": [*value.replicas]}


_FORMS: Final[Mapping[type, Callable[[Any], Plain]]] = MappingProxyType(
    {
        JobArrived: _arrived,
        JobGone: lambda e: {"ends": _job_end(e)},
        PodsGone: lambda e: {
            "pods-end": _pods_of(e) | _kept({"succeeded": e.succeeded}) | _end_of_run(e)
        },
        PodsEnding: lambda e: {"pods-ending": _pods_of(e)},
        BindFailed: lambda e: {"bind-fails": _pods_of(e)},
        PodFaultsReported: lambda e: {
            "pods-ail": {"job": e.job, "ailments": [ailment(a) for a in e.ailments]}
        },
        PodsRun: lambda e: {"pods-run": _pods_of(e) | _times({"since": e.since})},
        PodsRefused: lambda e: {"pods-refused": _pods_of(e) | _kept({"why": e.why})},
        RepairKnown: lambda e: {
            "repair-known": {"job": e.job, "record": record(e.record)}
        },
        FaultsKnown: lambda e: {"faults-known": [fault(each) for each in e.faults]},
        DeletionsKnown: lambda e: {
            "deletions-known": [deletion(each) for each in e.deletions]
        },
        RunTimesKnown: lambda e: {
            "run-times-known": [run_series(each) for each in e.series]
        },
        IdleAccountKnown: lambda e: {"idle-time-known": idle_time(e.account)},
        NodesChanged: lambda e: {"nodes": [node(each) for each in e.nodes]},
        NodesGone: lambda e: {"nodes-gone": [*e.names]},
        LeavesChanged: lambda e: {"leaves": leaves(e.leaves)},
        QueueChanged: lambda e: {"queue": queue(e.queue)},
        QueueGone: lambda e: {"queue-gone": e.name},
        ConfChanged: lambda e: {
            "configuration": configuration(e.conf),
            "settings": settings(e.conf.settings),
        },
        TimerFired: lambda _event: {"wakes": True},
    }
)
