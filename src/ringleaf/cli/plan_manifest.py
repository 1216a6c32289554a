"""``ringleaf plan -f``: what would become of a manifest, were it submitted now."""

from collections.abc import (
    AsyncIterator,
    Callable,
    Container,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct
from rich.text import Text

from ringleaf.cli.draw import draw
from ringleaf.cli.explain_run import endings_of, help_lines, others_first
from ringleaf.cli.failure import BadUse, program, warn
from ringleaf.cli.file import bytes_of, name_of, one_line
from ringleaf.cli.live import ClusterAccess, ask, look_with_lives, moment
from ringleaf.cli.marks import marks
from ringleaf.cli.naming import PeopleConsole
from ringleaf.cli.output import print_json, so_many
from ringleaf.cli.plan import (
    PENDING,
    VERDICT_STYLES,
    new_table,
    print_reasons,
    verdict,
    where,
)
from ringleaf.cli.start_estimate import Start, start_of
from ringleaf.framework.instruction import Evict
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.job_names import known_as
from ringleaf.kube.manifest import (
    PATHS,
    BadManifest,
    Plain,
    Reader,
    Submitted,
    documents_of,
)
from ringleaf.kube.snapshot import Snapshot, Trouble, podless_words
from ringleaf.model.decision import Decision, Placed, Waiting
from ringleaf.model.topology import quoted
from ringleaf.policies.validation import warnings_of
from ringleaf.simulator.answer import answer
from ringleaf.simulator.plain import whole
from ringleaf.simulator.source import BadInput, documents

MANIFEST: Final = "a manifest"
MANIFEST_HINT: Final = "one has at least apiVersion, kind, metadata and spec"
REFUSED: Final = 400
NOT_FOUND: Final = 404
MAX_SPACES: Final = 20
"""Namespaces of a manifest that are looked for."""
WAITING: Final = "waiting"
"""The verdict of a job that is not tried, in JSON."""


class PlannedJob(Struct, frozen=True):
    """What would become of one group of pods.

    Args:
        name: What the scheduler calls it.
        decision: What it would decide; None where it would not even try.
        held: Why it would not.
        start: When and where it could start, if that is not now.
        ends: Jobs of which the end of any one would let it start; None where that
            would not be enough.

    """

    name: str
    decision: Decision | None
    held: str = ""
    start: Start | None = None
    ends: tuple[str, ...] | None = None

    @property
    def verdict(self) -> str:
        """The verdict as one word, for people."""
        return PENDING if self.decision is None else verdict(self.decision)


class ManifestPlan(Struct, frozen=True):
    """What would become of everything submitted, and of others because of it."""

    look: Snapshot
    outcomes: Sequence[PlannedJob]
    evicted: Sequence[Evict]
    notes: Sequence[str]

    @property
    def satisfied(self) -> bool:
        """Whether all of it would start now."""
        return all(isinstance(each.decision, Placed) for each in self.outcomes)


def plan_manifests(
    files: Sequence[str],
    cluster: ClusterAccess,
    namespace: str | None,
    *,
    server_dry_run: bool,
    as_json: bool,
) -> int:
    """Say what would become of the manifests in *files*; the exit status."""
    listed = [one for file in files for one in _read_file(file)]

    async def question(api: Api, seen: Callable[[int], None]) -> ManifestPlan:
        given, space = listed, namespace or api.credentials.namespace
        if server_dry_run:
            given = [await _dry_run(api, *one, space) for one in listed]
        look = await look_with_lives(api, cluster, seen)
        classes = look.cache.priority_classes
        reader = Reader(space, cluster.schedulers, classes, look.now)
        found = submit(look, reader.read(given))
        notes = [*found.notes, *[each async for each in _unspaced(api, listed, reader)]]
        return msgspec.structs.replace(found, notes=notes)

    try:
        found = ask(cluster, question)
    except BadManifest as error:
        raise BadUse(f"{', '.join(map(name_of, files))}: {error}") from None
    for note in found.notes:
        warn(note)
    if as_json:
        print_json(plain_answer(found))
    else:
        print_answer(found)
    return 0 if found.satisfied else 1


def _read_file(file: str) -> list[tuple[str, Plain]]:
    shown = name_of(file)
    with one_line(shown, BadInput, BadManifest):
        given = documents(_bytes_of(file), MANIFEST, MANIFEST_HINT)
        return list(documents_of(given))


def _bytes_of(file: str) -> bytes:
    """The bytes of one file; of what kubectl takes besides, how to ask."""
    if file.startswith(("http://", "https://")):
        raise BadUse(
            f"-f is {quoted(file)}, want a file; "
            f"hint: curl -s {file} | {program()} plan -f -"
        )
    if file and Path(file).is_dir():
        raise BadUse(
            f"-f is the folder {quoted(file)}, want a file; hint: -f for each of its "
            "files"
        )
    return bytes_of(file, MANIFEST)


async def _unspaced(
    api: Api, listed: Sequence[tuple[str, Plain]], reader: Reader
) -> AsyncIterator[str]:
    """The namespaces that are not there, as far as one may ask for them."""
    brought = {
        (each.get("metadata") or {}).get("name")
        for _path, each in listed
        if each.get("kind") == "Namespace"
    }
    asked = {pod.metadata.namespace for pod in reader.found.pods}
    for space in sorted(asked - brought)[:MAX_SPACES]:
        path = f"/api/v1/namespaces/{quote(space, safe='')}"
        with suppress(Unreachable):
            if (await api.call("GET", path, lane="tell")).status == NOT_FOUND:
                yield f"there is no namespace {quoted(space)} yet"


async def _dry_run(
    api: Api, path: str, plain: Plain, namespace: str
) -> tuple[str, Plain]:
    """What the API server would make of an object; it keeps nothing."""
    key = str(plain.get("apiVersion", "")), str(plain.get("kind", ""))
    if key not in PATHS:
        return path, plain
    meta = plain.get("metadata") or {}
    url = PATHS[key].format(meta.get("namespace") or namespace)
    try:
        said = await api.call(
            "POST", f"{url}?dryRun=All", msgspec.json.encode(plain), lane="tell"
        )
    except Unreachable as error:
        raise Trouble(str(error)) from None
    found: Plain = msgspec.json.decode(said.body)
    if said.status >= REFUSED:
        raise BadManifest(
            f"{path}: the API server refuses it: {found.get('message', said.status)}"
        )
    kind = {"apiVersion": key[0], "kind": key[1]}
    return path, {**found, **kind}


def submit(look: Snapshot, given: Submitted) -> ManifestPlan:
    """What the scheduler would do if *given* came now."""
    cache = look.cache
    _must_be_new(look, given)
    look.decide()
    before = len(look.evicted)
    cache.handlers["queues"].on_update(given.queues)
    cache.handlers["priorityclasses"].on_update(given.classes)
    cache.handlers["podgroups"].on_update(given.groups)
    cache.handlers["pods"].on_update(given.pods)
    if not given.jobs:
        raise BadManifest("there is no pod in it, want one")
    look.submit()
    outcomes = [_outcome(look, name) for name in given.jobs]
    return ManifestPlan(look, outcomes, look.evicted[before:], given.notes)


def _must_be_new(look: Snapshot, given: Submitted) -> None:
    keys = {pod.key for pod in look.cache.pods.values()}
    for pod in given.pods:
        if pod.metadata.key in keys:
            raise BadManifest(
                f"Pod {quoted(pod.metadata.key)} is there already; hint: "
                f"ringleaf explain pod/{pod.metadata.name} "
                f"-n {pod.metadata.namespace}"
            )
    for group in given.groups:
        known = look.cache.gangs.get(group.metadata.key)
        if known is not None and known.podgroup is not None:
            raise BadManifest(
                f"PodGroup {quoted(group.metadata.key)} is there already; hint: "
                f"ringleaf explain podgroup/{group.metadata.name} "
                f"-n {group.metadata.namespace}"
            )


def _outcome(look: Snapshot, name: str) -> PlannedJob:
    group, engine = look.cache.gangs.get(name), look.engine
    held = "" if group is None else group.status.not_ready
    if group is None or group.reported.job is None:
        return PlannedJob(name, None, held or "it has no pods")
    if group.reported.job.podless:
        return PlannedJob(name, None, held or podless_words(look, name))
    decision = engine.explain(name)
    job_state = engine.view.job_states.get(name)
    if isinstance(decision, Placed):
        assert job_state is not None
        warnings = tuple(warnings_of(job_state.job, engine.view.settings))
        ranked = tuple(sorted(decision.placements, key=lambda p: p.replica))
        decision = msgspec.structs.replace(
            decision, placements=ranked, warnings=warnings
        )
    if job_state is None or not isinstance(decision, Waiting):
        return PlannedJob(name, decision, held)
    if decision.impossible:
        return PlannedJob(name, decision, held)
    start = start_of(look, job_state)
    ends = None
    if not others_first(engine, decision.job):
        ends = endings_of(engine, decision.job)
    return PlannedJob(name, decision, held, start, ends)


def plain_answer(found: ManifestPlan) -> Plain:
    """What would become of a manifest, as plain values."""
    cluster = found.look.engine.view.cluster
    told: list[Plain] = []
    for each in found.outcomes:
        if each.decision is None:
            plain: Plain = {"job": each.name, "verdict": WAITING}
            plain["message"] = each.held
        else:
            plain = answer(cluster, each.decision)
            if each.held:
                plain["held"] = each.held
        if each.start is not None and each.start.plain is not None:
            plain["could-start"] = each.start.plain
        if each.ends is not None:
            plain["enough-to-end"] = each.ends
        told.append(plain)
    evicts = [msgspec.to_builtins(each) for each in found.evicted]
    return {"at": whole(found.look.now), "decisions": told, "evicts": evicts}


def print_answer(found: ManifestPlan) -> None:
    """Print what would become of a manifest, for people."""
    cache, cluster = found.look.cache, found.look.engine.view.cluster
    console = PeopleConsole(lambda name: known_as(cache, name))
    decisions = [each.decision for each in found.outcomes if each.decision is not None]
    given = marks(decisions)
    table = new_table("", "job", "product", "wanted", "verdict", "where")
    for each in found.outcomes:
        letter, style = given.get(each.name, ("", ""))
        word = Text(each.verdict, style=VERDICT_STYLES[each.verdict])
        about: list[Any] = ["", ""]
        if each.decision is not None:
            job = each.decision.job
            about = [Text(job.product.key), Text(job.wanted)]
        there = "" if each.decision is None else where(cluster, each.decision)
        table.add_row(
            Text(letter, style=style),
            Text(known_as(cache, each.name)),
            *about,
            word,
            Text(there),
        )
    console.print(table)
    for each in found.outcomes:
        if each.decision is not None:
            print_reasons(console, each.decision)
        for line in _more(each, found.look.binds):
            console.print(Text(line))
    for line in _evictions(found.evicted):
        console.print(Text(f"\n{line}"))
    placed = [each for each in decisions if isinstance(each, Placed)]
    if placed:
        console.print()
        draw(console, cluster, placed)


def _more(each: PlannedJob, unbound: Container[str]) -> Iterator[str]:
    if each.held:
        yield f"\njob {each.name!r} is pending: {each.held}"
    if each.start is not None:
        yield f"it {each.start.words(each.ends or ())}"
    if each.ends is not None:
        yield from help_lines(each.ends, None, moment, unbound)


def _evictions(evicted: Iterable[Evict]) -> Iterator[str]:
    for each in evicted:
        pods = so_many(len(each.replicas), "pod")
        yield f"{each.action} would evict {pods} of {each.job!r} for {each.by!r}"
