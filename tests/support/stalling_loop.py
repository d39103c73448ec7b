"""Virtual time that passes while the event loop is blocked, as when a handler blocks or the process is stopped."""

from __future__ import annotations

import asyncio

from tests.support.virtual_time import VirtualTimeLoop


def stall(seconds: float) -> None:
    """Let virtual time pass without running the event loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop._virtual.now += seconds
