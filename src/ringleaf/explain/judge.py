"""What Ringleaf would have done with a job that another scheduler placed.

``judge`` takes the cluster as it was without the job, asks the session what it would do
with it now, and compares that with where the pods are: node by node and chip by chip,
pods that ask the same being the same. Everything is tried and taken back; nothing is
copied. Every difference has one rule that makes it.

First comes what would keep the job waiting here, whatever the nodes: its request, its
gang, its queue. Then the rules that the other placement breaks. Only then are two legal
placements compared (``explain/contrast.py``), by what ranks before the name.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from ringleaf.explain.contrast import contrast
from ringleaf.explain.match import (
    Agreement,
    Because,
    BrokenRule,
    Judgement,
    chip_words,
    with_chips,
)
from ringleaf.framework.context import Context
from ringleaf.framework.job_state import JobState
from ringleaf.framework.placement_attempt import is_placed_pod_by_pod
from ringleaf.framework.statement import Statement
from ringleaf.model.arrays import Ints
from ringleaf.model.decision import Placed, Reason
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Network
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import Placement
from ringleaf.policies.chips import NEVER
from ringleaf.policies.fit import (
    FITS,
    REASONS,
    Request,
    allowed_chips,
    node_ranks,
    node_reasons,
    request_of,
)
from ringleaf.policies.gang import (
    block_layout,
    superpod_assignments,
    switch_assignments,
)
from ringleaf.policies.obstacles import closed_leaves, switch_obstacle
from ringleaf.policies.superpod_obstacles import superpod_obstacle
from ringleaf.policies.switches import leaf_table
from ringleaf.policies.validation import validate
from ringleaf.policies.words import groups_free, need_words, plural, refusal_words


def judge(
    ctx: Context, job: Job, theirs: Iterable[Placement], without: Iterable[str] = ()
) -> Judgement:
    """How the pods of *job* where they are compare with where ours would be.

    Args:
        ctx: The scheduler; what the job holds there does not count.
        job: What was placed.
        theirs: Where; without chips where they are not known.
        without: Jobs that came only after it was placed.

    """
    placed = tuple(sorted(theirs, key=lambda each: each.replica))
    cluster = ctx.state.cluster
    with Statement(cluster) as before:
        for name in (job.name, *without):
            before.drop(name)
        if (held_back := _held_back(ctx, job)) is not None:
            return _said(Agreement.WAITS_HERE, held_back, placed)
        limit = max(len(placed), job.effective_min)
        with Statement(cluster):
            ours = ctx.framework.session.place(job, limit)
        own = () if ours is None else ours.placements
        if (broken := broken_rule(ctx, job, placed)) is not None:
            return _said(Agreement.RULE, broken, placed, own)
        if ours is None:
            return _said(Agreement.WAITS_HERE, no_place(ctx, job), placed)
        return contrast(ctx.framework.session, job, placed, own)


def would_start(ctx: Context, job: Job) -> Placed | None:
    """What would start now of a job that waits; None where it would wait here too."""
    if _held_back(ctx, job) is not None:
        return None
    with Statement(ctx.state.cluster):
        return ctx.framework.session.place(job)


def _said(
    match: Agreement,
    fault: BrokenRule,
    theirs: tuple[Placement, ...],
    ours: tuple[Placement, ...] = (),
) -> Judgement:
    return Judgement(match, theirs, ours, fault.rule, fault.words)


def _held_back(ctx: Context, job: Job) -> BrokenRule | None:
    """Why *job* would not start, whatever the nodes."""
    if (never := validate(job, ctx.state.settings)) is not None:
        return BrokenRule(Because.NEVER, never.problem)
    job_state = JobState(job)
    if (refusal := ctx.framework.votes.job_valid(job_state)) is not None:
        return BrokenRule(Because.GANG, refusal)
    if ctx.quota.limit(job_state) is None:
        return BrokenRule(Because.QUEUE, ctx.quota.why_no_room(job_state).words)
    return None


def no_place(ctx: Context, job: Job) -> BrokenRule:
    """Why no nodes are found for *job*."""
    found = ctx.framework.session.explain_pending(job, hints=False)
    return BrokenRule(Because.NO_PLACE, found.message)


def broken_rule(
    ctx: Context, job: Job, theirs: Sequence[Placement]
) -> BrokenRule | None:
    """The first rule that a placement breaks, pod by pod and then as a whole."""
    roles = job.role_by_pod
    cluster, alone = ctx.state.cluster, is_placed_pod_by_pod(job)
    with Statement(cluster) as statement:
        used: list[int] = []
        for each in theirs:
            role = roles[each.replica]
            found = _broken_by_pod(ctx, statement, job, role, each, used=used)
            if found is not None:
                return found
            if role.chips and job.network is not Network.NONE:
                used.append(cluster.index[each.node])
    return None if alone else _broken_by_job(ctx, job, theirs)


def _broken_by_pod(
    ctx: Context,
    statement: Statement,
    job: Job,
    role: Role,
    placed: Placement,
    *,
    used: Sequence[int],
) -> BrokenRule | None:
    """The rule that one pod breaks where it is; else it holds its chips."""
    cluster, request = ctx.state.cluster, request_of(job, role)
    node = cluster.index[placed.node]
    excluded = {**ctx.framework.session.excluded_for(job, role)}
    if used and role.chips:
        excluded[Reason.OWN_POD] = used
    said = mask_of(placed.chips)
    if said and (wrong := _wrong_chips(ctx, request, node, said)) is not None:
        return wrong
    reason = node_reasons(cluster, request, excluded).item(node)
    if reason != FITS:
        why = REASONS[reason]
        return BrokenRule(why, refusal_words(cluster, request, node, why))
    usable = cluster.free.item(node) & allowed_chips(cluster, request).item(node)
    taken = said or request.table.choose(usable)
    statement.hold(job.name, node, taken, placed.replica, demand=role.demand)
    return None


def _wrong_chips(
    ctx: Context, request: Request, node: int, said: int
) -> BrokenRule | None:
    """What is wrong with the chips that a pod has."""
    cluster = ctx.state.cluster
    healthy = cluster.healthy.item(node)
    within = allowed_chips(cluster, request).item(node)
    asked, has = request.row.asked, said.bit_count()
    need, named = need_words(request), f"it has {chip_words(said)}"
    if has != asked:
        return BrokenRule(Because.CHIPS_MISCOUNTED, f"a pod asks for {asked}, {named}")
    for rule, wrong, words in (
        (Reason.FAULTY_CHIPS, said & ~healthy, "faulty"),
        (Reason.NETWORK_FAULTY, said & ~within, "network-faulty"),
        (Because.CHIPS_TAKEN, said & cluster.taken.item(node), "another pod's"),
    ):
        if wrong:
            which = chip_words(wrong)
            return BrokenRule(
                rule, f"a pod needs {need}, {named}, of which {which} {words}"
            )
    if request.table.rank(said) == NEVER:
        groups = ", ".join(
            map(str, groups_free(request, said, cluster.size.item(node)))
        )
        of_each = f"its {plural(request.product.group)} have {groups} of them"
        words = f"a pod needs {need}, {named}; {of_each}"
        return BrokenRule(Reason.NOT_WIRED_TOGETHER, words)
    return None


def _broken_by_job(
    ctx: Context, job: Job, theirs: Sequence[Placement]
) -> BrokenRule | None:
    """The network rule that the nodes of a job break together.

    The rule is asked to place the job with these nodes and no others.
    """
    cluster, session, request = (
        ctx.state.cluster,
        ctx.framework.session,
        request_of(job),
    )
    settings, chosen = session.settings, with_chips(job, theirs)
    ranks = only(node_ranks(cluster, request), [cluster.index[n] for n in chosen])
    replicas = job.ranks[: len(chosen)]
    if job.network is Network.SUPERPODS:
        cut = block_layout(job, settings, replicas)
        others = (ranks == NEVER).nonzero()[0]
        excluded = {Reason.REFUSED: others}
        if (
            superpod_assignments(
                cluster, request, job, cut, excluded, replicas=replicas
            )
            is not None
        ):
            return None
        found = superpod_obstacle(cluster, request, job, settings, ranks, hints=False)
        return BrokenRule(Because.SUPERPOD_RULE, f"on its nodes alone: {found.because}")
    if switch_assignments(cluster, job, settings, ranks, replicas) is not None:
        return None
    closed = closed_leaves(leaf_table(cluster, ranks, settings), job, settings)
    rule = Reason.LEAF_CLOSED if closed.any() else Because.LEAF_RULE
    words = switch_obstacle(cluster, request, job, settings, ranks, hints=False).because
    return BrokenRule(rule, f"on its nodes alone: {words}")


def only(ranks: Ints, nodes: Sequence[int]) -> Ints:
    """The ranks with no nodes but these.

    >>> only(np.array([3, 4, 5]), [1]).tolist() == [NEVER, 4, NEVER]
    True
    """
    kept = np.full_like(ranks, NEVER)
    kept[nodes] = ranks[nodes]
    return kept
