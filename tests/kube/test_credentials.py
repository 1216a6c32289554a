"""Kubeconfig files good and bad; no API server is needed to read them."""

import asyncio
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringleaf.kube import credentials as module
from ringleaf.kube.credentials import BadCredentials, Credentials, load


def kubeconfig(
    server: str = "http://api:8080",
    user: dict[str, Any] | None = None,
    context: str = "main",
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [
            {"name": "c", "cluster": {"server": server}},
            {"name": "other", "cluster": {"server": "http://other:8080"}},
        ],
        "users": [{"name": "u", "user": user or {"token": "abc"}}],
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u"}},
            {"name": "spare", "context": {"cluster": "other", "user": "u"}},
        ],
    }


Write = Callable[..., Path]


@pytest.fixture(name="write")
def _write(tmp_path: Path) -> Write:
    def write(name: str = "config", **options: Any) -> Path:  # noqa: ANN401
        path = tmp_path / name
        path.write_text(yaml.safe_dump(kubeconfig(**options)))
        return path

    return write


@pytest.fixture(autouse=True)
def _no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HOME_FILE", tmp_path / "home" / "config")


def loaded(
    path: Path | str | None = None,
    context: str | None = None,
    environ: dict[str, str] | None = None,
) -> Credentials:
    return asyncio.run(
        load(path, context, environ=environ or {}, service_account=Path("/nowhere"))
    )


@pytest.mark.slow
def test_an_explicit_file_wins_over_the_environment(write: Write) -> None:
    file, other = write(), write("other", server="http://env:1")

    assert loaded(file, environ={"KUBECONFIG": str(other)}).server == "http://api:8080"
    assert loaded(environ={"KUBECONFIG": str(other)}).server == "http://env:1"


def test_the_file_at_home_comes_last(write: Write) -> None:
    module.HOME_FILE.parent.mkdir()
    write(server="http://home:1").rename(module.HOME_FILE)

    assert loaded().server == "http://home:1"


def test_a_context_is_chosen_by_name(write: Write) -> None:
    assert loaded(write(), "spare").server == "http://other:8080"


def test_a_context_that_is_not_there_is_told_those_that_are(write: Write) -> None:
    with pytest.raises(BadCredentials) as caught:
        loaded(write(), context="nope")

    told = str(caught.value)
    assert "has no context 'nope', want one of: " in told
    assert len(told) < 200


def test_the_namespace_is_that_of_the_context(tmp_path: Path) -> None:
    plain = kubeconfig()
    plain["contexts"][0]["context"]["namespace"] = "research"
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(plain))

    assert loaded(path).namespace == "research"
    assert loaded(path, "spare").namespace == "default"


def test_several_files_are_read_as_one(write: Write, tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text("current-context: spare\n")

    assert loaded(f"{write()}:{first}:{tmp_path / 'none'}").server == (
        "http://other:8080"
    )


def test_a_token_file_is_read_again(write: Write, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")

    async def story() -> None:
        credentials = await load(write(user={"tokenFile": str(token)}))
        assert credentials.authorization == "Bearer old"
        token.write_text("new\n")
        await credentials.renew()
        assert credentials.authorization == "Bearer new"

    asyncio.run(story())


def plugin(folder: Path, *, ends: str | None = None) -> dict[str, Any]:
    """A user whose plugin counts its runs and hands the count out as a token."""
    status = {"token": "run-RUNS"} | ({"expirationTimestamp": ends} if ends else {})
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": status,
    }
    script = folder / "plugin"
    script.write_text(
        f"#!/bin/sh\necho x >> {folder}/runs\nRUNS=$(wc -l < {folder}/runs)\n"
        f"echo '{json.dumps(credential)}' | sed s/RUNS/$((RUNS))/\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(script),
            "interactiveMode": "Never",
        }
    }


@pytest.mark.filterwarnings("ignore:datetime:DeprecationWarning")
@pytest.mark.parametrize(
    ("ends", "tokens"),
    [
        pytest.param(None, "1 1 2", id="without an end only after a refusal"),
        pytest.param("2020-01-01T00:00:00Z", "1 2 3", id="when it has ended"),
        pytest.param("2999-01-01T00:00:00Z", "1 1 2", id="not before it ends"),
    ],
)
def test_a_plugin_is_run_again_when_its_token_is_of_no_use(
    write: Write, tmp_path: Path, ends: str | None, tokens: str
) -> None:
    async def story() -> list[str]:
        credentials = await load(write(user=plugin(tmp_path, ends=ends)))
        seen = [credentials.authorization]
        for refused in (False, True):
            await credentials.renew(refused=refused)
            seen.append(credentials.authorization)
        return seen

    assert asyncio.run(story()) == [f"Bearer run-{n}" for n in tokens.split()]


def test_what_cannot_be_renewed_stays(write: Write) -> None:
    file = write()

    async def story() -> None:
        credentials = await load(file)
        file.write_text("[]")
        with pytest.raises(BadCredentials, match="config"):
            await credentials.renew(refused=True)
        assert credentials.authorization == "Bearer abc"

    asyncio.run(story())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "missing or of another type", id="empty"),
        pytest.param("[]", "missing or of another type", id="a list"),
        pytest.param("a: [", "while parsing", id="no YAML"),
        pytest.param("a: b", "current-context", id="no context"),
        pytest.param(
            yaml.safe_dump(kubeconfig(context="none")), "none", id="unknown context"
        ),
        pytest.param(
            yaml.safe_dump(kubeconfig(server="api")),
            "server is 'api', want https://HOST:PORT",
            id="no URL",
        ),
        pytest.param(
            yaml.safe_dump(kubeconfig(server="http://api:99999")),
            "want https://HOST:PORT",
            id="no port",
        ),
        pytest.param(
            yaml.safe_dump(kubeconfig(user={"token": "a\nX-Other: b"})),
            "printable ASCII in one line",
            id="a token of two lines",
        ),
        pytest.param(
            yaml.safe_dump(
                kubeconfig("https://a", {"client-certificate": "/nowhere/at-all"})
            ),
            "/nowhere/at-all",
            id="a certificate that is not there",
        ),
        pytest.param(
            yaml.safe_dump(
                kubeconfig("https://a", {"client-certificate-data": "bm9uZQ=="})
            ),
            "want certificates in PEM",
            id="a certificate that is none",
        ),
        pytest.param(
            yaml.safe_dump(
                kubeconfig(user={"exec": {"apiVersion": "v1", "command": "/nowhere"}})
            ),
            "No such file",
            id="a plugin that is not there",
        ),
        pytest.param(
            yaml.safe_dump(
                kubeconfig(user={"exec": {"apiVersion": "v1", "command": "false"}})
            ),
            "returned 1",
            id="a plugin that fails",
        ),
    ],
)
def test_a_bad_file_is_one_clear_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text)

    with pytest.raises(BadCredentials) as caught:
        loaded(path)

    line = str(caught.value)
    assert said in line
    assert str(path) in line
    assert "want " in line
    assert "\n" not in line
    assert capfd.readouterr() == ("", "")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(BadCredentials, match="'/nowhere/config' is not there"):
        loaded("/nowhere/config")


def test_without_any_credentials_all_places_are_named() -> None:
    with pytest.raises(BadCredentials, match=r"KUBECONFIG.*nowhere.*home.*hint"):
        loaded()


@pytest.mark.parametrize("token", [None, "", "  \n"])
def test_a_service_account_without_a_token_is_told(
    tmp_path: Path, token: str | None
) -> None:
    (tmp_path / "ca.crt").write_text("no certificate")
    if token is not None:
        (tmp_path / "token").write_text(token)
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}

    with pytest.raises(BadCredentials) as caught:
        asyncio.run(load(environ=pod, service_account=tmp_path))

    assert str(tmp_path) in str(caught.value)
