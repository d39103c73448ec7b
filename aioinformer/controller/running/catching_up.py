"""`CatchUp`: in a new term of leadership, wait until the caches have the last writes of the former leader.

The former leader may write until its Lease ends, and the caches of a standby may lag behind.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from aioinformer.concurrency import TaskGroup
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.own_writes.current import CurrentCaches

_log = get_logger("aioinformer.controller")

#: Seconds of waiting after which the log says so.
_LONG: Final = 1.0


class CatchUp:
    """The wait of one controller.

    Args:
        name: of the controller.
        informers: returns the informers of its inputs.
        caches: of the manager.
    """

    def __init__(
        self, name: str, informers: Callable[[], Collection[SharedIndexInformer[Any]]], caches: CurrentCaches
    ) -> None:
        self._name = name
        self._informers = informers
        self._caches = caches
        #: When the term began, while the caches may lack what the server had then.
        self._since: float | None = None

    @property
    def is_done(self) -> bool:
        """Whether the caches have all that the server had when the last term began."""
        return self._since is None

    def begin(self) -> None:
        """Note that a term of leadership begins."""
        self._since = asyncio.get_running_loop().time()

    async def wait(self) -> None:
        """Return once the caches have all that the server had when the term began; at once if they do already."""
        if self._since is None:
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        subject = f"controller {self._name} is the leader and waits for its caches"
        async with TaskGroup() as tasks:
            for informer in self._informers():
                waiting = self._caches.wait(informer, self._since, subject)
                tasks.create_task(waiting, name=f"controller {self._name}: {informer.name} catches up")
        self._since = None
        if (seconds := loop.time() - began) > _LONG:
            _log.info(
                "controller %s works: its caches have the writes of the former leader after %.1f s", self._name, seconds
            )

    def waits_for(self) -> list[str]:
        """Return the informers that may lack something, with the reasons."""
        since = self._since
        if since is None:
            return []
        waiting = (each for each in self._informers() if not self._caches.is_current(each, since))
        return [f"{each.name}: {self._caches.problem(each) or 'compared with the server'}" for each in waiting]
