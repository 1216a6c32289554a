"""The configuration: what the tables say, what loads, what is refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
import yaml

from ringleaf.config.arguments import Argument, ArgumentKind
from ringleaf.config.conf import Conf, PluginConf, RefusedConf
from ringleaf.config.parameters import PARAMETERS
from ringleaf.config.reader import DEFAULT, read_conf
from ringleaf.config.vocabulary import (
    ACTIONS,
    FLAG_OF,
    FLAGS,
    KNOWN_PLUGINS,
    REFUSED_ACTIONS,
    REFUSED_PLUGINS,
    VOTES,
)
from ringleaf.framework.job_state import JobState
from ringleaf.framework.plugin import Plugin
from ringleaf.model.settings import (
    DefaultAffinity,
    JobRequests,
    LeafChoice,
    Settings,
    SwitchMode,
)

EXAMPLES: Final = Path(__file__).parents[2] / "examples" / "conf"
TIER_1: Final = ["priority", "gang", "conformance", "affinity"]
TIER_2: Final = ["drf", "predicates", "proportion", "nodeorder", "binpack"]


def conf_of(text: str) -> Conf:
    conf = read_conf(yaml.safe_load(text))
    assert isinstance(conf, Conf), conf
    return conf


def problems_of(text: str) -> list[str]:
    refused = read_conf(yaml.safe_load(text))
    assert isinstance(refused, RefusedConf), refused
    return [str(problem) for problem in refused.problems]


def warnings_of(text: str) -> list[str]:
    return [str(warning) for warning in conf_of(text).warnings]


def plugin_of(entry: str) -> PluginConf:
    conf = conf_of(f"actions: allocate\ntiers: [{{plugins: [{entry}]}}]")
    return conf.tiers[0][0]


def plugin_problems(entry: str) -> list[str]:
    return problems_of(f"actions: allocate\ntiers: [{{plugins: [{entry}]}}]")


def parameters(text: str) -> str:
    """A configuration with these init-params."""
    return (
        "actions: allocate\n"
        "tiers: [{plugins: [{name: affinity}]}]\n"
        f"configurations: [{{name: init-params, arguments: {text}}}]"
    )


NORMAL = ("default_tor_affinity", DefaultAffinity.NORMAL)


def names(conf: Conf) -> list[list[str]]:
    return [[plugin.name for plugin in tier] for tier in conf.tiers]


# What the tables must say, written out from Volcano's source once more.


def test_the_flags_are_volcanos_in_its_mixed_spelling() -> None:
    enable = {
        "JobOrder",
        "Hierarchy",
        "JobReady",
        "JobPipelined",
        "TaskOrder",
        "Preemptable",
        "Reclaimable",
        "Preemptive",
        "QueueOrder",
        "Predicate",
        "BestNode",
        "NodeOrder",
        "TargetJob",
        "ReservedNodes",
        "JobEnqueued",
        "JobStarving",
    }
    enabled = {
        "ClusterOrder",
        "Victim",
        "Overused",
        "Allocatable",
        "HyperNodeOrder",
        "SubJobReady",
        "SubJobPipelined",
        "SubJobOrder",
        "HyperNodeGradient",
    }

    assert set(FLAGS) == {f"enable{x}" for x in enable} | {
        f"enabled{x}" for x in enabled
    }
    assert {key for key, flag in FLAGS.items() if not flag.default} == {
        "enableHierarchy",
        "enabledClusterOrder",
    }


def test_every_vote_but_that_on_validity_has_a_flag() -> None:
    assert set(VOTES) - set(FLAG_OF) == {"JobValid"}
    assert set(FLAG_OF) <= set(VOTES)


def test_who_votes_where() -> None:
    assert {name: plugin.votes for name, plugin in KNOWN_PLUGINS.items()} == {
        "priority": ("JobOrder", "Preemptable", "JobStarving"),
        "gang": (
            "JobValid",
            "JobOrder",
            "JobReady",
            "JobPipelined",
            "Preemptable",
            "Reclaimable",
            "JobStarving",
        ),
        "conformance": ("Preemptable", "Reclaimable"),
        "affinity": ("JobValid", "Predicate", "NodeOrder"),
        "drf": ("JobOrder", "Preemptable"),
        "overcommit": ("JobEnqueueable",),
        "predicates": ("Predicate",),
        "proportion": (
            "QueueOrder",
            "Overused",
            "Allocatable",
            "Preemptive",
            "JobEnqueueable",
            "Reclaimable",
        ),
        "nodeorder": ("NodeOrder",),
        "binpack": ("NodeOrder",),
    }


def test_the_defaults_of_plugin_arguments() -> None:
    defaults = {
        key: argument.default
        for plugin in KNOWN_PLUGINS.values()
        for key, argument in plugin.arguments.items()
    }

    assert defaults == {
        "sum-scores": False,
        "overcommit-factor": 1.2,
        "overcommit-factor.<resource>": None,
        "predicate.NodeAffinityEnable": True,
        "predicate.NodePortsEnable": True,
        "predicate.TaintTolerationEnable": True,
        "predicate.PodAffinityEnable": True,
        "predicate.NodeVolumeLimitsEnable": True,
        "predicate.VolumeZoneEnable": True,
        "predicate.PodTopologySpreadEnable": True,
        "predicate.VolumeBindingEnable": True,
        "predicate.DynamicResourceAllocationEnable": True,
        "predicate.CacheEnable": False,
        "volumebinding.weight": 1,
        "volumebinding.bindTimeoutSeconds": 600,
        "volumebinding.shape": None,
        "dynamicresources.filterTimeoutSeconds": 10,
        "leastrequested.weight": 1,
        "mostrequested.weight": 0,
        "nodeaffinity.weight": 2,
        "podaffinity.weight": 2,
        "balancedresource.weight": 1,
        "tainttoleration.weight": 3,
        "imagelocality.weight": 1,
        "podtopologyspread.weight": 2,
        "binpack.weight": 1,
        "binpack.cpu": 1,
        "binpack.memory": 1,
        "binpack.resources": (),
        "binpack.resources.<resource>": None,
    }


def test_the_defaults_of_action_arguments() -> None:
    cache = {"predicateErrorCacheEnable": True}
    evicting = {"min-run-seconds": 0, "preview": False}

    assert {
        name: {key: argument.default for key, argument in action.arguments.items()}
        for name, action in ACTIONS.items()
    } == {
        "enqueue": {},
        "allocate": {
            **cache,
            "reservation": "fair",
            "reservation-after-seconds": 300,
            "reservation-idle-budget": 0.05,
            "learn-run-times": False,
        },
        "backfill": cache,
        "preempt": {
            **cache,
            **evicting,
            "enableTopologyAwarePreemption": False,
            "topologyAwarePreemptWorkerNum": 16,
            "minCandidateNodesPercentage": 10,
            "minCandidateNodesAbsolute": 1,
            "maxCandidateNodesAbsolute": 100,
        },
        "reclaim": {**cache, **evicting},
        "rearrange": {
            "moves-per-hour": 10,
            "least-benefit": 10,
            "wait-seconds": 300,
            "look-every-seconds": 60,
            "preview": False,
        },
    }


def test_the_defaults_of_init_params_and_which_count() -> None:
    assert {key: (a.default, a.has_effect) for key, a in PARAMETERS.items()} == {
        "nslb-version": ("1.0", True),
        "shared-tor-num": (2, True),
        "nodes-per-leaf": (None, True),
        "leaf-choice": ("compact", True),
        "share-common-leaves": (False, True),
        "super-pod-size": (48, True),
        "reserve-nodes": (2, True),
        "job-requests": ("strict", True),
        "default-tor-affinity": ("none", True),
        "default-fault-scheduling": ("off", True),
        "useClusterInfoManager": (True, True),
        "grace-over-time": (900, True),
        "superpod-escalation-seconds": (6, True),
        "job-escalation-seconds": (12, True),
        "repair-hold-seconds": (300, True),
        "fault-brake-percent": (5, True),
        "fault-brake-seconds": (60, True),
        "run-within-seconds": (600, True),
        "set-aside-seconds": (300, True),
        "presetVirtualDevice": (False, False),
        "self-maintain-available-card": (True, False),
        "forceEnqueue": (True, False),
        "prefer-previous-node": (False, False),
        "resource-level-config": (None, False),
    }


def every_argument() -> list[Argument]:
    rows: list[Any] = [*ACTIONS.values(), *KNOWN_PLUGINS.values()]
    tables = [row.arguments for row in rows] + [PARAMETERS]
    return [argument for table in tables for argument in table.values()]


@pytest.mark.parametrize("argument", every_argument(), ids=lambda each: each.key)
def test_every_argument_has_a_meaning_and_a_legal_default(argument: Argument) -> None:
    assert argument.meaning[0].isupper()
    assert argument.meaning.endswith(".")
    assert argument.meaning.startswith("Whether ") is (
        argument.kind is ArgumentKind.SWITCH
    )
    if (
        argument.kind in (ArgumentKind.WHOLE, ArgumentKind.NUMBER)
        and argument.default is not None
    ):
        assert isinstance(argument.default, int | float)
        assert argument.low <= argument.default <= argument.high


def test_no_name_is_both_known_and_refused() -> None:
    assert not set(ACTIONS) & set(REFUSED_ACTIONS)
    assert not set(KNOWN_PLUGINS) & set(REFUSED_PLUGINS)


@pytest.mark.parametrize(
    "name",
    [
        *ACTIONS,
        *KNOWN_PLUGINS,
        *FLAGS,
        *PARAMETERS,
        *REFUSED_ACTIONS,
        *REFUSED_PLUGINS,
        *(argument.key for argument in every_argument()),
    ],
)
def test_every_name_is_documented(name: str) -> None:
    page = EXAMPLES.parents[1] / "docs" / "configuration.md"

    assert f"| `{name}` | " in page.read_text(encoding="utf-8")


# What must load.


def test_d34_without_a_file_the_default_counts() -> None:
    example = conf_of((EXAMPLES / "default.conf").read_text())

    assert DEFAULT.actions == ("enqueue", "allocate", "backfill")
    assert names(DEFAULT) == [TIER_1, TIER_2]
    assert DEFAULT.settings == Settings()
    assert DEFAULT.warnings == ()
    assert example == DEFAULT


def test_without_any_action_nothing_is_decided() -> None:
    conf = read_conf({"actions": []})

    assert isinstance(conf, Conf)
    assert conf.actions == DEFAULT.quiet.actions == ()
    assert str(conf.warnings[0]) == "actions is empty: no job is scheduled"


@pytest.mark.parametrize("document", [{}, {"tiers": []}], ids=str)
def test_what_a_file_leaves_out_is_the_default_with_a_warning(
    document: dict[str, object],
) -> None:
    conf = read_conf(document)

    assert isinstance(conf, Conf)
    assert (conf.actions, names(conf)) == (DEFAULT.actions, names(DEFAULT))
    assert [str(each) for each in conf.warnings] == [
        "no actions are configured: the default applies, enqueue, allocate, backfill",
        (
            "no tiers are configured: the default applies, priority, gang, "
            "conformance, "
            "affinity; drf, predicates, proportion, nodeorder, binpack"
        ),
    ]


def test_the_guides_chart_has_no_actions_and_gets_the_default() -> None:
    conf = conf_of((EXAMPLES / "guide-chart.conf").read_text())

    assert conf.actions == ("enqueue", "allocate", "backfill")
    assert names(conf) == [TIER_1, TIER_2]
    assert conf.tiers[0][3].written == "topology910"


def test_the_guides_default_once_mended() -> None:
    conf = conf_of((EXAMPLES / "guide-default.conf").read_text())

    assert names(conf) == [["priority", "gang", "affinity"], TIER_2[:-1]]
    assert conf.warnings == ()


def test_volcanos_built_in_default() -> None:
    conf = conf_of((EXAMPLES / "volcano-default.conf").read_text())

    assert names(conf) == [TIER_1[:-1], ["overcommit", *TIER_2[:-1]]]
    assert [str(each) for each in conf.warnings] == [
        (
            "no tier has the plugin 'affinity' (topology910, volcano-npu): "
            "it applies anyway"
        )
    ]


def test_volcanos_helm_chart() -> None:
    conf = conf_of((EXAMPLES / "volcano-helm.conf").read_text())
    changed = {p.name: p.changed for tier in conf.tiers for p in tier if p.changed}

    assert names(conf) == [TIER_1[:-1], ["overcommit", *TIER_2]]
    assert changed == {
        "gang": {"enablePreemptable": False},
        "drf": {"enablePreemptable": False},
    }
    assert conf.tiers[1][1].votes == ("JobOrder",)


def test_the_vendors_configuration() -> None:
    manifest = yaml.safe_load((EXAMPLES / "vendor.yaml").read_text())
    conf = conf_of(manifest["data"]["volcano-scheduler.conf"])
    voters = [p.name for tier in conf.tiers for p in tier if "NodeOrder" in p.votes]

    assert names(conf) == [["gang", "affinity", "priority", "conformance"], TIER_2]
    assert voters == ["affinity", "nodeorder"]
    assert conf.settings == Settings()
    assert conf.parameters["prefer-previous-node"] is True
    none = "Ringleaf has no such option"
    idle = {
        "presetVirtualDevice": none,
        "self-maintain-available-card": none,
        "forceEnqueue": "jobs are admitted by the quota of their queue, or if they "
        "fit now",
        "prefer-previous-node": none,
    }
    assert [str(each) for each in conf.warnings] == [
        f"init-params: argument {key!r} has no effect: {why}"
        for key, why in idle.items()
    ]


def test_a_configuration_that_sets_a_lot() -> None:
    conf = conf_of((EXAMPLES / "busy.conf").read_text())
    overcommit, _drf, predicates, _proportion, nodeorder, binpack = conf.tiers[1]

    assert conf.actions == ("enqueue", "allocate", "preempt", "reclaim", "backfill")
    assert conf.action_arguments["preempt"]["minCandidateNodesPercentage"] == 20
    assert overcommit.arguments == {"overcommit-factor": 1.5}
    assert predicates.arguments["predicate.VolumeZoneEnable"] is False
    assert nodeorder.arguments["imagelocality.weight"] == 5
    assert nodeorder.arguments["nodeaffinity.weight"] == 2
    assert binpack.arguments == {
        "binpack.weight": 10,
        "binpack.cpu": 1,
        "binpack.memory": 1,
        "binpack.resources": ("huawei.com/Ascend910",),
        "binpack.resources.huawei.com/Ascend910": 5,
    }
    assert conf.settings == Settings(
        switch_mode=SwitchMode.SPINE_LEAF_2, superpod_size=96, reserve_nodes=4
    )


@pytest.mark.parametrize(
    "name",
    [
        "affinity",
        "topology910",
        "npu",
        "volcano-npu",
        "volcano-npu_v7.3.0_linux-aarch64",
    ],
)
def test_the_names_of_the_affinity_plugin(name: str) -> None:
    plugin = plugin_of(f"{{name: {name}, arguments: {{sum-scores: 'true'}}}}")

    assert (plugin.name, plugin.written) == ("affinity", name)
    assert plugin.arguments == {"sum-scores": True}


# Flags and votes.


def test_a_flag_takes_a_vote_away() -> None:
    plugin = plugin_of("{name: predicates, enablePredicate: false}")

    assert plugin.votes == ()
    assert plugin.changed == {"enablePredicate": False}


def test_no_flag_takes_the_vote_on_validity_away() -> None:
    off = ", ".join(f"{flag}: false" for flag in FLAGS)
    plugin = plugin_of(f"{{name: gang, {off}}}")

    assert plugin.votes == ("JobValid",)
    assert plugin.enabled == frozenset()


def test_hierarchy_gives_drf_two_votes_and_others_none() -> None:
    drf = plugin_of("{name: drf, enableHierarchy: true, enableReclaimable: false}")
    gang = plugin_of("{name: gang, enableHierarchy: true}")

    assert drf.votes == ("JobOrder", "Preemptable", "QueueOrder")
    assert gang.votes == KNOWN_PLUGINS["gang"].votes
    assert (drf.heeds("enableHierarchy"), gang.heeds("enableHierarchy")) == (
        True,
        False,
    )


def test_a_flag_without_a_vote_is_legal_and_changes_nothing() -> None:
    plugin = plugin_of("{name: gang, enableNodeOrder: false}")

    assert not plugin.heeds("enableNodeOrder")
    assert plugin.heeds("enableJobOrder")
    assert plugin.votes == KNOWN_PLUGINS["gang"].votes


# Values.


@pytest.mark.parametrize(
    ("plugin", "key", "written", "value"),
    [
        ("nodeorder", "nodeaffinity.weight", "5", 5),
        ("overcommit", "overcommit-factor", "2", 2.0),
        ("overcommit", "overcommit-factor", "1.0", 1.0),
        ("overcommit", "overcommit-factor.cpu", "3.5", 3.5),
        ("predicates", "predicate.CacheEnable", "true", True),
        ("predicates", "predicate.CacheEnable", "'True'", True),
        ("predicates", "predicate.NodePortsEnable", "'false'", False),
        ("binpack", "binpack.resources", "'a, b/c,,'", ("a", "b/c")),
        ("predicates", "volumebinding.shape", "[]", ()),
        (
            "predicates",
            "volumebinding.shape",
            "[{utilization: 0, score: 0}, {utilization: 100, score: 10}]",
            ((0, 0), (100, 10)),
        ),
    ],
)
def test_what_an_argument_takes(
    plugin: str, key: str, written: str, value: object
) -> None:
    found = plugin_of(f"{{name: {plugin}, arguments: {{{key}: {written}}}}}")

    assert found.arguments[key] == value
    assert type(found.arguments[key]) is type(value)


@pytest.mark.parametrize(
    ("plugin", "key", "written", "line"),
    [
        (
            "nodeorder",
            "nodeaffinity.weight",
            "'5'",
            (
                "is '5', want a whole number from 0 to 1000000; "
                "hint: write 5 without quotes; Volcano would ignore it"
            ),
        ),
        ("nodeorder", "nodeaffinity.weight", "1.5", "is 1.5, want a whole number fr"),
        ("nodeorder", "nodeaffinity.weight", "true", "is true, want a whole number"),
        ("nodeorder", "nodeaffinity.weight", "-1", "is -1, want a whole number from"),
        ("nodeorder", "nodeaffinity.weight", "1000001", "is 1000001, want a whole nu"),
        ("nodeorder", "nodeaffinity.weight", "", "is null, want a whole number from"),
        ("nodeorder", "nodeaffinity.weight", "five", "is 'five', want a whole number"),
        (
            "overcommit",
            "overcommit-factor",
            "'1.5'",
            (
                "is '1.5', want a number from 1 to 1000000; "
                "hint: write 1.5 without quotes; Volcano would ignore it"
            ),
        ),
        ("overcommit", "overcommit-factor", "0.9", "is 0.9, want a number from 1 to"),
        ("overcommit", "overcommit-factor", ".inf", "is inf, want a number from 1 to"),
        ("overcommit", "overcommit-factor", ".nan", "is nan, want a number from 1 to"),
        ("overcommit", "overcommit-factor", "yes", "is true, want a number from 1 to"),
        ("predicates", "predicate.CacheEnable", "'on'", "is 'on', want true or false"),
        ("predicates", "predicate.CacheEnable", "1", "is 1, want true or false"),
        ("binpack", "binpack.resources", r'"\e[1m"', r"is '\x1b[1m', want names, "),
        ("binpack", "binpack.resources", "[a]", "is a list, want names, separated by"),
        ("binpack", "binpack.resources.a", "{}", "is a mapping, want a whole number"),
        ("predicates", "volumebinding.shape", "x", "is 'x', want a list of {utilizat"),
        ("predicates", "volumebinding.shape", "[1]", "is a list, want a list of {uti"),
        (
            "predicates",
            "volumebinding.shape",
            "[{utilization: a, score: 1}]",
            "is a list, want a list of {utilization, score}",
        ),
    ],
)
def test_what_an_argument_does_not_take(
    plugin: str, key: str, written: str, line: str
) -> None:
    entry = f"{{name: {plugin}, arguments: {{{key}: {written}}}}}"
    (problem,) = plugin_problems(entry)

    assert problem.startswith(f"plugin '{plugin}': argument '{key}' {line}")
    assert problem.count("hint:") == line.count("hint:")


def test_a_number_too_large_for_floating_point_is_refused() -> None:
    digits = "1" * 400
    (problem,) = plugin_problems(
        f"{{name: overcommit, arguments: {{overcommit-factor: {digits}}}}}"
    )

    assert problem.startswith("plugin 'overcommit': argument 'overcommit-factor' is 11")
    assert len(problem) < 200


def test_a_weight_of_a_resource_that_is_not_listed_has_no_effect() -> None:
    listed = "binpack.resources: a, "
    entry = "{{name: binpack, arguments: {{{}binpack.resources.a: 2}}}}"
    text = "actions: allocate\ntiers: [{{plugins: [{{name: npu}}, {}]}}]"

    assert warnings_of(text.format(entry.format(listed))) == []
    assert warnings_of(text.format(entry.format(""))) == [
        (
            "plugin 'binpack': argument 'binpack.resources.a' has no effect: "
            "'a' is not listed in binpack.resources"
        )
    ]


@pytest.mark.parametrize(
    ("written", "field", "value"),
    [
        ("{nslb-version: '2.0'}", "switch_mode", SwitchMode.SPINE_LEAF_2),
        ("{nslb-version: 2.0}", "switch_mode", SwitchMode.SPINE_LEAF_2),
        ("{shared-tor-num: '1'}", "shared_leaves", 1),
        ("{shared-tor-num: 1}", "shared_leaves", 1),
        ("{nodes-per-leaf: '4'}", "nodes_per_leaf", 4),
        ("{leaf-choice: guide}", "leaf_choice", LeafChoice.GUIDE),
        ("{share-common-leaves: 'true'}", "share_common_leaves", True),
        ("{super-pod-size: '8'}", "superpod_size", 8),
        ("{reserve-nodes: '0'}", "reserve_nodes", 0),
        ("{job-requests: per-pod}", "job_requests", JobRequests.PER_POD),
        ("{default-tor-affinity: normal-schema}", *NORMAL),
        ("{default-fault-scheduling: 'grace'}", "default_fault_scheduling", "grace"),
        ("{default-fault-scheduling: off}", "default_fault_scheduling", "off"),
    ],
)
def test_init_params_become_settings(written: str, field: str, value: object) -> None:
    conf = conf_of(parameters(written))

    assert getattr(conf.settings, field) == value
    assert conf.warnings == ()


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("{nslb-version: '3.0'}", "'nslb-version' is '3.0', want \"1.0\" or \"2.0\""),
        ("{nslb-version: 2}", '\'nslb-version\' is 2, want "1.0" or "2.0"'),
        (
            "{shared-tor-num: 3}",
            "'shared-tor-num' is 3, want a whole number from 1 to 2",
        ),
        (
            "{job-requests: lax}",
            "'job-requests' is 'lax', want \"strict\" or \"per-pod\"",
        ),
        ("{forceEnqueue: 'yes'}", "'forceEnqueue' is 'yes', want true or false"),
        (
            "{default-fault-scheduling: external-force}",
            (
                "'default-fault-scheduling' is 'external-force', "
                'want "off" or "grace" or "force"'
            ),
        ),
        (
            "{grace-over-time: '1'}",
            "'grace-over-time' is 1, want a whole number from 2 to 3600",
        ),
        (
            "{resource-level-config: {}}",
            "'resource-level-config' is a mapping, want text",
        ),
        (
            "{super-pod-size: many}",
            "'super-pod-size' is 'many', want a whole number from 1 to 1000000",
        ),
    ],
)
def test_init_params_that_are_no_use_are_refused(written: str, line: str) -> None:
    assert problems_of(parameters(written)) == [f"init-params: argument {line}"]


@pytest.mark.parametrize(("size", "reserve", "kept"), [(8, 8, 2), (2, 5, 0), (1, 2, 0)])
def test_a_reserve_as_large_as_the_superpod_is_replaced(
    size: int, reserve: int, kept: int
) -> None:
    text = parameters(f"{{super-pod-size: {size}, reserve-nodes: {reserve}}}")
    conf = conf_of(text)

    assert conf.settings.reserve_nodes == kept
    assert conf.parameters["reserve-nodes"] == kept
    assert [str(each) for each in conf.warnings] == [
        (
            f"init-params: argument 'reserve-nodes' is {reserve}, "
            f"not below super-pod-size {size}: {kept} is used"
        )
    ]


# What is refused, word for word (D22).


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("5", ["the configuration is 5, want a mapping with actions, tiers"]),
        ("[]", ["the configuration is a list, want a mapping with actions, tiers"]),
        (
            "action: allocate",
            [
                (
                    "the configuration has the unknown key 'action'; "
                    "hint: did you mean 'actions'?"
                )
            ],
        ),
        (
            "5: x",
            [
                (
                    "the configuration has the unknown key 5; hint: it may have "
                    "actions, tiers, configurations, metrics"
                )
            ],
        ),
        ("actions: ''", ["actions is '', want names, separated by commas"]),
        ("actions: [a]", ["actions is a list, want names, separated by commas"]),
        (
            "actions: enqueue, alocate",
            ["unknown action 'alocate'; hint: did you mean 'allocate'?"],
        ),
        (
            "actions: enqueue,, allocate",
            [
                (
                    "unknown action ''; hint: actions are enqueue, allocate, backfill, "
                    "preempt, reclaim"
                )
            ],
        ),
        (
            "actions: allocate, gangPreempt",
            ["unknown action 'gangPreempt'; hint: did you mean 'gangpreempt'?"],
        ),
        (
            "actions: allocate, gangpreempt",
            [
                (
                    "action 'gangpreempt' is Volcano's and not in Ringleaf; "
                    "hint: 'preempt' evicts inside a queue"
                )
            ],
        ),
        ("tiers: 5", ["tiers is 5, want a list of tiers"]),
        ("tiers: [5]", ["tiers[0] is 5, want a mapping with plugins"]),
        (
            "tiers: [{plugin: []}]",
            ["tiers[0] has the unknown key 'plugin'; hint: did you mean 'plugins'?"],
        ),
        (
            "tiers: [{plugins: {}}]",
            ["tiers[0].plugins is a mapping, want a list of pl"],
        ),
        ("configurations: {}", ["configurations is a mapping, want a list of {name, "]),
        (
            "configurations: [x]",
            ["configurations[0] is 'x', want a mapping with name, "],
        ),
        (
            "configurations: [{arguments: {}}]",
            ["configurations[0].name is missing, want a name"],
        ),
        (
            "configurations: [{name: x}, {name: x}]",
            ["configurations name 'x' twice, want once"],
        ),
        (
            "configurations: [{name: init-params, arguments: 5}]",
            ["init-params: arguments is 5, want a mapping"],
        ),
        (
            "configurations: [{name: init-params, arguments: {super-pod: 5}}]",
            [
                (
                    "init-params: unknown argument 'super-pod'; "
                    "hint: did you mean 'super-pod-size'?"
                )
            ],
        ),
        (
            "configurations: [{name: init-params, arguments: {tor-level: x}}]",
            [
                (
                    "init-params: unknown argument 'tor-level'; hint: tor_level is a "
                    "key of the ConfigMap basic-tor-node-cm"
                )
            ],
        ),
        (
            "configurations: [{name: allocate, arguments: {x: 1}}]",
            [
                (
                    "action 'allocate': unknown argument 'x'; hint: action 'allocate' "
                    "takes predicateErrorCacheEnable"
                )
            ],
        ),
        (
            "configurations: [{name: enqueue, arguments: {x: 1}}]",
            [
                (
                    "action 'enqueue': unknown argument 'x'; hint: action 'enqueue' "
                    "takes no arguments"
                )
            ],
        ),
        (
            (
                "configurations: [{name: preempt, arguments: "
                "{minCandidateNodesPercentage: 101}}]"
            ),
            [
                (
                    "action 'preempt': argument 'minCandidateNodesPercentage' is 101, "
                    "want a whole number from 0 to 100"
                )
            ],
        ),
    ],
)
def test_d22_what_is_wrong_is_told_word_for_word(text: str, lines: list[str]) -> None:
    problems = problems_of(text)

    assert len(problems) == len(lines)
    for problem, line in zip(problems, lines, strict=True):
        assert problem.startswith(line)
        assert ("hint:" in problem) is ("hint:" in line)


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ("5", "tiers[0].plugins[0] is 5, want a mapping with name, arguments"),
        ("{}", "tiers[0].plugins[0].name is missing, want a name"),
        ("null", "tiers[0].plugins[0].name is missing, want a name"),
        ("{name: 5}", "tiers[0].plugins[0].name is 5, want a name"),
        ("{name: ''}", "tiers[0].plugins[0].name is '', want a name"),
        ("{name: binpak}", "unknown plugin 'binpak'; hint: did you mean 'binpack'?"),
        ("{name: Topology910}", "unknown plugin 'Topology910'; hint: did you mean 'to"),
        (
            "{name: zzz}",
            (
                "unknown plugin 'zzz'; hint: plugins are priority, gang, conformance, "
                "affinity, drf, overcommit, predicates, proportion, nodeorder, binpack"
            ),
        ),
        (
            "{name: gang, enabledJobOrder: true}",
            (
                "tiers[0].plugins[0] has the unknown flag 'enabledJobOrder'; "
                "hint: did you mean 'enableJobOrder'?"
            ),
        ),
        (
            "{name: proportion, enableOverused: true}",
            (
                "tiers[0].plugins[0] has the unknown flag 'enableOverused'; "
                "hint: did you mean 'enabledOverused'?"
            ),
        ),
        (
            "{name: gang, argument: {}}",
            (
                "tiers[0].plugins[0] has the unknown key 'argument'; "
                "hint: did you mean 'arguments'?"
            ),
        ),
        (
            "{name: gang, enableJobOrder: 'false'}",
            (
                "plugin 'gang': enableJobOrder is 'false', want true or false; "
                "hint: write false without quotes; Volcano would ignore it"
            ),
        ),
        (
            "{name: gang, enableJobOrder: 1}",
            "plugin 'gang': enableJobOrder is 1, want true or false",
        ),
        (
            "{name: gang, arguments: {weight: 1}}",
            (
                "plugin 'gang': unknown argument 'weight'; "
                "hint: plugin 'gang' takes no arguments"
            ),
        ),
        (
            "{name: gang, arguments: [1]}",
            "plugin 'gang': arguments is a list, want a mapping",
        ),
        (
            "{name: binpack, arguments: {5: 1}}",
            "plugin 'binpack': unknown argument 5; hint: plugin 'binpack' takes",
        ),
        (
            r'{name: binpack, arguments: {"binpack.resources.\e": 1}}',
            r"plugin 'binpack': unknown argument 'binpack.resources.\x1b'; hint: did y",
        ),
        (
            "{name: binpack, arguments: {binpack.resources.: 1}}",
            "plugin 'binpack': unknown argument 'binpack.resources.'; hint: did you me",
        ),
        (
            "{name: binpack, arguments: {binpack.resources.<resource>: 1}}",
            "plugin 'binpack': unknown argument 'binpack.resources.<resource>'; hint: ",
        ),
    ],
)
def test_d22_what_is_wrong_with_a_plugin(entry: str, line: str) -> None:
    (problem,) = plugin_problems(entry)

    assert problem.startswith(line)


@pytest.mark.parametrize("name", REFUSED_PLUGINS)
def test_d22_a_plugin_of_volcanos_that_we_have_not_is_named(name: str) -> None:
    assert plugin_problems(f"{{name: {name}}}") == [
        (
            f"plugin '{name}' is Volcano's and not in Ringleaf; "
            f"hint: {REFUSED_PLUGINS[name]}"
        )
    ]


def test_the_plugins_of_volcano_that_we_have_not() -> None:
    assert set(REFUSED_PLUGINS) == {
        "capacity",
        "cdp",
        "deviceshare",
        "extender",
        "network-topology-aware",
        "nodegroup",
        "numaaware",
        "pdb",
        "rescheduling",
        "resource-strategy-fit",
        "resourcequota",
        "sla",
        "task-topology",
        "tdm",
        "usage",
    }
    assert set(REFUSED_ACTIONS) == {"gangpreempt", "gangreclaim", "shuffle"}


def test_a_plugin_stands_once() -> None:
    assert plugin_problems("{name: npu}, {name: gang}, {name: topology910}") == [
        (
            "plugin 'affinity' is configured twice, want once; "
            "hint: first at tiers[0].plugins[0]"
        )
    ]


def test_hierarchical_drf_and_proportion_are_not_in_one_tier() -> None:
    drf = "{name: drf, enableHierarchy: true}"
    apart = f"tiers: [{{plugins: [{drf}]}}, {{plugins: [{{name: proportion}}]}}]"

    assert plugin_problems(f"{drf}, {{name: proportion}}") == [
        (
            "'drf' with enableHierarchy and 'proportion' are in one tier, want one; "
            "hint: both would share the cluster between queues"
        )
    ]
    assert names(conf_of(apart)) == [["drf"], ["proportion"]]


def test_all_problems_are_told_at_once_with_their_places() -> None:
    refused = read_conf(yaml.safe_load((EXAMPLES / "broken.conf").read_text()))

    assert isinstance(refused, RefusedConf)
    assert [problem.path for problem in refused.problems] == [
        ("actions",),
        ("tiers", 0, "plugins", 1, "enabledJobOrder"),
        ("tiers", 0, "plugins", 3, "name"),
        ("tiers", 1, "plugins", 2, "arguments", "leastrequested.weight"),
        ("tiers", 1, "plugins", 2, "arguments", "leastrequest.weight"),
        ("tiers", 1, "plugins", 3, "name"),
        ("tiers", 1, "plugins"),
        ("configurations", 0, "arguments", "super-pod-size"),
        ("configurations", 0, "arguments", "tor-level"),
    ]


# What is accepted without effect.


def test_d22_configurations_of_others_are_kept_with_one_warning() -> None:
    text = "actions: allocate\ntiers: [{plugins: [{name: npu}]}]\nconfigurations:\n"
    conf = conf_of(text + "- {name: theirs, arguments: {a: {b: 1}}}\n- {name: more}")

    assert conf.others == {"theirs": {"a": {"b": 1}}, "more": None}
    assert [str(each) for each in conf.warnings] == [
        "configurations for 'theirs' have no effect: they are not read",
        "configurations for 'more' have no effect: they are not read",
    ]


def test_a_slip_in_the_name_of_configurations_is_hinted_at() -> None:
    text = "tiers: [{plugins: [{name: npu}]}]\nactions: allocate\n"

    assert warnings_of(text + "configurations: [{name: init-param}]") == [
        (
            "configurations for 'init-param' have no effect: they are not read; "
            "hint: did you mean 'init-params'?"
        )
    ]


def test_other_things_without_effect_are_warned_of() -> None:
    text = (
        "actions: enqueue\n"
        "tiers: [{plugins: [{name: npu}]}]\n"
        "metrics: {type: prometheus}\n"
        "configurations: [{name: preempt, arguments: "
        "{minCandidateNodesAbsolute: 2}}]"
    )

    assert warnings_of(text) == [
        "metrics has no effect: only Volcano's plugin 'usage' reads it",
        "'allocate' is not among the actions: no job is placed",
        "arguments of action 'preempt' have no effect: it does not run",
        (
            "action 'preempt': argument 'minCandidateNodesAbsolute' has no effect: "
            "all nodes are candidates"
        ),
    ]


def test_which_arguments_of_actions_and_plugins_have_no_effect() -> None:
    rows: list[Any] = [*ACTIONS.values(), *KNOWN_PLUGINS.values()]

    assert {
        argument.key: argument.idle
        for row in rows
        for argument in row.arguments.values()
        if not argument.has_effect
    } == {
        "predicateErrorCacheEnable": "identical pods are always judged together",
        "enableTopologyAwarePreemption": TRIED_OUT,
        "topologyAwarePreemptWorkerNum": TRIED_OUT,
        "minCandidateNodesPercentage": "all nodes are candidates",
        "minCandidateNodesAbsolute": "all nodes are candidates",
        "maxCandidateNodesAbsolute": "all nodes are candidates",
        "predicate.CacheEnable": "identical pods are always judged together",
        "predicate.NodeVolumeLimitsEnable": "volumes are not considered",
        "predicate.VolumeZoneEnable": "volumes are not considered",
        "predicate.VolumeBindingEnable": "volumes are not considered",
        "volumebinding.weight": "volumes are not considered",
        "volumebinding.bindTimeoutSeconds": "volumes are not considered",
        "volumebinding.shape": "volumes are not considered",
        "predicate.DynamicResourceAllocationEnable": CLAIMS,
        "dynamicresources.filterTimeoutSeconds": CLAIMS,
        "imagelocality.weight": "images on nodes are not considered",
    }


TRIED_OUT: Final = "evictions are always simulated under all rules"
CLAIMS: Final = "resource claims are not considered"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param("off", "off", id="YAML reads a bare off as false"),
        pytest.param("'off'", "off", id="off in quotes"),
        pytest.param("strict", "strict", id="a bare word"),
    ],
)
def test_reservations_are_off_fair_or_strict(written: str, read: str) -> None:
    text = (
        "actions: allocate\ntiers: [{plugins: [{name: npu}]}]\n"
        f"configurations: [{{name: allocate, arguments: {{reservation: {written}}}}}]"
    )

    assert conf_of(text).action_arguments["allocate"]["reservation"] == read


def test_another_word_for_reservations_is_a_problem() -> None:
    text = "configurations: [{name: allocate, arguments: {reservation: true}}]"

    assert problems_of(text) == [
        (
            "action 'allocate': argument 'reservation' is true, "
            'want "off" or "fair" or "strict"'
        )
    ]


class Night(Plugin):
    """A plugin of another project."""

    meaning = "Night jobs keep to their zone."
    arguments: ClassVar[Mapping[str, Argument]] = {
        "zone": Argument("zone", ArgumentKind.TEXT, "night", "The zone of night jobs.")
    }

    def job_order(self, job_state: JobState) -> float:
        return -job_state.arrived


def with_night(entry: str, others: dict[str, type[Plugin]]) -> Conf | RefusedConf:
    text = f"actions: allocate\ntiers: [{{plugins: [{{name: npu}}, {entry}]}}]"
    return read_conf(yaml.safe_load(text), others)


def test_a_plugin_of_others_is_one_among_all() -> None:
    entry = "{name: night, enableJobOrder: false, arguments: {zone: dark}}"
    conf = with_night(entry, {"night": Night})

    assert isinstance(conf, Conf)
    night = conf.tiers[0][1]
    assert (night.about.meaning, night.about.votes) == (Night.meaning, ("JobOrder",))
    assert (night.arguments, night.votes) == ({"zone": "dark"}, ())


@pytest.mark.parametrize(
    ("entry", "others", "problem"),
    [
        pytest.param(
            "{name: night, arguments: {zon: dark}}",
            {"night": Night},
            "plugin 'night': unknown argument 'zon'; hint: did you mean 'zone'?",
            id="its arguments are checked",
        ),
        pytest.param(
            "{name: nigth}",
            {"night": Night},
            "unknown plugin 'nigth'; hint: did you mean 'night'?",
            id="its name is among the known",
        ),
        pytest.param(
            "{name: gang}",
            {"gang": Night},
            (
                "plugin 'gang' is built in and installed too, want one; "
                "hint: uninstall or rename the other one"
            ),
            id="it may not take the name of one of Ringleaf's",
        ),
    ],
)
def test_what_is_refused_of_others(
    entry: str, others: dict[str, type[Plugin]], problem: str
) -> None:
    refused = with_night(entry, others)

    assert isinstance(refused, RefusedConf)
    assert [str(each) for each in refused.problems] == [problem]


def test_others_may_bring_a_plugin_of_volcano_that_ringleaf_has_not() -> None:
    assert isinstance(with_night("{name: sla}", {"sla": Night}), Conf)


def test_a_tier_may_be_empty() -> None:
    assert conf_of("tiers: [{plugins: []}, {plugins: }, {}]").tiers == ((), (), ())


def test_nothing_said_is_nothing_set() -> None:
    text = "actions: allocate\ntiers: [{plugins: [{name: npu, arguments: }]}]\n"
    conf = conf_of(text + "configurations:")

    assert conf.tiers[0][0].arguments == {"sum-scores": False}
    assert conf.warnings == ()
