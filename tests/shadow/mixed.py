"""Jobs of mixed kinds, 200 in a long run, and machines with room for all of them."""

import random
from collections.abc import Iterator
from typing import Any, Final

from ringleaf_testbed.hardware import Machine, fleet
from tests.effort import examples
from tests.stories.stage import A3, pod, vcjob

Object = dict[str, Any]

PRO: Final = {"accelerator-type": "module"}
R310: Final = "huawei.com/Ascend310"

KINDS: Final = {
    "single": 80,
    "node": 10,
    "ring": 20,
    "gang": 24,
    "leaf": 14,
    "superpod": 16,
    "module": 10,
    "card": 26,
}
"""Kind -> jobs of it in a long run."""
WHOLE: Final = ("node", "gang", "leaf", "superpod")
"""Kinds that want whole nodes."""
N_JOBS: Final = sum(map(examples, KINDS.values()))


def leaf_machines() -> list[Machine]:
    """910B nodes under leaves of four."""
    return fleet("atlas-800t-a2", 144, prefix="a2")


def other_machines() -> list[Machine]:
    """A3 nodes in SuperPoDs of eight, 910A and 300I nodes."""
    return [
        *fleet("atlas-900-a3", 64, first=144, prefix="a3", superpod_size=8),
        *fleet("atlas-800-9000", 12, first=208, prefix="pro"),
        *fleet("atlas-300i", 16, first=220, prefix="i300"),
    ]


def waves(seed: int) -> tuple[list[Object], list[Object]]:
    """Those that want whole nodes, then the others, in an order that *seed* gives.

    A scheduler that spreads small pods would leave no room for whole nodes.
    """
    dice = random.Random(seed)  # noqa: S311 - no secret
    first: list[Object] = []
    then: list[Object] = []
    for kind, count in KINDS.items():
        wave = first if kind in WHOLE else then
        for number in range(examples(count)):
            wave += _job(kind, f"{kind}-{number}", dice)
    dice.shuffle(first)
    dice.shuffle(then)
    return first, then


def _job(kind: str, name: str, dice: random.Random) -> Iterator[Object]:
    match kind:
        case "single":
            chips = dice.choice([1, 1, 2, 2, 4])
            yield pod(name, chips, scheduler="volcano")
        case "node":
            yield pod(name, 8, scheduler="volcano")
        case "ring":
            chips = dice.choice([1, 1, 2, 2, 4])
            yield pod(name, chips, selector=PRO, scheduler="volcano")
        case "gang":
            yield vcjob(name, dice.choice([2, 3]), dice.choice([4, 8]))
        case "leaf":
            schema = dice.choice(["large-model-schema", "normal-schema"])
            pods = dice.choice([2, 3, 4, 5])
            yield vcjob(name, pods, 8, labels={"tor-affinity": schema})
        case "superpod":
            block = {"sp-block": "32"}
            pods = dice.choice([2, 2, 4])
            yield vcjob(name, pods, 16, selector=A3, annotations=block)
        case "module":
            chips = dice.choice([1, 2, 4])
            yield pod(name, chips, selector=A3, scheduler="volcano")
        case _:
            chips = dice.choice([1, 2, 4])
            strategy = {"npu-310-strategy": dice.choice(["card", "chip"])}
            asks: dict[str, Any] = {"resource": R310, "labels": strategy}
            yield pod(name, chips, selector={}, scheduler="volcano", **asks)
