"""Programs that come from Debian's packages: Prometheus, to read what we serve.

A package is fetched and unpacked into the cache, not installed. Lists of packages are
the system's; where it has none, as in a new container, they are fetched into a folder
that goes away afterwards.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ringleaf_testbed.source import TestbedError, home

PROGRAMS: Final[Mapping[str, str]] = MappingProxyType(
    {"prometheus": "prometheus", "promtool": "prometheus"}
)
"""Program -> the package that has it."""

FETCH: Final = """
set -e
if ! apt-get -q download "$1"; then
  mkdir -p lists/partial archives/partial
  private() {
    apt-get -q -o Dir::State::lists="$PWD/lists" \
      -o Dir::Cache::archives="$PWD/archives" \
      -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@"
  }
  private update
  private download "$1"
fi
dpkg-deb -x "$1"_*.deb .
rm -rf lists archives "$1"_*.deb
"""


def find_program(name: str) -> Path | None:
    """The program *name*: that of the system, or one that was fetched before."""
    found = shutil.which(name)
    fetched = home() / f"debian-{PROGRAMS[name]}" / "usr" / "bin" / name
    return Path(found) if found else fetched if fetched.is_file() else None


def program(name: str) -> Path:
    """The program *name*; raises ``TestbedError`` where there is none."""
    if (path := find_program(name)) is None:
        raise TestbedError(f"{name} is not there; hint: make testbed")
    return path


def missing_packages() -> list[str]:
    """Packages of which some program is not there."""
    found = {own for name, own in PROGRAMS.items() if find_program(name) is None}
    return sorted(found)


def fetching(package: str) -> list[str]:
    """The command that fetches and unpacks *package* into the folder it runs in.

    Raises:
        TestbedError: This is no Debian, and none of those made from it.

    """
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise TestbedError(
            f"no {package}, and no apt-get to fetch it with; "
            "hint: put prometheus and promtool 2.42 or later on the path"
        )
    return ["/bin/sh", "-c", FETCH, "fetch", package]
