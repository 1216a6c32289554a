"""A run that is resumed from a checkpoint ends as if it had not been interrupted."""

from functools import cache
from pathlib import Path

import pytest

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT, read_conf
from ringleaf.simulator.checkpoint import HINT, MAGIC, load, save
from ringleaf.simulator.clock import Clock
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import Trial
from tests.simulator.trials import PREEMPT, Diary, busy, engine, lines

ARGUMENTS = {"seed": 1, "load": 0.9}


def scoring() -> Conf:
    """A configuration in which every plugin has something to remember."""
    names = ["priority", "gang", "conformance", "drf", "predicates", "proportion"]
    plugins = [{"name": n} for n in (*names, "nodeorder", "binpack", "affinity")]
    actions = "enqueue, allocate, preempt, reclaim, backfill"
    found = read_conf({"actions": actions, "tiers": [{"plugins": plugins}]})
    assert isinstance(found, Conf)
    return found


CONFS = {"default": DEFAULT, "preempt": PREEMPT, "scoring": scoring()}


def played(conf: Conf) -> Trial:
    return busy(4, 3, under=2, conf=conf, contention=0.3)


def clock_of(trial: Trial) -> Clock:
    return Clock(trial, engine(trial), [Diary()])


@cache
def whole_run(name: str) -> list[str]:
    """What is told of a run that nobody puts away."""
    return lines(clock_of(played(CONFS[name])))


@pytest.mark.parametrize("name", CONFS)
@pytest.mark.parametrize("steps", [0, 1, 25, 70, 140])
def test_a_run_goes_on_with_the_same_words(
    name: str, steps: int, tmp_path: Path
) -> None:
    conf, whole = CONFS[name], whole_run(name)
    before, path = clock_of(played(conf)), tmp_path / "run"
    for _ in range(steps):
        before.step()
    save(path, before, "1.0", ARGUMENTS)

    after = lines(load(path, played(conf), "1.0", ARGUMENTS))

    assert after == whole
    assert lines(before) == whole
    assert len(whole) > 200


def test_a_run_can_be_saved_again_and_again(tmp_path: Path) -> None:
    path, clock = tmp_path / "run", clock_of(played(DEFAULT))
    while clock.step():
        if clock.steps % 16 == 0:
            save(path, clock, "1.0", ARGUMENTS)
            clock = load(path, played(DEFAULT), "1.0", ARGUMENTS)

    assert lines(clock) == lines(clock_of(played(DEFAULT)))
    assert list(tmp_path.iterdir()) == [path]


def refusal(path: Path, version: str = "1.0", **arguments: object) -> BadInput:
    with pytest.raises(BadInput) as found:
        load(path, played(DEFAULT), version, ARGUMENTS | arguments)
    return found.value


@pytest.fixture
def saved_run(tmp_path: Path) -> Path:
    path, clock = tmp_path / "run", clock_of(played(DEFAULT))
    clock.step()
    save(path, clock, "1.0", ARGUMENTS)
    return path


def test_a_run_of_other_arguments_is_refused_in_one_line(saved_run: Path) -> None:
    found = refusal(saved_run, load=1.5)

    assert str(found) == (
        f"{saved_run}: the run was started with load 0.9, not 1.5; "
        "hint: give load as it was, or start again without --resume"
    )


def test_a_run_of_another_version_is_refused_in_one_line(saved_run: Path) -> None:
    found = refusal(saved_run, version="2.0")

    told = f"{saved_run}: the run was started with ringleaf 1.0, this is 2.0"
    assert str(found) == f"{told}; hint: {HINT}"


@pytest.mark.parametrize("text", [b"", b"hello\n", MAGIC, b"a\n{}\nb", MAGIC + b"3\nx"])
def test_another_file_is_refused(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_bytes(text)

    told = f"{path}: no interrupted run, want DIR/unfinished.run; hint: {HINT}"
    assert str(refusal(path)) == told


def test_a_file_that_is_cut_off_is_refused(saved_run: Path) -> None:
    saved_run.write_bytes(saved_run.read_bytes()[:-500])

    assert str(refusal(saved_run)).startswith(f"{saved_run}: the file is damaged: ")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nothing"

    assert str(refusal(path)) == (
        f"{path}: No such file or directory; hint: start again without --resume"
    )
