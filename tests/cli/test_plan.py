"""``ringleaf plan``."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ringleaf.policies.products import PRODUCTS
from tests.cli.conftest import Ringleaf
from tests.docs.pages import ROOT

Write = Callable[[str], str]

TOUR = str(ROOT / "examples" / "tour.yaml")
ONE = """
about: two
  lines
nodes: [{name: n, product: atlas-800-9000}]
jobs: [{name: j, chips: 1}]
"""

STATES = """
nodes:
  - name: n
    product: atlas-800-9000
    free: [0, 1, 2, 3, 5, 6]
    faulty: [6]
    network-faulty: [5]
    leaf: L1
    superpod: 3
    sub-healthy: true
  - {name: down, product: atlas-800-9000, ready: false}
running: [{name: r, chips: 1, placements: [{replica: 0, node: n, chips: [3]}]}]
jobs: [{name: a, chips: 2}]
"""

NOTHING_FITS = """
nodes: [{name: n, product: atlas-300t, free: []}]
jobs: [{name: j, chips: 1}, {name: k, chips: 3}]
"""


def wide(n_nodes: int, n_jobs: int, name: str = "n{i}", **keys: object) -> str:
    node = {"name": name, "count": n_nodes, "product": "atlas-310p", "chips": 64}
    jobs = [{"name": f"j{i}", "chips": 1} for i in range(n_jobs)]
    return json.dumps({"nodes": [{**node, **keys}], "jobs": jobs})


def test_what_people_see(ringleaf: Ringleaf, scenario: Write) -> None:
    done = ringleaf("plan", scenario(ONE))

    assert (done.status, done.err) == (0, "")
    assert done.lines == [
        "two lines",
        "",
        "   job  product         wanted       verdict  where",
        "A  j    atlas-800-9000  1 x 1 chips  placed   n [0]",
        "",
        "atlas-800-9000: 2 HCCS rings of 4, PCIe between rings",
        "  n  [A 1 2 3] [4 5 6 7]",
        "  A j  0-7 free",
    ]


def test_what_people_see_of_jobs_that_are_not_placed(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    done = ringleaf("plan", scenario(NOTHING_FITS), columns=120)

    assert (done.status, done.err) == (1, "")
    assert done.lines == [
        "  job  product     wanted       verdict  where",
        "  j    atlas-300t  1 x 1 chips  pending  no node for 1 of 1 pods",
        "  k    atlas-300t  1 x 3 chips  invalid  never",
        "",
        (
            "job 'j' waits: needs 1 x 1 chips, 1 pod has no node; nodes: 1 with too "
            "few free chips"
        ),
        "hint: needs 1 free chip on one node",
        "",
        "job 'k' is invalid: 3 chips in one pod are more than the 2 of atlas-300t",
        "hint: ask for 2 x 2 chips; atlas-300t takes 1 or 2 chips in each pod",
        "",
        "atlas-300t: 2 cards on PCIe",
        "  n  [x x]",
        "  x held",
    ]


def test_the_drawing_marks_the_state_of_every_chip(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    lines = ringleaf("plan", scenario(STATES)).lines

    assert "  n     [A A 2 x] [x ~ ! x]  leaf L1, SuperPoD 3, sub-healthy" in lines
    assert "  down  [0 1 2 3] [4 5 6 7]  not ready" in lines
    assert lines[-1].split("  ")[1:] == [
        "A a",
        "0-7 free",
        "x held",
        "! faulty",
        "~ network-faulty",
    ]


def test_where_nodes_stand_is_a_heading_if_it_does_not_fit_beside_them(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    text = """
nodes:
  - {name: "a{i}", count: 2, product: atlas-900-a3, superpod: 0}
  - {name: b, product: atlas-900-a3, superpod: 1}
"""
    lines = ringleaf("plan", scenario(text), columns=76).lines

    assert [line for line in lines if "[" not in line][1:] == [
        "  SuperPoD 0",
        "  SuperPoD 1",
        "  0-15 free",
    ]
    assert [line.split()[0] for line in lines[2:4]] == ["a0", "a1"]


def test_nodes_without_chips_are_not_drawn(ringleaf: Ringleaf, scenario: Write) -> None:
    text = """
nodes: [{name: c, product: no-npu}, {name: n, product: atlas-800-9000}]
jobs: [{name: j, roles: [{name: d, chips: 0}, {name: w, chips: 1}]}]
"""
    done = ringleaf("plan", scenario(text))

    assert (done.status, done.err) == (0, "")
    assert "n [0]; c" in done.out
    assert "no-npu" not in done.out
    assert "  n  [A 1 2 3] [4 5 6 7]" in done.lines


def test_a_cluster_without_chips_draws_nothing(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    text = """
nodes: [{name: c, product: no-npu}]
jobs: [{name: j, roles: [{name: d, chips: 0}]}]
"""
    done = ringleaf("plan", scenario(text))

    assert (done.status, done.err) == (0, "")
    assert [line for line in done.lines if line] == [
        "   job  product  wanted           verdict  where",
        "A  j    no-npu   'd' 1 x 0 chips  placed   c",
    ]


def test_json_is_one_line_per_document(ringleaf: Ringleaf, scenario: Write) -> None:
    done = ringleaf("plan", scenario(f"{ONE}---{NOTHING_FITS}"), "--json")

    assert (done.status, done.err) == (1, "")
    assert [len(json.loads(line)["decisions"]) for line in done.lines] == [1, 2]


def test_documents_follow_each_other(ringleaf: Ringleaf, scenario: Write) -> None:
    lines = ringleaf("plan", scenario(f"{ONE}---{ONE}")).lines

    assert lines[: len(lines) // 2] == lines[len(lines) // 2 + 1 :]
    assert lines[len(lines) // 2] == ""


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (ONE, 0),
        ("nodes: []", 0),
        (NOTHING_FITS, 1),
        (f"{NOTHING_FITS}---{ONE}", 1),
        ("nodes: 1", 2),
        (f"{ONE}---\nnodes: 1", 2),
    ],
)
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_exit_status(
    ringleaf: Ringleaf, scenario: Write, text: str, status: int, options: list[str]
) -> None:
    done = ringleaf("plan", scenario(text), *options)

    assert done.status == status
    assert (done.err == "") == (status != 2)


def test_nothing_is_decided_for_a_file_with_one_bad_document(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    file = scenario(f"{ONE}---\nnodes: 1")
    done = ringleaf("plan", file)

    assert (done.status, done.out) == (2, "")
    assert done.err == (
        f"ringleaf: {file}: document 2: nodes is 1, want a list of nodes\n"
    )


def test_standard_input_is_a_file_too(ringleaf: Ringleaf, scenario: Write) -> None:
    piped = ringleaf("plan", "-", "--json", stdin=ONE)

    assert piped == ringleaf("plan", scenario(ONE), "--json")
    assert ringleaf("plan", "-", stdin="nodes: 1").err == (
        "ringleaf: standard input: nodes is 1, want a list of nodes\n"
    )


@pytest.mark.parametrize(
    ("file", "hint"),
    [
        ("no/such/file.yaml", "there is no folder 'no'"),
        ("examples/frist.yaml", "did you mean 'examples/first.yaml'?"),
        ("exampels/first.yaml", "did you mean 'examples/first.yaml'?"),
        ("exampels/none.yaml", "did you mean 'examples'?"),
        ("examples/topology/none.csv", "examples/topology has racks.csv"),
        ("x.toml", "this folder has pyproject.toml"),
        ("examples/first.yml", "did you mean 'examples/first.yaml'?"),
        ("examples/first", "did you mean 'examples/first.yaml'?"),
    ],
)
def test_a_file_that_is_not_there_is_told_what_is(
    ringleaf: Ringleaf, monkeypatch: pytest.MonkeyPatch, file: str, hint: str
) -> None:
    monkeypatch.chdir(ROOT)

    done = ringleaf("plan", file)

    told = f"ringleaf: {file}: No such file or directory; hint: {hint}\n"
    assert done == (2, "", told)


def test_of_many_files_beside_one_that_is_not_there_some_are_named(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    for name in "abcde":
        (tmp_path / f"{name * 9}.yaml").touch()

    done = ringleaf("plan", str(tmp_path / "x.yaml"))

    files = "aaaaaaaaa.yaml, bbbbbbbbb.yaml, ccccccccc.yaml and 2 more"
    assert done.err.endswith(f"; hint: {tmp_path} has {files}\n")


def test_files_are_not_alike_because_they_end_alike(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    (tmp_path / "tour.yaml").touch()

    done = ringleaf("plan", str(tmp_path / "nothere.yaml"))

    assert done.err.endswith(f"; hint: {tmp_path} has tour.yaml\n")


def test_a_file_that_is_not_there_beside_nothing_like_it(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    (tmp_path / "other.csv").touch()

    for name, kind in (("x.yaml", ".yaml file"), ("x", "file 'x'")):
        done = ringleaf("plan", str(tmp_path / name))

        told = f"{tmp_path / name}: No such file or directory"
        none = f"{tmp_path} has no {kind}"
        assert done.err == (
            f"ringleaf: {told}; hint: {none}; ringleaf init scenario writes one\n"
        )


def test_a_directory_is_no_file(ringleaf: Ringleaf, tmp_path: Path) -> None:
    done = ringleaf("plan", str(tmp_path))

    assert done == (2, "", f"ringleaf: {tmp_path}: Is a directory\n")


def test_a_file_that_may_not_be_read(
    ringleaf: Ringleaf, scenario: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = scenario(ONE)

    def refuse(*_args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)

    assert ringleaf("plan", file) == (2, "", f"ringleaf: {file}: Permission denied\n")


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("a\nb", r"a\nb"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\udcff", r"\udcff"),
        ("", "''"),
    ],
)
def test_a_name_does_not_break_the_line(
    ringleaf: Ringleaf, file: str, shown: str
) -> None:
    err = ringleaf("plan", file).err

    assert err.startswith(f"ringleaf: {shown}: ")
    assert err.count("\n") == 1


def test_a_name_with_a_nul_is_told(ringleaf: Ringleaf) -> None:
    err = ringleaf("plan", "a\0b").err

    assert err == "ringleaf: 'a\\x00b': embedded null byte\n"


def test_a_closed_standard_input_is_told(ringleaf: Ringleaf) -> None:
    assert ringleaf("plan", "-", stdin=None) == (
        2,
        "",
        "ringleaf: standard input is closed, want a scenario\n",
    )


def test_a_line_is_cut_where_nobody_reads_on(ringleaf: Ringleaf) -> None:
    err = ringleaf("plan", "x" * 5000).err

    assert len(err) < 1100
    assert err.endswith("…\n")


def test_warnings_go_to_standard_error_and_do_not_fail(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    file = scenario(f"{ONE}settings: {{reserve-nodes: 48}}")
    done = ringleaf("plan", file, "--json")

    assert done.status == 0
    assert len(done.lines) == 1
    assert done.err == (
        f"ringleaf: warning: {file}: settings.reserve-nodes is 48, "
        "not below super-pod-size 48: 2 is used\n"
    )


def test_warnings_of_a_decision_are_shown(ringleaf: Ringleaf, scenario: Write) -> None:
    text = ONE.replace("chips: 1}", "chips: 1, strategy: card}")

    assert "warning: job 'j': strategy has no effect on atlas-800-9000" in (
        ringleaf("plan", scenario(text)).lines
    )


FRAMEWORK = """
settings: {nslb-version: "2.0"}
nodes:
  - {name: a0, product: atlas-800t-a2, leaf: A}
  - {name: a1, product: atlas-800t-a2, leaf: A}
jobs:
  - name: j
    replicas: 2
    chips: 8
    tor-affinity: large-model-schema
    framework: mindspore
"""


@pytest.mark.parametrize("framework", ["mindspore", "pytorch"])
def test_d40_plan_warns_of_a_framework_that_the_vendor_does_not_name(
    framework: str, ringleaf: Ringleaf, scenario: Write
) -> None:
    file = scenario(FRAMEWORK.replace("mindspore", framework))
    done = ringleaf("plan", file)
    (found,) = json.loads(ringleaf("plan", file, "--json").out)["decisions"]

    told = f"not for framework '{framework}'; it is placed by the same rule"
    warns = framework == "mindspore"
    assert done.status == 0
    assert (told in " ".join(done.lines)) == warns
    assert [told in each for each in found.get("warnings", [])] == [True] * warns


def test_without_a_terminal_there_are_no_colours(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    assert ringleaf("plan", scenario(STATES)).out.isascii()
    assert "\x1b" not in ringleaf("plan", scenario(STATES)).out


def test_colours_add_nothing_but_colour(
    ringleaf: Ringleaf, scenario: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = ringleaf("plan", scenario(STATES)).lines
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    coloured = ringleaf("plan", scenario(STATES)).lines

    assert "\x1b[1;36mA\x1b[0m" in "".join(coloured)
    assert [re.sub(r"\x1b\[[\d;]*m", "", line).rstrip() for line in coloured] == plain


def test_an_about_does_not_speak_to_the_terminal(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    text = '{"about": "a\\u001b[31mb\\u0007", "nodes": []}'

    assert ringleaf("plan", scenario(text)).lines[0] == "a [31mb"


def test_markup_in_names_is_text(ringleaf: Ringleaf, scenario: Write) -> None:
    text = ONE.replace("name: n", "name: '[red]n[/]'").replace(
        "name: j", "name: '[bold]j'"
    )
    out = ringleaf("plan", scenario(text)).out

    assert "[red]n[/]" in out
    assert "[bold]j" in out


@pytest.mark.parametrize("columns", [40, 80, 120, 300])
def test_the_drawing_of_large_nodes_keeps_to_the_width(
    ringleaf: Ringleaf, scenario: Write, columns: int
) -> None:
    text = wide(3, 3, leaf="leaf-1", superpod=4)
    lines = ringleaf("plan", scenario(text), columns=columns).lines

    assert max(map(len, lines)) <= columns
    assert sum(line.count("[ ") for line in lines if line.startswith("  n")) == 3
    assert " 63]" in "".join(lines)


def test_groups_are_broken_between_lines_not_inside(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    text = "nodes: [{name: cards, product: atlas-300i, chips: 64}]"
    lines = ringleaf("plan", scenario(text), columns=70).lines

    assert lines == [
        "atlas-300i: cards of 4, no links between cards",
        "  cards  [ 0  1  2  3] [ 4  5  6  7] [ 8  9 10 11] [12 13 14 15]",
        "         [16 17 18 19] [20 21 22 23] [24 25 26 27] [28 29 30 31]",
        "         [32 33 34 35] [36 37 38 39] [40 41 42 43] [44 45 46 47]",
        "         [48 49 50 51] [52 53 54 55] [56 57 58 59] [60 61 62 63]",
        "  0-63 free",
    ]


def test_a_long_name_stands_on_a_line_of_its_own(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    name = "node-" + "x" * 55
    text = f"""nodes:
      - {{name: {name}, product: atlas-300t}}
      - {{name: short, product: atlas-300t}}"""
    lines = ringleaf("plan", scenario(text)).lines

    assert lines[1:4] == [f"  {name}", "         [0 1]", "  short  [0 1]"]


def test_a_large_cluster_is_drawn_where_jobs_are(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    node = "{name: 'n{i}', count: 100, product: atlas-800t-a2}"
    job = "{name: j, chips: 8, replicas: 40}"
    some = ringleaf("plan", scenario(f"nodes: [{node}]\njobs: [{job}]")).lines
    none = ringleaf("plan", scenario(f"nodes: [{node}]")).lines

    assert sum(line.startswith("  n") for line in some) == 32
    assert "  … and 8 more nodes" in some
    assert none == ["100 nodes, 800 chips", "  100 nodes atlas-800t-a2"]


def test_a_large_cluster_without_jobs_is_a_line_per_leaf(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    text = """
nodes:
  - {name: "a{i}", count: 300, product: atlas-800t-a2, leaf: "L{i/9}"}
  - {name: b, product: atlas-800t-a2, leaf: B, ready: false}
  - {name: c, product: atlas-800-9000, leaf: B, free: [0, 1]}
  - {name: d, product: atlas-800-9000, superpod: 3, free: []}
  - {name: e, product: atlas-800-9000}
"""
    done = ringleaf("plan", scenario(text))

    assert (done.status, done.err) == (0, "")
    assert done.lines[:2] == [
        "304 nodes, 2,432 chips, 35 leaves of 2 to 9 nodes, 1 SuperPoD of 1 node",
        "  leaf L0   9 nodes atlas-800t-a2  ········ ·",
    ]
    assert done.lines[32:] == [
        "  leaf L31  9 nodes atlas-800t-a2  ········ ·",
        "  … and 5 more leaves or SuperPoDs with 16 nodes",
        "  · free node",
    ]


def test_jobs_that_are_all_pending_leave_a_large_cluster_to_be_drawn(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    text = """
nodes:
  - {name: "a{i}", count: 30, product: atlas-800t-a2, leaf: "L{i/15}"}
  - {name: b, product: atlas-800t-a2, leaf: B, ready: false}
  - {name: c, product: atlas-800-9000, leaf: B, free: [0, 1]}
  - {name: d, product: atlas-800-9000, superpod: 3, free: []}
  - {name: e, product: atlas-800-9000}
jobs: [{name: j, product: atlas-800t-a2, chips: 8, replicas: 31}]
"""
    done = ringleaf("plan", scenario(text))

    assert done.status == 1
    assert done.lines[-7:] == [
        "34 nodes, 272 chips, 3 leaves of 2 to 15 nodes, 1 SuperPoD of 1 node",
        "  leaf L0     15 nodes atlas-800t-a2                       ········ ·······",
        "  leaf L1     15 nodes atlas-800t-a2                       ········ ·······",
        "  leaf B      1 node atlas-800t-a2, 1 node atlas-800-9000  !-",
        "  SuperPoD 3  1 node atlas-800-9000                        x",
        "  elsewhere   1 node atlas-800-9000                        ·",
        "  · free node  - partly free  x held  ! not ready",
    ]


def test_sixty_jobs_have_marks_that_nobody_confuses(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    lines = ringleaf("plan", scenario(wide(1, 60))).lines
    marks = [line[0] for line in lines[1:61]]
    legend = re.findall(r"(\S) (j\d+|later jobs)", " ".join(lines[66:]))

    assert len(set(marks[:51])) == 51
    assert set(marks[51:]) == {"*"}
    assert not set(marks) & set("x!~")
    assert [mark for mark, _name in legend] == [*marks[:51], "*"]


def test_a_long_gang_is_not_listed_whole(ringleaf: Ringleaf, scenario: Write) -> None:
    node = "{name: 'n{i}', count: 9, product: atlas-800t-a2}"
    job = "{name: j, chips: 8, replicas: 9}"
    done = ringleaf("plan", scenario(f"nodes: [{node}]\njobs: [{job}]"), columns=120)

    assert "n0 [0-7]; n1 [0-7]; n2 [0-7]; n3 [0-7]; … 5 more" in done.lines[1]


def test_the_tour_shows_every_product_and_every_verdict(ringleaf: Ringleaf) -> None:
    done = ringleaf("plan", TOUR)

    assert (done.status, done.err) == (1, "")
    assert [key for key in PRODUCTS if f"\n{key}: " not in done.out] == []
    verdicts = ("placed", "pending", "invalid", "ended")
    assert [verdict for verdict in verdicts if verdict not in done.out] == []


def test_the_tour_as_json(ringleaf: Ringleaf) -> None:
    done = ringleaf("plan", TOUR, "--json")
    decisions = [d for line in done.lines for d in json.loads(line)["decisions"]]

    assert (done.status, len(done.lines)) == (1, 3)
    verdicts = {"placed", "waiting", "invalid", "ended"}
    assert {decision["verdict"] for decision in decisions} == verdicts


# Scenarios that are run through time.
RUN = """
about: two queues
nodes: [{name: "n{i}", count: 2, product: atlas-800t-a2}]
queues: [{name: day}, {name: night}]
jobs:
  - {name: a, chips: 8, queue: day}
  - {name: b, chips: 8, replicas: 2, queue: night}
  - {name: c, chips: 9}
then:
  - {at: 60, ends: a}
  - {at: 60, nodes: [{name: n2, product: atlas-800t-a2}]}
"""


def test_a_run_is_told_as_a_table_a_timeline_and_a_drawing(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    done = ringleaf("plan", scenario(RUN), columns=88)

    assert (done.status, done.err) == (1, "")
    assert done.lines[:6] == [
        "two queues",
        "",
        "   job  queue    wanted       verdict  waited  where",
        "   a    day      1 x 8 chips  ended    0 s",
        "A  b    night    2 x 8 chips  placed   60 s    n0 [0-7]; n1 [0-7]",
        "   c    default  1 x 9 chips  invalid          never",
    ]
    times = [line for line in done.lines if re.match(r" *\d+ s  ", line)]
    assert times[0].split(maxsplit=3)[2:] == ["a", "arrives: 1 x 8 chips, queue day"]
    assert times[1].split() == ["60", "s", "a", "ends"]
    assert "new or changed nodes: n2" in map(str.strip, done.lines)
    assert done.lines[-1].startswith("  A b  0-7 free")


def test_the_lines_of_a_run_fit_the_screen(ringleaf: Ringleaf) -> None:
    done = ringleaf("plan", "examples/big-job-waits.yaml", columns=88)

    assert max(map(len, done.lines)) <= 88
    assert any("% reserved" in line for line in done.lines)


def test_a_long_timeline_is_cut(ringleaf: Ringleaf, scenario: Write) -> None:
    jobs = [{"name": f"j{i}", "chips": 1} for i in range(40)]
    nodes = [{"name": "n{i}", "count": 8, "product": "atlas-800t-a2"}]
    done = ringleaf(
        "plan", scenario(json.dumps({"nodes": nodes, "jobs": jobs, "queues": []}))
    )

    assert done.status == 0
    assert "  … and 20 more lines; --json has all" in done.lines


def test_a_run_has_its_instructions_in_the_json(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    path = scenario(RUN)
    done = ringleaf("plan", path, "--json")
    found = json.loads(done.out)

    assert done.status == 1
    assert done.out == ringleaf("plan", path, "--json").out
    assert [*found] == ["decisions", "instructions", "reservations"]
    verdicts = [(each["job"], each["verdict"]) for each in found["decisions"]]
    assert verdicts == [("a", "ended"), ("b", "placed"), ("c", "invalid")]
    assert all(next(iter(each)) == "at" for each in found["instructions"])


def test_runs_and_decisions_stand_in_one_file(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    done = ringleaf("plan", scenario(f"{ONE}---{RUN}"), "--json")

    first, second = map(json.loads, done.out.splitlines())
    assert [*first] == ["decisions"]
    assert "instructions" in second


def test_keys_without_an_effect_are_warned_of(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    plain = scenario(ONE)
    before = ringleaf("plan", plain, "--json").out
    done = ringleaf(
        "plan", scenario(ONE.replace("chips: 1", "chips: 1, priority: 5")), "--json"
    )

    assert done.out == before
    assert done.err.endswith(
        "jobs[0].priority has no effect without queues, configuration or then\n"
    )


REFUSED = """
until: 20
nodes: [{name: "a{i}", count: 2, product: atlas-800t-a2}]
jobs: [{name: j, chips: 8}]
then:
  - {at: 5, pods-refused: {job: j, replicas: [0], why: no device}}
"""


def test_a_node_that_is_set_aside_is_drawn_so(
    ringleaf: Ringleaf, scenario: Write
) -> None:
    done = ringleaf("plan", scenario(REFUSED))

    assert "  a0  [0 1 2 3 4 5 6 7]  quarantined" in done.lines
    assert any("pod 0 refused by the node: no device" in line for line in done.lines)
    assert any("node 'a0' refused a pod of job 'j'" in line for line in done.lines)


def test_a_waiting_gang_sees_its_leaves(ringleaf: Ringleaf) -> None:
    done = ringleaf("plan", "examples/busy-leaves.yaml", columns=80)

    assert "Leaf rule 1.0: foundation job of 12 nodes; 4 leaves" in done.lines
    assert "  D     · · · · · · · ·     8  complete" in done.lines


def test_how_long_jobs_waited_is_told(ringleaf: Ringleaf) -> None:
    file = "examples/big-job-waits.yaml"
    done = ringleaf("plan", file, columns=120)
    told = json.loads(ringleaf("plan", file, "--json").out)["decisions"]

    assert any("pending  500 s so far" in line for line in done.lines)
    waited = {each["job"]: each.get("waited-seconds") for each in told}
    assert waited == {"earlier": None, "big": 500, "short": 0, "long": 0}
