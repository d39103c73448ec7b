"""The process of a measured controller, whatever it is written in: commands by lines on stdin, JSON on stdout.

- `expect BEFORE MEASURED` is answered by `{}`. Once so many keys have run since, each counted once, the process reports
  `{"cpu": seconds, "keys": […], "times": […]}`: the CPU time from the last run before the measured ones, or from the
  command, to the last run; the keys; and when they ran, in seconds of the monotonic clock.
- `again` requests a run of each key that has run. It is not answered.
- `usage` is answered by `{"runs": …, "cpu": …, "rss_kib": …}` since the start, after unused memory was released.

The first command comes before the controller starts. At the end of stdin, the process exits.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from typing import Self

_SECONDS = 180.0
#: The report of 10,000 keys is one line.
_LINE = 1 << 26


class Report(msgspec.Struct, frozen=True):
    """The expected runs: the CPU time of the measured ones, and the key and time of each."""

    cpu: float
    keys: list[str]
    times: list[float]


class Usage(msgspec.Struct, frozen=True):
    """The runs, the CPU seconds and the resident memory of the process."""

    runs: int
    cpu: float
    rss_kib: float


class ControllerProcess:
    """Runs a controller inside `async with ControllerProcess(command) as controller:`.

    Args:
        command: of the program.
        environment: of the process.
        before, measured: what to expect first.

    Raises:
        RuntimeError: the process has exited; the message has the end of its stderr.
    """

    def __init__(
        self, command: Sequence[str], *, before: int, measured: int, environment: Mapping[str, str] | None = None
    ) -> None:
        self._command, self._environment = command, environment
        self._first = before, measured

    async def __aenter__(self) -> Self:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __aexit__
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._errors,
            env=self._environment,
            limit=_LINE,
        )
        try:
            await self.expect(*self._first)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(10):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._errors.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    async def expect(self, before: int, measured: int) -> None:
        """Let the process note the runs of so many keys."""
        await self._command_line(f"expect {before} {measured}")
        await self._line()

    async def report(self) -> Report:
        """Wait until the expected keys have run."""
        return msgspec.convert(await self._line(), Report)

    async def again(self) -> None:
        """Let each key run once more: that is what the process was told to expect before."""
        await self._command_line("again")

    async def usage(self) -> Usage:
        """Return what the process has used since it started. No report must be pending."""
        await self._command_line("usage")
        return msgspec.convert(await self._line(), Usage)

    async def meanwhile(self, wait: Coroutine[Any, Any, None]) -> None:
        """Wait for something that the controller does.

        Raises:
            RuntimeError: the process has exited first.
        """
        exited = asyncio.create_task(self._process.wait())
        waiting = asyncio.create_task(wait)
        try:
            await asyncio.wait({exited, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise RuntimeError(self._last_words())
            waiting.result()
        finally:
            exited.cancel()
            waiting.cancel()

    def _last_words(self) -> str:
        self._errors.seek(0)
        return f"{self._command[0]} has exited: {self._errors.read().decode(errors='replace')[-2000:]}"

    async def _command_line(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        await self._process.stdin.drain()

    async def _line(self) -> Any:
        assert self._process.stdout is not None
        async with asyncio.timeout(_SECONDS):
            line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError(self._last_words())
        return json.loads(line)
