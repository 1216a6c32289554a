"""How the votes of plugins combine.

Some questions go to all plugins alike, some tier by tier. What each answer counts is
Volcano's, so that a configuration means here what it means there.

Source: Volcano ``pkg/scheduler/framework/session_plugins.go``. Where we differ: a tier
that agrees on no victim ends the round, while Volcano goes on to the next tier if it
was the first plugin that named nobody. Victims of other queues must suit the plugins
that share the cluster between queues, also those of later tiers: in Volcano gangs stay
where they are, here they may go whole.

The plugin ``affinity`` is not asked about nodes here: a session places by its rules in
any case (D18), and weighs its ranks against the scores of the others itself (D26).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct

from ringleaf.framework.conf import PluginConf
from ringleaf.framework.plugin import (
    EVENTS,
    HOOKS,
    Nodes,
    Plugin,
    Scores,
    Victim,
    Vote,
    defines,
    judges_by_rank,
    judges_per_job,
)
from ringleaf.framework.standing import Standing
from ringleaf.framework.view import Handler, View
from ringleaf.framework.vocabulary import AFFINITY
from ringleaf.model.amounts import Amounts
from ringleaf.model.cluster import Holding
from ringleaf.model.fleet import Flags
from ringleaf.model.job import Job, Role
from ringleaf.model.queue import Queue

Victims = Callable[[Standing, Sequence[Victim]], list[Victim] | None]
Opinion = Callable[[Standing], Vote]

_BY_SESSION: Final = ("Predicate", "NodeOrder")
"""What a session asks the rules of affinity itself."""


class Votes:
    """The plugins of a configuration, asked together.

    Args:
        tiers: The plugins as configured.
        view: What they look at.
        classes: Name → class of every plugin in *tiers* that does not bring its own.

    """

    def __init__(
        self,
        tiers: Iterable[Iterable[PluginConf]],
        view: View,
        classes: Mapping[str, type[Plugin]],
    ) -> None:
        bench = [
            [
                _Seat(conf, _class_of(conf, classes)(view, conf.arguments))
                for conf in tier
            ]
            for tier in tiers
        ]
        self.plugins = {seat.conf.name: seat.plugin for tier in bench for seat in tier}
        """Every plugin by its name."""

        def voters(vote: str) -> list[Plugin]:
            return [each for tier in by_tier(vote) for each in tier]

        def by_tier(vote: str) -> list[list[Plugin]]:
            asked = ([s.plugin for s in tier if s.votes_in(vote)] for tier in bench)
            return [tier for tier in asked if tier]

        self._job_valid = [each.job_valid for each in voters("JobValid")]
        self._job_order = [each.job_order for each in voters("JobOrder")]
        self._queue_order = [each.queue_order for each in voters("QueueOrder")]
        self._task_order = [each.task_order for each in voters("TaskOrder")]
        self._predicate = [each.predicate for each in voters("Predicate")]
        self._node_order = [each.node_order for each in voters("NodeOrder")]
        self._job_ready = [each.job_ready for each in voters("JobReady")]
        self._job_enqueued = [each.job_enqueued for each in voters("JobEnqueued")]
        self._overused = [each.overused for each in voters("Overused")]
        self._allocatable = [each.allocatable for each in voters("Allocatable")]
        self._preemptive = [each.preemptive for each in voters("Preemptive")]
        self._job_pipelined = [
            [each.job_pipelined for each in tier] for tier in by_tier("JobPipelined")
        ]
        self._job_enqueueable = [
            [each.job_enqueueable for each in tier]
            for tier in by_tier("JobEnqueueable")
        ]
        self._job_starving = [
            each.job_starving for each in next(iter(by_tier("JobStarving")), ())
        ]
        sharers = [
            each for each in voters("QueueOrder") if each in voters("Reclaimable")
        ]
        self.preemptable = Ballot("Preemptable", by_tier("Preemptable"))
        """Which of some victims, of the same queue, may go for an evictor."""
        self.reclaimable = Ballot("Reclaimable", by_tier("Reclaimable"), sharers)
        """Which of some victims, of other queues, may go for an evictor.

        Plugins that share the cluster between queues must agree in any case, whatever
        their tier: a queue within its share loses nothing to another.
        """
        self._view = view
        listeners = map(_Listener, self.plugins.values())
        self._handlers: list[Handler] = [each for each in listeners if each]
        view.handlers.extend(self._handlers)

    def retire(self) -> None:
        """Tell the plugins of no more pods: another configuration takes over."""
        for handler in self._handlers:
            self._view.handlers.remove(handler)

    def job_valid(self, standing: Standing) -> str | None:
        """Why the job can never be placed, by the first plugin that says so."""
        for valid in self._job_valid:
            if (refusal := valid(standing)) is not None:
                return refusal
        return None

    def job_key(self, standing: Standing) -> tuple[Any, ...]:
        """Where the job stands among those of its queue; the lowest is next.

        The first plugin that tells two jobs apart decides; then the older job, then
        the one that came first.
        """
        job = standing.job
        keys = [order(standing) for order in self._job_order]
        return (*keys, job.created, standing.number, job.name)

    def queue_key(self, queue: Queue) -> tuple[Any, ...]:
        """Where the queue stands among queues; the lowest is next."""
        return (*[order(queue) for order in self._queue_order], queue.name)

    def role_key(self, standing: Standing, role: Role) -> tuple[Any, ...]:
        """Where pods of *role* stand in their job; the lowest are next.

        Among equals pods with chips, then the order in which the job lists its roles.
        """
        roles = standing.job.roles
        place = roles.index(role) if role in roles else 0
        keys = [order(standing, role) for order in self._task_order]
        return (*keys, role.chips == 0, place)

    def predicate(self, job: Job, role: Role) -> Flags | None:
        """The nodes that no plugin but affinity refuses to a pod.

        None where none refuses any.
        """
        found = (predicate(job, role) for predicate in self._predicate)
        allowed = [flags for flags in found if flags is not None]
        return np.logical_and.reduce(allowed) if allowed else None

    def node_scores(self, job: Job, role: Role, nodes: Nodes) -> Scores | None:
        """The scores of all plugins but affinity for *nodes*, added up.

        None where nobody scores.
        """
        found = (order(job, role, nodes) for order in self._node_order)
        scores = [each for each in found if each is not None]
        total = None
        for each in scores:
            total = each if total is None else total + each
        return total

    def job_ready(self, standing: Standing) -> bool:
        """Whether enough pods have a place, to every plugin."""
        return all(ready(standing) for ready in self._job_ready)

    def job_pipelined(self, standing: Standing) -> bool:
        """Whether enough pods have or await a place, and nobody objects."""
        return _permitted(self._job_pipelined, standing)

    def job_enqueueable(self, standing: Standing) -> bool:
        """Whether to let the job in: nobody objects."""
        return _permitted(self._job_enqueueable, standing)

    def job_enqueued(self, standing: Standing) -> None:
        """Tell every plugin that the job was let in."""
        for told in self._job_enqueued:
            told(standing)

    def job_starving(self, standing: Standing) -> bool:
        """Whether others may be evicted for the job.

        The first tier with an opinion decides, and all in it must agree; without any,
        nobody may.
        """
        opinions = self._job_starving
        return bool(opinions) and all(starving(standing) for starving in opinions)

    def overused(self, queue: Queue) -> bool:
        """Whether the queue has its share or more, to any plugin."""
        return any(over(queue) for over in self._overused)

    def allocatable(self, queue: Queue, amounts: Amounts) -> bool:
        """Whether the queue may take a pod that uses *amounts*, to every plugin."""
        return all(may(queue, amounts) for may in self._allocatable)

    def preemptive(self, queue: Queue, amounts: Amounts) -> bool:
        """Whether others may be evicted for such a pod, to every plugin."""
        return all(may(queue, amounts) for may in self._preemptive)


def _class_of(conf: PluginConf, classes: Mapping[str, type[Plugin]]) -> type[Plugin]:
    return classes[conf.name] if conf.plugin is None else conf.plugin


class _Seat(Struct, frozen=True):
    """A plugin and how it is configured."""

    conf: PluginConf
    plugin: Plugin

    def votes_in(self, vote: str) -> bool:
        if self.conf.name == AFFINITY and vote in _BY_SESSION:
            return False
        return vote in self.conf.votes and defines(type(self.plugin), HOOKS[vote])


class _Listener:
    """A plugin that wants to hear of pods that come, that go, or of both."""

    def __init__(self, plugin: Plugin) -> None:
        self._told = {
            by: getattr(plugin, event)
            for by, event in zip((1, -1), EVENTS, strict=True)
            if defines(type(plugin), event)
        }

    def __bool__(self) -> bool:
        return bool(self._told)

    def __call__(
        self, standing: Standing, holding: Holding, amounts: dict[str, int], by: int
    ) -> None:
        if by in self._told:
            self._told[by](standing, holding, amounts)


def _permitted(tiers: Iterable[Iterable[Opinion]], standing: Standing) -> bool:
    """One objection refuses; a permit ends the round after its tier."""
    for tier in tiers:
        permitted = False
        for opinion in tier:
            vote = opinion(standing)
            if vote == Vote.REJECT:
                return False
            permitted |= vote == Vote.PERMIT
        if permitted:
            return True
    return True


class Agreed(NamedTuple):
    """The victims that plugins agree on.

    Args:
        victims: Those that may go.
        lasts: Whether that stays so for those that are left when others are evicted.
        by_rank: Whether evictors of the same queue and priority get the same answer,
            whatever they ask for.

    """

    victims: list[Victim]
    lasts: bool
    by_rank: bool


class Ballot:
    """The votes of plugins on who may be evicted.

    Args:
        vote: What they are asked.
        tiers: The plugins that are asked; the first tier with an opinion decides.
        sharers: Plugins that must agree besides.

    """

    def __init__(
        self,
        vote: str,
        tiers: Iterable[Iterable[Plugin]],
        sharers: Iterable[Plugin] = (),
    ) -> None:
        asked = [[*tier] for tier in (*tiers, sharers)]
        votes: list[list[Victims]] = [
            [getattr(each, HOOKS[vote]) for each in tier] for tier in asked
        ]
        *self._tiers, self._sharers = votes
        self._per_job = [
            all(judges_per_job(type(each), vote) for each in tier) for tier in asked
        ]
        self._by_rank = [
            all(judges_by_rank(type(each), vote) for each in tier) for tier in asked
        ]
        self.per_job = all(self._per_job)
        """Whether every plugin judges each job by itself."""
        self._still = [
            each.still_reclaimable
            for each in asked[-1]
            if not judges_per_job(type(each), vote)
        ]

    def __call__(self, evictor: Standing, victims: Sequence[Victim]) -> list[Victim]:
        """Those of *victims* that may go for *evictor*, in the given order."""
        return self.by_sharers(evictor, self.by_tier(evictor, victims).victims)

    def by_tier(self, evictor: Standing, victims: Sequence[Victim]) -> "Agreed":
        """The victims that the first tier with an opinion agrees on."""
        lasts, by_rank = True, self._by_rank[-1]
        flags = zip(self._tiers, self._per_job, self._by_rank, strict=False)
        for tier, per_job, is_by_rank in flags:
            lasts &= per_job
            by_rank &= is_by_rank
            found = (choose(evictor, victims) for choose in tier)
            chosen = [set(each) for each in found if each is not None]
            if chosen:
                agreed = set.intersection(*chosen)
                left = [victim for victim in victims if victim in agreed]
                return Agreed(left, lasts, by_rank)
        return Agreed([], lasts, by_rank)

    def still_agreed(self, victims: Sequence[Victim], gone: Sequence[Victim]) -> bool:
        """Whether ``by_sharers`` would name *victims* again, now that others are gone.

        All of them were named when it was last asked, for an evictor that asks the
        same; where it is not certain, it is to be asked again.
        """
        return all(still(victims, gone) for still in self._still)

    def by_sharers(self, evictor: Standing, agreed: list[Victim]) -> list[Victim]:
        """Those of *agreed* to whom no plugin objects that shares the cluster."""
        for choose in self._sharers:
            if agreed and (found := choose(evictor, agreed)) is not None:
                agreed = found
        return agreed
