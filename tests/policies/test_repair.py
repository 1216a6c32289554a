"""What stays after a fault, and where the others go."""

from typing import Any

import pytest
from msgspec.structs import replace

from ringleaf.framework.session import Session
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed, Waiting
from ringleaf.model.demand import Demand, Effect, Taint
from ringleaf.model.fault import RestartScope
from ringleaf.model.job import Job, Previous
from ringleaf.model.job_labels import Firmness
from ringleaf.model.mask import chips_of, full_mask
from ringleaf.model.placement import JobType, LeafAnnotation, LeafState, Placement
from ringleaf.model.settings import LeafChoice, Settings
from ringleaf.policies.products import PRODUCTS
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
    nodes_of,
    superpods,
)

EXCLUSIVE = LeafAnnotation(JobType.FOUNDATION, LeafState.EXCLUSIVE)
SHARED = LeafAnnotation(JobType.FOUNDATION, LeafState.SHARED)


def repaired(
    cluster: Cluster, job: Job, previous: Previous, settings: Settings | None = None
) -> str | None:
    """The nodes of *job* after its repair; pods that stay hold their chips before."""
    if previous.scope is RestartScope.POD:
        for placement in previous.placements:
            if placement.node not in previous.failed_nodes:
                hold(
                    cluster,
                    job.name,
                    placement.node,
                    placement.mark or LeafAnnotation(),
                )
    return nodes_of(cluster, replace(job, previous=previous), settings)


class TestSwitches1:
    """Switch affinity 1.0."""

    @pytest.mark.parametrize("keep", [RestartScope.POD, RestartScope.JOB])
    def test_a_pod_is_replaced_under_its_leaf(self, keep: RestartScope) -> None:
        cluster = leaves("A ####", "B ####")

        found = repaired(cluster, large(3), before("A0 A1 A2", "A1", keep))

        assert found == "A0 A3 A2"

    def test_a_padding_job_without_room_waits(self) -> None:
        cluster = leaves("A ###.", "B ####")

        assert repaired(cluster, large(3), before("A0 A1 A2", "A1")) is None

    def test_a_padding_job_that_was_deleted_whole_moves_whole(self) -> None:
        cluster = leaves("A ###.", "B ####")

        found = repaired(cluster, large(3), before("A0 A1 A2", "A1", RestartScope.JOB))

        assert found == "B0 B1 B2"

    def test_a_foundation_job_takes_the_slot_that_is_used_least(self) -> None:
        cluster = leaves("A ####", "B ####", "C .###")

        found = repaired(cluster, large(7), before("A0 A1 A2 A3 B0 B1 B2", "A3"))

        assert found == "A0 A1 A2 B3 B0 B1 B2"

    def test_leaves_of_the_job_come_before_others(self) -> None:
        cluster = leaves("A ####", "B ####", "C ...#")

        found = repaired(cluster, large(6), before("A0 A1 A2 A3 B0 B1", "A2"))

        assert found == "A0 A1 B2 A3 B0 B1"

    def test_d43_at_a_slot_a_leaf_of_the_job_comes_before_a_fuller_one(self) -> None:
        """B2 and C2 have the slot, and C has the fewer free nodes."""
        cluster = leaves("A ####", "B ####", "C ..#.")

        found = repaired(cluster, large(6), before("A0 A1 A2 A3 B0 B1", "A2"))

        assert found == "A0 A1 B2 A3 B0 B1"

    def test_of_other_leaves_the_fullest_comes_first(self) -> None:
        cluster = leaves("A ####", "B ##.#", "C ####", "D ..#.")

        found = repaired(cluster, large(6), before("A0 A1 A2 A3 B0 B1", "A2"))

        assert found == "A0 A1 D2 A3 B0 B1"

    @pytest.mark.parametrize("choice", LeafChoice)
    def test_d43_leaves_of_several_sizes_are_left_only_where_slots_need_it(
        self, choice: LeafChoice
    ) -> None:
        """Slot 0 lacks as much as slot 2, and B3 loads the slots as evenly as D0."""
        cluster = leaves("A #####", "B #.##", "C .#.", "D #")
        past = before("B0 A1 A3 A4 C1 A0 A2", "A0 A2", RestartScope.JOB)

        found = repaired(cluster, common(7), past, Settings(leaf_choice=choice))

        assert found == "B0 A1 A3 A4 C1 B3 B2"

    def test_d43_a_node_at_home_is_left_free_if_its_slot_would_have_too_many_pods(
        self,
    ) -> None:
        """B0 uses slot 0 already; with A0 the job would not use slot 1 or 2."""
        cluster = leaves("A ##.#", "B #..", "C ####")

        found = repaired(cluster, common(4), before("B0 A1 A3 C3", "A1 C3"))

        assert found == "B0 C1 A3 C2"

    def test_an_uneven_repair_is_refused_to_a_foundation_job(self) -> None:
        cluster = leaves("A ####", "B ##.#")

        assert repaired(cluster, large(6), before("A0 A1 A2 A3 B0 B1", "A2")) is None

    def test_a_common_job_takes_it(self) -> None:
        cluster = leaves("A ####", "B ##.#")

        found = repaired(cluster, common(6), before("A0 A1 A2 A3 B0 B1", "A2"))

        assert found == "A0 A1 B3 A3 B0 B1"

    def test_a_common_job_without_any_room_waits(self) -> None:
        cluster = leaves("A ####", "B ##..")

        assert repaired(cluster, common(6), before("A0 A1 A2 A3 B0 B1", "A2")) is None

    def test_a_leaf_that_another_job_crosses_is_not_entered(self) -> None:
        cluster = leaves("A ####", "B ###.", "C ####", "D ####")
        hold(cluster, "other", "C0 D0")

        found = repaired(cluster, common(7), before("A0 A1 A2 A3 B0 B1 B2", "B1"))

        assert found is None

    def test_a_job_inside_a_leaf_that_others_cross_stays_inside(self) -> None:
        cluster = leaves("A ####", "B ####", "C ####")
        hold(cluster, "other", "A3 B3")

        assert repaired(cluster, large(4), before("A0 A1 A2 C0", "C0")) is None

    def test_survivors_across_leaves_stay_though_another_job_crosses_now(self) -> None:
        cluster = leaves("A ####", "B ####", "C ####")
        hold(cluster, "other", "A3 C3")

        found = repaired(cluster, large(5), before("A0 A1 B2 B3 A2", "A2"))

        assert found == "A0 A1 B2 B3 B0"

    def test_a_job_that_was_deleted_whole_finds_its_leaf_taken(self) -> None:
        cluster = leaves("A ####", "B ####", "C ####", "D ####")
        hold(cluster, "other", "A3 C3")
        previous = before("A0 A1 A2 B0 B1 B2", "B2", RestartScope.JOB)

        assert repaired(cluster, large(6), previous) == "D0 D1 D2 D3 B0 B1"

    def test_pods_say_that_the_job_crosses_leaves_now(self) -> None:
        cluster = leaves("A ####", "B ####")
        job = replace(large(4), previous=before("A0 A1 A2 A3", "A3", RestartScope.JOB))

        decision = Session(cluster).decide(job)

        assert isinstance(decision, Placed)
        assert [p.node for p in decision.placements] == ["A0", "A1", "A2", "B3"]
        assert {p.mark for p in decision.placements} == {EXCLUSIVE}

    def test_a_pod_that_stays_outside_every_leaf_is_no_base(self) -> None:
        cluster = Cluster(
            [
                Node("x", A2, 8, 0xFF),
                *(Node(f"A{i}", A2, 8, 0xFF, leaf="A", slot=i) for i in range(4)),
            ]
        )
        previous = before("x A0 A1", "A0")

        waits = repaired(cluster, large(3), previous)
        hold_nothing = leaves("A ####")
        moves = repaired(
            hold_nothing, large(3), before("A0 A1 A2", "A0", RestartScope.JOB)
        )

        assert waits is None
        assert moves == "A3 A1 A2"

    @pytest.mark.parametrize(
        ("failed", "compact"),
        [
            pytest.param("A2", "A0 A1 D2 A3 B0 B1 C0 C1", id="a slot of one leaf"),
            pytest.param("B1", "A0 A1 A2 A3 B0 D1 C0 C1", id="a slot of three leaves"),
        ],
    )
    def test_d36_with_guide_no_slot_is_used_more_often_for_being_under_more_leaves(
        self, failed: str, compact: str
    ) -> None:
        """Slots 2 and 3 are under leaf A alone: the job loads 3, 3, 1 and 1."""
        drawn = ("A ####", "B ##", "C ##", "D ####")
        previous = before("A0 A1 A2 A3 B0 B1 C0 C1", failed)
        guide = Settings(leaf_choice=LeafChoice.GUIDE)

        assert repaired(leaves(*drawn), large(8), previous) == compact
        assert repaired(leaves(*drawn), large(8), previous, guide) is None

    @pytest.mark.parametrize(
        ("choice", "nodes"),
        [
            pytest.param(
                LeafChoice.COMPACT,
                "A0 A1 A2 A3 B2 C3",
                id="compact: the slot that lacks most of what the leaves have",
            ),
            pytest.param(
                LeafChoice.GUIDE, "A0 A1 A2 A3 B2 C0", id="guide: the first slot"
            ),
        ],
    )
    def test_d36_leaf_choice_says_which_of_the_slots_with_one_load_is_taken(
        self, choice: LeafChoice, nodes: str
    ) -> None:
        """Without B3 the slots have loads of 1, 1, 2 and 1; B has slots 2 and 3."""
        cluster = leaves("A ####", "B   ##", "C ####")
        previous = before("A0 A1 A2 A3 B2 B3", "B3")

        found = repaired(cluster, large(6), previous, Settings(leaf_choice=choice))

        assert found == nodes

    def test_with_leaf_choice_guide_the_least_used_slot_is_taken(self) -> None:
        cluster = leaves("A ####", "B ####", "C .###")
        previous = before("A0 A1 A2 A3 B0 B1 B2", "A3")
        guide = Settings(leaf_choice=LeafChoice.GUIDE)

        assert repaired(cluster, large(7), previous, guide) == "A0 A1 A2 B3 B0 B1 B2"

    @pytest.mark.parametrize("keep", [RestartScope.POD, RestartScope.JOB])
    def test_when_nothing_stays_the_job_is_placed_anew(
        self, keep: RestartScope
    ) -> None:
        cluster = leaves("A ####", "B .###")

        found = repaired(cluster, large(3), before("A0 A1 A2", "A0 A1 A2", keep))

        assert found == "B1 B2 B3"


class TestSwitches2:
    """Switch affinity 2.0."""

    def test_a_job_inside_one_leaf_stays_there(self) -> None:
        cluster = leaves("A ###.", "B ####")

        assert repaired(cluster, common(3), before("A0 A1 A2", "A1"), TWO) is None

    def test_leaves_of_the_job_come_first_exclusive_before_shared(self) -> None:
        cluster = leaves("A ####", "B ####", "C ####")
        previous = Previous(
            (
                *before("A0 A1 A2", mark=EXCLUSIVE).placements,
                Placement(3, "B0", chips_of(0xFF), mark=SHARED),
            ),
            ("A1",),
        )

        assert repaired(cluster, large(4), previous, TWO) == "A0 A3 A2 B0"

    def test_then_the_idle_leaf_with_the_fewest_sufficient_nodes(self) -> None:
        cluster = leaves("A ##..", "B #...", "C ####", "D ##..")
        previous = before("A0 A1 B0", "B0", RestartScope.POD, EXCLUSIVE)

        decision = self._decided(cluster, large(4), previous)

        assert [p.node for p in decision.placements] == ["A0", "A1", "D0", "D1"]
        assert decision.placements[2].mark == EXCLUSIVE  # filled whole

    def test_part_of_an_idle_leaf_is_shared_within_the_budget(self) -> None:
        cluster = leaves("A ##..", "B #...", "C ####")
        previous = before("A0 A1 B0", "B0", RestartScope.POD, EXCLUSIVE)

        decision = self._decided(cluster, large(4), previous)

        assert [p.node for p in decision.placements] == ["A0", "A1", "C0", "C1"]
        assert decision.placements[2].mark == SHARED

    def test_part_of_an_idle_leaf_is_exclusive_without_a_budget(self) -> None:
        cluster = leaves("A ##..", "B #...", "C ####")
        previous = before("A0 A1 B0", "B0", RestartScope.POD, SHARED)
        one = replace(TWO, shared_leaves=1)

        decision = self._decided(cluster, large(4), previous, one)

        assert decision.placements[2].mark == EXCLUSIVE

    def test_then_idle_leaves_whole_and_shared_ones_within_the_budget(self) -> None:
        cluster = leaves("A ##..", "B ###.", "C #...", "D ##..", "E #...")
        hold(cluster, "x", "B0 E0", LeafAnnotation(JobType.COMMON, LeafState.SHARED))
        previous = before("A0 A1", "", RestartScope.POD, EXCLUSIVE)

        decision = self._decided(cluster, large(7), previous)

        nodes = [p.node for p in decision.placements]
        assert nodes == ["A0", "A1", "C0", "D0", "D1", "B1", "B2"]
        assert [p.mark for p in decision.placements][2:] == [EXCLUSIVE] * 3 + [
            SHARED
        ] * 2

    def test_a_foundation_job_beyond_its_budget_waits(self) -> None:
        cluster = leaves("A ##..", "B ###.", "C #...")
        hold(cluster, "x", "B0 C0", LeafAnnotation(JobType.COMMON, LeafState.SHARED))
        previous = before("A0 A1", "", RestartScope.POD, SHARED)
        one = replace(TWO, shared_leaves=1)

        assert repaired(cluster, large(4), previous, one) is None

    @pytest.mark.parametrize("healthy", [True, False])
    def test_a_common_job_goes_beyond_it(self, *, healthy: bool) -> None:
        cluster = leaves("A ##..", "B ###.", "C #...")
        hold(cluster, "x", "B0 C0", LeafAnnotation(JobType.COMMON, LeafState.SHARED))
        mark = LeafAnnotation(JobType.COMMON, LeafState.SHARED, healthy)
        previous = before("A0 A1", "", RestartScope.POD, mark)
        one = replace(TWO, shared_leaves=1)

        decision = self._decided(cluster, common(4), previous, one)

        sick = LeafAnnotation(JobType.COMMON, LeafState.SHARED, healthy=False)
        assert [p.node for p in decision.placements] == ["A0", "A1", "B1", "B2"]
        assert decision.placements[3].mark == sick

    def test_but_not_where_it_shares_a_leaf_with_a_foundation_job(self) -> None:
        cluster = leaves("A ###.", "B ###.", "C #...")
        hold(cluster, "x", "A2 C0", SHARED)
        previous = before(
            "A0 A1",
            "",
            RestartScope.POD,
            LeafAnnotation(JobType.COMMON, LeafState.SHARED),
        )
        hold(cluster, "y", "B0", LeafAnnotation(JobType.COMMON, LeafState.SHARED))
        one = replace(TWO, shared_leaves=1)

        assert repaired(cluster, common(4), previous, one) is None

    def test_a_job_that_was_deleted_whole_has_its_budget_back(self) -> None:
        cluster = leaves("A ##..", "B ##..", "C ###.", "D #...")
        hold(cluster, "x", "C0 D0", LeafAnnotation(JobType.COMMON, LeafState.SHARED))
        previous = Previous(
            (
                *before("A0 A1", mark=EXCLUSIVE).placements,
                Placement(2, "B0", chips_of(0xFF), mark=SHARED),
                Placement(3, "B1", chips_of(0xFF), mark=SHARED),
            ),
            (),
            RestartScope.JOB,
        )
        one = replace(TWO, shared_leaves=1)

        decision = self._decided(cluster, large(6), previous, one)

        nodes = [p.node for p in decision.placements]
        assert nodes == ["A0", "A1", "B0", "B1", "C1", "C2"]
        assert [p.mark for p in decision.placements] == [EXCLUSIVE] * 4 + [SHARED] * 2

    def test_a_job_that_was_deleted_whole_finds_its_leaf_taken(self) -> None:
        cluster = leaves("A ####", "B ####", "C ####")
        hold(cluster, "x", "A3 B3", EXCLUSIVE)
        previous = before("A0 A1 A2 B0", "B0", RestartScope.JOB, EXCLUSIVE)

        assert repaired(cluster, large(4), previous, TWO) == "C0 C1 C2 C3"

    def test_or_shared_by_one_that_has_it_alone_now(self) -> None:
        cluster = leaves("A ####", "B ####", "C ####")
        hold(cluster, "x", "A3 B3", EXCLUSIVE)
        previous = before("A0 A1 A2 B0", "B0", RestartScope.JOB, SHARED)

        assert repaired(cluster, large(4), previous, TWO) == "C0 C1 C2 C3"

    def test_a_job_that_ends_inside_one_leaf_says_nothing_of_it(self) -> None:
        cluster = leaves("A ####", "B ####")
        previous = before("A0 A1 A2 B3", "B3", RestartScope.JOB, EXCLUSIVE)

        decision = self._decided(cluster, large(4), previous)

        assert [p.node for p in decision.placements] == ["A0", "A1", "A2", "A3"]
        assert {p.mark for p in decision.placements} == {
            LeafAnnotation(JobType.FOUNDATION)
        }

    def test_a_common_job_returns_to_a_leaf_that_it_must_share_now(self) -> None:
        cluster = leaves("A ####", "B ####", "C ....")
        sick = LeafAnnotation(JobType.COMMON, LeafState.SHARED, healthy=False)
        hold(cluster, "x", "A3 B3", sick)
        alone = LeafAnnotation(JobType.COMMON, LeafState.EXCLUSIVE)
        previous = before("A0 A1 A2 B0", "B0", RestartScope.JOB, alone)

        decision = self._decided(cluster, common(4), previous)

        assert [p.node for p in decision.placements] == ["A0", "A1", "A2", "B1"]
        assert {p.mark for p in decision.placements} == {sick}

    def _decided(
        self,
        cluster: Cluster,
        job: Job,
        previous: Previous,
        settings: Settings = TWO,
    ) -> Placed:
        if previous.scope is RestartScope.POD:
            for placement in previous.placements:
                if placement.node not in previous.failed_nodes:
                    hold(
                        cluster,
                        job.name,
                        placement.node,
                        placement.mark or LeafAnnotation(),
                    )
        decision = Session(cluster, settings).decide(replace(job, previous=previous))
        assert isinstance(decision, Placed)
        return decision


class TestSingleLayer:
    """One leaf or none."""

    def test_a_pod_is_replaced_under_its_leaf(self) -> None:
        cluster = leaves("A ####", "B ####")

        found = repaired(cluster, common(2), before("B0 B1", "B0"), SINGLE)

        assert found == "B2 B1"

    def test_without_room_the_job_waits_and_moves_whole_when_deleted(self) -> None:
        waits = repaired(
            leaves("A ####", "B ##"), common(2), before("B0 B1", "B0"), SINGLE
        )
        moves = repaired(
            leaves("A ####", "B ##"),
            common(2),
            before("B0 B1", "B0", RestartScope.JOB),
            SINGLE,
        )

        assert (waits, moves) == (None, "A0 A1")

    def test_survivors_under_two_leaves_are_no_base(self) -> None:
        cluster = leaves("A ####", "B ####")

        assert repaired(cluster, common(3), before("A0 B0 B1", "B1"), SINGLE) is None


class TestSuperpods:
    """Blocks in SuperPoDs."""

    ALL = chips_of(full_mask(16))

    def previous(
        self,
        nodes: str,
        failed: str,
        keep: RestartScope = RestartScope.POD,
        blocks: str = "",
    ) -> Previous:
        written: list[int | None] = [int(block) for block in blocks.split()]
        written = written or [None] * len(nodes.split())
        return Previous(
            tuple(
                Placement(rank, node, self.ALL, block=block)
                for rank, (node, block) in enumerate(
                    zip(nodes.split(), written, strict=True)
                )
            ),
            tuple(failed.split()),
            keep,
        )

    def job(self, pods: int, block: int, firmness: Firmness = Firmness.HARD) -> Job:
        return Job("j", A3, 16, pods, sp_block=16 * block, superpod_affinity=firmness)

    def test_a_block_is_filled_up_in_its_superpod(self) -> None:
        previous = self.previous("p0-00 p0-01 p1-00 p1-01", "p1-00")

        found = repaired(superpods(4, 4), self.job(4, 2), previous)

        assert found == "p0-00 p0-01 p1-02 p1-01"

    def test_two_blocks_of_one_superpod_share_what_is_left(self) -> None:
        previous = self.previous("p0-00 p0-01 p0-02 p0-03", "p0-00 p0-02")

        both = repaired(superpods(6), self.job(4, 2), previous)
        short = repaired(superpods(5), self.job(4, 2), previous)

        assert both == "p0-04 p0-01 p0-05 p0-03"
        assert short is None

    def test_a_block_that_lost_every_pod_is_placed_anew(self) -> None:
        previous = self.previous("p0-00 p0-01 p1-00 p1-01", "p1-00 p1-01")

        found = repaired(superpods(2, 2, 4), self.job(4, 2), previous)

        assert found == "p0-00 p0-01 p2-00 p2-01"

    def test_of_superpods_that_are_alike_then_the_first_takes_it(self) -> None:
        """The one healthy node fills up a block; those left are all sub-healthy."""
        previous = self.previous("p0-0 p0-1 p1-0 p1-1", "p0-0 p1-0 p1-1")
        nodes = [
            Node(f"p{s}-{n}", A3, 16, full_mask(16), sub_healthy=s > 1, superpod=s)
            for s, size in enumerate((3, 2, 2, 2))
            for n in range(size)
        ]

        found = repaired(Cluster(nodes), self.job(4, 2), previous)

        assert found == "p0-2 p0-1 p2-0 p2-1"

    def test_and_waits_where_there_is_no_room_for_it(self) -> None:
        previous = self.previous("p0-00 p0-01 p1-00 p1-01", "p1-00 p1-01")

        assert repaired(superpods(2, 2), self.job(4, 2), previous) is None

    def test_a_block_without_room_moves_whole_when_the_job_was_deleted(self) -> None:
        previous = self.previous("p0-00 p0-01 p1-00 p1-01", "p1-00", RestartScope.JOB)

        found = repaired(superpods(2, 2, 4), self.job(4, 2), previous)

        assert found == "p0-00 p0-01 p2-00 p2-01"

    def test_the_whole_job_moves_where_blocks_alone_find_no_room(self) -> None:
        """What a split block leaves behind makes room for the job as a whole."""
        previous = self.previous("p0-00 p1-00", "p1-00", RestartScope.JOB, blocks="0 0")

        found = repaired(superpods(1, 1, 2), self.job(2, 2), previous)

        assert found == "p2-00 p2-01"

    def test_a_soft_job_moves_its_parts(self) -> None:
        previous = self.previous("p0-00 p0-01 p1-00 p2-00", "p1-00", blocks="0 0 1 2")

        found = repaired(superpods(2, 1, 1, 1), self.job(4, 2, Firmness.SOFT), previous)

        assert found == "p0-00 p0-01 p3-00 p2-00"

    def test_new_parts_get_new_ids(self) -> None:
        previous = self.previous(
            "p0-00 p0-01 p1-00 p1-01", "p1-00 p1-01", blocks="0 0 1 1"
        )
        cluster = superpods(2, 2, 1, 1)
        hold(cluster, "j", "p0-00 p0-01")
        job = replace(self.job(4, 2, Firmness.SOFT), previous=previous)

        decision = Session(cluster).decide(job)

        assert isinstance(decision, Placed)
        assert [(p.node, p.block) for p in decision.placements] == [
            ("p0-00", 0),
            ("p0-01", 0),
            ("p2-00", 1),
            ("p3-00", 2),
        ]

    def test_a_single_pod_goes_to_another_node(self) -> None:
        previous = self.previous("p0-00", "p0-00")

        assert repaired(superpods(2, 1), Job("j", A3, 16), previous) == "p0-01"
        assert repaired(superpods(1), Job("j", A3, 16), previous) is None


class TestPlain:
    """Jobs that no network rule places."""

    def test_pods_that_can_stay_keep_their_chips(self) -> None:
        cluster = leaves("A ####")
        job = Job("j", A2, 8, 3)

        found = repaired(cluster, job, before("A0 A1 A2", "A1"))

        assert found == "A0 A3 A2"

    def test_a_pod_whose_chips_another_job_took_moves(self) -> None:
        cluster = leaves("A ####")
        hold(cluster, "thief", "A1")

        found = repaired(
            cluster, Job("j", A2, 8, 2), before("A0 A1", "", RestartScope.JOB)
        )

        assert found == "A0 A2"

    def test_a_pod_whose_node_is_gone_or_not_ready_moves(self) -> None:
        nodes = [
            Node("a", A2, 8, 0xFF, ready=False),
            *(Node(name, A2, 8, 0xFF) for name in "bc"),
        ]
        job = replace(
            Job("j", A2, 8, 2), previous=before("a gone", "gone", RestartScope.JOB)
        )

        assert nodes_of(Cluster(nodes), job) == "b c"

    def test_a_failed_node_is_never_used_again(self) -> None:
        cluster = leaves("A ##")
        job = replace(Job("j", A2, 8, 2), previous=before("A0 A1", "A1"))

        decision = Session(cluster).decide(job)

        assert isinstance(decision, Waiting)
        assert decision.because == (
            "1 pod must be replaced, each needs 8 free chips on one node"
        )

    def test_a_hint_does_not_count_on_failed_nodes(self) -> None:
        cluster = leaves("A ###")
        previous = before("A0 A1", "A0 A1", RestartScope.JOB)

        decision = Session(cluster).decide(
            replace(Job("j", A2, 8, 2), previous=previous)
        )

        assert isinstance(decision, Waiting)
        assert decision.hint == (
            "needs room for 1 more pod: 8 free chips on one node; "
            "2 x 4 chips would be placed now"
        )

    def test_the_load_of_slots_grows_with_every_replacement(self) -> None:
        cluster = leaves("A ####", "B ####", "C ##..")

        found = repaired(cluster, large(8), before("A0 A1 A2 A3 B0 B1 B2 B3", "B0 B1"))

        assert found == "A0 A1 A2 A3 C0 C1 B2 B3"

    @pytest.mark.parametrize(
        ("nodes", "settings"),
        [("A0 B0", Settings()), ("A0 B0", SINGLE), ("A0 A1 B0 B1", Settings())],
        ids=["padding across leaves", "single-layer across leaves", "uneven slots"],
    )
    def test_a_job_that_lost_nothing_stays_whatever_the_rule(
        self, nodes: str, settings: Settings
    ) -> None:
        cluster = leaves("A ####", "B ####", "C ####")
        job = large(len(nodes.split()))

        assert repaired(cluster, job, before(nodes, "C3"), settings) == nodes

    def test_a_pod_with_other_chips_than_asked_is_lost(self) -> None:
        cluster = leaves("A ###")
        previous = Previous(
            (
                Placement(0, "A0", (0, 1)),
                Placement(1, "A1", chips_of(0xFF)),
            ),
            scope=RestartScope.JOB,
        )

        found = repaired(cluster, Job("j", A2, 8, 2), previous)

        assert found == "A0 A1"

    def test_a_pod_on_another_product_is_lost(self) -> None:
        nodes = [
            Node("a", PRODUCTS["atlas-800-9000"], 8, 0xFF),
            Node("b", A2, 8, 0xFF),
        ]
        job = replace(Job("j", A2, 8), previous=before("a", "", RestartScope.JOB))

        assert nodes_of(Cluster(nodes), job) == "b"


def test_2_0_a_job_without_a_label_takes_no_leaf_from_the_pods_that_run() -> None:
    """It crosses both leaves, but says nothing of them."""
    cluster = leaves("A ###.", "B .##.")
    hold(cluster, "unlabelled", "A2 B1")
    exclusive = LeafAnnotation(JobType.COMMON, LeafState.EXCLUSIVE)
    job = replace(common(3), previous=before("A0 A1 gone", mark=exclusive))

    assert nodes_of(cluster, job, TWO) == "A0 A1 B2"


def test_a_pod_of_before_stays_once_and_so_do_its_chips() -> None:
    """The record of the past placements may be wrong."""
    cluster = leaves("A ##")
    own, other = Placement(0, "A0", (0, 1)), Placement(0, "A1", (0, 1))
    overlaps, stranger = Placement(1, "A0", (1, 2)), Placement(7, "A1", (2, 3))
    past = Previous((own, other, overlaps, stranger), scope=RestartScope.JOB)
    job = replace(Job("j", A2, 2, 2), previous=past)

    decision = Session(cluster).decide(job)

    assert isinstance(decision, Placed)
    assert [(p.replica, p.node, p.chips) for p in decision.placements] == [
        (0, "A0", (0, 1)),
        (1, "A0", (2, 3)),
    ]


@pytest.mark.parametrize(
    ("keep", "found"),
    [(RestartScope.POD, "a"), (RestartScope.JOB, "b")],
    ids=["stays", "is new"],
)
@pytest.mark.parametrize(
    "change",
    [
        {"cordoned": True},
        {"taints": (Taint("t", Effect.NO_SCHEDULE, ""),)},
        {"resources": {"cpu": 1000}},
    ],
    ids=["cordoned", "tainted", "full"],
)
def test_a_node_that_takes_no_new_pods_keeps_those_it_has(
    keep: RestartScope, found: str, change: dict[str, Any]
) -> None:
    nodes = [replace(Node("a", A2, 8, 0xFF), **change), Node("b", A2, 8, 0xFF)]
    job = Job("j", A2, 8, demand=Demand(resources=(("cpu", 2000),)))

    again = replace(job, previous=before("a", "", keep))

    assert nodes_of(Cluster(nodes), again) == found


def test_a_pod_under_no_leaf_has_nothing_to_say_of_one() -> None:
    cluster = Cluster([Node("a", A2, 8, 0xFF)])
    past = before("a gone", mark=LeafAnnotation(JobType.COMMON, LeafState.EXCLUSIVE))

    assert nodes_of(cluster, replace(common(2), previous=past), TWO) is None


def test_blocks_that_do_not_add_up_are_not_repaired() -> None:
    """Of a job of one block, a pod says that it was in the second."""
    cluster = superpods(1, 1)
    past = Previous((Placement(1, "p0-00", chips_of(full_mask(16)), block=1),))
    job = replace(Job("j", A3, 16, 2), previous=past)

    assert nodes_of(cluster, job) is None
