"""The engine: events in, instructions out. Start reading at ``Engine.handle``.

It is a pure function of the events so far: no clock, no dice, no I/O. The same events
at the same times give the same instructions, byte for byte.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from math import inf
from typing import Any, cast

from ringleaf.actions import ACTION_FUNCTIONS
from ringleaf.actions.handle_faults import handle_faults
from ringleaf.actions.unstarted import end_due_quarantines, release_unstarted
from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.cycle import begin_cycle, end_cycle, has_more, run_actions
from ringleaf.engine.event import (
    BindFailed,
    ConfChanged,
    DeletionsKnown,
    Event,
    FaultsKnown,
    IdleAccountKnown,
    JobArrived,
    JobGone,
    LeavesChanged,
    NodesChanged,
    NodesGone,
    PodFaultsReported,
    PodsEnding,
    PodsGone,
    PodsRefused,
    PodsRun,
    QueueChanged,
    QueueGone,
    RepairKnown,
    RunTimesKnown,
    TimerFired,
)
from ringleaf.engine.explain_job import explain_job
from ringleaf.engine.fault_events import FaultEvents
from ringleaf.engine.job_events import JobEvents
from ringleaf.engine.lifecycle import JobLifecycle
from ringleaf.engine.node_events import NodeEvents
from ringleaf.engine.pod_events import PodEvents
from ringleaf.engine.rule_events import RuleEvents
from ringleaf.engine.run_recorder import RunRecorder
from ringleaf.framework.context import ActionFunction, Context
from ringleaf.framework.fault_log import FaultLog
from ringleaf.framework.framework import Framework, session_over
from ringleaf.framework.instruction import Instruction
from ringleaf.framework.pods_ready import QuarantinedNode
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
        self.view = SchedulerState(
            Cluster(by_name.values(), leaves), conf.settings, queues
        )
        framework = Framework(self.view, conf, PLUGINS, self._session)
        self.context = ctx = Context(self.view, framework, by_name)
        lifecycle = JobLifecycle(ctx)
        self._nodes = nodes_ = NodeEvents(ctx, lifecycle, by_name, leaves)
        self._runs = runs = RunRecorder(ctx)
        self._jobs = jobs = JobEvents(ctx, lifecycle, nodes_, runs)
        pods = PodEvents(ctx, lifecycle, runs)
        faults = FaultEvents(ctx, lifecycle, jobs)
        rules = RuleEvents(ctx, lifecycle, jobs)
        self._handlers: Mapping[type, Callable[[Any], None]] = {
            JobGone: jobs.job_gone,
            PodsGone: pods.pods_gone,
            PodsEnding: pods.pods_ending,
            BindFailed: pods.bind_failed,
            PodsRun: pods.pods_run,
            PodsRefused: pods.pods_refused,
            PodFaultsReported: faults.pod_faults_reported,
            RepairKnown: faults.repair_known,
            FaultsKnown: faults.faults_known,
            DeletionsKnown: faults.deletions_known,
            RunTimesKnown: runs.run_times_known,
            IdleAccountKnown: rules.idle_account_known,
            NodesChanged: nodes_.nodes_changed,
            NodesGone: nodes_.nodes_gone,
            LeavesChanged: nodes_.leaves_changed,
            QueueChanged: rules.queue_changed,
            QueueGone: rules.queue_gone,
            ConfChanged: rules.conf_changed,
            TimerFired: self._timer_fired,
        }
        """What is done after an event; ``JobArrived`` is handled in batches."""

    def handle(self, event: Event, now: float) -> list[Instruction]:
        """What is to be done after *event*."""
        return self.handle_all([event], now)

    def handle_all(
        self, events: Iterable[Event], now: float, max_binds: float = inf
    ) -> list[Instruction]:
        """What is to be done after *events*, which happened together.

        After *max_binds* jobs were started it stops, so that they can be bound while
        the next are decided. The search for victims stops as well, after as much work
        as *max_binds* stands for. Call it again, with what has happened since, as long
        as it ``has_more`` to decide.
        """
        ctx, events = self.context, [*events]
        begin_cycle(ctx, now, max_binds, has_events=bool(events))
        self._apply(events)
        end_due_quarantines(ctx)
        release_unstarted(ctx)
        if ctx.framework.has_actions:
            handle_faults(ctx)
            run_actions(ctx, self.actions)
        end_cycle(ctx)
        return ctx.reports.instructions

    def _apply(self, events: Iterable[Event]) -> None:
        for kind, run in groupby(events, type):
            if kind is JobArrived:
                self._jobs.jobs_arrived(cast("Iterable[JobArrived]", run))
                continue
            for event in run:
                self._handlers[kind](event)
        self.context.wakeups.retry_other_queues()

    @property
    def has_more(self) -> bool:
        """Whether the last call stopped before everything was decided."""
        return has_more(self.context)

    @property
    def admitted(self) -> Sequence[str]:
        """The jobs that the last call admitted."""
        return self.context.reports.admitted

    @property
    def quarantined(self) -> Mapping[str, QuarantinedNode]:
        """The nodes that take no pods for a while, because they refused some."""
        return self.context.pods_ready.quarantine.nodes

    @property
    def reservations(self) -> Mapping[str, Reservation]:
        """Reservations by the name of the job that waits."""
        return self.context.reservations.by_job

    @property
    def fault_log(self) -> FaultLog:
        """Every fault with its life."""
        return self.context.repairs.fault_log

    @property
    def deletions(self) -> Iterable[Deletion]:
        """What was deleted lately because of faults, which the rate limit counts."""
        return self.context.repairs.rate_limit.deletions

    @property
    def run_times(self) -> RunTimes:
        """How long jobs ran that have ended."""
        return self._runs.run_times

    @property
    def repairs(self) -> Mapping[str, Repair]:
        """What is being repaired, by the name of the job."""
        return self.context.repairs.open

    def explain(self, name: str, *, hints: bool = True) -> Decision:
        """Where a job is, or why it is pending, with what would help.

        Without *hints* a running job that lacks pods gets fewer reasons, in less time.
        """
        never = self._jobs.invalid.get(name)
        if never is not None:
            return never
        return explain_job(self.context, self.view.job_states[name], hints=hints)

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

    def _timer_fired(self, _event: TimerFired) -> None:
        self.context.budget.timer_fired(self.view.now)

    def _session(self, state: SchedulerState, conf: Conf, votes: Votes) -> Session:
        """A session by Ringleaf's own rules."""
        return session_over(state, conf, votes)
