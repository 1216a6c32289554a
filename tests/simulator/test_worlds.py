"""Whatever happens: no chip is given twice, and the log says the same again."""

import io
import json
from collections import Counter

import pytest

from ringleaf.engine.event import BindFailed, Event, JobArrived, JobGone, PodsGone
from ringleaf.framework.instruction import Bind
from ringleaf.simulator.log import Recorder, replay
from ringleaf.simulator.outcome import plain
from ringleaf.simulator.run import ScenarioRun, run
from ringleaf.simulator.scenario import load
from tests.simulator.worlds import World

SEEDS = range(120)
Held = dict[tuple[str, int], set[tuple[str, int]]]


def recorded(seed: int) -> tuple[ScenarioRun, bytes]:
    (scenario,) = load(json.dumps(World(seed).document()).encode())
    out = io.BytesIO()
    return run(scenario, lambda engine: Recorder(engine, out)), out.getvalue()


def heard(held: Held, event: Event) -> None:
    """What pods hold after *event*, as far as it says so."""
    match event:
        case JobArrived(job, placements):
            for p in placements:
                own = {(p.node, chip) for chip in p.chips}
                held.setdefault((job.name, p.replica), own)
        case JobGone(job):
            for pod in [pod for pod in held if pod[0] == job]:
                del held[pod]
        case PodsGone(job, replicas) | BindFailed(job, replicas):
            for replica in replicas:
                held.pop((job, replica), None)


def followed(found: ScenarioRun) -> Held:
    """Job and rank -> node and chips, after every bind and every end of pods."""
    held: Held = {}
    for step in found.steps:
        for event in step.events:
            heard(held, event)
        for said in step.instructions:
            if isinstance(said, Bind):
                for p in said.placements:
                    assert (said.job, p.replica) not in held, "a pod is bound twice"
                    held[said.job, p.replica] = {(p.node, chip) for chip in p.chips}
        chips = Counter(chip for own in held.values() for chip in own)
        assert not [chip for chip, times in chips.items() if times > 1], step.at
    return held


@pytest.mark.parametrize("seed", SEEDS)
def test_a_world_holds_together_and_is_played_again_as_it_was(seed: int) -> None:
    found, log = recorded(seed)

    held = followed(found)
    job_states = found.engine.view.job_states
    placed = {(n, r) for n, each in job_states.items() for r in each.placements}
    assert placed == set(held)
    assert replay(io.BytesIO(log)).difference is None
    assert plain(found) == plain(found), "telling it leaves no trace"


def test_much_happens_in_these_worlds() -> None:
    said = Counter(
        key
        for seed in SEEDS
        for step in recorded(seed)[0].steps
        for told in step.plain
        for key in (*told, told.get("report", {}).get("verdict"))
    )

    assert min(said["bind"], said["waiting"]) > 200, said
    assert min(said["evict"], said["reserved"]) > 4, said
