"""Every free mask of small nodes, a fixed sample of larger ones, against the oracle."""

from itertools import pairwise, product

import numpy as np
import pytest

from ringleaf.model.mask import chips_of
from ringleaf.model.settings import JobRequests, Settings
from ringleaf.policies.chips import NEVER, read, table_of, written_order
from ringleaf.policies.fit import Request, request_of
from ringleaf.policies.products import PRODUCTS, rule_for
from ringleaf.policies.validation import is_legal as is_legal_here
from tests.oracle import OracleJob, OracleNode, choose, is_legal
from tests.properties.cases import job_of

SAMPLE = 100
KINDS = [
    (key, strategy, distributed, replicas)
    for key, row in PRODUCTS.items()
    for strategy, distributed in (
        [("card", False), ("chip", False), ("", False)]
        if row.sized
        else [("chip", False)]
    )
    + ([("chip", True)] if row.one_pod_when_distributed else [])
    for replicas in ([1, 2] if key == "atlas-200t-a2-box16" else [1])
]


def masks_of(n_chips: int) -> list[int]:
    if n_chips <= 8:
        return list(range(1 << n_chips))
    random = np.random.default_rng(910)
    density = random.choice([0.3, 0.6, 0.9], size=(SAMPLE, 1))
    bits = random.random((SAMPLE, n_chips)) < density
    return [0, (1 << n_chips) - 1] + [
        int(sum(1 << i for i in np.flatnonzero(line).tolist())) for line in bits
    ]


@pytest.mark.parametrize(("key", "strategy", "distributed", "replicas"), KINDS)
def test_rank_order_and_chips_are_the_oracles(
    key: str, strategy: str, *, distributed: bool, replicas: int
) -> None:
    n_chips = {"atlas-310p": 12, "atlas-300i": 16, "atlas-300i-duo": 16}.get(
        key, PRODUCTS[key].chips
    )
    first = OracleJob(key, 1, replicas, strategy, distributed)
    legal = [n for n in rule_for(job_of(first)) if n <= n_chips]
    for chips in legal:
        job = OracleJob(key, chips, replicas, strategy, distributed)
        request = request_of(job_of(job))
        ranks: dict[int, tuple[int, ...]] = {}
        for mask in masks_of(n_chips):
            node = OracleNode("n", key, n_chips, frozenset(chips_of(mask)), superpod=0)
            wanted = choose(node, job)
            found = read_one(request, mask)
            assert (found is None) == (wanted is None), (chips, mask)
            if found is not None and wanted is not None:
                assert found[1] == wanted[1], (chips, mask)
                assert ranks.setdefault(found[0], wanted[0]) == wanted[0]
        in_order = [ranks[rank] for rank in sorted(ranks)]
        assert all(one < other for one, other in pairwise(in_order)), chips


def read_one(request: Request, mask: int) -> tuple[int, tuple[int, ...]] | None:
    rank = request.table.rank(mask)
    many = np.array([mask], np.uint64)
    assert request.table.ranks(many).item() == rank
    if rank == NEVER:
        return None
    taken = request.table.choose(mask)
    assert read(request.row, request.product.chips, many).taken.item() == taken
    return rank, written_order(request.row, taken)


def test_every_request_is_legal_here_exactly_where_the_oracle_says_so() -> None:
    verdicts = []
    for key, strategy, distributed, replicas, requests in product(
        PRODUCTS, ["chip", "card", ""], [False, True], [1, 2, 5], list(JobRequests)
    ):
        for chips in range(PRODUCTS[key].chips + 3):
            job = OracleJob(key, chips, replicas, strategy, distributed)
            found = is_legal_here(job_of(job), Settings(job_requests=requests))
            assert found == is_legal(job, requests), job
            verdicts.append(found)
    assert 0.3 < sum(verdicts) / len(verdicts) < 0.9


@pytest.mark.parametrize("key", [key for key, row in PRODUCTS.items() if row.sized])
def test_tables_of_large_nodes_say_what_the_row_says(key: str) -> None:
    """Fills are only a shorter way to the same answer."""
    masks = np.array(masks_of(PRODUCTS[key].chips), np.uint64)
    for rule in PRODUCTS[key].rules.values():
        for row in rule.values():
            table = table_of(row, PRODUCTS[key].chips)
            reading = read(row, PRODUCTS[key].chips, masks)
            assert table.ranks(masks).tolist() == reading.rank.tolist()
            for mask, rank, taken in zip(
                masks.tolist(),
                reading.rank.tolist(),
                reading.taken.tolist(),
                strict=True,
            ):
                assert table.rank(mask) == rank
                assert rank == NEVER or table.choose(mask) == taken
