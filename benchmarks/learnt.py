"""What running times that are learnt from history are worth, beside none and true ones.

Each trace is played with the same arrivals: jobs state no running times and none are
learnt, jobs state none and they are learnt, jobs state the true ones. For each run:
of how many jobs a running time was predicted, and how many of those ran no longer than
nine in ten of similar jobs; waits and utilization.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.tables import LARGE, USE
from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.report.measures import value_of
from ringleaf.simulator.clock import play
from ringleaf.simulator.metrics import RunMetrics
from ringleaf.simulator.preset import USUAL
from ringleaf.simulator.sites import site
from ringleaf.simulator.traces import read_trace
from ringleaf.simulator.trial import Site, Trial, Workload
from ringleaf.simulator.workloads import workload

ROOT: Final = Path(__file__).resolve().parents[1]
TRACES: Final = ROOT.parent / "shared" / "traces"
TRUE: Final = 1.0
WAIT: Final = "wait_s.all.mean"
HOW: Final = ("none", "learnt", "true")
"""Which running times jobs have."""

Plain = dict[str, Any]


class Played(Struct, frozen=True):
    """A workload on a cluster, once with each kind of running times.

    Args:
        name: What the page calls it.
        cluster: The cluster.
        seeds: How many samples: parts of the file one after the other, or arrivals.
        jobs: How many jobs of each; None is all of the file.
        load: Offered load; None is that of the file.
        source: The file, or the name of a preset.
        times: Chips for each that the file counts.

    """

    name: str
    cluster: str
    seeds: int
    jobs: int | None
    load: float | None
    source: str
    times: int = 1

    def workload(self, on: Site, seed: int, how: str, kept: Path) -> Workload:
        """The jobs, with the running times that they state."""
        knobs = replace(USUAL, estimate=TRUE if how == "true" else 0.0)
        load, jobs = self.load, self.jobs
        if "." not in self.source:
            load = 1.0 if load is None else load
            jobs = 1000 if jobs is None else jobs
            return workload(
                self.source, on, seed=seed, load=load, jobs=jobs, knobs=knobs
            )
        part = TRACES / self.source
        if jobs is not None:
            part = _part(part, kept, seed * jobs, jobs)
        return read_trace(part, on, load=load, times=self.times, knobs=knobs)


def _part(trace: Path, kept: Path, start: int, jobs: int) -> Path:
    """Some rows of a log in the Standard Workload Format as a file of their own."""
    rows = [line for line in trace.read_text().splitlines() if line[:1] != ";"]
    path = kept / f"{trace.stem}-{start}{trace.suffix}"
    path.write_text("\n".join(rows[start : start + jobs]) + "\n")
    return path


STUDIES: Final = (
    Played("nasa", "leaf-spine-512:nodes=128", 4, 1500, 0.7,
           "NASA-iPSC-1993-3.1-cln.swf", times=8),
    Played("helios", "leaf-spine-512:nodes=24", 1, None, None,
           "helios_venus_2vc_sept.csv"),
    Played("seren", "leaf-spine-512:nodes=64", 4, 1500, 1.0, "seren"),
)  # fmt: skip


def conf_of(how: str) -> Conf:
    """The default configuration, which learns running times or does not."""
    given = DEFAULT.action_arguments
    own = {**given["allocate"], "learn-run-times": how == "learnt"}
    arguments = {**given, "allocate": own}
    return replace(DEFAULT, action_arguments=arguments)


def played(study: Played, seed: int, how: str, kept: Path) -> Plain:
    """What one run comes to."""
    on, metrics = site(study.cluster), RunMetrics()
    conf = conf_of(how)
    engine = Engine(on.nodes, on.leaves, on.queues, conf)
    play(Trial(on, study.workload(on, seed, how, kept), conf), engine, (metrics,))
    known = engine.run_times
    found = metrics.plain()
    return {
        "ended": known.learnt,
        "predicted": known.predicted,
        "within": known.within,
        **{key: value_of(found, key) for key in (WAIT, LARGE, USE)},
    }


def learnt(kept: Path) -> Plain:
    """All workloads, sample by sample; runs that were kept are not played again."""
    kept.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "study": study.name,
            "times": how,
            "runs": [_kept(study, seed, how, kept) for seed in range(study.seeds)],
        }
        for study in STUDIES
        for how in HOW
    ]
    return {"studies": msgspec.to_builtins(STUDIES), "rows": rows}


def _kept(study: Played, seed: int, how: str, kept: Path) -> Plain:
    path = kept / f"{study.name}-{how}-seed{seed}.json"
    if not path.exists():
        found = played(study, seed, how, kept)
        half = path.with_suffix(".part")
        half.write_bytes(msgspec.json.encode(found))
        half.replace(path)
    known: Plain = msgspec.json.decode(path.read_bytes())
    return known
