"""Hypothesis on a shared machine: no deadlines; in CI the same examples each time."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ringleaf",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ringleaf")
