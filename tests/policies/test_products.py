"""The catalogue against a copy of it that was written out by hand."""

from collections.abc import Mapping
from itertools import combinations
from typing import Final

import msgspec
import pytest

from ringleaf.model.job import Job
from ringleaf.model.job_labels import Strategy
from ringleaf.model.product import LabelSelector, Product, ProductMode
from ringleaf.policies.products import (
    A2_SELECTOR,
    NO_NPU,
    PRODUCTS,
    find_product,
    misfit,
    mode_of,
    rule_for,
    similar_product,
)
from tests.chips import a_job

A3_REQUESTS: Final = {1, 2, 4, 6, 8, 10, 12, 14, 16}
BOX16_REQUESTS: Final = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16}
UP_TO_8: Final = {1, 2, 3, 4, 5, 6, 7, 8}
UP_TO_16: Final = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
UP_TO_64: Final = set(range(1, 65))


class Row(msgspec.Struct, frozen=True):
    """Every column of one product; what a row leaves out has the usual value."""

    key: str
    title: str
    chips: int
    width: int
    group: str
    wiring: str
    requests: Mapping[str, set[int]]
    resource: str
    chip_prefix: str
    selector: LabelSelector
    source: str
    other_names: tuple[str, ...] = ()
    sized: bool = False
    alone: frozenset[int] = frozenset()
    alone_is_strict_only: bool = False
    one_pod_when_distributed: bool = False
    heeds_network: bool = True
    superpod: bool = False
    blocks: bool = False
    switch_modes: tuple[str, ...] = ()


CATALOGUE: Final = (
    Row(
        key="atlas-800-9000",
        title="Atlas 800 training server (model 9000)",
        other_names=(
            "Atlas 800 training server (model 9010)",
            "atlas-800-9010",
            "model 9000",
            "model 9010",
            "Atlas training product",
        ),
        chips=8,
        width=4,
        group="ring",
        wiring="2 HCCS rings of 4, PCIe between rings",
        requests={"any": {1, 2, 4, 8}},
        alone=frozenset({1, 2, 4}),
        alone_is_strict_only=True,
        switch_modes=("1.0",),
        resource="huawei.com/Ascend910",
        chip_prefix="Ascend910",
        selector=LabelSelector(
            accelerator_type=("module",),
            schedule_policy=("chip4-node8",),
            ring_controller="ascend-910",
        ),
        source="affinity table 1, row 1; Ascend 910 guide",
    ),
    Row(
        key="atlas-800-9000-half",
        title="Atlas 800 training server, half populated",
        chips=4,
        width=4,
        group="ring",
        wiring="1 HCCS ring of 4",
        requests={"any": {1, 2, 4}},
        switch_modes=("1.0",),
        resource="huawei.com/Ascend910",
        chip_prefix="Ascend910",
        selector=LabelSelector(
            accelerator_type=("half",),
            schedule_policy=("chip4-node4",),
            ring_controller="ascend-910",
        ),
        source="vendor handler half910x4",
    ),
    Row(
        key="atlas-300t",
        title="server with Atlas 300T training cards",
        chips=2,
        width=2,
        group="node",
        wiring="2 cards on PCIe",
        requests={"any": {1, 2}},
        heeds_network=False,
        switch_modes=("1.0",),
        resource="huawei.com/Ascend910",
        chip_prefix="Ascend910",
        selector=LabelSelector(
            accelerator_type=("card",),
            schedule_policy=("chip1-node2",),
            ring_controller="ascend-910",
        ),
        source="vendor handler card910x2",
    ),
    Row(
        key="atlas-800t-a2",
        title="Atlas 800T A2 training server",
        chips=8,
        width=8,
        group="mesh",
        wiring="1 HCCS full mesh of 8",
        requests={"any": UP_TO_8},
        switch_modes=("1.0", "2.0"),
        resource="huawei.com/Ascend910",
        chip_prefix="Ascend910",
        selector=LabelSelector(
            accelerator_type=("module-910b-8",),
            schedule_policy=("chip8-node8",),
            ring_controller="ascend-910b",
        ),
        source="common node selection principle, affScoreList",
    ),
    Row(
        key="atlas-800i-a2",
        title="Atlas 800I A2 inference server",
        chips=8,
        width=8,
        group="mesh",
        wiring="1 HCCS full mesh of 8",
        requests={"any": UP_TO_8},
        switch_modes=("single-layer",),
        resource="huawei.com/Ascend910",
        chip_prefix="Ascend910",
        selector=LabelSelector(
            accelerator_type=("module-910b-8",),
            schedule_policy=("chip8-node8",),
            ring_controller="ascend-910b",
        ),
        source="common node selection principle; solution description, single-layer",
    ),
    Row(
        key="a200i-a2-box",
        title="A200I A2 Box heterogeneous component",
        chips=8,
        width=8,
        group="mesh",
        wiring="1 HCCS full mesh of 8",
        requests={"any": UP_TO_8},
        switch_modes=("single-layer",),
        resource="huawei.com/Ascend910",
        chip_prefix="Ascend910",
        selector=LabelSelector(
            accelerator_type=("module-910b-8",),
            schedule_policy=("chip8-node8",),
            ring_controller="ascend-910b",
        ),
        source="common node selection principle; solution description, single-layer",
    ),
    Row(
        key="atlas-200t-a2-box16",
        title="Atlas 200T A2 Box16 heterogeneous subrack",
        other_names=(
            "Atlas 200I A2 Box16 heterogeneous subrack",
            "atlas-200i-a2-box16",
        ),
        chips=16,
        width=8,
        group="ring",
        wiring="2 HCCS rings of 8, PCIe between rings",
        requests={"any": BOX16_REQUESTS, "several": BOX16_REQUESTS},
        switch_modes=("1.0", "2.0"),
        resource="huawei.com/Ascend910",
        chip_prefix="Ascend910",
        selector=LabelSelector(
            accelerator_type=("module-910b-16",),
            schedule_policy=("chip8-node16",),
            ring_controller="ascend-910b",
        ),
        source="affinity table 1, row 2",
    ),
    Row(
        key="atlas-800t-a3",
        title="Atlas 800T A3 SuperPoD Server",
        other_names=("Atlas 800I A3 SuperPoD Server", "atlas-800i-a3"),
        chips=16,
        width=2,
        group="module",
        wiring="8 HiAM modules of 2, HCCS between modules",
        requests={"any": A3_REQUESTS},
        alone=frozenset({1}),
        blocks=True,
        resource="huawei.com/Ascend910",
        chip_prefix="Ascend910",
        selector=LabelSelector(
            accelerator_type=("module-a3-16",),
            schedule_policy=("chip2-node16", "module-a3-16"),
            ring_controller="ascend-910b",
        ),
        source="affinity table 1, row 3",
    ),
    Row(
        key="atlas-900-a3",
        title="Atlas 900 A3 SuperPoD",
        chips=16,
        width=2,
        group="module",
        wiring="8 HiAM modules of 2, in a SuperPoD",
        requests={"any": A3_REQUESTS},
        alone=frozenset({1, 2, 4, 6, 8, 10, 12, 14}),
        superpod=True,
        blocks=True,
        resource="huawei.com/Ascend910",
        chip_prefix="Ascend910",
        selector=LabelSelector(
            accelerator_type=("module-a3-16-super-pod",),
            schedule_policy=("chip2-node16-sp",),
            ring_controller="ascend-910b",
        ),
        source="affinity table 1, row 3",
    ),
    Row(
        key="a200t-a3-box8",
        title="A200T A3 Box8 SuperPoD Server",
        chips=16,
        width=2,
        group="module",
        wiring="8 HiAM modules of 2, HCCS between modules",
        requests={"any": A3_REQUESTS},
        alone=frozenset({1}),
        blocks=True,
        resource="huawei.com/Ascend910",
        chip_prefix="Ascend910",
        selector=LabelSelector(
            accelerator_type=("module-a3-16",),
            schedule_policy=("chip2-node8",),
            ring_controller="ascend-910b",
        ),
        source="affinity table 1, row 3",
    ),
    Row(
        key="atlas-9000-a3",
        title="Atlas 9000 A3 SuperPoD",
        chips=8,
        width=2,
        group="module",
        wiring="4 HiAM modules of 2, in a SuperPoD",
        requests={"any": {1, 2, 4, 6, 8}},
        alone=frozenset({1, 2, 4, 6}),
        superpod=True,
        blocks=True,
        resource="huawei.com/Ascend910",
        chip_prefix="Ascend910",
        selector=LabelSelector(
            accelerator_type=("module-a3-8-super-pod",),
            schedule_policy=("chip2-node8-sp",),
            ring_controller="ascend-910b",
        ),
        source="vendor handler superpod-a3x8",
    ),
    Row(
        key="atlas-300i",
        title=(
            "Atlas 800 inference server (model 3000) (with Atlas 300I inference cards)"
        ),
        other_names=("Atlas 300I inference card",),
        chips=64,
        sized=True,
        width=4,
        group="card",
        wiring="cards of 4, no links between cards",
        requests={"card": {1, 2, 3, 4}, "chip": UP_TO_64, "unlabelled": UP_TO_64},
        heeds_network=False,
        resource="huawei.com/Ascend310",
        chip_prefix="Ascend310",
        selector=LabelSelector(
            npu_310_strategy=("card", "chip"), ring_controller="ascend-310"
        ),
        source="affinity table 1, row 4",
    ),
    Row(
        key="atlas-300i-duo",
        title=(
            "Atlas 800 inference server (model 3000) "
            "(with Atlas 300I Duo inference cards)"
        ),
        other_names=("Atlas 300I Duo inference card",),
        chips=32,
        sized=True,
        width=2,
        group="card",
        wiring="cards of 2 on HCCS, PCIe between cards",
        requests={"card": {1, 2}, "chip": UP_TO_16, "distributed": UP_TO_16},
        one_pod_when_distributed=True,
        heeds_network=False,
        resource="huawei.com/Ascend310P",
        chip_prefix="Ascend310P",
        selector=LabelSelector(
            npu_310_strategy=("card", "chip"),
            duo="true",
            distributed=("true", "false"),
            ring_controller="ascend-310P",
        ),
        source="affinity table 1, row 5",
    ),
    Row(
        key="atlas-310p",
        title="server with other Ascend 310P cards",
        chips=64,
        sized=True,
        width=64,
        group="node",
        wiring="no links",
        requests={"any": UP_TO_64},
        heeds_network=False,
        resource="huawei.com/Ascend310P",
        chip_prefix="Ascend310P",
        selector=LabelSelector(ring_controller="ascend-310P"),
        source="vendor handler base310p",
    ),
    Row(
        key="atlas-350-4p-8",
        title="Atlas 350, 4P meshes, 8 chips",
        chips=8,
        width=4,
        group="mesh",
        wiring="2 meshes of 4",
        requests={"any": UP_TO_8},
        resource="huawei.com/npu",
        chip_prefix="npu",
        selector=LabelSelector(
            accelerator_type=("350-Atlas-4p-8",),
            schedule_policy=("chip4-node8",),
            ring_controller="huawei.com.npu",
        ),
        source="vendor handler chip4-node8",
    ),
    Row(
        key="atlas-350-4p-16",
        title="Atlas 350, 4P meshes, 16 chips",
        chips=16,
        width=4,
        group="mesh",
        wiring="4 meshes of 4",
        requests={"any": UP_TO_16},
        resource="huawei.com/npu",
        chip_prefix="npu",
        selector=LabelSelector(
            accelerator_type=("350-Atlas-4p-16",),
            schedule_policy=("chip4-node16",),
            ring_controller="huawei.com.npu",
        ),
        source="vendor handler chip4-node16",
    ),
)


def columns(product: Product) -> dict[str, object]:
    """Every column of *product*, its rules as the requests they make legal."""
    found = {f.name: getattr(product, f.name) for f in msgspec.structs.fields(product)}
    rules = found.pop("rules")
    return found | {"requests": {str(mode): set(rules[mode]) for mode in rules}}


@pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: row.key)
def test_a_product_is_the_row_that_was_written_out(row: Row) -> None:
    assert columns(PRODUCTS[row.key]) == msgspec.structs.asdict(row)


def test_the_catalogue_is_these_products_in_this_order() -> None:
    assert list(PRODUCTS) == [row.key for row in CATALOGUE]


@pytest.mark.parametrize(
    "key",
    [
        "atlas-800-9000",
        "atlas-800-9000-half",
        "atlas-300t",
        "atlas-800t-a2",
        "atlas-800i-a2",
        "a200i-a2-box",
        "atlas-200t-a2-box16",
        "atlas-800t-a3",
        "atlas-900-a3",
        "a200t-a3-box8",
        "atlas-9000-a3",
        "atlas-300i",
        "atlas-300i-duo",
        "atlas-310p",
        "atlas-350-4p-8",
        "atlas-350-4p-16",
    ],
)
def test_every_product_of_the_vendor_table_has_a_row_under_its_key(key: str) -> None:
    assert PRODUCTS[key].key == key


@pytest.mark.parametrize(
    ("key", "groups"),
    [
        ("atlas-800-9000", 2),
        ("atlas-800-9000-half", 1),
        ("atlas-300t", 1),
        ("atlas-800t-a2", 1),
        ("atlas-800i-a2", 1),
        ("a200i-a2-box", 1),
        ("atlas-200t-a2-box16", 2),
        ("atlas-800t-a3", 8),
        ("atlas-900-a3", 8),
        ("a200t-a3-box8", 8),
        ("atlas-9000-a3", 4),
        ("atlas-300i", 16),
        ("atlas-300i-duo", 16),
        ("atlas-310p", 1),
        ("atlas-350-4p-8", 2),
        ("atlas-350-4p-16", 4),
    ],
)
def test_a_node_has_as_many_groups_as_the_vendor_says(key: str, groups: int) -> None:
    assert PRODUCTS[key].groups == groups


@pytest.mark.parametrize(
    ("name", "key"),
    [
        # Seed 002, table 1.
        ("Atlas training product", "atlas-800-9000"),
        ("Atlas 200T A2 Box16 heterogeneous subrack", "atlas-200t-a2-box16"),
        ("Atlas 200I A2 Box16 heterogeneous subrack", "atlas-200t-a2-box16"),
        ("Atlas 900 A3 SuperPoD", "atlas-900-a3"),
        ("A200T A3 Box8 SuperPoD Server", "a200t-a3-box8"),
        ("Atlas 800I A3 SuperPoD Server", "atlas-800t-a3"),
        ("Atlas 800T A3 SuperPoD Server", "atlas-800t-a3"),
        (
            "Atlas 800 inference server (model 3000) (with Atlas 300I inference cards)",
            "atlas-300i",
        ),
        (
            "atlas 800 inference server model 3000 with atlas 300i duo inference cards",
            "atlas-300i-duo",
        ),
        ("Atlas 300I Duo inference card", "atlas-300i-duo"),
        # Seed 002, products by the network between nodes.
        ("Atlas 800T A2 training server", "atlas-800t-a2"),
        ("Atlas 800I A2 inference server", "atlas-800i-a2"),
        ("A200I A2 Box heterogeneous component", "a200i-a2-box"),
        ("Atlas 800 training server (model 9000)", "atlas-800-9000"),
        ("Atlas 800 training server (model 9010)", "atlas-800-9000"),
        # As people say them.
        ("model 9000", "atlas-800-9000"),
        ("model 9010", "atlas-800-9000"),
        ("atlas-800-9010", "atlas-800-9000"),
        ("800T A2", "atlas-800t-a2"),
        ("800I A2", "atlas-800i-a2"),
        ("A200I A2 Box", "a200i-a2-box"),
        ("200T A2 Box16", "atlas-200t-a2-box16"),
        ("200I A2 Box16", "atlas-200t-a2-box16"),
        ("800T A3", "atlas-800t-a3"),
        ("800I A3", "atlas-800t-a3"),
        ("Atlas 900 A3", "atlas-900-a3"),
        ("A200T A3 Box8", "a200t-a3-box8"),
        ("Atlas 300I", "atlas-300i"),
        ("Atlas 300I Duo", "atlas-300i-duo"),
        ("  ATLAS_800t__a2! ", "atlas-800t-a2"),
    ],
)
def test_every_name_of_the_seeds_finds_its_row(name: str, key: str) -> None:
    found = find_product(name)

    assert found is PRODUCTS[key]


@pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: row.key)
def test_no_name_of_a_product_means_another_one(row: Row) -> None:
    for name in (row.key, row.title, *row.other_names):
        assert find_product(name) is PRODUCTS[row.key]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "atlas",
        "atlas-800",
        "H100",
        "model 3000",
        "atlas-800t-a22",
        "atlas-800t-a2x",
    ],
)
def test_an_unknown_name_finds_nothing(name: str) -> None:
    assert find_product(name) is None


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("atlas-800t-a22", "did you mean 'atlas-800t-a2'?"),
        ("ATLAS-310", "did you mean 'atlas-310p'?"),
        ("box16", "did you mean 'atlas-200t-a2-box16'?"),
        ("800t", "did you mean 'atlas-800t-a2' or 'atlas-800t-a3'?"),
        ("ascend910", "ringleaf products lists them"),
        ("800", "ringleaf products lists them"),
        ("H100", "ringleaf products lists them"),
        ("x" * 1000, "ringleaf products lists them"),
    ],
    ids=[
        "one letter too many",
        "in capitals",
        "a part of one",
        "a part of two",
        "a little like one",
        "a part of many",
        "nothing like it",
        "very long",
    ],
)
def test_an_unknown_name_gets_the_closest_as_a_hint(name: str, hint: str) -> None:
    assert similar_product(name) == hint


def test_no_two_products_share_a_resource_and_a_schedule_policy() -> None:
    """``chip4-node8`` stands for two products; the resource tells them apart.

    Nodes of eight A2 chips are named alike, whatever they are (D40).
    """
    for one, other in combinations(PRODUCTS.values(), 2):
        alike = one.selector == other.selector == A2_SELECTOR
        if one.resource == other.resource and not alike:
            shared = {*one.selector.schedule_policy} & {*other.selector.schedule_policy}
            assert not shared, (one.key, other.key)


def test_products_have_different_keys() -> None:
    assert len({hash(product) for product in PRODUCTS.values()}) == len(PRODUCTS)


@pytest.mark.parametrize(
    ("job", "mode"),
    [
        pytest.param(a_job("atlas-800t-a2", 1), "any", id="one rule for every job"),
        pytest.param(
            a_job("atlas-800t-a2", 1, pods=2), "any", id="one rule for several pods"
        ),
        pytest.param(
            a_job("atlas-800t-a2", 1, strategy="card", distributed=True),
            "any",
            id="strategy and distributed mean nothing without cards",
        ),
        pytest.param(a_job("atlas-200t-a2-box16", 10), "any", id="Box16: one pod"),
        pytest.param(
            a_job("atlas-200t-a2-box16", 10, pods=2), "several", id="Box16: two pods"
        ),
        pytest.param(a_job("atlas-300i", 1), "unlabelled", id="300I: no strategy"),
        pytest.param(a_job("atlas-300i", 1, strategy="chip"), "chip", id="300I: chip"),
        pytest.param(a_job("atlas-300i", 1, strategy="card"), "card", id="300I: card"),
        pytest.param(
            a_job("atlas-300i", 1, distributed=True),
            "unlabelled",
            id="300I: distributed means nothing",
        ),
        pytest.param(a_job("atlas-300i-duo", 1), "chip", id="Duo: chip by default"),
        pytest.param(
            a_job("atlas-300i-duo", 1, pods=3), "chip", id="Duo: several pods, chip"
        ),
        pytest.param(
            a_job("atlas-300i-duo", 1, strategy="card"), "card", id="Duo: card"
        ),
        pytest.param(
            a_job("atlas-300i-duo", 1, distributed=True),
            "distributed",
            id="Duo: distributed",
        ),
        pytest.param(
            a_job("atlas-300i-duo", 1, strategy="card", distributed=True),
            "card",
            id="Duo: card before distributed",
        ),
    ],
)
def test_the_mode_of_a_job(job: Job, mode: str) -> None:
    assert mode_of(job) is ProductMode(mode)
    assert rule_for(job) is job.product.rules[ProductMode(mode)]


def test_strategies_are_the_two_words_of_the_label() -> None:
    assert [str(strategy) for strategy in Strategy] == ["card", "chip"]


def test_misfit_is_the_place_in_the_walk_and_the_width_means_never() -> None:
    row = PRODUCTS["atlas-800-9000"].rules[ProductMode.ANY][1]

    assert [misfit(row, free) for free in range(5)] == [4, 0, 2, 1, 3]


def test_a_node_without_npus_is_found_by_name_and_not_in_the_catalogue() -> None:
    assert find_product("no-npu") is NO_NPU
    assert find_product("node without NPUs") is NO_NPU
    assert NO_NPU.key not in PRODUCTS
    assert (NO_NPU.chips, NO_NPU.groups) == (0, 0)
    assert not any(NO_NPU.rules.values())
