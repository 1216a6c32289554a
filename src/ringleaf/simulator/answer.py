"""A decision as ``ringleaf plan --json`` prints it; docs/scenario.md describes it.

Outside checks rely on these bytes: keys come in a fixed order, a key without a value
is left out, and the same scenario always gives the same line.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Decision, Invalid, Placed
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.model.spine import NOWHERE
from ringleaf.policies.annotations import pod_annotations
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
            _placement(cluster, placement) for placement in decision.placements
        ]
        body["annotations"] = [
            pod_annotations(cluster, decision, placement)
            for placement in decision.placements
        ]
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
    if decision.warnings:
        body["warnings"] = decision.warnings
    return body


def _placement(cluster: Cluster, placement: Placement) -> dict[str, Any]:
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
