"""Completion in a shell: what is offered, and that bash offers it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ringleaf.cli.completion import SCRIPTS, offers
from ringleaf.cli.main import COMMANDS
from tests.cli.conftest import Ringleaf


def words(typed: str) -> list[str]:
    """What is offered for the last word of *typed*."""
    return [word for word, _about in offers(typed.split(" "))]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("comp", ["compare", "completion"]),
        ("nothing", []),
        ("topology ", ["check", "draw", "convert"]),
        ("topology c", ["check", "convert"]),
        ("nothing x", []),
        ("plan --r", ["--record"]),
        ("plan --record ", []),
        ("plan ", []),
        ("plan FILE --js", ["--json"]),
        ("simulate --recovery ", ["off", "grace", "force"]),
        ("simulate --recovery g", ["grace"]),
        ("scheduler --no-", ["--no-leader-elect"]),
        ("compare --policies ringleaf,kueue-tas-", ["ringleaf,kueue-tas-least-free"]),
        ("simulate --policy best", ["best-fit"]),
        ("simulate --workload ka", ["kalos"]),
        ("simulate --cluster mi", ["mixed"]),
        ("init ", ["scenario", "cluster", "conf"]),
        ("init scenario ", []),
        ("init --output x ", ["scenario", "cluster", "conf"]),
        ("policies vendor-1", ["vendor-1.0"]),
        ("help che", ["check-conf"]),
        ("conf check --fi", ["--fix"]),
        ("completion z", ["zsh"]),
        ("status --he", ["--help"]),
    ],
)
def test_what_is_offered(typed: str, offered: list[str]) -> None:
    assert words(typed) == offered


def test_every_command_is_offered_with_what_it_does() -> None:
    offered = dict(offers([""]))

    assert [*offered] == [*dict.fromkeys(name.split()[0] for name in COMMANDS)]
    assert offered["plan"] == COMMANDS["plan"].title
    assert all(offered.values())


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "policies"),
        ("zsh", f"policies:{COMMANDS['policies'].title}"),
        ("fish", f"policies\t{COMMANDS['policies'].title}"),
    ],
)
def test_a_shell_is_told_in_its_own_way(
    ringleaf: Ringleaf, shell: str, line: str
) -> None:
    assert ringleaf("__complete", shell, "pol") == (0, f"{line}\n", "")


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_script_is_printed(ringleaf: Ringleaf, shell: str) -> None:
    assert ringleaf("completion", shell) == (0, SCRIPTS[shell], "")
    assert f"ringleaf __complete {shell} " in SCRIPTS[shell]


TRY: dict[str, str] = {
    "bash": (
        'source <(ringleaf completion bash); COMP_WORDS=(ringleaf "$@"); '
        'COMP_CWORD=$#; _ringleaf; printf "%s\\n" "${COMPREPLY[@]}"'
    ),
    "zsh": (
        "compdef() { :; }; source <(ringleaf completion zsh); "
        "_describe() { print -l ${(P)2%%:*} }; _files() { print files }; "
        'words=(ringleaf "$@"); CURRENT=$(($# + 1)); _ringleaf'
    ),
}


@pytest.mark.parametrize("shell", TRY)
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["pol"], ["policies"]),
        (["topology", ""], ["check", "draw", "convert"]),
        (["simulate", "--recovery", "f"], ["force"]),
    ],
)
def test_the_shell_offers_the_words(
    shell: str, typed: list[str], offered: list[str]
) -> None:
    if (program := shutil.which(shell)) is None:
        pytest.skip(f"no {shell} here")
    folder = Path(sys.executable).parent
    done = subprocess.run(  # noqa: S603
        [program, "-c", TRY[shell], shell, *typed],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.stdout.split(), done.stderr) == (offered, "")
