"""Measure what a slow handler costs ten other handlers.

The notifications of a slow handler wait in its buffer. They retain old states of objects that are cached no longer, so
memory grows. To separate this cost, another subject has a fast handler that retains everything it receives. The kernel
provides new memory page by page, and fills each page with zeros, which is system time. User time shows the work of the
process itself.
"""

from __future__ import annotations

import asyncio
import resource
from functools import partial
from typing import TYPE_CHECKING, Any

from clients import Flood, pods_informer
from harness import Offer, Question, Requirement, run

from aioinformer.transport.http import HttpTransport

if TYPE_CHECKING:
    from harness import Figures

_EVENTS, _FAST = 20_000, 10
_WITHOUT, _SLOW, _RETAINING = "10 handlers", "10 handlers and a slow one", "10 handlers and one that retains everything"
_COMPRESSED, _COMPRESSED_SLOW = "compressed, 10 handlers", "compressed, 10 handlers and a slow one"


async def measure(url: str, *, more: str = "", storage: str = "bytes") -> Figures:
    """Measure ten handlers, and one more if given, until the ten have received all events."""
    flood = Flood(_EVENTS, _FAST)
    retained: list[tuple[Any, Any]] = []

    async def on_update(old: Any, new: Any) -> None:
        flood.count()

    async def on_update_slowly(old: Any, new: Any) -> None:
        await asyncio.sleep(0.01)

    async def retain(old: Any, new: Any) -> None:
        retained.append((old, new))

    async with HttpTransport(url) as transport:
        informer = pods_informer(transport, storage=storage)
        registrations = [informer.add_event_handler(on_update=on_update) for _ in range(_FAST)]
        if more:
            informer.add_event_handler(on_update=on_update_slowly if more == "slow" else retain)
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
    "What does a slow handler cost ten other handlers?",
    {
        _WITHOUT: measure,
        _SLOW: partial(measure, more="slow"),
        _RETAINING: partial(measure, more="retaining"),
        _COMPRESSED: partial(measure, storage="compressed"),
        _COMPRESSED_SLOW: partial(measure, more="slow", storage="compressed"),
    },
    Offer(pods=20_000, events=_EVENTS),
    requirements=[
        Requirement("CPU per event with a slow handler, ratio to without", _SLOW, "watch_us_per_event", 1.1, _WITHOUT),
        Requirement(
            "user time per event with a slow handler, ratio to without",
            _SLOW,
            "watch_user_us_per_event",
            1.05,
            _WITHOUT,
        ),
        Requirement(
            "CPU per event with a slow handler, ratio to one that retains everything",
            _SLOW,
            "watch_us_per_event",
            1.05,
            _RETAINING,
        ),
        Requirement(
            "compressed: CPU per event with a slow handler, ratio to without",
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
    run(QUESTION)
