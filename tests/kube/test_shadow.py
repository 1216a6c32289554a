"""A shadow hears what happens, reads it in order, and judges every job once."""

import asyncio
import time
from typing import Any

import pytest

from ringleaf.config.reader import DEFAULT
from ringleaf.explain.match import Agreement
from ringleaf.kube.api import Api
from ringleaf.kube.credentials import Credentials
from ringleaf.kube.objects import NodeObject, Pod, PodGroup
from ringleaf.kube.pod_store import PODGROUP_WAIT_S
from ringleaf.kube.shadow import CHIPS_S, Shadow, ShadowConf
from ringleaf.kube.shadow_collector import ShadowPage
from ringleaf.kube.shadow_loop import ShadowLoop
from ringleaf.kube.shadow_results import Finding
from ringleaf.kube.watch import Gone
from tests.kube.stage import NPU, Plain, _read, node, pod

REAL = "huawei.com/AscendReal"
GROUP = "scheduling.k8s.io/group-name"


class Show:
    """A cluster that another scheduler schedules, and its shadow."""

    def __init__(self, nodes: str = "a b", *, begin: bool = True) -> None:
        self.now = 1000.0
        self.told: list[Finding] = []
        self.pods: dict[str, Plain] = {}
        options = ShadowConf(patience_s=10.0)
        self.shadow = Shadow(options, lambda: self.now, self.told.append)
        self.handlers = self.shadow.buffer.handlers
        self.handlers["nodes"].on_update(
            _read([node(name) for name in nodes.split()], NodeObject)
        )
        if begin:
            self.shadow.begin()

    def pod(self, name: str, chips: int = 8, group: str = "", **changes: Any) -> None:  # noqa: ANN401
        """A pod is made."""
        changes.setdefault("scheduler", "volcano")
        made = self.pods[name] = pod(name, chips, group, **changes)
        made["metadata"]["creationTimestamp"] = time.strftime(
            "%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now)
        )
        self._put(name)

    def group(self, name: str, least: int) -> None:
        """A PodGroup is made."""
        meta = {"name": name, "namespace": "default", "uid": f"group-{name}"}
        plain = {"metadata": meta, "spec": {"minMember": least}, "status": {}}
        self.handlers["podgroups"].on_update(_read([plain], PodGroup))

    def gang(self, name: str, pods: int, chips: int = 8) -> None:
        """A PodGroup and its pods are made."""
        self.group(name, pods)
        for i in range(pods):
            self.pod(f"{name}-{i}", chips, name)

    def join(self, name: str, group: str) -> None:
        """Volcano's controller makes a PodGroup for a pod, and says so on the pod."""
        self.group(group, 1)
        self.pods[name]["metadata"]["annotations"][GROUP] = group
        self._put(name)

    def bind(self, name: str, where: str, chips: str = "") -> None:
        """The other scheduler binds a pod; *chips* are written with it."""
        self.pods[name]["spec"]["nodeName"] = where
        if chips:
            self.say(name, chips)
        else:
            self._put(name)

    def say(self, name: str, chips: str) -> None:
        """The device plugin says which chips a pod has."""
        named = ",".join(f"Ascend910-{chip}" for chip in chips)
        self.pods[name]["metadata"]["annotations"][REAL] = named
        self._put(name)

    def ends(self, name: str) -> None:
        """A pod is gone."""
        del self.pods[name]
        self.handlers["pods"].on_delete([Gone("default", name, name)])

    def _put(self, name: str) -> None:
        self.handlers["pods"].on_update(_read([self.pods[name]], Pod))

    def later(self, seconds: float = 0.0) -> list[str]:
        """What was found since the last time, in words."""
        self.now += seconds
        before = len(self.told)
        self.shadow.advance()
        return [
            f"{each.job.removeprefix('pod ').removeprefix('default/')}: "
            f"{each.verdict.value} {each.rule}".rstrip()
            for each in self.told[before:]
        ]


def test_a_pod_is_judged_when_it_is_bound() -> None:
    show = Show()
    show.pod("p", 4)
    assert show.later(5.0) == []

    show.bind("p", "a", "0123")

    assert show.later() == ["p: same"]
    (found,) = show.told
    assert (found.wanted, found.theirs) == ("1 x 4 chips", found.ours)
    assert found.theirs[0].pod == "p"


def test_what_is_heard_waits_until_chips_are_said() -> None:
    show = Show()
    show.pod("p", 2)
    show.pod("q", 2)
    show.bind("p", "a")
    show.bind("q", "a", "23")
    assert show.later(1.0) == []

    show.say("p", "01")

    assert show.later() == ["p: same", "q: same"]
    assert [each.theirs[0].chips for each in show.told] == [(0, 1), (2, 3)]


def test_a_job_is_judged_on_the_cluster_as_it_was_when_it_was_bound() -> None:
    """What came or went while its chips were waited for does not count."""
    show = Show("a b c")
    show.pod("first", 8)
    show.bind("first", "a", "01234567")
    show.pod("p", 8)
    assert show.later() == ["first: same"]

    show.bind("p", "b")
    show.ends("first")
    show.pod("after", 8)
    show.bind("after", "a", "01234567")
    show.say("p", "01234567")

    assert show.later() == ["p: same", "after: same"]


def test_chips_that_are_never_said_are_guessed_so_that_the_books_go_on() -> None:
    show = Show()
    show.pod("p", 4)
    show.bind("p", "a")
    assert show.later(CHIPS_S - 0.1) == []
    assert show.later(0.2) == ["p: chips-unsaid"]
    assert show.told[0].theirs[0].chips == ()

    show.pod("q", 4)
    show.bind("q", "a", "4567")
    assert show.later() == ["q: same"]
    show.say("p", "0123")
    show.pod("r", 8)
    show.bind("r", "b", "01234567")

    assert show.later() == ["r: same"]
    assert len(show.shadow.engine.view.cluster.holdings) == 3


def test_a_pod_that_ends_before_it_says_its_chips_stops_nothing() -> None:
    show = Show()
    show.pod("p", 4)
    show.bind("p", "a")
    show.ends("p")
    show.pod("q", 8)
    show.bind("q", "a", "01234567")

    assert show.later() == ["p: chips-unsaid", "q: same"]


def test_a_gang_is_judged_when_all_of_it_is_bound() -> None:
    show = Show()
    show.gang("g", 2)
    show.bind("g-0", "a", "01234567")
    assert show.later() == []

    show.bind("g-1", "b", "01234567")

    assert show.later() == ["g: same"]
    assert show.told[0].meanwhile == 0


def test_jobs_that_came_between_the_pods_of_a_gang_are_told_and_left_out() -> None:
    """Alone it would be the same; with the other already there it would not."""
    show = Show("a b c")
    show.gang("g", 2, 4)
    show.pod("p", 4)
    show.bind("g-0", "a", "0123")
    show.bind("p", "b", "0123")
    show.bind("g-1", "a", "4567")

    assert show.later() == ["p: better-rank left", "g: same"]
    assert (show.told[1].meanwhile, show.told[1].aside) == (1, ("pod default/p",))


def test_jobs_that_left_between_the_pods_of_a_gang_are_told() -> None:
    show = Show("a b c")
    show.pod("p", 8)
    show.bind("p", "a", "01234567")
    show.gang("g", 2)
    show.bind("g-0", "b", "01234567")
    show.ends("p")
    show.bind("g-1", "c", "01234567")

    show.later()

    assert show.told[1].meanwhile == 1
    assert show.told[1].verdict is Agreement.TIE


def test_a_gang_that_stays_bound_in_part_would_wait_here() -> None:
    show = Show()
    show.gang("g", 2)
    show.bind("g-0", "a", "01234567")
    assert show.later() == []
    assert show.later(9.0) == []

    assert show.later(2.0) == ["g: waits-here gang"]
    assert show.told[0].why == "1 of 2 pods are bound that must start together"
    show.bind("g-1", "b", "01234567")
    assert show.later() == []


def test_a_job_that_fits_here_and_waits_there_is_told_until_it_is_bound() -> None:
    show = Show()
    show.gang("g", 1)
    assert show.later() == []
    show.later(9.0)
    assert show.shadow.findings.waiting == {}

    assert show.later(2.0) == []
    (waits,) = show.shadow.findings.waiting.values()
    assert (waits.verdict, waits.rule) == (Agreement.WAITS_THERE, "not-bound")
    assert waits.why == "fits for 11 s and is not bound"
    assert [each.node for each in waits.ours] == ["a"]
    summary = show.shadow.findings.summary()
    assert (summary.jobs, summary.verdicts[Agreement.WAITS_THERE]) == (0, 1)

    show.bind("g-0", "a", "01234567")
    assert show.later() == ["g: same"]
    assert show.shadow.findings.waiting == {}


def test_a_job_that_waited_there_to_its_end_counts() -> None:
    show = Show()
    show.gang("g", 1)
    show.later()
    show.later(11.0)
    show.ends("g-0")
    show.handlers["podgroups"].on_delete([Gone("default", "g", "group-g")])

    assert show.later() == ["g: waits-there not-bound"]
    assert show.shadow.findings.summary().jobs == 1


def test_a_pod_that_joins_a_podgroup_late_is_judged_once() -> None:
    show = Show()
    show.pod("p", 8)
    show.later(PODGROUP_WAIT_S)
    show.later(11.0)
    assert [*show.shadow.findings.waiting] == ["pod default/p"]

    show.join("p", "g")
    assert show.later(1.0) == []
    assert show.shadow.findings.waiting == {}
    assert show.later(11.0) == []
    assert [*show.shadow.findings.waiting] == ["default/g"]
    show.bind("p", "a", "01234567")

    assert show.later() == ["g: same"]
    summary = show.shadow.findings.summary()
    assert summary.jobs == sum(summary.verdicts.values()) == 1


def test_a_pod_that_joined_a_podgroup_and_was_never_bound_counts_once() -> None:
    show = Show()
    show.pod("p", 8)
    show.later(PODGROUP_WAIT_S)
    show.later(11.0)
    show.join("p", "g")
    show.later(1.0)
    show.later(11.0)
    show.ends("p")
    show.handlers["podgroups"].on_delete([Gone("default", "g", "group-g")])

    assert show.later() == ["g: waits-there not-bound"]
    assert show.shadow.findings.summary().jobs == 1


def test_a_job_that_does_not_fit_here_either_is_no_difference() -> None:
    show = Show("a")
    show.pod("p", 8)
    show.bind("p", "a", "01234567")
    show.gang("g", 1)
    for _second in range(15):
        show.later(1.0)

    assert show.shadow.findings.waiting == {}


def test_jobs_that_ran_before_are_not_judged() -> None:
    show = Show(begin=False)
    for name, chips in (("said", "01"), ("unsaid", "")):
        show.pod(name, 2)
        show.bind(name, "a", chips)
    show.shadow.begin()
    show.pod("new", 4)
    show.bind("new", "a", "4567")

    assert show.later() == ["new: same"]


def test_a_gang_that_was_bound_in_part_before_is_not_judged() -> None:
    show = Show(begin=False)
    show.gang("g", 2)
    show.bind("g-0", "a", "01234567")
    show.shadow.begin()
    show.bind("g-1", "b", "01234567")

    assert show.later() == []


def test_chips_are_guessed_on_a_node_that_has_just_come() -> None:
    show = Show("b")
    show.pod("p", 4)
    show.handlers["nodes"].on_update(_read([node("a")], NodeObject))
    show.bind("p", "a")

    assert show.later(CHIPS_S + 1) == ["p: chips-unsaid"]


def test_pods_of_others_hold_chips_and_are_not_judged() -> None:
    show = Show()
    show.pod("theirs", 4, scheduler="default-scheduler")
    show.bind("theirs", "b", "0123")
    show.pod("p", 4)
    show.bind("p", "b", "4567")

    assert show.later() == ["p: same"]


def test_a_job_that_we_cannot_read_would_wait_here() -> None:
    show = Show()
    show.pod("part", 0, asks={f"{NPU}-2c": "1"})
    show.bind("part", "a")

    assert show.later(CHIPS_S + 1) == ["part: waits-here unreadable"]
    assert "a part of a chip" in show.told[0].why


def test_a_job_of_two_kinds_of_chips_would_wait_here() -> None:
    show = Show()
    show.group("g", 2)
    for i, kind in enumerate(("Ascend910", "Ascend310P")):
        show.pod(f"g-{i}", 0, "g", asks={f"huawei.com/{kind}": "1"})
        show.bind(f"g-{i}", "a", str(i))

    assert show.later() == ["g: waits-here unreadable"]


def test_a_job_made_anew_under_its_old_name_is_judged_again() -> None:
    show = Show()
    for _time in range(2):
        show.pod("p", 8)
        show.bind("p", "a", "01234567")
        assert show.later() == ["p: same"]
        show.ends("p")
        assert show.later() == []


def test_a_pod_on_a_node_that_is_not_there_is_not_judged() -> None:
    show = Show()
    show.pod("p", 8)
    show.bind("p", "gone", "01234567")
    show.pod("q", 8)
    show.bind("q", "elsewhere")

    assert show.later(10.0) == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_already_is_not_judged(phase: str) -> None:
    show = Show()
    show.pod("p", 8, phase=phase)
    show.bind("p", "a")

    assert show.later() == []


def test_metrics_count_jobs_by_verdict_and_differences_by_rule() -> None:
    show = Show()
    show.pod("p", 4)
    show.bind("p", "a", "0123")
    show.pod("q", 4)
    show.bind("q", "b", "0123")
    show.gang("g", 1, 4)
    show.later()
    show.later(11.0)

    page, kind = asyncio.run(ShadowPage(show.shadow.findings).collected()).text()

    assert kind.startswith("text/plain")
    lines = page.decode().splitlines()
    assert 'ringleaf_shadow_jobs_total{verdict="same"} 1.0' in lines
    assert 'ringleaf_shadow_jobs_total{verdict="rule"} 0.0' in lines
    told = 'ringleaf_shadow_differences_total{rule="left",verdict="better-rank"} 1.0'
    assert told in lines
    assert "ringleaf_shadow_waiting_jobs 1.0" in lines


def test_a_loop_tells_what_it_lacks_and_goes_by_the_last_good_configuration() -> None:
    credentials = Credentials("http://127.0.0.1:1")
    loop = ShadowLoop(Api(credentials), ShadowConf(), lambda _what, **_facts: None)

    loop.refuse_conf("line 2: unknown action")
    ready, told = loop.ready()
    loop.reconfigure(DEFAULT)

    assert not ready
    assert told["/api/v1/pods"] == "not listed yet"
    assert told["configuration"] == "line 2: unknown action"
    assert told["role"] == "shadow"
    assert "configuration" not in loop.ready()[1]
    assert loop.live()[0]
    loop.shadow.begin()
    assert loop.shadow.engine.context.framework.conf.actions == ()
    assert b'"jobs":0' in loop.page()
