"""What is written on each pod of a placed job; the device plugin reads it.

Clock-dependent keys (``predicate-time``) are added by the edge that has a clock.
"""

from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Placed
from ringleaf.model.job import Job
from ringleaf.model.placement import LeafState, Placement


def chip_list(job: Job, placement: Placement) -> str:
    """The device plugin's spelling of a pod's chips.

    >>> from ringleaf.policies.products import PRODUCTS
    >>> job = Job("j", PRODUCTS["atlas-800t-a2"], chips=2)
    >>> chip_list(job, Placement(0, "a", (0, 1)))
    'Ascend910-0,Ascend910-1'
    """
    return ",".join(f"{job.product.chip_prefix}-{chip}" for chip in placement.chips)


def pod_annotations(cluster: Cluster, placed: Placed) -> list[dict[str, str]]:
    """The annotations of every pod of *placed*; none for a pod without chips."""
    several = "true" if placed.job.submitted > 1 else "false"
    return [
        _annotations(cluster, placed.job, each, several) if each.chips else {}
        for each in placed.placements
    ]


def _annotations(
    cluster: Cluster, job: Job, placement: Placement, several: str
) -> dict[str, str]:
    """The rank is written unless the pod came with one."""
    node = cluster.index[placement.node]
    written = {
        job.product.resource: chip_list(job, placement),
        "distributed-job": several,
    }
    role = job.role_by_pod.get(placement.replica) if job.roles else None
    if role is None or not role.ranks:
        written["hccl/rankIndex"] = str(placement.replica)
    if placement.block is not None:
        written["super-pod-rank"] = str(placement.block)
        written["super-pod-id"] = str(cluster.superpod.item(node))
    if placement.mark is not None:
        state, leaf = placement.mark.state, cluster.leaf_of(node)
        written["isSharedTor"] = str(int(state))
        written["isHealthy"] = "0" if placement.mark.healthy else "1"
        if state is LeafState.SHARED and leaf is not None and leaf.address is not None:
            written["sharedTorIp"] = leaf.address
    return written
