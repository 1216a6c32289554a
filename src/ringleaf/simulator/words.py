"""What happened and what the engine said, in words; from plain values, as logs are."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ringleaf.model.mask import runs_of

MAX_NAMES: Final = 4
"""Names, places or pods told at once."""

Plain = Mapping[str, Any]


def of_job(plain: Plain) -> str:
    """The job that an event or an instruction is about; of some there is none."""
    ((_kind, about),) = _about(plain)
    if isinstance(about, str):
        return about if "ends" in plain else ""
    if not isinstance(about, dict):
        return ""
    name = about.get("name") if "arrives" in plain else about.get("job")
    return name if isinstance(name, str) else ""


def _about(plain: Plain) -> list[tuple[str, Any]]:
    """The one key that tells what it is; settings only go along."""
    return [(key, value) for key, value in plain.items() if key != "settings"][:1] or [
        ("", None)
    ]


def event_words(plain: Plain) -> str:
    """What happened, after the name of the job if it has one.

    >>> event_words({"ends": "big"}), event_words({"nodes-gone": ["a", "b"]})
    ('ends', 'nodes a, b are gone')
    """
    ((kind, about),) = _about(plain)
    return _EVENTS[kind](about) if kind in _EVENTS else kind


def _arrival(entry: Plain) -> str:
    pods = entry.get("roles") or [entry]
    wants = " and ".join(f"{p.get('replicas', 1)} x {p['chips']}" for p in pods)
    queue = f", queue {entry['queue']}" if "queue" in entry else ""
    first = f", priority {entry['priority']}" if "priority" in entry else ""
    over = entry.get("estimate-seconds")
    ends = f", over within {over} s" if over else ""
    there = len(entry.get("placements", ()))
    runs = f", {there} {'pod runs' if there == 1 else 'pods run'}" if there else ""
    return f"arrives: {wants} chips{queue}{first}{ends}{runs}"


_EVENTS: Final[Mapping[str, Callable[[Any], str]]] = {
    "arrives": _arrival,
    "ends": lambda _name: "ends",
    "pods-end": lambda about: (
        f"{_pods(about)} ended{' well' if about.get('succeeded') else ''}"
    ),
    "pods-ending": lambda about: f"{_pods(about)} asked to end",
    "bind-fails": lambda about: f"{_pods(about)} could not be bound",
    "nodes": lambda nodes: (
        f"nodes {_names([n['name'] for n in nodes])}: new or changed"
    ),
    "nodes-gone": lambda names: f"nodes {_names(names)} are gone",
    "leaves": lambda _leaves: "what is known of leaf switches changed",
    "queue": lambda queue: f"queue {queue['name']} is new or changed",
    "queue-gone": lambda name: f"queue {name} is gone",
    "configuration": lambda _conf: "another configuration",
    "wakes": lambda _true: "time has passed",
}


def instruction_words(plain: Plain) -> str:
    """What the engine said, after the name of the job.

    >>> instruction_words({"wake-at": 300})
    'wake up at 300 s'
    """
    ((kind, about),) = _about(plain)
    match kind:
        case "bind":
            return f"bound to {places(about.get('placements', []))}"
        case "evict":
            return f"{_pods(about)} evicted for {about['by']} ({about['action']})"
        case "report":
            return _report(about)
        case "wake-at":
            return f"wake up at {about} s"
    return kind


def _report(about: Plain) -> str:
    message = str(about.get("message", about.get("verdict", "")))
    return message.removeprefix(f"job {about['job']!r} ")


def places(placements: Sequence[Plain]) -> str:
    """Nodes with their chips, the first few of many."""
    told = [
        f"{p['node']} [{_chips(p['chips'])}]" if p["chips"] else str(p["node"])
        for p in placements
    ]
    return _names(told, "; ")


def _chips(chips: Sequence[int]) -> str:
    runs = runs_of(sorted(chips))
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


def _pods(about: Plain) -> str:
    several = [str(replica) for replica in about.get("replicas", [])]
    return f"{'pod' if len(several) == 1 else 'pods'} {_names(several)}"


def _names(names: Sequence[str], joint: str = ", ") -> str:
    more = len(names) - MAX_NAMES
    told = joint.join(map(str, names[:MAX_NAMES])) or "none"
    return f"{told}{joint}… {more} more" if more > 0 else told
