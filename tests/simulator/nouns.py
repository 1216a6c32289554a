"""Every noun of the engine, drawn at random: for what is written and read back."""

from collections.abc import Sequence
from typing import Final, TypeVar

from hypothesis import strategies as st
from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.engine import event as ev
from ringleaf.framework.idle_budget import EndedReservation, IdleAccount, Outcome
from ringleaf.framework.run_times import RunSeries
from ringleaf.model.cluster import Node
from ringleaf.model.demand import (
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
)
from ringleaf.model.fault import (
    Cause,
    Deletion,
    Down,
    Fault,
    FaultMode,
    PodFault,
    Record,
    Recovery,
    RestartScope,
    SubHealth,
)
from ringleaf.model.job import Job, Previous, Role
from ringleaf.model.job_labels import Firmness, Schema, Strategy
from ringleaf.model.mask import full_mask
from ringleaf.model.placement import JobType, LeafAnnotation, LeafState, Placement
from ringleaf.model.queue import Queue
from ringleaf.model.run_time import GRID, NO_ORIGIN, TOP, Origin, RunTime, Similarity
from ringleaf.model.settings import JobRequests, LeafChoice, Settings, SwitchMode
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.products import PRODUCTS
from ringleaf.simulator.jobs import lead_of

_T = TypeVar("_T")

names = st.sampled_from(["a", "b", "n0", "n1", "{i}", "big job", "é", "x" * 253])
texts = st.sampled_from(["", "z1", "a.b/c", "null", "1.0", "true"])
labels = st.dictionaries(st.sampled_from(["zone", "rack.io/row", ""]), texts)
amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "huawei.com/Ascend910"]),
    st.integers(0, 1 << 61) | st.sampled_from([500, 64 << 40]),
).map(lambda found: dict(sorted(found.items())))
seconds = st.floats(-1e9, 1e9) | st.integers(-9, 1 << 31).map(float)
ranks = st.lists(st.integers(0, 9), max_size=3, unique=True).map(tuple)
products = st.sampled_from(list(PRODUCTS.values()))
flags = st.booleans()


def tuples(of: st.SearchStrategy[_T]) -> st.SearchStrategy[tuple[_T, ...]]:
    """Mostly none, now and then two."""
    return st.just(()) | st.tuples(of) | st.tuples(of, of)


requirements = st.one_of(
    st.builds(
        Requirement,
        texts,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.lists(texts, min_size=1, max_size=2).map(tuple),
    ),
    st.builds(
        Requirement, texts, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])
    ),
    st.builds(
        Requirement,
        texts,
        st.sampled_from([Operator.GREATER, Operator.LESS]),
        st.integers(-9, 9).map(lambda n: (str(n),)),
    ),
)
terms = tuples(requirements)
selectors = st.none() | terms
pod_terms = st.builds(PodTerm, texts, selectors, tuples(names))
weights = st.integers(1, 100)
demands = st.builds(
    Demand,
    resources=amounts.map(lambda found: tuple(found.items())),
    required=labels.map(
        lambda found: tuple(
            Requirement(key, Operator.IN, (value,))
            for key, value in sorted(found.items())
        )
    ),
    terms=tuples(terms),
    tolerations=tuples(
        st.builds(
            Toleration,
            texts,
            st.sampled_from(Match),
            texts,
            st.none() | st.sampled_from(Effect),
        )
        | st.just(Toleration(None, Match.EXISTS))
    ),
    ports=st.lists(st.sampled_from(["TCP/80", "UDP/53"]), max_size=2).map(tuple),
    labels=labels.map(lambda found: tuple(sorted(found.items()))),
    namespace=st.sampled_from(["default", "lab"]),
    near=tuples(pod_terms),
    apart=tuples(pod_terms),
    spread=tuples(
        st.builds(
            Spread, texts, st.integers(1, 9), selectors, flags, st.none() | weights
        )
    ),
    prefers=tuples(st.builds(Preferred, weights, terms)),
    prefers_near=tuples(st.builds(PreferredPods, weights, pod_terms)),
    prefers_apart=tuples(st.builds(PreferredPods, weights, pod_terms)),
)

queues = st.builds(
    Queue,
    names,
    st.integers(1, 65535),
    amounts,
    amounts,
    flags,
    st.integers(-(2**31), 2**31 - 1),
    flags,
    texts,
    texts,
)

leaves = st.lists(
    st.builds(
        Leaf,
        names,
        st.none() | st.just("10.0.0.1"),
        st.sampled_from(LeafState),
        flags,
        tuples(st.sampled_from([JobType.FOUNDATION, JobType.COMMON])),
    ),
    max_size=3,
    unique_by=lambda leaf: leaf.name,
).map(tuple)


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    product = draw(products)
    chips = draw(st.integers(1, product.chips)) if product.sized else product.chips
    masks = st.integers(0, full_mask(chips)) | st.just(full_mask(chips))
    leaf = draw(st.none() | names)
    weak, weak_switch = draw(masks), draw(flags)
    faulty, ready = draw(masks), draw(flags)
    return Node(
        name=draw(names),
        product=product,
        chips=chips,
        free=draw(masks),
        faulty=faulty,
        network_faulty=draw(masks),
        ready=ready,
        sub_healthy=draw(flags) or bool(weak) or weak_switch,
        superpod=draw(st.none() | st.integers(0, 3)),
        leaf=leaf,
        slot=0 if leaf is None else draw(st.integers(0, 9)),
        cordoned=draw(flags),
        labels=draw(labels),
        taints=draw(tuples(st.builds(Taint, texts, st.sampled_from(Effect), texts))),
        resources=draw(amounts),
        unhealthy=draw(masks) & faulty,
        weak=weak,
        weak_switch=weak_switch,
        down=None if ready else draw(st.none() | st.sampled_from(Down)),
        offers=draw(st.none() | masks),
        lists_all=draw(flags),
        allocatable=draw(st.none() | st.integers(0, 8)),
    )


@st.composite
def placements(draw: st.DrawFn, kind: JobType | None) -> tuple[Placement, ...]:
    marks = st.builds(LeafAnnotation, st.just(kind), st.sampled_from(LeafState), flags)
    return tuple(
        Placement(
            replica=rank,
            node=draw(names),
            chips=draw(st.sampled_from([(), (0,), (1, 0)])),
            block=draw(st.none() | st.integers(0, 3)),
            mark=draw(marks if kind else st.none() | marks),
        )
        for rank in draw(ranks)
    )


@st.composite
def roles(draw: st.DrawFn) -> tuple[Role, ...]:
    """Several roles, or one without a name whose pods were given ranks."""
    given = iter(draw(st.permutations(range(40))))

    def role(name: str, *, ranked: bool) -> Role:
        replicas = draw(st.integers(1, 4))
        return Role(
            name=name,
            chips=draw(st.sampled_from([0, 1, 8])),
            replicas=replicas,
            min_available=draw(st.none() | st.integers(0, 3)) if name else None,
            demand=draw(demands),
            ranks=tuple(next(given) for _ in range(replicas)) if ranked else (),
        )

    if draw(flags):
        return (role("", ranked=True),)
    several = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    return tuple(role(name, ranked=draw(flags)) for name in several)


@st.composite
def recoveries(draw: st.DrawFn, job: Job) -> Recovery:
    escalates = draw(flags)
    return Recovery(
        mode=draw(st.sampled_from(FaultMode)),
        retries=draw(st.integers(0, 3)),
        pods_only=not escalates or draw(flags),
        process=draw(flags),
        escalates=escalates,
        sub_health=draw(st.sampled_from(SubHealth)),
        master=draw(st.none() | st.just(0) | st.sampled_from(sorted(job.numbers))),
    )


pod_faults = st.builds(PodFault, st.integers(0, 3), st.sampled_from(Cause), names)


@st.composite
def run_times(draw: st.DrawFn) -> RunTime:
    median, most = sorted(draw(st.tuples(*[st.sampled_from(GRID)] * 2)))
    return RunTime(median, most, draw(st.integers(0, 64)), draw(similarities))


similarities = st.sampled_from(Similarity)
chip_seconds = st.floats(0, 1e9)
idle_accounts = st.builds(
    IdleAccount,
    st.lists(st.tuples(seconds, chip_seconds), max_size=3).map(tuple),
    st.booleans(),
    st.lists(
        st.builds(
            EndedReservation,
            *(names, seconds, seconds, chip_seconds),
            st.sampled_from(Outcome),
        ),
        max_size=2,
    ).map(tuple),
)
run_series = st.builds(
    RunSeries,
    similarities,
    names,
    texts,
    texts,
    st.integers(0, 9),
    st.lists(st.integers(0, TOP), max_size=3).map(tuple),
)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    job = Job(
        name=draw(names),
        product=draw(products),
        chips=draw(st.integers(0, 64)),
        replicas=draw(st.integers(1, 100)),
        strategy=draw(st.none() | st.sampled_from(Strategy)),
        distributed=draw(flags),
        tor_affinity=draw(st.none() | st.sampled_from(Schema)),
        sp_block=draw(st.none() | st.integers(0, 64)),
        superpod_affinity=draw(st.none() | st.sampled_from(Firmness)),
        vnpu=draw(st.none() | st.just("vir04")),
        demand=draw(demands),
        min_available=draw(st.none() | st.integers(0, 9)),
        finished=tuple(draw(st.lists(st.integers(500, 900), unique=True, max_size=3))),
        queue=draw(names | st.just("default")),
        priority=draw(st.integers(-(2**31), 2**31 - 1)),
        created=draw(seconds),
        estimate_s=draw(st.none() | st.floats(1e-3, 1e9)),
        preemptable=draw(flags),
        preempts=draw(flags),
        critical=draw(flags),
        podless=draw(flags),
        origin=draw(st.just(NO_ORIGIN) | st.builds(Origin, texts, texts)),
        run_time=draw(st.none() | run_times()),
    )
    if draw(flags):
        own = draw(roles())
        with_chips = [role for role in own if role.chips]
        job = replace(
            job,
            roles=own,
            chips=lead_of(own).chips,
            replicas=sum(role.replicas for role in with_chips),
            demand=lead_of(own).demand,
        )
    if draw(flags):
        before = draw(placements(job.job_type))
        keep = draw(st.sampled_from([RestartScope.POD, RestartScope.JOB]))
        job = replace(job, previous=Previous(before, ("n0",), keep))
    return replace(job, recovery=draw(recoveries(job)))


settings = st.builds(
    Settings,
    st.sampled_from(JobRequests),
    st.sampled_from(SwitchMode),
    st.sampled_from([1, 2]),
    st.none() | st.integers(1, 128),
    st.sampled_from(LeafChoice),
    flags,
    st.just(48),
    st.integers(0, 47),
)

CONFIGURATIONS = (
    {"actions": "allocate", "tiers": []},
    {
        "actions": "enqueue, allocate, preempt, reclaim, backfill",
        "tiers": [
            {
                "plugins": [
                    {"name": "priority", "enableJobOrder": False},
                    {"name": "volcano-npu_v6.0.RC1_linux-aarch64"},
                    {"name": "drf", "enableHierarchy": True},
                ]
            },
            {
                "plugins": [
                    {
                        "name": "binpack",
                        "arguments": {
                            "binpack.weight": 10,
                            "binpack.resources": "a/b, c/d",
                            "binpack.resources.a/b": 7,
                        },
                    },
                    {"name": "overcommit", "arguments": {"overcommit-factor": 1.5}},
                    {"name": "nodeorder", "arguments": {"nodeaffinity.weight": 0}},
                ]
            },
        ],
        "configurations": [
            {
                "name": "init-params",
                "arguments": {"nslb-version": "2.0", "super-pod-size": 16},
            },
            {"name": "somebody", "arguments": {"x": [1, {"y": None}]}},
        ],
    },
)


@st.composite
def configurations(draw: st.DrawFn) -> Conf:
    conf = read_conf(draw(st.sampled_from(CONFIGURATIONS)))
    assert isinstance(conf, Conf), conf.problems
    return replace(conf, settings=draw(settings), warnings=())


@st.composite
def arrivals(draw: st.DrawFn) -> ev.JobArrived:
    job = draw(jobs())
    placed, times = draw(placements(job.job_type)), st.none() | seconds
    return ev.JobArrived(job, placed, draw(times), draw(times))


records = st.builds(
    Record,
    seconds,
    st.sampled_from(RestartScope),
    tuples(pod_faults),
    placements(None),
    ranks,
    st.none() | seconds,
    st.none() | seconds,
    st.integers(0, 3),
    flags,
)
faults = st.builds(
    Fault,
    names,
    st.sampled_from(Cause),
    texts,
    seconds,
    st.none() | seconds,
    st.none() | seconds,
    tuples(names),
    texts,
    st.none() | seconds,
)
deletions = st.builds(Deletion, seconds, names, st.integers(0, 9))
several_nodes = st.lists(
    nodes(), min_size=1, max_size=2, unique_by=lambda node: node.name
).map(tuple)
kinds_of_events: Final[Sequence[st.SearchStrategy[ev.Event]]] = (
    arrivals(),
    st.builds(ev.JobGone, names, flags, flags),
    st.builds(ev.PodsGone, names, ranks, flags, flags),
    st.builds(ev.PodsEnding, names, ranks),
    st.builds(ev.BindFailed, names, ranks),
    st.builds(ev.PodFaultsReported, names, tuples(pod_faults)),
    st.builds(ev.PodsRun, names, ranks, st.none() | seconds.map(abs)),
    st.builds(ev.PodsRefused, names, ranks, texts),
    st.builds(ev.RepairKnown, names, records),
    st.builds(ev.FaultsKnown, tuples(faults)),
    st.builds(ev.DeletionsKnown, tuples(deletions)),
    st.builds(ev.RunTimesKnown, tuples(run_series)),
    st.builds(ev.IdleAccountKnown, idle_accounts),
    st.builds(ev.NodesChanged, several_nodes),
    st.builds(ev.NodesGone, st.lists(names, max_size=2).map(tuple)),
    st.builds(ev.LeavesChanged, leaves),
    st.builds(ev.QueueChanged, queues),
    st.builds(ev.QueueGone, names),
    st.builds(ev.ConfChanged, configurations()),
    st.just(ev.TimerFired()),
)
