"""Runs one program on one event loop between stdout, stderr and signals."""

from __future__ import annotations

import asyncio
import errno
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from aioinformer.cli.output.line_writer import LineWriter
from aioinformer.cli.output.stderr_log import log_to_stderr
from aioinformer.cli.shutdown import GRACE, ending
from aioinformer.concurrency import collapsed
from aioinformer.errors import UsageError
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

logger = get_logger("aioinformer.cli")

_FLUSH = GRACE - 0.5
"""Seconds without progress after which a stdout is taken for one that nobody reads."""


class Program(ABC):
    """What can be run, to be made where the loop runs. It has one end; the first reason for it wins."""

    def __init__(self) -> None:
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def end(self, code: int) -> None:
        """Ends soon, with this exit code."""
        if not self._ended.done():
            self._ended.set_result(code)

    def interrupt(self) -> None:
        """Ends as a signal asks for."""
        self.end(0)

    def expire(self, code: int) -> None:
        """End because the time is over, with this exit code."""
        self.end(code)

    @abstractmethod
    async def run(self) -> int:
        """Runs to the end and returns the exit code."""

    async def until_end(self, work: asyncio.Task[None], seconds: float | None, code: int) -> int:
        """Waits for the end, and returns the exit code. From then on the end is bounded in time.

        Args:
            work: what goes on meanwhile. If it ends, so does the program, with code 1.
            seconds: after which it is the end in any case, None for no limit.
            code: the exit code in that case.
        """
        work.add_done_callback(lambda _: self.end(1))
        timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self.expire, code)
        try:
            found = await self._ended
        finally:
            if timer is not None:
                timer.cancel()
        ending.begin(found)
        return found

    async def unwind(self, work: asyncio.Task[None], code: int) -> int:
        """Ends the work, and returns the exit code: the one given, unless the work failed. Says why it did."""
        work.cancel()
        await asyncio.wait([work])
        if work.cancelled() or (error := work.exception()) is None:
            return code
        wrong, other = _divided(error)
        if other is None:
            for each in wrong:
                logger.error("%s", each)
            return 2
        logger.error("this should not have happened", exc_info=collapsed(other))
        return 1


def _divided(error: BaseException) -> tuple[list[UsageError], BaseException | None]:
    """The errors of usage in a group, however deep, and the rest of it, None if there is none."""
    if isinstance(error, UsageError):
        return [error], None
    if not isinstance(error, BaseExceptionGroup):
        return [], error
    divided = [_divided(each) for each in error.exceptions]
    return [each for wrong, _ in divided for each in wrong], error.split(UsageError)[1]


def run_program(make: Callable[[Callable[[bytes], None]], Program]) -> int:
    """Runs a program to its end and returns the exit code; everything it wrote is out by then, or given up.

    A stdout that is closed ends the program quietly, with success. One that cannot be written to for another reason
    ends it with code 1.
    """
    if sys.stdout is None:
        return 0
    failures: list[OSError] = []
    with log_to_stderr():
        code, writer = asyncio.run(_run(make, failures))
        if not writer.close(_FLUSH, on_progress=lambda: ending.begin(code)) and not failures:
            logger.error("stdout is not read: what was left to write is lost")
        if failures:
            code = 0 if _is_closed(failures[0]) else 1
            if code:
                logger.error("stdout cannot be written to: %s", failures[0].strerror)
        ending.begin(code)
    return code


async def _run(make: Callable[[Callable[[bytes], None]], Program], failures: list[OSError]) -> tuple[int, LineWriter]:
    loop = asyncio.get_running_loop()

    def fail(error: OSError) -> None:
        failures.append(error)
        program.end(0 if _is_closed(error) else 1)

    def interrupt() -> None:
        loop.call_soon_threadsafe(program.interrupt)

    def on_failure(error: OSError) -> None:
        loop.call_soon_threadsafe(fail, error)

    writer = LineWriter(sys.stdout.fileno(), on_failure)
    program = make(writer.write)
    ending.tell(interrupt)
    try:
        return await program.run(), writer
    finally:
        ending.tell(None)


def _is_closed(error: OSError) -> bool:
    return error.errno in (None, errno.EPIPE, errno.ECONNRESET, errno.EIO)
