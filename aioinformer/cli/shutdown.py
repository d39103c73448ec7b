"""End the process in time and with the right exit code, even if something hangs.

The first signal asks the program to end, and the program stops its tasks. Some things cannot be stopped: a name
resolution in a thread, or a write to a stopped terminal. Therefore a watchdog thread ends the process when the grace
is over, and a second signal ends it at once. These handlers replace Python's own from the start: KeyboardInterrupt
could be raised anywhere, and tasks could not be stopped in order.

Python runs a handler between two instructions of the main thread. A signal that comes in just before the event loop
waits for its sockets does not interrupt that wait, so its handler would run with the next event, perhaps minutes later.
Therefore a socket wakes the event loop at each signal. The event loop of Windows has such a socket of its own.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator
    from types import FrameType

GRACE = 1.5
"""Seconds from the start of the end until the process is ended; the command line guarantees 2."""


class Shutdown:
    """The end of the process: its signals, its exit code, and its deadline.

    Attributes:
        code: the exit code if the watchdog or a second signal ends the process.
        signalled: whether a signal has been received.
    """

    def __init__(self) -> None:
        self.code = 0
        self.signalled = False
        self._listener: Callable[[], None] | None = None
        self._deadline: float | None = None

    def handle_signals(self) -> None:
        """Install handlers for SIGINT and SIGTERM."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def set_listener(self, listener: Callable[[], None] | None) -> None:
        """Call the listener on the first signal, or at once if a signal has been received; None removes it.

        It is called on the main thread, between any two instructions.
        """
        self._listener = listener
        if self.signalled and listener is not None:
            listener()

    @contextmanager
    def waking(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Wake this event loop, which runs in the main thread, at each signal while the block runs."""
        receiving, sending = socket.socketpair()
        with receiving, sending:
            receiving.setblocking(False)
            sending.setblocking(False)
            try:
                loop.add_reader(receiving, receiving.recv, 4096)
            except NotImplementedError:  # that of Windows, which each signal wakes
                yield
                return
            before = signal.set_wakeup_fd(sending.fileno(), warn_on_full_buffer=False)
            try:
                yield
            finally:
                signal.set_wakeup_fd(before)
                loop.remove_reader(receiving)

    def start(self, code: int) -> None:
        """Let the process end with this code, and end it when the grace is over.

        Another call restarts the grace, unless a signal has been received.
        """
        self.code = code
        if not (self.signalled and self._deadline):
            self._set_deadline()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.signalled:
            os._exit(self.code)
        self.signalled = True
        self._set_deadline()
        if self._listener is not None:
            self._listener()

    def _set_deadline(self) -> None:
        running = self._deadline is not None
        self._deadline = time.monotonic() + GRACE
        if not running:
            threading.Thread(target=self._watch, name="end of the process", daemon=True).start()

    def _watch(self) -> None:
        while self._deadline is not None and (left := self._deadline - time.monotonic()) > 0:
            time.sleep(left)
        os._exit(self.code)


shutdown = Shutdown()
"""The shutdown of this process."""
