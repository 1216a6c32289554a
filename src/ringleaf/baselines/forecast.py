"""What will be free, as far as the ends of running jobs are known."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

import numpy as np

from ringleaf.framework.context import Context
from ringleaf.framework.reservation import ends_at
from ringleaf.model.job import Job
from ringleaf.model.product import Product
from ringleaf.policies.fit import of_product


class Profile:
    """How many chips, or nodes, will be free from now on, as far as it is known."""

    def __init__(
        self, now: float, free: int, ends: Iterable[tuple[float, int]]
    ) -> None:
        self._times = [now]
        self._free = [free]
        for end, chips in sorted(ends):
            if end > self._times[-1]:
                self._times.append(end)
                self._free.append(self._free[-1])
            self._free[-1] += chips

    def earliest(self, chips: int, lasts: float, after: float) -> float:
        """When *chips* are free for so long, not before *after*; infinite if never."""
        at = max(0, bisect_right(self._times, after) - 1)
        while at < len(self._times):
            start = max(after, self._times[at])
            short = self._short(at, chips, start + lasts)
            if short is None:
                return start
            at = short + 1
        return inf

    def _short(self, at: int, chips: int, until: float) -> int | None:
        """The last step from *at* on, before *until*, with fewer than *chips* free."""
        found = None
        while at < len(self._times) and self._times[at] < until:
            if self._free[at] < chips:
                found = at
            at += 1
        return found

    def next_change(self, now: float) -> float:
        """When more or less is free than *now*."""
        at = bisect_right(self._times, now)
        return self._times[at] if at < len(self._times) else inf

    def take(self, chips: int, start: float, lasts: float) -> None:
        """Take *chips* from *start* on, for *lasts* seconds."""
        for time in (start, start + lasts):
            at = bisect_right(self._times, time)
            if time != inf and self._times[at - 1] != time:
                self._times.insert(at, time)
                self._free.insert(at, self._free[at - 1])
        for at, time in enumerate(self._times):
            if start <= time < start + lasts:
                self._free[at] -= chips


class Need(NamedTuple):
    """What a job asks: chips, and nodes that are wholly free, for how long."""

    chips: int
    nodes: int
    lasts: float

    @classmethod
    def of(cls, job: Job) -> "Need":
        """What *job* asks; pods of more than half a node need one that is free."""
        role_ranks = [(role.chips, len(own)) for role, own in job.role_ranks]
        chips = sum(each * pods for each, pods in role_ranks)
        nodes = sum(pods for each, pods in role_ranks if 2 * each > job.product.chips)
        lasts = inf if job.estimate_s is None else job.estimate_s
        return cls(chips, nodes, lasts)


class CapacityForecast:
    """What will be free of one product: chips, and nodes that are wholly free."""

    def __init__(self, chips: Profile, nodes: Profile) -> None:
        self._chips, self._nodes = chips, nodes

    def earliest(self, need: Need, after: float) -> float:
        """When both are free for as long as it takes, not before *after*."""
        while True:
            start = self._chips.earliest(need.chips, need.lasts, after)
            if start == inf or not need.nodes:
                return start
            after = self._nodes.earliest(need.nodes, need.lasts, start)
            if after in {start, inf}:
                return after

    def next_change(self, now: float) -> float:
        """When more or less is free than *now*."""
        return self._chips.next_change(now)

    def take(self, need: Need, start: float) -> None:
        """Take the chips and nodes of *need* from *start* on."""
        self._chips.take(need.chips, start, need.lasts)
        if need.nodes:
            self._nodes.take(need.nodes, start, need.lasts)


def capacity_forecast(ctx: Context, product: Product) -> CapacityForecast:
    """What is free of *product*, and when running jobs leave more."""
    cluster, now = ctx.state.cluster, ctx.state.now
    own = of_product(cluster, product) & cluster.ready & ~cluster.cordoned
    healthy = cluster.healthy[own]
    usable = cluster.free[own] & healthy
    chips = int(np.bitwise_count(usable).sum())
    nodes = int(((usable == healthy) & (healthy > 0)).sum())
    ends = list(_ends(ctx, product))
    return CapacityForecast(
        Profile(now, chips, ((end, need.chips) for end, need in ends)),
        Profile(now, nodes, ((end, need.nodes) for end, need in ends)),
    )


def _ends(ctx: Context, product: Product) -> Iterator[tuple[float, Need]]:
    """When each running job ends, not before the next second, and what it leaves."""
    for job_state in ctx.state.job_states.values():
        if job_state.placements and job_state.job.product == product:
            end = ends_at(job_state, ctx.state.now)
            if end != inf:
                yield max(end, ctx.state.now + 1), Need.of(job_state.job)
