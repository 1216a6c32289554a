"""What events and actions work on: every long-lived part of one scheduler."""

from collections.abc import Callable, Mapping

from ringleaf.framework.budget import CallBudget, VictimSearchState
from ringleaf.framework.changes import Changes
from ringleaf.framework.framework import Framework
from ringleaf.framework.pending import PendingJobs
from ringleaf.framework.placer import Placer
from ringleaf.framework.pods_ready import PodsReadyWatch
from ringleaf.framework.quota import Quota
from ringleaf.framework.repairs import Repairs
from ringleaf.framework.reports import Reports
from ringleaf.framework.reservations import Reservations
from ringleaf.framework.state import SchedulerState
from ringleaf.framework.wakeups import Wakeups
from ringleaf.model.cluster import Node

ActionFunction = Callable[["Context"], None]
"""What an action does in a cycle."""


class Context:
    """The parts of one scheduler; made once, while ``engine.cycle`` runs many cycles.

    Args:
        state: The cluster, the queues and the state of every job.
        framework: Plugins and settings.
        nodes: The nodes as they were last reported.

    """

    def __init__(
        self, state: SchedulerState, framework: Framework, nodes: Mapping[str, Node]
    ) -> None:
        changes = Changes()
        self.state, self.framework = state, framework
        self.repairs, self.pods_ready = Repairs(nodes), PodsReadyWatch()
        self.reports = Reports(state, framework)
        self.budget, self.victim_search = CallBudget(), VictimSearchState()
        self.pending = PendingJobs(
            framework,
            changes,
            self.repairs,
            self.pods_ready,
            reports=self.reports,
            victim_search=self.victim_search,
        )
        self.reservations = Reservations(state, framework, changes)
        self.quota = Quota(state, framework, self.reservations, self.repairs)
        self.placer = Placer(state, framework, changes, self.reservations, self.repairs)
        self.wakeups = Wakeups(
            framework, changes, self.pending, self.reservations, self.victim_search
        )

    def wake_at(self, time: float) -> None:
        """Something changes by itself at *time*: call the engine again then."""
        if time > self.state.now:
            self.budget.wake = min(self.budget.wake, time)
