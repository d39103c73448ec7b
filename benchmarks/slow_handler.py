"""What does one slow handler cost the ten others?

What a slow handler has not been told yet waits for it, old states of objects included, which nobody else has any more:
so memory grows. What that alone costs shows beside a handler that is quick, and keeps all it is told. The kernel hands
out memory that a process never had a page at a time, and fills each with zeros: that is system time. User time is what
is calculated.
"""

from __future__ import annotations

import asyncio
import resource
from functools import partial
from typing import TYPE_CHECKING, Any

from clients import Flood, pods_informer
from harness import Offer, Question, Requirement, answer

from aioinformer.transport.http import HttpTransport

if TYPE_CHECKING:
    from harness import Figures

_EVENTS, _QUICK = 20_000, 10
_WITHOUT, _SLOW, _KEEPING = "10 handlers", "10 handlers and a slow one", "10 handlers and one that keeps all"
_COMPRESSED, _COMPRESSED_SLOW = "compressed, 10 handlers", "compressed, 10 handlers and a slow one"


async def measure(url: str, *, more: str = "", storage: str = "bytes") -> Figures:
    """Ten handlers, and perhaps one more; until the last of the ten has been told everything."""
    flood = Flood(_EVENTS, _QUICK)
    kept: list[tuple[Any, Any]] = []

    async def on_update(old: Any, new: Any) -> None:
        flood.count()

    async def dawdle(old: Any, new: Any) -> None:
        await asyncio.sleep(0.01)

    async def keep(old: Any, new: Any) -> None:
        kept.append((old, new))

    async with HttpTransport(url) as transport:
        informer = pods_informer(transport, storage=storage)
        registrations = [informer.add_event_handler(on_update=on_update) for _ in range(_QUICK)]
        if more:
            informer.add_event_handler(on_update=dawdle if more == "slow" else keep)
        async with informer:
            for registration in registrations:
                await registration.wait_for_sync()
            before = resource.getrusage(resource.RUSAGE_SELF)
            figures = await flood.run(url)
            after = resource.getrusage(resource.RUSAGE_SELF)
    return figures | {
        "watch_system_us_per_event": (after.ru_stime - before.ru_stime) / _EVENTS * 1e6,
        "new_pages": after.ru_minflt - before.ru_minflt,
    }


QUESTION = Question(
    "slow_handler",
    "What does one slow handler cost the ten others?",
    {
        _WITHOUT: measure,
        _SLOW: partial(measure, more="slow"),
        _KEEPING: partial(measure, more="keeping"),
        _COMPRESSED: partial(measure, storage="compressed"),
        _COMPRESSED_SLOW: partial(measure, more="slow", storage="compressed"),
    },
    Offer(pods=20_000, events=_EVENTS),
    requirements=[
        Requirement("CPU of an event beside a slow handler, to without", _SLOW, "watch_us_per_event", 1.1, _WITHOUT),
        Requirement(
            "user time of an event beside a slow handler, to without", _SLOW, "watch_user_us_per_event", 1.05, _WITHOUT
        ),
        Requirement(
            "CPU of an event beside a slow handler, to beside one that keeps all",
            _SLOW,
            "watch_us_per_event",
            1.05,
            _KEEPING,
        ),
        Requirement(
            "compressed: CPU of an event beside a slow handler, to without",
            _COMPRESSED_SLOW,
            "watch_us_per_event",
            1.1,
            _COMPRESSED,
        ),
    ],
    rounds=7,
    seconds=60.0,
)

if __name__ == "__main__":
    answer(QUESTION)
