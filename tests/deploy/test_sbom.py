"""The bill of materials of what is installed."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.deploy.helm import ROOT

SCRIPT = ROOT / "deploy" / "sbom.py"


def made(folder: Path, name: str = "sbom.json") -> bytes:
    subprocess.run([sys.executable, SCRIPT, folder / name], check=True)  # noqa: S603
    return (folder / name).read_bytes()


def locked() -> dict[str, str]:
    """Name -> version, of everything that is pinned to run."""
    text = (ROOT / "requirements/run.lock").read_text("utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ;]+)", text, re.MULTILINE))


def normal(requirement: str) -> str:
    """The name of what is required."""
    return re.split(r"[^a-z0-9_-]", requirement)[0].replace("_", "-")


def test_it_lists_what_ringleaf_needs_as_it_is_installed(tmp_path: Path) -> None:
    found: dict[str, Any] = json.loads(made(tmp_path))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    listed = {each["name"]: each for each in found["components"]}
    direct = {normal(each) for each in project["dependencies"]}

    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    assert found["metadata"]["component"]["version"] == version("ringleaf")
    assert direct <= {*listed}
    assert {*listed} <= {*locked()}, "nothing is there that is not pinned"
    assert not {"pytest", "mypy", "pip"} & {*listed}
    for name, each in listed.items():
        assert each["purl"] == f"pkg:pypi/{name}@{each['version']}"
        assert each["version"] == version(name)


def test_every_part_says_what_it_needs(tmp_path: Path) -> None:
    found = json.loads(made(tmp_path))
    refs = {each["bom-ref"] for each in found["components"]}
    root = found["metadata"]["component"]["bom-ref"]
    edges = {each["ref"]: each["dependsOn"] for each in found["dependencies"]}

    assert {*edges} == refs | {root}
    assert {ref for own in edges.values() for ref in own} == refs


def test_the_same_environment_gives_the_same_bytes(tmp_path: Path) -> None:
    assert made(tmp_path, "one") == made(tmp_path, "two")


def test_bad_use_is_told_in_one_line() -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, SCRIPT], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert done.stderr == "sbom: want one argument, the file to write\n"
