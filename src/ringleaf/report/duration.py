"""Durations for people: in every table, screen, page and sentence the same way."""

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0


def format_duration(seconds: float | None) -> str:
    """A time in the unit that suits it; a dash where there is none.

    >>> [format_duration(s) for s in (0.0, 0.25, 42.0, 600.0, 5400.0, 200000.0, None)]
    ['0 s', '0.25 s', '42 s', '10.0 min', '1.5 h', '2.3 d', '-']
    """
    if seconds is None:
        return "-"
    size = abs(seconds)
    if size >= 2 * DAY_S:
        return f"{seconds / DAY_S:,.1f} d"
    if size >= HOUR_S:
        return f"{seconds / HOUR_S:.1f} h"
    if size >= 2 * MINUTE_S:
        return f"{seconds / MINUTE_S:.1f} min"
    return f"{seconds:.3g} s"
