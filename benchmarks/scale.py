"""Do time and memory grow with objects and handlers, and no faster? What does one slow handler cost the others?

One server has 200,000 pods; whoever wants fewer asks for a part of them.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from clients import Flood, measure_informer, pods_informer
from harness import Offer, Question, Requirement, answer

from aioinformer.transport.http import HttpTransport

if TYPE_CHECKING:
    from harness import Figures

_EVENTS = 20_000
_SIZES = (25_000, 50_000, 100_000, 200_000)
_HANDLERS = (1, 3, 10, 30, 100)


async def objects(url: str, *, pods: int) -> Figures:
    """A cache of so many pods, filled and followed."""
    figures = await measure_informer(url, events=_EVENTS, first=pods)
    return figures | {"sync_us_per_object": figures["sync_cpu_seconds"] / figures["objects"] * 1e6}


async def handlers(url: str, *, count: int, slow: bool = False) -> Figures:
    """So many handlers, and perhaps a slow one; until the last of the others has been told everything."""
    flood = Flood(_EVENTS, count)

    async def on_update(old: Any, new: Any) -> None:
        flood.count()

    async def dawdle(old: Any, new: Any) -> None:
        await asyncio.sleep(0.01)

    async with HttpTransport(url) as transport:
        informer = pods_informer(transport, first=_SIZES[0])
        registrations = [informer.add_event_handler(on_update=on_update) for _ in range(count)]
        if slow:
            informer.add_event_handler(on_update=dawdle)
        async with informer:
            for registration in registrations:
                await registration.wait_for_sync()
            figures = await flood.run(url)
    return figures | {"watch_us_per_notification": figures["watch_us_per_event"] / count}


QUESTION = Question(
    "scale",
    "Do time and memory grow with objects and handlers, and no faster?",
    {
        **{f"{pods:,} pods": partial(objects, pods=pods) for pods in _SIZES},
        **{f"{count} handlers": partial(handlers, count=count) for count in _HANDLERS},
        "11 handlers": partial(handlers, count=11),
        "10 handlers and a slow one": partial(handlers, count=10, slow=True),
    },
    Offer(pods=_SIZES[-1], events=_EVENTS, spread=_SIZES[0]),
    requirements=[
        Requirement(
            "CPU of the list for an object, 200,000 to 25,000",
            "200,000 pods",
            "sync_us_per_object",
            1.25,
            "25,000 pods",
        ),
        Requirement("memory of an object, 200,000 to 25,000", "200,000 pods", "kib_per_object", 1.1, "25,000 pods"),
        Requirement("CPU of an event, 200,000 to 25,000", "200,000 pods", "watch_us_per_event", 1.25, "25,000 pods"),
        Requirement(
            "CPU of a notification, 100 handlers to 1", "100 handlers", "watch_us_per_notification", 1.0, "1 handlers"
        ),
        Requirement(
            "CPU of an event beside a slow handler, to without",
            "10 handlers and a slow one",
            "watch_us_per_event",
            1.1,
            "10 handlers",
        ),
        Requirement(
            "CPU of an event beside a slow handler, to beside a quick one",
            "10 handlers and a slow one",
            "watch_us_per_event",
            1.05,
            "11 handlers",
        ),
    ],
    rounds=2,
    seconds=120.0,
)

if __name__ == "__main__":
    answer(QUESTION)
