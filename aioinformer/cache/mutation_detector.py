"""Finds out who changes objects in place that belong to a store (DET-01).

For objects that one reader can spoil for the next, while a program is developed:

| what is in the store | what can be said |
|---|---|
| what was put there by hand | whether it was changed |
| `storage="dict"` | the same; its mappings refuse writes, but not those that go around them (`dict.update(obj, …)`) |
| what a `decoder` makes, of a class that can be referred to weakly | the same, once it has been seen |
| what a `decoder` makes otherwise: `dict`, `list`, classes with slots | nothing: each reader gets one of its own |
| views: all other tiers | nothing: they are made of bytes, and cannot be changed |
"""

from __future__ import annotations

import asyncio
import os
from copy import deepcopy
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.cache.objects.frozen import thaw
from aioinformer.cache.objects.record import Record
from aioinformer.cache.objects.views import View
from aioinformer.errors import AioinformerError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.store import Indexer

#: The variable of the environment that asks for detection, with any value but "", "0" and "false".
ENVIRONMENT_VARIABLE = "AIOINFORMER_CACHE_MUTATION_DETECTOR"


class CacheMutated(AioinformerError):
    """An object of a store was changed in place.

    Attributes:
        key: of the object.
        paths: where it differs from what it was; values are not told.
    """

    def __init__(self, name: str, key: str, paths: tuple[str, ...]) -> None:
        super().__init__(
            f"{name}: {key} was changed in place at {', '.join(paths)}; objects of a store belong to all who read it: "
            "change a copy"
        )
        self.key = key
        self.paths = paths


class _Remembered(NamedTuple):
    key: str
    obj: Any
    copy: Any
    since: float


class MutationDetector:
    """Copies the objects of a store when it first sees them, and compares them again and again.

    An object that has left the store is compared for `retain` seconds more: whoever holds it still may change it.

    Args:
        store: whose objects to look at.
        name: of the store, for errors.
        enabled: whether to do anything; None: whether the variable `AIOINFORMER_CACHE_MUTATION_DETECTOR` asks for it.
        period: between comparisons, in seconds.
        retain: in seconds.
        clock: seconds from any beginning.
    """

    def __init__(
        self,
        store: Indexer[Any],
        name: str = "store",
        *,
        enabled: bool | None = None,
        period: float = 1.0,
        retain: float = 120.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        if period <= 0:
            raise UsageError(f"period={period} must be a positive number of seconds")
        self._store = store
        self._name = name
        self.enabled = _wanted() if enabled is None else enabled
        self._period = period
        self._retain = retain
        self._clock = clock
        #: By the identity of the object, which stays in use as long as it is in here.
        self._remembered: dict[int, _Remembered] = {}

    def compare(self) -> None:
        """Compares all objects that were seen before, and remembers those that are new.

        Raises:
            CacheMutated: one has changed.
        """
        if not self.enabled:
            return
        now = self._clock()
        items = self._store.store.snapshot()
        objects = zip(items, self._store.to_views(item for _, item in items), strict=True)
        present = {id(obj): (key, obj) for (key, item), obj in objects if _is_shared(item, obj)}
        for remembered in self._remembered.values():
            if paths := tuple(_differences(remembered.copy, remembered.obj)):
                raise CacheMutated(self._name, remembered.key, paths)
        for identity, (key, obj) in present.items():
            copy = self._remembered[identity].copy if identity in self._remembered else deepcopy(thaw(obj))
            self._remembered[identity] = _Remembered(key, obj, copy, now)
        self._remembered = {
            identity: each for identity, each in self._remembered.items() if now - each.since <= self._retain
        }

    @property
    def remembered(self) -> int:
        """How many objects it has copies of: 0 where nothing can be said."""
        return len(self._remembered)

    async def run(self) -> None:
        """Compares until cancelled; returns at once if not enabled. To be run beside what uses the store.

        Raises:
            CacheMutated: an object has changed.
        """
        while self.enabled:
            self.compare()
            await asyncio.sleep(self._period)


def _wanted() -> bool:
    return os.environ.get(ENVIRONMENT_VARIABLE, "").lower() not in ("", "0", "false")


def _is_shared(item: Any, obj: Any) -> bool:
    """Whether the next reader of what is stored gets this object, too, and it can be changed."""
    return not isinstance(obj, View) and (not isinstance(item, Record) or item.recall() is obj)


def _differences(before: Any, now: Any, path: str = "") -> list[str]:
    now = thaw(now)
    if isinstance(before, dict) and isinstance(now, dict):
        return [
            difference
            for name in [*before, *(name for name in now if name not in before)]
            for difference in (
                _differences(before[name], now[name], f"{path}.{name}" if path else str(name))
                if name in before and name in now
                else [f"{path}.{name}" if path else str(name)]
            )
        ]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return [
            difference
            for position, (old, new) in enumerate(zip(before, now, strict=True))
            for difference in _differences(old, new, f"{path}[{position}]")
        ]
    if type(before) is type(now) and hasattr(before, "__dict__") and not isinstance(before, type):
        return _differences(vars(before), vars(now), path)
    return [] if before == now else [path or "the whole"]
