"""When a job that waits could start, by the estimates of those that run."""

from math import inf
from typing import Any, Final

from ringleaf.actions.reserve import soonest_start
from ringleaf.cli.live import moment, span
from ringleaf.cli.output import shortened
from ringleaf.cli.timeline import reservation_words
from ringleaf.framework.job_state import JobState
from ringleaf.kube import names
from ringleaf.kube.jobnames import known_as
from ringleaf.kube.look import Look
from ringleaf.simulator.outcome import reservation_told

Plain = dict[str, Any]

MAX_NAMES: Final = 4


def start_of(look: Look, job_state: JobState) -> tuple[str, Plain | None]:
    """When and where a job that waits could start, in words and as plain values.

    That follows from what is known of the jobs that run; nothing is reserved for it.
    """
    engine, name = look.engine, job_state.job.name
    is_booked = name in engine.reservations
    reservation = engine.reservations.get(name) or soonest_start(
        engine.cycle, job_state
    )
    if reservation is None:
        return "would not start if every running job ended", None
    told = reservation_told(look.engine.view.cluster, reservation)
    if not is_booked:
        told.pop("since", None)
    places = reservation_words(
        {k: v for k, v in told.items() if k not in ("ready-at", "held-by")}
    ).removeprefix("reserved: ")
    world = look.world
    who = shortened([repr(known_as(world, n)) for n in reservation.blockers], MAX_NAMES)
    who += " has ended" if len(reservation.blockers) == 1 else " have ended"
    ready = reservation.ready_at
    if not reservation.blockers:
        words = f"could start soon, on {places}"
    elif ready == inf:
        unknown = [
            name
            for name, other in reservation.blockers.items()
            if other.job.estimate_s is None and not other.terminating
        ]
        some = shortened([repr(known_as(world, n)) for n in unknown], MAX_NAMES)
        have = "has" if len(unknown) == 1 else "have"
        words = (
            f"could start, for example on {places}, once {who}; the time is not known: "
            f"{some} {have} no estimate ({names.ESTIMATE})"
        )
    elif ready <= look.now:
        words = f"could start on {places} once {who}, which is due any time"
    else:
        words = (
            f"could start in {span(ready - look.now)}, at {moment(ready)}, on "
            f"{places}: by then {who}"
        )
    return words, told
