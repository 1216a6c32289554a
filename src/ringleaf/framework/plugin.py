"""What a plugin is: answers to the questions that the scheduler asks.

A plugin is a class with some of the methods below; a method that it defines is a vote,
and a flag of the configuration can take the vote away. How the votes of several plugins
combine stands in ``votes``; docs/plugins.md shows how to write one.

Four of the hooks are those of the Ascend 910 guide: ``job_valid`` is its validJobFn,
``predicate`` its AddPredicateFn, ``node_order`` its AddBatchNodeOrderFn, and
``pod_came`` with ``pod_went`` its AddEventHandler.

Source: Volcano ``pkg/scheduler/framework/session_plugins.go`` for the questions.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import Any, ClassVar, Final, Protocol, Self

import numpy as np
from msgspec import Struct, convert
from msgspec.structs import fields
from numpy.typing import NDArray

from ringleaf.config.arguments import ANY_RESOURCE, Argument, Value, by_resource
from ringleaf.framework.job_state import JobState
from ringleaf.framework.state import SchedulerState, amounts_of
from ringleaf.model.amounts import NONE, Amounts
from ringleaf.model.arrays import Flags
from ringleaf.model.cluster import Cluster, Holding
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.queue import Queue

Nodes = NDArray[np.int64]
"""Indexes of nodes."""
Scores = NDArray[np.float64]
"""A number for each of some nodes, higher is better."""


class Key(Protocol):
    """Anything that sorts; lower goes first."""

    def __lt__(self, other: Any, /) -> bool:  # noqa: ANN401 - of its own kind
        """Whether it goes before *other*."""


class Vote(IntEnum):
    """An answer that may be none."""

    PERMIT = 1
    ABSTAIN = 0
    REJECT = -1


class Victim(Struct, frozen=True):
    """A pod that may be evicted: its job and its number."""

    job: str
    replica: int


class PluginSettings(Struct, frozen=True):
    """The arguments of a plugin, by their types; many plugins take none.

    A field has the name of its argument, or is renamed to it. A field whose argument
    ends in ``<resource>`` has the values of all such arguments, by resource.
    """

    @classmethod
    def of(cls, arguments: Mapping[str, Value]) -> Self:
        """The settings of which *arguments* are the values.

        >>> class Limits(PluginSettings, frozen=True, rename={"by": "most.<resource>"}):
        ...     most: int
        ...     by: dict[str, int]
        >>> Limits.of({"most": 3, "most.cpu": 2})
        Limits(most=3, by={'cpu': 2})
        """
        given: dict[str, object] = dict(arguments)
        for each in fields(cls):
            if each.encode_name.endswith(ANY_RESOURCE):
                prefix = each.encode_name.removesuffix(ANY_RESOURCE)
                given[each.encode_name] = by_resource(arguments, prefix)
        return convert(given, cls)


class Plugin:
    """One voter, made once and kept as long as its configuration.

    It reads ``view``, which is always up to date, and keeps no other account than what
    it counts in ``pod_came`` and ``pod_went``. The same question gets the same answer:
    no clock but ``view.now``, no dice.
    """

    meaning: ClassVar[str] = "A plugin of another package."
    """What it does, in one sentence, for ``ringleaf check-conf``."""
    arguments: ClassVar[Mapping[str, Argument]] = MappingProxyType({})
    """The arguments it takes, by key; others are refused."""
    Settings: ClassVar[type[PluginSettings]] = PluginSettings
    """The same as a value: what ``settings`` is."""
    per_job: ClassVar[frozenset[str]] = frozenset()
    """Its votes on victims (``Preemptable``, ``Reclaimable``) that judge each job by
    itself: by how that job stands, and by what the evictor asks and its priority. Such
    a vote is remembered while others are evicted."""
    by_rank: ClassVar[frozenset[str]] = frozenset()
    """Its votes on victims for which nothing of the evictor counts but its queue and
    its priority. Such a vote is shared by evictors that ask for different things."""
    per_role: ClassVar[frozenset[str]] = frozenset()
    """``Predicate``, if one answer counts for all pods of a role: if it refuses no node
    to the first pod, and the demand of the role names no other pods, it refuses none to
    the rest."""

    settings: PluginSettings
    sums_scores: bool = False
    """Whether the affinity rank is a score among those of other plugins."""

    def __init__(self, view: SchedulerState, arguments: Mapping[str, Value]) -> None:
        self.view = view
        self.settings = self.Settings.of(arguments)
        """What is configured, or the default."""
        self.values = arguments
        """The same by the keys of arguments, for plugins without ``Settings``."""

    @classmethod
    def votes(cls) -> tuple[str, ...]:
        """Where it votes, if its flags let it.

        >>> class Patient(Plugin):
        ...     def job_order(self, job_state):
        ...         return -job_state.arrived
        >>> Patient.votes()
        ('JobOrder',)
        """
        return tuple(vote for vote, method in HOOKS.items() if defines(cls, method))

    def uses(self, victims: Sequence[Victim]) -> list[Amounts]:
        """What each of *victims* uses now, in their order."""
        cluster = self.view.cluster
        held = {
            Victim(job, holding.replica): amounts_of(cluster, holding)
            for job in dict.fromkeys(victim.job for victim in victims)
            for holding in cluster.holdings.get(job, ())
        }
        return [held.get(victim, NONE) for victim in victims]

    def job_valid(self, job_state: JobState) -> str | None:
        """None if the job can be placed at all, else the reason (validJobFn)."""
        raise NotImplementedError

    def job_order(self, job_state: JobState) -> Key:
        """The position of the job in its queue; lower comes first."""
        raise NotImplementedError

    def queue_order(self, queue: Queue) -> Key:
        """The position of the queue among queues; lower comes first."""
        raise NotImplementedError

    def task_order(self, job_state: JobState, role: Role) -> Key:
        """The position of pods of *role* in their job; lower comes first."""
        raise NotImplementedError

    def predicate(self, job: Job, role: Role) -> Flags | None:
        """The nodes of the cluster that may take a pod of *role* (AddPredicateFn).

        None if all nodes may.
        """
        raise NotImplementedError

    def node_order(self, job: Job, role: Role, nodes: Nodes) -> Scores | None:
        """How well *nodes* suit a pod of *role* (AddBatchNodeOrderFn).

        The weight is already included. None to abstain.
        """
        raise NotImplementedError

    def job_ready(self, job_state: JobState) -> bool:
        """Whether enough pods have a place for the job to start."""
        raise NotImplementedError

    def job_pipelined(self, job_state: JobState) -> Vote:
        """Whether enough pods have or await a place."""
        raise NotImplementedError

    def job_enqueueable(self, job_state: JobState) -> Vote:
        """Whether to admit the job."""
        raise NotImplementedError

    def job_enqueued(self, job_state: JobState) -> None:
        """The job was admitted."""
        raise NotImplementedError

    def job_starving(self, job_state: JobState) -> bool:
        """Whether pods of other jobs may be evicted for the job."""
        raise NotImplementedError

    def overused(self, queue: Queue) -> bool:
        """Whether the queue uses its fair share or more."""
        raise NotImplementedError

    def allocatable(self, queue: Queue, amounts: Amounts) -> bool:
        """Whether the queue may take a pod that uses *amounts*."""
        raise NotImplementedError

    def effective_demand(self, demand: Demand) -> Demand | None:
        """What counts of *demand*; None where the plugin has no say in it."""
        del demand
        return None

    def queue_limits(self, queue: Queue) -> Amounts:
        """What *queue* may use now, for explanations; what it omits is unlimited."""
        del queue
        return NONE

    def admission_limits(self, queue: Queue) -> Amounts:
        """What jobs of *queue* may use that are admitted, for explanations."""
        del queue
        return NONE

    def preemptive(self, queue: Queue, amounts: Amounts) -> bool:
        """Whether pods may be evicted for a pod of the queue that uses *amounts*."""
        raise NotImplementedError

    def preemptable(
        self, evictor: JobState, victims: Sequence[Victim]
    ) -> list[Victim] | None:
        """Which of *victims*, of the same queue, may be evicted for *evictor*.

        None to abstain.
        """
        raise NotImplementedError

    def reclaimable(
        self, evictor: JobState, victims: Sequence[Victim]
    ) -> list[Victim] | None:
        """Which of *victims*, of other queues, may be evicted for *evictor*.

        None to abstain.
        """
        raise NotImplementedError

    def still_reclaimable(
        self, victims: Sequence[Victim], gone: Sequence[Victim]
    ) -> bool:
        """Whether ``reclaimable`` would name all of *victims* again.

        It did when it was last asked; since then those *gone* were evicted, which
        were named as well. True only if it is sure; else it is asked again.
        """
        del victims, gone
        return False

    def pod_came(self, job_state: JobState, holding: Holding, amounts: Amounts) -> None:
        """A pod of the job holds something now, perhaps for a try (AddEventHandler)."""
        raise NotImplementedError

    def pod_went(self, job_state: JobState, holding: Holding, amounts: Amounts) -> None:
        """A pod of the job no longer holds it (AddEventHandler)."""
        raise NotImplementedError


HOOKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "JobValid": "job_valid",
        "JobOrder": "job_order",
        "QueueOrder": "queue_order",
        "TaskOrder": "task_order",
        "Predicate": "predicate",
        "NodeOrder": "node_order",
        "JobReady": "job_ready",
        "JobPipelined": "job_pipelined",
        "JobEnqueueable": "job_enqueueable",
        "JobEnqueued": "job_enqueued",
        "JobStarving": "job_starving",
        "Overused": "overused",
        "Allocatable": "allocatable",
        "Preemptive": "preemptive",
        "Preemptable": "preemptable",
        "Reclaimable": "reclaimable",
    }
)
"""Vote → the method that gives it."""

EVENTS: Final = ("pod_came", "pod_went")
"""The methods that hear of pods; no flag silences them."""


def defines(plugin: type[Plugin], method: str) -> bool:
    """Whether *plugin* has a *method* of its own."""
    return getattr(plugin, method) is not getattr(Plugin, method)


def judges(plugin: type[Plugin], attribute: str, vote: str) -> bool:
    """Whether *attribute* of *plugin* (``per_job``, ``by_rank``, ...) has a *vote*.

    A class that overrides the vote of another has to say so anew.
    """
    owner = next(each for each in plugin.__mro__ if HOOKS[vote] in vars(each))
    says = next(each for each in plugin.__mro__ if attribute in vars(each))
    return vote in vars(says)[attribute] and issubclass(says, owner)


def use_of(cluster: Cluster, victim: Victim) -> Amounts:
    """What one pod uses now; there may be thousands of pods in its job."""
    for holding in cluster.holdings.get(victim.job, ()):
        if holding.replica == victim.replica:
            return amounts_of(cluster, holding)
    return NONE


def occupied(job_state: JobState) -> int:
    """Pods that have a place, await one, or ended well."""
    if not job_state.pipelined:
        return job_state.ready
    placed = job_state.placements.keys() - job_state.terminating
    return len(placed | job_state.finished | job_state.pipelined)
