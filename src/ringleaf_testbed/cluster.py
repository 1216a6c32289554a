"""A control plane on this machine: etcd, an API server, and whatever joins them.

    with Testbed() as testbed:
        testbed.start("kwok")
        testbed.kubectl("get", "nodes")

Everything lives in one temporary folder and on free loopback ports; nothing outlives
the ``with`` block, nor the Python process.
"""

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

import yaml

from ringleaf_testbed import build, source
from ringleaf_testbed.client import OK, Client
from ringleaf_testbed.components import (
    ARGUMENTS,
    AUDIT_POLICY,
    etcd_arguments,
    kubeconfig_of,
    private_key,
)
from ringleaf_testbed.process import (
    PATIENCE_S,
    Child,
    free_port,
    growing_pauses,
    is_listening,
)
from ringleaf_testbed.source import TestbedError

NAMESPACES: Final = ("kube-system", "mindx-dl", "volcano-system")
QUEUES: Final = "/apis/scheduling.volcano.sh/v1beta1/queues"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMIN_GROUP: Final = "system:masters"
TRIES: Final = 5
"""How often a server is started before a taken port is taken for an answer."""

KUBECTL_PATIENCE_S: Final = 60.0
TOKEN_S: Final = 3 * 3600
EXISTS: Final = 409

Tokens = Mapping[str, tuple[str, Sequence[str]]]
"""Token -> the user and the groups that it stands for."""


class Testbed:
    """etcd and an API server with Volcano's custom resources, while it is open.

    Args:
        fsync: Write to the disk for good; tests of crashes need it.
        authorization: The API server's mode; the admin may do everything in any.
        tokens: Further tokens, to be given roles; ``kubeconfig_of`` makes their files.
        volcano: Install Volcano's custom resources and a queue named default.
        open_queue: Mark the queue as open, which Volcano's controllers do otherwise.
        audit: Log requests and their users in ``audit_log``; of Leases, all of it.
        folder: Keep everything there instead of in a temporary folder.

    """

    __test__ = False

    def __init__(
        self,
        *,
        fsync: bool = False,
        authorization: str = "RBAC",
        tokens: Tokens = MappingProxyType({}),
        volcano: bool = True,
        open_queue: bool = False,
        audit: bool = False,
        folder: Path | None = None,
    ) -> None:
        self._temporary = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="ringleaf-testbed-"))
        self.token = secrets.token_hex(16)
        self.children: list[Child] = []
        self._fsync = fsync
        self._authorization = authorization
        self._tokens = dict(tokens)
        self._volcano = volcano
        self._open_queue = open_queue
        self._audit = audit
        self._port = 0
        self._etcd_port = 0
        self._apiserver: Child | None = None
        self._client: Client | None = None

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where the API server is."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def ca(self) -> Path:
        """The certificates to verify the API server with."""
        return self.folder / "certs" / "apiserver.crt"

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig of the admin."""
        return self.folder / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        """Requests and their answers, a line of JSON each, where ``audit`` is on."""
        return self.folder / "audit.log"

    @property
    def client(self) -> Client:
        """The admin's connection."""
        assert self._client is not None, "the testbed is not open"
        return self._client

    def kubeconfig_of(self, token: str) -> Path:
        """A kubeconfig of the user whose token is *token*."""
        user, _groups = self._tokens[token]
        # A colon would separate two files.
        file = self.folder / f"kubeconfig-{user.replace(':', '-')}"
        return self._write_kubeconfig(file, token)

    def kubeconfig_of_account(self, namespace: str, name: str) -> Path:
        """A kubeconfig of a service account that is there, good for three hours."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        asked = {"spec": {"expirationSeconds": TOKEN_S}}
        token = self.client.ask("POST", path, asked)["status"]["token"]
        file = self.folder / f"kubeconfig-{namespace}-{name}"
        return self._write_kubeconfig(file, token)

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The API server's answer to the admin: status and decoded JSON."""
        return self.client.request(method, path, body)

    def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002
        """What kubectl prints; raises ``TestbedError`` when it fails."""
        return self._tool("kubectl", arguments, input)

    def helm(self, *arguments: str) -> str:
        """What Helm prints; raises ``TestbedError`` when it fails."""
        return self._tool("helm", arguments)

    def _tool(
        self, name: str, arguments: Sequence[str], words: str | None = None
    ) -> str:
        done = subprocess.run(  # noqa: S603 - our own command
            [build.command(name), f"--kubeconfig={self.kubeconfig}", *arguments],
            input=words,
            capture_output=True,
            text=True,
            check=False,
            timeout=KUBECTL_PATIENCE_S,
            env={**os.environ, "HOME": str(self.folder)},  # its cache goes there
        )
        if done.returncode:
            said = " | ".join(done.stderr.strip().splitlines())
            raise TestbedError(f"{name} {' '.join(arguments)}: {said}")
        return done.stdout

    def start(self, name: str, *arguments: str, binary: Path | None = None) -> Child:
        """Start a component beside the API server and wait until it is healthy.

        *arguments* come last on its command line, so they win over those it has;
        *binary* takes the place of its own.
        """
        if name not in ARGUMENTS:
            known = ", ".join(ARGUMENTS)
            raise TestbedError(f"no component is called {name!r}, there are {known}")

        def command(port: int) -> list[str | Path]:
            own = ARGUMENTS[name](self.folder, port)
            return [binary or build.command(name), *own, *arguments]

        _port, child = self._serve(name, command, is_listening)
        return child

    def run(self, name: str, command: Sequence[str | Path]) -> Child:
        """Start any command; it ends with the testbed. Nothing is waited for."""
        child = Child(name, command, self.folder / f"{name}.log")
        self.children.append(child)
        return child

    @staticmethod
    def wait_for(
        condition: Callable[[], object], what: str, patience_s: float = 30.0
    ) -> None:
        """Wait until *condition* holds; raises ``TestbedError`` when it does not."""
        deadline = time.monotonic() + patience_s
        pauses = growing_pauses()
        while not condition():
            if time.monotonic() > deadline:
                raise TestbedError(f"waited {patience_s:.0f} s for {what}")
            time.sleep(next(pauses))

    def stop(self) -> None:
        """End every child, the last one first, and remove the temporary folder."""
        for child in reversed(self.children):
            child.stop()
        self.children.clear()
        if self._client is not None:
            self._client.close()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def kill_apiserver(self) -> None:
        """End the API server at once; its data stays."""
        assert self._apiserver is not None, "the testbed is not open"
        self._apiserver.kill()
        self.children.remove(self._apiserver)

    def restart_apiserver(self, *, kill: bool = True) -> None:
        """End the API server, by force or not, and start it where it was."""
        assert self._apiserver is not None, "the testbed is not open"
        if self._apiserver.is_running and not kill:
            self._apiserver.stop()
        if self._apiserver in self.children:
            self.kill_apiserver()
        self._start_apiserver(self._port)

    def _open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        _write_secret(self.folder / "service-account.key", private_key())
        _write_secret(self.folder / "tokens.csv", self._token_lines())
        self._etcd_port, _etcd = self._serve("etcd", self._etcd_command, is_listening)
        self._start_apiserver()
        self._write_kubeconfig(self.kubeconfig, self.token)
        for namespace in NAMESPACES:
            self._create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        if self._volcano:
            self._install_volcano()

    def _serve(
        self,
        name: str,
        command: Callable[[int], list[str | Path]],
        is_well: Callable[[int], bool],
        port: int | None = None,
    ) -> tuple[int, Child]:
        """Start a server on a free port (or on *port*), on another if it is taken."""
        log = self.folder / f"{name}.log"
        for attempt in range(TRIES):
            at = port or free_port()
            began = log.stat().st_size if log.exists() else 0
            child = Child(name, command(at), log)
            self.children.append(child)
            try:
                child.wait_until(partial(is_well, at))
            except TestbedError:
                self.children.remove(child)
                child.kill()
                taken = b"address already in use" in log.read_bytes()[began:]
                if not taken or attempt == TRIES - 1:
                    raise
                time.sleep(0.2)
                continue
            return at, child
        raise AssertionError

    def _etcd_command(self, port: int) -> list[str | Path]:
        own = etcd_arguments(self.folder, port, fsync=self._fsync)
        return [build.command("etcd"), *own]

    def _apiserver_command(self, port: int) -> list[str | Path]:
        key = self.folder / "service-account.key"
        return [
            build.command("kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://ringleaf.testbed",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--authorization-mode={self._authorization}",
            f"--cert-dir={self.folder / 'certs'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            "--profiling=false",
            *(self._audit_arguments() if self._audit else ()),
        ]

    def _audit_arguments(self) -> list[str]:
        policy = self.folder / "audit-policy.yaml"
        policy.write_text(yaml.safe_dump(AUDIT_POLICY), encoding="utf-8")
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}"]

    def _start_apiserver(self, port: int | None = None) -> None:
        self._port, self._apiserver = self._serve(
            "kube-apiserver", self._apiserver_command, self._is_ready, port
        )
        if self._client is None:
            self._client = Client(self.url, self.token, self.ca)

    def _is_ready(self, port: int) -> bool:
        if not is_listening(port):
            return False
        probe = Client(f"https://127.0.0.1:{port}", self.token, None, timeout_s=5)
        try:
            status, _words = probe.request("GET", "/readyz")
        except (OSError, HTTPException):
            return False
        finally:
            probe.close()
        return status in OK

    def _install_volcano(self) -> None:
        for served in [self._create_crd(path) for path in source.files("crds")]:
            self.wait_for(
                partial(self._is_served, served),
                f"Volcano's {served}",
                PATIENCE_S,
            )
        self._create(
            QUEUES,
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": "default"},
                "spec": {"weight": 1, "reclaimable": True},
            },
        )
        if self._open_queue:
            self.client.ask(
                "PATCH", f"{QUEUES}/default/status", {"status": {"state": "Open"}}
            )

    def _create_crd(self, path: Path) -> str:
        """Create a custom resource; gives where it will be, once it is established."""
        with path.open("rb") as file:
            manifest = yaml.load(file, Loader=_YAML)  # noqa: S506 - a safe loader
        self._create(CRDS, manifest)
        spec = manifest["spec"]
        version = next(v["name"] for v in spec["versions"] if v["served"])
        return f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"

    def _is_served(self, path: str) -> bool:
        return self.request("GET", path)[0] in OK

    def _create(self, path: str, manifest: object) -> None:
        status, answer = self.request("POST", path, manifest)
        if status not in OK and status != EXISTS:
            raise TestbedError(f"POST {path}: {status}, {answer}")

    def _token_lines(self) -> str:
        everyone: dict[str, tuple[str, Sequence[str]]] = {
            self.token: ("admin", (ADMIN_GROUP,)),
            **self._tokens,
        }
        return "".join(
            f'{token},{user},{user},"{",".join(groups)}"\n'
            for token, (user, groups) in everyone.items()
        )

    def _write_kubeconfig(self, path: Path, token: str) -> Path:
        config = kubeconfig_of(self.url, self.ca, token)
        _write_secret(path, yaml.safe_dump(config, sort_keys=False))
        return path


_YAML: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _write_secret(path: Path, text: str) -> None:
    with suppress(FileNotFoundError):
        path.unlink()
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
