"""How the votes of plugins combine.

Some questions go to all plugins alike, some tier by tier. What each answer counts is
Volcano's, so that a configuration means here what it means there.

Source: Volcano ``pkg/scheduler/framework/session_plugins.go``. Where we differ: a tier
that agrees on no victim ends the round, while Volcano goes on to the next tier if it
was the first plugin that named no victim. Victims of other queues must suit the plugins
that share the cluster between queues, also those of later tiers: in Volcano gangs stay
where they are, here they may go whole.

The plugin ``affinity`` has no hooks about nodes: a session places by its rules in any
case (D18), and weighs its ranks against the scores of the others itself (D26).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from msgspec import Struct

from ringleaf.config.conf import PluginConf
from ringleaf.framework.job_state import JobState
from ringleaf.framework.plugin import (
    EVENTS,
    HOOKS,
    Nodes,
    Plugin,
    Scores,
    Victim,
    Vote,
    defines,
    judges,
)
from ringleaf.framework.state import Handler, SchedulerState
from ringleaf.model.amounts import Amounts
from ringleaf.model.arrays import Flags
from ringleaf.model.cluster import Holding
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.queue import Queue

Victims = Callable[[JobState, Sequence[Victim]], list[Victim] | None]
Opinion = Callable[[JobState], Vote]


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
        view: SchedulerState,
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

        self._tiers = {
            vote: [[getattr(each, hook) for each in tier] for tier in by_tier(vote)]
            for vote, hook in HOOKS.items()
        }
        """Vote → the hooks of the plugins that have it, tier by tier."""
        self._hooks = {
            vote: [hook for tier in tiers for hook in tier]
            for vote, tiers in self._tiers.items()
        }
        """Vote → the same hooks, in one list."""
        self._counting = [
            each.effective_demand
            for each in self.plugins.values()
            if defines(type(each), "effective_demand")
        ]
        """The hooks of the plugins that say what of a demand counts."""
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
        filters = (type(each) for each in voters("Predicate"))
        self.filters_once_per_role = all(
            judges(k, "per_role", "Predicate") for k in filters
        )
        """Whether every plugin filters nodes for all pods of a role at once."""
        self._view = view
        listeners = map(_Listener, self.plugins.values())
        self._handlers: list[Handler] = [each for each in listeners if each]
        view.handlers.extend(self._handlers)

    def retire(self) -> None:
        """Notify the plugins of no more pods: another configuration takes over."""
        for handler in self._handlers:
            self._view.handlers.remove(handler)

    def job_valid(self, job_state: JobState) -> str | None:
        """Why the job can never be placed, by the first plugin that says so."""
        found: Iterable[str | None]
        found = (valid(job_state) for valid in self._hooks["JobValid"])
        return next((refusal for refusal in found if refusal is not None), None)

    def job_key(self, job_state: JobState) -> tuple[Any, ...]:
        """Where the job stands among those of its queue; the lowest is next.

        The first plugin that tells two jobs apart decides; then the older job, then
        the one that came first.
        """
        job = job_state.job
        keys = [order(job_state) for order in self._hooks["JobOrder"]]
        return (*keys, job.created, job_state.number, job.name)

    def queue_key(self, queue: Queue) -> tuple[Any, ...]:
        """Where the queue stands among queues; the lowest is next."""
        return (*[order(queue) for order in self._hooks["QueueOrder"]], queue.name)

    def predicate(self, job: Job, role: Role) -> Flags | None:
        """The nodes that no plugin refuses to a pod.

        None where none refuses any.
        """
        found = (predicate(job, role) for predicate in self._hooks["Predicate"])
        allowed = [flags for flags in found if flags is not None]
        return np.logical_and.reduce(allowed) if allowed else None

    def node_scores(self, job: Job, role: Role, nodes: Nodes) -> Scores | None:
        """The scores of all plugins for *nodes*, added up.

        None where no plugin scores.
        """
        found = (order(job, role, nodes) for order in self._hooks["NodeOrder"])
        scores = [each for each in found if each is not None]
        total = None
        for each in scores:
            total = each if total is None else total + each
        return total

    def job_ready(self, job_state: JobState) -> bool:
        """Whether enough pods have a place, to every plugin."""
        return all(ready(job_state) for ready in self._hooks["JobReady"])

    def job_pipelined(self, job_state: JobState) -> bool:
        """Whether enough pods have or await a place, and no plugin objects."""
        return _permitted(self._tiers["JobPipelined"], job_state)

    def job_enqueueable(self, job_state: JobState) -> bool:
        """Whether to admit the job: no plugin objects."""
        return _permitted(self._tiers["JobEnqueueable"], job_state)

    def job_enqueued(self, job_state: JobState) -> None:
        """Notify every plugin that the job was admitted."""
        for told in self._hooks["JobEnqueued"]:
            told(job_state)

    def job_starving(self, job_state: JobState) -> bool:
        """Whether others may be evicted for the job.

        The first tier with an opinion decides, and all in it must agree; without any,
        no job may.
        """
        opinions = next(iter(self._tiers["JobStarving"]), ())
        return bool(opinions) and all(starving(job_state) for starving in opinions)

    def overused(self, queue: Queue) -> bool:
        """Whether the queue has its share or more, to any plugin."""
        return any(over(queue) for over in self._hooks["Overused"])

    def allocatable(self, queue: Queue, amounts: Amounts) -> bool:
        """Whether the queue may take a pod that uses *amounts*, to every plugin."""
        return all(may(queue, amounts) for may in self._hooks["Allocatable"])

    def effective_demand(self, demand: Demand) -> Demand | None:
        """What counts of *demand*, by the first plugin that has a say in it."""
        found = (effective(demand) for effective in self._counting)
        return next((each for each in found if each is not None), None)

    def queue_limits(self, queue: Queue) -> dict[str, int]:
        """What *queue* may use now, by the strictest plugin."""
        return _least(each.queue_limits(queue) for each in self.plugins.values())

    def admission_limits(self, queue: Queue) -> dict[str, int]:
        """What jobs of *queue* may use that are admitted, by the strictest plugin."""
        return _least(each.admission_limits(queue) for each in self.plugins.values())

    @property
    def sums_scores(self) -> bool:
        """Whether the affinity rank is a score among others, to any plugin."""
        return any(each.sums_scores for each in self.plugins.values())

    def preemptive(self, queue: Queue, amounts: Amounts) -> bool:
        """Whether others may be evicted for such a pod, to every plugin."""
        return all(may(queue, amounts) for may in self._hooks["Preemptive"])


def _least(limits: Iterable[Amounts]) -> dict[str, int]:
    """The lowest of several limits of each resource."""
    found: dict[str, int] = {}
    for each in limits:
        for name, amount in each.items():
            found[name] = min(amount, found.get(name, amount))
    return found


def _class_of(conf: PluginConf, classes: Mapping[str, type[Plugin]]) -> type[Plugin]:
    if conf.plugin is None:
        return classes[conf.name]
    return cast("type[Plugin]", conf.plugin)  # cli/plugins.py accepts no other


class _Seat(Struct, frozen=True):
    """A plugin and how it is configured."""

    conf: PluginConf
    plugin: Plugin

    def votes_in(self, vote: str) -> bool:
        return vote in self.conf.votes and defines(type(self.plugin), HOOKS[vote])


class _Listener:
    """A plugin that is notified of pods that come, that go, or of both."""

    def __init__(self, plugin: Plugin) -> None:
        self._told = {
            by: getattr(plugin, event)
            for by, event in zip((1, -1), EVENTS, strict=True)
            if defines(type(plugin), event)
        }

    def __bool__(self) -> bool:
        return bool(self._told)

    def __call__(
        self, job_state: JobState, holding: Holding, amounts: dict[str, int], by: int
    ) -> None:
        if by in self._told:
            self._told[by](job_state, holding, amounts)


def _permitted(tiers: Iterable[Iterable[Opinion]], job_state: JobState) -> bool:
    """One objection refuses; a permit ends the round after its tier."""
    for tier in tiers:
        permitted = False
        for opinion in tier:
            vote = opinion(job_state)
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
    """The votes of plugins on which pods may be evicted.

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
            all(judges(type(each), "per_job", vote) for each in tier) for tier in asked
        ]
        self._by_rank = [
            all(judges(type(each), "by_rank", vote) for each in tier) for tier in asked
        ]
        self.per_job = all(self._per_job)
        """Whether every plugin judges each job by itself."""
        self._still = [
            each.still_reclaimable
            for each in asked[-1]
            if not judges(type(each), "per_job", vote)
        ]

    def __call__(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """Those of *victims* that may go for *evictor*, in the given order."""
        return self.by_sharers(evictor, self.by_tier(evictor, victims).victims)

    def by_tier(self, evictor: JobState, victims: Sequence[Victim]) -> "Agreed":
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

    def by_sharers(self, evictor: JobState, agreed: list[Victim]) -> list[Victim]:
        """Those of *agreed* that no plugin objects to that shares the cluster."""
        for choose in self._sharers:
            if agreed and (found := choose(evictor, agreed)) is not None:
                agreed = found
        return agreed
