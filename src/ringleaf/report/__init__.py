"""Reports of simulated runs: a page for people, plots for documents."""

from ringleaf.report.results import Bound, Estimate, Measured, Results, Run, Spec

__all__ = ["Bound", "Estimate", "Measured", "Results", "Run", "Spec"]
