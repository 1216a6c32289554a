"""The page that Prometheus reads: what was counted, and what the scheduler knows now.

Nothing is kept up to date for it: chips, queues and jobs are counted when the page is
asked for, with arrays where there are many of them. So metrics
that are not scraped cost next to nothing, and series of a job vanish with the job.

The loop that decides counts in short steps and does other work between them; the text
is written on another thread, from numbers that no longer change.
"""

import asyncio
import platform
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from prometheus_client import ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from ringleaf.framework.fault_log import Stage
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.state import SchedulerState
from ringleaf.kube.catalogue import (
    AMOUNTS,
    CATALOGUE,
    CAUSES,
    RESOURCES,
    VERDICTS,
    Kind,
    Metric,
)
from ringleaf.kube.fault_metrics import DELETED_FOR
from ringleaf.kube.metrics import NO_ANSWER, Histogram
from ringleaf.kube.pod_state import seconds_of
from ringleaf.kube.quarantine import KINDS as QUARANTINED
from ringleaf.kube.scheduler import Scheduler
from ringleaf.kube.special_jobs import OUTSIDE
from ringleaf.model.amounts import Amounts
from ringleaf.model.cluster import Cluster, Masks
from ringleaf.model.fault import Cause, RestartScope
from ringleaf.model.owner import Owner
from ringleaf.plugins.drf import share_of
from ringleaf.plugins.proportion import Proportion
from ringleaf.policies.fragments import fragments

MOST_JOBS: Final = 200
"""Jobs that have series of their own, of each metric."""
MOST_QUEUES: Final = 200
"""Queues that have series of their own."""
MOST_RESOURCES: Final = 20
"""Resources that have series of their own, of those that nodes have."""
OTHER: Final = "other"
"""In place of the name of a queue or a resource that has no series of its own."""
MAIN: Final = ("cpu", "memory")
"""Resources with metrics of their own."""
STEP_JOBS, STEP_QUEUES = 5000, 20
"""Jobs and queues that are looked at in one step."""

Counts = NDArray[np.integer[Any]]
Labels = tuple[str, ...]
Values = dict[str, list[tuple[Labels, float | Histogram]]]


class Collected(Collector):
    """Metrics as they were at one moment; any thread may write them.

    Args:
        families: Metrics with their values.
        values: Values of metrics of the catalogue, where there are any.

    """

    def __init__(
        self, families: Iterable[Family], values: "Values | None" = None
    ) -> None:
        self._families, self._values = list(families), values

    def collect(self) -> Iterator[Family]:
        """Every metric with its values, and those of the process."""
        if self._values is not None:
            for metric in CATALOGUE:
                yield family_of(metric, self._values.get(metric.name, ()))
        yield from self._families
        yield from _PROCESS.collect()

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """The page in the form that is accepted, and what form that is."""
        encode, kind = choose_encoder(accept)
        return encode(self), kind


_PROCESS: Final = ProcessCollector(registry=None)


class SchedulerCollector:
    """The metrics of a scheduler; *version* is that of Ringleaf.

    *more* are collectors of metrics of others in the same process.
    """

    def __init__(self, scheduler: Scheduler, version: str, *more: Collector) -> None:
        self._scheduler, self._version, self._more = scheduler, version, more

    async def collected(self) -> Collected:
        """The metrics as they are now; others have their turn between two steps."""
        reading = SchedulerSample(self._scheduler, self._version)
        for _step in reading.steps():
            await asyncio.sleep(0)
        return self._found(reading)

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """The page in the form that is accepted, all at once, and what form it is."""
        reading = SchedulerSample(self._scheduler, self._version)
        for _step in reading.steps():
            pass
        return self._found(reading).text(accept)

    def _found(self, reading: "SchedulerSample") -> Collected:
        values = reading.values
        unknown = values.keys() - {metric.name for metric in CATALOGUE}
        assert not unknown, f"not in the catalogue: {unknown}"
        return Collected([f for each in self._more for f in each.collect()], values)


def family_of(
    metric: Metric, values: Iterable[tuple[Labels, float | Histogram]]
) -> Family:
    """A metric with its values, as Prometheus's client knows it."""
    name = metric.name
    counts = metric.kind is Kind.COUNTER
    family = Family(name.removesuffix("_total") if counts else name, *_told(metric))
    for labels, value in values:
        named = dict(zip(metric.labels, labels, strict=True))
        if not isinstance(value, Histogram):
            family.add_sample(name, named, value)
            continue
        count = 0
        for bound, count in value.buckets():
            own = {**named, "le": "+Inf" if bound == inf else str(float(bound))}
            family.add_sample(f"{name}_bucket", own, count)
        family.add_sample(f"{name}_count", named, count)
        family.add_sample(f"{name}_sum", named, value.total)
    return family


def _told(metric: Metric) -> tuple[str, str]:
    return metric.tells.replace("`", "").partition("](")[0].replace(
        "[", ""
    ), metric.kind


class SchedulerSample:
    """One look at a scheduler, in ``steps``; ``values`` are what was found."""

    def __init__(self, scheduler: Scheduler, version: str) -> None:
        self._of, self._version = scheduler, version
        self._found: Values = defaultdict(list)
        self._joined: dict[str, dict[Labels, float]] = defaultdict(dict)
        """Values of queues: several may share their labels."""

    def steps(self) -> Iterator[None]:
        """Look at one part after the other; each takes a few milliseconds at most."""
        for look in (self._counted, self._faults, self._parts, self._watches):
            look()
            yield
        view = self._of.view
        yield from self._chips(view)
        self._leaves(view.cluster)
        queues = _Named(view.queues, MOST_QUEUES)
        yield from self._jobs(view, queues)
        yield from self._queues(view, queues)

    @property
    def values(self) -> Values:
        """Metric -> its labels and values."""
        found: Values = dict(self._found)
        for name, own in self._joined.items():
            found[name] = [*own.items()]
        return found

    def _put(self, name: str, value: float | Histogram, *labels: str) -> None:
        if isinstance(value, Histogram):
            value = value.copy()
        self._found[name].append((labels, value))

    def _add(self, name: str, value: float, *labels: str) -> None:
        """Put a value, or add it to those with the same labels."""
        known = self._joined[name]
        known[labels] = known.get(labels, 0) + value

    def _raise(self, name: str, value: float, *labels: str) -> None:
        """Put a value, or the largest of those with the same labels."""
        known = self._joined[name]
        known[labels] = max(known.get(labels, value), value)

    def _counted(self) -> None:
        """What was counted as it happened."""
        own, put = self._of.metrics, self._put
        put("ringleaf_build_info", 1, self._version, platform.python_version())
        for (verb, status, lane), n in sorted(own.requests.items()):
            code = "none" if status == NO_ANSWER else str(status)
            put("ringleaf_api_requests_total", n, verb, code, lane)
        for lane, seen in own.request_s.items():
            put("ringleaf_api_request_seconds", seen, lane)
        put("ringleaf_decision_seconds", own.decision_s)
        put("ringleaf_job_decision_seconds", own.job_decision_s)
        put("ringleaf_bind_seconds", own.bind_s)
        put("ringleaf_time_to_bind_seconds", own.time_to_bind_s)
        put("volcano_e2e_scheduling_latency_milliseconds", own.cycle_ms)
        put("volcano_e2e_job_scheduling_latency_milliseconds", own.job_ms)
        put("volcano_task_scheduling_latency_milliseconds", own.task_ms)
        put("volcano_total_preemption_attempts", own.preemptions)
        put("volcano_pod_preemption_victims", own.victims)
        for action in ("preempt", "reclaim"):
            put("ringleaf_evictions_total", own.evicted[action], action, "asked")
            put("ringleaf_evictions_total", own.refused[action], action, "refused")
        for kind, n in sorted(own.problems.items()):
            put("ringleaf_problems_total", n, kind)
        for result, n in own.reloads.items():
            put("ringleaf_configuration_reloads_total", n, result)
        put("ringleaf_configuration_is_current", not self._of.refused_conf)
        put("ringleaf_leader", self._of.leads)
        put("ringleaf_conflicts_total", own.conflicts)
        put("ringleaf_releases_total", own.releases)
        put("ringleaf_failures_total", own.failures)
        put("ringleaf_differences_total", own.differences)
        put("ringleaf_rebuilds_total", own.rebuilds)
        aside = self._of.cache.isolation.quarantine.n_aside(self._of.now())
        for kind in QUARANTINED:
            put("ringleaf_set_aside", aside[kind], kind)

    def _faults(self) -> None:
        """Faults, and what was done about them."""
        fault_metrics, put = self._of.loop.fault_metrics, self._put
        there = Counter(cause for _where, cause, _part in fault_metrics.book.open)
        for cause in Cause:
            put("ringleaf_faults", there[cause], cause)
            put("ringleaf_fault_acted_seconds", fault_metrics.acted_s[cause], cause)
            put(
                "ringleaf_fault_recovered_seconds",
                fault_metrics.recovered_s[cause],
                cause,
            )
            for stage in Stage:
                n = fault_metrics.book.counts[cause, stage]
                put("ringleaf_fault_events_total", n, cause, stage)
        for word in DELETED_FOR:
            for force in (False, True):
                n = fault_metrics.deleted[word, force]
                put("ringleaf_fault_deletions_total", n, word, str(force).lower())
        doing = Counter(each.scope for each in fault_metrics.repairs.values())
        for reach in RestartScope:
            put("ringleaf_repairs", doing[reach], reach)
            put("ringleaf_repairs_finished_total", fault_metrics.finished[reach], reach)
            put(
                "ringleaf_repair_escalations_total",
                fault_metrics.escalated[reach],
                reach,
            )
        now = self._of.now()
        since = min(
            (each.since for each in fault_metrics.repairs.values()), default=now
        )
        put("ringleaf_oldest_repair_seconds", max(0.0, now - since))
        put("ringleaf_repair_seconds", fault_metrics.repair_s)
        put(
            "ringleaf_brake_engaged",
            any(each.rate_limited for each in fault_metrics.repairs.values()),
        )
        put("ringleaf_held_back_repairs_total", fault_metrics.held_back)
        put("ringleaf_never_ran_total", fault_metrics.releases)

    def _parts(self) -> None:
        """What parts of the scheduler know of themselves."""
        of, put = self._of, self._put
        cache, binder, status_writer = (
            of.cache,
            of.writers.binder,
            of.writers.status_writer,
        )
        put("ringleaf_bindings_in_flight", binder.in_flight)
        put("ringleaf_bindings_total", binder.n_bound, "bound")
        put("ringleaf_bindings_total", binder.n_failed, "failed")
        attempts = of.metrics.attempts | Counter(error=binder.n_failed)
        for result in VERDICTS:
            put("volcano_schedule_attempts_total", attempts[result], result)
        counts = status_writer.queue.counts
        put("ringleaf_messages_total", counts.sent, "sent")
        put("ringleaf_messages_total", counts.refused, "refused")
        put("ringleaf_messages_total", counts.dropped, "dropped")
        put("ringleaf_messages_waiting", status_writer.queue.n_waiting)
        put("ringleaf_half_bound_gangs", len(of.loop.gangs.half_bound))
        reservations = of.decider.engine.context.reservations
        kept_idle = reservations.idle.kept(of.now())
        put("ringleaf_reservation_idle_chip_seconds_total", kept_idle)
        put("ringleaf_reservation_idle_budget_used", reservations.idle.share)
        runs = of.decider.engine.run_times
        put("ringleaf_runs_learnt_total", runs.learnt)
        put("ringleaf_runs_predicted_total", runs.predicted)
        put("ringleaf_runs_within_prediction_total", runs.within)
        put("ringleaf_check_code_mismatches_total", cache.reports.mismatches)
        for kind, n in sorted(cache.problems.by_kind().items()):
            put("ringleaf_bad_objects", n, kind)

    def _watches(self) -> None:
        now, put = time.time(), self._put
        for each in self._of.reflectors:
            kind = each.kind
            put("ringleaf_lists_total", each.n_lists, kind)
            put("ringleaf_watches_total", each.n_watches, kind)
            put("ringleaf_watch_failures_total", each.n_failures, kind)
            put("ringleaf_objects", len(each), kind)
            put("ringleaf_synced", each.synced, kind)
            if each.heard_at:
                silence = max(0.0, now - each.heard_at)
                put("ringleaf_watch_silence_seconds", silence, kind)
            if each.newest is not None:
                made, heard_at = each.newest
                age = max(0.0, heard_at - seconds_of(made))
                put("ringleaf_watch_event_age_seconds", age, kind)

    def _chips(self, view: SchedulerState) -> Iterator[None]:
        """Chips by state, fragments and nodes."""
        cluster, put = view.cluster, self._put
        held = np.zeros(len(cluster), np.uint64)
        holders = [*cluster.holdings]
        for first in range(0, len(holders), STEP_JOBS):
            _reserve(held, holders[first : first + STEP_JOBS], cluster, view)
            yield
        states = states_of(cluster, held & cluster.taken)
        yield
        for i, product in enumerate(cluster.products):
            if not product.chips:
                continue
            own = cluster.product == i
            for state, n in states.items():
                put("ringleaf_chips", int(n[own].sum()), product.key, state)
            yield
            for asked, lost in fragments(cluster, product).items():
                put("ringleaf_fragmented_chips", lost, product.key, str(asked))
            yield
        takes = cluster.ready & ~cluster.cordoned
        ready, aside = int(takes.sum()), int((takes & cluster.quarantined).sum())
        cordoned = int((cluster.ready & cluster.cordoned).sum())
        put("ringleaf_nodes", ready - aside, "ready")
        put("ringleaf_nodes", aside, "quarantined")
        put("ringleaf_nodes", cordoned, "cordoned")
        put("ringleaf_nodes", len(cluster) - ready - cordoned, "not-ready")

    def _leaves(self, cluster: Cluster) -> None:
        crossing = cluster.uplinks.crossing
        none, one = int((crossing == 0).sum()), int((crossing == 1).sum())
        self._put("ringleaf_leaves", none, "none")
        self._put("ringleaf_leaves", one, "one")
        self._put("ringleaf_leaves", len(crossing) - none - one, "several")
        conflicts = int(np.maximum(crossing - 1, 0).sum())
        self._put("ringleaf_spine_conflicts", conflicts)

    def _jobs(self, view: SchedulerState, queues: "_Named") -> Iterator[None]:
        """Count jobs by phase and cause, and time the longest wait of each queue."""
        causes: Counter[str] = Counter()
        phases: Counter[Phase] = Counter()
        since: dict[str, float] = {}
        waiting, unsettled = 0, list[JobState]()
        listed = [*view.job_states.values()]
        for first in range(0, len(listed), STEP_JOBS):
            unsettled += _unsettled(listed[first : first + STEP_JOBS])
            yield
        for n, job_state in enumerate(unsettled):
            if n % STEP_JOBS == STEP_JOBS - 1:
                yield
            phases[job_state.phase] += 1
            if not _waits(job_state):
                continue
            waiting += 1
            causes[self._cause(job_state)] += 1
            queue = job_state.job.queue
            since[queue] = min(job_state.waiting_since, since.get(queue, view.now))
            if waiting <= MOST_JOBS:
                lacking = max(0, job_state.facts.effective_min - job_state.ready)
                name = job_state.job.name
                self._put("volcano_unschedule_task_count", lacking, name)
        others = (
            len(view.queue_usage[OUTSIDE].jobs) if OUTSIDE in view.queue_usage else 0
        )
        idle = phases[Phase.PENDING] + phases[Phase.INQUEUE]
        phases[Phase.RUNNING] = max(0, len(listed) - others - idle)
        causes += self._unheard(view)
        for cause in CAUSES:
            self._put("ringleaf_waiting_jobs", causes[cause], cause)
        for phase in Phase:
            self._put("ringleaf_jobs", phases[phase], phase.value)
        self._put("volcano_unschedule_job_count", causes.total())
        now = self._of.now()
        for queue in view.queues:
            waited = now - since[queue] if queue in since else 0.0
            self._raise("ringleaf_longest_wait_seconds", waited, queues.label(queue))
        yield
        if self._has_plugin("drf"):
            self._shares(view)
            yield

    def _cause(self, job_state: JobState) -> str:
        told = self._of.metrics.told.get(job_state.job.name, "undecided")
        if job_state.history.why is not None and told not in ("reserved", "evicting"):
            return "queue"
        return told

    def _unheard(self, view: SchedulerState) -> Counter[str]:
        """Jobs of which the engine does not know: incomplete ones, invalid ones."""
        found: Counter[str] = Counter()
        for name, cause in self._of.metrics.told.items():
            if cause == "invalid" and name not in view.job_states:
                found[cause] += 1
        for name in self._of.cache.gang_events.not_ready:
            job_state = view.job_states.get(name)
            if job_state is None or _lacks_pods(job_state):
                found["incomplete"] += 1
        return found

    def _shares(self, view: SchedulerState) -> None:
        left = MOST_JOBS
        for name, job_state in view.job_states.items():
            if job_state.allocated and job_state.job.queue != OUTSIDE:
                share = share_of(job_state.allocated, view.total)
                space, _slash, own = name.removeprefix("pod ").partition("/")
                self._put("volcano_job_share", share, space, own)
                left -= 1
                if not left:
                    break

    def _queues(self, view: SchedulerState, queues: "_Named") -> Iterator[None]:
        parts = Proportion(view, {}) if self._has_plugin("proportion") else None
        counted = (name for name, n in view.total.items() if n and name not in MAIN)
        resources = _Named(counted, MOST_RESOURCES)
        for n, (name, queue) in enumerate([*view.queues.items()]):
            if n % STEP_QUEUES == 0:
                yield
            if name not in view.queues:
                continue  # it is gone since
            account, label = view.queue_usage[name], queues.label(name)
            amounts: dict[str, Amounts] = {
                "allocated": account.allocated,
                "request": account.requested,
                "inqueue": account.inqueue,
                "capacity": queue.capability,
            }
            self._add("volcano_queue_weight", queue.weight, label)
            if parts is not None:
                part = parts.part(name)
                amounts["deserved"] = part.deserved
                amounts["real_capacity"] = part.capability
                self._raise("volcano_queue_share", parts.share(queue), label)
                self._raise("volcano_queue_overused", parts.overused(queue), label)
            for what in AMOUNTS.keys() & amounts.keys():
                self._amounts(what, amounts[what], label, resources)

    def _amounts(
        self, what: str, amounts: Amounts, queue: str, resources: "_Named"
    ) -> None:
        cpu, memory, others = (f"volcano_queue_{what}_{unit}" for unit in RESOURCES)
        limit = what in ("capacity", "real_capacity", "deserved")
        if "cpu" in amounts or not limit:
            self._add(cpu, amounts.get("cpu", 0), queue)
        if "memory" in amounts or not limit:
            self._add(memory, amounts.get("memory", 0) / 1000, queue)
        for resource, amount in amounts.items():
            if resource not in MAIN:
                self._add(others, amount, queue, resources.label(resource))

    def _has_plugin(self, name: str) -> bool:
        tiers = self._of.cache.conf.tiers
        return any(plugin.name == name for tier in tiers for plugin in tier)


class _Named:
    """The names that have series of their own: as many as may, the first by name."""

    def __init__(self, names: Iterable[str], most: int) -> None:
        self._names = frozenset(sorted(names)[:most])

    def label(self, name: str) -> str:
        """*name*, or what stands for all that have no series of their own."""
        return name if name in self._names else OTHER


def _unsettled(job_states: Iterable[JobState]) -> list[JobState]:
    """The jobs of ours that may wait: those that do not run, or with few pods.

    It is asked of every job there is, so it asks no more than it must.
    """
    running = Phase.RUNNING
    return [
        each
        for each in job_states
        if (
            each.phase is not running or len(each.placements) < each.facts.effective_min
        )
        and each.job.queue != OUTSIDE
    ]


def _waits(job_state: JobState) -> bool:
    if job_state.phase is Phase.RUNNING:
        return job_state.below_min_available
    return not _lacks_pods(job_state)


def _lacks_pods(job_state: JobState) -> bool:
    """Whether others are to make its pods now."""
    return job_state.job.podless and job_state.phase is Phase.INQUEUE


def states_of(cluster: Cluster, reserved: Masks) -> dict[str, Counts]:
    """State -> how many chips of every node are in it; each chip is in one.

    *reserved* are those among the taken chips that no pod holds yet.
    """
    count = np.bitwise_count
    used, idle = cluster.taken & ~reserved, ~cluster.taken
    takes_pods = cluster.ready & ~cluster.cordoned & ~cluster.quarantined
    free = count(cluster.free & cluster.healthy & idle)
    states: dict[str, Counts] = {
        "free": np.where(takes_pods, free, 0),
        "used": count(used & cluster.healthy),
        "used-faulty": count(used & ~cluster.healthy),
        "reserved": count(reserved),
        "unavailable": np.where(takes_pods, 0, free),
        "unclear": count(cluster.healthy & idle & ~cluster.free),
    }
    counted = sum(n.astype(np.int64) for n in states.values())
    states["faulty"] = cluster.size - counted
    return states


def _reserve(
    held: Masks, holders: Iterable[Owner], cluster: Cluster, view: SchedulerState
) -> None:
    """Add the chips of every node that some of *holders* hold for jobs that wait."""
    jobs = view.job_states
    for holder in holders:
        if holder not in jobs:
            for holding in cluster.holdings.get(holder, ()):
                held[holding.node] |= np.uint64(holding.chips)
