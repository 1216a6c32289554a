"""Pages name exactly the columns and keys of what simulations write."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ringleaf.cli.compare import compare_policies
from ringleaf.cli.simulate import simulate_jobs
from ringleaf.cli.simulation_request import SimulationRequest
from ringleaf.engine.engine import Engine
from ringleaf.simulator.bounds import Bounds
from ringleaf.simulator.ledger import COLUMNS
from ringleaf.simulator.metrics import SERIES
from ringleaf.simulator.metrics.cost import TimedEngine
from ringleaf.simulator.metrics.wait_causes import WAIT_CAUSES
from ringleaf.study.rows import SPEC, flat
from tests.docs.pages import section, table_rows, text_of
from tests.simulator.stage import Stage, nodes, spec

MEASURES, SIMULATE, COMPARE = "docs/measures.md", "docs/simulate.md", "docs/compare.md"
HEADINGS = (
    *("Words and the window", "Utilization", "Chips", "Nodes", "Leaves", "SuperPoDs"),
    *("Wait time", "Work", "Faults"),
)
SMALL = SimulationRequest("leaf-spine-512:nodes=8", workload="philly", jobs=20)


def names(text: str) -> list[str]:
    """What the first cells of tables name."""
    cells = [row[0] for row in table_rows(text)]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def after(page: str, words: str) -> str:
    """The first table after *words*."""
    rest = text_of(page).partition(words)[2]
    assert rest, f"{page} does not say {words!r}"
    lines = rest.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("|"))
    stop = next(n for n in range(start, len(lines)) if not lines[n].startswith("|"))
    return "\n".join(lines[start:stop])


def told_measures() -> list[str]:
    """The keys of all measures, as the page names them."""
    found = [name for heading in HEADINGS for name in names(section(MEASURES, heading))]
    causes = names(section(MEASURES, "Causes of waiting"))
    why = [name for name in causes if "." in name]
    return [
        *found,
        *(name.replace("BLAME", blame) for name in why for blame in WAIT_CAUSES),
    ]


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    job_specs = [spec("a", 0, 8, 2), spec("b", 1, 1)]
    stage = Stage(nodes("A 1", "B 2"), job_specs)
    stage.at(0).arrive("a").start("a", A0="01234567", B0="01234567")
    stage.at(1).arrive("b").start("b", B1="0")
    return stage.at(5).end("a").end("b").finish().plain()


def test_exactly_the_measures_are_described(plain: dict[str, Any]) -> None:
    """A key stands for what is below it: a spread, or one value a rule."""
    told = {*told_measures()}
    keys = [key for key, _value in flat(plain)]
    of = {
        key: [name for name in told if f"{key}.".startswith(f"{name}.")] for key in keys
    }

    assert [key for key, known in of.items() if not known] == []
    assert told - {name for known in of.values() for name in known} == set()


def test_a_key_that_stands_for_others_is_a_spread_or_a_table(
    plain: dict[str, Any],
) -> None:
    spread = {"n", "mean", "p50", "p95", "p99", "max"}
    grouped = {"all", "by_size", "by_queue", "by_kind"}
    tables = {
        *("jobs.endings", "chips.mix", "nodes.largest_gang"),
        *("nodes.largest_gang_of_free", "nodes.external_fragmentation"),
        *("jobs.unstarted_causes", "pending_s.all", "pending_s.by_size"),
    }
    for name in {*told_measures()} - tables:
        found: Any = plain
        for part in name.split("."):
            found = found[part]
        if isinstance(found, dict):
            assert {*found} <= spread or {*found} == grouped, name


def test_exactly_the_columns_of_jobs_are_described() -> None:
    assert names(after(SIMULATE, "`jobs.csv`, one row")) == list(COLUMNS)


def test_exactly_the_columns_over_time_are_described() -> None:
    table = section(MEASURES, "The rows over time")

    assert names(table) == list(SERIES)


def test_exactly_the_costs_are_described() -> None:
    told = names(section(MEASURES, "Cost of decisions"))

    assert told == list(TimedEngine(Engine(())).plain())


def test_exactly_the_bounds_are_described() -> None:
    assert names(section(MEASURES, "Bounds")) == list(Bounds.__struct_fields__)


def test_exactly_the_keys_of_a_summary_are_described(tmp_path: Path) -> None:
    simulate_jobs(SMALL, out=str(tmp_path), resume=None, save_every_s=60, as_json=True)
    told = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    text = after(SIMULATE, "`summary.json`:")
    rows = {row[0]: row[1] for row in table_rows(text)}

    assert {*names(text)} == {*told}
    for key in ("cluster", "workload", "jobs"):
        assert {*re.findall(r"`(\w+)`", rows[f"`{key}`"])} == {*told[key]}, key
    files = {path.name for path in tmp_path.iterdir()}
    assert {*re.findall(r"`(\w+\.\w+)`", section(SIMULATE, "Results"))} == files


def test_exactly_the_keys_of_a_comparison_are_described(tmp_path: Path) -> None:
    compare_policies(
        SMALL,
        ["ringleaf,random"],
        seeds=1,
        workers=1,
        dask=None,
        out=str(tmp_path),
        report=None,
        plots=None,
        as_json=True,
    )
    told = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    text = section(COMPARE, "Results")
    known = re.findall(r"`([^`]+)`", text)

    assert {*names(after(COMPARE, "Keys of `comparison.json`"))} == {*told}
    for key in ("measures", "bounds"):
        assert {*told[key][0]} <= {*known}
    assert {"cluster" if name == "site" else name for name in SPEC} <= {*known}
    files = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert files == {name for name in known if re.fullmatch(r"\w+\.\w+", name)} - {
        "use.utilisation"
    }
