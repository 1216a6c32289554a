"""The page of metrics: its form, and what is read off the state of a scheduler."""

import asyncio
import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as strictly_parsed,
)
from prometheus_client.parser import text_string_to_metric_families as parsed

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.kube.api import Api
from ringleaf.kube.binder import Bound
from ringleaf.kube.catalogue import CATALOGUE, CAUSES, PROCESS, STATES
from ringleaf.kube.collector import (
    MOST_JOBS,
    MOST_QUEUES,
    MOST_RESOURCES,
    OTHER,
    STEP_QUEUES,
    SchedulerCollector,
    SchedulerSample,
    states_of,
)
from ringleaf.kube.credentials import Credentials
from ringleaf.kube.health import Health
from ringleaf.kube.metrics import Histogram
from ringleaf.kube.quarantine import Culprit
from ringleaf.kube.scheduler import Options, Scheduler
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Reason
from ringleaf.model.run_time import RunTime
from ringleaf.policies.products import PRODUCTS
from tests.kube.stage import NPU, Stage, node
from tests.kube.test_reports import DEVICE_INFO

STRICT = "application/openmetrics-text; version=1.0.0"


class Scene:
    """A stage whose scheduler serves metrics."""

    def __init__(self, nodes: str = "a b", conf: Conf = DEFAULT) -> None:
        self.stage = Stage(nodes, conf)
        api = Api(Credentials("http://127.0.0.1:9"))
        options = Options(conf=conf)
        self.scheduler = Scheduler(api, options, _nothing, decider=self.stage.decider)
        self.metrics = self.scheduler.metrics
        self.page = SchedulerCollector(self.scheduler, "1.2.3")

    def cycle(self) -> list[str]:
        """One turn of the scheduler, counted."""
        words = self.stage.cycle()
        view = self.stage.engine.view
        said, n_nodes = self.stage.said, len(view.cluster)
        self.metrics.heard(self.stage.heard)
        self.metrics.decided(said, view.job_states, n_nodes, 0.002)
        return words

    def values(self, name: str) -> dict[tuple[str, ...], float]:
        """Label values -> value, of one metric."""
        text = self.page.text()[0].decode()
        labels = [m.labels for m in CATALOGUE if name.startswith(m.name)][-1]
        return {
            tuple(sample.labels[label] for label in labels): sample.value
            for family in parsed(text)
            for sample in family.samples
            if sample.name == name
        }

    def chips(self) -> dict[str, int]:
        """State -> chips, of all products."""
        found = dict.fromkeys(STATES, 0)
        for (_product, state), n in self.values("ringleaf_chips").items():
            found[state] += int(n)
        return {state: n for state, n in found.items() if n}

    def waiting(self) -> dict[str, float]:
        """What jobs wait for -> how many."""
        found = self.values("ringleaf_waiting_jobs")
        assert {cause for (cause,) in found} == {*CAUSES}
        return {cause: n for (cause,), n in found.items() if n}


def _nothing(*_words: object, **_facts: object) -> None:
    pass


def families(text: str) -> Iterator[str]:
    for family in strictly_parsed(text):  # type: ignore[no-untyped-call]
        counts = family.type == "counter"
        yield f"{family.name}_total" if counts else family.name


def test_a_strict_reader_finds_exactly_the_metrics_of_the_catalogue() -> None:
    scene = Scene()
    scene.stage.gang("some", 2)
    scene.cycle()

    body, kind = scene.page.text(STRICT)

    found = set(families(body.decode()))
    assert found == {metric.name for metric in (*CATALOGUE, *PROCESS)}
    assert kind.startswith("application/openmetrics-text")


def test_plain_text_is_served_to_whoever_asks_for_nothing_else() -> None:
    body, kind = Scene().page.text()

    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    assert b"# TYPE ringleaf_chips gauge" in body


def test_the_page_is_served_beside_the_probes() -> None:
    async def story() -> None:
        page = Scene().page.collected
        health = Health("127.0.0.1:0", _fine, _fine, page)
        async with (
            health,
            Api(Credentials(f"http://127.0.0.1:{health.port}")) as api,
        ):
            answer = await api.call("GET", "/metrics")
            assert answer.status == 200
            assert b"ringleaf_build_info{" in answer.body

    asyncio.run(story())


def _fine() -> tuple[bool, dict[str, str]]:
    return True, {}


def test_chips_by_state_add_up_to_all_chips() -> None:
    scene = Scene("")
    stage = scene.stage
    for each in "abc":
        stage.put_node(node(each))
    stage.put_node(node("d", spec={"unschedulable": True}))
    stage.put_node(node("e", ready="False"))
    stage.put_node(node("f", chips=6))
    stage.pod("one", 8)
    stage.pod("two", 3)
    scene.cycle()
    where = stage.bound["one"].split()[0]
    report = DEVICE_INFO  # chip 7 is not well
    stage.config_map(f"mindx-dl-deviceinfo-{where}", {"DeviceInfoCfg": report})
    stage.pod(
        "lost",
        2,
        scheduler="other",
        spec={"nodeName": "c" if where != "c" else "b"},
    )
    scene.cycle()

    found = scene.chips()

    assert sum(found.values()) == 6 * 8
    assert found["used-faulty"] == 1
    assert found["unavailable"] == 16
    assert found["faulty"] == 2
    assert found["unclear"] == 8
    assert found["used"] == 7 + 3


@given(
    st.lists(
        st.tuples(*[st.integers(0, 255)] * 4, st.booleans(), st.booleans()),
        min_size=1,
        max_size=4,
    )
)
def test_every_chip_is_in_the_state_that_a_look_at_it_alone_gives(
    drawn: list[tuple[int, int, int, int, bool, bool]],
) -> None:
    """Nodes of random masks: listed, faulty, taken, reserved; ready, cordoned."""
    product = PRODUCTS["atlas-800t-a2"]
    nodes = [
        Node(f"n{i}", product, 8, listed, faulty, ready=ready, cordoned=cordoned)
        for i, (listed, faulty, _taken, _kept, ready, cordoned) in enumerate(drawn)
    ]
    cluster = Cluster(nodes)
    reserved = np.zeros(len(nodes), np.uint64)
    expected: Counter[tuple[int, str]] = Counter()
    for i, (listed, faulty, taken, kept, ready, cordoned) in enumerate(drawn):
        cluster.taken[i], reserved[i] = taken, taken & kept
        cluster.free[i] = listed & ~taken
        for chip in range(8):
            has = {
                "listed": listed >> chip & 1,
                "faulty": faulty >> chip & 1,
                "taken": taken >> chip & 1,
                "kept": kept >> chip & 1,
            }
            expected[i, state(has, takes_pods=ready and not cordoned)] += 1

    found = states_of(cluster, reserved)

    assert found.keys() == STATES.keys()
    for name, counts in found.items():
        assert counts.tolist() == [expected[i, name] for i in range(len(nodes))], name


def state(has: dict[str, int], *, takes_pods: bool) -> str:
    """The state of one chip."""
    if has["taken"]:
        if has["kept"]:
            return "reserved"
        return "used-faulty" if has["faulty"] else "used"
    if has["faulty"]:
        return "faulty"
    if not has["listed"]:
        return "unclear"
    return "free" if takes_pods else "unavailable"


def test_chips_that_are_reserved_are_neither_free_nor_used() -> None:
    scene = Scene("a b")
    scene.stage.pod("small", 1)
    scene.cycle()
    scene.stage.gang("large", 2)
    scene.cycle()
    scene.stage.now += 400
    scene.stage.pod("poke", 0)

    scene.cycle()

    assert scene.chips() == {"used": 1, "reserved": 15}
    assert scene.waiting() == {"reserved": 1}


def test_what_reservations_keep_idle_is_counted() -> None:
    scene = Scene("a b")
    stage = scene.stage
    stage.now = scene.scheduler.now() - 10_000
    stage.pod("small", 1)
    scene.cycle()
    stage.gang("large", 2)
    scene.cycle()
    assert scene.waiting() == {"reserved": 1}
    stage.now += 1000
    stage.pod("poke", 0)
    scene.cycle()

    (used,) = scene.values("ringleaf_reservation_idle_budget_used").values()
    (kept,) = scene.values("ringleaf_reservation_idle_chip_seconds_total").values()

    assert used == 15 * 1000 / (0.05 * 16 * 86_400)
    assert kept == pytest.approx(15 * 10_000, rel=0.01)


def test_runs_that_were_learnt_are_counted() -> None:
    scene = Scene("a b")
    runs = scene.stage.engine.run_times
    told = RunTime(median_s=4, most_s=8)
    scene.stage.pod("one", 1)
    scene.cycle()
    (job_state,) = scene.stage.engine.view.job_states.values()
    for ran_s, run_time in ((5.0, None), (8.0, told), (9.0, told)):
        runs.ended(replace(job_state.job, run_time=run_time), ran_s)

    found = [
        *scene.values("ringleaf_runs_learnt_total").values(),
        *scene.values("ringleaf_runs_predicted_total").values(),
        *scene.values("ringleaf_runs_within_prediction_total").values(),
    ]

    assert found == [3, 2, 1]


def test_fragments_are_what_is_free_and_too_little() -> None:
    scene = Scene("a b")
    scene.stage.pod("one", 1)
    scene.cycle()

    found = scene.values("ringleaf_fragmented_chips")

    assert found["atlas-800t-a2", "8"] == 7
    assert found["atlas-800t-a2", "1"] == 0


def test_nodes_by_state() -> None:
    scene = Scene("a b")
    scene.stage.put_node(node("c", spec={"unschedulable": True}))
    scene.stage.put_node(node("d", ready="False"))
    scene.cycle()
    cluster = scene.stage.engine.view.cluster
    cluster.set_quarantined(cluster.index["b"], on=True)

    found = scene.values("ringleaf_nodes")

    assert found == {
        ("ready",): 1,
        ("cordoned",): 1,
        ("quarantined",): 1,
        ("not-ready",): 1,
    }
    assert scene.values("ringleaf_chips")["atlas-800t-a2", "free"] == 8


@pytest.mark.parametrize(
    ("chips", "causes"),
    [
        (8, {"too-few-chips": 1}),
        (9, {"invalid": 1}),
    ],
)
def test_jobs_wait_for_what_most_nodes_lack(
    chips: int, causes: dict[str, float]
) -> None:
    scene = Scene("a b c")
    scene.stage.gang("full", 3, 5)
    scene.cycle()
    scene.stage.pod("late", chips)

    scene.cycle()

    assert scene.waiting() == causes
    assert scene.values("volcano_unschedule_job_count") == {(): 1}


def test_a_job_without_all_its_pods_is_incomplete_until_it_has_them() -> None:
    scene = Scene("a b")
    scene.stage.group("few", 2)
    scene.stage.pod("few-0", 8, "few")
    scene.cycle()
    before = scene.waiting()

    scene.stage.pod("few-1", 8, "few")
    scene.cycle()

    assert before == {"incomplete": 1}
    assert scene.waiting() == {}


def test_a_job_whose_queue_is_closed_waits_for_its_queue() -> None:
    scene = Scene("a b")
    scene.stage.queue("shut", state="Closed")
    scene.stage.gang("some", 1, queue="shut")

    scene.cycle()

    assert scene.waiting() == {"queue": 1}
    assert scene.values("ringleaf_jobs")["pending",] == 1
    assert scene.values("ringleaf_longest_wait_seconds")["shut",] > 0


def test_series_of_a_job_vanish_with_it() -> None:
    scene = Scene("a")
    scene.stage.pod("one", 8)
    scene.stage.pod("late", 8)
    scene.cycle()
    lacking = scene.values("volcano_unschedule_task_count")

    scene.stage.drop_pod("late")
    scene.cycle()

    assert lacking == {("pod default/late",): 1}
    assert scene.values("volcano_unschedule_task_count") == {}
    assert scene.waiting() == {}
    assert scene.metrics.told == {}


@pytest.mark.parametrize("chips", [8, 9], ids=["waits", "invalid"])
def test_what_a_job_was_told_is_forgotten_when_it_ends(chips: int) -> None:
    """Whether anybody reads the metrics or not."""
    scene = Scene("a")
    scene.stage.pod("one", 8)
    scene.stage.pod("late", chips)
    scene.cycle()
    told = dict(scene.metrics.told)

    scene.stage.drop_pod("late")
    scene.cycle()

    assert [*told] == ["pod default/late"]
    assert scene.metrics.told == {}


def test_what_a_job_was_told_is_forgotten_when_it_starts() -> None:
    scene = Scene("a")
    scene.stage.pod("one", 8)
    scene.stage.pod("late", 8)
    scene.cycle()
    told = dict(scene.metrics.told)

    scene.stage.drop_pod("one")
    words = scene.cycle()

    assert [*told] == ["pod default/late"]
    assert words == ["bind pod default/late: late on a 01234567"]
    assert scene.metrics.told == {}


def test_only_so_many_jobs_have_series_of_their_own() -> None:
    scene = Scene("a")
    for i in range(MOST_JOBS + 3):
        scene.stage.pod(f"p{i}", 8)
    scene.cycle()

    assert len(scene.values("volcano_unschedule_task_count")) == MOST_JOBS
    assert scene.values("volcano_unschedule_job_count") == {(): MOST_JOBS + 2}


def test_resources_that_no_node_has_share_a_series() -> None:
    scene = Scene("a b c")
    for i in range(500):
        scene.stage.pod(f"p{i}", 0, asks={f"evil.io/r{i}": "1"})
    scene.cycle()

    asked = scene.values("volcano_queue_request_scalar_resources")
    body = scene.page.text()[0]

    assert asked["default", OTHER] == 500 * 1000
    assert {resource for _queue, resource in asked} <= {NPU, "pods", OTHER}
    assert b"evil.io" not in body


def test_only_so_many_resources_have_series_of_their_own() -> None:
    scene = Scene("")
    many = {f"r.io/{i:02d}": "1" for i in range(2 * MOST_RESOURCES)}
    scene.stage.put_node(node("a", allocatable=many))
    scene.stage.pod("p", 0, asks=many)
    scene.cycle()

    asked = scene.values("volcano_queue_request_scalar_resources")
    own = [name for _queue, name in asked if name.startswith("r.io/")]

    assert 0 < len(own) < MOST_RESOURCES + 1
    assert asked["default", OTHER] == 1000 * (2 * MOST_RESOURCES - len(own))


def test_only_so_many_queues_have_series_of_their_own() -> None:
    scene = Scene("a b")
    for i in range(2 * MOST_QUEUES):
        scene.stage.queue(f"q{i:03d}", weight=1)
    scene.cycle()

    weights = scene.values("volcano_queue_weight")
    waits = scene.values("ringleaf_longest_wait_seconds")

    assert len(weights) == len(waits) == MOST_QUEUES + 1
    assert weights[OTHER,] == MOST_QUEUES + 1
    assert sum(weights.values()) == 2 * MOST_QUEUES + 1


def test_the_page_is_read_in_steps_between_which_others_work() -> None:
    scene = Scene("a b")
    for i in range(2 * MOST_QUEUES):
        scene.stage.queue(f"q{i}", weight=1)
    scene.cycle()
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def story() -> bytes:
        working = asyncio.create_task(others())
        found = await scene.page.collected()
        working.cancel()
        return found.text()[0]

    text = asyncio.run(story())

    def names(page: bytes) -> list[bytes]:
        return [line.split(b" ")[0] for line in page.splitlines()]

    assert turns > 2 * MOST_QUEUES / STEP_QUEUES
    assert names(text) == names(scene.page.text()[0])


def test_what_was_read_does_not_change_any_more() -> None:
    scene = Scene()
    found = asyncio.run(scene.page.collected())
    before = found.text()[0]
    scene.metrics.bind_s.observe(1.0)

    lines = [line for line in before.splitlines() if b"bind_seconds" in line]

    assert [line for line in found.text()[0].splitlines() if line in lines] == lines


def test_a_queue_that_goes_while_the_page_is_read_is_left_out() -> None:
    scene = Scene()
    scene.stage.queue("goes", weight=1)
    scene.cycle()
    reading = SchedulerSample(scene.scheduler, "1.2.3")
    steps = reading.steps()
    view = scene.stage.engine.view
    while "volcano_unschedule_job_count" not in reading.values:
        next(steps)
    view.remove_queue("goes")
    view.queue_usage.pop("goes", None)
    for _step in steps:
        pass

    assert "goes" not in view.queue_usage
    assert ("goes",) not in dict(reading.values["volcano_queue_weight"])


def test_queues_are_counted_as_volcano_counts_them() -> None:
    scene = Scene("a b")
    scene.stage.queue("team", weight=3, capability={"cpu": "10", "memory": "1Gi"})
    scene.stage.gang("some", 2, queue="team")
    scene.cycle()

    def of(name: str) -> float:
        return scene.values(f"volcano_queue_{name}")["team",]

    npu = ("team", "huawei.com/Ascend910")
    assert of("weight") == 3
    assert of("allocated_milli_cpu") == of("request_milli_cpu") == 2000
    assert of("capacity_milli_cpu") == 10_000
    assert of("capacity_memory_bytes") == 1 << 30
    assert scene.values("volcano_queue_allocated_scalar_resources")[npu] == 16_000
    assert scene.values("volcano_queue_deserved_scalar_resources")[npu] == 16_000
    assert of("share") == 1
    assert of("overused") == 1


def test_a_report_that_does_not_fit_its_check_code_is_counted() -> None:
    scene = Scene("a")
    wrong = re.sub("27908e62", "00000000", DEVICE_INFO)
    scene.stage.config_map("mindx-dl-deviceinfo-a", {"DeviceInfoCfg": wrong})
    scene.cycle()

    assert scene.values("ringleaf_check_code_mismatches_total") == {(): 1}
    assert scene.values("ringleaf_bad_objects") == {("ConfigMap",): 1}


def test_failures_and_what_is_set_aside_are_counted() -> None:
    scene = Scene("a")
    scene.stage.pod("odd", 4)
    scene.cycle()
    own, cache = scene.scheduler.metrics, scene.stage.cache
    own.failures, own.differences, own.rebuilds = 3, 1, 4
    cache.isolation.quarantine.put(
        Culprit("Job", "pod default/odd"), "why", time.time() + 100
    )

    assert scene.values("ringleaf_failures_total") == {(): 3}
    assert scene.values("ringleaf_differences_total") == {(): 1}
    assert scene.values("ringleaf_rebuilds_total") == {(): 4}
    aside = scene.values("ringleaf_set_aside")
    assert aside["Job",] == 1
    assert sum(aside.values()) == 1


def test_leader_and_configuration_are_as_they_were_set() -> None:
    scene = Scene()
    first = [
        scene.values(f"ringleaf_{n}") for n in ("leader", "configuration_is_current")
    ]

    scene.scheduler.leadership.leads = False
    scene.scheduler.reconfigure(DEFAULT)
    scene.scheduler.refuse_conf("no")

    assert first == [{(): 1}, {(): 1}]
    assert scene.values("ringleaf_leader") == {(): 0}
    assert scene.values("ringleaf_configuration_is_current") == {(): 0}
    assert scene.values("ringleaf_configuration_reloads_total") == {
        ("good",): 1,
        ("bad",): 1,
    }


def test_decisions_share_the_time_of_their_cycle() -> None:
    scene = Scene("a b c")
    for name in "xyz":
        scene.stage.pod(name, 8)

    scene.cycle()

    assert scene.values("ringleaf_decision_seconds_count") == {(): 1}
    assert scene.values("ringleaf_job_decision_seconds_count") == {(): 3}
    total = scene.values("ringleaf_job_decision_seconds_sum")[()]
    assert total == pytest.approx(0.002)


def test_every_reason_of_nodes_is_a_reason_to_wait() -> None:
    assert {reason.value for reason in Reason} < {*CAUSES}


def test_a_histogram_counts_its_bounds_in() -> None:
    seen = Histogram((1.0, 2.0))

    seen.observe(1.0)
    seen.observe(1.1, times=2)
    seen.observe(5.0)

    assert list(seen.buckets()) == [(1.0, 1), (2.0, 3), (inf, 4)]
    assert seen.total == pytest.approx(8.2)


def test_answers_are_counted_by_verb_code_and_lane() -> None:
    scene = Scene()
    scene.metrics.answered("POST", "bind", 201, 0.01)
    scene.metrics.answered("POST", "bind", 0, 30.0)
    scene.metrics.answered("WATCH", "watch", 200, 0.0)

    found = scene.values("ringleaf_api_requests_total")

    assert found == {
        ("POST", "201", "bind"): 1,
        ("POST", "none", "bind"): 1,
        ("WATCH", "200", "watch"): 1,
    }
    assert scene.values("ringleaf_api_request_seconds_count")["bind",] == 2


def test_jobs_that_cross_one_leaf_are_in_conflict() -> None:
    """Pods of others may lie as no rule of ours would put them."""
    scene = Scene("")
    stage = scene.stage
    for each in "abcd":
        stage.put_node(node(each))
    leaves = [
        {"tor_ip": f"9.9.9.{i}", "tor_id": i, "server": _servers(names)}
        for i, names in enumerate(("ab", "cd"))
    ]
    listed = {"version": "1.0", "tor_count": 2, "server_list": leaves}
    data = {"tor_info": json.dumps(listed)}
    stage.config_map("basic-tor-node-cm", data, "kube-system")
    scene.cycle()
    before = scene.values("ringleaf_spine_conflicts")
    for job in ("one", "two"):
        stage.group(job, 2)
        for i, where in enumerate("ac" if job == "one" else "bd"):
            chips = {NPU: "Ascend910-0"}
            stage.pod(f"{job}-{i}", 1, job, annotations=chips, spec={"nodeName": where})

    scene.cycle()

    assert before == {(): 0}
    assert scene.values("ringleaf_spine_conflicts") == {(): 2}
    assert scene.values("ringleaf_leaves") == {
        ("none",): 0,
        ("one",): 0,
        ("several",): 2,
    }


def _servers(names: str) -> list[dict[str, object]]:
    return [
        {"server_ip": f"10.0.0.{ord(name)}", "npu_count": 8, "slice_id": slot}
        for slot, name in enumerate(names)
    ]


def test_pods_on_their_way_are_in_flight_until_the_api_server_has_bound_them() -> None:
    async def story() -> None:
        scene = Scene("a")
        scene.stage.pod("one", 1)
        scene.stage.cycle(outcome=lambda _pod, _place: "sent")
        (record,) = scene.stage.cache.pods.values()
        assert record.assumed is not None
        before = scene.values("ringleaf_bindings_in_flight")
        binder = scene.scheduler.writers.binder
        binder.bind([Bound(record, record.assumed, {})])

        found = scene.values("ringleaf_bindings_in_flight")
        binder.abandon()

        assert before[()] == 0
        assert found[()] > 0

    asyncio.run(story())


def test_kinds_are_synced_once_they_were_listed() -> None:
    scene = Scene()
    before = scene.values("ringleaf_synced")

    scene.scheduler.reflectors[0].synced = True

    assert {*before.values()} == {0}
    assert scene.values("ringleaf_synced")["nodes",] == 1
    assert len(before) == len(scene.scheduler.reflectors), "each has its own name"


def test_promtool_minds_nothing_but_the_names_of_volcano(promtool: Path) -> None:
    scene = Scene()
    scene.stage.gang("some", 2)
    scene.cycle()

    done = subprocess.run(  # noqa: S603 - our own command
        [promtool, "check", "metrics"],
        input=scene.page.text()[0],
        capture_output=True,
        check=False,
        timeout=60,
    )

    said = (done.stdout + done.stderr).decode().splitlines()
    assert all(line.startswith("volcano_") for line in said), said
    assert done.returncode in (0, 3), "3 is for words about style"
