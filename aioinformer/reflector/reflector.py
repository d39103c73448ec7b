"""The Reflector: carries out the steps of the list/watch protocol, and queues its conclusions.

It makes no decisions. Its loop requests a step from the protocol, carries it out, reports the answer to the protocol,
and queues the conclusions. It ends only when it is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final, Protocol

from aioinformer.cache.objects.record import Decode, Record, decode_record
from aioinformer.concurrency import TaskGroup, is_cancelled, shielded
from aioinformer.errors import USER_ERRORS, ProcessingError
from aioinformer.functions import LogError, log_each, origin
from aioinformer.logs import get_logger
from aioinformer.metrics.counters import InformerCounters
from aioinformer.reflector.consistency import ConsistencyDetector, consistency_mode
from aioinformer.reflector.listwatch import ListerWatcher, Prefetcher
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.protocol.changes import Quarantine
from aioinformer.reflector.protocol.list_watch import ListWatchProtocol
from aioinformer.reflector.protocol.messages import (
    Answer,
    Changed,
    Elapsed,
    Failed,
    Listed,
    Read,
    Replaced,
    Send,
    Wait,
    Watched,
)
from aioinformer.reflector.recorder import ListWatchRecorder
from aioinformer.reflector.response_reader import Responses
from aioinformer.reflector.state import HEALTHY, InformerState, Phase
from aioinformer.reflector.watch_events import Expected, RecordDecoder

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from aioinformer.queue.deltas import Delta
    from aioinformer.reflector.protocol.messages import Answer, Send

_log = get_logger("aioinformer.reflector")

WatchErrorHandler = Callable[[Exception], Any]

#: Seconds between a failure that the protocol does not foresee and its report to the protocol.
_PAUSE: Final = 1.0


class ReflectorQueue(Protocol):
    """The part of a queue that a reflector uses."""

    async def apply(self, deltas: Iterable[Delta[Record]], version: str = ...) -> None: ...

    async def replace(self, objects: Iterable[Record], version: str = ...) -> None: ...

    async def replace_owned(self, objects: MutableMapping[str, Record], version: str = ...) -> None: ...

    async def resync(self) -> None: ...


class Reflector:
    """Lists and watches one collection of one server until it is cancelled, and queues the changes.

    Args:
        lister_watcher: lists and watches the collection.
        queue: receives the changes.
        name: for tasks and logs.
        options: how to list and watch.

        decode: makes a record of the bytes of an object.
        on_arrival: is called with each new record. It may return another record, or raise to refuse the object.
        known: returns the cached record of a key, or None.

        resync_period: seconds between resyncs, 0 for none.
        should_resync: is called before each resync, and returns whether it takes place.
        watch_error_handler: is called with each error that ends a list or a watch; it must return quickly.
        on_state: is called with each new state.
        before_read: is awaited before each read, so that work which delays reading can take place.
        log_error: logs the errors of bugs, and of missing memory; by default, each of them.
        counters: counts lists and watches; None to count nothing.
        quarantine: the objects that cannot be decoded; by default, a new one.

    Attributes:
        name: as given, or made of the resource.
        initial_resource_version: of the first list; "" before that.
        log_error: as given.
        unprocessed: whether received objects are missing in the cache. The state is not healthy until they are there.
    """

    def __init__(
        self,
        lister_watcher: ListerWatcher[Any],
        queue: ReflectorQueue,
        *,
        name: str = "",
        options: ReflectorOptions | None = None,
        # Objects
        decode: Decode = decode_record,
        on_arrival: Callable[[Record], Record] | None = None,
        known: Callable[[str], Record | None] = lambda key: None,
        # Other tasks
        resync_period: float = 0.0,
        should_resync: Callable[[], bool] = lambda: True,
        watch_error_handler: WatchErrorHandler | None = None,
        on_state: Callable[[InformerState], Any] = lambda state: None,
        before_read: Callable[[], Awaitable[None]] | None = None,
        log_error: LogError = log_each,
        counters: InformerCounters | None = None,
        quarantine: Quarantine | None = None,
    ) -> None:
        self.name = name or f"reflector of {lister_watcher.resource.group_resource}"
        self._requests = Prefetcher(lister_watcher, self.name)
        self._queue = queue
        self._options = options or ReflectorOptions()
        resource = lister_watcher.resource
        kinds = (resource.kind, "PartialObjectMetadata") if getattr(lister_watcher, "metadata_only", False) else ()
        expected = Expected(kinds or (resource.kind,), resource.api_version, getattr(lister_watcher, "namespace", ""))
        decoder = RecordDecoder(on_arrival, known, decode, expected)
        self._responses = Responses(self._requests, decoder, self._options, self.name)
        verbs = resource.verbs
        self._protocol = ListWatchProtocol(
            self._options,
            random=random.random,
            known=known,
            log=self._log_decision,
            report=self._report,
            quarantine=quarantine,
            watchable=not verbs or "watch" in verbs,
        )
        self._protocol_state = self._protocol.state
        self._resync_period = resync_period
        self._should_resync = should_resync
        self._watch_error_handler = watch_error_handler
        self._on_state = on_state
        self._before_read = before_read
        self.log_error = log_error
        self._recorder = ListWatchRecorder(self.name, _now, counters)
        check = consistency_mode()
        self._detector: ConsistencyDetector | None = None
        if check != "off":
            self._detector = ConsistencyDetector(
                lister_watcher,
                self._options,
                on_arrival=on_arrival,
                decode=decode,
                report=self._report if check == "report" else None,
                name=self.name,
            )
        self._shown = (Phase.NEW, "")
        self._fresh_at: float | None = None
        #: How many objects could not be decoded when that was logged: a growing number is logged each time it doubles.
        self._degraded = 0
        self._since = time()
        self._stale_since: float | None = self._since
        #: When the wait in progress ends, in seconds since the epoch.
        self._next_retry: float | None = None
        #: Why received objects are missing in the cache, if that has not been reported to the protocol yet.
        self._processing_error: ProcessingError | None = None
        self.unprocessed = False
        self.initial_resource_version = ""

    @property
    def state(self) -> InformerState:
        """The current state."""
        phase, reason = self._shown
        return InformerState(phase, reason, self._since, self._responses.last_event, self._stale_since)

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which the collection has been read; "" before the first list."""
        return self._protocol.version

    @property
    def is_ordered(self) -> bool:
        """Whether the versions of the collection have an order, as far as is known; see `Position`."""
        return self._protocol_state.position.ordered

    @property
    def attempts(self) -> int:
        """The number of attempts in a row that have failed; 0 after a success."""
        return self._protocol.state.pace.attempts

    @property
    def retry_at(self) -> float | None:
        """When the next attempt is due, by the loop's clock; None without a failure, and during an attempt."""
        at = self._protocol.retry_at
        return at if at is not None and self._next_retry is not None else None

    @property
    def next_retry(self) -> float | None:
        """The same in seconds since the epoch. Any thread may read it."""
        return self._next_retry if self._protocol.state.pace.attempts else None

    @property
    def progress(self) -> str:
        """How far the list in progress is, for people; "" without one. Any thread may read it."""
        return self._recorder.progress

    @property
    def skipped(self) -> int:
        """The number of objects so far that could not be decoded or were refused."""
        return self._protocol.state.quarantine.total

    @property
    def quarantine(self) -> Quarantine:
        """The objects that cannot be decoded."""
        return self._protocol.state.quarantine

    async def run(self) -> None:
        """List and watch until cancelled."""
        async with TaskGroup() as tasks:
            self._tasks = tasks
            if self._resync_period:
                tasks.create_task(self._resync(), name=f"{self.name}: resync")
            try:
                await self._run_protocol()
            finally:
                self._recorder.close()
                self._show(Phase.STOPPED, "")
                with shielded():
                    await self._close_response()
                    await self._requests.discard()

    def relist(self, error: ProcessingError) -> None:
        """List again after a delay, because received objects are missing in the cache. Call it in the event loop.

        Args:
            error: why they are missing.
        """
        self.unprocessed = True
        if self._processing_error is None:
            self._processing_error = error
        self._responses.interrupt()

    def mark_processed(self) -> None:
        """Note that all received objects are in the cache."""
        self.unprocessed = False
        self._show_changes(self._protocol_state.phase, self._protocol_state.reason)

    async def _run_protocol(self) -> None:
        """Carry out the protocol. If memory or stack runs out, or a bug raises, list again after a delay."""
        self._show_changes(self._protocol_state.phase, self._protocol_state.reason)
        while True:
            try:
                await self._list_and_watch()
            except Exception as error:
                if is_cancelled():
                    raise asyncio.CancelledError from error  # which `error` has replaced
                # Not chained: the frames of the error refer to the objects for which there was no memory.
                self._processing_error = ProcessingError(f"a response could not be processed: {type(error).__name__}")
                message = "%s: a response could not be processed; the reflector relists"
                self.log_error(f"{self.name}: {origin(error)}", error, message, self.name)
                # The protocol may be what raises: then it can neither show the failure nor delay the next attempt.
                self._show_changes(Phase.BACKING_OFF, str(self._processing_error))
                await asyncio.sleep(_PAUSE)

    async def _list_and_watch(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            if self._processing_error is not None:
                await self._receive(Failed(self._processing_error))
                self._processing_error = None
            step = self._protocol.next_step(clock())
            if isinstance(step, Read):
                await self._read(step)
                continue
            await self._close_response()
            if isinstance(step, Wait):
                await self._requests.discard()
                _log.debug("%s: the next request follows in %.1f s", self.name, step.until - clock())
                self._next_retry = time() + step.until - clock()
                await asyncio.sleep(step.until - clock())
                self._next_retry = None
                await self._receive(Elapsed())
            else:
                await self._send(step)

    async def _send(self, step: Send) -> None:
        self._recorder.record_request(step, self._protocol.state.list_reason)
        answer = await self._responses.send(step, self._tasks)
        if answer is not None:
            await self._receive(answer)

    async def _read(self, step: Read) -> None:
        if self._before_read is not None:
            await self._before_read()
            if self._processing_error is not None:
                return
        responses = self._responses
        clock = asyncio.get_running_loop().time
        first = True
        for answer in await responses.read(step):
            if not first:
                await asyncio.sleep(0)
                if not isinstance(self._protocol.next_step(clock()), Read):
                    break  # the protocol does not read the rest of this response
            first = False
            await self._receive(answer)
            if (
                type(answer) is Listed
                and responses.next_page
                and (ahead := self._protocol.next_page_request(responses.next_page))
            ):
                self._requests.start(ahead, self._tasks)

    async def _receive(self, answer: Answer) -> None:
        self._recorder.record_answer(answer)
        for conclusion in self._protocol.receive(answer, asyncio.get_running_loop().time()):
            if isinstance(conclusion, Changed):
                await self._queue.apply(conclusion.deltas, conclusion.version)
            else:
                await self._queue_list(conclusion, streamed=isinstance(answer, Watched))
                self._show_changes(self._protocol_state.phase, self._protocol_state.reason)
        # Compared here, too: few answers change the state, and this is the way of each event.
        if self._protocol_state.phase is not self._shown[0] or self._protocol_state.reason != self._shown[1]:
            self._show_changes(self._protocol_state.phase, self._protocol_state.reason)

    async def _queue_list(self, conclusion: Replaced, *, streamed: bool) -> None:
        records = conclusion.records
        version = conclusion.version
        self.initial_resource_version = self.initial_resource_version or version
        self._recorder.record_list(len(records), streamed=streamed)
        if self._detector is None or not streamed:
            await self._queue.replace_owned(records, version)
            self._recorder.record_queued()
            return
        await self._queue.replace(records.values(), version)
        self._recorder.record_queued()
        check = self._detector.check(records.values(), version)
        self._tasks.create_task(check, name=f"{self.name}: consistency check")

    async def _close_response(self) -> None:
        await self._responses.close()

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self._resync_period)
            try:
                if self._should_resync():
                    await self._queue.resync()
            except Exception:
                _log.exception("%s: the resync failed; the next is in %g s", self.name, self._resync_period)

    def __repr__(self) -> str:
        attempts = f", attempt {self.attempts}" if self.attempts else ""
        version = self.last_sync_resource_version
        return f"<{type(self).__name__} {self.name}, {self.state}{attempts}, version {version!r}>"

    def _report(self, error: Exception) -> None:
        if self._watch_error_handler is None:
            return
        try:
            self._watch_error_handler(error)
        except USER_ERRORS:
            _log.exception("%s: the watch error handler raised", self.name)

    def _log_decision(self, line: str) -> None:
        _log.info("%s: %s", self.name, line)

    def _show_changes(self, phase: Phase, reason: str) -> None:
        changed = (phase, reason) != self._shown or self._protocol_state.fresh_at != self._fresh_at
        if changed and not (self.unprocessed and (phase in HEALTHY or phase is Phase.DEGRADED)):
            self._show(phase, reason)

    def _show(self, phase: Phase, reason: str) -> None:
        before = self._shown
        self._shown = (phase, reason)
        self._since = time()
        fresh_at = self._protocol_state.fresh_at
        self._fresh_at = fresh_at
        if phase in HEALTHY or phase is Phase.DEGRADED:
            self._stale_since = None
        elif fresh_at is not None:
            self._stale_since = self._since - (asyncio.get_running_loop().time() - fresh_at)
        elif self._stale_since is None:
            self._stale_since = self._since
        state = self.state
        degraded = len(self.quarantine) if phase is Phase.DEGRADED else 0
        if before[0] is not phase or not degraded or degraded >= 2 * self._degraded:
            self._degraded = degraded
            quiet = phase in (Phase.SYNCING, Phase.WATCHING, Phase.POLLING, Phase.STOPPED)
            _log.log(logging.INFO if quiet else logging.WARNING, "%s: %s", self.name, state)
        try:
            self._on_state(state)
        except USER_ERRORS:
            _log.exception("%s: the state handler raised", self.name)


def _now() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:  # a snapshot in another thread
        return monotonic()
