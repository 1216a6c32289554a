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


class Component(Struct, frozen=True):
    """A Go module that commands are built from, and the graph that requires it.

    A graph is a folder below ``modules``. Modules of one graph share their
    dependencies, so each of these is compiled once for all of them.
    """

    path: str
    graph: str


COMPONENTS: Final[Mapping[str, Component]] = MappingProxyType(
    {
        "etcd": Component("go.etcd.io/etcd/server/v3", "kubernetes"),
        "kubernetes": Component("k8s.io/kubernetes", "kubernetes"),
        "kwok": Component("sigs.k8s.io/kwok", "kubernetes"),
        "volcano": Component("volcano.sh/volcano", "volcano"),
        "helm": Component("helm.sh/helm/v3", "kubernetes"),
    }
)

_TOOLS: Final = ("helm",)
"""Components that no cluster is made of: each has its own folder in the cache."""


class TestbedError(Exception):
    """The testbed cannot do what it was asked to: one line that says why."""

    __test__ = False


class Binary(Struct, frozen=True):
    """A binary, the component it belongs to, and the Go package of its ``main``."""

    name: str
    component: str
    package: str

    @property
    def graph(self) -> str:
        """The folder below ``modules`` in which it is built."""
        return COMPONENTS[self.component].graph


def _commands(*rows: tuple[str, str, str]) -> Mapping[str, Binary]:
    return MappingProxyType({row[0]: Binary(*row) for row in rows})


COMMANDS: Final = _commands(
    ("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    ("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    (
        "kube-controller-manager",
        "kubernetes",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
    ),
    ("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    ("vc-controller-manager", "volcano", "volcano.sh/volcano/cmd/controller-manager"),
    ("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    ("helm", "helm", "helm.sh/helm/v3/cmd/helm"),
    ("vc-scheduler", "volcano", "volcano.sh/volcano/cmd/scheduler"),
    ("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
)
"""In build order: the commands that most tests need come first."""

CONTROL_PLANE: Final = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kwok",
    "vc-controller-manager",
)
"""The commands that a cluster is made of; all others are built when first needed."""


class Files(Struct, frozen=True):
    """Files in the folder of a component that the testbed reads."""

    name: str
    component: str
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


def version(component: str) -> str:
    """The version of *component* that its graph requires.

    >>> version("kubernetes")
    'v1.37.1'
    """
    path, graph = COMPONENTS[component].path, COMPONENTS[component].graph
    text = (MODULES / graph / "go.mod").read_text(encoding="utf-8")
    found = re.search(rf"\b{re.escape(path)} (v\S+)", text)
    assert found is not None
    return found[1]


def home() -> Path:
    """The folder of everything the testbed ever built on this machine."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "ringleaf-testbed"


def cache() -> Path:
    """The folder of these versions; other versions do not touch it."""
    return home() / "_".join(_versioned(m) for m in COMPONENTS if m not in _TOOLS)


def binaries(component: str) -> Path:
    """The folder of the commands of *component*."""
    folder = home() / _versioned(component) if component in _TOOLS else cache()
    return folder / "bin"


def _versioned(component: str) -> str:
    return f"{component}-{version(component).removeprefix('v')}"


def find_command(name: str) -> Path | None:
    """The binary *name*, where there is one."""
    assets = os.environ.get(ASSETS)
    places = [Path(assets)] if assets else []
    for folder in (*places, binaries(COMMANDS[name].component)):
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
