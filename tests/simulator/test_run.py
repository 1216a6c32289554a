"""A scenario goes through the engine in virtual time, as the page says."""

import pytest

from ringleaf.engine.event import Event, JobArrived, JobGone, PodsGone, TimerFired
from ringleaf.framework.instruction import Bind, Evict, WakeAt
from ringleaf.model.decision import Invalid, Placed, Waiting
from ringleaf.simulator import run as module
from ringleaf.simulator.outcome import Ended, fates, plain, queue_plain, queue_position
from ringleaf.simulator.run import ScenarioRun, run
from ringleaf.simulator.scenario import load
from ringleaf.simulator.source import BadInput

ONE = "nodes: [{name: n, product: atlas-800t-a2}]\n"
PREEMPT = (
    "configuration: {actions: 'allocate, preempt', tiers: [{plugins: "
    "[{name: priority}, {name: gang}, {name: affinity}]}]}\n"
    "running: [{name: old, chips: 8, placements: "
    "[{replica: 0, node: n, chips: [0, 1, 2, 3, 4, 5, 6, 7]}]}]\n"
    "jobs: [{name: new, chips: 8, priority: 1}]\n"
)


def ran(text: str) -> ScenarioRun:
    (scenario,) = load(text.encode())
    return run(scenario)


def steps(found: ScenarioRun) -> list[tuple[float, list[type[Event]]]]:
    return [(step.at, [type(event) for event in step.events]) for step in found.steps]


def test_running_jobs_are_there_and_the_jobs_arrive_together() -> None:
    found = ran(
        f"{ONE}queues: []\nrunning: [{{name: r, chips: 1, placements: "
        "[{replica: 0, node: n, chips: [0]}]}]\n"
        "jobs: [{name: a, chips: 1}, {name: b, chips: 1}]"
    )

    assert steps(found) == [(0, [JobArrived, JobArrived, JobArrived])]
    assert list(found.jobs) == ["r", "a", "b"]


def test_pods_that_are_ending_are_so_before_anything_is_decided() -> None:
    found = ran(
        f"{ONE}queues: []\nrunning: [{{name: r, chips: 8, ending: [0], placements: "
        "[{replica: 0, node: n, chips: [0, 1, 2, 3, 4, 5, 6, 7]}]}]\n"
        "jobs: [{name: a, chips: 8}]"
    )

    assert found.engine.view.job_states["r"].terminating == {0}
    assert [each["job"] for each in plain(found)["reservations"]] == ["a"]


def test_a_job_may_have_waited_before_the_scenario_begins() -> None:
    found = ran(
        f"{ONE}queues: []\nrunning: [{{name: r, chips: 8, placements: "
        "[{replica: 0, node: n, chips: [0, 1, 2, 3, 4, 5, 6, 7]}]}]\n"
        "jobs: [{name: a, chips: 8, waiting-since: -300}]"
    )

    assert [each["job"] for each in plain(found)["reservations"]] == ["a"]


def test_entries_of_one_time_come_in_the_order_of_the_file() -> None:
    found = ran(
        f"{ONE}then: [{{at: 5, arrives: {{name: a, chips: 8}}}}, {{at: 5, ends: a}}, "
        "{at: 5, arrives: {name: b, chips: 8}}]"
    )

    assert steps(found) == [(5, [JobArrived]), (5, [JobGone]), (5, [JobArrived])]
    assert [type(fate) for fate in fates(found)] == [Ended, Placed]


def test_evicted_pods_are_gone_before_anything_else_happens() -> None:
    found = ran(f"{ONE}{PREEMPT}then: [{{at: 0, wakes: true}}]")

    assert steps(found) == [
        (0, [JobArrived, JobArrived]),
        (0, [PodsGone]),
        (0, [TimerFired]),
    ]
    assert [type(fate) for fate in fates(found)] == [Waiting, Placed]


def test_a_grace_period_delays_the_end_of_evicted_pods() -> None:
    found = ran(f"{ONE}{PREEMPT}grace-seconds: 30\nuntil: 30")

    said = [(step.at, each) for step in found.steps for each in step.instructions]
    evicted = [at for at, each in said if isinstance(each, Evict)]
    bound = [at for at, each in said if isinstance(each, Bind)]
    assert (evicted, bound) == ([0], [30])


def test_pods_that_are_ending_at_the_end_are_told() -> None:
    found = plain(ran(f"{ONE}{PREEMPT}grace-seconds: 30\nuntil: 29"))

    old, new = found["decisions"]
    assert (old["verdict"], old["ending"]) == ("placed", [0])
    assert new["verdict"] == "waiting"
    assert [each["job"] for each in found["reservations"]] == ["new"]


WAITS = (
    f"{ONE}running: [{{name: r, chips: 8, estimate-seconds: 500, placements: "
    "[{replica: 0, node: n, chips: [0, 1, 2, 3, 4, 5, 6, 7]}]}]\n"
    "jobs: [{name: j, chips: 8}]\n"
)


def test_wake_ups_are_followed_up_to_the_end() -> None:
    found = ran(f"{WAITS}queues: []\nuntil: 1000")

    wanted = [
        each.at
        for step in found.steps
        for each in step.instructions
        if isinstance(each, WakeAt)
    ]
    woken = [step.at for step in found.steps if step.events == (TimerFired(),)]
    assert woken
    assert woken == sorted({at for at in wanted if at <= 1000})


def test_without_an_end_nobody_is_woken_after_the_last_entry() -> None:
    assert [at for at, _events in steps(ran(f"{WAITS}queues: []"))] == [0]


def test_a_reservation_is_told_with_what_holds_it() -> None:
    (told,) = plain(ran(f"{WAITS}queues: []\nuntil: 400"))["reservations"]

    assert told == {
        "job": "j",
        "queue": "default",
        "nodes": [{"node": "n", "chips": (0, 1, 2, 3, 4, 5, 6, 7)}],
        "since": 300,
        "ready-at": 500,
        "held-by": ["r"],
    }


def test_instructions_have_their_time_first() -> None:
    found = plain(ran(f"{ONE}then: [{{at: 2.5, arrives: {{name: a, chips: 8}}}}]"))

    assert [list(said) for said in found["instructions"]] == [["at", "bind"]]
    assert found["instructions"][0]["at"] == 2.5
    assert found["decisions"][0]["annotations"][0]["hccl/rankIndex"] == "0"


def test_a_job_that_is_never_possible_is_invalid() -> None:
    found = ran(f"{ONE}queues: []\njobs: [{{name: j, chips: 9}}]")

    (fate,) = fates(found)
    assert isinstance(fate, Invalid)
    assert plain(found)["decisions"][0]["verdict"] == "invalid"


def test_a_job_whose_pods_are_done_has_ended() -> None:
    found = ran(
        f"{ONE}jobs: [{{name: j, chips: 8}}]\n"
        "then: [{at: 9, pods-end: {job: j, replicas: [0], succeeded: true}}]"
    )

    assert plain(found)["decisions"] == [
        {"job": "j", "verdict": "ended", "waited-seconds": 0}
    ]


def test_pods_that_stayed_after_a_fault_are_there_when_the_job_arrives() -> None:
    found = ran(
        "nodes: [{name: 'n{i}', count: 3, product: atlas-800t-a2}]\nqueues: []\n"
        "jobs: [{name: j, chips: 8, replicas: 2, previous: {failed-nodes: [n1], "
        "placements: [{replica: 0, node: n0, chips: [0, 1, 2, 3, 4, 5, 6, 7]}, "
        "{replica: 1, node: n1, chips: [0, 1, 2, 3, 4, 5, 6, 7]}]}}]"
    )

    (fate,) = fates(found)
    assert isinstance(fate, Placed)
    assert fate.placements[0].node == "n0"
    assert len(fate.placements) == 2
    assert [len(step.events) for step in found.steps] == [1]


def test_waiting_jobs_have_a_place_in_line() -> None:
    found = ran(
        f"{WAITS}queues: []\n".replace(
            "jobs: [", "jobs: [{name: first, chips: 8, priority: 5}, "
        )
    )

    places = [queue_position(found, name) for name in ("first", "j", "r", "nobody")]
    assert [(p.place, p.length) if p else None for p in places] == [
        (1, 2),
        (2, 2),
        None,
        None,
    ]


def test_a_queue_is_told_with_its_share() -> None:
    found = ran(
        "nodes: [{name: 'n{i}', count: 4, product: atlas-800t-a2}]\n"
        "queues: [{name: a, weight: 3}, {name: b}]\n"
        "jobs: [{name: ja, chips: 8, replicas: 4, min-member: 1, queue: a}, "
        "{name: jb, chips: 8, replicas: 4, min-member: 1, queue: b}]"
    )

    chips = "huawei.com/Ascend910"
    assert queue_plain(found.engine, "a") == {
        "name": "a",
        "weight": 3,
        "state": "open",
        "uses": {chips: 24},
        "asks": {chips: 32},
        "deserves": {chips: 24},
    }
    assert queue_plain(found.engine, "c") == {"name": "c"}


def test_a_run_that_does_not_come_to_rest_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_STEPS", 2)

    with pytest.raises(BadInput, match="has not come to rest after 2 steps, at 5 s"):
        ran(f"{ONE}then: [{', '.join(['{at: 5, wakes: true}'] * 3)}]")
