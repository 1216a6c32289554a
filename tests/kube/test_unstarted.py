"""Bound, but never running, as Kubernetes says it."""

from typing import Any

import msgspec
import pytest

from ringleaf.config.reader import DEFAULT
from ringleaf.engine.event import PodFaultsReported, PodsRefused, PodsRun
from ringleaf.framework.instruction import Delete, Report
from ringleaf.kube.objects import Pod
from ringleaf.kube.podgroup_status import status_of
from ringleaf.kube.unstarted import refusal_of, runs
from tests.kube.stage import Stage, scheduler_of

WORDS = "Allocate failed due to no device, which is unexpected"


def pod_with(**status: Any) -> Pod:  # noqa: ANN401
    """A bound pod of that status."""
    plain = {"spec": {"nodeName": "a"}, "status": status}
    return msgspec.convert(plain, Pod)


def changed(stage: Stage, name: str, **status: Any) -> None:  # noqa: ANN401
    """The kubelet says something of a pod."""
    plain = stage.pods[f"default/{name}"]
    plain["status"] = {**plain.get("status", {}), **status}
    stage.put_pod(plain)


def refuse(stage: Stage, name: str, reason: str = "UnexpectedAdmissionError") -> None:
    """The kubelet refuses a pod."""
    changed(stage, name, phase="Failed", reason=reason, message=WORDS)


def deleted(stage: Stage) -> list[tuple[str, tuple[int, ...], str]]:
    """What is to be deleted by the last cycle."""
    found = [each for each in stage.said if isinstance(each, Delete)]
    return [(each.job, each.replicas, each.cause) for each in found]


@pytest.mark.parametrize(
    "reason",
    [
        "UnexpectedAdmissionError",
        "OutOfcpu",
        "OutOfhuawei.com/Ascend910",
        "NodeAffinity",
        "TopologyAffinityError",
    ],
)
def test_a_kubelet_refuses_a_pod(reason: str) -> None:
    pod = pod_with(phase="Failed", reason=reason, message="no\n room")

    assert refusal_of(pod) == f"{reason}: no room"


@pytest.mark.parametrize(
    "reason",
    ["", "Evicted", "Preempting", "NodeShutdown", "Terminated", "SysctlForbidden"],
)
def test_other_failures_are_no_refusals_of_the_node(reason: str) -> None:
    assert refusal_of(pod_with(phase="Failed", reason=reason)) == ""


def test_only_pods_that_failed_were_refused() -> None:
    assert refusal_of(pod_with(phase="Running", reason="OutOfcpu")) == ""


RUNNING = {"running": {"startedAt": "2024-01-01T00:00:00Z"}}
WAITING = {"waiting": {"reason": "ContainerCreating"}}


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        ({"phase": "Running"}, True),
        ({"phase": "Pending"}, False),
        ({"phase": "Pending", "containerStatuses": [{"state": WAITING}]}, False),
        ({"phase": "Pending", "initContainerStatuses": [{"state": RUNNING}]}, True),
        ({"phase": "Pending", "containerStatuses": [{"state": RUNNING}]}, True),
        (
            {
                "phase": "Pending",
                "initContainerStatuses": [
                    {"state": WAITING, "lastState": {"terminated": {"exitCode": 1}}}
                ],
            },
            True,
        ),
    ],
)
def test_a_pod_runs_when_a_container_of_it_was_started(
    status: dict[str, Any],
    answer: bool,  # noqa: FBT001
) -> None:
    assert runs(pod_with(**status)) is answer


def test_the_engine_hears_who_runs() -> None:
    stage = Stage("a b")
    stage.gang("g", 2)
    stage.cycle()
    stage.cycle()
    assert stage.heard == [PodsRun("default/g", ())]

    changed(stage, "g-1", phase="Running")
    stage.cycle()

    assert stage.heard == [PodsRun("default/g", (1,))]


def test_a_gang_that_does_not_come_to_run_is_released() -> None:
    stage = Stage("a b")
    stage.gang("g", 2)
    stage.cycle()
    changed(stage, "g-0", phase="Running")
    stage.cycle()

    stage.cycle(later=600.0)

    assert deleted(stage) == [("default/g", (0, 1), "NeverRan")]


def test_a_restart_does_not_begin_the_time_anew() -> None:
    stage = Stage("a b")
    stage.gang("g", 2)
    stage.cycle()
    changed(stage, "g-0", phase="Running")
    bound = {"type": "PodScheduled", "status": "True"}
    bound["lastTransitionTime"] = "1970-01-01T00:16:40Z"  # when the stage begins
    changed(stage, "g-1", conditions=[bound])

    stage.restart()
    stage.cycle(later=599.0)
    assert PodsRun("default/g", (0,), 1000.0) in stage.heard
    assert deleted(stage) == []
    stage.cycle(later=1.0)

    assert deleted(stage) == [("default/g", (0, 1), "NeverRan")]


def test_pods_of_other_schedulers_are_left_alone() -> None:
    stage = Stage("a")
    stage.pod("p", 2, scheduler="default-scheduler", spec={"nodeName": "a"})
    stage.cycle()
    refuse(stage, "p")

    stage.cycle()

    assert not [e for e in stage.heard if isinstance(e, PodsRun | PodsRefused)]


def test_a_refused_pod_is_deleted_and_its_node_set_aside() -> None:
    stage = Stage("a b c")
    stage.gang("g", 2)
    stage.cycle()
    refuse(stage, "g-0")

    assert stage.cycle() == ["delete default/g: 0", "quarantined default/g"]

    why = f"UnexpectedAdmissionError: {WORDS}"
    assert stage.heard[0] == PodsRefused("default/g", (0,), why)
    assert deleted(stage) == [("default/g", (0,), "PodRefused")]
    assert [*stage.engine.quarantined] == ["a"]


def test_the_successor_of_a_refused_pod_goes_elsewhere() -> None:
    stage = Stage("a b c")
    stage.gang("g", 2)
    stage.cycle()
    refuse(stage, "g-0")
    stage.cycle()
    stage.drop_pod("g-0")
    stage.cycle()
    stage.pod("g-0", 8, "g")

    assert stage.cycle() == ["bind default/g: g-0 on c 01234567"]


def test_a_refused_pod_without_a_group_is_deleted() -> None:
    stage = Stage("a b")
    stage.pod("p")
    stage.cycle()
    refuse(stage, "p")

    stage.cycle()

    assert deleted(stage) == [("pod default/p", (0,), "PodRefused")]
    assert [*stage.engine.quarantined] == ["a"]


def test_a_refusal_is_told_once_and_to_whoever_leads_next() -> None:
    stage = Stage("a b")
    stage.pod("p")
    stage.cycle()
    refuse(stage, "p")
    stage.cycle()
    refuse(stage, "p")
    stage.cycle()
    assert deleted(stage) == []

    stage.cache.reconfigure(DEFAULT)
    stage.cycle()

    assert deleted(stage) == [("pod default/p", (0,), "PodRefused")]


def test_a_refusal_is_no_failure_of_the_pod() -> None:
    stage = Stage("a b")
    stage.group("g", 1, labels={"fault-scheduling": "grace", "fault-retry-times": "3"})
    stage.pod("g-0", 8, "g")
    stage.cycle()
    refuse(stage, "g-0")

    stage.cycle()

    assert deleted(stage) == [("default/g", (0,), "PodRefused")]
    assert not [each for each in stage.heard if isinstance(each, PodFaultsReported)]


def test_a_gang_whose_pods_were_all_refused_has_not_ended() -> None:
    stage = Stage("a b")
    stage.gang("g", 2)
    own(stage, "g-0", "g-1")
    stage.cycle()
    refuse(stage, "g-0")
    refuse(stage, "g-1")
    stage.cycle()

    status = status_of(stage.cache.gangs["default/g"])

    assert (status["phase"], status["failed"]) == ("Pending", 0)


OWNED = [{"name": "train", "uid": "1", "controller": True}]


def own(stage: Stage, *names: str) -> None:
    """A controller made these pods, and makes others when they are deleted."""
    for name in names:
        plain = stage.pods[f"default/{name}"]
        plain["metadata"]["ownerReferences"] = OWNED
        stage.drop_pod(name)
        stage.put_pod(plain)


class Hands:
    """A scheduler on *stage* that writes down what it would do."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.said: list[str] = []
        self.deleted: list[str] = []
        self.told: list[tuple[str, str]] = []
        self.messages: list[str] = []
        self._scheduler = scheduler_of(
            stage, lambda what, **_more: self.said.append(what)
        )
        self._stage = stage
        monkeypatch.setattr(
            self._scheduler.writers.binder,
            "delete",
            lambda pods, **_how: self.deleted.extend(pod.name for pod in pods),
        )
        status_writer = self._scheduler.writers.status_writer
        for name in ("on_job", "on_group", "on_node"):
            monkeypatch.setattr(status_writer, name, self._tell)

    def _tell(self, about: object, reason: str, message: str) -> None:
        self.told.append((getattr(about, "name", str(about)), reason))
        self.messages.append(message)

    def carry_out(self, *kinds: type[Delete | Report]) -> None:
        """What was said in the last cycle is done; of *kinds*, if given."""
        wanted = kinds or (Delete, Report)
        found = [each for each in self._stage.said if isinstance(each, wanted)]
        self._scheduler.loop.executor.carry_out(found)


def test_pods_that_are_made_again_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage("a b c")
    stage.gang("g", 2)
    own(stage, "g-0", "g-1")
    stage.cycle()
    refuse(stage, "g-0")
    stage.cycle()
    hands = Hands(stage, monkeypatch)

    hands.carry_out()

    assert hands.deleted == ["g-0"]
    assert hands.told == [("default/g", "Refused"), ("a", "Quarantined")]
    assert (
        hands.messages[0] == f"pod 'g-0' on node 'a': UnexpectedAdmissionError: {WORDS}"
    )
    assert hands.said == ["release", "report"]


def test_a_refused_pod_that_nobody_makes_again_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage("a b c")
    stage.gang("g", 2)
    stage.cycle()
    refuse(stage, "g-0")
    stage.cycle()
    hands = Hands(stage, monkeypatch)

    hands.carry_out()

    assert hands.deleted == []
    assert hands.told == [("default/g", "NotReleased"), ("a", "Quarantined")]
    assert hands.messages[0].startswith(
        f"pod 'g-0' on node 'a': UnexpectedAdmissionError: {WORDS}; it stays"
    )


@pytest.mark.parametrize("owned", [False, True])
def test_a_gang_is_released_whole_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, *, owned: bool
) -> None:
    stage = Stage("a b")
    stage.gang("g", 2)
    own(stage, "g-0", *(["g-1"] if owned else []))
    stage.cycle()
    stage.cycle()
    stage.cycle(later=600.0)
    hands = Hands(stage, monkeypatch)

    hands.carry_out()

    assert hands.deleted == (["g-0", "g-1"] if owned else [])
    assert hands.told == [("default/g", "Released" if owned else "NotReleased")]
