"""Random cases with the answers that the vendor's own code gave.

The vectors lie beside the repository in ``shared/vectors``; ``RINGLEAF_VECTORS`` names
another folder. Where there is none the tests are counted as skipped.
"""

import json
import os
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pytest

from ringleaf.model.decision import Placed
from ringleaf.simulator.answer import decide_all
from ringleaf.simulator.scenario import load

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = Path(
    os.environ.get("RINGLEAF_VECTORS", ROOT.parent / "shared" / "vectors")
)

KINDS: Final = (
    ("atlas-800-9000", None, False),
    ("atlas-800-9000-half", None, False),
    ("atlas-800t-a2", None, False),
    ("atlas-200t-a2-box16", None, False),
    ("atlas-300i", "card", False),
    ("atlas-300i", "chip", False),
    ("atlas-300i-duo", "card", False),
    ("atlas-300i-duo", "chip", True),
    ("atlas-310p", None, False),
)
"""Product, strategy, distributed."""

EACH: Final = 200
"""Recorded answers of each kind."""


@lru_cache(maxsize=1)
def vectors() -> list[dict[str, Any]]:
    """Every case; skips the test where there is no folder."""
    path = FOLDER / "chips.jsonl"
    if not path.exists():
        pytest.skip(f"no {path.name}: {len(KINDS)} kinds of node left out")
    return [json.loads(line) for line in path.read_text().splitlines()]


def kind_of(case: dict[str, Any]) -> tuple[str, str | None, bool]:
    """Which of the kinds a case is about."""
    (job,) = case["scenario"]["jobs"]
    return job["product"], job.get("strategy"), job.get("distributed", False)


def outcome(scenario: dict[str, Any]) -> list[int] | None:
    """The chips of the one pod, sorted; None when it was not placed."""
    (read,) = load(json.dumps(scenario).encode())
    _cluster, (decision,) = decide_all(read)
    if not isinstance(decision, Placed):
        return None
    (placement,) = decision.placements
    return sorted(placement.chips)


@pytest.mark.parametrize(
    "kind", KINDS, ids=lambda kind: " ".join(str(part) for part in kind if part)
)
def test_the_vendor_gave_the_same_answers(kind: tuple[str, str | None, bool]) -> None:
    of_this_kind = [case for case in vectors() if kind_of(case) == kind]

    different = [
        case for case in of_this_kind if outcome(case["scenario"]) != _expected(case)
    ]

    assert len(of_this_kind) == EACH
    assert not different, different[0]


def _expected(case: dict[str, Any]) -> list[int] | None:
    expect = case["expect"]
    return expect["chips"] if expect["verdict"] == "placed" else None


def test_d42_without_its_label_a_pod_differs_only_where_one_card_holds_it() -> None:
    """The vendor reads a missing label as ``chip``; every recorded 300I case has one.

    With the label taken away, D42 keeps every verdict, and the chips of every case in
    which no card holds the pod; in the others the pod is on one card, where the vendor
    may have split it.
    """
    labelled = [c for c in vectors() if kind_of(c) == ("atlas-300i", "chip", False)]
    same, split = 0, 0
    for case in labelled:
        (node,), (job,) = case["scenario"]["nodes"], case["scenario"]["jobs"]
        bare = {key: value for key, value in job.items() if key != "strategy"}
        found = outcome({**case["scenario"], "jobs": [bare]})
        expected = _expected(case)
        usable = {*node["free"]} - {*node.get("faulty", ())}
        room = Counter(chip // 4 for chip in usable)
        if found == expected:
            same += 1
        else:
            split += 1
            assert found is not None
            assert expected is not None
            assert len({chip // 4 for chip in expected}) > 1  # the vendor split it
        if max(room.values(), default=0) < job["chips"]:
            assert found == expected
        elif found is not None:
            (card,) = {chip // 4 for chip in found}
            assert room[card] == min(n for n in room.values() if n >= job["chips"])

    assert (same, split) == (149, 51)


def test_every_vector_is_asked() -> None:
    assert Counter(map(kind_of, vectors())) == dict.fromkeys(KINDS, EACH)
    assert len(vectors()) == 1800
