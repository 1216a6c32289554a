"""Rows of nodes under leaves, where the whole decision does not get so far."""

import numpy as np
import pytest

from ringleaf.model.cluster import Cluster
from ringleaf.model.placement import JobType
from ringleaf.model.settings import Settings
from ringleaf.policies.switches import choose_rows, ground_of
from tests.engine.story import node


@pytest.mark.parametrize("job_type", [JobType.PADDING, JobType.FOUNDATION])
def test_where_no_leaf_is_known_there_is_no_row(job_type: JobType) -> None:
    cluster = Cluster([node("a"), node("b")])
    ground = ground_of(cluster, np.zeros(len(cluster), np.int64), Settings())

    assert choose_rows(ground, 2, job_type, Settings()) is None
