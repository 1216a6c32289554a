"""What is written on each pod of a placed job; the device plugin reads it.

Clock-dependent keys (``predicate-time``) are added by the edge that has a clock.
"""

from ringleaf.model.decision import Placed, Placement
from ringleaf.model.job import Job


def chip_list(job: Job, placement: Placement) -> str:
    """The device plugin's spelling of a pod's chips.

    >>> from ringleaf.policies.products import PRODUCTS
    >>> job = Job("j", PRODUCTS["atlas-800t-a2"], chips=2)
    >>> chip_list(job, Placement(0, "a", (0, 1)))
    'Ascend910-0,Ascend910-1'
    """
    return ",".join(f"{job.product.chip_prefix}-{chip}" for chip in placement.chips)


def pod_annotations(
    placed: Placed, placement: Placement, superpod: int | None
) -> dict[str, str]:
    """The annotations of the pod at *placement*, which stands in *superpod*."""
    job = placed.job
    written = {
        job.product.resource: chip_list(job, placement),
        "distributed-job": "true" if job.replicas > 1 else "false",
        "hccl/rankIndex": str(placement.replica),
    }
    if job.product.superpod:
        written |= {"super-pod-rank": "0", "super-pod-id": str(superpod)}
    return written
