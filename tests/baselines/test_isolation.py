"""Rules that give a job links of its own: whole leaves, Jigsaw."""

from ringleaf.model.decision import Reason, Waiting
from ringleaf.model.job import Job
from tests.baselines.stage import A2, OLD, Stage, drawn, under_leaves


def gang(pods: int, name: str = "j", chips: int = 8) -> Job:
    return Job(name, A2, chips, pods)


def test_whole_leaves_keep_small_jobs_under_the_tightest_leaf() -> None:
    stage = Stage("whole-leaves", under_leaves("A ####", "B ###.", "C ####"))

    assert stage.comes(gang(3)) == ["B0", "B1", "B2"]


def test_whole_leaves_give_a_large_job_leaves_that_are_wholly_free() -> None:
    stage = Stage("whole-leaves", under_leaves("A ###.", "B ####", "C ####"))

    assert stage.comes(gang(6)) == ["B0", "B1", "B2", "B3", "C0", "C1"]
    assert stage.comes(gang(2, "inside")) == ["C2", "C3"]


def test_whole_leaves_wait_though_enough_nodes_are_free() -> None:
    stage = Stage("whole-leaves", under_leaves("A ###.", "B ####", "C ###."))

    assert stage.comes(gang(6)) is None

    found = stage.engine.explain("j")
    assert isinstance(found, Waiting)
    assert found.because == (
        "there is room for 10 pods, its rule wants "
        "one leaf, or leaves that are wholly free"
    )
    assert found.reasons == {Reason.TOO_FEW_CHIPS: 2, Reason.LEAF_CLOSED: 10}


def test_jigsaw_takes_the_same_slots_under_every_leaf() -> None:
    """Three nodes are free under A and C at slots 0, 1 and 3; B lacks slot 3."""
    nodes = under_leaves("A ##.#", "B ###.", "C ##.#")

    assert Stage("jigsaw", nodes).comes(gang(6)) == [
        *("A0", "A1", "A3"),
        *("C0", "C1", "C3"),
    ]


def test_jigsaw_puts_what_remains_at_some_of_the_same_slots() -> None:
    """Seven are two leaves of three and one more at a slot that those use."""
    nodes = under_leaves("A ##.#", "B .##.", "C ##.#")

    found = Stage("jigsaw", nodes).comes(gang(7))

    assert found == ["A0", "A1", "A3", "C0", "C1", "C3", "B1"]


def test_jigsaw_waits_where_slots_do_not_meet() -> None:
    """Four nodes at four different slots: no two share one."""
    nodes = under_leaves("A #...", "B .#..", "C ..#.", "D ...#")

    assert Stage("jigsaw", nodes).comes(gang(2)) is None


def test_jigsaw_searches_large_leaves_by_what_they_have_in_common() -> None:
    """Thirteen: the four slots that three leaves share, and one of them under D."""
    leaves = ("A ####.#...", "B ####..#..", "C ####...#.", "D #........")

    found = Stage("jigsaw", under_leaves(*leaves)).comes(gang(13))

    assert found == [f"{leaf}{slot}" for leaf in "ABC" for slot in range(4)] + ["D0"]


def test_single_pods_fill_nodes_that_are_in_use_and_leaves_that_are_tight() -> None:
    for name in ("jigsaw", "whole-leaves", "vendor-1.0", "vendor-2.0"):
        stage = Stage(name, under_leaves("A ####", "B -#..", "C ###."))

        assert stage.comes(gang(1, "part", 2)) == ["B0"]
        assert stage.comes(gang(1, "whole", 8)) == ["B1"]


def test_without_leaves_jobs_are_placed_by_their_chips() -> None:
    for name in ("jigsaw", "whole-leaves"):
        stage = Stage(name, drawn("####|####", "##..|....", "####|####", product=OLD))

        assert stage.comes(Job("j", OLD, 8, 2)) == ["n00", "n02"]
        assert stage.comes(Job("k", OLD, 2)) == ["n01"]
