"""What a scheduler's log says: failures that are bugs, evictions that it asked for.

The log is a line of JSON for each event; what an interpreter prints before it ends is
plain text.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from tests.soak.evictions import Eviction

BUGS: Final = frozenset({"failed", "quarantined", "cache differs from the objects"})
"""Events that no input may cause: a part failed, a reader met what it does not know,
or the scheduler's own accounts were wrong."""
MAX_SHOWN: Final = 400

Entry = dict[str, Any]


def bugs(text: str) -> list[str]:
    """Every event of a log that only a bug explains, in one line each.

    Any event with a trace counts, whatever it is called.
    """
    found = [
        f"{entry['event']}: {_cause(entry)}"
        for entry in _entries(text)
        if entry["event"] in BUGS or "trace" in entry
    ]
    plain = [line for line in text.splitlines() if not line.startswith("{")]
    if any(line.startswith("Traceback") for line in plain):
        found.append(f"it printed a trace: {' | '.join(plain)[-MAX_SHOWN:]}")
    return found


def evictions(text: str) -> list[Eviction]:
    """The evictions that a scheduler asked for, in their order."""
    return [
        Eviction(
            at=datetime.fromisoformat(entry["timestamp"]).timestamp(),
            job=entry["job"],
            pods=entry["pods"],
            by=entry["by"],
            action=entry["action"],
        )
        for entry in _entries(text)
        if entry["event"] == "evict"
    ]


def took_over(text: str, since: float) -> bool:
    """Whether a scheduler began to lead after *since*, in seconds since 1970."""
    return any(
        datetime.fromisoformat(entry["timestamp"]).timestamp() >= since
        for entry in _entries(text)
        if entry["event"] == "leads"
    )


def read(path: Path) -> str:
    """The text of a log, also where its process was killed while it wrote."""
    return path.read_text(encoding="utf-8", errors="replace")


def _cause(entry: Entry) -> str:
    keys = ("culprit", "pod", "object", "job", "what", "why")
    words = "; ".join(str(entry[key]) for key in keys if entry.get(key))
    last = str(entry.get("trace", "")).strip().splitlines()[-3:]
    return " | ".join([words[:MAX_SHOWN], *(line.strip() for line in last)])


def _entries(text: str) -> Iterator[Entry]:
    for line in text.splitlines():
        if line.startswith("{"):
            with suppress(ValueError):  # the last line of a process that was killed
                entry = json.loads(line)
                if isinstance(entry, dict) and "event" in entry:
                    yield entry
