"""`Replica`: a running manager as one replica of a ring, whose controllers work in the slots that it owns."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

from aioinformer.logs import get_logger
from aioinformer.resources.references import ObjectReference
from aioinformer.ring import Membership
from aioinformer.ring.informers import RingInformers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.controller.running.settings import GuardedThread, Settings
    from aioinformer.controller.running.supervised import Supervised
    from aioinformer.controller.writes.permits import UnansweredWrites
    from aioinformer.factory.pool import ControllerInformers
    from aioinformer.ring import ControllerRing
    from aioinformer.transport import Transport

_log = get_logger("aioinformer.controller")


class Replica:
    """Gives the slots of this process to its controllers, and to their caches.

    Args:
        transport: for the requests of the ring.
        event: records an Event: object, type, reason, message.
        controllers: the running controllers by name; they change.
        threads: of attempts, also of those that a stop has given up.
        unanswered: the writes of the controllers that have no answer.
        is_ending: returns whether the stop of the manager has begun.
    """

    def __init__(
        self,
        ring: ControllerRing,
        transport: Transport,
        event: Any,
        settings: Settings,
        controllers: dict[str, Supervised],
        informers: ControllerInformers,
        threads: Mapping[asyncio.Future[None], GuardedThread],
        unanswered: UnansweredWrites,
        is_ending: Callable[[], bool],
    ) -> None:
        where = ObjectReference("v1", "ConfigMap", ring.object, ring.namespace)
        self.membership = Membership(
            transport,
            ring,
            on_change=self._share,
            busy=self._busy,
            namespaces=self._namespaces,
            metrics=settings.metrics,
            on_trouble=lambda reason, message: event(where, "Warning", reason, message),
        )
        self._settings = settings
        self._controllers = controllers
        self._informers = informers
        self._threads = threads
        self._unanswered = unanswered
        self._is_ending = is_ending
        self._tasks: asyncio.TaskGroup | None = None
        self._running: asyncio.Task[None] | None = None

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Take part in the ring."""
        self._tasks = tasks
        self._running = tasks.create_task(self.membership.run(), name=f"manager {self._settings.name}: ring")

    async def leave(self) -> None:
        """Leave the ring, unless something of this process goes on that the others must not overlap."""
        if busy := self._busy():
            _log.error("%s: its Lease must expire: attempts go on in the slots %s", self.membership, sorted(busy))
        elif self._running is not None and not self._running.done():
            await self.membership.leave(self.membership.ring.options.renew_deadline)
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    async def select_slots(self) -> None:
        """Let the caches have the objects of the slots in which this process works, or has attempts that end."""
        if isinstance(self._informers, RingInformers):
            await self._informers.select(self.membership.accepted | self._busy())

    def _share(self, gained: set[int], lost: set[int], ended: set[int]) -> None:
        for each in self._controllers.values():
            each.active.change_share(gained, lost, ended)
        self._unanswered.abort_refused()
        if lost and not gained and not self._is_ending():
            asyncio.get_running_loop().call_later(self._settings.grace, self._shrink)

    def _shrink(self) -> None:
        if self._tasks is not None and not self._is_ending():
            self._tasks.create_task(self.select_slots(), name=f"manager {self._settings.name}: drops lost slots")

    def _busy(self) -> set[int]:
        """Return the slots of the ring in which attempts or their threads run."""
        in_threads = {each.slot for each in self._threads.values() if each.slot is not None}
        return in_threads.union(*(each.active.busy() for each in self._controllers.values()))

    def _namespaces(self) -> Counter[int]:
        """Return how many namespaces with objects fall into each slot of a ring by namespace."""
        if self.membership.ring.by == "uid":
            return Counter()
        shares = [each.active.share for each in self._controllers.copy().values()]
        names = {name for share in shares if share is not None for name in share.namespaces()}
        return Counter(self.membership.slot_of("", name) for name in names)
