"""``ringleaf policies``."""

import json

import pytest

from ringleaf.baselines.order import ORDERS
from ringleaf.baselines.registry import BASELINES, DEPLOYED
from tests.cli.conftest import Ringleaf


def test_every_policy_and_order_is_listed_with_what_it_does(ringleaf: Ringleaf) -> None:
    done = ringleaf("policies")
    first = [line.split()[0] for line in done.lines if line[:3].strip()]
    text = " ".join(done.out.split())

    assert (done.status, done.err) == (0, "")
    titles = {name: each.title for name, each in BASELINES.items()}
    titles |= {name: each.title for name, each in ORDERS.items()}
    for name, title in titles.items():
        assert name in first
        assert title.replace("`", "") in text
    assert max(map(len, done.lines)) <= 80


def test_what_people_run_today_is_listed_before_rules(ringleaf: Ringleaf) -> None:
    lines = ringleaf("policies").lines
    headings = [line for line in lines if line and line[0] != " "]
    listed = [line.split()[0] for line in lines if line[:2] == "  " and line[2] != " "]

    assert headings[:3] == [
        "Ringleaf",
        "Schedulers as they are deployed, each with its own queue",
        "Rules for nodes and chips, behind Ringleaf's queue",
    ]
    n_ours = sum(name.startswith("ringleaf") for name in BASELINES)
    assert tuple(listed[n_ours : n_ours + len(DEPLOYED)]) == DEPLOYED


def test_as_json(ringleaf: Ringleaf) -> None:
    told = json.loads(ringleaf("policies", "--json").out)

    assert [each["policy"] for each in told["policies"]] == [*BASELINES]
    assert [each["order"] for each in told["orders"]] == [*ORDERS]
    assert {*told["policies"][0]} == {"policy", "title", "respects", "source"}


@pytest.mark.parametrize("name", BASELINES)
def test_one_policy(ringleaf: Ringleaf, name: str) -> None:
    done = ringleaf("policies", name)
    told = json.loads(ringleaf("policies", name, "--json").out)

    assert done.lines[0] == name
    assert told["respects"] == BASELINES[name].respects
    assert BASELINES[name].title.replace("`", "") in " ".join(done.out.split())


def test_an_unknown_policy_is_one_line(ringleaf: Ringleaf) -> None:
    done = ringleaf("policies", "bestfit")

    assert (done.status, done.out) == (2, "")
    assert "there is no policy 'bestfit'; hint: did you mean 'best-fit'?" in done.err


def test_all_policies_that_begin_with_a_name_are_suggested(ringleaf: Ringleaf) -> None:
    done = ringleaf("policies", "volcano-vendor")

    assert done.status == 2
    assert "did you mean 'volcano-vendor-1.0' (" in done.err
