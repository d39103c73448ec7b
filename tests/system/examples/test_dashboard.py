"""The dashboard in a real browser: a list, changes, a filter, a restart of the service, a right that is taken away."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from aioinformer.testing import ApiServer
from tests.support.chromium import CHROMIUM, Tab, chromium
from tests.support.loopback import free_port
from tests.support.rights import grant, revoke

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's package chromium")

PROJECT = Path(__file__).parents[3]
FOLDER = PROJECT / "examples" / "dashboard"
TOKENS = {"t-admin": "admin,system:masters", "t-jane": "jane", "t-joe": "joe"}
KEYS = "[...document.querySelectorAll('li')].map((each) => each.dataset.key)"
STATUS = "document.getElementById('status').textContent"
LIVE = "document.getElementById('status').dataset.state === 'live'"


def pod(name: str, node: str, phase: str = "Running", namespace: str = "shop") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "example.com/web"}]},
        "status": {"phase": phase},
    }


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(tokens=TOKENS, authorization_mode="RBAC") as server:
        for namespace in ("shop", "bank"):
            server.create("namespaces", {"metadata": {"name": namespace}})
        grant(server, "jane", "pods")
        grant(server, "joe", "pods", namespace="shop")
        server.create("pods", pod("web-0", "node-1"))
        server.create("pods", pod("web-1", "node-2"))
        server.create("pods", pod("vault-0", "node-1", namespace="bank"))
        yield server


@asynccontextmanager
async def service(server: ApiServer, port: int, folder: Path) -> AsyncIterator[str]:
    """Run the dashboard as its documentation says."""
    kubeconfig = server.kubeconfig(folder / "kubeconfig")
    command = (sys.executable, "-m", "uvicorn", "--app-dir", str(FOLDER), "dashboard:app", "--port", str(port))
    log = folder / "service.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=PROJECT, env={**os.environ, "KUBECONFIG": str(kubeconfig)}, stdout=output, stderr=output
        )
    url = f"http://127.0.0.1:{port}/"
    try:
        async with asyncio.timeout(200), aiohttp.ClientSession() as session:
            while True:
                try:
                    async with session.get(f"{url}readyz") as response:
                        if response.status == 200:
                            break
                except aiohttp.ClientError:
                    assert process.returncode is None, log.read_text()
                await asyncio.sleep(0.1)
        yield url
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(200):
            await process.wait()
    assert "Traceback" not in log.read_text(), log.read_text()


async def sign_in(tab: Tab, url: str, token: str, namespaces: str = "") -> None:
    await tab.open(url)
    await tab.until("document.getElementById('login').open")
    await tab.value(
        f"document.getElementById('namespaces').value = {namespaces!r};"
        f"document.getElementById('token').value = {token!r};"
        "document.querySelector('#login button').click()"
    )


def shows(*keys: str) -> str:
    return f"JSON.stringify({KEYS}) === JSON.stringify({list(keys)!r})"


async def test_dashboard_is_live_for_those_who_may_see_it(server: ApiServer, tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.mkdir()
    port = free_port()
    async with chromium(profile) as tab:
        async with service(server, port, tmp_path) as url:
            await sign_in(tab, url, "t-jane")
            await tab.until(shows("bank/vault-0", "shop/web-0", "shop/web-1"))
            await tab.until(LIVE)
            # Changes.
            server.create("pods", pod("web-2", "node-2", "Pending"))
            await tab.until(shows("bank/vault-0", "shop/web-0", "shop/web-1", "shop/web-2"))
            server.patch("pods", "web-2", {"status": {"phase": "Running"}}, "shop", subresource="status")
            await tab.until("document.querySelector('[data-key=\"shop/web-2\"]').dataset.phase === 'Running'")
            server.delete("pods", "web-0", "shop")
            await tab.until(shows("bank/vault-0", "shop/web-1", "shop/web-2"))
            # A filter, and a detail view.
            await tab.value(
                "document.getElementById('filter').value = 'shop node-2';"
                "document.getElementById('filter').dispatchEvent(new Event('input'))"
            )
            await tab.until(shows("shop/web-1", "shop/web-2"))
            await tab.until("document.getElementById('count').textContent === '2 of 3 pods'")
            await tab.value("document.querySelector('[data-key=\"shop/web-1\"] button').click()")
            await tab.until("document.getElementById('object').textContent.includes('example.com/web')")
            await tab.value("document.getElementById('detail').close()")
            await tab.value(
                "document.getElementById('filter').value = '';"
                "document.getElementById('filter').dispatchEvent(new Event('input'))"
            )
        # While the service is away, the page keeps its state, and the cluster goes on.
        await tab.until("document.getElementById('status').dataset.state === 'connecting'")
        assert await tab.value(shows("bank/vault-0", "shop/web-1", "shop/web-2"))
        server.delete("pods", "web-1", "shop")
        server.create("pods", pod("web-3", "node-3"))
        async with service(server, port, tmp_path):
            await tab.until(shows("bank/vault-0", "shop/web-2", "shop/web-3"))
            await tab.until(LIVE)
            # A right is taken away: the pods go within ttl.
            revoke(server, "jane")
            await tab.until(shows())
            await tab.value("start()")
            await tab.until("document.getElementById('status').dataset.state === 'refused'")
            assert "may not list pods in all namespaces" in await tab.value(STATUS)
        assert [each for each in tab.complaints if "Failed to load resource" not in each] == []


async def test_user_of_one_namespace_names_it(server: ApiServer, tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.mkdir()
    async with chromium(profile) as tab, service(server, free_port(), tmp_path) as url:
        await sign_in(tab, url, "t-joe", "shop")
        await tab.until(shows("shop/web-0", "shop/web-1"))
        await tab.value("detail('bank/vault-0')")
        await tab.until("document.getElementById('object').textContent.includes('may not get pods')")
        await tab.value("document.getElementById('detail').close()")
        await tab.value(
            "document.getElementById('namespaces').value = 'shop, bank';"
            "document.getElementById('namespaces').dispatchEvent(new Event('change'))"
        )
        await tab.until(f"{STATUS}.includes(\"in namespace 'bank'\")")
        assert await tab.value(shows())


def streams(folder: Path) -> list[str]:
    """Return the streams that the service has opened, as its log has them."""
    return [line for line in (folder / "service.log").read_text().splitlines() if "GET /live?namespace=shop" in line]


async def test_tabs_share_one_stream(server: ApiServer, tmp_path: Path) -> None:
    """When the tab that reads it has left, another one goes on with the cursor."""
    profile = tmp_path / "profile"
    profile.mkdir()
    other_keys = "[...other.document.querySelectorAll('li')].map((each) => each.dataset.key).join()"
    async with chromium(profile) as tab, service(server, free_port(), tmp_path) as url:
        await sign_in(tab, url, "t-joe", "shop")
        await tab.until(shows("shop/web-0", "shop/web-1"))
        opening = "globalThis.other = window.open(location.href); true"
        await tab.call("Runtime.evaluate", expression=opening, userGesture=True)
        await tab.until("other.document.getElementById('namespaces') && other.document.readyState === 'complete'")
        await tab.value("other.document.getElementById('namespaces').value = 'shop'; other.start(); true")
        await tab.until(f"{other_keys} === 'shop/web-0,shop/web-1'")
        server.create("pods", pod("web-2", "node-2"))
        await tab.until(f"{other_keys} === 'shop/web-0,shop/web-1,shop/web-2'")
        await tab.until("pods.has('shop/web-2')")  # it is behind the other one, so it is not drawn
        assert len(streams(tmp_path)) == 1
        await tab.value("leave()")
        server.delete("pods", "web-0", "shop")
        await tab.until(f"{other_keys} === 'shop/web-1,shop/web-2'")
        _, taken_over = streams(tmp_path)
        assert "after=" in taken_over
