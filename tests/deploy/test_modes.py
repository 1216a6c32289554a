"""Each mode of the chart: the flags it renders, with the rights it gives."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.error import HTTPError

import pytest

from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.process import Child
from tests.deploy.helm import flags, install_rights, of_kind
from tests.stories.stage import GRACE_S, answer_of, has_told
from tests.summary.cast import Cast

MODES: Final = {
    "alone": (),
    "one replica": ("replicas=1", "leaderElection.enabled=false"),
    "shadow": ("shadow.enabled=true",),
    "canary": ("canary.queues={research}", "canary.namespaces={team-a}"),
    "summaries": ("summary.withScheduler=true",),
}
LEADING: Final = ("alone", "canary", "summaries")
OK: Final = 200
RINGLEAF: Final = (sys.executable, "-m", "ringleaf")


def folder(mode: str) -> str:
    """The namespace in which a mode is tried."""
    return f"mode-{mode.replace(' ', '-')}"


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def scheduler(testbed: Testbed, mode: str, tmp_path: Path) -> Iterator[Child]:
    """As the Deployment calls it, but for its port and the path of its file."""
    values, namespace = MODES[mode], folder(mode)
    account = install_rights(testbed, *values, namespace=namespace)
    words = flags(*values, f"--namespace={namespace}")
    (config,) = of_kind("ConfigMap", *values)
    conf = tmp_path / "volcano-scheduler.conf"
    conf.write_text(config["data"][conf.name], encoding="utf-8")
    own = {
        "--scheduler-conf": str(conf),
        "--healthz-address": "127.0.0.1:0",
    }
    named = [word for word in words if word.partition("=")[0] not in own]
    assert len(named) == len(words) - len(own)
    more = [f"{flag}={value}" for flag, value in own.items()]
    child = testbed.run(
        f"ringleaf-{namespace}",
        [*RINGLEAF, *named, *more, f"--kubeconfig={account}"],
    )
    yield child
    child.stop(GRACE_S)
    testbed.children.remove(child)
    Cast(testbed, namespace).clear()


def is_ready(child: Child) -> bool:
    try:
        return answer_of(child, "readyz")[0] == OK
    except HTTPError:
        return False


def test_its_rights_are_enough_for_it(
    testbed: Testbed, scheduler: Child, mode: str
) -> None:
    scheduler.wait_until(lambda: has_told(scheduler, "started"))
    scheduler.wait_until(lambda: is_ready(scheduler))
    if mode in LEADING:
        scheduler.wait_until(lambda: has_told(scheduler, "leads"))
    if mode == "summaries":
        path = f"/api/v1/namespaces/{folder(mode)}/configmaps/job-summary-bert"
        Cast(testbed, folder(mode)).group("bert", 1)
        scheduler.wait_until(lambda: testbed.request("GET", path)[0] == OK)
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{folder(mode)}/leases/ringleaf"
    has_lease = testbed.request("GET", leases)[0] == OK
    scheduler.stop(GRACE_S)
    log = scheduler.log.read_text(encoding="utf-8")

    assert scheduler.status == 0, scheduler.last_words()
    assert has_lease == (mode in LEADING)
    assert not re.search(r"\b403\b", log)  # a time may end in .403Z
    assert '"event":"trouble"' not in log
