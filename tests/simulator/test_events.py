"""What only the engine heeds is read: queues, configurations, roles, later events."""

from typing import Any, get_args

import pytest

from ringleaf.engine import event as ev
from ringleaf.model.fault import Cause, PodFault
from ringleaf.model.job import Role
from ringleaf.model.job_labels import Schema
from ringleaf.model.placement import JobType, LeafAnnotation, LeafState, Placement
from ringleaf.model.queue import Queue
from ringleaf.model.settings import Settings, SwitchMode
from ringleaf.policies.products import PRODUCTS
from ringleaf.simulator.events import FORMS
from ringleaf.simulator.scenario import Scenario, load
from ringleaf.simulator.source import BadInput

A2 = PRODUCTS["atlas-800t-a2"]
NODES = "nodes: [{name: 'n{i}', count: 2, product: atlas-800t-a2, leaf: A}]\n"
JOBS = NODES + "jobs: [{name: j, chips: 8}, {name: two, chips: 4, replicas: 2}]\n"
CAST = "{name: k, roles: [{name: w, chips: 8, replicas: 2, rank-index: [3, 1]}]}"


def one(text: str) -> Scenario:
    (found,) = load(text.encode())
    return found


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        load(text.encode())
    return str(caught.value)


def later(entry: str) -> Any:  # noqa: ANN401
    """The event of one entry, which happens at 5 seconds."""
    (found,) = one(f"{JOBS}then: [{{at: 5, {entry}}}]").then
    assert found.at == 5
    return found.event


def test_there_is_one_form_for_every_event() -> None:
    assert sorted(map(repr, FORMS.values())) == sorted(map(repr, get_args(ev.Event)))


@pytest.mark.parametrize(
    ("entry", "event"),
    [
        ("ends: j", ev.JobGone("j")),
        (
            "ends: {job: j, returns: true, ends-run: false}",
            ev.JobGone("j", returns=True, ends_run=False),
        ),
        (
            "pods-end: {job: j, replicas: [0], ends-run: false}",
            ev.PodsGone("j", (0,), ends_run=False),
        ),
        ("pods-end: {job: two, replicas: [0, 1]}", ev.PodsGone("two", (0, 1))),
        (
            "pods-end: {job: j, replicas: [0], succeeded: true}",
            ev.PodsGone("j", (0,), succeeded=True),
        ),
        ("pods-ending: {job: two, replicas: [1]}", ev.PodsEnding("two", (1,))),
        ("pods-run: {job: two, replicas: [1]}", ev.PodsRun("two", (1,))),
        (
            "pods-refused: {job: two, replicas: [1], why: full}",
            ev.PodsRefused("two", (1,), "full"),
        ),
        (
            "pods-ail: {job: two, ailments: [{replica: 1, cause: NodeUnhealthy}]}",
            ev.PodFaultsReported("two", (PodFault(1, Cause.NODE),)),
        ),
        ("bind-fails: {job: j, replicas: []}", ev.BindFailed("j", ())),
        ("nodes-gone: [n1]", ev.NodesGone(("n1",))),
        ("queue: {name: q, weight: 2}", ev.QueueChanged(Queue("q", 2))),
        ("queue-gone: q", ev.QueueGone("q")),
        ("wakes: true", ev.TimerFired()),
    ],
)
def test_an_entry_is_its_event(entry: str, event: object) -> None:
    assert later(entry) == event


def test_pods_may_be_named_that_a_job_had_before_it_changed() -> None:
    scenario = one(
        f"{JOBS}then: [{{at: 0, arrives: {{name: two, chips: 4}}}}, "
        "{at: 1, pods-end: {job: two, replicas: [1]}}]"
    )

    assert scenario.then[1].event == ev.PodsGone("two", (1,))


def test_a_pod_may_ail_that_was_on_a_node_that_is_gone() -> None:
    scenario = one(
        f"{JOBS}then: [{{at: 0, nodes-gone: [n1]}}, {{at: 1, pods-ail: {{job: j, "
        "ailments: [{replica: 0, cause: NodeUnhealthy, node: n1}]}}]"
    )

    assert scenario.then[1].event == ev.PodFaultsReported(
        "j", (PodFault(0, Cause.NODE, "n1"),)
    )


def test_pods_of_a_job_that_runs_at_the_beginning_may_be_named() -> None:
    scenario = one(
        f"{NODES}running: [{{name: r, chips: 8, replicas: 2, placements: "
        "[{replica: 0, node: n0, chips: []}]}]\n"
        "then: [{at: 1, pods-run: {job: r, replicas: [1]}}]"
    )

    assert scenario.then[0].event == ev.PodsRun("r", (1,))


def test_the_pod_without_which_no_other_goes_on_is_one_of_the_job() -> None:
    last = "arrives: {name: k, chips: 1, replicas: 2, master: 1}"

    assert later(last).job.recovery.master == 1
    assert later(f"arrives: {CAST}").job.recovery.master == 0, "as usual"


def test_a_job_that_arrives_is_created_then_unless_it_says_otherwise() -> None:
    assert later("arrives: {name: k, chips: 1}").job.created == 5
    assert later("arrives: {name: k, chips: 1, created: -3}").job.created == -3


def test_pods_that_run_already_arrive_with_their_job() -> None:
    found = later(
        "arrives: {name: k, chips: 1, started: -60, tor-affinity: normal-schema, "
        "placements: [{replica: 0, node: n1, chips: [3], annotations: "
        "{isSharedTor: '1', isHealthy: '1', super-pod-rank: '2'}}]}"
    )

    mark = LeafAnnotation(JobType.COMMON, LeafState.SHARED, healthy=False)
    assert found.placements == (Placement(0, "n1", (3,), 2, mark),)
    assert found.started == -60


def test_a_pod_of_a_job_without_a_label_says_nothing_of_its_leaf() -> None:
    found = later(
        "arrives: {name: k, chips: 1, placements: [{replica: 0, node: n1, chips: [3]}]}"
    )

    assert found.placements == (Placement(0, "n1", (3,)),)


def test_a_job_may_arrive_with_its_past() -> None:
    found = later(
        "arrives: {name: k, chips: 1, previous: {keep: job, failed-nodes: [n0], "
        "placements: [{replica: 0, node: n0, chips: [3]}]}}"
    )

    assert found.job.previous.failed_nodes == ("n0",)
    assert found.job.previous.placements == (Placement(0, "n0", (3,)),)


def test_nodes_keep_their_slot_or_get_the_first_free_one() -> None:
    found = later(
        "nodes: [{name: n1, product: atlas-800t-a2, leaf: A, ready: false}, "
        "{name: x, product: atlas-800t-a2, leaf: A}, "
        "{name: y, product: atlas-800t-a2, leaf: A, slot: 7}, "
        "{name: z, product: atlas-800t-a2}]"
    )

    assert [(n.name, n.slot, n.ready) for n in found.nodes] == [
        ("n1", 1, False),
        ("x", 2, True),
        ("y", 7, True),
        ("z", 0, True),
    ]


def test_the_slot_of_a_node_that_is_gone_is_free() -> None:
    scenario = one(
        f"{JOBS}then: [{{at: 0, nodes-gone: [n0]}}, "
        "{at: 0, nodes: [{name: x, product: atlas-800t-a2, leaf: A}]}]"
    )

    event = scenario.then[1].event
    assert isinstance(event, ev.NodesChanged)
    assert event.nodes[0].slot == 0


def test_leaves_are_all_of_them() -> None:
    (leaf,) = later("leaves: {A: {state: shared, address: 10.0.0.1}}").leaves

    assert (leaf.name, leaf.state, leaf.address) == ("A", LeafState.SHARED, "10.0.0.1")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "then: [{at: 5}]",
            (
                "then[0] has nothing that happens, want one thing that happens; "
                f"hint: one of {', '.join(FORMS)}"
            ),
        ),
        (
            "then: [{at: 5, ends: j, wakes: true}]",
            (
                "then[0] has ends and wakes, want one thing that happens; "
                f"hint: one of {', '.join(FORMS)}"
            ),
        ),
        (
            "then: [{at: 5, wakes: true}, {at: 4.5, wakes: true}]",
            (
                "then[1].at is 4.5, want 5 or later; "
                "hint: entries are in the order of time"
            ),
        ),
        (
            "then: [{at: 5, wakes: true}]\nuntil: 4",
            "until is 4, want 5 or later, the last of then",
        ),
        (
            "then: [{at: 5, ends: k}]",
            (
                "then[0].ends is 'k', want the name of a job; "
                "hint: it arrives earlier, or is under jobs or running"
            ),
        ),
        (
            "then: [{at: 5, nodes-gone: [n7]}]",
            (
                "then[0].nodes-gone[0] is 'n7', want the name of a node; "
                "hint: nodes are listed under nodes"
            ),
        ),
        (
            (
                "then: [{at: 5, nodes: [{name: x, product: atlas-800t-a2, leaf: A, "
                "slot: 1}]}]"
            ),
            "then[0].nodes[0].slot is 1 under leaf 'A', already the slot of node 'n1'",
        ),
        (
            "then: [{at: 5, queue: q}]",
            "then[0].queue is 'q', want a mapping: a queue",
        ),
        (
            "then: [{at: 5, pods-end: {job: j, replicas: 0}}]",
            "then[0].pods-end.replicas is 0, want a list of ranks of pods",
        ),
        (
            "then: [{at: 5, pods-run: {job: two, replicas: [0, 5]}}]",
            (
                "then[0].pods-run.replicas[1] is 5, "
                "want the rank of a pod of 'two', 0 to 1"
            ),
        ),
        (
            "then: [{at: 5, pods-end: {job: j, replicas: [1]}}]",
            "then[0].pods-end.replicas[0] is 1, want the rank of a pod of 'j', 0",
        ),
        (
            "then: [{at: 5, pods-ending: {job: j, replicas: [1]}}]",
            "then[0].pods-ending.replicas[0] is 1, want the rank of a pod of 'j', 0",
        ),
        (
            "then: [{at: 5, bind-fails: {job: j, replicas: [1]}}]",
            "then[0].bind-fails.replicas[0] is 1, want the rank of a pod of 'j', 0",
        ),
        (
            "then: [{at: 5, pods-refused: {job: j, replicas: [1]}}]",
            "then[0].pods-refused.replicas[0] is 1, want the rank of a pod of 'j', 0",
        ),
        (
            (
                f"then: [{{at: 5, arrives: {CAST}}}, "
                "{at: 5, pods-ail: {job: k, ailments: "
                "[{replica: 0, cause: pod-failed}]}}]"
            ),
            (
                "then[1].pods-ail.ailments[0].replica is 0, "
                "want the rank of a pod of 'k', 1, 3"
            ),
        ),
        (
            (
                "then: [{at: 5, pods-ail: {job: j, ailments: "
                "[{replica: 0, cause: CardUnhealthy}]}}]"
            ),
            (
                "then[0].pods-ail.ailments[0].cause is 'CardUnhealthy', want what is "
                "wrong with the pod itself; "
                "hint: unhealthy chips are listed on nodes, as faulty"
            ),
        ),
        (
            (
                "then: [{at: 5, pods-ail: {job: j, ailments: "
                "[{replica: 0, cause: pod-failed, node: n7}]}}]"
            ),
            (
                "then[0].pods-ail.ailments[0].node is 'n7', want the name of a node; "
                "hint: nodes are listed under nodes"
            ),
        ),
        *(
            (
                (
                    "then: [{at: 5, pods-ail: {job: j, ailments: "
                    f"[{{replica: 0, cause: {cause}}}]}}}}]"
                ),
                (
                    f"then[0].pods-ail.ailments[0].cause is '{cause}', want one of "
                    "NodeUnhealthy, CardUnhealthy, pod-failed, RelationFaultSeparate, "
                    "SubHealthFault"
                ),
            )
            for cause in ("old age", "PodRefused", "CardNetworkUnhealthy")
        ),
        (
            "then: [{at: 5, nodes: [{name: x, product: atlas-800t-a2, down: switch}]}]",
            (
                "then[0].nodes[0].down is 'switch' where the node is ready, want no "
                "such key; hint: ready: false beside it says that the node is down"
            ),
        ),
        (
            (
                "then: [{at: 5, nodes: [{name: n1, product: atlas-800t-a2, "
                "faulty: [7, 2], unhealthy: [2, 3]}]}]"
            ),
            (
                "then[0].nodes[0].unhealthy[1] is 3, want one of the faulty chips: "
                "2, 7; hint: chips under faulty are unhealthy unless this key says "
                "otherwise"
            ),
        ),
        (
            "then: [{at: 5, arrives: {name: k, chips: 1, replicas: 2, master: 7}}]",
            (
                "then[0].arrives.master is 7, want the rank of one of its pods, "
                "0 to 1; hint: null where every pod goes on without any other"
            ),
        ),
        (
            "then: [{at: 5, leaves: {A: {}, B: {state: 1}}}]",
            "then[0].leaves.B.state is 1, want idle, shared or exclusive",
        ),
        (
            "then: [{at: 5, wakes: true, settings: {}}]",
            "then[0].settings is without configuration",
        ),
        (
            "queues: [{name: q}, {name: q}]",
            "queues[1].name is 'q', already the name of a queue",
        ),
        (
            "queues: [{name: q, weight: 65536}]",
            "queues[0].weight is 65536, want a whole number from 1 to 65535",
        ),
        (
            "queues: [{name: q, state: idle}]",
            "queues[0].state is 'idle', want open or closed",
        ),
        (
            "queues: [{name: q, capability: {cpu: 64, memory: lots}}]",
            (
                "queues[0].capability['memory'] is 'lots', "
                "want an amount such as 4, 500m, 64Gi"
            ),
        ),
        (
            "queues: [{name: q, guarantee: {cpu: 64, memory: null}}]",
            (
                "queues[0].guarantee.memory is null, want an amount such as 4, 500m or "
                "64Gi"
            ),
        ),
        (
            "configuration: {actions: alocate}",
            (
                "configuration.actions: unknown action 'alocate'; "
                "hint: did you mean 'allocate'?"
            ),
        ),
        (
            "configuration: {actions: alocate, tires: []}",
            (
                "configuration.tires: the configuration has the unknown key 'tires' "
                "(and 1 more: ringleaf check-conf lists them); "
                "hint: did you mean 'tiers'?"
            ),
        ),
        (
            "configuration: 'actions: ['",
            (
                "configuration: line 1, column 11: neither YAML nor JSON: "
                "while parsing a flow node did not find expected node content"
            ),
        ),
        (
            "configuration: {tiers: [{plugins: [{name: gang, enableJobReadi: true}]}]}",
            (
                "configuration.tiers[0].plugins[0] has the unknown flag "
                "'enableJobReadi'; hint: did you mean 'enableJobReady'?"
            ),
        ),
        (
            "configuration: {actions: [allocate]}",
            ("configuration.actions is a list, want names, separated by commas"),
        ),
        (
            "configuration: ''",
            "configuration is '', want a mapping with actions, tiers, or text with it",
        ),
        (
            "configuration: [allocate]",
            (
                "configuration is ['allocate'], want a mapping with actions, tiers, or "
                "text with it"
            ),
        ),
    ],
)
def test_what_is_wrong_is_told_in_one_line(entry: str, message: str) -> None:
    assert refusal(JOBS + entry) == message


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (
            "replicas: 2",
            "jobs[0].chips is missing, want a whole number from 0 to 1000000, per pod",
        ),
        (
            "chips: null",
            "jobs[0].chips is null, want a whole number from 0 to 1000000, per pod",
        ),
        (
            "chips: 8, roles: [{name: w, chips: 8}]",
            (
                "jobs[0].chips is beside roles, want it on the roles; "
                "hint: every role says what its pods ask"
            ),
        ),
        (
            "replicas: 1, roles: [{name: w, chips: 8}]",
            (
                "jobs[0].replicas is beside roles, want it on the roles; "
                "hint: every role says what its pods ask"
            ),
        ),
        (
            "host-ports: [80], roles: [{name: w, chips: 8}]",
            (
                "jobs[0].host-ports is beside roles, want it on the roles; "
                "hint: every role says what its pods ask"
            ),
        ),
        (
            "roles: [{name: w, chips: 8}, {name: w, chips: 0}]",
            "jobs[0].roles[1].name is 'w', already the name of jobs[0].roles[0]",
        ),
        (
            "roles: [{name: w, replicas: 8}]",
            (
                "jobs[0].roles[0].chips is missing, "
                "want a whole number from 0 to 1000000, per pod"
            ),
        ),
        (
            (
                "roles: [{name: v, chips: 8, rank-index: [1]}, "
                "{name: w, chips: 8, replicas: 2, rank-index: [0, 1]}]"
            ),
            (
                "jobs[0].roles[1].rank-index[1] is 1, "
                "already that of jobs[0].roles[0].rank-index[0]"
            ),
        ),
        (
            "chips: 8, replicas: 2, rank-index: [0]",
            "jobs[0].rank-index has 1, want 2, one per replica",
        ),
        (
            "chips: 8, host-ports: [8080, ICMP/1]",
            (
                "jobs[0].host-ports[1] is 'ICMP/1', "
                "want a port from 1 to 65535, as 8080 or UDP/8080"
            ),
        ),
        (
            "chips: 8, estimate-seconds: 0",
            "jobs[0].estimate-seconds is 0, want a number of seconds above 0",
        ),
        (
            "chips: 8, spread: [{topology-key: z, max-skew: 0}]",
            "jobs[0].spread[0].max-skew is 0, want a whole number from 1 to 1000000",
        ),
        (
            "chips: 8, preferred-pod-affinity: [{topology-key: z}]",
            (
                "jobs[0].preferred-pod-affinity[0].weight is missing, "
                "want a whole number from 1 to 100"
            ),
        ),
        (
            "chips: 8, pod-affinity: [{topology-key: z, selector: {match-label: 1}}]",
            (
                "jobs[0].pod-affinity[0].selector has the unknown key 'match-label'; "
                "hint: did you mean 'match-labels'?"
            ),
        ),
    ],
)
def test_what_is_wrong_with_a_job_is_told_in_one_line(job: str, message: str) -> None:
    assert refusal(f"{NODES}jobs: [{{name: j, {job}}}]") == message


def test_a_job_has_roles_with_their_own_demands() -> None:
    (job,) = one(
        f"{NODES}jobs: [{{name: j, min-member: 2, roles: ["
        "{name: driver, chips: 0, resources: {cpu: 2}, host-ports: [80]}, "
        "{name: worker, chips: 8, replicas: 2, rank-index: [4, 2], min-member: 1}]}]"
    ).jobs

    driver, worker = job.roles
    assert (job.chips, job.replicas, job.min_available) == (8, 2, 2)
    assert driver.demand.resources == (("cpu", 2000),)
    assert driver.demand.ports == ("TCP/80",)
    assert worker == Role("worker", 8, 2, 1, ranks=(4, 2))
    assert job.demand == worker.demand


def test_every_key_of_a_job_that_only_the_engine_heeds_is_read() -> None:
    (job,) = one(
        f"{NODES}queues: []\njobs: [{{name: j, chips: 8, queue: q, priority: -7, "
        "estimate-seconds: 60, preemptable: false, preempts: false, critical: true, "
        "created: -1}]"
    ).jobs

    assert (job.queue, job.priority, job.estimate_s, job.created) == ("q", -7, 60, -1)
    assert (job.preemptable, job.preempts, job.critical) == (False, False, True)


def test_a_queue_has_every_key() -> None:
    (queue,) = one(
        f"{NODES}queues: [{{name: q, weight: 3, capability: {{cpu: 4}}, guarantee: "
        "{cpu: 500m}, reclaimable: false, priority: 2, state: closed, "
        "hierarchy: root/q, hierarchy-weights: 1/3}]"
    ).queues

    assert queue == Queue(
        "q",
        3,
        {"cpu": 4000},
        {"cpu": 500},
        reclaimable=False,
        priority=2,
        is_open=False,
        hierarchy="root/q",
        hierarchy_weights="1/3",
    )


CONF = """
configuration:
  actions: allocate
  configurations:
    - {name: init-params, arguments: {nslb-version: "2.0", super-pod-size: 16}}
"""


def test_the_init_params_of_a_configuration_are_the_settings() -> None:
    found = one(NODES + CONF)

    assert found.settings.switch_mode is SwitchMode.SPINE_LEAF_2
    assert found.settings.superpod_size == 16
    assert found.conf is not None
    assert found.conf.settings == found.settings


def test_settings_win_over_init_params_key_by_key() -> None:
    found = one(
        f"{NODES}{CONF}settings: {{super-pod-size: 8, tor-level: single_layer}}"
    )

    assert found.settings == Settings(
        switch_mode=SwitchMode.SINGLE_LAYER, superpod_size=8
    )


def test_settings_beside_a_later_configuration_win_over_all() -> None:
    found = one(
        f"{NODES}settings: {{super-pod-size: 8, reserve-nodes: 1}}\nthen: [{{at: 1, "
        "configuration: 'actions: allocate', settings: {super-pod-size: 4}}]"
    )

    event = found.then[0].event
    assert isinstance(event, ev.ConfChanged)
    assert event.conf.settings == Settings(superpod_size=4, reserve_nodes=1)
    assert event.conf.actions == ("allocate",)


def test_what_a_configuration_leaves_out_is_a_warning() -> None:
    (line,) = one(f"{NODES}configuration: {{actions: allocate}}").warnings

    told = "configuration: no tiers are configured: the default applies"
    assert line.startswith(told)


def test_keys_without_an_effect_get_one_warning_each() -> None:
    found = one(
        f"{NODES}until: 5\ngrace-seconds: 1\nrunning: [{{name: r, chips: 1, "
        "placements: [], started: 1, priority: 1}]\n"
        "jobs: [{name: j, chips: 8, queue: q, priority: 7}, "
        "{name: k, chips: 8, queue: q, critical: true, host-ports: [80]}, "
        "{name: l, roles: [{name: r, chips: 1, spread: [{topology-key: z}]}]}]"
    )

    why = "has no effect without queues, configuration or then"
    assert not found.is_run
    assert set(found.warnings) == {
        f"running[0].priority {why}",
        f"running[0].started {why}",
        f"jobs[0].queue {why}",
        f"jobs[1].critical {why}",
        f"jobs[1].host-ports {why}",
        f"jobs[2].roles[0].spread {why}",
        f"until {why}",
        f"grace-seconds {why}",
    }


@pytest.mark.parametrize("key", ["queues: []", "then: []", "configuration: {}"])
def test_an_empty_key_is_enough_to_run_a_scenario(key: str) -> None:
    found = one(f"{NODES}jobs: [{{name: j, chips: 8, priority: 7}}]\n{key}")

    assert found.is_run
    assert not [line for line in found.warnings if "no effect" in line]


def test_a_queue_that_never_is_gets_a_warning() -> None:
    found = one(
        f"{NODES}jobs: [{{name: j, chips: 8, queue: a}}, "
        "{name: k, chips: 8, queue: b}]\nthen: [{at: 1, queue: {name: b}}]"
    )

    assert found.warnings == ("job 'j' is of queue 'a', which does not exist",)


def test_a_running_job_is_of_the_product_of_its_nodes() -> None:
    found = one(
        "nodes: [{name: a, product: atlas-800t-a2}, {name: b, product: atlas-300t}]\n"
        "running: [{name: r, chips: 1, started: -5, tor-affinity: large-model-schema, "
        "placements: [{replica: 0, node: b, chips: [0]}]}]\nqueues: []"
    )

    (tenant,) = found.tenants
    assert tenant.job.product is PRODUCTS["atlas-300t"]
    assert (tenant.started, tenant.job.created) == (-5, -5)
    assert tenant.job.tor_affinity is Schema.LARGE_MODEL
    assert found.known_jobs == ("r",)
