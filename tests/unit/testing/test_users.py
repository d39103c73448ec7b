"""Users of the server: TLS, client certificates, tokens, and roles."""

from __future__ import annotations

import ssl
import sys
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from aioinformer import HttpTransport, SharedInformerFactory, connect
from aioinformer.errors import TransportError, UsageError
from aioinformer.testing import ApiServer
from aioinformer.transport import HttpRequest
from tests.support.access import access_of
from tests.support.api import CONFIGMAPS
from tests.support.loopback import body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PODS = HttpRequest("/api/v1/namespaces/default/pods")
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
TOKEN = "/api/v1/namespaces/default/serviceaccounts/robot/token"


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(tls=True, authorization_mode="RBAC", tokens={"secret": "root,system:masters"}) as server:
        yield server


async def test_informer_with_the_authority_is_served(server: ApiServer) -> None:
    server.create("configmaps", {"metadata": {"name": "a"}})
    trusting = ssl.create_default_context(cadata=server.certificate_authority.decode())
    async with (
        HttpTransport(server.url, token="secret", ssl=trusting) as transport,
        SharedInformerFactory(transport) as factory,
    ):
        informer = factory.core.v1.configmaps.informer()
        await factory.wait_for_cache_sync()
        assert informer.get_store().list_keys() == ["default/a"]


async def test_client_without_the_authority_sends_nothing(server: ApiServer) -> None:
    async with HttpTransport(server.url) as transport:
        with pytest.raises(TransportError, match="certificate"):
            await transport.request(PODS)
    assert not server.requests


async def test_kubeconfig_contains_the_authority(server: ApiServer, tmp_path: Path) -> None:
    async with await connect(kubeconfig=server.kubeconfig(tmp_path / "kubeconfig")) as connection:
        response = await connection.transport.request(PODS)
        await response.close()
    assert response.status == 200


async def test_kubeconfig_can_be_for_a_user(server: ApiServer, tmp_path: Path) -> None:
    mine = server.kubeconfig(tmp_path / "kubeconfig", user="jane,readers")
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    async with await connect(kubeconfig=mine) as connection:
        refused = await connection.transport.request(PODS)
        await refused.close()
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"}
        server.create("rolebindings", {"metadata": {"name": "readers"}, "subjects": [subject], "roleRef": role})
        allowed = await connection.transport.request(PODS)
        await allowed.close()
    assert (refused.status, allowed.status) == (403, 200)


async def test_stop_does_not_wait_for_watches(server: ApiServer, tmp_path: Path) -> None:
    async with await connect(kubeconfig=server.kubeconfig(tmp_path / "kubeconfig")) as connection:
        watch = await connection.transport.request(HttpRequest(PODS.path, (("watch", "true"),)))
        await server.stop()
        with pytest.raises(TransportError):
            await connection.transport.request(PODS)
        await watch.close()


async def test_certificate_stays_the_same_after_an_outage(server: ApiServer, tmp_path: Path) -> None:
    async with await connect(kubeconfig=server.kubeconfig(tmp_path / "kubeconfig")) as connection:
        async with server.fault("outage"):
            with pytest.raises(TransportError):
                await connection.transport.request(PODS)
        response = await connection.transport.request(PODS)
        await response.close()
    assert response.status == 200


async def test_tls_connection_can_be_cut(server: ApiServer, tmp_path: Path) -> None:
    async with (
        await connect(kubeconfig=server.kubeconfig(tmp_path / "kubeconfig")) as connection,
        server.fault("half_page", times=1),
    ):
        server.create("configmaps", {"metadata": {"name": "a"}})
        response = await connection.transport.request(HttpRequest("/api/v1/configmaps"))
        with pytest.raises(TransportError):
            await body(response)


def test_missing_trustme_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(UsageError, match=r"aioinformer\[testing\]"):
        ApiServer(tls=True)


async def told_of(kubeconfig: Path, **headers: str) -> dict[str, Any]:
    """Return the user that the server sees for a kubeconfig."""
    access = access_of(kubeconfig)
    async with (
        access.session() as session,
        session.post(access.server + REVIEWS, json=REVIEW, headers=headers) as response,
    ):
        assert response.status == 201, await response.text()
        user: dict[str, Any] = (await response.json())["status"]["userInfo"]
    return user


async def test_certificate_sets_user_and_groups(server: ApiServer, tmp_path: Path) -> None:
    user = await told_of(server.kubeconfig(tmp_path / "jane", user="jane,readers,writers", certificate=True))

    assert (user["username"], user["groups"]) == ("jane", ["readers", "writers", "system:authenticated"])
    assert user["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


async def test_certificate_takes_precedence_over_a_token(server: ApiServer, tmp_path: Path) -> None:
    kubeconfig = server.kubeconfig(tmp_path / "jane", user="jane", certificate=True)

    assert (await told_of(kubeconfig, Authorization="Bearer secret"))["username"] == "jane"
    assert (await told_of(kubeconfig, Authorization="Bearer wrong"))["username"] == "jane"


async def test_certificate_user_has_the_rights_of_its_roles(server: ApiServer, tmp_path: Path) -> None:
    access = access_of(server.kubeconfig(tmp_path / "jane", user="jane", certificate=True))

    async with access.session() as session, session.get(f"{access.server}/api/v1/nodes") as response:
        assert response.status == 403
        assert 'User "jane" cannot list resource "nodes"' in (await response.json())["message"]


async def test_certificate_of_another_authority_is_refused(server: ApiServer, tmp_path: Path) -> None:
    async with ApiServer(tls=True) as other:
        access = access_of(other.kubeconfig(tmp_path / "stranger", user="jane", certificate=True))
        assert access.tls is not None
        access.tls.load_verify_locations(cadata=server.certificate_authority.decode())

        async with access.session() as session:
            with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
                await session.get(f"{server.url}/version")


async def test_certificates_need_tls(tmp_path: Path) -> None:
    async with ApiServer() as server:
        with pytest.raises(UsageError, match="tls=True"):
            server.kubeconfig(tmp_path / "jane", user="jane", certificate=True)


async def status_of(session: aiohttp.ClientSession, token: str) -> int:
    async with session.get(CONFIGMAPS, headers={"Authorization": f"Bearer {token}"}) as response:
        return response.status


@pytest.mark.parametrize(("later", "status"), [(599, 403), (659, 403), (660, 401)])
async def test_token_is_valid_one_minute_past_its_expiry(later: float, status: int) -> None:
    now = 1_000_000_000.0
    async with (
        ApiServer(clock=lambda: now, authorization_mode="RBAC") as server,
        aiohttp.ClientSession(server.url) as session,
    ):
        server.create("serviceaccounts", {"metadata": {"name": "robot"}})
        async with session.post(TOKEN, json={"spec": {"expirationSeconds": 600}}) as response:
            token = (await response.json())["status"]["token"]
        now += later
        assert await status_of(session, token) == status


async def test_token_of_another_server_is_401() -> None:
    async with ApiServer(authorization_mode="RBAC") as server, ApiServer(authorization_mode="RBAC") as other:
        for each in (server, other):
            each.create("serviceaccounts", {"metadata": {"name": "robot"}})
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{server.url}{TOKEN}", json={}) as response:
                token = (await response.json())["status"]["token"]
            headers = {"Authorization": f"Bearer {token}"}
            async with session.get(f"{other.url}{CONFIGMAPS}", headers=headers) as response:
                assert response.status == 401


async def test_python_methods_are_not_restricted_by_rbac() -> None:
    async with ApiServer(authorization_mode="RBAC") as server:
        role = {"metadata": {"name": "all"}, "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}
        assert server.create("clusterroles", role)["rules"] == role["rules"]


async def test_server_without_rbac_has_no_roles() -> None:
    async with ApiServer() as server:
        assert server.list("clusterroles") == []
