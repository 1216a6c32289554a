"""The dashboard is one that Grafana can load, and shows every metric of ours."""

import json
import re
from typing import Any, Final

import pytest

from ringleaf.kube.catalogue import CATALOGUE, CAUSES, STATES
from tests.docs.test_metrics import CHART, metrics_in, served

FILE: Final = CHART / "dashboards" / "ringleaf.json"
BOARD: Final[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))
PANELS: Final[list[dict[str, Any]]] = BOARD["panels"]
SHOWN: Final = [panel for panel in PANELS if panel["type"] != "row"]
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
ROWS: Final = [
    "Overview",
    "Pending jobs and their reasons",
    "Chips, fragments and the network",
    "Faults and repairs",
    "Latency and throughput",
    "API server and watches",
    "Leadership, configuration, health",
]


def queries() -> list[str]:
    """Every query of the dashboard."""
    return [target["expr"] for panel in SHOWN for target in panel["targets"]]


def test_it_has_what_grafana_needs() -> None:
    assert BOARD["uid"] == "ringleaf"
    assert BOARD["title"]
    assert BOARD["schemaVersion"] >= 36
    assert "id" not in BOARD, "Grafana gives the number"
    source, *_others = BOARD["templating"]["list"]
    assert source["name"] == "datasource"
    assert (source["type"], source["query"]) == ("datasource", "prometheus")


@pytest.mark.parametrize("name", ["queue", "namespace"])
def test_a_variable_takes_its_values_from_a_metric_and_selects_in_panels(
    name: str,
) -> None:
    (variable,) = [v for v in BOARD["templating"]["list"] if v["name"] == name]

    assert variable["type"] == "query"
    assert variable["datasource"] == SOURCE
    assert all(map(served, metrics_in(variable["query"]["query"])))
    assert variable["includeAll"]
    assert [query for query in queries() if f"${name}" in query]


def test_the_namespace_is_what_is_before_the_name_of_a_job() -> None:
    (variable,) = [v for v in BOARD["templating"]["list"] if v["name"] == "namespace"]
    pattern = variable["regex"].removeprefix("/").removesuffix("/").replace("\\/", "/")

    assert [
        found and found[1]
        for found in (re.match(pattern, job) for job in ("a/b", "pod c/d", "e"))
    ] == ["a", "c", None]


def test_the_rows_tell_the_story_from_the_outside_in() -> None:
    assert [p["title"] for p in PANELS if p["type"] == "row"] == ROWS


def test_every_panel_has_a_number_of_its_own() -> None:
    numbers = [panel["id"] for panel in PANELS]

    assert len(set(numbers)) == len(numbers)
    assert min(numbers) > 0


def test_no_panel_lies_over_another() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in PANELS:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']}, {taken[x, y]}"
                taken[x, y] = panel["title"]


def test_there_is_no_hole_between_panels() -> None:
    cells = sum(p["gridPos"]["w"] * p["gridPos"]["h"] for p in PANELS)

    assert cells == 24 * max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in PANELS)


@pytest.mark.parametrize("panel", SHOWN, ids=lambda panel: panel["title"])
def test_a_panel_asks_the_chosen_source(panel: dict[str, Any]) -> None:
    refs = [target["refId"] for target in panel["targets"]]

    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["datasource"] == SOURCE
    assert all(target["datasource"] == SOURCE for target in panel["targets"])
    assert len(set(refs)) == len(refs) > 0
    assert panel["type"] in ("stat", "timeseries", "table")


def test_titles_are_told_apart() -> None:
    titles = [panel["title"] for panel in PANELS]

    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("query", queries())
def test_panels_ask_for_metrics_that_are_served(query: str) -> None:
    names = metrics_in(query)

    assert names
    assert all(map(served, names)), query


def test_every_metric_of_our_own_is_shown() -> None:
    asked = " ".join(queries())
    own = {m.name for m in CATALOGUE if m.name.startswith("ringleaf_")}

    assert {name for name in own if name not in asked} == set()


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Pending jobs, by reason", CAUSES),
        ("Chips, by state", STATES),
    ],
)
def test_everything_that_is_stacked_has_a_colour(
    title: str, words: dict[str, str]
) -> None:
    (panel,) = [each for each in SHOWN if each["title"] == title]
    painted = [
        (each["matcher"]["options"], each["properties"][0]["value"]["fixedColor"])
        for each in panel["fieldConfig"]["overrides"]
    ]

    assert {name for name, _colour in painted} == {*words}
    assert len({colour for _name, colour in painted}) == len(words)
