"""A cluster that Volcano's scheduler schedules, without the vendor's plugin."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from ringleaf_testbed.actor import Actor
from ringleaf_testbed.cluster import ADMIN_GROUP, Testbed
from ringleaf_testbed.process import Child
from ringleaf_testbed.reporter import Layout
from tests.shadow.hindsight import Witness
from tests.shadow.mixed import leaf_machines, other_machines
from tests.stories.stage import GRACE_S, has_told

Object = dict[str, Any]
LOOKING = "may-look-and-nothing-else"
BINDING = "may-do-everything"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
PODS = "/api/v1/namespaces/default/pods"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PATIENCE_S: Final = 300.0
"""Longer than Volcano takes for its jobs on a busy machine."""
PATIENT: Final = (
    "from ringleaf.cli.main import run; from ringleaf.kube import shadow; "
    "shadow.CHIPS_S = 600.0; run()"
)
"""The command of a shadow that waits for chips as long as the daemons take."""


class Beside:
    """Volcano, the daemons of its nodes, and whoever runs beside it."""

    def __init__(self, bed: Testbed, actor: Actor) -> None:
        self.bed, self.actor = bed, actor
        self._n_started = 0

    def start(self, *options: str, token: str = LOOKING) -> Child:
        """``ringleaf scheduler --shadow``, once it knows the cluster."""
        self._n_started += 1
        name = f"shadow-{self._n_started}"
        bed = self.bed
        config = bed.kubeconfig_of(token)
        words = [sys.executable, "-c", PATIENT, "scheduler", "--shadow"]
        words += ["--kubeconfig", str(config), "--healthz-address", "127.0.0.1:0"]
        words += ["--shadow-patience", "600"]
        child = Child(name, [*words, *options], bed.folder / f"{name}.log")
        bed.children.append(child)
        child.wait_until(lambda: has_told(child, "synced"))
        return child

    def stop(self, child: Child) -> None:
        """End a shadow, and see that it ends well."""
        child.stop(GRACE_S)
        assert child.status == 0, child.last_words()

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Wait for something, not for ever."""
        self.bed.wait_for(condition, what, PATIENCE_S)

    def submit(self, manifest: Object) -> None:
        """Make a Volcano Job or a pod."""
        path = JOBS if manifest["kind"] == "Job" else PODS
        self.bed.client.ask("POST", path, manifest)

    def pods(self) -> dict[str, Object]:
        """The pods that there are, by name."""
        found, _version = self.bed.client.list_all(PODS)
        return {each["metadata"]["name"]: each for each in found}

    def phase_of(self, job: str) -> str:
        """The phase of the PodGroup of a Volcano Job."""
        found, _version = self.bed.client.list_all(GROUPS)
        named = [g for g in found if g["metadata"]["name"].startswith(f"{job}-")]
        return str(named[0]["status"].get("phase", "")) if named else ""

    def clear(self) -> None:
        """Delete whatever was submitted."""
        now = {"gracePeriodSeconds": 0}

        def is_empty() -> bool:
            for path, how in ((JOBS, None), (GROUPS, None), (PODS, now)):
                self.bed.client.request("DELETE", path, how)
            return not self.pods()

        self.wait(is_empty, "an empty cluster")

    def witness(self) -> Witness:
        """Somebody who sees pods being bound."""
        return Witness(self.bed.client)

    def asked(self, user: str) -> Iterator[Object]:
        """What a user asked the API server for, as that has written it down."""
        text = self.bed.audit_log.read_text("utf-8")
        for line in text[: text.rfind("\n") + 1].splitlines():
            found: Object = json.loads(line)
            if found["user"]["username"] == user:
                yield found

    @property
    def folder(self) -> Path:
        """Where files of the test may be."""
        return self.bed.folder


@pytest.fixture
def beside(whole: Beside) -> Iterator[Beside]:
    """The cluster, empty."""
    yield whole
    whole.clear()


@pytest.fixture(scope="package")
def whole(new_testbed: type[Testbed]) -> Iterator[Beside]:
    """Controllers and the scheduler of Volcano, KWOK, and machines."""
    tokens = {LOOKING: ("shadow", ()), BINDING: ("canary", (ADMIN_GROUP,))}
    with new_testbed(tokens=tokens, audit=True) as bed:
        look = {
            "apiGroups": ["*"],
            "resources": ["*"],
            "verbs": ["get", "list", "watch"],
        }
        bed.client.ask(
            "POST",
            f"{RBAC}/clusterroles",
            {"metadata": {"name": "look"}, "rules": [look]},
        )
        bed.client.ask(
            "POST",
            f"{RBAC}/clusterrolebindings",
            {
                "metadata": {"name": "look"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "look",
                },
                "subjects": [
                    {
                        "kind": "User",
                        "name": "shadow",
                        "apiGroup": "rbac.authorization.k8s.io",
                    }
                ],
            },
        )
        bed.start("kwok")
        bed.start("vc-controller-manager")
        with Actor(
            bed.client, layout=Layout.BOTH, report_s=0.2, gives_chips=True
        ) as actor:
            actor.add_machines(leaf_machines(), leaf_size=4)
            actor.add_machines(other_machines())
            bed.start("vc-scheduler")
            yield Beside(bed, actor)
