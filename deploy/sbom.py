"""The bill of materials of what is installed with Ringleaf, as CycloneDX.

    python deploy/sbom.py FILE

It lists the distributions of the environment that Ringleaf needs, however indirectly,
each with its version, its license and what it needs itself. The same environment gives
the same bytes: there is no time and nothing random in it.

Source: CycloneDX 1.6, JSON; package URL specification, type pypi.
"""  # noqa: INP001 - a script beside the chart

import json
import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

ROOT: Final = "ringleaf"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def normal(name: str) -> str:
    """A name as the index of Python packages has it.

    >>> normal("Typing_Extensions")
    'typing-extensions'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def purl(found: Distribution) -> str:
    """What a distribution is called everywhere."""
    return f"pkg:pypi/{normal(found.name)}@{found.version}"


def needs(found: Distribution, known: Iterable[str]) -> list[str]:
    """The distributions that one needs, of those that are there.

    What a marker leaves out on this machine is not there, unless another needs it.
    """
    wanted = [line for line in found.requires or () if "extra ==" not in line]
    names = {normal(match[0]) for line in wanted if (match := _NAME.match(line))}
    return sorted(names & {*known})


def closure(there: dict[str, Distribution]) -> dict[str, list[str]]:
    """Every distribution that the root needs -> those that it needs itself."""
    found: dict[str, list[str]] = {}
    left = [ROOT]
    while left:
        name = left.pop()
        if name not in found:
            found[name] = needs(there[name], there)
            left += found[name]
    return dict(sorted(found.items()))


def component(found: Distribution, kind: str = "library") -> dict[str, Any]:
    """One distribution."""
    made: dict[str, Any] = {
        "type": kind,
        "bom-ref": purl(found),
        "name": normal(found.name),
        "version": found.version,
        "purl": purl(found),
    }
    if "License-Expression" in found.metadata:
        made["licenses"] = [{"expression": found.metadata["License-Expression"]}]
    return made


def bill(there: dict[str, Distribution]) -> dict[str, Any]:
    """The bill of materials of an environment."""
    needed = closure(there)
    listed = [component(there[name]) for name in needed if name != ROOT]
    interpreter = ".".join(map(str, sys.version_info[:3]))
    made: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": component(there[ROOT], "application"),
            "properties": [{"name": "python", "value": interpreter}],
        },
        "components": listed,
        "dependencies": [
            {"ref": purl(there[name]), "dependsOn": [purl(there[n]) for n in own]}
            for name, own in needed.items()
        ],
    }
    number = uuid5(NAMESPACE_URL, json.dumps(made, sort_keys=True))
    return {"serialNumber": f"urn:uuid:{number}", **made}


def main(arguments: list[str]) -> int:
    """Write the file; the exit status."""
    if len(arguments) != 1:
        sys.stderr.write("sbom: want one argument, the file to write\n")
        return 2
    there = {normal(each.name): each for each in distributions()}
    if ROOT not in there:
        sys.stderr.write(f"sbom: {ROOT} is not installed here; hint: make sbom\n")
        return 1
    path = Path(arguments[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(bill(there), indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
