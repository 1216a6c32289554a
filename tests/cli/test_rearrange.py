"""``ringleaf rearrange``."""

import json
from collections.abc import Callable

import pytest

from ringleaf.cli.explain_live import target_of
from ringleaf.cli.failure import BadUse
from ringleaf.cli.live import ClusterAccess
from ringleaf.cli.rearrange_live import rearrange_in, rearrange_live
from ringleaf.kube.snapshot import Snapshot
from tests.cli.conftest import Ringleaf
from tests.docs.pages import ROOT
from tests.kube.test_moves import MOVABLE, fragmented

Write = Callable[[str], str]

EXAMPLE = str(ROOT / "examples" / "rearrange.yaml")
COSTLY = """
queues: [{name: default}]
nodes:
  - {name: a, product: atlas-800t-a2, superpod: 0}
  - {name: b, product: atlas-800t-a2, superpod: 1}
running:
  - name: j
    chips: 2
    movable: true
    restart-seconds: 5000
    started: -600
    placements: [{replica: 0, node: a, chips: [0, 1]}]
  - name: k
    chips: 2
    started: -600
    placements: [{replica: 0, node: b, chips: [0, 1]}]
jobs: [{name: big, chips: 8}]
"""
IDLE = """
queues: [{name: default}]
nodes: [{name: a, product: atlas-800t-a2}]
"""


def test_a_plan_is_a_table_with_what_it_costs_and_gains(ringleaf: Ringleaf) -> None:
    done = ringleaf("rearrange", EXAMPLE)

    assert (done.status, done.err) == (0, "")
    assert "job 'big' (2 x 8 chips) starts after 2 moves" in done.lines
    (row,) = [line for line in done.lines if line.startswith("tune ")]
    assert row.split() == [
        *("tune", "2", "n2", "(leaf", "a)", "n1", "(leaf", "a)"),
        *("10.0", "min", "60", "s", "1,320"),
    ]
    text = " ".join(done.out.split())
    assert "cost 2,240 chip-seconds: 2,000 of work since the last checkpoints" in text
    assert "benefit 320,000 chip-seconds, 143 times the cost: 16 chips wait" in text
    assert "starts on n2, n3 (leaf a, leaf b)" in text


def test_a_plan_as_json_has_all_places(ringleaf: Ringleaf) -> None:
    done = ringleaf("rearrange", EXAMPLE, "--for", "big", "--json")

    told = json.loads(done.out)
    assert done.status == 0
    assert [move["job"] for move in told["moves"]] == ["eval", "tune"]
    assert told["moves"][0]["to"] == [
        {"replica": 0, "node": "n1", "chips": [4, 5], "leaf": "a"}
    ]
    assert [place["node"] for place in told["starts-on"]] == ["n2", "n3"]
    assert (told["for"], told["cost"], told["benefit"]) == ("big", 2240, 320000)
    assert (told["chips"], told["sooner-seconds"]) == (16, 20000)


def test_units_are_made_whole(ringleaf: Ringleaf) -> None:
    done = ringleaf("rearrange", EXAMPLE, "--whole")
    told = json.loads(ringleaf("rearrange", EXAMPLE, "--whole", "--json").out)

    assert done.status == 0
    assert "leaf b is whole after 2 moves" in done.lines
    assert told["whole"] == ["leaf b"]
    assert "starts-on" not in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--moves", "1"], "job 'big': more moves are needed than are allowed: want 2"),
        (["--for", "fixed"], "job 'fixed': no such job is pending"),
        (["--whole", "--moves", "1"], "no moves make room: of the 3 movable jobs"),
    ],
)
def test_where_there_is_no_plan_the_reason_is_named(
    ringleaf: Ringleaf, words: list[str], said: str
) -> None:
    done = ringleaf("rearrange", EXAMPLE, *words)
    told = json.loads(ringleaf("rearrange", EXAMPLE, *words, "--json").out)

    assert done.status == 1
    assert said in done.out
    assert told["message"].startswith(told["why"])


def test_a_plan_that_costs_too_much_is_shown_and_refused(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    file = scenario(COSTLY)
    done = ringleaf("rearrange", file)

    assert done.status == 1
    assert "job 'big': the moves cost more than they gain" in done.out
    assert "job 'big' (1 x 8 chips) would start after 1 move" in done.lines
    assert "SuperPoD 0" in done.out
    whole = ringleaf("rearrange", file, "--whole")
    assert "SuperPoD 0 would be whole after 1 move" in whole.lines
    told = json.loads(ringleaf("rearrange", file, "--json").out)
    assert told["plan"]["moves"][0]["cost"] == 2 * (600 + 5000)


def test_nothing_is_moved_where_no_job_is_pending(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    done = ringleaf("rearrange", scenario(IDLE))

    assert (done.status, done.out) == (
        1,
        "no job is pending: nothing to rearrange\n",
    )
    told = ringleaf("rearrange", scenario(IDLE), "--json").out
    assert json.loads(told) == {"why": "no job is pending"}


def test_bad_use_is_one_line(ringleaf: Ringleaf) -> None:
    unknown = ringleaf("rearrange", EXAMPLE, "--for", "bug")
    both = ringleaf("rearrange", EXAMPLE, "--for", "big", "--whole")

    assert (unknown.status, both.status) == (2, 2)
    assert "want a job of" in unknown.err
    assert "did you mean 'big'?" in unknown.err
    assert "--whole goes without --for" in both.err


def test_what_a_job_says_of_moves_goes_with_movable(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    text = COSTLY.replace("    movable: true\n", "")

    done = ringleaf("rearrange", scenario(text))

    assert done.status == 2
    assert (
        "running[0].restart-seconds is 5000, want it on a job that may be" in done.err
    )


CLUSTER = """
nodes:
  - {name: "n-{i}", count: 16, product: atlas-800t-a2}
configuration:
  actions: "enqueue, allocate, backfill, rearrange"
  configurations:
    - name: rearrange
      arguments: {least-benefit: 1, wait-seconds: 60, moves-per-hour: 1000}
"""


def test_a_simulation_moves_the_share_of_jobs_that_is_movable(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    run = ["simulate", "--cluster", scenario(CLUSTER), "--workload", "seren"]
    run += ["--jobs", "400", "--json"]

    never = json.loads(ringleaf(*run).out)
    moved = json.loads(ringleaf(*run, "--movable", "1").out)

    assert never["measures"]["faults"]["moved"] == 0
    assert moved["measures"]["faults"]["moved"] > 0
    assert moved["measures"]["faults"]["repaired"] == 0
    assert moved["measures"]["faults"]["chip_hours_lost_to_evictions"] > 0


# The live cluster.


def test_moves_are_proposed_for_a_live_cluster(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stage = fragmented(labels=MOVABLE)
    before = stage.bound

    status = rearrange_in(
        Snapshot(stage.cache, stage.now),
        target_of("job/big", "default"),
        10,
        whole_units=False,
        as_json=False,
    )

    assert status == 0
    told = capsys.readouterr().out
    assert "job 'default/big' (1 x 8 chips) starts after 1 move" in told
    assert "default/eval" in told
    assert stage.bound == before


def test_a_live_cluster_without_movable_jobs_has_no_plan(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stage = fragmented()

    status = rearrange_in(
        Snapshot(stage.cache, stage.now), None, 10, whole_units=False, as_json=True
    )

    assert status == 1
    told = json.loads(capsys.readouterr().out)
    assert told["for"] == "default/big"
    assert told["why"] == "no running job may be moved"


def test_of_a_live_cluster_a_job_is_named_with_its_kind() -> None:
    with pytest.raises(BadUse) as raised:
        rearrange_live(ClusterAccess(), "big", "", 10, whole_units=False, as_json=False)

    assert str(raised.value) == (
        "--for is 'big', want job/NAME, podgroup/NAME or pod/NAME; hint: --for job/big"
    )
