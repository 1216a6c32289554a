"""What the API server's audit log says: bindings and evictions, and by which leader."""

import bisect
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

AGENT: Final = "ringleaf"
DONE: Final = range(200, 300)
ACTS: Final = {"binding": "bound", "eviction": "evicted"}
"""What only a leader may do to a pod, and what it then is."""


class Judgement(NamedTuple):
    """Holders of the Lease, bindings, and what others than the holder did."""

    leaders: list[str]
    n_bindings: int
    usurpers: list[str]


def judged(log: Path) -> Judgement:
    """Pods that were bound or evicted while the Lease was another's."""
    moves: list[tuple[str, str]] = []
    acts: list[tuple[str, str, str, str]] = []
    unanswered = 0
    for entry in _entries(log):
        ref, at = entry.get("objectRef", {}), entry["stageTimestamp"]
        code = entry.get("responseStatus", {}).get("code", 0)
        agent, _slash, identity = entry.get("userAgent", "").partition("/")
        act = ref.get("subresource") if agent == AGENT else ""
        if code not in DONE:
            # A request may be carried out although its sender got no answer.
            unanswered += act == "binding" and not 400 <= code < 500
            continue
        if ref.get("resource") == "leases" and entry["verb"] in ("create", "update"):
            if ref.get("name", AGENT) == AGENT:
                spec = entry.get("requestObject", {}).get("spec", {})
                moves.append((at, spec.get("holderIdentity") or ""))
        elif act in ACTS:
            acts.append((at, identity, ref["name"], act))
    moves.sort()
    times = [at for at, _holder in moves]
    usurpers = []
    for at, identity, pod, act in acts:
        held = bisect.bisect_right(times, at) - 1
        holder = moves[held][1] if held >= 0 else ""
        if holder != identity:
            done = ACTS[act]
            usurpers.append(f"pod {pod} was {done} by {identity} while {holder!r} led")
    leaders = list(dict.fromkeys(holder for _at, holder in moves if holder))
    n_bindings = sum(act == "binding" for *_other, act in acts)
    return Judgement(leaders, n_bindings + unanswered, usurpers)


def evicted_pods(log: Path) -> list[str]:
    """The pods (namespace/name) that schedulers evicted, once for each time."""
    return [
        f"{ref['namespace']}/{ref['name']}"
        for entry in _entries(log)
        if (ref := entry.get("objectRef", {})).get("subresource") == "eviction"
        and entry.get("userAgent", "").startswith(f"{AGENT}/")
        and entry.get("responseStatus", {}).get("code", 0) in DONE
    ]


def _entries(log: Path) -> Iterator[dict[str, Any]]:
    """Every request that was answered."""
    for entry in written(log):
        if entry.get("stage") == "ResponseComplete":
            yield entry


def written(log: Path, having: str = "") -> Iterator[dict[str, Any]]:
    """Every entry whose text has *having*; of a log that grew large, all its files.

    The last line may be cut: the API server is writing it, or was killed meanwhile.
    """
    for part in (*sorted(log.parent.glob(f"{log.stem}-*{log.suffix}")), log):
        with part.open(encoding="utf-8") as lines:
            for line in lines:
                if having in line:
                    with suppress(ValueError):
                        yield json.loads(line)
