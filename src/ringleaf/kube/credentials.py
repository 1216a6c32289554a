"""Where the API server is, and how a client authenticates to it.

An explicit kubeconfig file wins over ``$KUBECONFIG``, that over the service account of
a pod, and that over ``~/.kube/config``. The files are read by kubernetes_asyncio, which
knows tokens, token files, exec plugins, OpenID Connect and client certificates.

Credentials age: the token of a service account is replaced on disk about every hour,
plugins hand out tokens for minutes, certificates are renewed. ``renew`` is called every
minute, which costs a file or nothing, and after the API server refused us, which reads
and runs everything anew.
"""

import asyncio
import logging
import ssl
from collections.abc import Mapping
from contextlib import suppress
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ringleaf.model.topology import quoted

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config.kube_config import KubeConfigLoader

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOME_FILE: Final = Path("~/.kube/config")
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
RENEW_S: Final = 60.0
"""Seconds after which credentials are looked at again."""


MAX_CONTEXTS: Final = 10
"""Contexts of a file that are listed."""


class BadCredentials(ValueError):  # noqa: N818 - it reads as what happened
    """No way to the API server: one line that says what was found and is wanted."""

    def __init__(self, line: str, hint: str | None = None) -> None:
        super().__init__(f"{line}; hint: {hint}" if hint else line)


class Credentials:
    """The address of the API server, and the current credentials.

    ``namespace`` is where objects are meant that do not say, as for kubectl.

    ``server`` is its URL without a slash at the end, ``tls`` is None for plain HTTP,
    ``authorization`` is the header or the empty string; ``source`` says where they come
    from. A client reads them anew for each connection it opens.
    """

    namespace = "default"

    def __init__(
        self,
        server: str,
        *,
        tls: ssl.SSLContext | None = None,
        authorization: str = "",
        server_name: str | None = None,
        proxy: str | None = None,
        source: str = "given",
    ) -> None:
        self.server = _checked_server(server, source)
        self.tls = tls
        self.authorization = _checked_authorization(authorization, source)
        self.server_name = server_name
        self.proxy = proxy
        self.source = source

    async def renew(self, *, refused: bool = False) -> None:
        """Look again; *refused* means that what we have is no good any more.

        Raises ``BadCredentials`` when they cannot be had; the old ones stay then.
        """


async def load(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Credentials:
    """The credentials of the first place that has some.

    Args:
        kubeconfig: a file; also several, separated by colons.
        context: its context; without, the current one.
        environ: where ``KUBECONFIG`` and the address of the API server are looked up.
        service_account: the folder with ``token`` and ``ca.crt`` in a pod.

    Raises:
        BadCredentials: there are none, or they are of no use.
    """
    if kubeconfig is not None:
        return await _from_file(str(kubeconfig), context, str(kubeconfig))
    if found := environ.get("KUBECONFIG"):
        return await _from_file(found, context, f"$KUBECONFIG {found}")
    if context is None and environ.get(HOST) and (service_account / "token").exists():
        return ServiceAccount(environ, service_account)
    home = HOME_FILE.expanduser()
    if home.exists():
        return await _from_file(str(home), context, str(home))
    raise BadCredentials(
        f"no credentials: no --kubeconfig, no $KUBECONFIG, no service account in "
        f"{service_account}, no file {home}; want one of them",
        "--kubeconfig FILE",
    )


class ServiceAccount(Credentials):
    """What Kubernetes puts into every pod: a token that is replaced on disk."""

    def __init__(self, environ: Mapping[str, str], folder: Path) -> None:
        host, port = environ.get(HOST, ""), environ.get(PORT, "")
        self._folder = folder
        super().__init__(
            f"https://{f'[{host}]' if ':' in host else host}:{port}",
            tls=_context(ca=str(folder / "ca.crt"), source=str(folder)),
            authorization=self._token(),
            source=f"service account in {folder}",
        )
        with suppress(OSError, UnicodeError):
            self.namespace = (folder / "namespace").read_text().strip()

    async def renew(self, *, refused: bool = False) -> None:
        """Read the token again, and the authority's certificate when refused."""
        source = str(self._folder)
        self.authorization = _checked_authorization(self._token(), source)
        if refused:
            self.tls = _context(ca=str(self._folder / "ca.crt"), source=source)

    def _token(self) -> str:
        path = self._folder / "token"
        try:
            token = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadCredentials(f"{path}: {_cause(error)}, want a token") from None
        if not token:
            raise BadCredentials(f"{path} is empty, want a token")
        return f"Bearer {token}"


class KubeconfigFile(Credentials):
    """A context of a kubeconfig file, or of several that are read as one."""

    def __init__(self, files: str, context: str | None, source: str) -> None:
        self._files = files
        self._context = context
        self._loader: KubeConfigLoader | None = None
        self.source = source

    async def renew(self, *, refused: bool = False) -> None:
        """Ask for a new token where it is known when that ends; all when refused."""
        if refused or self._loader is None:
            await self._read()
        elif self._ends():
            await self._load(self._loader)

    def _ends(self) -> bool:
        """Whether looking again may bring another token without running a plugin.

        A plugin that names no end is asked again only after a refusal, as kubectl does.
        """
        assert self._loader is not None
        user: Any = self._loader._user  # noqa: SLF001 - no other way to see it
        if not user:
            return False
        if "exec" in user:
            return hasattr(self._loader, "exec_plugin_expiry")
        return "auth-provider" in user or ("tokenFile" in user and "token" not in user)

    async def _read(self) -> None:
        from kubernetes_asyncio.config.kube_config import (  # noqa: PLC0415 - slow
            KubeConfigLoader,
            KubeConfigMerger,
        )

        # It says again what is raised, and warns of files that are not there.
        logging.getLogger(KubeConfigLoader.__module__).disabled = True
        if not _any_there(self._files):
            raise BadCredentials(
                f"kubeconfig {quoted(self.source)} is not there, want a file",
                "kubectl config view --raw > FILE",
            )
        try:
            config: Any = KubeConfigMerger(self._files).config
        except Exception as error:  # noqa: BLE001 - of any type for a malformed file
            raise self._bad(error) from None
        self._must_have_context(config)
        try:
            loader = KubeConfigLoader(
                config,
                active_context=self._context,
                config_base_path=None,
            )
        except Exception as error:  # noqa: BLE001 - of any type for a malformed file
            raise self._bad(error) from None
        await self._load(loader)
        self._loader = loader
        self.namespace = _namespace_of(loader)

    async def _load(self, loader: "KubeConfigLoader") -> None:
        from kubernetes_asyncio.client import Configuration  # noqa: PLC0415 - slow

        found = Configuration()
        found.host = ""
        try:
            async with asyncio.timeout(RENEW_S):
                await loader.load_and_set(found)
        except Exception as error:  # noqa: BLE001 - of any type for a malformed file
            raise self._bad(error) from None
        self._take(found)

    def _take(self, found: "Configuration") -> None:
        server = _checked_server(found.host or "", self.source)
        authorization = _checked_authorization(
            str(found.api_key.get("BearerToken", "")), self.source
        )
        self.tls = None
        if server.startswith("https:"):
            self.tls = _context(
                ca=found.ssl_ca_cert,
                certificate=found.cert_file,
                key=found.key_file,
                verify=bool(found.verify_ssl),
                source=self.source,
            )
        self.server = server
        self.authorization = authorization
        self.server_name = found.tls_server_name
        self.proxy = found.proxy

    def _must_have_context(self, config: Any) -> None:  # noqa: ANN401 - unchecked
        """Refuse a context that is asked for and not there."""
        if self._context is None:
            return
        try:
            known = [str(each["name"]) for each in config.value["contexts"]]
        except (TypeError, KeyError, AttributeError):
            return  # the loader says what is wrong with it
        if self._context not in known:
            more = "" if len(known) <= MAX_CONTEXTS else ", …"
            told = ", ".join(sorted(known)[:MAX_CONTEXTS]) + more
            raise BadCredentials(
                f"kubeconfig {quoted(self.source)} has no context "
                f"{quoted(self._context)}, want one of: {told or 'it has none'}"
            )

    def _bad(self, error: Exception) -> BadCredentials:
        return BadCredentials(
            f"kubeconfig {quoted(self.source)}: {_cause(error)}, want a cluster with a "
            "server, a user and a context that names both",
            "kubectl config view --minify --kubeconfig FILE shows what kubectl reads",
        )


async def _from_file(files: str, context: str | None, source: str) -> Credentials:
    credentials = KubeconfigFile(files, context, source)
    await credentials.renew()
    return credentials


def _namespace_of(loader: "KubeConfigLoader") -> str:
    """The namespace of the context; of one that has none, the default one."""
    current: Any = loader.current_context
    said = current["context"].get("namespace")
    return said if isinstance(said, str) and said else Credentials.namespace


def _context(
    *,
    source: str,
    ca: str | None = None,
    certificate: str | None = None,
    key: str | None = None,
    verify: bool = True,
) -> ssl.SSLContext:
    """What TLS trusts and shows. One file that cannot be read is one line."""
    try:
        tls = ssl.create_default_context(cafile=ca)
        if certificate:
            tls.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(file for file in (ca, certificate, key) if file)
        raise BadCredentials(
            f"{source}: {_cause(error)} in {files}, want certificates in PEM"
        ) from None
    if not verify:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return tls


def _checked_server(server: str, source: str) -> str:
    """The URL without its last slash."""
    try:
        parts = urlsplit(server)
        good = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or not server.isascii() or not server.isprintable() or " " in server:
        raise BadCredentials(
            f"{source}: server is {quoted(str(server))}, want https://HOST:PORT"
        )
    return server.rstrip("/")


def _checked_authorization(authorization: str, source: str) -> str:
    """The header; a token with a line break in it would be two headers."""
    authorization = authorization.strip()
    if not (authorization.isascii() and authorization.isprintable()):
        raise BadCredentials(
            f"{source}: the token has characters that no header may have, "
            "want printable ASCII in one line"
        )
    return authorization


def _any_there(files: str) -> bool:
    return any(Path(file).expanduser().exists() for file in files.split(":") if file)


def _cause(error: Exception) -> str:
    r"""*error* in one line, without the advice of others.

    >>> _cause(ValueError("no such\nkey."))
    'no such key'
    >>> _cause(KeyError("name"))
    "no 'name'"
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, TimeoutError):
        return f"no answer within {RENEW_S:.0f} s"
    if isinstance(error, KeyError):
        return f"no {error}"
    if isinstance(error, (TypeError, AttributeError, AssertionError)):
        return "something in it is missing or of another type"
    line = " ".join(str(error).split()).rstrip(".")
    return line or type(error).__name__
