"""What Ringleaf would have done with a job that another scheduler placed.

``judge`` takes the cluster as it was without the job, asks the session what it would do
with it now, and compares that with where the pods are: node by node and chip by chip,
pods that ask the same being the same. Everything is tried and taken back; nothing is
copied. Every difference has one rule that makes it.

First comes what would keep the job waiting here, whatever the nodes: its request, its
gang, its queue. Then the rules that the other placement breaks. Only then are two legal
placements compared (``framework/contrast.py``), by what ranks before the name.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from ringleaf.framework.contrast import contrast
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.match import (
    Because,
    Fault,
    Judgement,
    Match,
    chip_words,
    with_chips,
)
from ringleaf.framework.session import one_by_one
from ringleaf.framework.standing import Standing
from ringleaf.framework.statement import Statement
from ringleaf.model.decision import Placed, Reason
from ringleaf.model.job import Job, Network, Role
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import Placement
from ringleaf.policies.admission import admit
from ringleaf.policies.chips import NEVER, Ints
from ringleaf.policies.fit import (
    FITS,
    REASONS,
    Request,
    need_words,
    node_ranks,
    node_reasons,
    plural,
    reach,
    request_of,
)
from ringleaf.policies.gang import cut_of, superpod_seats, switch_seats
from ringleaf.policies.obstacles import (
    closed_leaves,
    superpod_obstacle,
    switch_obstacle,
)
from ringleaf.policies.switches import ground_of
from ringleaf.policies.words import groups_free, refusal_words


def judge(
    cycle: Cycle, job: Job, theirs: Iterable[Placement], without: Iterable[str] = ()
) -> Judgement:
    """How the pods of *job* where they are compare with where ours would be.

    Args:
        cycle: The books; what they hold of the job does not count.
        job: What was placed.
        theirs: Where; without chips where nobody says which.
        without: Jobs that came only after it was placed.

    """
    placed = tuple(sorted(theirs, key=lambda each: each.replica))
    cluster = cycle.view.cluster
    with Statement(cluster) as before:
        for name in (job.name, *without):
            if name in cluster.holdings:
                before.release(name)
        if (held_back := _held_back(cycle, job)) is not None:
            return _said(Match.WAITS_HERE, held_back, placed)
        limit = max(len(placed), job.fewest)
        ours = cycle.session.preview(job, limit)
        own = () if ours is None else ours.placements
        if (broken := broken_rule(cycle, job, placed)) is not None:
            return _said(Match.RULE, broken, placed, own)
        if ours is None:
            return _said(Match.WAITS_HERE, no_place(cycle, job), placed)
        return contrast(cycle.session, job, placed, own)


def would_start(cycle: Cycle, job: Job) -> Placed | None:
    """What would start now of a job that waits; None where it would wait here too."""
    if _held_back(cycle, job) is not None:
        return None
    return cycle.session.preview(job)


def _said(
    match: Match,
    fault: Fault,
    theirs: tuple[Placement, ...],
    ours: tuple[Placement, ...] = (),
) -> Judgement:
    return Judgement(match, theirs, ours, fault.rule, fault.words)


def _held_back(cycle: Cycle, job: Job) -> Fault | None:
    """Why *job* would not start, whatever the nodes."""
    if (never := admit(job, cycle.view.settings)) is not None:
        return Fault(Because.NEVER, never.problem)
    standing = Standing(job)
    if (refusal := cycle.votes.job_valid(standing)) is not None:
        return Fault(Because.GANG, refusal)
    if cycle.quota(standing) is None:
        words = cycle.share_words(standing).lstrip(",; ")
        return Fault(Because.QUEUE, words)
    return None


def no_place(cycle: Cycle, job: Job) -> Fault:
    """Why no nodes are found for *job*."""
    found = cycle.session.why_waiting(job, hints=False)
    return Fault(Because.NO_PLACE, found.message)


def broken_rule(cycle: Cycle, job: Job, theirs: Sequence[Placement]) -> Fault | None:
    """The first rule that a placement breaks, pod by pod and then as a whole."""
    roles = job.role_by_pod
    cluster, alone = cycle.view.cluster, one_by_one(job)
    with Statement(cluster) as statement:
        used: list[int] = []
        for each in theirs:
            role = roles[each.replica]
            found = _broken_by_pod(cycle, statement, job, role, each, used=used)
            if found is not None:
                return found
            if role.chips and job.network is not Network.NONE:
                used.append(cluster.index[each.node])
    return None if alone else _broken_by_job(cycle, job, theirs)


def _broken_by_pod(
    cycle: Cycle,
    statement: Statement,
    job: Job,
    role: Role,
    placed: Placement,
    *,
    used: Sequence[int],
) -> Fault | None:
    """The rule that one pod breaks where it is; else it holds its chips."""
    cluster, request = cycle.view.cluster, request_of(job, role)
    node = cluster.index[placed.node]
    barred = {**cycle.session.barred_for(job, role)}
    if used and role.chips:
        barred[Reason.OWN_POD] = used
    said = mask_of(placed.chips)
    if said and (wrong := _wrong_chips(cycle, request, node, said)) is not None:
        return wrong
    reason = node_reasons(cluster, request, barred).item(node)
    if reason != FITS:
        why = REASONS[reason]
        return Fault(why, refusal_words(cluster, request, node, why))
    usable = cluster.free.item(node) & reach(cluster, request).item(node)
    taken = said or request.table.taken(usable)
    statement.hold(job.name, node, taken, placed.replica, demand=role.demand)
    return None


def _wrong_chips(cycle: Cycle, request: Request, node: int, said: int) -> Fault | None:
    """What is wrong with the chips that a pod has."""
    cluster = cycle.view.cluster
    healthy, within = cluster.healthy.item(node), reach(cluster, request).item(node)
    asked, has = request.row.asked, said.bit_count()
    need, named = need_words(request), f"it has {chip_words(said)}"
    if has != asked:
        return Fault(Because.CHIPS_MISCOUNTED, f"a pod asks for {asked}, {named}")
    for rule, wrong, words in (
        (Reason.FAULTY_CHIPS, said & ~healthy, "faulty"),
        (Reason.NETWORK_FAULTY, said & ~within, "network-faulty"),
        (Because.CHIPS_TAKEN, said & cluster.taken.item(node), "another pod's"),
    ):
        if wrong:
            which = chip_words(wrong)
            return Fault(rule, f"a pod needs {need}, {named}, of which {which} {words}")
    if request.table.rank(said) == NEVER:
        groups = ", ".join(
            map(str, groups_free(request, said, cluster.size.item(node)))
        )
        of_each = f"its {plural(request.product.group)} have {groups} of them"
        words = f"a pod needs {need}, {named}; {of_each}"
        return Fault(Reason.NOT_WIRED_TOGETHER, words)
    return None


def _broken_by_job(cycle: Cycle, job: Job, theirs: Sequence[Placement]) -> Fault | None:
    """The network rule that the nodes of a job break together.

    The rule is asked to place the job with these nodes and no others.
    """
    cluster, session, request = cycle.view.cluster, cycle.session, request_of(job)
    settings, chosen = session.settings, with_chips(job, theirs)
    ranks = only(node_ranks(cluster, request), [cluster.index[n] for n in chosen])
    replicas = job.ranks[: len(chosen)]
    if job.network is Network.SUPERPODS:
        cut = cut_of(job, settings, replicas)
        others = (ranks == NEVER).nonzero()[0]
        barred = {Reason.REFUSED: others}
        if (
            superpod_seats(cluster, request, job, cut, barred, replicas=replicas)
            is not None
        ):
            return None
        found = superpod_obstacle(cluster, request, job, settings, ranks, hints=False)
        return Fault(Because.SUPERPOD_RULE, f"on its nodes alone: {found.because}")
    if switch_seats(cluster, job, settings, ranks, replicas) is not None:
        return None
    closed = closed_leaves(ground_of(cluster, ranks, settings), job, settings)
    rule = Reason.LEAF_CLOSED if closed.any() else Because.LEAF_RULE
    words = switch_obstacle(cluster, request, job, settings, ranks, hints=False).because
    return Fault(rule, f"on its nodes alone: {words}")


def only(ranks: Ints, nodes: Sequence[int]) -> Ints:
    """The ranks with no nodes but these.

    >>> only(np.array([3, 4, 5]), [1]).tolist() == [NEVER, 4, NEVER]
    True
    """
    kept = np.full_like(ranks, NEVER)
    kept[nodes] = ranks[nodes]
    return kept
