"""Measure the parts of the way of an event, from the chunk to the handler: each subject adds one part.

All subjects read the same 20,000 events. The cost of a part is the difference to the previous subject.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from clients import Stopwatch, measure_informer, pods_informer
from harness import Question, run

from aioinformer import DeltaFIFO, HttpTransport
from aioinformer.queue import Delta, DeltaType
from aioinformer.reflector.value_stream import ValueStream
from aioinformer.reflector.watch_decoder import decode_watch_line
from aioinformer.reflector.watch_events import RecordDecoder
from aioinformer.transport import HttpRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness import Figures

_EVENTS = 20_000


async def follow(url: str, take: Callable[[bytes], int], accept: str = "") -> Figures:
    """Measure reading the watch with `take`, which processes a chunk and returns the number of complete events."""
    import aiohttp

    async with HttpTransport(url) as transport, aiohttp.ClientSession() as session:
        headers = {"Accept": accept} if accept else {}
        request = HttpRequest("/api/v1/pods", (("watch", "true"), ("resourceVersion", "1")), headers=headers)
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
    """Measure reading bytes and counting lines."""
    return await follow(url, lambda chunk: chunk.count(b"\n"))


async def lines(url: str) -> Figures:
    """Measure splitting lines, too."""
    values = ValueStream()
    return await follow(url, lambda chunk: len(_taken(values, chunk, len)))


def _taken(values: ValueStream, chunk: bytes, decode: Callable[[bytes], Any]) -> list[Any]:
    """Return the values that a chunk completes, without pauses."""
    return [value for value in values.read(chunk, decode, _refuse) if value is not None]


def _refuse(value: bytes) -> Any:
    raise ValueError("events of this benchmark must be small enough to be read in one step")


async def records(url: str, accept: str = "") -> Figures:
    """Measure decoding metadata into records, too."""
    values, decode = ValueStream(), partial(decode_watch_line, decode=RecordDecoder().from_watch)

    def take(chunk: bytes) -> int:
        return len(_taken(values, chunk, decode))

    return await follow(url, take, accept)


async def queued(url: str) -> Figures:
    """Measure passing deltas through the queue, too."""
    values, decode = ValueStream(), partial(decode_watch_line, decode=RecordDecoder().from_watch)
    queue: DeltaFIFO[Any] = DeltaFIFO(lambda record: str(record.key))
    left: list[int] = []

    def take(chunk: bytes) -> int:
        events = _taken(values, chunk, decode)
        deltas = [Delta(DeltaType.UPDATED, event.record) for event in events]
        step = queue.apply(deltas)
        _finish(step)
        if deltas:
            _finish(drain())
        return len(events)

    async def drain() -> None:
        async with queue.batch() as batch:
            for step in batch:
                if step is not None:
                    left.append(len(step[0]))

    return await follow(url, take)


def _finish(coroutine: Any) -> None:
    """Run a coroutine that waits for nothing; each pause continues immediately."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        pass


async def cached(url: str) -> Figures:
    """Measure the whole informer without handlers: protocol and store, too."""
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
    "How is the cost of an event distributed, from the chunk to the handler?",
    {
        "transport": transport_alone,
        "+ lines": lines,
        "+ records": records,
        "+ queue": queued,
        "+ protocol and store": cached,
        "+ handler (everything)": measure_informer,
    },
)

if __name__ == "__main__":
    run(QUESTION)
