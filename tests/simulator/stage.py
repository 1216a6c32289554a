"""A run told to observers by hand, so that a test says what happens when."""

from collections.abc import Sequence

from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.framework.instruction import Instruction
from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.model.product import Product
from ringleaf.policies.products import PRODUCTS
from ringleaf.simulator.metrics import RunMetrics
from ringleaf.simulator.trial import JobSpec, Site, Trial, Workload

RINGS = PRODUCTS["atlas-800-9000"]


def nodes(*drawn: str, product: Product = RINGS, superpod: bool = False) -> list[Node]:
    """``nodes("A 2", "B 2")``: A0, A1 under leaf A, and B0, B1 under leaf B."""
    found = []
    for number, row in enumerate(drawn):
        leaf, count = row.split()
        found += [
            Node(
                f"{leaf}{slot}",
                product,
                product.chips,
                (1 << product.chips) - 1,
                leaf=None if superpod else leaf,
                superpod=number if superpod else None,
                slot=slot,
            )
            for slot in range(int(count))
        ]
    return found


def spec(
    name: str, arrives: float, chips: int, pods: int = 1, **also: object
) -> JobSpec:
    """A job of some pods; how long it runs matters for tables only."""
    runs_s = also.pop("runs_s", 10.0)
    assert isinstance(runs_s, float)
    job = Job(name, RINGS, chips, pods, **also)  # type: ignore[arg-type]
    return JobSpec(job, arrives, runs_s)


class Stage:
    """Metrics, and what they are told."""

    def __init__(
        self,
        on: Sequence[Node],
        job_specs: Sequence[JobSpec],
        *,
        n_jobs: int | None = None,
        conf: object = DEFAULT,
        metrics: RunMetrics | None = None,
    ) -> None:
        self.job_specs = {each.job.name: each for each in job_specs}
        self.metrics = metrics or RunMetrics()
        self.now = 0.0
        span = job_specs[-1].arrives - job_specs[0].arrives
        count = len(job_specs) if n_jobs is None else n_jobs
        workload = Workload("by hand", "", lambda: iter(job_specs), count, span)
        trial = Trial(Site("by hand", tuple(on)), workload, conf=conf)  # type: ignore[arg-type]
        self.engine = Engine(on)
        self.metrics.begin(trial, self.engine)

    def at(self, now: float) -> "Stage":
        """Time goes by."""
        if now > self.now:
            self.metrics.passes(self.now, now)
        self.now = now
        return self

    def arrive(self, name: str) -> "Stage":
        self.metrics.arrives(self.job_specs[name], self.now)
        return self

    def start(self, name: str, **where: str) -> "Stage":
        """``start("a", A0="0123", B1="0")``: a pod on A0 with four chips, one on B1."""
        places = [
            Placement(n, node, tuple(int(chip, 16) for chip in chips))
            for n, (node, chips) in enumerate(where.items())
        ]
        return self.place(name, *places)

    def place(self, name: str, *places: Placement) -> "Stage":
        self.metrics.starts(self.job_specs[name], places, self.now)
        return self

    def stop(self, name: str, *pods: int) -> "Stage":
        self.metrics.stops(self.job_specs[name], pods, "", self.now)
        return self

    def lose(self, name: str, seconds: float) -> "Stage":
        self.metrics.loses(self.job_specs[name], seconds, self.now)
        return self

    def end(self, name: str) -> "Stage":
        self.metrics.ends(self.job_specs[name], self.now)
        return self

    def say(self, said: Instruction) -> "Stage":
        self.metrics.says(said, self.now)
        return self

    def finish(self) -> RunMetrics:
        self.metrics.finish(self.now)
        return self.metrics
