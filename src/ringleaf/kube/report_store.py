"""ConfigMaps: the reports on nodes, and the topology."""

from collections.abc import Iterable

from ringleaf.kube import topology
from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.isolation import Isolation
from ringleaf.kube.node_reports import MergedReports
from ringleaf.kube.objects import ConfigMap
from ringleaf.kube.reports import is_report, read
from ringleaf.kube.watch import Gone
from ringleaf.model.topology import Topology


class ReportStore:
    """Stores ConfigMaps as reflectors tell of them.

    Args:
        state: What the stores of the cache share.
        isolation: Quarantines ConfigMaps that fail to be stored.

    """

    def __init__(self, state: CacheState, isolation: Isolation) -> None:
        self._state, self._isolation = state, isolation
        self.reports = MergedReports()
        self.topology: Topology | None = None
        self.mismatches = 0
        """Reports that came and did not fit their check code."""

    def on_update(self, maps: Iterable[ConfigMap]) -> None:
        """Store ConfigMaps that are new or changed."""
        self._isolation.store_each("ConfigMap", maps, self._store)

    def on_delete(self, gone: Iterable[Gone]) -> None:
        """Forget ConfigMaps that are gone."""
        for each in gone:
            self._isolation.forget("ConfigMap", each)
            self._state.problems.forget("ConfigMap", f"{each.namespace}/{each.name}")
            if each.name == topology.NAME:
                self.topology = None
                self._topology_changed()
            else:
                self._state.deltas.nodes |= self.reports.drop(each.key)

    def _store(self, given: ConfigMap) -> None:
        metadata = given.metadata
        if metadata.name == topology.NAME:
            self._store_topology(given)
        elif is_report(metadata.name):
            found = read(given)
            self.mismatches += found.mismatches
            self._state.deltas.nodes |= self.reports.put(metadata.key, found)
            self._note(given, found.problems[:3])

    def _store_topology(self, given: ConfigMap) -> None:
        try:
            found, warnings = topology.read_topology({"data": given.data or {}})
        except topology.BadTopology as error:
            warnings = [str(error)]
            found = None
        self._note(given, warnings[:3])
        if found is not None and found != self.topology:
            self.topology = found
            self._topology_changed()

    def _note(self, given: ConfigMap, messages: Iterable[str]) -> None:
        meta, problems = given.metadata, self._state.problems
        own = meta.namespace, meta.name, meta.uid
        problems.note("ConfigMap", *own, "; ".join(messages))

    def _topology_changed(self) -> None:
        deltas = self._state.deltas
        deltas.leaves = deltas.conf = True
        deltas.nodes |= dict.fromkeys(self._state.node_objects)
