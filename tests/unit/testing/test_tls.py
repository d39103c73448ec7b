"""The server with TLS, and with tokens of users."""

from __future__ import annotations

import ssl
import sys
from typing import TYPE_CHECKING

import pytest

from aioinformer.errors import TransportError, UsageError
from aioinformer.factory.factory import SharedInformerFactory
from aioinformer.testing import ApiServer
from aioinformer.transport import Request
from aioinformer.transport.auth.credentials import connect
from aioinformer.transport.http import HttpTransport
from tests.support.loopback import body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PODS = Request("/api/v1/namespaces/default/pods")


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(tls=True, authorization_mode="RBAC") as running:
        yield running


async def test_informer_with_the_authority_is_served(server: ApiServer) -> None:
    server.create("configmaps", {"metadata": {"name": "a"}})
    trusting = ssl.create_default_context(cadata=server.certificate_authority.decode())
    async with HttpTransport(server.url, ssl=trusting) as transport, SharedInformerFactory(transport) as factory:
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
        watch = await connection.transport.request(Request(PODS.path, (("watch", "true"),)))
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
        response = await connection.transport.request(Request("/api/v1/configmaps"))
        with pytest.raises(TransportError):
            await body(response)


def test_missing_trustme_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(UsageError, match=r"aioinformer\[testing\]"):
        ApiServer(tls=True)
