"""The components of a control plane: the arguments with which each is started."""

import base64
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ringleaf_testbed import source
from ringleaf_testbed.process import free_port

AUDIT_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "RequestResponse",
            "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
        },
        {"level": "Metadata"},
    ],
}


def _kube_controller_manager(folder: Path, port: int) -> list[str]:
    return [
        f"--kubeconfig={folder / 'kubeconfig'}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'kube-controller-manager-certs'}",
        f"--service-account-private-key-file={folder / 'service-account.key'}",
        "--kube-api-qps=1000",
        "--kube-api-burst=1000",
    ]


def _kube_scheduler(folder: Path, port: int) -> list[str]:
    return [
        f"--kubeconfig={folder / 'kubeconfig'}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'kube-scheduler-certs'}",
        "--kube-api-qps=5000",
        "--kube-api-burst=5000",
    ]


def _kwok(folder: Path, port: int) -> list[str]:
    beats = (each for each in source.files("stages") if each.name.startswith("node-"))
    stages = [*sorted(source.STAGES.glob("*.yaml")), *beats]
    return [
        f"--kubeconfig={folder / 'kubeconfig'}",
        "--manage-all-nodes=true",
        f"--server-address=127.0.0.1:{port}",
        "--node-lease-duration-seconds=40",
        *(f"--config={stage}" for stage in stages),
    ]


def _volcano(folder: Path, port: int) -> list[str]:
    return [
        f"--kubeconfig={folder / 'kubeconfig'}",
        "--leader-elect=false",
        "--enable-healthz=true",
        f"--healthz-address=127.0.0.1:{port}",
        "--enable-metrics=false",
        "--kube-api-qps=2000",
        "--kube-api-burst=2000",
    ]


ARGUMENTS: Final[Mapping[str, Callable[[Path, int], list[str]]]] = MappingProxyType(
    {
        "kube-controller-manager": _kube_controller_manager,
        "kube-scheduler": _kube_scheduler,
        "kwok": _kwok,
        "vc-controller-manager": _volcano,
        "vc-scheduler": _volcano,
    }
)
"""Component -> its arguments, given the port on which it tells that it is well."""


def etcd_arguments(folder: Path, port: int, *, fsync: bool) -> list[str]:
    """The arguments of etcd; without *fsync* it writes to the disk when it likes."""
    here, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{free_port()}"
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={here}",
        f"--advertise-client-urls={here}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--log-level=warn",
        f"--quota-backend-bytes={4 << 30}",
        *([] if fsync else ["--unsafe-no-fsync"]),
    ]


def private_key() -> str:
    """A new elliptic-curve key (P-256), with which service accounts are signed.

    The form is RFC 5915 without the public half, which readers work out themselves.
    """
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    secret = (1 + secrets.randbelow(order - 1)).to_bytes(32, "big")
    curve = bytes.fromhex("06082a8648ce3d030107")
    content = b"\x02\x01\x01\x04\x20" + secret + b"\xa0" + bytes([len(curve)]) + curve
    text = base64.encodebytes(b"\x30" + bytes([len(content)]) + content).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{text}-----END EC PRIVATE KEY-----\n"


def kubeconfig_of(url: str, ca: Path, token: str) -> dict[str, Any]:
    """What a kubeconfig says of an API server and of one user of it."""
    named = {"name": "testbed"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                **named,
                "cluster": {
                    "server": url,
                    "certificate-authority": str(ca.resolve()),
                },
            }
        ],
        "users": [{**named, "user": {"token": token}}],
        "contexts": [{**named, "context": {"cluster": "testbed", "user": "testbed"}}],
        "current-context": "testbed",
    }
