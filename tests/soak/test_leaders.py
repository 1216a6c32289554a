"""Leaders are killed, stopped and asked to end, and nothing is lost."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from ringleaf_testbed.cluster import Testbed
from tests.soak.audit import evicted_pods, judged
from tests.soak.replicas import Replicas, is_deposed
from tests.soak.run import Plan, markdown

HITS = Plan(kills=3, restarts=0, pods=120, aimed=1, starved=0, replicas=2)


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(HITS, id="3 hits", marks=pytest.mark.long),
        pytest.param(
            replace(HITS, kills=5, pods=700, aimed=3),
            id="5 hits",
            marks=pytest.mark.long,
        ),
    ],
)
def test_nothing_is_lost_when_leaders_are_killed(
    plan: Plan, new_testbed: type[Testbed]
) -> None:
    said: list[str] = []

    report = Replicas(plan, said.append, new_testbed).run()

    told = "\n".join([*said, markdown(report)])
    assert report.violations == [], told
    assert report.kills == plan.kills, told
    assert report.leaders == plan.kills + 1, told
    assert sorted(report.handovers) == ["kill", "stop", "term"], told


def entry(at: int, verb: str, who: str, **ref: str) -> str:
    plain = {
        "stage": "ResponseComplete",
        "stageTimestamp": f"2026-01-01T00:00:{at:02d}.000000Z",
        "verb": verb,
        "userAgent": f"ringleaf/{who}",
        "objectRef": ref,
        "responseStatus": {"code": 200},
        "requestObject": {"spec": {"holderIdentity": who}},
    }
    return json.dumps(plain)


def test_the_judge_sees_what_a_deposed_leader_does(tmp_path: Path) -> None:
    binding = {"resource": "pods", "subresource": "binding", "name": "p"}
    eviction = {**binding, "subresource": "eviction", "namespace": "n"}
    lines = [
        entry(1, "create", "a", resource="leases"),
        entry(2, "create", "a", **binding),
        entry(3, "update", "b", resource="leases", name="ringleaf"),
        entry(4, "create", "b", **binding),
        entry(5, "create", "a", **binding),
        entry(6, "create", "a", **eviction),
    ]
    log = tmp_path / "audit.log"
    # As the API server leaves it once it has grown large.
    (tmp_path / "audit-2026-01-01T00-00-02.000.log").write_text("\n".join(lines[:2]))
    log.write_text("\n".join(lines[2:]), encoding="utf-8")

    found = judged(log)

    assert found.leaders == ["a", "b"]
    assert found.n_bindings == 3
    assert found.usurpers == [
        "pod p was bound by a while 'b' led",
        "pod p was evicted by a while 'b' led",
    ]
    assert evicted_pods(log) == ["n/p"]


@pytest.mark.parametrize(
    ("events", "deposed"),
    [
        pytest.param(["started", "standby", "leads"], False, id="it leads"),
        pytest.param(["leads", "bind", "deposed", "standby"], True, id="it did"),
        pytest.param(["leads", "deposed", "leads"], False, id="it leads again"),
        pytest.param(["started", "standby"], False, id="it never did"),
    ],
)
def test_a_scheduler_that_leads_no_more_is_known_by_its_log(
    events: list[str], *, deposed: bool
) -> None:
    log = "".join(f'{{"event":"{event}","timestamp":""}}\n' for event in events)

    assert is_deposed(log) is deposed
