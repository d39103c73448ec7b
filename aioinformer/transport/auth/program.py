"""Run a program to its end, with limited output.

Rules that are easy to break:

* The program has ended when its process has ended, even if its outputs are still open: a child process may keep them
  open for ever. All that the program itself wrote is in the pipes by then, and is read.
* If the wait is cancelled, the process and its children are killed, and the process is reaped. A start is not
  cancelled: asyncio would kill the process without its children, and wait for ever for the outputs that they keep open.
* No local variable of a frame that raises holds the command, the environment or the outputs.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from aioinformer.concurrency import create_task, shielded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_DRAIN_SECONDS: Final = 0.5
"""How long outputs that a child process keeps open are read after the end of the program."""

_KILLED: Final = -9
"""The status of a process that was killed, and not reaped; Windows has no name for this signal."""

_TAIL: Final = 64 * 1024
"""How many bytes at the end of standard error are kept."""


async def run_program(
    command: Callable[[], Sequence[str]], environment: Callable[[], dict[str, str]], most: int
) -> Ended:
    """Run a program without input and without a terminal, in a session of its own.

    Command and environment are functions because their values may be secret.

    Args:
        most: the most bytes that it may write to standard output.

    Raises:
        OSError: the program cannot be run.
        TooMuchOutput: it wrote more than `most` bytes.
    """
    outputs = _Outputs(most)
    starting = create_task(
        asyncio.get_running_loop().subprocess_exec(
            lambda: outputs, *command(), env=environment(), stdin=subprocess.DEVNULL, start_new_session=True
        ),
        name="start of a program",
    )
    try:
        await asyncio.wait({starting})
        process, _ = starting.result()
        await outputs.finished
        await asyncio.wait({outputs.drained}, timeout=_DRAIN_SECONDS)
    finally:
        with shielded():
            await asyncio.wait({starting})
            if starting.exception() is None:
                process, _ = starting.result()
                _kill(process)
                process.close()
                await outputs.closed
    if outputs.is_full:
        raise TooMuchOutput
    status = process.get_returncode()
    return Ended(_KILLED if status is None else status, bytes(outputs.output), bytes(outputs.error_output))


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a program.

    Attributes:
        status: its exit status, negative for the number of a signal.
        output: its standard output.
        error_output: the end of its standard error.
    """

    status: int
    output: bytes = field(repr=False)
    error_output: bytes = field(repr=False)


class TooMuchOutput(Exception):
    """The program wrote too much to its standard output."""


class _Outputs(asyncio.SubprocessProtocol):
    """Collects the outputs of a program.

    Args:
        most: the most bytes of standard output; beyond that, the program counts as finished.
    """

    def __init__(self, most: int) -> None:
        loop = asyncio.get_running_loop()
        self.output = bytearray()
        self.error_output = bytearray()
        self.finished: asyncio.Future[None] = loop.create_future()  # the process has ended, or wrote too much
        self.drained: asyncio.Future[None] = loop.create_future()  # the outputs have ended, too
        self.closed: asyncio.Future[None] = loop.create_future()
        self.is_full = False
        self._most = most
        self._open = 2

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.error_output += data
            del self.error_output[:-_TAIL]
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
            os.killpg(process.get_pid(), signal.SIGKILL)  # with its children
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass  # the process has just ended


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
