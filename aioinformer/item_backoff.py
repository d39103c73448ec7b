"""A backoff for each of many things, asked with the time: client-go's flowcontrol.Backoff (FC-01).

A rate limiter of a work queue says when to try again. This one is for those who are asked whether it is time yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T", bound="Hashable")


class _Entry(NamedTuple):
    delay: float
    since: float


class ItemBackoff(Generic[T]):
    """Delays that double with each failure of an item, and are forgotten after a time without one.

    What has been forgotten stays in memory until `collect` is called.

    Args:
        initial: the first delay, in seconds.
        cap: the longest.
        jitter: each delay is longer by up to this share of the one before.
        random: gives numbers in [0, 1); needed for jitter only.
        forgotten_after: so long after its last failure, an item has never failed; by default, twice the cap.
    """

    def __init__(
        self,
        initial: float,
        cap: float,
        *,
        jitter: float = 0.0,
        random: Callable[[], float] | None = None,
        forgotten_after: float | None = None,
    ) -> None:
        if not 0 < initial <= cap:
            raise ValueError(f"delays must be 0 < initial <= cap, not {initial!r} and {cap!r}")
        if not jitter >= 0 or (jitter and random is None):
            raise ValueError(f"jitter must be 0, or more and with a random, not {jitter!r} and {random!r}")
        self._initial = initial
        self._cap = cap
        self._jitter = jitter
        self._random = random
        self._forgotten_after = 2 * cap if forgotten_after is None else forgotten_after
        self._entries: dict[T, _Entry] = {}

    def next(self, item: T, now: float) -> float:
        """The item has failed; returns the delay that this costs."""
        entry = self._current(item, now)
        base = self._initial if entry is None else entry.delay
        spread = base * self._jitter * self._random() if self._random is not None else 0.0
        delay = min((base if entry is None else base * 2) + spread, self._cap)
        self._entries[item] = _Entry(delay, now)
        return delay

    def get(self, item: T) -> float:
        """The delay of the last failure, in seconds; 0 without one."""
        entry = self._entries.get(item)
        return entry.delay if entry is not None else 0.0

    def reset(self, item: T) -> None:
        """The item has never failed."""
        self._entries.pop(item, None)

    def is_in_backoff_since(self, item: T, event: float, now: float) -> bool:
        """Whether less than the item's delay has passed since an event."""
        entry = self._current(item, event)
        return entry is not None and now - event < entry.delay

    def is_in_backoff_since_update(self, item: T, now: float) -> bool:
        """Whether less than the item's delay has passed since its last failure."""
        entry = self._current(item, now)
        return entry is not None and now - entry.since < entry.delay

    def collect(self, now: float) -> None:
        """Frees the memory of what is forgotten."""
        self._entries = {item: entry for item, entry in self._entries.items() if not self._is_over(entry, now)}

    def __len__(self) -> int:
        """How many items are in memory."""
        return len(self._entries)

    def _current(self, item: T, now: float) -> _Entry | None:
        entry = self._entries.get(item)
        return None if entry is None or self._is_over(entry, now) else entry

    def _is_over(self, entry: _Entry, now: float) -> bool:
        return now - entry.since > self._forgotten_after
