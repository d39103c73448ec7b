"""The responses that a reflector waits for and reads, one after the other; what they mean, the protocol decides."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING

from aioinformer.answers import AnswerReader
from aioinformer.errors import AioinformerError, ApiError, DecodeError, TransportError
from aioinformer.logger import get_logger
from aioinformer.owner import is_ending
from aioinformer.request_ahead import closed
from aioinformer.steps import Accepted, Answer, Elapsed, Failed, Idled, Pending, Read, Send

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from aioinformer.options import ReflectorOptions
    from aioinformer.request_ahead import RequestAhead
    from aioinformer.transport import Response
    from aioinformer.wire import Intake

_log = get_logger(__name__)

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

    def __init__(self, requests: RequestAhead, intake: Intake, options: ReflectorOptions, name: str) -> None:
        self.last_event: float | None = None
        self._requests = requests
        self._intake = intake
        self._options = options
        self._name = name
        self._reader: AnswerReader | None = None
        #: The request whose response has no head yet, though it is waited for as for events.
        self._pending: Send | None = None
        #: For how long, in seconds, it was read, and nothing whole came.
        self._silent_for = 0.0
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
        self._silent_for = 0.0
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
            self._silent_for = 0.0
            return late
        except (TransportError, DecodeError) as error:
            return Failed(error)
        except (Exception, asyncio.CancelledError) as error:
            return Failed(self._unforeseen("the answer could not be read", error))
        finally:
            self._alarm = None
        if chunk is not None:
            self.last_event = time()
        self._silent_for += clock() - begin
        return reader.digest(chunk, initial=step.initial)

    def end_silence(self) -> None:
        """Note that something whole came."""
        self._silent_for = 0.0

    def silence(self, step: Read) -> Answer | None:
        """Return what to report after bytes that made nothing whole: they must not be read for ever."""
        if step.until is not None and asyncio.get_running_loop().time() >= step.until:
            return Elapsed()
        if step.silence is not None and self._silent_for >= step.silence:
            self._silent_for = 0.0
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
            self._silent_for += patience or 0.0
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
        left = None if step.silence is None else max(step.silence - self._silent_for, _MIN_READ)
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
