"""Whose pods go: the fewest that are enough."""

from collections.abc import Callable, Sequence

import pytest

from ringleaf.actions.victims import Choice, EvictionCandidate, Ranking, choices_of


def candidate(
    job: str,
    n_pods: int,
    surplus: int = 0,
    *,
    whole: bool = True,
    loss: float = 1.0,
    kept: Sequence[int] = (),
) -> EvictionCandidate:
    pods = tuple(reversed(range(n_pods)))
    return EvictionCandidate(
        job, pods, surplus, whole, (loss,) * n_pods, frozenset(kept)
    )


def going(chosen: Sequence[Choice]) -> dict[str, tuple[int, ...]]:
    return {one.job: one.pods for one in chosen}


CHOICES = [
    pytest.param(candidate("j", 2), [(), (1, 0)], id="a gang goes whole or not at all"),
    pytest.param(
        candidate("j", 2, 2),
        [(), (1,), (0,), (1, 0)],
        id="of a surplus any pods go",
    ),
    pytest.param(
        candidate("j", 2, 1),
        [(), (1,), (0,), (1, 0)],
        id="no more than the surplus, or all",
    ),
    pytest.param(
        candidate("j", 3, 1, whole=False),
        [(), (2,), (1,), (0,)],
        id="a job that may not go whole gives up its surplus",
    ),
    pytest.param(candidate("j", 2, 0, whole=False), [()], id="or nothing"),
    pytest.param(
        candidate("j", 2, 1, kept=(1,)),
        [(), (0,), (1, 0)],
        id="a pod that its role cannot do without goes with the rest",
    ),
]


@pytest.mark.parametrize(("one", "want"), CHOICES)
def test_what_a_job_can_give_up(
    one: EvictionCandidate, want: list[tuple[int, ...]]
) -> None:
    assert [choice.pods for choice in choices_of(one)] == want


FEWEST = [
    pytest.param(
        [candidate("a", 2), candidate("b", 1)],
        1,
        {"b": (0,)},
        id="fewer pods before more",
    ),
    pytest.param(
        [candidate("a", 1), candidate("b", 2, 1)],
        1,
        {"b": (1,)},
        id="a surplus before pods that are needed",
    ),
    pytest.param(
        [candidate("a", 1, loss=9.0), candidate("b", 1)],
        1,
        {"b": (0,)},
        id="then what loses less",
    ),
    pytest.param(
        [candidate("b", 1), candidate("a", 1)], 1, {"a": (0,)}, id="then the name"
    ),
    pytest.param(
        [candidate("a", 1), candidate("b", 1)],
        3,
        None,
        id="no job where all of them do not suffice",
    ),
    pytest.param([candidate("a", 1)], 0, {}, id="no job where none has to go"),
]


@pytest.mark.parametrize(("several", "enough", "want"), FEWEST)
def test_fewest(
    several: list[EvictionCandidate],
    enough: int,
    want: dict[str, tuple[int, ...]] | None,
) -> None:
    found = Ranking(several).fewest(
        lambda gone: True if sum(c.n_pods for c in gone) >= enough else None
    )

    assert (None if found is None else going(found[0])) == want


def test_the_place_comes_with_the_choice() -> None:
    found = Ranking([candidate("a", 1)]).fewest(lambda gone: f"{len(gone)} gone")

    assert found == ([], "0 gone")


def test_a_choice_is_found_also_where_not_all_may_go_together() -> None:
    several = [candidate("j", 3, 1, whole=False)]

    found = Ranking(several).fewest(
        lambda gone: True if any(1 in c.pods for c in gone) else None
    )

    assert found is not None
    assert going(found[0]) == {"j": (1,)}


MANY = [candidate(f"j{n:02}", 1) for n in range(20)]
"""More choices than are looked at one by one."""


def needs(*jobs: str) -> Callable[[Sequence[Choice]], bool | None]:
    def fits(gone: Sequence[Choice]) -> bool | None:
        return True if {*jobs} <= {one.job for one in gone if one.pods} else None

    return fits


@pytest.mark.parametrize(
    "jobs",
    [("j07",), ("j00", "j19"), (), tuple(f"j{n:02}" for n in range(20))],
    ids=["one of many", "first and last", "none", "all"],
)
def test_of_many_candidates_only_the_needed_ones_are_victims(
    jobs: tuple[str, ...],
) -> None:
    found = Ranking(MANY).fewest(needs(*jobs))

    assert found is not None
    assert going(found[0]).keys() == {*jobs}


def test_of_many_candidates_none_is_a_victim_where_all_do_not_suffice() -> None:
    assert Ranking(MANY).fewest(needs("stranger")) is None


def test_of_many_a_gang_goes_whole_with_its_surplus() -> None:
    gang = candidate("gang", 3, 1)

    def fits(gone: Sequence[Choice]) -> bool | None:
        return True if any(0 in c.pods and c.job == "gang" for c in gone) else None

    found = Ranking([*MANY, gang]).fewest(fits)

    assert found is not None
    assert going(found[0]) == {"gang": (0, 1, 2)}


def test_of_many_only_surplus_pods_go_where_they_are_enough() -> None:
    gang = candidate("gang", 3, 2)

    def fits(gone: Sequence[Choice]) -> bool | None:
        return True if any(c.job == "gang" for c in gone) else None

    found = Ranking([*MANY, gang]).fewest(fits)

    assert found is not None
    assert going(found[0]) == {"gang": (1,)} or going(found[0]) == {"gang": (2,)}


def test_of_many_a_surplus_that_may_go_in_part_is_not_enough() -> None:
    """Only its first pods are looked at; the price of many choices."""
    one = candidate("part", 3, 1, whole=False)

    def fits(gone: Sequence[Choice]) -> bool | None:
        return True if any(c.job == "part" and 0 in c.pods for c in gone) else None

    assert Ranking([*MANY, one]).fewest(fits) is None


def test_a_job_with_too_many_choices_is_not_counted_to_the_end() -> None:
    huge = candidate("huge", 40, 20)

    found = Ranking([huge]).fewest(lambda gone: True if gone else None)

    assert found is not None
    (choice,) = found[0]
    assert choice.n_pods == 1


def test_no_pod_is_a_victim_where_no_choice_suffices() -> None:
    """Though all pods together, more than may go, would be."""
    one = candidate("j", 2, 1, whole=False)

    found = Ranking([one]).fewest(
        lambda gone: True if sum(c.n_pods for c in gone) == 2 else None
    )

    assert found is None


def crowd(n_jobs: int) -> list[EvictionCandidate]:
    """Jobs of one pod of eight chips, the first of which lose most."""
    return [
        EvictionCandidate(f"j{n:04}", (0,), 0, True, (float(n_jobs - n),), chips=(8,))  # noqa: FBT003
        for n in range(n_jobs)
    ]


class Trials:
    """Counts the pods that go in trials, until enough chips are free."""

    def __init__(self, chips: int) -> None:
        self._chips = chips
        self.pods = 0

    def __call__(self, gone: Sequence[Choice]) -> bool | None:
        self.pods += len(gone)
        return True if sum(one.n_chips for one in gone) >= self._chips else None


@pytest.mark.parametrize("missing", [0, 24], ids=["unknown", "known"])
def test_of_many_only_the_cheapest_are_tried(missing: int) -> None:
    """However many there are."""
    trials = Trials(24)

    found = Ranking(crowd(1000)).fewest(trials, missing)

    assert found is not None
    assert [*going(found[0])] == ["j0997", "j0998", "j0999"]
    assert trials.pods < 20


def test_of_many_candidates_none_is_tried_where_all_have_too_few_chips() -> None:
    trials = Trials(0)

    assert Ranking(crowd(20)).fewest(trials, 8 * 21) is None
    assert trials.pods == 0


@pytest.mark.parametrize("n_jobs", [10, 1000], ids=["few choices", "many choices"])
def test_after_so_many_trials_no_cheaper_victims_are_looked_for(n_jobs: int) -> None:
    """Where only a dear choice is enough, which all others would have to fail for."""
    made = 0

    def fits(gone: Sequence[Choice]) -> bool | None:
        nonlocal made
        made += 1
        return True if {"j0000", "j0009"} <= {one.job for one in gone} else None

    found = Ranking(crowd(n_jobs)).fewest(fits, most=12)
    assert found is not None
    assert {"j0000", "j0009"} <= going(found[0]).keys()
    assert made < 12 + 2 * n_jobs.bit_length()

    cheaper = Ranking(crowd(n_jobs)).fewest(fits)
    assert cheaper is not None
    assert {*going(cheaper[0])} == {"j0000", "j0009"}


def test_without_a_choice_that_is_enough_none_is_tried_again() -> None:
    assert Ranking(crowd(3)).fewest(lambda _gone: None, most=1) is None


def test_a_job_that_was_evicted_is_not_tried_again() -> None:
    ranking = Ranking([*crowd(20), candidate("gang", 3, 1)])
    for name in ("j0019", "gang"):
        ranking.drop(name)

    found = ranking.fewest(Trials(8))

    assert found is not None
    assert [*going(found[0])] == ["j0018"]


def test_of_many_those_between_stay_that_can() -> None:
    found = Ranking(crowd(40)).fewest(needs("j0003", "j0030"))

    assert found is not None
    assert [*going(found[0])] == ["j0003", "j0030"]


def test_jobs_that_may_give_up_too_few_of_their_pods_are_not_tried() -> None:
    """Each holds 16 chips, half of which may go; 13 jobs have 8,192 choices."""
    parts = [
        EvictionCandidate(f"j{n:02}", (1, 0), 1, False, (1.0, 1.0), chips=(8, 8))  # noqa: FBT003
        for n in range(13)
    ]
    trials = Trials(13 * 8 + 1)

    assert Ranking(parts).fewest(trials, 13 * 8 + 1) is None
    assert trials.pods == 0
