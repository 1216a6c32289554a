"""What the testbed is made of, and where its files are on this machine.

The versions stand in the ``go.mod`` files of the folder ``modules``, once: the name of
the cache folder and the stamps in the binaries come from there.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Struct

MODULES: Final = Path(__file__).parent / "modules"
STAGES: Final = Path(__file__).parent / "stages"
"""KWOK's stages that are our own: how pods live."""

ASSETS: Final = "KUBEBUILDER_ASSETS"
"""The folder where controller tests expect the API server; it comes first."""

_REQUIRED: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kubernetes": "k8s.io/kubernetes",
    "kwok": "sigs.k8s.io/kwok",
    "volcano": "volcano.sh/volcano",
    "helm": "helm.sh/helm/v3",
}

_TOOLS: Final = ("helm",)
"""Modules that no cluster is made of: each has a folder of its own in the cache."""


class TestbedError(Exception):
    """The testbed cannot do what it was asked to: one line that says why."""

    __test__ = False


class Command(Struct, frozen=True):
    """A binary, the Go package it is built from, and the module that requires it."""

    name: str
    module: str
    package: str


COMMANDS: Final[Mapping[str, Command]] = MappingProxyType(
    {
        name: Command(name, module, package)
        for name, module, package in (
            ("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
            ("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
            ("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
            (
                "kube-controller-manager",
                "kubernetes",
                "k8s.io/kubernetes/cmd/kube-controller-manager",
            ),
            ("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
            (
                "vc-controller-manager",
                "volcano",
                "volcano.sh/volcano/cmd/controller-manager",
            ),
            ("vc-scheduler", "volcano", "volcano.sh/volcano/cmd/scheduler"),
            ("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
            ("helm", "helm", "helm.sh/helm/v3/cmd/helm"),
        )
    }
)
"""In the order in which they are built: what most tests need comes first."""

CLUSTER: Final = tuple(n for n, c in COMMANDS.items() if c.module not in _TOOLS)
"""The commands that a cluster is made of."""


class Files(Struct, frozen=True):
    """Files of a module's folder that the testbed reads, and where they are kept."""

    name: str
    module: str
    patterns: tuple[str, ...]


FILES: Final = (
    Files(
        "crds",
        "volcano",
        ("config/crd/volcano/bases/*.yaml", "config/crd/jobflow/bases/*.yaml"),
    ),
    Files(
        "stages",
        "kwok",
        ("kustomize/stage/node/heartbeat-with-lease/node-*.yaml",),
    ),
)


def module_path(module: str) -> str:
    """The Go module that the module *module* of the testbed is about."""
    return _REQUIRED[module]


def version(module: str) -> str:
    """The version that *module* requires.

    >>> version("kubernetes")
    'v1.37.1'
    """
    text = (MODULES / module / "go.mod").read_text(encoding="utf-8")
    found = re.search(rf"\b{re.escape(_REQUIRED[module])} (v\S+)", text)
    assert found is not None
    return found[1]


def home() -> Path:
    """The folder of everything the testbed ever built on this machine."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "ringleaf-testbed"


def cache() -> Path:
    """The folder of these versions; other versions do not touch it."""
    return home() / "_".join(_versioned(m) for m in _REQUIRED if m not in _TOOLS)


def binaries(module: str) -> Path:
    """The folder of the commands that are built from *module*."""
    return (home() / _versioned(module) if module in _TOOLS else cache()) / "bin"


def _versioned(module: str) -> str:
    return f"{module}-{version(module).removeprefix('v')}"


def find_command(name: str) -> Path | None:
    """The binary *name*, where there is one."""
    assets = os.environ.get(ASSETS)
    places = [Path(assets)] if assets else []
    for folder in (*places, binaries(COMMANDS[name].module)):
        if (folder / name).is_file():
            return folder / name
    return None


def command(name: str) -> Path:
    """The binary *name*; raises ``TestbedError`` where there is none."""
    if (path := find_command(name)) is None:
        raise TestbedError(f"{name} is not built; hint: make testbed")
    return path


def find_files(name: str) -> list[Path]:
    """The YAML files kept under *name*, by name; none when they were not fetched."""
    return sorted((cache() / name).glob("*.yaml"))


def files(name: str) -> list[Path]:
    """The YAML files kept under *name*; raises ``TestbedError`` if there are none."""
    if not (found := find_files(name)):
        raise TestbedError(f"the {name} are not fetched; hint: make testbed")
    return found
