"""A product: how the chips of one node are wired, and how a request is served.

A *group* is whatever the hardware ties its chips together with: a ring, a card, a
module, a mesh. Groups have equal width and consecutive chip ids. A *row* says how a
request of one size takes chips from groups; a *rule* is the rows of every legal size.
Feasibility, rank and the chips taken are three readings of a row
(``ringleaf.policies.chips``).
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from ringleaf.model.settings import SwitchMode

Walk = tuple[int, ...]
"""Free chips a group may have for us to take from it, best first."""


class Term(StrEnum):
    """What a node's rank for one request counts; lower is better, earlier weighs more.

    ``POSITION`` is the place in the row's walk of the first group taken from,
    ``WHOLE`` the completely free groups left over, ``SPARE`` the groups left over
    that could serve the same request, ``LEFT`` the free chips left over. ``HOLDER`` is
    the position of a group that holds the whole request; all nodes without such a group
    are equal, and last.
    """

    POSITION = "position"
    WHOLE = "whole"
    SPARE = "spare"
    LEFT = "left"
    HOLDER = "holder"


class Row(Struct, frozen=True, cache_hash=True):
    """How one pod's *asked* chips are taken from the groups of a node.

    The first group is the one whose free count comes earliest in ``first`` (lowest
    group id among equals); while chips are still wanted, further groups are taken by
    ``rest`` in the same way. From each group the lowest chips go. A row of *halves*
    takes equal parts of two rings instead; ``aligned`` says whether chips facing each
    other (i and i + width) are wanted where they exist.
    """

    asked: int
    width: int
    first: Walk
    rest: Walk
    rank_by: tuple[Term, ...] = (Term.LEFT,)
    halves: bool = False
    aligned: bool = False


Rule = Mapping[int, Row]
"""Chips asked by one pod -> how they are taken. A size without a row is illegal."""


class ProductMode(StrEnum):
    """Which of a product's rules applies to a job.

    Most products have one rule, ``ANY``. ``SEVERAL`` differs for jobs of several
    pods, ``CARD`` and ``CHIP`` are the strategies of inference cards, ``UNLABELLED``
    is for jobs that name no strategy, where that differs from ``CHIP``, and
    ``DISTRIBUTED`` is distributed inference on Duo cards.
    """

    ANY = "any"
    SEVERAL = "several"
    CARD = "card"
    CHIP = "chip"
    UNLABELLED = "unlabelled"
    DISTRIBUTED = "distributed"


class LabelSelector(Struct, frozen=True):
    """The labels and annotations by which a Kubernetes job names this product."""

    accelerator_type: tuple[str, ...] = ()
    schedule_policy: tuple[str, ...] = ()
    npu_310_strategy: tuple[str, ...] = ()
    duo: str | None = None
    distributed: tuple[str, ...] = ()
    ring_controller: str | None = None


class Product(Struct, frozen=True, kw_only=True):
    """One row of the catalogue.

    Args:
        key: Ringleaf's name of it.
        title: The vendor's name of it.
        other_names: Further names that mean the same row.
        chips: Chips of a node; of a ``sized`` product, the most it may have.
        sized: Nodes differ in size and say how many chips they have.
        width: Chips per group.
        group: What the vendor calls a group.
        wiring: How the chips are wired, for people.
        rules: The rule of each mode.
        alone: Requests that only a job of one pod may make.
        alone_is_strict_only: ``job-requests: per-pod`` lifts ``alone`` (D1).
        one_pod_when_distributed: Distributed inference is one pod (Duo).
        heeds_network: Jobs of several pods avoid network-faulty chips.
        superpod: Nodes stand in a SuperPoD, and jobs need one.
        blocks: Jobs may be cut into logical SuperPoDs (``sp-block``).
        switch_modes: Switch affinities the vendor supports on it (D33).
        resource: The Kubernetes resource that counts its chips.
        chip_prefix: Chips are called ``<chip_prefix>-<id>`` in annotations.
        selector: How a Kubernetes job names it.
        source: Where the row comes from.

    """

    key: str
    title: str
    other_names: tuple[str, ...] = ()
    chips: int
    sized: bool = False
    width: int
    group: str
    wiring: str
    rules: Mapping[ProductMode, Rule]
    alone: frozenset[int] = frozenset()
    alone_is_strict_only: bool = False
    one_pod_when_distributed: bool = False
    heeds_network: bool = True
    superpod: bool = False
    blocks: bool = False
    switch_modes: tuple[SwitchMode, ...] = ()
    resource: str
    chip_prefix: str
    selector: LabelSelector
    source: str

    @property
    def groups(self) -> int:
        """How many groups a node has (the most, for a sized product)."""
        return self.chips // self.width

    def __hash__(self) -> int:
        return hash(self.key)
