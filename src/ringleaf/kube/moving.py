"""What a job says about being moved: whether, and what a restart costs it.

The label stands on the PodGroup or the pods, the annotations on the PodGroup at any
time: a job that saves its work writes there when it last did. A value that cannot be
read counts as if it were not there, and is reported.
"""

from collections.abc import Mapping
from typing import Final

from ringleaf.kube import names
from ringleaf.kube.pod_state import seconds_of
from ringleaf.kube.quantity import whole_number
from ringleaf.model.moving import Moving
from ringleaf.model.topology import quoted

LABEL: Final = names.MOVABLE
ANNOTATIONS: Final = (
    names.RESTART_SECONDS,
    names.CHECKPOINT_SECONDS,
    names.CHECKPOINTED_AT,
)
MOST_FOUND: Final = 60
"""Characters that are shown of a value that a user wrote."""
_WANTED: Final[Mapping[str, str]] = {
    names.MOVABLE: "true or false; the job is not moved",
    names.RESTART_SECONDS: "a whole number of seconds; it counts as 0",
    names.CHECKPOINT_SECONDS: "a whole number of seconds; it is ignored",
    names.CHECKPOINTED_AT: "a time such as 2026-01-31T12:00:00Z; it is ignored",
}


def moving_of(traits: Mapping[str, str]) -> Moving | None:
    """What is lost when a job is moved; None for a job that may not be moved.

    >>> moving_of({}), moving_of({"ringleaf.io/movable": "yes"})
    (None, None)
    >>> moving_of({"ringleaf.io/movable": "true", "ringleaf.io/restart-seconds": "90"})
    Moving(restart_s=90.0, checkpointed_at=None, checkpoint_s=None)
    """
    if traits.get(names.MOVABLE) != "true":
        return None
    every = whole_number(traits.get(names.CHECKPOINT_SECONDS, ""))
    return Moving(
        restart_s=float(whole_number(traits.get(names.RESTART_SECONDS, "")) or 0),
        checkpointed_at=seconds_of(traits.get(names.CHECKPOINTED_AT, "")) or None,
        checkpoint_s=None if every is None else float(every),
    )


def misread(traits: Mapping[str, str]) -> str:
    """Which values cannot be read, and what counts instead; empty if all can.

    >>> misread({"ringleaf.io/movable": "yes"})
    "label ringleaf.io/movable is 'yes', want true or false; the job is not moved"
    """
    found = []
    for key in (LABEL, *ANNOTATIONS):
        text = traits.get(key)
        if text is None or _is_read(key, text):
            continue
        kind = "label" if key == LABEL else "annotation"
        wanted = _WANTED[key]
        found.append(f"{kind} {key} is {quoted(text[:MOST_FOUND])}, want {wanted}")
    return "; ".join(found)


def _is_read(key: str, text: str) -> bool:
    if key == LABEL:
        return text in ("true", "false")
    if key == names.CHECKPOINTED_AT:
        return seconds_of(text) > 0
    return whole_number(text) is not None
