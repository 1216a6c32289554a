"""A plain client of the API server: kept connections, decoded JSON.

It is independent of the client of ``ringleaf.kube`` on purpose: what tests that client
does not use it.
"""

import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from ringleaf_testbed.source import TestbedError

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
PAGE: Final = 500
OK: Final = range(200, 300)
READ_BYTES: Final = 1 << 16


class Client:
    """Requests to one API server; threads may share it, connections are kept."""

    def __init__(
        self, url: str, token: str, ca: Path | None, timeout_s: float = 60.0
    ) -> None:
        self.url = url
        self.token = token
        self.timeout_s = timeout_s
        where = urlsplit(url)
        self._address = (where.hostname or "127.0.0.1", where.port or 443)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if ca is None:
            self._tls.check_hostname = False
            self._tls.verify_mode = ssl.CERT_NONE
        else:
            self._tls.load_verify_locations(ca)
        self._idle: list[http.client.HTTPSConnection] = []

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str | None = None,
    ) -> tuple[int, Any]:
        """The answer's status and decoded JSON (text where it is none).

        A kept connection that the server has closed meanwhile is opened again, once.
        """
        data = None if body is None else msgspec.json.encode(body)
        kind = content_type or (MERGE if method == "PATCH" else "application/json")
        headers = {**self._headers(), "Content-Type": kind}
        kept = self._kept()
        for connection in (kept, self._connect(self.timeout_s)):
            if connection is None:
                continue
            try:
                connection.request(method, path, data, headers)
                answer = connection.getresponse()
                decoded = _decoded(answer.read())
            except (http.client.HTTPException, OSError):
                connection.close()
                if connection is not kept:
                    raise
            else:
                self._idle.append(connection)
                return answer.status, decoded
        raise AssertionError

    def close(self) -> None:
        """Close the connections that are kept; the next request opens a new one."""
        while (connection := self._kept()) is not None:
            connection.close()

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str | None = None,
    ) -> Any:  # noqa: ANN401 - whatever JSON the server sends
        """The decoded answer; raises ``TestbedError`` unless the server agrees."""
        status, answer = self.request(method, path, body, content_type=content_type)
        if status not in OK:
            told = answer.get("message") if isinstance(answer, dict) else answer
            raise TestbedError(f"{method} {path}: {status}, {told}")
        return answer

    def list_all(self, path: str, **query: str) -> tuple[list[Any], str]:
        """The objects of *path*, page by page, and the version to watch from."""
        items: list[Any] = []
        version, more = "", ""
        while True:
            page = {**query, "limit": str(PAGE), **({"continue": more} if more else {})}
            answer = self.ask("GET", f"{path}?{urlencode(page)}")
            items += answer["items"] or []
            version = answer["metadata"]["resourceVersion"]
            more = answer["metadata"].get("continue", "")
            if not more:
                return items, version

    def watch(self, path: str, version: str, **query: str) -> "Watch":
        """What happens to the objects of *path* from *version* on."""
        asked = {
            **query,
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": "300",
        }
        connection = self._connect(None)
        try:
            target = f"{path}?{urlencode(asked)}"
            connection.request("GET", target, None, self._headers())
            return Watch(path, connection)
        except BaseException:
            connection.close()
            raise

    def _connect(self, timeout_s: float | None) -> http.client.HTTPSConnection:
        host, port = self._address
        return http.client.HTTPSConnection(
            host, port, timeout=timeout_s, context=self._tls
        )

    def _kept(self) -> http.client.HTTPSConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}


class Watch:
    """The lines of a watch, until the server ends it or another thread closes it."""

    def __init__(self, path: str, connection: http.client.HTTPSConnection) -> None:
        self._connection = connection
        self._socket: socket.socket = connection.sock
        self._answer = connection.getresponse()
        if self._answer.status not in OK:
            raise TestbedError(f"watch of {path}: {self._answer.status}")

    def __iter__(self) -> Iterator[bytes]:
        rest = b""
        try:
            while data := self._answer.read1(READ_BYTES):
                *lines, rest = (rest + data).split(b"\n")
                yield from lines
        finally:
            self._connection.close()

    def close(self) -> None:
        """End it, also while another thread waits for the next line."""
        with suppress(OSError):
            # The plain socket's: the one of TLS would pull the reader's feet away.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def _decoded(data: bytes) -> Any:  # noqa: ANN401 - whatever JSON the server sends
    if not data:
        return None
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return data.decode(errors="replace")
