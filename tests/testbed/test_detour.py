"""The network of stories: what is closed stays closed."""

import socket
import time
from pathlib import Path

import yaml

from tests.stories.detour import Detour

WAIT_S = 5.0
SETTLE_S = 0.1
"""Until the detour waits for the next connection; it used to pass."""


def port_of(detour: Detour, folder: Path) -> int:
    given = folder / "given"
    plain = {"clusters": [{"cluster": {"server": ""}}]}
    given.write_text(yaml.safe_dump(plain), encoding="utf-8")
    made = yaml.safe_load(detour.kubeconfig(given, folder).read_text(encoding="utf-8"))
    return int(made["clusters"][0]["cluster"]["server"].rpartition(":")[2])


def test_a_detour_that_has_ended_passes_nothing_on(tmp_path: Path) -> None:
    """A scheduler that a failed story left behind must not renew its Lease."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        with Detour(server.getsockname()[1]) as detour:
            port = port_of(detour, tmp_path)
            early = socket.create_connection(("127.0.0.1", port), WAIT_S)
            far, _address = server.accept()
            early.sendall(b"early")
            assert far.recv(5) == b"early"
            time.sleep(SETTLE_S)
        reached = socket.socket()
        reached.settimeout(WAIT_S)
        is_refused = reached.connect_ex(("127.0.0.1", port)) != 0

        assert is_refused
        assert early.recv(1) == b""
        for each in (early, far, reached):
            each.close()
