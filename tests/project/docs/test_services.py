"""Run the services of "In a web service" with uvicorn, and the tests of "Testing your code" in a new project."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
import pytest

from tests.project.docs.blocks import ALL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aioinformer.testing import ApiServer

POD = {"metadata": {"name": "web-0"}, "spec": {"nodeName": "node-1", "containers": [{"name": "a", "image": "a"}]}}


def code_with(page: str, text: str, language: str = "python") -> str:
    """Return the first block of a page that has a text."""
    found = (each.code for each in ALL if each.page == page and each.language == language and text in each.code)
    return next(found)


SERVICE = code_with("docs/embedding.md", "FastAPI(lifespan=informers.lifespan)")
OWN = """

from fastapi import Request


@app.get("/who")
def who_answers(pods: Pods) -> dict:
    import os

    return {"pid": os.getpid(), "pods": [pod.metadata.name for pod in pods.list()]}


@app.get("/names")
def names(pods: Pods, labels: str = "") -> list[str]:
    return [pod.metadata.name for pod in pods.list(labels)]
"""


@asynccontextmanager
async def serving(folder: Path, server: ApiServer, code: str, *options: str) -> AsyncIterator[tuple[str, int]]:
    """Run a program with uvicorn; yield its address and the id of the process. It must end by itself after SIGTERM."""
    (folder / "service.py").write_text(code)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "uvicorn", "service:app", "--port", str(port), "--log-level", "warning", *options),
        cwd=folder,
        env={**os.environ, "KUBECONFIG": str(server.kubeconfig(folder / "kubeconfig"))},
    )
    try:
        yield f"http://127.0.0.1:{port}", process.pid
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        assert await process.wait() in (0, -signal.SIGTERM)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def answer(session: aiohttp.ClientSession, url: str, status: int = 200) -> str:
    """Return the text of an answer with a status; try again until there is one."""
    while True:
        try:
            async with session.get(url) as response:
                text = await response.text()
                if response.status == status:
                    return text
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(0.05)


def test_service_with_an_authorised_stream_is_short() -> None:
    lines = [line for line in SERVICE.splitlines() if line.strip()]
    assert len(lines) <= 25


async def test_each_worker_has_a_cache(api_server: ApiServer, tmp_path: Path) -> None:
    api_server.create("pods", POD)
    async with asyncio.timeout(200), serving(tmp_path, api_server, SERVICE + OWN, "--workers", "2") as (url, parent):
        ready: set[int] = set()
        while len(ready) < 2:
            async with aiohttp.ClientSession() as session:  # another connection may reach another worker
                found = json.loads(await answer(session, f"{url}/who"))
                assert found["pods"] == ["web-0"]
                ready.add(found["pid"])
        assert parent not in ready
        assert api_server.open_watches == 2


async def test_errors_are_those_of_the_page(api_server: ApiServer, tmp_path: Path) -> None:
    api_server.create("pods", POD)
    async with (
        asyncio.timeout(200),
        serving(tmp_path, api_server, SERVICE + OWN) as (url, _),
        aiohttp.ClientSession() as session,
    ):
        await answer(session, f"{url}/readyz")
        assert json.loads(await answer(session, f"{url}/names?labels=app!=db")) == ["web-0"]
        refused = await answer(session, f"{url}/names?labels=app%20in%20(", 400)
        assert "app in (" in json.loads(refused)["detail"]
        for path in ("live", "pods/default/web-0"):
            refused = await answer(session, f"{url}/{path}", 401)
            assert "audience 'dashboard'" in json.loads(refused)["detail"]


@pytest.mark.parametrize("options", [(), ("--workers", "2")])
async def test_streams_end_at_shutdown(api_server: ApiServer, tmp_path: Path, options: tuple[str, ...]) -> None:
    api_server.create("pods", POD)
    public = SERVICE.replace("import Rbac", "import EVERYBODY").replace('Rbac(audiences=["dashboard"])', "EVERYBODY")
    async with (
        asyncio.timeout(200),
        aiohttp.ClientSession() as session,
        serving(tmp_path, api_server, public, *options) as (url, pid),
    ):
        await answer(session, f"{url}/readyz")
        async with session.get(f"{url}/live") as response:
            text = await response.content.readuntil(b"event: synced\n")
            assert b'"default/web-0","object":{"node":"node-1","phase":"Pending"}' in text
            api_server.create("pods", {**POD, "metadata": {"name": "web-1"}})
            assert b'"default/web-1"' in await response.content.readuntil(b'"node-1","phase":"Pending"}}\n')
            os.kill(pid, signal.SIGTERM)
            assert b"event" not in await response.content.read(), "the stream ends as a whole response does"


PLUGINS = {"asyncio_mode": (), "anyio_mode": ("-p", "no:asyncio")}


@pytest.mark.parametrize("setting", PLUGINS)
async def test_page_on_testing_works_in_a_new_project(setting: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(code_with("docs/testing.md", setting, "toml"))
    names = ("test_missed_delete", "test_settings_become", "test_copies")
    for name in names:
        (tmp_path / f"{name}.py").write_text(code_with("docs/testing.md", f"def {name}"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PLUGINS[setting]),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    assert re.search(rf"^{len(names)} passed", printed.decode(), re.MULTILINE), printed.decode()
