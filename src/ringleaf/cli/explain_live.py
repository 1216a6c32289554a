"""``ringleaf explain pod/NAME``: where pods of a live cluster are, or why they wait."""

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, NoReturn

from rich.text import Text

from ringleaf.cli.explain_node import (
    MAX_NAMES,
    no_node,
)
from ringleaf.cli.explained_group import (
    ExplainedGroup,
    console_of,
    is_pending,
    rules_of,
)
from ringleaf.cli.failure import BadUse
from ringleaf.cli.live import (
    ClusterAccess,
    ask,
    look_with_lives,
)
from ringleaf.cli.output import print_json, shortened, so_many
from ringleaf.cli.uncreated import (
    NONE_LACK,
    Uncreated,
    queue_of_job,
    uncreated_pods,
)
from ringleaf.kube.api import Api
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.jobnames import known_as
from ringleaf.kube.look import Look, ReadOnlyCache, podless_words
from ringleaf.kube.names import UID
from ringleaf.kube.special_jobs import OUTSIDE
from ringleaf.model.decision import Placed
from ringleaf.model.job import Job
from ringleaf.model.topology import quoted
from ringleaf.policies.validation import is_legal

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("pod", "pods", "po"), "pod"),
        **dict.fromkeys(("podgroup", "podgroups", "pg"), "podgroup"),
        **dict.fromkeys(("job", "jobs", "vcjob", "vj"), "job"),
    }
)
JOB_LABELS: Final = (
    "volcano.sh/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
    "training.kubeflow.org/job-name",
)
"""Labels by which pods say whose they are."""
_TARGET: Final = re.compile(r"([a-z]+)(?:\.[a-z0-9.]+)?/([^/]+)")
_SHOWN: Final = re.compile(
    r"(?P<pod>pod )?(?P<space>[a-z0-9-]+)/(?P<name>[a-z0-9.-]+)"
    r"(?(pod)(?: and \d+ more)?)"
)
"""A job as ``ringleaf status`` shows it."""
_FILES: Final = (".yaml", ".yml", ".json")


OTHER_KINDS: Final = frozenset(
    {
        *("cronjob", "daemonset", "ds", "deploy", "deployment", "node", "queue"),
        *("replicaset", "rs", "service", "svc", "statefulset", "sts"),
    }
)
"""Kinds of Kubernetes that are not explained; namespaces are rarely called so."""


class Target(NamedTuple):
    """What is asked about."""

    kind: str
    name: str
    namespace: str

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


def target_of(text: str, namespace: str) -> Target | None:
    """What ``pod/NAME`` and the like mean; None for a file.

    >>> target_of("pod/infer", "ml").key, target_of("examples/a.yaml", "ml")
    ('ml/infer', None)

    What ``ringleaf status`` shows has its namespace:

    >>> target_of("pod lab/infer", "ml"), target_of("lab/six", "ml").key
    (Target(kind='pod', name='infer', namespace='lab'), 'lab/six')
    """
    found = _TARGET.fullmatch(text)
    if found is not None and found[1] in KINDS:
        return Target(KINDS[found[1]], found[2], namespace)
    shown = _SHOWN.fullmatch(text)
    if shown is None or text.endswith(_FILES) or Path(text).exists():
        return None
    if shown["space"] in OTHER_KINDS and not shown["pod"]:
        return None  # what kubectl would take it for
    kind = "pod" if shown["pod"] else "job"
    return Target(kind, shown["name"], shown["space"])


def explain_target(
    target: Target, cluster: ClusterAccess, node: str | None, top: int, *, as_json: bool
) -> int:
    """Explain pods of a live cluster, or what they find on one node."""

    async def question(
        api: Api, seen: Callable[[int], None]
    ) -> tuple[Look, Target, Uncreated]:
        look = await look_with_lives(api, cluster, seen)
        whole = target._replace(namespace=target.namespace or api.credentials.namespace)
        await _refuse_bare(api, look, whole)
        asked, _groups, _waits = _asked(look, whole)
        return look, whole, await uncreated_pods(api, look, asked)

    look, target, uncreated = ask(cluster, question)
    return explain_in(look, target, node, top, uncreated, as_json=as_json)


async def _refuse_bare(api: Api, look: Look, target: Target) -> None:
    """Raise ``BadUse`` for a Volcano Job without a PodGroup."""
    if target.kind != "job" or _names(look, target):
        return
    queue = await queue_of_job(api, target.namespace, target.name)
    if queue is not None:
        raise BadUse(_no_group(target, queue, look.engine.view.queues))


def _no_group(target: Target, queue: str, known: Container[str]) -> str:
    """One line on a Volcano Job without a PodGroup, and so without pods.

    >>> _no_group(Target("job", "q", "ml"), "gone", ["default"])
    "Volcano Job 'ml/q' exists and has no PodGroup; its queue 'gone' does not exist"
    """
    told = f"Volcano Job {quoted(target.key)} exists and has no PodGroup"
    if queue not in known:
        return f"{told}; its queue {quoted(queue)} does not exist"
    return (
        f"{told}; Volcano's job controller creates it; hint: kubectl -n volcano-system "
        "logs deployment/volcano-controllers"
    )


def explain_in(
    look: Look,
    target: Target,
    node: str | None,
    top: int,
    uncreated: Uncreated = NONE_LACK,
    *,
    as_json: bool,
) -> int:
    """The same with the cluster as it was looked at; the exit status."""
    if node is not None and node not in look.cache.nodes:
        raise BadUse(no_node(node, sorted(look.cache.nodes), "cluster"))
    asked, groups, waits = _asked(look, target)
    others = _others_words(target, groups, waits)
    found = ExplainedGroup(look, asked, top, uncreated)
    if (
        node is not None
        and found.job is not None
        and is_legal(found.job, rules_of(look))
    ):
        return found.on_node(node, as_json=as_json)
    if as_json:
        print_json(found.plain(others))
    else:
        console = console_of(look)
        if others:
            console.print(Text(f"{others}\n"))
        found.print(console)
    return 1 if waits or found.held else 0


def _console(look: Look) -> PeopleConsole:
    return PeopleConsole(lambda name: known_as(look.cache, name))


def _rules(look: Look) -> Any:  # noqa: ANN401 - settings of the core
    return look.engine.view.settings


def _asked(
    look: Look, target: Target
) -> tuple[GangState, list[GangState], list[GangState]]:
    """The group that is explained, all that are meant, and those that are pending."""
    groups = _groups(look, target)
    waits = [group for group in groups if is_pending(group)]
    return (waits or groups)[0], groups, waits


def _names(look: Look, target: Target) -> list[str]:
    """The names of the groups that are meant, in order."""
    cache = look.cache
    if target.kind == "pod":
        keys = {pod.key: pod.job for pod in cache.pods.values()}
        return [keys[target.key]] if target.key in keys else []
    if target.key in cache.gangs:
        return [target.key]
    return sorted({*_of_job(look, target)})


def job_names(look: Look, target: Target) -> list[str]:
    """The names of the jobs that are meant. Raises ``BadUse`` if there are none."""
    return [group.name for group in _groups(look, target)]


def _groups(look: Look, target: Target) -> list[GangState]:
    """The groups that are meant, by name."""
    cache, found = look.cache, _names(look, target)
    if not found:
        schedulers = " or ".join(sorted(cache.schedulers))
        whose = cache.passed_over if isinstance(cache, ReadOnlyCache) else {}
        if target.kind == "pod" and target.key in whose:
            _refuse_pod(target, whose[target.key], schedulers)
        raise BadUse(
            f"there is no {target.kind} {quoted(target.key)} that is scheduled by "
            f"{schedulers}; hint: -n NAMESPACE, --scheduler-name NAME"
        )
    return [cache.gangs[name] for name in found]


def _refuse_pod(target: Target, scheduler: str, schedulers: str) -> NoReturn:
    """Raise ``BadUse`` for a pod of another *scheduler*."""
    raise BadUse(
        f"the schedulerName of pod {quoted(target.key)} is {quoted(scheduler)}, want "
        f"{schedulers}; hint: --scheduler-name {scheduler}"
    )


def _of_job(look: Look, target: Target) -> Iterator[str]:
    """Groups of a job: Volcano's are called by its name and its uid."""
    for name in look.cache.gangs:
        space, _slash, own = name.rpartition("/")
        rest = own.removeprefix(target.name)
        if space == target.namespace and rest != own and UID.fullmatch(rest):
            yield name
    if target.kind != "job":
        return
    for pod in look.cache.pods.values():
        said = [pod.labels.get(key) for key in JOB_LABELS if pod.ours]
        if pod.namespace == target.namespace and target.name in said:
            yield pod.job


def _waits(group: GangState) -> bool:
    """Whether pods of a group wait without which it does not run."""
    if group.reported.job is None:
        return bool(group.status.not_ready)
    return (
        len(group.reported.placed) < group.reported.job.effective_min
        and not group.reported.ending
    )


def _others_words(
    target: Target, groups: Sequence[GangState], waits: Sequence[GangState]
) -> str:
    if len(groups) == 1:
        return ""
    names = shortened([group.name for group in waits], MAX_NAMES) if waits else ""
    told = f"{target.kind} {quoted(target.key)}: {so_many(len(groups), 'job')}"
    return f"{told}, {len(waits)} of them pending: {names}" if waits else told


class _Explained:
    """One group, explained."""

    def __init__(
        self, look: Look, group: GangState, top: int, uncreated: Uncreated
    ) -> None:
        self._look, self._group, self._top = look, group, top
        self.held = group.status.not_ready if group.reported.job is None else ""
        """Why the scheduler does not even try, if it does not."""
        self._starts = False
        self._refusal: tuple[float, str] | None = None
        """When its last binding failed, and why; None if none did."""
        self._ranks: tuple[str, ...] = ()
        self._repair = repair_of(look.engine, group.name, look.now)
        self._start: Start | None = None
        self._uncreated = uncreated.words
        self.job: Job | None = None
        if group.reported.job is None:
            return
        if _waits(group):
            look.decide()
            if uncreated.pods:
                look.cache.handlers["pods"].on_update(uncreated.pods)
                look.submit()
            self._starts = group.name in look.binds
            if isinstance(look.cache, ReadOnlyCache):
                self._refusal = look.cache.last_refusal(group)
        if group.reported.job is None or group.reported.job.podless:
            self.held = group.status.not_ready or podless_words(look, group.name)
            return
        job_state = look.engine.view.job_states.get(group.name)
        self.job = group.reported.job if job_state is None else job_state.job
        if job_state is not None and job_state.placements and not self._starts:
            self._ranks = tuple(self._places())
        if job_state is not None and not job_state.placements:
            self._start = start_of(look, job_state)

    def on_node(self, node: str, *, as_json: bool) -> int:
        """What the group finds on one node."""
        assert self.job is not None
        run, name = self._run(), self._group.name
        return explain_node(
            _console(self._look), run, name, node, self._top, as_json=as_json
        )

    def _places(self) -> Iterator[str]:
        """The rank of every node it is on, were the job not there."""
        job, session = self.job, self._look.engine.cycle.framework.session
        assert job is not None
        if not is_legal(job, session.settings) or job.queue == OUTSIDE:
            return
        for placement in islice(self._group.reported.placed.values(), MAX_NAMES):
            if not placement.chips:
                continue
            found = look_at(session, job, placement.node)
            told = (
                f"choice {found.place} if the job were placed now"
                if isinstance(found, Candidate)
                else f"would refuse the job now: {found.rule}"
            )
            yield f"node {placement.node}: {told}"

    def _run(self) -> ScenarioRun:
        assert self.job is not None
        settings = _rules(self._look)
        empty = Scenario(None, settings, (), (), {}, (), ())
        written = {
            (bind.job, placement.replica): given
            for bind in self._look.binds.values()
            for placement, given in zip(bind.placements, bind.annotations, strict=True)
        }
        jobs = {self._group.name: self.job}
        return ScenarioRun(empty, self._look.engine, (), jobs, written)

    def _outlook(self, run: ScenarioRun) -> JobExplanation:
        """How the group stands.

        Nothing that ends helps a job that would not start on an empty cluster.
        """
        found = job_explanation(run, self._group.name, self._top)
        never = self._start is not None and self._start.told is None
        if never and may_start(found.fate):
            found = replace(found, fate=replace(found.fate, hint=""))
        return found

    def plain(self, others: str) -> Plain:
        """It as plain values."""
        group = self._group
        told: Plain = {"others": others} if others else {}
        if self.job is None:
            word = "waiting" if self.held else "ended"
            decision = {"job": group.name, "verdict": word, "message": self.held}
            told |= {"repair": self._repair} if self._repair else {}
            told |= {"uncreated": self._uncreated} if self._uncreated else {}
            return told | {"decision": decision, "at": self._look.now}
        run = self._run()
        told |= self._outlook(run).plain(run)
        told["bound"] = not self._starts
        if self._starts:
            told["phase"] = str(Phase.INQUEUE)
        if self._refusal is not None:
            told["last-binding"] = {"at": self._refusal[0], "why": self._refusal[1]}
        told |= {"held": group.status.not_ready} if group.status.not_ready else {}
        told |= {"uncreated": self._uncreated} if self._uncreated else {}
        told |= {"repair": self._repair} if self._repair else {}
        if self._start is not None and self._start.told is not None:
            told["could-start"] = self._start.told
        return told | ({"places": list(self._ranks)} if self._ranks else {})

    def print(self, console: Console) -> None:
        """It for people."""
        group = self._group
        if self.job is None:
            word = PENDING if self.held else "ended"
            console.print(Text(f"{named(group.name)}: {word}"))
            for line in filter(None, (self.held, self._uncreated)):
                console.print(indented(line))
            for line in self._repair_lines():
                console.print(indented(line))
            return
        run = self._run()
        outlook = self._outlook(run)
        print_explanation(
            console,
            run,
            outlook,
            self._top,
            clock=self._clock,
            more=self._more(outlook),
            first=self._refusal_lines(),
            unbound=self._look.binds,
        )

    def _clock(self, at: float) -> str:
        ago = self._look.now - at
        if ago == 0:
            return moment(at)
        direction = "ago" if ago > 0 else "from now"
        return f"{moment(at)} ({format_duration(abs(ago))} {direction})"

    def _refusal_lines(self) -> Iterator[str]:
        if self._refusal is not None:
            at, why = self._refusal
            ago = format_duration(max(0.0, self._look.now - at))
            yield f"its last binding failed {ago} ago: {why}"

    def _repair_lines(self) -> Iterator[str]:
        return repair_lines(self._repair, self._clock) if self._repair else iter(())

    def _more(self, outlook: JobExplanation) -> Iterator[str]:
        assert self.job is not None
        if self._starts and isinstance(outlook.fate, Placed):
            yield (
                "it is not bound yet: a scheduler would place it here now; "
                "hint: ringleaf status shows the leader"
            )
        if self._uncreated:
            yield self._uncreated
        yield from self._repair_lines()
        if self._group.status.not_ready:
            yield self._group.status.not_ready
        if self.job.queue == OUTSIDE:
            yield "another scheduler placed it, or its labels cannot be read any more"
        if self._start is not None and may_start(outlook.fate):
            found = outlook.found
            yield f"it {self._start.words(found.enough_to_end if found else ())}"
        yield from self._ranks
