"""What the engine need not try again, forgotten."""

from ringleaf.engine.engine import Engine


def drop_memos(engine: Engine) -> None:
    """Forget what failed, but for the exceptions that ``changes.py`` names."""
    ctx = engine.context
    ctx.reservations.over_quota.keep(())
    ctx.pending._satisfied._known.clear()  # noqa: SLF001
    ctx.placer._room.clear()  # noqa: SLF001
    for waitlist in ctx.pending.lists:
        for line in waitlist.classes:
            line.searched.clear()
    for reservation in ctx.reservations:
        reservation.searched.clear()
