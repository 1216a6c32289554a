"""``ringleaf explain pod/NAME``: where pods of a live cluster are, or why they wait."""

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, NoReturn

from rich.text import Text

from ringleaf.cli.explain_node import MAX_NAMES, no_node
from ringleaf.cli.explained_group import (
    ExplainedGroup,
    console_of,
    is_pending,
    rules_of,
)
from ringleaf.cli.failure import BadUse
from ringleaf.cli.live import ClusterAccess, ask, look_with_lives
from ringleaf.cli.output import print_json, shortened, so_many
from ringleaf.cli.uncreated import NONE_LACK, Uncreated, queue_of_job, uncreated_pods
from ringleaf.kube.api import Api
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.names import UID
from ringleaf.kube.snapshot import ReadOnlyCache, Snapshot
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
    ) -> tuple[Snapshot, Target, Uncreated]:
        look = await look_with_lives(api, cluster, seen)
        whole = target._replace(namespace=target.namespace or api.credentials.namespace)
        await _refuse_bare(api, look, whole)
        asked, _groups, _waits = _asked(look, whole)
        return look, whole, await uncreated_pods(api, look, asked)

    look, target, uncreated = ask(cluster, question)
    return explain_in(look, target, node, top, uncreated, as_json=as_json)


async def _refuse_bare(api: Api, look: Snapshot, target: Target) -> None:
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
    look: Snapshot,
    target: Target,
    node: str | None,
    top: int,
    uncreated: Uncreated = NONE_LACK,
    *,
    as_json: bool,
) -> int:
    """Explain pods in a snapshot of the cluster; the exit status."""
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


def _asked(
    look: Snapshot, target: Target
) -> tuple[GangState, list[GangState], list[GangState]]:
    """The group that is explained, all that are meant, and those that are pending."""
    groups = _groups(look, target)
    waits = [group for group in groups if is_pending(group)]
    return (waits or groups)[0], groups, waits


def _names(look: Snapshot, target: Target) -> list[str]:
    """The names of the groups that are meant, in order."""
    cache = look.cache
    if target.kind == "pod":
        keys = {pod.key: pod.job for pod in cache.pods.values()}
        return [keys[target.key]] if target.key in keys else []
    if target.key in cache.gangs:
        return [target.key]
    return sorted({*_of_job(look, target)})


def job_names(look: Snapshot, target: Target) -> list[str]:
    """The names of the jobs that are meant. Raises ``BadUse`` if there are none."""
    return [group.name for group in _groups(look, target)]


def _groups(look: Snapshot, target: Target) -> list[GangState]:
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


def _of_job(look: Snapshot, target: Target) -> Iterator[str]:
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


def _others_words(
    target: Target, groups: Sequence[GangState], waits: Sequence[GangState]
) -> str:
    if len(groups) == 1:
        return ""
    names = shortened([group.name for group in waits], MAX_NAMES) if waits else ""
    told = f"{target.kind} {quoted(target.key)}: {so_many(len(groups), 'job')}"
    return f"{told}, {len(waits)} of them pending: {names}" if waits else told
