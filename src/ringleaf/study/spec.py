"""A run by names alone: what another process or machine needs to play it.

Everything that a run depends on stands in its ``Spec``; the same one always gives the
same result.
"""

from hashlib import blake2s
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.baselines.registry import OURS, baseline
from ringleaf.framework.conf import DEFAULT, Conf
from ringleaf.simulator.clock import play
from ringleaf.simulator.metrics import SERIES, Metrics
from ringleaf.simulator.sites import site, with_queues
from ringleaf.simulator.trial import Site, Trial, Workload
from ringleaf.simulator.workloads import USUAL_LOAD, workload

Plain = dict[str, Any]


class Spec(Struct, frozen=True):
    """One run.

    Args:
        site: The cluster: a preset.
        workload: The jobs: a preset.
        policy: Who chooses nodes and chips.
        order: Who is next; None is as configured.
        seed: Of the jobs, and of what the policy draws.
        load: Offered load of the jobs.
        jobs: How many; None is as many as the preset has.
        contention: Share of the time that jobs communicate; 0 slows nobody down.

    """

    site: str
    workload: str
    policy: str = OURS
    order: str | None = None
    seed: int = 0
    load: float = USUAL_LOAD
    jobs: int | None = None
    contention: float = 0.0

    @property
    def mark(self) -> str:
        """A name of this run, and of no other."""
        text = msgspec.json.encode(self)
        return blake2s(text, digest_size=6).hexdigest()

    @property
    def who(self) -> str:
        """The policy, with its order where it has one."""
        return self.policy if self.order is None else f"{self.policy}+{self.order}"


class Outcome(Struct, frozen=True):
    """What came of a run.

    Args:
        spec: What was asked for.
        about: The cluster and the jobs, for people.
        metrics: Every measure.
        series: What changed over time, by column.

    """

    spec: Spec
    about: Plain
    metrics: Plain
    series: dict[str, list[float]]


def trial_of(spec: Spec, conf: Conf = DEFAULT) -> Trial:
    """What *spec* asks for.

    Raises:
        BadInput: It names what is not there; the text is one line.

    """
    place = site(spec.site)
    jobs = workload(
        spec.workload, place, seed=spec.seed, load=spec.load, jobs=spec.jobs
    )
    return Trial(
        with_queues(place, jobs.queues),
        jobs,
        conf,
        policy=spec.who,
        seed=spec.seed,
        contention=spec.contention,
    )


def run(spec: Spec) -> Outcome:
    """Play *spec* to its end."""
    trial, metrics = trial_of(spec), Metrics()
    place = trial.site
    maker = baseline(spec.policy, order=spec.order, seed=spec.seed)
    scheduler = maker(place.nodes, place.leaves, place.queues, trial.conf)
    play(trial, scheduler, [metrics])
    columns = zip(*metrics.rows(), strict=True)
    series = dict(zip(SERIES, map(list, columns), strict=True))
    return Outcome(spec, about(place, trial.workload), metrics.plain(), series)


def about(place: Site, jobs: Workload) -> Plain:
    """A cluster and its jobs in a few words and numbers."""
    return {
        "site": {
            "name": place.name,
            "nodes": len(place.nodes),
            "chips": place.chips,
            "leaves": len(place.leaves),
        },
        "workload": {
            "name": jobs.name,
            "about": jobs.about,
            "jobs": jobs.n_jobs,
            "load": jobs.load,
            "span_s": jobs.span_s,
            "notes": list(jobs.notes),
        },
    }


def seeded(spec: Spec, seeds: range) -> list[Spec]:
    """The same run with several seeds."""
    return [replace(spec, seed=seed) for seed in seeds]
