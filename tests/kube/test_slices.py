"""A long decision is made in slices, between which everything else has its turn."""

import asyncio
from collections.abc import Iterable
from itertools import pairwise

from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event
from ringleaf.framework.instruction import Instruction
from ringleaf.framework.state import SchedulerState
from ringleaf.kube.api import Api
from ringleaf.kube.credentials import Credentials
from ringleaf.kube.scheduler import Options, Scheduler

SLICES = 5


class Slow:
    """Decides in as many slices, and notes how far others were at each."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.seen: list[int] = []
        self.turns = 0

    @property
    def view(self) -> SchedulerState:
        return self._engine.view

    @property
    def has_more(self) -> bool:
        return 0 < len(self.seen) < SLICES

    @property
    def admitted(self) -> Iterable[str]:
        return ()

    def handle_all(
        self, events: Iterable[Event], now: float, most: float
    ) -> list[Instruction]:
        self._engine.handle_all(events, now, most)
        self.seen.append(self.turns)
        return []

    def explain(self, name: str, *, hints: bool = True) -> object:
        return self._engine.explain(name, hints=hints)


def test_others_have_their_turn_between_two_slices() -> None:
    async def story() -> list[int]:
        minds: list[Slow] = []

        def mind(engine: Engine) -> Slow:
            minds.append(Slow(engine))
            return minds[0]

        api = Api(Credentials("http://127.0.0.1:1"))
        scheduler = Scheduler(api, Options(), _nothing, mind)  # type: ignore[arg-type]
        scheduler.reconfigure(Options().conf)

        async def others() -> None:
            while True:
                minds[0].turns += 1
                await asyncio.sleep(0)

        working = asyncio.create_task(others())
        for _slice in range(SLICES):
            await scheduler.loop.cycle()
        working.cancel()
        return minds[0].seen

    seen = asyncio.run(story())

    assert len(seen) == SLICES
    assert all(later > before for before, later in pairwise(seen))


def _nothing(*_words: object, **_facts: object) -> None:
    """Say nothing."""
