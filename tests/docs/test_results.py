"""The studies of docs/results.md: their pieces, and that page and files agree."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from benchmarks import results, tables
from benchmarks.results import BY_NAME, NASA, Compared, against_best, filled, mixed

from ringleaf.simulator.saturation import Fill
from ringleaf.simulator.sites import site
from tests.docs.pages import ROOT, joined, text_of

SITE = site("leaf-spine-512:nodes=128")


@pytest.mark.parametrize(
    ("mix", "sizes"),
    [("doublings", [1, 2, 4, 8, 16, 32, 64]), ("any size", list(range(1, 65)))],
)
def test_every_size_of_a_made_up_mix_asks_for_as_many_nodes(
    mix: str, sizes: list[int]
) -> None:
    asked = [spec.job.replicas for spec in mixed(mix, SITE, 1)]

    assert {*asked} <= {*sizes}
    small = sum(n for n in asked if n <= 16)
    share = sum(size <= 16 for size in sizes) / len(sizes)
    assert small / sum(asked) == pytest.approx(share, abs=0.06)


def test_the_same_seed_draws_the_same_jobs() -> None:
    once, again, other = (mixed("doublings", SITE, seed) for seed in (1, 1, 2))

    assert once == again
    assert once != other


def test_a_fill_that_was_played_is_not_played_again(tmp_path: Path) -> None:
    known = Fill(0.5, 7, 3, 2.0)
    path = tmp_path / "churn-any-size-4-ringleaf-seed0.json"
    path.write_bytes(msgspec.json.encode(known))

    assert filled(tmp_path, "any size", 4, "churn", "ringleaf", 0) == known


def test_a_fill_is_kept_and_read_as_it_was(tmp_path: Path) -> None:
    once, again = (
        filled(tmp_path, "helios-gang", 8, "static", "best-fit", 0) for _ in range(2)
    )

    assert once == again
    assert len([*tmp_path.iterdir()]) == 1
    assert 0.9 < once.allocated <= 1


def test_nobody_under_the_rule_takes_more_than_the_optimum(tmp_path: Path) -> None:
    found = against_best(tmp_path, "helios-gang", 32, 4, 0)

    under = [found["nodes"][name] for name in results.BEST_OF]
    assert max(under) <= found["best"] <= 4 * 32
    assert min(under) > 0.8 * found["best"]


def test_an_unknown_study_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        results.main(["philyl"])

    assert ended.value.code == 2
    assert "no study 'philyl', want some of fills, online" in capsys.readouterr().err


def test_a_study_that_cannot_be_played_ends_as_its_command_does(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    bad = Compared("bad", "--trace nothing.csv")
    monkeypatch.setattr(results, "BY_NAME", {"bad": bad})

    assert results.main(["bad", "--runs", str(tmp_path)]) == 2
    assert "nothing.csv" in capfd.readouterr().err


@pytest.mark.slow
def test_a_small_study_is_played_and_gives_a_table(tmp_path: Path) -> None:
    options = "--cluster leaf-spine-512:nodes=16 --workload helios-gang --jobs 60"
    study = Compared("small", f"{options} --seeds 2 --policies ringleaf,best-fit")

    found = study.play(tmp_path, 1)

    lines = tables.compared(found).splitlines()
    assert lines[0].startswith("| policy | utilization |")
    assert [line.split()[1] for line in lines[2:]] == ["`ringleaf`", "`best-fit`"]
    assert sum(found["why"]["ringleaf"].values()) == pytest.approx(1)
    assert [len(own) for own in found["large"].values()] == [2, 2]
    assert tables.about(found).startswith("60 jobs at an offered load of 0.90, 2 seeds")


@pytest.mark.slow
def test_the_log_of_nasa_is_played_on_the_topology_of_lingjun(tmp_path: Path) -> None:
    if not (ROOT / results.TRACES / "lingjun2023_topo.csv").exists():
        pytest.skip("no traces in ../shared: left out")
    options = NASA.replace("--jobs 2000", "--jobs 200")

    found = Compared("some", f"{options} --seeds 1 --policies ringleaf").play(
        tmp_path, 1
    )

    assert (found["cluster"], found["jobs"]) == ("lingjun2023_topo.csv", 200)
    assert found["load"] == pytest.approx(0.8)
    conflicts = [
        each["value"]["mean"]
        for each in found["measures"]
        if each["measure"] == "leaves.conflicts"
    ]
    assert conflicts == [0]


# Tables, from figures by hand.


def measured(policy: str, value: float, low: float | None = None) -> dict[str, Any]:
    apart = None if low is None else {"mean": low + 1, "low": low, "high": low + 2}
    return {
        "measure": "leaves.conflicts",
        "policy": policy,
        "value": {"mean": value},
        "difference": apart,
    }


def test_schedulers_as_deployed_have_a_row_for_each_cluster() -> None:
    one = {"policies": ["ringleaf"], "measures": [measured("ringleaf", 1.0)]}
    two = {"policies": ["kueue"], "measures": [measured("kueue", 9.0, 3.0)]}

    lines = tables.deployed(even=one, uneven=two).splitlines()

    assert [line.replace("\N{EN DASH}", "-") for line in lines[2:]] == [
        "| even | `ringleaf` | - | - | - | 1 | - |",
        "| uneven | `kueue` | - | - | - | **9** | - |",
    ]


def test_what_is_beyond_chance_and_not_slight_is_bold() -> None:
    study = {
        "policies": ["ringleaf", "near", "far", "slight", "silent"],
        "measures": [
            measured("ringleaf", 1.0),
            measured("near", 2.0, -0.5),
            measured("far", 3.0, 0.5),
            measured("slight", 301.0, 0.5),
        ],
    }

    assert tables.compared(study).splitlines() == [
        "| policy | spine conflicts |",
        "| --- | --- |",
        "| `ringleaf` | 1 |",
        "| `near` | 2 |",
        "| `far` | **3** |",
        "| `slight` | 301 |",
        f"| `silent` | {tables.NONE} |",
    ]


def fill(below: float, conflicts: float) -> dict[str, Any]:
    own = {
        "allocated": {"mean": 0.9},
        "below": {"mean": below, "low": below - 0.001, "high": below + 0.001},
        "conflicts": {"mean": conflicts},
    }
    return {"mix": "kalos", "leaf": 4, "way": "static", "policies": {"ringleaf": own}}


def gangs(use: str, wait_s: float, used: float) -> dict[str, Any]:
    """Ours waits 700 s and uses 80 %."""
    rows = [
        (tables.LARGE, "ringleaf", 700.0),
        (tables.LARGE, "best-fit", wait_s),
        (use, "ringleaf", 0.8),
        (use, "best-fit", used),
    ]
    return {
        "seeds": [0, 1],
        "large": {"ringleaf": [700.0, 700.0], "best-fit": [1400.0, 2 * wait_s - 1400]},
        "measures": [
            {"measure": key, "policy": who, "value": {"mean": x}}
            for key, who, x in rows
        ],
    }


def uneven(wait_s: float, used: float, conflicts: float) -> dict[str, Any]:
    """Theirs wait 700 s and use 80 %, effectively 75 %."""
    rows = [
        (tables.WAIT, wait_s, 700.0),
        (tables.WORK, used, 0.75),
        (tables.USE, used, 0.8),
        ("leaves.conflicts", conflicts, 2.0),
    ]
    return {
        "seeds": [0],
        "measures": [
            {"measure": key, "policy": who, "value": {"mean": x}}
            for key, *both in rows
            for who, x in zip(("ringleaf", "kueue-tas"), both, strict=True)
        ],
    }


@pytest.mark.parametrize(
    ("wait_s", "used", "conflicts", "holds"),
    [
        pytest.param(600.0, 0.75, 0, True, id="met"),
        pytest.param(700.0, 0.75, 0, False, id="no shorter wait"),
        pytest.param(600.0, 0.74, 0, False, id="less work"),
        pytest.param(600.0, 0.75, 0.1, False, id="a conflict"),
    ],
)
def test_the_goal_of_uneven_leaves_is_met_by_the_figures_alone(
    wait_s: float, used: float, conflicts: float, *, holds: bool
) -> None:
    study = uneven(wait_s, used, conflicts)

    _where, _found, met = tables._goal_of_uneven(study, tables.WORK)  # noqa: SLF001

    assert met == (tables.YES if holds else tables.NO)


@pytest.mark.parametrize(("used", "holds"), [(0.8, True), (0.79, False)])
def test_the_goal_of_uneven_leaves_stands_also_by_chips_that_wait_for_links(
    used: float, *, holds: bool
) -> None:
    study = uneven(600.0, used, 0)

    where, found, met = tables._goal_of_uneven(study, tables.USE)  # noqa: SLF001

    assert where == "1 seed, by utilization"
    assert f"utilization {100 * used:.1f} % against 80.0 %" in found
    assert met == (tables.YES if holds else tables.NO)


def test_goals_are_met_by_the_figures_alone(tmp_path: Path) -> None:
    ratios = [{"ringleaf": {"mean": x}, "best-fit": {"mean": 1}} for x in (0.99, 0.98)]
    told = {
        "fills": {"rows": [fill(0.01, 0), fill(0.011, 0), fill(0.001, 0.1)]},
        "kalos": gangs(tables.USE, 1000.0, 0.8),
        "kalos-links": gangs(tables.WORK, 1000.0, 0.81),
        "nasa-links": uneven(600.0, 0.76, 0),
        "optimum": {
            "free": "best-fit",
            "rows": [
                {"mix": "kalos", "leaves": 32, "leaf": 4, "ratios": each}
                for each in ratios
            ],
        },
    }
    for name, study in told.items():
        (tmp_path / f"{name}.json").write_bytes(msgspec.json.encode(study))

    lines = [
        line
        for line in tables.goals(tmp_path).splitlines()
        if line.startswith("|") and "---" not in line and "holds" not in line
    ]

    met = [line.rsplit("|", 2)[1].strip() for line in lines]
    no = tables.NO
    assert met == ["yes", no, no, "yes", no, "yes", no, "yes", no]
    assert "11.7 min against 16.7 min, -30 % (seed by seed -50, +17 %)" in lines[3]


def test_goals_of_the_churn_are_met_by_the_figures_alone() -> None:
    def row(way: str, mix: str, leaf: int, ours: float) -> dict[str, Any]:
        policies = {
            name: {"allocated": {"mean": 0.8 - below}, "below": estimate(below)}
            for name, below in (("best-fit", 0), ("ringleaf-guide", 0.04))
        }
        own = {"allocated": {"mean": 0.8 - ours}, "below": estimate(ours)}
        about = {"way": way, "mix": mix, "leaf": leaf}
        return about | {"policies": policies | {"ringleaf": own}}

    rows = [
        row("static", "kalos", 4, 0.5),
        row("churn", "any size", 4, 0.015),
        row("churn", "doublings", 8, 0.0031),
    ]

    _head, _line, *told = tables.churned({"rows": rows}).splitlines()

    same = "80.00 % | 76.00 % | 4.00 ± 0.10"
    assert told == [
        f"| any size | 4 | {same} | 78.50 % | 1.50 ± 0.10 | 1.5 | yes |",
        f"| doublings | 8 | {same} | 79.69 % | 0.31 ± 0.10 | 0.3 | **no** |",
    ]


def estimate(mean: float) -> dict[str, Any]:
    return {"mean": mean, "low": mean - 0.001, "high": mean + 0.001}


def test_what_a_choice_gains_is_a_part_of_what_the_rule_costs() -> None:
    own = {"free": 0.7, "best": 0.69, "best compact": 0.685, "compact": 0.68}
    about = {"mix": "doublings", "leaves": 3, "leaf": 4}

    (*_head, told) = tables.small({"small": [about | {"allocated": own}]}).splitlines()

    assert told == (
        f"| doublings | 3 of 4, with slots | 70.00 % | {tables.NONE} | 1.00 | 1.50 "
        "| 2.00 | 50 % | 25 % |"
    )


# The page.


@pytest.mark.parametrize("name", BY_NAME)
def test_the_page_tells_every_study_as_it_is_played_today(name: str) -> None:
    told = tables.read(name)["command"]

    assert told == BY_NAME[name].command
    assert f"$ {told}" in joined(text_of("docs/results.md"))


def test_plots_of_the_page_are_small() -> None:
    sizes = [path.stat().st_size for path in (ROOT / "docs/results").glob("*.png")]

    assert max(sizes, default=0) < 150_000
