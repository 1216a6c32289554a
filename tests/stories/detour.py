"""A network between a scheduler and the API server that can deliver late."""

import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml


class Detour:
    """Passes bytes on, until it is told to hold what the scheduler sends, or is cut.

    What is held is delivered when the test says so, also when the scheduler has long
    hung up: a network may do that.
    """

    def __init__(self, port: int) -> None:
        self._to = ("127.0.0.1", port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open = threading.Event()
        self._open.set()
        self._sockets: list[socket.socket] = [self._listening]
        self._is_cut = False
        self.held = 0
        """Bytes that were held."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave no way open: a thread that still accepts would take one more."""
        self._open.set()
        self.cut()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def kubeconfig(self, given: Path, folder: Path) -> Path:
        """The same as *given*, by this way."""
        plain = yaml.safe_load(given.read_text(encoding="utf-8"))
        port = self._listening.getsockname()[1]
        plain["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        file = folder / "detour"
        file.write_text(yaml.safe_dump(plain), encoding="utf-8")
        return file

    def hold(self) -> None:
        """Keep what comes from the scheduler."""
        self._open.clear()

    def cut(self) -> None:
        """End every connection, and take no others."""
        self._is_cut = True
        for each in self._sockets[1:]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        del self._sockets[1:]

    def mend(self) -> None:
        """Take connections again."""
        self._is_cut = False

    def deliver(self) -> None:
        """Pass on what was kept."""
        self._open.set()

    def _accept(self) -> None:
        while True:
            try:
                near, _address = self._listening.accept()
                if self._is_cut:
                    near.close()
                    continue
                far = socket.create_connection(self._to)
            except OSError:
                return
            self._sockets += [near, far]
            for work in (self._up, self._down):
                threading.Thread(target=work, args=(near, far), daemon=True).start()

    def _up(self, near: socket.socket, far: socket.socket) -> None:
        """What the scheduler says; its end is never passed on."""
        try:
            while got := near.recv(1 << 16):
                if not self._open.is_set():
                    self.held += len(got)
                    self._open.wait()
                far.sendall(got)
        except OSError:
            return

    def _down(self, near: socket.socket, far: socket.socket) -> None:
        try:
            while got := far.recv(1 << 16):
                near.sendall(got)
        except OSError:
            return
