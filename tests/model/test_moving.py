"""What is lost when a job is moved."""

import pytest

from ringleaf.model.moving import Moving


@pytest.mark.parametrize(
    ("moving", "lost_s"),
    [
        pytest.param(Moving(), 900, id="all since its start"),
        pytest.param(Moving(checkpoint_s=400.0), 100, id="since it saved its work"),
        pytest.param(Moving(checkpoint_s=0.0), 0, id="it saves all the time"),
        pytest.param(Moving(checkpointed_at=950.0), 50, id="since it says it did"),
        pytest.param(Moving(checkpointed_at=50.0), 900, id="in an earlier run"),
        pytest.param(Moving(checkpointed_at=2000.0), 0, id="its clock is ahead"),
        pytest.param(
            Moving(checkpointed_at=800.0, checkpoint_s=400.0), 100, id="later"
        ),
    ],
)
def test_work_is_lost_since_the_last_checkpoint(moving: Moving, lost_s: float) -> None:
    assert moving.lost_s(100, 1000) == lost_s


def test_a_job_that_starts_later_has_lost_nothing() -> None:
    assert Moving().lost_s(1000, 900) == 0
