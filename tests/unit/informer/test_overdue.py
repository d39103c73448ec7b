"""Handler calls that do not return are logged; idle informers have no timer."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.handlers import listener
from aioinformer.handlers.coalescing import CoalescingHandler
from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.support.collection import Collection
from tests.support.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("queue")


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


NUMBERS = itertools.count()


@pytest.fixture
def backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_BACKLOG", 100)
    monkeypatch.setattr(listener.ProcessorListener, "_backlog_limit", 100)


async def flood(pods: Collection, seconds: float, per_second: int) -> None:
    for _ in range(int(seconds * 10)):
        for _ in range(per_second // 10):
            pods.put(f"p{next(NUMBERS)}")
        await asyncio.sleep(0.1)


@pytest.mark.usefixtures("backlog")
async def test_growing_backlog_of_quick_calls_is_logged_each_time_it_doubles(caplog: pytest.LogCaptureFixture) -> None:
    async def on_add(obj: Any) -> None:
        await asyncio.sleep(0.02)

    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    informer.add_event_handler(on_add=on_add)
    async with informer:
        await settled()
        await flood(pods, 20, 100)
        await asyncio.sleep(60)
    lines = [record.getMessage() for record in caplog.records]
    counts = [int(line.split(": ")[2].split()[0]) for line in lines if "falls behind" in line]
    assert 3 <= len(counts) <= 5
    assert all(after >= 1.9 * before for before, after in itertools.pairwise(counts))
    assert re.search(r"\d+ arrived and (49|50|51) were delivered per second", lines[-2])
    assert re.fullmatch(r"informer of pods: handler 1 \(.*\) has caught up after \d+ s", lines[-1])


@pytest.mark.usefixtures("backlog")
async def test_burst_that_drains_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def on_add(obj: Any) -> None:
        await asyncio.sleep(0.005)

    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    informer.add_event_handler(on_add=on_add)
    async with informer:
        await settled()
        for _ in range(3):
            await flood(pods, 0.1, 3000)
            await asyncio.sleep(10)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.usefixtures("backlog")
async def test_backlog_without_further_events_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def on_add(obj: Any) -> None:
        await asyncio.sleep(0.1)

    pods = Collection(*(f"first-{number}" for number in range(200)))
    informer = SharedIndexInformer(pods)
    informer.add_event_handler(on_add=on_add)
    async with informer:
        await asyncio.sleep(10)
        assert caplog.records == []  # the initial list
        await asyncio.sleep(60)
        await flood(pods, 0.1, 3000)
        await asyncio.sleep(60)
    first, last = (record.getMessage() for record in caplog.records)
    assert "notifications are pending; in the last 2 s, " in first
    assert "has caught up after 30 s" in last
