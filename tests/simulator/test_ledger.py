"""Every job is a row, written when it is over."""

import csv
import pickle
from pathlib import Path

import pytest

from ringleaf.engine.event import NodesGone
from ringleaf.simulator.checkpoint import load, save
from ringleaf.simulator.clock import Clock, play
from ringleaf.simulator.ledger import COLUMNS, Ledger
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import Ending, JobSpec, TimedEvent
from tests.simulator.trials import engine, spec, trial


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_row_tells_what_became_of_a_job(tmp_path: Path) -> None:
    failed = JobSpec(
        spec("b, of x", 1, 10, replicas=2).job, 1, 10, Ending.FAILED, "eval"
    )
    job_specs = [
        spec("a", 0, 10, priority=3),
        failed,
        spec("bad", 2, 10, chips=9),
        spec("big", 3, 10, replicas=9),
    ]
    timed_events = [TimedEvent(18, NodesGone(("n000",)))]
    played = trial(3, job_specs, under=1, timed_events=timed_events, checkpoint_s=5)
    ledger, path = Ledger(), tmp_path / "jobs.csv"
    ledger.open(path)

    play(played, engine(played), [ledger])

    assert path.read_text().splitlines()[0] == ",".join(COLUMNS)
    assert [(row["job"], row["ending"]) for row in rows(path)] == [
        ("bad", "refused"),
        ("a", "done"),
        ("b, of x", "failed"),
        ("big", "left"),
    ]
    _bad, first, second, left = rows(path)
    assert first == {
        "job": "a",
        "kind": "",
        "queue": "default",
        "priority": "3",
        "chips": "8",
        "pods": "1",
        "arrives_s": "0.000",
        "starts_s": "0.000",
        "ends_s": "10.000",
        "waits_s": "0.000",
        "runs_s": "10.000",
        "stops": "0",
        "lost_s": "0.000",
        "nodes": "1",
        "leaves": "1",
        "ending": "done",
    }
    assert (second["kind"], second["nodes"], second["leaves"]) == ("eval", "2", "2")
    assert (left["starts_s"], left["ends_s"], left["waits_s"]) == ("", "", "")


def test_what_a_job_lost_is_in_its_row(tmp_path: Path) -> None:
    timed_events = [TimedEvent(8, NodesGone(("n000",)))]
    played = trial(2, [spec("a", 0, 10)], timed_events=timed_events, checkpoint_s=5)
    ledger, path = Ledger(), tmp_path / "jobs.csv"
    ledger.open(path)

    play(played, engine(played), [ledger])

    (row,) = rows(path)
    assert (row["stops"], row["lost_s"], row["ends_s"]) == ("1", "3.000", "13.000")


def test_rows_go_on_where_they_were_when_it_was_put_away(tmp_path: Path) -> None:
    played = trial(1, [spec(f"é{n}", n, 10) for n in range(6)])
    whole, path = tmp_path / "whole.csv", tmp_path / "jobs.csv"
    ledger = Ledger()
    ledger.open(whole)
    play(played, engine(played), [ledger])

    before = Ledger()
    before.open(path)
    clock = Clock(played, engine(played), [before])
    while clock.step(25):
        pass
    save(tmp_path / "run", clock, "1", {})
    while clock.step(45):
        pass
    before.close()  # more was written since
    again = load(tmp_path / "run", played, "1", {})
    (after,) = again.observers
    assert isinstance(after, Ledger)
    after.open(path)
    while again.step():
        pass
    again.finish()

    assert path.read_bytes() == whole.read_bytes()


def test_rows_that_are_gone_are_not_made_up(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    ledger = Ledger()
    ledger.open(path)
    again = pickle.loads(pickle.dumps(ledger))  # noqa: S301 - our own
    ledger.close()

    path.unlink()

    with pytest.raises(BadInput, match=r"jobs\.csv: 0 bytes, want at least the \d+"):
        again.open(path)
