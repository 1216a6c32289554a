"""Jobs that never start, in words: how many, how large, and what holds them back."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ringleaf.report.measures import number

_WORDS: Final = {
    "capacity": "too few chips",
    "fragmentation": "chips in the wrong places",
    "rule": "a leaf or ring rule",
    "quota": "a quota",
    "order": "jobs ahead of them",
}
"""Causes of waiting, in a sentence on jobs."""


def unstarted_words(metrics: Sequence[Mapping[str, Any]]) -> str:
    """The jobs that never start in runs of one policy; empty of none.

    Args:
        metrics: What ``Metrics.plain`` gives, of every run; numbers are their means.

    >>> jobs = {"smallest_unstarted_chips": 64, "largest_unstarted_chips": 128}
    >>> causes = {"unstarted_causes": {"rule": 1, "quota": 2, "order": 0}}
    >>> one = {"jobs": {"unstarted": 3, **jobs, **causes}}
    >>> unstarted_words([one])
    '3 jobs of 64 to 128 chips (held back: 2 by a quota; 1 by a leaf or ring rule)'
    >>> unstarted_words([one, {"jobs": {"unstarted": 0}}])
    '1.5 jobs of 64 to 128 chips (held back: 1 by a quota; 0.5 by a leaf or ring rule)'
    >>> unstarted_words([{"jobs": {"unstarted": 0}}])
    ''

    """
    found = unstarted(metrics)
    if found is None:
        return ""
    told = f"{number(found.jobs)} {'job' if found.jobs == 1 else 'jobs'}"
    told += f" of {found.sizes}" if found.sizes else ""
    return told + (f" (held back{found.causes})" if found.causes else "")


class Unstarted(NamedTuple):
    """The jobs that never start under a policy.

    Args:
        jobs: How many, the mean over runs.
        sizes: Their chips, in words.
        causes: What holds them back at the end, as ``held back`` goes on.

    """

    jobs: float
    sizes: str
    causes: str


def unstarted(metrics: Sequence[Mapping[str, Any]]) -> Unstarted | None:
    """The jobs that never start in runs of one policy; None of none."""
    found = [each.get("jobs", {}) for each in metrics]
    mean = sum(jobs.get("unstarted", 0) for jobs in found) / max(len(found), 1)
    return Unstarted(mean, _sizes(found), _causes(found)) if mean else None


def _sizes(found: Sequence[Mapping[str, Any]]) -> str:
    """The chips of the smallest and the largest of them."""
    ends = [
        jobs[key]
        for jobs in found
        for key in ("smallest_unstarted_chips", "largest_unstarted_chips")
        if jobs.get(key) is not None
    ]
    if not ends:
        return ""
    least, most = min(ends), max(ends)
    if least == most:
        return f"{most:,} {'chip' if most == 1 else 'chips'}"
    return f"{least:,} to {most:,} chips"


def _causes(found: Sequence[Mapping[str, Any]]) -> str:
    """What holds them back at the end, that of most jobs first."""
    total: dict[str, float] = {}
    for jobs in found:
        for cause, n in jobs.get("unstarted_causes", {}).items():
            total[cause] = total.get(cause, 0.0) + n / len(found)
    known = sorted((-n, cause) for cause, n in total.items() if n)
    if len(known) == 1:
        return f" by {_WORDS[known[0][1]]}"
    told = "; ".join(f"{number(-n)} by {_WORDS[cause]}" for n, cause in known)
    return f": {told}" if told else ""
