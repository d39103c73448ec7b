"""Run commands as scripts do: as a process with output lines and an exit code. Forked processes start fast."""

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

from tests.support.fork_server import ForkServer

if TYPE_CHECKING:
    import signal

    from tests.support.fork_server import ForkedProcess

PROJECT = Path(__file__).parents[2]
#: The environment of each command, and of the process that forks them.
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "PYTHONPATH": str(PROJECT),
    "PYTHONWARNINGS": "default::ResourceWarning,default::RuntimeWarning",
}
PATIENCE = 30.0
"""How long a command may take to produce expected output, in seconds."""


@dataclass(frozen=True)
class Finished:
    """The exit code and the output of a command that has ended."""

    code: int
    lines: list[str]
    stderr: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


class Command:
    """A running command."""

    def __init__(self, process: ForkedProcess) -> None:
        self.process = process
        self._lines: list[str] = []
        self._stderr = bytearray()
        self._said = asyncio.Event()
        self._collector = asyncio.create_task(self._collect(), name="stderr of the command")

    async def line(self) -> str:
        """Read the next line of stdout."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = (await self.process.stdout.readline()).decode()
        assert line, f"stdout has ended; stderr:\n{self._stderr.decode()}"
        assert line.endswith("\n"), line
        self._lines.append(line.rstrip("\n"))
        return self._lines[-1]

    async def event(self) -> dict[str, Any]:
        """Read the next line of stdout as JSON."""
        event: dict[str, Any] = json.loads(await self.line())
        return event

    async def until(self, kind: str) -> dict[str, Any]:
        """Read until an event of this kind, and return it."""
        while (event := await self.event())["event"] != kind:
            pass
        return event

    async def says(self, text: str) -> None:
        """Wait until stderr contains this text."""
        async with asyncio.timeout(PATIENCE):
            while text not in self._stderr.decode(errors="replace"):
                self._said.clear()
                await self._said.wait()

    async def finish(self, number: signal.Signals | None = None) -> Finished:
        """Send a signal, if one is given; wait for the end and return the results."""
        if number is not None:
            self.process.send_signal(number)
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            rest = (await self.process.stdout.read()).decode()
        return Finished(await self.ended(), [*self._lines, *rest.splitlines()], self._stderr.decode())

    async def ended(self) -> int:
        """Wait for the end without reading stdout, and return the exit code."""
        async with asyncio.timeout(PATIENCE):
            code = await self.process.wait()
            await self._collector
        said = self._stderr.decode(errors="replace")
        assert "Traceback" not in said, said
        assert "Warning:" not in said, said
        return code

    async def kill(self) -> None:
        """End the command if it runs, and release its resources."""
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
    """Starts commands, and ends those that are left running."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._started = AsyncExitStack()

    async def start(self, *arguments: str | Path, stdout: int | None = None, **more: str) -> Command:
        """Start `aioinformer` with these arguments.

        Args:
            arguments: the arguments of the command.
            stdout: a file descriptor to use instead of a pipe.
            more: additional environment variables.
        """
        environment = {**ENVIRONMENT, "HOME": str(self.home), **more}
        process = await fork_server().start([*map(str, arguments)], environment, self.home, stdout)
        command = Command(process)
        self._started.push_async_callback(command.kill)
        return command

    async def run(self, *arguments: str | Path, **more: str) -> Finished:
        """Run `aioinformer` with these arguments to its end."""
        return await (await self.start(*arguments, stdout=None, **more)).finish()

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
