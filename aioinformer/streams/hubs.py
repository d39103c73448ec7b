"""The hubs of one informer: one for each view that has readers, or had them a short time ago."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Final

from aioinformer.streams.hub import Hub

#: Seconds for which a log is kept after its last reader, so that readers that come back go on where they were.
LINGER: Final = 60.0
#: So many hubs without readers are kept, at most.
_KEPT: Final = 8


class Hubs:
    """Opens a hub for the first reader of a view, and closes it some time after the last one.

    Without readers, the informer has no hub, and does nothing for one.
    """

    def __init__(self) -> None:
        self._hubs: dict[Hashable, Hub] = {}
        #: The hubs without readers, oldest first, and the timers that close them.
        self._idle: dict[Hashable, asyncio.TimerHandle] = {}

    def enter(self, key: Hashable, make: Callable[[], Hub]) -> Hub:
        """Return the hub of a view for one more reader, which must call `leave` at its end.

        Args:
            key: identifies the view.
            make: makes the hub if there is none.
        """
        hub = self._hubs.get(key)
        if hub is None:
            hub = make()
            self._hubs[key] = hub
            hub.key = key
        timer = self._idle.pop(key, None)
        if timer is not None:
            timer.cancel()
            hub.catch_up()
        hub.readers += 1
        return hub

    def leave(self, hub: Hub) -> None:
        """Count one reader less of a hub."""
        hub.readers -= 1
        key = hub.key
        if hub.readers == 0 and self._hubs.get(key) is hub:  # otherwise, the informer has stopped
            self._idle[key] = asyncio.get_running_loop().call_later(LINGER, self._close, key)
            if len(self._idle) > _KEPT:
                self._close(next(iter(self._idle)))

    def wake(self) -> None:
        """Wake all readers: the cache has synced."""
        for hub in self._hubs.values():
            hub.wake()

    def end(self) -> None:
        """Close all hubs, and wake their readers: the informer has stopped."""
        for key in list(self._hubs):
            self._close(key)

    def _close(self, key: Hashable) -> None:
        timer = self._idle.pop(key, None)
        if timer is not None:
            timer.cancel()
        self._hubs.pop(key).close()
