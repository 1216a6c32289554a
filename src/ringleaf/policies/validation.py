"""Is a request possible at all? The guide's job validation, with a way out.

A request is legal when the product's rule has a row for it. Not in the rules are:
requests that only a job of one pod may make, distributed inference, which is one pod,
and how a job is cut into blocks for SuperPoDs. A job that was legal stays so when some
of its pods have ended well.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from ringleaf.model.decision import Invalid
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import TOR_AFFINITY, Network
from ringleaf.model.mask import runs_of
from ringleaf.model.product import ProductMode
from ringleaf.model.settings import JobRequests, Settings, SwitchMode
from ringleaf.policies.products import FRAMEWORKS, PRODUCTS, mode_of, rule_for
from ringleaf.policies.words import counted


def validate(job: Job, settings: Settings) -> Invalid | None:
    """Why *job* can never be placed; None if it may be."""
    if job.roles:
        fault = _role_fault(job, settings)
    elif (problem := _problem(job, settings)) is not None:
        fault = problem, _hint(job, settings)
    else:
        fault = _part_fault(job) or _block_fault(job, settings)
    return None if fault is None else Invalid(job, *fault, warnings_of(job, settings))


def is_legal(job: Job, settings: Settings) -> bool:
    """Whether *job* may be placed some day."""
    if job.roles:
        return _role_fault(job, settings) is None
    wrong = _problem(job, settings) or _part_fault(job) or _block_fault(job, settings)
    return wrong is None


def _role_fault(job: Job, settings: Settings) -> tuple[str, str] | None:
    """What is wrong with a job of several roles, and the way out."""
    with_chips = [role for role, _own in job.role_ranks if role.chips]
    for role in with_chips:
        alone = replace(job, chips=role.chips, roles=(), min_available=None)
        if (problem := _problem(alone, settings)) is not None:
            return f"role {role.name!r}: {problem}", legal_words(alone, settings)
    if (fault := _rank_fault(job)) is not None or not with_chips:
        return fault
    if job.network is not Network.NONE and (fault := _mixed_fault(job)) is not None:
        return fault
    whole = replace(job, roles=(), min_available=None)
    return _part_fault(whole) or _block_fault(whole, settings)


def _rank_fault(job: Job) -> tuple[str, str] | None:
    """What is wrong with the ranks that pods were given."""
    for role in job.roles:
        if role.ranks and len(role.ranks) != role.replicas:
            pods = counted(role.replicas, "pod")
            return (
                f"role {role.name!r} has {counted(len(role.ranks), 'rank')} for {pods}",
                "give every pod a rank of its own, or none of them",
            )
    counts = Counter(rank for role in job.roles for rank in role.ranks)
    twice = sorted(rank for rank in counts if counts[rank] > 1)
    if twice:
        return f"rank {twice[0]} is given twice", "give every pod a rank of its own"
    return None


def _mixed_fault(job: Job) -> tuple[str, str] | None:
    """Pods that differ where a network rule places them as one set."""
    first, *others = [role for role in job.roles if role.chips]
    switches = job.network is Network.SWITCHES
    rule = "switch affinity" if switches else "the SuperPoD rule"
    rule = f"but {rule} places identical pods"
    for other in others:
        both = f"roles {first.name!r} and {other.name!r}"
        if other.chips != first.chips:
            chips = f"{first.chips} and {other.chips} chips"
            return (
                f"{both} ask for {chips} in one pod, {rule}",
                f"ask for {first.chips} chips in every pod that has any",
            )
        if _selection(other) != _selection(first):
            return (
                f"{both} select different nodes, {rule}",
                "select the same nodes for all pods with chips",
            )
    return None


def _selection(role: Role) -> tuple[object, ...]:
    """Which nodes a role selects, whatever they have free."""
    demand = role.demand
    return demand.required, demand.terms, demand.tolerations


def _problem(job: Job, settings: Settings) -> str | None:
    product = job.product
    if job.chips < 1:
        return f"{job.chips} chips in one pod, want at least 1"
    one_pod = product.one_pod_when_distributed and job.distributed
    if one_pod and job.replicas > 1:
        return f"distributed inference on {product.key} is one pod, not {job.replicas}"
    if job.chips not in rule_for(job):
        return _never_together(job)
    if job.replicas > 1 and job.chips in _alone(job, settings):
        return (
            f"{job.wanted}: only a job of one pod may ask for {job.chips} on "
            f"{product.key}, a job of several pods asks for more in each"
        )
    return None


def _never_together(job: Job) -> str:
    product, most = job.product, max(rule_for(job), default=0)
    if not most:
        return f"{job.chips} chips in one pod, but {product.key} nodes have none"
    if job.chips > product.chips:
        return (
            f"{job.chips} chips in one pod are more than "
            f"the {product.chips} of {product.key}"
        )
    if mode_of(job) is ProductMode.CARD:
        return (
            f"{job.chips} chips in one pod never fit "
            f"one {product.group} of {product.width} on {product.key}"
        )
    if job.chips > most:
        return (
            f"{job.chips} chips in one pod are more than the {most} "
            f"one pod may ask for on {product.key}"
        )
    return f"{job.chips} chips in one pod are never wired together on {product.key}"


def _alone(job: Job, settings: Settings) -> frozenset[int]:
    lifted = settings.job_requests is JobRequests.PER_POD
    if job.product.alone_is_strict_only and lifted:
        return frozenset()
    return job.product.alone


def _part_fault(job: Job) -> tuple[str, str] | None:
    """What is wrong with a request for a part of a chip, and the way out."""
    if job.vnpu is None:
        return None
    if job.tor_affinity is not None:
        return (
            f"virtual NPU {job.vnpu!r} with tor-affinity, which is for whole chips",
            "ask for whole chips",
        )
    problem = f"virtual NPU {job.vnpu!r}: parts of chips are not placed"
    return problem, "ask for whole chips"


def _block_fault(job: Job, settings: Settings) -> tuple[str, str] | None:
    """What is wrong with how *job* is cut into blocks, and the way out."""
    if job.sp_block is None and not job.product.superpod:
        return None
    product, block = job.product, job.block_chips
    if job.sp_block is not None and not product.blocks:
        takers = ", ".join(p.key for p in PRODUCTS.values() if p.blocks)
        return (
            f"sp-block is {block}, but {product.key} has no logical SuperPoDs",
            f"leave sp-block out; it is for {takers}",
        )
    problem = _block_problem(job, settings)
    if problem is None:
        return None
    if job.replicas > 1 and job.chips != product.chips:
        whole = replace(job, chips=product.chips)
        return problem, f"ask for {whole.wanted}"
    legal = _legal_blocks(job, settings)
    nearest = min(legal, key=lambda chips: (abs(chips - block), chips))
    nodes = counted(max(1, nearest // product.chips), "node")
    return problem, f"sp-block: {nearest} is the nearest that fits, {nodes} a block"


def _block_problem(job: Job, settings: Settings) -> str | None:
    node, block, total = job.product.chips, job.block_chips, job.replicas * job.chips
    said = f"sp-block is {block}"
    if job.replicas == 1 and (block == total or not job.finished):
        own = f"{said}, a job of one pod is one block of its {counted(total, 'chip')}"
        return own if block != total else None
    if job.chips != node:
        return (
            f"{job.wanted}: a job of several pods in SuperPoDs takes whole nodes, "
            f"{node} chips in each pod"
        )
    if block < node or block % node:
        return f"{said}, want a multiple of the {node} chips of a node"
    if -total % block > len(job.finished) * job.chips:
        return f"{said}, which does not divide the {total} chips of the job"
    if block // node > settings.superpod_size:
        whole = "without sp-block the job is one block: " * (job.sp_block is None)
        return (
            f"{whole}{block // node} nodes, more than a SuperPoD of "
            f"{settings.superpod_size} (super-pod-size)"
        )
    return None


def _legal_blocks(job: Job, settings: Settings) -> list[int]:
    """Every sp-block that would do for *job*."""
    if job.replicas == 1:
        return [job.chips]
    most = min(job.replicas, settings.superpod_size)
    sizes = (nodes for nodes in range(1, most + 1) if job.replicas % nodes == 0)
    return [nodes * job.product.chips for nodes in sizes]


def _hint(job: Job, settings: Settings) -> str:
    """The nearest legal request, what would hold all that was asked, what is legal."""
    if not rule_for(job):
        return legal_words(job, settings)
    total = job.replicas * job.chips
    legal = sorted(_legal(job, settings), key=lambda other: _distance(other, total))
    nearest = legal[0]
    hint = f"ask for {nearest.wanted}"
    if nearest.replicas * nearest.chips < total:
        larger = [other for other in legal if other.replicas * other.chips >= total]
        hint += f" (or {larger[0].wanted} to hold all {total})" if larger else ""
    per_pod = replace(settings, job_requests=JobRequests.PER_POD)
    lifted = "; job-requests: per-pod allows it" if is_legal(job, per_pod) else ""
    return f"{hint}; {legal_words(job, settings)}{lifted}"


def _distance(job: Job, total: int) -> tuple[int, bool, int]:
    chips = job.replicas * job.chips
    return abs(chips - total), chips < total, job.replicas


_PLAIN: Final[Mapping[str, None]] = MappingProxyType({"sp_block": None, "vnpu": None})


def _legal(job: Job, settings: Settings) -> Iterator[Job]:
    """Legal jobs of about the same size: one pod, as many pods, as few as hold it.

    A job of several pods may also be cut into any number of them.
    """
    total, rule = job.replicas * job.chips, rule_for(job)
    fewest = max(1, -(-total // max(rule)))
    for chips in rule:
        enough = -(-total // chips) if job.replicas > 1 else fewest
        for replicas in {1, job.replicas, fewest, max(1, enough)}:
            other = replace(job, chips=chips, replicas=replicas, **_PLAIN)
            if is_legal(other, settings):
                yield other


def warnings_of(job: Job, settings: Settings) -> tuple[str, ...]:
    """What of *job* has no effect, and what the vendor does not promise."""
    asks = job.strategy or job.distributed or job.tor_affinity or job.superpod_affinity
    if not asks and job.min_available is None:
        return ()
    product, network = job.product, job.network
    blocks = network is Network.SUPERPODS
    idle = {
        "strategy": job.strategy is not None and ProductMode.CARD not in product.rules,
        "distributed": job.distributed and not product.one_pod_when_distributed,
        "super-pod-affinity": job.superpod_affinity is not None and not blocks,
    }
    found = [f"{key} has no effect on {product.key}" for key in idle if idle[key]]
    if TOR_AFFINITY in job.assumed:
        found.append(
            f"it has no label tor-affinity and counts as {job.tor_affinity} "
            "(default-tor-affinity)"
        )
    if blocks and job.tor_affinity is not None:
        found.append("tor-affinity has no effect: the SuperPoD rule places this job")
    if blocks and job.is_elastic and job.min_chip_pods > job.min_pods:
        found.append(
            f"it starts with {job.min_chip_pods} pods, not {job.min_pods}: "
            f"whole blocks of {job.block_nodes}"
        )
    if network is Network.SWITCHES:
        found += _not_named(job, settings.switch_mode)
    return tuple(found)


def _not_named(job: Job, mode: SwitchMode) -> Iterator[str]:
    """For what of *job* the vendor does not name the switch affinity (D33, D40)."""
    product, framework = job.product, job.framework
    same = "it is placed by the same rule"
    may_be = [PRODUCTS[key] for key in job.alike] or [product]
    if not any(mode in each.switch_modes for each in may_be):
        named = " or ".join(each.key for each in may_be)
        yield f"the vendor names no switch affinity {mode} for {named}; {same}"
    frameworks = FRAMEWORKS.get(mode)
    if framework and frameworks and framework.lower() not in frameworks:
        only = " and ".join(frameworks)
        yield (
            f"the vendor names switch affinity {mode} for {only}, not for framework "
            f"{framework!r}; {same}"
        )


def legal_words(job: Job, settings: Settings) -> str:
    """The requests that are legal for jobs like this one.

    >>> from ringleaf.policies.products import PRODUCTS
    >>> legal_words(Job("j", PRODUCTS["atlas-800-9000"], 3), Settings())
    'atlas-800-9000 takes 1, 2, 4 or 8 chips in one pod, or 8 in each of several'
    """
    product, legal = job.product, sorted(rule_for(job))
    if not legal:
        return f"{product.key} is for roles without chips; name another product"
    takes = f"{product.key} takes {in_words(legal)} chips"
    several = [chips for chips in legal if chips not in _alone(job, settings)]
    if product.one_pod_when_distributed and job.distributed:
        return f"{takes} in one pod"
    if several == legal:
        return f"{takes} in each pod"
    return f"{takes} in one pod, or {in_words(several)} in each of several"


def in_words(numbers: list[int]) -> str:
    """Numbers as people write them, runs of three or more as a range.

    >>> in_words([1, 2, 4, 8]), in_words([1, 2, 3, 4, 6]), in_words([5])
    ('1, 2, 4 or 8', '1 to 4 or 6', '5')
    """
    words: list[str] = []
    for run in runs_of(numbers):
        short = len(run) < 3  # noqa: PLR2004 - "1 to 2" is no shorter than "1, 2"
        words += [str(n) for n in run] if short else [f"{run[0]} to {run[-1]}"]
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
