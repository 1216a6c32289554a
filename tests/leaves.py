"""Leaves and SuperPoDs drawn as strings, so that a test shows the nodes it is about.

``leaves("A ##.#", "B ####")`` has nodes ``A0`` to ``A3`` and ``B0`` to ``B3`` of
``atlas-800t-a2``, in slots 0 to 3: ``#`` is free, ``.`` is taken, ``-`` is half free
(chips 0 to 3), ``s`` is free and sub-healthy. A blank is no node at all.
"""

from collections.abc import Iterator

from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed
from ringleaf.model.fault import RestartScope
from ringleaf.model.job import Job, Previous
from ringleaf.model.job_labels import Schema
from ringleaf.model.mask import chips_of, full_mask
from ringleaf.model.placement import NO_MARK, LeafAnnotation, Placement
from ringleaf.model.settings import Settings, SwitchMode
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.products import PRODUCTS

A2, A3 = PRODUCTS["atlas-800t-a2"], PRODUCTS["atlas-900-a3"]
FREE = {"#": 0xFF, ".": 0, "-": 0x0F, "s": 0xFF}
TWO = Settings(switch_mode=SwitchMode.SPINE_LEAF_2)
SINGLE = Settings(switch_mode=SwitchMode.SINGLE_LAYER)


def leaves(*drawn: str, known: tuple[Leaf, ...] = ()) -> Cluster:
    """A cluster as it is drawn."""
    return Cluster([node for row in drawn for node in _nodes(row)], known)


def _nodes(row: str) -> Iterator[Node]:
    leaf, _space, marks = row.partition(" ")
    for slot, mark in enumerate(marks):
        if mark != " ":
            yield Node(
                f"{leaf}{slot}",
                A2,
                8,
                FREE[mark],
                leaf=leaf,
                slot=slot,
                sub_healthy=mark == "s",
            )


def superpods(*free: int) -> Cluster:
    """SuperPoD 0 has the first number of free nodes, named ``p0-00``, and so on."""
    return Cluster(
        Node(f"p{superpod}-{i:02}", A3, 16, full_mask(16), superpod=superpod)
        for superpod, nodes in enumerate(free)
        for i in range(nodes)
    )


def large(pods: int, name: str = "j", chips: int = 8) -> Job:
    """A foundation job, or a padding job below four pods."""
    return Job(name, A2, chips, pods, tor_affinity=Schema.LARGE_MODEL)


def common(pods: int, name: str = "j", chips: int = 8) -> Job:
    """A common job."""
    return Job(name, A2, chips, pods, tor_affinity=Schema.NORMAL)


def before(
    nodes: str,
    failed: str = "",
    keep: RestartScope = RestartScope.POD,
    mark: LeafAnnotation | None = None,
) -> Previous:
    """Whole nodes in rank order, separated by blanks, and those that failed."""
    chips = chips_of(full_mask(8))
    return Previous(
        tuple(
            Placement(rank, node, chips, mark=mark)
            for rank, node in enumerate(nodes.split())
        ),
        tuple(failed.split()),
        keep,
    )


def hold(
    cluster: Cluster, job: str, nodes: str, mark: LeafAnnotation = NO_MARK
) -> None:
    """Let *job* hold all of *nodes*."""
    with Statement(cluster) as statement:
        for rank, name in enumerate(nodes.split()):
            node = cluster.index[name]
            statement.hold(job, node, cluster.free.item(node), rank, mark)
        statement.commit()


def nodes_of(
    cluster: Cluster, job: Job, settings: Settings | None = None
) -> str | None:
    """The nodes *job* gets in rank order; None when it is not placed."""
    decision = Session(cluster, settings).decide(job)
    if not isinstance(decision, Placed):
        return None
    return " ".join(placement.node for placement in decision.placements)
