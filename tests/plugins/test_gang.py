"""All pods that must start together, or none."""

import pytest

from ringleaf.model.demand import Demand
from ringleaf.model.job import Role
from ringleaf.model.placement import Placement
from tests.plugins.stage import Stage, as_text, asks, pods


@pytest.mark.parametrize(
    ("replicas", "least", "want"),
    [
        pytest.param(4, None, None, id="all pods are there"),
        pytest.param(4, 4, None, id="as many as must start together"),
        pytest.param(3, 4, "the job has 3 pods, needs 4", id="too few in all"),
    ],
)
def test_a_job_must_have_the_pods_that_start_together(
    replicas: int, least: int | None, want: str | None
) -> None:
    stage = Stage()
    job_state = stage.waits("j", replicas=replicas, min_available=least)

    assert stage.votes("gang").job_valid(job_state) == want


def roles(ps: int, worker: int, least: tuple[int, int]) -> tuple[Role, Role]:
    """Pods of two roles, and how many of each the job cannot do without."""
    helper = asks(cpu=1000)
    return Role("ps", 0, ps, least[0], helper), Role("worker", 8, worker, least[1])


@pytest.mark.parametrize(
    ("job_least", "has", "needs", "want"),
    [
        pytest.param(3, (1, 2), (1, 2), None, id="every role has its least"),
        pytest.param(
            3, (1, 2), (0, 3), "role 'worker' has 2 pods, needs 3", id="a role has not"
        ),
        pytest.param(
            2, (1, 2), (0, 3), None, id="skipped when the job needs less than its roles"
        ),
    ],
)
def test_every_role_must_have_its_least(
    job_least: int, has: tuple[int, int], needs: tuple[int, int], want: str | None
) -> None:
    stage = Stage()
    job_state = stage.waits(
        "j", replicas=has[1], roles=roles(*has, needs), min_available=job_least
    )

    assert stage.votes("gang").job_valid(job_state) == want


def test_jobs_that_lack_pods_go_before_jobs_that_have_enough() -> None:
    stage = Stage()
    jobs = [
        stage.runs("runs", "0 1", replicas=3, min_available=2),
        stage.waits("waits"),
    ]
    votes = stage.votes("gang")

    assert [s.job.name for s in sorted(jobs, key=votes.job_key)] == ["waits", "runs"]


@pytest.mark.parametrize(
    ("pods_of_it", "want"),
    [
        pytest.param("......", "starving", id="nothing yet"),
        pytest.param("rr....", "starving", id="one pod short"),
        pytest.param("rrr...", "ready pipelined", id="enough"),
        pytest.param("rrrr..", "ready pipelined", id="more than enough"),
        pytest.param("err...", "starving", id="pods that end do not count"),
        pytest.param("rr.f..", "ready pipelined", id="pods that ended well count"),
        pytest.param("rr..p.", "pipelined", id="pods that await a place count"),
    ],
)
@pytest.mark.parametrize("of_roles", [(), (Role("a", 8, 3), Role("b", 8, 3))])
def test_when_a_job_is_ready_pipelined_and_starving(
    pods_of_it: str, want: str, of_roles: tuple[Role, ...]
) -> None:
    """Pods run, end, finished, are promised a place; three must start together."""
    stage = Stage(nodes=6)
    nodes = " ".join(str(i) for i, each in enumerate(pods_of_it) if each in "re")
    job_state = stage.runs("j", nodes, replicas=6, min_available=3, roles=of_roles)
    job_state.terminating = frozenset(
        i for i, each in enumerate(pods_of_it) if each == "e"
    )
    job_state.finish(i for i, each in enumerate(pods_of_it) if each == "f")
    job_state.pipelined = frozenset(
        i for i, each in enumerate(pods_of_it) if each == "p"
    )
    votes = stage.votes("gang")

    found = {
        "ready": votes.job_ready(job_state),
        "pipelined": votes.job_pipelined(job_state),
        "starving": votes.job_starving(job_state),
    }
    assert " ".join(word for word, holds in found.items() if holds) == want


@pytest.mark.parametrize(
    ("running", "least", "want"),
    [
        pytest.param("0 1 3", (1, 2), True, id="enough in all and of each"),
        pytest.param("0 1", (1, 1), False, id="enough of a role, too few in all"),
        pytest.param("0 1 2", (1, 0), False, id="enough in all, none of a role"),
        pytest.param("0 1 2", (2, 2), True, id="roles need more than the job: skipped"),
    ],
)
def test_a_job_is_ready_by_its_roles_too(
    running: str,
    least: tuple[int, int],
    want: bool,  # noqa: FBT001
) -> None:
    """Workers are pods 0 to 2, parameter servers 3 and 4; three must start."""
    stage = Stage()
    job_state = stage.waits("j", replicas=3, roles=roles(2, 3, least), min_available=3)
    for replica in map(int, running.split()):
        job_state.placements[replica] = Placement(replica, "n0", ())

    assert stage.votes("gang").job_ready(job_state) is want


@pytest.mark.parametrize(
    ("demand", "want"),
    [
        pytest.param(asks(), True, id="pods that ask for nothing count beforehand"),
        pytest.param(asks(cpu=1), False, id="others do not"),
    ],
)
def test_pods_that_can_start_anywhere(demand: Demand, want: bool) -> None:  # noqa: FBT001
    stage = Stage()
    job_state = stage.runs(
        "j",
        "0",
        replicas=1,
        roles=(Role("worker", 8), Role("log", 0, 1, 1, demand)),
    )

    assert stage.votes("gang").job_ready(job_state) is want


@pytest.mark.parametrize(
    ("least", "candidates", "want"),
    [
        pytest.param(2, "a3 a2 a1", "a3 a2", id="while more run than must"),
        pytest.param(4, "a3 a2 a1", "", id="no pod of a gang without surplus"),
        pytest.param(4, "a3 a2 a1 a0", "a3 a2 a1 a0", id="ours: but the whole of it"),
        pytest.param(3, "a3 b0 a2", "a3 b0", id="each job is counted by itself"),
    ],
)
@pytest.mark.parametrize("vote", ["preemptable", "reclaimable"])
def test_a_job_gives_what_it_can_spare_or_all_of_it(
    vote: str, least: int, candidates: str, want: str
) -> None:
    stage = Stage(nodes=6)
    stage.runs("a", "0 1 2 3", min_available=least)
    stage.runs("b", "4")
    evictor = stage.waits("j")

    found = getattr(stage.votes("gang"), vote)(evictor, pods(candidates))
    assert as_text(found) == want


def test_pods_that_end_already_need_not_be_named_for_a_job_to_go_whole() -> None:
    stage = Stage()
    stage.runs("a", "0 1 2").terminating = frozenset({0})
    votes = stage.votes("gang")

    assert as_text(votes.preemptable(stage.waits("j"), pods("a2 a1"))) == "a2 a1"
    assert as_text(votes.preemptable(stage.waits("k"), pods("a2"))) == ""
