"""docs/metrics.md, the rules and the dashboard fit each other and the catalogue."""

import re
from typing import Any

import pytest
import yaml

from ringleaf.kube.catalogue import (
    CATALOGUE,
    CAUSES,
    PROCESS,
    SHADOW,
    STATES,
    SUMMARY,
    Kind,
)
from ringleaf.model.decision import Reason
from tests.docs.pages import ROOT, section, table_rows, text_of

PAGE = "docs/metrics.md"
CHART = ROOT / "deploy" / "chart" / "ringleaf"
NAMES = {metric.name: metric for metric in (*CATALOGUE, *SHADOW, *SUMMARY, *PROCESS)}
RULES = yaml.safe_load((CHART / "rules" / "alerts.yaml").read_text("utf-8"))
ALERTS: list[dict[str, Any]] = [
    rule for group in RULES["groups"] for rule in group["rules"]
]
_METRIC = re.compile(r"\b(?:ringleaf|volcano|process)_[a-z0-9_]+")


def metrics_in(query: str) -> list[str]:
    """The metrics that a query asks for."""
    return _METRIC.findall(query)


def served(name: str) -> bool:
    """Whether a series of this name is served."""
    for suffix in ("_bucket", "_count", "_sum"):
        known = NAMES.get(name.removesuffix(suffix))
        if name.endswith(suffix) and known and known.kind is Kind.HISTOGRAM:
            return True
    return name in NAMES and NAMES[name].kind is not Kind.HISTOGRAM


def test_exactly_the_metrics_that_are_served_are_documented() -> None:
    rows = table_rows(text_of(PAGE))
    listed = [row for row in rows if len(row) == 4 and row[0].startswith("`")]

    documented = {row[0].strip("`"): row for row in listed}

    assert documented.keys() == NAMES.keys()
    assert len(listed) == len(documented)
    for name, row in documented.items():
        assert row[1] == NAMES[name].kind
        assert tuple(re.findall(r"`(\w+)`", row[2])) == NAMES[name].labels


def test_what_is_left_out_is_not_served() -> None:
    text = section(PAGE, "What Volcano has and Ringleaf does not")

    left_out = {name for row in table_rows(text) for name in _METRIC.findall(row[0])}

    assert len(left_out) > 5
    assert left_out.isdisjoint(NAMES)


def test_every_state_and_every_reason_is_documented() -> None:
    states = {row[0] for row in table_rows(section(PAGE, "Chips by state"))[2:]}
    causes = {row[0] for row in table_rows(section(PAGE, "Why jobs wait"))[2:]}

    assert states == {f"`{state}`" for state in STATES}
    assert causes == {f"`{cause}`" for cause in CAUSES.keys() - {*Reason}}


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    text = section(PAGE, "Alerts")
    headings = re.findall(r"^### (Ringleaf\w+)$", text, re.MULTILINE)

    assert headings == [alert["alert"] for alert in ALERTS]
    for alert in ALERTS:
        name, notes = alert["alert"], alert["annotations"]
        assert notes["runbook_url"] == f"docs/metrics.md#{name.lower()}"
        assert notes["summary"].endswith(".")
        assert alert["labels"]["severity"] in ("critical", "warning", "info")
        assert len(section(PAGE, name).split()) > 10


def test_the_table_of_alerts_has_their_severity_and_how_long_they_last() -> None:
    rows = table_rows(section(PAGE, "Alerts"))[2:]

    def lasting(alert: dict[str, Any]) -> str:
        time = alert.get("for", "")
        return time.replace("m", " min").replace("h", " h") or "at once"

    assert [(row[0], row[1], row[3]) for row in rows] == [
        (
            f"[{alert['alert'].removeprefix('Ringleaf')}](#{alert['alert'].lower()})",
            alert["labels"]["severity"],
            lasting(alert),
        )
        for alert in ALERTS
    ]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_alerts_ask_for_metrics_that_are_served(alert: dict[str, Any]) -> None:
    names = metrics_in(alert["expr"])

    assert names
    assert all(map(served, names)), alert["expr"]


def test_metrics_that_the_page_speaks_of_exist() -> None:
    left_out = section(PAGE, "What Volcano has and Ringleaf does not")
    text = text_of(PAGE).replace(left_out, "")
    spoken = {name for name in _METRIC.findall(text) if name != "ringleaf_chips_"}

    assert all(served(name) or name in NAMES for name in spoken), spoken
