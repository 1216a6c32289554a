"""Writes job summaries for the fabric controller. Start at ``run``.

Reflectors tell the job index what there is; jobs that changed are looked at a moment
later, and their ConfigMaps written where they differ from what is there. Nothing
happens while nothing changes, but that the summary of a job that is gone is removed a
minute later.

A writer that was just started writes nothing that is there already, and finishes what
the one before it has left.
"""

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final

from msgspec import Struct

from ringleaf.kube import encode, leaf_status_map, topology
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.backoff import backoff_s
from ringleaf.kube.config_map_store import (
    ConfigMapStore,
    NotWritten,
    SummaryMap,
    Taken,
    whole,
)
from ringleaf.kube.job_index import JobIndex, SummaryJob
from ringleaf.kube.job_objects import JobGroup, JobNode, JobPod
from ringleaf.kube.leader import Elector, Runner, at_once
from ringleaf.kube.metrics import SLOW, Histogram
from ringleaf.kube.objects import ConfigMap
from ringleaf.kube.quarantine import told, trace_of
from ringleaf.kube.rank_table import (
    DELETE,
    LABEL,
    MOST_BYTES,
    MOST_NAME,
    JobSummary,
    Status,
    digest,
    map_name,
)
from ringleaf.kube.service import KubeService, Say
from ringleaf.kube.status_writer import VOLCANO
from ringleaf.kube.watch import Gone, Reflector
from ringleaf.model.topology import quoted

LEASE: Final = "ringleaf-summary"
KEEP_S: Final = 60.0
"""How long the summary of a job that is gone is kept."""
GATHER_S: Final = 0.05
"""How long to wait for more of what happens at the same time."""
PAUSES, MOST_PAUSE_S = 3.0, 0.5
"""How long a summary stays as it is, as a multiple of what writing took; at most."""
FIRST_AGAIN_S, MOST_AGAIN_S = 0.1, 30.0
"""The first and the longest pause after a failure."""
LED_S: Final = 0.25
"""How often to check whether the scheduler of this process still leads."""
PATIENCE_S: Final = 5.0
"""How long a run with *once* waits for an API server that is in trouble."""
_NEVER: Final = re.compile(r": status 40[0-6]\b")
"""Trouble that does not pass."""
QUIET: Final = 3
"""Failures in a row that pass by themselves before they are told."""
WRITERS: Final = 4
"""Jobs that are written at a time, and slices of one."""
NAME: Final = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)
"""What a ConfigMap may be called; owners of PodGroups may have any names."""
MOST_TOLD: Final = 3
"""Pods of a job whose problems are told one by one."""
PAGE: Final = 50
"""Summaries in a page of a list: each may have most of a megabyte."""
STUCK_S, FINISH_S = 60.0, 5.0
LEAVES_KEY: Final = f"{leaf_status_map.NAMESPACE}/{leaf_status_map.NAME}"
LEAVES: Final = "leaves"
"""What is written besides jobs; keys of jobs have a slash."""


class Standing(Struct):
    """How far we are with a job."""

    status: Status = Status.PENDING
    since: int = 0
    """When the job was first seen, in seconds since 1970."""
    is_known: bool = False
    """Whether a summary of it was written, or found."""
    remove_at: float | None = None
    not_before: float = 0.0
    failures: int = 0
    failing: str = ""
    """Why it could not be written the last time."""
    told: frozenset[str] = frozenset()
    table: str = ""
    n_servers: int = 0
    n_slices: int = 0
    outcome: str = ""


class Line(Struct, frozen=True):
    """How the summary of a job is, for people."""

    job: str
    status: str
    table: str
    servers: int
    slices: int
    outcome: str


class SummaryWriter(KubeService):
    """Writes summaries while it leads.

    Args:
        api: The API server.
        say: Writes a line of the log.
        elector: Says when it leads.
        aside: Runs the elector's work.
        led: Set while the scheduler of this process leads; without it and an elector we
            lead from the beginning.
        keep_s: How long the summary of a job that is gone is kept.
        most: Bytes of a rank table from which on it is cut.
        name: The reporter of events.
        clock: Seconds since 1970 that never go backwards.

    """

    part_ended = "a part of the writer ended"

    def __init__(
        self,
        api: Api,
        say: Say,
        elector: Elector | None = None,
        *,
        aside: Runner = at_once,
        led: asyncio.Event | None = None,
        keep_s: float = KEEP_S,
        most: int = MOST_BYTES,
        name: str = LEASE,
        clock: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(say, clock)
        self._api, self._elector = api, elector
        self._aside, self._led, self._keep_s, self._most = aside, led, keep_s, most
        self._name = name
        self.job_index = JobIndex(self.now)
        self.map_store = ConfigMapStore(api, self._recall, self._spoiled, self._left)
        self.leads = False
        self.rival = ""
        """Another leader, where that was not to be waited for."""
        self.in_vain = ""
        """What does not work, where that was not to be waited for."""
        self.seconds = Histogram(SLOW)
        """From a change of a job until its summary says so."""
        self._standings: defaultdict[str, Standing] = defaultdict(Standing)
        self._writing: set[str] = set()
        self._number = 0
        self._last_turn = self.now()
        self._told_topology = ""
        self._reflectors = list(self._watched())

    # What people see.

    def lines(self) -> list[Line]:
        """All jobs that have a summary, or should, by name."""
        found = []
        for key, at in self._standings.items():
            job = self.job_index.jobs.get(key)
            if job is not None and at.outcome:
                what = at.status.value, at.table, at.n_servers, at.n_slices, at.outcome
                found.append(Line(job.full_name, *what))
        return sorted(found, key=lambda line: line.job)

    @property
    def failing_leaves(self) -> str:
        """Why the states of leaves could not be written the last time, if so."""
        return self._standings[LEAVES].failing

    def live(self) -> tuple[bool, dict[str, str]]:
        """Whether it does its work."""
        silent = self.now() - self._last_turn
        stuck = self.leads and self._wake.is_set() and silent > STUCK_S
        return not stuck, {"turn": f"{silent:.0f} s ago"}

    def ready(self) -> tuple[bool, dict[str, str]]:
        """Whether it may be relied on."""
        role, elector = "leader" if self.leads else "standby", self._elector
        if elector is None:
            return self._is_ready(role)
        return self._is_ready(role, elector.reflector, lease_trouble=elector.trouble)

    # Its life.

    async def run(self, *, once: bool = False) -> None:
        """Write summaries until asked to stop; *once*, until all are as they should.

        A run with *once* does not wait for another writer, it is the ``rival``; nor for
        an API server that refuses lists or the Lease. It waits a while for one that
        fails. Such trouble is ``in_vain``.
        """
        try:
            if once:
                self._start(self._look_for_trouble(), "trouble")
            await self._look_around()
            if once and self._elector is not None:
                self._start(self._look_for_rival(self._elector), "rival")
            self._want_lead()
            while not self._stop.is_set() and not (once and self.is_done):
                if self.leads:
                    await self._turn()
                else:
                    await self._until(lambda: self.leads)
            await self._finish()
        finally:
            await self._end_parts([*self._tasks])

    async def _look_around(self) -> None:
        """Begin to watch everything, and return when it is known."""
        for number, reflector in enumerate(self._reflectors):
            self._start(reflector.run(), f"{reflector.path} {number}")
        elector = self._elector
        if elector is not None:
            self._api.fence = elector.remaining
            work = self._aside(elector.reflector.run())
            self._start(work, elector.reflector.path)
        await self._until(lambda: self.is_synced)
        if not self._stop.is_set():
            jobs, maps = len(self.job_index.jobs), len(self.map_store.maps)
            self._say("synced", jobs=jobs, summaries=maps)

    def _want_lead(self) -> None:
        """Lead as soon as no other writer does."""
        if self._elector is not None and not self._stop.is_set():
            self._start(self._stand(self._elector), "leader")
        elif self._led is not None:
            self._start(self._hear(self._led), "led")
        else:
            self._begin()

    async def _hear(self, led: asyncio.Event) -> None:
        """Write while the scheduler of this process leads."""
        while True:
            await led.wait()
            self._begin()
            while led.is_set():  # noqa: ASYNC110 - an event tells of one way only
                await asyncio.sleep(LED_S)
            await self._stand_by()

    async def _stand(self, elector: Elector) -> None:
        """Write while we lead, and stand by while others do."""
        while True:
            await self._aside(elector.acquire())
            self._say("leads", identity=elector.identity)
            self._begin()
            why = await self._aside(elector.keep())
            self._api.cut()
            self._say("deposed", identity=elector.identity, why=why)
            await self._stand_by()
            await self._aside(elector.step_down())
            self._api.sign(elector.identity)

    async def _stand_by(self) -> None:
        """Write nothing more, and know what a writer knows that has never led."""
        self.leads = False
        writing = [self._tasks[_work_on(each)] for each in self._writing]
        for task in writing:
            task.cancel()
        await asyncio.gather(*writing, return_exceptions=True)
        self._writing.clear()
        self._standings.clear()
        self.map_store.stand_by()
        self._wake.set()

    async def _look_for_rival(self, elector: Elector) -> None:
        self.rival = await self._aside(elector.rival())
        if self.rival:
            self.stop()

    async def _look_for_trouble(self) -> None:
        """Give up before we lead, if something does not work and does not pass."""
        elector = self._elector
        watched = [*self._reflectors, *([elector.reflector] if elector else [])]
        began = None
        while not self.leads:
            failing = [each.failing for each in watched if not each.synced]
            failing += [elector.trouble] if elector else []
            found = [*filter(None, failing)]
            never = [each for each in found if _NEVER.search(each)]
            began = (began or self.now()) if found else None
            if never or (began is not None and self.now() > began + PATIENCE_S):
                self.in_vain = (never or found)[0]
                self.stop()
                return
            await asyncio.sleep(FIRST_AGAIN_S)

    async def _finish(self) -> None:
        """Let writes in flight finish, and release the Lease."""
        writing = [self._tasks[_work_on(each)] for each in self._writing]
        if writing:
            await asyncio.wait(writing, timeout=FINISH_S)
        if self._elector is not None and "leader" in self._tasks:
            self._tasks["leader"].cancel()
            await self._aside(self._elector.release())

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not (condition() or self._stop.is_set()):
            await self._wake.wait()
            self._wake.clear()
            if not self.leads:
                self.job_index.rest()
        self._wake.set()

    def _watched(self) -> Iterator[Reflector[Any]]:
        """A reflector for each kind that is looked at."""
        of, map_store = self.job_index, self.map_store
        yield self._reflect("/api/v1/nodes", JobNode, of.put_nodes, of.drop_nodes)
        yield self._reflect("/api/v1/pods", JobPod, of.put_pods, of.drop_pods)
        yield self._reflect(
            f"{VOLCANO}/podgroups",
            JobGroup,
            of.put_groups,
            of.drop_groups,
            optional=True,
        )
        yield self._reflect(
            f"/api/v1/namespaces/{topology.NAMESPACE}/configmaps",
            ConfigMap,
            of.put_maps,
            of.drop_maps,
            query=f"fieldSelector=metadata.name%3D{topology.NAME}",
            name=f"configmaps/{topology.NAME}",
        )
        yield self._reflect(
            "/api/v1/configmaps",
            SummaryMap,
            map_store.put_maps,
            map_store.drop_maps,
            query=f"labelSelector={LABEL}%3Dtrue",
            name=f"configmaps/{LABEL}",
            page=PAGE,
        )
        yield self._reflect(
            f"/api/v1/namespaces/{leaf_status_map.NAMESPACE}/configmaps",
            SummaryMap,
            map_store.put_maps,
            map_store.drop_maps,
            query=f"fieldSelector=metadata.name%3D{leaf_status_map.NAME}",
            name=f"configmaps/{leaf_status_map.NAME}",
        )

    def _reflect(
        self,
        path: str,
        kind: Any,  # noqa: ANN401 - a type that is a value is beyond mypy
        put: Callable[[list[Any]], None],
        drop: Callable[[list[Gone]], None],
        **more: Any,  # noqa: ANN401
    ) -> Reflector[Any]:
        def heard(heed: Callable[[list[Any]], None], objects: list[Any]) -> None:
            for each in objects:
                try:
                    heed([each])
                except Exception as error:  # noqa: BLE001 - one stops no other
                    self._failed(f"{path} {quoted(_named(each))}", error)
            self._wake.set()

        return Reflector(
            self._api,
            path,
            kind,
            put=partial(heard, put),
            drop=partial(heard, drop),
            listed=self._wake.set,
            trouble=lambda line: self._say("trouble", message=line),
            **more,
        )

    # What the store of ConfigMaps tells.

    def _recall(self, found: SummaryMap) -> None:
        """A summary is there that may be the work of the writer before us."""
        key = found.job_key
        standing, job = self._standings.get(key), self.job_index.jobs.get(key)
        own = job is not None and job.full_name == found.job_full_name
        if standing is not None and own and not standing.is_known and found.index == 0:
            recall(standing, found)

    def _spoiled(self, known: SummaryMap) -> None:
        job = self.job_index.jobs.get(known.job_key)
        if known.key == LEAVES_KEY:
            self.job_index.touch_leaves()
        elif job is not None:
            self.job_index.touch(job)

    def _left(self, key: str, line: str) -> None:
        self._say("problem", kind="ConfigMap", object=key, message=line)

    # What is to be done.

    def _begin(self) -> None:
        """Lead, and take up what the writer before us has left."""
        self.leads = True
        for found in [*self.map_store.maps.values()]:
            said = found.said
            if found.index != 0 or not said.job_id:
                continue
            if not found.mark and found.job_key not in self.job_index.jobs:
                continue  # of another writer, and its job is gone
            namespace = found.metadata.namespace
            job = self.job_index.remember(said.job_id, namespace, said.job_name)
            if job.full_name == found.job_full_name:
                recall(self._standings[job.key], found)
        self.job_index.touch_all()
        self._wake.set()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do but what does not work."""
        job_index = self.job_index
        news = [*job_index.changed]
        if job_index.leaves_changed_at is not None:
            news.append(LEAVES)
        left = [each for each in news if self._standings[each].failures <= QUIET]
        return self.leads and not (left or self._writing)

    async def _turn(self) -> None:
        """Begin to write what has changed, and sleep until there is more."""
        self._wake.clear()
        now = self._last_turn = self.now()
        times = [*self._remove_due(now), *self._write_due(now)]
        busy = len(self._writing) >= WRITERS
        wait = None if busy or not times else max(0.001, min(times) - self.now())
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._wake.wait()

    def _write_due(self, now: float) -> Iterator[float]:
        """Begin with what has changed long enough ago; when the others have."""
        job_index = self.job_index
        news: dict[str, float] = dict(job_index.changed)
        if job_index.leaves_changed_at is not None:
            news[LEAVES] = job_index.leaves_changed_at
        for what, since in news.items():
            at = max(since + GATHER_S, self._standings[what].not_before)
            if what in self._writing:
                continue  # its write wakes us
            if at > now or len(self._writing) >= WRITERS:
                yield at
                continue
            if what == LEAVES:
                job_index.leaves_changed_at = None
            else:
                del job_index.changed[what]
            self._writing.add(what)
            self._start(self._tend(what, since), _work_on(what))

    def _remove_due(self, now: float) -> Iterator[float]:
        """Have jobs looked at whose summaries are to be removed; when others are."""
        for key, standing in self._standings.items():
            at, job = standing.remove_at, self.job_index.jobs.get(key)
            if at is None or job is None or key in self._writing:
                continue
            if at <= now:
                self.job_index.touch(job)
            else:
                yield at

    async def _tend(self, what: str, since: float) -> None:
        """Bring the summary of a job up to date, or the states of leaves."""
        began, standing = self.now(), self._standings[what]
        n_before = self.map_store.done["written"]
        try:
            if what == LEAVES:
                await self._write_leaves()
            elif (job := self.job_index.jobs.get(what)) is not None:
                await (self._write(job) if job.is_there else self._end(job))
                if self.map_store.done["written"] > n_before:
                    self.seconds.observe(self.now() - since)
            took = self.now() - began
            standing.failures, standing.failing = 0, ""
            standing.not_before = self.now() + min(MOST_PAUSE_S, PAUSES * took)
        except (NotWritten, Taken, Unreachable) as error:
            self._not_written(what, standing, error)
            self._again(what, since)
        except Exception as error:  # noqa: BLE001 - one job stops no other
            if told(error) != standing.failing:
                self._failed(what, error)
            self._not_written(what, standing, NotWritten(told(error)))
            self._again(what, since)
        finally:
            self._writing.discard(what)
            self._wake.set()
        if what != LEAVES and what not in self.job_index.jobs:
            self._standings.pop(what, None)

    def _again(self, what: str, since: float) -> None:
        if what == LEAVES:
            self.job_index.leaves_changed_at = since
        elif what in self.job_index.jobs:
            self.job_index.changed[what] = since

    def _failed(self, what: str, error: Exception) -> None:
        """Something failed inside, and what it was about; everything else goes on."""
        self._say("failed", culprit=what, why=told(error), trace=trace_of(error))

    def _not_written(self, what: str, standing: Standing, error: Exception) -> None:
        """Something does not work: say so once in a row, and try again later."""
        pause = backoff_s(FIRST_AGAIN_S, standing.failures, MOST_AGAIN_S)
        standing.failures += 1
        if isinstance(error, Taken):  # that does not pass by itself
            standing.failures, pause = QUIET + 1, MOST_AGAIN_S
        standing.not_before = self.now() + pause
        soon = isinstance(error, NotWritten) and error.soon
        if soon and standing.failures < QUIET:
            return
        self.map_store.done["failed"] += 1
        standing.outcome = "not written"
        line, job = str(error), self.job_index.jobs.get(what)
        if line == standing.failing:
            return
        standing.failing = line
        name = LEAVES_KEY if job is None else job.full_name
        if isinstance(error, Taken) and job is not None:
            self._say("problem", kind="ConfigMap", job=name, message=line)
            self._tell(job, line)
        else:
            self._say("not written", job=name, why=line)

    # A job that is there.

    async def _write(self, job: SummaryJob) -> None:
        standing = self._standings[job.key]
        standing.since = standing.since or int(self.now())
        standing.remove_at = None
        first = self.job_index.job_named(job.namespace, job.name)
        if first is not None and first is not job:
            self._is_second(job, first, standing)
            return
        summary = job.summary(standing.status, self.job_index.serials, self._most)
        wrong = _unwritable(job, len(summary.slices), self.job_index)
        self._problems(job, standing, [*_few(summary), *_doubles(job), *wrong])
        standing.table, standing.n_servers = summary.table.value, summary.n_servers
        standing.n_slices = len(summary.slices)
        keys = [_key(job, index) for index in range(len(summary.slices))]
        if wrong or any(key in self.map_store.strange for key in keys):
            standing.outcome = "left alone"
            return
        news = await self._publish(summary, keys, standing.since)
        await self._remove(job, from_index=len(keys))
        if news and (standing.status, True) != (summary.status, standing.is_known):
            self._say(
                "summary",
                job=job.full_name,
                status=summary.status.value,
                table=summary.table.value,
                servers=summary.n_servers,
                slices=len(keys),
            )
        standing.status, standing.is_known = summary.status, True
        standing.outcome = "written" if news else standing.outcome or "as it was"

    async def _publish(self, summary: JobSummary, keys: list[str], since: int) -> bool:
        """Write the slices where they differ, the first one last; whether they did.

        A watch sees the first one when all others are there.
        """
        version, maps = summary.version, self.map_store.maps
        if all(key in maps and maps[key].mark == version for key in keys):
            for key in keys:
                self.map_store.claim(key)
            return False
        data = summary.data(since, int(self.now()))
        turns = asyncio.Semaphore(WRITERS)

        async def write(index: int) -> None:
            async with turns:
                await self.map_store.put(
                    keys[index], summary.labels, version, data[index]
                )

        rest = [asyncio.create_task(write(i)) for i in range(1, len(keys))]
        try:
            for task in rest:
                await task
        finally:
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
        await write(0)
        return True

    def _is_second(
        self, job: SummaryJob, first: SummaryJob, standing: Standing
    ) -> None:
        """A job has the name of another, which has the summary."""
        standing.outcome = "left alone"
        if job.group is not None and not job.group.is_leaving:
            named, other = f"job {quoted(job.name)}", quoted(first.id)
            told = f"{named} has the name of another job, {other}"
            hint = f"no summary of {quoted(job.id)} is written; hint: rename one"
            self._problems(job, standing, [f"{told}: {hint}"])

    # A job that is gone.

    async def _end(self, job: SummaryJob) -> None:
        """Say that a job is gone; a minute later, remove what was said of it."""
        standing = self._standings[job.key]
        first = self.job_index.job_named(job.namespace, job.name)
        keys = [*self._keys(job)]
        if first is not job or not keys:
            self._forget(job)
            return
        base = self.map_store.maps[keys[-1]]
        if base.said.operator != DELETE:
            now = int(self.now())
            if standing.status is not Status.COMPLETE:
                standing.status = Status.FAILED
            changes = {
                "operator": DELETE,
                "job_status": standing.status.value,
                "deleteTime": str(now),
            }
            for key in keys:
                mark = f"{digest(base.mark)}-{DELETE}"
                await self.map_store.put(key, {}, mark, changes)
            standing.remove_at = now + self._keep_s
            standing.outcome = "written"
            self._say("gone", job=job.full_name, status=standing.status.value)
            return
        if standing.remove_at is None:
            standing.remove_at = whole(base.said.delete_time) + self._keep_s
        if standing.remove_at <= self.now():
            await self._remove(job, from_index=0)
            self._forget(job)

    def _forget(self, job: SummaryJob) -> None:
        """Nothing is left of a job: the next one of its name begins anew."""
        self.job_index.forget(job)
        for index in range(max(1, self._standings[job.key].n_slices)):
            self.map_store.forgive(_key(job, index))

    def _keys(self, job: SummaryJob) -> Iterator[str]:
        """The ConfigMaps of a job that are there and ours, the first one last."""
        for index in self.map_store.slices(job.full_name):
            key = _key(job, index)
            known = self.map_store.maps[key]
            strange = key in self.map_store.strange or not known.mark
            if known.said.job_id == job.id and not strange:
                yield key

    async def _remove(self, job: SummaryJob, *, from_index: int) -> None:
        """Remove slices that are not needed any more, the last one first."""
        for index in self.map_store.slices(job.full_name):
            key = _key(job, index)
            if index < from_index or key in self.map_store.strange:
                continue
            if self.map_store.maps[key].mark:
                await self.map_store.remove(key)

    # The states of leaves.

    async def _write_leaves(self) -> None:
        bad = self.job_index.bad_topology
        if bad and bad != self._told_topology:
            where = f"{topology.NAMESPACE}/{topology.NAME}"
            self._say("problem", kind="ConfigMap", object=where, message=bad)
        self._told_topology = bad
        known = self.map_store.maps.get(LEAVES_KEY)
        mends = known is not None and bool(known.mark)
        text = self.job_index.idle_leaves() if mends else self.job_index.leaves()
        if text is None or LEAVES_KEY in self.map_store.strange:
            return
        mark = digest(text)
        if known is None or known.mark != mark:
            await self.map_store.put(LEAVES_KEY, {}, mark, {leaf_status_map.KEY: text})
        else:
            self.map_store.claim(LEAVES_KEY)

    # What people are told.

    def _problems(self, job: SummaryJob, standing: Standing, lines: list[str]) -> None:
        """Tell what is wrong with a job, each line once while it is so."""
        group = job.group
        for line in lines:
            if line not in standing.told:
                where = job.full_name if group is None else group.key
                facts = {"object": where, "job": job.full_name, "message": line}
                self._say("problem", kind="PodGroup", **facts)
                self._tell(job, line)
        standing.told = frozenset(lines)

    def _tell(self, job: SummaryJob, line: str) -> None:
        """An event on the PodGroup of a job."""
        group = job.group
        if group is None:
            return
        namespace, _slash, name = group.key.partition("/")
        about = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "namespace": namespace,
            "name": name,
            "uid": group.uid,
        }
        self._number += 1
        body = encode.event(
            about,
            "JobSummary",
            line,
            self.now(),
            number=time.time_ns() + self._number,
            is_warning=True,
            reporter=self._name,
        )
        self._start(self._send_event(namespace, body), f"event {self._number}")

    async def _send_event(self, namespace: str, body: bytes) -> None:
        path = f"/api/v1/namespaces/{namespace}/events"
        with suppress(Unreachable):
            await self._api.call("POST", path, body, lane="tell", fenced=False)


def recall(standing: Standing, found: SummaryMap) -> None:
    """Take over what a summary says of a job."""
    said = found.said
    with suppress(ValueError):
        standing.status = Status(said.job_status)
    standing.since = whole(said.time, standing.since)
    standing.is_known = True


def _named(found: Any) -> str:  # noqa: ANN401 - an object, or one that is gone
    return str(found.key if isinstance(found, Gone) else found.metadata.key)


def _work_on(what: str) -> str:
    """What the task is called that writes a summary; ids of jobs may be anything."""
    return f"writes {what}"


def _key(job: SummaryJob, index: int) -> str:
    return f"{job.namespace}/{map_name(job.name, index)}"


def _few(summary: JobSummary) -> list[str]:
    """Problems of pods, not of all of them."""
    found = [*summary.problems]
    if len(found) <= MOST_TOLD:
        return found
    more = f"job {quoted(summary.name)}: more pods like these"
    return [*found[:MOST_TOLD], more]


def _doubles(job: SummaryJob) -> list[str]:
    """What is to be said of a job with several PodGroups."""
    if len(job.groups) <= 1:
        return []
    counts, *others = sorted(job.groups.values(), key=lambda g: (g.created, g.uid))
    named = ", ".join(quoted(group.key) for group in others[:MOST_TOLD])
    line = f"job {quoted(job.name)} has {len(job.groups)} PodGroups, want one: "
    return [
        f"{line}minMember and labels are those of {quoted(counts.key)}, not {named}"
    ]


def _unwritable(job: SummaryJob, n_slices: int, job_index: JobIndex) -> list[str]:
    """Why the ConfigMaps of a job cannot have their names."""
    named, longest = f"job {quoted(job.name)}", map_name(job.name, n_slices - 1)
    if len(longest) > MOST_NAME:
        told = f"ConfigMap {quoted(longest)} would have {len(longest)} characters"
        return [f"{named}: {told}, want {MOST_NAME} at most; hint: a shorter name"]
    if not NAME.fullmatch(longest):
        told = f"no ConfigMap can be called {quoted(longest)}"
        return [f"{named}: {told}, want small letters, digits, '-' and '.'"]
    for index in range(1, n_slices):
        other = job_index.job_named(job.namespace, f"{job.name}-{index}")
        if other is not None:
            told = f"slice {index} of its summary would be called as that of job"
            return [f"{named}: {told} {quoted(other.name)}; hint: rename one of them"]
    return []
