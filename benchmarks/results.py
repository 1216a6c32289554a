"""Everything that docs/results.md tells, played with fixed seeds.

``python -m benchmarks.results`` plays all studies, or those that are named, and writes
what came of each to docs/results/NAME.json, from which ``make docs`` makes the tables
of the page. Runs are kept in build/results: a study that was interrupted goes on.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2s
from itertools import product
from math import inf
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct
from rich.console import Console

from benchmarks import slots
from benchmarks.choices import Gang, below_free, came
from benchmarks.learnt import learnt
from benchmarks.online import CLUSTERS, WITH_SLOTS, solve
from benchmarks.optimum import Case, largest, optimum
from benchmarks.tables import LARGE, TOLD
from ringleaf.baselines.registry import baseline
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Schema
from ringleaf.report.measures import value_of
from ringleaf.simulator.saturation import Fill, churn_fill, static_fill
from ringleaf.simulator.sites import site
from ringleaf.simulator.trial import JobSpec, Site
from ringleaf.simulator.workloads import workload
from ringleaf.study.figures import mean_of, paired

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = ROOT / "docs" / "results"
KEPT: Final = ROOT / "build" / "results"
TRACES: Final = "../shared/traces"
CODE: Final = (
    *("model", "policies", "config", "framework", "plugins", "actions", "engine"),
    *("baselines", "simulator", "study"),
)
"""Rooms of the package on which results depend."""

SOME: Final = "ringleaf,ringleaf-guide,best-fit,kueue-tas,vendor-1.0,vendor-2.0"
"""Who plays the long studies."""
KEYS: Final = (
    *TOLD,
    *("jct_s.all.mean", "wait_s.all.p99", "wait_s.by_size.1.mean"),
    *("wait_s.by_size.>256.mean", "starvation.max_wait_s", "work.makespan_s"),
)
"""Measures that the files of results keep."""
MORE: Final = f"{SOME},volcano-binpack,fgd,hived,whole-leaves,random"

Plain = dict[str, Any]


class Compared(Struct, frozen=True):
    """A study that is a command: ``ringleaf compare`` with these options.

    Args:
        name: What its files are called.
        options: As they are typed.
        plots: Those that the page shows.

    """

    name: str
    options: str
    plots: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """What a reader types to see it."""
        return f"ringleaf compare {self.options}"

    def play(self, kept: Path, workers: int) -> Plain:
        """What comes of it, in the form of ``comparison.json``."""
        folder = kept / self.name
        drawn = folder / "plots"
        also = ["--workers", str(workers), "--out", str(folder), "--plots", str(drawn)]
        subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", *shlex.split(self.command), *also],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        for plot in self.plots:
            shutil.copyfile(drawn / f"{plot}.png", PAGES / f"{self.name}-{plot}.png")
        found: Plain = msgspec.json.decode((folder / "comparison.json").read_bytes())
        told = [each for each in found["measures"] if each["measure"] in KEYS]
        runs = folder / "runs"
        each = {
            policy: [_kept(runs, policy, seed) for seed in found["seeds"]]
            for policy in found["policies"]
        }
        return found | {
            "measures": told,
            "why": {policy: _why(own[0]) for policy, own in each.items()},
            "large": {
                policy: [value_of(metrics, LARGE) for metrics in own]
                for policy, own in each.items()
            },
        }


def _kept(runs: Path, policy: str, seed: int) -> Plain:
    """What a run that was kept came to."""
    (path,) = runs.glob(f"{policy}-seed{seed}-*.json")
    found: Plain = msgspec.json.decode(path.read_bytes())["run"]["metrics"]
    return found


def _why(metrics: Plain) -> dict[str, float]:
    """What jobs waited for, as shares of the time."""
    blames = metrics["why"]["jobs"]
    return {name: blame["share"] for name, blame in blames.items()}


class Own(Struct, frozen=True):
    """A study that is made here.

    Args:
        name: What its files are called.
        figures: What comes of it.

    """

    name: str
    figures: Callable[[Path], Plain]

    @property
    def command(self) -> str:
        """What a reader types to see it."""
        return f"python -m benchmarks.results {self.name}"

    def play(self, kept: Path, _workers: int) -> Plain:
        """What comes of it."""
        return self.figures(kept / self.name)


# Saturated clusters.

LEAF_SIZES: Final = (4, 8)
FILLED: Final = (
    *("best-fit", "ringleaf", "ringleaf-guide", "vendor-1.0", "vendor-2.0"),
    *("kueue-tas", "whole-leaves", "random"),
)
CHURNED: Final = (
    *("best-fit", "ringleaf", "ringleaf-guide"),
    *("vendor-2.0", "kueue-tas"),
)
FREE: Final = "best-fit"
"""Who packs freely: any nodes do."""
SEEDS: Final = 10
MANY_SEEDS: Final = 64
"""Of the churn in which ten seeds cannot tell whether the goal is met."""
WIDEST: Final = 64
"""Nodes of the largest gang that is made up."""
DRAWN: Final = 4000
CHURN_JOBS: Final = 2000
MIXES: Final = ("doublings", "any size", "helios-gang", "kalos")
IN_CHURN: Final = ("doublings", "any size")
"""Of published mixes a few jobs run for weeks, so that no churn of them is steady."""


def mixed(mix: str, on: Site, seed: int) -> list[JobSpec]:
    """Jobs of a mix: a preset, or gangs of which each size asks for as many nodes."""
    if mix not in IN_CHURN:
        return list(workload(mix, on, seed=seed, load=1.0, jobs=DRAWN).job_specs())
    draws = np.random.default_rng(np.random.SeedSequence([seed, *mix.encode()]))
    every = np.arange(1, WIDEST + 1)
    sizes = every if mix == "any size" else every[(every & (every - 1)) == 0]
    nodes = draws.choice(sizes, DRAWN, p=(1 / sizes) / (1 / sizes).sum()).tolist()
    times = draws.exponential(3600.0, DRAWN).tolist()
    made_of = on.nodes[0].product
    return [
        JobSpec(
            Job(f"{n}", made_of, 8, size, tor_affinity=Schema.LARGE_MODEL), 0.0, runs_s
        )
        for n, (size, runs_s) in enumerate(zip(nodes, times, strict=True))
    ]


def fills(kept: Path) -> Plain:
    """Static and churn fills of 512 nodes, and what the rule costs, seed by seed."""
    rows = [
        _row(kept, mix, leaf, way)
        for way in ("static", "churn")
        for mix in (MIXES if way == "static" else IN_CHURN)
        for leaf in LEAF_SIZES
    ]
    return {"seeds": SEEDS, "free": FREE, "rows": rows}


def close(kept: Path) -> Plain:
    """The churn with many seeds whose goal ten seeds leave open."""
    row = _row(kept, "doublings", 4, "churn", CHURNED[:3], MANY_SEEDS)
    return {"seeds": MANY_SEEDS, "free": FREE, "rows": [row]}


def _row(  # noqa: PLR0917 - what a row depends on
    kept: Path,
    mix: str,
    leaf: int,
    way: str,
    policies: Sequence[str] = (),
    seeds: int = SEEDS,
) -> Plain:
    found = {
        policy: [filled(kept, mix, leaf, way, policy, seed) for seed in range(seeds)]
        for policy in policies or (FILLED if way == "static" else CHURNED)
    }
    free = [each.allocated for each in found[FREE]]
    return {
        "mix": mix,
        "leaf": leaf,
        "way": way,
        "policies": {
            policy: {
                "allocated": mean_of([each.allocated for each in own]),
                "below": paired(free, [each.allocated for each in own]),
                "conflicts": mean_of([each.conflicts for each in own]),
            }
            for policy, own in found.items()
        },
    }


def filled(  # noqa: PLR0917 - what a fill depends on
    kept: Path, mix: str, leaf: int, way: str, policy: str, seed: int
) -> Fill:
    """One fill, if it was not played before."""
    path = kept / f"{way}-{mix}-{leaf}-{policy}-seed{seed}.json".replace(" ", "-")
    if path.exists():
        return msgspec.json.decode(path.read_bytes(), type=Fill)
    on = site(f"leaf-spine-512:leaf={leaf}")
    job_specs = mixed(mix, on, seed)
    scheduler = baseline(policy, seed=seed)(on.nodes, on.leaves, on.queues)
    if way == "static":
        found = static_fill(on, job_specs, scheduler, seed)
    else:
        found = churn_fill(on, job_specs, scheduler, seed, jobs=CHURN_JOBS)
    _write(path, found)
    return found


# Against the optimum.

BEST_LEAVES: Final = (32, 64)
BEST_MIXES: Final = ("doublings", "any size", "helios-gang")
BEST_OF: Final = ("ringleaf", "ringleaf-guide", "vendor-1.0", "whole-leaves")


def best(kept: Path) -> Plain:
    """Static fills against the most that could be placed under rule 1.0."""
    rows = []
    for mix, leaves, leaf in product(BEST_MIXES, BEST_LEAVES, LEAF_SIZES):
        cases = [against_best(kept, mix, leaves, leaf, seed) for seed in range(SEEDS)]
        proven = sum(case["proven"] for case in cases)
        ratios = {
            name: mean_of([case["nodes"][name] / case["best"] for case in cases])
            for name in (*BEST_OF, FREE)
        }
        about = {"mix": mix, "leaves": leaves, "leaf": leaf, "proven": proven}
        rows.append(about | {"ratios": ratios})
    return {"seeds": SEEDS, "free": FREE, "rows": rows}


def against_best(kept: Path, mix: str, leaves: int, leaf: int, seed: int) -> Plain:
    """Nodes that policies and the optimum take of the same gangs."""
    path = kept / f"{mix}-{leaves}x{leaf}-seed{seed}.json".replace(" ", "-")
    if path.exists():
        found: Plain = msgspec.json.decode(path.read_bytes())
        return found
    on = site(f"leaf-spine-512:leaf={leaf},nodes={leaf * leaves}")
    job_specs = list(_demanded(mixed(mix, on, seed), 1.3 * len(on.nodes)))
    case = Case(mix, leaves, leaf, [spec.job.replicas for spec in job_specs])
    nodes = {name: _taken(on, job_specs, name, seed) for name in (*BEST_OF, FREE)}
    most, ours = largest(case), max(nodes[name] for name in BEST_OF)
    top, proven = most, True
    if ours < most:
        top, proven = optimum(case, ours, most, in_steps=True)
    found = {"nodes": nodes, "best": top, "proven": proven}
    _write(path, found)
    return found


def _taken(on: Site, job_specs: Sequence[JobSpec], policy: str, seed: int) -> int:
    """Nodes that a policy gives to all of *job_specs* that find a place."""
    scheduler = baseline(policy, seed=seed)(on.nodes, on.leaves, on.queues)
    found = static_fill(on, job_specs, scheduler, seed, demand=inf)
    return round(len(on.nodes) * found.allocated)


def _demanded(job_specs: Sequence[JobSpec], nodes: float) -> Iterator[JobSpec]:
    """The first of *job_specs* that ask for so many nodes; all ask for whole ones."""
    asked = 0
    for spec in job_specs:
        if asked >= nodes:
            break
        assert spec.job.chips == spec.job.product.chips
        asked += spec.job.replicas
        yield spec


# The best choice of leaves.


def online(_kept: Path) -> Plain:
    """The best choice on small clusters, and other choices in a model of the churn."""
    small = [
        cluster._asdict() | {"allocated": how(cluster)}
        for clusters, how in ((CLUSTERS, solve), (WITH_SLOTS, slots.solve))
        for cluster in clusters
    ]
    rows = [
        {"mix": mix, "leaf": leaf, "below": _below(mix, leaf)}
        for mix in ("any size", "doublings")
        for leaf in LEAF_SIZES
    ]
    return {"small": small, "seeds": SEEDS, "rows": rows}


def _below(mix: str, leaf: int) -> dict[str, Any]:
    """Below free packing by choice, over many seeds."""
    on = site(f"leaf-spine-512:leaf={leaf}")
    found = [
        below_free(churned(mix, on, seed), len(on.nodes) // leaf, leaf)
        for seed in range(SEEDS)
    ]
    return {name: mean_of([each[name] for each in found]) for name in found[0]}


def churned(mix: str, on: Site, seed: int) -> list[Gang]:
    """The gangs that come in a churn fill with this seed."""
    job_specs = mixed(mix, on, seed)
    sizes = [spec.job.replicas for spec in job_specs]
    runs = [spec.runs_s for spec in job_specs]
    return came(sizes, runs, nodes=len(on.nodes), seed=seed, jobs=CHURN_JOBS)


# All of them.

NASA: Final = (
    f"--trace {TRACES}/NASA-iPSC-1993-3.1-cln.swf --chips-each 8 --jobs 2000 "
    f"--load 0.8 --cluster {TRACES}/lingjun2023_topo.csv"
)
SEREN: Final = (
    "--workload seren --jobs 1500 --load 1.0 --cluster leaf-spine-512:nodes=64"
)
TURNS: Final = "ringleaf,best-fit,ringleaf+fifo-skip"
DEPLOYED: Final = (
    "--workload kalos --jobs 3000 --load 0.9 --contention 0.3 --seed 1 --seeds 5"
)
KALOS: Final = "--workload kalos --load 0.9 --jobs 20000"
STUDIES: Final[Sequence[Compared | Own]] = (
    Own("fills", fills),
    Own("online", online),
    Own("close", close),
    Own("optimum", best),
    Own("learnt", learnt),
    Compared(
        "helios",
        f"--trace {TRACES}/helios_venus_2vc_sept.csv "
        f"--cluster leaf-spine-512:nodes=32 --seeds 1 --policies {MORE}",
    ),
    Compared(
        "nasa",
        f"{NASA} --seeds 1 --policies {SOME}",
        plots=("conflicts",),
    ),
    Compared(
        "nasa-links",
        f"{NASA} --contention 0.3 --seeds 1 "
        "--policies ringleaf,ringleaf-guide,ringleaf+easy,best-fit,kueue-tas",
    ),
    Compared("seren", f"{SEREN} --seeds 5 --policies {TURNS}"),
    Compared("seren-told", f"{SEREN} --estimate 1.5 --seeds 5 --policies {TURNS}"),
    Compared(
        "kalos",
        f"{KALOS} --seeds 2 --policies ringleaf,best-fit",
    ),
    Compared(
        "kalos-links",
        f"{KALOS} --contention 0.3 --seeds 3 --policies ringleaf,best-fit",
        plots=("waiting", "conflicts"),
    ),
    Compared(
        "deployed-uneven",
        f"--cluster leaf-spine-uneven {DEPLOYED} "
        "--policies ringleaf,volcano-vendor-1.0,kueue",
    ),
    Compared(
        "deployed-even",
        f"--cluster leaf-spine-512 {DEPLOYED} --policies ringleaf,volcano-vendor-1.0",
    ),
    Compared(
        "philly",
        f"--trace {TRACES}/philly_pollux.csv --load 0.9 --seeds 1 "
        "--policies ringleaf,best-fit,fgd",
    ),
)
BY_NAME: Final[Mapping[str, Compared | Own]] = {each.name: each for each in STUDIES}


def code() -> str:
    """Which code plays: another where a line of it differs."""
    found = blake2s(digest_size=8)
    for room in CODE:
        for path in sorted((ROOT / "src" / "ringleaf" / room).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()


def _write(path: Path, value: object) -> None:
    """Write *value* as JSON: whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part")
    half.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
    half.replace(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the studies that are named; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.results", description=__doc__
    )
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=", ".join(BY_NAME))
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument(
        "--runs",
        type=Path,
        help="folder of runs, also if other code played them; "
        "else one of build/results for the code as it is",
    )
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.studies if name not in BY_NAME]:
        parser.error(f"no study {unknown[0]!r}, want some of {', '.join(BY_NAME)}")
    console = Console(stderr=True, highlight=False)
    for name in given.studies or BY_NAME:
        study = BY_NAME[name]
        console.print(f"{name}: {study.command}", soft_wrap=True)
        try:
            found = study.play(given.runs or KEPT / code(), given.workers)
        except subprocess.CalledProcessError as error:
            return error.returncode
        _write(PAGES / f"{name}.json", {"command": study.command} | found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
