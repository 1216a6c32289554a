"""How a job stands: what it asks, what it has, what it lacks."""

from ringleaf.framework.job_state import JobState, job_amounts, min_amounts, pod_amounts
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.placement import Placement
from ringleaf.policies.products import PRODUCTS

A2 = PRODUCTS["atlas-800t-a2"]
NPU = A2.resource
CPU = Demand(resources=(("cpu", 500),))
MIXED = (
    Role("driver", 0, 2, min_available=1, demand=CPU),
    Role("worker", 8, 3, min_available=1),
)


def placed(job_state: JobState, *replicas: int) -> JobState:
    for replica in replicas:
        job_state.placements[replica] = Placement(replica, "n", ())
    return job_state


def test_what_a_pod_asks_is_its_chips_and_the_rest() -> None:
    job = Job("j", A2, 8)

    assert pod_amounts(job, Role("", 2, demand=CPU)) == {NPU: 2000, "cpu": 500}
    assert pod_amounts(job, Role("", 0)) == {}


def test_what_a_job_asks_is_what_its_pods_ask() -> None:
    assert job_amounts(Job("j", A2, 4, 3, demand=CPU)) == {NPU: 12_000, "cpu": 1500}
    assert job_amounts(Job("j", A2, 8, 3, roles=MIXED)) == {NPU: 24_000, "cpu": 1000}


def test_what_must_start_together_is_of_every_role_then_pods_with_chips() -> None:
    assert min_amounts(Job("j", A2, 4, 3, min_available=2)) == {NPU: 8000}
    for least, npu, cpu in ((2, 8000, 500), (3, 16_000, 500), (5, 24_000, 1000)):
        job = Job("j", A2, 8, 3, roles=MIXED, min_available=least)
        assert min_amounts(job) == {NPU: npu, "cpu": cpu}


def test_what_must_start_together_is_no_more_than_the_job_has_to() -> None:
    job = Job("j", A2, 8, 3, roles=MIXED, min_available=1)

    assert min_amounts(job) == {NPU: 8000, "cpu": 0}


def test_pods_that_run_and_those_that_ended_well_are_ready() -> None:
    job_state = placed(JobState(Job("j", A2, 8, 4, min_available=2)), 0, 1)
    job_state.finish([2])

    assert job_state.ready == 3
    assert job_state.missing == [3]
    assert job_state.surplus == 1
    job_state.terminating |= {1}
    assert job_state.ready == 2
    assert job_state.ready_in((0, 1, 2)) == 2


def test_pods_that_ended_well_ask_for_nothing() -> None:
    job_state = JobState(Job("j", A2, 8, 3))

    assert job_state.finish([0, 0, 9]) == {NPU: 8000}
    assert job_state.finish([0]) == {NPU: 0}
    assert job_state.facts.total == {NPU: 16_000}


def test_a_job_with_another_spec_keeps_its_succeeded_pods() -> None:
    job_state = JobState(Job("j", A2, 8, 3))
    job_state.finish([0])

    job_state.become(Job("j", A2, 4, 2))

    assert job_state.facts.total == {NPU: 4000}
    assert job_state.missing == [1]


def test_a_job_of_pods_that_ask_nothing_asks_nothing() -> None:
    assert not JobState(Job("j", A2, 0, 0, roles=(Role("helper", 0),))).facts.total
    assert JobState(Job("j", A2, 1)).facts.total


def test_the_rest_of_a_job_is_what_has_not_ended_well() -> None:
    job_state = JobState(Job("j", A2, 8, 3, roles=MIXED))
    assert job_state.remaining is job_state.job

    job_state.finish([0, 3, 4])

    (worker,) = job_state.remaining.roles
    assert (worker.name, worker.ranks, worker.min_available) == ("worker", (1, 2), 1)
    assert job_state.remaining.replicas == 2
    assert job_state.remaining.min_pods == 2
    assert job_state.remaining.finished == (0,)
    assert job_state.remaining.submitted == job_state.job.submitted


def test_the_rest_of_an_elastic_job_needs_fewer_pods() -> None:
    job_state = JobState(Job("j", A2, 8, 4, min_available=3))
    job_state.finish([1, 2])

    assert job_state.remaining.min_available == 1
    assert job_state.remaining.n_pods == 2
