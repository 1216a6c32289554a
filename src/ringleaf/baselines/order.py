"""Queue orders: which job is next, and which may overtake it.

An order is a configuration of the engine's own votes and, where those do not say it, an
``allocate`` of its own. Baselines and Ringleaf can run under the same one, so that what
differs is where jobs are placed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nsmallest
from math import inf
from types import MappingProxyType
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.actions import ACTION_FUNCTIONS
from ringleaf.actions.allocate import attempt
from ringleaf.actions.queue_iterator import QueueIterator
from ringleaf.actions.reserve import reserve
from ringleaf.actions.start import start_reserved
from ringleaf.baselines.forecast import CapacityForecast, Need, capacity_forecast
from ringleaf.config.arguments import Voter
from ringleaf.config.conf import Conf, PluginConf
from ringleaf.config.vocabulary import FLAG_OF
from ringleaf.framework.context import ActionFunction, Context
from ringleaf.framework.job_state import JobState
from ringleaf.framework.pending_queue import EquivalenceClass
from ringleaf.framework.plugin import Plugin
from ringleaf.framework.run_times import chips_in_all
from ringleaf.model.job import Job
from ringleaf.model.product import Product

DEPTH: Final = 100
"""Jobs for which conservative backfill plans, as Slurm's ``bf_max_job_test``."""


class QueueOrder(Struct, frozen=True):
    """A queue order.

    Args:
        name: What people call it.
        title: What it does, in one sentence.
        source: Where it comes from.
        action: Makes its ``allocate`` for one engine.
        by: The plugins that may tell jobs apart before their age does; None is all.
        first: A plugin that tells jobs apart before those.
        reserves: Whether the first pending job gets a reservation at once.
        admits: Whether ``enqueue`` admits jobs, as configured.
        without: Plugins that the scheduler does not have.
        learns: Whether running times that no job states are predicted from jobs that
            have ended.

    """

    name: str
    title: str
    source: str
    action: Callable[[], ActionFunction]
    by: tuple[str, ...] | None = ()
    first: type[Plugin] | None = None
    reserves: bool = False
    admits: bool = False
    without: tuple[str, ...] = ()
    learns: bool = False

    def configured(self, conf: Conf) -> Conf:
        """*conf* in this order; unless it *admits*, every job is admitted at once."""
        tiers = [tuple(self._voting(tier)) for tier in conf.tiers]
        if self.first is not None:
            tiers.insert(0, (_plugin(self.name, self.title, self.first),))
        how = {"reservation": "strict" if self.reserves else "off"}
        allocate = {**conf.action_arguments.get("allocate", {}), **how}
        allocate |= {"reservation-after-seconds": 0, "learn-run-times": self.learns}
        dropped = () if self.admits else ("enqueue",)
        return replace(
            conf,
            actions=tuple(each for each in conf.actions if each not in dropped),
            tiers=tuple(tiers),
            action_arguments={**conf.action_arguments, "allocate": allocate},
        )

    def _voting(self, tier: Iterable[PluginConf]) -> Iterator[PluginConf]:
        """The plugins of *tier* that the scheduler has, with the votes they have."""
        for plugin in tier:
            if plugin.name in self.without:
                continue
            if self.by is None or plugin.name in self.by:
                yield plugin
            else:
                yield replace(plugin, enabled=plugin.enabled - {FLAG_OF["JobOrder"]})


def _plugin(name: str, meaning: str, plugin: type[Plugin]) -> PluginConf:
    about = Voter(name, meaning, ("JobOrder",), {})
    return PluginConf(name, name, frozenset({FLAG_OF["JobOrder"]}), {}, about, plugin)


class Shortest(Plugin):
    """Votes by ``Job.estimate_s``."""

    meaning: ClassVar[str] = "Orders jobs by stated running time, shortest first."

    def job_order(self, job_state: JobState) -> float:
        """Shorter jobs first; jobs without an estimate come last."""
        estimate = job_state.job.estimate_s
        return inf if estimate is None else estimate


class Predicted(Plugin):
    """Votes by the running time that is stated, or else predicted."""

    meaning: ClassVar[str] = "Orders jobs by predicted running time, shortest first."

    def job_order(self, job_state: JobState) -> float:
        """Shorter jobs first; jobs of which nothing is known come last."""
        return _predicted_s(job_state.job)


class PredictedService(Plugin):
    """Votes by chips times predicted running time."""

    meaning: ClassVar[str] = "Orders jobs by predicted chip-time, least first."

    def job_order(self, job_state: JobState) -> float:
        """Jobs that will use less chip-time first; unknown ones come last."""
        return chips_in_all(job_state.job) * _predicted_s(job_state.job)


def _predicted_s(job: Job) -> float:
    """Seconds that a job states, or else the median of similar jobs."""
    if job.estimate_s is not None:
        return job.estimate_s
    return inf if job.run_time is None else job.run_time.median_s


class Strict:
    """No job starts before the first job of its queue."""

    def __init__(self) -> None:
        self._heads: dict[str, tuple[EquivalenceClass, JobState]] = {}

    def __call__(self, ctx: Context) -> None:
        """Place the first of each queue, as long as that succeeds."""
        start_reserved(ctx)
        for queue in list(ctx.pending.admitted.queues):
            while (job_class := self._head(ctx, queue)) is not None:
                if ctx.budget.stop_binding():
                    return
                if not attempt(ctx, job_class, {}):
                    break

    def _head(self, ctx: Context, queue: str) -> EquivalenceClass | None:
        """The class of the first in *queue*; None if it is known not to fit."""
        waiting = ctx.pending.admitted
        job_class, job_state = self._heads.get(queue, (None, None))
        if job_class is not None and job_state is not None and not ctx.repairs.open:
            waits = job_state.job.name in waiting
            if waits and waiting.by_job[job_state.job.name] is job_class:
                return job_class if waiting.is_open(job_class) else None
        classes = [
            each for each in waiting.classes if each.scheduling_key.queue == queue
        ]
        if not classes:
            return None
        job_class = min(classes, key=lambda each: each.first_key)
        self._heads[queue] = job_class, job_class.first_job
        return job_class if waiting.is_open(job_class) else None


class Easy:
    """The first pending job gets a reservation; a job that delays it does not start."""

    def __call__(self, ctx: Context) -> None:
        """Place every job that fits; reserve for the first that does not."""
        start_reserved(ctx)
        turns = QueueIterator(ctx, ctx.pending.admitted)
        while (job_class := turns.next()) is not None:
            if ctx.budget.stop_binding():
                return
            if not ctx.pending.admitted.is_open(job_class):
                continue  # its last job has started on its reservation
            if not attempt(ctx, job_class, {}):
                reserve(ctx)


def in_turn(ctx: Context) -> None:
    """Place admitted jobs in their order; a rejected job waits, even if it fits."""
    pending = ctx.pending
    rejected, pending.rejected = pending.rejected, []
    ACTION_FUNCTIONS["allocate"](ctx)
    pending.rejected = rejected


class Conservative:
    """Every pending job gets a start time; later jobs start if they delay none."""

    def __call__(self, ctx: Context) -> None:
        """Place the jobs that can start now without delaying an earlier job."""
        start_reserved(ctx)
        if not ctx.pending.admitted.queues:
            return
        outlooks: dict[Product, CapacityForecast] = {}
        for job_state in nsmallest(DEPTH, ctx.pending.admitted, key=ctx.pending.key_of):
            if ctx.budget.stop_binding():
                return
            product = job_state.job.product
            if product not in outlooks:
                outlooks[product] = capacity_forecast(ctx, product)
            self._plan(ctx, job_state, outlooks[product])

    @staticmethod
    def _plan(ctx: Context, job_state: JobState, outlook: CapacityForecast) -> None:
        """Start a job now, or note when it can start."""
        need, now = Need.of(job_state.job), ctx.state.now
        start = outlook.earliest(need, now)
        job_class = ctx.pending.admitted.by_job[job_state.job.name]
        first = job_class.first_job is job_state and ctx.pending.admitted.is_open(
            job_class
        )
        if start <= now and first and attempt(ctx, job_class, {}):
            outlook.take(need, now)
            return
        if start <= now:  # enough is free, in the wrong places
            start = outlook.earliest(need, outlook.next_change(now))
        if start != inf:
            outlook.take(need, start)


def _as_configured() -> ActionFunction:
    return ACTION_FUNCTIONS["allocate"]


def _in_turn() -> ActionFunction:
    return in_turn


def _table(*orders: QueueOrder) -> Mapping[str, QueueOrder]:
    return MappingProxyType({order.name: order for order in orders})


ORDERS: Final = _table(
    QueueOrder(
        "fifo",
        "Oldest job first; no job overtakes it.",
        "Feitelson, Rudolph, Schwiegelshohn: Parallel Job Scheduling, JSSPP 2004",
        Strict,
    ),
    QueueOrder(
        "fifo-skip",
        "Oldest job first; jobs that do not fit are skipped.",
        "Volcano allocate without reservations; list scheduling, Graham 1969",
        _as_configured,
    ),
    QueueOrder(
        "easy",
        "The oldest job has a reservation; others start if they do not delay it.",
        "Lifka: The ANL/IBM SP Scheduling System, JSSPP 1995",
        Easy,
        reserves=True,
    ),
    QueueOrder(
        "conservative",
        "Every job has a reservation; others start if they delay none.",
        "Mu'alem, Feitelson: Utilization, Predictability, Workloads, and User Runtime "
        "Estimates, TPDS 2001",
        Conservative,
    ),
    QueueOrder(
        "sjf",
        "Shortest stated running time first; jobs that do not fit are skipped.",
        "Conway, Maxwell, Miller: Theory of Scheduling, 1967",
        _as_configured,
        first=Shortest,
    ),
    QueueOrder(
        "easy-learned",
        "As `easy`, with running times predicted from jobs that have ended.",
        "Tsafrir, Etsion, Feitelson: Backfilling Using System-Generated Predictions "
        "Rather than User Runtime Estimates, TPDS 2007",
        Easy,
        reserves=True,
        learns=True,
    ),
    QueueOrder(
        "sjf-learned",
        "As `sjf`, with running times predicted from jobs that have ended.",
        "Tsafrir, Etsion, Feitelson, TPDS 2007",
        _as_configured,
        first=Predicted,
        learns=True,
    ),
    QueueOrder(
        "qssf",
        "Least predicted chip-time first; jobs that do not fit are skipped.",
        "Hu et al.: Characterization and Prediction of Deep Learning Workloads in "
        "Large-Scale GPU Datacenters, SC 2021",
        _as_configured,
        first=PredictedService,
        learns=True,
    ),
    QueueOrder(
        "priority",
        "Highest priority first, then oldest; jobs that do not fit are skipped.",
        "Volcano pkg/scheduler/plugins/priority",
        _as_configured,
        by=("priority",),
    ),
    QueueOrder(
        "volcano",
        "Volcano's own queue: jobs are admitted while the quota has room for all that "
        "are; jobs that do not fit are skipped, without a reservation.",
        "Volcano 1.14.1, pkg/scheduler/actions/enqueue and allocate, "
        "plugins/proportion",
        _in_turn,
        by=None,
        admits=True,
    ),
    QueueOrder(
        "kube",
        "Highest priority first, then oldest; jobs that do not fit are skipped; no "
        "queues, no quotas.",
        "kube-scheduler, plugin PrioritySort",
        _as_configured,
        by=("priority",),
        without=("gang", "drf", "proportion", "overcommit"),
    ),
)
