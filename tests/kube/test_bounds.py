"""What tenants write costs memory and work in proportion to their own pods.

Memory is counted in bytes that stay allocated, work in calls and entries; nothing here
looks at a clock.
"""

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from ringleaf.engine.event import Event, JobArrived
from ringleaf.kube import demand, jobs, node_info, node_store, pod_request
from ringleaf.kube.demand import (
    MAX_BYTES,
    MAX_POD_TERMS,
    MAX_REQUIREMENTS,
    MAX_RESOURCES,
    MAX_TERMS,
)
from ringleaf.kube.jobs import MAX_OF_NODES, MAX_OF_PODS, MAX_REQUESTS
from ringleaf.kube.names import QUEUE_NAME
from ringleaf.kube.node_info import MAX_RESOURCES as MAX_NODE_RESOURCES
from ringleaf.kube.pod_state import MAX_CLAIMS, MAX_LABELS, MAX_TEXT, PodState
from ringleaf.kube.quantity import quantity
from ringleaf.model.node_labels import Column
from tests.kube.stage import NPU, Stage, node

MUST = "requiredDuringSchedulingIgnoredDuringExecution"
MAY = "preferredDuringSchedulingIgnoredDuringExecution"
MIB = 1 << 20
Plain = dict[str, Any]
Calls = Callable[[object, str], list[Any]]


def node_affinity(keys: list[str]) -> Plain:
    """A pod that wants a node with any of these labels."""
    terms = [{"matchExpressions": [{"key": k, "operator": "Exists"}]} for k in keys]
    return {"affinity": {"nodeAffinity": {MUST: {"nodeSelectorTerms": terms}}}}


def apart_from(*expressions: Plain, **more: Any) -> Plain:  # noqa: ANN401
    """A pod that wants no node with such pods."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchExpressions": list(expressions)},
    }
    return {"affinity": {"podAntiAffinity": {MUST: [term | more]}}}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Count the calls of a function from now on."""

    def count(owner: object, name: str) -> list[Any]:
        real, seen = getattr(owner, name), []

        def counted(*args: Any, **keys: Any) -> Any:  # noqa: ANN401
            seen.append(args)
            return real(*args, **keys)

        monkeypatch.setattr(owner, name, counted)
        return seen

    return count


def growth(work: Callable[[], object]) -> int:
    """Bytes that are still allocated after *work*, and were not before."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


# Gangs.


def gang_of(stage: Stage, pods: int, **changes: Any) -> None:  # noqa: ANN401
    """A gang of pods of one task that each request something else."""
    stage.group("g", pods)
    for i in range(pods):
        asks = {"cpu": f"{i + 1}m"}
        stage.pod(f"g-{i}", 0, "g", asks=asks, **changes)


def test_a_gang_with_too_many_different_requests_is_refused_with_one_line() -> None:
    stage = Stage([node("a", allocatable={"pods": "2000", "cpu": "200"})])
    gang_of(stage, MAX_REQUESTS + 1)

    assert stage.cycle() == []
    assert stage.reason("default/g") == (
        f"job 'default/g' has pods with {MAX_REQUESTS + 1} different requests, want at "
        f"most {MAX_REQUESTS}; hint: let pods of a task request the same"
    )

    stage.drop_pod("g-7")
    stage.pod("g-again", 0, "g", asks={"cpu": "1m"})
    (said,) = stage.cycle()
    assert said.startswith("bind default/g: ")


def test_a_gang_that_says_too_much_of_nodes_is_refused_with_one_line() -> None:
    stage, keys = Stage(), [f"k{i}" for i in range(MAX_TERMS)]
    most = MAX_OF_NODES // MAX_TERMS
    for name, size in (("fits", most), ("much", most + 1)):
        stage.group(name, size)
        for i in range(size):
            terms = node_affinity([*keys[:-1], f"{name}-{i}"])
            stage.pod(f"{name}-{i}", 0, name, spec=terms)

    said = stage.cycle()

    assert said == ["waiting default/fits"]
    assert stage.reason("default/much").startswith(
        f"job 'default/much' has {(most + 1) * MAX_TERMS} requirements on labels of "
        f"nodes in its different requests, want at most {MAX_OF_NODES}; hint: let pods"
    )


@pytest.mark.parametrize("kind", ["apart", "spread"])
def test_a_gang_that_says_too_much_of_pods_is_refused_with_one_line(kind: str) -> None:
    """Each of its pods is compared with the others anew."""
    means = {"matchLabels": {"app": "x"}}
    term = {"topologyKey": "zone", "labelSelector": means}
    spread = term | {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    spec: Plain = {"topologySpreadConstraints": [spread] * MAX_POD_TERMS}
    if kind == "apart":
        spec = {"affinity": {"podAntiAffinity": {MUST: [term] * MAX_POD_TERMS}}}
    most = MAX_OF_PODS // MAX_POD_TERMS
    stage = Stage([node("a", allocatable={"pods": "1000", "cpu": "1000"})])
    for name, size in (("fits", most), ("much", most + 1)):
        stage.group(name, size)
        for i in range(size):
            stage.pod(f"{name}-{i}", 0, name, spec=spec)

    (said,) = stage.cycle()

    assert said.startswith("bind default/fits: ")
    assert stage.reason("default/much") == (
        f"job 'default/much' has {(most + 1) * MAX_POD_TERMS} terms of pod affinity "
        f"and spread constraints, counted for each pod, want at most {MAX_OF_PODS}; "
        "hint: select other pods with fewer terms"
    )


def test_labels_that_others_select_make_no_gang_too_different() -> None:
    stage = Stage([node("a", allocatable={"pods": "2000", "cpu": "1000"}), node("b")])
    pods = 2 * (MAX_REQUESTS // 2 + 50)
    for first in (0, pods // 2):
        values = [f"{i}" for i in range(first, first + pods // 2)]
        expression = {"key": "index", "operator": "In", "values": values}
        stage.pod(f"nosy-{first}", 0, spec=apart_from(expression))
    stage.cycle()
    stage.group("g", pods)
    for i in range(pods):
        asks = {"cpu": f"{1 + i % 2}m"}
        stage.pod(f"g-{i}", 0, "g", labels={"index": f"{i}"}, asks=asks)
    stage.cycle()

    told = stage.cache.gangs["default/g"].reported.job
    assert told is not None
    assert len(told.roles) == pods


# Memory.


def test_texts_that_are_written_over_are_not_kept() -> None:
    stage = Stage("a")
    plain = stage.pod("p", 0, scheduler="other", spec={"nodeName": "a"})
    stage.cycle()

    def patch() -> None:
        for i in range(100):
            written = {"huawei.com/AscendReal": f"{i}" + "x" * 250_000}
            plain["metadata"]["annotations"] = written
            stage.put_pod(plain)
            plain["metadata"]["annotations"] = {}

    assert growth(patch) < MIB  # 25 MB were written


@pytest.mark.parametrize(
    "key",
    ["huawei.com/AscendReal", "scheduling.k8s.io/group-name", "hccl/rankIndex"],
)
def test_a_long_text_is_not_kept_whole(key: str) -> None:
    stage = Stage("a")

    def submit() -> None:
        for i in range(20):
            stage.pod(f"p{i}", 0, annotations={key: f"{i}" + "x" * 250_000})
            stage.pods.clear()

    assert growth(submit) < MIB  # 5 MB were written


def test_pods_that_come_and_go_leave_nothing_in_proportion_to_their_size() -> None:
    stage = Stage("a")
    stage.cycle()

    def churn(first: int = 0) -> None:
        for i in range(first, first + 60):
            keys = [f"{i}-{j}-{'k' * 200}" for j in range(MAX_TERMS)]
            stage.pod("big", 0, spec=node_affinity(keys))
            stage.cycle()
            stage.drop_pod("big")
            stage.cycle()

    for first in range(60, 240, 60):
        churn(first)
    assert growth(churn) < 8 * MIB  # 60 pods of 0.5 MB in memory each


@pytest.mark.slow
def test_caches_count_bytes() -> None:
    found = (demand._read, demand._one, jobs._alone)  # noqa: SLF001
    caches = (*found, pod_request._read, pod_request._chips_read)  # noqa: SLF001
    stage = Stage("a")
    for i in range(300):
        keys = [f"{i}-{j}-{'k' * 150}" for j in range(MAX_TERMS)]
        stage.pod("big", 0, spec=node_affinity(keys))
        stage.cycle()
        stage.drop_pod("big")
        stage.cycle()

    assert all(cache.size <= demand.MAX_READ_BYTES for cache in caches)
    assert node_info._inventories.size < MIB  # noqa: SLF001


# What one object may say.


def problem(stage: Stage, name: str = "p") -> str:
    (found,) = [pod.problem for pod in stage.cache.pods.values() if pod.name == name]
    assert "\n" not in found
    assert found.startswith(f"Pod 'default/{name}': ")
    return found.removeprefix(f"Pod 'default/{name}': ")


LABELS = "select one label that all these nodes have"
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
SPREAD = TERM | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
LIKES = {"weight": 1, "podAffinityTerm": TERM}
PREFERS = {"weight": 1, "preference": {}}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            node_affinity([f"k{i}" for i in range(MAX_TERMS + 1)]),
            (
                f"spec.affinity.nodeAffinity.{MUST}.nodeSelectorTerms has 501 entries, "
                f"want at most 500; hint: {LABELS}"
            ),
        ),
        (
            {"affinity": {"nodeAffinity": {MAY: [PREFERS] * (MAX_TERMS + 1)}}},
            (
                f"spec.affinity.nodeAffinity.{MAY} has 501 entries, want at most 500; "
                f"hint: {LABELS}"
            ),
        ),
        (
            {"affinity": {"podAffinity": {MUST: [TERM] * (MAX_POD_TERMS + 1)}}},
            (
                f"spec.affinity.podAffinity.{MUST} has 101 entries, want at most 100; "
                "hint: select with fewer terms"
            ),
        ),
        (
            {"affinity": {"podAntiAffinity": {MAY: [LIKES] * (MAX_POD_TERMS + 1)}}},
            (
                f"spec.affinity.podAntiAffinity.{MAY} has 101 entries, want at most "
                "100; hint: select with fewer terms"
            ),
        ),
        (
            {"topologySpreadConstraints": [SPREAD] * (MAX_POD_TERMS + 1)},
            (
                "spec.topologySpreadConstraints has 101 entries, want at most 100; "
                "hint: select with fewer terms"
            ),
        ),
        (
            {"tolerations": [{"key": "k"}] * (MAX_TERMS + 1)},
            (
                "spec.tolerations has 501 entries, want at most 500; "
                "hint: tolerate keys as a whole"
            ),
        ),
        (
            {"volumes": [{"name": "v"}] * (MAX_CLAIMS + 1)},
            "spec.volumes has 1001 entries, want at most 1000; hint: use fewer volumes",
        ),
        (
            {"nodeSelector": {f"k{i}": "v" for i in range(MAX_REQUIREMENTS + 1)}},
            (
                "spec has 1001 requirements on labels of nodes and pods in all, "
                f"want at most 1000; hint: {LABELS}"
            ),
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_pod_with_too_many_words_is_refused(spec: Plain, told: str) -> None:
    stage = Stage("a")

    stage.pod("p", 0, spec=spec)

    assert problem(stage) == told
    assert stage.cycle() == []
    assert told in stage.reason("pod default/p")


def test_a_pod_may_have_as_many_words_as_are_read() -> None:
    stage = Stage([node("a", labels={"k1": "v", "accelerator-type": "module-910b-8"})])

    stage.pod("p", 0, spec=node_affinity([f"k{i}" for i in range(MAX_TERMS)]))

    assert stage.cycle() == ["bind pod default/p: p on a"]


def test_a_pod_with_too_many_bytes_is_refused() -> None:
    stage = Stage("a")

    stage.pod("p", 0, spec={"nodeSelector": {"zone": "z" * MAX_BYTES}})

    found = problem(stage)
    assert found.startswith(
        "what it asks for (containers, selectors, affinity) has 131"
    )
    assert found.endswith("want at most 131072; hint: ask with fewer values")


def test_a_pod_with_too_many_resources_is_refused_and_counts_where_it_is() -> None:
    stage = Stage([node("a", allocatable={"cpu": "4"})])
    many = {f"x.io/r{i}": "1" for i in range(MAX_RESOURCES)}

    stage.pod("waits", 0, asks=many)
    stage.pod("is", 1, asks=many | {"cpu": "4"}, spec={"nodeName": "a"})
    stage.pod("other", 0)

    assert problem(stage, "waits") == (
        f"spec.containers: resources has {MAX_RESOURCES + 2} entries, "
        f"want at most {MAX_RESOURCES}; hint: ask for fewer resources"
    )
    assert "pod default/other" in stage.cycle()[0]
    assert not stage.bound.get("other")
    (held,) = [pod for pod in stage.cache.pods.values() if pod.name == "is"]
    assert (held.requested, held.resource) == (1, NPU)
    assert dict(held.base.resources) == {"cpu": 4000, "pods": 1000}


@pytest.mark.parametrize("kind", ["containers", "init containers", "sidecars"])
def test_containers_are_added_up_at_a_cost_in_proportion_to_them(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """What one container asks for is not added again for each that follows."""
    sums = []

    class Amount(int):
        def __add__(self, other: int) -> int:
            sums.append(self)
            return Amount(int(self) + int(other))

        __radd__ = __add__

    sidecar = {} if kind == "containers" else {"restartPolicy": "Always"}
    made_up = {f"example.com/r{i}": "1" for i in range(400)}
    asks = {"resources": {"requests": made_up, "limits": made_up}}
    more = sidecar if kind == "sidecars" else {}
    many = [asks | sidecar, *({"name": f"c{i}"} | more for i in range(300))]
    given: Plain = {"containers": many}
    if kind != "containers":
        given = {"containers": [{"name": "c"}], "initContainers": many}
    monkeypatch.setattr(demand, "quantity", lambda value: Amount(quantity(value)))
    stage = Stage()

    stage.pod("evil", 0, spec=given)
    stage.cycle()

    assert "resources has 401 entries" in stage.reason("pod default/evil")
    assert 400 <= len(sums) < 10_000


def test_a_podgroup_with_too_many_resources_is_refused() -> None:
    stage = Stage("a")

    stage.group("g", 1, minResources={f"x.io/r{i}": "1" for i in range(101)})
    stage.cycle()

    assert stage.cache.gangs["default/g"].status.invalid == (
        "PodGroup 'default/g': spec.minResources has 101 entries, want at most 100; "
        "hint: ask for fewer resources"
    )


def test_of_many_labels_the_first_are_kept() -> None:
    stage = Stage("a")
    labels = {f"k{i:04}": "v" for i in range(2 * MAX_LABELS)}

    stage.pod("p", 0, labels=labels)
    stage.pod("q", 0, labels=labels, scheduler="other", spec={"nodeName": "a"})

    assert problem(stage) == (
        f"metadata.labels has {2 * MAX_LABELS} entries, want at most {MAX_LABELS}; "
        "hint: set fewer labels"
    )
    kept = [pod.labels for pod in stage.cache.pods.values()]
    assert kept == [{f"k{i:04}": "v" for i in range(MAX_LABELS)}] * 2
    assert stage.cycle() == []


@pytest.mark.parametrize("text", ["00000001" + "0" * 5000, "1" + "0" * 5000, "9" * 10])
def test_a_long_number_of_chips_is_refused(text: str) -> None:
    stage = Stage("a")

    stage.group("g", 1, annotations={"sp-block": text})
    stage.pod("p", 8, "g")

    assert stage.cycle() == []
    assert "annotation sp-block is" in stage.reason("default/g")


def test_texts_of_chips_are_cut() -> None:
    stage = Stage("a")
    long = ",".join(["Ascend910-0"] * 1000)

    stage.pod("p", 1, annotations={NPU: long}, spec={"nodeName": "a"})

    (found,) = stage.cache.pods.values()
    assert len(found.chip_text) == MAX_TEXT


# Work.


def test_a_resource_that_a_pod_makes_up_makes_no_node_be_read_again(
    calls: Calls,
) -> None:
    stage = Stage("a b c")
    stage.cycle()
    read = calls(node_store, "node_of")

    for i in range(20):
        stage.pod(f"p{i}", 0, asks={f"made.up/r{i}": "1"})
        stage.cycle()

    assert read == []
    assert stage.engine.view.cluster.node_table.resources.names == [
        "cpu",
        "memory",
        "pods",
    ]
    assert stage.bound == {}


def test_what_queues_count_of_made_up_resources_goes_with_the_pods() -> None:
    stage = Stage("a")
    for i in range(20):
        stage.pod(f"p{i}", 0, asks={f"made.up/r{i}": "1"})
    stage.cycle()

    for i in range(20):
        stage.drop_pod(f"p{i}")
    stage.cycle()

    account = stage.engine.view.queue_usage["default"]
    assert account.requested == account.inqueue == account.allocated == {}


def test_a_resource_that_nodes_name_later_counts_with_what_pods_use() -> None:
    stage = Stage("a")
    stage.pod("p", 0, asks={"x.io/r": "2"}, scheduler="other", spec={"nodeName": "a"})
    stage.pod("q", 0, asks={"x.io/r": "2"})
    stage.cycle()
    assert stage.bound == {"p": "a"}

    stage.put_node(node("a", allocatable={"x.io/r": "3"}))
    stage.cycle()
    assert stage.bound == {"p": "a"}

    stage.put_node(node("a", allocatable={"x.io/r": "4"}))
    stage.cycle()
    assert stage.bound == {"p": "a", "q": "a"}


def test_a_podgroup_that_names_quotas_is_let_in() -> None:
    stage = Stage("a")
    quotas = {"count/pods": "2", "requests.cpu": "2", "limits.huawei.com/x": "1"}

    stage.group("g", 2, minResources={"cpu": "2", **quotas})
    stage.cycle()

    assert stage.cache.gangs["default/g"].reported.is_admitted


def test_labels_of_nodes_that_pods_make_up_are_not_kept() -> None:
    stage = Stage("a b c")
    for p in range(5):
        keys = [f"k{p}-{i}" for i in range(MAX_TERMS)]
        stage.pod(f"p{p}", 0, spec=node_affinity(keys))
    stage.cycle()

    fleet = stage.engine.view.cluster.node_table
    assert len(fleet.labels._columns) == 0  # noqa: SLF001


def test_node_affinity_is_not_looked_at_again_when_other_things_change(
    calls: Calls,
) -> None:
    stage = Stage([node(n, labels={"zone": "x"}) for n in "abc"])
    for p in range(5):
        keys = [*(f"k{p}-{i}" for i in range(50)), "zone"]
        spec = node_affinity(keys) | {"nodeSelector": {"zone": "y"}}
        stage.pod(f"p{p}", 0, spec=spec)
    stage.cycle()
    seen = calls(Column, "matches")

    stage.put_node(node("a", labels={"zone": "x"}, allocatable={"cpu": "63"}))
    stage.pod("other", 0)
    stage.cycle(1)
    stage.drop_pod("other")
    stage.cycle(1)

    assert seen == []


def test_a_label_that_a_pod_selects_by_makes_only_pods_it_means_be_told_anew() -> None:
    stage = Stage("a")
    for i in range(20):
        where = "mine" if i % 2 else "other"
        stage.pod(
            f"p{i}",
            0,
            namespace=where,
            labels={"app": f"a{i}"},
            scheduler="other",
            spec={"nodeName": "a"},
        )
    stage.cycle()

    spec = apart_from({"key": "app", "operator": "Exists"})
    stage.pod("p", 0, namespace="mine", spec=spec)
    stage.cycle()

    told = [event.job.name for event in stage.heard]  # type: ignore[union-attr]
    mine = ["pod mine/p", *(f"pod mine/p{i}" for i in range(1, 20, 2))]
    assert sorted(told) == sorted(mine)
    assert "mine/p" not in stage.bound


def test_values_that_no_selector_names_are_one() -> None:
    stage = Stage("a")
    for i in range(20):
        stage.pod(
            f"p{i}",
            0,
            labels={"app": f"a{i}"},
            scheduler="other",
            spec={"nodeName": "a"},
        )
    stage.pod("p", 0, spec=apart_from({"key": "app", "operator": "Exists"}))
    stage.pod(
        "q", 0, spec=apart_from({"key": "app", "operator": "In", "values": ["a3"]})
    )
    stage.cycle()

    demands = {pod.demand for pod in stage.cache.pods.values() if pod.labels}
    assert {each.labels for each in demands} == {
        (("app", "(other)"),),
        (("app", "a3"),),
    }


def test_labels_that_nobody_selects_by_any_more_are_forgotten() -> None:
    stage = Stage("a")
    for i in range(20):
        spec = apart_from({"key": f"k{i}", "operator": "In", "values": ["x", "y"]})
        stage.pod(f"p{i}", 0, spec=spec)
    stage.cycle()
    assert len(stage.cache.labels.selected) == 20

    for i in range(20):
        stage.drop_pod(f"p{i}")

    assert len(stage.cache.labels.selected) == 0
    assert not stage.cache.labels.in_namespace


def test_a_selector_over_all_namespaces_is_told_of_all_pods() -> None:
    stage = Stage("a b")
    for where in ("one", "two"):
        stage.pod(
            where,
            0,
            namespace=where,
            labels={"app": "x"},
            scheduler="other",
            spec={"nodeName": "a"},
        )
    stage.cycle()

    spec = apart_from({"key": "app", "operator": "Exists"}, namespaceSelector={})
    stage.pod("p", 0, spec=spec)

    assert stage.cycle() == ["bind pod default/p: p on b"]


def test_labels_of_many_pods_are_counted_some_in_each_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pod that selects by them is placed when all of them are."""
    monkeypatch.setattr("ringleaf.kube.label_store.RELABELLED", 3)
    stage = Stage("a b")
    for i in range(10):
        where = {"nodeName": "a" if i else "b"}
        labels = {"app": "x"} if i else {}
        stage.pod(f"p{i}", 0, labels=labels, scheduler="other", spec=where)
    stage.cycle()

    stage.pod("p", 0, spec=apart_from({"key": "app", "operator": "Exists"}))
    stage.pod("q", 8)

    assert stage.cycle() == ["bind pod default/q: q on a 01234567"]
    assert _jobs(stage.heard) == ["p1", "p2", "p3", "q"]
    assert stage.cache.has_news
    stage.drop_pod("p4")
    assert stage.cycle() == []
    assert _jobs(stage.heard) == ["p5", "p6", "p7"]
    assert stage.cycle() == ["bind pod default/p: p on b"]
    assert _jobs(stage.heard) == ["p", "p8", "p9"]
    assert not stage.cache.has_news or stage.cycle() == []


def _jobs(heard: list[Event]) -> list[str]:
    """The pods of which an engine has heard that they are there."""
    arrived = [e.job.name for e in heard if isinstance(e, JobArrived)]
    return sorted(name.removeprefix("pod default/") for name in arrived)


def test_a_pod_whose_labels_come_to_count_while_it_runs_stays() -> None:
    stage = Stage("a b")
    stage.pod("db", 1, labels={"app": "db"})
    assert stage.cycle() == ["bind pod default/db: db on a 0"]

    stage.pod("p", 1, spec=apart_from({"key": "app", "operator": "Exists"}))

    assert stage.cycle() == ["bind pod default/p: p on b 0"]
    heard = [type(event).__name__ for event in stage.heard]
    assert heard == ["JobArrived", "JobArrived", "PodsRun"]


class Unscanned(dict[str, PodState]):
    """Pods that are looked up one by one, or not at all."""

    def values(self) -> Any:  # noqa: ANN401
        """Nobody looks at all pods."""
        raise AssertionError("all pods were looked at")


def test_a_budget_looks_at_the_pods_of_its_namespace() -> None:
    stage = Stage("a")
    for i in range(20):
        stage.pod(f"p{i}", 0, namespace="other", labels={"app": "low"})
    stage.pod("mine", 0, labels={"app": "low"})
    stage.cycle()
    stage.cache.state.pods = Unscanned(stage.cache.state.pods)

    stage.budget("keep", {"app": "low"}, 0)
    assert list(stage.cache.state.deltas.gangs) == ["pod default/mine"]
    stage.cycle()
    stage.budget("keep", {"app": "low"}, 1)
    assert list(stage.cache.state.deltas.gangs) == ["pod default/mine"]


def test_a_requirement_with_many_values_is_looked_up() -> None:
    stage = Stage([node(f"n{i}", labels={"host": f"n{i}"}) for i in range(50)])
    values = [f"n{i}" for i in range(49, 5000)]
    expression = {"key": "host", "operator": "In", "values": values}
    terms = [{"matchExpressions": [expression]}]
    spec = {"affinity": {"nodeAffinity": {MUST: {"nodeSelectorTerms": terms}}}}

    stage.pod("p", 0, spec=spec)

    assert stage.cycle() == ["bind pod default/p: p on n49"]


def test_labels_that_are_named_in_many_namespaces_count_in_each() -> None:
    """What is kept of a short pod is the product of two short lists."""
    stage = Stage("a")
    values = [f"v{i}" for i in range(99)]
    expression = {"key": "app", "operator": "In", "values": values}
    five, six = ([f"n{i}" for i in range(n)] for n in (5, 6))

    stage.pod("fits", 0, spec=apart_from(expression, namespaces=five))
    stage.pod("p", 0, spec=apart_from(expression, namespaces=six))

    assert problem(stage) == (
        "spec.affinity names labels of pods and their values in several namespaces, "
        "600 counted in each namespace, want at most 500; hint: name fewer "
        "namespaces, or select all of them: namespaceSelector: {}"
    )
    assert len(stage.cache.labels.selected) == 5
    assert stage.cycle() == ["bind pod default/fits: fits on a"]


def test_terms_of_all_kinds_count_in_each_of_their_namespaces() -> None:
    stage = Stage("a")
    spaces = [f"n{i}" for i in range(100)]
    term = TERM | {"namespaces": spaces}
    likes = {"weight": 1, "podAffinityTerm": term}
    spec = {"affinity": {"podAffinity": {MUST: [term], MAY: [likes, likes]}}}

    stage.pod("p", 0, spec=spec)

    assert ", 600 counted in each namespace, " in problem(stage)


def test_of_the_resources_of_a_node_the_first_are_counted() -> None:
    """Each costs a number for every node of the cluster."""
    stage = Stage("a b")
    many = {f"x.io/r{i:03}": "1" for i in range(200)}
    stage.put_node(node("a", allocatable=many))
    stage.cycle()

    names = stage.engine.view.cluster.node_table.resources.names
    assert len(names) == MAX_NODE_RESOURCES
    assert {"cpu", "memory", "pods", "x.io/r000"} <= {*names}
    (told,) = [each.message for each in stage.cache.problems.unreported]
    assert told == (
        "Node 'a': status.allocatable has 203 resources, want at most 100; "
        "pods get nothing of the others"
    )


def test_queues_that_pods_make_up_leave_nothing() -> None:
    stage = Stage("a")
    for i in range(20):
        stage.pod(f"p{i}", 1, annotations={QUEUE_NAME: f"made-up-{i}"})
    stage.cycle()
    assert len(stage.engine.view.queue_usage) == 20

    for i in range(20):
        stage.drop_pod(f"p{i}")
    stage.cycle()

    assert not stage.engine.view.queue_usage
