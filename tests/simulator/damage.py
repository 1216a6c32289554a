"""Scenario files that are damaged, made from good ones; one seed, one set of files.

``python -m tests.simulator.damage load N`` reads N of them in one process,
``python -m tests.simulator.damage run N`` gives N of them to real commands. Both print
what they saw as JSON. They are processes of their own because the peak of the memory
is that of a whole process.
"""

import copy
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, Final, NamedTuple

import yaml

from ringleaf.simulator.source import MAX_BYTES

SEED: Final = 910
MAX_SECONDS: Final = 2.0
MAX_CHARACTERS: Final = 400
PATIENCE_S: Final = 20
STARTED: Final = 8
"""How many commands are started; the others are copies of a process that was."""

Document = dict[str, Any]
PathTo = tuple[str | int, ...]
Make = Callable[[Random], bytes]

TRAINING: Final[Document] = {
    "about": "two leaves, one job across them",
    "settings": {
        "nslb-version": "2.0",
        "shared-tor-num": 1,
        "tor-level": "single_layer",
        "super-pod-size": 8,
        "reserve-nodes": 1,
        "nodes-per-leaf": 4,
        "job-requests": "per-pod",
        "grace-over-time": 30,
        "superpod-escalation-seconds": 6,
        "job-escalation-seconds": 12,
        "repair-hold-seconds": 60,
        "fault-brake-percent": 50,
        "fault-brake-seconds": 30,
        "run-within-seconds": 0,
        "set-aside-seconds": 0,
        "leaf-choice": "guide",
        "share-common-leaves": True,
        "default-tor-affinity": "none",
        "default-fault-scheduling": "grace",
    },
    "nodes": [
        {
            "name": "a0",
            "product": "atlas-800t-a2",
            "free": [0, 1, 2, 3, 4, 5],
            "faulty": [7],
            "network-faulty": [3],
            "sub-healthy": False,
            "chips": 8,
            "leaf": "A",
            "slot": 0,
            "superpod": 0,
            "ready": False,
            "unschedulable": False,
            "labels": {"zone": "z1", "rack.io/row": "7"},
            "taints": [{"key": "npu", "value": "x", "effect": "PreferNoSchedule"}],
            "resources": {"cpu": 64, "memory": "512Gi"},
            "unhealthy": [7],
            "weak": [2],
            "weak-switch": False,
            "offers": [0, 1, 2, 3, 4, 5, 6, 7],
            "lists-all": False,
            "allocatable": 8,
            "down": "switch",
        },
        {"name": "a1", "product": "atlas-800t-a2", "leaf": "A", "slot": 1},
        {"name": "b{i}", "product": "Atlas 800T A2", "count": 3, "leaf": "B"},
    ],
    "leaves": {
        "A": {
            "state": "shared",
            "healthy": True,
            "address": "10.0.0.1",
            "cross-leaf-jobs": ["large-model-schema", "normal-schema"],
            "order": 0,
        },
        "B": {},
    },
    "running": [
        {
            "name": "old",
            "replicas": 2,
            "chips": 2,
            "product": "atlas-800t-a2",
            "tor-affinity": "normal-schema",
            "sp-block": 16,
            "super-pod-affinity": "soft",
            "strategy": "chip",
            "distributed": False,
            "vnpu": None,
            "previous": {
                "placements": [{"replica": 0, "node": "a1", "chips": [0]}],
                "failed-nodes": ["a1"],
                "keep": "job",
            },
            "placements": [
                {
                    "replica": 0,
                    "node": "a0",
                    "chips": [0, 1],
                    "annotations": {"isSharedTor": "1"},
                },
                {"replica": 1, "node": "b0", "chips": [6, 7]},
            ],
        }
    ],
    "jobs": [
        {"name": "train", "replicas": 2, "chips": 4, "product": "atlas-800t-a2"},
        {
            "name": "eval",
            "chips": 1,
            "tor-affinity": None,
            "distributed": True,
            "resources": {"cpu": "500m"},
            "node-selector": {"zone": "z1"},
            "node-affinity": [
                {
                    "match-expressions": [
                        {"key": "zone", "operator": "In", "values": ["z1"]}
                    ]
                }
            ],
            "tolerations": [
                {
                    "key": "npu",
                    "operator": "Equal",
                    "value": "x",
                    "effect": "NoSchedule",
                }
            ],
        },
        {
            "name": "back",
            "replicas": 2,
            "chips": 2,
            "framework": "pytorch",
            "tor-affinity": "large-model-schema",
            "previous": {
                "placements": [
                    {
                        "replica": 0,
                        "node": "b1",
                        "chips": [0, 1],
                        "annotations": {"hccl/rankIndex": "0"},
                    },
                    {"replica": 1, "node": "b2", "chips": [4, 5]},
                ],
                "failed-nodes": ["b2"],
            },
        },
    ],
}

INFERENCE: Final[Document] = {
    "nodes": [
        {"name": "i0", "product": "atlas-300i", "chips": 16, "free": [0, 4, 5, 6]},
        {"name": "d0", "product": "atlas-300i-duo", "chips": 8, "free": []},
        {"name": "p0", "product": "atlas-310p", "chips": 64, "ready": False},
    ],
    "running": [
        {
            "name": "serve",
            "chips": 2,
            "placements": [{"replica": 0, "node": "d0", "chips": [0, 1]}],
        }
    ],
    "jobs": [
        {"name": "card", "product": "atlas-300i", "chips": 3, "strategy": "card"},
        {"name": "duo", "product": "atlas-300i-duo", "chips": 4, "distributed": True},
    ],
}

PODS: Final[Document] = {
    "about": "SuperPoDs",
    "nodes": [
        {"name": "s0-{i}", "count": 4, "product": "atlas-900-a3", "superpod": 0},
        {"name": "s1-{i}", "count": 2, "product": "atlas-900-a3", "superpod": 1},
    ],
    "jobs": [
        {"name": "solo", "chips": 4},
        {"name": "whole", "chips": 16, "replicas": 2, "sp-block": 16},
    ],
}

BUSY: Final[Document] = {
    "about": "queues, a configuration, and what happens later",
    "settings": {"reserve-nodes": 1},
    "until": 900,
    "grace-seconds": 30.5,
    "queues": [
        {
            "name": "research",
            "weight": 3,
            "capability": {"cpu": 64, "huawei.com/Ascend910": "32"},
            "guarantee": {"huawei.com/Ascend910": 8},
            "reclaimable": False,
            "priority": 2,
            "state": "open",
            "hierarchy": "root/research",
            "hierarchy-weights": "1/3",
        },
        {"name": "night", "state": "closed"},
    ],
    "configuration": {
        "actions": "enqueue, allocate, preempt",
        "tiers": [
            {"plugins": [{"name": "priority"}, {"name": "gang"}, {"name": "affinity"}]},
            {
                "plugins": [
                    {
                        "name": "nodeorder",
                        "enableNodeOrder": False,
                        "arguments": {"leastrequested.weight": 5},
                    }
                ]
            },
        ],
        "configurations": [
            {"name": "init-params", "arguments": {"super-pod-size": 8}},
        ],
    },
    "nodes": [
        {"name": "n{i}", "count": 4, "product": "atlas-800t-a2", "leaf": "A"},
    ],
    "running": [
        {
            "name": "old",
            "chips": 8,
            "started": -100,
            "ending": [0],
            "estimate-seconds": 600,
            "placements": [{"replica": 0, "node": "n0", "chips": [0, 1, 2, 3]}],
        }
    ],
    "jobs": [
        {
            "name": "train",
            "chips": 8,
            "replicas": 2,
            "queue": "research",
            "priority": 100,
            "min-member": 1,
            "rank-index": [1, 0],
            "finished": [2],
            "estimate-seconds": 60.5,
            "user": "ann",
            "program": "train",
            "run-time": {
                "median-seconds": 64,
                "most-seconds": 128,
                "runs": 12,
                "by": "user",
            },
            "preemptable": False,
            "preempts": True,
            "critical": False,
            "podless": False,
            "movable": True,
            "restart-seconds": 60,
            "checkpointed-at": -30,
            "checkpoint-seconds": 1800,
            "created": -5,
            "waiting-since": -5,
            "fault-scheduling": "grace",
            "fault-retry-times": 2,
            "pod-rescheduling": True,
            "process-recover-enable": False,
            "sub-healthy-strategy": "graceExit",
            "recover-policy-path": "pod,job",
            "master": 0,
        },
        {
            "name": "cast",
            "roles": [
                {
                    "name": "driver",
                    "chips": 0,
                    "resources": {"cpu": 1},
                    "host-ports": [8080, "UDP/53"],
                    "pod-labels": {"app": "cast"},
                    "namespace": "lab",
                    "pod-affinity": [
                        {
                            "topology-key": "rack",
                            "selector": {"match-labels": {"app": "cast"}},
                            "namespaces": ["lab"],
                        }
                    ],
                    "preferred-pod-affinity": [
                        {
                            "topology-key": "rack",
                            "weight": 7,
                            "selector": {
                                "match-expressions": [
                                    {"key": "app", "operator": "Exists"}
                                ]
                            },
                        }
                    ],
                },
                {
                    "name": "worker",
                    "chips": 8,
                    "replicas": 2,
                    "min-member": 1,
                    "rank-index": [0, 1],
                    "pod-anti-affinity": [{"topology-key": "host"}],
                    "preferred-pod-anti-affinity": [
                        {"topology-key": "host", "weight": 1}
                    ],
                    "preferred-node-affinity": [
                        {
                            "weight": 9,
                            "match-expressions": [
                                {"key": "rack", "operator": "Exists"}
                            ],
                        }
                    ],
                    "spread": [
                        {
                            "topology-key": "rack",
                            "max-skew": 2,
                            "selector": {"match-labels": {"app": "cast"}},
                            "when-unsatisfiable": "ScheduleAnyway",
                            "min-domains": 2,
                        }
                    ],
                },
            ],
        },
    ],
    "then": [
        {"at": 10, "arrives": {"name": "late", "chips": 8, "product": "atlas-800t-a2"}},
        {"at": 10, "pods-ending": {"job": "late", "replicas": [0]}},
        {
            "at": 20,
            "pods-end": {
                "job": "late",
                "replicas": [0],
                "succeeded": True,
                "ends-run": True,
            },
        },
        {"at": 20, "bind-fails": {"job": "train", "replicas": [0, 1]}},
        {"at": 30, "ends": "old"},
        {"at": 30, "nodes": [{"name": "m", "product": "atlas-800t-a2", "leaf": "A"}]},
        {"at": 40.5, "nodes-gone": ["n3"]},
        {"at": 50, "leaves": {"A": {"healthy": True}}},
        {"at": 60, "queue": {"name": "night", "weight": 2}},
        {"at": 70, "queue-gone": "research"},
        {
            "at": 80,
            "configuration": "actions: enqueue, allocate",
            "settings": {"super-pod-size": 4},
        },
        {"at": 90, "wakes": True},
        {"at": 95, "pods-run": {"job": "train", "replicas": [0]}},
        {
            "at": 95,
            "pods-refused": {"job": "train", "replicas": [1], "why": "no room"},
        },
        {
            "at": 95,
            "pods-ail": {
                "job": "train",
                "ailments": [{"replica": 0, "cause": "pod-failed", "node": "n1"}],
            },
        },
        {
            "at": 95,
            "repair-known": {
                "job": "train",
                "record": {
                    "since": -9,
                    "reach": "block",
                    "ailments": [{"replica": 1, "cause": "CardUnhealthy"}],
                    "placements": [{"replica": 1, "node": "n2", "chips": [0]}],
                    "deleted": [1],
                    "deleted-at": -8,
                    "stuck-at": -3.5,
                    "retries-used": 1,
                    "is-over": False,
                    "moved-for": "other",
                },
            },
        },
        {
            "at": 95,
            "faults-known": [
                {
                    "where": "n2",
                    "cause": "CardUnhealthy",
                    "part": "chip 3",
                    "seen": -9,
                    "acted": -8,
                    "recovered": -1,
                    "jobs": ["train"],
                }
            ],
        },
        {"at": 99, "ends": {"job": "late", "returns": True, "ends-run": False}},
        {
            "at": 99,
            "deletions-known": [{"job": "train", "pods": 2, "deleted-at": -7}],
        },
        {
            "at": 99,
            "run-times-known": [
                {
                    "by": "name",
                    "queue": "research",
                    "user": "ann",
                    "name": "train",
                    "chips": 16,
                    "steps": [12, 13, 12],
                }
            ],
        },
        {
            "at": 99,
            "idle-time-known": {
                "kept-idle": [{"until": -900, "chip-seconds": 40.5}],
                "budget-spent": False,
                "reservations": [
                    {
                        "job": "train",
                        "outcome": "started",
                        "since": -999,
                        "until": -950,
                        "chip-seconds": 40.5,
                    }
                ],
            },
        },
    ],
}

MINIMAL: Final[Document] = {"nodes": [{"name": "n", "product": "atlas-800-9000"}]}

GOOD: Final[Sequence[Document]] = (TRAINING, INFERENCE, PODS, BUSY, MINIMAL)

_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def as_json(document: object) -> str:
    return json.dumps(document)


def as_indented_json(document: object) -> str:
    return json.dumps(document, indent=1)


def as_yaml(document: object) -> str:
    return str(yaml.dump(document, Dumper=_Dumper, sort_keys=False))


def as_flow_yaml(document: object) -> str:
    return str(
        yaml.dump(document, Dumper=_Dumper, sort_keys=False, default_flow_style=True)
    )


FORMS: Final = (as_json, as_indented_json, as_yaml, as_flow_yaml)
FLOW_FORMS: Final = (as_json, as_indented_json, as_flow_yaml)


def written(random: Random, document: object) -> bytes:
    return random.choice(FORMS)(document).encode()


# Damage to values. Each of these is wrong wherever it stands.
WRONG_EVERYWHERE: Final[Sequence[Any]] = (
    -1,
    -(2**63) - 1,
    2**63,
    2**64,
    10**30,
    1.5,
    [None],
    [-1],
    [1.5],
    [{}],
    [[None]],
    [[[[]]]],
    {"wat": None},
    {"wat": [1]},
    {"": None},
)

# Numbers as no library writes them; wrong wherever they stand, too.
WRONG_NUMBERS: Final = (
    "1" + "0" * 5000,
    "-" + "9" * 5000,
    "9" * 100_000,
    "1.0e+400",
    "-1.0e+400",
    "0x" + "f" * 5000,
    "0b" + "1" * 20_000,
    "1" + ":59" * 2000,
    "1" + ":59" * 20_000 + ".5",
    "1_0" * 2000,
    "9223372036854775808",
    ".nan",
    "-.inf",
)

WRONG_TAGS: Final = (
    "!!python/object/apply:os.system ['true']",
    "!!python/object:os.error {}",
    "!!python/name:os.system",
    "!!python/none x",
    "!!binary aGVsbG8=",
    "!!binary '*'",
    "!!set {a, b}",
    "!!omap [a: 1]",
    "!!pairs [a: 1]",
    "!!timestamp 2001-01-01",
    "!!timestamp x",
    "!!int ''",
    "!!int x",
    "!!float ''",
    "!!bool maybe",
    "!!map []",
    "!!seq {}",
    "!unknown x",
    "!unknown {a: b}",
    "!<tag:example.com,2000:x> [a]",
)

FREE_MAPPINGS: Final = {
    "labels",
    "annotations",
    "leaves",
    "resources",
    "node-selector",
    "pod-labels",
    "match-labels",
    "capability",
    "guarantee",
}
ANY_NUMBER: Final = {
    *("resources", "capability", "guarantee", "priority", "created", "started"),
    "waiting-since",
    *("estimate-seconds", "until", "grace-seconds", "at"),
    *("since", "deleted-at", "stuck-at", "seen", "acted", "recovered"),
}
"""Keys, or the values inside them, for which some odd number is a good one."""
REQUIRED: Final[Mapping[str, Sequence[str]]] = {
    "": ["nodes"],
    "nodes": ["name", "product"],
    "running": ["name", "chips", "placements"],
    "jobs": ["name", "chips"],
    "placements": ["replica", "node", "chips"],
    "previous": ["placements"],
    "queues": ["name"],
    "roles": ["name", "chips"],
    "then": ["at"],
    "arrives": ["name", "chips"],
    "pods-end": ["job", "replicas"],
    "pods-ending": ["job", "replicas"],
    "bind-fails": ["job", "replicas"],
    "queue": ["name"],
    "pod-affinity": ["topology-key"],
    "preferred-pod-affinity": ["topology-key", "weight"],
    "preferred-node-affinity": ["weight", "match-expressions"],
    "spread": ["topology-key"],
    "run-time": ["median-seconds", "most-seconds"],
    "run-times-known": ["by"],
    "kept-idle": ["until", "chip-seconds"],
    "reservations": ["job", "outcome", "since", "until"],
}


def paths(value: object, at: PathTo = ()) -> Iterator[PathTo]:
    """Every place in *value*, the whole first."""
    yield at
    if isinstance(value, dict):
        for key, each in value.items():
            yield from paths(each, (*at, key))
    elif isinstance(value, list):
        for i, each in enumerate(value):
            yield from paths(each, (*at, i))


def value_at(value: Any, path: PathTo) -> Any:  # noqa: ANN401
    for step in path:
        value = value[step]
    return value


def replaced(document: object, path: PathTo, value: object) -> Any:  # noqa: ANN401
    """A copy of *document* with *value* at *path*."""
    if not path:
        return value
    changed = copy.deepcopy(document)
    value_at(changed, path[:-1])[path[-1]] = value
    return changed


def kind_of(path: PathTo) -> str:
    """The key whose entry the mapping at *path* is."""
    keys = [step for step in path if isinstance(step, str)]
    return keys[-1] if keys else ""


def mappings(document: Document) -> list[PathTo]:
    """The places of mappings whose keys the format knows."""
    return [
        path
        for path in paths(document)
        if isinstance(value_at(document, path), dict)
        and kind_of(path) not in FREE_MAPPINGS
    ]


def wrong_value(random: Random) -> bytes:
    document = random.choice(GOOD)
    # Amounts and times may be any number, and the values of a configuration are its
    # own affair: they have wrong values of their own.
    unlike = [
        path
        for path in paths(document)
        if not ANY_NUMBER & {*path} and "configuration" not in path[:-1]
    ]
    path = random.choice(unlike)
    return written(random, replaced(document, path, random.choice(WRONG_EVERYWHERE)))


def spliced(texts: Sequence[str], random: Random) -> bytes:
    """A good file with one of *texts* instead of one value."""
    document = random.choice(GOOD)
    path = random.choice(list(paths(document))[1:])
    text = random.choice(FORMS)(replaced(document, path, "SPLICED"))
    there = random.choice(texts)
    return text.replace('"SPLICED"', there).replace("SPLICED", there).encode()


def unknown_key(random: Random) -> bytes:
    document = copy.deepcopy(random.choice(GOOD))
    mapping = value_at(document, random.choice(mappings(document)))
    key = random.choice(
        ["wat", "", "Nodes", "a.b", "x`y", "x` - at `$.nodes", "[...]", "k" * 5000, "é"]
    )
    mapping[key] = random.choice([None, 1, "x", [], {}])
    return written(random, document)


def misspelled_key(random: Random) -> bytes:
    document = copy.deepcopy(random.choice(GOOD))
    filled = [path for path in mappings(document) if value_at(document, path)]
    mapping = value_at(document, random.choice(filled))
    key = random.choice(list(mapping))
    mapping[random.choice([f"{key}x", f"x{key}", key.upper()])] = mapping.pop(key)
    return written(random, document)


def missing_key(random: Random) -> bytes:
    document = copy.deepcopy(random.choice(GOOD))
    path = random.choice([p for p in mappings(document) if kind_of(p) in REQUIRED])
    mapping = value_at(document, path)
    del mapping[random.choice([k for k in REQUIRED[kind_of(path)] if k in mapping])]
    return written(random, document)


def key_twice(random: Random) -> bytes:
    document = copy.deepcopy(random.choice(GOOD))
    filled = [
        path
        for path in paths(document)
        if isinstance(value_at(document, path), dict) and value_at(document, path)
    ]
    mapping = value_at(document, random.choice(filled))
    key = random.choice(list(mapping))
    mapping["TWICE"] = copy.deepcopy(mapping[key])
    return written(random, document).replace(b"TWICE", key.encode())


def key_not_text(random: Random) -> bytes:
    document = copy.deepcopy(random.choice(GOOD))
    path = random.choice(
        [p for p in paths(document) if isinstance(value_at(document, p), dict)]
    )
    key = random.choice([1, None, True, 1.5, -1, (1, 2), 10**20])
    value_at(document, path)[key] = "x"
    return random.choice([as_yaml, as_flow_yaml])(document).encode()


# Values of the right type that make no sense where they stand.
MEANINGLESS: Final[Sequence[tuple[Document, PathTo, Any]]] = (
    (TRAINING, ("settings", "nslb-version"), "3.0"),
    (TRAINING, ("settings", "nslb-version"), 2.5),
    (TRAINING, ("settings", "shared-tor-num"), 3),
    (TRAINING, ("settings", "shared-tor-num"), True),
    (TRAINING, ("settings", "tor-level"), "triple_layer"),
    (TRAINING, ("settings", "super-pod-size"), 0),
    (TRAINING, ("settings", "super-pod-size"), "48"),
    (TRAINING, ("settings", "super-pod-size"), float("nan")),
    (TRAINING, ("settings", "reserve-nodes"), float("inf")),
    (TRAINING, ("settings", "nslb-version"), float("nan")),
    (TRAINING, ("settings", "reserve-nodes"), 1_000_001),
    (TRAINING, ("settings", "nodes-per-leaf"), 0),
    (TRAINING, ("settings", "nodes-per-leaf"), 1),
    (TRAINING, ("settings", "job-requests"), "lax"),
    (TRAINING, ("settings", "leaf-choice"), "vendor"),
    (TRAINING, ("settings", "share-common-leaves"), "yes please"),
    (TRAINING, ("settings", "share-common-leaves"), 1),
    (TRAINING, ("settings", "default-tor-affinity"), "padding"),
    (TRAINING, ("settings", "default-fault-scheduling"), "external-force"),
    (TRAINING, ("settings", "default-fault-scheduling"), True),
    (TRAINING, ("settings",), None),
    (TRAINING, ("nodes",), None),
    (TRAINING, ("jobs",), None),
    (TRAINING, ("nodes", 0, "name"), ""),
    (TRAINING, ("nodes", 0, "name"), "a1"),
    (TRAINING, ("nodes", 0, "name"), "b2"),
    (TRAINING, ("nodes", 0, "name"), "x" * 254),
    (TRAINING, ("nodes", 0, "name"), "x" * 100_000),
    (TRAINING, ("nodes", 0, "name"), "a\nb"),
    (TRAINING, ("nodes", 0, "name"), "\x1b[31m"),
    (TRAINING, ("nodes", 0, "name"), "a\u2028b"),
    (TRAINING, ("nodes", 0, "name"), "a\u200bb"),
    (TRAINING, ("nodes", 0, "product"), "atlas-9999"),
    (TRAINING, ("nodes", 0, "product"), ""),
    (TRAINING, ("nodes", 0, "product"), "\x07" * 70),
    (TRAINING, ("nodes", 0, "product"), "y" * 100_000),
    (TRAINING, ("nodes", 0, "free"), [8]),
    (TRAINING, ("nodes", 0, "free"), [0, 1, 63, 64]),
    (TRAINING, ("nodes", 0, "free"), ["0"]),
    (TRAINING, ("nodes", 0, "free"), "all"),
    (TRAINING, ("nodes", 0, "free"), {"0": True}),
    (TRAINING, ("nodes", 0, "faulty"), [8]),
    (TRAINING, ("nodes", 0, "faulty"), None),
    (TRAINING, ("nodes", 0, "network-faulty"), [1_000_000]),
    (TRAINING, ("nodes", 0, "chips"), 16),
    (TRAINING, ("nodes", 0, "chips"), 0),
    (TRAINING, ("nodes", 0, "leaf"), ""),
    (TRAINING, ("nodes", 0, "leaf"), "\x1b]0;x\x07"),
    (TRAINING, ("nodes", 0, "slot"), 4),
    (TRAINING, ("nodes", 0, "slot"), 1),
    (TRAINING, ("nodes", 0, "slot"), 1_000_001),
    (TRAINING, ("nodes", 0, "ready"), "true"),
    (TRAINING, ("nodes", 0, "labels"), {"a": 1}),
    (TRAINING, ("nodes", 0, "labels"), {"a.b": 1}),
    (TRAINING, ("nodes", 0, "labels"), {"a[0]": {}}),
    (TRAINING, ("nodes", 0, "labels"), {"": None}),
    (TRAINING, ("nodes", 0, "labels"), {"a\nb": []}),
    (TRAINING, ("nodes", 0, "labels"), ["a"]),
    (TRAINING, ("nodes", 2, "count"), 0),
    (TRAINING, ("nodes", 2, "count"), 5),
    (TRAINING, ("nodes", 2, "count"), 100_001),
    (TRAINING, ("nodes", 2, "count"), 10**9),
    (TRAINING, ("nodes", 2, "count"), "3"),
    (TRAINING, ("nodes", 2, "name"), "b"),
    (TRAINING, ("nodes", 2, "name"), "x" * 253),
    (TRAINING, ("nodes", 2, "slot"), 0),
    (TRAINING, ("leaves", "A", "state"), "busy"),
    (TRAINING, ("leaves", "A", "healthy"), "no"),
    (TRAINING, ("leaves", "A", "address"), 10),
    (TRAINING, ("leaves", "A", "cross-leaf-jobs"), ["padding"]),
    (TRAINING, ("leaves", "A"), None),
    (TRAINING, ("leaves",), {"a\nb": {"state": 3}}),
    (TRAINING, ("leaves",), {"nodes": {"name": "x"}}),
    (TRAINING, ("leaves",), {"x" * 5000: 1}),
    (TRAINING, ("leaves",), []),
    (TRAINING, ("running", 0, "name"), ""),
    (TRAINING, ("running", 0, "name"), "train"),
    (TRAINING, ("running", 0, "name"), "a\tb"),
    (TRAINING, ("running", 0, "product"), "h100"),
    (TRAINING, ("running", 0, "placements", 0, "node"), "a9"),
    (TRAINING, ("running", 0, "placements", 0, "node"), ""),
    (TRAINING, ("running", 0, "placements", 0, "node"), "z" * 100_000),
    (TRAINING, ("running", 0, "placements", 0, "chips"), [8]),
    (TRAINING, ("running", 0, "placements", 0, "chips"), [0, 0]),
    (TRAINING, ("running", 0, "placements", 1, "node"), "a9"),
    (TRAINING, ("running", 0, "placements", 0, "annotations"), {"a.b.c": 1}),
    (TRAINING, ("running", 0, "previous", "keep"), "all"),
    (TRAINING, ("running", 0, "tor-affinity"), "padding"),
    (TRAINING, ("running", 0, "super-pod-affinity"), "medium"),
    (
        TRAINING,
        ("running", 0, "placements", 1),
        {"replica": 1, "node": "a0", "chips": [1]},
    ),
    (TRAINING, ("running",), [TRAINING["running"][0]] * 2),
    (TRAINING, ("jobs",), [TRAINING["jobs"][0]] * 2),
    (TRAINING, ("jobs", 0, "name"), "eval"),
    (TRAINING, ("jobs", 0, "name"), "\x00"),
    (TRAINING, ("jobs", 0, "product"), "tpu"),
    (TRAINING, ("jobs", 0, "replicas"), 0),
    (TRAINING, ("jobs", 0, "replicas"), 1_000_001),
    (TRAINING, ("jobs", 0, "chips"), "4"),
    (TRAINING, ("jobs", 0, "strategy"), "any"),
    (TRAINING, ("jobs", 0, "tor-affinity"), "huge"),
    (TRAINING, ("jobs", 0, "sp-block"), -16),
    (TRAINING, ("jobs", 0, "super-pod-affinity"), "harder"),
    (TRAINING, ("jobs", 0, "previous"), {"failed-nodes": []}),
    (TRAINING, ("jobs", 0, "vnpu"), 4),
    (TRAINING, ("jobs", 1, "resources", "cpu"), "a lot"),
    (TRAINING, ("jobs", 1, "node-selector"), ["zone"]),
    (TRAINING, ("jobs", 1, "tolerations", 0, "effect"), "Never"),
    (TRAINING, ("nodes", 0, "taints", 0, "effect"), None),
    (TRAINING, ("nodes", 0, "resources"), {"cpu": -1}),
    (TRAINING, ("jobs", 2, "replicas"), 1),
    (TRAINING, ("jobs", 2, "previous", "failed-nodes"), ["b7"]),
    (TRAINING, ("jobs", 2, "previous", "placements", 1, "replica"), 0),
    (TRAINING, ("jobs", 2, "previous", "placements", 0, "node"), "c1"),
    (TRAINING, ("jobs", 2, "previous", "placements", 0, "chips"), [8]),
    (
        TRAINING,
        ("jobs", 2, "previous", "placements", 0, "annotations"),
        {"hccl/rankIndex": "first"},
    ),
    (
        TRAINING,
        ("running", 0, "placements", 0, "annotations"),
        {"isSharedTor": "shared"},
    ),
    (TRAINING, ("jobs", 0, "placements"), []),
    (INFERENCE, ("nodes", 0, "chips"), None),
    (INFERENCE, ("nodes", 0, "chips"), 65),
    (INFERENCE, ("nodes", 1, "chips"), 33),
    (INFERENCE, ("nodes", 0, "free"), [16]),
    (INFERENCE, ("nodes", 2, "faulty"), [64]),
    (INFERENCE, ("jobs", 0, "product"), None),
    (INFERENCE, ("running", 0, "placements", 0, "chips"), [8]),
    (PODS, ("jobs", 1, "sp-block"), "16"),
    (PODS, ("jobs", 0, "name"), "whole"),
    (PODS, ("nodes", 0, "count"), 99_999),
    (PODS, ("nodes", 1, "name"), "s0-{i}"),
    (BUSY, ("until",), 89),
    (BUSY, ("until",), -1),
    (BUSY, ("until",), float("nan")),
    (BUSY, ("grace-seconds",), -0.5),
    (BUSY, ("grace-seconds",), "soon"),
    (BUSY, ("queues", 0, "weight"), 0),
    (BUSY, ("queues", 0, "weight"), 65536),
    (BUSY, ("queues", 0, "name"), "night"),
    (BUSY, ("queues", 0, "name"), ""),
    (BUSY, ("queues", 0, "state"), "idle"),
    (BUSY, ("queues", 0, "capability"), {"cpu": "many"}),
    (BUSY, ("queues", 0, "guarantee"), {"cpu": -1}),
    (BUSY, ("queues", 0, "priority"), 2**31),
    (BUSY, ("queues", 0, "priority"), 1.5),
    (BUSY, ("queues",), None),
    (BUSY, ("configuration",), None),
    (BUSY, ("configuration",), ""),
    (BUSY, ("configuration",), "actions: ["),
    (BUSY, ("configuration",), "actions: allocate\n---\nactions: allocate"),
    (BUSY, ("configuration",), "- 1"),
    (BUSY, ("configuration", "actions"), "alocate"),
    (BUSY, ("configuration", "actions"), ["allocate"]),
    (BUSY, ("configuration", "tiers", 0, "plugins", 0, "name"), "prioriti"),
    (BUSY, ("configuration", "tiers", 0, "plugins", 0, "name"), "x" * 5000),
    (BUSY, ("configuration", "tiers"), {}),
    (
        BUSY,
        ("configuration", "configurations", 0, "arguments"),
        {"super-pod-size": 0, "reserve-nodes": "x"},
    ),
    (BUSY, ("jobs", 0, "rank-index"), [0]),
    (BUSY, ("jobs", 0, "finished"), [0]),
    (BUSY, ("jobs", 0, "finished"), ["2"]),
    (BUSY, ("jobs", 0, "rank-index"), [0, 0]),
    (BUSY, ("jobs", 0, "rank-index"), [0, "1"]),
    (BUSY, ("jobs", 0, "estimate-seconds"), 0),
    (BUSY, ("jobs", 0, "estimate-seconds"), float("inf")),
    (BUSY, ("jobs", 0, "created"), 1e13),
    (BUSY, ("jobs", 0, "priority"), -(2**31) - 1),
    (BUSY, ("jobs", 0, "queue"), ""),
    (BUSY, ("jobs", 0, "min-member"), -1),
    (BUSY, ("jobs", 1, "chips"), 8),
    (BUSY, ("jobs", 1, "replicas"), 1),
    (BUSY, ("jobs", 1, "resources"), {"cpu": 1}),
    (BUSY, ("jobs", 1, "roles", 0, "name"), "worker"),
    (BUSY, ("jobs", 1, "roles", 0, "name"), ""),
    (BUSY, ("jobs", 1, "roles", 0, "rank-index"), [1]),
    (BUSY, ("jobs", 1, "roles", 0, "host-ports"), [0]),
    (BUSY, ("jobs", 1, "roles", 0, "host-ports"), [65536]),
    (BUSY, ("jobs", 1, "roles", 0, "host-ports"), ["ICMP/1"]),
    (BUSY, ("jobs", 1, "roles", 0, "pod-labels"), {"app": 1}),
    (BUSY, ("jobs", 1, "roles", 1, "spread", 0, "when-unsatisfiable"), "Never"),
    (BUSY, ("jobs", 1, "roles", 1, "spread", 0, "max-skew"), 0),
    (BUSY, ("jobs", 1, "roles", 1, "preferred-node-affinity", 0, "weight"), 101),
    (BUSY, ("jobs", 1, "roles"), []),
    (BUSY, ("running", 0, "started"), "now"),
    (BUSY, ("running", 0, "ending"), [1]),
    (BUSY, ("running", 0, "ending", 0), -1),
    (BUSY, ("jobs", 0, "waiting-since"), "long"),
    (BUSY, ("running", 0, "started"), -(10**13)),
    (BUSY, ("then", 0, "at"), -1),
    (BUSY, ("then", 0, "at"), 11),
    (BUSY, ("then", 0, "at"), "soon"),
    (BUSY, ("then", 0), {"at": 1}),
    (BUSY, ("then", 0), {"at": 1, "ends": "old", "wakes": True}),
    (BUSY, ("then", 0), {"at": 1, "ends": "old", "settings": {}}),
    (BUSY, ("then", 0), {"at": 1, "ends": "nobody"}),
    (BUSY, ("then", 0), {"at": 1, "ends": None}),
    (BUSY, ("then", 0), {"at": 1, "wakes": False}),
    (BUSY, ("then", 0, "arrives", "product"), "h100"),
    (BUSY, ("then", 0, "arrives", "name"), "a\nb"),
    (
        BUSY,
        ("then", 0, "arrives", "placements"),
        [{"replica": 0, "node": "x", "chips": [0]}],
    ),
    (
        BUSY,
        ("then", 0, "arrives", "placements"),
        [{"replica": 0, "node": "n1", "chips": [8]}],
    ),
    (
        BUSY,
        ("then", 0, "arrives", "previous"),
        {"placements": [], "failed-nodes": ["x"]},
    ),
    (BUSY, ("then", 1, "pods-ending", "job"), "nobody"),
    (BUSY, ("then", 1, "pods-ending", "replicas"), 0),
    (BUSY, ("then", 2, "pods-end", "succeeded"), "yes"),
    (BUSY, ("then", 3, "bind-fails", "replicas"), ["0"]),
    (BUSY, ("then", 5, "nodes", 0, "product"), "h100"),
    (BUSY, ("then", 5, "nodes", 0, "slot"), 0),
    (BUSY, ("then", 5, "nodes"), [{"name": "m", "product": "atlas-300i"}]),
    (BUSY, ("then", 5, "nodes"), [{"name": "m", "product": "atlas-300t"}] * 2),
    (BUSY, ("then", 6, "nodes-gone"), ["n9"]),
    (BUSY, ("then", 7, "leaves", "A", "state"), "busy"),
    (BUSY, ("then", 8, "queue", "weight"), 0),
    (BUSY, ("then", 8, "queue"), "night"),
    (BUSY, ("then", 9, "queue-gone"), ""),
    (BUSY, ("then", 10, "configuration"), "actions: nothing"),
    (BUSY, ("then", 12, "pods-run", "job"), "nobody"),
    (BUSY, ("then", 13, "pods-refused", "why"), 3),
    (BUSY, ("then", 14, "pods-ail", "ailments", 0, "cause"), "old age"),
    (BUSY, ("then", 14, "pods-ail", "job"), "nobody"),
    (BUSY, ("then", 14, "pods-ail", "ailments", 0, "cause"), "CardUnhealthy"),
    (BUSY, ("then", 14, "pods-ail", "ailments", 0, "cause"), "PodRefused"),
    (BUSY, ("then", 14, "pods-ail", "ailments", 0, "replica"), 2),
    (BUSY, ("then", 12, "pods-run", "replicas"), [5]),
    (BUSY, ("then", 13, "pods-refused", "replicas"), [0, 2]),
    (BUSY, ("then", 1, "pods-ending", "replicas"), [1]),
    (BUSY, ("then", 2, "pods-end", "replicas"), [1]),
    (BUSY, ("then", 3, "bind-fails", "replicas"), [2]),
    (BUSY, ("jobs", 0, "master"), 7),
    (TRAINING, ("nodes", 0, "ready"), True),
    (TRAINING, ("nodes", 0, "unhealthy"), [3, 7]),
    (TRAINING, ("nodes", 1, "down"), "switch"),
    (TRAINING, ("nodes", 1, "unhealthy"), [0]),
    (
        BUSY,
        ("then", 15, "repair-known", "record", "ailments", 0, "cause"),
        "PodRefused",
    ),
    (BUSY, ("then", 15, "repair-known", "record", "reach"), "rack"),
    (BUSY, ("then", 15, "repair-known", "record", "deleted"), ["0"]),
    (BUSY, ("then", 16, "faults-known", 0, "jobs"), [1]),
    (BUSY, ("then", 17, "ends", "job"), "nobody"),
    (BUSY, ("then", 19, "run-times-known", 0, "by"), "luck"),
    (BUSY, ("then", 19, "run-times-known", 0, "steps"), [-1]),
    (BUSY, ("then", 20, "idle-time-known", "reservations", 0, "outcome"), "luck"),
    (BUSY, ("then", 20, "idle-time-known", "kept-idle", 0, "chip-seconds"), -1),
    (BUSY, ("jobs", 0, "run-time", "most-seconds"), 0),
    (BUSY, ("jobs", 0, "user"), 17),
    (BUSY, ("then", 10, "settings", "super-pod-size"), 0),
    (BUSY, ("then", 10, "settings"), {"nslb-version": 3.0}),
    (MINIMAL, ("nodes", 0, "product"), "atlas-300i"),
    (MINIMAL, ("nodes",), [MINIMAL["nodes"][0]] * 2),
    (MINIMAL, ("nodes",), {"n": "atlas-800-9000"}),
)


def meaningless(random: Random) -> bytes:
    return written(random, replaced(*random.choice(MEANINGLESS)))


# Damage to text.
def cut_off(random: Random) -> bytes:
    """Flow style and JSON end with a bracket: without it they are not whole."""
    text = random.choice(FLOW_FORMS)(random.choice(GOOD)).strip()
    return text[: random.randrange(1, len(text))].encode()


def bracket_lost(random: Random) -> bytes:
    text = random.choice(FLOW_FORMS)(random.choice(GOOD))
    at = random.choice([m.start() for m in re.finditer(r"[\[\]]", text)])
    other = random.choice(["", "[[", "]]", "}", "{"])
    return (text[:at] + other + text[at + 1 :]).encode()


# Bytes that stand in no text: half of a character, or a character of no use.
NO_TEXT: Final = (
    b"\xff",
    b"\xfe",
    b"\x80",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf5\x80\x80\x80",
    b"\xe4\xb8",
    b"\x00",
    b"\x01",
    b"\x07",
    b"\x1b[31m",
)


def no_text(random: Random) -> bytes:
    data = written(random, random.choice(GOOD))
    at = random.randrange(len(data))
    return data[:at] + random.choice(NO_TEXT) + data[at + 1 :]


def other_encoding(random: Random) -> bytes:
    encoding = random.choice(["latin-1", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
    text = random.choice(FORMS)({**random.choice(GOOD), "about": "SPLICED"})
    return text.replace("SPLICED", "größer").encode(encoding)


def random_bytes(random: Random) -> bytes:
    starts = (b"", b"{", b"[", b"nodes: ", b"\x89PNG\r\n", b"PK\x03\x04", b"\x1f\x8b")
    return random.choice(starts) + random.randbytes(random.randrange(40, 400))


def random_text(random: Random) -> bytes:
    letters = "[]{}:,-&*!|>'\"%@`#?<=~ \n\t019aé"
    return "".join(random.choices(letters, k=random.randrange(1, 200))).encode()


def tabs(random: Random) -> bytes:
    lines = as_yaml(random.choice(GOOD)).splitlines()
    indented = [i for i, line in enumerate(lines) if line.startswith(("- ", "  "))]
    at = random.choice(indented)
    lines[at] = "\t" + lines[at].lstrip()
    return "\n".join(lines).encode()


LITERAL: Final[Mapping[str, Sequence[str | bytes]]] = {
    "no document": (
        "", " ", "\n\n\n", "\t", "---", "---\n---\n---\n", "--- # x\n...\n", "# x\n",
        "%YAML 1.1\n---\n", "null", "~", "---\n~\n---\nnull\n", b"\xef\xbb\xbf",
    ),
    "another document": (
        "{}", "[]", '""', "0", "true", "hello", "1.5", "- a\n- b", "nodes", "[{}]",
        '[{"nodes": []}]', '"nodes"', "{nodes}", "nodes: ", "node: []", "2001-01-01",
        "<html><body>404</body></html>", "#!/bin/sh\nexit 0\n", "apiVersion: v1\n",
    ),
    "not YAML": (
        "nodes: [", "nodes: ]", "{", "}", "{]", "[}", "'", '"', "nodes: 'x", "@", "`x`",
        "a: b: c", "- a\nb: c", "a:\n  - b\n c", ": :", "&", "*", "!", "nodes: |x\n",
        "nodes: >9\n a", "%YAML 9.9\n---\nnodes: []", "%FOO", "? ? ?", "? a\n? a",
        "nodes: [a, b", "nodes: {a: b", "{nodes: [}]}", "nodes: *", "nodes: &a &b x",
        "a\n b\nc: d", "--- a\n--- b\n--- [", '{"nodes": [],}}', '{"nodes": [] "x"}',
        '{"nodes": [1,,2]}', "{'nodes': [}", '{"nodes": "\\q"}', '{"nodes": "\\ud800"}',
        "-\t-", '{"\\ud800": 1}', '{"about": "\\udfff", "nodes": []}', '"nodes": [',
        "nodes: !<x",
    ),
    "aliases": (
        "nodes: *nothing",
        "nodes: &a [*a]",
        "nodes: &a {b: *a}",
        "&a nodes: [*a]",
        "nodes: &a {<<: *a}",
        "nodes: [{<<: 1}]",
        "nodes: [{<<: [1]}]",
        "nodes: [{<<: *x}]",
        "nodes: [&n {name: n, product: atlas-800-9000}, *n]",
        "nodes: [&n {name: n, product: atlas-800-9000}, {<<: *n, wat: 1}]",
        "nodes: [&n {name: n, product: atlas-800-9000}, {<<: *n, name: n}]",
        "nodes: [&n {name: n, product: atlas-800-9000}]\n---\nnodes: [*n]",
        "? &a [x]\n: *a",
    ),
}  # fmt: skip


def literal(kind: str, random: Random) -> bytes:
    text = random.choice(LITERAL[kind])
    return text if isinstance(text, bytes) else text.encode()


def last_document(random: Random) -> bytes:
    """Good documents, and after them one that is not."""
    good = "---\n".join(as_yaml(each) for each in random.choices(GOOD, k=3))
    bad = random.choice([wrong_value, unknown_key, missing_key, meaningless])(random)
    return good.encode() + b"\n---\n" + bad


def json_lines(random: Random) -> bytes:
    lines = [as_json(each) for each in random.choices(GOOD, k=3)]
    damaged = replaced(random.choice(GOOD), ("nodes",), random.choice([-1, [None]]))
    lines.insert(random.randrange(4), as_json(damaged))
    return "\n".join(lines).encode()


# Damage by size: much work from few bytes, or many bytes.
def bomb(depth: int, width: int, opening: str, link: str, closing: str) -> str:
    """*depth* levels, each *width* times the one before it."""
    levels = [f"k0: &k0 {opening}{closing}"]
    for i in range(1, depth):
        inside = ", ".join([link.format(i - 1)] * width)
        levels.append(f"k{i}: &k{i} {opening}{inside}{closing}")
    return "\n".join(levels)


def fitting_bomb(random: Random) -> bytes:
    """Running jobs, their placements and chips through aliases: all of the types."""
    chips = ", ".join(["0"] * random.choice([0, 60, 200]))
    return "\n".join(
        [
            "nodes: [{name: n, product: atlas-800-9000}]",
            "running:",
            "- &job",
            "  name: r",
            "  chips: 1",
            "  placements:",
            f"  - &placement {{replica: 0, node: n, chips: &chips [{chips}]}}",
            *["  - *placement"] * random.choice([1000, 3000]),
            *["- *job"] * random.choice([20, 2000]),
        ]
    ).encode()


def node_bomb(random: Random) -> bytes:
    """More nodes than there may be, by aliases or by counts."""
    counted = "name: 'n{i}', product: atlas-800-9000, count: 100000"
    plain = "name: n, product: atlas-800-9000"
    entry, times = random.choice([(counted, 60), (plain, 40_000), (plain, 200_000)])
    return (f"nodes:\n- &n {{{entry}}}\n" + "- *n\n" * times).encode()


def groups(_random: Random) -> bytes:
    entry = {"product": "atlas-900-a3", "count": 100_000}
    nodes = [{**entry, "name": f"g{i}-{{i}}"} for i in range(60)]
    return as_json({"nodes": nodes}).encode()


BOMBS: Final = {
    "lists": bomb(10, 10, "[", "*k{}", "]"),
    "long lists": bomb(4, 900, "[", "*k{}", "]"),
    "mappings": bomb(30, 1, "{", "a: *k{0}, b: *k{0}, c: *k{0}", "}"),
    "merges": bomb(10, 10, "{<<: [", "*k{}", "]}").replace("[]", "{x: 1}"),
    "text": f"about: [&t '{'x' * 50_000}'{', *t' * 5000}]",
}  # fmt: skip


def alias_bomb(random: Random) -> bytes:
    return random.choice(list(BOMBS.values())).encode()


DEEP: Final[Sequence[tuple[str, str, str]]] = (
    ("nodes: ", "[", "]"),
    ("nodes: ", "{a: ", "}"),
    ("", "[", "]"),
    ("", '{"a":', "}"),
    ("", '[{"a":', "}]"),
    ("", "- ", ""),
    ("", "? ", ""),
    ("nodes: ", "[? ", "]"),
    ("nodes: ", "&a [", "]"),
    ("nodes: ", "!!seq [", "]"),
)


def deep(random: Random) -> bytes:
    start, opening, closing = random.choice(DEEP)
    levels = random.choice([65, 200, 1000, 5000, 100_000])
    inside = random.choice(["", "0"]) if closing else "x"
    return (start + opening * levels + inside + closing * levels).encode()


def deep_block(random: Random) -> bytes:
    levels = random.choice([70, 200, 1000])
    line = random.choice(["a:", "-", "- a:", "?"])
    return "\n".join(" " * (2 * i) + line for i in range(levels)).encode()


def deep_chain(_random: Random) -> bytes:
    """Each value holds the one before it: deep, though no line is."""
    lines = ["- &a0 []", *(f"- &a{i} [*a{i - 1}]" for i in range(1, 3000))]
    return "\n".join(lines).encode()


def long_text(random: Random) -> bytes:
    size = random.choice([10_000, 300_000])
    return random.choice(
        [
            "x" * size + ": 1",
            f"{{{'x' * size}: 1}}",
            f"nodes: []\n? {'x' * size}\n: 1",
            f"nodes: [{{name: {'x' * size}, product: atlas-300t}}]",
            f"nodes: [{{name: x, product: {'x' * size}}}]",
            f'{{"nodes": "{"x" * size}"}}',
            f"nodes: '{'x ' * size}",
            "a\n" * size,
            "# " + "x" * size,
            "nodes: [" + "a, " * (size // 10) + "]",
            "[" + "," * size + "]",
            "&" + "x" * size + " 1",
            "!" + "x" * size + " 1",
            "nodes: *" + "x" * size,
            "\n".join(f"k{i}: {i}" for i in range(size // 20)),
            as_json({f"k{i}": i for i in range(size // 20)}),
            "".join(f"- &a{i} x\n" for i in range(size // 30)),
        ]
    ).encode()


def many_values(random: Random) -> bytes:
    return random.choice(
        [
            b'{"about": [' + b"0," * 500_000 + b"0]}",
            b'{"nodes": [' + b"{}," * 100_000 + b"{}]}",
            b'{"nodes": [' + b"{}," * 900_000 + b"{}]}",
            b'{"nodes": [' + b"[]," * 1_500_000 + b"[]]}",
            b"about: [" + b"0, " * 60_000 + b"0]",
            b"nodes:\n" + b"- {a: 1}\n" * 30_000,
            b"- 0\n" * 60_000,
            b"---\nnodes: []\n" * 3000 + b"---\n0",
        ]
    )


def many_bytes(_random: Random) -> bytes:
    return b"#" * (MAX_BYTES + 1)


def twice_among_many(_random: Random) -> bytes:
    keys = [f"k{i}" for i in range(20_000)]
    return ("{" + ",".join(f'"{key}":0' for key in [*keys, keys[-1]]) + "}").encode()


def unlike_names(_random: Random) -> bytes:
    """A thousand long names, all nearly the one that is not there."""
    nodes = [{"name": "ba" * 95 + "{i}", "product": "atlas-300t", "count": 1000}]
    placement = {"replica": 0, "node": "ab" * 98, "chips": [0]}
    running = [{"name": "r", "chips": 1, "placements": [placement]}]
    return as_json({"nodes": nodes, "running": running}).encode()


# How often each kind comes, and how it is made. What is dear is rare.
KINDS: Final[Mapping[str, tuple[int, Make]]] = {
    "a wrong value": (300, wrong_value),
    "a wrong number": (30, partial(spliced, WRONG_NUMBERS)),
    "a tag": (60, partial(spliced, WRONG_TAGS)),
    "an unknown key": (100, unknown_key),
    "a misspelled key": (60, misspelled_key),
    "a missing key": (60, missing_key),
    "a key twice": (60, key_twice),
    "a key that is not text": (60, key_not_text),
    "a meaningless value": (300, meaningless),
    "cut off": (100, cut_off),
    "a bracket lost": (60, bracket_lost),
    "no text": (60, no_text),
    "another encoding": (20, other_encoding),
    "random bytes": (60, random_bytes),
    "random text": (60, random_text),
    "tabs": (30, tabs),
    "a bad last document": (40, last_document),
    "a bad line of JSON": (20, json_lines),
    **{kind: (20, partial(literal, kind)) for kind in LITERAL},
    "deep": (20, deep),
    "deep blocks": (4, deep_block),
    "a deep chain": (1, deep_chain),
    "long text": (10, long_text),
    "an alias bomb": (4, alias_bomb),
    "a bomb that fits": (2, fitting_bomb),
    "a bomb of nodes": (1, node_bomb),
    "groups of nodes": (2, groups),
    "a key twice among many": (1, twice_among_many),
    "names nearly alike": (1, unlike_names),
    "many values": (1, many_values),
}

# Made once only.
RARE: Final[Mapping[str, Make]] = {"many bytes": many_bytes}


class Damaged(NamedTuple):
    """One file, and what was done to it."""

    kind: str
    data: bytes


def damaged(count: int, seed: int = SEED) -> Iterator[Damaged]:
    """*count* damaged files, those of every kind first."""
    random = Random(seed)  # noqa: S311 - the same files every time
    for kind, make in RARE.items():
        yield Damaged(kind, make(random))
    first = list(KINDS)
    weights = [weight for weight, _make in KINDS.values()]
    rest = random.choices(list(KINDS), weights, k=count - len(first) - len(RARE))
    for kind in [*first, *rest]:
        yield Damaged(kind, KINDS[kind][1](random))


def complaint(line: str) -> str | None:
    """What is wrong with a message, if anything."""
    if not line:
        return "says nothing"
    if not line.isprintable():
        return f"is not one line of text: {line!r}"
    if len(line) > MAX_CHARACTERS:
        return f"is {len(line)} characters long"
    return None


def shape(line: str) -> str:
    """A message without what it is about: two of one shape say the same."""
    return re.sub(r"'.*?'|\S*\[.*?\]\S*|\d+", "…", line)


def peak_mib(who: int) -> float:
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(who).ru_maxrss / unit


class TooSlow(BaseException):
    """Nothing on the way catches it."""


def _ring(*_args: object) -> None:
    raise TooSlow


def load_all(count: int) -> dict[str, Any]:
    """Read *count* damaged files in this process."""
    from ringleaf.simulator.scenario import load  # noqa: PLC0415
    from ringleaf.simulator.source import BadInput  # noqa: PLC0415

    def fault(data: bytes) -> str | None:
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
        try:
            load(data)
        except BadInput as error:
            shapes[shape(str(error))] += 1
            return complaint(str(error))
        except TooSlow:
            return f"takes longer than {MAX_SECONDS} s"
        except Exception as error:  # noqa: BLE001 - that is what we look for
            return f"raises {error!r:.200}"
        else:
            return "is read as if it were good"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    kinds: Counter[str] = Counter()
    shapes: Counter[str] = Counter()
    slowest: dict[str, float] = {}
    faults = []
    signal.signal(signal.SIGPROF, _ring)
    for good in GOOD:
        load(as_yaml(good).encode())
    before = peak_mib(resource.RUSAGE_SELF)
    for number, (kind, data) in enumerate(damaged(count)):
        kinds[kind] += 1
        start = time.monotonic()
        if found := fault(data):
            faults.append(f"file {number}, {kind}, {data[:200]!r}: {found}")
        slowest[kind] = max(slowest.get(kind, 0), time.monotonic() - start)
    return {
        "kinds": kinds,
        "shapes": shapes,
        "slowest": slowest,
        "grown_mib": peak_mib(resource.RUSAGE_SELF) - before,
        "faults": faults,
    }


COMMANDS: Final[Sequence[Sequence[str]]] = (
    ["plan", "FILE"],
    ["plan", "FILE", "--json"],
    ["explain", "FILE", "--job", "train"],
    ["plan", "-", "--json"],
)


class Done(NamedTuple):
    """How a command ended, and what it printed where."""

    status: int
    out: bytes
    err: bytes


def run_started(command: Sequence[str], file: Path) -> Done:
    """What a command does that is started as a user starts it."""
    with file.open("rb") as stream:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "ringleaf", *command],
            stdin=stream,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    return Done(done.returncode, done.stdout, done.stderr)


def run_forked(command: Sequence[str], file: Path) -> Done:
    """What a command does in a copy of this process, which has Ringleaf loaded.

    It has streams, memory and an end of its own as any process; only the start, which
    is the same for every file, is left out.
    """
    with TemporaryFile() as out, TemporaryFile() as err:
        if not (pid := os.fork()):
            with file.open("rb") as stream:
                for number, each in enumerate((stream, out, err)):
                    os.dup2(each.fileno(), number)
            os._exit(_status_of(command))
        _pid, waited = os.waitpid(pid, 0)
        status = os.waitstatus_to_exitcode(waited)
        for each in (out, err):
            each.seek(0)
        return Done(status, out.read(), err.read())


def _status_of(command: Sequence[str]) -> int:
    """The status with which Python would end."""
    from ringleaf.cli.main import run  # noqa: PLC0415

    signal.alarm(PATIENCE_S)
    sys.argv = ["ringleaf", *command]
    try:
        run()
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(bool(left.code))
    except BaseException:  # noqa: BLE001 - that is what we look for
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def run_one(folder: Path, number: int, file: Damaged) -> str | None:
    """What is wrong with how a command takes *file*, if anything."""
    path = folder / str(number)
    path.write_bytes(file.data)
    command = [str(path) if w == "FILE" else w for w in COMMANDS[number % 4]]
    done = (run_started if number < STARTED else run_forked)(command, path)
    path.unlink()
    said = done.err.decode()
    if done.status != 2 or done.out:
        return f"ends with {done.status} and prints {done.out[:200]!r}: {said}"
    if not said.startswith("ringleaf: ") or not said.endswith("\n"):
        return f"says {said!r}"
    return complaint(said.removesuffix("\n").replace(str(folder), ""))


def _load_commands() -> None:
    """Import whatever commands import, and some of it only when they are called."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        for command in ("plan", "explain"):
            _status_of([command, os.devnull])
    signal.alarm(0)


def run_all(count: int) -> dict[str, Any]:
    """Give *count* damaged files to real commands."""
    _load_commands()
    kinds: Counter[str] = Counter()
    faults = []
    with TemporaryDirectory() as folder:
        for number, file in enumerate(damaged(count)):
            kinds[file.kind] += 1
            if fault := run_one(Path(folder), number, file):
                said = f"file {number}, {file.kind}, {file.data[:200]!r}: {fault}"
                faults.append(said)
    return {
        "kinds": kinds,
        "peak_mib": peak_mib(resource.RUSAGE_CHILDREN),
        "faults": faults,
    }


if __name__ == "__main__":
    spec = {"load": load_all, "run": run_all}[sys.argv[1]]
    print(json.dumps(spec(int(sys.argv[2]))))  # noqa: T201
