"""Jobs that may start small, roles, and pods that join: what must always hold."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed, Waiting
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import NO_MARK, Placement
from tests.effort import assert_reached, examples
from tests.leaves import A2
from tests.network_oracle import (
    LEGAL,
    NetJob,
    Pod,
    World,
    legal_sets,
    place_1,
    place_2,
    place_single,
    place_superpods,
    shape_of,
    superpod_nodes,
    with_pods,
    without_job,
)
from tests.oracle import choose
from tests.properties.network_cases import (
    Case,
    leaf_cases,
    scattered_cases,
    superpod_cases,
)
from tests.properties.play import arrays, play, pods_of
from tests.properties.test_repair import (
    Fault,
    keeps_its_states,
    spares_foundation,
    without_notes_of,
)

MODES = ("1.0", "2.0", "single", "superpods")
BOUNDS = settings(max_examples=examples(120), suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Part(NetJob):
    """Some pods of a job; its kind is that of the whole job."""

    n: int = 1

    @property
    def replicas(self) -> int:
        return self.n

    @property
    def kind(self) -> str | None:
        return self.whole.kind

    @property
    def whole(self) -> NetJob:
        return NetJob(self.name, self.pod, self.label, self.block, self.soft)


def part(job: NetJob, n: int) -> Part:
    block = shape_of(job).block * 16 if job.pod.product == "atlas-900-a3" else None
    return Part(job.name, job.pod, job.label, block, job.soft, n=n)


def nodes_by_rule(world: World, job: Part) -> list[str] | None:
    """Where the oracle puts so many pods of a job."""
    if world.mode == "superpods":
        found = place_superpods(world, job)
        return None if found is None else [name for name, _block in found]
    if world.mode == "2.0":
        marked = place_2(world, job)
        return None if marked is None else list(marked)
    return (place_1 if world.mode == "1.0" else place_single)(world, job)


def sizes_of(world: World, job: NetJob, least: int, limit: int) -> Iterator[int]:
    """How many pods there may be, most first."""
    step = shape_of(job).block if world.mode == "superpods" else 1
    for size in range(min(limit, job.replicas), least - 1, -1):
        if size % step == 0:
            yield size


def heeding(world: World, job: NetJob) -> World:
    """In SuperPoDs, whether a part heeds the network is decided by the whole job."""
    if world.mode != "superpods" or shape_of(job).blocks == 1:
        return world
    spots = tuple(
        replace(s, node=replace(s.node, free=s.node.free - s.node.network_faulty))
        for s in world.spots
    )
    return replace(world, spots=spots)


def cases_of(mode: str, max_nodes: int = 24) -> st.SearchStrategy[Case]:
    if mode == "superpods":
        return superpod_cases(max_jobs=2)
    cases = leaf_cases(mode, max_jobs=2, max_nodes=max_nodes, labelled=True)
    scattered = mode in {"1.0", "2.0"}
    return st.one_of(cases, scattered_cases(mode)) if scattered else cases


@st.composite
def stretched(draw: st.DrawFn, case: Case) -> tuple[NetJob, int, int]:
    """The first job, often larger than what is free, its least, and its limit."""
    job = case.jobs[0]
    wide = st.integers(2, 3)
    if draw(st.sampled_from([True, True, False])) and (job.label or job.block):
        many = job.replicas * draw(wide)
        job = replace(job, pod=replace(job.pod, replicas=many))
    least = draw(st.integers(1, job.replicas))
    least = draw(st.sampled_from([1, 1, least, job.replicas]))
    limit = draw(st.sampled_from([job.replicas, job.replicas, least]))
    return job, least, limit


@pytest.mark.parametrize("mode", MODES)
def test_an_elastic_job_is_the_largest_that_its_rule_accepts(mode: str) -> None:
    """Exactly where the oracle puts a job of that many pods."""
    seen: Counter[str] = Counter()

    @BOUNDS
    @given(st.data())
    def check(data: st.DataObject) -> None:
        case = data.draw(cases_of(mode))
        job, least, limit = data.draw(stretched(case))
        assume(job.replicas > 1)
        game = play(replace(case, jobs=(job,)))
        elastic = msgspec.structs.replace(game.jobs[job.name], min_available=least)
        world = heeding(case.world, job)
        sizes = sizes_of(world, job, least, limit)
        found = (nodes_by_rule(world, part(job, size)) for size in sizes)
        expected = next((nodes for nodes in found if nodes is not None), None)
        before = arrays(game.session.cluster)

        decision = game.session.decide(elastic, limit)

        if expected is None:
            assert isinstance(decision, Waiting)
            assert arrays(game.session.cluster) == before
        else:
            assert isinstance(decision, Placed)
            found_nodes = [p.node for p in decision.placements]
            assert len(found_nodes) == len(expected)
            # A job that has one pod only goes by another rule in SuperPoDs.
            if mode != "superpods" or len(expected) > 1:
                assert found_nodes == expected
            ranks = [p.replica for p in decision.placements]
            assert ranks == list(range(len(ranks)))
            seen["part"] += len(ranks) < min(limit, job.replicas)

    check()
    assert_reached(seen, "part")


@dataclass(frozen=True)
class Growth:
    """A job that runs with some of its pods; `world` is without it."""

    world: World
    job: NetJob
    pods: tuple[Pod, ...]
    placements: tuple[Placement, ...]

    def open(self) -> tuple[Session, Job]:
        """A session in which the job runs."""
        game = play(Case(self.world, (self.job,)))
        job, cluster = game.jobs[self.job.name], game.session.cluster
        with Statement(cluster) as statement:
            for p in self.placements:
                node, mark = cluster.index[p.node], p.mark or NO_MARK
                statement.hold(job.name, node, mask_of(p.chips), p.replica, mark)
            statement.commit()
        return game.session, job

    def can_be(self, size: int) -> bool:
        """Whether the rule allows so many pods, those that run among them."""
        job = part(self.job, size)
        blocks = tuple(p.block for p in self.placements)
        fault = Fault(self.world, job, self.pods, blocks, (), "pods")
        if self.world.mode == "superpods":
            return self._blocks_fit(size)
        sets = legal_sets(self.world, job, fault.spots(self.pods))
        return any(
            keeps_its_states(fault, spots) and spares_foundation(fault, spots)
            for spots in sets
        )

    def _blocks_fit(self, size: int) -> bool:
        room = heeding(with_pods(self.world, self.pods), self.job)
        nodes = superpod_nodes(room, self.job)
        free = [len(spots) for spots in nodes.values()]
        more, block = size - len(self.pods), shape_of(self.job).block
        if self.job.soft:
            return sum(free) >= more
        return sum(count // block for count in free) >= more // block


@st.composite
def growths(draw: st.DrawFn, mode: str) -> Growth:
    """Place some pods of a job by its rule, then let others come and go."""
    case = draw(cases_of(mode, max_nodes=12))
    job, least, _limit = draw(stretched(case))
    assume(job.replicas > 1)
    game = play(replace(case, jobs=(job, *case.jobs[1:])))
    elastic = msgspec.structs.replace(game.jobs[job.name], min_available=least)
    limit = draw(st.integers(least, max(least, job.replicas - 1)))
    first = game.session.decide(elastic, limit)
    assume(isinstance(first, Placed) and len(first.placements) < job.replicas)
    assert isinstance(first, Placed)
    pods = tuple(pods_of(job, first))
    game.world = with_pods(game.world, pods)
    for other in case.jobs[1:]:
        game.decide(other)
    world = without_job(game.world, job.name)
    for tenant in {pod.job.name: pod.job for pod in case.world.pods}.values():
        if draw(st.booleans()):
            world = without_job(world, tenant.name)
    return Growth(without_notes_of(world, pods), job, pods, first.placements)


@pytest.mark.parametrize("mode", MODES)
def test_pods_join_by_the_rule_as_many_as_it_allows_and_no_pod_moves(
    mode: str,
) -> None:
    seen: Counter[str] = Counter()

    @BOUNDS
    @given(growths(mode))
    def check(growth: Growth) -> None:
        session, job = growth.open()
        before = list(session.cluster.holdings[job.name])

        more = session.join(job, growth.placements)

        held = session.cluster.holdings[job.name]
        assert held[: len(before)] == before
        assert [h.replica for h in held[len(before) :]] == [p.replica for p in more]
        every = sorted((*growth.placements, *more), key=lambda p: p.replica)
        assert [p.replica for p in every] == list(range(len(every)))
        if more:
            spots = [growth.world.spot(p.node) for p in every]
            mine = part(growth.job, len(every))
            assert LEGAL[mode](growth.world, mine, spots)
            check_chips(growth, more)
        step = shape_of(growth.job).block if mode == "superpods" else 1
        larger = range(len(every) + step, job.replicas + 1, step)
        assert not [size for size in larger if growth.can_be(size)]
        seen["joined"] += len(more) > 0

    check()
    assert_reached(seen, "joined")


def check_chips(growth: Growth, more: Sequence[Placement]) -> None:
    """New pods have the chips that any pod would get on their nodes."""
    world = heeding(growth.world, growth.job)
    for p in more:
        choice = choose(world.spot(p.node).node, growth.job.pod)
        assert choice is not None
        assert choice[1] == p.chips


# Roles, without a network: a plain model of nodes with chips and CPUs


@dataclass
class Plain:
    """What nodes have free; pods take from the fullest that has enough."""

    chips: list[int]
    cpus: list[int]

    def place(self, role: Role) -> int | None:
        cpu = dict(role.demand.resources)["cpu"]
        fitting = [
            (self.chips[n] if role.chips else 0, n)
            for n in range(len(self.chips))
            if self.chips[n] >= role.chips and self.cpus[n] >= cpu
        ]
        if not fitting:
            return None
        _left, node = min(fitting)
        self.chips[node] -= role.chips
        self.cpus[node] -= cpu
        return node

    def decide(self, job: Job, limit: int) -> dict[int, int] | None:
        """Replica -> node: what roles cannot do without, then as many as fit.

        What roles cannot do without counts only within what the job says. A job with
        chips does not start without any.
        """
        found: dict[int, int] = {}
        counts = sum(role.min_available or 0 for role in job.roles) <= job.min_pods
        least = {role.name: (role.min_available or 0) * counts for role in job.roles}
        batches = [(role, own[: least[role.name]]) for role, own in job.role_ranks]
        batches += [(role, own[least[role.name] :]) for role, own in job.role_ranks]
        if not job.is_elastic:
            batches = list(job.role_ranks)
        for role, own in batches:
            for replica in own:
                if len(found) == limit or (node := self.place(role)) is None:
                    break
                found[replica] = node
        short = any(
            sum(n in found for n in own) < least[role.name]
            for role, own in job.role_ranks
        )
        working = [n for role, own in job.role_ranks if role.chips for n in own]
        helpless = working and not any(n in found for n in working)
        return None if short or helpless or len(found) < job.min_pods else found


NODES = st.lists(
    st.tuples(st.integers(0, 8), st.sampled_from([0, 4, 8, 16])),
    min_size=1,
    max_size=4,
)


@st.composite
def roles(draw: st.DrawFn) -> tuple[Role, ...]:
    found = []
    for number in range(draw(st.integers(1, 3))):
        replicas = draw(st.integers(1, 3))
        cpu = draw(st.sampled_from([0, 1, 4]))
        found.append(
            Role(
                f"r{number}",
                draw(st.sampled_from([0, 0, 1, 2, 4])),
                replicas,
                draw(st.sampled_from([None, None, 1, replicas])),
                Demand(resources=(("cpu", cpu),)),
            )
        )
    return tuple(found)


def test_roles_are_placed_like_plain_numbers_say() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(300))
    @given(NODES, roles(), st.data())
    def check(
        nodes: list[tuple[int, int]], parts: tuple[Role, ...], data: st.DataObject
    ) -> None:
        cluster = Cluster(
            Node(f"n{i}", A2, 8, (1 << chips) - 1, resources={"cpu": cpu})
            for i, (chips, cpu) in enumerate(nodes)
        )
        with_chips = [role for role in parts if role.chips]
        replicas = sum(role.replicas for role in with_chips)
        chips = max((role.chips for role in with_chips), default=0)
        n_pods = sum(role.replicas for role in parts)
        least = data.draw(st.sampled_from([None, *range(1, n_pods + 1)]))
        job = Job("j", A2, chips, replicas, roles=parts, min_available=least)
        limit = data.draw(st.integers(job.min_pods, n_pods))
        plain = Plain([c for c, _ in nodes], [cpu for _, cpu in nodes])
        expected = plain.decide(job, limit)
        before = arrays(cluster), cluster.node_table.resources.room.tobytes()

        decision = Session(cluster).decide(job, limit)

        if expected is None:
            assert isinstance(decision, Waiting)
            assert (
                arrays(cluster),
                cluster.node_table.resources.room.tobytes(),
            ) == before
        else:
            assert isinstance(decision, Placed)
            where = {p.replica: cluster.index[p.node] for p in decision.placements}
            assert where == expected
            taken = [(p.node, chip) for p in decision.placements for chip in p.chips]
            assert len(taken) == len(set(taken))
            assert (cluster.node_table.resources.room >= 0).all()
            role = {n: role for role, own in job.role_ranks for n in own}
            for p in decision.placements:
                assert (p.role, len(p.chips)) == (
                    role[p.replica].name,
                    role[p.replica].chips,
                )
            seen["part"] += len(where) < n_pods
        seen[type(decision).__name__] += 1

    check()
    assert_reached(seen, "Placed", "Waiting", "part", times=6)
