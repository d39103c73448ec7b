"""Lines to a file descriptor that may be slow, stopped, or closed at the other end, without waiting for it.

Lines go into a queue and a thread writes them; the event loop never touches the descriptor. The thread waits for the
first line, takes what else is there, and writes it at once, so that a line is never held back and many cost few calls.
It writes whole lines of at most PIPE_BUF bytes together: those a pipe takes entirely or not at all, so that a reader
never finds half a line, however the process ends. The queue has no bound; the reader's pace is the reader's affair.
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

_AT_ONCE = getattr(select, "PIPE_BUF", 512)
_LOOK = 0.25


class LineWriter:
    """Writes lines from any thread, in order; see the module's text for what holds.

    Args:
        descriptor: of the file to write to; it is not closed.
        on_failure: called in the writer's thread, once, when nothing can be written any more. A BrokenPipeError says
            that whoever read has gone; it is noticed within a quarter of a second also while there is nothing to write.
    """

    def __init__(self, descriptor: int, on_failure: Callable[[OSError], None] | None = None) -> None:
        self._descriptor = descriptor
        self._on_failure = on_failure
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._held = b""
        self._closing = False
        self._failed = False
        self._progress = 0.0
        self._hangup = _hangup_poll(descriptor)
        self._thread = threading.Thread(target=self._run, name=f"writer of {descriptor}", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Queues one line, with its line feed."""
        self._queue.put(line)

    def close(self, patience: float, on_progress: Callable[[], None] | None = None) -> bool:
        """Waits until everything is written, but only while there is progress. Idempotent. Blocks.

        Args:
            patience: seconds without any progress after which the rest is given up.
            on_progress: called now and then while there is progress.

        Returns:
            Whether everything was written.
        """
        self._queue.put(None)
        self._progress = seen = time.monotonic()
        while self._thread.is_alive() and time.monotonic() - self._progress < patience:
            self._thread.join(0.02)
            if on_progress is not None and self._progress > seen:
                seen = self._progress
                on_progress()
        return not self._thread.is_alive() and not self._failed

    def _run(self) -> None:
        try:
            while lines := self._next_lines():
                view = memoryview(lines)
                while view:
                    view = view[os.write(self._descriptor, view) :]
                    self._progress = time.monotonic()
        except OSError as error:
            self._failed = True
            if self._on_failure is not None:
                with contextlib.suppress(RuntimeError):
                    self._on_failure(error)

    def _next_lines(self) -> bytes:
        """Whole lines that are due, together; none when there will be none any more."""
        if self._closing:
            return b""
        line = self._held or self._wait()
        self._held = b""
        lines: list[bytes] = []
        size = 0
        while line is not None:
            if lines and size + len(line) > _AT_ONCE:
                self._held = line
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
                return self._queue.get(timeout=_LOOK)
            except queue.Empty:
                if self._hangup():
                    raise BrokenPipeError from None


def _hangup_poll(descriptor: int) -> Callable[[], bool]:
    if not hasattr(select, "poll"):
        return lambda: False
    poll = select.poll()
    poll.register(descriptor, 0)
    return lambda: bool(poll.poll(0))
