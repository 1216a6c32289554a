"""A cluster as it is now: all of it, once, and an engine that knows it."""

from typing import Any

import msgspec
import pytest

from ringleaf.engine.event import ConfChanged, JobArrived, PodsEnding
from ringleaf.kube.objects import Pod, PodGroup
from ringleaf.kube.snapshot import ReadOnlyCache, Snapshot, told
from ringleaf.kube.watch import Gone
from tests.kube.stage import Stage, pod

Plain = dict[str, Any]


def busy() -> Stage:
    """One gang runs, one of its pods is ending, one pod waits."""
    stage = Stage("a b")
    stage.gang("g", 2)
    stage.cycle()
    plain = stage.pods["default/g-1"]
    plain["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    stage.put_pod(plain)
    stage.pod("w", 8)
    stage.cycle()
    return stage


def test_everything_is_told_again_however_often_it_was_told() -> None:
    stage = busy()

    first, second = (stage.cache.everything(stage.now) for _time in range(2))

    assert first == second
    jobs = {each.job.name: each for each in first if isinstance(each, JobArrived)}
    assert [p.node for p in jobs["default/g"].placements] == ["a", "b"]
    assert jobs["pod default/w"].placements == ()
    assert PodsEnding("default/g", (1,)) in first


def test_an_engine_that_hears_everything_knows_what_the_other_one_knows() -> None:
    stage = busy()

    known = Snapshot(stage.cache, stage.now).engine.view

    before = stage.engine.view
    assert known.cluster.free.tolist() == before.cluster.free.tolist()
    assert known.job_states.keys() == before.job_states.keys()
    for name, job_state in before.job_states.items():
        assert known.job_states[name].placements == job_state.placements
        assert known.job_states[name].terminating == job_state.terminating


def test_looking_decides_nothing_until_it_is_asked_to() -> None:
    stage = Stage("a")
    stage.pod("w", 8)
    look = Snapshot(stage.cache, stage.now)

    assert not look.engine.view.job_states["pod default/w"].placements
    assert not look.binds

    look.decide()

    assert look.engine.view.job_states["pod default/w"].placements
    assert list(look.binds) == ["pod default/w"]


def test_jobs_that_wait_come_last_and_have_waited_since_they_were_made() -> None:
    stage = busy()
    stage.now = 2e9

    *_others, last = Snapshot(stage.cache, stage.now).events

    assert isinstance(last, JobArrived)
    assert last.job.name == "pod default/w"
    assert last.waiting_since == last.job.created > 0


def test_the_configuration_is_the_real_one_once_it_decides() -> None:
    look = Snapshot(Stage("a").cache, 1000.0)

    (told,) = [each for each in look.events if isinstance(each, ConfChanged)]

    assert told.conf.actions
    assert not look.engine.context.framework.conf.actions
    look.decide()
    assert look.engine.context.framework.conf.actions


def unscheduled(message: str, **changes: Any) -> Pod:  # noqa: ANN401
    plain = pod("p", 8, uid="u", **changes)
    told = {"type": "PodScheduled", "status": "False", "message": message}
    plain["status"]["conditions"] = [told]
    return msgspec.convert(plain, Pod)


def test_what_was_said_of_a_pod_is_kept_as_long_as_it_waits() -> None:
    cache = ReadOnlyCache(("ringleaf",))

    cache.handlers["pods"].on_update([unscheduled("too few chips")])
    group = cache.gangs["pod default/p"]
    assert cache.why_of(group) == "too few chips"

    cache.handlers["pods"].on_update([unscheduled("none at all")])
    assert cache.why_of(group) == "none at all"

    cache.handlers["pods"].on_update([msgspec.convert(pod("p", 8, uid="u"), Pod)])
    assert cache.why_of(group) == ""

    cache.handlers["pods"].on_update([unscheduled("too few chips")])
    cache.handlers["pods"].on_delete([Gone("default", "p", "u")])
    assert cache.why == {}


def test_a_group_without_pods_is_told_by_its_own_condition() -> None:
    cache = ReadOnlyCache(("ringleaf",))
    told = {"type": "Unschedulable", "status": "True", "message": "the queue is full"}
    plain: Plain = {
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": 2},
        "status": {"phase": "Pending", "conditions": [told]},
    }

    cache.handlers["podgroups"].on_update([msgspec.convert(plain, PodGroup)])

    assert cache.why_of(cache.gangs["default/g"]) == "the queue is full"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "list /api/v1/pods: https://a:1: [Errno 111] Connect call failed ('a', 1)",
            (
                "the API server https://a:1 cannot be reached: connection refused; "
                "hint: kubectl config view --minify shows which one is meant"
            ),
        ),
        (
            "list /api/v1/pods: https://a:1: [Errno -2] Name or service not known",
            (
                "the API server https://a:1 cannot be reached: no address is known "
                "for its name; "
                "hint: kubectl config view --minify shows which one is meant"
            ),
        ),
        (
            "list /api/v1/pods: https://a:1: [SSL: CERTIFICATE_VERIFY_FAILED] x (_ssl)",
            (
                "the API server https://a:1 cannot be reached: its certificate is not "
                "of the authority that is trusted; "
                "hint: certificate-authority of the kubeconfig"
            ),
        ),
        (
            "list /api/v1/nodes: status 401, Unauthorized",
            (
                "the API server does not know this user, status 401; "
                "hint: kubectl auth whoami"
            ),
        ),
        ("list /api/v1/nodes: status 500, odd", "list /api/v1/nodes: status 500, odd"),
    ],
)
def test_why_the_cluster_cannot_be_read_is_told_with_a_hint(
    line: str, words: str
) -> None:
    assert told(line) == words
