"""Wait until caches have writes: those of the controller itself, and those of a former leader (`CatchUp`).

The former leader may write until its Lease ends, and the caches of a standby may lag behind.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.concurrency import TaskGroup, create_task
from aioinformer.controller.writes.own_writes import StaleCache
from aioinformer.logs import get_logger
from aioinformer.metrics.counters import DELAY_BOUNDS, DurationCounter
from aioinformer.workqueue.waiting import loop_time

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from aioinformer.controller.declaration import Controller
    from aioinformer.controller.writes.current import CurrentCaches
    from aioinformer.controller.writes.own_writes import OwnWrites
    from aioinformer.handlers.repeated import RepeatedErrors
    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.resources.keys import ObjectName

_log = get_logger("aioinformer.controller")

#: Seconds of waiting after which the log says so.
_LONG: Final = 1.0
#: Seconds of the first wait for own writes until the server is asked what it has. They double, up to a limit.
_PATIENCE = 5.0
_MOST_PATIENCE = 60.0


class CatchUp:
    """The wait of one controller: for the informers of its inputs, with the `CurrentCaches` of the manager."""

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
            line = "controller %s works: its caches have the writes of the former leader after %.1f s"
            _log.info(line, self._name, seconds)

    def waits_for(self) -> list[str]:
        """Return the informers that may lack something, with the reasons."""
        since = self._since
        if since is None:
            return []
        waiting = (each for each in self._informers() if not self._caches.is_current(each, since))
        return [f"{each.name}: {self._caches.problem(each) or 'compared with the server'}" for each in waiting]


class OwnWritesGate(msgspec.Struct, eq=False):
    """Between the runs of a key: the one place that asks whether the caches have what the earlier runs wrote.

    `undecodable` is that of the `Inputs`. `errors` logs a few of the waits that take long: there may be thousands
    while the objects of a gained slot are listed. `settling` has the keys whose own writes are not in the caches yet,
    and their waits; `waits` counts how long these took, and `since` has when those that last began.
    """

    controller: Controller[Any]
    own: OwnWrites
    undecodable: Mapping[str, tuple[str, str]]
    errors: RepeatedErrors
    settling: dict[ObjectName, asyncio.Task[None]] = msgspec.field(default_factory=dict)
    waits: DurationCounter = msgspec.field(default_factory=lambda: DurationCounter(DELAY_BOUNDS))
    since: dict[ObjectName, float] = msgspec.field(default_factory=dict)

    def is_closed(self, key: ObjectName) -> bool:
        """Return whether the caches lack own writes of a key.

        No cache ever shows those that made or left the object of the key undecodable, and its handler reads the object.
        """
        if self.undecodable and (found := self.undecodable.get(str(key))) is not None:
            self.own.skip(key, self.controller.resource, found[1])
        return self.own.pending(key)

    def hold(self, key: ObjectName, on_late: Callable[[], object] | None, then: Callable[[], object]) -> None:
        """Call `then` when `wait` has returned for a key, or was cancelled."""
        name = f"controller {self.controller.name}: own writes of {key}"
        self.settling[key] = create_task(self._hold(key, on_late, then), name=name)

    async def _hold(self, key: ObjectName, on_late: Callable[[], object] | None, then: Callable[[], object]) -> None:
        began = loop_time()
        self.since[key] = began
        try:
            await self.wait(key, on_late)
        finally:
            self.waits.observe(loop_time() - began)
            del self.since[key]
            del self.settling[key]
            then()

    def longest_wait(self) -> float:
        """Return for how long the key that waits longest for its own writes has waited; 0 for none. Thread-safe."""
        first = min(list(self.since.values()), default=None)
        return 0.0 if first is None else max(0.0, loop_time() - first)

    async def wait(self, key: ObjectName, on_late: Callable[[], object] | None) -> None:
        """Return when the caches have the own writes of a key. A wait that takes long is logged once, or counted.

        `on_late` is called when a wait has taken too long, before the next one; None for one wait.
        """
        clock = asyncio.get_running_loop().time
        seconds = _PATIENCE
        name = self.controller.name
        reported = False
        logged = False
        while True:
            began = clock()
            try:
                await self.own.settle(key, seconds)
            except Exception as error:
                if on_late is None or not self.is_closed(key):
                    return
                on_late()
                if not reported:
                    line = "controller %s: %s; its next run waits for them"
                    level = logging.WARNING if isinstance(error, StaleCache) else logging.ERROR
                    subject = f"controller {name}, reading its own writes,"
                    logged = self.errors.report(subject, error, line, name, error, level=level, key=str(key), lines=2)
                reported = True
                if clock() - began < seconds:  # a read has failed, perhaps at once
                    await asyncio.sleep(seconds / 5)
                seconds = min(2 * seconds, _MOST_PATIENCE)
            else:
                if logged:
                    _log.info("controller %s: the caches show the writes of %s", name, key)
                return
