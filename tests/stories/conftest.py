"""One cluster for all stories; each has a namespace, and leaves nothing behind.

The scheduler has the rights that the chart gives it and no others, and its bindings
have to pass the fence.
"""

import secrets
from collections.abc import Iterator

import pytest

from ringleaf_testbed.actor import Actor
from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.reporter import Layout
from tests.deploy.helm import install_rights
from tests.stories.stage import LIMITED, Stage
from tests.stories.ward import Ward, Witness


@pytest.fixture(scope="session")
def whole_stage(new_testbed: type[Testbed]) -> Iterator[Stage]:
    """Controllers of Kubernetes and Volcano, KWOK, machines, no scheduler yet."""
    with new_testbed(tokens={LIMITED: ("limited", ())}, audit=True) as bed:
        account = install_rights(bed)
        bed.start("kube-controller-manager", "--pvclaimbinder-sync-period=1s")
        bed.start("kwok")
        bed.start("vc-controller-manager")
        with Actor(bed.client, layout=Layout.BOTH, report_s=0.2) as actor:
            made = Stage(bed, actor, account)
            made.set_up()
            yield made
            made.stop_scheduler()


@pytest.fixture
def stage(whole_stage: Stage) -> Iterator[Stage]:
    """The cluster, empty; every story keeps the contract with device plugins."""
    name = f"story-{secrets.token_hex(3)}"
    whole_stage.bed.client.ask(
        "POST", "/api/v1/namespaces", {"metadata": {"name": name}}
    )
    whole_stage.namespace = name
    yield whole_stage
    try:
        assert whole_stage.actor.clashes == []
        assert whole_stage.actor.failed == []
        assert whole_stage.swapped() == []
    finally:
        whole_stage.stop_others()
        whole_stage.clear()
        whole_stage.actor.clashes.clear()
        whole_stage.actor.failed.clear()


@pytest.fixture
def ward(stage: Stage) -> Iterator[Ward]:
    """The stage; what broke is mended at the end."""
    with Witness(stage.bed.client, stage.namespace) as witness:
        made = Ward(stage, witness)
        try:
            yield made
            made.has_seen_all()
            assert witness.shared_chips() == []
        finally:
            made.mend()
