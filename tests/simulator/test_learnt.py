"""Running times that are learnt, in runs and in scenarios."""

from collections.abc import Iterable, Sequence
from math import inf

import pytest
from msgspec import json
from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event, JobArrived
from ringleaf.framework.instruction import Delete, Evict, Instruction
from ringleaf.framework.run_times import RunTimes
from ringleaf.model.job import Job
from ringleaf.model.run_time import NO_ORIGIN, Origin, RunTime, Similarity
from ringleaf.simulator.clock import play
from ringleaf.simulator.encode import job as job_entry
from ringleaf.simulator.events import FORMS
from ringleaf.simulator.scenario import load
from ringleaf.simulator.sites import site
from ringleaf.simulator.trial import Trial
from ringleaf.simulator.workloads import workload


class Recorded(Engine):
    """An engine that keeps what it said."""

    def __init__(self, conf: Conf) -> None:
        on = site("leaf-spine-512:nodes=16")
        super().__init__(on.nodes, on.leaves, on.queues, conf)
        self.said: list[Sequence[Instruction]] = []

    def handle_all(
        self, events: Iterable[Event], now: float, most: float = inf
    ) -> list[Instruction]:
        said = super().handle_all(events, now, most)
        self.said.append([*said])
        return said


def learning(*, on: bool) -> Conf:
    given = DEFAULT.action_arguments
    own = {**given["allocate"], "learn-run-times": on}
    return replace(DEFAULT, action_arguments={**given, "allocate": own})


def simulated(*, on: bool) -> Recorded:
    """Eight hundred jobs on sixteen nodes, which is too few for them."""
    conf, where = learning(on=on), site("leaf-spine-512:nodes=16")
    jobs = workload("seren", where, seed=3, load=1.2, jobs=800)
    engine = Recorded(conf)
    play(Trial(where, jobs, conf), engine)
    return engine


def test_with_the_setting_off_instructions_are_those_of_a_scheduler_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    off, learnt = simulated(on=False), simulated(on=True)
    monkeypatch.setattr(RunTimes, "predict", lambda _self, _job: None)
    without = simulated(on=True)

    assert off.run_times.learnt == 0
    assert off.said == without.said
    assert learnt.said != off.said, "the run is one in which predictions matter"
    assert not [
        s for each in learnt.said for s in each if isinstance(s, Evict | Delete)
    ]
    assert learnt.run_times.learnt == 800
    assert learnt.run_times.within >= 0.85 * learnt.run_times.predicted


NODES = "nodes: [{name: a, product: atlas-800t-a2}]\n"


def origin_of(keys: str) -> Origin:
    (found,) = load(
        f"{NODES}queues: []\njobs: [{{name: t-7, chips: 1{keys}}}]".encode()
    )
    return found.jobs[0].origin


@pytest.mark.parametrize(
    ("keys", "want"),
    [
        ("", NO_ORIGIN),
        (", user: ann", Origin("ann", "t")),
        (", user: ann, program: x", Origin("ann", "x")),
        (", user: ann, program: ''", Origin("ann", "")),
        (", program: x", Origin("", "x")),
    ],
)
def test_where_a_job_of_a_scenario_comes_from(keys: str, want: Origin) -> None:
    assert origin_of(keys) == want


def test_a_job_is_written_without_what_follows_from_its_name() -> None:
    (found,) = load(f"{NODES}jobs: [{{name: t-7, chips: 1, user: ann}}]".encode())

    assert job_entry(found.jobs[0])["user"] == "ann"
    assert "program" not in job_entry(found.jobs[0])


def test_a_record_without_the_keys_is_read_as_before() -> None:
    entry = {"arrives": {"name": "t-7", "chips": 1, "product": "atlas-800t-a2"}}
    then = json.encode([{"at": 1} | entry]).decode()

    (found,) = load(f"{NODES}then: {then}".encode())

    assert FORMS["arrives"] is JobArrived
    (later,) = found.then
    assert isinstance(later.event, JobArrived)
    job = later.event.job
    assert (job.origin, job.run_time) == (NO_ORIGIN, None)


def test_a_scenario_may_state_a_prediction() -> None:
    text = "jobs: [{name: j, chips: 1, run-time: {median-seconds: 6, most-seconds: 8}}]"

    (found,) = load(f"{NODES}queues: []\n{text}".encode())

    job: Job = found.jobs[0]
    assert job.run_time == RunTime(6, 8, 0, Similarity.NAME)
