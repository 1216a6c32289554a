"""Jobs that run already when the engine first hears of them."""

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np

from ringleaf.config.conf import Conf
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import (
    ConfChanged,
    Event,
    JobArrived,
    JobGone,
    PodFaultsReported,
    RepairKnown,
)
from ringleaf.framework.instruction import Bind
from ringleaf.model.cluster import Node
from ringleaf.model.demand import Demand, PodTerm
from ringleaf.model.fault import Cause, FaultMode, PodFault, Record, Recovery
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Schema
from ringleaf.model.placement import JobType, LeafAnnotation, LeafState, Placement
from ringleaf.model.queue import Queue
from ringleaf.policies.products import NO_NPU
from tests.effort import assert_reached, examples
from tests.engine.story import A2, BOTH, TIERS, Story, conf, job

SEEDS = 200
ASKS = (
    Demand(),
    Demand(resources=(("cpu", 1000), ("memory", 5))),
    Demand(resources=(("cpu", 2000), ("made.up/r", 1))),
    Demand(resources=(("cpu", 1 << 61),)),
    Demand(labels=(("app", "x"),), apart=(PodTerm("kubernetes.io/hostname"),)),
)


class OneByOne(Engine):
    """An engine that takes over one job after the other."""

    def __init__(
        self, nodes: Iterable[Node], queues: Iterable[Queue], conf: Conf
    ) -> None:
        super().__init__(nodes, queues=queues, conf=conf)
        jobs = self._jobs

        def is_placed_pod_by_pod(events: Iterable[JobArrived]) -> None:
            for event in events:
                jobs.job_arrived(event)

        jobs.jobs_arrived = is_placed_pod_by_pod  # type: ignore[method-assign]


def nodes(draw: Random) -> list[Node]:
    """Six nodes under two leaves; some are sick, or say nothing of resources."""
    return [
        Node(
            f"n{i}",
            A2,
            8,
            0xFF,
            ready=draw.random() > 0.1,
            leaf=f"leaf-{i % 2}",
            slot=i // 2,
            resources={"cpu": 64_000} | ({"memory": 1000} if i % 3 else {}),
            offers=draw.choice((None, None, 0x3F)),
            weak=draw.choice((0, 0, 0, 1)),
        )
        for i in range(6)
    ]


def arrival(draw: Random, number: int) -> JobArrived:
    """A job with some or all of its pods on nodes, of which one may be unknown."""
    name, demand = f"j{draw.choice((number, number, number, 0))}", draw.choice(ASKS)
    n_pods, chips = draw.choice((1, 1, 1, 3)), draw.choice((0, 0, 1, 1, 2, 8))
    roles = (Role("", 0, n_pods, demand=demand, ranks=(*range(n_pods),)),)
    found = Job(
        name,
        A2 if chips else NO_NPU,
        chips,
        n_pods if chips else 0,
        demand=demand,
        roles=() if chips else roles,
        min_available=draw.choice((None, 1)),
        queue=draw.choice(("default", "q", "unknown")),
        priority=draw.randrange(3),
        tor_affinity=Schema.NORMAL if n_pods > 1 and chips else None,
        created=float(number),
        recovery=Recovery(mode=draw.choice((FaultMode.OFF, FaultMode.GRACE))),
    )
    placements = []
    for replica in range(draw.choice((n_pods, n_pods, n_pods - 1))):
        where = "gone" if draw.random() < 0.05 else f"n{draw.randrange(6)}"
        own = draw.sample(range(8), min(chips, 8)) if draw.random() < 0.5 else []
        if draw.random() < 0.9:
            own = [number % 8] if chips == 1 else own
        mark = (
            LeafAnnotation(JobType.COMMON, LeafState.SHARED)
            if draw.random() < 0.2
            else None
        )
        number_of = replica if draw.random() < 0.95 else 7
        placements.append(Placement(number_of, where, (*own,), mark=mark))
    started = draw.choice((None, 5.0))
    return JobArrived(found, (*placements,), started, draw.choice((None, 3.0)))


def others(draw: Random) -> Event:
    """Something else that happens between arrivals."""
    name, node = f"j{draw.randrange(12)}", f"n{draw.randrange(6)}"
    ailment = PodFault(0, Cause.POD, node)
    placement = Placement(0, node, (0,))
    record = Record(1.0, pod_faults=(ailment,), placements=(placement,), deleted=(0,))
    return draw.choice(
        (
            JobGone(name, returns=True),
            JobGone(name),
            PodFaultsReported(name, (ailment,)),
            RepairKnown(name, record),
        )
    )


def state(engine: Engine) -> dict[str, Any]:
    """All that an engine knows that jobs which arrive may change."""
    view, ctx = engine.view, engine.context
    cluster, starts = view.cluster, ctx.pods_ready
    arrays = ("free", "taken", "pool", "healthy", "quarantined")
    queue_usage = ("allocated", "requested", "inqueue", "elastic")
    table, lists = cluster.node_table, ctx.pending.lists
    known = {
        name: {key: value for key, value in vars(each).items() if key != "promised"}
        for name, each in view.job_states.items()
    }
    return {
        "arrays": {key: getattr(cluster, key).tolist() for key in arrays},
        "room": table.resources.room.tolist(),
        "rest": (table.resources._uncounted, table.resources._below),  # noqa: SLF001
        "holdings": cluster.holdings,
        "spine": [cluster.uplinks.state.tolist(), cluster.uplinks.crossings()],
        "standings": known,
        "accounts": {
            name: [getattr(each, key) for key in queue_usage] + [[*each.jobs]]
            for name, each in view.queue_usage.items()
        },
        "starts": {name: starts.not_before(name) for name in known},
        "pending": [name for name in known if any(name in each for each in lists)],
        "just_arrived": [*ctx.pending.just_arrived],
        "repairs": [*ctx.repairs.open],
        "reservations": [*engine.reservations],
    }


def test_many_jobs_that_run_are_taken_over_as_one_after_the_other() -> None:
    counts = Counter[str]()
    for seed in range(examples(SEEDS)):
        draw = Random(seed)  # noqa: S311
        given, decides = nodes(draw), draw.random() < 0.7
        rules = conf(BOTH, TIERS) if decides else conf().quiet
        both = [
            kind(given, queues=[Queue("q")], conf=rules) for kind in (Engine, OneByOne)
        ]
        for now in (10.0, 20.0, 30.0):
            events: list[Event] = [arrival(draw, int(now) + i) for i in range(12)]
            if draw.random() < 0.5:
                events.insert(draw.randrange(12), others(draw))
            if draw.random() < 0.2:
                events.append(JobArrived(job("waits", 8, 2, priority=5)))
            one, other = (engine.handle_all(events, now) for engine in both)
            assert one == other, seed
            assert state(both[0]) == state(both[1]), seed
            counts.update(type(each).__name__ for each in one)
        lead = ConfChanged(conf(BOTH, TIERS))
        one, other = (engine.handle(lead, 40.0) for engine in both)
        assert one == other, seed
        assert state(both[0]) == state(both[1]), seed
        counts.update(type(each).__name__ for each in one)
    assert_reached(counts, "Bind", "Report", "Delete")


def test_chips_of_jobs_that_were_found_together_are_taken() -> None:
    story = Story("a b")
    engine, names = story.engine, story.engine.view.cluster.names
    events = [
        JobArrived(job(f"old-{i}", 4), (Placement(0, name, (0, 1, 2, 3)),))
        for i, name in enumerate(names)
    ]
    said = engine.handle_all([*events, JobArrived(job("new", 4))], 1.0)

    (bind,) = [each for each in said if isinstance(each, Bind)]
    assert bind.placements[0].chips == (4, 5, 6, 7)
    assert np.bitwise_count(engine.view.cluster.free).sum() == 4


def test_plugins_hear_of_every_pod_of_jobs_that_were_found_together() -> None:
    story = Story("a b")
    engine, heard = story.engine, []
    engine.view.handlers.append(
        lambda job_state, holding, used, by: heard.append(
            (job_state.job.name, holding.replica, dict(used), by)
        )
    )
    names = engine.view.cluster.names
    gang = JobArrived(
        job("gang", 2, 2), tuple(Placement(i, n, (0, 1)) for i, n in enumerate(names))
    )
    alone = JobArrived(job("alone", 1), (Placement(0, names[0], (7,)),))
    engine.handle_all([gang, alone], 1.0)

    two, one = {A2.resource: 2000}, {A2.resource: 1000}
    assert heard == [("gang", 0, two, 1), ("gang", 1, two, 1), ("alone", 0, one, 1)]


def test_a_job_that_is_found_where_another_has_a_reservation_ends_it() -> None:
    story = Story("a", conf=conf(allocate={"reservation-after-seconds": 10}))
    engine = story.engine
    story.arrives(job("one", 4))
    story.arrives(job("two", 8))
    assert story.wakes(10)[0] == "reserved two"
    reservation = engine.reservations["two"]

    found = JobArrived(job("found", 2), (Placement(0, "a", ()),))
    engine.handle_all([found], 11.0)

    assert engine.reservations.get("two") is not reservation
    assert "found" in engine.view.cluster.holdings
