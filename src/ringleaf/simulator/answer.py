"""A decision as ``ringleaf plan --json`` prints it; docs/scenario.md describes it.

Outside checks rely on these bytes: keys come in a fixed order, a key without a value
is left out, and the same scenario always gives the same line.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from ringleaf.framework.instruction import (
    AskToExit,
    Bind,
    Delete,
    Evict,
    Instruction,
    PersistRepair,
    Repaired,
    Report,
    ReportFaultyPods,
    WakeAt,
)
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Decision, Invalid, Placed
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.model.uplinks import NOWHERE
from ringleaf.policies.annotations import pod_annotations
from ringleaf.simulator.plain import whole
from ringleaf.simulator.records import plain_of
from ringleaf.simulator.scenario import Scenario


def decide_all(
    scenario: Scenario, jobs: Iterable[Job] | None = None
) -> tuple[Cluster, list[Decision]]:
    """Decide the scenario's jobs in order; each sees what the earlier ones took."""
    session = scenario.open()
    jobs = scenario.jobs if jobs is None else jobs
    return session.cluster, [session.decide(job) for job in jobs]


def plain(cluster: Cluster, decisions: list[Decision]) -> dict[str, Any]:
    """The decisions of one document as plain values."""
    return {"decisions": [answer(cluster, decision) for decision in decisions]}


def encode(cluster: Cluster, decisions: list[Decision]) -> bytes:
    """One line of JSON for one document."""
    return msgspec.json.encode(plain(cluster, decisions))


def answer(cluster: Cluster, decision: Decision) -> dict[str, Any]:
    """One decision as plain values."""
    body: dict[str, Any] = {"job": decision.job.name}
    if isinstance(decision, Placed):
        body["verdict"] = "placed"
        body["placements"] = [
            placement_plain(cluster, placement) for placement in decision.placements
        ]
        body["annotations"] = pod_annotations(cluster, decision)
    elif isinstance(decision, Invalid):
        body |= {
            "verdict": "invalid",
            "message": decision.message,
            "hint": decision.hint,
        }
    else:
        body |= {
            "verdict": "waiting",
            "wanted": decision.job.wanted,
            "missing": decision.missing,
            "reasons": dict(decision.reasons),
            "message": decision.message,
            "hint": decision.hint,
        }
        if decision.impossible:
            body["impossible"] = decision.impossible
    if decision.warnings:
        body["warnings"] = decision.warnings
    return body


def instruction_plain(cluster: Cluster, instruction: Instruction) -> dict[str, Any]:
    """What the engine said as plain values: one key that says what, and its details."""
    match instruction:
        case Bind(job, placements, annotations, warnings):
            body: dict[str, Any] = {
                "job": job,
                "placements": [placement_plain(cluster, each) for each in placements],
                "annotations": [dict(each) for each in annotations],
                "warnings": list(warnings),
            }
        case Evict(job, replicas, by, action):
            body = {"job": job, "replicas": list(replicas), "by": by, "action": action}
        case Delete(job, replicas, cause, why, force):
            body = {"job": job, "replicas": list(replicas), "cause": cause}
            body |= {"why": why, "force": force}
        case ReportFaultyPods(job, pod_faults):
            body = {"job": job, "ailments": [plain_of(each) for each in pod_faults]}
        case PersistRepair(job, kept):
            body = {"job": job, "record": kept and plain_of(kept)}
        case AskToExit(job, exits):
            return {"ask-to-exit": {"job": job, "exits": exits}}
        case Repaired(job, done, message):
            body = {"job": job, "record": plain_of(done), "message": message}
        case Report(job, verdict, message, hint, missing, reasons, node):
            body = {"job": job, "verdict": str(verdict), "missing": missing}
            body |= {"reasons": {str(reason): n for reason, n in reasons.items()}}
            body |= {"message": message, "hint": hint, "node": node}
        case WakeAt(at):
            return {"wake-at": whole(at)}
    kind = str(instruction.__struct_config__.tag)
    return {kind: {key: value for key, value in body.items() if value or key == "job"}}


def placement_plain(cluster: Cluster, placement: Placement) -> dict[str, Any]:
    """Where one pod is, as plain values."""
    node = cluster.index[placement.node]
    superpod, leaf = cluster.superpod.item(node), cluster.leaf_of(node)
    body = {
        "replica": placement.replica,
        "node": placement.node,
        "chips": placement.chips,
        "superpod": None if superpod == NOWHERE else superpod,
        "logical-superpod": placement.block,
        "leaf": None if leaf is None else leaf.name,
    }
    return {key: value for key, value in body.items() if value is not None}
