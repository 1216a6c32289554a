"""What reservations may keep idle in 24 hours."""

from math import inf

import pytest

from ringleaf.framework.idle_budget import (
    BUCKET_S,
    MOST_BUCKETS,
    MOST_ENDED,
    WINDOW_S,
    EndedReservation,
    IdleAccount,
    IdleBudget,
    Outcome,
)

HOUR_S = 3600.0


def counted(*spans: tuple[float, int]) -> IdleBudget:
    """A budget after so many chips were idle until each of these hours."""
    budget = IdleBudget()
    budget.count(0, 0)
    for hour, idle in spans:
        budget.count(hour * HOUR_S, idle)
    return budget


def test_chip_seconds_are_added_up() -> None:
    budget = counted((1, 8), (2, 0), (2.5, 4))

    assert budget.used == budget.kept_idle == 8 * HOUR_S + 4 * HOUR_S / 2


def test_nothing_is_counted_before_the_first_call_or_when_time_goes_back() -> None:
    budget = IdleBudget()
    budget.count(HOUR_S, 8)
    assert budget.used == 0

    budget.count(HOUR_S / 2, 8)
    assert budget.used == 0
    budget.count(2 * HOUR_S, 8)
    assert budget.used == 8 * HOUR_S


def test_what_is_older_than_a_day_does_not_count_bucket_by_bucket() -> None:
    budget = counted((0.5, 8))
    half = 8 * BUCKET_S

    for hour, used in ((24, 2), (24.25, 1), (24.49, 1), (24.5, 0)):
        budget.count(hour * HOUR_S, 0)
        assert budget.used == used * half

    assert budget.kept_idle == 2 * half


def test_a_budget_lasts_as_long_as_chips_are_idle() -> None:
    budget = counted((1, 8))

    assert budget.update(16 * HOUR_S, 4) == 3 * HOUR_S
    assert budget.update(16 * HOUR_S, 0) == inf
    assert not budget.is_spent


def test_a_budget_that_is_used_up_is_open_again_when_half_of_it_is_there() -> None:
    budget = counted((1, 8))
    limit = 8 * HOUR_S

    again = budget.update(limit, 8)

    assert budget.is_spent
    assert again == WINDOW_S + 2 * BUCKET_S
    budget.count(again - 1, 0)
    assert budget.update(limit, 0) == again
    budget.count(again, 0)
    budget.update(limit, 0)
    assert not budget.is_spent


def test_a_timer_that_is_a_little_early_does_not_ask_again_and_again() -> None:
    budget = counted((1, 8))

    budget.update(8 * HOUR_S + 0.001, 8)

    assert budget.is_spent


def test_no_budget_is_always_used_up() -> None:
    budget = IdleBudget()

    assert [budget.update(0, 0), budget.update(0, 0)] == [inf, inf]
    assert budget.is_spent


@pytest.mark.parametrize("chips", [1, 512])
def test_an_unlimited_budget_is_never_used_up(chips: int) -> None:
    budget = counted((1000, chips))

    assert budget.update(inf, chips) == inf
    assert not budget.is_spent


# What the next leader has to know.


def ended(job: str, until: float = 0) -> EndedReservation:
    return EndedReservation(job, -1, until, 0, Outcome.STARTED)


def test_what_was_written_is_known_however_often_it_is_heard() -> None:
    before = counted((1, 8))
    before.update(8 * HOUR_S, 8)
    before.note(ended("big"))
    after = IdleBudget()
    after.count(2 * HOUR_S, 0)

    for _time in range(2):
        after.restore(before.account_at(2 * HOUR_S, 0))

    assert after.account == before.account
    assert after.used == before.used == 8 * HOUR_S
    assert after.is_spent


def test_what_is_kept_since_the_last_count_is_written_too() -> None:
    budget = counted((1, 8))

    account = budget.account_at(1.5 * HOUR_S, 4)

    assert sum(amount for _end, amount in account.buckets) == 10 * HOUR_S
    assert budget.used == 8 * HOUR_S


def test_what_is_counted_already_is_not_lost() -> None:
    budget = counted((0.25, 8))

    budget.restore(IdleAccount(((BUCKET_S, 1.0), (2 * BUCKET_S, 5.0))))

    assert budget.account.buckets == ((BUCKET_S, 8 * BUCKET_S), (2 * BUCKET_S, 5.0))


def test_what_a_clock_ahead_of_ours_wrote_does_not_count() -> None:
    budget = counted((1, 0))

    budget.restore(IdleAccount(((DAY_AFTER, 5.0),)))

    assert not budget.account.buckets


DAY_AFTER = 2 * WINDOW_S


def test_no_more_is_kept_than_there_is_room_for() -> None:
    budget = IdleBudget()
    budget.count(0, 0)
    for quarter in range(1, 200):
        budget.count(quarter * BUCKET_S, 8)
        budget.note(ended(f"j{quarter}", quarter))

    budget.restore(IdleAccount(ended=(ended("old", -1),)))

    assert len(budget.account.buckets) <= MOST_BUCKETS
    kept = [each.job for each in budget.account.ended]
    assert kept == [f"j{n}" for n in range(200 - MOST_ENDED, 200)]
