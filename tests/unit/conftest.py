"""Run the asynchronous tests of all rooms in virtual time, and fail those that leave errors to asyncio, or use sockets.

The rooms `transport` and `testing` are about sockets: their tests run in real time, with servers on loopback.
"""

from __future__ import annotations

import gc
import inspect
import logging
import socket
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from msgspec.structs import replace

from aioinformer import RunOptions, SharedIndexInformer
from tests.support.limits import set_slices
from tests.support.queues import QUEUES
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Mapping

    from aioinformer.informer import QueueName


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual time": VirtualTimeLoop}


@pytest.fixture(params=QUEUES)
def queue(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> QueueName:
    """Run a test with each queue, if its guarantees do not depend on the queue."""
    kind: QueueName = request.param
    make: Any = SharedIndexInformer.__init__

    def with_queue(self: Any, *arguments: Any, options: Any = None, **more: Any) -> None:
        given = RunOptions() if options is None else options
        make(self, *arguments, options=replace(given, queue=kind) if isinstance(given, RunOptions) else given, **more)

    monkeypatch.setattr(SharedIndexInformer, "__init__", with_queue)
    return kind


@pytest.fixture
def fine_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let long work yield to the event loop as often as it can."""
    set_slices(monkeypatch, 1e-9)


@pytest.fixture(autouse=True)
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that listens at an address or connects to one: it belongs into tests/system."""
    refused: list[object] = []

    def refuse(self: socket.socket, address: object) -> NoReturn:
        refused.append(address)
        raise PermissionError(f"tests of this room use no sockets, and this one uses {address}")

    for name in ("bind", "connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    yield
    assert not refused, f"move this test to tests/system: it uses the addresses {refused}"


@pytest.fixture(autouse=True)
def nothing_left_to_asyncio_to_report(
    request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    """Fail a test after which asyncio reports an exception that was never retrieved, or the like."""
    yield
    if not inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        return
    gc.collect()
    complaints = [
        record.getMessage()
        for record in caplog.get_records("call")
        if record.name == "asyncio" and record.levelno >= logging.ERROR
    ]
    assert not complaints, complaints
