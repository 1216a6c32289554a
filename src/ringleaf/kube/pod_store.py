"""The pods, and the gangs that they belong to."""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct, field

from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.claim_store import ClaimStore
from ringleaf.kube.depth import decoded
from ringleaf.kube.gang_members import named_chips, nodes_of, place_of
from ringleaf.kube.isolation import Isolation
from ringleaf.kube.label_store import LabelStore
from ringleaf.kube.node_pods import NodePods
from ringleaf.kube.objects import Metadata, Pod
from ringleaf.kube.pod_state import PodPhase, PodState
from ringleaf.kube.recovery import words_of
from ringleaf.kube.watch import Gone

VOLCANO: Final = "volcano"
PODGROUP_WAIT_S: Final = 3.0
"""How old a pod of Volcano's is before it counts as one without a PodGroup.

Volcano's controller makes PodGroups for pods that come without, and says so on them.
"""


class _BoundPod(Struct, rename="camel"):
    """What must be known of a pod of which nothing else can be read."""

    class Spec(Struct, rename="camel"):
        """Where it is."""

        node_name: str = ""

    metadata: Metadata = field(default_factory=Metadata)
    spec: Spec = field(default_factory=Spec)


_bound_pod: Final = msgspec.json.Decoder(_BoundPod).decode


class PodStore:
    """Stores pods as reflectors tell of them.

    Args:
        state: What the stores of the cache share.
        nodes: The pods of every node.
        labels: The labels of pods that count.
        claims: The claims of pods.
        isolation: Quarantines pods that fail to be stored.

    """

    def __init__(
        self,
        state: CacheState,
        nodes: NodePods,
        labels: LabelStore,
        claims: ClaimStore,
        isolation: Isolation,
    ) -> None:
        self._state, self._pods, self._deltas = state, state.pods, state.deltas
        self._nodes, self._labels, self._claims = nodes, labels, claims
        self._isolation, self._closed = isolation, isolation.closed
        self._uids: dict[str, str] = {}
        """Key -> uid."""

    def on_update(self, pods: Iterable[Pod]) -> None:
        """Store pods that are new or changed."""
        self._isolation.store_each("Pod", pods, self._store, self._reject)

    def on_unreadable(self, key: str, raw: bytes) -> None:
        """A pod is there that cannot be read: where it is, it may hold any chips."""
        try:
            found = decoded(_bound_pod, raw)
        except (msgspec.MsgspecError, UnicodeError):
            return
        known = self._pods.get(found.metadata.uid)
        if known is None or known.node != found.spec.node_name:
            self._closed.close(key, found.metadata.uid, found.spec.node_name)

    def on_delete(self, gone: Iterable[Gone]) -> None:
        """Forget pods that are gone."""
        for each in gone:
            self._closed.drop(each.key, each.uid)
            self._isolation.forget("Pod", each)
            pod = self._pods.pop(each.uid, None)
            if pod is None:
                continue
            self._forget_key(pod)
            self._state.problems.forget("Pod", pod.key)
            self._forget(pod)

    def _store(self, given: Pod) -> None:
        pod = self._pods.get(given.metadata.uid)
        if self._closed:
            self._closed.open(given.metadata.key)
        if pod is not None:
            self._change(pod, given)
        elif (
            given.spec.scheduler_name in self._state.schedulers or given.spec.node_name
        ):
            self._add(given)

    def _reject(self, given: Pod) -> None:
        """Forget a pod that failed to be stored; no chips of its node are given."""
        meta = given.metadata
        self._expel(meta.uid)
        self._closed.close(meta.key, meta.uid, given.spec.node_name)

    def _forget_key(self, pod: PodState) -> None:
        if self._uids.get(pod.key) == pod.uid:
            del self._uids[pod.key]

    def _expel(self, uid: str) -> None:
        """Forget a pod that may have been stored in part."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        self._forget_key(pod)
        self._labels.expel(pod)
        gang = self._state.gangs.get(pod.job)
        if gang is not None:
            gang.pods.pop(uid, None)
            self._deltas.gangs[gang.name] = None
        for there in nodes_of(pod):
            self._state.on_node.get(there, set()).discard(uid)
        self._claims.remove(pod)

    def _add(self, given: Pod) -> None:
        pod = PodState(given, self._state.schedulers)
        if not pod.ours and not pod.holds:
            return
        before = self._pods.pop(self._uids.get(pod.key, ""), None)
        if before is not None:
            self._forget(before)
        self._uids[pod.key] = pod.uid
        self._pods[pod.uid] = pod
        self._labels.add(pod)
        if given.spec.scheduler_name == VOLCANO and not (pod.group or pod.node):
            pod.not_before = pod.created + PODGROUP_WAIT_S
            self._deltas.retry_at[f"pod {pod.key}"] = pod.not_before
        self._enter(pod)

    def _forget(self, pod: PodState) -> None:
        """A pod is gone."""
        self._labels.remove(pod)
        self._leave(pod)

    def _change(self, pod: PodState, given: Pod) -> None:
        deltas, before = self._deltas, pod.signature
        held, ran, words = named_chips(pod), pod.runs, words_of(pod)
        pod.update(given)
        if words_of(pod) != words:
            deltas.gangs[pod.job] = None
        if pod.runs and not ran:
            deltas.runs[pod.job] = None
        sent = pod.assumed is not None and pod.phase is not PodPhase.WAITING
        after = pod.signature
        moved, is_ill = after[3] != before[3], after[6] != before[6]
        if sent and self._confirm(pod) and not (pod.deleting or moved or is_ill):
            deltas.statuses[pod.job] = None
            return
        if self._labels.count(pod):
            deltas.gangs[pod.job] = None
        if before == after:
            return
        self._nodes.give_up(pod, held, named_chips(pod))
        if moved:
            pod.not_before = 0.0
            self._leave(pod)
            self._enter(pod)
            return
        if before[1] != after[1]:
            self._nodes.remove(pod, before[1])
            self._nodes.add(pod, pod.node)
        self._nodes.check_chips(pod)
        deltas.gangs[pod.job] = None

    def _confirm(self, pod: PodState) -> bool:
        """The API server says where a pod is; whether it was sent there."""
        assert pod.assumed is not None
        assumed, pod.assumed = pod.assumed, None
        if assumed.node != pod.node:
            self._nodes.remove(pod, assumed.node)
            self._nodes.add(pod, pod.node)
            return False
        return pod.holds and {*assumed.chips} == {*(pod.chips or ())}

    def _enter(self, pod: PodState) -> None:
        """A pod joins its gang."""
        known = pod.ours and pod.group
        name = f"{pod.namespace}/{pod.group}" if known else f"pod {pod.key}"
        node = self._state.node_objects.get(pod.node)
        if node is not None:
            pod.node = node.metadata.name  # one text for all pods of a node
        self._state.gang(name).pods[pod.uid] = pod
        pod.job = name
        self._deltas.gangs[name] = None
        if place := place_of(pod):
            self._nodes.add(pod, place)
        self._claims.add(pod)
        self._nodes.check_chips(pod)

    def _leave(self, pod: PodState) -> None:
        """A pod leaves its gang."""
        gang = self._state.gangs[pod.job]
        gang.pods.pop(pod.uid, None)
        self._deltas.gangs[gang.name] = None
        self._nodes.give_up(pod, named_chips(pod), ("", ()))
        pod.number = None
        for node in {pod.node, place_of(pod)}:
            self._nodes.remove(pod, node)
        self._claims.remove(pod)
