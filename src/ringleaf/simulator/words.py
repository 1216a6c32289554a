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
    """The key that names the event; settings accompany it."""
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
    ends = f", estimate {over} s" if over else ""
    there = len(entry.get("placements", ()))
    runs = f", {there} {'pod runs' if there == 1 else 'pods run'}" if there else ""
    return f"arrives: {wants} chips{queue}{first}{ends}{runs}"


_RETURNS: Final = "its pods are gone; they are expected again"

_EVENTS: Final[Mapping[str, Callable[[Any], str]]] = {
    "arrives": _arrival,
    "ends": lambda about: (
        "ends" if isinstance(about, str) or not about.get("returns") else _RETURNS
    ),
    "pods-end": lambda about: (
        f"{_pods(about)} ended{' successfully' if about.get('succeeded') else ''}"
    ),
    "pods-ending": lambda about: f"{_pods(about)} asked to end",
    "bind-fails": lambda about: f"{_pods(about)} could not be bound",
    "pods-ail": lambda about: _ailing(about["ailments"]),
    "pods-run": lambda about: f"{_pods(about)} {_verb(about, 'runs', 'run')}",
    "pods-refused": lambda about: (
        f"{_pods(about)} refused by the node{_because(about)}"
    ),
    "repair-known": lambda _about: "its repair began earlier",
    "faults-known": lambda faults: (
        f"{'1 fault was' if len(faults) == 1 else f'{len(faults)} faults were'} "
        "known already"
    ),
    "deletions-known": lambda deletions: f"{_sum(deletions)} because of faults earlier",
    "run-times-known": lambda _series: "running times were known already",
    "idle-time-known": lambda _account: "what reservations kept idle was known already",
    "nodes": lambda nodes: f"new or changed nodes: {_names(list(map(_node, nodes)))}",
    "nodes-gone": lambda names: f"nodes {_names(names)} are gone",
    "leaves": lambda _leaves: "the list of leaf switches changed",
    "queue": lambda queue: f"queue {queue['name']} is new or changed",
    "queue-gone": lambda name: f"queue {name} is gone",
    "configuration": lambda _conf: "the configuration changed",
    "wakes": lambda _true: "time has passed",
}


def _sum(deletions: Sequence[Plain]) -> str:
    """How many pods were deleted in all."""
    pods = sum(each["pods"] for each in deletions)
    return "1 pod was deleted" if pods == 1 else f"{pods} pods were deleted"


def _ailing(ailments: Sequence[Plain]) -> str:
    """The faults of the pods of a job, in words."""
    told = [f"pod {each['replica']} ({each['cause']})" for each in ailments]
    return f"faulty: {_names(told)}" if told else "none of its pods is faulty by itself"


def _node(node: Plain) -> str:
    """A node, and what is wrong with it."""
    wrong = [] if node.get("ready", True) else [node.get("down") or "not ready"]
    for key in ("faulty", "network-faulty", "weak"):
        if chips := node.get(key):
            noun = "chip" if len(chips) == 1 else "chips"
            wrong.append(f"{noun} {_chips(chips)} {key}")
    if node.get("weak-switch") or (node.get("sub-healthy") and not node.get("weak")):
        wrong.append("sub-healthy")
    return f"{node['name']} ({', '.join(wrong)})" if wrong else str(node["name"])


def _because(about: Plain) -> str:
    return f": {about['why']}" if about.get("why") else ""


def _verb(about: Plain, one: str, several: str) -> str:
    return one if len(about.get("replicas", [])) == 1 else several


def instruction_words(plain: Plain) -> str:
    """What the engine said, after the name of the job.

    >>> instruction_words({"wake-at": 300})
    'wake up at 300 s'
    """
    ((kind, about),) = _about(plain)
    return _INSTRUCTIONS[kind](about) if kind in _INSTRUCTIONS else kind


def _report(about: Plain) -> str:
    message = str(about.get("message", about.get("verdict", "")))
    return message.removeprefix(f"job {about['job']!r} ")


def _deletion(about: Plain) -> str:
    how = " at once" if about.get("force") else ""
    return f"{_pods(about)} deleted{how} ({about['cause']})"


def _exit(about: Plain) -> str:
    asked = "are asked to end by themselves" if about["exits"] else "may go on"
    return f"its processes {asked}"


_INSTRUCTIONS: Final[Mapping[str, Callable[[Any], str]]] = {
    "bind": lambda about: f"bound to {places(about.get('placements', []))}",
    "evict": lambda about: (
        f"{_pods(about)} evicted for {about['by']} ({about['action']})"
    ),
    "delete": _deletion,
    "point": lambda about: f"reported faulty: {_ailing(about.get('ailments', []))}",
    "remember": lambda about: (
        f"its repair is {'written down' if 'record' in about else 'forgotten'}"
    ),
    "ask-to-exit": _exit,
    "repaired": lambda about: about.get("message", "all its pods are placed again"),
    "report": _report,
    "wake-at": lambda at: f"wake up at {at} s",
}


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
