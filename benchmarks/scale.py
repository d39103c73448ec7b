"""Check that time and memory grow at most in proportion to objects and handlers.

The load server has 200,000 pods; subjects with fewer pods request a part of them.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from clients import Flood, Stopwatch, measure_informer, pods_informer, rss_kib, synced_figures
from harness import Offer, Question, Requirement, run
from ticker import Ticker

from aioinformer import HttpTransport

if TYPE_CHECKING:
    from harness import Figures

_EVENTS = 20_000
_SIZES = (25_000, 50_000, 100_000, 200_000)
_HANDLERS = (1, 3, 10, 30, 100)


async def objects(url: str, *, pods: int) -> Figures:
    """Measure an informer with a number of pods: list and events."""
    figures = await measure_informer(url, events=_EVENTS, first=pods)
    return figures | _per_object(figures)


async def handlers(url: str, *, count: int) -> Figures:
    """Measure a number of handlers, until the last one has received all events."""
    flood = Flood(_EVENTS, count)

    async def on_update(old: Any, new: Any) -> None:
        flood.count()

    async with HttpTransport(url) as transport:
        informer = pods_informer(transport, first=_SIZES[0])
        registrations = [informer.add_event_handler(on_update=on_update) for _ in range(count)]
        async with informer:
            for registration in registrations:
                await registration.wait_for_sync()
            figures = await flood.run(url)
    return figures | {"watch_us_per_notification": figures["watch_us_per_event"] / count}


async def both(url: str, *, pods: int, count: int) -> Figures:
    """Measure a number of pods and handlers together, and how long the event loop is blocked."""
    flood = Flood(_EVENTS, count)

    async def on_add(obj: Any) -> None: ...

    async def on_update(old: Any, new: Any) -> None:
        flood.count()

    async with Ticker() as ticker:
        await asyncio.sleep(1)
        idle = ticker.summary()["blocked_max"]
        async with HttpTransport(url) as transport:
            informer = pods_informer(transport, first=pods)
            registrations = [informer.add_event_handler(on_add=on_add, on_update=on_update) for _ in range(count)]
            before, watch = rss_kib(), Stopwatch()
            await _restart(ticker)
            async with informer:
                for registration in registrations:
                    await registration.wait_for_sync()
                list_blocked = ticker.summary()["blocked_max"]
                figures = synced_figures(watch, before, len(informer.get_indexer()))
                await _restart(ticker)
                figures |= await flood.run(url)
                burst_blocked = ticker.summary()["blocked_max"]
    return figures | {
        **_per_object(figures),
        "watch_us_per_notification": figures["watch_us_per_event"] / count,
        "list_blocked_max_ms": max(0.0, list_blocked - idle),
        "burst_blocked_max_ms": max(0.0, burst_blocked - idle),
    }


def _per_object(figures: Figures) -> Figures:
    each = 1e6 / figures["objects"]
    return {
        "sync_us_per_object": figures["sync_cpu_seconds"] * each,
        "sync_user_us_per_object": figures["sync_user_seconds"] * each,
    }


async def _restart(ticker: Ticker) -> None:
    """Restart the ticker: the time for which the benchmark itself blocked the loop does not count."""
    await asyncio.sleep(0.005)
    ticker.clear()


_MANY, _MANY_SMALL = f"{_SIZES[-1]:,} pods, 100 handlers", f"{_SIZES[0]:,} pods, 100 handlers"

QUESTION = Question(
    "scale",
    "Do time and memory grow at most in proportion to objects and handlers?",
    {
        **{f"{pods:,} pods": partial(objects, pods=pods) for pods in _SIZES},
        **{f"{count} handler{'s' if count > 1 else ''}": partial(handlers, count=count) for count in _HANDLERS},
        _MANY_SMALL: partial(both, pods=_SIZES[0], count=100),
        _MANY: partial(both, pods=_SIZES[-1], count=100),
    },
    Offer(pods=_SIZES[-1], events=_EVENTS, spread=_SIZES[0]),
    requirements=[
        Requirement(
            "CPU per listed object, ratio of 200,000 to 25,000 pods",
            "200,000 pods",
            "sync_us_per_object",
            1.25,
            "25,000 pods",
        ),
        Requirement(
            "user time per listed object, ratio of 200,000 to 25,000 pods",
            "200,000 pods",
            "sync_user_us_per_object",
            1.25,
            "25,000 pods",
        ),
        Requirement(
            "memory per object, ratio of 200,000 to 25,000 pods", "200,000 pods", "kib_per_object", 1.1, "25,000 pods"
        ),
        Requirement(
            "CPU per event, ratio of 200,000 to 25,000 pods", "200,000 pods", "watch_us_per_event", 1.25, "25,000 pods"
        ),
        Requirement(
            "CPU per notification, ratio of 100 handlers to 1",
            "100 handlers",
            "watch_us_per_notification",
            1.0,
            "1 handler",
        ),
        Requirement(
            "with 100 handlers: CPU per listed object, ratio of 200,000 to 25,000 pods",
            _MANY,
            "sync_us_per_object",
            1.25,
            _MANY_SMALL,
        ),
        Requirement(
            "with 100 handlers: memory per object, ratio of 200,000 to 25,000 pods",
            _MANY,
            "kib_per_object",
            1.1,
            _MANY_SMALL,
        ),
        Requirement(
            "with 100 handlers: CPU per event, ratio of 200,000 to 25,000 pods",
            _MANY,
            "watch_us_per_event",
            1.25,
            _MANY_SMALL,
        ),
        Requirement(
            "200,000 pods, 100 handlers: longest time blocked during the list, ms", _MANY, "list_blocked_max_ms", 10.0
        ),
        Requirement(
            "200,000 pods, 100 handlers: longest time blocked during events, ms", _MANY, "burst_blocked_max_ms", 10.0
        ),
    ],
    rounds=2,
    seconds=180.0,
)

if __name__ == "__main__":
    run(QUESTION)
