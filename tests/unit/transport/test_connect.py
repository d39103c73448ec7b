"""`connect`: which configuration it uses, and whether the credentials work for transport and client."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from base64 import b64encode, urlsafe_b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from kubernetes_asyncio.client import CoreV1Api

from aioinformer import connect
from aioinformer.errors import UsageError
from aioinformer.transport import HttpRequest
from aioinformer.transport.auth import credentials
from tests.support.loopback import Server, body, certified, fetch
from tests.unit.transport.kubeconfigs import Kubeconfig, identity

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def api(authority: trustme.CA) -> AsyncIterator[Server]:
    async with Server().started(identity, certified(authority, asks_clients=True)) as server:
        yield server


@pytest.fixture(autouse=True)
def nothing_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Provide an environment without kubeconfig and pod."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(credentials, "SERVICE_ACCOUNT", tmp_path / "service-account")


@pytest.fixture
def kubeconfig(tmp_path: Path, api: Server, authority: trustme.CA) -> Kubeconfig:
    return Kubeconfig(tmp_path / "config", api, authority)


async def identify(**arguments: Any) -> tuple[dict[str, str], dict[str, str]]:
    """Return the identities that the server saw, from the transport and from the client."""
    async with await connect(**arguments) as connection:
        response = await connection.transport.request(HttpRequest("/api/v1/namespaces/default/configmaps/me"))
        seen = json.loads(await body(response))["data"]
        config_map = await CoreV1Api(connection.api_client).read_namespaced_config_map("me", "default")
        return seen, config_map.data


ID_TOKEN = f"e30.{urlsafe_b64encode(json.dumps({'exp': 32503680000}).encode()).decode().rstrip('=')}.sig"
OIDC = {"idp-issuer-url": "https://idp", "client-id": "me", "id-token": ID_TOKEN}


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"tokenFile": "token"}, "Bearer from-file"),
        ({"username": "me", "password": "pw"}, f"Basic {b64encode(b'me:pw').decode()}"),
        ({"auth-provider": {"name": "oidc", "config": OIDC}}, f"Bearer {ID_TOKEN}"),
    ],
    ids=["token", "token file", "basic", "id token"],
)
async def test_user_works_for_transport_and_client(
    kubeconfig: Kubeconfig, tmp_path: Path, user: dict[str, Any], authorization: str
) -> None:
    (tmp_path / "token").write_text("from-file\n")
    seen = await identify(kubeconfig=kubeconfig.write(**user))
    assert [each["authorization"] for each in seen] == [authorization] * 2


async def test_plugin_works_for_both(kubeconfig: Kubeconfig, tmp_path: Path) -> None:
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "abc"}}
    plugin = {"command": sys.executable, "args": ["-c", f"print({json.dumps(json.dumps(answer))})"]}
    seen = await identify(kubeconfig=kubeconfig.write(exec={**plugin, "apiVersion": answer["apiVersion"]}))
    assert [each["authorization"] for each in seen] == ["Bearer abc"] * 2


def certificate(authority: trustme.CA) -> dict[str, str]:
    leaf = authority.issue_cert("me@example.org", common_name="me")
    return {
        "client-certificate-data": b64encode(leaf.cert_chain_pems[0].bytes()).decode(),
        "client-key-data": b64encode(leaf.private_key_pem.bytes()).decode(),
    }


async def test_client_certificate_works_for_both(kubeconfig: Kubeconfig, authority: trustme.CA) -> None:
    seen = await identify(kubeconfig=kubeconfig.write(**certificate(authority)))
    assert [(each["certificate"], each["authorization"]) for each in seen] == [("me", "")] * 2


async def test_client_certificate_of_a_plugin_works_for_the_transport(
    kubeconfig: Kubeconfig, authority: trustme.CA, tmp_path: Path
) -> None:
    leaf = authority.issue_cert("me@example.org", common_name="plugin")
    status = {
        "clientCertificateData": leaf.cert_chain_pems[0].bytes().decode(),
        "clientKeyData": leaf.private_key_pem.bytes().decode(),
    }
    answer = {"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential", "status": status}
    (tmp_path / "answer").write_text(json.dumps(answer))
    plugin = {"command": "cat", "args": [str(tmp_path / "answer")], "apiVersion": answer["apiVersion"]}
    async with await connect(kubeconfig=kubeconfig.write(exec=plugin)) as connection:
        assert json.loads(await fetch(connection.transport))["data"]["certificate"] == "plugin"


@pytest.mark.parametrize(
    "user",
    [
        {"token": "s3cret"},
        {"username": "me", "password": "s3cret"},
        {"tokenFile": "missing"},
        {"exec": {"command": "missing", "apiVersion": "client.authentication.k8s.io/v1"}},
    ],
    ids=lambda user: next(iter(user)),
)
async def test_credentials_are_not_sent_without_tls(
    kubeconfig: Kubeconfig, user: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with Server().started(identity) as proxy:
        kubeconfig.cluster |= {"server": "http://api.invalid:8080", "proxy-url": proxy.url}
        async with await connect(kubeconfig=kubeconfig.write(**user, **{"as": "her"})) as connection:
            seen = json.loads(await fetch(connection.transport))["data"]
    assert (seen["authorization"], seen["user"]) == ("", "her")
    (line,) = [each.getMessage() for each in caplog.records if each.name == "aioinformer.transport"]
    assert f"users[u].{next(iter(user))} is not sent, because kubeconfig {kubeconfig.path}: clusters[c].server" in line
    assert "s3cret" not in line


async def test_credentials_are_sent_to_loopback_without_tls(kubeconfig: Kubeconfig) -> None:
    async with Server().started(identity) as plain:
        kubeconfig.cluster["server"] = plain.url
        seen = await identify(kubeconfig=kubeconfig.write(token="abc"))
    assert [each["authorization"] for each in seen] == ["Bearer abc"] * 2


async def test_impersonation_sends_headers(kubeconfig: Kubeconfig) -> None:
    seen, _ = await identify(kubeconfig=kubeconfig.write(**{"token": "abc", "as": "her", "as-groups": ["a", "b"]}))
    assert (seen["user"], seen["groups"]) == ("her", "a,b")


async def test_kubeconfig_of_the_environment_is_used(kubeconfig: Kubeconfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig.write(token="abc")))
    async with await connect() as connection:
        assert (connection.context, connection.namespace) == ("here", "mine")


async def test_kubeconfig_in_the_home_folder_is_used(kubeconfig: Kubeconfig, tmp_path: Path) -> None:
    kubeconfig.path = tmp_path / "home" / ".kube" / "config"
    kubeconfig.write(token="abc")
    async with await connect() as connection:
        assert connection.context == "here"


@pytest.fixture
def pod(tmp_path: Path, api: Server, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "service-account"
    folder.mkdir()
    (folder / "token").write_text("pod\n")
    (folder / "namespace").write_text("here\n")
    authority.cert_pem.write_to_path(folder / "ca.crt")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", api.url.rpartition(":")[2])
    return folder


@pytest.mark.parametrize("in_cluster", [True, None])
@pytest.mark.usefixtures("pod")
async def test_service_account_works_for_both(in_cluster: bool | None) -> None:
    seen = await identify(in_cluster=in_cluster)
    assert [each["authorization"] for each in seen] == ["Bearer pod"] * 2


async def test_rotated_service_account_token_is_used(pod: Path) -> None:
    async with await connect() as connection:
        (pod / "token").write_text("rotated\n")
        assert json.loads(await fetch(connection.transport))["data"]["authorization"] == "Bearer rotated"
        assert connection.namespace == "here"


@pytest.mark.usefixtures("pod")
async def test_kubeconfig_precedes_the_service_account(kubeconfig: Kubeconfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig.write(token="abc")))
    async with await connect() as connection:
        assert connection.context == "here"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"no cluster found: .*\.kube/config.*set KUBECONFIG"),
        ({"in_cluster": False}, "does not exist"),
        ({"in_cluster": True}, "service account cannot be used"),
        ({"context": "x"}, "does not exist"),
        ({"kubeconfig": "/no/such/file"}, "kubeconfig /no/such/file does not exist"),
        ({"kubeconfig": "f", "in_cluster": True}, "leave out kubeconfig and context"),
    ],
)
async def test_missing_configuration_raises_with_a_remedy(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        await connect(**arguments)


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"tokenFile": "missing"}, r"users\[u\]\.tokenFile: .*missing cannot be read"),
        ({"client-certificate": "missing.crt", "client-key": "missing.key"}, r"missing\.crt"),
        ({"client-certificate-data": "s3cret!"}, "client-certificate"),
        ({"auth-provider": {"name": "gcp"}}, r"auth-provider 'gcp' is not supported.*exec plugin"),
        ({"exec": {"command": "no-such-program", "apiVersion": "client.authentication.k8s.io/v1"}}, "no-such-program"),
    ],
)
async def test_invalid_user_section_raises(kubeconfig: Kubeconfig, user: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        await connect(kubeconfig=kubeconfig.write(**user))
    assert "s3cret" not in str(caught.value)


async def test_connect_reads_and_imports_in_a_thread(kubeconfig: Kubeconfig) -> None:
    path = kubeconfig.write(token="abc")
    steps = 0

    async def count() -> None:
        nonlocal steps
        while True:
            steps += 1
            await asyncio.sleep(0)

    counter = asyncio.ensure_future(count())
    async with await connect(kubeconfig=path):
        counter.cancel()
    assert steps > 2


#: Connects, and loads the `ApiClient`. Prints whether the library was there before, and which thread imported it.
LOADS = """
import asyncio, sys, threading
from aioinformer import connect

class Witness:
    def find_spec(self, name, path=None, target=None):
        if name == "kubernetes_asyncio":
            print(threading.current_thread() is threading.main_thread())

async def main():
    async with await connect(kubeconfig=sys.argv[1]) as connection:
        print("kubernetes_asyncio" in sys.modules)
        assert await connection.load_api_client() is connection.api_client is connection.transport.api_client

sys.meta_path.insert(0, Witness())
asyncio.run(main())
"""


async def test_api_client_is_imported_in_a_thread_on_demand(kubeconfig: Kubeconfig) -> None:
    path = str(kubeconfig.write(token="abc"))
    run = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", LOADS, path], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["False", "False"]


async def test_closed_connection_makes_no_api_client(kubeconfig: Kubeconfig) -> None:
    async with await connect(kubeconfig=kubeconfig.write(token="abc")) as connection:
        pass
    with pytest.raises(UsageError, match="this connection is closed"):
        _ = connection.api_client


async def test_keys_of_the_api_client_are_deleted(kubeconfig: Kubeconfig, authority: trustme.CA) -> None:
    async with await connect(kubeconfig=kubeconfig.write(**certificate(authority))) as connection:
        key = connection.api_client.configuration.key_file or ""
        found = os.stat(key)
    assert found.st_mode & 0o777 == 0o600
    with suppress(FileNotFoundError):  # the number of a file in memory may be that of another one now
        assert os.stat(key).st_ino != found.st_ino


async def test_insecure_server_is_accepted_on_request(kubeconfig: Kubeconfig) -> None:
    del kubeconfig.cluster["certificate-authority-data"]
    kubeconfig.cluster["insecure-skip-tls-verify"] = True
    seen = await identify(kubeconfig=kubeconfig.write(token="abc"))
    assert [each["authorization"] for each in seen] == ["Bearer abc"] * 2


async def test_server_name_of_the_kubeconfig_is_verified(kubeconfig: Kubeconfig) -> None:
    kubeconfig.cluster["server"] = kubeconfig.cluster["server"].replace("127.0.0.1", "localhost")
    kubeconfig.cluster["tls-server-name"] = "127.0.0.1"
    assert len(await identify(kubeconfig=kubeconfig.write(token="abc"))) == 2


@pytest.mark.parametrize("server", ["127.0.0.1:6443", "ftp://here", "https://me:s3cret@here"])
async def test_invalid_server_names_file_and_field(kubeconfig: Kubeconfig, server: str) -> None:
    kubeconfig.cluster["server"] = server
    with pytest.raises(UsageError, match=r"^kubeconfig .*: clusters\[c\]\.server must ") as caught:
        await connect(kubeconfig=kubeconfig.write(token="abc"))
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("data", ["s3cret!", b64encode(b"s3cret").decode()])
async def test_invalid_authority_data_is_named(kubeconfig: Kubeconfig, data: str) -> None:
    kubeconfig.cluster["certificate-authority-data"] = data
    with pytest.raises(UsageError, match=r"kubeconfig .*certificate-authority-data") as caught:
        await connect(kubeconfig=kubeconfig.write(token="abc"))
    assert "s3cret" not in str(caught.value)
