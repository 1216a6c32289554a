"""A leader that lost its Lease knows what a scheduler knows that has never led."""

import asyncio
from typing import Any

import pytest

from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.engine.event import JobGone
from ringleaf.framework.job_state import Phase
from ringleaf.kube.answers import Answer
from ringleaf.kube.api import Unreachable
from ringleaf.kube.binder import Binder, Bound
from ringleaf.kube.pod_state import PodState
from ringleaf.model.mask import chips_of
from ringleaf.model.placement import Placement
from tests.kube.stage import NPU, Stage, node, status_writer_of

Books = tuple[dict[str, list[int]], dict[str, tuple[Phase, int]]]


def books(stage: Stage) -> Books:
    """Chips that are taken by node, and jobs with their phase and pods placed."""
    view = stage.engine.view
    cluster = view.cluster
    taken = {
        name: [*chips_of(int(cluster.taken[n]))] for name, n in cluster.index.items()
    }
    jobs = {
        name: (each.phase, len(each.placements))
        for name, each in sorted(view.job_states.items())
    }
    return taken, jobs


def newcomer(stage: Stage) -> Books:
    """The books of a scheduler that has just begun to stand by."""
    fresh = Stage("", conf=stage.conf.quiet)
    fresh.pods, fresh.nodes = stage.pods, stage.nodes
    fresh.groups, fresh.maps, fresh.now = stage.groups, stage.maps, stage.now
    fresh.read_everything()
    fresh.cycle()
    return books(fresh)


def sent(_pod: PodState, _place: Placement) -> str:
    """A binding without an answer."""
    return "sent"


def with_preemption() -> Conf:
    plugins = [{"name": n} for n in ("priority", "gang", "predicates", "proportion")]
    found = read_conf({"actions": "allocate, preempt", "tiers": [{"plugins": plugins}]})
    assert isinstance(found, Conf)
    return found


def test_pods_that_were_sent_and_are_not_bound_wait_again() -> None:
    stage = Stage("a b")
    stage.pod("runs", 8)
    stage.cycle()
    stage.gang("gang", 1, 8)
    stage.cycle(outcome=sent)
    held = books(stage)

    stage.step_down()

    assert held[0] == {"a": [*range(8)], "b": [*range(8)]}
    assert books(stage) == newcomer(stage)
    assert books(stage)[0] == {"a": [*range(8)], "b": []}
    stage.lead()
    assert stage.cycle() == ["bind default/gang: gang-0 on b 01234567"]


def test_a_pod_that_another_leader_bound_elsewhere_is_where_it_is() -> None:
    stage = Stage("a b")
    stage.pod("p", 8)
    (told,) = stage.cycle(outcome=sent)
    where = told.split()[-2]
    other = "b" if where == "a" else "a"
    chips = ",".join(f"Ascend910-{n}" for n in range(8))

    stage.step_down()
    stage.write("default/p", other, {NPU: chips})
    stage.pod("q", 8)
    stage.lead()

    assert stage.cycle() == [f"bind pod default/q: q on {where} 01234567"]
    assert books(stage)[0] == {"a": [*range(8)], "b": [*range(8)]}


def test_a_binding_that_arrived_all_the_same_counts() -> None:
    stage = Stage("a")
    stage.pod("p", 8)
    stage.cycle(outcome=lambda _pod, _place: "written")

    stage.step_down()
    assert books(stage)[0] == {"a": []}
    stage.lead()
    stage.pod("q", 8)

    assert [word for word in stage.cycle() if word.startswith("bind")] == []
    assert books(stage)[0] == {"a": [*range(8)]}


def test_who_was_let_in_and_not_told_so_is_not_let_in() -> None:
    stage = Stage("a")
    stage.group("g", 2)
    stage.cycle()
    assert stage.cache.gangs["default/g"].reported.is_admitted

    stage.step_down()

    assert not stage.cache.gangs["default/g"].reported.is_admitted
    assert books(stage) == newcomer(stage)
    assert stage.engine.view.job_states["default/g"].phase is Phase.PENDING
    stage.lead()
    stage.cycle()
    assert stage.cache.gangs["default/g"].reported.is_admitted


def test_who_was_to_be_evicted_and_was_not_asked_runs_on() -> None:
    stage = Stage("a", conf=with_preemption())
    stage.pod("low", 8)
    stage.cycle()
    stage.pod("high", 8, spec={"priority": 100})
    first = stage.cycle(later=1.0)

    stage.step_down()
    assert books(stage) == newcomer(stage)
    stage.lead()

    assert [word for word in first if word.startswith("evict ")] == [
        "evict pod default/low: 0"
    ]
    assert [word for word in stage.cycle() if word.startswith("evict ")] == [
        "evict pod default/low: 0"
    ]


def test_a_repair_that_was_not_written_down_is_begun_anew() -> None:
    stage = Stage("a b")
    labels = {"fault-scheduling": "force"}
    stage.group("g", 1, labels=labels)
    stage.pod("g-0", 8, "g", labels=labels)
    stage.cycle()
    where = stage.bound["g-0"].split()[0]
    stage.put_node(node(where, ready="False"))
    first = [word for word in stage.cycle(60.0) if word.startswith("delete")]
    record = stage.cache.gangs["default/g"].repair.record
    del stage.records["default/g"]  # what it wrote never arrived

    stage.step_down()
    known = stage.cache.gangs["default/g"].repair.record
    stage.lead()
    words = stage.cycle(1.0) + stage.cycle(60.0)  # the brake counts the first one
    again = [word for word in words if word.startswith("delete")]

    assert first
    assert record is not None
    assert not record.is_over
    assert known is None
    assert again == first
    assert "default/g" in stage.records


def test_jobs_that_run_are_not_told_anew() -> None:
    """There are many of them, and nothing is decided of them."""
    stage = Stage("a b c")
    for name in ("one", "two"):
        stage.gang(name, 1, 8)
    stage.cycle()
    stage.pod("sent", 8)
    stage.cycle(outcome=sent)
    stage.pod("waits", 8)
    stage.cycle()

    stage.step_down()

    told = {each.job for each in stage.heard if isinstance(each, JobGone)}
    assert told == {"pod default/sent", "pod default/waits"}
    assert books(stage) == newcomer(stage)


def test_a_pod_alone_whose_repair_was_begun_is_repaired_anew() -> None:
    stage = Stage("a b")
    labels = {"fault-scheduling": "force"}
    stage.pod("p", 8, labels=labels, annotations={})
    stage.cycle()
    where = stage.bound["p"].split()[0]
    stage.put_node(node(where, ready="False"))
    first = [word for word in stage.cycle(60.0) if word.startswith("delete")]

    stage.step_down()
    left = dict(stage.engine.repairs)
    stage.lead()
    words = stage.cycle(1.0) + stage.cycle(60.0)  # the brake counts the first one

    assert first
    assert left == {}
    assert [word for word in words if word.startswith("delete")] == first


class Silent:
    """An API server that never answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def call(self, _method: str, path: str, *_body: Any, **_how: Any) -> Answer:  # noqa: ANN401
        self.asked.append(path)
        await asyncio.Event().wait()
        raise Unreachable("away")


@pytest.mark.parametrize("begun", [True, False], ids=["sent", "not sent yet"])
def test_nothing_is_left_of_bindings_that_are_given_up(*, begun: bool) -> None:
    """Also of those whose task has not had its turn."""

    async def story() -> tuple[int, int]:
        stage, api = Stage("a"), Silent()
        plain = stage.pod("p", 8)
        stage.cycle(outcome=sent)
        record = stage.cache.pods[plain["metadata"]["uid"]]
        assert record.assumed is not None
        item = Bound(record, record.assumed, {})
        binder = Binder(
            api,  # type: ignore[arg-type]
            stage.cache,
            lambda: stage.now,
            done=lambda _pod, _place: None,
            changed=lambda: None,
            say=lambda *_words, **_facts: None,
            workers=1,
        )
        binder.bind([item])
        binder.delete([record])
        if begun:
            await asyncio.sleep(0.01)
        await binder.abandoned()
        left = binder.in_flight
        async with asyncio.timeout(5):
            await binder.drained()
        asked = len(api.asked)
        binder.bind([item])
        await asyncio.sleep(0.01)
        return left, len(api.asked) - asked

    assert asyncio.run(story()) == (0, 1)


def test_what_was_not_told_is_left_to_others() -> None:
    async def story() -> int:
        stage = Stage("a")
        stage.group("g", 2)
        stage.cycle()
        status_writer = status_writer_of(stage, Silent(), lambda: stage.now)
        status_writer.group_changed("default/g", is_urgent=True)
        status_writer.queues_changed()
        assert status_writer.queue.n_waiting == 2
        status_writer.forget()
        return status_writer.queue.n_waiting

    assert asyncio.run(story()) == 0
