"""The next page of a list is asked for while this one is decoded, so that nobody waits for anybody."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aioinformer.errors import TransportError
from aioinformer.logger import get_logger
from aioinformer.owner import is_ending

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer.listwatch import ListerWatcher
    from aioinformer.options import ListOptions
    from aioinformer.transport import Response

_log = get_logger(__name__)


async def closed(close: Callable[[], Awaitable[None]], name: str) -> None:
    """Close a response. If its transport fails to do so, log that, and go on.

    Args:
        close: closes it.
        name: of who had it, for the log.
    """
    try:
        await close()
    except (Exception, asyncio.CancelledError) as error:
        if is_ending(error, asyncio.current_task()):
            raise
        _log.error("%s: a response could not be closed", name, exc_info=error)


class RequestAhead:
    """Sends requests, one of which may be sent before its turn.

    Args:
        lister_watcher: what to ask.
        name: of the task that waits for the answer.
    """

    def __init__(self, lister_watcher: ListerWatcher[Any], name: str) -> None:
        self._lister_watcher = lister_watcher
        self._name = name
        self._options: ListOptions | None = None
        self._task: asyncio.Task[Response | Exception] | None = None

    def start(self, options: ListOptions, tasks: asyncio.TaskGroup) -> None:
        """Sends a request whose turn will come, unless one is on its way already."""
        if self._task is None:
            self._options = options
            self._task = tasks.create_task(self._send(options), name=self._name)

    async def request(
        self, options: ListOptions, tasks: asyncio.TaskGroup, patience: float | None = None
    ) -> Response | None:
        """Return the response to a request: the one that is under way, if it is the same.

        Args:
            options: of the request.
            tasks: owns the task that waits for the response.
            patience: seconds to wait for it, None for no limit. After that None is returned, the request stays under
                way, and `response()` waits on.

        Raises:
            Exception: what the request came to.
        """
        if self._task is None or options != self._options:
            await self.discard()
            self.start(options, tasks)
        return await self.response(patience)

    async def response(self, patience: float | None) -> Response | None:
        """Return the response to the request that is under way; None if it does not come in so many seconds.

        Raises:
            Exception: what the request came to.
        """
        task = self._task
        assert task is not None, "no request is under way"
        await asyncio.wait({task}, timeout=patience)
        if not task.done():
            return None
        self._task = None
        answer = task.result()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def discard(self) -> None:
        """Lets go of what is on its way: its turn does not come."""
        task = self._task
        if task is None:
            return
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and not isinstance(answer := task.result(), Exception):
            await closed(answer.close, self._name)
        self._task = None  # not before: who is cancelled meanwhile discards it again

    async def _send(self, options: ListOptions) -> Response | Exception:
        try:
            return await self._lister_watcher.request(replace(options))  # which may be changed on the way
        except Exception as error:  # it is told when its turn comes
            return error
        except asyncio.CancelledError as error:  # of something that the request awaited, unless it is this task's
            if is_ending(error, asyncio.current_task()):
                raise
            return TransportError("something that the request waited for was cancelled")
