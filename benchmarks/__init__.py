"""Measurements: scripts that docs/benchmarks.md and docs/results.md tell of."""
