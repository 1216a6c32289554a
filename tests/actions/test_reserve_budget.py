"""Reservations keep no more idle than their budget allows."""

import pytest

from ringleaf.config.conf import Conf
from ringleaf.engine.event import ConfChanged, IdleAccountKnown, JobGone
from ringleaf.framework.idle_budget import EndedReservation, Outcome
from tests.engine.story import Story, conf, job

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


def sparing(budget: float, mode: str = "fair", after: int = 10) -> Conf:
    """A configuration in which reservations may keep so much idle."""
    own = {"reservation": mode, "reservation-after-seconds": after}
    return conf(allocate={**own, "reservation-idle-budget": budget})


def draining(budget: float, mode: str = "fair") -> Story:
    """Node a is taken, node b is free, and both are reserved for a big job."""
    story = Story("a b", conf=sparing(budget, mode))
    story.arrives(job("one"))
    story.arrives(job("big", 8, 2))
    end = 10 + budget * 16 * DAY_S / 8
    assert story.wakes(10) == ["reserved big", f"wake {end:g}"]
    return story


@pytest.mark.parametrize("mode", ["fair", "strict"])
def test_a_reservation_ends_when_its_budget_is_used_up(mode: str) -> None:
    """A tenth of 16 chips for a day is 8 chips for 4.8 hours."""
    story = draining(0.1, mode)
    assert story.arrives(job("small", 1), now=11) == ["waiting small"]

    said = story.wakes(10 + 4.8 * HOUR_S)

    assert "bind small: 0 on b 0" in said
    assert not story.engine.reservations
    assert any("big" in each for each in story.engine.context.pending.lists)


def test_it_is_made_again_when_half_of_the_budget_is_there() -> None:
    story = draining(0.1)
    story.wakes(10 + 4.8 * HOUR_S)
    half = DAY_S + 2.5 * HOUR_S

    assert story.arrives(job("small", 1), now=half - 1)
    story.hears(JobGone("small"), now=half - 1)
    assert not story.engine.reservations
    assert "reserved big" in story.wakes(half)


def test_it_is_known_when_reservations_are_made_again() -> None:
    story = draining(0.1)
    reservations = story.engine.context.reservations
    assert reservations.idle.suspended_until is None

    story.wakes(10 + 4.8 * HOUR_S)

    assert reservations.idle.share == pytest.approx(1.0)
    assert reservations.idle.suspended_until == DAY_S + 2.5 * HOUR_S


def test_what_is_kept_idle_counts_until_now() -> None:
    story = draining(0.1)
    idle = story.engine.context.reservations.idle

    assert idle.kept(10) == 0
    assert idle.kept(10 + HOUR_S) == 8 * HOUR_S


def test_without_a_budget_reservations_are_never_made_again() -> None:
    story = Story("a b", conf=sparing(0))
    story.arrives(job("one"))
    story.arrives(job("big", 8, 2))
    story.wakes(10)
    reservations = story.engine.context.reservations

    assert reservations.idle.share == 0
    assert reservations.idle.suspended_until is None


def test_five_percent_is_the_default() -> None:
    assert conf(allocate={"reservation": "fair"}).reservation.idle_budget == 0.05


def test_chips_that_another_job_uses_are_not_idle() -> None:
    story = draining(0.1)
    story.arrives(job("high", 4, priority=5), now=10)

    story.wakes(10 + HOUR_S)

    assert story.engine.context.reservations.idle.budget.used == 4 * HOUR_S


def test_a_job_whose_chips_are_free_at_the_end_of_the_budget_starts() -> None:
    story = draining(0.1)

    said = story.hears(JobGone("one"), now=10 + 4.8 * HOUR_S)

    assert said[0].startswith("bind big")


def test_without_a_budget_there_are_no_reservations() -> None:
    story = Story("a b", conf=sparing(0))
    story.arrives(job("one"))
    story.arrives(job("big", 8, 2))

    story.wakes(10)
    story.wakes(2 * DAY_S)

    assert not story.engine.reservations


def test_a_reservation_that_costs_more_than_the_budget_has_left_is_not_made() -> None:
    """A job that has run for an hour is expected to run for another."""
    story = Story("a b", conf=sparing(0.01))
    story.arrives(job("one"))
    story.arrives(job("big", 8, 2), now=HOUR_S)

    assert "wake 3670" in story.wakes(HOUR_S + 10)
    assert not story.engine.reservations
    story.wakes(HOUR_S + 70)
    assert not story.engine.reservations


def test_a_job_that_has_waited_for_a_day_gets_one_whatever_it_costs() -> None:
    story = Story("a b", conf=sparing(0.01))
    story.arrives(job("one"))
    story.arrives(job("big", 8, 2), now=HOUR_S)
    story.wakes(HOUR_S + 10)

    assert "reserved big" in story.wakes(HOUR_S + DAY_S)


def test_stated_times_say_what_a_reservation_costs() -> None:
    story = Story("a b", conf=sparing(0.01))
    story.arrives(job("one", estimate_s=HOUR_S + 100))
    story.arrives(job("big", 8, 2), now=HOUR_S)

    assert "reserved big" in story.wakes(HOUR_S + 10)


def test_a_job_for_which_a_reservation_is_cheap_gets_it_though_it_is_not_first() -> (
    None
):
    story = Story("a b c d", conf=sparing(0.01))
    story.arrives(job("one"), job("two", 8, 2))
    story.arrives(job("brief", 8, estimate_s=HOUR_S + 100), now=0)
    story.arrives(job("big", 8, 4, priority=1), now=HOUR_S)
    story.arrives(job("less", 8), now=HOUR_S)

    said = story.wakes(HOUR_S + 10)

    assert "reserved less" in said
    assert "big" not in story.engine.reservations


def ended(story: Story) -> list[EndedReservation]:
    return [*story.engine.context.reservations.idle.budget.account.ended]


def test_what_each_reservation_cost_is_known_after_its_end() -> None:
    story = draining(0.1)

    story.hears(JobGone("one"), now=10 + HOUR_S)

    assert ended(story) == [
        EndedReservation("big", 10, 10 + HOUR_S, 8 * HOUR_S, Outcome.STARTED)
    ]


@pytest.mark.parametrize("why", ["the budget", "its job", "the rules"])
def test_a_reservation_that_ends_otherwise_says_so(why: str) -> None:
    story, outcome = draining(0.1), Outcome.RELEASED
    if why == "the budget":
        story.wakes(10 + 4.8 * HOUR_S)
        outcome = Outcome.SPENT
    elif why == "its job":
        story.hears(JobGone("big"), now=HOUR_S)
    else:
        story.hears(ConfChanged(sparing(0.2)), now=HOUR_S)

    assert [each.outcome for each in ended(story)] == [outcome]


def test_the_next_leader_makes_none_while_the_budget_is_used_up() -> None:
    story = draining(0.1)
    story.wakes(10 + 4.8 * HOUR_S)
    account = story.engine.context.reservations.idle.account(5 * HOUR_S)
    other = Story("a b", conf=sparing(0.1))
    other.hears(IdleAccountKnown(account), now=5 * HOUR_S)

    other.arrives(job("one"), job("big", 8, 2), now=5 * HOUR_S)
    said = other.wakes(6 * HOUR_S)

    assert "reserved big" not in said
    assert other.engine.context.reservations.idle.suspended_until == (
        DAY_S + 2.5 * HOUR_S
    )
