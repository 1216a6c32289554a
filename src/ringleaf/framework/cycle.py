"""One scheduling cycle: the parts that actions work on, and the order of its steps.

The engine begins a cycle for every batch of events. The actions run in the order of
the configuration: ``enqueue`` admits jobs, ``allocate`` starts those with a reservation
and then others, and makes reservations, ``backfill`` starts pods that request nothing,
``preempt`` and ``reclaim`` evict pods, ``rearrange`` moves running jobs. Start reading
at ``Cycle.run``.
"""

from collections.abc import Callable, Mapping
from math import inf
from typing import Final

from ringleaf.framework.budget import Slice, VictimSearchState
from ringleaf.framework.changes import Change, Changes
from ringleaf.framework.failures import Failures
from ringleaf.framework.framework import Framework
from ringleaf.framework.instruction import WakeAt
from ringleaf.framework.moved import MovedLately
from ringleaf.framework.pending import PendingJobs
from ringleaf.framework.placer import Placer
from ringleaf.framework.quota import Quota
from ringleaf.framework.reports import Reports
from ringleaf.framework.reservations import Reservations
from ringleaf.framework.state import SchedulerState
from ringleaf.framework.wakeups import Wakeups
from ringleaf.model.cluster import Node

ActionFunction = Callable[["Cycle"], None]
"""What an action does in a cycle."""

MAX_ROUNDS: Final = 100
"""How often the actions run after one event, while what they do makes room for more."""
SOON_S: Final = 1.0
"""When to go on where that was not enough."""


class Cycle:
    """The long-lived parts of one engine.

    ``begin``, ``run`` and ``end`` make one scheduling cycle, for a batch of events.

    Args:
        state: The cluster, the queues and the state of every job.
        framework: Plugins and settings.
        nodes: The nodes as they were last heard of.

    """

    def __init__(
        self, state: SchedulerState, framework: Framework, nodes: Mapping[str, Node]
    ) -> None:
        self.view, self.framework = state, framework
        self.changes = changes = Changes()
        self.failures = failures = Failures(nodes)
        self.reports = reports = Reports(state, framework)
        self.slice, self.victim_search = Slice(), VictimSearchState()
        search = self.victim_search
        self.pending = PendingJobs(framework, failures, changes, reports, search)
        self.reservations = reserved = Reservations(state, framework, changes)
        self.quota = Quota(state, framework, reserved, failures.repairs)
        self.placer = Placer(state, framework, changes, reserved, failures.repairs)
        self.wakeups = Wakeups(framework, changes, self.pending, reserved, search)

    # From begin to end.

    def begin(self, now: float, most: float, *, has_events: bool) -> None:
        """Begin a cycle that starts *most* jobs at most; *has_events*: after events.

        Where only a search for victims is left to do, it goes on: what is decided does
        not depend on how often it was interrupted.
        """
        search, self.view.now = self.victim_search, now
        is_due = search.again_at <= now
        stopped = self.slice.is_cut_short or self.slice.is_spent
        goes_on = not (has_events or is_due or stopped)
        resumed = search.resume.action if goes_on and search.resume else None
        self.reservations.begin(now)
        self.reports.out, self.reports.admitted, self.pending.rejected = [], [], []
        search.begin(resumes=stopped or search.resume is not None)
        self.slice.begin(most, resumed)
        if is_due:
            search.again_at = inf
            self.wakeups.victims_changed()

    def run(
        self, functions: Mapping[str, ActionFunction], reconcile: ActionFunction
    ) -> None:
        """Run the actions, then *reconcile*, until they make no more room."""
        for _round in range(MAX_ROUNDS):
            if self.slice.resumed is None:  # every queue is asked anew
                self.victim_search.passed_over.clear()
                if self.wakeups.may_admit_more:
                    self.wakeups.ask_queues()
            if not self._run_actions(functions):
                return
            if self.failures.repairs.open:
                reconcile(self)
            if self.victim_search.resume is not None:
                return
            search = self.victim_search
            more = self.wakeups.may_admit_more or search.failed_since
            search.failed, search.failed_since = search.failed_since, {}
            if self.slice.is_spent:
                return
            if not more:
                break
        else:
            self.wake_at(self.view.now + SOON_S)
        if self.reports.unreported:
            self.pending.report_unreported()

    def _run_actions(self, functions: Mapping[str, ActionFunction]) -> bool:
        """Run the actions that are left, in order; whether none was cut short."""
        actions, first = self.framework.conf.actions, self.slice.resumed
        for action in actions[0 if first is None else actions.index(first) :]:
            functions[action](self)
            if self.slice.is_cut_short:
                if self.pending.rejected:  # they are looked at again
                    self.changes.note(Change.USAGE_CHANGED)
                return False
        self.slice.resumed = None
        if self.pending.rejected:
            self.pending.report_rejected()
        return True

    def end(self, next_look: Callable[["Cycle"], float]) -> None:
        """Say when to be called again, at *next_look* at the latest, if it is news.

        Where more is to be decided, that is at once.
        """
        if self.has_more:
            return
        wake = min(self.slice.wake, self.victim_search.again_at, next_look(self))
        if wake != inf and self.slice.is_news(wake, self.view.now):
            self.reports.out.append(WakeAt(wake))

    # What the actions ask.

    @property
    def moved(self) -> MovedLately:
        """The moves of the last hour, and when to look for others."""
        return self.wakeups.moved

    @property
    def has_more(self) -> bool:
        """Whether there is more to decide than may be in this cycle."""
        stopped = self.slice.is_cut_short or self.slice.is_spent
        return stopped or self.victim_search.resume is not None

    def wake_at(self, time: float) -> None:
        """Something changes by itself at *time*."""
        if time > self.view.now:
            self.slice.wake = min(self.slice.wake, time)
