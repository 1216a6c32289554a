"""Leading: standing by, taking the lead, knowing what the leader before knew.

The ``Elector`` says which replica leads; this is what a scheduler does about it. One
that steps down sends nothing more, and what was decided counts for nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from inspect import isawaitable
from math import inf
from typing import Any, Final, Protocol

from ringleaf.kube.api import Api
from ringleaf.kube.backoff import backoff_s
from ringleaf.kube.leader import SEEN, Elector, Runner, at_once
from ringleaf.kube.objects import Pod
from ringleaf.kube.quarantine import told
from ringleaf.kube.service import Part
from ringleaf.kube.watch import Reflector

MARK_S: Final = 2.0
"""How long to wait for the Lease before looking at anything else."""
CATCH_UP_S: Final = 0.5
"""How long a watch may lag behind the leader before us."""
FIRST_STAND_S, MOST_STAND_S = 1.0, 60.0
"""How long after a failure a leader stands for the Lease again."""
STUCK_S: Final = 60.0
"""A cycle that takes longer is no sign of life."""
BEAT_S: Final = 1.0
"""How often to show that it is alive."""
MOST_DIGITS: Final = 19
"""Digits of a version that is believed."""


class Leader(Protocol):
    """What leads, or stands by."""

    def start(self, part: Part, name: str) -> None:
        """Begin a part of the work."""

    async def list_anew(self, reflector: Reflector[Any]) -> None:
        """Have a reflector begin with a list again."""

    def is_running(self, name: str) -> bool:
        """Whether a part of the work goes on."""

    async def read_leader_state(self) -> None:
        """Read what the last leader wrote."""

    def begin_to_lead(self) -> None:
        """Decide from now on, and write what a leader writes."""

    def stop_deciding(self) -> None:
        """Have the engine decide nothing more."""

    async def stop_leading(self, *, led: bool, contain: "Contain") -> None:
        """Write nothing more, and forget what was decided."""

    def log_failed(self, culprit: str, error: BaseException) -> None:
        """Log and count a failure inside."""


Contain = Callable[[str, Callable[[], object]], Awaitable[None]]
"""Takes a step; one that fails is logged, and stops no other."""


class Leadership:
    """Stands for the Lease, leads, and steps down.

    Args:
        leader: What leads.
        pods: The reflector of pods.
        api: The API server.
        say: Writes a line of the log.
        elector: Says when it leads; without one it leads from the beginning.
        aside: Runs the elector's work.

    """

    def __init__(
        self,
        leader: Leader,
        pods: Reflector[Pod],
        api: Api,
        say: Callable[..., None],
        elector: Elector | None,
        *,
        aside: Runner = at_once,
    ) -> None:
        self._leader, self._pods, self._api, self._say = leader, pods, api, say
        self.elector, self._aside = elector, aside
        self.leads = elector is None
        """Whether it decides; one that does not keeps the cache up to date."""
        self.led = asyncio.Event()
        """Set while it leads and knows the cluster: others may write."""
        self._listed_after = ""
        """The version of a Lease whose holder's time was over when pods were listed."""
        self._listing = asyncio.Lock()

    @property
    def identity(self) -> str:
        """The identity under which it leads; empty without an elector."""
        return "" if self.elector is None else self.elector.identity

    def remaining(self) -> float:
        """Seconds for which no other scheduler can lead."""
        return inf if self.elector is None else self.elector.remaining()

    @property
    def trouble(self) -> str:
        """Why the Lease could not be written the last time; empty where it could."""
        return "" if self.elector is None else self.elector.trouble

    def lease(self) -> list[Reflector[Any]]:
        """The reflector of the Lease, if there is one."""
        return [] if self.elector is None else [self.elector.reflector]

    # The beginning and the end.

    async def watch_lease(self) -> None:
        """Begin to watch the Lease, and remember whether another scheduler has it."""
        elector = self.elector
        if elector is not None:
            self._api.fence = elector.remaining
            self._leader.start(partial(self._beat, elector), "beat")
            watched = elector.reflector
            self._leader.start(lambda: self._aside(watched.run()), watched.path)
            with suppress(TimeoutError):
                async with asyncio.timeout(MARK_S):
                    await self._aside(elector.known())
            elector.mark()

    async def _beat(self, elector: Elector) -> None:
        """Show that something is done here; one that is stuck must not lead."""
        beat = time.monotonic()
        elector.well = lambda: time.monotonic() - beat < STUCK_S
        while True:
            beat = time.monotonic()
            await asyncio.sleep(BEAT_S)

    async def release(self, is_sure: Callable[[], bool]) -> None:
        """Release the Lease; *is_sure* once the watch has shown every pod we sent."""
        assert self.elector is not None
        # One that did not lead yet may not know what the leader before it bound.
        seen = str(self._pods.latest) if self.leads and is_sure() else ""
        await self._aside(self.elector.release(seen))

    # Leading.

    async def stand(self) -> None:
        """Stand by until no other scheduler leads, lead, and stand by again.

        If something fails inside, the Lease runs out, and another replica may do
        better. This one stands for it again after a pause, which doubles each time.
        """
        elector, n_failures = self.elector, 0
        assert elector is not None
        while True:
            if not self._leader.is_running("early"):
                self._leader.start(partial(self._look_early, elector), "early")
            try:
                why = await self._lead(elector)
            except Exception as error:  # noqa: BLE001 - whatever it is
                self._leader.log_failed("leader", error)
                await self._step_down(elector, f"it failed: {told(error)}")
                pause_s = backoff_s(FIRST_STAND_S, n_failures, MOST_STAND_S)
                await asyncio.sleep(pause_s)
                n_failures += 1
            else:
                await self._step_down(elector, why)
                n_failures = 0

    async def _lead(self, elector: Elector) -> str:
        """Lead once no other scheduler does; return, in words, why we no longer do."""
        await self._aside(elector.acquire())
        kept = asyncio.create_task(self._keep(elector), name="lease")
        try:
            if not elector.was_vacant:
                await self._catch_up(elector)
                await self._leader.read_leader_state()
            if elector.leads:
                self.take_the_lead()
            return await kept
        finally:
            kept.cancel()

    async def _keep(self, elector: Elector) -> str:
        """Renew the Lease; return why we no longer lead."""
        return await self._aside(elector.keep())

    def take_the_lead(self) -> None:
        """Decide from now on."""
        self.leads = True
        self.led.set()
        self._leader.begin_to_lead()

    async def _step_down(self, elector: Elector, why: str) -> None:
        """Stand by: nothing more is sent, and what was decided counts for nothing.

        The watches go on, and so does the cache. It holds what the objects say, as that
        of a scheduler that has never led. A step that fails is logged, and the others
        are taken.
        """
        led, self.leads = self.leads, False
        self.led.clear()
        await self._contain("requests", self._api.cut)
        await self._contain("configuration", self._leader.stop_deciding)
        self._say("deposed", identity=elector.identity, why=why)
        await self._leader.stop_leading(led=led, contain=self._contain)
        await self._contain("lease", lambda: self._aside(elector.step_down()))
        self._api.sign(elector.identity)

    async def _contain(self, what: str, step: Callable[[], object]) -> None:
        """Take a step; one that fails is logged, and stops no other."""
        try:
            found = step()
            if isawaitable(found):
                await found
        except Exception as error:  # noqa: BLE001 - whatever it is
            self._leader.log_failed(what, error)

    # What the leader before us bound.

    async def _catch_up(self, elector: Elector) -> None:
        """Know of every pod that the leader before us bound."""
        before = elector.taken_from
        given_up = before is not None and not before.holder
        noted = before.metadata.annotations if before and given_up else None
        seen = (noted or {}).get(SEEN, "")
        if seen.isdecimal() and len(seen) <= MOST_DIGITS:
            with suppress(TimeoutError):
                async with asyncio.timeout(CATCH_UP_S):
                    await until(lambda: self._pods.version >= int(seen))
                    return
        await self._list_pods_after(before.metadata.resource_version if before else "")
        await until(lambda: self._pods.synced or not elector.leads)

    async def _look_early(self, elector: Elector) -> None:
        """List pods anew as soon as another leader can bind no more.

        That is a moment before we may lead; where it leads on, nothing is lost.
        """
        while silent := await self._aside(elector.silent(self._listed_after)):
            await self._list_pods_after(silent)

    async def _list_pods_after(self, lease: str) -> None:
        """Begin to list pods anew, unless that was done for this version of a Lease."""
        async with self._listing:
            if lease and lease == self._listed_after:
                return
            await self._leader.list_anew(self._pods)
            self._listed_after = lease


async def until(condition: Callable[[], bool]) -> None:
    """Return when *condition* holds."""
    while not condition():  # noqa: ASYNC110 - it is rare, and short
        await asyncio.sleep(CATCH_UP_S / 50)
