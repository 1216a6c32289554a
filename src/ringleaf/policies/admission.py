"""Is a request possible at all? The guide's job validation, with a way out.

A request is legal when the product's rule has a row for it. Two things are not in the
rules: requests that only a job of one pod may make, and distributed inference, which
is one pod.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from ringleaf.model.decision import Invalid
from ringleaf.model.job import Job
from ringleaf.model.mask import runs_of
from ringleaf.model.product import Mode
from ringleaf.model.settings import JobRequests, Settings
from ringleaf.policies.products import mode_of, rule_for


def admit(job: Job, settings: Settings) -> Invalid | None:
    """None when *job* may be placed some day, else why it never will."""
    problem = _problem(job, settings)
    if problem is None:
        return None
    return Invalid(job, problem, _hint(job, settings), warnings_of(job))


def is_legal(job: Job, settings: Settings) -> bool:
    """Whether *job* may be placed some day."""
    return _problem(job, settings) is None


def _problem(job: Job, settings: Settings) -> str | None:
    product = job.product
    if job.chips < 1:
        return f"{job.chips} chips in one pod, want at least 1"
    one_pod = product.one_pod_when_distributed and job.distributed
    if one_pod and job.replicas > 1:
        return f"distributed inference on {product.key} is one pod, not {job.replicas}"
    if job.chips not in rule_for(job):
        return _never_together(job)
    if job.replicas > 1 and job.chips in _alone(job, settings):
        return (
            f"{job.wanted}: pods of {job.chips} on {product.key} come alone, "
            "a job of several pods asks for more in each"
        )
    return None


def _never_together(job: Job) -> str:
    product, most = job.product, max(rule_for(job))
    if job.chips > product.chips:
        return (
            f"{job.chips} chips in one pod are more than "
            f"the {product.chips} of {product.key}"
        )
    if mode_of(job) is Mode.CARD:
        return (
            f"{job.chips} chips in one pod never fit "
            f"one {product.group} of {product.width} on {product.key}"
        )
    if job.chips > most:
        return (
            f"{job.chips} chips in one pod are more than the {most} "
            f"one pod may ask for on {product.key}"
        )
    return f"{job.chips} chips in one pod are never wired together on {product.key}"


def _alone(job: Job, settings: Settings) -> frozenset[int]:
    lifted = settings.job_requests is JobRequests.PER_POD
    if job.product.alone_is_strict_only and lifted:
        return frozenset()
    return job.product.alone


def _hint(job: Job, settings: Settings) -> str:
    """The nearest legal request, what would hold all that was asked, what is legal."""
    total = job.replicas * job.chips
    legal = sorted(_legal(job, settings), key=lambda other: _distance(other, total))
    nearest = legal[0]
    hint = f"ask for {nearest.wanted}"
    if nearest.replicas * nearest.chips < total:
        larger = [other for other in legal if other.replicas * other.chips >= total]
        hint += f" (or {larger[0].wanted} to hold all {total})" if larger else ""
    per_pod = replace(settings, job_requests=JobRequests.PER_POD)
    lifted = "; job-requests: per-pod allows it" if is_legal(job, per_pod) else ""
    return f"{hint}; {legal_words(job, settings)}{lifted}"


def _distance(job: Job, total: int) -> tuple[int, bool, int]:
    chips = job.replicas * job.chips
    return abs(chips - total), chips < total, job.replicas


def _legal(job: Job, settings: Settings) -> Iterator[Job]:
    """Legal jobs of about the same size: one pod, as many pods, as few as hold it.

    A job of several pods may also be cut into any number of them.
    """
    total, rule = job.replicas * job.chips, rule_for(job)
    fewest = max(1, -(-total // max(rule)))
    for chips in rule:
        enough = -(-total // chips) if job.replicas > 1 else fewest
        for replicas in {1, job.replicas, fewest, max(1, enough)}:
            other = replace(job, chips=chips, replicas=replicas)
            if is_legal(other, settings):
                yield other


def warnings_of(job: Job) -> tuple[str, ...]:
    """What of *job* has no effect on its product."""
    product = job.product
    idle = {
        "strategy": job.strategy is not None and Mode.CARD not in product.rules,
        "distributed": job.distributed and not product.one_pod_when_distributed,
    }
    return tuple(f"{key} has no effect on {product.key}" for key in idle if idle[key])


def legal_words(job: Job, settings: Settings) -> str:
    """The requests that are legal for jobs like this one.

    >>> from ringleaf.policies.products import PRODUCTS
    >>> legal_words(Job("j", PRODUCTS["atlas-800-9000"], 3), Settings())
    'atlas-800-9000 takes 1, 2, 4 or 8 chips in one pod, or 8 in each of several'
    """
    product, legal = job.product, sorted(rule_for(job))
    takes = f"{product.key} takes {in_words(legal)} chips"
    several = [chips for chips in legal if chips not in _alone(job, settings)]
    if product.one_pod_when_distributed and job.distributed:
        return f"{takes} in one pod"
    if several == legal:
        return f"{takes} in each pod"
    return f"{takes} in one pod, or {in_words(several)} in each of several"


def in_words(numbers: list[int]) -> str:
    """Numbers as people write them, runs of three or more as a range.

    >>> in_words([1, 2, 4, 8]), in_words([1, 2, 3, 4, 6]), in_words([5])
    ('1, 2, 4 or 8', '1 to 4 or 6', '5')
    """
    words: list[str] = []
    for run in runs_of(numbers):
        short = len(run) < 3  # noqa: PLR2004 - "1 to 2" is no shorter than "1, 2"
        words += [str(n) for n in run] if short else [f"{run[0]} to {run[-1]}"]
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
