"""The rights of the scheduler, and what the stories before this one needed of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.deploy.helm import ACCOUNT, NAMESPACE, rules
from tests.soak.audit import written
from tests.stories.stage import Stage
from tests.testbed.fixtures import left_out

HERE: Final = Path(__file__).parent

Right = tuple[str, str, str]
"""Namespace (empty: all), resource with its group, verb."""

UNUSED: Final[dict[Right, str]] = {
    ("", "pods", "get"): "a Binding that got no answer: tests/kube/test_outage.py",
    (NAMESPACE, "leases.coordination.k8s.io", "get"): "a Lease that was not renewed",
}
"""Rights that not every run of the stories needs, and who does."""


def granted() -> set[Right]:
    """What the chart's roles allow, one right at a time."""
    return {
        (namespace, f"{resource}.{group}".rstrip("."), verb)
        for namespace, rule in rules()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def asked(audit_log: Path, account: str = ACCOUNT) -> Iterator[tuple[Right, bool]]:
    """What an account asked for, the scheduler's by default, and whether it may."""
    for told in written(audit_log):
        about = told.get("objectRef")
        if told["user"]["username"] != account or about is None:
            continue
        parts = (about["resource"], about.get("subresource"))
        resource = "/".join(part for part in parts if part)
        name = f"{resource}.{about.get('apiGroup', '')}".rstrip(".")
        if about.get("name", "").startswith("reset-config-"):
            continue  # a right that the chart gives where it is asked for
        decided = told["annotations"]["authorization.k8s.io/decision"]
        yield (about.get("namespace", ""), name, told["verb"]), decided == "allow"


def test_the_stories_need_every_right_of_the_chart_and_no_other(
    whole_stage: Stage, request: pytest.FixtureRequest
) -> None:
    """By the API server's audit log of all stories."""
    others = left_out(request.config)  # they need no cluster
    played = {item.path for item in (*request.session.items, *others)}
    if not played >= {*HERE.glob("test_*.py")}:
        pytest.skip("needs all stories to have been played before")
    whole_stage.stop_scheduler()

    found = list(asked(whole_stage.bed.audit_log))
    needed = {right for right, _allowed in found}
    anywhere = {("", *rest) for _namespace, *rest in needed}
    unused = granted() - needed - anywhere

    assert [right for right, is_allowed in found if not is_allowed] == []
    assert unused <= {*UNUSED}
