"""Run one program on an event loop, connected to stdout, stderr and signals."""

from __future__ import annotations

import asyncio
import errno
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from aioinformer.cli.output.line_writer import LineWriter
from aioinformer.cli.output.stderr_log import log_to_stderr
from aioinformer.cli.shutdown import GRACE, shutdown
from aioinformer.errors import UsageError, collapsed
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

logger = get_logger("aioinformer.cli")

_FLUSH_SECONDS = GRACE - 0.5
"""How long writing to stdout may make no progress at the end before the remaining lines are dropped."""


class Program(ABC):
    """A program with one exit code; the first reason to end decides. Make it while the event loop runs."""

    def __init__(self) -> None:
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def end(self, code: int) -> None:
        """End the program with this exit code, unless it is ending already."""
        if not self._ended.done():
            self._ended.set_result(code)

    def interrupt(self) -> None:
        """End the program after a signal."""
        self.end(0)

    def time_out(self, code: int) -> None:
        """End the program at its timeout, with this exit code."""
        self.end(code)

    @abstractmethod
    async def run(self) -> int:
        """Run the program and return its exit code."""

    async def wait_for_end(self, work: asyncio.Task[None], seconds: float | None, code: int) -> int:
        """Wait until the program is to end, and return the exit code. From then on the shutdown has a deadline.

        Args:
            work: the task of the program. If it returns, the program ends with code 1.
            code: the exit code at the timeout.
        """
        work.add_done_callback(lambda _: self.end(1))
        if seconds is None:
            timer = None
        else:
            timer = asyncio.get_running_loop().call_later(seconds, self.time_out, code)
        try:
            exit_code = await self._ended
        finally:
            if timer is not None:
                timer.cancel()
        shutdown.start(exit_code)
        return exit_code

    async def stop(self, work: asyncio.Task[None], code: int) -> int:
        """Stop the task and return the exit code: the given one, unless the task failed. Log its errors."""
        work.cancel()
        await asyncio.wait([work])
        if work.cancelled() or (error := work.exception()) is None:
            return code
        usage_errors, other = _split_usage_errors(error)
        if other is None:
            for each in usage_errors:
                logger.error("%s", each)
            return 2
        logger.error("unexpected error, please report it", exc_info=collapsed(other))
        return 1


def _split_usage_errors(error: BaseException) -> tuple[list[UsageError], BaseException | None]:
    """Return the usage errors in a group, at any depth, and the rest of the group; None if there is no rest."""
    if isinstance(error, UsageError):
        return [error], None
    if not isinstance(error, BaseExceptionGroup):
        return [], error
    split = [_split_usage_errors(each) for each in error.exceptions]
    return [each for usage_errors, _ in split for each in usage_errors], error.split(UsageError)[1]


def run_program(
    make: Callable[[Callable[[bytes], None]], Program], level: str = "INFO", *, is_endless: bool = True
) -> int:
    """Run a program and return its exit code, after its output is written, or dropped because stdout is not read.

    If stdout is closed, an endless program ends quietly with code 0. If stdout cannot be written to for another reason,
    or is closed before a program has printed all, that is an error of one line with code 1.

    Args:
        make: returns the program; its argument is the function that writes a line to stdout.
        is_endless: whether the program prints until its reader has enough.
    """

    def code_of(error: OSError) -> int:
        return 0 if is_endless and _is_closed(error) else 1

    if sys.stdout is None:
        return 0
    failures: list[OSError] = []
    with log_to_stderr(level):
        code, writer = asyncio.run(_run(make, failures, code_of))
        if not writer.close(_FLUSH_SECONDS, on_progress=lambda: shutdown.start(code)) and not failures:
            logger.error("stdout is not read: the last lines were dropped")
        if failures:
            code = code_of(failures[0])
            if code:
                logger.error("stdout cannot be written to: %s", failures[0].strerror or "its reader has closed it")
        shutdown.start(code)
    return code


async def _run(
    make: Callable[[Callable[[bytes], None]], Program], failures: list[OSError], code_of: Callable[[OSError], int]
) -> tuple[int, LineWriter]:
    loop = asyncio.get_running_loop()

    def fail(error: OSError) -> None:
        failures.append(error)
        program.end(code_of(error))

    def interrupt() -> None:
        loop.call_soon_threadsafe(program.interrupt)

    def on_failure(error: OSError) -> None:
        loop.call_soon_threadsafe(fail, error)

    writer = LineWriter(sys.stdout.fileno(), on_failure)
    program = make(writer.write)
    with shutdown.waking(loop):
        shutdown.set_listener(interrupt)
        try:
            await asyncio.sleep(0)  # a signal that has been received ends the program before it starts anything
            return await program.run(), writer
        finally:
            shutdown.set_listener(None)


def _is_closed(error: OSError) -> bool:
    return error.errno in (None, errno.EPIPE, errno.ECONNRESET, errno.EIO)
