"""What nodes have besides chips, against what Kubernetes says of it."""

from collections.abc import Mapping

import numpy as np
import pytest

from ringleaf.model.demand import (
    NOTHING,
    UNLIMITED,
    Demand,
    Effect,
    Match,
    Operator,
    PodTerm,
    Preferred,
    PreferredPods,
    Requirement,
    Spread,
    Taint,
    Toleration,
    amount_words,
)
from ringleaf.model.node_table import NodeTable

LABELS: list[Mapping[str, str]] = [
    {"zone": "east", "rack": "7"},
    {"zone": "west", "rack": "12"},
    {"zone": "east"},
    {"rack": "-3"},
    {"rack": "seven"},
]
TRAIN = Taint("npu", Effect.NO_SCHEDULE, "train")
GONE = Taint("gone", Effect.NO_EXECUTE)
SOFT = Taint("busy", Effect.PREFER_NO_SCHEDULE)
TAINTS = [(), (TRAIN,), (SOFT,), (TRAIN, GONE), ()]


def node_table(*resources: Mapping[str, int]) -> NodeTable:
    have = list(resources) or [{}] * len(LABELS)
    return NodeTable(LABELS, TAINTS, have)


def those(flags: np.ndarray) -> list[int]:
    return np.flatnonzero(flags).tolist()


@pytest.mark.parametrize(
    ("key", "operator", "values", "nodes"),
    [
        ("zone", Operator.IN, ("east", "north"), [0, 2]),
        ("zone", Operator.IN, ("north",), []),
        ("zone", Operator.NOT_IN, ("east",), [1, 3, 4]),
        ("zone", Operator.EXISTS, (), [0, 1, 2]),
        ("zone", Operator.DOES_NOT_EXIST, (), [3, 4]),
        ("rack", Operator.GREATER, ("6",), [0, 1]),
        ("rack", Operator.GREATER, ("7",), [1]),
        ("rack", Operator.LESS, ("7",), [3]),
        ("row", Operator.EXISTS, (), []),
        ("row", Operator.NOT_IN, ("1",), [0, 1, 2, 3, 4]),
    ],
    ids=str,
)
def test_a_requirement_selects_nodes(
    key: str, operator: Operator, values: tuple[str, ...], nodes: list[int]
) -> None:
    demand = Demand(required=(Requirement(key, operator, values),))

    assert those(node_table().labels.selected(demand)) == nodes


def test_all_that_is_required_must_hold() -> None:
    east = Requirement("zone", Operator.IN, ("east",))
    racked = Requirement("rack", Operator.EXISTS)

    assert those(node_table().labels.selected(Demand(required=(east, racked)))) == [0]


def test_of_terms_one_must_hold_whole_besides() -> None:
    east = Requirement("zone", Operator.IN, ("east",))
    racked = Requirement("rack", Operator.EXISTS)
    west = Requirement("zone", Operator.IN, ("west",))

    either = Demand(terms=((east, racked), (west,)))
    both = Demand(required=(east,), terms=((east, racked), (west,)))

    assert those(node_table().labels.selected(either)) == [0, 1]
    assert those(node_table().labels.selected(both)) == [0]


def test_nothing_asked_selects_every_node() -> None:
    assert those(node_table().labels.selected(NOTHING)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("toleration", "taint", "covers"),
    [
        (Toleration("npu", value="train"), TRAIN, True),
        (Toleration("npu", value="serve"), TRAIN, False),
        (Toleration("npu"), TRAIN, False),
        (Toleration("npu", Match.EXISTS), TRAIN, True),
        (Toleration("gpu", Match.EXISTS), TRAIN, False),
        (Toleration(None, Match.EXISTS), TRAIN, True),
        (Toleration(None), TRAIN, False),
        (Toleration("npu", Match.EXISTS, effect=Effect.NO_SCHEDULE), TRAIN, True),
        (Toleration("npu", Match.EXISTS, effect=Effect.NO_EXECUTE), TRAIN, False),
        (Toleration("gone"), GONE, True),
    ],
    ids=str,
)
def test_a_toleration_covers_a_taint(
    toleration: Toleration,
    taint: Taint,
    covers: bool,  # noqa: FBT001
) -> None:
    assert toleration.covers(taint) is covers


def test_taints_keep_pods_away_that_do_not_tolerate_them_all() -> None:
    train = Toleration("npu", Match.EXISTS)

    assert those(node_table().taints.tolerated(())) == [0, 2, 4]
    assert those(node_table().taints.tolerated((train,))) == [0, 1, 2, 4]
    assert those(node_table().taints.tolerated((train, Toleration("gone")))) == [
        0,
        1,
        2,
        3,
        4,
    ]


def test_the_first_taint_that_a_pod_does_not_tolerate_is_reported() -> None:
    train = Toleration("npu", Match.EXISTS)

    assert str(node_table().taints.worst_taint(3, ())) == "npu=train:NoSchedule"
    assert str(node_table().taints.worst_taint(3, (train,))) == "gone:NoExecute"


def test_a_fleet_knows_whether_it_has_taints_at_all() -> None:
    assert node_table().taints.tainted
    assert not NodeTable(LABELS, [()] * 5, [{}] * 5).taints.tainted


HAVE: list[Mapping[str, int]] = [
    {"cpu": 64_000, "memory": 100},
    {"cpu": 10_000},
    {},
    {"cpu": 30_000, "memory": 59},
    {"cpu": 0},
]
POD = Demand(resources=(("cpu", 30_000), ("memory", 60)))


def test_nodes_have_room_or_not() -> None:
    found = node_table(*HAVE)

    assert those(found.resources.roomy(POD)) == [0, 2]
    assert [found.resources.has_room(node, POD) for node in range(5)] == [
        True,
        False,
        True,
        False,
        False,
    ]


def test_a_resource_that_no_node_counts_is_unlimited() -> None:
    odd = Demand(resources=(("disk", 5),))

    assert those(node_table(*HAVE).resources.roomy(odd)) == [0, 1, 2, 3, 4]
    assert node_table(*HAVE).resources.room_of(0, "disk") == UNLIMITED


def test_so_many_pods_fit() -> None:
    cpu = Demand(resources=(("cpu", 30_000), ("memory", 0)))

    most = node_table(*HAVE).resources.pods_that_fit(cpu).tolist()

    assert most[:2] + most[3:] == [2, 0, 1, 0]
    assert most[2] > 10**9


def test_what_a_pod_uses_is_given_back_when_it_goes() -> None:
    found = node_table(*HAVE)
    before = found.resources.room.copy()

    found.resources.use(0, Demand(resources=(("disk", 5),)), 1)
    for node in range(5):
        found.resources.use(node, POD, 1)
    during = found.resources.room.copy()
    for node in range(5):
        found.resources.use(node, POD, -1)

    assert during[:, 0].tolist() == [34_000, 40]
    assert during[:, 2].tolist() == [UNLIMITED, UNLIMITED]
    assert (found.resources.room == before).all()


def test_a_node_may_be_overdrawn_and_then_holds_nothing_more() -> None:
    found = node_table(*HAVE)

    found.resources.use(4, POD, 1)

    assert found.resources.room_of(4, "cpu") == -30_000
    assert found.resources.pods_that_fit(POD).tolist()[4] == 0


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (0, "0"),
        (1_000, "1"),
        (1_500, "1500m"),
        (250, "250m"),
        (3 * 2**20 * 1000, "3Mi"),
        (2**50 * 1000, "1Pi"),
        (1_000_000, "1000"),
    ],
)
def test_amounts_as_people_write_them(amount: int, words: str) -> None:
    assert amount_words(amount) == words


def test_what_nodes_have_is_0_where_they_do_not_say() -> None:
    found = node_table(*HAVE)
    cpu = found.resources.have("cpu")

    assert cpu is not None
    assert cpu.tolist() == [64_000, 10_000, 0, 30_000, 0]
    assert found.resources.have("disk") is None
    assert node_table(*[{"cpu": 0}] * 5).resources.have("cpu") is None


def test_what_pods_use_is_0_where_nodes_do_not_say() -> None:
    found = node_table(*HAVE)
    for node in range(5):
        found.resources.use(node, POD, 1)

    assert found.resources.used("cpu", np.array([0, 2, 4])).tolist() == [
        30_000,
        0,
        30_000,
    ]
    assert [found.resources.used_on("memory", node) for node in range(4)] == [
        60,
        0,
        0,
        60,
    ]


def test_what_a_node_has_follows_its_changes() -> None:
    found = node_table(*HAVE)
    before = found.resources.have("disk")
    found.change(2, {}, (), {"disk": 9})
    after = found.resources.have("disk")

    assert before is None
    assert after is not None
    assert after.tolist() == [0, 0, 9, 0, 0]


def test_preferences_of_nodes_add_up_where_they_hold_whole() -> None:
    east = Requirement("zone", Operator.IN, ("east",))
    racked = Requirement("rack", Operator.EXISTS)
    demand = Demand(prefers=(Preferred(10, (east,)), Preferred(3, (east, racked))))

    assert node_table().labels.liked(demand).tolist() == [13, 0, 10, 0, 0]


def test_a_preference_without_requirements_is_none() -> None:
    assert (
        node_table().labels.liked(Demand(prefers=(Preferred(5, ()),))).tolist()
        == [0] * 5
    )


def test_taints_that_only_ask_are_counted_unless_tolerated() -> None:
    found = NodeTable(
        LABELS, [(SOFT,), (SOFT, TRAIN, SOFT), (TRAIN,), (), ()], [{}] * 5
    )

    assert found.taints.disliked(()).tolist() == [1, 2, 0, 0, 0]
    assert found.taints.disliked((Toleration("busy"),)).tolist() == [0] * 5


def rebuilt(
    labels: Mapping[str, str], taints: tuple[Taint, ...], resources: Mapping[str, int]
) -> tuple[NodeTable, NodeTable]:
    """A node table whose node 1 changed, and one made so; the same pods are on both."""
    changed = node_table(*HAVE)
    changed.labels.selected(Demand(required=(Requirement("zone", Operator.EXISTS),)))
    for node in (0, 1, 1, 2):
        changed.resources.use(node, ODD, 1)
    changed.change(1, labels, taints, resources)
    made = NodeTable(
        [LABELS[0], labels, *LABELS[2:]],
        [TAINTS[0], taints, *TAINTS[2:]],
        [HAVE[0], resources, *HAVE[2:]],
    )
    for node in (0, 1, 1, 2):
        made.resources.use(node, ODD, 1)
    return changed, made


ODD = Demand(resources=(("cpu", 5_000), ("disk", 7), ("memory", 3)))
CHANGES = [
    pytest.param({"zone": "north", "row": "4"}, (), {"cpu": 10_000}, id="labels"),
    pytest.param({}, (), {"cpu": 10_000}, id="a label is gone"),
    pytest.param(LABELS[1], (GONE, TRAIN), {"cpu": 10_000}, id="a new list of taints"),
    pytest.param(LABELS[1], (), {"cpu": 4_000}, id="less than is used"),
    pytest.param(LABELS[1], (), {}, id="a resource is counted no more"),
    pytest.param(LABELS[1], (), {"cpu": 1, "memory": 2}, id="one is counted anew"),
    pytest.param(LABELS[1], (), {"disk": 50, "aux": 1}, id="resources never seen"),
]


@pytest.mark.parametrize(("labels", "taints", "resources"), CHANGES)
def test_a_node_that_changed_is_as_one_that_was_made_so(
    labels: Mapping[str, str], taints: tuple[Taint, ...], resources: Mapping[str, int]
) -> None:
    changed, made = rebuilt(labels, taints, resources)
    away = (Toleration("npu", Match.EXISTS),)

    for key in ("zone", "rack", "row"):
        for operator in (Operator.EXISTS, Operator.IN):
            wanted = Demand(required=(Requirement(key, operator, ("north", "west")),))
            assert those(changed.labels.selected(wanted)) == those(
                made.labels.selected(wanted)
            )
    assert those(changed.taints.tolerated(away)) == those(made.taints.tolerated(away))
    for name in ("cpu", "memory", "disk", "aux"):
        for node in range(5):
            assert changed.resources.room_of(node, name) == made.resources.room_of(
                node, name
            )
    assert those(changed.resources.roomy(ODD)) == those(made.resources.roomy(ODD))
    assert changed.version == 1


@pytest.mark.parametrize(("labels", "taints", "resources"), CHANGES)
def test_a_node_that_changes_there_and_back_is_as_before(
    labels: Mapping[str, str], taints: tuple[Taint, ...], resources: Mapping[str, int]
) -> None:
    changed, _made = rebuilt(labels, taints, resources)
    before = node_table(*HAVE)

    changed.change(1, LABELS[1], TAINTS[1], HAVE[1])
    for node in (0, 1, 1, 2):
        changed.resources.use(node, ODD, -1)

    for node in range(5):
        for name in ("cpu", "memory", "disk"):
            assert changed.resources.room_of(node, name) == before.resources.room_of(
                node, name
            )
    assert those(changed.taints.tolerated(())) == those(before.taints.tolerated(()))


def test_a_fleet_is_without_taints_once_the_last_is_gone() -> None:
    found = NodeTable(LABELS, [(), (TRAIN,), (), (), ()], [{}] * 5)

    found.change(1, LABELS[1], (), {})
    after = found.taints.tainted
    found.change(0, LABELS[0], (SOFT,), {})

    assert not after
    assert found.taints.tainted


def test_a_node_that_lists_all_has_nothing_of_what_it_does_not_name() -> None:
    found = NodeTable([{}, {}], [(), ()], [{"cpu": 1000}, {"cpu": 1000}], [True, False])
    asks = Demand(resources=(("gpu", 1000),))

    assert those(found.resources.roomy(asks)) == [1]
    assert found.resources.pods_that_fit(asks).tolist() == [0, UNLIMITED]
    assert (found.resources.room_of(0, "gpu"), found.resources.room_of(1, "gpu")) == (
        0,
        UNLIMITED,
    )
    assert those(found.resources.roomy(Demand(resources=(("gpu", 0),)))) == [0, 1]
    assert found.resources.names == ["cpu"]


def test_what_pods_use_of_what_no_node_names_counts_once_one_does() -> None:
    found = NodeTable([{}] * 3, [()] * 3, [{}] * 3, [True, True, False])
    asks = Demand(resources=(("gpu", 1000),))
    for node in range(3):
        found.resources.use(node, asks, 1)
    found.resources.use(1, asks, 1)
    found.resources.use(1, asks, -1)

    found.change(1, {}, (), {"gpu": 5000}, lists_all=True)

    assert [found.resources.room_of(node, "gpu") for node in range(3)] == [
        -1000,
        4000,
        UNLIMITED,
    ]
    found.change(2, {}, (), {"gpu": 1000}, lists_all=True)
    assert found.resources.room_of(2, "gpu") == 0
    found.change(0, {}, (), {})
    assert found.resources.room_of(0, "gpu") == UNLIMITED
    found.change(0, {}, (), {"gpu": 1000})
    assert found.resources.room_of(0, "gpu") == 0


def test_nothing_is_left_of_resources_that_pods_made_up() -> None:
    found = NodeTable([{}], [()], [{"cpu": 1000}], [True])
    for i in range(10):
        asks = Demand(resources=((f"r{i}", 1000),))
        found.resources.use(0, asks, 1)
        found.resources.use(0, asks, -1)

    assert not found.resources._uncounted  # noqa: SLF001
    assert found.resources.room.shape == (1, 1)


def test_labels_that_no_node_has_are_not_kept() -> None:
    found = node_table()
    terms = tuple((Requirement(f"k{i}", Operator.EXISTS),) for i in range(100))
    zone = (Requirement("zone", Operator.EXISTS),)

    assert those(found.labels.selected(Demand(terms=(*terms, zone)))) == [0, 1, 2]

    assert list(found.labels._columns) == ["zone"]  # noqa: SLF001
    assert (found.labels.has_label("zone"), found.labels.has_label("k1")) == (
        True,
        False,
    )


def test_what_is_selected_is_found_once_until_labels_change() -> None:
    found = node_table()
    east = Demand(required=(Requirement("zone", Operator.IN, ("east",)),))
    first = found.labels.selected(east)

    found.change(1, LABELS[1], (), {"cpu": 1})
    assert found.labels.selected(east) is first

    found.change(1, {"zone": "east"}, (), {"cpu": 1})
    assert those(found.labels.selected(east)) == [0, 1, 2]
    assert those(first) == [0, 2]


def test_a_label_that_the_last_node_loses_is_forgotten() -> None:
    found = NodeTable([{"zone": "a"}, {}], [(), ()], [{}, {}])
    has = Demand(required=(Requirement("zone", Operator.EXISTS),))
    assert those(found.labels.selected(has)) == [0]

    found.change(0, {"rack": "1"}, (), {})
    assert those(found.labels.selected(has)) == []
    assert not found.labels._columns  # noqa: SLF001

    found.change(1, {"zone": "b"}, (), {})
    assert those(found.labels.selected(has)) == [1]


def test_numbers_are_compared_with_values_that_came_later() -> None:
    found = node_table()
    above = Demand(required=(Requirement("rack", Operator.GREATER, ("7",)),))
    assert those(found.labels.selected(above)) == [1]

    below = Demand(required=(Requirement("rack", Operator.LESS, ("7",)),))
    assert those(found.labels.selected(below)) == [3]

    found.change(2, {"rack": "1" * 63}, (), {})
    found.change(0, {"rack": "8"}, (), {})

    assert those(found.labels.selected(above)) == [0, 1, 2]
    assert those(found.labels.selected(below)) == [3]


def test_a_number_longer_than_a_label_is_none() -> None:
    long = Requirement("rack", Operator.GREATER, ("7",))

    assert long.accepts("1" * 63)
    assert not long.accepts("1" * 64)


def test_a_demand_weighs_what_it_says() -> None:
    values = tuple(f"{i:060}" for i in range(100))
    large = Requirement("zone", Operator.IN, values)
    term = PodTerm("zone", (large,))
    light = NOTHING.weight

    for demand in (
        Demand(required=(large,)),
        Demand(terms=((large,),)),
        Demand(prefers=(Preferred(1, (large,)),)),
        Demand(near=(term,)),
        Demand(spread=(Spread("zone", selector=(large,)),)),
        Demand(prefers_apart=(PreferredPods(1, term),)),
        Demand(labels=tuple((f"key-{i}", "x" * 60) for i in range(100))),
    ):
        assert demand.weight > light + 6000
    assert Demand(near=(PodTerm("zone", None),)).weight < light + 1000


def test_pods_that_ask_for_more_than_can_be_counted_are_counted_exactly() -> None:
    """Pods may come with their node, whatever they ask for."""
    found = NodeTable([{}] * 2, [()] * 2, [{"cpu": 64_000}] * 2)
    huge = Demand(resources=(("cpu", (1 << 61) + 1),))
    for _pod in range(10):
        found.resources.use(0, huge, 1)
    found.resources.use(1, huge, 1)

    assert those(found.resources.roomy(Demand(resources=(("cpu", 1),)))) == []
    assert found.resources.pods_that_fit(huge).tolist() == [0, 0]

    found.change(0, {}, (), {"cpu": 32_000})
    for _pod in range(10):
        found.resources.use(0, huge, -1)
    found.resources.use(1, huge, -1)
    assert (found.resources.room_of(0, "cpu"), found.resources.room_of(1, "cpu")) == (
        32_000,
        64_000,
    )
    assert not found.resources._below  # noqa: SLF001


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param((("cpu", 500), ("gpu", 3)), id="what nodes name"),
        pytest.param((("cpu", 500), ("made.up/r", 3)), id="what no node names"),
        pytest.param((("cpu", (1 << 61) + 1),), id="more than can be added up"),
        pytest.param((("cpu", 1 << 61),), id="more than the arrays hold"),
        pytest.param((("cpu", 1 << 60),), id="much"),
    ],
)
def test_many_pods_use_what_one_after_the_other_does(
    resources: tuple[tuple[str, int], ...],
) -> None:
    have = [{"cpu": 64_000}, {"cpu": 1}, {"cpu": 9, "gpu": 9}]
    both = [NodeTable([{}] * 3, [()] * 3, have) for _each in range(2)]
    asks = Demand(resources=resources)
    nodes = [0, 2, 0, 1, 0, 0, 0, 0]
    for _turn in range(2):
        both[0].resources.use_many(np.array(nodes), asks)
        for node in nodes:
            both[1].resources.use(node, asks, 1)

        assert both[0].resources.room.tolist() == both[1].resources.room.tolist()
        assert both[0].resources._uncounted == both[1].resources._uncounted  # noqa: SLF001
        assert both[0].resources._below == both[1].resources._below  # noqa: SLF001


def test_values_and_taints_that_no_node_has_any_more_are_forgotten() -> None:
    found = NodeTable([{"beat": "0"}, {"beat": "x"}], [(), (SOFT,)], [{}] * 2)
    beats = Requirement("beat", Operator.IN, ("199",))
    for i in range(200):
        assert those(found.labels.selected(Demand(required=(beats,)))) == []
        found.change(0, {"beat": str(i)}, (Taint(f"k{i}", Effect.NO_SCHEDULE),), {})

    assert found.labels.labels_of("beat").size < 100
    assert len(found.taints._kinds) < 100  # noqa: SLF001
    assert those(found.labels.selected(Demand(required=(beats,)))) == [0]
    assert those(found.taints.tolerated(())) == [1]
    assert found.taints.worst_taint(0, ()).key == "k199"
    assert found.taints.disliked(()).tolist() == [0, 1]
