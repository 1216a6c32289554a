"""``ringleaf init``: what it writes is accepted by the commands that read it."""

import json
from collections import Counter
from pathlib import Path

import pytest

from ringleaf.cli.conf_file import read_file
from ringleaf.config.reader import DEFAULT
from ringleaf.simulator.scenario import load
from ringleaf.simulator.sites import site_of_scenario
from tests.cli.conftest import Ringleaf

READERS = {
    "scenario": ("plan",),
    "cluster": (
        "compare",
        "--jobs=20",
        "--seeds=1",
        "--policies=ringleaf",
        "--cluster",
    ),
    "conf": ("check-conf",),
}
NEXT = {
    "scenario": "plan",
    "cluster": "compare --workload kalos --load 0.8 --jobs 2000 --contention 0.3 "
    "--seeds 5 --policies ringleaf,volcano-vendor-1.0 --report report.html --cluster",
    "conf": "check-conf",
}


MORE = (
    "hint: put in your own leaves and nodes first; "
    "fewer than 2,000 chips: --workload helios-gang --load 1.1 --jobs 2000, "
    "fewer than 500 chips: --workload philly --load 0.9 --jobs 6000, "
    "fewer than 128 chips: --workload pai --load 0.9 --jobs 2000\n"
)


@pytest.mark.parametrize("what", READERS)
def test_what_is_written_is_accepted(
    ringleaf: Ringleaf, tmp_path: Path, what: str
) -> None:
    file = tmp_path / "new"
    done = ringleaf("init", what, "--output", str(file))
    read = ringleaf(*READERS[what], str(file))

    more = MORE if what == "cluster" else ""
    assert done == (0, f"wrote {file}; next: ringleaf {NEXT[what]} {file}\n{more}", "")
    assert read.status == 0
    assert "not used" not in read.err


@pytest.mark.parametrize("what", READERS)
def test_it_is_printed_where_no_file_is_named(
    ringleaf: Ringleaf, tmp_path: Path, what: str
) -> None:
    file = tmp_path / "new"
    ringleaf("init", what, "-o", str(file))
    text = file.read_text(encoding="utf-8")

    assert ringleaf("init", what) == (0, text, "")
    assert json.loads(ringleaf("init", what, "--json").out) == {
        "what": what,
        "text": text,
    }
    comments = [line for line in text.splitlines() if "#" in line]
    assert len(comments) > 10


def test_the_scenario_shows_what_it_says(ringleaf: Ringleaf) -> None:
    text = ringleaf("init", "scenario").out
    done = ringleaf("plan", "-", "--json", stdin=text)
    found = json.loads(done.out)["decisions"]

    assert {each["job"]: each["verdict"] for each in found} == {
        "train": "placed",
        "infer": "placed",
    }


def test_the_cluster_has_the_leaves_that_it_says(ringleaf: Ringleaf) -> None:
    text = ringleaf("init", "cluster").out
    with_queues = text.replace("# queues:", "queues:").replace("# - {", "- {")
    (found,) = load(with_queues.encode())
    leaves = Counter(node.leaf for node in site_of_scenario(found, "x").nodes)

    assert leaves["leaf-a18"] == 8
    assert Counter(leaves.values()) == {8: 19, 7: 8, 6: 5, 3: 6}
    assert found.about == (
        f"{leaves.total()} nodes under {len(leaves)} leaf switches of different sizes."
    )
    assert sorted(queue.name for queue in found.queues) == ["product", "research"]


def test_what_is_commented_out_can_be_turned_on(ringleaf: Ringleaf) -> None:
    text = ringleaf("init", "scenario").out
    head, _colon, tail = text.partition("virtual time:\n#\n")
    later = "".join(line.removeprefix("# ") + "\n" for line in tail.splitlines())

    assert later.startswith("queues:")
    done = ringleaf("plan", "-", "--json", stdin=f"{head}virtual time:\n{later}")
    assert (done.status, done.err) == (0, "")


def test_the_configuration_is_the_default(ringleaf: Ringleaf, tmp_path: Path) -> None:
    file = str(tmp_path / "new")
    ringleaf("init", "conf", "--output", file)
    conf, warnings = read_file(file)

    assert warnings == []
    assert (conf.actions, conf.tiers) == (DEFAULT.actions, DEFAULT.tiers)
    assert conf.settings == DEFAULT.settings


def test_a_file_that_is_there_is_left_alone(ringleaf: Ringleaf, tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_text("mine")
    done = ringleaf("init", "conf", "--output", str(file))

    assert (done.status, done.out) == (2, "")
    assert f"--output is '{file}', which exists, want a new file; hint:" in done.err
    assert file.read_text() == "mine"


@pytest.mark.parametrize("name", ["no/such/folder/x", "a\0b"])
def test_a_file_that_cannot_be_written_is_one_line(
    ringleaf: Ringleaf, name: str
) -> None:
    done = ringleaf("init", "conf", "--output", name)

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("ringleaf: --output is ")
    assert done.err.count("\n") == 1
