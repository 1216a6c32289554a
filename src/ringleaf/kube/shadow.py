"""Shadow mode: what another scheduler does with its pods, and what we would have done.

It keeps a cache of the cluster as the scheduler does, in which the other scheduler's
pods are ours to decide, and decides nothing by itself. When enough pods of a job are
bound to start it, the job is judged (``explain/judge.py``) on the cluster as it was
then. It reads, and writes nothing to the API server: there is nothing here that could.

What happens is buffered in order and read a little later (``EventBuffer``). The device
plugin writes chips on pods after they are bound, so reading stops at a pod that was
bound without, until its chips are known or ``CHIPS_S`` are over. Then its chips are
guessed, the lowest that are free, so that reading goes on; the judgement does not count
them.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event, JobGone, PodsGone
from ringleaf.explain.judge import judge, would_start
from ringleaf.explain.match import (
    AGREES,
    Agreement,
    Because,
    Judgement,
)
from ringleaf.framework.job_state import JobState
from ringleaf.kube import names
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.decider import Decider
from ringleaf.kube.event_buffer import BufferedEvent, EventBuffer
from ringleaf.kube.gang_state import GangState, problem_of
from ringleaf.kube.jobs import placement_of
from ringleaf.kube.objects import Pod
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.shadow_results import Finding, ShadowResults, places
from ringleaf.model.mask import chips_of
from ringleaf.model.placement import Placement

CHIPS_S: Final = 5.0
"""How long the chips of a bound pod are waited for."""
TICK_S: Final = 1.0
"""How often jobs are looked at that wait."""
TICK_COST_S: Final = 0.05
"""How long that may take at a time; the others have their turn later."""


class ShadowConf(Struct, frozen=True):
    """How a shadow is run.

    Args:
        schedulers: The scheduler names of the pods that are looked at.
        conf: The configuration by which they are judged.
        patience_s: How long a job may fit here and wait there, or be bound in part.

    """

    schedulers: tuple[str, ...] = ("volcano",)
    conf: Conf = DEFAULT
    patience_s: float = 10.0


class Shadow:
    """The state of a shadow, and what it has found.

    Args:
        options: How it is run.
        now: Seconds since 1970.
        found: Is told of every finding.

    """

    def __init__(
        self,
        options: ShadowConf,
        now: Callable[[], float],
        found: Callable[[Finding], None] = lambda _finding: None,
    ) -> None:
        conf = options.conf.quiet
        self._options, self._now, self._found = options, now, found
        self.buffer = EventBuffer(now)
        self.cache = ClusterCache(options.schedulers, conf)
        self.decider = Decider(self.cache, lambda: self.cache.conf)
        self.findings = ShadowResults(now(), options.schedulers)
        self._began = False
        self._step = 0
        self._bound: dict[str, int] = {}
        """Job -> when its last pod was bound, in steps."""
        self._left: dict[str, int] = {}
        """The same of jobs that lost pods since some job was bound in part."""
        self._partly: dict[str, tuple[int, float]] = {}
        """Jobs that are bound in part: since which step, and what time."""
        self._judged: dict[str, None] = {}
        self._guessed: dict[str, str] = {}
        """Pod uid -> guessed chips, where no annotation names them."""
        self._fits_since: dict[str, float] = {}
        self._waiting_pods: dict[str, frozenset[str]] = {}
        """Job of ``findings.waiting`` -> the uids of its pods."""
        self._turn: list[str] = []
        self._next_tick = 0.0

    def begin(self) -> None:
        """Everything there was is in the buffer: jobs that run are not judged."""
        late = []
        while self.buffer.events:
            heard = self.buffer.events.popleft()
            if heard.kind == "pods" and not heard.is_deleted and self._lacks(heard):
                late.append(heard)
            else:
                self._read(heard)
        self._flush()
        for heard in late:
            self._guess(heard.object)
            self._read(heard)
            self._flush()
        job_states = self.engine.view.job_states
        running = [name for name, each in job_states.items() if each.placements]
        self._judged |= dict.fromkeys(running)
        self._began = True

    def advance(self) -> None:
        """Read on as far as can be."""
        now = self._now()
        heard = self.buffer.events
        while heard and not self._must_wait(heard[0], now):
            each = heard.popleft()
            if self._binds(each):
                self._bind(each)
            else:
                self._read(each)
        self._flush()
        if now >= self._next_tick:
            self._next_tick = now + TICK_S
            self._look_at_waiting(now)

    @property
    def next_at(self) -> float:
        """When to read on at the latest."""
        return self._next_tick

    @property
    def engine(self) -> Engine:
        """The engine of this shadow."""
        return self.decider.engine

    # The buffer.

    def _binds(self, heard: BufferedEvent) -> bool:
        """Whether a pod is on a node that was on none."""
        if heard.kind != "pods" or heard.is_deleted:
            return False
        known = self.cache.pods.get(heard.object.metadata.uid)
        return bool(heard.object.spec.node_name) and (known is None or not known.node)

    def _lacks(self, heard: BufferedEvent) -> bool:
        """Whether a pod is bound, and no annotation names its chips."""
        pod = heard.object
        uid = pod.metadata.uid
        if not pod.spec.node_name or uid in self.buffer.chips or uid in self._guessed:
            return False
        with suppress(Exception):  # it is told where the pod is read
            return PodState(pod, frozenset()).is_unclear
        return False

    def _must_wait(self, heard: BufferedEvent, now: float) -> bool:
        """Whether what was heard is to be read only when chips are known."""
        if not self._binds(heard) or not self._lacks(heard):
            return False
        return now < heard.at + CHIPS_S and heard.object.metadata.uid not in (
            self.buffer.gone
        )

    def _read(self, heard: BufferedEvent) -> None:
        given = heard.object
        if heard.kind == "pods":
            uid = given.uid if heard.is_deleted else given.metadata.uid
            if heard.is_deleted:
                self.buffer.forget(uid)
                self._guessed.pop(uid, None)
            elif given.spec.node_name:
                given = self._with_chips(given)
        handler = self.cache.handlers[heard.kind]
        (handler.on_delete if heard.is_deleted else handler.on_update)([given])

    def _with_chips(self, pod: Pod) -> Pod:
        """The pod with the chips that it will name, or that were guessed."""
        uid = pod.metadata.uid
        text = self.buffer.chips.get(uid)
        if text is not None:
            self._guessed.pop(uid, None)
        text = text or self._guessed.get(uid)
        if text is None:
            return pod
        notes = {**(pod.metadata.annotations or {}), names.REAL: text}
        return replace(pod, metadata=replace(pod.metadata, annotations=notes))

    def _guess(self, pod: Pod) -> None:
        """The lowest free chips, so that reading goes on."""
        cluster = self.engine.view.cluster
        at = cluster.index.get(pod.spec.node_name)
        if at is None:
            return
        asked = PodState(pod, frozenset()).requested
        free = chips_of(cluster.free.item(at) & cluster.healthy.item(at))
        prefix = cluster.product_of(at).chip_prefix
        guess = ",".join(f"{prefix}-{chip}" for chip in free[:asked])
        if guess:
            self._guessed[pod.metadata.uid] = guess

    def _flush(self) -> None:
        """The engine hears what is new."""
        now = self._now()
        events = self.decider.news(now)
        if events:
            self.engine.handle_all(events, now)
            self._note_gone(events)
        self.cache.problems.unreported.clear()
        self.cache.take_changed()

    def _note_gone(self, events: Iterable[Event]) -> None:
        for event in events:
            if not isinstance(event, JobGone | PodsGone):
                continue
            name = event.job
            if name not in self._partly and self._partly:
                self._left[name] = self._step
            if name not in self.cache.gangs:
                for known in (self._judged, self._bound, self._fits_since):
                    known.pop(name, None)
                self._partly.pop(name, None)
                self._end_waiting(name)

    def _end_waiting(self, name: str) -> None:
        """Count a job that was never bound, unless its pods are of another job now.

        Volcano's controller puts a pod without a PodGroup into one of its own, which
        may take longer than our patience.
        """
        uids = self._waiting_pods.pop(name, frozenset())
        if not self.cache.pods.keys().isdisjoint(uids):
            self.findings.forget(name)
        elif (never := self.findings.give_up(name)) is not None:
            self._found(never)

    # Jobs.

    def _bind(self, heard: BufferedEvent) -> None:
        """A pod is bound; its job is judged once it can start."""
        pod = heard.object
        if self._lacks(heard):
            self._flush()
            self._guess(pod)
        self._read(heard)
        self._flush()
        record = self.cache.pods.get(pod.metadata.uid)
        if record is None:
            return
        self._step += 1
        self._bound[record.job] = self._step
        if record.ours and record.job not in self._judged:
            self._look_at_bound(record.job)

    def _look_at_bound(self, name: str) -> None:
        """Judge a job if enough of its pods are bound."""
        group, now = self.cache.gangs[name], self._now()
        job_state = self.engine.view.job_states.get(name)
        if job_state is None or not job_state.placements:
            return  # on a node that is not there
        since, _at = self._partly.setdefault(name, (self._step, now))
        theirs = self._theirs(group)
        if problem := problem_of(group):
            self._judge_as(
                name,
                Judgement(
                    Agreement.WAITS_HERE, theirs, (), Because.UNREADABLE, problem
                ),
            )
        elif len(job_state.placements) >= _needed(group, job_state):
            ctx, job = self.engine.context, job_state.job
            came = [n for n, at in self._bound.items() if at > since and n != name]
            found = judge(ctx, job, theirs)
            aside: tuple[str, ...] = ()
            if came and found.match not in AGREES:
                other = judge(ctx, job, theirs, came)
                if other.match in AGREES:
                    found, aside = other, tuple(came)
            went = sum(at >= since for at in self._left.values())
            self._judge_as(name, found, len(came) + went, aside)

    def _theirs(self, group: GangState) -> tuple[Placement, ...]:
        """Where the pods of a group are; without guessed chips."""
        assert group.reported.job is not None
        found = []
        for pod in group.pods.values():
            if pod.holds and pod.number in group.reported.placed:
                placed = placement_of(pod, group.reported.job)
                guessed = pod.uid in self._guessed
                found.append(replace(placed, chips=()) if guessed else placed)
        return tuple(sorted(found, key=lambda each: each.replica))

    def _judge_as(
        self,
        name: str,
        found: Judgement,
        meanwhile: int = 0,
        aside: tuple[str, ...] = (),
    ) -> None:
        """A job has its verdict."""
        self._judged[name] = None
        del self._partly[name]
        if not self._partly:
            self._left.clear()
        self._fits_since.pop(name, None)
        self._waiting_pods.pop(name, None)
        finding = self._finding(name, found, meanwhile, aside)
        self.findings.add(finding)
        self._found(finding)

    def _finding(
        self,
        name: str,
        found: Judgement,
        meanwhile: int = 0,
        aside: tuple[str, ...] = (),
    ) -> Finding:
        group = self.cache.gangs[name]
        pods = {n: pod.name for n, pod in group.by_number().items()}
        return Finding(
            at=round(self._now(), 3),
            job=name,
            verdict=found.match,
            wanted=self.engine.view.job_states[name].job.wanted,
            rule=found.rule,
            why=found.why,
            theirs=places(found.theirs, pods),
            ours=places(found.ours, pods),
            meanwhile=meanwhile,
            aside=aside,
        )

    def _look_at_waiting(self, now: float) -> None:
        """Jobs that fit here and wait there, and those that stay bound in part."""
        for name, (_step, since) in list(self._partly.items()):
            if now - since >= self._options.patience_s:
                self._judge_part(name)
        if not self._turn:
            job_states = self.engine.view.job_states
            self._turn = [
                name
                for name, each in job_states.items()
                if not (each.placements or each.job.podless)
                and name not in self._judged
                and name not in self.findings.waiting
            ]
        end = time.monotonic() + TICK_COST_S
        while self._turn and time.monotonic() < end:
            self._look_at(self._turn.pop(), now)

    def _judge_part(self, name: str) -> None:
        """A job stays bound in part: here all of it starts, or nothing."""
        job_state = self.engine.view.job_states[name]
        group = self.cache.gangs[name]
        n_bound, need = len(job_state.placements), _needed(group, job_state)
        words = f"{n_bound} of {need} pods are bound that must start together"
        theirs = self._theirs(group)
        found = Judgement(Agreement.WAITS_HERE, theirs, (), Because.GANG, words)
        self._judge_as(name, found)

    def _look_at(self, name: str, now: float) -> None:
        """Whether a job that waits would start here, and has for a while."""
        job_state = self.engine.view.job_states.get(name)
        group = self.cache.gangs.get(name)
        if (
            job_state is None
            or group is None
            or job_state.placements
            or group.status.not_ready
        ):
            return
        placed = would_start(self.engine.context, job_state.job)
        if placed is None:
            self._fits_since.pop(name, None)
            return
        since = self._fits_since.setdefault(name, now)
        if now - since < self._options.patience_s:
            return
        words = f"fits for {now - since:.0f} s and is not bound"
        found = Judgement(
            Agreement.WAITS_THERE, (), placed.placements, Because.NOT_BOUND, words
        )
        self.findings.wait(self._finding(name, found))
        self._waiting_pods[name] = frozenset(group.pods)


def _needed(group: GangState, job_state: JobState) -> int:
    """Pods that must be bound before the job has started."""
    done = sum(pod.succeeded for pod in group.pods.values())
    return max(job_state.facts.effective_min, group.need - done)
