"""What the state of an informer says of index functions that raise."""

from __future__ import annotations

import logging
from dataclasses import replace
from time import time
from typing import TYPE_CHECKING, Any

from aioinformer.cache.objects.read_failures import ReadFailures
from aioinformer.errors import DecodeError
from aioinformer.logs import get_logger
from aioinformer.reflector.protocol.changes import Quarantine, summary
from aioinformer.reflector.state import InformerState, Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.thread_safe_store import ThreadSafeStore


class Undecodable:
    """The objects of one cache that cannot be decoded.

    The event loop changes it; any thread may ask.

    Args:
        store: the cache.
        limit: the largest share of undecodable objects, from 0 to 1, with which the informer is ready. None: any, once
            one object has been decoded.
        on_change: called when the first read fails and when the last such object is replaced; the former in the
            thread of the reader.

    Attributes:
        unread: the failed reads.
        limit: as given.
        accepted: whether the informer has been ready once.
    """

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
        #: A tuple, which other threads may walk while another takes its place.
        self._quarantines: tuple[Quarantine, ...] = ()
        self._skipped = 0
        self.accepted = False

    # What the informer says.

    def quarantine(self) -> Quarantine:
        """Return a new quarantine for a reflector, which counts from now on."""
        made = Quarantine()
        self._quarantines = (*self._quarantines, made)
        return made

    def dismiss(self, quarantine: Quarantine) -> None:
        """Count a quarantine no more: its reflector has ended, and its objects are gone."""
        self._quarantines = tuple(each for each in self._quarantines if each is not quarantine)
        self._skipped += quarantine.total

    def release(self, key: str) -> None:
        """Note that another version of an object is in the cache, or that it is gone."""
        reasons = self.unread.reasons
        if reasons.pop(key, None) is not None and not reasons:
            self._on_change()

    def accept(self) -> None:
        """Note that the cache has been filled, or has changed since: if the informer is ready now, it has been once."""
        self.accepted = self.accepted or self.acceptable()

    # What others ask.

    def __bool__(self) -> bool:
        return bool(self.unread.reasons) or any(self._quarantines)

    @property
    def skipped(self) -> int:
        """The number of versions that could not be decoded so far."""
        return self._skipped + self.unread.total + sum(each.total for each in self._quarantines)

    def reasons(self) -> dict[str, str]:
        """Return key -> why the last version does not decode. The key "" is that of objects without a readable name."""
        found = self.unread.reasons.copy()
        for quarantine in self._quarantines:
            found |= quarantine.reasons()
        return found

    def check(self, key: str) -> None:
        """Do nothing if an object that is not in the cache does not exist.

        Raises:
            DecodeError: it exists, and does not decode.
        """
        reason = self.unread.reasons.get(key)
        for quarantine in self._quarantines:
            reason = reason or quarantine.reason(key)
        if reason is not None:
            raise DecodeError(f"{key} exists and cannot be decoded: {reason}", key=key)

    def acceptable(self) -> bool:
        """Whether so many objects decode that the informer is ready."""
        if not self:
            return True
        reasons, store = self.reasons(), self._store
        if self.limit is not None:
            absent = sum(store.item(key) is None for key in reasons)
            if len(reasons) > self.limit * (len(store) + absent):
                return False
        return self.accepted or len(store) > len(reasons) or any(key not in reasons for key in store.all_keys())

    def __len__(self) -> int:
        """The number of objects, each without a readable name included."""
        reasons = self.reasons()
        return len(reasons) - ("" in reasons) + sum(each.nameless for each in self._quarantines)

    def __str__(self) -> str:
        return summary(self.reasons(), len(self))


_log = get_logger("aioinformer.informer")


class FailingIndices:
    """Watches the indices of one store.

    Args:
        store: the store.
        name: of the informer, for the log.
    """

    def __init__(self, store: ThreadSafeStore[Any], name: str) -> None:
        self._store = store
        self._name = name
        self.said = ""
        self._since = 0.0

    def check(self) -> bool:
        """Log it, and return True, if index functions began or ceased to raise, or raise for other objects."""
        if not self.said and not self._store.any_failing():
            return False
        failing = str(self)
        if failing == self.said:
            return False
        level = logging.WARNING if failing else logging.INFO
        _log.log(level, "%s: %s", self._name, failing or "index functions raise for no object any more")
        self.said, self._since = failing, time()
        return True

    def judge(self, state: InformerState) -> InformerState:
        """Return the state, degraded if index functions raise: readers by index do not find all that is cached."""
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
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    return f"{module}.{name}" if module and name else repr(function)
