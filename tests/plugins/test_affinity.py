"""Affinity as a plugin says what a session does."""

import numpy as np
import pytest

from ringleaf.framework.session import Session
from ringleaf.framework.view import View
from ringleaf.framework.vocabulary import Value
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed
from ringleaf.model.job import Job, Role
from ringleaf.model.mask import mask_of
from ringleaf.model.settings import Settings
from ringleaf.plugins.affinity import Affinity
from ringleaf.policies.products import PRODUCTS
from tests.chips import chips as chips_of
from tests.plugins.stage import Stage

RINGS = PRODUCTS["atlas-800-9000"]


def affinity(*free: str, sum_scores: Value = False) -> Affinity:
    nodes = [
        Node(f"n{i}", RINGS, 8, mask_of(chips_of(each))) for i, each in enumerate(free)
    ]
    return Affinity(View(Cluster(nodes), Settings()), {"sum-scores": sum_scores})


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


def test_nodes_whose_free_chips_are_not_wired_together_are_filtered_out() -> None:
    """The guide's example of AddPredicateFn: two chips, one free in each ring."""
    plugin = affinity("0...|4...", "01..|....")
    job = Job("j", RINGS, 2)
    flags = plugin.predicate(job, job.crew[0][0])

    assert flags is not None
    assert flags.tolist() == [False, True]


def test_pods_without_chips_may_go_anywhere() -> None:
    plugin = affinity("....|....", sum_scores=True)
    job = Job("j", RINGS, 2, roles=(Role("help", 0), Role("work", 2)))

    assert plugin.predicate(job, job.roles[0]) is None
    assert plugin.node_order(job, job.roles[0], np.array([0])) is None


def test_scores_count_only_where_they_are_to_be_summed() -> None:
    job = Job("j", RINGS, 2)

    plugin = affinity("0123|4567")
    assert plugin.node_order(job, job.crew[0][0], np.array([0])) is None


@pytest.mark.parametrize("chips", [1, 2, 4, 8])
def test_the_best_score_is_where_a_session_places_the_job(chips: int) -> None:
    free = "0...|4567", "01..|4567", "012.|4567", "0123|4567", "....|4..."
    plugin = affinity(*free, sum_scores=True)
    job = Job("j", RINGS, chips)
    scores = plugin.node_order(job, job.crew[0][0], np.arange(len(free)))
    placed = Session(plugin.view.cluster).decide(job)

    assert scores is not None
    assert isinstance(placed, Placed)
    assert placed.placements[0].node == f"n{scores.argmax()}"


def test_nodes_that_do_not_fit_score_below_all() -> None:
    plugin = affinity("0...|4...", "0123|4567", sum_scores=True)
    job = Job("j", RINGS, 2)
    scores = plugin.node_order(job, job.crew[0][0], np.array([1, 0]))

    assert scores is not None
    assert scores[0] > scores[1] == -np.inf
