"""Small clusters in which a baseline places jobs, and what came of it."""

from collections.abc import Iterable
from itertools import count

from ringleaf.baselines.registry import DEPLOYED, baseline
from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event, JobArrived, JobGone
from ringleaf.framework.instruction import Bind, Instruction, Report
from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from ringleaf.model.mask import full_mask, mask_of
from ringleaf.model.product import Product
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.products import PRODUCTS

OLD, A2, A3 = (
    PRODUCTS[key] for key in ("atlas-800-9000", "atlas-800t-a2", "atlas-900-a3")
)
"""Eight chips in two rings of four; eight in one mesh; sixteen in modules of two."""


def drawn(*nodes: str, product: Product = OLD) -> list[Node]:
    """Nodes ``n0``, ``n1`` … whose free chips are drawn: ``"####|..##"``."""
    return [
        Node(f"n{i:02}", product, product.chips, free_of(chips))
        for i, chips in enumerate(nodes)
    ]


def free_of(chips: str) -> int:
    """The chips that are drawn as free."""
    marks = chips.replace("|", "")
    return mask_of(i for i, mark in enumerate(marks) if mark == "#")


def under_leaves(*leaves: str, product: Product = A2, chips: int = 0) -> list[Node]:
    """Leaves drawn as in ``tests.leaves``: ``"A ##.#"``; a superpod after a slash.

    ``"A/1 ##"`` stands in SuperPoD 1.
    """
    found = []
    for row in leaves:
        head, _space, marks = row.partition(" ")
        leaf, _slash, superpod = head.partition("/")
        for slot, mark in enumerate(marks):
            free = {"#": full_mask(product.chips), ".": 0, "-": full_mask(chips or 4)}
            found.append(
                Node(
                    f"{leaf}{slot}",
                    product,
                    product.chips,
                    free[mark],
                    leaf=leaf,
                    slot=slot,
                    superpod=int(superpod) if superpod else None,
                )
            )
    return found


class Stage:
    """A baseline at work; in *order*, unless it has a queue of its own."""

    def __init__(
        self,
        name: str,
        nodes: Iterable[Node],
        *,
        order: str | None = "fifo-skip",
        seed: int = 0,
        leaves: Iterable[Leaf] = (),
        conf: Conf = DEFAULT,
    ) -> None:
        order = None if name in DEPLOYED else order
        self.engine: Engine = baseline(name, order=order, seed=seed)(
            nodes, leaves, (), conf
        )
        self._clock = count()
        self.said: list[Instruction] = []

    def happens(self, *events: Event, now: float | None = None) -> list[Instruction]:
        """What is said after *events*."""
        at = float(next(self._clock)) if now is None else now
        out = self.engine.handle_all(events, at)
        self.said += out
        return out

    def comes(self, job: Job, now: float | None = None) -> list[str] | None:
        """The nodes of a job that comes, in the order of ranks; None if it waits."""
        self.happens(JobArrived(job), now=now)
        return self.nodes_of(job.name)

    def goes(self, name: str, now: float | None = None) -> list[str]:
        """Who starts when a job goes."""
        return started(self.happens(JobGone(name), now=now))

    def nodes_of(self, name: str) -> list[str] | None:
        """Where a job is, in the order of ranks."""
        held = self.engine.view.job_states[name].placements
        return [held[rank].node for rank in sorted(held)] or None

    def chips_of(self, name: str) -> list[tuple[int, ...]]:
        """The chips of a job, in the order of ranks."""
        held = self.engine.view.job_states[name].placements
        return [held[rank].chips for rank in sorted(held)]

    def why(self, name: str) -> str:
        """What was last said of a job that waits."""
        told = [
            each.message
            for each in self.said
            if isinstance(each, Report) and each.job == name
        ]
        return told[-1]


def started(out: Iterable[Instruction]) -> list[str]:
    """Who was bound."""
    return [each.job for each in out if isinstance(each, Bind)]
