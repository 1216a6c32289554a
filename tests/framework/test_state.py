"""Accounts of queues: right at any moment, also in the middle of a try."""

from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.state import SchedulerState, total_of
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Holding, Node
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.model.queue import Queue
from ringleaf.model.settings import Settings
from ringleaf.policies.products import NO_NPU, PRODUCTS

A2 = PRODUCTS["atlas-800t-a2"]
NPU = A2.resource
CPU = Demand(resources=(("cpu", 500),))


def a_view(*nodes: Node) -> SchedulerState:
    listed = nodes or (Node("n", A2, 8, 0xFF),)
    return SchedulerState(Cluster(listed), Settings(), [Queue("q")])


def enters(view: SchedulerState, job: Job, phase: Phase = Phase.PENDING) -> JobState:
    job_state = JobState(job)
    view.enter(job_state)
    view.set_phase(job_state, phase)
    return job_state


def test_there_is_always_a_queue_of_the_default_name() -> None:
    assert [*a_view().queues] == ["default", "q"]


def test_an_account_is_opened_when_it_is_first_asked_for() -> None:
    view = a_view()

    assert view.queue_usage["x"] is view.queue_usage["x"]
    assert [*view.queue_usage] == ["x"]


def test_pods_count_while_they_are_tried_and_no_longer() -> None:
    view = a_view()
    job_state = enters(view, Job("j", A2, 4, queue="q", demand=CPU))
    account = view.queue_usage["q"]

    with Statement(view.cluster) as statement:
        statement.allocate("j", 0, 0b1111, demand=CPU)
        assert account.allocated == {NPU: 4000, "cpu": 500}
        assert job_state.allocated == account.allocated

    assert account.allocated == {NPU: 0, "cpu": 0}
    assert account.requested == {NPU: 4000, "cpu": 500}


def test_pods_of_unknown_jobs_count_in_no_queue() -> None:
    view = a_view()

    Statement(view.cluster).hold("stranger", 0, 0b1)

    assert view.queue_usage == {}


def test_an_admitted_job_counts_as_inqueue_what_it_does_not_hold_yet() -> None:
    view = a_view()
    job_state = enters(view, Job("j", A2, 2, 3, min_available=2), Phase.INQUEUE)
    account = view.queue_usage["default"]
    assert account.inqueue == {NPU: 4000}

    Statement(view.cluster).hold("j", 0, 0b11)
    assert account.inqueue == {NPU: 2000}
    view.set_phase(job_state, Phase.RUNNING)
    assert account.inqueue == {}


def test_what_a_job_could_spare_is_what_it_has_beyond_its_least() -> None:
    view = a_view()
    enters(view, Job("j", A2, 2, 3, min_available=2), Phase.RUNNING)
    enters(view, Job("k", A2, 2), Phase.RUNNING)
    statement = Statement(view.cluster)
    for replica in range(3):
        statement.hold("j", 0, 0b11 << 2 * replica, replica)
    statement.hold("k", 0, 0b11 << 6)

    assert view.queue_usage["default"].elastic == {NPU: 2000}


def test_a_job_that_leaves_takes_everything_with_it() -> None:
    view = a_view()
    job_state = enters(view, Job("j", A2, 2, 2, min_available=1), Phase.INQUEUE)
    Statement(view.cluster).hold("j", 0, 0b11)

    view.leave(job_state)

    account = view.queue_usage["default"]
    assert account.jobs == {}
    for amounts in (account.allocated, account.requested):
        assert not any(amounts.values())
    assert not any((account.inqueue | account.elastic).values())


def test_a_job_that_changes_owes_what_it_owed() -> None:
    view = a_view()
    job_state = enters(view, Job("j", A2, 2), Phase.INQUEUE)

    view.leave(job_state)
    job_state.become(Job("j", A2, 4, queue="q"))
    view.enter(job_state)

    assert view.queue_usage["default"].inqueue == {}
    assert view.queue_usage["q"].inqueue == {NPU: 4000}


def test_pods_that_ended_well_are_asked_for_no_more() -> None:
    view = a_view()
    job_state = enters(view, Job("j", A2, 2, 3))

    view.mark_succeeded(job_state, [0, 1])

    assert view.queue_usage["default"].requested == {NPU: 2000}


def test_pods_that_are_ending_count_no_longer() -> None:
    """Volcano: a releasing pod is not among the allocated ones."""
    view = a_view()
    job_state = enters(view, Job("j", A2, 2, 2), Phase.RUNNING)
    with Statement(view.cluster) as statement:
        for replica in range(2):
            statement.hold("j", 0, 0b11 << 2 * replica, replica)
            job_state.placements[replica] = Placement(replica, "n", ())
        statement.commit()

    view.mark_terminating(job_state, [1])
    view.mark_terminating(job_state, [1])
    assert job_state.terminating == {1}
    assert view.queue_usage["default"].allocated == {NPU: 2000}

    with Statement(view.cluster) as statement:
        statement.release_pods("j", {1})
        statement.commit()
    assert view.queue_usage["default"].allocated == {NPU: 2000}


def test_a_job_without_pods_has_none_that_end() -> None:
    view = a_view()
    job_state = enters(view, Job("j", A2, 2))

    view.mark_terminating(job_state, [0])

    assert job_state.terminating == set()


def test_handlers_are_called_for_every_pod() -> None:
    view = a_view()
    enters(view, Job("j", A2, 2))
    notified: list[tuple[str, int, int, int]] = []

    def handler(
        job_state: JobState, holding: Holding, amounts: dict[str, int], by: int
    ) -> None:
        notified.append((job_state.job.name, holding.replica, amounts[NPU], by))

    view.handlers.append(handler)
    with Statement(view.cluster) as statement:
        statement.hold("j", 0, 0b11, 1)

    assert notified == [("j", 1, 2000, 1), ("j", 1, 2000, -1)]


def test_every_change_moves_the_version() -> None:
    view = a_view()
    versions = [view.version]
    job_state = enters(view, Job("j", A2, 2))
    versions.append(view.version)
    view.set_phase(job_state, Phase.INQUEUE)
    versions.append(view.version)
    view.mark_succeeded(job_state, [0])
    versions.append(view.version)
    view.leave(job_state)
    versions.append(view.version)
    view.recount_totals()
    versions.append(view.version)

    assert versions == sorted(set(versions))


def test_the_total_is_of_nodes_that_take_pods() -> None:
    """Chips by product, resources where every node says how much it has."""
    nodes = [
        Node("a", A2, 8, 0, faulty=0b1, resources={"cpu": 1000, "disk": 1}),
        Node("b", A2, 8, 0xFF, ready=False, resources={"cpu": 1000}),
        Node("c", A2, 8, 0xFF, cordoned=True, resources={"cpu": 3000}),
    ]

    assert total_of(Cluster(nodes)) == {NPU: 16_000, "cpu": 4000}


def test_the_total_counts_the_chips_that_kubernetes_counts() -> None:
    """A node whose device plugin is down has none to share, whatever pods hold."""
    cluster = Cluster(
        [
            Node("down", A2, 8, 0xFF, offers=0, allocatable=0),
            Node("some", A2, 8, 0xFF, offers=0b111, allocatable=3),
            Node("unclear", A2, 8, 0xFF, offers=0),
        ]
    )
    assert total_of(cluster) == {NPU: 11_000}

    cluster.change(0, Node("down", A2, 8, 0xFF))
    cluster.change(2, Node("unclear", A2, 8, 0xFF, offers=0, allocatable=1))
    assert total_of(cluster) == {NPU: 12_000}


def test_nodes_without_npus_count_no_chips() -> None:
    nodes = [
        Node("a", A2, 8, 0xFF, resources={"cpu": 1000}),
        Node("b", NO_NPU, 0, 0, resources={"cpu": 2000}),
    ]

    assert total_of(Cluster(nodes)) == {NPU: 8000, "cpu": 3000}


def test_the_total_of_nodes_that_say_they_have_very_much_is_exact() -> None:
    much = (1 << 61) - 1
    nodes = [Node(n, A2, 8, 0xFF, resources={"cpu": much}) for n in "abcde"]

    assert total_of(Cluster(nodes))["cpu"] == 5 * much


def test_accounts_of_queues_that_do_not_exist_go_with_their_jobs() -> None:
    view = a_view()
    for i in range(10):
        job_state = enters(view, Job(f"j{i}", A2, 4, queue=f"made up {i}"))
        view.leave(job_state)
    kept = enters(view, Job("j", A2, 4, queue="q"))
    assert [*view.queue_usage] == ["q"]

    view.remove_queue("q")
    assert [*view.queue_usage] == ["q"]
    view.leave(kept)
    assert [*view.queue_usage] == []


def test_an_account_without_jobs_goes_with_its_queue() -> None:
    view = a_view()
    view.queue_usage["q"]

    view.remove_queue("q")

    assert [*view.queue_usage] == []
