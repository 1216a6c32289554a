"""The catalogue: every node model we know, as one table. A new product is a new row.

Sources: the affinity guide's table 1 for the wiring, the Ascend 910 guide for model
9000, the vendor's handlers for what the guides leave out. Where they disagree the
decisions of docs/decisions.md hold.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from ringleaf.model.job import Job
from ringleaf.model.job_labels import Strategy
from ringleaf.model.product import LabelSelector, Product, ProductMode, Row, Rule
from ringleaf.model.settings import SwitchMode
from ringleaf.model.spelling import did_you_mean
from ringleaf.policies.rules import (
    CARD_OF_4,
    HALF_NODE,
    LEFT,
    PAIR,
    POSITION,
    RING_OF_4,
    WHOLE_CARDS,
    WHOLE_CARDS_THEN_HALVES,
    box16_rule,
    duo_rule,
    flat_rule,
    leftovers_rule,
    mesh_rule,
    module_rule,
    one_card_rule,
    table_rule,
)

ASCEND_910: Final = ("huawei.com/Ascend910", "Ascend910")
ASCEND_310: Final = ("huawei.com/Ascend310", "Ascend310")
ASCEND_310P: Final = ("huawei.com/Ascend310P", "Ascend310P")
NPU: Final = ("huawei.com/npu", "npu")

SPINE_LEAF_1: Final = SwitchMode.SPINE_LEAF_1
SPINE_LEAF_2: Final = SwitchMode.SPINE_LEAF_2
SINGLE_LAYER: Final = SwitchMode.SINGLE_LAYER

FRAMEWORKS: Final[Mapping[SwitchMode, tuple[str, ...]]] = MappingProxyType(
    {SPINE_LEAF_1: ("pytorch", "mindspore"), SPINE_LEAF_2: ("pytorch",)}
)
"""Switch affinity -> the frameworks for which the vendor names it (D40).

Source: solution description. Of single-layer it names none.
"""

A2_SELECTOR: Final = LabelSelector(
    accelerator_type=("module-910b-8",),
    schedule_policy=("chip8-node8",),
    ring_controller="ascend-910b",
)
"""Jobs name all nodes of eight A2 chips alike."""

EVEN_UP_TO_14: Final = frozenset({2, 4, 6, 8, 10, 12, 14})


def _row(
    key: str,
    title: str,
    *other_names: str,
    wired: tuple[int, int, str, str],
    rules: Mapping[ProductMode, Rule],
    counted_as: tuple[str, str],
    selector: LabelSelector,
    source: str,
    **more: Any,  # noqa: ANN401 - further fields of the product
) -> Product:
    """A product that is *wired* in groups: chips, chips of a group, name, words."""
    chips, width, group, wiring = wired
    resource, chip_prefix = counted_as
    return Product(
        key=key,
        title=title,
        other_names=other_names,
        chips=chips,
        width=width,
        group=group,
        wiring=wiring,
        rules=MappingProxyType(dict(rules)),
        resource=resource,
        chip_prefix=chip_prefix,
        selector=selector,
        source=source,
        **more,
    )


_ROWS: Final = (
    _row(
        "atlas-800-9000",
        "Atlas 800 training server (model 9000)",
        "Atlas 800 training server (model 9010)",
        "atlas-800-9010",
        "model 9000",
        "model 9010",
        "Atlas training product",
        wired=(8, 4, "ring", "2 HCCS rings of 4, PCIe between rings"),
        rules={ProductMode.ANY: table_rule(RING_OF_4, 4, POSITION, LEFT)},
        # Above 8 chips a job is whole nodes; below, one pod (decision D1).
        alone=frozenset({1, 2, 4}),
        alone_is_strict_only=True,
        switch_modes=(SPINE_LEAF_1,),
        counted_as=ASCEND_910,
        selector=LabelSelector(
            accelerator_type=("module",),
            schedule_policy=("chip4-node8",),
            ring_controller="ascend-910",
        ),
        source="affinity table 1, row 1; Ascend 910 guide",
    ),
    _row(
        "atlas-800-9000-half",
        "Atlas 800 training server, half populated",
        wired=(4, 4, "ring", "1 HCCS ring of 4"),
        rules={ProductMode.ANY: table_rule(HALF_NODE, 4, LEFT)},
        switch_modes=(SPINE_LEAF_1,),
        counted_as=ASCEND_910,
        selector=LabelSelector(
            accelerator_type=("half",),
            schedule_policy=("chip4-node4",),
            ring_controller="ascend-910",
        ),
        source="vendor handler half910x4",
    ),
    _row(
        "atlas-300t",
        "server with Atlas 300T training cards",
        wired=(2, 2, "node", "2 cards on PCIe"),
        rules={ProductMode.ANY: table_rule(PAIR, 2, LEFT)},
        heeds_network=False,
        switch_modes=(SPINE_LEAF_1,),
        counted_as=ASCEND_910,
        selector=LabelSelector(
            accelerator_type=("card",),
            schedule_policy=("chip1-node2",),
            ring_controller="ascend-910",
        ),
        source="vendor handler card910x2",
    ),
    _row(
        "atlas-800t-a2",
        "Atlas 800T A2 training server",
        wired=(8, 8, "mesh", "1 HCCS full mesh of 8"),
        rules={ProductMode.ANY: flat_rule(8)},
        switch_modes=(SPINE_LEAF_1, SPINE_LEAF_2),
        counted_as=ASCEND_910,
        selector=A2_SELECTOR,
        source="common node selection principle, affScoreList",
    ),
    # Wired like the 800T A2; the vendor names another switch affinity for them (D40).
    _row(
        "atlas-800i-a2",
        "Atlas 800I A2 inference server",
        wired=(8, 8, "mesh", "1 HCCS full mesh of 8"),
        rules={ProductMode.ANY: flat_rule(8)},
        switch_modes=(SINGLE_LAYER,),
        counted_as=ASCEND_910,
        selector=A2_SELECTOR,
        source="common node selection principle; solution description, single-layer",
    ),
    _row(
        "a200i-a2-box",
        "A200I A2 Box heterogeneous component",
        wired=(8, 8, "mesh", "1 HCCS full mesh of 8"),
        rules={ProductMode.ANY: flat_rule(8)},
        switch_modes=(SINGLE_LAYER,),
        counted_as=ASCEND_910,
        selector=A2_SELECTOR,
        source="common node selection principle; solution description, single-layer",
    ),
    _row(
        "atlas-200t-a2-box16",
        "Atlas 200T A2 Box16 heterogeneous subrack",
        "Atlas 200I A2 Box16 heterogeneous subrack",
        "atlas-200i-a2-box16",
        wired=(16, 8, "ring", "2 HCCS rings of 8, PCIe between rings"),
        rules={
            ProductMode.ANY: box16_rule(aligned=True),
            ProductMode.SEVERAL: box16_rule(aligned=False),
        },
        switch_modes=(SPINE_LEAF_1, SPINE_LEAF_2),
        counted_as=ASCEND_910,
        selector=LabelSelector(
            accelerator_type=("module-910b-16",),
            schedule_policy=("chip8-node16",),
            ring_controller="ascend-910b",
        ),
        source="affinity table 1, row 2",
    ),
    _row(
        "atlas-800t-a3",
        "Atlas 800T A3 SuperPoD Server",
        "Atlas 800I A3 SuperPoD Server",
        "atlas-800i-a3",
        wired=(16, 2, "module", "8 HiAM modules of 2, HCCS between modules"),
        rules={ProductMode.ANY: module_rule(8)},
        alone=frozenset({1}),
        blocks=True,
        counted_as=ASCEND_910,
        selector=LabelSelector(
            accelerator_type=("module-a3-16",),
            schedule_policy=("chip2-node16", "module-a3-16"),
            ring_controller="ascend-910b",
        ),
        source="affinity table 1, row 3",
    ),
    _row(
        "atlas-900-a3",
        "Atlas 900 A3 SuperPoD",
        wired=(16, 2, "module", "8 HiAM modules of 2, in a SuperPoD"),
        rules={ProductMode.ANY: module_rule(8)},
        # Pods of a job that spans nodes take whole nodes.
        alone=EVEN_UP_TO_14 | {1},
        superpod=True,
        blocks=True,
        counted_as=ASCEND_910,
        selector=LabelSelector(
            accelerator_type=("module-a3-16-super-pod",),
            schedule_policy=("chip2-node16-sp",),
            ring_controller="ascend-910b",
        ),
        source="affinity table 1, row 3",
    ),
    _row(
        "a200t-a3-box8",
        "A200T A3 Box8 SuperPoD Server",
        wired=(16, 2, "module", "8 HiAM modules of 2, HCCS between modules"),
        rules={ProductMode.ANY: module_rule(8)},
        alone=frozenset({1}),
        blocks=True,
        counted_as=ASCEND_910,
        selector=LabelSelector(
            accelerator_type=("module-a3-16",),
            schedule_policy=("chip2-node8",),
            ring_controller="ascend-910b",
        ),
        source="affinity table 1, row 3",
    ),
    _row(
        "atlas-9000-a3",
        "Atlas 9000 A3 SuperPoD",
        wired=(8, 2, "module", "4 HiAM modules of 2, in a SuperPoD"),
        rules={ProductMode.ANY: module_rule(4)},
        alone=frozenset({1, 2, 4, 6}),
        superpod=True,
        blocks=True,
        counted_as=ASCEND_910,
        selector=LabelSelector(
            accelerator_type=("module-a3-8-super-pod",),
            schedule_policy=("chip2-node8-sp",),
            ring_controller="ascend-910b",
        ),
        source="vendor handler superpod-a3x8",
    ),
    _row(
        "atlas-300i",
        "Atlas 800 inference server (model 3000) (with Atlas 300I inference cards)",
        "Atlas 300I inference card",
        wired=(64, 4, "card", "cards of 4, no links between cards"),
        sized=True,
        rules={
            ProductMode.CARD: table_rule(CARD_OF_4, 4, POSITION, LEFT),
            ProductMode.CHIP: leftovers_rule(64),
            ProductMode.UNLABELLED: one_card_rule(64),
        },
        heeds_network=False,
        counted_as=ASCEND_310,
        selector=LabelSelector(
            npu_310_strategy=("card", "chip"), ring_controller="ascend-310"
        ),
        source="affinity table 1, row 4",
    ),
    _row(
        "atlas-300i-duo",
        "Atlas 800 inference server (model 3000) (with Atlas 300I Duo inference cards)",
        "Atlas 300I Duo inference card",
        wired=(32, 2, "card", "cards of 2 on HCCS, PCIe between cards"),
        sized=True,
        rules={
            ProductMode.CARD: table_rule(PAIR, 2, POSITION, LEFT),
            ProductMode.CHIP: duo_rule(16, WHOLE_CARDS_THEN_HALVES),
            ProductMode.DISTRIBUTED: duo_rule(16, WHOLE_CARDS),
        },
        one_pod_when_distributed=True,
        heeds_network=False,
        counted_as=ASCEND_310P,
        selector=LabelSelector(
            npu_310_strategy=("card", "chip"),
            duo="true",
            distributed=("true", "false"),
            ring_controller="ascend-310P",
        ),
        source="affinity table 1, row 5",
    ),
    _row(
        "atlas-310p",
        "server with other Ascend 310P cards",
        wired=(64, 64, "node", "no links"),
        sized=True,
        rules={ProductMode.ANY: flat_rule(64)},
        heeds_network=False,
        counted_as=ASCEND_310P,
        selector=LabelSelector(ring_controller="ascend-310P"),
        source="vendor handler base310p",
    ),
    _row(
        "atlas-350-4p-8",
        "Atlas 350, 4P meshes, 8 chips",
        wired=(8, 4, "mesh", "2 meshes of 4"),
        rules={ProductMode.ANY: mesh_rule(8)},
        counted_as=NPU,
        selector=LabelSelector(
            accelerator_type=("350-Atlas-4p-8",),
            schedule_policy=("chip4-node8",),
            ring_controller="huawei.com.npu",
        ),
        source="vendor handler chip4-node8",
    ),
    _row(
        "atlas-350-4p-16",
        "Atlas 350, 4P meshes, 16 chips",
        wired=(16, 4, "mesh", "4 meshes of 4"),
        rules={ProductMode.ANY: mesh_rule(16)},
        counted_as=NPU,
        selector=LabelSelector(
            accelerator_type=("350-Atlas-4p-16",),
            schedule_policy=("chip4-node16",),
            ring_controller="huawei.com.npu",
        ),
        source="vendor handler chip4-node16",
    ),
)

NO_NPU: Final = _row(
    "no-npu",
    "node without NPUs",
    wired=(0, 1, "node", "no chips"),
    rules={ProductMode.ANY: MappingProxyType({})},
    heeds_network=False,
    counted_as=("", ""),
    selector=LabelSelector(),
    source="nodes for pods without chips",
)
"""Not in the catalogue: no job asks for it, only pods without chips go there."""

PRODUCTS: Final[Mapping[str, Product]] = MappingProxyType(
    {product.key: product for product in _ROWS}
)


def _plain(name: str) -> str:
    """Letters and digits in lower case, joined by dashes; "Atlas" may be left out."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-").removeprefix("atlas-")


_BY_NAME: Final[Mapping[str, Product]] = MappingProxyType(
    {
        _plain(name): product
        for product in (*_ROWS, NO_NPU)
        for name in (product.key, product.title, *product.other_names)
    }
)


def find_product(name: str) -> Product | None:
    """The row that *name* means, however it is spelled.

    >>> find_product("Atlas 800I A2 inference server").key
    'atlas-800i-a2'
    >>> find_product("model 9010").key
    'atlas-800-9000'
    """
    return _BY_NAME.get(_plain(name))


LIKE: Final = 0.75
"""How like a name must be to be meant."""
PARTIAL: Final = 4
"""Letters of a part of a name that say something."""
MOST_MEANT: Final = 3
"""Products of which a name may be a part to be named in a hint."""


def similar_product(name: str) -> str:
    """A hint for a *name* that no product has."""
    given = name.lower()[:100]
    close = [key for key in PRODUCTS if len(given) >= PARTIAL and given in key]
    if 0 < len(close) <= MOST_MEANT:
        return f"did you mean {' or '.join(map(repr, close))}?"
    like = "" if close else did_you_mean(name, PRODUCTS, LIKE)
    return like or "ringleaf products lists them"


def mode_of(job: Job) -> ProductMode:
    """The mode whose rule applies to *job*."""
    rules = job.product.rules
    if ProductMode.CARD in rules:
        if job.strategy is Strategy.CARD:
            return ProductMode.CARD
        if job.distributed and ProductMode.DISTRIBUTED in rules:
            return ProductMode.DISTRIBUTED
        if job.strategy is None and ProductMode.UNLABELLED in rules:
            return ProductMode.UNLABELLED
        return ProductMode.CHIP
    several = job.submitted > 1 and ProductMode.SEVERAL in rules
    return ProductMode.SEVERAL if several else ProductMode.ANY


def rule_for(job: Job) -> Rule:
    """The rule that applies to *job*."""
    return job.product.rules[mode_of(job)]


def misfit(row: Row, free: int) -> int:
    """How badly a group with *free* free chips suits the request; the width is never.

    >>> row = PRODUCTS["atlas-800t-a2"].rules[ProductMode.ANY][6]
    >>> [misfit(row, free) for free in range(1, 9)]
    [8, 8, 8, 8, 8, 0, 1, 2]
    """
    return row.first.index(free) if free in row.first else row.width
