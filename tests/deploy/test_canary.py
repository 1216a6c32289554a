"""Pods of some queues and namespaces become Ringleaf's, by the real API server."""

import secrets
from collections.abc import Iterator
from typing import Final

import pytest
import yaml

from ringleaf_testbed.cluster import Testbed
from tests.deploy.helm import of_kind

KINDS: Final = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
QUEUE: Final = "canary-of-tests"
QUEUE_NAMES: Final = ("scheduling.volcano.sh/queue-name", "volcano.sh/queue-name")


class Canary:
    """Two namespaces, one of which is handed over, and a queue that is."""

    def __init__(self, bed: Testbed) -> None:
        self.bed = bed
        self.inside, self.outside = (f"test-{secrets.token_hex(4)}" for _ in range(2))
        for name in (self.inside, self.outside):
            bed.client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def scheduler_of(
        self,
        namespace: str,
        scheduler: str = "volcano",
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
    ) -> str:
        """The scheduler name that a new pod gets; nothing is stored."""
        pod = {
            "metadata": {
                "generateName": "pod-",
                "annotations": annotations,
                "labels": labels,
            },
            "spec": {
                "schedulerName": scheduler,
                "containers": [{"name": "main", "image": "none"}],
            },
        }
        path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
        made = self.bed.client.ask("POST", path, pod)
        return str(made["spec"]["schedulerName"])


def apply(bed: Testbed, command: str, *values: str) -> None:
    parts = [each for kind in KINDS for each in of_kind(kind, *values)]
    assert len(parts) == len(KINDS)
    bed.kubectl(*command.split(), "-f", "-", input=yaml.safe_dump_all(parts))


@pytest.fixture(scope="module")
def canary(testbed: Testbed) -> Iterator[Canary]:
    made = Canary(testbed)
    values = (f"canary.queues={{{QUEUE}}}", f"canary.namespaces={{{made.inside}}}")
    apply(testbed, "apply", *values)
    testbed.wait_for(
        lambda: made.scheduler_of(made.inside) == "ringleaf", "the policy to be heeded"
    )
    yield made
    apply(testbed, "delete", *values)


def test_pods_of_a_namespace_are_handed_over(canary: Canary) -> None:
    assert canary.scheduler_of(canary.inside) == "ringleaf"
    assert canary.scheduler_of(canary.outside) == "volcano"


@pytest.mark.parametrize("key", QUEUE_NAMES)
def test_pods_of_a_queue_are_handed_over(canary: Canary, key: str) -> None:
    where = canary.outside

    assert canary.scheduler_of(where, annotations={key: QUEUE}) == "ringleaf"
    assert canary.scheduler_of(where, labels={key: QUEUE}) == "ringleaf"
    assert canary.scheduler_of(where, annotations={key: "other"}) == "volcano"
    assert canary.scheduler_of(where, labels={key: f"{QUEUE}-2"}) == "volcano"


def test_pods_of_other_schedulers_stay_theirs(canary: Canary) -> None:
    own = {QUEUE_NAMES[0]: QUEUE}

    assert canary.scheduler_of(canary.inside, "default-scheduler") == (
        "default-scheduler"
    )
    assert canary.scheduler_of(canary.outside, "other", annotations=own) == "other"


def test_by_namespace_alone_no_other_namespace_is_looked_at(canary: Canary) -> None:
    """The API server chooses by the namespace, before anything is evaluated."""
    (policy, *_more) = of_kind(KINDS[0], f"canary.namespaces={{{canary.inside}}}")

    (chosen,) = policy["spec"]["matchConstraints"]["namespaceSelector"][
        "matchExpressions"
    ]
    assert chosen["values"] == [canary.inside]
