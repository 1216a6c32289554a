"""A film of small runs, looked at by hand."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ringleaf.engine.event import NodesChanged, NodesGone
from ringleaf.simulator.checkpoint import load, save
from ringleaf.simulator.clock import Clock, play
from ringleaf.simulator.film import Film, FilmNodeState, Stills, packed, unpacked
from ringleaf.simulator.trial import TimedEvent, Trial
from tests.simulator.trials import engine, node, spec, trial


@dataclass
class Seen:
    """A film after it was written down and read."""

    film: dict[str, Any]
    stills: Stills

    def owners(self, node: int) -> list[str]:
        """The names of those who have most of a node, still by still."""
        names = ["-", *(job[1] for job in self.film["jobs"])]
        return [names[owner] for owner in self.stills.owner[:, node]]


def filmed(played: Trial, most: int = 12) -> Seen:
    film = Film(most)
    play(played, engine(played), [film])
    plain = json.loads(json.dumps(film.plain()))
    return Seen(plain, unpacked(plain))


def test_a_still_is_taken_at_every_multiple_of_the_interval() -> None:
    # Jobs arrive from 0 to 90, which is nine of twelve stills: one every 10 s.
    played = trial(2, [spec("a", 0, 35), spec("b", 90, 15)])

    seen = filmed(played)

    assert seen.film["interval_s"] == 10
    assert "".join(seen.owners(0)) == "aaaa-----bb"
    assert seen.owners(1) == ["-"] * len(seen.stills)


def test_a_still_at_the_moment_of_a_change_shows_what_is_after_it() -> None:
    played = trial(1, [spec("a", 0, 30), spec("b", 30, 10), spec("c", 90, 1)])

    seen = filmed(played)

    assert seen.owners(0)[:5] == ["a", "a", "a", "b", "-"]


def test_the_job_with_most_chips_owns_a_node_and_the_first_among_equals() -> None:
    job_specs = [
        spec("a", 0, 100, chips=2),
        spec("b", 10, 40, chips=4),
        spec("c", 20, 60, chips=2),
        spec("d", 90, 1, chips=2),
    ]

    seen = filmed(trial(1, job_specs), most=24)

    # A still every 5 s: c is there from the fifth to the sixteenth.
    assert "".join(seen.owners(0)) == "aabbbbbbbb" + "a" * 10
    assert seen.stills.used[:, 0].tolist() == [
        2, 2, 6, 6, 8, 8, 8, 8, 8, 8, 4, 4, 4, 4, 4, 4, 2, 2, 4, 2
    ]  # fmt: skip


def test_a_film_that_is_full_is_thinned_and_goes_on_at_twice_the_interval() -> None:
    played = trial(1, [spec("a", 0, 30), spec("b", 0, 300)])

    seen = filmed(played, most=4)

    # All arrive at once: 1 s at first, then 2, 4, 8 and so on: stills at 0, 128, 256.
    assert seen.film["interval_s"] == 128
    assert seen.owners(0) == ["a", "b", "b"]


def test_a_film_leaves_out_the_tail_of_a_run() -> None:
    played = trial(1, [spec("a", 0, 30), spec("b", 90, 10_000)])

    seen = filmed(played)

    # Every 10 s at first, then every 20 s: to 11 of these, and no further.
    assert seen.film["interval_s"] == 20
    assert "".join(seen.owners(0)) == "aa---bbbbbb"


def test_jobs_on_no_still_are_not_named() -> None:
    job_specs = [spec(f"short-{n}", n * 10.0 + 1, 2) for n in range(10)]

    seen = filmed(trial(1, [*job_specs, spec("long", 100, 90)]), most=4)

    assert [job[1] for job in seen.film["jobs"]] == ["long"]


def test_a_job_has_the_number_of_its_arrival_its_chips_and_its_nodes() -> None:
    job_specs = [spec("a", 0, 5), spec("b", 10, 50, replicas=2), spec("c", 90, 1)]

    seen = filmed(trial(2, job_specs))

    assert [0, "a", 8, 1] in seen.film["jobs"]
    assert [1, "b", 16, 2] in seen.film["jobs"]


def test_nodes_stand_under_their_leaf_or_in_their_superpod() -> None:
    played = trial(3, [spec("a", 0, 5)], under=2)
    loose = replace(node(3), leaf=None)
    pod = replace(node(4), leaf=None, superpod=7)
    site = replace(played.site, nodes=(*played.site.nodes, loose, pod))

    film = filmed(replace(played, site=site)).film

    assert film["groups"] == [
        ["leaf", "leaf-0"], ["leaf", "leaf-1"], ["", ""], ["SuperPoD", "7"]
    ]  # fmt: skip
    assert film["group"] == [0, 0, 1, 2, 3]


def test_faults_are_on_the_film() -> None:
    chip = node(0, faulty=1 << 7, unhealthy=1 << 7)
    timed_events = [
        TimedEvent(20, NodesChanged((chip,))),
        TimedEvent(40, NodesChanged((node(0, ready=False),))),
        TimedEvent(60, NodesChanged((node(0),))),
        TimedEvent(70, NodesGone(("n000",))),
    ]
    played = trial(2, [spec("a", 0, 5, chips=1), spec("b", 90, 1, chips=1)])

    seen = filmed(replace(played, timed_events=timed_events))

    well, partly, out = (int(health) for health in FilmNodeState)
    assert seen.stills.health[:9, 0].tolist() == [
        well, well, partly, partly, out, out, well, out, out
    ]  # fmt: skip
    assert set(seen.stills.health[:, 1].tolist()) == {well}


def test_pods_that_are_gone_hold_nothing() -> None:
    played = trial(1, [spec("a", 0, 60), spec("b", 90, 1)])
    timed_events = [
        TimedEvent(15, NodesGone(("n000",))),
        TimedEvent(45, NodesChanged((node(0),))),
    ]

    seen = filmed(replace(played, timed_events=timed_events, checkpoint_s=0), most=24)

    # A still every 5 s: away from 15 to 45, and over when it has worked for 60.
    assert "".join(seen.owners(0)) == "aaa------aaaaaaaaab"


def test_a_film_takes_no_more_room_however_long_the_run() -> None:
    def size(n_jobs: int) -> int:
        job_specs = [spec(f"{n % 97:02}", n * 10.0, 9) for n in range(n_jobs)]
        return len(json.dumps(filmed(trial(1, job_specs), most=60).film))

    assert size(2000) < 1.5 * size(100)


def test_a_run_that_was_put_away_gives_the_same_film(tmp_path: Path) -> None:
    job_specs = [spec(f"j{n}", n * 7.0, 20, chips=4) for n in range(40)]
    played = trial(2, job_specs)
    whole = filmed(played).film
    film = Film(12)
    clock = Clock(played, engine(played), [film])
    for _ in range(30):
        clock.step()

    save(tmp_path / "run", clock, "1", {})
    again = load(tmp_path / "run", played, "1", {})
    while again.step():
        pass
    again.finish()

    (film,) = again.observers  # type: ignore[assignment]
    assert film.plain() == whole


def test_an_empty_film_can_be_written_and_read() -> None:
    seen = filmed(trial(2, []))

    assert len(seen.stills) == 0
    assert seen.film["jobs"] == []


@pytest.mark.parametrize("n", [1, 2, 5])
def test_every_second_still_can_be_dropped(n: int) -> None:
    job_specs = [spec(f"j{i}", i * 10.0, 9) for i in range(n + 1)]
    seen = filmed(trial(1, job_specs))
    half = seen.stills.halved

    back = unpacked(seen.film | packed(half))

    assert back.owner.tolist() == seen.stills.owner[::2].tolist()
