"""Replicas of a manager as processes, and the service before them."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

import aiohttp

from tests.support.loopback import free_port

_ROOT = Path(__file__).parents[3]
#: Seconds until new connections do not reach a pod that ends any more.
LAG = 2.0


class Replica:
    """A process, and its readiness as kubelet sees it.

    Args:
        module: the program.
        arguments: further ones, after the namespace and the ports of webhooks and health.
        package: the folder with the version of the package that it imports; None for this one.
        log: the file for its log; None for none.
    """

    def __init__(
        self,
        namespace: str,
        kubeconfig: str,
        module: str,
        *arguments: str,
        package: Path | None = None,
        log: Path | None = None,
    ) -> None:
        self.port = free_port()
        self.health_port = free_port()
        self._arguments = ("-m", module, namespace, str(self.port), str(self.health_port), *arguments)
        self._folder = package or _ROOT
        self._environment = {**os.environ, "KUBECONFIG": kubeconfig, "PYTHONPATH": str(_ROOT)}
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with self._opened_log() as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, *self._arguments, cwd=self._folder, env=self._environment, stderr=log
            )

    def _opened_log(self) -> BinaryIO:
        return Path(os.devnull if self._log is None else self._log).open("wb")

    async def until_ready(self) -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                if self._process is not None and self._process.returncode is not None:
                    raise RuntimeError(f"the replica ended with {self._process.returncode}; see {self._log}")
                with suppress(aiohttp.ClientError):
                    async with session.get(f"http://127.0.0.1:{self.health_port}/readyz") as answer:
                        if answer.status == 200:
                            return
                await asyncio.sleep(0.1)

    async def end(self) -> int:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        return await self._process.wait()

    async def kill(self) -> None:
        """End the process at once, if it still runs."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


class Service:
    """Connects clients of a port with one of the replicas, as kube-proxy does: open connections stay as they are."""

    def __init__(self) -> None:
        self.endpoints: list[int] = []
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            there, back = await asyncio.open_connection("127.0.0.1", random.choice(self.endpoints))
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_copy(reader, back))
                tasks.create_task(_copy(there, writer))
        except (OSError, asyncio.CancelledError):
            writer.close()
        finally:
            self._tasks.discard(task)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
