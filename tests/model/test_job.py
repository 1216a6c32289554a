"""What follows from the labels of a job."""

import pytest

from ringleaf.model.job import Job
from ringleaf.model.job_labels import Network, Schema
from ringleaf.model.placement import JobType
from ringleaf.policies.products import PRODUCTS


@pytest.mark.parametrize(
    ("affinity", "pods", "job_type", "network"),
    [
        (None, 1, None, Network.NONE),
        (None, 4, None, Network.NONE),
        (Schema.NORMAL, 1, JobType.COMMON, Network.SWITCHES),
        (Schema.NORMAL, 4, JobType.COMMON, Network.SWITCHES),
        (Schema.LARGE_MODEL, 3, JobType.PADDING, Network.SWITCHES),
        (Schema.LARGE_MODEL, 4, JobType.FOUNDATION, Network.SWITCHES),
    ],
)
def test_a_job_has_a_type_only_by_its_label(
    affinity: Schema | None, pods: int, job_type: JobType | None, network: Network
) -> None:
    job = Job("j", PRODUCTS["atlas-800t-a2"], 8, pods, tor_affinity=affinity)

    assert (job.job_type, job.network) == (job_type, network)
