"""A rearrangement: running jobs that are moved, what it costs, and what it gains.

A move stops a running job and starts it again elsewhere at once; its new place is free
before the first job stops. It costs what the job has computed since its last
checkpoint, and the time until it works on: chips times seconds. It gains the time that
a pending job waits less, times the chips of that job, or the time that nodes are whole
earlier, times theirs.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from ringleaf.actions.candidates import BIND_S
from ringleaf.actions.reserve import soonest_start
from ringleaf.framework.context import Context
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.reservation import expected_end
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.policies.words import counted


class Mover(Struct, frozen=True):
    """A running job that may be moved.

    Args:
        job: What it asks for.
        placements: Where its pods are, by their numbers.
        lost_s: Seconds of work since its last checkpoint.

    """

    job: Job
    placements: tuple[Placement, ...]
    lost_s: float

    @property
    def chips(self) -> int:
        """Chips that it holds."""
        return sum(len(placement.chips) for placement in self.placements)

    @property
    def restart_s(self) -> float:
        """Seconds from its start until it works on."""
        assert self.job.moving is not None, "only movable jobs are moved"
        return self.job.moving.restart_s

    @property
    def cost(self) -> float:
        """Chip-seconds that are lost when it is moved."""
        return self.chips * (self.lost_s + self.restart_s)

    @property
    def order(self) -> tuple[float, str]:
        """The cheapest first, then by name."""
        return self.cost, self.job.name


class Move(Struct, frozen=True):
    """One job that is moved, and where it starts again."""

    mover: Mover
    after: tuple[Placement, ...]

    @property
    def job(self) -> str:
        """The name of the job."""
        return self.mover.job.name


class MovePlan(Struct, frozen=True):
    """Moves after which a pending job starts, or nodes are whole.

    Args:
        moves: The moves; each place is free before the first job stops.
        job: The job that starts, if the moves are for one.
        places: Where its pods start.
        units: Else the leaves, SuperPoDs or nodes that are whole then, in words.
        chips: Chips of the job, or of the units.
        sooner_s: How many seconds sooner it starts, or they are whole.

    """

    moves: tuple[Move, ...]
    job: str = ""
    places: tuple[Placement, ...] = ()
    units: tuple[str, ...] = ()
    chips: int = 0
    sooner_s: float = 0.0

    @property
    def cost(self) -> float:
        """Chip-seconds that are lost."""
        return sum(move.mover.cost for move in self.moves)

    @property
    def benefit(self) -> float:
        """Chip-seconds that are gained."""
        return self.chips * self.sooner_s

    @property
    def pays(self) -> bool:
        """Whether it gains at least what it costs."""
        return self.benefit >= self.cost


class WhyNot(StrEnum):
    """Why nothing is moved."""

    UNKNOWN = "no such job is pending"
    FITS = "the job fits as the cluster is"
    QUOTA = "the quota of its queue holds the job back, not the place"
    FEW_CHIPS = "too few chips are free"
    NONE_MOVABLE = "no running job may be moved"
    NO_ROOM = "no moves make room"
    TOO_MANY = "more moves are needed than are allowed"
    TOO_COSTLY = "the moves cost more than they gain"


HINTS: Final[Mapping[WhyNot, str]] = MappingProxyType(
    {
        WhyNot.NONE_MOVABLE: "movable: true of a running job says that it may be moved",
        WhyNot.TOO_MANY: "--moves allows more",
    }
)
"""What may help."""


class NoMoves(Struct, frozen=True):
    """No plan, and why; *plan* is the one that was refused, if there is one."""

    why: WhyNot
    detail: str = ""
    plan: MovePlan | None = None
    job: str = ""

    @property
    def message(self) -> str:
        """The reason in words."""
        return f"{self.why}{self.detail and ': '}{self.detail}"

    @property
    def hint(self) -> str:
        """What may help, if anything is known."""
        return HINTS.get(self.why, "")


def movers_of(ctx: Context, gains: Job | None = None) -> list[Mover]:
    """The running jobs that may be moved, the cheapest first.

    Those that say so and that may be evicted: no disruption budget is broken. None of
    a higher priority than the job that *gains*, none that is repaired, ends, lacks pods
    or was bound just now, and none for whose end the reservation of another waits.
    """
    others = [r for r in ctx.reservations if gains is None or r.job.name != gains.name]
    awaited = {name for reservation in others for name in reservation.blockers}
    found = [
        mover_of(job_state, ctx.state.now)
        for name, job_state in ctx.state.job_states.items()
        if _may_move(ctx, job_state)
        and name not in awaited
        and (gains is None or job_state.job.priority <= gains.priority)
    ]
    return sorted(found, key=lambda mover: mover.order)


def _may_move(ctx: Context, job_state: JobState) -> bool:
    job = job_state.job
    if job.moving is None or not job.preemptable or job.critical:
        return False
    if job_state.phase is not Phase.RUNNING or job.name in ctx.repairs.open:
        return False
    partly = job_state.terminating or job_state.finished or job_state.missing
    settled = job_state.history.bound_at + BIND_S <= ctx.state.now
    return not partly and settled and job.replicas > 0


def mover_of(job_state: JobState, now: float) -> Mover:
    """A running job with what is lost if it is moved now."""
    job, started = job_state.job, job_state.started
    assert job.moving is not None
    assert started is not None, "it runs"
    held = job_state.placements
    placements = tuple(held[n] for n in sorted(held))
    return Mover(job, placements, job.moving.lost_s(started, now))


def waited_s(ctx: Context, job_state: JobState) -> float:
    """Seconds that a pending job is expected to wait still if nothing is moved.

    By the running times that jobs state or that are predicted; a job of which none is
    known is expected to run for as long as it has run already. 0, where no end of
    any job is known to help.
    """
    reservation = ctx.reservations.get(job_state.job.name)
    reservation = reservation or soonest_start(ctx, job_state)
    blockers = () if reservation is None else reservation.blockers.values()
    return expected_s(ctx, blockers)


def expected_s(ctx: Context, job_states: Iterable[JobState]) -> float:
    """Seconds until the last of some running jobs is expected to have ended."""
    ends = (expected_end(each, ctx.state.now) for each in job_states)
    return max(ends, default=ctx.state.now) - ctx.state.now


def cost_words(plan: MovePlan) -> str:
    """What a plan costs and gains, for people.

    >>> cost_words(MovePlan((), job="big", chips=16, sooner_s=3600))
    'no moves cost 0 chip-seconds and gain 57,600'
    """
    moves = counted(len(plan.moves), "move")
    cost = "costs" if len(plan.moves) == 1 else "cost"
    gain = "gains" if len(plan.moves) == 1 else "gain"
    return (
        f"{moves} {cost} {plan.cost:,.0f} chip-seconds and {gain} {plan.benefit:,.0f}"
    )
