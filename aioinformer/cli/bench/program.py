"""`aioinformer bench`: list, watch and latency of the user's own API server, by objects that it makes and removes.

It makes a namespace with a name of its own, fills it with ConfigMaps, and follows them with an informer:

1. *list*: from the start of the informer until its handler has been told of everything; then the same *in pages*, by
   another informer, which begins to watch only when there is something to catch up with.
2. *watch*: every object is written once more, as fast as the server takes it, until the last is told. On most servers
   this is what writes cost.
3. *catch up*: the second informer watches: the server has all events ready, and sends them as fast as they are read.
4. *latency*: writes at an even pace; from the moment a write is sent, and from the one it is answered, until it is
   told. What the server takes to commit is in the first, and hardly in the second, which may be negative: a watch can
   be faster than the answer.

The namespace is removed whatever happens, and the server removes what is in it.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from aioinformer.cli.bench.objects import LABEL, TIMEOUT, ConfigMaps, HeldWatch, Told, at_once, own_namespace
from aioinformer.cli.connecting import connected
from aioinformer.cli.options import ServerOptions
from aioinformer.cli.program import Program
from aioinformer.cli.serve import listening
from aioinformer.concurrency import collapsed
from aioinformer.errors import AioinformerError, UsageError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.resources import catalog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aioinformer.transport import Transport

logger = get_logger("aioinformer.cli")


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What to measure.

    Attributes:
        server: which server; the embedded one if nothing is said.
        objects: how many to make.
        size: bytes of data in each.
        rate: writes a second, for the latency.
        seconds: how long to write at that rate.
        as_json: print one JSON object instead of lines.
    """

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
            raise UsageError(f"--size must be at most 900000, not {self.size}: a ConfigMap holds 1 MiB")


class BenchProgram(Program):
    """Measures, prints, and ends.

    Args:
        options: what to measure.
        write: takes each line of stdout.
    """

    def __init__(self, options: BenchOptions, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._options = options
        self._write = write
        self._report: dict[str, Any] = {}

    def interrupt(self) -> None:
        self.end(1)

    async def run(self) -> int:
        work = asyncio.create_task(self._work(), name="bench")
        return await self.unwind(work, await self.until_end(work, None, 0))

    async def _work(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                transport = await stack.enter_async_context(server_of(self._options.server))
                namespace = await stack.enter_async_context(own_namespace(transport))
                await self._measure(transport, namespace)
        except Exception as error:
            cause = collapsed(error)
            if isinstance(cause, UsageError) or not isinstance(cause, (AioinformerError, TimeoutError)):
                raise
            logger.error("%s", str(cause) or f"what was written was not told within {TIMEOUT:.0f} s")
            self.end(1)
        else:
            if self._options.as_json:
                self._write(json.dumps(self._report).encode() + b"\n")
            self.end(0)

    async def _measure(self, transport: Transport, namespace: str) -> None:
        options = self._options
        maps, told = ConfigMaps(transport, namespace, options.size), Told()
        numbers = range(options.objects)
        begin = perf_counter()
        await at_once(maps.create(number) for number in numbers)
        self._tell("create", objects=options.objects, seconds=perf_counter() - begin)

        informer = _informer(transport, namespace)
        registration = informer.add_event_handler(on_update=told.on_update)
        begin = perf_counter()
        async with informer:
            async with asyncio.timeout(TIMEOUT):
                await registration.wait_for_sync()
            self._tell("list", objects=len(informer.get_indexer()), seconds=perf_counter() - begin)
            await self._watch(transport, namespace, maps, told)
            await self._latency(maps, told)

    async def _watch(self, transport: Transport, namespace: str, maps: ConfigMaps, told: Told) -> None:
        held, behind = HeldWatch(transport), Told()
        informer = _informer(held, namespace, ReflectorOptions(streaming_list=False))
        registration = informer.add_event_handler(on_update=behind.on_update)
        begin = perf_counter()
        async with informer:
            async with asyncio.timeout(TIMEOUT):
                await registration.wait_for_sync()
            self._tell("list in pages", objects=len(informer.get_indexer()), seconds=perf_counter() - begin)

            begin, cpu = perf_counter(), process_time()
            stamps = {number: f"watch-{number}" for number in range(self._options.objects)}
            await at_once(maps.stamp(number, stamp) for number, stamp in stamps.items())
            await told.all_of(set(stamps.values()))
            self._tell("watch", events=len(stamps), seconds=perf_counter() - begin, cpu_seconds=process_time() - cpu)

            begin, cpu = perf_counter(), process_time()
            held.let_go()
            await behind.all_of(set(stamps.values()))
            self._tell("catch up", events=len(stamps), seconds=perf_counter() - begin, cpu_seconds=process_time() - cpu)

    async def _latency(self, maps: ConfigMaps, told: Told) -> None:
        options = self._options
        sent: dict[str, float] = {}
        answered: dict[str, float] = {}

        async def write(number: int, stamp: str) -> None:
            sent[stamp] = perf_counter()
            await maps.stamp(number, stamp)
            answered[stamp] = perf_counter()

        begin = perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for turn in range(max(1, round(options.rate * options.seconds))):
                await asyncio.sleep(begin + turn / options.rate - perf_counter())
                tasks.create_task(write(turn % options.objects, f"latency-{turn}"), name=f"bench: write {turn}")
        # Two writes of one object may be told as one: then only the later is waited for.
        latest = {int(stamp.split("-")[1]) % options.objects: stamp for stamp in sent}
        await told.all_of(set(latest.values()))
        seen = [stamp for stamp in sent if stamp in told.times]
        self._tell("latency from sent", events=len(seen), **_milliseconds(sent, told.times, seen))
        self._tell("latency from answered", events=len(seen), **_milliseconds(answered, told.times, seen))

    def _tell(self, what: str, **figures: float) -> None:
        amount = figures.get("objects") or figures.get("events")
        if amount and "seconds" in figures:
            figures["per_second"] = amount / max(figures["seconds"], 1e-9)
        rounded = {name: round(value, 4) for name, value in figures.items()}
        self._report[what.replace(" ", "_")] = rounded
        if not self._options.as_json:
            shown = "  ".join(f"{name} {value:g}" for name, value in rounded.items())
            self._write(f"{what:<21}  {shown}\n".encode())


def _informer(
    transport: Transport, namespace: str, options: ReflectorOptions | None = None
) -> SharedIndexInformer[Any]:
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
    """A transport to the server meant; to an embedded one if none is named.

    Raises:
        UsageError: as `connected`.
    """
    if options != ServerOptions():
        async with connected(options) as (transport, _):
            yield transport
        return
    from aioinformer.testing import ApiServer

    server = ApiServer(guarded=True)
    async with listening(server), connected(ServerOptions(server=server.url)) as (transport, _):
        logger.info("no server was named: this is about the embedded one, in this very process")
        yield transport
