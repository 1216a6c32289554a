"""Which product a node is, and which product a job asks for.

Both sides must name the same row of the catalogue, or a job waits beside nodes that
were meant for it. Where labels cannot tell two products apart (``a200t-a3-box8`` and
``atlas-800t-a3`` carry one node label), both sides name the one that ``SAME_NODES``
has for them, and the job says which others it may be of (``alike``).

Source: how the vendor's scheduler finds the handler of a job, first match wins:
annotation ``huawei.com/schedule_policy``, annotation ``sp-block``, node selector
``accelerator-type``; for inference cards the labels ``npu-310-strategy`` and ``duo``.
Where we differ: words that the vendor passes over (a policy or strategy it does not
know) are refused where nothing else names the product.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NoReturn

from ringleaf.kube import names
from ringleaf.kube.demand import BadPod
from ringleaf.kube.objects import NodeObject
from ringleaf.model.demand import Requirement
from ringleaf.model.product import Product
from ringleaf.model.spelling import did_you_mean
from ringleaf.model.topology import quoted
from ringleaf.policies.products import (
    ASCEND_310,
    ASCEND_310P,
    ASCEND_910,
    NO_NPU,
    NPU,
    PRODUCTS,
)

POLICY: Final = names.POLICY
BLOCK: Final = names.SP_BLOCK
STRATEGY: Final = names.STRATEGY
DUO: Final = names.DUO
TYPE: Final = names.ACCELERATOR_TYPE
CARD_TYPE: Final = "infer-card-type"
DUO_CARD: Final = "card-300i-duo"
DEVICES: Final = "baseDeviceInfos"

SAME_NODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "a200t-a3-box8": "atlas-800t-a3",
        "atlas-800i-a2": "atlas-800t-a2",
        "a200i-a2-box": "atlas-800t-a2",
    }
)
"""Products whose nodes have the ``accelerator-type`` of another, and count as it."""


NODE_LABELS: Final[Mapping[str, Mapping[str, str | None]]] = MappingProxyType(
    {
        "atlas-800t-a2": {"server-usage": None},
        "atlas-800i-a2": {"server-usage": "infer", "host-arch": "huawei-arm"},
        "a200i-a2-box": {"server-usage": "infer", "host-arch": "huawei-x86"},
    }
)
"""Labels that the vendor's guide gives to nodes of these products; None for no such."""


def alike(product: Product, required: Iterable[Requirement] = ()) -> tuple[str, ...]:
    """The products that a job of *product* may be of, if there are several.

    *required* are the labels that its nodes must have, which may tell some of them.

    >>> alike(PRODUCTS["atlas-800t-a2"])
    ('atlas-800t-a2', 'atlas-800i-a2', 'a200i-a2-box')
    >>> from ringleaf.model.demand import Operator
    >>> infer = Requirement("server-usage", Operator.IN, ("infer",))
    >>> alike(PRODUCTS["atlas-800t-a2"], [infer])
    ('atlas-800i-a2', 'a200i-a2-box')
    """
    same = [key for key, other in SAME_NODES.items() if other == product.key]
    if not same:
        return ()
    every, wanted = (product.key, *same), list(required)
    fitting = tuple(key for key in every if _accept(wanted, NODE_LABELS.get(key, {})))
    return fitting or every


def _accept(wanted: list[Requirement], labels: Mapping[str, str | None]) -> bool:
    return all(each.accepts(labels[each.key]) for each in wanted if each.key in labels)


NOT_PLACED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "chip1-node8": "Atlas 350 without links",
        "chip1-node16": "Atlas 350 without links",
        "chip8-node8-sp": "Atlas 850 SuperPoD",
        "chip8-node8-ra64-sp": "Atlas 950 SuperPoD",
        "chip1-softShareDev": "parts of chips",
        "multilevel": "a tree of networks",
    }
)
"""Policies of the vendor that Ringleaf does not have, and what they are for."""

DEFAULT_TYPE: Final = "module"
"""What the vendor reads where nothing is said of the type."""

_FAMILIES: Final = (ASCEND_910, ASCEND_310, ASCEND_310P, NPU)
_PREFIX: Final[Mapping[str, str]] = MappingProxyType(dict(_FAMILIES))
"""Resource -> what its chips are called."""

_VIRTUAL: Final = re.compile(r"huawei\.com/(?:npu-core|(Ascend910|Ascend310P)-.+)")


def _by_word(words: str) -> Mapping[tuple[str, str], Product]:
    """(Resource, word of the selector) -> the product it means."""
    found: dict[tuple[str, str], Product] = {}
    for product in PRODUCTS.values():
        meant = PRODUCTS[SAME_NODES.get(product.key, product.key)]
        for word in getattr(product.selector, words):
            known = found.setdefault((product.resource, word), meant)
            assert known is meant, f"{word} means two products"
    return MappingProxyType(found)


BY_POLICY: Final = _by_word("schedule_policy")
BY_TYPE: Final = _by_word("accelerator_type")


def is_npu(resource: str) -> bool:
    """Whether *resource* counts chips or parts of them.

    >>> [is_npu(f"huawei.com/{n}") for n in ("npu", "Ascend310P-4c", "rdma")]
    [True, True, False]
    """
    return resource in _PREFIX or _VIRTUAL.fullmatch(resource) is not None


def product_of_node(node: NodeObject, prefix: str | None = None) -> Product | None:
    """The product of a node; None where it has chips of no product we know.

    *prefix* is what its chips are called, if they are listed. A node without chips is
    ``NO_NPU``.
    """
    labels = node.metadata.labels or {}
    status = node.status
    resources = [*(status.allocatable or ()), *(status.capacity or ())]
    prefix = prefix or next(_prefixes(resources), None)
    if prefix is None:
        if DEVICES not in (node.metadata.annotations or {}):
            return NO_NPU
        prefix = labels.get("accelerator", "").partition("-")[2]
    resource = f"huawei.com/{prefix}"
    if resource == ASCEND_310[0]:
        return PRODUCTS["atlas-300i"]
    if resource == ASCEND_310P[0]:
        duo = labels.get(CARD_TYPE) == DUO_CARD
        return PRODUCTS["atlas-300i-duo" if duo else "atlas-310p"]
    return _of_type(resource, labels.get(TYPE))


def _prefixes(resources: Iterable[str]) -> Iterator[str]:
    """What chips are called that are counted by *resources*, whole chips first."""
    listed = list(resources)
    yield from (_PREFIX[name] for name in listed if name in _PREFIX)
    parts = (_VIRTUAL.fullmatch(name) for name in listed)
    yield from (found[1] for found in parts if found and found[1])


def _of_type(resource: str, given: str | None) -> Product | None:
    """The product of an ``accelerator-type``; only training cards have a default."""
    if resource == ASCEND_910[0]:
        given = given or DEFAULT_TYPE
        given = "card" if "card" in given else given
    return BY_TYPE.get((resource, given or ""))


def wanted_product(
    traits: Mapping[str, str], node_selector: Mapping[str, str], resource: str
) -> Product:
    """The product that a job asks for whose pods ask for *resource*.

    *traits* are the labels and annotations of the job. Raises ``BadPod``.
    """
    if resource not in _PREFIX:
        if is_npu(resource):
            raise BadPod(
                f"{quoted(resource)} is a part of a chip, which is not placed",
                "ask for whole chips",
            )
        raise BadPod(f"{quoted(resource)} counts no chips, want {_either(_PREFIX)}")
    if resource == ASCEND_310[0]:
        _strategy(traits)
        return PRODUCTS["atlas-300i"]
    if resource == ASCEND_310P[0]:
        if traits.get(DUO) != "true":
            return PRODUCTS["atlas-310p"]
        _strategy(traits)
        return PRODUCTS["atlas-300i-duo"]
    return _of_policy(traits, node_selector.get(TYPE), resource)


def _strategy(traits: Mapping[str, str]) -> None:
    """Refuse strategies that there are not."""
    given = traits.get(STRATEGY, "chip")
    if given not in ("card", "chip"):
        raise BadPod(f"label {STRATEGY} is {quoted(given)}, want card or chip")


def _of_policy(
    traits: Mapping[str, str], given_type: str | None, resource: str
) -> Product:
    policy = traits.get(POLICY)
    if policy is not None:
        if policy in NOT_PLACED:
            raise BadPod(
                f"annotation {POLICY} is {quoted(policy)}, for {NOT_PLACED[policy]}, "
                "which is not placed",
                "ringleaf products lists them",
            )
        if product := BY_POLICY.get((resource, policy)):
            return product
    elsewhere = policy in {word for _resource, word in BY_POLICY}
    alone = policy is not None and given_type is None and BLOCK not in traits
    if resource == NPU[0] or elsewhere or alone:
        _refuse_policy(policy, resource)
    if BLOCK in traits and given_type is None:
        return PRODUCTS["atlas-900-a3"]
    if product := _of_type(resource, given_type):
        return product
    known = [word for own, word in BY_TYPE if own == resource]
    raise BadPod(
        f"nodeSelector {TYPE} is {quoted(given_type or '')}, want {_either(known)}",
        _closest(given_type or "", known),
    )


def _refuse_policy(policy: str | None, resource: str) -> NoReturn:
    known = [word for own, word in BY_POLICY if own == resource]
    found = "missing" if policy is None else quoted(policy)
    raise BadPod(
        f"annotation {POLICY} is {found}, want {_either(known)} for {resource}",
        _closest(policy or "", known),
    )


LIKE: Final = 0.8
"""How like a name must be to be meant: module-999 is not module."""


def _either(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}"


def _closest(given: str, known: list[str]) -> str:
    return did_you_mean(given, known, LIKE) or "ringleaf products NAME"
