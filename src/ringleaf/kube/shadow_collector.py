"""The metrics of a shadow, alone or beside those of a scheduler."""

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from ringleaf.explain.match import Agreement
from ringleaf.kube.catalogue import SHADOW
from ringleaf.kube.collector import Collected, Values, family_of
from ringleaf.kube.shadow_results import ShadowResults


class ShadowCollector(Collector):
    """Collects what a shadow has found, on each scrape; every verdict, also at 0."""

    def __init__(self, findings: ShadowResults) -> None:
        self._findings = findings

    def collect(self) -> Iterator[Family]:
        """Every metric of a shadow with its values."""
        found = self._findings
        differences = sorted(found.rules.items())
        values: Values = {
            "ringleaf_shadow_jobs_total": [
                ((match.value,), found.verdicts[match]) for match in Agreement
            ],
            "ringleaf_shadow_differences_total": [
                ((match.value, rule), n) for (match, rule), n in differences
            ],
            "ringleaf_shadow_waiting_jobs": [((), len(found.waiting))],
        }
        for metric in SHADOW:
            yield family_of(metric, values[metric.name])


class ShadowPage:
    """The metrics of a shadow that is alone in its process."""

    def __init__(self, findings: ShadowResults) -> None:
        self._own = ShadowCollector(findings)

    async def collected(self) -> Collected:
        """The metrics as they are now."""
        return Collected(self._own.collect())
