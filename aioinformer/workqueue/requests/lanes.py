"""The order of requests that are ready: priorities, turns of groups, ageing, and limits of groups."""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Hashable

    from aioinformer.resources.keys import ObjectName
    from aioinformer.workqueue.requests.causes import Cause
    from aioinformer.workqueue.requests.outcomes import Run

#: How many lanes `pop` looks at for their age. Lanes that become overdue at once are found faster than they are served.
_LOOKS: Final = 4
#: How many lanes are kept if all are empty.
_EMPTY: Final = 64


class Entry(msgspec.Struct, eq=False):
    """A key in the queue; while it is ready, an item of its lane."""

    key: ObjectName
    group: Hashable
    state: int = 0
    run: Run | None = None
    started: float = float("-inf")
    # Of the request, if there are causes.
    causes: tuple[Cause, ...] = ()
    left_out: int = 0
    changed: float | None = None  # when the first change of an input arrived
    enqueued: float = 0.0
    priority: int = 0
    at: float = 0.0
    since: float = 0.0  # in the lane


@dataclass(slots=True, eq=False)
class _Group:
    id: Hashable
    runs: int = 0
    lanes: dict[int, _Lane] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Lane:
    """The requests of one group and priority, first in, first out. Any can be removed."""

    group: _Group
    priority: int
    requests: OrderedDict[Entry, None] = field(default_factory=OrderedDict)
    watched: bool = False


#: Seconds after which a request is overdue.
AGEING: Final = 30.0
#: Lanes in the order of their turns.
_Ring: TypeAlias = "OrderedDict[_Lane, None]"


class Lanes:
    """Requests that are ready, in the order that `schedule` documents. Each operation takes O(log n) on average.

    Args:
        limit: the number of runs that a group may have at a time; None for no limit.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._size = 0
        self._groups: dict[Hashable, _Group] = {}
        #: Lanes that have a request that may run, by priority; the priorities, lowest first; and the overdue ones.
        self._rings: dict[int, _Ring] = {}
        self._priorities: list[int] = []
        self._overdue: _Ring = OrderedDict()
        self._turn_of_overdue = False
        #: When to look whether a lane is overdue: at most one entry for each, maybe early. Until then, an empty lane
        #: stays: it soon has the next request.
        self._ages: list[tuple[float, int, _Lane]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return self._size

    def available(self) -> bool:
        """Return whether `pop` has a request."""
        return bool(self._priorities)

    def push(self, entry: Entry, now: float) -> None:
        """Append a request to the lane of its group and priority."""
        group = self._groups.get(entry.group)
        if group is None:
            group = _Group(entry.group)
            self._groups[entry.group] = group
        lane = group.lanes.get(entry.priority)
        if lane is None:
            lane = _Lane(group, entry.priority)
            group.lanes[entry.priority] = lane
        entry.since = now
        self._size += 1
        if not lane.requests:
            if self._limit is None or group.runs < self._limit:
                self._enter(lane)
            if not lane.watched:
                self._watch(lane, now)
        lane.requests[entry] = None

    def remove(self, entry: Entry, now: float) -> None:
        """Remove a request."""
        lane = self._groups[entry.group].lanes[entry.priority]
        del lane.requests[entry]
        self._size -= 1
        self._update(lane, now)

    def pop(self, now: float) -> Entry | None:
        """Remove and return the next request, and count a run of its group; None if none may run."""
        if self._ages and self._ages[0][0] <= now:
            self._look(now)
        if not self._priorities:
            return None
        overdue = self._overdue
        if overdue and self._turn_of_overdue:
            ring = overdue
        else:
            ring = self._rings[self._priorities[-1]]
        self._turn_of_overdue = ring is not overdue
        lane = next(iter(ring))
        if len(ring) > 1:
            ring.move_to_end(lane)
        group = lane.group
        requests = lane.requests
        entry, _ = requests.popitem(last=False)
        self._size -= 1
        group.runs += 1
        if group.runs == self._limit:
            self._update_all(group, now)
        elif not requests:
            self._leave(lane)
        elif overdue:
            self._update(lane, now)
        return entry

    def _look(self, now: float) -> None:
        """Look at the lanes that may be overdue, a slice of them at most."""
        for _ in range(_LOOKS):
            lane = heappop(self._ages)[2]
            lane.watched = False
            self._update(lane, now)
            if not self._ages or self._ages[0][0] > now:
                break

    def end_run(self, group: Hashable, now: float) -> None:
        """Count the end of a run of a group."""
        ended = self._groups[group]
        ended.runs -= 1
        if self._limit is not None:
            self._update_all(ended, now)
        if not ended.runs and not ended.lanes:
            self._groups.pop(group, None)

    def _update_all(self, group: _Group, now: float) -> None:
        for lane in list(group.lanes.values()):
            self._update(lane, now)

    def _update(self, lane: _Lane, now: float) -> None:
        """Put a lane into the rings in which it has turns, and take it out of the others."""
        first = next(iter(lane.requests), None)
        if first is None:
            self._leave(lane)
            return
        overdue = first.since + AGEING <= now
        if self._limit is not None and lane.group.runs >= self._limit:
            self._pause(lane)
        else:
            self._enter(lane)
            if overdue:
                self._overdue[lane] = None
            else:
                self._overdue.pop(lane, None)
        if not overdue and not lane.watched:
            self._watch(lane, first.since)

    def _enter(self, lane: _Lane) -> None:
        """Give a lane turns, unless it has them."""
        ring = self._rings.get(lane.priority)
        if ring is None:
            ring = OrderedDict()
            self._rings[lane.priority] = ring
            insort(self._priorities, lane.priority)
        ring[lane] = None

    def _pause(self, lane: _Lane) -> None:
        """Give a lane no more turns."""
        ring = self._rings.get(lane.priority)
        if ring is not None and lane in ring:
            del ring[lane]
            if not ring:
                del self._rings[lane.priority]
                self._priorities.remove(lane.priority)
        if self._overdue:
            self._overdue.pop(lane, None)

    def _leave(self, lane: _Lane) -> None:
        """Give a lane without requests no more turns, and drop it if it is not watched, or if there are too many."""
        self._pause(lane)
        if not lane.watched:
            self._drop(lane)
        elif len(self._ages) > 2 * self._size + _EMPTY:
            for _, _, each in self._ages:
                each.watched = bool(each.requests)
                if not each.watched:
                    self._drop(each)
            self._ages = [age for age in self._ages if age[2].watched]
            heapify(self._ages)

    def _watch(self, lane: _Lane, since: float) -> None:
        lane.watched = True
        heappush(self._ages, (since + AGEING, next(self._numbers), lane))

    def _drop(self, lane: _Lane) -> None:
        group = lane.group
        group.lanes.pop(lane.priority, None)
        if not group.lanes and not group.runs:
            self._groups.pop(group.id, None)
