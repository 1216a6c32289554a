"""Whose pods go so that a whole job fits: the fewest that are enough.

A job gives up either pods beyond those it cannot do without, or all of them. Of all
choices after which the job fits, the one with the fewest pods is taken; among those the
one that breaks fewer jobs' gangs, then the one that loses fewer chip-seconds.

Where the choices are few all of them are looked at. Where they are many, everybody goes
in thought, and whoever can stay is taken back, the greatest loss first.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from math import prod
from typing import Final, TypeVar

from msgspec import Struct

MAX_CHOICES: Final = 5_000
"""Up to so many choices all of them are looked at."""

_T = TypeVar("_T")


class Prey(Struct, frozen=True):
    """What one job can give up.

    Args:
        job: Its name.
        pods: Pods that may go, the first to go first.
        surplus: How many of them it can do without.
        whole: Whether all of its pods may go; *pods* are then all of them.
        loss: Chip-seconds that each of the pods loses.
        kept: Pods that stay unless all go, because their role is short of others.
        chips: Chips that each of the pods holds; none where nobody counts them.

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
        at = [self.pods.index(pod) for pod in pods]
        return Choice(
            n_pods=len(pods),
            n_needed=n_needed,
            loss=sum(self.loss[i] for i in at),
            job=self.job,
            pods=pods,
            n_chips=sum(self.chips[i] for i in at) if self.chips else 0,
        )

    @property
    def spare(self) -> tuple[int, ...]:
        """The pods that may go alone, no more than the surplus of them."""
        return tuple(pod for pod in self.pods if pod not in self.kept)

    @property
    def some(self) -> int:
        """How many may go without the rest."""
        return min(self.surplus, len(self.spare))


class Choice(Struct, frozen=True, order=True):
    """Pods of one job that go; the cheaper choice is the lesser one."""

    n_pods: int
    n_needed: int
    """Pods that the job could not do without."""
    loss: float
    job: str
    pods: tuple[int, ...]
    n_chips: int = 0


def fewest_victims(
    prey: Sequence[Prey], fits: Callable[[Sequence[Choice]], _T | None]
) -> tuple[list[Choice], _T] | None:
    """The cheapest choices after which *fits* finds a place, and that place."""
    if fits([_everything(one) for one in prey]) is None:
        return None
    if prod(_n_choices(one) for one in prey) <= MAX_CHOICES:
        for cheapest in _in_order(prey):
            if (place := fits(cheapest)) is not None:
                return cheapest, place
        return None
    return _who_can_stay(prey, fits)


def _everything(prey: Prey) -> Choice:
    """All pods that may go in any choice, more of them than may go together."""
    return prey.choice(prey.pods if prey.whole else prey.spare, 0)


def choices_of(prey: Prey) -> Iterator[Choice]:
    """What one job can give up: nothing, some of its surplus, everything."""
    yield prey.choice((), 0)
    some = prey.some
    for n_pods in range(1, some + 1):
        for pods in combinations(prey.spare, n_pods):
            yield prey.choice(pods, 0)
    if prey.whole and len(prey.pods) > some:
        yield prey.choice(prey.pods, len(prey.pods) - some)


def _n_choices(prey: Prey) -> int:
    """How many there are, counted no further than is needed."""
    count = 0
    for count, _choice in enumerate(choices_of(prey), 1):
        if count > MAX_CHOICES:
            break
    return count


def _in_order(prey: Sequence[Prey]) -> list[list[Choice]]:
    """All ways to choose, the cheapest first."""

    def cost(chosen: Sequence[Choice]) -> tuple[int, int, float, list[str]]:
        return (
            sum(each.n_pods for each in chosen),
            sum(each.n_needed for each in chosen),
            sum(each.loss for each in chosen),
            [each.job for each in chosen],
        )

    ways = product(*(list(choices_of(one)) for one in prey))
    some = ([each for each in way if each.pods] for way in ways)
    return sorted(some, key=cost)


def _who_can_stay(
    prey: Sequence[Prey], fits: Callable[[Sequence[Choice]], _T | None]
) -> tuple[list[Choice], _T] | None:
    """Take back whoever can stay, by halves of those not looked at yet.

    Of a surplus that may go only in part, the first pods are looked at.
    """
    units = [unit for one in prey for unit in _units(one)]
    units.sort(key=lambda unit: (-unit.n_needed, -unit.n_pods, -unit.loss, unit.job))
    place = fits(_joined(units, prey))
    if place is None:
        return None
    going, at, step = units, 0, max(1, len(units) // 2)
    while at < len(going):
        left = going[:at] + going[at + step :]
        found = fits(_joined(left, prey))
        if found is not None:
            going, place = left, found
            step = max(1, min(step, len(going) - at))
        elif step > 1:
            step //= 2
        else:
            at += 1
            step = max(1, (len(going) - at) // 2)
    return _joined(going, prey), place


def _units(prey: Prey) -> Iterator[Choice]:
    """What goes or stays as one: each pod of a surplus, and the rest."""
    alone = prey.spare[: prey.some]
    rest = tuple(pod for pod in prey.pods if pod not in alone)
    if prey.whole and rest:
        yield prey.choice(rest, len(rest))
    for pod in alone:
        yield prey.choice((pod,), 0)


def _joined(units: Sequence[Choice], prey: Sequence[Prey]) -> list[Choice]:
    """One choice a job; a gang that is broken goes whole, its surplus too."""
    going: dict[str, list[Choice]] = {}
    for unit in units:
        going.setdefault(unit.job, []).append(unit)
    joined = []
    for one in prey:
        own = going.get(one.job, [])
        if any(unit.n_needed for unit in own):
            own = list(_units(one))
        if own:
            pods = tuple(sorted(pod for unit in own for pod in unit.pods))
            joined.append(one.choice(pods, sum(unit.n_needed for unit in own)))
    return joined
