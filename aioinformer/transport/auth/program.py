"""A program run to its end, with bounded time and outputs.

Rules that are easy to break:

* The program has ended when its process has, not when its outputs have: a child of it may keep them open for ever. What
  the program itself wrote is in the pipes by then, and is read.
* A process that has not ended by itself when the wait ends is killed with its children, and reaped.
* Nothing of command, environment and outputs is in a local variable of a frame that raises.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_AFTERWARDS: Final = 0.5
"""Seconds in which outputs that a child keeps open are still read when the program has ended."""

_TAIL: Final = 64 * 1024
"""Bytes of standard error that are kept: its end."""


async def run_program(
    command: Callable[[], Sequence[str]], environment: Callable[[], dict[str, str]], most: int
) -> Ended:
    """Run a program without input and without a terminal, in a session of its own.

    Args:
        command: gives the program and its arguments; a function, for they may be secret, and so may be variables.
        environment: gives all its variables.
        most: bytes that it may write to standard output.

    Raises:
        OSError: it cannot be run.
        TooMuchOutput: it wrote more than `most`.
    """
    outputs = _Outputs(most)
    process, _ = await asyncio.get_running_loop().subprocess_exec(
        lambda: outputs, *command(), env=environment(), stdin=subprocess.DEVNULL, start_new_session=True
    )
    try:
        await outputs.finished
        await asyncio.wait({outputs.drained}, timeout=_AFTERWARDS)
    finally:
        _kill(process)
        process.close()
        with anyio.CancelScope(shield=True):
            await outputs.closed
    if outputs.is_full:
        raise TooMuchOutput
    status = process.get_returncode()
    return Ended(-signal.SIGKILL if status is None else status, bytes(outputs.output), bytes(outputs.complaint))


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Attributes:
        status: its exit status, negative for the number of a signal.
        output: what it wrote to standard output.
        complaint: the end of what it wrote to standard error.
    """

    status: int
    output: bytes = field(repr=False)
    complaint: bytes = field(repr=False)


class TooMuchOutput(Exception):
    """The program wrote more to its standard output than it may."""


class _Outputs(asyncio.SubprocessProtocol):
    """Collects outputs.

    Args:
        most: bytes of standard output at which collecting ends.
    """

    def __init__(self, most: int) -> None:
        loop = asyncio.get_running_loop()
        self.output, self.complaint = bytearray(), bytearray()
        self.finished: asyncio.Future[None] = loop.create_future()  # the process has ended, or wrote too much
        self.drained: asyncio.Future[None] = loop.create_future()  # the outputs have ended, too
        self.closed: asyncio.Future[None] = loop.create_future()
        self.is_full = False
        self._most = most
        self._open = 2

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.complaint += data
            del self.complaint[:-_TAIL]
        elif not self.is_full:
            self.output += data
            if len(self.output) > self._most:
                self.is_full = True
                _set(self.finished)
                _set(self.drained)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open -= 1
        if not self._open:
            _set(self.drained)

    def process_exited(self) -> None:
        _set(self.finished)

    def connection_lost(self, exc: Exception | None) -> None:
        _set(self.finished)
        _set(self.drained)
        _set(self.closed)


def _kill(process: asyncio.SubprocessTransport) -> None:
    if process.get_returncode() is not None:
        return
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.get_pid(), signal.SIGKILL)  # its children, too
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass  # it has just ended


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
