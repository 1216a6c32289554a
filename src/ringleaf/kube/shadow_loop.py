"""The service around a shadow: it watches the cluster, and logs what it finds."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from ringleaf.config.conf import Conf
from ringleaf.kube.api import Api
from ringleaf.kube.quarantine import told, trace_of
from ringleaf.kube.reflectors import reflectors
from ringleaf.kube.service import KubeService, Say
from ringleaf.kube.shadow import Shadow, ShadowConf
from ringleaf.kube.shadow_results import Finding

STUCK_S: Final = 60.0
"""Reading that takes longer is no sign of life."""


class ShadowLoop(KubeService):
    """A shadow beside a cluster: it looks, and tells what it finds.

    Args:
        api: The API server; it is read from, and nothing else.
        options: How it is run.
        say: Writes a line of the log.
        found: Is told of every finding.

    """

    def __init__(
        self,
        api: Api,
        options: ShadowConf,
        say: Say,
        found: Callable[[Finding], None] = lambda _finding: None,
    ) -> None:
        super().__init__(say)
        self._tell = found
        self.shadow = Shadow(options, self.now, self._found)
        self._last = self.now()
        self._reflectors = list(
            reflectors(
                api,
                self.shadow.buffer.handlers,
                self._wake.set,
                lambda line: say("trouble", message=line),
            )
        )

    def reconfigure(self, conf: Conf) -> None:
        """Judge by *conf* from now on."""
        self.refused_conf = ""
        self.shadow.cache.reconfigure(conf.quiet)
        self._wake.set()

    def page(self) -> bytes:
        """What it has found, as JSON."""
        return msgspec.json.encode(self.shadow.findings.summary())

    def live(self) -> tuple[bool, dict[str, str]]:
        """Whether it does its work."""
        silent = self.now() - self._last
        return silent < STUCK_S or not self.is_synced, {"read": f"{silent:.0f} s ago"}

    def ready(self) -> tuple[bool, dict[str, str]]:
        """Whether it may be relied on."""
        return self._is_ready("shadow")

    async def run(self) -> None:
        """Look until asked to stop."""
        for number, reflector in enumerate(self._reflectors):
            self._start(reflector.run(), f"{reflector.path} {number}")
        try:
            while not (self.is_synced or self._stop.is_set()):
                await self._wake.wait()
                self._wake.clear()
            if self.is_synced:
                self.shadow.begin()
                cache = self.shadow.cache
                self._say("synced", nodes=cache.n_nodes, pods=len(cache.pods))
            while not self._stop.is_set():
                self._last = self.now()
                self._advance()
                await self._sleep()
        finally:
            await self._end_parts([*self._tasks])
        self._say("stopped", jobs=self.shadow.findings.verdicts.total())

    def _advance(self) -> None:
        """Read on; what fails is set aside, and the rest is read the next time."""
        try:
            self.shadow.advance()
        except Exception as error:  # noqa: BLE001 - one job stops no other
            found = self.shadow.decider.recover(error, self.now())
            named = ", ".join(f"{each.kind} {each.key}" for each in found) or "unknown"
            self._say("failed", culprit=named, why=told(error), trace=trace_of(error))
            self._wake.set()

    async def _sleep(self) -> None:
        """Until something happens, or it is time."""
        wait = max(0.0, self.shadow.next_at - self.now())
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._wake.wait()
        self._wake.clear()

    def _found(self, finding: Finding) -> None:
        self._say(
            "judged",
            job=finding.job,
            verdict=finding.verdict.value,
            rule=finding.rule,
            why=finding.why,
        )
        self._tell(finding)
