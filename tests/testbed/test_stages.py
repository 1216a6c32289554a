"""Our own KWOK stages behave as kubelets do where that matters to schedulers."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from ringleaf_testbed import source


def stages() -> list[Mapping[str, Any]]:
    found = []
    for path in sorted(source.STAGES.glob("*.yaml")):
        found += [*yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    return [
        each
        for each in found
        if each["kind"] == "Stage" and each["spec"]["resourceRef"]["kind"] == "Pod"
    ]


WRITING = [each for each in stages() if not each["spec"]["next"].get("delete")]


@pytest.mark.parametrize("stage", WRITING, ids=lambda each: each["metadata"]["name"])
def test_a_status_is_written_for_one_pod_and_not_for_its_successor(
    stage: Mapping[str, Any],
) -> None:
    """A name alone would make a pod run that has no node yet."""
    written = stage["spec"]["next"]

    assert "statusTemplate" not in written
    for patch in written["patches"]:
        assert "metadata:\n  uid: {{ $uid | Quote }}\n" in patch["template"]


def test_there_are_such_stages() -> None:
    assert len(WRITING) == 2
