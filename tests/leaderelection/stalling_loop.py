"""Virtual time that can also pass while nothing runs, as it does when a handler blocks or a machine is stopped."""

from __future__ import annotations

import asyncio

from tests.shell.virtual_time import VirtualTimeLoop


def stall(seconds: float) -> None:
    """The loop is held up for so long: time passes, and nobody gets a turn."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop._virtual.now += seconds
