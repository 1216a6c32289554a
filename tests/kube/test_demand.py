"""What a pod asks besides chips, as the API server writes it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.kube.demand import BadPod, Unsupported, demand_of, requests_of
from ringleaf.kube.objects import Pod
from ringleaf.kube.quantity import COUNTED
from ringleaf.model.demand import (
    ANY_NAMESPACE,
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
from ringleaf.model.node_table import NodeTable

NPU = "huawei.com/Ascend910"
IGNORE = frozenset({NPU})
ONE_POD = (("pods", 1000),)
MUST = "requiredDuringSchedulingIgnoredDuringExecution"
MAY = "preferredDuringSchedulingIgnoredDuringExecution"
APP = {"matchLabels": {"app": "web"}}
IS_WEB = (Requirement("app", Operator.IN, ("web",)),)


def pod(spec: dict[str, Any] | None = None, **metadata: Any) -> Pod:  # noqa: ANN401
    """A pod as it comes from the API server."""
    plain = {"metadata": {"name": "p0", "namespace": "team", **metadata}}
    return msgspec.convert({**plain, "spec": spec or {}}, Pod)


def asks(name: str = "c", **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"name": name, "resources": keys}


def read(spec: dict[str, Any], **metadata: Any) -> Demand:  # noqa: ANN401
    return demand_of(pod(spec, **metadata), IGNORE)


def refusal(spec: dict[str, Any], kind: type[BadPod] = BadPod) -> str:
    with pytest.raises(kind) as refused:
        read(spec)
    line = str(refused.value)
    assert "\n" not in line
    assert line.startswith("Pod 'team/p0': spec.")
    return line.removeprefix("Pod 'team/p0': spec.")


def affinity(kind: str, firm: str, given: object) -> dict[str, Any]:
    return {"affinity": {kind: {firm: given}}}


def pod_affinity(**term: object) -> dict[str, Any]:
    given = {"topologyKey": "zone", "labelSelector": APP, **term}
    return affinity("podAffinity", MUST, [given])


def node_affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return affinity("nodeAffinity", MUST, {"nodeSelectorTerms": list(terms)})


def test_a_pod_that_asks_nothing_counts_as_one_pod() -> None:
    assert read({}) == Demand(resources=ONE_POD, namespace="team")


def test_the_common_pod() -> None:
    spec = {
        "containers": [
            asks(requests={"cpu": "500m", "memory": "1Gi", NPU: "8"}, limits={NPU: 8}),
            asks(requests={"cpu": 2, "memory": "0"}),
        ],
        "nodeSelector": {"host-arch": "huawei-arm", "accelerator-type": "module"},
    }

    assert read(spec, labels={"app": "web"}) == Demand(
        resources=(("cpu", 2500), ("memory", 2**30 * 1000), ("pods", 1000)),
        required=(
            Requirement("accelerator-type", Operator.IN, ("module",)),
            Requirement("host-arch", Operator.IN, ("huawei-arm",)),
        ),
        labels=(("app", "web"),),
        namespace="team",
    )


def test_a_limit_stands_for_a_request_that_is_not_there() -> None:
    spec = pod({"containers": [asks(limits={"cpu": 4, "x": 2}, requests={"cpu": 1})]})

    assert requests_of(spec.spec) == {"cpu": 1000, "x": 2000}


@pytest.mark.parametrize(
    ("init", "want"),
    [
        pytest.param([("3", "")], 3, id="one after the other: the largest"),
        pytest.param([("1", ""), ("1", "")], 2, id="no more than the containers"),
        pytest.param([("3", "Always")], 5, id="a sidecar runs beside the containers"),
        pytest.param([("1", "Always"), ("9", "")], 10, id="and beside later ones"),
        pytest.param([("9", ""), ("1", "Always")], 9, id="but not beside earlier"),
        pytest.param([("2", "Always"), ("2", "Always")], 6, id="two sidecars"),
        pytest.param([("4", ""), ("1", "Always"), ("2", "")], 4, id="all three kinds"),
    ],
)
def test_init_containers(init: list[tuple[str, str]], want: int) -> None:
    spec = {
        "containers": [asks(requests={"cpu": 1}), asks(requests={"cpu": 1})],
        "initContainers": [
            {**asks(requests={"cpu": cpu}), "restartPolicy": policy}
            for cpu, policy in init
        ],
    }

    assert requests_of(pod(spec).spec) == {"cpu": 1000 * want}


def test_overhead_is_added_to_the_larger_of_both() -> None:
    spec = {
        "containers": [asks(requests={"cpu": 1})],
        "initContainers": [asks(requests={"cpu": 4})],
        "overhead": {"cpu": "250m", "memory": "1"},
    }

    assert requests_of(pod(spec).spec) == {"cpu": 4250, "memory": 1000}


def test_chips_are_told_among_the_requests_only() -> None:
    spec = {"containers": [asks(limits={NPU: "8"})]}

    assert requests_of(pod(spec).spec) == {NPU: 8000}
    assert read(spec).resources == ONE_POD


def test_more_than_any_node_is_counted_to_have_stays_more() -> None:
    spec = {"containers": [asks(requests={"memory": "8Ei"})] * 2}

    assert dict(read(spec).resources)["memory"] == COUNTED + 1


def test_a_pod_cannot_say_how_many_pods_it_is() -> None:
    spec = {"containers": [asks(requests={"pods": "7"})]}

    assert read(spec).resources == ONE_POD


def test_labels_that_number_pods_are_left_out() -> None:
    """Or no two pods of a job would be alike."""
    labels = {"app": "web", "volcano.sh/task-index": "3"}

    assert read({}, labels=labels).labels == (("app", "web"),)
    assert demand_of(pod(labels=labels), IGNORE, frozenset({"app"})).labels == (
        ("volcano.sh/task-index", "3"),
    )


def test_equal_demands_are_one_object() -> None:
    one = {"containers": [asks(requests={"cpu": "1", "memory": "1024Mi"})]}
    other = {"containers": [asks("other", requests={"memory": "1Gi", "cpu": 1})]}

    assert read(one) is read(one, name="p1")
    assert read(one) is read(other)
    assert read(one) is not read(one, namespace="other")
    assert read(one) is not demand_of(pod(one), frozenset({"cpu"}))


def test_what_differs_is_never_taken_for_the_same() -> None:
    specs: list[dict[str, Any]] = [
        {},
        {"containers": [asks(requests={"cpu": 1})]},
        {"initContainers": [asks(requests={"cpu": 2})]},
        {"overhead": {"cpu": 3}},
        {"nodeSelector": {"a": "b"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"containers": [{"ports": [{"hostPort": 80}]}]},
        {"topologySpreadConstraints": [{"topologyKey": "zone"}]},
        pod_affinity(),
    ]

    assert len({read(spec) for spec in specs}) == len(specs)


def test_terms_of_node_affinity() -> None:
    expressions = [
        {"key": "a", "operator": "In", "values": ["1", "2"]},
        {"key": "b", "operator": "Gt", "values": ["-3"]},
        {"key": "c", "operator": "DoesNotExist"},
    ]
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": ["n3"]}]
    spec = node_affinity(
        {"matchExpressions": expressions, "matchFields": fields},
        {"matchExpressions": [{"key": "d", "operator": "Exists"}]},
    )

    assert read(spec).terms == (
        (
            Requirement("a", Operator.IN, ("1", "2")),
            Requirement("b", Operator.GREATER, ("-3",)),
            Requirement("c", Operator.DOES_NOT_EXIST),
            Requirement("metadata.name", Operator.NOT_IN, ("n3",)),
        ),
        (Requirement("d", Operator.EXISTS),),
    )


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        pytest.param([], [False, False], id="no term holds nowhere"),
        pytest.param([{}], [False, False], id="nor one that says nothing"),
        pytest.param(
            [{}, {"matchExpressions": [{"key": "a", "operator": "Exists"}]}],
            [True, False],
            id="which does not hinder the others",
        ),
    ],
)
def test_terms_that_say_nothing(terms: list[dict[str, Any]], want: list[bool]) -> None:
    labels = [{"a": "1", "metadata.name": "n0"}, {"metadata.name": "n1"}]
    fleet = NodeTable(labels, [(), ()], [{}, {}])

    assert fleet.labels.selected(read(node_affinity(*terms))).tolist() == want


def test_preferred_nodes() -> None:
    wants = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    given = [{"weight": 7, "preference": wants}, {"weight": 1, "preference": {}}]

    found = read(affinity("nodeAffinity", MAY, given)).prefers

    assert found == (Preferred(7, (Requirement("a", Operator.EXISTS),)),)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ({"operator": "Exists"}, Toleration(None, Match.EXISTS)),
        ({"key": "a", "operator": "Exists"}, Toleration("a", Match.EXISTS)),
        ({"key": "a", "value": "b"}, Toleration("a", Match.EQUAL, "b")),
        ({"key": "a", "operator": ""}, Toleration("a")),
        (
            {"key": "a", "effect": "NoExecute"},
            Toleration("a", effect=Effect.NO_EXECUTE),
        ),
    ],
)
def test_tolerations(given: dict[str, Any], want: Toleration) -> None:
    assert read({"tolerations": [given]}).tolerations == (want,)


def test_a_toleration_without_key_is_of_every_taint() -> None:
    (toleration,) = read({"tolerations": [{"operator": "Exists"}]}).tolerations

    assert toleration.covers(Taint("any", Effect.NO_SCHEDULE))


def test_ports_of_the_node() -> None:
    ports = [
        {"containerPort": 80},
        {"containerPort": 80, "hostPort": 8080},
        {"hostPort": 53, "protocol": "UDP"},
        {"hostPort": 8080, "hostIP": "127.0.0.1"},
    ]
    spec = {
        "containers": [{"ports": ports}],
        "initContainers": [
            {"ports": [{"hostPort": 1}]},
            {"ports": [{"hostPort": 2}], "restartPolicy": "Always"},
        ],
    }

    assert read(spec).ports == ("TCP/2", "TCP/8080", "UDP/53")


@pytest.mark.parametrize(
    ("term", "want"),
    [
        ({}, ()),
        ({"namespaces": ["b", "a"]}, ("a", "b")),
        ({"namespaceSelector": {}}, (ANY_NAMESPACE,)),
        ({"namespaceSelector": {}, "namespaces": ["a"]}, (ANY_NAMESPACE,)),
        (
            {
                "namespaceSelector": {
                    "matchLabels": {"kubernetes.io/metadata.name": "b"}
                }
            },
            ("b",),
        ),
    ],
)
def test_where_neighbours_are(term: dict[str, Any], want: tuple[str, ...]) -> None:
    assert read(pod_affinity(**term)).near == (PodTerm("zone", IS_WEB, want),)


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"team": "a"}},
        {"matchLabels": {"team": "a", "kubernetes.io/metadata.name": "b"}},
        {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
        {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "NotIn",
                    "values": ["a"],
                }
            ]
        },
    ],
)
def test_labels_of_namespaces_are_not_known(selector: dict[str, Any]) -> None:
    line = refusal(pod_affinity(namespaceSelector=selector), Unsupported)

    assert line == (
        f"affinity.podAffinity.{MUST}[0].namespaceSelector goes by labels of "
        "namespaces, which are not known here; hint: name them in namespaces, or "
        "select kubernetes.io/metadata.name"
    )


def test_neighbours_of_every_kind() -> None:
    term = {"topologyKey": "zone", "labelSelector": APP}
    nobody = {"topologyKey": "host"}
    spec = {
        "affinity": {
            "podAffinity": {
                MUST: [term],
                MAY: [{"weight": 3, "podAffinityTerm": term}],
            },
            "podAntiAffinity": {
                MUST: [nobody],
                MAY: [{"weight": 4, "podAffinityTerm": nobody}],
            },
        }
    }

    found = read(spec)

    assert found.near == (PodTerm("zone", IS_WEB),)
    assert found.apart == (PodTerm("host", None),)
    assert found.prefers_near == (PreferredPods(3, PodTerm("zone", IS_WEB)),)
    assert found.prefers_apart == (PreferredPods(4, PodTerm("host", None)),)


def test_spread() -> None:
    given = [
        {"topologyKey": "zone", "maxSkew": 2, "minDomains": 3, "labelSelector": APP},
        {"topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway"},
    ]

    assert read({"topologySpreadConstraints": given}).spread == (
        Spread("zone", 2, IS_WEB, min_domains=3),
        Spread("host", 1, None, hard=False),
    )


def spread(**keys: object) -> dict[str, Any]:
    return {"topologySpreadConstraints": [{"topologyKey": "zone", **keys}]}


def expression(**keys: object) -> dict[str, Any]:
    return node_affinity({"matchExpressions": [keys]})


SPREAD = "topologySpreadConstraints[0]"
NODES = f"affinity.nodeAffinity.{MUST}.nodeSelectorTerms[0].matchExpressions[0]"


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (
            {"containers": [asks(), asks(requests={"cpu": "four"})]},
            (
                "containers[1].resources.requests['cpu'] is 'four', "
                "want an amount such as 4, 500m, 1.5 or 64Gi"
            ),
        ),
        (
            {"initContainers": [asks(limits={"cpu": "-1"})]},
            "initContainers[0].resources.limits['cpu'] is '-1', want 0 or more",
        ),
        ({"overhead": {"cpu": -2}}, "overhead['cpu'] is '-2', want 0 or more"),
        (
            {"containers": [{"ports": [{"hostPort": 65536}]}]},
            "containers[0].ports[0].hostPort is 65536, want 1 to 65535",
        ),
        (
            {"containers": [{"ports": [{"hostPort": 1, "protocol": "tcp"}]}]},
            "containers[0].ports[0].protocol is 'tcp', want TCP, UDP or SCTP",
        ),
        (
            {"tolerations": [{"value": "a"}]},
            "tolerations[0].key is missing, want a key, or operator: Exists",
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Lt"}]},
            "tolerations[0].operator is 'Lt', want Equal or Exists",
        ),
        (
            {"tolerations": [{"key": "a", "effect": "Never"}]},
            (
                "tolerations[0].effect is 'Never', "
                "want NoSchedule, PreferNoSchedule or NoExecute"
            ),
        ),
        (
            expression(key="a", operator="in", values=["b"]),
            f"{NODES}.operator is 'in', want In, NotIn, Exists, DoesNotExist, Gt or Lt",
        ),
        (
            expression(key="a", operator="In"),
            f"{NODES}.values has 0, want one or more values for In",
        ),
        (
            expression(key="a", operator="Exists", values=["b"]),
            f"{NODES}.values has 1, want no values for Exists",
        ),
        (
            expression(key="a", operator="Lt", values=["x"]),
            f"{NODES}.values has 1, want one whole number for Lt",
        ),
        (
            expression(operator="Exists"),
            f"{NODES}.key is missing, want a label",
        ),
        (
            node_affinity({"matchFields": [{"key": "spec.x", "operator": "In"}]}),
            (
                f"affinity.nodeAffinity.{MUST}.nodeSelectorTerms[0].matchFields[0].key "
                "is 'spec.x', want 'metadata.name'"
            ),
        ),
        (
            node_affinity(
                {"matchFields": [{"key": "metadata.name", "operator": "Gt"}]}
            ),
            (
                f"affinity.nodeAffinity.{MUST}.nodeSelectorTerms[0].matchFields[0]"
                ".operator is 'Gt', want In or NotIn"
            ),
        ),
        (
            affinity("nodeAffinity", MAY, [{"weight": 101}]),
            f"affinity.nodeAffinity.{MAY}[0].weight is 101, want 1 to 100",
        ),
        (
            affinity("podAffinity", MAY, [{"weight": 0}]),
            f"affinity.podAffinity.{MAY}[0].weight is 0, want 1 to 100",
        ),
        (
            pod_affinity(topologyKey=""),
            (
                f"affinity.podAffinity.{MUST}[0].topologyKey is missing, "
                "want a label of nodes"
            ),
        ),
        (
            pod_affinity(
                labelSelector={"matchExpressions": [{"key": "a", "operator": "Gt"}]}
            ),
            (
                f"affinity.podAffinity.{MUST}[0].labelSelector.matchExpressions[0]"
                ".operator is 'Gt', want In, NotIn, Exists or DoesNotExist"
            ),
        ),
        (
            spread(maxSkew=0),
            "topologySpreadConstraints[0].maxSkew is 0, want 1 or more",
        ),
        (
            spread(minDomains=0),
            "topologySpreadConstraints[0].minDomains is 0, want 1 or more",
        ),
        (
            spread(whenUnsatisfiable="Perhaps"),
            (
                "topologySpreadConstraints[0].whenUnsatisfiable is 'Perhaps', "
                "want DoNotSchedule or ScheduleAnyway"
            ),
        ),
        (
            spread(topologyKey=""),
            f"{SPREAD}.topologyKey is missing, want a label of nodes",
        ),
    ],
)
def test_what_is_wrong_is_told_in_one_line(spec: dict[str, Any], line: str) -> None:
    assert refusal(spec) == line


TEXT = st.text(max_size=3) | st.sampled_from(["In", "Exists", "1", "NoSchedule", "TCP"])
EXPRESSIONS = st.lists(
    st.fixed_dictionaries({"key": TEXT, "operator": TEXT, "values": st.lists(TEXT)}),
    max_size=2,
)
SELECTORS = st.none() | st.fixed_dictionaries({"matchExpressions": EXPRESSIONS})
TERMS = st.fixed_dictionaries(
    {
        "topologyKey": TEXT,
        "labelSelector": SELECTORS,
        "namespaceSelector": SELECTORS,
    }
)
SPECS = st.fixed_dictionaries(
    {
        "containers": st.lists(
            st.builds(
                lambda requests: asks(requests=requests),
                st.dictionaries(TEXT, TEXT | st.integers() | st.floats()),
            ),
            max_size=2,
        ),
        "tolerations": st.lists(
            st.fixed_dictionaries({"key": TEXT, "operator": TEXT, "effect": TEXT}),
            max_size=2,
        ),
        "affinity": st.fixed_dictionaries(
            {
                "nodeAffinity": st.fixed_dictionaries(
                    {
                        MUST: st.fixed_dictionaries(
                            {
                                "nodeSelectorTerms": st.lists(
                                    st.fixed_dictionaries(
                                        {
                                            "matchExpressions": EXPRESSIONS,
                                            "matchFields": EXPRESSIONS,
                                        }
                                    ),
                                    max_size=2,
                                )
                            }
                        )
                    }
                ),
                "podAffinity": st.fixed_dictionaries({MUST: st.lists(TERMS)}),
            }
        ),
    }
)


@pytest.mark.slow
@given(SPECS)
def test_no_spec_does_worse_than_a_refusal(spec: dict[str, Any]) -> None:
    try:
        found = read(spec)
    except BadPod as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert read(spec) is found
