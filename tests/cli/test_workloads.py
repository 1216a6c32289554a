"""``ringleaf workloads``."""

import json
from pathlib import Path

import pytest

from ringleaf.simulator.sites import SITES
from ringleaf.simulator.workloads import WORKLOADS
from tests.cli.conftest import Ringleaf
from tests.docs.pages import ROOT

ROWS = "submit,duration,chips\n0,100,1\n10,100,3\n100,300,8\n"


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "log.csv"
    path.write_text(ROWS)
    return str(path)


def test_clusters_and_workloads_are_listed_with_their_titles(
    ringleaf: Ringleaf,
) -> None:
    shown = ringleaf("workloads", columns=200)
    told = json.loads(ringleaf("workloads", "--json").out)

    assert shown.status == 0
    titles = {each.name: each.title for each in SITES.values()}
    titles |= {each.name: each.title for each in WORKLOADS.values()}
    for name, title in titles.items():
        assert any(
            line.startswith(f"{name} ") and title in line for line in shown.lines
        )
    assert [each["name"] for each in told["clusters"]] == [*SITES]
    assert [each["name"] for each in told["workloads"]] == [*WORKLOADS]


def test_lists_fit_a_narrow_screen(ringleaf: Ringleaf) -> None:
    assert max(map(len, ringleaf("workloads", columns=60).lines)) <= 80


def test_the_jobs_of_a_trace_are_counted_by_hand(
    ringleaf: Ringleaf, trace: str
) -> None:
    shown = ringleaf("workloads", trace, "--cluster", "leaf-spine-512:nodes=1")

    # 1 x 100 + 4 x 100 + 8 x 300 = 2900 chip-seconds; 8 chips for 100 s are 800.
    assert shown.lines[0] == (
        "log.csv on leaf-spine-512:nodes=1: 3 jobs in 100 s, offered load 3.62, "
        "4.33 chips a job"
    )
    assert shown.lines[6:10] == [
        "chips      jobs  % of jobs  % of chip-time   median  longest",
        "1             1      33.33            3.45    100 s    100 s",
        "4             1      33.33           13.79    100 s    100 s",
        "8             1      33.33           82.76  5.0 min  5.0 min",
    ]


def test_what_a_trace_counts_may_be_nodes_and_bad_rows_are_left_out(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("at,ran,n,team\n0,9,1,red\nsoon,9,1,red\n5,9,2,blue\n")
    mapping = "submit=at,duration=ran,chips=n,queue=team"
    arguments = ("workloads", str(path), "--columns", mapping, "--json")
    more = ("--chips-each", "8", "--queues", "--skip-bad")

    told = json.loads(ringleaf(*arguments, *more).out)
    bad = ringleaf(*arguments)

    assert [row["of"] for row in told["sizes"]] == ["8", "16"]
    assert told["queues"] == ["red", "blue"]
    assert told["notes"][0].startswith("left out, cannot be read: ")
    assert (bad.status, "hint: --skip-bad leaves out" in bad.err) == (2, True)


def test_json_has_the_same_numbers(ringleaf: Ringleaf, trace: str) -> None:
    arguments = ("workloads", trace, "--cluster", "leaf-spine-512:nodes=1", "--json")

    told = json.loads(ringleaf(*arguments).out)

    assert (told["jobs"], told["span-seconds"], told["load"]) == (3, 100.0, 3.625)
    assert [row["of"] for row in told["sizes"]] == ["1", "4", "8"]
    assert [row["chip-time-percent"] for row in told["sizes"]] == [
        3.448,
        13.793,
        82.759,
    ]
    assert "published-mean-chips" not in told


def test_what_was_published_stands_beside_what_is_drawn(ringleaf: Ringleaf) -> None:
    shown = ringleaf("workloads", "kalos", "--jobs", "2000", "--seed", "3")
    told = json.loads(ringleaf("workloads", "kalos", "--jobs", "2000", "--json").out)

    assert "(published: 26.77)" in shown.lines[0]
    assert any(
        line.startswith("pretrain ") and "(95.50)" in line for line in shown.lines
    )
    assert told["kinds"][0]["published-jobs-percent"] == 92.8


def test_blocks_go_to_superpods_where_no_cluster_is_told(ringleaf: Ringleaf) -> None:
    shown = ringleaf("workloads", "llm-superpod", "--jobs", "500")

    assert (shown.status, shown.err) == (0, "")
    assert shown.lines[0].startswith("llm-superpod on superpod-48x8: 500 jobs in ")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["kalso"], "NAME is 'kalso', want a file or one of kalos, seren, "),
        (["kalso"], "; hint: did you mean 'kalos'?"),
        (["a\0b"], "NAME is 'a\\x00b', want a file or one of "),
        (["kalos", "--load", "0"], "load is 0.0, want more than 0 and at most 10"),
        (["kalos", "--columns", "philly"], "--columns goes with a trace; hint: "),
        (["kalos", "--chips-each", "8"], "--chips-each goes with a trace; hint: "),
        (["kalos", "--queues"], "--queues goes with a trace; hint: "),
        (["kalos", "--skip-bad"], "--skip-bad goes with a trace; hint: "),
        (["--queues"], "NAME is missing, want a workload; hint: ringleaf workloads"),
        (["kalos", "--cluster", "mixt"], "want a file or one of superpod-48x8, "),
        (["--jobs", "3"], "NAME is missing, want a workload; hint: ringleaf workloads"),
        ([str(ROOT / "examples")], "examples: Is a directory"),
        ([str(ROOT / "README.md")], "README.md: the header is 'Ringleaf "),
    ],
)
def test_bad_use_is_one_line(
    ringleaf: Ringleaf, arguments: list[str], line: str
) -> None:
    done = ringleaf("workloads", *arguments)

    assert (done.status, done.out) == (2, "")
    assert line in done.err
    assert done.err.count("\n") == 1


def test_help_has_examples_that_work(ringleaf: Ringleaf) -> None:
    page = ringleaf("workloads", "--help")
    examples = page.lines[page.lines.index("Examples:") + 1 :]
    shown = [line.split()[1:] for line in examples if "ringleaf workloads" in line]

    assert max(map(len, page.lines)) <= 80
    assert len(shown) == 3
    for arguments in shown:
        assert ringleaf(*arguments).status == 0
