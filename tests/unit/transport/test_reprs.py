"""The repr of a transport shows its server, and no credential."""

from __future__ import annotations

from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer.reflector.listwatch import ListWatch
from aioinformer.transport.http import HttpTransport
from aioinformer.transport.kubernetes import KubernetesTransport
from tests.support.collection import PODS


async def test_repr_shows_the_server_and_no_credential() -> None:
    async with HttpTransport(
        "https://api:6443/base", token="secret", headers={"X": "secret"}, proxy="http://user:secret@proxy:1"
    ) as transport:
        assert repr(transport) == "<HttpTransport https://api:6443/base>"
        assert repr(ListWatch(transport, PODS, "team", label_selector="app=web")) == (
            "<ListWatch v1/pods, namespace=team, label_selector=app=web>"
        )
    assert repr(transport) == "<HttpTransport https://api:6443/base, closed>"


async def test_repr_shows_the_host_of_an_api_client() -> None:
    configuration = Configuration(host="https://api:6443", api_key={"BearerToken": "secret"})
    async with ApiClient(configuration) as client, KubernetesTransport(client) as transport:
        assert repr(transport) == "<KubernetesTransport https://api:6443>"
