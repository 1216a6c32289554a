"""Numbers and names in sentences."""

from collections.abc import Iterable

from ringleaf.policies.fit import NO_CHIPS, Request


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
