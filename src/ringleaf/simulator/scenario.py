"""Scenario files: a small cluster, its present state and jobs, written down.

Reading has three steps: text to plain values (``source``), plain values to the structs
of the ``format`` (types and unknown keys), structs to the nouns of the core (names,
products and chips that must exist). Every problem is one ``BadInput`` that names the
document and the path.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Keep
from ringleaf.model.mask import full_mask, mask_of
from ringleaf.model.placement import NO_MARK, LeafState, Placement
from ringleaf.model.product import Product
from ringleaf.model.settings import Settings, SwitchMode
from ringleaf.model.spine import Leaf
from ringleaf.policies.admission import is_legal
from ringleaf.policies.fit import request_of
from ringleaf.policies.repair import survivors
from ringleaf.simulator.checks import good_chips, good_name, known_product
from ringleaf.simulator.demands import demand_of, resources_of, taints_of
from ringleaf.simulator.format import (
    MAX_NODES,
    WANTED,
    JobEntry,
    NodeEntry,
    ScenarioEntry,
    SettingsEntry,
    read_entry,
)
from ringleaf.simulator.source import BadInput, brief, brief_text, documents
from ringleaf.simulator.tenants import (
    CROSSED_BY,
    Stands,
    Tenants,
    read_tenants,
    schema_of,
)


class _Group(Struct, frozen=True):
    """One entry of ``nodes`` with its names written out."""

    path: str
    entry: NodeEntry
    product: Product
    chips: int
    names: list[str]


class Scenario(Struct, frozen=True):
    """A document that was read and holds together."""

    about: str | None
    settings: Settings
    nodes: tuple[Node, ...]
    leaves: tuple[Leaf, ...]
    running: Mapping[str, tuple[Placement, ...]]
    demands: Mapping[str, Demand]
    jobs: tuple[Job, ...]
    warnings: tuple[str, ...]

    def open(self) -> Session:
        """A session over a cluster in the state the scenario describes."""
        cluster = Cluster(self.nodes, self.leaves)
        with Statement(cluster) as statement:
            for name, placements in self.running.items():
                _hold(statement, cluster, name, placements, self.demands[name])
            for job in self.jobs:
                if job.previous is not None and job.previous.keep is Keep.PODS:
                    still = self._still_running(cluster, job)
                    _hold(statement, cluster, job.name, still, job.demand)
            statement.commit()
        return Session(cluster, self.settings)

    def _still_running(self, cluster: Cluster, job: Job) -> Iterable[Placement]:
        """The pods of a job of which only the failed ones were deleted."""
        assert job.previous is not None
        if is_legal(job, self.settings):
            return survivors(cluster, request_of(job), job.previous)
        return job.previous.placements


def _hold(
    statement: Statement,
    cluster: Cluster,
    job: str,
    placements: Iterable[Placement],
    demand: Demand,
) -> None:
    for placement in placements:
        node, chips = cluster.index[placement.node], mask_of(placement.chips)
        mark = placement.mark or NO_MARK
        statement.hold(job, node, chips, placement.replica, mark, demand=demand)


def load(data: bytes) -> list[Scenario]:
    """The scenarios of a file's bytes; all of them, or one ``BadInput``."""
    found = documents(data)
    scenarios = []
    for number, document in enumerate(found, 1):
        where = f"document {number}: " if len(found) > 1 else ""
        try:
            scenarios.append(build(read_entry(document)))
        except BadInput as error:
            raise BadInput(f"{where}{error}") from None
    return scenarios


def build(entry: ScenarioEntry) -> Scenario:
    """Turn one document into nouns of the core, checking what types cannot."""
    warnings: list[str] = []
    settings = _settings(entry.settings, warnings)
    _check_total(entry.nodes)
    groups = [_group(i, node) for i, node in enumerate(entry.nodes)]
    _check_names(groups)
    stands = Stands(
        sizes={name: group.chips for group in groups for name in group.names},
        leaf={n: g.entry.leaf for g in groups for n in g.names if g.entry.leaf},
        lost={name: _lost(group) for group in groups for name in group.names},
    )
    slots = _slots(entry, groups)
    tenants = read_tenants(entry, stands, settings)
    jobs = _jobs(entry, groups, tenants)
    warnings += _network_warnings(entry, groups, settings)
    held: Counter[str] = Counter()
    for placements in tenants.running.values():
        for placement in placements:
            held[placement.node] += mask_of(placement.chips)  # disjoint: joined
    return Scenario(
        about=entry.about,
        settings=settings,
        nodes=tuple(node for group in groups for node in _nodes(group, held, slots)),
        leaves=tuple(_leaves(entry)),
        running=tenants.running,
        demands={
            job.name: demand_of(f"running[{i}]", job)
            for i, job in enumerate(entry.running)
        },
        jobs=tuple(jobs),
        warnings=tuple(warnings),
    )


def _settings(entry: SettingsEntry, warnings: list[str]) -> Settings:
    version = entry.nslb_version
    if version not in ("1.0", "2.0", 1.0, 2.0):
        raise BadInput(
            f"settings.nslb-version is {brief(version)}, want {WANTED['nslb-version']}"
        )
    size, reserve = entry.super_pod_size, entry.reserve_nodes
    if reserve >= size:
        kept = 2 if size > 2 else 0  # noqa: PLR2004 - the vendor's fallback
        warnings.append(
            f"settings.reserve-nodes is {reserve}, not below super-pod-size {size}: "
            f"{kept} is used"
        )
        reserve = kept
    mode = SwitchMode.SPINE_LEAF_1
    if version in ("2.0", 2.0):
        mode = SwitchMode.SPINE_LEAF_2
    if entry.tor_level == "single_layer":
        mode = SwitchMode.SINGLE_LAYER
    return Settings(
        job_requests=entry.job_requests,
        switch_mode=mode,
        shared_leaves=entry.shared_tor_num,
        nodes_per_leaf=entry.nodes_per_leaf,
        share_common_leaves=entry.share_common_leaves,
        superpod_size=size,
        reserve_nodes=reserve,
    )


def _network_warnings(
    entry: ScenarioEntry, groups: list[_Group], settings: Settings
) -> Iterator[str]:
    sizes: Counter[int] = Counter()
    for group in groups:
        if group.entry.superpod is not None:
            sizes[group.entry.superpod] += len(group.names)
    for superpod, size in sorted(sizes.items()):
        if size > settings.superpod_size:
            yield (
                f"SuperPoD {superpod} has {size} nodes, more than super-pod-size "
                f"{settings.superpod_size}: all of them are used"
            )
    for group in groups:
        if group.entry.leaf is None and group.entry.slot is not None:
            yield f"{group.path}.slot has no effect without a leaf"
    known = {group.entry.leaf for group in groups}
    for name in entry.leaves:
        if name not in known:
            yield f"leaves has {brief(name)}, under which there is no node"


def _leaves(entry: ScenarioEntry) -> Iterator[Leaf]:
    """What ``leaves`` says; the order of leaves is that of the nodes."""
    for name, leaf in entry.leaves.items():
        yield Leaf(
            name=name,
            address=leaf.address,
            state=LeafState[(leaf.state or "idle").upper()],
            healthy=leaf.healthy is not False,
            crossed_by=tuple(CROSSED_BY[schema] for schema in leaf.cross_leaf_jobs),
        )


def _group(index: int, entry: NodeEntry) -> _Group:
    path = f"nodes[{index}]"
    product = known_product(f"{path}.product", entry.product)
    names = [good_name(f"{path}.name", entry.name)]
    if entry.count is not None:
        if "{i}" not in entry.name and entry.count > 1:
            raise BadInput(
                f"{path}.name is {brief(entry.name)} for {entry.count} nodes, "
                "want '{i}' in it",
                f'name: "{brief_text(entry.name)}-{{i}}"',
            )
        good_name(f"{path}.name", entry.name.replace("{i}", str(entry.count - 1)))
        names = [entry.name.replace("{i}", str(i)) for i in range(entry.count)]
    if entry.leaf is not None:
        good_name(f"{path}.leaf", entry.leaf)
    chips = _size(path, entry, product)
    for key, listed in (
        ("free", entry.free or []),
        ("faulty", entry.faulty),
        ("network-faulty", entry.network_faulty),
    ):
        good_chips(f"{path}.{key}", listed, chips)
    return _Group(path, entry, product, chips, names)


def _lost(group: _Group) -> frozenset[int]:
    """The chips that no pod can keep: faulty, or of a node that is not ready."""
    entry = group.entry
    if not entry.ready:
        return frozenset(range(group.chips))
    return frozenset([*entry.faulty, *entry.network_faulty])


def _size(path: str, entry: NodeEntry, product: Product) -> int:
    if not product.sized:
        if entry.chips not in (None, product.chips):
            raise BadInput(
                f"{path}.chips is {entry.chips}, want {product.chips} or no such key",
                f"every {product.key} has {product.chips} chips",
            )
        return product.chips
    want = f"a whole number from 1 to {product.chips}"
    if entry.chips is None:
        raise BadInput(
            f"{path}.chips is missing, want {want}", f"{product.key} comes in sizes"
        )
    if entry.chips > product.chips:
        raise BadInput(f"{path}.chips is {entry.chips}, want {want}")
    return entry.chips


def _check_total(entries: list[NodeEntry]) -> None:
    total = 0
    for i, entry in enumerate(entries):
        total += entry.count or 1
        if total > MAX_NODES:
            raise BadInput(
                f"nodes[{i}] brings the nodes to {total}, want at most {MAX_NODES}"
            )


def _check_names(groups: list[_Group]) -> None:
    seen: dict[str, str] = {}
    for group in groups:
        for name in group.names:
            if seen.setdefault(name, group.path) != group.path:
                raise BadInput(
                    f"{group.path}.name is {brief(name)}, "
                    f"already the name of {seen[name]}"
                )


def _slots(entry: ScenarioEntry, groups: list[_Group]) -> dict[str, int]:
    """Node -> its slot; slots lie inside their leaf, one node in each."""
    leaves: dict[str, list[tuple[str, str, int]]] = {}
    for group in groups:
        slot = group.entry.slot
        if group.entry.leaf is None:
            continue
        under = leaves.setdefault(group.entry.leaf, [])
        first = len(under)
        under += [
            (group.path, name, first + i if slot is None else slot)
            for i, name in enumerate(group.names)
        ]
    limit = entry.settings.nodes_per_leaf
    most = limit or max((len(under) for under in leaves.values()), default=0)
    for leaf, under in leaves.items():
        if len(under) > most:
            raise BadInput(
                f"{under[most][0]}.leaf is {brief(leaf)}, which then has {len(under)} "
                f"nodes, want at most nodes-per-leaf, {most}"
            )
        taken: dict[int, str] = {}
        for path, _name, slot in under:
            if slot >= most:
                raise BadInput(f"{path}.slot is {slot}, want 0 to {most - 1}")
            if slot in taken:
                raise BadInput(
                    f"{path}.slot is {slot} under leaf {brief(leaf)}, "
                    f"already the slot of {taken[slot]}"
                )
            taken[slot] = path
    return {name: slot for under in leaves.values() for _path, name, slot in under}


def _nodes(
    group: _Group, held: Mapping[str, int], slots: Mapping[str, int]
) -> Iterator[Node]:
    entry, everything = group.entry, full_mask(group.chips)
    free = everything if entry.free is None else mask_of(entry.free)
    faulty, network_faulty = mask_of(entry.faulty), mask_of(entry.network_faulty)
    taints, resources = taints_of(entry), resources_of(group.path, entry.resources)
    for name in group.names:
        yield Node(
            name=name,
            product=group.product,
            chips=group.chips,
            free=free & ~held.get(name, 0),
            faulty=faulty,
            network_faulty=network_faulty,
            ready=entry.ready,
            sub_healthy=entry.sub_healthy,
            superpod=entry.superpod,
            leaf=entry.leaf,
            slot=slots.get(name, 0),
            cordoned=entry.unschedulable,
            labels=entry.labels,
            taints=taints,
            resources=resources,
        )


def _jobs(
    entry: ScenarioEntry, groups: list[_Group], tenants: Tenants
) -> Iterator[Job]:
    products = {group.product for group in groups}
    for i, job in enumerate(entry.jobs):
        yield Job(
            name=job.name,
            product=_job_product(f"jobs[{i}]", job, products),
            chips=job.chips,
            replicas=job.replicas,
            strategy=job.strategy,
            distributed=job.distributed,
            tor_affinity=schema_of(job),
            sp_block=job.sp_block,
            superpod_affinity=job.super_pod_affinity,
            vnpu=job.vnpu,
            demand=demand_of(f"jobs[{i}]", job),
            previous=tenants.previous.get(job.name),
        )


def _job_product(path: str, job: JobEntry, products: set[Product]) -> Product:
    if job.product is not None:
        return known_product(f"{path}.product", job.product)
    if len(products) != 1:
        has = ", ".join(sorted(product.key for product in products)) or "no nodes"
        raise BadInput(
            f"{path}.product is missing, want {WANTED['product']}",
            f"it may be left out where there is one product; here: {has}",
        )
    return next(iter(products))
