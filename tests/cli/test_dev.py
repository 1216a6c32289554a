import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from ringleaf_testbed.cluster import Testbed
from tests.cli.conftest import Ringleaf
from tests.testbed.test_process import is_alive

UP = [sys.executable, "-m", "ringleaf", "dev", "up"]


def started(folder: str, what: str = "") -> list[int]:
    """Processes that were started with something in *folder* and *what*."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_text()
        except OSError:
            continue
        if folder in line and what in line:
            found.append(int(path.parent.name))
    return found


def page(address: str) -> str:
    """What is served there, nothing while nobody answers."""
    try:
        with urlopen(address, timeout=10) as answer:  # noqa: S310 - our own
            return str(answer.read().decode())
    except OSError:
        return ""


@pytest.mark.usefixtures("binaries")
def test_the_samples_run_where_their_rules_want_them(ringleaf: Ringleaf) -> None:
    done = ringleaf("dev", "up", "--once")

    assert done.status == 0, done.err
    head, *rows = (line.split() for line in done.lines)
    assert head == ["pod", "phase", "node", "chips"]
    assert {row[1] for row in rows} == {"Running"}
    nodes = {row[0]: row[2] for row in rows}
    chips = {row[0]: row[3] for row in rows if len(row) > 3}
    leaf = {int(nodes[f"train-worker-{i}"].removeprefix("a2-")) // 4 for i in range(4)}
    assert len(leaf) == 1
    assert {chips[f"train-worker-{i}"] for i in range(4)} == {"0-7"}
    assert {chips[f"super-worker-{i}"] for i in range(2)} == {"0-15"}
    assert nodes["infer"].startswith("a2-")
    assert nodes["plain"] == "plain"


@pytest.mark.usefixtures("binaries")
def test_a_scheduler_that_is_killed_is_started_again_and_ctrl_c_ends_everything(
    tmp_path: Path,
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(  # noqa: S603 - our own
        UP, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as cluster:
        try:
            assert cluster.stdout is not None
            printed = [cluster.stdout.readline() for _ in range(14)]
            pids = started(str(tmp_path))
            assert re.fullmatch(r"export KUBECONFIG=\S+/kubeconfig\n", printed[0])
            assert re.fullmatch(r"export PATH=\S+:\$PATH\n", printed[1])
            typed = [line.partition("#")[0].strip() for line in printed]
            assert all("  # " in line for line in printed[2:13])
            assert typed[2:4] == ["ringleaf status", "ringleaf explain pod/infer"]
            assert typed[7] == "ringleaf explain job/big"
            assert typed[8] == "kubectl delete job.batch.volcano.sh train"
            assert printed[13].startswith("Ctrl-C ends it")
            metrics = typed[12].removeprefix("curl -s ")
            assert len(pids) >= 6

            assert typed[10] == "ringleaf faults"
            script = "".join([*printed[:2], "which ringleaf\n", printed[9]])
            subprocess.run(["bash", "-ec", script], check=True, capture_output=True)  # noqa: S603, S607 - as it was printed
            assert cluster.stderr is not None
            said = iter(cluster.stderr.readline, "")
            assert any(line == "broken of a3-11: 3\n" for line in said)

            (scheduler,) = started(str(tmp_path), "ringleaf\0scheduler")
            Testbed.wait_for(lambda: "ringleaf_leader" in page(metrics), "metrics")
            os.kill(scheduler, signal.SIGKILL)
            assert any("ended (-9), starting it again" in line for line in said)
            pids += started(str(tmp_path))
            Testbed.wait_for(lambda: "ringleaf_leader" in page(metrics), "metrics")
            cluster.send_signal(signal.SIGINT)

            assert cluster.wait(timeout=60) == 0
        except BaseException:
            cluster.kill()
            raise
    Testbed.wait_for(lambda: not any(map(is_alive, pids)), "everything to end")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_built_is_one_line(
    ringleaf: Ringleaf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("ringleaf_testbed.build.GO_USUAL_PLACE", Path("/nowhere"))

    done = ringleaf("dev", "up")

    assert (done.status, done.out) == (2, "")
    assert done.err.splitlines()[-1].startswith("ringleaf: testbed: no Go toolchain")
