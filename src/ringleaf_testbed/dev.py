"""``ringleaf dev``: a small simulated Ascend cluster, scheduled by Ringleaf."""

import os
import secrets
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.table import Table

from ringleaf.cli.draw import chip_words
from ringleaf.cli.failure import BadUse
from ringleaf.cli.output import TrimmedConsole
from ringleaf_testbed import source
from ringleaf_testbed.actor import Actor
from ringleaf_testbed.build import build, command
from ringleaf_testbed.client import Client
from ringleaf_testbed.cluster import ADMIN_GROUP, Testbed
from ringleaf_testbed.device_plugin import REAL
from ringleaf_testbed.hardware import fleet
from ringleaf_testbed.process import Child, free_port
from ringleaf_testbed.requested_faults import BROKEN, Breaker

SAMPLES: Final = Path(source.__file__).with_name("samples.yaml")
SAMPLE_PODS: Final = 8
PATIENCE_S: Final = 120.0
INTERRUPTED: Final = 130
PODS: Final = "/api/v1/namespaces/default/pods"
SCHEDULER_NAMES: Final = ("volcano", "ringleaf", "default-scheduler")
COMPONENTS: Final = ("kube-controller-manager", "kwok", "vc-controller-manager")
GANG: Final = "examples/manifests/big.yaml"
"""A gang that does not fit beside the samples, in the folder of the project."""
COMMANDS: Final = (
    ("ringleaf status", "chips, queues, leaves, pending jobs"),
    ("ringleaf explain pod/infer", "where a pod is, and why there"),
    ("kubectl get pods -o wide", "the sample pods and their nodes"),
    (f"ringleaf plan -f {GANG}", "whether a gang of six nodes would start"),
    (f"kubectl create -f {GANG}", "submits it"),
    ("ringleaf explain job/big", "why it is pending"),
    ("kubectl delete job.batch.volcano.sh train", "makes room for it"),
    (f"kubectl annotate node a3-11 {BROKEN}=3", "breaks a chip"),
    ("ringleaf faults", "what is faulty, and what happens to its pods"),
    (f"kubectl annotate node a3-11 {BROKEN}-", "repairs the chip"),
)
"""What to try in a second terminal, and what it shows."""
NEEDED: Final = (*source.CONTROL_PLANE, "kubectl")
SCHEDULER: Final = "system:serviceaccount:volcano-system:volcano-scheduler"
DAEMONS: Final = "system:serviceaccount:kube-system:ascend-device-plugin-sa-910"
"""The users that bind pods and write which chips were mounted. The chart's chip guard
admits both with its default values, and refuses the admin."""


class PodRow(NamedTuple):
    """A pod as the table shows it."""

    pod: str
    phase: str
    node: str
    chips: str


def run_cluster(*, once: bool) -> int:
    """Start the cluster, submit the samples; until Ctrl-C, or *once* they run."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        build(NEEDED)
        _say("starting etcd and kube-apiserver ...")
        users = {name: secrets.token_hex(16) for name in (SCHEDULER, DAEMONS)}
        tokens = {token: (name, (ADMIN_GROUP,)) for name, token in users.items()}
        with (
            Testbed(tokens=tokens) as bed,
            closing(Client(bed.url, users[DAEMONS], bed.ca)) as daemons,
            Actor(daemons) as actor,
        ):
            health = f"127.0.0.1:{free_port()}"
            account = bed.kubeconfig_of(users[SCHEDULER])
            run_scheduler = partial(_start_scheduler, bed, account, health)
            scheduler = _start(bed, actor, run_scheduler)
            all_run = _wait_for_samples(bed, scheduler)
            if once:
                return _print_samples(bed, scheduler, all_run=all_run)
            _say("the sample jobs run" if all_run else "not all sample jobs run yet")
            _print_hints(bed, health)
            return _stay(scheduler, run_scheduler, Breaker(actor, _say))
    except source.TestbedError as error:
        raise BadUse(f"testbed: {error}") from None
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)


def _start(bed: Testbed, actor: Actor, run_scheduler: Callable[[], Child]) -> Child:
    """Everything, and the samples; gives the scheduler."""
    for name in COMPONENTS:
        _say(f"starting {name} ...")
        bed.start(name)
    _say("adding nodes: 8 atlas-800t-a2 under 2 leaves, 4 atlas-900-a3, 1 plain ...")
    actor.add_machines(fleet("atlas-800t-a2", 8, prefix="a2"), leaf_size=4)
    actor.add_machines(fleet("atlas-900-a3", 4, first=8, prefix="a3"))
    actor.add_plain_node("plain")
    _say("starting ringleaf scheduler, submitting sample jobs ...")
    scheduler = run_scheduler()
    bed.kubectl("apply", "-f", str(SAMPLES))
    return scheduler


def _stay(
    scheduler: Child, run_scheduler: Callable[[], Child], breaker: Breaker
) -> int:
    """Wait for Ctrl-C, which is how it is meant to end.

    A scheduler that ends is started again, as Kubernetes would do, and what nodes
    say is to be broken of them is broken.
    """
    try:
        while True:
            time.sleep(1)
            breaker.look()
            if not scheduler.is_running:
                _say(
                    f"ringleaf scheduler ended ({scheduler.status}), starting it again"
                )
                scheduler = run_scheduler()
    except KeyboardInterrupt:
        _say("ending ...")
        return 0


def _start_scheduler(bed: Testbed, account: Path, health: str) -> Child:
    """Ringleaf for the names of the samples, with probes and metrics at *health*.

    *account* is its kubeconfig.
    """
    names = [word for name in SCHEDULER_NAMES for word in ("--scheduler-name", name)]
    command = [sys.executable, "-m", "ringleaf", "scheduler"]
    where = ["--kubeconfig", str(account)]
    probes = ["--healthz-address", health]
    return bed.run("ringleaf-scheduler", [*command, *where, *probes, *names])


def _wait_for_samples(bed: Testbed, scheduler: Child) -> bool:
    """Whether all samples run, as soon as they do; not for ever."""
    deadline = time.monotonic() + PATIENCE_S
    while not _all_run(bed):
        if not scheduler.is_running or time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _print_samples(bed: Testbed, scheduler: Child, *, all_run: bool) -> int:
    """Print where the samples are; exit status 1 when one of them does not run."""
    _print_pods(_pods(bed))
    if all_run:
        return 0
    _say(f"not all samples run; ringleaf scheduler: {scheduler.last_words()}")
    return 1


def _all_run(bed: Testbed) -> bool:
    pods = _pods(bed)
    return len(pods) == SAMPLE_PODS and all(pod.phase == "Running" for pod in pods)


def _pods(bed: Testbed) -> list[PodRow]:
    pods, _version = bed.client.list_all(PODS)
    return sorted(map(_shown, pods))


def _shown(pod: dict[str, Any]) -> PodRow:
    names = pod["metadata"].get("annotations", {}).get(REAL, "")
    chips = [int(name.rpartition("-")[2]) for name in names.split(",") if name]
    return PodRow(
        pod["metadata"]["name"],
        pod["status"]["phase"],
        pod["spec"].get("nodeName", ""),
        chip_words(sorted(chips)) if chips else "",
    )


def _print_pods(pods: list[PodRow]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in PodRow._fields:
        table.add_column(heading, no_wrap=True)
    for pod in pods:
        table.add_row(*pod)
    TrimmedConsole().print(table)


def _print_hints(bed: Testbed, health: str) -> None:
    """Print what a second terminal needs, and commands to try there."""
    tools = [Path(sys.executable), command("kubectl"), source.find_command("helm")]
    folders = dict.fromkeys(str(tool.parent) for tool in tools if tool is not None)
    sys.stdout.write(
        f"export KUBECONFIG={bed.kubeconfig}\n"
        f"export PATH={os.pathsep.join(folders)}:$PATH\n"
    )
    commands = [
        each
        for each in COMMANDS
        if Path(GANG).is_file() or not each[0].endswith((GANG, "job/big"))
    ]
    commands.append((f"curl -s http://{health}/metrics", "metrics of the scheduler"))
    width = max(len(command) for command, _shows in commands)
    lines = [f"{command:{width}}  # {shows}" for command, shows in commands]
    lines.append(f"Ctrl-C ends it; logs are in {bed.folder}")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
