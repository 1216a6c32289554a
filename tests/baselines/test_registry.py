"""Baselines by their names."""

import pytest

from ringleaf.baselines.engine import Baseline
from ringleaf.baselines.order import ORDERS
from ringleaf.baselines.registry import BASELINES, UnknownName, baseline
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import JobArrived
from ringleaf.framework.instruction import Bind
from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Schema
from ringleaf.policies.products import PRODUCTS

A2 = PRODUCTS["atlas-800t-a2"]


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_says_what_it_is(name: str) -> None:
    entry = BASELINES[name]

    assert entry.name == name
    assert entry.title.endswith(".")
    assert entry.source
    assert entry.respects


@pytest.mark.parametrize("name", ORDERS)
def test_every_order_says_what_it_is(name: str) -> None:
    assert ORDERS[name].name == name
    assert ORDERS[name].title.endswith(".")
    assert ORDERS[name].source


def test_ringleaf_without_an_order_is_the_engine_itself() -> None:
    assert type(baseline("ringleaf")([], (), (), DEFAULT)) is Engine
    assert type(baseline("ringleaf", order="fifo")([], (), (), DEFAULT)) is Baseline


def test_an_unknown_name_is_told_the_nearest() -> None:
    with pytest.raises(
        UnknownName, match=r"'bestfit'; hint: did you mean 'best-fit'\?"
    ):
        baseline("bestfit")
    first = r"did you mean 'volcano-vendor-1.0' \(Volcano with the vendor's plugin"
    with pytest.raises(UnknownName, match=first):
        baseline("volcano")
    with pytest.raises(
        UnknownName, match=r"queue order 'fif'; hint: did you mean 'fifo'\?"
    ):
        baseline("random", order="fif")
    with pytest.raises(UnknownName, match="there are ringleaf, ringleaf-guide, random"):
        baseline("?")


def test_a_scheduler_as_deployed_takes_no_other_order() -> None:
    with pytest.raises(UnknownName, match="'kueue' has a queue of its own, want no"):
        baseline("kueue", order="easy")


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [("ringleaf", "a0 a1 c0"), ("ringleaf-guide", "a0 a1 b0")],
)
def test_ringleaf_is_played_with_either_choice_of_leaves(
    policy: str, nodes: str
) -> None:
    """The rest of a job: where it fits most tightly, or the next complete leaf."""
    every = [
        Node(
            f"{leaf}{slot}",
            A2,
            8,
            0xFF * (leaf != "c" or not slot),
            leaf=leaf,
            slot=slot,
        )
        for leaf in "abc"
        for slot in range(2)
    ]
    job = Job("gang", A2, 8, 3, tor_affinity=Schema.NORMAL)

    said = baseline(policy)(every).handle_all([JobArrived(job)], now=0)

    (bind,) = [each for each in said if isinstance(each, Bind)]
    assert [place.node for place in bind.placements] == nodes.split()
