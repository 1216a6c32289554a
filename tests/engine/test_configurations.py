"""Configurations as Volcano's and the vendor's users have them run the engine."""

from pathlib import Path
from typing import Final

import pytest
import yaml

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT, read_conf
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import ConfChanged, JobArrived, JobGone, TimerFired
from ringleaf.framework.instruction import Report
from ringleaf.framework.job_state import Phase
from tests.engine.story import Story, at, job, node

FOLDER: Final = Path(__file__).parents[2] / "examples" / "conf"
LOADS: Final = (
    "busy.conf",
    "default.conf",
    "guide-chart.conf",
    "guide-configmap.yaml",
    "guide-default.conf",
    "vendor.yaml",
    "volcano-default.conf",
    "volcano-helm.conf",
)


def loaded(name: str) -> Conf:
    """The configuration of an example, also inside its ConfigMap."""
    for document in yaml.safe_load_all((FOLDER / name).read_text()):
        text = document.get("data", {}).get("volcano-scheduler.conf")
        if text is not None or "data" not in document:
            found = read_conf(yaml.safe_load(text) if text else document)
            assert isinstance(found, Conf), found
            return found
    raise AssertionError(f"no configuration in {name}")


@pytest.mark.parametrize("name", LOADS)
def test_a_configuration_places_jobs_and_looks_again_when_one_ends(name: str) -> None:
    story = Story("a b", conf=loaded(name))

    assert story.arrives(job("first", 8, 2)) == [
        "bind first: 0 on a 01234567, 1 on b 01234567"
    ]
    story.arrives(job("second", 8, 2))
    assert story.hears(JobGone("first"), now=9) == [
        "bind second: 0 on a 01234567, 1 on b 01234567"
    ]


def test_without_a_file_the_default_counts() -> None:
    assert loaded("default.conf") == DEFAULT


def test_d25_nothing_is_done_while_nothing_happens() -> None:
    story = Story("a")
    story.arrives(job("runs"), job("waits"))
    cluster = story.engine.view.cluster
    before = cluster.version, list(cluster.changes), story.engine.view.version

    assert story.hears(TimerFired(), now=1) == []
    after = cluster.version, list(cluster.changes), story.engine.view.version
    assert after == before


def test_d25_a_job_is_placed_by_the_very_event_that_makes_room() -> None:
    story = Story("a")
    story.arrives(job("runs"), job("waits"))

    assert story.hears(JobGone("runs"), now=0.001) == ["bind waits: 0 on a 01234567"]


@pytest.mark.parametrize("name", LOADS)
def test_a_promoted_standby_decides_like_an_engine_that_always_led(name: str) -> None:
    conf = loaded(name)
    warm, cold = Story("a b", conf=conf.quiet), Story("a b", conf=conf)
    held = at("a 01234567")

    assert warm.hears(JobArrived(job("runs"), held)) == []
    assert warm.arrives(job("fits"), job("big", 8, 2)) == []
    promoted = warm.hears(ConfChanged(conf))

    cold.hears(JobArrived(job("runs"), held))
    assert promoted == cold.arrives(job("fits"), job("big", 8, 2))
    assert warm.engine.explain("big") == cold.engine.explain("big")


def test_a_standby_admits_no_job() -> None:
    story = Story("a", conf=DEFAULT.quiet)
    story.arrives(job("waits"))

    assert story.engine.view.job_states["waits"].phase is Phase.PENDING


def test_a_standby_forgets_jobs_that_are_gone() -> None:
    story = Story("a", conf=DEFAULT.quiet)
    story.arrives(job("stays"))
    for i in range(500):
        story.arrives(job(f"job-{i}"))
        story.hears(JobGone(f"job-{i}"))

    ctx = story.engine.context
    assert list(ctx.reports.unreported) == ["stays"]
    since = ctx.pending.unadmitted.since._since  # noqa: SLF001 - only this shows what piles up
    assert sum(map(len, since.values())) < 100
    oldest = ctx.pending.unadmitted.since.oldest("default")
    assert oldest is not None
    assert oldest.job.name == "stays"


def test_a_job_that_can_never_run_gets_a_reason_when_the_standby_leads() -> None:
    engine = Engine([node("a")], conf=DEFAULT.quiet)

    assert engine.handle(JobArrived(job("never", 9)), 0) == []
    said = engine.handle(ConfChanged(DEFAULT), 1)

    assert [type(each) for each in said] == [Report]
    assert engine.handle(ConfChanged(DEFAULT), 2) == []
