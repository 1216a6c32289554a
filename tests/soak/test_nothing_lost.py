"""The scheduler is killed at random moments, and nothing is lost."""

from ringleaf.testbed.cluster import Testbed
from tests.soak.run import Plan, Soak, markdown


def test_nothing_is_lost_when_the_scheduler_is_killed(
    new_testbed: type[Testbed],
) -> None:
    said: list[str] = []

    report = Soak(Plan(), said.append, new_testbed).run()

    told = "\n".join([*said, markdown(report)])
    assert report.violations == [], told
    assert (report.kills, report.restarts) == (20, 1), told
    assert report.half_bound > 0, told
    assert report.completed + report.released == report.half_bound, told
