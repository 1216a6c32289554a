"""The witness of the stories of faults, without a cluster."""

import pytest

from tests.stories.stage import R910, pod
from tests.stories.ward import shared


@pytest.mark.parametrize(
    ("node", "chips", "phase", "want"),
    [
        ("a", "Ascend910-0", "Running", ["a: chip 0 had 2 owners"]),
        ("a", "Ascend910-0", "Failed", []),
        ("a", "Ascend910-1", "Running", []),
        ("b", "Ascend910-0", "Pending", []),
    ],
)
def test_a_chip_with_two_owners_is_seen(
    node: str, chips: str, phase: str, want: list[str]
) -> None:
    first = pod("p", 1, annotations={R910: "Ascend910-0"}, nodeName="a")
    other = pod("q", 1, annotations={R910: chips}, nodeName=node)
    first["status"], other["status"] = {"phase": "Running"}, {"phase": phase}

    assert [*shared([first, other])] == want
