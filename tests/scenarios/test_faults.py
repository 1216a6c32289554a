"""In every story of faults everybody is treated by the rules, seen from outside."""

import re

import pytest
from msgspec.structs import replace

from ringleaf.framework.instruction import Bind, Delete, Instruction, PersistRepair
from ringleaf.simulator.run import ScenarioRun, run
from tests.scenarios.case import Case, cases, scenario_of
from tests.scenarios.repair_checker import complaints

STORIES = cases("faults/*")


def run_of(case: Case) -> ScenarioRun:
    return run(scenario_of(case))


@pytest.mark.parametrize("case", STORIES, ids=str)
def test_a_repair_obeys_the_rules(case: Case) -> None:
    assert complaints(run_of(case)) == []


# The checker itself: what it must not overlook.


def story(file: str, begins: str) -> ScenarioRun:
    """The run of the first story in a file whose text has *begins* after the mode."""
    (case, *_others) = [c for c in cases(f"faults/{file}") if begins in c.about]
    return run_of(case)


def changed(
    found: ScenarioRun, kind: type[Instruction], **other: object
) -> ScenarioRun:
    """A run in which the first instruction of a *kind* was another one."""
    steps = list(found.steps)
    for place, step in enumerate(steps):
        for number, said in enumerate(step.instructions):
            if isinstance(said, kind):
                several = list(step.instructions)
                several[number : number + 1] = [replace(said, **other)] if other else []
                steps[place] = replace(step, instructions=tuple(several))
                return replace(found, steps=tuple(steps))
    raise AssertionError(kind)


def moved(found: ScenarioRun, replica: int, node: str) -> ScenarioRun:
    """A run in which the first binding puts one pod on another node."""
    said = next(i for s in found.steps for i in s.instructions if isinstance(i, Bind))
    placements = tuple(
        replace(each, node=node) if each.replica == replica else each
        for each in said.placements
    )
    return changed(found, Bind, placements=placements)


CHIP = "a chip fails under the job"
ONE = "a chip fails, and only faulty pods"


@pytest.mark.parametrize(
    ("file", "replica", "node", "word"),
    [
        pytest.param("no-network-rule", 0, "n5", "was well on n0", id="not-returned"),
        pytest.param("no-network-rule", 2, "n2", "faulty chips of n2", id="faulty"),
        pytest.param("no-network-rule", 2, "n9", "takes no pods", id="gone"),
        pytest.param("1.0-padding", 1, "b0", "spread over leaves", id="padding"),
        pytest.param("1.0-foundation", 6, "c1", "loaded unevenly", id="slots"),
        pytest.param("single-layer", 1, "b0", "spread over leaves", id="single-layer"),
        pytest.param("superpods-hard", 3, "a2", "is in SuperPoDs", id="block"),
        pytest.param("superpods-soft", 2, "b2", "is in SuperPoDs", id="fragment"),
    ],
)
def test_the_checker_sees_a_pod_in_the_wrong_place(
    file: str, replica: int, node: str, word: str
) -> None:
    found = moved(story(file, CHIP), replica, node)

    assert any(word in told for told in complaints(found)), complaints(found)


def test_the_checker_sees_chips_that_somebody_holds() -> None:
    found = moved(story("no-network-rule", ONE), 2, "n3")

    assert any("are held by" in told for told in complaints(found))


def test_the_checker_sees_chips_of_pods_that_are_ending() -> None:
    found = story("others", "nobody's")
    steps = list(found.steps)
    place, step, said = next(
        (place, step, said)
        for place, step in enumerate(steps)
        for said in step.instructions
        if isinstance(said, Bind) and said.job == "small"
    )
    stolen = replace(said, placements=(replace(said.placements[0], node="n0"),))
    steps[place] = replace(step, instructions=(stolen,))

    told = complaints(replace(found, steps=tuple(steps)))

    assert any("are held by [\"('train', 0)\"]" in each for each in told), told


def test_the_checker_sees_healthy_pods_that_are_deleted() -> None:
    found = changed(story("no-network-rule", ONE), Delete, replicas=(1, 2))

    assert any("outside the rules" in told for told in complaints(found))


def test_the_checker_sees_what_was_not_written_down_before() -> None:
    found = changed(story("no-network-rule", ONE), PersistRepair)

    assert any("nothing was written down" in told for told in complaints(found))


def test_the_checker_sees_a_job_that_is_called_repaired_and_is_not() -> None:
    found = changed(story("no-network-rule", ONE), Bind)

    assert any("is called repaired" in told for told in complaints(found))


# The decisions that the stories are about.

MODES = (
    "no-network-rule",
    "1.0-padding",
    "1.0-common-in-one-leaf",
    "1.0-common-across-leaves",
    "1.0-foundation",
    "2.0-padding",
    "2.0-common",
    "2.0-foundation",
    "single-layer",
    "superpods-hard",
    "superpods-soft",
)


def told_in(file: str) -> list[str]:
    """What the stories of a file are about, without their mode and their sources."""
    return [
        case.about.split(": ", 1)[1].rsplit(" (seed", 1)[0]
        for case in cases(f"faults/{file}")
    ]


@pytest.mark.parametrize("mode", MODES)
def test_d17_the_same_stories_are_told_in_every_mode(mode: str) -> None:
    assert told_in(mode) == told_in(MODES[0])


def test_d20_chips_of_pods_that_end_because_of_a_fault_are_nobodys() -> None:
    found = story("others", "nobody's")
    ending = {
        s.at for s in found.steps if any(isinstance(i, Delete) for i in s.instructions)
    }
    bound = [
        (step.at, said.job, {place.node for place in said.placements})
        for step in found.steps
        for said in step.instructions
        if isinstance(said, Bind)
    ]

    assert ending == {60.0}
    assert bound == [
        (62.0, "small", {"n5"}),
        (90.0, "train", {"n0", "n1", "n3", "n4"}),
    ]


def test_d24_stories_begin_where_another_scheduler_ended() -> None:
    own = [case for case in STORIES if "D24" in case.about]

    told = re.compile("repair-known|deletions-known")
    known = [told.search(str(case.scenario["then"])) for case in own]
    assert len(own) > len(MODES)
    assert all(known)
