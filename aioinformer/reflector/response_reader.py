"""The responses that a reflector waits for and reads, one after the other; what they mean, the protocol decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial
from time import time
from typing import TYPE_CHECKING

from aioinformer.backoff import retry_after
from aioinformer.concurrency import Slicer, is_ending
from aioinformer.errors import AioinformerError, ApiError, DecodeError, TransportError, api_error
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import closed
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
from aioinformer.reflector.watch_decoder import ValueStream, decode_event_in_steps, decode_watch_line
from aioinformer.transport.list_parser import ListParser, status_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator

    from aioinformer.cache.objects.record import Record
    from aioinformer.reflector.listwatch import Prefetcher
    from aioinformer.reflector.options import ReflectorOptions
    from aioinformer.reflector.watch_events import Intake, WatchEvent
    from aioinformer.transport import Response


#: As much of the body of a failure is read; a Status is far below that.
_MAX_STATUS = 256 * 1024
#: So many seconds it may take.
_FAILURE_TIMEOUT = 10.0


class WatchDigest:
    """Turn the chunks of a watch into answers, each about one slice of work.

    Args:
        intake: makes records of objects.
        options: the cap on objects and the length of slices.
    """

    #: A watch has no next page.
    next_page = ""

    def __init__(self, intake: Intake, options: ReflectorOptions) -> None:
        self._slicer = Slicer(options.slice_seconds)
        self._values = ValueStream(options.max_frame)
        #: How to make events of values, at once and in steps.
        self._initial = (
            partial(decode_watch_line, intake=partial(intake.listed, valid=True)),
            partial(decode_event_in_steps, intake=intake.listed_in_steps),
        )
        self._changed = (
            partial(decode_watch_line, intake=intake.changed),
            partial(decode_event_in_steps, intake=intake.changed_in_steps),
        )

    def digest(self, chunk: bytes | None, *, initial: bool) -> Iterator[Answer]:
        """Yield what a chunk says, or the end of the body if it is None.

        Args:
            chunk: the bytes.
            initial: the events belong to a list.
        """
        if chunk is None:
            if self._values.finish():
                yield Failed(TransportError("the watch ended in the middle of an event"))
            else:
                yield Ended()
            return
        slicer = self._slicer
        # A chunk of one event, the most frequent by far, needs no slices.
        sliced = chunk.find(b"\n") < len(chunk) - 1
        if sliced:
            slicer.start()
        events: list[WatchEvent] = []
        try:
            for event in self._values.read(chunk, *(self._initial if initial else self._changed)):
                if event is not None:
                    events.append(event)
                if (sliced or event is None) and slicer.due():
                    yield Watched(events)
                    events = []
                    slicer.start()
        except (DecodeError, ApiError) as error:
            # The events before the broken line are good, and must not be requested again.
            if events:
                yield Watched(events)
            yield Failed(error)
            return
        if events:
            yield Watched(events)


class ListDigest:
    """Turn the chunks of a list, or of one page, into answers, each about one slice of work.

    Args:
        intake: makes records of objects.
        options: the cap on objects and the length of slices.
    """

    def __init__(self, intake: Intake, options: ReflectorOptions) -> None:
        self._slicer = Slicer(options.slice_seconds)
        self._parser: ListParser[Record] = ListParser(intake.listed, options.max_frame, in_steps=intake.listed_in_steps)

    @property
    def next_page(self) -> str:
        """The token of the next page, as soon as it is known: before the items if the server writes metadata first."""
        return self._parser.next_page

    def digest(self, chunk: bytes | None, *, initial: bool) -> Iterator[Answer]:
        """Yield what a chunk says, or the end of the body if it is None."""
        self._slicer.start()
        try:
            yield from self._items_of(chunk)
        except (DecodeError, ApiError) as error:
            yield Failed(error)

    def _items_of(self, chunk: bytes | None) -> Iterator[Answer]:
        parser = self._parser
        if chunk is None:
            parser.feed_eof()
        else:
            parser.feed(chunk)
        items: list[Record | DecodeError] = []
        due = self._slicer.due
        for item in parser.items():
            if item is not None:
                items.append(item)
            if due():
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
            yield PageEnded(meta.resource_version or "", meta.continue_ or "")


class AnswerReader:
    """Read the body of one response, and close it.

    Args:
        response: is closed by `close()`.
        step: what was requested.
        intake: makes records of objects.
        options: the cap on objects, the length of slices, and how long `answers` waits for bytes.
    """

    def __init__(self, response: Response, step: Send, intake: Intake, options: ReflectorOptions) -> None:
        self._response = response
        self._chunks: AsyncIterator[bytes] = response.chunks()
        self._idle_timeout = options.idle_timeout
        digest = WatchDigest if step.options.watch else ListDigest
        self._digest: WatchDigest | ListDigest = digest(intake, options)
        #: Yields what a chunk, or the end of the body, says.
        self.digest = self._digest.digest

    async def read(self) -> bytes | None:
        """Return the next chunk, or None at the end of the body.

        Raises:
            TransportError: the connection broke.
        """
        return await anext(self._chunks, None)

    async def read_failure(self) -> ApiError:
        """Return the error of a response whose status is not success; the head suffices if the body does not come."""
        body = bytearray()
        status, asked = self._response.status, retry_after(self._response.headers)
        try:
            async with asyncio.timeout(_FAILURE_TIMEOUT):
                async for chunk in self._chunks:
                    body += chunk
                    if len(body) > _MAX_STATUS:
                        break
        except TimeoutError:
            return api_error(status, {"message": "then the server fell silent"}, retry_after=asked)
        except TransportError as error:
            return api_error(status, {"message": f"then {error}"}, retry_after=asked)
        return status_error(status, bytes(body), retry_after=asked)

    async def answers(self, *, initial: bool) -> AsyncGenerator[Answer]:
        """Yield everything that the body says, as it comes.

        Args:
            initial: it is a part of a list.

        Raises:
            TransportError: the connection broke, or brought nothing whole for too long.
        """
        clock = asyncio.get_running_loop().time
        silent_at = clock() + self._idle_timeout
        chunk: bytes | None = b""
        while chunk is not None:
            try:
                async with asyncio.timeout_at(silent_at):
                    chunk = await self.read()
            except TimeoutError as error:
                raise TransportError(f"the server fell silent for {self._idle_timeout:g} s") from error
            for answer in self.digest(chunk, initial=initial):
                yield answer
                silent_at = clock() + self._idle_timeout

    @property
    def next_page(self) -> str:
        """The token of the next page, as soon as it is known; "" for a watch."""
        return self._digest.next_page

    async def close(self) -> None:
        """Close the response."""
        await self._response.close()
        if isinstance(self._chunks, AsyncGenerator):
            await self._chunks.aclose()  # otherwise asyncio would close it at some time, in a task without an owner


_log = get_logger("aioinformer.reflector")

#: Whatever is left to read is given this long at least: the loop may have been blocked by others.
_MIN_READ = 1.0


class Responses:
    """Sends requests, waits for responses, and reads them. Only one is open at a time.

    Args:
        requests: sends them.
        intake: makes records of objects.
        options: how to read.
        name: of the reflector, for logs.

    Attributes:
        last_event: when the server last sent anything, in seconds since the epoch; None if it never did.
    """

    def __init__(self, requests: Prefetcher, intake: Intake, options: ReflectorOptions, name: str) -> None:
        self.last_event: float | None = None
        self._requests = requests
        self._intake = intake
        self._options = options
        self._name = name
        self._reader: AnswerReader | None = None
        #: The request whose response has no head yet, though it is waited for as for events.
        self._pending: Send | None = None
        #: For how many seconds the response was read without anything whole; the reflector resets it.
        self.silent_for = 0.0
        #: Ends the wait for what the server sends; and whether `interrupt` did so.
        self._alarm: asyncio.Timeout | None = None
        self._interrupted = False

    @property
    def next_page(self) -> str:
        """The token of the page that follows the one that is read, as soon as it is known."""
        return self._reader.next_page if self._reader is not None else ""

    async def send(self, step: Send, tasks: asyncio.TaskGroup) -> Answer | None:
        """Send a request, and return what its head says, or that it is late; None if the wait was interrupted.

        Args:
            step: the request.
            tasks: owns the task that waits for the response.
        """
        self.silent_for = 0.0
        self._pending = step
        response = self._requests.request(step.options, tasks, step.patience)
        return await self._take_head(response, step.patience, Pending())

    async def read(self, step: Read) -> Answer | Iterator[Answer] | None:
        """Return what comes next: all that a chunk says, or one answer; None if the wait was interrupted."""
        clock = asyncio.get_running_loop().time
        begin = clock()
        patience, late = self._patience(step, begin)
        reader = self._reader
        if reader is None:
            return await self._take_head(self._requests.response(patience), patience, late)
        self._interrupted = False
        try:
            async with asyncio.timeout_at(None if patience is None else begin + patience) as self._alarm:
                chunk = await reader.read()
        except TimeoutError:
            if self._interrupted:
                return None
            self.silent_for = 0.0
            return late
        except (TransportError, DecodeError) as error:
            return Failed(error)
        except (Exception, asyncio.CancelledError) as error:
            return Failed(self._unforeseen("the answer could not be read", error))
        finally:
            self._alarm = None
        if chunk is not None:
            self.last_event = time()
        self.silent_for += clock() - begin
        return reader.digest(chunk, initial=step.initial)

    def silence(self, step: Read) -> Answer | None:
        """Return what to report after bytes that made nothing whole: they must not be read for ever."""
        if step.until is not None and asyncio.get_running_loop().time() >= step.until:
            return Elapsed()
        if step.silence is not None and self.silent_for >= step.silence:
            self.silent_for = 0.0
            return Idled(step.silence)
        return None

    def interrupt(self) -> None:
        """End the wait that is under way, if there is one."""
        if self._alarm is not None:
            with suppress(RuntimeError):  # the wait has just ended
                self._alarm.reschedule(asyncio.get_running_loop().time())
                self._interrupted = True

    async def close(self) -> None:
        """Close what is open, or under way."""
        if self._pending is not None:
            await self._requests.discard()
            self._pending = None
        if self._reader is not None:
            await closed(self._reader.close, self._name)
            self._reader = None  # not before: who is cancelled meanwhile closes it again

    async def _take_head(
        self, response: Awaitable[Response | None], patience: float | None, late: Answer
    ) -> Answer | None:
        """Wait for the head of the pending response, and return what it says, or that it is late.

        Args:
            response: None if it is late.
            patience: after so many seconds.
            late: what to return then.
        """
        step = self._pending
        assert step is not None, "the protocol reads what it never asked for"
        self._interrupted = False
        try:
            async with asyncio.timeout(None) as self._alarm:
                head = await response
        except TransportError as error:
            self._pending = None
            return Failed(error)
        except Exception as error:
            if self._interrupted:
                return None
            self._pending = None
            return Failed(self._unforeseen("the request could not be made", error))
        finally:
            self._alarm = None
        if head is None:
            self.silent_for += patience or 0.0
            return late
        self._pending = None
        self._reader = AnswerReader(head, step, self._intake, self._options)
        if head.status == 200:
            return Accepted()
        failure: ApiError | TransportError
        try:
            failure = await self._reader.read_failure()
        except (Exception, asyncio.CancelledError) as error:
            failure = self._unforeseen("the answer could not be read", error)
        return Failed(failure)

    def _patience(self, step: Read, now: float) -> tuple[float | None, Answer]:
        """For how many seconds to read, None for no limit, and what to report if nothing comes."""
        left = None if step.silence is None else max(step.silence - self.silent_for, _MIN_READ)
        until = None if step.until is None else max(step.until - now, _MIN_READ)
        if left is not None and (until is None or left <= until):
            assert step.silence is not None
            return left, Idled(step.silence)
        return until, Elapsed()

    def _unforeseen(self, what: str, error: BaseException) -> TransportError:
        """Return what credentials, a tweak function, or a transport that is not ours raised as a failure.

        Raises:
            CancelledError: the reflector is to end.
        """
        if is_ending(error, asyncio.current_task()):
            raise error
        _log.error("%s: %s", self._name, what, exc_info=error)
        reason = str(error) if isinstance(error, AioinformerError) else type(error).__name__
        return TransportError(f"{what}: {reason}")
