"""Whatever happens to objects, in whatever order, no chip is given twice."""

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.framework.instruction import Instruction, Report, WakeAt
from ringleaf.kube.comparer import jobs_that_differ, nodes_that_differ, strangers
from ringleaf.kube.pod_state import PodState
from ringleaf.model.placement import Placement
from tests.effort import examples
from tests.kube.stage import GROUP, NPU, Stage, node

NODES = "abcd"
REAL = "huawei.com/AscendReal"
ENDED = ("Succeeded", "Failed")


class Histories(RuleBasedStateMachine):
    """A cluster to which things happen, and a scheduler that crashes."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage("a b c", conf=_conf())
        self.number = 0
        self.unseen: list[dict[str, Any]] = []
        """Pods that are bound, and the scheduler has not heard of it."""
        self.open: list[tuple[PodState, Placement]] = []
        """Bindings without an answer so far."""
        self.handed: dict[str, tuple[str, frozenset[str]]] = {}
        """Pod -> the node and the chips that its device plugin handed it."""

    @initialize()
    def begin(self) -> None:
        self.stage.cycle()

    # What users do.

    @rule(
        pods=st.integers(1, 3),
        chips=st.sampled_from([0, 1, 2, 4, 8]),
        spare=st.integers(0, 1),
        group_first=st.booleans(),
    )
    def submit_gang(
        self, pods: int, chips: int, spare: int, *, group_first: bool
    ) -> None:
        self.number += 1
        name = f"g{self.number}"
        least = max(1, pods - spare)
        if group_first:
            self.stage.group(name, least)
        for i in range(pods):
            self.stage.pod(f"{name}-{i}", chips, name)
        if not group_first:
            self.stage.group(name, least)

    @rule(chips=st.integers(0, 8), ours=st.booleans())
    def submit_pod(self, chips: int, *, ours: bool) -> None:
        self.number += 1
        scheduler = "ringleaf" if ours else "other"
        self.stage.pod(f"p{self.number}", chips, scheduler=scheduler)

    @precondition(lambda self: self.stage.pods)
    @rule(data=st.data())
    def delete_pod(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.stage.pods)))
        plain = self.stage.pods[key]
        self.unseen = [each for each in self.unseen if each is not plain]
        self.stage.drop_pod(key.partition("/")[2])

    @precondition(lambda self: self.stage.pods)
    @rule(data=st.data())
    def delete_softly(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.stage.pods)))
        plain = self.stage.pods[key]
        if plain["spec"].get("nodeName"):
            plain["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self._show(plain)

    @precondition(lambda self: self.stage.bound)
    @rule(data=st.data(), phase=st.sampled_from(ENDED))
    def end_pod(self, data: st.DataObject, phase: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.stage.bound)))
        plain = self.stage.pods[f"default/{name}"]
        plain["status"]["phase"] = phase
        self._show(plain)

    @precondition(lambda self: self.stage.groups)
    @rule(data=st.data())
    def make_anew(self, data: st.DataObject) -> None:
        """A controller makes a pod again that is gone."""
        name = data.draw(st.sampled_from(sorted(self.stage.groups)))
        there = {key.partition("/")[2] for key in self.stage.pods}
        for i in range(3):
            if f"{name}-{i}" not in there:
                self.stage.pod(f"{name}-{i}", 8, name)
                break

    @precondition(lambda self: self.stage.pods)
    @rule(data=st.data())
    def annotate(self, data: st.DataObject) -> None:
        """Volcano's controller makes a PodGroup for a pod that came without."""
        key = data.draw(st.sampled_from(sorted(self.stage.pods)))
        plain = self.stage.pods[key]
        if GROUP not in plain["metadata"]["annotations"]:
            name = f"made-{key.partition('/')[2]}"
            plain["metadata"]["annotations"][GROUP] = name
            self.stage.group(name, 1)
            self._show(plain)

    @precondition(lambda self: self.stage.groups)
    @rule(data=st.data(), label=st.sampled_from(["null", "big"]))
    def label(self, data: st.DataObject, label: str) -> None:
        """Somebody labels a PodGroup, so that it can or cannot be understood."""
        name = data.draw(st.sampled_from(sorted(self.stage.groups)))
        plain = self.stage.groups[name]
        plain["metadata"]["labels"] = {"tor-affinity": label}
        self.stage.put_group(plain)

    @precondition(lambda self: self.stage.groups)
    @rule(data=st.data())
    def delete_group(self, data: st.DataObject) -> None:
        self.stage.drop_group(data.draw(st.sampled_from(sorted(self.stage.groups))))

    # What tenants write on their pods.

    @precondition(lambda self: self._with_chips())
    @rule(
        data=st.data(),
        text=st.sampled_from([None, "", "zzz", "Ascend910-0000100", "one", "twice"]),
        real=st.booleans(),
    )
    def garble(self, data: st.DataObject, text: str | None, *, real: bool) -> None:
        """Somebody writes on a pod what its chips are not."""
        plain = data.draw(st.sampled_from(self._with_chips()))
        written = plain["metadata"]["annotations"]
        chips = sorted(self.handed[plain["metadata"]["uid"]][1])
        if text == "one":
            text = chips[0] if len(chips) > 1 else "zzz"
        elif text == "twice":
            text = ",".join([chips[0], *chips])
        written.pop(NPU)
        if text is not None:
            written[REAL if real else NPU] = text
        self._show(plain)

    @precondition(lambda self: self._with_chips())
    @rule(data=st.data())
    def say_it_again(self, data: st.DataObject) -> None:
        """The device plugin writes on a pod what it has handed it."""
        plain = data.draw(st.sampled_from(self._with_chips()))
        _node, chips = self.handed[plain["metadata"]["uid"]]
        plain["metadata"]["annotations"][REAL] = ",".join(sorted(chips))
        self._show(plain)

    @precondition(lambda self: self._with_chips())
    @rule(data=st.data())
    def swap(self, data: st.DataObject) -> None:
        """The device plugin hands two pods each other's chips, and says so."""
        one = data.draw(st.sampled_from(self._with_chips()))
        where, chips = self.handed[one["metadata"]["uid"]]
        for other in self._with_chips():
            uid = other["metadata"]["uid"]
            there, others = self.handed[uid]
            if other is one or (there, len(others)) != (where, len(chips)):
                continue
            self.handed[uid] = where, chips
            self.handed[one["metadata"]["uid"]] = where, others
            for plain, own in ((one, others), (other, chips)):
                plain["metadata"]["annotations"][REAL] = ",".join(sorted(own))
                self._show(plain)
            return

    @precondition(lambda self: self.stage.bound)
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        """A pod that asks for no chips says that it has all of them."""
        name = data.draw(st.sampled_from(sorted(self.stage.bound)))
        plain = self.stage.pods[f"default/{name}"]
        if not _asked(plain):
            every = ",".join(f"Ascend910-{i}" for i in range(8))
            plain["metadata"]["annotations"][REAL] = every
            self._show(plain)

    def _with_chips(self) -> list[dict[str, Any]]:
        """Pods that run with chips, and say something of them."""
        return [
            plain
            for _key, plain in sorted(self.stage.pods.items())
            if self.handed.get(plain["metadata"]["uid"], ("", ()))[1]
            and NPU in plain["metadata"]["annotations"]
            and plain["status"]["phase"] not in ENDED
        ]

    # What happens to nodes.

    @rule(
        name=st.sampled_from(NODES),
        listed=st.sampled_from([8, 8, 6, 0]),
        counted=st.sampled_from([8, 8, 5, 0]),
    )
    def node_shrinks(self, name: str, listed: int, counted: int) -> None:
        """A node lists fewer chips, or its kubelet counts fewer, or as before."""
        if name in self.stage.nodes:
            counts = {NPU: str(min(counted, listed))}
            self.stage.put_node(node(name, chips=listed, allocatable=counts))

    @rule(name=st.sampled_from(NODES), ready=st.booleans())
    def node_comes(self, name: str, *, ready: bool) -> None:
        self.stage.put_node(node(name, ready=str(ready)))

    @precondition(lambda self: len(self.stage.nodes) > 1)
    @rule(data=st.data())
    def node_goes(self, data: st.DataObject) -> None:
        self.stage.drop_node(data.draw(st.sampled_from(sorted(self.stage.nodes))))

    # What the scheduler does, and what comes of it.

    @rule(
        outcomes=st.lists(st.sampled_from(["bound", "written", "failed", "open"])),
        later=st.sampled_from([0.0, 0.1, 1.0, 40.0]),
    )
    def cycle(self, outcomes: list[str], later: float) -> None:
        left = list(outcomes)

        def outcome(record: PodState, place: Placement) -> str:
            found = left.pop() if left else "bound"
            if found == "open":
                self.open.append((record, place))
            if found == "written":
                self.unseen.append(self.stage.pods[record.key])
            return found

        self.stage.cycle(later, outcome)

    @rule()
    def cycle_well(self) -> None:
        self.stage.cycle(1.0)

    @rule()
    def cycle_much_later(self) -> None:
        self.stage.cycle(40.0)

    @precondition(lambda self: self.open)
    @rule(bound=st.booleans())
    def answer_comes(self, *, bound: bool) -> None:
        record, place = self.open.pop(0)
        plain = self.stage.pods.get(record.key)
        if plain is None or plain["metadata"]["uid"] != record.uid:
            return
        if bound:
            self._write(record, place)
            self.stage.cache.assumed.bound(record.uid)
            self.unseen.append(plain)
        else:
            self.stage.cache.assumed.forget(record.uid, self.stage.now)

    def _write(self, record: PodState, place: Placement) -> None:
        chips = {NPU: ",".join(f"Ascend910-{chip}" for chip in place.chips)}
        rank = {"hccl/rankIndex": str(place.replica)}
        written = chips | rank if place.chips else {}
        self.stage.write(record.key, place.node, written, seen=False)

    @precondition(lambda self: self.unseen)
    @rule()
    def see(self) -> None:
        self._show(self.unseen.pop(0))

    @precondition(lambda self: self.stage.pods)
    @rule(data=st.data())
    def see_again(self, data: st.DataObject) -> None:
        self._show(self.stage.pods[data.draw(st.sampled_from(sorted(self.stage.pods)))])

    def _show(self, plain: dict[str, Any]) -> None:
        self.unseen = [each for each in self.unseen if each is not plain]
        self.stage.put_pod(plain)

    @rule(wrote=st.lists(st.booleans()))
    def crash(self, wrote: list[bool]) -> None:
        """The scheduler is killed; some of what it sent arrives, some does not."""
        self._lose(wrote)
        self.unseen = []
        self.stage.restart()

    @rule(wrote=st.lists(st.booleans()), late=st.booleans())
    def lose_the_lead(self, wrote: list[bool], *, late: bool) -> None:
        """The scheduler loses its Lease, stands by, and leads again later."""
        if late:
            self.stage.step_down()
        self._lose(wrote)
        self.stage.step_down()
        assert self.stage.said == [each for each in self.stage.said if _is_word(each)]
        self.unseen = []
        self.stage.lead()

    def _lose(self, wrote: list[bool]) -> None:
        """Of bindings without an answer, some arrive and some do not."""
        for (record, place), arrived in zip(self.open, wrote, strict=False):
            plain = self.stage.pods.get(record.key)
            same = plain is not None and plain["metadata"]["uid"] == record.uid
            if arrived and same:
                self._write(record, place)
        self.open = []

    # What must hold.

    @invariant()
    def no_chip_has_two_owners(self) -> None:
        owners: Counter[str] = Counter()
        for plain in self.stage.pods.values():
            where, uid = plain["spec"].get("nodeName"), plain["metadata"]["uid"]
            if where and uid not in self.handed:
                chips = plain["metadata"]["annotations"].get(NPU, "").split(",")
                self.handed[uid] = where, frozenset(filter(None, chips))
            if where and plain["status"]["phase"] not in ENDED:
                owners.update(f"{where}/{chip}" for chip in self.handed[uid][1])
        assert not [chip for chip, count in owners.items() if count > 1]

    @invariant()
    def the_books_are_as_the_objects(self) -> None:
        stage = self.stage
        if stage.decider.may_be_compared:
            cache, engine = stage.cache, stage.engine
            found = [
                *nodes_that_differ(cache, engine),
                *strangers(cache, engine),
                *jobs_that_differ(cache, engine, cache.gangs),
            ]
            assert found == []

    @invariant()
    def queues_are_charged_for_what_pods_requested(self) -> None:
        stage = self.stage
        if not stage.decider.may_be_compared:
            return
        view, requested = stage.engine.view, Counter[str]()
        for group in stage.cache.gangs.values():
            job_state = view.job_states.get(group.name)
            if job_state is None:
                continue
            for pod in group.pods.values():
                holds = pod.number in job_state.placements
                if holds and pod.number not in job_state.terminating:
                    requested[job_state.job.queue] += 1000 * pod.requested
        charged = {
            name: each.allocated.get(NPU, 0) for name, each in view.queue_usage.items()
        }
        assert {n: c for n, c in charged.items() if c} == +requested

    def teardown(self) -> None:
        """When it is quiet, nothing is half done and a restart changes nothing."""
        while self.open:
            self.answer_comes(bound=True)
        while self.unseen:
            self.see()
        for _round in range(12):
            self.stage.cycle(40.0)
        self.no_chip_has_two_owners()
        self._gangs_are_whole_or_cannot_be()
        self._who_fits_runs()
        before = self.stage.bound
        self.stage.restart()
        self.stage.cycle(40.0)
        assert self.stage.bound == before

    def _gangs_are_whole_or_cannot_be(self) -> None:
        stage = self.stage
        if self._some_are_stranded():
            return
        for name, plain in stage.groups.items():
            own = [p for k, p in stage.pods.items() if k.startswith(f"default/{name}-")]
            live = [p for p in own if p["status"]["phase"] not in ENDED]
            bad = plain["metadata"].get("labels") == {"tor-affinity": "big"}
            if bad or any("deletionTimestamp" in p["metadata"] for p in live):
                continue
            on = [p["spec"].get("nodeName") for p in live]
            bound = [n for n in on if n]
            done = sum(p["status"]["phase"] == "Succeeded" for p in own)
            least = plain["spec"]["minMember"]
            if not bound or len(bound) + done >= least or len(live) + done < least:
                continue
            assert not all(self._fits(p) for p in live if not p["spec"].get("nodeName"))

    def _who_fits_runs(self) -> None:
        """Pods alone wait for room only."""
        if self._some_are_stranded():
            return
        for key, plain in self.stage.pods.items():
            alone = key.startswith("default/p")
            ours = plain["spec"]["schedulerName"] == "ringleaf"
            waits = plain["status"]["phase"] not in ENDED
            alone &= GROUP not in plain["metadata"]["annotations"]
            if alone and ours and waits and not plain["spec"].get("nodeName"):
                assert not self._fits(plain), key

    def _some_are_stranded(self) -> bool:
        """Whether pods are on nodes that are not ready, or gone.

        What they use counts against the share of their queue, as in Volcano.
        """
        ready = {
            name
            for name, each in self.stage.nodes.items()
            if each["status"]["conditions"][0]["status"] == "True"
        }
        return any(p.split()[0] not in ready for p in self.stage.bound.values())

    def _fits(self, plain: dict[str, Any]) -> bool:
        """Whether some node has what one pod asks, by the API server's books alone."""
        chips, taken = _asked(plain), Counter[str]()
        for other in self.stage.pods.values():
            where = other["spec"].get("nodeName")
            if where and other["status"]["phase"] not in ENDED:
                own = self.handed[other["metadata"]["uid"]][1]
                taken[where] += len(own)
                said = other["metadata"]["annotations"]
                named = said.get(REAL) or said.get(NPU, "")
                if own and {*named.split(",")} != own:
                    taken[where] += 8  # nobody knows what it has
        return any(
            each["status"]["conditions"][0]["status"] == "True"
            and taken[name] + chips <= (int(_counted(each)) if chips else 8)
            for name, each in self.stage.nodes.items()
        )


def _asked(plain: dict[str, Any]) -> int:
    asks = plain["spec"]["containers"][0]["resources"]["requests"]
    return int(asks.get(NPU, 0))


def _counted(plain: dict[str, Any]) -> str:
    counted: str = plain["status"]["allocatable"].get(NPU, "0")
    return counted


def _is_word(each: Instruction) -> bool:
    """Whether it does nothing: one that stands by tells what it saw, at most."""
    return isinstance(each, Report | WakeAt)


def _conf() -> Conf:
    """The default, without what keeps room that is free: reservations and enqueue."""
    off = {"name": "allocate", "arguments": {"reservation": "off"}}
    names = [["priority", "gang", "affinity"], ["drf", "predicates", "proportion"]]
    tiers = [{"plugins": [{"name": name} for name in tier]} for tier in names]
    actions = "allocate, backfill"
    found = read_conf({"actions": actions, "tiers": tiers, "configurations": [off]})
    assert isinstance(found, Conf)
    return found


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=examples(60), stateful_step_count=30)
