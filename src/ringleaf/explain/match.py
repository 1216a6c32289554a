"""What may be thought of a placement of another scheduler: a closed list.

Every difference names one rule, and every rule has its words here.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from ringleaf.model.decision import Reason
from ringleaf.model.job import Job
from ringleaf.model.mask import chips_of
from ringleaf.model.placement import Placement
from ringleaf.model.worded import Worded


class Agreement(StrEnum):
    """How a placement of another scheduler compares with ours."""

    SAME = "same"
    """The same nodes for pods that ask the same, and the same chips."""
    TIE = "tie"
    """Other nodes or chips that are as good: only names decide."""
    CHIPS_UNSAID = "chips-unsaid"
    """The same nodes; it is not known which chips."""
    BETTER_RANK = "better-rank"
    """Both are legal; the order of the rules takes ours."""
    RULE = "rule"
    """The other placement breaks a rule."""
    WAITS_HERE = "waits-here"
    """The job would wait here, whatever the nodes."""
    WAITS_THERE = "waits-there"
    """The job would start here, and has not been bound there."""


AGREES: Final = frozenset({Agreement.SAME, Agreement.TIE, Agreement.CHIPS_UNSAID})
"""What counts as agreement; ``chips-unsaid`` on nodes only."""


class Because(Worded):
    """The rules that make a difference, besides the reasons of nodes."""

    NEVER = "never", "the request contradicts the hardware"
    GANG = "gang", "pods that must start together are not all there"
    QUEUE = "queue", "the queue is closed, missing, or has no quota left"
    NO_PLACE = "no-place", "no placement is found"
    UNREADABLE = (
        "unreadable",
        "a label or annotation of the job is bad or not supported",
    )
    NOT_BOUND = "not-bound", "the job fits, and was not bound in time"
    CHIPS_TAKEN = "chips-taken", "chips that another pod holds"
    CHIPS_MISCOUNTED = "chips-miscounted", "more or fewer chips than the pod requests"
    LEAF_RULE = "leaf-rule", "nodes that switch affinity does not allow together"
    SUPERPOD_RULE = "superpod-rule", "blocks that do not lie inside one SuperPoD each"
    SUB_HEALTHY = "sub-healthy", "sub-healthy nodes come last"
    HEALTHY_CHIPS = "healthy-chips", "fewer faulty chips come first"
    POSITION = "position", "the group whose free chips suit the request best"
    WHOLE = "whole", "fewer whole free groups left over"
    SPARE = "spare", "fewer groups left over that could serve it too"
    LEFT = "left", "fewer free chips left over"
    SCORE = "score", "the scores of other plugins"
    CHIPS = "chips", "chips of the groups that suit the request best"
    LEAVES = "leaves", "the order of switch affinity"
    SUPERPODS = "superpods", "the order of SuperPoDs"


RULE_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {reason.value: f"nodes {reason.words}" for reason in Reason}
    | {each.value: each.words for each in Because}
)
"""Every rule that a difference may name, and what it means."""


class Judgement(Struct, frozen=True):
    """What is thought of one placement: both of them, and which rule parts them."""

    match: Agreement
    theirs: tuple[Placement, ...] = ()
    ours: tuple[Placement, ...] = ()
    rule: str = ""
    why: str = ""


class BrokenRule(Struct, frozen=True):
    """A rule that is broken, and how."""

    rule: str
    words: str


def chip_words(mask: int) -> str:
    """Chips by number.

    >>> chip_words(0b101), chip_words(0b10)
    ('chips 0, 2', 'chip 1')
    """
    chips = chips_of(mask)
    return f"chip{'s' * (len(chips) != 1)} {', '.join(map(str, chips))}"


def with_chips(job: Job, placements: Iterable[Placement]) -> list[str]:
    """The nodes of the pods that ask for chips."""
    asking = {*job.ranks}
    return [each.node for each in placements if each.replica in asking]
