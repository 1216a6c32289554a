"""Chips that two pods name for a while: they stay taken as long as one of them does.

The device plugin hands a pod the chips of another one of equal size when the kubelet
asks in another order than ``predicate-time`` says. Both names are on pods then, until
the other is served too.
"""

from itertools import permutations

import pytest

from tests.counting import n_calls
from tests.kube.stage import NPU, Stage, node

REAL = "huawei.com/AscendReal"


def served(stage: Stage, name: str, chip: int) -> None:
    """The device plugin hands *chip* to a pod."""
    plain = stage.pods[f"default/{name}"]
    plain["metadata"]["annotations"][REAL] = f"Ascend910-{chip}"
    stage.put_pod(plain)


def three_on_one_node() -> Stage:
    stage = Stage("a")
    for name in "pqr":
        stage.pod(name, 1)
    assert stage.cycle() == [
        "bind pod default/p: p on a 0",
        "bind pod default/q: q on a 1",
        "bind pod default/r: r on a 2",
    ]
    return stage


@pytest.mark.parametrize("order", list(permutations("pqr")), ids="".join)
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one by one"])
def test_chips_that_pods_swapped_stay_taken(
    order: tuple[str, ...], *, at_once: bool
) -> None:
    stage = three_on_one_node()
    for name in order:
        served(stage, name, {"p": 2, "q": 0, "r": 1}[name])
        if not at_once:
            stage.cycle()
    stage.pod("rest", 5)

    assert stage.cycle()[-1] == "bind pod default/rest: rest on a 34567"
    stage.pod("none", 1)
    assert stage.cycle() == ["waiting pod default/none"]


def test_a_chip_that_two_pods_name_is_free_when_both_are_gone() -> None:
    stage = three_on_one_node()
    served(stage, "q", 0)
    stage.cycle()
    stage.pod("rest", 6)
    assert stage.cycle() == ["waiting pod default/rest"]  # chip 1 may be that of p

    stage.drop_pod("p")
    assert stage.cycle() == ["bind pod default/rest: rest on a 134567"]
    stage.pod("next", 1)
    assert stage.cycle() == ["waiting pod default/next"]

    stage.drop_pod("q")
    assert stage.cycle() == ["bind pod default/next: next on a 0"]


@pytest.mark.parametrize("contested", [False, True])
def test_pods_of_one_node_come_and_go_at_a_cost_in_proportion_to_them(
    *, contested: bool
) -> None:
    """Whoever may create pods may name a node, and chips of it, any number of times."""

    def work(pods: int) -> int:
        stage = Stage([node("a", allocatable={"pods": "9999"})])
        stage.cycle()

        def story() -> None:
            for i in range(pods):
                chip = i % 8 if contested else i
                named = {NPU: f"Ascend910-{chip}"}
                bound = {"nodeName": "a"}
                stage.pod(f"p-{i}", 1, scheduler="o", spec=bound, annotations=named)
            stage.cycle()
            for i in range(0, pods, 2):
                stage.drop_pod(f"p-{i}")
            stage.cycle()

        return n_calls(story)

    few, many = work(100), work(800)

    assert many < 1.5 * 8 * few
