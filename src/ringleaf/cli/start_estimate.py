"""When a pending job could start, by estimates and predictions of running jobs."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Final

from msgspec import Struct

from ringleaf.actions.reserve import soonest_start
from ringleaf.cli.live import moment
from ringleaf.cli.output import shortened
from ringleaf.cli.timeline import reservation_words
from ringleaf.framework.job_state import JobState
from ringleaf.framework.reservation import ends_at
from ringleaf.kube.job_names import known_as
from ringleaf.kube.names import ESTIMATE
from ringleaf.kube.snapshot import Snapshot
from ringleaf.report.duration import format_duration
from ringleaf.simulator.outcome import reservation_plain

Plain = dict[str, Any]

MAX_NAMES: Final = 4


class Start(Struct, frozen=True):
    """When and where a pending job could start.

    Args:
        plain: As plain values; None if it could not start after any job.
        places: Its nodes and chips, in words.
        blockers: The jobs that are expected to end before, as people know them.
        unknown: Those of them of which no running time is known.
        ready_at: When they have ended.
        now: The time.
        predicted: Which of them is predicted to end last, and from what, in words.

    """

    plain: Plain | None
    places: str = ""
    blockers: dict[str, str] = {}
    unknown: dict[str, str] = {}
    ready_at: float = inf
    now: float = 0.0
    predicted: str = ""

    def words(self, enough: Sequence[str]) -> str:
        """The start in words; the end of any one job of *enough* is enough for it.

        The jobs that are expected to end before are named if no job is enough, or if
        they are the one that is.
        """
        if self.plain is None:
            return "would not start if every running job ended"
        if not self.blockers:
            return f"could start soon, on {self.places}"
        if enough and not (len(self.blockers) == 1 and {*self.blockers} <= {*enough}):
            return self._words_of_others(enough)
        ended = _ended([*self.blockers.values()])
        if self.ready_at == inf:
            return (
                f"could start, for example on {self.places}, once {ended}; "
                f"{_unknown_words([*self.unknown.values()])}"
            )
        if self.ready_at <= self.now:
            return f"could start on {self.places} once {ended}, which is due any time"
        then = f"{ended}{self.predicted and '; '}{self.predicted}"
        return f"could start {self._when()}, on {self.places}: by then {then}"

    def _when(self) -> str:
        left = format_duration(self.ready_at - self.now)
        return f"in {left}, at {moment(self.ready_at)}"

    def _words_of_others(self, enough: Sequence[str]) -> str:
        """The start if one job of *enough* has to end, and others are not named."""
        known = "estimates and predictions" if self.predicted else "estimates"
        by = f"by the {known} of running jobs"
        if self.ready_at <= self.now:
            return f"could start any time on {self.places}, {by}"
        if self.ready_at < inf:
            return f"could start {self._when()}, on {self.places}, {by}"
        which = "any one of " if len(enough) > 1 else ""
        names = shortened([*map(repr, enough)], MAX_NAMES)
        unknown = [*self.unknown.values()] or [*map(repr, enough)]
        return f"could start once {which}{names} has ended; {_unknown_words(unknown)}"


def _ended(names: Sequence[str]) -> str:
    have = "has" if len(names) == 1 else "have"
    return f"{shortened(names, MAX_NAMES)} {have} ended"


def _unknown_words(names: Sequence[str]) -> str:
    have = "has" if len(names) == 1 else "have"
    some = shortened(names, MAX_NAMES)
    return f"the time is not known: {some} {have} no estimate ({ESTIMATE})"


def _named(look: Snapshot, name: str) -> str:
    """A job as people know it, and whether its pods are bound."""
    return repr(known_as(look.cache, name)) + " (not bound)" * (name in look.binds)


def _predicted(names: Mapping[str, str], plain: Plain) -> str:
    """Which of the jobs a start waits for is predicted to end last, and from what."""
    if "predicted" not in plain:
        return ""
    last = plain["predicted"][0]
    end = moment(last["ends-at"])
    return f"{names[last['job']]} is expected to end by {end}, {last['by']}"


def start_of(look: Snapshot, job_state: JobState) -> Start:
    """When and where a pending job could start.

    That follows from what is known of running jobs; nothing is reserved for it.
    """
    engine, name = look.engine, job_state.job.name
    is_booked = name in engine.reservations
    reservation = engine.reservations.get(name) or soonest_start(
        engine.context, job_state
    )
    if reservation is None:
        return Start(None)
    plain = reservation_plain(look.engine.view, reservation)
    if not is_booked:
        plain.pop("since", None)
    places = reservation_words(
        {k: v for k, v in plain.items() if k not in ("ready-at", "held-by")}
    ).removeprefix("reserved: ")
    now = look.engine.view.now
    jobs = {each: _named(look, each) for each in reservation.blockers}
    unknown = {
        each: jobs[each]
        for each, other in reservation.blockers.items()
        if ends_at(other, now) == inf
    }
    ready_at = reservation.ready_at(now)
    predicted = _predicted(jobs, plain)
    return Start(plain, places, jobs, unknown, ready_at, look.now, predicted)
