"""The metrics of a writer of summaries, alone or beside those of a scheduler."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from ringleaf.kube.catalogue import SUMMARY
from ringleaf.kube.collector import Collected, Values, family_of
from ringleaf.kube.rank_table import Status
from ringleaf.kube.summary import SummaryWriter


class SummaryCollector(Collector):
    """Collects what a writer has done, on each scrape; every status, also at 0."""

    def __init__(self, writer: SummaryWriter) -> None:
        self._writer = writer

    def collect(self) -> Iterator[Family]:
        """Every metric of a writer with its values."""
        of = self._writer
        lines = of.lines()
        told = Counter(line.status for line in lines)
        amiss = sum(line.outcome in ("not written", "left alone") for line in lines)
        values: Values = {
            "ringleaf_summary_writes_total": [
                ((result,), n) for result, n in sorted(of.map_store.done.items())
            ],
            "ringleaf_summary_jobs": [
                ((status.value,), told[status.value]) for status in Status
            ],
            "ringleaf_summary_jobs_amiss": [((), amiss)],
            "ringleaf_summary_leader": [((), of.leads)],
            "ringleaf_summary_strange_maps": [((), len(of.map_store.strange))],
            "ringleaf_summary_seconds": [((), of.seconds)],
        }
        for metric in SUMMARY:
            yield family_of(metric, values[metric.name])


class SummaryPage:
    """The metrics of a writer that is alone in its process."""

    def __init__(self, writer: SummaryWriter) -> None:
        self._own = SummaryCollector(writer)

    async def collected(self) -> Collected:
        """The metrics as they are now."""
        return Collected(self._own.collect())
