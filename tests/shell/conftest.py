"""Run all tests of this folder in virtual time, with each queue; fail those that leave errors to asyncio."""

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
    """Run every test with each queue, since the guarantees do not depend on it."""
    kind: QueueKind = request.param
    defaults = SharedIndexInformer.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "queue", kind)
    return kind


@pytest.fixture(autouse=True)
def nothing_left_to_asyncio_to_report(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test after which asyncio reports an exception that was never retrieved, or the like."""
    yield
    gc.collect()
    complaints = [
        record.getMessage()
        for record in caplog.get_records("call")
        if record.name == "asyncio" and record.levelno >= logging.ERROR
    ]
    assert not complaints, complaints
