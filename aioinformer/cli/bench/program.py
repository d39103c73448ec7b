"""The benchmark: list, watch and latency of an informer on your own API server, with objects that it creates.

It creates a temporary namespace with ConfigMaps, and watches them with an informer:

1. *list*: the time from the start of the informer until all objects are delivered; then the same *in pages*, with a
   second informer, whose watch is delayed.
2. *watch*: all objects are written once more, as fast as the server accepts it, until the last update is delivered. On
   most servers this measures the cost of the writes.
3. *catch up*: the second informer starts to watch. The server has all events ready and sends them as fast as they are
   read.
4. *latency*: writes at a steady rate; the time from sending a write, and from its response, until its delivery. The
   first includes the time of the commit. The second can be negative: the watch event can arrive before the response.

At the end the namespace is deleted, and the server deletes the objects in it.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from aioinformer.cli.bench.objects import (
    LABEL,
    TIMEOUT,
    BlockedWatches,
    ConfigMaps,
    Deliveries,
    run_concurrently,
    temporary_namespace,
)
from aioinformer.cli.connecting import connected
from aioinformer.cli.options import ServerOptions
from aioinformer.cli.program import Program
from aioinformer.cli.serve import listening
from aioinformer.concurrency import TaskGroup, create_task
from aioinformer.errors import AioinformerError, UsageError, collapsed
from aioinformer.informer.options import RunOptions
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.resources import catalog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aioinformer.transport import Transport

logger = get_logger("aioinformer.cli")


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """The options of the benchmark."""

    server: ServerOptions = field(default_factory=ServerOptions)
    objects: int = 500
    size: int = 4096
    rate: float = 50.0
    seconds: float = 10.0
    as_json: bool = False

    def __post_init__(self) -> None:
        for name, lowest in (("objects", 1), ("size", 0)):
            if getattr(self, name) < lowest:
                raise UsageError(f"--{name} must be at least {lowest}, not {getattr(self, name)}")
        for name in ("rate", "seconds"):
            if not 0 < getattr(self, name) < float("inf"):
                raise UsageError(f"--{name} must be more than 0, not {getattr(self, name):g}")
        if self.size > 900_000:
            raise UsageError(f"--size must be at most 900000, not {self.size}: a ConfigMap may have 1 MiB")


class BenchProgram(Program):
    """One run of the benchmark."""

    def __init__(self, options: BenchOptions, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._options = options
        self._write = write
        self._results: dict[str, Any] = {}

    def interrupt(self) -> None:
        self.end(1)

    async def run(self) -> int:
        work = create_task(self._work(), name="bench")
        return await self.stop(work, await self.wait_for_end(work, None, 0))

    async def _work(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                transport = await stack.enter_async_context(server_of(self._options.server))
                namespace = await stack.enter_async_context(temporary_namespace(transport))
                await self._measure(transport, namespace)
        except Exception as error:
            cause = collapsed(error)
            if isinstance(cause, UsageError) or not isinstance(cause, (AioinformerError, TimeoutError)):
                raise
            logger.error("%s", str(cause) or f"the informer did not receive all objects within {TIMEOUT:.0f} s")
            self.end(1)
        else:
            if self._options.as_json:
                self._write(json.dumps(self._results).encode() + b"\n")
            self.end(0)

    async def _measure(self, transport: Transport, namespace: str) -> None:
        options = self._options
        maps = ConfigMaps(transport, namespace, options.size)
        delivered = Deliveries()
        numbers = range(options.objects)
        begin = perf_counter()
        await run_concurrently(maps.create(number) for number in numbers)
        self._report("create", objects=options.objects, seconds=perf_counter() - begin)

        informer = _informer(transport, namespace)
        registration = informer.add_event_handler(on_update=delivered.on_update)
        begin = perf_counter()
        async with informer:
            async with asyncio.timeout(TIMEOUT):
                await registration.wait_for_sync()
            self._report("list", objects=len(informer.get_indexer()), seconds=perf_counter() - begin)
            await self._measure_watch(transport, namespace, maps, delivered)
            await self._measure_latency(maps, delivered)

    async def _measure_watch(
        self, transport: Transport, namespace: str, maps: ConfigMaps, delivered: Deliveries
    ) -> None:
        blocked = BlockedWatches(transport)
        delivered_late = Deliveries()
        informer = _informer(blocked, namespace, RunOptions(streaming_list=False))
        registration = informer.add_event_handler(on_update=delivered_late.on_update)
        begin = perf_counter()
        async with informer:
            async with asyncio.timeout(TIMEOUT):
                await registration.wait_for_sync()
            self._report("list in pages", objects=len(informer.get_indexer()), seconds=perf_counter() - begin)

            begin = perf_counter()
            cpu = process_time()
            stamps = {number: f"watch-{number}" for number in range(self._options.objects)}
            await run_concurrently(maps.stamp(number, stamp) for number, stamp in stamps.items())
            await delivered.wait_for(set(stamps.values()))
            self._report("watch", events=len(stamps), seconds=perf_counter() - begin, cpu_seconds=process_time() - cpu)

            begin = perf_counter()
            cpu = process_time()
            blocked.unblock()
            await delivered_late.wait_for(set(stamps.values()))
            seconds = perf_counter() - begin
            cpu_seconds = process_time() - cpu
            self._report("catch up", events=len(stamps), seconds=seconds, cpu_seconds=cpu_seconds)

    async def _measure_latency(self, maps: ConfigMaps, delivered: Deliveries) -> None:
        options = self._options
        sent: dict[str, float] = {}
        answered: dict[str, float] = {}

        async def write(number: int, stamp: str) -> None:
            sent[stamp] = perf_counter()
            await maps.stamp(number, stamp)
            answered[stamp] = perf_counter()

        begin = perf_counter()
        async with TaskGroup() as tasks:
            for turn in range(max(1, round(options.rate * options.seconds))):
                await asyncio.sleep(begin + turn / options.rate - perf_counter())
                tasks.create_task(write(turn % options.objects, f"latency-{turn}"), name=f"bench: write {turn}")
        # Two writes of one object may be delivered as one update, so wait only for the last write of each.
        latest = {int(stamp.split("-")[1]) % options.objects: stamp for stamp in sent}
        await delivered.wait_for(set(latest.values()))
        seen = [stamp for stamp in sent if stamp in delivered.times]
        self._report("latency from sent", events=len(seen), **_milliseconds(sent, delivered.times, seen))
        self._report("latency from answered", events=len(seen), **_milliseconds(answered, delivered.times, seen))

    def _report(self, what: str, **figures: float) -> None:
        amount = figures.get("objects") or figures.get("events")
        if amount and "seconds" in figures:
            figures["per_second"] = amount / max(figures["seconds"], 1e-9)
        rounded = {name: round(value, 4) for name, value in figures.items()}
        self._results[what.replace(" ", "_")] = rounded
        if not self._options.as_json:
            shown = "  ".join(f"{name} {value:g}" for name, value in rounded.items())
            self._write(f"{what:<21}  {shown}\n".encode())


def _informer(transport: Transport, namespace: str, options: RunOptions | None = None) -> SharedIndexInformer[Any]:
    resource = catalog.find("", "v1", "configmaps")
    assert resource is not None, "ConfigMaps are built in"
    return SharedIndexInformer(ListWatch(transport, resource, namespace, LABEL), options=options)


def _milliseconds(since: dict[str, float], until: dict[str, float], stamps: list[str]) -> dict[str, float]:
    waits = sorted((until[stamp] - since[stamp]) * 1000 for stamp in stamps)
    shares = {"p50_ms": 0.5, "p99_ms": 0.99}
    found = {name: waits[min(len(waits) - 1, int(len(waits) * share))] for name, share in shares.items()}
    return found | {"max_ms": waits[-1]}


@asynccontextmanager
async def server_of(options: ServerOptions) -> AsyncIterator[Transport]:
    """Provide a transport to the server of the options, or to an embedded server if the options name none.

    Raises:
        UsageError: a file of the configuration cannot be used, or the embedded server cannot listen.
    """
    if options != ServerOptions():
        async with connected(options) as (transport, _):
            yield transport
        return
    from aioinformer.testing import ApiServer

    server = ApiServer(guarded=True)
    async with listening(server), connected(ServerOptions(server=server.url)) as (transport, _):
        logger.info("no --kubeconfig or --server was given: measuring the embedded server in this process")
        yield transport
