"""What settings fill in for jobs that do not say it themselves (D38, D39)."""

from typing import Any

import pytest
from msgspec.structs import replace

from ringleaf.model.fault import FaultMode, Recovery
from ringleaf.model.job import Job, Previous, Role
from ringleaf.model.job_labels import Schema
from ringleaf.model.placement import NO_MARK, JobType, Placement
from ringleaf.model.settings import DefaultAffinity, Settings, SwitchMode
from ringleaf.policies.defaults import has_defaults, with_defaults, without_defaults
from ringleaf.policies.products import PRODUCTS
from ringleaf.policies.validation import warnings_of

A2, A3 = PRODUCTS["atlas-800t-a2"], PRODUCTS["atlas-900-a3"]
NORMAL = Settings(default_tor_affinity=DefaultAffinity.NORMAL)
LARGE = Settings(default_tor_affinity=DefaultAffinity.LARGE_MODEL)
GRACE = Settings(default_fault_scheduling=FaultMode.GRACE)
BOTH = replace(NORMAL, default_fault_scheduling=FaultMode.FORCE)
HELD = Placement(0, "a", (0, 1, 2, 3))


def job(**changes: Any) -> Job:  # noqa: ANN401
    return replace(Job("j", A2, 8, 2), **changes)


def test_d38_the_default_is_none_and_fills_in_nothing() -> None:
    given = job()

    assert with_defaults(given, Settings()) is given
    assert not has_defaults(Settings())
    assert has_defaults(NORMAL)
    assert has_defaults(GRACE)


def test_d38_a_job_of_several_nodes_counts_as_the_default() -> None:
    found = with_defaults(job(), LARGE)

    assert found.tor_affinity is Schema.LARGE_MODEL
    assert found.assumed == ("tor-affinity",)
    (said,) = warnings_of(found, LARGE)
    assert said == (
        "it has no label tor-affinity and counts as large-model-schema "
        "(default-tor-affinity)"
    )


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(job(tor_affinity=Schema.LARGE_MODEL), id="its own label"),
        pytest.param(job(declined=("tor-affinity",)), id="null"),
        pytest.param(job(replicas=1), id="one pod"),
        pytest.param(job(chips=4), id="one node"),
        pytest.param(job(vnpu="vir04"), id="parts of chips"),
        pytest.param(job(product=A3, chips=16), id="SuperPoDs"),
        pytest.param(
            job(product=PRODUCTS["atlas-310p"], chips=64), id="no switch mode"
        ),
        pytest.param(
            job(replicas=3, roles=(Role("a", 8, 2), Role("b", 4))), id="never legal"
        ),
        pytest.param(job(previous=Previous((HELD,))), id="it ran without the rule"),
    ],
)
def test_d38_jobs_that_the_default_is_not_for(given: Job) -> None:
    assert with_defaults(given, NORMAL) is given


def test_d38_a_job_keeps_its_default_when_a_pod_has_ended_well() -> None:
    settings = Settings(default_tor_affinity=DefaultAffinity.LARGE_MODEL)
    left = with_defaults(job(replicas=1, finished=(0, 1, 2)), settings)

    assert left.job_type is JobType.FOUNDATION


def test_d38_a_job_goes_on_by_the_rule_by_which_it_began() -> None:
    marked = replace(HELD, mark=NO_MARK)
    helper = Placement(2, "b", ())

    assert with_defaults(job(), NORMAL, [HELD]).tor_affinity is None
    assert with_defaults(job(), NORMAL, [marked, helper]).tor_affinity is Schema.NORMAL


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        pytest.param(job(), FaultMode.GRACE, id="no label"),
        pytest.param(
            job(chips=0, podless=True), FaultMode.GRACE, id="no pods any more"
        ),
        pytest.param(
            job(recovery=Recovery(FaultMode.FORCE)), FaultMode.FORCE, id="its own label"
        ),
        pytest.param(job(declined=("fault-scheduling",)), FaultMode.OFF, id="off"),
        pytest.param(job(chips=0), FaultMode.OFF, id="no chips"),
        pytest.param(job(critical=True), FaultMode.OFF, id="the system's"),
    ],
)
def test_d39_what_counts_for_faults(given: Job, mode: FaultMode) -> None:
    found = with_defaults(given, GRACE)

    assert found.recovery.mode is mode
    assert bool(found.assumed) == (mode is FaultMode.GRACE)
    assert warnings_of(found, GRACE) == ()


def test_d39_other_labels_of_the_job_mean_what_they_mean() -> None:
    given = job(recovery=Recovery(retries=3, pods_only=True))

    assert with_defaults(given, GRACE).recovery == Recovery(
        FaultMode.GRACE, 3, pods_only=True
    )


def test_d38_d39_what_was_filled_in_is_taken_back_and_filled_in_anew() -> None:
    given = job()
    found = with_defaults(given, BOTH)

    assert found.assumed == ("tor-affinity", "fault-scheduling")
    assert without_defaults(found) == given
    assert with_defaults(found, BOTH) == found
    assert with_defaults(found, GRACE) == with_defaults(given, GRACE)
    assert without_defaults(with_defaults(given, GRACE)) == given
    assert without_defaults(with_defaults(given, NORMAL)) == given
    assert with_defaults(found, Settings()) == given


def test_d40_what_the_vendor_does_not_name_is_warned_of() -> None:
    two = Settings(switch_mode=SwitchMode.SPINE_LEAF_2)
    single = Settings(switch_mode=SwitchMode.SINGLE_LAYER)
    given = job(tor_affinity=Schema.NORMAL)

    assert warnings_of(given, two) == ()
    assert warnings_of(replace(given, framework="PyTorch"), two) == ()
    assert len(warnings_of(replace(given, framework="mindspore"), two)) == 1
    assert len(warnings_of(given, single)) == 1
    assert warnings_of(replace(given, alike=("atlas-800i-a2",)), single) == ()
    inference = replace(given, product=PRODUCTS["atlas-800i-a2"], framework="mindie")
    assert warnings_of(inference, single) == ()
