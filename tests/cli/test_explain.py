"""``ringleaf explain``."""

import json
from collections.abc import Callable
from math import inf

import pytest

from ringleaf.cli.explain_run import help_lines
from ringleaf.cli.live import moment
from ringleaf.cli.start_estimate import Start
from tests.cli.conftest import Ringleaf

Write = Callable[[str], str]

CLUSTER = """
nodes:
  - {name: a, product: atlas-800-9000, free: [3]}
  - {name: b, product: atlas-800-9000, free: [0, 1, 4, 5, 6]}
  - {name: c, product: atlas-800-9000, free: [0, 1, 4, 5], sub-healthy: true}
  - {name: d, product: atlas-800-9000, ready: false}
running:
  - {name: r, chips: 2, placements: [{replica: 0, node: b, chips: [2, 3]}]}
  - {name: s, chips: 1, placements: [{replica: 0, node: a, chips: [7]}]}
jobs:
  - {name: small, chips: 1}
  - {name: pair, chips: 2}
  - {name: ring, chips: 4}
  - {name: odd, chips: 3}
"""

GANG = """
nodes: [{name: 'n{i}', count: 20, product: atlas-800t-a2}]
jobs: [{name: gang, replicas: 12, chips: 8}, {name: more, replicas: 12, chips: 8}]
"""


def test_a_placed_job(ringleaf: Ringleaf, scenario: Write) -> None:
    done = ringleaf("explain", scenario(CLUSTER), "--job", "small", columns=140)

    assert (done.status, done.err) == (0, "")
    assert done.lines == [
        "job 'small' (atlas-800-9000, 1 x 1 chips): placed",
        "  pod 0: a, chips 3",
        "",
        (
            "Nodes that fit one pod: 3; the best 3 in rank order, "
            "earlier terms weigh more:"
        ),
        "#  node  chips  rank",
        (
            "1  a     3      8 of 8 chips healthy; "
            "ring with 1 free (order 1, 3, 2, 4); no free chips left over"
        ),
        (
            "2  b     4      8 of 8 chips healthy; "
            "ring with 3 free (order 1, 3, 2, 4); 4 free chips left over"
        ),
        (
            "3  c     0      sub-healthy; 8 of 8 chips healthy; "
            "ring with 2 free (order 1, 3, 2, 4); 3 free chips left over"
        ),
        "",
        "Refused nodes:",
        "  1 not ready (not-ready): d",
    ]


def test_a_waiting_job(ringleaf: Ringleaf, scenario: Write) -> None:
    done = ringleaf("explain", scenario(CLUSTER), "--job", "ring", columns=140)

    assert (done.status, done.err) == (1, "")
    assert done.lines == [
        "job 'ring' (atlas-800-9000, 1 x 4 chips): pending",
        "  needs 1 x 4 chips, 1 pod has no node",
        (
            "  nodes: 2 with too few free chips, 1 not ready, 1 with enough free "
            "chips, but not wired together"
        ),
        "  hint: needs 4 free chips in one ring; 1 x 2 chips would be placed now",
        "",
        "Refused nodes:",
        "  2 with too few free chips (too-few-chips): a, b",
        "  1 not ready (not-ready): d",
        "  1 with enough free chips, but not wired together (not-wired-together): c",
        "",
        "Ending one job alone would not be enough.",
    ]


def test_a_job_whose_end_would_be_enough(ringleaf: Ringleaf, scenario: Write) -> None:
    text = CLUSTER.replace("  - {name: pair, chips: 2}\n", "")
    done = ringleaf("explain", scenario(text), "--job", "ring")

    assert done.lines[-1] == "Would start if this job ended: r"


def test_an_earlier_job_of_the_file_may_be_the_one_to_end(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    done = ringleaf("explain", scenario(GANG), "--job", "more")

    assert done.lines[-1] == "Would start if this job ended: gang"


def test_an_invalid_job(ringleaf: Ringleaf, scenario: Write) -> None:
    done = ringleaf("explain", scenario(CLUSTER), "--job", "odd", columns=140)

    assert (done.status, done.err) == (1, "")
    assert done.lines == [
        "job 'odd' (atlas-800-9000, 1 x 3 chips): invalid",
        (
            "  job 'odd' is invalid: 3 chips in one pod are never wired together "
            "on atlas-800-9000"
        ),
        (
            "  hint: ask for 1 x 4 chips; atlas-800-9000 takes 1, 2, 4 or 8 chips "
            "in one pod, or 8 in each of several"
        ),
    ]


def test_earlier_jobs_of_the_file_are_placed_first(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    pair = json.loads(
        ringleaf("explain", scenario(CLUSTER), "--job", "pair", "--json").out
    )

    assert pair["decision"]["placements"] == [
        {"replica": 0, "node": "b", "chips": [0, 1]}
    ]
    assert pair["refused"] == {"not-ready": ["d"], "too-few-chips": ["a"]}


def test_a_long_gang_and_many_names_are_cut_short(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    gang = ringleaf("explain", scenario(GANG), "--job", "gang", "--top", "3").lines
    more = ringleaf("explain", scenario(GANG), "--job", "more").lines

    assert "  pod 7: n15, chips 0, 1, 2, 3, 4, 5, 6, 7" in gang
    assert "  … and 4 more pods" in gang
    assert gang[-1].startswith("3  n10")
    assert [line for line in more if "too-few" in line] == [
        "  12 with too few free chips (too-few-chips): n0, n1, n10, n11, n12, n13, n14,"
    ]
    assert "  n15, … 4 more" in more


def test_broken_lines_stay_indented(ringleaf: Ringleaf, scenario: Write) -> None:
    done = ringleaf("explain", scenario(CLUSTER), "--job", "ring", columns=40)
    block = done.lines[2 : done.lines.index("")]

    assert len(block) > 5
    assert all(line.startswith("  ") for line in block)


@pytest.mark.parametrize(
    ("job", "node", "shown"),
    [
        (
            "small",
            "b",
            [
                "node 'b' fits job 'small': choice 2",
                (
                    "  rank: 8 of 8 chips healthy; ring with 3 free "
                    "(order 1, 3, 2, 4); 4 free chips left over"
                ),
                "  chips: 4",
            ],
        ),
        (
            "small",
            "d",
            [
                "node 'd' refuses job 'small': not-ready",
                "  the node is not ready and takes no pods",
            ],
        ),
        (
            "ring",
            "c",
            [
                "node 'c' refuses job 'ring': not-wired-together",
                (
                    "  a pod needs 4 free chips in one ring; of the node's 4 free "
                    "chips its rings have 2, 2, so no 4 are wired together"
                ),
            ],
        ),
        (
            "ring",
            "a",
            [
                "node 'a' refuses job 'ring': too-few-chips",
                "  a pod needs 4 free chips in one ring, the node has no free chips",
            ],
        ),
    ],
)
def test_one_node(
    ringleaf: Ringleaf, scenario: Write, job: str, node: str, shown: list[str]
) -> None:
    arguments = ["explain", scenario(CLUSTER), "--job", job, "--node", node]
    done = ringleaf(*arguments, columns=160)

    assert (done.err, done.lines) == ("", shown)
    assert done.status == ("refuses" in shown[0])


def test_one_node_as_json(ringleaf: Ringleaf, scenario: Write) -> None:
    arguments = ["explain", scenario(CLUSTER), "--json", "--job"]
    fits = ringleaf(*arguments, "small", "--node", "a")
    refuses = ringleaf(*arguments, "ring", "--node", "c")

    assert json.loads(fits.out) == {
        "job": "small",
        "fits": True,
        "fits-one-pod": True,
        "place": 1,
        "node": "a",
        "rank": [
            "8 of 8 chips healthy",
            "ring with 1 free (order 1, 3, 2, 4)",
            "no free chips left over",
        ],
        "chips": [3],
    }
    assert json.loads(refuses.out) | {"rule": "", "waits": {}} == {
        "job": "ring",
        "fits": False,
        "fits-one-pod": False,
        "node": "c",
        "reason": "not-wired-together",
        "rule": "",
        "waits": {},
    }
    assert (fits.status, refuses.status) == (0, 1)


def test_json_has_the_decision_and_what_was_found(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    file = scenario(CLUSTER)
    planned = json.loads(ringleaf("plan", file, "--json").out)["decisions"]
    explained = [
        json.loads(ringleaf("explain", file, "--job", d["job"], "--json").out)
        for d in planned
    ]

    assert [e["decision"] for e in explained] == planned
    assert [e.get("fitting") for e in explained] == [3, 2, 0, None]
    assert all(
        e["fitting"] + sum(map(len, e["refused"].values())) == 4 for e in explained[:3]
    )


def test_the_first_document_that_has_the_job(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    other = "nodes: [{name: z, product: atlas-300t}]\njobs: [{name: last, chips: 1}]"
    done = ringleaf("explain", scenario(f"{CLUSTER}---\n{other}"), "--job", "last")

    assert done.lines[1] == "  pod 0: z, chips 0"


def test_an_unknown_job(ringleaf: Ringleaf, scenario: Write) -> None:
    file = scenario(CLUSTER)

    assert ringleaf("explain", file, "--job", "x\ny") == (
        2,
        "",
        (
            rf"ringleaf: --job is 'x\ny', want a job of {file}; "
            "hint: it has small, pair, ring, odd\n"
        ),
    )
    assert ringleaf("explain", "-", "--job", "x", stdin="nodes: []").err == (
        "ringleaf: --job is 'x', want a job of -; hint: it has none\n"
    )


def test_an_unknown_job_among_many(ringleaf: Ringleaf, scenario: Write) -> None:
    jobs = ", ".join(f"{{name: j{i}, chips: 1}}" for i in range(60))
    file = scenario(f"nodes: [{{name: n, product: atlas-300t}}]\njobs: [{jobs}]")

    assert ringleaf("explain", file, "--job", "x").err.endswith(
        "hint: it has j0, j1, j2, j3, j4, j5, j6, j7, … 52 more\n"
    )


@pytest.mark.parametrize("job", ["small", "odd"])
def test_an_unknown_node(ringleaf: Ringleaf, scenario: Write, job: str) -> None:
    done = ringleaf("explain", scenario(CLUSTER), "--job", job, "--node", "e")

    told = "--node is 'e', want a node of the scenario; hint: it has a, b, c, d"
    assert done == (2, "", f"ringleaf: {told}\n")


def test_without_a_job_the_jobs_of_the_file_are_named(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    done = ringleaf("explain", scenario(CLUSTER))

    assert done.status == 2
    assert "needs --job NAME; of the live cluster" in done.err
    assert "; hint: it has " in done.err
    assert "ring" in done.err.partition("hint: ")[2]


def test_a_bad_file(ringleaf: Ringleaf, scenario: Write) -> None:
    done = ringleaf("explain", scenario("nodes: 1"), "--job", "x")

    assert (done.status, done.out) == (2, "")
    assert done.err.endswith("scenario.yaml: nodes is 1, want a list of nodes\n")


def test_the_job_is_required_and_top_counts_from_1(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    no_job = ringleaf("explain", scenario(CLUSTER))
    no_top = ringleaf("explain", scenario(CLUSTER), "--job", "small", "--top", "0")

    assert (no_job.status, no_top.status) == (2, 2)
    assert "--job" in no_job.err
    assert "--top" in no_top.err


def test_warnings_of_the_decision_are_shown(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    text = CLUSTER.replace(
        "{name: small, chips: 1}", "{name: s1, chips: 1, strategy: card}"
    )
    done = ringleaf("explain", scenario(text), "--job", "s1")

    assert "  warning: strategy has no effect on atlas-800-9000" in done.lines


# Scenarios that are run through time.
RUN = "examples/big-job-waits.yaml"


SPARING = """
configuration: |
  actions: "enqueue, allocate"
  configurations:
  - {name: allocate, arguments: {reservation-idle-budget: 0.01}}
nodes: [{name: "n{i}", count: 2, product: atlas-800t-a2}]
jobs: [{name: one, chips: 8}, {name: big, replicas: 2, chips: 8}]
then: []
until: 4000
"""


def test_a_job_is_explained_at_the_end_of_the_run(ringleaf: Ringleaf) -> None:
    done = ringleaf("explain", RUN, "--job", "big", columns=200)

    assert done.status == 1
    assert done.lines[0] == "job 'big' (atlas-800t-a2, 4 x 8 chips): pending"
    assert "  at 500 s: pending since 0 s, not admitted yet" in done.lines
    assert (
        "  queue 'default': weight 1, uses 24 Ascend910 chips (fair share 32)"
        in done.lines
    )
    assert (
        "  reserved: n0 [0-7]; n1 [0-7]; n2 [0-7]; n3 [0-7], waits for earlier, short "
        "to end (by 3600 s)"
    ) in done.lines
    assert done.lines[-2:] == [
        "Ending one job alone would not be enough.",
        (
            "Its reservation waits for earlier, short to end: by the estimates this is "
            "the earliest start, at 3600 s."
        ),
    ]


def test_the_reservations_of_others_are_told(ringleaf: Ringleaf) -> None:
    done = ringleaf("explain", RUN, "--job", "long", columns=200)
    told = json.loads(ringleaf("explain", RUN, "--job", "long", "--json").out)

    assert "  place 1 of 1 among the pending jobs of its queue" in done.lines
    assert any(line.startswith("  reserved for 'big': n0") for line in done.lines)
    assert done.lines[-1] == (
        "Nodes that become free go to the reservation of 'big' first."
    )
    assert told["at"] == 500
    assert told["place"] == {"place": 1, "of": 1}
    assert [each["job"] for each in told["other-reservations"]] == ["big"]
    assert "reservation" not in told
    assert told["refused"]["too-few-chips"] == ["n0", "n1", "n2", "n3"]


def test_a_placed_job_and_one_that_ended_are_explained(ringleaf: Ringleaf) -> None:
    placed = ringleaf("explain", RUN, "--job", "short", columns=200)
    ended = ringleaf("explain", "examples/queues-share.yaml", "--job", "speech")

    assert placed.status == 0
    assert "  at 500 s: running since 400 s" in placed.lines
    assert ended.status == 0
    assert ended.lines[0] == "job 'speech': ended"


def test_a_node_is_looked_at_as_the_job_finds_it(ringleaf: Ringleaf) -> None:
    mine = ringleaf("explain", RUN, "--job", "big", "--node", "n3")
    reserved = ringleaf("explain", RUN, "--job", "long", "--node", "n3")
    nowhere = ringleaf("explain", RUN, "--job", "long", "--node", "n9")

    assert (mine.status, mine.lines[0]) == (
        1,
        "node 'n3' has room for a pod of job 'big', but the job is pending",
    )
    assert (reserved.status, reserved.lines[0]) == (
        1,
        "node 'n3' refuses job 'long': too-few-chips",
    )
    assert nowhere.status == 2


def test_a_job_that_is_never_possible_is_explained(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    text = (
        "nodes: [{name: n, product: atlas-800t-a2}]\n"
        "queues: [{name: q, state: closed}]\njobs: [{name: j, chips: 9, queue: q}, "
        "{name: k, chips: 8, queue: q}, {name: l, chips: 8, queue: x}]"
    )
    path = scenario(text)

    never = ringleaf("explain", path, "--job", "j", columns=200)
    closed = ringleaf("explain", path, "--job", "k", columns=200)
    lost = ringleaf("explain", path, "--job", "l", columns=200)

    assert never.status == 1
    assert never.lines[0].endswith("invalid")
    assert (closed.status, lost.status) == (1, 1)
    assert (
        "  queue 'q': weight 1, uses 0 Ascend910 chips (fair share 8), closed"
        in closed.lines
    )
    assert "  queue 'x' does not exist" in lost.lines


def test_only_jobs_of_the_run_can_be_asked_for(ringleaf: Ringleaf) -> None:
    done = ringleaf("explain", RUN, "--job", "nobody")

    assert done.status == 2
    assert done.err.endswith("hint: it has earlier, big, short, long\n")


REFUSED = """
until: 20
nodes: [{name: a, product: atlas-800t-a2}]
jobs: [{name: j, chips: 8}]
then:
  - {at: 5, pods-refused: {job: j, replicas: [0]}}
"""


def test_a_node_that_is_set_aside_is_explained(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    done = ringleaf("explain", scenario(REFUSED), "--job", "j", columns=140)

    told = " ".join(done.lines)
    assert "1 quarantined because they refused pods" in told
    assert "(quarantined): a" in told


LOST = """
settings: {fault-brake-percent: 100}
nodes:
  - {name: "a{i}", count: 2, product: atlas-9000-a3, superpod: 0}
  - {name: "b{i}", count: 2, product: atlas-9000-a3, superpod: 1}
  - {name: c, product: atlas-9000-a3, superpod: 2}
jobs:
  - name: train
    replicas: 4
    chips: 8
    sp-block: 16
    fault-scheduling: grace
    pod-rescheduling: true
then:
  - at: 600
    nodes: [{name: b1, product: atlas-9000-a3, superpod: 1, ready: false}]
"""


def test_a_job_under_repair_says_what_happened_and_why_it_finds_no_place(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    done = ringleaf("explain", scenario(LOST), "--job", "train", columns=300)

    assert done.status == 1
    assert done.lines[1:6] == [
        "  needs 4 x 8 chips, 1 pod has no node",
        (
            "  1 pod must be replaced in the SuperPoD of the block: SuperPoD 1 has no "
            "other fitting nodes; 3 pods of it run"
        ),
        "  nodes: 1 fitting, 3 with a pod of this job already, 1 not ready",
        "  hint: restarting the whole job would not place it now either",
        "  at 600 s: running since 0 s",
    ]
    assert done.lines[8:10] == [
        (
            "  it is being repaired (faulty pods): pod 3 deleted; waits for a place "
            "for its pods, for 0 s; then its logical SuperPoD is deleted, in 6 s"
        ),
        "  faulty since 600 s: pod 3 on b1 (NodeUnhealthy)",
    ]
    assert "  3 with a pod of this job already (own-pod): a0, a1, b0" in done.lines


def test_the_nodes_of_its_own_pods_refuse_a_pod_of_a_job_under_repair(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    file = scenario(LOST)

    own = ringleaf("explain", file, "--job", "train", "--node", "a0")
    other = ringleaf("explain", file, "--job", "train", "--node", "c")

    assert own.lines[0] == "node 'a0' refuses job 'train': own-pod"
    assert other.lines[0] == (
        "node 'c' has room for a pod of job 'train', but the job is pending"
    )


HELD = """
settings: {fault-brake-percent: 100}
nodes: [{name: "a{i}", count: 3, product: atlas-800t-a2}]
grace-seconds: 5
jobs: [{name: train, replicas: 3, chips: 8, fault-scheduling: grace}]
then:
  - {at: 600, nodes: [{name: a1, product: atlas-800t-a2, faulty: [5]}]}
"""


def test_what_is_held_for_a_job_under_repair_is_told_and_fits_it(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    file = scenario(f"{HELD}  - {{at: 610, wakes: true}}\n")

    done = ringleaf("explain", file, "--job", "train", columns=200)
    told = json.loads(ringleaf("explain", file, "--job", "train", "--json").out)

    assert "  faulty since 600 s: pod 1 on a1 (CardUnhealthy)" in done.lines
    assert (
        "  2 places on a0, a2 held for it until its pods are back, "
        "until 905 s at the latest"
    ) in done.lines
    assert [each["node"] for each in told["best"]] == ["a0", "a2"]
    assert told["repair"]["held-nodes"] == ["a0", "a2"]


def test_how_long_places_are_held_is_open_while_pods_end(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    file = scenario(HELD.replace("count: 3", "count: 4") + "until: 602\n")

    done = ringleaf("explain", file, "--job", "train", columns=200)

    held = [line for line in done.lines if "held for it" in line]
    assert held == ["  1 place on a3 held for it until its pods are back"]
    assert "waits for 3 pods to end, by force in 900 s" in " ".join(done.lines)


HALF = """
settings: {nodes-per-leaf: 4}
nodes:
  - {name: a0, product: atlas-800t-a2, leaf: A, free: []}
  - {name: "a1{i}", count: 3, product: atlas-800t-a2, leaf: A}
  - {name: b0, product: atlas-800t-a2, leaf: B, free: [0, 1]}
  - {name: "b1{i}", count: 3, product: atlas-800t-a2, leaf: B}
  - {name: c0, product: atlas-800t-a2, leaf: C, ready: false}
  - {name: "c1{i}", count: 3, product: atlas-800t-a2, leaf: C}
  - {name: d0, product: atlas-800t-a2, leaf: D}
jobs:
  - {name: eight, replicas: 8, chips: 8, tor-affinity: large-model-schema}
  - {name: small, replicas: 3, chips: 8, tor-affinity: large-model-schema}
"""

BLOCKS = """
settings: {super-pod-size: 16, reserve-nodes: 2}
nodes:
  - {name: "p{i}", count: 10, product: atlas-900-a3, superpod: 0}
  - {name: "q{i}", count: 3, product: atlas-900-a3, superpod: 0, free: []}
  - {name: "r{i}", count: 7, product: atlas-900-a3, superpod: 1}
jobs:
  - {name: hard, replicas: 16, chips: 16, sp-block: 128}
  - {name: one, replicas: 8, chips: 16, sp-block: 128}
"""


def part(lines: list[str], start: str) -> list[str]:
    """The lines from the one that begins so up to an empty one."""
    first = next(i for i, line in enumerate(lines) if line.startswith(start))
    rest = lines[first:]
    return rest[: rest.index("")] if "" in rest else rest


def test_a_gang_that_the_leaf_rule_keeps_waiting_sees_leaves_by_slots(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    done = ringleaf("explain", scenario(HALF), "--job", "eight", columns=80)

    assert done.status == 1
    assert part(done.lines, "Leaf rule") == [
        "Leaf rule 1.0: foundation job of 8 nodes; 4 leaves",
        "  leaf      0 1 2 3  free",
        "  A         x · · ·     3",
        "  B         - · · ·     3",
        "  C         ! · · ·     3",
        "  D         ·           1  complete",
        "  per slot  1 3 3 3    10",
        "  needed    2 2 2 2     8  short at slot 0",
        "  · free  - partly free  x taken  ! faulty",
        "  complete: all nodes of the leaf are free",
    ]
    assert not any(line.startswith("Nodes that fit") for line in done.lines)


def test_a_node_of_such_a_gang_does_not_fit(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    arguments = ["explain", scenario(HALF), "--job", "eight", "--node", "a10"]
    done = ringleaf(*arguments, columns=120)
    told = json.loads(ringleaf(*arguments, "--json").out)

    assert done.status == 1
    assert done.lines[:4] == [
        "node 'a10' has room for a pod of job 'eight', but the job is pending",
        "  it is at slot 1 of leaf A, which has 3 free nodes of 4",
        "  needs 8 x 8 chips",
        (
            "  leaf rule 1.0: complete leaves have 1 of the 8 nodes, and no other leaf "
            "has the remaining 7; spread evenly over the"
        ),
    ]
    assert "> A         x · · ·     3" in done.lines
    assert (told["fits"], told["fits-one-pod"]) == (False, True)
    assert told["network-rule"]["slots"][0] == {"slot": 0, "free": 1, "needed": 2}
    assert [slot["state"] for slot in told["leaf"]["slots"]] == [
        "taken",
        *["free"] * 3,
    ]


def test_a_node_of_a_closed_leaf_is_refused_with_a_drawing(
    ringleaf: Ringleaf,
) -> None:
    busy = "examples/busy-leaves.yaml"
    done = ringleaf("explain", busy, "--job", "big", "--node", "a1", columns=80)

    assert done.lines[0] == "node 'a1' refuses job 'big': leaf-closed"
    assert "> A     a · · · · · · ·     7  closed, crossed by a" in done.lines
    assert "  · free  > the node is here  a job job-17  b job job-22" in done.lines


def test_where_the_leaf_rule_placed_a_job_its_nodes_are_marked(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    done = ringleaf("explain", scenario(HALF), "--job", "small", columns=80)
    other = ringleaf("explain", scenario(HALF), "--job", "small", "--node", "a10")

    assert part(done.lines, "Leaf rule")[:2] == [
        "Leaf rule 1.0: padding job of 3 nodes, all under one leaf; 4 leaves",
        "  leaf  0 1 2 3  free",
    ]
    assert "  C     ! * * *     3  3 for this job" in done.lines
    assert other.status == 0
    assert other.lines[0].startswith(
        "node 'a10' fits a pod of job 'small', and is none of the nodes"
    )


def test_superpods_are_drawn_as_blocks(ringleaf: Ringleaf, scenario: Write) -> None:
    waits = ringleaf("explain", scenario(BLOCKS), "--job", "hard", columns=80)
    placed = ringleaf("explain", scenario(BLOCKS), "--job", "one", columns=80)
    node = ringleaf("explain", scenario(BLOCKS), "--job", "hard", "--node", "r0")

    assert part(waits.lines, "SuperPoD rule") == [
        "SuperPoD rule, hard: 2 blocks of 8 nodes, reserve 2; 2 SuperPoDs",
        "  SuperPoD  free  blocks  nodes",
        "  0           10       1  ········|rrxxx",
        "  1            7       0  ·····rr",
        "  · free  r free, kept in reserve  x taken  | end of a block",
    ]
    assert "  0           10       1  ********|rrxxx" in placed.lines
    assert "  SuperPoD  free   visit  nodes" in placed.lines
    assert node.lines[1] == (
        "  it is in SuperPoD 1, which has 7 free nodes, room for 0 blocks of 8"
    )
    assert "> 1            7       0  ·····rr" in node.lines


def test_a_job_is_explained_at_a_time_of_the_run(ringleaf: Ringleaf) -> None:
    early = ringleaf("explain", RUN, "--job", "big", "--at", "250", columns=120)
    late = ringleaf("explain", RUN, "--job", "big", "--at", "350", columns=120)

    assert "  at 250 s: pending since 0 s, not admitted yet" in early.lines
    assert not any("reserved:" in line for line in early.lines)
    assert any("  reserved:" in line for line in late.lines)


def test_it_is_said_when_reservations_are_made_again(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    """A hundredth of 16 chips for a day is 8 chips for 29 minutes."""
    file = scenario(SPARING)
    words = ("explain", file, "--job", "big")
    before, after = (ringleaf(*words, "--at", at) for at in ("400", "4000"))
    told = json.loads(ringleaf(*words, "--json").out)
    until = told["reservations-suspended-until"]

    assert any("  reserved:" in line for line in before.lines)
    assert not any("idle budget" in line for line in before.lines)
    assert until > 86_400
    line = f"  reservations have used up their idle budget; the next at {until:g} s"
    assert line in after.lines


def test_a_time_wants_a_run_and_a_job_that_has_arrived(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    still = ringleaf("explain", scenario(CLUSTER), "--job", "small", "--at", "1")
    before = ringleaf("explain", RUN, "--job", "short", "--at", "20")
    live = ringleaf("explain", "pod/x", "--at", "20")

    assert (still.status, before.status, live.status) == (2, 2, 2)
    assert "--at needs a scenario in virtual time; hint:" in still.err
    assert "--at is 20, and job 'short' arrives at 400 s" in before.err
    assert "--at goes with a scenario; hint:" in live.err


APART = """
nodes: [{name: "n{i}", count: 4, product: atlas-800t-a2}]
running:
  - {name: a, chips: 8, placements: [{replica: 0, node: n0, chips: ALL}]}
  - {name: b, chips: 8, placements: [{replica: 0, node: n1, chips: ALL}]}
  - name: c
    chips: 8
    replicas: 2
    placements:
      - {replica: 0, node: n2, chips: ALL}
      - {replica: 1, node: n3, chips: ALL}
jobs: [{name: big, chips: 8, replicas: 2}]
until: 400
then: []
""".replace("ALL", "[0, 1, 2, 3, 4, 5, 6, 7]")


def test_what_would_help_and_what_a_reservation_waits_for_are_told_apart(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    done = ringleaf("explain", scenario(APART), "--job", "big", columns=120)

    assert done.lines[-3:] == [
        "Would start if this job ended: c",
        (
            "Its reservation waits for a, b to end: without estimates, the oldest jobs "
            "are expected to end first."
        ),
        "If another of these jobs ends earlier, the job starts then.",
    ]


def test_a_reservation_names_only_jobs_that_were_not_named_yet() -> None:
    reservation = {"held-by": ["infer", "train"]}

    assert [*help_lines(["train"], reservation, str)] == [
        "\nWould start if this job ended: train",
        (
            "Its reservation also waits for infer to end: without estimates, the "
            "oldest jobs are expected to end first."
        ),
    ]


def test_of_a_predicted_end_it_is_said_what_it_comes_from() -> None:
    last = {"job": "train", "ends-at": 90, "by": "median of 9 runs of user 'ann'"}
    start = {"held-by": ["infer", "train"], "ready-at": 90, "predicted": [last]}

    assert [*help_lines([], start, str)][1:] == [
        (
            "Its reservation waits for infer, train to end: by the estimates and "
            "predictions this is the earliest start, at 90."
        ),
        "train is expected to end by 90, median of 9 runs of user 'ann'.",
    ]


@pytest.mark.parametrize(
    ("enough", "ready_at", "words"),
    [
        ([], inf, "could start, for example on n, once 'a', 'b' have ended; the time"),
        ([], 9.0, "could start on n once 'a', 'b' have ended, which is due any time"),
        ([], 70.0, "could start in 60 s, at T, on n: by then 'a', 'b' have ended"),
        (
            ["c"],
            inf,
            "could start once 'c' has ended; the time is not known: 'b' has no",
        ),
        (["a", "c"], inf, "could start once any one of 'a', 'c' has ended; the time"),
        (["c"], 9.0, "could start any time on n, by the estimates of running jobs"),
        (["c"], 70.0, "could start in 60 s, at T, on n, by the estimates of running"),
    ],
)
def test_a_start_names_jobs_if_none_alone_is_enough(
    enough: list[str], ready_at: float, words: str
) -> None:
    jobs = {"a": "'a'", "b": "'b'"}
    start = Start({}, "n", jobs, {"b": "'b'"}, ready_at, 10.0)

    told = start.words(enough)
    if ready_at < inf:
        told = told.replace(moment(ready_at), "T")

    assert told.startswith(words)


@pytest.mark.parametrize(
    ("enough", "words"),
    [
        ([], "by then 'a' has ended; 'a' is expected to end by 70, why"),
        (["c"], "on n, by the estimates and predictions of running jobs"),
    ],
)
def test_a_start_names_the_prediction_of_the_jobs_that_it_names(
    enough: list[str], words: str
) -> None:
    why = "'a' is expected to end by 70, why"
    start = Start({}, "n", {"a": "'a'"}, {}, 70.0, 10.0, why)

    assert start.words(enough).endswith(words)


UID = "52ae36c2-1232-4865-998a-44e65f3c2e9f"
DUMPED = f"""
nodes: [{{name: n, product: atlas-800t-a2}}]
running:
  - name: ml/old-{UID}
    chips: 8
    placements: [{{replica: 0, node: n, chips: [0, 1, 2, 3, 4, 5, 6, 7]}}]
jobs: [{{name: ml/new-{UID}, chips: 8}}]
"""


def test_jobs_of_a_dump_are_known_without_the_uid_that_volcano_adds(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    file = scenario(DUMPED)

    found = ringleaf("explain", file, "--job", "ml/new")
    one = ringleaf("explain", file, "--job", "ml/new", "--node", "n")

    assert found.lines[0] == "job 'ml/new' (atlas-800t-a2, 1 x 8 chips): pending"
    assert found.lines[-1] == "Would start if this job ended: ml/old"
    assert one.lines[0] == "node 'n' refuses job 'ml/new': too-few-chips"
    for shown in (found, one, ringleaf("plan", file)):
        assert UID not in shown.out


def test_a_name_without_its_uid_that_two_jobs_have_is_not_enough(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    other = UID.replace("5", "6")
    jobs = f"jobs: [{{name: ml/new-{other}, chips: 8}}, "
    file = scenario(DUMPED.replace("jobs: [", jobs))

    done = ringleaf("explain", file, "--job", "ml/new")

    assert done.status == 2
    assert "hint: it has ml/new-" in done.err
