"""The results of a run: every measure of docs/measures.md, by one observer."""

from ringleaf.simulator.metrics.metrics import SERIES, RunMetrics

__all__ = ["SERIES", "RunMetrics"]
