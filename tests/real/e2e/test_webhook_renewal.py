"""The CA of webhooks is replaced while a real API server calls two replicas."""

from __future__ import annotations

import asyncio
import base64
import ssl
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.x509 import load_pem_x509_certificates

from aioinformer import ApiError, Client, connect
from aioinformer.controller import Manager
from aioinformer.models import core_v1
from aioinformer.webhooks import AdmissionRequest, WebhookServer
from tests.support.limits import shorten_certificates, watch_certificates
from tests.support.webhooks import configuration, webhook

if TYPE_CHECKING:
    from tests.support.real_cluster import RealCluster

MAPS = core_v1.CONFIG_MAPS


class Replica:
    """A manager with an admission function that counts its calls."""

    def __init__(self, client: Client) -> None:
        ours = WebhookServer("hooks", client.namespace, port=0, host="127.0.0.1", hosts=("127.0.0.1",))
        self.manager = Manager("hooks", client=client.transport, webhooks=ours, namespaces=[client.namespace])
        self.calls = 0
        self.manager.validate(MAPS)(self.count)

    async def count(self, request: AdmissionRequest[Any]) -> None:
        self.calls += 1

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.manager.admission.port}/{path}/validate/configmaps"

    async def certificate(self) -> bytes:
        """Return the certificate of a new connection."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", self.manager.admission.port, ssl=context)
        found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()
        return found


@pytest.mark.behaviour("C-132")
async def test_webhooks_are_called_through_the_renewal(cluster: RealCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_certificates(monkeypatch, timedelta(seconds=20), skew=timedelta(seconds=1))
    watch_certificates(monkeypatch, 1.0, retry=0.2)
    async with AsyncExitStack() as stack:
        transport = (await stack.enter_async_context(await connect(kubeconfig=cluster.kubeconfig))).transport
        made = await Client(transport).core.v1.namespaces.create({"metadata": {"generateName": "renewal-"}})
        client = Client(transport, namespace=made.metadata.name, field_manager="tests")
        replicas = [Replica(client), Replica(client)]
        for each in replicas:
            await stack.enter_async_context(each.manager)
        resource, body = await _registered(client, replicas)
        stack.push_async_callback(resource.delete, body["metadata"]["name"])
        async with asyncio.timeout(90):
            await _go_through(client, replicas, resource, body)


@pytest.mark.behaviour("C-132")
async def test_deleted_ca_refuses_no_review(cluster: RealCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    watch_certificates(monkeypatch, 1.0, retry=0.2)
    async with AsyncExitStack() as stack:
        transport = (await stack.enter_async_context(await connect(kubeconfig=cluster.kubeconfig))).transport
        made = await Client(transport).core.v1.namespaces.create({"metadata": {"generateName": "renewal-"}})
        client = Client(transport, namespace=made.metadata.name, field_manager="tests")
        replicas = [Replica(client), Replica(client)]
        for each in replicas:
            await stack.enter_async_context(each.manager)
        resource, body = await _registered(client, replicas)
        stack.push_async_callback(resource.delete, body["metadata"]["name"])
        async with asyncio.timeout(200):
            await _until_called(client, replicas)
            name = body["metadata"]["name"]
            before = [await each.certificate() for each in replicas]
            await client.resource(core_v1.SECRETS).delete("hooks-webhook-ca")
            dry, path = client.with_options(dry_run=True, retry=False).resource(MAPS), 0
            while {*before} & {await each.certificate() for each in replicas} or path < 10:
                path += 1
                await _called_anew(resource, name, replicas, path)
                await dry.create({"metadata": {"name": "probe"}})
                await asyncio.sleep(0.2)
            assert len(await _trusted(resource, name)) == 2


async def _registered(client: Client, replicas: list[Replica]) -> tuple[Any, dict[str, Any]]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": client.namespace}}
    both = {f"replica{at}": each.url("first") for at, each in enumerate(replicas)}
    hooks = [webhook(at, {"url": url}, rules=[rule], namespaceSelector=selector) for at, url in both.items()]
    body = configuration("ValidatingWebhookConfiguration", *hooks, name=f"hooks.{client.namespace}")
    resource = await client.resource_for(body)
    await resource.create(body)
    return resource, body


async def _go_through(client: Client, replicas: list[Replica], resource: Any, body: dict[str, Any]) -> None:
    dry = client.with_options(dry_run=True, retry=False).resource(MAPS)
    await _until_called(client, replicas)
    name = body["metadata"]["name"]
    [first] = await _trusted(resource, name)
    end = first.not_valid_after_utc + timedelta(seconds=2)
    before = [await each.certificate() for each in replicas]
    known, path = {first}, 0
    while datetime.now(UTC) < end:
        path += 1
        await _called_anew(resource, name, replicas, path)
        for _ in range(5):
            await dry.create({"metadata": {"name": "probe"}})
            await asyncio.sleep(0.1)
        known |= set(await _trusted(resource, name))
    assert len(known) == 2
    assert not {*before} & {await each.certificate() for each in replicas}
    counts = [each.calls for each in replicas]
    for _ in range(5):
        await dry.create({"metadata": {"name": "probe"}})
    assert [each.calls - count for each, count in zip(replicas, counts, strict=True)] == [5, 5]


async def _until_called(client: Client, replicas: list[Replica]) -> None:
    dry = client.with_options(dry_run=True, retry=False).resource(MAPS)
    while not all(each.calls for each in replicas):
        try:
            await dry.create({"metadata": {"name": "probe"}})
        except ApiError as error:
            assert "failed calling webhook" in str(error)  # noqa: PT017 - there is no CA in the configuration yet
        await asyncio.sleep(0.1)


async def _called_anew(resource: Any, name: str, replicas: list[Replica], path: int) -> None:
    """Let the API server open new connections, which have the certificate of now, by new URLs."""
    urls = [
        {"op": "replace", "path": f"/webhooks/{at}/clientConfig/url", "value": each.url(f"path{path}")}
        for at, each in enumerate(replicas)
    ]
    await resource.patch(name, urls, type="json")


async def _trusted(resource: Any, name: str) -> list[Any]:
    """Return the CAs in the configuration; all webhooks have the same."""
    found = (await resource.get(name)).to_dict()
    [bundle] = {each["clientConfig"]["caBundle"] for each in found["webhooks"]}
    return load_pem_x509_certificates(base64.b64decode(bundle))
