"""Questions to a live cluster, asked of one in memory."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ringleaf.cli.explain_live import explain_in, target_of
from ringleaf.cli.failure import BadUse
from ringleaf.cli.live import recalled
from ringleaf.cli.plan_manifest import ManifestPlan, plain_answer, print_answer, submit
from ringleaf.engine.event import RepairKnown, RunTimesKnown
from ringleaf.framework.instruction import Report
from ringleaf.framework.run_times import RunSeries
from ringleaf.kube.fault_history import FaultHistory
from ringleaf.kube.manifest import BadManifest, Reader, documents_of
from ringleaf.kube.objects import NodeObject, Pod
from ringleaf.kube.snapshot import ReadOnlyCache, Snapshot
from ringleaf.model.decision import Waiting
from ringleaf.model.fault import Cause, Deletion, Fault, Record
from ringleaf.model.run_time import Similarity
from tests.kube.stage import LEARNING, NPU, Stage, node, pod
from tests.kube.test_repair import report
from tests.kube.test_warnings import LABELS, NOT_NAMED, TWO, under_leaves

Plain = dict[str, Any]


def manifest(name: str, chips: int, group: str = "", **changes: Any) -> Plain:  # noqa: ANN401
    return {"apiVersion": "v1", "kind": "Pod", **pod(name, chips, group, **changes)}


def gang(name: str, pods: int, chips: int = 8) -> list[Plain]:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": pods},
    }
    return [group, *(manifest(f"{name}-{i}", chips, name) for i in range(pods))]


def asked(stage: Stage, *documents: Plain) -> ManifestPlan:
    cache, now = stage.cache, stage.now
    reader = Reader("default", ("ringleaf",), cache.priority_classes, now)
    return submit(Snapshot(cache, now), reader.read(documents_of(documents)))


Explain = Callable[..., tuple[int, str]]


@pytest.fixture
def explain(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    monkeypatch.setenv("COLUMNS", "100")

    def call(
        stage: Stage, what: str, at: str | None = None, *, as_json: bool = False
    ) -> tuple[int, str]:
        target = target_of(what, "default")
        assert target is not None
        look = Snapshot(stage.cache, stage.now)
        status = explain_in(look, target, at, 3, as_json=as_json)
        return status, capfd.readouterr().out

    return call


# Plan.


def test_a_pod_that_would_fit_is_told_its_node_and_chips() -> None:
    stage = Stage("a b")
    stage.pod("old", 6)
    stage.cycle()

    answer = asked(stage, manifest("new", 4))

    (found,) = answer.outcomes
    assert answer.satisfied
    assert found.name == "pod default/new"
    (placement,) = found.decision.placements  # type: ignore[union-attr]
    assert placement.node == "b"


def test_what_runs_is_not_touched_by_the_question() -> None:
    stage = Stage("a b")
    stage.pod("old", 6)
    stage.cycle()
    before = stage.bound

    asked(stage, manifest("new", 8))

    assert stage.bound == before


def test_jobs_that_wait_already_come_first() -> None:
    stage = Stage("a b")
    stage.gang("first", 2)

    (found,) = asked(stage, manifest("new", 8)).outcomes

    assert found.verdict == "pending"


def test_one_that_waits_is_told_when_by_the_estimates() -> None:
    stage = Stage("a")
    stage.pod("old", annotations={"ringleaf.io/estimate-seconds": "3600"})
    stage.cycle()
    stage.pods["default/old"]["status"]["startTime"] = "1970-01-01T00:10:00Z"
    stage.put_pod(stage.pods["default/old"])

    (found,) = asked(stage, manifest("new", 8)).outcomes

    assert found.start is not None
    assert found.start.plain is not None
    assert found.start.plain["ready-at"] == 600 + 3600
    assert found.start.words(found.ends or ()) == (
        "could start in 53.3 min, at 1970-01-01 01:10:00 UTC, on a [0-7]: "
        "by then 'pod default/old' has ended"
    )


def test_one_that_waits_is_told_from_which_runs_its_start_is_predicted() -> None:
    stage = Stage("a", conf=LEARNING)
    series = RunSeries(Similarity.USER, "default", "default", steps=(24,) * 9)
    stage.cache.handover.put_note(RunTimesKnown((series,)))
    stage.pod("old")
    stage.cycle()
    stage.pods["default/old"]["status"]["startTime"] = "1970-01-01T00:10:00Z"
    stage.put_pod(stage.pods["default/old"])

    (found,) = asked(stage, manifest("new", 8)).outcomes

    assert found.start is not None
    assert found.start.plain is not None
    assert found.start.plain["ready-at"] == 600 + 4096
    assert found.start.words(found.ends or ()) == (
        "could start in 1.0 h, at 1970-01-01 01:18:16 UTC, on a [0-7]: "
        "by then 'pod default/old' has ended; 'pod default/old' is expected to end by "
        "1970-01-01 01:18:16 UTC, median of 9 runs of user 'default'"
    )


def test_without_estimates_it_says_that_nobody_knows_when() -> None:
    stage = Stage("a")
    stage.pod("old")
    stage.cycle()

    (found,) = asked(stage, manifest("new", 8)).outcomes

    assert found.start is not None
    words = found.start.words(found.ends or ())
    assert "once 'pod default/old' has ended; the time is not known" in words
    assert "'pod default/old' has no estimate (ringleaf.io/estimate-seconds)" in words


def test_an_estimate_on_the_pod_group_of_a_running_job_says_when() -> None:
    stage = Stage("a")
    stage.gang("old", 1)
    stage.cycle()
    group = stage.groups["old"]
    group["metadata"]["annotations"] = {"ringleaf.io/estimate-seconds": "3600"}
    stage.put_group(group)

    (found,) = asked(stage, manifest("new", 8)).outcomes

    assert found.start is not None
    assert found.start.words(found.ends or ()).startswith("could start in 1.0 h")


def test_one_for_which_there_are_too_few_nodes_is_told_so() -> None:
    stage = Stage("a")
    stage.cycle()

    (found,) = asked(stage, *gang("big", 2)).outcomes

    assert found.verdict == "pending"
    assert found.start is None
    assert isinstance(found.decision, Waiting)
    assert found.decision.impossible == NEVER


NEVER = (
    "cannot start on this cluster, however empty: its 1 node of atlas-800t-a2 has room "
    "for 1 of 2 pods"
)


@pytest.mark.parametrize("rejects", [False, True])
def test_one_for_which_there_are_too_few_nodes_is_told_the_same_everywhere(
    explain: Explain, capfd: pytest.CaptureFixture[str], *, rejects: bool
) -> None:
    """Whether the job is tried, or rejected because others fill the cluster."""
    stage = Stage("a")
    if rejects:
        stage.pod("old")
    stage.cycle()
    print_answer(asked(stage, *gang("big", 2)))
    planned = capfd.readouterr().out
    stage.gang("big", 2)
    stage.cycle()

    _status, explained = explain(stage, "job/big")
    _status, on_node = explain(stage, "job/big", "a")

    (event,) = [each for each in stage.said if isinstance(each, Report)]
    for said in (planned, explained, event.message):
        assert NEVER in " ".join(said.split())
    assert "not on this cluster" in planned
    assert rejects or NEVER in " ".join(on_node.split())
    for said in (planned, explained):
        assert "ended" not in said
        assert "must end first" not in said
        assert "add nodes of atlas-800t-a2, or request at most 1 pod" in said


def test_one_that_can_never_run_is_invalid() -> None:
    stage = Stage("a")
    stage.cycle()

    (found,) = asked(stage, manifest("odd", 9)).outcomes

    assert found.verdict == "invalid"


def test_a_gang_without_its_pods_is_told_what_the_scheduler_would_say() -> None:
    stage = Stage("a")
    stage.cycle()

    (found,) = asked(stage, *gang("few", 2)[:2]).outcomes

    assert found.decision is None
    assert found.held == "pod group is not ready, 1 of 2 pods are there (minMember)"


def test_a_pod_that_is_there_already_is_refused_with_a_hint() -> None:
    stage = Stage("a")
    stage.pod("old")
    stage.cycle()

    with pytest.raises(BadManifest, match="hint: ringleaf explain pod/old -n default"):
        asked(stage, manifest("old", 8))


def test_a_reservation_of_one_who_waits_long_keeps_its_room() -> None:
    """Jobs have waited since they were made, not since they were looked at."""
    stage = Stage("a b")
    stage.pod("old", 8)
    stage.cycle()
    stage.now = 2_000_000_000.0
    stage.gang("big", 2)

    (found,) = asked(stage, manifest("new", 8)).outcomes

    assert found.verdict == "pending"
    assert "reserved for 'default/big'" in found.decision.message  # type: ignore[union-attr]


def test_plan_names_the_jobs_to_wait_for_that_explain_names(
    explain: Explain, capfd: pytest.CaptureFixture[str]
) -> None:
    stage = Stage("a b")
    stage.pod("one")
    stage.pod("two")
    stage.cycle()

    print_answer(asked(stage, manifest("new", 8)))
    planned = capfd.readouterr().out
    stage.pod("new")
    stage.cycle()
    _status, explained = explain(stage, "pod/new")

    for line in (
        "Would start if any one of these jobs ended: pod default/one, pod default/two",
    ):
        assert line in " ".join(planned.split())
        assert line in " ".join(explained.split())


def test_plan_in_json_names_the_jobs_of_which_the_end_of_one_is_enough() -> None:
    stage = Stage("a b")
    stage.pod("one")
    stage.pod("two")
    stage.cycle()

    (found,) = plain_answer(asked(stage, manifest("new", 8)))["decisions"]

    assert found["enough-to-end"] == ("pod default/one", "pod default/two")


def test_d40_plan_warns_of_a_framework_that_the_vendor_does_not_name(
    capfd: pytest.CaptureFixture[str],
) -> None:
    group, *pods = gang("new", 2)
    for each in pods:
        each["metadata"]["labels"] = LABELS

    answer = asked(under_leaves(TWO), group, *pods)
    print_answer(answer)

    assert answer.satisfied
    assert NOT_NAMED in " ".join(capfd.readouterr().out.split())
    (found,) = plain_answer(answer)["decisions"]
    assert [*found["warnings"]] == [NOT_NAMED]


# Explain.


def test_a_pod_that_runs_is_told_its_place_and_the_choice_it_was(
    explain: Explain,
) -> None:
    stage = Stage("a b")
    stage.pod("p", 4)
    stage.cycle()

    status, out = explain(stage, "pod/p")

    assert status == 0
    assert "pod 'default/p' (atlas-800t-a2, 1 x 4 chips): placed" in out
    assert "node a: choice 1 if the job were placed now" in out


def test_a_job_that_waits_is_told_why_and_whose_end_would_be_enough(
    explain: Explain,
) -> None:
    stage = Stage("a")
    stage.pod("old")
    stage.pod("new")
    stage.cycle()

    status, out = explain(stage, "pod/new")

    assert status == 1
    assert "pod 'default/new' (atlas-800t-a2, 1 x 8 chips): pending" in out
    assert "  needs 1 x 8 chips, 1 pod has no node" in out
    assert "Would start if this job ended: pod default/old" in out
    assert "it could start, for example on a [0-7], once 'pod default/old'" in out


def test_one_that_is_not_admitted_anew_has_the_phase_of_its_pod_group(
    explain: Explain,
) -> None:
    stage = Stage("a b")
    stage.pod("one")
    stage.pod("two")
    stage.cycle()
    stage.gang("big", 2, phase="Inqueue")
    stage.gang("new", 2)

    _status, big = explain(stage, "job/big")
    _status, new = explain(stage, "job/new")
    _status, plain = explain(stage, "job/big", as_json=True)

    assert ", admitted (Inqueue) " in " ".join(big.split())
    assert ", not admitted yet " in " ".join(new.split())
    assert json.loads(plain)["phase"] == "inqueue"


def test_an_admitted_job_is_told_of_nodes_like_its_events(explain: Explain) -> None:
    stage = Stage("a b")
    stage.pod("one")
    stage.pod("two")
    stage.cycle()
    stage.gang("big", 2, phase="Inqueue")
    stage.gang("new", 2)

    _status, big = explain(stage, "job/big")
    _status, on_node = explain(stage, "job/big", "a", as_json=True)
    _status, new = explain(stage, "job/new")

    assert "needs 2 x 8 chips, 2 pods have no node" in big
    assert "not admitted" not in big
    assert "must end first" not in big
    assert "place 1 of 2 among the pending jobs of its queue" in big
    assert "not admitted" not in on_node
    assert "not admitted: running and admitted jobs fill the cluster" in new


def test_one_that_could_start_now_is_not_called_bound(explain: Explain) -> None:
    stage = Stage("a")
    stage.pod("new")

    status, out = explain(stage, "pod/new")

    assert status == 1
    assert "it is not bound yet: a scheduler would place it here now" in out


REFUSED = (
    "pod 'new' was not bound: 403 ValidatingAdmissionPolicy 'chips' denied request"
)


def observed(stage: Stage) -> Snapshot:
    """What the commands see of a stage."""
    cache = ReadOnlyCache(("ringleaf",))
    cache.handlers["nodes"].on_update(
        [msgspec.convert(each, NodeObject) for each in stage.nodes.values()]
    )
    cache.handlers["pods"].on_update(
        [msgspec.convert(each, Pod) for each in stage.pods.values()]
    )
    return Snapshot(cache, stage.now)


def unbound_stage() -> Stage:
    """The API server refuses to bind a pod that fits."""
    stage = Stage("a")
    stage.pod("new")
    said = {"type": "PodScheduled", "status": "False", "message": REFUSED}
    said["lastTransitionTime"] = "1970-01-01T00:15:16Z"
    stage.pods["default/new"]["status"]["conditions"] = [said]
    return stage


def test_a_pod_that_could_not_be_bound_is_pending_and_told_why_first(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    target = target_of("pod/new", "default")
    assert target is not None

    status = explain_in(observed(unbound_stage()), target, None, 3, as_json=False)
    out = capfd.readouterr().out
    explain_in(observed(unbound_stage()), target, None, 3, as_json=True)
    plain = json.loads(capfd.readouterr().out)

    head, first, *_others = out.splitlines()
    assert status == 1
    assert head == "pod 'default/new' (atlas-800t-a2, 1 x 8 chips): pending"
    assert first == (
        "  its last binding failed 84 s ago: 403 ValidatingAdmissionPolicy 'chips' "
        "denied request"
    )
    assert "running" not in out
    assert "pending since" in out
    assert "it is not bound yet: a scheduler would place it here now" in out
    assert plain["phase"] == "inqueue"
    assert plain["last-binding"] == {"at": 916, "why": first.partition("ago: ")[2]}


def test_a_job_that_is_not_bound_is_marked_where_another_waits_for_it(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    stage = unbound_stage()
    stage.pod("second")
    target = target_of("pod/second", "default")
    assert target is not None

    explain_in(observed(stage), target, None, 3, as_json=False)

    out = " ".join(capfd.readouterr().out.split())
    assert "once 'pod default/new' (not bound) has ended" in out
    assert "Would start if this job ended: pod default/new (not bound)" in out


def test_a_gang_that_lacks_pods_is_told_what_is_missing(explain: Explain) -> None:
    stage = Stage("a")
    stage.group("few", 3)
    stage.pod("few-0", 8, "few")

    status, out = explain(stage, "podgroup/few")

    assert status == 1
    assert out == (
        "job 'default/few': pending\n"
        "  pod group is not ready, 1 of 3 pods are there (minMember)\n"
    )


def test_a_volcano_job_is_found_by_its_own_name(explain: Explain) -> None:
    stage = Stage("a")
    uid = "52ae36c2-1232-4865-998a-44e65f3c2e9f"
    stage.gang(f"train-{uid}", 1)
    stage.cycle()

    status, out = explain(stage, "job/train")

    assert status == 0
    assert "job 'default/train' (" in out
    assert uid not in out


def test_of_a_job_of_many_pods_the_one_that_waits_is_explained(
    explain: Explain,
) -> None:
    stage = Stage("a")
    for i in range(3):
        stage.pod(f"b-{i}", 4, labels={"batch.kubernetes.io/job-name": "b"})
    stage.cycle()

    status, out = explain(stage, "job/b")

    assert status == 1
    assert out.startswith(
        "job 'default/b': 3 jobs, 1 of them pending: pod default/b-2\n"
    )


def test_a_node_is_told_as_the_job_finds_it(explain: Explain) -> None:
    stage = Stage("a b")
    stage.pod("p", 8)
    stage.pod("q", 8)
    stage.pod("r", 8)
    stage.cycle()

    assert explain(stage, "pod/p", "a")[0] == 0
    status, out = explain(stage, "pod/r", "a")

    assert status == 1
    assert out.startswith("node 'a' refuses pod 'default/r': too-few-chips")


def test_what_is_explained_is_also_there_as_values(explain: Explain) -> None:
    stage = Stage([node("a")])
    stage.pod("p", 8)
    stage.cycle()

    _status, out = explain(stage, "pod/p", as_json=True)

    found = json.loads(out)
    assert found["decision"]["placements"][0]["node"] == "a"
    assert found["bound"] is True
    assert found["phase"] == "running"
    assert found["queue"]["uses"][NPU] == 8


@pytest.mark.parametrize("what", ["pod/x", "job/x", "podgroup/x"])
def test_what_is_not_there_is_one_line(explain: Explain, what: str) -> None:
    stage = Stage("a")

    with pytest.raises(
        BadUse, match=r"there is no .* 'default/x' that is scheduled by"
    ):
        explain(stage, what)


def test_a_pod_of_another_scheduler_is_told_whose_it_is() -> None:
    cache = ReadOnlyCache(("ringleaf",))
    given = pod("other", 1)
    given["spec"]["schedulerName"] = "default-scheduler"
    cache.handlers["pods"].on_update([msgspec.convert(given, Pod)])
    target = target_of("pod/other", "default")
    assert target is not None

    with pytest.raises(BadUse, match="is 'default-scheduler', want ringleaf; hint: "):
        explain_in(Snapshot(cache, 0.0), target, None, 3, as_json=False)


def test_a_node_that_is_not_there_is_one_line(explain: Explain) -> None:
    stage = Stage("a")
    stage.pod("p")

    with pytest.raises(BadUse, match="--node is 'z', want a node of the cluster; hint"):
        explain(stage, "pod/p", "z")


# Names, and hints.


@pytest.mark.parametrize("asked_for", ["job/six", "podgroup/six", "default/six"])
def test_explain_takes_the_name_that_status_shows(
    asked_for: str, explain: Explain
) -> None:
    stage = Stage("a")
    stage.gang("six-52ae36c2-1232-4865-998a-44e65f3c2e9f", 2)

    _status, out = explain(stage, asked_for)

    assert "job 'default/six' (" in out


def test_who_must_end_is_called_as_people_know_it() -> None:
    stage = Stage("a")
    group = "podgroup-52ae36c2-1232-4865-998a-44e65f3c2e9f"
    stage.group(group, 1)
    stage.pod("old", 8, group)
    stage.cycle()

    (found,) = asked(stage, manifest("new", 8)).outcomes

    assert found.start is not None
    assert "once 'pod default/old' has ended" in found.start.words(found.ends or ())


def test_a_job_without_its_queue_is_told_which_queues_there_are() -> None:
    stage = Stage("a")
    stage.cycle()
    group, *pods = gang("lost", 2)
    group["spec"]["queue"] = "nosuch"

    (found,) = asked(stage, group, *pods).outcomes

    assert found.decision.hint == (  # type: ignore[union-attr]
        "create queue 'nosuch', or use one that exists: default"
    )


# Repairs.


def test_a_job_that_is_repaired_says_what_it_waits_for(
    capfd: pytest.CaptureFixture[str],
) -> None:
    stage = Stage("a b")
    wants = {"fault-scheduling": "grace", "pod-rescheduling": "on"}
    stage.gang("g", 2, labels=wants)
    stage.cycle()
    since = stage.now - 5
    record = Record(since, deleted=(1,), deleted_at=since, stuck_at=since)
    look, target = Snapshot(stage.cache, stage.now), target_of("job/g", "default")
    look.engine.handle_all([RepairKnown("default/g", record)], stage.now)
    assert target is not None

    explain_in(look, target, None, 3, as_json=False)
    words = " ".join(capfd.readouterr().out.split())
    assert "it is being repaired (faulty pods): pod 1 deleted;" in words
    assert "waits for a place for its pods, for 5 s; then all of it is deleted" in words
    explain_in(look, target, None, 3, as_json=True)
    assert json.loads(capfd.readouterr().out)["repair"]["stage"] == "stuck"


STRUCK = Fault("a", Cause.CHIP, "chip 3", seen=900.0)


@pytest.mark.parametrize("deleted", [(), (Deletion(990.0, "default/x", 2),)])
def test_the_brake_counts_what_was_deleted_also_where_is_asked_what_would_be(
    deleted: tuple[Deletion, ...],
) -> None:
    stage = Stage("a b")
    stage.gang("g", 2, labels={"fault-scheduling": "force"})
    stage.cycle()
    report(stage, "a", "Ascend910-3")

    look = recalled(stage.cache, FaultHistory((STRUCK,), deletions=deleted), stage.now)
    look.decide()

    assert look.engine.repairs["default/g"].rate_limited is bool(deleted)


def test_that_lives_cannot_be_read_is_told_with_all_that_is_not_known(
    capfd: pytest.CaptureFixture[str],
) -> None:
    recalled(Stage("a").cache, FaultHistory(trouble="status 500"), 1.0)

    told = " ".join(capfd.readouterr().err.split())
    assert (
        "quarantined nodes and jobs that wait for the eviction rate limit are not "
        "known: "
        "status 500"
    ) in told
