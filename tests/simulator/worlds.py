"""Random scenarios that are run: queues, evictions, faults, all at one seed."""

from random import Random
from typing import Any

Document = dict[str, Any]

REQUESTS = [(8, 1), (8, 2), (8, 3), (4, 1), (1, 1), (2, 4), (8, 4), (9, 1)]
BLOCKS = [(16, 1), (16, 2), (2, 1), (4, 1), (16, 4), (3, 1)]
ACTIONS = [
    "enqueue, allocate, preempt, reclaim, backfill",
    "allocate, preempt",
    "enqueue, allocate, reclaim",
    "allocate, backfill",
    "enqueue, preempt, backfill",
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
        self._ranks: dict[str, list[int]] = {}
        self._blocks = self._maybe(0.3)
        self._leaves = self._maybe(0.4)
        self._idle = set(range(8))

    def _maybe(self, chance: float) -> bool:
        return self._random.random() < chance

    def document(self) -> Document:
        """A whole scenario."""
        random = self._random
        found: Document = {
            "nodes": [self._node(i) for i in self._first_nodes()],
            "queues": [{"name": "a", "weight": 3}, self._queue("b")],
            "running": [
                self._before("placements") for _ in range(random.randint(0, 2))
            ],
            "jobs": [self._job() for _ in range(random.randint(0, 6))],
            "settings": self._settings(),
            "grace-seconds": random.choice([0, 0, 5]),
        }
        if self._maybe(0.6):
            found["configuration"] = self._configuration()
        found["then"] = self._then(random.randint(0, 14))
        last = found["then"][-1]["at"] if found["then"] else 0
        return found | {"until": last + random.choice([0, 1000])}

    def _first_nodes(self) -> range:
        first = range(self._random.randint(1, 6))
        self._idle &= {*first}
        return first

    def _settings(self) -> Document:
        return {
            "nslb-version": self._random.choice(["1.0", "2.0"]),
            "reserve-nodes": self._random.randint(0, 2),
            "tor-level": "single_layer" if self._maybe(0.1) else "double_layer",
        }

    def _before(self, key: str) -> Document:
        """A job some of whose pods run, or ran until some nodes failed."""
        random, found = self._random, self._job()
        pods = _pods_of(found)
        nodes = random.sample(range(8), min(len(pods), 8))
        stood: list[Document] = [
            {"replica": rank, "node": f"n{node}", "chips": [*range(chips)]}
            for (rank, chips), node in zip(pods, nodes, strict=False)
            if node in self._idle and chips in (0, 1, 2, 4, 8, 16) and self._maybe(0.8)
        ]
        self._idle -= {node for node in nodes if key == "placements"}
        if key == "placements":
            return found | {key: stood}
        failed = sorted({each["node"] for each in stood if self._maybe(0.3)})
        keep = random.choice(["pods", "job"])
        past = {"placements": stood, "failed-nodes": failed, "keep": keep}
        return found | {key: past}

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
        found |= {"network-faulty": [1]} if self._maybe(0.1) else {}
        found |= {"unschedulable": True} if self._maybe(0.05) else {}
        taint = {"key": "t", "effect": self._random.choice(["NoSchedule", "NoExecute"])}
        found |= {"taints": [taint]} if self._maybe(0.05) else {}
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

    def _job(self, name: str | None = None) -> Document:
        random = self._random
        if name is None:
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
            worker |= {"min-member": random.randint(0, replicas)}
            found["roles"] = [driver, worker] if self._maybe(0.8) else [driver]
            found |= {"min-member": random.randint(0, 2)} if self._maybe(0.3) else {}
        else:
            found |= {"chips": chips, "replicas": replicas} | self._pods(replicas)
        found |= {"queue": random.choice("abc")} if self._maybe(0.4) else {}
        found |= {"priority": random.randint(0, 3)} if self._maybe(0.4) else {}
        found |= {"preemptable": False} if self._maybe(0.1) else {}
        if self._maybe(0.5):
            found["estimate-seconds"] = random.choice([10, 100, 1000])
        if self._blocks and self._maybe(0.3):
            found["super-pod-affinity"] = random.choice(["hard", "soft"])
            found["sp-block"] = chips
        if self._leaves and self._maybe(0.5):
            found["tor-affinity"] = random.choice(
                ["normal-schema", "large-model-schema"]
            )
        self._ranks[name] = [rank for rank, _chips in _pods_of(found)]
        return found

    def _pods(self, replicas: int) -> Document:
        random = self._random
        ranks = random.sample(range(9), replicas)
        like: list[tuple[float, Document]] = [
            (0.2, {"rank-index": ranks}),
            (0.3, {"min-member": random.randint(0, replicas)}),
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
            if self._maybe(0.2):
                return {"arrives": self._before("previous")}
            return {"arrives": self._job(name if self._maybe(0.1) else None)}
        pods = {"job": name, "replicas": [random.choice(self._ranks[name])]}
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


def _pods_of(job: Document) -> list[tuple[int, int]]:
    """The ranks of a job's pods with the chips of each; those with chips first."""
    if "roles" not in job:
        ranks = job.get("rank-index") or range(job["replicas"])
        return [(rank, job["chips"]) for rank in ranks]
    roles = sorted(job["roles"], key=lambda role: role["chips"] == 0)
    chips = [role["chips"] for role in roles for _ in range(role.get("replicas", 1))]
    return list(enumerate(chips))
