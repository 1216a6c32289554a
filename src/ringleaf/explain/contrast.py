"""Two legal placements of one job, ours and another: what parts them.

Pods that are placed one by one are followed one by one: where ours would go to the node
that one of theirs has, both go on from there; where it would not, the best of their
nodes is compared with ours, by what ranks before the name. So ours is never worse, and
the first term that differs decides.

Jobs that are placed as a whole are compared as a whole: leaves or SuperPoDs first, then
the ranks of their nodes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from ringleaf.explain.match import Agreement, Because, Judgement, chip_words, with_chips
from ringleaf.explain.survey import Weight, weights_of
from ringleaf.framework.node_ranking import score_of
from ringleaf.framework.placement_attempt import is_placed_pod_by_pod
from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Network
from ringleaf.model.mask import full_mask, mask_of
from ringleaf.model.placement import LeafState, Placement
from ringleaf.model.product import Term
from ringleaf.model.settings import SwitchMode
from ringleaf.policies.chips import MAX_RANK, NEVER, rank_terms
from ringleaf.policies.fit import (
    NO_CHIPS,
    Request,
    allowed_chips,
    node_ranks,
    request_of,
)
from ringleaf.policies.superpods import superpods_of
from ringleaf.policies.switches import LeafTable, leaf_table
from ringleaf.policies.words import counted, term_words

_TERMS: Final[Mapping[Term, Because]] = {
    Term.POSITION: Because.POSITION,
    Term.WHOLE: Because.WHOLE,
    Term.SPARE: Because.SPARE,
    Term.LEFT: Because.LEFT,
    Term.HOLDER: Because.POSITION,
}
_HEALTH: Final = (Because.SUB_HEALTHY, Because.HEALTHY_CHIPS)


class Apart(Struct, frozen=True):
    """What parts two placements; without a rule, only names do."""

    rule: str = ""
    ours: str = ""
    theirs: str = ""


def contrast(
    session: Session,
    job: Job,
    theirs: tuple[Placement, ...],
    ours: tuple[Placement, ...],
) -> Judgement:
    """How *theirs* compares with *ours*, both being legal."""
    if is_placed_pod_by_pod(job):
        apart = _Walk(session, job, theirs).apart()
    else:
        apart = _as_a_whole(session, job, theirs, ours)
    if apart is None:
        silent = any(not each.chips for each in theirs if _asks_chips(job, each))
        match = Agreement.CHIPS_UNSAID if silent else Agreement.SAME
        return Judgement(match, theirs, ours)
    if not apart.rule:
        return Judgement(Agreement.TIE, theirs, ours)
    why = f"ours: {apart.ours}; theirs: {apart.theirs}"
    return Judgement(Agreement.BETTER_RANK, theirs, ours, apart.rule, why)


def _asks_chips(job: Job, placed: Placement) -> bool:
    return placed.replica in {*job.ranks}


class _Walk:
    """Their pods, one after the other in the order in which ours would be placed."""

    def __init__(self, session: Session, job: Job, theirs: Sequence[Placement]) -> None:
        self._session, self._job, self._theirs = session, job, theirs
        self._cluster = session.cluster
        self._leaf = self._one_leaf()

    def _one_leaf(self) -> int | None:
        """The leaf inside which our pods stay; where theirs do so too, that one."""
        cluster, job = self._cluster, self._job
        ours = self._session.leaf_for(job, len(with_chips(job, self._theirs)))
        nodes = [cluster.index[node] for node in with_chips(job, self._theirs)]
        under = {cluster.leaf.item(node) for node in nodes}
        return under.pop() if ours is not None and len(under) == 1 else ours

    def apart(self) -> Apart | None:
        """The first thing that parts them; None if nothing does."""
        tie: Apart | None = None
        with Statement(self._cluster) as statement:
            for role, own in self._job.role_ranks:
                left = [each for each in self._theirs if each.replica in {*own}]
                while left:
                    found = self._step(statement, role, left)
                    if found is not None and found.rule:
                        return found
                    tie = found or tie
        return tie

    def _step(
        self, statement: Statement, role: Role, left: list[Placement]
    ) -> Apart | None:
        """One pod of theirs finds its place; it is taken out of *left*."""
        cluster, request = self._cluster, request_of(self._job, role)
        weights = self._weights(role, request)
        # In another order of its pods a node may not fit; it comes last.
        last = max(weights.values(), default=())
        own = [weights.setdefault(cluster.index[each.node], last) for each in left]
        best = min(weights, key=lambda node: (weights[node], node))
        there = [each for each in left if each.node == cluster.names[best]]
        if there:
            return self._chips(statement, role, request, left, there)
        first = left[own.index(min(own))]
        if min(own) != weights[best]:
            node = cluster.index[first.node]
            return self._terms_apart(request, best, node, weights)
        there = [each for each in left if each.node == first.node]
        return self._chips(statement, role, request, left, there) or Apart()

    def _weights(self, role: Role, request: Request) -> dict[int, Weight]:
        """Every fitting node and how much it suits the next pod."""
        session, job = self._session, self._job
        ranks = node_ranks(self._cluster, request, session.excluded_for(job, role))
        (nodes,) = (ranks != NEVER).nonzero()
        leaf = self._leaf if role.chips else None
        weights = weights_of(session, job, role, nodes, ranks[nodes], leaf)
        return dict(zip(nodes.tolist(), weights, strict=True))

    def _terms_apart(
        self, request: Request, ours: int, theirs: int, weights: Mapping[int, Weight]
    ) -> Apart:
        """The first term in which two nodes differ."""
        cluster = self._cluster
        found = rank_apart(cluster, request, ours, theirs)
        if found is not None and (
            not self._session.sums_scores or found.rule in _HEALTH
        ):
            return found
        if request.network is Network.SUPERPODS:
            said = [
                f"SuperPoD {cluster.superpod.item(node)} with "
                f"{counted(abs(weights[node][2]), 'such node')}"
                for node in (ours, theirs)
            ]
            return Apart(Because.SUPERPODS, *said)
        if weights[ours][1] != weights[theirs][1]:
            return Apart(Because.LEAVES, *map(self._leaf_words, (ours, theirs)))
        message = [
            f"a score of {score_of(weights[node][2]):.2f}" for node in (ours, theirs)
        ]
        return Apart(Because.SCORE, *message)

    def _leaf_words(self, node: int) -> str:
        leaf = self._cluster.leaf_of(node)
        if leaf is None:
            return "a node under no leaf"
        whole = ", which holds the whole job"
        return (
            f"leaf {leaf.name}{whole * (self._cluster.leaf.item(node) == self._leaf)}"
        )

    def _chips(
        self,
        statement: Statement,
        role: Role,
        request: Request,
        left: list[Placement],
        there: Sequence[Placement],
    ) -> Apart | None:
        """Of their pods on the node, the one whose chips are most like ours."""
        cluster, node = self._cluster, self._cluster.index[there[0].node]
        usable = cluster.free.item(node) & allowed_chips(cluster, request).item(node)
        mine = request.table.choose(usable)
        drawn = [
            (chips_apart(request, usable, mine, mask_of(each.chips) or mine), each)
            for each in there
        ]
        apart, chosen = min(
            drawn,
            key=lambda pair: (pair[0] is not None, bool(pair[0] and pair[0].rule)),
        )
        left.remove(chosen)
        taken = mask_of(chosen.chips) or mine
        job = self._job.name
        statement.hold(job, node, taken, chosen.replica, demand=role.demand)
        return apart


def chips_apart(request: Request, usable: int, ours: int, theirs: int) -> Apart | None:
    """What parts two choices of chips on one node; None if they are the same."""
    if ours == theirs:
        return None
    drawn, other = _drawn(request, usable, ours), _drawn(request, usable, theirs)
    if drawn == other:
        return Apart()
    said = [
        f"{chip_words(mask)}, {_drawn_words(request, counts)}"
        for mask, counts in ((ours, drawn), (theirs, other))
    ]
    return Apart(Because.CHIPS, *said)


def _drawn(request: Request, usable: int, taken: int) -> list[tuple[int, int]]:
    """Free and taken chips of every group that gives some; of halves, pairs that face.

    Chips of one group are alike, and so are groups with as many free chips.
    """
    row, width = request.row, request.row.width
    low = full_mask(width)
    if row.halves:
        facing = taken & taken >> width & low
        return [(facing.bit_count() if row.aligned else 0, row.asked // 2)]
    groups = [
        ((usable >> at & low).bit_count(), (taken >> at & low).bit_count())
        for at in range(0, request.product.chips, width)
    ]
    return sorted(group for group in groups if group[1])


def _drawn_words(request: Request, drawn: Sequence[tuple[int, int]]) -> str:
    if request.row.halves:
        return f"of which {counted(drawn[0][0], 'pair')} face each other"
    group = request.product.group
    return ", ".join(f"{taken} of a {group} with {free} free" for free, taken in drawn)


def rank_apart(
    cluster: Cluster, request: Request, ours: int, theirs: int
) -> Apart | None:
    """The first term of the rank in which two nodes differ, if one does."""
    pairs = zip(
        _terms(cluster, request, ours), _terms(cluster, request, theirs), strict=True
    )
    for (rule, mine, words), (_rule, other, others_words) in pairs:
        if mine != other:
            return Apart(rule, words, others_words)
    return None


def _terms(
    cluster: Cluster, request: Request, node: int
) -> list[tuple[Because, int, str]]:
    """The rank of a fitting node: rule, value and words, in the order of weight."""
    if request.row is NO_CHIPS:
        return []
    sick = cluster.sub_healthy.item(node)
    healthy, size = cluster.healthy.item(node).bit_count(), cluster.size.item(node)
    message = f"{healthy} of {size} chips healthy"
    found = [
        (Because.SUB_HEALTHY, int(sick), "sub-healthy" if sick else "not sub-healthy"),
        (Because.HEALTHY_CHIPS, size - healthy, message),
    ]
    usable = cluster.free.item(node) & allowed_chips(cluster, request).item(node)
    terms = rank_terms(request.row, request.table.rank(usable) % MAX_RANK)
    return found + [
        (_TERMS[term], terms[term], term_words(request, term, terms[term]))
        for term in request.row.rank_by
    ]


def _as_a_whole(
    session: Session,
    job: Job,
    theirs: tuple[Placement, ...],
    ours: tuple[Placement, ...],
) -> Apart | None:
    """What parts two placements under a network rule."""
    index = session.cluster.index
    mine = sorted(index[node] for node in with_chips(job, ours))
    other = sorted(index[node] for node in with_chips(job, theirs))
    if mine == other:
        return _chips_of_nodes(session, job, theirs)
    if job.network is Network.SUPERPODS:
        apart = _superpods_apart(session, job, mine, other)
    else:
        apart = _leaves_apart(session, job, mine, other)
    return apart or _ranks_apart(session, job, mine, other)


def _chips_of_nodes(
    session: Session, job: Job, theirs: Sequence[Placement]
) -> Apart | None:
    """What parts the chips of the same nodes, each of which has one pod."""
    cluster, tie = session.cluster, None
    roles = job.role_by_pod
    for each in theirs:
        if not each.chips:
            continue
        request = request_of(job, roles[each.replica])
        node = cluster.index[each.node]
        usable = cluster.free.item(node) & allowed_chips(cluster, request).item(node)
        mine = request.table.choose(usable)
        apart = chips_apart(request, usable, mine, mask_of(each.chips))
        if apart is not None and apart.rule:
            return apart
        tie = apart or tie
    return tie


def _ranks_apart(
    session: Session, job: Job, ours: Sequence[int], theirs: Sequence[int]
) -> Apart:
    """The first term in which the nodes differ, best against best."""
    cluster, request = session.cluster, request_of(job)
    ranks = node_ranks(cluster, request)
    mine, other = (sorted(nodes, key=ranks.item) for nodes in (ours, theirs))
    for a, b in zip(mine, other, strict=False):
        if (found := rank_apart(cluster, request, a, b)) is not None:
            return found
    return Apart()


def _superpods_apart(
    session: Session, job: Job, ours: Sequence[int], theirs: Sequence[int]
) -> Apart | None:
    """How the SuperPoDs of two placements differ: free nodes and nodes taken."""
    cluster = session.cluster
    free = superpods_of(cluster, node_ranks(cluster, request_of(job))).free
    taken = [
        Counter(cluster.superpod.item(node) for node in nodes)
        for nodes in (ours, theirs)
    ]
    profiles = [sorted((free[s], count) for s, count in each.items()) for each in taken]
    if profiles[0] == profiles[1]:
        return None
    said = [
        ", ".join(f"{each[s]} of {free[s]} nodes in SuperPoD {s}" for s in sorted(each))
        for each in taken
    ]
    return Apart(Because.SUPERPODS, *said)


def _leaves_apart(
    session: Session, job: Job, ours: Sequence[int], theirs: Sequence[int]
) -> Apart | None:
    """How the leaves of two placements differ: state, fitting nodes and nodes taken."""
    cluster, settings = session.cluster, session.settings
    table = leaf_table(cluster, node_ranks(cluster, request_of(job)), settings)
    second = settings.switch_mode is SwitchMode.SPINE_LEAF_2
    taken = [
        Counter(cluster.leaf.item(node) for node in nodes) for nodes in (ours, theirs)
    ]
    mine, other = (
        sorted(
            (_state(table, leaf, second), table.fitting.item(leaf), count)
            for leaf, count in each.items()
        )
        for each in taken
    )
    if mine == other:
        return None
    said = [
        f"{counted(len(each), 'leaf')}: "
        + ", ".join(
            f"{each[leaf]} of {table.fitting.item(leaf)} fitting nodes under "
            f"{_state(table, leaf, second)}{cluster.leaves[leaf].name}"
            for leaf in sorted(each)
        )
        for each in taken
    ]
    return Apart(Because.LEAVES, *said)


def _state(table: LeafTable, leaf: int, second: object) -> str:
    """What 2.0 heeds of a leaf."""
    if not second:
        return ""
    if table.unhealthy.item(leaf):
        return "unhealthy "
    return f"{LeafState(table.state.item(leaf)).name.lower()} "
