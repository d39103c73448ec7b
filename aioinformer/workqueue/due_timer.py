"""`DueTimer`: one timer of the event loop, for a time that changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class DueTimer:
    """Calls a function at the time that was set last.

    Args:
        call: is called with the present time, which is never before the time that was set.
    """

    __slots__ = ("_call", "_handle")

    def __init__(self, call: Callable[[float], None]) -> None:
        self._call = call
        self._handle: asyncio.TimerHandle | None = None

    def set(self, due: float | None) -> None:
        """Set the time.

        Args:
            due: by the clock of the running event loop; None for no call.
        """
        if self._handle is not None:
            if self._handle.when() == due:
                return
            self._handle.cancel()
            self._handle = None
        if due is not None:
            self._handle = asyncio.get_running_loop().call_at(due, self._on_time, due)

    def _on_time(self, due: float) -> None:
        self._handle = None
        self._call(max(due, asyncio.get_running_loop().time()))  # event loops may call a timer slightly early
