"""How a job stands: what it asks, what it has, what it lacks."""

from ringleaf.framework.standing import (
    Standing,
    job_amounts,
    min_amounts,
    pod_amounts,
)
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.placement import Placement
from ringleaf.policies.products import PRODUCTS

A2 = PRODUCTS["atlas-800t-a2"]
NPU = A2.resource
CPU = Demand(resources=(("cpu", 500),))
MIXED = (Role("driver", 0, 2, least=1, demand=CPU), Role("worker", 8, 3, least=1))


def placed(standing: Standing, *replicas: int) -> Standing:
    for replica in replicas:
        standing.placements[replica] = Placement(replica, "n", ())
    return standing


def test_what_a_pod_asks_is_its_chips_and_the_rest() -> None:
    job = Job("j", A2, 8)

    assert pod_amounts(job, Role("", 2, demand=CPU)) == {NPU: 2000, "cpu": 500}
    assert pod_amounts(job, Role("", 0)) == {}


def test_what_a_job_asks_is_what_its_pods_ask() -> None:
    assert job_amounts(Job("j", A2, 4, 3, demand=CPU)) == {NPU: 12_000, "cpu": 1500}
    assert job_amounts(Job("j", A2, 8, 3, roles=MIXED)) == {NPU: 24_000, "cpu": 1000}


def test_what_must_start_together_is_of_every_role_then_pods_with_chips() -> None:
    assert min_amounts(Job("j", A2, 4, 3, least=2)) == {NPU: 8000}
    for least, npu, cpu in ((2, 8000, 500), (3, 16_000, 500), (5, 24_000, 1000)):
        job = Job("j", A2, 8, 3, roles=MIXED, least=least)
        assert min_amounts(job) == {NPU: npu, "cpu": cpu}


def test_what_must_start_together_is_no_more_than_the_job_has_to() -> None:
    job = Job("j", A2, 8, 3, roles=MIXED, least=1)

    assert min_amounts(job) == {NPU: 8000, "cpu": 0}


def test_pods_that_run_and_those_that_ended_well_are_ready() -> None:
    standing = placed(Standing(Job("j", A2, 8, 4, least=2)), 0, 1)
    standing.finish([2])

    assert standing.ready == 3
    assert standing.missing == [3]
    assert standing.surplus == 1
    standing.terminating |= {1}
    assert standing.ready == 2
    assert standing.ready_in((0, 1, 2)) == 2


def test_pods_that_ended_well_ask_for_nothing() -> None:
    standing = Standing(Job("j", A2, 8, 3))

    assert standing.finish([0, 0, 9]) == {NPU: 8000}
    assert standing.finish([0]) == {NPU: 0}
    assert standing.total == {NPU: 16_000}


def test_a_job_that_is_another_keeps_who_ended_well() -> None:
    standing = Standing(Job("j", A2, 8, 3))
    standing.finish([0])

    standing.become(Job("j", A2, 4, 2))

    assert standing.total == {NPU: 4000}
    assert standing.missing == [1]


def test_a_job_of_pods_that_ask_nothing_asks_nothing() -> None:
    assert Standing(Job("j", A2, 0, 0, roles=(Role("helper", 0),))).asks_nothing
    assert not Standing(Job("j", A2, 1)).asks_nothing


def test_the_rest_of_a_job_is_what_has_not_ended_well() -> None:
    standing = Standing(Job("j", A2, 8, 3, roles=MIXED))
    assert standing.rest is standing.job

    standing.finish([0, 3, 4])

    (worker,) = standing.rest.roles
    assert (worker.name, worker.ranks, worker.least) == ("worker", (1, 2), 1)
    assert standing.rest.replicas == 2
    assert standing.rest.min_pods == 2
    assert standing.rest.finished == (0,)
    assert standing.rest.submitted == standing.job.submitted


def test_the_rest_of_an_elastic_job_needs_fewer_pods() -> None:
    standing = Standing(Job("j", A2, 8, 4, least=3))
    standing.finish([1, 2])

    assert standing.rest.least == 1
    assert standing.rest.n_pods == 2
