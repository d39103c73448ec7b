"""Handler calls that do not return are logged; idle informers have no timer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.handlers.coalescing import CoalescingHandler
from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.shell.collection import Collection
from tests.shell.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    return lambda: [record.getMessage() for record in caplog.records if record.name == "aioinformer.handlers"]


def timers() -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    return len([timer for timer in loop._scheduled if not timer.cancelled()])  # type: ignore[attr-defined]


async def hang(obj: Any) -> None:
    await asyncio.sleep(3600 if obj.metadata.name == "b" else 0)


async def test_call_is_logged_after_30_s_and_then_each_minute(warnings: Callable[[], list[str]]) -> None:
    informer = SharedIndexInformer(Collection("a", "b", "c"), shutdown_grace=0)
    informer.add_event_handler(on_add=hang)
    async with informer:
        await asyncio.sleep(29)
        assert warnings() == []
        await asyncio.sleep(2)
        (line,) = warnings()
        place = f"hang at shell/test_overdue.py:{hang.__code__.co_firstlineno}"
        assert line == (
            f"informer of pods: handler 1 ({place}): {place} has not returned for 30 s: it was called for default/b, "
            "and 1 notifications are pending behind it"
        )
        await asyncio.sleep(58)
        assert len(warnings()) == 1
        await asyncio.sleep(125)
        assert [line.split(" has not returned for ")[1].split(":")[0] for line in warnings()[1:]] == [
            "90 s",
            "150 s",
            "210 s",
        ]


async def test_timely_calls_are_not_logged(warnings: Callable[[], list[str]]) -> None:
    async def on_add(obj: Any) -> None:
        await asyncio.sleep(29)

    informer = SharedIndexInformer(Collection(*"abcdef"))
    registration = informer.add_event_handler(on_add=on_add)
    async with informer:
        await registration.wait_for_sync()
    assert warnings() == []


async def test_late_call_of_a_batch_is_logged_after_30_s(warnings: Callable[[], list[str]]) -> None:
    async def on_add(obj: Any) -> None:
        await asyncio.sleep({"a": 20, "b": 15, "c": 31}[obj.metadata.name])

    informer = SharedIndexInformer(Collection("a", "b", "c"))
    registration = informer.add_event_handler(on_add=on_add)
    async with informer:
        await registration.wait_for_sync()
    (line,) = warnings()
    assert "for 30 s: it was called for default/c" in line


async def test_idle_informer_has_no_timer() -> None:
    informer = SharedIndexInformer(Collection("a", "b"))
    before = timers()
    informer.add_event_handler(on_add=lambda obj: None)
    async with informer:
        await settled()
        during = timers()
        await asyncio.sleep(31)
        after = timers()
    assert during - after == 1
    assert timers() == before


async def test_stop_leaves_no_timer() -> None:
    before = timers()
    informer = SharedIndexInformer(Collection("a", "b"), shutdown_grace=0)
    informer.add_event_handler(on_add=hang)
    async with informer:
        await settled()
    await settled()
    assert timers() == before


async def test_last_call_of_a_removed_handler_is_logged(warnings: Callable[[], list[str]]) -> None:
    informer = SharedIndexInformer(Collection("b"), shutdown_grace=0)
    registration = informer.add_event_handler(on_add=hang)
    async with informer:
        await settled()
        informer.remove_event_handler(registration)
        await asyncio.sleep(31)
        assert len(warnings()) == 1


async def test_call_behind_a_coalescing_handler_is_logged(warnings: Callable[[], list[str]]) -> None:
    class Slow:
        async def on_add(self, obj: Any) -> None:
            await hang(obj)

    async with CoalescingHandler(Slow()) as latest:
        informer = SharedIndexInformer(Collection("a", "b"))
        informer.add_event_handler(latest)
        async with informer:
            await asyncio.sleep(31)
    (line,) = warnings()
    assert line.startswith("coalescing handler (Slow.on_add at shell/test_overdue.py:")
    assert "for 30 s: it was called for default/b, and 0 notifications are pending" in line
