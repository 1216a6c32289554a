"""What an operator may set, as the scenario format writes it."""

from collections.abc import Mapping
from typing import Any

from ringleaf.config.arguments import Argument, ArgumentKind, Value, find_argument
from ringleaf.config.conf import Conf, PluginConf
from ringleaf.config.parameters import INIT_PARAMS, PARAMETERS
from ringleaf.config.vocabulary import ACTIONS
from ringleaf.model.queue import Queue
from ringleaf.model.settings import (
    JobRequests,
    LeafChoice,
    RepairSettings,
    Settings,
    SwitchMode,
)
from ringleaf.simulator.plain import Plain, amounts, without_nothing
from ringleaf.simulator.rules import REPAIR_SETTINGS


def queue(value: Queue) -> Plain:
    """An entry of ``queues``."""
    found: Plain = {"name": value.name} | without_nothing(
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
    """The settings of repairs."""
    return {
        key.replace("_", "-"): getattr(value, own)
        for key, own in REPAIR_SETTINGS.items()
    }


def configuration(value: Conf) -> Plain:
    """The mapping ``configuration``, without the settings that follow from it."""
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
    return {"name": value.written, **value.changed} | without_nothing(
        {"arguments": given}
    )


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
