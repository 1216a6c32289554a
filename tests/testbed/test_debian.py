"""Programs of Debian's packages, on machines that have them and on others."""

import io
from pathlib import Path

import pytest

from ringleaf_testbed import build, debian
from ringleaf_testbed.source import TestbedError


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is there but an empty cache; the folder of programs."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(programs))
    return programs


def put(folder: Path, name: str, script: str = "exit 0") -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.usefixtures("bare_machine")
def test_a_machine_that_is_no_debian_is_told_in_one_line() -> None:
    assert debian.missing_packages() == ["prometheus"]
    with pytest.raises(TestbedError, match="no apt-get to fetch it with; hint: put"):
        build.fetch_packages(io.StringIO())
    with pytest.raises(TestbedError, match="promtool is not there; hint: make testb"):
        debian.program("promtool")


def test_programs_of_the_system_come_first(bare_machine: Path) -> None:
    for name in debian.PROGRAMS:
        put(bare_machine, name)
    said = io.StringIO()

    build.fetch_packages(said)

    assert said.getvalue() == ""
    assert debian.program("promtool") == bare_machine / "promtool"


def test_without_lists_of_packages_new_ones_are_fetched_and_thrown_away(
    bare_machine: Path,
) -> None:
    """The first download fails, as in a new container."""
    for name in ("mkdir", "rm", "touch", "ls"):
        (bare_machine / name).symlink_to(f"/bin/{name}")
    download = 'case "$*" in *lists=*download*) touch prometheus_1.deb;; '
    put(bare_machine, "apt-get", f"{download} *lists=*update*) ;; *) exit 100;; esac")
    unpack = "mkdir -p usr/bin; touch usr/bin/prometheus usr/bin/promtool"
    put(bare_machine, "dpkg-deb", f"ls prometheus_1.deb && {unpack}")

    build.fetch_packages(io.StringIO())

    found = debian.program("prometheus").parents[2]
    assert build.program("promtool").parents[2] == found
    assert found.name == "debian-prometheus"
    assert [each.name for each in found.iterdir()] == ["usr"]


def test_a_package_that_cannot_be_fetched_leaves_nothing(bare_machine: Path) -> None:
    put(bare_machine, "apt-get", "echo no such package >&2; exit 100")
    put(bare_machine, "dpkg-deb")
    (bare_machine / "mkdir").symlink_to("/bin/mkdir")

    with pytest.raises(TestbedError, match="prometheus of Debian: no such package"):
        build.fetch_packages(io.StringIO())

    assert debian.missing_packages() == ["prometheus"]


def test_a_program_is_fetched_when_it_is_first_needed(
    bare_machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("mkdir", "rm", "touch"):
        (bare_machine / name).symlink_to(f"/bin/{name}")
    put(bare_machine, "apt-get", "touch prometheus_1.deb")
    unpack = "mkdir -p usr/bin; touch usr/bin/prometheus usr/bin/promtool"
    put(bare_machine, "dpkg-deb", unpack)

    assert build.program("promtool").name == "promtool"
    assert "prometheus of Debian: done in" in capsys.readouterr().err
