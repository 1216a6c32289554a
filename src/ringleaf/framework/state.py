"""The scheduler's state: the cluster, the queues, every job, the time.

It also keeps ``QueueUsage``: what each queue uses, and what its jobs request. The
cluster tells it of every pod that comes and goes, also of those that are tried and
taken back, so the usage is right at any moment.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np
from msgspec.structs import replace

from ringleaf.framework.job_state import JobState, Phase
from ringleaf.model.amounts import NONE, Amounts, add, take
from ringleaf.model.cluster import Cluster, Holding
from ringleaf.model.demand import UNLIMITED
from ringleaf.model.job import Job, Role
from ringleaf.model.mask import full_mask
from ringleaf.model.node_resources import exact_sum
from ringleaf.model.owner import Owner
from ringleaf.model.queue import DEFAULT_QUEUE, Queue
from ringleaf.model.settings import Settings
from ringleaf.policies.fit import takes_pods

Handler = Callable[[JobState, Holding, dict[str, int], int], None]
"""Called for every pod that comes (1) or goes (-1), with what it uses."""


class QueueUsage:
    """What the jobs of one queue use and ask."""

    def __init__(self) -> None:
        self.allocated: dict[str, int] = {}
        """What pods use that run or are about to."""
        self.requested: dict[str, int] = {}
        """What all pods ask that have not ended, running ones among them."""
        self.jobs: dict[str, JobState] = {}
        """Its jobs, in the order of arrival."""
        self.dirty: dict[str, JobState] = {}
        """Jobs to count anew when ``inqueue`` or ``elastic`` is next asked for.

        Their pods come and go in trials, and neither is asked for in between.
        """
        self._inqueue: dict[str, int] = {}
        self._elastic: dict[str, int] = {}
        self._inqueue_of_job: dict[str, Amounts] = {}
        self._elastic_of_job: dict[str, Amounts] = {}

    @property
    def inqueue(self) -> dict[str, int]:
        """What admitted jobs still need before they can start."""
        if self.dirty:
            self._settle()
        return self._inqueue

    @inqueue.setter
    def inqueue(self, amounts: dict[str, int]) -> None:
        self._inqueue = amounts

    @property
    def elastic(self) -> dict[str, int]:
        """What running jobs use beyond what they need to go on."""
        if self.dirty:
            self._settle()
        return self._elastic

    def _settle(self) -> None:
        """Count anew what jobs add to ``inqueue`` and ``elastic``."""
        for job_state in self.dirty.values():
            self._settle_job(job_state)
        self.dirty = {}

    def _settle_job(self, job_state: JobState) -> None:
        name, least = job_state.job.name, job_state.facts.min_resources
        used = job_state.allocated
        if name in self._inqueue_of_job or name in self._elastic_of_job:
            self._drop(name)
        if job_state.phase is Phase.INQUEUE:
            owed = {r: max(0, n - used.get(r, 0)) for r, n in least.items()}
            self._inqueue_of_job[name] = owed
            add(self._inqueue, owed)
        if used and job_state.facts.effective_min < job_state.facts.n_pods:
            spare = {r: max(0, n - least.get(r, 0)) for r, n in used.items()}
            self._elastic_of_job[name] = spare
            add(self._elastic, spare)

    def _drop(self, name: str) -> None:
        take(self._inqueue, self._inqueue_of_job.pop(name, NONE))
        take(self._elastic, self._elastic_of_job.pop(name, NONE))

    def inqueue_of(self, counts: Callable[[str], bool]) -> dict[str, int]:
        """What of ``inqueue`` some of its jobs need."""
        found: dict[str, int] = {}
        for name, owed in self._inqueue_of_job.items():
            if counts(name):
                add(found, owed)
        return found

    def forget(self, job_state: JobState) -> None:
        """A job of the queue is gone."""
        name = job_state.job.name
        del self.jobs[name]
        self.dirty.pop(name, None)
        self._drop(name)


class SchedulerState:
    """The state that plugins vote on; they read it and nothing else."""

    def __init__(
        self, cluster: Cluster, settings: Settings, queues: Iterable[Queue] = ()
    ) -> None:
        self.settings = settings
        self.queues = {DEFAULT_QUEUE: Queue(DEFAULT_QUEUE)}
        self.queues |= {queue.name: queue for queue in queues}
        self.job_states: dict[str, JobState] = {}
        self.queue_usage: defaultdict[str, QueueUsage] = defaultdict(QueueUsage)
        """The account of each queue, opened when it is first asked for."""
        self.now = 0.0
        self.version = 0
        """Moves with every change of accounts, queues or nodes."""
        self.demand_version = 0
        """Moves when what all jobs ask changes, or queues or nodes do."""
        self.handlers: list[Handler] = []
        self.unnamed: int | None = None
        """The limit of a resource that no node lists: 0, or None for unlimited."""
        self.cluster = cluster
        self.use_cluster(cluster)

    def use_cluster(self, cluster: Cluster) -> None:
        """Look at *cluster* from now on; its pods must be those of before."""
        self.cluster = cluster
        cluster.watchers.append(self._on_pod)
        self._recount()
        self.recount_totals()

    def _recount(self) -> None:
        """Count anew what pods use; a node may be another product than it was."""
        for account in self.queue_usage.values():
            account.allocated = {}
        for name, job_state in self.job_states.items():
            job_state.allocated = {}
            for holding in self.cluster.holdings.get(name, ()):
                if holding.replica not in job_state.terminating:
                    add(job_state.allocated, amounts_of(self.cluster, holding))
            account = self.queue_usage[job_state.job.queue]
            add(account.allocated, job_state.allocated)
            account.dirty[name] = job_state

    def recount_totals(self) -> None:
        """Count anew what all nodes have."""
        self.total = total_of(self.cluster)
        lists_all = (
            len(self.cluster) > 0
            and not self.cluster.node_table.resources.unnamed.any()
        )
        self.unnamed = 0 if lists_all else None
        self._note_demand()

    def put_queue(self, queue: Queue) -> None:
        """A queue is new or changed."""
        self.queues[queue.name] = queue
        self._note_demand()

    def remove_queue(self, queue: str) -> None:
        """A queue is no longer there."""
        self.queues.pop(queue, None)
        self._close_account(queue)
        self._note_demand()

    def _note_demand(self) -> None:
        """What all jobs ask has changed, or queues or nodes have."""
        self.version += 1
        self.demand_version += 1

    @contextmanager
    def counting_inqueue_of(
        self, counts: Callable[[str], bool]
    ) -> Iterator[dict[str, int]]:
        """As if only some of the admitted jobs waited; what they need together."""
        queue_usage = self.queue_usage.values()
        kept = [(each, each.inqueue) for each in queue_usage if each.inqueue]
        total: dict[str, int] = {}
        for account, _inqueue in kept:
            account.inqueue = account.inqueue_of(counts)
            add(total, account.inqueue)
        try:
            yield total
        finally:
            for account, inqueue in kept:
                account.inqueue = inqueue

    def enter(self, job_state: JobState) -> None:
        """A job arrives."""
        job = job_state.job
        self.job_states[job.name] = job_state
        account = self.queue_usage[job.queue]
        account.jobs[job.name] = job_state
        add(account.requested, job_state.facts.total)
        if job_state.allocated or job_state.phase is Phase.INQUEUE:
            add(account.allocated, job_state.allocated)
            account.dirty[job.name] = job_state
        self._note_demand()

    def enter_running(self, job_state: JobState) -> None:
        """A job arrives whose pods hold something already.

        The cluster has notified of those pods before, when the job was not known.
        """
        holdings = self.cluster.holdings[job_state.job.name]
        amounts = [amounts_of(self.cluster, holding) for holding in holdings]
        job_state.phase = Phase.RUNNING
        for each in amounts:
            add(job_state.allocated, each)
        self.enter(job_state)
        for holding, used in zip(holdings, amounts, strict=True):
            for handler in self.handlers:
                handler(job_state, holding, used, 1)

    def respec(self, job_state: JobState, job: Job) -> None:
        """A job has another spec; its pods stay where they are."""
        self.leave(job_state)
        job_state.become(job)
        self.enter(job_state)

    def leave(self, job_state: JobState) -> None:
        """A job is gone, with what it asked and used."""
        job = job_state.job
        del self.job_states[job.name]
        account = self.queue_usage[job.queue]
        account.forget(job_state)
        take(account.requested, job_state.facts.total)
        take(account.allocated, job_state.allocated)
        self._close_account(job.queue)
        self._note_demand()

    def _close_account(self, queue: str) -> None:
        """Drop the account of a queue that does not exist and has no jobs.

        Jobs may name any queue, so the accounts of such queues go with the jobs.
        """
        account = self.queue_usage.get(queue)
        if account is not None and not account.jobs and queue not in self.queues:
            del self.queue_usage[queue]

    def set_phase(self, job_state: JobState, phase: Phase) -> None:
        """A job comes to *phase*."""
        job_state.phase = phase
        job = job_state.job
        self.queue_usage[job.queue].dirty[job.name] = job_state
        self.version += 1

    def mark_succeeded(self, job_state: JobState, replicas: Iterable[int]) -> bool:
        """Pods ended well; they ask for nothing any more. Whether that is news."""
        before = len(job_state.finished)
        asked = job_state.finish(replicas)
        account = self.queue_usage[job_state.job.queue]
        take(account.requested, asked)
        account.dirty[job_state.job.name] = job_state
        self._note_demand()
        return len(job_state.finished) > before

    def mark_terminating(self, job_state: JobState, replicas: Iterable[int]) -> bool:
        """Pods are asked to end: they hold what they hold, and no longer count.

        Whether that is news of any of them.
        """
        new = job_state.placements.keys() & {*replicas} - job_state.terminating
        for holding in self.cluster.holdings.get(job_state.job.name, ()):
            if holding.replica in new:
                self._on_pod(job_state.job.name, holding, -1)
        job_state.terminating |= new
        return bool(new)

    def _on_pod(self, owner: Owner, holding: Holding, by: int) -> None:
        """Add or subtract a pod's usage, and notify plugins."""
        job_state = self.job_states.get(owner) if isinstance(owner, str) else None
        if job_state is None or holding.replica in job_state.terminating:
            return
        amounts, own = amounts_of(self.cluster, holding), job_state.allocated
        account = self.queue_usage[job_state.job.queue]
        for name, amount in amounts.items():
            own[name] = own.get(name, 0) + by * amount
            account.allocated[name] = account.allocated.get(name, 0) + by * amount
        account.dirty[job_state.job.name] = job_state
        self.version += 1
        for handler in self.handlers:
            handler(job_state, holding, amounts, by)


def amounts_of(cluster: Cluster, holding: Holding) -> dict[str, int]:
    """What a pod uses: its chips, as its product counts them, and the rest."""
    if holding.charged is not None:
        return dict(holding.charged)
    amounts = dict(holding.demand.resources)
    if holding.chips:
        chips = cluster.products[cluster.product.item(holding.node)].resource
        amounts[chips] = amounts.get(chips, 0) + 1000 * holding.chips.bit_count()
    return amounts


def charged(
    cluster: Cluster, node: int, chips: int, asked: Role | Job
) -> tuple[tuple[str, int], ...] | None:
    """What the queue of a pod that was bound by others is charged.

    That is what the pod *asked*, but no more than its *node* has: it cannot use more.
    None where that is what it holds. Its annotation may name other *chips* than it has,
    or none.
    """
    most = cluster.node_table.resources.most(node, asked.demand)
    n_chips = min(asked.chips, cluster.size.item(node))
    if most is None and n_chips == chips.bit_count():
        return None
    counted = asked.demand if most is None else replace(asked.demand, resources=most)
    holding = Holding(node, full_mask(n_chips), demand=counted)
    return tuple(amounts_of(cluster, holding).items())


def free_chips(cluster: Cluster) -> dict[str, int]:
    """The chips that no job holds, of nodes that take pods, in thousandths."""
    count = np.where(
        takes_pods(cluster), np.bitwise_count(cluster.free & cluster.healthy), 0
    )
    free: dict[str, int] = {}
    for i, product in enumerate(cluster.products):
        chips = int(count[cluster.product == i].sum())
        add(free, {product.resource: 1000 * chips} if product.chips else NONE)
    return free


def total_of(cluster: Cluster) -> dict[str, int]:
    """What all nodes that take pods have for them, in thousandths.

    A resource that some node has without limit is not counted.
    """
    total: dict[str, int] = {}
    for i, product in enumerate(cluster.products):
        if not product.chips:
            continue
        chips = cluster.allocatable[(cluster.product == i) & cluster.ready].sum()
        total[product.resource] = total.get(product.resource, 0) + 1000 * int(chips)
    table = cluster.node_table
    for row, name in enumerate(table.resources.names):
        have = table.resources.allocatable[row]
        if (have < UNLIMITED // 2).all():
            total[name] = total.get(name, 0) + exact_sum(have[cluster.ready])
    return total
