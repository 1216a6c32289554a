"""Whose pods go: the fewest that are enough."""

from collections.abc import Callable, Sequence

import pytest

from ringleaf.actions.victims import Choice, Prey, choices_of, fewest_victims


def prey(
    job: str,
    n_pods: int,
    surplus: int = 0,
    *,
    whole: bool = True,
    loss: float = 1.0,
    kept: Sequence[int] = (),
) -> Prey:
    pods = tuple(reversed(range(n_pods)))
    return Prey(job, pods, surplus, whole, (loss,) * n_pods, frozenset(kept))


def going(chosen: Sequence[Choice]) -> dict[str, tuple[int, ...]]:
    return {one.job: one.pods for one in chosen}


CHOICES = [
    pytest.param(prey("j", 2), [(), (1, 0)], id="a gang goes whole or not at all"),
    pytest.param(
        prey("j", 2, 2),
        [(), (1,), (0,), (1, 0)],
        id="of a surplus any pods go",
    ),
    pytest.param(
        prey("j", 2, 1), [(), (1,), (0,), (1, 0)], id="no more than the surplus, or all"
    ),
    pytest.param(
        prey("j", 3, 1, whole=False),
        [(), (2,), (1,), (0,)],
        id="who may not go whole gives up its surplus",
    ),
    pytest.param(prey("j", 2, 0, whole=False), [()], id="or nothing"),
    pytest.param(
        prey("j", 2, 1, kept=(1,)),
        [(), (0,), (1, 0)],
        id="a pod that its role cannot do without goes with the rest",
    ),
]


@pytest.mark.parametrize(("one", "want"), CHOICES)
def test_what_a_job_can_give_up(one: Prey, want: list[tuple[int, ...]]) -> None:
    assert [choice.pods for choice in choices_of(one)] == want


FEWEST = [
    pytest.param(
        [prey("a", 2), prey("b", 1)], 1, {"b": (0,)}, id="fewer pods before more"
    ),
    pytest.param(
        [prey("a", 1), prey("b", 2, 1)],
        1,
        {"b": (1,)},
        id="a surplus before pods that are needed",
    ),
    pytest.param(
        [prey("a", 1, loss=9.0), prey("b", 1)],
        1,
        {"b": (0,)},
        id="then what loses less",
    ),
    pytest.param([prey("b", 1), prey("a", 1)], 1, {"a": (0,)}, id="then the name"),
    pytest.param(
        [prey("a", 1), prey("b", 1)], 3, None, id="nobody where all do not do"
    ),
    pytest.param([prey("a", 1)], 0, {}, id="nobody where nobody need go"),
]


@pytest.mark.parametrize(("several", "enough", "want"), FEWEST)
def test_fewest(
    several: list[Prey], enough: int, want: dict[str, tuple[int, ...]] | None
) -> None:
    found = fewest_victims(
        several, lambda gone: True if sum(c.n_pods for c in gone) >= enough else None
    )

    assert (None if found is None else going(found[0])) == want


def test_the_place_comes_with_the_choice() -> None:
    found = fewest_victims([prey("a", 1)], lambda gone: f"{len(gone)} gone")

    assert found == ([], "0 gone")


def test_a_choice_is_found_also_where_not_all_may_go_together() -> None:
    several = [prey("j", 3, 1, whole=False)]

    found = fewest_victims(
        several, lambda gone: True if any(1 in c.pods for c in gone) else None
    )

    assert found is not None
    assert going(found[0]) == {"j": (1,)}


MANY = [prey(f"j{n:02}", 1) for n in range(20)]
"""More choices than are looked at one by one."""


def needs(*jobs: str) -> Callable[[Sequence[Choice]], bool | None]:
    def fits(gone: Sequence[Choice]) -> bool | None:
        return True if {*jobs} <= {one.job for one in gone if one.pods} else None

    return fits


@pytest.mark.parametrize(
    "jobs",
    [("j07",), ("j00", "j19"), (), tuple(f"j{n:02}" for n in range(20))],
    ids=["one of many", "first and last", "nobody", "all"],
)
def test_of_many_whoever_can_stay_stays(jobs: tuple[str, ...]) -> None:
    found = fewest_victims(MANY, needs(*jobs))

    assert found is not None
    assert going(found[0]).keys() == {*jobs}


def test_of_many_nobody_goes_where_all_do_not_do() -> None:
    assert fewest_victims(MANY, needs("stranger")) is None


def test_of_many_a_gang_goes_whole_with_its_surplus() -> None:
    gang = prey("gang", 3, 1)

    def fits(gone: Sequence[Choice]) -> bool | None:
        return True if any(0 in c.pods and c.job == "gang" for c in gone) else None

    found = fewest_victims([*MANY, gang], fits)

    assert found is not None
    assert going(found[0]) == {"gang": (0, 1, 2)}


def test_of_many_only_surplus_pods_go_where_they_are_enough() -> None:
    gang = prey("gang", 3, 2)

    def fits(gone: Sequence[Choice]) -> bool | None:
        return True if any(c.job == "gang" for c in gone) else None

    found = fewest_victims([*MANY, gang], fits)

    assert found is not None
    assert going(found[0]) == {"gang": (1,)} or going(found[0]) == {"gang": (2,)}


def test_of_many_a_surplus_that_may_go_in_part_is_not_enough() -> None:
    """Only its first pods are looked at; the price of many choices."""
    one = prey("part", 3, 1, whole=False)

    def fits(gone: Sequence[Choice]) -> bool | None:
        return True if any(c.job == "part" and 0 in c.pods for c in gone) else None

    assert fewest_victims([*MANY, one], fits) is None


def test_a_job_with_too_many_choices_is_not_counted_to_the_end() -> None:
    huge = prey("huge", 40, 20)

    found = fewest_victims([huge], lambda gone: True if gone else None)

    assert found is not None
    (choice,) = found[0]
    assert choice.n_pods == 1


def test_nobody_goes_where_no_choice_is_enough() -> None:
    """Though all pods together, more than may go, would be."""
    one = prey("j", 2, 1, whole=False)

    found = fewest_victims(
        [one], lambda gone: True if sum(c.n_pods for c in gone) == 2 else None
    )

    assert found is None
