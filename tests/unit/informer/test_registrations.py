"""Handlers that are added late or removed early, when each has synced, and resyncs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import SharedIndexInformer
from aioinformer.errors import InformerStopped, UsageError
from tests.support.collection import Collection
from tests.support.recorder import Recorder, informer_of
from tests.support.virtual_time import settled

pytestmark = pytest.mark.usefixtures("queue")


@pytest.mark.conformance("SI-20")
async def test_late_handler_gets_the_cache_as_initial_list() -> None:
    late = Recorder()
    async with informer_of("a", "b") as (pods, informer, received):
        pods.put("a")
        pods.delete("b")
        await settled()
        before = list(received)
        informer.add_event_handler(late)
        pods.put("c")
        await settled()
    assert late.received == ["add! a 3", "add c 5"]
    assert received == [*before, "add c 5"]


@pytest.mark.usefixtures("fine_slices")
@pytest.mark.conformance("SI-20", "SI-21", "SI-35")
@pytest.mark.parametrize("turns", range(0, 120, 3))
async def test_handler_added_during_a_list_gets_each_object_once(turns: int) -> None:
    pods = Collection(*(f"p{number}" for number in range(300)))
    informer = SharedIndexInformer(pods)
    async with informer:
        for _ in range(turns):
            await asyncio.sleep(0)
        late = Recorder()
        registration = informer.add_event_handler(late)
        await registration.wait_for_sync()
        assert late.received == [f"add! p{number} {number + 1}" for number in range(300)]


@pytest.mark.conformance("SI-20")
async def test_handler_added_by_a_predicate_gets_the_object_once() -> None:
    late = Recorder()
    async with informer_of() as (pods, informer, _):

        def join(obj: Any) -> bool:
            if obj is not None:
                informer.add_event_handler(late)
            return obj is not None

        waiting = asyncio.ensure_future(informer.wait_for("default/a", join))
        await settled()
        pods.put("a")
        await waiting
        await settled()
    assert late.received == ["add! a 1"]


@pytest.mark.conformance("SI-18")
async def test_handler_may_be_registered_twice() -> None:
    recorder = Recorder()
    async with informer_of("a") as (pods, informer, _):
        first = informer.add_event_handler(recorder)
        informer.add_event_handler(recorder)
        await settled()
        informer.remove_event_handler(first)
        pods.put("b")
        await settled()
    assert recorder.received == ["add! a 1", "add! a 1", "add b 2"]


@pytest.mark.conformance("SI-22", "SI-06")
async def test_removal_finishes_the_call_and_drops_the_rest() -> None:
    finished: list[str] = []

    async def on_add(obj: Any) -> None:
        await asyncio.sleep(10)
        finished.append(obj.metadata.name)

    async with informer_of("a", "b") as (_, informer, _):
        registration = informer.add_event_handler(on_add=on_add)
        waiting = asyncio.ensure_future(registration.wait_for_sync())
        await settled()
        informer.remove_event_handler(registration)
        with pytest.raises(InformerStopped, match="removed"):
            await waiting
        await asyncio.sleep(60)
    assert finished == ["a"]


@pytest.mark.conformance("SI-22")
async def test_handler_may_remove_itself() -> None:
    received: list[str] = []

    def on_add(obj: Any) -> None:
        received.append(obj.metadata.name)
        informer.remove_event_handler(registration)

    async with informer_of("a", "b") as (_, informer, _):
        registration = informer.add_event_handler(on_add=on_add)
        await settled()
    assert received == ["a"]


@pytest.mark.conformance("SI-19", "SI-22", "ARC-09")
async def test_redundant_removal_does_nothing() -> None:
    pods = Collection("a")
    informer, other = SharedIndexInformer(pods), SharedIndexInformer(Collection("a"))
    recorder, unused = Recorder(), Recorder()
    informer.remove_event_handler(informer.add_event_handler(unused))
    registration = informer.add_event_handler(recorder)
    async with informer:
        await settled()
        other.remove_event_handler(registration)
        pods.put("b")
        await settled()
        assert (recorder.received, unused.received) == (["add! a 1", "add b 2"], [])
        informer.remove_event_handler(registration)
        informer.remove_event_handler(registration)
    informer.remove_event_handler(registration)
    with pytest.raises(UsageError, match="the result of add_event_handler, not Recorder"):
        informer.remove_event_handler(recorder)  # type: ignore[arg-type]
    with pytest.raises(InformerStopped, match="because it has stopped already"):
        informer.add_event_handler(Recorder())


@pytest.mark.conformance("SI-13", "SI-14", "SI-15", "ST-01", "FAC-09")
async def test_handler_syncs_after_the_initial_list() -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods)
    slow = informer.add_event_handler(Recorder(pace=10))
    quick = informer.add_event_handler(Recorder())
    await settled()
    assert (informer.has_synced(), quick.has_synced(), slow.has_synced()) == (False, False, False)
    async with informer:
        await settled()
        assert (informer.has_synced(), quick.has_synced(), slow.has_synced()) == (True, True, False)
        late = informer.add_event_handler(Recorder(pace=10))
        await asyncio.sleep(15)
        assert (slow.has_synced(), late.has_synced()) == (False, False)
        await asyncio.sleep(10)
        assert (slow.has_synced(), late.has_synced()) == (True, True)
        pods.put("c")
        await settled()
        assert slow.has_synced()


@pytest.mark.conformance("SI-01", "SI-17", "SI-25", "SI-26", "SI-27", "SI-28", "SI-29")
@pytest.mark.parametrize(
    ("period", "periods", "expected", "log"),
    [
        (1, [0, 2, 3, 2.5], [[], [2, 4, 6], [3, 6], [3, 6]], ""),
        (10, [None], [[10, 20, 30, 40, 50, 60]], ""),
        (0.01, [0.5], [list(range(1, 66))], "raised to 1 s"),
        (60, [None, 7], [[63], [7, 14, 21, 28, 35, 42, 49, 56, 63]], ""),
        (0, [5], [[]], "it gets no resyncs"),
    ],
    ids=["rounded up to the check", "default", "below a second", "shorter than the informer's", "no resync"],
)
async def test_handlers_are_resynced_by_their_periods(
    period: float, periods: list[float | None], expected: list[list[int]], log: str, caplog: pytest.LogCaptureFixture
) -> None:
    informer = SharedIndexInformer(Collection("a"), period)
    handlers = [Clocked() for _ in periods]
    for handler, own in zip(handlers, periods, strict=True):
        informer.add_event_handler(handler, resync_period=own)
    async with informer:
        await asyncio.sleep(6.5 if period == 1 else 65.5)
    assert [handler.at for handler in handlers] == expected
    assert log in caplog.text


@pytest.mark.parametrize(
    "functions",
    [
        {"on_add": lambda obj, initial: None},
        {"on_add": lambda: None},
        {"on_update": lambda new: None},
        {"on_delete": lambda old, new: None},
    ],
)
async def test_function_with_another_signature_is_refused(functions: dict[str, Any]) -> None:
    informer = SharedIndexInformer(Collection())
    with pytest.raises(UsageError, match=rf"handler\.{next(iter(functions))}\(.*cannot be called with its arguments: "):
        informer.add_event_handler(**functions)


class Clocked(Recorder):
    """Records the times of updates."""

    def __init__(self) -> None:
        super().__init__()
        self.at: list[int] = []
        self._start = asyncio.get_running_loop().time()

    async def on_update(self, old: object, new: object) -> None:
        assert old is new
        self.at.append(round(asyncio.get_running_loop().time() - self._start))


@pytest.mark.conformance("SI-26")
async def test_shorter_period_after_the_start_is_raised(caplog: pytest.LogCaptureFixture) -> None:
    async with informer_of("a", resync_period=10) as (_, informer, _):
        late = Clocked()
        informer.add_event_handler(late, resync_period=2)
        await asyncio.sleep(35)
    assert late.at == [20, 30]  # at 10 s it was not quite due, since it was added just after the start
    assert "its informer is running already" in caplog.text


@pytest.mark.conformance("SI-29", "SI-30", "WEAK-21", "WEAK-16")
@pytest.mark.parametrize("resync", [0, 30])
async def test_relist_does_not_deliver_unchanged_objects(resync: float) -> None:
    handler = Recorder()
    async with informer_of("a", "b", "c", resync_period=resync) as (pods, informer, received):
        informer.add_event_handler(handler, resync_period=0)
        pods.end_watches()
        pods.put("b")
        pods.delete("c")
        pods.unseen()
        await asyncio.sleep(20)
    # The order of different objects is undefined.
    assert [sorted(each[3:]) for each in (received, handler.received)] == [["tombstone c 3", "update b 2 4"]] * 2


@pytest.mark.conformance("SI-29")
async def test_changes_reach_all_handlers_during_a_resync() -> None:
    handler = Recorder()
    async with informer_of("a", "b", resync_period=10) as (pods, informer, _):
        informer.add_event_handler(handler, resync_period=0)
        await asyncio.sleep(10)
        pods.put("a")
        await asyncio.sleep(9)
    assert handler.received == ["add! a 1", "add! b 2", "update a 1 3"]


@pytest.mark.parametrize("period", [-1, float("nan"), "60"])
def test_invalid_period_is_refused(period: float) -> None:
    with pytest.raises(UsageError, match="resync_period must be 0"):
        SharedIndexInformer(Collection(), period)
