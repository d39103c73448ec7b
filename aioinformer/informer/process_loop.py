"""The process loop: a reflector fills a queue, and the loop empties it into a cache.

`CacheController` runs the two. The name is client-go's: it brings a *cache* in line with the server and nothing else.
Controllers that reconcile use informers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.cache.objects.record import Record
from aioinformer.concurrency import Slicer, TaskGroup, is_cancelled
from aioinformer.errors import FIFOClosed, ProcessingError, UsageError
from aioinformer.functions import origin
from aioinformer.logs import get_logger
from aioinformer.metrics.counters import InformerCounters
from aioinformer.queue.delta_fifo import KnownObjects, PopProcessFunc, Queue
from aioinformer.reflector.reflector import Reflector
from aioinformer.resources.versions import version_number

if TYPE_CHECKING:
    from aioinformer.queue.deltas import Deltas
    from aioinformer.queue.fifo import Step
    from aioinformer.reflector.listwatch import ListerWatcher

_log = get_logger("aioinformer.informer")

#: Seconds between a batch that could not be processed and the next.
_PAUSE: Final = 1.0
#: A batch is logged if more items than this waited, and it took longer than this for each, or for all.
_DEEP: Final = 10
_SLOW_EACH: Final = 0.1
_SLOW_BATCH: Final = 1.0


class _Stop(Exception):
    """Ends the task group of a controller."""


class CacheControllerConfig(msgspec.Struct):
    """The parts of a `CacheController`.

    Attributes:
        reflector: fills the queue.
        queue: between the reflector and the process loop.
        process: is called with the deltas of one key, and whether they belong to the initial list.
        flush: is called before the event loop gets a turn, and at the end of each batch: deliver what `process`
            collected.
        on_version: is called after each batch with the version that has been reached; "" if it is unknown.
        on_listed: is called when all of the first list has been processed; and after a failure, when all that was
            received has been processed again.
        counters: counts the time of batches; None to count nothing.
    """

    reflector: Reflector
    queue: Queue[Record]
    process: PopProcessFunc[Record]
    flush: Callable[[], None] = lambda: None
    on_version: Callable[[str], None] = lambda version: None
    on_listed: Callable[[], None] = lambda: None
    counters: InformerCounters | None = None


class CacheController:
    """Runs a reflector and a process loop side by side, until it is cancelled or stopped.

    Attributes:
        reflector: as given.
        has_listed: whether all of the first list has been processed.
    """

    def __init__(self, config: CacheControllerConfig) -> None:
        self.reflector = config.reflector
        self._config = config
        #: Counts the seconds of a batch; None to count nothing.
        self._observe = None if config.counters is None else config.counters.processing.observe
        self._quarantine = config.reflector.quarantine
        self._started = False
        self._stopped = False
        #: Ends the wait of `run`.
        self._stopping: asyncio.Future[None] | None = None
        self.has_listed = False

    async def run(self) -> None:
        """Run until cancelled or stopped. Deltas that are queued then are not processed.

        Raises:
            UsageError: it ran before.
        """
        if self._started:
            raise UsageError("a cache controller runs once; make a new one")
        self._started = True
        if self._stopped:
            return
        self._stopping = asyncio.get_running_loop().create_future()
        name = self.reflector.name
        task = asyncio.current_task()
        assert task is not None
        cancellations = task.cancelling()
        try:
            # However often `stop` is called and this task is cancelled, the group cancels the reflector once, which
            # then closes its response undisturbed.
            async with TaskGroup() as tasks:
                tasks.create_task(self.reflector.run(), name=name)
                tasks.create_task(self._process_loop(), name=f"{name}: process loop")
                await self._stopping
                raise _Stop
        except* _Stop:
            pass
        if cancellations:
            # Since Python 3.13, a group that ends with an error repeats a cancellation that its caller had withdrawn.
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        if task.cancelling() > cancellations:
            raise asyncio.CancelledError  # which the group has dropped, since it was ending already

    def stop(self) -> None:
        """Make `run` return, now or when it is called."""
        self._stopped = True
        if self._stopping is not None and not self._stopping.done():
            self._stopping.set_result(None)

    def has_synced(self) -> bool:
        """Return whether everything of the first list has been popped."""
        return self._config.queue.has_synced()

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which everything has been received; "" before the first list."""
        return self.reflector.last_sync_resource_version

    async def _process_loop(self) -> None:
        queue = self._config.queue
        flush = self._config.flush
        slicer = Slicer()
        while True:
            try:
                async with queue.batch(self._process_for_producer) as batch:
                    # A batch of one item, the most frequent by far, needs no slices.
                    began = perf_counter()
                    sliced = batch.size > 1
                    if sliced and batch.waited:
                        slicer.start(began)
                    try:
                        for step in batch:
                            if step is not None:
                                self._process(*step)
                            if (sliced or step is None) and slicer.count_step():
                                flush()
                                await slicer.yield_to_loop()
                    finally:
                        flush()
                        self._measure(batch.size, began)
                    version = queue.version
                self._reach(version)
            except FIFOClosed:
                return
            except Exception as error:
                if is_cancelled():
                    raise asyncio.CancelledError from error  # which `error` has replaced
                self._fail(error)
                await asyncio.sleep(_PAUSE)

    def _process_for_producer(self, steps: Iterable[Step[Record]]) -> None:
        """Process a few items in the step that enqueued them, while the process loop waits."""
        began = perf_counter()
        try:
            try:
                for step in steps:
                    if step is not None:
                        self._process(*step)
            finally:
                self._config.flush()
                if self._observe is not None:
                    self._observe(perf_counter() - began)
            self._reach(self._config.queue.version)
        except Exception as error:
            self._fail(error)

    def _process(self, deltas: Deltas[Record], is_in_initial_list: bool) -> None:
        try:
            self._config.process(deltas, is_in_initial_list)
        except Exception as error:
            # The object is missing until the relist; the other objects are processed.
            self._log_failure(error, f" {deltas[-1].object.key}")
            self._relist(error, initial=is_in_initial_list)

    def _reach(self, version: str) -> None:
        """Note that everything up to a version has been processed."""
        if self._quarantine.leaving:
            self._quarantine.count_batch()
        self._config.on_version(version)
        if not self.has_listed and self._config.queue.has_synced():
            self.has_listed = True
            try:
                self._config.on_listed()
            except BaseException:
                self.has_listed = False  # so that it is called again
                raise
        if self.reflector.unprocessed and version:
            self._config.on_listed()
            self.reflector.mark_processed()

    def _fail(self, error: Exception) -> None:
        self._relist(error, initial=not self.has_listed)  # before the log, which may lack memory or stack, too
        self._log_failure(error)

    def _log_failure(self, error: Exception, key: str = "") -> None:
        name = self.reflector.name
        subject = f"{name}: processing ({origin(error)})"
        message = "%s: processing%s raised; the reflector relists"
        self.reflector.log_error(subject, error, message, name, key)

    def _relist(self, error: BaseException, *, initial: bool) -> None:
        self._config.queue.mark_incomplete(initial=initial)
        self.reflector.relist(ProcessingError(f"what was received could not be processed: {type(error).__name__}"))

    def _measure(self, size: int, began: float) -> None:
        """Count the time of a batch, and log it if many items waited and took long."""
        if size <= _DEEP and self._observe is None:
            return
        seconds = perf_counter() - began
        if self._observe is not None:
            self._observe(seconds)
        if size > _DEEP and seconds > min(_SLOW_EACH * size, _SLOW_BATCH):
            _log.info("%s: processing took %.1f s for a batch of %d", self.reflector.name, seconds, size)


class Source(msgspec.Struct):
    """One collection that an informer follows.

    Attributes:
        lister_watcher: lists and watches it.
        queue: between its reflector and its process loop.
        controller: runs both.
        known: the part of the cache that belongs to it.
    """

    lister_watcher: ListerWatcher[Any]
    queue: Queue[Record]
    controller: CacheController
    known: KnownObjects

    def has_order(self, version: str) -> bool:
        """Return whether a later version of the collection includes this one: not if it counts for each object."""
        return self.controller.reflector.is_ordered or version_number(version) < 0
