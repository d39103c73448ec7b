"""Write lines to a file descriptor that may be slow, stopped or closed, without blocking the event loop.

Lines are queued, and a thread writes them; the event loop never touches the descriptor. The thread waits for a line,
and writes it together with all lines that are queued by then: no line is delayed, and many lines take few calls. Each
call writes whole lines of at most PIPE_BUF bytes in total. A pipe accepts such a write completely or not at all, so a
reader never receives half of a line, however the process ends. The queue is unbounded.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_WRITE = getattr(select, "PIPE_BUF", 512)
_HANGUP_CHECK_SECONDS = 0.25


class LineWriter:
    """Writes lines from any thread, in order.

    Args:
        descriptor: the file descriptor to write to; it is not closed.
        on_failure: called once, in the writer's thread, when writing fails. A BrokenPipeError means that the reader
            has closed; this is detected within a quarter of a second even while no line is queued.
    """

    def __init__(self, descriptor: int, on_failure: Callable[[OSError], None] | None = None) -> None:
        self._descriptor = descriptor
        self._on_failure = on_failure
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._next_line = b""
        self._closing = False
        self._failed = False
        self._progress_at = 0.0
        self._has_hung_up = _hangup_check(descriptor)
        self._thread = threading.Thread(target=self._run, name=f"writer of {descriptor}", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Queue one line, which ends with a line feed."""
        self._queue.put(line)

    def close(self, patience: float, on_progress: Callable[[], None] | None = None) -> bool:
        """Wait until all lines are written, as long as there is progress; return whether they were. Idempotent. Blocks.

        Args:
            patience: seconds without progress after which the remaining lines are dropped.
            on_progress: called repeatedly while there is progress.
        """
        self._queue.put(None)
        reported_at = time.monotonic()
        self._progress_at = reported_at
        while self._thread.is_alive() and time.monotonic() - self._progress_at < patience:
            self._thread.join(0.02)
            if on_progress is not None and self._progress_at > reported_at:
                reported_at = self._progress_at
                on_progress()
        return not self._thread.is_alive() and not self._failed

    def _run(self) -> None:
        try:
            while lines := self._next_lines():
                view = memoryview(lines)
                while view:
                    view = view[os.write(self._descriptor, view) :]
                    self._progress_at = time.monotonic()
        except OSError as error:
            self._failed = True
            if self._on_failure is not None:
                with contextlib.suppress(RuntimeError):
                    self._on_failure(error)

    def _next_lines(self) -> bytes:
        """Wait for lines and return those to write together; empty after the last one."""
        if self._closing:
            return b""
        line = self._next_line or self._wait()
        self._next_line = b""
        lines: list[bytes] = []
        size = 0
        while line is not None:
            if lines and size + len(line) > _MAX_WRITE:
                self._next_line = line
                break
            lines.append(line)
            size += len(line)
            try:
                line = self._queue.get_nowait()
            except queue.Empty:
                break
        else:
            self._closing = True
        return b"".join(lines)

    def _wait(self) -> bytes | None:
        while True:
            try:
                return self._queue.get(timeout=_HANGUP_CHECK_SECONDS)
            except queue.Empty:
                if self._has_hung_up():
                    raise BrokenPipeError from None


def _hangup_check(descriptor: int) -> Callable[[], bool]:
    """Return a function that checks whether the reader has closed its end."""
    if not hasattr(select, "poll"):
        return lambda: False
    poll = select.poll()
    poll.register(descriptor, 0)
    return lambda: bool(poll.poll(0))
