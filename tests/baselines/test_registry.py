"""Baselines by their names."""

import pytest

from ringleaf.baselines.engine import Baseline
from ringleaf.baselines.order import ORDERS
from ringleaf.baselines.registry import BASELINES, UnknownName, baseline
from ringleaf.engine.engine import Engine
from ringleaf.framework.conf import DEFAULT


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
    with pytest.raises(UnknownName, match=r"'bestfit'; did you mean 'best-fit'\?"):
        baseline("bestfit")
    with pytest.raises(UnknownName, match=r"queue order 'fif'; did you mean 'fifo'\?"):
        baseline("random", order="fif")
    with pytest.raises(UnknownName, match="there are ringleaf, random"):
        baseline("?")
