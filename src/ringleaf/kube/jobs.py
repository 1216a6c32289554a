"""The job that the engine is told of, made from the pods of a gang.

It is made anew from what is there: pods that hold something, pods that wait, and how
many must start together. A pod keeps its number as long as the gang lives.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Final

from msgspec.structs import replace

from ringleaf.kube import names
from ringleaf.kube.demand import BadPod
from ringleaf.kube.gang_members import assign_numbers, lead_of
from ringleaf.kube.gang_state import ALONE, GangState
from ringleaf.kube.job_traits import (
    JobContext,
    block_in,
    estimate_in,
    firmness_in,
    priority_of,
    product_in,
    queue_named,
    schema_in,
    strategy_in,
    traits_of,
)
from ringleaf.kube.moving import moving_of
from ringleaf.kube.objects import PodGroup
from ringleaf.kube.pod_request import MAX_READ, MAX_READ_BYTES
from ringleaf.kube.pod_state import JOB_LABELS, PodState, seconds_of
from ringleaf.kube.products import alike
from ringleaf.kube.quantity import whole_number
from ringleaf.kube.recovery import recovery_of, sees_to_faults
from ringleaf.model.cache import Cache
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import FAULT_SCHEDULING, TOR_AFFINITY
from ringleaf.model.placement import LeafAnnotation, LeafState, Placement
from ringleaf.model.run_time import Origin, base_name
from ringleaf.model.topology import quoted

MAX_REQUESTS: Final = 500
"""Different requests among the pods of one job: for each all nodes are looked at."""
MAX_OF_NODES: Final = 10_000
"""Requirements on labels of nodes of all different requests of one job: a job is
placed in one piece, and all nodes are held against each of them."""
MAX_OF_PODS: Final = 20_000
"""Terms about other pods of all pods of one job, once for each pod."""
_LABELS: Final = frozenset(JOB_LABELS)
_alone: Final[Cache[tuple[object, ...], Job]] = Cache(MAX_READ, MAX_READ_BYTES)
_origins: Final[Cache[Origin, Origin]] = Cache(MAX_READ, MAX_READ_BYTES)
"""Jobs of one origin share it."""


def job_of(gang: GangState, pods: list[PodState], context: JobContext) -> Job:
    """The job of a group that has *pods*. Raises ``BadPod``.

    Pods that are alike and alone are read once.
    """
    if not gang.is_alone:
        return _job(gang, pods, context)
    (pod,) = pods
    pod.number = 0
    labels = [item for item in pod.labels.items() if item[0] in _LABELS]
    like = (
        pod.demand,
        *(pod.requested, pod.resource, pod.priority),
        *(pod.preemptable, pod.preempts, pod.critical),
        pod.accelerator,
        tuple(sorted([*labels, *pod.annotations.items()])),
        recovery_of(pod, pods, None),
        context.has_defaults and pod.owned,
        context.has_defaults,
    )
    known = _alone.get(like)
    if known is None:
        known = _job(gang, pods, context)
        texts = sum(map(len, (*pod.annotations.values(), *dict(labels).values())))
        _alone.put(like, known, known.weight + texts)
    own = origin_of(gang, pod)
    return replace(known, name=gang.name, created=pod.created, origin=own)


def _job(gang: GangState, pods: list[PodState], context: JobContext) -> Job:
    ended = [pod for pod in gang.pods.values() if pod.succeeded]
    assign_numbers(gang, [*pods, *ended])
    podgroup = gang.podgroup
    lead = lead_of(pods)
    traits = traits_of(lead, podgroup)
    shapes: dict[tuple[str, int, Demand], list[int]] = {}
    for pod in pods:
        assert pod.number is not None
        shape = pod.role if podgroup is not None else "", pod.requested, pod.demand
        shapes.setdefault(shape, []).append(pod.number)
    _check_requests(gang.name, shapes)
    _check_selectors(gang.name, shapes)
    with_chips = sum(len(own) for (_r, chips, _d), own in shapes.items() if chips)
    lone = gang.is_alone
    roles = roles_of(shapes, podgroup)
    product = product_in(gang.name, pods, lead, traits)
    return Job(
        name=gang.name,
        product=product,
        chips=lead.requested,
        replicas=with_chips if roles else len(pods),
        strategy=strategy_in(traits),
        distributed=traits.get(names.DISTRIBUTED) == "true",
        tor_affinity=schema_in(gang.name, traits) if with_chips else None,
        sp_block=block_in(gang.name, traits) if with_chips else None,
        superpod_affinity=firmness_in(gang.name, traits),
        demand=lead.demand,
        roles=roles,
        min_available=None if lone else max(0, gang.need - len(ended)),
        finished=tuple(
            sorted(p.number for p in ended if p.requested and p.number is not None)
        ),
        queue=queue_named(podgroup, traits, lead),
        priority=priority_of(lead, podgroup, context),
        created=lead.created
        if podgroup is None
        else seconds_of(podgroup.metadata.creation_timestamp),
        estimate_s=estimate_in(traits),
        # How many pods must stay together is unknown once the PodGroup is gone.
        preemptable=(lone or podgroup is not None)
        and all(pod.preemptable for pod in pods),
        preempts=lead.preempts,
        critical=lead.critical,
        recovery=recovery_of(lead, pods, podgroup),
        # Only pods that a controller creates again, in the same PodGroup, may be moved.
        moving=moving_of(traits)
        if podgroup is not None and all(pod.owned for pod in pods)
        else None,
        framework=traits.get(names.FRAMEWORK),
        alike=alike(product, lead.demand.required),
        declined=declined_defaults(traits, lead, pods, podgroup)
        if context.has_defaults
        else (),
        origin=origin_of(gang, lead, sum(pod.requested for pod in ended)),
    )


def _check_requests(name: str, shapes: Collection[tuple[str, int, Demand]]) -> None:
    """Whether few enough pods differ in what they ask. Raises ``BadPod``.

    Labels of pods do not count: other tenants choose which of them matter.
    """
    if len(shapes) <= MAX_REQUESTS:
        return
    asked = {(chips, replace(demand, labels=())) for _task, chips, demand in shapes}
    if len(asked) > MAX_REQUESTS:
        raise BadPod(
            f"job {quoted(name)} has pods with {len(asked)} different requests, want "
            f"at most {MAX_REQUESTS}; hint: let pods of a task request the same"
        )


def _check_selectors(
    name: str, shapes: Mapping[tuple[str, int, Demand], Collection[int]]
) -> None:
    """Whether all pods together say little enough of nodes and of pods.

    Raises ``BadPod``.
    """
    of_nodes = of_pods = 0
    if len(shapes) > 1:  # what one pod may ask is checked where it is read
        of_nodes = sum(demand.n_of_nodes for _task, _chips, demand in shapes)
    for (_task, _chips, demand), own in shapes.items():
        of_pods += len(own) * demand.n_of_pods
    if of_nodes > MAX_OF_NODES:
        raise BadPod(
            f"job {quoted(name)} has {of_nodes} requirements on labels of nodes in "
            f"its different requests, want at most {MAX_OF_NODES}",
            "let pods of a task request the same",
        )
    if of_pods > MAX_OF_PODS:
        raise BadPod(
            f"job {quoted(name)} has {of_pods} terms of pod affinity and spread "
            f"constraints, counted for each pod, want at most {MAX_OF_PODS}",
            "select other pods with fewer terms",
        )


def origin_of(gang: GangState, lead: PodState, done_chips: int = 0) -> Origin:
    """The namespace of a job, and its name without its number.

    A PodGroup that Volcano made for pods without a job is called by its pods.
    """
    bare = gang.name.removeprefix(ALONE).partition("/")[2]
    name = base_name(bare)
    is_of_pods = f"/{name}" == names.OF_PODS
    name = base_name(lead.name) if is_of_pods else name
    found = Origin(namespace_of(gang.name), name, done_chips)
    known = _origins.get(found)
    if known is None:
        known = found
        _origins.put(found, found, 2 * (len(found.user) + len(found.name)))
    return known


def declined_defaults(
    traits: Mapping[str, str],
    lead: PodState,
    pods: Iterable[PodState],
    podgroup: PodGroup | None,
) -> tuple[str, ...]:
    """The labels for which a job wants no default of the configuration.

    Those that it has itself. Pods that no controller makes again are not deleted
    because of a default, nor those of which others are to see to faults.
    """
    found = [TOR_AFFINITY] if names.TOR_AFFINITY in traits else []
    made_once = not all(pod.owned for pod in pods)
    if made_once or sees_to_faults(lead, podgroup):
        found.append(FAULT_SCHEDULING)
    return tuple(found)


def roles_of(
    shapes: Mapping[tuple[str, int, Demand], list[int]], podgroup: PodGroup | None
) -> tuple[Role, ...]:
    """The roles of a job; none where all pods are alike, numbered from 0, with chips.

    Pods of one task that differ are roles of their own, with one minimum together,
    which the first of them has.
    """
    least = {} if podgroup is None else dict(podgroup.spec.min_task_member or {})
    if len(shapes) == 1:
        ((role, chips, _demand), numbers), *_ = shapes.items()
        plain = chips > 0 and sorted(numbers) == list(range(len(numbers)))
        if plain and least.get(role) in (None, len(numbers)):
            return ()
    found = []
    names_taken: set[str] = set()
    suffixes: defaultdict[str, Iterator[int]] = defaultdict(partial(count, 2))
    for (task, chips, demand), numbers in sorted(
        shapes.items(), key=lambda item: min(item[1])
    ):
        name = base = task or ("pods" if len(shapes) > 1 else "")
        while name in names_taken:  # suffixes that are taken are not tried again
            name = f"{base}-{next(suffixes[base])}"
        names_taken.add(name)
        need = least.pop(task, None)
        found.append(
            Role(
                name=name,
                chips=chips,
                replicas=len(numbers),
                min_available=None if need is None else min(need, len(numbers)),
                demand=demand,
                ranks=tuple(sorted(numbers)),
            )
        )
    return tuple(found)


def placement_of(pod: PodState, job: Job) -> Placement:
    """Where a bound pod is, as it is written on it."""
    assert pod.number is not None
    if pod.assumed is not None:  # it may have joined another group since
        same = pod.assumed.replica == pod.number
        return pod.assumed if same else replace(pod.assumed, replica=pod.number)
    written = pod.annotations
    return Placement(
        replica=pod.number,
        node=pod.node,
        chips=pod.chips or (),
        block=whole_number(written.get(names.SUPERPOD_RANK, "")),
        mark=_mark(written, job),
        role=pod.role if job.roles else None,
    )


def _mark(written: Mapping[str, str], job: Job) -> LeafAnnotation | None:
    """What a pod says of its leaf, if it says something."""
    said = written.get(names.SHARED)
    if said not in ("0", "1", "2"):
        return None
    return LeafAnnotation(
        job_type=job.job_type,
        state=LeafState(int(said)),
        healthy=written.get(names.HEALTHY) != "1",
    )


def uids_of(podgroup: PodGroup) -> tuple[str, ...]:
    """The uids that identify a job: of its PodGroup's owners, and of its PodGroup."""
    meta = podgroup.metadata
    return *(owner.uid for owner in meta.owner_references or ()), meta.uid


def namespace_of(job: str) -> str:
    """The namespace of a gang, or of its job, by its name.

    >>> namespace_of("pod team/p"), namespace_of("team/g")
    ('team', 'team')
    """
    return job.removeprefix(ALONE).partition("/")[0]
