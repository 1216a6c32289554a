"""One test per decision, named after it, and the scenarios that tell its story."""

from collections.abc import Iterable
from itertools import permutations

import pytest

from ringleaf.engine.engine import Engine
from ringleaf.engine.event import JobArrived, PodsEnding, PodsGone
from ringleaf.framework.instruction import Bind, Instruction
from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Decision, Invalid, Placed, Waiting
from ringleaf.model.job import Job
from ringleaf.model.product import ProductMode
from ringleaf.model.settings import Settings
from ringleaf.policies.products import PRODUCTS, misfit
from ringleaf.policies.validation import is_legal, validate
from tests.chips import PER_POD, a_cluster, a_job, a_node, given, is_the_order, ranks
from tests.scenarios.case import cases, outcomes


def holds(file: str) -> bool:
    """Whether every scenario of *file* comes out as written."""
    return all(outcomes(case) == case.expect for case in cases(file))


def where(decision: Decision) -> list[tuple[str, tuple[int, ...]]]:
    """Node and chips of every pod of a placed job."""
    assert isinstance(decision, Placed), decision
    return [(placement.node, placement.chips) for placement in decision.placements]


@pytest.mark.parametrize(
    ("pods", "strict"), [(1, {1, 2, 4, 8}), (2, {8}), (3, {8}), (8, {8})]
)
def test_d1_one_pod_of_1_2_4_or_8_or_several_of_8(pods: int, strict: set[int]) -> None:
    jobs = [a_job("atlas-800-9000", chips, pods=pods) for chips in range(65)]

    assert {job.chips for job in jobs if is_legal(job, Settings())} == strict
    assert {job.chips for job in jobs if is_legal(job, PER_POD)} == {1, 2, 4, 8}


@pytest.mark.parametrize(
    ("chips", "pods", "nearest"),
    [(3, 1, "1 x 4 chips"), (12, 1, "2 x 8 chips"), (4, 2, "1 x 8 chips")],
)
def test_d1_the_hint_names_the_nearest_legal_request(
    chips: int, pods: int, nearest: str
) -> None:
    never = validate(a_job("atlas-800-9000", chips, pods=pods), Settings())

    assert isinstance(never, Invalid)
    assert never.hint.startswith(f"ask for {nearest};")


def test_d1_constraints_and_multi_node_support_hold() -> None:
    assert holds("seed-004-constraints")


def test_d2_health_then_affinity_then_fewer_chips_left_then_the_name() -> None:
    job = a_job("atlas-800-9000", 1)

    assert is_the_order(
        job,
        ["0...|....", "0...|4...", "012.|....", "0123|4567", "0..x|....", "0.xx|...."],
    )
    tied = a_cluster("atlas-800-9000", ["0...|....", "...3|...."])
    assert where(Session(tied).decide(job)) == [("n00001", (3,))]


def test_d2_scenarios_hold() -> None:
    assert holds("d02-*")
    assert holds("seed-004-capacity")


def test_d37_a_larger_node_is_not_healthier_than_a_smaller_one() -> None:
    """By the fit alone; a faulty chip puts either behind the other."""
    product, job = PRODUCTS["atlas-300i"], a_job("atlas-300i", 4)
    for faulty, wanted in (("", "small"), ("small", "large"), ("large", "small")):
        nodes = [
            Node(name, product, n, free, faulty=(name == faulty) << n - 1)
            for name, n, free in (("large", 32, 0xFF), ("small", 8, 0xF))
        ]

        found = Session(Cluster(nodes)).decide(job)

        assert where(found) == [(wanted, (0, 1, 2, 3))]
    assert holds("d37-*")


@pytest.mark.parametrize("asked", [1, 2, 4])
def test_d3_the_ring_whose_remainder_is_even_is_preferred(asked: int) -> None:
    row = PRODUCTS["atlas-800-9000"].rules[ProductMode.ANY][asked]
    rings = range(asked, 5)

    by_misfit = sorted(rings, key=lambda ring: misfit(row, ring))

    assert by_misfit == sorted(rings, key=lambda ring: ((ring - asked) % 2, ring))


def test_d3_scenarios_hold() -> None:
    assert holds("d03-*")


def test_d4_three_and_three_is_allowed_for_two_chips_and_last_of_group_c() -> None:
    job = a_job("atlas-800-9000", 2)

    assert given(job, "012.|456.") == (0, 1)
    assert is_the_order(job, ["0123|4567", "012.|....", "012.|4...", "012.|456."])
    assert holds("d04-*")


@pytest.mark.parametrize("asked", range(1, 9))
def test_d5_misfit_is_free_minus_asked_and_8_is_never(asked: int) -> None:
    row = PRODUCTS["atlas-800t-a2"].rules[ProductMode.ANY][asked]

    for free in range(1, 9):
        assert misfit(row, free) == (free - asked if free >= asked else 8)


def test_d5_rows_4_and_6_are_the_seed() -> None:
    rule = PRODUCTS["atlas-800t-a2"].rules[ProductMode.ANY]

    assert [misfit(rule[4], free) for free in range(1, 9)] == [8, 8, 8, 0, 1, 2, 3, 4]
    assert [misfit(rule[6], free) for free in range(1, 9)] == [8, 8, 8, 8, 8, 0, 1, 2]
    assert holds("seed-000-*")
    assert holds("d05-*")


@pytest.mark.parametrize("asked", [10, 12, 14])
def test_d6_aligned_pairs_first_then_equal_halves(asked: int) -> None:
    job, half = a_job("atlas-200t-a2-box16", asked), asked // 2
    low, high = "01234567", "89abcdef"
    aligned = f"{low[:half]:.<8}|{high[:half]:.<8}"
    unaligned = f"{low[:half]:.<8}|{high[-half:]:.>8}"

    pairs = [(chip, chip + 8) for chip in range(half)]
    assert given(job, aligned) == tuple(chip for pair in pairs for chip in pair)
    pairs = [(chip, chip + 16 - half) for chip in range(half)]
    assert given(job, unaligned) == tuple(chip for pair in pairs for chip in pair)
    assert is_the_order(job, [aligned, f"{low}|{high}", unaligned])


@pytest.mark.parametrize("asked", [9, 11, 13, 15])
@pytest.mark.parametrize("pods", [1, 2])
def test_d6_odd_requests_above_eight_are_invalid(asked: int, pods: int) -> None:
    job = a_job("atlas-200t-a2-box16", asked, pods=pods)

    assert isinstance(validate(job, Settings()), Invalid)


def test_d6_scenarios_hold() -> None:
    assert holds("d06-*")


def test_d7_one_chip_of_a_half_used_module_and_even_requests_of_whole_ones() -> None:
    node = "01|.3|45|6.|89|..|cd|ef"

    assert given(a_job("atlas-800t-a3", 1), node) == (3,)
    assert given(a_job("atlas-800t-a3", 6), node) == (0, 1, 4, 5, 8, 9)
    assert given(a_job("atlas-800t-a3", 12), node) is None


@pytest.mark.parametrize("asked", [3, 5, 7, 9, 11, 13, 15])
@pytest.mark.parametrize("product", ["atlas-800t-a3", "atlas-900-a3", "a200t-a3-box8"])
def test_d7_odd_requests_above_one_are_invalid(product: str, asked: int) -> None:
    assert isinstance(validate(a_job(product, asked), Settings()), Invalid)


def test_d7_the_best_fit_of_all_nodes_wins() -> None:
    job = a_job("atlas-800t-a3", 2)
    rest = "|..|..|..|..|..|.."

    assert is_the_order(
        job, [f"01|..{rest}", f"01|2.{rest}", f"01|23{rest}", "01|23|45|..|..|..|..|.."]
    )
    assert holds("d07-*")


def test_d8_plain_mode_is_distributed_mode_made_soft() -> None:
    soft, hard = (
        a_job("atlas-300i-duo", 4),
        a_job("atlas-300i-duo", 4, distributed=True),
    )

    assert given(soft, "0.|23|45") == given(hard, "0.|23|45") == (2, 3, 4, 5)
    assert given(soft, "0.|23|4.") == (0, 2, 3, 4)
    assert given(hard, "0.|23|4.") is None


def test_d8_odd_requests_take_one_chip_of_a_half_used_card_first() -> None:
    soft, hard = (
        a_job("atlas-300i-duo", 3),
        a_job("atlas-300i-duo", 3, distributed=True),
    )

    assert given(soft, "01|2.|4.") == given(hard, "01|2.|4.") == (0, 1, 2)
    assert given(soft, "0.|2.|4.") == (0, 2, 4)
    assert given(hard, "0.|2.|4.") is None
    assert holds("d08-*")


@pytest.mark.parametrize(
    ("product", "asked"),
    [("atlas-300i", 5), ("atlas-300i", 64), ("atlas-300i-duo", 3)],
)
def test_d9_what_no_card_can_ever_hold_is_invalid(product: str, asked: int) -> None:
    job = a_job(product, asked, strategy="card")

    assert isinstance(validate(job, Settings()), Invalid)


def test_d9_what_a_card_can_hold_but_not_now_waits() -> None:
    cluster = a_cluster("atlas-300i", ["012.|456."])

    decision = Session(cluster).decide(a_job("atlas-300i", 4, strategy="card"))

    assert isinstance(decision, Waiting)
    assert holds("d09-*")


def test_d16_sub_healthy_nodes_come_last() -> None:
    cluster = Cluster(
        [
            a_node("a", "atlas-800t-a2", "01......", sub_healthy=True),
            a_node("b", "atlas-800t-a2", "01xxxxxx"),
        ]
    )

    assert where(Session(cluster).decide(a_job("atlas-800t-a2", 2))) == [("b", (0, 1))]
    assert holds("d16-*")


def test_d18_chips_are_held_at_the_moment_of_the_decision() -> None:
    cluster = a_cluster("atlas-800t-a2", ["01234567"])

    decision = Session(cluster).decide(a_job("atlas-800t-a2", 3))

    assert where(decision) == [("n00001", (0, 1, 2))]
    assert cluster.free.tolist() == [0b11111000]
    assert [(held.node, held.chips) for held in cluster.holdings["j"]] == [(0, 0b111)]


def test_d18_a_job_that_waits_holds_nothing() -> None:
    cluster = a_cluster("atlas-800t-a2", ["01234567", "0123...."])
    before = cluster.free.tolist()

    decision = Session(cluster).decide(a_job("atlas-800t-a2", 4, pods=4))

    assert isinstance(decision, Waiting)
    assert decision.missing == 1
    assert cluster.free.tolist() == before
    assert cluster.holdings == {}
    assert cluster.version == 0
    assert holds("d18-*")
    assert holds("seed-004-concurrency")


def test_d20_chips_of_a_terminating_pod_are_held_until_it_is_gone() -> None:
    """Seed 004, concurrency considerations, 2: only the release frees them."""
    engine = Engine([a_node("n", "atlas-800-9000", "0123|....")])
    old, new = Job("old", PRODUCTS["atlas-800-9000"], 4), a_job("atlas-800-9000", 4)
    assert bound(engine.handle(JobArrived(old), 0.0)) == {"old"}

    engine.handle(PodsEnding("old", (0,)), 1.0)
    while_ending = engine.handle(JobArrived(new), 2.0)
    when_gone = engine.handle(PodsGone("old", (0,)), 3.0)

    assert bound(while_ending) == set()
    assert new.name in bound(when_gone)


def bound(instructions: Iterable[Instruction]) -> set[str]:
    return {each.job for each in instructions if isinstance(each, Bind)}


def test_d20_a_release_that_is_taken_back_frees_nothing() -> None:
    cluster = a_cluster("atlas-800-9000", ["0123|...."])
    session = Session(cluster)
    session.decide(Job("old", PRODUCTS["atlas-800-9000"], 4))

    with Statement(cluster) as statement:
        statement.release("old")

    assert isinstance(session.decide(a_job("atlas-800-9000", 4)), Waiting)


def test_d21_the_order_in_which_nodes_are_listed_decides_nothing() -> None:
    nodes = [
        a_node("B", "atlas-800-9000", "0123|4567"),
        a_node("a", "atlas-800-9000", "01..|456."),
        a_node("n10", "atlas-800-9000", "01..|456."),
        a_node("n2", "atlas-800-9000", "0...|4..."),
    ]

    answers = {_placed_in(listed) for listed in permutations(nodes)}

    assert answers == {
        (
            ("n2", (0,)),
            ("a", (0, 1)),
            ("n2", (4,)),
            ("n10", (0, 1)),
            ("a", (4,)),
            ("a", (5, 6)),
        )
    }


def _placed_in(nodes: tuple[Node, ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    session = Session(Cluster(nodes))
    jobs = (
        Job(f"j{i}", PRODUCTS["atlas-800-9000"], chips)
        for i, chips in enumerate((1, 2, 1, 2, 1, 2))
    )
    return tuple(where(session.decide(job))[0] for job in jobs)


def test_d21_the_order_in_which_jobs_ended_decides_nothing() -> None:
    names = [f"old{i}" for i in range(8)]

    answers = {_placed_after(names, ended) for ended in permutations(names[::2])}

    assert answers == {("n00001", (0, 1, 4))}


def _placed_after(
    names: list[str], ended: tuple[str, ...]
) -> tuple[str, tuple[int, ...]]:
    cluster = a_cluster("atlas-800t-a2", ["01234567", "01234567"])
    session = Session(cluster)
    for name in names:
        session.decide(Job(name, PRODUCTS["atlas-800t-a2"], 2))
    for name in ended:
        with Statement(cluster) as statement:
            statement.release(name)
            statement.commit()
    return where(session.decide(a_job("atlas-800t-a2", 3)))[0]


def test_d21_names_compare_code_point_by_code_point() -> None:
    assert holds("d21-*")


def test_d32_strategy_chip_uses_up_leftovers_across_cards() -> None:
    node = "0123|456.|89..|c..."

    assert given(a_job("atlas-300i", 6, strategy="chip"), node) == (4, 5, 6, 8, 9, 12)
    assert given(a_job("atlas-300i", 2, strategy="chip"), node) == (8, 12)
    assert given(a_job("atlas-300i", 3, strategy="card"), node) == (4, 5, 6)
    assert ranks(a_job("atlas-300i", 5, strategy="chip"), [node]) != [None]
    assert holds("d32-*")


def test_d42_without_a_label_one_card_if_a_card_holds_it() -> None:
    node = "0123|456.|89..|c..."

    assert given(a_job("atlas-300i", 1), node) == (12,)
    assert given(a_job("atlas-300i", 2), node) == (8, 9)
    assert given(a_job("atlas-300i", 3), node) == (4, 5, 6)
    assert given(a_job("atlas-300i", 4), node) == (0, 1, 2, 3)
    assert holds("d42-*")


@pytest.mark.parametrize(
    ("asked", "node"),
    [
        (2, "0...|4...|8..."),
        (3, "01..|45..|8..."),
        (4, "012.|45..|8..."),
        (5, "0123|456.|89.."),
        (9, "0123|4567|89..|c..."),
    ],
)
def test_d42_where_no_card_holds_it_as_strategy_chip(asked: int, node: str) -> None:
    chip = given(a_job("atlas-300i", asked, strategy="chip"), node)

    assert given(a_job("atlas-300i", asked), node) == chip
    assert chip is not None


def test_d33_the_catalogue_names_the_switch_modes_of_the_seeds() -> None:
    named = {key: product.switch_modes for key, product in PRODUCTS.items()}

    assert {key: modes for key, modes in named.items() if modes} == {
        "atlas-800-9000": ("1.0",),
        "atlas-800-9000-half": ("1.0",),
        "atlas-300t": ("1.0",),
        "atlas-800t-a2": ("1.0", "2.0"),
        "atlas-800i-a2": ("single-layer",),
        "a200i-a2-box": ("single-layer",),
        "atlas-200t-a2-box16": ("1.0", "2.0"),
    }
