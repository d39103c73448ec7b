"""The parts of an informer's health that its reflector does not know: undecodable objects and failing indices."""

from __future__ import annotations

import logging
from time import time
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from aioinformer.cache.objects.read_failures import ReadFailures
from aioinformer.cache.objects.refusals import TOO_DEEP
from aioinformer.errors import DecodeError
from aioinformer.logs import get_logger
from aioinformer.reflector.protocol.changes import Quarantine, summary
from aioinformer.reflector.state import InformerState, Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.thread_safe_store import ThreadSafeStore


_log = get_logger("aioinformer.informer")


class Undecodable:
    """The objects of one cache that cannot be decoded.

    The event loop changes it. Any thread may read it.

    Args:
        store: the cache.
        limit: the largest share of undecodable objects, from 0 to 1, with which the informer is ready. With None, any
            share is accepted once one object has been decoded.
        on_change: is called when the first read fails, in the thread of the reader, and when the last such object is
            replaced.

    Attributes:
        unread: the failed reads.
        limit: as given.
        accepted: whether the informer has been ready once.
        handlers: are called with the key of each object that the reflector skips, why, and its version; and with ""
            and "" when a version can be decoded, or the object is gone.
    """

    __slots__ = ("_on_change", "_quarantines", "_skipped", "_store", "accepted", "handlers", "limit", "unread")

    def __init__(
        self,
        store: ThreadSafeStore[Any],
        limit: float | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.limit = limit
        self.unread = ReadFailures(store.item, on_change)
        self._store = store
        self._on_change = on_change
        #: A tuple that is replaced, so that other threads may iterate over it.
        self._quarantines: tuple[Quarantine, ...] = ()
        self._skipped = 0
        self.accepted = False
        self.handlers: list[Callable[[str, str, str], None]] = []

    # Changes.

    def add_quarantine(self) -> Quarantine:
        """Add a new quarantine for a reflector, and return it."""
        quarantine = Quarantine(self._changed)
        self._quarantines = (*self._quarantines, quarantine)
        return quarantine

    def remove_quarantine(self, quarantine: Quarantine) -> None:
        """Remove a quarantine whose reflector has ended, and whose objects are gone."""
        quarantine.clear()
        self._quarantines = tuple(each for each in self._quarantines if each is not quarantine)
        self._skipped += quarantine.total

    def release(self, key: str) -> None:
        """Remove the failed read of an object, because another version is in the cache, or the object is gone."""
        reasons = self.unread.reasons
        if reasons.pop(key, None) is not None and not reasons:
            self._on_change()

    def _changed(self, key: str, reason: str, version: str) -> None:
        for handler in self.handlers:
            handler(key, reason, version)

    def accept(self) -> None:
        """Set `accepted` if the informer is ready now. Call it when the cache has synced, and after later changes."""
        self.accepted = self.accepted or self.is_acceptable()

    # Reads.

    def __bool__(self) -> bool:
        return bool(self.unread.reasons) or any(self._quarantines)

    @property
    def skipped(self) -> int:
        """The number of versions so far that could not be decoded."""
        return self._skipped + self.unread.total + sum(each.total for each in self._quarantines)

    def reasons(self) -> dict[str, str]:
        """Return key -> why the last version cannot be decoded. The key "" stands for objects without a name."""
        found = self.unread.reasons.copy()
        for quarantine in self._quarantines:
            found |= quarantine.reasons()
        return found

    def check(self, key: str) -> None:
        """Check that an object that is not in the cache does not exist.

        Raises:
            DecodeError: the object exists, and cannot be decoded.
        """
        reason = self.unread.reasons.get(key)
        for quarantine in self._quarantines:
            reason = reason or quarantine.reason(key)
        if reason is not None:
            raise DecodeError(f"{key} exists and cannot be decoded: {reason}", key=key)

    def is_acceptable(self) -> bool:
        """Return whether enough objects can be decoded for the informer to be ready.

        An object that is nested too deeply does not count: its latest version is in the cache, and no class mends it.
        """
        reasons = {key: reason for key, reason in self.reasons().items() if not reason.endswith(TOO_DEEP)}
        if not reasons:
            return True
        store = self._store
        if self.limit is not None:
            absent = sum(store.item(key) is None for key in reasons)
            if len(reasons) > self.limit * (len(store) + absent):
                return False
        return self.accepted or len(store) > len(reasons) or any(key not in reasons for key in store.all_keys())

    def __len__(self) -> int:
        """Return the number of objects. Each object without a readable name counts."""
        reasons = self.reasons()
        return len(reasons) - ("" in reasons) + sum(each.nameless for each in self._quarantines)

    def __str__(self) -> str:
        return summary(self.reasons(), len(self))


class FailingIndices:
    """Reports index functions that raise. A function is logged again when it raises for twice as many objects.

    Args:
        store: the store with the indices.
        name: of the informer, for the log.

    Attributes:
        reported: the last report; "" if no function raises.
    """

    __slots__ = ("_logged", "_name", "_since", "_store", "reported")

    def __init__(self, store: ThreadSafeStore[Any], name: str) -> None:
        self._store = store
        self._name = name
        self.reported = ""
        self._since = 0.0
        #: name -> for how many objects the function raised when it was logged.
        self._logged: dict[str, int] = {}

    def check(self) -> bool:
        """Make a report. Return whether it has changed since the last one."""
        if not self.reported and not self._store.any_failing():
            return False
        failing = str(self)
        if failing == self.reported:
            return False
        counts = {name: count for name, (_, _, count) in self._store.failing().items()}
        if not failing or any(count >= 2 * self._logged.get(name, 0) for name, count in counts.items()):
            level = logging.WARNING if failing else logging.INFO
            _log.log(level, "%s: %s", self._name, failing or "index functions no longer raise")
            self._logged = counts
        self.reported = failing
        self._since = time()
        return True

    def degrade(self, state: InformerState) -> InformerState:
        """Return the state, as `DEGRADED` if index functions raise: reads by index do not find all cached objects."""
        if not (state.healthy or state.phase is Phase.DEGRADED) or not self._store.any_failing():
            return state
        reason = "; ".join(filter(None, (state.reason, str(self))))
        return replace(state, phase=Phase.DEGRADED, reason=reason, since=max(state.since, self._since))

    def __str__(self) -> str:
        return "; ".join(
            f"index {name} ({_name(function)}) raises for {count} object{'s' if count > 1 else ''} "
            f"({', '.join(keys)}{', …' if count > len(keys) else ''})"
            for name, (function, keys, count) in self._store.failing().items()
        )


def _name(function: Callable[..., Any]) -> str:
    module = getattr(function, "__module__", "")
    name = getattr(function, "__qualname__", "")
    return f"{module}.{name}" if module and name else repr(function)
