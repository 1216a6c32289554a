"""Clusters to simulate: presets, topologies, scenarios."""

from collections import Counter

import pytest

from ringleaf.model.cluster import Cluster
from ringleaf.model.topology import Server, Switch, Topology, topology_of
from ringleaf.simulator.scenario import load
from ringleaf.simulator.sites import (
    SITES,
    site,
    site_of_scenario,
    site_of_topology,
    with_queues,
)
from ringleaf.simulator.source import BadInput


@pytest.mark.parametrize("name", SITES)
def test_every_preset_is_a_cluster_with_all_chips_free(name: str) -> None:
    made = site(name)

    cluster = Cluster(made.nodes, made.leaves)

    assert made.name == name
    assert all(node.free.bit_count() == node.chips for node in made.nodes)
    assert cluster.names == sorted(cluster.names)


@pytest.mark.parametrize("name", [name for name in SITES if "x" not in name[-4:]])
def test_the_title_tells_how_many_chips_there_are(name: str) -> None:
    assert f"{site(name).chips:,} chips" in SITES[name].title


@pytest.mark.parametrize(("name", "leaf"), [("", 4), ("x8", 8), ("x16", 16)])
def test_leaves_have_as_many_nodes_as_the_name_says(name: str, leaf: int) -> None:
    made = site(f"leaf-spine-512{name}")

    sizes = Counter(node.leaf for node in made.nodes)

    assert len(made.nodes) == 512
    assert set(sizes.values()) == {leaf}
    assert Counter(node.slot for node in made.nodes) == dict.fromkeys(
        range(leaf), 512 // leaf
    )
    assert [each.name for each in made.leaves] == sorted(sizes)  # type: ignore[type-var]


def test_uneven_leaves_have_the_sizes_that_are_said_and_the_last_the_rest() -> None:
    made = site("leaf-spine-uneven")

    sizes = [*Counter(node.leaf for node in made.nodes).values()]

    assert sizes[:17] == [8, 7, 8, 6, 8, 8, 5, 8, 7, 8, 8, 6, 8, 7, 8, 3, 8]
    assert sum(sizes) == len(made.nodes) == 512
    assert sizes[17:-1] == (sizes[:17] * 4)[: len(sizes) - 18]
    assert made.nodes[9].slot == 1
    assert [each.name for each in made.leaves][:2] == ["leaf-00", "leaf-01"]


def test_superpods_have_48_nodes_of_8_modules() -> None:
    made = site("superpod-48x8")

    assert Counter(node.superpod for node in made.nodes) == dict.fromkeys(range(8), 48)
    assert {node.product.groups for node in made.nodes} == {8}


def test_options_vary_a_preset() -> None:
    made = site("leaf-spine-512:nodes=10,leaf=4,product=atlas-800t-a2")

    assert [node.leaf for node in made.nodes][7:] == ["leaf-1", "leaf-2", "leaf-2"]
    assert {node.product.key for node in made.nodes} == {"atlas-800t-a2"}
    assert len(site("superpod-48x8:superpods=2").nodes) == 96


KNOWN = (
    "superpod-48x8, leaf-spine-512, leaf-spine-512x8, leaf-spine-512x16, "
    "leaf-spine-uneven, mixed"
)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "leafspine-512",
            (
                f"cluster 'leafspine-512' is unknown, want one of {KNOWN}; "
                "hint: did you mean 'leaf-spine-512'?"
            ),
        ),
        (
            "leaf-spine-512:leafs=4",
            (
                "cluster 'leaf-spine-512': option 'leafs' is unknown, "
                "want nodes, leaf or product; hint: did you mean 'leaf'?"
            ),
        ),
        ("mixed:leaf=4", "cluster 'mixed': option 'leaf' is unknown, want no options"),
        (
            "leaf-spine-512:leaf=0",
            (
                "cluster 'leaf-spine-512': leaf is '0', want a whole number "
                "from 1 to 100000"
            ),
        ),
        (
            "leaf-spine-512:product=a2",
            (
                "cluster 'leaf-spine-512': product is 'a2', want a product of the "
                "catalogue; hint: ringleaf products lists them"
            ),
        ),
        (
            "superpod-48x8:product=atlas-800t-a2",
            (
                "cluster 'superpod-48x8': product is 'atlas-800t-a2', want one in "
                "SuperPoDs: 'atlas-900-a3' or 'atlas-9000-a3'"
            ),
        ),
        (
            "superpod-48x8:superpods=50000",
            "cluster 'superpod-48x8': 2400000 nodes, want at most 100000",
        ),
    ],
)
def test_what_is_no_cluster_is_told_in_one_line(name: str, line: str) -> None:
    with pytest.raises(BadInput) as caught:
        site(name)

    assert str(caught.value) == line


def test_a_topology_gives_nodes_leaves_and_slots() -> None:
    found = topology_of([("a", ("L0",)), ("b", ("L1",)), ("c", ("L0",))])

    made = site_of_topology(found, "mine.csv", "atlas-800t-a2")

    assert [(node.name, node.leaf, node.slot) for node in made.nodes] == [
        ("a", "L0", 0),
        ("c", "L0", 1),
        ("b", "L1", 0),
    ]
    assert [leaf.name for leaf in made.leaves] == ["L0", "L1"]
    assert (made.name, made.chips) == ("mine.csv", 24)


def test_a_topology_with_problems_is_refused_with_the_first() -> None:
    twice = topology_of([("a", ("L0",)), ("a", ("L0",)), ("a", ("L1",))])

    with pytest.raises(
        BadInput, match=r"is listed 2 times.*\(and 1 more\); hint: ringleaf"
    ):
        site_of_topology(twice, "mine.csv")


def test_nodes_of_another_size_than_the_product_are_refused() -> None:
    found = Topology(1, switches=(Switch(0, "L0", (Server("a", 0, chips=16),)),))

    with pytest.raises(BadInput) as caught:
        site_of_topology(found, "mine.csv")

    assert str(caught.value) == (
        "node 'a' has 16 chips, want the 8 of atlas-800t-a2; "
        "hint: name the product of the nodes"
    )


def test_nodes_of_products_that_come_in_sizes_have_the_size_that_is_told() -> None:
    servers = Server("a", 0, chips=16), Server("b", 1)
    found = Topology(2, switches=(Switch(0, "L0", servers),))

    made = site_of_topology(found, "x", "atlas-300i-duo", chips=8)

    assert [node.chips for node in made.nodes] == [16, 8]
    with pytest.raises(BadInput, match=r"node 'b' has 99 chips, want 1 to 32"):
        site_of_topology(found, "x", "atlas-300i-duo", chips=99)


SCENARIO = """
queues: [{name: gold, weight: 2}]
leaves:
  A: {address: 10.0.0.1, state: shared, healthy: false}
nodes:
  - {name: a, product: atlas-800-9000, leaf: A}
  - {name: b, product: atlas-800-9000, leaf: B, faulty: [3]}
  - {name: c, product: atlas-800-9000, free: [0, 1], unschedulable: true}
running:
  - name: old
    chips: 2
    placements: [{replica: 0, node: a, chips: [0, 1]}]
"""


def test_the_cluster_of_a_scenario_is_empty_and_else_as_it_was() -> None:
    made = site_of_scenario(load(SCENARIO.encode())[0], "dump.json")

    a, b, c = made.nodes
    assert (a.free, b.free, c.free) == (0xFF, 0xFF, 0b11)
    assert (b.faulty, c.cordoned) == (0b1000, True)
    assert [queue.name for queue in made.queues] == ["gold"]
    cluster = Cluster(made.nodes, made.leaves)
    assert cluster.uplinks.state.tolist() == [0, 0]
    assert cluster.uplinks.unhealthy.tolist() == [False, False]


def test_queues_are_added_once() -> None:
    made = site("mixed")

    both = with_queues(made, ["a", "b", "a", "default"])

    assert [queue.name for queue in both.queues] == ["a", "b"]
    assert with_queues(both, ["b"]) is both
