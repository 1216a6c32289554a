"""``ringleaf topology``."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest
import yaml

from ringleaf.kube.topology import config_map, tor_info
from ringleaf.model.placement import LeafState
from ringleaf.model.topology import Server, Switch, Topology
from ringleaf.simulator.scenario import load
from tests.cli.conftest import Ringleaf
from tests.cli.test_examples import commands_of

ROOT: Final = Path(__file__).parents[2]
TRACES: Final = Path(
    os.environ.get("RINGLEAF_TRACES", ROOT.parent / "shared" / "traces")
)
SOUND, BROKEN, RACKS = (
    f"examples/topology/{name}"
    for name in ("basic-tor-node-cm.yaml", "broken.yaml", "racks.csv")
)
SUBCOMMANDS: Final = ("", "check", "draw", "convert")

Write = Callable[..., str]
Drawn = Callable[..., ET.Element]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """Writes a file and gives its name."""

    def write(text: str, name: str = "topology.yaml") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def regular(n_leaves: int, size: int, **keys: Any) -> Topology:  # noqa: ANN401
    """Full leaves ``L0``, ``L1``, … with nodes ``10.1.0.0``, …."""
    return Topology(
        size,
        switches=tuple(
            Switch(
                i, f"L{i}", tuple(Server(f"10.1.{i}.{j}", j, 8) for j in range(size))
            )
            for i in range(n_leaves)
        ),
        **keys,
    )


def test_what_people_see_of_a_sound_topology(ringleaf: Ringleaf) -> None:
    done = ringleaf("topology", "check", SOUND)

    assert (done.status, done.err) == (0, "")
    assert done.lines == [
        (
            "6 leaves, 21 nodes, 2 to 4 nodes per leaf, 4 slots each, two layers: "
            "no problems"
        ),
        "spine",
        "│  leaf      slot 0    slot 1    slot 2    slot 3",
        "├─ 10.0.0.1  10.1.0.1  10.1.0.2  10.1.0.3  10.1.0.4",
        "├─ 10.0.0.2  10.1.1.1  10.1.1.2  10.1.1.3  10.1.1.4  shared",
        "├─ 10.0.0.3  10.1.2.1  10.1.2.2  10.1.2.3  10.1.2.4  exclusive",
        "├─ 10.0.0.4  10.1.3.1  10.1.3.2  10.1.3.3  ·         3 of 4",
        "├─ 10.0.0.5  10.1.4.1  10.1.4.2  10.1.4.3  10.1.4.4  shared, unhealthy",
        "└─ 10.0.0.6  10.1.5.1  10.1.5.2  ·         ·         2 of 4",
    ]


def test_every_problem_is_one_line_and_the_rest_is_drawn(ringleaf: Ringleaf) -> None:
    done = ringleaf("topology", "check", BROKEN)
    kinds = [line.partition(":")[0] for line in done.lines]

    assert (done.status, done.err) == (1, "")
    assert kinds[:12] == ["problem"] * 8 + ["warning"] * 4
    assert done.lines[12].endswith("two layers: 8 problems, 4 warnings")
    assert done.lines[13:] == [
        "spine",
        "│  leaf      slot 0    slot 1    slot 2    slot 3",
        "├─ 10.0.0.1  10.1.0.1  10.1.0.2  ·         10.1.0.3  3 of 4",
        "├─ 10.0.0.2  10.1.1.1  10.1.1.2  10.1.1.3  ·         1 out of place",
        "├─ 10.0.0.3  10.1.2.1  10.1.2.2  10.1.2.3  10.1.2.4  5 of 4, 1 out of place",
        "├─ 10.0.0.4  10.1.0.1  10.1.3.2  ·         ·         2 of 4",
        "└─ 10.0.0.1  ·         ·         ·         ·         no nodes",
    ]


def test_warnings_alone_are_no_problem(ringleaf: Ringleaf, written: Write) -> None:
    empty = Topology(200, switches=(Switch(0, "L0"),))
    done = ringleaf("topology", "check", written(config_map(empty)))

    assert done.status == 0
    assert done.lines[2].endswith("two layers: no problems, 2 warnings")


def test_the_check_as_json(ringleaf: Ringleaf, written: Write) -> None:
    servers = (Server("n0", 0, 8), Server("n2", 2))
    switch = Switch(5, "L", servers, LeafState.SHARED, healthy=False)
    topology = Topology(4, single_layer=True, switches=(switch, Switch(6, "M")))
    done = ringleaf("topology", "check", written(config_map(topology)), "--json")

    assert (done.status, done.err) == (1, "")
    assert json.loads(done.out) == {
        "leaf-size": 4,
        "leaves": 2,
        "nodes": 2,
        "level": "single_layer",
        "problems": [
            "leaf 5 'L': slot 1 is empty below slot 2, want slots 0 to 1 without a gap"
        ],
        "warnings": ["leaf 6 'M': no nodes"],
        "topology": [
            {
                "leaf": "L",
                "id": 5,
                "state": "shared",
                "healthy": False,
                "nodes": [
                    {"node": "n0", "slot": 0, "chips": 8},
                    {"node": "n2", "slot": 2},
                ],
            },
            {"leaf": "M", "id": 6, "nodes": []},
        ],
    }


def test_an_empty_list_is_a_problem_and_nothing_to_draw(ringleaf: Ringleaf) -> None:
    text = '{"tor_count": 4, "server_list": []}'
    done = ringleaf("topology", "check", "-", stdin=text)

    assert done.status == 1
    assert done.lines == [
        "problem: no leaf is listed (server_list), want at least one",
        "0 leaves, 0 nodes, 0 nodes per leaf, 4 slots each, two layers: 1 problem",
    ]


@pytest.mark.parametrize("columns", [40, 60, 88, 200])
@pytest.mark.parametrize("size", [1, 4, 8, 16, 40, 128, 300])
def test_a_drawing_is_never_wider_than_the_terminal(
    ringleaf: Ringleaf, written: Write, columns: int, size: int
) -> None:
    topology = regular(3, size)
    file = written(tor_info(topology))
    _summary, *lines = ringleaf("topology", "draw", file, columns=columns).lines

    assert max(map(len, lines)) <= columns
    assert len(lines) == 5
    last = f"{size - 1}"
    assert all(line.endswith((last, "…")) for line in lines[2:])


@pytest.mark.parametrize("columns", [20, 30, 40])
def test_notes_are_cut_rather_than_wrapped(ringleaf: Ringleaf, columns: int) -> None:
    _summary, *lines = ringleaf("topology", "draw", SOUND, columns=columns).lines

    assert len(lines) == 8
    assert max(map(len, lines)) <= columns


def test_names_that_are_too_long_lose_what_they_share(
    ringleaf: Ringleaf, written: Write
) -> None:
    file = written(tor_info(regular(2, 8)))
    lines = ringleaf("topology", "draw", file, columns=80).lines

    assert lines[3:] == [
        "├─ L0    …0.0    …0.1    …0.2    …0.3    …0.4    …0.5    …0.6    …0.7",
        "└─ L1    …1.0    …1.1    …1.2    …1.3    …1.4    …1.5    …1.6    …1.7",
    ]


def test_many_leaves_are_counted(ringleaf: Ringleaf, written: Write) -> None:
    lines = ringleaf("topology", "draw", written(tor_info(regular(128, 2)))).lines

    assert len(lines) == 3 + 32 + 1
    assert lines[-2].startswith("├─ L31 ")
    assert lines[-1] == "└─ … and 96 more leaves with 192 nodes"


def test_one_layer_has_no_spine(ringleaf: Ringleaf, written: Write) -> None:
    topology = regular(33, 1, single_layer=True)
    lines = ringleaf("topology", "draw", written(config_map(topology))).lines

    assert lines[1] == "one layer, no spine"
    assert lines[3] == "   L0    10.1.0.0"
    assert lines[-1] == "   … and 1 more leaf with 1 node"


SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def drawn(ringleaf: Ringleaf, tmp_path: Path) -> Drawn:
    """Draws a file and gives the SVG; what is printed beside it is as usual."""

    def draw(file: str, *options: str) -> ET.Element:
        path = tmp_path / "out.svg"
        done = ringleaf("topology", "draw", file, *options, "--svg", str(path))
        assert done == ringleaf("topology", "draw", file, *options)
        assert done.status == 0
        assert all(": warning: " in line for line in done.err.splitlines())
        return ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314

    return draw


def titles(svg: ET.Element) -> list[str]:
    return [title.text or "" for title in svg.iter(f"{SVG}title")]


def boxes(svg: ET.Element, kind: str) -> int:
    return sum(kind in rect.get("class", "").split() for rect in svg.iter(f"{SVG}rect"))


def test_the_svg_has_a_tooltip_for_every_leaf_and_node(drawn: Drawn) -> None:
    svg = drawn(SOUND)

    assert boxes(svg, "spine") == 1
    assert len(titles(svg)) == 1 + 6 + 21
    assert "10.1.0.1: slot 0, 8 chips" in titles(svg)
    assert "leaf 4 '10.0.0.5': 4 of 4, shared, unhealthy" in titles(svg)


def test_the_svg_marks_what_is_out_of_place(drawn: Drawn) -> None:
    svg = drawn(BROKEN)

    assert boxes(svg, "bad") == 2 + 1  # and the legend
    assert boxes(svg, "node") == 12 + 1


def stairs(n_leaves: int) -> Topology:
    """Leaves of 1, 2, 3, … nodes, in which nobody counts slots."""
    servers = [
        tuple(Server(f"{i}-{j}", j) for j in range(i + 1)) for i in range(n_leaves)
    ]
    switches = tuple(Switch(i, f"L{i}", under) for i, under in enumerate(servers))
    return Topology(999, switches=switches)


@pytest.mark.parametrize(
    "topology",
    [
        regular(1, 1),
        regular(2, 4),
        regular(24, 4),
        regular(25, 4),
        regular(119, 8),
        regular(3, 40),
        regular(2, 300),
        stairs(20),
        stairs(60),
    ],
    ids=lambda each: f"{len(each.switches)} leaves of {each.leaf_size}",
)
def test_cards_of_the_svg_stand_apart_and_on_the_sheet(
    drawn: Drawn, written: Write, topology: Topology
) -> None:
    svg = drawn(written(tor_info(topology)))
    cards = []
    for group in svg.findall(f"{SVG}g"):
        x, y = group.get("transform", "")[len("translate(") : -1].split()
        (card,) = group.findall(f"{SVG}rect")
        width, height = int(card.get("width", "")), int(card.get("height", ""))
        cards.append((int(x), int(y), int(x) + width, int(y) + height))

    assert len(cards) == len(topology.switches)
    assert max(right for _x, _y, right, _bottom in cards) < int(svg.get("width", ""))
    assert max(bottom for *_edges, bottom in cards) < int(svg.get("height", ""))
    assert int(svg.get("width", "")) <= 1300
    for i, (left, top, right, bottom) in enumerate(cards):
        assert not any(
            left < r + 10 and x < right + 10 and top < b + 20 and y < bottom + 20
            for x, y, r, b in cards[:i]
        )


def test_the_svg_escapes_what_comes_from_the_file(drawn: Drawn, written: Write) -> None:
    name = "<script>alert('&')</script>\"]]>"
    topology = Topology(1, switches=(Switch(0, name, (Server(name, 0),)),))
    svg = drawn(written(config_map(topology)))

    assert list(svg.iter(f"{SVG}script")) == []
    assert f"{name}: slot 0" in titles(svg)


def test_the_svg_needs_nothing_else_and_suits_a_dark_screen(
    drawn: Drawn, tmp_path: Path
) -> None:
    drawn(SOUND)
    text = (tmp_path / "out.svg").read_text()

    assert text.count("http") == 1  # the namespace
    assert "prefers-color-scheme:dark" in text
    for word in ("href", "<script", "@import", "@font-face", "url("):
        assert word not in text


def test_the_svg_of_one_layer_or_of_nothing(drawn: Drawn, written: Write) -> None:
    one = drawn(written(config_map(regular(2, 2, single_layer=True))))
    nothing = drawn(written(config_map(Topology(4)), "nothing.yaml"))

    assert (boxes(one, "spine"), boxes(one, "card")) == (0, 2)
    assert (boxes(nothing, "spine"), boxes(nothing, "card")) == (1, 0)


def test_an_svg_that_cannot_be_written_is_told(ringleaf: Ringleaf) -> None:
    nowhere = ringleaf("topology", "draw", SOUND, "--svg", "no/such/folder.svg")
    nul = ringleaf("topology", "draw", SOUND, "--svg", "a\0b")

    assert nowhere == (
        2,
        "",
        "ringleaf: --svg no/such/folder.svg: No such file or directory\n",
    )
    assert (nul.status, nul.out) == (2, "")


def test_the_racks_of_two_rooms_are_leaves_of_their_own(ringleaf: Ringleaf) -> None:
    done = ringleaf("topology", "check", RACKS, "--json")
    found = json.loads(done.out)

    assert [leaf["leaf"] for leaf in found["topology"]] == ["A/1", "A/2", "B/1"]
    assert [len(leaf["nodes"]) for leaf in found["topology"]] == [3, 2, 1]
    assert found["warnings"] == []


def test_csv_by_named_columns(ringleaf: Ringleaf) -> None:
    options = ("--node", "node", "--leaf", "room,rack", "--json")
    by_room = json.loads(ringleaf("topology", "check", RACKS, *options).out)

    assert by_room["topology"] == [
        {
            "leaf": "A/1",
            "id": 0,
            "nodes": [
                {"node": "10.1.0.1", "slot": 0},
                {"node": "10.1.0.2", "slot": 1},
                {"node": "10.1.0.3", "slot": 2},
            ],
        },
        {
            "leaf": "A/2",
            "id": 1,
            "nodes": [
                {"node": "10.1.1.1", "slot": 0},
                {"node": "10.1.1.2", "slot": 1},
            ],
        },
        {"leaf": "B/1", "id": 2, "nodes": [{"node": "10.1.2.1", "slot": 0}]},
    ]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("node,leaf\na,x\n", ()),
        ("\ufeffnode,leaf\r\n\r\na,x\r\n", ()),
        ("Rack,ip\nx,a", ()),
        ("when: now,n,l\n0,a,x\n", ("--node", "n", "--leaf", "l")),
        ('"n","leaf"\n"a","x"\n', ()),
        ("rack,node\nx,a\n", ()),
        ("tor,server_ip\nx,a\n", ()),
    ],
)
def test_csv_is_known_by_its_header_or_the_options(
    ringleaf: Ringleaf, text: str, options: tuple[str, ...]
) -> None:
    done = ringleaf("topology", "check", "-", "--json", *options, stdin=text)

    assert (done.status, done.err) == (0, "")
    (leaf,) = json.loads(done.out)["topology"]
    assert (leaf["leaf"], leaf["nodes"][0]["node"]) == ("x", "a")


@pytest.mark.parametrize(
    ("text", "options", "line"),
    [
        ("", (), "the file is empty, want a ConfigMap, its tor_info, or CSV"),
        ("# a, b\n---\n", (), "the file is empty, want a ConfigMap, its tor_info, or"),
        ("node: []\n", (), "the document is a mapping with 'node', want the ConfigM"),
        ("nodes: []\n", (), "it is a scenario or a cluster file, want the ConfigMap o"),
        ("{}\n{}\n", (), "2 documents, want one"),
        ("a: [", (), "line 1, column 5: neither YAML nor JSON: while parsing a flow"),
        ("n,l\na\n", (), "line 2 has 1 columns, want 2"),
        ("n,l\n,x\n", (), "line 2: n is '', want 1 to 253 printable characters"),
        ("n,l\na,\x1b\n", (), r"line 2: l is '\x1b', want 1 to 253 printable char"),
        ("n,n\na,x\n", (), "--leaf is 'n', want one column of 'n', 'n'"),
        ("n,l\n", ("--leaf", "rack"), "--leaf is 'rack', want one column of 'n', 'l'"),
        ("n,l\n", ("--node", "ip"), "--node is 'ip', want one column of 'n', 'l'"),
        (
            "name,slot,product\na,0,x\n",
            (),
            (
                "cannot tell the leaf column from 'slot', 'product', want a column "
                "named leaf, tor, switch or rack; hint: --leaf COLUMN\n"
            ),
        ),
        (
            "name;room;rack\na;A;1\n",
            ("--node", "name"),
            (
                "the header is ['name;room;rack'], want columns for node and leaf; "
                "hint: columns are separated by semicolons, want commas\n"
            ),
        ),
        ("n\na\n", ("--node", "n"), "the header is ['n'], want columns for node and"),
        ('n,l\n"a"b,x\n', (), "line 2: no CSV: ',' expected after '\"'"),
        ('{"tor_count":4,"server_list":3}', (), "server_list is 3, want a list of le"),
    ],
)
@pytest.mark.parametrize("command", ["check", "draw", "convert --to json"])
def test_what_cannot_be_read_is_one_line(
    ringleaf: Ringleaf, command: str, text: str, options: tuple[str, ...], line: str
) -> None:
    done = ringleaf("topology", *command.split(), "-", *options, stdin=text)

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"ringleaf: standard input: {line}")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("command", ["check", "draw", "convert --to json"])
def test_a_cluster_file_is_told_the_command_that_draws_it(
    ringleaf: Ringleaf, written: Write, command: str
) -> None:
    file = written(ringleaf("init", "cluster").out, "cluster.yaml")
    done = ringleaf("topology", *command.split(), file)

    assert (done.status, done.out) == (2, "")
    assert done.err == (
        f"ringleaf: {file}: it is a scenario or a cluster file, want the ConfigMap or "
        f"CSV; hint: ringleaf plan {file} checks and draws it\n"
    )
    assert ringleaf("plan", file).lines[2].startswith("256 nodes, 2,048 chips, 38 leav")


IS_A_FOLDER: Final = (
    "examples/topology: Is a directory; hint: it has basic-tor-node-cm.yaml, "
    "broken.yaml, racks.csv"
)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        (
            "nope.yaml",
            "nope.yaml: No such file or directory; hint: this folder has no .yaml file",
        ),
        ("", "'': Is a directory"),
        ("examples/topology", IS_A_FOLDER),
        ("a\0b", r"'a\x00b': embedded null byte"),
    ],
)
def test_a_file_that_is_not_there_is_one_line(
    ringleaf: Ringleaf, file: str, line: str
) -> None:
    assert ringleaf("topology", "check", file) == (2, "", f"ringleaf: {line}\n")


def test_a_file_that_is_no_text_is_one_line(ringleaf: Ringleaf, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"tor\xff")

    assert ringleaf("topology", "check", str(path)).err == (
        f"ringleaf: {path}: byte 3 is 0xff, want UTF-8 text; "
        "hint: a topology is YAML, JSON or CSV\n"
    )


def test_a_file_that_is_too_large_is_one_line(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b" " * (16 << 20) + b"x")

    assert ringleaf("topology", "check", str(path)).err == (
        f"ringleaf: {path}: more than 16777216 bytes of text, want fewer\n"
    )


def test_a_closed_standard_input_is_one_line(ringleaf: Ringleaf) -> None:
    assert ringleaf("topology", "check", "-", stdin=None) == (
        2,
        "",
        "ringleaf: standard input is closed, want a topology\n",
    )


def converted(ringleaf: Ringleaf, file: str, to: str, *options: str) -> str:
    done = ringleaf("topology", "convert", file, "--to", to, *options)
    assert (done.status, done.err) == (0, "")
    return done.out


def test_the_forms_lose_nothing_on_the_way_round(
    ringleaf: Ringleaf, written: Write
) -> None:
    topology = Topology(
        4,
        single_layer=True,
        switches=(
            Switch(3, "L", (Server("a", 1), Server("b", 0, 16)), LeafState.EXCLUSIVE),
            Switch(1, "M", (), healthy=False),
        ),
    )
    first = written(config_map(topology))
    second = written(converted(ringleaf, first, "json"), "bare.json")
    third = converted(ringleaf, second, "configmap")

    assert third == config_map(topology)
    assert converted(ringleaf, SOUND, "configmap") == Path(SOUND).read_text()


def test_csv_to_a_configmap(ringleaf: Ringleaf, written: Write) -> None:
    text = converted(ringleaf, RACKS, "configmap", "--leaf", "room,rack")
    content = yaml.safe_load(text)["data"]
    info = json.loads(content["tor_info"])

    assert content["tor_level"] == "double_layer"
    assert info["tor_count"] == 3
    assert info["server_list"][2] == {
        "tor_id": 2,
        "tor_ip": "B/1",
        "server": [{"server_ip": "10.1.2.1", "npu_count": 8, "slice_id": 0}],
    }
    assert ringleaf("topology", "check", written(text)).status == 0


def test_the_product_tells_the_chips_of_csv(ringleaf: Ringleaf) -> None:
    options = ("--product", "Atlas 800T A3", "--leaf-size", "6")
    info = json.loads(converted(ringleaf, RACKS, "json", *options))

    assert info["tor_count"] == 6
    assert info["server_list"][0]["server"][0]["npu_count"] == 16


def test_to_csv_in_slot_order_and_back(ringleaf: Ringleaf, written: Write) -> None:
    servers = (Server("b", 1), Server('a,"', 0))
    topology = Topology(2, switches=(Switch(0, "L", servers),))
    text = converted(ringleaf, written(config_map(topology)), "csv")

    assert text == 'node,leaf\n"a,""",L\nb,L\n'
    assert converted(ringleaf, written(text, "back.csv"), "csv") == text


def test_to_a_scenario_that_can_be_planned(ringleaf: Ringleaf, written: Write) -> None:
    text = converted(ringleaf, SOUND, "scenario")
    (scenario,) = load(text.encode())
    document = json.loads(text)

    assert document["settings"] == {"nodes-per-leaf": 4, "tor-level": "double_layer"}
    conditions: dict[str, dict[str, object]] = {
        "10.0.0.1": {},
        "10.0.0.2": {"state": "shared"},
        "10.0.0.3": {"state": "exclusive"},
        "10.0.0.4": {},
        "10.0.0.5": {"state": "shared", "healthy": False},
        "10.0.0.6": {},
    }
    assert document["leaves"] == {
        address: {"address": address, **known} for address, known in conditions.items()
    }
    assert document["nodes"][4] == {
        "name": "10.1.1.1",
        "product": "atlas-800t-a2",
        "leaf": "10.0.0.2",
        "slot": 0,
    }
    assert len(scenario.nodes) == 21
    assert ringleaf("plan", written(text)).status == 0


@pytest.mark.parametrize(
    ("chips", "product", "told"),
    [
        (8, "atlas-300i-duo", 8),
        (None, "atlas-300i-duo", 32),
        (8, "atlas-800t-a2", None),
    ],
)
def test_products_that_come_in_sizes_are_told_their_chips(
    ringleaf: Ringleaf,
    written: Write,
    chips: int | None,
    product: str,
    told: int | None,
) -> None:
    topology = Topology(1, switches=(Switch(0, "L", (Server("n", 0, chips),)),))
    options = ("--product", product)
    text = converted(ringleaf, written(tor_info(topology)), "scenario", *options)

    assert json.loads(text)["nodes"][0].get("chips") == told


def test_a_scenario_that_could_not_be_read_is_not_printed(
    ringleaf: Ringleaf, written: Write
) -> None:
    topology = Topology(1, switches=(Switch(0, "L", (Server("n", 0, 16),)),))
    file = written(tor_info(topology))

    assert ringleaf("topology", "convert", file, "--to", "scenario") == (
        2,
        "",
        (
            f"ringleaf: {file}: as a scenario, nodes[0].chips is 16, want 8 or no such "
            "key; hint: every atlas-800t-a2 has 8 chips\n"
        ),
    )


def test_a_topology_with_problems_is_not_converted(ringleaf: Ringleaf) -> None:
    done = ringleaf("topology", "convert", BROKEN, "--to", "json")

    assert (done.status, done.out) == (1, "")
    lines = done.err.splitlines()
    assert sum(line.startswith("ringleaf: warning: ") for line in lines) == 2
    assert sum(line.startswith(f"ringleaf: {BROKEN}: ") for line in lines) == 8


def test_a_leaf_size_that_is_too_small_is_a_problem(ringleaf: Ringleaf) -> None:
    options = ("--to", "json", "--leaf-size", "3")
    done = ringleaf("topology", "convert", SOUND, *options)

    assert (done.status, done.out) == (1, "")
    assert "10.0.0.1': 4 nodes, want at most 3" in done.err


def test_a_configmap_too_large_for_kubernetes_is_a_warning(
    ringleaf: Ringleaf, written: Write
) -> None:
    file = written(tor_info(regular(200, 100)))
    done = ringleaf("topology", "convert", file, "--to", "configmap")

    assert done.status == 0
    assert done.err.startswith(f"ringleaf: warning: {file}: the ConfigMap has ")
    assert done.err.endswith("want at most 1048576: Kubernetes takes no larger one\n")


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ("check", "FILE is missing, want ConfigMap basic-tor-node-cm"),
        (
            f"convert {SOUND}",
            "--to is missing, want configmap, json, scenario or csv; hint: ",
        ),
        (
            f"convert {SOUND} --to png",
            "--to is 'png', want configmap, json, scenario or csv; hint: ",
        ),
        (
            f"convert {SOUND} --to csv --leaf-size 0",
            "--leaf-size is 0, want a whole number, at least 1",
        ),
        (
            f"convert {SOUND} --to csv --product x",
            "--product is 'x', want a product of the catalogue; hint: ringleaf",
        ),
        ("nope", "unknown command 'topology nope'; hint: ringleaf topology --help"),
    ],
)
def test_bad_use_is_one_line_and_status_2(
    ringleaf: Ringleaf, call: str, line: str
) -> None:
    done = ringleaf("topology", *call.split())

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"ringleaf: {line}")
    assert done.err.count("\n") == 1


def test_the_group_alone_shows_its_help(ringleaf: Ringleaf) -> None:
    done = ringleaf("topology")

    assert done.status == 2
    assert done.out == ringleaf("topology", "-h").out


@pytest.mark.parametrize("command", SUBCOMMANDS)
def test_help_has_examples_that_work(ringleaf: Ringleaf, command: str) -> None:
    help_page = ringleaf("topology", *command.split(), "--help")
    shown = commands_of(help_page.out)

    assert (help_page.status, help_page.err) == (0, "")
    assert max(map(len, help_page.lines)) <= 88
    assert shown
    for arguments in shown:
        done = ringleaf(*arguments)
        assert (done.status in (0, 1), done.err) == (True, ""), arguments


def trace() -> str:
    """A real cluster: 847 nodes; skips the test where it is not there."""
    path = TRACES / "lingjun2023_topo.csv"
    if not path.exists():
        pytest.skip(f"no {path.name}")
    return str(path)


def test_a_real_cluster_is_checked_drawn_and_converted(
    ringleaf: Ringleaf, drawn: Drawn, written: Write
) -> None:
    leaf = ("--leaf", "PSW,ASW")
    svg = drawn(trace(), *leaf)
    manifest = converted(ringleaf, trace(), "configmap", *leaf)
    checked = ringleaf("topology", "check", written(manifest), columns=88)
    scenario = converted(ringleaf, trace(), "scenario", *leaf)

    assert (boxes(svg, "card"), boxes(svg, "node")) == (119, 847 + 1)
    assert checked.status == 0
    assert checked.lines[0].startswith("119 leaves, 847 nodes, 2 to 8 nodes per leaf")
    assert max(map(len, checked.lines)) <= 88
    assert len(load(scenario.encode())[0].nodes) == 847
    assert ringleaf("plan", written(scenario)).status == 0


ROOMS = "node,room,rack\na,A,1\nb,B,1\n"


def leaves(
    ringleaf: Ringleaf, file: Path, *options: str
) -> tuple[list[str], list[str]]:
    """The leaves of a CSV file, and the warnings about it."""
    told = json.loads(ringleaf("topology", "check", str(file), *options, "--json").out)
    return [leaf["leaf"] for leaf in told["topology"]], told["warnings"]


@pytest.mark.parametrize(
    ("text", "options", "names", "warned"),
    [
        (ROOMS, (), ["A/1", "B/1"], ""),
        (ROOMS, ("--leaf", "room,rack"), ["A/1", "B/1"], ""),
        (
            ROOMS,
            ("--leaf", "rack"),
            ["1"],
            "",
        ),
        (
            "node,hut,rack\na,A,1\nb,B,1\n",
            (),
            ["1"],
            "column 'hut' is not used: the leaf is named by rack",
        ),
        (
            "node,Room,serial,Rack\na,A,x,1\n",
            (),
            ["A/1"],
            "column 'serial' is not used",
        ),
        (
            "node,rack,leaf\na,1,L\n",
            (),
            ["L"],
            (
                "column 'rack' is not used: the leaf is named by leaf; hint: --leaf "
                "rack,leaf if the leaf is named by both"
            ),
        ),
        (
            "name,room,rack,slot,product\na,A,1,0,x\nb,B,1,0,x\n",
            (),
            ["A/1", "B/1"],
            "columns 'slot', 'product' are not used: the leaf is named by room,rack",
        ),
        ("node,rack,chips\na,1,8\n", (), ["1"], "column 'chips' is not used"),
        ("node,room\na,A\n", (), ["A"], ""),
        (
            "node,a,b,leaf\nx,1,2,L\n",
            (),
            ["L"],
            "columns 'a', 'b' are not used: the leaf is named by leaf",
        ),
        ("room,node,rack\nA,x,1\n", ("--node", "node"), ["A/1"], ""),
    ],
)
def test_racks_are_named_with_the_places_around_them_and_the_rest_is_a_warning(
    ringleaf: Ringleaf,
    tmp_path: Path,
    text: str,
    *,
    options: tuple[str, ...],
    names: list[str],
    warned: str,
) -> None:
    file = tmp_path / "racks.csv"
    file.write_text(text)
    found, warnings = leaves(ringleaf, file, *options)

    assert found == names
    assert [line[: len(warned)] for line in warnings if "used" in line] == (
        [warned] if warned else []
    )


@pytest.mark.parametrize("text", ["n0,L\nn1,L\n", "a,b\nn0,L\n"])
def test_a_first_line_without_known_names_is_said_to_be_taken_as_a_header(
    ringleaf: Ringleaf, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "racks.csv"
    file.write_text(text)
    first, second = text.partition("\n")[0].split(",")

    _found, warnings = leaves(ringleaf, file)

    assert warnings == [f"the first line is taken as a header: {first!r}, {second!r}"]


def test_draw_and_convert_warn_of_unused_columns_too(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    file = tmp_path / "racks.csv"
    file.write_text("node,serial,leaf\na,x,L\n")

    for call in (("draw",), ("convert", "--to", "csv")):
        done = ringleaf("topology", call[0], str(file), *call[1:])
        assert done.status == 0
        assert "warning: " in done.err
        assert "column 'serial' is not used" in done.err
