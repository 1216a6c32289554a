"""Running times on Kubernetes: where jobs come from, and the ConfigMap that is kept."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from ringleaf.actions.end_pods import evict
from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.event import JobGone, RunTimesKnown
from ringleaf.framework.run_times import FEWEST_RUNS, RunSeries, RunTimes, chips_in_all
from ringleaf.kube import names, note_store
from ringleaf.kube.answers import Answer
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.note_store import BadNote, NoteStore
from ringleaf.kube.run_time_note import (
    KEY,
    MOST_BYTES,
    NAME,
    STEPS,
    RunTimeNote,
    series_in,
    text_of,
)
from ringleaf.kube.scheduler import Options, Scheduler
from ringleaf.model.job import Job
from ringleaf.model.run_time import TOP, Origin, Similarity
from ringleaf.policies.products import PRODUCTS
from tests.kube.stage import LEARNING, NPU, Stage

JOB = Job("j", PRODUCTS["atlas-800t-a2"], 8, origin=Origin("team", "train"))
OWN = "ringleaf-system"
PATH = f"/api/v1/namespaces/{OWN}/configmaps"
SERIES = (
    RunSeries(Similarity.NAME, "q", "team", "train", 8, (12, 0, TOP)),
    RunSeries(Similarity.CHIPS, "q", chips=8, steps=(1,)),
)


class Maps:
    """An API server with one ConfigMap at most, and a store in front of it.

    The engine hears of what was read once it ``hears``, or at once.
    """

    def __init__(self, data: dict[str, str] | None = None) -> None:
        self.data = data
        self.calls: list[str] = []
        self.refuses: int | None = None
        self.silent = False
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.read: list[tuple[RunSeries, ...]] = []
        self.run_times = RunTimes()
        self.at_once = True
        self._unheard: list[tuple[RunSeries, ...]] = []
        say = lambda what, **facts: self.lines.append((what, facts))  # noqa: E731
        note = RunTimeNote(
            lambda: None if self._unheard else self.run_times, self._known
        )
        self.store = NoteStore(cast("Api", self), OWN, note, say)

    def _known(self, event: RunTimesKnown) -> None:
        self.read.append(event.series)
        self._unheard.append(event.series)
        if self.at_once:
            self.hears()

    def hears(self) -> None:
        """The engine hears of what was read."""
        for series in self._unheard:
            self.run_times.restore(series)
        self._unheard.clear()

    async def call(
        self, method: str, path: str, body: bytes = b"", **_more: object
    ) -> Answer:
        await asyncio.sleep(0)
        self.calls.append(f"{method} {path.partition('?')[0].removeprefix(PATH)}")
        if self.silent:
            raise Unreachable("no")
        if self.refuses is not None:
            return Answer(self.refuses, b'{"message": "no"}')
        if method == "GET":
            assert path == f"{PATH}?fieldSelector=metadata.name%3D{NAME}"
            meta = {"name": NAME, "namespace": OWN}
            items = [] if self.data is None else [{"metadata": meta, "data": self.data}]
            return Answer(200, msgspec.json.encode({"items": items}))
        if method == "PATCH" and self.data is None:
            return Answer(404, b"{}")
        self.data = msgspec.json.decode(body)["data"]
        return Answer(200, b"{}")

    def leads(self, writes: int = 1) -> None:
        """Read, and write so many times."""

        async def story() -> None:
            await self.store.read()
            task = asyncio.create_task(self.store.run())
            await asyncio.sleep(0)
            for _time in range(writes):
                await self.store.flush()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(story())


# The text.


def test_what_is_written_is_read() -> None:
    assert series_in(text_of(SERIES)) == SERIES
    assert len({*STEPS}) == 64 > TOP


BAD = [
    pytest.param("{", id="no JSON"),
    pytest.param('{"a": 1}', id="no list"),
    pytest.param('[["luck","q","","",8,"1"]]', id="another similarity"),
    pytest.param('[["chips","q","","",8,"~"]]', id="no step"),
    pytest.param('[["chips","q","","",8]]', id="too short"),
    pytest.param("[" * 100_000, id="too deep"),
]


@pytest.mark.parametrize("text", BAD)
def test_bad_content_is_ignored_with_one_line(text: str) -> None:
    with pytest.raises(BadNote):
        series_in(text)
    maps = Maps({KEY: text})

    maps.leads()
    asyncio.run(maps.store.read())

    assert not maps.read
    assert [what for what, _facts in maps.lines] == ["run times ignored"]


def test_the_text_has_room_in_a_config_map_and_the_oldest_are_left_out() -> None:
    many = [
        RunSeries(Similarity.USER, "q", f"{n}" * 50, steps=(1,)) for n in range(9000)
    ]

    text = text_of(many)

    assert len(text) <= MOST_BYTES
    assert series_in(text)[-1] == many[-1]


def test_all_that_is_kept_has_room() -> None:
    known = RunTimes()
    for n in range(5000):
        job = msgspec.structs.replace(JOB, origin=Origin(f"team-{n}", "é" * 50))
        for _run in range(3):
            known.ended(job, n)

    assert len(series_in(text_of(known.series))) == len(known)


# Reading and writing.


def test_a_leader_writes_what_is_new_and_nothing_while_nothing_is() -> None:
    maps = Maps()
    maps.leads()
    assert maps.calls == ["GET "]
    assert not maps.read

    maps.run_times.ended(JOB, 60.0)
    maps.leads()
    maps.leads()

    assert [call for call in maps.calls if not call.startswith("GET")] == [
        f"PATCH /{NAME}",
        "POST ",
    ]
    assert maps.data is not None
    assert series_in(maps.data[KEY]) == maps.run_times.series


def test_the_next_leader_reads_what_was_written() -> None:
    maps = Maps({KEY: text_of(SERIES)})

    maps.leads()

    assert maps.read == [SERIES]


def test_a_leader_that_ends_writes_at_once_and_others_never_do() -> None:
    maps = Maps({KEY: text_of(SERIES)})
    maps.run_times.ended(JOB, 60.0)

    asyncio.run(maps.store.read())
    asyncio.run(maps.store.flush())
    assert maps.calls == ["GET "]

    maps.leads()

    assert maps.calls[-1] == f"PATCH /{NAME}"
    maps.run_times.ended(JOB, 60.0)
    asyncio.run(maps.store.flush())
    assert maps.calls.count(f"PATCH /{NAME}") == 1, "it leads no longer"


def test_what_could_not_be_read_is_not_written_over() -> None:
    maps = Maps({KEY: text_of(SERIES)})
    maps.run_times.ended(JOB, 60.0)
    maps.refuses = 403

    maps.leads(2)

    assert {*maps.calls} == {"GET "}
    assert maps.lines == [
        (
            "run times not read",
            {"object": f"{OWN}/{NAME}", "why": maps.lines[0][1]["why"]},
        )
    ]
    maps.refuses = None
    maps.leads(2)
    assert maps.read[0] == SERIES
    assert maps.data is not None
    kept = series_in(maps.data[KEY])
    assert kept == maps.run_times.series
    assert {*SERIES} < {*kept}, "with what was counted in the meantime"


def test_what_is_read_late_is_written_once_the_engine_has_heard_it() -> None:
    maps = Maps({KEY: text_of(SERIES)})
    maps.at_once = False
    maps.run_times.ended(JOB, 60.0)

    maps.leads(3)
    assert not [call for call in maps.calls if not call.startswith("GET")]
    maps.hears()
    asyncio.run(written(maps))

    assert maps.data is not None
    assert {*SERIES} < {*series_in(maps.data[KEY])}


def test_what_could_not_be_read_is_read_later_also_while_nothing_ends() -> None:
    maps = Maps({KEY: text_of(SERIES)})
    maps.silent = True
    asyncio.run(maps.store.read())
    maps.silent = False

    asyncio.run(written(maps))

    assert maps.run_times.series == SERIES


def test_a_read_that_fails_before_it_leads_counts_and_not_an_earlier_one() -> None:
    maps = Maps({KEY: text_of(SERIES[:1])})
    asyncio.run(maps.store.read())
    maps.data = {KEY: text_of(SERIES)}
    maps.refuses = 500
    asyncio.run(maps.store.read())
    maps.refuses = None
    maps.run_times.ended(JOB, 60.0)

    asyncio.run(written(maps))

    assert maps.data == {KEY: text_of(SERIES)}


def test_what_a_new_engine_counts_is_written_though_it_counted_as_many() -> None:
    maps = Maps()
    maps.run_times.ended(JOB, 60.0)
    maps.leads()
    series = maps.run_times.series
    maps.run_times = RunTimes()
    maps.run_times.restore(series)

    maps.run_times.ended(JOB, 60.0)
    asyncio.run(written(maps))

    assert maps.data is not None
    assert series_in(maps.data[KEY])[0].steps == (12, 12)


async def written(maps: Maps) -> None:
    """It leads on, and has written once."""
    task = asyncio.create_task(maps.store.run())
    await asyncio.sleep(0)
    await maps.store.flush()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_scheduler_wakes_when_running_times_were_read() -> None:
    scheduler = Scheduler(cast(Api, None), Options(conf=LEARNING), lambda _what: None)
    note = next(each for each in scheduler.notes() if each.key == KEY)
    scheduler._wake.clear()  # noqa: SLF001

    note.read(text_of(SERIES))

    assert scheduler._wake.is_set()  # noqa: SLF001
    assert note.text() is None
    scheduler.decider.engine.handle_all(scheduler.decider.news(1.0), 1.0)
    assert scheduler.decider.run_times is scheduler.decider.engine.run_times
    assert scheduler.decider.engine.run_times.series == SERIES
    scheduler.decider.begin_anew()
    assert note.text() is None


def test_an_engine_that_failed_before_it_heard_of_running_times_loses_none() -> None:
    stage = Stage("a", conf=LEARNING)
    stage.cache.handover.put_note(RunTimesKnown(SERIES))
    stage.decider.news(stage.now)

    stage.decider.begin_anew()
    stage.cycle()

    assert stage.engine.run_times.series == SERIES


@pytest.mark.parametrize("silent", [False, True])
def test_a_write_that_fails_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, *, silent: bool
) -> None:
    monkeypatch.setattr(note_store, "PAUSE_S", 0.001)
    maps = Maps({})
    asyncio.run(maps.store.read())
    maps.run_times.ended(JOB, 60.0)
    maps.silent, maps.refuses = silent, 507

    async def writes() -> None:
        task = asyncio.create_task(maps.store.run())
        while maps.calls.count(f"PATCH /{NAME}") < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        maps.silent, maps.refuses = False, None
        while not maps.data:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        task.cancel()

    asyncio.run(writes())
    assert len(maps.lines) == (0 if silent else 1)
    assert maps.data is not None
    assert KEY in maps.data


# Which runs count.


def runs(stage: Stage, *names: str) -> None:
    """The kubelet has started pods."""
    for name in names:
        stage.pods[f"default/{name}"]["status"]["startTime"] = "1970-01-01T00:16:40Z"
        stage.ends(name, "Running")


def asked_to_end(stage: Stage, *names: str) -> None:
    """Pods are terminating."""
    for name in names:
        plain = stage.pods[f"default/{name}"]
        plain["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        stage.put_pod(plain)


def deleted(stage: Stage, *names: str) -> None:
    asked_to_end(stage, *names)
    stage.cycle(1.0)
    for name in names:
        stage.drop_pod(name)


def succeeded(stage: Stage, *names: str) -> None:
    for name in names:
        stage.ends(name)
        stage.cycle(1.0)


def failed(stage: Stage, *names: str) -> None:
    for name in names:
        stage.ends(name, "Failed")
        stage.cycle(1.0)


def failed_at_once(stage: Stage, *names: str) -> None:
    for name in names:
        stage.ends(name, "Failed")


def replaced(stage: Stage, *names: str) -> None:
    """A controller deletes pods, and makes others of the same names."""
    for name in names:
        stage.drop_pod(name)
        stage.pod(name, 8, name.partition("-")[0] if "-" in name else "")


ENDS = [succeeded, failed, failed_at_once, deleted, replaced]


def running(kind: str, conf: Conf = LEARNING) -> tuple[Stage, tuple[str, ...]]:
    """A pod without a PodGroup or a gang of two that runs, and its pods."""
    stage = Stage("a b", conf=conf)
    if kind == "pod":
        stage.pod("j")
        pods: tuple[str, ...] = ("j",)
    else:
        stage.gang("j", 2, phase=kind)
        pods = ("j-0", "j-1")
    stage.cycle()
    runs(stage, *pods)
    stage.cycle()
    assert len(stage.bound) == len(pods)
    return stage, pods


@pytest.mark.parametrize("kind", ["pod", "Running", "Inqueue"])
@pytest.mark.parametrize("ends", ENDS)
def test_a_run_that_ends_by_itself_counts_once(
    kind: str, ends: Callable[..., None]
) -> None:
    stage, pods = running(kind)

    ends(stage, *pods)
    stage.cycle(1.0)
    assert stage.engine.run_times.learnt == 1
    for key in [*stage.pods]:
        stage.drop_pod(key.partition("/")[2])  # others than those that ran never do
    stage.cycle(1.0)
    if kind != "pod":
        stage.drop_group("j")
    stage.cycle(1.0)

    assert stage.engine.run_times.learnt == 1


@pytest.mark.parametrize("kind", ["pod", "Running"])
def test_a_run_goes_on_when_its_job_is_told_anew(kind: str) -> None:
    stage, pods = running(kind)

    for pod in pods:
        plain = stage.pods[f"default/{pod}"]
        other = ",".join(f"Ascend910-{chip}" for chip in range(1, 9))
        plain["metadata"]["annotations"] |= {NPU: other, names.REAL: other}
        stage.put_pod(plain)
    stage.cycle(60.0)

    assert any(isinstance(each, JobGone) for each in stage.heard)
    assert stage.engine.run_times.learnt == 0
    deleted(stage, *pods)
    stage.cycle(60.0)
    assert stage.engine.run_times.learnt == 1
    assert stage.engine.run_times.series[-1].steps == (14,), "128 seconds"


@pytest.mark.parametrize("kind", ["pod", "Running", "Inqueue"])
@pytest.mark.parametrize("ends", [failed, deleted, replaced])
def test_a_run_whose_pods_are_evicted_does_not_count(
    kind: str, ends: Callable[..., None]
) -> None:
    stage, pods = running(kind)
    job = stage.engine.view.job_states[next(iter(stage.engine.view.job_states))]
    evict(stage.engine.context, job, (*range(len(pods)),), "other", "preempt")
    stage.cache.assumed.evict(job.job.name, (*range(len(pods)),))

    ends(stage, *pods)
    stage.cycle(1.0)

    assert stage.engine.run_times.learnt == 0


@pytest.mark.parametrize("kind", ["pod", "Running"])
def test_an_eviction_is_none_the_less_one_for_the_next_leader(kind: str) -> None:
    stage, pods = running(kind)
    asked_to_end(stage, *pods)

    stage.restart()
    stage.cycle(1.0)
    for pod in pods:
        stage.drop_pod(pod)
    stage.cycle(1.0)

    assert not stage.engine.view.job_states
    assert stage.engine.run_times.learnt == 0


def test_a_run_that_fails_and_is_retried_does_not_count_and_the_last_does() -> None:
    stage = Stage("a b", conf=LEARNING)
    labels = {"fault-scheduling": "force", "fault-retry-times": "1"}
    stage.group("j", 1, labels=labels, phase="Running")
    for _time in range(2):
        stage.pod("j-0", 8, "j", labels=labels)
        stage.cycle(1.0)
        runs(stage, "j-0")
        stage.cycle(1.0)
        assert stage.engine.run_times.learnt == 0
        failed(stage, "j-0")
        stage.cycle(1.0)
        stage.drop_pod("j-0")
        stage.cycle(1.0)

    assert stage.engine.run_times.learnt == 1


def test_pods_that_could_not_be_bound_did_not_run() -> None:
    stage = Stage("a b", conf=LEARNING)
    stage.gang("j", 2, phase="Running")

    stage.cycle(outcome=lambda _pod, _place: "failed")
    stage.cycle(0.1)

    assert not stage.bound
    assert stage.engine.run_times.learnt == 0


# Jobs.


def origin(stage: Stage, name: str) -> Origin:
    return stage.engine.view.job_states[name].job.origin


def test_a_job_comes_from_its_namespace_and_has_the_name_without_its_number() -> None:
    stage = Stage("a b")
    stage.pod("train-0017", 4)
    stage.gang("llama-3", 2, chips=2)
    stage.cycle()

    names = {each: origin(stage, each) for each in stage.engine.view.job_states}

    assert names == {
        "pod default/train-0017": Origin("default", "train"),
        "default/llama-3": Origin("default", "llama"),
    }


def test_a_gang_has_the_chips_of_all_its_pods_also_of_those_that_ended() -> None:
    stage = Stage("a b", conf=LEARNING)
    stage.group("j", 3, phase="Running")
    for name, n_chips in (("big", 8), ("small", 2), ("none", 0)):
        stage.pod(name, n_chips, "j")
    stage.cycle()
    sizes = []
    for name in ("none", "small", "big"):
        sizes.append(chips_in_all(stage.engine.view.job_states["default/j"].job))
        runs(stage, name)
        stage.cycle()
        stage.ends(name)
        stage.cycle(60.0)

    assert sizes == [10, 10, 10]
    assert {each.chips for each in stage.engine.run_times.series} == {10, 0}


def test_pods_that_are_read_as_one_have_their_own_names() -> None:
    stage = Stage("a b")
    for name in ("train-1", "eval-1"):
        stage.pod(name, 4)
    stage.cycle()

    found = {origin(stage, each).name for each in stage.engine.view.job_states}

    assert found == {"train", "eval"}


@pytest.mark.parametrize("conf", [DEFAULT, LEARNING], ids=["default", "learning"])
@pytest.mark.parametrize("name", ["x²", "x٣", "1-" * 100_000], ids=["²", "٣", "long"])
def test_a_group_of_any_name_stops_nothing(name: str, conf: Conf) -> None:
    stage = Stage("a b", conf=conf)
    stage.pod("bound", 8, name, spec={"nodeName": "a"}, annotations={NPU: chips(8)})
    stage.pod("other")

    assert stage.cycle() == ["bind pod default/other: other on b 01234567"]

    assert len(stage.engine.view.job_states) == 2


def chips(n: int) -> str:
    return ",".join(f"Ascend910-{chip}" for chip in range(n))


def test_what_was_read_is_heard_of_before_jobs_and_by_a_new_engine() -> None:
    stage = Stage("a", conf=LEARNING)
    series = RunSeries(Similarity.CHIPS, "default", chips=8, steps=(3,) * FEWEST_RUNS)
    stage.pod("train-1", 8)

    stage.cache.handover.put_note(RunTimesKnown((series,)))
    stage.cycle()

    kinds = [type(each) for each in stage.heard]
    assert kinds.index(RunTimesKnown) < len(kinds) - 1
    (state,) = stage.engine.view.job_states.values()
    assert state.job.run_time is not None
    stage.decider.begin_anew()
    stage.cycle()
    (state,) = stage.engine.view.job_states.values()
    assert state.job.run_time is not None


@pytest.mark.parametrize("conf", [DEFAULT, LEARNING.quiet], ids=["off", "standby"])
def test_what_was_read_before_counts_once_running_times_are_learnt(conf: Conf) -> None:
    stage = Stage("a", conf=conf)
    series = RunSeries(Similarity.CHIPS, "default", chips=8, steps=(3,) * FEWEST_RUNS)
    stage.pod("train-1", 8)
    stage.cache.handover.put_note(RunTimesKnown((series,)))
    stage.cycle()

    stage.cache.reconfigure(LEARNING)
    stage.cycle()

    (state,) = stage.engine.view.job_states.values()
    assert state.job.run_time is not None
    assert stage.engine.run_times.series == (series,)
