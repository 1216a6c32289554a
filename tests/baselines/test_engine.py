"""A baseline is an engine: gangs, queues, repairs and reports are Ringleaf's."""

import pytest
from msgspec.structs import replace

from ringleaf.baselines.registry import BASELINES
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.event import ConfChanged, NodesChanged, PodsGone
from ringleaf.model.cluster import Node
from ringleaf.model.decision import Reason, Waiting
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Schema
from ringleaf.model.mask import full_mask
from ringleaf.policies.products import PRODUCTS
from tests.baselines.stage import A2, A3, OLD, Stage, drawn, under_leaves

FULL = "####|####"


def test_a_gang_starts_whole_or_not_at_all() -> None:
    stage = Stage("first-fit", drawn(FULL, FULL, "####|...."))

    assert stage.comes(Job("three", OLD, 8, 3)) is None
    assert stage.comes(Job("two", OLD, 8, 2)) == ["n00", "n01"]
    assert not stage.engine.view.cluster.holdings.keys() - {"two"}


def test_who_waits_starts_when_others_go() -> None:
    stage = Stage("first-fit", drawn(FULL, FULL))
    stage.comes(Job("first", OLD, 8, 2))
    stage.comes(Job("second", OLD, 8, 1))

    assert stage.goes("first") == ["second"]


def test_a_waiting_job_is_told_how_many_nodes_lack_what() -> None:
    stage = Stage("first-fit", drawn(FULL, "##..|....", "...#|#..."))

    stage.comes(Job("j", OLD, 8, 2))

    assert stage.why("j") == (
        "job 'j' waits: needs 2 x 8 chips, 1 pod has no node; "
        "nodes: 1 fitting, 2 with too few free chips"
    )


def test_chips_in_pieces_count_as_fitting_where_wiring_does_not() -> None:
    """Of two pods one fits: the two chips of different modules, for who counts."""
    modules = PRODUCTS["atlas-800t-a3"]
    nodes = [Node("n0", modules, 16, 0b101), Node("n1", modules, 16, 0b1)]
    gang = Job("j", modules, 2, 2)

    def reasons(name: str) -> dict[Reason, int]:
        stage = Stage(name, nodes)
        assert stage.comes(gang) is None
        found = stage.engine.explain("j")
        assert isinstance(found, Waiting)
        return dict(found.reasons)

    assert reasons("first-fit") == {Reason.TOO_FEW_CHIPS: 1}
    assert reasons("fgd") == {Reason.TOO_FEW_CHIPS: 1, Reason.NOT_WIRED_TOGETHER: 1}


def test_another_product_stays_forbidden() -> None:
    stage = Stage("random", drawn(FULL))

    assert stage.comes(Job("j", A2, 8)) is None
    assert "of another product" in stage.why("j")


def test_nodes_that_take_no_pods_take_none() -> None:
    nodes = drawn(FULL, FULL)
    cordoned = replace(nodes[0], cordoned=True)

    assert Stage("first-fit", [cordoned, nodes[1]]).comes(Job("j", OLD, 1)) == ["n01"]


def test_resources_besides_chips_count() -> None:
    nodes = [
        Node("n00", OLD, 8, 0xFF, resources={"cpu": 2000}),
        Node("n01", OLD, 8, 0xFF, resources={"cpu": 8000}),
    ]
    asks = Demand(resources=(("cpu", 4000),))
    stage = Stage("first-fit", nodes)

    assert stage.comes(Job("j", OLD, 1, demand=asks)) == ["n01"]
    assert stage.comes(Job("k", OLD, 1, demand=asks)) == ["n01"]
    assert stage.comes(Job("l", OLD, 1, demand=asks)) is None
    found = stage.engine.explain("l")
    assert isinstance(found, Waiting)
    assert found.reasons == {Reason.TOO_FEW_RESOURCES: 2}


def test_an_elastic_job_gets_as_many_pods_as_fit() -> None:
    stage = Stage("best-fit", drawn(FULL, FULL, FULL, product=A2))

    assert stage.comes(Job("j", A2, 8, 8, min_available=2)) == ["n00", "n01", "n02"]
    assert stage.comes(Job("k", A2, 8, 8, min_available=2)) is None


def test_pods_of_other_roles_come_along() -> None:
    roles = (Role("driver", 0), Role("worker", 8, 2))
    stage = Stage("first-fit", drawn(FULL, FULL, product=A2))

    assert stage.comes(Job("j", A2, 8, 2, roles=roles)) == ["n00", "n01", "n00"]
    assert stage.comes(Job("k", A2, 8, 2, roles=roles)) is None
    found = stage.engine.explain("k")
    assert isinstance(found, Waiting)
    assert found.reasons == {Reason.TOO_FEW_CHIPS: 2}


def test_a_pod_that_is_lost_is_placed_anew_and_the_others_stay() -> None:
    stage = Stage("first-fit", drawn(FULL, FULL, FULL, product=A2))
    stage.comes(Job("j", A2, 8, 2))

    bad = Node("n01", A2, 8, 0, faulty=0xFF)
    stage.happens(NodesChanged((bad,)), PodsGone("j", (1,)))

    assert stage.nodes_of("j") == ["n00", "n02"]


def test_labels_of_networks_are_no_reason_to_wait() -> None:
    """Neither leaves nor SuperPoDs are known to who counts chips."""
    a3 = [Node(f"n{i}", A3, 16, full_mask(16), superpod=i) for i in range(4)]
    gang = Job("j", A3, 16, 4, sp_block=64)
    assert Stage("first-fit", a3).comes(gang) == ["n0", "n1", "n2", "n3"]

    torn = under_leaves("A #...", "B #...", "C #...", "D #...")
    padding = Job("j", A2, 8, 3, tor_affinity=Schema.LARGE_MODEL)
    assert Stage("ringleaf", torn).comes(padding) is None
    assert Stage("first-fit", torn).comes(padding) == ["A0", "B0", "C0"]


def test_the_rule_stays_when_the_configuration_or_the_nodes_change() -> None:
    stage = Stage("worst-fit", drawn(FULL, "##..|...."), order="fifo")
    more = Node("n02", OLD, 8, 0xF)

    stage.happens(ConfChanged(DEFAULT), NodesChanged((more,)))

    assert stage.comes(Job("a", OLD, 1)) == ["n00"]
    allocate = stage.engine.context.framework.conf.action_arguments["allocate"]
    assert allocate["reservation"] == "off"


@pytest.mark.parametrize("name", [n for n, e in BASELINES.items() if not e.by_pods])
def test_a_job_that_waits_can_be_explained(name: str) -> None:
    stage = Stage(name, under_leaves("A ##", "B #."))
    job = Job("j", A2, 8, 4, tor_affinity=Schema.LARGE_MODEL)

    assert stage.comes(job) is None

    assert stage.engine.explain("j").job == job
