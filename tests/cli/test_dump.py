"""A dump is a scenario in which everything is decided as on the cluster."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT, read_conf
from ringleaf.engine.engine import Engine
from ringleaf.kube.snapshot import Snapshot
from ringleaf.model.decision import Decision, Invalid, Placed
from ringleaf.simulator.anonymous import Names, anonymous
from ringleaf.simulator.dump import scenario_of, state_of, written
from ringleaf.simulator.run import ScenarioRun, run
from ringleaf.simulator.scenario import load
from tests.effort import assert_reached, examples
from tests.kube.stage import LEARNING, Stage, node

Plain = dict[str, Any]
Told = dict[str, tuple[Any, ...]]

RACKS = ("crimson", "azure")
PREEMPT = {
    "actions": "enqueue, allocate, backfill, preempt, reclaim",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang"}, {"name": "affinity"}]},
        {
            "plugins": [
                {"name": "drf"},
                {"name": "predicates"},
                {"name": "proportion"},
                {"name": "nodeorder"},
                {"name": "binpack"},
            ]
        },
    ],
}


def preempting() -> Conf:
    found = read_conf(PREEMPT)
    assert isinstance(found, Conf)
    return found


def told(engine: Engine, names: Names | None = None, *, in_words: bool) -> Told:
    """What the engine says of every job, by the *names* that it has in a dump.

    Words name jobs, queues and nodes: they are told where those have their own names.
    """
    jobs: Mapping[str, str] = {} if names is None else names.jobs
    nodes: Mapping[str, str] = {} if names is None else names.nodes
    known = {**engine.view.job_states, **engine.invalid}
    return {
        jobs.get(name, name): verdict(engine.explain(name), nodes, in_words=in_words)
        for name in known
    }


def verdict(
    decision: Decision, nodes: Mapping[str, str], *, in_words: bool
) -> tuple[Any, ...]:
    if isinstance(decision, Placed):
        places = sorted(
            (p.replica, nodes.get(p.node, p.node), p.chips) for p in decision.placements
        )
        return ("placed", *places)
    if isinstance(decision, Invalid):
        return ("invalid", decision.message) if in_words else ("invalid",)
    own = (decision.message, decision.hint) if in_words else ()
    return "waiting", decision.missing, dict(decision.reasons), *own


def from_dump(
    look: Snapshot, *, hidden: bool
) -> tuple[ScenarioRun, Names | None, bytes]:
    state, names = state_of(look.events), None
    if hidden:
        state, names = anonymous(state)
    data = written(scenario_of(state, look.now, "a dump"))
    (scenario,) = load(data)
    return run(scenario), names, data


# Worlds.

AFFINITY = {
    "labelSelector": {"matchLabels": {"app": "x"}},
    "topologyKey": "acme.io/rack",
}
PRIORITIES: tuple[Plain, ...] = (
    {},
    {},
    {"priority": 100},
    {"priority": 200},
    {"priority": 100, "preemptionPolicy": "Never"},
)
EXTRAS: tuple[Plain, ...] = (
    {},
    {},
    {},
    {"nodeSelector": {"accelerator-type": "module-910b-8", "acme.io/rack": "crimson"}},
    {"tolerations": [{"key": "acme.io/own", "operator": "Exists"}]},
    {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [AFFINITY]
            }
        }
    },
    {
        "affinity": {
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 10, "podAffinityTerm": AFFINITY}
                ]
            }
        }
    },
    {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 9,
                        "preference": {
                            "matchExpressions": [
                                {
                                    "key": "acme.io/age",
                                    "operator": "Lt",
                                    "values": ["5"],
                                }
                            ]
                        },
                    }
                ]
            }
        }
    },
    {
        "topologySpreadConstraints": [
            {
                "topologyKey": "acme.io/rack",
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "x"}},
            }
        ]
    },
)


@st.composite
def worlds(draw: st.DrawFn) -> Stage:
    """A cluster after some minutes: pods that run, wait, end or cannot be read."""
    n_nodes = draw(st.integers(1, 5))
    found = []
    for name in draw(st.permutations("abcde"))[:n_nodes]:
        labels = {
            "accelerator-type": "module-910b-8",
            "acme.io/rack": draw(st.sampled_from(RACKS)),
            "acme.io/age": str(draw(st.integers(1, 9))),
        }
        tainted = draw(st.integers(0, 5)) == 0
        taint = {"key": "acme.io/own", "effect": "NoSchedule", "value": "zoology"}
        spec = {"taints": [taint]} if tainted else {}
        ready = "False" if draw(st.integers(0, 9)) == 0 else "True"
        found.append(node(name, labels=labels, spec=spec, ready=ready))
    conf = draw(st.sampled_from([DEFAULT, LEARNING, preempting()]))
    stage = Stage(found, conf=conf)
    for name in ("acme", "zoo"):
        stage.queue(name, weight=draw(st.integers(1, 3)))
    for number in range(draw(st.integers(1, 9))):
        _submit(draw, stage, number)
        if draw(st.booleans()):
            stage.cycle(draw(st.sampled_from([0.0, 5.0, 400.0])))
        if draw(st.integers(0, 4)) == 0 and stage.pods:
            _end(draw, stage)
    for number in range(draw(st.integers(0, 2))):
        _submit(draw, stage, 100 + number)
    if draw(st.booleans()):
        stage.group("urgent", 1, queue=draw(st.sampled_from(["default", "acme"])))
        stage.pod("urgent-0", 8, "urgent", spec={"priority": 300})
    return stage


@st.composite
def crowded_worlds(draw: st.DrawFn) -> Stage:
    """Every node is full of small jobs, and an urgent one arrives."""
    names = "abc"[: draw(st.integers(1, 3))]
    stage = Stage([node(name) for name in names], conf=preempting())
    stage.queue("acme", weight=draw(st.integers(1, 3)))
    queues = st.sampled_from(["default", "default", "acme"])
    for number in range(2 * len(names)):
        stage.group(f"m{number}", 1, queue=draw(queues))
        stage.pod(f"m{number}-0", 4, f"m{number}")
    stage.cycle(400.0)
    stage.cycle(draw(st.sampled_from([5.0, 400.0])))
    stage.group("urgent", 1, queue=draw(queues))
    stage.pod("urgent-0", draw(st.sampled_from([4, 8])), "urgent", spec={"priority": 9})
    return stage


def _submit(draw: st.DrawFn, stage: Stage, number: int) -> None:
    chips = draw(st.sampled_from([0, 1, 2, 4, 8, 8]))
    extra = {**draw(st.sampled_from(EXTRAS)), **draw(st.sampled_from(PRIORITIES))}
    labels = {"app": "x"} if draw(st.booleans()) else {}
    hints = {"ringleaf.io/estimate-seconds": "900"} if draw(st.booleans()) else {}
    shape = draw(
        st.sampled_from(["pod", "gang", "gang", "elastic", "podless", "other"])
    )
    name = f"{draw(st.sampled_from('amz'))}{number}"
    if shape in ("pod", "other"):
        scheduler = "ringleaf" if shape == "pod" else "another"
        asked = {**extra, "nodeName": "a"} if shape == "other" else extra
        if shape == "other":
            chips = 0
        stage.pod(
            name,
            chips,
            scheduler=scheduler,
            labels=labels,
            annotations=hints,
            spec=asked,
        )
        return
    pods = draw(st.integers(1, 4))
    least = max(1, pods - 1) if shape == "elastic" else pods
    queue = draw(st.sampled_from(["default", "acme", "zoo", "none"]))
    group = stage.group(name, least, queue=queue, annotations=hints)
    group["metadata"]["creationTimestamp"] = "1970-01-01T00:01:00Z"
    stage.put_group(group)
    if shape == "podless":
        return
    for i in range(pods):
        role = {"volcano.sh/task-spec": "lead" if i == 0 else "worker"}
        stage.pod(f"{name}-{i}", chips, name, labels=labels | role, spec=extra)


def _end(draw: st.DrawFn, stage: Stage) -> None:
    key = draw(st.sampled_from(sorted(stage.pods)))
    plain = stage.pods[key]
    if plain["spec"].get("nodeName") and draw(st.booleans()):
        plain["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        stage.put_pod(plain)
    else:
        stage.drop_pod(key.partition("/")[2])


A3 = {"accelerator-type": "module-a3-16-super-pod"}


def leaves_of(names: str, size: int) -> dict[str, str]:
    """The list of leaves: *size* nodes after another under each."""
    listed = [
        {
            "tor_id": leaf,
            "tor_ip": f"10.1.0.{leaf}",
            "server": [
                {"server_ip": f"10.0.0.{ord(name)}", "npu_count": 8, "slice_id": slot}
                for slot, name in enumerate(names[first : first + size])
            ],
        }
        for leaf, first in enumerate(range(0, len(names), size))
    ]
    info = {"version": "1.0", "tor_count": size, "server_list": listed}
    return {"tor_level": "double_layer", "tor_info": json.dumps(info)}


@st.composite
def networks(draw: st.DrawFn) -> Stage:
    """Nodes under leaves and in SuperPoDs, and jobs that heed them."""
    two = {"grace-over-time": 900, "nslb-version": "2.0", "shared-tor-num": 1}
    given = draw(st.sampled_from([{}, two]))
    entry = {"name": "init-params", "arguments": given}
    conf = read_conf({**PREEMPT, "configurations": [entry] if given else []})
    assert isinstance(conf, Conf)
    a2 = "abcdefgh"[: draw(st.integers(4, 8))]
    a3 = "qrstuv"[: draw(st.integers(2, 6))]
    pods = [node(name, chips=16, labels=A3) for name in a3]
    for i, plain in enumerate(pods):
        plain["metadata"]["annotations"]["superPodID"] = str(7 + i // 3)
    stage = Stage([*(node(name) for name in a2), *pods], conf=conf)
    size = draw(st.integers(2, 3))
    stage.config_map("basic-tor-node-cm", leaves_of(a2, size), "kube-system")
    for number in range(draw(st.integers(1, 7))):
        _submit_wired(draw, stage, number)
        stage.cycle(draw(st.sampled_from([0.0, 400.0])))
        if draw(st.integers(0, 4)) == 0 and stage.pods:
            _end(draw, stage)
    _submit_wired(draw, stage, 100)
    return stage


def _submit_wired(draw: st.DrawFn, stage: Stage, number: int) -> None:
    pods, name = draw(st.integers(1, 5)), f"{draw(st.sampled_from('amz'))}{number}"
    if draw(st.booleans()):
        affinity = draw(
            st.sampled_from(["large-model-schema", "normal-schema", "null"])
        )
        stage.group(name, pods, labels={"tor-affinity": affinity})
        for i in range(pods):
            stage.pod(f"{name}-{i}", 8, name)
        return
    said = {"sp-block": str(16 * draw(st.sampled_from([1, pods])))}
    stage.group(name, pods, annotations=said)
    for i in range(pods):
        stage.pod(f"{name}-{i}", 16, name, spec={"nodeSelector": A3})


reached: Counter[str] = Counter()


def check_that_a_dump_decides_the_same(stage: Stage, hidden: bool) -> None:  # noqa: FBT001
    look = Snapshot(stage.cache, stage.now)
    before = {name for name, s in look.engine.view.job_states.items() if s.placements}
    found, names, data = from_dump(look, hidden=hidden)
    look.decide()

    words = not hidden
    assert told(found.engine, in_words=words) == told(
        look.engine, names, in_words=words
    )
    if hidden:
        text = data.decode()
        assert not any(word in text for word in ("acme", "zoo", *RACKS))
    for name, what in told(look.engine, in_words=False).items():
        reached[f"{what[0]} {'before' if name in before else 'now'}"] += 1
    reached["reserved"] += len(look.engine.reservations)
    cluster = look.engine.view.cluster
    reached["crossed"] += len(cluster.uplinks.crossings())
    reached["evicted"] += len(look.evicted)


@pytest.mark.slow
def test_a_dump_decides_the_same_and_all_outcomes_are_reached() -> None:
    reached.clear()

    kinds = ((240, worlds()), (160, networks()), (80, crowded_worlds()))
    for n_examples, stages in kinds:
        drawn = given(stages, st.booleans())(check_that_a_dump_decides_the_same)
        settings(max_examples=examples(n_examples))(drawn)()

    found = ("placed before", "placed now", "waiting now")
    assert_reached(reached, *found, "reserved", "evicted", "crossed")


def test_a_node_says_what_it_has_none_of_that_pods_ask() -> None:
    stage = Stage("a")
    stage.pod("p", 0, asks={"made.up/r": "1"})
    stage.cycle()
    state = state_of(stage.cache.everything(stage.now))

    (found,) = scenario_of(state, stage.now, "a dump")["nodes"]

    has = {"cpu": 64, "memory": 512 << 30, "pods": 110}
    assert found["resources"] == has | {"made.up/r": 0}
