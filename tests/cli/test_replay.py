"""``ringleaf plan --record`` and ``ringleaf replay``."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ringleaf

Write = Callable[[str], str]

WAITING = """
nodes: [{name: n, product: atlas-800t-a2}]
jobs: [{name: first, chips: 8}, {name: second, chips: 8}]
then: [{at: 60, ends: first}]
"""


@pytest.fixture
def log(ringleaf: Ringleaf, scenario: Write, tmp_path: Path) -> Path:
    """The log of a small scenario."""
    path = tmp_path / "run.log"
    done = ringleaf("plan", scenario(WAITING), "--record", str(path))
    assert (done.status, done.err) == (0, "")
    return path


def test_a_log_is_played_again(ringleaf: Ringleaf, log: Path) -> None:
    done = ringleaf("replay", str(log), columns=300)

    assert (done.status, done.err) == (0, "")
    assert done.lines == [f"{log}: 2 steps, 4 instructions, no difference"]


def test_a_log_may_come_from_standard_input(ringleaf: Ringleaf, log: Path) -> None:
    done = ringleaf("replay", "-", "--json", stdin=log.read_text())

    assert done.status == 0
    assert json.loads(done.out)["same"] is True


def test_a_difference_is_told(ringleaf: Ringleaf, log: Path) -> None:
    *before, last = log.read_text().splitlines()
    log.write_text("\n".join([*before, last.replace('"node":"n"', '"node":"m"'), ""]))

    done = ringleaf("replay", str(log), columns=300)
    told = json.loads(ringleaf("replay", str(log), "--json").out)

    assert done.status == 1
    assert done.lines == [
        f"{log}: line 3 differs, at 60 s",
        "  happened",
        "    first: ends",
        "  recorded",
        "    second: bound to m [0-7]",
        "  now",
        "    second: bound to n [0-7]",
    ]
    assert told["same"] is False
    assert told["difference"]["line"] == 3
    assert told["difference"]["recorded"]["bind"]["placements"][0]["node"] == "m"


def test_a_difference_that_reads_the_same_is_told_in_full(
    ringleaf: Ringleaf, log: Path
) -> None:
    *before, last = log.read_text().splitlines()
    changed = last.replace('"distributed-job":"false"', '"distributed-job":"true"')
    log.write_text("\n".join([*before, changed, ""]))

    done = ringleaf("replay", str(log), columns=1000)

    assert done.status == 1
    assert "  in full" in done.lines
    assert "'distributed-job': 'true'" in done.out


def test_another_version_is_told_with_the_difference(
    ringleaf: Ringleaf, log: Path
) -> None:
    lines = log.read_text().splitlines()
    head = json.dumps(json.loads(lines[0]) | {"version": "0.0.1"})
    log.write_text("\n".join([head, lines[1].replace("waits", "rests"), ""]))

    done = ringleaf("replay", str(log), columns=300)

    assert done.lines[0] == (
        f"{log}: line 2 differs, at 0 s; recorded by ringleaf 0.0.1"
    )


def test_a_line_that_is_cut_off_is_a_warning(ringleaf: Ringleaf, log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-7])

    done = ringleaf("replay", str(log), columns=300)

    assert done.status == 0
    assert done.err == f"ringleaf: warning: {log}: line 3 is cut off and left out\n"


@pytest.mark.parametrize("text", ["", "x\n", "[]\n", '{"nodes": []}\n'])
def test_a_file_that_is_no_log_is_one_line(
    ringleaf: Ringleaf, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "no.log"
    path.write_text(text)

    done = ringleaf("replay", str(path))

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"ringleaf: {path}: line 1: ")
    assert done.err.count("\n") == 1


def test_a_log_that_is_not_there_is_one_line(ringleaf: Ringleaf) -> None:
    done = ringleaf("replay", "no/such.log")

    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "ringleaf: no/such.log: No such file or directory; hint: there is no folder "
        "'no'\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "nodes: []\n",
        "nodes: []\nqueues: []\n---\nnodes: []\nqueues: []\n",
    ],
)
def test_only_one_run_can_be_recorded(
    ringleaf: Ringleaf, scenario: Write, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "run.log"

    done = ringleaf("plan", scenario(text), "--record", str(path))

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("ringleaf: --record needs one scenario in virtual")
    assert not path.exists()


def test_a_log_that_cannot_be_written_is_one_line(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    done = ringleaf("plan", scenario(WAITING), "--record", "no/such/run.log")

    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "ringleaf: no/such/run.log: No such file or directory; hint: there is no "
        "folder 'no'\n"
    )
