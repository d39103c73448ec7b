"""Run all tests of this folder in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.shell.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual time": VirtualTimeLoop}
