"""Measures against other ways to count the same, on clusters and runs of all sorts."""

import pickle
from io import BytesIO
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.mask import chips_of, full_mask, mask_of
from ringleaf.model.placement import JobType, Placement
from ringleaf.model.product import Product
from ringleaf.model.settings import LeafChoice, Settings
from ringleaf.policies.fragments import fragments
from ringleaf.policies.products import PRODUCTS
from ringleaf.policies.switches import choose_slices, leaf_table
from ringleaf.simulator.metrics import RunMetrics
from ringleaf.simulator.metrics.chip_usage import ChipUsage
from ringleaf.simulator.metrics.leaves import GANGS, Room
from ringleaf.simulator.metrics.wait_causes import WAIT_CAUSES
from ringleaf.simulator.metrics.wiring import usable
from ringleaf.simulator.trial import JobSpec
from tests.effort import examples
from tests.simulator.stage import RINGS, Stage, nodes, spec

A2 = PRODUCTS["atlas-800t-a2"]
WIRED = [
    "atlas-800-9000",
    "atlas-800t-a2",
    "atlas-200t-a2-box16",
    "atlas-900-a3",
    "atlas-350-4p-16",
]


@pytest.mark.parametrize("key", WIRED)
@given(data=st.data())
@settings(max_examples=examples(25))
def test_what_pods_can_use_is_what_the_engine_would_place(
    key: str, data: st.DataObject
) -> None:
    product = PRODUCTS[key]
    every = full_mask(product.chips)
    masks = data.draw(st.lists(st.integers(0, every), min_size=1, max_size=4))
    cluster = Cluster(
        Node(f"n{i}", product, product.chips, mask) for i, mask in enumerate(masks)
    )

    for asked, wasted in fragments(cluster, product).items():
        free = sum(mask.bit_count() for mask in masks)
        assert free - sum(usable(product, m, asked) for m in masks) == wasted


@given(
    st.lists(
        st.tuples(
            st.lists(st.booleans(), min_size=4, max_size=4)
            | st.lists(st.booleans(), min_size=1, max_size=4),
            st.sampled_from([0, 0, 1]),
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from(LeafChoice),
)
def test_the_largest_gang_is_the_largest_that_the_rule_places(
    drawn: list[tuple[list[bool], int]], choice: LeafChoice
) -> None:
    settings = Settings(leaf_choice=choice)
    every = [
        Node(f"n{leaf}{slot}", A2, 8, 0xFF * free, leaf=f"L{leaf}", slot=slot)
        for leaf, (frees, _crossed) in enumerate(drawn)
        for slot, free in enumerate(frees)
    ]
    usage = ChipUsage(every)
    room = Room(usage, settings)
    cluster = Cluster(every)
    for leaf, (_frees, crossed) in enumerate(drawn):
        cluster.uplinks.crossing[leaf] = crossed
        if crossed:
            room.cross(leaf, 1)
    ranks = np.where(cluster.free == 0xFF, 0, -1).astype(np.int64)
    ground = leaf_table(cluster, ranks, settings)
    placed = [
        n
        for n in range(1, len(every) + 1)
        if choose_slices(ground, n, JobType.FOUNDATION, settings) is not None
    ]
    event(f"crossing helps: {max(placed, default=0) > room.most_under_one}")

    if any(crossed and all(frees) for frees, crossed in drawn):
        return  # a leaf that a job crosses has a pod of it
    assert room.largest_gang == max(placed, default=0)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=5))
def test_disjoint_gangs_are_never_more_than_there_are(
    drawn: list[tuple[int, bool]],
) -> None:
    every = [
        Node(f"n{leaf}{slot}", A2, 8, 0xFF * (slot < free), leaf=f"L{leaf}", slot=slot)
        for leaf, (free, _crossed) in enumerate(drawn)
        for slot in range(4)
    ]
    room = Room(ChipUsage(every), Settings())
    for leaf, (_free, crossed) in enumerate(drawn):
        if crossed:
            room.cross(leaf, 1)
    rests = [free % 4 for free, crossed in drawn if not crossed]
    inside = sum(free // 4 for free, _crossed in drawn)

    found = room.gangs_by_rule(4)

    assert inside <= found <= inside + _most_covers(rests, 4)
    anywhere, one_leaf = room.fragmented()
    ruled = room.fragmented_by_rule()
    assert (anywhere[GANGS.index(4)] <= ruled[GANGS.index(4)] + 1e-12).all()
    assert (ruled[GANGS.index(4)] <= one_leaf[GANGS.index(4)] + 1e-12).all()


def _most_covers(rests: list[int], gang: int) -> int:
    """The most groups of leaves with *gang* nodes each, by trying all of them."""
    best = 0
    for count in range(1, len(rests) + 1):
        for group in combinations(range(len(rests)), count):
            if sum(rests[i] for i in group) >= gang:
                left = [n for i, n in enumerate(rests) if i not in group]
                best = max(best, 1 + _most_covers(left, gang))
    return best


def test_greedy_gangs_are_the_best_in_nearly_all_cases() -> None:
    """Over all clusters of four leaves with up to three free nodes of four."""
    same = total = 0
    for drawn in np.ndindex(4, 4, 4, 4):
        every = [
            Node(f"n{leaf}{slot}", A2, 8, 0xFF * (slot < free), leaf=f"L{leaf}")
            for leaf, free in enumerate(drawn)
            for slot in range(4)
        ]
        room = Room(ChipUsage(every), Settings())
        same += room.gangs_by_rule(4) == _most_covers(list(drawn), 4)
        total += 1

    assert same / total > 0.98


class Model:
    """A run of random jobs, and what it comes to, counted in the plainest way."""

    def __init__(self) -> None:
        self.free = {node.name: 0xFF for node in nodes("A 2", "B 2")}
        self.held: dict[str, list[tuple[str, int]]] = {}

    def fit(self, chips: int, pods: int) -> list[tuple[str, int]]:
        """Any chips, on different nodes; none if there are too few."""
        found: list[tuple[str, int]] = []
        for name, free in self.free.items():
            if free.bit_count() >= chips and len(found) < pods:
                found.append((name, mask_of(chips_of(free)[:chips])))
        return found if len(found) == pods else []


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["come", "come", "start", "end", "stop"]),
        st.floats(0, 50),
        st.sampled_from([1, 2, 4, 8]),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=40,
)


class Play:
    """Steps told to the metrics, and counted in the plainest way."""

    def __init__(self, job_specs: list[JobSpec]) -> None:
        self.stage, self.model = Stage(nodes("A 2", "B 2"), job_specs), Model()
        self.waiting: list[str] = []
        self.used_s = self.queue_s = 0.0
        self.starts = 0
        self._coming = iter(job_specs)

    def pass_by(self, seconds: float) -> None:
        held = self.model.held.values()
        self.used_s += seconds * sum(m.bit_count() for own in held for _n, m in own)
        self.queue_s += seconds * len(self.waiting)
        self.stage.at(self.stage.now + seconds)

    def come(self) -> None:
        new = next(self._coming)
        self.stage.arrive(new.job.name)
        self.waiting.append(new.job.name)

    def start(self) -> None:
        if not self.waiting:
            return
        job = self.stage.job_specs[self.waiting[0]].job
        places = self.model.fit(job.chips, job.replicas)
        if places:
            self.starts += 1
            self.model.held[self.waiting.pop(0)] = places
            for node, mask in places:
                self.model.free[node] &= ~mask
            _place(self.stage, job.name, places)

    def release(self) -> str | None:
        name = next(iter(self.model.held), None)
        if name is not None:
            for node, mask in self.model.held.pop(name):
                self.model.free[node] |= mask
        return name

    def end(self) -> None:
        if (name := self.release()) is not None:
            self.stage.end(name)

    def stop(self) -> None:
        if (name := self.release()) is not None:
            self.stage.stop(name, *range(self.stage.job_specs[name].job.replicas))
            self.waiting.append(name)


@given(STEPS)
@settings(max_examples=examples(60))
def test_chip_seconds_in_are_chip_seconds_out(
    steps: list[tuple[str, float, int, int]],
) -> None:
    job_specs = [
        spec(f"j{i}", 0.0, chips, pods)
        for i, (what, _s, chips, pods) in enumerate(steps)
        if what == "come"
    ]
    assume(job_specs)
    play = Play(job_specs)
    for what, seconds, _chips, _pods in steps:
        play.pass_by(seconds)
        getattr(play, what)()
    while play.model.held:
        play.end()
    metrics = play.stage.finish()
    event(f"starts: {min(play.starts, 3)}")

    end = metrics._end  # noqa: SLF001
    assert end is not None
    levels = metrics._areas.named(end[1])  # noqa: SLF001
    assert levels["used"] == pytest.approx(play.used_s)
    assert levels["queue"] == pytest.approx(play.queue_s)
    assert levels["used"] + levels["idle"] == pytest.approx(32 * play.stage.now)
    blamed = sum(levels[f"{blame}_jobs"] for blame in WAIT_CAUSES)
    assert blamed == pytest.approx(play.queue_s)
    assert all(value >= -1e-9 for value in levels.values())
    _is_empty(metrics)


def _place(stage: Stage, name: str, places: list[tuple[str, int]]) -> None:
    pods = enumerate(places)
    stage.place(name, *(Placement(n, at, chips_of(mask)) for n, (at, mask) in pods))


def _is_empty(metrics: RunMetrics) -> None:
    """Nothing is left behind of jobs that are gone."""
    usage, spine, room = metrics._usage, metrics._spine, metrics._room  # noqa: SLF001
    fresh = ChipUsage(nodes("A 2", "B 2"))
    stock = usage.stocks[RINGS]
    assert (usage.used, stock.idle, stock.waste, usage.free) == (0, 32, 0, fresh.free)
    assert (spine.over_one, spine.over_cap, spine.slow) == (0, 0, {})
    assert (spine.uplinks.conflicts, spine.uplinks.n_crossing) == (0, 0)
    assert (room.nodes, room.under, room.crossing) == (4, [2, 2], [0, 0])
    assert room.largest_gang == 4


class Pickler(pickle.Pickler):
    """Products are in the catalogue, and are written down by name."""

    def persistent_id(self, obj: object) -> str | None:
        return obj.key if isinstance(obj, Product) else None


class Unpickler(pickle.Unpickler):
    def persistent_load(self, pid: str) -> Product:
        return PRODUCTS[pid]


def test_a_run_goes_on_after_being_put_away() -> None:
    def first(stage: Stage) -> Stage:
        stage.at(0).arrive("a").start("a", A1="01234567", B0="01234567")
        return stage.at(5).arrive("b")

    def rest(stage: Stage) -> RunMetrics:
        stage.at(10).end("a").start("b", A0="01")
        return stage.at(20).finish()

    job_specs = [spec("a", 0, 8, 2), spec("b", 5, 2)]
    straight = rest(first(Stage(nodes("A 2", "B 2"), job_specs)))
    broken = first(Stage(nodes("A 2", "B 2"), job_specs))
    scheduler = broken.metrics.__dict__.pop("_scheduler")
    file = BytesIO()
    Pickler(file).dump(broken.metrics)
    broken.metrics = Unpickler(BytesIO(file.getvalue())).load()
    broken.metrics.__dict__["_scheduler"] = scheduler

    assert rest(broken).plain() == straight.plain()
    assert broken.metrics.rows() == straight.rows()
