"""The Containerfile, instruction by instruction; there is no container engine here."""

import json
import re
import tomllib
from fnmatch import fnmatch
from typing import Final

from tests.deploy.helm import ROOT, of_kind

FILE: Final = ROOT / "Containerfile"
VENV: Final = "/opt/ringleaf"


def instructions() -> list[tuple[str, str]]:
    """Instruction and the rest of its line."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    words = [line for line in lines if line and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in words]


def commands(kind: str = "RUN") -> list[list[str]]:
    return [json.loads(rest) for word, rest in instructions() if word == kind]


def copied() -> list[str]:
    """What is copied from the checkout."""
    found = [rest for word, rest in instructions() if word == "COPY"]
    return [
        name for rest in found if "--from" not in rest for name in rest.split()[:-1]
    ]


def test_everything_that_is_copied_is_there_and_is_not_ignored() -> None:
    ignore = (ROOT / ".containerignore").read_text("utf-8").splitlines()
    let_in = [line.removeprefix("!") for line in ignore if line.startswith("!")]

    assert ignore[0] == "*"
    for name in copied():
        assert (ROOT / name).exists()
        assert any(fnmatch(name, pattern) for pattern in let_in), name
    assert {*copied()} == {*let_in}


def test_no_instruction_needs_a_shell() -> None:
    words = [(word, rest) for word, rest in instructions() if word in ("RUN", "CMD")]

    assert all(rest.startswith("[") for _word, rest in words)
    assert "SHELL" not in dict(instructions())


def test_what_is_installed_is_pinned_by_hash() -> None:
    installs = [words for words in commands() if "install" in words]

    assert installs
    for words in installs:
        assert words[:3] == [f"{VENV}/bin/python", "-m", "pip"]
        assert {"--require-hashes", "--no-deps"} & {*words}
        assert not {"--index-url", "--extra-index-url", "--trusted-host"} & {*words}


def test_the_base_image_is_pinned_by_a_digest_that_must_be_given() -> None:
    bases = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    given = [rest for word, rest in instructions() if word == "ARG"]

    assert bases == ["${BASE}@${DIGEST}"] * 2
    assert given[:2] == ["BASE=docker.io/library/python:3.13-slim", "DIGEST"]


def test_the_image_says_what_is_in_it() -> None:
    """After all is installed, and what only builds is not there any more."""
    runs = commands()
    (made,) = [n for n, words in enumerate(runs) if "deploy/sbom.py" in words]

    assert runs[made][-1].startswith(f"{VENV}/")
    assert "uninstall" in runs[made - 1]


def test_it_runs_our_command_as_nobody_in_particular() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (entry,) = commands("ENTRYPOINT")
    (arguments,) = commands("CMD")
    users = [rest for word, rest in instructions() if word == "USER"]

    assert entry == [f"{VENV}/bin/{next(iter(project['scripts']))}"]
    assert arguments == ["scheduler"]
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", users[-1])
    assert instructions()[-1][0] == "CMD"


def test_the_image_and_the_chart_agree(binaries: None) -> None:
    del binaries
    (deployment,) = of_kind("Deployment")
    spec = deployment["spec"]["template"]["spec"]
    context = spec["securityContext"]
    rest = dict(instructions())

    assert rest["USER"] == f"{context['runAsUser']}:{context['runAsGroup']}"
    (port,) = spec["containers"][0]["ports"]
    assert rest["EXPOSE"] == str(port["containerPort"])
    assert spec["containers"][0]["args"][0] == "scheduler"
    assert "command" not in spec["containers"][0]


def test_it_is_compiled_before_it_is_copied() -> None:
    words = [word for word, _rest in instructions()]
    copy = max(n for n, (_w, rest) in enumerate(instructions()) if "--from" in rest)

    assert "compileall" in commands()[-1]
    assert copy > max(n for n, word in enumerate(words) if word == "RUN")


def test_the_python_of_the_image_is_one_that_ringleaf_runs_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    least = tuple(map(int, re.findall(r"\d+", project["requires-python"])))
    (base,) = [rest for word, rest in instructions() if rest.startswith("BASE=")]
    found = re.search(r"python:(\d+)\.(\d+)-slim", base)

    assert found
    assert (int(found[1]), int(found[2])) >= least
