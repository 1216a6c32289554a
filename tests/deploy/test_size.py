"""The pages agree on memory and on the cost of metrics, and the chart follows them."""

import re
from typing import Final

import pytest
import yaml

from ringleaf.kube.quantity import quantity
from tests.deploy.helm import CHART
from tests.docs.pages import section, table_rows

SPARE: Final = 2
"""A limit is at least so many times the measured peak."""
REQUESTED: Final = "1,000"
"""The nodes that the requests of the chart are enough for."""


def sizes(page: str, heading: str) -> dict[str, dict[str, str]]:
    """Nodes -> the cells of their row, by the words over them."""
    head, _rule, *rows = table_rows(section(page, heading))
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}


def amount(text: str) -> int:
    """Bytes, as a page or a manifest writes them."""
    return quantity(text.strip("`").replace(" MiB", "Mi")) // 1000


SIZES: Final = sizes("docs/size.md", "Size the scheduler")
RESOURCES: Final = yaml.safe_load((CHART / "values.yaml").read_text())["resources"]


def test_the_chart_is_limited_as_the_largest_measured_cluster_needs() -> None:
    largest = max(SIZES, key=lambda nodes: int(nodes.replace(",", "")))

    limit = SIZES[largest]["`resources.limits.memory`"].strip("`")

    assert RESOURCES["limits"] == {"memory": limit}


def test_the_chart_requests_what_the_page_calls_enough() -> None:
    said = re.search(
        rf"requests (\w+) and a quarter of a core, enough for {REQUESTED} nodes, "
        r"and limits memory to (\w+),",
        section("docs/size.md", "Size the scheduler"),
    )

    assert said is not None
    requests = RESOURCES["requests"]
    assert (requests["memory"], RESOURCES["limits"]["memory"]) == said.groups()
    assert quantity(requests["cpu"]) == 250
    assert amount(requests["memory"]) >= amount(SIZES[REQUESTED]["peak memory"])


@pytest.mark.parametrize("nodes", SIZES)
def test_a_limit_leaves_room_above_the_measured_peak(nodes: str) -> None:
    row = SIZES[nodes]

    assert amount(row["`resources.limits.memory`"]) >= SPARE * amount(
        row["peak memory"]
    )


def test_installing_says_what_the_limit_of_the_chart_is_enough_for() -> None:
    said = re.search(
        r"limits memory to (\w+), enough for ([\d,]+) nodes with ([\d,]+) pods\.",
        section("docs/install.md", "Memory"),
    )

    assert said is not None
    limit, nodes, pods = said.groups()
    assert RESOURCES["limits"] == {"memory": limit}
    assert SIZES[nodes]["pods"] == pods
    assert SIZES[nodes]["`resources.limits.memory`"].strip("`") == limit


def test_sizing_has_the_figures_of_the_benchmark() -> None:
    measured = sizes("docs/benchmarks.md", "The memory of a cluster")

    assert {
        nodes: (row["pods"], row["memory at the peak"])
        for nodes, row in measured.items()
    } == {nodes: (row["pods"], row["peak memory"]) for nodes, row in SIZES.items()}


def test_security_says_of_a_scrape_what_was_measured() -> None:
    measured = dict(table_rows(section("docs/metrics.md", "Cost")))
    said = " ".join(section("docs/security.md", "Metrics").split())

    loop, step = (
        measured["of which the deciding loop"],
        measured["the longest step of it"],
    )
    assert f"it takes {loop} of the deciding loop, in steps of at most {step}" in said
