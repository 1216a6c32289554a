"""Nodes and leaves that come, go or change."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from ringleaf.engine.event import LeavesChanged, NodesChanged, NodesGone
from ringleaf.engine.lifecycle import JobLifecycle
from ringleaf.framework.changes import Change
from ringleaf.framework.context import Context
from ringleaf.framework.job_state import JobState
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.placement import Placement
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.faults import may_fail_pods

SAME_PLACE: Final = ("product", "chips", "superpod", "leaf", "slot")
"""Where a node stands; one that moves is another node."""


class NodeEvents:
    """The nodes and leaves as they were last reported.

    Args:
        ctx: The parts of the scheduler.
        lifecycle: What becomes of jobs whose pods are gone.
        nodes: The nodes at the beginning, by name; changed in place.
        leaves: What is known of leaf switches besides the pods under them.

    """

    def __init__(
        self,
        ctx: Context,
        lifecycle: JobLifecycle,
        nodes: dict[str, Node],
        leaves: tuple[Leaf, ...],
    ) -> None:
        self._ctx, self._state, self._lifecycle = ctx, ctx.state, lifecycle
        self.by_name = nodes
        self.leaves = leaves
        self.faulty = {node.name for node in nodes.values() if may_fail_pods(node)}
        """Nodes on which pods may be faulty."""
        for node in nodes.values():
            ctx.repairs.fault_log.nodes_changed(None, node, 0.0)

    def nodes_changed(self, event: NodesChanged) -> None:
        """Nodes are new or changed, in place or moved."""
        changed = [n for n in event.nodes if self.by_name.get(n.name) != n]
        if not changed:
            return
        moved = [n for n in changed if not self._in_place(n)]
        for node in changed:
            before = self.by_name.get(node.name)
            self._ctx.repairs.fault_log.nodes_changed(before, node, self._state.now)
        self.by_name |= {node.name: node for node in changed}
        self._lifecycle.give_up_reservations_on({node.name for node in changed})
        self._suspect(changed)
        if moved:
            self._release_for_repairs()
            self._rebuild({node.name for node in changed})
            return
        cluster = self._state.cluster
        for node in changed:
            cluster.change(cluster.index[node.name], node)
        self._hold_for_repairs()
        self._reconsider_nodes({node.product: None for node in changed})

    def _suspect(self, changed: Iterable[Node]) -> None:
        """Pods on nodes that changed may be faulty, or faulty no more."""
        names = {node.name for node in changed}
        faulty = {node.name for node in changed if may_fail_pods(node)}
        self.faulty = self.faulty - names | faulty
        repairs = self._ctx.repairs
        suspects = repairs.suspects
        meets = [r.name for r in repairs.open.values() if r.concerns(names)]
        told = [
            name
            for name, pod_faults in repairs.reported_faulty.items()
            if any(each.node in names for each in pod_faults)
        ]
        suspects |= dict.fromkeys([*meets, *told])
        for name, job_state in self._state.job_states.items() if faulty else ():
            if any(each.node in faulty for each in job_state.placements.values()):
                suspects[name] = None

    def _in_place(self, node: Node) -> bool:
        """Whether *node* stands where it stood."""
        known = self.by_name.get(node.name)
        return known is not None and all(
            getattr(known, key) == getattr(node, key) for key in SAME_PLACE
        )

    def nodes_gone(self, event: NodesGone) -> None:
        """Nodes are gone, and the pods on them."""
        gone = self.by_name.keys() & {*event.names}
        if not gone:
            return
        for job_state in list(self._state.job_states.values()):
            lost = {r: p for r, p in job_state.placements.items() if p.node in gone}
            if lost:
                self._note_lost(job_state, lost)
                self._lifecycle.release(job_state, lost)
                self._lifecycle.requeue_if_incomplete(job_state)
        self._lifecycle.give_up_reservations_on(gone)
        self._release_for_repairs()
        for name in gone:
            self._ctx.repairs.fault_log.nodes_changed(
                self.by_name.pop(name), None, self._state.now
            )
            self._ctx.pods_ready.quarantine.forget(name)
        self.faulty -= gone
        self._rebuild()

    def _note_lost(self, job_state: JobState, lost: Mapping[int, Placement]) -> None:
        """Note pods lost with their node; of terminating ones, those we deleted."""
        repair = self._ctx.repairs.open.get(job_state.job.name)
        ours = set() if repair is None else repair.deletion.awaiting_replacement
        ending = job_state.terminating - ours
        gone = {n: place for n, place in lost.items() if n not in ending}
        self._ctx.repairs.note_lost_with_node(job_state.job.name, gone)

    def leaves_changed(self, event: LeavesChanged) -> None:
        """What is known of leaf switches has changed."""
        if self.leaves != event.leaves:
            self.leaves = event.leaves
            self._rebuild()

    def _rebuild(self, changed: Collection[str] = ()) -> None:
        """Nodes came, went or moved: the cluster is made anew; pods stay.

        Of nodes that are not *changed*, what is free is known better than they said.
        """
        old = self._state.cluster
        for name, at in old.index.items():
            if name in self.by_name:
                node, taken = self.by_name[name], old.taken.item(at)
                said = node.free if name in changed else old.pool.item(at)
                self.by_name[name] = replace(node, free=said | taken)
        cluster = Cluster(self.by_name.values(), self.leaves)
        with Statement(cluster) as statement:
            for job, holdings in old.holdings.items():
                for held in holdings:
                    statement.hold(
                        job,
                        cluster.index[old.names[held.node]],
                        held.chips,
                        held.replica,
                        held.mark,
                        demand=held.demand,
                        charged=held.charged,
                    )
            statement.commit()
        for name in self._ctx.pods_ready.quarantine.nodes:
            cluster.set_quarantined(cluster.index[name], on=True)
        self._state.use_cluster(cluster)
        self._ctx.framework.cluster_replaced()
        old.watchers.clear()  # they know it: nothing else would let go of it soon
        self._hold_for_repairs()
        self._reconsider_nodes(cluster.products)

    def _reconsider_nodes(self, products: Iterable[Any]) -> None:
        """Retry what depends on nodes; repairs may hold less on worse nodes."""
        ctx = self._ctx
        self._state.recount_totals()
        ctx.wakeups.note(Change.NODES_CHANGED)
        ctx.wakeups.capacity_freed(products)

    def _release_for_repairs(self) -> None:
        """Release what repairs hold: pods that were not known may have the chips."""
        for repair in self._ctx.repairs.open.values():
            repair.release_places(self._state.cluster)

    def _hold_for_repairs(self) -> None:
        for repair in self._ctx.repairs.open.values():
            job_state = self._state.job_states.get(repair.name)
            repair.hold_places(self._state.cluster, job_state)
