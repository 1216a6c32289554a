"""The ConfigMap ``basic-tor-node-cm`` and its ``tor_info``, read and written."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.kube.topology import BadTopology, config_map, read_topology, tor_info
from ringleaf.model.placement import LeafState
from ringleaf.model.topology import Server, Switch, Topology

LEAF: dict[str, Any] = {
    "tor_id": 0,
    "tor_ip": "10.0.0.1",
    "server": [{"server_ip": "10.1.0.0", "npu_count": 8, "slice_id": 0}],
}
INFO: dict[str, Any] = {"version": "1.0", "tor_count": 4, "server_list": [LEAF]}
READ = Topology(4, switches=(Switch(0, "10.0.0.1", (Server("10.1.0.0", 0, 8),)),))


def manifest(info: object = INFO, **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    """A ConfigMap as the vendor's script writes it."""
    text = info if isinstance(info, str) else json.dumps(info)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "basic-tor-node-cm", "namespace": "kube-system"},
        "data": {"tor_info": text, **keys},
    }


def with_leaf(**keys: object) -> dict[str, Any]:
    return {**INFO, "server_list": [{**LEAF, **keys}]}


def with_server(**keys: object) -> dict[str, Any]:
    return with_leaf(server=[{**LEAF["server"][0], **keys}])


def without(key: str, info: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in info.items() if name != key}


def refusal(document: object) -> str:
    with pytest.raises(BadTopology) as refused:
        read_topology(document)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("document", [INFO, manifest()], ids=["bare", "ConfigMap"])
def test_both_forms_are_read(document: object) -> None:
    assert read_topology(document) == (READ, [])


def test_keys_the_vendor_does_not_know_are_passed_over() -> None:
    assert read_topology(with_leaf(port=3)) == (READ, [])


def test_what_may_be_left_out() -> None:
    leaf = {**LEAF, "server": [{"server_ip": "n", "slice_id": 0}]}
    topology, warnings = read_topology({"tor_count": 4, "server_list": [leaf]})

    assert warnings == []
    assert topology.switches[0].servers == (Server("n", 0, None),)


@pytest.mark.parametrize(
    ("number", "state"), [(0, "idle"), (1, "shared"), (2, "exclusive")]
)
@pytest.mark.parametrize("sick", [0, 1])
def test_the_state_of_a_leaf_is_read(number: int, state: str, sick: int) -> None:
    info = with_leaf(IsSharedTor=number, IsHealthy=sick)
    (switch,) = read_topology(info)[0].switches

    assert (switch.state_word, switch.healthy) == (state, sick == 0)


@pytest.mark.parametrize(
    ("level", "single"), [("single_layer", True), ("double_layer", False)]
)
def test_the_level_is_beside_tor_info_or_inside_when_it_is_bare(
    level: str, *, single: bool
) -> None:
    for document in (manifest(tor_level=level), {**INFO, "tor_level": level}):
        topology, warnings = read_topology(document)
        assert (topology.single_layer, warnings) == (single, [])


def test_an_unknown_level_means_two_layers_and_a_warning() -> None:
    topology, warnings = read_topology(manifest(tor_level="three"))

    assert not topology.single_layer
    assert warnings == [
        (
            "tor_level is 'three', want double_layer or single_layer: "
            "two layers are assumed"
        )
    ]


def test_a_name_nobody_reads_is_a_warning() -> None:
    document = {**manifest(), "metadata": {"name": "x", "namespace": "y"}}

    assert read_topology(document)[1] == [
        (
            "metadata.name is 'x', want 'basic-tor-node-cm': "
            "the vendor's scheduler reads no other"
        ),
        (
            "metadata.namespace is 'y', want 'kube-system': "
            "the vendor's scheduler reads no other"
        ),
    ]


def test_another_version_is_a_warning() -> None:
    assert read_topology({**INFO, "version": "2.0"})[1] == [
        "version is '2.0', want '1.0'"
    ]


NAME = "1 to 253 printable characters"


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ({**INFO, "tor_count": "4"}, "tor_count is '4', want a whole number, the nod"),
        ({**INFO, "tor_count": None}, "tor_count is null, want a whole number"),
        ({**INFO, "tor_count": 2**31}, "tor_count is 2147483648, want a whole"),
        (without("tor_count", INFO), "tor_count is missing, want a whole number"),
        ({**INFO, "server_list": {}}, "server_list is an empty mapping, want a list"),
        ({**INFO, "server_list": [7]}, "server_list[0] is 7, want a mapping"),
        ({**INFO, "version": 1.0}, "version is 1.0, want text"),
        (with_leaf(tor_id=True), "server_list[0].tor_id is true, want a whole number"),
        (with_leaf(tor_ip=""), f"server_list[0].tor_ip is '', want {NAME}"),
        (with_leaf(tor_ip="a\n"), rf"server_list[0].tor_ip is 'a\n', want {NAME}"),
        (with_leaf(tor_ip="x" * 254), "server_list[0].tor_ip is 'xxx"),
        (with_leaf(server=None), "server_list[0].server is null, want a list of nodes"),
        (with_leaf(IsSharedTor=3), "server_list[0].IsSharedTor is 3, want 0, 1 or 2"),
        (with_leaf(IsHealthy=2), "server_list[0].IsHealthy is 2, want 0 or 1"),
        (with_server(slice_id="0"), "server_list[0].server[0].slice_id is '0', want a"),
        (with_server(server_ip="\ud800"), r"server_list[0].server[0].server_ip is '\u"),
        (with_server(npu_count=1.5), "server_list[0].server[0].npu_count is 1.5, want"),
        (
            dict([*INFO.items(), (7, 8)]),
            "the document has a key that is not text, want text keys",
        ),
        (manifest([]), "data.tor_info is an empty list, want a JSON object"),
        (manifest("{"), "data.tor_info is no JSON (Expecting property name"),
        (manifest("[" * 99999), "data.tor_info is nested too deeply"),
        (manifest("1" * 5000), "data.tor_info is no JSON (Exceeds the limit"),
        (
            manifest('{"a": 1, "b": 2, "a": 3}'),
            "data.tor_info has the key 'a' twice in one object, want once",
        ),
        (
            manifest(with_leaf(tor_ip=8)),
            f"data.tor_info.server_list[0].tor_ip is 8, want {NAME}",
        ),
        ({**manifest(), "kind": "Secret"}, "kind is 'Secret', want 'ConfigMap'"),
        ({**manifest(), "data": None}, "data is null, want a mapping with the key"),
        ({**manifest(), "data": {}}, "data.tor_info is missing, want text that is"),
        ({**manifest(), "metadata": 3}, "metadata is 3, want a mapping"),
        (manifest(tor_level=2), "data.tor_level is 2, want double_layer or single_"),
    ],
)
def test_a_wrong_value_is_told_with_its_place(document: object, line: str) -> None:
    assert refusal(document).startswith(line)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("ip", "'ip'"),
        (None, "null"),
        ([INFO], "a list"),
        ({"nodes": [], "jobs": []}, "a mapping with 'nodes', 'jobs'"),
    ],
)
def test_something_else_is_told_with_what_is_wanted(
    document: object, told: str
) -> None:
    assert refusal(document) == (
        f"the document is {told}, want the ConfigMap basic-tor-node-cm, its tor_info, "
        "or CSV with a header; hint: kubectl get configmap -n kube-system "
        "basic-tor-node-cm -o yaml"
    )


def test_what_is_written_is_what_the_vendor_reads() -> None:
    written = yaml.safe_load(config_map(READ))

    assert written == manifest(written["data"]["tor_info"], tor_level="double_layer")
    assert json.loads(written["data"]["tor_info"]) == INFO


def test_the_level_is_written_where_the_vendor_reads_it() -> None:
    single = Topology(4, single_layer=True, switches=READ.switches)
    content = yaml.safe_load(config_map(single))["data"]

    assert content["tor_level"] == "single_layer"
    assert json.loads(content["tor_info"]) == INFO
    assert json.loads(tor_info(single)) == {**INFO, "tor_level": "single_layer"}


numbers = st.integers(-(2**31), 2**31 - 1)
names = st.one_of(
    st.sampled_from(["10.0.0.1", "#", "a: b", "'", '"', "\\", "null", "é😀", " ", "-"]),
    st.text(min_size=1, max_size=20).filter(str.isprintable),
)
servers = st.builds(Server, names, numbers, st.none() | numbers)
switches = st.builds(
    Switch,
    numbers,
    names,
    st.lists(servers, max_size=4).map(tuple),
    st.sampled_from(LeafState),
    healthy=st.booleans(),
)
topologies = st.builds(
    Topology, numbers, st.booleans(), st.lists(switches, max_size=4).map(tuple)
)


@given(topologies)
def test_nothing_is_lost_from_form_to_form(topology: Topology) -> None:
    manifest_text, bare = config_map(topology), tor_info(topology)
    read, warnings = read_topology(yaml.safe_load(manifest_text))

    assert (read, warnings) == (topology, [])
    assert read_topology(json.loads(bare)) == (topology, [])
    assert config_map(read_topology(json.loads(bare))[0]) == manifest_text


def test_a_key_that_stands_twice_among_many_is_found() -> None:
    keys = [f'"k{i}":0' for i in range(60_000)]
    text = "{" + ",".join([*keys, keys[-1]]) + "}"

    with pytest.raises(BadTopology, match="has the key 'k59999' twice"):
        read_topology(manifest(text))
