"""Of the pods with our name, a canary places those of its queues and namespaces."""

from collections.abc import Iterable
from typing import Any

import pytest

from ringleaf.kube import names, records
from ringleaf.kube.canary import Canary
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.decider import Decider
from ringleaf.model.fault import Record
from ringleaf.model.placement import Placement
from tests.kube.stage import Stage

QUEUE = "scheduling.volcano.sh/queue-name"
BY_QUEUE = Canary(queues=frozenset({"research"}))
BY_NAMESPACE = Canary(namespaces=frozenset({"team"}))


class CanaryStage(Stage):
    """A scheduler with a canary."""

    def __init__(self, canary: Canary) -> None:
        self._canary = canary
        super().__init__("a b")
        self.queue("research")
        self.cycle()

    def begin(self, schedulers: Iterable[str] = ("ringleaf",)) -> None:
        """A new scheduler, which knows nothing."""
        self.cache = ClusterCache(schedulers, self.conf, self._canary)
        self.decider = Decider(self.cache, lambda: self.conf)


PODS = [
    pytest.param(BY_QUEUE, {"annotations": {QUEUE: "research"}}, True, id="queue"),
    pytest.param(BY_QUEUE, {}, False, id="another queue"),
    pytest.param(BY_NAMESPACE, {"namespace": "team"}, True, id="namespace"),
    pytest.param(BY_NAMESPACE, {}, False, id="another namespace"),
]


@pytest.mark.parametrize(("canary", "said", "placed"), PODS)
def test_pods_without_a_group(
    canary: Canary, said: dict[str, Any], *, placed: bool
) -> None:
    stage = CanaryStage(canary)
    stage.pod("p", 8, **said)

    decided = stage.cycle()

    assert bool(decided) is placed
    if not placed:
        assert stage.reason("pod default/p").startswith("not in the canary: queue ")


def test_a_gang_is_where_its_podgroup_is() -> None:
    stage = CanaryStage(BY_QUEUE)
    stage.gang("in", 1, queue="research")
    stage.gang("out", 1, queue="default")

    assert stage.cycle() == ["bind default/in: in-0 on a 01234567"]
    assert stage.reason("default/out") == (
        "not in the canary: queue 'default' of namespace 'default', "
        "only queue 'research' counts"
    )


def test_podgroups_without_pods_are_let_in_only_inside() -> None:
    stage = CanaryStage(BY_QUEUE)
    stage.group("in", 1, queue="research")
    stage.group("out", 1, queue="default")
    stage.cycle()

    inside, outside = (stage.cache.gangs[f"default/{n}"] for n in ("in", "out"))
    assert (inside.reported.is_admitted, inside.status.outside_canary) == (True, False)
    assert (outside.reported.is_admitted, outside.status.outside_canary) == (
        False,
        True,
    )


def test_what_is_bound_counts_wherever_it_is() -> None:
    stage = CanaryStage(BY_QUEUE)
    stage.gang("out", 2, queue="default")
    stage.write("default/out-0", "a", {"huawei.com/AscendReal": "Ascend910-0"})
    stage.gang("in", 1, queue="research")
    stage.pod("theirs", 8, scheduler="volcano", spec={"nodeName": "a"})
    stage.cycle()

    assert "default/out" in stage.engine.view.cluster.holdings
    assert stage.bound["in-0"].startswith("b")


@pytest.mark.parametrize(
    ("schedulers", "starts"), [(["ringleaf"], False), (["volcano", "ringleaf"], True)]
)
def test_a_pod_recreated_for_a_gang_of_volcano_waits_for_both_names(
    schedulers: list[str], *, starts: bool
) -> None:
    stage = CanaryStage(BY_QUEUE)
    stage.begin(schedulers)
    stage.read_everything()
    stage.queue("research")
    stage.group("g", 2, queue="research", phase="Running")
    stage.pod("g-0", 8, "g", scheduler="volcano")
    chips = ",".join(f"Ascend910-{i}" for i in range(8))
    stage.write("default/g-0", "a", {"huawei.com/AscendReal": chips})
    stage.pod("g-1", 8, "g")

    decided = stage.cycle()

    waits = (
        "" if starts else "pod group is not ready, 1 of 2 pods are there (minMember)"
    )
    assert bool(decided) is starts
    assert stage.reason("default/g") == waits


def faulty(stage: Stage, name: str) -> None:
    """The node of a pod is not ready."""
    where = stage.pods[f"default/{name}"]["spec"]["nodeName"]
    plain = stage.nodes[where]
    plain["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    stage.put_node(plain)


@pytest.mark.parametrize(("queue", "deletes"), [("research", True), ("default", False)])
def test_faulty_pods_are_deleted_only_inside(queue: str, *, deletes: bool) -> None:
    stage = CanaryStage(BY_QUEUE)
    stage.group("g", 1, queue=queue, labels={"fault-scheduling": "force"})
    stage.pod("g-0", 8, "g")
    chips = ",".join(f"Ascend910-{i}" for i in range(8))
    stage.write("default/g-0", "a", {"huawei.com/AscendReal": chips})
    stage.cycle()
    faulty(stage, "g-0")

    said = stage.cycle()

    assert ("delete at once default/g: 0" in said) is deletes


REPAIR = Record(
    since=1.0, placements=(Placement(0, "a", tuple(range(8))),), deleted=(0,)
)


@pytest.mark.parametrize(
    ("queue", "by", "held"),
    [
        ("research", names.SCHEDULER, True),
        ("research", "", True),
        ("research", "another-scheduler", False),
        ("default", names.SCHEDULER, False),
    ],
)
def test_places_are_held_only_for_own_repairs(
    queue: str, by: str, *, held: bool
) -> None:
    stage = CanaryStage(BY_QUEUE)
    text = records.write(REPAIR, by=by)
    stage.group("g", 1, queue=queue)
    stage.write_record("default/g", text)
    stage.read_records()
    stage.cycle()

    assert ("default/g" in stage.engine.repairs) is held
