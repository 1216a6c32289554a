"""The fewest victims against brute force, by itself and in the cluster.

The brute force looks at all sets of pods in which each job gives up no more than its
surplus, or everything.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations, product
from operator import itemgetter
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.actions.victims import Choice, EvictionCandidate, Ranking
from ringleaf.engine.event import JobArrived
from ringleaf.framework.instruction import Evict
from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Schema
from ringleaf.model.placement import Placement
from tests.effort import assert_reached, examples
from tests.engine.story import PREEMPT, Story, conf, job, node

MOST = 12
Pods = frozenset[tuple[str, int]]
Cost = tuple[int, int, float]


def subsets(candidate: EvictionCandidate) -> Iterator[frozenset[int]]:
    """What a job may give up, by the letter."""
    pods = frozenset(candidate.pods)
    sizes = range(min(candidate.surplus, len(pods)) + 1)
    for some in chain.from_iterable(combinations(sorted(pods), n) for n in sizes):
        if not candidate.kept & {*some}:
            yield frozenset(some)
    if candidate.whole:
        yield pods


def cost(
    candidates: Sequence[EvictionCandidate], gone: Sequence[frozenset[int]]
) -> Cost:
    """Pods, pods that were needed, chip-seconds."""
    needed, lost = 0, 0.0
    for one, pods in zip(candidates, gone, strict=True):
        spare = min(one.surplus, len([pod for pod in one.pods if pod not in one.kept]))
        if one.whole and len(pods) == len(one.pods):
            needed += len(pods) - spare
        lost += sum(
            loss for pod, loss in zip(one.pods, one.loss, strict=True) if pod in pods
        )
    return sum(map(len, gone)), needed, lost


def cheapest(
    candidates: Sequence[EvictionCandidate], fits: Callable[[Pods], bool]
) -> Cost | None:
    """The cost of the cheapest way after which it fits."""
    ways = product(*(list(subsets(one)) for one in candidates))
    for least, way in sorted(
        ((cost(candidates, way), way) for way in ways), key=itemgetter(0)
    ):
        gone = (
            (p.job, n) for p, pods in zip(candidates, way, strict=True) for n in pods
        )
        if fits(frozenset(gone)):
            return least
    return None


@st.composite
def candidate_lists(draw: st.DrawFn) -> list[EvictionCandidate]:
    """Up to twelve pods of a few jobs."""
    found, left = [], MOST
    for number in range(draw(st.integers(1, 4))):
        n_pods = draw(st.integers(1, min(4, left)))
        left -= n_pods
        pods = tuple(range(n_pods))[:: draw(st.sampled_from([1, -1]))]
        loss = draw(st.sampled_from([1.0, 2.0, 5.0]))
        found.append(
            EvictionCandidate(
                f"j{number}",
                pods,
                draw(st.integers(0, n_pods)),
                draw(st.booleans()),
                tuple(loss * (1 + (pod % 2)) for pod in pods),
                frozenset(draw(st.sets(st.sampled_from(pods), max_size=1)))
                if draw(st.sampled_from([False, False, True]))
                else frozenset(),
            )
        )
        if not left:
            break
    return found


def pods_of(chosen: Sequence[Choice]) -> Pods:
    return frozenset((one.job, pod) for one in chosen for pod in one.pods)


@settings(max_examples=examples(200))
@given(candidate_lists(), st.data())
def test_the_cheapest_choice_is_brute_forces(
    candidates: list[EvictionCandidate], data: st.DataObject
) -> None:
    """What fits is drawn: enough pods of some, or all of certain ones."""
    all_pods = sorted((one.job, pod) for one in candidates for pod in one.pods)
    wanted = data.draw(st.sets(st.sampled_from(all_pods), max_size=5))
    enough = data.draw(st.integers(0, len(wanted)))

    def fits(gone: Pods) -> bool:
        return len(gone & wanted) >= enough

    found = Ranking(candidates).fewest(
        lambda chosen: True if fits(pods_of(chosen)) else None
    )

    best = cheapest(candidates, fits)
    assert (found is None) == (best is None)
    if found is not None:
        gone = {one.job: frozenset(one.pods) for one in found[0]}
        listed = [gone.get(one.job, frozenset()) for one in candidates]
        assert fits(pods_of(found[0]))
        assert all(
            some in set(subsets(one))
            for one, some in zip(candidates, listed, strict=True)
        )
        assert cost(candidates, listed) == best
        assert best == (
            sum(one.n_pods for one in found[0]),
            sum(one.n_needed for one in found[0]),
            sum(one.loss for one in found[0]),
        )


# In the cluster

LEAVES = [node(f"{leaf}{i}", leaf=leaf, slot=i) for leaf in "ABC" for i in range(2)]


class Case(NamedTuple):
    """Jobs that run, with their places, and one that comes."""

    old: list[tuple[Job, tuple[Placement, ...], float]]
    new: Job


class Style(NamedTuple):
    """How many pods the old jobs have, how many they need, which may be evicted."""

    n_pods: Sequence[int]
    least: Sequence[int | None]
    preemptable: Sequence[bool] = [True] * 4 + [False]


STYLES = (
    Style([1, 1, 1, 2, 2, 3], [None, 1, 3]),
    Style([2, 2, 3], [1]),
    Style([1, 1, 2, 3], [None, 1], [True, False]),
)
"""Jobs of all sorts; elastic ones; jobs of which half are protected."""


@st.composite
def cases(draw: st.DrawFn, style: Style, label: Schema | None) -> Case:
    """Half nodes and whole ones are taken, and a job with *label* comes."""
    halves = [(each.name, half) for each in LEAVES for half in (0, 1)]
    old: list[tuple[Job, tuple[Placement, ...], float]] = []
    left = draw(st.permutations(halves))[: draw(st.integers(10, MOST))]
    while left:
        n_pods = min(len(left), draw(st.sampled_from(style.n_pods)))
        own, left = left[:n_pods], left[n_pods:]
        least = draw(st.sampled_from(style.least))
        one = job(
            f"j{len(old)}",
            4,
            n_pods,
            min_available=least and min(least, n_pods),
            preemptable=draw(st.sampled_from(style.preemptable)),
        )
        places = tuple(
            Placement(n, name, tuple(range(4 * half, 4 * half + 4)))
            for n, (name, half) in enumerate(own)
        )
        old.append((one, places, draw(st.sampled_from([-10.0, -20.0, -30.0]))))
    pods = draw(st.sampled_from([2, 2, 3] if label else [2, 2, 3, 1]))
    chips = draw(st.sampled_from([8, 8, 4]))
    new = job("new", chips, pods, priority=1, tor_affinity=label)
    return Case(old, new)


def candidates_of(case: Case) -> list[EvictionCandidate]:
    """The pods that may be evicted, by what the jobs say of themselves."""
    return [
        EvictionCandidate(
            one.name,
            tuple(p.replica for p in places),
            one.n_pods - one.min_pods,
            whole=True,
            loss=tuple(-started * len(p.chips) for p in places),
        )
        for one, places, started in case.old
        if one.preemptable
    ]


def fits_without(case: Case, gone: Pods) -> bool:
    """Whether the new job is placed in a cluster without the pods that are *gone*."""
    cluster = Cluster(LEAVES)
    with Statement(cluster) as statement:
        for one, places, _started in case.old:
            for p in places:
                if (one.name, p.replica) not in gone:
                    chips = sum(1 << chip for chip in p.chips)
                    statement.hold(one.name, cluster.index[p.node], chips, p.replica)
        statement.commit()
    return Session(cluster).place(case.new) is not None


CONF = conf(PREEMPT, (("priority", "gang", "conformance"),))


def evicted(case: Case) -> tuple[list[Evict], bool]:
    """The engine's evictions, and whether the new job started without any."""
    story = Story(LEAVES, conf=CONF)
    for one, places, started in case.old:
        story.hears(JobArrived(one, places, started))
    story.arrives(case.new)
    return [s for s in story.said if isinstance(s, Evict)], "new" in story.running


def outcome(case: Case) -> str:
    """What became of the case, once it was as brute force says."""
    candidates = candidates_of(case)
    gone, placed = evicted(case)
    if placed:
        assert fits_without(case, frozenset())
        return "placed"
    best = cheapest(candidates, lambda pods: fits_without(case, pods))
    assert (best is None) == (not gone)
    if best is None:
        return "no victims help"
    evicted_pods = {each.job: frozenset(each.replicas) for each in gone}
    listed = [evicted_pods.get(one.job, frozenset()) for one in candidates]
    assert cost(candidates, listed) == best
    return "evicts whole gang" if best[1] else "evicts surplus"


def test_preempt_evicts_the_fewest_pods_that_are_enough() -> None:
    labels = (None, *Schema)
    seen: Counter[str] = Counter()

    def check(case: Case) -> None:
        found = outcome(case)
        seen[found] += 1
        seen[f"evicts by {case.new.tor_affinity}"] += found.startswith("evicts")

    for style, label in product(STYLES, labels):
        settings(max_examples=examples(24))(given(cases(style, label))(check))()
    assert_reached(seen, "no victims help", "evicts whole gang", "evicts surplus")
    assert_reached(seen, *(f"evicts by {label}" for label in labels))
