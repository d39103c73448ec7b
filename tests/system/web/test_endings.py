"""Streams end when their server does: real servers in processes of their own, which get SIGTERM."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest

from tests.support.loopback import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.testing import ApiServer

PROJECT = Path(__file__).parents[3]
STREAMS = 500
APP = "tests.system.web.live_service:app"
#: The command of each server; PORT is replaced.
SERVERS = {
    "uvicorn": ["uvicorn", APP, "--port", "PORT"],
    "uvicorn on asyncio": ["uvicorn", APP, "--port", "PORT", "--loop", "asyncio"],
    "gunicorn": ["gunicorn", APP, "-k", "uvicorn_worker.UvicornWorker", "-b", "127.0.0.1:PORT"],
    "hypercorn": ["hypercorn", APP, "-b", "127.0.0.1:PORT"],
    "hypercorn on uvloop": ["hypercorn", APP, "-k", "uvloop", "-b", "127.0.0.1:PORT"],
    "aiohttp": ["aiohttp.web", "-H", "127.0.0.1", "-P", "PORT", "tests.system.web.live_service:aiohttp_main"],
    "gunicorn with aiohttp": [
        "gunicorn",
        "tests.system.web.live_service:gunicorn_aiohttp_app",
        "-k",
        "aiohttp.GunicornWebWorker",
        "-b",
        "127.0.0.1:PORT",
    ],
}


@asynccontextmanager
async def serving(name: str, api: str, log: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    port = free_port()
    command = [each.replace("PORT", str(port)) for each in SERVERS[name]]
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            *command,
            cwd=PROJECT,
            env={**os.environ, "API": api, "HOME": str(log.parent)},
            stdout=output,
            stderr=output,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        async with asyncio.timeout(200), aiohttp.ClientSession() as session:
            while True:
                try:
                    async with session.get(f"{url}/readyz") as response:
                        if response.status == 200:
                            break
                except aiohttp.ClientError:
                    assert process.returncode is None, log.read_text()  # noqa: ASYNC240
                await asyncio.sleep(0.1)
        yield process, url
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
def many_files() -> None:
    """Let this process and its children have a file for each stream."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4 * STREAMS:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4 * STREAMS, hard), hard))


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("name", list(SERVERS))
async def test_streams_end_with_their_server(name: str, api_server: ApiServer, tmp_path: Path) -> None:
    """There are 500, and neither the program nor this package handles signals."""
    pod = {"metadata": {"name": "web-0"}, "spec": {"containers": [{"name": "main", "image": "example.com/web"}]}}
    api_server.create("pods", pod)
    log = tmp_path / "log"
    ended: list[float] = []
    synced = asyncio.Semaphore(0)
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        serving(name, api_server.url, log) as (process, url),
        aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
    ):

        async def read() -> None:
            async with session.get(f"{url}/live") as response:
                assert response.status == 200, await response.text()
                text = b""
                async for line in response.content:
                    text += line
                    if line == b"event: synced\n":
                        assert b"default/web-0" in text
                        synced.release()
            ended.append(time.monotonic())

        async with asyncio.timeout(200), asyncio.TaskGroup() as tasks:
            for _ in range(STREAMS):
                tasks.create_task(read())
            for _ in range(STREAMS):
                await synced.acquire()
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
        assert max(ended) - began < 20
        async with asyncio.timeout(200):
            await process.wait()
    text = log.read_text()
    assert "Traceback" not in text, text
    assert "without completing response" not in text, text
