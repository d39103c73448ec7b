"""The watch of one object, such as a Lease by its candidates: it reports changes, and wakes its owner for a try.

Without the watch, the owner notices a change at its next try, after the retry period.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from aioinformer.concurrency import Owner
from aioinformer.errors import AioinformerError, ApiError
from aioinformer.informer.watch import RetryWatcher
from aioinformer.leaderelection.lock import LEASES, decode_lease
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.reflector.watch_events import DELETED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.resources.resource import Resource
    from aioinformer.transport import Transport

#: Seconds until another watch is requested after the server has refused one (403), or one has crashed.
_REFUSED: Final = 300.0

_log = get_logger("aioinformer.leaderelection")


class ObjectWatch:
    """Watches one object, from a known version on.

    `on_event` is called with the object of each event, and whether it was deleted; it returns whether to try at once.
    By default, each event asks for a try.
    """

    def __init__(
        self,
        transport: Transport,
        name: str,
        namespace: str,
        random: Callable[[], float],
        resource: Resource[Any] = LEASES,
        on_event: Callable[[Mapping[str, Any], bool], bool] = lambda obj, deleted: True,
    ) -> None:
        self._subject = f"{resource.kind.lower()} {namespace}/{name}"
        self._watched = ListWatch(transport, resource, namespace, field_selector={"metadata.name": name})
        self._on_event = on_event
        self._random = random
        self._wake = asyncio.Event()
        self._owner = Owner()
        self._refusal_logged = False
        self._refused_until = float("-inf")

    def start(self, version: str) -> None:
        """Watch from the version that the server has answered with last; "" starts no watch.

        Nothing happens while a watch runs, or for five minutes after one was refused or has crashed.
        """
        if version and not self._owner.running and asyncio.get_running_loop().time() >= self._refused_until:
            self._owner.start(lambda: self._run(version), f"watch of {self._subject}")

    def wake(self) -> None:
        """Let the wait return, or the next one."""
        self._wake.set()

    async def wait(self, seconds: float) -> None:
        """Return when an event asks for a try at once, at the latest after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass
        finally:
            self._wake.clear()

    async def stop(self) -> None:
        """End the watch."""
        await self._owner.stop()
        self._wake = asyncio.Event()  # another event loop may run the next term

    async def _run(self, version: str) -> None:
        try:
            async with RetryWatcher(self._watched, version, decoder=decode_lease, random=self._random) as events:
                async for event in events:
                    if self._on_event(event.object, event.type == DELETED):
                        self._wake.set()
        except AioinformerError as error:
            if not isinstance(error, ApiError) or error.status != 403:
                _log.debug("the watch of %s ended: %s; the next try starts another", self._subject, error)
                return
            self._refused_until = asyncio.get_running_loop().time() + _REFUSED
            level = _log.debug if self._refusal_logged else _log.info
            self._refusal_logged = True
            level("%s cannot be watched: %s; changes are noticed after the retry period", self._subject, error)
        except Exception:  # its owner goes on without the watch
            self._refused_until = asyncio.get_running_loop().time() + _REFUSED
            _log.exception("the watch of %s failed; another starts in %g s", self._subject, _REFUSED)
