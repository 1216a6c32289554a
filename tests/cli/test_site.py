"""The cluster that a command simulates."""

from pathlib import Path

import pytest

from ringleaf.cli.failure import BadUse
from ringleaf.cli.options import TopologyColumns
from ringleaf.cli.site import simulated_cluster
from tests.docs.pages import ROOT

TOPOLOGIES = ROOT / "examples" / "topology"
LINGJUN = ROOT.parent / "shared" / "traces" / "lingjun2023_topo.csv"


def test_a_preset_is_found_by_its_name_with_options() -> None:
    place = simulated_cluster("leaf-spine-512:leaf=8")

    assert len(place.site.leaves) == 64
    assert place.scenario is None


def test_a_topology_file_is_a_cluster_of_the_product_that_is_told() -> None:
    path = str(TOPOLOGIES / "basic-tor-node-cm.yaml")

    usual, told = simulated_cluster(path), simulated_cluster(path, "atlas-800-9000")

    assert usual.site.name == "basic-tor-node-cm.yaml"
    assert {node.product.key for node in usual.site.nodes} == {"atlas-800t-a2"}
    assert {node.product.key for node in told.site.nodes} == {"atlas-800-9000"}
    assert {node.leaf for node in told.site.nodes} == {
        leaf.name for leaf in told.site.leaves
    }


def test_a_table_has_leaves_by_the_columns_that_are_told() -> None:
    place = simulated_cluster(
        str(TOPOLOGIES / "racks.csv"), columns=TopologyColumns(leaf="room,rack")
    )

    assert [leaf.name for leaf in place.site.leaves] == ["A/1", "A/2", "B/1"]


def test_the_leaf_of_a_table_that_is_not_told_is_told_by_converting_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "racks.csv"
    file.write_text("name,slot,product\na,0,x\n")

    with pytest.raises(
        BadUse, match=f"topology convert {file} --leaf COLUMN --to scenario > cluster"
    ):
        simulated_cluster(str(file))


def test_a_scenario_is_a_cluster_without_its_jobs() -> None:
    place = simulated_cluster(str(ROOT / "examples" / "busy-leaves.yaml"))

    assert place.scenario is not None
    assert place.scenario.running
    assert all(node.free.bit_count() == node.chips for node in place.site.nodes)


def test_a_real_cluster_has_leaves_by_both_of_its_switches() -> None:
    if not LINGJUN.exists():
        pytest.skip(f"no {LINGJUN.name}: left out")

    place = simulated_cluster(str(LINGJUN))

    assert (len(place.site.nodes), len(place.site.leaves)) == (847, 119)
    assert place.site.chips == 847 * 8


@pytest.mark.parametrize(
    ("given", "product", "line"),
    [
        ("leaf-spin-512", None, "hint: did you mean 'leaf-spine-512'?"),
        ("leaf-spine-512:leaf=x", None, "leaf is 'x', want a whole number from 1 to"),
        ("a\0b", None, "want a file or one of superpod-48x8, "),
        ("mixed", "atlas-300t", "--product goes with a topology file, 'mixed' has a"),
        (str(TOPOLOGIES / "broken.yaml"), None, "listed 2 times, with tor_id 0 and 4"),
        (str(TOPOLOGIES / "racks.csv"), "a3", "product is 'a3', want a product of the"),
        (str(TOPOLOGIES), None, "Is a directory"),
        (
            str(ROOT / "examples" / "conf" / "vendor.yaml"),
            None,
            "data.tor_info is missing",
        ),
    ],
)
def test_what_is_no_cluster_is_told_in_one_line(
    given: str, product: str | None, line: str
) -> None:
    with pytest.raises(BadUse) as caught:
        simulated_cluster(given, product)

    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_several_scenarios_are_no_cluster(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    one = "nodes: [{name: a, product: atlas-300t}]\n"
    path.write_text(f"{one}---\n{one}")

    with pytest.raises(BadUse, match=r"two.yaml: 2 scenarios, want one"):
        simulated_cluster(str(path))
