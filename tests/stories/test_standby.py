"""Who leads, as metrics tell it."""

from urllib.request import urlopen

from ringleaf_testbed.process import Child
from tests.stories.stage import GRACE_S, Stage, has_told, lines_of


def value_of(scheduler: Child, name: str) -> float:
    """The value of a metric without labels, as a scheduler serves it."""
    (started,) = [
        line for line in lines_of(scheduler.log) if line["event"] == "started"
    ]
    with urlopen(f"http://127.0.0.1:{started['health']}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    (found,) = [line for line in lines if line.startswith(f"{name} ")]
    return float(found.split()[1])


def test_one_who_stands_by_says_so_until_it_leads(stage: Stage) -> None:
    stage.stop_scheduler()
    first = stage.start_scheduler(None)
    stage.wait(lambda: has_told(first, "leads"), "the first to lead")
    second = stage.start_scheduler(None)

    both = [value_of(each, "ringleaf_leader") for each in (first, second)]
    first.stop(GRACE_S)
    stage.wait(lambda: value_of(second, "ringleaf_leader"), "the second to lead")
    second.stop(GRACE_S)

    assert both == [1, 0]
