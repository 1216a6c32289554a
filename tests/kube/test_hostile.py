"""What tenants may write on their objects, and what it must not do to anybody else."""

import json

import msgspec
import pytest

from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.kube.objects import Budget
from ringleaf.kube.pod_request import chips_named
from ringleaf.kube.watch import Gone
from tests.kube.stage import NPU, Plain, Stage, node

REAL = "huawei.com/AscendReal"


def _reclaim() -> Conf:
    tiers = (
        ["priority", "gang", "conformance", "affinity"],
        ["drf", "predicates", "proportion"],
    )
    found = read_conf(
        {
            "actions": "enqueue, allocate, reclaim",
            "tiers": [{"plugins": [{"name": n} for n in tier]} for tier in tiers],
        }
    )
    assert isinstance(found, Conf)
    return found


RECLAIM = _reclaim()


def chips(*numbers: int) -> str:
    return ",".join(f"Ascend910-{n}" for n in numbers)


def annotate(stage: Stage, name: str, **changes: str | None) -> None:
    """Somebody writes on a pod; None takes an annotation off."""
    plain = stage.pods[f"default/{name}"]
    written = plain["metadata"]["annotations"]
    for key, value in changes.items():
        written.pop(key, None)
        if value is not None:
            written[key] = value
    stage.put_pod(plain)


def bound_elsewhere(
    stage: Stage, name: str, asked: int, text: str | None, where: str = "a"
) -> None:
    """Another scheduler has bound a pod to a node."""
    written = {} if text is None else {REAL: text}
    spec = {"nodeName": where}
    stage.pod(name, asked, scheduler="other", spec=spec, annotations=written)


# Annotations that cannot be what they say


NO_CHIPS = {
    "leading zeros": "Ascend910-0000100",
    "ten nines": "Ascend910-0000" + "9" * 10,
    "thousands of digits": "Ascend910-0000" + "9" * 4400,
    "other digits": "Ascend910-\u0663",
    "no number": "Ascend910-x",
    "nothing": ",",
}


@pytest.mark.parametrize("text", NO_CHIPS.values(), ids=NO_CHIPS)
def test_what_names_no_chips_closes_the_node_and_stops_nobody_else(text: str) -> None:
    assert chips_named(text) is None
    stage = Stage("a b")
    bound_elsewhere(stage, "odd", 1, text)
    stage.pod("good", 8)
    assert stage.cycle() == ["bind pod default/good: good on b 01234567"]

    stage.restart()
    stage.pod("next", 8)
    assert stage.cycle() == ["waiting pod default/next"]


@pytest.mark.parametrize(
    "block", ["0000000010" + "0" * 50, "0" * 10 + "1" * 4400, "9" * 10, "-8", "8x"]
)
def test_an_odd_block_size_is_one_clear_line(block: str) -> None:
    stage = Stage("a b")
    stage.pod("odd", 8, annotations={"sp-block": block})
    stage.pod("good", 8)
    assert stage.cycle() == ["bind pod default/good: good on a 01234567"]

    said = stage.reason("pod default/odd")
    assert said.startswith("job 'pod default/odd': annotation sp-block is '")
    assert said.endswith(", want a whole number of chips")


# Chips are given once


EDITS: dict[str, dict[str, str | None]] = {
    "garbled": {REAL: "zzz"},
    "removed": {REAL: None, NPU: None},
    "fewer than asked": {REAL: chips(0)},
    "more than asked": {REAL: chips(0, 1, 2, 3, 4)},
    "one twice": {REAL: chips(0, 0, 1, 2)},
    "one that the node does not have": {REAL: chips(0, 1, 2, 63)},
    "none that the node has": {REAL: chips(60, 61, 62, 63)},
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("restarts", [False, True])
def test_a_pod_whose_chips_are_unclear_keeps_them(
    edit: dict[str, str | None], *, restarts: bool
) -> None:
    stage = Stage("a")
    stage.pod("first", 4)
    assert stage.cycle() == ["bind pod default/first: first on a 0123"]

    annotate(stage, "first", **edit)
    if restarts:
        stage.restart()
    stage.cycle()
    stage.pod("second", 4)
    assert stage.cycle() == ["waiting pod default/second"]

    annotate(stage, "first", **{REAL: chips(0, 1, 2, 3)})
    assert stage.cycle() == ["bind pod default/second: second on a 4567"]


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("label", ["null", "big"], ids=["readable", "unreadable"])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_queue_is_charged_for_what_its_pods_requested(
    edit: dict[str, str | None], label: str, *, restarts: bool
) -> None:
    """An annotation neither hides what a queue uses nor makes it more."""
    stage = Stage("a")
    stage.gang("first", 1, 4)
    stage.cycle()
    stage.group("first", 1, labels={"tor-affinity": label})
    annotate(stage, "first-0", **edit)
    if restarts:
        stage.restart()
    stage.cycle()

    assert stage.engine.view.queue_usage["default"].allocated[NPU] == 4000


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("group", ["", "two"])
def test_a_queue_is_charged_for_no_more_than_nodes_have(
    group: str, *, restarts: bool
) -> None:
    """A bound pod that its node cannot run takes no quota from others of its queue."""
    stage = Stage([node("a", allocatable={"cpu": "10"}), node("b")])
    stage.group("two", 1)
    here, much = {"nodeName": "a"}, {"cpu": "9E", "x.io/unknown": "9E"}
    for i in range(2):
        stage.pod(f"wide-{i}", 2, group, asks=much, spec=here)
        stage.cycle()
    stage.group("good", 1)
    stage.pod("good-0", 8, "good", asks={"cpu": "1"})
    if restarts:
        stage.restart()
    said = stage.cycle()

    account = stage.engine.view.queue_usage["default"]
    assert account.allocated["cpu"] <= 21_000
    assert "bind default/good: good-0 on b 01234567" in said

    for i in range(2):
        stage.drop_pod(f"wide-{i}")
    stage.cycle()

    assert account.allocated["cpu"] == 1000


def test_reclaim_takes_nothing_for_chips_that_a_pod_only_names() -> None:
    """A pod of one chip that names eight takes its queue above no share."""
    stage = Stage("a b c d", conf=RECLAIM)
    stage.queue("default", weight=1)
    stage.queue("research", weight=1)
    for name, where, own, priority in (
        ("whole", "a", range(8), -10),
        ("liar", "b", range(1), 0),
        ("half", "c", range(4), 0),
    ):
        spec = {"nodeName": where, "priority": priority}
        stage.pod(name, len(own), spec=spec, annotations={NPU: chips(*own)})
    bound_elsewhere(stage, "other", 4, chips(4, 5, 6, 7), where="c")
    stage.gang("one", 1, 8, queue="research")
    assert stage.cycle() == ["bind default/one: one-0 on d 01234567"]

    annotate(stage, "liar", **{REAL: chips(*range(8))})
    stage.gang("two", 1, 8, queue="research")

    assert stage.cycle(later=10) == ["waiting default/two"]


def test_while_two_pods_name_one_chip_none_of_the_node_is_given() -> None:
    """The device plugin swaps chips between pods, and tells it of one after the other.

    The chip that seems to be free is the other pod's.
    """
    stage = Stage("a")
    stage.pod("one", 1)
    stage.pod("two", 1)
    stage.cycle()
    assert stage.bound == {"one": "a 0", "two": "a 1"}

    annotate(stage, "one", **{REAL: chips(1)})
    stage.cycle()
    stage.pod("three", 1)
    assert stage.cycle() == ["waiting pod default/three"]

    annotate(stage, "two", **{REAL: chips(0)})
    assert stage.cycle() == ["bind pod default/three: three on a 2"]


def test_a_pod_that_ends_beside_an_unclear_one_gives_nothing_back_yet() -> None:
    stage = Stage("a")
    stage.pod("first", 4)
    stage.pod("second", 4)
    stage.cycle()
    annotate(stage, "first", **{REAL: "zzz"})
    stage.cycle()

    stage.ends("second")
    stage.cycle()
    stage.pod("third", 4)
    assert stage.cycle() == ["waiting pod default/third"]

    stage.drop_pod("first")
    assert stage.cycle() == ["bind pod default/third: third on a 0123"]


def test_a_pod_that_asks_for_no_chips_holds_none_and_is_told() -> None:
    stage = Stage("a")
    bound_elsewhere(stage, "greedy", 0, chips(*range(8)))
    stage.pod("good", 8)
    assert stage.cycle() == ["bind pod default/good: good on a 01234567"]

    (problem,) = stage.cache.problems.unreported
    assert problem.message.startswith("Pod 'default/greedy' asks for no chips")
    assert "it holds none; hint: take the annotation off" in problem.message


def test_a_pod_that_asks_for_parts_of_chips_keeps_its_node_closed() -> None:
    """Its chips have other names; another scheduler may have given them."""
    stage = Stage("a")
    spec = {"nodeName": "a"}
    parts = {"huawei.com/Ascend910-2c": "1"}
    stage.pod("part", 0, scheduler="other", spec=spec, asks=parts)
    stage.pod("good", 8)
    assert stage.cycle() == ["waiting pod default/good"]


def test_a_bound_pod_that_cannot_be_read_closes_its_node() -> None:
    stage = Stage("a b")
    raw = {"metadata": {"name": "odd", "namespace": "default", "uid": "u"}}
    raw["spec"] = {"nodeName": "a", "priority": "high"}
    stage.cache.handlers["pods"].on_unreadable("default/odd", json.dumps(raw).encode())
    stage.pod("good", 8)
    stage.pod("next", 8)
    assert stage.cycle() == [
        "bind pod default/good: good on b 01234567",
        "waiting pod default/next",
    ]

    stage.pods["default/odd"] = raw
    stage.drop_pod("odd")
    assert stage.cycle() == ["bind pod default/next: next on a 01234567"]


def test_a_pod_that_can_be_read_again_opens_its_node() -> None:
    stage = Stage("a")
    stage.cache.handlers["pods"].on_unreadable(
        "default/odd",
        b'{"metadata": {"uid": "uid-1"}, "spec": {"nodeName": "a"}, "status": 7}',
    )
    stage.cache.handlers["pods"].on_unreadable("default/worse", b"{")
    stage.cycle()
    stage.pod("odd", 4, spec={"nodeName": "a"}, annotations={REAL: chips(0, 1, 2, 3)})
    stage.pod("good", 4)
    assert stage.cycle() == ["bind pod default/good: good on a 4567"]


# What Kubernetes counts


def closed(allocatable: int) -> Plain:
    return node("a", allocatable={NPU: str(allocatable)})


def test_a_node_whose_device_plugin_is_down_gets_no_chips() -> None:
    stage = Stage([closed(0)])
    stage.pod("good", 1)
    assert stage.cycle() == ["waiting pod default/good"]
    (problem,) = stage.cache.problems.unreported
    assert "status.allocatable counts 0 huawei.com/Ascend910" in problem.message
    assert "8 are not given; hint: see whether the device plugin" in problem.message

    stage.put_node(closed(8))
    assert stage.cycle() == ["bind pod default/good: good on a 0"]


def test_a_node_gives_no_more_chips_than_kubernetes_counts() -> None:
    stage = Stage("a")
    stage.pod("first", 2)
    stage.cycle()
    stage.put_node(closed(4))
    stage.pod("second", 2)
    stage.pod("third", 1)
    assert stage.cycle() == [
        "bind pod default/second: second on a 23",
        "waiting pod default/third",
    ]

    stage.drop_pod("first")
    assert stage.cycle() == ["bind pod default/third: third on a 0"]


def test_chips_of_a_node_that_closed_stay_closed_when_a_pod_ends() -> None:
    stage = Stage("a")
    stage.pod("first", 4)
    stage.cycle()
    stage.put_node(closed(0))
    stage.cycle()
    stage.ends("first")
    stage.cycle()
    stage.pod("second", 1)
    assert stage.cycle() == ["waiting pod default/second"]


# A gang that runs


def running(stage: Stage, *names: str) -> None:
    for name in names:
        plain = stage.pods[f"default/{name}"]
        plain["status"]["phase"] = "Running"
        plain["status"]["startTime"] = "2026-01-01T00:01:00Z"
        stage.put_pod(plain)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("returns", [False, True])
def test_a_gang_that_lost_a_pod_is_not_half_bound_whatever_its_phase(
    *, restarts: bool, returns: bool
) -> None:
    stage = Stage("a b c")
    stage.gang("g", 3)
    stage.cycle()
    stage.cache.take_changed()
    running(stage, "g-0", "g-1", "g-2")
    stage.cycle(30)
    stage.cache.take_changed()
    stage.drop_pod("g-1")
    if returns:
        plain = stage.pod("g-1", 8, "g")
        plain["metadata"]["creationTimestamp"] = "2026-01-01T00:02:00Z"
    if restarts:
        stage.restart()
    stage.cache.events(stage.now)
    stage.cache.take_changed()

    assert stage.groups["g"]["status"]["phase"] == "Pending"
    assert not stage.cache.gangs["default/g"].is_half_bound


def test_a_gang_of_which_a_pod_was_never_bound_is_half_bound() -> None:
    stage = Stage("a b c")
    stage.gang("g", 3)
    stage.cycle(outcome=lambda pod, _at: "bound" if pod.name != "g-1" else "sent")
    running(stage, "g-0", "g-2")
    stage.restart()
    stage.cache.events(stage.now)
    stage.cache.take_changed()

    assert stage.cache.gangs["default/g"].is_half_bound


# A PodGroup without pods


def test_names_of_quotas_in_min_resources_are_nothing_that_a_node_has() -> None:
    """Volcano's controller writes them there."""
    stage = Stage("a b")
    asks = {"cpu": "2", "pods": "2", NPU: "16"}
    quotas = {"requests.cpu": "2", "limits.cpu": "2", "count/pods": "2"}
    stage.group("g", 2, minResources=asks | quotas)
    stage.cycle()
    assert [*stage.engine.admitted] == ["default/g"]


def test_names_of_quotas_keep_no_job_from_chips_that_others_cannot_use() -> None:
    """A gang that no node fits is admitted; the next needs chips that are free."""
    others = {"accelerator": "huawei-Ascend910"}
    stage = Stage([*map(node, "abcd"), *(node(n, labels=others) for n in "efgh")])
    stage.gang("huge", 5, least=5)
    stage.cycle()

    asks = {NPU: "32", "pods": "4"}
    quotas = {"requests." + NPU: "32", "limits." + NPU: "32", "count/pods": "4"}
    stage.group("fine", 4, minResources=asks | quotas)
    stage.cycle()

    assert "default/fine" in stage.engine.admitted


# What a node says of itself


@pytest.mark.parametrize("amount", ["1e30", "9E", "-5", "1e-30", "0.5", "x"])
def test_a_node_with_odd_amounts_keeps_no_pods_from_other_nodes(amount: str) -> None:
    odd = {"cpu": amount, "memory": amount, "pods": amount, NPU: amount}
    stage = Stage([node("b"), node("odd", allocatable=odd)])
    stage.queue("default", weight=1)

    stage.pod("first", 8, spec={"nodeSelector": {"metadata.name": "b"}})
    stage.pod("good", 8)

    stage.cycle()
    assert stage.bound["good"] == "b 01234567"


def test_pods_that_ask_for_more_than_there_is_leave_no_room_on_their_node() -> None:
    """They come with their node; the kubelet refuses them later."""
    stage = Stage("a b")
    for i in range(10):
        asks = {"memory": "9E", "cpu": "9E"}
        stage.pod(f"huge{i}", 0, scheduler="other", spec={"nodeName": "a"}, asks=asks)
    stage.cycle()
    stage.pod("good", 8)
    assert stage.cycle() == ["bind pod default/good: good on b 01234567"]

    for i in range(10):
        stage.drop_pod(f"huge{i}")
    stage.pod("next", 8)
    assert stage.cycle() == ["bind pod default/next: next on a 01234567"]


# Budgets


def test_a_budget_that_names_many_values_means_every_pod() -> None:
    stage = Stage("a")
    stage.pod("p", 1, labels={"app": "x"})
    many = [f"v{i}" for i in range(2000)]
    expression = {"key": "app", "operator": "In", "values": many}
    put_budget(stage, "many", {"matchExpressions": [expression]}, 0)
    stage.cycle()

    assert not stage.engine.view.job_states["pod default/p"].job.preemptable

    put_budget(stage, "many", {"matchExpressions": [expression]}, 1)
    stage.cycle()
    assert stage.engine.view.job_states["pod default/p"].job.preemptable
    stage.cache.handlers["budgets"].on_delete([Gone("default", "many", "")])
    stage.cache.handlers["budgets"].on_delete([Gone("default", "many", "")])


def test_budgets_without_number_are_held_against_few_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A job that would take longer than that to be judged is not evicted."""
    stage = Stage("a")
    for i in range(20):
        no = [{"key": f"no{i}", "operator": "Exists"}]
        put_budget(stage, f"b{i}", {"matchExpressions": no}, 9)
        put_budget(stage, f"c{i}", {"matchLabels": {"app": f"other{i}"}}, 9)
    stage.pod("p", 1, labels={"app": "x"})
    stage.cycle()
    assert stage.engine.view.job_states["pod default/p"].job.preemptable

    monkeypatch.setattr("ringleaf.kube.budgets.MOST_WORK", 30)
    put_budget(stage, "late", {"matchLabels": {"app": "x"}}, 9)
    stage.cycle()
    assert not stage.engine.view.job_states["pod default/p"].job.preemptable


def put_budget(stage: Stage, name: str, selector: Plain, allowed: int) -> None:
    plain = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": allowed},
    }
    stage.cache.handlers["budgets"].on_update([msgspec.convert(plain, Budget)])
