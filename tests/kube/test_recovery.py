"""What jobs want done about faults, by their labels, and what is wrong with pods."""

from typing import Any

import msgspec
import pytest

from ringleaf.config.conf import Conf
from ringleaf.engine.event import (
    JobArrived,
    JobGone,
    NodesChanged,
    PodFaultsReported,
    PodsGone,
)
from ringleaf.framework.instruction import Delete
from ringleaf.kube import recovery
from ringleaf.kube.objects import Pod, PodGroup
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.recovery import recovery_of
from ringleaf.kube.reports import check_code
from ringleaf.model.fault import (
    NO_RECOVERY,
    Cause,
    Down,
    FaultMode,
    PodFault,
    Recovery,
    SubHealth,
)
from ringleaf.model.placement import JobType
from tests.engine.story import PLAIN, conf
from tests.kube.stage import NPU, Plain, Stage, node, pod

RETRIES = {"fault-scheduling": "force", "fault-retry-times": "3"}


def record(number: int = 0, **changes: Any) -> PodState:  # noqa: ANN401
    plain = pod(f"p-{number}", **changes)
    read = msgspec.json.decode(msgspec.json.encode(plain), type=Pod)
    found = PodState(read, frozenset({"ringleaf"}))
    found.number = number
    return found


def said(labels: dict[str, str], annotations: dict[str, str] | None = None) -> Recovery:
    """What pods with these labels and annotations want."""
    pods = [record(n, labels=labels, annotations=annotations or {}) for n in (0, 1)]
    return recovery_of(pods[0], pods, None)


@pytest.mark.parametrize("word", list(FaultMode))
def test_the_label_says_who_deletes_pods_and_how(word: FaultMode) -> None:
    assert said({"fault-scheduling": word.value}) == Recovery(mode=word)


@pytest.mark.parametrize("word", ["grace|force", "Force", "", "true"])
def test_what_is_no_such_word_means_that_nobody_does(word: str) -> None:
    assert said({"fault-scheduling": word}).mode is FaultMode.OFF


def test_without_labels_nothing_is_done() -> None:
    assert said({}) is NO_RECOVERY
    assert NO_RECOVERY.mode is FaultMode.OFF


@pytest.mark.parametrize(
    ("text", "times"), [("3", 3), ("0", 0), ("-1", 0), ("often", 0), ("", 0), ("٣", 0)]
)
def test_a_bad_number_of_retries_is_none(text: str, times: int) -> None:
    assert said({"fault-retry-times": text}).retries == times


@pytest.mark.parametrize(
    ("labels", "path", "pods_only", "escalates", "master"),
    [
        ({}, "", False, True, 0),
        ({"pod-rescheduling": "on"}, "", True, True, 0),
        ({"pod-rescheduling": "off"}, "", False, True, 0),
        ({"process-recover-enable": "on"}, "", True, True, 0),
        ({"process-recover-enable": "pause"}, "", False, True, 0),
        ({}, "pod", True, False, None),
        ({"pod-rescheduling": "on"}, "pod", True, False, None),
        ({"pod-rescheduling": "on"}, "pod,job", True, True, 0),
        ({}, "pod,job", False, True, 0),
        ({"pod-rescheduling": "on"}, "job", False, True, 0),
    ],
)
def test_how_much_is_deleted(
    labels: dict[str, str],
    path: str,
    pods_only: bool,  # noqa: FBT001 - a table
    escalates: bool,  # noqa: FBT001
    master: int | None,
) -> None:
    annotations = {"huawei.com/recover_policy_path": path} if path else {}
    found = said({"fault-scheduling": "force"} | labels, annotations)

    assert (found.pods_only, found.escalates) == (pods_only, escalates)
    assert found.master == master
    assert found.process is (labels.get("process-recover-enable") == "on")


@pytest.mark.parametrize(
    "labels",
    [
        {"ome.io/inferenceservice": "llm"},
        {"app": "mindie-ms-controller"},
        {"app": "mindie-ms-coordinator"},
    ],
)
def test_servers_are_replaced_one_by_one(labels: dict[str, str]) -> None:
    found = said({"fault-scheduling": "force"} | labels, {})

    assert (found.pods_only, found.escalates) == (True, False)


def test_other_apps_are_not() -> None:
    assert not said({"fault-scheduling": "force", "app": "mindie-ms-server"}).pods_only


@pytest.mark.parametrize("word", list(SubHealth))
def test_the_strategy_for_what_works_but_not_well(word: SubHealth) -> None:
    assert said({"subHealthyStrategy": word.value}).sub_health is word
    assert said({"subHealthyStrategy": "hope"}).sub_health is SubHealth.IGNORE


def test_where_others_see_to_it_nothing_is_deleted() -> None:
    force = {"fault-scheduling": "force"}

    assert said(force, {"ProcessRecoverStrategy": "retry"}).mode is FaultMode.OFF
    assert said(force | {"elastic-scheduling": "on"}).mode is FaultMode.OFF
    assert said(force | {"elastic-scheduling": "off"}).mode is FaultMode.FORCE


def test_pods_that_disagree_are_left_alone_unless_their_podgroup_decides() -> None:
    pods = [
        record(n, labels={"fault-scheduling": word})
        for n, word in enumerate(("grace", "force"))
    ]
    group = msgspec.convert(
        {"metadata": {"labels": {"fault-scheduling": "grace"}}}, PodGroup
    )

    assert recovery_of(pods[0], pods, None).mode is FaultMode.OFF
    assert recovery_of(pods[0], pods, group).mode is FaultMode.GRACE


def test_the_first_pod_is_the_master_unless_it_is_a_worker() -> None:
    kind = "training.kubeflow.org/replica-type"
    force = {"fault-scheduling": "force"}

    assert said(force | {kind: "master"}).master == 0
    assert said(force | {kind: "worker"}).master is None


# What is told of what means nothing.


def complaints(stage: Stage) -> list[str]:
    """What is told of objects, once and for all that is wrong now."""
    stage.cycle()
    found = [
        f"{each.kind} {each.name}: {each.message}"
        for each in stage.cache.problems.unreported
    ]
    stage.cache.problems.unreported.clear()
    return found


@pytest.mark.parametrize(
    ("label", "text", "words"),
    [
        (
            "fault-scheduling",
            "Grace",
            (
                "label fault-scheduling is 'Grace', want off, grace, force, "
                "external-grace or external-force; its faulty pods are not "
                "replaced; hint: did you mean 'grace'?"
            ),
        ),
        (
            "fault-retry-times",
            "-3",
            (
                "label fault-retry-times is '-3', want a whole number; "
                "failed pods are not restarted"
            ),
        ),
        (
            "pod-rescheduling",
            "true",
            "label pod-rescheduling is 'true', want on or off; it counts as 'off'",
        ),
        (
            "process-recover-enable",
            "ON",
            (
                "label process-recover-enable is 'ON', want on, pause or off; "
                "it counts as 'off'; hint: did you mean 'on'?"
            ),
        ),
        (
            "subHealthyStrategy",
            "gracefulExit",
            (
                "label subHealthyStrategy is 'gracefulExit', want ignore, graceExit, "
                "forceExit or hotSwitch; it counts as 'ignore'; "
                "hint: did you mean 'graceExit'?"
            ),
        ),
    ],
)
def test_a_label_that_means_nothing_is_told_once(
    label: str, text: str, words: str
) -> None:
    stage = Stage("a b")
    stage.gang("g", 2, labels={label: text})

    assert complaints(stage) == [f"PodGroup g: PodGroup 'default/g': {words}"]
    assert complaints(stage) == []
    assert stage.cache.problems.by_kind() == {"PodGroup": 1}
    assert len(stage.bound) == 2


def test_an_annotation_that_means_nothing_is_told() -> None:
    stage = Stage("a b")
    stage.group("g", 1, annotations={"huawei.com/recover_policy_path": "job,pod"})

    (line,) = complaints(stage)

    assert "annotation huawei.com/recover_policy_path is 'job,pod', want pod" in line
    assert line.endswith("want pod, pod,job or job; it is ignored")


def test_what_was_mended_is_told_again_when_it_is_bad_again() -> None:
    stage = Stage("a b")
    lines = []
    for word in ("Force", "force", "Force"):
        stage.group("g", 1, labels={"fault-scheduling": word})
        lines.append(len(complaints(stage)))

    assert lines == [1, 0, 1]
    stage.drop_group("g")
    stage.cycle()
    assert stage.cache.problems.known == []


def test_labels_of_pods_are_told_of_their_podgroup_and_once_for_all() -> None:
    stage = Stage("a b")
    stage.group("g", 2)
    for n in range(2):
        stage.pod(f"g-{n}", 8, "g", labels={"subHealthyStrategy": "hope"})

    (line,) = complaints(stage)

    assert line.startswith("PodGroup g: PodGroup 'default/g': label subHealthyStrategy")
    assert "of its pods is 'hope', want ignore" in line
    for n in range(2):
        stage.drop_pod(f"g-{n}")
    assert complaints(stage) == []
    stage.pod("g-2", 8, "g", labels={"subHealthyStrategy": "hope"})
    stage.pod("g-3", 8, "g", labels={"subHealthyStrategy": "hope"})
    assert complaints(stage) == []


@pytest.mark.parametrize(
    ("words", "found"),
    [(("grace", "force"), "'force' and 'grace'"), ((None, "force"), "'' and 'force'")],
)
def test_pods_that_disagree_are_told(words: tuple[str | None, str], found: str) -> None:
    stage = Stage("a b")
    stage.group("g", 2)
    for n, word in enumerate(words):
        labels = {} if word is None else {"fault-scheduling": word}
        stage.pod(f"g-{n}", 8, "g", labels=labels | {"pod-rescheduling": "on"})

    (line,) = complaints(stage)

    assert f"label fault-scheduling of its pods is {found}, want one for all" in line


def test_pods_that_disagree_are_told_also_where_the_first_says_nothing() -> None:
    stage = Stage("a b")
    stage.group("g", 2, labels={"pod-rescheduling": "on"})
    stage.pod("g-0", 8, "g")
    stage.pod("g-1", 8, "g", labels={"fault-scheduling": "force"})

    (line,) = complaints(stage)

    assert "label fault-scheduling of its pods is '' and 'force', want one" in line


def test_of_a_pod_alone_the_pod_is_told_beside_what_else_is_wrong_with_it() -> None:
    stage = Stage("a b")
    stage.pod("p", 8, labels={"fault-scheduling": "of"})

    (line,) = complaints(stage)

    assert line.startswith("Pod p: Pod 'default/p': label fault-scheduling is 'of'")
    assert line.endswith("hint: did you mean 'off'?")
    plain = changed(stage, "p")
    for key in (NPU, "huawei.com/AscendReal"):
        plain["metadata"]["annotations"][key] = "nonsense"
    stage.put_pod(plain)
    stage.cycle()
    assert len(stage.cache.problems.known) == 2
    plain["metadata"]["labels"] = {}
    stage.put_pod(plain)
    stage.cycle()
    (left,) = stage.cache.problems.known
    assert "its annotation says 'nonsense'" in left[2]


def test_words_that_are_known_are_told_to_nobody() -> None:
    stage = Stage("a b c d e f")
    for key, words in recovery.WORDS.items():
        for n, word in enumerate(words):
            name = f"{key.rpartition('/')[2].replace('_', '-').lower()}-{n}"
            kind = "annotations" if "/" in key else "labels"
            stage.group(name, 1, **{kind: {key: word}})
    stage.group("retries", 1, labels={"fault-retry-times": "3"})
    stage.group("others", 1, labels={"elastic-scheduling": "perhaps"})

    assert complaints(stage) == []


# What the engine hears.


def gang(stage: Stage, labels: dict[str, str], pods: int = 2) -> None:
    """A gang that runs."""
    stage.gang("g", pods, labels=labels)
    stage.cycle()
    assert len(stage.bound) == pods


def ailing(stage: Stage) -> list[tuple[PodFault, ...]]:
    """What is told to be wrong with pods, in the order in which it is."""
    events = stage.cache.events(stage.now)
    return [each.pod_faults for each in events if isinstance(each, PodFaultsReported)]


def changed(stage: Stage, name: str) -> Plain:
    return stage.pods[f"default/{name}"]


def test_a_job_says_what_it_wants_done_also_while_it_has_no_pods() -> None:
    stage = Stage("a b")
    stage.group("g", 2, labels=RETRIES)
    (first,) = (e for e in stage.cache.events(0.0) if isinstance(e, JobArrived))
    stage.pod("g-0", 8, "g")
    stage.pod("g-1", 8, "g")
    (second,) = (e for e in stage.cache.events(0.0) if isinstance(e, JobArrived))

    assert first.job.podless
    assert first.job.recovery == second.job.recovery
    assert second.job.recovery == Recovery(mode=FaultMode.FORCE, retries=3)


def test_pods_alone_that_differ_in_their_labels_alone_are_told_apart() -> None:
    stage = Stage("a b")
    stage.pod("p", 1)
    stage.pod("q", 1, labels={"fault-scheduling": "force"})
    events = stage.cache.events(0.0)
    modes = [e.job.recovery.mode for e in events if isinstance(e, JobArrived)]

    assert modes == [FaultMode.OFF, FaultMode.FORCE]


def test_what_a_running_pod_begins_to_say_counts() -> None:
    stage = Stage("a b")
    stage.pod("p", 8)
    stage.cycle()
    plain = changed(stage, "p")
    plain["metadata"]["labels"] = {"fault-scheduling": "force"}
    stage.put_pod(plain)
    (again,) = (e for e in stage.cache.events(0.0) if isinstance(e, JobArrived))

    assert again.job.recovery.mode is FaultMode.FORCE
    assert again.placements


def test_a_pod_that_failed_is_told_of_before_it_is_gone() -> None:
    stage = Stage("a b")
    gang(stage, RETRIES)
    stage.ends("g-1", "Failed")

    kinds = [type(e) for e in stage.cache.events(stage.now)]

    assert kinds.index(PodFaultsReported) < kinds.index(PodsGone)


def test_a_pod_that_failed_ails_until_another_has_its_place() -> None:
    stage = Stage("a b")
    gang(stage, RETRIES)
    where = changed(stage, "g-1")["spec"]["nodeName"]
    stage.ends("g-1", "Failed")

    assert ailing(stage) == [(PodFault(1, Cause.POD, where),)]
    assert ailing(stage) == []
    stage.drop_pod("g-1")
    stage.pod("g-1", 8, "g")
    assert ailing(stage) == [()]


def test_a_pod_that_failed_is_a_fault_only_where_it_may_be_tried_again() -> None:
    stage = Stage("a b")
    gang(stage, {"fault-scheduling": "force"})
    stage.ends("g-1", "Failed")

    assert ailing(stage) == []


@pytest.mark.parametrize(("code", "ails"), [(137, True), (0, False)])
def test_a_container_that_ended_badly_makes_its_pod_ail(
    code: int,
    ails: bool,  # noqa: FBT001 - a table
) -> None:
    stage = Stage("a b")
    gang(stage, RETRIES)
    plain = changed(stage, "g-0")
    ended = {"lastState": {"terminated": {"exitCode": code}}}
    plain["status"] |= {"phase": "Running", "containerStatuses": [{}, ended]}
    stage.put_pod(plain)

    where = plain["spec"]["nodeName"]
    assert ailing(stage) == ([(PodFault(0, Cause.POD, where),)] if ails else [])


def test_a_pod_that_somebody_found_faulty_ails_until_it_is_found_well() -> None:
    stage = Stage("a b")
    gang(stage, {"fault-scheduling": "force"})
    plain = changed(stage, "g-0")
    plain["metadata"]["labels"]["fault-type"] = "Separate"
    stage.put_pod(plain)
    where = plain["spec"]["nodeName"]

    assert ailing(stage) == [(PodFault(0, Cause.RELATION, where),)]
    plain["metadata"]["labels"]["fault-type"] = "software"
    stage.put_pod(plain)
    assert ailing(stage) == [()]


@pytest.mark.parametrize(
    ("strategy", "operation", "ails"),
    [
        ("ignore", "", False),
        ("graceExit", "", True),
        ("forceExit", "", True),
        ("hotSwitch", "", False),
        ("hotSwitch", "create", False),
        ("hotSwitch", "delete", True),
    ],
)
def test_a_pod_that_is_not_quite_well(
    strategy: str,
    operation: str,
    ails: bool,  # noqa: FBT001 - a table
) -> None:
    stage = Stage("a b")
    gang(stage, {"fault-scheduling": "force", "subHealthyStrategy": strategy})
    plain = changed(stage, "g-0")
    plain["metadata"]["labels"]["fault-type"] = "SubHealth"
    plain["metadata"]["annotations"]["needVolcanoOpe"] = operation
    stage.put_pod(plain)

    where = plain["spec"]["nodeName"]
    found = [(PodFault(0, Cause.SUB_HEALTH, where),)] if ails else []
    assert ailing(stage) == found


def test_after_a_restart_the_same_pods_ail() -> None:
    stage = Stage("a b")
    gang(stage, RETRIES)
    stage.ends("g-1", "Failed")
    before = ailing(stage)

    stage.restart()

    events = stage.cache.events(stage.now)
    kinds = [type(e) for e in events if isinstance(e, JobArrived | PodFaultsReported)]
    assert kinds == [JobArrived, PodFaultsReported]
    assert [e.pod_faults for e in events if isinstance(e, PodFaultsReported)] == before
    again = stage.cache.everything(stage.now)
    assert [e.pod_faults for e in again if isinstance(e, PodFaultsReported)] == before


@pytest.mark.parametrize(
    ("phase", "ends", "returns"),
    [
        ("Running", "Failed", True),
        ("Running", "Succeeded", False),
        ("Running", "", True),
        ("Completed", "", False),
    ],
)
def test_a_job_whose_podgroup_stays_returns_unless_it_has_ended(
    phase: str,
    ends: str,
    returns: bool,  # noqa: FBT001 - a table
) -> None:
    stage = Stage("a b")
    gang(stage, {"fault-scheduling": "force"})
    plain = stage.groups["g"]
    plain["status"]["phase"] = phase
    stage.put_group(plain)
    for name in ("g-0", "g-1"):
        if ends:
            stage.ends(name, ends)
        else:
            stage.drop_pod(name)

    gone = [e for e in stage.cache.events(stage.now) if isinstance(e, JobGone)]

    assert [(each.job, each.returns) for each in gone] == [("default/g", returns)]


def test_a_job_whose_podgroup_is_gone_does_not_return() -> None:
    stage = Stage("a b")
    gang(stage, RETRIES)
    stage.drop_group("g")
    for name in ("g-0", "g-1"):
        stage.drop_pod(name)

    gone = [e for e in stage.cache.events(stage.now) if isinstance(e, JobGone)]

    assert [(each.job, each.returns) for each in gone] == [("default/g", False)]


@pytest.mark.parametrize("ends", ["podgroup", "phase"])
def test_a_job_that_was_expected_again_and_never_returns_is_forgotten(
    ends: str,
) -> None:
    stage = Stage("a b")
    gang(stage, RETRIES)
    plain = stage.groups["g"]
    plain["status"]["phase"] = "Running"
    stage.put_group(plain)
    for name in ("g-0", "g-1"):
        stage.drop_pod(name)
    stage.cycle()
    assert JobGone("default/g", returns=True, ends_run=False) in stage.heard

    if ends == "podgroup":
        stage.drop_group("g")
    else:
        plain["status"]["phase"] = "Completed"
        stage.put_group(plain)
    stage.cycle()

    assert stage.heard == [JobGone("default/g", ends_run=False)]
    stage.cycle(1)
    assert stage.heard == []


# Nodes.


def report(stage: Stage, name: str, code: str = "", **listed: str) -> None:
    """A device plugin reports on its node; with a wrong check code if one is given."""
    devices = {f"{NPU}-{kind}": chips for kind, chips in listed.items()}
    inner = {"DeviceList": devices, "UpdateTime": 1}
    cfg = {"DeviceInfo": inner, "CheckCode": code or check_code(inner)}
    text = msgspec.json.encode(cfg).decode()
    stage.config_map(f"mindx-dl-deviceinfo-{name}", {"DeviceInfoCfg": text})


def told(stage: Stage) -> dict[str, tuple[int, int, int, Down | None]]:
    """Of nodes that changed: faulty, unhealthy, weak chips; why they are down."""
    events = stage.cache.events(stage.now)
    nodes = [n for e in events if isinstance(e, NodesChanged) for n in e.nodes]
    return {n.name: (n.faulty, n.unhealthy, n.weak, n.down) for n in nodes}


def test_chips_that_are_missing_or_recovering_make_no_pod_faulty() -> None:
    stage = Stage([node("a", chips=7)])
    report(stage, "a", Unhealthy="Ascend910-1", Recovering="Ascend910-2")

    assert told(stage) == {"a": (0b1000_0110, 0b10, 0, None)}


def test_chips_that_work_but_not_well() -> None:
    stage = Stage("a")
    fault = {"npu_name": "Ascend910-3", "fault_handling": "SubHealthFault"}
    report(stage, "a", Fault=msgspec.json.encode([fault]).decode())

    assert told(stage) == {"a": (0, 0, 0b1000, None)}
    assert stage.cache.nodes["a"].node.sub_healthy
    assert stage.cache.nodes["a"].faults == (fault,)


@pytest.mark.parametrize(
    ("name", "entry", "down"),
    [
        ("cluster-info-node-cm", "mindx-dl-nodeinfo-a", Down.DAEMON),
        ("cluster-info-switch-0", "mindx-dl-switchinfo-a", Down.SWITCH),
    ],
)
def test_why_a_node_is_down(name: str, entry: str, down: Down) -> None:
    stage = Stage("a")
    stage.cache.events(0.0)
    text = msgspec.json.encode({entry: {"NodeStatus": "UnHealthy"}}).decode()
    stage.config_map(name, {name: text})

    assert told(stage)["a"] == (0, 0, 0, down)
    assert not stage.cache.nodes["a"].node.ready
    stage.config_map(name, {name: ""})
    assert told(stage)["a"] == (0, 0, 0, None)


def test_a_node_that_is_not_ready_is_down() -> None:
    stage = Stage([node("a", ready="Unknown")])

    assert told(stage)["a"] == (0, 0, 0, Down.NOT_READY)


def test_d23_a_damaged_report_makes_no_chip_faulty_and_heals_none() -> None:
    stage = Stage("a b")
    report(stage, "a", Unhealthy="Ascend910-1")
    stage.cache.events(0.0)

    report(stage, "a", code="0" * 64)
    report(stage, "b", code="0" * 64, Unhealthy="Ascend910-1")

    assert told(stage) == {}
    assert stage.cache.nodes["a"].node.unhealthy == 0b10
    assert stage.cache.nodes["b"].node.unhealthy == 0
    assert stage.cache.reports.mismatches == 2


# What the configuration says for jobs that say nothing (decisions D38 and D39).


GRACE = ["delete at once default/g: 0", "delete default/g: 1"]
"""The node of the first pod is lost, and ends nothing."""


def defaults(**params: str) -> Conf:
    found = {key.replace("_", "-"): value for key, value in params.items()}
    given = {"fault-brake-percent": 100, **found}
    return conf("enqueue, allocate", PLAIN, **{"init-params": given})


def owned(stage: Stage, name: str) -> None:
    """A controller made the pod, and makes it again."""
    plain = stage.pods[f"default/{name}"]
    owner = {"kind": "Job", "name": "j", "uid": "u", "controller": True}
    plain["metadata"]["ownerReferences"] = [owner]
    stage.drop_pod(name)
    stage.put_pod(plain)


def submitted(conf: Conf, labels: dict[str, str], *, controlled: bool = True) -> Stage:
    """A gang of two pods with *labels*, bound to nodes a and b."""
    stage = Stage("a b c", conf)
    stage.put_group(stage.group("g", 2))
    for i in range(2):
        stage.pod(f"g-{i}", 8, "g", labels=labels)
        if controlled:
            owned(stage, f"g-{i}")
    assert stage.cycle() == ["bind default/g: g-0 on a 01234567, g-1 on b 01234567"]
    return stage


@pytest.mark.parametrize(
    ("default", "labels", "controlled", "said"),
    [
        ("off", {}, True, []),
        ("grace", {}, True, GRACE),
        ("force", {}, True, ["delete at once default/g: 0,1"]),
        ("force", {"fault-scheduling": "grace"}, True, GRACE),
        ("force", {"fault-scheduling": "off"}, True, []),
        ("force", {"fault-scheduling": "fast"}, True, []),
        ("force", {"elastic-scheduling": "on"}, True, []),
        ("force", {}, False, []),
    ],
)
def test_d39_what_counts_for_jobs_without_the_label(
    default: str, labels: dict[str, str], said: list[str], *, controlled: bool
) -> None:
    stage = submitted(
        defaults(default_fault_scheduling=default), labels, controlled=controlled
    )

    stage.put_node(node("a", ready="False"))
    stage.cycle(1)

    words = [each for each in stage.said if isinstance(each, Delete)]
    told = [
        f"delete{' at once' * each.force} {each.job}: "
        f"{','.join(map(str, each.replicas))}"
        for each in words
    ]
    assert told == said


def test_d39_a_configuration_that_is_read_again_counts_for_running_jobs() -> None:
    stage = submitted(conf(), {})
    lone = stage.pod("lone", 8)
    stage.cycle()
    stage.put_node(node("a", ready="False"))
    assert stage.cycle(1) == []

    stage.conf = defaults(default_fault_scheduling="grace")
    stage.cache.reconfigure(stage.conf)

    assert stage.cycle(1)[:2] == GRACE
    assert lone["metadata"].get("ownerReferences") is None
    assert stage.engine.view.job_states["pod default/lone"].job.assumed == ()


def test_d39_a_new_leader_finishes_what_the_default_began() -> None:
    """The record says which pods were about to go; no label is needed for that."""
    stage = submitted(defaults(default_fault_scheduling="grace"), {})
    stage.put_node(node("a", ready="False"))
    stage.cycle(1)

    stage.restart()
    stage.cycle(1)

    assert stage.cache.gangs["default/g"].repair.deleting


@pytest.mark.parametrize(
    ("labels", "schema"),
    [
        ({}, "normal-schema"),
        ({"tor-affinity": "null"}, None),
        ({"tor-affinity": "large-model-schema"}, "large-model-schema"),
    ],
)
def test_d38_what_gangs_without_the_label_count_as(
    labels: dict[str, str], schema: str | None
) -> None:
    stage = Stage("a b", defaults(default_tor_affinity="normal-schema"))
    stage.put_group(stage.group("g", 2))
    for i in range(2):
        stage.pod(f"g-{i}", 8, "g", labels=labels)

    stage.cycle()

    job = stage.engine.view.job_states["default/g"].job
    assert job.tor_affinity == schema
    assert job.assumed == (("tor-affinity",) if not labels else ())


def test_d38_a_pod_of_its_own_and_one_of_another_scheduler_have_no_default() -> None:
    stage = Stage("a b", defaults(default_tor_affinity="normal-schema"))
    stage.pod("mine", 8)
    stage.pod("other", 8, scheduler="else", spec={"nodeName": "b"})

    stage.cycle()

    jobs = [each.job for each in stage.engine.view.job_states.values()]
    assert len(jobs) == 2
    assert {job.tor_affinity for job in jobs} == {None}


# Pods that have ended well before the others were bound


A3 = {"accelerator-type": "module-a3-16-super-pod"}


def blocks_of_two(pods: int = 4) -> Stage:
    """Two SuperPoDs of three nodes, and a gang in blocks of two nodes."""
    stage = Stage([])
    for i, name in enumerate("abcdef"):
        plain = node(name, chips=16, labels=A3)
        plain["metadata"]["annotations"]["superPodID"] = str(i // 3)
        stage.put_node(plain)
    stage.group("g", pods, annotations={"sp-block": "32"})
    for i in range(pods):
        stage.pod(f"g-{i}", 16, "g", spec={"nodeSelector": A3})
    return stage


def crash_after(stage: Stage, *bound: str) -> None:
    """Only these pods are bound when another scheduler begins."""
    stage.cycle(outcome=lambda pod, _place: "written" if pod.name in bound else "sent")
    for name in bound:
        assert stage.pods[f"default/{name}"]["spec"]["nodeName"]


def superpod(stage: Stage, name: str) -> int:
    return "abcdef".index(place_of(stage, name)) // 3


def place_of(stage: Stage, name: str) -> str:
    return str(stage.pods[f"default/{name}"]["spec"]["nodeName"])


@pytest.mark.parametrize(
    ("bound", "ended"),
    [
        (("g-0",), ("g-0",)),
        (("g-2",), ("g-2",)),
        (("g-0", "g-1"), ("g-0",)),
        (("g-0", "g-2"), ("g-2",)),
        (("g-0", "g-2"), ("g-0", "g-2")),
        (("g-0", "g-1", "g-2"), ("g-0", "g-1", "g-2")),
        (("g-0", "g-1", "g-2"), ("g-1",)),
    ],
)
def test_a_half_bound_gang_with_blocks_is_completed_when_some_have_ended_well(
    bound: tuple[str, ...], ended: tuple[str, ...]
) -> None:
    stage = blocks_of_two()
    crash_after(stage, *bound)
    for name in ended:
        stage.ends(name)
    stage.restart()

    stage.cycle()

    assert stage.reason("default/g") == ""
    written = [
        stage.pods[f"default/g-{i}"]["metadata"]["annotations"] for i in range(4)
    ]
    assert [each["super-pod-rank"] for each in written] == ["0", "0", "1", "1"]
    assert [each["hccl/rankIndex"] for each in written] == ["0", "1", "2", "3"]
    for one, other in (("g-0", "g-1"), ("g-2", "g-3")):
        if not {one, other} & {*ended}:
            assert superpod(stage, one) == superpod(stage, other)


def test_a_pod_is_replaced_in_its_block_when_others_have_ended_well() -> None:
    stage = blocks_of_two()
    stage.cycle()
    home = superpod(stage, "g-2")
    for name in ("g-0", "g-3"):
        stage.ends(name)
    stage.cycle()
    stage.drop_pod("g-2")
    stage.cycle()
    plain = stage.pod("g-2", 16, "g", spec={"nodeSelector": A3})

    stage.cycle()

    written = plain["metadata"]["annotations"]
    assert (written["super-pod-rank"], written["hccl/rankIndex"]) == ("1", "2")
    assert superpod(stage, "g-2") == home


def test_a_foundation_job_stays_one_when_a_pod_has_ended_well() -> None:
    stage = Stage("a b c d")
    stage.gang("g", 4, labels={"tor-affinity": "large-model-schema"})
    stage.ends("g-0")
    stage.cycle()

    told = stage.cache.gangs["default/g"].reported.job
    assert told is not None
    assert (told.replicas, told.job_type) == (3, JobType.FOUNDATION)


def test_a_pod_of_one_after_the_other_is_legal_whatever_ended_before() -> None:
    stage = Stage([node("a", labels={"accelerator": "huawei-Ascend910"})])
    stage.group("g", 1)
    selector = {"nodeSelector": {"accelerator": "huawei-Ascend910"}}
    for i in range(3):
        stage.pod(f"g-{i}", 4, "g", spec=selector)
        assert stage.cycle() == [f"bind default/g: g-{i} on a 0123"]
        stage.ends(f"g-{i}")
        stage.cycle()
