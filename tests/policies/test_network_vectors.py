"""Random clusters of leaves and SuperPoDs, with the vendor's own answers.

Where the vectors lie, see ``test_vectors``.
"""

import json
from collections import Counter
from functools import lru_cache
from typing import Any, Final

import pytest

from ringleaf.simulator.answer import answer, decide_all
from ringleaf.simulator.scenario import load
from tests.policies.test_vectors import FOLDER

MODES: Final = ("1.0", "2.0", "single-layer")
FIRMNESS: Final = ("hard", "soft")

Vector = dict[str, Any]


@lru_cache(maxsize=2)
def vectors(name: str) -> list[Vector]:
    """Every case of a file; skips the test where there is no folder."""
    path = FOLDER / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"no {path.name}: its cases are left out")
    return [json.loads(line) for line in path.read_text().splitlines()]


def outcome(case: Vector) -> dict[str, Any]:
    """What Ringleaf answers; the vendor's choice of leaves is ``guide`` (D36)."""
    settings = case["scenario"].get("settings", {}) | {"leaf-choice": "guide"}
    (scenario,) = load(json.dumps(case["scenario"] | {"settings": settings}).encode())
    cluster, (decision,) = decide_all(scenario)
    return answer(cluster, decision)


def mode_of(case: Vector) -> str:
    settings = case["scenario"]["settings"]
    single = settings.get("tor-level") == "single_layer"
    return "single-layer" if single else str(settings["nslb-version"])


def firmness_of(case: Vector) -> str:
    return str(case["scenario"]["jobs"][0]["super-pod-affinity"])


@pytest.mark.parametrize("mode", MODES)
def test_the_vendor_chose_the_same_nodes_under_the_leaves(mode: str) -> None:
    cases = [case for case in vectors("leaves") if mode_of(case) == mode]

    def same(case: Vector) -> bool:
        found, wanted = outcome(case), case["expect"]
        nodes = [placement["node"] for placement in found.get("placements", ())]
        same_verdict = found["verdict"] == wanted["verdict"]
        return bool(same_verdict and nodes == wanted.get("nodes", []))

    assert len(cases) > 200
    assert not [case for case in cases if not same(case)][:1]


@pytest.mark.parametrize("firmness", FIRMNESS)
def test_the_vendor_took_as_many_nodes_from_superpods(firmness: str) -> None:
    """Between SuperPoDs with as many free nodes the choice is free."""
    cases = [case for case in vectors("superpods") if firmness_of(case) == firmness]

    def same(case: Vector) -> bool:
        found, wanted = outcome(case), case["expect"]
        size: Counter[str] = Counter()
        for group in case["scenario"]["nodes"]:
            size[str(group["superpod"])] += group["count"]
        placements = found.get("placements", ())
        taken = Counter(str(placement["superpod"]) for placement in placements)
        verdict = found["verdict"] == wanted["verdict"]
        return verdict and _by_size(taken, size) == _by_size(
            wanted.get("superpods", {}), size
        )

    assert len(cases) > 200
    assert not [case for case in cases if not same(case)][:1]


def _by_size(taken: dict[str, int], size: dict[str, int]) -> list[tuple[int, int]]:
    return sorted((size[superpod], nodes) for superpod, nodes in taken.items())


@pytest.mark.parametrize(("name", "count"), [("leaves", 1500), ("superpods", 700)])
def test_every_vector_is_asked(name: str, count: int) -> None:
    assert len(vectors(name)) == count
