"""How long jobs ran that have ended, as it is kept for the next leader.

Where it cannot be read or written, predictions come back with the jobs that end.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from ringleaf.engine.event import RunTimesKnown
from ringleaf.framework.run_times import RunSeries, RunTimes
from ringleaf.kube.note_store import BadNote
from ringleaf.model.run_time import Similarity

NAME: Final = "ringleaf-run-times"
KEY: Final = "run-times"
MOST_BYTES: Final = 900 * 1024
NOTHING: Final = "[]"
"""No series, as the ConfigMap has them."""
STEPS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
"""Step of the grid -> the character that stands for it."""
_STEP: Final = {character: step for step, character in enumerate(STEPS)}

_Row = tuple[str, str, str, str, int, str]
"""What the jobs share: by what, queue, user, name, chips; and their running times."""


def text_of(series: Iterable[RunSeries]) -> str:
    """*series* as the ConfigMap has them, without the oldest where there is no room.

    >>> text_of([RunSeries(Similarity.CHIPS, "q", chips=8, steps=(0, 12, 60))])
    '[["chips","q","","",8,"0Cy"]]'
    """
    rows = [
        (
            *(str(each.by), each.queue, each.user, each.name, each.chips),
            "".join(STEPS[step] for step in each.steps),
        )
        for each in series
    ]
    while len(text := msgspec.json.encode(rows)) > MOST_BYTES:
        rows = rows[len(rows) // 8 + 1 :]
    return text.decode()


def series_in(text: str) -> tuple[RunSeries, ...]:
    """The series of a ConfigMap. Raises ``BadNote``.

    >>> series_in('[["user","q","ann","",0,"AB"]]')[0].steps
    (10, 11)
    """
    try:
        rows = msgspec.json.decode(text, type=list[_Row])
        return tuple(
            RunSeries(
                *(Similarity(by), queue, user, name, chips),
                steps=tuple(_STEP[character] for character in steps),
            )
            for by, queue, user, name, chips, steps in rows
        )
    except (ValueError, KeyError, RecursionError) as error:
        raise BadNote(f"{KEY} cannot be read: {error}") from None


class RunTimeNote:
    """Running times for a ``NoteStore``.

    Args:
        run_times: What the engine knows; None until it has heard what was read.
        known: Takes over what was read.

    """

    name, key, empty = NAME, KEY, NOTHING

    def __init__(
        self,
        run_times: Callable[[], RunTimes | None],
        known: Callable[[RunTimesKnown], None],
    ) -> None:
        self._run_times, self._known = run_times, known
        self._last: tuple[RunTimes, int, str] | None = None
        """What the engine knew last, how many jobs it had counted, and the text."""

    def text(self) -> str | None:
        """What the engine knows, made anew where it has counted more."""
        run_times = self._run_times()
        if run_times is None:
            return None
        if self._last is None or self._last[:2] != (run_times, run_times.learnt):
            self._last = (run_times, run_times.learnt, text_of(run_times.series))
        return self._last[2]

    def read(self, text: str) -> None:
        """Take over what was kept. Raises ``BadNote``."""
        if series := series_in(text):
            self._known(RunTimesKnown(series))
