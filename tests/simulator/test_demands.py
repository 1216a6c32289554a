"""Resources, labels and taints in scenarios."""

import pytest

from ringleaf.model.demand import (
    Demand,
    Effect,
    Match,
    Operator,
    Requirement,
    Taint,
    Toleration,
)
from ringleaf.simulator.answer import answer, decide_all
from ringleaf.simulator.demands import quantity
from ringleaf.simulator.scenario import load
from ringleaf.simulator.source import BadInput


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        (4, 4_000),
        ("4", 4_000),
        (0.5, 500),
        ("500m", 500),
        ("1.25", 1_250),
        ("2k", 2_000_000),
        ("1Ki", 1_024_000),
        ("64Gi", 64 * 2**30 * 1000),
        ("1.5Gi", 3 * 2**29 * 1000),
        ("1M", 10**9),
        ("0", 0),
    ],
    ids=str,
)
def test_amounts_are_read_as_kubernetes_writes_them(
    written: object, amount: int
) -> None:
    assert quantity("x", written) == amount


@pytest.mark.parametrize("written", ["-1", "1e3", "1 Gi", "Gi", "", True, "1Zi", "x"])
def test_other_amounts_are_refused(written: object) -> None:
    with pytest.raises(BadInput, match="want an amount such as 4, 500m, 64Gi"):
        quantity("x", written)


def test_an_amount_has_an_end() -> None:
    with pytest.raises(BadInput, match=r"want less than 2\^61 thousandths"):
        quantity("x", "9E")


SCENARIO = """
nodes:
  - name: a
    product: atlas-800t-a2
    labels: {zone: east}
    taints: [{key: npu, value: train, effect: NoSchedule}]
    resources: {cpu: 64, memory: 1Gi}
    unschedulable: true
jobs:
  - name: j
    chips: 1
    resources: {memory: 1Mi, cpu: 500m}
    node-selector: {zone: east, arm: "yes"}
    node-affinity:
      - match-expressions:
          - {key: zone, operator: In, values: [east, west]}
          - {key: row, operator: Gt, values: ["3"]}
    tolerations:
      - {key: npu, operator: Exists, effect: NoSchedule}
      - {operator: Exists}
"""


def test_every_key_is_read() -> None:
    (scenario,) = load(SCENARIO.encode())
    (node,), (job,) = scenario.nodes, scenario.jobs

    assert node.cordoned
    assert node.labels == {"zone": "east"}
    assert node.taints == (Taint("npu", Effect.NO_SCHEDULE, "train"),)
    assert node.resources == {"cpu": 64_000, "memory": 2**30 * 1000}
    assert job.demand == Demand(
        resources=(("cpu", 500), ("memory", 2**20 * 1000)),
        required=(
            Requirement("arm", Operator.IN, ("yes",)),
            Requirement("zone", Operator.IN, ("east",)),
        ),
        terms=(
            (
                Requirement("zone", Operator.IN, ("east", "west")),
                Requirement("row", Operator.GREATER, ("3",)),
            ),
        ),
        tolerations=(
            Toleration("npu", Match.EXISTS, effect=Effect.NO_SCHEDULE),
            Toleration(None, Match.EXISTS),
        ),
    )


def job(keys: str) -> str:
    node = "nodes: [{name: a, product: atlas-800t-a2}]"
    return f"{node}\njobs: [{{name: j, chips: 1, {keys}}}]"


def term(text: str) -> str:
    return job(f"node-affinity: [{{match-expressions: [{{{text}}}]}}]")


EFFECT = "want NoSchedule, PreferNoSchedule or NoExecute"
AT = "jobs[0].node-affinity[0].match-expressions[0]"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            job("resources: {cpu: lots}"),
            "jobs[0].resources['cpu'] is 'lots', want an amount such as 4, 500m, 64Gi",
        ),
        (
            job("resources: {cpu: []}"),
            "jobs[0].resources.cpu is [], want an amount such as 4, 500m or 64Gi",
        ),
        (
            job("tolerations: [{effect: Never}]"),
            f"jobs[0].tolerations[0].effect is 'Never', {EFFECT}",
        ),
        (
            job("tolerations: [{}]"),
            "jobs[0].tolerations[0].key is missing, want a key, or operator: Exists",
        ),
        (
            term("key: a, operator: In"),
            f"{AT}.values has 0, want one or more values for In",
        ),
        (
            term("key: a, operator: Exists, values: [b]"),
            f"{AT}.values has 1, want no values for Exists",
        ),
        (
            term("key: a, operator: Gt, values: [b]"),
            f"{AT}.values has 1, want one whole number for Gt",
        ),
        (
            term("key: a, operator: Like, values: [b]"),
            f"{AT}.operator is 'Like', want an operator of Kubernetes",
        ),
        (
            term("key: a, operator: In, vals: [b]"),
            f"{AT} has the unknown key 'vals'; hint: did you mean 'values'?",
        ),
        (
            "nodes: [{name: a, product: atlas-800t-a2, taints: [{key: a}]}]",
            f"nodes[0].taints[0].effect is missing, {EFFECT}",
        ),
    ],
)
def test_bad_demands_are_one_line(text: str, told: str) -> None:
    with pytest.raises(BadInput) as error:
        load(text.encode())

    assert str(error.value) == told


RUNNING = """
nodes: [{name: a, product: atlas-800t-a2, resources: {cpu: 10}}]
running:
  - name: r
    chips: 1
    resources: {cpu: 4}
    placements: [{replica: 0, node: a, chips: [0]}]
jobs:
  - {name: big, chips: 1, resources: {cpu: 7}}
  - {name: two, chips: 1, replicas: 3, resources: {cpu: 3}}
  - {name: fits, chips: 1, resources: {cpu: 6}}
  - {name: late, chips: 1, resources: {cpu: 1m}}
  - {name: free, chips: 1}
"""


def test_what_running_jobs_use_is_gone() -> None:
    (scenario,) = load(RUNNING.encode())
    cluster, decisions = decide_all(scenario)
    told = {decision.job.name: answer(cluster, decision) for decision in decisions}

    assert {name: told[name]["verdict"] for name in told} == {
        "big": "waiting",
        "two": "waiting",
        "fits": "placed",
        "late": "waiting",
        "free": "placed",
    }
    assert told["big"]["reasons"] == {"too-few-resources": 1}
    assert told["two"]["missing"] == 1
    assert told["big"]["hint"] == "needs 1 free chip on one node and 7 cpu"
