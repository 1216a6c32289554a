"""The core's nouns as the scenario format writes them; reading them gives them back.

What is at its default is left out, except where the default depends on the place.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

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
from ringleaf.framework.idle_budget import IdleAccount
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Deletion, FaultMode, Recovery, RestartScope, SubHealth
from ringleaf.model.job import Job, Previous, Role
from ringleaf.model.job_labels import FAULT_SCHEDULING, TOR_AFFINITY
from ringleaf.model.mask import chips_of, full_mask
from ringleaf.model.moving import Moving
from ringleaf.model.placement import JobType, LeafState
from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.model.run_time import RunTime, base_name
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.defaults import without_defaults
from ringleaf.simulator.encode_demand import demand
from ringleaf.simulator.encode_rules import configuration, queue, settings
from ringleaf.simulator.plain import Plain, amounts, times, whole, without_nothing
from ringleaf.simulator.records import placement, plain_of
from ringleaf.simulator.running_jobs import CROSSED_BY

_SCHEMA: Final[Mapping[JobType, str]] = {kind: s for s, kind in CROSSED_BY.items()}


def node(value: Node) -> Plain:
    """An entry of ``nodes``."""
    return (
        {"name": value.name, "product": value.product.key}
        | without_nothing(
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
                    {"key": t.key, "effect": str(t.effect)}
                    | without_nothing({"value": t.value})
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
    return without_nothing(
        {
            "state": None if state is LeafState.IDLE else state.name.lower(),
            "address": value.address,
            "cross-leaf-jobs": [str(_SCHEMA[kind]) for kind in value.crossed_by],
        }
    ) | (
        ({} if value.healthy else {"healthy": False})
        | ({} if value.order is None else {"order": value.order})
    )


def _previous(value: Previous | None) -> Plain | None:
    if value is None:
        return None
    return without_nothing(
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
    found |= without_nothing(
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
    given = {
        "checkpointed-at": value.checkpointed_at,
        "checkpoint-seconds": value.checkpoint_s,
    }
    return found | times(given)


def _run_time(value: RunTime) -> Plain:
    return {
        "median-seconds": value.median_s,
        "most-seconds": value.most_s,
        "runs": value.n_runs,
        "by": str(value.by),
    }


def idle_time(value: IdleAccount) -> Plain:
    """``idle-time-known``."""
    kept = [
        {"until": whole(until), "chip-seconds": whole(amount)}
        for until, amount in value.buckets
    ]
    return without_nothing(
        {
            "kept-idle": kept,
            "budget-spent": value.is_spent,
            "reservations": [*map(plain_of, value.ended)],
        }
    )


def recovery(value: Recovery) -> Plain:
    """What a job wants done when its pods are faulty, as keys of the job."""
    path = "" if value.escalates else "pod"
    weak = "" if value.sub_health is SubHealth.IGNORE else str(value.sub_health)
    return without_nothing(
        {
            "fault-scheduling": "" if value.mode is FaultMode.OFF else str(value.mode),
            "fault-retry-times": value.retries,
            "pod-rescheduling": value.pods_only and not path,
            "process-recover-enable": value.process,
            "sub-healthy-strategy": weak,
            "recover-policy-path": path,
        }
    ) | ({} if value.master == 0 else {"master": value.master})


def deletion(value: Deletion) -> Plain:
    """One of ``deletions-known``."""
    return {"job": value.job, "pods": value.pods, "deleted-at": value.at}


def _pods(value: Job) -> Plain:
    """What the pods of a job are, role by role where they differ."""
    if value.roles and value.roles[0].name:
        return {"roles": [_role(role) for role in value.roles]}
    ranks = [*value.roles[0].ranks] if value.roles else []
    own = {"chips": value.chips, "replicas": value.n_pods}
    return own | without_nothing({"rank-index": ranks}) | demand(value.demand)


def _role(value: Role) -> Plain:
    found = {"name": value.name, "chips": value.chips, "replicas": value.replicas}
    found |= {} if value.min_available is None else {"min-member": value.min_available}
    return (
        found | without_nothing({"rank-index": [*value.ranks]}) | demand(value.demand)
    )


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
    more = without_nothing({"returns": value.returns}) | _end_of_run(value)
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
            "pods-end": _pods_of(e)
            | without_nothing({"succeeded": e.succeeded})
            | _end_of_run(e)
        },
        PodsEnding: lambda e: {"pods-ending": _pods_of(e)},
        BindFailed: lambda e: {"bind-fails": _pods_of(e)},
        PodFaultsReported: lambda e: {
            "pods-ail": {"job": e.job, "ailments": [*map(plain_of, e.pod_faults)]}
        },
        PodsRun: lambda e: {"pods-run": _pods_of(e) | times({"since": e.since})},
        PodsRefused: lambda e: {
            "pods-refused": _pods_of(e) | without_nothing({"why": e.why})
        },
        RepairKnown: lambda e: {
            "repair-known": {"job": e.job, "record": plain_of(e.record)}
        },
        FaultsKnown: lambda e: {"faults-known": [plain_of(each) for each in e.faults]},
        DeletionsKnown: lambda e: {
            "deletions-known": [deletion(each) for each in e.deletions]
        },
        RunTimesKnown: lambda e: {
            "run-times-known": [plain_of(each) for each in e.series]
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
