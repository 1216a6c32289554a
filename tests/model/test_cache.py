"""A cache keeps no more than it may, whatever is put into it."""

from ringleaf.model.cache import ENTRY, Cache


def test_what_was_put_is_found() -> None:
    cache: Cache[str, int] = Cache(8, 1 << 20)

    cache.put("a", 1, 10)

    assert (cache.get("a"), cache.get("b")) == (1, None)
    assert (len(cache), cache.size) == (1, 10 + ENTRY)


def test_entries_are_bounded_and_what_is_asked_for_stays() -> None:
    cache: Cache[int, int] = Cache(8, 1 << 20)

    for i in range(100):
        cache.put(i, i, 0)
        assert cache.get(0) == 0

    assert len(cache) <= 8
    assert cache.get(99) == 99
    assert cache.get(50) is None


def test_bytes_are_bounded() -> None:
    cache: Cache[int, str] = Cache(1000, 100_000)

    for i in range(200):
        cache.put(i, "", 10_000)
        assert cache.size <= 100_000

    assert len(cache) == cache.size // (10_000 + ENTRY) > 2


def test_what_is_asked_for_again_counts_once() -> None:
    cache: Cache[int, int] = Cache(4, 1 << 20)
    for i in range(3):
        cache.put(i, i, 100)

    assert [cache.get(i) for i in (0, 1, 2, 0)] == [0, 1, 2, 0]

    assert cache.size == len(cache) * (100 + ENTRY)


def test_an_entry_with_much_of_the_bytes_is_not_kept() -> None:
    cache: Cache[str, str] = Cache(100, 100_000)
    cache.put("small", "x", 1)

    cache.put("large", "y", 25_001)

    assert (cache.get("small"), cache.get("large")) == ("x", None)


def test_nothing_is_left_when_it_is_cleared() -> None:
    cache: Cache[str, int] = Cache(4, 1 << 20)
    for key in "abc":
        cache.put(key, 1, 1)

    cache.clear()

    assert (len(cache), cache.size, cache.get("a")) == (0, 0, None)


def test_a_value_that_is_put_again_takes_the_place_of_the_other() -> None:
    cache: Cache[str, int] = Cache(4, 1 << 20)
    for key in "abcab":
        cache.put(key, 1, 1000)

    cache.put("a", 2, 10)

    assert cache.get("a") == 2
    assert (len(cache), cache.size) == (3, 2010 + 3 * ENTRY)
