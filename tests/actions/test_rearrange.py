"""The action ``rearrange``: jobs are moved so that a pending job starts."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from ringleaf.actions.moves import HINTS, MovePlan, NoMoves, WhyNot, movers_of
from ringleaf.actions.propose import propose, propose_whole
from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.engine.event import (
    BindFailed,
    Event,
    JobArrived,
    JobGone,
    NodesChanged,
    PodsEnding,
    PodsGone,
    RepairKnown,
)
from ringleaf.framework.instruction import Evict, PersistRepair, Repaired
from ringleaf.framework.job_state import JobState
from ringleaf.framework.plugin import Plugin, Vote
from ringleaf.model.demand import Demand, Operator, Requirement
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Schema
from ringleaf.model.moving import Moving
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.products import PRODUCTS
from tests.engine.story import A2, Story, at, conf, job, node, queue

A3 = PRODUCTS["atlas-900-a3"]
MOVING = Moving(30.0, checkpoint_s=600.0)
ACTIONS = "enqueue, allocate, backfill, rearrange"
LATE = 100_000.0
"""When running jobs have run for so long that moves gain more than they cost."""


def moves(**arguments: Any) -> Conf:  # noqa: ANN401 - values of arguments
    """A configuration with the action; its argument ``a-b`` is ``a_b``."""
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    return conf(
        ACTIONS,
        allocate={"reservation-idle-budget": 1},
        rearrange={"wait-seconds": 60} | given,
    )


def runs(name: str, *places: str, started: float = 0.0, **changes: Any) -> JobArrived:  # noqa: ANN401 - fields of Job
    """A job that runs at *places*, and may be moved unless *changes* say otherwise."""
    placements = at(*places)
    chips = len(placements[0].chips)
    given = {"moving": MOVING} | changes
    return JobArrived(job(name, chips, len(places), **given), placements, started)


def halves(*events: Event, conf: Conf | None = None, **kept: Any) -> Story:  # noqa: ANN401 - of a story
    """Nodes a, b and c, each half taken by a job of its name, at ``LATE``."""
    story = Story("a b c", conf=moves() if conf is None else conf, **kept)
    running = [runs(f"on-{name}", f"{name} 0123") for name in "abc"]
    story.hears(*(events or running), now=LATE)
    return story


def acts(said: Sequence[str]) -> list[str]:
    """What is done, without what is only reported."""
    return [line for line in said if line.split()[0] in ("bind", "evict", "remember")]


# The whole story.


def test_a_job_is_moved_and_the_pending_one_starts_where_it_was() -> None:
    story = halves()
    assert story.arrives(job("big")) == ["waiting big", f"wake {LATE + 60:g}"]

    assert acts(story.wakes(LATE + 60)) == [
        "remember on-a: job 0",
        "evict on-a: 0 for big (rearrange)",
    ]
    assert acts(story.carry_out(LATE + 90)) == [
        "bind big: 0 on a 01234567",
        "bind on-a: 0 on b 4567",
    ]
    assert not story.engine.repairs


def test_its_new_place_is_held_and_written_down_before_it_is_asked_to_end() -> None:
    story = halves()
    story.arrives(job("big"))

    story.wakes(LATE + 60)

    (record,) = [each for each in story.said if isinstance(each, PersistRepair)]
    assert record.record is not None
    (place,) = record.record.placements
    assert (place.node, place.chips) == ("b", (4, 5, 6, 7))
    assert record.record.moved_for == "big"
    kinds = [type(each) for each in story.said]
    assert kinds.index(PersistRepair) < kinds.index(Evict)
    assert acts(story.arrives(job("small", 4), job("other", 4))) == [
        "bind small: 0 on c 4567"
    ]  # neither the old place nor the new one is free for others


def test_what_is_said_names_jobs_and_figures() -> None:
    story = halves()
    story.arrives(job("big"))

    story.wakes(LATE + 60)

    moved, rearranged, *_others = story.messages
    assert moved == "job 'on-a' is moved to b so that 'big' starts"
    starts, costs = rearranged.split("; ")
    assert starts == "'on-a' is moved so that job 'big' starts"
    assert costs == "1 move costs 1,960 chip-seconds and gains 800,480"
    story.carry_out(LATE + 90)
    (done,) = [each for each in story.said if isinstance(each, Repaired)]
    assert done.message == "it was moved for job 'big' within 30 s: on b"


def test_several_jobs_are_moved_at_once_and_all_places_are_held_before() -> None:
    story = Story([node(name) for name in "abcd"], conf=moves())
    story.hears(
        runs("a0", "a 01"), runs("b0", "b 01"), runs("c0", "c 0123456"),
        runs("d0", "d 0123"), now=LATE,
    )  # fmt: skip
    story.arrives(job("big", pods=2))

    assert acts(story.wakes(LATE + 60)) == [
        "remember a0: job 0",
        "remember b0: job 0",
        "evict a0: 0 for big (rearrange)",
        "evict b0: 0 for big (rearrange)",
    ]
    assert acts(story.hears(PodsGone("a0", (0,)), now=LATE + 70)) == [
        "bind a0: 0 on d 45"
    ]
    assert acts(story.hears(PodsGone("b0", (0,)), now=LATE + 80)) == [
        "bind big: 0 on a 01234567, 1 on b 01234567",
        "bind b0: 0 on d 67",
    ]


def test_a_job_of_several_pods_moves_as_a_whole() -> None:
    story = Story("a b c", conf=moves())
    story.hears(runs("two", "a 01", "b 01"), runs("c0", "c 0123"), now=LATE)
    story.arrives(job("big", pods=2))

    assert acts(story.wakes(LATE + 60))[-1] == "evict two: 0,1 for big (rearrange)"
    story.hears(PodsGone("two", (0,)), now=LATE + 70)
    assert acts(story.hears(PodsGone("two", (1,)), now=LATE + 71)) == [
        "bind big: 0 on a 01234567, 1 on b 01234567",
        "bind two: 0 on c 45, 1 on c 67",
    ]


def test_a_gang_under_the_rule_of_leaves_starts_under_one_leaf() -> None:
    nodes = [node(f"n{i}", leaf="xy"[i // 2], slot=i % 2) for i in range(4)]
    story = Story(nodes, leaves=[Leaf("x"), Leaf("y")], conf=moves())
    story.hears(runs("x1", "n1 01"), runs("y0", "n2 0123"), now=LATE)
    gang = job("gang", pods=2, tor_affinity=Schema.LARGE_MODEL)
    story.arrives(gang)

    story.wakes(LATE + 60)

    assert acts(story.carry_out(LATE + 90)) == [
        "bind gang: 0 on n0 01234567, 1 on n1 01234567",
        "bind x1: 0 on n2 45",
    ]


def test_the_reservation_of_an_overdue_job_is_its_own() -> None:
    story = halves(conf=moves(wait_seconds=400))
    story.arrives(job("big"))
    assert "reserved big" in story.wakes(LATE + 300)

    assert "evict on-a: 0 for big (rearrange)" in story.wakes(LATE + 400)
    assert acts(story.carry_out(LATE + 430))[0] == "bind big: 0 on a 01234567"


def test_jobs_that_are_not_admitted_yet_gain_too() -> None:
    story = Story(
        "a b c",
        queues=[queue("q", 12)],
        conf=moves(),
    )
    story.hears(*(runs(f"on-{n}", f"{n} 0123") for n in "abc"), now=LATE)
    story.arrives(job("first", 8, queue="q"), job("next", 8, pods=9, queue="q"))

    assert "evict on-a: 0 for first (rearrange)" in story.wakes(LATE + 60)


# When nothing is moved.


def test_only_one_plan_is_carried_out_at_a_time() -> None:
    story = Story("a b c d", conf=moves())
    story.hears(*(runs(f"on-{n}", f"{n} 0123") for n in "abcd"), now=LATE)
    story.arrives(job("big"), job("other"))
    story.wakes(LATE + 60)

    assert acts(story.wakes(LATE + 120)) == []
    said = story.hears(PodsGone("on-a", (0,)), now=LATE + 130)
    assert "evict on-c: 0 for other (rearrange)" in said


def test_no_more_jobs_are_moved_in_an_hour_than_may_be() -> None:
    story = Story("a b c d", conf=moves(moves_per_hour=1))
    story.hears(*(runs(f"on-{n}", f"{n} 0123") for n in "abcd"), now=LATE)
    story.arrives(job("big"), job("other"))
    story.wakes(LATE + 60)
    story.carry_out(LATE + 90)

    assert acts(story.wakes(LATE + 3659)) == []
    assert "evict on-c: 0 for other (rearrange)" in story.wakes(LATE + 3660)


def test_a_plan_of_more_moves_than_may_be_is_none() -> None:
    story = Story([node(name) for name in "abcd"], conf=moves(moves_per_hour=1))
    story.hears(
        runs("a0", "a 01"), runs("b0", "b 01"), runs("c0", "c 0123456"),
        runs("d0", "d 0123"), now=LATE,
    )  # fmt: skip
    story.arrives(job("big", pods=2))

    assert acts(story.wakes(LATE + 60)) == []
    found = why(story, "big", most=1)
    assert found.why is WhyNot.TOO_MANY
    assert found.detail == "want 2, at most 1"


def test_moves_that_gain_too_little_are_not_made() -> None:
    story = halves(conf=moves(least_benefit=500))
    story.arrives(job("big"))

    assert acts(story.wakes(LATE + 60)) == []
    found = why(story, "big", ratio=500)
    assert found.why is WhyNot.TOO_COSTLY
    assert found.detail.endswith("want 500 times as much")


def test_a_preview_is_reported_once() -> None:
    story = halves(conf=moves(preview=True))
    story.arrives(job("big"))

    assert story.wakes(LATE + 60) == ["would-move big", f"wake {LATE + 300:g}"]
    assert acts(story.hears(JobGone("on-c"), now=LATE + 70)) == [
        "bind big: 0 on c 01234567"
    ]


def why(story: Story, name: str, most: int = 99, ratio: float = 1.0) -> NoMoves:
    """Why nothing is moved for a job."""
    ctx = story.engine.context
    found = propose(ctx, ctx.state.job_states.get(name), most, ratio=ratio)
    assert isinstance(found, NoMoves)
    assert found.message
    assert bool(found.hint) == (found.why in HINTS)
    return found


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"moving": None}, WhyNot.NONE_MOVABLE, id="it is not movable"),
        pytest.param({"priority": 1}, WhyNot.NONE_MOVABLE, id="of a higher priority"),
        pytest.param({"preemptable": False}, WhyNot.NONE_MOVABLE, id="of a budget"),
        pytest.param({"critical": True}, WhyNot.NONE_MOVABLE, id="of the system"),
    ],
)
def test_some_jobs_are_never_moved(changes: dict[str, Any], reason: WhyNot) -> None:
    story = halves(*(runs(f"on-{n}", f"{n} 0123", **changes) for n in "abc"))
    story.arrives(job("big"))

    assert acts(story.wakes(LATE + 60)) == []
    assert why(story, "big").why is reason


def test_jobs_that_end_lack_pods_or_were_just_bound_stay() -> None:
    story = Story("a b c d", conf=moves())
    story.hears(
        runs("ends", "a 0123"),
        JobArrived(job("lacks", 4, 3, moving=MOVING, min_available=1), at("b 0123"), 0),
        now=LATE,
    )
    story.hears(PodsEnding("ends", (0,)))
    story.arrives(job("new", 4, moving=MOVING))

    assert movers_of(story.engine.context) == []
    story.wakes(LATE + 10)
    assert {"new"} <= {mover.job.name for mover in movers_of(story.engine.context)}


def test_a_job_for_whose_end_a_reservation_waits_stays() -> None:
    story = halves(conf=moves(wait_seconds=9999))
    story.arrives(job("big"))
    story.wakes(LATE + 300)

    (held,) = story.engine.reservations.values()
    names = {mover.job.name for mover in movers_of(story.engine.context)}
    assert names == {"on-a", "on-b", "on-c"} - held.blockers.keys()


def test_the_reason_is_named_where_no_moves_help() -> None:
    story = halves()
    story.arrives(job("fits", 4, podless=True), job("huge", pods=2), job("big"))

    assert why(story, "none").why is WhyNot.UNKNOWN
    assert why(story, "on-a").why is WhyNot.UNKNOWN
    assert why(story, "fits").why is WhyNot.UNKNOWN
    found = why(story, "huge")
    assert found.why is WhyNot.FEW_CHIPS
    assert found.detail == "12 of 16 chips"


def test_no_moves_help_where_jobs_find_no_other_place() -> None:
    story = Story("a b", conf=moves())
    story.hears(runs("a0", "a 01234"), runs("b0", "b 01234"), now=LATE)
    story.arrives(job("big", 6))

    assert why(story, "big").why is WhyNot.NO_ROOM


def test_a_job_that_only_its_queue_holds_back_gains_nothing() -> None:
    story = Story("a b c", queues=[queue("q", 12)], conf=moves())
    story.hears(*(runs(f"on-{n}", f"{n} 0123", queue="q") for n in "abc"), now=LATE)
    story.arrives(job("big", queue="q"))

    assert why(story, "big").why is WhyNot.QUOTA


def test_a_job_that_fits_needs_no_moves() -> None:
    story = halves(conf=conf("enqueue"))
    story.arrives(job("small", 4))

    assert why(story, "small").why is WhyNot.FITS


def test_resources_of_old_places_are_not_free_before_they_are_left() -> None:
    """Node b has memory for a0 only when b0, which could go to c, has stopped."""

    def asks(memory: int, *hosts: str) -> Demand:
        required = (Requirement("host", Operator.IN, hosts),) if hosts else ()
        return Demand(resources=(("memory", memory),), required=required)

    story = Story(
        [
            node(name, labels={"host": name}, resources={"memory": memory})
            for name, memory in (("a", 6), ("b", 6), ("c", 1))
        ],
        conf=moves(),
    )
    story.hears(
        runs("a0", "a 0123", demand=asks(6)),
        runs("b0", "b 0123", demand=asks(1)),
        runs("c0", "c 0123", moving=None),
        now=LATE,
    )
    story.arrives(job("big", demand=asks(0, "a")))

    assert why(story, "big").why is WhyNot.NO_ROOM


# What comes between.


def test_a_moved_job_that_ends_meanwhile_leaves_its_new_place() -> None:
    story = halves()
    story.arrives(job("big"))
    story.wakes(LATE + 60)

    assert acts(story.hears(JobGone("on-a"), now=LATE + 70)) == [
        "bind big: 0 on a 01234567"
    ]
    assert acts(story.arrives(job("small", 4))) == ["bind small: 0 on b 4567"]


def test_a_moved_job_has_all_the_time_its_pods_take_to_end() -> None:
    story = halves()
    story.arrives(job("big"))
    story.wakes(LATE + 60)

    said = [line for at_s in (600, 6000) for line in story.wakes(LATE + at_s)]
    assert not [line for line in said if line.startswith("delete")]


def test_a_new_place_that_breaks_is_replaced() -> None:
    story = halves()
    story.arrives(job("big"))
    story.wakes(LATE + 60)
    story.hears(NodesChanged((node("b", faulty=0xF0),)), now=LATE + 70)

    assert acts(story.hears(PodsGone("on-a", (0,)), now=LATE + 90)) == [
        "bind big: 0 on a 01234567",
        "bind on-a: 0 on c 4567",
    ]


def test_a_place_that_is_refused_when_bound_is_found_again() -> None:
    story = halves()
    story.arrives(job("big"))
    story.wakes(LATE + 60)
    story.carry_out(LATE + 90)

    said = story.hears(BindFailed("on-a", (0,)), now=LATE + 91)
    assert acts(said) == ["bind on-a: 0 on b 4567"]


def test_the_next_leader_holds_the_new_place_and_finishes_the_move() -> None:
    story = halves()
    story.arrives(job("big"))
    story.wakes(LATE + 60)
    (said,) = [each for each in story.said if isinstance(each, PersistRepair)]
    assert said.record is not None

    later = Story("a b c", conf=moves())
    later.hears(
        *(runs(f"on-{name}", f"{name} 0123") for name in "abc"),
        PodsEnding("on-a", (0,)),
        RepairKnown("on-a", said.record),
        JobArrived(job("big")),
        JobArrived(job("small", 4)),
        now=LATE + 70,
    )

    assert later.ledger.pods["small", 0].node != "b", "it is held for the moved job"
    assert acts(later.hears(PodsGone("on-a", (0,)), now=LATE + 90)) == [
        "bind on-a: 0 on b 4567"
    ]


# Whole units.


def whole(story: Story, most: int = 99) -> MovePlan | NoMoves:
    return propose_whole(story.engine.context, most)


def test_nodes_are_made_whole_those_with_the_fewest_jobs_first() -> None:
    story = Story("a b c d", conf=conf())
    story.hears(
        runs("a0", "a 01"), runs("a1", "a 23"), runs("b0", "b 0"),
        runs("c0", "c 01234"), now=LATE,
    )  # fmt: skip

    found = whole(story)

    assert isinstance(found, MovePlan)
    assert found.units == ("node b",)
    assert [(move.job, move.after[0].node) for move in found.moves] == [("b0", "c")]


def test_leaves_are_made_whole_and_whole_ones_stay_so() -> None:
    nodes = [node(f"n{i}", leaf="xyz"[i // 2], slot=i % 2) for i in range(6)]
    story = Story(nodes, leaves=[Leaf("x"), Leaf("y"), Leaf("z")], conf=conf())
    story.hears(runs("x0", "n0 01"), runs("y0", "n2 0123"), now=LATE)

    found = whole(story)

    assert isinstance(found, MovePlan)
    assert found.units == ("leaf x",)
    assert found.moves[0].after[0].node == "n2"
    assert found.pays
    assert found.chips == 16


def test_superpods_are_made_whole() -> None:
    nodes = [node(f"n{i}", superpod=9 * (i // 2)) for i in range(4)]
    story = Story(nodes, conf=conf())
    story.hears(runs("p0", "n0 01"), runs("p9", "n2 0123"), now=LATE)

    found = whole(story)

    assert isinstance(found, MovePlan)
    assert found.units == ("SuperPoD 0",)


def test_units_are_not_whole_where_jobs_stay_or_cost_too_much() -> None:
    assert whole_reason() is WhyNot.NONE_MOVABLE
    stays = runs("a1", "a 2", moving=None), runs("b0", "b 0", moving=None)
    assert whole_reason(runs("a0", "a 01"), *stays) is WhyNot.NO_ROOM
    full = runs("b0", "b 01234567", moving=None)
    assert whole_reason(runs("a0", "a 01"), full) is WhyNot.NO_ROOM
    dear = Moving(1e9)
    costly = runs("a0", "a 01", moving=dear), runs("b0", "b 01", moving=dear)
    assert whole_reason(*costly) is WhyNot.TOO_COSTLY


def whole_reason(*events: JobArrived) -> WhyNot:
    story = Story("a b", conf=conf())
    story.hears(*events, now=LATE)
    found = whole(story)
    assert isinstance(found, NoMoves)
    return found.why


def test_no_more_moves_make_units_whole_than_may_be() -> None:
    story = Story("a b c", conf=conf())
    story.hears(runs("a0", "a 01"), runs("a1", "a 23"), runs("b0", "b 012"), now=LATE)
    story.hears(runs("b1", "b 34"), runs("c0", "c 0", moving=None))

    assert isinstance(whole(story, most=1), NoMoves)
    found = whole(story, most=2)
    assert isinstance(found, MovePlan)
    assert len(found.moves) == 2


def test_jobs_with_roles_are_moved() -> None:
    roles = Role("driver", 0), Role("worker", 2, 2)
    moved = Job("two", A2, 2, 2, roles=roles, moving=MOVING)
    story = Story("a b", conf=moves())
    places = at("a 01", "a 23", "a ")
    story.hears(
        JobArrived(moved, places, 0.0), runs("b0", "b 01", moving=None), now=LATE
    )
    story.arrives(job("big"))

    assert acts(story.wakes(LATE + 60))[-1] == "evict two: 0,1,2 for big (rearrange)"
    assert acts(story.carry_out(LATE + 90)) == [
        "bind big: 0 on a 01234567",
        "bind two: 0 on b 23, 1 on b 45, 2 on a",
    ]


# The search.


def test_a_gang_in_superpods_empties_the_superpod_with_the_fewest_jobs() -> None:
    nodes = [node(f"n{i}", superpod=i // 2) for i in range(6)]
    nodes = [replace(each, product=A3, chips=16, free=0xFFFF) for each in nodes]
    story = Story(nodes, conf=moves())
    places = {"p0a": "n0", "p0b": "n1", "p1": "n2", "p2": "n4", "p2b": "n5"}
    story.hears(
        *(
            JobArrived(Job(name, A3, 2, moving=MOVING), at(f"{place} 01"), 0.0)
            for name, place in places.items()
        ),
        now=LATE,
    )
    story.arrives(Job("gang", A3, 16, 2, sp_block=32))

    assert acts(story.wakes(LATE + 60))[-1] == "evict p1: 0 for gang (rearrange)"
    assert acts(story.carry_out(LATE + 90))[0].startswith("bind gang: 0 on n2 ")


def test_a_job_that_finds_no_other_place_is_left_out() -> None:
    """Nodes a and b are the cheapest to empty, but what is on a fits nowhere else."""
    only_a = Demand(required=(Requirement("host", Operator.IN, ("a",)),))
    nodes = [node(name, labels={"host": name}) for name in "abcd"]
    story = Story(nodes, conf=moves())
    story.hears(
        runs("a0", "a 0", demand=only_a), runs("b0", "b 01"), runs("c0", "c 012"),
        runs("d0", "d 0123"), now=LATE,
    )  # fmt: skip
    story.arrives(job("big"))

    assert acts(story.wakes(LATE + 60))[-1] == "evict b0: 0 for big (rearrange)"


class Unsure(Plugin):
    """Pipelines nothing, unless it is content."""

    content = True

    def job_pipelined(self, job_state: JobState) -> Vote:
        del job_state
        return Vote.PERMIT if type(self).content else Vote.REJECT


def test_a_plan_that_a_plugin_does_not_promise_is_not_carried_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {
        "allocate": {"reservation-idle-budget": 1},
        "rearrange": {"wait-seconds": 400},
    }
    found = read_conf(
        {
            "actions": ACTIONS,
            "tiers": [{"plugins": [{"name": n} for n in ("unsure", "predicates")]}],
            "configurations": [
                {"name": name, "arguments": arguments}
                for name, arguments in given.items()
            ],
        },
        {"unsure": Unsure},
    )
    assert isinstance(found, Conf)
    story = halves(conf=found)
    story.arrives(job("big"))
    assert "reserved big" in story.wakes(LATE + 300)
    monkeypatch.setattr(Unsure, "content", False)

    assert acts(story.wakes(LATE + 400)) == []


def test_costs_are_named_where_moves_gain_nothing() -> None:
    story = halves(*(runs(f"on-{n}", f"{n} 0123", started=LATE) for n in "abc"))
    story.arrives(job("big"))

    found = why(story, "big")
    assert (found.why, found.detail) == (
        WhyNot.TOO_COSTLY,
        "1 move costs 120 chip-seconds and gains 0",
    )
    assert found.plan is not None
    assert not found.plan.pays


def test_a_job_that_does_not_run_is_not_moved() -> None:
    story = halves()
    story.arrives(job("big", moving=MOVING))

    names = {mover.job.name for mover in movers_of(story.engine.context)}
    assert names == {"on-a", "on-b", "on-c"}


def test_others_are_looked_at_after_a_while_where_many_jobs_wait() -> None:
    story = halves(conf=moves(look_every_seconds=30))
    story.arrives(*(job(f"j{n}", 8, pods=n) for n in range(4, 10)))

    assert f"wake {LATE + 90:g}" in story.wakes(LATE + 60)
    assert f"wake {LATE + 300:g}" in story.wakes(LATE + 90)


def test_an_elastic_job_is_moved_with_all_its_pods() -> None:
    """Only one of its two pods would find another place."""
    story = Story("a b c", conf=moves())
    story.hears(
        runs("two", "a 01", "a 23", min_available=1),
        runs("b0", "b 01234"),
        runs("c0", "c 0123456"),
        now=LATE,
    )
    story.arrives(job("big"))

    assert why(story, "big").why is WhyNot.NO_ROOM


def test_what_a_preview_said_is_not_said_again() -> None:
    story = halves(conf=moves(preview=True, look_every_seconds=1))
    story.arrives(job("big"))
    story.wakes(LATE + 60)

    said = story.hears(NodesChanged((node("d", range(4)),)), now=LATE + 70)
    assert not [line for line in said if line.startswith("would-move")]
