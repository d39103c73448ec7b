"""The low-level controller: a reflector fills a queue, a process loop empties it.

Not a controller in the sense of "reconcile": it brings a *cache* in line with the server, nothing else. client-go
calls it Controller (CTL-01 to CTL-05); what reconciles stands on top of informers.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from aioinformer.cache.objects.record import Decode, Record, decode_record
from aioinformer.errors import EXHAUSTION, FIFOClosed, ProcessingError, UsageError
from aioinformer.logs import get_logger
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.reflector import Reflector, WatchErrorHandler
from aioinformer.reflector.relist import Quarantine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer.cache.objects.record import Record
    from aioinformer.metrics import InformerCounters
    from aioinformer.queue.delta_fifo import PopProcessFunc, Queue
    from aioinformer.queue.deltas import Deltas
    from aioinformer.reflector.listwatch import ListerWatcher
    from aioinformer.reflector.state import InformerState

T = TypeVar("T")

_log = get_logger("aioinformer.informer")

#: Seconds between a batch that was not processed and the next.
_BREATHER = 1.0


@dataclass(slots=True)
class CacheControllerConfig:
    """What a `CacheController` is made of.

    Attributes:
        queue: between reflector and process loop.
        lister_watcher: what to list and watch.
        process: takes the deltas of one key, and whether they belong to the initial list.
        flush: called before the loop gets a turn: what `process` collected goes out.
        on_version: told the version up to which everything has been processed.
        name: for tasks and logs.
        options: how to list and watch.
        decode: makes a record of an object's bytes.
        on_arrival: looks at each new record first.
        known: the cached record of a key.
        resync_period: in seconds, 0 for never.
        should_resync: asked before each resync.
        watch_error_handler: told of every failure.
        on_state: told of every change of the state.
        before_read: awaited before more is read.
        counters: counts lists and watches there.
        quarantine: remembers the objects that do not decode.
    """

    queue: Queue[Record]
    lister_watcher: ListerWatcher[Any]
    process: PopProcessFunc[Record]
    flush: Callable[[], None] = lambda: None
    on_version: Callable[[str], None] = lambda version: None
    name: str = ""
    options: ReflectorOptions = field(default_factory=ReflectorOptions)
    decode: Decode = decode_record
    on_arrival: Callable[[Record], Record] | None = None
    known: Callable[[str], Record | None] = lambda key: None
    resync_period: float = 0.0
    should_resync: Callable[[], bool] = lambda: True
    watch_error_handler: WatchErrorHandler | None = None
    on_state: Callable[[InformerState], Any] = lambda state: None
    before_read: Callable[[], Awaitable[None]] | None = None
    counters: InformerCounters | None = None
    quarantine: Quarantine = field(default_factory=Quarantine)


class CacheController:
    """Runs a reflector and a process loop side by side, until cancelled."""

    def __init__(self, config: CacheControllerConfig) -> None:
        self._config = config
        self._started = False
        self.reflector = Reflector(
            config.lister_watcher,
            config.queue,
            name=config.name,
            options=config.options,
            decode=config.decode,
            on_arrival=config.on_arrival,
            known=config.known,
            resync_period=config.resync_period,
            should_resync=config.should_resync,
            watch_error_handler=config.watch_error_handler,
            on_state=config.on_state,
            before_read=config.before_read,
            counters=config.counters,
            quarantine=config.quarantine,
        )

    async def run(self) -> None:
        """Runs until cancelled; what is queued then is not processed any more (CTL-04).

        Raises:
            UsageError: it ran before.
        """
        if self._started:
            raise UsageError("a cache controller runs once; make a new one")
        self._started = True
        name = self.reflector.name
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.reflector.run(), name=name)
            tasks.create_task(self._process_loop(), name=f"{name}: process loop")

    def has_synced(self) -> bool:
        """Whether everything of the first list has been popped."""
        return self._config.queue.has_synced()

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which everything has been received; "" before the first list."""
        return self.reflector.last_sync_resource_version

    async def _process_loop(self) -> None:
        config = self._config
        synced = False
        while True:
            try:
                version = await config.queue.pop_batch(self._process, config.flush)
                if config.quarantine.leaving:
                    config.quarantine.settle()
                config.on_version(version)
                synced = synced or config.queue.has_synced()
            except FIFOClosed:
                return
            except EXHAUSTION as error:
                _log.exception("%s: processing raised; the collection is listed again", self.reflector.name)
                self._lack(error, initial=not synced)
                await asyncio.sleep(_BREATHER)

    def _process(self, deltas: Deltas[Record], is_in_initial_list: bool) -> None:
        try:
            self._config.process(deltas, is_in_initial_list)
        except Exception as error:
            # The key is lost until the list that follows; the rest goes on (CTL-03).
            _log.exception("%s: processing %s raised", self.reflector.name, deltas[-1].object.key)
            self._lack(error, initial=is_in_initial_list)

    def _lack(self, error: Exception, *, initial: bool) -> None:
        self._config.queue.mark_incomplete(initial=initial)
        self.reflector.relist(ProcessingError(f"what was received could not be processed: {type(error).__name__}"))
