"""Rows of nodes under leaves, where the whole decision does not get so far."""

import numpy as np
import pytest
from msgspec.structs import replace

from ringleaf.model.cluster import Cluster
from ringleaf.model.placement import JobType
from ringleaf.model.settings import Settings
from ringleaf.policies.switches import choose_rows, ground_of
from tests.engine.story import node
from tests.leaves import SINGLE, common, leaves, nodes_of


@pytest.mark.parametrize("job_type", [JobType.PADDING, JobType.FOUNDATION])
def test_where_no_leaf_is_known_there_is_no_row(job_type: JobType) -> None:
    cluster = Cluster([node("a"), node("b")])
    ground = ground_of(cluster, np.zeros(len(cluster), np.int64), Settings())

    assert choose_rows(ground, 2, job_type, Settings()) is None


@pytest.mark.parametrize(
    ("nodes_per_leaf", "pods", "nodes"),
    [
        pytest.param(None, 4, "A0 A1 A2 A3", id="as many pods as the leaf has nodes"),
        pytest.param(None, 5, None, id="more pods than a leaf has nodes"),
        pytest.param(3, 3, "A0 A1 A2", id="as many pods as a leaf is said to have"),
        pytest.param(3, 4, None, id="more pods than a leaf is said to have"),
    ],
)
def test_a_job_in_a_single_layer_network_is_no_larger_than_a_leaf(
    nodes_per_leaf: int | None, pods: int, nodes: str | None
) -> None:
    settings = replace(SINGLE, nodes_per_leaf=nodes_per_leaf)

    assert nodes_of(leaves("A ####", "B ##"), common(pods), settings) == nodes
