"""Jobs in columns, and the same jobs one by one.

Workloads are drawn or read in columns, many jobs at a time; the clock takes them one
after the other. Times are told in whole seconds, so that chip-seconds add up exactly,
in whatever order.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from ringleaf.model.job import Job
from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.model.run_time import NO_ORIGIN, Origin
from ringleaf.simulator.shapes import Flags, Ints, JobShaper, Reals
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import Ending, JobSpec, Site, Workload

ENDINGS: Final = (Ending.DONE, Ending.FAILED, Ending.CANCELLED)
DAY_S: Final = 86400.0


class Batch(Struct, frozen=True):
    """Some jobs, a row each.

    Args:
        at: When they come, in any unit and from any beginning, in order.
        runs_s: Seconds that they run.
        chips: Chips that they want.
        ground: The product they go to, by number.
        kind: Their sort, by number.
        ending: How they end, by number.
        common: Whether whole nodes are asked with ``normal-schema``.
        block: Nodes of a logical SuperPoD; 0 for no wish.
        queue: Their queue, by number.
        estimate_s: Seconds they are sure to have ended after; 0 where it is not told.
        origin: Their user and program, by number.

    """

    at: Reals
    runs_s: Ints
    chips: Ints
    ground: Ints
    kind: Ints
    ending: Ints
    common: Flags
    block: Ints
    queue: Ints
    estimate_s: Reals
    origin: Ints | None = None


class Account(Struct, frozen=True):
    """Totals of all jobs, needed before the first job is made."""

    n_jobs: int
    first: float
    last: float
    chip_s: int
    n_cut: int
    largest: int


def account(batches: Iterator[Batch], crowd: JobShaper) -> Account:
    """Count the jobs of *batches*."""
    n_jobs = chip_s = n_cut = largest = 0
    first = last = 0.0
    for batch in batches:
        if not len(batch.at):
            continue
        taken, cut = crowd.taken(batch.ground, batch.chips, batch.block)
        first = first if n_jobs else float(batch.at[0])
        last = float(batch.at[-1])
        n_jobs += len(batch.at)
        chip_s += int((taken * batch.runs_s).sum())
        n_cut += cut
        largest = max(largest, int(batch.chips.max()))
    return Account(n_jobs, first, last, chip_s, n_cut, largest)


Clock = Callable[[Reals], Reals]
"""When jobs come -> seconds since the beginning."""


def straight(first: float, last: float, span_s: float) -> Clock:
    """Times in between stay in proportion; the last is *span_s* after the first."""
    factor = span_s / (last - first) if last > first else 0.0
    return lambda at: (at - first) * factor


def by_day(first: float, last: float, span_s: float, amplitude: float) -> Clock:
    """Arrivals with a daily cycle: more by day than by night.

    The rate is 1 + *amplitude* at six in the morning of a day that begins with the
    first arrival, and 1 - *amplitude* twelve hours later.
    """
    hours = np.linspace(0.0, DAY_S, 1441)
    turn = 2 * np.pi / DAY_S
    come = hours + amplitude / turn * (1 - np.cos(turn * hours))
    come[-1] = DAY_S

    def come_by(seconds: float) -> float:
        days, rest = divmod(seconds, DAY_S)
        return days * DAY_S + float(np.interp(rest, hours, come))

    even = straight(first, last, come_by(span_s))

    def when(at: Reals) -> Reals:
        days, rest = np.divmod(even(at), DAY_S)
        return np.asarray(days * DAY_S + np.interp(rest, come, hours))

    return when


def workload_of(
    batches: Callable[[], Iterator[Batch]],
    site: Site,
    crowd: JobShaper,
    *,
    name: str,
    about: str,
    kinds: Sequence[str],
    load: float | None = None,
    factor: float = 1.0,
    amplitude: float = 0.0,
    queues: Sequence[str] = (DEFAULT_QUEUE,),
    origins: Sequence[Origin] = (NO_ORIGIN,),
    notes: Sequence[str] = (),
) -> Workload:
    """The workload of *batches*, which are made again for each run.

    Arrivals are spread so that the offered load is *load*; without one, so that the
    time between them is *factor* times what it was.
    """
    total = account(batches(), crowd)
    if not total.n_jobs:
        raise BadInput(f"workload {name!r} has no jobs, want at least one")
    span_s = (total.last - total.first) * factor
    if load is not None:
        span_s = total.chip_s / (site.chips * load)
    clock = (
        by_day(total.first, total.last, span_s, amplitude)
        if amplitude
        else straight(total.first, total.last, span_s)
    )
    last = float(clock(np.array([total.last]))[0])
    return Workload(
        name=name,
        about=about,
        job_specs=lambda: _job_specs(
            batches(), crowd, clock, kinds=kinds, queues=queues, origins=origins
        ),
        n_jobs=total.n_jobs,
        span_s=last,
        load=total.chip_s / (site.chips * last) if last else 0.0,
        notes=(*notes, *_cut_note(total, site)),
        queues=tuple(queue for queue in queues if queue != DEFAULT_QUEUE),
    )


def _cut_note(total: Account, site: Site) -> Iterator[str]:
    if total.n_cut:
        jobs = "1 job requests" if total.n_cut == 1 else f"{total.n_cut} jobs request"
        yield (
            f"{jobs} more chips than {site.name} has for them, up to "
            f"{total.largest:,}: cut to fit"
        )


def _job_specs(
    batches: Iterator[Batch],
    crowd: JobShaper,
    clock: Clock,
    *,
    kinds: Sequence[str],
    queues: Sequence[str],
    origins: Sequence[Origin],
) -> Iterator[JobSpec]:
    """The jobs of *batches*, one by one."""
    number = 0
    for batch in batches:
        none = np.zeros(len(batch.at), np.int64)
        rows = zip(
            clock(batch.at).tolist(),
            *(
                column.tolist()
                for column in (
                    *(batch.runs_s, batch.chips, batch.ground, batch.kind),
                    *(batch.ending, batch.common, batch.block, batch.queue),
                    *(batch.estimate_s, none if batch.origin is None else batch.origin),
                )
            ),
            strict=True,
        )
        for at, runs_s, chips, n, kind, end, common, block, queue, *told in rows:
            estimate, origin = told
            ground, shape = crowd.grounds[n], crowd.shape(n, chips, block)
            job = Job(
                name=f"{kinds[kind]}-{number}",
                product=ground.product,
                chips=shape.chips,
                replicas=shape.replicas,
                tor_affinity=ground.label(shape, common=common),
                sp_block=shape.sp_block,
                queue=queues[queue],
                created=at,
                estimate_s=estimate or None,
                origin=origins[origin],
            )
            yield JobSpec(job, at, float(runs_s), ENDINGS[end], kinds[kind])
            number += 1
