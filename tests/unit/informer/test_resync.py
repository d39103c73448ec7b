"""Resyncs: which handlers get unchanged objects again, and when."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer.errors import UsageError
from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.support.collection import Collection
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

pytestmark = pytest.mark.usefixtures("queue")


class Clocked(Recorder):
    """Records the times of updates."""

    def __init__(self) -> None:
        super().__init__()
        self.at: list[int] = []
        self._start = asyncio.get_running_loop().time()

    async def on_update(self, old: object, new: object) -> None:
        assert old is new
        self.at.append(round(asyncio.get_running_loop().time() - self._start))


@pytest.mark.conformance("SI-28", "SI-29")
async def test_period_is_rounded_up_to_the_check_period() -> None:
    informer = SharedIndexInformer(Collection("a"), 1)
    never, second, third, uneven = (Clocked() for _ in range(4))
    for handler, period in ((never, 0), (second, 2), (third, 3), (uneven, 2.5)):
        informer.add_event_handler(handler, resync_period=period)
    async with informer:
        await asyncio.sleep(6.5)
    assert (never.at, second.at, third.at, uneven.at) == ([], [2, 4, 6], [3, 6], [3, 6])


@pytest.mark.conformance("SI-17", "SI-01")
async def test_default_period_is_that_of_the_informer() -> None:
    informer = SharedIndexInformer(Collection("a"), 10)
    handler = Clocked()
    informer.add_event_handler(handler)
    async with informer:
        await asyncio.sleep(35)
    assert handler.at == [10, 20, 30]


@pytest.mark.conformance("SI-25")
async def test_periods_below_a_second_are_raised(caplog: pytest.LogCaptureFixture) -> None:
    informer = SharedIndexInformer(Collection("a"), 0.01)
    handler = Clocked()
    informer.add_event_handler(handler, resync_period=0.5)
    async with informer:
        await asyncio.sleep(2.5)
    assert handler.at == [1, 2]
    assert "raised to 1 s" in caplog.text


@pytest.mark.conformance("SI-26")
async def test_shorter_period_before_the_start_shortens_checks() -> None:
    informer = SharedIndexInformer(Collection("a"), 60)
    usual, short = Clocked(), Clocked()
    informer.add_event_handler(usual)
    informer.add_event_handler(short, resync_period=7)
    async with informer:
        await asyncio.sleep(65)
    assert short.at == [7, 14, 21, 28, 35, 42, 49, 56, 63]
    assert usual.at == [63]


@pytest.mark.conformance("SI-26")
async def test_shorter_period_after_the_start_is_raised(caplog: pytest.LogCaptureFixture) -> None:
    informer = SharedIndexInformer(Collection("a"), 10)
    async with informer:
        await settled()
        late = Clocked()
        informer.add_event_handler(late, resync_period=2)
        await asyncio.sleep(35)
    assert late.at == [20, 30]  # at 10 s it was not quite due, since it was added just after the start
    assert "its informer is running already" in caplog.text


@pytest.mark.conformance("SI-27")
async def test_informer_without_resync_warns_its_handlers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    informer = SharedIndexInformer(Collection("a"))
    handler = Clocked()
    informer.add_event_handler(handler, resync_period=5)
    async with informer:
        await asyncio.sleep(60)
    assert handler.at == []
    assert "it gets no resyncs" in caplog.text


@pytest.mark.conformance("SI-29", "SI-30", "WEAK-21", "WEAK-16")
@pytest.mark.parametrize("resync", [0, 30])
async def test_relist_does_not_deliver_unchanged_objects(resync: float) -> None:
    pods = Collection("a", "b", "c")
    informer = SharedIndexInformer(pods, resync)
    handlers = [Recorder(), Recorder()]
    informer.add_event_handler(handlers[0])
    informer.add_event_handler(handlers[1], resync_period=0)
    async with informer:
        await settled()
        pods.end_watches()
        pods.put("b")
        pods.delete("c")
        pods.unseen()
        await asyncio.sleep(20)
    # The order of different objects is undefined.
    assert [sorted(handler.received[3:]) for handler in handlers] == [["tombstone c 3", "update b 2 4"]] * 2


@pytest.mark.conformance("SI-29")
async def test_changes_reach_all_handlers_during_a_resync() -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods, 10)
    handler = Recorder()
    informer.add_event_handler(handler, resync_period=0)
    informer.add_event_handler(Recorder())
    async with informer:
        await asyncio.sleep(10)
        pods.put("a")
        await asyncio.sleep(9)
    assert handler.received == ["add! a 1", "add! b 2", "update a 1 3"]


@pytest.mark.parametrize("period", [-1, float("nan"), "60"])
def test_invalid_period_is_refused(period: float) -> None:
    with pytest.raises(UsageError, match="resync_period must be 0"):
        SharedIndexInformer(Collection(), period)
