"""The search for victims: what it costs, how it is interrupted and goes on."""

import gc
import weakref
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ringleaf.actions import candidates
from ringleaf.actions.evict import evictors
from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.engine.event import (
    ConfChanged,
    Event,
    JobArrived,
    JobGone,
    NodesChanged,
    NodesGone,
    PodsEnding,
    PodsGone,
    QueueGone,
    TimerFired,
)
from ringleaf.framework.instruction import Evict, Report
from ringleaf.framework.job_state import JobState
from ringleaf.framework.plugin import Plugin, Victim
from ringleaf.framework.quota import Quota
from ringleaf.framework.reasons import QueueReason
from ringleaf.framework.reservation import Reservation
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.plugins.proportion import Proportion
from ringleaf.policies.products import NO_NPU
from tests.effort import assert_reached, examples
from tests.engine.story import BOTH, PREEMPT, RECLAIM, Story, conf, job, node, queue

ONE = 0.01
"""A slice so short that it ends after one evictor."""


def full(n_nodes: int, conf: Conf, **low: Any) -> Story:  # noqa: ANN401 - fields of Job
    """Nodes that each are full of one job of queue p; no pod is reported running."""
    nodes = [node(f"n{i:03}") for i in range(n_nodes)]
    story = Story(nodes, queues=[queue("p"), queue("q")], conf=conf)
    story.arrives(*(job(f"low{i:03}", queue="p", **low) for i in range(n_nodes)))
    return story


def arriving(*jobs: Job) -> list[Event]:
    return [JobArrived(each) for each in jobs]


def highs(count: int, **changes: Any) -> list[Job]:  # noqa: ANN401 - fields of Job
    given: dict[str, Any] = {"queue": "p", "priority": 5} | changes
    return [job(f"high{i:03}", **given) for i in range(count)]


def evictions(said: Sequence[str]) -> list[str]:
    return [line for line in said if line.startswith("evict ")]


def in_slices(
    story: Story, *events: Event, now: float = 1, most: float = ONE
) -> list[list[str]]:
    """The evictions, call by call, until everything is decided."""
    calls = [evictions(story.hears(*events, now=now, most=most))]
    while story.engine.has_more:
        calls.append(evictions(story.hears(now=now, most=most)))
        assert len(calls) < 1_000, "the search does not end"
    return calls


# Slices.

VICTIMS = [
    pytest.param(PREEMPT, {}, 8, id="preempt"),
    pytest.param(RECLAIM, {"queue": "q", "priority": 0}, 4, id="reclaim"),
]


@pytest.mark.parametrize(("actions", "changes", "gone"), VICTIMS)
def test_evictions_leave_as_they_are_found(
    actions: str, changes: dict[str, Any], gone: int
) -> None:
    whole = full(8, conf(actions))
    at_once = evictions(whole.arrives(*highs(12, **changes), now=1))
    assert len(at_once) == gone

    calls = in_slices(full(8, conf(actions)), *arriving(*highs(12, **changes)))

    assert [len(call) for call in calls if call] == [1] * gone
    assert [line for call in calls for line in call] == at_once


def test_a_slice_is_as_long_as_it_is_allowed_to_be() -> None:
    few = in_slices(full(40, conf(PREEMPT)), *arriving(*highs(40)), most=4)
    many = in_slices(full(40, conf(PREEMPT)), *arriving(*highs(40)), most=8)

    assert max(map(len, few)) < max(map(len, many)) < 40
    assert sum(map(len, few)) == sum(map(len, many)) == 40


def test_jobs_that_come_while_it_is_searched_are_placed_meanwhile() -> None:
    story = full(4, conf(PREEMPT))
    story.hears(*arriving(*highs(3)), now=1, most=ONE)
    assert story.engine.has_more

    ends = JobGone("low002"), JobGone("low003")
    tiny = job("tiny", 1, queue="p", priority=9)
    said = story.hears(*ends, JobArrived(tiny), now=2, most=1)
    said += story.hears(now=2, most=1)

    assert any(line.startswith("bind tiny") for line in said)
    assert story.engine.has_more


def plain(name: str, **changes: Any) -> Job:  # noqa: ANN401 - fields of Job
    """A job of one pod that asks for a processor and no chips."""
    role = Role("", 0, demand=Demand(resources=(("cpu", 1000),)))
    return Job(name, NO_NPU, 0, 0, roles=(role,), queue="p", **changes)


@pytest.mark.parametrize("actions", [PREEMPT, RECLAIM])
def test_a_job_that_fits_is_bound_in_the_call_in_which_it_arrives(actions: str) -> None:
    """Whatever is left of a search that was cut into slices."""
    story = full(40, conf(actions))
    rank = {"priority": 5} if actions == PREEMPT else {"queue": "q"}
    high = highs(100, **rank)
    comes = [replace(each, estimate_s=100.0 + i) for i, each in enumerate(high)]
    story.hears(*arriving(*comes), now=1, most=1)

    n_calls = 0
    while story.engine.has_more:
        name = f"plain{n_calls:03}"
        said = story.hears(JobArrived(plain(name)), now=1, most=2)
        assert any(line.startswith(f"bind {name}:") for line in said)
        n_calls += 1

    assert n_calls > 4


def test_jobs_that_arrive_during_a_search_have_their_turn() -> None:
    """A job before the others of its queue at once, the rest when it is over."""
    story = full(6, conf(PREEMPT))
    story.hears(*arriving(*highs(3)), now=1, most=ONE)

    late = [job(n, 4, priority=p, queue="p") for n, p in (("low", 4), ("top", 9))]
    calls = in_slices(story, *arriving(*late), now=2)

    evicting = [line.split()[4] for call in calls for line in call]
    assert evicting == ["top", "high001", "high002", "low"]


def test_the_search_of_one_action_is_over_before_that_of_another_begins() -> None:
    """A job that can be helped inside its queue takes nothing from another."""

    def story() -> Story:
        story = full(3, conf(BOTH))
        story.hears(NodesChanged((node("n003"),)))
        story.arrives(job("old", queue="q"))
        return story

    jobs = [job("rank", queue="q", priority=5), job("file", queue="q")]
    whole = evictions(story().arrives(*jobs, now=1))
    assert [line.rpartition(" ")[2] for line in whole] == ["(preempt)", "(reclaim)"]

    calls = in_slices(story(), *arriving(*jobs))

    assert [line for call in calls for line in call] == whole


def test_an_action_that_is_done_waits_for_one_that_is_not() -> None:
    story = full(6, conf(BOTH))
    comes = arriving(*(job(f"q{i}", queue="q") for i in range(3)))
    first = evictions(story.hears(*comes, now=1, most=ONE))
    assert story.engine.context.victim_search.resume is not None
    assert story.engine.context.victim_search.resume.action == "reclaim"

    calls = [first, *in_slices(story, *arriving(*highs(1)), now=2)]

    actions = [line.rpartition(" ")[2] for call in calls for line in call]
    assert actions == ["(reclaim)", "(reclaim)", "(reclaim)", "(preempt)"]


def test_a_job_that_is_gone_when_the_search_goes_on_is_skipped() -> None:
    """Jobs with a reservation because they waited long, and which evict only now."""
    arguments = {"reservation-after-seconds": 10}
    old = {"min-run-seconds": 60}
    queues = [queue(name) for name in "abc"]
    rules = conf(PREEMPT, allocate=arguments, preempt=old)
    story = Story("x y z", queues=queues, conf=rules)
    story.arrives(*(job(f"low-{name}", queue=name) for name in "abc"))
    story.arrives(*(job(f"high-{n}", queue=n, priority=5) for n in "abc"), now=1)
    story.wakes(11)
    assert {*story.engine.reservations} == {"high-a", "high-b", "high-c"}

    first = evictions(story.hears(TimerFired(), now=60, most=ONE))
    assert story.engine.has_more
    rest = in_slices(story, JobGone("high-b"), now=60)

    assert [*first, *(line for call in rest for line in call)] == [
        "evict low-a: 0 for high-a (preempt)",
        "evict low-c: 0 for high-c (preempt)",
    ]


def test_another_configuration_ends_the_search() -> None:
    story = full(4, conf(PREEMPT))
    story.hears(*arriving(*highs(4)), now=1, most=ONE)

    said = story.hears(ConfChanged(conf(RECLAIM)), now=2, most=ONE)

    assert evictions(said) == []
    assert not story.engine.has_more


def test_a_slice_that_starts_enough_jobs_goes_on_with_the_search_in_the_next() -> None:
    story = full(4, conf(PREEMPT))
    story.hears(*arriving(*highs(2)), now=1, most=ONE)
    ends = [JobGone("low000"), JobGone("low001"), JobGone("low002"), JobGone("low003")]

    said = story.hears(*ends, *arriving(job("z", 1, queue="p")), now=2, most=1)
    assert [line[:4] for line in said].count("bind") == 1
    in_slices(story, now=3, most=1)

    assert story.running.keys() == {"high000", "high001", "z"}


def test_jobs_of_a_queue_evict_in_their_order_whatever_they_request() -> None:
    """Although jobs that request the same are in one equivalence class."""
    story = Story("a b c d", conf=conf("allocate, preempt"))
    story.arrives(job("o0", 4, 2), job("o1", 4, 2), job("o2", 8, 2))
    coming = job("n0", 1, priority=1), job("n1", 1, 2, priority=1)

    said = story.arrives(*coming, job("n2", 1, priority=1), now=1)

    assert evictions(said) == [
        "evict o0: 0,1 for n0 (preempt)",
        "evict o1: 0,1 for n1 (preempt)",
        "evict o2: 0,1 for n2 (preempt)",
    ]


Asks = list[tuple[int, int, int]]
ASKS = st.lists(
    st.tuples(st.sampled_from([1, 4, 8]), st.integers(1, 2), st.integers(0, 2)),
    min_size=1,
    max_size=8,
)
"""Jobs of all sizes and priorities: chips, pods, priority."""


def evicted_in(actions: str, old: Asks, new: Asks, most: float) -> list[str]:
    """The victims when jobs arrive in the same queue, or in one that may reclaim."""
    story = Story("a b c d", queues=[queue("p"), queue("q")], conf=conf(actions))
    for i, (chips, pods, priority) in enumerate(old):
        story.arrives(job(f"o{i}", chips, pods, priority=priority, queue="p"))
    own = "q" if "reclaim" in actions else "p"
    coming = [
        job(f"n{i}", chips, pods, priority=priority, queue=own)
        for i, (chips, pods, priority) in enumerate(new)
    ]
    calls = in_slices(story, *arriving(*coming), most=most)
    return [line for call in calls for line in call]


@pytest.mark.parametrize(
    ("actions", "few"),
    [
        pytest.param("allocate, preempt", candidates.FEW_CANDIDATES, id="preempt"),
        pytest.param("allocate, reclaim", candidates.FEW_CANDIDATES, id="reclaim"),
        pytest.param("allocate, reclaim", 0, id="as of many candidates"),
    ],
)
def test_the_same_pods_go_however_long_a_slice_is(
    actions: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each slice looks at all candidates anew; within one they are remembered."""
    monkeypatch.setattr(candidates, "FEW_CANDIDATES", few)
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(200))
    @given(ASKS, ASKS)
    def check(old: Asks, new: Asks) -> None:
        whole = evicted_in(actions, old, new, most=1e9)
        assert evicted_in(actions, old, new, most=ONE) == whole
        seen[f"{min(len(whole), 2)} evictions"] += 1

    check()
    assert_reached(seen, "0 evictions", "1 evictions", "2 evictions")


def test_no_job_is_searched_for_twice_before_the_next_one() -> None:
    """Not even a job that has a reservation and is still in its class."""
    story = full(2, conf("allocate, preempt"))
    story.arrives(*highs(1), now=1)
    ctx = story.engine.context
    (reservation,) = ctx.reservations
    job_state = story.engine.view.job_states["high000"]
    line = ctx.pending.admitted.add(job_state, ctx.pending.key_of(job_state))
    ctx.victim_search.failed = {line: None}

    assert reservation.job.name == "high000"
    assert [*islice(evictors(ctx, "preempt"), 9)] == [job_state]


def test_a_pod_that_may_no_longer_be_evicted_after_another_was_stays() -> None:
    """P has 8 chips too many: v gives up all of them, and u stays."""
    rules = conf("allocate, reclaim")
    story = Story("a b", queues=[queue("p"), queue("q")], conf=rules)
    rocks = [job(f"r{n}", n, queue="p", preemptable=False) for n in (4, 2, 1)]
    for each in (job("v", queue="p"), *rocks, job("u", 1, queue="p")):
        story.arrives(each)

    said = story.arrives(*highs(2, queue="q", priority=0), now=1)

    assert evictions(said) == ["evict v: 0 for high000 (reclaim)"]


def test_a_gang_that_lost_a_pod_leaves_to_others_what_pods_end_for() -> None:
    strict = {"reservation": "strict"}
    story = Story("a b c", conf=conf(PREEMPT, allocate=strict))
    story.arrives(job("gang", 8, 2, priority=9), job("low", priority=1))
    story.arrives(job("high", priority=5), now=1)
    assert "high" in story.engine.reservations

    story.hears(NodesGone(("b",)), now=2)

    assert "high" in story.engine.reservations
    assert story.running["gang"] == [0]


# What it costs.


class Telling:
    """Counts the pods that come and go, also in trials."""

    def __init__(self, story: Story) -> None:
        self.count = 0
        story.engine.view.cluster.watchers.append(self._count)

    def _count(self, *_about: object) -> None:
        self.count += 1


@pytest.mark.parametrize(("actions", "changes", "gone"), VICTIMS)
def test_a_trial_moves_no_more_pods_in_a_large_cluster(
    actions: str, changes: dict[str, Any], gone: int
) -> None:
    costs = []
    for times in (5, 20):
        story = full(8 * times, conf(actions))
        telling = Telling(story)
        said = story.arrives(*highs(20 * times, **changes), now=1)
        assert len(evictions(said)) == gone * times
        costs.append(telling.count / gone / times)

    assert costs[1] <= 1.2 * costs[0]


def test_a_trial_moves_no_pods_that_hold_no_chips() -> None:
    """However many of them may go, and are cheaper."""
    costs = []
    for n_plain in (0, 100):
        story = full(20, conf(PREEMPT))
        story.arrives(*(plain(f"plain{i}") for i in range(n_plain)), now=1)
        telling = Telling(story)
        said = story.arrives(*highs(4), now=2)
        assert len(evictions(said)) == 4
        costs.append(telling.count)

    assert costs[0] == costs[1]


def test_pods_that_hold_no_chips_go_where_a_job_needs_their_resources() -> None:
    story = Story(
        [node("n", resources={"cpu": 20_000})], queues=[queue("p")], conf=conf(PREEMPT)
    )
    story.arrives(job("low", queue="p"), *(plain(f"plain{i:02}") for i in range(20)))
    asks = Demand(resources=(("cpu", 19_000),))

    said = story.arrives(job("high", queue="p", priority=5, demand=asks), now=1)

    assert len(evictions(said)) == 20
    assert any(line.startswith("evict low:") for line in said)


def test_a_failed_search_is_made_once_for_jobs_that_differ_in_estimates() -> None:
    asks = Demand(resources=(("cpu", 9000),))
    costs = []
    for n_jobs in (1, 10):
        nodes = [node(f"n{i:02}", resources={"cpu": 8000}) for i in range(20)]
        story = Story(nodes, queues=[queue("p")], conf=conf(PREEMPT))
        story.arrives(*(job(f"low{i:02}", queue="p") for i in range(20)))
        telling = Telling(story)
        high = highs(n_jobs, demand=asks)
        comes = [replace(each, estimate_s=9.0 + i) for i, each in enumerate(high)]
        assert not evictions(story.arrives(*comes, now=1))
        costs.append(telling.count)

    assert costs[0] == costs[1] > 0


def test_the_quota_is_asked_once_for_jobs_that_ask_the_same_however_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    no_room = Quota.why_no_room

    def count(quota: Quota, job_state: JobState) -> QueueReason:
        asked.append(job_state.job.name)
        return no_room(quota, job_state)

    monkeypatch.setattr(Quota, "why_no_room", count)
    rules = conf("allocate, preempt")
    story = Story([node("n"), node("m")], queues=[queue("p", 8)], conf=rules)
    story.arrives(job("first", 4, queue="p"))
    late = [job(f"late{i}", queue="p", estimate_s=9.0 + i) for i in range(10)]

    story.arrives(*late, now=1)

    messages = [each.message for each in story.said if isinstance(each, Report)]
    assert asked == ["late0"]
    assert sum("queue 'p' has no room" in message for message in messages) == 10


class Asked(Plugin):
    """Agrees to every victim, and counts how often it is asked."""

    per_job: ClassVar[frozenset[str]] = frozenset({"Preemptable"})
    times: ClassVar[int] = 0

    def preemptable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """All of them."""
        del evictor
        Asked.times += 1
        return [*victims]


class AskedAlways(Asked):
    """The same, and does not say that it judges each job by itself."""

    def preemptable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """All of them."""
        return super().preemptable(evictor, victims)


@pytest.mark.parametrize(
    ("plugin", "times"),
    [
        pytest.param(Asked, 1, id="once for all evictors that ask the same"),
        pytest.param(AskedAlways, 6, id="every time, unless it judges job by job"),
    ],
)
def test_how_often_a_plugin_is_asked_for_victims(
    plugin: type[Plugin], times: int
) -> None:
    names = ("asked", "priority", "gang")
    tiers = [{"plugins": [{"name": name} for name in names]}]
    rules = read_conf(
        {"actions": "allocate, preempt", "tiers": tiers}, {"asked": plugin}
    )
    assert isinstance(rules, Conf)
    story = full(20, rules)
    Asked.times = 0

    said = story.arrives(*highs(6), now=1)

    assert len(evictions(said)) == 6
    assert Asked.times == times


def test_a_pod_that_ends_concerns_only_the_reservation_that_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = full(20, conf(PREEMPT))
    story.arrives(*highs(20), now=1)
    gone = [PodsGone(e.job, e.replicas) for e in story.said if isinstance(e, Evict)]
    unblocked: list[str] = []

    def unblock(
        reservation: Reservation,
        nodes: object,
        rest: Any = Reservation.unblock,  # noqa: ANN401
    ) -> None:
        unblocked.append(reservation.job.name)
        rest(reservation, nodes)

    monkeypatch.setattr(Reservation, "unblock", unblock)
    said = story.hears(gone[0], now=2)

    assert any(line.startswith("bind ") for line in said)
    assert len({*unblocked}) == 1


class Counting(Proportion):
    """Counts how often it is asked."""

    times: ClassVar[int] = 0

    def reclaimable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """As before."""
        Counting.times += 1
        return super().reclaimable(evictor, victims)


def test_shares_are_counted_again_only_where_they_may_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(candidates, "FEW_CANDIDATES", 8)
    names = (("gang", "conformance"), ("fair",))
    tiers = [{"plugins": [{"name": name} for name in tier]} for tier in names]
    rules = read_conf(
        {"actions": "allocate, reclaim", "tiers": tiers}, {"fair": Counting}
    )
    assert isinstance(rules, Conf)
    story = full(100, rules)
    Counting.times = 0

    said = story.arrives(*highs(100, queue="q", priority=0), now=1)

    assert len(evictions(said)) == 50
    assert Counting.times < 25


class ByRank(Asked):
    """Says that of the evictor its queue and priority count."""

    by_rank: ClassVar[frozenset[str]] = frozenset({"Preemptable"})

    def preemptable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """All of them."""
        return super().preemptable(evictor, victims)

    per_job: ClassVar[frozenset[str]] = by_rank


@pytest.mark.parametrize(
    ("plugin", "times"),
    [
        pytest.param(ByRank, 2, id="once for all evictors of one priority"),
        pytest.param(Asked, 6, id="for each kind, unless only the rank counts"),
    ],
)
def test_how_often_a_plugin_is_asked_for_evictors_that_differ(
    plugin: type[Plugin], times: int
) -> None:
    tiers = [{"plugins": [{"name": name} for name in ("asked", "priority", "gang")]}]
    rules = read_conf(
        {"actions": "allocate, preempt", "tiers": tiers}, {"asked": plugin}
    )
    assert isinstance(rules, Conf)
    story = full(20, rules)
    Asked.times = 0
    kinds = [
        job(f"high{i}", queue="p", priority=5 + i // 3, estimate_s=100.0 + i)
        for i in range(6)
    ]

    said = story.arrives(*kinds, now=1)

    assert len(evictions(said)) == 6
    assert Asked.times == times


def kinds_of_jobs() -> st.SearchStrategy[list[Job]]:
    """Jobs that ask for several things, of few priorities."""
    return st.lists(
        st.builds(
            lambda chips, pods, priority, lasts: job(
                "high", chips, pods, queue="p", priority=priority, estimate_s=lasts
            ),
            st.sampled_from([2, 4, 8]),
            st.integers(1, 3),
            st.integers(0, 3),
            st.sampled_from([None, 50.0, 500.0]),
        ),
        min_size=2,
        max_size=8,
    )


@settings(max_examples=examples(60), deadline=None)
@given(
    low=st.lists(st.tuples(st.sampled_from([2, 4, 8]), st.integers(0, 2)), max_size=12),
    high=kinds_of_jobs(),
    actions=st.sampled_from([PREEMPT, RECLAIM, BOTH]),
    late=st.booleans(),
)
def test_sharing_what_is_known_of_candidates_changes_no_decision(
    low: list[tuple[int, int]], high: list[Job], actions: str, *, late: bool
) -> None:
    reserves = {"reservation": "fair", "reservation-after-seconds": 10}
    rules = conf(actions, allocate=reserves)

    def play() -> list[list[str]]:
        nodes = [node(f"n{i}") for i in range(4)]
        story = Story(nodes, queues=[queue("p"), queue("q")], conf=rules)
        victim_queue = "p" if actions == PREEMPT else "q"
        jobs = [
            job(f"low{i}", chips, queue=victim_queue, priority=priority)
            for i, (chips, priority) in enumerate(low)
        ]
        said = [story.arrives(*jobs)]
        if late:  # a reservation is made because a job waits for long
            said += [story.arrives(job("big", 8, 4, queue="q")), story.wakes(20)]
        named = [replace(each, name=f"high{i}") for i, each in enumerate(high)]
        return [*said, story.arrives(*named, now=30), story.wakes(60)]

    shared = play()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates.Candidates, "serves", lambda *_evictor: False)
        apart = play()

    assert shared == apart


# What happens while a search goes on.


def crowded(n_nodes: int, conf: Conf) -> Story:
    """Nodes full of two jobs each of queue p, one of which cannot be evicted."""
    story = Story(
        [node(f"n{i:03}") for i in range(n_nodes)], queues=[queue("p")], conf=conf
    )
    story.arrives(
        *(
            job(f"f{i:03}", 4, queue="p", preemptable=bool(i % 2))
            for i in range(2 * n_nodes)
        )
    )
    return story


def test_a_job_that_is_bound_does_not_make_a_search_begin_again() -> None:
    story = crowded(60, conf(PREEMPT))
    story.hears(NodesChanged((node("spare"),)), now=1)
    gangs = [job(f"g{i:02}", 8, 2 + i, queue="p", priority=5) for i in range(28)]

    story.hears(*arriving(*gangs, job("small", 4, queue="p")), now=10, most=64)
    calls = in_slices(story, now=10.5, most=64)

    assert "small" in story.running
    assert len(calls) < 6, "a search that begins again at each call takes 50"
    assert story.engine.context.victim_search.again_at == 11, (
        "small may be evicted then"
    )


def test_the_time_of_a_reservation_is_kept_while_a_search_goes_on() -> None:
    settings = conf(PREEMPT, allocate={"reservation-after-seconds": 100})
    for most in (ONE, float("inf")):
        story = crowded(2, settings)
        gangs = [job(f"g{i}", 8, 1 + i, queue="p", priority=5) for i in range(2)]
        said = story.hears(*arriving(*gangs), now=5, most=most)
        while story.engine.has_more:
            said += story.hears(now=5.5, most=most)

        assert said[-1] == "wake 105"
        story.wakes(105)
        assert list(story.engine.reservations) == ["g0"]


def test_a_newcomer_that_asks_for_the_same_as_others_goes_before_them() -> None:
    tiers = (("priority", "gang", "conformance"), ("predicates",))
    story = full(2, conf("allocate, preempt", tiers))
    first = [job(name, 8, queue="p", priority=5) for name in ("a1", "a2")]
    less = job("b1", 4, queue="p", priority=4)
    found = [evictions(story.hears(*arriving(*first, less), now=2, most=ONE))]
    found += in_slices(story, JobArrived(job("top", 4, queue="p", priority=9)), now=3)

    assert [line.split(" for ")[1] for call in found for line in call] == [
        "a1 (preempt)",
        "top (preempt)",
    ]


def test_what_is_known_of_pods_that_end_makes_no_search_begin_again() -> None:
    story = crowded(4, conf(PREEMPT))
    story.arrives(*(job(f"g{i}", 8, 2 + i, queue="p", priority=5) for i in range(3)))
    story.hears(NodesChanged((node("spare"),)), now=1)
    story.arrives(job("z", 8, queue="p"), now=2)
    assert evictions(story.arrives(job("top", 8, queue="p", priority=9), now=9))

    story.hears(PodsEnding("z", (0,)), now=10)

    assert story.engine.context.victim_search.cost == 0


def test_jobs_that_are_gone_are_kept_nowhere() -> None:
    story = Story("a b", queues=[queue("p")], conf=conf("allocate, preempt"))
    story.arrives(job("runs", 8, 2, queue="p"))
    story.arrives(*(job(f"j{i}", 8, queue="p") for i in range(20)), now=5)
    known = [
        weakref.ref(job_state)
        for name, job_state in story.engine.view.job_states.items()
        if name != "runs"
    ]

    gone = [JobGone(f"j{i}") for i in range(20)]
    story.hears(*gone, QueueGone("p"), now=6)
    story.said.clear()
    gc.collect()

    assert len(known) == 20
    assert not [job_state for each in known if (job_state := each()) is not None]
