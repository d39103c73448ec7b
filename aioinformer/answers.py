"""An answer of the server, read bit by bit: bytes in, answers in the words of the protocol out.

Reading waits; digesting does not. What one chunk holds is digested in slices, so that the loop can have a turn
between two of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import TYPE_CHECKING

from aioinformer.errors import ApiError, DecodeError, TransportError, api_error
from aioinformer.framing import ValueStream
from aioinformer.list_head import status_error
from aioinformer.list_stream import ListParser
from aioinformer.retry_after import retry_after
from aioinformer.slices import Slicer
from aioinformer.steps import Answer, Ended, Failed, Listed, PageEnded, Send, Watched
from aioinformer.wire import Intake, WatchEvent, decode_event_in_steps, decode_watch_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from aioinformer.objects import Record
    from aioinformer.options import ReflectorOptions
    from aioinformer.transport import Response

#: As much of the body of a failure is read; a Status is far below that.
_MAX_STATUS = 256 * 1024
#: So many seconds it may take.
_FAILURE_TIMEOUT = 10.0


class AnswerReader:
    """Reads the body of one answer, and lets go of it.

    Args:
        response: the answer; closed by `close()`.
        step: what was asked.
        intake: makes records of objects.
        options: the cap on objects, the length of slices, and how long `answers` bears silence.
    """

    def __init__(self, response: Response, step: Send, intake: Intake, options: ReflectorOptions) -> None:
        self._response = response
        self._chunks: AsyncIterator[bytes] = response.chunks()
        self._slicer = Slicer(options.slice_seconds)
        self._intake = intake
        #: What makes events of the values of a watch, at once and in steps.
        self._initial = (
            partial(decode_watch_line, intake=partial(intake.listed, valid=True)),
            partial(decode_event_in_steps, intake=intake.listed_in_steps),
        )
        self._changed = (
            partial(decode_watch_line, intake=intake.changed),
            partial(decode_event_in_steps, intake=intake.changed_in_steps),
        )
        self._watch = step.options.watch
        self._idle_timeout = options.idle_timeout
        self._values = ValueStream(options.max_frame)
        self._parser: ListParser[Record] = ListParser(intake.listed, options.max_frame, in_steps=intake.listed_in_steps)

    async def read(self) -> bytes | None:
        """The next chunk, None at the end of the body.

        Raises:
            TransportError: the connection broke.
        """
        return await anext(self._chunks, None)

    async def read_failure(self) -> ApiError:
        """The error in an answer whose status is not success; the head says enough if the body does not come."""
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
        """All that the body says, as it comes.

        Args:
            initial: what comes is a part of a list.

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

    def digest(self, chunk: bytes | None, *, initial: bool) -> Iterator[Answer]:
        """What a chunk, or the end of the body, says. One answer is about one slice of work.

        Args:
            chunk: what `read` returned.
            initial: the protocol takes what comes for a part of a list.
        """
        self._slicer.start()
        try:
            yield from self._digest_watch(chunk, initial) if self._watch else self._digest_list(chunk)
        except (DecodeError, ApiError) as error:
            yield Failed(error)

    @property
    def next_page(self) -> str:
        """The token of the page that follows, as soon as it can be known: where the server writes metadata first."""
        return self._parser.next_page

    async def close(self) -> None:
        """Lets go of the connection."""
        await self._response.close()
        if isinstance(self._chunks, AsyncGenerator):
            await self._chunks.aclose()  # or asyncio would do it, some time, in a task of nobody's

    def _digest_watch(self, chunk: bytes | None, initial: bool) -> Iterator[Answer]:
        if chunk is None:
            if self._values.finish():
                yield Failed(TransportError("the watch ended in the middle of an event"))
            else:
                yield Ended()
            return
        decode, in_steps = self._initial if initial else self._changed
        events: list[WatchEvent] = []
        try:
            for event in self._values.read(chunk, decode, in_steps):
                if event is not None:
                    events.append(event)
                if self._slicer.due():
                    yield Watched(events)
                    events = []
                    self._slicer.start()
        except DecodeError as error:
            # What came before the broken line is good, and must not be asked for again.
            if events:
                yield Watched(events)
            yield Failed(error)
            return
        if events:
            yield Watched(events)

    def _digest_list(self, chunk: bytes | None) -> Iterator[Answer]:
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
