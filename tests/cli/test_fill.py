"""``ringleaf compare --fill``: how many chips policies allocate to too many jobs."""

import json
import re

import pytest

from ringleaf.baselines import optimum
from ringleaf.cli import fill
from ringleaf.cli.main import COMMANDS
from ringleaf.simulator.workloads import WORKLOADS
from tests.cli.conftest import Ringleaf

SMALL = (
    "--cluster=leaf-spine-512:nodes=16",
    "--workload=packing",
    "--jobs=60",
    "--workers=1",
)


@pytest.mark.slow
def test_every_policy_is_told_with_its_interval_and_the_bounds(
    ringleaf: Ringleaf,
) -> None:
    done = ringleaf("fill", *SMALL, "--seeds=3", "--policies=ringleaf,worst-fit")

    assert done.status == 0
    told = "allocated chips, packing in excess on leaf-spine-512:nodes=16; 3 seeds"
    assert told in done.lines[0]
    assert done.lines[2].split() == ["static", "fill", "churn", "fill"]
    first = [re.split("  +", line)[0] for line in done.lines[3:7]]
    bounds = ["bound: capacity", "bound: leaf rule"]
    assert first == ["ringleaf", "worst-fit", *bounds]
    assert all(line.count("±") == 2 for line in done.lines[3:5])


@pytest.mark.slow
def test_json_has_every_fill_and_the_same_means(ringleaf: Ringleaf) -> None:
    words = ("fill", *SMALL, "--seeds=2", "--policies=ringleaf,worst-fit+fifo")
    told = json.loads(ringleaf(*words, "--json").out)

    first, second = told["policies"]
    assert [first["policy"], second["policy"]] == ["ringleaf", "worst-fit+fifo"]
    assert [(each["policy"], each["seed"]) for each in told["fills"]] == [
        *(("ringleaf", seed) for seed in (0, 1)),
        *(("worst-fit+fifo", seed) for seed in (0, 1)),
    ]
    for way in ("static", "churn"):
        own = [each[way]["allocated"] for each in told["fills"]]
        gap = (own[2] - own[0] + own[3] - own[1]) / 2
        assert first[way]["allocated"]["mean"] == pytest.approx(sum(own[:2]) / 2)
        assert second[way]["difference"]["mean"] == pytest.approx(gap)
        assert first[way]["difference"] is None
    rule, capacity = (told["bounds"][name]["mean"] for name in ("leaves", "capacity"))
    assert first["static"]["allocated"]["mean"] <= rule + 1e-9
    assert second["static"]["allocated"]["mean"] <= capacity
    assert json.loads(ringleaf(*words, "--json").out) == told


@pytest.mark.slow
def test_d36_both_choices_of_leaves_are_played(ringleaf: Ringleaf) -> None:
    """Where leaves differ in size, they allocate differently."""
    done = ringleaf(
        *("compare", "--fill", "--cluster=leaf-spine-uneven:nodes=32"),
        *("--workload=kalos", "--jobs=60", "--workers=1", "--seeds=1", "--json"),
        "--policies=ringleaf,ringleaf-guide",
    )

    compact, guide = json.loads(done.out)["fills"]
    assert (compact["policy"], guide["policy"]) == ("ringleaf", "ringleaf-guide")
    assert compact["churn"]["allocated"] > guide["churn"]["allocated"]


def test_without_the_solver_there_is_no_bound_by_the_rule(
    ringleaf: Ringleaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (fill, optimum):
        monkeypatch.setattr(module, "find_spec", lambda _name: None)
    done = ringleaf("fill", *SMALL, "--seeds=2", "--policies=ringleaf")

    assert done.status == 0
    assert "bound: capacity" in done.out
    assert "bound: rule" not in done.out
    assert "hint: pip install 'ringleaf[optimum]'" in done.err


def test_one_seed_tells_little(ringleaf: Ringleaf) -> None:
    done = ringleaf("fill", *SMALL, "--seeds=1", "--policies=random")

    assert "±" not in done.out
    assert "nothing is coloured; hint: ringleaf compare --fill --seeds 10" in done.err


def test_bad_use_is_one_line(ringleaf: Ringleaf) -> None:
    for words, told in (
        (("--policies=best",), "there is no policy 'best'; hint: did you mean"),
        (("--workload=kalo",), "did you mean 'kalos'?"),
        (("--demand=x",), "--demand"),
    ):
        done = ringleaf("fill", *SMALL[:1], "--seeds=1", *words)
        assert done.status == 2
        assert told in done.err
        assert done.err.count("\n") == 1


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_every_workload_is_offered_and_the_help_says_where_they_are_listed(
    ringleaf: Ringleaf, command: str
) -> None:
    words = " ".join(ringleaf(command, "--help").out.split())

    assert COMMANDS[command].by_name["--workload"].words == [*WORKLOADS]
    assert "A workload preset (see ringleaf workloads)." in words
