"""``ringleaf compare``: who is better on the same arrivals, and what is written."""

import json
from pathlib import Path

from tests.cli.conftest import Ringleaf

SMALL = (
    "--cluster=leaf-spine-512:nodes=16",
    "--workload=philly",
    "--jobs=80",
    "--workers=1",
)


def test_a_table_has_a_column_a_policy_and_says_how_sure_it_is(
    ringleaf: Ringleaf,
) -> None:
    names = "ringleaf,random,best-fit+fifo"
    done = ringleaf("compare", *SMALL, "--seeds=2", "--policies", names)

    assert done.status == 0
    assert "80 jobs of philly at load 0.90 on leaf-spine-512:nodes=16" in done.lines[0]
    assert done.lines[0].endswith("2 seeds each")
    assert done.lines[2].split() == ["ringleaf", "random", "best-fit+fifo", "bound"]
    assert any(line.startswith("Chips in use ") for line in done.lines)
    assert "than ringleaf, seed by seed and beyond chance (95 %)" in done.out


def test_results_are_kept_and_not_played_again(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    out = ("--policies=ringleaf,random", "--out", str(tmp_path))
    first = ringleaf("compare", *SMALL, "--seeds=1", *out, "--json")
    runs = sorted(tmp_path.glob("runs/*.json"))
    before = [(each.name, each.stat().st_mtime_ns) for each in runs]
    more = ringleaf("compare", *SMALL, "--seeds=2", *out, "--json")

    told, again = json.loads(first.out), json.loads(more.out)
    assert json.loads((tmp_path / "comparison.json").read_text()) == again
    assert told["policies"] == ["ringleaf", "random"]
    assert (told["seeds"], again["seeds"]) == ([0], [0, 1])
    assert told["measures"][0]["value"]["low"] is None
    use = next(each for each in told["bounds"] if each["measure"] == "use.utilisation")
    assert use["value"] >= told["measures"][0]["value"]["mean"]
    assert len(before) == 2
    for name, at in before:
        assert (tmp_path / "runs" / name).stat().st_mtime_ns == at
    assert len(list(tmp_path.glob("runs/*.json"))) == 4
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "random" in page


def test_one_seed_tells_little(ringleaf: Ringleaf, tmp_path: Path) -> None:
    report = tmp_path / "a.html"
    one = ("--seeds=1", "--policies=random", "--report", str(report))
    plots = ("--plots", str(tmp_path / "plots"))
    done = ringleaf("compare", *SMALL, *one, *plots)

    assert done.status == 0
    assert (
        "warning: one seed tells little; hint: ringleaf compare --seeds 5" in done.err
    )
    assert report.exists()
    assert (tmp_path / "plots" / "over-time.png").read_bytes().startswith(b"\x89PNG")


def test_bad_use_is_one_line(ringleaf: Ringleaf) -> None:
    for words, told in (
        (("--policies=best",), "there is no policy 'best'; did you mean 'best-fit'?"),
        (("--policies=random+fif",), "there is no queue order 'fif'"),
        (("--policies=random,random",), "want every policy once"),
        (("--workers=2", "--dask=tcp://127.0.0.1:1"), "exclude each other"),
    ):
        done = ringleaf("compare", "--jobs=5", *words)
        assert done.status == 2
        assert told in done.err
        assert done.err.count("\n") == 1
