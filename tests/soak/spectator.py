"""Follows all pods from outside: what is bound, what queues hold, half-bound gangs."""

import threading
import time
from collections import Counter, defaultdict
from http.client import HTTPException
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from ringleaf_testbed.client import Client, Watch
from ringleaf_testbed.source import TestbedError
from tests.soak import checker, workload
from tests.soak.evictions import Member, Usage

AWAY: Final = (OSError, HTTPException, TestbedError, msgspec.DecodeError)
"""What a request raises while the API server is down."""
QUEUE: Final = "volcano.sh/queue-name"


class Spectator:
    """Watches all pods: which are bound, which gangs are bound in part."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stopping = threading.Event()
        self._watch: Watch | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._job: dict[str, str] = {}
        self._bound: defaultdict[str, set[str]] = defaultdict(set)
        self._done: defaultdict[str, set[str]] = defaultdict(set)
        self._whole: set[str] = set()
        self._ever: set[str] = set()
        self._halves: dict[str, float] = {}
        self.least: dict[str, int] = {}
        """Job -> the pods that must start together."""
        self.changed = threading.Condition()
        self.half_bound = self.completed = self.released = 0
        self.repair_s = 0.0
        self.jobs: dict[str, Member] = {}
        """Every job that had pods, by the name that the scheduler gives it."""
        self.job_of: dict[str, str] = {}
        """Pod (namespace/name) -> its job."""
        self.whole_at: dict[str, float] = {}
        """Job -> when its pods were first bound."""
        self.made_at: dict[str, float] = {}
        """Job -> when all pods that must start together were first there."""
        self._made: defaultdict[str, set[str]] = defaultdict(set)
        self.usage = Usage()
        """What queues hold."""
        self._holds: dict[str, tuple[str, int]] = {}
        self._held: Counter[str] = Counter()

    @property
    def binds(self) -> int:
        """Pods that were seen to be bound."""
        return len(self._ever)

    def n_bound(self, job: str) -> int:
        """Pods of *job* that are bound now."""
        return len(self._bound[job])

    def note_halves(self) -> int:
        """Take note of the gangs that are bound in part; how many that are."""
        with self.changed:
            halves = [
                job
                for job, least in self.least.items()
                if job not in self._whole | self._halves.keys()
                and 0 < len(self._bound[job]) < least
            ]
            self._halves |= dict.fromkeys(halves, time.monotonic())
            self.half_bound += len(halves)
            return len(halves)

    @property
    def halves(self) -> list[str]:
        """Gangs that a kill left bound in part, and still are."""
        with self.changed:
            return sorted(self._halves)

    def __enter__(self) -> Self:
        self._list()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        if self._watch is not None:
            self._watch.close()
        self._thread.join(10)

    def _list(self) -> None:
        pods, version = self._client.list_all("/api/v1/pods")
        with self.changed:
            there = {pod["metadata"]["uid"] for pod in pods}
            for uid in [uid for uid in self._job if uid not in there]:
                self._gone(uid)
            for pod in pods:
                self._see(pod)
        self._watch = self._client.watch("/api/v1/pods", version)

    def _follow(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._watch is None:
                    self._list()
                assert self._watch is not None
                for line in self._watch:
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        break
                    if event["type"] == "BOOKMARK":
                        continue
                    with self.changed:
                        if event["type"] == "DELETED":
                            self._gone(event["object"]["metadata"]["uid"])
                        else:
                            self._see(event["object"])
                        self.changed.notify_all()
            except AWAY:
                self._stopping.wait(0.1)
            self._watch = None

    def _see(self, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        uid, job = meta["uid"], meta.get("labels", {}).get(checker.JOB_NAME, "")
        self._job[uid] = job
        self._made[job].add(uid)
        if len(self._made[job]) >= self.least.get(job, 1):
            self.made_at.setdefault(job, time.monotonic())
        phase = pod["status"].get("phase")
        self._note_chips(pod)
        if phase == "Succeeded":
            self._done[job].add(uid)
        if pod["spec"].get("nodeName"):
            self._ever.add(uid)
            (self._bound[job].discard if phase == "Failed" else self._bound[job].add)(
                uid
            )
        self._judge(job)

    def _note_chips(self, pod: dict[str, Any]) -> None:
        """What the pod says of its job, and whether its queue holds its chips."""
        meta, spec = pod["metadata"], pod["spec"]
        notes, labels = meta.get("annotations", {}), meta.get("labels", {})
        space, name = meta["namespace"], f"{meta['namespace']}/{meta['name']}"
        job = (
            f"{space}/{notes[checker.GROUP]}"
            if checker.GROUP in notes
            else f"pod {name}"
        )
        key = workload.PREEMPTABLE
        member = Member(
            priority=spec.get("priority", 0),
            queue=labels.get(QUEUE) or notes.get(QUEUE) or "default",
            chips=checker.chips_asked(spec),
            guarded="false" in (labels.get(key), notes.get(key)),
        )
        self.jobs[job], self.job_of[name] = member, job
        is_held = (
            spec.get("nodeName") and pod["status"].get("phase") not in checker.OVER
        )
        ends = meta.get("deletionTimestamp") is not None
        self._hold(meta["uid"], member, holds=bool(is_held and not ends))

    def _hold(self, uid: str, member: Member | None, *, holds: bool) -> None:
        if holds == (uid in self._holds):
            return
        if holds and member is not None:
            self._holds[uid] = member.queue, member.chips
        queue, chips = self._holds[uid] if holds else self._holds.pop(uid)
        self._held[queue] += chips if holds else -chips
        self.usage.note(queue, time.time(), self._held[queue])

    def _gone(self, uid: str) -> None:
        self._hold(uid, None, holds=False)
        job = self._job.pop(uid, "")
        self._bound[job].discard(uid)
        self._done[job].discard(uid)
        self._made[job].discard(uid)
        self._judge(job)

    def _judge(self, job: str) -> None:
        n_bound = len(self._bound[job])
        whole = n_bound >= self.least.get(job, 1)
        if whole:
            self._whole.add(job)
            self.whole_at.setdefault(job, time.monotonic())
        since = self._halves.get(job)
        if since is None or (n_bound and not whole):
            return
        del self._halves[job]
        self.completed += whole
        self.released += not whole
        self.repair_s = max(self.repair_s, time.monotonic() - since)
