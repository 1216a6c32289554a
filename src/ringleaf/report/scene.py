"""Films for the page: one of each policy, and all together never too large."""

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ringleaf.report.results import Results
from ringleaf.simulator.film import packed, unpacked

BUDGET: Final = 1_200_000
"""Bytes for all films of a page."""
MOST_FILMS: Final = 6

SITE: Final = ("nodes", "chips", "groups", "group")
"""What is the same of all films of a cluster."""


def films_of(results: Results, budget: int = BUDGET) -> list[dict[str, Any]]:
    """The film of the first seed of every policy, as many as a page holds.

    The first tells the nodes; others leave them out where they are the same. A film
    that is too large loses every second still, again and again.
    """
    chosen: list[tuple[int, dict[str, Any]]] = []
    for number, policy in enumerate(results.policies):
        film = next((run.film for run in results.of(policy) if run.film), None)
        if film is not None and film["stills"] and len(chosen) < MOST_FILMS:
            chosen.append((number, film))
    found: list[dict[str, Any]] = []
    site = {key: chosen[0][1][key] for key in SITE} if chosen else {}
    left = budget - len(json.dumps(site))
    for i, (number, film) in enumerate(chosen):
        fitted = fit(film, left // (len(chosen) - i))
        if fitted is None:
            continue
        same = all(film[key] == site[key] for key in SITE)
        own = {k: v for k, v in fitted.items() if not (same and found and k in SITE)}
        found.append({"policy": number, **own})
        left -= _size(fitted)
    return found


def fit(film: Mapping[str, Any], budget: int) -> dict[str, Any] | None:
    """*film* in at most *budget* bytes besides its nodes; None if it cannot be."""
    fitted = dict(film)
    while _size(fitted) > budget:
        if fitted["stills"] <= 1:
            return None
        stills = unpacked(fitted).halved
        known, owner = np.unique(stills.owner, return_inverse=True)
        if known[0] != 0:  # 0 means no job, whether a still has it or not
            known, owner = np.concatenate([[0], known]), owner + 1
        jobs = [fitted["jobs"][i - 1] for i in known[1:].tolist()]
        stills.owner = owner.reshape(stills.owner.shape)
        interval_s = fitted["interval_s"] * 2
        fitted |= packed(stills) | {"jobs": jobs, "interval_s": interval_s}
    return fitted


def _size(film: Mapping[str, Any]) -> int:
    own = {key: value for key, value in film.items() if key not in SITE}
    return len(json.dumps(own, separators=(",", ":")))
