"""Jobs on their way from bound to running."""

from math import inf

from ringleaf.framework.pods_ready import SPARE_CLOCKS, PodsReadyWatch


def run(watch: PodsReadyWatch, job: str, now: float) -> None:
    watch.begin(job, now)
    watch.run(job, (0,), None, now)


def test_times_of_jobs_that_are_gone_are_not_kept() -> None:
    """A standby, which decides nothing, never asks which of them is the first."""
    watch = PodsReadyWatch()
    run(watch, "stays", 0.0)
    for i in range(1000):
        run(watch, f"j{i}", float(i))
        watch.forget(f"j{i}")
    run(watch, "last", 2000.0)

    assert len(watch.clocks) <= SPARE_CLOCKS + 4
    assert watch.due(5.0, 1.0) == ["stays"]
    assert watch.next_at(1.0) == 6.0
    watch.forget("stays")
    assert watch.due(3000.0, 1.0) == ["last"]
    watch.forget("last")
    assert watch.next_at(1.0) == inf
