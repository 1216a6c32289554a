"""The drawing of docs/live.md is what ``explain`` prints of a live job."""

import json
import re

from tests.cli.test_live import Explain, explain
from tests.docs.pages import blocks
from tests.docs.test_transcripts import pattern
from tests.kube.stage import Plain, Stage, node

__all__ = ["explain"]

COMMAND = "$ ringleaf explain job/wide\n"
LABELS = {"tor-affinity": "large-model-schema"}


def under_leaves() -> Stage:
    """Twelve nodes under three leaves; a job of five nodes crosses two of them."""
    nodes: list[Plain] = []
    leaves = []
    for leaf in range(3):
        servers = []
        for slot in range(4):
            address = f"10.1.{leaf}.{slot + 1}"
            plain = node(f"a2-{4 * leaf + slot}")
            plain["status"]["addresses"] = [{"type": "InternalIP", "address": address}]
            nodes.append(plain)
            servers.append({"server_ip": address, "npu_count": 8, "slice_id": slot})
        leaves.append({"tor_id": leaf, "tor_ip": f"10.0.0.{leaf + 1}"})
        leaves[-1]["server"] = servers
    stage = Stage(nodes)
    listed = {"version": "1.0", "tor_count": 4, "server_list": leaves}
    data = {"tor_info": json.dumps(listed)}
    stage.config_map("basic-tor-node-cm", data, "kube-system")
    stage.gang("train", 5, labels=LABELS)
    stage.cycle()
    return stage


def test_the_page_shows_what_explain_draws(explain: Explain) -> None:
    [shown] = [b.body for b in blocks("text") if b.body.startswith(COMMAND)]
    stage = under_leaves()
    stage.gang("wide", 6, labels=LABELS)
    stage.cycle()

    status, printed = explain(stage, "job/wide")

    plain = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    assert status == 1
    assert re.fullmatch(pattern(shown.removeprefix(COMMAND)), plain), plain
