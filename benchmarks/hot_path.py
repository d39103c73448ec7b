"""Where do the microseconds of an event go, from the chunk to the handler? Each subject does one thing more.

All read the same 20,000 events; what a part costs is the difference to the subject before it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from clients import Stopwatch, measure_informer, pods_informer
from harness import Question, answer

from aioinformer.queue.delta_fifo import DeltaFIFO
from aioinformer.queue.deltas import Delta, DeltaType
from aioinformer.reflector.watch_events import Intake, decode_watch_line
from aioinformer.transport import Request
from aioinformer.transport.framing import ValueStream
from aioinformer.transport.http import HttpTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness import Figures

_EVENTS = 20_000


async def follow(url: str, take: Callable[[bytes], int], accept: str = "") -> Figures:
    """Reads the watch; `take` is given each chunk and says how many events were complete in it."""
    import aiohttp

    async with HttpTransport(url) as transport, aiohttp.ClientSession() as session:
        headers = {"Accept": accept} if accept else {}
        request = Request("/api/v1/pods", (("watch", "true"), ("resourceVersion", "1")), headers=headers)
        response = await transport.request(request)

        async def go() -> None:
            async with session.post(f"{url}/go"):
                pass

        going = asyncio.create_task(go())
        await asyncio.sleep(0)
        watch, seen = Stopwatch(), 0
        chunks = response.chunks()
        async for chunk in chunks:
            seen += take(chunk)
            if seen >= _EVENTS:
                break
        cpu = watch.cpu
        await going
        await response.close()
    return {"watch_us_per_event": cpu / _EVENTS * 1e6}


async def transport_alone(url: str) -> Figures:
    """Bytes are read and counted."""
    return await follow(url, lambda chunk: chunk.count(b"\n"))


async def lines(url: str) -> Figures:
    """They are cut into lines."""
    values = ValueStream()
    return await follow(url, lambda chunk: len(_taken(values, chunk, len)))


def _taken(values: ValueStream, chunk: bytes, decode: Callable[[bytes], Any]) -> list[Any]:
    """What a chunk completes, without the pauses."""
    return [value for value in values.read(chunk, decode, _refuse) if value is not None]


def _refuse(value: bytes) -> Any:
    raise ValueError("no event of this benchmark is so heavy that it is read in steps")


async def records(url: str, accept: str = "") -> Figures:
    """Metadata is decoded, and a record made."""
    values, decode = ValueStream(), partial(decode_watch_line, intake=Intake().changed)

    def take(chunk: bytes) -> int:
        return len(_taken(values, chunk, decode))

    return await follow(url, take, accept)


async def queued(url: str) -> Figures:
    """Deltas go through the queue."""
    values, decode = ValueStream(), partial(decode_watch_line, intake=Intake().changed)
    queue: DeltaFIFO[Any] = DeltaFIFO(lambda record: str(record.key))
    left: list[int] = []

    def take(chunk: bytes) -> int:
        events = _taken(values, chunk, decode)
        deltas = [Delta(DeltaType.UPDATED, event.record) for event in events]
        step = queue.apply(deltas)
        _finish(step)
        if deltas:
            _finish(queue.pop_batch(lambda popped, initial: left.append(len(popped))))
        return len(events)

    return await follow(url, take)


def _finish(coroutine: Any) -> None:
    """Runs what does not have to wait; what lets go of the loop goes on at once."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        pass


async def cached(url: str) -> Figures:
    """The whole informer, without any handler: the protocol and the store besides."""
    async with HttpTransport(url) as transport:
        informer = pods_informer(transport)
        async with informer:
            await informer.wait_for_sync()
            watch = Stopwatch()
            import aiohttp

            async with aiohttp.ClientSession() as session, session.post(f"{url}/go"):
                pass
            await informer.wait_for_resource_version(str(20_000 + 1_000_000 + _EVENTS - 1))
            return {"watch_us_per_event": watch.cpu / _EVENTS * 1e6}


QUESTION = Question(
    "hot_path",
    "Where do the microseconds of an event go, from the chunk to the handler?",
    {
        "transport": transport_alone,
        "and lines": lines,
        "and records": records,
        "and queue": queued,
        "and protocol and store": cached,
        "and a handler: all of it": measure_informer,
    },
)

if __name__ == "__main__":
    answer(QUESTION)
