"""Jobs of gangs that are not simply placed: without pods, failed, or held by others."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from ringleaf.kube.demand import MAX_RESOURCES, BadPod, check_number
from ringleaf.kube.gang_members import assign_numbers
from ringleaf.kube.gang_state import UNSTARTED, GangState
from ringleaf.kube.job_traits import JobContext, queue_named
from ringleaf.kube.jobs import declined_defaults, roles_of
from ringleaf.kube.objects import PodGroup
from ringleaf.kube.pod_request import MAX_READ, MAX_READ_BYTES
from ringleaf.kube.pod_state import PodPhase, PodState, seconds_of
from ringleaf.kube.quantity import COUNTED, BadQuantity, resources
from ringleaf.kube.recovery import recovery_of
from ringleaf.model.cache import Cache
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.product import Product
from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.model.topology import quoted
from ringleaf.policies.products import NO_NPU

OUTSIDE: Final = "(other schedulers)"
"""The queue of pods that other schedulers placed; no queue has that name."""
_REQUESTS, _LIMITS, _COUNT = "requests.", "limits.", "count/"
"""What the resources of a quota begin with."""
PODS, COUNTED_PODS = "pods", "count/pods"
_outside: Final[Cache[tuple[object, ...], Job]] = Cache(MAX_READ, MAX_READ_BYTES)


def podless_job(gang: GangState, context: JobContext) -> Job | None:
    """The job of a PodGroup whose pods are not made yet; None where none will be."""
    podgroup = gang.podgroup
    if podgroup is None or podgroup.status.phase not in UNSTARTED:
        return None
    if gang.pods and all(pod.has_ended for pod in gang.pods.values()):
        return None
    demand = Demand(resources=tuple(sorted(_least_resources(podgroup).items())))
    return Job(
        name=gang.name,
        product=NO_NPU,
        chips=0,
        replicas=0,
        demand=demand,
        roles=(Role("", 0, 1, demand=demand, ranks=(0,)),),
        queue=podgroup.spec.queue or DEFAULT_QUEUE,
        priority=context.priorities.get(
            podgroup.spec.priority_class_name, context.default_priority
        ),
        created=seconds_of(podgroup.metadata.creation_timestamp),
        podless=True,
        recovery=recovery_of(None, (), podgroup),
    )


def _least_resources(podgroup: PodGroup) -> dict[str, int]:
    """What a PodGroup asks before it has pods. Raises ``BadPod``."""
    what = f"PodGroup {quoted(podgroup.metadata.key)}: spec.minResources"
    given = podgroup.spec.min_resources or {}
    try:
        asks = resources(given)
    except BadQuantity as error:
        raise BadPod(f"{what}: {error}") from None
    for name, amount in asks.items():
        if not 0 <= amount <= COUNTED:
            found = f"{what}[{quoted(name)}] is {quoted(str(given[name])[:60])}"
            raise BadPod(f"{found}, want 0 to 2Pi; hint: no cluster has more")
    try:
        few = "ask for fewer resources"
        check_number("spec.minResources", asks, MAX_RESOURCES, few)
    except BadPod as error:
        raise BadPod(f"PodGroup {quoted(podgroup.metadata.key)}: {error}") from None
    return _without_quotas(asks)


def _without_quotas(asks: Mapping[str, int]) -> dict[str, int]:
    """*asks* by the names that nodes use.

    Volcano's controllers write ``minResources`` for the quota of a namespace too: it
    names the same amounts again, and no node has what is called so.

    >>> _without_quotas({"cpu": 1, "requests.cpu": 1, "limits.cpu": 2, "count/pods": 1})
    {'cpu': 1, 'pods': 1}
    >>> _without_quotas({"requests.cpu": 1, "count/pods": 2})
    {'cpu': 1, 'pods': 2}
    """
    of_quotas = {
        PODS if name == COUNTED_PODS else name.removeprefix(_REQUESTS): amount
        for name, amount in asks.items()
        if name == COUNTED_PODS or name.startswith(_REQUESTS)
    }
    others = (_REQUESTS, _LIMITS, _COUNT)
    plain = {name: n for name, n in asks.items() if not name.startswith(others)}
    return of_quotas | plain


def failed_job(gang: GangState, *, has_defaults: bool = False) -> Job | None:
    """The job of a PodGroup all of whose pods have failed, if they are tried again.

    Or they are on nodes that are gone. The job asks for nothing: it exists so that
    the engine deletes its pods.
    """
    failed = [
        pod
        for pod in gang.pods.values()
        if pod.phase is PodPhase.FAILED or pod.is_stranded
    ]
    if gang.podgroup is None or not any(pod.ours and pod.node for pod in failed):
        return None
    lead = min(failed, key=lambda pod: pod.order)
    recovery = recovery_of(lead, failed, gang.podgroup)
    used = 0 if gang.repair.record is None else gang.repair.record.retries_used
    doomed = any(pod.is_stranded or gang.was_deleting(pod) for pod in failed)
    if recovery.retries <= used and not doomed:
        return None
    return Job(
        name=gang.name,
        product=NO_NPU,
        chips=0,
        replicas=0,
        roles=(Role("", 0, 1, ranks=(0,)),),
        queue=gang.podgroup.spec.queue or DEFAULT_QUEUE,
        created=seconds_of(gang.podgroup.metadata.creation_timestamp),
        podless=True,
        recovery=recovery,
        declined=declined_defaults({}, lead, failed, gang.podgroup)
        if has_defaults
        else (),
    )


def held_job(gang: GangState, pods: list[PodState], product: Product) -> Job:
    """A job of pods that hold resources: they count, and are never evicted.

    Other schedulers placed them, or what is said of their job cannot be read any more.
    """
    if gang.is_alone and len(gang.pods) == 1 and not pods[0].ours:
        return _held_alone(gang, pods[0], product)
    assign_numbers(gang, pods)
    return _held(gang, pods, product)


def _held_alone(gang: GangState, pod: PodState, product: Product) -> Job:
    """The job of a pod that another scheduler placed; those that are alike share it."""
    if pod.number is None:
        pod.number = pod.rank or 0
    like = pod.demand, pod.requested, pod.number, product
    known = _outside.get(like)
    if known is None:
        known = _held(gang, [pod], product)
        _outside.put(like, known, known.weight)
    return replace(known, name=gang.name)


def _held(gang: GangState, pods: list[PodState], product: Product) -> Job:
    shapes: dict[tuple[str, int, Demand], list[int]] = {}
    for pod in pods:
        assert pod.number is not None
        chips = min(pod.requested, product.chips)
        shapes.setdefault(("", chips, pod.demand), []).append(pod.number)
    lead = min(pods, key=lambda pod: pod.order)
    roles = roles_of(shapes, None)
    return Job(
        name=gang.name,
        product=product,
        chips=max(chips for _task, chips, _demand in shapes),
        replicas=sum(len(own) for (_t, chips, _d), own in shapes.items() if chips),
        demand=lead.demand,
        roles=roles,
        queue=queue_named(gang.podgroup, {}, lead) if lead.ours else OUTSIDE,
        preemptable=False,
        critical=True,
    )
