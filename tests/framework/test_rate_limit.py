"""The eviction rate limit: how many pods faults may delete in a while."""

import pytest

from ringleaf.framework.repairs import EvictionRateLimit
from ringleaf.model.fault import Deletion
from ringleaf.model.settings import RepairSettings


@pytest.mark.parametrize(
    ("percent", "deleted", "more", "allowed"),
    [
        pytest.param(5, 0, 50, True, id="the first job may be larger than the limit"),
        pytest.param(5, 3, 2, True, id="up to the limit"),
        pytest.param(5, 3, 3, False, id="beyond the limit"),
        pytest.param(100, 90, 90, True, id="without a limit, whatever is deleted"),
    ],
)
def test_what_the_rate_limit_allows_of_100_pods(
    percent: int,
    deleted: int,
    more: int,
    allowed: bool,  # noqa: FBT001 - a table
) -> None:
    rate_limit = EvictionRateLimit()
    if deleted:
        rate_limit.count(10.0, "j", deleted)

    assert (
        rate_limit.allows(more, 100, 20.0, RepairSettings(brake_percent=percent))
        is allowed
    )


def test_deletions_are_forgotten_after_the_window() -> None:
    rate_limit, rules = EvictionRateLimit(), RepairSettings(brake_percent=5, brake_s=60)
    rate_limit.count(10.0, "j", 5)

    assert not rate_limit.allows(1, 100, 69.0, rules)
    assert rate_limit.next_at(rules) == 70.0
    assert rate_limit.allows(1, 100, 70.0, rules)


def test_what_is_known_twice_counts_once_and_what_is_late_in_its_place() -> None:
    rate_limit, rules = EvictionRateLimit(), RepairSettings(brake_s=60)
    for at, job in ((10.0, "j"), (10.0, "j"), (5.0, "k")):
        rate_limit.count_once(at, job, 2)

    assert rate_limit.recent(20.0, rules) == 4
    assert rate_limit.next_at(rules) == 65.0


def test_what_was_written_down_is_the_number_whatever_a_record_says() -> None:
    rate_limit, rules = EvictionRateLimit(), RepairSettings(brake_s=60)
    written = [Deletion(4.0, "k", 3), Deletion(10.0, "j", 1), Deletion(10.0, "j", 1)]
    rate_limit.count_once(10.0, "j", 5)
    for _twice in range(2):
        rate_limit.restore(written, 20.0)
    rate_limit.count_once(10.0, "j", 5)

    assert rate_limit.recent(20.0, rules) == 5
    assert rate_limit.next_at(rules) == 64.0


def test_what_was_deleted_later_than_now_was_deleted_now() -> None:
    rate_limit, rules = EvictionRateLimit(), RepairSettings(brake_s=60)
    rate_limit.restore([Deletion(1e9, "j", 5)], 20.0)

    assert rate_limit.next_at(rules) == 80.0


def test_what_is_deleted_twice_at_one_time_counts_twice() -> None:
    rate_limit, rules = EvictionRateLimit(), RepairSettings(brake_s=60)
    rate_limit.count(10.0, "j", 2)
    rate_limit.count(10.0, "j", 3)

    assert rate_limit.recent(20.0, rules) == 5
    assert rate_limit.allows(0, 100, 20.0, rules)


def test_a_sum_of_many_deletions_replaces_the_one_before_and_what_it_counts() -> None:
    rate_limit, rules = EvictionRateLimit(), RepairSettings(brake_s=60)
    rate_limit.count_once(10.0, "early", 3)
    for pods in (7, 9):
        rate_limit.restore(
            [Deletion(10.0 + pods, "", pods), Deletion(30.0, "j", 1)], 40.0
        )
    rate_limit.count_once(15.0, "also early", 3)
    rate_limit.count_once(31.0, "late", 2)

    assert rate_limit.recent(40.0, rules) == 12
