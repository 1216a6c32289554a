"""The engine: events in, instructions out. Start reading at ``Engine.handle``.

It is a pure function of the events so far: no clock, no dice, no I/O. The same events
at the same times give the same instructions, byte for byte.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import inf
from typing import cast

from ringleaf.actions import ACTION_FUNCTIONS
from ringleaf.actions.handle_faults import handle_faults
from ringleaf.actions.reconcile_repairs import reconcile_if_changed
from ringleaf.actions.unstarted import end_due_quarantines, next_look, release_unstarted
from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.event import Event, Handlers, JobArrived, TimerFired
from ringleaf.engine.explain_job import explain_job
from ringleaf.engine.fault_events import FaultEvents
from ringleaf.engine.job_events import JobEvents
from ringleaf.engine.lifecycle import JobLifecycle
from ringleaf.engine.node_events import NodeEvents
from ringleaf.engine.pod_events import PodEvents
from ringleaf.engine.rule_events import RuleEvents
from ringleaf.engine.run_recorder import RunRecorder
from ringleaf.framework.cycle import ActionFunction, Cycle
from ringleaf.framework.fault_log import FaultLog
from ringleaf.framework.framework import Framework, session_over
from ringleaf.framework.instruction import Instruction
from ringleaf.framework.quarantine import QuarantinedNode
from ringleaf.framework.repair import Repair
from ringleaf.framework.reservation import Reservation
from ringleaf.framework.run_times import RunTimes
from ringleaf.framework.session import Session
from ringleaf.framework.state import SchedulerState
from ringleaf.framework.votes import Votes
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Decision, Invalid
from ringleaf.model.fault import Deletion
from ringleaf.model.queue import Queue
from ringleaf.model.uplinks import Leaf
from ringleaf.plugins import PLUGINS


class Engine:
    """A cluster being scheduled.

    Args:
        nodes: The nodes at the beginning.
        leaves: What is known of leaf switches besides the pods under them.
        queues: The queues at the beginning; there is always one named default.
        conf: The configuration.

    """

    actions: Mapping[str, ActionFunction] = ACTION_FUNCTIONS
    """What the actions of a configuration do."""

    def __init__(
        self,
        nodes: Iterable[Node],
        leaves: Iterable[Leaf] = (),
        queues: Iterable[Queue] = (),
        conf: Conf = DEFAULT,
    ) -> None:
        by_name = {node.name: node for node in nodes}
        leaves = tuple(leaves)
        cluster = Cluster(by_name.values(), leaves)
        self.view = SchedulerState(cluster, conf.settings, queues)
        framework = Framework(self.view, conf, PLUGINS, self._session)
        self.cycle = cycle = Cycle(self.view, framework, by_name)
        lifecycle = JobLifecycle(cycle)
        self._nodes = NodeEvents(cycle, lifecycle, by_name, leaves)
        self._runs = RunRecorder(cycle)
        self._jobs = JobEvents(cycle, lifecycle, self._nodes, self._runs)
        self._handlers: Handlers = {
            **self._nodes.handlers,
            **self._jobs.handlers,
            **self._runs.handlers,
            **PodEvents(cycle, lifecycle, self._runs).handlers,
            **FaultEvents(cycle, lifecycle, self._jobs).handlers,
            **RuleEvents(cycle, lifecycle, self._jobs).handlers,
            TimerFired: self._woke,
        }

    def handle(self, event: Event, now: float) -> list[Instruction]:
        """What is to be done after *event*."""
        return self.handle_all([event], now)

    def handle_all(
        self, events: Iterable[Event], now: float, most: float = inf
    ) -> list[Instruction]:
        """What is to be done after *events*, which happened together.

        After *most* jobs were started it stops, so that they can be bound while the
        next are decided. The search for victims stops as well, after as much work as
        *most* stands for, and goes on where it was. Call it again, with whatever has
        happened since, as long as it ``is_cut_short``.
        """
        cycle, events = self.cycle, [*events]
        cycle.begin(now, most, has_events=bool(events))
        self._apply(events)
        end_due_quarantines(cycle)
        release_unstarted(cycle)
        if cycle.framework.decides:
            handle_faults(cycle)
            cycle.run(self.actions, reconcile_if_changed)
        cycle.end(next_look)
        return cycle.reports.out

    def _apply(self, events: Iterable[Event]) -> None:
        """Apply the events. A failure after this is not attributed to the last one."""
        for kind, run in groupby(events, type):
            if kind is JobArrived:
                self._jobs.jobs_arrived(cast("Iterable[JobArrived]", run))
                continue
            for event in run:
                self._handlers[kind](event)
        self.cycle.wakeups.reopen_others()

    @property
    def is_cut_short(self) -> bool:
        """Whether the last call stopped before everything was decided."""
        return self.cycle.has_more

    @property
    def admitted(self) -> Sequence[str]:
        """The jobs that the last call admitted."""
        return self.cycle.reports.admitted

    @property
    def quarantined(self) -> Mapping[str, QuarantinedNode]:
        """The nodes that take no pods for a while, because they refused some."""
        return self.cycle.failures.quarantine.nodes

    @property
    def reservations(self) -> Mapping[str, Reservation]:
        """Reservations by the name of the job that waits."""
        return self.cycle.reservations.by_job

    @property
    def fault_log(self) -> FaultLog:
        """Every fault with its life."""
        return self.cycle.failures.repairs.fault_log

    @property
    def deletions(self) -> Iterable[Deletion]:
        """What was deleted lately because of faults, which the rate limit counts."""
        return self.cycle.failures.repairs.rate_limit.deletions

    @property
    def run_times(self) -> RunTimes:
        """How long jobs ran that have ended."""
        return self._runs.run_times

    @property
    def repairs(self) -> Mapping[str, Repair]:
        """What is being repaired, by the name of the job."""
        return self.cycle.failures.repairs.open

    def explain(self, name: str, *, hints: bool = True) -> Decision:
        """Where a job is, or why it is pending, with what would help.

        Without *hints* a running job that lacks pods gets fewer reasons, in less time.
        """
        never = self._jobs.invalid.get(name)
        if never is not None:
            return never
        return explain_job(self.cycle, self.view.job_states[name], hints=hints)

    @property
    def invalid(self) -> Mapping[str, Invalid]:
        """Jobs that can never be placed."""
        return self._jobs.invalid

    @property
    def nodes(self) -> Iterable[Node]:
        """The nodes as they were last reported."""
        return self._nodes.by_name.values()

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """What is known of leaf switches besides their pods."""
        return self._nodes.leaves

    def _woke(self, _event: TimerFired) -> None:
        self.cycle.slice.woke(self.view.now)

    def _session(self, state: SchedulerState, conf: Conf, votes: Votes) -> Session:
        """A session by Ringleaf's own rules."""
        return session_over(state, conf, votes)
