"""Which pods go so that a whole job fits: the fewest that are enough.

A job gives up either pods beyond those it cannot do without, or all of them. Of all
choices after which the job fits, the one with the fewest pods is taken; among those the
one that breaks fewer jobs' gangs, then the one that loses fewer chip-seconds.

Where the choices are few all of them are looked at. Where they are many, pods are
ranked by what is lost with them: of the cheapest so many go, in a trial, that the job
fits, and then those stay that can, the dearest first. A trial places all pods of the
job, so there are only so many trials for a large one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations, islice, product
from math import inf
from typing import Final, Generic, TypeVar

from msgspec import Struct

MAX_CHOICES: Final = 5_000
"""Up to so many choices all of them are looked at."""

_T = TypeVar("_T")


class EvictionCandidate(Struct, frozen=True, dict=True):
    """What one job can give up.

    Args:
        job: Its name.
        pods: Pods that may go, the first to go first.
        surplus: How many of them it can do without.
        whole: Whether all of its pods may go; *pods* are then all of them.
        loss: Chip-seconds that each of the pods loses.
        kept: Pods that stay unless all go, because their role is short of others.
        chips: Chips that each of the pods holds; none where they are not counted.

    """

    job: str
    pods: tuple[int, ...]
    surplus: int
    whole: bool
    loss: tuple[float, ...]
    kept: frozenset[int] = frozenset()
    chips: tuple[int, ...] = ()

    def choice(self, pods: tuple[int, ...], n_needed: int) -> "Choice":
        """*pods* of it, *n_needed* of which it could not do without."""
        if pods == self.pods:
            return self._choice(pods, n_needed, range(len(pods)))
        where = {pod: i for i, pod in enumerate(self.pods)}
        return self._choice(pods, n_needed, [where[pod] for pod in pods])

    def _choice(
        self, pods: tuple[int, ...], n_needed: int, at: Sequence[int]
    ) -> "Choice":
        return Choice(
            n_pods=len(pods),
            n_needed=n_needed,
            loss=sum(self.loss[i] for i in at),
            job=self.job,
            pods=pods,
            n_chips=sum(self.chips[i] for i in at) if self.chips else 0,
        )

    @cached_property
    def spare(self) -> tuple[int, ...]:
        """The pods that may go alone, no more than the surplus of them."""
        if not self.kept:
            return self.pods
        return tuple(pod for pod in self.pods if pod not in self.kept)

    @property
    def some(self) -> int:
        """How many may go without the rest."""
        return min(self.surplus, len(self.spare))

    @cached_property
    def n_choices(self) -> int:
        """How many choices it has, counted no further than is needed."""
        return sum(1 for _choice in islice(choices_of(self), MAX_CHOICES + 1))

    @cached_property
    def units(self) -> tuple["Choice", ...]:
        """What goes or stays as one: each pod of a surplus, and the rest."""
        n_alone = self.some
        alone = self.spare[:n_alone]
        rest = tuple(p for p in self.pods if p not in alone) if alone else self.pods
        whole = [self.choice(rest, len(rest))] if self.whole and rest else []
        return (*whole, *(self.choice((pod,), 0) for pod in alone))


class Choice(Struct, frozen=True, order=True):
    """Pods of one job that go; the cheaper choice is the lesser one."""

    n_pods: int
    n_needed: int
    """Pods that the job could not do without."""
    loss: float
    job: str
    pods: tuple[int, ...]
    n_chips: int = 0


class _Trials(Generic[_T]):
    """Trials of what fits after some choices; so many of them may be made."""

    def __init__(
        self, fits: Callable[[Sequence[Choice]], _T | None], most: float
    ) -> None:
        self._fits, self._left = fits, most

    def __call__(self, chosen: Sequence[Choice]) -> _T | None:
        self._left -= 1
        return self._fits(chosen)

    @property
    def are_spent(self) -> bool:
        return self._left <= 0


class Ranking:
    """What jobs can give up, ranked once; jobs leave it when they are evicted."""

    def __init__(self, candidates: Iterable[EvictionCandidate]) -> None:
        self._candidates = {one.job: one for one in candidates}
        self._place = {job: number for number, job in enumerate(self._candidates)}
        units = [unit for one in self._candidates.values() for unit in one.units]
        units.sort(key=lambda u: (-u.n_needed, -u.n_pods, -u.loss, u.job))
        self._units = units
        """What goes or stays as one, the dearest first."""
        self._n_chips = sum(sum(one.chips) for one in self._candidates.values())

    def __bool__(self) -> bool:
        return bool(self._candidates)

    @property
    def n_jobs(self) -> int:
        """The jobs that can give up something."""
        return len(self._candidates)

    def drop(self, job: str) -> EvictionCandidate:
        """Nothing of *job* can go any more; what could."""
        candidate = self._candidates.pop(job)
        self._n_chips -= sum(candidate.chips)
        left = len(candidate.units)
        at = len(self._units)
        while left:
            at -= 1
            if self._units[at].job == job:
                del self._units[at]
                left -= 1
        return candidate

    def fewest(
        self,
        fits: Callable[[Sequence[Choice]], _T | None],
        missing: int = 0,
        most: float = inf,
    ) -> tuple[list[Choice], _T] | None:
        """The cheapest choices after which *fits* finds a place, and that place.

        Choices are not tried that free fewer chips than are *missing*. After *most*
        trials no cheaper choices are looked for than those that are known by then.
        """
        if self._n_chips < missing:
            return None
        trials = _Trials(fits, most)
        if self._has_few_choices():
            found = self._cheapest_way(trials)
            if found is not None or not trials.are_spent:
                return found
        return self._victims_by_units(trials, missing)

    def _cheapest_way(self, fits: _Trials[_T]) -> tuple[list[Choice], _T] | None:
        """The cheapest of all ways to choose, as far as they may be tried."""
        candidates = [*self._candidates.values()]
        if fits([_everything(one) for one in candidates]) is None:
            return None
        for cheapest in _in_order(candidates):
            if fits.are_spent:
                return None
            if (place := fits(cheapest)) is not None:
                return cheapest, place
        return None

    def _has_few_choices(self) -> bool:
        """Whether all ways to choose can be looked at."""
        count = 1
        for one in self._candidates.values():
            count *= one.n_choices
            if count > MAX_CHOICES:
                return False
        return True

    def _victims_by_units(
        self, fits: _Trials[_T], missing: int
    ) -> tuple[list[Choice], _T] | None:
        """The fewest of the cheapest units, then without those that can stay.

        One unit more stays each time, then twice as many, as long as they can. Of a
        surplus that may go only in part, the first pods are looked at.
        """
        found = self._cheapest(fits, missing)
        if found is None:
            return None
        going, place = found
        chips = [self._chips_with(unit) for unit in going]
        spare = sum(chips) - missing
        at, step = 1, 1
        while at < len(going) and not fits.are_spent:
            less = sum(chips[at : at + step])
            left = going[:at] + going[at + step :]
            fewer = fits(self._joined(left)) if less <= spare else None
            if fewer is not None:
                going, place, spare = left, fewer, spare - less
                del chips[at : at + step]
                step *= 2
            elif step > 1:
                step //= 2
            else:
                at += 1
        return self._joined(going), place

    def _cheapest(
        self, fits: Callable[[Sequence[Choice]], _T | None], missing: int
    ) -> tuple[list[Choice], _T] | None:
        """The fewest units that are enough, the cheapest first.

        At first as many as may be enough, without those that hold no chips: any number
        of them may be cheaper than the first that does. Then with them, and twice as
        many each time until they are enough; then halves of the last step.
        """
        n_units = len(self._units)
        high, chips = 0, 0
        while chips < missing:
            if high == n_units:
                return None
            high += 1
            chips += self._chips_with(self._units[-high])
        lean = [unit for unit in self._last(high) if self._chips_with(unit)]
        if len(lean) < high and (place := fits(self._joined(lean))) is not None:
            return lean, place
        low = high - 1
        while (place := fits(self._joined(self._last(high)))) is None:
            if high == n_units:
                return None
            low, high = high, min(n_units, max(1, 2 * high))
        while high - low > 1:
            middle = (low + high) // 2
            fewer = fits(self._joined(self._last(middle)))
            if fewer is None:
                low = middle
            else:
                high, place = middle, fewer
        return self._last(high), place

    def _chips_with(self, unit: Choice) -> int:
        """The chips that are free at most when *unit* goes."""
        return sum(self._candidates[unit.job].chips) if unit.n_needed else unit.n_chips

    def _last(self, count: int) -> list[Choice]:
        return self._units[len(self._units) - count :]

    def _joined(self, units: Sequence[Choice]) -> list[Choice]:
        """One choice a job; a gang that is broken goes whole, its surplus too."""
        going: dict[str, list[Choice]] = {}
        for unit in units:
            going.setdefault(unit.job, []).append(unit)
        joined = []
        for job in sorted(going, key=self._place.__getitem__):
            one, own = self._candidates[job], going[job]
            if any(unit.n_needed for unit in own):
                own = [*one.units]
            pods = tuple(sorted(pod for unit in own for pod in unit.pods))
            joined.append(one.choice(pods, sum(unit.n_needed for unit in own)))
        return joined


def _everything(candidate: EvictionCandidate) -> Choice:
    """All pods that may go in any choice, more of them than may go together."""
    return candidate.choice(candidate.pods if candidate.whole else candidate.spare, 0)


def choices_of(candidate: EvictionCandidate) -> Iterator[Choice]:
    """What one job can give up: nothing, some of its surplus, everything."""
    yield candidate.choice((), 0)
    some = candidate.some
    for n_pods in range(1, some + 1):
        for pods in combinations(candidate.spare, n_pods):
            yield candidate.choice(pods, 0)
    if candidate.whole and len(candidate.pods) > some:
        yield candidate.choice(candidate.pods, len(candidate.pods) - some)


def _in_order(candidates: Sequence[EvictionCandidate]) -> list[list[Choice]]:
    """All ways to choose, the cheapest first."""

    def cost(chosen: Sequence[Choice]) -> tuple[int, int, float, list[str]]:
        return (
            sum(each.n_pods for each in chosen),
            sum(each.n_needed for each in chosen),
            sum(each.loss for each in chosen),
            [each.job for each in chosen],
        )

    ways = product(*(list(choices_of(one)) for one in candidates))
    some = ([each for each in way if each.pods] for way in ways)
    return sorted(some, key=cost)
