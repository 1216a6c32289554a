"""What a real Prometheus reads of a scheduler, and what the log tells of a job."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from ringleaf.kube.catalogue import CATALOGUE, Kind
from ringleaf_testbed import build
from ringleaf_testbed.hardware import Machine, fleet, node_object
from ringleaf_testbed.process import Child, free_port
from tests.docs.test_dashboard import queries
from tests.kube.test_alerts import RULES
from tests.stories.stage import (
    A2,
    GRACE_S,
    R910,
    VOLCANO,
    Object,
    Stage,
    chips_of,
    has_told,
    lines_of,
    node_of,
    pod,
    podgroup,
    vcjob,
)
from tests.stories.test_bad_objects import NODES, device_map, there
from tests.stories.test_telling import urgent, with_priority

CONF: Final = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: affinity}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
configurations:
- name: init-params
  arguments: {fault-brake-seconds: 3}
"""
STILL: Final = {
    "ringleaf_build_info": "is always 1",
    "ringleaf_bindings_in_flight": "tests/kube/test_collector.py",
    "ringleaf_differences_total": "tests/kube/test_collector.py",
    "ringleaf_failures_total": "tests/kube/test_collector.py",
    "ringleaf_leader": "tests/stories/test_standby.py",
    "ringleaf_lists_total": "tests/kube/test_watch.py",
    "ringleaf_never_ran_total": "tests/kube/test_fault_metrics.py",
    "ringleaf_rebuilds_total": "tests/kube/test_collector.py",
    "ringleaf_repair_escalations_total": "tests/kube/test_fault_metrics.py",
    "ringleaf_reservation_idle_budget_used": "tests/kube/test_collector.py",
    "ringleaf_reservation_idle_chip_seconds_total": "tests/kube/test_collector.py",
    "ringleaf_runs_learnt_total": "tests/kube/test_collector.py",
    "ringleaf_runs_predicted_total": "tests/kube/test_collector.py",
    "ringleaf_runs_within_prediction_total": "tests/kube/test_collector.py",
    "ringleaf_set_aside": "tests/kube/test_collector.py",
    "ringleaf_spine_conflicts": "tests/kube/test_collector.py",
    "ringleaf_synced": "tests/kube/test_collector.py",
    "ringleaf_watch_failures_total": "tests/kube/test_watch.py",
    "ringleaf_watches_total": "tests/kube/test_watch.py",
}
"""Metrics that do not move in this story, and where they do."""
EVERY_S: Final = 0.4


class Prometheus:
    """A running Prometheus that reads one scheduler."""

    def __init__(self, port: int, child: Child) -> None:
        self._port, self._child = port, child

    def stop(self) -> None:
        """End it."""
        self._child.stop()

    def ask(self, query: str) -> list[Object]:
        """The series that a query gives."""
        found = self._get(f"query?query={quote(query)}")
        result: list[Object] = found["data"]["result"]
        return result

    @property
    def rules(self) -> list[Object]:
        """The rules of alerts, and what it makes of them."""
        (group,) = self._get("rules")["data"]["groups"]
        found: list[Object] = group["rules"]
        return found

    @property
    def complaint(self) -> str:
        """What it found wrong the last time it read the scheduler."""
        (target,) = self._get("targets")["data"]["activeTargets"]
        return str(target["lastError"])

    def see(self, stage: Stage) -> None:
        """Wait until it has read the scheduler as it is now, and a little later.

        On a busy machine it may be slow to read, or give up and read again.
        """
        after = time.time() + 2 * EVERY_S
        last = "timestamp(ringleaf_build_info)"
        stage.wait(
            lambda: any(float(each["value"][1]) > after for each in self.ask(last)),
            "Prometheus to read the scheduler",
        )

    def _get(self, what: str) -> Object:
        url = f"http://127.0.0.1:{self._port}/api/v1/{what}"
        with urlopen(url, timeout=60) as answer:
            found: Object = json.load(answer)
        assert found["status"] == "success", found
        return found


class Played(NamedTuple):
    """A story that was played, and who has seen it."""

    prometheus: Prometheus
    log: list[Object]
    namespace: str

    def told(self, job: str) -> list[str]:
        """What was said of a job, in order."""
        return [
            line["event"]
            for line in self.log
            if line.get("job") == f"{self.namespace}/{job}"
        ]


@pytest.fixture(scope="module")
def played(whole_stage: Stage, promtool: Path) -> Iterator[Played]:
    """The story, once for all tests."""
    del promtool
    stage = whole_stage
    stage.stop_scheduler()
    stage.namespace = f"metrics-{int(time.time())}"
    spaces = "/api/v1/namespaces"
    stage.bed.client.ask("POST", spaces, {"metadata": {"name": stage.namespace}})
    (bare,) = fleet("atlas-800t-a2", 1, first=95, prefix="unplayed")
    scheduler = stage.start_scheduler(CONF, "--release-seconds", "4")
    prometheus = watch(stage, scheduler)
    try:
        play(stage, bare, scheduler, prometheus)
        prometheus.see(stage)
        yield Played(prometheus, lines_of(scheduler.log), stage.namespace)
    finally:
        prometheus.stop()
        stage.bed.request("DELETE", f"{NODES}/{bare.name}")
        stage.bed.request("DELETE", f"{VOLCANO}/queues/team")
        stage.clear()
        scheduler.stop(GRACE_S)
        stage.actor.clashes.clear()


def watch(stage: Stage, scheduler: Child) -> Prometheus:
    """A Prometheus that reads *scheduler* several times a second."""
    (started,) = [
        each for each in lines_of(scheduler.log) if each["event"] == "started"
    ]
    target = {"targets": [f"127.0.0.1:{started['health']}"]}
    job = {"job_name": "ringleaf", "static_configs": [target]}
    rules = {"rule_files": [str(RULES)]}
    timing = {"scrape_interval": f"{EVERY_S * 1000:.0f}ms"}
    timing["scrape_timeout"] = timing["scrape_interval"]
    timing["evaluation_interval"] = "1s"
    config = stage.bed.folder / "prometheus.json"
    config.write_text(json.dumps({"global": timing, "scrape_configs": [job], **rules}))
    port = free_port()
    child = stage.bed.run(
        "prometheus",
        [
            build.program("prometheus"),
            f"--config.file={config}",
            f"--storage.tsdb.path={stage.bed.folder / 'prometheus'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
    )
    found = Prometheus(port, child)

    def reads() -> bool:
        try:
            return bool(found.ask("ringleaf_build_info"))
        except OSError:
            return False

    child.wait_until(reads)
    return found


def bind_half_a_gang(stage: Stage) -> None:
    """As a crash may leave one; its other pod finds no node."""
    stage.create(podgroup("half", 2))
    stage.create(pod("half-0", group="half", selector={}))
    stage.create(pod("half-1", group="half", selector={"no": "such-node"}))
    target = {"apiVersion": "v1", "kind": "Node", "name": "plain"}
    binding = {"metadata": {"name": "half-0"}, "target": target}
    stage.bed.client.ask("POST", f"{stage.pod_path('half-0')}/binding", binding)


def play(stage: Stage, bare: Machine, scheduler: Child, prometheus: Prometheus) -> None:
    """Something of everything happens."""
    bind_half_a_gang(stage)
    stage.wait(lambda: has_told(scheduler, "release"), "half a gang to be released")
    limited = {"cpu": "8", "memory": "8Gi", R910: "64"}
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "team"},
        "spec": {"weight": 2, "capability": limited},
    }
    stage.bed.client.ask("POST", f"{VOLCANO}/queues", queue)
    large = {"tor-affinity": "large-model-schema"}
    stage.apply(vcjob("train", 6, 8, labels=large))
    stage.wait_until_running("train", 6)
    waits_for_memory(stage, prometheus)
    preempt(stage, scheduler)
    stage.create(podgroup("few", 2))
    stage.create(pod("few-0", 1, group="few"))
    stage.wait_for_condition("few-0", "pod group is not ready")
    stage.create(pod("never", 9))
    stage.create(pod("late", 8, selector=A2 | {"no": "such-node"}))
    break_chips(stage)
    damage(stage, bare, prometheus)
    change_configuration(stage, scheduler, prometheus)
    stage.bed.client.ask("DELETE", stage.pod_path("urgent"), {"gracePeriodSeconds": 0})
    ended = f"{stage.namespace}/urgent-group"
    where = f"{VOLCANO}/namespaces/{stage.namespace}/podgroups/urgent-group"
    stage.bed.client.ask("DELETE", where)
    stage.wait(
        lambda: any(
            line["event"] == "ended" and line["job"] == ended
            for line in lines_of(scheduler.log)
        ),
        "the end of a job in the log",
    )


def waits_for_memory(stage: Stage, prometheus: Prometheus) -> None:
    """A gang of a queue with limits waits for a node that is not there, then runs."""
    stage.create(podgroup("roomy", 2, queue="team"))
    for i in range(2):
        made = pod(f"roomy-{i}", 1, group="roomy", selector=A2 | {"room": "yes"})
        asks = made["spec"]["containers"][0]["resources"]
        asks["requests"] = asks["limits"] = {**asks["requests"], "memory": "1Gi"}
        stage.create(made)
    stage.wait_for_condition("roomy-0", "without the labels the job selects")
    prometheus.see(stage)
    change = {"metadata": {"labels": {"room": "yes"}}}
    stage.bed.client.ask("PATCH", f"{NODES}/a2-21", change)
    stage.wait_until_runs("roomy-0", "roomy-1")
    stage.bed.client.ask(
        "PATCH", f"{NODES}/a2-21", {"metadata": {"labels": {"room": None}}}
    )


def preempt(stage: Stage, scheduler: Child) -> None:
    """A job of high priority makes others end."""
    low, high = with_priority(stage, "low", 1), with_priority(stage, "high", 1000)
    stage.bed.client.ask(
        "DELETE",
        f"/apis/batch.volcano.sh/v1alpha1/namespaces/{stage.namespace}/jobs/train",
    )
    stage.wait(lambda: not stage.pods("train"), "the job to be gone")
    for name, node in (("victim", "a2-10"), ("other", "a2-11")):
        stage.create(podgroup(f"{name}-group", 1, priorityClassName=low))
        here = A2 | {"kubernetes.io/hostname": node}
        group = f"{name}-group"
        stage.create(pod(name, 8, group=group, selector=here, priorityClassName=low))
    stage.wait_until_runs("victim", "other")
    groups = {f"{stage.namespace}/{name}-group" for name in ("victim", "other")}
    stage.wait(
        lambda: (
            groups
            <= {x["job"] for x in lines_of(scheduler.log) if x["event"] == "bound"}
        ),
        "the scheduler to see them there",
    )
    urgent(stage, high)
    stage.wait(lambda: has_told(scheduler, "evict"), "somebody to be evicted")
    stage.wait_until_runs("urgent")


def break_chips(stage: Stage) -> None:
    """Chips fail under two jobs: one is repaired, then the brake lets the other."""
    sick = {}
    for name, mode in (("broken", "force"), ("slow", "grace")):
        stage.apply(vcjob(name, 1, 8, labels={"fault-scheduling": mode}))
        (sick[name],) = stage.wait_until_running(name, 1)
    for each in sick.values():
        stage.actor.fail_chips(node_of(each), [chips_of(each)[0]])
    for name, each in sick.items():
        uid = each["metadata"]["uid"]
        stage.wait(
            lambda name=name, uid=uid: (  # type: ignore[misc]
                [p for p in stage.pods(name) if p["metadata"]["uid"] != uid]
            ),
            f"another pod of {name}",
        )
        stage.wait_until_running(name, 1)
    for each in sick.values():
        stage.actor.recover_chips(node_of(each))


def damage(stage: Stage, bare: Machine, prometheus: Prometheus) -> None:
    """A report that does not fit its check code, and two pods on one chip."""
    stage.bed.client.ask("POST", NODES, node_object(bare))
    wrong = device_map(bare)
    content = json.loads(wrong["data"]["DeviceInfoCfg"])
    content["CheckCode"] = "0" * 64
    wrong["data"]["DeviceInfoCfg"] = json.dumps(content)
    stage.put_map(wrong)
    name = wrong["metadata"]["name"]
    stage.wait_for_event(name, "Ignored")
    prometheus.see(stage)
    stage.bed.request("DELETE", f"/api/v1/namespaces/kube-system/configmaps/{name}")
    for twin in ("one", "two"):
        chips = {R910: "Ascend910-0"}
        made = pod(twin, 1, annotations=chips, nodeName=bare.name, selector=there(bare))
        stage.create(made)
    stage.wait(lambda: stage.events("two", "Conflict"), "two pods on one chip")


def change_configuration(
    stage: Stage, scheduler: Child, prometheus: Prometheus
) -> None:
    """A bad configuration, and then a good one."""
    file = stage.bed.folder / f"{scheduler.name}.conf"
    for text, event in (
        ("actions: nonsense", "configuration refused"),
        (CONF, "configuration"),
    ):
        file.write_text(text, encoding="utf-8")
        stage.wait(lambda event=event: has_told(scheduler, event), event)  # type: ignore[misc]
        prometheus.see(stage)


def has_moved(prometheus: Prometheus, name: str) -> bool:
    """Whether a metric had two values, or a series that came later."""
    found = prometheus.ask(f"{name}[1h]")
    begun = min(float(s["values"][0][0]) for s in prometheus.ask("ringleaf_leader[1h]"))
    for series in found:
        values = {value for _at, value in series["values"]}
        late = float(series["values"][0][0]) > begun + 2 * EVERY_S
        if len(values) > 1 or (late and values != {"0"}):
            return True
    return False


def test_every_metric_takes_another_value_than_at_the_start(played: Played) -> None:
    names = {
        metric.name: f"{metric.name}_count"
        if metric.kind is Kind.HISTOGRAM
        else metric.name
        for metric in CATALOGUE
    }

    still = {n for n, own in names.items() if not has_moved(played.prometheus, own)}

    assert still <= STILL.keys()
    assert "ringleaf_chips" not in still


@pytest.mark.parametrize("query", queries())
def test_every_panel_of_the_dashboard_has_something_to_show(
    played: Played, query: str
) -> None:
    for variable, value in (
        *(("$__rate_interval", "5m"), ("$queue", ".*"), ("$namespace", ".*")),
    ):
        query = query.replace(variable, value)
    found = played.prometheus.ask(query)

    values = [series["value"][1] for series in found]
    assert any(value != "NaN" for value in values), query


def test_prometheus_has_nothing_to_complain_of(
    played: Played, whole_stage: Stage
) -> None:
    """A machine that is busy may be slow to answer, but not for long."""
    whole_stage.wait(lambda: not played.prometheus.complaint, "a sound scrape")


def test_prometheus_reckons_every_alert(played: Played, whole_stage: Stage) -> None:
    """What is the matter is pending at least; what is not is quiet.

    A scrape that fails on a busy machine makes some pending until the next one.
    """
    wanted = {"RingleafInvalidJobs": "pending", "RingleafChipConflicts": "firing"}
    for name in ("Down", "NoLeader", "TwoLeaders", "NotSynced", "WatchSilent"):
        wanted[f"Ringleaf{name}"] = "inactive"

    def is_so() -> bool:
        found = {rule["name"]: rule["state"] for rule in played.prometheus.rules}
        return wanted.items() <= found.items()

    whole_stage.wait(is_so, f"alerts {wanted}")
    assert [rule for rule in played.prometheus.rules if rule["health"] != "ok"] == []


def test_the_log_tells_of_pods_that_wait_for_others(played: Played) -> None:
    own = f"{played.namespace}/few"
    lines = [line for line in played.log if line.get("job") == own]

    (said,) = [line for line in lines if line["event"] == "not ready"]

    assert "1 of 2 pods are there" in said["message"]


def test_the_log_tells_the_story_of_a_job_that_waited(played: Played) -> None:
    told = played.told("urgent-group")

    assert told[0] == "arrived"
    assert told[-3:] == ["bind", "bound", "ended"]
    assert {*told[1:-3]} <= {"report", "admitted", "not ready"}
    assert "report" in told


def test_the_log_tells_the_story_of_a_job_that_was_evicted(played: Played) -> None:
    evicted = [line for line in played.log if line["event"] == "evict"]
    name = evicted[0]["job"].removeprefix(f"{played.namespace}/")

    told = [each for each in played.told(name) if each in ("bind", "bound", "evict")]

    assert told[:3] == ["bind", "bound", "evict"]
    assert evicted[0]["by"] == f"{played.namespace}/urgent-group"


def test_the_log_tells_how_long_it_took_to_bind(played: Played) -> None:
    bound = [line for line in played.log if line["event"] == "bound"]
    by_job: dict[str, Any] = {line["job"].partition("/")[2]: line for line in bound}
    trains = [line for job, line in by_job.items() if job.startswith("train-")]

    assert [line["pods"] for line in trains] == [6]
    assert by_job["roomy"]["seconds"] > 0.5


def test_every_line_about_a_pod_names_its_job(played: Played) -> None:
    about = [line for line in played.log if "pod" in line or line.get("kind") == "Pod"]

    assert all(line.get("job") for line in about)


def test_every_line_about_a_job_has_its_one_name(played: Played) -> None:
    words = ("arrived", "admitted", "not ready", "bind", "bound", "evict", "release")
    lines = [
        each for each in played.log if each["event"] in (*words, "ended", "report")
    ]

    assert {line["event"] for line in lines} > {"arrived", "bind", "bound", "ended"}
    assert all("/" in line["job"] for line in lines)
