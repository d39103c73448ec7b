"""All tests of this folder run on virtual time, and must keep quiet: no error is left to asyncio to report."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING

import pytest

from aioinformer.informer.pipeline import QueueKind
from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.shell.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Mapping


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual time": VirtualTimeLoop}


@pytest.fixture(params=list(QueueKind), autouse=True)
def queue(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> QueueKind:
    """What is promised to users does not depend on the queue: every test runs with each of them."""
    kind: QueueKind = request.param
    defaults = SharedIndexInformer.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "queue", kind)
    return kind


@pytest.fixture(autouse=True)
def nothing_left_to_asyncio_to_report(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fails a test after which asyncio complains of an exception that nobody retrieved, or the like."""
    yield
    gc.collect()
    complaints = [
        record.getMessage()
        for record in caplog.get_records("call")
        if record.name == "asyncio" and record.levelno >= logging.ERROR
    ]
    assert not complaints, complaints
