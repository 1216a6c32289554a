"""Requests and reflectors against a real API server."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from ringleaf.kube import encode
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.credentials import Credentials, load
from ringleaf.kube.objects import ConfigMap, Pod, QueueObject
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.status_writer import VOLCANO
from ringleaf.kube.watch import Gone, Reflector
from ringleaf_testbed.cluster import Testbed

PODS = "/api/v1/namespaces/default/pods"
GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module", name="bed")
def _bed(new_testbed: type[Testbed]) -> Iterator[Testbed]:
    with new_testbed(volcano=False, tokens={"stranger": ("stranger", [])}) as bed:
        yield bed


def pod(name: str) -> bytes:
    container = {"name": "c", "image": "none"}
    spec = {"schedulerName": "ringleaf", "containers": [container]}
    return msgspec.json.encode(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    )


def config_map(name: str, value: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"key": value}}


class Mirror:
    """What a reflector told, as it stands."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.lists = 0
        self.troubles: list[str] = []
        self.unread: set[str] = set()

    def put(self, objects: list[Any]) -> None:
        self.objects |= {one.metadata.name: one for one in objects}

    def drop(self, gone: list[Gone]) -> None:
        for one in gone:
            known = self.objects.pop(one.name, None)
            if known is None:
                self.unread.remove(one.key)
            else:
                assert known.metadata.uid == one.uid

    def note_unread(self, key: str, _raw: bytes) -> None:
        self.unread.add(key)

    def listed(self) -> None:
        self.lists += 1


@contextlib.asynccontextmanager
async def reflecting(
    api: Api,
    path: str,
    kind: type[Any],
    **options: Any,  # noqa: ANN401
) -> AsyncIterator[tuple[Mirror, Reflector[Any]]]:
    mirror = Mirror()
    reflector: Reflector[Any] = Reflector(
        api,
        path,
        kind,
        put=mirror.put,
        drop=mirror.drop,
        listed=mirror.listed,
        trouble=mirror.troubles.append,
        unread=mirror.note_unread,
        **options,
    )
    task = asyncio.create_task(reflector.run())
    try:
        yield mirror, reflector
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def becomes(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(90):
        while not condition():  # noqa: ASYNC110 - conditions of any sort
            await asyncio.sleep(0.02)


def test_pods_are_seen_bound_and_gone(bed: Testbed) -> None:
    binding = {
        "metadata": {"name": "p3", "annotations": {"chips": "0,1"}},
        "target": {"kind": "Node", "name": "node"},
    }

    async def story() -> None:
        async with Api(await load(bed.kubeconfig)) as api:
            for i in range(5):
                assert (await api.call("POST", PODS, pod(f"p{i}"))).status == 201
            async with reflecting(api, PODS, Pod, page=2) as (mirror, reflector):
                await becomes(lambda: reflector.synced)
                assert sorted(mirror.objects) == ["p0", "p1", "p2", "p3", "p4"]
                answer = await api.call(
                    "POST", f"{PODS}/p3/binding", msgspec.json.encode(binding)
                )
                assert answer.status == 201
                await becomes(lambda: mirror.objects["p3"].spec.node_name == "node")
                annotations = mirror.objects["p3"].metadata.annotations
                assert annotations["chips"] == "0,1"
                assert (await api.call("DELETE", f"{PODS}/p0")).status == 200
                await becomes(lambda: "p0" not in mirror.objects)
                assert (mirror.lists, mirror.troubles) == (1, [])
            again = await api.call(
                "POST", f"{PODS}/p3/binding", msgspec.json.encode(binding)
            )
            assert again.status == 409

    asyncio.run(story())


def test_an_object_as_deep_as_the_server_keeps_it_is_read(bed: Testbed) -> None:
    """Whoever may update an object may write thousands of levels of managedFields."""
    deep = 9_000 * b'{"f:a":' + b"{}" + 9_000 * b"}"

    async def deepen(api: Api, name: str, label: str) -> None:
        found = msgspec.json.decode((await api.call("GET", f"{PODS}/{name}")).body)
        found["metadata"]["labels"] = {"x": label}
        found["metadata"]["managedFields"] = [
            {
                "manager": "tenant",
                "operation": "Update",
                "apiVersion": "v1",
                "time": "2026-01-01T00:00:00Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": "deep",
            }
        ]
        body = msgspec.json.encode(found).replace(b'"deep"', deep)
        answer = await api.call("PUT", f"{PODS}/{name}", body)
        assert (answer.status, answer.body.count(b'{"f:a":')) == (200, 9_000)

    async def story() -> None:
        async with Api(await load(bed.kubeconfig)) as api:
            for name in ("deep-0", "deep-1"):
                assert (await api.call("POST", PODS, pod(name))).status == 201
            await deepen(api, "deep-0", "listed")
            async with reflecting(api, PODS, Pod) as (mirror, reflector):
                await becomes(lambda: reflector.synced)
                assert mirror.objects["deep-0"].metadata.labels == {"x": "listed"}
                await deepen(api, "deep-1", "watched")
                await becomes(lambda: bool(mirror.objects["deep-1"].metadata.labels))
                for name in ("deep-0", "deep-1"):
                    assert (await api.call("DELETE", f"{PODS}/{name}")).status == 200
                await becomes(lambda: not {"deep-0", "deep-1"} & mirror.objects.keys())
                assert (mirror.lists, mirror.troubles) == (1, [])

    asyncio.run(story())


def test_what_repairs_write_is_for_this_very_object(
    testbed: Testbed, namespace: str
) -> None:
    """A PodGroup and a pod take annotations and deletions by their uid alone."""
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 1},
    }
    pods = f"/api/v1/namespaces/{namespace}/pods"
    groups = f"{VOLCANO}/namespaces/{namespace}/podgroups"

    async def story() -> list[int]:
        async with Api(await load(testbed.kubeconfig)) as api:
            seen = []
            for path, target, body in (
                (groups, f"{groups}/g", msgspec.json.encode(group)),
                (pods, f"{pods}/p/status", pod("p")),
            ):
                made = await api.call("POST", path, body)
                uid = msgspec.json.decode(made.body, type=Pod).metadata.uid
                for who in ("another", uid):
                    patch = encode.annotated(who, {"key": "value"})
                    answer = await api.call("PATCH", target, patch, kind=encode.MERGE)
                    seen.append(answer.status)
                    assert (b"metadata.uid" in answer.body) == (who == "another")
                found = msgspec.json.decode(answer.body, type=Pod).metadata
                assert (found.annotations or {})["key"] == "value"
            plain = await api.call("GET", f"{pods}/p")
            record = PodState(msgspec.json.decode(plain.body, type=Pod), frozenset())
            record.uid, uid = "another", record.uid
            for who in ("another", uid):
                record.uid = who
                body = encode.deletion(record, force=True)
                seen.append((await api.call("DELETE", f"{pods}/p", body)).status)
            seen.append((await api.call("DELETE", f"{pods}/p", body)).status)
            return seen

    assert asyncio.run(story()) == [422, 200, 422, 200, 409, 200, 404]


def test_a_server_that_was_away_is_taken_up_again(bed: Testbed) -> None:
    async def story() -> None:
        async with Api(await load(bed.kubeconfig)) as api:
            bed.request("POST", MAPS, config_map("before"))
            async with reflecting(api, MAPS, ConfigMap) as (mirror, _reflector):
                await becomes(lambda: "before" in mirror.objects)
                bed.kill_apiserver()
                with pytest.raises(Unreachable):
                    await api.call("GET", MAPS, timeout_s=5.0)
                bed.restart_apiserver()  # not in a thread: it would end with that
                bed.request("DELETE", f"{MAPS}/before")
                bed.request("POST", MAPS, config_map("after"))
                await becomes(lambda: "after" in mirror.objects)
                await becomes(lambda: "before" not in mirror.objects)
                assert mirror.troubles

    asyncio.run(story())


def test_who_is_not_allowed_waits_until_it_is(bed: Testbed) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}
    reader = {"metadata": {"name": "reader"}, "rules": [rule]}
    binding = {
        "metadata": {"name": "stranger"},
        "subjects": [{"kind": "User", "name": "stranger"}],
        "roleRef": {"kind": "ClusterRole", "name": "reader", "apiGroup": GROUP},
    }

    async def story() -> None:
        async with (
            Api(await load(bed.kubeconfig_of("stranger"))) as api,
            reflecting(api, MAPS, ConfigMap) as (mirror, reflector),
        ):
            await becomes(lambda: bool(mirror.troubles))
            assert "status 403" in mirror.troubles[0]
            assert not reflector.synced
            bed.request("POST", f"{RBAC}/clusterroles", reader)
            bed.request("POST", f"{RBAC}/clusterrolebindings", binding)
            await becomes(lambda: reflector.synced)

    asyncio.run(story())


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
QUEUES = "/apis/test.ringleaf.io/v1/queues"


def definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    return {
        "metadata": {"name": "queues.test.ringleaf.io"},
        "spec": {
            "group": "test.ringleaf.io",
            "scope": "Cluster",
            "names": {"plural": "queues", "kind": "Queue"},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


def queue(name: str, weight: object) -> dict[str, Any]:
    return {
        "apiVersion": "test.ringleaf.io/v1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": weight},
    }


def test_an_optional_kind_may_come_later_and_go_again(bed: Testbed) -> None:
    async def story() -> None:
        async with (
            Api(await load(bed.kubeconfig)) as api,
            reflecting(api, QUEUES, QueueObject, optional=True) as (mirror, reflector),
        ):
            await becomes(lambda: reflector.synced)
            bed.request("POST", CRDS, definition())
            await becomes(lambda: bed.request("GET", QUEUES)[0] == 200)
            assert bed.request("POST", QUEUES, queue("bad", "heavy"))[0] == 201
            assert bed.request("POST", QUEUES, queue("good", 3))[0] == 201
            await becomes(lambda: list(mirror.objects) == ["good"])
            assert mirror.objects["good"].spec.weight == 3
            assert "'bad'" in mirror.troubles[0]
            bed.request("DELETE", f"{CRDS}/queues.test.ringleaf.io")
            await becomes(lambda: not mirror.objects)

    asyncio.run(story())


def test_a_service_account_has_its_token_replaced(bed: Testbed, tmp_path: Path) -> None:
    address = urlsplit(bed.url)
    environ = {
        "KUBERNETES_SERVICE_HOST": str(address.hostname),
        "KUBERNETES_SERVICE_PORT": str(address.port),
    }
    (tmp_path / "ca.crt").write_bytes(bed.ca.read_bytes())
    token = tmp_path / "token"
    token.write_text("outdated")

    async def story() -> None:
        credentials = await load(environ=environ, service_account=tmp_path)
        async with Api(credentials) as api:
            token.write_text(bed.token + "\n")
            authorities = credentials.tls
            assert (await api.call("GET", MAPS)).status == 401
            await becomes(lambda: credentials.tls is not authorities)
            assert (await api.call("GET", MAPS)).status == 200

    asyncio.run(story())


def test_a_server_of_another_authority_is_not_talked_to(bed: Testbed) -> None:
    credentials = Credentials(bed.url, tls=ssl.create_default_context())

    async def story() -> None:
        async with Api(credentials) as api:
            with pytest.raises(Unreachable, match="certificate verify failed") as no:
                await api.call("POST", PODS, pod("never"))
            assert not no.value.sent
            with pytest.raises(Unreachable, match="certificate verify failed"):
                async for _block in api.stream(f"{PODS}?watch=1", idle_s=1):
                    pass

    asyncio.run(story())
