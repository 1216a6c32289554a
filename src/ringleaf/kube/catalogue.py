"""Every metric that is served: its name, its kind, its labels and what it tells.

``docs/metrics.md`` has the same table, made from this one. What is not listed here is
not served.

Source: Volcano 1.14 ``pkg/scheduler/metrics`` for names, labels and buckets of those
that begin with ``volcano_``; each means here what it means there.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from ringleaf.model.decision import Reason


class Kind(StrEnum):
    """Kinds of metrics, as Prometheus calls them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    UNKNOWN = "unknown"
    """A counter that is not called ``_total``: Volcano has one."""


class Metric(Struct, frozen=True):
    """One metric."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    tells: str


def _rows(kind: Kind, *rows: tuple[str, tuple[str, ...], str]) -> tuple[Metric, ...]:
    return tuple(Metric(name, kind, labels, tells) for name, labels, tells in rows)


QUEUE: Final = ("queue_name",)
RESOURCES: Final = ("milli_cpu", "memory_bytes", "scalar_resources")
AMOUNTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "allocated": "what pods of the queue use",
        "request": "requests of all pods of the queue that have not ended",
        "inqueue": "what admitted jobs still need to start",
        "deserved": "the queue's fair share of the cluster now",
        "capacity": "its capability",
        "real_capacity": "its capability, less the guarantees of others",
    }
)
_COST: Final = "configuration.md#the-idle-budget-of-reservations"
_LEARNT: Final = "configuration.md#predicted-running-times"
_UNITS: Final = ("thousandths of a CPU", "bytes of memory", "thousandths of the rest")

OWN_COUNTERS: Final = _rows(
    Kind.COUNTER,
    (
        "ringleaf_api_requests_total",
        ("verb", "code", "lane"),
        "requests to the API server; `code` is `none` without a response",
    ),
    (
        "ringleaf_bindings_total",
        ("result",),
        "bindings of pods: `bound` or `failed`",
    ),
    (
        "ringleaf_check_code_mismatches_total",
        (),
        "reports that did not match their check code (D23)",
    ),
    (
        "ringleaf_configuration_reloads_total",
        ("result",),
        "reloads of the configuration: `good` or `bad`",
    ),
    (
        "ringleaf_conflicts_total",
        (),
        "pods found on chips that another pod holds",
    ),
    (
        "ringleaf_differences_total",
        (),
        "times that the cache [differed](failures.md#quarantine) from the objects",
    ),
    (
        "ringleaf_evictions_total",
        ("action", "result"),
        "evictions for other jobs: `asked` (requested), of these `refused`",
    ),
    (
        "ringleaf_fault_deletions_total",
        ("cause", "force"),
        "pods deleted because of [faults](faults.md), or because they never ran",
    ),
    (
        "ringleaf_fault_events_total",
        ("cause", "stage"),
        "faults that were `seen`, `acted` on, and `recovered`",
    ),
    (
        "ringleaf_failures_total",
        (),
        "internal failures, whose cause was [quarantined](failures.md#quarantine)",
    ),
    (
        "ringleaf_held_back_repairs_total",
        (),
        "repairs that the [rate limit](faults.md#the-eviction-rate-limit) held back",
    ),
    (
        "ringleaf_lists_total",
        ("kind",),
        "lists of a kind; 1 is usual",
    ),
    (
        "ringleaf_messages_total",
        ("result",),
        "conditions, events and phases: `sent`, `refused`, or `dropped` unsent",
    ),
    (
        "ringleaf_never_ran_total",
        (),
        "bound gangs that did not run in time and were released",
    ),
    (
        "ringleaf_problems_total",
        ("kind",),
        "reported problems with objects, by kind",
    ),
    (
        "ringleaf_rebuilds_total",
        (),
        "times that the engine was rebuilt from the objects",
    ),
    (
        "ringleaf_releases_total",
        (),
        "half-bound gangs that were released",
    ),
    (
        "ringleaf_repair_escalations_total",
        ("reach",),
        "escalations: more of a job was deleted, as faulty pods found no node",
    ),
    (
        "ringleaf_repairs_finished_total",
        ("reach",),
        "repaired jobs, by restart scope",
    ),
    (
        "ringleaf_reservation_idle_chip_seconds_total",
        (),
        f"chip-seconds that [reservations]({_COST}) kept idle",
    ),
    (
        "ringleaf_runs_learnt_total",
        (),
        f"jobs that ended and whose [running times]({_LEARNT}) were counted",
    ),
    (
        "ringleaf_runs_predicted_total",
        (),
        f"of these, jobs with a [predicted]({_LEARNT}) running time",
    ),
    (
        "ringleaf_runs_within_prediction_total",
        (),
        "of these, jobs that ran no longer than predicted; 90 % is usual",
    ),
    (
        "ringleaf_watch_failures_total",
        ("kind",),
        "lists and watches of a kind that failed",
    ),
    (
        "ringleaf_watches_total",
        ("kind",),
        "watches of a kind; one every five minutes is usual",
    ),
)

OWN_GAUGES: Final = _rows(
    Kind.GAUGE,
    (
        "ringleaf_bad_objects",
        ("kind",),
        "objects with an open problem, by kind",
    ),
    (
        "ringleaf_bindings_in_flight",
        (),
        "bindings in flight",
    ),
    (
        "ringleaf_brake_engaged",
        (),
        "1 while the [rate limit](faults.md#the-eviction-rate-limit) delays repairs",
    ),
    (
        "ringleaf_build_info",
        ("version", "python"),
        "1; the version is a label",
    ),
    (
        "ringleaf_chips",
        ("product", "state"),
        "chips by [state](#chips-by-state)",
    ),
    (
        "ringleaf_configuration_is_current",
        (),
        "1; 0 while the file is invalid and an older configuration in use",
    ),
    (
        "ringleaf_faults",
        ("cause",),
        "open [faults](faults.md)",
    ),
    (
        "ringleaf_fragmented_chips",
        ("product", "asked"),
        "free chips that pods of `asked` chips [cannot use](#fragments)",
    ),
    (
        "ringleaf_half_bound_gangs",
        (),
        "gangs of which too few pods are bound",
    ),
    (
        "ringleaf_jobs",
        ("phase",),
        "jobs that are `pending` (not admitted), `inqueue` or `running`",
    ),
    (
        "ringleaf_leader",
        (),
        "1 if this process leads, 0 if it is a standby",
    ),
    (
        "ringleaf_leaves",
        ("crossed_by",),
        "leaf switches by the jobs that cross them: `none`, `one` or `several`",
    ),
    (
        "ringleaf_longest_wait_seconds",
        QUEUE,
        "wait time of the job that has waited longest",
    ),
    (
        "ringleaf_messages_waiting",
        (),
        "conditions, events and phases to be sent",
    ),
    (
        "ringleaf_nodes",
        ("state",),
        "nodes that are `ready`, `cordoned`, `quarantined` or `not-ready`",
    ),
    (
        "ringleaf_objects",
        ("kind",),
        "objects of a kind in the cache",
    ),
    (
        "ringleaf_oldest_repair_seconds",
        (),
        "age of the oldest repair",
    ),
    (
        "ringleaf_repairs",
        ("reach",),
        "jobs under repair, by restart scope",
    ),
    (
        "ringleaf_reservation_idle_budget_used",
        (),
        f"used share of the idle [budget]({_COST}) of reservations, 0 to 1",
    ),
    (
        "ringleaf_set_aside",
        ("kind",),
        "[quarantined](failures.md#quarantine) objects, by kind",
    ),
    (
        "ringleaf_spine_conflicts",
        (),
        "jobs beyond the first that cross a leaf, [summed](#spine-conflicts)",
    ),
    (
        "ringleaf_synced",
        ("kind",),
        "1 when a kind has been listed",
    ),
    (
        "ringleaf_waiting_jobs",
        ("reason",),
        "pending jobs, by their main [reason](#why-jobs-wait)",
    ),
    (
        "ringleaf_watch_event_age_seconds",
        ("kind",),
        "age of the newest object when the watch delivered it, to a second",
    ),
    (
        "ringleaf_watch_silence_seconds",
        ("kind",),
        "time since the last event or bookmark of a watch; a minute is usual",
    ),
)

OWN_HISTOGRAMS: Final = _rows(
    Kind.HISTOGRAM,
    (
        "ringleaf_api_request_seconds",
        ("lane",),
        "response time of the API server",
    ),
    (
        "ringleaf_bind_seconds",
        (),
        "time from the decision of a pod until the API server has bound it",
    ),
    (
        "ringleaf_decision_seconds",
        (),
        "engine time of all actions of a cycle",
    ),
    (
        "ringleaf_fault_acted_seconds",
        ("cause",),
        "time from a fault until pods are first deleted because of it",
    ),
    (
        "ringleaf_fault_recovered_seconds",
        ("cause",),
        "time from a fault until it has recovered",
    ),
    (
        "ringleaf_job_decision_seconds",
        (),
        "time of a decision: its share of the cycle",
    ),
    (
        "ringleaf_repair_seconds",
        (),
        "time from a fault until all pods of its job are placed again",
    ),
    (
        "ringleaf_time_to_bind_seconds",
        (),
        "time from when enough pods of a job exist until all are bound",
    ),
)

VOLCANO: Final = (
    *_rows(
        Kind.COUNTER,
        (
            "volcano_schedule_attempts_total",
            ("result",),
            "pods that were `scheduled`, `unschedulable` when tried, or an `error`",
        ),
    ),
    *_rows(
        Kind.UNKNOWN,
        (
            "volcano_total_preemption_attempts",
            (),
            "times that victims were chosen to preempt",
        ),
    ),
    *_rows(
        Kind.GAUGE,
        (
            "volcano_pod_preemption_victims",
            (),
            "victims of the last preemption",
        ),
        (
            "volcano_unschedule_job_count",
            (),
            "pending jobs",
        ),
        (
            "volcano_unschedule_task_count",
            ("job_id",),
            "pods that a pending job lacks to start; [not all jobs](#series-by-job)",
        ),
        (
            "volcano_job_share",
            ("job_ns", "job_id"),
            "the dominant share of a job, with `drf`; [not all jobs](#series-by-job)",
        ),
        ("volcano_queue_share", QUEUE, "how much of its fair share a queue uses"),
        ("volcano_queue_weight", QUEUE, "the weight of a queue"),
        ("volcano_queue_overused", QUEUE, "1 if a queue uses its fair share or more"),
    ),
    *(
        Metric(
            f"volcano_queue_{what}_{resource}",
            Kind.GAUGE,
            QUEUE if resource != RESOURCES[-1] else (*QUEUE, "resource"),
            f"{tells}: {unit}",
        )
        for what, tells in AMOUNTS.items()
        for resource, unit in zip(RESOURCES, _UNITS, strict=True)
    ),
    *_rows(
        Kind.HISTOGRAM,
        (
            "volcano_e2e_scheduling_latency_milliseconds",
            (),
            "time from an event until the bindings of its cycle are sent",
        ),
        (
            "volcano_e2e_job_scheduling_latency_milliseconds",
            (),
            "time from the creation of a job until it is decided",
        ),
        (
            "volcano_task_scheduling_latency_milliseconds",
            (),
            "time from the creation of a pod until it is bound",
        ),
    ),
)

PROCESS: Final = (
    *_rows(
        Kind.COUNTER,
        ("process_cpu_seconds_total", (), "CPU time used"),
    ),
    *_rows(
        Kind.GAUGE,
        ("process_virtual_memory_bytes", (), "virtual memory"),
        ("process_resident_memory_bytes", (), "resident memory"),
        ("process_start_time_seconds", (), "start time of the process"),
        ("process_open_fds", (), "open files and connections"),
        ("process_max_fds", (), "limit of open files and connections"),
    ),
)
"""Made by the library; only where there is a ``/proc``."""

SHADOW: Final = (
    *_rows(
        Kind.COUNTER,
        (
            "ringleaf_shadow_jobs_total",
            ("verdict",),
            "jobs of another scheduler, by [verdict](shadow.md#verdicts)",
        ),
        (
            "ringleaf_shadow_differences_total",
            ("verdict", "rule"),
            "jobs decided differently, by the [rule](shadow.md#rules)",
        ),
    ),
    *_rows(
        Kind.GAUGE,
        (
            "ringleaf_shadow_waiting_jobs",
            (),
            "jobs that would start here, and are pending there",
        ),
    ),
)
"""Served with ``--shadow``."""

SUMMARY: Final = (
    *_rows(
        Kind.COUNTER,
        (
            "ringleaf_summary_writes_total",
            ("result",),
            "ConfigMaps that were `written` or `removed`, and writes that `failed`",
        ),
    ),
    *_rows(
        Kind.GAUGE,
        (
            "ringleaf_summary_jobs",
            ("status",),
            "jobs with a summary, by its `job_status`",
        ),
        (
            "ringleaf_summary_jobs_amiss",
            (),
            "jobs with an outdated summary; the log says why",
        ),
        (
            "ringleaf_summary_leader",
            (),
            "1 if this process writes summaries",
        ),
        (
            "ringleaf_summary_strange_maps",
            (),
            "ConfigMaps that another program writes too",
        ),
    ),
    *_rows(
        Kind.HISTOGRAM,
        (
            "ringleaf_summary_seconds",
            (),
            "time from a change of a job until its summary is written",
        ),
    ),
)
"""Served by ``ringleaf summary-controller``, and with ``--with-summary``."""

CATALOGUE: Final = (*OWN_COUNTERS, *OWN_GAUGES, *OWN_HISTOGRAMS, *VOLCANO)

CAUSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{reason.value: f"nodes {reason.words}" for reason in Reason},
        "queue": "its queue (full, closed or missing), or a plugin that refuses it",
        "network": "nodes that the network rule allows together: enough fit one by one",
        "reserved": "the end of pods on the nodes of its reservation",
        "evicting": "the end of pods that are evicted for it",
        "incomplete": "its own pods: too few, with gates or claims, or no PodGroup",
        "invalid": "nothing: the job is invalid and can never run",
        "undecided": "a decision",
    }
)
"""What a job waits for, in words; the first seventeen are reasons of nodes."""

STATES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "free": "not held by a pod, on a node that takes pods",
        "used": "held by a pod",
        "used-faulty": "held by a pod, and reported faulty",
        "reserved": "reserved for a pending job",
        "faulty": "not held by a pod, and reported faulty or not listed",
        "unavailable": "not held by a pod, on a node that takes no pods",
        "unclear": "on a node with a pod that holds chips and does not name them",
    }
)
"""What becomes of chips, in words; every chip is in one state."""

VERDICTS: Final = ("scheduled", "unschedulable", "error")
