"""The probes of a manager over HTTP."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from aioinformer import Client, HttpTransport
from aioinformer.authorization import Rbac
from aioinformer.controller.health import HealthServer
from aioinformer.controller.snapshots import Health
from aioinformer.errors import UsageError
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.testing import ApiServer
from tests.support.loopback import get
from tests.support.rights import grant_paths

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Probed:
    """A server whose checks a test sets, and a client."""

    def __init__(self) -> None:
        self.alive = self.ready = Health({"one": "", "two": ""})
        self.late = 0.0
        self.server = HealthServer(lambda: self.alive, lambda: self.ready, host="127.0.0.1", late=lambda: self.late)

    async def get(self, path: str) -> tuple[int, str]:
        return await get(self.server.port, path)


@pytest.fixture
async def probed() -> AsyncIterator[Probed]:
    probed = Probed()
    async with probed.server.serve():
        yield probed


@pytest.fixture
async def rbac_server() -> AsyncIterator[ApiServer]:
    """Provide an API server where prometheus may get /metrics, and joe may not."""
    tokens = {"t-admin": "admin,system:masters", "t-prometheus": "prometheus", "t-joe": "joe"}
    async with ApiServer(tokens=tokens, authorization_mode="RBAC") as server:
        grant_paths(server, "prometheus", "/metrics")
        yield server


@pytest.mark.behaviour("C-81")
@pytest.mark.parametrize("path", ["/livez", "/healthz", "/readyz"])
async def test_probe_passes(probed: Probed, path: str) -> None:
    assert await probed.get(path) == (200, "ok\n")
    status, text = await probed.get(f"{path}?verbose")
    assert status == 200
    assert "[+]one ok\n[+]two ok\n" in text
    assert text.endswith("check passed\n")


@pytest.mark.behaviour("C-81")
async def test_probe_that_fails_names_the_reason(probed: Probed, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    probed.ready = Health({"one": "", "two": "it is stale"})
    for _ in range(2):
        assert await probed.get("/readyz") == (503, "[+]one ok\n[-]two failed: it is stale\nreadyz check failed\n")
    assert (await probed.get("/livez"))[0] == 200
    probed.ready = Health()
    assert (await probed.get("/readyz"))[0] == 200
    lines = [record.message for record in caplog.records if record.message.startswith("probe ")]
    assert lines == ["probe /readyz fails: two: it is stale", "probe /readyz passes again"]


@pytest.mark.behaviour("C-129")
async def test_checks_that_do_not_decide_are_verbose(probed: Probed) -> None:
    probed.ready = Health({"webhooks": "", "cache pods": "it is stale"}, frozenset({"webhooks"}))
    assert await probed.get("/readyz") == (200, "ok\n")
    status, text = await probed.get("/readyz?verbose")
    assert status == 503
    assert "[+]webhooks ok\n[-]cache pods failed: it is stale\nreadyz check failed\n" in text
    probed.ready = Health({"webhooks": "no certificate", "cache pods": ""}, frozenset({"webhooks"}))
    assert (await probed.get("/readyz"))[0] == 503


@pytest.mark.behaviour("C-80")
async def test_blocked_event_loop_is_not_alive(probed: Probed) -> None:
    assert "[+]event loop ok" in (await probed.get("/livez?verbose"))[1]
    probed.late = 20.0
    status, text = await probed.get("/livez")
    assert status == 503
    assert "[-]event loop failed: it was blocked for 20 s" in text


async def test_metrics_are_served_if_there_are_some(probed: Probed) -> None:
    assert (await probed.get("/"))[0] == (await probed.get("/metrics"))[0] == 404
    metrics = PrometheusMetrics(CollectorRegistry())
    async with HealthServer(Health, Health, host="127.0.0.1", metrics=metrics).serve() as server:
        status, text = await get(server.port, "/metrics")
    assert (status, "# TYPE workqueue_depth gauge" in text) == (200, True)


async def test_port_in_use_or_out_of_range_is_a_usage_error(probed: Probed) -> None:
    for port in (probed.server.port, 70_000):
        with pytest.raises(UsageError, match=rf"port {port}: .*health_port"):
            await HealthServer(Health, Health, host="127.0.0.1", port=port).serve().__aenter__()


async def test_metrics_are_for_users_with_the_right(rbac_server: ApiServer) -> None:
    """The server asks as filters.WithAuthenticationAndAuthorization of controller-runtime does."""
    metrics = PrometheusMetrics(CollectorRegistry())
    async with aiohttp.ClientSession() as session, HttpTransport(rbac_server.url, token="t-admin") as transport:
        who = Rbac(Client(transport), audiences=["aioinformer"])
        server = HealthServer(Health, Health, host="127.0.0.1", metrics=metrics, metrics_check=who)
        async with server.serve():

            async def read(path: str, token: str = "") -> tuple[int, str]:
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                url = f"http://127.0.0.1:{server.port}{path}"
                async with session.get(url, headers=headers) as response:
                    return response.status, await response.text()

            assert (await read("/livez"))[0] == 200
            assert await read("/metrics") == (
                401,
                "a bearer token for the audience 'aioinformer' is required, in the header Authorization\n",
            )
            status, text = await read("/metrics", "t-joe")
            assert status == 403
            assert 'nonResourceURLs: ["/metrics"], verbs: ["get"]' in text
            assert (await read("/metrics", "t-prometheus"))[0] == 200
