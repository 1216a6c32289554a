import asyncio
import json

import pytest

from ringleaf.kube.api import Api
from ringleaf.kube.credentials import Credentials
from ringleaf.kube.health import BadAddress, Health
from ringleaf.kube.leader import Elector, Terms
from ringleaf.kube.scheduler import Options, Scheduler


def test_probes_answer_with_their_reasons() -> None:
    ready = [False]

    async def story() -> None:
        health = Health(
            "127.0.0.1:0",
            live=lambda: (True, {}),
            ready=lambda: (ready[0], {"pods": "not listed yet"}),
        )
        async with (
            health,
            Api(Credentials(f"http://127.0.0.1:{health.port}")) as api,
        ):
            assert (await api.call("GET", "/livez")).status == 200
            assert (await api.call("GET", "/healthz")).status == 200
            answer = await api.call("GET", "/readyz")
            assert answer.status == 503
            assert json.loads(answer.body)["reasons"] == {"pods": "not listed yet"}
            ready[0] = True
            assert (await api.call("GET", "/readyz")).status == 200
            other = await api.call("GET", "/other")
            assert other.status == 404
            pages = b"/healthz, /livez, /readyz"
            assert other.body == b"there is no /other, only " + pages + b"\n"
            assert answer.body.endswith(b"}\n")

    asyncio.run(story())


@pytest.mark.parametrize(
    "address", ["", "8080", "host", "host:port", "a:b:1", ":99999"]
)
def test_an_address_that_is_none_is_told(address: str) -> None:
    with pytest.raises(BadAddress, match="want HOST:PORT"):
        Health(address, live=lambda: (True, {}), ready=lambda: (True, {}))


def test_an_address_that_is_taken_is_told() -> None:
    def probe() -> tuple[bool, dict[str, str]]:
        return True, {}

    async def story() -> None:
        async with Health("127.0.0.1:0", probe, probe) as first:
            with pytest.raises(BadAddress, match="want a free address"):
                async with Health(f"127.0.0.1:{first.port}", probe, probe):
                    pass

    asyncio.run(story())


def test_one_that_has_not_seen_its_lease_is_not_ready() -> None:
    api = Api(Credentials("http://127.0.0.1:1"))

    def say(_what: str, **_facts: object) -> None:
        pass

    elector = Elector(api, Terms("ringleaf", "kube-system", "me"), say)
    scheduler = Scheduler(api, Options(), say, elector=elector)
    for each in scheduler.reflectors:
        each.synced = True
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

    assert scheduler.ready() == (False, {path: "not listed yet", "role": "standby"})

    elector.reflector.synced = True

    assert scheduler.ready() == (True, {"role": "standby"})
