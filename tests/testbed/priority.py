"""PriorityClasses on the testbed, ready for the pods that name them."""

import time
from typing import Final

from ringleaf_testbed.client import OK, Client

DEADLINE_S: Final = 30.0
LOOK_S: Final = 0.02
FORBIDDEN: Final = 403


def create_priority_class(client: Client, namespace: str, name: str, value: int) -> str:
    """Create a PriorityClass; return when pods of *namespace* may name it.

    Admission reads PriorityClasses from a watch, so for a moment the API server
    refuses pods that name a new one. A pod that is only tried (dry run) tells when.
    """
    body = {"metadata": {"name": name}, "value": value}
    client.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    pod = {
        "metadata": {"name": f"tries-{name}"},
        "spec": {
            "priorityClassName": name,
            "containers": [{"name": "c", "image": "none"}],
        },
    }
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    deadline = time.monotonic() + DEADLINE_S
    while (status := client.request("POST", path, pod)[0]) == FORBIDDEN:
        assert time.monotonic() < deadline, f"PriorityClass {name}: {status}"
        time.sleep(LOOK_S)
    assert status in OK, status
    return name
