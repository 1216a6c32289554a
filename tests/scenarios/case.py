"""Reading golden scenarios and running them through the real loader.

A case is a document of ``cases/*.yaml``: a scenario, and besides

``expect``
    for every job its verdict; of a placed one ``placements`` as ``{node: chips}``, of
    several pods a list of those in rank order; of others the full words.
``never``
    what must not happen, whatever else changes: ``{job, node}``, narrowed by ``chips``
    of that node, or ``{job, verdict}``.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import Struct

from ringleaf.simulator.answer import answer, decide_all
from ringleaf.simulator.scenario import load

CASES: Final = Path(__file__).parent / "cases"

Expected = dict[str, Any]


class Case(Struct, frozen=True):
    """One document of a file."""

    file: str
    number: int
    about: str
    scenario: Mapping[str, Any]
    expect: Mapping[str, Expected]
    never: list[Mapping[str, Any]]

    def __str__(self) -> str:
        return f"{self.file}-{self.number}"


def cases(file: str | None = None) -> list[Case]:
    """Every case, or those of one file."""
    paths = sorted(CASES.glob(f"{file or '*'}.yaml"))
    assert paths, f"no case {file!r}"
    return [case for path in paths for case in cases_of(path.stem, path.read_text())]


def cases_of(file: str, text: str) -> Iterator[Case]:
    """The cases of one file's text."""
    for number, document in enumerate(yaml.safe_load_all(text), 1):
        rest = dict(document)
        expect, never = rest.pop("expect", {}), rest.pop("never", [])
        yield Case(file, number, rest["about"], rest, expect, never)


def outcomes(case: Case) -> dict[str, Expected]:
    """What the code answers now, in the words of ``expect``."""
    (scenario,) = load(yaml.safe_dump(dict(case.scenario)).encode())
    cluster, decisions = decide_all(scenario)
    answers = [answer(cluster, decision) for decision in decisions]
    return {told["job"]: _expected(told) for told in answers}


def _expected(told: Mapping[str, Any]) -> Expected:
    if told["verdict"] == "placed":
        placed = [{p["node"]: list(p["chips"])} for p in told["placements"]]
        one = len(placed) == 1
        kept: Expected = {
            "verdict": "placed",
            "placements": placed[0] if one else placed,
        }
    else:
        keys = ("verdict", "missing", "reasons", "message", "hint")
        kept = {key: _plain(told[key]) for key in keys if key in told}
    warnings = {"warnings": list(told["warnings"])} if "warnings" in told else {}
    return kept | warnings


def _plain(value: object) -> object:
    """Reasons become text."""
    return {str(k): n for k, n in value.items()} if isinstance(value, dict) else value


def happened(never: Mapping[str, Any], found: Expected) -> bool:
    """Whether the outcome *found* of a job is what must not happen."""
    if "verdict" in never:
        return bool(found["verdict"] == never["verdict"])
    placements = found.get("placements", {})
    several = placements if isinstance(placements, list) else [placements]
    return any(
        node == never["node"] and {*chips} & {*never.get("chips", chips)}
        for placement in several
        for node, chips in placement.items()
    )
