"""Run commands as scripts do: as a process with output lines and an exit code.

Commands are forks of a process that has imported the package: a start takes milliseconds, not a second.
`python -m tests.support.shell SOCKET` listens on a Unix socket until its standard input is closed. A connection is a
command: the request has its arguments, environment and folder, and its three standard files. The response is its pid,
and later its exit status. A forked command has everything a process has: signals, pipes, its own end.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_REQUEST = 1 << 16


class ForkServer:
    """The server as its client sees it.

    Args:
        environment: of the server. Commands have their own, except for the variables that Python reads at its start.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._path = os.path.join(self._folder.name, "socket")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.shell", self._path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(environment),
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def close(self) -> None:
        """End the server."""
        self._process.communicate()
        self._folder.cleanup()

    async def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, stdout: int | None
    ) -> ForkedProcess:
        """Start `aioinformer`.

        Args:
            arguments: of the command.
            environment: all of it.
            folder: the current one of the command.
            stdout: a file descriptor; None for a pipe.
        """
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self._path)
            reading_out, writing_out = os.pipe() if stdout is None else (None, stdout)
            reading_err, writing_err = os.pipe()
            stdin = os.open(os.devnull, os.O_RDONLY)
            request = json.dumps({"arguments": arguments, "environment": dict(environment), "folder": str(folder)})
            try:
                socket.send_fds(connection, [request.encode()], [stdin, writing_out, writing_err])
            finally:
                for each in (stdin, writing_err, *([writing_out] if stdout is None else [])):
                    os.close(each)
            status, writer = await asyncio.open_unix_connection(sock=connection.dup())
        pid = int(await status.readline())
        out = None if reading_out is None else await _open(reading_out)
        return ForkedProcess(pid, out, await _open(reading_err), status, writer)


class ForkedProcess:
    """A command; the part of `asyncio.subprocess.Process` that tests use.

    Attributes:
        pid: its process id.
        stdout: what it writes there, if that is a pipe.
        stderr: what it writes there.
        returncode: its exit code, None while it runs.
    """

    def __init__(
        self, pid: int, stdout: _Pipe | None, stderr: _Pipe, status: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.pid = pid
        self.stdout = None if stdout is None else stdout.reader
        self.stderr = stderr.reader
        self.returncode: int | None = None
        self._pipes = [stderr] if stdout is None else [stdout, stderr]
        self._ended = asyncio.create_task(self._wait(status, writer), name=f"end of {pid}")

    async def wait(self) -> int:
        """Return the exit code once the command has ended."""
        return await asyncio.shield(self._ended)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the command has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, unless the command has ended."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes, read or not."""
        for pipe in self._pipes:
            pipe.transport.close()

    async def _wait(self, status: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        self.returncode = os.waitstatus_to_exitcode(int(await status.readline()))
        writer.close()
        await writer.wait_closed()
        return self.returncode


class _Pipe(NamedTuple):
    reader: asyncio.StreamReader
    transport: asyncio.ReadTransport


async def _open(descriptor: int) -> _Pipe:
    reader = asyncio.StreamReader(limit=2**20)
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(descriptor, "rb", buffering=0))
    return _Pipe(reader, transport)


def _import_package() -> None:
    for name in ("aioinformer", "aioinformer.cli", "aioinformer.testing"):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def _serve(path: str) -> Callable[[], None]:
    """Fork for each connection; return in each fork with the function to call there."""
    children: dict[int, socket.socket] = {}
    waking, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    print("ready", flush=True)
    while True:
        readable, _, _ = select.select([listener, waking, sys.stdin], [], [])
        if sys.stdin in readable:
            _end(children)
        if waking in readable:
            waking.recv(4096)
            _report_ended(children)
        if listener not in readable:
            continue
        connection, _ = listener.accept()
        text, files, _, _ = socket.recv_fds(connection, _REQUEST, 3)
        request = json.loads(text)
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for each in (listener, waking, waker, connection, *children.values()):
                each.close()
            return lambda: _run(files, **request)
        for file in files:
            os.close(file)
        connection.sendall(b"%d\n" % pid)
        children[pid] = connection


def _report_ended(children: dict[int, socket.socket]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with children.pop(pid) as connection, suppress(OSError):
            connection.sendall(b"%d\n" % status)


def _end(children: dict[int, socket.socket]) -> NoReturn:
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    sys.exit()


def _run(files: list[int], arguments: list[str], environment: dict[str, str], folder: str) -> None:
    """Run the command in this process."""
    for standard, file in enumerate(files):
        os.dup2(file, standard)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    from aioinformer.cli import main

    main()


PROJECT = Path(__file__).parents[2]
#: The environment of each command, and of the process that forks them.
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "PYTHONPATH": str(PROJECT),
    "PYTHONWARNINGS": "default::ResourceWarning,default::RuntimeWarning",
}
PATIENCE = 120.0
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


if __name__ == "__main__":
    _import_package()
    gc.freeze()
    _serve(sys.argv[1])()
