"""Pods without chips use no links of their leaf."""

from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Schema
from ringleaf.policies.products import PRODUCTS

A2 = PRODUCTS["atlas-800t-a2"]


def test_a_driver_under_another_leaf_does_not_make_its_job_cross_leaves() -> None:
    cluster = Cluster(
        [
            Node("a", A2, 8, 0xFF, leaf="A", resources={"cpu": 0}),
            Node("b", A2, 8, 0x00, leaf="B", resources={"cpu": 1000}),
        ]
    )
    driver = Role("driver", 0, demand=Demand(resources=(("cpu", 500),)))
    job = Job("j", A2, 8, roles=(Role("worker", 8), driver), tor_affinity=Schema.NORMAL)
    decision = Session(cluster).decide(job)

    assert isinstance(decision, Placed)
    assert [placement.node for placement in decision.placements] == ["a", "b"]
    assert cluster.uplinks.crossing.tolist() == [0, 0]

    with Statement(cluster) as statement:
        statement.release("j")
    assert cluster.uplinks.crossing.tolist() == [0, 0]
