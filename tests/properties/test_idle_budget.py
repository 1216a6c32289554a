"""Whatever happens, reservations keep no more idle than their budget in 24 hours.

Restarts count as well: the next engine hears what the last one wrote down.
"""

from collections import Counter
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.engine.engine import Engine
from ringleaf.engine.event import (
    Event,
    IdleAccountKnown,
    JobArrived,
    JobGone,
    TimerFired,
)
from ringleaf.framework.instruction import WakeAt
from ringleaf.kube.idle_note import IdleNote, account_in
from tests.effort import assert_reached, examples
from tests.engine.story import conf, job, node

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
N_NODES = 4

STEPS = st.lists(
    st.tuples(
        st.floats(0, 10 * HOUR_S),
        st.sampled_from(["small", "gang", "all", "end", "restart", "nothing"]),
        st.none() | st.floats(60, DAY_S),
    ),
    min_size=10,
    max_size=40,
)


class History:
    """An engine that is woken when it asks for it, and what reservations kept idle."""

    def __init__(self, budget: float) -> None:
        own = {"reservation-after-seconds": 1800, "reservation-idle-budget": budget}
        self._conf = conf(allocate=own)
        self.engine = self._engine()
        self.limit = budget * 8 * N_NODES * DAY_S
        self.now, self._wake = 0.0, inf
        self._spans: list[tuple[float, float, int]] = []
        self.seen: Counter[str] = Counter()

    def _engine(self) -> Engine:
        return Engine([node(f"n{i}") for i in range(N_NODES)], conf=self._conf)

    def restart(self) -> None:
        """Another engine hears of all there is, and decides from now on."""
        reservations, states = self.engine.context.reservations, self.engine.view
        text = IdleNote(lambda: reservations.idle.account(self.now), lambda _: None)
        known = account_in(text.text() or "")
        arrivals = [
            JobArrived(
                state.job,
                (*state.placements.values(),),
                state.started,
                state.waiting_since,
            )
            for state in states.job_states.values()
        ]
        self.seen["suspended over a restart"] += self.is_suspended
        self._spans.append((self.now, self.now, 0))
        self.engine = self._engine()
        self._at(self.now, IdleAccountKnown(known), *arrivals)

    @property
    def is_suspended(self) -> bool:
        """Whether reservations keep no chips now, because their budget is used up."""
        return self.engine.context.reservations.idle.budget.is_spent

    @property
    def idle(self) -> int:
        """The chips that are held for reservations."""
        held = self.engine.view.cluster.holdings
        return sum(
            holding.chips.bit_count()
            for reservation in self.engine.reservations.values()
            if reservation.aged
            for holding in held.get(reservation.owner, ())
        )

    def go_on(self, until: float) -> None:
        """Time passes."""
        while self._wake <= until:
            self._at(self._wake, TimerFired())
        self._at(until)

    def hear(self, event: Event) -> None:
        """Something happens now."""
        self._at(self.now, event)

    def _at(self, now: float, *events: Event) -> None:
        before = {*self.engine.reservations}
        self._spans.append((self.now, now, self.idle))
        self.now = now
        if self._wake <= now:
            self._wake = inf
        for said in self.engine.handle_all(events, now) if events else ():
            if isinstance(said, WakeAt):
                self._wake = said.at
        self._look(before)

    def _look(self, before: set[str]) -> None:
        start = self.now - DAY_S
        kept = sum(
            idle * (end - max(begin, start))
            for begin, end, idle in self._spans
            if end > start
        )
        assert kept <= self.limit * (1 + 1e-9) + 1e-6, (kept, self.limit)
        self.seen["reserved"] += bool(self.engine.reservations.keys() - before)
        self.seen["suspended"] += bool(before and self.is_suspended)
        self.seen["near the limit"] += kept > 0.9 * self.limit > 0


@pytest.mark.parametrize("budget", [0, 0.01, 0.05, 0.5])
def test_reservations_keep_no_more_idle_than_their_budget(budget: float) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(80), deadline=None)
    @given(STEPS)
    def check(steps: list[tuple[float, str, float | None]]) -> None:
        history, runs = History(budget), []
        sizes = {"small": 1, "gang": 2, "all": N_NODES}
        for number, (wait_s, what, estimate_s) in enumerate(steps):
            history.go_on(history.now + wait_s)
            if what in sizes:
                name = f"j{number}"
                runs.append(name)
                made = job(name, 8, sizes[what], estimate_s=estimate_s)
                history.hear(JobArrived(made))
            elif what == "restart":
                history.restart()
            elif what == "end" and runs:
                history.hear(JobGone(runs.pop(0)))
            if history.is_suspended and number % 4 == 0:
                history.restart()
        history.go_on(history.now + 2 * DAY_S)
        seen.update(history.seen)

    check()

    if budget:
        assert_reached(seen, "reserved", "suspended", "near the limit")
        if budget < 0.5:
            assert_reached(seen, "suspended over a restart")
    else:
        assert not seen["reserved"]
