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

from ringleaf.model.decision import REASON_WORDS


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
        "request": "what all pods of the queue ask that have not ended",
        "inqueue": "what admitted jobs still need to start",
        "deserved": "the part of the cluster that is the queue's now",
        "capacity": "the most it may use by its spec",
        "real_capacity": "the most it may use, with what is kept for others",
    }
)
_UNITS: Final = ("thousandths of a CPU", "bytes of memory", "thousandths of the rest")

OWN_COUNTERS: Final = _rows(
    Kind.COUNTER,
    (
        "ringleaf_api_requests_total",
        ("verb", "code", "lane"),
        "requests to the API server; `code` is `none` without an answer",
    ),
    (
        "ringleaf_bindings_total",
        ("result",),
        "pods whose binding ended: `bound` or `failed`",
    ),
    (
        "ringleaf_check_code_mismatches_total",
        (),
        "reports that did not fit their check code (D23)",
    ),
    (
        "ringleaf_configuration_reloads_total",
        ("result",),
        "times the configuration was read again: `good` or `bad`",
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
        "pods `asked` to end for another job, and of those the `refused`",
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
        "failures inside, whose culprit was [set aside](failures.md#quarantine)",
    ),
    (
        "ringleaf_held_back_repairs_total",
        (),
        "times that the [brake](faults.md#the-brake) held back a job with faulty pods",
    ),
    (
        "ringleaf_lists_total",
        ("kind",),
        "lists of a kind that were begun; one is usual",
    ),
    (
        "ringleaf_messages_total",
        ("result",),
        "conditions, events and phases: `sent`, `refused`, or `dropped` unsent",
    ),
    (
        "ringleaf_never_ran_total",
        (),
        "gangs that were bound, did not all run in time, and were released",
    ),
    (
        "ringleaf_problems_total",
        ("kind",),
        "problems with objects that were told, by the kind of object",
    ),
    (
        "ringleaf_rebuilds_total",
        (),
        "times that the engine started again from the objects",
    ),
    (
        "ringleaf_releases_total",
        (),
        "half-bound gangs that were given up",
    ),
    (
        "ringleaf_repair_escalations_total",
        ("reach",),
        "times that more of a job was deleted because faulty pods found no place",
    ),
    (
        "ringleaf_repairs_finished_total",
        ("reach",),
        "jobs that were made whole again, by how much of them was deleted",
    ),
    (
        "ringleaf_watch_failures_total",
        ("kind",),
        "lists and watches of a kind that failed",
    ),
    (
        "ringleaf_watches_total",
        ("kind",),
        "watches of a kind that were begun; one every five minutes is usual",
    ),
)

OWN_GAUGES: Final = _rows(
    Kind.GAUGE,
    (
        "ringleaf_bad_objects",
        ("kind",),
        "objects with an open problem, by their kind",
    ),
    (
        "ringleaf_bindings_in_flight",
        (),
        "pods on their way to their nodes",
    ),
    (
        "ringleaf_brake_engaged",
        (),
        "1 while the [brake](faults.md#the-brake) holds back jobs with faulty pods",
    ),
    (
        "ringleaf_build_info",
        ("version", "python"),
        "1; which Ringleaf this is",
    ),
    (
        "ringleaf_chips",
        ("product", "state"),
        "chips by [state](#chips-by-state); the states add up to all chips",
    ),
    (
        "ringleaf_configuration_is_current",
        (),
        "1, or 0 where the configuration in the file is bad and an older one in force",
    ),
    (
        "ringleaf_faults",
        ("cause",),
        "[faults](faults.md) that are there",
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
        "1 where this process decides, 0 where it stands by",
    ),
    (
        "ringleaf_leaves",
        ("crossed_by",),
        "leaf switches by the jobs that cross them: `none`, `one` or `several`",
    ),
    (
        "ringleaf_longest_wait_seconds",
        QUEUE,
        "how long the job has waited that has waited longest",
    ),
    (
        "ringleaf_messages_waiting",
        (),
        "conditions, events and phases that are still to be sent",
    ),
    (
        "ringleaf_nodes",
        ("state",),
        "nodes that are `ready`, `cordoned`, `set-aside` or `not-ready`",
    ),
    (
        "ringleaf_objects",
        ("kind",),
        "objects of a kind that are known",
    ),
    (
        "ringleaf_oldest_repair_seconds",
        (),
        "how long the job is being repaired that is longest",
    ),
    (
        "ringleaf_repairs",
        ("reach",),
        "jobs that are being repaired, by how much of them was deleted",
    ),
    (
        "ringleaf_set_aside",
        ("kind",),
        "what is [set aside](failures.md#quarantine) after a failure, by its kind",
    ),
    (
        "ringleaf_spine_conflicts",
        (),
        "jobs too many on the links of a leaf, [added up](#spine-conflicts)",
    ),
    (
        "ringleaf_synced",
        ("kind",),
        "1 once a kind was listed",
    ),
    (
        "ringleaf_waiting_jobs",
        ("reason",),
        "jobs that wait, by [the reason](#why-jobs-wait) that counts most",
    ),
    (
        "ringleaf_watch_event_age_seconds",
        ("kind",),
        "how old the newest object was when the watch told of it, to a second",
    ),
    (
        "ringleaf_watch_silence_seconds",
        ("kind",),
        "since the last event, bookmark or end of a watch; a minute is usual",
    ),
)

OWN_HISTOGRAMS: Final = _rows(
    Kind.HISTOGRAM,
    (
        "ringleaf_api_request_seconds",
        ("lane",),
        "how long the API server takes to answer",
    ),
    (
        "ringleaf_bind_seconds",
        (),
        "of each pod: from the decision until the API server has bound it",
    ),
    (
        "ringleaf_decision_seconds",
        (),
        "of each cycle: how long the engine thinks, all actions together",
    ),
    (
        "ringleaf_fault_acted_seconds",
        ("cause",),
        "of each fault: until pods were first deleted because of it",
    ),
    (
        "ringleaf_fault_recovered_seconds",
        ("cause",),
        "of each fault: until it was no longer there",
    ),
    (
        "ringleaf_job_decision_seconds",
        (),
        "of each decision: its part of the cycle it was made in",
    ),
    (
        "ringleaf_repair_seconds",
        (),
        "of each repair: from when its fault was found until all pods have places",
    ),
    (
        "ringleaf_time_to_bind_seconds",
        (),
        "of each job: from when enough pods were seen until all are known to be bound",
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
            "pods that were chosen the last time",
        ),
        (
            "volcano_unschedule_job_count",
            (),
            "jobs that wait",
        ),
        (
            "volcano_unschedule_task_count",
            ("job_id",),
            "pods that a waiting job lacks to start; [not of all jobs](#series-by-job)",
        ),
        (
            "volcano_job_share",
            ("job_ns", "job_id"),
            "the dominant share of a job, with `drf`; [not of all](#series-by-job)",
        ),
        ("volcano_queue_share", QUEUE, "how much of its part a queue uses"),
        ("volcano_queue_weight", QUEUE, "the weight of a queue"),
        ("volcano_queue_overused", QUEUE, "1 where a queue uses its part or more"),
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
            "of each cycle: from what has happened to pods on their way",
        ),
        (
            "volcano_e2e_job_scheduling_latency_milliseconds",
            (),
            "of each job: from its creation until it is decided",
        ),
        (
            "volcano_task_scheduling_latency_milliseconds",
            (),
            "of each pod: from its creation until it is bound",
        ),
    ),
)

PROCESS: Final = (
    *_rows(
        Kind.COUNTER,
        ("process_cpu_seconds_total", (), "processor time that was used"),
    ),
    *_rows(
        Kind.GAUGE,
        ("process_virtual_memory_bytes", (), "memory that was asked for"),
        ("process_resident_memory_bytes", (), "memory that is used"),
        ("process_start_time_seconds", (), "when it was started"),
        ("process_open_fds", (), "files and connections that are open"),
        ("process_max_fds", (), "how many may be"),
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
            "those on which we differ, by the [rule](shadow.md#rules) that makes it",
        ),
    ),
    *_rows(
        Kind.GAUGE,
        (
            "ringleaf_shadow_waiting_jobs",
            (),
            "jobs that would start here, and wait there",
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
            "ConfigMaps that were `written` or `removed`, and failures: `failed`",
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
            "jobs whose summary is not what it should be; the log says why",
        ),
        (
            "ringleaf_summary_leader",
            (),
            "1 where this process writes summaries",
        ),
        (
            "ringleaf_summary_strange_maps",
            (),
            "ConfigMaps that another program writes as well",
        ),
    ),
    *_rows(
        Kind.HISTOGRAM,
        (
            "ringleaf_summary_seconds",
            (),
            "from a change of a job until its summary says so",
        ),
    ),
)
"""Served by ``ringleaf summary-controller``, and with ``--with-summary``."""

CATALOGUE: Final = (*OWN_COUNTERS, *OWN_GAUGES, *OWN_HISTOGRAMS, *VOLCANO)

CAUSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{reason.value: f"nodes {words}" for reason, words in REASON_WORDS.items()},
        "queue": "its queue, which is full, closed or missing, or a plugin's veto",
        "network": "nodes that may be used together: enough of them fit one by one",
        "reserved": "the pods that are where it has its reservation",
        "evicting": "pods that were asked to end for it",
        "incomplete": "its own pods: too few, with gates or claims, or no PodGroup",
        "invalid": "nothing; it can never run as it is",
        "undecided": "a decision",
    }
)
"""What a job waits for, in words; the first seventeen are reasons of nodes."""

STATES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "free": "no pod holds it, on a node that takes pods",
        "used": "a pod holds it",
        "used-faulty": "a pod holds it, and it is reported faulty",
        "reserved": "held back for a job that waits",
        "faulty": "no pod holds it, and it is reported faulty or not listed",
        "unavailable": "no pod holds it, and its node takes no pods",
        "unclear": "a pod of the node holds chips and does not say which",
    }
)
"""What becomes of chips, in words; every chip is in one state."""

VERDICTS: Final = ("scheduled", "unschedulable", "error")
