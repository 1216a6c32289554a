"""What the engine need not try again, forgotten."""

from ringleaf.engine.engine import Engine


def drop_memos(engine: Engine) -> None:
    """Forget what failed, but for the exceptions that ``changes.py`` names."""
    cycle = engine.cycle
    cycle.reservations.over_quota.keep(())
    cycle.pending._satisfied._known.clear()  # noqa: SLF001
    cycle.placer._room.clear()  # noqa: SLF001
    for waitlist in cycle.pending.lists:
        for line in waitlist.classes:
            line.searched.clear()
    for reservation in cycle.reservations:
        reservation.searched.clear()
