"""The nodes: their objects, and how the engine knows them."""

from collections.abc import Iterable

from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.gang_members import named_chips
from ringleaf.kube.isolation import Isolation
from ringleaf.kube.node_info import NodeInfo, node_of
from ringleaf.kube.node_pods import NodePods
from ringleaf.kube.objects import NodeObject
from ringleaf.kube.quarantine import Culprit
from ringleaf.kube.report_store import ReportStore
from ringleaf.kube.watch import Gone
from ringleaf.model.cluster import Node
from ringleaf.model.mask import mask_of


class NodeStore:
    """Stores nodes as reflectors tell of them.

    Args:
        state: What the stores of the cache share.
        reports: The reports on nodes, and the topology.
        pods: The pods of every node.
        isolation: Quarantines nodes that fail to be read.

    """

    def __init__(
        self,
        state: CacheState,
        reports: ReportStore,
        pods: NodePods,
        isolation: Isolation,
    ) -> None:
        self._state, self._objects = state, state.node_objects
        self._reports, self._pods = reports, pods
        self._isolation, self._closed = isolation, isolation.closed

    def on_update(self, nodes: Iterable[NodeObject]) -> None:
        """Store nodes that are new or changed."""
        for node in nodes:
            name = node.metadata.name
            self._objects[name] = node
            self._state.deltas.nodes[name] = None
            self._state.lost_nodes.discard(name)
            self._state.unreadable_nodes.discard(name)

    def on_delete(self, gone: Iterable[Gone]) -> None:
        """Forget nodes that are gone."""
        state = self._state
        for each in gone:
            self._isolation.forget("Node", each)
            if self._objects.pop(each.name, None) is not None:
                state.deltas.nodes[each.name] = None
                state.lost_nodes.add(each.name)
            elif each.name in state.unreadable_nodes:
                state.lost_nodes.add(each.name)  # its pods are all that is known of it
                self._mark_pods(each.name)
            state.unreadable_nodes.discard(each.name)
            state.problems.forget("Node", f"/{each.name}")

    def on_unreadable(self, key: str, _raw: bytes) -> None:
        """A node is there that cannot be read: its pods are not stranded."""
        self._state.unreadable_nodes.add(key.rpartition("/")[2])

    def changes(self) -> tuple[list[Node], list[str]]:
        """Nodes that are new or changed, and the names of those that are gone."""
        deltas, nodes = self._state.deltas, self._state.nodes
        marked, deltas.nodes = deltas.nodes, {}
        changed, vanished = list[Node](), list[str]()
        for name in marked:
            given, before = self._objects.get(name), nodes.get(name)
            found = None if given is None else self._read(name, given)
            if given is None or found is None:
                if before is not None:
                    del nodes[name]
                    vanished.append(name)
                    self._mark_pods(name)
                continue
            nodes[name] = found
            if before is None or before.node != found.node:
                changed.append(found.node)
            if before is None or before.node.product != found.node.product:
                self._mark_pods(name)
            uid, message = given.metadata.uid, "; ".join(found.problems[:3])
            self._state.problems.note("Node", "", name, uid, message)
        return changed, vanished

    def _mark_pods(self, name: str) -> None:
        self._state.mark_pods(self._state.on_node.get(name, ()))

    def _read(self, name: str, given: NodeObject) -> NodeInfo | None:
        """What is known of a node; None where it is quarantined."""
        if self._isolation.is_quarantined(Culprit("Node", name)):
            self._state.unreadable_nodes.add(name)
            return None
        try:
            return self._state_of(name, given)
        except Exception as error:  # noqa: BLE001 - one bad node stops no other
            self._isolation.quarantine_node(name, error)
            self._state.unreadable_nodes.add(name)
            return None

    def _state_of(self, name: str, given: NodeObject) -> NodeInfo:
        pods = self._pods.of(name)
        claims = map(named_chips, pods)
        named = [chip for node, own in claims if node == name for chip in own]
        held = mask_of(named)
        # Of two pods that name the same chip, one holds another: which one is unknown.
        twice = held.bit_count() < len(named)
        unclear = twice or any(pod.is_unclear for pod in pods)
        return node_of(
            given,
            self._reports.reports.of(name),
            self._reports.topology,
            is_unclear=self._closed.has(name) or unclear,
            held=held,
        )
