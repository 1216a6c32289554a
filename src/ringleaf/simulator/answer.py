"""A decision as ``ringleaf plan --json`` prints it; docs/scenario.md describes it.

Outside checks rely on these bytes: keys come in a fixed order, a key without a value
is left out, and the same scenario always gives the same line.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from ringleaf.model.cluster import NOWHERE, Cluster
from ringleaf.model.decision import Decision, Invalid, Placed, Placement
from ringleaf.model.job import Job
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
            _placement(cluster, decision, placement)
            for placement in decision.placements
        ]
        body["annotations"] = [
            pod_annotations(decision, placement, _superpod(cluster, placement))
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


def _superpod(cluster: Cluster, placement: Placement) -> int | None:
    superpod = cluster.superpod.item(cluster.index[placement.node])
    return None if superpod == NOWHERE else superpod


def _placement(
    cluster: Cluster, placed: Placed, placement: Placement
) -> dict[str, Any]:
    logical = 0 if placed.job.product.superpod else None
    body = {
        "replica": placement.replica,
        "node": placement.node,
        "chips": placement.chips,
        "superpod": _superpod(cluster, placement),
        "logical-superpod": logical,
        "leaf": cluster.leaf[cluster.index[placement.node]],
    }
    return {key: value for key, value in body.items() if value is not None}
