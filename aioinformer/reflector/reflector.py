"""The Reflector: does what the list/watch protocol asks for, and queues what it concludes.

It decides nothing. Its loop is: ask the protocol for a step, do it, tell the protocol what came of it, hand the
conclusions to the queue. It ends when it is cancelled, and at no other time.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator
from time import time
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
import anyio._backends._asyncio  # else it is imported when first needed, which holds the loop for 40 ms

from aioinformer.cache.objects.record import Decode, decode_record
from aioinformer.errors import EXHAUSTION, USER_ERRORS, ProcessingError
from aioinformer.logs import Trace, get_logger
from aioinformer.reflector.listwatch import Prefetcher
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.pager import ConsistencyDetector, asked_for
from aioinformer.reflector.protocol.list_watch import ListWatchProtocol
from aioinformer.reflector.protocol.messages import (
    Accepted,
    Answer,
    Changed,
    Elapsed,
    Ended,
    Failed,
    Idled,
    Listed,
    Pending,
    Read,
    Replaced,
    Send,
    Wait,
    Watched,
)
from aioinformer.reflector.response_reader import Responses
from aioinformer.reflector.state import InformerState, Phase
from aioinformer.reflector.watch_events import Intake

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from aioinformer.cache.objects.record import Record
    from aioinformer.metrics import InformerCounters
    from aioinformer.queue.deltas import Delta
    from aioinformer.reflector.listwatch import ListerWatcher
    from aioinformer.reflector.protocol.changes import Quarantine
    from aioinformer.reflector.protocol.messages import Answer, Send


#: Lists that take longer are written of in the log, in seconds.
SLOW_LIST: Final = 10.0
#: A watch that ends sooner, and brings nothing, is a short one.
_SHORT_WATCH: Final = 1.0


class ListWatchAccount:
    """Keeps the account of one reflector.

    Args:
        name: of the reflector.
        clock: of the event loop.
        counters: counts there; None if nobody will ask.
    """

    def __init__(self, name: str, clock: Callable[[], float], counters: InformerCounters | None) -> None:
        self._name = name
        self._clock = clock
        self._counters = counters
        self._list: Trace | None = None
        self._asked_watch = False
        #: Why a list is necessary; "" while none is.
        self._needed = ""
        self._watch_since: float | None = None
        self._events = 0

    def sends(self, step: Send, reason: str = "first") -> None:
        """A request is about to be sent.

        Args:
            step: the request.
            reason: why the last list was necessary.
        """
        self._watch_over()
        self._asked_watch = step.options.watch
        if step.initial and self._needed != reason:
            self._needed = reason
            if self._counters is not None:
                self._counters.relists[reason] += 1
        if step.initial and self._list is None:
            kind = "streaming list" if step.options.watch else "list"
            self._list = Trace(_log, f"{self._name}: {kind}", self._clock)
        elif step.initial and not step.options.continue_token:
            assert self._list is not None
            self._list.step("began anew")

    def hears(self, answer: Answer) -> None:
        """The server, or the clock, has answered."""
        match answer:
            case Watched(events) if self._watch_since is not None:
                self._events += len(events)
                if self._counters is not None:
                    self._counters.watched += len(events)
            case Accepted() | Pending() if self._asked_watch and self._list is None and self._watch_since is None:
                self._watch_since = self._clock()
            case Failed() | Ended():
                self._watch_over()
                self._list_failed()
            case Idled():  # which ends a list, but not a watch, unless another request follows
                self._list_failed()

    def listed(self, objects: int, *, streamed: bool) -> None:
        """A list is complete; if it was streamed, its stream is a watch from now on."""
        if self._list is not None:
            self._list.step(f"{objects} objects listed")
        if self._counters is not None:
            self._counters.listed += objects
        if streamed:
            self._watch_since = self._clock()

    def queued(self) -> None:
        """All of a list is in the queue."""
        self._needed = ""
        if self._list is not None:
            self._list.step("queued")
            self._list_over()

    def _list_failed(self) -> None:
        if self._list is not None:
            self._list.step("failed")
            self._list_over()

    def _list_over(self) -> None:
        if self._list is None:
            return
        self._list.log_if_long(SLOW_LIST)
        if self._counters is not None:
            self._counters.lists.observe(self._list.seconds)
        self._list = None

    def _watch_over(self) -> None:
        since, self._watch_since = self._watch_since, None
        events, self._events = self._events, 0
        if since is None or self._counters is None:
            return
        seconds = self._clock() - since
        self._counters.watches.observe(seconds)
        self._counters.short_watches += seconds < _SHORT_WATCH and not events


_log = get_logger("aioinformer.reflector")

#: Seconds until it is tried again to say that something failed, if saying so failed.
_BREATHER = 1.0

WatchErrorHandler = Callable[[Exception], Any]


class ReflectorQueue(Protocol):
    """Where a reflector puts what it learns."""

    async def apply(self, deltas: Iterable[Delta[Record]], version: str = ...) -> None: ...

    async def replace(self, objects: Iterable[Record], version: str = ...) -> None: ...

    async def replace_owned(self, objects: MutableMapping[str, Record], version: str = ...) -> None: ...

    async def resync(self) -> None: ...


class Reflector:
    """Keeps a queue informed of one collection of one server, for ever.

    Args:
        lister_watcher: what to list and watch.
        queue: takes what becomes known.
        name: for tasks and logs.
        options: how to list and watch.

        decode: makes a record of an object's bytes.
        on_arrival: looks at each new record before anybody else; may replace or refuse it.
        known: the cached record of a key.

        resync_period: asks the queue to repeat what is known so often, in seconds; 0 for never.
        should_resync: asked each time before that.
        watch_error_handler: told of each error with which a list or a watch ends, in streams too; must be quick.
        on_state: told of every change of the state.
        before_read: awaited before more is read: whoever needs a pause takes it there.
        counters: counts lists and watches there; None if nobody will ask.
        quarantine: remembers the objects that do not decode; one of its own by default.
    """

    def __init__(
        self,
        lister_watcher: ListerWatcher[Any],
        queue: ReflectorQueue,
        *,
        name: str = "",
        options: ReflectorOptions | None = None,
        # What objects are
        decode: Decode = decode_record,
        on_arrival: Callable[[Record], Record] | None = None,
        known: Callable[[str], Record | None] = lambda key: None,
        # What else happens
        resync_period: float = 0.0,
        should_resync: Callable[[], bool] = lambda: True,
        watch_error_handler: WatchErrorHandler | None = None,
        on_state: Callable[[InformerState], Any] = lambda state: None,
        before_read: Callable[[], Awaitable[None]] | None = None,
        counters: InformerCounters | None = None,
        quarantine: Quarantine | None = None,
    ) -> None:
        self.name = name or f"reflector of {lister_watcher.resource.group_resource}"
        self._requests = Prefetcher(lister_watcher, f"{self.name}: next page")
        self._queue = queue
        self._options = options or ReflectorOptions()
        self._responses = Responses(self._requests, Intake(on_arrival, known, decode), self._options, self.name)
        verbs = lister_watcher.resource.verbs
        self._protocol = ListWatchProtocol(
            self._options,
            random=random.random,
            known=known,
            tell=self._tell,
            report=self._report,
            quarantine=quarantine,
            watchable=not verbs or "watch" in verbs,
        )
        self._standing = self._protocol.state
        self._resync_period = resync_period
        self._should_resync = should_resync
        self._watch_error_handler = watch_error_handler
        self._on_state = on_state
        self._before_read = before_read
        self._account = ListWatchAccount(self.name, lambda: asyncio.get_running_loop().time(), counters)
        check = asked_for(self._options.consistency_check)
        self._detector = (
            ConsistencyDetector(
                lister_watcher,
                self._options,
                on_arrival=on_arrival,
                decode=decode,
                report=self._report if check == "report" else None,
                name=self.name,
            )
            if check != "off"
            else None
        )
        self._shown = (Phase.NEW, "")
        self._since = time()
        #: When the wait that is under way ends, in seconds since the epoch.
        self._next_retry: float | None = None
        #: Why the cache lacks some of what was received; the protocol is still to learn of it.
        self._lacking: ProcessingError | None = None
        #: The version of the first list; "" before that.
        self.initial_resource_version = ""

    @property
    def state(self) -> InformerState:
        """What it is doing."""
        phase, reason = self._shown
        return InformerState(phase, reason, self._since, self._responses.last_event)

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which everything has been received; "" before the first list."""
        return self._protocol.version

    @property
    def attempts(self) -> int:
        """How many attempts in a row have failed; 0 while all is well."""
        return self._protocol.attempts

    @property
    def retry_at(self) -> float | None:
        """When the next attempt is due, by the loop's clock; None while all is well, and while an attempt is made."""
        at = self._protocol.retry_at
        return at if at is not None and self._next_retry is not None else None

    @property
    def next_retry(self) -> float | None:
        """The same in seconds since the epoch; any thread may ask."""
        return self._next_retry if self._protocol.attempts else None

    @property
    def skipped(self) -> int:
        """How many objects did not decode, or were refused, so far."""
        return self._protocol.quarantine.total

    @property
    def quarantine(self) -> Quarantine:
        """The objects that do not decode."""
        return self._protocol.quarantine

    async def run(self) -> None:
        """Lists and watches until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            if self._resync_period:
                tasks.create_task(self._resync(), name=f"{self.name}: resync")
            try:
                await self._go_on()
            finally:
                self._show(Phase.STOPPED, "")
                with anyio.CancelScope(shield=True):
                    await self._let_go()
                    await self._requests.discard()

    def relist(self, error: ProcessingError) -> None:
        """List again, after a delay: the cache lacks some of what was received. Called on the loop."""
        if self._lacking is None:
            self._lacking = error
        self._responses.interrupt()

    async def _go_on(self) -> None:
        """List and watch; if that runs out of memory or stack, list again, after a delay."""
        while True:
            try:
                await self._list_and_watch()
            except EXHAUSTION as error:
                if self._lacking is not None:
                    await asyncio.sleep(_BREATHER)
                _log.error("%s: what was received could not be digested", self.name, exc_info=error)
                # Not chained: the frames of the error hold what there was no memory for.
                self._lacking = ProcessingError(f"what was received could not be digested: {type(error).__name__}")

    async def _list_and_watch(self) -> None:
        clock = asyncio.get_running_loop().time
        self._observe()
        while True:
            if self._lacking is not None:
                await self._receive(Failed(self._lacking))
                self._lacking = None
            step = self._protocol.next_step(clock())
            if isinstance(step, Read):
                await self._read(step)
                continue
            await self._let_go()
            if isinstance(step, Wait):
                await self._requests.discard()
                _log.debug("%s: waits for %.1f s", self.name, step.until - clock())
                self._next_retry = time() + step.until - clock()
                await asyncio.sleep(step.until - clock())
                self._next_retry = None
                await self._receive(Elapsed())
            else:
                await self._send(step)

    async def _send(self, step: Send) -> None:
        self._account.sends(step, self._protocol.list_reason)
        answer = await self._responses.send(step, self._tasks)
        if answer is not None:
            await self._receive(answer)

    async def _read(self, step: Read) -> None:
        if self._before_read is not None:
            await self._before_read()
            if self._lacking is not None:
                return
        responses = self._responses
        came = await responses.read(step)
        if came is None:
            return
        if not isinstance(came, Iterator):
            await self._receive(came)
            return
        clock = asyncio.get_running_loop().time
        first = True
        for answer in came:
            if not first:
                await asyncio.sleep(0)
                if not isinstance(self._protocol.next_step(clock()), Read):
                    break  # the protocol has lost its interest in what else is there
            first = False
            responses.silent_for = 0.0
            await self._receive(answer)
            if type(answer) is Listed and responses.next_page and (ahead := self._protocol.ahead(responses.next_page)):
                self._requests.start(ahead, self._tasks)
        if first and (late := responses.silence(step)) is not None:
            await self._receive(late)

    async def _receive(self, answer: Answer) -> None:
        self._account.hears(answer)
        try:
            for conclusion in self._protocol.receive(answer, asyncio.get_running_loop().time()):
                if isinstance(conclusion, Changed):
                    await self._queue.apply(conclusion.deltas, conclusion.version)
                else:
                    await self._replaced(conclusion, streamed=isinstance(answer, Watched))
        finally:
            self._observe()

    async def _replaced(self, conclusion: Replaced, *, streamed: bool) -> None:
        records, version = conclusion.records, conclusion.version
        self.initial_resource_version = self.initial_resource_version or version
        self._account.listed(len(records), streamed=streamed)
        if self._detector is None or not streamed:
            await self._queue.replace_owned(records, version)
            self._account.queued()
            return
        await self._queue.replace(records.values(), version)
        self._account.queued()
        check = self._detector.check(records.values(), version)
        self._tasks.create_task(check, name=f"{self.name}: consistency check")

    async def _let_go(self) -> None:
        await self._responses.close()

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self._resync_period)
            try:
                if self._should_resync():
                    await self._queue.resync()
            except EXHAUSTION:
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

    def _tell(self, line: str) -> None:
        _log.info("%s: %s", self.name, line)

    def _observe(self) -> None:
        if (self._standing.phase, self._standing.reason) != self._shown:
            self._show(self._standing.phase, self._standing.reason)

    def _show(self, phase: Phase, reason: str) -> None:
        self._shown = (phase, reason)
        self._since = time()
        state = self.state
        quiet = phase in (Phase.SYNCING, Phase.WATCHING, Phase.POLLING, Phase.STOPPED)
        _log.log(logging.INFO if quiet else logging.WARNING, "%s: %s", self.name, state)
        try:
            self._on_state(state)
        except USER_ERRORS:
            _log.exception("%s: the state handler raised", self.name)
