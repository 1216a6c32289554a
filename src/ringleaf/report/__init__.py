"""Reports of simulated runs: a page for people, plots for documents."""

from ringleaf.report.results import (
    Estimate,
    Measured,
    ResourceBound,
    Results,
    RunResult,
    StudySpec,
)

__all__ = ["Estimate", "Measured", "ResourceBound", "Results", "RunResult", "StudySpec"]
