"""What holds a job back in the network, in words."""

from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace

from ringleaf.explain.survey import survey
from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Reason, Waiting
from ringleaf.model.fault import RestartScope
from ringleaf.model.job import Job, Previous
from ringleaf.model.job_labels import Firmness
from ringleaf.model.mask import chips_of, full_mask
from ringleaf.model.placement import JobType, LeafAnnotation, LeafState, Placement
from ringleaf.model.settings import LeafChoice, Settings
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.superpod_obstacles import _block_words
from tests.leaves import (
    A2,
    A3,
    SINGLE,
    TWO,
    before,
    common,
    hold,
    large,
    leaves,
    superpods,
)

PADDING = "a padding job (large-model-schema, below 4 pods)"
EXCLUSIVE = LeafAnnotation(JobType.FOUNDATION, LeafState.EXCLUSIVE)


def waiting(cluster: Cluster, job: Job, settings: Settings | None = None) -> Waiting:
    decision = Session(cluster, settings).decide(job)
    assert isinstance(decision, Waiting)
    return decision


def test_no_topology() -> None:
    cluster = Cluster([replace(node, leaf=None) for node in _nodes(3)])

    found = waiting(cluster, common(2))

    assert found.because == "no leaf switch is known"
    assert found.reasons == {Reason.NO_TOPOLOGY: 3}
    assert found.hint == (
        "list the leaf of each node, or remove tor-affinity from the job"
    )


def _nodes(count: int) -> list[Node]:
    return [Node(f"n{i}", A2, 8, 0xFF) for i in range(count)]


def test_closed_leaves_are_reported_with_the_jobs_that_close_them() -> None:
    cluster = leaves("A ####", "B ####", "C ####", "D ####")
    hold(cluster, "job-2", "A0 B0")
    hold(cluster, "job-1", "C0")
    hold(cluster, "job-1", "D0")

    found = waiting(cluster, large(5))

    assert found.because == (
        "leaf rule 1.0: leaves A, B, C, D are closed: jobs job-1, job-2 cross them; "
        "open leaves have no free nodes of the 5 needed"
    )
    assert found.reasons == {Reason.TOO_FEW_CHIPS: 4, Reason.LEAF_CLOSED: 12}
    assert (found.fitting, found.missing) == (0, 5)
    assert found.hint == (
        "would start if, for example, job 'job-1' ended; "
        "3 x 8 chips would be placed now"
    )


def test_one_closed_leaf_is_reported_in_the_singular() -> None:
    known = (Leaf("A", crossed_by=(JobType.FOUNDATION,)),)
    cluster = leaves("A ####", "B ####", known=known)

    found = waiting(cluster, large(6))

    assert found.because == (
        "leaf rule 1.0: leaf A is closed: another job crosses it; "
        "open leaves have 4 free nodes of the 6 needed"
    )


def test_the_end_of_no_single_job_need_be_enough() -> None:
    cluster = leaves("A ####", "B ####", "C ####", "D ####")
    hold(cluster, "x", "A0 B0")
    hold(cluster, "y", "C0 D0")

    found = waiting(cluster, large(12))

    assert found.hint == "3 x 8 chips would be placed now"


@pytest.mark.parametrize(
    ("settings", "subject"),
    [
        (Settings(), f"leaf rule 1.0: {PADDING}"),
        (TWO, f"leaf rule 2.0: {PADDING}"),
        (SINGLE, "single-layer leaf rule: a job of a single-layer network"),
    ],
    ids=["1.0", "2.0", "single-layer"],
)
def test_a_job_that_stays_inside_wants_one_leaf(
    settings: Settings, subject: str
) -> None:
    found = waiting(leaves("A ##..", "B ##.."), large(3), settings)

    assert found.because == (
        f"{subject} stays under one leaf, and none has 3 free nodes; "
        "leaf A has the most, 2 free nodes"
    )
    assert (found.missing, found.fitting) == (1, 4)


def test_a_padding_job_that_would_fit_as_a_common_job_gets_a_hint() -> None:
    found = waiting(leaves("A ##..", "B ..##"), large(3))

    assert found.hint == (
        "with tor-affinity: normal-schema it would be placed now; 2 x 8 chips would "
        "be placed now"
    )


def test_uneven_slots() -> None:
    found = waiting(leaves("A ##..", "B ##..", "C ##.."), large(5))

    assert found.because == (
        "leaf rule 1.0: no leaf is complete; spread evenly over the slots, slot 2 has "
        "0 of the 1 free node needed, 1 more slot short too"
    )
    assert found.hint.startswith(
        "with tor-affinity: normal-schema it would be placed now"
    )


@pytest.mark.parametrize(
    ("drawn", "there", "also"),
    [
        pytest.param(
            ("A ####", "B ##", "C ##"), "there is 1", "", id="of the largest size"
        ),
        pytest.param(
            ("A ###.", "B ##.", "C ##."),
            "there are 0",
            ", 1 more slot short too",
            id="none",
        ),
    ],
)
def test_with_leaf_choice_guide_complete_leaves_are_all_of_one_size(
    drawn: tuple[str, ...], there: str, also: str
) -> None:
    """Slots 0 and 1 have three nodes, slot 2 has one; slot 3 has one or none."""
    guide = Settings(leaf_choice=LeafChoice.GUIDE)

    found = waiting(leaves(*drawn), large(7), guide)

    assert found.because == (
        f"leaf rule 1.0: it needs 2 complete leaves, {there}; spread evenly over the "
        f"slots, slot 2 has 1 of the 2 free nodes needed{also}"
    )


def test_too_few_nodes_at_all() -> None:
    cluster = leaves("A ####", "B ####")
    hold(cluster, "x", "A0 B0")

    found = waiting(cluster, large(8))

    assert found.because == (
        "leaf rule 1.0: leaves A, B are closed: job x crosses them; "
        "open leaves have no free nodes of the 8 needed"
    )
    assert found.hint == (
        "would start if job 'x' ended; needs 2 more nodes with "
        "8 free chips; 3 x 8 chips would be placed now"
    )


def test_too_few_nodes_and_nothing_closed() -> None:
    found = waiting(leaves("A ##..", "B #..."), large(4))

    assert found.because == ""
    assert found.missing == 1


def test_the_shared_budget() -> None:
    known = tuple(Leaf(name, state=LeafState.SHARED) for name in "ABC")
    cluster = leaves("A ####", "B ####", "C ####", "D ####", known=known)

    found = waiting(cluster, large(13), TWO)

    assert found.because == (
        "leaf rule 2.0: idle leaves have 4 free nodes and the 2 best shared leaves 8, "
        "together 12 of the 13 needed"
    )
    assert found.hint.startswith(
        "with tor-affinity: normal-schema it would be placed now; 12 x 8"
    )


def test_exclusive_and_unhealthy_leaves_are_closed_to_foundation_jobs() -> None:
    known = (Leaf("B", state=LeafState.SHARED, healthy=False),)
    cluster = leaves("A ####", "B ####", "C ####", "D ####", known=known)
    hold(cluster, "x", "C0 D0", EXCLUSIVE)

    found = waiting(cluster, large(9), TWO)

    assert found.reasons[Reason.LEAF_CLOSED] == 10
    assert found.because == (
        "leaf rule 2.0: leaves C, D are closed: job x crosses them; leaf B is closed: "
        "it is unhealthy; open leaves have 4 free nodes of the 9 needed"
    )


def test_the_reason_names_only_unhealthy_leaves_where_no_job_crosses_one() -> None:
    known = (Leaf("B", state=LeafState.SHARED, healthy=False),)
    cluster = leaves("A ####", "B ####", known=known)

    found = waiting(cluster, large(5), TWO)

    assert found.because == (
        "leaf rule 2.0: leaf B is closed: it is unhealthy; "
        "open leaves have 4 free nodes of the 5 needed"
    )
    assert found.reasons == {Reason.LEAF_CLOSED: 4}


def test_leaves_of_foundation_jobs_are_closed_to_common_ones() -> None:
    cluster = leaves("A ####", "B ####", "C ####")
    hold(cluster, "x", "A0 B0", EXCLUSIVE)

    found = waiting(cluster, common(6), TWO)

    assert found.reasons[Reason.LEAF_CLOSED] == 6


class TestSuperpods:
    """Blocks that find no room."""

    def test_hard_blocks(self) -> None:
        found = waiting(superpods(3, 3, 3), Job("j", A3, 16, 8, sp_block=64))

        assert found.because == (
            "SuperPoD rule: needs 2 blocks of 4 nodes, each in one SuperPoD, there is "
            "room for 0; SuperPoD 0 has 3, SuperPoD 1 has 3, SuperPoD 2 has 3 free"
        )
        assert found.hint == "8 x 16 chips with sp-block: 16 would be placed now"
        assert (found.missing, found.fitting) == (1, 9)

    def test_one_block(self) -> None:
        found = waiting(superpods(2, 2), Job("j", A3, 16, 3))

        assert found.because.startswith(
            "SuperPoD rule: needs 1 block of 3 nodes in one"
        )
        assert found.hint == "3 x 16 chips with sp-block: 16 would be placed now"

    def test_fewer_blocks_where_nothing_smaller_helps(self) -> None:
        found = waiting(superpods(2, 2), Job("j", A3, 16, 6, sp_block=16))

        assert found.because == (
            "SuperPoD rule: needs 6 blocks of 1 node, each in one SuperPoD, there is "
            "room for 4; SuperPoD 0 has 2, SuperPoD 1 has 2 free"
        )
        assert found.hint == (
            "add nodes of atlas-900-a3, or request at most 4 pods; "
            "4 x 16 chips with sp-block: 16 would be placed now"
        )

    def test_soft(self) -> None:
        job = Job("j", A3, 16, 6, sp_block=32, superpod_affinity=Firmness.SOFT)

        found = waiting(superpods(2, 3), job)

        assert found.hint.endswith(
            "4 x 16 chips with sp-block: 32 and super-pod-affinity: soft "
            "would be placed now"
        )

    def test_soft_is_offered_where_smaller_blocks_are_illegal(self) -> None:
        """Blocks of one node always divide, so soft comes after them."""
        found = waiting(superpods(1), Job("j", A3, 16, 2, sp_block=16))

        assert found.hint.endswith("1 x 16 chips with sp-block: 16 would be placed now")

    def test_a_lost_block(self) -> None:
        chips = chips_of(full_mask(16))
        names = ("p0-00", "p0-01", "p1-00", "p1-01")
        placements = tuple(Placement(i, n, chips) for i, n in enumerate(names))
        job = Job(
            "j", A3, 16, 4, sp_block=32, previous=Previous(placements, ("p1-00",))
        )
        cluster = superpods(2, 2, 2)
        hold(cluster, "j", "p0-00 p0-01 p1-01")

        found = waiting(cluster, job)

        assert found.because == (
            "1 pod must be replaced in the SuperPoD of the block: "
            "SuperPoD 1 has no other fitting nodes"
        )
        assert found.hint == "restarting its block would place it now"

    def test_a_pod_that_is_lost_with_its_chips_has_no_node_to_name(self) -> None:
        chips = chips_of(full_mask(16))
        placements = (Placement(0, "p0-00", chips), Placement(1, "gone", chips))
        job = Job("j", A3, 16, 2, previous=Previous(placements))

        found = waiting(superpods(1), job)

        assert found.because == "1 pod must be replaced"


class TestRepair:
    """Pods that find no place again."""

    def previous(self, nodes: str, failed: str) -> Previous:
        return before(
            nodes, failed, RestartScope.POD, LeafAnnotation(JobType.FOUNDATION)
        )

    def test_a_padding_job(self) -> None:
        cluster = leaves("A ###.", "B ####")
        hold(cluster, "j", "A0 A2")
        job = replace(large(3), previous=self.previous("A0 A1 A2", "A1"))

        found = waiting(cluster, job)

        assert found.because == (
            "1 pod must be replaced (the job stays under its leaf); "
            "the other pods are under leaf A, with no other fitting nodes"
        )
        assert found.hint == "restarting the whole job would place it now"
        assert found.reasons == {
            Reason.FAILED_BEFORE: 1,
            Reason.OWN_POD: 2,
            Reason.TOO_FEW_CHIPS: 1,
        }

    def test_uneven_slots(self) -> None:
        cluster = leaves("A ####", "B ##.#")
        hold(cluster, "j", "A0 A1 A3 B0 B1")
        previous = self.previous("A0 A1 A2 A3 B0 B1", "A2")

        found = waiting(cluster, replace(large(6), previous=previous))

        assert found.because == (
            "1 pod must be replaced (a slot that is used least, under a leaf that no "
            "other job crosses); the other pods are under leaves A, B, "
            "with 1 other fitting node"
        )
        assert found.hint == "restarting the whole job would not place it now either"

    def test_the_budget_of_2_0(self) -> None:
        cluster = leaves("A ##..", "B ##..")
        hold(cluster, "x", "B0 B1", EXCLUSIVE)
        hold(cluster, "j", "A0", EXCLUSIVE)
        previous = before("A0 A1", "A1", RestartScope.POD, EXCLUSIVE)

        found = waiting(cluster, replace(common(2), previous=previous), TWO)

        assert "a leaf the job uses, an idle one" in found.because

    def test_a_pod_under_no_leaf(self) -> None:
        cluster = Cluster(
            [*_nodes(1), *(replace(n, name=f"m{n.name}", leaf="A") for n in _nodes(1))]
        )
        hold(cluster, "j", "n0")
        previous = self.previous("n0 mn0", "mn0")

        found = waiting(cluster, replace(common(2), previous=previous))

        assert found.because == (
            "1 pod must be replaced, but a pod that stays is under no known leaf switch"
        )

    def test_a_job_that_was_deleted_whole_gets_the_reason_of_a_new_job(self) -> None:
        cluster = leaves("A ##..")
        previous = before("A0 A1", "A0 A1", RestartScope.JOB)

        found = waiting(cluster, replace(large(2), previous=previous))

        assert found.reasons == {Reason.FAILED_BEFORE: 2, Reason.TOO_FEW_CHIPS: 2}
        assert found.because.startswith(
            f"leaf rule 1.0: {PADDING} stays under one leaf"
        )


def test_a_common_job_within_its_capacity_finds_no_leaf_closed() -> None:
    known = (Leaf("B", state=LeafState.SHARED, crossed_by=(JobType.FOUNDATION,)),)
    cluster = leaves("A ####", "B ####", known=known)

    found = survey(Session(cluster, TWO), common(6), most=1)

    assert [view.closed for view in found.leaves] == [False, False]
    assert found.refused == {}


def test_to_the_vendor_a_job_of_as_many_pods_as_a_leaf_has_finds_it_closed() -> None:
    cluster = leaves("A ####", "B ####")
    hold(cluster, "x", "B0", EXCLUSIVE)
    hold(cluster, "x", "A0", EXCLUSIVE)
    with Statement(cluster) as statement:
        statement.release("x")
        statement.hold("x", cluster.index["A0"], 0x0F, 0, EXCLUSIVE)
        statement.hold("x", cluster.index["B0"], 0x0F, 1, EXCLUSIVE)
        statement.commit()

    guide = replace(TWO, leaf_choice=LeafChoice.GUIDE)
    found = waiting(cluster, large(4, chips=4), guide)

    assert found.because == (
        "leaf rule 2.0: leaves A, B are closed: job x crosses them; "
        "open leaves have no free nodes of the 4 needed"
    )
    assert found.hint.startswith("would start if job 'x' ended")


def test_a_smaller_block_is_offered_only_if_its_network_is_healthy() -> None:
    nodes = [
        Node("a", A3, 16, 0xFFFF, network_faulty=1, superpod=0),
        Node("b", A3, 16, 0xFFFF, superpod=1),
    ]

    found = waiting(Cluster(nodes), Job("j", A3, 16, 2))

    assert "sp-block: 16" not in found.hint
    assert found.hint == "add nodes, or submit a smaller job"


class Passes(list[int]):
    """Numbers of pods that count how often they are iterated over."""

    n_passes = 0

    def __iter__(self) -> Iterator[int]:
        self.n_passes += 1
        return super().__iter__()


def test_pods_that_are_lost_are_gone_through_once_however_many_there_were() -> None:
    cluster, missing = superpods(4), Passes(range(4))
    were = tuple(Placement(i, f"p0-0{i}", ()) for i in range(4))
    job = Job("j", A3, 16, 4, previous=Previous(were))

    message = _block_words(cluster, job, np.zeros(4, np.int64), missing)

    assert "SuperPoD 0 has" in message
    assert missing.n_passes == 1


def test_a_pod_lost_to_a_faulty_chip_names_its_superpod() -> None:
    chips = chips_of(full_mask(16))
    nodes = [
        Node("p0", A3, 16, 0xFFFF, faulty=8, superpod=0),
        Node("p1", A3, 16, 0xFFFF, superpod=0),
        *(Node(f"q{i}", A3, 16, 0xFFFF, superpod=1) for i in range(2)),
    ]
    placements = tuple(Placement(i, f"p{i}", chips) for i in range(2))
    cluster = Cluster(nodes)
    hold(cluster, "j", "p1")

    found = waiting(cluster, Job("j", A3, 16, 2, previous=Previous(placements)))

    assert found.because == (
        "1 pod must be replaced in the SuperPoD of the block: "
        "SuperPoD 0 has no other fitting nodes"
    )


def test_a_job_larger_than_every_leaf_of_a_single_layer_gets_a_reason() -> None:
    found = waiting(leaves("A ####", "B ###"), large(6), SINGLE)

    assert found.because == (
        "single-layer leaf rule: a job of a single-layer network stays under one leaf, "
        "and the largest leaf has 4 nodes only"
    )


def test_complete_leaves_that_hold_part_of_a_job_are_counted() -> None:
    found = waiting(leaves("A ####", "B ##..", "C ##..", "D ##.."), large(8))

    assert found.because == (
        "leaf rule 1.0: complete leaves have 4 of the 8 nodes, and no other leaf has "
        "the remaining 4; spread evenly over the slots, slot 2 has 1 of the 2 free "
        "nodes needed, 1 more slot short too"
    )


def test_too_few_slots_for_a_job_smaller_than_a_leaf() -> None:
    found = waiting(leaves("A ##....", "B ##....", "C ##...."), large(5))

    assert found.because == (
        "leaf rule 1.0: no leaf has 5 free nodes, and free nodes are at 2 different "
        "slots only"
    )


def test_closed_leaves_come_before_the_slots_of_open_ones() -> None:
    cluster = leaves("A ##..", "B ##..", "C ##..", "D ####", "E ####")
    hold(cluster, "x", "D0 E0")

    found = waiting(cluster, large(5))

    assert found.because == (
        "leaf rule 1.0: leaves D, E are closed: job x crosses them; open leaves have "
        "6 free nodes of the 5 needed; no open leaf is complete; spread evenly over "
        "the slots, slot 2 has 0 of the 1 free node needed, 1 more slot short too"
    )


def test_closed_leaves_come_before_the_budget_of_shared_ones() -> None:
    known = tuple(Leaf(name, state=LeafState.SHARED) for name in "ABC")
    cluster = leaves("A ##..", "B ##..", "C ##..", "D ####", "E ####", known=known)
    hold(cluster, "x", "D0 E0", EXCLUSIVE)

    found = waiting(cluster, large(5), TWO)

    assert found.because == (
        "leaf rule 2.0: leaves D, E are closed: job x crosses them; open leaves have "
        "6 free nodes of the 5 needed; idle leaves have no free nodes and the 2 best "
        "shared leaves 4, together 4 of the 5 needed"
    )


def test_a_message_counts_pods_without_a_node_only_where_nodes_are_too_few() -> None:
    bound = waiting(leaves("A ##..", "B ##.."), large(3))
    few = waiting(leaves("A ##..", "B ...."), large(3))

    assert bound.message == (
        f"job 'j' waits: needs 3 x 8 chips; {bound.because}; "
        "nodes: 4 fitting, 4 with too few free chips"
    )
    assert few.message.startswith(
        "job 'j' waits: needs 3 x 8 chips, 1 pod has no node; leaf rule 1.0: "
    )
    assert bound.parts[0] == "needs 3 x 8 chips"
