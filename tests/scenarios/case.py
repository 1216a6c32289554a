"""Reading golden scenarios and running them through the real loader.

A case is a document of a file below ``cases``: a scenario, and besides

``expect``
    for every job its verdict; of a placed one ``placements`` as ``{node: chips}``, of
    several pods a list of those in rank order; of others the full words. Instead of
    ``placements`` there may be ``nodes``, their names in rank order, or
    ``superpods``; besides them ``logical``, the logical SuperPoDs, and
    ``annotations``, of which only the keys written there are looked at. Of these
    three, one value stands for every pod where all pods agree, else a list in rank
    order; null is a pod without that annotation.
    Of a scenario that is run, besides, ``timeline``: what the engine said of the job,
    the time first: ``bind`` and the nodes, ``evict`` with ranks and for whom,
    ``delete`` with ranks and why, ``repaired``, or the verdict of a report, but for
    ``waiting`` and ``repairing``. Words are left out there, they have tests of their
    own; so is what is written down of repairs.
``never``
    what must not happen, whatever else changes: ``{job, node}``, narrowed by ``chips``
    of that node, or ``{job, verdict}``.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct

from ringleaf.simulator.answer import answer, decide_all
from ringleaf.simulator.outcome import plain
from ringleaf.simulator.run import run
from ringleaf.simulator.scenario import Scenario, load

CASES: Final = Path(__file__).parent / "cases"
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

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
    """Every case, or those of one file, or of the files that a pattern fits."""
    paths = files(file or "**/*")
    assert paths, f"no case {file!r}"
    return [case for path in paths for case in cases_of(stem(path), path.read_text())]


def files(pattern: str = "**/*") -> list[Path]:
    """The files with cases that *pattern* fits."""
    return sorted(CASES.glob(f"{pattern}.yaml"))


def stem(path: Path) -> str:
    """The name of a file below the cases."""
    return path.relative_to(CASES).with_suffix("").as_posix()


def cases_of(file: str, text: str) -> Iterator[Case]:
    """The cases of one file's text."""
    for number, document in enumerate(yaml.load_all(text, _LOADER), 1):
        rest = dict(document)
        expect, never = rest.pop("expect", {}), rest.pop("never", [])
        yield Case(file, number, rest["about"], rest, expect, never)


def scenario_of(case: Case) -> Scenario:
    """The scenario, read as a file is read."""
    text: str = yaml.dump(dict(case.scenario), Dumper=_DUMPER)
    (scenario,) = load(text.encode())
    return scenario


def outcomes(case: Case) -> dict[str, Expected]:
    """What the code answers now, in the words of ``expect``."""
    found = _decided(msgspec.json.encode(case.scenario))
    if isinstance(found, dict):
        return _run_outcomes(found, case)
    return {
        told["job"]: _expected(told, case.expect.get(told["job"], {})) for told in found
    }


@cache
def _decided(text: bytes) -> dict[str, Any] | list[dict[str, Any]]:
    """The answers to a scenario, or the whole run of one that is run.

    Each scenario is decided once, for all tests that look at it.
    """
    (scenario,) = load(text)
    return answers(scenario)


def answers(scenario: Scenario) -> dict[str, Any] | list[dict[str, Any]]:
    """The answers to a scenario, or the whole run of one that is run."""
    if scenario.is_run:
        return plain(run(scenario))
    cluster, decisions = decide_all(scenario)
    return [answer(cluster, decision) for decision in decisions]


def _run_outcomes(found: Mapping[str, Any], case: Case) -> dict[str, Expected]:
    timeline: dict[str, list[str]] = {}
    for said in found["instructions"]:
        verdict = said.get("report", {}).get("verdict")
        silent = {"wake-at", "remember"} & {*said}
        if not silent and verdict not in ("waiting", "repairing"):
            job, line = _in_brief(said)
            timeline.setdefault(job, []).append(line)
    outcomes = {}
    for told in found["decisions"]:
        name = told["job"]
        outcome = _expected(told, case.expect.get(name, {}))
        for words in ("message", "hint"):
            outcome.pop(words, None)
        outcomes[name] = outcome | {"timeline": timeline.get(name, [])}
    return outcomes


def _in_brief(said: Mapping[str, Any]) -> tuple[str, str]:
    """The job that an instruction is about, and what it is in a few words."""
    ((kind, about),) = [(key, value) for key, value in said.items() if key != "at"]
    return about["job"], f"{said['at']} s {_BRIEFLY[kind](about)}"


def _pods(about: Mapping[str, Any]) -> str:
    return " ".join(map(str, about["replicas"]))


def _faulty(about: Mapping[str, Any]) -> str:
    told = [f"{a['replica']} ({a['cause']})" for a in about.get("ailments", [])]
    return " ".join(told) or "nobody"


def _deleted(about: Mapping[str, Any]) -> str:
    how = " at once" if about.get("force") else ""
    return f"delete {_pods(about)}{how} ({about['cause']})"


_BRIEFLY: Final[Mapping[str, Callable[[Any], str]]] = {
    "bind": lambda about: f"bind {' '.join(p['node'] for p in about['placements'])}",
    "evict": lambda about: f"evict {_pods(about)} for {about['by']}",
    "delete": _deleted,
    "point": lambda about: f"point {_faulty(about)}",
    "ask-to-exit": lambda about: "ask to exit" if about["exits"] else "no need to exit",
    "repaired": lambda _about: "repaired",
    "report": lambda about: str(about["verdict"]),
}


def _expected(told: Mapping[str, Any], asked: Expected) -> Expected:
    """One answer in the words, and with the keys, of what was *asked*."""
    if told["verdict"] == "placed":
        kept: Expected = {"verdict": "placed"} | _placed(told, asked)
        kept |= {key: told[key] for key in ("missing", "ending") if key in told}
    else:
        keys = ("verdict", "missing", "reasons", "message", "hint")
        kept = {key: _plain(told[key]) for key in keys if key in told}
    warnings = {"warnings": list(told["warnings"])} if "warnings" in told else {}
    return kept | warnings


def _placed(told: Mapping[str, Any], asked: Expected) -> Expected:
    """Where a placed job is, and what is written on its pods."""
    placements, written = told["placements"], told["annotations"]
    several = [{p["node"]: list(p["chips"])} for p in placements]
    known: Expected = {
        "placements": several[0] if len(several) == 1 else several,
        "nodes": [p["node"] for p in placements],
        "superpods": _in_short([p.get("superpod") for p in placements]),
        "logical": _in_short([p.get("logical-superpod") for p in placements]),
        "annotations": {
            key: _in_short([pod.get(key) for pod in written])
            for key in asked.get("annotations", {})
        },
    }
    where = {"placements", "nodes", "superpods"}
    keys = {*asked} if where & {*asked} else {"placements", *asked}
    return {key: value for key, value in known.items() if key in keys}


def _in_short(values: list[Any]) -> object:
    """One value where all agree."""
    return values[0] if values.count(values[0]) == len(values) else values


def _plain(value: object) -> object:
    """Reasons become text."""
    return {str(k): n for k, n in value.items()} if isinstance(value, dict) else value


def happened(never: Mapping[str, Any], found: Expected) -> bool:
    """Whether the outcome *found* of a job is what must not happen."""
    if "verdict" in never:
        return bool(found["verdict"] == never["verdict"])
    placements = found.get("placements", {})
    several = placements if isinstance(placements, list) else [placements]
    if never.get("node") in found.get("nodes", []):
        return True
    return any(
        node == never["node"] and {*chips} & {*never.get("chips", chips)}
        for placement in several
        for node, chips in placement.items()
    )
