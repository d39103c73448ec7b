"""`MutationDetector`: detect code that changes cached objects in place. Use it during development.

| objects in the store | detection |
|---|---|
| put there by hand | yes |
| `storage="dict"` | yes: its mappings refuse writes, except those that bypass them (`dict.update(obj, …)`) |
| made by a `decoder`, of a class that supports weak references | yes, after the first read |
| made by a `decoder` otherwise (`dict`, `list`, classes with slots) | not needed: each reader gets its own object |
| views, in all other tiers | not needed: they are immutable |
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from copy import deepcopy
from time import monotonic
from typing import Any, NamedTuple

from aioinformer.cache.objects.frozen import thaw
from aioinformer.cache.objects.record import Record
from aioinformer.cache.objects.views import View
from aioinformer.cache.store import Indexer
from aioinformer.errors import AioinformerError, UsageError
from aioinformer.logs import without_values

#: The environment variable that enables detection with any value but "", "0" and "false".
ENVIRONMENT_VARIABLE = "AIOINFORMER_CACHE_MUTATION_DETECTOR"


class CacheMutated(AioinformerError):
    """An object of a store was changed in place.

    Attributes:
        key: of the object.
        paths: of the fields that differ; without their values.
    """

    def __init__(self, name: str, key: str, paths: tuple[str, ...]) -> None:
        super().__init__(
            f"{name}: {key} was changed in place at {', '.join(paths)}; all readers share the objects of a store: "
            "change a copy"
        )
        self.key = key
        self.paths = paths


class _Remembered(NamedTuple):
    key: str
    obj: Any
    copy: Any
    since: float

    def __repr__(self) -> str:
        return without_values(self)


class MutationDetector:
    """Copies the objects of a store when they are new, and compares objects and copies periodically.

    Objects that were deleted from the store are compared for `retain` more seconds, since readers may still use them.

    Args:
        store: the indexer whose objects to compare.
        name: of the store, for errors.
        enabled: whether to do anything; None: as the environment variable `AIOINFORMER_CACHE_MUTATION_DETECTOR` says.
        period: between comparisons, in seconds.
        retain: in seconds.
        clock: returns monotonic seconds.

    Raises:
        UsageError: the period is not positive.
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
        self.enabled = _enabled_by_environment() if enabled is None else enabled
        self._period = period
        self._retain = retain
        self._clock = clock
        #: id(object) -> the object and its copy; ids are not reused while the objects are in here.
        self._remembered: dict[int, _Remembered] = {}

    def compare(self) -> None:
        """Compare all known objects with their copies, and copy the new ones.

        Raises:
            CacheMutated: an object has changed.
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
            if identity in self._remembered:
                copy = self._remembered[identity].copy
            else:
                copy = deepcopy(thaw(obj))
            self._remembered[identity] = _Remembered(key, obj, copy, now)
        self._remembered = {
            identity: each for identity, each in self._remembered.items() if now - each.since <= self._retain
        }

    @property
    def remembered(self) -> int:
        """The number of copied objects: 0 if detection is not needed."""
        return len(self._remembered)

    async def run(self) -> None:
        """Compare periodically until cancelled; return at once if not enabled.

        Raises:
            CacheMutated: an object has changed.
        """
        while self.enabled:
            self.compare()
            await asyncio.sleep(self._period)


def _enabled_by_environment() -> bool:
    return os.environ.get(ENVIRONMENT_VARIABLE, "").lower() not in ("", "0", "false")


def _is_shared(item: Any, obj: Any) -> bool:
    """Return whether the object is mutable, and the next reader gets the same one."""
    return not isinstance(obj, View) and (not isinstance(item, Record) or item.recall() is obj)


def _differences(before: Any, now: Any, path: str = "") -> list[str]:
    now = thaw(now)
    if isinstance(before, dict) and isinstance(now, dict):
        found = []
        for name in [*before, *(name for name in now if name not in before)]:
            below = f"{path}.{name}" if path else str(name)
            if name in before and name in now:
                found += _differences(before[name], now[name], below)
            else:
                found.append(below)
        return found
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return [
            difference
            for position, (old, new) in enumerate(zip(before, now, strict=True))
            for difference in _differences(old, new, f"{path}[{position}]")
        ]
    if type(before) is type(now) and hasattr(before, "__dict__") and not isinstance(before, type):
        return _differences(vars(before), vars(now), path)
    return [] if before == now else [path or "the whole"]
