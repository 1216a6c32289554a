"""Chromium without a screen, to look at pages: it clicks, reads and takes pictures.

It is driven by the DevTools protocol over two pipes, so that no port is open. Every
wait ends: with an answer, or with ``TestbedError``.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self

from ringleaf_testbed.source import TestbedError

NAMES: Final = ("chromium", "chromium-browser", "google-chrome-stable")
PATIENCE_S: Final = 60.0
"""How long anything may take: a busy machine is slow."""
POLL_S: Final = 0.05
READ, WRITE = 3, 4
"""The pipes that Chromium reads commands from and writes answers to."""
HIGH: Final = 10
"""Where our own ends of the pipes are out of the way of these."""

FLAGS: Final = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--remote-debugging-pipe"),
    *("--disable-dev-shm-usage", "--force-color-profile=srgb", "--mute-audio"),
)


def find_chromium() -> Path | None:
    """The Chromium of this machine; Debian's package is ``chromium``."""
    found = (shutil.which(name) for name in NAMES)
    return next((Path(each) for each in found if each), None)


@contextmanager
def browsing() -> Iterator["Tab"]:
    """A page in a browser that ends with the block, and all its processes with it.

    Raises:
        TestbedError: Chromium is not there, or does not answer.

    """
    program = find_chromium()
    if program is None:
        raise TestbedError("no Chromium on the path; hint: apt-get install chromium")
    with TemporaryDirectory(prefix="ringleaf-", ignore_cleanup_errors=True) as folder:
        reader, theirs = _pipe()
        mine, writer = _pipe()
        with Path(folder, "log").open("wb") as log:
            pid = os.posix_spawn(
                program,
                [str(program), *FLAGS, f"--user-data-dir={folder}", "about:blank"],
                os.environ | {"HOME": folder},
                file_actions=[
                    # first, as the file may have the number of a pipe
                    (os.POSIX_SPAWN_DUP2, log.fileno(), 1),
                    (os.POSIX_SPAWN_DUP2, log.fileno(), 2),
                    (os.POSIX_SPAWN_DUP2, mine, READ),
                    (os.POSIX_SPAWN_DUP2, theirs, WRITE),
                ],
                setpgroup=0,
            )
        os.close(mine)
        os.close(theirs)
        try:
            yield Tab(_Pipes(reader, writer)).attached()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(reader)
            os.close(writer)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends have high numbers, and are closed in children."""
    low = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, HIGH) for end in low]
    for end in low:
        os.close(end)
    return high[0], high[1]


class _Pipes:
    """Messages to and from the browser: JSON, a zero byte after each."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader, self._writer = reader, writer
        self._buffer = b""

    def send(self, message: Mapping[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\0"
        with suppress(BrokenPipeError):  # the answer will be missed
            while data:
                data = data[os.write(self._writer, data) :]

    def receive(self, until: float) -> dict[str, Any] | None:
        """The next message; None where none comes in time."""
        while b"\0" not in self._buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._reader], [], [], left)[0]:
                return None
            data = os.read(self._reader, 1 << 20)
            if not data:
                raise TestbedError("Chromium ended")
            self._buffer += data
        first, _zero, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message


class Tab:
    """A tab.

    Attributes:
        errors: What went wrong on the page: uncaught exceptions, errors and warnings
            of the console, what could not be loaded.

    """

    def __init__(self, pipes: _Pipes) -> None:
        self._pipes = pipes
        self._session: str | None = None
        self._n_sent = 0
        self._happened: set[str] = set()
        self.errors: list[str] = []

    def attached(self) -> Self:
        """The page in a new tab."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        answer = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = answer["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        return self

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Ask the browser for *method*; its answer."""
        self._n_sent += 1
        sent: dict[str, Any] = {"id": self._n_sent, "method": method, "params": params}
        if self._session is not None:
            sent["sessionId"] = self._session
        self._pipes.send(sent)
        until = time.monotonic() + PATIENCE_S
        while (message := self._pipes.receive(until)) is not None:
            if message.get("id") == sent["id"]:
                if "error" in message:
                    raise TestbedError(f"{method}: {message['error']['message']}")
                found: dict[str, Any] = message["result"]
                return found
            self._note(message)
        raise TestbedError(f"{method}: no answer in {PATIENCE_S:.0f} s")

    def _note(self, message: Mapping[str, Any]) -> None:
        method, params = message.get("method", ""), message.get("params", {})
        self._happened.add(method)
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            thrown = details.get("exception", {}).get("description", details["text"])
            self.errors.append(thrown)
        elif method == "Runtime.consoleAPICalled" and params["type"] in (
            *("error", "warning", "assert"),
        ):
            self.errors.append(str([each.get("value") for each in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])

    def open(self, url: str) -> None:
        """Load *url* and wait until it is there."""
        self._happened.discard("Page.loadEventFired")
        self.call("Page.navigate", url=url)
        self.wait(lambda: "Page.loadEventFired" in self._happened, f"{url} to load")

    def run(self, script: str) -> Any:  # noqa: ANN401 - whatever the page has
        """The result of *script* on the page, as plain values."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise TestbedError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def wait(self, is_so: Callable[[], object], what: str) -> None:
        """Wait until *is_so* gives something that is true."""
        until = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > until:
                raise TestbedError(f"waited {PATIENCE_S:.0f} s for {what}")
            message = self._pipes.receive(time.monotonic() + POLL_S)
            if message is not None:
                self._note(message)

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the page in pixels, and its color scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def box(self, query: str) -> tuple[float, float, float, float]:
        """Left, top, width and height of an element on the whole page."""
        left, top, width, height = self.run(
            f"(b => [b.x + scrollX, b.y + scrollY, b.width, b.height])"
            f"(document.querySelector({json.dumps(query)}).getBoundingClientRect())"
        )
        return left, top, width, height

    def show(self, query: str) -> None:
        """Scroll until an element is in the middle of the screen."""
        self.run(
            f"document.querySelector({json.dumps(query)})"
            '.scrollIntoView({block: "center", behavior: "instant"})'
        )

    def drag(self, query: str, start: float, stop: float) -> None:
        """Press the mouse on an element, move it, release it; parts of its width."""
        self.show(query)
        left, top, width, height = self.run(
            "(b => [b.x, b.y, b.width, b.height])"
            f"(document.querySelector({json.dumps(query)}).getBoundingClientRect())"
        )
        y = top + height / 2
        steps = [start + (stop - start) * n / 4 for n in range(5)]
        for kind, part in (
            ("mousePressed", start),
            *(("mouseMoved", part) for part in steps),
            ("mouseReleased", stop),
        ):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=left + width * part,
                y=y,
                button="left",
                buttons=int(kind != "mouseReleased"),
                clickCount=1,
            )

    def click(self, query: str, part: float = 0.5) -> None:
        """Click on an element, at a part of its width."""
        self.drag(query, part, part)

    def press(self, key: str) -> None:
        """Press and release a key."""
        text = key if len(key) == 1 else ""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def downloads_to(self, folder: Path) -> None:
        """Let the page save files in *folder*."""
        self.call(
            "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder)
        )

    def picture(self, *queries: str, margin: float = 0, scale: float = 1) -> bytes:
        """PNG of the part of the page that has the elements of all *queries*."""
        boxes = [self.box(query) for query in queries]
        left = min(x for x, _y, _w, _h in boxes) - margin
        top = min(y for _x, y, _w, _h in boxes) - margin
        right = max(x + w for x, _y, w, _h in boxes) + margin
        bottom = max(y + h for _x, y, _w, h in boxes) + margin
        clip = {
            "x": left,
            "y": top,
            "width": right - left,
            "height": bottom - top,
            "scale": scale,
        }
        answer = self.call(
            "Page.captureScreenshot", clip=clip, captureBeyondViewport=True
        )
        return base64.b64decode(answer["data"])
