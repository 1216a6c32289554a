"""Evictions for a whole job: ``preempt`` and ``reclaim``, and the place that is kept.

Nothing is evicted before it is certain that the job then fits, all of it, where its
topology needs it. The place is reserved for it until the victims are gone.

Jobs with the same request evict one after the other. What is known of the candidates is
therefore kept from one evictor to the next, and only those leave that were evicted; a
search costs what its trials cost, however many candidates there are.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from ringleaf.actions.candidates import Candidates
from ringleaf.actions.end_pods import evict
from ringleaf.actions.victims import Choice
from ringleaf.framework.budget import COST_REFUSED, InterruptedSearch
from ringleaf.framework.changes import EVICTION
from ringleaf.framework.context import Context
from ringleaf.framework.instruction import Report, Verdict
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.pending_queue import EquivalenceClass
from ringleaf.framework.search_order import SearchOrder
from ringleaf.framework.votes import Ballot
from ringleaf.model.job import Job
from ringleaf.policies.words import counted, some_of

Pool = Callable[[str], Iterable[JobState]]
"""The jobs that may be evicted for jobs of a queue, as far as queues matter."""


def evictors(ctx: Context, action: str) -> Iterator[JobState]:
    """Unschedulable jobs for which something changed since the last search.

    The first of each class, the next when a place was found for the first; then those
    that have a reservation because they waited long. It stops when the search has cost
    as much as it may, and goes on from there in the next cycle.
    """
    progress = ctx.victim_search
    search = progress.resume
    if search is None:
        classes = SearchOrder(job_class for job_class in progress.failed if job_class)
        search = InterruptedSearch(action, classes, set())
    elif search.action == action:
        _add_preceding(ctx, search)
    if search.action != action:
        return
    progress.resume = None
    yield from _first_of_classes(ctx, search)
    if progress.resume is None:
        yield from _overdue(ctx, search)


def _first_of_classes(ctx: Context, search: InterruptedSearch) -> Iterator[JobState]:
    """The jobs that wait in classes."""
    progress, action = ctx.victim_search, search.action
    while (job_class := search.classes.pop()) is not None:
        if job_class.searched.get(action) == _generation(ctx):
            continue
        if not _may_go_on(ctx):
            search.classes.push_first(job_class)
            progress.resume = search
            return
        first = job_class.first_job
        progress.looked += COST_REFUSED + first.facts.filter_cost
        search.seen.add(first.job.name)
        yield first
        if job_class and job_class.first_job is first:
            job_class.searched[action] = _generation(ctx)
        else:
            _add_next(ctx, search, job_class)


def _overdue(ctx: Context, search: InterruptedSearch) -> Iterator[JobState]:
    """The jobs that have a reservation because they waited long."""
    progress, action = ctx.victim_search, search.action
    reservations = search.reservations
    if reservations is None:
        reservations = [each for each in ctx.reservations if each.aged]
    for at, reservation in enumerate(reservations):
        job_state = ctx.state.job_states.get(reservation.job.name)
        if job_state is None or reservation.searched.get(action) == _generation(ctx):
            continue
        if not _may_go_on(ctx):
            progress.resume = replace(search, reservations=reservations[at:])
            return
        reservation.searched[action] = _generation(ctx)
        progress.looked += COST_REFUSED + job_state.facts.filter_cost
        yield job_state


def _add_next(
    ctx: Context, search: InterruptedSearch, job_class: EquivalenceClass
) -> None:
    """Victims were found for the first job of *job_class*: the next one follows.

    Of a queue that has its share only the first job was passed over; so the next may
    stand in another class.
    """
    queue = job_class.scheduling_key.queue
    if queue in ctx.victim_search.passed_over:
        following = ctx.pending.admitted.first_open(queue)
    else:
        following = job_class or None
    if following is not None and following not in search.classes:
        search.classes.push_first(following)


def _may_go_on(ctx: Context) -> bool:
    """Whether a search has cost less than it may in one call."""
    progress = ctx.victim_search
    tries = ctx.budget.allows_tries(progress.looked)
    return tries and ctx.budget.allows_search(progress.cost)


def add_outranking(ctx: Context) -> None:
    """Search again for jobs that outrank pods which were found since, in order."""
    pending, progress = ctx.pending, ctx.victim_search
    outranked, progress.outranked = progress.outranked, {}
    found = [
        job_class
        for queue, priority in outranked.items()
        for pending_queue in (pending.admitted, pending.unadmitted)
        for job_class in pending_queue.closed_above(queue, priority)
    ]
    if not found:
        return
    if progress.resume is not None:
        for job_class in found:
            progress.fail(job_class)
        return
    classes = [
        job_class for job_class in progress.failed | dict.fromkeys(found) if job_class
    ]
    queues = dict.fromkeys(job_class.scheduling_key.queue for job_class in classes)
    turn = {queue: number for number, queue in enumerate(queues)}
    classes.sort(
        key=lambda job_class: (
            turn[job_class.scheduling_key.queue],
            job_class.first_key,
        )
    )
    progress.failed = dict.fromkeys(classes)


def _generation(ctx: Context) -> int:
    """Moves when victims may be found where there were none."""
    return ctx.wakeups.changes.generation(*EVICTION)


def _add_preceding(ctx: Context, search: InterruptedSearch) -> None:
    """Put classes into an interrupted search whose first job is before those left.

    A job that came or was admitted meanwhile is, if it is before the others of its
    queue; so it does not matter to it where the search was interrupted. No job is
    looked at twice, so the search comes to its end whatever happens.
    """
    progress, classes = ctx.victim_search, search.classes
    if not progress.failed_for_next_search:
        return
    first_keys = classes.first_keys()
    found = [
        job_class
        for job_class in progress.failed_for_next_search
        if job_class
        and (first := first_keys.get(job_class.scheduling_key.queue)) is not None
        and job_class.first_key < first
        and job_class.first_job.job.name not in search.seen
    ]
    found.sort(key=lambda job_class: job_class.first_key)
    for job_class in found:
        classes.push_first(job_class)
        del progress.failed_for_next_search[job_class]
    progress.failed |= dict.fromkeys(found)


class VictimSearch:
    """The search for victims of one action in one cycle.

    Args:
        ctx: The parts of the scheduler.
        action: Its name, with its arguments in the configuration.
        ballot: The plugins' votes.
        pool: The jobs whose pods may go, as far as queues matter.

    """

    def __init__(self, ctx: Context, action: str, ballot: Ballot, pool: Pool) -> None:
        self.ctx, self.action, self.ballot = ctx, action, ballot
        self.settings = ctx.framework.conf.eviction(action)
        self._pool = pool
        self._searched_at = _generation(ctx)
        self._pools: dict[str, list[JobState]] = {}
        self._known: tuple[tuple[Job, int], Candidates] | None = None

    def evict_for(self, job_state: JobState) -> bool:
        """Evict the fewest pods so that *job_state* fits; whether a place is kept.

        Only for a job that has not started: a running job that lost pods evicts none.
        """
        ctx = self.ctx
        if job_state.phase is Phase.RUNNING or job_state.job.podless:
            return False
        candidates = self._candidates(job_state)
        found = candidates.fewest(job_state)
        if found is None:
            return False
        chosen, placed = found
        if self.settings.dry_run:
            _preview(ctx, job_state, chosen)
            return False
        if not ctx.placer.pipeline(job_state, placed):
            return False
        ctx.reports.report(job_state, Verdict.EVICTS, _words(job_state, chosen, "will"))
        reservation = candidates.keep(job_state, placed, chosen)
        for choice in chosen:
            victim = ctx.state.job_states[choice.job]
            evict(ctx, victim, choice.pods, job_state.job.name, self.action)
        candidates.evicted(chosen, reservation)
        return True

    def _candidates(self, job_state: JobState) -> Candidates:
        """Candidates for *job_state*: those of another job with the same request.

        Unless something has moved since, or one of both is known to others by name.
        """
        if self._searched_at != _generation(self.ctx):
            self._searched_at = _generation(self.ctx)
            self._pools.clear()
            self._known = None
        key = _key_of(job_state, self.ctx)
        if key is not None and self._known is not None:
            known, found = self._known
            if known == key or (_same_rank(known, key) and found.serves(job_state)):
                return found
        found = Candidates(
            self.ctx,
            self.ballot,
            job_state,
            self._running(job_state.job.queue),
            self.settings.min_run_s,
        )
        self._known = None if key is None else (key, found)
        return found

    def _running(self, queue: str) -> list[JobState]:
        """The jobs that may go for one of *queue*, the last in their order first."""
        found = self._pools.get(queue)
        if found is None:
            every_job = [*self._pool(queue)]
            found = [
                other
                for other in every_job
                if other.placements
                and other.started is not None
                and other.job.preemptable
            ]
            found.sort(key=self.ctx.framework.votes.job_key, reverse=True)
            self._pools[queue] = found
        return found


def _key_of(job_state: JobState, ctx: Context) -> tuple[Job, int] | None:
    """Evictors with the same key have the same candidates; None: no other has."""
    known = job_state.history.evicted_by or job_state.job.name in ctx.reservations
    if known or job_state.placements or job_state.finished or job_state.job.previous:
        return None
    return job_state.facts.scheduling_key, job_state.job.priority


def _same_rank(one: tuple[Job, int], other: tuple[Job, int]) -> bool:
    """Whether two evictors are of the same queue and priority."""
    return (one[0].queue, one[1]) == (other[0].queue, other[1])


def _preview(ctx: Context, job_state: JobState, chosen: Sequence[Choice]) -> None:
    """Say which pods would go, if it is news: what is lost grows with time.

    Nor is it which pods of a job would go.
    """
    victims = [(each.job, each.n_pods, bool(each.n_needed)) for each in chosen]
    if job_state.history.previewed != victims:
        job_state.history.previewed = victims
        message = _words(job_state, chosen, "would")
        ctx.reports.emit(Report(job_state.job.name, Verdict.WOULD_EVICT, message))


def _words(job_state: JobState, chosen: Sequence[Choice], verb: str) -> str:
    """Which jobs lose pods, and what is lost."""
    if not chosen:
        return f"job {job_state.job.name!r} {verb} wait for pods that are ending"
    pods = sum(choice.n_pods for choice in chosen)
    lost = sum(choice.loss for choice in chosen)
    named = (f"{each.job!r}{' (surplus)' * (not each.n_needed)}" for each in chosen)
    jobs = some_of(named, 4)
    return (
        f"job {job_state.job.name!r} {verb} evict {counted(pods, 'pod')} of "
        f"{jobs}; {lost:,.0f} chip-seconds are lost"
    )


def preempt(ctx: Context) -> None:
    """For every unschedulable job, as the plugins allow."""

    def same_queue(queue: str) -> Iterable[JobState]:
        return ctx.state.queue_usage[queue].jobs.values()

    search = VictimSearch(ctx, "preempt", ctx.framework.votes.preemptable, same_queue)
    add_outranking(ctx)
    for job_state in evictors(ctx, search.action):
        if job_state.job.preempts and ctx.framework.votes.job_starving(job_state):
            search.evict_for(job_state)


def reclaim(ctx: Context) -> None:
    """For every unschedulable job whose queue may, as the plugins allow."""
    others = partial(_others, ctx)
    search = VictimSearch(ctx, "reclaim", ctx.framework.votes.reclaimable, others)
    for job_state in evictors(ctx, search.action):
        if _may_reclaim(ctx, job_state):
            search.evict_for(job_state)


def _may_reclaim(ctx: Context, job_state: JobState) -> bool:
    queue = ctx.state.queues.get(job_state.job.queue)
    return (
        queue is not None
        and ctx.framework.votes.job_starving(job_state)
        and not ctx.framework.votes.overused(queue)
        and ctx.framework.votes.preemptive(queue, job_state.facts.min_resources)
    )


def _others(ctx: Context, queue: str) -> list[JobState]:
    """Jobs of other queues, which give back what they have beyond their share."""
    queues = ctx.state.queues
    return [
        other
        for name, account in ctx.state.queue_usage.items()
        if name != queue and name in queues and queues[name].reclaimable
        for other in account.jobs.values()
    ]
