"""What pods ask of their neighbours, rule by rule, against what Kubernetes says."""

from collections.abc import Iterable

import numpy as np
import pytest
from tests.counting import n_calls

from ringleaf.framework.statement import Statement
from ringleaf.model import neighbours, pod_terms
from ringleaf.model.arrays import Flags
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.demand import (
    ANY_NAMESPACE,
    NOTHING,
    Demand,
    Operator,
    PodTerm,
    PreferredPods,
    Requirement,
    Selector,
    Spread,
)
from ringleaf.model.neighbours import Neighbours, neighbours_of
from ringleaf.model.pod_terms import HOSTNAME, Pick
from ringleaf.policies.products import PRODUCTS

A2 = PRODUCTS["atlas-800t-a2"]

WEB = Demand(labels=(("app", "web"),))
DB = Demand(labels=(("app", "db"), ("tier", "back")))
FAR_WEB = Demand(labels=(("app", "web"),), namespace="far")
IS_WEB = (Requirement("app", Operator.IN, ("web",)),)
IS_DB = (Requirement("app", Operator.IN, ("db",)),)
Pods = Iterable[tuple[int, Demand]]


def cluster(*zones: str | None) -> Cluster:
    """Nodes n0, n1, ... with these zones."""
    return Cluster(
        Node(f"n{i}", A2, 8, 0xFF, labels={} if zone is None else {"zone": zone})
        for i, zone in enumerate(zones)
    )


def hold(where: Cluster, pods: Pods) -> None:
    with Statement(where) as statement:
        for i, (node, demand) in enumerate(pods):
            statement.hold(f"running-{i}", node, 0, demand=demand)
        statement.commit()


def index(zones: str, pods: Pods = ()) -> Neighbours:
    """Nodes with zones of one letter (``.`` for none), and pods on them."""
    found = cluster(*(None if zone == "." else zone for zone in zones))
    hold(found, pods)
    return neighbours_of(found)


def those(flags: Flags | None) -> list[int] | None:
    return None if flags is None else np.flatnonzero(flags).tolist()


def near(*terms: PodTerm, pod: Demand = NOTHING) -> Demand:
    return Demand(near=terms, labels=pod.labels, namespace=pod.namespace)


def apart(*terms: PodTerm, pod: Demand = NOTHING) -> Demand:
    return Demand(apart=terms, labels=pod.labels, namespace=pod.namespace)


ZONE_WEB = PodTerm("zone", IS_WEB)
ZONE_DB = PodTerm("zone", IS_DB)
HOST_WEB = PodTerm(HOSTNAME, IS_WEB)


@pytest.mark.parametrize(
    ("selector", "meant"),
    [
        pytest.param((), ["web", "db", "none"], id="empty: every pod"),
        pytest.param(None, [], id="missing: no pod"),
        pytest.param(IS_WEB, ["web"], id="In"),
        pytest.param(
            (Requirement("app", Operator.NOT_IN, ("web",)),),
            ["db", "none"],
            id="NotIn: also pods without the label",
        ),
        pytest.param((Requirement("tier", Operator.EXISTS),), ["db"], id="Exists"),
        pytest.param(
            (Requirement("tier", Operator.DOES_NOT_EXIST),),
            ["web", "none"],
            id="DoesNotExist",
        ),
        pytest.param(
            (Requirement("app", Operator.EXISTS), *IS_DB), ["db"], id="all must hold"
        ),
    ],
)
def test_a_selector_means_pods(selector: Selector, meant: list[str]) -> None:
    pods = {"web": WEB, "db": DB, "none": NOTHING}
    pick = Pick(("default",), selector)

    assert [name for name, pod in pods.items() if pick.means(pod)] == meant


@pytest.mark.parametrize(
    ("namespaces", "meant"),
    [
        pytest.param((), [WEB], id="none: that of the pod that asks"),
        pytest.param(("far",), [FAR_WEB], id="named"),
        pytest.param(("far", "default"), [WEB, FAR_WEB], id="several"),
        pytest.param((ANY_NAMESPACE,), [WEB, FAR_WEB], id="every"),
    ],
)
def test_a_term_means_pods_of_namespaces(
    namespaces: tuple[str, ...], meant: list[Demand]
) -> None:
    pick = pod_terms.pick_of(PodTerm("zone", IS_WEB, namespaces), NOTHING)

    assert [pod for pod in (WEB, FAR_WEB) if pick.means(pod)] == meant


@pytest.mark.parametrize(
    ("zones", "pods", "pod", "refused"),
    [
        pytest.param("aab", [(0, WEB)], NOTHING, None, id="nothing asked"),
        pytest.param("aab", [(0, WEB)], near(ZONE_WEB), [2], id="other domains"),
        pytest.param("aab", [(0, WEB)], near(HOST_WEB), [1, 2], id="other nodes"),
        pytest.param("aab", [(0, DB)], near(ZONE_WEB), [0, 1, 2], id="no such pod"),
        pytest.param(
            "aab", [(0, FAR_WEB)], near(ZONE_WEB), [0, 1, 2], id="another namespace"
        ),
        pytest.param("a.b", [(0, WEB)], near(ZONE_WEB), [1, 2], id="no such label"),
        pytest.param(
            "a.b", [(1, WEB)], near(ZONE_WEB), [0, 1, 2], id="a pod in no domain"
        ),
        pytest.param(
            "aab", [], near(ZONE_WEB, pod=WEB), None, id="the first of its kind"
        ),
        pytest.param(
            "a.b",
            [],
            near(ZONE_WEB, pod=WEB),
            [1],
            id="the first of its kind needs the label too",
        ),
        pytest.param(
            "aab",
            [(2, WEB)],
            near(ZONE_WEB, pod=WEB),
            [0, 1],
            id="the second of its kind goes to the first",
        ),
        pytest.param(
            "ab",
            [(0, WEB), (1, DB)],
            near(ZONE_WEB, ZONE_DB),
            [0, 1],
            id="a pod counts only if all terms mean it",
        ),
        pytest.param(
            "aab",
            [(0, DB)],
            near(ZONE_DB, PodTerm(HOSTNAME, (Requirement("tier", Operator.EXISTS),))),
            [1, 2],
            id="each term in its own domain",
        ),
        pytest.param(
            "ab",
            [],
            near(ZONE_WEB, ZONE_DB, pod=WEB),
            [0, 1],
            id="the first of its kind is meant by all its terms",
        ),
    ],
)
def test_pods_that_need_neighbours(
    zones: str, pods: Pods, pod: Demand, refused: list[int] | None
) -> None:
    assert those(index(zones, pods).affinity_unmet(pod)) == refused


@pytest.mark.parametrize(
    ("zones", "pods", "pod", "refused"),
    [
        pytest.param("aab", [(0, WEB)], NOTHING, None, id="nothing asked"),
        pytest.param("aab", [(0, WEB)], apart(ZONE_WEB), [0, 1], id="the same domain"),
        pytest.param("aab", [(0, WEB)], apart(HOST_WEB), [0], id="the same node"),
        pytest.param("aab", [(0, DB)], apart(ZONE_WEB), None, id="other pods"),
        pytest.param("a.b", [(1, WEB)], apart(ZONE_WEB), None, id="no such label"),
        pytest.param(
            "aab",
            [(0, WEB), (2, DB)],
            apart(HOST_WEB, ZONE_DB),
            [0, 2],
            id="one term suffices",
        ),
        pytest.param(
            "aab", [(0, apart(ZONE_WEB))], WEB, [0, 1], id="a running pod says so"
        ),
        pytest.param("aab", [(0, apart(ZONE_WEB))], DB, None, id="of other pods"),
        pytest.param(
            "a.b", [(1, apart(ZONE_WEB))], WEB, None, id="from a node without the label"
        ),
        pytest.param(
            "aab",
            [(0, apart(ZONE_WEB, pod=FAR_WEB))],
            WEB,
            None,
            id="a running pod speaks of its own namespace",
        ),
        pytest.param(
            "ab",
            [(0, Demand(prefers_apart=(PreferredPods(1, ZONE_WEB),)))],
            WEB,
            None,
            id="a preference forbids nothing",
        ),
    ],
)
def test_pods_that_exclude_each_other(
    zones: str, pods: Pods, pod: Demand, refused: list[int] | None
) -> None:
    assert those(index(zones, pods).repelled(pod)) == refused


def spread(
    *constraints: Spread, pod: Demand = WEB, required: tuple[Requirement, ...] = ()
) -> Demand:
    return Demand(spread=constraints, labels=pod.labels, required=required)


ON_ZONES = Spread("zone", 1, IS_WEB)
SELECT_AB = (Requirement("zone", Operator.IN, ("a", "b")),)


@pytest.mark.parametrize(
    ("zones", "pods", "pod", "refused"),
    [
        pytest.param("aab", [(0, WEB)], WEB, None, id="nothing asked"),
        pytest.param(
            "aab", [(0, WEB)], spread(ON_ZONES), [0, 1], id="one more already"
        ),
        pytest.param("aab", [(0, DB)], spread(ON_ZONES), None, id="other pods"),
        pytest.param("aab", [(0, FAR_WEB)], spread(ON_ZONES), None, id="namespace"),
        pytest.param(
            "ab",
            [(0, WEB)],
            spread(ON_ZONES, pod=DB),
            None,
            id="a pod that is not counted adds nothing",
        ),
        pytest.param(
            "ab",
            [(0, WEB), (0, WEB)],
            spread(ON_ZONES, pod=DB),
            [0],
            id="and still is kept off",
        ),
        pytest.param(
            "ab", [(0, WEB)], spread(Spread("zone", 2, IS_WEB)), None, id="max skew 2"
        ),
        pytest.param("a.b", [], spread(ON_ZONES), [1], id="a node without the label"),
        pytest.param(
            "abc",
            [(0, WEB), (1, WEB)],
            spread(ON_ZONES, required=SELECT_AB),
            None,
            id="the fewest are those of nodes it selects",
        ),
        pytest.param(
            "ab",
            [(0, WEB), (1, WEB)],
            spread(Spread("zone", 1, IS_WEB, min_domains=3)),
            [0, 1],
            id="with too few domains the fewest are 0",
        ),
        pytest.param(
            "ab",
            [(0, WEB), (1, WEB)],
            spread(Spread("zone", 1, IS_WEB, min_domains=2)),
            None,
            id="with just enough domains they are counted",
        ),
        pytest.param(
            "ab",
            [(0, WEB)],
            spread(Spread("zone", 1, IS_WEB, hard=False)),
            None,
            id="a soft constraint refuses nothing",
        ),
        pytest.param(
            "aab",
            [(0, WEB), (2, WEB)],
            spread(ON_ZONES, Spread(HOSTNAME, 1, IS_WEB)),
            [0, 2],
            id="all constraints must hold",
        ),
        pytest.param(
            "a.b",
            [(0, WEB)],
            spread(ON_ZONES, Spread(HOSTNAME, 1, IS_WEB)),
            [0, 1],
            id="a node without one label is no domain of another",
        ),
    ],
)
def test_pods_that_are_spread(
    zones: str, pods: Pods, pod: Demand, refused: list[int] | None
) -> None:
    assert those(index(zones, pods).skew_exceeded(pod)) == refused


def test_pods_on_nodes_that_are_not_selected_do_not_count_in_their_domain() -> None:
    labels = [{"zone": "a"}, {"zone": "a", "ok": "1"}, {"zone": "b", "ok": "1"}]
    where = Cluster(Node(f"n{i}", A2, 8, 0xFF, labels=x) for i, x in enumerate(labels))
    hold(where, [(0, WEB)])
    ok = (Requirement("ok", Operator.EXISTS),)

    assert (
        those(neighbours_of(where).skew_exceeded(spread(ON_ZONES, required=ok))) is None
    )


def test_a_pod_that_selects_no_node_is_refused_none_by_its_spread() -> None:
    nowhere = (Requirement("zone", Operator.IN, ("x",)),)

    assert (
        index("ab", [(0, WEB)]).skew_exceeded(spread(ON_ZONES, required=nowhere))
        is None
    )


@pytest.mark.parametrize(
    ("taken", "asked", "refused"),
    [
        pytest.param(("TCP/80",), ("TCP/80",), [1], id="the same port"),
        pytest.param(("TCP/80",), ("UDP/80",), None, id="another protocol"),
        pytest.param(("TCP/80",), ("TCP/81", "TCP/80"), [1], id="one of several"),
        pytest.param(("TCP/80",), (), None, id="none asked"),
        pytest.param((), ("TCP/80",), None, id="none in use"),
    ],
)
def test_a_port_is_used_by_one_pod_of_a_node(
    taken: tuple[str, ...], asked: tuple[str, ...], refused: list[int] | None
) -> None:
    found = index("aa", [(1, Demand(ports=taken))])

    assert those(found.port_taken(Demand(ports=asked))) == refused


def test_a_port_is_free_again_when_its_pod_goes() -> None:
    where, pod = cluster("a"), Demand(ports=("TCP/80",))
    found = neighbours_of(where)
    hold(where, [(0, pod)])
    before = those(found.port_taken(pod))
    with Statement(where) as statement:
        statement.release("running-0")
        statement.commit()

    assert before == [0]
    assert found.port_taken(pod) is None


def prefers(*pairs: tuple[int, PodTerm], pod: Demand = NOTHING) -> Demand:
    """Positive weights are of neighbours it likes."""
    return Demand(
        labels=pod.labels,
        prefers_near=tuple(PreferredPods(w, t) for w, t in pairs if w > 0),
        prefers_apart=tuple(PreferredPods(-w, t) for w, t in pairs if w < 0),
    )


@pytest.mark.parametrize(
    ("pods", "pod", "liking"),
    [
        pytest.param([(0, WEB)], NOTHING, None, id="nothing preferred"),
        pytest.param([(0, DB)], prefers((3, ZONE_WEB)), None, id="no such pod"),
        pytest.param(
            [(0, WEB), (1, WEB)], prefers((3, ZONE_WEB)), [6, 6, 0, 0], id="per pod"
        ),
        pytest.param([(0, WEB)], prefers((-3, ZONE_WEB)), [-3, -3, 0, 0], id="apart"),
        pytest.param(
            [(0, WEB), (2, DB)],
            prefers((3, HOST_WEB), (5, ZONE_DB)),
            [3, 0, 5, 0],
            id="terms add up",
        ),
        pytest.param(
            [(3, WEB)], prefers((3, ZONE_WEB)), None, id="a node without the label"
        ),
        pytest.param(
            [(0, prefers((4, ZONE_WEB))), (2, prefers((-4, ZONE_WEB)))],
            WEB,
            [4, 4, -4, 0],
            id="running pods prefer too",
        ),
        pytest.param(
            [(0, prefers((4, ZONE_WEB)))], DB, None, id="running pods prefer others"
        ),
        pytest.param(
            [(0, near(ZONE_WEB, pod=WEB)), (2, apart(ZONE_DB))],
            WEB,
            None,
            id="what running pods require adds nothing",
        ),
    ],
)
def test_neighbours_that_are_liked(
    pods: Pods, pod: Demand, liking: list[int] | None
) -> None:
    found = index("aab.", pods).liking(pod)

    assert (None if found is None else found.tolist()) == liking


@pytest.mark.parametrize(
    ("constraints", "crowd", "counted"),
    [
        # Two pods in a, one in b; the logarithm of 2 domains + 2 is 1.386.
        pytest.param(
            [Spread("zone", 1, IS_WEB, hard=False)],
            [3, 3, 1],
            [0, 1, 2],
            id="pods of the domain, by the number of domains",
        ),
        pytest.param(
            [Spread("zone", 3, IS_WEB, hard=False)],
            [5, 5, 3],
            [0, 1, 2],
            id="a greater skew waters it down",
        ),
        # Four nodes: the logarithm of 6 is 1.792.
        pytest.param(
            [Spread(HOSTNAME, 1, IS_WEB, hard=False)],
            [4, 0, 2, 0],
            [0, 1, 2, 3],
            id="per node",
        ),
        # Three nodes have both labels: the logarithm of 5 is 1.609.
        pytest.param(
            [
                Spread("zone", 1, IS_WEB, hard=False),
                Spread(HOSTNAME, 1, IS_WEB, hard=False),
            ],
            [6, 3, 3],
            [0, 1, 2],
            id="constraints add up before rounding",
        ),
    ],
)
def test_how_crowded_nodes_are(
    constraints: list[Spread], crowd: list[int], counted: list[int]
) -> None:
    found = index("aab.", [(0, WEB), (0, WEB), (2, WEB)]).crowding(spread(*constraints))

    assert found is not None
    assert found[0][: len(crowd)].tolist() == crowd
    assert those(found[1]) == counted


def test_without_soft_constraints_nothing_is_crowded() -> None:
    assert index("ab", [(0, WEB)]).crowding(spread(ON_ZONES)) is None


def test_crowding_counts_nodes_that_the_pod_selects() -> None:
    soft = Spread("zone", 1, IS_WEB, hard=False)
    found = index("abc", [(2, WEB)]).crowding(spread(soft, required=SELECT_AB))

    assert found is not None
    assert found[0].tolist() == [0, 0, 0]
    assert those(found[1]) == [0, 1]


def test_a_node_without_a_hostname_has_its_name_for_it() -> None:
    labels = [{HOSTNAME: "twin"}, {HOSTNAME: "twin"}, {}, {}]
    where = Cluster(Node(f"n{i}", A2, 8, 0xFF, labels=x) for i, x in enumerate(labels))
    hold(where, [(0, WEB), (2, WEB)])

    assert those(neighbours_of(where).repelled(apart(HOST_WEB))) == [0, 1, 2]


def test_a_node_that_moves_to_another_zone_takes_its_pods_along() -> None:
    where = cluster("a", "b", "b")
    hold(where, [(0, WEB)])
    found = neighbours_of(where)
    before = those(found.repelled(apart(ZONE_WEB)))

    where.node_table.change(0, {"zone": "b"}, (), {})

    assert before == [0]
    assert those(found.repelled(apart(ZONE_WEB))) == [0, 1, 2]


def test_a_cluster_has_one_index() -> None:
    where = cluster("a")
    where.watchers.append(lambda _job, _holding, _by: None)

    assert neighbours_of(where) is neighbours_of(where)
    assert len(where.watchers) == 2


@pytest.mark.parametrize(
    ("pods", "pod", "heeds"),
    [
        pytest.param([(0, WEB)], WEB, False, id="nothing asked"),
        pytest.param([], near(ZONE_WEB), True, id="affinity"),
        pytest.param([], apart(ZONE_WEB), True, id="anti-affinity"),
        pytest.param([], spread(ON_ZONES), True, id="spread"),
        pytest.param([], prefers((1, ZONE_WEB)), True, id="preferred affinity"),
        pytest.param([], prefers((-1, ZONE_WEB)), True, id="preferred anti-affinity"),
        pytest.param([(0, apart(ZONE_WEB))], WEB, True, id="a running pod asks"),
        pytest.param([(0, apart(ZONE_WEB))], DB, False, id="a running pod, of others"),
        pytest.param([], Demand(ports=("TCP/80",)), False, id="ports"),
    ],
)
def test_which_pods_depend_on_pods_of_other_nodes(
    pods: Pods,
    pod: Demand,
    heeds: bool,  # noqa: FBT001
) -> None:
    assert index("ab", pods).heeds_others(pod) is heeds


def test_pods_that_ask_for_nothing_of_a_resource_are_counted() -> None:
    busy = Demand(resources=(("cpu", 500), ("memory", 0)))
    where = cluster("a", "b")
    hold(where, [(0, busy), (1, NOTHING)])
    found = neighbours_of(where)
    first = [found.bare(name).counts.tolist() for name in ("cpu", "memory")]
    hold(where, [(1, busy)])

    assert first == [[0, 1], [1, 1]]
    assert [found.bare(name).counts.tolist() for name in ("cpu", "memory")] == [
        [0, 1],
        [1, 2],
    ]


def test_the_version_moves_with_pods_that_a_requested_selector_matches() -> None:
    where = cluster("a", "b")
    found = neighbours_of(where)
    found.bare("cpu")
    hold(where, [(0, WEB)])
    before = found.version
    found.counted(Pick(("default",), IS_WEB))
    asked = found.version
    hold(where, [(0, DB)])
    other = found.version
    hold(where, [(0, WEB)])

    assert before == asked == other == 0
    assert found.version == 1


def test_selectors_that_are_no_longer_requested_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(neighbours, "MOST_KINDS", 2)
    where = cluster("a")
    found = neighbours_of(where)
    picks = [Pick(("default",), selector) for selector in (IS_WEB, IS_DB, ())]
    web, db = found.counted(picks[0]), found.counted(picks[1])
    found.counted(picks[0])
    before = found.version

    found.counted(picks[2])
    after = found.version
    hold(where, [(0, WEB), (0, DB)])

    assert after > before
    assert (web.total, db.total) == (1, 0)
    assert [found.counted(pick).total for pick in picks] == [1, 1, 2]


def test_what_kinds_of_pods_count_for_is_learnt_anew_when_there_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(neighbours, "MOST_MOVES", 2)
    where = cluster("a")
    found = neighbours_of(where)
    pods = [Demand(ports=(f"TCP/{i}",), apart=(ZONE_WEB,)) for i in range(6)]
    with Statement(where) as statement:
        for i, pod in enumerate(pods):
            statement.hold(f"try-{i}", 0, 0, demand=pod)
        held = [those(found.port_taken(pod)) for pod in pods]
        repelled = those(found.repelled(WEB))

    assert held == [[0]] * 6
    assert repelled == [0]
    assert [found.port_taken(pod) for pod in pods] == [None] * 6
    assert found.repelled(WEB) is None
    hold(where, [(0, NOTHING), (0, WEB), (0, DB)])
    assert found.repelled(WEB) is None


def test_what_running_pods_want_outlasts_new_questions() -> None:
    where = cluster("a", "b")
    hold(where, [(0, Demand(ports=("TCP/80",), apart=(ZONE_WEB,)))])
    found = neighbours_of(where)

    found.counted(Pick(("default",), IS_DB))

    assert those(found.repelled(WEB)) == [0]
    assert those(found.port_taken(Demand(ports=("TCP/80",)))) == [0]


def test_a_pod_that_was_rolled_back_concerns_no_other_pod() -> None:
    where = cluster("a", "b")
    found = neighbours_of(where)
    with Statement(where) as statement:
        statement.hold("try", 0, 0, demand=apart(ZONE_WEB))
        during = found.heeds_others(WEB)

    assert during
    assert not found.heeds_others(WEB)


def test_a_selector_is_held_against_kinds_of_pods_in_its_namespaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = cluster("a", "b")
    pods = [
        Demand(labels=WEB.labels, namespace=f"n{i % 5}", ports=(f"TCP/{i}",))
        for i in range(100)
    ]
    hold(where, [(i % 2, pod) for i, pod in enumerate(pods)])
    found = neighbours_of(where)
    asked, means = [], Pick.means

    def asks(pick: Pick, pod: Demand) -> bool:
        asked.append(pod)
        return means(pick, pod)

    monkeypatch.setattr(Pick, "means", asks)

    mine = found.counted(Pick(("n1", "none", "n1"), IS_WEB))

    assert (mine.total, mine.counts.tolist(), len(asked)) == (20, [10, 10], 1)
    assert found.counted(Pick((ANY_NAMESPACE,), IS_WEB)).total == 100
    assert len(asked) == 6


def test_wishes_are_held_against_pods_of_the_namespaces_that_they_mean() -> None:
    where = cluster("a", "b")
    hold(where, [(0, apart(ZONE_WEB)), (0, apart(ZONE_DB, pod=FAR_WEB))])
    everywhere = PodTerm("zone", IS_WEB, (ANY_NAMESPACE,))
    found = neighbours_of(where)

    assert those(found.repelled(WEB)) == [0]
    assert found.repelled(FAR_WEB) is None

    hold(where, [(1, apart(everywhere))])
    assert those(found.repelled(WEB)) == [0, 1]
    assert those(found.repelled(FAR_WEB)) == [1]


def test_domains_of_labels_that_no_node_has_are_one() -> None:
    found = index("ab")

    assert {id(found.domains(f"made-up-{i}")) for i in range(10)} == {
        id(found.domains("other"))
    }
    assert not found.domains("other").present.any()


def test_what_large_pods_count_for_is_learnt_anew_when_it_is_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = cluster("a")
    found = neighbours_of(where)
    pods = [Demand(ports=tuple(f"TCP/{i}{j}" for j in range(50))) for i in range(40)]
    monkeypatch.setattr(neighbours, "MOST_MOVES_BYTES", 10 * pods[0].weight)

    hold(where, [(0, pod) for pod in pods])

    assert len(found._moves) == 10  # noqa: SLF001
    assert those(found.port_taken(pods[0])) == [0]


def test_nothing_is_left_of_what_pods_wanted_that_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(neighbours, "MOST_MOVES", 4)
    where = cluster("a", "b")
    found = neighbours_of(where)
    for i in range(20):
        both = PodTerm("zone", IS_WEB, (f"x{i}", f"y{i}"))
        pod = Demand(namespace=f"n{i}", apart=(both,), ports=(f"TCP/{i}",))
        with Statement(where) as statement:
            statement.hold("job", 0, 0, demand=pod)

    found._forget_moves()  # noqa: SLF001

    wishes = found._wishes  # noqa: SLF001
    left = (wishes.known, wishes._about, found._kinds, found._ports)  # noqa: SLF001
    assert not any(left)


def test_a_kind_that_is_forgotten_leaves_the_others_with_its_labels() -> None:
    where = cluster("a", "b")
    both = Demand(labels=(*WEB.labels, ("tier", "back")))
    hold(where, [(0, WEB)])
    found = neighbours_of(where)
    with Statement(where) as statement:
        statement.hold("tried", 1, 0, demand=both)

    found._forget_moves()  # noqa: SLF001

    assert found.counted(Pick(("default",), IS_WEB)).counts.tolist() == [1, 0]


def test_a_wish_that_is_forgotten_leaves_the_others_about_its_namespace() -> None:
    where = cluster("a", "b")
    hold(where, [(0, apart(ZONE_WEB))])
    found = neighbours_of(where)
    with Statement(where) as statement:
        statement.hold("tried", 1, 0, demand=apart(ZONE_DB))
        statement.hold("also", 1, 0, demand=apart(PodTerm("rack", IS_WEB)))

    found.bare("cpu")

    assert those(found.repelled(WEB)) == [0]
    assert found.repelled(DB) is None


ANY_OF: tuple[Selector, ...] = (
    (),
    None,
    IS_WEB,
    IS_DB,
    (Requirement("app", Operator.IN, ("web", "db", "web")),),
    (Requirement("app", Operator.NOT_IN, ("web",)),),
    (Requirement("app", Operator.EXISTS),),
    (Requirement("tier", Operator.DOES_NOT_EXIST),),
    (Requirement("size", Operator.GREATER, ("3",)),),
    (Requirement("size", Operator.LESS, ("3",)), Requirement("app", Operator.EXISTS)),
    (*IS_DB, Requirement("tier", Operator.IN, ("back", "front"))),
)
KINDS = (
    NOTHING,
    WEB,
    DB,
    FAR_WEB,
    Demand(labels=(("size", "2"),)),
    Demand(labels=(("app", "x"), ("size", "7")), namespace="far"),
)


@pytest.mark.parametrize("selector", ANY_OF, ids=repr)
@pytest.mark.parametrize(
    "namespaces",
    [("default",), ("far", "default"), (ANY_NAMESPACE,), ("none",), ("far", "far")],
)
def test_who_is_meant_is_found_by_a_label(
    selector: Selector, namespaces: tuple[str, ...]
) -> None:
    """Pods that come before the selector is counted, and pods that come after."""
    pick = Pick(namespaces, selector)
    meant = [at for at, pod in enumerate(KINDS) if pick.means(pod)]
    where = cluster(*"abcdef")
    found = neighbours_of(where)
    with Statement(where) as before:
        for at, pod in enumerate(KINDS):
            before.hold(f"j{at}", at, 0, demand=pod)
        early = np.flatnonzero(found.counted(pick).counts).tolist()
    with Statement(where) as after:
        for at, pod in enumerate(KINDS):
            after.hold(f"j{at}", at, 0, demand=pod)
        late = np.flatnonzero(found.counted(pick).counts).tolist()
        term = PodTerm("kubernetes.io/hostname", selector, namespaces)
        after.hold("asks", 0, 0, demand=Demand(namespace="x", apart=(term,)))
        about = [at for at, pod in enumerate(KINDS) if found.heeds_others(pod)]

    assert early == late == about == meant


def test_pods_that_mind_their_own_kind_cost_in_proportion_to_their_number() -> None:
    """As the pods of many applications do that are spread by anti-affinity."""

    def work(pods: int) -> int:
        where = cluster(*"abcd")
        found = neighbours_of(where)

        def story() -> None:
            for i in range(pods):
                own = (Requirement("app", Operator.IN, (f"a{i}",)),)
                term = PodTerm("zone", own)
                pod = Demand(labels=(("app", f"a{i}"),), apart=(term,))
                found.repelled(pod)
                with Statement(where) as statement:
                    statement.hold(f"j{i}", i % 4, 0, demand=pod)
                    statement.commit()

        return n_calls(story)

    few, many = work(100), work(800)

    assert many < 1.5 * 8 * few


def test_domains_that_count_are_found_once_for_all_constraints_of_a_label(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pods may have a hundred constraints, and each pod of a gang asks anew."""
    kept = index("aabb", [(0, WEB)])
    pod = spread(*(Spread("zone", skew, IS_WEB) for skew in range(1, 50)))
    real, calls = pod_terms.Domains.among, []

    def counted(domains: pod_terms.Domains, nodes: Flags) -> Flags:
        calls.append(domains)
        return real(domains, nodes)

    monkeypatch.setattr(pod_terms.Domains, "among", counted)

    assert those(kept.skew_exceeded(pod)) == [0, 1]
    assert len(calls) == 1
