"""Decisions in words."""

from ringleaf.model.decision import Reason, Waiting
from ringleaf.model.job import Job
from ringleaf.policies.products import PRODUCTS


def test_the_reason_of_most_nodes_comes_first_then_the_order_of_the_table() -> None:
    job = Job("j", PRODUCTS["atlas-800t-a2"], 8)
    reasons = {Reason.NOT_READY: 1, Reason.CORDONED: 3, Reason.TOO_FEW_CHIPS: 3}

    waits = Waiting(job, 1, 0, reasons, "")

    found = waits.parts[-1].removeprefix("nodes: ").split(", ")
    assert found == [
        f"3 {Reason.CORDONED.words}",
        f"3 {Reason.TOO_FEW_CHIPS.words}",
        f"1 {Reason.NOT_READY.words}",
    ]
