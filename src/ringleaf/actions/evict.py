"""Evictions for a whole job: candidates, victims, and the place that is kept.

Nothing is evicted before it is certain that the job then fits, all of it, where its
topology wants it. The place is reserved for it until the victims are gone.

Jobs that ask the same evict one after the other. What is known of the candidates is
therefore kept from one evictor to the next, and only those leave that were evicted; a
search costs what its trials cost, however many candidates there are.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from ringleaf.actions.candidates import Candidates
from ringleaf.actions.end_pods import evict
from ringleaf.actions.victims import Choice
from ringleaf.framework.budget import COST_REFUSED, InterruptedSearch
from ringleaf.framework.changes import EVICTION
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.instruction import Report, Verdict
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.pending_queue import EquivalenceClass
from ringleaf.framework.search_order import SearchOrder
from ringleaf.framework.votes import Ballot
from ringleaf.model.job import Job
from ringleaf.policies.counting import counted, some_of

Pool = Callable[[str], Iterable[JobState]]
"""The jobs that may be evicted for jobs of a queue, as far as queues matter."""


def evictors(cycle: Cycle, action: str) -> Iterator[JobState]:
    """Unschedulable jobs for which something changed since the last search.

    The first of each class, the next when a place was found for the first; then those
    that have a reservation because they waited long. It stops when the search has cost
    as much as it may, and goes on from there in the next cycle.
    """
    progress = cycle.victim_search
    search = progress.resume
    if search is None:
        classes = SearchOrder(job_class for job_class in progress.failed if job_class)
        search = InterruptedSearch(action, classes, set())
    elif search.action == action:
        _add_preceding(cycle, search)
    if search.action != action:
        return
    progress.resume = None
    yield from _first_of_lines(cycle, search)
    if progress.resume is None:
        yield from _overdue(cycle, search)


def _first_of_lines(cycle: Cycle, search: InterruptedSearch) -> Iterator[JobState]:
    """The jobs that wait in classes."""
    progress, action = cycle.victim_search, search.action
    while (job_class := search.classes.pop()) is not None:
        if job_class.searched.get(action) == _tick(cycle):
            continue
        if not _may_go_on(cycle):
            search.classes.push_first(job_class)
            progress.resume = search
            return
        first = job_class.front[1]
        progress.looked += COST_REFUSED + first.facts.selecting
        search.seen.add(first.job.name)
        yield first
        if job_class and job_class.front[1] is first:
            job_class.searched[action] = _tick(cycle)
        else:
            _add_next(cycle, search, job_class)


def _overdue(cycle: Cycle, search: InterruptedSearch) -> Iterator[JobState]:
    """The jobs that have a reservation because they waited long."""
    progress, action = cycle.victim_search, search.action
    reservations = search.reservations
    if reservations is None:
        reservations = [each for each in cycle.reservations if each.aged]
    for at, reservation in enumerate(reservations):
        job_state = cycle.view.job_states.get(reservation.job.name)
        if job_state is None or reservation.searched.get(action) == _tick(cycle):
            continue
        if not _may_go_on(cycle):
            progress.resume = replace(search, reservations=reservations[at:])
            return
        reservation.searched[action] = _tick(cycle)
        progress.looked += COST_REFUSED + job_state.facts.selecting
        yield job_state


def _add_next(
    cycle: Cycle, search: InterruptedSearch, job_class: EquivalenceClass
) -> None:
    """Victims were found for the first job of *job_class*: the next one follows.

    Of a queue that has its share only the first job was passed over; so the next may
    stand in another class.
    """
    queue = job_class.scheduling_key.queue
    if queue in cycle.victim_search.passed_over:
        following = cycle.pending.waiting.first_open(queue)
    else:
        following = job_class or None
    if following is not None and following not in search.classes:
        search.classes.push_first(following)


def _may_go_on(cycle: Cycle) -> bool:
    """Whether a search has cost less than it may in one call."""
    progress = cycle.victim_search
    tries = cycle.slice.allows_tries(progress.looked)
    return tries and cycle.slice.allows(progress.cost)


def add_outranking(cycle: Cycle) -> None:
    """Search again for jobs that outrank pods which were found since, in order."""
    pending, progress = cycle.pending, cycle.victim_search
    outranked, progress.outranked = progress.outranked, {}
    found = [
        job_class
        for queue, priority in outranked.items()
        for pending_queue in (pending.waiting, pending.unadmitted)
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
        key=lambda job_class: (turn[job_class.scheduling_key.queue], job_class.front[0])
    )
    progress.failed = dict.fromkeys(classes)


def _tick(cycle: Cycle) -> int:
    """Moves when victims may be found where there were none."""
    return cycle.changes.tick(*EVICTION)


def _add_preceding(cycle: Cycle, search: InterruptedSearch) -> None:
    """Put classes into an interrupted search whose first job is before those left.

    A job that came or was admitted meanwhile is, if it is before the others of its
    queue; so it does not matter to it where the search was interrupted. No job is
    looked at twice, so the search comes to its end whatever happens.
    """
    progress, classes = cycle.victim_search, search.classes
    if not progress.failed_since:
        return
    first_keys = classes.first_keys()
    found = [
        job_class
        for job_class in progress.failed_since
        if job_class
        and (first := first_keys.get(job_class.scheduling_key.queue)) is not None
        and job_class.front[0] < first
        and job_class.front[1].job.name not in search.seen
    ]
    found.sort(key=lambda job_class: job_class.front[0])
    for job_class in found:
        classes.push_first(job_class)
        del progress.failed_since[job_class]
    progress.failed |= dict.fromkeys(found)


class VictimSearch:
    """The search for victims of one action in one cycle.

    Args:
        cycle: What it works on.
        action: Its name, with its arguments in the configuration.
        ballot: The plugins' votes.
        pool: The jobs whose pods may go, as far as queues matter.

    """

    def __init__(self, cycle: Cycle, action: str, ballot: Ballot, pool: Pool) -> None:
        self.cycle, self.action, self.ballot = cycle, action, ballot
        self.settings = cycle.framework.conf.eviction(action)
        self._pool = pool
        self._moves = _tick(cycle)
        self._pools: dict[str, list[JobState]] = {}
        self._known: tuple[tuple[Job, int], Candidates] | None = None

    def evict_for(self, job_state: JobState) -> bool:
        """Evict the fewest pods so that *job_state* fits; whether a place is kept.

        Only for a job that has not started: a running job that lost pods evicts none.
        """
        cycle = self.cycle
        if job_state.phase is Phase.RUNNING or job_state.job.podless:
            return False
        candidates = self._candidates(job_state)
        found = candidates.fewest(job_state)
        if found is None:
            return False
        chosen, placed = found
        if self.settings.dry_run:
            _preview(cycle, job_state, chosen)
            return False
        if not cycle.placer.is_promised(job_state, placed):
            return False
        cycle.reports.report(
            job_state, Verdict.EVICTS, _words(job_state, chosen, "will")
        )
        reservation = candidates.keep(job_state, placed, chosen)
        for choice in chosen:
            victim = cycle.view.job_states[choice.job]
            evict(cycle, victim, choice.pods, job_state.job.name, self.action)
        candidates.evicted(chosen, reservation)
        return True

    def _candidates(self, job_state: JobState) -> Candidates:
        """Candidates for *job_state*: those of another job with the same request.

        Unless something has moved since, or one of both is known to others by name.
        """
        if self._moves != _tick(self.cycle):
            self._moves = _tick(self.cycle)
            self._pools.clear()
            self._known = None
        key = _key_of(job_state, self.cycle)
        if key is not None and self._known is not None:
            known, found = self._known
            if known == key or (_same_rank(known, key) and found.serves(job_state)):
                return found
        found = Candidates(
            self.cycle,
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
            found.sort(key=self.cycle.framework.votes.job_key, reverse=True)
            self._pools[queue] = found
        return found


def _key_of(job_state: JobState, cycle: Cycle) -> tuple[Job, int] | None:
    """Evictors with the same key have the same candidates; None: no other has."""
    known = job_state.history.evicted_by or job_state.job.name in cycle.reservations
    if known or job_state.placements or job_state.finished or job_state.job.previous:
        return None
    return job_state.facts.scheduling_key, job_state.job.priority


def _same_rank(one: tuple[Job, int], other: tuple[Job, int]) -> bool:
    """Whether two evictors are of the same queue and priority."""
    return (one[0].queue, one[1]) == (other[0].queue, other[1])


def _preview(cycle: Cycle, job_state: JobState, chosen: Sequence[Choice]) -> None:
    """Say which pods would go, if it is news: what is lost grows with time.

    Nor is it which pods of a job would go.
    """
    victims = [(each.job, each.n_pods, bool(each.n_needed)) for each in chosen]
    if job_state.history.previewed != victims:
        job_state.history.previewed = victims
        told = _words(job_state, chosen, "would")
        cycle.reports.out.append(Report(job_state.job.name, Verdict.WOULD_EVICT, told))


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
