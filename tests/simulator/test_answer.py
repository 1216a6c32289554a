"""The bytes of ``ringleaf plan --json``: outside checks rely on them."""

import itertools
import json
import os
import subprocess
import sys
from random import Random
from typing import Any

import msgspec
import pytest
import yaml

from ringleaf.simulator.answer import decide_all, encode
from ringleaf.simulator.outcome import plain
from ringleaf.simulator.run import run
from ringleaf.simulator.scenario import load
from tests.docs.pages import ROOT

TOUR = (ROOT / "examples" / "tour.yaml").read_bytes()


def answers(data: bytes) -> bytes:
    """What ``plan --json`` prints."""
    return b"".join(
        (
            msgspec.json.encode(plain(run(found)))
            if found.is_run
            else encode(*decide_all(found))
        )
        + b"\n"
        for found in load(data)
    )


def ascend910(*chips: int) -> str:
    return ",".join(f"Ascend910-{chip}" for chip in chips)


@pytest.mark.parametrize(
    ("text", "decisions"),
    [
        pytest.param(
            "nodes: [{name: a, product: atlas-800-9000, free: [3]},"
            " {name: b, product: atlas-800-9000, free: [0, 1, 4, 5, 6]}]\n"
            "jobs: [{name: small, chips: 1}]",
            '{"job":"small","verdict":"placed",'
            '"placements":[{"replica":0,"node":"a","chips":[3]}],'
            '"annotations":[{"huawei.com/Ascend910":"Ascend910-3",'
            '"distributed-job":"false","hccl/rankIndex":"0"}]}',
            id="placed",
        ),
        pytest.param(
            "nodes: [{name: 'n{i}', count: 2, product: atlas-800t-a2, leaf: A}]\n"
            "jobs: [{name: gang, replicas: 3, chips: 4}]",
            '{"job":"gang","verdict":"placed","placements":['
            '{"replica":0,"node":"n0","chips":[0,1,2,3],"leaf":"A"},'
            '{"replica":1,"node":"n0","chips":[4,5,6,7],"leaf":"A"},'
            '{"replica":2,"node":"n1","chips":[0,1,2,3],"leaf":"A"}],'
            '"annotations":['
            f'{{"huawei.com/Ascend910":"{ascend910(0, 1, 2, 3)}",'
            '"distributed-job":"true","hccl/rankIndex":"0"},'
            f'{{"huawei.com/Ascend910":"{ascend910(4, 5, 6, 7)}",'
            '"distributed-job":"true","hccl/rankIndex":"1"},'
            f'{{"huawei.com/Ascend910":"{ascend910(0, 1, 2, 3)}",'
            '"distributed-job":"true","hccl/rankIndex":"2"}]}',
            id="a gang under a leaf",
        ),
        pytest.param(
            "nodes: [{name: a, product: atlas-800-9000, free: [0, 1, 4, 5]},"
            " {name: b, product: atlas-800-9000, free: [0]},"
            " {name: c, product: atlas-300t}]\n"
            "jobs: [{name: big, product: atlas-800-9000, chips: 4}]",
            '{"job":"big","verdict":"waiting","wanted":"1 x 4 chips","missing":1,'
            '"reasons":{"other-product":1,"too-few-chips":1,"not-wired-together":1},'
            '"message":"job \'big\' waits: needs 1 x 4 chips, 1 pod has no node; '
            "nodes: "
            "1 of another product, 1 with too few free chips, "
            '1 with enough free chips, but not wired together",'
            '"hint":"needs 4 free chips in one ring; '
            '1 x 2 chips would be placed now"}',
            id="waiting",
        ),
        pytest.param(
            "nodes: []\njobs: [{name: j, chips: 1, product: atlas-300t}]",
            '{"job":"j","verdict":"waiting","wanted":"1 x 1 chips","missing":1,'
            '"reasons":{},'
            '"message":"job \'j\' waits: needs 1 x 1 chips; cannot start on this '
            'cluster, however empty: it has no node of atlas-300t",'
            '"hint":"add nodes of atlas-300t",'
            '"impossible":"cannot start on this cluster, however empty: it has no '
            'node of atlas-300t"}',
            id="waiting for a cluster",
        ),
        pytest.param(
            "nodes: [{name: a, product: atlas-800-9000}]\n"
            "jobs: [{name: bert, chips: 3}]",
            '{"job":"bert","verdict":"invalid","message":"job \'bert\' is invalid: '
            '3 chips in one pod are never wired together on atlas-800-9000",'
            '"hint":"ask for 1 x 4 chips; atlas-800-9000 takes 1, 2, 4 or 8 chips '
            'in one pod, or 8 in each of several"}',
            id="invalid",
        ),
        pytest.param(
            "nodes: [{name: a, product: atlas-800t-a2}]\n"
            "jobs: [{name: j, chips: 1, strategy: card, distributed: true}]",
            '{"job":"j","verdict":"placed",'
            '"placements":[{"replica":0,"node":"a","chips":[0]}],'
            '"annotations":[{"huawei.com/Ascend910":"Ascend910-0",'
            '"distributed-job":"false","hccl/rankIndex":"0"}],'
            '"warnings":["strategy has no effect on atlas-800t-a2",'
            '"distributed has no effect on atlas-800t-a2"]}',
            id="warnings",
        ),
        pytest.param(
            "nodes: [{name: s, product: atlas-900-a3, superpod: 7},"
            " {name: r, product: atlas-900-a3}]\n"
            "jobs: [{name: pod, chips: 4}]",
            '{"job":"pod","verdict":"placed","placements":[{"replica":0,"node":"s",'
            '"chips":[0,1,2,3],"superpod":7,"logical-superpod":0}],'
            f'"annotations":[{{"huawei.com/Ascend910":"{ascend910(0, 1, 2, 3)}",'
            '"distributed-job":"false","hccl/rankIndex":"0",'
            '"super-pod-rank":"0","super-pod-id":"7"}]}',
            id="in a SuperPoD",
        ),
        pytest.param(
            "nodes: [{name: n, product: atlas-800t-a3, superpod: 0, leaf: B}]\n"
            "jobs: [{name: j, chips: 2}]",
            '{"job":"j","verdict":"placed","placements":[{"replica":0,"node":"n",'
            '"chips":[0,1],"superpod":0,"leaf":"B"}],'
            f'"annotations":[{{"huawei.com/Ascend910":"{ascend910(0, 1)}",'
            '"distributed-job":"false","hccl/rankIndex":"0"}]}',
            id="a SuperPoD that the rule does not ask for",
        ),
        pytest.param(
            "nodes: [{name: box, product: atlas-200t-a2-box16,"
            " free: [0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12]}]\n"
            "jobs: [{name: halves, chips: 10}]",
            '{"job":"halves","verdict":"placed","placements":[{"replica":0,'
            '"node":"box","chips":[0,8,1,9,2,10,3,11,4,12]}],"annotations":['
            f'{{"huawei.com/Ascend910":"{ascend910(0, 8, 1, 9, 2, 10, 3, 11, 4, 12)}",'
            '"distributed-job":"false","hccl/rankIndex":"0"}]}',
            id="pairs that face each other, one after the other",
        ),
        pytest.param(
            "nodes: [{name: ü, product: atlas-300i, chips: 4},"
            " {name: d, product: atlas-300i-duo, chips: 2},"
            " {name: m, product: atlas-350-4p-8}]\n"
            "jobs: [{name: x, product: atlas-300i, chips: 2},"
            " {name: y, product: atlas-300i-duo, chips: 1},"
            " {name: z, product: atlas-350-4p-8, chips: 1}]",
            '{"job":"x","verdict":"placed",'
            '"placements":[{"replica":0,"node":"ü","chips":[0,1]}],'
            '"annotations":[{"huawei.com/Ascend310":"Ascend310-0,Ascend310-1",'
            '"distributed-job":"false","hccl/rankIndex":"0"}]},'
            '{"job":"y","verdict":"placed",'
            '"placements":[{"replica":0,"node":"d","chips":[0]}],'
            '"annotations":[{"huawei.com/Ascend310P":"Ascend310P-0",'
            '"distributed-job":"false","hccl/rankIndex":"0"}]},'
            '{"job":"z","verdict":"placed",'
            '"placements":[{"replica":0,"node":"m","chips":[0]}],'
            '"annotations":[{"huawei.com/npu":"npu-0",'
            '"distributed-job":"false","hccl/rankIndex":"0"}]}',
            id="chips by their names in annotations",
        ),
        pytest.param("nodes: []", "", id="no jobs"),
    ],
)
def test_the_bytes_of_an_answer(text: str, decisions: str) -> None:
    line = answers(text.encode()).decode()

    assert line == f'{{"decisions":[{decisions}]}}\n'


def test_one_line_for_each_document() -> None:
    text = b"nodes: []\n---\nnodes: []\njobs: [{name: j, chips: 0, product: 300T}]"
    first, second = answers(text).splitlines()

    assert first == b'{"decisions":[]}'
    assert json.loads(second)["decisions"][0]["verdict"] == "invalid"


def test_jobs_see_what_earlier_jobs_took() -> None:
    text = """
    nodes: [{name: n, product: atlas-300t}]
    jobs: [{name: a, chips: 1}, {name: b, chips: 1}, {name: c, chips: 1}]
    """
    found = json.loads(answers(text.encode()))["decisions"]

    assert [d["verdict"] for d in found] == ["placed", "placed", "waiting"]
    assert [d["placements"][0]["chips"] for d in found[:2]] == [[0], [1]]


def test_a_gang_that_waits_takes_nothing() -> None:
    text = """
    nodes: [{name: n, product: atlas-800t-a2}]
    jobs: [{name: a, replicas: 2, chips: 8}, {name: b, chips: 8}]
    """
    found = json.loads(answers(text.encode()))["decisions"]

    assert [(d["job"], d["verdict"]) for d in found] == [
        ("a", "waiting"),
        ("b", "placed"),
    ]
    assert (found[0]["wanted"], found[0]["missing"]) == ("2 x 8 chips", 1)
    assert found[0]["message"].endswith("nodes: 1 fitting")


def test_the_reasons_and_the_fitting_nodes_account_for_every_node() -> None:
    text = """
    nodes:
      - {name: 'f{i}', count: 3, product: atlas-800-9000}
      - {name: s, product: atlas-800-9000, free: [0, 4]}
      - {name: t, product: atlas-800-9000, ready: false}
      - {name: u, product: atlas-800-9000, faulty: [0]}
      - {name: v, product: atlas-800-9000, network-faulty: [0]}
      - {name: w, product: atlas-300t}
    jobs: [{name: j, product: atlas-800-9000, replicas: 9, chips: 8}]
    """
    (found,) = json.loads(answers(text.encode()))["decisions"]

    assert found["reasons"] == {
        "other-product": 1,
        "not-ready": 1,
        "faulty-chips": 1,
        "network-faulty": 1,
        "too-few-chips": 1,
    }
    assert "; nodes: 3 fitting, 1 of another product" in found["message"]
    assert found["missing"] == 6


def test_the_same_file_gives_the_same_bytes() -> None:
    assert len({answers(TOUR) for _ in range(3)}) == 1


def test_the_order_of_nodes_in_the_file_decides_nothing() -> None:
    """But for the order of leaves, which is that of the file."""
    text = TOUR.decode().partition("---\n")[0]
    document = yaml.safe_load(text)
    random = Random(910)  # noqa: S311 - any order will do, the same every time
    expected = answers(text.encode())
    for _ in range(20):
        random.shuffle(document["nodes"])
        document["nodes"] = [shuffled(random, node) for node in document["nodes"]]

        assert answers(json.dumps(document).encode()) == expected


def shuffled(random: Random, node: dict[str, Any]) -> dict[str, Any]:
    """The same node with its keys and free chips in another order."""
    free = (
        {"free": random.sample(node["free"], len(node["free"]))}
        if "free" in node
        else {}
    )
    return {
        key: free.get(key, node[key]) for key in random.sample(list(node), len(node))
    }


def test_every_order_of_three_alike_nodes_takes_the_lowest_name() -> None:
    nodes = [{"name": name, "product": "atlas-800t-a2"} for name in ("n10", "n2", "N3")]
    jobs = [{"name": "j", "chips": 8}]
    seen = {
        answers(json.dumps({"nodes": order, "jobs": jobs}).encode())
        for order in itertools.permutations(nodes)
    }

    (line,) = seen
    assert b'"node":"N3"' in line


def test_yaml_and_json_give_the_same_bytes() -> None:
    documents = map(json.dumps, yaml.safe_load_all(TOUR))

    assert answers("\n".join(documents).encode()) == answers(TOUR)


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_a_fresh_process_with_other_hashes_gives_the_same_bytes(seed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ringleaf", "plan", "-", "--json"],
        env={**os.environ, "PYTHONHASHSEED": seed},
        input=TOUR,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert done.stdout == answers(TOUR)
