"""The configuration changes while pods are scheduled."""

import os
import threading
from pathlib import Path
from typing import Final

from tests.effort import examples
from tests.stories.stage import Stage, has_told, lines_of, node_of, pod, podgroup

GOOD: Final = """\
actions: "{actions}"
tiers:
- plugins:
  - {{name: priority}}
  - {{name: gang}}
  - {{name: affinity}}
- plugins:
  - {{name: predicates}}
  - {{name: proportion}}
  - name: binpack
    arguments: {{binpack.weight: {weight}}}
"""
BAD: Final = (
    'actions: "enqueue, alocate"\n',
    "actions: [\n",
    "tiers: [{plugins: [{name: gangg}]}]\n",
    "",
    "tiers: [{plugins: [{name: binpack, arguments: {binpack.weight: much}}]}]\n",
)
ACTIONS: Final = ("enqueue, allocate", "enqueue, allocate, backfill", "allocate")
CHANGES: Final = examples(50)
GANGS, PODS = examples(100), 10


def mounted(folder: Path, text: str, number: int) -> None:
    """Write a configuration as a mounted ConfigMap changes: by another link."""
    data = folder / f"..data-{number}"
    data.mkdir()
    (data / "volcano-scheduler.conf").write_text(text, encoding="utf-8")
    link = folder / "..next"
    link.symlink_to(data.name)
    link.rename(folder / "..data")


def text_of(number: int) -> tuple[str, bool]:
    """The configuration of a change, and whether it is a good one."""
    if number % 3 == 2:
        return BAD[number // 3 % len(BAD)], False
    actions = ACTIONS[number % len(ACTIONS)]
    return GOOD.format(actions=actions, weight=number + 1), True


def test_d22_a_reload_under_load_loses_no_pod_and_a_bad_one_changes_nothing(
    stage: Stage, tmp_path: Path
) -> None:
    stage.stop_scheduler()
    mounted(tmp_path, GOOD.format(actions=ACTIONS[0], weight=1), 0)
    file = tmp_path / "volcano-scheduler.conf"
    file.symlink_to(os.path.join("..data", file.name))  # noqa: PTH118 - as it is
    scheduler = stage.start_scheduler(None, "--scheduler-conf", str(file))

    def submit() -> None:
        for i in range(GANGS):
            stage.create(podgroup(f"gang-{i}", PODS))
            for j in range(PODS):
                name = f"gang-{i}-{j}"
                stage.create(pod(name, 0, group=f"gang-{i}", selector={}))

    crowd = threading.Thread(target=submit)
    crowd.start()
    told: list[tuple[str, bool]] = []
    for number in range(1, CHANGES + 1):
        text, is_good = text_of(number)
        mounted(tmp_path, text, number)
        told.append(("configuration" if is_good else "configuration refused", is_good))

        def heard(n: int = number) -> bool:
            events = [str(line["event"]) for line in lines_of(scheduler.log)]
            return n == sum(each.startswith("configuration") for each in events)

        stage.wait(heard, f"change {number} to be read")
    crowd.join()
    stage.wait(
        lambda: sum(bool(node_of(each)) for each in stage.pods()) == GANGS * PODS,
        "every pod to be bound",
    )

    lines = [
        line["event"]
        for line in lines_of(scheduler.log)
        if line["event"].startswith("configuration")
    ]
    assert lines == [event for event, _good in told]
    assert not has_told(scheduler, "a part of the scheduler ended")
    assert scheduler.is_running
    scheduler.stop(30)
    assert scheduler.status == 0, scheduler.last_words()
