"""SuperPoDs: blocks that are split, SuperPoDs too many, reserves used up (metric 9)."""

from array import array
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Final

from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.model.settings import Settings
from ringleaf.simulator.metrics.chip_usage import ChipUsage
from ringleaf.simulator.metrics.job_record import JobRecord
from ringleaf.simulator.metrics.tally import spread_of

PIPELINE, DATA = 0.5, 0.5
"""Weights of the spread of pipeline and data groups: alpha and beta."""
NOWHERE: Final = -1


class SuperPods:
    """Free nodes of every SuperPoD, and how jobs are spread over them."""

    def __init__(
        self, usage: ChipUsage, leaf: Sequence[int], settings: Settings
    ) -> None:
        nodes = usage.nodes
        self._usage, self._settings = usage, settings
        self._of = [NOWHERE if n.superpod is None else n.superpod for n in nodes]
        known = sorted({each for each in self._of if each != NOWHERE})
        self._free = dict.fromkeys(known, 0)
        self.short = len(known) if settings.reserve_nodes else 0
        """SuperPoDs with fewer free nodes than are to be reserved."""
        self._leaf = list(leaf)
        for i in range(len(nodes)):
            if usage.is_whole(i):
                self.turned(i, 1)
        usage.watchers.append(self.turned)
        self.jobs = self.blocks = self.split = self.breaches = 0
        self._excess = array("d")
        self._spread = array("d")

    @property
    def known(self) -> int:
        """How many SuperPoDs there are."""
        return len(self._free)

    def turned(self, node: int, by: int) -> None:
        """A node is wholly free now, or no longer."""
        superpod = self._of[node]
        if superpod == NOWHERE:
            return
        least = self._settings.reserve_nodes
        before = self._free[superpod]
        self._free[superpod] = before + by
        self.short += (before + by < least) - (before < least)

    def began(self, record: JobRecord, placements: Sequence[Placement]) -> None:
        """A job of several pods has started for the first time."""
        nodes = record.nodes
        if len(nodes) == 1:
            return
        blocks = blocks_of(record.job, placements)
        groups = [[record.places[n][0] for n in block] for block in blocks]
        used = {self._of[node] for node in nodes}
        if NOWHERE in used:  # in no SuperPoD; what it is spread over are leaves
            if record.counted and NOWHERE not in {self._leaf[node] for node in nodes}:
                self._spread.append(_spread_of(groups, self._leaf))
            return
        self.jobs += 1
        self.breaches += sum(
            self._free[each] < self._settings.reserve_nodes for each in used
        )
        if record.job.sp_block is not None:
            self.blocks += len(groups)
            self.split += sum(len({self._of[n] for n in own}) > 1 for own in groups)
        if record.counted:
            least = ceil(len(nodes) / self._settings.superpod_size)
            self._excess.append(len(used) - least)
            self._spread.append(_spread_of(groups, self._of))

    def plain(self) -> dict[str, Any]:
        """Metric 9; splits and breaches are those of the whole run."""
        excess, spread = spread_of(self._excess), spread_of(self._spread)
        return {
            "superpods": self.known,
            "gangs": self.jobs,
            "blocks": self.blocks,
            "split_blocks": self.split,
            "excess_superpods": {key: excess[key] for key in ("n", "mean", "max")},
            "reserve_breaches": self.breaches,
            "weighted_spread": {
                key: spread[key] for key in ("n", "mean", "p95", "max")
            },
        }


def blocks_of(job: Job, placements: Sequence[Placement]) -> list[list[int]]:
    """The replicas of each logical SuperPoD, as placed, or by rank where none is said.

    A job without blocks is one block.
    """
    replicas = sorted(placements, key=lambda each: each.replica)
    size = job.block_nodes if job.sp_block is not None else max(1, len(replicas))
    found: dict[int, list[int]] = {}
    for place, each in enumerate(replicas):
        block = place // size if each.block is None else each.block
        found.setdefault(block, []).append(each.replica)
    return _in_order(found)


def _spread_of(groups: Sequence[Sequence[int]], area: Sequence[int]) -> float:
    """Arnold's weighted spread over the areas of nodes: blocks are pipeline groups.

    The nodes at the same place of every block are a data group.
    """
    pipeline = max(len({area[node] for node in own}) for own in groups)
    longest = max(len(own) for own in groups)
    data = max(
        len({area[own[at]] for own in groups if at < len(own)}) for at in range(longest)
    )
    return PIPELINE * pipeline + DATA * data


def _in_order(blocks: Mapping[int, list[int]]) -> list[list[int]]:
    return [blocks[number] for number in sorted(blocks)]
