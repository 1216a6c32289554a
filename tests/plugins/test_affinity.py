"""Affinity as a plugin says what a session does."""

import numpy as np
import pytest

from ringleaf.framework.node_ranking import points_of
from ringleaf.framework.session import Session
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed
from ringleaf.model.job import Job
from ringleaf.model.mask import mask_of
from ringleaf.plugins import PLUGINS
from ringleaf.policies.chips import NEVER
from ringleaf.policies.fit import node_ranks, request_of
from ringleaf.policies.products import PRODUCTS
from tests.chips import chips as chips_of
from tests.plugins.stage import Stage

RINGS = PRODUCTS["atlas-800-9000"]


def rings(*free: str) -> Cluster:
    return Cluster(
        Node(f"n{i}", RINGS, 8, mask_of(chips_of(each))) for i, each in enumerate(free)
    )


@pytest.mark.parametrize(
    ("chips", "want"),
    [
        pytest.param(8, None, id="a request that the wiring allows"),
        pytest.param(0, None, id="a job without chips is not its business"),
        pytest.param(
            9,
            (
                "9 chips in one pod are more than the 8 of atlas-800t-a2; hint: "
                "ask for 2 x 5 chips; atlas-800t-a2 takes 1 to 8 chips in each pod"
            ),
            id="a request that the wiring forbids, with the way out",
        ),
    ],
)
def test_valid_jobs_are_those_that_admission_lets_through(
    chips: int, want: str | None
) -> None:
    stage = Stage()

    assert stage.votes("affinity").job_valid(stage.waits("j", chips=chips)) == want


def test_a_configuration_with_the_guides_name_builds_the_registered_plugin() -> None:
    stage = Stage()
    tiers = [{"plugins": [{"name": "topology910"}]}]

    votes = stage.voting({"actions": "allocate", "tiers": tiers})

    assert [type(plugin) for plugin in votes.plugins.values()] == [PLUGINS["affinity"]]
    assert votes.job_valid(stage.waits("j", chips=9)) is not None


def test_nodes_whose_free_chips_are_not_wired_together_are_filtered_out() -> None:
    """The guide's example of AddPredicateFn: two chips, one free in each ring."""
    cluster = rings("0...|4...", "01..|....")

    ranks = node_ranks(cluster, request_of(Job("j", RINGS, 2)))
    assert (ranks != NEVER).tolist() == [False, True]


@pytest.mark.parametrize("chips", [1, 2, 4, 8])
def test_the_best_score_is_where_a_session_places_the_job(chips: int) -> None:
    free = "0...|4567", "01..|4567", "012.|4567", "0123|4567", "....|4..."
    cluster, job = rings(*free), Job("j", RINGS, chips)
    ranks = node_ranks(cluster, request_of(job))
    points = points_of(request_of(job), ranks).astype(np.float64)
    scores = np.where(ranks == NEVER, -np.inf, points)
    placed = Session(cluster, sum_scores=True).decide(job)

    assert isinstance(placed, Placed)
    assert placed.placements[0].node == f"n{scores.argmax()}"


@pytest.mark.parametrize("sums", [True, False])
def test_scores_are_summed_only_where_that_is_configured(*, sums: bool) -> None:
    votes = Stage().voting(
        {
            "actions": "allocate",
            "tiers": [
                {"plugins": [{"name": "affinity", "arguments": {"sum-scores": sums}}]}
            ],
        }
    )

    assert votes.plugins["affinity"].sums_scores is sums
