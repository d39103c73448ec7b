"""How the process ends: soon, whatever hangs, and with the right code.

A signal asks the program to end; the program unwinds by itself. What it cannot unwind (a name resolution in a thread, a
write to a terminal that was stopped) is cut: a watchdog ends the process when the grace is over, and so does a second
signal. Python's own handler would raise KeyboardInterrupt wherever the program happens to be, which is no way to unwind
tasks, and is replaced from the first moment on.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

GRACE = 1.5
"""Seconds from the wish to end to the end, at most; scripts are promised 2."""


class Ending:
    """The end of the process: who is told of the wish, with which code it ends, and when at the latest."""

    def __init__(self) -> None:
        self.code = 0
        self.signalled = False
        self._listener: Callable[[], None] | None = None
        self._latest: float | None = None

    def listen(self) -> None:
        """Takes over SIGINT and SIGTERM."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def tell(self, listener: Callable[[], None] | None) -> None:
        """Has the listener called on the first signal, at once if that has come already; None for nobody.

        It is called in the main thread, in between any two instructions.
        """
        self._listener = listener
        if self.signalled and listener is not None:
            listener()

    def begin(self, code: int) -> None:
        """Lets the process end with this code by itself, and makes it end when the grace is over.

        Called again, it gives the grace anew, unless a signal has come: that is promised an end.
        """
        self.code = code
        if not (self.signalled and self._latest):
            self._arm()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.signalled:
            os._exit(self.code)
        self.signalled = True
        self._arm()
        if self._listener is not None:
            self._listener()

    def _arm(self) -> None:
        running = self._latest is not None
        self._latest = time.monotonic() + GRACE
        if not running:
            threading.Thread(target=self._watch, name="end of the process", daemon=True).start()

    def _watch(self) -> None:
        while self._latest is not None and (left := self._latest - time.monotonic()) > 0:
            time.sleep(left)
        os._exit(self.code)


ending = Ending()
"""The one of this process."""
