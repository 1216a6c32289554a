"""Runs of any policy, order, cluster and jobs: what holds of all of them."""

from contextlib import redirect_stderr
from io import StringIO
from typing import Any

import numpy as np
import pytest

from ringleaf.baselines.order import ORDERS
from ringleaf.baselines.registry import BASELINES, DEPLOYED
from ringleaf.cli.simulate import metrics_of, scheduler_of
from ringleaf.cli.simulation_request import SimulationRequest, trial_of
from ringleaf.simulator.bounds import Bounds, bounds
from ringleaf.simulator.clock import play
from ringleaf.simulator.preset import Knobs
from ringleaf.simulator.workloads import WORKLOADS
from ringleaf.study.rows import flat

CLUSTERS = (
    "leaf-spine-512:nodes=24",
    "leaf-spine-512x8:nodes=24,product=atlas-800t-a2",
    "superpod-48x8:superpods=2,nodes=16",
    "mixed",
)
FAULTS = ("none", "none", "usual,node=100,chip=500,leaf=300")
SHARES = ("share", "utilisation", "external_fragmentation", "fragmentation", "of_free")
ALMOST = 1e-9


def drawn(seed: int) -> SimulationRequest:
    """One of very many runs."""
    draws = np.random.default_rng(seed)

    def one(*of: Any) -> Any:  # noqa: ANN401 - one of them
        return of[draws.integers(len(of))]

    cluster = one(*CLUSTERS)
    has_superpods = cluster == "mixed" or cluster.startswith("superpod")
    jobs = [name for name in WORKLOADS if has_superpods or name != "llm-superpod"]
    policy = one(*(name for name in BASELINES if name != "cp-sat"))
    order = one(None, *ORDERS)
    return SimulationRequest(
        cluster,
        workload=one(*jobs),
        jobs=60,
        load=one(0.6, 0.9, 1.3),
        seed=seed,
        policy=policy,
        order=None if policy in DEPLOYED else order,
        faults=one(*FAULTS),
        recovery=one("off", "grace", "force"),
        contention=one(0.0, 0.0, 0.5),
        knobs=Knobs(estimate=one(0.0, 1.2), common=one(0.0, 0.25, 1.0)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_no_share_is_above_one_and_no_bound_is_beaten(seed: int) -> None:
    wanted = drawn(seed)
    with redirect_stderr(StringIO()):
        trial = trial_of(wanted)
    metrics = metrics_of(wanted)
    tally = play(trial, scheduler_of(wanted, trial), [metrics])
    found = metrics.plain()

    assert tally.arrived == 60
    for key, value in flat(found):
        if value is not None:
            assert value >= -ALMOST, (key, wanted)
            if any(each in key for each in SHARES) and not key.endswith(".seconds"):
                assert value <= 1 + ALMOST, (key, wanted)
    assert found["leaves"]["at_risk"] <= found["leaves"]["ever_crossed"]
    work = found["work"]
    assert work["chip_hours_done"] <= work["chip_hours_held"] + ALMOST
    _is_within(bounds(trial.site, trial.workload), found, wanted)


def _is_within(
    limits: Bounds, found: dict[str, Any], wanted: SimulationRequest
) -> None:
    """No bound is beaten, as far as it holds of such runs."""
    use, jobs = found["use"], found["jobs"]
    if wanted.faults == "none" and limits.utilisation is not None:
        in_vain = wanted.contention or BASELINES[wanted.policy].by_pods
        held = "effective_utilisation" if in_vain else "utilisation"
        assert use[held] <= limits.utilisation + ALMOST, wanted
    if jobs["ended"] == jobs["arrived"]:
        assert limits.mean_jct_s is not None
        assert found["jct_s"]["all"]["mean"] >= limits.mean_jct_s - ALMOST, wanted
        assert found["work"]["makespan_s"] >= limits.makespan_s - ALMOST, wanted
