"""What is kept of changes and runs while a debug page exists: the last ones of each key, within limits.

Recording must cost next to nothing while the page is not read. So of each change, a reference to the state before it
is kept, and all else is done for the reader: the state after a change is the state before the next one, or that of the
cache. The limit is checked once a batch, by an upper bound, and what is kept is measured only when that exceeds it.
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import pairwise, repeat
from operator import attrgetter, itemgetter
from sys import maxsize
from time import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

from aioinformer.cache.objects.views import View, view_record
from aioinformer.controller.inputs.content import json_of
from aioinformer.errors import USER_ERRORS
from aioinformer.handlers.calls import key_of
from aioinformer.handlers.notifications import AddNotification, UpdateNotification
from aioinformer.logs import get_logger, without_values
from aioinformer.resources.keys import DeletedFinalStateUnknown

if TYPE_CHECKING:
    from aioinformer.cache.objects.record import Record
    from aioinformer.handlers.backlog import Batch
    from aioinformer.handlers.notifications import Notification
    from aioinformer.informer.shared_informer import SharedIndexInformer

K = TypeVar("K")

_log = get_logger("aioinformer.controller")

#: How many changes of a key are kept.
CHANGES: Final = 5
#: What a recorded change takes beside the bytes of the state, at most.
_OVERHEAD: Final = 1_500
#: A state that takes more than this part of the limit is not kept.
_PART: Final = 4
_first = itemgetter(0)
_last = itemgetter(-1)
_key = attrgetter("key")
_raw = attrgetter("raw")
_old_record = attrgetter("old._record")


class JsonState(msgspec.Struct, frozen=True):
    """The state of no object, without `raw` bytes, or one of a user's class. `Record` has these attributes, too."""

    key: str
    raw: bytes = b""
    json: bytes = b"{}"

    def __repr__(self) -> str:
        return without_values(self)


State: TypeAlias = "Record | JsonState"


#: A change: when, and the states before and after it.
Change: TypeAlias = tuple[float, State, State]


class LastFew(dict[K, deque[Any]]):
    """The last entries of each key: tuples that begin with a time. To add one, write `kept[key].append(…)`.

    Args:
        entries: how many are kept of a key.
        keys: of how many keys, at most. With one more, the half whose last entries are the oldest is dropped.
    """

    def __init__(self, entries: int, keys: int) -> None:
        self.keys_at_most = keys
        self._entries = entries

    def __missing__(self, key: K) -> deque[Any]:
        if len(self) >= self.keys_at_most:
            self.drop_half()
        found: deque[Any] = deque(maxlen=self._entries)
        self[key] = found
        return found

    def drop_half(self) -> None:
        """Drop the half of the keys whose last entries are the oldest."""
        # There may be thousands: none of these steps is one of Python for each of them.
        kept = [*self.items()]
        times = [*map(_first, map(_last, self.values()))]
        order = sorted(range(len(kept)), key=times.__getitem__)
        self.clear()
        self.update(map(kept.__getitem__, order[(len(order) + 1) // 2 :]))


class Histories(dict["SharedIndexInformer[Any]", "History"]):
    """The last changes of the objects of some informers, within one limit.

    Attributes:
        limit: bytes for all recorded changes, with the states that only they keep in memory.
        left: the part of the limit that is free if nothing was dropped since the last measurement.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def follow(self, informers: set[SharedIndexInformer[Any]]) -> None:
        """Record the changes of these informers from now on, and forget those of others."""
        for informer in self.keys() - informers:
            self.pop(informer).close()
        for informer in informers - self.keys():
            self[informer] = History(informer, self)

    def size(self) -> int:
        """Return how many bytes the recorded changes take."""
        return sum(each.size() for each in self.values())

    def fit(self) -> None:
        """Measure what is kept. If it takes more than half of the limit, drop what changed longest ago, to a half.

        So the next measurement comes after as many bytes again. The informer that takes most loses changes: a flood of
        one hides no changes of those that take less.
        """
        sizes = {each: each.size() for each in self.values()}
        if sum(sizes.values()) > self.limit // 2:
            for each in sizes:
                each.thin(self.limit // _PART)
                sizes[each] = each.size()
            while (surplus := sum(sizes.values()) - self.limit // 2) > 0:
                largest = max(sizes, key=sizes.__getitem__)
                sizes[largest] -= largest.drop_oldest(min(surplus, self.limit // _PART + 1))
        self.left = self.limit - sum(sizes.values())


class History:
    """The last changes of the objects of one informer, as one of some `Histories`."""

    def __init__(self, informer: SharedIndexInformer[Any], within: Histories) -> None:
        self._informer = informer
        self._within = within
        #: When objects changed, and their states before that, in the order of the changes.
        self._times: list[float] = []
        self._states: list[State] = []
        #: The same by key, made for a reader; None since the last change.
        self._by_key: dict[str, deque[tuple[float, State]]] | None = None
        informer.observers.append(self.saw)

    def __len__(self) -> int:
        """Return of how many objects there are changes."""
        return len(self._kept())

    def close(self) -> None:
        """Record no more."""
        self._informer.observers[:] = [each for each in self._informer.observers if each != self.saw]

    def saw(self, batch: Batch[Any]) -> None:
        """Record a batch of changes. Those of the first list are none."""
        # In a flood, this is the cost of the page. It may take 3 % of the bytecodes of an event, and takes 0.4 %.
        # A step of Python for each change would make 3.6 % of it.
        changes = batch.notifications
        if batch.initial:
            if batch.initial == batch.size:
                return
            changes = [each for each in changes if not getattr(each, "is_in_initial_list", False)]
        try:
            try:
                states: list[State] = [*map(_old_record, changes)]
            except AttributeError:  # an add, a deletion, or objects of a user's class
                states = [*map(_before, changes)]
            self._times += repeat(time(), len(states))
            self._states += states
            self._by_key = None
            self._within.left -= _size(states)
            if self._within.left < 0:
                self._within.fit()
        except Exception:  # the handlers must not miss a batch
            self.close()
            _log.exception("changes of %s are not recorded any more", self._informer.name)

    def thin(self, most: int) -> None:
        """Keep the last changes of each object only, and none before a state of more than some bytes."""
        counts = Counter(map(_key, self._states))
        if max(counts.values(), default=0) <= CHANGES and max(map(len, map(_raw, self._states)), default=0) <= most:
            return
        counts.clear()
        times: list[float] = []
        states: list[State] = []
        for at, state in zip(reversed(self._times), reversed(self._states), strict=True):
            counts[state.key] += 1 if len(state.raw) <= most else CHANGES + 1
            if counts[state.key] <= CHANGES:
                times.append(at)
                states.append(state)
        self._times = times[::-1]
        self._states = states[::-1]
        self._by_key = None

    def drop_oldest(self, size: int) -> int:
        """Drop the oldest changes that take so many bytes together; return how many these are."""
        dropped = 0
        count = 0
        for state in self._states:
            if dropped >= size:
                break
            dropped += len(state.raw) + _OVERHEAD
            count += 1
        del self._times[:count], self._states[:count]
        self._by_key = None
        return dropped

    def size(self) -> int:
        """Return how many bytes the recorded changes take."""
        return _size(self._states)

    def naming(self, text: bytes) -> list[str]:
        """Return the keys of the objects that have changed and had a text in their JSON."""
        return [key for key in self._kept() if any(text in state.json for state in self._states_of(key))]

    def changes(self, key: str) -> list[Change]:
        """Return the recorded changes of an object, the first one first."""
        states = pairwise(self._states_of(key))
        return [(at, old, new) for (at, _), (old, new) in zip(self._kept().get(key, ()), states, strict=True)]

    def _states_of(self, key: str) -> list[State]:
        """Return the states before the recorded changes of an object, and the present one."""
        states = [before for _, before in self._kept().get(key, ())]
        return [*states, _state_of(key, self._informer.get_indexer().get_by_key(key))]

    def _kept(self) -> dict[str, deque[tuple[float, State]]]:
        if self._by_key is None:
            self._by_key = LastFew(CHANGES, maxsize)
            for at, state in zip(self._times, self._states, strict=True):
                self._by_key[state.key].append((at, state))
        return self._by_key


def _size(states: list[State]) -> int:
    return sum(map(len, map(_raw, states))) + _OVERHEAD * len(states)


def _before(notification: Notification[Any]) -> State:
    """Return the state before a change."""
    if isinstance(notification, AddNotification):
        return JsonState(key_of(notification))
    if isinstance(notification, UpdateNotification):
        obj = notification.old
    else:
        obj = notification.obj
    return _state_of(key_of(notification), obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj)


def _state_of(key: str, obj: Any) -> State:
    if obj is None:
        return JsonState(key)
    if isinstance(obj, View):
        return view_record(obj)
    try:
        state = json_of(obj)
    except USER_ERRORS:  # a class of the user has no JSON form
        return JsonState(key, b" ")
    return JsonState(key, state, state)
