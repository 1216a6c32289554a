"""How long jobs ran that have ended, and how long similar jobs will run.

Jobs that state no running time get a prediction: a quantile of the running times of
similar jobs, from the closest similarity of which enough jobs have ended. With n
running times the k-th smallest, k = ceil(q * (n + 1)), is not exceeded by the next one
with probability q at least, if it is drawn like the others, however they are
distributed: the conformal quantile. Nine of ten need nine running times.

Source: Tsafrir, Etsion, Feitelson, "Backfilling Using System-Generated Predictions
Rather than User Runtime Estimates", TPDS 2007, who predict the mean of a user's last
two jobs; Hu et al., "Characterization and Prediction of Deep Learning Workloads in
Large-Scale GPU Datacenters", SC '21 (QSSF), who find similar jobs by user and name.
Where we differ: a quantile, with the number of jobs that it comes from.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Final

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from ringleaf.model.job import Job
from ringleaf.model.run_time import GRID, TOP, RunTime, Similarity, step_of

MOST_RUNS: Final = 64
"""Running times that are kept of similar jobs: the last ones."""
FEWEST_RUNS: Final = 9
"""With fewer, the largest is below the quantile of nine in ten."""
MOST_BYTES: Final = 512 << 10
"""Room for about 3,000 series."""
MOST_STALE: Final = 64
"""Sizes of the past that are worth no tidying up."""
SERIES_BYTES: Final = 96
"""Bytes of a series besides its running times and what the jobs share, about."""


class RunSeries(Struct, frozen=True, cache_hash=True):
    """The last running times of similar jobs; without them, what the jobs share.

    Args:
        by: What the jobs share.
        queue: Their queue.
        user: Their user, if they share it.
        name: Their name without its number, if they share it.
        chips: All chips of each, if they share it.
        steps: Steps of the grid, the oldest first.

    """

    by: Similarity
    queue: str
    user: str = ""
    name: str = ""
    chips: int = 0
    steps: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """About how many bytes it takes with its running times, as JSON too."""
        texts = sum(len(encode(text)) for text in (self.queue, self.user, self.name))
        return SERIES_BYTES + MOST_RUNS + texts

    @property
    def owner(self) -> tuple[str, str]:
        """Whose jobs it is about: of a user in a queue, or of all users there."""
        return self.queue, self.user


class _Share:
    """The series of one owner."""

    def __init__(self, number: int) -> None:
        self.number = number
        """Its place in the order in which owners came."""
        self.keys: dict[RunSeries, None] = {}
        """The one that was added to least lately first."""
        self.size = 0


def chips_in_all(job: Job) -> int:
    """The chips of all pods of *job*, those that have ended well among them.

    Where it is not known what those had, they count like the others.

    >>> from ringleaf.model.job import Role
    >>> from ringleaf.policies.products import PRODUCTS
    >>> roles = Role("w", 8, 2), Role("eval", 4), Role("driver", 0)
    >>> chips_in_all(Job("j", PRODUCTS["atlas-800t-a2"], 8, 3, roles=roles))
    20
    """
    held = sum(role.chips * role.replicas for role in job.roles)
    held = held if job.roles else job.chips * job.replicas
    return held + (job.origin.done_chips or job.chips * len(job.finished))


def _keys_of(job: Job) -> Iterator[RunSeries]:
    """What jobs may share with *job*, the closest first; what is not known is not."""
    chips, user, name = chips_in_all(job), job.origin.user, job.origin.name
    if not chips:
        return
    if name:
        yield RunSeries(Similarity.NAME, job.queue, user, name, chips)
    if user:
        yield RunSeries(Similarity.USER_CHIPS, job.queue, user, chips=chips)
        yield RunSeries(Similarity.USER, job.queue, user)
    yield RunSeries(Similarity.CHIPS, job.queue, chips=chips)


def prediction_words(job: Job, ran_s: float) -> str:
    """From what the end of a job is predicted that has run for so long.

    >>> from msgspec.structs import replace
    >>> from ringleaf.model.run_time import Origin
    >>> from ringleaf.policies.products import PRODUCTS
    >>> origin, lasts = Origin("u17", "llama"), RunTime(60, 90, 41, Similarity.NAME)
    >>> a2 = PRODUCTS["atlas-800t-a2"]
    >>> job = Job("llama-1", a2, 8, 8, origin=origin, run_time=lasts)
    >>> prediction_words(job, 0)
    "median of 41 runs of 'llama' of user 'u17' with 64 chips"
    >>> by_user = replace(job, run_time=RunTime(60, 90, 9, Similarity.USER))
    >>> prediction_words(by_user, 60), prediction_words(by_user, 90)[:21]
    ("9 in 10 of 9 runs of user 'u17'", 'longer than 9 in 10 o')
    >>> by_chips = replace(job, run_time=RunTime(60, 90, 9, Similarity.CHIPS))
    >>> prediction_words(by_chips, 0)
    "median of 9 runs with 64 chips in queue 'default'"
    >>> prediction_words(replace(job, run_time=None), 0)
    ''
    """
    found = job.run_time
    if found is None:
        return ""
    user, name = job.origin.user, job.origin.name
    size = f" with {chips_in_all(job)} chips"
    whose = {
        Similarity.NAME: f" of {name!r}{f' of user {user!r}' * bool(user)}{size}",
        Similarity.USER_CHIPS: f" of user {user!r}{size}",
        Similarity.USER: f" of user {user!r}",
        Similarity.CHIPS: f"{size} in queue {job.queue!r}",
    }
    quantile = "median" if ran_s < found.median_s else "9 in 10"
    longer = "longer than " * (ran_s >= found.most_s)
    return f"{longer}{quantile} of {found.n_runs} runs{whose[found.by]}"


class RunTimes:
    """The running times of jobs that have ended, as far as there is room.

    Without room, the user of a queue with the most bytes loses the series that was
    added to least lately: a user with many names displaces no other's.

    Args:
        size: The most bytes of all series.

    """

    def __init__(self, size: int = MOST_BYTES) -> None:
        self._most_size = size
        self._series: dict[RunSeries, bytes] = {}
        self._shares: dict[tuple[str, str], _Share] = {}
        self._largest: list[tuple[int, int, tuple[str, str]]] = []
        """Sizes of shares as a heap, the largest first; most are of the past."""
        self._n_owners = 0
        self.size = 0
        """About how many bytes are kept."""
        self.learnt = 0
        """How many jobs were counted."""
        self.predicted = 0
        """How many of them had a prediction."""
        self.within = 0
        """How many of those ran no longer than nine in ten were predicted to."""

    def __len__(self) -> int:
        return len(self._series)

    def ended(self, job: Job, ran_s: float) -> None:
        """Count a job that has ended, after *ran_s* seconds."""
        self.learnt += 1
        if job.run_time is not None:
            self.predicted += 1
            self.within += ran_s <= job.run_time.most_s
        step = bytes((step_of(ran_s),))
        for key in _keys_of(job):
            self._put(key, (self._series.get(key, b"") + step)[-MOST_RUNS:])

    def predict(self, job: Job) -> RunTime | None:
        """How long *job* will run, if enough similar jobs have ended.

        >>> from ringleaf.policies.products import PRODUCTS
        >>> known, job = RunTimes(), Job("j", PRODUCTS["atlas-800t-a2"], 8)
        >>> for ran_s in (60, 60, 60, 60, 60, 60, 60, 60):
        ...     known.ended(job, ran_s)
        >>> known.predict(job)
        >>> known.ended(job, 3000)
        >>> known.predict(job)
        RunTime(median_s=64, most_s=4096, n_runs=9, by=<Similarity.CHIPS: 'chips'>)
        """
        for key in _keys_of(job):
            steps = self._series.get(key, b"")
            n = len(steps)
            if n >= FEWEST_RUNS:
                ordered = sorted(steps)
                median, most = ordered[_rank(n, 5) - 1], ordered[_rank(n, 9) - 1]
                return RunTime(GRID[median], GRID[most], n, key.by)
        return None

    @property
    def series(self) -> tuple[RunSeries, ...]:
        """All series, the one that was added to least lately first."""
        return tuple(
            replace(key, steps=tuple(steps)) for key, steps in self._series.items()
        )

    def restore(self, series: Iterable[RunSeries]) -> None:
        """Take over *series* that were written down, where they know more jobs."""
        for each in series:
            key = replace(each, steps=())
            steps = [step for step in each.steps if 0 <= step <= TOP][-MOST_RUNS:]
            if len(steps) > len(self._series.get(key, b"")):
                self._put(key, bytes(steps))

    def _put(self, key: RunSeries, steps: bytes) -> None:
        """Keep *steps*, and forget the oldest series of the largest share."""
        share = self._shares.get(key.owner)
        if share is None:
            self._n_owners += 1
            share = self._shares[key.owner] = _Share(self._n_owners)
        if self._series.pop(key, None) is None:
            self._resize(key, key.size)
        share.keys.pop(key, None)
        self._series[key], share.keys[key] = steps, None
        while self.size > self._most_size:
            self._forget(next(iter(self._largest_share.keys)))

    def _forget(self, key: RunSeries) -> None:
        keys = self._shares[key.owner].keys
        del self._series[key], keys[key]
        self._resize(key, -key.size)
        if not keys:
            del self._shares[key.owner]

    def _resize(self, key: RunSeries, by: int) -> None:
        share = self._shares[key.owner]
        share.size += by
        self.size += by
        heappush(self._largest, (-share.size, share.number, key.owner))
        if len(self._largest) > 2 * len(self._series) + MOST_STALE:
            self._largest = [(-s.size, s.number, o) for o, s in self._shares.items()]
            heapify(self._largest)

    @property
    def _largest_share(self) -> _Share:
        """The share with the most bytes; of several, the one that came first."""
        while True:
            size, number, owner = self._largest[0]
            share = self._shares.get(owner)
            if share is not None and (share.number, -share.size) == (number, size):
                return share
            heappop(self._largest)


def _rank(n: int, tenths: int) -> int:
    """Which of *n* ordered values the next one does not exceed in *tenths* of ten.

    >>> [_rank(n, 9) for n in (9, 10, 19, 64)], _rank(9, 5), _rank(10, 5)
    ([9, 10, 18, 59], 5, 6)
    """
    return -(-tenths * (n + 1) // 10)
