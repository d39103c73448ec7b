"""Ports and connections with IPv6 addresses, and ports that listen on both families."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import socket
import ssl
from typing import TYPE_CHECKING

import aiohttp
import pytest

from aioinformer import SharedInformerFactory, connect
from aioinformer.controller import Manager
from aioinformer.controller.health import HealthServer
from aioinformer.controller.snapshots import Health
from aioinformer.testing import ApiServer
from aioinformer.webhooks import WebhookServer
from tests.support.reviews import WIDGETS, Widget, review, widget
from tests.support.webhooks import configuration, webhook

if TYPE_CHECKING:
    from pathlib import Path

    from aioinformer.webhooks import AdmissionRequest


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="this machine has no ::1")


async def get(url: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status


async def test_probes_listen_on_an_ipv6_address(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aioinformer")
    good = Health({"one": ""})
    server = HealthServer(lambda: good, lambda: good, host="::1", late=lambda: 0.0)
    async with server.serve():
        assert await get(f"http://[::1]:{server.port}/readyz") == 200
        with pytest.raises(aiohttp.ClientConnectorError):
            await get(f"http://127.0.0.1:{server.port}/readyz")
    assert f"probes listen at http://[::1]:{server.port}" in caplog.text


async def test_probes_listen_on_both_families_by_default() -> None:
    good = Health({"one": ""})
    server = HealthServer(lambda: good, lambda: good, late=lambda: 0.0)
    async with server.serve():
        assert await get(f"http://[::1]:{server.port}/readyz") == 200
        assert await get(f"http://127.0.0.1:{server.port}/readyz") == 200


async def test_informer_reads_from_an_ipv6_address_over_tls(tmp_path: Path) -> None:
    async with ApiServer(host="::1", tls=True, tokens={"t-admin": "admin,system:masters"}) as server:
        assert server.url.startswith("https://[::1]:")
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig", user="admin")
        async with await connect(kubeconfig=kubeconfig) as connection, SharedInformerFactory(connection) as factory:
            namespaces = factory.core.v1.namespaces.lister()
            await factory.wait_for_cache_sync()
            assert "default" in [each.metadata.name for each in namespaces.list()]


async def test_webhooks_answer_on_both_families(api_server: ApiServer) -> None:
    api_server.create("namespaces", {"metadata": {"name": "shop"}})
    config = {"url": "https://[::1]:9443/validate/widgets.example.com"}
    hooks = configuration("ValidatingWebhookConfiguration", webhook("a", config))
    api_server.create("validatingwebhookconfigurations", hooks)
    server = WebhookServer("widgets", "shop", port=0, hosts=("127.0.0.1", "::1"))
    manager = Manager("widgets", client=api_server.url, webhooks=server)

    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None: ...

    async with manager, asyncio.timeout(50):
        while not manager.ready():  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)
        (hook,) = api_server.get("validatingwebhookconfigurations", "widgets.shop")["webhooks"]
        trusting = ssl.create_default_context(cadata=base64.b64decode(hook["clientConfig"]["caBundle"]).decode())
        for host in ("127.0.0.1", "[::1]"):  # the certificate is valid for both addresses
            url = f"https://{host}:{manager.admission.port}/validate/widgets.example.com?timeout=10s"
            data = json.dumps(review(widget()))
            async with aiohttp.ClientSession() as session, session.post(url, data=data, ssl=trusting) as answer:
                assert (await answer.json(content_type=None))["response"]["allowed"] is True
