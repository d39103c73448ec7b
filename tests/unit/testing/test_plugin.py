"""The fixtures of the pytest plugin, and `ApiServer.wait_for`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from kubernetes_asyncio.client import ApiClient, CoreV1Api

from aioinformer.errors import UsageError
from aioinformer.models import core_v1
from aioinformer.testing import FaultController

if TYPE_CHECKING:
    from pathlib import Path

    from aioinformer import SharedInformerFactory
    from aioinformer.testing import ApiServer

POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
USERS_TEST = """
import pytest
from kubernetes_asyncio.client import CoreV1Api

{mark}
async def test_a_cache_follows(api_server, api_client, api_faults, informer_factory):
    lister = informer_factory.core.v1.configmaps.lister()
    await informer_factory.wait_for_cache_sync()
    await api_faults.start("server_error", times=1)
    api_server.create("configmaps", {{"metadata": {{"name": "a"}}}})
    informer = informer_factory.core.v1.configmaps.informer()
    await informer.wait_for("default/a")
    assert lister.namespaced("default").get("a").metadata.name == "a"
"""


async def test_api_client_is_a_kubernetes_asyncio_client(api_server: ApiServer, api_client: ApiClient) -> None:
    api_server.create("configmaps", {"metadata": {"name": "a"}})
    found = await CoreV1Api(api_client).read_namespaced_config_map("a", "default")
    assert found.metadata.name == "a"


async def test_informer_factory_is_entered(api_server: ApiServer, informer_factory: SharedInformerFactory) -> None:
    api_server.create("configmaps", {"metadata": {"name": "a"}})
    lister = informer_factory.core.v1.configmaps.lister()
    await informer_factory.wait_for_cache_sync()
    assert [each.metadata.name for each in lister.namespaced("default").list()] == ["a"]


async def test_faults_start_and_end_by_name(api_server: ApiServer, api_faults: FaultController) -> None:
    async def status() -> int:
        async with session.get(f"{api_server.url}/api/v1/pods") as response:
            return response.status

    async with aiohttp.ClientSession() as session:
        await api_faults.start("forbidden")
        assert [fault.name for fault in api_faults.active] == ["forbidden"]
        assert await status() == 403
        assert [fault.name for fault in await api_faults.end("forbidden")] == ["forbidden"]
        assert await status() == 200
        async with api_faults("forbidden"):
            assert await status() == 403
        assert await status() == 200


async def test_controller_ends_its_faults(api_server: ApiServer) -> None:
    async with FaultController(api_server) as faults:
        fault = await faults.start("throttle")
    assert not fault.active


@pytest.mark.parametrize(
    ("mark", "flags"),
    [
        pytest.param("@pytest.mark.anyio", ["-p", "anyio.pytest_plugin"], id="anyio"),
        pytest.param(
            "@pytest.mark.asyncio",
            ["-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=function"],
            id="asyncio",
        ),
    ],
)
def test_fixtures_work_with_pytest_asyncio_and_anyio(tmp_path: Path, mark: str, flags: list[str]) -> None:
    (tmp_path / "test_mine.py").write_text(USERS_TEST.format(mark=mark))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")  # otherwise pytest looks for one in the folders above
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", *flags, "-p", "aioinformer.harness.plugin"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    finished = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "1 passed" in finished.stdout


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
