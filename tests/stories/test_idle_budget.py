"""What reservations kept idle is known to the next scheduler, and shown."""

import json
import subprocess
import sys
from typing import Any, Final

from tests.deploy.helm import NAMESPACE
from tests.stories.stage import Stage, pod, podgroup

CONF: Final = """
actions: "allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
configurations:
- name: allocate
  arguments: {reservation-after-seconds: 2}
"""
KEPT: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps/ringleaf-idle-time"


def asked(stage: Stage) -> dict[str, Any]:
    """What ``ringleaf status`` says of reservations."""
    command = [sys.executable, "-m", "ringleaf", "status", "--json"]
    done = subprocess.run(  # noqa: S603 - our own command
        [*command, "--kubeconfig", str(stage.bed.kubeconfig)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found: dict[str, Any] = json.loads(done.stdout)["reservations"]
    return found


def test_what_reservations_kept_idle_survives_a_restart(stage: Stage) -> None:
    stage.schedule(CONF)
    stage.create(pod("one", 8))
    stage.wait_until_runs("one")
    everywhere = 12
    stage.create(podgroup("big", everywhere))
    for rank in range(everywhere):
        stage.create(pod(f"big-{rank}", 8, group="big"))
    stage.wait_for_condition("big-0", "has a reservation")

    stage.stop_scheduler()

    kept = json.loads(stage.bed.client.ask("GET", KEPT)["data"]["idle-time"])
    idle = sum(chip_seconds for _until, chip_seconds in kept["buckets"])
    assert idle > 0
    stage.schedule(CONF)
    stage.wait_for_condition("big-0", "has a reservation")
    before = asked(stage)
    assert before["chip-seconds"] >= idle
    stage.bed.client.ask("DELETE", stage.pod_path("one"))
    stage.wait_until_runs(*(f"big-{rank}" for rank in range(everywhere)))
    stage.stop_scheduler()

    ended = asked(stage)["ended"][-1]
    assert (ended["outcome"], ended["job"]) == ("started", f"{stage.namespace}/big")
    assert 0 < ended["chip-seconds"] <= asked(stage)["chip-seconds"]
