"""What the operator's settings say for jobs that do not say it themselves.

``default-tor-affinity`` (D38) and ``default-fault-scheduling`` (D39) stand in for the
labels ``tor-affinity`` and ``fault-scheduling``. A job that says ``null`` or ``off``
itself *declined*, and stays as it is. What the settings filled in is *assumed*, so that
it can be reported, and filled in anew when the settings change.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from ringleaf.model.fault import FaultMode
from ringleaf.model.job import Job
from ringleaf.model.job_labels import FAULT_SCHEDULING, TOR_AFFINITY, Network, Schema
from ringleaf.model.placement import Placement
from ringleaf.model.settings import DefaultAffinity, Settings
from ringleaf.policies.validation import is_legal


def with_defaults(job: Job, settings: Settings, held: Iterable[Placement] = ()) -> Job:
    """*job*, whose pods that run are *held*, with what the settings fill in."""
    if not (job.assumed or has_defaults(settings)):
        return job
    given = without_defaults(job)
    found = _with_affinity(given, settings, held)
    return _with_recovery(found, settings)


def has_defaults(settings: Settings) -> bool:
    """Whether the settings fill in anything."""
    affinity, mode = settings.default_tor_affinity, settings.default_fault_scheduling
    return affinity is not DefaultAffinity.NONE or mode is not FaultMode.OFF


def without_defaults(job: Job) -> Job:
    """*job* as it is without the settings."""
    if not job.assumed:
        return job
    affinity, recovery = job.tor_affinity, job.recovery
    if TOR_AFFINITY in job.assumed:
        affinity = None
    if FAULT_SCHEDULING in job.assumed:
        recovery = replace(recovery, mode=FaultMode.OFF)
    return replace(job, tor_affinity=affinity, recovery=recovery, assumed=())


def _with_affinity(job: Job, settings: Settings, held: Iterable[Placement]) -> Job:
    """*job* as one with the default for ``tor-affinity``, if that is for it.

    A job that began without the rule, whose pods say nothing of their leaves, goes on
    without it. So does one that the rule would make illegal.
    """
    default = settings.default_tor_affinity
    if default is DefaultAffinity.NONE or not _may_assume(job):
        return job
    before = () if job.previous is None else job.previous.placements
    if any(each.chips and each.mark is None for each in (*held, *before)):
        return job
    assumed = (*job.assumed, TOR_AFFINITY)
    labelled = replace(job, tor_affinity=Schema(default.value), assumed=assumed)
    return labelled if is_legal(labelled, settings) else job


def _may_assume(job: Job) -> bool:
    """Whether a job has several nodes, no label, and a product with a switch mode."""
    several = job.submitted > 1 and job.submitted * job.chips > job.product.chips
    declined = job.tor_affinity is not None or TOR_AFFINITY in job.declined
    plain = job.network is Network.NONE and job.vnpu is None and not declined
    return several and plain and bool(job.product.switch_modes)


def _with_recovery(job: Job, settings: Settings) -> Job:
    """*job* with the default for ``fault-scheduling``, if it has chips and no label.

    Critical pods are the system's or another scheduler's: no default deletes them.
    """
    mode = settings.default_fault_scheduling
    declined = (
        job.recovery.mode is not FaultMode.OFF or FAULT_SCHEDULING in job.declined
    )
    takes = (job.chips or job.podless) and not job.critical
    if mode is FaultMode.OFF or declined or not takes:
        return job
    recovery = replace(job.recovery, mode=mode)
    return replace(job, recovery=recovery, assumed=(*job.assumed, FAULT_SCHEDULING))
