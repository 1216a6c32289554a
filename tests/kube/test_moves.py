"""Running jobs that are moved, with objects, a cache and a real engine."""

from typing import Any

import pytest

from ringleaf.cli.fault_view import FaultView
from ringleaf.cli.fault_words import repair_lines
from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.framework.instruction import Evict, PersistRepair, Repaired
from ringleaf.kube import names, records
from ringleaf.kube.moving import misread, moving_of
from ringleaf.model.moving import Moving
from tests.kube.stage import Stage

MOVABLE = {names.MOVABLE: "true"}


def rearranging() -> Conf:
    """The default configuration with the action ``rearrange``, which looks at once."""
    found = read_conf(
        {
            "actions": "enqueue, allocate, backfill, rearrange",
            "tiers": [{"plugins": [{"name": "priority"}, {"name": "gang"}]}],
            "configurations": [
                {"name": "rearrange", "arguments": {"wait-seconds": 60}},
            ],
        }
    )
    assert isinstance(found, Conf)
    return found


def gang(
    stage: Stage,
    name: str,
    chips: int,
    *,
    owned: bool = True,
    **spec: Any,  # noqa: ANN401
) -> None:
    """Submit a gang of one pod, which a controller creates if it is *owned*."""
    stage.group(name, 1, **spec)
    stage.pod(f"{name}-0", chips, name, owned=owned)


def runs(stage: Stage, name: str) -> None:
    """The pod of a gang runs."""
    plain = stage.pods[f"default/{name}-0"]
    plain["status"] |= {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    stage.put_pod(plain)
    stage.groups[name]["status"]["phase"] = "Running"
    stage.put_group(stage.groups[name])


def fragmented(*, owned: bool = True, **spec: Any) -> Stage:  # noqa: ANN401
    """Half of each of two nodes is free, and a job of a whole node arrives."""
    saving = {"annotations": {names.CHECKPOINT_SECONDS: "60"}}
    stage = Stage("a b", conf=rearranging())
    stage.now = 1767225600.0 + 7200  # 2026-01-01 at two
    for name in ("gone", "fixed", "eval"):
        more = saving | spec if name == "eval" else {}
        gang(stage, name, 4, owned=owned, **more)
        stage.cycle()
        runs(stage, name)
    stage.cycle()
    stage.drop_pod("gone-0")
    stage.drop_group("gone")
    assert stage.bound == {"eval-0": "b 0123", "fixed-0": "a 4567"}
    stage.cycle(3600)
    gang(stage, "big", 8)
    return stage


def moved(stage: Stage) -> list[str]:
    """The jobs whose pods are asked to end so that another job starts."""
    return [each.job for each in stage.said if isinstance(each, Evict)]


def test_a_movable_job_starts_elsewhere_and_the_pending_job_where_it_was() -> None:
    stage = fragmented(labels=MOVABLE)

    stage.cycle()
    kinds = [type(each) for each in stage.said]
    assert moved(stage) == ["default/eval"]
    assert kinds.index(PersistRepair) < kinds.index(Evict)
    record = records.read(stage.records["default/eval"].text)
    assert record.moved_for == "default/big"
    assert [place.node for place in record.placements] == ["a"]

    stage.drop_pod("eval-0")
    stage.cycle(1)
    assert stage.bound["big-0"] == "b 01234567"
    stage.pod("eval-0", 4, "eval", owned=True)
    stage.cycle(1)
    assert stage.bound["eval-0"] == "a 0123"
    assert any(isinstance(each, Repaired) for each in stage.said)
    assert not stage.records


def test_a_move_that_was_begun_is_completed_by_the_next_leader() -> None:
    """The pods are still there: the leader was killed after it wrote the record."""
    stage = fragmented(labels=MOVABLE)
    stage.cycle()
    assert moved(stage) == ["default/eval"]

    stage.restart()
    stage.cycle(1)
    gang_state = stage.cache.gangs["default/eval"]
    assert gang_state.was_deleting(gang_state.by_number()[0])
    gang(stage, "small", 4)
    stage.cycle(1)
    assert "small-0" not in stage.bound, "what is free is held for the moved job"

    stage.drop_pod("eval-0")
    stage.pod("eval-0", 4, "eval", owned=True)
    stage.cycle(1)
    assert stage.bound["eval-0"] == "a 0123"


def test_a_job_that_may_no_longer_be_moved_keeps_its_pods() -> None:
    stage = fragmented(labels=MOVABLE)
    stage.cycle()
    del stage.groups["eval"]["metadata"]["labels"]

    stage.restart()
    stage.cycle(1)

    gang_state = stage.cache.gangs["default/eval"]
    assert not gang_state.was_deleting(gang_state.by_number()[0])


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="no label"),
        pytest.param({"labels": {names.MOVABLE: "false"}}, id="not movable"),
        pytest.param({"labels": {names.MOVABLE: "yes"}}, id="not a value"),
    ],
)
def test_no_other_job_is_moved(spec: dict[str, Any]) -> None:
    stage = fragmented(**spec)

    stage.cycle()

    assert not moved(stage)


def test_pods_that_no_controller_creates_again_are_not_moved() -> None:
    stage = fragmented(owned=False, labels=MOVABLE)

    stage.cycle()

    assert not moved(stage)


def test_a_value_that_cannot_be_read_is_a_problem() -> None:
    stage = fragmented(labels={names.MOVABLE: "yes"})

    (problem,) = stage.cache.problems.unreported
    assert problem.message == (
        "PodGroup 'default/eval': label ringleaf.io/movable is 'yes', want true or "
        "false; the job is not moved"
    )


def test_a_job_that_is_moved_says_so_where_repairs_are_shown() -> None:
    stage = fragmented(labels=MOVABLE)
    stage.cycle()

    (repair,) = FaultView(stage.engine, stage.now).plain()["repairs"]
    said, *_held = repair_lines(repair, str)

    assert repair["moved-for"] == "default/big"
    assert said == (
        "it is being moved so that job 'default/big' starts: pod 0 deleted; "
        "waits for 1 pod to end"
    )


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("2026-01-01T00:00:00Z", 1767225600.0),
        ("yesterday", None),
        ("9" * 5000, None),
        ("", None),
    ],
)
def test_the_time_of_a_checkpoint_is_a_time_or_nothing(
    text: str, want: float | None
) -> None:
    traits = {**MOVABLE, names.CHECKPOINTED_AT: text}

    assert moving_of(traits) == Moving(checkpointed_at=want)
    assert bool(misread(traits)) == (want is None)


@pytest.mark.parametrize(
    ("text", "want"), [("30", 30.0), ("0", 0.0), ("-1", None), ("1e9", None)]
)
def test_seconds_are_whole_numbers(text: str, want: float | None) -> None:
    traits = {
        **MOVABLE,
        names.CHECKPOINT_SECONDS: text,
        names.RESTART_SECONDS: text,
    }

    assert moving_of(traits) == Moving(restart_s=want or 0.0, checkpoint_s=want)
    assert misread(traits).count("want a whole number") == 2 * (want is None)
