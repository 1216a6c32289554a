"""Whatever a tenant writes on pods and PodGroups, nothing fails and others are bound.

The texts are those on which readers of text fail: numbers that are too long, digits of
other scripts, quantities without bounds, lists of chips that cannot be.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.kube import names
from tests.effort import assert_reached, examples
from tests.kube.stage import NPU, Stage, node

Plain = dict[str, Any]
MUST = "requiredDuringSchedulingIgnoredDuringExecution"
MAY = "preferredDuringSchedulingIgnoredDuringExecution"
POOL = "canary"

NUMBERS = [
    *("0", "1", "2", "8", "16", "-1", "+1", " 1", "1.5", "1e9", "0x10", "63", "64"),
    *("0000100", "9" * 9, "9" * 30, "1" * 4400, "0" * 5000 + "5", "2147483647"),
    *("²", "٣", "x²", "job-٣", "Ⅷ"),
]
WORDS = [
    *("", "on", "off", "true", "hard", "soft", "chip", "card", "null", "{}", "[]"),
    *("grace", "force", "pod", "job", "ignore", "hotSwitch", "large-model-schema"),
    *("normal-schema", "chip4-node8", "chip2-node16-sp", "worker", "a" * 70_000),
    *("é" * 300, "\x00", "\ud7ff", "a-" * 5000, "default/g-" + "0" * 300),
]
CHIPS = [
    *("Ascend910-0", "Ascend910-0,Ascend910-0", "Ascend910-1,Ascend910-2"),
    *("Ascend910-63", "Ascend910-64", "Ascend910-0000100", "Ascend910-", "-1", ","),
    *("Ascend910-٣", "Ascend310P-3", "Ascend910-2c-100-0", "Ascend910-1," * 5000),
    ",".join(f"Ascend910-{i}" for i in range(8)),
]
AMOUNTS: list[Any] = [
    *("0", "1", "8", "64", "-1", "9E", "1Ei", "1e20", "1e400", "0.0001", "1n", "abc"),
    *("9223372036854775807", "9223372036854775808", 8, 1.5, 1e300, "²"),
]
LABELS = [
    *(names.TOR_AFFINITY, names.SUPERPOD_AFFINITY, names.STRATEGY, names.DISTRIBUTED),
    *(names.DUO, names.FAULT_SCHEDULING, names.FAULT_RETRIES, names.POD_RESCHEDULING),
    *(names.PROCESS_RECOVER, names.SUB_HEALTHY, names.ELASTIC, names.REPLICA_TYPE),
    *(names.APP, names.TASK, names.TASK_INDEX, names.COMPLETION_INDEX, names.OPERATOR),
    *(names.STATEFUL_POD, names.FRAMEWORK, names.FAULT_TYPE, names.PREEMPTABLE),
]
NOTES = [
    *(names.SP_BLOCK, names.QUEUE_NAME, names.ESTIMATE, names.POLICY, names.RANK),
    *(names.PREDICATE_TIME, names.RECOVER_PATH, names.RECOVER_STRATEGY, names.REPAIR),
    *(names.POD_STATUS, names.OPERATION, names.TASK, names.HIERARCHY, names.LEADER),
    *names.GROUP_NAMES,
]
RESOURCES = ["cpu", "memory", "pods", "x.io/y", NPU, "huawei.com/npu-core", "hugepages"]

texts = st.sampled_from([*NUMBERS, *WORDS]) | st.text(max_size=8)
amounts = st.dictionaries(
    st.sampled_from(RESOURCES), st.sampled_from(AMOUNTS), max_size=2
)
labels = st.dictionaries(st.sampled_from(LABELS), texts, max_size=4)
notes = st.dictionaries(st.sampled_from(NOTES), texts, max_size=4)
chips = st.dictionaries(
    st.sampled_from([NPU, names.REAL]), st.sampled_from(CHIPS), max_size=2
)

_expression = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["app", "k", "metadata.name", ""]),
        "operator": st.sampled_from(["In", "NotIn", "Exists", "Gt", "Lt", "??"]),
        "values": st.lists(st.sampled_from(NUMBERS), max_size=2),
    }
)
_selector = st.none() | st.fixed_dictionaries(
    {"matchExpressions": st.lists(_expression, max_size=2)}
)
_term = st.fixed_dictionaries(
    {
        "topologyKey": st.sampled_from(["zone", "kubernetes.io/hostname", ""]),
        "labelSelector": _selector,
        "namespaceSelector": _selector,
    }
)
_peers = st.fixed_dictionaries(
    {
        MUST: st.lists(_term, max_size=1),
        MAY: st.lists(
            st.fixed_dictionaries(
                {"weight": st.sampled_from([0, 1, 101]), "podAffinityTerm": _term}
            ),
            max_size=1,
        ),
    }
)
_nodes = st.fixed_dictionaries(
    {
        MUST: st.fixed_dictionaries(
            {
                "nodeSelectorTerms": st.lists(
                    st.fixed_dictionaries(
                        {"matchExpressions": st.lists(_expression, max_size=2)}
                    ),
                    max_size=2,
                )
            }
        )
    }
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "nodeName": st.sampled_from(["a", "b", "gone"]),
        "priority": st.sampled_from([0, -(2**31), 5]),
        "overhead": amounts,
        "schedulingGates": st.just([{"name": "g"}]),
        "volumes": st.just([{"persistentVolumeClaim": {"claimName": "c"}}]),
        "tolerations": st.just([{"key": "", "operator": "Lt", "effect": "x"}]),
        "affinity": st.fixed_dictionaries(
            {},
            optional={
                "podAffinity": _peers,
                "podAntiAffinity": _peers,
                "nodeAffinity": _nodes,
            },
        ),
        "topologySpreadConstraints": st.just(
            [{"topologyKey": "zone", "maxSkew": 2**31, "whenUnsatisfiable": "?"}]
        ),
    },
)
pods = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["p0", "p1", "p2", "p3"]),
        "chips": st.sampled_from([0, 1, 2, 4, 8, 16]),
        "group": st.sampled_from(["", "g", "h", "x²", "g-" + "1" * 250]),
        "labels": labels,
        "annotations": st.builds(lambda one, other: one | other, notes, chips),
        "asks": amounts,
        "spec": specs,
        "phase": st.sampled_from(["Pending", "Pending", "Running", "Failed", "?"]),
    }
)
groups = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["g", "h"]),
        "least": st.sampled_from([0, 1, 2, -1, 2**31 - 1]),
        "labels": labels,
        "annotations": notes,
        "minResources": amounts,
        "minTaskMember": st.dictionaries(
            texts, st.sampled_from([0, 1, -1]), max_size=1
        ),
        "queue": st.sampled_from(["default", "root", "none", ""]),
        "phase": st.sampled_from(["", "Pending", "Inqueue", "Running", "Completed"]),
    }
)


def _submit(stage: Stage, given_pod: Mapping[str, Any]) -> None:
    """A pod of that name comes, or takes the place of another."""
    plain = {**given_pod}
    name = plain.pop("name")
    if f"default/{name}" in stage.pods:
        stage.drop_pod(name)
    stage.pod(name, plain.pop("chips"), plain.pop("group"), **plain)


@pytest.mark.slow
def test_whatever_objects_say_others_are_bound() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(1200), deadline=None)
    @given(
        st.lists(pods | groups, min_size=1, max_size=8),
        st.lists(st.sampled_from([0.0, 1.0, 40.0, 700.0]), min_size=2, max_size=4),
    )
    def hold(objects: list[Plain], pauses: list[float]) -> None:
        stage = Stage("a b")
        for number, plain in enumerate(objects):
            if "chips" in plain:
                _submit(stage, plain)
            else:
                rest = {**plain}
                stage.group(rest.pop("name"), rest.pop("least"), **rest)
            stage.cycle(pauses[number % len(pauses)])
        seen["bound"] += any("predicate-time" in _notes(p) for p in stage.pods.values())
        seen["refused"] += bool(stage.cache.problems.unreported)

        where = {"accelerator-type": "module-910b-8", "pool": POOL}
        stage.put_node(node("z", labels=where))
        # Pods that name a node count in their queue, also where they do not fit.
        stage.queue(POOL, weight=1)
        stage.group(POOL, 2, queue=POOL)
        for i in range(2):
            spec = {"nodeSelector": where, "priority": 10**9}
            stage.pod(f"{POOL}-{i}", 4, POOL, spec=spec)
        for pause in (1.0, 40.0, 700.0):
            stage.cycle(pause)
        assert not stage.cache.isolation.failures
        assert {f"{POOL}-{i}" for i in range(2)} <= stage.bound.keys()

    hold()
    assert_reached(seen, "bound", "refused", times=20)


def _notes(plain: Plain) -> Plain:
    found: Plain = plain["metadata"]["annotations"]
    return found
