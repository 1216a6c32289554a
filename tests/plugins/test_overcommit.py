"""Letting jobs in up to a multiple of the cluster."""

import pytest

from ringleaf.framework.job_state import Phase
from tests.plugins.stage import CHIPS, Stage, asks


def conf(arguments: dict[str, object]) -> dict[str, object]:
    entry = {"name": "overcommit", "arguments": arguments}
    return {"actions": "enqueue", "tiers": [{"plugins": [entry]}]}


@pytest.mark.parametrize(
    ("arguments", "chips", "want"),
    [
        pytest.param(
            {}, 14, True, id="16 used + 8 admitted + 14 = 38 of 32 x 1.2 = 38.4"
        ),
        pytest.param({}, 15, False, id="39 are more than 38.4"),
        pytest.param(
            {"overcommit-factor": 1}, 8, True, id="factor 1: up to the cluster"
        ),
        pytest.param({"overcommit-factor": 1}, 9, False, id="and no further"),
        pytest.param({"overcommit-factor": 1.5}, 24, True, id="factor 1.5: up to 48"),
        pytest.param(
            {"overcommit-factor": 1, f"overcommit-factor.{CHIPS}": 2},
            40,
            True,
            id="a factor for the resource alone: up to 64",
        ),
        pytest.param(
            {f"overcommit-factor.{CHIPS}": 2}, 41, False, id="65 are more than 64"
        ),
    ],
)
def test_used_admitted_and_needed_chips_are_within_the_cluster_times_the_factor(
    arguments: dict[str, object],
    chips: int,
    want: bool,  # noqa: FBT001
) -> None:
    """Four nodes of 8 chips: 16 are used, a job that needs 8 was admitted."""
    stage = Stage()
    stage.runs("runs", "0 1")
    stage.view.set_phase(stage.waits("in"), Phase.INQUEUE)
    job_state = stage.waits("j", chips=1, replicas=chips)

    assert stage.voting(conf(arguments)).job_enqueueable(job_state) is want


def test_only_what_must_start_together_is_needed() -> None:
    stage = Stage()
    job_state = stage.waits("j", chips=1, replicas=100, min_available=38)
    votes = stage.votes("overcommit")

    assert votes.job_enqueueable(job_state)
    assert not votes.job_enqueueable(stage.waits("k", chips=1, replicas=39))


def test_the_factor_counts_as_it_is_written() -> None:
    """1.15 times 20 is 23, though not in binary fractions."""
    stage = Stage(nodes=1, resources={"cpu": 20})
    votes = stage.voting(conf({"overcommit-factor": 1.15}))

    assert votes.job_enqueueable(stage.waits("j", chips=1, demand=asks(cpu=23)))
    assert not votes.job_enqueueable(stage.waits("k", chips=1, demand=asks(cpu=24)))


def test_a_resource_that_the_cluster_does_not_count_is_not_limited() -> None:
    stage = Stage()
    job_state = stage.waits("j", demand=asks(cpu=10**9))

    assert stage.votes("overcommit").job_enqueueable(job_state)


def test_what_a_job_needs_nothing_of_does_not_count() -> None:
    stage = Stage(nodes=1, resources={"cpu": 1000})
    votes = stage.voting(conf({"overcommit-factor": 1}))
    stage.view.set_phase(
        stage.waits("in", chips=1, demand=asks(cpu=5000)), Phase.INQUEUE
    )

    assert votes.job_enqueueable(stage.waits("j", chips=1, demand=asks(cpu=0)))


def test_a_cluster_that_grows_admits_more() -> None:
    stage = Stage(nodes=1)
    job_state = stage.waits("j", replicas=2)
    votes = stage.votes("overcommit")
    assert not votes.job_enqueueable(job_state)

    stage.view.total = {CHIPS: 16_000}
    assert votes.job_enqueueable(job_state)


@pytest.mark.parametrize("lists_all", [True, False])
def test_what_no_node_names_is_nothing_where_nodes_list_all(
    lists_all: bool,  # noqa: FBT001
) -> None:
    stage = Stage(lists_all=lists_all)
    job_state = stage.waits("j", chips=1, demand=asks(made_up=1))

    podless = stage.waits("k", chips=0, podless=True, demand=asks(quota=1))

    votes = stage.votes("overcommit")
    assert votes.job_enqueueable(job_state) is not lists_all
    assert votes.job_enqueueable(podless)
