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


class Because(StrEnum):
    """The rules that make a difference, besides the reasons of nodes."""

    NEVER = "never"
    GANG = "gang"
    QUEUE = "queue"
    NO_PLACE = "no-place"
    UNREADABLE = "unreadable"
    NOT_BOUND = "not-bound"
    CHIPS_TAKEN = "chips-taken"
    CHIPS_MISCOUNTED = "chips-miscounted"
    LEAF_RULE = "leaf-rule"
    SUPERPOD_RULE = "superpod-rule"
    SUB_HEALTHY = "sub-healthy"
    HEALTHY_CHIPS = "healthy-chips"
    POSITION = "position"
    WHOLE = "whole"
    SPARE = "spare"
    LEFT = "left"
    SCORE = "score"
    CHIPS = "chips"
    LEAVES = "leaves"
    SUPERPODS = "superpods"


BECAUSE_WORDS: Final[Mapping[Because, str]] = MappingProxyType(
    {
        Because.NEVER: "the request contradicts the hardware",
        Because.GANG: "pods that must start together are not all there",
        Because.QUEUE: "the queue is closed, missing, or has no quota left",
        Because.NO_PLACE: "no placement is found",
        Because.UNREADABLE: "a label or annotation of the job is bad or not supported",
        Because.NOT_BOUND: "the job fits, and was not bound in time",
        Because.CHIPS_TAKEN: "chips that another pod holds",
        Because.CHIPS_MISCOUNTED: "more or fewer chips than the pod requests",
        Because.LEAF_RULE: "nodes that switch affinity does not allow together",
        Because.SUPERPOD_RULE: "blocks that do not lie inside one SuperPoD each",
        Because.SUB_HEALTHY: "sub-healthy nodes come last",
        Because.HEALTHY_CHIPS: "fewer faulty chips come first",
        Because.POSITION: "the group whose free chips suit the request best",
        Because.WHOLE: "fewer whole free groups left over",
        Because.SPARE: "fewer groups left over that could serve it too",
        Because.LEFT: "fewer free chips left over",
        Because.SCORE: "the scores of other plugins",
        Because.CHIPS: "chips of the groups that suit the request best",
        Because.LEAVES: "the order of switch affinity",
        Because.SUPERPODS: "the order of SuperPoDs",
    }
)

RULE_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {reason.value: f"nodes {reason.words}" for reason in Reason}
    | {each.value: words for each, words in BECAUSE_WORDS.items()}
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
