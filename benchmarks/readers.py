"""Compare the reader of bodies that the transport once had with aiohttp's parser, which replaced it.

The reader decoded chunks below aiohttp. Both are in the commit that is measured here, `reader=` selects one. One
process runs an informer for each, and each has a load server of its own, which writes events one by one. Short runs
alternate in random order, so that a change in the speed of the machine meets both. A pair is one run of each; its ratio
is CPU time with aiohttp's parser to CPU time with the reader. The reader was to be kept if it saved 5 % in plaintext or
over TLS, at 1,000 events a second or in a flood.

    python benchmarks/readers.py --minutes 8
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import ssl
import subprocess
import sys
from contextlib import AsyncExitStack, ExitStack
from datetime import UTC, datetime
from statistics import median
from time import perf_counter, process_time
from typing import Any

from commits import package_at
from harness import RESULTS, Offer, Server, machine, on_core

#: The last commit that has both.
_COMMIT = "de09eb1c"
_OWN, _PARSER = "own reader", "aiohttp's parser"
_OPTIONS: dict[str, dict[str, Any]] = {
    _OWN: {"reader": "lean"},
    _PARSER: {"reader": "aiohttp", "read_bufsize": 2 * 1024 * 1024},
    f"{_PARSER}, 1 MiB": {"reader": "aiohttp", "read_bufsize": 1024 * 1024},
}
_WIRES = ("plaintext", "TLS")
#: By rate: the number of events before the measurement, and of measured events.
_EVENTS = {1000: (40, 360), 0: (200, 2000)}
_FIGURES = {1000: "cpu_us_1000", 0: "cpu_us_flood"}


class Subject:
    """An informer that counts its events and measures their CPU time."""

    def __init__(self, plaintext: str) -> None:
        self._plaintext = plaintext
        self._first = self._last = self._count = 0
        self._cpu = 0.0
        self._done = asyncio.Event()

    async def note(self, old: Any, new: Any) -> None:
        """Count an event."""
        self._count += 1
        if self._count == self._first:
            self._cpu = process_time()
        elif self._count == self._last:
            self._cpu = process_time() - self._cpu
            self._done.set()

    async def run(self, session: Any, rate: int) -> float:
        """Let the server send events; return the microseconds of CPU time for each."""
        before, measured = _EVENTS[rate]
        self._count, self._first, self._last = 0, before, before + measured
        self._done.clear()
        async with session.post(f"{self._plaintext}/go?rate={rate}&events={before + measured}"):
            pass
        async with asyncio.timeout(120):
            await self._done.wait()
        return self._cpu / measured * 1e6


async def measure(servers: list[tuple[str, str]], minutes: float) -> None:
    """Print the figures of all rounds as JSON. Servers are URLs, each with the file of its authority."""
    import aiohttp
    from clients import pods_informer

    from aioinformer.transport.http import HttpTransport

    rounds: list[dict[str, dict[str, float]]] = []
    subjects: dict[tuple[str, str], Subject] = {}
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        for wire in _WIRES:
            for name, options in _OPTIONS.items():
                url, authority = servers.pop()
                trust = ssl.create_default_context(cafile=authority)
                async with session.get(f"{url}/plaintext", ssl=trust) as response:
                    plaintext = str(await response.json())
                transport = await stack.enter_async_context(
                    HttpTransport(url if wire == "TLS" else plaintext, ssl=trust if wire == "TLS" else None, **options)
                )
                subject = subjects[wire, name] = Subject(plaintext)
                informer = pods_informer(transport)
                registration = informer.add_event_handler(on_update=subject.note)
                await stack.enter_async_context(informer)
                await registration.wait_for_sync()
        end = perf_counter() + 60 * minutes
        while perf_counter() < end:
            figures: dict[str, dict[str, float]] = {f"{name}, {wire}": {} for wire, name in subjects}
            for wire in _WIRES:
                for rate, figure in _FIGURES.items():
                    for name in random.sample(list(_OPTIONS), len(_OPTIONS)):
                        figures[f"{name}, {wire}"][figure] = await subjects[wire, name].run(session, rate)
            rounds.append(figures)
    print(json.dumps(rounds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=8.0, help="time for all rounds")
    parser.add_argument("--servers", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.servers:
        folder = package_at(_COMMIT)
        sys.path[:0] = [str(folder / "benchmarks"), str(folder)]
        asyncio.run(measure(json.loads(arguments.servers), arguments.minutes))
        return
    begin = perf_counter()
    offer = Offer(pods=500, events=sum(_EVENTS[0]), event_by_event=True)
    with ExitStack() as stack:
        made = [Server(offer) for _ in _WIRES for _ in _OPTIONS]
        servers = [(stack.enter_context(each), each.environment["SSL_CERT_FILE"]) for each in made]
        command = [sys.executable, __file__, "--minutes", str(arguments.minutes), "--servers", json.dumps(servers)]
        done = subprocess.run(on_core(0, command), stdout=subprocess.PIPE, text=True, check=True)
    rounds = json.loads(done.stdout.splitlines()[-1])
    result = {
        "question": "Does a reader of bodies below aiohttp save CPU time?",
        "machine": machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": round(perf_counter() - begin),
        "pods": offer.pods,
        "events": offer.events,
        "rounds": len(rounds),
        "notes": _saved(rounds),
        "requirements": [],
        "medians": {
            name: {figure: round(median(each[name][figure] for each in rounds), 3) for figure in figures}
            for name, figures in rounds[0].items()
        },
        "figures": rounds,
    }
    print(json.dumps({key: result[key] for key in ("rounds", "notes", "medians")}, indent=1))
    (RESULTS / "readers.json").write_text(json.dumps(result, indent=1) + "\n")


def _saved(rounds: list[dict[str, dict[str, float]]]) -> list[str]:
    """Return sentences with the share of the CPU time that the reader saves, as the median of all pairs."""
    found = []
    for figure, rate in (("cpu_us_1000", "At 1,000 events a second"), ("cpu_us_flood", "In a flood")):
        saved = {
            wire: median(1 - each[f"{_OWN}, {wire}"][figure] / each[f"{_PARSER}, {wire}"][figure] for each in rounds)
            for wire in _WIRES
        }
        shares = f"{saved['plaintext']:.1%} in plaintext and {saved['TLS']:.1%} over TLS"
        found.append(f"{rate}, the reader saves {shares}, as the median of {len(rounds)} pairs.")
    return found


if __name__ == "__main__":
    main()
