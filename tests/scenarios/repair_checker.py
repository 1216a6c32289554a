"""An independent look at a run with faults: was everybody treated by the rules?

It knows nothing of how the engine decides. It follows what happened and what the engine
said, step by step, and keeps its own books of pods, nodes and repairs.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from ringleaf.engine.event import (
    BindFailed,
    Event,
    JobArrived,
    JobGone,
    NodesChanged,
    NodesGone,
    PodFaultsReported,
    PodsEnding,
    PodsGone,
    RepairKnown,
)
from ringleaf.framework.instruction import Bind, Delete, Evict, PersistRepair, Repaired
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Cause, FaultMode, Recovery, RestartScope, SubHealth
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Firmness, Network
from ringleaf.model.placement import JobType, Placement
from ringleaf.model.settings import SwitchMode
from ringleaf.simulator.run import ScenarioRun, Step

Pods = dict[int, Placement]


class Books:
    """What there is, as far as one can know from outside."""

    def __init__(self, run: ScenarioRun) -> None:
        self.settings = run.engine.view.settings
        self.nodes: dict[str, Node] = {n.name: n for n in run.scenario.nodes}
        self.jobs: dict[str, Job] = {}
        self.pods: dict[str, Pods] = {}
        """Job -> its pods that hold chips, ending or not."""
        self.ending: dict[str, set[int]] = {}
        self.ailing: dict[str, dict[int, Cause]] = {}
        self.lost: dict[str, set[int]] = {}
        """Pods whose nodes are gone."""
        self.records: dict[str, PersistRepair | RepairKnown] = {}
        self.marks: dict[tuple[str, int], str] = {}
        """What was written on pods of the state of their leaf (``isSharedTor``)."""
        self.deleted: dict[str, set[int]] = {}
        self.complaints: list[str] = []

    def alive(self, job: str) -> Pods:
        """The pods that are not ending."""
        ending = self.ending.get(job, set())
        return {n: p for n, p in self.pods.get(job, {}).items() if n not in ending}

    def may_fail_pods(self, job: str, replica: int, place: Placement) -> bool:
        """Whether a pod may be called faulty."""
        recovery = self.jobs[job].recovery
        own = self.ailing.get(job, {}).get(replica)
        if own is not None and _counts(own, recovery):
            return True
        node = self.nodes.get(place.node)
        if node is None or not node.ready:
            return True
        if any(node.unhealthy >> chip & 1 for chip in place.chips):
            return True
        minds = recovery.sub_health in (SubHealth.GRACE_EXIT, SubHealth.FORCE_EXIT)
        weak = any(node.weak >> chip & 1 for chip in place.chips)
        return minds and (weak or node.weak_switch)


def _counts(cause: Cause, recovery: Recovery) -> bool:
    if cause is Cause.POD:
        return recovery.retries > 0
    return cause is not Cause.SUB_HEALTH or recovery.sub_health is not SubHealth.IGNORE


def complaints(run: ScenarioRun) -> list[str]:
    """What is not as the rules want it, in words; nothing where all is well."""
    books = Books(run)
    for step in run.steps:
        for event in step.events:
            _hear(books, event)
        _check(books, step)
    return books.complaints


def _hear(books: Books, event: Event) -> None:
    """Write down what happened."""
    match event:
        case JobArrived(job, placements):
            _arrived(books, job, placements)
        case JobGone(job):
            books.pods.pop(job, None)
            books.ending.pop(job, None)
        case PodsGone(job, replicas) | BindFailed(job, replicas):
            for replica in replicas:
                books.pods.get(job, {}).pop(replica, None)
                books.ending.get(job, set()).discard(replica)
        case PodsEnding(job, replicas):
            books.ending.setdefault(job, set()).update(replicas)
        case PodFaultsReported(job, ailments):
            books.ailing[job] = {each.replica: each.cause for each in ailments}
        case RepairKnown(job):
            books.records[job] = event
            books.deleted[job] = {*event.record.deleted}
        case NodesChanged(nodes):
            books.nodes |= {node.name: node for node in nodes}
        case NodesGone(names):
            _nodes_gone(books, names)


def _arrived(books: Books, job: Job, placements: Iterable[Placement]) -> None:
    books.jobs[job.name] = job
    own = books.pods.setdefault(job.name, {})
    own |= {each.replica: each for each in placements}
    for each in placements:
        if each.mark is not None:
            books.marks[job.name, each.replica] = str(int(each.mark.state))


def _nodes_gone(books: Books, names: Collection[str]) -> None:
    for name in names:
        books.nodes.pop(name, None)
    for job, own in books.pods.items():
        lost = {n for n, place in own.items() if place.node in names}
        books.lost.setdefault(job, set()).update(lost)
        books.pods[job] = {n: place for n, place in own.items() if n not in lost}


def _check(books: Books, step: Step) -> None:
    """Check what was said, in the order in which it was said."""
    for said in step.instructions:
        match said:
            case PersistRepair(job, record):
                if record is not None and not record.is_over:
                    books.records[job] = said
            case Delete():
                books.complaints += [
                    f"{step.at:g} s, delete {said.replicas} of {said.job}: {wrong}"
                    for wrong in _wrong_deletion(books, said)
                ]
                books.ending.setdefault(said.job, set()).update(
                    {*said.replicas} & books.pods[said.job].keys()
                )
                books.deleted.setdefault(said.job, set()).update(said.replicas)
            case Evict(job, replicas):
                books.ending.setdefault(job, set()).update(replicas)
            case Bind():
                books.complaints += [
                    f"{step.at:g} s, bind {said.job}: {wrong}"
                    for wrong in _wrong_binding(books, said)
                ]
                _bound(books, said)
                books.complaints += [
                    f"{step.at:g} s, {said.job} is placed: {wrong}"
                    for wrong in _wrong_shape(books, books.jobs[said.job])
                ]
            case Repaired(job):
                alive = books.alive(job)
                gone = books.deleted.pop(job, set()) - alive.keys()
                sick = [n for n, p in alive.items() if books.may_fail_pods(job, n, p)]
                books.records.pop(job, None)
                if gone or sick:
                    books.complaints.append(
                        f"{step.at:g} s, {job} is called repaired: {gone=} {sick=}"
                    )
            case _:
                pass


def _bound(books: Books, said: Bind) -> None:
    own = books.pods.setdefault(said.job, {})
    for place, written in zip(said.placements, said.annotations, strict=True):
        own[place.replica] = place
        books.lost.get(said.job, set()).discard(place.replica)
        books.ailing.get(said.job, {}).pop(place.replica, None)
        if "isSharedTor" in written:
            books.marks[said.job, place.replica] = written["isSharedTor"]


def _wrong_deletion(books: Books, said: Delete) -> Iterator[str]:
    """What is wrong with deleting these pods."""
    job = books.jobs[said.job]
    recovery, alive = job.recovery, books.alive(said.job)
    if recovery.mode not in (FaultMode.GRACE, FaultMode.FORCE):
        yield f"its mode is {recovery.mode}"
    record = books.records.get(said.job)
    if record is None or record.record is None:
        yield "nothing was written down before"
        return
    known = record.record
    if not {*said.replicas} <= {*known.deleted}:
        yield "other pods than were written down"
    places = {each.replica: each for each in known.placements}
    if not alive.items() <= places.items():
        yield "it was not written down where its pods are"
    lost = books.lost.get(said.job, set())
    # Pods that were deleted before and are still ending may be deleted once more.
    victims = {*said.replicas} - books.ending.get(said.job, set()) - lost
    sick = {n for n, p in alive.items() if books.may_fail_pods(said.job, n, p)} | lost
    sick |= {n for n, c in books.ailing.get(said.job, {}).items() if c}
    may = _may_go(recovery, known.scope, sick, alive, books.deleted.get(said.job, ()))
    if not victims <= may:
        yield f"healthy pods {sorted(victims - may)} are deleted outside the rules"


def _may_go(
    recovery: Recovery,
    reach: RestartScope,
    sick: Collection[int],
    alive: Pods,
    earlier: Collection[int],
) -> set[int]:
    """The pods that may be deleted, with those that are faulty."""
    only_pods = recovery.pods_only or recovery.process
    if not only_pods and sick:
        return {*alive, *sick}
    if recovery.escalates and recovery.master in sick:
        return {*alive, *sick}
    if not recovery.escalates or not earlier or reach is RestartScope.POD:
        return {*sick}
    return {*alive, *sick}  # faulty pods found no place, see the timeline


def _wrong_binding(books: Books, said: Bind) -> Iterator[str]:
    """What is wrong with these places."""
    job, owners = books.jobs[said.job], _owners(books)
    for place in said.placements:
        node = books.nodes.get(place.node)
        if node is None or not node.ready:
            yield f"{place.node} takes no pods"
            continue
        if any(node.faulty >> chip & 1 for chip in place.chips):
            yield f"faulty chips of {place.node}"
        if taken := {
            str(owners[place.node, chip])
            for chip in place.chips
            if (place.node, chip) in owners
        }:
            yield f"chips of {place.node} are held by {sorted(taken)}"
        if place.replica in books.alive(said.job):
            yield f"pod {place.replica} runs already"
    record = books.records.get(said.job)
    if record is not None and record.record is not None:
        yield from _not_returned(books, job, record.record.placements, said)


def _owners(books: Books) -> dict[tuple[str, int], tuple[str, int]]:
    """Who holds a chip, also while ending."""
    return {
        (place.node, chip): (job, replica)
        for job, own in books.pods.items()
        for replica, place in own.items()
        for chip in place.chips
    }


def _not_returned(
    books: Books, job: Job, before: Iterable[Placement], said: Bind
) -> Iterator[str]:
    """Healthy pods that are not where they were, though nothing else forced them."""
    was = {place.replica: place for place in before}
    now = books.alive(job.name) | {place.replica: place for place in said.placements}
    record = books.records[job.name].record
    assert record is not None
    unwell = {
        each.replica for each in record.pod_faults if each.cause is Cause.RELATION
    }
    moved = {n for n in now if n in was and _place(was[n]) != _place(now[n])}
    for place in said.placements:
        n = place.replica
        if n not in moved or n in unwell or books.may_fail_pods(job.name, n, was[n]):
            continue
        together = _block(job, was, n) if job.network is Network.SUPERPODS else {*was}
        if not together <= moved:
            yield f"pod {n} was well on {was[n].node} and is on {place.node}"


def _place(place: Placement) -> tuple[str, tuple[int, ...]]:
    return place.node, tuple(place.chips)


def _block(job: Job, was: Mapping[int, Placement], replica: int) -> set[int]:
    """The pods of one block, by what was written on them, else by their ranks."""

    def own(n: int) -> int:
        block = was[n].block
        return n // job.block_nodes if block is None else block

    return {n for n in was if own(n) == own(replica)}


def _wrong_shape(books: Books, job: Job) -> Iterator[str]:
    """What is wrong with where all pods of a job are, by the rule of its network."""
    own = books.alive(job.name)
    if len(own) < job.replicas or any(p.node not in books.nodes for p in own.values()):
        return
    nodes = {n: books.nodes[place.node] for n, place in own.items()}
    if job.network is Network.SUPERPODS:
        yield from _wrong_blocks(job, own, nodes)
    elif job.network is Network.SWITCHES:
        yield from _wrong_leaves(books, job, nodes)


def _wrong_blocks(job: Job, own: Pods, nodes: Mapping[int, Node]) -> Iterator[str]:
    blocks: dict[int, set[int | None]] = {}
    for n, place in own.items():
        block = n // job.block_nodes if place.block is None else place.block
        blocks.setdefault(block, set()).add(nodes[n].superpod)
    for block, superpods in blocks.items():
        if len(superpods) > 1:
            yield f"block {block} is in SuperPoDs {sorted(map(str, superpods))}"
    hard = job.superpod_affinity is not Firmness.SOFT
    if hard and len(blocks) * job.block_nodes != job.replicas:
        yield f"{len(blocks)} blocks"


def _wrong_leaves(books: Books, job: Job, nodes: Mapping[int, Node]) -> Iterator[str]:
    leaves = {node.leaf for node in nodes.values()}
    mode = books.settings.switch_mode
    kind = job.job_type
    if None in leaves:
        yield "a node without a leaf"
    one = kind is JobType.PADDING or mode is SwitchMode.SINGLE_LAYER
    if one and len(leaves) > 1:
        yield f"it is spread over leaves {sorted(map(str, leaves))}"
    if len(leaves) < 2 or one:
        return
    if mode is SwitchMode.SPINE_LEAF_1 and kind is JobType.FOUNDATION:
        slots = Counter(node.slot for node in nodes.values())
        if max(slots.values()) - min(slots.values()) > 1:
            yield f"slots are loaded unevenly: {dict(slots)}"
    if mode is SwitchMode.SPINE_LEAF_2 and kind is JobType.FOUNDATION:
        shared = {nodes[n].leaf for n in nodes if books.marks.get((job.name, n)) == "1"}
        if len(shared) > books.settings.shared_leaves:
            yield f"it uses {len(shared)} shared leaves"
