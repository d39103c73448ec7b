"""Runs the command as scripts do: a process, its lines, its exit code. Processes are forked, which starts them fast."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cli.fork_server import ForkServer

if TYPE_CHECKING:
    import signal

    from tests.cli.fork_server import ForkedProcess

PROJECT = Path(__file__).parents[2]
#: Of every command, and of the process that forks them.
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "PYTHONPATH": str(PROJECT),
    "PYTHONWARNINGS": "default::ResourceWarning,default::RuntimeWarning",
}
PATIENCE = 30.0
"""Seconds after which a command that should have said something is taken for one that hangs."""


@dataclass(frozen=True)
class Finished:
    """What a command left behind."""

    code: int
    lines: list[str]
    stderr: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


class Command:
    """A command that runs."""

    def __init__(self, process: ForkedProcess) -> None:
        self.process = process
        self._lines: list[str] = []
        self._stderr = bytearray()
        self._said = asyncio.Event()
        self._collector = asyncio.create_task(self._collect(), name="stderr of the command")

    async def line(self) -> str:
        """The next line of stdout."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = (await self.process.stdout.readline()).decode()
        assert line, f"stdout has ended; stderr:\n{self._stderr.decode()}"
        assert line.endswith("\n"), line
        self._lines.append(line.rstrip("\n"))
        return self._lines[-1]

    async def event(self) -> dict[str, Any]:
        """The next line of stdout, which is JSON."""
        event: dict[str, Any] = json.loads(await self.line())
        return event

    async def until(self, kind: str) -> dict[str, Any]:
        """Reads until an event of this kind, and returns that."""
        while (event := await self.event())["event"] != kind:
            pass
        return event

    async def says(self, text: str) -> None:
        """Returns once stderr has this text."""
        async with asyncio.timeout(PATIENCE):
            while text not in self._stderr.decode(errors="replace"):
                self._said.clear()
                await self._said.wait()

    async def finish(self, number: signal.Signals | None = None) -> Finished:
        """Sends a signal, if one is given, and returns what the command left behind when it has ended."""
        if number is not None:
            self.process.send_signal(number)
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            rest = (await self.process.stdout.read()).decode()
        return Finished(await self.ended(), [*self._lines, *rest.splitlines()], self._stderr.decode())

    async def ended(self) -> int:
        """The exit code, when the command has ended; without reading stdout."""
        async with asyncio.timeout(PATIENCE):
            code = await self.process.wait()
            await self._collector
        said = self._stderr.decode(errors="replace")
        assert "Traceback" not in said, said
        assert "Warning:" not in said, said
        return code

    async def kill(self) -> None:
        """Makes sure that nothing of it is left."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._collector
        self.process.close()

    async def _collect(self) -> None:
        while chunk := await self.process.stderr.read(4096):
            self._stderr += chunk
            self._said.set()


class Shell:
    """Starts commands, and ends those that a test has left."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._started = AsyncExitStack()

    async def start(self, *arguments: str | Path, stdout: int | None = None, **more: str) -> Command:
        """Start `aioinformer` with these arguments.

        Args:
            arguments: of the command.
            stdout: a file descriptor instead of a pipe.
            more: variables to add to the environment.
        """
        environment = {**ENVIRONMENT, "HOME": str(self.home), **more}
        process = await fork_server().start([*map(str, arguments)], environment, self.home, stdout)
        command = Command(process)
        self._started.push_async_callback(command.kill)
        return command

    async def run(self, *arguments: str | Path, **more: str) -> Finished:
        """Runs `aioinformer` with these arguments to its end."""
        return await (await self.start(*arguments, **more)).finish()

    async def close(self) -> None:
        await self._started.aclose()


@cache
def fork_server() -> ForkServer:
    """Return the fork server of this process, which is started at the first call."""
    server = ForkServer(ENVIRONMENT)
    atexit.register(server.close)
    return server


def config_map(name: str, namespace: str = "default", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "labels": {"app": name}}, "data": data}
