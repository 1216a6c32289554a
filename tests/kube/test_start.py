"""What a scheduler hears at its start of pods that others have bound."""

from typing import Any

import pytest

from ringleaf.engine.event import JobArrived, PodsRun
from ringleaf.kube.gang_events import GangEvents
from ringleaf.kube.gang_state import GangState
from tests.kube.stage import NPU, Plain, Stage, node, pod

LATER = 2_000_000_000.0
OTHER: dict[str, Any] = {"scheduler": "default-scheduler"}


def bound(name: str, chips: int = 0, where: str = "a", **changes: Any) -> Plain:  # noqa: ANN401
    """A pod that runs on a node."""
    changes.setdefault("phase", "Running")
    plain = pod(name, chips, **changes)
    plain["spec"]["nodeName"] = where
    return plain


def chips(*numbers: int) -> dict[str, str]:
    """The annotation with the names of chips."""
    return {NPU: ",".join(f"Ascend910-{n}" for n in numbers)}


def ending(plain: Plain) -> Plain:
    """The same pod, asked to end."""
    plain["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    return plain


def started(plain: Plain) -> Plain:
    """The same pod, of which it is known since when it runs."""
    plain["status"]["startTime"] = "2026-01-01T00:30:00Z"
    return plain


PODS = [
    bound("plain"),
    bound("trains", 2, annotations=chips(0, 1)),
    bound("ranked", 1, annotations=chips(2) | {"hccl/rankIndex": "3"}),
    bound("not-yet", phase="Pending"),
    bound("labelled", labels={"app": "x", "fault-scheduling": "force"}),
    bound("misread", labels={"fault-scheduling": "perhaps"}),
    bound("unclear", 1, "b", annotations={NPU: "Ascend910-x"}),
    bound("twice", 1, "b", annotations=chips(0), **OTHER),
    bound("twice-too", 1, "b", annotations=chips(0)),
    bound("web", **OTHER),
    bound("web-2", **OTHER),
    bound("web-trains", 1, annotations=chips(4), **OTHER),
    bound("web-ranked", 0, annotations={"hccl/rankIndex": "3"}, **OTHER),
    bound("unreadable", 1, asks={"huawei.com/Ascend310": "1"}),
    bound("faulty", labels={"fault-type": "Separate"}),
    bound("takes-none", 0, annotations=chips(7)),
    bound("nowhere", where="gone"),
    bound("over", phase="Succeeded"),
    bound("failed", phase="Failed"),
    ending(bound("ending")),
    started(bound("started")),
    pod("waits", 1),
]


def stage_with(pods: list[Plain]) -> Stage:
    """A scheduler that has not decided anything, and what there is."""
    stage = Stage([node("a"), node("b")])
    stage.now = LATER
    for plain in pods:
        stage.put_pod(plain)
    return stage


def known(stage: Stage) -> dict[str, dict[str, object]]:
    """All that is known of groups."""
    slots = [name for name in GangState.__slots__ if name not in ("pods", "numbers")]
    return {
        group.name: {name: getattr(group, name) for name in slots}
        | {"pods": [(pod.number, pod.job) for pod in group.pods.values()]}
        for group in stage.cache.gangs.values()
    }


@pytest.mark.parametrize("also", [[], [bound("late", 1, annotations=chips(5))]])
def test_a_bound_pod_is_reported_in_short_as_it_is_at_length(
    also: list[Plain], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = stage_with(PODS)
    found = [short.cycle()]
    told = [*short.heard]
    for plain in also:
        short.put_pod(plain)
        found.append(short.cycle())
        told += short.heard

    monkeypatch.setattr(GangEvents, "found_bound", lambda *_args: None)
    long = stage_with(PODS)
    expected = [long.cycle()]
    wanted = [*long.heard]
    for plain in also:
        long.put_pod(plain)
        expected.append(long.cycle())
        wanted += long.heard

    assert told == wanted
    assert found == expected
    assert known(short) == known(long)
    assert short.cache.problems.known == long.cache.problems.known
    assert short.cache.gang_events.not_ready == long.cache.gang_events.not_ready
    assert short.cache.problems.unreported == long.cache.problems.unreported


def test_what_is_reported_in_short() -> None:
    stage = stage_with([bound("plain"), bound("web", **OTHER), ending(bound("ending"))])
    stage.cache.node_store.changes()  # the nodes are known

    short = {
        name
        for name, group in stage.cache.gangs.items()
        if stage.cache.gang_events.found_bound(group, LATER) is not None
    }

    assert short == {"pod default/plain", "pod default/web"}


def test_pods_of_other_schedulers_that_are_alike_share_what_they_ask() -> None:
    stage = stage_with([bound(f"web-{i}", **OTHER) for i in range(2)])
    stage.cycle()
    first, second = (e.job for e in stage.heard if isinstance(e, JobArrived))

    assert (first.name, second.name) == ("pod default/web-0", "pod default/web-1")
    assert first.roles is second.roles
    assert not any(isinstance(event, PodsRun) for event in stage.heard)
