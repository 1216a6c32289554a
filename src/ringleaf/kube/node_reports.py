"""What all reports together say of a node; of bad ones, the last good ones stay."""

from typing import Any, NamedTuple

from ringleaf.kube.reports import DeviceReport, NodeReport, ReportMap, SwitchReport

COLLECTED = "cluster-info-"
"""The ConfigMaps of the cluster daemon, which collects the reports of all nodes."""


class NodeReports(NamedTuple):
    """What is said of one node."""

    device: DeviceReport | None = None
    node: NodeReport | None = None
    switch: SwitchReport | None = None


class MergedReports:
    """Reports by the ConfigMap that has them.

    Where a node is reported on in both layouts, those that the cluster daemon collected
    count (``useClusterInfoManager``), or the direct ones.
    """

    def __init__(self) -> None:
        self.collected_first = True
        self._maps: dict[str, ReportMap] = {}
        self._direct: dict[str, NodeReports] = {}
        self._collected: dict[str, NodeReports] = {}

    def put(self, key: str, found: ReportMap) -> dict[str, None]:
        """A ConfigMap is new or changed; the nodes of which it says something new."""
        before = self._maps.get(key)
        if before is not None:
            found = _with_last_good(before, found)
        self._maps[key] = found
        return self._changes(key, before or ReportMap(), found)

    def drop(self, key: str) -> dict[str, None]:
        """A ConfigMap is gone; the nodes of which it said something."""
        before = self._maps.pop(key, None)
        return {} if before is None else self._changes(key, before, ReportMap())

    def of(self, node: str) -> NodeReports:
        """What is said of *node*."""
        first, then = self._collected, self._direct
        if not self.collected_first:
            first, then = then, first
        one, other = first.get(node, NodeReports()), then.get(node, NodeReports())
        return NodeReports(
            one.device or other.device,
            one.node or other.node,
            one.switch or other.switch,
        )

    def _changes(
        self, key: str, before: ReportMap, after: ReportMap
    ) -> dict[str, None]:
        said = self._collected if COLLECTED in key else self._direct
        changed: dict[str, None] = {}
        for part in ("devices", "nodes", "switches"):
            old, new = getattr(before, part), getattr(after, part)
            field = part.removesuffix("es" if part == "switches" else "s")
            for node in sorted(old.keys() | new.keys()):
                if old.get(node) != new.get(node):
                    report = new.get(node) or self._elsewhere(key, part, node)
                    known = said.get(node, NodeReports())
                    said[node] = known._replace(**{field: report})
                    changed[node] = None
        return changed

    def _elsewhere(self, key: str, part: str, node: str) -> Any:  # noqa: ANN401
        """What another shard says of *node*: it may have moved there before."""
        if COLLECTED not in key:
            return None
        others = (m for k, m in self._maps.items() if k != key and COLLECTED in k)
        found = (getattr(other, part).get(node) for other in others)
        return next(filter(None, found), None)


def _with_last_good(before: ReportMap, found: ReportMap) -> ReportMap:
    """*found*, with what was known where it cannot be read."""
    if not found.readable:
        return before
    for part in ("devices", "nodes", "switches"):
        old, new = getattr(before, part), getattr(found, part)
        for node, report in new.items():
            if report is None:
                new[node] = old.get(node)
    return found
