"""A handler that compares each notification with the history of its object."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer import DeletedFinalStateUnknown
from aioinformer.handlers import ResourceEventHandlerDetailedFuncs
from tests.system.simulation.collection import key_of, serial_of
from tests.system.simulation.history import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from aioinformer.handlers import HandlerRegistration
    from tests.system.simulation.history import History
    from tests.system.simulation.scenario import Manner
    from tests.system.simulation.world import Story


class OnPurpose(Exception):
    """Raised by handlers and index functions that fail on purpose."""


class Witness:
    """The notifications of one registration.

    Attributes:
        present: serial numbers of delivered and not deleted objects, by key.
        greeting: serial numbers of its initial notifications by key, in the order of the cache; None if it was
            registered before the start.
        joined_synced: whether the informer had synced when it joined.
        hurries: whether its calls take no more time, so that it catches up.
        initial: keys that must be delivered before it has synced.
        removed: whether it must not be called any more.
    """

    def __init__(
        self,
        name: str,
        manner: Manner,
        random: Random,
        history: History,
        cached: Callable[[str], int],
        story: Story,
    ) -> None:
        self.name = name
        self.manner = manner
        self.present: dict[str, int] = {}
        self.greeting: Mapping[str, int] | None = None
        self.initial: set[str] = set()
        self.seen: set[str] = set()
        self.registration: HandlerRegistration[Any] | None = None
        self.synced = False
        self.removed = False
        self.busy = False
        self.calls = 0
        self.raised = 0
        self.joined = 0.0
        self.joined_synced = False
        self.hurries = False
        self.leave: Callable[[Witness], None] = lambda witness: None
        self.bring: Callable[[], None] = lambda: None
        self._places: dict[str, list[int]] = {}
        self._repeats: dict[str, int] = {}
        self._greeted = 0
        self._random = random
        self._history = history
        self._cached = cached
        self._story = story

    def handler(self) -> Any:
        """The handler to register, with plain functions or with coroutine functions."""

        def plain(note: Callable[..., None]) -> Callable[..., None]:
            def call(*notification: Any) -> None:
                note(*notification)
                self.take_no_time()

            return call

        def awaited(note: Callable[..., None]) -> Callable[..., Any]:
            async def call(*notification: Any) -> None:
                note(*notification)
                await self.take_time()

            return call

        of = plain if self.manner.plain else awaited
        return ResourceEventHandlerDetailedFuncs(of(self.added), of(self.updated), of(self.deleted))

    # Notifications.

    def added(self, obj: Any, initial: bool) -> None:
        key, serial = key_of(obj), serial_of(obj)
        self._story.tell(self.name, "add%s %s: write %d", "!" if initial else "", key, serial)
        if self.synced and initial:
            self._violate("synced too early", f"{key} of the initial list is delivered after has_synced() was true")
        if self.greeting is not None and self._greeted < len(self.greeting):
            self._greeted += 1
            if not initial or self.greeting.get(key) != serial or key in self.seen:
                self._violate(
                    "wrong snapshot",
                    f"{key} at write {serial} is delivered, but was not cached when the handler was added",
                )
        else:
            if self.joined_synced and initial:
                self._violate("wrong snapshot", f"{key} is delivered as part of the initial list after its end")
            if key in self.present:
                self._violate("illegal history", f"{key} is added, but exists")
            self._move(key, serial)
        self.seen.add(key)
        self.present[key] = serial

    def updated(self, old: Any, new: Any) -> None:
        key, before, after = key_of(new), serial_of(old), serial_of(new)
        self._story.tell(self.name, "update %s: write %d to %d", key, before, after)
        self._expect_greeting_over(key)
        if self.present.get(key, ABSENT) != before:
            told = self.present.get(key, ABSENT)
            self._violate("illegal history", f"{key} is updated from write {before}, but was at {told}")
        elif before == after:
            self._repeated(key)
            return
        self._move(key, after)
        self.present[key] = after

    def deleted(self, obj: Any) -> None:
        missed = isinstance(obj, DeletedFinalStateUnknown)
        last = obj.obj if missed else obj
        key = obj.key if missed else key_of(obj)
        serial = serial_of(last) if last is not None else ABSENT
        self._story.tell(self.name, "%s %s: write %d", "tombstone" if missed else "delete", key, serial)
        self._expect_greeting_over(key)
        told = self.present.pop(key, ABSENT)
        if told == ABSENT:
            self._violate("illegal history", f"{key} is deleted, but does not exist")
        elif told != serial:
            self._violate("illegal history", f"{key} is deleted at write {serial}, but was delivered at {told}")
        self._move(key, ABSENT, listed=missed and not self._history.lacks_readable(key))

    def begin_at(self, places: Mapping[str, int]) -> None:
        """Set the places in the history of the initial notifications."""
        greeting = (self.greeting or {}).items()
        self._places = {key: self._history.places(key, places[key], serial) for key, serial in greeting}

    def initial_over(self) -> bool:
        """Return whether all initial notifications are delivered."""
        return self.greeting is not None and self._greeted >= len(self.greeting)

    async def take_time(self) -> None:
        """Wait for the duration of a call."""
        self._begin()
        try:
            pace = self._random.choice(self.manner.paces)
            if pace and not self.hurries:
                await asyncio.sleep(pace)
            self._react()
        finally:
            self.busy = False

    def take_no_time(self) -> None:
        """Return at once: the handler is a plain function."""
        self._begin()
        self.busy = False
        self._react()

    def _begin(self) -> None:
        self.calls += 1
        if self.busy:
            self._violate("concurrent calls", f"call {self.calls}")
        if self.removed:
            self._violate("delivered after removal", f"call {self.calls}")
        self.busy = True

    def _react(self) -> None:
        if self.calls == self.manner.leaves_after:
            self.leave(self)
        if self.calls == self.manner.brings_after:
            self.bring()
        if self._random.random() < self.manner.errors:
            self.raised += 1
            raise OnPurpose

    def _expect_greeting_over(self, key: str) -> None:
        if self.greeting is not None and not self.initial_over():
            self._violate("wrong snapshot", f"{key} is delivered before the end of the snapshot")

    def _repeated(self, key: str) -> None:
        now = asyncio.get_running_loop().time()
        repeats = self._repeats[key] = self._repeats.get(key, 0) + 1
        period = self.manner.resync
        if not period or repeats > (now - self.joined) / period + 1:
            self._violate("duplicate", f"{key} is delivered again without a resync, for the {repeats}th time")

    def _move(self, key: str, serial: int, *, listed: bool = False) -> None:
        self.seen.add(key)
        places = self._history.next(key, self._places.get(key, ()), serial, listed=listed)
        what = f"{key} is delivered as {f'at write {serial}' if serial else 'deleted'}"
        if isinstance(places, str):
            self._violate("lost" if places.startswith("states") else "out of order", f"{what}: {places}")
            return
        self._places[key] = places
        if not self._history.covers(key, places[0], self._cached(key)):
            self._violate("delivered before cached", f"{what}, but the cache has not reached that state")

    def _violate(self, invariant: str, what: str) -> None:
        self._story.violate(invariant, f"{self.name}: {what}")
