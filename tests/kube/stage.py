"""A cluster in memory: objects as an API server keeps them, a cache and an engine.

``stage.pod("p", 8)`` submits a pod, ``stage.cycle()`` lets the scheduler decide, and
what it binds is written on the pods, unless the test says otherwise. ``restart`` begins
anew from the objects alone, as after a crash.
"""

import json
from collections.abc import Callable, Iterable
from math import inf
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event
from ringleaf.framework.instruction import (
    Bind,
    Delete,
    Evict,
    Instruction,
    PersistRepair,
    Report,
)
from ringleaf.kube import encode, records
from ringleaf.kube.api import Api
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.decider import Decider
from ringleaf.kube.objects import (
    Budget,
    ConfigMap,
    NodeObject,
    Pod,
    PodGroup,
    PriorityClass,
    QueueObject,
    VolumeClaim,
)
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.record_store import Stored
from ringleaf.kube.scheduler import Options, Scheduler
from ringleaf.kube.status_writer import StatusWriter
from ringleaf.kube.watch import Gone
from ringleaf.model.placement import Placement

Plain = dict[str, Any]
NPU = "huawei.com/Ascend910"
GROUP = "scheduling.k8s.io/group-name"

_ALLOCATE: Final = {**DEFAULT.action_arguments["allocate"], "learn-run-times": True}
LEARNING: Final = replace(
    DEFAULT, action_arguments={**DEFAULT.action_arguments, "allocate": _ALLOCATE}
)
"""The default configuration, but running times are learnt."""


class Stage:
    """Objects, and a scheduler that sees them."""

    def __init__(
        self, nodes: str | Iterable[Plain] = "a", conf: Conf = DEFAULT
    ) -> None:
        self.pods: dict[str, Plain] = {}
        """By key."""
        self.nodes: dict[str, Plain] = {}
        self.groups: dict[str, Plain] = {}
        self.maps: dict[str, Plain] = {}
        self.records: dict[str, Stored] = {}
        """Job -> the record of its repair."""
        self.conf = conf
        self.now = 1000.0
        self.said: list[Instruction] = []
        self.heard: list[Event] = []
        self._uid = 0
        self.begin()
        for each in nodes.split() if isinstance(nodes, str) else nodes:
            self.put_node(node(each) if isinstance(each, str) else each)

    def begin(self, schedulers: Iterable[str] = ("ringleaf",)) -> None:
        """A new scheduler, which knows nothing."""
        self.cache = ClusterCache(schedulers, conf=self.conf)
        self.decider = Decider(self.cache, lambda: self.conf)

    @property
    def engine(self) -> Engine:
        """Who decides."""
        return self.decider.engine

    def restart(self) -> None:
        """A new scheduler, which reads what there is."""
        self.begin()
        self.read_everything()

    def step_down(self) -> None:
        """The scheduler has lost the lead: it keeps the books, and decides nothing."""
        self.cache.reconfigure(self.conf.quiet)
        self.cache.stand_by(self.engine.view, self.engine.repairs)
        self.heard = self.cache.events(self.now)
        self.said = self.engine.handle_all(self.heard, self.now)

    def lead(self) -> None:
        """The scheduler leads again, and has listed all pods before."""
        self.cache.handlers["pods"].on_update(_read(self.pods.values(), Pod))
        self.cache.reconfigure(self.conf)
        self.read_records()

    def read_everything(self) -> None:
        """The scheduler reads what there is."""
        self.cache.handlers["nodes"].on_update(_read(self.nodes.values(), NodeObject))
        self.cache.handlers["podgroups"].on_update(
            _read(self.groups.values(), PodGroup)
        )
        self.cache.handlers["pods"].on_update(_read(self.pods.values(), Pod))
        self.cache.handlers["configmaps"].on_update(
            _read(self.maps.values(), ConfigMap)
        )
        self.read_records()

    def read_records(self, *, moves: bool = False) -> None:
        """The scheduler reads the records of repairs, before it begins to lead."""
        self.cache.checkpoints.put(self.records.values(), moves=moves)

    # Objects.

    def put_node(self, plain: Plain) -> None:
        """A node is new or changed."""
        self.nodes[plain["metadata"]["name"]] = plain
        self.cache.handlers["nodes"].on_update(_read([plain], NodeObject))

    def drop_node(self, name: str) -> None:
        """A node is deleted; its pods stay until somebody deletes them."""
        del self.nodes[name]
        self.cache.handlers["nodes"].on_delete([Gone("", name, name)])

    def pod(self, name: str, chips: int = 8, group: str = "", **changes: Any) -> Plain:  # noqa: ANN401
        """Submit a pod."""
        self._uid += 1
        plain = pod(name, chips, group, uid=f"uid-{self._uid}", **changes)
        self.put_pod(plain)
        return plain

    def put_pod(self, plain: Plain) -> None:
        """A pod is new or changed."""
        meta = plain["metadata"]
        self.pods[f"{meta['namespace']}/{meta['name']}"] = plain
        self.cache.handlers["pods"].on_update(_read([plain], Pod))

    def drop_pod(self, name: str, namespace: str = "default") -> None:
        """A pod is gone."""
        plain = self.pods.pop(f"{namespace}/{name}")
        self.cache.handlers["pods"].on_delete(
            [Gone(namespace, name, plain["metadata"]["uid"])]
        )

    def ends(self, name: str, phase: str = "Succeeded") -> None:
        """A pod ends."""
        plain = self.pods[f"default/{name}"]
        plain["status"]["phase"] = phase
        self.put_pod(plain)

    def group(self, name: str, least: int, **spec: Any) -> Plain:  # noqa: ANN401
        """Submit a PodGroup."""
        meta = {"name": name, "namespace": "default", "uid": f"group-{name}"}
        for key in ("labels", "annotations"):
            if key in spec:
                meta[key] = spec.pop(key)
        status = {"phase": spec.pop("phase", "Pending")}
        plain = {
            "metadata": meta,
            "spec": {"minMember": least, **spec},
            "status": status,
        }
        self.put_group(plain)
        return plain

    def put_group(self, plain: Plain) -> None:
        """A PodGroup is new or changed."""
        self.groups[plain["metadata"]["name"]] = plain
        self.cache.handlers["podgroups"].on_update(_read([plain], PodGroup))

    def drop_group(self, name: str) -> None:
        """A PodGroup is gone."""
        del self.groups[name]
        self.cache.handlers["podgroups"].on_delete(
            [Gone("default", name, f"group-{name}")]
        )

    def gang(self, name: str, pods: int, chips: int = 8, **spec: Any) -> None:  # noqa: ANN401
        """Submit a PodGroup and all its pods."""
        self.group(name, spec.pop("least", pods), **spec)
        for i in range(pods):
            self.pod(f"{name}-{i}", chips, name)

    def queue(self, name: str, **spec: Any) -> None:  # noqa: ANN401
        """Submit a Queue."""
        state = spec.pop("state", "Open")
        plain = {"metadata": {"name": name}, "spec": spec, "status": {"state": state}}
        self.cache.handlers["queues"].on_update(_read([plain], QueueObject))

    def config_map(
        self, name: str, data: dict[str, str], space: str = "mindx-dl"
    ) -> None:
        """Submit a ConfigMap."""
        plain = {"metadata": {"name": name, "namespace": space, "uid": name}}
        self.maps[name] = plain | {"data": data}
        self.cache.handlers["configmaps"].on_update(_read([self.maps[name]], ConfigMap))

    def priority_class(self, name: str, value: int, **more: Any) -> None:  # noqa: ANN401
        """Submit a PriorityClass."""
        plain = {"metadata": {"name": name}, "value": value, **more}
        self.cache.handlers["priorityclasses"].on_update(_read([plain], PriorityClass))

    def budget(self, name: str, labels: dict[str, str], allowed: int) -> None:
        """Submit a PodDisruptionBudget."""
        plain = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": labels}},
            "status": {"disruptionsAllowed": allowed},
        }
        self.cache.handlers["budgets"].on_update(_read([plain], Budget))

    def claim(self, name: str, phase: str) -> None:
        """Submit a PersistentVolumeClaim."""
        plain = {
            "metadata": {"name": name, "namespace": "default"},
            "status": {"phase": phase},
        }
        self.cache.handlers["claims"].on_update(_read([plain], VolumeClaim))

    # Cycles.

    def cycle(
        self,
        later: float = 0.0,
        outcome: Callable[[PodState, Placement], str] = lambda _pod, _place: "bound",
        most: float = inf,
    ) -> list[str]:
        """What is decided, in words; each pod is ``bound``, ``failed`` or ``sent``.

        At most so many jobs start, and a search for victims is as short.
        """
        self.now += later
        self.heard = self.decider.news(self.now)
        self.said = self.engine.handle_all(self.heard, self.now, most)
        for name in self.engine.admitted:
            self.cache.assumed.admit(name)
        words = []
        for each in self.said:
            if isinstance(each, Bind):
                words.append(self._bind(each, outcome))
            elif isinstance(each, PersistRepair):
                self.remember(each)
            elif isinstance(each, Delete):
                how = "delete at once" if each.force else "delete"
                words.append(f"{how} {each.job}: {','.join(map(str, each.replicas))}")
            elif isinstance(each, Evict):
                self.cache.assumed.evict(each.job, each.replicas)
                words.append(f"evict {each.job}: {','.join(map(str, each.replicas))}")
            elif isinstance(each, Report):
                words.append(f"{each.verdict.value} {each.job}")
        return words

    def endure(self, later: float = 0.0) -> list[str]:
        """What is decided, as often as it takes until nothing fails."""
        for _time in range(20):
            try:
                return self.cycle(later)
            except Exception as error:  # noqa: BLE001 - as in the scheduler
                self.decider.recover(error, self.now)
            later = 0.0
        raise AssertionError("it fails again and again")

    def remember(self, each: PersistRepair) -> None:
        """The record of a repair is written, or removed."""
        plain = self.groups.get(each.job.partition("/")[2])
        if plain is None:
            return
        self.records.pop(each.job, None)
        if each.record is not None:
            numbered = self.cache.gangs[each.job].by_number()
            doomed = [
                numbered[n].uid
                for other in self.said
                if isinstance(other, Delete | Evict) and other.job == each.job
                for n in other.replicas
            ]
            self.write_record(each.job, records.write(each.record, doomed=doomed))
        self.cache.checkpoints.set(each.job, each.record)

    def write_record(self, job: str, text: str) -> None:
        """A record of the repair of a job is there, as a scheduler wrote it."""
        uid = self.groups[job.partition("/")[2]]["metadata"]["uid"]
        self.records[job] = Stored(job, uid, text)

    def _bind(self, each: Bind, outcome: Callable[[PodState, Placement], str]) -> str:
        pods = self.cache.assumed.assume(each.job, each.placements)
        told = []
        for record, place, given in zip(
            pods, each.placements, each.annotations, strict=True
        ):
            chips = "".join(f"{chip:x}" for chip in place.chips)
            told.append(f"{record.name} on {place.node} {chips}".rstrip())
            facts = self.cache.nodes[place.node]
            stamp = int(self.now * 1e9) + len(told)
            written = encode.written(record, place, given, facts, stamp)
            match outcome(record, place):
                case "bound":
                    self.write(record.key, place.node, written)
                    self.cache.assumed.bound(record.uid)
                case "written":
                    self.write(record.key, place.node, written, seen=False)
                case "failed":
                    self.cache.assumed.forget(record.uid, self.now)
        return f"bind {each.job}: {', '.join(told)}"

    def write(
        self, key: str, where: str, written: dict[str, str], *, seen: bool = True
    ) -> None:
        """The API server binds a pod; the scheduler has *seen* it, or not yet."""
        plain = self.pods[key]
        assert not plain["spec"].get("nodeName"), f"{key} is bound already"
        plain["spec"]["nodeName"] = where
        plain["metadata"]["annotations"] |= written
        if seen:
            self.put_pod(plain)

    # What there is.

    @property
    def bound(self) -> dict[str, str]:
        """Pod -> its node and chips, as the API server has it."""
        found = {}
        for key, plain in sorted(self.pods.items()):
            where = plain["spec"].get("nodeName")
            if where and plain["status"]["phase"] not in ("Succeeded", "Failed"):
                chips = plain["metadata"]["annotations"].get(NPU, "")
                text = "".join(c.rpartition("-")[2] for c in chips.split(",") if c)
                found[key.removeprefix("default/")] = f"{where} {text}".rstrip()
        return found

    def reason(self, group: str) -> str:
        """Why the engine is not told of pods that wait."""
        return self.cache.gangs[group].status.not_ready


def node(name: str, **changes: Any) -> Plain:  # noqa: ANN401
    """A node with eight chips of Atlas 800T A2."""
    chips = changes.pop("chips", 8)
    devices = {
        f"Ascend910-{i}": {"IP": f"10.9.0.{i}", "SuperDeviceID": i}
        for i in range(chips)
    }
    labels = changes.pop("labels", {"accelerator-type": "module-910b-8"})
    return {
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "labels": labels,
            "annotations": {"baseDeviceInfos": json.dumps(devices)},
        },
        "spec": changes.pop("spec", {}),
        "status": {
            "allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110"}
            | ({NPU: str(chips)} if chips else {})
            | changes.pop("allocatable", {}),
            "conditions": [{"type": "Ready", "status": changes.pop("ready", "True")}],
            "addresses": [{"type": "InternalIP", "address": f"10.0.0.{ord(name[0])}"}],
        },
    }


def pod(
    name: str,
    chips: int = 8,
    group: str = "",
    **changes: Any,  # noqa: ANN401
) -> Plain:
    """A pod that asks for *chips* of Atlas 800T A2."""
    asks = {"cpu": "1", **({NPU: str(chips)} if chips else {})}
    asks |= changes.pop("asks", {})
    annotations = {GROUP: group} if group else {}
    owner = {"kind": "Job", "name": group, "uid": group, "controller": True}
    owners = {"ownerReferences": [owner]} if changes.pop("owned", False) else {}
    return {
        "metadata": {
            **owners,
            "name": name,
            "namespace": changes.pop("namespace", "default"),
            "uid": changes.pop("uid", name),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": changes.pop("labels", {}),
            "annotations": annotations | changes.pop("annotations", {}),
        },
        "spec": {
            "schedulerName": changes.pop("scheduler", "ringleaf"),
            "nodeSelector": {"accelerator-type": "module-910b-8"} if chips else {},
            "containers": [{"name": "c", "resources": {"requests": asks}}],
            **changes.pop("spec", {}),
        },
        "status": {"phase": changes.pop("phase", "Pending")},
    }


def _read(plain: Iterable[Plain], kind: Any) -> list[Any]:  # noqa: ANN401
    return [msgspec.json.decode(msgspec.json.encode(each), type=kind) for each in plain]


def status_writer_of(
    stage: Stage, server: object, clock: Callable[[], float]
) -> StatusWriter:
    """Who tells what there is to tell of *stage*, to a server of the test's."""
    return StatusWriter(
        cast(Api, server),
        stage.cache,
        lambda: stage.engine.view,
        clock,
        is_binding=lambda: False,
        name="test",
    )


def scheduler_of(
    stage: Stage, say: Callable[..., None] = lambda *_what, **_facts: None
) -> Scheduler:
    """A scheduler over *stage* that sends nothing."""
    return Scheduler(cast(Api, None), Options(), say, decider=stage.decider)
