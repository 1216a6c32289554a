"""A canary beside the real Volcano: each binds its own, and no chip twice."""

from ringleaf_testbed.client import OK
from tests.shadow.conftest import BINDING, Beside
from tests.soak.checker import mistakes, read
from tests.stories.stage import answer_of, notes_of, pod, scheduled, vcjob

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
LOOKS = ("get", "list", "watch")
LEADER = "ringleaf.io/leader"


def bound_pods(beside: Beside) -> list[str]:
    """The pods that are on a node."""
    return [
        name for name, each in beside.pods().items() if each["spec"].get("nodeName")
    ]


def test_a_canary_binds_its_queue_and_volcano_the_rest(beside: Beside) -> None:
    client = beside.bed.client
    status, _told = client.request(
        "POST",
        QUEUES,
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "research"},
            "spec": {"weight": 1},
        },
    )
    assert status in OK
    canary = beside.start("--canary-queue", "research", token=BINDING)
    for number in range(4):
        mine = vcjob(f"mine-{number}", 2, 8)
        mine["spec"] |= {"schedulerName": "ringleaf", "queue": "research"}
        beside.submit(mine)
    # Two schedulers that choose at the same moment may choose the same node.
    beside.wait(lambda: len(bound_pods(beside)) == 8, "8 pods of the canary")
    for number in range(4):
        beside.submit(vcjob(f"theirs-{number}", 2, 8))
    beside.submit(pod("outside", 1, scheduler="ringleaf"))
    left = vcjob("left", 2, 8)  # in the queue, and made before it was promoted
    left["spec"]["queue"] = "research"
    beside.submit(left)

    def done() -> bool:
        pods, bound = beside.pods(), bound_pods(beside)
        judged = answer_of(canary, "shadow")[1]["jobs"]
        told = (
            scheduled(pods["outside"]).get("message", "") if "outside" in pods else ""
        )
        run = beside.phase_of("left") == "Running"
        return len(bound) == 18 and judged == 5 and run and "not in the canary" in told

    beside.wait(done, "18 pods of both")
    pods = beside.pods()
    cluster = read(client)
    beside.stop(canary)
    phase = beside.phase_of("left")

    for name, each in pods.items():
        ours = LEADER in notes_of(each)
        assert ours == name.startswith("mine-"), name
    assert not pods["outside"]["spec"].get("nodeName")
    written = [e["objectRef"] for e in beside.asked("canary") if e["verb"] not in LOOKS]
    touched = {(ref["resource"], ref.get("name", "")) for ref in written}
    names = {name for kind, name in touched if kind in ("pods", "podgroups")}
    records = {name for kind, name in touched if kind == "configmaps"}
    assert records == {"ringleaf-repairs-moved"}
    assert {kind for kind, _name in touched} == {
        "configmaps",
        "events",
        "leases",
        "pods",
        "podgroups",
    }
    assert names
    theirs = [
        name for name in names if not name.startswith(("mine-", "left-", "outside"))
    ]
    assert theirs == []
    assert phase == "Running"
    assert mistakes(cluster) == []
    assert beside.actor.clashes == beside.actor.failed == []
