"""Plain values to a scenario: what is accepted, what is refused, and how it is said."""

from typing import Any

import msgspec
import pytest

from ringleaf.model.cluster import Node
from ringleaf.model.fault import Down, FaultMode, Recovery, SubHealth
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Strategy
from ringleaf.model.mask import full_mask, mask_of
from ringleaf.model.placement import LeafAnnotation, Placement
from ringleaf.model.settings import JobRequests, Settings
from ringleaf.policies.products import NO_NPU, PRODUCTS
from ringleaf.simulator import format as form
from ringleaf.simulator import wanted
from ringleaf.simulator.scenario import Scenario, load
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.wanted import ELEMENT_WANTED, WANTED
from tests.simulator.test_damaged import ENTRIES

A2 = PRODUCTS["atlas-800t-a2"]
NODE = "nodes: [{name: a, product: atlas-800t-a2}]\n"
NODES = "nodes: [{name: 'node-{i}', product: atlas-800t-a2, count: 3}]\n"


def one(text: str) -> Scenario:
    (found,) = load(text.encode())
    return found


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        load(text.encode())
    return str(caught.value)


def node(keys: str) -> str:
    return f"nodes: [{{name: a, product: atlas-800t-a2, {keys}}}]"


def job(keys: str) -> str:
    return f"{NODE}jobs: [{{name: j, chips: 1, {keys}}}]"


def running(keys: str) -> str:
    return f"{NODE}running: [{{name: r, chips: 1, placements: [], {keys}}}]"


def placed(keys: str) -> str:
    return running(f"placements: [{{replica: 0, node: a, chips: [], {keys}}}]").replace(
        "placements: [], ", "", 1
    )


def previous(keys: str) -> str:
    return job(f"previous: {{placements: [], {keys}}}")


FROM_0 = "a whole number from 0 to 1000000"
FROM_1 = "a whole number from 1 to 1000000"
CHIPS = "a list of chip numbers"
TEXTS = "a mapping of text to text"
SCHEMA, COMMON = "large-model-schema", "normal-schema"


def moved(placements: str, more: str = "") -> str:
    """One node, and a job of two pods that ran before."""
    return (
        f"{NODE}jobs: [{{name: j, chips: 1, replicas: 2, "
        f"previous: {{placements: [{placements}], {more}}}}}]"
    )


# What is refused: every key with a value it does not want.
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3", "the document is 3, want a mapping with the key 'nodes'"),
        ("[]", "the document is [], want a mapping with the key 'nodes'"),
        ("{}", "nodes is missing, want a list of nodes"),
        ("nodes:", "nodes is null, want a list of nodes"),
        ("nodes: {}", "nodes is {}, want a list of nodes"),
        ("nodes: [a]", "nodes[0] is 'a', want a mapping"),
        (NODE + "about: 3", "about is 3, want text"),
        (NODE + "settings: []", "settings is [], want a mapping of settings"),
        (
            NODE + "leaves: []",
            "leaves is [], want a mapping of leaf names to their state",
        ),
        (NODE + "running: 1", "running is 1, want a list of jobs with placements"),
        (NODE + "running: [1]", "running[0] is 1, want a mapping"),
        (NODE + "jobs: {}", "jobs is {}, want a list of jobs"),
        (NODE + "jobs: [[]]", "jobs[0] is [], want a mapping"),
        ("nodes: [{product: x}]", "nodes[0].name is missing, want text"),
        (
            "nodes: [{name: a}]",
            "nodes[0].product is missing, want a product of the catalogue",
        ),
        ("nodes: [{name: 1}]", "nodes[0].name is 1, want text"),
        (
            "nodes: [{product: 1}]",
            "nodes[0].product is 1, want a product of the catalogue",
        ),
        (node("count: 0"), "nodes[0].count is 0, want a whole number from 1 to 100000"),
        (
            node("count: 1000000000"),
            "nodes[0].count is 1000000000, want a whole number from 1 to 100000",
        ),
        (node("free: 1"), f"nodes[0].free is 1, want {CHIPS}"),
        (node("free: [-1]"), "nodes[0].free[0] is -1, want a chip number"),
        (node("faulty: x"), f"nodes[0].faulty is 'x', want {CHIPS}"),
        (node("faulty: [0, x]"), "nodes[0].faulty[1] is 'x', want a chip number"),
        (node("network-faulty: {}"), f"nodes[0].network-faulty is {{}}, want {CHIPS}"),
        (
            node("network-faulty: [1.0]"),
            "nodes[0].network-faulty[0] is 1.0, want a chip number",
        ),
        (node("sub-healthy: 1"), "nodes[0].sub-healthy is 1, want true or false"),
        (node("chips: 0"), f"nodes[0].chips is 0, want {FROM_1}, of the node"),
        (node("leaf: 7"), "nodes[0].leaf is 7, want the name of a leaf switch"),
        (node("slot: -1"), f"nodes[0].slot is -1, want {FROM_0}"),
        (node("superpod: x"), f"nodes[0].superpod is 'x', want {FROM_0}"),
        (node("ready: maybe"), "nodes[0].ready is 'maybe', want true or false"),
        (node("labels: []"), f"nodes[0].labels is [], want {TEXTS}"),
        (node("labels: {a: b, c: 1}"), "nodes[0].labels.c is 1, want text"),
        (node("labels: {a.b/c: 1}"), "nodes[0].labels['a.b/c'] is 1, want text"),
        (node("labels: {'': 1}"), "nodes[0].labels[''] is 1, want text"),
        (
            node("labels: {1: a}"),
            "nodes[0].labels has a key that is not text, want text keys",
        ),
        (
            "nodes: [{1: 2}]",
            "nodes[0] has a key that is not text, want text keys",
        ),
        (
            "nodes: []\nnull: 2",
            "the document has a key that is not text, want text keys",
        ),
        (NODE + "leaves: {A: 1}", "leaves.A is 1, want a mapping"),
        (NODE + "leaves: {a.b: }", "leaves['a.b'] is null, want a mapping"),
        (
            NODE + "leaves: {A: {}, B: {state: busy}}",
            "leaves.B.state is 'busy', want idle, shared or exclusive",
        ),
        (
            NODE + "leaves: {A: {healthy: 1}}",
            "leaves.A.healthy is 1, want true or false",
        ),
        (NODE + "leaves: {A: {address: 1}}", "leaves.A.address is 1, want text"),
        (
            NODE + "leaves: {A: {cross-leaf-jobs: x}}",
            f"leaves.A.cross-leaf-jobs is 'x', want a list of {SCHEMA} and {COMMON}",
        ),
        (
            NODE + "leaves: {A: {cross-leaf-jobs: [x]}}",
            f"leaves.A.cross-leaf-jobs[0] is 'x', want {SCHEMA} or {COMMON}",
        ),
        (
            NODE + "settings: {nslb-version: 3.0}",
            'settings.nslb-version is 3.0, want "1.0" or "2.0"',
        ),
        (
            NODE + "settings: {nslb-version: '3'}",
            'settings.nslb-version is \'3\', want "1.0" or "2.0"',
        ),
        (
            NODE + "settings: {shared-tor-num: 3}",
            "settings.shared-tor-num is 3, want 1 or 2",
        ),
        (
            NODE + "settings: {tor-level: x}",
            "settings.tor-level is 'x', want double_layer or single_layer",
        ),
        (
            NODE + "settings: {super-pod-size: 0}",
            f"settings.super-pod-size is 0, want {FROM_1}",
        ),
        (
            NODE + "settings: {reserve-nodes: -1}",
            f"settings.reserve-nodes is -1, want {FROM_0}",
        ),
        (
            NODE + "settings: {nodes-per-leaf: 0}",
            f"settings.nodes-per-leaf is 0, want {FROM_1}",
        ),
        (
            NODE + "settings: {job-requests: x}",
            "settings.job-requests is 'x', want strict or per-pod",
        ),
        (
            NODE + "settings: {share-common-leaves: 1}",
            "settings.share-common-leaves is 1, want true or false",
        ),
        (NODE + "jobs: [{chips: 1}]", "jobs[0].name is missing, want text"),
        (
            NODE + "jobs: [{name: j}]",
            f"jobs[0].chips is missing, want {FROM_0}, per pod",
        ),
        (
            NODE + "jobs: [{name: j, chips: x}]",
            f"jobs[0].chips is 'x', want {FROM_0}, per pod",
        ),
        (job("replicas: 0"), f"jobs[0].replicas is 0, want {FROM_1}"),
        (job("product: 1"), "jobs[0].product is 1, want a product of the catalogue"),
        (
            job("tor-affinity: x"),
            f"jobs[0].tor-affinity is 'x', want {SCHEMA}, {COMMON} or null",
        ),
        (job("sp-block: -1"), f"jobs[0].sp-block is -1, want {FROM_0}"),
        (job("finished: [-1]"), f"jobs[0].finished[0] is -1, want {FROM_0}"),
        (
            job("finished: [7, 0]"),
            (
                "jobs[0].finished[1] is 0, already that of another pod; hint: give the "
                "pods that are left other ranks (rank-index)"
            ),
        ),
        (
            job("finished: [7, 7]"),
            (
                "jobs[0].finished[1] is 7, already that of another pod; hint: give the "
                "pods that are left other ranks (rank-index)"
            ),
        ),
        (
            job("super-pod-affinity: x"),
            "jobs[0].super-pod-affinity is 'x', want hard or soft",
        ),
        (job("strategy: x"), "jobs[0].strategy is 'x', want card or chip"),
        (job("distributed: 1"), "jobs[0].distributed is 1, want true or false"),
        (job("previous: 1"), "jobs[0].previous is 1, want a mapping with placements"),
        (
            job("previous: {}"),
            "jobs[0].previous.placements is missing, want a list of placements",
        ),
        (
            previous("failed-nodes: a"),
            "jobs[0].previous.failed-nodes is 'a', want a list of node names",
        ),
        (
            previous("failed-nodes: [1]"),
            "jobs[0].previous.failed-nodes[0] is 1, want the name of a node",
        ),
        (previous("keep: x"), "jobs[0].previous.keep is 'x', want pods or job"),
        (
            NODE + "running: [{name: r, chips: 1}]",
            "running[0].placements is missing, want a list of placements",
        ),
        (
            NODE + "running: [{name: r, chips: 1, placements: x}]",
            "running[0].placements is 'x', want a list of placements",
        ),
        (
            NODE + "running: [{name: r, chips: 1, placements: [x]}]",
            "running[0].placements[0] is 'x', want a mapping",
        ),
        (
            NODE + "running: [{name: r, chips: 1, placements: [{}]}]",
            f"running[0].placements[0].replica is missing, want {FROM_0}",
        ),
        (
            NODE + "running: [{name: r, chips: 1, placements: [{replica: 0}]}]",
            "running[0].placements[0].node is missing, want the name of a node",
        ),
        (
            NODE
            + "running: [{name: r, chips: 1, placements: [{replica: 0, node: a}]}]",
            f"running[0].placements[0].chips is missing, want {CHIPS}",
        ),
        (
            NODE
            + "running: [{name: r, chips: 1, "
            + "placements: [{replica: 0, node: a, chips: [x]}]}]",
            "running[0].placements[0].chips[0] is 'x', want a chip number",
        ),
        (
            placed("annotations: x"),
            f"running[0].placements[0].annotations is 'x', want {TEXTS}",
        ),
        (
            placed("annotations: {isSharedTor: 1}"),
            "running[0].placements[0].annotations.isSharedTor is 1, want text",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_told_with_its_place_and_what_is_wanted(
    text: str, message: str
) -> None:
    assert refusal(text) == message


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        (NODE + "node: []", "the document has the unknown key 'node'", "nodes"),
        (node("fre: []"), "nodes[0] has the unknown key 'fre'", "free"),
        (
            NODE + "settings: {tor-num: 1}",
            "settings has the unknown key 'tor-num'",
            "shared-tor-num",
        ),
        (
            NODE + "leaves: {nodes: {stat: idle}}",
            "leaves.nodes has the unknown key 'stat'",
            "state",
        ),
        (job("chip: 1"), "jobs[0] has the unknown key 'chip'", "chips"),
        (previous("kep: job"), "jobs[0].previous has the unknown key 'kep'", "keep"),
        (
            running("placement: 1"),
            "running[0] has the unknown key 'placement'",
            "placements",
        ),
        (
            placed("chip: [0]"),
            "running[0].placements[0] has the unknown key 'chip'",
            "chips",
        ),
    ],
)
def test_an_unknown_key_is_told_with_the_key_it_resembles(
    text: str, place: str, hint: str
) -> None:
    assert refusal(text) == f"{place}; hint: did you mean {hint!r}?"


@pytest.mark.parametrize(
    ("text", "place", "entry"),
    [
        (NODE + "expect: []", "the document has the unknown key 'expect'", ENTRIES[0]),
        (NODE + "settings: {z: 1}", "settings has the unknown key 'z'", ENTRIES[1]),
        (node("gpu: 1"), "nodes[0] has the unknown key 'gpu'", ENTRIES[2]),
        (
            NODE + "leaves: {a.b: {jobs: []}}",
            "leaves['a.b'] has the unknown key 'jobs'",
            ENTRIES[3],
        ),
        (running("z: 1"), "running[0] has the unknown key 'z'", ENTRIES[4]),
        (
            placed("z: 1"),
            "running[0].placements[0] has the unknown key 'z'",
            ENTRIES[5],
        ),
        (previous("z: 1"), "jobs[0].previous has the unknown key 'z'", ENTRIES[6]),
        (
            job("placements: []"),
            "jobs[0] has the unknown key 'placements'",
            ENTRIES[7],
        ),
        (
            "nodes: []\n'x` - at `$.foo': 1",
            "the document has the unknown key 'x` - at `$.foo'",
            ENTRIES[0],
        ),
        (
            "nodes: [{'x` - at `$.jobs': 1}]",
            "nodes[0] has the unknown key 'x` - at `$.jobs'",
            ENTRIES[2],
        ),
    ],
)
def test_an_unknown_key_is_told_with_the_keys_that_may_stand_there(
    text: str,
    place: str,
    entry: Any,  # noqa: ANN401
) -> None:
    fields = msgspec.structs.fields(entry)
    own = [f for f in fields if f.name in entry.__annotations__]
    first = [f for f in (*own, *fields) if f.required] + own
    keys = [*dict.fromkeys(f.encode_name for f in (*first, *fields))]
    more = [f"… {len(keys) - 12} more"] * (len(keys) > 12)

    assert refusal(text) == f"{place}; hint: it may have {', '.join(keys[:12] + more)}"


# What types cannot tell.
@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "nodes: [{name: a, product: atlas-800-a2}]",
            "nodes[0].product is 'atlas-800-a2', want a product of the catalogue; "
            "hint: did you mean 'atlas-800t-a2'?",
            id="unknown product",
        ),
        pytest.param(
            NODE + "jobs: [{name: j, chips: 1, product: H100}]",
            "jobs[0].product is 'H100', want a product of the catalogue; "
            "hint: ringleaf products lists them",
            id="unknown product of a job",
        ),
        pytest.param(
            running("product: tpu"),
            "running[0].product is 'tpu', want a product of the catalogue; "
            "hint: ringleaf products lists them",
            id="unknown product of a running job",
        ),
        pytest.param(
            'nodes: [{name: "a\\nb", product: atlas-800t-a2}]',
            r"nodes[0].name is 'a\nb', want 1 to 253 printable characters",
            id="name of two lines",
        ),
        pytest.param(
            "nodes: [{name: '', product: atlas-800t-a2}]",
            "nodes[0].name is '', want 1 to 253 printable characters",
            id="empty name",
        ),
        pytest.param(
            f"nodes: [{{name: {'x' * 254}, product: atlas-800t-a2}}]",
            f"nodes[0].name is '{'x' * 58}…, want 1 to 253 printable characters",
            id="long name",
        ),
        pytest.param(
            f"nodes: [{{name: '{'{i}' * 64}', product: atlas-800t-a2, count: 10001}}]",
            f"nodes[0].name is '{'1' + '0000' + '1' + '0000' + ('10000' * 10)[:48]}…, "
            "want 1 to 253 printable characters",
            id="name that gets long by counting",
        ),
        pytest.param(
            node('leaf: "\\e[31m"'),
            r"nodes[0].leaf is '\x1b[31m', want 1 to 253 printable characters",
            id="leaf that speaks to the terminal",
        ),
        pytest.param(
            "nodes: [{name: a, product: atlas-800t-a2, count: 2}]",
            "nodes[0].name is 'a' for 2 nodes, want '{i}' in it; hint: name: \"a-{i}\"",
            id="count without a place for it",
        ),
        pytest.param(
            "nodes: [{name: a, product: atlas-300t}, {name: a, product: atlas-300t}]",
            "nodes[1].name is 'a', already the name of nodes[0]",
            id="node name twice",
        ),
        pytest.param(
            NODES + "jobs: [{name: j, chips: 1}, {name: j, chips: 1}]",
            "jobs[1].name is 'j', already the name of a job",
            id="job name twice",
        ),
        pytest.param(
            running("") + "\njobs: [{name: r, chips: 1}]",
            "jobs[0].name is 'r', already the name of a job",
            id="name of a running job",
        ),
        pytest.param(
            "nodes: [{name: a, product: atlas-300t},"
            "{name: 'n{i}', product: atlas-300t, count: 100000}]",
            "nodes[1] brings the nodes to 100001, want at most 100000",
            id="too many nodes",
        ),
        pytest.param(
            "nodes: [" + "{}, " * 100_001 + "]",
            "nodes are 100001, want at most 100000",
            id="too many entries",
        ),
        pytest.param(
            node("chips: 16"),
            "nodes[0].chips is 16, want 8 or no such key; "
            "hint: every atlas-800t-a2 has 8 chips",
            id="size of a product that comes in one",
        ),
        pytest.param(
            "nodes: [{name: a, product: atlas-300i}]",
            "nodes[0].chips is missing, want a whole number from 1 to 64; "
            "hint: atlas-300i has several sizes",
            id="no size",
        ),
        pytest.param(
            "nodes: [{name: a, product: atlas-300i-duo, chips: 33}]",
            "nodes[0].chips is 33, want a whole number from 1 to 32",
            id="too large",
        ),
        pytest.param(
            node("free: [0, 8]"),
            "nodes[0].free[1] is 8, want a chip from 0 to 7",
            id="free chip that is not there",
        ),
        pytest.param(
            node("faulty: [8]"),
            "nodes[0].faulty[0] is 8, want a chip from 0 to 7",
            id="faulty chip that is not there",
        ),
        pytest.param(
            node("network-faulty: [8]"),
            "nodes[0].network-faulty[0] is 8, want a chip from 0 to 7",
            id="network-faulty chip that is not there",
        ),
        pytest.param(
            "nodes: [{name: a, product: atlas-300i, chips: 4, free: [4]}]",
            "nodes[0].free[0] is 4, want a chip from 0 to 3",
            id="chip that this size does not have",
        ),
        pytest.param(
            NODES + "running: [{name: r, chips: 1, placements: "
            "[{replica: 0, node: nod-2, chips: [0]}]}]",
            "running[0].placements[0].node is 'nod-2', want the name of a node; "
            "hint: did you mean 'node-2'?",
            id="unknown node",
        ),
        pytest.param(
            NODE + "running: [{name: r, chips: 1, placements: "
            "[{replica: 0, node: xyz, chips: [0]}]}]",
            "running[0].placements[0].node is 'xyz', want the name of a node; "
            "hint: nodes are listed under nodes",
            id="unknown node, nothing like it",
        ),
        pytest.param(
            NODE + "running: [{name: r, chips: 1, placements: "
            "[{replica: 0, node: a, chips: [8]}]}]",
            "running[0].placements[0].chips[0] is 8, want a chip from 0 to 7",
            id="held chip that is not there",
        ),
        pytest.param(
            NODE + "running: [{name: r, chips: 1, placements: "
            "[{replica: 0, node: a, chips: [3, 3]}]}]",
            "running[0].placements[0].chips[1] is 3 of node 'a', "
            "already held by running[0].placements[0].chips[0]",
            id="chip held twice by one pod",
        ),
        pytest.param(
            NODE + "running:\n"
            "- {name: r, chips: 1, placements: [{replica: 0, node: a, chips: [3]}]}\n"
            "- {name: s, chips: 1, placements: [{replica: 0, node: a, chips: [2, 3]}]}",
            "running[1].placements[0].chips[1] is 3 of node 'a', "
            "already held by running[0].placements[0].chips[0]",
            id="chip held by two jobs",
        ),
        pytest.param(
            "settings: {nodes-per-leaf: 2}\n"
            "nodes: [{name: 'n{i}', product: atlas-800t-a2, count: 3, leaf: A}]",
            "nodes[0].leaf is 'A', which then has 3 nodes, "
            "want at most nodes-per-leaf, 2",
            id="leaf too big",
        ),
        pytest.param(
            "settings: {nodes-per-leaf: 2}\n"
            "nodes: [{name: a, product: atlas-800t-a2, leaf: A, slot: 2}]",
            "nodes[0].slot is 2, want 0 to 1",
            id="slot outside",
        ),
        pytest.param(
            node("leaf: A, slot: 1"),
            "nodes[0].slot is 1, want 0 to 0",
            id="slot outside the largest leaf",
        ),
        pytest.param(
            "nodes: [{name: a, product: atlas-800t-a2, leaf: A, slot: 1},"
            "{name: b, product: atlas-800t-a2, leaf: A, slot: 1}]",
            "nodes[1].slot is 1 under leaf 'A', already the slot of nodes[0]",
            id="two nodes in one slot",
        ),
        pytest.param(
            "nodes: [{name: a, product: atlas-800t-a2, leaf: A, slot: 1},"
            "{name: b, product: atlas-800t-a2, leaf: A}]",
            "nodes[1].slot is 1 under leaf 'A', already the slot of nodes[0]",
            id="a slot by order of appearance that is taken",
        ),
        pytest.param(
            "nodes: []\njobs: [{name: j, chips: 1}]",
            "jobs[0].product is missing, want a product of the catalogue; "
            "hint: it may be left out where there is one product; here: no nodes",
            id="no product, no nodes",
        ),
        pytest.param(
            "nodes: [{name: a, product: atlas-800t-a2}, {name: b, product: atlas-300t}]"
            "\njobs: [{name: j, chips: 1}]",
            "jobs[0].product is missing, want a product of the catalogue; "
            "hint: it may be left out where there is one product; "
            "here: atlas-300t, atlas-800t-a2",
            id="no product, two to choose from",
        ),
        pytest.param(
            "nodes: [{name: a, product: no-npu, faulty: [0]}]",
            "nodes[0].faulty[0] is 0, want no chips",
            id="a faulty chip of a node without chips",
        ),
        pytest.param(
            "nodes: [{name: a, product: no-npu, chips: 8}]",
            "nodes[0].chips is 8, want 0 or no such key; "
            "hint: every no-npu has 0 chips",
            id="chips of a node without chips",
        ),
        pytest.param(
            moved("{replica: 0, node: b, chips: [0]}"),
            "jobs[0].previous.placements[0].node is 'b', want the name of a node; "
            "hint: nodes are listed under nodes",
            id="previous: unknown node",
        ),
        pytest.param(
            moved("{replica: 0, node: a, chips: [8]}"),
            "jobs[0].previous.placements[0].chips[0] is 8, want a chip from 0 to 7",
            id="previous: unknown chip",
        ),
        pytest.param(
            moved("{replica: 2, node: a, chips: [0]}"),
            "jobs[0].previous.placements[0] has rank 2, want 0 to 1",
            id="previous: more replicas than the job has",
        ),
        pytest.param(
            moved(
                "{replica: 0, node: a, chips: [0]}, {replica: 0, node: a, chips: [1]}"
            ),
            "jobs[0].previous.placements[1] has rank 0, "
            "already that of jobs[0].previous.placements[0]",
            id="previous: one replica twice",
        ),
        pytest.param(
            moved(
                "{replica: 0, node: a, chips: [0]}, {replica: 1, node: a, chips: [0]}"
            ),
            "jobs[0].previous.placements[1].chips[0] is 0 of node 'a', "
            "already held by jobs[0].previous.placements[0].chips[0]",
            id="previous: one chip twice",
        ),
        pytest.param(
            moved("", "failed-nodes: [a, z]"),
            "jobs[0].previous.failed-nodes[1] is 'z', want the name of a node; "
            "hint: nodes are listed under nodes",
            id="previous: unknown failed node",
        ),
        pytest.param(
            moved(
                "{replica: 0, node: a, chips: [0], annotations: {hccl/rankIndex: x}}"
            ),
            "jobs[0].previous.placements[0].annotations['hccl/rankIndex'] is 'x', "
            'want "0" to "999999"',
            id="previous: a rank that is no number",
        ),
        pytest.param(
            NODE + "running: [{name: r, chips: 1, placements: [{replica: 0, node: a, "
            'chips: [0], annotations: {isSharedTor: "3"}}]}]',
            "running[0].placements[0].annotations['isSharedTor'] is '3', "
            'want "0" to "2"',
            id="running: a state there is not",
        ),
    ],
)
def test_what_does_not_hold_together_is_told(text: str, message: str) -> None:
    assert refusal(text) == message


def test_a_problem_names_its_document_where_there_are_several() -> None:
    assert refusal(f"{NODE}---\n{NODE}---\nnodes: 3") == (
        "document 3: nodes is 3, want a list of nodes"
    )
    assert refusal('{"nodes": []}\n{"nodes": 3}') == (
        "document 2: nodes is 3, want a list of nodes"
    )


def test_nothing_is_read_from_a_file_whose_last_document_is_bad() -> None:
    assert len(load(f"{NODE}---\n{NODE}".encode())) == 2
    assert refusal(f"{NODE}---\n{NODE}---\nx: 1").startswith("document 3: ")


def test_a_request_that_is_never_legal_is_a_decision_not_a_bad_file() -> None:
    """Several pods of 4 on atlas-900-a3: the answer is invalid, the file is good."""
    found = one(
        "nodes: [{name: n, product: atlas-900-a3, superpod: 0}]\n"
        "jobs: [{name: j, chips: 4, replicas: 2}, {name: k, chips: 0}]"
    )

    assert [job.chips for job in found.jobs] == [4, 0]


# What is accepted.
def test_the_least_scenario_has_defaults_for_everything() -> None:
    assert one(NODE) == Scenario(
        about=None,
        settings=Settings(job_requests=JobRequests.STRICT),
        nodes=(
            Node(
                name="a",
                product=A2,
                chips=8,
                free=full_mask(8),
                faulty=0,
                network_faulty=0,
                ready=True,
                sub_healthy=False,
                superpod=None,
                leaf=None,
            ),
        ),
        leaves=(),
        running={},
        jobs=(),
        warnings=(),
    )


def test_a_job_has_defaults() -> None:
    (found,) = one(f"{NODE}jobs: [{{name: j, chips: 2}}]").jobs

    assert found == Job("j", A2, 2, replicas=1, strategy=None, distributed=False)


def test_every_key_of_a_node_and_a_job_is_read() -> None:
    found = one(
        "about: x\nsettings: {job-requests: per-pod}\n"
        "nodes: [{name: a, product: atlas-800t-a2, free: [0, 1], faulty: [7], "
        "network-faulty: [6], sub-healthy: true, chips: 8, leaf: A, slot: 0, "
        "superpod: 3, ready: false, labels: {zone: z}, weak: [5], down: switch}]\n"
        "jobs: [{name: j, replicas: 2, chips: 4, product: atlas-300t, "
        "strategy: card, distributed: true}]"
    )

    assert found.about == "x"
    assert found.settings.job_requests is JobRequests.PER_POD
    assert found.nodes == (
        Node(
            name="a",
            product=A2,
            chips=8,
            free=mask_of([0, 1]),
            faulty=mask_of([7]),
            network_faulty=mask_of([6]),
            ready=False,
            sub_healthy=True,
            superpod=3,
            leaf="A",
            labels={"zone": "z"},
            unhealthy=mask_of([7]),
            weak=mask_of([5]),
            down=Down.SWITCH,
        ),
    )
    assert found.jobs == (
        Job("j", PRODUCTS["atlas-300t"], 4, 2, Strategy.CARD, distributed=True),
    )


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("", Recovery()),
        (
            "fault-scheduling: force, fault-retry-times: 3, master: null",
            Recovery(mode=FaultMode.FORCE, retries=3, master=None),
        ),
        (
            "process-recover-enable: true, sub-healthy-strategy: hotSwitch",
            Recovery(process=True, sub_health=SubHealth.HOT_SWITCH),
        ),
        ("pod-rescheduling: true", Recovery(pods_only=True)),
        ("recover-policy-path: pod", Recovery(pods_only=True, escalates=False)),
        ("pod-rescheduling: true, recover-policy-path: job", Recovery()),
        (
            "pod-rescheduling: true, recover-policy-path: 'pod,job'",
            Recovery(pods_only=True),
        ),
    ],
)
def test_what_a_job_wants_done_with_faulty_pods(keys: str, wanted: Recovery) -> None:
    (found,) = one(job(keys)).jobs

    assert found.recovery == wanted


@pytest.mark.parametrize(
    ("keys", "weak_switch", "sub_healthy"),
    [
        ("", False, False),
        ("sub-healthy: true", True, True),
        ("weak: [1]", False, True),
        ("weak: [1], weak-switch: true", True, True),
        ("sub-healthy: true, weak-switch: false", False, True),
    ],
)
def test_a_weak_chip_or_switch_makes_a_node_sub_healthy(
    keys: str,
    weak_switch: bool,  # noqa: FBT001
    sub_healthy: bool,  # noqa: FBT001
) -> None:
    (found,) = one(node(keys)).nodes

    assert (found.weak_switch, found.sub_healthy) == (weak_switch, sub_healthy)


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        ("name: 'n{i}', count: 3", ["n0", "n1", "n2"]),
        ("name: 'r{i}-{i}', count: 2", ["r0-0", "r1-1"]),
        ("name: n, count: 1", ["n"]),
        ("name: 'n{i}'", ["n{i}"]),
        ("name: 'n{j}'", ["n{j}"]),
        ("name: ß漢字-😀", ["ß漢字-😀"]),
    ],
)
def test_names_count_from_0(keys: str, names: list[str]) -> None:
    found = one(f"nodes: [{{product: atlas-300t, {keys}}}]")

    assert [node.name for node in found.nodes] == names


@pytest.mark.parametrize(
    "name",
    [
        "atlas-800t-a2",
        "ATLAS-800T-A2",
        "800T A2",
        "Atlas 800T A2 training server",
        "Atlas 800T A2",
        "atlas_800t_a2",
    ],
)
def test_a_product_goes_by_any_of_its_names(name: str) -> None:
    found = one(
        f"nodes: [{{name: n, product: {name}}}]\n"
        f"jobs: [{{name: j, chips: 1, product: {name}}}]"
    )

    assert found.nodes[0].product is A2
    assert found.jobs[0].product is A2


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(NODE + "settings: {nslb-version: 2.0}", id="version unquoted"),
        pytest.param(NODE + "settings: {nslb-version: '1.0'}", id="version quoted"),
        pytest.param(job("tor-affinity: null"), id="tor-affinity null"),
        pytest.param(job("tor-affinity: 'null'"), id="tor-affinity null as text"),
        pytest.param(job("previous: null"), id="no previous"),
        pytest.param(node("leaf: null, slot: null, superpod: null"), id="nothing said"),
        pytest.param(node("free: [1, 1]"), id="a free chip said twice"),
        pytest.param(
            NODE + "settings: {}\nleaves: {}\nrunning: []\njobs: []", id="empty"
        ),
        pytest.param("nodes: []", id="no nodes"),
        pytest.param('{"nodes": [{"name": "a", "product": "atlas-300t"}]}', id="JSON"),
        pytest.param(
            running("tor-affinity: normal-schema, sp-block: 16, replicas: 2"),
            id="network keys of a running job",
        ),
        pytest.param(
            "nodes: [{name: a, product: atlas-800t-a2, leaf: A, slot: 1},"
            "{name: b, product: atlas-800t-a2, leaf: A, slot: 0}]",
            id="slots in any order",
        ),
        pytest.param(
            "nodes: [&n {name: a, product: atlas-300t}, {<<: *n, name: b}]", id="merge"
        ),
    ],
)
def test_this_is_accepted_without_a_word(text: str) -> None:
    assert one(text).warnings == ()


def test_the_one_product_with_chips_need_not_be_named() -> None:
    text = "nodes: [{name: c, product: no-npu}, {name: n, product: atlas-800t-a2}]\n"

    found = one(f"{text}jobs: [{{name: j, chips: 8}}]")

    assert found.jobs[0].product is PRODUCTS["atlas-800t-a2"]
    assert found.nodes[0] == Node("c", NO_NPU, 0, 0)


def test_a_running_job_is_of_the_product_whose_chips_it_holds() -> None:
    found = one(
        """
nodes: [{name: c, product: no-npu}, {name: n, product: atlas-800t-a2},
        {name: m, product: atlas-800-9000}]
running:
  - name: j
    roles: [{name: d, chips: 0}, {name: w, chips: 8}]
    placements:
      - {replica: 1, node: c, chips: []}
      - {replica: 0, node: n, chips: [0, 1, 2, 3, 4, 5, 6, 7]}
then: []
"""
    )

    assert found.tenants[0].job.product is PRODUCTS["atlas-800t-a2"]


def test_several_documents_are_several_scenarios() -> None:
    texts = [
        f"{NODE}---\n{NODES}",
        '{"nodes": []}\n{"nodes": []}',
        f"\ufeff{NODE}---\n",
    ]

    assert [len(load(text.encode())) for text in texts] == [2, 2, 1]


@pytest.mark.parametrize(
    ("keys", "free"),
    [("", [2, 3, 4, 5, 6, 7]), ("free: [0, 5], ", [5]), ("free: [], ", [])],
)
def test_chips_in_running_are_not_free_whatever_free_says(
    keys: str, free: list[int]
) -> None:
    found = one(
        node(keys) + "\nrunning: [{name: old, chips: 8, replicas: 2, "
        "placements: [{replica: 0, node: a, chips: [0]}, "
        "{replica: 1, node: a, chips: [1]}]}]"
    )
    session = found.open()

    assert found.nodes[0].free == mask_of(free)
    assert session.cluster.free.item(0) == mask_of(free)
    assert [p.chips for p in found.running["old"]] == [(0,), (1,)]
    assert list(session.cluster.holdings) == ["old"]


def test_a_running_job_may_hold_other_chips_than_it_asks_for() -> None:
    """The format's own example: pods of 8 chips that hold 2."""
    found = one(
        NODE + "running: [{name: old, replicas: 2, chips: 8, "
        "placements: [{replica: 0, node: a, chips: [0, 1]}]}]"
    )

    assert found.running == {"old": (Placement(0, "a", (0, 1), mark=LeafAnnotation()),)}


def test_a_chip_may_be_faulty_and_held() -> None:
    found = one(
        node("faulty: [0]") + "\nrunning: [{name: r, chips: 1, "
        "placements: [{replica: 0, node: a, chips: [0]}]}]"
    )

    assert found.open().cluster.free.item(0) == full_mask(8) & ~1


@pytest.mark.parametrize(
    ("product", "chips"),
    [("atlas-300i", 64), ("atlas-300i", 1), ("atlas-300i-duo", 32), ("atlas-310p", 7)],
)
def test_products_that_come_in_sizes_say_theirs(product: str, chips: int) -> None:
    (found,) = one(f"nodes: [{{name: a, product: {product}, chips: {chips}}}]").nodes

    assert (found.chips, found.free) == (chips, full_mask(chips))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("reserve-nodes: 48", "reserve-nodes is 48, not below super-pod-size 48: 2"),
        ("super-pod-size: 2", "reserve-nodes is 2, not below super-pod-size 2: 0"),
        (
            "super-pod-size: 3, reserve-nodes: 9",
            "reserve-nodes is 9, not below super-pod-size 3: 2",
        ),
    ],
)
def test_a_reserve_that_is_no_reserve_is_a_warning(settings: str, told: str) -> None:
    found = one(f"{NODE}settings: {{{settings}}}")

    assert found.warnings == (f"settings.{told} is used",)


@pytest.mark.parametrize("settings", ["reserve-nodes: 47", "reserve-nodes: 0"])
def test_a_smaller_reserve_is_none(settings: str) -> None:
    assert one(f"{NODE}settings: {{{settings}}}").warnings == ()


# The tables of messages are whole.
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_key_has_a_line_that_says_what_it_wants(entry: Any) -> None:  # noqa: ANN401
    lines = [
        wanted.wanted_at(entry, key, element=False)
        for key in entry.__struct_encode_fields__
    ]

    assert all(lines)


@pytest.mark.parametrize(
    ("entry", "key", "line"),
    [
        (form.NodeEntry, "ready", "true or false"),
        (form.NodeEntry, "name", "text"),
        (form.NodeEntry, "labels", "a mapping of text to text"),
        (form.SettingsEntry, "grace-over-time", "a whole number from 2 to 3600"),
        (form.RunTimeEntry, "most-seconds", "a whole number from 1 to 2147483648"),
        (form.JobEntry, "strategy", "card or chip"),
        (form.JobEntry, "estimate-seconds", "a number of seconds above 0"),
        (form.FaultEntry, "until", "a time in seconds"),
        (form.QueueEntry, "state", "open or closed"),
        (form.LeafEntry, "state", "idle, shared or exclusive"),
    ],
)
def test_what_a_type_says_is_not_written_again(entry: Any, key: str, line: str) -> None:  # noqa: ANN401
    assert wanted.wanted_at(entry, key, element=False) == line
    assert key not in WANTED


def test_every_line_is_of_a_key_that_exists() -> None:
    entries = (*ENTRIES, form.LogEntry, form.StepEntry)
    keys = {key for entry in entries for key in entry.__struct_encode_fields__}

    assert set(WANTED) <= keys
    assert set(ELEMENT_WANTED) <= keys


def test_every_list_of_plain_values_says_what_an_element_wants() -> None:
    plain = {
        field.encode_name
        for entry in ENTRIES
        for field in msgspec.structs.fields(entry)
        if "list[" in str(field.type) and "Entry" not in str(field.type)
        if (entry, field.encode_name) not in wanted.OWN_ELEMENT_WANTED
    }

    assert plain - {"chips"} <= set(ELEMENT_WANTED)
    assert plain >= {"free", "failed-nodes", "cross-leaf-jobs"}


def test_what_a_key_wants_in_one_place_is_of_a_key_there() -> None:
    for entry, key in (*wanted.OWN_WANTED, *wanted.OWN_ELEMENT_WANTED):
        assert key in entry.__struct_encode_fields__


def test_every_entry_of_the_format_is_tested() -> None:
    known = {each for name, each in vars(form).items() if name.endswith("Entry")}

    of_logs = {form.LogEntry, form.StepEntry}
    assert known - {form._Entry, form.PodEntry} - of_logs == set(ENTRIES)  # noqa: SLF001
