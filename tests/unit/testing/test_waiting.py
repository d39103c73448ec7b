"""`ApiServer.wait_for`: waits for conditions of objects."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.errors import UsageError
from aioinformer.models import core_v1

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer

POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "web"}]}}


def is_running(pod: Any) -> bool:
    return bool(pod["status"]["phase"] == "Running")


async def begun(server: ApiServer, *arguments: Any, **options: Any) -> asyncio.Task[Any]:
    waiting = asyncio.create_task(server.wait_for(*arguments, **options))
    await asyncio.sleep(0)
    assert not waiting.done()
    return waiting


async def test_wait_ends_with_the_change(api_server: ApiServer) -> None:
    waiting = await begun(api_server, "pods", "default/web", is_running, timeout=None)
    api_server.create("pods", POD)
    await asyncio.sleep(0)
    api_server.patch("pods", "web", {"status": {"phase": "Running"}}, subresource="status")
    assert (await waiting)["status"]["phase"] == "Running"
    assert (await api_server.wait_for(core_v1.PODS, "web", is_running, timeout=0))["metadata"]["name"] == "web"


async def test_wait_for_existence_and_for_the_end(api_server: ApiServer) -> None:
    waiting = await begun(api_server, "namespaces", "shop")
    api_server.create("namespaces", {"metadata": {"name": "shop"}})
    assert (await waiting)["metadata"]["name"] == "shop"
    api_server.create("configmaps", {"metadata": {"name": "a"}})
    waiting = await begun(api_server, "configmaps", "a", lambda obj: obj is None)
    api_server.delete("configmaps", "a")
    assert await waiting is None


async def test_timeout_names_the_last_state(api_server: ApiServer) -> None:
    with pytest.raises(TimeoutError, match=r"^after 0\.05 s, pods default/web does not exist$"):
        await api_server.wait_for("pods", "default/web", is_running, timeout=0.05)
    api_server.create("pods", POD)
    with pytest.raises(TimeoutError, match=r'does not satisfy the predicate; it is \{.*"phase":"Pending"'):
        await api_server.wait_for("pods", "default/web", is_running, timeout=0)
    with pytest.raises(TimeoutError, match=r"which raised KeyError\('colour'\)"):
        await api_server.wait_for("pods", "default/web", lambda pod: pod["colour"], timeout=0)


async def test_timeout_hides_the_values_of_a_secret(api_server: ApiServer) -> None:
    api_server.create("secrets", {"metadata": {"name": "a"}, "stringData": {"password": "confidential"}})
    with pytest.raises(TimeoutError, match="secrets a does not") as caught:
        await api_server.wait_for("secrets", "a", lambda secret: False, timeout=0)
    assert "password" not in str(caught.value)


async def test_coroutine_function_is_refused(api_server: ApiServer) -> None:
    async def predicate(obj: Any) -> bool:
        return bool(obj)

    with pytest.raises(UsageError, match="coroutine function"):
        await api_server.wait_for("pods", "web", predicate)


async def test_wait_survives_a_restore(api_server: ApiServer) -> None:
    api_server.create("configmaps", {"metadata": {"name": "a"}})
    backup = api_server.backup()
    api_server.delete("configmaps", "a")
    waiting = await begun(api_server, "configmaps", "a")
    api_server.restore(backup)
    assert (await waiting)["metadata"]["name"] == "a"
