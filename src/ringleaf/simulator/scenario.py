"""Scenario files: a small cluster, its present state and jobs, written down.

Reading has three steps: text to plain values (``source``), plain values to the structs
of the ``format`` (types and unknown keys), structs to the nouns of the core (names,
products and chips that must exist). Every problem is one ``BadInput`` that names the
document and the path.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Final, NoReturn

from msgspec import Struct

from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.job import Job
from ringleaf.model.mask import full_mask, mask_of
from ringleaf.model.product import Product
from ringleaf.model.settings import Settings
from ringleaf.policies.admission import is_legal
from ringleaf.policies.products import find_product, similar_product
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

MAX_NAME: Final = 253


class Scenario(Struct, frozen=True):
    """A document that was read and holds together."""

    about: str | None
    settings: Settings
    nodes: tuple[Node, ...]
    running: Mapping[str, tuple[tuple[str, int], ...]]
    jobs: tuple[Job, ...]
    warnings: tuple[str, ...]

    def open(self) -> Session:
        """A session over a cluster in the state the scenario describes."""
        cluster = Cluster(self.nodes)
        with Statement(cluster) as statement:
            for job, held in self.running.items():
                for node, chips in held:
                    statement.hold(job, cluster.index[node], chips)
            statement.commit()
        return Session(cluster, self.settings)


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
    _check_slots(entry, groups)
    sizes = {name: group.chips for group in groups for name in group.names}
    running = _running(entry, sizes)
    held: Counter[str] = Counter()
    for placements in running.values():
        for node, chips in placements:
            held[node] += chips  # disjoint masks: adding is joining
    return Scenario(
        about=entry.about,
        settings=settings,
        nodes=tuple(node for group in groups for node in _nodes(group, held)),
        running=running,
        jobs=tuple(_jobs(entry, groups, settings)),
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
    return Settings(job_requests=entry.job_requests, reserve_nodes=reserve)


class _Group(Struct, frozen=True):
    """One entry of ``nodes`` with its names written out."""

    path: str
    entry: NodeEntry
    product: Product
    chips: int
    names: list[str]


def _group(index: int, entry: NodeEntry) -> _Group:
    path = f"nodes[{index}]"
    product = _product(f"{path}.product", entry.product)
    names = [_name(f"{path}.name", entry.name)]
    if entry.count is not None:
        if "{i}" not in entry.name and entry.count > 1:
            raise BadInput(
                f"{path}.name is {brief(entry.name)} for {entry.count} nodes, "
                "want '{i}' in it",
                f'name: "{brief_text(entry.name)}-{{i}}"',
            )
        _name(f"{path}.name", entry.name.replace("{i}", str(entry.count - 1)))
        names = [entry.name.replace("{i}", str(i)) for i in range(entry.count)]
    if entry.leaf is not None:
        _name(f"{path}.leaf", entry.leaf)
    chips = _size(path, entry, product)
    for key, listed in (
        ("free", entry.free or []),
        ("faulty", entry.faulty),
        ("network-faulty", entry.network_faulty),
    ):
        _check_chips(f"{path}.{key}", listed, chips)
    return _Group(path, entry, product, chips, names)


def _product(path: str, name: str) -> Product:
    product = find_product(name)
    if product is None:
        hint = similar_product(name)
        raise BadInput(f"{path} is {brief(name)}, want {WANTED['product']}", hint)
    return product


def _name(path: str, name: str) -> str:
    if not (name and name.isprintable() and len(name) <= MAX_NAME):
        want = f"1 to {MAX_NAME} printable characters"
        raise BadInput(f"{path} is {brief(name)}, want {want}")
    return name


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


def _check_chips(path: str, listed: Iterable[int], n_chips: int) -> None:
    for i, chip in enumerate(listed):
        if chip >= n_chips:
            raise BadInput(
                f"{path}[{i}] is {chip}, want a chip from 0 to {n_chips - 1}"
            )


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


def _check_slots(entry: ScenarioEntry, groups: list[_Group]) -> None:
    """Slots lie inside their leaf, one node in each."""
    leaves: dict[str, list[tuple[str, int]]] = {}
    for group in groups:
        if group.entry.leaf is None:
            continue
        under = leaves.setdefault(group.entry.leaf, [])
        slot = group.entry.slot
        under += [
            (group.path, len(under) + i if slot is None else slot)
            for i in range(len(group.names))
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
        for path, slot in under:
            if slot >= most:
                raise BadInput(f"{path}.slot is {slot}, want 0 to {most - 1}")
            if slot in taken:
                raise BadInput(
                    f"{path}.slot is {slot} under leaf {brief(leaf)}, "
                    f"already the slot of {taken[slot]}"
                )
            taken[slot] = path


def _running(
    entry: ScenarioEntry, sizes: Mapping[str, int]
) -> dict[str, tuple[tuple[str, int], ...]]:
    holder: dict[tuple[str, int], str] = {}
    running: dict[str, tuple[tuple[str, int], ...]] = {}
    for i, job in enumerate(entry.running):
        _job_name(f"running[{i}]", job.name, running)
        if job.product is not None:
            _product(f"running[{i}].product", job.product)
        held = []
        for j, placement in enumerate(job.placements):
            path = f"running[{i}].placements[{j}]"
            if placement.node not in sizes:
                _unknown_node(f"{path}.node", placement.node, sizes)
            _check_chips(f"{path}.chips", placement.chips, sizes[placement.node])
            for k, chip in enumerate(placement.chips):
                other = holder.setdefault((placement.node, chip), f"{path}.chips[{k}]")
                if other != f"{path}.chips[{k}]":
                    raise BadInput(
                        f"{path}.chips[{k}] is {chip} of node "
                        f"{brief(placement.node)}, already held by {other}"
                    )
            held.append((placement.node, mask_of(placement.chips)))
        running[job.name] = tuple(held)
    return running


def _unknown_node(path: str, name: str, nodes: Iterable[str]) -> NoReturn:
    close = get_close_matches(name, list(islice(nodes, 100)), n=1)  # slow where many
    hint = f"did you mean {close[0]!r}?" if close else "nodes are listed under nodes"
    raise BadInput(f"{path} is {brief(name)}, want the name of a node", hint)


def _job_name(path: str, name: str, taken: Iterable[str]) -> None:
    _name(f"{path}.name", name)
    if name in taken:
        raise BadInput(f"{path}.name is {brief(name)}, already the name of a job")


def _nodes(group: _Group, held: Mapping[str, int]) -> Iterator[Node]:
    entry, everything = group.entry, full_mask(group.chips)
    free = everything if entry.free is None else mask_of(entry.free)
    faulty, network_faulty = mask_of(entry.faulty), mask_of(entry.network_faulty)
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
        )


def _jobs(
    entry: ScenarioEntry, groups: list[_Group], settings: Settings
) -> Iterator[Job]:
    taken = {job.name for job in entry.running}
    products = {group.product for group in groups}
    for i, job in enumerate(entry.jobs):
        path = f"jobs[{i}]"
        _job_name(path, job.name, taken)
        taken.add(job.name)
        product = _job_product(path, job, products)
        made = Job(
            name=job.name,
            product=product,
            chips=job.chips,
            replicas=job.replicas,
            strategy=job.strategy,
            distributed=job.distributed,
        )
        _check_network(path, job, made, settings)
        yield made


def _job_product(path: str, job: JobEntry, products: set[Product]) -> Product:
    if job.product is not None:
        return _product(f"{path}.product", job.product)
    if len(products) != 1:
        has = ", ".join(sorted(product.key for product in products)) or "no nodes"
        raise BadInput(
            f"{path}.product is missing, want {WANTED['product']}",
            f"it may be left out where there is one product; here: {has}",
        )
    return next(iter(products))


def _check_network(path: str, entry: JobEntry, job: Job, settings: Settings) -> None:
    """Refuse what needs the network rules, which are not there yet."""
    affinity = None if entry.tor_affinity == "null" else entry.tor_affinity
    for key, value in (
        ("tor-affinity", affinity),
        ("sp-block", entry.sp_block),
        ("super-pod-affinity", entry.super_pod_affinity),
        ("previous", entry.previous),
    ):
        if value is not None:
            found = "given" if value is entry.previous else brief(value)
            raise BadInput(
                f"{path}.{key} is {found}: placing by the network "
                "is not yet there, want no such key",
                "without it the job is placed by the chip rules alone",
            )
    if job.product.superpod and job.replicas > 1 and is_legal(job, settings):
        raise BadInput(
            f"{path}.replicas is {job.replicas} on {job.product.key}: placing several "
            "pods in SuperPoDs is not yet there, want 1"
        )
