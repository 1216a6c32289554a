"""A canary beside the real Volcano: each binds its own, and no chip twice."""

from ringleaf.testbed.client import OK
from tests.shadow.conftest import Beside
from tests.soak.checker import mistakes, read
from tests.stories.stage import answer_of, notes_of, pod, scheduled, vcjob

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
LEADER = "ringleaf.io/leader"


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
    canary = beside.start("--canary-queue", "research", looks=False)
    for number in range(4):
        mine = vcjob(f"mine-{number}", 2, 8)
        mine["spec"] |= {"schedulerName": "ringleaf", "queue": "research"}
        beside.submit(mine)
        beside.submit(vcjob(f"theirs-{number}", 2, 8))
    beside.submit(pod("outside", 1, scheduler="ringleaf"))

    def done() -> bool:
        pods = beside.pods()
        bound = [name for name, each in pods.items() if each["spec"].get("nodeName")]
        judged = answer_of(canary, "shadow")[1]["jobs"]
        told = (
            scheduled(pods["outside"]).get("message", "") if "outside" in pods else ""
        )
        return len(bound) == 16 and judged == 4 and "not in the canary" in told

    beside.bed.wait_for(done, "16 pods of both", 90)
    pods = beside.pods()
    cluster = read(client)
    canary.stop()

    assert canary.status == 0
    for name, each in pods.items():
        ours = LEADER in notes_of(each)
        assert ours == name.startswith("mine-"), name
    assert not pods["outside"]["spec"].get("nodeName")
    assert mistakes(cluster) == []
    assert beside.actor.clashes == beside.actor.failed == []
