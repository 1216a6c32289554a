"""Pods that belong together, and the job that the engine is told of.

A group is a PodGroup with its pods, or a pod that has none. The job is made anew from
what is there: pods that hold something, pods that wait, and how many must start
together. A pod keeps its number as long as the group lives, and so does its name.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, count
from typing import Final

from msgspec.structs import replace

from ringleaf.framework.job_state import NO_NAMES, NONE_OF_THEM
from ringleaf.kube import names
from ringleaf.kube.demand import MAX_RESOURCES, BadPod, check_number
from ringleaf.kube.objects import PodGroup
from ringleaf.kube.pods import (
    JOB_ANNOTATIONS,
    JOB_LABELS,
    MAX_READ,
    MAX_READ_BYTES,
    MAX_TEXT,
    PodRecord,
    State,
    seconds_of,
)
from ringleaf.kube.products import TYPE, alike, wanted_product
from ringleaf.kube.quantity import COUNTED, BadQuantity, resources, whole_number
from ringleaf.kube.records import mark_of
from ringleaf.kube.recovery import recovery_of, sees_to_faults
from ringleaf.model.cache import Cache
from ringleaf.model.demand import Demand
from ringleaf.model.fault import PodFault, Record
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import (
    FAULT_SCHEDULING,
    TOR_AFFINITY,
    Firmness,
    Schema,
    Strategy,
)
from ringleaf.model.placement import LeafAnnotation, LeafState, Placement
from ringleaf.model.product import Product
from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.model.run_time import Origin, base_name
from ringleaf.model.topology import quoted
from ringleaf.policies.products import NO_NPU

OUTSIDE: Final = "(other schedulers)"
"""The queue of pods that other schedulers placed; no queue has that name."""
NOT_BOUND: Final = " was not bound"
"""What is said of a pod that the API server refused to bind, after its name."""
UNSTARTED: Final = ("", "Pending", "Inqueue")
"""Phases of a PodGroup whose pods may not be made yet."""
MAX_MEMBERS: Final = 1_000_000
MAX_REQUESTS: Final = 500
"""Different requests among the pods of one job: for each all nodes are looked at."""
MAX_OF_NODES: Final = 10_000
"""Requirements on labels of nodes of all different requests of one job: a job is
placed in one piece, and all nodes are held against each of them."""
MAX_OF_PODS: Final = 20_000
"""Terms about other pods of all pods of one job, once for each pod."""
MAX_DIGITS: Final = 9
"""Digits of a number of chips."""
MAX_NAMES: Final = 1 << 14
"""Names of pods whose numbers a group remembers."""
_REQUESTS, _LIMITS, _COUNT = "requests.", "limits.", "count/"
"""What the resources of a quota begin with."""
PODS, COUNTED_PODS = "pods", "count/pods"
_LABELS: Final = frozenset(JOB_LABELS)
_alone: Final[Cache[tuple[object, ...], Job]] = Cache(MAX_READ, MAX_READ_BYTES)
_origins: Final[Cache[Origin, Origin]] = Cache(MAX_READ, MAX_READ_BYTES)
"""Jobs of one origin share it."""
_outside: Final[Cache[tuple[object, ...], Job]] = Cache(MAX_READ, MAX_READ_BYTES)


class Group:
    """Pods that start together."""

    __slots__ = (
        "ailing",
        "backoff",
        "complete_at",
        "doomed",
        "ending",
        "evicting",
        "is_alone",
        "is_finished",
        "is_outside",
        "is_remembered",
        "is_stale",
        "is_watched",
        "let_in",
        "name",
        "numbers",
        "placed",
        "podgroup",
        "pods",
        "reason",
        "record",
        "running",
        "said",
        "sent_at",
        "spared_until",
        "told",
        "unreadable",
        "waits",
        "warned",
        "was_whole",
    )

    def __init__(self, name: str) -> None:  # noqa: PLR0915 - one a slot
        self.name = name
        """``namespace/name`` of its PodGroup, or ``pod namespace/name`` alone."""
        self.is_alone = name.startswith("pod ")
        """Whether it is a pod without a PodGroup."""
        self.podgroup: PodGroup | None = None
        self.pods: dict[str, PodRecord] = {}
        """By uid."""
        self.numbers: dict[str, int] = {}
        """The number that the pod of a name had."""
        self.told: Job | None = None
        """What the engine was told last."""
        self.placed: dict[int, Placement] = {}
        """Number -> where the engine knows the pod to be."""
        self.ending: frozenset[int] = NONE_OF_THEM
        """Numbers of which the engine knows that they are asked to end."""
        self.evicting: frozenset[str] = NO_NAMES
        """Uids of pods that were asked to end for others."""
        self.ailing: tuple[PodFault, ...] = ()
        """What the engine knows to be wrong with its pods themselves."""
        self.record: Record | None = None
        """What is remembered of its repair."""
        self.running: frozenset[int] = NONE_OF_THEM
        """Numbers of which the engine knows that they run."""
        self.is_watched = False
        """Whether the engine was told which of its pods run."""
        self.is_remembered = False
        """Whether the engine knows something of it, though not as a job."""
        self.doomed: frozenset[str] = NO_NAMES
        """Marks of the pods that the previous leader was about to delete."""
        self.is_finished = False
        """Whether those were deleted again."""
        self.spared_until = 0.0
        """Until when its pods are not asked to end."""
        self.is_stale = False
        """Whether the engine is to hear of it anew."""
        self.let_in = False
        self.reason = ""
        """Why the engine is not told of pods that wait."""
        self.is_outside = False
        """Whether there is a canary that does not have it."""
        self.unreadable = ""
        """Why its pods are no job, if they are none."""
        self.said = ""
        """What was said last of why it waits, while it has no pods."""
        self.waits = ""
        """Why it waits, if it does; for people."""
        self.backoff = 0.0
        """Seconds that its next failure is waited out."""
        self.complete_at = 0.0
        """Since when the engine knows of pods of it that wait; 0 when none do."""
        self.sent_at = 0.0
        """When pods of it were sent to their nodes last; 0 once all have arrived."""
        self.was_whole = False
        """Whether enough of its pods were bound at one time, and some still are."""
        self.warned = ""
        """What was said last of what has no effect on it."""

    def is_doomed(self, pod: PodRecord) -> bool:
        """Whether the previous leader was about to delete a pod."""
        return bool(self.doomed) and mark_of(pod.uid) in self.doomed

    def is_ending(self, pod: PodRecord) -> bool:
        """Whether a pod is asked to end, or is about to be."""
        return pod.deleting or pod.uid in self.evicting or self.is_doomed(pod)

    @property
    def has_arrived(self) -> bool:
        """Whether no pod of it is on its way, and enough are on their nodes."""
        if any(pod.assumed is not None for pod in self.pods.values()):
            return False
        there = sum(pod.holds or pod.succeeded for pod in self.pods.values())
        return there >= self.need

    @property
    def need(self) -> int:
        """Pods that must start together."""
        return 1 if self.podgroup is None else self.podgroup.spec.min_member

    def note_whole(self) -> None:
        """Remember that enough pods are bound, as long as any of them is."""
        if not any(pod.holds for pod in self.pods.values()):
            self.was_whole = False
        elif self.has_arrived:
            self.was_whole = True

    @property
    def is_half_bound(self) -> bool:
        """Whether too few of its pods are bound, and never enough of them were.

        The phase of the PodGroup may not be written yet, and another scheduler may have
        bound the pods. All that must start together were made before the first was
        bound: a pod that waits and was made later is in the place of one that is lost.
        """
        if self.podgroup is None or self.podgroup.status.phase not in UNSTARTED:
            return False
        alive = done = 0
        for pod in self.pods.values():
            alive += pod.assumed is not None or (pod.holds and not pod.deleting)
            done += pod.succeeded
        if self.was_whole or not 0 < alive < self.need - done:
            return False
        times = [pod.bound_at or pod.started for pod in self.pods.values() if pod.holds]
        first = min(filter(None, times), default=None)
        if first is None:
            return not any(pod.runs for pod in self.pods.values())
        waiting = (pod for pod in self.pods.values() if pod.waits and not pod.deleting)
        return any(pod.created <= first for pod in waiting)

    def by_number(self) -> dict[int, PodRecord]:
        """Its pods by number, of those that have one."""
        return {p.number: p for p in self.pods.values() if p.number is not None}


class Facts:
    """What else there is to know of jobs: priorities by name, and the configuration."""

    def __init__(self) -> None:
        self.priorities: dict[str, int] = {}
        self.default_priority = 0
        self.has_defaults = False
        """Whether the configuration fills in labels that jobs do not have."""


class Muster:
    """The pods of a group, sorted by what they are to it now."""

    def __init__(self, group: Group, nodes: Container[str], now: float) -> None:
        self.bound: list[PodRecord] = []
        """Pods that hold something, or are about to."""
        self.waiting: list[PodRecord] = []
        """Pods that can be placed."""
        self.lost = 0
        """Pods that are bound to nodes that are not there."""
        self.done = 0
        self.excluded = ""
        """Why some pod cannot be placed."""
        for pod in group.pods.values():
            if pod.assumed is not None or pod.holds:
                if place_of(pod) in nodes:
                    self.bound.append(pod)
                else:
                    self.lost += 1
            elif pod.state is State.DONE:
                self.done += 1
            elif pod.state is not State.FAILED and not pod.deleting:
                self._sort(pod, now)

    def _sort(self, pod: PodRecord, now: float) -> None:
        if pod.state is State.BARRED:
            self.excluded = f"pod {quoted(pod.name)} has scheduling gates"
        elif pod.problem:
            self.excluded = pod.problem
        elif pod.not_before > now:
            why = f": {pod.refusal}" if pod.refusal else ""
            self.excluded = self.excluded or f"pod {quoted(pod.name)}{NOT_BOUND}{why}"
        else:
            self.waiting.append(pod)

    @property
    def there(self) -> int:
        """Pods that count as members."""
        return len(self.bound) + len(self.waiting) + self.lost + self.done


def members_of(
    group: Group, nodes: Container[str], now: float
) -> tuple[list[PodRecord], str]:
    """The pods that the engine is told of, and why not of others that wait."""
    if group.is_alone and len(group.pods) == 1:
        (pod,) = group.pods.values()
        if pod.holds or pod.assumed is not None:
            return ([pod] if place_of(pod) in nodes else []), ""
    found = Muster(group, nodes, now)
    bound, waits = found.bound, bool(found.waiting or found.excluded)
    if group.podgroup is None and not group.is_alone:
        told = f"there is no PodGroup {quoted(group.name)}"
        return bound, told if waits else ""
    if found.there < group.need and (waits or bound):
        there = f"{found.there} of {group.need} pods are there (minMember)"
        return bound, found.excluded or f"pod group is not ready, {there}"
    if waits and (lacks := _lacking_task(group, found.waiting)):
        return bound, found.excluded or f"pod group is not ready, {lacks}"
    return bound + found.waiting, found.excluded


def _lacking_task(group: Group, waiting: Iterable[PodRecord]) -> str:
    """The task that has too few pods to start with; none if all have enough.

    As in Volcano, tasks that need more than all of the group do not count.
    """
    least = group.podgroup and group.podgroup.spec.min_task_member
    if not least or sum(least.values()) > group.need:
        return ""
    held = (p for p in group.pods.values() if p.assumed or p.holds or p.succeeded)
    there = Counter(pod.role for pod in chain(held, waiting))
    for task, need in sorted(least.items()):
        if there[task] < need:
            told = f"{there[task]} of {need} pods of task {quoted(task)} are there"
            return f"{told} (minTaskMember)"
    return ""


def place_of(pod: PodRecord) -> str:
    """The node where a pod is, or is about to be."""
    return pod.node if pod.assumed is None else pod.assumed.node


def number(group: Group, pods: Iterable[PodRecord]) -> None:
    """Give every pod its number: its rank, the one its name had, or a free one."""
    new = [pod for pod in pods if pod.number is None]
    if not new:
        return
    taken = {pod.number for pod in group.pods.values() if pod.number is not None}
    for pod in new:
        if pod.rank is not None and pod.rank not in taken:
            pod.number = pod.rank
            taken.add(pod.rank)
    left = sorted(
        (pod for pod in new if pod.number is None),
        key=lambda pod: (pod.asked == 0, pod.order),
    )
    for pod in left:
        known = group.numbers.get(pod.name)
        if known is not None and known not in taken:
            pod.number = known
            taken.add(known)
    free = (n for n in count() if n not in taken)
    for pod in left:
        if pod.number is None:
            pod.number = next(free)
    for pod in new:
        assert pod.number is not None
        group.numbers.pop(pod.name, None)
        group.numbers[pod.name] = pod.number
    while len(group.numbers) > MAX_NAMES:  # some controllers make up new ones for ever
        del group.numbers[next(iter(group.numbers))]


def job_of(group: Group, pods: list[PodRecord], facts: Facts) -> Job:
    """The job of a group that has *pods*. Raises ``BadPod``.

    Pods that are alike and alone are read once.
    """
    if not group.is_alone:
        return _job(group, pods, facts)
    (pod,) = pods
    pod.number = 0
    labels = [item for item in pod.labels.items() if item[0] in _LABELS]
    like = (
        pod.demand,
        *(pod.asked, pod.resource, pod.priority),
        *(pod.preemptable, pod.preempts, pod.critical),
        pod.accelerator,
        tuple(sorted([*labels, *pod.annotations.items()])),
        recovery_of(pod, pods, None),
        facts.has_defaults and pod.owned,
        facts.has_defaults,
    )
    known = _alone.get(like)
    if known is None:
        known = _job(group, pods, facts)
        texts = sum(map(len, (*pod.annotations.values(), *dict(labels).values())))
        _alone.put(like, known, known.weight + texts)
    own = origin_of(group, pod)
    return replace(known, name=group.name, created=pod.created, origin=own)


def lead_of(pods: Iterable[PodRecord]) -> PodRecord:
    """The pod that speaks for all: the first, of those with chips if there are any."""
    return min(pods, key=lambda pod: (pod.asked == 0, pod.order))


def _job(group: Group, pods: list[PodRecord], facts: Facts) -> Job:
    ended = [pod for pod in group.pods.values() if pod.succeeded]
    number(group, [*pods, *ended])
    podgroup = group.podgroup
    lead = lead_of(pods)
    traits = _traits(lead, podgroup)
    shapes: dict[tuple[str, int, Demand], list[int]] = {}
    for pod in pods:
        assert pod.number is not None
        shape = pod.role if podgroup is not None else "", pod.asked, pod.demand
        shapes.setdefault(shape, []).append(pod.number)
    _check_requests(group.name, shapes)
    _check_selectors(group.name, shapes)
    with_chips = sum(len(own) for (_r, chips, _d), own in shapes.items() if chips)
    lone = group.is_alone
    roles = _roles(shapes, podgroup)
    product = _product(group.name, pods, lead, traits)
    return Job(
        name=group.name,
        product=product,
        chips=lead.asked,
        replicas=with_chips if roles else len(pods),
        strategy=_strategy(traits),
        distributed=traits.get(names.DISTRIBUTED) == "true",
        tor_affinity=_schema(group.name, traits) if with_chips else None,
        sp_block=_block(group.name, traits) if with_chips else None,
        superpod_affinity=_firmness(group.name, traits),
        demand=lead.demand,
        roles=roles,
        min_available=None if lone else max(0, group.need - len(ended)),
        finished=tuple(
            sorted(p.number for p in ended if p.asked and p.number is not None)
        ),
        queue=_queue(podgroup, traits, lead),
        priority=_priority(lead, podgroup, facts),
        created=lead.created
        if podgroup is None
        else seconds_of(podgroup.metadata.creation_timestamp),
        estimate_s=_estimate(traits),
        # How many pods must stay together is unknown once the PodGroup is gone.
        preemptable=(lone or podgroup is not None)
        and all(pod.preemptable for pod in pods),
        preempts=lead.preempts,
        critical=lead.critical,
        recovery=recovery_of(lead, pods, podgroup),
        framework=traits.get(names.FRAMEWORK),
        alike=alike(product, lead.demand.required),
        declined=_declined(traits, lead, pods, podgroup) if facts.has_defaults else (),
        origin=origin_of(group, lead, sum(pod.asked for pod in ended)),
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


def origin_of(group: Group, lead: PodRecord, done_chips: int = 0) -> Origin:
    """The namespace of a job, and its name without its number.

    A PodGroup that Volcano made for pods without a job is called by its pods.
    """
    bare = group.name.removeprefix("pod ").partition("/")[2]
    name = base_name(bare)
    is_of_pods = f"/{name}" == names.OF_PODS
    name = base_name(lead.name) if is_of_pods else name
    found = Origin(namespace_of(group.name), name, done_chips)
    known = _origins.get(found)
    if known is None:
        known = found
        _origins.put(found, found, 2 * (len(found.user) + len(found.name)))
    return known


def _declined(
    traits: Mapping[str, str],
    lead: PodRecord,
    pods: Iterable[PodRecord],
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


def podless_job(group: Group, facts: Facts) -> Job | None:
    """The job of a PodGroup whose pods are not made yet; None where none will be."""
    podgroup = group.podgroup
    if podgroup is None or podgroup.status.phase not in UNSTARTED:
        return None
    if group.pods and all(pod.has_ended for pod in group.pods.values()):
        return None
    demand = Demand(resources=tuple(sorted(_least_resources(podgroup).items())))
    return Job(
        name=group.name,
        product=NO_NPU,
        chips=0,
        replicas=0,
        demand=demand,
        roles=(Role("", 0, 1, demand=demand, ranks=(0,)),),
        queue=podgroup.spec.queue or DEFAULT_QUEUE,
        priority=facts.priorities.get(
            podgroup.spec.priority_class_name, facts.default_priority
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


def failed_job(group: Group, *, has_defaults: bool = False) -> Job | None:
    """The job of a PodGroup all of whose pods have failed, if they are tried again.

    Or they are on nodes that are gone. The job asks for nothing: it exists so that
    the engine deletes its pods.
    """
    failed = [
        pod
        for pod in group.pods.values()
        if pod.state is State.FAILED or pod.is_stranded
    ]
    if group.podgroup is None or not any(pod.ours and pod.node for pod in failed):
        return None
    lead = min(failed, key=lambda pod: pod.order)
    recovery = recovery_of(lead, failed, group.podgroup)
    used = 0 if group.record is None else group.record.retries_used
    doomed = any(pod.is_stranded or group.is_doomed(pod) for pod in failed)
    if recovery.retries <= used and not doomed:
        return None
    return Job(
        name=group.name,
        product=NO_NPU,
        chips=0,
        replicas=0,
        roles=(Role("", 0, 1, ranks=(0,)),),
        queue=group.podgroup.spec.queue or DEFAULT_QUEUE,
        created=seconds_of(group.podgroup.metadata.creation_timestamp),
        podless=True,
        recovery=recovery,
        declined=_declined({}, lead, failed, group.podgroup) if has_defaults else (),
    )


def held_job(group: Group, pods: list[PodRecord], product: Product) -> Job:
    """A job of pods that hold resources: they count, and are never evicted.

    Other schedulers placed them, or what is said of their job cannot be read any more.
    """
    if group.is_alone and len(group.pods) == 1 and not pods[0].ours:
        return _held_alone(group, pods[0], product)
    number(group, pods)
    return _held(group, pods, product)


def _held_alone(group: Group, pod: PodRecord, product: Product) -> Job:
    """The job of a pod that another scheduler placed; those that are alike share it."""
    if pod.number is None:
        pod.number = pod.rank or 0
    like = pod.demand, pod.asked, pod.number, product
    known = _outside.get(like)
    if known is None:
        known = _held(group, [pod], product)
        _outside.put(like, known, known.weight)
    return replace(known, name=group.name)


def _held(group: Group, pods: list[PodRecord], product: Product) -> Job:
    shapes: dict[tuple[str, int, Demand], list[int]] = {}
    for pod in pods:
        assert pod.number is not None
        chips = min(pod.asked, product.chips)
        shapes.setdefault(("", chips, pod.demand), []).append(pod.number)
    lead = min(pods, key=lambda pod: pod.order)
    roles = _roles(shapes, None)
    return Job(
        name=group.name,
        product=product,
        chips=max(chips for _task, chips, _demand in shapes),
        replicas=sum(len(own) for (_t, chips, _d), own in shapes.items() if chips),
        demand=lead.demand,
        roles=roles,
        queue=_queue(group.podgroup, {}, lead) if lead.ours else OUTSIDE,
        preemptable=False,
        critical=True,
    )


def placement_of(pod: PodRecord, job: Job) -> Placement:
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


def _traits(pod: PodRecord, podgroup: PodGroup | None) -> dict[str, str]:
    """What is said of the job, on its PodGroup or else on its pods."""
    found: dict[str, str] = {}
    sources: list[tuple[Mapping[str, str], tuple[str, ...]]] = [
        (pod.labels, JOB_LABELS),
        (pod.annotations, JOB_ANNOTATIONS),
    ]
    if podgroup is not None:
        meta = podgroup.metadata
        sources += [
            (meta.labels or {}, JOB_LABELS),
            (meta.annotations or {}, JOB_ANNOTATIONS),
        ]
    for given, keys in sources:
        found |= {key: given[key][:MAX_TEXT] for key in keys if key in given}
    return found


def _product(
    name: str, pods: Iterable[PodRecord], lead: PodRecord, traits: Mapping[str, str]
) -> Product:
    if not lead.resource:
        if lead.asked:
            raise BadPod(lead.problem)  # parts of chips: its node says of which product
        return NO_NPU
    several = sorted({pod.resource for pod in pods if pod.resource})
    if len(several) > 1:
        told = " and ".join(several)
        raise BadPod(f"job {quoted(name)} asks for {told}, want chips of one kind")
    selected = {} if lead.accelerator is None else {TYPE: lead.accelerator}
    return wanted_product(traits, selected, lead.resource)


def _strategy(traits: Mapping[str, str]) -> Strategy | None:
    said = traits.get(names.STRATEGY)
    return Strategy(said) if said in tuple(Strategy) else None


def _schema(name: str, traits: Mapping[str, str]) -> Schema | None:
    said = traits.get(names.TOR_AFFINITY, "null")
    if said == "null":
        return None
    if said not in tuple(Schema):
        raise BadPod(
            f"job {quoted(name)}: label tor-affinity is {quoted(said)}, "
            "want large-model-schema, normal-schema or null"
        )
    return Schema(said)


def _firmness(name: str, traits: Mapping[str, str]) -> Firmness | None:
    said = traits.get(names.SUPERPOD_AFFINITY)
    if said is None:
        return None
    if said not in tuple(Firmness):
        raise BadPod(
            f"job {quoted(name)}: label super-pod-affinity is {quoted(said)}, "
            "want hard or soft"
        )
    return Firmness(said)


def _block(name: str, traits: Mapping[str, str]) -> int | None:
    said = traits.get(names.SP_BLOCK)
    if said is None:
        return None
    block = whole_number(said)
    if block is None or not 0 < block < MAX_MEMBERS:
        raise BadPod(
            f"job {quoted(name)}: annotation sp-block is {quoted(said)}, "
            "want a whole number of chips"
        )
    return block


def _estimate(traits: Mapping[str, str]) -> float | None:
    seconds = whole_number(traits.get(names.ESTIMATE, ""))
    return float(seconds) if seconds else None


def _queue(
    podgroup: PodGroup | None, traits: Mapping[str, str], lead: PodRecord | None
) -> str:
    """The queue; pods whose PodGroup is gone stay in theirs, if it is on them."""
    said = "" if podgroup is None else podgroup.spec.queue
    was = ""
    if podgroup is None and lead is not None:
        was = lead.annotations.get(names.JOB_QUEUE, "")[:MAX_TEXT]
    return said or traits.get(names.QUEUE_NAME) or was or DEFAULT_QUEUE


def queue_of(group: Group) -> str:
    """The queue of a group, as its PodGroup says, or else its first pod."""
    lead = min(group.pods.values(), key=lambda pod: pod.order, default=None)
    traits = {} if lead is None else _traits(lead, group.podgroup)
    return _queue(group.podgroup, traits, lead)


def uids_of(podgroup: PodGroup) -> tuple[str, ...]:
    """The uids that identify a job: of its PodGroup's owners, and of its PodGroup."""
    meta = podgroup.metadata
    return *(owner.uid for owner in meta.owner_references or ()), meta.uid


def namespace_of(job: str) -> str:
    """The namespace of a group, or of its job, by its name.

    >>> namespace_of("pod team/p"), namespace_of("team/g")
    ('team', 'team')
    """
    return job.removeprefix("pod ").partition("/")[0]


def _priority(lead: PodRecord, podgroup: PodGroup | None, facts: Facts) -> int:
    name = "" if podgroup is None else podgroup.spec.priority_class_name
    return facts.priorities.get(name, lead.priority)


def _roles(
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
