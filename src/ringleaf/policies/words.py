"""Numbers, names, ranks and refusals in words; the ranks are read elsewhere."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Reason
from ringleaf.model.demand import amount_words
from ringleaf.model.mask import chips_of, full_mask
from ringleaf.model.product import Term
from ringleaf.policies.chips import rank_terms
from ringleaf.policies.fit import NO_CHIPS, Request, allowed_chips


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(0, "chip"), counted(1, "chip"), counted(2, "other mesh")
    ('no chips', '1 chip', '2 other meshes')
    >>> counted(3, "leaf")
    '3 leaves'
    """
    return f"{number or 'no'} {noun if number == 1 else plural(noun)}"


def some_of(items: Iterable[str], most: int) -> str:
    """The first *most* of some things, and how many more there are.

    >>> some_of("abc", 3), some_of("abcde", 3)
    ('a, b, c', 'a, b, c and 2 more')
    """
    listed = list(items)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def plural(noun: str) -> str:
    """More than one of them."""
    if noun.endswith("leaf"):
        return f"{noun[:-1]}ves"
    return noun + ("es" if noun.endswith("sh") else "s")


def need_words(request: Request, *, names_node: bool = True) -> str:
    """What a node must have free for one replica; *names_node* adds that it is one.

    >>> from ringleaf.model.job import Job
    >>> from ringleaf.policies.fit import request_of
    >>> from ringleaf.policies.products import PRODUCTS
    >>> job = Job("j", PRODUCTS["atlas-800-9000"], 2)
    >>> need_words(request_of(job))
    '2 free chips in one ring'
    >>> job = Job("j", PRODUCTS["atlas-800-9000"], 1)
    >>> [need_words(request_of(job), names_node=says) for says in (True, False)]
    ['1 free chip on one node', '1 free chip']
    """
    row, group = request.row, request.product.group
    if row is NO_CHIPS:
        return "a node that takes pods"
    chips = counted(row.asked, "free chip")
    if row.halves:
        return (
            f"{row.asked // 2} free chips in each {group}" + " of one node" * names_node
        )
    across = set(row.rest) >= set(range(1, row.width + 1))
    if row.asked == 1 or across or row.width >= request.product.chips:
        return chips + " on one node" * names_node
    if row.asked <= row.width:
        return f"{chips} in one {group}"
    n_groups, odd = divmod(row.asked, row.width)
    whole = counted(n_groups, f"completely free {group}")
    return f"{whole}{' and 1 free chip' * odd}{' of one node' * names_node}"


MAX_NAMES: Final = 5


def groups_free(request: Request, usable: int, n_chips: int) -> tuple[int, ...]:
    """The usable chips in each group of one node, by the product's wiring.

    >>> from ringleaf.model.job import Job
    >>> from ringleaf.policies.fit import request_of
    >>> from ringleaf.policies.products import PRODUCTS
    >>> request = request_of(Job("j", PRODUCTS["atlas-800-9000"], 1))
    >>> groups_free(request, 0b1111_0001, 8)
    (1, 4)
    """
    width = request.product.width
    starts = range(0, n_chips, width)
    return tuple((usable >> at & full_mask(width)).bit_count() for at in starts)


def rank_words(cluster: Cluster, request: Request, node: int, rank: int) -> list[str]:
    """The rank of a fitting node, term by term in the order in which they weigh."""
    if request.row is NO_CHIPS:
        return ["all nodes are equally good"]
    healthy = cluster.healthy.item(node).bit_count()
    words = ["sub-healthy"] * cluster.sub_healthy.item(node)
    words.append(f"{healthy} of {cluster.size.item(node)} chips healthy")
    terms = rank_terms(request.row, rank)
    return words + [term_words(request, t, terms[t]) for t in request.row.rank_by]


def term_words(request: Request, term: Term, value: int) -> str:
    """One term of a rank."""
    row, group = request.row, request.product.group
    if term is Term.HOLDER:
        return _holder_words(request, value)
    if term in {Term.LEFT, Term.WHOLE}:
        what = "free chip" if term is Term.LEFT else f"whole free {group}"
        return f"{counted(value, what)} left over"
    if row.halves:
        if term is Term.SPARE:
            return f"{counted(value, 'pair')} left over"
        facing = "pairs that face each other" if row.aligned else "equal halves"
        return "equal halves that do not face each other" if value else facing
    if term is Term.SPARE:
        return f"{counted(value, f'other {group}')} could serve it too"
    order = ", ".join(map(str, row.first))
    return f"{group} with {row.first[value]} free (order {order})"


def _holder_words(request: Request, value: int) -> str:
    """The group that holds the whole request, or that none does."""
    row, group = request.row, request.product.group
    holding = [n for n in row.first if n >= row.asked]
    if value >= len(holding):
        return f"no {group} holds it"
    return f"{group} with {holding[value]} free (order {', '.join(map(str, holding))})"


SAME_EVERYWHERE: Final[Mapping[Reason, str]] = {
    Reason.NOT_READY: "the node is not ready and takes no pods",
    Reason.CORDONED: "the node is cordoned and takes no new pods",
    Reason.QUARANTINED: "the node refused a pod and is quarantined for a while",
    Reason.NOT_WELL: "the node is sub-healthy, and the job avoids such nodes",
    Reason.NOT_SELECTED: "the node lacks labels that the job selects",
    Reason.REFUSED: "a plugin refuses the node for this job",
    Reason.NO_TOPOLOGY: "a job with tor-affinity needs a leaf switch, "
    "the node is under none",
    Reason.FAILED_BEFORE: "the job ran here and failed; its pods go to other nodes",
    Reason.OWN_POD: "a pod of this job is here; under a network rule a node holds one",
}
"""Refusals that need no figures."""


def refusal_words(  # noqa: PLR0911 - one sentence per reason
    cluster: Cluster, request: Request, node: int, reason: Reason
) -> str:
    """The one rule that refuses a node: wanted against found."""
    if reason in SAME_EVERYWHERE:
        return SAME_EVERYWHERE[reason]
    if reason in _OF_THE_NODE:
        return _OF_THE_NODE[reason](cluster, request, node)
    product, asked = request.product, request.row.asked
    size = cluster.size.item(node)
    within = allowed_chips(cluster, request).item(node)
    usable = cluster.free.item(node) & within
    free = "free" if usable == cluster.free.item(node) else "usable"
    groups = ", ".join(map(str, groups_free(request, usable, size)))
    need = need_words(request)
    match reason:
        case Reason.OTHER_PRODUCT:
            found = cluster.product_of(node).key
            return f"the job needs {product.key}, the node is {found}"
        case Reason.NO_SUPERPOD:
            return "the job is placed in SuperPoDs, the node is in none"
        case Reason.TOO_SMALL:
            return f"a pod needs {need}, the node has {counted(size, 'chip')} in all"
        case Reason.FAULTY_CHIPS:
            faulty = full_mask(size) & ~cluster.healthy.item(node)
            return (
                f"a pod needs {need}, which the node cannot give even when empty: "
                f"faulty {_chips(faulty)}"
            )
        case Reason.NETWORK_FAULTY:
            faulty = cluster.healthy.item(node) & ~within
            return (
                f"a pod of a job of several pods needs {need} with a healthy network: "
                f"network-faulty {_chips(faulty)}"
            )
        case Reason.TOO_FEW_CHIPS:
            has = counted(usable.bit_count(), f"{free} chip")
            return f"a pod needs {need}, the node has {has}"
        case _:
            assert reason is Reason.NOT_WIRED_TOGETHER
            return (
                f"a pod needs {need}; of the node's {usable.bit_count()} {free} chips "
                f"its {plural(product.group)} have {groups}, "
                f"so no {asked} are wired together"
            )


def _short_words(cluster: Cluster, request: Request, node: int) -> str:
    """The first resource of which the node has too little."""
    table = cluster.node_table
    name, amount, room = next(
        (name, amount, table.resources.room_of(node, name))
        for name, amount in request.demand.resources
        if table.resources.room_of(node, name) < amount
    )
    return (
        f"a pod needs {amount_words(amount)} {name}, the node has {amount_words(room)}"
    )


def _taint_words(cluster: Cluster, request: Request, node: int) -> str:
    taint = cluster.node_table.taints.worst_taint(node, request.demand.tolerations)
    return f"the job does not tolerate the taint {taint}"


def _closed_words(cluster: Cluster, _request: Request, node: int) -> str:
    """Why the leaf of *node* is closed, and the jobs that cross it."""
    leaf = cluster.leaf.item(node)
    jobs = cluster.uplinks.jobs_crossing(leaf)
    closed = f"leaf {cluster.leaves[leaf].name} is closed to this job"
    if cluster.uplinks.unhealthy.item(leaf):
        return f"{closed}: it is unhealthy"
    named = some_of(map(repr, jobs), MAX_NAMES) if jobs else "another job"
    verb = "cross" if len(jobs) > 1 else "crosses"
    return f"{closed}: {named} {verb} it, and a second job may not cross it too"


_OF_THE_NODE: Final[Mapping[Reason, Callable[[Cluster, Request, int], str]]] = {
    Reason.TAINTED: _taint_words,
    Reason.TOO_FEW_RESOURCES: _short_words,
    Reason.LEAF_CLOSED: _closed_words,
}


def _chips(mask: int) -> str:
    chips = chips_of(mask)
    return f"chip{'s' * (len(chips) != 1)} {', '.join(map(str, chips))}"
