"""Run the asynchronous tests of all rooms in virtual time, and fail those that leave errors to asyncio.

The rooms `transport` and `testing` are about sockets: their tests run in real time, with servers on loopback.
"""

from __future__ import annotations

import gc
import inspect
import logging
from typing import TYPE_CHECKING

import pytest

from aioinformer.informer.pipeline import QueueKind
from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Mapping


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual time": VirtualTimeLoop}


@pytest.fixture(params=list(QueueKind))
def queue(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> QueueKind:
    """Run a test with each queue, if its guarantees do not depend on the queue."""
    kind: QueueKind = request.param
    defaults = SharedIndexInformer.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "queue", kind)
    return kind


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
