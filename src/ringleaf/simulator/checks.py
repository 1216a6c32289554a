"""Checks that several parts of a scenario share; each raises one ``BadInput``."""

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final, NoReturn

from ringleaf.model.product import Product
from ringleaf.model.spelling import did_you_mean
from ringleaf.policies.products import find_product, similar_product
from ringleaf.policies.words import some_of
from ringleaf.simulator.source import BadInput, brief
from ringleaf.simulator.wanted import WANTED

MAX_NAME: Final = 253
MAX_RANKS: Final = 8
"""Ranks that are told one by one."""


def known_product(path: str, name: str) -> Product:
    """The product called *name*."""
    product = find_product(name)
    if product is None:
        hint = similar_product(name)
        raise BadInput(f"{path} is {brief(name)}, want {WANTED['product']}", hint)
    return product


def good_name(path: str, name: str) -> str:
    """*name*, if people can read it."""
    if not (name and name.isprintable() and len(name) <= MAX_NAME):
        want = f"1 to {MAX_NAME} printable characters"
        raise BadInput(f"{path} is {brief(name)}, want {want}")
    return name


def new_name(path: str, name: str, taken: Iterable[str]) -> None:
    """Refuse the name of a job that another one has."""
    good_name(f"{path}.name", name)
    if name in taken:
        raise BadInput(f"{path}.name is {brief(name)}, already the name of a job")


def good_chips(path: str, listed: Iterable[int], n_chips: int) -> None:
    """Refuse chips that the node does not have."""
    for i, chip in enumerate(listed):
        if chip >= n_chips:
            want = f"a chip from 0 to {n_chips - 1}" if n_chips else "no chips"
            raise BadInput(f"{path}[{i}] is {chip}, want {want}")


def rank_words(ranks: Collection[int]) -> str:
    """The ranks of the pods of a job, for people.

    >>> rank_words([0]), rank_words(range(8)), rank_words([5, 0, 2])
    ('0', '0 to 7', '0, 2, 5')
    """
    listed = sorted(ranks)
    last = len(listed) - 1
    if last > 0 and listed[-1] == last:
        return f"0 to {last}"
    return some_of(map(str, listed), MAX_RANKS)


def unknown_node(path: str, name: str, nodes: Iterable[str]) -> NoReturn:
    """Refuse the name of a node that there is not."""
    some = islice(nodes, 100)  # slow where many
    hint = did_you_mean(name, some) or "nodes are listed under nodes"
    raise BadInput(f"{path} is {brief(name)}, want the name of a node", hint)
