"""Random scenarios that are run: queues, evictions, faults, all at one seed."""

from random import Random
from typing import Any

Document = dict[str, Any]

REQUESTS = [(8, 1), (8, 2), (8, 3), (4, 1), (1, 1), (2, 4), (8, 4)]
BLOCKS = [(16, 1), (16, 2), (2, 1), (4, 1)]
ACTIONS = [
    "enqueue, allocate, preempt, reclaim, backfill",
    "allocate, preempt",
    "enqueue, allocate, reclaim",
    "allocate, backfill",
]
SECOND_TIERS = [
    ["drf", "predicates", "proportion", "nodeorder", "binpack"],
    ["predicates", "proportion"],
    ["overcommit", "nodeorder"],
]


class World:
    """Makes one document."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - the same world every time
        self._names: list[str] = []
        self._blocks = self._maybe(0.3)
        self._leaves = self._maybe(0.4)

    def _maybe(self, chance: float) -> bool:
        return self._random.random() < chance

    def document(self) -> Document:
        """A whole scenario."""
        random = self._random
        found: Document = {
            "nodes": [self._node(i) for i in range(random.randint(1, 6))],
            "queues": [{"name": "a", "weight": 3}, self._queue("b")],
            "jobs": [self._job() for _ in range(random.randint(0, 6))],
            "grace-seconds": random.choice([0, 0, 5]),
        }
        if self._maybe(0.6):
            found["configuration"] = self._configuration()
        found["then"] = self._then(random.randint(0, 14))
        last = found["then"][-1]["at"] if found["then"] else 0
        return found | {"until": last + random.choice([0, 1000])}

    def _node(self, number: int) -> Document:
        found: Document = {
            "name": f"n{number}",
            "product": "atlas-900-a3" if self._blocks else "atlas-800t-a2",
            "resources": {"cpu": 64},
            "labels": {"rack": f"r{number % 3}"},
        }
        found |= {"leaf": "AB"[number % 2]} if self._leaves else {}
        found |= {"superpod": number % 2} if self._blocks else {}
        found |= {"faulty": [self._random.randrange(8)]} if self._maybe(0.1) else {}
        return found | ({"ready": False} if self._maybe(0.05) else {})

    def _queue(self, name: str) -> Document:
        chips = {"huawei.com/Ascend910": self._random.choice([8, 16, 32])}
        return {
            "name": name,
            "weight": self._random.randint(1, 4),
            "reclaimable": self._maybe(0.5),
            "state": "closed" if self._maybe(0.1) else "open",
            **({"capability": chips} if self._maybe(0.2) else {}),
            **({"guarantee": chips} if self._maybe(0.2) else {}),
        }

    def _job(self) -> Document:
        random = self._random
        name = f"j{len(self._names)}"
        self._names.append(name)
        chips, replicas = random.choice(BLOCKS if self._blocks else REQUESTS)
        found: Document = {"name": name}
        if self._maybe(0.15):
            worker = {"name": "w", "chips": chips, "replicas": replicas}
            driver = {
                "name": "d",
                "chips": 0,
                "resources": {"cpu": random.choice([1, 40])},
            }
            found["roles"] = [driver, worker]
        else:
            found |= {"chips": chips, "replicas": replicas} | self._pods(replicas)
        found |= {"queue": random.choice("abc")} if self._maybe(0.4) else {}
        found |= {"priority": random.randint(0, 3)} if self._maybe(0.4) else {}
        found |= {"preemptable": False} if self._maybe(0.1) else {}
        if self._maybe(0.5):
            found["estimate-seconds"] = random.choice([10, 100, 1000])
        if self._leaves and not self._blocks and self._maybe(0.5):
            found["tor-affinity"] = random.choice(
                ["normal-schema", "large-model-schema"]
            )
        return found

    def _pods(self, replicas: int) -> Document:
        random = self._random
        ranks = random.sample(range(9), replicas)
        like: list[tuple[float, Document]] = [
            (0.2, {"rank-index": ranks}),
            (0.3, {"min-member": random.randint(1, replicas)}),
            (0.2, {"resources": {"cpu": random.choice([1, 16, 40])}}),
            (0.1, {"host-ports": [80]}),
            (0.1, {"spread": [{"topology-key": "rack", "selector": {}}]}),
            (0.1, {"pod-anti-affinity": [{"topology-key": "rack", "selector": {}}]}),
        ]
        return {
            k: v for chance, own in like if self._maybe(chance) for k, v in own.items()
        }

    def _configuration(self) -> Document:
        first = ["priority", "gang", "conformance", "affinity"]
        tiers = [first, self._random.choice(SECOND_TIERS)]
        return {
            "actions": self._random.choice(ACTIONS),
            "tiers": [{"plugins": [{"name": n} for n in tier]} for tier in tiers],
        }

    def _then(self, count: int) -> list[Document]:
        at, found = 0, []
        for _ in range(count):
            at += self._random.choice([0, 1, 7, 50, 400])
            found.append({"at": at, **self._event()})
        return found

    def _event(self) -> Document:
        random = self._random
        name = random.choice(self._names) if self._names else None
        if name is None or self._maybe(0.4):
            return {"arrives": self._job()}
        pods = {"job": name, "replicas": [random.randint(0, 3)]}
        return random.choice(
            [
                {"ends": name},
                {"ends": name},
                {"pods-end": pods},
                {"pods-end": pods | {"succeeded": True}},
                {"pods-ending": pods},
                {"bind-fails": pods},
                {"nodes": [self._node(random.randint(0, 7))]},
                {"queue": self._queue(random.choice("abc"))},
                {"queue-gone": random.choice("abc")},
                {"configuration": self._configuration()},
                {"leaves": {"A": {"address": "10.0.0.1"}} if self._leaves else {}},
                {"wakes": True},
            ]
        )
