"""Nodes and jobs name the same products."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.kube.demand import BadPod
from ringleaf.kube.objects import Metadata, NodeObject, NodeStatus
from ringleaf.kube.products import (
    NOT_PLACED,
    SAME_NODES,
    is_npu,
    product_of_node,
    wanted_product,
)
from ringleaf.policies.products import NO_NPU, PRODUCTS

A910 = "huawei.com/Ascend910"
A310 = "huawei.com/Ascend310"
A310P = "huawei.com/Ascend310P"
NPU = "huawei.com/npu"
POLICY = "huawei.com/schedule_policy"
TYPE = "accelerator-type"


def node(
    resource: str = "",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> NodeObject:
    has: dict[str, str | int | float] = {"cpu": "8"}
    if resource:
        has[resource] = "8"
    return NodeObject(
        Metadata("n", labels=labels, annotations=annotations),
        status=NodeStatus(allocatable=has),
    )


def key_of(given: NodeObject, prefix: str | None = None) -> str | None:
    found = product_of_node(given, prefix)
    return None if found is None else found.key


def refusal(traits: dict[str, str], selector: dict[str, str], resource: str) -> str:
    with pytest.raises(BadPod) as refused:
        wanted_product(traits, selector, resource)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(
    ("traits", "selector", "resource", "key"),
    [
        # By policy: the vendor's table.
        ({POLICY: "chip4-node8"}, {}, A910, "atlas-800-9000"),
        ({POLICY: "chip4-node8"}, {}, NPU, "atlas-350-4p-8"),
        ({POLICY: "chip4-node16"}, {}, NPU, "atlas-350-4p-16"),
        ({POLICY: "chip1-node2"}, {}, A910, "atlas-300t"),
        ({POLICY: "chip4-node4"}, {}, A910, "atlas-800-9000-half"),
        ({POLICY: "chip8-node8"}, {}, A910, "atlas-800t-a2"),
        ({POLICY: "chip8-node16"}, {}, A910, "atlas-200t-a2-box16"),
        ({POLICY: "chip2-node16"}, {}, A910, "atlas-800t-a3"),
        ({POLICY: "chip2-node8"}, {}, A910, "atlas-800t-a3"),
        ({POLICY: "module-a3-16"}, {}, A910, "atlas-800t-a3"),
        ({POLICY: "chip2-node16-sp"}, {}, A910, "atlas-900-a3"),
        ({POLICY: "chip2-node8-sp"}, {}, A910, "atlas-9000-a3"),
        # The policy goes before everything else.
        ({POLICY: "chip8-node8"}, {TYPE: "module"}, A910, "atlas-800t-a2"),
        ({POLICY: "chip2-node16", "sp-block": "32"}, {}, A910, "atlas-800t-a3"),
        # A policy nobody knows says nothing where the type does.
        ({POLICY: "mine"}, {TYPE: "module-910b-8"}, A910, "atlas-800t-a2"),
        ({POLICY: "mine", "sp-block": "32"}, {}, A910, "atlas-900-a3"),
        # Blocks.
        ({"sp-block": "32"}, {}, A910, "atlas-900-a3"),
        ({"sp-block": "8"}, {TYPE: "module-a3-8-super-pod"}, A910, "atlas-9000-a3"),
        ({"sp-block": "32"}, {TYPE: "module-a3-16"}, A910, "atlas-800t-a3"),
        ({"sp-block": "32"}, {TYPE: "module-910b-8"}, A910, "atlas-800t-a2"),
        # By type.
        ({}, {}, A910, "atlas-800-9000"),
        ({}, {TYPE: "module"}, A910, "atlas-800-9000"),
        ({}, {TYPE: "half"}, A910, "atlas-800-9000-half"),
        ({}, {TYPE: "card"}, A910, "atlas-300t"),
        ({}, {TYPE: "card-910b-2"}, A910, "atlas-300t"),
        ({}, {TYPE: "module-910b-8"}, A910, "atlas-800t-a2"),
        ({}, {TYPE: "module-910b-16"}, A910, "atlas-200t-a2-box16"),
        ({}, {TYPE: "module-a3-16"}, A910, "atlas-800t-a3"),
        ({}, {TYPE: "module-a3-16-super-pod"}, A910, "atlas-900-a3"),
        ({}, {TYPE: "module-a3-8-super-pod"}, A910, "atlas-9000-a3"),
        # Inference cards.
        ({}, {}, A310, "atlas-300i"),
        ({"npu-310-strategy": "card"}, {TYPE: "module"}, A310, "atlas-300i"),
        ({}, {}, A310P, "atlas-310p"),
        ({"npu-310-strategy": "card"}, {}, A310P, "atlas-310p"),
        ({"npu-310-strategy": "any"}, {}, A310P, "atlas-310p"),
        ({"duo": "false"}, {}, A310P, "atlas-310p"),
        ({"duo": "true"}, {}, A310P, "atlas-300i-duo"),
        ({"duo": "true", "npu-310-strategy": "card"}, {}, A310P, "atlas-300i-duo"),
    ],
)
def test_a_job_names_its_product(
    traits: dict[str, str], selector: dict[str, str], resource: str, key: str
) -> None:
    assert wanted_product(traits, selector, resource).key == key


@pytest.mark.parametrize(
    ("traits", "selector", "resource", "line"),
    [
        (
            {},
            {TYPE: "module-910b-9"},
            A910,
            (
                "nodeSelector accelerator-type is 'module-910b-9', want module, half, "
                "card, module-910b-8, module-910b-16, module-a3-16, "
                "module-a3-16-super-pod or module-a3-8-super-pod; "
                "hint: did you mean 'module-910b-8'?"
            ),
        ),
        (
            {},
            {TYPE: "module-999"},
            A910,
            (
                "nodeSelector accelerator-type is 'module-999', want module, half, "
                "card, module-910b-8, module-910b-16, module-a3-16, "
                "module-a3-16-super-pod or module-a3-8-super-pod; "
                "hint: ringleaf products NAME"
            ),
        ),
        (
            {POLICY: "chip8-nod8"},
            {},
            A910,
            (
                "annotation huawei.com/schedule_policy is 'chip8-nod8', want "
                "chip4-node8, chip4-node4, chip1-node2, chip8-node8, chip8-node16, "
                "chip2-node16, "
                "module-a3-16, chip2-node16-sp, chip2-node8 or chip2-node8-sp for "
                "huawei.com/Ascend910; hint: did you mean 'chip8-node8'?"
            ),
        ),
        (
            {},
            {TYPE: "350-Atlas-4p-8"},
            NPU,
            (
                "annotation huawei.com/schedule_policy is missing, want chip4-node8 or "
                "chip4-node16 for huawei.com/npu; hint: ringleaf products NAME"
            ),
        ),
        (
            {POLICY: "chip4-node16"},
            {TYPE: "module"},
            A910,
            (
                "annotation huawei.com/schedule_policy is 'chip4-node16', want "
                "chip4-node8, chip4-node4, chip1-node2, chip8-node8, chip8-node16, "
                "chip2-node16, "
                "module-a3-16, chip2-node16-sp, chip2-node8 or chip2-node8-sp for "
                "huawei.com/Ascend910; hint: did you mean 'chip8-node16'?"
            ),
        ),
        (
            {"npu-310-strategy": "any"},
            {},
            A310,
            "label npu-310-strategy is 'any', want card or chip",
        ),
        (
            {"npu-310-strategy": "any", "duo": "true"},
            {},
            A310P,
            "label npu-310-strategy is 'any', want card or chip",
        ),
        (
            {},
            {},
            "huawei.com/npu-core",
            (
                "'huawei.com/npu-core' is a part of a chip, which is not placed; "
                "hint: ask for whole chips"
            ),
        ),
        (
            {},
            {},
            "huawei.com/Ascend910-2c",
            (
                "'huawei.com/Ascend910-2c' is a part of a chip, which is not placed; "
                "hint: ask for whole chips"
            ),
        ),
        (
            {},
            {},
            "nvidia.com/gpu",
            (
                "'nvidia.com/gpu' counts no chips, want huawei.com/Ascend910, "
                "huawei.com/Ascend310, huawei.com/Ascend310P or huawei.com/npu"
            ),
        ),
    ],
)
def test_a_job_that_names_no_product_is_told_what_to_write(
    traits: dict[str, str], selector: dict[str, str], resource: str, line: str
) -> None:
    assert refusal(traits, selector, resource) == line


@pytest.mark.parametrize("policy", sorted(NOT_PLACED))
@pytest.mark.parametrize("resource", [A910, NPU])
def test_policies_that_are_not_placed_are_refused_whatever_the_type(
    policy: str, resource: str
) -> None:
    line = refusal({POLICY: policy}, {TYPE: "module"}, resource)

    assert f"is '{policy}', for {NOT_PLACED[policy]}, which is not placed" in line


@pytest.mark.parametrize(
    ("resource", "labels", "key"),
    [
        (A910, {}, "atlas-800-9000"),
        (A910, {TYPE: "module"}, "atlas-800-9000"),
        (A910, {TYPE: "half"}, "atlas-800-9000-half"),
        (A910, {TYPE: "card"}, "atlas-300t"),
        (A910, {TYPE: "module-910b-8"}, "atlas-800t-a2"),
        (A910, {TYPE: "module-910b-16"}, "atlas-200t-a2-box16"),
        (A910, {TYPE: "module-a3-16"}, "atlas-800t-a3"),
        (A910, {TYPE: "module-a3-16-super-pod"}, "atlas-900-a3"),
        (A910, {TYPE: "module-a3-8-super-pod"}, "atlas-9000-a3"),
        (A910, {TYPE: "850-Atlas-8p-8"}, None),
        (A310, {}, "atlas-300i"),
        (A310P, {}, "atlas-310p"),
        (A310P, {"infer-card-type": "card-300i-duo"}, "atlas-300i-duo"),
        (NPU, {TYPE: "350-Atlas-4p-8"}, "atlas-350-4p-8"),
        (NPU, {TYPE: "350-Atlas-4p-16"}, "atlas-350-4p-16"),
        (NPU, {}, None),
        (NPU, {TYPE: "card"}, None),
        ("huawei.com/Ascend910-2c", {TYPE: "module-910b-8"}, "atlas-800t-a2"),
        ("", {}, "no-npu"),
        ("", {TYPE: "module"}, "no-npu"),
        ("nvidia.com/gpu", {}, "no-npu"),
    ],
)
def test_a_node_is_a_product(
    resource: str, labels: dict[str, str], key: str | None
) -> None:
    assert key_of(node(resource, labels)) == key


def test_listed_chips_tell_more_than_what_is_counted() -> None:
    given = node(A910, annotations={"baseDeviceInfos": "{}"})

    assert key_of(given, "Ascend310P") == "atlas-310p"


def test_a_node_whose_chips_are_not_counted_yet_goes_by_its_label() -> None:
    listed = {"baseDeviceInfos": "damaged"}

    assert key_of(node("", {"accelerator": "huawei-Ascend910"}, listed)) == (
        "atlas-800-9000"
    )
    assert key_of(node("", {}, listed)) is None


def test_capacity_tells_too() -> None:
    given = NodeObject(status=NodeStatus(capacity={A310: "4"}))

    assert key_of(given) == "atlas-300i"


JOBS = [
    ({POLICY: policy}, {TYPE: kind}, product.resource, product.key)
    for product in PRODUCTS.values()
    for policy in product.selector.schedule_policy
    for kind in product.selector.accelerator_type
]


@pytest.mark.parametrize(("traits", "selector", "resource", "key"), JOBS)
def test_what_a_job_names_is_what_its_nodes_are(
    traits: dict[str, str], selector: dict[str, str], resource: str, key: str
) -> None:
    """Else it waits forever beside them."""
    wanted = wanted_product(traits, selector, resource)

    assert wanted is product_of_node(node(resource, selector))
    assert wanted.key == SAME_NODES.get(key, key)


def test_every_product_has_nodes_but_those_that_share_anothers() -> None:
    labels = [
        {TYPE: kind, "infer-card-type": card}
        for product in PRODUCTS.values()
        for kind in product.selector.accelerator_type or ("",)
        for card in ("", "card-300i-duo")
    ]
    found = {
        key_of(node(resource, each))
        for resource in (A910, A310, A310P, NPU)
        for each in labels
    }

    assert found - {None} == {*PRODUCTS} - {*SAME_NODES}


def test_resources_that_count_chips() -> None:
    chips = [A910, A310, A310P, NPU, "huawei.com/npu-core", "huawei.com/Ascend310P-4c"]

    assert all(map(is_npu, chips))
    assert not any(map(is_npu, ["cpu", "huawei.com/rdma", "huawei.com/npu-x", "npu"]))


WORDS = st.text(max_size=5) | st.sampled_from(
    ["chip8-node8", "module", "card", "true", "chip4-node8", "module-a3-16"]
)


@given(
    st.dictionaries(
        st.sampled_from([POLICY, "sp-block", "duo", "npu-310-strategy"]), WORDS
    ),
    st.dictionaries(st.just(TYPE), WORDS),
    st.sampled_from([A910, A310, A310P, NPU]) | st.text(max_size=5),
)
def test_no_job_does_worse_than_a_refusal(
    traits: dict[str, str], selector: dict[str, str], resource: str
) -> None:
    try:
        found = wanted_product(traits, selector, resource)
    except BadPod as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert found.resource == resource
        assert found is not NO_NPU
        assert found.key not in SAME_NODES
