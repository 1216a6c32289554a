"""Every baseline by its name: what it does, where it comes from, what it respects."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.baselines.cells import Cells
from ringleaf.baselines.engine import Baseline
from ringleaf.baselines.fitting import Chooser
from ringleaf.baselines.fragmentation import Fgd
from ringleaf.baselines.isolation import Jigsaw, WholeLeaves
from ringleaf.baselines.optimum import Optimum
from ringleaf.baselines.order import ORDERS, QueueOrder
from ringleaf.baselines.packing import (
    BestFit,
    FirstFit,
    LeastAllocated,
    MostAllocated,
    Random,
    VolcanoBinpack,
    WorstFit,
)
from ringleaf.baselines.tiers import HyperNode, Tas
from ringleaf.baselines.vendor import SwitchAffinity1, SwitchAffinity2
from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.model.cluster import Node
from ringleaf.model.queue import Queue
from ringleaf.model.settings import LeafChoice
from ringleaf.model.spelling import did_you_mean
from ringleaf.model.uplinks import Leaf

OURS: Final = "ringleaf"
"""The name under which Ringleaf itself is compared with the others."""


class UnknownName(ValueError):  # noqa: N818 - what was found, not an error of ours
    """There is no baseline or order of this name, or not both together."""


class Entry(Struct, frozen=True):
    """A baseline as it is described.

    Args:
        name: What people call it.
        title: What it does, in one sentence.
        source: Where its rule comes from.
        respects: What it heeds besides that no chip is held twice.
        chooser: Makes its rule from a seed; None is Ringleaf's own.
        leaf_choice: Which leaves Ringleaf takes, whatever is configured.
        order: The queue it is deployed with; None is the one that is asked for.
        by_pods: Whether it knows no gangs: pods hold chips while others wait.

    """

    name: str
    title: str
    source: str
    respects: str
    chooser: Callable[[int], Chooser] | None = None
    leaf_choice: LeafChoice | None = None
    order: str | None = None
    by_pods: bool = False


def _seedless(rule: Callable[[], Chooser]) -> Callable[[int], Chooser]:
    return lambda _seed: rule()


def _table(*entries: Entry) -> Mapping[str, Entry]:
    return MappingProxyType({entry.name: entry for entry in entries})


_COUNTS: Final = "free chips of a node; neither rings nor leaves"
_TIERS: Final = "free chips of a node; leaves and SuperPoDs if it can; no rings"
_RINGS: Final = "rings; no leaves"
_LEAVES: Final = "rings, leaves; one pod of a job on a node"
_LABELS: Final = "rings; leaves for jobs with `tor-affinity`; one pod of them on a node"

BASELINES: Final = _table(
    Entry(
        OURS,
        "Ringleaf's own rules, as configured.",
        "docs/policies",
        "rings, leaves, SuperPoDs, health",
    ),
    Entry(
        f"{OURS}-guide",
        "Ringleaf with `leaf-choice: guide`: the vendor's choice of leaves in 1.0.",
        "docs/policies/switches.md",
        "rings, leaves, SuperPoDs, health",
        leaf_choice=LeafChoice.GUIDE,
    ),
    Entry(
        "random",
        "A random node with enough free chips.",
        "folklore",
        _COUNTS,
        Random,
    ),
    Entry(
        "first-fit",
        "The first node by name with enough free chips.",
        "Johnson: Near-optimal bin packing algorithms, 1973",
        _COUNTS,
        _seedless(FirstFit),
    ),
    Entry(
        "best-fit",
        "The node with the fewest free chips that still fits, then by name.",
        "Johnson: Near-optimal bin packing algorithms, 1973",
        _COUNTS,
        _seedless(BestFit),
    ),
    Entry(
        "worst-fit",
        "The node with the most free chips, then by name.",
        "Johnson: Near-optimal bin packing algorithms, 1973",
        _COUNTS,
        _seedless(WorstFit),
    ),
    Entry(
        "least-allocated",
        "The node with the lowest utilization; ties are broken at random.",
        "kube-scheduler NodeResourcesFit, LeastAllocated",
        _COUNTS,
        LeastAllocated,
    ),
    Entry(
        "most-allocated",
        "The node with the highest utilization; ties are broken at random.",
        "kube-scheduler NodeResourcesFit, MostAllocated",
        _COUNTS,
        MostAllocated,
    ),
    Entry(
        "volcano-binpack",
        "The node that the pod would fill most; ties are broken at random.",
        "Volcano pkg/scheduler/plugins/binpack",
        _COUNTS,
        VolcanoBinpack,
    ),
    Entry(
        "volcano-hypernode",
        "The lowest tier that holds the job; in it, the fullest leaf or SuperPoD.",
        "Volcano pkg/scheduler/plugins/network-topology-aware",
        _TIERS,
        _seedless(HyperNode),
    ),
    Entry(
        "kueue-tas",
        "The lowest tier that holds the job, its tightest domain; else fewest domains.",
        "Kueue pkg/cache/tas_flavor_snapshot.go, KEP-2724, BestFit",
        _TIERS,
        _seedless(Tas),
    ),
    Entry(
        "kueue-tas-least-free",
        "Like kueue-tas, but of several domains those with the least room come first.",
        "Kueue, KEP-2724, LeastFreeCapacity",
        _TIERS,
        lambda _seed: Tas(least_free=True),
    ),
    Entry(
        "fgd",
        "The node and chips that fragment free chips least for typical pods.",
        "Weng et al.: Beware of Fragmentation, ATC 2023",
        _RINGS,
        _seedless(Fgd),
    ),
    Entry(
        "hived",
        "The smallest cell that is already split: ring, node, leaf or SuperPoD.",
        "Zhao et al.: HiveD, OSDI 2020",
        "rings; leaves and SuperPoDs if it can",
        _seedless(Cells),
    ),
    Entry(
        "jigsaw",
        "Equal slots under every leaf of a job, fewer under one: private links.",
        "Smith, Lowenthal: Jigsaw, HPDC 2021; Zahavi et al.: LaaS, ANCS 2016",
        _LEAVES,
        _seedless(Jigsaw),
    ),
    Entry(
        "whole-leaves",
        "One leaf, or completely free leaves, the last one in part.",
        "folklore",
        _LEAVES,
        _seedless(WholeLeaves),
    ),
    Entry(
        "vendor-1.0",
        "The vendor's switch affinity 1.0, as its scheduler does it.",
        "MindCluster, Switch Affinity Scheduling 1.0",
        _LABELS,
        _seedless(SwitchAffinity1),
    ),
    Entry(
        "vendor-2.0",
        "The vendor's switch affinity 2.0, as its scheduler does it.",
        "MindCluster, Switch Affinity Scheduling 2.0",
        _LABELS,
        _seedless(SwitchAffinity2),
    ),
    Entry(
        "cp-sat",
        "An exact solver starts those of 60 pending jobs that use most chips.",
        "docs/measures.md#bounds; OR-Tools, the extra `optimum`",
        "rings; leaves; at most one job crosses a leaf",
        _seedless(Optimum),
    ),
    Entry(
        "volcano-vendor-1.0",
        "Volcano with the vendor's plugin as deployed, switch affinity 1.0.",
        "Volcano 1.14.1; MindCluster ascend-for-volcano, `forceEnqueue: true`",
        _LABELS,
        _seedless(SwitchAffinity1),
        order="priority",
    ),
    Entry(
        "volcano-vendor-2.0",
        "Volcano with the vendor's plugin as deployed, switch affinity 2.0.",
        "Volcano 1.14.1; MindCluster ascend-for-volcano, `forceEnqueue: true`",
        _LABELS,
        _seedless(SwitchAffinity2),
        order="priority",
    ),
    Entry(
        "kueue",
        "Kueue with topology-aware scheduling as deployed: BestEffortFIFO, the leaf "
        "preferred.",
        "Kueue, ClusterQueue queueingStrategy; topology-aware scheduling",
        _TIERS,
        _seedless(Tas),
        order="priority",
    ),
    Entry(
        "kube-scheduler",
        "kube-scheduler as deployed: pod by pod; pods hold chips while their gang is "
        "incomplete.",
        "kube-scheduler, PrioritySort and NodeResourcesFit, LeastAllocated",
        _COUNTS,
        LeastAllocated,
        order="kube",
        by_pods=True,
    ),
    Entry(
        "kube-coscheduling",
        "kube-scheduler with the coscheduling plugin as deployed: whole gangs, spread.",
        "kubernetes-sigs/scheduler-plugins, pkg/coscheduling",
        _COUNTS,
        LeastAllocated,
        order="kube",
    ),
)


DEPLOYED: Final = tuple(each.name for each in BASELINES.values() if each.order)
"""Schedulers as they are deployed: each has a queue of its own."""


class Factory(Protocol):
    """Makes a scheduler for a cluster."""

    def __call__(
        self,
        nodes: Iterable[Node],
        leaves: Iterable[Leaf] = ...,
        queues: Iterable[Queue] = ...,
        conf: Conf = ...,
    ) -> Engine:
        """The scheduler of these nodes, which are empty."""


def baseline(name: str, *, order: str | None = None, seed: int = 0) -> Factory:
    """What makes the baseline *name*, in a queue order or as configured.

    Raises:
        UnknownName: There is no such baseline or order; the text is one line.

    What it returns raises ``NotInstalled``, with one line as well, where the baseline
    needs an extra of the package.

    """
    entry = entry_of(name)
    queue_order = _order(entry, order)

    def made(
        nodes: Iterable[Node],
        leaves: Iterable[Leaf] = (),
        queues: Iterable[Queue] = (),
        conf: Conf = DEFAULT,
    ) -> Engine:
        if entry.leaf_choice is not None:
            settings = replace(conf.settings, leaf_choice=entry.leaf_choice)
            conf = replace(conf, settings=settings)
        chooser = None if entry.chooser is None else entry.chooser(seed)
        if chooser is None and queue_order is None:
            return Engine(nodes, leaves, queues, conf)
        return Baseline(
            nodes,
            leaves,
            queues,
            conf,
            chooser=chooser,
            order=queue_order,
            by_pods=entry.by_pods,
        )

    return made


def _order(entry: Entry, asked: str | None) -> QueueOrder | None:
    """The queue order of *entry*: its own, or the one that is *asked* for."""
    if entry.order is None:
        return None if asked is None else order_of(asked)
    if asked is not None:
        raise UnknownName(
            f"policy {entry.name!r} has a queue of its own, want no order but found "
            f"{asked!r}"
        )
    return order_of(entry.order)


def entry_of(name: str) -> Entry:
    """The baseline *name*."""
    if name not in BASELINES:
        raise UnknownName(_no_policy(name))
    return BASELINES[name]


def _no_policy(name: str) -> str:
    """One line on a policy that is not known.

    Of those whose names begin so, whole schedulers come first, with what they are.

    >>> _no_policy("volcano").split(", ")[0].partition("hint: ")[2]
    "did you mean 'volcano-vendor-1.0' (Volcano with the vendor's plugin as deployed"
    """
    begun = [each for each in BASELINES if name and each.startswith(f"{name}-")]
    begun.sort(key=lambda each: each not in DEPLOYED)
    if not begun or begun[0] not in DEPLOYED:
        return unknown("policy", name, BASELINES)
    first, *others = begun
    told = [f"{first!r} ({BASELINES[first].title.rstrip('.')})", *map(repr, others)]
    joined = " or ".join(filter(None, [", ".join(told[:-1]), told[-1]]))
    return f"there is no policy {name!r}; hint: did you mean {joined}?"


def order_of(name: str) -> QueueOrder:
    """The queue order *name*."""
    if name not in ORDERS:
        raise UnknownName(unknown("queue order", name, ORDERS))
    return ORDERS[name]


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """One line on a name that is not known.

    >>> unknown("policy", "bestfit", ["best-fit", "random"])
    "there is no policy 'bestfit'; hint: did you mean 'best-fit'?"
    >>> unknown("policy", "x", ["best-fit", "random"])
    "there is no policy 'x'; hint: there are best-fit, random"
    >>> unknown("policy", "vendor", ["vendor-1.0", "random", "vendor-2.0"])
    "there is no policy 'vendor'; hint: did you mean 'vendor-1.0' or 'vendor-2.0'?"
    """
    listed = list(known)
    begun = [each for each in listed if name and each.startswith(f"{name}-")]
    way = did_you_mean(name, listed) or f"there are {', '.join(listed)}"
    if begun:
        way = f"did you mean {' or '.join(map(repr, begun))}?"
    return f"there is no {what} {name!r}; hint: {way}"
