"""Every alert fires where it should, by Prometheus' own reckoning, and only there.

The series are shaped as ours are; their names are those of the catalogue (tests/docs).
"""

import json
import subprocess
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
RULES: Final = ROOT / "deploy" / "chart" / "ringleaf" / "rules" / "alerts.yaml"
ONE: Final = 'instance="a:1", pod="a"'
TWO: Final = 'instance="b:1", pod="b"'


class Fires(NamedTuple):
    """Series that make an alert fire, and what it says then."""

    alert: str
    series: dict[str, str]
    summary: str
    labels: dict[str, str] = {}  # noqa: RUF012 - never written to
    after: str = "2h"


def buckets(name: str, slow: float) -> dict[str, str]:
    """A histogram in which every value lies between 0.001 and *slow*, the last."""
    return {
        f'{name}_bucket{{{ONE}, le="0.001"}}': "0x240",
        f'{name}_bucket{{{ONE}, le="{slow}"}}': "0+60x240",
        f'{name}_bucket{{{ONE}, le="+Inf"}}': "0+60x240",
    }


A2: Final = 'product="atlas-800t-a2"'
HERE: Final = {"instance": "a:1", "pod": "a"}
STORIES: Final = (
    Fires(
        "RingleafDown",
        {"up": "0x240"},
        "Prometheus sees no Ringleaf scheduler; pods may not be scheduled.",
    ),
    Fires(
        "RingleafNoLeader",
        {f"ringleaf_leader{{{ONE}}}": "0x240", f"ringleaf_leader{{{TWO}}}": "0x240"},
        "Ringleaf runs without a leader; no pod is scheduled.",
    ),
    Fires(
        "RingleafTwoLeaders",
        {f"ringleaf_leader{{{ONE}}}": "1x240", f"ringleaf_leader{{{TWO}}}": "1x240"},
        "2 replicas of Ringleaf are leaders at once.",
    ),
    Fires(
        "RingleafNotSynced",
        {f'ringleaf_synced{{{ONE}, kind="pods"}}': "0x240"},
        "Ringleaf cannot list pods, and schedules nothing until it can.",
        {**HERE, "kind": "pods"},
    ),
    Fires(
        "RingleafWatchSilent",
        {f'ringleaf_watch_silence_seconds{{{ONE}, kind="nodes"}}': "0+60x240"},
        "The watch of nodes has been silent for 2h 0m 0s.",
        {**HERE, "kind": "nodes"},
    ),
    Fires(
        "RingleafRelists",
        {f'ringleaf_lists_total{{{ONE}, kind="pods"}}': "1+1x240"},
        "Ringleaf lists all pods again and again.",
        {**HERE, "kind": "pods"},
    ),
    Fires(
        "RingleafApiErrors",
        {
            f'ringleaf_api_requests_total{{{ONE}, verb="POST", code="201",'
            ' lane="bind"}': "0+60x240",
            f'ringleaf_api_requests_total{{{ONE}, verb="POST", code="none",'
            ' lane="bind"}': "0+20x240",
        },
        "25% of API requests for bind fail.",
        {**HERE, "lane": "bind"},
    ),
    Fires(
        "RingleafBindingsFail",
        {
            f'ringleaf_bindings_total{{{ONE}, result="bound"}}': "0+60x240",
            f'ringleaf_bindings_total{{{ONE}, result="failed"}}': "0+20x240",
        },
        "25% of bindings fail.",
    ),
    Fires(
        "RingleafSlowBindings",
        buckets("ringleaf_bind_seconds", 10.0),
        "One binding in a hundred takes more than 9.9s.",
    ),
    Fires(
        "RingleafSlowDecisions",
        buckets("ringleaf_decision_seconds", 5.0),
        "One cycle in a hundred takes more than 4.95s.",
    ),
    Fires(
        "RingleafUndecided",
        {
            f'ringleaf_waiting_jobs{{{ONE}, reason="undecided"}}': "3x240",
            f'ringleaf_waiting_jobs{{{TWO}, reason="undecided"}}': "3x240",
            f"ringleaf_leader{{{ONE}}}": "1x240",
            f"ringleaf_leader{{{TWO}}}": "0x240",
        },
        "3 jobs wait for a decision.",
    ),
    Fires(
        "RingleafInvalidJobs",
        {f'ringleaf_waiting_jobs{{{ONE}, reason="invalid"}}': "2x240"},
        "2 jobs are invalid and can never run as they are.",
    ),
    Fires(
        "RingleafHalfBoundGangs",
        {f"ringleaf_half_bound_gangs{{{ONE}}}": "1x240"},
        "1 gangs hold chips with too few pods to start.",
    ),
    Fires(
        "RingleafEvictionsRefused",
        {
            f'ringleaf_evictions_total{{{ONE}, action="preempt",'
            ' result="refused"}': "0+1x240"
        },
        "The API server refuses evictions of pods that should make room.",
    ),
    Fires(
        "RingleafChipConflicts",
        {f"ringleaf_conflicts_total{{{ONE}}}": "0x110 1x100"},
        "Two pods claim the same chip.",
    ),
    Fires(
        "RingleafChipsUnclear",
        {f'ringleaf_chips{{{ONE}, {A2}, state="unclear"}}': "8x240"},
        "8 chips of atlas-800t-a2 stay unused, because a pod does not say which chips "
        "it holds.",
        {"product": "atlas-800t-a2"},
    ),
    Fires(
        "RingleafFaultyChips",
        {
            f'ringleaf_chips{{{ONE}, {A2}, state="faulty"}}': "8x240",
            f'ringleaf_chips{{{ONE}, {A2}, state="free"}}': "72x240",
        },
        "10% of the chips of atlas-800t-a2 are faulty.",
        {"product": "atlas-800t-a2"},
    ),
    Fires(
        "RingleafUsedFaultyChips",
        {
            f'ringleaf_chips{{{ONE}, {A2}, state="used-faulty"}}': "1x240",
            f'ringleaf_chips{{{ONE}, {A2}, state="used"}}': "99x240",
        },
        "Pods hold 1 faulty chips of atlas-800t-a2.",
        {"product": "atlas-800t-a2"},
    ),
    Fires(
        "RingleafEvictionRateLimit",
        {f"ringleaf_brake_engaged{{{ONE}}}": "1x240"},
        "The eviction rate limit holds back repairs; more pods are faulty than may be "
        "deleted.",
    ),
    Fires(
        "RingleafFaultStorm",
        {
            f'ringleaf_fault_events_total{{{ONE}, cause="CardUnhealthy",'
            ' stage="seen"}': "0+1x240",
            f'ringleaf_fault_events_total{{{ONE}, cause="CardUnhealthy",'
            ' stage="recovered"}': "0+1x240",
            f'ringleaf_chips{{{ONE}, {A2}, state="free"}}': "80x240",
            f'ringleaf_chips{{{ONE}, {A2}, state="used"}}': "80x240",
        },
        "10 faults were seen in ten minutes.",
    ),
    Fires(
        "RingleafRepairStuck",
        {f"ringleaf_oldest_repair_seconds{{{ONE}}}": "0+60x240"},
        "A job has been in repair for 2h 0m 0s.",
    ),
    Fires(
        "RingleafNodesQuarantined",
        {
            f'ringleaf_nodes{{{ONE}, state="quarantined"}}': "2x240",
            f'ringleaf_nodes{{{ONE}, state="ready"}}': "20x240",
        },
        "2 nodes are quarantined because they refused pods.",
    ),
    Fires(
        "RingleafFragmented",
        {
            f'ringleaf_fragmented_chips{{{ONE}, {A2}, asked="8"}}': "60x240",
            f'ringleaf_chips{{{ONE}, {A2}, state="free"}}': "80x240",
            f'ringleaf_waiting_jobs{{{ONE}, reason="too-few-chips"}}': "1x240",
        },
        "75% of the free chips of atlas-800t-a2 cannot be used by pods of 8 chips, "
        "while jobs are pending.",
        {"product": "atlas-800t-a2"},
    ),
    Fires(
        "RingleafSpineConflicts",
        {f"ringleaf_spine_conflicts{{{ONE}}}": "2x240"},
        "2 jobs share the links of a leaf with others.",
    ),
    Fires(
        "RingleafCheckCodes",
        {f"ringleaf_check_code_mismatches_total{{{ONE}}}": "0x110 1x100"},
        "Reports on devices or nodes do not match their check code, and are ignored.",
        HERE,
    ),
    Fires(
        "RingleafBadObjects",
        {f'ringleaf_bad_objects{{{ONE}, kind="Node"}}': "1x240"},
        "1 objects of kind Node have an invalid field.",
        {"kind": "Node"},
    ),
    Fires(
        "RingleafFails",
        {
            f"ringleaf_failures_total{{{ONE}}}": "0x110 1x100",
            f"ringleaf_differences_total{{{ONE}}}": "0x240",
        },
        "The scheduler quarantined what it failed on, or its cache differed from the "
        "objects and was rebuilt.",
    ),
    Fires(
        "RingleafMessagesLost",
        {f'ringleaf_messages_total{{{ONE}, result="dropped"}}': "0x110 9x100"},
        "Events and conditions were dropped; too many are queued.",
    ),
    Fires(
        "RingleafMessagesRefused",
        {
            f'ringleaf_messages_total{{{ONE}, result="refused"}}': "0+60x240",
            f'ringleaf_messages_total{{{ONE}, result="sent"}}': "0+60x240",
        },
        "50% of events and conditions are refused by the API server.",
    ),
    Fires(
        "RingleafBadConfiguration",
        {f"ringleaf_configuration_is_current{{{ONE}}}": "0x240"},
        "The configuration file is invalid; the last valid one is in effect.",
    ),
)

WELL: Final = {
    f'ringleaf_build_info{{{ONE}, version="1"}}': "1x240",
    f"ringleaf_leader{{{ONE}}}": "1x240",
    f"ringleaf_leader{{{TWO}}}": "0x240",
    f'ringleaf_synced{{{ONE}, kind="pods"}}': "1x240",
    f'ringleaf_watch_silence_seconds{{{ONE}, kind="pods"}}': "50x240",
    f'ringleaf_lists_total{{{ONE}, kind="pods"}}': "1x240",
    f'ringleaf_api_requests_total{{{ONE}, verb="POST", code="201", lane="bind"}}': (
        "0+60x240"
    ),
    f'ringleaf_api_requests_total{{{ONE}, verb="POST", code="409", lane="bind"}}': (
        "0+60x240"
    ),
    f'ringleaf_bindings_total{{{ONE}, result="bound"}}': "0+60x240",
    f'ringleaf_bindings_total{{{ONE}, result="failed"}}': "0+1x240",
    **buckets("ringleaf_bind_seconds", 0.005),
    **buckets("ringleaf_decision_seconds", 0.005),
    f'ringleaf_waiting_jobs{{{TWO}, reason="undecided"}}': "9x240",
    f'ringleaf_waiting_jobs{{{ONE}, reason="invalid"}}': "0x240",
    f"ringleaf_half_bound_gangs{{{ONE}}}": "1x2 0x240",
    f'ringleaf_evictions_total{{{ONE}, action="preempt", result="asked"}}': "0+9x240",
    f'ringleaf_chips{{{ONE}, {A2}, state="free"}}': "80x240",
    f'ringleaf_chips{{{ONE}, {A2}, state="faulty"}}': "1x240",
    f'ringleaf_fragmented_chips{{{ONE}, {A2}, asked="8"}}': "60x240",
    f"ringleaf_brake_engaged{{{ONE}}}": "1x2 0x240",
    f'ringleaf_fault_events_total{{{ONE}, cause="CardUnhealthy", stage="seen"}}': (
        "0x110 1x100"
    ),
    f"ringleaf_oldest_repair_seconds{{{ONE}}}": "0+60x20 0x240",
    f'ringleaf_nodes{{{ONE}, state="quarantined"}}': "1x240",
    f'ringleaf_nodes{{{ONE}, state="ready"}}': "30x240",
    f"ringleaf_spine_conflicts{{{ONE}}}": "0x240",
    f'ringleaf_messages_total{{{ONE}, result="sent"}}': "0+60x240",
    f'ringleaf_messages_total{{{ONE}, result="refused"}}': "0+1x240",
    f"ringleaf_configuration_is_current{{{ONE}}}": "1x240",
}


def rules() -> dict[str, dict[str, Any]]:
    listed = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return {rule["alert"]: rule for group in listed for rule in group["rules"]}


def judged(promtool: Path, folder: Path, tests: list[dict[str, Any]]) -> str:
    """What promtool says of *tests*; nothing where all is as expected."""
    file = folder / "tests.json"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "tests": tests}))
    done = subprocess.run(  # noqa: S603 - our own command
        [promtool, "test", "rules", file],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def series(given: dict[str, str]) -> list[dict[str, str]]:
    return [{"series": name, "values": values} for name, values in given.items()]


def test_every_alert_has_a_story() -> None:
    assert [story.alert for story in STORIES] == [*rules()]


def test_every_alert_fires_and_says_what_is_the_matter(
    promtool: Path, tmp_path: Path
) -> None:
    known = rules()
    tests = [
        {
            "name": story.alert,
            "interval": "1m",
            "input_series": series(story.series),
            "alert_rule_test": [
                {
                    "eval_time": story.after,
                    "alertname": story.alert,
                    "exp_alerts": [
                        {
                            "exp_labels": known[story.alert]["labels"] | story.labels,
                            "exp_annotations": known[story.alert]["annotations"]
                            | {"summary": story.summary},
                        }
                    ],
                }
            ],
        }
        for story in STORIES
    ]

    assert judged(promtool, tmp_path, tests) == ""


def test_no_alert_fires_while_all_is_well(promtool: Path, tmp_path: Path) -> None:
    silent = [
        {"eval_time": "2h", "alertname": name, "exp_alerts": []} for name in rules()
    ]
    test = {
        "interval": "1m",
        "input_series": series(WELL),
        "alert_rule_test": silent,
    }

    assert judged(promtool, tmp_path, [test]) == ""


def test_the_rules_are_sound(promtool: Path) -> None:
    done = subprocess.run(  # noqa: S603 - our own command
        [promtool, "check", "rules", RULES], check=False, timeout=60
    )

    assert done.returncode == 0


def test_a_story_that_is_wrong_is_found_out(promtool: Path, tmp_path: Path) -> None:
    test = {
        "interval": "1m",
        "input_series": series(WELL),
        "alert_rule_test": [
            {"eval_time": "2h", "alertname": "RingleafDown", "exp_alerts": [{}]}
        ],
    }

    assert "FAILED" in judged(promtool, tmp_path, [test])


@pytest.mark.parametrize("name", rules())
def test_an_alert_waits_unless_it_looks_back_itself(name: str) -> None:
    rule = rules()[name]

    assert "for" in rule or "increase(" in rule["expr"]
