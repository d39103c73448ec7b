"""Read responses: chunks of bytes become answers, which the protocol interprets.

`WatchParser` and `PageParser` parse the body of a response, `ResponseReader` reads one response, and `Responses` sends
the requests of a reflector and reads their responses, one after the other. They are one file because each chunk passes
all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from time import time
from typing import TYPE_CHECKING, Final, TypeAlias

from aioinformer.backoff import retry_after
from aioinformer.concurrency import Slicer, is_ending
from aioinformer.errors import AioinformerError, ApiError, DecodeError, TransportError, api_error
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import close_response
from aioinformer.reflector.protocol.messages import (
    Accepted,
    Answer,
    Elapsed,
    Ended,
    Failed,
    Idled,
    Listed,
    PageEnded,
    Pending,
    Read,
    Send,
    Watched,
)
from aioinformer.reflector.value_stream import ValueStream
from aioinformer.reflector.watch_decoder import decode_deep_event, decode_lines, decode_watch_line
from aioinformer.transport.list_parser import ListParser, status_error
from aioinformer.transport.messages import hint_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

    from aioinformer.cache.objects.record import Record
    from aioinformer.reflector.listwatch import Prefetcher
    from aioinformer.reflector.options import ReflectorOptions
    from aioinformer.reflector.watch_events import RecordDecoder, WatchEvent
    from aioinformer.transport import Response

    #: The functions that decode an event, and a deep one; and one that decodes lines of the usual form.
    _Decoding: TypeAlias = tuple[
        Callable[[bytes], WatchEvent],
        Callable[[bytes], WatchEvent],
        Callable[[list[WatchEvent], bytes, int, int], int],
    ]

_log = get_logger("aioinformer.reflector")

#: The number of bytes of the body of a failure that are read; a Status is much smaller.
_MAX_STATUS: Final = 256 * 1024
#: The number of seconds that reading the body of a failure may take.
_FAILURE_TIMEOUT: Final = 10.0
#: Each read waits at least this number of seconds, because other tasks may have blocked the event loop.
_MIN_READ: Final = 1.0
#: The number of lines of a watch that are decoded in one step, at most. With code of users, it is one. Lines that are
#: decoded one by one, as those of an unusual form, cost 22 % more instructions in a flood of events.
_LINES: Final = 16


class WatchParser:
    """Parse the chunks of a watch into answers, each after about one slice of work.

    Args:
        decoder: makes records of objects.
        options: the largest object accepted, and the length of slices.
    """

    __slots__ = ("_changed", "_decoder", "_slicer", "_values", "listed_bytes")

    #: A watch has no pages.
    next_page = ""

    def __init__(self, decoder: RecordDecoder, options: ReflectorOptions) -> None:
        #: How many bytes of a list have been parsed.
        self.listed_bytes = 0
        self._slicer = Slicer()
        self._values = ValueStream(options.max_frame)
        self._decoder = decoder
        self._changed = self._decoding(decoder.from_watch, decoder.deep_from_watch)

    def parse(self, chunk: bytes | None, *, initial: bool) -> Iterator[Answer]:
        """Yield the answers that a chunk completes.

        Args:
            chunk: the bytes; None at the end of the body.
            initial: the events belong to a list.
        """
        if chunk is None:
            if self._values.finish():
                yield Failed(TransportError("the watch ended in the middle of an event"))
            else:
                yield Ended()
            return
        if initial:
            self.listed_bytes += len(chunk)
        slicer = self._slicer
        # A chunk of one event, by far the most frequent case, needs no slices.
        sliced = chunk.find(b"\n") < len(chunk) - 1
        if sliced:
            slicer.start()
        events: list[WatchEvent] = []
        try:
            decode, deep, usual = self._initial() if initial else self._changed
            for event in self._values.read(chunk, decode, deep, partial(usual, events)):
                if event is not None:
                    events.append(event)
                if (sliced or event is None) and slicer.is_over():
                    yield Watched(events.copy(), self.listed_bytes)
                    events.clear()
                    slicer.start()
        except (DecodeError, ApiError) as error:
            # The events before the broken line are complete, and must not be requested again.
            if events:
                yield Watched(events, self.listed_bytes)
            yield Failed(error)
            return
        if events:
            yield Watched(events, self.listed_bytes)

    def _initial(self) -> _Decoding:
        """Return the same as `_changed` for the events of a list, which most watches do not have."""
        return self._decoding(self._decoder.from_list, self._decoder.deep_from_list)

    def _decoding(self, decode: Callable[[bytes], Record], deep: Callable[[bytes], Record]) -> _Decoding:
        expected = self._decoder.expected
        return (
            partial(decode_watch_line, decode=decode, expected=expected),
            partial(decode_deep_event, decode=deep, expected=expected),
            partial(decode_lines, decode, expected, limit=1 if self._decoder.runs_code else _LINES),
        )


class PageParser:
    """Parse the chunks of a list, or of one page, into answers, each after about one slice of work.

    Args:
        decoder: makes records of objects.
        options: the largest object accepted, and the length of slices.
    """

    def __init__(self, decoder: RecordDecoder, options: ReflectorOptions) -> None:
        self.listed_bytes = 0  # the bytes of pages are not counted
        self._slicer = Slicer()
        self._parser: ListParser[Record] = ListParser(decoder.from_list, options.max_frame, deep=decoder.deep_from_list)

    @property
    def next_page(self) -> str:
        """The token of the next page, as soon as it is known: before the items if the server writes metadata first."""
        return self._parser.next_page

    def parse(self, chunk: bytes | None, *, initial: bool) -> Iterator[Answer]:
        """Yield the answers that a chunk completes; None is the end of the body."""
        self._slicer.start()
        try:
            yield from self._parse_page(chunk)
        except (DecodeError, ApiError) as error:
            yield Failed(error)

    def _parse_page(self, chunk: bytes | None) -> Iterator[Answer]:
        parser = self._parser
        if chunk is None:
            parser.feed_eof()
        else:
            parser.feed(chunk)
        items: list[Record | DecodeError] = []
        count_step = self._slicer.count_step
        for item in parser.items():
            if item is not None:
                items.append(item)
            if count_step():
                yield Listed(items)
                items = []
                self._slicer.start()
        if items:
            yield Listed(items)
        if chunk is None:
            head = parser.head()
            meta = head.metadata
            if meta is None or not (meta.resource_version or head.kind):
                raise DecodeError("the list has neither a kind nor a resourceVersion")
            left = meta.remaining_item_count
            yield PageEnded(meta.resource_version or "", meta.continue_ or "", left if type(left) is int else None)


class ResponseReader:
    """Read the body of one response.

    Args:
        response: is closed by `close()`.
        step: the request.
        decoder: makes records of objects.
        options: the largest object accepted, the length of slices, and how long `answers` waits for data.

    Attributes:
        chunks: the body. Reading raises TransportError if the connection broke.
        parse: yields the answers that a chunk, or the end of the body, completes.
    """

    __slots__ = ("_idle_timeout", "_parser", "_response", "chunks", "parse")

    def __init__(self, response: Response, step: Send, decoder: RecordDecoder, options: ReflectorOptions) -> None:
        self._response = response
        self.chunks: AsyncIterator[bytes] = response.chunks()
        self._idle_timeout = options.idle_timeout
        parser = WatchParser if step.options.watch else PageParser
        self._parser: WatchParser | PageParser = parser(decoder, options)
        self.parse = self._parser.parse

    async def read_failure(self) -> ApiError:
        """Return the error of a response whose status is not success, from the head alone if the body does not come."""
        body = bytearray()
        status = self._response.status
        delay = retry_after(self._response.headers)
        hint = hint_of(self._response)
        try:
            async with asyncio.timeout(_FAILURE_TIMEOUT):
                async for chunk in self.chunks:
                    body += chunk
                    if len(body) > _MAX_STATUS:
                        break
        except TimeoutError:
            message = f"the body of the response did not come within {_FAILURE_TIMEOUT:g} s"
            return api_error(status, {"message": message}, retry_after=delay, hint=hint)
        except TransportError as error:
            message = f"the body of the response: {error}"
            return api_error(status, {"message": message}, retry_after=delay, hint=hint)
        return status_error(status, bytes(body), retry_after=delay, hint=hint)

    async def answers(self, *, initial: bool) -> AsyncGenerator[Answer]:
        """Yield all answers that the body contains, as they arrive.

        Args:
            initial: the response belongs to a list.

        Raises:
            TransportError: the connection broke, or brought no complete item or event within the idle timeout.
        """
        clock = asyncio.get_running_loop().time
        silent_at = clock() + self._idle_timeout
        chunk: bytes | None = b""
        while chunk is not None:
            try:
                async with asyncio.timeout_at(silent_at):
                    chunk = await anext(self.chunks, None)
            except TimeoutError as error:
                raise TransportError(f"the server was silent for {self._idle_timeout:g} s") from error
            for answer in self.parse(chunk, initial=initial):
                yield answer
                silent_at = clock() + self._idle_timeout

    @property
    def next_page(self) -> str:
        """The token of the next page, as soon as it is known; "" for a watch."""
        return self._parser.next_page

    @property
    def listed_bytes(self) -> int:
        """How many bytes of a streaming list have been parsed."""
        return self._parser.listed_bytes

    async def close(self) -> None:
        """Close the response."""
        await self._response.close()
        if isinstance(self.chunks, AsyncGenerator):
            await self.chunks.aclose()  # otherwise asyncio closes it later, in a task without an owner


class Responses:
    """Send requests, wait for their responses, and read these. One response is open at a time.

    Args:
        requests: sends the requests.
        decoder: makes records of objects.
        options: how to read.
        name: of the reflector, for logs.

    Attributes:
        last_event: when the server last sent data, in seconds since the epoch; None if it has not sent any.
        silent_for: for how many seconds the response has brought no complete item or event.
    """

    def __init__(self, requests: Prefetcher, decoder: RecordDecoder, options: ReflectorOptions, name: str) -> None:
        self.last_event: float | None = None
        self._requests = requests
        self._decoder = decoder
        self._options = options
        self._name = name
        self._reader: ResponseReader | None = None
        #: The request whose response has no head yet.
        self._pending: Send | None = None
        self.silent_for = 0.0
        #: The wait in progress, and whether `interrupt` has ended the last one.
        self._wait: asyncio.Timeout | None = None
        self._interrupted = False
        #: When the wait in progress ends, by the clock of the event loop (None: never), and the timer that ends it.
        self._limit: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def next_page(self) -> str:
        """The token of the page after the current one, as soon as it is known."""
        return self._reader.next_page if self._reader is not None else ""

    async def send(self, step: Send, tasks: asyncio.TaskGroup) -> Answer | None:
        """Send a request and wait for the head of its response.

        Args:
            step: the request.
            tasks: owns the task that waits for the response.

        Returns:
            `Accepted`, `Failed`, or `Pending`; None if the wait was interrupted.
        """
        self.silent_for = 0.0
        self._pending = step
        response = self._requests.request(step.options, tasks, step.patience)
        return await self._receive_head(response, step.patience, Pending())

    async def read(self, step: Read) -> Iterable[Answer]:
        """Wait for the next chunk and return its answers, which are made while you iterate; none if interrupted."""
        clock = asyncio.get_running_loop().time
        begin = clock()
        patience = step.silence
        if self.silent_for or step.until is not None or (patience is not None and patience < _MIN_READ):
            patience = self._patience(step, begin)
        reader = self._reader
        if reader is None:
            head = await self._receive_head(self._requests.response(patience), patience, self._late(step, begin))
            return () if head is None else (head,)
        self._limit_wait(None if patience is None else begin + patience)
        try:
            async with asyncio.timeout(None) as self._wait:
                chunk = await anext(reader.chunks, None)
        except TimeoutError:
            if self._interrupted:
                return ()
            late = self._late(step, begin)
            self.silent_for = 0.0
            return (late,)
        except (TransportError, DecodeError) as error:
            return (Failed(error),)
        except (Exception, asyncio.CancelledError) as error:
            return (Failed(self._as_transport_error("the response could not be read", error)),)
        finally:
            self._wait = None
        if chunk is not None:
            self.last_event = time()
        self.silent_for += clock() - begin
        return self._answers_of(reader.parse(chunk, initial=step.initial), step)

    def _answers_of(self, parsed: Iterator[Answer], step: Read) -> Iterator[Answer]:
        """Yield the answers of a chunk. Bytes that complete no item or event must not be read for ever."""
        complete = False
        for answer in parsed:
            complete = True
            self.silent_for = 0.0
            yield answer
        if complete:
            return
        if step.until is not None and asyncio.get_running_loop().time() >= step.until:
            yield Elapsed(self._listed_bytes)
        elif step.silence is not None and self.silent_for >= step.silence:
            self.silent_for = 0.0
            yield Idled(step.silence)

    @property
    def _listed_bytes(self) -> int:
        return 0 if self._reader is None else self._reader.listed_bytes

    def interrupt(self) -> None:
        """End the wait in progress, if any, as if its limit were reached."""
        if self._wait is not None and not self._wait.expired():
            self._interrupted = True
            self._wait.reschedule(asyncio.get_running_loop().time())

    def _limit_wait(self, limit: float | None) -> None:
        """Set when the next wait ends, if nothing ends it before.

        One timer serves all waits, because nearly all timers of single waits would be cancelled: with them, an event
        that comes alone takes 151 calls instead of 140, and 5 % more bytecodes.

        Args:
            limit: by the clock of the event loop; None for no limit.
        """
        self._interrupted = False
        self._limit = limit
        if limit is not None and (self._timer is None or limit < self._timer.when()):
            self._set_timer(limit)

    def _set_timer(self, at: float) -> None:
        self._cancel_timer()
        self._timer = asyncio.get_running_loop().call_at(at, self._on_timer)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        """End the wait in progress, or set the timer again if its limit has moved."""
        self._timer = None
        if self._wait is None or self._limit is None:
            return  # the next wait sets the timer
        now = asyncio.get_running_loop().time()
        if self._limit > now:
            self._set_timer(self._limit)
        elif not self._wait.expired():
            self._wait.reschedule(now)

    async def close(self) -> None:
        """Close the open response, and discard a pending one."""
        self._cancel_timer()
        if self._pending is not None:
            await self._requests.discard()
            self._pending = None
        if self._reader is not None:
            await close_response(self._reader.close, self._name)
            self._reader = None  # only now: if this task is cancelled meanwhile, its cleanup closes the reader again

    async def _receive_head(
        self, response: Awaitable[Response | None], patience: float | None, late: Answer
    ) -> Answer | None:
        """Wait for the head of the pending response, and return the answer.

        Args:
            response: returns None if there is no head within `patience` seconds.
            patience: None for no limit.
            late: the answer in this case.
        """
        step = self._pending
        assert step is not None, "the protocol sends a request before it reads"
        self._limit_wait(None)
        try:
            async with asyncio.timeout(None) as self._wait:
                head = await response
        except TransportError as error:
            self._pending = None
            return Failed(error)
        except Exception as error:
            if self._interrupted:
                return None
            self._pending = None
            return Failed(self._as_transport_error("the request could not be sent", error))
        finally:
            self._wait = None
        if head is None:
            self.silent_for += patience or 0.0
            return late
        self._pending = None
        self._reader = ResponseReader(head, step, self._decoder, self._options)
        if head.status == 200:
            return Accepted()
        failure: ApiError | TransportError
        try:
            failure = await self._reader.read_failure()
        except (Exception, asyncio.CancelledError) as error:
            failure = self._as_transport_error("the response could not be read", error)
        return Failed(failure)

    def _patience(self, step: Read, now: float) -> float | None:
        """Return for how many seconds to read, None for no limit."""
        left = None if step.silence is None else max(step.silence - self.silent_for, _MIN_READ)
        if step.until is None:
            return left
        until = max(step.until - now, _MIN_READ)
        return until if left is None else min(left, until)

    def _late(self, step: Read, now: float) -> Answer:
        """Return the answer to report when the patience of a read that began at `now` is over."""
        if step.silence is None:
            return Elapsed(self._listed_bytes)
        left = max(step.silence - self.silent_for, _MIN_READ)
        if step.until is not None and max(step.until - now, _MIN_READ) < left:
            return Elapsed(self._listed_bytes)
        return Idled(step.silence)

    def _as_transport_error(self, what: str, error: BaseException) -> TransportError:
        """Convert and log an unexpected error: of credentials, a tweak function, or a transport of the user.

        Raises:
            CancelledError: the task of the reflector is being cancelled.
        """
        if is_ending(error, asyncio.current_task()):
            raise error
        _log.error("%s: %s", self._name, what, exc_info=error)
        reason = str(error) if isinstance(error, AioinformerError) else type(error).__name__
        return TransportError(f"{what}: {reason}")
