"""Measure single events: their CPU time at even rates, and the latency from the server's write to the handler.

    python benchmarks/lone_events.py --rates 4000 --rounds 1 --only floor --only aioinformer

The server speaks TLS and sends each event by a write of its own, so each event is one chunk and one TLS record. At an
even rate, each wake-up of the client finds one event, unless the client is late. Rate 0 is as fast as the client reads.
For each rate, the server sends some events first; then the CPU time of the whole process is measured, from the call of
the handler for one event to the call for the last one. The uneven share is that of the events that the server sent less
than half an interval after the one before, because it was late. The waited share is that of the time in which the
client was ready to run, and another process had its core. If one of them is not small, the machine was busy, and events
that come together cost less: then the rate is measured again, at most twice.

Server and client read the same monotonic clock: the server before it writes an event, the client when its handler is
called. `--rates` implies `--dry-run`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from functools import partial
from importlib.util import find_spec
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import aiohttp
import floor
from clients import pods_informer
from harness import Offer, Question, Requirement, run
from peers import Peers
from ticker import quantile

from aioinformer import HttpTransport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness import Figures, Measure

has_uvloop = find_spec("uvloop") is not None
_RATES = "100,1000,4000,0"
_CHOSEN = "LONE_EVENTS_RATES"
#: By rate: the number of events before the measurement, and of measured events.
EVENTS = {100: (50, 1_000), 1_000: (500, 6_000), 4_000: (2_000, 12_000), 0: (5_000, 40_000)}


#: A rate is measured again if one of the shares is not below this.
_BUSY, _ATTEMPTS = 0.1, 3


def _rates() -> list[int]:
    return [int(rate) for rate in os.environ.get(_CHOSEN, _RATES).split(",")]


class Arrivals:
    """Notes the time of each call of a handler, and the CPU time of the measured part.

    Attributes:
        times: of each call, in seconds of the monotonic clock.
        cpu: the CPU time from the call for the last event before the measured ones to the last call.
        finished: the CPU time of the process at the last call.
    """

    def __init__(self) -> None:
        self.begin(0, 0)

    def begin(self, before: int, measured: int) -> None:
        """Expect some events that are not measured, and some that are."""
        self._first, self._last = before, before + measured
        self.times: list[float] = []
        self.cpu = self.finished = 0.0
        self._done = asyncio.Event()

    def note(self) -> None:
        """Note one call of the handler."""
        self.times.append(perf_counter())
        count = len(self.times)
        if count == self._first:
            self.cpu = process_time()
        elif count == self._last:
            self.finished = process_time()
            self.cpu = self.finished - self.cpu
            self._done.set()

    async def wait(self) -> None:
        """Wait until the handler was called for all expected events."""
        async with asyncio.timeout(120):
            await self._done.wait()

    async def run(self, url: str) -> Figures:
        """Let the server send events at each rate, and return the figures."""
        figures: Figures = {}
        async with aiohttp.ClientSession() as session:
            for rate in _rates():
                for _ in range(_ATTEMPTS):
                    found = await self._run(session, url, rate)
                    if max(found.get(f"{kind}_share_{rate}", 0.0) for kind in ("uneven", "waited")) < _BUSY:
                        break
                figures |= found
        return figures

    async def _run(self, session: aiohttp.ClientSession, url: str, rate: int) -> Figures:
        before, measured = EVENTS[rate]
        name = str(rate) if rate else "flood"
        self.begin(before, measured)
        server_cpu = await _get(session, f"{url}/cpu")
        waited, begin = _waited(), perf_counter()
        async with session.post(f"{url}/go?rate={rate}&events={before + measured}"):
            pass
        await self.wait()
        waited = (_waited() - waited) / (perf_counter() - begin)
        server_cpu = await _get(session, f"{url}/cpu") - server_cpu
        figures = {f"cpu_us_{name}": self.cpu / measured * 1e6}
        wall = self.times[-1] - self.times[before - 1]
        figures[f"server_us_{name}"] = server_cpu / (before + measured) * 1e6
        if not rate:
            return figures | {"events_per_second_flood": measured / wall}
        sent = await _get(session, f"{url}/times")
        delays = [(called - at) * 1000 for called, at in zip(self.times, sent, strict=True)][before:]
        close = sum(sent[at] - sent[at - 1] < 0.5 / rate for at in range(before, len(sent)))
        return figures | {
            f"p50_ms_{name}": quantile(delays, 0.5),
            f"p99_ms_{name}": quantile(delays, 0.99),
            f"uneven_share_{name}": close / measured,
            f"waited_share_{name}": waited,
        }


def _waited() -> float:
    """Return the seconds in which this thread waited for a core, 0 if the system does not count them."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


async def _get(session: aiohttp.ClientSession, url: str) -> Any:
    async with session.get(url) as response:
        return await response.json()


async def measure_floor(url: str) -> Figures:
    """Measure the floor."""
    store: floor.Store = {}
    synced, arrivals = asyncio.Event(), Arrivals()

    async def handler(raw: bytes) -> None:
        if synced.is_set():
            arrivals.note()

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        task = asyncio.create_task(floor.watch(session, url, "sendInitialEvents=true", store, handler, synced.set))
        await synced.wait()
        figures = await arrivals.run(url)
        task.cancel()
        await asyncio.wait({task})
    return figures


async def measure_informer(url: str, *, handlers: int = 1, **options: Any) -> Figures:
    """Measure the informer. The last of the handlers notes the events."""
    arrivals = Arrivals()

    async def silent(old: Any, new: Any) -> None: ...

    async def on_update(old: Any, new: Any) -> None:
        arrivals.note()

    async with HttpTransport(url) as transport:
        informer = pods_informer(transport, **options)
        for _ in range(handlers - 1):
            informer.add_event_handler(on_update=silent)
        registration = informer.add_event_handler(on_update=on_update)
        async with informer:
            await registration.wait_for_sync()
            return await arrivals.run(url)


class OnUvloop:
    """A measurement that runs on uvloop."""

    def __init__(self, measure: Callable[[str], Awaitable[Figures]]) -> None:
        self._measure = measure

    def __call__(self, url: str) -> Awaitable[Figures]:
        return self._measure(url)

    @staticmethod
    def loop_factory() -> asyncio.AbstractEventLoop:
        """Return a new event loop of uvloop."""
        import uvloop

        return uvloop.new_event_loop()


_metadata = partial(measure_informer, storage="metadata")
_OWN: dict[str, Measure | list[str]] = {
    "floor": measure_floor,
    "aioinformer": measure_informer,
    "aioinformer, ten handlers": partial(measure_informer, handlers=10),
    "aioinformer, metadata": _metadata,
}
if has_uvloop:
    _OWN |= {
        "floor, uvloop": OnUvloop(measure_floor),
        "aioinformer, uvloop": OnUvloop(measure_informer),
        "aioinformer, ten handlers, uvloop": OnUvloop(partial(measure_informer, handlers=10)),
        "aioinformer, metadata, uvloop": OnUvloop(_metadata),
    }
_PROTOBUF, _METADATA = "client-go typed, protobuf", "client-go metadata, protobuf"


def _requirements() -> list[Requirement]:
    one, ten = "aioinformer", "aioinformer, ten handlers"
    limits = {"100": 1.4, "1000": 1.1, "4000": 0.9}
    return [
        *(Requirement(f"CPU at {n}/s, ratio to the floor", one, f"cpu_us_{n}", x, "floor") for n, x in limits.items()),
        *(
            Requirement(f"CPU at {n}/s with ten handlers, ratio to the floor", ten, f"cpu_us_{n}", x * 1.5, "floor")
            for n, x in limits.items()
        ),
        Requirement("CPU in a flood, ratio to the floor", one, "cpu_us_flood", 1.0, "floor"),
        Requirement("CPU at 1000/s, ratio to client-go with protobuf", one, "cpu_us_1000", 1.0, _PROTOBUF),
        Requirement("CPU at 4000/s, ratio to client-go with protobuf", one, "cpu_us_4000", 1.0, _PROTOBUF),
        Requirement("CPU at 4000/s, ratio to client-go's metadata informer", one, "cpu_us_4000", 1.1, _METADATA),
        *(
            Requirement(f"p50 at {n}/s above the floor's, ms", one, f"p50_ms_{n}", x, "floor", difference=True)
            for n, x in {"100": 0.3, "1000": 1.0, "4000": 1.0}.items()
        ),
        *(
            Requirement(f"p99 at {n}/s above the floor's, ms", one, f"p99_ms_{n}", 2.0, "floor", difference=True)
            for n in limits
        ),
    ]


def question() -> Question:
    """Return the question with the peers that can be built. The rates are the chosen ones."""
    peers = Peers()
    only = [sys.argv[at + 1] for at, each in enumerate(sys.argv[:-1]) if each == "--only"]
    subjects = dict(_OWN)
    if not only or any(name.startswith("client-go") for name in only):
        subjects |= peers.lone(";".join(f"{rate}:{EVENTS[rate][0]}:{EVENTS[rate][1]}" for rate in _rates()))
    return Question(
        "lone_events",
        "How much CPU time does an event cost that comes by itself over TLS, and how late is its handler called?",
        subjects,
        Offer(forms="json,metadata", protobuf_tool=peers.protobuf_tool, event_by_event=True),
        _requirements(),
        rounds=3,
        seconds=900.0,
        notes=peers.notes,
    )


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--rates", help=f"rates in events per second, of {_RATES}")
    chosen, rest = parser.parse_known_args()
    if chosen.rates:
        os.environ[_CHOSEN] = chosen.rates
        rest.append("--dry-run")
    sys.argv[1:] = rest
    run(question())


if __name__ == "__main__":
    # The process of a single measurement does not build the peers.
    run(Question("lone_events", "", _OWN)) if "--subject" in sys.argv else main()
