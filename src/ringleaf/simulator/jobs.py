"""Jobs of a scenario: a job entry as the core's ``Job``, roles and all."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import UNSET

from ringleaf.model.fault import FaultMode, Recovery
from ringleaf.model.job import Job, Previous, Role
from ringleaf.model.job_labels import FAULT_SCHEDULING, TOR_AFFINITY
from ringleaf.model.moving import Moving
from ringleaf.model.product import Product
from ringleaf.model.run_time import Origin, RunTime, base_name
from ringleaf.policies.products import NO_NPU
from ringleaf.simulator.checks import good_name, known_product, rank_words
from ringleaf.simulator.demands import demand_of
from ringleaf.simulator.format import JobEntry, PodEntry, RoleEntry, RunTimeEntry
from ringleaf.simulator.running_jobs import schema_of
from ringleaf.simulator.source import BadInput, brief
from ringleaf.simulator.wanted import WANTED, wanted_at

_NO_PODS: Final = PodEntry()
_OF_ROLES: Final = ("chips", "replicas", "rank-index")
"""Keys that stand on the roles of a job that has some, besides what pods ask."""


def job_of(
    path: str,
    entry: JobEntry,
    products: Iterable[Product],
    previous: Previous | None = None,
    at: float = 0.0,
) -> Job:
    """The job of *entry*, which arrives at *at* among nodes of *products*."""
    roles = roles_of(path, entry)
    lead, differ = lead_of(roles), bool(entry.roles or entry.rank_index)
    with_chips = [role for role in roles if role.chips or not differ]
    job = Job(
        name=entry.name,
        product=product_of(path, entry, products),
        chips=lead.chips,
        replicas=sum(role.replicas for role in with_chips),
        strategy=entry.strategy,
        distributed=entry.distributed,
        tor_affinity=schema_of(entry),
        sp_block=entry.sp_block,
        superpod_affinity=entry.super_pod_affinity,
        vnpu=entry.vnpu,
        demand=lead.demand,
        previous=previous,
        roles=roles if differ else (),
        min_available=entry.min_member,
        finished=tuple(entry.finished),
        queue=good_name(f"{path}.queue", entry.queue),
        priority=entry.priority,
        created=at if entry.created is None else entry.created,
        estimate_s=entry.estimate_seconds,
        origin=origin_of(entry),
        run_time=_run_time(entry.run_time),
        preemptable=entry.preemptable,
        preempts=entry.preempts,
        critical=entry.critical,
        podless=entry.podless,
        moving=moving_of(path, entry),
        recovery=recovery_of(entry),
        framework=entry.framework,
        declined=declined_by(entry),
    )
    if entry.master and entry.master not in job.numbers:
        raise BadInput(
            f"{path}.master is {entry.master}, want the rank of one of its pods, "
            f"{rank_words(job.numbers)}",
            "null where every pod goes on without any other",
        )
    _check_finished(path, job)
    return job


def origin_of(entry: JobEntry) -> Origin:
    """The user of a job, and its name without its number, which counts with a user."""
    name = entry.program
    if name is None:
        name = base_name(entry.name) if entry.user else ""
    return Origin(entry.user, name)


def _run_time(entry: RunTimeEntry | None) -> RunTime | None:
    if entry is None:
        return None
    most_s = max(entry.median_seconds, entry.most_seconds)
    return RunTime(entry.median_seconds, most_s, entry.runs, entry.by)


def moving_of(path: str, entry: JobEntry) -> Moving | None:
    """What is lost when a job is moved; None for a job that stays where it is."""
    told = {
        "restart-seconds": entry.restart_seconds,
        "checkpointed-at": entry.checkpointed_at,
        "checkpoint-seconds": entry.checkpoint_seconds,
    }
    if not entry.movable:
        for key, found in told.items():
            if found:
                raise BadInput(
                    f"{path}.{key} is {found:g}, want it on a job that may be moved",
                    "with movable: true",
                )
        return None
    return Moving(
        entry.restart_seconds, entry.checkpointed_at, entry.checkpoint_seconds
    )


def _check_finished(path: str, job: Job) -> None:
    """Check that pods that succeeded are known, and are not among those left."""
    seen: set[int] = set()
    for i, rank in enumerate(job.finished):
        if rank in seen or rank in job.numbers:
            raise BadInput(
                f"{path}.finished[{i}] is {rank}, already that of another pod",
                "give the pods that are left other ranks (rank-index)",
            )
        seen.add(rank)


def declined_by(entry: JobEntry) -> tuple[str, ...]:
    """The labels that a job sets to ``null`` or ``off``: no default replaces them."""
    said = {
        TOR_AFFINITY: entry.tor_affinity == "null",
        FAULT_SCHEDULING: entry.fault_scheduling is FaultMode.OFF,
    }
    return tuple(label for label in said if said[label])


def recovery_of(entry: JobEntry) -> Recovery:
    """What a job wants done when its pods are faulty."""
    path = entry.recover_policy_path
    return Recovery(
        mode=entry.fault_scheduling or FaultMode.OFF,
        retries=entry.fault_retry_times,
        pods_only=path == "pod" or (entry.pod_rescheduling and path != "job"),
        process=entry.process_recover_enable,
        escalates=path != "pod",
        sub_health=entry.sub_healthy_strategy,
        master=entry.master,
    )


def lead_of(roles: Sequence[Role]) -> Role:
    """The role whose pods the job is known for: the first with chips."""
    return next((role for role in roles if role.chips), roles[0])


def roles_of(path: str, entry: JobEntry) -> tuple[Role, ...]:
    """The roles of a job; without any, one that is the whole job."""
    return tuple(_roles(path, entry))


def _roles(path: str, entry: JobEntry) -> Iterator[Role]:
    if not entry.roles:
        if entry.chips is UNSET:
            want = wanted_at(JobEntry, "chips", False)  # noqa: FBT003
            raise BadInput(f"{path}.chips is missing, want {want}")
        ranks = _ranks(path, entry.rank_index, entry.n_replicas)
        demand = demand_of(path, entry)
        yield Role("", entry.chips, entry.n_replicas, demand=demand, ranks=ranks)
        return
    _refuse_own_pods(path, entry)
    names: dict[str, str] = {}
    taken: dict[int, str] = {}
    for i, each in enumerate(entry.roles):
        own = f"{path}.roles[{i}]"
        good_name(f"{own}.name", each.name)
        if names.setdefault(each.name, own) != own:
            raise BadInput(
                f"{own}.name is {brief(each.name)}, already the name of "
                f"{names[each.name]}"
            )
        yield _role(own, each, taken)


def _role(path: str, entry: RoleEntry, taken: dict[int, str]) -> Role:
    return Role(
        name=entry.name,
        chips=entry.chips,
        replicas=entry.replicas,
        min_available=entry.min_member,
        demand=demand_of(path, entry),
        ranks=_ranks(path, entry.rank_index, entry.replicas, taken),
    )


def _ranks(
    path: str, given: Sequence[int], replicas: int, taken: dict[int, str] | None = None
) -> tuple[int, ...]:
    """The ranks given to pods: one for each pod, each once in the job."""
    if given and len(given) != replicas:
        raise BadInput(
            f"{path}.rank-index has {len(given)}, want {replicas}, one per replica"
        )
    taken = {} if taken is None else taken
    for i, rank in enumerate(given):
        own = f"{path}.rank-index[{i}]"
        if taken.setdefault(rank, own) != own:
            raise BadInput(f"{own} is {rank}, already that of {taken[rank]}")
    return tuple(given)


def _refuse_own_pods(path: str, entry: JobEntry) -> None:
    """A job with roles says on the roles what its pods are."""
    given = [
        key
        for key, name in zip(
            JobEntry.__struct_encode_fields__, JobEntry.__struct_fields__, strict=True
        )
        if (
            getattr(entry, name) not in (UNSET, [])
            if key in _OF_ROLES
            else getattr(entry, name) != getattr(_NO_PODS, name, getattr(entry, name))
        )
    ]
    if given:
        raise BadInput(
            f"{path}.{given[0]} is beside roles, want it on the roles",
            "every role says what its pods ask",
        )


def product_of(path: str, job: JobEntry, products: Iterable[Product]) -> Product:
    """The product of a job: its own, or the one of the cluster that has chips."""
    if job.product is not None:
        return known_product(f"{path}.product", job.product)
    present = set(products)
    several = present - {NO_NPU} or present
    if len(several) != 1:
        has = ", ".join(sorted(product.key for product in several)) or "no nodes"
        raise BadInput(
            f"{path}.product is missing, want {WANTED['product']}",
            f"it may be left out where there is one product; here: {has}",
        )
    return several.pop()
