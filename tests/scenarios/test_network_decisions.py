"""One test per decision on the network, named after it; and the scenarios that hold.

Small clusters are tried in many states (all in a long run), and compared with what
the decision says in so many words.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise, permutations, product
from typing import Any, Final

import pytest

from ringleaf.framework.instruction import Bind
from ringleaf.simulator.answer import answer, decide_all
from ringleaf.simulator.run import run
from ringleaf.simulator.scenario import load
from tests.effort import examples
from tests.scenarios.test_decisions import holds

Told = Mapping[str, Any]
Leaves = Mapping[str, Sequence[int]]
"""Leaf -> the slots that have a free node."""

PADDING: Final = "large-model-schema"
FOUNDATION: Final = "large-model-schema"
COMMON: Final = "normal-schema"
A2: Final = "atlas-800t-a2"
A3: Final = "atlas-9000-a3"
"""Nodes of both have eight chips."""

_ALL_LEAVES: Final = [
    {"A": a, "B": b, "C": c}
    for a, b, c in product(
        [slots for size in range(4) for slots in combinations(range(3), size)], repeat=3
    )
]
SOME_LEAVES: Final = [
    _ALL_LEAVES[37 * i % len(_ALL_LEAVES)] for i in range(examples(len(_ALL_LEAVES)))
]
"""Three leaves of three nodes, with any of their nodes free: all of them in a long
run, else some of every kind.
"""


def told(
    nodes: Sequence[Told],
    jobs: Sequence[Told],
    settings: Told | None = None,
    **rest: object,
) -> list[Told]:
    """What becomes of *jobs*, as the command prints it."""
    document = {"nodes": nodes, "jobs": jobs, "settings": settings or {}, **rest}
    (scenario,) = load(json.dumps(document).encode())
    cluster, decisions = decide_all(scenario)
    return [answer(cluster, decision) for decision in decisions]


def under(leaves: Leaves, size: int = 0) -> list[Told]:
    """Whole free nodes under *leaves*: slot 2 of leaf A is node A2.

    A leaf has nodes at all slots below *size*; those that are not listed are taken.
    """
    return [
        {"name": f"{leaf}{slot}", "product": A2, "leaf": leaf, "slot": slot}
        | ({} if slot in slots else {"free": []})
        for leaf, slots in leaves.items()
        for slot in sorted({*slots, *range(size)})
    ]


def pods(superpods: Mapping[int, int]) -> list[Told]:
    """Whole free nodes: SuperPoD -> how many."""
    return [
        {"name": f"p{superpod}-{i}", "product": A3, "superpod": superpod}
        for superpod, count in superpods.items()
        for i in range(count)
    ]


def labelled(replicas: int, affinity: str, **more: object) -> Told:
    """A job of whole nodes with a tor-affinity label."""
    label = {"replicas": replicas, "chips": 8, "tor-affinity": affinity}
    return {"name": "j", **label, **more}


def cut(replicas: int, block: int, **more: object) -> Told:
    """A job of whole nodes in blocks of *block* nodes."""
    return {
        "name": "j",
        "replicas": replicas,
        "chips": 8,
        "sp-block": 8 * block,
        **more,
    }


def where(decision: Told) -> list[str]:
    """The nodes of a placed job in rank order; of any other, nothing."""
    return [placement["node"] for placement in decision.get("placements", [])]


def written(decision: Told, key: str) -> list[str | None]:
    """What an annotation says on each pod."""
    return [pod.get(key) for pod in decision["annotations"]]


def superpods_of(decision: Told) -> list[int]:
    """The SuperPoD of every pod."""
    return [placement["superpod"] for placement in decision.get("placements", [])]


def is_even(slots: Sequence[int], leaf_size: int) -> bool:
    """Whether the load of positions is within one."""
    load_of = Counter(slots)
    loads = [load_of[slot] for slot in range(leaf_size)]
    return max(loads) - min(loads) <= 1


def can_be_even(leaves: Leaves, n: int, leaf_size: int) -> bool:
    """Whether *n* free nodes can load all positions within one of each other."""
    rows, rest = divmod(n, leaf_size)
    has = Counter(slot for slots in leaves.values() for slot in slots)
    enough = [has[slot] >= rows for slot in range(leaf_size)]
    more = [has[slot] > rows for slot in range(leaf_size)]
    return all(enough) and sum(more) >= rest


@pytest.mark.parametrize("affinity", [FOUNDATION, COMMON])
@pytest.mark.parametrize("n", [4, 5, 6, 7, 8])
def test_d10_complete_switches_first(affinity: str, n: int) -> None:
    leaves = {"X": range(3), "A": range(4), "Y": range(2), "B": range(4)}

    guide = {"leaf-choice": "guide"}
    (decision,) = told(under(leaves), [labelled(n, affinity)], guide)

    complete = [f"{leaf}{slot}" for leaf in "AB" for slot in range(4)]
    assert where(decision) == complete[:n]
    assert written(decision, "isSharedTor") == ["0" if n == 4 else "2"] * n


def test_d10_scenarios_hold() -> None:
    assert holds("d10-*")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_d11_padding_takes_the_switch_with_the_fewest_sufficient_nodes(
    version: str, n: int
) -> None:
    settings = {"nslb-version": version, "nodes-per-leaf": 3}
    for leaves in SOME_LEAVES[1:]:
        enough = [leaf for leaf in leaves if len(leaves[leaf]) >= n]
        last = version == "1.0"
        enough = enough[::-1] if last else enough
        best = min(enough, key=lambda leaf: len(leaves[leaf]), default=None)

        (decision,) = told(under(leaves), [labelled(n, PADDING)], settings)

        found = {name[0] for name in where(decision)}
        assert found == ({best} if best else set()), leaves


def test_d11_scenarios_hold() -> None:
    assert holds("seed-001-padding")


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("first", [FOUNDATION, COMMON])
@pytest.mark.parametrize("second", [FOUNDATION, COMMON])
def test_d12_common_jobs_share_common_leaves_where_the_setting_says_so(
    share: bool,  # noqa: FBT001
    first: str,
    second: str,
) -> None:
    settings = {"share-common-leaves": share, "leaf-choice": "guide"}
    leaves = {"A": range(3), "B": range(3), "C": range(2)}
    jobs = [labelled(4, first), labelled(4, second, name="k")]

    one, two = told(under(leaves), jobs, settings)

    assert where(one) == ["A0", "A1", "A2", "B0"]
    shared = share and first == second == COMMON
    assert sorted(where(two)) == (["B1", "B2", "C0", "C1"] if shared else [])
    assert holds("d12-*")


@pytest.mark.parametrize(
    "settings",
    [{"nslb-version": "1.0"}, {"nslb-version": "2.0"}, {"tor-level": "single_layer"}],
    ids=str,
)
def test_d13_the_state_is_written_in_every_mode(settings: Told) -> None:
    (inside,) = told(under({"A": range(3)}), [labelled(3, COMMON)], settings)

    assert written(inside, "isSharedTor") == ["0", "0", "0"]
    assert written(inside, "isHealthy") == ["0", "0", "0"]


def test_d13_a_cross_switch_job_says_exclusive_in_1_0() -> None:
    (across,) = told(under({"A": range(2), "B": range(2)}), [labelled(4, COMMON)])

    assert written(across, "isSharedTor") == ["2", "2", "2", "2"]
    assert written(across, "isHealthy") == ["0", "0", "0", "0"]
    assert written(across, "sharedTorIp") == [None] * 4
    assert holds("d13-*")


def sharing(sizes: Mapping[str, int], rest: int, budget: int) -> list[str] | None:
    """D14 in its own words: the shared leaves that take the remainder, in order."""
    listed = [leaf for leaf in sizes if sizes[leaf]]
    pairs = [
        tuple(sorted(two, key=lambda s: sizes[s])) for two in combinations(listed, 2)
    ]
    groups = pairs if budget == 2 and pairs else [(leaf,) for leaf in listed]
    fitting = [g for g in groups if sum(sizes[leaf] for leaf in g) >= rest]
    if not fitting:
        return None
    best = min(
        fitting, key=lambda g: (sum(sizes[s] for s in g), sizes[g[0]])
    )  # of equals the first, in order of leaves
    names = [f"{leaf}{slot}" for leaf in best for slot in range(sizes[leaf])]
    return names[:rest]


@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize("rest", [1, 2, 3, 4, 5])
def test_d14_the_remainder_on_shared_leaves(budget: int, rest: int) -> None:
    settings = {"nslb-version": "2.0", "nodes-per-leaf": 4, "shared-tor-num": budget}
    for sizes in product(range(4), repeat=3):
        shared = dict(zip("BCD", sizes, strict=True))
        leaves = {leaf: range(size) for leaf, size in shared.items()}
        states = {leaf: {"state": "shared"} for leaf in shared if shared[leaf]}

        (decision,) = told(
            under({**leaves, "A": range(4)}),
            [labelled(4 + rest, FOUNDATION)],
            settings,
            leaves=states,
        )

        wanted = sharing(shared, rest, budget)
        assert where(decision)[4:] == (wanted or []), shared


@pytest.mark.parametrize("rest", [1, 2, 3])
def test_d14_an_idle_leaf_takes_the_remainder_before_a_shared_one(rest: int) -> None:
    leaves = {"A": range(4), "B": range(4), "C": range(3), "D": range(2), "S": range(3)}

    (decision,) = told(
        under(leaves),
        [labelled(4 + rest, FOUNDATION)],
        {"nslb-version": "2.0"},
        leaves={"S": {"state": "shared"}},
    )

    leaf = "C" if rest == 3 else "D"
    assert where(decision)[4:] == [f"{leaf}{slot}" for slot in range(rest)]
    assert written(decision, "isSharedTor") == ["2"] * 4 + ["1"] * rest
    assert holds("d14-*")


def test_d15_the_order_of_the_seed_literally() -> None:
    columns = zip(range(18, 26), range(26, 34), strict=True)
    order = [free for row in columns for free in row] + [*range(34, 49)]
    assert order[:4] == [18, 26, 19, 27]

    for better, worse in pairwise(order):
        (decision,) = told(pods({0: worse, 1: better}), [cut(16, 8)])
        assert {*superpods_of(decision)} == {1}, (better, worse)


@pytest.mark.parametrize("reserve", [0, 2, 10])
@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_d15_a_feasible_hard_job_never_waits(reserve: int, blocks: int) -> None:
    for sizes in product(range(6), repeat=3):
        free = dict(enumerate(sizes))

        (decision,) = told(
            [*pods(free), {"name": "x", "product": A3}],
            [cut(2 * blocks, 2)],
            {"reserve-nodes": reserve},
        )

        feasible = sum(size // 2 for size in sizes) >= blocks
        assert (decision["verdict"] == "placed") == feasible, sizes
        chosen = superpods_of(decision)
        assert chosen[::2] == chosen[1::2], sizes


@pytest.mark.parametrize("reserve", [0, 1, 3])
def test_d15_the_reserve_is_kept_where_it_can_be(reserve: int) -> None:
    for sizes in product(range(7), repeat=3):
        free = dict(enumerate(sizes))

        (decision,) = told(
            [*pods(free), {"name": "x", "product": A3}],
            [cut(4, 2)],
            {"reserve-nodes": reserve},
        )

        beside = sum(max(0, size - reserve) // 2 for size in sizes)
        used = Counter(superpods_of(decision))
        kept = all(free[s] - count >= reserve for s, count in used.items())
        assert kept or beside < 2, sizes


def test_d15_queue_3_is_strictly_descending_and_soft_only() -> None:
    for sizes in permutations(range(1, 6)):
        nodes = pods(dict(enumerate(sizes)))
        jobs = [cut(15, 15, name="hard"), cut(15, 15, **{"super-pod-affinity": "soft"})]

        hard, soft = told(nodes, jobs)

        assert hard["verdict"] == "waiting"
        assert [sizes[s] for s in dict.fromkeys(superpods_of(soft))] == [5, 4, 3, 2, 1]
    assert holds("d15-*")


def test_d16_lowest_superpod_then_lowest_name_sub_healthy_last() -> None:
    nodes = [
        {"name": "d", "product": A3, "superpod": 1},
        {"name": "a", "product": A3, "superpod": 1, "sub-healthy": True},
        {"name": "c", "product": A3, "superpod": 1},
        {"name": "x", "product": A3, "superpod": 2},
        {"name": "y", "product": A3, "superpod": 2},
        {"name": "z", "product": A3, "superpod": 2},
    ]
    jobs = [cut(2, 2, name=name) for name in ("one", "two")]

    answers = {
        tuple(tuple(where(decision)) for decision in told(listed, jobs))
        for listed in permutations(nodes)
    }

    assert answers == {(("c", "d"), ("x", "y"))}
    assert holds("d16-superpods")


def after_a_fault(
    nodes: Sequence[Told], job: Told, settings: Told, keep: str
) -> Iterator[tuple[list[str], str, Told]]:
    """Let each node of a placed job fail: where it was, which failed, and now."""
    (before,) = told(nodes, [job], settings)
    placements = [
        {key: p[key] for key in ("replica", "node", "chips")} | {"annotations": pod}
        for p, pod in zip(before["placements"], before["annotations"], strict=True)
    ]
    for failed in where(before):
        previous = {"placements": placements, "failed-nodes": [failed], "keep": keep}
        (after,) = told(nodes, [{**job, "previous": previous}], settings)
        yield where(before), failed, after


MODES: Final = {
    "padding, 1.0": ({"A": range(4)}, labelled(3, PADDING), "1.0"),
    "padding, 2.0": ({"A": range(4)}, labelled(3, PADDING), "2.0"),
    "common, 1.0": ({"A": range(2), "B": range(2)}, labelled(3, COMMON), "1.0"),
    "foundation, 1.0": (
        {"A": range(3), "B": range(3), "C": range(3)},
        labelled(5, FOUNDATION),
        "1.0",
    ),
    "foundation, 2.0": (
        {"A": range(3), "B": range(3)},
        labelled(5, FOUNDATION),
        "2.0",
    ),
}


@pytest.mark.parametrize("keep", ["pods", "job"])
@pytest.mark.parametrize("mode", MODES)
def test_d17_healthy_pods_keep_their_nodes_and_only_the_others_move(
    mode: str, keep: str
) -> None:
    leaves, job, version = MODES[mode]
    settings = {"nslb-version": version}

    for before, failed, after in after_a_fault(under(leaves), job, settings, keep):
        now = where(after)
        assert len(now) == len(before), failed
        moved = [old for old, new in zip(before, now, strict=True) if old != new]
        assert moved == [failed]
        if mode == "foundation, 1.0":
            assert is_even([int(name[1]) for name in now], 3)


@pytest.mark.parametrize("keep", ["pods", "job"])
def test_d17_a_padding_job_stays_in_its_switch_or_moves_whole(keep: str) -> None:
    leaves, job = {"A": range(3), "B": range(3)}, labelled(3, PADDING)

    for before, _failed, after in after_a_fault(under(leaves), job, {}, keep):
        assert before == ["B0", "B1", "B2"]
        assert where(after) == ([] if keep == "pods" else ["A0", "A1", "A2"])


@pytest.mark.parametrize("keep", ["pods", "job"])
def test_d17_a_block_stays_in_its_superpod_or_moves_whole(keep: str) -> None:
    job, settings = cut(4, 2), {"reserve-nodes": 0}

    for before, failed, after in after_a_fault(
        pods({0: 3, 1: 2, 2: 2}), job, settings, keep
    ):
        assert before == ["p1-0", "p1-1", "p2-0", "p2-1"]
        block = before.index(failed) // 2
        expected = [*before]
        expected[2 * block : 2 * block + 2] = ["p0-0", "p0-1"]
        assert where(after) == ([] if keep == "pods" else expected)


def test_d17_scenarios_hold() -> None:
    assert holds("d17-*")
    assert holds("seed-001-faults")


def test_d27_the_superpod_rule_places_and_the_label_has_no_effect() -> None:
    nodes = [{**node, "leaf": f"L{i}"} for i, node in enumerate(pods({0: 2, 1: 3}))]
    plain, both = cut(3, 3), cut(3, 3, **{"tor-affinity": PADDING})

    (without,) = told(nodes, [plain])
    (with_label,) = told(nodes, [both])

    assert where(without) == where(with_label) == ["p1-0", "p1-1", "p1-2"]
    assert without["annotations"] == with_label["annotations"]
    assert "warnings" not in without
    assert any("tor-affinity" in warning for warning in with_label["warnings"])
    assert holds("d27-*")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("affinity", [None, COMMON, FOUNDATION])
@pytest.mark.parametrize("inside", [1, 2, 4])
def test_d28_jobs_inside_a_switch_leave_it_idle_on_the_spine(
    version: str, affinity: str | None, inside: int
) -> None:
    leaves = {"A": range(5), "B": range(5)}
    full = [*range(8)]
    old = {
        "name": "old",
        "replicas": inside,
        "chips": 8,
        "placements": [
            {"replica": i, "node": f"A{i}", "chips": full} for i in range(inside)
        ],
    }
    old |= {"tor-affinity": affinity} if affinity else {}
    n = 10 - inside

    (decision,) = told(
        under(leaves), [labelled(n, COMMON)], {"nslb-version": version}, running=[old]
    )

    free = [f"B{i}" for i in range(5)] + [f"A{i}" for i in range(inside, 5)]
    assert where(decision) == free
    assert {*written(decision, "isSharedTor")} == {"2"}


def test_d28_a_job_that_crosses_a_switch_does_not() -> None:
    leaves = {"A": range(3), "B": range(3), "C": range(3)}
    placements = [{"replica": i, "node": f"{'AB'[i]}0", "chips": [0]} for i in (0, 1)]
    old = {"name": "old", "replicas": 2, "chips": 1, "placements": placements}

    (decision,) = told(under(leaves), [labelled(4, COMMON)], running=[old])

    assert decision["verdict"] == "waiting"
    assert decision["reasons"]["leaf-closed"] == 4
    assert holds("d28-*")


@pytest.mark.parametrize("n", [4, 5, 6])
def test_d29_a_foundation_job_loads_all_positions_within_one(n: int) -> None:
    for leaves in SOME_LEAVES[1:]:
        settings = {"nodes-per-leaf": 3}

        (decision,) = told(under(leaves, 3), [labelled(n, FOUNDATION)], settings)

        placed = where(decision)
        assert bool(placed) == can_be_even(leaves, n, 3), leaves
        assert is_even([int(name[1]) for name in placed], 3), leaves


@pytest.mark.parametrize("n", [3, 4, 5])
def test_d29_a_common_job_does_if_it_can_and_is_placed_anyway(n: int) -> None:
    for leaves in SOME_LEAVES[1:]:
        settings = {"nodes-per-leaf": 3}

        (decision,) = told(under(leaves, 3), [labelled(n, COMMON)], settings)

        placed = where(decision)
        assert bool(placed) == (sum(map(len, leaves.values())) >= n), leaves
        if can_be_even(leaves, n, 3):
            assert is_even([int(name[1]) for name in placed], 3), leaves
    assert holds("d29-*")


def test_d30_a_logical_switch_for_all_but_padding_jobs() -> None:
    leaves = {"A": [0], "B": [0], "C": [2], "D": [2], "E": [1]}
    settings = {"nodes-per-leaf": 5}

    (common,) = told(under(leaves, 5), [labelled(3, COMMON)], settings)
    (padding,) = told(under(leaves, 5), [labelled(3, PADDING)], settings)
    (foundation,) = told(
        under({**leaves, "F": [4]}, 5), [labelled(4, FOUNDATION)], settings
    )

    assert [name[1] for name in where(common)] == ["0", "1", "2"]
    assert padding["verdict"] == "waiting"
    assert [name[1] for name in where(foundation)] == ["0", "1", "2", "4"]
    assert holds("d30-*")


def test_d31_chip_rank_first_then_slot_and_ranks_by_slot() -> None:
    sizes = (8, 4, 6, 4)
    for free in permutations(sizes):
        nodes = [
            {**node, "free": [*range(size)]}
            for node, size in zip(under({"A": range(4)}), free, strict=True)
        ]

        (three,) = told(nodes, [labelled(3, PADDING, chips=4)])
        (one,) = told(nodes, [labelled(1, PADDING, chips=4)])

        without_largest = [f"A{i}" for i in range(4) if free[i] != 8]
        assert where(three) == without_largest
        assert where(one) == [f"A{free.index(4)}"]
    assert holds("d31-*")


@pytest.mark.parametrize(
    "settings",
    [{}, {"nslb-version": "2.0"}, {"tor-level": "single_layer"}],
    ids=["1.0", "2.0", "single-layer"],
)
def test_d35_equal_leaves_go_by_health_then_by_fragments(settings: Told) -> None:
    """Three leaves of one node each, in every order: the best of the three."""
    worth: list[Told] = [{"free": [0]}, {}, {"faulty": [7]}, {"sub-healthy": True}]
    for order in permutations(range(4), 3):
        nodes = [
            {**node, **worth[kind]}
            for node, kind in zip(
                under({"A": [0], "B": [0], "C": [0]}), order, strict=True
            )
        ]

        (one,) = told(nodes, [labelled(1, COMMON, chips=1)], settings)

        assert where(one) == [nodes[order.index(min(order))]["name"]]
    assert holds("d35-*")


def test_d36_compact_takes_complete_leaves_of_any_size_and_the_tightest_rest() -> None:
    """Leaves of one to four nodes, all free: every job that fits, by arithmetic."""
    for sizes in product(range(1, 5), repeat=3):
        nodes = under({leaf: range(n) for leaf, n in zip("ABC", sizes, strict=True)})
        for n in range(max(4, max(sizes) + 1), sum(sizes) + 1):
            (found,) = told(nodes, [labelled(n, FOUNDATION)])

            left, taken = n, Counter[str]()
            for leaf, size in sorted(
                zip("ABC", sizes, strict=True), key=lambda s: -s[1]
            ):
                if size <= left:
                    taken[leaf] = size
                    left -= size
            if left:
                free = [(s, leaf) for leaf, s in zip("ABC", sizes, strict=True)]
                taken[min(f for f in free if f[0] >= left and f[1] not in taken)[1]] = (
                    left
                )
            assert Counter(name[0] for name in where(found)) == taken
    assert holds("d36-*")


def test_d36_the_guide_takes_the_next_complete_leaf() -> None:
    """Leaf C has the very nodes that are left; the guide takes them from B."""
    nodes = under({"A": range(4), "B": range(4), "C": range(2)})
    settings = {"nodes-per-leaf": 4}

    (compact,) = told(nodes, [labelled(6, FOUNDATION)], settings)
    guided = settings | {"leaf-choice": "guide"}
    (guide,) = told(nodes, [labelled(6, FOUNDATION)], guided)

    assert where(compact) == ["A0", "A1", "A2", "A3", "C0", "C1"]
    assert where(guide) == ["A0", "A1", "A2", "A3", "B0", "B1"]


def test_d41_padding_in_2_0_spares_idle_leaves() -> None:
    """Exclusive, unhealthy, shared, idle; in each the tightest. Any leaves may fit."""
    order = [
        {"state": "exclusive"},
        {"state": "shared", "healthy": False},
        {"state": "shared"},
        {"state": "idle"},
    ]
    for kinds in product(range(4), repeat=3):
        for sizes in permutations([2, 3, 4]):
            nodes = under({x: range(n) for x, n in zip("ABC", sizes, strict=True)})
            leaves = {x: order[kind] for x, kind in zip("ABC", kinds, strict=True)}

            (two,) = told(
                nodes, [labelled(2, PADDING)], {"nslb-version": "2.0"}, leaves=leaves
            )

            best = min(zip(kinds, sizes, "ABC", strict=True))[2]
            assert {name[0] for name in where(two)} == {best}


def test_d43_scenarios_hold() -> None:
    assert holds("d43-*")


def test_d35_equal_superpods_go_by_health() -> None:
    """SuperPoDs of three nodes, any of them sub-healthy; the job takes two."""
    for sick in product(range(4), repeat=3):
        nodes = [
            {**node, "sub-healthy": int(str(node["name"])[-1]) < sick[i // 3]}
            for i, node in enumerate(pods({0: 3, 1: 3, 2: 3}))
        ]

        (two,) = told(nodes, [cut(2, 2)], {"reserve-nodes": 0})

        worst = [max(0, count - 1) for count in sick]
        assert superpods_of(two) == [worst.index(min(worst))] * 2


@pytest.mark.parametrize(
    ("key", "chips", "named"),
    [
        ("atlas-800-9000", 8, {"1.0"}),
        ("atlas-300t", 2, {"1.0"}),
        ("atlas-800t-a2", 8, {"1.0", "2.0"}),
        ("atlas-800i-a2", 8, {"single-layer"}),
        ("a200i-a2-box", 8, {"single-layer"}),
        ("atlas-200t-a2-box16", 16, {"1.0", "2.0"}),
        ("atlas-800t-a3", 16, set()),
    ],
)
def test_d33_another_product_is_placed_by_the_same_rule_with_a_warning(
    key: str, chips: int, named: set[str]
) -> None:
    modes = {
        "1.0": {"nslb-version": "1.0"},
        "2.0": {"nslb-version": "2.0"},
        "single-layer": {"tor-level": "single_layer"},
    }
    nodes = [{**node, "product": key} for node in under({"A": range(3), "B": range(2)})]
    for mode, settings in modes.items():
        (decision,) = told(nodes, [labelled(2, PADDING, chips=chips)], settings)

        assert where(decision) == ["B0", "B1"]
        assert ("warnings" in decision) == (mode not in named), mode


@pytest.mark.parametrize("affinity", [COMMON, FOUNDATION])
def test_d33_a_virtual_npu_with_tor_affinity_is_invalid(affinity: str) -> None:
    job = {"name": "j", "chips": 1, "vnpu": "vir04", "tor-affinity": affinity}

    (decision,) = told(under({"A": range(2)}), [job])

    assert decision["verdict"] == "invalid"
    assert holds("d33-*")


def plain(replicas: int, chips: int = 8, **more: object) -> Told:
    """A job without a tor-affinity label."""
    return {"name": "j", "replicas": replicas, "chips": chips, **more}


def test_d38_without_a_label_a_job_stays_inside_one_leaf_where_ranks_tie() -> None:
    nodes = under({"A": [0], "B": [0, 1, 2], "C": [0, 1]})

    (decision,) = told(nodes, [plain(2)])

    assert where(decision) == ["C0", "C1"]
    assert "warnings" not in decision


def test_d38_chip_rank_comes_before_the_leaf() -> None:
    """Half a node is taken before a fresh one, wherever it is."""
    nodes = under({"A": [1], "B": [0, 1]})
    nodes.append({"name": "A0", "product": A2, "leaf": "A", "slot": 0, "free": [0, 1]})

    (decision,) = told(nodes, [plain(5, chips=2)])

    assert where(decision) == ["A0", "A1", "A1", "A1", "A1"]


def test_d38_the_leaf_comes_before_the_scores_of_plugins() -> None:
    """Nodeorder would spread the pods over the emptiest nodes of both leaves."""
    cores = {"A0": 4, "A1": 64, "B0": 32, "B1": 32}
    nodes = [
        {**node, "resources": {"cpu": cores[node["name"]], "memory": "64Gi"}}
        for node in under({"A": [0, 1], "B": [0, 1]})
    ]
    job = plain(2, resources={"cpu": 2, "memory": "1Gi"})
    document = {"nodes": nodes, "jobs": [job], "queues": []}

    (scenario,) = load(json.dumps(document).encode())
    (step,) = run(scenario).steps
    (bind,) = [said for said in step.instructions if isinstance(said, Bind)]

    assert sorted(each.node for each in bind.placements) == ["A0", "A1"]


@pytest.mark.parametrize(
    ("default", "job", "nodes", "state"),
    [
        pytest.param("none", plain(2), ["C0", "C1"], None, id="none: no rule"),
        pytest.param("normal-schema", plain(2), ["C0", "C1"], "0", id="common"),
        pytest.param(
            "large-model-schema", plain(3), ["B0", "B1", "B2"], "0", id="padding"
        ),
        pytest.param(
            *("large-model-schema", plain(2, 8, **{"tor-affinity": "null"})),
            *(["C0", "C1"], None),
            id="null declines",
        ),
        pytest.param("large-model-schema", plain(1), ["A0"], None, id="one pod"),
        pytest.param(
            "large-model-schema",
            plain(2, 4),
            ["A0", "A0"],
            None,
            id="one node holds it",
        ),
        pytest.param(
            *("large-model-schema", plain(2, 8, **{"tor-affinity": "normal-schema"})),
            *(["C0", "C1"], "0"),
            id="its own label counts",
        ),
    ],
)
def test_d38_what_jobs_without_the_label_count_as(
    default: str, job: Told, nodes: list[str], state: str | None
) -> None:
    there = under({"A": [0], "B": [0, 1, 2], "C": [0, 1]})

    (decision,) = told(there, [job], {"default-tor-affinity": default})

    assert where(decision) == nodes
    assert {*written(decision, "isSharedTor")} == {state}
    assumed = default != "none" and state == "0" and "tor-affinity" not in job
    said = [
        f"it has no label tor-affinity and counts as {default} (default-tor-affinity)"
    ]
    assert [*decision.get("warnings", [])] == said * assumed


def test_d38_the_rule_of_the_default_binds() -> None:
    """Three nodes of two leaves: a padding job waits, and says by which setting."""
    there = under({"A": [0], "B": [0, 1]})

    (free,) = told(there, [plain(3)])
    (bound,) = told(there, [plain(3)], {"default-tor-affinity": "large-model-schema"})

    assert (free["verdict"], bound["verdict"]) == ("placed", "waiting")
    assert "default-tor-affinity" in bound["warnings"][0]


@pytest.mark.parametrize(
    ("product", "more"),
    [
        pytest.param("atlas-300i-duo", {}, id="a product without a switch mode"),
        pytest.param(A3, {}, id="SuperPoDs place it"),
    ],
)
def test_d38_the_default_is_for_products_of_the_switch_mode(
    product: str, more: Told
) -> None:
    nodes = [
        {"name": f"n{i}", "product": product, "chips": 8, "superpod": 0, "leaf": "A"}
        for i in range(5)
    ]
    job = {"name": "j", "replicas": 5, "chips": 8, **more}

    (decision,) = told(nodes, [job], {"default-tor-affinity": "normal-schema"})

    assert decision["verdict"] == "placed"
    assert "warnings" not in decision


def test_d38_a_job_that_the_rule_would_make_illegal_goes_without_it() -> None:
    roles = [{"name": "a", "chips": 8, "replicas": 2}, {"name": "b", "chips": 4}]
    settings = {"default-tor-affinity": "normal-schema"}

    (decision,) = told(
        under({"A": [0, 1, 2]}), [{"name": "j", "roles": roles}], settings
    )

    assert decision["verdict"] == "placed"
    assert "warnings" not in decision


def test_d38_running_jobs_count_as_the_default_too() -> None:
    """In 2.0 a labelled job that crosses leaves closes them; an unlabelled one not."""
    nodes = under({"A": [0, 1, 2], "B": [0, 1, 2]})
    held = [
        {"replica": i, "node": node, "chips": [*range(8)]}
        for i, node in enumerate(["A0", "B0"])
    ]
    running = [{"name": "old", "replicas": 2, "chips": 8, "placements": held}]
    job = labelled(4, FOUNDATION)
    shared = {"nslb-version": "2.0", "shared-tor-num": 1}

    (free,) = told(nodes, [job], shared, running=running)
    default = {**shared, "default-tor-affinity": "large-model-schema"}
    (bound,) = told(nodes, [job], default, running=running)

    assert (free["verdict"], bound["verdict"]) == ("placed", "waiting")


@pytest.mark.parametrize(
    ("framework", "settings", "warns"),
    [
        ("pytorch", {"nslb-version": "2.0"}, False),
        ("PyTorch", {"nslb-version": "2.0"}, False),
        ("mindspore", {"nslb-version": "2.0"}, True),
        ("tensorflow", {"nslb-version": "2.0"}, True),
        (None, {"nslb-version": "2.0"}, False),
        ("mindspore", {"nslb-version": "1.0"}, False),
        ("tensorflow", {"nslb-version": "1.0"}, True),
        ("mindie", {"tor-level": "single_layer"}, False),
    ],
)
def test_d40_another_framework_is_placed_by_the_same_rule_with_a_warning(
    framework: str | None, settings: Told, *, warns: bool
) -> None:
    product = "atlas-800i-a2" if "tor-level" in settings else A2
    nodes = [
        {**node, "product": product} for node in under({"A": range(3), "B": range(2)})
    ]

    (decision,) = told(nodes, [labelled(2, PADDING, framework=framework)], settings)

    assert where(decision) == ["B0", "B1"]
    said = decision.get("warnings", [])
    assert bool(said) == warns
    assert all(f"not for framework {framework!r}" in each for each in said)


def test_d40_the_framework_of_a_job_without_the_rule_does_not_matter() -> None:
    settings = {"nslb-version": "2.0"}

    (decision,) = told(
        under({"A": [0, 1]}), [plain(2, framework="mindspore")], settings
    )

    assert "warnings" not in decision
    assert holds("d40-*")
