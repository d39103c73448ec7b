"""Starts commands as forks of a process that has imported the package: a start takes milliseconds, not a second.

`python -m tests.support.fork_server SOCKET` listens on a Unix socket until its standard input is closed. A connection
is a command: the request has its arguments, environment and folder, and its three standard files. The response is its
pid, and later its exit status. A forked command has everything a process has: signals, pipes, its own end.
"""

from __future__ import annotations

import asyncio
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
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

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
            [sys.executable, "-m", "tests.support.fork_server", self._path],
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


if __name__ == "__main__":
    _import_package()
    gc.freeze()
    _serve(sys.argv[1])()
