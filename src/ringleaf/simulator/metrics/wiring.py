"""Tables over masks of chips: what free chips are worth, and what a pod's chips cost.

A table is filled as masks come up. A run meets a few hundred of them, and every later
look is one look-up.
"""

from collections.abc import Iterable, Mapping
from itertools import combinations, islice
from typing import Final

from msgspec import Struct

from ringleaf.model.mask import full_mask
from ringleaf.model.product import Product
from ringleaf.simulator.trial import JobSpec

SIZES: Final = (1, 2, 4, 8, 16)
"""Chips of a pod in the typical mix."""
SAMPLE: Final = 1000
"""Jobs of a workload from which its typical mix is taken."""

SAME_PAIR, SAME_RING, ACROSS = 0, 1, 3
"""Hops between two chips of a pod: in one die pair, in one ring, over PCIe."""

Mix = Mapping[int, int]
"""Chips of a pod -> how many such pods there are."""


def typical_mixes(job_specs: Iterable[JobSpec]) -> dict[Product, dict[int, int]]:
    """Product -> the pods of the first jobs by their chips, rounded up to a size."""
    found: dict[Product, dict[int, int]] = {}
    for spec in islice(job_specs, SAMPLE):
        job = spec.job
        for chips, pods in chips_by_pod(spec):
            sizes = [q for q in SIZES if q >= min(chips, SIZES[-1])]
            if 0 < sizes[0] <= job.product.chips and chips:
                mix = found.setdefault(job.product, {})
                mix[sizes[0]] = mix.get(sizes[0], 0) + pods
    return found


def chips_by_pod(spec: JobSpec) -> Iterable[tuple[int, int]]:
    """Chips of one pod, and how many such pods there are, role by role."""
    job = spec.job
    if not job.roles:
        return ((job.chips, job.replicas),)
    return tuple((role.chips, role.replicas) for role in job.roles)


def usable(product: Product, mask: int, asked: int) -> int:
    """Free chips in *mask* that pods of *asked* chips can use, as many as fit.

    Up to the size of a ring every pod stays in one; larger pods take whole rings. With
    rings of four that is metric 3 for two rings, with modules of two for A3.

    >>> from ringleaf.policies.products import PRODUCTS
    >>> rings = PRODUCTS["atlas-800-9000"]
    >>> [usable(rings, 0b0111_0111, q) for q in (1, 2, 4, 8)]
    [6, 4, 0, 0]
    """
    width = product.width
    groups = groups_of(product, mask)
    if asked <= width:
        return asked * sum(group.bit_count() // asked for group in groups)
    whole = sum(group.bit_count() == width for group in groups)
    return asked * (whole // (asked // width)) if asked % width == 0 else 0


def groups_of(product: Product, mask: int) -> list[int]:
    """The chips of *mask* in each of the groups that it reaches."""
    width, low = product.width, full_mask(product.width)
    return [mask >> at & low for at in range(0, mask.bit_length(), width)]


def most_in_pods(product: Product, masks: Iterable[int], pods: Mix) -> int:
    """The most free chips that some of *pods* can have, each where its rule lets it.

    The sizes of pods are powers of two, so that a larger pod takes exactly the place of
    some smaller ones, wherever it stands: the largest go first, and how many fit is
    counted, node by node alike. Nothing that could be chosen otherwise holds more.

    >>> from ringleaf.policies.products import PRODUCTS
    >>> rings = PRODUCTS["atlas-800-9000"]
    >>> most_in_pods(rings, [0b0111_0111], {1: 1, 2: 5}), most_in_pods(
    ...     rings, [0b1111_1111, 0b0011_1111], {8: 2, 4: 1, 2: 1}
    ... )
    (5, 14)
    """
    free = list(masks)
    placed: list[tuple[int, int]] = []
    for asked, wanted in sorted(pods.items(), reverse=True):
        room = sum(usable(product, mask, asked) for mask in free) // asked
        room -= sum(n * (larger // asked) for larger, n in placed)
        placed.append((asked, min(wanted, room)))
    return sum(asked * n for asked, n in placed)


class Waste(dict[int, int]):
    """Free mask -> chips of it that the mix cannot use, times the pods of the mix."""

    def __init__(self, product: Product, mix: Mix) -> None:
        super().__init__()
        self.product, self.mix = product, dict(mix) or {1: 1}
        self.pods = sum(self.mix.values())

    def __missing__(self, mask: int) -> int:
        free = mask.bit_count()
        found = sum(
            pods * (free - usable(self.product, mask, asked))
            for asked, pods in self.mix.items()
        )
        self[mask] = found
        return found


class PodWiring(Struct, frozen=True):
    """What the chips of one pod are to each other.

    Args:
        torn: Whether they lie in more rings, or die pairs, than they need to.
        hops: Over all pairs of them, the hops between the two.
        pairs: How many pairs there are.

    """

    torn: bool
    hops: int
    pairs: int


class PodWirings(dict[tuple[int, ...], PodWiring]):
    """Chips of a pod -> what they are to each other, on nodes of one product."""

    def __init__(self, product: Product) -> None:
        super().__init__()
        self.product = product

    def __missing__(self, chips: tuple[int, ...]) -> PodWiring:
        between = [self._hops(a, b) for a, b in combinations(chips, 2)]
        found = PodWiring(self._is_torn(chips), sum(between), len(between))
        self[chips] = found
        return found

    def _hops(self, a: int, b: int) -> int:
        width = self.product.width
        same = a // width == b // width
        if self.product.group == "module":  # die pairs; HCCS joins all of a node
            return SAME_PAIR if same else SAME_RING
        return SAME_RING if same else ACROSS

    def _is_torn(self, chips: tuple[int, ...]) -> bool:
        width, asked = self.product.width, len(chips)
        groups = {chip // width for chip in chips}
        if self.product.group == "module":
            return asked % 2 == 0 and len(groups) * width != asked
        return asked <= width and len(groups) > 1
