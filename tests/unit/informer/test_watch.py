"""RetryWatcher, InformerWatch, and waiting for the end of a handler."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import RunOptions, SharedIndexInformer
from aioinformer.errors import ApiError, DecodeError, Expired, InformerStopped, UsageError
from aioinformer.informer import InformerWatch, ObjectEvent, RetryWatcher, WatchClosed, until
from tests.support.collection import Collection, cut, line
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def text_of(event: ObjectEvent[Any]) -> str:
    return f"{event.type} {event.object.metadata.name} {event.object.metadata.resource_version}"


async def take(events: InformerWatch[Any], count: int) -> list[str]:
    async with asyncio.timeout(10):
        return [text_of(await anext(events)) for _ in range(count)]


@pytest.mark.conformance("TW-07")
async def test_cached_objects_come_before_changes() -> None:
    pods = Collection("a")
    async with SharedIndexInformer(pods) as informer, InformerWatch(informer) as events:
        assert await take(events, 1) == ["ADDED a 1"]
        pods.put("a")
        pods.put("b")
        await settled()
        pods.delete("a")
        assert await take(events, 3) == ["MODIFIED a 2", "ADDED b 3", "DELETED a 4"]


@pytest.mark.conformance("TW-07")
async def test_missed_deletion_has_the_last_known_state() -> None:
    pods = Collection("a", "b")
    options = RunOptions(streaming_list=False)
    async with SharedIndexInformer(pods, options=options) as informer, InformerWatch(informer) as events:
        await take(events, 2)
        pods.unseen()
        pods.delete("a")
        pods.expire_watches()
        [last] = await take(events, 1)
    assert last.startswith("DELETED a")


@pytest.mark.conformance("TW-07")
async def test_events_end_with_the_informer() -> None:
    informer, other = SharedIndexInformer(Collection("a")), SharedIndexInformer(Collection("a"))
    async with InformerWatch(informer) as events:
        async with informer:
            await take(events, 1)
            async with InformerWatch(informer) as left:
                await take(left, 1)
            assert [event async for event in left] == []
            with pytest.raises(UsageError, match="entered once; create another one"):
                await left.__aenter__()
        assert [event async for event in events] == []
        assert [event async for event in events] == []
        with pytest.raises(WatchClosed):
            await until(events, lambda event: True)
    with pytest.raises(InformerStopped):
        async with InformerWatch(informer):
            pass
    async with InformerWatch(other) as events:
        other.retire()
        assert [event async for event in events] == []


@pytest.mark.conformance("SI-23")
async def test_removed_handler_ends_with_its_last_call() -> None:
    ended: list[str] = []

    async def on_add(obj: Any) -> None:
        await asyncio.sleep(60)
        ended.append(obj.metadata.name)

    informer = SharedIndexInformer(Collection("a", "b"))
    never_called, registration, last = (informer.add_event_handler(on_add=on_add) for _ in range(3))
    informer.remove_event_handler(never_called)
    async with asyncio.timeout(1):
        await never_called.wait_for_end()
    async with informer:
        await informer.wait_for_sync()
        await settled()
        informer.remove_event_handler(registration)
        waiting = asyncio.create_task(last.wait_for_end())
        assert ended == []
        await registration.wait_for_end()
        assert ended == ["a"] * 2
        await settled()
        assert not waiting.done()
    await waiting


@pytest.mark.conformance("SI-23")
async def test_handler_cannot_wait_for_its_own_end() -> None:
    errors: list[str] = []

    async def wait(obj: Any) -> None:
        informer.remove_event_handler(registration)
        try:
            await registration.wait_for_end()
        except UsageError as error:
            errors.append(str(error))

    informer = SharedIndexInformer(Collection("a"))
    registration = informer.add_event_handler(on_add=wait)
    async with informer:
        await informer.wait_for_sync()
        await settled()
    assert len(errors) == 1
    assert "cannot wait for its own end" in errors[0]


class Following:
    """Runs a watcher in a task, and records its events."""

    def __init__(self, pods: Collection, version: str = "1") -> None:
        self.watcher: RetryWatcher[Any] = RetryWatcher(pods, version, random=lambda: 0.0)
        self.events: list[str] = []

    async def run(self) -> None:
        async with self.watcher as events:
            async for event in events:
                self.events.append(text_of(event))

    async def __aenter__(self) -> Following:
        self.task = asyncio.create_task(self.run())
        await settled()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})


@pytest.mark.conformance("TW-01")
async def test_events_after_the_version_come_once_in_order() -> None:
    pods = Collection("a")
    pods.put("b")
    async with Following(pods) as following:
        pods.put("a")
        pods.delete("b")
        await settled()
    assert following.events == ["ADDED b 2", "MODIFIED a 3", "DELETED b 4"]
    assert following.watcher.resource_version == "4"


@pytest.mark.conformance("TW-01")
@pytest.mark.parametrize("end", ["clean", "cut", "garbage", "500", "504", "silence"])
async def test_watch_resumes_after_the_last_event(end: str) -> None:
    pods = Collection("a")
    async with Following(pods) as following:
        pods.put("b")
        await settled()
        match end:
            case "clean" | "cut":
                pods.end_watches(None if end == "clean" else cut())
            case "garbage":
                pods.send(b"<html>\n")
            case "silence":
                await asyncio.sleep(91)
            case status:
                pods.send(line("ERROR", {"kind": "Status", "code": int(status), "reason": "x"}))
        pods.put("c")
        await asyncio.sleep(5)
    assert following.events == ["ADDED b 2", "ADDED c 3"]
    assert [options.resource_version for options in pods.requests][:2] == ["1", "2"]


@pytest.mark.conformance("TW-01")
async def test_bookmarks_advance_the_version_silently() -> None:
    pods = Collection("a")
    async with Following(pods) as following:
        version = pods.bookmark()
        await settled()
        pods.end_watches()
        await asyncio.sleep(5)
    assert following.events == []
    assert pods.requests[0].allow_watch_bookmarks
    assert pods.requests[-1].resource_version == version


@pytest.mark.conformance("TW-01")
async def test_watches_that_end_at_once_are_opened_once_a_second() -> None:
    pods = Collection("a")
    for _ in range(100):
        pods.refusals.append(cut())
    async with Following(pods):
        await asyncio.sleep(10.5)
    assert len(pods.requests) == 11


@pytest.mark.conformance("TW-01")
async def test_retry_after_is_respected() -> None:
    pods = Collection("a")
    pods.refuse(429, "TooManyRequests", Retry_After="30")
    async with Following(pods):
        await asyncio.sleep(29)
        assert len(pods.requests) == 1
        await asyncio.sleep(2)
        assert len(pods.requests) == 2


@pytest.mark.conformance("TW-02", "TW-03", "WEAK-28")
@pytest.mark.parametrize("when", ["in the stream", "at the start"])
async def test_expired_version_ends_the_watch(when: str) -> None:
    pods = Collection("a")
    if when == "at the start":
        pods.refuse(410, "Expired")
    async with Following(pods) as following:
        pods.expire_watches()
        await settled()
        with pytest.raises(Expired):
            await following.task


@pytest.mark.conformance("TW-02")
@pytest.mark.parametrize("status", [401, 403])
async def test_unauthorized_and_forbidden_end_the_watch(status: int) -> None:
    pods = Collection("a")
    pods.refuse(status, "No")
    async with Following(pods) as following:
        with pytest.raises(ApiError) as caught:
            await following.task
    assert caught.value.status == status


@pytest.mark.conformance("TW-02")
@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (line("ADDED", {"metadata": {"name": "x"}}), "without resourceVersion"),
        (line("SURPRISE", {}), "unknown type 'SURPRISE'"),
        (line("ADDED", {"metadata": {"name": 7}}), "cannot be read"),
    ],
)
async def test_unrecoverable_events_end_the_watch(sent: bytes, message: str) -> None:
    pods = Collection("a")
    async with Following(pods) as following:
        pods.send(sent)
        with pytest.raises(DecodeError, match=message):
            await following.task


@pytest.mark.parametrize("version", ["", "0"])
@pytest.mark.conformance("TW-01")
def test_invalid_version_is_refused(version: str) -> None:
    with pytest.raises(UsageError, match="is not a version to begin at"):
        RetryWatcher(Collection(), version)


@pytest.mark.conformance("TW-04")
async def test_early_exit_closes_the_connection() -> None:
    pods = Collection("a")
    pods.put("b")
    async with RetryWatcher(pods, "1") as events:
        async for _ in events:
            break
        assert pods.open_watches == 1
    assert pods.open_watches == 0
    await events.aclose()
    assert [event async for event in events] == []


async def numbers(*values: int) -> AsyncIterator[int]:
    for value in values:
        yield value


@pytest.mark.conformance("TW-05")
async def test_one_event_may_satisfy_several_conditions() -> None:
    events = numbers(5, 1, 2, 7, 9)
    assert await until(events, lambda n: n == 1, lambda n: n > 4, lambda n: n > 6) == 7
    assert [number async for number in events] == [9]


@pytest.mark.conformance("TW-05")
async def test_events_that_end_early_raise() -> None:
    with pytest.raises(WatchClosed, match="before 1 of 2 conditions"):
        await until(numbers(1, 2), lambda n: n == 1, lambda n: n == 3)
    with pytest.raises(UsageError, match="needs at least one condition"):
        await until(numbers(1))


@pytest.mark.conformance("TW-05", "TW-08")
async def test_wait_with_a_timeout_survives_reconnects() -> None:
    pods = Collection("a")

    async def meanwhile() -> None:
        await asyncio.sleep(3)
        pods.end_watches(cut())
        pods.put("a", spec={"nodeName": "n"})

    other = asyncio.create_task(meanwhile())
    async with RetryWatcher(pods, "1") as events, asyncio.timeout(60):
        event = await until(events, lambda event: event.object.spec.node_name == "n")
    assert text_of(event) == "MODIFIED a 2"
    await other
    async with RetryWatcher(pods, "2") as events:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await until(events, lambda event: True)


async def test_events_have_objects_of_the_user_model() -> None:
    pods = Collection("a")
    pods.put("b")
    async with RetryWatcher(pods, "1", decoder=lambda raw: len(raw)) as events:
        event = await anext(events)
    assert isinstance(event.object, int)
