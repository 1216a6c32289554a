"""``ringleaf conf``."""

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Final

import pytest
import yaml

from ringleaf.cli.plugins import GROUP
from ringleaf.config.parameters import PARAMETERS
from ringleaf.config.vocabulary import FLAGS
from tests.cli.conftest import Ringleaf
from tests.cli.test_examples import commands_of

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = ROOT / "examples" / "conf"
SOUND: Final = sorted(
    path.name
    for path in EXAMPLES.iterdir()
    if path.name not in {"broken.conf", "guide-default.go"}
)


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("example", SOUND)
def test_every_example_is_explained(ringleaf: Ringleaf, example: str) -> None:
    done = ringleaf("conf", "check", f"examples/conf/{example}")
    plain = ringleaf("conf", "check", f"examples/conf/{example}", "--json")

    assert (done.status, done.err) == (0, "")
    assert (plain.status, plain.err) == (0, "")
    for action in json.loads(plain.out)["actions"]:
        assert f" {action['action']} " in done.out
    for tier in json.loads(plain.out)["tiers"]:
        for plugin in tier:
            assert f" {plugin['plugin']} " in done.out
    assert json.loads(plain.out)["problems"] == []


def test_there_are_examples() -> None:
    assert len(SOUND) == 8


SET: Final = """\
actions: "allocate, preempt"
tiers:
- plugins:
  - name: topology910
  - name: gang
    enableJobOrder: false
    enableNodeOrder: false
- plugins:
  - name: binpack
    arguments:
      binpack.weight: 5
      binpack.resources: huawei.com/Ascend910
      binpack.resources.huawei.com/Ascend910: 2
configurations:
- name: preempt
  arguments: {minCandidateNodesAbsolute: 7, min-run-seconds: 600}
- name: theirs
- name: init-params
  arguments: {super-pod-size: '8', nodes-per-leaf: 4, forceEnqueue: 'true'}
"""
EXPLAINED: Final = """\
warning: line 16: action 'preempt': argument 'minCandidateNodesAbsolute' has no \
effect: all nodes are candidates
warning: line 17: configurations for 'theirs' have no effect: they are not read
warning: line 19: init-params: argument 'forceEnqueue' has no effect: jobs are \
admitted by the quota of their queue, or if they fit now
standard input: no problems, 3 warnings

Actions, in this order
 1  allocate  Places jobs whose pods request something, all pods or none.
              by default: reservation fair, reservation-after-seconds 300,
              reservation-idle-budget 0.05, learn-run-times false
 2  preempt   Evicts pods of the same queue for a starving job that outranks
              them.
              min-run-seconds: 600 (default 0). Seconds that a job must have run
              before its pods may be evicted.
              by default: preview false

Tier 1
   affinity  Places pods on chips that are wired together, gangs under leaf
             switches, blocks in SuperPoDs.
             written 'topology910' in the file
             votes: JobValid, Predicate, NodeOrder
             by default: sum-scores false
   gang      Starts all required pods of a job, or none.
             votes: JobValid, JobReady, JobPipelined, Preemptable, Reclaimable,
             JobStarving
             enableJobOrder: false (default true)
             enableNodeOrder: false (default true), which changes nothing here

Tier 2
   binpack  Fills nodes in use before empty ones.
            votes: NodeOrder
            binpack.weight: 5 (default 1). Weight of the whole plugin; 0 turns
            it off.
            binpack.resources: huawei.com/Ascend910 (default none). Further
            resources to pack by; chips count only if listed.
            binpack.resources.huawei.com/Ascend910: 2 (default 1). Weight of one
            of these resources.
            by default: binpack.cpu 1, binpack.memory 1

init-params
   nslb-version                 1.0 (default): Version of switch affinity.
   shared-tor-num               2 (default): Shared leaves that one foundation
                                job may use in 2.0.
   nodes-per-leaf               4 (default the size of the largest leaf): Nodes
                                per leaf.
   leaf-choice                  compact (default): How leaves are chosen for a
                                job in 1.0; in 2.0, whether a job of as many
                                pods as a leaf has nodes may go under a leaf
                                that other jobs cross (D36).
   share-common-leaves          false (default): Whether common jobs may cross
                                leaves that carry common jobs only (D12).
   super-pod-size               8 (default 48): Nodes per SuperPoD.
   reserve-nodes                2 (default): Nodes per SuperPoD in reserve for
                                repairs.
   job-requests                 strict (default): Which requests jobs of several
                                pods may make on atlas-800-9000 (D1).
   default-tor-affinity         none (default): Switch affinity of jobs of
                                several nodes without the label tor-affinity
                                (D38).
   default-fault-scheduling     off (default): Fault handling of jobs without
                                the label fault-scheduling (D39).
   useClusterInfoManager        true (default): Whether reports of the cluster
                                daemon take precedence.
   grace-over-time              900 (default): Seconds after which deleted pods
                                of a faulty job are killed if they still run.
   superpod-escalation-seconds  6 (default): Seconds after which a logical
                                SuperPoD is deleted if its faulty pods find no
                                node.
   job-escalation-seconds       12 (default): Seconds after which a job is
                                deleted if its faulty pods find no node.
   repair-hold-seconds          300 (default): Seconds for which the nodes and
                                chips of a job are held while its faulty pods
                                are replaced.
   fault-brake-percent          5 (default): Eviction rate limit: percent of all
                                pods that may be deleted for faults in
                                fault-brake-seconds.
   fault-brake-seconds          60 (default): Window of the eviction rate limit,
                                in seconds.
   run-within-seconds           600 (default): Seconds within which all pods of
                                a bound job must run; 0 is no limit.
   set-aside-seconds            300 (default): Seconds for which a node that
                                refused a pod is quarantined; 0 is never.

docs/configuration.md describes every key.
"""


def test_what_people_see(ringleaf: Ringleaf) -> None:
    done = ringleaf("conf", "check", "-", stdin=SET)

    assert (done.status, done.err) == (0, "")
    assert done.lines == EXPLAINED.splitlines()


BROKEN: Final = """\
problem: line 2: unknown action 'backfil'; hint: did you mean 'backfill'?
problem: line 7: tiers[0].plugins[1] has the unknown flag 'enabledJobOrder'; \
hint: did you mean 'enableJobOrder'?
problem: line 9: plugin 'sla' is Volcano's and not in Ringleaf; hint: \
remove it: wait times do not change the order
problem: line 10: 'drf' with enableHierarchy and 'proportion' are in one tier, \
want one; hint: both would share the cluster between queues
problem: line 16: plugin 'nodeorder': argument 'leastrequested.weight' is '5', \
want a whole number from 0 to 1000000; hint: write 5 without quotes; Volcano \
would ignore it
problem: line 17: plugin 'nodeorder': unknown argument 'leastrequest.weight'; \
hint: did you mean 'leastrequested.weight'?
problem: line 18: unknown plugin 'binpak'; hint: did you mean 'binpack'?
problem: line 22: init-params: argument 'super-pod-size' is 0, want a whole \
number from 1 to 1000000
problem: line 23: init-params: unknown argument 'tor-level'; hint: tor_level \
is a key of the ConfigMap basic-tor-node-cm
examples/conf/broken.conf: 9 problems
"""


def test_problems_are_lines_in_the_order_of_the_file(ringleaf: Ringleaf) -> None:
    done = ringleaf("conf", "check", "examples/conf/broken.conf")

    assert (done.status, done.err) == (1, "")
    assert done.lines == BROKEN.splitlines()


def test_problems_as_json(ringleaf: Ringleaf) -> None:
    text = "actions: nope\nmetrics: {}\ntiers: [{plugins: [{name: npu}]}]"
    done = ringleaf("conf", "check", "-", "--json", stdin=text)

    assert (done.status, done.err) == (1, "")
    assert json.loads(done.out) == {
        "problems": [
            (
                "line 1: unknown action 'nope'; hint: actions are enqueue, allocate, "
                "backfill, preempt, reclaim, rearrange"
            )
        ],
        "warnings": [
            "line 1: 'allocate' is not among the actions: no job is placed",
            "line 2: metrics has no effect: only Volcano's plugin 'usage' reads it",
        ],
    }


def test_the_check_as_json(ringleaf: Ringleaf) -> None:
    text = (
        "actions: allocate\n"
        "tiers: [{plugins: [{name: npu, enablePredicate: false}]}]\n"
        "configurations: [{name: init-params, arguments: {nslb-version: '2.0'}},"
        " {name: theirs, arguments: {a: [1]}}]"
    )
    done = ringleaf("conf", "check", "-", "--json", stdin=text)
    found = json.loads(done.out)
    usual = {key: flag.default for key, flag in FLAGS.items()}
    defaults = {key: argument.default for key, argument in PARAMETERS.items()}

    assert (done.status, done.err) == (0, "")
    assert found == {
        "problems": [],
        "warnings": [
            "line 3: configurations for 'theirs' have no effect: they are not read"
        ],
        "actions": [
            {
                "action": "allocate",
                "arguments": {
                    "predicateErrorCacheEnable": True,
                    "reservation": "fair",
                    "reservation-after-seconds": 300,
                    "reservation-idle-budget": 0.05,
                    "learn-run-times": False,
                },
            }
        ],
        "tiers": [
            [
                {
                    "plugin": "affinity",
                    "written": "npu",
                    "votes": ["JobValid", "NodeOrder"],
                    "flags": usual | {"enablePredicate": False},
                    "arguments": {"sum-scores": False},
                }
            ]
        ],
        "init-params": defaults | {"nslb-version": "2.0"},
        "settings": {
            "job_requests": "strict",
            "switch_mode": "2.0",
            "shared_leaves": 2,
            "nodes_per_leaf": None,
            "leaf_choice": "compact",
            "share_common_leaves": False,
            "superpod_size": 48,
            "reserve_nodes": 2,
            "repairs": {
                "grace_s": 900,
                "block_after_s": 6,
                "job_after_s": 12,
                "hold_s": 300,
                "brake_percent": 5,
                "brake_s": 60,
                "run_within_s": 600,
                "aside_s": 300,
            },
            "default_tor_affinity": "none",
            "default_fault_scheduling": "off",
        },
        "others": {"theirs": {"a": [1]}},
    }


# The guide's three, exactly as printed.

MANIFEST: Final = """\
apiVersion: v1
kind: ConfigMap
metadata: 
  name: volcano-scheduler-configmap
  namespace: volcano-system
data: 
  volcano-scheduler.conf: |
   actions: "enqueue, allocate, backfill"
   tiers: 
   - plugins: 
     - name: priority
     - name: gang
     - name: conformance
     - name: topology910
"""  # noqa: W291 - the guide has these blanks


def test_the_guides_configmap_as_printed(ringleaf: Ringleaf) -> None:
    assert (EXAMPLES / "guide-configmap.yaml").read_text() == MANIFEST
    done = ringleaf("conf", "check", "examples/conf/guide-configmap.yaml", "--json")
    found = json.loads(done.out)

    assert found["warnings"] == []
    assert [plugin["plugin"] for plugin in found["tiers"][0]] == [
        "priority",
        "gang",
        "conformance",
        "affinity",
    ]


def test_the_guides_go_literal_names_the_bad_line(ringleaf: Ringleaf) -> None:
    done = ringleaf("conf", "check", "examples/conf/guide-default.go")
    lines = (EXAMPLES / "guide-default.go").read_text().splitlines()

    assert lines[7] == "- plugins:"
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "ringleaf: examples/conf/guide-default.go: line 8, column 1: neither YAML nor "
        "JSON: did not find expected <document start>; hint: line 8 starts 1 column "
        "further left than the rest; this is Go source: keep only the text between "
        "the backquotes\n"
    )


def test_the_text_of_the_literal_alone_names_the_bad_line(ringleaf: Ringleaf) -> None:
    text = (EXAMPLES / "guide-default.go").read_text().split("`")[1]
    done = ringleaf("conf", "check", "-", stdin=text)

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("ringleaf: standard input: line 8, column 1: neither")
    assert done.err.endswith(
        "hint: line 8 starts 1 column further left than the rest\n"
    )


def test_a_sound_go_literal_is_refused_all_the_same(ringleaf: Ringleaf) -> None:
    text = "\nconst conf = `\nactions: allocate\n`\n"

    assert ringleaf("conf", "check", "-", stdin=text).err == (
        "ringleaf: standard input: line 1: no YAML, want a configuration, or a "
        "ConfigMap with volcano-scheduler.conf; hint: this is Go source: keep only "
        "the text between the backquotes\n"
    )


# ConfigMaps and lines.


def manifest(conf: str, key: str = "volcano-scheduler.conf") -> str:
    """A ConfigMap in YAML, the configuration below a ``|``; 4 lines before it."""
    body = "".join(f"    {line}\n" for line in conf.splitlines())
    return f"kind: ConfigMap\ndata:\n  other: 1\n  {key}: |\n{body}"


BAD: Final = "actions: nope\ntiers: [{plugins: [{name: npu}]}]\n"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (BAD, "line 1: "),
        (f"# about\n---\n{BAD}", "line 3: "),
        (manifest(BAD), "line 5: "),
        (manifest(f"\n# about\n{BAD}"), "line 7: "),
        (manifest(BAD, "volcano-scheduler-ci.conf"), "line 5: "),
        (f"kind: Namespace\n---\n{manifest(BAD)}", "line 7: "),
        (f"---\n---\nkind: Secret\n---\n{manifest(BAD)}", "line 9: "),
        (manifest(f"---\n{BAD}"), "line 6: "),
        (json.dumps(yaml.safe_load(manifest(BAD))), "line 1: "),
        (json.dumps(yaml.safe_load(BAD)), "line 1: "),
        (json.dumps(yaml.safe_load(BAD) | {"metrics": "\U0001f600"}), ""),
    ],
)
def test_a_line_is_that_of_the_file(ringleaf: Ringleaf, text: str, place: str) -> None:
    done = ringleaf("conf", "check", "-", stdin=text)

    assert (done.status, done.err) == (1, "")
    assert done.lines[0].startswith(f"problem: {place}unknown action 'nope'; hint: ")


def test_a_line_behind_a_merge_is_that_of_what_merges(ringleaf: Ringleaf) -> None:
    text = (
        "actions: allocate\n"
        "tiers:\n"
        "- plugins:\n"
        "  - &npu {name: npu, arguments: {sum-scores: 5}}\n"
        "  - {<<: *npu, name: gang}\n"
    )
    done = ringleaf("conf", "check", "-", stdin=text)

    assert [line.split(":")[1] for line in done.lines[:2]] == [" line 4", " line 5"]


def test_of_two_keys_the_first_counts(ringleaf: Ringleaf) -> None:
    data = {
        "volcano-scheduler-ci.conf": "actions: nope",
        "volcano-scheduler.conf": "actions: allocate",
    }
    text = json.dumps({"kind": "ConfigMap", "data": data})

    assert ringleaf("conf", "check", "-", stdin=text).status == 0


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "the file is empty, want a configuration, or a ConfigMap with volcano-"),
        ("null\n", "the file is empty, want a configuration, or a ConfigMap wi"),
        ("# only\n---\n", "the file is empty, want a configuration, or a ConfigMap wi"),
        ("a: [", "line 1, column 5: neither YAML nor JSON: while parsing a flow"),
        ("a: 1\na: 2", "line 2, column 1: the key 'a' is twice in one mapping"),
        ("a: 1\n---\nb: 2", "2 documents, want one"),
        (
            "kind: ConfigMap",
            "no ConfigMap has the key volcano-scheduler.conf, want a c",
        ),
        ("kind: ConfigMap\ndata: 5", "no ConfigMap has the key volcano-scheduler.conf"),
        ("kind: Pod\ndata: {volcano-scheduler.conf: x}", "no ConfigMap has the key"),
        (
            f"{manifest(BAD)}---\n{manifest(BAD)}",
            "2 ConfigMaps with a configuration, want one",
        ),
        (
            "kind: ConfigMap\ndata: {volcano-scheduler.conf: {actions: allocate}}",
            "data.volcano-scheduler.conf is {'actions': 'allocate'}, want text",
        ),
        (
            "kind: ConfigMap\ndata: {volcano-scheduler.conf: ''}",
            "data.volcano-scheduler.conf is '', want text",
        ),
        (manifest("a: ["), "line 5, column 5: neither YAML nor JSON: while parsing"),
        (
            manifest("a: 1\n---\nb: 1"),
            "2 documents in volcano-scheduler.conf, want one",
        ),
        (
            manifest("# nothing"),
            r"data.volcano-scheduler.conf is '# nothing\n', want text of a conf",
        ),
    ],
)
def test_what_cannot_be_read_is_one_line(
    ringleaf: Ringleaf, text: str, line: str
) -> None:
    done = ringleaf("conf", "check", "-", stdin=text)

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"ringleaf: standard input: {line}")
    assert done.err.count("\n") == 1
    assert "scenario" not in done.err


@pytest.mark.parametrize(
    ("file", "line"),
    [
        (
            "nope.conf",
            (
                "nope.conf: No such file or directory; hint: this folder has no .conf "
                "file; ringleaf init conf writes one"
            ),
        ),
        ("", "'': Is a directory"),
        ("a\0b", r"'a\x00b': embedded null byte"),
    ],
)
def test_a_file_that_is_not_there_is_one_line(
    ringleaf: Ringleaf, file: str, line: str
) -> None:
    assert ringleaf("conf", "check", file) == (2, "", f"ringleaf: {line}\n")


def test_a_file_that_is_no_text_or_too_large_is_one_line(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"act\xff")
    no_text = ringleaf("conf", "check", str(path))
    path.write_bytes(b" " * (16 << 20) + b"x")
    large = ringleaf("conf", "check", str(path))

    assert no_text.err == f"ringleaf: {path}: byte 3 is 0xff, want UTF-8 text\n"
    assert (
        large.err == f"ringleaf: {path}: more than 16777216 bytes of text, want fewer\n"
    )
    assert (no_text.status, large.status) == (2, 2)


def test_a_closed_standard_input_is_one_line(ringleaf: Ringleaf) -> None:
    assert ringleaf("conf", "check", "-", stdin=None) == (
        2,
        "",
        (
            "ringleaf: standard input is closed, want a configuration, or a ConfigMap "
            "with volcano-scheduler.conf\n"
        ),
    )


@pytest.mark.parametrize("columns", [40, 60, 88, 200])
def test_the_explanation_fits_the_terminal(ringleaf: Ringleaf, columns: int) -> None:
    done = ringleaf("conf", "check", "examples/conf/busy.conf", columns=columns)

    assert max(map(len, done.lines[done.lines.index("") :])) <= columns


@pytest.mark.parametrize("words", ["conf", "conf check", "check-conf"])
def test_without_a_file_it_says_what_is_missing(ringleaf: Ringleaf, words: str) -> None:
    done = ringleaf(*words.split())

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("ringleaf: FILE is missing, want volcano-scheduler.conf")


@pytest.mark.parametrize("command", ["", "check"])
def test_help_has_examples_that_work(ringleaf: Ringleaf, command: str) -> None:
    help_page = ringleaf("conf", *command.split(), "--help")
    shown = commands_of(help_page.out)

    assert (help_page.status, help_page.err) == (0, "")
    assert max(map(len, help_page.lines)) <= 88
    assert shown
    for arguments in shown:
        done = ringleaf(*arguments)
        assert done.status in (0, 1), arguments
        assert not done.err or "--fix" in arguments


# Plugins that others wrote.


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        pytest.param(
            [("night", "no_such_module:Night")],
            (
                "plugin 'night' (no_such_module:Night) cannot be loaded: "
                "No module named 'no_such_module'"
            ),
            id="one that cannot be loaded",
        ),
        pytest.param(
            [("night", "json:dumps")],
            (
                "plugin 'night' (json:dumps) is no plugin, want a class derived from "
                "Plugin"
            ),
            id="a function",
        ),
        pytest.param(
            [("night", "json:JSONDecoder")],
            (
                "plugin 'night' (json:JSONDecoder) is no plugin, want a class derived "
                "from Plugin"
            ),
            id="another class",
        ),
        pytest.param(
            [("night", "ringleaf.plugins:Gang"), ("night", "ringleaf.plugins:Drf")],
            "plugin 'night' is offered twice, want once",
            id="two of one name",
        ),
    ],
)
def test_installed_plugins_that_cannot_be_used(
    ringleaf: Ringleaf,
    monkeypatch: pytest.MonkeyPatch,
    entries: list[tuple[str, str]],
    problem: str,
) -> None:
    found = [EntryPoint(name, value, GROUP) for name, value in entries]
    monkeypatch.setattr("ringleaf.cli.plugins.entry_points", lambda group: found)  # noqa: ARG005
    done = ringleaf("conf", "check", "examples/conf/default.conf")

    assert (done.status, done.err) == (2, f"ringleaf: {problem}\n")


# Mended: --fix.

GUIDE: Final = """actions: "enqueue, allocate, backfill"
tiers: 
- plugins: 
  - name: priority
  - name: gang
  - name: topology910
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""  # noqa: W291 - the guide has these blanks


def test_the_guides_go_literal_is_mended(ringleaf: Ringleaf) -> None:
    done = ringleaf("conf", "check", "examples/conf/guide-default.go", "--fix")

    assert (done.status, done.out) == (0, GUIDE)
    assert done.err.splitlines() == [
        "fixed: line 1: took out the Go before the backquote",
        "fixed: lines 8 to 12: moved 1 column right",
        "fixed: line 13: took out the backquote and what follows",
        "examples/conf/guide-default.go as fixed: no problems",
    ]
    again = ringleaf("conf", "check", "-", "--json", stdin=done.out)
    tiers = json.loads(again.out)["tiers"]
    assert [[plugin["plugin"] for plugin in tier] for tier in tiers] == [
        ["priority", "gang", "affinity"],
        ["drf", "predicates", "proportion", "nodeorder"],
    ]


def test_a_mended_configuration_goes_to_a_new_file_only(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    new = tmp_path / "new.conf"
    command = ("conf", "check", "examples/conf/guide-default.go", "--fix", "--output")

    first, second = (ringleaf(*command, str(new)) for _time in range(2))

    assert (first.status, first.out, new.read_text()) == (0, "", GUIDE)
    assert first.err.endswith(f"{new}: no problems\n")
    assert (second.status, second.out) == (2, "")
    assert second.err == (
        f"ringleaf: --output: {new} is there already; "
        "hint: remove it first, or name another file\n"
    )
    nowhere = ringleaf(*command, str(tmp_path / "none" / "new.conf"))
    assert nowhere.status == 2
    assert "No such file or directory" in nowhere.err


def test_what_was_mended_as_json(ringleaf: Ringleaf, tmp_path: Path) -> None:
    command = ("conf", "check", "examples/conf/guide-default.go", "--fix", "--json")
    new = tmp_path / "new.conf"

    shown = json.loads(ringleaf(*command).out)
    written = json.loads(ringleaf(*command, "--output", str(new)).out)

    assert list(shown) == ["mended", "problems", "warnings", "text"]
    assert (shown["text"], len(shown["mended"])) == (GUIDE, 3)
    assert (written["output"], new.read_text()) == (str(new), GUIDE)
    assert "text" not in written


def test_output_is_for_fix(ringleaf: Ringleaf) -> None:
    done = ringleaf("conf", "check", "examples/conf/busy.conf", "--output", "x")

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("ringleaf: --output goes with --fix")


SLIPPED: Final = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: volcano-scheduler-configmap
data:
  volcano-scheduler.conf: |
    actions: "enqueue, allocate"
    tiers:
    - plugins:
      - name: priority
  - plugins:
    - name: drf
      enableHierarchy: false
     - plugins:
       - name: binpack
   configurations:
    - name: init-params
      arguments:
        super-pod-size: 48
  other: text
---
kind: Service
"""


def test_a_configuration_inside_a_configmap_is_mended(ringleaf: Ringleaf) -> None:
    before = ringleaf("conf", "check", "-", stdin=SLIPPED)
    done = ringleaf("conf", "check", "-", "--fix", stdin=SLIPPED)

    assert before.status == 2
    assert done.status == 0, done.err
    assert done.err.splitlines()[:3] == [
        "fixed: lines 11 to 13: moved 2 columns right",
        "fixed: lines 14 to 15: moved 1 column left",
        "fixed: lines 16 to 19: moved 1 column right",
    ]
    found = json.loads(ringleaf("conf", "check", "-", "--json", stdin=done.out).out)
    assert [[p["plugin"] for p in tier] for tier in found["tiers"]] == [
        ["priority"],
        ["drf"],
        ["binpack"],
    ]
    assert done.out.endswith("  other: text\n---\nkind: Service\n")


def test_lines_without_a_place_of_their_own_are_moved_to_the_margin(
    ringleaf: Ringleaf,
) -> None:
    text = "  actions: allocate\n# a word\n  configurations:\n- name: other\n"

    done = ringleaf("conf", "check", "-", "--fix", stdin=text)

    assert done.status == 0
    assert done.out == text.replace("- name", "  - name")


def test_what_can_be_read_is_written_as_it_is(ringleaf: Ringleaf) -> None:
    text = Path("examples/conf/busy.conf").read_text()

    done = ringleaf("conf", "check", "examples/conf/busy.conf", "--fix")

    assert (done.status, done.out) == (0, text)
    told = done.err.splitlines()
    assert told[-2].startswith("examples/conf/busy.conf: no problems")
    assert told[-1] == "nothing to fix"


def test_a_mended_configuration_with_problems_is_not_written(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    new = tmp_path / "new.conf"
    text = " actions: allocate, nope\n tiers:\n - plugins: []\n- plugins: []\n"

    done = ringleaf("conf", "check", "-", "--fix", "--output", str(new), stdin=text)
    told = ringleaf("conf", "check", "-", "--fix", "--json", stdin=text)

    assert (done.status, done.out, new.exists()) == (1, "", False)
    assert "problem: line 1: unknown action 'nope'" in done.err
    assert done.err.endswith("nothing is written: fix these first\n")
    assert told.status == 1
    assert list(json.loads(told.out)) == ["mended", "problems", "warnings"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("actions: [\n", id="nothing to do with columns"),
        pytest.param("const x = `\n", id="Go without a word in it"),
        pytest.param(" a: b\nc: [\n", id="mended, and still no YAML"),
        pytest.param("# nothing\n`: [", id="no line that says something"),
    ],
)
def test_what_cannot_be_mended_is_refused(ringleaf: Ringleaf, text: str) -> None:
    done = ringleaf("conf", "check", "-", "--fix", stdin=text)

    assert (done.status, done.out) == (2, "")
    assert done.err.count("\n") == 1
