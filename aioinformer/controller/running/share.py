"""`Share`: the part of a controller's objects that its replica reconciles, by the slots that it owns in a ring.

A key belongs to the slot of its object: of the cached one, or of the one that was deleted last under this name. Keys of
other slots are dropped where they arrive, and again before they run. When a slot is gained, all of its objects run, and
so do those that have been deleted lately, once the caches have all that the server had then: the last writes of the
former owner. When a slot is lost, its keys leave the queue.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from aioinformer.cache.store import NAMESPACE_INDEX
from aioinformer.client.requests import APPLY
from aioinformer.concurrency import create_task
from aioinformer.controller.inputs.owners import controllers
from aioinformer.controller.request import LOW_PRIORITY, Cause
from aioinformer.controller.running.catching_up import CatchUp
from aioinformer.controller.writes.permits import WITH_UID
from aioinformer.resources.keys import ObjectName
from aioinformer.ring import SlotLost

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.client.targets import Target
    from aioinformer.controller.declaration import Controller
    from aioinformer.controller.running.attached import Inputs
    from aioinformer.controller.running.cancellation import Cancellation
    from aioinformer.controller.running.settings import Services
    from aioinformer.controller.writes.own_writes import OwnWrites
    from aioinformer.controller.writes.permits import Leaving
    from aioinformer.resources.resource import Resource
    from aioinformer.ring import Membership, SlotGrant
    from aioinformer.transport import HttpRequest
    from aioinformer.workqueue.requests.request_queue import RequestQueue

_GAINED: Final = Cause("takeover")
#: Seconds for which the uid of a deleted object is known, and within which its deletion runs in a slot that is gained.
_REMEMBERED: Final = 600.0
_LATELY: Final = 120.0


class Share:
    """The slots in which one controller works."""

    def __init__(
        self,
        controller: Controller[Any],
        membership: Membership,
        services: Services,
        inputs: Inputs,
        queue: RequestQueue,
        own: OwnWrites,
        cancellation: Cancellation,
    ) -> None:
        self.membership = membership
        self._controller = controller
        self._name = controller.name
        self._services = services
        self._inputs = inputs
        self._queue = queue
        self._own = own
        self._cancellation = cancellation
        self._primary = _place(controller.resource)
        self._owned = {_place(each.resource) for each in controller.owns}
        #: The slots in which the caches are current.
        self._ready: set[int] = set()
        #: Deleted objects of the primary: the uid, and when the deletion was noticed. The oldest are the first.
        self._former: OrderedDict[ObjectName, tuple[str, float]] = OrderedDict()
        #: What takes slots, and the slots.
        self._tasks: dict[asyncio.Task[None], set[int]] = {}

    def slot_of(self, key: ObjectName) -> int | None:
        """Return the slot of a key; None if it is not known, because its object never was in the cache."""
        uid = self.uid_of(key)
        if uid or self.membership.ring.by == "namespace":
            return self.membership.slot_of(uid, key.namespace)
        return None

    def uid_of(self, key: ObjectName) -> str:
        """Return the uid of the object of a key, or of the one that was deleted last under this name; "" for none."""
        record = self._inputs.primary.get_indexer().store.item(str(key))
        return record.uid if record is not None else self._former.get(key, ("", 0.0))[0]

    def namespaces(self) -> list[str]:
        """Return the namespaces of the objects in the cache; none while the controller has no cache."""
        primary = self._inputs.informers()[:1]
        return [each for informer in primary for each in informer.get_indexer().list_index_func_values(NAMESPACE_INDEX)]

    def admits(self, key: ObjectName) -> bool:
        """Return whether a key belongs to a slot in which this replica works."""
        return self.slot_of(key) in self._ready

    def grant(self, key: ObjectName) -> SlotGrant | None:
        """Return the right to run a key now; None if this replica does not have it."""
        return self._grant(self.slot_of(key))

    def _grant(self, slot: int | None) -> SlotGrant | None:
        if slot is not None and slot in self._ready:
            return self.membership.grant(slot)
        return None

    def check_write(self, key: ObjectName, uid: str, write: Leaving) -> None:
        """Check that a run may write this: objects of its resource are in slots of this replica.

        So are objects whose controller is of that resource.

        Args:
            key: of the run.
            uid: of its object when the run began.
            write: what it writes.

        Raises:
            SlotLost: it may be the part of another replica.
        """
        if write.target is not None and self._is_foreign(key, uid, write.target, write):
            why = "its slot, or the slot of an object in it, may be that of another replica"
            raise SlotLost(
                f"{write.target} is refused in the run for {key}: {why}; use client.outside_ring() if you must"
            )

    def _is_foreign(self, key: ObjectName, uid: str, target: Target, write: Leaving) -> bool:
        resource = self._controller.resource
        if (target.group, target.plural) == self._primary:
            other = ObjectName(target.namespace, target.name)
            new = target.verb == "create" and not target.name and self.membership.ring.by == "uid"
            return not new and other != key and not self.grant(other)
        if target.verb == "deletecollection":
            return (target.group, target.plural) in self._owned
        cached = self._own.cached(target)
        known = (write.body, write.stored, None if cached is None else cached.json)
        for each in [reference for raw in known for reference in controllers(raw)]:
            of_primary = (each.api_version.rpartition("/")[0], each.kind) == (resource.group, resource.kind)
            slot = self.membership.slot_of(each.uid, target.namespace if key.namespace else "")
            if of_primary and each.uid != uid and not self._grant(slot):
                return True
        return False

    def must_read(self, uid: str, target: Target, request: HttpRequest) -> bool:
        """Return whether an object must be read before a write: in no cache, it may be a child of another slot."""
        if (target.group, target.plural) not in self._owned or not target.name or self._own.cached(target) is not None:
            return False
        # Beside another controller in the stored object, the server refuses an applied one.
        applied = request.headers.get("Content-Type") == APPLY
        return not (applied and any(each.uid == uid for each in controllers(request.body)))

    def is_own(self, key: ObjectName, target: Target) -> bool:
        """Return whether a write is about the object of a key, and can carry its uid."""
        same = (target.group, target.plural) == self._primary and ObjectName(target.namespace, target.name) == key
        return same and target.subresource in WITH_UID

    def note_deleted(self, key: ObjectName, uid: str) -> None:
        """Note the uid of an object of the primary that is gone."""
        now = asyncio.get_running_loop().time()
        self._former[key] = uid, now
        self._former.move_to_end(key)
        while next(iter(self._former.values()))[1] < now - _REMEMBERED:
            self._former.popitem(last=False)

    def change(self, gained: set[int], lost: set[int], ended: set[int], synced: Callable[[], Any]) -> None:
        """Work in other slots from now on.

        Args:
            gained: the slots in which work may begin, once the caches are current.
            lost: the slots in which none may begin. Attempts have the grace of the manager to end.
            ended: the slots in which attempts must end at once.
            synced: waits for the first lists.
        """
        for slots in (self._ready, *self._tasks.values()):  # what is lost, and gained again, is taken anew
            slots -= lost | ended
        for key in {each for each, _ in self._queue.waiting()} | self._queue.parked().keys():
            if self.slot_of(key) not in self._ready:
                self._queue.forget(key)
        self._cut(ended)
        if handed_over := lost - ended:
            asyncio.get_running_loop().call_later(self._services.settings.grace, self._cut, handed_over)
        if gained:
            slots = set(gained)
            task = create_task(self._take(slots, synced), name=f"controller {self._name}: takes {len(slots)} slots")
            self._tasks[task] = slots
            task.add_done_callback(self._tasks.pop)

    def _cut(self, slots: set[int]) -> None:
        """Cancel the attempts in slots, unless these may be worked in again."""
        lost = slots - self.membership.accepted
        running = self._cancellation.attempts.items()
        if tasks := [task for task, each in running if each.slot in lost and not each.cut]:
            ending = self._cancellation.cut(tasks, "their slot of the ring is lost")
            create_task(ending, name=f"controller {self._name}: cancels attempts")

    async def close(self) -> None:
        """End what takes slots."""
        for task in (tasks := list(self._tasks)):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _take(self, slots: set[int], synced: Callable[[], Any]) -> None:
        catch_up = CatchUp(self._name, self._inputs.informers, self._services.caches)
        catch_up.begin()
        if self._services.select_slots is not None:
            await self._services.select_slots()
        await synced()
        await catch_up.wait()
        self._ready |= slots
        now = asyncio.get_running_loop().time()
        gone = [key for key, (_, at) in self._former.items() if at >= now - _LATELY]
        for key in [*self._inputs.keys(), *gone]:
            if self.slot_of(key) in slots:
                self._own.forget(key)  # the caches have its earlier writes
                self._queue.add(key, _GAINED, priority=LOW_PRIORITY)


def _place(resource: Resource[Any]) -> tuple[str, str]:
    return resource.group, resource.plural
