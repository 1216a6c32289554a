"""Warnings of placed and waiting jobs reach whoever looks at the job (D33, D40)."""

import asyncio
import json
from typing import Any

import pytest

from ringleaf.config.conf import Conf
from ringleaf.framework.instruction import Bind, Report
from ringleaf.kube.answers import Answer
from tests.engine.story import PLAIN, conf
from tests.kube.stage import Stage, node, scheduler_of, status_writer_of

TWO = conf("enqueue, allocate", PLAIN, **{"init-params": {"nslb-version": "2.0"}})
A2 = {"accelerator-type": "module-910b-8"}
LABELS = {"tor-affinity": "large-model-schema", "framework": "mindspore"}
NOT_NAMED = (
    "the vendor names switch affinity 2.0 for pytorch, not for framework 'mindspore'; "
    "it is placed by the same rule"
)


def under_leaves(conf: Conf, leaves: str = "ab cd", **topology: str) -> Stage:
    """Nodes under leaves, as ``basic-tor-node-cm`` lists them."""
    stage = Stage([node(name) for name in leaves.replace(" ", "")], conf)
    listed = [
        {
            "tor_ip": f"9.9.9.{i}",
            "tor_id": i,
            "server": [
                {"server_ip": f"10.0.0.{ord(name)}", "npu_count": 8, "slice_id": slot}
                for slot, name in enumerate(names)
            ],
        }
        for i, names in enumerate(leaves.split())
    ]
    size = max(map(len, leaves.split()))
    told = {"version": "1.0", "tor_count": size, "server_list": listed}
    data = {"tor_info": json.dumps(told), **topology}
    stage.config_map("basic-tor-node-cm", data, "kube-system")
    return stage


def gang(stage: Stage, pods: int, labels: dict[str, str]) -> None:
    stage.put_group(stage.group("g", pods))
    for i in range(pods):
        stage.pod(f"g-{i}", 8, "g", labels=labels)


def warnings_of(stage: Stage) -> list[str]:
    """What the engine says in a cycle that is to be told."""
    stage.cycle()
    told = [each.warnings for each in stage.said if isinstance(each, Bind | Report)]
    return [each for said in told for each in said]


def test_d40_the_label_of_a_podgroup_or_a_pod_names_the_framework() -> None:
    stage = under_leaves(TWO)
    gang(stage, 2, LABELS)

    assert warnings_of(stage) == [NOT_NAMED]


def test_d40_a_job_that_waits_is_warned_too() -> None:
    stage = under_leaves(TWO, "ab")
    gang(stage, 3, LABELS)

    assert warnings_of(stage) == [NOT_NAMED]


@pytest.mark.parametrize("level", ["single_layer", "double_layer"])
def test_d40_nodes_of_a2_chips_are_one_product_and_have_all_its_modes(
    level: str,
) -> None:
    """Without a selector a job may be for 800T A2 or 800I A2: nothing to warn of."""
    stage = under_leaves(conf(), "ab", tor_level=level)
    gang(stage, 2, {"tor-affinity": "normal-schema"})

    assert warnings_of(stage) == []
    assert stage.bound == {"g-0": "a 01234567", "g-1": "b 01234567"}


BOTH = "atlas-800i-a2 or a200i-a2-box"


@pytest.mark.parametrize(
    ("level", "selector", "told"),
    [
        ("double_layer", {"server-usage": "infer"}, BOTH),
        (
            "double_layer",
            {"server-usage": "infer", "host-arch": "huawei-arm"},
            "atlas-800i-a2",
        ),
        (
            "double_layer",
            {"server-usage": "infer", "host-arch": "huawei-x86"},
            "a200i-a2-box",
        ),
        ("double_layer", {"server-usage": "infer", "host-arch": "riscv"}, None),
        ("double_layer", {"host-arch": "huawei-arm"}, None),
        ("single_layer", {"server-usage": "infer"}, None),
    ],
)
def test_d40_a_node_selector_tells_inference_servers(
    level: str, selector: dict[str, str], told: str | None
) -> None:
    """As the vendor's guide labels nodes; where nothing is told, nothing is warned."""
    stage = under_leaves(conf(), "ab", tor_level=level)
    for name in "ab":
        stage.put_node(node(name, labels={**A2, **selector}))
    stage.put_group(stage.group("g", 2))
    for i in range(2):
        stage.pod(
            *(f"g-{i}", 8, "g"),
            labels={"tor-affinity": "normal-schema"},
            spec={"nodeSelector": {**A2, **selector}},
        )

    assert warnings_of(stage) == [
        f"the vendor names no switch affinity 1.0 for {each}; "
        "it is placed by the same rule"
        for each in ([told] if told else [])
    ]
    assert stage.bound == {"g-0": "a 01234567", "g-1": "b 01234567"}


def test_d33_a_product_without_the_mode_is_warned_of() -> None:
    ring = {"accelerator-type": "module"}
    stage = under_leaves(TWO, "ab")
    for name in "ab":
        stage.put_node(node(name, labels=ring))
    stage.put_group(stage.group("g", 2))
    for i in range(2):
        stage.pod(
            *(f"g-{i}", 8, "g"),
            labels={"tor-affinity": "normal-schema"},
            spec={"nodeSelector": ring},
        )

    (said,) = warnings_of(stage)
    assert said.startswith("the vendor names no switch affinity 2.0 for atlas-800-9000")


class Server:
    """Remembers the events that are posted."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, str]] = []

    async def call(self, _method: str, path: str, *rest: Any, **_more: Any) -> Any:  # noqa: ANN401
        if path.endswith("/events"):
            body = json.loads(next(part for part in rest if isinstance(part, bytes)))
            about = body["involvedObject"]
            told = body["type"], body["reason"], body["message"]
            self.events.append((f"{about['kind']} {about['name']}", *told))
        return Answer(200, b"{}")


def test_d40_a_warning_is_an_event_and_said_once() -> None:
    stage = under_leaves(TWO)
    gang(stage, 2, LABELS)
    stage.pod("lone", 8)
    stage.cycle()
    server = Server()

    async def run() -> None:
        status_writer = status_writer_of(stage, server, lambda: 0.0)
        for _time in range(2):
            status_writer.warns("default/g", [NOT_NAMED])
            status_writer.warns("pod default/lone", ["one", "two"])
            status_writer.warns("pod default/lone", [])
            status_writer.warns("default/gone", ["nobody is there"])
        await status_writer.queue.flush(5.0)

    asyncio.run(run())
    assert server.events == [
        ("PodGroup g", "Warning", "SchedulingWarning", NOT_NAMED),
        ("Pod lone", "Warning", "SchedulingWarning", "one; two"),
    ]


@pytest.mark.parametrize("pods", [2, 5])
def test_d40_the_scheduler_tells_the_warnings_of_what_it_binds_and_reports(
    pods: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = under_leaves(TWO)
    gang(stage, pods, LABELS)
    scheduler = scheduler_of(stage)
    monkeypatch.setattr(scheduler.writers.binder, "bind", lambda _items: None)
    told: list[tuple[str, str, str]] = []
    monkeypatch.setattr(
        scheduler.writers.status_writer,
        "on_job",
        lambda group, reason, message: told.append((group.name, reason, message)),
    )
    said = stage.engine.handle_all(stage.decider.news(stage.now), stage.now)

    scheduler.loop.executor.carry_out(said)

    assert told == [("default/g", "SchedulingWarning", NOT_NAMED)]
